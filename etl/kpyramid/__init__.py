"""Knowledge Pyramid: from a corpus to ontology, knowledge graph and text, versioned and checked."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kpyramid.query import Answer, Backends, Scope, Snapshot, answer, open_snapshot

__all__ = ["Answer", "Backends", "Scope", "Snapshot", "answer", "open_snapshot"]


def __getattr__(name: str) -> Any:
    """The public names, loaded when first used: the command line starts fast without them."""
    if name in __all__:
        from kpyramid import query

        return getattr(query, name)
    raise AttributeError(f"module 'kpyramid' has no attribute {name!r}")
