"""The report of a run: its course, the snapshot's content and changes, rejects with reasons."""

import json
import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from kpyramid.completion.decisions import load_decisions
from kpyramid.documents.qualifiers import write_qualifiers
from kpyramid.documents.words import word_relation
from kpyramid.errors import InputError, PyramidError
from kpyramid.keys import JsonValue
from kpyramid.ontology.names import THING, XSD
from kpyramid.ontology.schema import Schema
from kpyramid.pipeline.report.course import add_trend, describe_course, write_pages
from kpyramid.pipeline.report.words import cut, cut_sentence, load_template
from kpyramid.pipeline.stage import PIPELINE
from kpyramid.pipeline.stages.ingest import list_unread
from kpyramid.snapshot.diff import Change, compare
from kpyramid.snapshot.diff import Row as Differing
from kpyramid.snapshot.graph import name_source, open_database
from kpyramid.snapshot.individuals import Overview, summarise_snapshot
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.view import EVERYTHING
from kpyramid.storage.contracts import load_contracts
from kpyramid.storage.copies import locate_snapshot
from kpyramid.storage.refs import read_head
from kpyramid.storage.runs import Run, StageMark, read_mark
from kpyramid.storage.snapshots import find_manifest, has_snapshot

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Database


# The snapshot in a report: content, rejects, proposals, merges, contradictions.

Row = dict[str, Any]

_STATES = ("accepted", "open", "alias", "rejected")
_MOST_PROPOSALS, _MOST_EXAMPLES = 25, 3
_MOST_MERGES, _MOST_PARTS = 12, 6
_MOST_CONTRADICTIONS = 20
_LONGEST = 320
"""Most characters of a sentence that is shown."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@contextmanager
def open_tables(folder: Path) -> "Iterator[Database]":
    """The tables of a snapshot's folder, by their names, and `derivations`: a row per triple.

    Raises:
        IntegrityError: one is missing or damaged.
    """
    with open_database() as database:
        for path in sorted((folder / "tables").glob("*.parquet")):
            source = name_source(database, path.stem, path)
            database.execute(f"CREATE VIEW {path.stem} AS FROM {source}")
        database.execute(
            "CREATE VIEW derivations AS SELECT unnest(derived_from) AS triple_id, condensed_id, "
            "unnest(how) AS how FROM condensed"
        )
        yield database


def select_rows(database: "Database", query: str, **given: object) -> list[Row]:
    """The rows of a query as dicts by column; `$name` stands for a parameter."""
    rows: list[Row] = database.sql(query, params=given or None).to_arrow_table().to_pylist()
    return rows


def run_query(database: "Database", name: str, **given: object) -> list[Row]:
    """The rows of the query in a file of `queries/`."""
    path = Path(__file__).parent / "queries" / f"{name}.sql"
    return select_rows(database, path.read_text("utf-8"), **given)


def name_term(iri: str | None, schema: Schema) -> str | None:
    """The label of a class or property, else the last words of its IRI.

    The class of all things is `anything`, a datatype `xsd:gYear`.
    """
    if iri is None or iri == THING:
        return iri and "anything"
    if iri.startswith(XSD):
        return f"xsd:{iri.removeprefix(XSD)}"
    term = schema.term_by_iri.get(iri)
    return term.label if term else _CAMEL.sub(" ", re.split(r"[#/]", iri)[-1])


def describe_completion(database: "Database", schema: Schema) -> dict[str, JsonValue]:
    """Figures of both layers, the region's phrases, proposals by state with examples."""
    sums = "SELECT count(*)::BIGINT AS phrases, coalesce(sum(facts), 0)::BIGINT AS facts"
    layers = {
        layer: select_rows(database, f"{sums} FROM phrases WHERE layer = $layer", layer=layer)[0]
        for layer in ("graph", "ontology")
    }
    (region,) = select_rows(database, f"{sums} FROM phrases WHERE region")
    explained = select_rows(database, "SELECT explained FROM layers ORDER BY layer LIMIT 1")
    shares = [round(share, 4) for share in explained[0]["explained"]] if explained else []
    counted = select_rows(
        database, "SELECT state, count(*) AS n, max(round) AS round FROM proposals GROUP BY state"
    )
    counts = {row["state"]: row["n"] for row in counted}
    rows = run_query(database, "proposals", most=_MOST_PROPOSALS, few=_MOST_EXAMPLES)
    evidence = find_evidence(database, {key for row in rows for key in row["examples"]})
    for row in rows:
        row["existing"] = name_term(row["iri"], schema) if row["state"] == "alias" else None
        row |= {n: name_term(row[n], schema) for n in ("domain", "range", "inverse_of", "splits")}
        row["examples"] = [evidence[key] for key in row["examples"]]
    return {
        "layers": layers,
        "dimensions": len(shares),
        "explained": round(sum(shares), 4),
        "region": region,
        "rounds": max((row["round"] for row in counted), default=0),
        "counts": {state: counts[state] for state in _STATES if state in counts},
        "proposals": {s: [row for row in rows if row["state"] == s] for s in _STATES},
    }


