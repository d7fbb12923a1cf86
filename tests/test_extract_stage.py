"""Extract binds an extraction to its place in the document; the extractor is scripted."""

import random
from collections.abc import Mapping
from itertools import pairwise

import pyarrow as pa
import pytest

from kpyramid.extraction.text.passages import MAX_CHARACTERS, cut_passages
from kpyramid.extraction.types import Claim, Dropped, Extraction, Fact, Mention, Span
from kpyramid.keys import hash_bytes
from kpyramid.stages import extract
from kpyramid.stages.tables import build_table

TEXT = "Anna Holm founded Aster Pictures."
FOUND = Extraction(
    claims=(Claim(TEXT, (Span(0, 33),)),),
    mentions=(
        Mention(0, "Anna Holm", "PERSON", Span(0, 9)),
        Mention(0, "Aster Pictures", "ORG", Span(18, 32)),
    ),
    facts=(
        Fact(0, "Anna Holm", "founded", "Aster Pictures", Span(0, 9), Span(10, 17), Span(18, 32)),
    ),
    dropped=(Dropped("no_object", "founded", Span(10, 17)),),
)


Chunks = Mapping[str, tuple[int, int]]


def make_tables(texts: Mapping[str, str], chunks: Mapping[str, Chunks]) -> dict[str, pa.Table]:
    """Documents by id, and the chunks of each: id, first character, character after the last."""
    documents = [
        {
            "document_id": document_id,
            "source": document_id,
            "title": None,
            "text": text,
            "language": "en",
            "metadata": [],
            "access": [],
            "licence": None,
            "sha256": hash_bytes(text.encode()),
        }
        for document_id, text in texts.items()
    ]
    pieces = [
        {
            "chunk_id": chunk_id,
            "document_id": document_id,
            "start": start,
            "end": end,
            "text": texts[document_id][start:end],
            "tokens": 6,
        }
        for document_id, spans in chunks.items()
        for chunk_id, (start, end) in spans.items()
    ]
    return {
        "documents": build_table("documents", documents),
        "chunks": build_table("chunks", pieces),
    }


def extract_tables(
    tables: Mapping[str, pa.Table], found: Mapping[str, Extraction]
) -> dict[str, pa.Table]:
    return extract.run(
        tables["documents"],
        tables["chunks"],
        extractor=lambda texts: [found.get(text, Extraction()) for text in texts],
        cascade=None,
    )


TWICE = make_tables(
    {"doc-1": TEXT, "doc-2": TEXT}, {"doc-1": {"chunk-1": (0, 33)}, "doc-2": {"chunk-2": (0, 33)}}
)


def test_equal_texts_are_asked_for_once_and_have_their_own_ids() -> None:
    made = extract_tables(TWICE, {TEXT: FOUND})

    assert [made[name].num_rows for name in ("claims", "mentions", "raw_triples")] == [2, 4, 2]
    assert {row["chunk_id"] for row in made["claims"].to_pylist()} == {"chunk-1", "chunk-2"}


def test_ids_depend_on_the_document_alone() -> None:
    one = make_tables({"doc-2": TEXT}, {"doc-2": {"chunk-2": (0, 33)}})
    both, alone = (extract_tables(tables, {TEXT: FOUND}) for tables in (TWICE, one))

    for name in ("claims", "mentions", "raw_triples"):
        rows = both[name].to_pylist()
        assert alone[name].to_pylist() == [row for row in rows if row["chunk_id"] == "chunk-2"]


