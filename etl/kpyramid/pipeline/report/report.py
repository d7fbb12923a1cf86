"""The report of a run: what was made, refused, proposed and merged, what the gates said."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.completion.decisions import load_decisions
from kpyramid.errors import InputError, IntegrityError
from kpyramid.keys import JsonValue
from kpyramid.llm.ledger import Sum, Totals, read_totals
from kpyramid.numerics.arrays import Integers
from kpyramid.ontology.schema import parse_schema
from kpyramid.pipeline.report.layers import describe_completion, describe_condensation
from kpyramid.pipeline.report.tables import SnapshotTables, Words, load_template, to_numpy
from kpyramid.pipeline.stage import PIPELINE
from kpyramid.pipeline.stages.ingest import list_unread
from kpyramid.storage.contracts import load_contracts, read_table
from kpyramid.storage.copies import locate_snapshot
from kpyramid.storage.refs import read_head
from kpyramid.storage.runs import Run, StageMark, read_mark
from kpyramid.storage.snapshots import find_manifest, has_snapshot
from kpyramid.storage.writing import write_durably

# Points of Figure 4 from a snapshot: both layers, the priority region, the condensed graph.

# Both layers as a figure (PolyRAG Figure 4): point clouds drawn as SVG.

MOST_POINTS = 1500
"""Points of a layer that are drawn; of more, those whose hashes come first."""

_MOST_MARKS = 12

Points = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Cloud:
    """Points of one kind, shape (n, 3): x, y, and how many facts lie there.

    `total`: how many there are, drawn or not.
    """

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
        graph=_sample(graph, graph["facts"]),
        ontology=_sample(other, other["facts"]),
        highest=_sample(graph, np.where(quarters == 1, graph["facts"], 0)),
        high=_sample(graph, np.where(quarters == 2, graph["facts"], 0)),
        linked=_sample(graph, linked),
        free=_sample(graph, free),
        ellipses=tuple(
            _fit(name, part)
            for name, part in (("graph", graph), ("ontology", other))
            if part.num_rows
        ),
        marks=tuple(_place_proposals(tables, graph)),
        explained=tuple(explained[0][:2]) if explained else (),
    )


def _sample(phrases: pa.Table, facts: pa.ChunkedArray | Points) -> Cloud:
    """The phrases that some facts say, the first by key of too many: keys are hashes."""
    counts = np.asarray(facts, dtype=np.float64)
    said = np.flatnonzero(counts > 0)
    points = np.stack([np.asarray(phrases["x"]), np.asarray(phrases["y"]), counts], axis=1)[said]
    return Cloud(points[:MOST_POINTS], len(said))


def _rank_phrases(tables: SnapshotTables, graph: pa.Table) -> Integers:
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


# The figure of both layers as SVG: three panels in one space (PolyRAG Figure 4).

# Colours of Paul Tol's bright scheme, which differ for every kind of colour vision.
_BLUE, _PALE, _GREEN, _YELLOW = "#4477aa", "#bbccdd", "#228833", "#b08000"
_RED, _ROSE = "#bb1133", "#ee8899"
_SIZE = 300
"""Of a panel, in pixels."""
_DIAMETERS = ((1, 3.0), (2, 4.4), (5, 6.2), (20, 8.6))
"""Facts from which on a point has a diameter, in pixels."""

_MOST_LABELS = 8


@dataclass(frozen=True, slots=True)
class _Scale:
    """From the space to pixels of a panel, one unit being as long on both axes."""

    left: float
    top: float
    unit: float

    @classmethod
    def fit(cls, points: Points) -> "_Scale":
        low, high = points.min(axis=0), points.max(axis=0)
        unit = (_SIZE - 16) / max(float((high - low).max()), 1e-9)
        middle = (low + high) / 2.0
        return cls(float(middle[0]) - _SIZE / 2 / unit, float(middle[1]) + _SIZE / 2 / unit, unit)

    def place(self, points: Points) -> Points:
        """Pixels to a tenth, within the panel."""
        x = (points[:, 0] - self.left) * self.unit
        y = (self.top - points[:, 1]) * self.unit
        placed: Points = np.clip(np.stack([x, y], axis=1), 0.0, _SIZE)
        return placed.round(1)

    def draw(
        self, cloud: Cloud, colour: str, opacity: float, words: str = "", cap: str = "round"
    ) -> dict[str, object]:
        """A cloud in a panel: a path per diameter; the legend has those with `words`.

        Each point is a stroke of no length with a round or square end.
        """
        places, facts = self.place(cloud.points[:, :2]), cloud.points[:, 2]
        bounds = [least for least, _ in _DIAMETERS[1:]] + [np.inf]
        dots = []
        for (least, diameter), most in zip(_DIAMETERS, bounds, strict=True):
            chosen = np.unique(places[(facts >= least) & (facts < most)], axis=0)
            if len(chosen):
                dots.append((diameter, "".join(f"M{x:g} {y:g}h0" for x, y in chosen.tolist())))
        drawn = {"cloud": cloud, "dots": dots, "colour": colour, "opacity": opacity}
        return {**drawn, "words": words, "cap": cap}

    def turn(self, ellipse: Ellipse) -> dict[str, object]:
        """An ellipse in a panel: half axes, middle, and by how many degrees it is turned."""
        values, vectors = np.linalg.eigh(ellipse.covariance)
        direction = vectors[:, 1] * (1.0 if vectors[0, 1] >= 0.0 else -1.0)
        long, short = (2.0 * np.sqrt(np.maximum(values[::-1], 0.0)) * self.unit).tolist()
        return {
            "colour": _YELLOW if ellipse.name == "ontology" else _BLUE,
            "long": long,
            "short": short,
            "x": (ellipse.mean[0] - self.left) * self.unit,
            "y": (self.top - ellipse.mean[1]) * self.unit,
            "angle": -np.degrees(np.arctan2(direction[1], direction[0])),
        }


def draw_figure(figure: Figure) -> str:
    """The figure as one `svg` element, the same bytes for the same figure."""
    points = [cloud.points[:, :2] for cloud in (figure.graph, figure.ontology)]
    scale = _Scale.fit(np.concatenate(points))
    panels: tuple[dict[str, object], ...] = (
        {
            "title": "Before: graph and ontology",
            "layers": [
                scale.draw(figure.graph, _BLUE, 0.55, "phrases of the graph"),
                scale.draw(figure.ontology, _YELLOW, 0.9, "phrases of the ontology", "square"),
            ],
            "ellipses": [scale.turn(each) for each in figure.ellipses],
        },
        {
            "title": "What the ontology lacks",
            "layers": [
                scale.draw(figure.graph, _PALE, 0.8),
                scale.draw(figure.high, _ROSE, 0.8, "phrases of the next ¼"),
                scale.draw(
                    figure.highest, _RED, 0.8, "phrases of highest priority: ¼ of the facts"
                ),
            ],
            "ellipses": [scale.turn(each) for each in figure.ellipses if each.name == "ontology"],
            "labels": _place_labels(figure.marks, scale),
        },
        {
            "title": "After condensation",
            "layers": [
                scale.draw(figure.free, _BLUE, 0.55, "with facts near no anchor"),
                scale.draw(figure.linked, _GREEN, 0.8, "with facts linked to an anchor"),
            ],
        },
    )
    return load_template("figure.svg.jinja").render(
        panels=panels, size=_SIZE, explained=figure.explained, about=describe_figure(figure)
    )


def describe_figure(figure: Figure) -> str:
    """The figure in a few sentences, for those who do not see it."""
    shares = " and ".join(f"{share:.0%}" for share in figure.explained)
    return (
        f"Three panels show the same plane, the first two axes of the space that both layers share"
        f"{f' ({shares} of the variance)' if shares else ''}. Left: {figure.graph.total} phrases "
        f"of the graph and {figure.ontology.total} of the ontology, each layer's Gaussian as an "
        "ellipse at two "
        f"standard deviations. Middle: {figure.highest.total} phrases of the highest priority, "
        f"which say a quarter of the facts, {figure.high.total} of the next quarter, and the "
        f"labels of proposals where their facts lie. Right: the phrases "
        f"that condensed facts keep, {figure.linked.total} with facts linked to an anchor of the "
        f"ontology and {figure.free.total} with facts near none. A larger point stands for "
        f"more facts."
    )


def _place_labels(marks: Sequence[Mark], scale: _Scale) -> list[tuple[str, float, float]]:
    """The labels that fit beside those before them."""
    taken: list[tuple[float, float, float]] = []
    placed = []
    for mark in marks:
        ((x, y),) = scale.place(np.array([[mark.x, mark.y]])).tolist()
        half = 3.1 * len(mark.label)
        x, y = min(max(x, half + 2), _SIZE - half - 2), min(max(y, 12.0), _SIZE - 6.0)
        if not any(abs(x - a) < half + b + 4 and abs(y - c) < 14 for a, b, c in taken):
            taken.append((x, half, y))
            placed.append((mark.label, x, y))
    return placed[:_MOST_LABELS]


log = logging.getLogger(__name__)

PLAN = "plan.json"
"""What a build with a language model expected to pay, in the run's folder."""

