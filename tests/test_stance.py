"""What a text does not state as a fact is marked, and does not reach the graph."""

from pathlib import Path

import pytest

from kpyramid.storage.layout import Warehouse
from tests.corpora import build_corpus, read_snapshot, use_quick_models

NOT_STATED = {
    "condition": "If Ford buys Toyota, the market changes.",
    "unless": "Unless Apple buys Tesla, the deal fails.",
    "inverted condition": "Had Napoleon won the battle of Waterloo, Europe would have changed.",
    "wish": "If only Nestle had bought Danone!",
    "question": "Did Microsoft buy Nokia in 2014?",
    "indirect question": "Anna asked whether Hale owned the mill.",
    "denial by a verb": "Tom Hale denied that he had killed Anna Berg.",
    "denial by an adjective": "It is false that Boeing bought Airbus.",
    "dream": "Anna Berg dreamed that she married Tom Hale.",
    "told": "Anna told Tom that Ford bought Toyota.",
    "prediction": "Analysts predict that Ford buys Toyota.",
    "content of a noun": "The court rejected the claim that Apple bought Nokia.",
    "content of a rumour": "The rumour that Apple bought Nokia spread in Leeds.",
    "accusation": "Tom Hale was accused of killing Anna Berg.",
    "hedge": "Apple allegedly bought Nokia.",
    "almost": "The bank almost bought Danone.",
    "not": "Leon Batt did not visit Rome.",
    "hardly": "Tom Hale hardly knew Anna Berg.",
    "none": "None of the firms bought Airbus.",
    "nor": "Siemens did not buy Alstom, nor did it acquire Bosch.",
    "without": "Marie Lund left Oslo without marrying Peter Dahl.",
    "rather than": "Apple sold Beats rather than buying Nokia.",
    "said": "Historians said that Batt had designed three ships.",
    "according to": "According to Anna Holm, the mill burned the town.",
}
UNTRUE = {
    ("ford", "toyota"),
    ("apple", "tesla"),
    ("apple", "nokia"),
    ("napoleon", "battle of waterloo"),
    ("nestle", "danone"),
    ("bank", "danone"),
    ("microsoft", "nokia"),
    ("hale", "mill"),
    ("tom hale", "anna berg"),
    ("anna berg", "tom hale"),
    ("boeing", "airbus"),
    ("none of the firms", "airbus"),
    ("leon batt", "rome"),
    ("siemens", "alstom"),
    ("siemens", "bosch"),
    ("marie lund", "peter dahl"),
    ("batt", "three ships"),
    ("mill", "town"),
}
"""Heads and tails that only the sentences above join."""


def test_what_is_not_stated_stays_out_of_the_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_quick_models(monkeypatch)
    (tmp_path / "corpus").mkdir()
    for name, text in NOT_STATED.items():
        (tmp_path / "corpus" / f"{name}.txt").write_text(text, "utf-8")
    (tmp_path / "corpus" / "true.txt").write_text("John Rennie designed the Harlow Bridge.")
    warehouse = Warehouse(tmp_path / "w")

    tables = read_snapshot(warehouse, build_corpus(tmp_path / "corpus", warehouse).snapshot)

    names = {row["entity_id"]: row["name"].lower() for row in tables["entities"].to_pylist()}
    joined = {
        (names[row["head_id"]], names.get(row["tail_id"], ""))
        for row in tables["triples"].to_pylist()
    }
    assert ("john rennie", "harlow bridge") in joined
    assert not joined & UNTRUE
    reasons = set(tables["rejects"]["reason"].to_pylist())
    assert {"negated", "not_asserted", "attributed"} <= reasons