def describe_condensation(database: "Database", schema: Schema) -> Row:
    """Counts of facts before and after, by kind of merge; examples; contradictions."""
    (counts,) = run_query(database, "condensed")
    how = select_rows(database, "SELECT how, count(*) AS n FROM derivations GROUP BY how")
    clashes = select_rows(database, "FROM contradictions ORDER BY contradiction_id")
    shown = clashes[:_MOST_CONTRADICTIONS]
    sides = read_facts(database, [key for row in shown for key in row["condensed_ids"]])
    return {
        **counts,
        "how": {row["how"]: row["n"] for row in sorted(how, key=lambda row: str(row["how"]))},
        "merges": _describe_merges(database, schema),
        "contradictions": len(clashes),
        "contradicting": [
            {
                "kind": row["kind"],
                "anchor": name_term(row["anchor"], schema),
                "detail": row["detail"],
                "sides": [
                    {"condensed_id": key, **sides[key]["parts"][0]} for key in row["condensed_ids"]
                ],
            }
            for row in shown
        ],
    }


def describe_content(
    database: "Database", overview: Overview, schema: Schema
) -> dict[str, JsonValue]:
    """The overview; `facts`: three examples; `silent`: properties without a value.

    Values of inverses count. `near`: facts whose wording resembles such a property; `why`: what the
    first of those that state it lacks.
    """
    query = "SELECT anchor, count(*) AS facts FROM condensed GROUP BY anchor"
    near = {row["anchor"]: row["facts"] for row in select_rows(database, query)}
    lacking = {row["label"]: row for row in run_query(database, "lacking")}
    used = {p.iri for p in overview.properties if p.count}
    used |= {inverse for p in schema.properties if p.iri in used and (inverse := p.inverse_of)}
    silent: list[JsonValue] = [
        {
            "label": p.label,
            "near": max(near.get(p.iri, 0), lacking.get(p.label, {}).get("facts", 0)),
            "why": lacking.get(p.label, {}).get("why", ""),
        }
        for p in overview.properties
        if p.iri not in used
    ]
    return {**asdict(overview), "facts": [*_pick_facts(database)], "silent": silent}


def _pick_facts(database: "Database") -> Iterator[Row]:
    """Three facts of different things and relations whose sentences are short enough to show."""
    rows = run_query(database, "shown_facts", most=8 * _FACTS)
    keys = [row["triple_id"] for row in rows]
    evidence, relations = find_evidence(database, keys), set[str]()
    for row in (evidence[key] for key in keys if key in evidence):
        if row["fact"][1] not in relations and len(row["sentence"]) <= _SHORT:
            relations.add(row["fact"][1])
            yield row
        if len(relations) == _FACTS:
            return


_FACTS, _SHORT = 3, 180


