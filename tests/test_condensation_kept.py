"""The gate on information kept sees what a condensed graph lost, and the way back is open."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from kpyramid.condensation import merging
from kpyramid.condensation.detail import list_lost
from kpyramid.condensation.merging import guard_comparer
from kpyramid.errors import GateError
from kpyramid.graph.synonyms.comparison import Comparer, Verdict
from kpyramid.pipeline.stages import condense
from kpyramid.pipeline.stages.condense import read_derivations, read_graph
from kpyramid.pipeline.stages.tables import build_table
from kpyramid.snapshot.snapshot import Snapshot, open_snapshot
from kpyramid.storage.layout import Warehouse
from tests.corpora import HashEmbedder, build_corpus, make_settings, use_quick_models, write_corpus
from tests.planted import MemoEmbedder, Statement, condense_statements
from tests.rows import read_bodies, read_rows

TOLD: list[Statement] = read_rows("condensation_kept.told")
Rows = list[dict[str, object]]
TEXTS = read_bodies("condensation_kept.texts")


def find_lost(change: Callable[[Rows], object]) -> list[str]:
    """What is lost, as the gate words it, after a change to the condensed rows."""
    done = condense_statements(TOLD)
    rows = done.rows
    change(rows)
    tables: Mapping[str, pa.Table] = done.tables
    condensed = build_table("condensed", rows)
    said, standing = (
        read_graph(tables["entities"], tables["relations"], table)
        for table in (tables["triples"], condensed)
    )
    stands, how = read_derivations(tables["triples"], condensed)
    compare = guard_comparer(Comparer(MemoEmbedder()))
    trusted = [why == "llm" for why in how]
    return [reason for _, reason in list_lost(said, standing, stands, trusted, compare)]


def find_row(rows: Rows, *hows: str) -> dict[str, object]:
    (row,) = [row for row in rows if sorted(row["how"]) == sorted(hows)]  # type: ignore[call-overload]
    return row


def test_what_condensation_makes_is_kept() -> None:
    def count(rows: Rows) -> None:
        assert len(rows) == 4 and len(find_row(rows, "kept")["derived_from"]) == 1  # type: ignore[arg-type]

    assert find_lost(count) == []


def test_a_triple_that_stands_nowhere_is_lost() -> None:
    assert find_lost(lambda rows: rows.remove(find_row(rows, "kept"))) == [
        "it stands in no condensed fact"
    ]


def test_a_triple_that_stands_twice_is_lost() -> None:
    def repeat(rows: Rows) -> None:
        alone, pair = find_row(rows, "kept"), find_row(rows, "kept", "turned")
        pair["derived_from"] = [*pair["derived_from"], *alone["derived_from"]]  # type: ignore[misc]
        pair["how"] = [*pair["how"], "equivalent"]  # type: ignore[misc]

    assert find_lost(repeat) == ["it stands in no condensed fact"]


def test_a_fact_about_other_things_does_not_keep_a_triple() -> None:
    def swap(rows: Rows) -> None:
        alone, pair = find_row(rows, "kept"), find_row(rows, "kept", "turned")
        pair["derived_from"] = [*pair["derived_from"], *alone["derived_from"]]  # type: ignore[misc]
        pair["how"] = [*pair["how"], "llm"]  # type: ignore[misc]
        rows.remove(alone)

    assert find_lost(swap) == ["it is about other things"]


def test_broader_words_or_another_year_do_not_keep_a_triple() -> None:
    def widen(rows: Rows) -> None:
        for row in rows:
            if row["literal"]:
                row["literal"] = "1950"

    assert find_lost(widen) == ["its value is another"]


def test_a_models_word_is_taken_for_the_same_things() -> None:
    def trust(rows: Rows) -> None:
        visited = find_row(rows, "kept")["relation_id"]
        pair = find_row(rows, "kept", "turned")
        pair["relation_id"], pair["how"] = visited, ["llm", "llm"]

    assert find_lost(trust) == []


@pytest.mark.slow
def test_a_loss_keeps_the_snapshot_from_head_and_says_where_to_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_quick_models(monkeypatch)
    warehouse, corpus = Warehouse(tmp_path / "w"), write_corpus(tmp_path / "c", TEXTS)
    with monkeypatch.context() as patch:
        doubt = Verdict("different", False, "doubted")
        patch.setattr(merging, "guard_comparer", lambda comparer: lambda *_: doubt)
        assert condense.guard_comparer is guard_comparer  # the gate alone doubts
        with pytest.raises(GateError, match="0% are allowed") as refused:
            build_corpus(corpus, warehouse, make_settings())
        assert "derivations" in str(refused.value) and "doubted" in str(refused.value)
        lenient = make_settings(publish={"min_kept_share": 0.5})
        build_corpus(corpus, warehouse, lenient)
        with pytest.raises(GateError, match="0% are allowed"):
            build_corpus(corpus, warehouse, make_settings())
    build_corpus(corpus, warehouse, make_settings())


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        use_quick_models(patch)
        build_corpus(write_corpus(folder / "c", TEXTS), Warehouse(folder / "w"))
    opened = open_snapshot("main", folder / "w")
    opened.__dict__["embedder"] = HashEmbedder("words", Path(), Path())
    return opened
