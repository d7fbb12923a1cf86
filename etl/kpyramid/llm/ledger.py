"""The ledger: every call is reserved at its highest cost, settled at its usage, summed per run."""

import contextlib
import fcntl
import json
import logging
import os
import threading
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal, cast

from kpyramid.errors import BudgetError, EndpointError
from kpyramid.keys import JsonValue, canonical_json
from kpyramid.llm.task import ReplyError, Request, ThreadCounts, TransientError, Usage, read_usage
from kpyramid.settings import LLMSettings, ModelPrice

# Money: the cost of tokens, and exact sums.

_MILLION = 1_000_000
_PICO = 10**12
"""Sums are in whole picodollars: one is a millionth of a cent per million tokens."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens and money, added without rounding."""

    tokens: int = 0
    picodollars: int = 0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.tokens + other.tokens, self.picodollars + other.picodollars)

    @property
    def dollars(self) -> float:
        return self.picodollars / _PICO


NOTHING = Spent()


def count_picodollars(dollars: float) -> int:
    """An amount of dollars as whole picodollars."""
    return round(dollars * _PICO)


def cost_of(usage: Usage, price: ModelPrice, *, batch: bool = False) -> float:
    """US dollars of one call; input that the server had cached has a price of its own."""
    cached = min(usage.cached, usage.prompt)
    cached_price = price.input if price.cached_input is None else price.cached_input
    dollars = (
        (usage.prompt - cached) * price.input
        + cached * cached_price
        + usage.completion * price.output
    ) / _MILLION
    return dollars * (price.batch if batch else 1.0)


def bound_cost(usage: Usage, price: ModelPrice, *, batch: bool = False) -> float:
    """The most that a call of so many tokens can cost, whatever part the server had cached."""
    cached = usage.prompt if (price.cached_input or 0.0) > price.input else 0
    return cost_of(replace(usage, cached=cached), price, batch=batch)


# The lines of a ledger: one JSON object per event of a call.
# No text that was sent or received stands in one, and no secret.

LEDGER = "ledger.jsonl"
"""Name of the ledger's file in a run's folder."""

_FRAME_TOKENS, _MESSAGE_TOKENS = 64, 16
"""Tokens that servers add to a prompt and to each message; chat templates stay well below."""

Line = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Call:
    """The ledger's description of a call without its usage; bounds are its most tokens."""

    key: str
    task: str
    model: str
    prompt_bound: int
    completion_bound: int = 0
    stage: str = ""
    document: str | None = None
    prompt_characters: int = 0
    subject_characters: int = 0
    kind: Literal["chat", "embeddings"] = "chat"
    batch: bool = False

    @property
    def most(self) -> Usage:
        """The most tokens of the call."""
        return Usage(self.prompt_bound, self.completion_bound)


@dataclass(frozen=True, slots=True)
class Ticket:
    """A reservation: settled once, or counted at its highest cost for ever."""

    name: str
    call: Call


def describe_call(request: Request, key: str, model: str, *, batch: bool = False) -> Call:
    """The ledger's description of a request.

    No text has more tokens than bytes in any byte-level vocabulary; the schema is sent too.
    """
    count = sum(len(m.content.encode("utf-8", "surrogatepass")) for m in request.messages)
    count += _FRAME_TOKENS + _MESSAGE_TOKENS * len(request.messages)
    return Call(
        key=key,
        task=request.task,
        model=model,
        prompt_bound=count + (len(canonical_json(request.schema)) if request.schema else 0),
        completion_bound=request.max_tokens,
        stage=request.stage,
        document=request.document,
        prompt_characters=request.prompt_characters,
        subject_characters=len(request.subject),
        batch=batch,
    )


def batch_ticket(batch: str, call: Call) -> Ticket:
    """The reservation of a call in a batch, the same for every process that collects it."""
    return Ticket(f"{batch}/{call.key}", call)


def write_reserved(ticket: Ticket, most: Spent) -> Line:
    """The line that reserves the highest cost of a call."""
    cost = most.dollars if most.picodollars else None
    return {"event": "reserved", **_describe(ticket), "tokens": most.tokens, "cost": cost}


def write_settled(
    ticket: Ticket, usage: Usage | None, outcome: str, billed: bool, price: ModelPrice | None
) -> Line:
    """The line of a finished call; a billed one without usage counts at its highest cost."""
    call = ticket.call
    assumed = billed and usage is None
    used = (usage or call.most) if billed else Usage()
    cost = None
    if price is not None:
        find_cost = bound_cost if assumed else cost_of
        cost = find_cost(used, price, batch=call.batch)
    return {
        "event": "settled",
        **_describe(ticket),
        "outcome": outcome,
        "billed": billed,
        "assumed": assumed,
        **asdict(used),
        "tokens": used.total,
        "cost": cost,
    }


