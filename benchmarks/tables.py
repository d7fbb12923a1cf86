"""Cells of real tables that become facts: of the gold cells those found, of the facts those right.

A gold cell is a value with the subject of its row and the header of its column. They stand in the
data, rows of `*.jsonl` or `*.tsv` with the fields file, subject, header, value; or they follow from
`judged/tables.tsv`: for each table of a file how many rows are its header, which columns name the
subject, which columns state something of it (a table of none has no gold cell), whether a row is a
property, and which words name the subject where no column does. The cells are then read by lxml and
csv from the file as it is, by none of the project's readers. A cell that reaches over several rows
or columns is one of each.

A fact states a gold cell when its head is the subject, its tail holds the value, or is part of it,
and the header is in its evidence. `found`: gold cells all of whose words, but those in brackets,
are in the evidence of such facts. `right`: facts from cells that state a gold cell. Facts that a
row is of the kind that its header names state no cell: they are counted apart, as `kinds`.
"""

import csv
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lxml import etree, html
from options import explain_faults, print_figures, read_options

from kpyramid.documents.conversion import CONVERTED
from kpyramid.documents.corpus import SourceFile
from kpyramid.documents.formats import Record, name_ending, read_records
from kpyramid.extraction.facts.tables import read_tables
from kpyramid.extraction.types import Titled
from kpyramid.pipeline.cache import convert_all
from kpyramid.settings import IngestSettings

KEY = Path(__file__).parent / "judged" / "tables.tsv"
FORM = "real_files"
FIELDS = {"file", "subject", "header", "value"}
Grid = list[list[str]]


KIND = re.compile(r" \| is an? \| ")


class Cell(NamedTuple):
    """A value of a table, what it is of, and the words above it."""

    file: str
    subject: str
    header: str
    value: str


# Tables of files as they are, read by other readers than the project's.


def list_grids(path: Path) -> list[Grid]:
    """The tables of a file in their order, a row a list of texts."""
    data = path.read_bytes()
    ending = path.suffix.lower()
    if ending in {".html", ".htm"}:
        tables = html.fromstring(data).iter("table")
        return [lay_out(list_html_rows(table)) for table in tables]
    if ending == ".docx":
        body = etree.fromstring(zipfile.ZipFile(io.BytesIO(data)).read("word/document.xml"))
        return [lay_out(list_word_rows(table)) for table in body.iter(f"{{{WORD}}}tbl")]
    if ending in {".csv", ".tsv"}:
        text = data.decode("utf-8-sig")
        delimiter = max("\t;,", key=text.partition("\n")[0].count)
        return [list(csv.reader(io.StringIO(text), delimiter=delimiter))]
    if ending == ".md":
        return list(list_pipe_tables(data.decode()))
    return []


Span = tuple[str, int, int]
"""A cell's words, and how many columns and rows it reaches over."""
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def lay_out(rows: Iterable[Sequence[Span]]) -> Grid:
    """Cells in columns; one that reaches over several places is repeated in each."""
    grid: dict[tuple[int, int], str] = {}
    height = 0
    for row, cells in enumerate(rows):
        column = 0
        height = row + 1
        for words, wide, high in cells:
            while (row, column) in grid:
                column += 1
            places = [(row + y, column + x) for y in range(high) for x in range(wide)]
            grid.update((place, words) for place in places)
            column += wide
    width = max((column + 1 for _, column in grid), default=0)
    return [[grid.get((row, column), "") for column in range(width)] for row in range(height)]


def list_html_rows(table: Any) -> Iterator[list[Span]]:
    """The rows of a table, not those of tables in it."""
    for row in table.iter("tr"):
        if next(row.iterancestors("table")) is table:
            yield [
                (
                    " ".join(" ".join(cell.itertext()).split()),
                    int(cell.get("colspan", 1)),
                    int(cell.get("rowspan", 1)),
                )
                for cell in row
                if cell.tag in {"td", "th"}
            ]


def list_word_rows(table: Any) -> Iterator[list[Span]]:
    """The rows of a table of Word; a cell that goes on below is that of the row before."""
    above: dict[int, str] = {}
    for row in table.findall(f"{{{WORD}}}tr"):
        cells: list[Span] = []
        column = 0
        for cell in row.findall(f"{{{WORD}}}tc"):
            paragraphs = cell.iter(f"{{{WORD}}}p")
            lines = ("".join(t.text or "" for t in p.iter(f"{{{WORD}}}t")) for p in paragraphs)
            words = " ".join(" ".join(lines).split())
            merged = cell.find(f".//{{{WORD}}}vMerge")
            if merged is not None and merged.get(f"{{{WORD}}}val") != "restart":
                words = above.get(column, "")
            span = cell.find(f".//{{{WORD}}}gridSpan")
            wide = int(span.get(f"{{{WORD}}}val")) if span is not None else 1
            above[column] = words
            cells.append((words, wide, 1))
            column += wide
        yield cells