def describe_checked(database: "Database") -> dict[str, JsonValue] | None:
    """A model's verdicts on facts held against their sentences; None where it was not asked.

    `facts`: facts read by the model that stay; `by_rules`: the others, which are never checked.
    `unanswered`: requests without a usable reply. `precision`: the share stated by their sentences,
    `low` to `high` its 95 % interval by Wilson's score; none where none was checked.
    """
    (row,) = run_query(database, "checked")
    count = row["stated"] + row["partly"] + row["not_stated"]
    if not count:
        return {**row, "checked": 0} if row["unanswered"] else None
    from scipy.stats import binomtest  # loaded where facts were checked

    interval = binomtest(row["stated"], count).proportion_ci(method="wilson")
    shares = {"precision": row["stated"] / count, "low": interval.low, "high": interval.high}
    return {**row, "checked": count, **{name: round(v, 4) for name, v in shares.items()}}


def describe_rejects(database: "Database") -> list[Row]:
    """Rejects by stage and reason, the most frequent first, with examples.

    An example has its detail, and, where known, the sentence and its source.
    """
    groups: dict[tuple[str, str], Row] = {}
    for row in run_query(database, "rejects", most=_MOST_EXAMPLES, before=_LONGEST, after=_LONGEST):
        kind = {name: row[name] for name in ("stage", "reason", "count")}
        known = groups.setdefault((row["stage"], row["reason"]), {**kind, "examples": []})
        sentence = row["sentence"] or cut_sentence(row["passage"] or "", row["place"] or 0)
        example = {"detail": cut(row["detail"], _LONGEST), "sentence": cut(sentence, _LONGEST)}
        known["examples"].append({**example, "source": row["source"]})
    return sorted(groups.values(), key=lambda row: (-row["count"], row["stage"], row["reason"]))


def _describe_merges(database: "Database", schema: Schema) -> list[Row]:
    """The merges of the most different wordings; one for each set of wordings."""
    chosen = run_query(database, "merges", most=_MOST_MERGES)
    keys = [row["condensed_id"] for row in chosen]
    facts = read_facts(database, keys, _MOST_PARTS)
    return [
        {
            "condensed_id": key,
            "fact": facts[key]["parts"][0]["fact"],
            "qualifiers": write_qualifiers(facts[key]["qualifiers"]),
            "anchor": name_term(facts[key]["anchor"], schema),
            "facts": len(facts[key]["derived_from"]),
            "from": facts[key]["parts"],
        }
        for key in keys
    ]


def read_facts(database: "Database", keys: Sequence[str], most: int = 1) -> dict[str, Row]:
    """Condensed facts by key; `parts`: their first triples, each with how it was merged.

    Triples with `how` = "kept" come first.
    """
    rows = select_rows(
        database, "FROM condensed WHERE condensed_id IN (SELECT unnest($keys))", keys=[*keys]
    )
    parts = {
        row["condensed_id"]: sorted(
            zip(row["derived_from"], row["how"], strict=True),
            key=lambda pair: (pair[1] != "kept", pair[1], pair[0]),
        )[:most]
        for row in rows
    }
    evidence = find_evidence(database, {key for pairs in parts.values() for key, _ in pairs})
    for row in rows:
        chosen = parts[row["condensed_id"]]
        row["parts"] = [{"how": how, "triple_id": k, **evidence.get(k, {})} for k, how in chosen]
    return {row["condensed_id"]: row for row in rows}


def find_evidence(database: "Database", triple_ids: Collection[str]) -> Mapping[str, Row]:
    """Triples in words by id, each with the text of its surest statement and its source.

    `qualifiers`: when, where and how it holds; `confidence`: that of its extraction; `places`: its
    number of statements.
    """
    rows = run_query(database, "evidence", keys=sorted(triple_ids))
    return {
        row["triple_id"]: {
            "fact": [row["head"], word_relation(row["relation"], row["negated"]), row["tail"]],
            "qualifiers": write_qualifiers(row["qualifiers"]),
            "confidence": row["confidence"],
            "sentence": cut(row["text"], _LONGEST),
            "source": row["source"],
            "places": row["places"],
        }
        for row in rows
    }


# Figures: both layers in one space, before and after (PolyRAG, Figure 4), and a trend.

