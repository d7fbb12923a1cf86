"""Examples: sentences with their values, from which the reader learns."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kpyramid.errors import InputError


@dataclass(frozen=True, slots=True)
class Words:
    """A stretch of text as written: characters `start` to `end`, end exclusive."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Value:
    """One value of one property of one individual, as a text states it.

    It is not yet checked against domain and range, nor linked. `evidence` covers at least both
    ends: the sentence or passage for a reviewer. `confidence`: 0 to 1.
    """

    property_iri: str
    subject: Words
    object: Words
    evidence: Words
    confidence: float
    producer: str


# The file of examples, `NAME.examples.jsonl`.

_FORM = '{"text": "…", "triples": [{"sub": "…", "rel": "label of a property", "obj": "…"}]}'


@dataclass(frozen=True, slots=True)
class Example:
    """A text and the values it states: subject, property (label or IRI), object.

    `is_complete`: its author says that the text states no other value of the ontology.
    """

    text: str
    triples: tuple[tuple[str, str, str], ...]
    is_complete: bool = True


def read_examples(path: Path) -> tuple[Example, ...]:
    """The examples of a file, one JSON object a line; see `parse_examples`.

    Raises:
        InputError: the file cannot be read, or a line is no example.
    """
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(f"{path}: cannot be read as UTF-8 text: {e}") from e
    return parse_examples(lines, source=str(path))


def parse_examples(lines: Iterable[str], *, source: str) -> tuple[Example, ...]:
    """The examples of lines of JSON; lines about the same text are one example.

    A line has `text` (or `sent`) and `triples` with `sub`, `rel` and `obj`, or one triple in
    `sub_label`, `rel_label` and `obj_label`; a text whose lines hold single triples may state more.

    Raises:
        InputError: a line is no example; names the first and how many.
    """
    by_text: dict[str, tuple[list[tuple[str, str, str]], bool]] = {}
    problems: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            text, triples, is_complete = _read_line(line)
        except ValueError as e:
            problems.append(f"line {number}: {e}")
            continue
        known, was_complete = by_text.get(text, ([], True))
        known += [triple for triple in triples if triple not in known]
        by_text[text] = (known, was_complete and is_complete)
    if problems:
        more = f" ({len(problems)} such lines)" if len(problems) > 1 else ""
        raise InputError(f"{source}, {problems[0]}{more}; write each line as {_FORM}")
    return tuple(Example(text, tuple(rows), whole) for text, (rows, whole) in by_text.items())


def _read_line(line: str) -> tuple[str, list[tuple[str, str, str]], bool]:
    row = json.loads(line)
    if not isinstance(row, Mapping):
        raise ValueError("no JSON object")
    text = row.get("text", row.get("sent"))
    if not isinstance(text, str) or not text.strip():
        raise ValueError("no sentence under 'text'")
    if "triples" not in row and "rel_label" in row:
        return text, [_read_triple(row, "_label")], False
    triples = row.get("triples")
    if not isinstance(triples, list):
        raise ValueError("no list under 'triples'")
    return text, [_read_triple(triple, "") for triple in triples], True


def _read_triple(row: object, ending: str) -> tuple[str, str, str]:
    names = [part + ending for part in ("sub", "rel", "obj")]
    values = [row.get(name) if isinstance(row, Mapping) else None for name in names]
    for name, value in zip(names, values, strict=True):
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"no text under {name!r} of a triple")
    subject, relation, value = map(str, values)
    return subject, relation, value
