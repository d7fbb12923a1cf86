"""A snapshot as a retriever and as tools of LangChain (`pip install langchain-core`)."""

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import StructuredTool, ToolException

from kpyramid.errors import PyramidError
from kpyramid.query.retrieval import list_pieces, retrieve
from kpyramid.query.toolset import TOOLS, Tool, call_tool, write_plain
from kpyramid.snapshot.snapshot import Snapshot


class PyramidRetriever(BaseRetriever):
    """The facts that are relevant to a question, then the passages, each as a document."""

    snapshot: Any
    facts: int = 5
    passages: int = 5

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        results = retrieve(query, self.snapshot, facts=self.facts, passages=self.passages)
        return [Document(page_content=text, metadata=about) for text, about in list_pieces(results)]


def list_tools(snapshot: Snapshot) -> list[StructuredTool]:
    """All tools of `kpyramid.query.TOOLS` over a snapshot; a refused call says why to the agent."""

    def make(name: str, tool: type[Tool]) -> StructuredTool:
        def call(**given: Any) -> str:
            try:
                return write_plain(call_tool(name, given, snapshot))
            except PyramidError as e:
                raise ToolException(str(e)) from e

        return StructuredTool.from_function(
            func=call,
            name=name,
            description=tool.__doc__,
            args_schema=tool,
            handle_tool_error=True,
            handle_validation_error=True,
        )

    return [make(name, tool) for name, tool in TOOLS.items()]
