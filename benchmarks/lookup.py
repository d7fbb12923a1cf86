"""How many plain questions the look-up answers from stored values, and how many it should not.

The questions of `benchmarks/lookup/NAME.jsonl` were written from stored facts before anything was
tuned: those with `answers` ask for a value, those without for one of a kind that cannot be (a
galaxy to be born in). `demo` is asked of a pyramid of `examples/demo/corpus`, `musique` of one of
the passages of musique100. Rows are in two halves by turns: the first may be looked at while rules
are made and weights fitted (`tuned`), the second is only measured (`unseen`).

`right`: the first value is one of the answers; `wrong_and_sure`: another value, given with a
probability of .5 or more; `brier`: the mean squared error of the probability of what comes first,
given or not. `--fit` writes the weights of a logistic model of all candidates of the first half to
`etl/kpyramid/query/lookup.json`.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from options import explain_faults, print_figures, read_options, report
from passages import build_pyramid
from sets import musique
from sklearn.linear_model import LogisticRegression

from kpyramid.query import Answer, Snapshot, answer
from kpyramid.query.analysis import analyse
from kpyramid.query.facts import gather_facts, match_candidates
from kpyramid.query.lookup import Candidate, look_up, state_instances

HERE = Path(__file__).parent
SETS = HERE / "lookup"
WEIGHTS = HERE.parent / "etl" / "kpyramid" / "query" / "lookup.json"
MEASURES = (
    *("left", "near", "kind", "proper", "prep"),
    *("confidence", "literal", "qualifier", "stored"),
)
NEGATIVES = 8
"""Wrong candidates of a question that the weights are fitted on, beside the right ones."""
SURE = 0.5
PASSAGES = 10
"""Passages for each question of a quick look."""


@dataclass(frozen=True)
class Row:
    """A question, its right values, and whether it may be looked at."""

    question: str
    answers: tuple[str, ...]
    tuned: bool


def read_rows(path: Path) -> list[Row]:
    """The questions of a file."""
    rows = map(json.loads, path.read_text("utf-8").splitlines())
    return [Row(r["question"], tuple(r["answers"]), at % 2 == 0) for at, r in enumerate(rows)]


def read_corpus(name: str, data: Path) -> Sequence[Mapping[str, str]]:
    """The texts that a set is asked about."""
    if name == "musique":
        with explain_faults(data, "musique100"):
            found = musique.read(data)
            if found is None:
                raise ValueError("no questions")
            return found.corpus
    path = HERE.parent / "examples" / "demo" / "corpus" / "passages.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def is_right(value: str, row: Row) -> bool:
    """Whether a value is one of the answers: by its normal form, or as a date or number."""
    return bool(value) and bool(match_candidates(value, row.answers))


def list_candidates(row: Row, snapshot: Snapshot) -> Iterator[list[Candidate]]:
    """The candidates of both layers, best first."""
    asked = analyse(row.question, snapshot)
    yield look_up(asked, state_instances(asked))
    yield look_up(asked, gather_facts(asked))


def fit(asked: Sequence[tuple[Row, Snapshot]]) -> dict[str, float]:
    """The weights of a logistic model of what speaks for candidates."""
    points, labels = [], []
    for row, snapshot in asked:
        for found in list_candidates(row, snapshot):
            usable = [one for one in found if not one.measures["unfounded"]]
            right = [one for one in usable if is_right(one.value, row)]
            wrong = [one for one in usable if one not in right][:NEGATIVES]
            for one in (*right[:2], *wrong):
                points.append([one.measures.get(name, 0.0) for name in MEASURES])
                labels.append(one in right)
    model = LogisticRegression(C=10.0, max_iter=5000).fit(np.array(points), labels)
    weights = dict(zip(MEASURES, model.coef_[0].round(2).tolist(), strict=True))
    report(f"Fitted on {len(labels)} candidates, {sum(labels)} of them right")
    return {"bias": round(float(model.intercept_[0]), 2), **weights}


def score(rows: Sequence[Row], answers: Sequence[Answer]) -> dict[str, Any]:
    """The figures of some questions."""
    pairs = list(zip(rows, answers, strict=True))
    plain = [(row, found) for row, found in pairs if row.answers]
    given = [(row, found, _first(found)) for row, found in pairs]
    wrong = [found for row, found, value in given if value and not is_right(value, row)]
    chances = [
        (found.confidence if value else 0.0) - is_right(value, row) for row, found, value in given
    ]
    return {
        "plain": len(plain),
        "right": sum(is_right(_first(found), row) for row, found in plain),
        "mismatches": len(rows) - len(plain),
        "wrong_and_sure": sum(one.confidence >= SURE for one in wrong),
        "mismatches_wrong_and_sure": sum(
            one.confidence >= SURE for row, one, value in given if value and not row.answers
        ),
        "brier": round(mean(x * x for x in chances), 4) if chances else 0.0,
        "seconds": round(mean(found.seconds for found in answers), 3) if answers else 0.0,
    }


def _first(found: Answer) -> str:
    return found.choices[0] if found.choices else found.text


def measure(options: Any, place: Path) -> dict[str, Any]:
    """The figures of each set and half."""
    sets: dict[str, tuple[list[Row], Snapshot]] = {}
    for path in sorted(SETS.glob("*.jsonl")):
        report(f"Building the pyramid of {path.stem}")
        most = options.limit and PASSAGES * options.limit
        snapshot = build_pyramid(read_corpus(path.stem, options.data)[:most], place / path.stem)
        sets[path.stem] = read_rows(path)[: options.limit], snapshot
    if options.fit:
        known = [(row, snapshot) for rows, snapshot in sets.values() for row in rows if row.tuned]
        source = "Fitted by benchmarks/lookup.py on the first half of the questions it asks."
        text = json.dumps({"source": source, "weights": fit(known)}, indent=1)
        WEIGHTS.write_text(f"{text}\n", "utf-8")
        return {"weights": json.loads(text)["weights"]}
    figures: dict[str, Any] = {}
    for name, (rows, snapshot) in sets.items():
        found = [answer(row.question, snapshot) for row in rows]
        for half, tuned in (("tuned", True), ("unseen", False)):
            part = [(r, a) for r, a in zip(rows, found, strict=True) if r.tuned is tuned]
            if part:
                figures[f"{name}_{half}"] = score([r for r, _ in part], [a for _, a in part])
    return figures


def main() -> None:
    options = read_options(
        __doc__,
        folder="musique100",
        limit="the first N questions of each set only, of pyramids of the first 10 N passages",
        flags={"--fit": "fit the weights and write them"},
        values={"--keep": "a folder for the pyramids, which are then not built twice"},
    )
    with tempfile.TemporaryDirectory(prefix="kpyramid-lookup-") as folder:
        print_figures(measure(options, Path(options.keep or folder)), options.json)


if __name__ == "__main__":
    main()
