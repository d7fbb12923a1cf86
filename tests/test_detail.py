"""The same fact with more and with less detail: linked, listed once, counted once."""

from pathlib import Path

import pytest

from kpyramid.query import retrieve
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.view import Scope
from kpyramid.storage.verification import check_tables
from tests.corpora import open_told
from tests.planted import Statement, condense_statements
from tests.rows import each_row, read_bodies

ADA = ("Ada Byron", "PERSON")
TEXTS = read_bodies("detail.texts")


def link(statements: list[Statement]) -> dict[str, str]:
    """The tail of each fact that has one in more detail, and the tail of that."""
    made = condense_statements(statements)
    names = {row["entity_id"]: row["name"] for row in made.tables["entities"].to_pylist()}
    tails = {row["condensed_id"]: names.get(row["tail_id"], row["literal"]) for row in made.rows}
    assert check_references(made.rows, tails)
    linked = [row for row in made.rows if row["more_detailed_id"]]
    return {tails[row["condensed_id"]]: tails[row["more_detailed_id"]] for row in linked}


def check_references(rows: list[dict[str, object]], known: dict[str, str]) -> bool:
    return all(row["more_detailed_id"] in {None, *known} for row in rows)


@each_row("tails, kind, linked")
def test_a_fact_is_linked_to_the_one_that_says_all_of_it_and_more(
    tails: list[str], kind: str, linked: dict[str, str]
) -> None:
    assert link([(*ADA, "toured Rome in", tail, kind) for tail in tails]) == linked


@pytest.mark.parametrize("wording", ["may have toured Rome in", "never toured Rome in", "fled in"])
def test_what_is_possible_denied_or_another_thing_is_not_said_by_a_fact(wording: str) -> None:
    said = [(*ADA, "toured Rome in", "5 May 1901", "LITERAL"), (*ADA, wording, "1901", "LITERAL")]
    assert link(said) == {}


@pytest.mark.parametrize("verb", ["was born", "died"])
def test_a_year_and_its_day_are_one_fact_though_places_are_told_in_the_same_words(
    verb: str,
) -> None:
    told: list[Statement] = [
        (*ADA, f"{verb} in", "1901", "LITERAL"),
        (*ADA, f"{verb} on", "5 May 1901", "LITERAL"),
    ]
    (made,) = condense_statements(told).rows
    assert (made["literal"], sorted(made["how"])) == ("5 May 1901", ["broader", "kept"])


@pytest.fixture(scope="module")
def told() -> Snapshot:
    """The pyramid of `TEXTS`, built once in a test run."""
    return open_told("detail", TEXTS)


def test_what_is_told_twice_is_found_once_with_all_that_is_said(told: Snapshot) -> None:
    facts = told.table("condensed").to_pylist()
    (less,) = [row for row in facts if row["more_detailed_id"]]
    assert less["literal"] == "1901"
    assert told.find_detailed(less["condensed_id"]) == less["more_detailed_id"]
    assert told.find_detailed(less["more_detailed_id"]) == ""
    found = [item.text for item in retrieve("When did Milo Tarn retire?", told).facts]
    assert sum("retired" in text for text in found) == 1
    assert found[0] == "Milo Tarn retired on 5 May 1901"
    assert check_tables(Path(told.folder)) == []


def test_who_sees_only_the_year_is_told_of_no_day(told: Snapshot) -> None:
    seen = told.scoped(Scope(documents=frozenset({"year.txt"})))
    assert {row["more_detailed_id"] for row in seen.table("condensed").to_pylist()} == {None}
    found = [item.text for item in retrieve("When did Milo Tarn retire?", seen).facts]
    assert "Milo Tarn retired in 1901" in found
