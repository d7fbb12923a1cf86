"""`kpyramid cache` and `kpyramid rejects`: nothing in use goes, nothing damaged goes unsaid."""

import json
import os
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from kpyramid.cli.app import app
from kpyramid.keys import ID_DIGITS, JsonValue
from kpyramid.llm.cache import ReplyCache, ReplyEntry
from kpyramid.llm.task import Failure, FailureKind, Message, Request
from kpyramid.storage.results import REQUESTS
from kpyramid.storage.store import FolderStore
from tests.s3 import BUCKET, serve_s3

KEYS = [sha256(str(number).encode()).hexdigest() for number in range(12)]
DAY = 86_400


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def run_json(*arguments: object) -> dict[str, Any]:
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.count("\n") == 1
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def fails(code: int, said: str, *arguments: object) -> Result:
    done = run(*arguments)
    assert done.exit_code == code, done.output
    assert said in done.stderr
    assert "Traceback" not in done.output
    return done


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


def mark(home: Path, run_name: str, stage: str, requests: list[str] | None) -> Path:
    """A finished stage of a run, with the requests that its result was made of."""
    key = sha256(f"{run_name} {stage}".encode()).hexdigest()
    path = home / "runs" / run_name / "stages" / f"{stage}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"stage": stage, "key": key}))
    if requests is not None:
        result = home / "cache" / "results" / stage / key[:ID_DIGITS]
        result.mkdir(parents=True)
        (result / REQUESTS).write_text(json.dumps(requests))
    return path


def list_keys(cache: ReplyCache) -> set[str]:
    return {key for key, _ in cache.list_replies()}


def fail_request(
    cache: ReplyCache, key: str, kind: FailureKind, attempts: int = 1, subject: str = "A text."
) -> None:
    messages = (Message("system", "List."), Message("user", subject))
    request = Request("claims", 3, messages, {}, 100, "extract", "doc-7", subject)
    raw: Mapping[str, JsonValue] = {"text": "half a pair \ud800"}
    cache.keep_failure(Failure(key, kind, f"because {kind}", attempts), request, raw)


def test_gc_removes_what_is_old_and_unused_and_nothing_else(home: Path, cache: ReplyCache) -> None:
    used, resolved, old, older, young = KEYS[:5]
    for key in (used, resolved, old):
        keep(home, cache, key, days=40)
    keep(home, cache, older, days=400)
    keep(home, cache, young, days=20)
    fail_request(cache, KEYS[5], FailureKind.INVALID)
    store = FolderStore(home / "cache" / "llm")
    store.put_once("batches/b1.json", b"{}")
    os.utime(home / "cache" / "llm" / "batches" / "b1.json", (0, 0))
    mark(home, "one", "extract", [used])
    mark(home, "two", "resolve", [resolved, used])
    mark(home, "two", "embed", None)
    found = run_json("gc", "--replies", "--warehouse", home)["replies"]
    assert found["keys"] == sorted([old, older])
    assert (found["removed"], found["used"], found["young"]) == (2, 2, 1)
    assert list_keys(cache) == {used, resolved, young}
    assert cache.read_failure(KEYS[5]) is not None
    assert store.read("batches/b1.json") == b"{}"


def test_gc_says_what_it_would_remove_and_removes_nothing(home: Path, cache: ReplyCache) -> None:
    for key in KEYS:
        keep(home, cache, key, days=40)
    found = run_json("gc", "--replies", "--warehouse", home, "--dry-run")["replies"]
    assert found["removed"] == 12
    done = run("gc", "--replies", "--warehouse", home, "--dry-run")
    assert "Nothing was removed" in done.stdout
    assert min(KEYS) in done.stdout
    assert list_keys(cache) == set(KEYS)


