"""The declarations (table contracts, ontologies, views) as text, from the wheel or the checkout."""

from pathlib import Path

from kpyramid.errors import PyramidError

_PACKAGE = Path(__file__).parent
_CHECKOUT = _PACKAGE.parent.parent
_PLACES = {
    "schemas": ("schemas", "*.toml"),
    "ontology": ("ontology", "*.ttl"),
    "views": ("warehouse/views", "*.sql"),
}


def locate_declarations(kind: str) -> dict[str, Path]:
    """The files of one kind (`schemas`, `ontology`, `views`), by name without ending, sorted.

    Raises:
        PyramidError: the installation carries no such files.
    """
    place, pattern = _PLACES[kind]
    for folder in (_PACKAGE / "_declared" / kind, _CHECKOUT / place):
        files = sorted(folder.glob(pattern))
        if files:
            return {path.stem: path for path in files}
    raise PyramidError(
        f"the installation has no {kind} declarations below {_PACKAGE}; install kpyramid again"
    )
