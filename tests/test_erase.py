"""An erased document is nowhere in the warehouse, never comes back, and the rest stays."""

import gzip
import io
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kpyramid import hold_snapshot
from kpyramid.llm.cache import ReplyCache, ReplyEntry
from kpyramid.pipeline import erasure
from kpyramid.pipeline.airflow import night
from kpyramid.pipeline.airflow.corpora import list_corpora
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.storage.archive import keep_note, list_exports
from kpyramid.storage.copies import locate_snapshot
from kpyramid.storage.layout import Warehouse, open_warehouse
from kpyramid.storage.publication import promote, tag
from kpyramid.storage.refs import read_head, resolve_ref
from kpyramid.storage.retention import Policy, collect
from kpyramid.storage.store import FolderStore
from tests.commands import fails, run, run_json, show
from tests.corpora import (
    build_corpus,
    copy_shared_build,
    hash_tree,
    share,
    use_quick_models,
    write_corpus,
)
from tests.rows import read_bodies
from tests.s3 import BUCKET, S3Server, use_server

TEXTS = read_bodies("erase.texts")
PLANTED = b"Quillfeather"


def read_all(name: str, data: bytes) -> Iterator[bytes]:
    """The bytes of a file, and what is packed in it: pages of Parquet are compressed."""
    yield data
    if name.endswith(".parquet"):
        yield str(pq.read_table(io.BytesIO(data)).to_pylist()).encode()
    if name.endswith(".gz"):
        yield gzip.decompress(data)


def find_planted(warehouse: Warehouse) -> list[str]:
    """Where the document's words are: in the warehouse, and in what this machine copied of it."""
    stores = [warehouse.store, *([FolderStore(warehouse.root)] if warehouse.bucket else [])]
    names = [(store, blob.name) for store in stores for blob in store.list()]
    planted = PLANTED.lower()
    return [
        name
        for store, name in names
        if planted in name.encode().lower()
        or any(planted in data.lower() for data in read_all(name, store.read(name) or b""))
    ]


def run_erase(warehouse: Warehouse, document: str, *options: str) -> Any:
    return run("erase", "--document", document, "--warehouse", warehouse.locate(), *options)


def erase(warehouse: Warehouse, document: str) -> dict[str, Any]:
    """What is said of an erasure."""
    return run_json("erase", "--document", document, "--warehouse", warehouse.locate(), "--yes")


def find_id(warehouse: Warehouse, snapshot: str, source: str = "zorn.txt") -> str:
    rows = Snapshot(locate_snapshot(warehouse, snapshot)).table("documents").to_pylist()
    return next(str(row["document_id"]) for row in rows if row["source"] == source)


@pytest.fixture
def home(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "w")


def _build_twice(folder: Path, warehouse: Warehouse | None = None) -> None:
    with pytest.MonkeyPatch.context() as patch:
        use_quick_models(patch)
        corpus, warehouse = (
            write_corpus(folder / "corpus", TEXTS),
            warehouse or Warehouse(folder / "w"),
        )
        build_corpus(corpus, warehouse, order="2026-01-01")
        (corpus / "path.txt").write_text("Leon Batt praised Mary Stone.")
        build_corpus(corpus, warehouse, order="2026-01-02")


@pytest.fixture
def place(
    home: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, Warehouse, str]:
    """A corpus, a warehouse in which it was built twice, and the document's id."""
    use_quick_models(monkeypatch)
    if home.bucket:
        _build_twice(tmp_path, home)
    else:
        built = share("erase", _build_twice)
        shutil.copytree(built, tmp_path, dirs_exist_ok=True)
        for record in home.runs.glob("*/run.json"):  # says where the corpus is
            record.write_text(record.read_text().replace(f"{built}.part", str(tmp_path)))
    return tmp_path / "corpus", home, find_id(home, resolve_ref(home, "main@1"))


