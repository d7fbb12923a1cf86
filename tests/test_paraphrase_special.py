"""Special cases: what a longer noun phrase, or a thing's kind before a participle, still says."""

import pytest

from kpyramid.graph.synonyms.comparison import Comparer
from tests.planted import MemoEmbedder
from tests.rows import each_row


@pytest.fixture(scope="module")
def comparer() -> Comparer:
    return Comparer(MemoEmbedder())


@each_row("word")
def test_a_word_that_may_take_the_noun_back_makes_no_special_case(
    word: str, comparer: Comparer
) -> None:
    for noun in ("capital", "quaestor", "residence"):
        verdict = comparer.compare(f"is the {word} {noun} of", f"is the {noun} of")
        assert verdict.likeness == "different", noun


@each_row("one, other")
def test_neither_says_the_other(one: str, other: str, comparer: Comparer) -> None:
    assert comparer.compare(one, other).likeness == "different"
    assert comparer.compare(other, one).likeness == "different"


@each_row("one, other, turned")
def test_the_special_case_says_the_general_one(
    one: str, other: str, turned: bool, comparer: Comparer
) -> None:
    verdict, back = comparer.compare(one, other), comparer.compare(other, one)
    assert (verdict.likeness, verdict.turned) == ("narrower", turned)
    assert (back.likeness, back.turned) == ("broader", turned)
