"""What a Ray cluster costs over plain processes on the same processors.

No published system is reproduced. The texts of a corpus are extracted three times in one run, with
models loaded within the time: by this process, by a pool of two processes, and by a Ray cluster of
two nodes with a processor each, both on this machine. `speedup_processes` and `speedup_ray` are
the first wall time over theirs; `ray_over_processes` is the second speed-up over the first.
`same_bytes` is 1 when the three gave the same results.
"""

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from options import print_figures, read_options

from kpyramid.documents.corpus import list_corpus
from kpyramid.documents.formats import Record, read_records
from kpyramid.extraction.types import Titled
from kpyramid.pipeline.fingerprints import fingerprint_function
from kpyramid.pipeline.stage import find_function
from kpyramid.pipeline.workers import load_extractor, share_out, share_over_ray
from kpyramid.settings import Settings

DEMO = Path(__file__).parent.parent / "examples" / "demo" / "corpus"
NODE = {"num_cpus": 1, "object_store_memory": 200 * 2**20, "include_dashboard": False}
LEAST = 24
"""Fewer texts are never shared out."""


def list_texts(data: Path, limit: int | None) -> list[Titled]:
    found: list[Titled] = []
    for file in list_corpus(data).read_files():
        for record in read_records(file.path, file.data, Settings().ingest):
            if isinstance(record, Record) and (limit is None or len(found) < limit):
                found.append(Titled(record.text, ""))
    return found


def take_time(extract: Callable[[], Iterator[bytes]]) -> tuple[list[bytes], float]:
    started = time.perf_counter()
    results = list(extract())
    return results, time.perf_counter() - started


def measure(texts: list[Titled]) -> dict[str, Any]:
    """All figures, with a cluster that ends with them."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    settings = Settings()
    work = (load_extractor, (settings.extract.parser, settings.extract.language))
    two, pooled = take_time(lambda: share_out(texts, 2, *work))
    identify = partial(fingerprint_function, find_function("extractor"), settings)
    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    try:
        cluster.add_node(**NODE)
        rayed, on_ray = take_time(lambda: share_over_ray(texts, cluster.address, *work, identify))
    finally:
        cluster.shutdown()
    one, alone = take_time(lambda: share_out(texts, 1, *work))
    return {
        "texts": len(texts),
        "speedup_processes": round(alone / pooled, 3),
        "speedup_ray": round(alone / on_ray, 3),
        "ray_over_processes": round(pooled / on_ray, 3),
        "same_bytes": int(one == two == rayed),
    }


def main() -> None:
    options = read_options(
        __doc__, limit="texts, at least 24; all by default", data=DEMO, least=LEAST
    )
    print_figures(measure(list_texts(options.data, options.limit)), options.json)


if __name__ == "__main__":
    main()
