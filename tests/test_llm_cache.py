"""Replies are found by all that shapes them and by nothing else; entries are whole or absent."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from kpyramid.keys import JsonValue
from kpyramid.llm.cache import DamagedLine, ReplyCache, ReplyEntry, read_recording, write_recording
from kpyramid.llm.task import Failure, FailureKind, Message, Request, describe_model, key_request
from kpyramid.settings import LLMSettings
from kpyramid.storage.store import FolderStore

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


@pytest.mark.parametrize(
    "other",
    [
        replace(REQUEST, task="triples"),
        replace(REQUEST, version=2),
        replace(REQUEST, messages=(replace(SYSTEM, content="List claims!"), USER)),
        replace(REQUEST, messages=(SYSTEM, replace(USER, content="Ada  wrote a program."))),
        replace(REQUEST, messages=(SYSTEM, replace(USER, content="a Ada wrote program."))),
        replace(REQUEST, messages=(replace(SYSTEM, role="user"), USER)),
        replace(REQUEST, messages=(USER, SYSTEM)),
        replace(REQUEST, messages=(SYSTEM,)),
        replace(REQUEST, messages=(SYSTEM, USER, USER)),
        replace(REQUEST, messages=(Message("system", SYSTEM.content + USER.content),)),
        replace(REQUEST, schema={"type": "object", "required": []}),
        replace(REQUEST, schema={"type": "object"}),
        replace(REQUEST, max_tokens=101),
    ],
)
def test_request_that_differs_in_what_is_sent_has_another_key(other: Request) -> None:
    assert key_request(other, MODEL) != KEY


@pytest.mark.parametrize(
    "settings",
    [
        LLMSettings(model="other-model"),
        LLMSettings(model="test-model", temperature=0.1),
        LLMSettings(model="test-model", temperature="default"),
        LLMSettings(model="test-model", seed=1),
        LLMSettings(model="test-model", reasoning_effort="low"),
    ],
)
def test_other_model_or_parameter_gives_another_key(settings: LLMSettings) -> None:
    assert key_request(REQUEST, describe_model(LLMSettings(model="test-model"))) == KEY
    assert key_request(REQUEST, describe_model(settings)) != KEY


@pytest.mark.parametrize(
    "same",
    [
        replace(REQUEST, stage="resolve"),
        replace(REQUEST, document="doc-2"),
        replace(REQUEST, document=None),
        replace(REQUEST, subject="something else"),
        replace(REQUEST, schema={"required": ["claims"], "type": "object"}),
    ],
)
def test_what_is_for_the_books_only_leaves_the_key(same: Request) -> None:
    assert key_request(same, MODEL) == KEY


@pytest.mark.parametrize(
    "settings",
    [
        LLMSettings(model="test-model", base_url="http://127.0.0.1:8000/v1"),
        LLMSettings(model="test-model", api_key_env="OTHER_KEY"),
        LLMSettings(model="test-model", concurrency=9, timeout=1, max_wait=1, cache="/elsewhere"),
        LLMSettings(model="test-model", budget_tokens=1),
    ],
)
def test_where_and_how_fast_a_model_is_asked_leaves_the_key(settings: LLMSettings) -> None:
    assert key_request(REQUEST, describe_model(settings)) == KEY


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
        (b"{", "Expecting"),
        (b"[]", "no object"),
        (b"\xff\xfe", "decode"),
        (b"{}", "key"),
        (b'{"key": "short", "task": "t", "version": 1, "model": "", "response": {}}', "key"),
        (b'{"key": "%s", "task": 1, "version": 1, "model": "", "response": {}}', "task"),
        (b'{"key": "%s", "task": "t", "version": true, "model": "", "response": {}}', "version"),
        (b'{"key": "%s", "task": "t", "version": 1, "model": "", "response": []}', "response"),
        (
            b'{"key": "%s", "task": "t", "version": 1, "model": "", "response": {}, "sha256": ""}',
            "changed",
        ),
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
