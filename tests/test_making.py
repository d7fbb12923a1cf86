"""Choice questions made from facts: right ones right, wrong ones wrong, the same every time."""

import json
from collections.abc import Iterable
from pathlib import Path
from random import Random

import make_questions as make_questions_script
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from making.facts import (
    Fact,
    Thing,
    fold_words,
    is_grounded,
    is_said,
    may_be_same,
    measure,
    read_date,
    say_value,
    vary_value,
)
from making.questions import make_questions, word_for_subject, word_for_value
from sets.files import write_questions

from kpyramid.documents.words import split_label
from kpyramid.errors import InputError
from kpyramid.evaluation.questions import EvalQuestion, read_questions
from tests.corpora import copy_shared_build

PEOPLE = (
    "Ann Alder,Ben Birch,Cay Cedar,Dan Dogwood,Eve Elm,Fay Fir,Gus Gum,Hal Holly,Ida Ivy".split(",")
)
TOWNS = "Oslo,Rome,Lima,Kyiv,Bern,Doha,Cairo,Quito,Seoul".split(",")


def person(name: str, *names: str) -> Thing:
    return Thing(name, name, ("person",), names)


def town(name: str) -> Thing:
    return Thing(name, name, ("town",))


def state(
    subject: Thing, relation: str, value: Thing, evidence: str = "", document: str = "d1"
) -> Fact:
    kinds = (subject.kinds[0] if subject.kinds else "", value.kinds[0] if value.kinds else "")
    said = (evidence,) if evidence else ()
    return Fact(subject, relation, value, kinds, (document,), said)


def make_births(count: int = 8) -> list[Fact]:
    """So many people, each born in a town of their own: the only wrong towns are the others."""
    return [
        state(person(who), "birth place", town(where))
        for who, where in list(zip(PEOPLE, TOWNS, strict=True))[:count]
    ]


def ask(facts: Iterable[Fact], subject: str, side: str = "object") -> EvalQuestion:
    made = make_questions(facts, sides=(side,))
    (question,) = [q for q in made.questions if q.entities[0] == subject]
    return question


def test_the_wrong_options_are_the_others_of_the_answers_class() -> None:
    question = ask(make_births(), "Ann Alder")
    assert set(question.candidates) == set(TOWNS[:8])
    assert question.values == ("Oslo",)
    assert question.group == "birth place"
    assert question.gold_documents == ("d1",)


def test_what_has_a_value_is_asked_for_in_the_other_direction() -> None:
    question = ask(make_births(), "Oslo", side="subject")
    assert set(question.candidates) == set(PEOPLE[:8])
    assert question.values == ("Ann Alder",)
    assert "Oslo" in question.text


def test_all_values_of_a_property_are_right_and_none_is_wrong() -> None:
    film = Thing("f", "Amber Harvest", ("film",))
    facts = [state(film, "director", person(name)) for name in PEOPLE[:2]]
    others = [
        state(Thing(f"o{n}", f"Other Tale {n}", ("film",)), "director", person(name))
        for n, name in enumerate([*PEOPLE[2:], "Ida Ivy", "Joe Juniper"])
    ]
    question = ask([*facts, *others], "Amber Harvest")
    assert set(question.values) == {"Ann Alder", "Ben Birch"}
    assert len(question.candidates) == 8
    assert "directors" in question.text


def test_of_many_right_values_three_are_options() -> None:
    film = Thing("f", "Amber Harvest", ("film",))
    cast = [state(film, "starring", person(name)) for name in PEOPLE[:5]]
    rest = [
        state(Thing(f"o{n}", f"Tale {n}", ("film",)), "starring", person(f"Star{n} Number{n}"))
        for n in range(9)
    ]
    question = ask([*cast, *rest], "Amber Harvest")
    assert len(question.values) == 3
    assert not set(PEOPLE[:5]) & (set(question.candidates) - set(question.values))


def test_what_a_fact_links_with_the_answer_is_no_wrong_option() -> None:
    twin = state(town("Oslo"), "twin town", town("Rome"))
    question = ask([*make_births(9), twin], "Ann Alder")
    assert set(question.candidates) == set(TOWNS) - {"Rome"}


