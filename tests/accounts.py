"""A small snapshot made by hand, for what reports say of completion and condensation."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from kpyramid.ontology.schema import write_schema
from kpyramid.pipeline.stages.tables import build_table
from kpyramid.storage.contracts import encode_table
from tests.planted import Statement, general_schema, plant
from tests.rows import read_rows

GENERAL = "https://w3id.org/kpyramid/general#"
STATEMENTS: tuple[Statement, ...] = (*read_rows("accounts.statements"),)
"""The first two are one fact, the next three are missing from the ontology, the last two clash."""

ONE_PROPOSAL: Mapping[str, object] = {
    "proposal_id": "proposal-1",
    "round": 1,
    "kind": "property",
    "iri": GENERAL + "lostTo",
    "label": "lost to",
    "definition": "A person lost to <another> person.",
    **{"domain": GENERAL + "Person", "range": GENERAL + "Person"},
    **{"inverse_of": None, "splits": None},
    "phrases": ["lost the match against", "lost to"],
    **{"score": 0.75, "agreement": 1.0, "state": "open", "decided_by": "rules"},
    "note": "three facts",
}


def make_account(folder: Path, statements: Iterable[Statement] = STATEMENTS) -> None:
    """Writes tables and schema of a snapshot below `folder`; the ontology lacks `lost …`."""
    tables = plant(statements)
    relation = {r["relation_id"]: r["name"] for r in tables["relations"].to_pylist()}
    triples = tables["triples"].to_pylist()
    said = {row["triple_id"]: relation[row["relation_id"]] for row in triples}
    tables |= _complete(said)
    tables |= _condense(triples, said)
    (folder / "tables").mkdir(parents=True)
    (folder / "ontology").mkdir()
    for name, table in tables.items():
        (folder / "tables" / f"{name}.parquet").write_bytes(encode_table(table))
    (folder / "ontology" / "schema.ttl").write_text(write_schema(general_schema()))


def _complete(said: Mapping[str, str]) -> dict[str, pa.Table]:
    missing = {key for key, wording in said.items() if wording.startswith("lost")}
    phrases: list[dict[str, object]] = [
        {
            **{"phrase_id": f"phrase-{wording}", "layer": "graph", "text": f"person {wording}"},
            "facts": list(said.values()).count(wording),
            **{"x": float(at), "y": float(at % 2), "log_graph": -1.0},
            "log_ontology": -4.0 if wording.startswith("lost") else -1.0,
            "region": wording.startswith("lost"),
        }
        for at, wording in enumerate(sorted(set(said.values())))
    ]
    known = {"phrase_id": "phrase-o", "layer": "ontology", "text": "person birth place"}
    ontology = [row | known | {"facts": 2, "region": False} for row in phrases[:1]]
    points = np.array([[row["x"], row["y"]] for row in phrases], dtype=np.float64).reshape(-1, 2)
    measures = {
        "phrases": len(points),
        "total": points.sum(axis=0).tolist(),
        "outer": (points.T @ points)[np.tril_indices(2)].tolist(),
        "explained": [0.5, 0.25],
    }
    layers = [{"layer": name, **measures} for name in ("graph", "ontology") if phrases]
    priorities = [
        {
            **{"triple_id": key, "phrase_id": f"phrase-{wording}", "log_magnitude": -2.0},
            **{"sign": 1 if key in missing else -1, "region": key in missing},
        }
        for key, wording in said.items()
    ]
    proposal = {**ONE_PROPOSAL, "support": len(missing), "triple_ids": sorted(missing)}
    return {
        "phrases": build_table("phrases", [*phrases, *ontology]),
        "layers": build_table("layers", layers),
        "priorities": build_table("priorities", priorities),
        "proposals": build_table("proposals", [proposal] if missing else []),
    }


def _condense(triples: list[dict[str, object]], said: Mapping[str, str]) -> dict[str, pa.Table]:
    """Two wordings of working for an institute become one; two birth places clash."""
    rows = []
    working = ("works for", "is employed by")
    merged = [row for row in triples if said[str(row["triple_id"])] in working]
    for row in triples:
        keys = sorted(str(r["triple_id"]) for r in (merged if row in merged else [row]))
        if row["triple_id"] != keys[0]:
            continue
        rows.append(
            {
                "condensed_id": f"condensed-{row['triple_id']}",
                **{name: row[name] for name in ("head_id", "relation_id", "tail_id", "literal")},
                "qualifiers": [("time", "1950")] if len(keys) > 1 else [],
                "standard_relation": said[keys[0]],
                **{"standard_turned": False, "standard_head_id": row["head_id"]},
                **{"standard_tail_id": row["tail_id"], "more_detailed_id": None},
                "anchor": GENERAL + "employer" if len(keys) > 1 else None,
                "anchor_class": GENERAL + "Person" if len(keys) > 1 else None,
                "derived_from": keys,
                "how": ["kept" if key == keys[0] else "equivalent" for key in keys],
            }
        )
    born = [str(r["condensed_id"]) for r in rows if said[r["derived_from"][0]] == "was born in"]
    clash = {
        **{"contradiction_id": "contradiction-1", "kind": "functional"},
        "anchor": GENERAL + "birthPlace",
        "condensed_ids": sorted(born),
        "detail": "a person has one birth place",
    }
    return {
        "condensed": build_table("condensed", rows),
        "contradictions": build_table("contradictions", [clash] if len(born) > 1 else []),
    }
