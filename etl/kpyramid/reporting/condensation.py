"""Condensation as a reader sees it: what was merged into what, around which anchors, and why."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.keys import JsonValue
from kpyramid.reporting.tables import (
    Evidence,
    Numbers,
    Row,
    SnapshotTables,
    find_evidence,
    state_rows,
    to_numpy,
)
from kpyramid.reporting.words import Words

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
    owners: Numbers
    relations: Numbers
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
    columns = ("condensed_id", *_FACT, "anchor", "derived_from", "how")
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


def _describe_merges(tables: SnapshotTables, graph: _Graph, words: Words) -> list[JsonValue]:
    """The merges of most different wordings; of merges of the same wordings one."""
    rows = graph.condensed.take(pa.array(_choose_merges(graph), pa.int64())).to_pylist()
    parts = {row["condensed_id"]: _choose_parts(row) for row in rows}
    evidence = find_evidence(tables, {key for pairs in parts.values() for key, _ in pairs})
    described: list[JsonValue] = []
    for row, said in zip(rows, state_rows(tables, rows), strict=True):
        described.append(
            {
                "condensed_id": row["condensed_id"],
                "fact": list(said),
                "anchor": words.name(row["anchor"]) if row["anchor"] else None,
                "facts": len(row["derived_from"]),
                "from": [
                    {"how": how, "triple_id": key, **evidence[key].describe()}
                    for key, how in parts[row["condensed_id"]]
                ],
            }
        )
    return described


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


def _describe_anchors(graph: _Graph, words: Words) -> list[JsonValue]:
    """The properties with most facts, and the wordings of the triples linked to them."""
    anchors = graph.condensed["anchor"].combine_chunks().dictionary_encode()
    codes = to_numpy(pc.fill_null(anchors.indices, -1))
    facts = np.bincount(codes[codes >= 0], minlength=len(anchors.dictionary))
    iris = anchors.dictionary.to_pylist()
    described: list[JsonValue] = []
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


def _describe_contradictions(
    tables: SnapshotTables, condensed: pa.Table, words: Words
) -> dict[str, JsonValue]:
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
                "sides": _describe_sides(row["condensed_ids"], kept, evidence),
            }
            for row in rows
        ],
    }


def _describe_sides(
    keys: Sequence[str], kept: Mapping[str, str], evidence: Mapping[str, Evidence]
) -> list[JsonValue]:
    return [{"condensed_id": key, **evidence[kept[key]].describe()} for key in keys]
