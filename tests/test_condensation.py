"""Condensation merges what says the same and nothing else, and loses nothing."""

from collections import Counter

import pytest

from kpyramid.settings import CondenseSettings
from kpyramid.stages import condense
from kpyramid.stages.tables import build_table
from tests.completing import GENERAL, KNOWN, MISSING, VILLAGES
from tests.planted import MemoEmbedder, Statement, general_schema, pick, plant


def _condense(statements: list[Statement], **options: float) -> tuple[dict, list[dict]]:
    tables = plant(statements)
    tables["proposals"] = build_table("proposals", [])
    settings = CondenseSettings(**options)  # type: ignore[arg-type]
    names = ("entities", "relations", "triples", "proposals")
    made = condense.run(
        *pick(tables, *names), settings=settings, schema=general_schema(), embedder=MemoEmbedder()
    )
    return tables, made["condensed"].to_pylist()


def _relations(tables: dict) -> dict[str, str]:
    return {r["relation_id"]: r["name"] for r in tables["relations"].to_pylist()}


def test_two_wordings_of_one_property_are_merged() -> None:
    tables, rows = _condense(
        [
            ("Ada Byron", "PERSON", "works for", "Lind Institute", "ORG"),
            ("Ada Byron", "PERSON", "is employed by", "Lind Institute", "ORG"),
        ]
    )
    (row,) = rows
    assert row["anchor"] == GENERAL + "employer"
    assert set(row["derived_from"]) == set(tables["triples"]["triple_id"].to_pylist())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("was born in", "died in"),
        ("wrote", "directed"),
        ("is north of", "is south of"),
        ("was born in", "may have been born in"),
        ("visited", "could have visited"),
    ],
)
def test_wordings_that_differ_in_meaning_stay_apart(one: str, other: str) -> None:
    _, rows = _condense(
        [("Ada Byron", "PERSON", wording, "Ghent", "GPE") for wording in (one, other)]
    )
    assert len(rows) == 2


def test_a_passive_is_merged_with_its_active_form() -> None:
    tables, rows = _condense(
        [
            ("Ada Byron", "PERSON", "founded", "Lind Institute", "ORG"),
            ("Lind Institute", "ORG", "was founded by", "Ada Byron", "PERSON"),
        ]
    )
    (row,) = rows
    assert _relations(tables)[row["relation_id"]] == "founded"
    assert len(row["derived_from"]) == 2


def test_facts_with_another_head_or_tail_are_never_merged() -> None:
    _, rows = _condense(KNOWN)
    assert len(rows) == len(KNOWN)


def test_every_fact_is_in_exactly_one_condensed_fact() -> None:
    tables, rows = _condense(KNOWN + MISSING + VILLAGES)
    derived = Counter(key for row in rows for key in row["derived_from"])
    assert derived == Counter(tables["triples"]["triple_id"].to_pylist())


def test_a_fact_near_no_anchor_stays_as_it_is() -> None:
    _, rows = _condense(MISSING, anchor_similarity=0.99)
    assert [row["anchor"] for row in rows] == [None] * len(MISSING)
