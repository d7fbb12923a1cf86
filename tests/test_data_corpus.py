"""Files of RDF in a corpus become facts; what is none is a counted reject."""

import socket

import pytest

from kpyramid.documents.formats import Refusal, read_records
from kpyramid.extraction.facts.tables import read_tables
from kpyramid.extraction.types import Titled
from kpyramid.ontology.importing.data import read_data
from kpyramid.settings import IngestSettings
from tests.rows import each_row
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
    circle = "".join(f"_:b{i} <http://e/next> _:b{(i + 1) % 10**5} .\n" for i in range(10**5))
    facts, refused = read("a.nt", circle.encode())
    assert not facts
    assert "(100,000 statements)" in refused["blank_node"]
    records = [
        *read_records(
            "a.NT",
            b"<http://a/b> <http://p/of> <http://a/c> .\n" * 2000 + b"-",
            IngestSettings(),
            parse_data=read_data,
        )
    ]
    assert [r.source for r in records] == [
        "a.NT#statements1-1000",
        "a.NT#statements1001-2000",
        "a.NT#bad_rdf",
    ]
