"""Every view runs on tables of our contracts and says what its first line promises."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

from kpyramid.storage.contracts import load_contracts
from kpyramid.storage.declarations import locate_declarations

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

TEXT = "Ωmega 🚢 sailed. The Vasa sank in 1628 near Stockholm."
VASA = (TEXT.index("The Vasa"), len(TEXT))
NAMESPACE = "https://example.org/o#"

RAW: dict[str, object] = {
    "claim_id": "claim-1",
    "chunk_id": "chunk-1",
    "head": "The Vasa",
    "head_span": None,
    "relation_span": None,
    "tail_span": None,
    "negated": False,
    "modality": None,
    "attribution": None,
    "qualifiers": [],
    "confidence": 0.75,
    "producer": "rules",
}
INSTANCE: dict[str, object] = {
    "class_iri": f"{NAMESPACE}Ship",
    "subject_id": "entity-vasa",
    "datatype": None,
    "confidence": 0.5,
    "chunk_id": "chunk-1",
    "start": VASA[0],
    "end": VASA[1],
    "subject_span": None,
    "object_span": None,
    "places": [{"chunk_id": "chunk-1", "start": VASA[0], "end": VASA[1]}],
    "triple_ids": [],
    "producer": "rules",
}
REJECT: dict[str, object] = {
    "stage": "extract",
    "row_key": "chunk-2",
    "document_id": "doc-1",
    "chunk_id": None,
}

ROWS: Mapping[str, list[dict[str, object]]] = {
    "documents": [
        {
            "document_id": "doc-1",
            "source": "vasa.txt",
            "title": None,
            "text": TEXT,
            "language": "en",
            "metadata": [],
            "access": [],
            "licence": None,
            "sha256": "0",
        }
    ],
    "chunks": [
        {
            "chunk_id": "chunk-1",
            "document_id": "doc-1",
            "start": 0,
            "end": len(TEXT),
            "text": TEXT,
            "tokens": 13,
        }
    ],
    "claims": [
        {
            "claim_id": "claim-1",
            "chunk_id": "chunk-1",
            "text": "The Vasa sank in 1628.",
            "spans": [{"start": VASA[0], "end": VASA[1]}],
            "predicate": None,
            "arguments": [],
            "producer": "rules",
        }
    ],
    "raw_triples": [
        {**RAW, "raw_triple_id": "raw-1", "relation": "sank in", "tail": "1628"},
        {**RAW, "raw_triple_id": "raw-2", "relation": "sank near", "tail": "Stockholm"},
    ],
    "entities": [
        {"entity_id": "entity-vasa", "name": "Vasa", "type": "PRODUCT"},
        {"entity_id": "entity-stockholm", "name": "Stockholm", "type": "GPE"},
    ],
    "relations": [
        {"relation_id": "relation-in", "name": "sank in", "support": 1},
        {"relation_id": "relation-near", "name": "sank near", "support": 1},
    ],
    "triples": [
        {"triple_id": "triple-1", "relation_id": "relation-in", "tail_id": None, "literal": "1628"},
        {
            "triple_id": "triple-2",
            "relation_id": "relation-near",
            "tail_id": "entity-stockholm",
            "literal": None,
        },
    ],
    "condensed": [
        {
            "condensed_id": "condensed-1",
            "head_id": "entity-vasa",
            "relation_id": "relation-near",
            "tail_id": "entity-stockholm",
            "literal": None,
            "qualifiers": [("time", "1628")],
            "standard_relation": "place",
            "standard_turned": False,
            "standard_head_id": "entity-vasa",
            "standard_tail_id": "entity-stockholm",
            "more_detailed_id": None,
            "anchor": f"{NAMESPACE}place",
            "anchor_class": None,
            "derived_from": ["triple-1", "triple-2"],
            "how": ["broader", "kept"],
        }
    ],
    "instances": [
        {
            **INSTANCE,
            "instance_id": "instance-1",
            "property_iri": None,
            "object_id": None,
            "literal": None,
        },
        {
            **INSTANCE,
            "instance_id": "instance-2",
            "property_iri": "https://example.org/place",
            "object_id": "entity-stockholm",
            "literal": None,
        },
    ],
    "rejects": [
        {**REJECT, "reject_id": "r-2", "reason": "no_fact", "detail": "second"},
        {**REJECT, "reject_id": "r-1", "reason": "no_fact", "detail": "first"},
        {**REJECT, "reject_id": "r-3", "reason": "empty", "detail": "third"},
    ],
}
ROWS["entities"][0] |= {"surface_forms": ["Vasa", "The Vasa"], "mentions": []}
ROWS["entities"][1] |= {"surface_forms": ["Stockholm"], "mentions": []}
for _relation in ROWS["relations"]:
    _relation |= {"inverse_of": None, "surface_forms": [_relation["name"]]}
for _triple, _raw in zip(ROWS["triples"], ("raw-1", "raw-2"), strict=True):
    _triple |= {"head_id": "entity-vasa", "confidence": 0.75, "raw_triple_ids": [_raw]}
    _triple["qualifiers"] = [("time", "1628")]


@pytest.fixture
def database() -> Iterator["DuckDBPyConnection"]:
    # Imported at the top it would report leaked types after a run with hypothesis tests.
    import duckdb

    with duckdb.connect() as connection:
        for name, rows in ROWS.items():
            connection.register(name, load_contracts()[name].build(rows))
        for path in locate_declarations("views").values():
            connection.execute(path.read_text("utf-8"))
        yield connection


def fetch(database: "DuckDBPyConnection", query: str) -> list[tuple[object, ...]]:
    return database.execute(query).fetchall()


def test_facts_have_names_and_count_their_triples(database: "DuckDBPyConnection") -> None:
    rows = fetch(database, "SELECT * EXCLUDE condensed_id FROM facts")
    standard = "Vasa", "place", "Stockholm", False
    said = "Vasa", "sank near", "Stockholm", *standard, {"time": "1628"}
    assert rows == [(*said, 0.75, None, f"{NAMESPACE}place", 2)]


def test_standard_relations_have_their_wordings_and_distinct_facts(
    database: "DuckDBPyConnection",
) -> None:
    rows = fetch(database, "FROM standard_relations")
    assert rows == [("place", 1, 1, 1, ["sank near"])]


def test_derivations_lead_from_each_triple_to_its_condensed_fact(
    database: "DuckDBPyConnection",
) -> None:
    rows = fetch(database, "FROM derivations")
    assert rows == [
        ("triple-1", "condensed-1", "broader"),
        ("triple-2", "condensed-1", "kept"),
    ]


def test_evidence_quotes_the_document_by_code_points(
    database: "DuckDBPyConnection",
) -> None:
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
