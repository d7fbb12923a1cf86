"""Replies are found by all that shapes them and by nothing else; entries are whole or absent."""

import json
import multiprocessing
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from itertools import count
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import pytest

from kpyramid.errors import EndpointError, SettingsError
from kpyramid.keys import JsonValue
from kpyramid.llm.cache import DamagedLine, ReplyCache, ReplyEntry, read_recording, write_recording
from kpyramid.llm.caller import KeyLocks
from kpyramid.llm.task import Failure, FailureKind, Message, Request, describe_model, key_request
from kpyramid.settings import LLMSettings
from kpyramid.storage.bucket import BucketStore, open_blobs
from kpyramid.storage.store import BlobStore, FolderStore
from tests.processes import wait_until
from tests.rows import each_row, read_bodies, read_rows
from tests.s3 import BUCKET, SECRET, S3Server, serve_faults, use_server

MODEL: Mapping[str, JsonValue] = {"name": "test-model", "temperature": 0.0, "seed": 0}


REQUEST = Request(
    task="claims",
    version=1,
    messages=(Message("system", "List claims."), Message("user", "Ada wrote a program.")),
    schema={"type": "object", "required": ["claims"]},
    max_tokens=100,
    stage="extract",
    document="doc-1",
    subject="Ada wrote a program. " * 50,
)


KEY = key_request(REQUEST, MODEL)


OTHER_KEY = "0f" * 32


RAW: Mapping[str, JsonValue] = {
    "model": "test-model-2025",
    "choices": [{"message": {"content": "half a pair: \ud800, NUL: \x00, ü"}}],
    "odd": [1.5, None, True, 10**30, {"deep": {"er": []}}],
}


@pytest.fixture
def cache(tmp_path: Path) -> ReplyCache:
    return ReplyCache(FolderStore(tmp_path / "cache"))


def find_file(tmp_path: Path, folder: str, key: str = KEY) -> Path:
    return tmp_path / "cache" / folder / key[:2] / f"{key}.json"


SYSTEM, USER = REQUEST.messages


def test_what_is_sent_is_in_the_key() -> None:
    changes: list[dict[str, Any]] = [
        {"task": "triples"},
        {"version": 2},
        {"messages": (replace(SYSTEM, content="List claims!"), USER)},
        {"messages": (SYSTEM, replace(USER, content="Ada  wrote a program."))},
        {"messages": (SYSTEM, replace(USER, content="a Ada wrote program."))},
        {"messages": (replace(SYSTEM, role="user"), USER)},
        {"messages": (USER, SYSTEM)},
        {"messages": (SYSTEM,)},
        {"messages": (SYSTEM, USER, USER)},
        {"messages": (Message("system", SYSTEM.content + USER.content),)},
        {"schema": {"type": "object", "required": []}},
        {"schema": {"type": "object"}},
        {"max_tokens": 101},
    ]
    keys = {key_request(replace(REQUEST, **change), MODEL) for change in changes}
    models = read_bodies("llm_cache.other_models")
    keys |= {key_request(REQUEST, describe_model(LLMSettings(**model))) for model in models}
    assert len(keys - {KEY}) == len(changes) + len(models)


def test_what_is_for_the_books_or_says_where_and_how_fast_leaves_the_key() -> None:
    for change in read_bodies("llm_cache.for_the_books"):
        assert key_request(replace(REQUEST, **change), MODEL) == KEY, change
    for where in read_bodies("llm_cache.where_and_how_fast"):
        model = describe_model(LLMSettings(**{"model": "test-model", **where}))
        assert key_request(REQUEST, model) == KEY, where


def test_reply_holds_nothing_of_the_prompt(cache: ReplyCache, tmp_path: Path) -> None:
    cache.keep_reply(KEY, REQUEST, RAW)
    text = find_file(tmp_path, "replies").read_text()
    assert "List claims" not in text
    assert "Ada" not in text
    assert json.loads(text)["entry"]["task"] == "claims"


@pytest.mark.parametrize("folder", ["replies", "failed"])
@pytest.mark.parametrize("damage", ["cut", "empty", "flip", "other key", "no JSON", "zeros"])
def test_damaged_entry_is_named_and_counts_as_absent(
    cache: ReplyCache, tmp_path: Path, caplog: pytest.LogCaptureFixture, folder: str, damage: str
) -> None:
    cache.keep_reply(KEY, REQUEST, RAW)
    cache.keep_failure(Failure(KEY, FailureKind.INVALID, "no JSON"), REQUEST, RAW)
    path = find_file(tmp_path, folder)
    data = path.read_bytes()
    target = path
    if damage == "other key":
        target = find_file(tmp_path, folder, OTHER_KEY)
        target.parent.mkdir(parents=True)
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 1
    target.write_bytes(
        {
            "cut": data[:-1],
            "empty": b"",
            "flip": bytes(flipped),
            "other key": data,
            "no JSON": b"<html>",
            "zeros": bytes(len(data)),
        }[damage]
    )
    key = target.stem
    assert (cache.read_reply(key) if folder == "replies" else cache.read_failure(key)) is None
    assert target.name in caplog.text
    assert "Ada" not in caplog.text
    if folder == "failed":
        assert [
            entry.failure.key for entry in cache.list_failures() if entry.failure.key == key
        ] == []


