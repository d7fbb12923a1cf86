"""The snapshot's index: the same answers as whole tables give, and no damage goes unseen."""

import gc
import json
import shutil
import weakref
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from kpyramid.errors import InputError, IntegrityError, PyramidError
from kpyramid.query import Scope, Snapshot, open_snapshot
from kpyramid.query.analysis import link_text
from kpyramid.snapshot.clusters import rank_nearly, write_clusters
from kpyramid.snapshot.columns import join_rows, list_columns
from kpyramid.snapshot.graph import open_database
from kpyramid.snapshot.indexing import READS, open_vectors
from kpyramid.snapshot.mapped import MappedRows, settle, write_rows
from kpyramid.snapshot.search import OneThread, rank_exactly, rank_words, weigh_words
from kpyramid.snapshot.store import Store
from kpyramid.storage.contracts import decode_table
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.snapshots import READ_FORMATS
from kpyramid.storage.verification import check_bytes, check_tables
from tests.corpora import (
    build_corpus,
    copy_shared_build,
    hash_tree,
    make_settings,
    shared_corpus,
    write_corpus,
)

Matrix = np.ndarray


pytestmark = pytest.mark.usefixtures("quick_models")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    warehouse, snapshot = copy_shared_build(tmp_path_factory.mktemp("index") / "w")
    return warehouse.snapshots / snapshot


@pytest.fixture(scope="module")
def vectors() -> Matrix:
    """Vectors in loose groups, as wordings of one relation are."""
    chance = np.random.default_rng(7)
    groups = chance.standard_normal((60, 48))
    made = groups[chance.integers(0, 60, 6000)] + 0.8 * chance.standard_normal((6000, 48))
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), np.float32)


def test_the_index_finds_what_comparing_with_all_finds(tmp_path: Path, vectors: Matrix) -> None:
    import faiss

    plan = write_clusters(tmp_path / "x.faiss", vectors, 0.98, seed=0)
    index = faiss.read_index(str(tmp_path / "x.faiss"), faiss.IO_FLAG_MMAP)
    chance = np.random.default_rng(11)
    asked = vectors[chance.integers(0, 6000, 100)] + 0.05 * chance.standard_normal((100, 48))
    found = total = 0
    for question in np.asarray(asked, np.float32):
        exact = dict(rank_exactly(vectors, question, 10))
        near = dict(rank_nearly(index, plan.probes, vectors, question, 10))
        found += len(exact.keys() & near.keys())
        total += 10
        for row in exact.keys() & near.keys():
            assert near[row] == pytest.approx(exact[row], abs=1e-6)
    assert plan.recall_at_10 >= 0.98 and found / total >= 0.97
    assert 1 < plan.probes < plan.lists


def test_a_mask_is_respected_and_costs_no_recall(
    tmp_path: Path, vectors: Matrix, monkeypatch: pytest.MonkeyPatch
) -> None:
    import faiss

    monkeypatch.setattr("kpyramid.snapshot.clusters._FEW", 100)
    plan = write_clusters(tmp_path / "x.faiss", vectors, 0.98, seed=0)
    index = faiss.read_index(str(tmp_path / "x.faiss"), faiss.IO_FLAG_MMAP)
    for share in (0.9, 0.5, 0.02):
        mask = np.random.default_rng(3).random(6000) < share
        found = 0
        for question in vectors[:50]:
            exact = [row for row, _ in rank_exactly(vectors, question, 10, mask)]
            near = [row for row, _ in rank_nearly(index, plan.probes, vectors, question, 10, mask)]
            assert mask[near].all() and mask[exact].all()
            found += len(set(exact) & set(near))
        assert found / 500 >= 0.95


def test_threads_do_not_change_a_byte_of_the_index(tmp_path: Path, vectors: Matrix) -> None:
    import faiss

    for threads in (1, 2, 4):
        faiss.omp_set_num_threads(threads)
        with threadpool_limits(threads):
            write_clusters(tmp_path / f"{threads}.faiss", vectors, 0.9, seed=0)
    faiss.omp_set_num_threads(1)
    first, *others = (path.read_bytes() for path in sorted(tmp_path.iterdir()))
    assert all(other == first for other in others)