MOST_POINTS = 1500
"""Phrases of a layer that are drawn; of more, those with the smallest keys, which are hashes."""
_MOST_LABELS = 8
_SIZE = 300
"""Side of a panel in pixels."""


@dataclass(frozen=True, slots=True)
class Figure:
    """Layers of phrases in three panels, proposals at their places, in pixels of a panel.

    `explained`: the share of the variance that each axis holds.
    """

    layers: list[Row]
    labels: list[Row]
    explained: list[float]
    size: int = _SIZE
    most: int = MOST_POINTS


def read_figure(database: "Database") -> Figure | None:
    """The figure of a snapshot's tables; None for a graph without facts."""
    layers = run_query(database, "figure", size=_SIZE, most=MOST_POINTS)
    if not any(row["layer"] == 0 for row in layers):
        return None
    labels = run_query(database, "labels", size=_SIZE, most=_MOST_LABELS)
    explained = select_rows(database, "SELECT explained FROM layers ORDER BY layer LIMIT 1")
    return Figure(layers, labels, explained[0]["explained"][:2] if explained else [])


# The report of a run: its course, the snapshot's content and changes, rejects with reasons.

log = logging.getLogger(__name__)

_MOST_WITHDRAWN = 200
"""Withdrawn statements named in a report; the table `rejects` has all of them."""
_MOST_CHANGES = 12
"""Rows of a kind of change named in a report; `kpyramid diff` has all of them."""
_MOST_THINGS = 10


def write_report(run: Run, marks: tuple[StageMark, ...] | None = None) -> dict[str, Any]:
    """Writes `report.json` and `report.html` into the run's folder; returns plain values.

    Raises:
        InputError: a stage of the run is not done.
    """
    done = marks or tuple(m for stage in PIPELINE if (m := read_mark(run, stage.name)))
    if [mark.stage for mark in done] != [stage.name for stage in PIPELINE]:
        raise InputError(f"run {run.name}: not all stages are done, there is nothing to report")
    publish = done[-1]
    _warn_of_lost_decisions(run, publish.details["committed"])
    report = describe_run(run, done)
    with open_tables(locate_snapshot(run.warehouse, publish.details["snapshot"])) as database:
        figure = read_figure(database)
    drawn = load_template("figure.svg.jinja").render(figure=figure) if figure else ""
    write_pages(run, report, drawn)
    return report


def describe_run(run: Run, marks: tuple[StageMark, ...]) -> dict[str, Any]:
    """The report as plain values."""
    publish = marks[-1]
    snapshot, committed = publish.details["snapshot"], publish.details["committed"]
    folder = locate_snapshot(run.warehouse, snapshot)
    before = _find_before(run, committed)
    with open_tables(folder) as database:
        opened = Snapshot(folder, scope=EVERYTHING)
        overview = summarise_snapshot(opened, _MOST_THINGS)
        unread = database.sql("FROM rejects WHERE stage = 'ingest' ORDER BY reject_id")
        unmatched = "FROM rejects WHERE reason = 'unmatched_correction' ORDER BY reject_id"
        of_us = [] if run.settings.extract.author else run_query(database, "of_us")
        withdrawn = "SELECT reason, detail FROM rejects WHERE stage = 'publish' ORDER BY detail"
        condensation = describe_condensation(database, opened.schema)
        withdrawals = select_rows(database, withdrawn)
        changes, changed = _describe_changes(run, before, opened, database)
        report: dict[str, Any] = {
            **describe_course(run, marks),
            "content": describe_content(database, overview, opened.schema),
            "unread": [asdict(kind) for kind in list_unread(unread.to_arrow_table())],
            "refused": describe_rejects(database),
            "checked": describe_checked(database),
            "withdrawn": withdrawals[:_MOST_WITHDRAWN],
            "withdrawals": len(withdrawals),
            "contradictions": publish.rows.get("contradictions", 0),
            "contradicting": next((row["detail"] for row in condensation["contradicting"]), None),
            "checks": json.loads(publish.details.get("checks", "[]")),
            "of_us": of_us[0]["rejects"] if of_us else 0,
            "unmatched": [row["detail"] for row in select_rows(database, unmatched)],
            "changes": changes,
            "changed": changed,
            "before": before and {n: e["rows"] for n, e in _read_tables(run, before).items()},
            "decisions": _describe_decisions(run, database),
            "completion": describe_completion(database, opened.schema),
            "condensation": condensation,
        }
    add_trend(run, report)
    return report


