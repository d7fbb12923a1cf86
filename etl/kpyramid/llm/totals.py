"""What the books of a run add up to: per stage, per task, per document, in all."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from kpyramid.keys import JsonValue
from kpyramid.llm.books import LEDGER, Line, read_lines

_DEAREST = 10


@dataclass(slots=True)
class Sum:
    """Calls and what they used; `open` and `assumed` count at the highest they can have cost.

    `open`: never settled, because their process was killed. `assumed`: the reply was lost, so
    nobody knows what it used. `unpriced`: of models without a price.
    """

    calls: int = 0
    prompt: int = 0
    completion: int = 0
    reasoning: int = 0
    cached: int = 0
    tokens: int = 0
    dollars: float = 0.0
    open: int = 0
    assumed: int = 0
    unpriced: int = 0

    def add(self, line: Line) -> None:
        """Counts the last line of a call."""
        self.calls += 1
        self.tokens += cast("int", line["tokens"])
        if line["event"] == "reserved":
            self.open += 1
        else:
            self.prompt += cast("int", line["prompt"])
            self.completion += cast("int", line["completion"])
            self.reasoning += cast("int", line["reasoning"])
            self.cached += cast("int", line["cached"])
            self.assumed += bool(line["assumed"])
        if line["cost"] is None and line["tokens"]:
            self.unpriced += 1
        self.dollars += cast("float | None", line["cost"]) or 0.0

    @property
    def cost(self) -> float | None:
        """Dollars; None when a call has no known price."""
        return None if self.unpriced else round(self.dollars, 9)

    def describe(self) -> dict[str, JsonValue]:
        """As plain values."""
        return {
            "calls": self.calls,
            "tokens": self.tokens,
            "prompt": self.prompt,
            "completion": self.completion,
            "reasoning": self.reasoning,
            "cached": self.cached,
            "open": self.open,
            "assumed": self.assumed,
            "cost": self.cost,
        }


@dataclass(slots=True)
class Totals:
    """The sums of one run; `torn` counts lines that a crash cut."""

    run: Sum = field(default_factory=Sum)
    stages: dict[str, Sum] = field(default_factory=lambda: defaultdict(Sum))
    tasks: dict[str, Sum] = field(default_factory=lambda: defaultdict(Sum))
    documents: dict[str, Sum] = field(default_factory=lambda: defaultdict(Sum))
    torn: int = 0

    def list_dearest(self) -> list[tuple[str, Sum]]:
        """The documents that cost most, by money, then by tokens."""

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
    """The sums of a run's folder; all zero when it asked nothing."""
    return add_up(*read_lines(run / LEDGER))
