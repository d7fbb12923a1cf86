"""What a reader is shown of a snapshot: completion, condensation, both layers in one space."""

from dataclasses import dataclass
from pathlib import Path

from kpyramid.errors import IntegrityError
from kpyramid.keys import JsonValue
from kpyramid.ontology.schema import parse_schema
from kpyramid.pipeline.report.figures import describe_figure, draw_figure, read_figure
from kpyramid.pipeline.report.layers import describe_completion, describe_condensation
from kpyramid.pipeline.report.tables import SnapshotTables, Words


@dataclass(frozen=True, slots=True)
class Account:
    """Completion and condensation as plain values, and the figure as SVG with its words."""

    completion: dict[str, JsonValue]
    condensation: dict[str, JsonValue]
    figure: str | None
    figure_words: str


def describe_snapshot(folder: Path) -> Account:
    """The account of the snapshot in a folder, from some columns of its tables.

    Raises:
        IntegrityError: a table or the schema is missing or damaged.
    """
    path = folder / "ontology" / "schema.ttl"
    try:
        turtle = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise IntegrityError(f"schema {path} cannot be read: {e}") from e
    tables, words = SnapshotTables(folder), Words(parse_schema(turtle, source=str(path)))
    figure = read_figure(tables)
    return Account(
        describe_completion(tables, words),
        describe_condensation(tables, words),
        draw_figure(figure) if figure else None,
        describe_figure(figure) if figure else "",
    )
