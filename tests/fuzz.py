"""Fuzz targets: readers and gates that get bytes from outside, each with what must hold for any.

`python tests/fuzz.py TARGET [options of libFuzzer]` runs one under atheris, guided by coverage,
until it is stopped or an input fails; `--names` prints the targets. What fails is put into
`tests/fuzzed/TARGET/`, and `test_fuzz.py` runs it from then on.
"""

import io
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from kpyramid.documents.formats import Record, read_records
from kpyramid.documents.labels import RefusedError, cut_front_matter, read_labels
from kpyramid.documents.sentences import split_text
from kpyramid.errors import PyramidError
from kpyramid.extraction.cascade.tasks import read_claims, read_entities, read_triples
from kpyramid.extraction.cascade.windows import read_window
from kpyramid.keys import canonical_json, hash_value
from kpyramid.llm.task import ReplyError, read_response
from kpyramid.ontology.importing.conversion import import_ontology
from kpyramid.ontology.importing.files import OutsideText
from kpyramid.ontology.sparql import check_query
from kpyramid.ontology.turtle import parse_turtle, write_turtle
from kpyramid.query.toolset import TOOLS, read_call
from kpyramid.settings import ChunkSettings, IngestSettings
from kpyramid.storage.contracts import decode_table, encode_table
from kpyramid.storage.layout import open_warehouse
from kpyramid.storage.refs import encode_entry, name_entry, read_entry

_QUOTED = re.compile(
    r"""\"{3}(?:\\.|.)*?\"{3}|'{3}(?:\\.|.)*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
    r"""|<[^<>"{}|^`\\\s]*>|\#[^\n]*""",
    re.S,
)
_DOORS = re.compile(r"(?<![\w:?$@.-])(?:SERVICE|FROM|LOAD)(?![\w:.-])", re.I)
"""Words that reach beyond the data, outside strings, addresses and comments."""
FOLDER = Path(__file__).parent / "fuzzed"
ENDINGS = (
    *(".txt", ".md", ".html", ".csv", ".tsv", ".json", ".jsonl", ".ipynb", ".eml", ".mbox"),
    *(".xml", ".adoc", ".tex", ".wiki", ".rst", ".parquet"),
)
"""Formats that are read in this process; a first byte chooses one."""


def read_file(data: bytes) -> None:
    """Any file is records and counted refusals; each chunk is where it says."""
    ending = ENDINGS[data[0] % len(ENDINGS)] if data else ".txt"
    for record in read_records(f"file{ending}", data[1:], IngestSettings()):
        if isinstance(record, Record):
            record.text.encode()
            for block in record.blocks:
                assert 0 <= block.start <= block.end <= len(record.text), block
            for piece in split_text(record.text, ChunkSettings()):
                assert record.text[piece.start : piece.end].strip()
        else:
            assert record.reason and record.detail


def read_head(data: bytes) -> None:
    """A head that names labels is read or refused, and what is left is the text's own end."""
    text = data.decode(errors="replace")
    with suppress(RefusedError):
        rest, fields = cut_front_matter(text)
        assert text.endswith(rest)
        read_labels(fields)


def read_reply(data: bytes) -> None:
    """A model's reply is read or refused as one."""
    text = data.decode(errors="replace")
    for read in (read_window, read_claims, read_entities, read_triples):
        with suppress(ReplyError):
            read(text)
    with suppress(ValueError):
        loaded = json.loads(text)
        if isinstance(loaded, dict):
            with suppress(ReplyError):
                read_response(loaded)


def gate_query(data: bytes) -> None:
    """Only SELECT and ASK without a way out pass."""
    query = data.decode(errors="replace")
    with suppress(PyramidError):
        assert not _DOORS.search(_QUOTED.sub(" ", check_query(query)))


def read_arguments(data: bytes) -> None:
    """A tool's arguments are of its schema or refused."""
    names = [*TOOLS]
    with suppress(PyramidError):
        read_call(names[data[0] % len(names)] if data else names[0], data[1:])


def read_ontology(data: bytes) -> None:
    """Turtle from outside becomes a schema or a refusal; what is written reads back the same."""
    with suppress(PyramidError):
        triples = parse_turtle(data.decode(errors="replace"), source="fuzzed.ttl")
        written = write_turtle(triples, {})
        assert {*map(str, parse_turtle(written, source="written"))} == {*map(str, triples)}
        import_ontology(OutsideText(triples, "Turtle"), name="fuzzed", source="fuzzed.ttl")


def read_log(data: bytes) -> None:
    """An entry of a ref's log is what was written, or damaged."""
    with tempfile.TemporaryDirectory() as folder:
        warehouse = open_warehouse(Path(folder))
        place = Path(folder) / name_entry("main", 1)
        place.parent.mkdir(parents=True)
        place.write_bytes(data)
        with suppress(PyramidError):
            entry = read_entry(warehouse, "main", 1)
            encode_entry(entry)


def read_parquet(data: bytes) -> None:
    """A table's bytes are a table or damaged, and what was written is written the same again.

    Another writer's file may state an empty list of metadata, which is not written.
    """
    with suppress(PyramidError, pa.ArrowException, OSError, ValueError):
        table = decode_table(data)
        written = encode_table(decode_table(encode_table(table)))
        assert encode_table(decode_table(written)) == written
        assert decode_table(written).equals(table)


def key_value(data: bytes) -> None:
    """Equal values have one key, whatever the order of their fields."""
    with suppress(ValueError, RecursionError):
        value = json.loads(data)
        with suppress(PyramidError):
            plain = canonical_json(value)
            assert canonical_json(json.loads(plain)) == plain
            assert hash_value(json.loads(plain)) == hash_value(value)


def _make_parquet() -> bytes:
    stream = io.BytesIO()
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"id": ["a"], "text": ["Ada was born in London."]}), stream)
    return stream.getvalue()


