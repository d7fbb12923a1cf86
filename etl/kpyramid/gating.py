"""The evaluation floor: questions that a snapshot must answer well enough to become HEAD."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kpyramid.errors import InputError, IntegrityError, SettingsError
from kpyramid.keys import JsonValue, hash_bytes
from kpyramid.settings import Settings
from kpyramid.warehouse.layout import Warehouse

if TYPE_CHECKING:
    from kpyramid.evaluation.harness import Answers, Arm
    from kpyramid.evaluation.metrics import Metric
    from kpyramid.evaluation.questions import EvalQuestion

GATE = "floor"
_NAMED = 5
"""Questions that a verdict names."""


def require_floor(settings: Settings) -> None:
    """Passes when the questions of [evaluate] can be read, and its strategy and metrics exist.

    So that a build does not fail at its end for what could be said at its start.

    Raises:
        InputError: the file cannot be read, or the strategy is unknown.
        SettingsError: a metric is unknown or applies to none of the questions.
    """
    if settings.evaluate.questions is None:
        return
    questions, _ = _read(settings)
    metrics = _open_metrics()
    for name in settings.evaluate.floor:
        if name not in metrics:
            raise SettingsError(
                f"evaluate.floor: there is no metric {name!r}; there are {', '.join(metrics)}"
            )
        if not any(metrics[name].applies(question) for question in questions):
            raise SettingsError(
                f"evaluate.floor: {name} applies to none of the questions in "
                f"{settings.evaluate.questions}; take another metric, or other questions"
            )


def judge_floor(
    settings: Settings, warehouse: Warehouse, snapshot: str, head: str | None
) -> dict[str, str]:
    """The verdict on a snapshot that is written and not yet HEAD; none without questions.

    They are asked by rules: no language model is called while publishing. What fails names each
    metric that is too low, and the questions that HEAD answers better.

    Raises:
        InputError: as `require_floor`, or not one of the questions could be answered.
    """
    evaluate = settings.evaluate
    if evaluate.questions is None:
        return {}
    found = _answer(settings, warehouse, snapshot)
    means = {name: _average(found, name) for name in sorted(evaluate.floor)}
    refused = [name for name, mean in means.items() if _is_worse(name, mean, evaluate.floor[name])]
    if not refused:
        said = ", ".join(f"{name} = {mean:.4g}" for name, mean in means.items())
        return {GATE: f"pass: {said}, of {len(found.rows)} questions"}
    said = ", ".join(
        f"{name} = {means[name]:.4g} is {'above' if _falls(name) else 'below'} "
        f"evaluate.floor {evaluate.floor[name]}"
        for name in refused
    )
    lost = _name_lost(settings, warehouse, found, snapshot, head, refused)
    asked = f"{len(found.rows)} questions of {evaluate.questions}"
    return {GATE: f"fail: {said}, of {asked}; {lost}"}


def describe_floor(settings: Settings) -> list[JsonValue]:
    """What of the floor decides a verdict: the settings, and what the file says."""
    evaluate = settings.evaluate
    if evaluate.questions is None:
        return []
    _, data = _read(settings)
    floor: dict[str, JsonValue] = dict(sorted(evaluate.floor.items()))
    return [[evaluate.strategy, floor, hash_bytes(data)]]


def _read(settings: Settings) -> "tuple[list[EvalQuestion], bytes]":
    from kpyramid.evaluation.questions import read_questions

    path = Path(str(settings.evaluate.questions))
    _make_arm(settings)
    questions = read_questions(path)
    return questions, path.read_bytes()


def _make_arm(settings: Settings) -> "Arm":
    from kpyramid.evaluation.harness import parse_arm

    return parse_arm(settings.evaluate.strategy)


@cache
def _open_metrics() -> "Mapping[str, Metric]":
    from kpyramid.evaluation.measures import open_measures

    return open_measures()


def _answer(settings: Settings, warehouse: Warehouse, snapshot: str) -> "Answers":
    from kpyramid.evaluation.harness import answer_all
    from kpyramid.query import Snapshot

    questions, _ = _read(settings)
    opened = Snapshot(warehouse.snapshots / snapshot, settings.embed)
    wanted = {name: _open_metrics()[name] for name in settings.evaluate.floor}
    found = answer_all(questions, opened, [_make_arm(settings)], metrics=wanted)
    if found.stopped is not None:
        raise found.stopped
    return found


def _average(found: "Answers", metric: str) -> float:
    scores = [row.scores[metric] for row in found.rows if metric in row.scores]
    return sum(scores) / len(scores)


def _falls(metric: str) -> bool:
    """Whether less of a metric is better; its floor is then the most that it may have."""
    return _open_metrics()[metric].better == "lower"


def _is_worse(metric: str, score: float, other: float) -> bool:
    return score > other if _falls(metric) else score < other


def _name_lost(
    settings: Settings,
    warehouse: Warehouse,
    found: "Answers",
    snapshot: str,
    head: str | None,
    refused: Sequence[str],
) -> str:
    """The questions that HEAD scores better on by a metric that was refused."""
    if head is None:
        return "there is no HEAD to compare with"
    if head == snapshot:
        return "HEAD is this snapshot"
    try:
        before = {row.question.id: row.scores for row in _answer(settings, warehouse, head).rows}
    except (InputError, IntegrityError) as e:  # an older version built it, or it was removed
        return f"HEAD cannot be compared with: {e}"
    lost = [
        f"{row.question.id} ({' '.join(row.question.text.split())})"
        for row in found.rows
        if any(
            name in row.scores and _is_worse(name, row.scores[name], before[row.question.id][name])
            for name in refused
        )
    ]
    if not lost:
        return "HEAD answers none of them better"
    more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
    return f"HEAD answers better: {', '.join(lost[:_NAMED])}{more}"
