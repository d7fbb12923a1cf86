"""The query module: what a serving team imports. It reads snapshots and changes nothing."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kpyramid.errors import InputError
from kpyramid.query.direct import ask_direct
from kpyramid.query.kaping import ask_kaping
from kpyramid.query.naive import ask_naive
from kpyramid.query.polyrag import ask_polyrag
from kpyramid.query.snapshot import Snapshot, open_snapshot
from kpyramid.query.types import RULES, Answer, Evidence, Makers, Question

STRATEGIES: Mapping[str, Callable[..., Answer]] = {
    "direct": ask_direct,
    "naive": ask_naive,
    "kaping": ask_kaping,
    "polyrag": ask_polyrag,
}


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
        InputError: the question is empty, or the strategy or an option is unknown.
    """
    if not question.strip():
        raise InputError("the question is empty; ask something")
    if strategy not in STRATEGIES:
        raise InputError(f"unknown strategy {strategy!r}; there are {', '.join(STRATEGIES)}")
    started = time.monotonic()
    try:
        asked = Question(question, tuple(candidates))
        found = STRATEGIES[strategy](asked, snapshot, makers, **options)
    except TypeError as e:
        if "keyword argument" not in str(e):
            raise
        raise InputError(f"strategy {strategy}: {e}") from e
    return replace(found, seconds=round(time.monotonic() - started, 4))


__all__ = ["STRATEGIES", "Answer", "Evidence", "Makers", "Snapshot", "answer", "open_snapshot"]
