"""The query module, for services. It reads snapshots and changes nothing.

`retrieve` returns facts, passages and their connections; `answer` runs a strategy on top of it. It
imports the snapshot, embeddings, and a model's client if a model decides; never the pipeline.
"""

from kpyramid.query.answering import STRATEGIES, answer
from kpyramid.query.retrieval import Connection, Retrieval, retrieve
from kpyramid.query.toolset import TOOLS, call_tool, tools
from kpyramid.query.types import Answer, Backends, Item
from kpyramid.snapshot.evidence import Evidence
from kpyramid.snapshot.snapshot import Snapshot, hold_snapshot, open_snapshot
from kpyramid.snapshot.view import EVERYTHING, PUBLIC, Scope

__all__ = [
    "EVERYTHING",
    "PUBLIC",
    "STRATEGIES",
    "TOOLS",
    "Answer",
    "Backends",
    "Connection",
    "Evidence",
    "Item",
    "Retrieval",
    "Scope",
    "Snapshot",
    "answer",
    "call_tool",
    "hold_snapshot",
    "open_snapshot",
    "retrieve",
    "tools",
]
