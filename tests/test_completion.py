"""Induction and completion recover what was planted, and state what they do with bad input."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from kpyramid.embeddings.port import Matrix
from kpyramid.errors import InputError
from kpyramid.numerics.gaussian import fit_gaussian, fit_space
from kpyramid.numerics.moments import Moments
from kpyramid.settings import CompleteSettings
from tests.planted import (
    GENERAL,
    KNOWN,
    MISSING,
    PEOPLE,
    PERSON,
    PLACE,
    TOWNS,
    VILLAGES,
    Completed,
    MemoEmbedder,
    Statement,
    plant,
    run_complete,
    run_induce,
)

CHESS = MISSING[0][2]


def test_induction_finds_every_planted_value_and_traces_it() -> None:
    tables = plant(KNOWN)
    made = run_induce(tables)
    entity = {r["entity_id"]: r["name"] for r in tables["entities"].to_pylist()}
    text = {r["chunk_id"]: r["text"] for r in tables["chunks"].to_pylist()}
    born = [r for r in made["instances"].to_pylist() if r["property_iri"] == GENERAL + "birthPlace"]
    found = {(entity[r["subject_id"]], entity[r["object_id"]]) for r in born}
    assert found == {(head, tail) for head, _, _, tail, _ in KNOWN}
    for row in born:
        said = text[row["chunk_id"]][row["start"] : row["end"]]
        assert entity[row["subject_id"]] in said and entity[row["object_id"]] in said
    classes = Counter(
        r["class_iri"] for r in made["instances"].to_pylist() if not r["property_iri"]
    )
    assert classes == {GENERAL + "Person": len(PEOPLE), GENERAL + "PopulatedPlace": len(TOWNS)}


def test_completion_proposes_the_missing_property_and_nothing_that_exists() -> None:
    done = run_complete(KNOWN + MISSING)
    (found,) = [row for row in done.proposals if row["kind"] == "property"]
    assert found["phrases"] == [CHESS]
    assert (found["domain"], found["range"], found["state"]) == (PERSON, PERSON, "accepted")
    assert done.list_values(found["iri"]) == {(loser, winner) for loser, _, _, winner, _ in MISSING}


def test_completion_proposes_the_missing_class_with_its_members() -> None:
    done = run_complete(KNOWN + VILLAGES)
    (found,) = [row for row in done.proposals if row["kind"] == "class"]
    assert (found["label"], found["domain"], found["state"]) == ("village", PLACE, "accepted")
    assert done.list_members(found["iri"]) == set(TOWNS)


def test_every_fact_has_a_phrase_and_a_priority_and_the_missing_ones_come_first() -> None:
    done = run_complete(KNOWN + MISSING)
    phrase = {r["phrase_id"]: r for r in done.made["phrases"].to_pylist()}
    rows = done.made["priorities"].to_pylist()
    assert [r["triple_id"] for r in rows] == done.tables["triples"]["triple_id"].to_pylist()
    said = Counter(r["phrase_id"] for r in rows)
    assert {key: r["facts"] for key, r in phrase.items() if r["layer"] == "graph"} == said
    ordered = sorted(rows, key=lambda r: -r["sign"] * np.exp(r["sign"] * r["log_magnitude"]))
    first = [phrase[r["phrase_id"]]["text"] for r in ordered[: len(MISSING)]]
    assert sum(CHESS in text for text in first) > len(MISSING) / 2


def test_the_layers_moments_give_back_space_and_densities() -> None:
    """From `layers` alone: the axes, what they explain, every phrase's place and densities."""
    done = run_complete(KNOWN + MISSING)
    phrases = done.made["phrases"].to_pylist()
    moments: dict[str, Moments] = {}
    for row in done.made["layers"].to_pylist():
        size = len(row["total"])
        outer = np.zeros((size, size))
        outer[np.tril_indices(size)] = row["outer"]
        outer += np.tril(outer, -1).T
        moments[row["layer"]] = Moments(row["phrases"], np.array(row["total"]), outer)
        assert row["phrases"] == sum(r["layer"] == row["layer"] for r in phrases)
    space = fit_space(moments["graph"] + moments["ontology"], CompleteSettings().dimensions)
    assert row["explained"] == pytest.approx(space.explained, abs=1e-6)
    points = space.transform(MemoEmbedder().embed([r["text"] for r in phrases]))
    assert [[r["x"], r["y"]] for r in phrases] == pytest.approx(points[:, :2], abs=1e-5)
    for layer in ("graph", "ontology"):
        density = fit_gaussian(space.project(moments[layer]), space.floor).log_density(points)
        assert [r[f"log_{layer}"] for r in phrases] == pytest.approx(density, rel=1e-5, abs=1e-4)


# Bad input.


def check_emptiness(done: Completed) -> None:
    assert done.made["proposals"].num_rows == done.made["instances"].num_rows == 0
    for name in ("x", "y", "log_graph", "log_ontology"):
        assert np.isfinite(done.made["phrases"][name].to_numpy()).all()
    assert np.isfinite(done.made["priorities"]["log_magnitude"].to_numpy()).all()


def test_an_empty_graph_has_nothing_to_propose() -> None:
    done = run_complete([])
    check_emptiness(done)
    assert done.made["priorities"].num_rows == 0
    assert set(done.made["phrases"]["layer"].to_pylist()) <= {"ontology"}


@pytest.mark.slow
def test_a_thousand_equal_relations_are_one_proposal() -> None:
    names = [f"{first} {last}" for first in "Ada Bela Carl Dora".split() for last in
             (f"{a}{b}o" for a in "BDFGKLMNPR" for b in "aeiou")]  # fmt: skip
    facts: list[Statement] = [
        (loser, "PERSON", CHESS, winner, "PERSON")
        for loser, winner in zip(names, names[1:] + names[:1], strict=True)
    ]
    done = run_complete(facts * 5)
    (row,) = [r for r in done.proposals if r["kind"] == "property"]
    assert row["support"] == len(names)


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_a_vector_that_is_none_is_refused_with_its_text(broken: float) -> None:
    with pytest.raises(InputError, match=CHESS):
        run_complete(KNOWN + MISSING, embedder=Broken(broken))


class Broken:
    """Vectors of the model, but none for what is said of chess."""

    name = "broken"

    def __init__(self, value: float) -> None:
        self._value = value

    def embed(self, texts: Sequence[str]) -> Matrix:
        vectors = MemoEmbedder().embed(texts).copy()
        for row, text in enumerate(texts):
            if CHESS in text:
                vectors[row, 0] = self._value
        return vectors
