"""Plain questions, each about what one sentence of a small corpus says."""

import pytest

from kpyramid.query import Snapshot, answer
from kpyramid.query.analysis import link_question
from tests.corpora import open_told
from tests.rows import read_rows

TEXTS = dict(read_rows("plain_questions.texts"))


@pytest.fixture(scope="module")
def told() -> Snapshot:
    """The pyramid of `TEXTS`, built once in a test run."""
    return open_told("plain", TEXTS)


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("What causes marsh fever?", {"Borrelia velmica"}),
        ("How is marsh fever treated?", {"doxycycline"}),
        ("Who first described marsh fever?", {"Anton Reuss"}),
        ("What is the capital of Halvania?", {"Port Callan"}),
        ("When was Brenmoor Castle built?", {"1180"}),
        ("When was Esker Abbey built?", {"1242"}),
        ("Where did Marcus Venn study?", {"University of Port Callan"}),
        ("Who founded Tarnow Abbey?", {"Duke Conrad II"}),
        ("What is the second largest city of Halvania?", {"Tarnow"}),
        ("Who did Clara Voss marry?", {"Karl Hein"}),
        ("Where did Clara Voss die?", {"Miren"}),
        ("Which cup have FC Selkburg won?", {"Drenn Cup"}),
    ],
)
def test_what_one_sentence_says_is_answered(
    told: Snapshot, question: str, values: set[str]
) -> None:
    found = answer(question, told)
    assert set(found.choices or (found.text,)) == values
    assert found.confidence >= 0.5


@pytest.mark.parametrize(
    ("question", "wrong"),
    [
        ("What was the revenue of Norrin Steel?", "2022"),  # a year is no amount
        ("Who is Paula Reyes?", "Istvan Bak"),  # whom she succeeded does not say who she is
    ],
)
def test_what_is_of_another_kind_answers_nothing(told: Snapshot, question: str, wrong: str) -> None:
    assert wrong not in answer(question, told).text


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("How is marsh fever treated?", ("marsh fever",)),
        ("Which film shows marsh fever?", ("marsh fever",)),  # a kind that is asked for
        ("Which film did Anna Lee make?", ("Anna Lee",)),  # a name that is written as one
        ("What is a film?", ()),
        ("Which disease is the most like marsh fever?", ()),  # asks of all diseases
    ],
)
def test_small_letters_name_where_nothing_else_does(question: str, names: tuple[str, ...]) -> None:
    index = {name: (name,) for name in ("marsh fever", "film", "anna lee")}
    assert link_question(question, index).names == names