def erase_for_good(place: tuple[Path, Warehouse, str]) -> None:
    """The document leaves a warehouse, and a later build of a corpus that has it leaves it out."""
    corpus, warehouse, document = place
    head = read_head(warehouse, "main")
    assert head is not None
    tag(warehouse, "release", head.snapshot, at="2026-01-02T00:00:00")
    promote(warehouse, "live", head.snapshot, at="2026-01-02T00:00:00")
    copied = shutil.copytree(locate_snapshot(warehouse, head.snapshot), corpus.parent / "handed")
    (corpus / "zorn.txt").rename(corpus / "kept.txt")
    before = find_planted(warehouse)
    kinds = {path.split("/")[0] for path in before}
    assert kinds >= {"snapshots", "cache"}

    planned = run_erase(warehouse, document)
    assert (planned.exit_code, find_planted(warehouse)) == (0, before), planned.output
    assert "Nothing was done; --yes does it and builds these refs again" in planned.stdout
    assert all(name in planned.stdout for name in ("Snapshots", "Refs", "main", "Not reached"))

    said = erase(warehouse, document)
    assert find_planted(warehouse) == []
    refused = "has a document that was erased"
    fails(3, refused, "import", copied, "--warehouse", warehouse.locate())
    assert find_planted(warehouse) == []
    after = {ref: read_head(warehouse, ref) for ref in ("main", "live", "release")}
    assert after["release"] is None
    assert said["tags"] == ["release"]
    assert {h.snapshot for h in after.values() if h} == set(said["refs"].values())
    assert after["main"] is not None and after["main"].order == "2026-01-02"
    rows = Snapshot(locate_snapshot(warehouse, after["main"].snapshot))
    assert {row["source"] for row in rows.table("documents").to_pylist()} == {
        *("ada.txt", "mill.txt", "path.txt")
    }
    refused = [row for row in rows.table("rejects").to_pylist() if row["reason"] == "erased"]
    assert [row["row_key"] for row in refused] != []
    show("verify", "--deep", "--warehouse", warehouse.locate())

    (corpus / "zorn.txt").write_text("Zorbina Quillfeather is back, with other words.")
    for blob in [*warehouse.store.list("cache/results")]:
        warehouse.store.delete(blob.name)
    shutil.rmtree(warehouse.cache / "results")
    again = build_corpus(corpus, warehouse, order="2026-01-03")
    assert find_planted(warehouse) == []
    assert again.marks[0].rejects == {"erased": 2}
    assert [mark.recomputed for mark in again.marks[1:3]] == [0, 0], "of the rest the caches stay"


@pytest.mark.slow
def test_an_erased_document_is_nowhere_and_stays_away(place: tuple[Path, Warehouse, str]) -> None:
    erase_for_good(place)