_EXAMPLES = 3
_MOST_WITHDRAWN = 200
"""Withdrawn statements that a report names; the table `rejects` has all of them."""


def write_report(run: Run, marks: tuple[StageMark, ...] | None = None) -> StageMark:
    """Writes `report.json` and `report.html` into the run's folder; returns publish's mark.

    Raises:
        InputError: a stage of the run is not done.
    """
    done = marks or tuple(m for stage in PIPELINE if (m := read_mark(run, stage.name)))
    if [mark.stage for mark in done] != [stage.name for stage in PIPELINE]:
        raise InputError(f"run {run.name}: not all stages are done, there is nothing to report")
    publish = done[-1]
    _warn_of_lost_decisions(run, publish.details["committed"])
    account = describe_snapshot(locate_snapshot(run.warehouse, publish.details["snapshot"]))
    report = {
        **describe_run(run, done),
        "completion": account.completion,
        "condensation": account.condensation,
    }
    write_durably(run.folder / "report.json", json.dumps(report, indent=1).encode())
    text = load_template("report.html.jinja").render(
        report=report, figure=account.figure, figure_words=account.figure_words
    )
    write_durably(run.folder / "report.html", text.encode())
    return publish


@dataclass(frozen=True, slots=True)
class Account:
    """Completion and condensation as plain values, and the figure as SVG with its words."""

    completion: dict[str, JsonValue]
    condensation: dict[str, JsonValue]
    figure: str | None
    figure_words: str


