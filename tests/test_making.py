"""Choice questions made from facts: right ones right, wrong ones wrong, the same every time."""

import json
from collections.abc import Iterable
from pathlib import Path
from random import Random

import make_questions as make_questions_script
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from making.facts import Fact, Thing, fold_words, may_be_same
from making.questions import make_questions, word_for_subject, word_for_value

from kpyramid.evaluation.questions import EvalQuestion, read_questions
from tests.corpora import copy_shared_build
from tests.rows import each_row

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


def test_a_question_that_names_its_answer_is_left_out() -> None:
    facts = make_births(8)
    facts.append(state(Thing("x", "Quito Quill", ("person",)), "birth place", town("Quito")))
    made = make_questions(facts, sides=("object",))
    assert made.left_out["the question names the answer"] == 1


def test_an_uncertain_fact_is_neither_asked_about_nor_a_wrong_option() -> None:
    births = make_births(9)
    unsure = Fact(person("Ann Alder"), "birth place", town("Rome"), confidence=0.3)
    made = make_questions([*births, unsure], least=0.5, sides=("object",))
    (question,) = [q for q in made.questions if q.entities[0] == "Ann Alder"]
    assert question.values == ("Oslo",)
    assert "Rome" not in question.candidates


def test_the_same_seed_makes_the_same_questions_from_facts_in_any_order() -> None:
    facts = make_births(9)
    shuffled = Random(3).sample(facts, len(facts))
    assert make_questions(facts, seed=4) == make_questions(shuffled, seed=4)
    assert make_questions(facts, seed=4) != make_questions(facts, seed=5)


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
def test_no_wrong_option_is_true(triples: list[tuple[str, str, str]], seed: int, side: str) -> None:
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


@each_row("label, kind, expected")
def test_a_label_becomes_a_question_for_its_value(label: str, kind: str, expected: str) -> None:
    assert expected in word_for_value(label, "S", kind)


@each_row("label, kind, expected, several")
def test_a_label_becomes_a_question_for_what_has_it(
    label: str, kind: str, expected: str, several: str
) -> None:
    assert expected in word_for_subject(label, "V", kind, "city")
    assert several in word_for_subject(label, "V", kind, "city", several=True)


@each_row("one, other, same")
def test_names_that_may_mean_the_same(one: str, other: str, *, same: bool) -> None:
    assert may_be_same(person(one), person(other)) is same
    assert may_be_same(person("Xy", one), person(other)) is same


@pytest.mark.slow
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
