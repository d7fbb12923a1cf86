"""A caller asks once: replies are stored before they are read, failures are asked again as due."""

import json
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from kpyramid.errors import BudgetError, EndpointError
from kpyramid.keys import JsonValue
from kpyramid.llm.cache import ReplyCache
from kpyramid.llm.caller import MAX_ATTEMPTS, Caller, Collector, KeyLocks, Source
from kpyramid.llm.task import Failure, FailureKind, Message, ReplyError, Request, key_request
from kpyramid.storage.store import FolderStore

MODEL: Mapping[str, JsonValue] = {"name": "test-model", "temperature": 0.0, "seed": 0}
REQUEST = Request(
    task="claims",
    version=1,
    messages=(Message("system", "List claims."), Message("user", "Ada wrote the first program.")),
    schema={"type": "object"},
    max_tokens=100,
    stage="extract",
    document="doc-1",
    subject="Ada wrote the first program.",
)
RAISED = replace(REQUEST, max_tokens=200)
KEY, RAISED_KEY = key_request(REQUEST, MODEL), key_request(RAISED, MODEL)


def complete(content: str | None, finish: str = "stop", **message: JsonValue) -> JsonValue:
    """A chat completion as servers send it."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "test-model-2025",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "message": {"role": "assistant", "content": content, **message},
            }
        ],
        "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
    }


GOOD = complete('{"claims": ["Ada wrote a program"]}')
OTHER = complete('{"claims": ["Another one"]}')
BROKEN = complete('{"claims": [')
CUT = complete('{"claims": ["Ada', "length")
REFUSED = complete(None, refusal="I cannot help with that.")
DOWN = ReplyError(FailureKind.UNREACHED, "5 calls failed")


@dataclass
class Script:
    """A source that gives what it was told, in this order, and notes what it was asked."""

    answers: "deque[JsonValue | BaseException]" = field(default_factory=deque)
    asked: list[int] = field(default_factory=list)

    def obtain(self, key: str, request: Request) -> Mapping[str, JsonValue]:
        assert key == key_request(request, MODEL)
        self.asked.append(request.max_tokens)
        answer = self.answers.popleft()
        if isinstance(answer, BaseException):
            raise answer
        assert isinstance(answer, Mapping)
        return answer


def script(*answers: "JsonValue | BaseException") -> Script:
    return Script(deque(answers))


def parse(content: str) -> list[str]:
    try:
        return list(json.loads(content)["claims"])
    except ValueError as e:
        raise ReplyError(FailureKind.INVALID, str(e)) from e


@pytest.fixture
def cache(tmp_path: Path) -> ReplyCache:
    return ReplyCache(FolderStore(tmp_path / "cache"))


def start(source: Source, cache: ReplyCache) -> Caller:
    """A caller as a new run has it."""
    return Caller(MODEL, source, cache, KeyLocks(None))


def ask(source: Source, cache: ReplyCache) -> list[str] | Failure:
    return start(source, cache).ask(REQUEST, parse)


def ask_in_vain(source: Source, cache: ReplyCache) -> Failure:
    outcome = ask(source, cache)
    assert isinstance(outcome, Failure)
    assert outcome.key == KEY
    return outcome


def read_entry(cache: ReplyCache, key: str = KEY) -> tuple[FailureKind, int] | None:
    found = cache.read_failure(key)
    return None if found is None else (found.kind, found.attempts)


def test_first_reply_wins_over_one_that_comes_later(cache: ReplyCache) -> None:
    """Another machine asked at the same time, and was first to store."""

    class Slow:
        def obtain(self, key: str, request: Request) -> Mapping[str, JsonValue]:
            assert isinstance(OTHER, Mapping)
            assert isinstance(GOOD, Mapping)
            cache.keep_reply(key, request, OTHER)
            return GOOD

    assert ask(Slow(), cache) == ["Another one"]
    assert cache.read_reply(KEY) == OTHER


def test_error_of_ours_while_reading_keeps_the_reply(cache: ReplyCache) -> None:
    def fail(content: str) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        start(script(GOOD), cache).ask(REQUEST, fail)
    assert cache.read_reply(KEY) == GOOD
    assert read_entry(cache) is None


def test_answer_with_twice_the_room_stands_for_the_request(cache: ReplyCache) -> None:
    ask(script(CUT, GOOD), cache)
    cache.drop_reply(RAISED_KEY)  # what `gc --replies` may do: no result names it
    source = script()
    assert ask(source, cache) == ["Ada wrote a program"]
    assert source.asked == []


@pytest.mark.parametrize(
    "stop", [DOWN, BudgetError("no money left"), EndpointError("wrong key"), KeyboardInterrupt()]
)
def test_truncated_reply_is_not_paid_again_when_the_second_question_has_no_answer(
    cache: ReplyCache, stop: BaseException
) -> None:
    first = script(CUT, stop)
    if isinstance(stop, ReplyError):
        assert ask_in_vain(first, cache).kind is FailureKind.UNREACHED
    else:
        with pytest.raises(type(stop)):
            ask(first, cache)
    assert read_entry(cache) == (FailureKind.TRUNCATED, 1)
    assert [entry.failure.key for entry in cache.list_failures()] == [KEY]
    second = script(GOOD)
    assert ask(second, cache) == ["Ada wrote a program"]
    assert second.asked == [200]


def test_bad_reply_to_the_second_question_is_the_failure_of_the_first(cache: ReplyCache) -> None:
    failure = ask_in_vain(script(CUT, BROKEN), cache)
    assert (failure.kind, failure.attempts) == (FailureKind.INVALID, 1)
    assert [entry.failure for entry in cache.list_failures()] == [failure]


def test_collector_notes_what_a_run_would_ask_and_stores_nothing(cache: ReplyCache) -> None:
    collector = Collector()
    assert ask_in_vain(collector, cache).kind is FailureKind.PENDING
    assert collector.pending == {KEY: REQUEST}
    assert list(cache.list_failures()) == []
    ask(script(GOOD), cache)
    known = Collector()
    assert ask(known, cache) == ["Ada wrote a program"]
    assert known.pending == {}


def test_collector_notes_the_second_question_of_a_truncated_reply(cache: ReplyCache) -> None:
    ask_in_vain(script(CUT, CUT), cache)
    collector = Collector()
    assert ask_in_vain(collector, cache).kind is FailureKind.PENDING
    assert collector.pending == {RAISED_KEY: RAISED}
    assert read_entry(cache) == (FailureKind.TRUNCATED, 1)


def test_collector_does_not_note_what_no_run_asks_again(cache: ReplyCache) -> None:
    ask_in_vain(script(REFUSED), cache)
    collector = Collector()
    assert ask_in_vain(collector, cache).kind is FailureKind.REFUSED
    assert collector.pending == {}


def test_threads_that_ask_the_same_pay_once(cache: ReplyCache) -> None:
    class Slow(Script):
        def obtain(self, key: str, request: Request) -> Mapping[str, JsonValue]:
            time.sleep(0.05)
            return super().obtain(key, request)

    source = Slow(deque([GOOD]))
    caller = start(source, cache)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: caller.ask(REQUEST, parse), range(8)))
    assert found == [["Ada wrote a program"]] * 8
    assert source.asked == [100]
    assert (caller.counts.asked, caller.counts.hits) == (8, 7)


def test_threads_that_ask_other_things_do_not_wait_for_each_other(cache: ReplyCache) -> None:
    together = threading.Barrier(4, timeout=120)

    class Meeting:
        def obtain(self, key: str, request: Request) -> Mapping[str, JsonValue]:
            together.wait()
            assert isinstance(GOOD, Mapping)
            return GOOD

    caller = start(Meeting(), cache)

    def requests() -> Iterator[Request]:
        for number in range(4):
            yield replace(REQUEST, messages=(Message("user", str(number)),))

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda one: caller.ask(one, parse), requests()))
    assert found == [["Ada wrote a program"]] * 4


@dataclass
class Rival:
    """A source that gives up, while another machine stores the reply that it was paid for."""

    cache: ReplyCache

    def obtain(self, key: str, request: Request) -> Mapping[str, JsonValue]:
        assert isinstance(GOOD, Mapping)
        self.cache.keep_reply(key, request, GOOD)
        raise DOWN


def test_a_reply_that_came_while_the_endpoint_was_given_up_is_kept(cache: ReplyCache) -> None:
    ask_in_vain(Rival(cache), cache)

    assert cache.read_reply(KEY) == GOOD
    assert ask(script(), cache) == ["Ada wrote a program"]
    assert cache.read_failure(KEY) is None


@pytest.mark.parametrize("bad", [REFUSED, CUT])
def test_a_reply_that_came_after_a_failure_is_taken(cache: ReplyCache, bad: JsonValue) -> None:
    source = script(bad, CUT)
    for _ in range(MAX_ATTEMPTS):
        ask_in_vain(source, cache)
        source.answers.append(CUT)
    assert isinstance(GOOD, Mapping)
    cache.keep_reply(KEY, REQUEST, GOOD)  # as an import does, or a late batch

    assert ask(script(), cache) == ["Ada wrote a program"]
    assert cache.read_failure(KEY) is None
