"""A person's word on proposals, written into the decisions file."""

import threading
from pathlib import Path

import pytest

from kpyramid.completion.decisions import parse_decisions
from kpyramid.completion.review import decide, hold_file
from kpyramid.errors import InputError
from kpyramid.snapshot.proposals import Listed, find_proposal
from tests.planted import GENERAL, PERSON, PLACE, general_schema
from tests.rows import each_row


def accept(text: str) -> list[dict[str, object]]:
    return parse_decisions(text, "d.toml").list_accepted(general_schema())


def make_row(words: str, **changes: object) -> dict[str, object]:
    return {
        "proposal_id": f"proposal-{words}",
        "kind": "property",
        "iri": GENERAL + words.replace(" ", "_"),
        "label": words,
        "definition": f"That {words}.",
        "domain": PERSON,
        "range": PLACE,
        "inverse_of": None,
        "splits": None,
        "phrases": (words,),
        "state": "open",
    } | changes


VILLAGE = make_row(
    "Village", kind="class", label="village", domain=PLACE, range=None, state="accepted"
)


def decide_on(text: str, *rows: dict[str, object], decision: str = "accept", **options: str) -> str:
    known = parse_decisions(text, "d.toml")
    chosen, schema = rows[:1], general_schema()
    return decide(decision, chosen, rows, schema, text, known, **options).text  # type: ignore[arg-type]


def test_an_accepted_proposal_is_written_whole() -> None:
    text = decide_on("", make_row("is king of"), note="of old")
    (row,) = accept(text)
    assert (row["iri"], row["domain"], row["range"]) == (GENERAL + "is_king_of", PERSON, PLACE)
    assert (row["definition"], row["note"]) == ("That is king of.", "of old")


def test_another_label_gives_another_iri_and_keeps_the_wordings() -> None:
    (row,) = accept(decide_on("", make_row("is king of"), label="rules over"))
    assert (row["iri"], row["label"]) == (GENERAL + "rules_over", "rules over")
    assert row["phrases"] == ["is king of"]


@pytest.mark.parametrize("label", ["birth place", "Birth Place"])
def test_a_label_of_the_ontology_is_refused_as_another_one(label: str) -> None:
    with pytest.raises(InputError, match=r"--label .* 'birth place' of the .*, <.*birthPlace>"):
        decide_on("", make_row("hails from"), label=label)


@pytest.mark.parametrize("decision", ["accept", "reject"])
def test_a_label_of_another_entry_is_refused(decision: str) -> None:
    text = decide_on("", make_row("is king of"), decision=decision)
    with pytest.raises(InputError, match=r"--label 'was king of' is the label of d\.toml, entry 1"):
        decide_on(text, make_row("hails from"), label="was king of")
    after = decide_on(text, make_row("hails from"), label="comes from")
    assert [e.label for e in parse_decisions(after, "d").entries] == ["is king of", "comes from"]


def test_the_label_of_a_class_is_free_for_a_property_and_refused_for_a_class() -> None:
    assert accept(decide_on("", make_row("hails from"), label="person"))[0]["label"] == "person"
    with pytest.raises(InputError, match=r"the class 'person' of the ontology"):
        decide_on("", VILLAGE | {"state": "open"}, label="Person")


def test_what_a_proposal_stands_on_is_accepted_with_it() -> None:
    text = decide_on("", make_row("hails from", range=VILLAGE["iri"]), VILLAGE)
    assert [r["label"] for r in accept(text)] == ["village", "hails from"]


def test_a_class_that_was_accepted_under_another_name_is_pointed_to_by_its_own_iri() -> None:
    text = decide_on("", VILLAGE, label="hamlet")
    text = decide_on(text, make_row("hails from", range=VILLAGE["iri"]), VILLAGE)
    assert accept(text)[1]["range"] == GENERAL + "Hamlet"


