"""How time and memory of a stage grow with the graph: two cores, made-up facts, vectors given.

For every size a graph is made (`synthetic.py`), and each stage runs on it in a process of its own,
with the tables read from Parquet as in a build, and by rules. `seconds` are those of the stage
without the time in which vectors are made up, which is `vectors_seconds`; `processor_seconds` are
those of all cores, for a machine that has other work too; `peak_mb` is the largest
resident size of the process, tables, libraries and vectors included (`getrusage`), `own_mb` that
without pages of files, vectors on disk among them, which the system takes back when it is short.

The exponent is the slope of log seconds over log size between the two largest sizes; n log n has
`nlogn_exponent` there. `limits` says whether memory and growth keep to 4 GB and n log n and, from
a million facts on, the seconds to 15 minutes, for condensation 30. `own_bytes_per_fact` is what
`own_mb` grows by between these two sizes, and `own_mb_of_10_million` where that line leads, which
has to keep to 4 GB too from a million on: below, what a process starts with hides it.
"""

import json
import math
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from options import make_parser, name_count, print_figures, read_size, refuse, report

STAGES = {
    "resolve": 15 * 60.0,
    "embed": 15 * 60.0,
    "induce": 15 * 60.0,
    "complete": 15 * 60.0,
    "condense": 30 * 60.0,
}
"""Stages with the seconds that they may take for a million facts, vectors given."""

MILLION = 1_000_000
MOST_MB = 4 * 1024.0
SCALE = 10_000_000
"""Facts for which 4 GB are asked to be enough."""
SLACK = 0.02
"""By how much a measured exponent may exceed that of n log n; runs differ by as much."""


class Timed:
    """An embedder that counts the seconds spent in it, by the clock and of all processors."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.name = inner.name
        self.seconds = self.work = 0.0

    def embed(self, texts: Sequence[str]) -> Any:
        started, worked = time.perf_counter(), time.process_time()
        vectors = self._inner.embed(texts)
        self.seconds += time.perf_counter() - started
        self.work += time.process_time() - worked
        return vectors


def run_stage(name: str, folder: Path) -> dict[str, Any]:
    """Runs one stage on the tables of a folder and adds there what it made and was not there."""
    from synthetic import WordVectors

    from kpyramid.pipeline.cache import Context
    from kpyramid.pipeline.models import Looker, open_collector
    from kpyramid.pipeline.stage import find_stage
    from kpyramid.pipeline.wiring import Ports
    from kpyramid.settings import Settings
    from kpyramid.storage import contracts
    from kpyramid.storage.contracts import load_contracts, read_table
    from kpyramid.storage.layout import Warehouse
    from kpyramid.storage.memory import map_table, return_freed_memory

    return_freed_memory()
    stage, settings, embedder = find_stage(name), Settings(), Timed(WordVectors(folder))
    paths = {table: folder / f"{table}.parquet" for table in stage.reads}
    tables = {
        table: map_table(read_table(path, load_contracts()[table]), folder)
        for table, path in paths.items()
    }
    warehouse = Warehouse(folder / "warehouse")  # nothing is written there
    nobody = Looker(open_collector(warehouse, settings, read_only=True))
    ports = Ports(Context(warehouse, settings, read_only=True), stage, nobody)
    ports.embedder, ports.shapes = embedder, ()
    own: list[float] = []
    threading.Thread(target=_sample_own, args=(own,), daemon=True).start()
    started, worked = time.perf_counter(), time.process_time()
    made = ports.run(tables)
    for table, rows in made.items():
        path = folder / f"{table}.parquet"
        contracts.write_table(rows, folder / "written.parquet" if path.exists() else path)
    seconds, work = time.perf_counter() - started, time.process_time() - worked
    figures = {
        "seconds": round(seconds - embedder.seconds, 2),
        "processor_seconds": round(work - embedder.work, 2),
        "vectors_seconds": round(embedder.seconds, 2),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "own_mb": round(max(own), 1),
        "made": {table: made[table].num_rows for table in stage.writes},
    }
    return figures


def _sample_own(found: list[float]) -> None:
    """Notes this process's resident MB without pages of files, ten times a second."""
    while True:
        found.append(read_size("self", "RssAnon") / 1024)
        time.sleep(0.1)


