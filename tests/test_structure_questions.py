"""Questions over many documents, made from facts, and the typed questions that ask the same."""

from making.facts import Fact, Thing
from making.structure import make_structure_questions

FILMS = ("Red Harbour", "The Long Winter", "Paper Boats", "Salt Road", "Night Ferry", "Glass Hill")


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
    typed = make_structure_questions(FACTS).questions
    made = [one.question for one in typed]
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
    assert make_structure_questions(FACTS).questions == typed
    assert len(make_structure_questions(FACTS, count=3).questions) == 3


def test_a_set_with_an_unsure_fact_is_not_asked_about() -> None:
    unsure = [fact for fact in FACTS if fact.relation == "director"]
    made = make_structure_questions(unsure, least=1.1)
    assert not made.questions and "a fact is not certain enough" in made.left_out


def test_each_is_stated_as_the_call_that_asks_it() -> None:
    typed = make_structure_questions(FACTS).questions
    calls = {one.question.group: (one.tool, dict(one.arguments)) for one in typed}

    assert calls["list: director"] == (
        "find",
        {"class_name": "thing", "where": [["director", "Ada Holm"]]},
    )
    assert calls["comparison: release date"][0] == "compare"
    superlative = calls["superlative: director"][1]
    assert superlative["order_by"] == "-count(^director)" and superlative["limit"] == 1
