"""Induction in whole builds: what examples teach, what is cached, what another ontology changes."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from kpyramid.ontology.literals import parse_literal
from kpyramid.query import open_snapshot
from kpyramid.settings import Settings
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.refs import list_entries, resolve_ref
from kpyramid.storage.runs import list_runs
from kpyramid.storage.verification import check_tables
from tests.corpora import (
    SETTINGS,
    build_corpus,
    count_recomputed,
    list_marks,
    make_settings,
    read_snapshot,
    use_quick_models,
    write_corpus,
)
from tests.rows import read_bodies, read_rows
from tests.test_induce import BASE, SHAPES, TURTLE

COUNT = """
:students a owl:DatatypeProperty ; rdfs:label "enrolment"@en ;
    rdfs:domain :Organisation ; rdfs:range xsd:nonNegativeInteger .
"""
EXAMPLES = read_rows("induce_builds.examples")
TEXTS: Mapping[str, str] = {
    "v.txt": "Quill College (Norway) has 720 students.",
    **read_bodies("induce_builds.texts"),
}
ORDER = ("ingest", "chunk", "extract", "resolve", "embed", "induce", "complete", "condense")


pytestmark = pytest.mark.usefixtures("quick_models")


def write_ontology(folder: Path, *, taught: bool = True) -> Settings:
    """Settings with the small ontology, its shapes, and if `taught` its examples."""
    folder.mkdir(exist_ok=True)
    (folder / "small.ttl").write_text(TURTLE + COUNT)
    (folder / "small.shapes.ttl").write_text(SHAPES)
    if taught:
        lines = (
            json.dumps({"text": text, "triples": [{"sub": s, "rel": r, "obj": o}]})
            for text, s, r, o in EXAMPLES
        )
        (folder / "small.examples.jsonl").write_text("\n".join(lines))
    chosen = make_settings(induce={"ontology": str(folder / "small.ttl")}).induce
    return replace(SETTINGS, induce=chosen)


def list_values(tables: Mapping[str, pa.Table], local: str) -> dict[str, str]:
    """The value of a property by the name of its subject."""
    name = {r["entity_id"]: r["name"] for r in tables["entities"].to_pylist()}
    return {
        name[r["subject_id"]]: name[r["object_id"]] if r["object_id"] else r["literal"]
        for r in tables["instances"].to_pylist()
        if r["property_iri"] == BASE + local
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus, an ontology with examples, and a warehouse built without and then with them."""
    folder = tmp_path_factory.mktemp("induce")
    with pytest.MonkeyPatch.context() as patch:
        use_quick_models(patch)
        corpus, warehouse = write_corpus(folder / "corpus", TEXTS), Warehouse(folder / "w")
        build_corpus(corpus, warehouse, write_ontology(folder / "plain", taught=False))
        build_corpus(corpus, warehouse, write_ontology(folder / "o"))
    return folder


def test_examples_teach_to_read_what_no_fact_says(place: Path) -> None:
    warehouse = Warehouse(place / "w")
    plain, taught = (entry.snapshot for entry in list_entries(warehouse, "main"))
    assert list_values(read_snapshot(warehouse, plain), "students") == {}

    tables = read_snapshot(warehouse, taught)
    found = list_values(tables, "students")
    assert found == {
        "Harlow University": "5300",
        "Vell University": "720",
        "Quill College": "720",
    }
    assert list_values(tables, "birthPlace") == {"Anna Holm": "Leeds"}
    assert check_tables(warehouse.snapshots / taught) == []
    snapshot = open_snapshot("main", warehouse.root)
    read = [r for r in tables["instances"].to_pylist() if r["property_iri"] == BASE + "students"]
    for row in read:
        (shown,) = snapshot.evidence(row["instance_id"])
        assert snapshot.names[row["subject_id"]] in shown.text
        assert row["literal"] in shown.text.replace(",", "")
    (run,) = (r for r in list_runs(warehouse) if r["snapshot"] == taught)
    report = json.loads((warehouse.runs / str(run["run"]) / "report.json").read_bytes())
    counts = report["recomputed"]
    assert all(counts[stage] == 0 for stage in ORDER[: ORDER.index("induce")])
    assert counts["induce"] > 0
    again = build_corpus(place / "corpus", warehouse, write_ontology(place / "o"))
    assert again.snapshot == taught
    assert sum(count_recomputed(again).values()) == 0


@pytest.mark.slow
def test_workers_and_shards_change_nothing(place: Path, tmp_path: Path) -> None:
    settings = write_ontology(place / "o")
    two = build_corpus(place / "corpus", Warehouse(tmp_path), settings, workers=2)
    assert two.snapshot == resolve_ref(Warehouse(place / "w"), "main")


def test_bad_values_are_rejects_and_the_snapshot_has_none(tmp_path: Path) -> None:
    texts = {
        "a.txt": "Anna Holm was born in 1215. Anna Holm was born in Leeds.",
        "b.txt": "Anna Holm studied at Ph and Taiwan). Leeds is led by Anna Holm.",
        "c.txt": "Bergen has code Z. Bergen is led by A.",
    }
    corpus, warehouse = write_corpus(tmp_path / "corpus", texts), Warehouse(tmp_path / "w")

    outcome = build_corpus(corpus, warehouse, write_ontology(tmp_path / "o", taught=False))

    tables = read_snapshot(warehouse, outcome.snapshot)
    name = {r["entity_id"]: r["name"] for r in tables["entities"].to_pylist()}
    string = "http://www.w3.org/2001/XMLSchema#string"
    rows = tables["instances"].to_pylist()
    assert list_values(tables, "mayor") == {"Leeds": "Anna Holm"}
    for row in rows:
        assert parse_literal(name[row["subject_id"]], string)
        assert row["object_id"] is None or parse_literal(name[row["object_id"]], string)
        assert row["literal"] is None or parse_literal(row["literal"], row["datatype"])
    assert list_marks(outcome)["induce"].rejects.get("shape") == 1
    assert not list_values(tables, "studiedAt") and not list_values(tables, "code")


def test_completion_works_on_with_individuals_that_only_a_reader_found(place: Path) -> None:
    """Their entities, rows and vectors are there for the stages after."""
    warehouse = Warehouse(place / "w")
    tables = read_snapshot(warehouse, resolve_ref(warehouse, "main"))
    stated = {r["subject_id"] for r in tables["instances"].to_pylist()}
    assert stated <= set(tables["entities"]["entity_id"].to_pylist())
    owners = {
        r["owner_id"] for r in tables["vectors"].to_pylist() if r["owner_table"] == "instances"
    }
    valued = {r["instance_id"] for r in tables["instances"].to_pylist() if r["property_iri"]}
    assert owners == valued
