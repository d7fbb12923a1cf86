"""The results of an evaluation: figures with intervals, comparisons, tables."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import fsum, isfinite, nan, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kpyramid.errors import InputError
from kpyramid.evaluation.harness import Answers, Arm, Row
from kpyramid.evaluation.metrics import BINS, band_confidence

# How sure a mean is, and whether one arm is better than another on the same questions.
#
# Everything depends on the values, the seed and the number of samples alone, not on the order of
# the questions.

Floats = npt.NDArray[np.float64]

_DRAWS = 10_000
LEVEL = 0.95
_EXACT = 14
"""Most differences for which all signs are tried: 2 ** 14 are no more than are drawn else."""
_CELLS = 2_000_000
"""Values drawn at a time, 16 MB: the peak does not grow with the number of questions."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean of `count` values with the bounds of its confidence interval."""

    mean: float
    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """The mean difference of `count` pairs, its interval, and its p-value."""

    difference: float
    low: float
    high: float
    p: float
    count: int


def bootstrap(values: Sequence[float] | Floats, seed: int, samples: int = _DRAWS) -> Interval:
    """The mean and its percentile bootstrap interval by scipy, widened for few values.

    Percentiles are too narrow by sqrt((n - 1) / n) and take the normal for Student's distribution;
    they are moved outwards by both, the expanded percentile interval of Hesterberg, "What Teachers
    Should Know About the Bootstrap" (The American Statistician 2015, §3.3). When all values are
    equal the interval is that one value, which is no proof that others cannot occur.

    Raises:
        ValueError: there is no value, or one is not a number.
    """
    row = np.sort(np.asarray(values, dtype=np.float64))
    count = len(row)
    if not count:
        raise ValueError("no interval of nothing: give at least one value")
    if np.isnan(row).any():
        raise ValueError("a value is not a number; leave out what does not apply")
    # Rounding may leave the values.
    mean = float(np.clip(fsum(row) / count, row[0], row[-1]))
    if row[0] == row[-1]:
        return Interval(mean, mean, mean, count)
    from scipy import special, stats

    tail = special.ndtr(sqrt(count / (count - 1)) * special.stdtrit(count - 1, (1 - LEVEL) / 2))
    interval = stats.bootstrap(
        (row,),
        np.mean,
        n_resamples=samples,
        batch=max(1, _CELLS // count),
        confidence_level=float(1 - 2 * tail),
        method="percentile",
        rng=seed,
    ).confidence_interval
    return Interval(mean, float(interval.low), float(interval.high), count)


def compare_paired(
    a: Sequence[float], b: Sequence[float], seed: int, samples: int = _DRAWS
) -> Comparison:
    """The mean difference of `a` and `b` on the same questions, in the same order.

    The interval is the bootstrap's of the differences. `p` is the two-sided sign-flip permutation
    test (Fisher; Good, "Permutation, Parametric and Bootstrap Tests of Hypotheses", 2005): if the
    arms were alike, each difference could have the other sign. Exact over all signs for 14
    differences or fewer, else over `samples` random ones, the observed signs included, so that p is
    never 0; by scipy. Questions without a difference do not change it.

    Raises:
        ValueError: there is no pair, the lengths differ, or a value is not a finite number.
    """
    differences = np.sort([x - y for x, y in zip(a, b, strict=True)])
    interval = bootstrap(differences, seed, samples)
    p, moved = 1.0, differences[differences != 0]
    if len(moved) > 1:
        from scipy import stats

        drawn = 2**_EXACT if len(moved) <= _EXACT else samples
        batch = max(1, _CELLS // len(moved))
        p = stats.permutation_test((moved,), np.sum, permutation_type="samples", vectorized=True,
                                   n_resamples=drawn, batch=batch, rng=seed).pvalue  # fmt: skip
    return Comparison(interval.mean, interval.low, interval.high, float(p), interval.count)


def correct_holm(chances: Sequence[float]) -> list[float]:
    """The p-values corrected for multiple testing, in the given order.

    Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of
    Statistics 1979: the smallest times their number, the next times one fewer, never falling.
    """
    order = np.argsort(chances, kind="stable")
    times = np.asarray(chances, dtype=np.float64)[order] * np.arange(len(chances), 0, -1)
    corrected = np.empty(len(chances))
    corrected[order] = np.maximum.accumulate(np.minimum(times, 1.0))
    return [float(p) for p in corrected]


SHARE = "layer_"
"""Prefix of the metric that counts the questions answered by a layer."""
SURE = 0.05
"""Significance level: arms differ where the corrected p-value is smaller."""
SEED = 0
SAMPLES = 2000
"""Draws of an interval or a test: its ends vary by a few per cent of its width."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric's mean over the questions of a group that it applies to, with its 95 % interval.

    `group` is empty for all questions, else `kind: open` or the like.
    """

    arm: str
    metric: str
    group: str
    questions: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Compared:
    """An arm's mean less the baseline's on the questions of both, and the p-value.

    `p` is that of this comparison alone, `p_holm` corrected for the number of the metric's arms.
    """

    arm: str
    baseline: str
    metric: str
    questions: int
    difference: float
    low: float
    high: float
    p: float
    p_holm: float


@dataclass(frozen=True, slots=True)
class Expense:
    """Cost of an arm's answers: of seconds the mean, the median and the 95th percentile."""

    arm: str
    questions: int
    failures: int
    calls: int
    tokens: int
    cost: float | None
    seconds: float
    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Band:
    """Answers of an arm with a confidence from `low` to `high`, and the share that is right.

    `stated` is their mean confidence; the 95 % interval is that of the share `right`.
    """

    arm: str
    low: float
    high: float
    answers: int
    stated: float
    right: float
    right_low: float
    right_high: float


class Results:
    """Answers with all figures about them; deterministic."""

    def __init__(self, answers: Answers, snapshot: str, *, baseline: str | None = None) -> None:
        """`baseline` is the arm that the others are compared with, by default the first.

        Raises:
            InputError: no arm is called so.
        """
        self.answers = answers
        self.snapshot = snapshot
        self.baseline = choose_baseline(answers.arms, baseline)

    @cached_property
    def rows_by_arm(self) -> Mapping[str, Sequence[Row]]:
        """The rows of each arm, in the order of the questions."""
        by_arm: dict[str, list[Row]] = {arm.name: [] for arm in self.answers.arms}
        for row in self.answers.rows:
            by_arm[row.arm.name].append(row)
        return by_arm

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that apply to any question, the shares of layers last."""
        used = dict.fromkeys(name for row in self.answers.rows for name in row.scores)
        return tuple(sorted(used, key=lambda name: name.startswith(SHARE)))

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """The figures of every arm, over all questions and over each group of several."""
        return tuple(
            self._measure(arm, metric, group, rows)
            for arm, arm_rows in self.rows_by_arm.items()
            for metric in self.metrics
            for group, rows in self._list_groups(arm_rows)
            if any(metric in row.scores for row in rows)
        )

    def find(self, arm: str, metric: str) -> Figure | None:
        """An arm's figure over all questions; None where the metric applies to none."""
        return self._overall.get((arm, metric))

    @cached_property
    def _overall(self) -> Mapping[tuple[str, str], Figure]:
        return {(f.arm, f.metric): f for f in self.figures if not f.group}

    @cached_property
    def comparisons(self) -> tuple[Compared, ...]:
        """The other arms compared with the baseline, question by question."""
        return tuple(compared for metric in self.metrics for compared in self._compare(metric))

    @cached_property
    def bands(self) -> tuple[Band, ...]:
        """Each arm's confidence and share of right answers, by tenths."""
        bands = []
        for arm, rows in self.rows_by_arm.items():
            pairs = [(row.question, row.answer) for row in rows]
            for index, band in band_confidence(pairs).items():
                stated, right = zip(*band, strict=True)
                share = bootstrap(right, SEED, SAMPLES)
                ends = (round(index / BINS, 3), round((index + 1) / BINS, 3))
                mean = fsum(stated) / len(stated)
                means = (mean, share.mean, share.low, share.high)
                bands.append(Band(arm, *ends, len(band), *means))
        return tuple(bands)

    @cached_property
    def expenses(self) -> tuple[Expense, ...]:
        """The cost of each arm."""
        return tuple(_add_up(arm, rows) for arm, rows in self.rows_by_arm.items() if rows)

    def _measure(self, arm: str, metric: str, group: str, rows: Sequence[Row]) -> Figure:
        scores = [row.scores[metric] for row in rows if metric in row.scores]
        interval = bootstrap(scores, SEED, SAMPLES)
        return Figure(arm, metric, group, len(scores), interval.mean, interval.low, interval.high)

    def _compare(self, metric: str) -> list[Compared]:
        """The comparisons with the baseline by one metric; answers without a score are left out."""
        scores = {arm: self._score_by_question(arm, metric) for arm in self.rows_by_arm}
        theirs, compared = scores.pop(self.baseline), {}
        for arm, mine in scores.items():
            if both := [key for key in mine if key in theirs]:
                pair = [mine[key] for key in both], [theirs[key] for key in both]
                compared[arm] = compare_paired(*pair, SEED, SAMPLES)
        corrected = correct_holm([c.p for c in compared.values()])
        return [
            Compared(arm, self.baseline, metric, c.count, c.difference, c.low, c.high, c.p, holm)
            for (arm, c), holm in zip(compared.items(), corrected, strict=True)
        ]

    def _score_by_question(self, arm: str, metric: str) -> dict[str, float]:
        return {
            row.question.id: row.scores[metric]
            for row in self.rows_by_arm[arm]
            if isfinite(row.scores.get(metric, nan))
        }

    @staticmethod
    def _list_groups(rows: Sequence[Row]) -> list[tuple[str, Sequence[Row]]]:
        groups: list[tuple[str, Sequence[Row]]] = [("", rows)]
        readings: Mapping[str, Callable[[Row], str]] = {
            "kind": lambda row: row.question.kind,
            "group": lambda row: row.question.group,
        }
        for name, read in readings.items():
            parts: dict[str, list[Row]] = defaultdict(list)
            for row in rows:
                parts[read(row)].append(row)
            if len(parts) > 1:
                groups += [(f"{name}: {key}", parts[key]) for key in sorted(parts) if key]
        return groups

    def build_tables(self) -> dict[str, pa.Table]:
        """The tables `answers`, `metrics`, `comparisons` and `expenses`.

        Only `expenses` has seconds and dollars, which differ from run to run; the others are
        functions of questions, snapshot, arms and the model's replies.
        """
        scores = {name: (pa.float64(), _read_score(name)) for name in self.metrics}
        return {
            "answers": _build_columns({**_ANSWERS, **scores}, self.answers.rows),
            "metrics": _build_rows([asdict(f) for f in self.figures], Figure),
            "comparisons": _build_rows([asdict(c) for c in self.comparisons], Compared),
            "expenses": _build_columns(_EXPENSES, self.answers.rows),
        }

    def to_dict(self) -> dict[str, Any]:
        """The results as plain values, a row per arm and metric."""
        stopped = self.answers.stopped
        return {
            "snapshot": self.snapshot,
            "questions": len(self.answers.questions),
            "arms": [describe_arm(arm) for arm in self.answers.arms],
            "baseline": self.baseline,
            "metrics": [asdict(f) for f in self.figures],
            "comparisons": [asdict(c) for c in self.comparisons],
            "bands": [asdict(b) for b in self.bands],
            "expenses": [asdict(e) for e in self.expenses],
            "failures": [
                {"question": r.question.id, "arm": r.arm.name, "reason": r.failure}
                for r in self.answers.failures
            ],
            "missing_documents": list(self.answers.missing),
            "stopped": str(stopped) if stopped else None,
        }


def choose_baseline(arms: Sequence[Arm], wanted: str | None) -> str:
    """The name of the arm that the others are compared with, by default the first.

    Raises:
        InputError: no arm is called so.
    """
    names = [arm.name for arm in arms]
    if wanted is not None and wanted not in names:
        raise InputError(f"no arm is called {wanted!r}; there are {'; '.join(names)}")
    return wanted or names[0]


def name_layer(row: Row) -> str:
    """The layer of an answer, `none` if there is no answer."""
    answer = row.answer
    return answer.layer if answer.layer and (answer.text or answer.choices) else "none"


def describe_arm(arm: Arm) -> dict[str, Any]:
    """The configuration of an arm."""
    return {
        "name": arm.name,
        "strategy": arm.strategy,
        "options": dict(arm.options),
        "reader": arm.reader,
    }


_TEXT, _TEXTS = pa.string(), pa.list_(pa.string())
_PLACE = {"source": _TEXT, "start": pa.int64(), "end": pa.int64(), "text": _TEXT}
_ITEM = dict.fromkeys(("key", "layer", "text"), _TEXT)
_Column = tuple[pa.DataType, Callable[[Row], object]]
_ANSWERS: Mapping[str, _Column] = {
    "question_id": (_TEXT, lambda row: row.question.id),
    "question": (_TEXT, lambda row: row.question.text),
    "kind": (_TEXT, lambda row: row.question.kind),
    "group": (_TEXT, lambda row: row.question.group),
    "gold": (pa.list_(_TEXTS), lambda row: row.question.answers),
    "gold_documents": (_TEXTS, lambda row: row.question.gold_documents),
    "arm": (_TEXT, lambda row: row.arm.name),
    "strategy": (_TEXT, lambda row: row.arm.strategy),
    "options": (_TEXT, lambda row: json.dumps(dict(row.arm.options), sort_keys=True)),
    "reader": (_TEXT, lambda row: row.arm.reader),
    "text": (_TEXT, lambda row: row.answer.text),
    "choices": (_TEXTS, lambda row: row.answer.choices),
    "layer": (_TEXT, lambda row: name_layer(row)),
    "confidence": (pa.float64(), lambda row: row.answer.confidence),
    "failure": (_TEXT, lambda row: row.failure),
    "trace": (_TEXTS, lambda row: [str(step) for step in row.answer.trace]),
    "context": (pa.list_(pa.struct(_ITEM)), lambda row: _pick(row.answer.context, _ITEM)),
    "evidence": (pa.list_(pa.struct(_PLACE)), lambda row: _pick(row.answer.evidence, _PLACE)),
}
"""The columns of `answers` besides the scores: types, and values of a row."""
_EXPENSES: Mapping[str, _Column] = {
    "question_id": _ANSWERS["question_id"],
    "arm": _ANSWERS["arm"],
    "calls": (pa.int64(), lambda row: row.answer.calls),
    "tokens": (pa.int64(), lambda row: row.answer.tokens),
    "cost": (pa.float64(), lambda row: row.answer.cost),
    "seconds": (pa.float64(), lambda row: row.answer.seconds),
}
_TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64()}


def _build_rows(rows: Sequence[Mapping[str, Any]], kind: type[Figure | Compared]) -> pa.Table:
    fields = [(name, _TYPES[of]) for name, of in kind.__annotations__.items()]
    return pa.Table.from_pylist(list(rows), schema=pa.schema(fields))


def _build_columns(columns: Mapping[str, _Column], rows: Sequence[Row]) -> pa.Table:
    listed = {name: pa.array(map(read, rows), kind) for name, (kind, read) in columns.items()}
    return pa.table(listed)


def _read_score(name: str) -> Callable[[Row], object]:
    return lambda row: row.scores.get(name)


def _pick(things: Sequence[object], names: Iterable[str]) -> list[dict[str, object]]:
    return [{name: getattr(thing, name) for name in names} for thing in things]


def _add_up(arm: str, rows: Sequence[Row]) -> Expense:
    costs = [row.answer.cost for row in rows]
    seconds = np.array([row.answer.seconds for row in rows if row.failure is None] or [0.0])
    return Expense(
        arm=arm,
        questions=len(rows),
        failures=sum(row.failure is not None for row in rows),
        calls=sum(row.answer.calls for row in rows),
        tokens=sum(row.answer.tokens for row in rows),
        cost=None if None in costs else round(sum(c for c in costs if c is not None), 9),
        seconds=round(float(seconds.mean()), 4),
        p50=round(float(np.percentile(seconds, 50)), 4),
        p95=round(float(np.percentile(seconds, 95)), 4),
    )
