"""Questions about sets: read from any wording, answered from all layers, made from facts."""

import pytest

from kpyramid.answering.related import Condition, Stated, compare_way, list_measures
from kpyramid.answering.sets import CERTAIN, count_least, find_all, rate_list, read_set
from kpyramid.documents.words import FUNCTION, lemmatise
from kpyramid.evaluation.facts import Fact, Thing
from kpyramid.evaluation.structure import make_structure_questions
from kpyramid.query import Snapshot, answer
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.types import Question
from tests.corpora import open_told

FILMS = ("Red Harbour", "The Long Winter", "Paper Boats", "Salt Road", "Night Ferry", "Glass Hill")
TEXTS = {
    **{
        f"film{at}.txt": f"{film} is a film directed by Ada Holm. It was released in {1990 + at}."
        for at, film in enumerate(FILMS)
    },
    "cast.txt": "Red Harbour starred Nils Vik. Salt Road starred Nils Vik. Dark Tide starred "
    "Nils Vik.",
    "tide.txt": "Dark Tide is a film directed by Olaf Brun. Dark Tide was released in 1985.",
    "bridges.txt": "The Tarn Bridge was built in 1874. The Velm Bridge was built in 1921. "
    "The Tarn Bridge has a length of 310 metres. The Velm Bridge has a length of 95 metres.",
    "halls.txt": "The Mora Hall was established in 1901 and closed in 1950. The Bréda Hall is in "
    "Norland. The Breda Hall was established in 1880 and closed in 1990.",
    "works.txt": "The Orn Bridge is a bridge in Velm. The Orn Bridge was designed by Lise Amberg. "
    "The Calder Tower is an observation tower in Velm. The Calder Tower was designed by Lise "
    "Amberg. Lise Amberg designed the Senn Viaduct.",
    "skarn.txt": "Mount Skarn is a mountain in Norland. With a height of 3,214 m it is the highest "
    "mountain of Norland.",
    "ember.txt": "Mount Ember is a volcano in Norland. The mountain is 2,670 metres high.",
    "kell.txt": "The Kell Viaduct is a viaduct in Norland. The viaduct has 17 arches.",
    "poly.txt": "Velm Polytechnic is a school. Tor Aas was educated at the Velm Polytechnic.",
    "moe.txt": "Liv Erika Moe has been the Mayor of Velm since 2002.",
    "moon.txt": "The Pale Moon is a 1986 film directed by Olaf Brun and starring Eva Lund, Tor Aas "
    "and Kari Dahl.",
}


@pytest.fixture(scope="module")
def told() -> Snapshot:
    """The pyramid of `TEXTS`, built once in a test run."""
    return open_told("structure", TEXTS)


@pytest.mark.parametrize(
    "question",
    [
        "Which films did Ada Holm direct?",
        "Which films were directed by Ada Holm?",
        "List all films directed by Ada Holm",
        "What are the films directed by Ada Holm?",
    ],
)
def test_a_list_is_gathered_over_documents_in_any_wording(told: Snapshot, question: str) -> None:
    found = answer(question, told)
    assert set(FILMS) <= {name.removeprefix("film ") for name in found.choices} | {
        f"The {name}" for name in found.choices
    }
    assert "Dark Tide" not in found.choices
    assert len({place.document_id for place in found.evidence}) >= len(FILMS)
    assert found.confidence >= 0.5


def test_a_count_is_the_least_and_cites_its_members(told: Snapshot) -> None:
    found = answer("How many films did Ada Holm direct?", told)
    assert found.text.startswith("at least ")
    assert 4 <= int(found.text.split()[-1]) <= len(FILMS)
    assert len({place.document_id for place in found.evidence}) >= 4


def test_what_is_counted_in_a_fact_or_has_no_names_is_not_counted_by_names(told: Snapshot) -> None:
    assert answer("How many arches does the Kell Viaduct have?", told).text == "17 arches"
    assert answer("How many students does the Velm Polytechnic have?", told).text == ""


def test_no_sentence_makes_the_first_of_a_kind_surer(told: Snapshot) -> None:
    found = answer("Which hall was established first?", told)
    assert found.text.endswith("Hall") and found.confidence <= 0.85


