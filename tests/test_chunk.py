"""Chunks: exact spans, within the budget, overlapping, nothing left out, linear time."""

import re
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpyramid.documents.formats import read_records
from kpyramid.documents.sentences import split_sentences, split_text
from kpyramid.pipeline.stages import chunk
from kpyramid.pipeline.stages.tables import build_table
from kpyramid.settings import ChunkSettings, IngestSettings
from tests.planted import NOTHING
from tests.rows import each_row

TOKEN = re.compile(r"\w+|[^\w\s]")


def make_documents(*texts: str) -> list[dict[str, object]]:
    return [
        NOTHING | {"document_id": f"doc-{number}", "source": f"{number}", "text": text}
        | {"sha256": ""}
        for number, text in enumerate(texts)
    ]  # fmt: skip


PROSE = " ".join(f"Sentence number {n} has exactly eight tokens." for n in range(40))


def test_chunks_are_their_documents_text_at_their_span() -> None:
    documents = make_documents(PROSE, "  Padded.  ", "漢字。" * 30)
    settings = ChunkSettings(max_tokens=30, overlap_tokens=10)

    made = chunk.run(
        build_table("documents", documents),
        splitter=lambda texts: [split_text(t.text, settings, t.blocks) for t in texts],
    )

    text_of = {row["document_id"]: str(row["text"]) for row in documents}
    rows = made["chunks"].to_pylist()
    assert {row["document_id"] for row in rows} == set(text_of)
    assert len(rows) > 10
    assert all(text_of[r["document_id"]][r["start"] : r["end"]] == r["text"] for r in rows)
    assert made["rejects"].num_rows == 0


def test_a_document_without_a_word_is_a_reject() -> None:
    made = chunk.run(build_table("documents", make_documents("x")), splitter=lambda texts: [[]])

    assert made["chunks"].num_rows == 0
    assert made["rejects"]["reason"].to_pylist() == ["no_words"]
    assert made["rejects"]["row_key"].to_pylist() == ["doc-0"]


def test_neighbours_share_whole_sentences_up_to_the_overlap() -> None:
    pieces = split_text(PROSE, ChunkSettings(max_tokens=32, overlap_tokens=16))

    shared = [PROSE[b.start : a.end] for a, b in pairwise(pieces)]
    assert {len(TOKEN.findall(text)) for text in shared} == {16}
    assert all(text.startswith("Sentence") and text.endswith(".") for text in shared)


def test_a_sentence_beyond_the_budget_is_cut_between_words() -> None:
    text = " ".join(f"word{n}" for n in range(100))

    pieces = split_text(text, ChunkSettings(max_tokens=10, overlap_tokens=0))

    assert " ".join(text[p.start : p.end] for p in pieces) == text
    assert {piece.tokens for piece in pieces} == {10}


@each_row("text, expected")
def test_sentences_end_where_a_reader_ends_them(text: str, expected: tuple[str, ...]) -> None:
    assert [text[span.start : span.end] for span in split_sentences(text)] == list(expected)


TEXT = st.lists(
    st.sampled_from(
        ["word", "Word", ". ", "! ", "\n\n", " ", "。", "x" * 250, "…", "\u2028", "é", "'"]
    ),
    max_size=80,
).map("".join) | st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXT, st.integers(1, 12), st.data())
def test_any_text_is_covered_within_the_budget(text: str, budget: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, budget // 2))

    pieces = split_text(text, ChunkSettings(max_tokens=budget, overlap_tokens=overlap))

    covered = {index for piece in pieces for index in range(piece.start, piece.end)}
    assert all(index in covered for index, c in enumerate(text) if not c.isspace())
    for piece in pieces:
        assert 1 <= piece.tokens <= budget
        assert text[piece.start : piece.end].strip() == text[piece.start : piece.end] != ""
        assert len(TOKEN.findall(text[piece.start : piece.end])) <= piece.tokens
    starts = [(piece.start, piece.end) for piece in pieces]
    assert starts == sorted(set(starts))
    for one, two in pairwise(pieces):
        shared = text[two.start : one.end] if two.start < one.end else ""
        # a run of 250 letters is one token here and up to three there
        assert len(TOKEN.findall(shared)) <= overlap


HOSTILE = {
    "letters": "x" * 1_000_000,
    "words": "word " * 200_000,
    "stops": "." * 200_000,
    "stops and a quote": '."' * 100_000,
    "spaces": "a. " + " " * 1_000_000 + "b",
    "blank lines": "\n " * 500_000,
    "spaces after a line": ("\n" + " " * 5000) * 200,
    "abbreviations": "Dr. " * 200_000,
    "prose": "This is a sentence of some words. " * 60_000,
}


@pytest.mark.slow
@each_row("name, piece")
def test_time_grows_with_the_page_and_not_with_its_square(name: str, piece: str) -> None:
    def measure(count: int) -> float:
        data = (piece * count).encode()
        started = time.process_time()
        assert list(read_records(name, data, IngestSettings()))
        return time.process_time() - started

    measure(100)
    # eight times the page: 8 when linear, 64 when quadratic
    assert measure(40_000) < 25 * measure(5_000) + 0.1


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_huge_text_is_cut_in_bounded_time(name: str) -> None:
    text = HOSTILE[name]
    settings = ChunkSettings()
    started = time.process_time()

    pieces = split_text(text, settings)

    # 2 MB of prose take about half a second; a quadratic cut would take minutes.
    assert time.process_time() - started < 7.5
    assert all(piece.tokens <= settings.max_tokens for piece in pieces)
    assert pieces[-1].end == len(text.rstrip()) if text.strip() else pieces == []


def test_a_blank_line_ends_a_sentence_behind_what_is_like_an_abbreviation() -> None:
    text = "They reach 250 °C.\n\nAda Lee met J. Orm. She left."
    found = [text[span.start : span.end] for span in split_sentences(text)]
    assert found == ["They reach 250 °C.", "Ada Lee met J. Orm.", "She left."]
