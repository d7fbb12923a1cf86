"""Access labels: read from the field `access`; fields with nearly that name are refused.

Everybody may read a document without labels. So a value that was meant as a label and cannot be
read as one is refused, and never treated as missing.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NoReturn

import yaml

FIELD = "access"
_MOST_SHOWN = 100


class RefusedError(ValueError):
    """These bytes, or this record, cannot become a document; `reason` is short, for counting."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def read_labels(row: Mapping[str, object]) -> tuple[str, ...]:
    """The access labels of a row, sorted; none where the field is missing, null or empty.

    Raises:
        RefusedError: `bad_access`; the name of a field, or of a field within another one, is
            nearly `access`, or the value is neither a list of labels nor labels between commas.
    """
    for name in _find_fields(row):
        detail = f"labels are read from the field {FIELD!r}, not from {name!r}"
        raise RefusedError("bad_access", f"{detail}: rename it, whatever it holds")
    value = row.get(FIELD)
    if value is None or value == "" or (isinstance(value, list | tuple) and not value):
        return ()
    given = value if isinstance(value, list | tuple) else [value]
    labels = value.split(",") if isinstance(value, str) else [_as_label(each) for each in given]
    if not all(label.strip() for label in labels) or labels[0].strip()[0] in "[{":
        detail = f"access = {str(value)[:_MOST_SHOWN]!r} names no label, or not only labels"
        raise RefusedError(
            "bad_access",
            f"{detail}: write a list of texts, or texts with commas between; nothing for a "
            "document that everybody may read",
        )
    return tuple(sorted({label.strip() for label in labels}))


def _as_label(value: object) -> str:
    """A label as text; a number becomes text, and any other value is empty."""
    is_label = isinstance(value, str | int) and not isinstance(value, bool)
    return str(value) if is_label else ""


def _find_fields(row: Mapping[str, object]) -> Iterator[str]:
    """The fields of a row that are nearly named `access`, and those within other fields."""
    yield from (name for name in row if name != FIELD and names_labels(name))
    left = [(name, value) for name, value in row.items() if name != FIELD]
    while left:  # no recursion: a row may be as deep as its parser allows
        place, value = left.pop()
        for name, inner in _list_pairs(value):
            if name and names_labels(name):
                yield f"{place}.{name}"
            left.append((f"{place}.{name}" if name else place, inner))


_WRITTEN = re.compile(r"""[{,]\s*[\\'"]*([^\\'"{}\[\]:=,\n]{1,60})[\\'"]*\s*[:=]""")


def _list_pairs(value: object) -> Iterable[tuple[str, object]]:
    """The names and values of an object, or of pairs in a list; other items have no name."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):  # an object written as a text
        yield from ((name, None) for name in _WRITTEN.findall(value))
    elif isinstance(value, Mapping):
        named = [value.get(key) for key in ("key", "name") if {"value", "values"} & {*value}]
        yield from ((name, None) for name in named if isinstance(name, str))
        yield from ((str(name), inner) for name, inner in value.items())
    elif isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
        yield value  # Arrow gives maps as pairs
    elif isinstance(value, list | tuple):
        yield from (("", item) for item in value)


# Whether a name is nearly `access`.

_LOOKALIKES = str.maketrans(
    {
        **dict.fromkeys("\u0430\u03b1\u0251\u0250\u1d00\u13aa\uab7a\u237a", "a"),
        **dict.fromkeys("\u0441\u03f2\u1d04\u2ca5\u0188\u0297\u13df\uabaf\u037b", "c"),
        **dict.fromkeys("\u0435\u03b5\u0454\u0259\u025b\u1d07\u04bd\uab32\u13ac\uab7c", "e"),
        **dict.fromkeys("\u0455\u03c3\u03c2\ua731\u01bd\u0282\u13da\uabaa\u0585", "s"),
    }
)
"""Letters of other scripts that look like a lower-case letter of the name."""
_DIGITS = str.maketrans("4@3€5$§¢", "aaeesssc")
"""Digits and signs that stand for a letter of the name."""
_WORDS = frozenset(
    "abbess abscess accede accedes accent accents accept accepts accessed accessor accost accuse "
    "accuses aces aches acmes acnes acres across actes actress adress assess caress cess chess "
    "cress excess recess success".split()
)
"""Words within two edits of the name: of simplemma's English dictionary, and of two neighbours."""
_AROUND = frozenset("doc document field fields file meta metadata record row".split())
_AFTER = frozenset("group groups label labels list lists role roles tag tags".split())
"""Words beside the name in fields with labels: `metadata_access`, `access_labels`."""
_PATH = re.compile(r"[./:>|\[\]\\]+|__")
_PARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\W_]+")


