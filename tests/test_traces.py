"""Every fact leads back to characters of a document: walked for all, without the product's help."""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest

from kpyramid.settings import Settings
from kpyramid.storage.layout import Warehouse
from tests.corpora import DEMO, build_corpus, copy_shared_build, make_settings, read_snapshot


def index(table: pa.Table) -> dict[str, dict[str, object]]:
    return {row[table.column_names[0]]: row for row in table.to_pylist()}


def walk(tables: Mapping[str, pa.Table]) -> dict[str, int]:
    """Follows every fact down to its characters; how many of each kind arrived."""
    rows = {name: index(t) for name, t in tables.items() if name not in {"vectors", "rejects"}}
    texts = {key: str(row["text"]) for key, row in rows["documents"].items()}
    supported: dict[str, str] = {}

    def read(chunk_id: object, start: object, end: object) -> str:
        text = texts[str(rows["chunks"][str(chunk_id)]["document_id"])][
            int(str(start)) : int(str(end))
        ]
        assert text.strip()
        return " ".join(text.split())  # a line may break within a name

    for key, raw in rows["raw_triples"].items():
        claim = rows["claims"][str(raw["claim_id"])]
        assert claim["chunk_id"] == raw["chunk_id"]
        spans = [(s["start"], s["end"]) for s in claim["spans"]]  # type: ignore[attr-defined]
        chunk = rows["chunks"][str(claim["chunk_id"])]
        # What a pronoun stands for may be in an earlier chunk; the clause itself is in this one.
        assert any(chunk["start"] <= start and end <= chunk["end"] for start, end in spans)  # type: ignore[operator]
        supported[key] = " ".join(read(raw["chunk_id"], *span) for span in spans)
        for part in ("head", "tail"):
            span = raw[f"{part}_span"]
            if isinstance(span, dict):
                assert read(raw["chunk_id"], span["start"], span["end"]) == raw[part]
    for triple in rows["triples"].values():
        assert triple["raw_triple_ids"]
        assert all(supported[raw] for raw in triple["raw_triple_ids"])  # type: ignore[attr-defined]
    for instance in rows["instances"].values():
        read(instance["chunk_id"], instance["start"], instance["end"])
        assert all(key in rows["triples"] for key in instance["triple_ids"])  # type: ignore[attr-defined]
        assert instance["triple_ids"] or instance["property_iri"] is None
    for proposal in rows["proposals"].values():
        assert proposal["triple_ids"]
        assert all(key in rows["triples"] for key in proposal["triple_ids"])  # type: ignore[attr-defined]
    derived = [t for row in rows["condensed"].values() for t in row["derived_from"]]  # type: ignore[attr-defined]
    assert sorted(derived) == sorted(rows["triples"]), "each triple condensed exactly once"
    for entity in rows["entities"].values():
        for mention_id in entity["mentions"]:  # type: ignore[attr-defined]
            mention = rows["mentions"][mention_id]
            assert read(mention["chunk_id"], mention["start"], mention["end"]) == mention["text"]
    for vector in tables["vectors"].select(["owner_table", "owner_id"]).to_pylist():
        assert vector["owner_id"] in rows[vector["owner_table"]]
    return {name: len(found) for name, found in rows.items()}


def test_every_fact_of_a_small_pyramid_leads_to_its_characters(tmp_path: Path) -> None:
    warehouse, snapshot = copy_shared_build(tmp_path / "w")

    counts = walk(read_snapshot(warehouse, snapshot))

    assert all(counts[kind] > 0 for kind in ("triples", "instances", "condensed", "entities"))


def test_the_walk_notices_a_fact_that_hangs_in_the_air(tmp_path: Path) -> None:
    warehouse, snapshot = copy_shared_build(tmp_path / "w")
    tables = read_snapshot(warehouse, snapshot)

    with pytest.raises((AssertionError, KeyError)):
        walk({**tables, "raw_triples": tables["raw_triples"].slice(1)})
    with pytest.raises((AssertionError, KeyError)):
        walk({**tables, "condensed": tables["condensed"].slice(1)})


@pytest.mark.slow
def test_every_fact_of_the_demo_leads_to_its_characters(tmp_path: Path) -> None:
    """A slice of the real corpus with the real models, enough of it for proposals."""
    with DEMO.open(encoding="utf-8") as lines:
        (tmp_path / "demo.jsonl").write_text("".join(islice(lines, 24)), "utf-8")
    settings: Settings = make_settings(complete={"min_support": 2, "region_share": 1.0})

    warehouse = Warehouse(tmp_path / "w")
    outcome = build_corpus(tmp_path / "demo.jsonl", warehouse, settings, workers=2)

    counts = walk(read_snapshot(warehouse, outcome.snapshot))
    wanted = ("triples", "instances", "condensed", "entities", "proposals")
    assert all(counts[kind] > 0 for kind in wanted), counts
