"""Extract binds an extraction to its place in the document; the extractor is scripted."""

import random
from collections.abc import Sequence

import pyarrow as pa

from kpyramid.extraction.types import Claim, Dropped, Extraction, Fact, Mention, Span
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


def make_chunks(*rows: tuple[str, str, int, str]) -> pa.Table:
    return build_table(
        "chunks",
        [
            {
                "chunk_id": chunk_id,
                "document_id": document_id,
                "start": start,
                "end": start + len(text),
                "text": text,
                "tokens": 6,
            }
            for chunk_id, document_id, start, text in rows
        ],
    )


def find_facts(texts: Sequence[str]) -> list[Extraction]:
    return [FOUND if text == TEXT else Extraction() for text in texts]


PREFIX = "Before it all. "
CHUNKS = (("chunk-1", "doc-1", 0, TEXT), ("chunk-2", "doc-2", len(PREFIX), TEXT))


def test_spans_are_moved_to_their_place_in_the_document() -> None:
    documents = {"chunk-1": TEXT, "chunk-2": PREFIX + TEXT}

    made = extract.run(make_chunks(*CHUNKS), extractor=find_facts)

    raws = made["raw_triples"].to_pylist()
    assert {row["chunk_id"] for row in raws} == set(documents)
    for row in raws:
        for part in ("head", "relation", "tail"):
            span = row[f"{part}_span"]
            assert documents[row["chunk_id"]][span["start"] : span["end"]] == row[part]
    for row in made["mentions"].to_pylist():
        assert documents[row["chunk_id"]][row["start"] : row["end"]] == row["text"]
    for row in made["claims"].to_pylist():
        (span,) = row["spans"]
        assert documents[row["chunk_id"]][span["start"] : span["end"]] == row["text"]


def test_equal_texts_at_two_places_have_their_own_ids() -> None:
    made = extract.run(make_chunks(*CHUNKS), extractor=find_facts)

    assert [made[name].num_rows for name in ("claims", "mentions", "raw_triples")] == [2, 4, 2]


def test_ids_depend_on_the_chunk_alone() -> None:
    both = extract.run(make_chunks(*CHUNKS), extractor=find_facts)
    alone = extract.run(make_chunks(CHUNKS[1]), extractor=find_facts)

    for name in ("claims", "mentions", "raw_triples"):
        rows = both[name].to_pylist()
        assert alone[name].to_pylist() == [row for row in rows if row["chunk_id"] == "chunk-2"]


def test_what_is_given_up_and_what_says_nothing_is_a_reject_with_its_place() -> None:
    chunks = make_chunks(CHUNKS[1], ("chunk-3", "doc-3", 0, "Nothing here."))

    rejects = extract.run(chunks, extractor=find_facts)["rejects"].to_pylist()

    by_reason = {row["reason"]: row for row in rejects}
    assert set(by_reason) == {"no_object", "no_fact"}
    place = f"characters {len(PREFIX) + 10}-{len(PREFIX) + 17}: founded"
    assert by_reason["no_object"]["detail"] == place
    assert by_reason["no_object"]["document_id"] == "doc-2"
    assert by_reason["no_fact"]["row_key"] == by_reason["no_fact"]["chunk_id"] == "chunk-3"


def test_what_an_extraction_says_twice_is_one_row() -> None:
    twice = Extraction(FOUND.claims * 2, FOUND.mentions * 2, FOUND.facts * 2, FOUND.dropped * 2)

    made = extract.run(make_chunks(CHUNKS[0]), extractor=lambda texts: [twice for _ in texts])

    sizes = {name: table.num_rows for name, table in made.items()}
    assert sizes == {"claims": 1, "mentions": 2, "raw_triples": 1, "rejects": 1}


def test_the_order_of_the_chunks_changes_nothing() -> None:
    chunks = make_chunks(*((f"chunk-{n}", "doc-1", 40 * n, TEXT) for n in range(9)))
    order = list(range(9))
    random.Random(1).shuffle(order)

    assert extract.run(chunks.take(order), extractor=find_facts) == extract.run(
        chunks, extractor=find_facts
    )
