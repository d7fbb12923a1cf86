"""Completion as a reader sees it: what the ontology lacked, and what was proposed for it."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.keys import JsonValue
from kpyramid.reporting.lacking import list_lacking
from kpyramid.reporting.tables import Evidence, Row, SnapshotTables, find_evidence
from kpyramid.reporting.words import Words

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
    wanted = {key for keys in picked.values() for key in keys} | {row.example for row in lacking}
    evidence = find_evidence(tables, wanted)
    return {
        **_describe_layers(tables),
        "lacking": [
            row.describe() | {"example": evidence[row.example].describe()} for row in lacking
        ],
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
    layers: dict[str, JsonValue] = {}
    for layer in ("graph", "ontology"):
        rows = phrases.filter(pc.equal(phrases["layer"], layer))
        layers[layer] = _count(rows)
    return {
        "layers": layers,
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
    plain = ("proposal_id", "round", "kind", "iri", "label", "definition", "support", "score")
    phrases: Sequence[str] = row["phrases"]
    return {
        **{name: row[name] for name in plain},
        "agreement": row["agreement"],
        "state": row["state"],
        "decided_by": row["decided_by"],
        "note": row["note"],
        "domain": words.name(row["domain"]),
        "range": words.name(row["range"]) if row["range"] else None,
        "inverse_of": words.name(row["inverse_of"]) if row["inverse_of"] else None,
        "splits": words.name(row["splits"]) if row["splits"] else None,
        "existing": words.name(row["iri"]) if row["state"] == "alias" else None,
        "phrases": list(phrases),
        "examples": [found.describe() for found in _choose_examples(examples, evidence)],
    }


def _choose_examples(
    candidates: Collection[str], evidence: Mapping[str, Evidence]
) -> list[Evidence]:
    """Facts of different heads and wordings, the wording of most candidates first."""
    rest = [evidence[key] for key in candidates]
    uses = Counter(found.relation for found in rest)
    chosen: list[Evidence] = []
    while rest and len(chosen) < _EXAMPLES:
        said = {found.relation for found in chosen}
        heads = {found.head for found in chosen}
        best = min(
            rest,
            key=lambda e: (
                e.head in heads,
                e.relation in said,
                -uses[e.relation],
                -e.places,
                len(e.sentence),
                e.head,
                e.tail,
            ),
        )
        chosen.append(best)
        rest.remove(best)
    return chosen