def test_gc_keeps_by_the_age_it_is_given(home: Path, cache: ReplyCache) -> None:
    keep(home, cache, KEYS[0], days=2)
    keep(home, cache, KEYS[1], days=0)
    assert run_json("gc", "--replies", "--warehouse", home)["replies"]["removed"] == 0
    found = run_json("gc", "--replies", "--warehouse", home, "--older-than", "36h")["replies"]
    assert found["keys"] == [KEYS[0]]
    found = run_json("gc", "--replies", "--warehouse", home, "--older-than", "0d")["replies"]
    assert found["removed"] == 1
    assert list_keys(cache) == set()
    assert run("gc", "--replies", "--warehouse", home, "--older-than", "-1d").exit_code == 2


def test_replies_stay_until_what_rests_on_them_is_deleted(home: Path, cache: ReplyCache) -> None:
    keep(home, cache, KEYS[0], days=40)
    path = mark(home, "one", "extract", [KEYS[0]])
    record = dict.fromkeys(("corpus", "settings", "allow_shrink"), "")
    record |= {"run": "one", "started": "2020-01-01", "ref": "main", "order": "1"}
    (path.parent.parent / "run.json").write_text(json.dumps(record))
    details = {"snapshot": "0" * 16, "committed": "yes"}
    publish = {"stage": "publish", "key": "0" * 64, "details": details}
    (path.parent / "publish.json").write_text(json.dumps(publish))
    path.write_text(json.dumps({**json.loads(path.read_text()), "details": {}}))
    words = ("gc", "--replies", "--warehouse", home, "--older-than", "0d")
    moved, deleted, swept = (run_json(*words) for _ in range(3))
    assert "runs/one" in moved["paths"] and "runs/one" in deleted["deleted"]
    assert [found["replies"]["removed"] for found in (moved, deleted, swept)] == [0, 0, 1]


def test_gc_of_a_damaged_mark_removes_nothing(home: Path, cache: ReplyCache) -> None:
    keep(home, cache, KEYS[0], days=40)
    path = mark(home, "one", "extract", [KEYS[1]])
    for text in ("{", "[]", "{}", '{"key": 1}'):
        path.write_text(text)
        fails(6, "nothing was removed", "gc", "--replies", "--warehouse", home)
    assert list_keys(cache) == {KEYS[0]}


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


def test_export_leaves_out_a_damaged_reply_and_names_it(
    home: Path, cache: ReplyCache, tmp_path: Path
) -> None:
    for key in KEYS[:2]:
        cache.keep_entry(make_entry(key))
    FolderStore(home / "cache" / "llm").replace(f"replies/{KEYS[0][:2]}/{KEYS[0]}.json", b"torn")
    found = run_json("cache", "--export", tmp_path / "a.jsonl", "--warehouse", home)
    assert (found["written"], found["damaged"]) == (1, [KEYS[0]])


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
    done = fails(3, "2 damaged line(s)", "cache", "--import", file, "--warehouse", other)
    assert "line 2: it was changed" in done.stderr
    assert "line 4: " in done.stderr
    assert "New      2" in done.stdout
    assert list_keys(ReplyCache(FolderStore(other / "cache" / "llm"))) == {
        key for number, key in enumerate(sorted(KEYS[:3])) if number != 1
    }
    as_json = run("cache", "--import", file, "--warehouse", other, "--json")
    assert as_json.exit_code == 3
    assert [number for number, _ in json.loads(as_json.stdout)["damaged"]] == [2, 4]


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


