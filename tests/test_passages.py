"""How passages are ranked: their places, crowding, the first ones, and a walk over a bridge."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from kpyramid.query import Snapshot, passages
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.passages import (
    Start,
    find_connected,
    find_passages,
    list_paths,
    measure_crowd,
    names_title,
    rank_directly,
    read_stems,
)
from kpyramid.query.types import Question
from kpyramid.snapshot.store import AROUND, FIRST, SELF, ReadingOrder
from tests import corpora
from tests.rows import read_bodies
from tests.told import open_told


class Columns:
    """Columns of chunks in memory, read as those of the index are."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = columns

    def numbers(self, name: str) -> Any:
        return np.array(self._columns[name])


def order_chunks(documents: list[int], starts: list[int], vectors: Any) -> ReadingOrder:
    """The order of chunks of ten characters each."""
    columns = {"document": documents, "start": starts, "end": [at + 10 for at in starts]}
    return ReadingOrder(Columns(columns), vectors)  # type: ignore[arg-type]


def test_a_chunk_alone_in_its_document_keeps_its_vector() -> None:
    order = order_chunks([0, 1], [0, 0], np.eye(2, dtype=np.float32))
    assert order.place_vectors(np.array([1, 0])) == pytest.approx(np.eye(2)[::-1])


def test_a_chunk_takes_a_share_of_its_neighbours_and_of_the_beginning() -> None:
    # Rows stand in the order of keys, not of reading: 30, 0, 20, 10; the last one is elsewhere.
    order = order_chunks([0, 0, 0, 0, 1], [30, 0, 20, 10, 0], np.eye(5, dtype=np.float32))
    placed = order.place_vectors(np.array([0]))[0]
    around = np.array([1, 0, 1, 1, 0]) / np.sqrt(3)  # itself and two before it, no other document
    own, first = np.eye(5)[0], np.eye(5)[1]
    assert placed == pytest.approx(SELF * own + AROUND * around + FIRST * first)


def test_a_hidden_chunk_has_no_part_in_its_neighbours() -> None:
    order = order_chunks([0, 0], [0, 10], np.eye(2, dtype=np.float32))
    placed = order.place_vectors(np.array([1]), np.array([False, True]))
    assert placed[0] == pytest.approx([0, 1])


def test_crowding_is_the_mean_cosine_with_the_nearest_of_other_documents() -> None:
    angles = np.radians([0, 5, 60, 180])
    units = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    crowd = measure_crowd(units, np.array([0, 0, 1, 2]))
    assert crowd[0] == pytest.approx((0.5 - 1) / 2, abs=1e-6)  # not the near one of its document
    assert crowd[2] > crowd[3]


def test_a_passage_that_says_the_words_of_a_question_is_first() -> None:
    found = find_passages(QuestionAnalysis(Question("Where did Milo Tarn marry?"), open_told()), 3)
    assert [place.source for place in found[0].evidence] == ["tarn.txt"]
    assert [item.score for item in found] == sorted((i.score for i in found), reverse=True)


def test_scores_are_of_all_passages_that_words_or_vectors_put_forward() -> None:
    snapshot = open_told()
    chunks = snapshot.table("chunks")["chunk_id"].to_pylist()
    assert set(rank_directly("bridge", snapshot)) == set(chunks)


def score_sources(question: str, by: Any, facts: Sequence[str] = ()) -> dict[str, float]:
    """The scores of all passages of the small pyramid by their sources."""
    asked = QuestionAnalysis(Question(question), open_told())
    found, _ = find_connected(asked, 20, by=by, facts=facts)
    return {place.source: item.score for item in found for place in item.evidence}


def list_raised(question: str, facts: Sequence[str] = ()) -> set[str]:
    """The sources of those passages that a walk rates higher than without a step."""
    before, after = (score_sources(question, by, facts) for by in ("both", "walk"))
    assert before.keys() == after.keys()
    return {source for source in after if after[source] > before[source]}


def test_a_walk_goes_on_from_what_is_named_to_who_shares_a_name_with_it() -> None:
    # Milo Tarn's passage names Oslo; who was not born there stands in Rhea Valcourt's.
    assert list_raised("Who was not born in the city where Milo Tarn married?") == {"rhea.txt"}


def test_a_question_that_names_nothing_is_not_walked_on_from() -> None:
    assert list_raised("who was born in the city where they married?") == set()


def test_a_walk_goes_on_from_a_statement_carried_down() -> None:
    question = "who founded the place that he visited?"
    assert list_raised(question) == set()
    assert list_raised(question, ["Milo Tarn visited the Valcourt Observatory"]) == {
        "rhea.txt",
        "tarn.txt",
    }


LAMP = read_bodies("passages.lamp")


def open_lamp() -> Snapshot:
    """A pyramid whose lamp, firm and town stand in passages of their own."""
    return corpora.open_told("lamp", LAMP)


def test_a_second_step_goes_on_from_what_a_first_one_reached() -> None:
    question = Question("Who is the mayor of the town of the firm that makes the Brask Lamp?")
    before, after = (
        {place.source: item.score for item in found for place in item.evidence}
        for by in ("both", "walk")
        for found in [find_passages(QuestionAnalysis(question, open_lamp()), 9, by=by)]
    )
    assert after["town.txt"] > before["town.txt"]  # the lamp's passage does not name the town
    assert after["north.txt"] == before["north.txt"]


def test_a_name_counts_by_what_its_best_sentence_says_of_the_question() -> None:
    text = "The Brask Lamp\nInes Dahl drew it. Olvera Works makes it for Ines Dahl in Tessin."
    start = Start("key", text, ("ines dahl", "olvera works", "norrby"), 1.0)
    paths = list_paths("Who makes it?", start, {"make": 0.75, "town": 0.25})
    assert {path.name: path.asked for path in paths} == {
        "ines dahl": 0.75,
        "olvera works": 0.75,
        "norrby": 0,
    }
    (said,) = list_paths("Who makes it?", Start(None, "Olvera Works", ("olvera works",), 1.0), {})
    assert said.asked == passages.USUAL  # the question found the statement


def test_a_title_in_small_letters_is_begun_at() -> None:
    assert names_title(
        read_stems("who makes the brask lamps?"), "The Brask Lamp (1911)\nIt is old."
    )
    assert not names_title(read_stems("who makes the lamp?"), "The Brask Lamp\nIt is old.")
    assert not names_title(read_stems("who is in it?"), "In\nIt is old.")