def test_reply_takes_the_place_of_a_damaged_one(cache: ReplyCache, tmp_path: Path) -> None:
    cache.keep_reply(KEY, REQUEST, {"model": "old"})
    find_file(tmp_path, "replies").write_bytes(b"torn")
    assert cache.keep_reply(KEY, REQUEST, RAW) == RAW
    assert cache.read_reply(KEY) == RAW


def test_failure_keeps_all_that_explains_it(cache: ReplyCache) -> None:
    failure = Failure(KEY, FailureKind.INVALID, "no \ud800 JSON", 2)
    cache.keep_failure(failure, REQUEST, RAW)
    assert cache.read_failure(KEY) == failure
    (entry,) = cache.list_failures()
    assert (entry.task, entry.version, entry.stage) == ("claims", 1, "extract")
    assert (entry.document, entry.max_tokens) == ("doc-1", 100)
    assert entry.subject == REQUEST.subject[:200]
    assert entry.messages == (("system", "List claims."), ("user", "Ada wrote a program."))
    assert entry.response == RAW


def test_failure_is_no_reply_and_takes_the_place_of_the_one_before(cache: ReplyCache) -> None:
    cache.keep_failure(Failure(KEY, FailureKind.INVALID, "no JSON", 1), REQUEST, RAW)
    cache.keep_failure(Failure(KEY, FailureKind.UNREACHED, "down", 2), REQUEST, None)
    assert cache.read_reply(KEY) is None
    assert [(e.failure.attempts, e.response) for e in cache.list_failures()] == [(2, None)]
    cache.drop_failure(KEY)
    assert cache.read_failure(KEY) is None


def test_read_only_cache_reads_and_writes_nothing(cache: ReplyCache, tmp_path: Path) -> None:
    reader = ReplyCache(FolderStore(tmp_path / "cache"), read_only=True)
    assert reader.keep_reply(KEY, REQUEST, RAW) == RAW
    reader.keep_failure(Failure(KEY, FailureKind.INVALID, "no JSON"), REQUEST, RAW)
    assert not (tmp_path / "cache").exists()
    cache.keep_reply(KEY, REQUEST, RAW)
    cache.keep_failure(Failure(KEY, FailureKind.INVALID, "no JSON"), REQUEST, RAW)
    reader.drop_reply(KEY)
    reader.drop_failure(KEY)
    reader.move_failure(KEY, OTHER_KEY)
    reader.copy_reply(KEY, OTHER_KEY)
    assert reader.read_reply(KEY) == RAW
    assert [entry.failure.key for entry in cache.list_failures()] == [KEY]
    assert [key for key, _ in cache.list_replies()] == [KEY]


def make_entries(count: int) -> list[ReplyEntry]:
    return [ReplyEntry(f"{n:064x}", "claims", 1, "m", {**RAW, "n": n}) for n in range(count)]


@pytest.mark.parametrize("name", ["replies.jsonl", "replies.jsonl.gz"])
def test_recording_reads_back_and_has_the_same_bytes_each_time(tmp_path: Path, name: str) -> None:
    path, again = tmp_path / name, tmp_path / f"again-{name}"
    assert write_recording(path, make_entries(3)) == 3
    assert list(read_recording(path)) == make_entries(3)
    write_recording(again, make_entries(3))
    assert path.read_bytes() == again.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, f"again-{name}"])


def test_failed_export_leaves_the_file_before_it(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("before")

    def fail() -> "list[ReplyEntry]":
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_recording(path, (entry for _ in range(2) for entry in fail()))
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        *((line.encode("latin-1"), said) for line, said in read_rows("llm_cache.damaged_lines")),
        (b"[" * 100_000, "recursion"),
    ],
)
def test_damaged_line_is_numbered_and_the_others_are_read(
    tmp_path: Path, line: bytes, said: str
) -> None:
    path = tmp_path / "a.jsonl"
    write_recording(path, make_entries(2))
    first, second = path.read_bytes().splitlines()
    line = line.replace(b"%s", OTHER_KEY.encode())
    path.write_bytes(b"\n".join([first, b"", line, second, b""]))
    found = list(read_recording(path))
    assert [found[0], found[2]] == make_entries(2)
    damaged = found[1]
    assert isinstance(damaged, DamagedLine)
    assert damaged.number == 3
    assert said in damaged.detail


