"""What ledgers count for while they grow: a run's own, and those of other runs of its ref."""

import json
import logging
import os
from collections.abc import Iterable
from pathlib import Path

from kpyramid.llm.books import LEDGER, Line, parse_lines, read_spent
from kpyramid.llm.prices import NOTHING, Spent

log = logging.getLogger(__name__)

LAST_STAGE = "publish"
"""The stage whose mark says that a run is finished."""


class Tally:
    """The sums of one ledger, read on from where it was read to before."""

    def __init__(self) -> None:
        self.settled = NOTHING
        self.total = NOTHING
        """What counts against a budget: settled, and reserved at its highest."""
        self.reserved: dict[str, Spent] = {}
        self.closed: set[str] = set()
        self.torn = 0
        self._offset = 0
        self._whole = True

    def apply(self, line: Line) -> None:
        """Counts a line; of a call that is settled no further one counts."""
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
        """Counts the lines that came; whether the last of all is whole, not cut."""
        size = os.fstat(file).st_size
        if size <= self._offset:
            return self._whole
        data = os.pread(file, size - self._offset, self._offset)
        self._offset += len(data)
        lines, torn = parse_lines(data)
        self.torn += torn
        for line in lines:
            self.apply(line)
        self._whole = data.endswith(b"\n")
        return self._whole


class Siblings:
    """The other runs of a ref that spend under the same budget as the run `leave_out`.

    They are those that are not finished and were not started before the last that is, and all
    that start while this one looks.
    """

    def __init__(self, runs: Path, ref: str, leave_out: str | None = None) -> None:
        self.runs = runs
        self._ref = ref
        self._known: set[str] = {leave_out} if leave_out else set()
        self._tallies: dict[str, Tally] = {}
        started: dict[str, str] = {}
        finished = ""
        for name, start in self._find_new().items():
            if (runs / name / "stages" / f"{LAST_STAGE}.json").exists():
                finished = max(finished, start)
            else:
                started[name] = start
        self._follow(name for name, start in started.items() if start >= finished)

    def count(self) -> Spent:
        """What they have spent and reserved by now; nobody may be writing."""
        self._follow(self._find_new())
        return sum((self._count_run(path) for path in self._tallies), NOTHING)

    def _count_run(self, path: str) -> Spent:
        tally = self._tallies[path]
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return tally.total
        try:
            tally.read_on(file)
        finally:
            os.close(file)
        return tally.total

    def _follow(self, names: Iterable[str]) -> None:
        for name in names:
            self._tallies[str(self.runs / name / LEDGER)] = Tally()

    def _find_new(self) -> dict[str, str]:
        """When the runs of the ref were started that were not seen before."""
        found: dict[str, str] = {}
        try:
            with os.scandir(self.runs) as entries:  # before every call, so no paths are made
                names = sorted({entry.name for entry in entries} - self._known)
        except FileNotFoundError:
            return found
        for name in names:
            record = self.runs / name / "run.json"
            try:
                told = json.loads(record.read_bytes())
                if told["ref"] == self._ref:
                    found[name] = str(told["started"])
            except (FileNotFoundError, NotADirectoryError):
                continue  # it may be written yet
            except (OSError, ValueError, KeyError, TypeError) as e:
                log.warning("%s cannot be read, its spending is not counted: %s", record, e)
            self._known.add(name)
        return found
