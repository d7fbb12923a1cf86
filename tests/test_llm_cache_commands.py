"""`kpyramid cache` and `kpyramid rejects`: nothing in use goes, nothing damaged goes unsaid."""

import os
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pytest

from kpyramid.keys import JsonValue
from kpyramid.llm.cache import ReplyCache, ReplyEntry
from kpyramid.llm.task import Failure, FailureKind, Message, Request
from kpyramid.storage.store import FolderStore
from tests.commands import fails, run, run_json

KEYS = [sha256(str(number).encode()).hexdigest() for number in range(12)]
DAY = 86_400


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


@pytest.fixture
def cache(home: Path) -> ReplyCache:
    return ReplyCache(FolderStore(home / "cache" / "llm"))


def make_entry(key: str, text: str = "yes") -> ReplyEntry:
    response: Mapping[str, JsonValue] = {"model": "m", "text": f"{text} \ud800 {key[:4]}"}
    return ReplyEntry(key, "claims", 1, "m", response)


def keep(home: Path, cache: ReplyCache, key: str, *, days: float) -> None:
    """Stores a reply of that age."""
    cache.keep_entry(make_entry(key))
    then = time.time() - days * DAY
    os.utime(home / "cache" / "llm" / "replies" / key[:2] / f"{key}.json", (then, then))


def list_keys(cache: ReplyCache) -> set[str]:
    return {key for key, _ in cache.list_replies()}


def fail_request(
    cache: ReplyCache, key: str, kind: FailureKind, attempts: int = 1, subject: str = "A text."
) -> None:
    messages = (Message("system", "List."), Message("user", subject))
    request = Request("claims", 3, messages, {}, 100, "extract", "doc-7", subject)
    raw: Mapping[str, JsonValue] = {"text": "half a pair \ud800"}
    cache.keep_failure(Failure(key, kind, f"because {kind}", attempts), request, raw)


def test_export_and_import_move_a_cache(home: Path, cache: ReplyCache, tmp_path: Path) -> None:
    for key in KEYS:
        cache.keep_entry(make_entry(key))
    fail_request(cache, "ab" * 32, FailureKind.INVALID)
    file, again = tmp_path / "replies.jsonl.gz", tmp_path / "again.jsonl.gz"
    assert run_json("cache", "--export", file, "--warehouse", home)["written"] == 12
    other = tmp_path / "other"
    ReplyCache(FolderStore(other / "cache" / "llm")).keep_entry(make_entry(KEYS[0], "first"))
    found = run_json("cache", "--import", file, "--warehouse", other)
    assert (found["new"], found["known"], found["damaged"]) == (11, 1, [])
    moved = ReplyCache(FolderStore(other / "cache" / "llm"))
    assert list_keys(moved) == set(KEYS)
    assert moved.read_reply_entry(KEYS[0]) == make_entry(KEYS[0], "first")
    assert moved.read_reply_entry(KEYS[1]) == make_entry(KEYS[1])
    assert list(moved.list_failures()) == []
    assert run_json("cache", "--import", file, "--warehouse", other)["known"] == 12
    moved.drop_reply(KEYS[0])
    run_json("cache", "--import", file, "--warehouse", other)
    run_json("cache", "--export", again, "--warehouse", other)
    assert again.read_bytes() == file.read_bytes()


def test_import_names_damaged_lines_and_takes_the_others(
    home: Path, cache: ReplyCache, tmp_path: Path
) -> None:
    for key in KEYS[:3]:
        cache.keep_entry(make_entry(key))
    file = tmp_path / "a.jsonl"
    run_json("cache", "--export", file, "--warehouse", home)
    lines = file.read_text().splitlines()
    lines[1] = lines[1].replace("yes", "no!")
    file.write_text("\n".join([*lines, "<html>"]))
    other = tmp_path / "other"
    done = run("cache", "--import", file, "--warehouse", other)
    assert done.exit_code == 3 and "New      2" in done.stdout
    for said in ("damaged lines: 2", "line 2: it was changed", "line 4: "):
        assert said in done.stderr
    assert list_keys(ReplyCache(FolderStore(other / "cache" / "llm"))) == {
        key for number, key in enumerate(sorted(KEYS[:3])) if number != 1
    }
    damaged = run_json("cache", "--import", file, "--warehouse", other, code=3)["damaged"]
    assert [number for number, _ in damaged] == [2, 4]