def measure(size: int, stages: Sequence[str], seed: int) -> dict[str, Any]:
    """The figures of each stage for one size."""
    with tempfile.TemporaryDirectory() as folder:
        report(f"making a graph of {size} facts")
        _call("make", folder, str(size), str(seed))
        found: dict[str, Any] = {}
        for stage in stages:
            report(f"{stage} of {size} facts")
            found[stage] = json.loads(_call("run", folder, stage))
            report(f"  {found[stage]['seconds']} s, {found[stage]['peak_mb']} MB")
        return found


def _call(*arguments: str) -> str:
    """What this script prints when it runs as a process of its own, for the sake of its peak."""
    done = subprocess.run(
        [sys.executable, __file__, "--child", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        refuse(f"{' '.join(arguments)} ended with status {done.returncode}, see above")
    return done.stdout


def _be_child(task: str, folder: str, *arguments: str) -> None:
    if task == "make":
        from synthetic import write_graph

        size, seed = arguments
        write_graph(Path(folder), int(size), int(seed))
    else:
        print(json.dumps(run_stage(arguments[0], Path(folder))))


def fit_exponent(sizes: Sequence[int], values: Sequence[float]) -> float | None:
    """The slope between the two largest sizes in logarithms; None for a single size."""
    if len(sizes) < 2:
        return None
    (n1, n2), (t1, t2) = sizes[-2:], values[-2:]
    return round(math.log(max(t2, 1e-9) / max(t1, 1e-9)) / math.log(n2 / n1), 3)


def summarise(found: dict[int, dict[str, Any]], stages: Sequence[str]) -> dict[str, Any]:
    """The figures of the benchmark from those of each size."""
    sizes = sorted(found)
    largest = sizes[-1]
    allowed = fit_exponent(sizes, [size * math.log(size) for size in sizes])
    per_stage: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for stage in stages:
        rows = [found[size][stage] for size in sizes]
        exponent = fit_exponent(sizes, [row["seconds"] for row in rows])
        peak = max(row["peak_mb"] for row in rows)
        per_stage[stage] = {"exponent": exponent, "peak_mb": peak, "seconds": rows[-1]["seconds"]}
        if len(rows) > 1:
            grown = (rows[-1]["own_mb"] - rows[-2]["own_mb"]) / (largest - sizes[-2])
            there = round(rows[-1]["own_mb"] + grown * (SCALE - largest), 1)
            per_stage[stage] |= {
                "own_bytes_per_fact": round(grown * 2**20),
                "own_mb_of_10_million": there,
            }
            if largest >= MILLION:
                limits[f"{stage} own_mb_of_10_million"] = _judge(there, MOST_MB)
        if largest >= MILLION:
            limits[f"{stage} seconds"] = _judge(rows[-1]["seconds"], STAGES[stage])
        limits[f"{stage} peak_mb"] = _judge(peak, MOST_MB)
        if exponent is not None and allowed is not None:
            limits[f"{stage} exponent"] = _judge(exponent, round(allowed + SLACK, 3))
    exponents = [row["exponent"] for row in per_stage.values() if row["exponent"] is not None]
    return {
        "worst_exponent": max(exponents, default=None),
        "worst_peak_mb": max(row["peak_mb"] for row in per_stage.values()),
        "nlogn_exponent": allowed,
        "stages": per_stage,
        "limits": limits,
        "sizes": [
            {"facts": size, "stage": stage, **found[size][stage]}
            for size in sizes
            for stage in stages
        ],
    }


def _judge(value: float, most: float) -> dict[str, Any]:
    return {"value": value, "most": most, "holds": value <= most}


def read_sizes(text: str) -> list[int]:
    """Whole numbers from a hundred on, ascending."""
    return sorted({name_count(100)(part.strip()) for part in text.split(",")})


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        _be_child(*sys.argv[2:])
        return
    parser = make_parser(__doc__, "draws heads and tails")
    parser.add_argument(
        "--sizes",
        type=read_sizes,
        default=[10_000, 31_623, 100_000],
        help="facts, separated by commas",
    )
    parser.add_argument(
        "--stages", nargs="+", choices=STAGES, default=list(STAGES), help="in the pipeline's order"
    )
    options = parser.parse_args()
    found = {size: measure(size, options.stages, options.seed) for size in options.sizes}
    print_figures(summarise(found, options.stages), options.json)


if __name__ == "__main__":
    main()
