"""When facts hold and how texts hold them: columns of their own, and what look-ups make of them."""

import datetime
import json
from pathlib import Path

import pytest

import kpyramid
from kpyramid.documents.validity import date_fact, differ_in_time, find_date, place_times, read_time
from kpyramid.documents.words import hold
from kpyramid.errors import InputError
from kpyramid.graph.synonyms.meaning import read_modality
from kpyramid.query import Snapshot, answer
from kpyramid.snapshot.graph import VALID
from tests.corpora import open_told
from tests.rows import each_row, read_bodies, read_rows

TIMES = dict(read_rows("validity.times"))


@pytest.mark.parametrize(("words", "ends"), TIMES.items())
def test_times_are_read_as_fine_as_they_are_told(words: str, ends: object) -> None:
    assert read_time(words) == ends


@each_row("qualifiers, ends")
def test_times_of_one_fact_are_united_where_they_agree(
    qualifiers: dict[str, str], ends: object
) -> None:
    assert date_fact(qualifiers.items(), "leads") == ends


@each_row("wording, time, ends")
def test_a_state_holds_from_its_beginning(wording: str, time: str, ends: object) -> None:
    assert date_fact([("time", time)], wording) == ends


@each_row("one, other, apart")
def test_periods_that_follow_each_other_are_apart(one: object, other: object, apart: bool) -> None:
    assert differ_in_time([one], [other]) is apart is differ_in_time([other], [one])


@each_row("words, day, placed", "validity.pointed_times")
def test_times_that_point_from_the_text_are_placed_by_its_day_or_left_out(
    words: str, day: str | None, placed: str | None
) -> None:
    made = place_times({"time": words, "by": "car"}, day and datetime.date.fromisoformat(day))
    assert made == ({"time": placed, "by": "car"} if placed else {"by": "car"})


def test_a_month_that_is_planned_is_still_to_come() -> None:
    day = datetime.date(2025, 2, 10)
    for is_planned, placed in ((True, "June 2025"), (False, "June 2024")):
        assert place_times({"time": "in June"}, day, is_planned=is_planned) == {"time": placed}


@each_row("wording, modality")
def test_a_wording_says_how_it_is_held(wording: str, modality: str) -> None:
    assert read_modality(wording) == modality


@each_row("phrase, modality, held", "validity.held_wordings")
def test_a_wording_is_held_as_english_does(phrase: str, modality: str, held: str) -> None:
    assert hold(phrase, modality) == held
    assert read_modality(held) == modality and hold("", modality) == ""


@pytest.mark.parametrize(
    ("metadata", "title", "day"),
    [
        ({"Date": "Tue, 03 Jun 2025 10:00:00 +0200"}, None, datetime.date(2025, 6, 3)),
        ({"datePublished": "2025-06-03T12:00:00Z"}, None, datetime.date(2025, 6, 3)),
        ({}, "Minutes of 3 June 2025", datetime.date(2025, 6, 3)),
        ({"date": "3/4/2025", "published": "30/4/2025"}, None, datetime.date(2025, 4, 30)),
        ({"created": "0001-01-01T00:00:00"}, "Notes of 31 December 9999", None),
        ({"birth_date": "2000-01-01", "updated": "2001-01-01"}, "Notes of 2025", None),
    ],
)
def test_the_day_of_a_document_is_that_of_its_field_or_title(
    metadata: dict[str, str], title: str | None, day: object
) -> None:
    assert find_date(metadata, title) == day


SAID = read_bodies("validity.said")


@pytest.fixture(scope="module")
def told() -> Snapshot:
    news = "Mira Voll sold Harrow Press last year. Lars Bo led Voll Mills until last year."
    dated = [{"text": news, "published": "2024-03-15"}, {"text": news, "created": "0001-01-01"}]
    files = {f"{at:02}.txt": said for at, said in enumerate(SAID)}
    return open_told("validity", {**files, "news.jsonl": "\n".join(map(json.dumps, dated))})


HELD = dict(read_rows("validity.held"))


def test_facts_say_when_and_how_they_hold(told: Snapshot) -> None:
    held = {}
    for row in told.table("condensed").to_pylist():
        fact = told.read_fact(row["condensed_id"])
        held[fact.head, fact.relation, fact.tail] = (
            row["modality"],
            *(row[name] for name in VALID),
        )
    assert {said: held.get(said) for said in HELD} == HELD


def test_the_sentence_that_states_a_fact_comes_before_that_of_its_antecedent(
    told: Snapshot,
) -> None:
    (key,) = (
        row["condensed_id"]
        for row in told.table("condensed").to_pylist()
        if told.read_fact(row["condensed_id"]).tail.startswith("Skanby")
    )
    assert [place.text for place in told.evidence(key)] == [
        "It was built by Skanby Ltd.",
        "Ormhus Bridge was opened in 1960.",
    ]


@each_row("question, text")
def test_what_held_once_is_no_answer_of_today_nor_it_a_pronoun(
    told: Snapshot, question: str, text: str
) -> None:
    assert answer(question, told).text == text


def test_questions_of_one_day_leave_out_what_held_at_others(told: Snapshot) -> None:
    def find(at: str | None) -> list[str]:
        members = told.find("thing", {"led": "Nordlake"}, at=at).members
        return [member.name for member in members]

    assert find(None) == find("2005") == find("2001-06") == ["Greta Holm"]
    assert find("1999") == find("2001-04") == []
    for wrong in ("soon", "1995-02-31", "1995-07-00", "0000"):
        with pytest.raises(InputError, match="no date"):
            find(wrong)


def test_what_ended_by_a_known_day_held_before_it(told: Snapshot) -> None:
    def find(firm: str, at: str | None) -> list[str]:
        owns = {"formerly owned" if firm == "Tarnmill" else "used to own": firm}
        return [member.name for member in told.find("thing", owns, at=at).members]

    assert find("Tarnmill", "2005") == ["Mara Quist"]
    assert find("Tarnmill", None) == find("Tarnmill", "2015") == find("Kelpworks", "2005") == []


def test_what_is_planned_or_past_is_no_plain_fact(told: Snapshot, tmp_path: Path) -> None:
    for relation in ("will acquire", "may cause", "used to own", "plans to buy", "formerly owned"):
        assert told.find("thing", {relation: {"not": None}}).members == (), relation
    assert [m.name for m in told.find("thing", {"bought": "Quillon"}).members] == ["Sven Roth"]
    for question in ("What did Tarvo Group acquire?", "What does Otto Lind own?"):
        assert not kpyramid.answer(question, told).text, question
    assert not kpyramid.answer("Who leads Sundkraft?", told).text
    assert "Rolf Ahl" in kpyramid.answer("Who led Sundkraft until 2011?", told).text
    assert "Arden Mills" in kpyramid.answer("What will Tarvo Group acquire?", told).text
    assert "Kelpworks" in kpyramid.answer("What did Otto Lind own?", told).text