def _describe(ticket: Ticket) -> dict[str, JsonValue]:
    return {"name": ticket.name, **asdict(ticket.call)}


def read_spent(line: Line) -> Spent:
    """The tokens and money of a line."""
    cost = cast("float | None", line["cost"])
    return Spent(cast("int", line["tokens"]), count_picodollars(cost or 0.0))


def parse_lines(data: bytes) -> tuple[list[Line], int]:
    """The lines, and the number of those that a crash cut."""
    lines: list[Line] = []
    torn = 0
    for text in data.splitlines():
        try:
            line = json.loads(text)
            read_spent(line)
            if line["event"] not in ("reserved", "settled") or not isinstance(line["name"], str):
                raise ValueError("no event of a call")
            lines.append(line)
        except (ValueError, KeyError, TypeError, OverflowError):
            torn += bool(text)
    return lines, torn


def read_lines(path: Path) -> tuple[list[Line], int]:
    """The lines of a ledger, empty if there is none, and the number of those that a crash cut."""
    try:
        return parse_lines(path.read_bytes())
    except FileNotFoundError:
        return [], 0


# Sums of growing ledgers: a run's own, and those of other runs of its ref.

log = logging.getLogger(__name__)

LAST_STAGE = "publish"
"""The stage whose mark shows that a run is finished."""


class Tally:
    """The sums of one growing ledger; reading goes on where it ended."""

    def __init__(self) -> None:
        self.settled = NOTHING
        self.total = NOTHING
        """What counts against a budget: settled, and reserved at its highest."""
        self.reserved: dict[str, Spent] = {}
        self.closed: set[str] = set()
        self._offset = 0
        self._whole = True

    def apply(self, line: Line) -> None:
        """Counts a line; further lines of a settled call do not count."""
        name, spent = str(line["name"]), read_spent(line)
        if name in self.closed:
            return
        held, total = self.reserved.pop(name, NOTHING), self.total + spent
        self.total = Spent(total.tokens - held.tokens, total.picodollars - held.picodollars)
        if line["event"] == "reserved":
            self.reserved[name] = spent
        else:
            self.closed.add(name)
            self.settled += spent

    def read_on(self, file: int) -> bool:
        """Counts the new lines; returns whether the last line is complete."""
        size = os.fstat(file).st_size
        if size <= self._offset:
            return self._whole
        data = os.pread(file, size - self._offset, self._offset)
        self._offset += len(data)
        for line in parse_lines(data)[0]:
            self.apply(line)
        self._whole = data.endswith(b"\n")
        return self._whole


class Siblings:
    """The other runs of a ref that spend under the same budget as the run `leave_out`.

    These are the unfinished ones that started after the last finished one, and all that start while
    this object exists.
    """

    def __init__(self, runs: Path, ref: str, leave_out: str | None = None) -> None:
        self.runs = runs
        self._ref = ref
        self._known: set[str] = {leave_out} if leave_out else set()
        self._tallies: dict[Path, Tally] = {}
        started: dict[str, str] = {}
        finished = ""
        for name, start in self._find_new().items():
            if (runs / name / "stages" / f"{LAST_STAGE}.json").exists():
                finished = max(finished, start)
            else:
                started[name] = start
        self._follow(name for name, start in started.items() if start >= finished)

    def count(self) -> Spent:
        """Their spending and reservations so far; no process may be writing."""
        self._follow(self._find_new())
        for path, tally in self._tallies.items():
            with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
                tally.read_on(file.fileno())
        return sum((tally.total for tally in self._tallies.values()), NOTHING)

    def _follow(self, names: Iterable[str]) -> None:
        for name in names:
            self._tallies[self.runs / name / LEDGER] = Tally()

    def _find_new(self) -> dict[str, str]:
        """The start times of the ref's new runs, by name."""
        started: dict[str, str] = {}
        try:
            with os.scandir(self.runs) as entries:  # before every call, so no paths are made
                names = sorted({entry.name for entry in entries} - self._known)
        except FileNotFoundError:
            return started
        for name in names:
            record = self.runs / name / "run.json"
            try:
                values = json.loads(record.read_bytes())
                if values["ref"] == self._ref:
                    started[name] = str(values["started"])
            except (FileNotFoundError, NotADirectoryError):
                continue  # it may be written yet
            except (OSError, ValueError, KeyError, TypeError) as e:
                log.warning("%s cannot be read, its spending is not counted: %s", record, e)
            self._known.add(name)
        return started