def test_what_is_true_elsewhere_is_no_wrong_option() -> None:
    made = make_questions(make_births(9), sides=("object",), known=[("Ann Alder", "Rome")])
    (question,) = [q for q in made.questions if q.entities[0] == "Ann Alder"]
    assert set(question.candidates) == set(TOWNS) - {"Rome"}


def test_what_the_answer_lies_in_is_no_wrong_option() -> None:
    parts = [("Oslo", "Akershus"), ("Akershus", "Norway")]
    others = [town("Akershus"), town("Norway"), town("Delhi")]
    made = make_questions(make_births(7), sides=("object",), known=parts, others=others)
    (question,) = [q for q in made.questions if q.entities[0] == "Ann Alder"]
    assert set(question.candidates) == {*TOWNS[:7], "Delhi"}


def test_another_name_of_the_answer_is_no_wrong_option() -> None:
    facts = make_births(8)
    facts.append(state(person("Kim Kiwi"), "birth place", town("Oslo City")))
    assert "Oslo City" not in ask(facts, "Ann Alder").candidates


def test_what_the_evidence_names_is_no_wrong_option() -> None:
    first, *rest = make_births(9)
    said = state(first.subject, "birth place", first.object, "Ann Alder left Rome for Oslo.")
    assert "Rome" not in ask([said, *rest], "Ann Alder").candidates


def test_things_of_another_class_are_no_wrong_options() -> None:
    facts = make_births(8)
    facts += [
        state(person(who), "occupation", Thing(f"j{n}", f"Job {n}", ("occupation",)))
        for n, who in enumerate(PEOPLE)
    ]
    made = make_questions(facts)
    assert {q.group for q in made.questions} >= {"birth place", "occupation"}
    for question in made.questions:
        jobs = [option.startswith("Job ") for option in question.candidates]
        assert all(jobs) or not any(jobs)


def test_too_few_of_a_class_make_no_question_and_are_counted() -> None:
    made = make_questions(make_births(7))
    assert made.questions == ()
    assert made.left_out == {"fewer than 8 options of the answer's class": 14}


def test_a_name_that_two_things_share_is_not_asked_about() -> None:
    facts = make_births(9)
    facts.append(state(Thing("other Ann", "Ann Alder", ("person",)), "birth place", town("Rome")))
    made = make_questions(facts, sides=("object",))
    assert not [q for q in made.questions if q.entities[0] == "Ann Alder"]
    assert made.left_out["several things have the name of what is asked about"] == 2


def test_a_question_that_names_its_answer_is_left_out() -> None:
    facts = make_births(8)
    facts.append(state(Thing("x", "Quito Quill", ("person",)), "birth place", town("Quito")))
    made = make_questions(facts, sides=("object",))
    assert made.left_out["the question names the answer"] == 1


def test_facts_that_their_evidence_does_not_name_are_left_out_on_request() -> None:
    first, *rest = make_births(9)
    bare = state(first.subject, "birth place", first.object, "She was born there.")
    full = [
        state(f.subject, f.relation, f.object, f"{f.subject.name}, {f.object.name}.") for f in rest
    ]
    made = make_questions([bare, *full], grounded=True, sides=("object",))
    assert len(made.questions) == 8
    assert made.left_out == {"the evidence does not name both ends": 1}


def test_an_uncertain_fact_is_neither_asked_about_nor_a_wrong_option() -> None:
    births = make_births(9)
    unsure = Fact(person("Ann Alder"), "birth place", town("Rome"), confidence=0.3)
    made = make_questions([*births, unsure], least=0.5, sides=("object",))
    (question,) = [q for q in made.questions if q.entities[0] == "Ann Alder"]
    assert question.values == ("Oslo",)
    assert "Rome" not in question.candidates


def test_open_questions_have_all_values_and_no_options() -> None:
    film = Thing("f", "Amber Harvest", ("film",))
    facts = [state(film, "director", person(name)) for name in PEOPLE[:5]]
    made = make_questions(facts, kind="open", sides=("object",))
    (question,) = made.questions
    assert (question.kind, question.candidates) == ("values", ())
    assert set(question.values) == set(PEOPLE[:5])


