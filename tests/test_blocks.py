"""Pages and other files become blocks, and sentences do not go from one into another."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kpyramid.documents.blocks import classify_labels
from kpyramid.documents.cleaning import mend_text, normalise_text
from kpyramid.documents.formats import Record, read_records
from kpyramid.documents.pages import Page, read_page, render_markdown
from kpyramid.documents.screening import screen_text
from kpyramid.documents.sentences import split_sentences, split_text
from kpyramid.extraction.openie import DependencyExtractor
from kpyramid.extraction.types import Titled
from kpyramid.settings import ChunkSettings, IngestSettings

HERE = Path(__file__).parent
CASES = [json.loads(line) for line in (HERE / "block_cases.jsonl").read_text("utf-8").splitlines()]


def list_blocks(page: Page) -> Iterator[tuple[str, str]]:
    for block in page.blocks:
        places = (block.level, block.row, block.column)
        kind = " ".join([block.kind, *(map(str, places) if any(places) else ())])
        yield kind, page.text[block.start : block.end]


@pytest.mark.parametrize("case", [c for c in CASES if "blocks" in c], ids=lambda c: c["id"])
def test_each_block_has_its_kind_and_its_characters(case: dict[str, str]) -> None:
    source = case["text"] if case["file"] == "html" else render_markdown(case["text"])

    assert [list(block) for block in list_blocks(read_page(source))] == case["blocks"]


@pytest.mark.parametrize("case", [c for c in CASES if "facts" in c], ids=lambda c: c["id"])
def test_a_page_is_read_as_its_blocks_say(
    case: dict[str, str], extractor: DependencyExtractor
) -> None:
    data = case["text"].encode(case.get("encoding", "utf-8"))
    (record,) = read_records(f"a.{case['file']}", data, IngestSettings())
    assert isinstance(record, Record)

    read = next(extractor.extract_all([Titled(record.text, record.title or "", record.blocks)]))

    facts = [f"{fact.head} | {fact.relation} | {fact.tail}" for fact in read.facts]
    assert set(case["facts"]) <= set(facts)
    assert not [fact for fact in facts if any(words in fact for words in case["absent"])]


def test_several_sentences_of_a_quotation_are_told(extractor: DependencyExtractor) -> None:
    """Without a speaker; one sentence set off is as likely a motto of the page itself."""
    fact = "The mill was built in 1850"
    lines = [f"> {fact}. Tor Aas owned it.", f"{fact}. Tor Aas owned it.", f"> {fact}.",
             f'"{fact}. Tor Aas owned it."']  # fmt: skip
    moods = []
    for line in lines:
        (record,) = read_records("a.md", f"# Mills\n\n{line}\n".encode(), IngestSettings())
        assert isinstance(record, Record)
        read = next(extractor.extract_all([Titled(record.text, "Mills", record.blocks)]))
        moods.append([f.modality for f in read.facts if f.tail == "1850"])

    assert moods == [["told"], [None], [None], ["told"]]


def test_remains_of_typesetting_are_mended_and_a_firm_may_end_a_sentence() -> None:
    for case in CASES:
        if "mended" in case:
            assert mend_text(normalise_text(case["text"])) == case["mended"], case["id"]
        if "sentences" in case:
            assert len(list(split_sentences(case["text"]))) == case["sentences"], case["id"]


def test_what_blocks_say_is_no_prose_is_left_out_with_its_reason() -> None:
    page = read_page(
        "<h1>Orm</h1><p>Orm is a bank.</p><pre>x = 1</pre><dl><dt>Seat<dd>Oslo</dl>"
        "<table><tr><th>Year<th>Sales<tr><td>1990<td>12</table>"
    )
    kept, dropped = screen_text(page.text, "en", page.blocks)

    assert [page.text[span.start : span.end] for span in kept] == ["Orm is a bank."]
    assert [(each.reason, each.text) for each in dropped] == [
        ("heading", "Orm"),
        ("code", "x = 1"),
        ("pair", "Seat: Oslo"),
        ("table", "Year\tSales"),
        ("table", "1990\t12"),
    ]


def test_no_chunk_ends_in_a_heading_or_in_a_row_of_a_table() -> None:
    rows = "".join(f"<tr><td>Name {n}</td><td>Place {n}</td></tr>" for n in range(40))
    parts = "".join(f"<h2>Part {n}</h2><p>Ida wrote book {n} there.</p>" for n in range(20))
    page = read_page(f"{parts}<table>{rows}</table>")
    headings = [block for block in page.blocks if block.kind == "heading"]

    pieces = split_text(page.text, ChunkSettings(max_tokens=20, overlap_tokens=0), headings)

    chunks = [page.text[piece.start : piece.end] for piece in pieces]
    assert len(chunks) > 10
    lasts = [chunk.splitlines()[-1] for chunk in chunks]
    assert not [last for last in lasts if last.startswith("Part")]
    assert all("\t" in last for last in lasts if last.startswith("Name"))


@pytest.mark.slow
def test_pages_take_linear_time() -> None:
    for source in (
        "<table>" + "<tr><td>a<td>b" * 15_000,
        "<table>" + "<tr><td rowspan=999>a" * 50 + "<tr><td>x" * 10_000,
        "<table><tr>" + "<td colspan=1000>a" * 5_000,
        *("<table><tr><td>" * 2_500 + "x", "<ul><li>" * 2_500 + "x"),
        "<dl><dt>" + "k" * 90 + "<dd>v" * 15_000,
        *("<p>" + "a<br>" * 50_000, "x<sup>2</sup>" * 25_000, "<b>Key</b>: value<p>" * 15_000),
    ):
        began = time.process_time()
        page = read_page(source)
        screen_text(page.text, "en", page.blocks)
        assert time.process_time() - began < 4, source[:24]


def test_mending_takes_linear_time() -> None:
    for part in ("a-\n", "''", "''a", "\\cite{", "\\cite{a}[[[", "\x1b[", "A: b\n"):
        text = part * 100_000
        began = time.process_time()
        classify_labels((line, False) for line in mend_text(normalise_text(text)).split("\n"))
        assert time.process_time() - began < 10, part
