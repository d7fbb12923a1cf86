"""Every individual leads to its sentence in plain RDF, read here with rdflib and with SPARQL."""

import sys
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
import rdflib
from rdflib import RDF
from rdflib.namespace import DCTERMS, PROV

from kpyramid.ontology.importing.files import read_outside
from kpyramid.ontology.sandbox import run_limited
from kpyramid.ontology.store import (
    InstanceStatement,
    OntologyStore,
    Quotation,
    entity_iri,
    write_instances,
    write_provenance,
)
from kpyramid.ontology.validation.shapes import judge_shapes
from kpyramid.storage.verification import check_bytes
from tests.corpora import TEXTS, copy_shared_build, read_snapshot

E = "https://example.org/o#"
FIRST = Quotation("document-1", 120, 144, 'Ada was "born" in Bergen', "a/b c.txt", "Ada")
SECOND = Quotation("doc/2 ü", 0, 10, "Ada's city\n", "https://example.org/page?x=1")
ROW = InstanceStatement(
    subject_iri=entity_iri("ada"),
    property_iri=E + "bornIn",
    class_iri=E + "Person",
    object_iri=entity_iri("bergen"),
    literal=None,
    datatype=None,
    subject_label="Ada",
    object_label="Bergen",
    places=(FIRST, SECOND),
    instance_id="instance-1",
)
MEMBER = replace(
    ROW, property_iri=None, object_iri=None, object_label=None, places=(FIRST,), instance_id="i-2"
)


def read(text: str) -> rdflib.Graph:
    return rdflib.Graph().parse(data=text, format="nt")


def test_a_statement_is_derived_from_every_sentence_that_states_it() -> None:
    rows = [ROW, MEMBER]
    assert FIRST.iri in write_provenance(rows)
    assert f'"{FIRST.text[:4]}' not in write_provenance(rows)  # instances.nt has it already
    graph = read(write_instances(rows) + write_provenance(rows))
    statement = rdflib.URIRef(entity_iri("instance-1"))
    assert graph.value(statement, RDF.type) == RDF.Statement
    assert str(graph.value(statement, RDF.subject)) == entity_iri("ada")
    assert str(graph.value(statement, RDF.predicate)) == E + "bornIn"
    assert str(graph.value(statement, RDF.object)) == entity_iri("bergen")
    places = set(graph.objects(statement, PROV.wasDerivedFrom))
    assert {str(graph.value(place, PROV.value)) for place in places} == {FIRST.text, SECOND.text}
    document = rdflib.URIRef(entity_iri("doc/2 ü"))
    assert graph.value(document, DCTERMS.source) == rdflib.URIRef(SECOND.source)
    member = rdflib.URIRef(entity_iri("i-2"))
    assert graph.value(member, RDF.predicate) == RDF.type
    assert str(graph.value(member, RDF.object)) == E + "Person"


def test_a_source_that_is_no_address_stays_text() -> None:
    odd = replace(ROW, places=(replace(FIRST, source="http://[no address"),))
    assert '"http://[no address"' in write_instances([odd])


def test_every_individual_shows_words_that_stand_in_its_document(tmp_path: Path) -> None:
    warehouse, snapshot = copy_shared_build(tmp_path / "w")
    folder = warehouse.snapshots / snapshot
    turtle = (folder / "ontology/schema.ttl").read_text("utf-8")
    instances = (folder / "ontology/instances.nt").read_text("utf-8")
    with OntologyStore(turtle, instances) as store:
        query = (
            f"SELECT ?i ?place ?words ?source {{ ?i a ?class ; <{PROV.wasDerivedFrom}> ?place . "
            f"?place <{PROV.value}> ?words ; <{PROV.wasQuotedFrom}> ?d . "
            f"?d <{DCTERMS.source}> ?source FILTER(STRSTARTS(STR(?i), '{entity_iri('')}')) }}"
        )
        shown = store.select(query)
        individuals = store.select(
            f"SELECT DISTINCT ?i {{ ?i a ?c FILTER(STRSTARTS(STR(?i), '{entity_iri('')}')) }}"
        )
    assert {row["i"] for row in individuals} == {row["i"] for row in shown} != set()
    for row in shown:
        start, end = (int(number) for number in row["place"].rpartition("#char=")[2].split(","))
        assert TEXTS[row["source"]][start:end] == row["words"]


def test_provenance_joins_with_the_table_and_is_covered_by_a_hash(tmp_path: Path) -> None:
    warehouse, snapshot = copy_shared_build(tmp_path / "w")
    folder = warehouse.snapshots / snapshot
    path = folder / "ontology/provenance.nt"
    graph = read(path.read_text("utf-8"))
    named = {unquote(str(s).rpartition("/")[2]) for s in graph.subjects(RDF.type, RDF.Statement)}
    rows = read_snapshot(warehouse, snapshot)["instances"]["instance_id"].to_pylist()
    assert named == {*rows}
    path.write_bytes(path.read_bytes()[:-1])
    assert any(problem.startswith("ontology/provenance.nt") for problem in check_bytes(folder))


def test_no_child_process_sees_the_keys_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for the interpreter writes down its environment and starts the real one."""
    seen = tmp_path / "seen"
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nenv >> "{seen}"\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setenv("OPENAI_API_KEY", "a secret")
    outside = tmp_path / "o.ttl"
    outside.write_text("<urn:a> <urn:b> <urn:c> .")

    def query() -> None:
        with OntologyStore("", "") as store:
            assert store.select("ASK {}") == [{"ask": "true"}]

    for start in (
        query,
        lambda: read_outside(outside),
        lambda: judge_shapes("", "", {}, seconds=60),
        lambda: run_limited([str(python), "-c", ""], seconds=60),
    ):
        start()
        environment = seen.read_text()
        assert "PATH=" in environment
        assert "a secret" not in environment
        seen.unlink()
