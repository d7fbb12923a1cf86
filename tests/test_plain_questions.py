"""Plain questions, each about what one sentence of a small corpus says."""

import pytest

from kpyramid.query import Snapshot, answer
from kpyramid.query.analysis import link_question
from tests.corpora import open_told

TEXTS = {
    "fever.txt": "Marsh fever is an infectious disease caused by the bacterium Borrelia velmica. "
    "It is transmitted by ticks. Marsh fever is treated with doxycycline. The disease was first "
    "described by the physician Anton Reuss in 1908.",
    "band.txt": "The Glass Herons are a rock band from Port Callan. The band was formed in 2004 "
    "by the singer Tilda Roe, the guitarist Marcus Venn and the drummer Ola Strand. "
    "The Glass Herons have released three albums.",
    "town.txt": "Port Callan is a port city at the mouth of the Tesk and the capital of Halvania. "
    "Brenmoor Castle and Esker Abbey were built in 1180 and 1242, respectively.",
    "venn.txt": "Marcus Venn studied composition at the University of Port Callan.",
    "river.txt": "The River Tesk is 184 km long. Its main tributaries are the Ald and the Little "
    "Corse. The Esker National Park covers an area of 340 square kilometres.",
    "firms.txt": "The University of Port Callan was founded in 1612. Norrin Steel was founded in "
    "1899. Tesk Paper was founded in 1934. Callan Harbours is a company. Callan Harbours was "
    "founded in 1921.",
    "voss.txt": "Clara Voss was a Drennish zoologist. She was the daughter of the physician Emil "
    "Voss and the painter Ida Storr. Voss married the botanist Karl Hein in 1835. She died in "
    "Miren of pneumonia.",
    "treaty.txt": "The treaty ended the Salt War. Under the treaty Drenn ceded the town of Miren "
    "to Orsk. The Orva Observatory is run by Paula Reyes, who succeeded Istvan Bak in 2016.",
    "abbey.txt": "Tarnow Abbey was founded in 1134 by Duke Conrad II and dissolved in 1539. "
    "Tarnow is the second largest city of Halvania.",
    "club.txt": "FC Selkburg have won the Drenn Cup four times, most recently in 2022.",
    "revenue.txt": "Norrin Steel reported revenue of 412 million crowns for 2022.",
}


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
def test_small_letters_name_something_where_nothing_else_does(
    question: str, names: tuple[str, ...]
) -> None:
    index = {name: (name,) for name in ("marsh fever", "film", "anna lee")}
    assert link_question(question, index).names == names
