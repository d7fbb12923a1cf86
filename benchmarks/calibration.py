"""How well the confidence of extracted facts holds, and the weights it is made of.

The logistic model of `kpyramid.extraction.facts.scoring` is fitted on CaRB's sentences: a fact is
right when at least half of its words stand in the same slot of some gold tuple (CaRB's own
comparison). To judge it, the sentences are parted in two halves by a hash, and each half is judged
with weights fitted on the other. `ece` is the expected calibration error over ten equal bins (Guo
et al., ICML 2017), `brier` the mean squared error, beside that of the bare share of right facts;
`ranking` is the chance that a right fact is surer than a wrong one. `carb_f1` and `carb_auc` are
the benchmark's with such a confidence, `..._unranked` with one confidence for all (its area is of
one straight line and flatters).

`--write` puts weights fitted on all sentences into the module; `drift` is how far the largest
weight there is from that.
"""

import hashlib
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from carb import FOLDER, PARSER, read_gold
from options import print_figures, read_options, refuse
from sets.carb import OpenTuple, match_tuples, score_extractions
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from kpyramid.extraction.facts import scoring
from kpyramid.extraction.facts.propositions import draft_propositions
from kpyramid.extraction.facts.scoring import apply_weights, list_values
from kpyramid.extraction.syntax.parser import Parser

MATCH = 0.5
"""Word precision with the best gold tuple from which a fact is right."""
RARE = 10
"""A value seen in fewer facts than this gets no weight."""
STRENGTH = 1.0
"""Of the penalty on squared weights, so that rare values stay near none."""
BINS = 10


@dataclass(frozen=True, slots=True)
class Case:
    """A fact with its measured values and whether gold has it."""

    sentence: str
    fact: OpenTuple
    values: Mapping[str, float]
    right: bool


def read_cases(data: Path, limit: int | None) -> tuple[dict[str, list[OpenTuple]], list[Case]]:
    """Gold by sentence, and all facts that are extracted from the sentences."""
    gold = read_gold(data, limit)
    cases = []
    for sentence, tree in zip(gold, Parser(PARSER).parse_all(gold), strict=True):
        for proposition, features in draft_propositions(tree):
            fact = OpenTuple(proposition.predicate, tuple(a.text for a in proposition.arguments))
            best = max(row[0][0] for row in match_tuples(gold[sentence], [fact]))
            cases.append(Case(sentence, fact, list_values(features), best >= MATCH))
    return gold, cases


def choose_half(sentence: str) -> int:
    return hashlib.sha256(sentence.encode()).digest()[0] % 2


def fit_weights(cases: Sequence[Case]) -> dict[str, float]:
    """Logistic weights, two decimals, by name, the bias first."""
    counts: dict[str, int] = {}
    for case in cases:
        for name in case.values:
            counts[name] = counts.get(name, 0) + 1
    names = sorted(
        name for name, count in counts.items() if count >= RARE and name not in {"bias", "resolved"}
    )
    if not names or len({case.right for case in cases}) < 2:
        refuse(f"{len(cases)} facts are too few to fit weights; give more sentences")
    matrix = np.array([[case.values.get(name, 0.0) for name in names] for case in cases])
    model = LogisticRegression(C=1 / STRENGTH, max_iter=1000)
    model.fit(matrix, np.array([case.right for case in cases]))
    weights = {"bias": float(model.intercept_[0])}
    weights |= {name: float(w) for name, w in zip(names, model.coef_[0], strict=True)}
    return {name: round(weight, 2) for name, weight in weights.items()}


def find_calibration(
    chances: Sequence[float], right: Sequence[bool]
) -> tuple[float, list[dict[str, float]]]:
    """The expected calibration error, and what each bin that is not empty holds."""
    bins: list[list[int]] = [[] for _ in range(BINS)]
    for at, chance in enumerate(chances):
        bins[min(int(chance * BINS), BINS - 1)].append(at)
    table = [
        {
            "facts": len(group),
            "confidence": round(statistics.fmean(chances[at] for at in group), 3),
            "right": round(statistics.fmean(right[at] for at in group), 3),
        }
        for group in bins
        if group
    ]
    error = sum(row["facts"] * abs(row["confidence"] - row["right"]) for row in table)
    return round(error / len(chances), 4), table


def judge(
    gold: Mapping[str, Sequence[OpenTuple]], cases: Sequence[Case], chances: Sequence[float]
) -> dict[str, Any]:
    """Calibration and ranking of the facts' chances, and CaRB's figures with them and without."""
    right = [case.right for case in cases]
    share = statistics.fmean(right)
    error, table = find_calibration(chances, right)
    predicted: dict[str, list[OpenTuple]] = {}
    for case, chance in zip(cases, chances, strict=True):
        fact = OpenTuple(case.fact.predicate, case.fact.arguments, round(chance, 4))
        predicted.setdefault(case.sentence, []).append(fact)
    score = score_extractions(gold, predicted)
    flat = score_extractions(
        gold,
        {
            sentence: [OpenTuple(fact.predicate, fact.arguments) for fact in facts]
            for sentence, facts in predicted.items()
        },
    )
    return {
        "facts": len(cases),
        "right": round(share, 4),
        "ece": error,
        "brier": round(
            statistics.fmean((c - r) ** 2 for c, r in zip(chances, right, strict=True)), 4
        ),
        "brier_of_share": round(share * (1 - share), 4),
        "ranking": round(float(roc_auc_score(right, chances)), 4),
        "carb_auc": round(score.auc, 4),
        "carb_auc_unranked": round(flat.auc, 4),
        "carb_f1": round(score.f1, 4),
        "carb_f1_unranked": round(flat.f1, 4),
        "bins": table,
    }


def measure(data: Path, limit: int | None, write: bool) -> dict[str, Any]:
    gold, cases = read_cases(data, limit)
    halves = [choose_half(case.sentence) for case in cases]
    crossed = [
        fit_weights([case for case, half in zip(cases, halves, strict=True) if half != held])
        for held in (0, 1)
    ]
    chances = [
        apply_weights(case.values, crossed[half]) for case, half in zip(cases, halves, strict=True)
    ]
    fitted = fit_weights(cases)
    known = scoring.WEIGHTS["propositions"]
    drift = max(abs(fitted.get(k, 0.0) - known.get(k, 0.0)) for k in {*fitted, *known})
    if write:
        write_weights("propositions", fitted)
    return judge(gold, cases, chances) | {"drift": round(drift, 2), "weights": fitted}


def write_weights(name: str, weights: Mapping[str, float]) -> None:
    """Replace one table of the package's weights."""
    path = Path(scoring.__file__).with_name("scoring.toml")
    head = path.read_text("utf-8").partition("\n")[0] + "\n"
    tables = {**scoring.WEIGHTS, name: weights}
    parts = (
        f"\n[{table}]\n" + "".join(f'"{trait}" = {weight}\n' for trait, weight in found.items())
        for table, found in tables.items()
    )
    path.write_text(head + "".join(parts), "utf-8")


def main() -> None:
    options = read_options(
        __doc__,
        folder=FOLDER,
        limit="the first N sentences only",
        flags={"--write": "put the weights into the package"},
    )
    print_figures(measure(options.data, options.limit, options.write), options.json)


if __name__ == "__main__":
    main()
