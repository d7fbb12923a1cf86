"""What was paid since one last looked, from the books of a run."""

from pathlib import Path

from kpyramid.llm.books import LEDGER, parse_lines
from kpyramid.llm.totals import add_up


class Spending:
    """Reads a ledger on from where it was read before, so that looking often stays cheap."""

    def __init__(self, books: Path) -> None:
        """`books` is the folder of the ledger, which need not be there yet."""
        self._path = books / LEDGER
        self._read = self._path.stat().st_size if self._path.exists() else 0

    def read_cost(self) -> float | None:
        """The dollars of the calls since the last look; None when one has no known price."""
        if not self._path.exists():
            return 0.0
        with self._path.open("rb") as file:
            file.seek(self._read)
            data = file.read()
        self._read += len(data)
        return add_up(*parse_lines(data)).run.cost
