"""Points of Figure 4 from a snapshot: both layers, the priority region, the condensed graph."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.reporting.tables import Numbers, SnapshotTables, to_numpy

MOST_POINTS = 1500
"""Points of a layer that are drawn; of more, those whose hashes come first."""

_MOST_MARKS = 12

Points = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Cloud:
    """Points of one kind, shape (n, 3): x, y, and how many facts lie there.

    `total`: how many there are, drawn or not.
    """

    name: str
    points: Points
    total: int


@dataclass(frozen=True, slots=True, eq=False)
class Ellipse:
    """Where a layer's Gaussian has two standard deviations, on the first two axes."""

    name: str
    mean: Points
    covariance: Points


@dataclass(frozen=True, slots=True)
class Mark:
    """The label of a proposal at the median place of the facts that support it."""

    label: str
    x: float
    y: float


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """What the three panels show, in one space.

    `highest`, `high`: the phrases of highest priority that say a quarter of the facts, and those
    of the next quarter, as far as they are in the priority region.
    """

    graph: Cloud
    ontology: Cloud
    highest: Cloud
    high: Cloud
    linked: Cloud
    free: Cloud
    ellipses: tuple[Ellipse, ...]
    marks: tuple[Mark, ...]
    explained: tuple[float, ...]


def read_figure(tables: SnapshotTables) -> Figure | None:
    """The points of the figure; None of a graph without facts."""
    columns = ("phrase_id", "layer", "facts", "x", "y", "region")
    phrases = tables.read("phrases", columns)
    graph = phrases.filter(pc.equal(phrases["layer"], "graph"))
    if not graph.num_rows:
        return None
    other = phrases.filter(pc.equal(phrases["layer"], "ontology"))
    explained = tables.read("layers", ("explained",))["explained"].to_pylist()
    linked, free = _count_condensed(tables, graph)
    quarters = _rank_phrases(tables, graph)
    return Figure(
        graph=_sample("graph", graph, graph["facts"]),
        ontology=_sample("ontology", other, other["facts"]),
        highest=_sample("highest", graph, np.where(quarters == 1, graph["facts"], 0)),
        high=_sample("high", graph, np.where(quarters == 2, graph["facts"], 0)),
        linked=_sample("linked", graph, linked),
        free=_sample("free", graph, free),
        ellipses=tuple(
            _fit(name, part)
            for name, part in (("graph", graph), ("ontology", other))
            if part.num_rows
        ),
        marks=tuple(_place_proposals(tables, graph)),
        explained=tuple(explained[0][:2]) if explained else (),
    )


def _sample(name: str, phrases: pa.Table, facts: pa.ChunkedArray | Points) -> Cloud:
    """The phrases that some facts say, the first by key of too many: keys are hashes."""
    counts = np.asarray(facts, dtype=np.float64)
    said = np.flatnonzero(counts > 0)
    points = np.stack([np.asarray(phrases["x"]), np.asarray(phrases["y"]), counts], axis=1)[said]
    return Cloud(name, points[:MOST_POINTS], len(said))


def _rank_phrases(tables: SnapshotTables, graph: pa.Table) -> Numbers:
    """The quarter of the facts that each phrase falls in by its priority, 1 for the highest.

    Phrases outside the priority region have 5.
    """
    scored = tables.read("priorities", ("phrase_id", "sign", "log_magnitude"))
    at = pc.index_in(graph["phrase_id"].combine_chunks(), scored["phrase_id"].combine_chunks())
    sign = to_numpy(scored["sign"].combine_chunks().take(at))
    magnitude = np.asarray(scored["log_magnitude"].combine_chunks().take(at))
    order = np.lexsort((-sign * magnitude, -sign))
    facts = to_numpy(graph["facts"].combine_chunks())[order]
    quarters = np.empty(len(order), dtype=np.int64)
    quarters[order] = 1 + (4 * (np.cumsum(facts) - facts)) // facts.sum()
    return np.where(np.asarray(graph["region"], dtype=bool), quarters, 5)


def _count_condensed(tables: SnapshotTables, graph: pa.Table) -> tuple[Points, Points]:
    """Per phrase of the graph the condensed facts that keep its words: near an anchor, and not."""
    condensed = tables.read("condensed", ("anchor", "derived_from", "how"))
    derived = condensed["derived_from"].combine_chunks()
    if not len(derived):
        return np.zeros(graph.num_rows), np.zeros(graph.num_rows)
    owners = to_numpy(pc.list_parent_indices(derived))
    kept = pc.equal(pc.list_flatten(condensed["how"].combine_chunks()), "kept")
    # The first of each row, those that kept their words before the others.
    order = np.lexsort((~np.asarray(kept, dtype=bool), owners))
    first = order[np.unique(owners[order], return_index=True)[1]]
    triples = pc.list_flatten(derived).take(pa.array(first))
    scored = tables.read("priorities", ("triple_id", "phrase_id"))
    at = pc.index_in(triples, scored["triple_id"].combine_chunks())
    phrase = pc.index_in(
        scored["phrase_id"].combine_chunks().take(at), graph["phrase_id"].combine_chunks()
    )
    places = to_numpy(pc.fill_null(phrase, -1))
    near = np.asarray(pc.is_valid(condensed["anchor"]), dtype=bool)
    linked, free = (
        np.bincount(places[(places >= 0) & mask], minlength=graph.num_rows).astype(np.float64)
        for mask in (near, ~near)
    )
    return linked, free


def _place_proposals(tables: SnapshotTables, graph: pa.Table) -> Iterator[Mark]:
    """The proposals that are accepted, then the open ones, the best first."""
    columns = ("proposal_id", "label", "state", "score", "triple_ids")
    rows = [
        row
        for row in tables.read("proposals", columns).to_pylist()
        if row["state"] in ("accepted", "open") and row["triple_ids"]
    ]
    rows.sort(key=lambda r: (r["state"], -r["score"], r["proposal_id"]))
    chosen = rows[:_MOST_MARKS]
    wanted = {key for row in chosen for key in row["triple_ids"]}
    phrase_of = {
        row["triple_id"]: row["phrase_id"]
        for row in tables.pick("priorities", "triple_id", wanted, ["phrase_id"])
    }
    used = pa.array(sorted(set(phrase_of.values())), pa.string())
    near = graph.filter(pc.is_in(graph["phrase_id"], used)).to_pylist()
    place = {row["phrase_id"]: (row["x"], row["y"]) for row in near}
    for row in chosen:
        points = np.array([place[phrase_of[key]] for key in row["triple_ids"]])
        x, y = np.median(points, axis=0).tolist()
        yield Mark(row["label"], x, y)


def _fit(name: str, phrases: pa.Table) -> Ellipse:
    """The Gaussian of a layer on the first two axes, of all its phrases."""
    points = np.stack([np.asarray(phrases["x"]), np.asarray(phrases["y"])])
    return Ellipse(name, points.mean(axis=1), np.cov(points, bias=True))