def test_wrong_dates_are_near_and_written_alike() -> None:
    facts = [
        Fact(person(who), "birth date", Thing(v, v, form="date"), ("person", ""))
        for who, v in zip(PEOPLE, ("3 May 1902", "1 June 1910", "1850"), strict=False)
    ]
    question = ask(facts, "Ann Alder")
    assert question.text == "When was Ann Alder born?" or "birth date" in question.text
    assert len(question.candidates) == 8
    for option in question.candidates:
        date = read_date(option)
        assert date is not None
        assert date.day
        assert abs(date.year - 1902) <= 12
    assert "1 June 1910" in question.candidates


def test_questions_are_dealt_evenly_over_properties() -> None:
    facts = make_births(9) + [
        state(person(who), "death place", town(where))
        for who, where in zip(PEOPLE, reversed(TOWNS), strict=True)
        if who != "Eve Elm"
    ]
    made = make_questions(facts, count=6, sides=("object",))
    assert sorted(q.group for q in made.questions) == ["birth place"] * 3 + ["death place"] * 3


def test_the_same_seed_makes_the_same_questions_from_facts_in_any_order() -> None:
    facts = make_births(9)
    shuffled = Random(3).sample(facts, len(facts))
    assert make_questions(facts, seed=4) == make_questions(shuffled, seed=4)
    assert make_questions(facts, seed=4) != make_questions(facts, seed=5)


def test_more_facts_of_another_property_change_no_question() -> None:
    other = [
        Fact(person(w), "age", Thing(str(n + 20), str(n + 20), form="number"))
        for n, w in enumerate(PEOPLE)
    ]
    few = make_questions(make_births(9), sides=("object",)).questions
    more = make_questions(make_births(9) + other, sides=("object",)).questions
    assert set(few) <= set(more)


_NAMES = [f"{a} {b}" for a in "Ab Cd Ef Gh".split() for b in "Ij Kl Mn Op Qr".split()]
_FACTS = st.lists(
    st.tuples(
        st.sampled_from(_NAMES),
        st.sampled_from(["likes", "spouse", "part of"]),
        st.sampled_from(_NAMES),
    ),
    min_size=10,
    max_size=60,
)


@settings(max_examples=40, deadline=None)
@given(_FACTS, st.integers(0, 5), st.sampled_from(["object", "subject"]))
def test_no_wrong_option_is_ever_true(
    triples: list[tuple[str, str, str]], seed: int, side: str
) -> None:
    facts = [state(person(s), r, person(o)) for s, r, o in triples]
    made = make_questions(facts, seed=seed, options=4, sides=(side,))
    true = {(r, s, o) if side == "object" else (r, o, s) for s, r, o in triples}
    linked = {frozenset((s, o)) for s, _, o in triples}
    for question in made.questions:
        relation = question.group.removesuffix(" (inverse)")
        asked = question.entities[0]
        assert len(question.candidates) == 4
        assert len(set(question.candidates)) == 4
        for option in question.candidates:
            if option in question.values:
                assert (relation, asked, option) in true
                continue
            assert (relation, asked, option) not in true
            assert frozenset((asked, option)) not in linked
            assert not any(frozenset((right, option)) in linked for right in question.values)
            assert " ".join(fold_words(option)) not in " ".join(fold_words(question.text))


def test_what_is_made_is_read_as_the_same(tmp_path: Path) -> None:
    questions = list(make_questions(make_births(9)).questions)
    path = tmp_path / "q.jsonl"
    path.write_text(write_questions(questions), "utf-8")
    assert read_questions(path) == questions


@pytest.mark.parametrize("wrong", [{"options": 2}, {"count": 0}])
def test_questions_without_a_choice_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match="three options or more"):
        make_questions(make_births(), **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("label", "kind", "expected"),
    [
        ("place of birth", "city", "Where was S born?"),
        ("birthDate", "date", "When was S born?"),
        ("author", "human", "Who wrote S?"),
        ("hasAuthor", "person", "Who is the author of S?"),
        ("follows", "", "What does S follow?"),
        ("directed", "film", "Which film did S direct?"),
        ("educated at", "university", "Which university was S educated at?"),
        ("performed in", "film", "Which film did S perform in?"),
        ("located in the district", "", "Which district is S located in?"),
        ("applies to jurisdiction", "", "Which jurisdiction does S apply to?"),
        ("member of political party", "party", "Which political party is S a member of?"),
        ("capital of", "country", "Which country is S the capital of?"),
        ("part of", "album", "Which album is S part of?"),
        ("lyrics by", "human", "By whom are the lyrics of S?"),
        ("has_published_in", "journal", "Which journal has S published in?"),
        ("position held", "", "Which position was held by S?"),
        ("number_of_employees", "number", "What is the number of employees of S?"),
    ],
)
def test_a_label_becomes_a_question_for_its_value(label: str, kind: str, expected: str) -> None:
    assert expected in word_for_value(label, "S", kind)


