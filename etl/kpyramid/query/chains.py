"""Chains rated against a question, and read: what a walk over the graph hands to a reader."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.decisions import Decisions
from kpyramid.query.facts import match_candidates
from kpyramid.query.paths import StatedPath, show_path
from kpyramid.query.types import Answer, Outcome, Reading, Step


@dataclass(frozen=True, slots=True)
class RatedPath:
    """A path, the value that it would give, and the chance that this answers the question.

    `choices` are the candidates that the value is.
    """

    path: StatedPath
    value: str
    chance: float
    choices: tuple[str, ...] = ()


def rate_paths(asked: QuestionAnalysis, paths: Sequence[StatedPath]) -> list[RatedPath]:
    """Paths that leave an entity of the question, with the chance of each, best first.

    The value of a path is its last entity.
    """
    if not paths:
        return []
    vectors = asked.snapshot.embed_all([path.statement for path in paths])
    cosines = (vectors @ asked.vector).tolist()
    rated = [
        RatedPath(path, path.names[-1], max(near, 0.0), _choose(path.names[-1], asked))
        for path, near in zip(paths, cosines, strict=True)
    ]
    return sorted(rated, key=lambda one: (-one.chance, one.path.statement))


def _choose(value: str, asked: QuestionAnalysis) -> tuple[str, ...]:
    return match_candidates(value, asked.candidates) if asked.candidates else ()


def read_paths(
    asked: QuestionAnalysis,
    rated: Sequence[RatedPath],
    which: str,
    decisions: Decisions,
    *,
    sufficient: float = 0.0,
) -> Answer:
    """The answer that a reader finds in paths, best first, with one step of the graph in its trace.

    Rules give the value of the best one where its chance is `sufficient`; a model reads them all.
    `which` says which paths they are.
    """
    items = tuple(show_path(one.path, asked.snapshot, round(one.chance, 6)) for one in rated)
    if not items:
        return Answer("", (), (), None, (), (Step("graph", Outcome.EMPTY, f"no path {which}"),))
    usable = [at for at, one in enumerate(rated) if one.choices or not asked.candidates]
    found = Reading("", (), 0.0, (), reason="no path gives one of the options")
    if usable and rated[usable[0]].chance >= sufficient:
        best, item = rated[usable[0]], items[usable[0]]
        choices = best.choices or (best.value,)
        found = Reading("; ".join(choices), choices, round(best.chance, 4), item.evidence)
    reading = decisions.read(asked, items, found)
    given = bool(reading.text or reading.choices)
    reason = f"{len(items)} paths {which}, the best of {rated[0].chance:.2f}"
    reason = reason if given else f"{reason}; {reading.reason or 'none of them answers it'}"
    outcome = Outcome.ANSWERED if given else Outcome.INSUFFICIENT
    step = Step("graph", outcome, reason, tuple(item.text for item in items), reading.confidence)
    places = tuple(dict.fromkeys(place for item in items for place in item.evidence))
    return Answer(
        reading.text,
        reading.choices,
        items,
        "graph",
        reading.evidence or places,
        (step,),
        confidence=reading.confidence,
        calls=reading.calls,
        tokens=reading.tokens,
        logprobs=reading.logprobs,
    )


def charge(answer: Answer, calls: int, tokens: int) -> Answer:
    """An answer with the calls and tokens of the walk that led to it."""
    return replace(answer, calls=answer.calls + calls, tokens=answer.tokens + tokens)
