"""Questions a second of `kpyramid serve`, with 1, 16 and 100 clients that ask one after another.

Metrics: replies a second, and the usual percentiles of a reply's wall time as a client sees it; the
same for bare vector search, one warm process that embeds a question and ranks the passages by
cosine. No published system is reproduced.

`--data`: a snapshot's folder, a warehouse, or a corpus, which is built first; the demo's passages
by default. Questions are drawn from the facts with a seed.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.client import HTTPConnection
from itertools import cycle, islice
from pathlib import Path
from urllib.parse import urlsplit

from incremental import DEMO
from options import print_figures, read_options, refuse

from kpyramid.pipeline.build import build
from kpyramid.settings import Settings
from kpyramid.snapshot.snapshot import Snapshot, open_snapshot
from kpyramid.storage.layout import open_warehouse

CLIENTS = (1, 16, 100)
PROCESSES = (1, 2)
ASKED = 400


def list_questions(snapshot: Snapshot, seed: int, most: int) -> list[str]:
    """Questions about heads and relations of facts, drawn with a seed."""
    facts = snapshot.table("condensed")["condensed_id"].to_pylist()
    drawn = random.Random(seed).sample(facts, min(most, len(facts)))  # noqa: S311
    stated = map(snapshot.read_fact, drawn)
    return [f"What does {fact.head} have to do with {fact.relation}?" for fact in stated]


def time_clients(port: int, clients: int, questions: list[str]) -> dict[str, float]:
    """Replies a second and percentiles in milliseconds of so many clients at a time."""
    taken: list[float] = []
    todo, guard = iter(questions), threading.Lock()

    def ask() -> None:
        connection = HTTPConnection("127.0.0.1", port, timeout=120)
        while True:
            with guard:
                question = next(todo, None)
            if question is None:
                return
            started = time.perf_counter()
            connection.request("POST", "/v1/retrieve", json.dumps({"question": question}))
            reply = connection.getresponse()
            reply.read()
            if reply.status != 200:
                refuse(f"the service says {reply.status}")
            taken.append(1000 * (time.perf_counter() - started))

    threads = [threading.Thread(target=ask) for _ in range(clients)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return describe(taken, time.perf_counter() - started)


def describe(taken: list[float], seconds: float) -> dict[str, float]:
    """Figures of the times of some replies."""
    ranks = statistics.quantiles(taken, n=100)
    return {
        "questions_per_second": round(len(taken) / seconds, 1),
        "p50_ms": round(ranks[49], 1),
        "p99_ms": round(ranks[98], 1),
    }


def time_vectors(snapshot: Snapshot, questions: list[str]) -> dict[str, float]:
    """The same of a search by vectors alone, in this process."""
    taken = []
    snapshot.neighbours("What is this about?", 8, "chunks")
    started = time.perf_counter()
    for question in questions:
        begun = time.perf_counter()
        snapshot.neighbours(question, 8, "chunks")
        taken.append(1000 * (time.perf_counter() - begun))
    return describe(taken, time.perf_counter() - started)


def main() -> None:
    options = read_options(
        __doc__,
        data=DEMO,
        limit="questions for each number of clients",
        seed="draws the questions; 0 by default",
    )
    with tempfile.TemporaryDirectory() as folder:
        print_figures(measure(options, Path(folder)), options.json)


def measure(options: argparse.Namespace, folder: Path) -> dict[str, object]:
    """The figures of both numbers of processes, and of vectors alone."""
    if (options.data / "manifest.json").is_file():
        place, warehouse = str(options.data.resolve()), None
    else:
        place, warehouse = "main", options.data
        if not (warehouse / "refs").is_dir():
            warehouse = folder / "warehouse"
            build(options.data, open_warehouse(warehouse), Settings())
    snapshot = open_snapshot(place, warehouse)
    most = options.limit or ASKED
    questions = list(islice(cycle(list_questions(snapshot, options.seed or 0, most)), most))
    figures: dict[str, object] = {"vectors": time_vectors(snapshot, questions)}
    for processes in PROCESSES:
        command = [sys.executable, "-m", "kpyramid", "serve", place, "--port", "0"]
        command += ["--warehouse", str(warehouse)] if warehouse else []
        served = subprocess.Popen(
            [*command, "--processes", str(processes)], stderr=subprocess.PIPE, text=True
        )
        assert served.stderr is not None
        port = urlsplit(served.stderr.readline().strip()).port or 0
        threading.Thread(target=served.stderr.read, daemon=True).start()
        try:
            wait_for(port)
            time_clients(port, 16, questions[:100])
            for clients in CLIENTS:
                name = f"processes_{processes}_clients_{clients}"
                figures[name] = time_clients(port, clients, questions)
        finally:
            served.terminate()
            served.wait(60)
    return figures


def wait_for(port: int) -> None:
    """Waits until the service answers."""
    for _ in range(600):
        try:
            connection = HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            return
        except OSError:
            time.sleep(0.2)
    refuse("the service does not answer")


if __name__ == "__main__":
    main()
