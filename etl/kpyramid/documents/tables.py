"""Tables of rows without a text field, written as text with a block per cell."""

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple

from kpyramid.documents.blocks import STATED, Block
from kpyramid.documents.cleaning import normalise_text
from kpyramid.settings import ColumnSettings

_MOST_ROWS, _MOST_CELLS = 1000, 100_000
"""Limits of one document: memory is bounded, and an edit invalidates one document."""
_PART = 700
"""Characters, some 200 tokens, after which the header is repeated, so that each chunk has it."""
_DEEPEST = 3


class Row(NamedTuple):
    """A row with its number in the file, its cells by column, and its access labels.

    `named`: whether the settings name the column of its subject.
    """

    number: int
    cells: Mapping[str, str]
    access: tuple[str, ...]
    named: bool


class Table(NamedTuple):
    """Rows as text: ` | ` between cells, a line per row, and the header before each part."""

    first: int
    last: int
    access: tuple[str, ...]
    text: str
    blocks: tuple[Block, ...]


def make_row(
    number: int, cells: Mapping[str, str], access: tuple[str, ...], settings: ColumnSettings | None
) -> Row:
    """A row with its columns renamed by the settings: to the subject's class and to properties."""
    if settings is None or settings.subject not in cells:
        return Row(number, cells, access, False)
    mapped: dict[str, str] = {}
    for column, cell in cells.items():
        is_subject = column == settings.subject
        name = (is_subject and settings.class_label) or settings.properties.get(column, column)
        mapped[name] = "; ".join(filter(None, (mapped.get(name), cell)))
    return Row(number, mapped, access, True)


def write_tables(rows: Iterable[Row], settings: ColumnSettings | None = None) -> Iterator[Table]:
    """The rows in order, in tables of bounded size whose rows have the same access labels.

    The header of the column that the settings name as subject has level 2, or level 3 where it
    is the subject's class.
    """
    subject = ("", 1)
    if settings is not None:
        named = settings.class_label
        subject = (named, 3) if named else (settings.subject, 2)
    held: list[Row] = []
    columns: dict[str, None] = {}
    for row in rows:
        wide = columns | dict.fromkeys(row.cells)
        full = len(held) == _MOST_ROWS or len(wide) * (len(held) + 1) > _MOST_CELLS
        differs = held and (row.access, row.named) != (held[0].access, held[0].named)
        if held and (full or differs):
            yield _write_table([*columns], held, subject)
            held, wide = [], dict.fromkeys(row.cells)
        held.append(row)
        columns = wide
    if held:
        yield _write_table([*columns], held, subject)


def _write_table(columns: Sequence[str], rows: Sequence[Row], subject: tuple[str, int]) -> Table:
    text: list[str] = []
    blocks: list[Block] = []
    position = 0
    label, depth = subject if rows[0].named else ("", 1)

    def add(cells: Iterable[str], row: int, ending: str) -> None:
        nonlocal position
        for column, cell in enumerate(cells):
            mark = " | " if column else ""
            position += len(mark)
            if cell:
                level = 0 if row else depth if cell == label else 1
                blocks.append(Block("cell", position, position + len(cell), level, row, column))
            text.extend((mark, cell))
            position += len(cell)
        text.append(ending)
        position += len(ending)

    header = sum(len(column) + 3 for column in columns)
    begin = number = 0
    for row in rows:
        if not number or position - begin > max(_PART, 4 * header):
            if number:
                add((), 0, "\n")
            begin, number = position, 1
            add(columns, 0, "\n")
        add((row.cells.get(column, "") for column in columns), number, "\n")
        number += 1
    whole = "".join(text).rstrip("\n")
    return Table(rows[0].number, rows[-1].number, rows[0].access, whole, tuple(blocks))


def write_statements(
    statements: Iterable[tuple[str, str, str, str, str]],
) -> Iterator[tuple[str, Table]]:
    """Statements of data, a line each, in tables of bounded size, each with its graph.

    A statement is graph, subject, relation, value, and the value's kind.
    """
    for graph, stated in groupby(statements, key=itemgetter(0)):
        first = 1
        while some := [*islice(stated, _MOST_ROWS)]:
            text: list[str] = []
            blocks: list[Block] = []
            position, begin, before = 0, 0, some[0][1]
            for row, (_, subject, relation, value, kind) in enumerate(some):
                if subject != before or position - begin > _PART:  # texts are cut at blank lines
                    text.append("\n")
                    position, before = position + 1, subject
                    begin = position
                for column, cell in enumerate((subject, relation, value)):
                    level = STATED.index(kind if column == 2 else "text")
                    end = position + len(cell)
                    blocks.append(Block("cell", position, end, level, row, column))
                    text.extend((cell, "\n" if column == 2 else " | "))
                    position = end + len(text[-1])
            last = first + len(some) - 1
            yield graph, Table(first, last, (), "".join(text).rstrip("\n"), tuple(blocks))
            first = last + 1


def read_cells(row: Mapping[str, object]) -> tuple[dict[str, str], list[str]]:
    """The cells of a row by column, and the columns whose values are no cells.

    The fields of an object become columns; the values of a list are joined by semicolons.
    """
    cells: dict[str, str] = {}
    left: list[str] = []
    waiting: list[tuple[str, object, int]] = [(name, row[name], 0) for name in reversed([*row])]
    while waiting:
        name, value, depth = waiting.pop()
        if isinstance(value, Mapping) and depth < _DEEPEST:
            inner = ((f"{name} {key}", value[key], depth + 1) for key in reversed([*value]))
            waiting.extend(inner)
            continue
        values = value if isinstance(value, list | tuple) else [value]
        if any(isinstance(item, Mapping | list | tuple | bytes) for item in values):
            left.append(name)
        else:
            cells[" ".join(normalise_text(name).split())] = "; ".join(map(write_cell, values))
    return cells, left


def write_cell(value: object) -> str:
    """A value as text on one line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()
    lines = normalise_text(str(value)).split("\n")
    return "; ".join(words for line in lines if (words := " ".join(line.split())))


def name_columns(cells: Sequence[object]) -> list[str]:
    """The names of the columns of a header row; a column without a name is numbered."""
    return [write_cell(cell) or f"Column {number}" for number, cell in enumerate(cells, 1)]