@pytest.mark.parametrize(
    ("label", "kind", "expected", "several"),
    [
        ("place of birth", "human", "Who was born in V?", "Which people were born in V?"),
        ("author", "book", "Which book has V as author?", "Which books have V as author?"),
        ("follows", "song", "Which song follows V?", "Which songs follow V?"),
        ("member of", "human", "Who is a member of V?", "Which people are members of V?"),
        ("part of", "song", "Which song is part of V?", "Which songs are part of V?"),
        ("educated at", "human", "Who was educated at V?", "Which people were educated at V?"),
    ],
)
def test_a_label_becomes_a_question_for_what_has_it(
    label: str, kind: str, expected: str, several: str
) -> None:
    assert expected in word_for_subject(label, "V", kind, "city")
    assert several in word_for_subject(label, "V", kind, "city", several=True)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("New York", "New York City", True),
        ("The Beatles", "beatles", True),
        ("United Nations", "UN", True),
        ("G. Stanley Hall", "Granville Stanley Hall", True),
        ("Ann Alder", "Alder Ann", True),
        ("the First World War", "World War I", True),
        ("World War I", "World War II", False),
        ("Ann Alder", "Ben Alder", False),
        ("Oslo", "Rome", False),
    ],
)
def test_names_that_may_mean_the_same(one: str, other: str, *, same: bool) -> None:
    assert may_be_same(person(one), person(other)) is same
    assert may_be_same(person("Xy", one), person(other)) is same


def test_a_label_is_split_into_its_words() -> None:
    assert split_label("hasISBNNumber") == "has ISBN number"


def test_values_are_said_as_texts_say_them() -> None:
    assert say_value("1962-06-03") == ("3 June 1962", "date")
    assert say_value("00 June 1962") == ("June 1962", "date")
    assert say_value("1962") == ("1962", "date")
    assert say_value("1962", counts=True) == ("1962", "number")
    assert say_value("98.0") == ("98", "number")
    assert say_value("31 Foo 1962") == ("31 Foo 1962", "")
    assert read_date("1962-02-31") is None
    assert measure("1962-06-03", "date") == measure("3 June 1962", "date")


def test_a_sentence_says_a_number_by_its_digits() -> None:
    assert is_said("12,500", "number", fold_words("about 12,500 people"))
    assert not is_said("12,500", "number", fold_words("about 125,000 people"))
    assert is_grounded(state(person("Ann Alder"), "x", town("Oslo"), "Oslo is where Ann Alder is"))


@given(st.integers(1, 10**9), st.integers(0, 3), st.integers(0, 100))
def test_a_varied_number_is_written_as_the_right_one(value: int, digits: int, seed: int) -> None:
    text = f"{value / 10**digits:.{digits}f}"
    varied = vary_value(text, "number", Random(seed))
    assert len(varied.partition(".")[2]) == digits
    assert float(varied) >= 0


def test_the_script_makes_what_evaluation_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse, _ = copy_shared_build(tmp_path / "warehouse")
    out = tmp_path / "questions.jsonl"
    words = ["--warehouse", str(warehouse.root), "--out", str(out), "--json"]
    monkeypatch.setattr("sys.argv", ["make_questions.py", *words])
    monkeypatch.setattr(make_questions_script, "OPTIONS", 3)
    make_questions_script.main()
    said = json.loads(capsys.readouterr().out)
    questions = read_questions(out)
    assert said["questions"] == len(questions) > 0
    born = {q.gold_documents: q for q in questions if q.group == "birth place"}
    assert {source: q.values for source, q in born.items()} == {
        ("batt.txt",): ("Oslo",),
        ("lake.txt",): ("Kiruna",),
        ("zorblax.txt",): ("Lima",),
    }
    assert born["lake.txt",].evidence == ("Per Lund was born in Kiruna.",)
