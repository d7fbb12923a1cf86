"""What people think of answers: ratings from a CSV file, and their agreement."""

import csv
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import fsum, isfinite
from pathlib import Path
from typing import Literal

from kpyramid.errors import InputError

Level = Literal["nominal", "ordinal", "interval"]
Unit = tuple[str, str]
"""What is rated: the answer of an arm to a question."""

FIELDS: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "question_id", "id"),
    "arm": ("arm", "strategy", "system"),
    "rater": ("rater", "annotator", "judge"),
    "score": ("score", "rating"),
    "comment": ("comment", "note", "remark"),
}
"""Under which names a column may stand; all but the comment are needed."""
_SURPLUS = "\n"
"""Where the reader puts fields beyond the header: no column is called so."""
_SHOWN = 20
"""Problems that one message lists; of more it gives the number."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The lowest and the highest score, for example 1 and 5, or HyKGE's -1 and 1 (§5.1.5)."""

    low: float = 1.0
    high: float = 5.0


@dataclass(frozen=True, slots=True)
class Rating:
    """One rater's score of one arm's answer; `rater` is any sign that tells raters apart."""

    question: str
    arm: str
    rater: str
    score: float
    comment: str = ""

    @property
    def unit(self) -> Unit:
        """What was rated."""
        return self.question, self.arm


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far `raters` raters agree on the `units` answers that two or more of them rated.

    `alpha` is Krippendorff's for scores at equal distances. `kappa` is Cohen's, of exactly two
    raters. Both are 1 for full agreement and 0 for what chance would give, and None where every
    score is the same or no answer was rated twice: then nothing can be said.
    """

    raters: int
    units: int
    alpha: float | None
    kappa: float | None


def read_ratings(
    path: Path,
    questions: Collection[str],
    arms: Collection[str],
    scale: Scale | None = None,
) -> list[Rating]:
    """The ratings of a CSV file with a header, separated by comma, semicolon or tab.

    Raises:
        InputError: the file cannot be read, a column is missing, or rows are wrong: an unknown
            question or arm, a rater missing, a score that is no number or outside the scale, the
            same answer rated twice by one rater. All rows are checked before.
    """
    scale = scale or Scale()
    rows, columns = _read_rows(path)
    ratings: list[Rating] = []
    problems: list[str] = []
    seen: dict[tuple[str, str, str], int] = {}
    for line, row in rows:
        values = {name: (row.get(column) or "").strip() for name, column in columns.items()}
        found = list(_list_problems(values, frozenset(questions), frozenset(arms), scale))
        if row.get(_SURPLUS):
            found.append("more fields than the header; put quotes around text with the separator")
        key = values["question"], values["arm"], values["rater"]
        if not found and key in seen:
            found.append(f"the rater's second score of this answer, after line {seen[key]}")
        problems += [f"line {line}: {problem}" for problem in found]
        if not found:
            seen[key] = line
            ratings.append(Rating(*key, float(values["score"]), values.get("comment", "")))
    if problems:
        more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
        raise InputError("\n".join([f"{path}: correct these rows", *problems[:_SHOWN], *more]))
    if not ratings:
        raise InputError(f"{path}: no ratings below the header; give one a line")
    return ratings


def group_scores(ratings: Iterable[Rating]) -> dict[Unit, list[float]]:
    """The scores that each answer got, in the order of raters."""
    found: dict[Unit, list[float]] = defaultdict(list)
    for rating in sorted(ratings, key=lambda r: (r.unit, r.rater)):
        found[rating.unit].append(rating.score)
    return dict(found)


def measure_agreement(ratings: Sequence[Rating]) -> Agreement:
    """How far the raters agree on the same answers."""
    raters = sorted({rating.rater for rating in ratings})
    units = [scores for scores in group_scores(ratings).values() if len(scores) > 1]
    kappa = measure_kappa([(a, b) for a, b in units]) if len(raters) == 2 else None
    return Agreement(len(raters), len(units), measure_alpha(units, "interval"), kappa)


def measure_kappa(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Cohen's kappa of two raters, every difference counting alike.

    "A Coefficient of Agreement for Nominal Scales", Educational and Psychological Measurement
    1960. None when there is no pair or no score differs from another.
    """
    scores = sorted({score for pair in pairs for score in pair})
    if len(scores) < 2:
        return None
    from sklearn.metrics import cohen_kappa_score

    one, other = ([scores.index(pair[at]) for pair in pairs] for at in (0, 1))
    return float(cohen_kappa_score(one, other))


