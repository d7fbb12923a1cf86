"""A snapshot's folder described for whoever receives it: its README and its views."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from jinja2 import Environment, StrictUndefined

from kpyramid.snapshot.graph import ATTRIBUTION
from kpyramid.snapshot.store import VECTORS
from kpyramid.storage.contracts import load_contracts
from kpyramid.storage.declarations import locate_declarations

_LONGEST = 200
"""Characters of a licence or a file's name in the README."""
_README = Path(__file__).parent / "readme.jinja"


def describe_folder(manifest: Mapping[str, Any], documents: Path) -> dict[str, bytes]:
    """The files of a snapshot that say what is in it, by name.

    `documents` is the file of that table. Nothing in them depends on the run; the release that
    made the snapshot does.
    """
    views = [
        *(
            f"CREATE OR REPLACE VIEW {n} AS FROM 'tables/{n}{'/*' * (n == VECTORS)}.parquet';"
            for n in load_contracts()
        ),
        *list_views(),
    ]
    first = (
        "-- The tables as views, with what their columns mean, and views over them. For DuckDB,\n"
        "-- from within this folder, or after SET file_search_path = '/path/to/this/folder'.\n"
    )
    return {
        "README.md": _write_readme(manifest, documents).encode(),
        "views.sql": (first + "\n".join(views) + "\n").encode(),
    }


def list_views(without: Collection[str] = (), *, kind: str = "VIEW") -> Iterator[str]:
    """SQL that says what tables and columns mean, then the views over them.

    `without` are tables that are not there; `kind` is what the others are in the database.
    """
    for name, contract in load_contracts().items():
        if name in without:
            continue
        yield f"COMMENT ON {kind} {name} IS {_quote(contract.about)};"
        for column in contract.columns:
            unit = f" Unit: {column.unit}." if column.unit else ""
            yield f'COMMENT ON COLUMN {name}."{column.name}" IS {_quote(column.about + unit)};'
    for path in locate_declarations("views").values():
        text = path.read_text("utf-8").strip()
        if not any(re.search(rf"\b(FROM|JOIN) {name}\b", text) for name in without):
            yield text


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _write_readme(manifest: Mapping[str, Any], documents: Path) -> str:
    table = pq.read_table(documents, columns=["source", "licence", "access", "metadata"])
    files = Counter(_plain(source.partition("#")[0]) for source in table["source"].to_pylist())
    licences = Counter(_plain(licence or "none stated") for licence in table["licence"].to_pylist())
    told = [any(k in ATTRIBUTION for k, _ in pairs) for pairs in table["metadata"].to_pylist()]
    template = Environment(undefined=StrictUndefined, autoescape=False).from_string(  # noqa: S701
        _README.read_text("utf-8")
    )
    return template.render(
        {k: manifest[k] for k in ("corpus", "software", "format", "resources")},
        rows={name: entry["rows"] for name, entry in manifest["tables"].items()},
        files=sorted(files.items()),
        licences=sorted(licences.items(), key=lambda pair: (-pair[1], pair[0])),
        attribution=", ".join(f"`{name}`" for name in ATTRIBUTION),
        attributed=sum(told),
        labelled=sum(map(bool, table["access"].to_pylist())),
        tables=[(name, contract.about) for name, contract in load_contracts().items()],
        count=lambda number, noun: f"{number:,} {noun}{'' if number == 1 else 's'}",
    )


def _plain(text: str) -> str:
    """What a document says of itself, as one line that Markdown reads as words."""
    return " ".join(re.sub(r"[`|<>\[\]]", " ", text).split())[:_LONGEST]
