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
    describe_call,
    read_lines,
    write_reserved,
    write_settled,
)
from kpyramid.llm.prices import NOTHING, Spent, bound_cost, count_picodollars
from kpyramid.llm.tally import Siblings, Tally
from kpyramid.llm.totals import Totals, add_up
from kpyramid.llm.types import Request, Usage
from kpyramid.model_settings import LLMSettings

log = logging.getLogger(__name__)

_LOCK = ".ledger.lock"
"""Beside the runs of a warehouse: held while one of them reads or writes its books."""


class Ledger:
    """The books of one run; threads share one, every process opens its own on the same path.

    `carried` was spent before under the same budget; siblings may go on spending. Without a path
    it counts in memory only.
    """

    def __init__(
        self, path: Path | None, settings: LLMSettings, carried: Spent | Siblings = NOTHING
    ) -> None:
        self._path = path
        self._settings = settings
        self._carried = carried
        shared = carried.runs if isinstance(carried, Siblings) else (path or Path()).parent
        self._lock = shared / _LOCK
        self._changed = threading.Condition()
        self._tally = Tally()
        self._mine: set[str] = set()
        self._memory: list[Line] = []

    def describe(self, request: Request, key: str) -> Call:
        """What the books say of a request to the model of the settings."""
        return describe_call(request, key, self._settings.model)

    def reserve(self, request: Request, key: str) -> Ticket:
        """Sets the most that a request can cost aside; see `reserve_call`."""
        return self.reserve_call(self.describe(request, key))

    def reserve_call(self, call: Call) -> Ticket:
        """Sets the most that a call can cost aside; waits while calls in flight may free room.

        Raises:
            BudgetError: it might pass the budget.
        """
        most = self._bound(call)
        with self._changed:
            while True:
                with self._books() as append:
                    total = self._total() if self._is_limited else NOTHING
                    if self._fits(total, most):
                        ticket = Ticket(uuid.uuid4().hex[:20], call)
                        append(write_reserved(ticket, most))
                        self._mine.add(ticket.name)
                        return ticket
                if not self._mine or not self._fits(self._tally.settled, most):
                    raise self._refuse(call, most, total)
                self._changed.wait()

    def check(self, call: Call) -> None:
        """Passes when the most that a call can cost may still be set aside.

        Raises:
            BudgetError: `reserve_call` would refuse it.
        """
        if not self._is_limited:
            return
        most = self._bound(call)
        with self._changed, self._books():
            total = self._tally.settled if self._mine else self._total()
            if not self._fits(total, most):
                raise self._refuse(call, most, total)

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
                    fresh = ticket.name not in self._tally.closed
                    if fresh:
                        append(write_settled(ticket, usage, outcome, billed, price))
            except OSError as e:
                log.warning("%s: a call cannot be booked and counts at its highest: %s", LEDGER, e)
            self._mine.discard(ticket.name)
            self._changed.notify_all()
        return fresh

    def reserve_batch(self, name: str, calls: Sequence[Call]) -> None:
        """Sets the most that the calls of a batch can cost aside, all or none; again: no change.

        Raises:
            BudgetError: they might pass the budget together.
        """
        tickets = [batch_ticket(name, call) for call in calls]
        with self._changed, self._books() as append:
            known = self._tally.closed | self._tally.reserved.keys()
            fresh = [(t, self._bound(t.call)) for t in tickets if t.name not in known]
            most = sum((bound for _, bound in fresh), NOTHING)
            total = self._total()
            if not self._fits(total, most):
                raise self._refuse(calls[0], most, total, count=len(fresh))
            for ticket, bound in fresh:
                append(write_reserved(ticket, bound))

    def list_owed(self) -> set[str]:
        """The batches with calls that are reserved and not settled."""
        with self._changed, self._books():
            return {name.partition("/")[0] for name in self._tally.reserved if "/" in name}

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
        """What was booked, line by line."""
        if self._path is not None:
            return read_lines(self._path)[0]
        with self._changed:
            return list(self._memory)

    def totals(self) -> Totals:
        """What was booked, per stage, task and document."""
        return add_up(self.lines(), self._tally.torn)

    def _total(self) -> Spent:
        carried = self._carried
        return self._tally.total + (carried if isinstance(carried, Spent) else carried.count())

    @property
    def _is_limited(self) -> bool:
        return self._settings.budget is not None or self._settings.budget_tokens is not None

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

    def _refuse(self, call: Call, most: Spent, total: Spent, count: int = 1) -> BudgetError:
        limits = self._settings
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
        with contextlib.ExitStack() as stack:
            lock, file = _open_shared(self._lock), _open_shared(self._path)
            stack.callback(os.close, lock)
            stack.callback(os.close, file)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self._tally.read_on(file):
                os.write(file, b"\n")  # what was cut does not spoil the next line
            yield lambda line: self._append(file, line)

    def _append_to_memory(self, line: Line) -> None:
        self._memory.append(line)
        self._tally.apply(line)

    def _append(self, file: int, line: Line) -> None:
        data = canonical_json(line) + b"\n"
        before = os.fstat(file).st_size
        written = os.write(file, data)
        if written != len(data):
            os.ftruncate(file, before)
            raise OSError(f"{self._path}: the disk took {written} of {len(data)} bytes")
        self._tally.read_on(file)


def _open_shared(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o644)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, flags, 0o644)