@pytest.mark.slow
def test_cache_in_a_bucket_is_exported_cleared_and_imported(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve_s3(tmp_path / "s3") as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("KPYRAMID_LLM__CACHE", f"s3://{BUCKET}/llm")
        folder = ReplyCache(FolderStore(tmp_path / "folder"))
        for key in KEYS:
            folder.keep_entry(make_entry(key))
        file, again = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
        monkeypatch.setenv("KPYRAMID_LLM__CACHE", str(tmp_path / "folder"))
        run_json("cache", "--export", file, "--warehouse", home)
        monkeypatch.setenv("KPYRAMID_LLM__CACHE", f"s3://{BUCKET}/llm")
        assert run_json("cache", "--import", file, "--warehouse", home)["new"] == 12
        mark(home, "one", "extract", KEYS[:3])
        run_json("cache", "--export", again, "--warehouse", home)
        assert again.read_bytes() == file.read_bytes()
        assert run_json("gc", "--replies", "--warehouse", home)["replies"]["young"] == 9
        time.sleep(1.1)  # a bucket's times are whole seconds
        words = ("gc", "--replies", "--warehouse", home, "--older-than", "0d")
        removed = [run_json(*words)["replies"]["removed"] for _ in range(2)]
        assert removed == [9, 3]  # when the result that named three of them is deleted
        assert run_json("cache", "--warehouse", home)["replies"] == 0


def test_rejects_are_listed_by_kind_with_examples(home: Path, cache: ReplyCache) -> None:
    for key in KEYS[:7]:
        fail_request(cache, key, FailureKind.INVALID)
    fail_request(cache, KEYS[7], FailureKind.INVALID, attempts=3)
    fail_request(
        cache, KEYS[8], FailureKind.REFUSED, subject="Some \x1b[2J\nsecond\ud800 words " * 9
    )
    said = run("rejects", "--requests", "--warehouse", home).stdout
    assert "8 invalid, the next build asks for 7 of them again" in said
    assert "1 refused, the next build asks for 0 of them again" in said
    assert "and 3 more" in said
    assert "doc-7" in said
    assert "because refused" in said
    assert r"Some \x1b[2J second\ud800 words" in said
    assert "\x1b" not in said
    assert "rejects --retry" in said
    only = run("rejects", "--requests", "--warehouse", home, "--reason", "refused").stdout
    assert "refused" in only
    assert "invalid" not in only


def test_rejects_as_json_hold_everything(home: Path, cache: ReplyCache) -> None:
    fail_request(cache, KEYS[0], FailureKind.INVALID)
    fail_request(cache, KEYS[1], FailureKind.REFUSED)
    found = run_json("rejects", "--requests", "--warehouse", home)
    assert found["kinds"] == {"invalid": 1, "refused": 1}
    one = next(row for row in found["failures"] if row["key"] == KEYS[0])
    assert (one["kind"], one["due"], one["attempts"]) == ("invalid", True, 1)
    assert (one["task"], one["document"], one["detail"]) == ("claims", "doc-7", "because invalid")
    assert one["messages"] == [["system", "List."], ["user", "A text."]]
    assert one["response"] == {"text": "half a pair \ud800"}


def test_no_rejects_are_told(home: Path) -> None:
    assert "no failed requests" in run("rejects", "--requests", "--warehouse", home).stdout
    assert run_json("rejects", "--requests", "--warehouse", home)["failures"] == []
    assert run_json("rejects", "--retry", "all", "--warehouse", home)["forgotten"] == 0


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
    assert "2 failures forgotten" in said
    assert left() == {KEYS[1], KEYS[2]}
    assert run_json("rejects", "--retry", "all", "--warehouse", home)["forgotten"] == 2
    assert left() == set()


def test_retry_of_something_unknown_forgets_nothing(home: Path, cache: ReplyCache) -> None:
    fail_request(cache, KEYS[0], FailureKind.INVALID)
    key, known = KEYS[1], KEYS[0]
    fails(
        3,
        "0 failures have such a key",
        "rejects",
        "--retry",
        known,
        "--retry",
        key,
        "--warehouse",
        home,
    )
    fails(3, "hex digits", "rejects", "--retry", known, "--retry", "../..", "--warehouse", home)
    fails(3, "hex digits", "rejects", "--retry", known[:4], "--warehouse", home)
    fails(2, "there are", "rejects", "--retry", "all", "--reason", "bad", "--warehouse", home)
    assert cache.read_failure(known) is not None


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("cache", ("nothing is paid twice", "sorted by key", "damaged line is named")),
        ("gc", ("several warehouses share",)),
        ("rejects", ("no usable reply", "next build asks again", "costs as any call does")),
    ],
)
def test_help_teaches(command: str, said: tuple[str, ...]) -> None:
    done = run(command, "--help")
    assert done.exit_code == 0
    text = " ".join(done.stdout.split())
    assert all(words in text for words in said)
