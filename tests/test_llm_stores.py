"""Stores keep blobs: one behaviour on a folder and on a real S3 server, and a bucket's faults."""

import multiprocessing
import os
import signal
import sys
import time
from itertools import count
from pathlib import Path

import pytest

from kpyramid.errors import EndpointError, SettingsError
from kpyramid.storage.bucket import BucketStore, open_blobs
from kpyramid.storage.store import BlobStore, FolderStore
from tests.rows import read_rows
from tests.s3 import BUCKET, SECRET, S3Server, serve_faults, use_server

_NUMBERS = count()


def find_place(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """Leads clients to a server; returns a fresh place in its bucket."""
    use_server(s3_server, monkeypatch)
    return f"s3://{BUCKET}/place-{next(_NUMBERS)}/llm"


@pytest.fixture(params=["folder", pytest.param("bucket", marks=pytest.mark.slow)])
def location(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    if request.param == "folder":
        return str(tmp_path / "not" / "there" / "yet")
    return find_place(request.getfixturevalue("s3_server"), monkeypatch)


@pytest.fixture
def store(location: str) -> BlobStore:
    return open_blobs(location)


def list_names(store: BlobStore, prefix: str = "") -> list[str]:
    return [blob.name for blob in store.list(prefix)]


def test_what_is_put_is_read_back(store: BlobStore) -> None:
    data = bytes(range(256)) * 100
    assert store.put_once("replies/0f/0f1.json", data) == data
    assert store.read("replies/0f/0f1.json") == data


def test_what_is_not_there_is_none_and_can_be_deleted(store: BlobStore) -> None:
    assert store.read("replies/0f/0f1.json") is None
    assert store.read("replies") is None or isinstance(store, FolderStore)
    store.delete("replies/0f/0f1.json")
    assert list_names(store) == []
    assert list_names(store, "replies") == []


def test_first_writer_wins_and_the_second_gets_its_bytes(store: BlobStore) -> None:
    assert store.put_once("a/b", b"first") == b"first"
    assert store.put_once("a/b", b"second") == b"first"
    assert store.read("a/b") == b"first"


def test_replaced_blob_has_the_new_bytes(store: BlobStore) -> None:
    store.replace("a/b", b"one")
    store.replace("a/b", b"two, longer")
    assert store.read("a/b") == b"two, longer"
    assert store.put_once("a/b", b"three") == b"two, longer"


def test_list_is_sorted_by_whole_name_and_kept_to_a_folder(store: BlobStore) -> None:
    names = ["a-b/x", "a/z", "a/b/c", "a.json", "ab/x", "failed/00/0.json"]
    for number, name in enumerate(names):
        store.put_once(name, b"x" * number)
    assert list_names(store) == sorted(names)
    assert list_names(store, "a") == ["a/b/c", "a/z"]
    assert {blob.name: blob.size for blob in store.list()} == {n: i for i, n in enumerate(names)}


def put_at_once(location: str, gate: str, out: str, number: int) -> None:
    """One of several processes that write the same names: notes what it was told had won."""
    store = open_blobs(location)
    Path(f"{gate}.{number}").touch()
    while not Path(gate).exists():
        time.sleep(0.001)
    won = [store.put_once(f"replies/{n:02}", f"{number} ".encode() * 5000) for n in range(10)]
    Path(f"{out}.{number}").write_bytes(b"\n".join(won))


def test_processes_that_write_one_name_agree_on_whole_bytes(
    location: str, store: BlobStore, tmp_path: Path
) -> None:
    gate, out = tmp_path / "gate", tmp_path / "out"
    context = multiprocessing.get_context("spawn")
    writers = [
        context.Process(target=put_at_once, args=(location, str(gate), str(out), number))
        for number in range(3)
    ]
    for writer in writers:
        writer.start()
    while not all((tmp_path / f"gate.{number}").exists() for number in range(3)):
        assert all(writer.exitcode is None for writer in writers)
        time.sleep(0.01)
    gate.touch()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    told = {(tmp_path / f"out.{number}").read_bytes() for number in range(3)}
    kept = b"\n".join(store.read(f"replies/{n:02}") or b"" for n in range(10))
    assert told == {kept}
    whole = {f"{number} ".encode() * 5000 for number in range(3)}
    assert set(kept.split(b"\n")) <= whole


def write_for_ever(root: str) -> None:
    store = FolderStore(Path(root))
    for number in count():
        store.put_once(f"replies/{number}", b"whole" * 20_000)
        store.replace("failed/0", b"whole" * 20_000 if number % 2 else b"short")


def test_killed_writer_leaves_no_torn_blob_in_a_folder(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writer = context.Process(target=write_for_ever, args=(str(tmp_path / "store"),))
    writer.start()
    store = FolderStore(tmp_path / "store")
    while len(list_names(store)) < 30:
        assert writer.exitcode is None
        time.sleep(0.01)
    assert writer.pid is not None
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    for name in list_names(store):
        assert store.read(name) in (b"whole" * 20_000, b"short"), name


def test_unfinished_writes_of_a_folder_are_no_blobs(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.put_once("a/b", b"x")
    (tmp_path / "a" / ".123.abc.tmp").write_bytes(b"half")
    assert list_names(store) == ["a/b"]


def walk(folder: Path) -> int:
    """How many files there are, each looked at."""
    found = (Path(root, name) for root, _, names in os.walk(folder) for name in names)
    return sum(1 for path in found if path.stat())


@pytest.mark.parametrize(
    ("location", "said"),
    read_rows("llm_stores.place_that_is_none_is_refused_without_repeating_its_secret"),
)
def test_place_that_is_none_is_refused_without_repeating_its_secret(
    location: str, said: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        open_blobs(location)
    assert said in str(caught.value)
    assert "secret4711" not in str(caught.value)


def test_place_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match="is a file"):
        open_blobs(tmp_path / "file")


def test_bucket_without_the_extra_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(SettingsError, match=r"pip install 'kpyramid\[s3\]'"):
        open_blobs("s3://bucket/prefix")


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["unconditional", "racing"])
def test_bucket_that_ignores_conditions_is_refused(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    with serve_faults(s3_server) as (proxied, faults):
        location = find_place(proxied, monkeypatch)
        setattr(faults, fault, True)
        store = BucketStore(location)
        if fault == "racing":  # one after the other they see nothing of it
            assert [store._create("x", b"1"), store._create("x", b"2")] == [True, False]
            store.delete("x")
        with pytest.raises(EndpointError, match="conditional writes") as caught:
            open_blobs(location)
        assert caught.value.exit_code == 8
        setattr(faults, fault, False)
        assert list_names(open_blobs(location)) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (409, "ConditionalRequestConflict"),
        (503, "SlowDown"),
        (500, "InternalError"),
    ],
)
def test_bucket_that_is_busy_is_asked_again(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, status: int, code: str
) -> None:
    with serve_faults(s3_server) as (proxied, faults):
        store = open_blobs(find_place(proxied, monkeypatch))
        faults.puts = 0
        faults.answers.extend([(status, code)] * 3)
        assert store.put_once("a/b", b"first") == b"first"
        assert faults.puts == 4
        assert store.put_once("a/b", b"second") == b"first"


@pytest.mark.slow
@pytest.mark.parametrize("read_only", [False, True])
def test_bucket_that_is_not_there_is_refused(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, read_only: bool
) -> None:
    use_server(s3_server, monkeypatch)
    with pytest.raises(EndpointError, match=r"s3://missing/x: cannot .* NoSuchBucket"):
        open_blobs("s3://missing/x", read_only=read_only)


@pytest.mark.slow
def test_wrong_credential_is_refused_and_not_repeated(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = find_place(s3_server, monkeypatch)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-4712")
    with pytest.raises(EndpointError, match="SignatureDoesNotMatch") as caught:
        open_blobs(location)
    assert SECRET not in str(caught.value)
    assert "wrong-4712" not in str(caught.value)


@pytest.mark.slow
def test_server_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    use_server(S3Server("http://127.0.0.1:1"), monkeypatch)
    with pytest.raises(EndpointError, match="AWS_ENDPOINT_URL"):
        open_blobs("s3://bucket/x")


@pytest.mark.slow
def test_read_only_bucket_is_not_written_to(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve_faults(s3_server) as (proxied, faults):
        store = open_blobs(find_place(proxied, monkeypatch), read_only=True)
        assert isinstance(store, BucketStore)
        assert faults.puts == 0