def _describe_changes(
    run: Run, before: str | None, after: Snapshot, database: "Database"
) -> tuple[str | None, dict[str, Any]]:
    """The differences to the ref's former snapshot: a line, counts, rows with sentences.

    Removed rows are only counted, and changed ones have their present values: a report contains
    nothing that its snapshot does not, so that a document can be erased with its snapshots.
    """
    if before is None:
        return None, {}
    if before == after.id:
        return "nothing changed", {}
    kinds: tuple[Change, ...] = ("added", "changed")
    try:
        former = Snapshot(locate_snapshot(run.warehouse, before), scope=EVERYTHING)
        with compare(former, after) as difference:
            counts = {name: asdict(difference.count(name)) for name in ("documents", "facts")}
            documents = {
                kind: [row.words for row in difference.read("documents", _MOST_CHANGES, kind)]
                for kind in kinds
            }
            facts = {
                kind: _quote_rows(database, difference.read("facts", _MOST_CHANGES, kind))
                for kind in kinds
            }
            changed = {"counts": counts, "documents": documents, "facts": facts}
            return difference.summarise(), changed
    except PyramidError as e:  # by another version, damaged, or gone
        return f"not compared: {e}", {}


def _quote_rows(database: "Database", rows: Sequence[Differing]) -> list[dict[str, Any]]:
    """Facts that differ, each with its sentence and source."""
    facts = read_facts(database, [row.key for row in rows])
    quoted = {key: fact["parts"][0] for key, fact in facts.items()}
    return [
        {"fact": row.words, "fields": {name: now for name, (_, now) in row.fields.items()}}
        | {name: quoted.get(row.key, {}).get(name) for name in ("sentence", "source")}
        for row in rows
    ]


def _describe_decisions(run: Run, database: "Database") -> dict[str, JsonValue] | None:
    """The number of entries in the decisions file, and of proposals that they decide."""
    if run.settings.complete.decisions is None:
        return None
    entries = [entry.decision for entry in load_decisions(run.settings.complete).entries]
    states = [row["state"] for row in select_rows(database, _DECIDED)]
    return {
        "file": run.settings.complete.decisions,
        "accept": entries.count("accept"),
        "reject": entries.count("reject"),
        "accepted": states.count("accepted"),
        "rejected": states.count("rejected"),
    }


_DECIDED = "SELECT state FROM proposals WHERE decided_by = 'file'"
"""The states that a decisions file gave to proposals."""


def _warn_of_lost_decisions(run: Run, committed: str) -> None:
    """Warns if the ref's last snapshot had decisions that are in no file now."""
    before = _find_before(run, committed)
    if run.settings.complete.decisions is not None or before is None:
        return
    version = _read_tables(run, before)["proposals"]["contract"]
    if version != load_contracts()["proposals"].version:
        return  # what an older version wrote
    with open_tables(locate_snapshot(run.warehouse, before)) as database:
        count = len(select_rows(database, _DECIDED))
    if count:
        log.warning(
            "ref %s was built with a decisions file, which decided on %d proposals; this build "
            "has none, and they are undecided again: name the file in complete.decisions",
            run.ref,
            count,
        )


def _find_before(run: Run, committed: str) -> str | None:
    """The ref's snapshot before this run; None for the first, or if it is deleted."""
    head = read_head(run.warehouse, run.ref)
    before = head and (head.parent if committed == "yes" else head.snapshot)
    return before if before and has_snapshot(run.warehouse, before) else None


def _read_tables(run: Run, snapshot: str) -> Mapping[str, Mapping[str, int]]:
    """The manifest's entries on tables: rows and version of the contract."""
    tables = find_manifest(run.warehouse, snapshot)["tables"]
    return cast("Mapping[str, Mapping[str, int]]", tables)