def test_what_stands_on_a_rejected_class_is_not_accepted() -> None:
    text = decide_on("", VILLAGE, decision="reject")
    with pytest.raises(InputError, match=r"hails from depends on village, which d\.toml, entry 1"):
        decide_on(text, make_row("hails from", range=VILLAGE["iri"]), VILLAGE)


def test_two_inverses_are_accepted_together_and_stated_once() -> None:
    one = make_row("beats", inverse_of=GENERAL + "loses_to", state="accepted")
    other = make_row("loses to", inverse_of=GENERAL + "beats", state="accepted")
    rows = accept(decide_on("", one, other))
    assert [(r["label"], r["inverse_of"]) for r in rows] == [
        ("loses to", None),
        ("beats", GENERAL + "loses_to"),
    ]


def test_deciding_twice_changes_nothing_and_the_other_way_is_left_to_a_person() -> None:
    text = decide_on("", make_row("is king of"))
    assert decide_on(text, make_row("is king of")) == text
    with pytest.raises(InputError, match=r'entry 1 .* has decision = "accept"; write "reject"'):
        decide_on(text, make_row("is king of"), decision="reject")


def test_a_label_for_what_is_decided_already_is_told_where_it_stands() -> None:
    text = decide_on("", make_row("is king of"))
    with pytest.raises(InputError, match=r"entry 1 .*write label = 'rules' there"):
        decide_on(text, make_row("is king of"), label="rules")


REIGNED = {"phrases": ("reigned in", "ruled in")}
LIKE = {"phrases": ("ruled in", "was deposed in")}


@each_row("first, second, state")
def test_what_is_like_a_decided_proposal_gets_an_entry_of_its_own(
    first: str, second: str, state: str
) -> None:
    text = decide_on("", make_row("reigned in", **REIGNED), decision=first)
    after = decide_on(text, make_row("ruled in", state=state, **LIKE), decision=second)
    assert after.startswith(text)
    entries = parse_decisions(after, "d").entries
    assert [(e.label, e.decision) for e in entries] == [("reigned in", first), ("ruled in", second)]


def test_a_proposal_that_was_accepted_under_another_label_is_known_there() -> None:
    text = decide_on("", make_row("reigned in", **REIGNED), label="governed")
    with pytest.raises(InputError, match=r"entry 1 \(property 'governed'\) has decision"):
        decide_on(text, make_row("reigned in", **REIGNED), decision="reject")
    other_ends = make_row("reigned in", range=PERSON, **REIGNED)
    assert len(parse_decisions(decide_on(text, other_ends, decision="reject"), "d").entries) == 2


def test_a_file_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "of" / "may.toml"
    waiting, done = threading.Event(), threading.Event()

    def write() -> None:
        waiting.set()
        with hold_file(path):
            done.set()

    with hold_file(path):
        other = threading.Thread(target=write)
        other.start()
        assert waiting.wait(5) and not done.wait(0.2)
    assert done.wait(5)
    other.join()
    assert list(path.parent.iterdir()) == []


def test_an_alias_needs_no_acceptance_but_can_be_rejected() -> None:
    row = make_row("was born at", iri=GENERAL + "birthPlace", state="alias")
    assert decide_on("", row) == ""
    assert parse_decisions(decide_on("", row, decision="reject"), "d").entries


def make_listed(proposal_id: str) -> Listed:
    return Listed(
        proposal_id, "", "open", "class", "x", "", "", "", None, None, None, (), (), 0, 0.0, 0.0,
        1, "rules", "", (), (),
    )  # fmt: skip


def test_a_beginning_that_two_ids_share_is_refused_with_both() -> None:
    both = [make_listed("proposal-abc1"), make_listed("proposal-abc2")]
    assert find_proposal("abc1", both) is both[0]
    assert find_proposal("Proposal-ABC2", both) is both[1]
    with pytest.raises(InputError, match=r"proposal-abc1 .*proposal-abc2 .*give more digits"):
        find_proposal("abc", both)