PAGE = (
    "---\ntitle: Ada\naccess: [staff]\n---\n# Ada\n\n| Name | Born |\n|---|---|\n| Ada | 1815 |\n\n"
    "- Chair: Ada Holm\n\n> quoted\n\n```python\nx = 1\n```\n"
)
REPLY = '{"entities": [[1, "Ada", "person"]], "facts": [[1, "was born in", "London", "[1]", "no"]]}'
ONTOLOGY = """@prefix : <http://e.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:A a owl:Class ; rdfs:label "a"@en . :B a owl:Class ; rdfs:subClassOf :A .
:p a owl:ObjectProperty ; rdfs:domain [ owl:unionOf (:A :B) ] ; rdfs:range :B ; owl:inverseOf :q .
:d a owl:DatatypeProperty ; rdfs:domain :A ; rdfs:range rdfs:Literal ; owl:deprecated true .
"""
TARGETS: dict[str, tuple[Callable[[bytes], None], list[bytes]]] = {
    "files": (
        read_file,
        [
            *(bytes([at]) + PAGE.encode() for at in range(len(ENDINGS) - 1)),
            b"\x02<h1>A</h1><table><tr><th>B<td rowspan=3>c</table><ul><li>d<dl><dt>e<dd>f",
            b"\x03id,text\n1,Ada was born.\n2,\"a, \"\"b\"\"\"\n",
            b'\x05[{"id": 1, "text": "Ada was born."}, {"name": "B", "born": 1815}]',
            b'\x06{"text": "Ada", "access": "staff"}\n{"text": 1}\n',
            b'\x07{"cells": [{"cell_type": "markdown", "source": ["# A"]}], "nbformat": 4}',
            b"\x08From: a@e.org\nSubject: A\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nA",
            b"\x0a<article><front><article-title>A</article-title></front><body><sec><p>B</p></sec>",
            b"\x0d{| class=wikitable\n! A\n|-\n| b || c\n|}\n[[Ada|A]] '''B''' {{infobox | a = b}}",
            b"\x0f" + _make_parquet(),
        ],
    ),
    "labels": (
        read_head,
        [
            PAGE.encode(),
            b"+++\naccess = 'a'\n+++\nText.",
            b"<!-- access: a -->\nText.",
            b"Access: staff\nText.",
        ],
    ),
    "replies": (
        read_reply,
        [
            REPLY.encode(),
            b"<think>x</think>```json\n" + REPLY.encode() + b"\n```",
            b'{"choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}]}',
            b'{"claims": [{"claim": "a", "evidence": "b"}]}',
        ],
    ),
    "sparql": (
        gate_query,
        [
            b"PREFIX : <http://e.org/> SELECT ?x WHERE { ?x :p/:q* 'a' . FILTER(?x > 1) } LIMIT 3",
            b"ASK { SERVICE <http://e.org> { ?s ?p ?o } }",
        ],
    ),
    "arguments": (
        read_arguments,
        [bytes([at]) + b'{"kind": "film", "where": {"year": [1, null]}}' for at in range(9)],
    ),
    "ontologies": (read_ontology, [ONTOLOGY.encode()]),
    "log": (read_log, [b'{"snapshot": "a", "number": 1, "sha256": "b"}']),
    "parquet": (read_parquet, [_make_parquet()]),
    "keys": (key_value, [b'{"b": [1.5, null, "\\u00e9", {"a": true}], "a": -0.0, "c": 1e400}']),
}  # fmt: skip
"""What is run, and inputs to begin with, by name."""


def list_stored(target: str) -> Iterator[bytes]:
    """Inputs that once failed."""
    yield from (path.read_bytes() for path in sorted((FOLDER / target).glob("*")))


def mutate(data: bytes, others: list[bytes], chance: Random) -> bytes:
    """A few changes of bytes and runs of bytes, some from other inputs."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 8))):
        at = chance.randrange(len(changed) + 1)
        end = min(len(changed), at + chance.choice((0, 1, 2, 8, 32)))
        other = chance.choice(others)
        begin = chance.randrange(len(other) + 1)
        signs = b"\x00\xff\n\"'{}[]<>|:#-+=`\\\xe2\x80\xa8\xc3\xa9\xed\xa0\x80 0"
        new: tuple[Any, ...] = (
            bytes([chance.randrange(256)]),
            bytes([chance.choice(signs)]) * chance.choice((1, 3, 40)),
            other[begin : begin + chance.choice((1, 4, 16, 64))],
            bytes(changed[at:end]) * 2,
            b"",
        )
        changed[at:end] = chance.choice(new)
    return bytes(changed)


def main() -> None:
    """Runs one target under atheris."""
    if sys.argv[1:] == ["--names"]:
        print(*TARGETS)
        return
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(f"{__doc__}\nTargets: {', '.join(TARGETS)}")
    import atheris

    name = sys.argv.pop(1)
    target, seeds = TARGETS[name]
    (FOLDER / name).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as corpus:
        for at, seed in enumerate([*seeds, *list_stored(name)]):
            (Path(corpus) / str(at)).write_bytes(seed)
        atheris.instrument_all()
        atheris.Setup([*sys.argv, f"-artifact_prefix={FOLDER / name}/", corpus], target)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
