"""Cells and pairs as facts: each table of `golden/tables.txt` with its facts and rejects."""

import re
import time
from pathlib import Path

import pytest

from kpyramid.documents.blocks import Block
from kpyramid.extraction.facts.tables import read_tables
from kpyramid.extraction.types import Extraction, Titled
from tests.rows import each_row

CASES = Path(__file__).with_name("golden").joinpath("tables.txt").read_text("utf-8").split("\n\n")


def lay_out(lines: list[str], title: str = "", heading: str = "") -> Titled:
    """A text with a table, its cells parted by bars, a header first."""
    blocks = [Block("heading", 0, len(heading), 1)] if heading else []
    text = f"{heading}\n\n"
    for row, line in enumerate(lines):
        for column, cell in enumerate(line.split("|")):
            if cell:
                end = len(text) + len(cell)
                blocks.append(Block("cell", len(text), end, int(not row), row, column))
            text += f"{cell}\t"
        text += "\n"
    return Titled(text, title, tuple(blocks))


def list_facts(found: Extraction) -> list[str]:
    types = {(m.claim, m.text): m.type for m in found.mentions}
    facts = []
    for fact in found.facts:
        kind = types.get((fact.claim, fact.tail), "NOUN").removeprefix("NOUN")
        words = f"{fact.head} | {'not ' * fact.negated}{fact.relation} | {fact.tail}"
        facts.append(" ".join([words, *([kind] if kind else [])]))
        facts[-1] += "".join(f" @{when}" for when in fact.qualifiers.values())
    return facts


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.partition("\n")[0][2:42])
def test_table_is_read_as_its_facts(case: str) -> None:
    name, *lines = case.strip().split("\n")
    fields = dict(line.split(": ", 1) for line in lines if line.startswith(("title:", "heading:")))
    table = [line for line in lines if "|" in line and not line.startswith("= ")]
    given = lay_out(table, **fields)

    found = read_tables(given)

    assert list_facts(found) == [line[2:] for line in lines if line.startswith("= ")], name
    assert [d.reason for d in found.dropped] == [x[2:] for x in lines if x.startswith("- ")]
    for fact in found.facts:
        for span, words in ((fact.head_span, fact.head), (fact.tail_span, fact.tail)):
            assert span is None or given.text[span.start : span.end] == words
        evidence = [given.text[s.start : s.end] for s in found.claims[fact.claim].spans]
        assert len(evidence) >= 2
    for mention in found.mentions:
        assert given.text[mention.span.start : mention.span.end] == mention.text


def test_pairs_are_about_the_nearest_heading_that_names_one_thing() -> None:
    lines = [("heading", "Blue Tower", 1), ("heading", "Details", 2)]
    pairs = ("Height (roof: 28 m): 30 m", "Located in: Oslo", "Note:", "Lark (owner: Ann Lee)")
    lines += [("pair", pair, 0) for pair in pairs]
    text = "\n\n".join(line for _, line, _ in lines)
    blocks = [Block(k, text.index(t), text.index(t) + len(t), level) for k, t, level in lines]  # type: ignore[arg-type]

    found = read_tables(Titled(text, "How towers are built", tuple(blocks)))

    assert list_facts(found) == [
        "Blue Tower | has height | 30 m QUANTITY",
        "Blue Tower | is located in | Oslo",
        "Lark | has owner | Ann Lee",
    ]


RECORDS = "Room: B2\nSeats: 4\n\nRoom: {}\nSeats: 9"


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (
            RECORDS.format("C1"),
            ["B2 | has seats | 4", "B2 | is a | Room", "C1 | has seats | 9", "C1 | is a | Room"],
        ),
        (
            RECORDS.format(""),
            ["Plan | has room | B2", "Plan | has seats | 4", "Plan | has seats | 9"],
        ),
        (
            "Lease summary\n\nLease: Mill Lane 4\nRent: £90",
            ["Mill Lane 4 | has rent | £90", "Mill Lane 4 | is a | Lease"],
        ),
    ],
)
def test_records_are_about_their_first_value(text: str, facts: list[str]) -> None:
    pairs = [match.span() for match in re.finditer(r"\w+: ?\S.*|\w+:", text)]
    blocks = tuple(Block("pair", start, end) for start, end in pairs)

    found = read_tables(Titled(text, "Lease summary" if "Lease" in text else "Plan", blocks))

    stated = [line.removesuffix(" CARDINAL").removesuffix(" MONEY") for line in list_facts(found)]
    assert stated == facts


@each_row("title, part, subject")
def test_pairs_under_a_title_are_about_it(title: str, part: str, subject: str | None) -> None:
    lines = [("heading", title, 1), ("heading", part, 2), ("pair", "Severity: High", 0)]
    text = "\n\n".join(line for _, line, _ in lines)
    blocks = [Block(k, text.index(t), text.index(t) + len(t), n) for k, t, n in lines if t]  # type: ignore[arg-type]

    found = read_tables(Titled(text, title, tuple(blocks)))

    assert list_facts(found) == ([f"{subject} | has severity | High"] if subject else [])
    assert [dropped.reason for dropped in found.dropped] == ([] if subject else ["no_subject"])


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns"), [(2_000, 5), (2, 4_000)])
def test_large_table_is_read_in_time_that_grows_with_its_cells(rows: int, columns: int) -> None:
    header = "|".join(f"H{column} of" for column in range(columns))
    body = ["|".join(f"N{row}x{column}" for column in range(columns)) for row in range(rows)]
    parts, at = [], 0
    blocks = []
    for row, line in enumerate([header, *body]):
        for column, cell in enumerate(line.split("|")):
            blocks.append(Block("cell", at, at + len(cell), int(not row), row, column))
            at += len(cell) + 1
        parts.append(line)
    start = time.process_time()

    found = read_tables(Titled("|".join(parts), "", tuple(blocks)))

    assert len(found.facts) == rows * (columns - 1)
    assert time.process_time() - start < 25
