"""Feedback: questions with gold answers or ratings, read row by row, and why a row says nothing."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kpyramid.documents.labels import RefusedError, read_labels
from kpyramid.documents.words import list_plain_words, normalise_name
from kpyramid.errors import InputError
from kpyramid.keys import JsonValue, content_id

MOST_BYTES = 200_000
"""Of a row: a trace of 500 facts has some 100,000."""
MOST_QUESTION, MOST_VALUE, MOST_VALUES = 1_000, 200, 20
"""Characters of a question and of a value of its answer, values of an answer."""
MOST_QUOTED = 300
"""Characters of a row that cannot be read which are kept with the reason."""
SURE = 0.5
"""Confidence, where it is a number, from which an answer counts as positive (Algorithm 1)."""

Phase = Literal["gold", "rating"]
"""Apprenticeship, where a gold answer is given, or Mastership, where users rate (3.3)."""
EvolveWhen = Literal["beyond_h", "nothing_retrieved", "always"]

_INSTRUCTING = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:instruction|previous|above|prior|prompt"
    r"|rule)|\bsystem prompt\b|\byou (?:must|are now|should)\b|\bas an? (?:ai|assistant)\b"
    r"|</?(?:data|system|user|assistant)\b|\b(?:system|assistant|user)\s*:",
    re.IGNORECASE | re.DOTALL,
)
"""What speaks to a reader of the material, where a question or a value is expected."""
_YES, _NO = frozenset({"yes", "true"}), frozenset({"no", "false"})


@dataclass(frozen=True, slots=True)
class Retrieved:
    """A triple that was retrieved for a question: its id in the graph of then, and its words."""

    key: str
    words: str


@dataclass(frozen=True, slots=True)
class Feedback:
    """A question whose answer is known: `values` are gold, or were rated good.

    `given`: as it was written. `depth`, `confident`: where the search ended and how, None where
    the row does not say.
    """

    line: int
    question: str
    values: tuple[str, ...]
    phase: Phase
    source: str
    access: tuple[str, ...]
    triples: tuple[Retrieved, ...]
    depth: int | None
    confident: bool | None
    given: Mapping[str, JsonValue] = field(repr=False, default_factory=dict)

    @property
    def key(self) -> str:
        """The hash of question, answer and labels, the same however often it is given."""
        labels = [list(self.access)] if self.access else []
        return content_id("experience", self.question, sorted(self.values), *labels)

    @property
    def topic(self) -> str:
        """What rows are about that ask the same."""
        return " ".join(list_plain_words(self.question))

    @property
    def says(self) -> frozenset[str]:
        """Its values, written as names are compared."""
        return frozenset(map(normalise_name, self.values))

    @property
    def is_yes(self) -> bool:
        """Whether the question itself is said to hold."""
        return self.says <= _YES

    @property
    def is_no(self) -> bool:
        """Whether it is said not to hold."""
        return bool(self.says & _NO)

    def is_due(self, evolve_when: EvolveWhen, hops: int) -> bool:
        """Whether the graph is to evolve by it.

        `beyond_h`: confidence came beyond hop H, or never (Algorithm 1); `nothing_retrieved`: then,
        and when nothing was retrieved (3.2.2); `always` (3.3). A row that does not say how its
        search ended counts as one that ended without confidence.
        """
        beyond = not self.confident or self.depth is None or self.depth > hops
        if evolve_when == "beyond_h":
            return beyond
        return evolve_when == "always" or beyond or not self.triples


@dataclass(frozen=True, slots=True)
class Unread:
    """A row that says nothing that could be learnt; `reason` is short, for counting."""

    line: int
    reason: str
    detail: str
    given: JsonValue = None


def read_feedback(path: Path) -> Iterator[Feedback | Unread]:
    """The rows of a file of JSON lines, each by itself: a bad one is refused, the others read.

    Raises:
        InputError: there is no such file, or it cannot be read.
    """
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(MOST_BYTES + 1):
                number += 1
                if len(line) > MOST_BYTES and not line.endswith(b"\n"):
                    quoted = line[:MOST_QUOTED].decode("utf-8", "replace")
                    while line and not line.endswith(b"\n"):
                        line = file.readline(MOST_BYTES)
                    detail = f"longer than {MOST_BYTES:,} bytes"
                    yield Unread(number, "too_large", detail, quoted)
                elif line.strip():
                    yield _read_line(number, line)
    except OSError as e:
        raise InputError(f"{path}: {e.strerror or e}; give a file of JSON lines") from e


def _read_line(number: int, line: bytes) -> Feedback | Unread:
    quoted = line[:MOST_QUOTED].decode("utf-8", "replace").rstrip()
    try:
        row = json.loads(line.decode("utf-8-sig"))
        if not isinstance(row, dict):
            return Unread(number, "malformed", f"{type(row).__name__}, no object", quoted)
        return _read_row(number, row)
    except (ValueError, RecursionError) as e:
        if isinstance(e, RefusedError):
            return Unread(number, e.reason, e.detail, quoted)
        return Unread(number, "malformed", str(e)[:MOST_QUOTED], quoted)


def _read_row(number: int, row: Mapping[str, JsonValue]) -> Feedback:
    """The row.

    Raises:
        RefusedError: it says nothing that could be learnt.
    """
    question = _flatten(_take_text(row, "question"))
    if not question:
        raise RefusedError("malformed", "no question")
    if len(question) > MOST_QUESTION:
        raise RefusedError("too_large", f"a question of {len(question):,} characters")
    rating = _take_text(row, "rating")
    if rating not in ("", "good", "bad"):
        raise RefusedError("malformed", f"rating = {rating!r}; it is good, bad or null")
    gold, answer = _take_values(row, "gold"), _part(_take_values(row, "answer"), row)
    if not gold and rating != "good":
        why = "rated bad" if rating == "bad" else "neither gold nor a rating"
        raise RefusedError("no_gold", f"{why}: the question alone states nothing")
    if (
        gold
        and rating == "good"
        and not {*map(normalise_name, gold)} & {*map(normalise_name, answer)}
    ):
        raise RefusedError("contradictory", "the answer is rated good and is not the gold one")
    values: tuple[str, ...] = gold or answer
    if not values:
        raise RefusedError("no_gold", "rated good, but without an answer")
    _require_values(row, values)
    if instructing := [text for text in (question, *values) if _INSTRUCTING.search(text)]:
        raise RefusedError("instructs", f"it speaks to its reader: {instructing[0][:80]!r}")
    return Feedback(
        number,
        question,
        values,
        "gold" if gold else "rating",
        _flatten(_take_text(row, "source"))[:MOST_VALUE],
        read_labels(row),
        _take_triples(row),
        _take_depth(row),
        _take_confidence(row),
        row,
    )


def _part(values: tuple[str, ...], row: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """The options that an answer lists, as answers to choice questions do: "A; B"."""
    parts = [part.strip() for value in values for part in value.split(";")]
    options = {normalise_name(option) for option in _take_values(row, "options")}
    whole = all(normalise_name(value) in options for value in values)
    return values if whole or not {*map(normalise_name, parts)} <= options else tuple(parts)


def _require_values(row: Mapping[str, JsonValue], values: tuple[str, ...]) -> None:
    long = max(values, key=len)
    if len(values) > MOST_VALUES or len(long) > MOST_VALUE:
        detail = f"{len(values)} values of up to {len(long):,} characters"
        raise RefusedError("too_large", f"{detail}; an answer has {MOST_VALUES} of {MOST_VALUE}")
    options = {normalise_name(option) for option in _take_values(row, "options")}
    strange = [value for value in values if normalise_name(value) not in options]
    if options and strange:
        raise RefusedError("no_option", f"{strange[0]!r} is none of the options")


def _take_text(row: Mapping[str, JsonValue], name: str) -> str:
    value = row.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise RefusedError("malformed", f"{name} holds {type(value).__name__}, no text")
    value.encode("utf-8")  # half a surrogate pair is a ValueError
    return value


def _take_values(row: Mapping[str, JsonValue], name: str) -> tuple[str, ...]:
    """A text, or several in a list, each once; none for null."""
    value = row.get(name)
    listed = value if isinstance(value, list) else [value]
    if not all(isinstance(each, str | None) for each in listed):
        raise RefusedError("malformed", f"{name} holds something that is no text")
    texts = [_flatten(each) for each in listed if isinstance(each, str)]
    for text in texts:
        text.encode("utf-8")
    return tuple(dict.fromkeys(text for text in texts if text))


def _take_triples(row: Mapping[str, JsonValue]) -> tuple[Retrieved, ...]:
    value = row.get("triples")
    found = []
    for each in value if isinstance(value, list) else [] if value is None else [value]:
        key, words = (each.get(n) for n in ("key", "words")) if isinstance(each, dict) else (0, 0)
        if not isinstance(key, str) or not isinstance(words, str):
            raise RefusedError("malformed", "triples is no list of objects with key and words")
        found.append(Retrieved(key, _flatten(words)))
    return tuple(found)


def _take_depth(row: Mapping[str, JsonValue]) -> int | None:
    value = row.get("depth")
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise RefusedError("malformed", f"depth = {value!r} is no whole number")
    return value


def _take_confidence(row: Mapping[str, JsonValue]) -> bool | None:
    value = row.get("confidence")
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value >= SURE
    if isinstance(value, str) and value.casefold() in _YES | _NO:
        return value.casefold() in _YES
    raise RefusedError("malformed", f"confidence = {value!r}; it is yes, no or a number")


def _flatten(text: str) -> str:
    return " ".join(text.split())