@lru_cache(maxsize=4096)
def names_labels(name: str) -> bool:
    """Whether a field of that name holds access labels or is nearly named so.

    Case, accents, marks, and letters that look alike make no difference. A name of one word may
    be two edits away, one of several words one: `accessed`, `accession`, `access_date` and
    `accessRights` are other names.
    """
    plain = unicodedata.normalize("NFKC", name)
    words = [word for part in _PARTS.split(plain) if (word := _fold(part))]
    joined = "".join(words)
    if len(joined) < 2 or joined in _WORDS:
        return False
    if _count_edits(joined) <= (2 if len(words) == 1 else 1):
        return True
    if _count_edits(_fold(plain.casefold().translate(_DIGITS))) <= 1:
        return True
    if len(words) > 1 and any(_fold(part) == FIELD for part in _PATH.split(plain)):
        return True
    return (_count_edits(words[-1]) <= 1 and _AROUND.issuperset(words[:-1])) or (
        _count_edits(words[0]) <= 1 and _AFTER.issuperset(words[1:])
    )


def _fold(text: str) -> str:
    """The letters of a text: lower case, no accents, lookalikes replaced by Latin letters."""
    plain = unicodedata.normalize("NFKD", text.casefold()).translate(_LOOKALIKES)
    return "".join(filter(str.isalpha, plain))


def _count_edits(word: str) -> int:
    """The letters to add, drop, replace or swap to turn a word into the name of the field."""
    if abs(len(word) - len(FIELD)) > 2:
        return len(FIELD)  # far away
    former: list[int] = []
    before = list(range(len(FIELD) + 1))
    for index, letter in enumerate(word):
        row = [index + 1]
        for to, wanted in enumerate(FIELD):
            edits = min(before[to + 1] + 1, row[to] + 1, before[to] + (letter != wanted))
            if index and to and letter == FIELD[to - 1] and word[index - 1] == wanted:
                edits = min(edits, former[to - 1] + 1)
            row.append(edits)
        former, before = before, row
    return before[-1]


# Fields at the head of a text: front matter, and blocks that resemble it.

_FRONT_MATTER = re.compile(
    r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE
)
_FENCE = re.compile(r"[\s>\u200b\u2060\ufeff]*(?P<mark>([-+=~`;*_.—–])\2+|—|–|<!-|\{)")
_IS = re.compile(r"[:=：→\t]|->")
_ASIDE = re.compile(r"\s*(?:\#|//|%|$)")
_MARKS = "\"'“”‘’`*{}[]<>?!;.|+-, \t"
_MOST_LINES = 40
"""Lines of a text among which a block of fields may begin."""
_LONGEST_NAME, _LONGEST_VALUE = 4, 6
"""Words of a line's name and value that make it a field and no sentence."""


def cut_front_matter(text: str) -> tuple[str, dict[str, object]]:
    """A Markdown text without the YAML between `---` and `---` at its head, and its fields.

    A head that is no mapping belongs to the text.

    Raises:
        RefusedError: `bad_access`; the head has `access` where it cannot be read.
    """
    match = _FRONT_MATTER.match(text)
    fields = _load_mapping(match[1]) if match else None
    if match is None or fields is None:
        refuse_fields(text)
        return text, {}
    lines = match[1].split("\n")
    stated = [row for row, line in enumerate(lines, 2) if names_labels(_read_name(line) or "")]
    if len(stated) > (FIELD in fields):
        _refuse(stated[-1], lines[stated[-1] - 2])
    rest = text[match.end() :]
    refuse_fields(rest, text[: match.end()].count("\n"))
    return rest, fields


def _load_mapping(text: str) -> dict[str, object] | None:
    """The YAML mapping, with values as texts, lists and mappings; None for other YAML."""
    try:
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
            return None  # of aliases a few lines make gigabytes
        loaded = yaml.load(text, yaml.BaseLoader)  # noqa: S506 - makes neither dates nor objects
    except (yaml.YAMLError, RecursionError):
        return None
    is_plain = isinstance(loaded, dict) and all(isinstance(name, str) for name in loaded)
    return loaded if is_plain else None


