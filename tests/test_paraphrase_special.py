"""Special cases: what a longer noun phrase, or a thing's kind before a participle, still says."""

import pytest

from kpyramid.graph.synonyms.comparison import Comparer
from tests.planted import MemoEmbedder


@pytest.fixture(scope="module")
def comparer() -> Comparer:
    return Comparer(MemoEmbedder())


@pytest.mark.parametrize(
    "word",
    "fictional proposed planned disputed self-proclaimed rival false second third next unofficial "
    "intended claimed failed unsuccessful designated so-called acting deputy cultural old".split(),
)
def test_a_word_that_may_take_the_noun_back_makes_no_special_case(
    word: str, comparer: Comparer
) -> None:
    for noun in ("capital", "quaestor", "residence"):
        verdict = comparer.compare(f"is the {word} {noun} of", f"is the {noun} of")
        assert verdict.likeness == "different", noun


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("is the second largest city in", "is the largest city in"),
        ("is the third largest city in", "is the largest city in"),
        ("is the tenth largest city in", "is the largest city in"),
        ("is the second most populous city in", "is the most populous city in"),
        ("is the oldest city in", "is an old city in"),
        ("is a candidate member of", "is a member of"),
        ("is a prospective member of", "is a member of"),
        ("is an expelled member of", "is a member of"),
        ("is a suspended member of", "is a member of"),
        ("is a rejected member of", "is a member of"),
        ("is an imaginary city in", "is a city in"),
        ("is a ghost city in", "is a city in"),
        ("is a planned city in", "is a city in"),
        ("is an ineffective treatment for", "is a treatment for"),
        ("is an unproven treatment for", "is a treatment for"),
        ("is an unlikely cause of", "is a cause of"),
        ("is a third-place winner of", "is the winner of"),
        ("is the art director of", "is the director of"),
        ("has a failed settlement in", "has a settlement in"),
        ("attempted to kill", "killed"),
        ("is nominally ruled by", "is ruled by"),
        ("unsuccessfully treated", "treated"),
        ("is a proposed dam built by", "was built by"),
        ("is a dam not built by", "was built by"),
    ],
)
def test_neither_says_the_other(one: str, other: str, comparer: Comparer) -> None:
    assert comparer.compare(one, other).likeness == "different"
    assert comparer.compare(other, one).likeness == "different"


@pytest.mark.parametrize(
    ("one", "other", "turned"),
    [
        ("is the second largest city in", "is a city in", False),
        ("is a public university in", "is a university in", False),
        ("is a university town in", "is a town in", False),
        ("is a football club in", "is a club in", False),
        ("is a river port on", "is a port on", False),
        ("is a senior lecturer at", "is a lecturer at", False),
        ("is the French quaestor of", "is the quaestor of", False),
        ("is the youngest quaestor of", "is a quaestor of", False),
        ("is an aircraft built by", "was built by", False),
        ("is a French aircraft built by", "was built by", False),
        ("is a dam built by", "built", True),
        ("is a company owned by", "owns", True),
        ("is a novel published in", "was published in", False),
        ("is a king buried in", "was buried in", False),
    ],
)
def test_the_special_case_says_the_general_one(
    one: str, other: str, turned: bool, comparer: Comparer
) -> None:
    verdict, back = comparer.compare(one, other), comparer.compare(other, one)
    assert (verdict.likeness, verdict.turned) == ("narrower", turned)
    assert (back.likeness, back.turned) == ("broader", turned)
