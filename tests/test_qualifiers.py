"""Qualifiers stay with their fact down to the reader, and what is not sure enough stays out."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kpyramid.documents.qualifiers import (
    list_values,
    read_qualifiers,
    unite_qualifiers,
    write_qualifiers,
)
from kpyramid.query import EVERYTHING, Snapshot, answer, open_snapshot, retrieve
from kpyramid.settings import Settings
from kpyramid.storage.contracts import load_contracts
from kpyramid.storage.layout import Warehouse
from tests.commands import run
from tests.corpora import build_corpus, make_settings, pass_gates, read_snapshot
from tests.rows import read_bodies

ROWS = read_bodies("qualifiers.rows")
DEAL = "Acme Corporation acquired Beta Systems"


def write_rows(folder: Path) -> Path:
    folder.mkdir()
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Warehouse, str]]:
    folder = tmp_path_factory.mktemp("qualified")
    with pytest.MonkeyPatch.context() as monkeypatch:
        pass_gates(monkeypatch)
        warehouse = Warehouse(folder / "warehouse")
        outcome = build_corpus(write_rows(folder / "corpus"), warehouse, Settings())
    yield warehouse, outcome.snapshot


@pytest.fixture(scope="module")
def whole(built: tuple[Warehouse, str]) -> Snapshot:
    return open_snapshot("main", built[0].root, scope=EVERYTHING)


def find_deal(snapshot: Snapshot) -> str:
    """The key of the condensed fact that Acme acquired Beta."""
    (key,) = [
        row["condensed_id"]
        for row in snapshot.table("condensed").to_pylist()
        if snapshot.read_fact(row["condensed_id"]).statement.partition(" (")[0] == DEAL
    ]
    return str(key)


def find_row(snapshot: Snapshot, table: str, key: str) -> dict[str, Any]:
    keyed = {row[f"{table.removesuffix('s')}_id"]: row for row in snapshot.table(table).to_pylist()}
    found: dict[str, Any] = keyed[key]
    return found


# How qualifiers are united and worded.


def test_values_of_one_role_are_all_kept_in_order_unless_another_says_them() -> None:
    told = [("time", "2019"), ("place", "Oslo"), ("time", "May 2019"), ("time", "1871")]
    united = [("place", "Oslo"), ("time", "1871 / May 2019")]
    assert unite_qualifiers(told) == unite_qualifiers(reversed(told)) == united
    assert unite_qualifiers([("place", "Oslo"), ("place", "oslo")]) == [("place", "Oslo")]
    assert list_values(united, "time") == ["1871", "May 2019"]


def test_time_and_place_come_first_in_words() -> None:
    written = write_qualifiers([("for", "3 billion"), ("place", "Paris"), ("time", "at 5: noon")])
    assert written == ["time: at 5: noon", "place: Paris", "for: 3 billion"]
    assert read_qualifiers(written)[0] == ("time", "at 5: noon")
    placed = write_qualifiers([("document", "Two: a study"), ("for", "3 billion")])
    assert placed == ["for: 3 billion", "document: Two: a study"]


# Through a build, to everywhere where a fact is shown.


def test_published_facts_have_the_qualifiers_of_their_statements(whole: Snapshot) -> None:
    row = find_row(whole, "condensed", find_deal(whole))
    assert row["qualifiers"] == [("time", "1871 / May 2019")]
    (triple,) = (find_row(whole, "triples", key) for key in row["derived_from"])
    assert triple["qualifiers"] == row["qualifiers"]
    assert whole.read_fact(row["condensed_id"]).qualifiers == ("time: 1871 / May 2019",)


def test_a_retrieved_fact_says_what_qualifies_it_and_how_sure_it_is(whole: Snapshot) -> None:
    found = retrieve("Who acquired Beta Systems?", whole)
    assert f"{DEAL} (time: 1871 / May 2019)" in found.to_prompt()
    (fact,) = [fact for fact in found.to_dict()["facts"] if fact["key"] == find_deal(whole)]
    assert fact["qualifiers"] == ("time: 1871 / May 2019",)
    assert 0.5 < fact["confidence"] <= 1.0


def test_ask_shows_what_qualifies_a_fact(built: tuple[Warehouse, str], whole: Snapshot) -> None:
    command = ["ask", "Who acquired Beta Systems in 1871?", "--warehouse", str(built[0].root)]
    shown = run(*command, "--explain", "--everything")
    assert "(time: 1871 / May 2019)" in " ".join(shown.output.split())
    found = answer("Who acquired Beta Systems?", whole, "exact")
    assert f"{DEAL} (time: 1871 / May 2019)" in [item.text for item in found.context]


def test_a_year_that_qualifies_a_fact_tells_it_from_others(whole: Snapshot) -> None:
    asked = {
        year: retrieve(f"Who acquired Beta Systems in {year}?", whole) for year in (1871, 1999)
    }
    scores = {
        year: next(fact.score for fact in found.facts if fact.key == find_deal(whole))
        for year, found in asked.items()
    }
    assert scores[1999] <= 0.1 < scores[1871]


def test_a_noun_of_a_document_says_its_title_to_whoever_may_see_it(
    built: tuple[Warehouse, str], whole: Snapshot
) -> None:
    for snapshot in (whole, open_snapshot("main", built[0].root)):
        rows = snapshot.table("condensed").to_pylist()
        (row,) = [row for row in rows if snapshot.read_fact(row["condensed_id"]).head == "sponsor"]
        assert row["qualifiers"] == [("document", "The Oslo Trial")]
        assert snapshot.read_fact(row["condensed_id"]).qualifiers == ("document: The Oslo Trial",)
        (triple,) = (find_row(snapshot, "triples", key) for key in row["derived_from"])
        assert triple["qualifiers"] == row["qualifiers"]
    found = retrieve("Who visited Acme Corporation?", whole)
    assert "(document: The Oslo Trial)" in found.to_prompt()


def test_whoever_may_not_see_a_statement_does_not_see_what_qualifies_it(
    built: tuple[Warehouse, str], whole: Snapshot
) -> None:
    public = open_snapshot("main", built[0].root)
    key = find_deal(whole)
    assert public.read_fact(key).qualifiers == ("time: May 2019",)
    for table, own in (
        ("condensed", key),
        ("triples", find_row(whole, "condensed", key)["derived_from"][0]),
    ):
        assert find_row(public, table, own)["qualifiers"] == [("time", "May 2019")]
    told = json.dumps(retrieve("Who acquired Beta Systems in 1871?", public).to_dict())
    assert "1871" not in told.replace("Who acquired Beta Systems in 1871?", "")


# What is not sure enough, and what is surer.


def test_nothing_is_left_of_facts_that_are_not_sure_enough(
    tmp_path: Path, built: tuple[Warehouse, str], passing_gates: None
) -> None:
    before = read_snapshot(*built)
    least = sorted(before["triples"]["confidence"].to_pylist())[-2]
    warehouse = Warehouse(tmp_path / "warehouse")
    settings = make_settings(publish={"min_confidence": least})
    outcome = build_corpus(write_rows(tmp_path / "corpus"), warehouse, settings)

    tables = read_snapshot(warehouse, outcome.snapshot)
    assert 0 < tables["triples"].num_rows < before["triples"].num_rows
    assert min(tables["triples"]["confidence"].to_pylist()) >= least
    assert tables["instances"].num_rows < before["instances"].num_rows
    unsure = [row for row in tables["rejects"].to_pylist() if row["reason"] == "low_confidence"]
    assert {row["stage"] for row in unsure} == {"resolve"}
    assert all(row["detail"].split(" | ")[-1] for row in unsure)
    texts = [str(row["text"]) for row in ROWS]
    assert all(any(row["detail"].split(" | ")[-1] in text for text in texts) for row in unsure)
    gone = {row["row_key"] for row in unsure}
    stated = {key for row in tables["triples"].to_pylist() for key in row["raw_triple_ids"]}
    assert not gone & stated and gone | stated >= {
        key for row in before["triples"].to_pylist() for key in row["raw_triple_ids"]
    }
    for name, contract in load_contracts().items():
        contract.check_references(tables[name], tables)
    named = {
        end for row in tables["triples"].to_pylist() for end in (row["head_id"], row["tail_id"])
    }
    used = named | {
        end
        for row in tables["instances"].to_pylist()
        for end in (row["subject_id"], row["object_id"])
    }
    assert set(tables["entities"]["entity_id"].to_pylist()) <= used