# The sums of a run's ledger: per stage, per task, per document, in all.

_DEAREST = 10


@dataclass(slots=True)
class Sum:
    """Calls and their usage; `open` and `assumed` count at their highest cost.

    `open`: never settled, because their process was killed. `assumed`: the reply was lost, so their
    usage is unknown. `unpriced`: of models without a price.
    """

    calls: int = 0
    tokens: int = 0
    prompt: int = 0
    completion: int = 0
    reasoning: int = 0
    cached: int = 0
    open: int = 0
    assumed: int = 0
    unpriced: int = 0
    dollars: float = 0.0

    def add(self, line: Line) -> None:
        """Counts the last line of a call."""
        self.calls += 1
        self.open += line["event"] == "reserved"
        for name in ("tokens", "prompt", "completion", "reasoning", "cached", "assumed"):
            # A call that is open has no line of what it used.
            setattr(self, name, getattr(self, name) + line.get(name, 0))
        self.unpriced += line["cost"] is None and bool(line["tokens"])
        self.dollars += cast("float | None", line["cost"]) or 0.0

    @property
    def cost(self) -> float | None:
        """Dollars; None if no call has a known price."""
        return None if self.unpriced else round(self.dollars, 9)

    def describe(self) -> dict[str, JsonValue]:
        """As plain values."""
        values = asdict(self)
        del values["dollars"], values["unpriced"]
        return {**values, "cost": self.cost}


@dataclass(slots=True)
class Totals:
    """The sums of one run; `torn` counts lines that a crash cut."""

    run: Sum = field(default_factory=Sum)
    stages: dict[str, Sum] = field(default_factory=lambda: defaultdict(Sum))
    tasks: dict[str, Sum] = field(default_factory=lambda: defaultdict(Sum))
    documents: dict[str, Sum] = field(default_factory=lambda: defaultdict(Sum))
    torn: int = 0

    def list_dearest(self) -> list[tuple[str, Sum]]:
        """The most expensive documents, by money, then by tokens."""

        def rank(item: tuple[str, Sum]) -> tuple[float, int, str]:
            return (-item[1].dollars, -item[1].tokens, item[0])

        return sorted(self.documents.items(), key=rank)[:_DEAREST]


def add_up(lines: Iterable[Line], torn: int = 0) -> Totals:
    """The sums of a ledger's lines."""
    last: dict[str, Line] = {}
    for line in lines:
        name = str(line["name"])
        if name not in last or last[name]["event"] == "reserved":
            last[name] = line
    totals = Totals(torn=torn)
    for line in last.values():
        totals.run.add(line)
        totals.stages[str(line["stage"])].add(line)
        totals.tasks[str(line["task"])].add(line)
        if line["document"] is not None:
            totals.documents[str(line["document"])].add(line)
    return totals


def read_totals(run: Path) -> Totals:
    """The sums of a run's folder; all zero if it made no call."""
    return add_up(*read_lines(run / LEDGER))


# The ledger of a run: every call is reserved at its highest cost, then settled at its usage.
# All processes of the run append to one file under a lock, so that a budget holds for them
# together.

_LOCK = ".ledger.lock"
"""Lock beside the runs of a warehouse, held while one of them reads or writes its ledger."""