def test_words_rank_as_bm25s_ranks_them(built: Path) -> None:
    import bm25s
    import Stemmer

    part = Store(built).part("condensed")
    texts = [part.rows.value("text", row) for row in range(len(part))]
    stemmer = Stemmer.Stemmer("english")
    ranker = bm25s.BM25()
    ranker.index(bm25s.tokenize(texts, stemmer=stemmer, show_progress=False), show_progress=False)
    for text in ("Who founded Aster Pictures?", "born in Oslo", "a chemist of Bergen"):
        asked = bm25s.tokenize([text], stemmer=stemmer, show_progress=False)
        _, scores = ranker.retrieve(asked, k=len(texts), show_progress=False)
        expected = [score for score in scores[0].tolist() if score > 0]
        found = [score for _, score in rank_words(text, part, len(part), len(texts))]
        assert found == pytest.approx(expected, rel=1e-4) and found


class Postings:
    """The postings of some texts, in memory."""

    def __init__(self, texts: list[str]) -> None:
        self.stems, self.starts, self.rows, self.parts = weigh_words(texts)

    def find(self, stem: str) -> tuple[Matrix, Matrix] | None:
        if stem not in self.stems:
            return None
        at = self.stems.index(stem)
        part = slice(int(self.starts[at]), int(self.starts[at + 1]))
        return self.rows[part], self.parts[part]


def test_words_respect_a_mask_and_find_nothing_where_nothing_is_said() -> None:
    postings = Postings(["a red house", "a red car", "a green car"])
    assert rank_words("red cars", postings, 3, 5)[0][0] == 1
    mask = np.array([True, False, True])
    assert {row for row, _ in rank_words("red cars", postings, 3, 5, mask)} == {0, 2}
    assert rank_words("yellow", postings, 3, 5) == []
    assert rank_words("red", Postings([]), 0, 5) == []


def test_what_the_index_says_of_a_fact_is_what_the_tables_say(built: Path) -> None:
    snapshot = Snapshot(built)
    entities = {row["entity_id"]: row for row in snapshot.table("entities").to_pylist()}
    triples = {row["triple_id"]: row for row in snapshot.table("triples").to_pylist()}
    raws = {row["raw_triple_id"]: row for row in snapshot.table("raw_triples").to_pylist()}
    claims = {row["claim_id"]: row for row in snapshot.table("claims").to_pylist()}
    document_of = {
        row["chunk_id"]: row["document_id"] for row in snapshot.table("chunks").to_pylist()
    }
    rows = snapshot.table("condensed").to_pylist()
    assert rows
    for place, row in enumerate(rows):
        key = row["condensed_id"]
        own = [raws[r] for t in row["derived_from"] for r in triples[t]["raw_triple_ids"]]
        spans = {
            (document_of[raw["chunk_id"]], raw["chunk_id"], span["start"], span["end"])
            for raw in own
            for span in claims[raw["claim_id"]]["spans"]
        }
        found = snapshot.evidence(key)
        assert {(e.document_id, e.chunk_id, e.start, e.end) for e in found} == spans
        head = entities[row["head_id"]]
        fact = snapshot.read_fact(key)
        named = (row["head_id"], head["name"], head["type"])
        assert (fact.head_id, fact.head, fact.head_type) == named
        assert fact.confidence == max(triples[t]["confidence"] for t in row["derived_from"])
        assert fact.support == len({document_of[raw["chunk_id"]] for raw in own})
        assert fact.negated == any(raw["negated"] for raw in own)
        assert fact.modality == row["modality"]
        assert fact.modality != "fact" or not any(raw["modality"] for raw in own)
        listed = Store(snapshot.folder).rows("condensed").list_of("documents", place)
        documents = Store(snapshot.folder).rows("documents").keys
        assert {documents[int(at)] for at in listed} == {document for document, *_ in spans}
        assert (key in snapshot.facts_about([row["head_id"]])) is not fact.negated
    plain = [row for row in rows if not row["negated"]]
    for entity in entities:
        expected = [r["condensed_id"] for r in plain if entity in (r["head_id"], r["tail_id"])]
        assert snapshot.facts_about([entity]) == expected
        assert snapshot.names[entity] == entities[entity]["name"]
        assert snapshot.surface_forms([entity])[entity] == tuple(entities[entity]["surface_forms"])
    assert snapshot.facts_about(list(entities), most=2) == [r["condensed_id"] for r in rows[:2]]