def test_two_are_compared_by_their_numbers_and_by_their_values(told: Snapshot) -> None:
    assert answer("Who directed more films, Olaf Brun or Ada Holm?", told).text == "Ada Holm"
    for question, text in (
        ("Which was built first, the Velm Bridge or the Tarn Bridge?", "Tarn Bridge"),
        ("Was the Tarn Bridge built before the Velm Bridge?", "yes"),
        ("Was the Tarn Bridge built after the Velm Bridge?", "no"),
        ("Which is older, the Tarn Bridge or the Velm Bridge?", "Tarn Bridge"),
        ("Which is longer, the Tarn Bridge or the Velm Bridge?", "Tarn Bridge"),
        ("Is the Velm Bridge longer than the Tarn Bridge?", "no"),
    ):
        found = answer(question, told)
        assert (question, found.text) == (question, text)
        assert {"1874", "310"} & {w.strip(".") for p in found.evidence for w in p.text.split()}


def test_a_verb_is_known_by_its_meaning_and_a_name_without_accents(told: Snapshot) -> None:
    found = answer("Which was founded first, the Mora Hall or the Bréda Hall?", told)
    assert found.text == "Bréda Hall"  # each sentence has two dates, and one is of its founding
    assert {"1880", "1901"} <= {w for place in found.evidence for w in place.text.split()}


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Which film was released first?", "Dark Tide"),
        ("Which bridge was built last?", "Velm Bridge"),
        ("Which bridge has the greatest length?", "Tarn Bridge"),
        ("Who directed the most films?", "Ada Holm"),
    ],
)
def test_the_first_of_a_kind_is_found_among_its_things(
    told: Snapshot, question: str, text: str
) -> None:
    found = answer(question, told)
    assert (found.text.removeprefix("The "), found.confidence >= 0.5) == (text, True)
    assert found.evidence


def test_a_verb_asks_for_what_facts_state_of_it(told: Snapshot) -> None:
    assert {*answer("What did Ada Holm direct?", told).choices} == {
        name.removeprefix("The ") for name in FILMS
    }
    assert answer("Which films starred Nils Vik?", told).choices != ("Olaf Brun",)
    assert answer("How long is the Tarn Bridge?", told).text == "310 metres"


def test_what_a_question_names_beside_is_no_member(told: Snapshot) -> None:
    found = answer("What did Lise Amberg design besides the Orn Bridge?", told)
    assert found.choices and "Orn Bridge" not in found.choices
    assert all(place.text.endswith(".") for place in found.evidence)


def test_measures_are_compared_in_one_unit(told: Snapshot) -> None:
    assert answer("Which is longer, the Tarn Bridge or the Velm Bridge?", told).text == (
        "Tarn Bridge"
    )
    (one,), (other,) = (list_measures(text, dated=False) for text in ("9.4 km", "1965 m"))
    stated = [Stated(value, 1.0, (), unit) for value, unit, _ in (one, other)]
    assert [one.measure("") for one in stated] == [9400, 1965]


def test_what_is_called_something_else_is_not_of_the_kind(told: Snapshot) -> None:
    found = answer("Which bridges were designed by Lise Amberg?", told)
    assert "Orn Bridge" in found.choices
    assert "Calder Tower" not in found.choices, "a tower, the facts say"
    assert "Calder Tower" in answer("What did Lise Amberg design?", told).choices
    asked = read_set(QuestionAnalysis(Question("Which operas were directed by Olaf Brun?"), told))
    assert asked
    members = find_all(asked.conditions, asked.kind, told)
    assert members
    assert not any(member.listed for member in members), "films, all of them"


@pytest.mark.parametrize(
    ("wording", "ahead", "verb", "turned", "way"),
    [
        ("crosses", True, "cross", False, True),
        ("crosses", False, "cross", False, False),
        ("is crossed by", False, "cross", False, True),
        ("operates", False, "operate", True, True),
        ("is operated by", True, "operate", True, True),
        ("is operated by", True, "are operated by", False, True),
        ("has largest tributary", True, "are tributaries of", False, False),
        ("is tributary of", True, "are tributaries of", False, True),
        ("was painted by", True, "operate", True, None),
    ],
)
def test_a_wording_is_read_in_the_direction_that_is_asked(
    wording: str, ahead: bool, verb: str, turned: bool, way: bool | None
) -> None:
    words = tuple(lemmatise(word) for word in verb.split() if word not in FUNCTION)
    assert compare_way(wording, ahead, Condition("It", words, verb, turned)) is way


