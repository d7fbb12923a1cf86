"""How much a warehouse grows in ten nights, what gc leaves of it, and how long gc takes.

No published system is reproduced. A corpus is built, and then nine times again, with another one
in a hundred of its documents (at least one) changed each night: its last sentence becomes that of
another document. `ten_nights_over_one` is the bytes of the warehouse's files after the tenth build
over those after the first, a file with several names counted once. `after_gc_over_one` is the same
after `kpyramid gc --keep 10 --older-than 0h`, run twice, as what the first one moves the second
deletes: all ten snapshots stay, and of stored results those of the last night. `bytes` are by kind.
`gc_seconds` is the wall time of `kpyramid gc --keep 7 --older-than 0h` on 200 snapshots of one ref,
each the last build's with one file of its own, and `gc_again_seconds` that of the next, which
deletes the 193.
"""

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from incremental import DEMO, copy_documents
from options import print_figures, read_options, report

from kpyramid.pipeline.build import build
from kpyramid.settings import Settings
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.publication import commit, write_snapshot
from kpyramid.storage.refs import resolve_ref
from kpyramid.storage.snapshots import read_manifest

NIGHTS = 10
SHARE = 100
SNAPSHOTS = 200
KEPT = 7


def clear_up(place: Path, keep: int) -> None:
    """Runs `kpyramid gc` on a warehouse."""
    words = (sys.executable, "-m", "kpyramid", "gc", "--keep", str(keep), "--older-than", "0h")
    subprocess.run([*words, "--warehouse", str(place)], check=True, capture_output=True)


def count_bytes(place: Path) -> dict[str, int]:
    """The bytes of a warehouse's files by kind, of each file once."""
    kinds: Counter[str] = Counter()
    seen = set()
    for path in sorted(place.rglob("*")):
        status = path.lstat()
        if path.is_file() and status.st_ino not in seen:
            seen.add(status.st_ino)
            folder, *below = path.relative_to(place).parts
            kinds[f"{folder}/{below[0]}" if folder == "cache" else folder] += status.st_size
    return dict(sorted(kinds.items()))


def change(files: list[Path], chance: random.Random) -> None:
    """Gives one in a hundred documents the last sentence of another one."""
    for file in chance.sample(files, max(1, len(files) // SHARE)):
        text, other = (path.read_text("utf-8").strip() for path in (file, chance.choice(files)))
        kept, last = text.rpartition(". ")[0] or text, other.rpartition(". ")[2]
        file.write_text(f"{kept.removesuffix('.')}. {last}\n", "utf-8")


def time_gc(place: Path, made: Path) -> list[float]:
    """The seconds of two gc on a warehouse of many snapshots."""
    warehouse = Warehouse(place)
    manifest = read_manifest(made)
    facts = {name: value for name, value in manifest.items() if name != "files"}
    named: Any = manifest["files"]
    files: dict[str, bytes | Path] = {name: made / name for name in named}
    for number in range(SNAPSHOTS):
        own = {**files, "README.md": f"{number}".encode()}
        snapshot, order = write_snapshot(warehouse, own, facts), f"{number:04}"
        at = "2026-01-01T00:00:00+00:00"
        commit(warehouse, "main", snapshot=snapshot, order=order, run=order, at=at)
    seconds = []
    for _ in range(2):
        started = time.monotonic()
        clear_up(place, KEPT)
        seconds.append(round(time.monotonic() - started, 2))
    return seconds


def measure(data: Path, limit: int | None, seed: int) -> dict[str, Any]:
    """All figures, from builds in a folder that is removed again."""
    with tempfile.TemporaryDirectory() as name:
        folder, chance = Path(name), random.Random(seed)  # noqa: S311  documents, no secret
        files = copy_documents(data, folder / "corpus", limit)
        place, sizes = folder / "warehouse", []
        warehouse = Warehouse(place)
        for night in range(NIGHTS):
            report(f"building night {night + 1} of {NIGHTS}")
            if night:
                change(files, chance)
            build(folder / "corpus", warehouse, Settings())
            sizes.append(count_bytes(place))
        report("clearing up")
        for _ in range(2):
            clear_up(place, NIGHTS)
        after = count_bytes(place)
        report(f"clearing up {SNAPSHOTS} snapshots")
        last = warehouse.snapshots / resolve_ref(warehouse, "main")
        gc_seconds, again = time_gc(folder / "many", last)
        one = sum(sizes[0].values())
        return {
            "documents": len(files),
            "ten_nights_over_one": round(sum(sizes[-1].values()) / one, 2),
            "after_gc_over_one": round(sum(after.values()) / one, 2),
            "gc_seconds": gc_seconds,
            "gc_again_seconds": again,
            "bytes": {"one": sizes[0], "ten": sizes[-1], "after_gc": after},
        }


def main() -> None:
    options = read_options(
        __doc__, data=DEMO, limit="the first N documents only", seed="draws what changes"
    )
    print_figures(measure(options.data, options.limit, options.seed), options.json)


if __name__ == "__main__":
    main()
