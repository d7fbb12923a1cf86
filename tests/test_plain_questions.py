"""Plain questions, each about what one sentence of a small corpus says."""

import pytest

from kpyramid.query import Snapshot, answer
from kpyramid.query.analysis import link_question
from tests.corpora import open_told
from tests.rows import each_row, read_rows

TEXTS = dict(read_rows("plain_questions.texts"))


@pytest.fixture(scope="module")
def told() -> Snapshot:
    """The pyramid of `TEXTS`, built once in a test run."""
    return open_told("plain", TEXTS)


@each_row("question, values")
def test_what_one_sentence_says_is_answered(
    told: Snapshot, question: str, values: tuple[str, ...]
) -> None:
    found = answer(question, told)
    assert {*(found.choices or (found.text,))} == {*values}
    assert found.confidence >= 0.5


@each_row("question, wrong")
def test_what_is_of_another_kind_answers_nothing(told: Snapshot, question: str, wrong: str) -> None:
    assert wrong not in answer(question, told).text


@each_row("question, names")
def test_small_letters_name_where_nothing_else_does(question: str, names: tuple[str, ...]) -> None:
    index = {name: (name,) for name in ("marsh fever", "film", "anna lee")}
    assert link_question(question, index).names == names
