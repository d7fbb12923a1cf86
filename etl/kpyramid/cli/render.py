"""The result of a command, and the renderer that prints it as JSON object or words."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import RenderableType

from kpyramid.cli.console import CONTROL, laid_out, name_origin, out, shorten
from kpyramid.errors import PyramidError
from kpyramid.keys import to_plain

_ROWS = 20
"""Most rows of a list in words."""
_WIDE = 100
"""Most characters of a value in words, unless it has no blank, as ids for copying."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of a command: with --json its `values` are printed, else its `words`.

    Without words all values except `json_only` are listed. `notes`: sentences of advice; in the
    object only if there are any. `fault`: an error or exit code with which the command ends after
    printing.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    words: Iterable[RenderableType] | None = None
    json_only: Collection[str] = ()
    notes: Sequence[str] = ()
    fault: PyramidError | int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        notes = {"notes": [*self.notes]} if self.notes else {}
        return {**notes, **to_plain(self.values)}

    def show(self) -> Iterator[RenderableType]:
        """The result in words."""
        if self.words is not None:
            yield from self.words
            return
        plain: dict[str, Any] = to_plain(self.values)
        yield from describe({n: value for n, value in plain.items() if n not in self.json_only})


def name_values(
    *,
    words: Iterable[RenderableType] | None = None,
    json_only: Collection[str] = (),
    notes: Sequence[str] = (),
    fault: PyramidError | int | None = None,
    **values: Any,
) -> Result:
    """The result of a command, by the names in its JSON object."""
    return Result(values=values, words=words, json_only=json_only, notes=notes, fault=fault)


def to_json(value: object) -> str:
    """A command's object on one line.

    Control characters are escaped, and so is half a surrogate pair, which a raw reply of a model
    may contain and no UTF-8 can.
    """
    text = json.dumps(to_plain(value), ensure_ascii=False)
    return CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def print_result(result: Result) -> None:
    """Prints a result in words, then its notes; lines are not wrapped, other parts are laid out."""
    for part in (*result.show(), *result.notes):
        (out if isinstance(part, str) else laid_out).print(part)


def describe(values: Mapping[str, Any]) -> Iterator[str]:
    """Named values in words: those that fit a line first, then lists and tables."""
    there = {name: each for name, each in values.items() if each not in (None, "", [], {}, ())}
    phrases = {n: each if isinstance(each, str) else phrase(each) for n, each in there.items()}
    short = {name: words for name, words in phrases.items() if words is not None}
    width = max(map(len, short), default=0)
    for name, words in short.items():
        yield f"{_label(name).ljust(width)}  {words}"
    for name, each in there.items():
        if name in short:
            continue
        if isinstance(each, Mapping):
            held = [{"": key, **_name_cells(inner)} for key, inner in each.items()]
            each = [each] if any(isinstance(x, list | tuple) for x in each.values()) else held
        yield f"{_label(name)}:"
        if any(map(_is_deep, each)):
            yield from list_blocks(each, "  ")
        elif all(isinstance(row, Mapping) for row in each):
            yield from name_first(lay_out(each), _ROWS + 1)
        else:
            lines = [row if isinstance(row, str) else phrase(row) or to_json(row) for row in each]
            yield from name_first(lines, _ROWS)


def _name_cells(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {"value": value}


def _is_deep(row: Any) -> bool:
    """Whether a row is a list of rows, or has a value that fits no cell."""
    held = row.values() if isinstance(row, Mapping) else [row]
    return any(phrase(each) is None for each in held)


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and len(value) > _WIDE


def list_blocks(rows: Sequence[Any], margin: str = "") -> Iterator[str]:
    """Each row with its plain values on a line and its other values below; places as text."""
    for number, row in enumerate(rows[:_ROWS], 1):
        if isinstance(row, list | tuple):
            yield f"{margin}{number}."
            yield from list_blocks(row, f"{margin}  ")
        elif not isinstance(row, Mapping):
            yield f"{margin}{row if isinstance(row, str) else phrase(row)}"
        elif row.keys() >= _PLACE:
            place = f"{row['source']}, characters {row['start']}-{row['end']}"
            yield f"{margin}{place}{name_origin(row.get('learnt', ''))}:"
            yield f"{margin}  {row['text']}"
        else:
            short = {n: each for n, each in row.items() if not _is_long(each)}
            plain = {name: words for name, each in short.items() if (words := phrase(each))}
            phrases = (f"{name.replace('_', ' ')} {words}" for name, words in plain.items())
            yield margin + ("  ".join(phrases) or "nothing")
            for name, each in row.items():
                if each and name not in plain:
                    yield f"{margin}  {_label(name)}:"
                    below = [each] if isinstance(each, Mapping | str) else each
                    yield from list_blocks(below, f"{margin}    ")
    if len(rows) > _ROWS:
        yield f"{margin}and {len(rows) - _ROWS} more; --json lists all"


_PLACE = {"source", "start", "end", "text"}
"""Fields of a place in a document."""


def _label(name: str) -> str:
    return (name[:1].upper() + name[1:]).replace("_", " ")


def phrase(value: Any) -> str | None:
    """A value in a few words; None if it is too long, or made of lists."""
    if _is_plain(value):
        return _show(value)
    if isinstance(value, Mapping):
        named = ((str(name).replace("_", " "), each) for name, each in value.items())
        parts = [f"{name} {_show(each)}" for name, each in named if _is_plain(each)]
    else:
        parts = [_show(each) for each in value if _is_plain(each)]
    words = ", ".join(parts)
    return words if len(parts) == len(value) and len(words) <= _WIDE else None


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, int | float | str)


def _show(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else shorten(str(value), _WIDE) if " " in str(value) else str(value)


def lay_out(rows: Iterable[Any], /, **headers: str) -> list[str]:
    """Rows as the lines of a table, headed by their fields' names or by `headers`.

    Fields without a value in any row are left out, unless they are in `headers`.
    """
    plain: list[dict[str, Any]] = [to_plain(row) for row in rows]
    names = [*dict.fromkeys(name for row in plain for name in row)]
    names = [
        n
        for n in names
        if n in headers or any(row.get(n) not in (None, "", [], {}) for row in plain)
    ]
    lines = [[headers.get(name, name.replace("_", " ")) for name in names]]
    lines += [[_show_cell(row.get(name)) for name in names] for row in plain]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines if names]


def _show_cell(value: object) -> str:
    words = phrase(value)
    return shorten(json.dumps(value, ensure_ascii=False), _WIDE) if words is None else words


def name_first(lines: Sequence[str], most: int) -> Iterator[str]:
    """The first of these lines, indented, and how many more there are."""
    yield from (f"  {line}" for line in lines[:most])
    if len(lines) > most:
        yield f"  and {len(lines) - most} more; --json lists all"


def count_things(number: int, noun: str) -> str:
    """A number with its noun: "1 row", "2 rows"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
