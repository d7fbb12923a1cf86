"""What citations leave unsaid bounds the confidence of an answer, in the test's own sentences."""

import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kpyramid.answering.verification import (
    NO_ANSWER,
    SUPPORTED,
    UNSAID,
    Citation,
    Verification,
    is_doer,
    turns_doer,
    verify_value,
    wants_doer,
)
from kpyramid.documents.words import split_words
from kpyramid.pipeline.build import build
from kpyramid.query import STRATEGIES, answer, open_snapshot
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.decisions import bound_confidence
from kpyramid.query.types import Answer, Outcome, Question, Step
from kpyramid.settings import Settings
from kpyramid.snapshot.evidence import Evidence
from kpyramid.storage.layout import open_warehouse
from tests.corpora import write_corpus
from tests.told import open_told

pytestmark = pytest.mark.usefixtures("passing_gates")


def verify(question: str, value: str, *cited: str, before: str = "") -> Verification:
    """What verification says of a value that some sentences, each of a passage, are cited for."""
    snapshot = open_told()
    asked = QuestionAnalysis(Question(question), snapshot)
    citations = [Citation(text, before) for text in cited]
    return verify_value(asked, value, citations, [f"{before}\n{text}" for text in cited], snapshot)


@pytest.mark.parametrize(
    ("question", "value", "cited"),
    [
        ("Who bought the Arken Mill?", "Liv Moe", "The Arken Mill was bought by Liv Moe."),
        ("Who buys the Arken Mill?", "Liv Moe", "Liv Moe bought the Arken Mill in 1911."),
        ("Who purchased the Arken Mill?", "Liv Moe", "Liv Moe bought the Arken Mill."),
        ("Who won the Orr Medal?", "Liv Moe", "Liv Moe was awarded the Orr Medal in 1911."),
        ("Who owns the Arken Mill?", "Liv Moe", "Arken Mill owner Liv Moe"),
        ("Who operates the Arken Mill?", "Liv Moe", "Arken Mill has operator Liv Moe"),
        ("Who operates the Arken Mill?", "Liv Moe", "Liv Moe is the operator of Arken Mill."),
        ("How long is the Brenn Tunnel?", "4 miles", "The Brenn Tunnel is 4 miles long."),
        ("What is the depth of Lake Orr?", "91 metres", "Lake Orr has a depth of 91 metres."),
        ("When did Liv Moe die?", "1940", "Liv Moe (1871–1940) was a miller."),
        ("When was Liv Moe born?", "1871", "Liv Moe (1871–1940) was a miller."),
    ],
)
def test_what_a_place_says_in_the_questions_words_supports_the_answer(
    question: str, value: str, cited: str
) -> None:
    assert not verify(question, value, cited).reason


@pytest.mark.parametrize(
    ("question", "value", "cited", "why"),
    [
        ("Who founded the Arken Mill?", "Liv Moe", "Liv Moe bought the Arken Mill.", "founded"),
        ("Who leased the Arken Mill?", "Liv Moe", "Liv Moe bought the Arken Mill.", "leased"),
        ("Who won the Orr Medal?", "Liv Moe", "Liv Moe awarded the Orr Medal.", "won"),
        ("What did the Arken Mill purchase?", "Liv Moe", "The Arken Mill was bought by Liv Moe.",
         "other way"),
        ("What is the depth of Lake Orr?", "9 miles", "Lake Orr is 9 miles long.", "depth"),
        ("Who bought the Orken Mill?", "Liv Moe", "Liv Moe bought the Arken Mill.", "mentions Or"),
        ("Who bought the Arken Mill in 1912?", "Liv Moe", "Liv Moe bought the Arken Mill in 1911.",
         "mentions 1912"),
        ("Who did the Arken Mill buy?", "Liv Moe", "The Arken Mill was bought by Liv Moe.",
         "other way"),
        ("Which river is the Orr a tributary of?", "Sill", "The Sill is a tributary of the Orr.",
         "other way"),
        ("When did Liv Moe buy the Arken Mill?", "1911",
         "In 1911 Liv Moe planned to buy the Arken Mill.", "plans"),
        ("Who will buy the Arken Mill?", "Liv Moe", "Liv Moe bought the Arken Mill.", "future"),
        ("When did Liv Moe die?", "1871", "Liv Moe (1871–1940) was a miller.", "die"),
        ("Where was Liv Moe born?", "miller", "Liv Moe was born a miller.", "no name"),
        ("Where was she born?", "Orrby", "She was born in Orrby.", "names nothing"),
        ("Wo wurde Liv Moe geboren?", "Orrby", "Liv Moe lived in Orrby.", "geboren"),
    ],
)  # fmt: skip
def test_what_a_place_leaves_unsaid_bounds_the_confidence_and_is_told(
    question: str, value: str, cited: str, why: str
) -> None:
    found = verify(question, value, cited)
    assert NO_ANSWER < found.bound <= UNSAID and why in found.reason


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("Why did Liv Moe buy the Arken Mill?", "reason"),
        ("Is Liv Moe the buyer of the Arken Mill?", "yes or no"),
        ("What did Liv Moe buy, the Arken Mill?", "stands in the question"),
    ],
)
def test_what_has_not_the_form_of_an_answer_is_none(question: str, why: str) -> None:
    found = verify(question, "Arken Mill", "Liv Moe bought the Arken Mill in 1911.")
    assert found.bound == NO_ANSWER and why in found.reason


def test_what_something_came_of_is_a_reason() -> None:
    question = "What is the reason of Liv Moe's death?"
    says = "Liv Moe's death was due to pneumonia."
    assert verify(question, "pneumonia", says).bound > NO_ANSWER
    assert verify(question, "1940", "Liv Moe's death was in 1940.").bound == NO_ANSWER


