"""The query module: what a serving team imports. It reads snapshots and changes nothing."""

import inspect
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from kpyramid.errors import InputError
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.decisions import bound_confidence, choose_decisions
from kpyramid.query.direct import ask_direct
from kpyramid.query.exact import ask_exact
from kpyramid.query.kaping import ask_kaping
from kpyramid.query.naive import ask_naive
from kpyramid.query.polyrag import ask_polyrag
from kpyramid.query.pyramid.scopes import EVERYTHING, PUBLIC, Scope
from kpyramid.query.pyramid.snapshot import Snapshot, open_snapshot
from kpyramid.query.types import RULES, Answer, Backends, Evidence, Question

STRATEGIES: Mapping[str, Callable[..., Answer]] = {
    "direct": ask_direct,
    "naive": ask_naive,
    "kaping": ask_kaping,
    "exact": ask_exact,
    "polyrag": ask_polyrag,
}


MOST_WORDS, MOST_CHARACTERS, MOST_CANDIDATES = 500, 5_000, 100
"""What is read as one question: no benchmark's has more than 120 words. A longer text is a
document with a question in it; reading it to the end would cost seconds and answer nothing."""
MOST_SHOWN = 40
"""Characters of a wrong value that a message repeats."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]+")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_chance(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


_KINDS: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    **dict.fromkeys(("chunks", "triples"), ("a whole number, 1 or more", _is_count)),
    **dict.fromkeys(("sufficient", "floor"), ("a number from 0 to 1", _is_chance)),
    **dict.fromkeys(("mode", "by"), ("a string", lambda value: isinstance(value, str))),
    "a switch": ("True or False", lambda value: isinstance(value, bool)),
}
"""What a value of an option has to be, and how that is told."""


def answer(
    question: str,
    snapshot: Snapshot,
    strategy: str = "polyrag",
    *,
    candidates: Sequence[str] = (),
    backends: Backends = RULES,
    **options: object,
) -> Answer:
    """The answer of one strategy; `options` are that strategy's keyword parameters.

    `candidates` are the options of a choice question, `backends` who takes the decisions.

    Raises:
        InputError: the question or a candidate is empty, too long or no text, or the strategy, the
            snapshot, the backends or an option is none that there is.
    """
    asked = Question(_clean(question, "the question"), _read_candidates(candidates))
    if strategy not in STRATEGIES:
        raise InputError(f"unknown strategy {_cut(strategy)}; there are {', '.join(STRATEGIES)}")
    if not isinstance(snapshot, Snapshot):
        raise InputError(f"snapshot = {_cut(snapshot)}: pass what open_snapshot(ref, root) returns")
    if not isinstance(backends, Backends):
        raise InputError(
            f"backends = {_cut(backends)}: pass a Backends, or leave it out to ask no model"
        )
    check_options(strategy, options)
    started = time.monotonic()
    analysis, decisions = QuestionAnalysis(asked, snapshot), choose_decisions(backends)
    found = STRATEGIES[strategy](analysis, decisions, **options)
    found = bound_confidence(analysis, found, decisions)
    hidden = f"searched: {seen}" if (seen := snapshot.view.describe()) else ""
    return replace(
        found,
        question=asked.text,
        recognised=(*found.recognised, hidden) if hidden else found.recognised,
        seconds=round(time.monotonic() - started, 4),
    )


def _read_candidates(candidates: object) -> tuple[str, ...]:
    """The options as they were given, each once: two spellings of one are one."""
    if isinstance(candidates, str | bytes) or not isinstance(candidates, Iterable):
        raise InputError(
            f"candidates = {_cut(candidates)}: pass a sequence of strings, or () for an open "
            "question; one candidate is written (candidate,)"
        )
    given = tuple(candidates)
    if len(given) > MOST_CANDIDATES:
        raise InputError(f"{len(given)} candidates; at most {MOST_CANDIDATES} are told apart")
    options: dict[str, str] = {}
    for candidate in given:
        plain = _clean(candidate, f"candidate {_cut(candidate)}")
        options.setdefault(" ".join(plain.split()).casefold(), candidate)
    return tuple(options.values())


def check_options(strategy: str, options: Mapping[str, object]) -> None:
    """That a strategy has these parameters, and that each value is of its kind.

    What a parameter means beyond that is the strategy's to check.
    """
    known = [name for name, taken in inspect.signature(STRATEGIES[strategy]).parameters.items()
             if taken.kind is taken.KEYWORD_ONLY]  # fmt: skip
    for name, value in options.items():
        if name not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise InputError(f"strategy {strategy} has no option {_cut(name)}; {takes}")
        wants, is_so = _KINDS.get(name, _KINDS["a switch"])
        if not is_so(value):
            raise InputError(f"{name} = {_cut(value)}: pass {wants}")


def _cut(value: object) -> str:
    """A value as a message shows it: never more of it than a reader wants to see."""
    shown = repr(value)
    return shown if len(shown) <= MOST_SHOWN else f"{shown[:MOST_SHOWN]}..."


def _clean(text: object, what: str) -> str:
    """A text without control characters.

    Raises:
        InputError: it is no string, nothing is left, it is too long, or it holds half a character.
    """
    if not isinstance(text, str):
        raise InputError(f"{what} is of type {type(text).__name__}; pass a string")
    plain = _CONTROL.sub(" ", text).strip()
    if not plain:
        raise InputError(f"{what} is empty")
    words = len(plain.split())
    if words > MOST_WORDS or len(plain) > MOST_CHARACTERS:
        raise InputError(
            f"{what} has {words:,} words and {len(plain):,} characters; at most {MOST_WORDS} words "
            f"and {MOST_CHARACTERS:,} characters are read. Ask in fewer words; a text to be "
            "searched belongs into the corpus"
        )
    half = next((at for at, c in enumerate(plain) if "\ud800" <= c <= "\udfff"), None)
    if half is not None:
        raise InputError(f"{what} is no text: character {half + 1} is half of one (a surrogate)")
    return plain


__all__ = [
    "EVERYTHING",
    "PUBLIC",
    "STRATEGIES",
    "Answer",
    "Backends",
    "Evidence",
    "Scope",
    "Snapshot",
    "answer",
    "open_snapshot",
]
