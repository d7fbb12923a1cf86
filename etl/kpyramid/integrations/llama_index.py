"""A snapshot as a retriever of LlamaIndex (`pip install llama-index-core`)."""

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from kpyramid.query.retrieval import list_pieces, retrieve
from kpyramid.snapshot.snapshot import Snapshot


class PyramidRetriever(BaseRetriever):
    """The facts that are relevant to a question, then the passages, each as a node."""

    def __init__(self, snapshot: Snapshot, *, facts: int = 5, passages: int = 5) -> None:
        super().__init__()
        self._snapshot = snapshot
        self._facts, self._passages = facts, passages

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = retrieve(
            query_bundle.query_str, self._snapshot, facts=self._facts, passages=self._passages
        )
        return [
            NodeWithScore(node=TextNode(text=text, id_=about["id"], metadata=about), score=score)
            for text, about in list_pieces(found)
            for score in (about["score"],)
        ]