def test_a_row_that_refers_to_none_is_an_error_and_not_joined_away(built: Path) -> None:
    tables = {name: Snapshot(built).table(name) for name in READS}
    place = {"chunk_id": "none-such", "start": 0, "end": 1}
    for table, column, value in (
        ("raw_triples", "claim_id", "none-such"),
        ("condensed", "relation_id", "none-such"),
        ("instances", "places", [place]),
    ):
        own = tables[table]
        field = own.schema.field(column)
        values = pa.array([value] * len(own), field.type)
        bad = own.set_column(own.schema.get_field_index(column), field, values)
        held = {**tables, table: bad}
        with (
            pytest.raises(IntegrityError, match=f"table {table}: {column} .*none-such"),
            join_rows(held) as database,
        ):
            list_columns(database, held)


def test_documents_texts_pass_by_duckdb_which_says_when_memory_ran_out(built: Path) -> None:
    tables = {name: Snapshot(built).table(name) for name in READS}
    documents = tables["documents"]
    with join_rows({**tables, "documents": documents.drop_columns(["text"])}) as database:
        texts = list_columns(database, tables)["documents"]["text"]
    assert texts.type == pa.large_string()
    assert texts.to_pylist() == documents["text"].to_pylist()
    with (
        pytest.raises(PyramidError, match=r"2GB.*full.*No table is damaged.*TMPDIR") as raised,
        open_database(),
    ):
        raise duckdb.OutOfMemoryException("full\nPossible solutions")
    assert not isinstance(raised.value, IntegrityError)


def test_a_dropped_snapshot_is_unmapped_at_once(built: Path) -> None:
    gc.disable()
    try:
        snapshot = Snapshot(built)
        document = next(iter(snapshot._view.keys("documents")))
        for one in (snapshot, snapshot.scoped(Scope(documents=frozenset({document})))):
            link_text("Who founded Aster Pictures?", one)
            one.find("thing")
            one.words("founded", 3, "condensed")
            assert len(one._view.part("condensed").matrix)
        held = [weakref.ref(rows) for rows in snapshot._store._rows.values()]
        del snapshot, one
        assert len(held) > 3 and not any(rows() for rows in held)
    finally:
        gc.enable()