def measure_alpha(units: Sequence[Sequence[float]], level: Level = "interval") -> float | None:
    """Krippendorff's alpha: 1 - observed over expected disagreement, for any number of raters.

    "Computing Krippendorff's Alpha-Reliability" (2011). `units` hold the scores of each answer;
    those with fewer than two say nothing. `level` says what a difference weighs: nothing but
    being one, the ranks between, or the squared distance. None where nothing differs.
    """
    paired = [scores for scores in units if len(scores) > 1]
    weights: dict[tuple[float, float], float] = defaultdict(float)
    for scores in paired:
        for pair in permutations(scores, 2):
            weights[pair] += 1 / (len(scores) - 1)
    totals = Counter(score for scores in paired for score in scores)
    distance = _weigh_differences(totals, level)
    observed = fsum(weight * distance[pair] for pair, weight in weights.items())
    expected = fsum(totals[a] * totals[b] * distance[a, b] for a in totals for b in totals)
    if not expected:
        return None
    return 1 - (totals.total() - 1) * observed / expected


def _weigh_differences(totals: Counter[float], level: Level) -> dict[tuple[float, float], float]:
    """The squared difference of every two scores; of ranks, of the middle one of equal scores."""
    scores = sorted(totals)
    ranks: dict[float, float] = {}
    passed = 0.0
    for score in scores:
        ranks[score] = passed + totals[score] / 2
        passed += totals[score]
    found = {}
    for a in scores:
        for b in scores:
            if level == "nominal":
                found[a, b] = float(a != b)
            elif level == "ordinal":
                found[a, b] = (ranks[a] - ranks[b]) ** 2
            else:
                found[a, b] = (a - b) ** 2
    return found


def _read_rows(path: Path) -> tuple[list[tuple[int, dict[str, str | None]]], dict[str, str]]:
    """The rows with their line numbers, and under which name each field stands."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = file.readline()
            file.seek(0)
            mark = max(",;\t", key=header.count)
            reader = csv.DictReader(file, delimiter=mark, restkey=_SURPLUS, strict=True)
            names = {name.strip().lower(): name for name in reader.fieldnames or () if name}
            columns = {
                field: names[known[0]]
                for field, spellings in FIELDS.items()
                if (known := [name for name in spellings if name in names])
            }
            missing = [field for field in FIELDS if field not in columns and field != "comment"]
            if missing:
                raise InputError(
                    f"{path}: no column {', '.join(missing)}; the first line names the columns "
                    "question, arm, rater, score and, if wanted, comment"
                )
            return [(reader.line_num, row) for row in reader], columns
    except (OSError, UnicodeDecodeError, csv.Error) as e:
        raise InputError(f"{path}: {e}; give the ratings as a CSV file in UTF-8") from e


def _list_problems(
    values: Mapping[str, str], questions: Collection[str], arms: Collection[str], scale: Scale
) -> Iterable[str]:
    if values["question"] not in questions:
        yield f"question {values['question']!r} is not among those asked"
    if values["arm"] not in arms:
        yield f"arm {values['arm']!r} is not among {', '.join(sorted(arms))}"
    if not values["rater"]:
        yield "no rater; a letter or a number will do"
    try:
        score = float(values["score"])
    except ValueError:
        yield f"score {values['score']!r} is not a number"
        return
    if not (isfinite(score) and scale.low <= score <= scale.high):
        yield f"score {values['score']} is outside the scale from {scale.low:g} to {scale.high:g}"
