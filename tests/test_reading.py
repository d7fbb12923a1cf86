"""The reader by rules: what it answers from a context, what it cites, and when it is silent."""

from collections.abc import Sequence
from decimal import Decimal

import pytest

from kpyramid.answering.reader import read
from kpyramid.documents.values import Date, find_values, read_value
from kpyramid.documents.words import find_name, read_name, split_words
from kpyramid.query.analysis import LinkedQuestion, QuestionAnalysis
from kpyramid.query.options import read_names
from kpyramid.query.types import Item, Question, Reading
from tests.told import TOLD, open_told, take_facts, take_passages

PLACES = ("Lima", "Port Amsel", "Oslo", "Bergen", "Kiruna", "Leeds", "Quito", "Turku")
ALL = ("rhea.txt", "film.txt", "bridge.txt", "tarn.txt")


def ask(question: str, items: Sequence[Item], candidates: Sequence[str] = ()) -> Reading:
    return read(QuestionAnalysis(Question(question, tuple(candidates)), open_told()), items)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who directed The Glass Orchard?", "Tomas Berrin"),
        ("Where was Rhea Valcourt born?", "Port Amsel"),
        ("When was Rhea Valcourt born?", "3 March 1871"),
        ("When was The Glass Orchard released?", "1974"),
        ("How long is the main span of the Orm Bridge?", "1,250 metres"),
        ("Which river does the Orm Bridge span?", "Vess"),
    ],
)
def test_an_open_question_is_answered_with_the_short_span_of_the_kind_asked_for(
    question: str, expected: str
) -> None:
    found = ask(question, take_passages(*ALL))
    assert expected in found.text and len(found.text) <= len(expected) + len("the river ")
    assert found.choices == (found.text,)


@pytest.mark.parametrize("candidates", [(), PLACES])
def test_what_is_cited_stands_in_the_document_and_says_the_answer(
    candidates: tuple[str, ...],
) -> None:
    found = ask("Where was Rhea Valcourt born?", take_passages(*ALL), candidates)
    (place,) = found.evidence
    assert TOLD[place.source][place.start : place.end] == place.text
    assert place.source == "rhea.txt" and found.text in place.text
    assert place.text == "Rhea Valcourt was born on 3 March 1871 in Port Amsel."


def test_a_fact_answers_with_the_side_that_the_question_does_not_name() -> None:
    facts = take_facts("Berrin")
    assert facts
    found = ask("Who directed The Glass Orchard?", facts)
    assert found.text == "Tomas Berrin"
    assert {place.source for place in found.evidence} == {"film.txt"}


def test_a_value_of_the_ontology_without_a_key_is_read_as_its_words() -> None:
    value = Item("", "Port Amsel", "ontology", 1.0, ())
    found = ask("Where was Rhea Valcourt born?", (value,), PLACES)
    assert found.choices == ("Port Amsel",)


@pytest.mark.parametrize("items", [take_passages, take_facts], ids=["passages", "facts"])
def test_several_candidates_can_be_right(items: object) -> None:
    names = ("Tomas Berrin", "Edda Moll", "Milo Tarn", "Jan Roth", "Ada Romanov", "Per Lund")
    context = take_passages("film.txt") if items is take_passages else take_facts("starred")
    found = ask("Who starred in The Glass Orchard?", context, names)
    assert set(found.choices) == {"Edda Moll", "Jan Roth"}


def test_what_the_text_denies_does_not_support_a_candidate() -> None:
    found = ask("Where was Rhea Valcourt born?", take_passages("rhea.txt"), PLACES)
    assert found.choices == ("Port Amsel",)
    only_denied = ask("Where was Rhea Valcourt born?", take_passages("rhea.txt"), ("Oslo", "Lima"))
    assert only_denied.choices == ()
    lived = ask("Where did Rhea Valcourt live?", take_passages("rhea.txt"), ("Bergen", "Lima"))
    assert lived.choices == ()


@pytest.mark.parametrize("form", ["1871-03-03", "March 3, 1871", "3 March 1871", "3rd March 1871"])
def test_a_date_is_recognised_in_whatever_form_it_is_offered(form: str) -> None:
    others = ("1871-03-04", "3 March 1817", "1 January 1902", "April 3, 1871")
    found = ask("When was Rhea Valcourt born?", take_passages(*ALL), (*others, form))
    assert found.choices == (form,)


@pytest.mark.parametrize("form", ["1250", "1,250", "1250.0", "1,250 m"])
def test_a_number_is_recognised_in_whatever_form_it_is_offered(form: str) -> None:
    others = ("250", "12,500", "1,205", "1971")
    found = ask("How long is the Orm Bridge's main span?", take_passages(*ALL), (*others, form))
    assert found.choices == (form,)


def test_a_name_within_another_word_is_no_support() -> None:
    # "Iran" stands in "Tirana", "Roma" in "Romanov" and "Ra" in "Rhea", all by accident.
    found = ask("Where was Milo Tarn born?", take_passages("tarn.txt"), ("Iran", "Roma", "Ra"))
    assert (found.choices, found.text, found.evidence) == ((), "", ())