FILES = ["chunks.arrow", "condensed.arrow", "entities.arrow", "names.arrow", "meta.json"]


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_index_file_is_named(built: Path, tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(built, tmp_path / built.name)
    path = folder / "index" / name
    data = path.read_bytes()
    half = len(data) // 2
    flipped = data[:half] + bytes([data[half] ^ 4]) + data[half + 1 :]
    for damaged in (data[:half], flipped, b"", None):
        path.unlink()
        if damaged is not None:
            path.write_bytes(damaged)
        snapshot = Snapshot(folder)
        with pytest.raises(IntegrityError, match=name):
            link_text("Who founded Aster Pictures?", snapshot)
            Store(snapshot.folder).part("condensed")
            snapshot.evidence("chunk-x")
            snapshot.names["entity-x"]
        assert any(f"index/{name}" in problem for problem in check_bytes(folder))
        path.touch()


def test_offsets_that_run_backwards_do_not_read_beyond_the_file(tmp_path: Path) -> None:
    write_rows(tmp_path / "x.arrow", {"key": pa.array(["aaaa", "bbbb", "cccc"])})
    data = (tmp_path / "x.arrow").read_bytes()
    offsets = np.array([0, 4, 8, 12], np.int32).tobytes()
    wrong = np.array([0, 4, 2**30, 12], np.int32).tobytes()
    (tmp_path / "x.arrow").write_bytes(data.replace(offsets, wrong))
    with pytest.raises(IntegrityError, match=r"x\.arrow"):
        MappedRows(tmp_path / "x.arrow").find("bbbb")


def test_removed_snapshot_is_error_or_answers_from_mapped(built: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(built, tmp_path / built.name)
    before = link_text("Who founded Aster Pictures?", Snapshot(built))
    fresh, used = Snapshot(folder), Snapshot(folder)
    assert link_text("Who founded Aster Pictures?", used) == before
    shutil.rmtree(folder)
    assert link_text("Who founded Aster Pictures?", used) == before
    with pytest.raises(InputError, match="no longer"):
        link_text("Who founded Aster Pictures?", fresh)


def test_what_is_no_snapshot_or_of_an_earlier_format_says_so(built: Path, tmp_path: Path) -> None:
    manifest = json.loads((built / "manifest.json").read_text("utf-8"))
    for version in range(1, READ_FORMATS[0]):
        (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "format": version}))
        with pytest.raises(InputError, match=r"another version.*`kpyramid build CORPUS`"):
            Snapshot(tmp_path)
    (tmp_path / "empty").mkdir()
    for name in ("gone", "empty"):
        with pytest.raises(InputError, match=rf"{name} is no snapshot.*manifest\.json"):
            open_snapshot(tmp_path / name)


def test_a_damaged_index_is_made_anew_and_never_copied(tmp_path: Path) -> None:
    warehouse, snapshot = copy_shared_build(tmp_path / "w")
    whole = hash_tree(warehouse.snapshots / snapshot)
    path = warehouse.snapshots / snapshot / "index" / "names.arrow"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    moved = Warehouse(tmp_path / "moved")
    shutil.copytree(warehouse.cache, moved.cache)
    shutil.copytree(warehouse.snapshots / snapshot, moved.snapshots / "0000000000000000")
    assert build_corpus(shared_corpus(), moved).snapshot == snapshot
    assert hash_tree(moved.snapshots / snapshot) == whole


def test_one_thread_lasts_until_the_last_caller_has_left() -> None:
    def count() -> list[int]:
        return [library["num_threads"] for library in threadpool_info()]

    keeps = OneThread()
    with threadpool_limits(2):
        before = count()
        with keeps:
            with keeps:
                pass
            assert set(count()) == {1}
        assert count() == before


def test_without_faiss_all_vectors_are_compared_and_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse() -> None:
        raise ModuleNotFoundError("No module named 'faiss'", name="faiss")

    warehouse, _ = copy_shared_build(tmp_path / "w")
    settings = make_settings(index={"exact_up_to": 1})
    folder = warehouse.snapshots / build_corpus(shared_corpus(), warehouse, settings).snapshot
    monkeypatch.setattr("kpyramid.snapshot.search.load_faiss", refuse)
    part = Store(folder).part("condensed")
    for vector in part.matrix[np.arange(3)]:
        assert part.nearest(vector, 3) == rank_exactly(part.matrix, vector, 3)
    (warning,) = (record for record in caplog.records if record.levelname == "WARNING")
    assert "kpyramid[large]" in warning.getMessage()


