"""The baselines: what is answered without context, and from the nearest chunks alone."""

from typing import Any

import pytest

from kpyramid.errors import InputError
from kpyramid.query import answer
from kpyramid.query.types import Outcome
from tests.told import TOLD, open_told

PLACES = ("Lima", "Port Amsel", "Oslo", "Bergen", "Kiruna", "Leeds", "Quito", "Turku")


def test_direct_by_rules_guesses_one_candidate_with_the_confidence_of_a_guess() -> None:
    found = answer("Where was Rhea Valcourt born?", open_told(), "direct", candidates=PLACES)
    assert found.layer == "model" and found.context == () and found.evidence == ()
    assert len(found.choices) == 1 and found.choices[0] in PLACES
    assert found.confidence == 1 / (len(PLACES) + 1)
    assert "guess" in str(found.trace[0])


@pytest.mark.parametrize("by", ["bm25", "vectors", "both"])
def test_naive_finds_chunks_by_words_by_vectors_or_by_both(by: str) -> None:
    question = "Where was Rhea Valcourt born?"
    found = answer(question, open_told(), "naive", candidates=PLACES, chunks=2, by=by)
    assert found.choices == ("Port Amsel",) and found.layer == "text"
    assert 1 <= len(found.context) <= 2
    assert found.context[0].evidence[0].source == "rhea.txt"
    assert all(
        TOLD[place.source][place.start : place.end] == place.text for place in found.evidence
    )


def test_naive_that_finds_no_answer_keeps_the_context_and_says_why() -> None:
    found = answer("Who founded Norway?", open_told(), "naive")
    assert found.text == "" and found.choices == () and found.context
    assert "insufficient" in str(found.trace[0]) and "only a model reads" in str(found.trace[0])


@pytest.mark.parametrize("strategy", ["wts", "rok", "hykge", "ksl"])
def test_a_path_strategy_says_that_the_graph_knows_nothing_of_a_question(strategy: str) -> None:
    options = {"hypothesis": False} if strategy in ("rok", "hykge") else {}
    found = answer("Who is Zog?", open_told(), strategy, **options)
    assert (found.text, found.context, found.trace[-1].outcome) == ("", (), Outcome.EMPTY)


def test_an_option_out_of_its_range_is_refused() -> None:
    refused: dict[str, list[dict[str, Any]]] = {
        "wts": [
            *({"entities": 0}, {"depth": 0}, {"width": 0}, {"distance": 1.5}, {"match": "near"}),
            *({"sufficient": -1}, {"chained": 3}),
        ],
        "ksl": [{"hops": 0}, {"rounds": 0}],
        "rok": [{"hops": 0}, {"paths": 0}, {"damping": 1.0}],
        "hykge": [{"length": 4}, {"overlap": 10}, {"similar": 2}],
        "polyrag": [{"triples": 0}, {"chunks": 0}, {"floor": 1.5}, {"mode": "x"}],
    }
    for strategy, wrong in refused.items():
        for options in wrong:
            with pytest.raises(InputError):
                answer("Who founded Norway?", open_told(), strategy, **options)