def test_a_role_is_that_of_the_name_behind_it() -> None:
    question = "What is the capital of Halgard?"
    of_another = "Senn is the capital of Ferro, a region of Halgard."
    assert "capital of something else" in verify(question, "Senn", of_another).reason
    assert not verify(question, "Senn", "Senn is the capital of the province of Halgard.").reason


def test_a_pronoun_stands_for_what_was_named_before_and_for_nothing_else() -> None:
    before = "Lake Orr lies in Sillmark."
    asked = "What is the depth of Lake Orr?"
    assert verify(asked, "91 metres", "Its depth is 91 metres.", before=before) == SUPPORTED
    alone = verify(asked, "91 metres", "Lake Umm has a depth of 91 metres.")
    assert "mentions Lake Orr" in alone.reason


def test_a_sentence_about_another_is_doubted_though_the_name_stands_before_it() -> None:
    asked, says = "What is the depth of Lake Orr?", "The depth of Lake Umm is 91 metres."
    assert verify(asked, "91 metres", says, before="Lake Orr is far.").reason


def test_a_sentence_that_leads_to_an_answer_bears_it_out_and_one_beside_it_does_not() -> None:
    question = "Who leads the company that bought the Arken Mill?"
    says, leads = "Joss Tann leads Halgard.", "The Arken Mill was bought by Halgard."
    assert verify(question, "Joss Tann", says, leads) == SUPPORTED
    assert verify(question, "Joss Tann", says, "The Arken Mill was bought by Ferro.").reason


@pytest.mark.parametrize(
    ("text", "is_named_doer"),
    [
        ("Halgard bought the mill", True),
        ("The mill was bought by Halgard", True),
        ("Halgard was bought by Ferro", False),
        ("Ferro bought Halgard", False),
    ],
)
def test_who_does_it_is_read_from_voice_and_order(text: str, is_named_doer: bool) -> None:
    words = split_words(text)
    plain = [word.plain for word in words]
    at = plain.index("halgard")
    assert is_doer(words, plain.index("bought"), (at, at + 1)) is is_named_doer


@pytest.mark.parametrize(
    ("question", "wants"),
    [("Who bought Halgard?", True), ("What did Halgard buy?", False),
     ("What was bought by Halgard?", False), ("By whom was Halgard bought?", True)],
)  # fmt: skip
def test_whether_the_doer_is_asked_for_is_read_from_the_question(
    question: str, wants: bool
) -> None:
    words = split_words(question)
    verb = next(i for i, word in enumerate(words) if word.plain in {"bought", "buy"})
    assert wants_doer(words, verb) is wants


@pytest.mark.parametrize(
    ("question", "turned"),
    [
        ("Did Edda Moll direct The Orm Road?", False),
        ("Did Jan Roth direct The Orm Road?", True),
        ("Did Jan Roth write The Orm Road?", False),
        ("Did The Orm Road direct Edda Moll?", True),
        ("Is The Orm Road a film?", False),
    ],
)
def test_who_did_it_is_who_the_sentence_says(question: str, turned: bool) -> None:
    text = "The Orm Road was directed by Edda Moll and written by Jan Roth."
    assert turns_doer(QuestionAnalysis(Question(question), open_told()), text) is turned


def test_a_list_leaves_out_the_few_members_that_its_citations_do_not_support() -> None:
    class Doubts:
        """Decisions that doubt a list with a member that nothing supports."""

        def verify(self, asked: object, values: Sequence[str], *_: object) -> Verification:
            doubted = {"17 team", "21 team"} & {*values}
            return Verification(0.3, "no name") if doubted else Verification()

    def bound(*members: str) -> Answer:
        place = Evidence("d", "c", 0, 9, "Ann; Ben.", "a.txt")
        step = Step("graph", Outcome.ANSWERED, "found")
        text = "; ".join(members)
        given = Answer(text, members, (), "graph", (place,), (step,), confidence=0.9)
        asked = SimpleNamespace(candidates=(), linked=SimpleNamespace(entities=("e",)))
        return bound_confidence(cast(Any, asked), given, cast(Any, Doubts()))

    kept = bound("Ann", "Ben", "17 team")
    assert (kept.text, kept.choices, kept.confidence) == ("Ann; Ben", ("Ann", "Ben"), 0.9)
    assert bound("Ann", "17 team", "21 team").text == ""


@pytest.mark.slow
def test_few_unanswerable_questions_are_answered_with_confidence(tmp_path: Path) -> None:
    told = tomllib.loads(Path(__file__).with_name("unanswerable.toml").read_text("utf-8"))
    texts = {f"{name}.txt": text for name, text in told["texts"].items()}
    warehouse = open_warehouse(tmp_path / "warehouse")
    build(write_corpus(tmp_path / "corpus", texts), warehouse, Settings())
    snapshot = open_snapshot("main", warehouse.root)
    sure: Counter[tuple[str, bool]] = Counter()
    for asked in told["questions"]:
        for strategy in sorted(STRATEGIES.keys() - {"direct"}):
            found = answer(
                asked["text"], snapshot, strategy, candidates=asked.get("candidates", ())
            )
            sure[strategy, "answers" in asked] += bool(found.choices) and found.confidence >= 0.5
    assert sum("answers" not in asked for asked in told["questions"]) == 35
    assert sure["polyrag", False] <= 2
    assert all(sure[strategy, False] <= 4 for strategy in STRATEGIES)
    # A module that never answers is never wrong.
    assert sure["polyrag", True] >= 10