@pytest.mark.slow
def test_a_changed_document_leaves_the_other_parts_and_their_files(tmp_path: Path) -> None:
    texts = {
        f"{n}.txt": f"Ada{n} Holm{n} was born in Oslo{n} in 1900. She wrote Book{n}."
        for n in range(40)
    }
    corpus = write_corpus(tmp_path / "corpus", texts)
    warehouse = Warehouse(tmp_path / "w")
    before = warehouse.snapshots / build_corpus(corpus, warehouse).snapshot
    (corpus / "7.txt").write_text("Ida Vell was born in Bergen in 1901.")
    after = warehouse.snapshots / build_corpus(corpus, warehouse).snapshot
    for place in ("index/vectors", "tables/vectors"):
        names = {path.name for path in (before / place).iterdir()}
        assert names == {path.name for path in (after / place).iterdir()} and len(names) > 2
        same = [name for name in names if (before / place / name).samefile(after / place / name)]
        assert len(names) - 2 <= len(same) < len(names)
    assert len(Snapshot(after).table("vectors")) > len(Snapshot(after).table("chunks"))
    assert check_bytes(after) == check_tables(after) == []


@pytest.mark.slow
def test_vectors_of_several_files_are_sorted_and_those_of_withdrawn_rows_left_out(
    tmp_path: Path,
) -> None:
    warehouse, snapshot = copy_shared_build(tmp_path / "w")
    paths = [*(warehouse.snapshots / snapshot / "tables/vectors").iterdir()]
    held = pa.concat_tables([decode_table(path) for path in paths]).sort_by(
        [("owner_table", "ascending"), ("owner_id", "ascending")]
    )
    for gone in (None, held["owner_id"].combine_chunks()[1:9:3]):
        left = held if gone is None else held.filter(pc.invert(pc.is_in(held["owner_id"], gone)))
        for order in (paths, paths[::-1]):
            _, whole, matrix = open_vectors(order, tmp_path, gone)
            assert whole.equals(left.drop_columns("vector"))
            assert matrix.tolist() == left["vector"].to_pylist()
    with pytest.raises(IntegrityError, match="more than one row"):
        open_vectors([*paths, paths[0]], tmp_path)


def test_an_empty_corpus_has_an_empty_index(tmp_path: Path) -> None:
    corpus, warehouse = write_corpus(tmp_path / "corpus", {"x.txt": "Hm."}), Warehouse(tmp_path)
    snapshot = Snapshot(warehouse.snapshots / build_corpus(corpus, warehouse).snapshot)
    assert len(Store(snapshot.folder).part("condensed")) == 0
    assert snapshot.neighbours("anything", 3) == [] == snapshot.words("thing", 3, "condensed")
    assert link_text("Who founded Aster Pictures?", snapshot).entities == ()


def test_settled_values_are_the_values_and_their_bytes_are_theirs_alone() -> None:
    span = pa.struct([("start", pa.int64()), ("end", pa.int64())])
    whole = [
        pa.array(["a", "noise", "é"]),
        pa.array([{"start": 1, "end": 2}, {"start": 8, "end": 9}, {"start": 3, "end": 4}], span),
        pa.array([1.5, 7.7, 2.5]),
        pa.array([True, True, False]),
    ]
    for values in whole:
        masked = pc.if_else(pa.array([True, False, True]), values, pa.scalar(None, values.type))
        fresh = pa.array(masked.to_pylist(), values.type)
        one, two = settle(masked), settle(fresh)
        assert one.to_pylist() == masked.to_pylist()
        one.validate(full=True)
        pieces = [[b and b.to_pybytes() for b in array.buffers()] for array in (one, two)]
        assert pieces[0] == pieces[1]
        assert settle(values[1:]).to_pylist() == values[1:].to_pylist()


def test_file_cut_short_under_reader_is_error_and_not_end(built: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(built, tmp_path / built.name)
    snapshot = Snapshot(folder)
    link_text("Who founded Aster Pictures?", snapshot)
    snapshot.words("founded", 3, "condensed")
    assert len(snapshot._store.part("condensed").matrix)
    for path in (folder / "index").rglob("*.arrow"):
        path.write_bytes(b"")
    for act in (
        lambda text: snapshot._store.part("condensed").matrix,
        lambda text: link_text(text, snapshot),
        lambda text: snapshot.words(text, 3, "condensed"),
    ):
        with pytest.raises(IntegrityError, match=r"written over.*build again"):
            act("Who heads Aster Pictures?")
