"""Recordings answer in a model's place: exported caches by key, recorded extractions by text."""

import json
from pathlib import Path

import pytest

from kpyramid.errors import InputError
from kpyramid.extraction.cascade.reading import Cascade
from kpyramid.extraction.cascade.recorded import (
    open_recording,
    read_extractions,
    read_triple,
    write_reply,
)
from kpyramid.extraction.cascade.tasks import Form, ask_claims
from kpyramid.extraction.cascade.windows import NO_VOCABULARY, ask_window, read_window
from kpyramid.extraction.types import Chunk, Extraction
from kpyramid.keys import JsonValue
from kpyramid.llm.cache import ReplayTransport, ReplyCache, write_recording
from kpyramid.llm.caller import Caller, KeyLocks
from kpyramid.llm.task import Failure, FailureKind, ReplyError, Request, key_request, read_response
from kpyramid.settings import CascadeSettings
from kpyramid.storage.store import FolderStore
from tests.cascade_script import Counter
from tests.rows import read_bodies

DEMO = Path(__file__).parent.parent / "examples" / "demo"
MODEL: dict[str, JsonValue] = {"name": "m", "temperature": 0.0, "seed": 0}
FORM = Form(CascadeSettings(paraphrase="llm", entities="llm", relations="llm"), 512)
TEXT = "Ann Lee founded Aster. It is in Oslo. Ann Lee left Aster in 1901."
ROW = read_bodies("replay.row")


def write_lines(path: Path, *rows: object) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return path


def ask(request: Request, path: Path) -> str:
    return read_response(ReplayTransport(open_recording(path, MODEL)).send(request))


class _Replayed:
    """A `Source` over a transport, without books and limits."""

    def __init__(self, transport: ReplayTransport) -> None:
        self._transport = transport

    def obtain(self, key: str, request: Request) -> object:
        return self._transport.send(request)


def read_chunks(recording: Path, cache: Path, *chunks: Chunk) -> list[Extraction | Failure]:
    """The whole way: transport, cache, parser, check."""
    source = _Replayed(ReplayTransport(open_recording(recording, MODEL)))
    replies = ReplyCache(FolderStore(cache))
    caller = Caller(MODEL, source, replies, KeyLocks(None))  # type: ignore[arg-type]
    cascade = Cascade(
        caller, FORM.settings, model="m", max_tokens=512, concurrency=2, progress=Counter()
    )
    return cascade.read(chunks)


# Recorded extractions.


def pose(text: str) -> Request:
    return ask_window(Chunk(text), FORM.settings, NO_VOCABULARY, 512)


def test_a_recorded_extraction_is_a_valid_merged_reply(tmp_path: Path) -> None:
    reading = read_window(ask(pose(TEXT), write_lines(tmp_path / "r", ROW)))
    assert [thing.name for thing in reading.things.values()] == ["Ann Lee", "Aster", "Oslo"]
    assert [row.sentences for row in reading.rows] == [(1,), (1, 2), (3,), (0,)]
    assert len(reading.broken) == 4


def test_every_recorded_row_becomes_a_fact_or_a_counted_reject(tmp_path: Path) -> None:
    (made,) = read_chunks(write_lines(tmp_path / "r", ROW), tmp_path / "cache", Chunk(TEXT))
    assert isinstance(made, Extraction)
    assert [(f.head, f.tail) for f in made.facts] == [
        ("Ann Lee", "Aster"),
        ("Aster", "Oslo"),
        ("Ann Lee", "1901"),
    ]
    reasons = sorted(dropped.reason for dropped in made.dropped)
    assert reasons == ["no_evidence", *["not_a_triple"] * 4]
    assert len(made.facts) + len(reasons) == len(ROW["triples"])
    shown = next(d.text for d in made.dropped if "NaN" in d.text and "Ann" in d.text)
    assert "NaN" in shown


