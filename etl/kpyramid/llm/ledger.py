"""The books of a run: every call is reserved at its highest, then settled at what it used.

All processes of the run append to one file under a lock, so that a budget holds for them
together.
"""

import contextlib
import fcntl
import json
import logging
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from kpyramid.errors import BudgetError
from kpyramid.keys import canonical_json
from kpyramid.llm.books import (
    LEDGER,
    Call,
    Line,
    Ticket,
    batch_ticket,
    count_spent,
    describe_call,
    parse_lines,
    read_lines,
    read_spent,
    write_reserved,
    write_settled,
)
from kpyramid.llm.prices import NOTHING, Spent, bound_cost, count_picodollars
from kpyramid.llm.types import Request, Usage
from kpyramid.settings import LLMSettings

log = logging.getLogger(__name__)

LAST_STAGE = "publish"
"""The stage whose mark says that a run is finished."""


class Ledger:
    """The books of one run; threads share one, every process opens its own on the same path.

    `carried` was spent before under the same budget. Without a path it counts in memory only.
    """

    def __init__(self, path: Path | None, settings: LLMSettings, carried: Spent = NOTHING) -> None:
        self._path = path
        self._settings = settings
        self._carried = carried
        self._changed = threading.Condition()
        self._offset = 0
        self._settled = NOTHING
        self._open: dict[str, Spent] = {}
        self._closed: set[str] = set()
        self._mine: set[str] = set()
        self._memory: list[Line] = []
        self.torn = 0
        """Lines that a crash cut; a call they were about was not made, or counts at its highest."""

    def bound_tokens(self, request: Request) -> int:
        """The most tokens that a request can take, prompt and reply."""
        call = describe_call(request, "", self._settings.model)
        return call.prompt_bound + call.completion_bound

    def reserve(self, request: Request, key: str) -> Ticket:
        """Sets the most that a request can cost aside; see `reserve_call`."""
        return self.reserve_call(describe_call(request, key, self._settings.model))

    def reserve_call(self, call: Call) -> Ticket:
        """Sets the most that a call can cost aside; waits while calls in flight may free room.

        Raises:
            BudgetError: it might pass the budget.
        """
        most = self._bound(call)
        with self._changed:
            while True:
                with self._books() as append:
                    if self._fits(self._total(), most):
                        ticket = Ticket(uuid.uuid4().hex[:20], call)
                        append(write_reserved(ticket, most))
                        self._mine.add(ticket.name)
                        return ticket
                if not self._mine or not self._fits(self._carried + self._settled, most):
                    raise self._refuse(call, most)
                self._changed.wait()

    def settle(self, ticket: Ticket, usage: Usage | None, outcome: str, *, billed: bool) -> bool:
        """Books what a call used; without a usage a billed one counts at its highest.

        False when that was done before, by whatever process; then nothing changes. Never raises:
        the reply was paid for and matters more; what cannot be written stays reserved at its
        highest.
        """
        price = self._settings.prices.get(ticket.call.model)
        fresh = False
        with self._changed:
            try:
                with self._books() as append:
                    fresh = ticket.name not in self._closed
                    if fresh:
                        append(write_settled(ticket, usage, outcome, billed, price))
            except OSError as e:
                log.warning("%s: a call cannot be booked and counts at its highest: %s", LEDGER, e)
            self._mine.discard(ticket.name)
            self._changed.notify_all()
        return fresh

    def book(
        self, call: Call, usage: Usage | None, outcome: str = "answered", *, billed: bool = True
    ) -> None:
        """Books a call that was made without a reservation, such as a probe."""
        self.settle(Ticket(uuid.uuid4().hex[:20], call), usage, outcome, billed=billed)

    def count_probe(self, usage: Usage) -> None:
        """Books one call that tried the endpoint out before the first request."""
        self.book(Call("", "probe", self._settings.model, 0), usage)

    def reserve_batch(self, name: str, calls: Sequence[Call]) -> None:
        """Sets the most that the calls of a batch can cost aside, all or none; again: no change.

        Raises:
            BudgetError: they might pass the budget together.
        """
        tickets = [batch_ticket(name, call) for call in calls]
        with self._changed, self._books() as append:
            known = self._closed | self._open.keys()
            fresh = [(t, self._bound(t.call)) for t in tickets if t.name not in known]
            most = sum((bound for _, bound in fresh), NOTHING)
            if not self._fits(self._total(), most):
                raise self._refuse(calls[0], most, count=len(fresh))
            for ticket, bound in fresh:
                append(write_reserved(ticket, bound))

    def spent(self) -> Spent:
        """What counts against the budget now: carried, settled, and reserved at its highest."""
        with self._changed, self._books():
            return self._total()

    def room(self) -> tuple[int | None, float | None]:
        """Tokens and dollars that are left; None without a limit."""
        spent, limits = self.spent(), self._settings
        tokens = limits.budget_tokens and max(0, limits.budget_tokens - spent.tokens)
        return tokens, limits.budget and max(0.0, limits.budget - spent.dollars)

    def lines(self) -> list[Line]:
        """Everything that was written."""
        if self._path is not None:
            return read_lines(self._path)[0]
        with self._changed:
            return list(self._memory)

    def _total(self) -> Spent:
        return sum(self._open.values(), self._carried + self._settled)

    def _fits(self, before: Spent, more: Spent) -> bool:
        total, limits = before + more, self._settings
        if limits.budget_tokens is not None and total.tokens > limits.budget_tokens:
            return False
        return limits.budget is None or total.picodollars <= count_picodollars(limits.budget)

    def _bound(self, call: Call) -> Spent:
        tokens = call.prompt_bound + call.completion_bound
        price = self._settings.prices.get(call.model)
        if price is None:
            if self._settings.budget is not None:
                raise BudgetError(
                    f"llm.budget is in dollars, and the price of {call.model!r} is not known: add "
                    f"[llm.prices.{json.dumps(call.model)}] with input and output in dollars per "
                    "million tokens, or use llm.budget_tokens"
                )
            return Spent(tokens)
        cost = bound_cost(call.prompt_bound, call.completion_bound, price, batch=call.batch)
        return Spent(tokens, count_picodollars(cost))

    def _refuse(self, call: Call, most: Spent, count: int = 1) -> BudgetError:
        total, limits = self._total(), self._settings
        what = "the next call" if count == 1 else f"the next {count} calls"
        if limits.budget_tokens is not None and total.tokens + most.tokens > limits.budget_tokens:
            name = "llm.budget_tokens"
            state = f"{total.tokens} of {limits.budget_tokens} tokens"
            more = f"may take up to {most.tokens}"
        else:
            name = "llm.budget"
            state = f"{total.dollars:.6f} of {limits.budget:.6f} dollars"
            more = f"may cost up to {most.dollars:.6f}"
        return BudgetError(
            f"stopped before the budget {name} could be passed: {state} are spent or "
            f"reserved, and {what} ({call.task}) {more}. Every reply that was paid for is kept "
            f"and not asked again: raise {name} and run the same command, and "
            "it goes on where it stopped; spending counts from one finished build of a ref to "
            "the next"
        )

    @contextlib.contextmanager
    def _books(self) -> Iterator[Callable[[Line], None]]:
        """All lines read and nobody else writing; gives what appends one."""
        if self._path is None:
            yield self._append_to_memory
            return
        file = _open_shared(self._path)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._read_news(file)
            yield lambda line: self._append(file, line)
        finally:
            os.close(file)

    def _append_to_memory(self, line: Line) -> None:
        self._memory.append(line)
        self._apply(line)

    def _append(self, file: int, line: Line) -> None:
        data = canonical_json(line) + b"\n"
        written = os.write(file, data)
        if written != len(data):
            raise OSError(f"{self._path}: the disk took {written} of {len(data)} bytes")
        self._offset += written
        self._apply(line)

    def _read_news(self, file: int) -> None:
        """Reads what others wrote; a line that its writer's death cut is ended and counted."""
        size = os.fstat(file).st_size
        if size == self._offset:
            return
        data = os.pread(file, size - self._offset, self._offset)
        if not data.endswith(b"\n"):
            os.write(file, b"\n")
            data += b"\n"
        self._offset += len(data)
        lines, torn = parse_lines(data)
        self.torn += torn
        for line in lines:
            self._apply(line)

    def _apply(self, line: Line) -> None:
        name, spent = str(line["name"]), read_spent(line)
        if name in self._closed:
            return
        if line["event"] == "reserved":
            self._open[name] = spent
            return
        self._open.pop(name, None)
        self._closed.add(name)
        self._settled += spent


def carry_spent(runs: Path, ref: str, leave_out: str | None = None) -> Spent:
    """What the runs of a ref have spent since the last of them that finished was started.

    `leave_out` names the run that goes on: its own books say what it spent.
    """
    started: dict[str, str] = {}
    finished = ""
    for record in sorted(runs.glob("*/run.json")):
        try:
            told = json.loads(record.read_bytes())
            if told["ref"] != ref:
                continue
            name, start = record.parent.name, str(told["started"])
        except (OSError, ValueError, KeyError, TypeError) as e:
            log.warning("%s cannot be read, its spending is not carried over: %s", record, e)
            continue
        if (record.parent / "stages" / f"{LAST_STAGE}.json").exists():
            finished = max(finished, start)
        else:
            started[name] = start
    since = [name for name, start in started.items() if start >= finished and name != leave_out]
    return sum((count_spent(read_lines(runs / name / LEDGER)[0]) for name in since), NOTHING)


def _open_shared(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o644)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, flags, 0o644)
