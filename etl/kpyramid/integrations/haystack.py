"""A snapshot as a retriever of Haystack (`pip install haystack-ai`)."""

from haystack import Document, component

from kpyramid.query.retrieval import list_pieces, retrieve
from kpyramid.snapshot.snapshot import Snapshot


@component
class PyramidRetriever:
    """The facts that are relevant to a question, then the passages, each as a document."""

    def __init__(self, snapshot: Snapshot, facts: int = 5, passages: int = 5) -> None:
        self.snapshot, self.facts, self.passages = snapshot, facts, passages

    @component.output_types(documents=list[Document])
    def run(self, query: str) -> dict[str, list[Document]]:
        """Documents with layer, score and source as metadata."""
        retrieved = retrieve(query, self.snapshot, facts=self.facts, passages=self.passages)
        pieces = list_pieces(retrieved)
        return {
            "documents": [
                Document(content=text, meta=about, score=about["score"]) for text, about in pieces
            ]
        }