def test_two_conditions_are_met_together(told: Snapshot) -> None:
    found = answer("Which films did Olaf Brun direct and also starred Nils Vik?", told)
    assert found.choices == ("Dark Tide",)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Which is higher, Mount Ember or Mount Skarn?", "Mount Skarn"),
        ("How high is Mount Ember?", "2670 metres"),
        ("When did Liv Moe become Mayor of Velm?", "2002"),
        ("Which films were released in 1991?", "Long Winter"),
        ("Which films came out in 1986?", "Pale Moon"),
        ("Which bridges designed by Lise Amberg are in Velm?", "Orn Bridge"),
        ("Who starred in The Pale Moon?", "Eva Lund; Tor Aas; Kari Dahl"),
    ],
)
def test_pronouns_years_places_and_roles_are_read(told: Snapshot, question: str, text: str) -> None:
    found = answer(question, told)
    assert {name.removeprefix("The ") for name in found.text.split("; ")} == {*text.split("; ")}
    assert found.confidence >= 0.5
    assert found.evidence


@pytest.mark.parametrize(
    "question",
    [
        "How high is Mount Norland?",
        "How deep is Mount Ember?",
        "Which films came out in 1911?",
        "Which bridges designed by Lise Amberg are in Norland?",
        "When did Olaf Brun become Mayor of Velm?",
        "Which composers wrote for Ada Holm?",
        "Which is older, the Tarn Bridge or the Moon?",
        "How many novels did Ada Holm write?",
    ],
)
def test_what_no_text_says_is_not_answered(told: Snapshot, question: str) -> None:
    assert not answer(question, told).text


@pytest.mark.parametrize(
    ("question", "act", "kind", "conditions"),
    [
        ("How many films starred Nils Vik?", "count", ("film",), [("Nils Vik", ("star",))]),
        ("Who else directed Red Harbour?", "list", ("person",), [("Red Harbour", ("direct",))]),
        (
            "Which of the films that Ada Holm directed also star Nils Vik?",
            "list",
            ("film",),
            [("Ada Holm", ("direct",)), ("Nils Vik", ("star",))],
        ),
        ("What are Nils Vik's films?", "list", ("film",), [("Nils Vik", ("film",))]),
    ],
)
def test_conditions_are_read_name_by_name(
    told: Snapshot, question: str, act: str, kind: tuple[str, ...], conditions: list[object]
) -> None:
    read = read_set(QuestionAnalysis(Question(question), told))
    assert read is not None
    assert (read.act, read.kind) == (act, kind)
    assert [(one.anchor, one.words) for one in read.conditions] == conditions


@pytest.mark.parametrize(
    "question",
    [
        "Who is the director of Red Harbour?",
        "When was the Tarn Bridge built?",
        "Which company built the Tarn Bridge?",
        "Which company owns the Tarn Bridge?",
        "Why did Ada Holm direct Red Harbour?",
        "Is Red Harbour a film?",
        "⟦3⟧ films, of ⟦9⟧?",
        ", , ,",
    ],
)
def test_a_question_for_one_thing_is_not_about_a_set(told: Snapshot, question: str) -> None:
    assert read_set(QuestionAnalysis(Question(question), told)) is None


def test_the_least_number_and_the_chance_of_a_list_follow_from_the_members() -> None:
    assert [count_least([0.999] * n)[0] for n in range(7)] == list(range(7))
    assert count_least([0.5] * 8)[0] < count_least([0.9] * 8)[0] < 8
    assert all(CERTAIN <= count_least([c] * 8)[1] <= 1 for c in (0.3, 0.5, 0.9))
    assert rate_list([0.99] * 5, 5) > rate_list([0.6] * 5, 5) > rate_list([0.1] * 5, 5)
    assert rate_list([0.99] * 8, 2) < 0.5  # most are left out


