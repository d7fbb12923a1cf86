"""The query module: what a serving team imports. It reads snapshots and changes nothing."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kpyramid.errors import InputError
from kpyramid.query.direct import ask_direct
from kpyramid.query.exact import ask_exact
from kpyramid.query.kaping import ask_kaping
from kpyramid.query.naive import ask_naive
from kpyramid.query.polyrag import ask_polyrag
from kpyramid.query.pyramid.snapshot import Snapshot, open_snapshot
from kpyramid.query.types import RULES, Answer, Evidence, Makers, Question

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
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]+")


def answer(
    question: str,
    snapshot: Snapshot,
    strategy: str = "polyrag",
    *,
    candidates: Sequence[str] = (),
    makers: Makers = RULES,
    **options: object,
) -> Answer:
    """The answer of one strategy; `options` are that strategy's keyword parameters.

    `candidates` are the options of a choice question, `makers` who takes the decisions.

    Raises:
        InputError: the question is empty, too long or no text, or the strategy or an option is
            unknown.
    """
    asked = Question(_clean(question, "the question"), tuple(candidates))
    for candidate in candidates:
        _clean(candidate, f"candidate {candidate!r}")
    if len(candidates) > MOST_CANDIDATES:
        raise InputError(f"{len(candidates)} candidates; at most {MOST_CANDIDATES} are told apart")
    if strategy not in STRATEGIES:
        raise InputError(f"unknown strategy {strategy!r}; there are {', '.join(STRATEGIES)}")
    started = time.monotonic()
    try:
        found = STRATEGIES[strategy](asked, snapshot, makers, **options)
    except TypeError as e:
        if "keyword argument" not in str(e):
            raise
        raise InputError(f"strategy {strategy}: {e}") from e
    return replace(found, question=asked.text, seconds=round(time.monotonic() - started, 4))


def _clean(text: str, what: str) -> str:
    """A text without control characters.

    Raises:
        InputError: nothing is left, it is too long, or it holds half a character.
    """
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


__all__ = ["STRATEGIES", "Answer", "Evidence", "Makers", "Snapshot", "answer", "open_snapshot"]