class Ledger:
    """The ledger of one run; threads share one, every process opens its own on the same path.

    `siblings` spend under the same budget.
    """

    def __init__(self, path: Path, settings: LLMSettings, siblings: Siblings | None = None) -> None:
        self._path = path
        self._settings = settings
        self._siblings = siblings
        self._lock = (siblings.runs if siblings else path.parent) / _LOCK
        self._changed = threading.Condition()
        self._tally = Tally()
        self._mine: set[str] = set()
        self.by_thread = ThreadCounts()
        """What each thread's calls were settled at; its callers count the calls."""

    def describe(self, request: Request, key: str) -> Call:
        """The entry for a request to the model of the settings."""
        return describe_call(request, key, self._settings.model)

    def pay(
        self,
        call: Call,
        request: Request,
        obtain: Callable[[], Mapping[str, JsonValue]],
    ) -> Mapping[str, JsonValue]:
        """The raw reply of `obtain`, reserved before and settled after.

        Raises:
            BudgetError: it might pass the budget; `obtain` was not called.
        """
        ticket = self.reserve(call)
        try:
            raw = obtain()
        except TransientError as e:
            # What the server may have done it may have billed: it counts at its highest.
            self.settle(ticket, None, "transient", billed=e.sent)
            raise
        except (ReplyError, EndpointError):
            self.settle(ticket, None, "refused", billed=False)
            raise
        except BaseException:
            self.settle(ticket, None, "interrupted", billed=True)
            raise
        self.settle(ticket, read_usage(raw, request), "answered", billed=True)
        return raw

    def reserve(self, call: Call) -> Ticket:
        """Reserves the highest cost of a call; waits while calls in flight may release some.

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
        """Passes when the highest cost of a call can still be reserved.

        Raises:
            BudgetError: `reserve` would refuse it.
        """
        if not self._is_limited:
            return
        most = self._bound(call)
        with self._changed, self._books():
            total = self._tally.settled if self._mine else self._total()
            if not self._fits(total, most):
                raise self._refuse(call, most, total)

    def settle(self, ticket: Ticket, usage: Usage | None, outcome: str, *, billed: bool) -> bool:
        """Books the usage of a call; without one a billed call counts at its highest cost.

        Returns False, without any change, if a process did so before. Never raises: the reply was
        paid for and matters more; if the line cannot be written, the reservation stays.
        """
        price = self._settings.prices.get(ticket.call.model)
        line = write_settled(ticket, usage, outcome, billed, price)
        spent = read_spent(line)
        self.by_thread.tokens += spent.tokens
        self.by_thread.dollars += spent.dollars
        self.by_thread.unpriced += price is None and spent.tokens > 0
        fresh = False
        with self._changed:
            try:
                with self._books() as append:
                    fresh = ticket.name not in self._tally.closed
                    if fresh:
                        append(line)
            except OSError as e:
                log.warning("%s: a call cannot be booked and counts at its highest: %s", LEDGER, e)
            self._mine.discard(ticket.name)
            self._changed.notify_all()
        return fresh

    def reserve_batch(self, name: str, calls: Sequence[Call]) -> None:
        """Reserves the highest cost of a batch's calls, all or none; repeated: no change.

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

    def spent(self) -> Spent:
        """The amount that counts against the budget: settled, and reserved at its highest cost."""
        with self._changed, self._books():
            return self._total()

    def count_fitting(self, calls: Sequence[Call]) -> tuple[int, BudgetError | None]:
        """The number of leading calls that can be reserved, and the error for the next one."""
        total = self.spent()
        for count, call in enumerate(calls):
            most = self._bound(call)
            if not self._fits(total, most):
                return count, self._refuse(call, most, total)
            total += most
        return len(calls), None

    def _total(self) -> Spent:
        return self._tally.total + (self._siblings.count() if self._siblings else NOTHING)

    @property
    def _is_limited(self) -> bool:
        return self._settings.budget is not None or self._settings.budget_tokens is not None

    def _fits(self, before: Spent, more: Spent) -> bool:
        total, limits = before + more, self._settings
        if limits.budget_tokens is not None and total.tokens > limits.budget_tokens:
            return False
        return limits.budget is None or total.picodollars <= count_picodollars(limits.budget)

    def _bound(self, call: Call) -> Spent:
        tokens = call.most.total
        price = self._settings.prices.get(call.model)
        if price is None:
            if self._settings.budget is not None:
                raise BudgetError(
                    f"llm.budget is in dollars, and the price of {call.model!r} is not known: add "
                    f"[llm.prices.{json.dumps(call.model)}] with input and output in dollars per "
                    "million tokens, or use llm.budget_tokens"
                )
            return Spent(tokens)
        cost = bound_cost(call.most, price, batch=call.batch)
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
        """Locks the ledgers and reads all lines; gives a function that appends one."""
        with _open_shared(self._lock) as lock, _open_shared(self._path) as file:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self._tally.read_on(file):
                os.write(file, b"\n")  # what was cut does not spoil the next line
            yield lambda line: self._append(file, line)

    def _append(self, file: int, line: Line) -> None:
        data = canonical_json(line) + b"\n"
        before = os.fstat(file).st_size
        written = os.write(file, data)
        if written != len(data):
            os.ftruncate(file, before)
            raise OSError(f"{self._path}: the disk took {written} of {len(data)} bytes")
        self._tally.read_on(file)


def merge_books(runs: Path, run: str, data: bytes) -> None:
    """Adds the new lines of another machine's ledger to that of a run."""
    path = runs / run / LEDGER
    with _open_shared(runs / _LOCK) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = path.read_bytes() if path.exists() else b""
        lines = {*known.splitlines()}
        fresh = [line for line in data.splitlines() if line not in lines]
        if fresh:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                torn = b"\n" if known and not known.endswith(b"\n") else b""
                file.write(torn + b"\n".join(fresh) + b"\n")


@contextlib.contextmanager
def _open_shared(path: Path) -> Iterator[int]:
    """A file that processes append to, made where there is none; its lock ends with the block."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        yield file
    finally:
        os.close(file)
