"""Completion and condensation in a report: what was lacking, proposed, merged."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.completion.clusters import says_something
from kpyramid.documents.qualifiers import write_qualifiers
from kpyramid.documents.words import normalise_relation
from kpyramid.keys import JsonValue
from kpyramid.numerics.arrays import Integers
from kpyramid.pipeline.report.tables import (
    Evidence,
    Row,
    SnapshotTables,
    Words,
    find_evidence,
    to_numpy,
)
from kpyramid.storage.contracts import find_rows

# What the ontology lacked: the wordings that most facts use where the graph is denser.

_MOST = 15


def list_lacking(tables: SnapshotTables, words: Words, proposals: Sequence[Row]) -> list[Row]:
    """The wordings by type of head of the region's facts, where the graph is denser, by facts.

    `nats`: mean of the logarithm of how much denser the graph is than the ontology at the phrases.
    `example`: a triple. `proposal`: id, label and state of what was proposed for it, if anything.
    Left out are wordings without a meaning of their own, as `has`, and those of properties that
    the ontology had.
    """
    facts = _read_region(tables)
    facts = facts.filter(pc.greater(facts["nats"], 0.0))
    groups = (
        facts.group_by(["type", "wording"], use_threads=False)
        .aggregate([([], "count_all"), ("nats", "mean"), ("triple_id", "min")])
        .sort_by([("count_all", "descending"), ("wording", "ascending"), ("type", "ascending")])
    )
    proposed = {
        normalise_relation(phrase).key: [row["proposal_id"], row["label"], row["state"]]
        for row in reversed(proposals)
        for phrase in row["phrases"]
    }
    rows = (row for batch in groups.to_batches(max_chunksize=1000) for row in batch.to_pylist())
    found: list[Row] = []
    for row in rows:
        form = normalise_relation(row["wording"])
        known = form.key not in proposed and words.states_property(form.key)
        if not known and says_something(form):
            found.append(
                {
                    "kind": words.name_type(row["type"]),
                    "wording": row["wording"],
                    "facts": row["count_all"],
                    "nats": round(row["nats_mean"], 4),
                    "proposal": proposed.get(form.key),
                    "example": row["triple_id_min"],
                }
            )
        if len(found) == _MOST:
            break
    return found


def _read_region(tables: SnapshotTables) -> pa.Table:
    """Per fact of the region its id, the type of its head, its wording and its nats."""
    scored = tables.read("priorities", ("triple_id", "phrase_id", "region"))
    scored = scored.filter(scored["region"])
    phrases = tables.read("phrases", ("phrase_id", "log_graph", "log_ontology"))
    nats = pc.subtract(phrases["log_graph"], phrases["log_ontology"]).combine_chunks()
    triples = tables.read("triples", ("triple_id", "head_id", "relation_id"))
    triples = triples.take(find_rows(scored["triple_id"], triples["triple_id"]))
    entities = tables.read("entities", ("entity_id", "type"))
    relations = tables.read("relations", ("relation_id", "name"))
    return pa.table(
        {
            "triple_id": scored["triple_id"],
            "nats": nats.take(find_rows(scored["phrase_id"], phrases["phrase_id"])),
            "type": entities["type"].take(find_rows(triples["head_id"], entities["entity_id"])),
            "wording": relations["name"].take(
                find_rows(triples["relation_id"], relations["relation_id"])
            ),
        }
    )


# Completion as a reader sees it: what the ontology lacked, and what was proposed for it.

_MOST_PROPOSALS = 25
_EXAMPLES = 3
_CANDIDATES = 24
"""Facts of a proposal among which its examples are chosen."""

_STATES = ("accepted", "open", "alias", "rejected")


def describe_completion(tables: SnapshotTables, words: Words) -> dict[str, JsonValue]:
    """Both layers in figures, the region in phrases, the proposals by state with examples."""
    proposals = _read_proposals(tables)
    lacking = list_lacking(tables, words, proposals)
    shown = {
        state: [row for row in proposals if row["state"] == state][:_MOST_PROPOSALS]
        for state in _STATES
    }
    picked = {
        row["proposal_id"]: row["triple_ids"][:_CANDIDATES]
        for rows in shown.values()
        for row in rows
    }
    wanted = {key for keys in picked.values() for key in keys} | {row["example"] for row in lacking}
    evidence = find_evidence(tables, wanted)
    return {
        **_describe_layers(tables),
        "lacking": [{**row, "example": evidence[row["example"]]} for row in lacking],
        "rounds": max((row["round"] for row in proposals), default=0),
        "counts": dict(Counter(row["state"] for row in proposals)),
        "proposals": {
            state: [
                _describe_proposal(row, picked[row["proposal_id"]], evidence, words) for row in rows
            ]
            for state, rows in shown.items()
        },
    }


def _describe_layers(tables: SnapshotTables) -> dict[str, JsonValue]:
    """Phrases and facts of both layers and of the region, and what the shared space explains."""
    phrases = tables.read("phrases", ("layer", "facts", "region"))
    inside = phrases.filter(phrases["region"])
    explained = [
        row["explained"] for row in tables.read("layers", ("layer", "explained")).to_pylist()
    ]
    shares = [round(share, 4) for share in explained[0]] if explained else []
    return {
        "layers": {
            layer: _count(phrases.filter(pc.equal(phrases["layer"], layer)))
            for layer in ("graph", "ontology")
        },
        "dimensions": len(shares),
        "axes": shares[:2],
        "explained": round(sum(shares), 4),
        "region": _count(inside),
    }


def _count(phrases: pa.Table) -> dict[str, JsonValue]:
    return {"phrases": phrases.num_rows, "facts": pc.sum(phrases["facts"], min_count=0).as_py()}


def _read_proposals(tables: SnapshotTables) -> list[Row]:
    """All proposals, the best first."""
    columns = (
        *("proposal_id", "round", "kind", "iri", "label", "definition", "domain", "range"),
        *("inverse_of", "splits", "phrases", "support", "score", "agreement", "triple_ids"),
        *("state", "decided_by", "note"),
    )
    rows: list[Row] = tables.read("proposals", columns).to_pylist()
    rows.sort(key=lambda r: (r["round"], -r["score"], r["proposal_id"]))
    return rows


def _describe_proposal(
    row: Row, examples: Collection[str], evidence: Mapping[str, Evidence], words: Words
) -> dict[str, JsonValue]:
    plain = (
        *("proposal_id", "round", "kind", "iri", "label", "definition", "phrases", "support"),
        *("score", "agreement", "state", "decided_by", "note"),
    )
    return {
        **{name: row[name] for name in plain},
        "domain": words.name(row["domain"]),
        "range": words.name(row["range"]) if row["range"] else None,
        "inverse_of": words.name(row["inverse_of"]) if row["inverse_of"] else None,
        "splits": words.name(row["splits"]) if row["splits"] else None,
        "existing": words.name(row["iri"]) if row["state"] == "alias" else None,
        "examples": [*_choose_examples(examples, evidence)],
    }


def _choose_examples(
    candidates: Collection[str], evidence: Mapping[str, Evidence]
) -> list[Evidence]:
    """Facts of different heads and wordings, the wording of most candidates first."""
    rest = [evidence[key] for key in candidates]
    uses = Counter(each["fact"][1] for each in rest)
    chosen: list[Evidence] = []

    def rank(each: Evidence) -> tuple[object, ...]:
        head, relation, tail = each["fact"]
        heads, relations = ({other["fact"][at] for other in chosen} for at in (0, 1))
        length = len(each["sentence"])
        used = -uses[relation]
        return head in heads, relation in relations, used, -each["places"], length, head, tail

    while rest and len(chosen) < _EXAMPLES:
        best = min(rest, key=rank)
        chosen.append(best)
        rest.remove(best)
    return chosen


# Condensation as a reader sees it: what was merged into what, around which anchors, and why.

_MOST_MERGES = 12
_MOST_PARTS = 6
_MOST_ANCHORS = 10
_MOST_WORDINGS = 6
_MOST_CONTRADICTIONS = 20
_FACT = ("head_id", "relation_id", "tail_id", "literal")


@dataclass(frozen=True, slots=True, eq=False)
class _Graph:
    """The condensed facts, and the triples that they are derived from, one after the other.

    `owners`: the row of the condensed fact of each triple. `relations`: its wording, a place in
    `names`.
    """

    condensed: pa.Table
    owners: Integers
    relations: Integers
    names: pa.Array


def describe_condensation(tables: SnapshotTables, words: Words) -> dict[str, JsonValue]:
    """How many facts became how many and how, the merges that say most, anchors, contradictions."""
    graph = _read_graph(tables)
    condensed = graph.condensed
    how = pc.value_counts(pc.list_flatten(condensed["how"]).combine_chunks()).to_pylist()
    return {
        "triples": len(graph.owners),
        "condensed": condensed.num_rows,
        "merged_into": int((np.bincount(graph.owners) > 1).sum()),
        "anchored": condensed.num_rows - condensed["anchor"].null_count,
        "how": {row["values"]: row["counts"] for row in sorted(how, key=lambda r: r["values"])},
        "merges": _describe_merges(tables, graph, words),
        "anchors": _describe_anchors(graph, words),
        **_describe_contradictions(tables, condensed, words),
    }


def _read_graph(tables: SnapshotTables) -> _Graph:
    columns = ("condensed_id", *_FACT, "qualifiers", "anchor", "derived_from", "how")
    condensed = tables.read("condensed", columns).combine_chunks()
    derived = condensed["derived_from"].combine_chunks()
    triples = tables.read("triples", ("triple_id", "relation_id"))
    at = pc.index_in(pc.list_flatten(derived), triples["triple_id"].combine_chunks())
    relations = tables.read("relations", ("relation_id", "name"))
    used = pc.index_in(
        triples["relation_id"].combine_chunks().take(at),
        relations["relation_id"].combine_chunks(),
    )
    return _Graph(
        condensed,
        to_numpy(pc.list_parent_indices(derived)),
        to_numpy(used),
        relations["name"].combine_chunks(),
    )


def _describe_merges(tables: SnapshotTables, graph: _Graph, words: Words) -> list[Row]:
    """The merges of most different wordings; of merges of the same wordings one."""
    rows = graph.condensed.take(pa.array(_choose_merges(graph), pa.int64())).to_pylist()
    parts = {row["condensed_id"]: _choose_parts(row) for row in rows}
    evidence = find_evidence(tables, {key for pairs in parts.values() for key, _ in pairs})
    return [
        {
            "condensed_id": row["condensed_id"],
            "fact": evidence[parts[row["condensed_id"]][0][0]]["fact"],
            "qualifiers": write_qualifiers(row["qualifiers"]),
            "anchor": words.name(row["anchor"]) if row["anchor"] else None,
            "facts": len(row["derived_from"]),
            "from": [
                {"how": how, "triple_id": key, **evidence[key]}
                for key, how in parts[row["condensed_id"]]
            ],
        }
        for row in rows
    ]


def _choose_merges(graph: _Graph) -> list[int]:
    merged = np.bincount(graph.owners)[graph.owners] > 1
    pairs = np.unique(np.stack([graph.owners[merged], graph.relations[merged]]), axis=1)
    wordings: dict[int, list[int]] = defaultdict(list)
    for owner, relation in pairs.T.tolist():
        wordings[owner].append(relation)
    first = {
        tuple(wordings[owner]): owner for owner in sorted(wordings, reverse=True)
    }  # of merges of the same wordings the first
    order = sorted(first, key=lambda key: (-len(key), first[key]))
    return [first[key] for key in order[:_MOST_MERGES]]


def _choose_parts(row: Row) -> list[tuple[str, str]]:
    """The first triples of a merge with how each came in, what was kept first."""
    pairs = zip(row["derived_from"], row["how"], strict=True)
    return sorted(pairs, key=lambda pair: (pair[1] != "kept", pair[1], pair[0]))[:_MOST_PARTS]


def _describe_anchors(graph: _Graph, words: Words) -> list[Row]:
    """The properties with most facts, and the wordings of the triples linked to them."""
    anchors = graph.condensed["anchor"].combine_chunks().dictionary_encode()
    codes = to_numpy(pc.fill_null(anchors.indices, -1))
    facts = np.bincount(codes[codes >= 0], minlength=len(anchors.dictionary))
    iris = anchors.dictionary.to_pylist()
    described: list[Row] = []
    for code in sorted(range(len(iris)), key=lambda c: (-facts[c], iris[c]))[:_MOST_ANCHORS]:
        used = np.bincount(graph.relations[codes[graph.owners] == code])
        said = {graph.names[at].as_py(): int(used[at]) for at in np.flatnonzero(used)}
        most = sorted(said.items(), key=lambda pair: (-pair[1], pair[0]))[:_MOST_WORDINGS]
        described.append(
            {
                "anchor": words.name(iris[code]),
                "iri": iris[code],
                "facts": int(facts[code]),
                "triples": int(used.sum()),
                "wordings": len(said),
                "most": [list(pair) for pair in most],
            }
        )
    return described


def _describe_contradictions(tables: SnapshotTables, condensed: pa.Table, words: Words) -> Row:
    """What cannot hold together, each side with its sentence."""
    columns = ("contradiction_id", "kind", "anchor", "condensed_ids", "detail")
    found = tables.read("contradictions", columns)
    rows = found.slice(0, _MOST_CONTRADICTIONS).to_pylist()
    wanted = pa.array(sorted({key for row in rows for key in row["condensed_ids"]}), pa.string())
    sides = condensed.filter(pc.is_in(condensed["condensed_id"], wanted))
    kept = {row["condensed_id"]: _choose_parts(row)[0][0] for row in sides.to_pylist()}
    evidence = find_evidence(tables, set(kept.values()))
    return {
        "contradictions": found.num_rows,
        "contradicting": [
            {
                "kind": row["kind"],
                "anchor": words.name(row["anchor"]) if row["anchor"] else None,
                "detail": row["detail"],
                "sides": [
                    {"condensed_id": key, **evidence[kept[key]]} for key in row["condensed_ids"]
                ],
            }
            for row in rows
        ],
    }