def refuse_fields(text: str, before: int = 0) -> None:
    """Checks that no block of fields at the head of a text has a field `access`.

    A block is enclosed in marks such as `---`, `+++` or a brace, closed or not, or begins the text
    without marks. Sentences between rules, and fields further down, are no blocks. `before`: the
    number of lines that were cut off, for the message.

    Raises:
        RefusedError: `bad_access`; the message names the line of the field.
    """
    lines = text.split("\n")
    row, is_first = 0, True
    while row < min(len(lines), _MOST_LINES):
        fence = _FENCE.match(lines[row])
        mark = fence["mark"][0] if fence else ""
        if fence:
            end, is_closed = _find_end(lines, row, mark)
            is_block = _holds_fields(lines[row + 1 : end])
            is_apart = (
                is_closed or not row or _ASIDE.match(lines[row - 1])
            )  # else a title's underline
            is_read = is_first or (is_block and is_apart and mark not in "`~")
        else:
            is_read = is_block = is_first and _read_name(lines[row]) is not None
            end = row
            while is_block and end + 1 < len(lines) and _read_name(lines[end + 1]):
                end += 1
        for number, line in enumerate(lines[row : end + 1] if is_read else (), before + row + 1):
            if any(map(names_labels, _list_names(line))) and (fence or _is_short(line)):
                _refuse(number, line)
        is_first = is_first and (bool(fence and is_block) or mark == "<" or not lines[row].strip())
        row = end + 1 if is_block or mark == "<" else row + 1


def _find_end(lines: list[str], start: int, mark: str) -> tuple[int, bool]:
    """The line that closes a block, and True; else its last line before a blank one, and False."""
    closing = {"<": "-->", "{": "}"}.get(mark, 2 * mark)
    for index in range(start + (mark != "<"), len(lines)):
        line = lines[index]
        if closing in line if mark == "<" else line.startswith(closing):
            return index, True
        if mark == "-" and line.rstrip() == "...":
            return index, True
    begun = False
    for index in range(start + 1, len(lines)):
        if begun and not lines[index].strip():
            return index, False
        begun = begun or bool(lines[index].strip())
    return len(lines), False


def _holds_fields(block: list[str]) -> bool:
    """Whether a block has a field, and else only fields, lists, comments and indented lines."""
    named = [_read_name(line) for line in block]
    return any(named) and all(
        name
        or not line.strip()
        or line[0].isspace()
        or _ASIDE.match(line)
        or line.startswith(("-", "}", "]"))
        for name, line in zip(named, block, strict=True)
    )


def _read_name(line: str) -> str | None:
    """The name of the field that a line sets; None for a sentence."""
    parts = _IS.split(line.lstrip(_MARKS + ":"), maxsplit=1)
    name = parts[0].strip(_MARKS)
    is_field = len(parts) > 1 and not name.startswith("#")
    return name if is_field and 0 < len(name.split()) <= _LONGEST_NAME else None


def _list_names(line: str) -> Iterator[str]:
    """The possible names of fields in a malformed line."""
    *parts, rest = _IS.split(line.lstrip(_MARKS + ":"))
    if line.lstrip().startswith("#"):
        return
    for part in parts:
        name = part.rpartition(",")[2].strip(_MARKS)
        yield from (name, name.rpartition(" ")[2])
    if not parts and len(rest.split()) <= _LONGEST_NAME:
        yield rest.partition(" ")[0].strip(_MARKS)


def _is_short(line: str) -> bool:
    """Whether the value of a line is as short as a label, and neither sentence nor address."""
    value = _IS.split(line.lstrip(_MARKS + ":"), maxsplit=1)[-1].strip()
    is_sentence = value.endswith((".", "!", "?")) or "://" in value
    return len(value.split()) <= _LONGEST_VALUE and not is_sentence


def _refuse(number: int, line: str) -> NoReturn:
    raise RefusedError(
        "bad_access",
        f"line {number} says {line.strip()[:_MOST_SHOWN]!r}: labels are read from {FIELD!r} in "
        "plain YAML between `---` and `---` at the head of a Markdown file, once; write it there, "
        "or give it another name",
    )
