"""A corpus in a bucket: the same as in a folder; and addresses that are none."""

import json
from pathlib import Path

import pytest

from kpyramid.errors import EndpointError, InputError, SettingsError
from kpyramid.pipeline.wiring import open_corpus
from kpyramid.storage.bucket import BucketStore
from kpyramid.storage.copies import find_corpus
from kpyramid.storage.layout import Warehouse, open_warehouse
from kpyramid.storage.runs import open_run
from kpyramid.storage.store import Blob
from tests.commands import run
from tests.rows import read_bodies
from tests.s3 import BUCKET, S3Server, use_server
from tests.tiny_pyramid import open_tiny

PLACE = f"s3://{BUCKET}"
FILES = read_bodies("bucket_corpus.files")


pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def server(s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_server(s3_server, monkeypatch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))


def put(prefix: str, files: dict[str, str]) -> str:
    store = BucketStore(f"{PLACE}/{prefix}")
    for name, text in files.items():
        store.replace(name, text.encode())
    return store.place


def read(place: str, warehouse: Warehouse) -> tuple[str, dict[str, bytes]]:
    with open_corpus(place, warehouse) as corpus:
        return corpus.fingerprint, {file.path: file.data for file in corpus.read_files()}


def test_a_bucket_is_the_corpus_that_a_folder_with_its_files_is(tmp_path: Path) -> None:
    for name, text in FILES.items():
        path = tmp_path / "texts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    place = put("day", FILES)
    put("day-after", {"b.txt": "Another day."})
    for location in (tmp_path / "w", f"{PLACE}/warehouse"):
        warehouse = open_warehouse(location)
        known = read(str(tmp_path / "texts"), warehouse)
        for address in (place, f"{place}/"):
            assert read(address, warehouse) == known
        assert not list(warehouse.staging.iterdir()), "no copy is left"
    assert list(known[1]) == ["a.txt", "deeper/rows.jsonl", "deeper/ä b+c%20.md"]
    one = read(f"{place}/deeper/rows.jsonl", warehouse)
    assert one == read(str(tmp_path / "texts" / "deeper" / "rows.jsonl"), warehouse)


def test_the_warehouse_around_or_in_a_corpus_is_no_part_of_it() -> None:
    put("shared/texts", {"a.txt": "A text."})
    put("shared/kept", {"refs/main/1.json": "{}", "cache/b.txt": "Not of the corpus."})
    warehouse = open_warehouse(f"{PLACE}/shared/kept")
    assert list(read(f"{PLACE}/shared", warehouse)[1]) == ["texts/a.txt"]
    for place in ("shared/kept", "shared/kept/cache"):
        with pytest.raises(InputError, match="is inside the warehouse"):
            read(f"{PLACE}/{place}", warehouse)


def test_an_address_of_nothing_is_named(tmp_path: Path) -> None:
    warehouse = open_warehouse(tmp_path)
    put("some", {"a.txt": "A text.", "b/.hidden": "none"})
    for place in ("none", "som", "some/b", "some/a.tx"):
        with pytest.raises(InputError, match=rf"corpus {PLACE}/{place} does not exist: put it"):
            read(f"{PLACE}/{place}", warehouse)
    with pytest.raises(EndpointError, match=r"cannot list.*Check that the bucket exists"):
        read("s3://no-such-bucket/a", warehouse)
    with pytest.raises(SettingsError, match="a credential"):
        read("s3://key:secret@replies/a", warehouse)


def test_a_name_that_no_file_can_have_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """S3 has such names; SeaweedFS, which keeps files, refuses them."""
    given = [Blob(f"{'n' * 256}.txt", 1, 0.0)]
    monkeypatch.setattr(BucketStore, "list", lambda _: given)
    with pytest.raises(InputError, match=r"nnn.* cannot be a file's name"):
        find_corpus(f"{PLACE}/long")
    given[:] = [Blob("a", 0, 0.0), Blob("a/b.txt", 1, 0.0)]
    assert find_corpus(f"{PLACE}/marked")[1] == given[1:], "an empty object marks a folder"
    given[0] = Blob("a", 1, 0.0)
    with pytest.raises(InputError, match=r"'a' cannot be a file's name.*a folder's too"):
        find_corpus(f"{PLACE}/both")


def test_a_corpus_that_changes_in_copying_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = open_warehouse(tmp_path)
    place = put("changing", {"a.txt": "One.", "b.txt": "Two."})
    download = BucketStore.download

    def change(self: BucketStore, blobs: list[Blob], name: str, folder: Path) -> None:
        download(self, blobs, name, folder)
        put("changing", {"c.txt": "Three."})

    with monkeypatch.context() as patched:
        patched.setattr(BucketStore, "download", change)
        with pytest.raises(EndpointError, match="changed while it was read; run the command again"):
            read(place, warehouse)
    assert list(read(place, warehouse)[1]) == ["a.txt", "b.txt", "c.txt"]

    def remove(self: BucketStore, blobs: list[Blob], name: str, folder: Path) -> None:
        self.delete("a.txt")
        download(self, blobs, name, folder)

    monkeypatch.setattr(BucketStore, "download", remove)
    with pytest.raises(EndpointError, match="changed while it was read"):
        read(place, warehouse)


def test_commands_take_an_address(tmp_path: Path) -> None:
    place = put("commands", {"a.txt": "Marie Curie was born in Warsaw in 1867."})
    warehouse = ["--warehouse", str(tmp_path), "--json"]
    plan = run("plan", place, *warehouse)
    assert json.loads(plan.stdout)["stages"][0]["rows"] == 1, plan.output
    command = ["stage", "ingest", "--run", "one", "--corpus", place, *warehouse]
    done = run(*command)
    assert json.loads(done.stdout)["rows"] == {"documents": 1}
    assert open_run(open_warehouse(tmp_path), "one").corpus == place
    assert "does not exist" in json.loads(run("build", f"{PLACE}/none", *warehouse).stdout)["error"]


def test_pages_of_evaluation_go_to_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    row = {"id": "born", "question": "Where was Ada Lovelace born?", "answer": "London"}
    (tmp_path / "q.jsonl").write_text(json.dumps(row) + "\n")

    def evaluate(out: str) -> int:
        words = ["evaluate", "q.jsonl", "--ref", str(open_tiny().folder), "--strategy", "naive"]
        return run(*words, "--out", out, "--quiet").exit_code

    for _ in range(2):  # the second time it replaces
        assert evaluate(f"{PLACE}/pages/one") == 0
        page = BucketStore(f"{PLACE}/pages").read("one/evaluation.html")
        assert page is not None and b"naive" in page
    names = {blob.name for blob in BucketStore(f"{PLACE}/pages").list()}
    assert {"one/answers.parquet", "one/evaluation.html"} <= names
    assert evaluate("s3://missing/pages/one") == 8
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("s3")] == []
