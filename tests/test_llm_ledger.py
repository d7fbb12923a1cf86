"""The books hold a budget for threads, processes, killed ones and builds side by side."""

import json
import multiprocessing
import os
import random
import resource
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpyramid.errors import BudgetError
from kpyramid.llm.ledger import (
    LEDGER,
    Call,
    Ledger,
    Siblings,
    Spent,
    batch_ticket,
    bound_cost,
    cost_of,
    describe_call,
    read_lines,
    read_totals,
)
from kpyramid.llm.task import Message, Request, Usage
from kpyramid.settings import LLMSettings, ModelPrice

PRICE = ModelPrice(input=0.15, output=0.6, cached_input=0.075)


def make_settings(
    budget: float | None = None, tokens: int | None = None, model: str = "m"
) -> LLMSettings:
    return LLMSettings(
        provider="openai", model=model, budget=budget, budget_tokens=tokens, prices={"m": PRICE}
    )


def make_request(text: str = "Some text.", max_tokens: int = 100, document: str = "d") -> Request:
    messages = (Message("system", "Rules."), Message("user", text))
    return Request("merged", 1, messages, {}, max_tokens, "extract", document, text)


def make_call(prompt: int, completion: int, key: str = "k", *, batch: bool = False) -> Call:
    return Call(key, "merged", "m", prompt, completion, batch=batch)