@pytest.mark.slow
class TestInABucket:
    """The same on a real server, with copies on two machines."""

    @pytest.fixture
    def home(
        self, s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> Warehouse:
        use_server(s3_server, monkeypatch)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "machine"))
        return open_warehouse(f"s3://{BUCKET}/erase-{os.getpid()}-{tmp_path.name}")

    def test_an_erased_document_is_nowhere_and_stays_away(
        self, place: tuple[Path, Warehouse, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        corpus, warehouse, _ = place
        other = shutil.copytree(tmp_path / "machine", tmp_path / "other")
        sweep = Policy(1, timedelta(0), datetime.now(UTC), lambda runs: None)
        collect(warehouse, sweep)  # the first snapshot is in the trash
        erase_for_good(place)

        monkeypatch.setenv("XDG_CACHE_HOME", str(other))
        (corpus / "new.txt").write_text("Mona Rask founded Rask Mills in 1911.")
        build_corpus(corpus, open_warehouse(warehouse.locate()), order="2026-01-04")
        assert find_planted(warehouse) == [], "another machine's rows do not come back"


@pytest.mark.slow
def test_what_only_old_snapshot_has_goes_without_build(place: tuple[Path, Warehouse, str]) -> None:
    corpus, warehouse, document = place
    (corpus / "zorn.txt").unlink()
    head = build_corpus(corpus, warehouse, order="2026-01-03", allow_shrink=True).snapshot

    assert run_erase(warehouse, document, "--yes").exit_code == 0
    assert find_planted(warehouse) == []
    assert [path.name for path in warehouse.snapshots.iterdir()] == [head]


@pytest.mark.slow
def test_an_erasure_that_died_goes_on(
    place: tuple[Path, Warehouse, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, warehouse, document = place
    for step in ("_build_successors", "_list_requests", "_drop_replies"):
        with monkeypatch.context() as patch:
            patch.setattr(erasure, step, lambda *_: (_ for _ in ()).throw(OSError("killed")))
            assert run_erase(warehouse, document, "--yes").exit_code == 8

    assert run_erase(warehouse, document, "--yes").exit_code == 0
    assert find_planted(warehouse) == []
    assert not (warehouse.cache / "rows.former").exists()


@pytest.mark.slow
def test_replies_that_only_the_document_needed_go(place: tuple[Path, Warehouse, str]) -> None:
    corpus, warehouse, document = place
    cache = ReplyCache(FolderStore(warehouse.cache / "llm"))
    keys = {name: name[0] * 64 for name in ("a", "b", "c")}
    for key in keys.values():
        cache.keep_entry(ReplyEntry(key, "task", 1, "m", {"text": f"{PLANTED.decode()} {key}"}))
    open_corpus = write_corpus(corpus.parent / "other", {"o.txt": "Ann Lee lives in Oslo."})
    other = build_corpus(open_corpus, warehouse, ref="other")
    named = {path.parent for path in warehouse.cache.glob("results/ingest/*/result.json")}
    clean = warehouse.cache / "results" / "ingest" / other.marks[0].key[:20]
    (clean / "requests.json").write_text(json.dumps([keys["a"]]))
    (named - {clean}).pop().joinpath("requests.json").write_text(json.dumps([keys["b"]]))

    assert erase(warehouse, document)["replies"] == 2
    assert [key for key, _ in cache.list_replies()] == [keys["a"]]
    assert read_head(warehouse, "other") is not None


@pytest.mark.slow
def test_replies_in_a_shared_cache_are_found_by_the_records_of_runs(
    place: tuple[Path, Warehouse, str], tmp_path: Path
) -> None:
    _, warehouse, document = place
    for path in warehouse.runs.glob("*/run.json"):
        record = json.loads(path.read_bytes())
        record["settings"]["llm"]["cache"] = str(tmp_path / "shared")
        path.write_text(json.dumps(record))
    cache = ReplyCache(FolderStore(tmp_path / "shared"))
    for key in ("b" * 64, "c" * 64):
        cache.keep_entry(ReplyEntry(key, "task", 1, "m", {"text": key}))
    result = next(warehouse.cache.glob("results/ingest/*/result.json")).parent
    (result / "requests.json").write_text(json.dumps(["b" * 64]))

    said = erase(warehouse, document)
    assert (said["replies"], said["replies_of_unknown_documents"]) == (1, 1)
    assert said["caches"] == [str(tmp_path / "shared")]
    assert [key for key, _ in cache.list_replies()] == ["c" * 64]


@pytest.mark.slow
def test_exports_that_have_the_document_are_named_and_airflows_own_go(
    place: tuple[Path, Warehouse, str], tmp_path: Path
) -> None:
    _, warehouse, document = place
    (tmp_path / "news.toml").write_text(
        'source = "corpus"\nref = "main"\nexports = [{to = "served"}]\n'
    )
    (corpus,) = list_corpora(tmp_path)
    served = night.export(corpus, 0, warehouse.locate())["path"]
    handed = tmp_path / "handed.tar.zst"
    words = ["export", "main@1", str(handed), "--to", "tar", "--warehouse", warehouse.locate()]
    show(*words)
    (noted, _) = sorted(list_exports(warehouse), key=lambda one: one.place != served)
    missing = replace(noted, place=f"{served}-2", is_whole=False, fault="no right to write there")
    keep_note(warehouse, missing)  # given up: nothing of it is anywhere

    planned = run_erase(warehouse, document)
    said = erase(warehouse, document)
    assert {one["place"] for one in said["exports"]} == {served, str(handed)}
    for text in (" ".join(planned.stdout.split()), " ".join(said["not_reached"])):
        assert f"{served}, an export of snapshot" in text
        assert "; the next run of export_pyramid_news removes it" in text
        assert f"{handed}, an export of snapshot" in text
    clean = night.export(corpus, 0, warehouse.locate())
    assert sorted(clean["removed"]) == [served, missing.place]
    assert {path.name for path in (tmp_path / "served").iterdir()} == {
        *("newest.json", said["refs"]["main"])
    }
    later = json.loads(run_erase(warehouse, document, "--json").stdout)
    assert [one["place"] for one in later["exports"]] == [str(handed)], "that one may still be"


def test_a_reader_or_an_unknown_id_stops_it(tmp_path: Path) -> None:
    warehouse, snapshot = copy_shared_build(tmp_path / "w")
    document = find_id(warehouse, snapshot, "zorblax.txt")
    before = hash_tree(warehouse.snapshots)

    with hold_snapshot("main", warehouse.root):
        held = run_erase(warehouse, document, "--yes")
    unknown = run_erase(warehouse, "doc-0000", "--yes")

    assert (held.exit_code, unknown.exit_code) == (7, 3)
    assert "erase it again" in held.stderr
    assert hash_tree(warehouse.snapshots) == before


@pytest.mark.slow
def test_a_build_that_began_before_publishes_nothing(
    place: tuple[Path, Warehouse, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, warehouse, _ = place
    words = ["stage", "ingest", "--run", "r", "--corpus", str(corpus)]
    rest = ["chunk", "extract", "resolve", "embed", "induce", "complete", "condense", "publish"]
    home = ["--warehouse", str(warehouse.root)]
    (corpus / "more.txt").write_text("Zorbina Quillfeather came to Lund.")
    show(*words, *home)
    for name in rest[:-1]:
        show("stage", name, "--run", "r", *home)
    made = pq.read_table(next(warehouse.cache.glob("results/ingest/*/documents.parquet")))
    row = next(r for r in made.to_pylist() if r["source"] == "zorn.txt")
    erasure.keep_tombstone(warehouse, row["document_id"], row["source"], row["sha256"])

    fails(7, "erased since this run", "stage", "publish", "--run", "r", *home)