def test_file_that_is_not_there_is_told(home: Path, tmp_path: Path) -> None:
    fails(3, "nothing.jsonl", "cache", "--import", tmp_path / "nothing.jsonl", "--warehouse", home)
    file = tmp_path / "no" / "such.jsonl"
    fails(3, "cannot be written", "cache", "--export", file, "--warehouse", home)


def test_stats_count_replies_and_failures(home: Path, cache: ReplyCache) -> None:
    assert run_json("cache", "--warehouse", home)["replies"] == 0
    keep(home, cache, KEYS[0], days=0)
    keep(home, cache, KEYS[1], days=(time.time() / DAY) - 1)
    fail_request(cache, KEYS[2], FailureKind.INVALID)
    fail_request(cache, KEYS[3], FailureKind.INVALID)
    fail_request(cache, KEYS[4], FailureKind.REFUSED)
    found = run_json("cache", "--warehouse", home)
    assert found["replies"] == 2
    assert found["oldest"] == "1970-01-02"
    assert found["bytes"] > 200
    assert found["failures"] == {"invalid": 2, "refused": 1}
    said = run("cache", "--warehouse", home).stdout
    assert "Replies   2" in said
    assert "invalid 2" in said


def test_cache_elsewhere_is_found_by_its_setting(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    ReplyCache(FolderStore(elsewhere)).keep_entry(make_entry(KEYS[0]))
    assert run_json("cache", "--warehouse", home)["replies"] == 0
    monkeypatch.setenv("KPYRAMID_LLM__CACHE", str(elsewhere))
    found = run_json("cache", "--warehouse", home)
    assert (found["cache"], found["replies"]) == (str(elsewhere), 1)
    assert not home.exists()


def test_cache_that_is_no_place_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KPYRAMID_LLM__CACHE", "ftp://bucket/x")
    fails(2, "s3://bucket/prefix", "cache", "--warehouse", home)


def test_rejects_are_listed_by_kind_with_examples(home: Path, cache: ReplyCache) -> None:
    for key in KEYS[:7]:
        fail_request(cache, key, FailureKind.INVALID)
    fail_request(cache, KEYS[7], FailureKind.INVALID, attempts=3)
    fail_request(
        cache, KEYS[8], FailureKind.REFUSED, subject="Some \x1b[2J\nsecond\ud800 words " * 9
    )
    said = run("rejects", "--requests", "--warehouse", home).stdout
    assert "9 failed requests" in said
    assert "invalid 8, refused 1" in said
    assert "doc-7" in said
    assert "because refused" in said
    assert r"Some \x1b[2J second\ud800 words" in said
    assert "\x1b" not in said
    assert "rejects --retry" in said
    only = run("rejects", "--requests", "--warehouse", home, "--reason", "refused").stdout
    assert "refused" in only
    assert "invalid" not in only


def test_retry_forgets_all_or_a_kind_or_the_named(home: Path, cache: ReplyCache) -> None:
    for key in KEYS[:3]:
        fail_request(cache, key, FailureKind.INVALID)
    for key in KEYS[3:6]:
        fail_request(cache, key, FailureKind.REFUSED)

    def left() -> set[str]:
        return {entry.failure.key for entry in cache.list_failures()}

    found = run_json("rejects", "--retry", KEYS[0], "--retry", KEYS[3][:10], "--warehouse", home)
    assert found["keys"] == sorted([KEYS[0], KEYS[3]])
    assert left() == {KEYS[1], KEYS[2], KEYS[4], KEYS[5]}
    said = run("rejects", "--retry", "all", "--reason", "refused", "--warehouse", home).stdout
    assert "Forgotten  2" in said
    assert left() == {KEYS[1], KEYS[2]}
    assert run_json("rejects", "--retry", "all", "--warehouse", home)["forgotten"] == 2
    assert left() == set()


def test_retry_of_something_unknown_forgets_nothing(home: Path, cache: ReplyCache) -> None:
    fail_request(cache, KEYS[0], FailureKind.INVALID)
    key, known = KEYS[1], KEYS[0]
    for code, said, *words in (
        (3, "0 failures have such a key", known, "--retry", key),
        (3, "hex digits", known, "--retry", "../.."),
        (3, "hex digits", known[:4]),
        (2, "there are", "all", "--reason", "bad"),
    ):
        fails(code, said, "rejects", "--retry", *words, "--warehouse", home)
    assert cache.read_failure(known) is not None
