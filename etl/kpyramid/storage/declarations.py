"""The declarations (table contracts, ontologies, views) as text, from the wheel or the checkout."""

import glob
from dataclasses import dataclass
from pathlib import Path

from kpyramid.errors import PyramidError, SettingsError
from kpyramid.storage.identity import Identity, hash_files

_PACKAGE = Path(__file__).parent.parent
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
        # What has a second ending, such as `general.shapes.ttl`, belongs to the file it names.
        files = [path for path in sorted(folder.glob(pattern)) if "." not in path.stem]
        if files:
            return {path.stem: path for path in files}
    raise PyramidError(
        f"the installation has no {kind} declarations below {_PACKAGE}; install kpyramid again"
    )


@dataclass(frozen=True, slots=True)
class OntologyFiles:
    """An ontology and what lies beside it under the same name; None or empty where there is none.

    `turtle`: `NAME.ttl`, classes and properties. `shapes`: `NAME.shapes.ttl`, SHACL that values
    and individuals must pass. `examples`: `NAME.examples.jsonl`, sentences with their values, from
    which induction learns. `questions`: `NAME.questions.toml`, competency questions. `checks`:
    `NAME-*-violation.rq`, SPARQL that must find nothing.
    """

    turtle: Path
    shapes: Path | None
    examples: Path | None
    questions: Path | None
    checks: tuple[Path, ...]

    @property
    def shaping(self) -> dict[str, Path]:
        """The files that shape induction, by name; the others only judge its result."""
        files = (self.turtle, self.shapes, self.examples)
        return {path.name: path for path in files if path is not None}


def locate_ontology(ontology: str) -> OntologyFiles | None:
    """The files of an ontology, by a seed's name or by the path of its Turtle file, or None."""
    turtle = locate_declarations("ontology").get(ontology, Path(ontology))
    if not turtle.is_file():
        return None

    def find(ending: str) -> Path | None:
        path = turtle.with_name(turtle.stem + ending)
        return path if path.is_file() else None

    return OntologyFiles(
        turtle,
        find(".shapes.ttl"),
        find(".examples.jsonl"),
        find(".questions.toml"),
        tuple(sorted(turtle.parent.glob(f"{glob.escape(turtle.stem)}-*-violation.rq"))),
    )


def identify_ontology(ontology: str) -> Identity:
    """The files of a seed ontology that shape induction, by name or by path.

    Raises:
        SettingsError: no such ontology; lists the names there are.
    """
    files = locate_ontology(ontology)
    if files is None:
        raise SettingsError(
            f"induce.ontology {ontology!r} is neither a file nor one of "
            f"{', '.join(locate_declarations('ontology'))}"
        )
    return hash_files(files.turtle.stem, files.shaping)
