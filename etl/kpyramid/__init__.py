"""Knowledge Pyramid: from a corpus to ontology, knowledge graph and text, versioned and checked.

What stands in `__all__` is public; every other module is internal and may change.
"""

# ruff: noqa: F403, F405 - the names of `query` that are public stand below, once

import os
from typing import TYPE_CHECKING, Any

from kpyramid.errors import InputError, IntegrityError, PyramidError

if TYPE_CHECKING:
    from kpyramid.pipeline.models import open_backends
    from kpyramid.query import *

# onnxruntime reads this once, when it is loaded: else it looks up its maker's telemetry host and
# writes below the home folder. Whatever module loads it is loaded after this, in every process.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__all__ = [
    "EVERYTHING",
    "PUBLIC",
    "STRATEGIES",
    "Answer",
    "Backends",
    "Evidence",
    "InputError",
    "IntegrityError",
    "PyramidError",
    "Retrieval",
    "Scope",
    "Snapshot",
    "answer",
    "call_tool",
    "hold_snapshot",
    "open_backends",
    "open_snapshot",
    "retrieve",
    "tools",
]


def __getattr__(name: str) -> Any:
    """The public names, loaded when first used: the command line starts fast without them."""
    if name == "open_backends":
        from kpyramid.pipeline import models

        return models.open_backends
    if name in __all__:
        from kpyramid import query

        return getattr(query, name)
    raise AttributeError(f"module 'kpyramid' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
