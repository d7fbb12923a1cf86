"""Time and memory of a walk: all paths of three hops between five entities of a made graph.

Metric: ours. `p95_ms` is the 95th percentile of the time of one `query.paths.find_paths` between
`ANCHORS` entities over `--triples` made facts (`query.py` makes the snapshot), warm; every fifth
question has the entity with the most facts among its anchors, every tenth only such. `peak_mb` is
the largest resident memory of the process that walks, mapped pages with it, `own_mb` what is no
file's. `stated_p95_ms` is the same with the paths put into words. `--kept` names a folder whose
snapshot is used again.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from options import make_parser, name_count, print_figures
from query import REF, _own_mb, make_warehouse, peak_mb

ANCHORS, HOPS, ASKED, WARMING = 5, 3, 300, 20


def draw(graph: Any, count: int, entities: int, seed: int) -> list[list[int]]:
    """The anchors of each question: any entities, hubs among them now and then."""
    chance = random.Random(seed)  # noqa: S311  a sample, no secret
    sizes = graph.count_facts(np.arange(entities))
    hubs = np.argsort(-sizes, kind="stable")[: ANCHORS * 2].tolist()
    joined = np.flatnonzero(sizes).tolist()
    asked = []
    for number in range(count):
        rows = chance.sample(hubs if number % 10 == 9 else joined, ANCHORS)
        if number % 5 == 4:
            rows[0] = hubs[0]
        asked.append(rows)
    return asked


def measure(folder: Path, seed: int) -> dict[str, Any]:
    """The figures of a snapshot, in this process."""
    from kpyramid.query import open_snapshot
    from kpyramid.query.paths import find_paths, state_paths
    from kpyramid.snapshot.adjacency import Adjacency

    snapshot = open_snapshot(REF, folder)
    started = time.perf_counter()
    graph = Adjacency(snapshot)
    opened = time.perf_counter() - started
    asked = draw(graph, ASKED + WARMING, snapshot._view.count("entities"), seed)
    walked, stated, found, hubs = [], [], [], []
    for number, rows in enumerate(asked):
        started = time.perf_counter()
        paths = find_paths(graph, rows, HOPS)
        done = time.perf_counter()
        state_paths(paths, graph, snapshot)
        if number >= WARMING:
            walked.append(done - started)
            stated.append(time.perf_counter() - started)
            found.append(len(paths))
            if number % 5 == 4:
                hubs.append(done - started)
    return {
        "p50_ms": _percentile(walked, 50),
        "p95_ms": _percentile(walked, 95),
        "p99_ms": _percentile(walked, 99),
        "hubs_p95_ms": _percentile(hubs, 95),
        "stated_p95_ms": _percentile(stated, 95),
        "paths": round(float(np.mean(found)), 1),
        "open_ms": round(opened * 1000, 1),
        "peak_mb": _peak_mb(),
        "own_mb": _own_mb(),
    }


def _peak_mb() -> float:
    """Of this process alone, where the system says so: `peak_mb` starts from its parent's."""
    status = Path("/proc/self/status")
    lines = status.read_text("utf-8").splitlines() if status.exists() else []
    said = dict(line.split(":", 1) for line in lines)
    return round(int(said["VmHWM"].split()[0]) / 1024, 1) if "VmHWM" in said else peak_mb()


def _percentile(seconds: list[float], percent: int) -> float:
    return round(float(np.percentile(seconds, percent)) * 1000, 1)


def main() -> None:
    parser = make_parser(__doc__, "the made graph, and which entities are drawn")
    parser.add_argument("--triples", type=name_count(100), default=1_000_000, help="facts")
    parser.add_argument("--kept", type=Path, help="a folder for the snapshot, used again if there")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.kept, options.seed)))
        return
    with tempfile.TemporaryDirectory(prefix="kpyramid-walk-") as place:
        folder = options.kept or Path(place)
        if not (folder / "refs").is_dir():
            make_warehouse(folder, options.triples, options.seed)
        command = [sys.executable, __file__, "--measure", "--kept", str(folder)]
        command += ["--seed", str(options.seed)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    print_figures({"triples": options.triples, **json.loads(done.stdout)}, options.json)


if __name__ == "__main__":
    main()