def describe_snapshot(folder: Path) -> Account:
    """The account of the snapshot in a folder, from some columns of its tables.

    Raises:
        IntegrityError: a table or the schema is missing or damaged.
    """
    path = folder / "ontology" / "schema.ttl"
    try:
        turtle = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise IntegrityError(f"schema {path} cannot be read: {e}") from e
    tables, words = SnapshotTables(folder), Words(parse_schema(turtle, source=str(path)))
    figure = read_figure(tables)
    return Account(
        describe_completion(tables, words),
        describe_condensation(tables, words),
        draw_figure(figure) if figure else None,
        describe_figure(figure) if figure else "",
    )


def describe_run(run: Run, marks: tuple[StageMark, ...]) -> dict[str, object]:
    """The report as plain values."""
    publish = marks[-1]
    snapshot = publish.details["snapshot"]
    rejects = _read_rows(run, snapshot, "rejects")
    head = read_head(run.warehouse, run.ref)
    totals = read_totals(run.folder)
    return {
        "run": run.name,
        "snapshot": snapshot,
        "ref": run.ref,
        "committed": publish.details["committed"],
        "head": head.snapshot if head else None,
        "corpus": run.corpus,
        "rows": dict(publish.rows),
        "unread": [asdict(kind) for kind in list_unread(rejects)],
        "rejects": {mark.stage: dict(mark.rejects) for mark in marks if mark.rejects},
        "examples": _pick_examples(rejects),
        "withdrawn": _list_withdrawn(rejects),
        "recomputed": {mark.stage: mark.recomputed for mark in marks},
        "seconds": {mark.stage: mark.seconds for mark in marks},
        "stages": [
            {
                "stage": mark.stage,
                "rows": dict(mark.rows),
                "recomputed": mark.recomputed,
                "seconds": mark.seconds,
                "rejects": sum(mark.rejects.values()),
            }
            for mark in marks
        ],
        "calls": totals.run.calls,
        "tokens": totals.run.tokens,
        "cost": totals.run.cost,
        "model": _describe_model(run, marks, totals),
        "gates": dict(publish.gates),
        "changes": publish.details.get("changes"),
        "before": _compare_rows(run, publish.details["committed"]),
        "decisions": _describe_decisions(run, snapshot),
    }


def _describe_decisions(run: Run, snapshot: str) -> dict[str, JsonValue] | None:
    """How many entries the decisions file has, and to how many proposals they apply."""
    if run.settings.complete.decisions is None:
        return None
    entries = [entry.decision for entry in load_decisions(run.settings.complete).entries]
    states = _list_decided(run, snapshot)
    return {
        "file": run.settings.complete.decisions,
        "accept": entries.count("accept"),
        "reject": entries.count("reject"),
        "accepted": states.count("accepted"),
        "rejected": states.count("rejected"),
    }


def _list_decided(run: Run, snapshot: str) -> list[str]:
    """The states that a decisions file gave to proposals of a snapshot."""
    rows = _read_rows(run, snapshot, "proposals").select(["state", "decided_by"])
    return [row["state"] for row in rows.to_pylist() if row["decided_by"] == "file"]