def test_a_settled_line_holds_all_facts_of_the_call_and_no_text(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl", make_settings())
    request = make_request("A secret text.")
    ticket = ledger.reserve(ledger.describe(request, "abc"))
    ledger.settle(ticket, Usage(40, 30, 10, 20), "answered", billed=True)
    reserved, settled = read_lines(tmp_path / "ledger.jsonl")[0]
    assert reserved["event"] == "reserved"
    assert {
        "event": "settled",
        "kind": "chat",
        "stage": "extract",
        "task": "merged",
        "model": "m",
        "document": "d",
        "key": "abc",
        "prompt_characters": len("Rules.A secret text."),
        "subject_characters": len("A secret text."),
        "prompt": 40,
        "completion": 30,
        "reasoning": 10,
        "cached": 20,
        "tokens": 70,
        "outcome": "answered",
        "billed": True,
        "assumed": False,
        "batch": False,
    }.items() <= settled.items()
    assert settled["cost"] == pytest.approx((20 * 0.15 + 20 * 0.075 + 30 * 0.6) / 1e6)
    assert "secret" not in (tmp_path / "ledger.jsonl").read_text()


def test_the_bound_is_above_what_any_byte_level_vocabulary_can_make_of_the_text() -> None:
    request = make_request("żółć 漢字 🙂" * 50, max_tokens=10)
    call = describe_call(request, "k", "m")
    assert call.completion_bound == 10
    assert call.prompt_bound > sum(len(m.content.encode()) for m in request.messages)


def test_a_budget_smaller_than_one_call_stops_before_the_first(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl", make_settings(budget=1e-6))
    with pytest.raises(BudgetError, match="stopped before"):
        ledger.check(describe_call(make_request(), "k", "m"))
    with pytest.raises(BudgetError) as caught:
        ledger.reserve(ledger.describe(make_request(), "k"))
    message = str(caught.value)
    for told in ("llm.budget", "0.000000 of 0.000001 dollars", "is kept", "raise", "merged"):
        assert told in message
    assert read_lines(tmp_path / "ledger.jsonl")[0] == []


def test_a_budget_in_tokens_is_held_and_named(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl", make_settings(tokens=1000))
    ticket = ledger.reserve(make_call(500, 100))
    ledger.settle(ticket, Usage(400, 100), "answered", billed=True)
    ledger.settle(ledger.reserve(make_call(400, 100)), Usage(1, 1), "answered", billed=True)
    with pytest.raises(BudgetError, match=r"llm\.budget_tokens.*502 of 1000 tokens.*up to 499"):
        ledger.reserve(make_call(400, 99))
    assert ledger.count_fitting([make_call(400, 98)] * 2)[0] == 1


def test_a_budget_in_dollars_needs_the_price_of_every_model_that_is_called(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl", make_settings(budget=1.0))
    with pytest.raises(BudgetError, match=r'\[llm\.prices\."vectors"\]'):
        ledger.reserve(describe_call(make_request(), "k", "vectors"))


def test_without_a_price_tokens_are_counted_and_the_cost_is_unknown(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl", make_settings(model="unpriced"))
    ledger.settle(
        ledger.reserve(ledger.describe(make_request(), "k")), Usage(5, 7), "answered", billed=True
    )
    totals = read_totals(tmp_path)
    assert (totals.run.tokens, totals.run.cost) == (12, None)


def test_a_billed_call_whose_reply_is_lost_counts_at_its_highest(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl", make_settings())
    ledger.settle(ledger.reserve(make_call(50, 60)), None, "transient", billed=True)
    ledger.settle(ledger.reserve(make_call(50, 60)), None, "refused", billed=False)
    assert ledger.spent() == Spent(110, round(bound_cost(Usage(50, 60), PRICE) * 1e12))
    assert read_totals(tmp_path).run.assumed == 1


def test_a_reservation_waits_while_a_call_in_flight_may_free_room(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl", make_settings(tokens=150))
    first = ledger.reserve(make_call(50, 50))
    waiter = threading.Thread(target=lambda: ledger.reserve(make_call(50, 50)))
    waiter.start()
    waiter.join(0.1)
    assert waiter.is_alive()
    ledger.settle(first, Usage(20, 20), "answered", billed=True)
    waiter.join(60)
    assert not waiter.is_alive()
    assert ledger.spent().tokens == 140


calls = st.tuples(st.integers(1, 400), st.integers(0, 400), st.floats(0, 1), st.booleans())


@given(
    plan=st.lists(calls, min_size=1, max_size=40),
    budget=st.integers(1, 4000),
    threads=st.integers(1, 4),
)
def test_whatever_calls_use_the_sum_billed_stays_below_the_budget(
    plan: list[tuple[int, int, float, bool]], budget: int, threads: int
) -> None:
    dollars = budget * 1e-7
    billed: list[tuple[int, float]] = []

    def make(ledger: Ledger, item: tuple[int, int, float, bool]) -> None:
        prompt, completion, share, lost = item
        try:
            ticket = ledger.reserve(make_call(prompt, completion))
        except BudgetError:
            return
        used = Usage(round(prompt * share), round(completion * share))
        billed.append((used.prompt + used.completion, cost_of(used, PRICE)))
        ledger.settle(ticket, None if lost else used, "answered", billed=True)

    with TemporaryDirectory() as folder, ThreadPoolExecutor(threads) as pool:
        settings = make_settings(budget=dollars, tokens=budget)
        list(pool.map(partial(make, Ledger(Path(folder) / LEDGER, settings)), plan))
    assert sum(tokens for tokens, _ in billed) <= budget
    assert sum(cost for _, cost in billed) <= dollars + 1e-12
    fits = [p + c <= budget and bound_cost(Usage(p, c), PRICE) <= dollars for p, c, _, _ in plan]
    assert billed or not any(fits[:1])


def _spend(folder: str, seed: int, tokens: int) -> None:
    """A process that calls a server: what it is billed it writes down before it settles."""
    ledger = Ledger(Path(folder) / "ledger.jsonl", make_settings(tokens=tokens))
    draw = random.Random(seed)
    while True:
        prompt, completion = draw.randint(1, 60), draw.randint(0, 60)
        try:
            ticket = ledger.reserve(make_call(prompt, completion))
        except BudgetError:
            return
        used = Usage(draw.randint(0, prompt), draw.randint(0, completion))
        bill = os.open(Path(folder) / "billed", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(bill, f"{used.prompt + used.completion}\n".encode())
        os.close(bill)
        ledger.settle(ticket, used, "answered", billed=True)


def test_killed_processes_leave_the_budget_whole(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    limit = 30_000
    alive = [context.Process(target=_spend, args=(str(tmp_path), seed, limit)) for seed in range(4)]
    for process in alive:
        process.start()
    for process in alive[:3]:  # in the midst of whatever they do
        time.sleep(0.05)
        os.kill(process.pid or 0, signal.SIGKILL)
    for process in alive:
        process.join(120)
    billed = sum(map(int, (tmp_path / "billed").read_text().split()))
    totals = read_totals(tmp_path)
    assert alive[3].exitcode == 0
    assert billed <= totals.run.tokens <= limit
    assert billed > limit / 2


def test_a_batch_is_reserved_all_or_none_and_each_item_booked_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    items = [describe_call(make_request(), key, "m", batch=True) for key in ("k1", "k2", "k3")]
    most = sum(call.prompt_bound + call.completion_bound for call in items)
    with pytest.raises(BudgetError, match="the next 3 calls"):
        Ledger(path, make_settings(tokens=most - 1)).reserve_batch("b", items)
    assert read_totals(tmp_path).run.calls == 0
    ledger = Ledger(path, make_settings(tokens=most))
    ledger.reserve_batch("b", items)
    ledger.reserve_batch("b", items)
    assert ledger.spent().tokens == most
    for process in (ledger, Ledger(path, make_settings())):
        fresh = process is ledger
        ticket = batch_ticket("b", items[0])
        assert process.settle(ticket, Usage(10, 20), "answered", billed=True) is fresh
        expired = batch_ticket("b", items[1])
        assert process.settle(expired, None, "expired", billed=False) is fresh
        assert read_totals(tmp_path).run.open == 1
    totals = read_totals(tmp_path)
    assert (totals.run.prompt, totals.run.completion, totals.run.open) == (10, 20, 1)
    half = sum(bound_cost(c.most, PRICE) for c in items[:1]) / 2
    assert totals.run.dollars == pytest.approx(cost_of(Usage(10, 20), PRICE) / 2 + half)


def test_totals_tell_stages_tasks_and_the_dearest_documents(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl", make_settings())
    for number in range(12):
        ticket = ledger.reserve(
            ledger.describe(make_request(document=f"doc-{number:02}"), f"k{number}")
        )
        ledger.settle(ticket, Usage(10, number), "answered", billed=True)
    probe = ledger.reserve(Call("", "probe", "m", 5))
    ledger.settle(probe, Usage(3, 1), "answered", billed=True)
    totals = read_totals(tmp_path)
    assert (totals.run.calls, totals.stages["extract"].calls, totals.tasks["probe"].tokens) == (
        13,
        12,
        4,
    )
    dearest = [name for name, _ in totals.list_dearest()]
    assert dearest == [f"doc-{number:02}" for number in range(11, 1, -1)]


def start_run(runs: Path, name: str, ref: str, started: str, *, finished: bool = False) -> Path:
    (runs / name / "stages").mkdir(parents=True)
    (runs / name / "run.json").write_text(json.dumps({"ref": ref, "started": started}))
    if finished:
        (runs / name / "stages" / "publish.json").write_text("{}")
    return runs / name / "ledger.jsonl"


def spend(path: Path, tokens: int) -> None:
    ledger = Ledger(path, make_settings())
    ticket = ledger.reserve(make_call(tokens, 0))
    ledger.settle(ticket, Usage(tokens), "answered", billed=True)


def test_a_budget_holds_from_one_finished_build_of_a_ref_to_the_next(tmp_path: Path) -> None:
    spend(start_run(tmp_path, "a", "main", "2026-01-01T00:00:00"), 1)
    spend(start_run(tmp_path, "b", "main", "2026-01-02T00:00:00", finished=True), 10)
    spend(start_run(tmp_path, "c", "main", "2026-01-03T00:00:00"), 100)
    Ledger(start_run(tmp_path, "d", "main", "2026-01-04T00:00:00"), make_settings()).reserve(
        make_call(1000, 0)
    )
    spend(start_run(tmp_path, "e", "other", "2026-01-04T00:00:00"), 10_000)
    spend(start_run(tmp_path, "f", "main", "2026-01-05T00:00:00"), 100_000)
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "run.json").write_text("{")
    assert Siblings(tmp_path, "main", "f").count().tokens == 1100
    assert Siblings(tmp_path, "other").count().tokens == 10_000
    assert Siblings(tmp_path / "none", "main").count() == Spent()


def test_builds_of_one_ref_side_by_side_share_the_budget(tmp_path: Path) -> None:
    first = Ledger(
        start_run(tmp_path, "a", "main", "2026-01-01T00:00:00"),
        make_settings(tokens=100),
        Siblings(tmp_path, "main", "a"),
    )
    first.settle(first.reserve(make_call(40, 0)), Usage(30), "answered", billed=True)
    second = Ledger(
        start_run(tmp_path, "b", "main", "2026-01-01T00:00:01"),
        make_settings(tokens=100),
        Siblings(tmp_path, "main", "b"),
    )
    ticket = second.reserve(make_call(60, 0))
    with pytest.raises(BudgetError, match="90 of 100 tokens"):
        first.reserve(make_call(11, 0))
    second.settle(ticket, Usage(5), "answered", billed=True)
    first.reserve(make_call(65, 0))
    with pytest.raises(BudgetError):
        second.reserve(make_call(1, 0))


# Lines of the books that a crash or a full disk cuts cost nobody else a line.


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_torn_last_line_is_counted_and_spoils_no_other(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path, make_settings())
    ticket = ledger.reserve(make_call(30, 10))
    ledger.settle(ticket, Usage(10, 5), "answered", billed=True)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    later = Ledger(path, make_settings())
    later.settle(later.reserve(make_call(7, 3)), Usage(7, 3), "answered", billed=True)
    lines, torn = read_lines(path)
    assert torn == (cut > 1)
    assert len(lines) == (4 if cut == 1 else 3)
    # The settled line is gone, so its call counts at its highest again.
    assert Ledger(path, make_settings()).spent().tokens == (25 if cut == 1 else 50)


@pytest.mark.parametrize(
    "line",
    [b"\xff\xfe", b"[]", b"{}", b'{"event":"settled","name":1,"tokens":1,"cost":1}', b"null",
     b'{"event":"settled","name":"x","tokens":1,"cost":NaN}', b'{"event":"paid"}'],
)  # fmt: skip
def test_lines_that_are_none_are_counted(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(line + b"\n")
    ledger = Ledger(path, make_settings())
    ledger.reserve(make_call(1, 1))
    assert ledger.spent().tokens == 2
    assert read_totals(tmp_path).torn == 1


def test_what_the_disk_does_not_take_is_never_called_and_never_unpaid(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path, make_settings())
    ticket = ledger.reserve(make_call(30, 10))
    path.unlink()
    path.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        ledger.reserve(make_call(30, 10))
    ledger.settle(ticket, Usage(1, 1), "answered", billed=True)  # the reply is worth more
    assert ledger.spent().tokens == 40


@contextmanager
def leave_room(path: Path, room: int) -> Iterator[None]:
    """The kernel takes so many bytes more of this file, cuts a write there, and refuses others."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("room", [0, 1, 100, -1], ids=["none", "byte", "piece", "all_but_one"])
@pytest.mark.parametrize("event", ["reserved", "settled"])
def test_a_line_that_the_disk_cuts_takes_no_other_with_it(
    tmp_path: Path, event: str, room: int
) -> None:
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path, make_settings())
    ticket = ledger.reserve(make_call(30, 10))
    length = path.stat().st_size
    if event == "reserved":
        with leave_room(path, room % length), pytest.raises(OSError, match=r"took|too large"):
            ledger.reserve(make_call(30, 10))
    else:
        with leave_room(path, room % length):
            ledger.settle(ticket, Usage(1, 1), "answered", billed=True)
    ledger.reserve(make_call(200, 0))
    assert ledger.spent().tokens == Ledger(path, make_settings()).spent().tokens == 240
    assert len(read_lines(path)[0]) == 2
    with pytest.raises(BudgetError):
        Ledger(path, make_settings(tokens=300)).reserve(make_call(61, 0))
