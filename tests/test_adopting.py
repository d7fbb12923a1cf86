"""What is adopted of a round: a file's word, subjects in either voice, facts by blocks."""

import pytest

from tests.planted import (
    KNOWN,
    MISSING,
    PEOPLE,
    PERSON,
    PLACE,
    TOWNS,
    VILLAGES,
    Statement,
    run_complete,
    suggest,
    use_script,
)
from tests.rows import each_row

CHESS = "lost the chess match against"
ACCEPT = f"""
[[proposal]]
decision = "accept"
kind = "property"
label = "was beaten by"
domain = "{PERSON}"
range = "{PERSON}"
phrases = ["{CHESS}"]
"""
VISITED: list[Statement] = [
    (person, "PERSON", "visited", town, "GPE") for person, town in zip(PEOPLE, TOWNS, strict=True)
]


def test_what_is_only_like_an_accepted_entry_has_to_fit_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_script(monkeypatch, [suggest(CHESS, CHESS, "visited")])
    done = run_complete(KNOWN + MISSING + VISITED, decisions=ACCEPT)
    row = done.find(CHESS)
    assert (row["state"], row["decided_by"]) == ("open", "rules")
    assert "like 'was beaten by', but 50% of the facts fit" in row["note"]
    beaten = done.find("was beaten by")
    assert "visited" not in done.grown.property_by_iri[beaten["iri"]].alt_labels


def test_a_persons_word_stands_for_what_has_the_label_of_the_entry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_script(monkeypatch, [suggest("was beaten by", CHESS, "visited")])
    done = run_complete(KNOWN + MISSING + VISITED, decisions=ACCEPT)
    accepted, alias = sorted(done.proposals, key=lambda row: row["round"])
    assert (alias["state"], alias["decided_by"]) == ("alias", "file")
    assert alias["iri"] == accepted["iri"]
    assert alias["proposal_id"] != accepted["proposal_id"]


def test_the_name_of_an_entry_is_no_wording_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """`was beaten by` is what an entry is called; one fact says it and means another thing."""
    use_script(monkeypatch)
    beaten: list[Statement] = [
        (PEOPLE[0], "PERSON", "was beaten by", PEOPLE[3], "PERSON"),
        (TOWNS[0], "GPE", "is a", "hamlet", "NOUN"),
    ]
    hamlet = f"""
[[proposal]]
decision = "accept"
kind = "class"
label = "hamlet"
domain = "{PLACE}"
phrases = ["village"]
"""
    done = run_complete(KNOWN + MISSING + VILLAGES[1:] + beaten, decisions=ACCEPT + hamlet)
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
    places: int, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One owner says it straight, many things of it the other way: few subjects, or many."""
    owners = PEOPLE[:places]
    straight: list[Statement] = [(PEOPLE[0], "PERSON", "owns the mill of", TOWNS[0], "GPE")]
    other: list[Statement] = [
        (town, "GPE", "has a mill owned by", owners[at % places], "PERSON")
        for at, town in enumerate(TOWNS[1:])
    ]
    values, _ = suggest("owns the mill of", range=PLACE)
    use_script(monkeypatch, [(values, ("owns the mill of", "has a mill owned by"))])
    row = run_complete(KNOWN + straight + other).find("owns the mill of")
    assert (row["support"], row["state"]) == (len(TOWNS), state)


@each_row("facts, listed")
def test_what_is_left_open_has_three_facts_of_two_subjects(
    facts: list[Statement], listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_script(monkeypatch, [suggest(CHESS)])
    assert [row["label"] for row in run_complete([*KNOWN, *facts]).proposals] == [CHESS] * listed


def test_a_property_that_says_a_kind_and_a_place_is_no_proposal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    label = "is a village in"
    within: list[Statement] = [
        (town, "GPE", label, other, "GPE")
        for town, other in zip(TOWNS, TOWNS[1:] + TOWNS[:1], strict=True)
    ]
    use_script(monkeypatch, [suggest(label, domain=PLACE, range=PLACE)])
    assert run_complete(KNOWN + within).proposals == []