def test_spans_are_moved_from_the_passage_to_the_document() -> None:
    opening = "One word more. " * (MAX_CHARACTERS // 15)
    document = f"{opening}\n\n{TEXT}"
    _first, second = cut_passages(document)
    assert document[second.start : second.end] == TEXT
    chunks = {"chunk-1": (0, len(opening)), "chunk-2": (second.start, second.end)}

    made = extract_tables(make_tables({"doc": document}, {"doc": chunks}), {TEXT: FOUND})

    (raw,) = made["raw_triples"].to_pylist()
    assert raw["chunk_id"] == "chunk-2"
    for part in ("head", "relation", "tail"):
        span = raw[f"{part}_span"]
        assert document[span["start"] : span["end"]] == raw[part]
    for row in made["mentions"].to_pylist():
        assert document[row["start"] : row["end"]] == row["text"]
    (claim,) = made["claims"].to_pylist()
    (span,) = claim["spans"]
    assert document[span["start"] : span["end"]] == claim["text"]
    (dropped,) = (r for r in made["rejects"].to_pylist() if r["reason"] == "no_object")
    place = f"characters {second.start + 10}-{second.start + 17}: founded"
    assert (dropped["detail"], dropped["chunk_id"]) == (place, "chunk-2")


def test_a_claim_belongs_to_the_first_chunk_that_holds_its_clause_not_its_antecedent() -> None:
    text = "Anna Holm is rich. She founded Aster Pictures. She sold it."
    spans = (Span(0, 9), Span(19, 45))
    found = Extraction(claims=(Claim("Anna Holm founded Aster Pictures.", spans),))
    # The clause lies in the overlap of two chunks, the antecedent in the first one only.
    chunks = {"chunk-1": (0, 18), "chunk-2": (19, 46), "chunk-3": (19, 59)}

    made = extract_tables(make_tables({"doc": text}, {"doc": chunks}), {text: found})

    (claim,) = made["claims"].to_pylist()
    assert claim["chunk_id"] == "chunk-2"
    assert claim["spans"] == [{"start": 0, "end": 9}, {"start": 19, "end": 45}]


def test_a_clause_that_no_chunk_holds_whole_belongs_to_the_one_it_begins_in() -> None:
    chunks = {"chunk-1": (0, 17), "chunk-2": (18, 33)}

    made = extract_tables(make_tables({"doc": TEXT}, {"doc": chunks}), {TEXT: FOUND})

    assert made["claims"]["chunk_id"].to_pylist() == ["chunk-1"]


def test_what_is_given_up_and_what_says_nothing_is_a_reject_with_its_place() -> None:
    tables = make_tables(
        {"doc-1": TEXT, "doc-3": "Nothing here."},
        {"doc-1": {"chunk-1": (0, 33)}, "doc-3": {"chunk-3": (0, 13)}},
    )

    rejects = extract_tables(tables, {TEXT: FOUND})["rejects"].to_pylist()

    by_reason = {row["reason"]: row for row in rejects}
    assert set(by_reason) == {"no_object", "no_fact"}
    assert by_reason["no_object"]["document_id"] == "doc-1"
    assert by_reason["no_fact"]["row_key"] == by_reason["no_fact"]["chunk_id"] == "chunk-3"


def test_what_an_extraction_says_twice_is_one_row() -> None:
    twice = Extraction(FOUND.claims * 2, FOUND.mentions * 2, FOUND.facts * 2, FOUND.dropped * 2)

    made = extract_tables(make_tables({"doc": TEXT}, {"doc": {"chunk-1": (0, 33)}}), {TEXT: twice})

    sizes = {name: table.num_rows for name, table in made.items()}
    assert sizes == {"claims": 1, "mentions": 2, "raw_triples": 1, "rejects": 1}


def test_the_order_of_documents_and_chunks_changes_nothing() -> None:
    numbers = range(9)
    tables = make_tables(
        {f"doc-{n}": TEXT for n in numbers},
        {f"doc-{n}": {f"chunk-{n}-1": (0, 33), f"chunk-{n}-2": (10, 33)} for n in numbers},
    )
    shuffled = {}
    for name, table in tables.items():
        order = list(range(table.num_rows))
        random.Random(1).shuffle(order)
        shuffled[name] = table.take(order)

    assert extract_tables(shuffled, {TEXT: FOUND}) == extract_tables(tables, {TEXT: FOUND})


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\n ",
        "short",
        "word " * 30_000,
        "x" * 50_000,
        "One sentence ends. " * 5_000,
        "A paragraph of text.\n\n" * 4_000,
        "\n" * 50_000 + "end",
    ],
)
def test_passages_hold_every_character_once_and_end_where_a_sentence_does(text: str) -> None:
    spans = list(cut_passages(text))

    assert all(0 < span.end - span.start <= MAX_CHARACTERS for span in spans)
    assert all(text[span.start : span.end].strip() for span in spans)
    assert all(one.end <= other.start for one, other in pairwise(spans))
    kept = "".join(text[span.start : span.end] for span in spans)
    assert kept.replace("\n", "").strip() == text.replace("\n", "").strip()
    if "." in text:
        assert all(text[span.start : span.end].rstrip().endswith(".") for span in spans)
