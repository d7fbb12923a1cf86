"""CaRB's scorer against cases worked out by hand, and against a published system's figures."""

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from sets.carb import OpenTuple, match_tuples, read_tuples, score_extractions

from kpyramid.errors import InputError
from tests.corpora import find_bench
from tests.rows import each_row

ROOT = Path(__file__).parent.parent


def row(text: str, confidence: float = 1.0) -> OpenTuple:
    """`subject | predicate | arg2 | …` as a tuple."""
    subject, predicate, *others = (part.strip() for part in text.split("|"))
    return OpenTuple(predicate, (subject, *others), confidence)


def match(gold: str, predicted: str) -> tuple[float, float]:
    ((scores,),) = match_tuples([row(gold)], [row(predicted)])
    return scores


@each_row("why, gold, predicted, precision, recall")
def test_tuples_are_compared_by_slots(
    why: str, gold: str, predicted: str, precision: str, recall: str
) -> None:
    expected = (float(Fraction(precision)), float(Fraction(recall)))
    assert match(gold, predicted) == pytest.approx(expected), why


def test_curve_and_area_are_those_worked_out_by_hand() -> None:
    gold = {"s": [row("a | r | b")], "t": [row("c | r | d")], "u": [row("e | r | f")]}
    predicted = {
        "s": [row("a | r | b", 0.9)],
        "t": [row("x | r | y", 0.5)],
        "other": [row("a|r|b")],
    }

    score = score_extractions(gold, predicted)

    # At 0.9: one extraction, precision 1, recall 1/3. At 0.5 the second shares one word of three.
    expected = ((0.5, 2 / 3, 4 / 9), (0.9, 1, 1 / 3))
    for point, wanted in zip(score.curve, expected, strict=True):
        assert point == pytest.approx(wanted)
    assert score.auc == pytest.approx(1 / 3 * 1 + 1 / 9 * (1 + 2 / 3) / 2)
    assert (score.precision, score.recall) == pytest.approx((2 / 3, 4 / 9))
    assert score.f1 == pytest.approx(8 / 15)
    assert score.threshold == 0.5


def test_gold_is_read_by_sentence_without_empty_last_fields(tmp_path: Path) -> None:
    file = tmp_path / "gold.tsv"
    file.write_text("s\tr\ta\tb\tc\nt\tr\ta\t\ns\tq\ta\tb \n\n", "utf-8")
    assert read_tuples(file) == {
        "s": [OpenTuple("r", ("a", "b", "c")), OpenTuple("q", ("a", "b"))],
        "t": [OpenTuple("r", ("a",))],
    }
    file.write_text("s\tr\ta\nonly a sentence\n", "utf-8")
    with pytest.raises(InputError, match=r"gold\.tsv, line 2: a sentence, a predicate"):
        read_tuples(file)


@pytest.mark.slow
def test_openie5_scores_as_published() -> None:
    find_bench("carb_dev")
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "carb.py"), "--reproduce", "--json"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "etl")},
    )
    figures = json.loads(done.stdout)
    shown = {name: f"{figures[name]:.3f}" for name in ("precision", "recall", "f1", "auc")}
    assert shown == {"precision": "0.526", "recall": "0.406", "f1": "0.458", "auc": "0.240"}
