"""Kinds, roles and directions: what an invented corpus says, and what it does not."""

import pytest

from kpyramid.answering.sets import read_kind
from kpyramid.errors import InputError
from kpyramid.query import STRATEGIES, Answer, Snapshot, answer
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.types import Outcome, Question
from tests.corpora import open_told

TEXTS = {
    "falls.txt": "Skarn Falls is a waterfall in Norrland. Greyveil is a waterfall in Kettling. "
    "Tumble Force is a waterfall in Devon.",
    "rivers.txt": "The Velm is a river in Norrland. The Skarn is a tributary of the Velm. "
    "The Ottle is a tributary of the Velm.",
    "orsund.txt": "The University of Orsund was founded by Ilse Marrow in 1874. "
    "Ilse Marrow was born in Tarn on 3 May 1831. Ilse Marrow married Karel Dunn. "
    "Karel Dunn was a painter who was born in Plenz.",
    "ilse.txt": "Ilse Marrow founded the Marrow Library. Her daughter is Petra Dunn.",
    "norrland.txt": "Norrland is a country. Orsund is a city in Norrland. "
    "Orsund has 61,000 inhabitants. Orsund has twenty-one gates.",
    "bridge.txt": "The Tarn Bridge is a bridge in Tarn. The Tarn Bridge is operated by Norrland "
    "Rail. The Orsund Gazette was published on behalf of the Norrland Society.",
}


@pytest.fixture(scope="module")
def told() -> Snapshot:
    """The pyramid of `TEXTS`, built once in a test run."""
    return open_told("members", TEXTS)


def list_sentences(found: Answer) -> set[str]:
    return {place.text.rstrip(".") for place in found.evidence}


@pytest.mark.parametrize(
    "question",
    ["Which waterfalls are there?", "list all waterfalls", "What are the waterfalls?"],
)
def test_a_list_is_an_answer_with_a_sentence_for_each_member(told: Snapshot, question: str) -> None:
    found = answer(question, told)
    assert found.choices == ("Greyveil", "Skarn Falls", "Tumble Force")
    assert list_sentences(found) == set(TEXTS["falls.txt"].rstrip(".").split(". "))


def test_a_number_is_the_least_and_cites_the_members(told: Snapshot) -> None:
    found = answer("How many waterfalls are there?", told)
    assert (found.text, len(found.evidence)) == ("at least 3", 3)
    found = answer("How many tributaries does the Velm have?", told)
    assert (found.text, len(found.evidence)) == ("at least 2", 2)


def test_a_place_narrows_a_kind_and_an_unknown_kind_is_not_known(told: Snapshot) -> None:
    assert answer("Which waterfalls are in Devon?", told).text == "Tumble Force"
    assert answer("Is Greyveil a waterfall?", told).text == "yes"
    assert answer("Is Greyveil a waterfall?", told, "rok").text in ("", "yes")
    assert answer("How many inhabitants does Orsund have?", told).text == "61000"
    assert answer("How many gates does Orsund have?", told).text != "at least 1"
    assert answer("Is the Velm a waterfall?", told).text == ""
    assert answer("Is the Tarn Bridge a river?", told).text == ""
    for question in ("Which unicorns are there?", "How many waterfalls are in Plenz?"):
        assert not answer(question, told).text


@pytest.mark.parametrize(
    "question",
    [
        "Which waterfalls that poets praise are there?",
        "How many waterfalls are there in Atlantis?",
        "Which waterfall did Karel Dunn paint?",
    ],
)
def test_a_question_that_says_more_than_a_kind_is_not_read_as_one(
    told: Snapshot, question: str
) -> None:
    assert read_kind(QuestionAnalysis(Question(question), told)) is None


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("The Ottle is a tributary of what?", "Velm"),
        ("What is the Skarn a tributary of?", "Velm"),
        ("The Tarn Bridge is operated by whom?", "Norrland Rail"),
        ("On behalf of whom was the Orsund Gazette published?", "Norrland Society"),
    ],
)
def test_the_end_of_a_relation_is_read_where_the_question_asks_for_it(
    told: Snapshot, question: str, text: str
) -> None:
    found = answer(question, told)
    assert (found.text, found.confidence >= 0.5) == (text, True)


@pytest.mark.parametrize("strategy", sorted(STRATEGIES.keys() - {"direct"}))
@pytest.mark.parametrize(
    "question",
    [
        "When was Ilse Marrow's daughter born?",  # not said; she herself was, on 3 May 1831
        "Who was the spouse of the founder of the University of Orsund, Tann?",
        "What is the capital of Norrland?",  # Orsund is a city of it
        "Was Ilse Marrow born in Plenz?",  # her husband was
        "asdf qwer zxcv",
        "Who is the president of the galaxy?",
    ],
)
def test_no_strategy_answers_what_the_texts_do_not_say(
    told: Snapshot, strategy: str, question: str
) -> None:
    found = answer(question, told, strategy)
    assert (found.text, found.choices, found.evidence, found.confidence) == ("", (), (), 0.0)
    assert found.trace[-1].outcome is not Outcome.ANSWERED


def test_a_spouse_of_a_founder_is_not_the_founder(told: Snapshot) -> None:
    for strategy in sorted(STRATEGIES.keys() - {"direct"}):
        found = answer("Who was the spouse of the founder of the University of Orsund?", told,
                       strategy)  # fmt: skip
        assert found.text in ("", "Karel Dunn")


def test_a_walk_from_nothing_that_is_known_says_so(told: Snapshot) -> None:
    for strategy in ("rok", "hykge"):
        reason = answer("asdf qwer zxcv", told, strategy).trace[-1].reason
        assert "names nothing that the graph knows" in reason or "nothing" in reason


def test_the_floor_is_one_option_of_every_strategy(told: Snapshot) -> None:
    question = "Who killed Karel Dunn?"
    low, none = (answer(question, told, "rok", floor=least) for least in (0.0, 0.9))
    assert low.text and not none.text and none.context == low.context
    assert "below 0.90 no answer is given" in none.trace[-1].reason
    with pytest.raises(InputError, match="floor"):
        answer(question, told, "naive", floor=2.0)