def test_line_written_by_hand_needs_no_hash(tmp_path: Path) -> None:
    values = {"key": OTHER_KEY, "task": "t", "version": 1, "model": "m", "response": {}}
    (tmp_path / "a.jsonl").write_text(json.dumps(values))
    assert list(read_recording(tmp_path / "a.jsonl")) == [ReplyEntry(OTHER_KEY, "t", 1, "m", {})]


@pytest.mark.parametrize("damage", ["cut", "flip", "no gzip"])
def test_damaged_compressed_recording_gives_what_can_be_read(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a.jsonl.gz"
    write_recording(path, make_entries(3))
    data = path.read_bytes()
    flipped = bytearray(data)
    flipped[-6] ^= 1
    path.write_bytes({"cut": data[:-10], "flip": bytes(flipped), "no gzip": b"plain"}[damage])
    found = list(read_recording(path))
    assert [type(one) for one in found[-1:]] == [DamagedLine]
    assert all(isinstance(one, ReplyEntry) for one in found[:-1])


# One at a time per key: among threads, among processes, after a kill, after a fork.


CONTEXT = multiprocessing.get_context("spawn")


KEYS = [sha256(str(number).encode()).hexdigest() for number in range(8)]


PATIENCE = 30.0


@contextmanager
def start(act: Callable[..., None], *arguments: object) -> Iterator[SpawnProcess]:
    process = CONTEXT.Process(target=act, args=arguments, daemon=True)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def hold_for_ever(path: Path, key: str, ready: Path) -> None:
    with KeyLocks(path).hold(key):
        ready.touch()
        time.sleep(PATIENCE)


def is_free(path: Path | None, key: str, locks: KeyLocks | None = None) -> bool:
    """Whether another thread gets the key within a moment; it lets go of it at once."""
    got = threading.Event()

    def take() -> None:
        with (locks or KeyLocks(path)).hold(key):
            got.set()

    threading.Thread(target=take, daemon=True).start()
    return got.wait(0.2)


def test_killed_holder_frees_its_key(tmp_path: Path) -> None:
    path, ready = tmp_path / "locks", tmp_path / "ready"
    with start(hold_for_ever, path, KEYS[0], ready) as holder:
        wait_until(ready.exists)
        assert holder.pid is not None
        os.kill(holder.pid, signal.SIGKILL)
        with KeyLocks(path).hold(KEYS[0]):
            pass


def test_removed_lock_folder_is_made_again_and_holds(tmp_path: Path) -> None:
    path, ready = tmp_path / "locks", tmp_path / "ready"
    with KeyLocks(path).hold(KEYS[1]):
        pass
    shutil.rmtree(path)
    with start(hold_for_ever, path, KEYS[0], ready):
        wait_until(ready.exists)
        assert not is_free(path, KEYS[0])


def test_keys_share_a_bounded_number_of_lock_files(tmp_path: Path) -> None:
    locks = KeyLocks(tmp_path / "locks")
    for number in range(300):
        with locks.hold(f"abc{number:061x}"):
            pass
    assert len(list((tmp_path / "locks").iterdir())) == 1


# Stores keep blobs: one behaviour on a folder and on a real S3 server, and a bucket's faults.


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


def test_what_is_not_there_is_none_and_can_be_deleted(store: BlobStore) -> None:
    assert store.read("replies/0f/0f1.json") is None
    assert store.read("replies") is None or isinstance(store, FolderStore)
    store.delete("replies/0f/0f1.json")
    assert list_names(store) == []
    assert list_names(store, "replies") == []


def test_first_writer_wins_until_the_blob_is_replaced(store: BlobStore) -> None:
    data = bytes(range(256)) * 100
    assert store.put_once("a/b", data) == data
    assert store.put_once("a/b", b"second") == data
    assert store.read("a/b") == data
    store.replace("a/b", b"two, longer")
    assert store.put_once("a/b", b"three") == store.read("a/b") == b"two, longer"


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
    writers = [
        CONTEXT.Process(target=put_at_once, args=(location, str(gate), str(out), number))
        for number in range(3)
    ]
    for writer in writers:
        writer.start()
    wait_until(lambda: all((tmp_path / f"gate.{number}").exists() for number in range(3)))
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
    store = FolderStore(tmp_path / "store")
    with start(write_for_ever, str(tmp_path / "store")):
        wait_until(lambda: len(list_names(store)) >= 30)
    for name in list_names(store):
        assert store.read(name) in (b"whole" * 20_000, b"short"), name


def test_unfinished_writes_of_a_folder_are_no_blobs(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.put_once("a/b", b"x")
    (tmp_path / "a" / ".123.abc.tmp").write_bytes(b"half")
    assert list_names(store) == ["a/b"]


@each_row("location, said", "llm_stores.place_that_is_none_is_refused_without_repeating_its_secret")
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
@each_row("status, code")
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
