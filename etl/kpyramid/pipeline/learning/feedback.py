"""Feedback: questions with gold answers or ratings, read row by row; bad rows with the reason."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictInt, ValidationError

from kpyramid.documents.labels import RefusedError, read_labels
from kpyramid.documents.words import list_plain_words, normalise_name
from kpyramid.errors import InputError
from kpyramid.keys import content_id

MOST_BYTES = 200_000
"""Longest row; a trace of 500 facts has some 100,000 bytes."""
MOST_QUESTION, MOST_VALUE, MOST_VALUES = 1_000, 200, 20
"""Most characters of a question, of a value of its answer, and most values."""
MOST_QUOTED = 300
"""Characters of an unreadable row that are quoted with the reason."""
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
"""Text that gives instructions to a model, where a question or a value is expected."""
_YES, _NO = frozenset({"yes", "true"}), frozenset({"no", "false"})


@dataclass(frozen=True, slots=True)
class Feedback:
    """A question with a known answer: `values` are gold, or were rated good.

    `triples` were retrieved for it: by their ids in the graph of then, their words. `depth`,
    `confident`: where the search ended and how, None where the row does not say.
    """

    line: int
    question: str
    values: tuple[str, ...]
    phase: Phase
    source: str
    access: tuple[str, ...]
    triples: Mapping[str, str]
    depth: int | None
    confident: bool | None

    @property
    def key(self) -> str:
        """The hash of question, answer and labels."""
        labels = [list(self.access)] if self.access else []
        return content_id("experience", self.question, sorted(self.values), *labels)

    @property
    def topic(self) -> str:
        """The plain words of the question, by which rows are compared."""
        return " ".join(list_plain_words(self.question))

    @property
    def says(self) -> frozenset[str]:
        """The row's values, written as names are compared."""
        return frozenset(map(normalise_name, self.values))

    @property
    def is_yes(self) -> bool:
        """Whether the answer affirms the question."""
        return self.says <= _YES

    @property
    def is_no(self) -> bool:
        """Whether the answer denies the question."""
        return bool(self.says & _NO)

    def is_due(self, evolve_when: EvolveWhen, hops: int) -> bool:
        """Whether the graph is to evolve by this row.

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
    """A row that nothing can be learnt from; `reason` is short, for counting."""

    line: int
    reason: str
    detail: str


def read_feedback(path: Path) -> Iterator[Feedback | Unread]:
    """The rows of a file of JSON lines, each read by itself; bad rows as `Unread`.

    Raises:
        InputError: there is no such file, or it cannot be read.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _read_line(number, line)
    except OSError as e:
        raise InputError(f"{path}: {e.strerror or e}; give a file of JSON lines") from e


def _read_line(number: int, line: bytes) -> Feedback | Unread:
    try:
        if len(line) > MOST_BYTES:
            raise RefusedError("too_large", f"longer than {MOST_BYTES:,} bytes")
        row = json.loads(line.decode("utf-8-sig"))
        return _read_row(number, _Row.model_validate(row), read_labels(row))
    except RefusedError as e:
        return Unread(number, e.reason, e.detail)
    except ValidationError as e:
        first = e.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the row"
        return Unread(number, "malformed", f"{place}: {first['msg']}"[:MOST_QUOTED])
    except (ValueError, RecursionError) as e:
        return Unread(number, "malformed", str(e)[:MOST_QUOTED])


def _flatten(text: object) -> object:
    """A text in single spaces; half a surrogate pair is a ValueError."""
    return " ".join(text.encode().decode().split()) if isinstance(text, str) else text


def _list_texts(value: object) -> object:
    """The distinct texts of a value that is a text or a list; empty for null."""
    listed = value if isinstance(value, list) else [value]
    texts = [_flatten(each) for each in listed if each is not None]
    return [text for index, text in enumerate(texts) if text and text not in texts[:index]]


def _read_confidence(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value >= SURE
    known = {**dict.fromkeys(_YES, True), **dict.fromkeys(_NO, False)}
    if value is not None and (not isinstance(value, str) or value.casefold() not in known):
        raise ValueError("it is yes, no or a number")
    return known[value.casefold()] if isinstance(value, str) else None


_Text = Annotated[str, BeforeValidator(_flatten)]
_Texts = Annotated[tuple[str, ...], BeforeValidator(_list_texts)]


class _Retrieved(BaseModel):
    key: str
    words: _Text


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore")

    question: _Text = Field(min_length=1)
    gold: _Texts = ()
    answer: _Texts = ()
    options: _Texts = ()
    rating: Literal["good", "bad", "", None] = None
    source: _Text | None = None
    triples: tuple[_Retrieved, ...] | None = None
    depth: StrictInt | None = None
    confidence: Annotated[bool | None, BeforeValidator(_read_confidence)] = None


def _read_row(number: int, row: _Row, labels: tuple[str, ...]) -> Feedback:
    """The row.

    Raises:
        RefusedError: it says nothing that could be learnt.
    """
    if len(row.question) > MOST_QUESTION:
        raise RefusedError("too_large", f"a question of {len(row.question):,} characters")
    options = set(map(normalise_name, row.options))
    answer = row.answer
    parts = tuple(part.strip() for value in answer for part in value.split(";"))
    if not set(map(normalise_name, answer)) <= options >= set(map(normalise_name, parts)):
        answer = parts  # options that an answer lists, as answers to choice questions do: "A; B"
    if not row.gold and row.rating != "good":
        why = "rated bad" if row.rating == "bad" else "neither gold nor a rating"
        raise RefusedError("no_gold", f"{why}: the question alone states nothing")
    same = set(map(normalise_name, row.gold)) & set(map(normalise_name, answer))
    if row.gold and row.rating == "good" and not same:
        raise RefusedError("contradictory", "the answer is rated good and is not the gold one")
    values = row.gold or answer
    if not values:
        raise RefusedError("no_gold", "rated good, but without an answer")
    longest = max(map(len, values))
    if len(values) > MOST_VALUES or longest > MOST_VALUE:
        detail = f"{len(values)} values of up to {longest:,} characters"
        raise RefusedError("too_large", f"{detail}; an answer has {MOST_VALUES} of {MOST_VALUE}")
    strange = [value for value in values if normalise_name(value) not in options]
    if options and strange:
        raise RefusedError("no_option", f"{strange[0]!r} is none of the options")
    if instructing := [text for text in (row.question, *values) if _INSTRUCTING.search(text)]:
        raise RefusedError("instructs", f"it speaks to its reader: {instructing[0][:80]!r}")
    return Feedback(
        number,
        row.question,
        values,
        "gold" if row.gold else "rating",
        (row.source or "")[:MOST_VALUE],
        labels,
        {each.key: each.words for each in row.triples or ()},
        row.depth,
        row.confidence,
    )