def _read_rows(run: Run, snapshot: str, table: str) -> pa.Table:
    path = locate_snapshot(run.warehouse, snapshot) / "tables" / f"{table}.parquet"
    return read_table(path, load_contracts()[table])


def _warn_of_lost_decisions(run: Run, committed: str) -> None:
    """Warns where a person's decisions were in the ref's last snapshot and are in no file now."""
    before = _find_before(run, committed)
    if run.settings.complete.decisions is not None or before is None:
        return
    version = _read_tables(run, before)["proposals"]["contract"]
    if version != load_contracts()["proposals"].version:
        return  # what an older version wrote
    if count := len(_list_decided(run, before)):
        log.warning(
            "ref %s was built with a decisions file, which decided on %d proposals; this build "
            "has none, and they are undecided again: name the file in complete.decisions",
            run.ref,
            count,
        )


def _describe_model(
    run: Run, marks: tuple[StageMark, ...], totals: Totals
) -> dict[str, JsonValue] | None:
    """What models were asked and what it took, beside what was planned; None without any.

    A stage that asked for nothing new has no calls; one that is not part of a build, like a
    batch that was sent before, has no hits.
    """
    planned = _read_plan(run)
    asked = {mark.stage: mark.model for mark in marks if mark.model}
    names = [s.name for s in PIPELINE if s.name in asked or s.name in totals.stages]
    names += sorted(set(totals.stages) - set(names))
    if not names:
        return None
    stages: list[JsonValue] = []
    for name in names:
        counts = asked.get(name, {})
        requests, hits = _count(counts, "asked"), _count(counts, "hits")
        stages.append(
            {
                "stage": name,
                "asked": requests,
                "hits": hits,
                "hit_rate": round(hits / requests, 4) if requests else None,
                "failures": counts.get("failures", {}),
                **totals.stages.get(name, Sum()).describe(),
                "planned": planned.get(name),
            }
        )
    return {
        "stages": stages,
        "tasks": {name: total.describe() for name, total in sorted(totals.tasks.items())},
        "documents": [
            {"document": name, "calls": total.calls, "tokens": total.tokens, "cost": total.cost}
            for name, total in totals.list_dearest()
        ],
        "torn": totals.torn,
        **totals.run.describe(),
    }


def _count(counts: Mapping[str, JsonValue], name: str) -> int:
    value = counts.get(name)
    return value if isinstance(value, int) else 0


def _read_plan(run: Run) -> dict[str, JsonValue]:
    """What the plan at the build's start said of each stage; empty when none was made."""
    try:
        rows = json.loads((run.folder / PLAN).read_bytes())
        return {
            row["stage"]: {"calls": row["calls"], "tokens": row["tokens"], "cost": row["cost"]}
            | (row.get("model") or {})
            for row in rows
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as e:
        log.warning("plan %s cannot be read, the report leaves it out: %s", run.folder / PLAN, e)
        return {}


def _pick_examples(rejects: pa.Table) -> dict[str, list[str]]:
    """The first details of every reason, so that a number can be understood."""
    examples: dict[str, list[str]] = {}
    for row in rejects.select(["stage", "reason", "detail"]).to_pylist():
        shown = examples.setdefault(f"{row['stage']}: {row['reason']}", [])
        if len(shown) < _EXAMPLES:
            shown.append(row["detail"][:300])
    return dict(sorted(examples.items()))


def _list_withdrawn(rejects: pa.Table) -> list[dict[str, str]]:
    """The statements that contradicted others and lost: reason, and what, why and where."""
    rows = rejects.filter(pc.equal(rejects["stage"], "publish")).select(["reason", "detail"])
    return list(rows.sort_by("detail").slice(0, _MOST_WITHDRAWN).to_pylist())


def _compare_rows(run: Run, committed: str) -> dict[str, int] | None:
    """Rows of the snapshot that the ref had before this run, for the eye; None for the first."""
    before = _find_before(run, committed)
    if before is None:
        return None
    return {name: entry["rows"] for name, entry in _read_tables(run, before).items()}


def _find_before(run: Run, committed: str) -> str | None:
    """The snapshot that the ref had before this run; None for the first, or where it is gone."""
    head = read_head(run.warehouse, run.ref)
    before = head and (head.parent if committed == "yes" else head.snapshot)
    return before if before and has_snapshot(run.warehouse, before) else None


def _read_tables(run: Run, snapshot: str) -> Mapping[str, Mapping[str, int]]:
    """What the manifest of a snapshot says of its tables: rows and version of the contract."""
    tables = find_manifest(run.warehouse, snapshot)["tables"]
    return cast("Mapping[str, Mapping[str, int]]", tables)
