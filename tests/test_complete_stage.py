"""Stage complete around `propose`: who decides, what is adopted, what follows, round by round."""

from collections.abc import Callable
from typing import Any

import pytest

from kpyramid.errors import InputError
from kpyramid.ontology.names import THING
from kpyramid.ontology.schema import OntologyProperty
from kpyramid.pipeline.stages.instances import Graph
from tests.planted import (
    GENERAL,
    KNOWN,
    MISSING,
    PEOPLE,
    PERSON,
    PLACE,
    PLAYERS,
    TOWNS,
    VILLAGES,
    Completed,
    Statement,
    general_schema,
    run_complete,
    suggest,
    use_script,
)
from tests.rows import each_row, read_text

CHESS = "lost the chess match against"
LOST = {(loser, winner) for loser, _, _, winner, _ in MISSING}
VILLAGE: dict[str, Any] = {
    "kind": "class",
    "domain": PLACE,
    "range": None,
    "phrases": ("village",),
}


Complete = Callable[..., Completed]


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch) -> Complete:
    """Runs the stage on facts, with these proposals round by round."""

    def run(facts: list[Statement], *rounds: Any, **options: Any) -> Completed:
        use_script(monkeypatch, *rounds)
        return run_complete(facts, **options)

    return run


def village(**changes: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    values, _ = suggest("village", **VILLAGE | changes)
    return values, ("is a small village",)


def pair_towns(wording: str) -> list[Statement]:
    """What each town is to the next."""
    following = zip(TOWNS, TOWNS[1:] + TOWNS[:1], strict=True)
    return [(town, "GPE", wording, other, "GPE") for town, other in following]


def test_a_proposal_is_accepted_with_the_instances_of_all_its_facts(complete: Complete) -> None:
    done = complete(KNOWN + MISSING, [suggest(CHESS)])
    row = done.find(CHESS)
    assert (row["state"], row["decided_by"], row["round"]) == ("accepted", "rules", 1)
    assert row["support"] == len(row["triple_ids"]) == len(MISSING)
    assert done.list_values(row["iri"]) == LOST
    assert done.grown.property_by_iri[row["iri"]].comment == f"That {CHESS}."
    vectors = done.made["vectors"].to_pylist()
    assert {v["text"] for v in vectors} == {f"{a} {CHESS} {b}" for a, b in LOST}


def test_what_has_no_class_at_an_end_is_neither_taken_nor_listed(complete: Complete) -> None:
    assert not complete(KNOWN + MISSING, [suggest(CHESS, range=THING)]).proposals


@each_row("changes, note")
def test_what_is_not_clear_is_open_and_says_why(
    changes: dict[str, Any], note: str, complete: Complete
) -> None:
    done = complete(KNOWN + MISSING, [suggest(CHESS, **changes)])
    assert done.find(CHESS)["state"] == "open"
    assert note in done.find(CHESS)["note"]
    assert done.made["instances"].num_rows == 0
    assert done.grown == done.schema


@pytest.mark.parametrize(
    "facts", [MISSING[:4], [(*row[:3], t, "PERSON") for row in MISSING[:2] for t in PEOPLE]]
)
def test_what_few_facts_say_or_facts_of_few_things_is_open(
    facts: list[Statement], complete: Complete
) -> None:
    row = complete(KNOWN + facts, [suggest(CHESS)]).find(CHESS)
    assert (row["state"], row["note"]) == ("open", "few facts, or of few things")


def test_an_accepted_class_has_its_members_and_the_next_round_sees_the_grown_ontology(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    twin = pair_towns("is twinned with")
    script = use_script(
        monkeypatch,
        [village()],
        [suggest("is twinned with", domain=GENERAL + "Village", range=GENERAL + "Village")],
    )
    done = run_complete(KNOWN + VILLAGES + twin)
    assert done.find("village")["round"] == 1
    assert done.list_members(GENERAL + "Village") == set(TOWNS)
    assert len(done.list_values(done.find("twinned with")["iri"])) == len(TOWNS)
    assert done.find("twinned with")["round"] == 2
    first, second, third = script.seen
    assert GENERAL + "Village" not in first.schema.class_by_iri
    assert GENERAL + "Village" in second.schema.class_by_iri
    assert len(third.pairs) == len(first.pairs) + len(TOWNS)
    assert set(third.properties) - set(first.properties) == {done.find("twinned with")["iri"]}


def test_rounds_end_after_as_many_as_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    script = use_script(monkeypatch, [suggest(CHESS)], [village()], [])
    run_complete(KNOWN + MISSING + VILLAGES, rounds=1)
    assert len(script.seen) == 1


def test_what_was_open_is_not_listed_twice_and_gives_way_when_it_is_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_script(
        monkeypatch,
        [village(), suggest(CHESS, agreement=0.5)],
        [suggest(CHESS), suggest("village again", **VILLAGE | {"phrases": ("Village",)})],
    )
    done = run_complete(KNOWN + MISSING + PLAYERS + VILLAGES)
    assert [(r["label"], r["round"]) for r in done.proposals if r["kind"] == "class"] == [
        ("village", 1)
    ]
    assert (done.find(CHESS)["state"], done.find(CHESS)["round"]) == ("accepted", 2)


def test_an_alias_gives_its_wordings_and_their_facts_to_what_it_names(complete: Complete) -> None:
    first: list[Statement] = [
        ("Hal Otto", "PERSON", "first saw light in", "Ghent", "GPE"),
        ("Ida Penn", "PERSON", "first saw light in", "Durham", "GPE"),
    ]
    born = GENERAL + "birthPlace"
    done = complete(KNOWN + first, [suggest("first saw light in", existing=born, range=PLACE)])
    row = done.find("first saw light in")
    assert (row["state"], row["iri"]) == ("alias", born)
    assert done.list_values(born) == {("Hal Otto", "Ghent"), ("Ida Penn", "Durham")}
    assert "first saw light in" in done.grown.property_by_iri[born].alt_labels


def test_a_split_states_the_whole_too(complete: Complete) -> None:
    known: list[Statement] = [(PEOPLE[0], "PERSON", "knows", PEOPLE[1], "PERSON")]
    whole = OntologyProperty(GENERAL + "opponent", "opponent", (), "", PERSON, PERSON)
    schema = general_schema().extend([whole])
    done = complete(KNOWN + MISSING + known, [suggest(CHESS, splits=whole.iri)], schema=schema)
    row = done.find(CHESS)
    assert (row["state"], row["splits"]) == ("accepted", whole.iri)
    assert (whole.iri, False) in done.grown.find_entailed(row["iri"])


def test_a_split_that_would_exceed_the_whole_is_open(complete: Complete) -> None:
    """The whole may have one value; two parts of it with different values cannot both hold."""
    born = GENERAL + "birthPlace"
    moved: list[Statement] = [
        (person, "PERSON", "moved to", town, "GPE")
        for person, town in zip(PEOPLE, TOWNS[1:] + TOWNS[:1], strict=True)
    ]
    done = complete(KNOWN + moved, [suggest("moved to", range=PLACE, splits=born)])
    row = done.find("moved to")
    assert row["state"] == "open"
    assert "100% of the facts contradict the ontology: functional conflict" in row["note"]
    assert done.made["instances"].num_rows == 0


def test_a_class_whose_members_are_of_one_that_excludes_it_is_open(complete: Complete) -> None:
    done = complete(KNOWN + VILLAGES, [village(domain=PERSON)])
    row = done.find("village")
    assert row["state"] == "open"
    assert "contradict the ontology: disjoint classes" in row["note"]
    assert done.list_members(row["iri"]) == set()


def test_values_that_do_not_fit_are_rejects_that_say_so(complete: Complete) -> None:
    odd: list[Statement] = [(PEOPLE[0], "PERSON", CHESS, "great poverty", "NOUN")]
    done = complete(KNOWN + MISSING + odd, [suggest(CHESS)])
    (reject,) = done.made["rejects"].to_pylist()
    assert (reject["stage"], reject["reason"]) == ("complete", "range")
    assert "great poverty" in reject["detail"]
    assert done.list_values(done.find(CHESS)["iri"]) == LOST


# Decisions of a person.

ACCEPT = read_text("complete_stage_accept.toml")
REJECT = read_text("complete_stage_reject.toml")


def test_what_the_file_accepts_is_adopted_though_nothing_proposes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = use_script(monkeypatch)
    done = run_complete(KNOWN + MISSING, decisions=ACCEPT)
    row = done.find("was beaten by")
    assert (row["state"], row["decided_by"], row["round"]) == ("accepted", "file", 0)
    assert (row["support"], row["agreement"]) == (len(MISSING), 1.0)
    assert done.list_values(row["iri"]) == LOST
    assert row["iri"] in script.seen[0].schema.property_by_iri
    assert row["iri"] in script.seen[0].properties  # its values are part of the ontology


def test_what_the_file_accepts_stays_when_the_graph_says_it_no_longer(complete: Complete) -> None:
    done = complete(KNOWN, decisions=ACCEPT)
    row = done.find("was beaten by")
    assert (row["state"], row["support"], row["triple_ids"]) == ("accepted", 0, [])
    assert row["iri"] in done.grown.property_by_iri


def test_what_the_next_corpus_contradicts_is_a_reject_and_the_decision_stands(
    complete: Complete,
) -> None:
    """All facts of the accepted wording now have a tail that its range excludes."""
    towns: list[Statement] = [(loser, "PERSON", CHESS, TOWNS[0], "GPE") for loser in PEOPLE[:3]]
    done = complete(KNOWN + towns, decisions=ACCEPT)
    row = done.find("was beaten by")
    assert (row["state"], row["decided_by"], row["range"]) == ("accepted", "file", PERSON)
    assert not done.list_values(row["iri"])
    rejects = done.made["rejects"].to_pylist()
    assert {r["reason"] for r in rejects} == {"range"}
    assert len(rejects) == len(towns)


def test_what_the_file_rejects_is_not_adopted_under_any_name(complete: Complete) -> None:
    done = complete(KNOWN + MISSING, [suggest("was beaten by", CHESS)], decisions=REJECT)
    row = done.find("was beaten by")
    assert (row["state"], row["decided_by"], row["note"]) == ("rejected", "file", "too narrow")
    assert done.made["instances"].num_rows == 0
    assert done.grown == done.schema


def test_a_proposal_that_the_file_accepted_in_part_is_another_name_for_it(
    complete: Complete,
) -> None:
    more: list[Statement] = [(PEOPLE[0], "PERSON", "lost at chess to", PEOPLE[2], "PERSON")]
    done = complete(
        KNOWN + MISSING + more, [suggest(CHESS, CHESS, "lost at chess to")], decisions=ACCEPT
    )
    accepted, alias = done.find("was beaten by"), done.find(CHESS)
    assert (alias["state"], alias["decided_by"]) == ("alias", "file")
    assert alias["iri"] == accepted["iri"]
    assert (PEOPLE[0], PEOPLE[2]) in done.list_values(accepted["iri"])


@pytest.mark.slow
def test_a_class_that_the_file_accepts_may_be_the_end_of_a_property_there() -> None:
    decisions = read_text("complete_stage_ends.toml")
    hailed: list[Statement] = [(PEOPLE[0], "PERSON", "hailed from", TOWNS[0], "GPE")]
    done = run_complete(KNOWN + VILLAGES + hailed, decisions=decisions)
    assert done.list_members(GENERAL + "Village") == set(TOWNS)
    assert done.list_values(GENERAL + "hailed_from") == {(PEOPLE[0], TOWNS[0])}


def test_what_is_accepted_has_the_values_of_all_wordings_of_its_meaning() -> None:
    decisions = read_text("complete_stage_club.toml")
    said: list[Statement] = [
        (PEOPLE[0], "PERSON", "plays for", "Acme", "ORG"),
        (PEOPLE[1], "PERSON", "has club", "Acme", "ORG"),
        ("Acme", "ORG", "is the club of", PEOPLE[2], "PERSON"),
        (PEOPLE[3], "PERSON", "is a fan of", "Acme", "ORG"),
    ]
    done = run_complete(KNOWN + said, decisions=decisions)
    assert done.list_values(GENERAL + "club") == {(name, "Acme") for name in PEOPLE[:3]}


def test_an_entry_that_does_not_fit_the_ontology_is_refused_by_name() -> None:
    decisions = ACCEPT.replace(f'range = "{PERSON}"', f'range = "{GENERAL}Kingdom"')
    with pytest.raises(InputError, match=r"proposals.toml, entry 1 .*range <.*Kingdom> is no cl"):
        run_complete(KNOWN, decisions=decisions)


def test_what_one_chunk_lists_is_accepted_only_by_a_person(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_script(monkeypatch, [village()])
    monkeypatch.setattr(Graph, "count_places", lambda graph, places: (2, 0))
    done = run_complete(KNOWN + VILLAGES)
    assert done.find("village")["state"] == "open"
    monkeypatch.setattr(Graph, "count_places", lambda graph, places: (1, 0))
    use_script(monkeypatch, [village()])
    assert not run_complete(KNOWN + VILLAGES).proposals


def test_a_fault_is_a_reject_with_its_reason(complete: Complete) -> None:
    done = complete(KNOWN + MISSING, [suggest(CHESS, fault="another_says_it")])
    assert not done.proposals
    (reject,) = done.made["rejects"].to_pylist()
    assert (reject["stage"], reject["reason"]) == ("complete", "another_says_it")


@pytest.mark.parametrize("first", [0, 1])
def test_two_wordings_of_one_name_are_two_rows_whichever_comes_first(
    complete: Complete, first: int
) -> None:
    both = [suggest("was tied to"), suggest("tied to")]
    tied = [(*fact[:2], "was tied to", *fact[3:]) for fact in MISSING]
    held = [(*fact[:2], "tied to", *fact[3:]) for fact in MISSING]
    done = complete([*KNOWN, *tied, *held], [both[first], both[1 - first]])
    rows = [(row["label"], row["phrases"]) for row in done.proposals]
    assert sorted(rows) == [("tied to", ["tied to"]), ("was tied to", ["was tied to"])]
    assert len({row["proposal_id"] for row in done.proposals}) == 2


# What is adopted: a file's word, subjects in either voice, facts by blocks.

VISITED: list[Statement] = [
    (person, "PERSON", "visited", town, "GPE") for person, town in zip(PEOPLE, TOWNS, strict=True)
]


def test_what_is_only_like_an_accepted_entry_has_to_fit_it(complete: Complete) -> None:
    done = complete(KNOWN + MISSING + VISITED, [suggest(CHESS, CHESS, "visited")], decisions=ACCEPT)
    row = done.find(CHESS)
    assert (row["state"], row["decided_by"]) == ("open", "rules")
    assert "like 'was beaten by', but 50% of the facts fit" in row["note"]
    beaten = done.find("was beaten by")
    assert "visited" not in done.grown.property_by_iri[beaten["iri"]].alt_labels


def test_a_persons_word_stands_for_what_has_the_label_of_the_entry(complete: Complete) -> None:
    done = complete(
        KNOWN + MISSING + VISITED, [suggest("was beaten by", CHESS, "visited")], decisions=ACCEPT
    )
    accepted, alias = sorted(done.proposals, key=lambda row: row["round"])
    assert (alias["state"], alias["decided_by"]) == ("alias", "file")
    assert alias["iri"] == accepted["iri"]
    assert alias["proposal_id"] != accepted["proposal_id"]


def test_the_name_of_an_entry_is_no_wording_of_it(complete: Complete) -> None:
    """`was beaten by` is what an entry is called; one fact says it and means another thing."""
    beaten: list[Statement] = [
        (PEOPLE[0], "PERSON", "was beaten by", PEOPLE[3], "PERSON"),
        (TOWNS[0], "GPE", "is a", "hamlet", "NOUN"),
    ]
    hamlet = read_text("complete_stage_hamlet.toml")
    done = complete(KNOWN + MISSING + VILLAGES[1:] + beaten, decisions=ACCEPT + hamlet)
    entry, kind = done.find("was beaten by"), done.find("hamlet")
    assert (entry["support"], entry["agreement"]) == (len(MISSING), 1.0)
    assert len(done.list_values(entry["iri"])) == len(MISSING)
    assert (PEOPLE[0], PEOPLE[3]) not in done.list_values(entry["iri"])
    assert kind["support"] == len(VILLAGES) - 1
    assert done.list_members(kind["iri"]) == set(TOWNS[1:])
    assert not [row for row in done.made["rejects"].to_pylist() if "was beaten by" in row["detail"]]
    assert done.grown.property_by_iri[entry["iri"]].label == "was beaten by"
    assert done.grown.class_by_iri[kind["iri"]].label == "hamlet"


@pytest.mark.parametrize(("places", "state"), [(5, "accepted"), (2, "open")])
def test_the_subjects_of_facts_in_the_other_voice_are_their_tails(
    places: int, state: str, complete: Complete
) -> None:
    """One owner says it straight, many things of it the other way: few subjects, or many."""
    owners = PEOPLE[:places]
    straight: list[Statement] = [(PEOPLE[0], "PERSON", "owns the mill of", TOWNS[0], "GPE")]
    other: list[Statement] = [
        (town, "GPE", "has a mill owned by", owners[at % places], "PERSON")
        for at, town in enumerate(TOWNS[1:])
    ]
    values, _ = suggest("owns the mill of", range=PLACE)
    both = (values, ("owns the mill of", "has a mill owned by"))
    row = complete(KNOWN + straight + other, [both]).find("owns the mill of")
    assert (row["support"], row["state"]) == (len(TOWNS), state)


@each_row("facts, listed")
def test_what_is_left_open_has_three_facts_of_two_subjects(
    facts: list[Statement], listed: bool, complete: Complete
) -> None:
    done = complete([*KNOWN, *facts], [suggest(CHESS)])
    assert [row["label"] for row in done.proposals] == [CHESS] * listed


def test_a_property_that_says_a_kind_and_a_place_is_no_proposal(complete: Complete) -> None:
    label = "is a village in"
    assert (
        complete(KNOWN + pair_towns(label), [suggest(label, domain=PLACE, range=PLACE)]).proposals
        == []
    )