def test_candidates_that_nothing_supports_are_not_chosen_and_confidence_is_low() -> None:
    found = ask("Where was Rhea Valcourt born?", take_passages("bridge.txt"), PLACES)
    assert found.choices == () and found.text == "" and found.evidence == ()
    assert found.confidence < 0.15


def test_what_lies_in_the_context_by_chance_is_less_sure_than_what_it_says() -> None:
    said = ask("Where was Milo Tarn born?", take_passages(*ALL), ("Tirana", "Lima"))
    near = ask("Where was Milo Tarn born?", take_passages("rhea.txt"), ("Port Amsel", "Lima"))
    assert said.choices == ("Tirana",)
    assert near.confidence < 0.5 < said.confidence


def test_a_reader_of_nothing_says_nothing() -> None:
    assert ask("Where was Rhea Valcourt born?", ()) == Reading("", (), 0.0, ())
    assert ask("Where was Rhea Valcourt born?", (), PLACES) == Reading("", (), 0.0, ())


def test_the_same_context_is_read_the_same_whatever_the_order_of_the_candidates() -> None:
    first = ask("Where was Rhea Valcourt born?", take_passages(*ALL), PLACES)
    again = ask("Where was Rhea Valcourt born?", take_passages(*ALL), PLACES)
    turned = ask("Where was Rhea Valcourt born?", take_passages(*ALL), PLACES[::-1])
    assert first == again
    assert (first.choices, first.evidence) == (turned.choices, turned.evidence)


def test_yes_no_and_maybe_follow_what_the_nearest_sentences_say() -> None:
    items = take_passages("trial.txt")
    options = ("yes", "no", "maybe")
    assert ask("Does green light help tomato seedlings to grow?", items, options).choices == ("no",)
    unrelated = ask("Is Venus inhabited by whales?", take_passages("film.txt"), options)
    assert unrelated.choices == () and unrelated.confidence == 0


def test_dates_and_numbers_are_found_with_their_places() -> None:
    text = "On 10 December 1815, and not 1816-01-02, some 1,200 or 1.5 million of 2 May 1900 came."
    found = [(text[v.start : v.end], v.value) for v in find_values(text)]
    assert found == [
        ("10 December 1815", Date(1815, 12, 10)),
        ("1816-01-02", Date(1816, 1, 2)),
        ("1,200", Decimal(1200)),
        ("1.5 million", Decimal(1_500_000)),
        ("2 May 1900", Date(1900, 5, 2)),
    ]


@pytest.mark.parametrize(
    ("wanted", "stated", "sure"),
    [
        ("1815", "10 December 1815", 0.9),  # a finer date says a coarser one
        ("10 December 1815", "1815", 0.0),  # a coarser one does not say a finer one
        ("1815-01-01", "1815", 0.85),  # how data bases write a year
        ("December 1815", "November 1815", 0.0),
    ],
)
def test_a_date_agrees_with_what_says_as_much(wanted: str, stated: str, sure: float) -> None:
    dates = read_value(wanted), read_value(stated)
    assert isinstance(dates[0], Date) and isinstance(dates[1], Date)
    assert dates[0].agree(dates[1]) == sure


def find_strength(name: str, text: str) -> float:
    places = find_name(read_name(name), split_words(text), find_values(text))
    return places[0].strength if places else 0.0


def test_a_name_counts_whole_and_less_within_a_longer_name() -> None:
    assert find_strength("the Orm Bridge", "It is the Orm Bridge.") == 1
    assert find_strength("Orm", "It is the Ormonde.") == 0
    assert 0 < find_strength("London", "He led the London Bridge Company.") < 1
    assert find_strength("Bogotá (city)", "He went to Bogota again.") == 0.95
    assert find_strength("5", "He was born on 5 May 1900.") == 0


def test_words_that_most_candidates_share_tell_none_of_them_apart() -> None:
    names = read_names(["German language", "Danish language", "Welsh language"], [(), (), ()])
    text = "They speak Danish, a language of the north."
    found = [bool(find_name(name, split_words(text), [])) for name in names]
    assert found == [False, True, False]


@pytest.mark.parametrize(
    ("question", "names", "rest", "kind"),
    [
        ("Who wrote The Lord of the Rings?", ["The Lord of the Rings"], "wrote", "PERSON"),
        ("What is the capital of Harlow County?", ["Harlow County"], "capital", "GPE"),
        ("What is the director of Inkspell?", ["Inkspell"], "director", "PERSON"),
        ("How many people live in Leeds?", ["Leeds"], "people live", "CARDINAL"),
        ("Which path did pilgrims take?", [], "path pilgrims take", None),
    ],
)
def test_a_question_is_read_for_its_names_its_words_and_the_kind_of_its_answer(
    question: str, names: list[str], rest: str, kind: str | None
) -> None:
    asks_for = "number" if question.startswith("How many") else "what"
    asks_for = "who" if question.startswith("Who") else asks_for
    linked = LinkedQuestion((), (), (), asks_for)
    asked = QuestionAnalysis(Question(question), open_told(), linked=linked)
    assert [name.text for name in asked.names] == names
    assert " ".join(word.plain for word in asked.content) == rest
    assert (kind in asked.types) if kind else not asked.types