def test_a_chunk_is_answered_by_the_passage_that_contains_it(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "r", {"text": "Other.", "entities": [], "triples": []}, ROW)
    reading = read_window(ask(pose("It is in Oslo. Ann Lee left Aster in 1901."), path))
    assert [thing.name for thing in reading.things.values()] == ["Ann Lee", "Aster", "Oslo"]
    assert [row.sentences for row in reading.rows] == [(2,), (1, 2), (2,), (0,)]


@pytest.mark.parametrize("text", ["Nobody recorded this.", TEXT + " And more."])
def test_what_was_not_recorded_is_a_failure_that_names_its_text(text: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "r", ROW)
    with pytest.raises(ReplyError, match=text[:12]) as caught:
        ask(pose(text), path)
    assert caught.value.kind is FailureKind.UNRECORDED


def test_other_tasks_are_not_in_a_recorded_extraction(tmp_path: Path) -> None:
    with pytest.raises(ReplyError, match="paraphrase") as caught:
        ask(ask_claims(Chunk(TEXT), FORM), write_lines(tmp_path / "r", ROW))
    assert caught.value.kind is FailureKind.UNRECORDED


def test_a_chunk_that_was_not_recorded_fails_alone_and_is_asked_again(tmp_path: Path) -> None:
    other = Chunk("Bo Ek founded Brio.")
    row = {"text": other.text, "entities": [], "triples": [["Bo Ek", "founded", "Brio"]]}
    before = read_chunks(write_lines(tmp_path / "r", ROW), tmp_path / "c", Chunk(TEXT), other)
    assert [isinstance(result, Failure) for result in before] == [False, True]
    after = read_chunks(write_lines(tmp_path / "r", ROW, row), tmp_path / "c", Chunk(TEXT), other)
    assert after[0] == before[0]
    assert isinstance(after[1], Extraction)
    assert after[1].facts[0].tail == "Brio"


@pytest.mark.parametrize(
    ("row", "wrong"), read_bodies("replay.a_line_that_is_no_recording_is_named")
)
def test_a_line_that_is_no_recording_is_named(row: object, wrong: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "r", ROW, row)
    with pytest.raises(InputError, match=f"line 2.*{wrong}"):
        open_recording(path, MODEL)


# An exported cache.


def export(tmp_path: Path, request: Request, content: str) -> Path:
    cache = ReplyCache(FolderStore(tmp_path / "cache"))
    raw = {
        "model": "m-2026",
        "choices": [{"message": {"content": content}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 90, "total_tokens": 990},
    }
    key = key_request(request, MODEL)
    cache.keep_reply(key, request, raw)  # type: ignore[arg-type]
    entry = cache.read_reply_entry(key)
    assert entry is not None
    write_recording(tmp_path / "export.jsonl", [entry])
    return tmp_path / "export.jsonl"


def test_an_exported_cache_answers_what_was_asked_of_the_same_model(tmp_path: Path) -> None:
    request = ask_claims(Chunk(TEXT), FORM)
    path = export(tmp_path, request, '{"claims": []}')
    assert ask(request, path) == '{"claims": []}'
    raw = ReplayTransport(open_recording(path, MODEL)).send(request)
    assert raw["model"] == "m-2026"
    assert set(raw["usage"].values()) == {0}  # type: ignore[union-attr]
    elsewhere = open_recording(path, {**MODEL, "name": "another"})
    with pytest.raises(ReplyError):
        ReplayTransport(elsewhere).send(request)
    with pytest.raises(ReplyError):
        ask(ask_claims(Chunk("Other."), FORM), path)


# What was recorded.


def test_the_demos_recording_covers_its_corpus_and_every_row_is_counted() -> None:
    corpus = (DEMO / "corpus" / "passages.jsonl").read_text("utf-8").splitlines()
    recorded = list(read_extractions(DEMO / "recorded_gpt35.jsonl"))
    assert {json.loads(line)["text"] for line in corpus} == {row.text for row in recorded}
    for passage in recorded[:40]:
        reading = read_window(write_reply(passage, passage.text))
        assert len(reading.rows) + len(reading.broken) == len(passage.triples)
        assert len(reading.broken) == sum(read_triple(row) is None for row in passage.triples)
