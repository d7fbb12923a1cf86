"""Extract binds an extraction to its place in the document; the extractor is scripted."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pytest

from kpyramid.documents.blocks import Block
from kpyramid.documents.sentences import MAX_CHARACTERS, Dropped, Span, cut_passages
from kpyramid.extraction.cascade.reading import Cascade
from kpyramid.extraction.facts.tables import read_tables
from kpyramid.extraction.types import Chunk, Claim, Extraction, Fact, Mention, Titled
from kpyramid.llm.task import Failure, FailureKind
from kpyramid.pipeline.stages import extract
from kpyramid.pipeline.stages.tables import build_table
from kpyramid.settings import CascadeSettings
from tests.planted import NOTHING

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
        NOTHING | {"document_id": key, "source": key, "text": text, "sha256": "0" * 64}
        for key, text in texts.items()
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
    tables: Mapping[str, pa.Table],
    found: Mapping[str, Extraction],
    cascade: Cascade | None = None,
) -> dict[str, pa.Table]:
    return extract.run(
        tables["documents"],
        tables["chunks"],
        extractor=lambda texts: ((each, found.get(each.text, Extraction())) for each in texts),
        cascade=cascade,
    )


TWICE = make_tables(
    {"doc-1": TEXT, "doc-2": TEXT}, {"doc-1": {"chunk-1": (0, 33)}, "doc-2": {"chunk-2": (0, 33)}}
)


def test_equal_texts_are_asked_for_once_and_have_their_own_ids() -> None:
    made = extract_tables(TWICE, {TEXT: FOUND})

    assert [made[name].num_rows for name in ("claims", "mentions", "raw_triples")] == [2, 4, 2]
    assert {row["chunk_id"] for row in made["claims"].to_pylist()} == {"chunk-1", "chunk-2"}


def test_every_passage_is_read_with_the_title_of_its_document() -> None:
    opening = "One word more. " * (MAX_CHARACTERS // 15)
    texts = {"doc-1": f"{opening}\n\n{TEXT}", "doc-2": TEXT}
    tables = make_tables(texts, {"doc-1": {"chunk-1": (0, 9)}, "doc-2": {"chunk-2": (0, 33)}})
    titles = pa.array(["Aster Pictures", None], tables["documents"].schema.field("title").type)
    at = tables["documents"].schema.get_field_index("title")
    documents = tables["documents"].set_column(at, "title", titles)
    asked: list[Titled] = []

    def read(passages: Iterable[Titled]) -> list[tuple[Titled, Extraction]]:
        asked.extend(passages)
        return [(each, Extraction()) for each in asked]

    extract.run(documents, tables["chunks"], extractor=read, cascade=None)

    assert [(p.text.rstrip()[-5:], p.title) for p in asked] == [
        ("more.", "Aster Pictures"),
        ("ures.", "Aster Pictures"),
        ("ures.", ""),
    ]


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
    assert claim["spans"] == [{"start": 0, "end": 18}, {"start": 19, "end": 46}]


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


# With a model.


class ScriptedCascade(Cascade):
    """Reads by a function of the chunk, and keeps what it was given."""

    def __init__(self, read: Callable[[Chunk], Extraction | Failure], **choice: object) -> None:
        shape = CascadeSettings(**{"relations": "llm", "mode": "paper", **choice})  # type: ignore[arg-type]
        self.given: list[Chunk] = []
        self._read = read
        super().__init__(
            None,  # type: ignore[arg-type]
            shape,
            model="m",
            max_tokens=1,
            concurrency=1,
            progress=None,  # type: ignore[arg-type]
        )

    def read(self, chunks: Sequence[Chunk]) -> list[Extraction | Failure]:
        self.given += chunks
        return [self._read(chunk) for chunk in chunks]


READ = Extraction(
    claims=(Claim("Anna Holm made Aster Pictures.", (Span(0, 33),)),),
    mentions=(Mention(0, "Anna Holm", "PERSON", Span(0, 9)),),
    facts=(Fact(0, "Anna Holm", "made", "Aster Pictures", Span(0, 9), None, Span(18, 32)),),
    dropped=(Dropped("unsupported", "a | b | c", Span(0, 33)),),
)
REFUSED = Failure("k", FailureKind.REFUSED, "the model refused")
ALL = {"paraphrase": "llm", "entities": "llm", "relations": "llm"}


def list_rejects(made: Mapping[str, pa.Table]) -> list[tuple[str, str]]:
    return sorted((row["chunk_id"], row["reason"]) for row in made["rejects"].to_pylist())


def test_what_a_model_read_belongs_to_the_chunk_that_it_read() -> None:
    lead = "Something else came first. "
    tables = make_tables({"doc": lead + TEXT}, {"doc": {"chunk-1": (0, 26), "chunk-2": (27, 60)}})
    cascade = ScriptedCascade(lambda c: READ if c.text == TEXT else Extraction(), **ALL)

    made = extract_tables(tables, {lead + TEXT: FOUND}, cascade)

    (raw,) = made["raw_triples"].to_pylist()
    assert (raw["chunk_id"], raw["producer"], raw["relation"]) == ("chunk-2", "m", "made")
    assert raw["tail_span"] == {"start": 45, "end": 59}
    assert made["claims"]["producer"].to_pylist() == ["m"]
    assert list_rejects(made) == [("chunk-1", "no_fact"), ("chunk-2", "unsupported")]


def test_a_model_is_given_title_document_and_what_the_rules_found_in_the_chunk() -> None:
    lead = "Something else came first. "
    text = lead + TEXT
    there = Extraction(claims=(Claim(TEXT, (Span(27, 60),)),))
    tables = make_tables({"doc": text}, {"doc": {"chunk-1": (0, 26), "chunk-2": (27, 60)}})
    titled = tables["documents"].to_pylist()
    titled[0]["title"] = "Aster"
    tables["documents"] = build_table("documents", titled)
    cascade = ScriptedCascade(lambda _: READ, **ALL)

    extract_tables({**tables, "chunks": tables["chunks"].slice(0, 2)}, {text: there}, cascade)

    first, second = cascade.given
    assert (first.text, first.title, first.document) == (lead.strip(), "Aster", "doc")
    assert first.extraction == Extraction()
    assert second.extraction.claims == (Claim(TEXT, (Span(0, 33),)),)


def test_a_window_that_failed_is_noted_on_every_chunk_that_reaches_into_it() -> None:
    parts = [" ".join([f"Ada {word} sang in Oslo every single day."] * 8) for word in "xy"]
    text = "\n\n".join(parts)
    middle = len(parts[0]) // 2
    tables = make_tables(
        {"doc": text}, {"doc": {"chunk-1": (0, middle), "chunk-2": (middle, len(text))}}
    )
    read = lambda chunk: REFUSED if "Ada y" in chunk.text else Extraction()  # noqa: E731
    cascade = ScriptedCascade(read, mode="merged", window=80, **ALL)

    made = extract_tables(tables, {text: Extraction()}, cascade)

    assert len(cascade.given) == 2
    assert list_rejects(made) == [("chunk-1", "no_fact"), ("chunk-2", "llm_refused")]


def test_cells_are_read_by_rule_alone_and_once() -> None:
    table, prose = "Name | Born\nAnn | 1990", "Bo Ek sings in Oslo every day."
    text = f"{table}\n\n{prose}"
    cells = [(0, 4, 0, 0), (7, 11, 0, 1), (12, 15, 1, 0), (18, 22, 1, 1)]
    blocks = [Block("cell", s, e, int(not row), row, column) for s, e, row, column in cells]
    chunks = {"chunk-1": (0, 22), "chunk-2": (7, len(text))}
    tables = make_tables({"doc": text}, {"doc": chunks})
    rows = tables["documents"].to_pylist()
    rows[0]["blocks"] = [block._asdict() for block in blocks]
    tables["documents"] = build_table("documents", rows)
    (given,) = [part for _, _, part in extract.list_passages(tables["documents"])]
    found = read_tables(given)
    at = text.index(prose)
    again = Fact(0, "Ann", "born", "1990", Span(12, 15), None, Span(18, 22))
    sings = Fact(1, "Bo Ek", "sings in", "Oslo", None, None, None)
    spans = (Span(5, 15), Span(at - 7, len(text) - 7))
    reply = Extraction(
        tuple(Claim(f"Claim {n}", (span,)) for n, span in enumerate(spans)), (), (again, sings)
    )
    cascade = ScriptedCascade(lambda _: reply, **ALL)

    made = extract_tables(tables, {text: found}, cascade)

    assert [(chunk.text[:4], chunk.extraction) for chunk in cascade.given] == [
        ("Born", Extraction())
    ]
    facts = made["raw_triples"].select(["head", "relation", "producer"]).to_pylist()
    assert sorted(tuple(row.values()) for row in facts) == [
        ("Ann", "was born in", "rules"),
        ("Bo Ek", "sings in", "m"),
    ]
    assert list_rejects(made) == [("chunk-2", "repeated")]


def test_a_chunk_without_a_reply_is_a_reject() -> None:
    cascade = ScriptedCascade(lambda chunk: REFUSED if chunk.document == "doc-1" else READ, **ALL)
    doubtful = Extraction(FOUND.claims, FOUND.mentions, (replace(FOUND.facts[0], confidence=0.1),))

    made = extract_tables(TWICE, {TEXT: doubtful}, cascade)

    assert len(cascade.given) == 2
    producers = {row["chunk_id"]: row["producer"] for row in made["raw_triples"].to_pylist()}
    assert producers == {"chunk-2": "m"}
    assert list_rejects(made) == [("chunk-1", "llm_refused"), ("chunk-2", "unsupported")]
    (reject,) = (r for r in made["rejects"].to_pylist() if r["reason"] == "llm_refused")
    assert (reject["row_key"], reject["document_id"]) == ("chunk-1", "doc-1")
    assert reject["detail"] == "the model refused"
