"""Files of RDF in a corpus become facts; what is none is a counted reject."""

import socket
from pathlib import Path

import pytest

from kpyramid.documents.formats import Refusal, read_records
from kpyramid.extraction.facts.tables import read_tables
from kpyramid.extraction.types import Titled
from kpyramid.ontology.importing.data import read_data
from kpyramid.settings import IngestSettings
from kpyramid.storage.layout import Warehouse
from tests.commands import run
from tests.corpora import build_corpus, make_settings, read_snapshot
from tests.rows import each_row, read_rows, read_turtle
from tests.test_tables import list_facts


def read(name: str, data: bytes) -> tuple[list[str], dict[str, str]]:
    """The facts, each with its document where that is a part of the file, and the rejects."""
    facts: list[str] = []
    refused: dict[str, str] = {}
    for record in read_records(name, data, IngestSettings(), parse_data=read_data):
        if isinstance(record, Refusal):
            refused[record.reason] = record.detail
            continue
        found = read_tables(Titled(record.text, record.title or "", record.blocks))
        facts += list_facts(found)
        lines = record.text.split("\n")
        for claim in found.claims:  # the evidence lies on the statement's line
            line = record.text.count("\n", 0, claim.spans[0].start)
            assert all(record.text[s.start : s.end] in lines[line] for s in claim.spans)
    return facts, refused


@each_row("name, text, facts, reasons")
def test_statements_are_facts_or_counted_rejects(
    name: str,
    text: str,
    facts: tuple[str, ...],
    reasons: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(socket, "socket")  # nothing is fetched
    stated, refused = read(name, text.encode())
    assert stated == [*facts]
    assert refused.keys() == reasons.keys()
    assert all(said in refused[reason] for reason, said in reasons.items())


def test_files_of_any_size_and_bytes_have_an_outcome() -> None:
    assert read("a.nt", b"x" * 50_000_001)[1].keys() == {"too_large"}
    assert read("a.nt", '<http://a/b> <http://p/knows> "é" .'.encode("latin-1"))[1].keys() == {
        "undecodable"
    }
    assert read("a.ttl", b"<http://a> <http://b> " + b"<<( " * 10**6)[1].keys() == {"bad_statement"}
    assert read("a.ttl", b'<http://a> <http://b> "%s" .' % (b"x" * 2**24))[1].keys() == {"bad_rdf"}
    prefix = b"@prefix p: <http://%s/> .\n" % (b"a" * 10**6)
    assert read("a.ttl", prefix + b"p:a p:b p:c .\n" * 10**4)[1].keys() == {"too_large"}
    circle = "".join(f"_:b{i} <http://e/next> _:b{(i + 1) % 10**5} .\n" for i in range(10**5))
    facts, refused = read("a.nt", circle.encode())
    assert not facts
    assert "(100,000 statements)" in refused["blank_node"]
    lines = b"<http://a/b> <http://p/of> <http://a/c> .\n" * 2000 + b"-"
    made = read_records("a.NT", lines, IngestSettings(), parse_data=read_data)
    places = ["statements1-1000", "statements1001-2000", "bad_rdf"]
    assert [record.source.partition("#")[2] for record in made] == places


@pytest.mark.usefixtures("quick_models")
def test_individuals_of_an_ontology_are_facts_with_its_file_as_source(tmp_path: Path) -> None:
    """Of labels that are nouns the first fact counts; the copy itself has no individuals."""
    own, corpus, warehouse = tmp_path / "plant.ttl", tmp_path / "corpus", Warehouse(tmp_path / "w")
    (tmp_path / "in.ttl").write_text(read_turtle("plant"))
    corpus.mkdir()
    done = run("ontology", "import", str(tmp_path / "in.ttl"), "--output", str(own))
    assert "3 individuals are in" in done.stdout
    assert "Alpha" not in own.read_text()
    own.with_suffix(".individuals.nq").rename(corpus / "plant.nq")
    settings = make_settings(induce={"ontology": str(own)})
    tables = read_snapshot(warehouse, build_corpus(corpus, warehouse, settings).snapshot)
    names = {row["entity_id"]: row["name"] for row in tables["entities"].to_pylist()}
    values = {
        (names[row["subject_id"]], row["property_iri"], row["literal"] or names[row["object_id"]])
        for row in tables["instances"].to_pylist()
        if row["property_iri"]
    }
    assert values == {*read_rows("data_corpus.values_of_individuals")}
    (source,) = tables["documents"]["source"].to_pylist()
    assert source == "plant.nq#http://ex.org/plant#statements1-8"


@pytest.mark.usefixtures("quick_models")
def test_an_ontology_without_a_class_has_values_and_a_build_says_why_there_are_none(
    tmp_path: Path,
) -> None:
    """A date is none that numbers what another cell of its row names."""
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.md").write_text(
        "| Service | Owner | Launch date |\n|---|---|---|\n"
        "| Corvid | Platform Team | 2020-01-05 |\n| Magpie | Finance Team | 2021-05-03 |\n"
    )
    head = read_turtle("ontology_import_head") + "<https://example.org/o> a owl:Ontology .\n"
    made = ":p a owl:DatatypeProperty ; rdfs:label '{}'@en ; rdfs:domain {} ; rdfs:range xsd:{} .\n"
    kind = ":{} a owl:Class ; rdfs:label '{}'@en .\n".format
    for name, turtle, said in (
        ("one", made.format("launch date", "owl:Thing", "date"), "2 values of the ontology"),
        (
            "two",
            kind("Service", "service") + made.format("owner", ":Service", "string"),
            "4 values",
        ),
        ("three", kind("Ship", "ship") + made.format("owner", ":Ship", "string"), "Corvid is)\n"),
    ):
        (tmp_path / f"{name}.ttl").write_text(head + turtle)
        own = ("--ontology", str(tmp_path / f"{name}.ttl"), "--warehouse", str(tmp_path / name))
        assert said in run("build", str(tmp_path / "corpus"), *own).stdout