def _state(subject: str, relation: str, value: str, document: str, form: str = "") -> Fact:
    kind = () if form else ("person",)
    text = f"{subject} {relation} {value}"
    return Fact(
        Thing(subject, subject, ("film",)),
        relation,
        Thing(value, value, kind, form=form),  # type: ignore[arg-type]
        ("film", "person" if not form else ""),
        (document,),
        (text,),
    )


FACTS = [
    *(_state(film, "director", "Ada Holm", f"d{at}") for at, film in enumerate(FILMS)),
    *(_state(film, "actor", "Nils Vik", f"c{at}") for at, film in enumerate(FILMS[:3])),
    _state("Tide 0", "actor", "Nils Vik", "c9"),
    *(_state(f"Tide {at}", "director", "Olaf Brun", f"o{at}") for at in range(3)),
    *(_state(f"Fog {at}", "director", "Ines Dahl", f"i{at}") for at in range(2)),
    *(
        _state(film, "release date", str(1990 + at), f"r{at}", "date")
        for at, film in enumerate(FILMS)
    ),
]


def test_answers_are_computed_from_all_facts_and_lie_in_five_documents() -> None:
    made = make_structure_questions(FACTS).questions
    by_form = {q.group.partition(":")[0]: q for q in made}
    assert by_form.keys() == {"list", "count", "superlative", "comparison", "conjunction"}
    lists = [q for q in made if q.group == "list: director"]
    assert [set(q.values) for q in lists] == [set(FILMS)]
    assert [q.values for q in made if q.group == "count: director"] == [("6",)]
    both = {frozenset(q.values) for q in made if q.group.startswith("conjunction")}
    assert both == {frozenset(FILMS[:3]), frozenset({"Tide 0"})}
    for question in made:
        least = 2 if question.group == "comparison: release date" else 5
        assert len(question.gold_documents) >= least
    assert make_structure_questions(FACTS).questions == made
    assert len(make_structure_questions(FACTS, count=3).questions) == 3


def test_a_set_with_an_unsure_fact_is_not_asked_about() -> None:
    unsure = [fact for fact in FACTS if fact.relation == "director"]
    made = make_structure_questions(unsure, least=1.1)
    assert not made.questions and "a fact is not certain enough" in made.left_out


def test_units_of_one_kind_are_compared_and_initials_are_no_units() -> None:
    assert [unit for _, unit, _ in list_measures("185 cm and 1.85 m", dated=False)] == ["cm", "m"]
    assert list_measures("In 1936 G. K. Holm died.", dated=False) == []
    assert len(list_measures("In 1936 G. K. Holm died.", dated=True)) == 1


def test_a_count_leaves_out_what_is_named_beside(told: Snapshot) -> None:
    def count(question: str) -> int:
        return int(answer(question, told).text.split()[-1])

    every = count("How many films did Ada Holm direct?")
    assert count(f"How many films besides {FILMS[0]} did Ada Holm direct?") == every - 1


def test_documents_that_differ_are_told_by_polyrag_where_one_value_can_hold() -> None:
    texts = {
        "a.txt": "The Velm Museum is a museum in Orn. The Velm Museum was founded in 1901.",
        "b.txt": "Visitors like the Velm Museum. The Velm Museum was founded in 1903.",
    }
    told = open_told("differing", texts)
    founded = "When was the Velm Museum founded?"
    found = answer(founded, told)
    assert set(found.choices) == {"1901", "1903"}
    assert len({place.document_id for place in found.evidence}) == 2
    for options in ({"mode": "paper"}, {"graph": False}):
        assert ";" not in answer(founded, told, "polyrag", **options).text
    assert ";" not in answer(founded, told, "naive").text


def test_another_name_of_a_member_is_not_counted() -> None:
    texts = {
        "a.txt": "Orn High School or Orn College is a public high school in Tarsk.",
        "b.txt": "Velm High School is a public high school in Tarsk.",
    }
    told = open_told("aliases", texts)
    assert answer("How many high schools are in Tarsk?", told).text == "at least 2"
