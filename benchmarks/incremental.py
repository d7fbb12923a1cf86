"""What a rebuild costs: of an unchanged corpus, and of one with a changed document.

`unchanged_seconds` is the whole process, from start to exit. `changed_share_of_full` is the time
of a build after one document was edited over that of the first build, in the same run.
`same_bytes` is 1 when builds with another number of workers, from a moved folder and into another
warehouse give the same snapshot id and the same bytes.
"""

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from options import print_figures, read_options

from kpyramid.documents.corpus import list_corpus
from kpyramid.documents.formats import Record, read_records
from kpyramid.settings import IngestSettings

DEMO = Path(__file__).parent.parent / "examples" / "demo" / "corpus"


def build(corpus: Path, warehouse: Path, workers: int) -> tuple[dict[str, Any], float]:
    """The JSON of a build in a process of its own, and the seconds it took."""
    started = time.monotonic()
    command = [sys.executable, "-m", "kpyramid", "build", str(corpus), "--json", "-q"]
    command += ["--warehouse", str(warehouse), "--workers", str(workers)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout), time.monotonic() - started


def copy_documents(data: Path, target: Path, limit: int | None) -> list[Path]:
    """One text file per document, so that one can be edited."""
    target.mkdir()
    files: list[Path] = []
    for file in list_corpus(data).read_files():
        for record in read_records(file.path, file.data, IngestSettings()):
            if isinstance(record, Record) and (limit is None or len(files) < limit):
                files.append(target / f"{len(files):06d}.txt")
                files[-1].write_text(record.text, "utf-8")
    return files


def measure(data: Path, limit: int | None) -> dict[str, Any]:
    """All figures, from builds in a folder that is removed again."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = copy_documents(data, folder / "corpus", limit)
        first, full = build(folder / "corpus", folder / "one", 2)
        again, unchanged = build(folder / "corpus", folder / "one", 2)
        shutil.move(folder / "corpus", folder / "moved")
        other, _ = build(folder / "moved", folder / "two", 1)
        edited = folder / "moved" / files[len(files) // 2].name
        text = edited.read_text("utf-8")
        edited.write_text(f"{text} Carl Orme was born in Ghent in 1901.", "utf-8")
        changed, seconds = build(folder / "moved", folder / "one", 2)
        tables = [folder / w / "snapshots" / first["snapshot"] for w in ("one", "two")]
        same = first["snapshot"] == other["snapshot"] and all(
            path.read_bytes() == (tables[1] / path.relative_to(tables[0])).read_bytes()
            for path in tables[0].rglob("*")
            if path.is_file()
        )
        return {
            "documents": len(files),
            "full_seconds": round(full, 2),
            "stage_seconds": first["seconds"],
            "unchanged_seconds": round(unchanged, 2),
            "unchanged_recomputed": sum(again["recomputed"].values()),
            "changed_seconds": round(seconds, 2),
            "changed_share_of_full": round(seconds / full, 3),
            "changed_recomputed": changed["recomputed"],
            "same_bytes": int(same),
            "peak_mb_largest_process": round(
                resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            ),
        }


def main() -> None:
    options = read_options(__doc__, data=DEMO, limit="the first N documents only")
    print_figures(measure(options.data, options.limit), options.json)


if __name__ == "__main__":
    main()