def list_pipe_tables(text: str) -> Iterator[Grid]:
    """The tables of a Markdown text, by their bars; marks of letters and of links are left out."""
    grid: Grid = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            plain = re.sub(r"[*`]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line))
            grid.append([cell.strip() for cell in re.split(r"(?<!\\)\|", plain)[1:-1]])
        elif grid:
            yield [row for row in grid if not all(re.fullmatch(r":?-+:?", c) for c in row)]
            grid = []


# Gold cells.


def read_gold(folder: Path) -> list[Cell]:
    """Those that the data hold, else those that follow from the key."""
    stated = [row for path in sorted(folder.rglob("*")) for row in list_stated(path)]
    if stated:
        return [Cell(*(str(row[name]) for name in Cell._fields)) for row in stated]
    rows = [row for row in read_tsv(KEY) if (folder / row["file"]).is_file()]
    grids = {row["file"]: list_grids(folder / row["file"]) for row in rows}
    return [c for row in rows for c in list_gold(row, grids[row["file"]][int(row["table"])])]


def list_stated(path: Path) -> Iterator[Mapping[str, str]]:
    """The rows of a file that holds gold cells."""
    if path.suffix == ".jsonl":
        with path.open(encoding="utf-8") as lines:
            rows = (json.loads(line) for line in lines if line.strip())
            yield from (row for row in rows if isinstance(row, dict) and {*row} >= FIELDS)
    elif path.suffix == ".tsv":
        yield from (row for row in read_tsv(path) if {*row} >= FIELDS)


def read_tsv(path: Path) -> list[dict[str, str]]:
    """Rows of tab-separated lines by the names of the first."""
    header, *lines = (line.split("\t") for line in path.read_text("utf-8").splitlines())
    return [dict(zip(header, line, strict=False)) for line in lines]


def list_gold(row: Mapping[str, str], grid: Grid) -> Iterator[Cell]:
    """The cells of a table that state something, by its row of the key."""
    if row["turned"] == "yes":
        width = max(map(len, grid))
        grid = [[line[column] for line in grid] for column in range(width)]
    rows = int(row["header"])
    names = [int(column) for column in row["names"].split()]
    for line in grid[rows:]:
        subject = " ".join(line[column] for column in names) or row["subject"]
        for column in map(int, row["states"].split()):
            if line[column].strip(" -–—") and subject:
                above = dict.fromkeys(head[column] for head in grid[:rows] if head[column])
                yield Cell(row["file"], subject, " ".join(above), line[column])


# Facts.


class Stated(NamedTuple):
    """A fact of a file: its ends and its evidence."""

    head: str
    tail: str
    evidence: str
    words: str


def list_facts(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, Stated]]:
    """The facts of the tables of some files."""
    settings = IngestSettings()
    for name in names:
        file = SourceFile(name, (folder / name).read_bytes())
        ending = name_ending(name)
        converted = None
        if ending in CONVERTED:
            (converted,) = convert_all([(ending, file.data)], 1)
        for record in read_records(name, file.data, settings, converted=converted):
            if not isinstance(record, Record):
                continue
            read = read_tables(Titled(record.text, record.title or "", record.blocks))
            cells = {block.start for block in record.blocks if block.kind == "cell"}
            for fact in read.facts:
                spans = read.claims[fact.claim].spans
                if not all(span.start in cells for span in spans[:1]):
                    continue
                shown = " | ".join(record.text[span.start : span.end] for span in spans)
                words = f"{fact.head} | {'not ' * fact.negated}{fact.relation} | {fact.tail}"
                yield name, Stated(fact.head, fact.tail, shown, words)


def list_words(text: str) -> list[str]:
    """The words of a text in small letters."""
    return re.findall(r"\w+", text.casefold())


def states(fact: Stated, cell: Cell) -> bool:
    """Whether a fact states a gold cell, or part of it."""
    head, subject = list_words(fact.head), list_words(cell.subject)
    tail, value = Counter(list_words(fact.tail)), Counter(list_words(cell.value))
    above, shown = Counter(list_words(cell.header)), Counter(list_words(fact.evidence))
    quality = tail <= above and value <= shown  # "Required: yes" makes its header the tail
    same = bool(tail) and (value <= tail or tail <= value or quality)
    return bool(head) and subject[: len(head)] == head and same and above <= shown


def covers(facts: Sequence[Stated], cell: Cell) -> bool:
    """Whether facts that state a cell together show all of its words, but those in brackets."""
    shown = {word for fact in facts for word in list_words(fact.evidence)}
    return bool(facts) and shown >= {*list_words(re.sub(r"\(.*?\)", "", cell.value))}


def main() -> None:
    """Prints the figures; with `--show` what was not found and what was not right."""
    options = read_options(
        __doc__,
        folder=FORM,
        limit="files",
        flags={"--show": "print cells without a fact and facts without a cell"},
    )
    with explain_faults(options.data, FORM):
        gold = read_gold(options.data)
        keyed = {row["file"] for row in read_tsv(KEY) if (options.data / row["file"]).is_file()}
        names = sorted({cell.file for cell in gold} or keyed)[: options.limit]
        gold = [cell for cell in gold if cell.file in names]
        stated = list(list_facts(options.data, names))
    facts = [(name, fact) for name, fact in stated if not KIND.search(fact.words)]
    by_head: dict[tuple[str, str], list[Stated]] = {}
    for name, fact in facts:
        by_head.setdefault((name, (list_words(fact.head) or [""])[0]), []).append(fact)
    found, right = 0, set()
    for cell in gold:
        place = (cell.file, (list_words(cell.subject) or [""])[0])
        stating = [fact for fact in by_head.get(place, ()) if states(fact, cell)]
        is_found = covers(stating, cell)
        found += is_found
        right.update((cell.file, fact) for fact in stating)
        if options.show and not is_found:
            print("MISSED", cell)
    for name, fact in facts if options.show else ():
        if (name, fact) not in right:
            print("WRONG", name, fact.words)
    correct = sum((name, fact) in right for name, fact in facts)
    figures = {
        "right": round(correct / len(facts), 3) if facts else 0.0,
        "found": round(found / len(gold), 3) if gold else 0.0,
        "cells": len(gold),
        "facts": len(facts),
        "kinds": len(stated) - len(facts),
        "files": len(names),
    }
    print_figures(figures, options.json)


if __name__ == "__main__":
    main()
