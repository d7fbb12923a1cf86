"""Contradictions between documents of a handbook that are found, and the false ones.

The measure is our own. `--data` is a folder whose folders are corpora, each with `planted.jsonl`:
`kind`, `subject`, and the words `one` and `other` that the two documents have. Two handbooks of
companies that do not exist lie in `conflicts/`: ten contradictions each (dates, numbers, holders,
places, units, durations, makers, entitlements, states, denials) among statements that only look
like some: a year and its day, 5 thousand and 5,000, 24 months and two years, a town and its
country, a name with a title, who held an office before. They were written before the rules; the
first was looked at while these were made, the second not.

Found is a planted one when a conflict has a side whose words or sentence hold `one`, and another
with `other`; any other conflict is false.
"""

import tempfile
from pathlib import Path
from typing import Any

from options import explain_faults, print_figures, read_options, read_rows, report

from kpyramid.pipeline.build import build
from kpyramid.settings import Settings
from kpyramid.snapshot.conflicts import Conflict, Side
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.view import EVERYTHING
from kpyramid.storage.copies import locate_snapshot
from kpyramid.storage.layout import open_warehouse

FOLDER = Path(__file__).parent / "conflicts"


def find_conflicts(corpus: Path) -> list[Conflict]:
    """The conflicts of the pyramid of a corpus, its planted ones aside."""
    with tempfile.TemporaryDirectory() as place:
        texts = Path(place) / "texts"
        texts.mkdir()
        for path in sorted(corpus.glob("*.md")):
            (texts / path.name).write_bytes(path.read_bytes())
        warehouse = open_warehouse(f"{place}/warehouse")
        made = build(texts, warehouse, Settings())
        opened = Snapshot(locate_snapshot(warehouse, made.snapshot), scope=EVERYTHING)
        return [*opened.conflicts.list_all()]


def is_planted(row: dict[str, Any], conflict: Conflict) -> bool:
    """Whether a conflict is between what the two documents say."""
    one, other = (
        {at for at, side in enumerate(conflict.sides) if says(side, row[name])}
        for name in ("one", "other")
    )
    return any(first != second for first in one for second in other)


def says(side: Side, words: str) -> bool:
    """Whether a side or one of its sentences has some words."""
    return any(words in text for text in (side.statement, *(p.text for p in side.evidence)))


def measure(data: Path, limit: int | None) -> dict[str, Any]:
    """The figures of all corpora and of each, with what was not found."""
    corpora = {}
    for folder in sorted(path for path in data.iterdir() if path.is_dir())[:limit]:
        report(folder.name)
        planted, conflicts = read_rows(folder, "planted.jsonl"), find_conflicts(folder)
        missed = [row for row in planted if not any(is_planted(row, c) for c in conflicts)]
        false = [c.detail for c in conflicts if not any(is_planted(row, c) for row in planted)]
        corpora[folder.name] = {
            "found": len(planted) - len(missed),
            "planted": len(planted),
            "false": len(false),
            "missed": "; ".join(f"{row['kind']}: {row['subject']}" for row in missed),
        }
    total = {n: sum(row[n] for row in corpora.values()) for n in ("found", "planted", "false")}
    return {**total, "corpora": corpora}


def main() -> None:
    options = read_options(__doc__, data=FOLDER, limit="corpora that are built")
    with explain_faults(options.data, "benchmarks/conflicts"):
        found = measure(options.data, options.limit)
    print_figures(found, options.json)


if __name__ == "__main__":
    main()
