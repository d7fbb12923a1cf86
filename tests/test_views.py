"""Every view runs on tables of our contracts and says what its first line promises."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from kpyramid.storage.contracts import load_contracts
from kpyramid.storage.declarations import locate_declarations
from tests.rows import read_rows

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

TEXT = "Ωmega 🚢 sailed. The Vasa sank in 1628 near Stockholm."
VASA = (TEXT.index("The Vasa"), len(TEXT))
NAMESPACE = "https://example.org/o#"

TABLES = (
    *("documents", "chunks", "claims", "raw_triples", "entities", "relations", "triples"),
    *("condensed", "instances", "rejects"),
)


@pytest.fixture
def database() -> Iterator["DuckDBPyConnection"]:
    # Imported at the top it would report leaked types after a run with hypothesis tests.
    import duckdb

    with duckdb.connect() as connection:
        for name in TABLES:
            rows = read_rows(f"views.{name}")
            connection.register(name, load_contracts()[name].build(rows))
        for path in locate_declarations("views").values():
            connection.execute(path.read_text("utf-8"))
        yield connection


def fetch(database: "DuckDBPyConnection", query: str) -> list[tuple[object, ...]]:
    return database.execute(query).fetchall()


def test_facts_have_names_and_count_their_triples(database: "DuckDBPyConnection") -> None:
    rows = fetch(database, "SELECT * EXCLUDE (condensed_id, relation_id) FROM facts")
    standard = "Vasa", "place", "Stockholm", False
    said = "Vasa", "sank near", "Stockholm", *standard, False, "fact", None, None
    assert rows == [(*said, {"time": "1628"}, 0.75, None, f"{NAMESPACE}place", 2)]


def test_standard_relations_have_wordings_and_facts(database: "DuckDBPyConnection") -> None:
    rows = fetch(database, "FROM standard_relations")
    assert rows == [("place", 1, 1, 1, ["sank near"])]


def test_derivations_lead_from_triples_to_condensed_facts(database: "DuckDBPyConnection") -> None:
    rows = fetch(database, "FROM derivations")
    assert rows == [("triple-1", "condensed-1", "broader"), ("triple-2", "condensed-1", "kept")]


def test_evidence_quotes_the_document_by_code_points(database: "DuckDBPyConnection") -> None:
    rows = fetch(database, 'SELECT triple_id, tail, source, "start", "end", text FROM evidence')
    quote = TEXT[slice(*VASA)]
    assert rows == [
        ("triple-1", "1628", "vasa.txt", *VASA, quote),
        ("triple-2", "Stockholm", "vasa.txt", *VASA, quote),
    ]


def test_rejects_are_counted_by_reason(database: "DuckDBPyConnection") -> None:
    rows = fetch(database, "FROM rejects_by_reason")
    assert rows == [
        ("extract", "no_fact", 2, 1, "chunk-2", "first"),
        ("extract", "empty", 1, 1, "chunk-2", "third"),
    ]


def test_individuals_have_local_names(database: "DuckDBPyConnection") -> None:
    rows = fetch(database, "SELECT subject, class, property, value FROM individuals")
    assert rows == [("Vasa", "Ship", None, None), ("Vasa", "Ship", "place", "Stockholm")]


@pytest.mark.parametrize("name", locate_declarations("views"))
def test_view_is_named_as_its_file_and_begins_with_a_sentence(name: str) -> None:
    first, second, *_ = locate_declarations("views")[name].read_text("utf-8").splitlines()
    assert first.startswith("-- ")
    assert first.endswith(".")
    assert second == f"CREATE OR REPLACE VIEW {name} AS"
