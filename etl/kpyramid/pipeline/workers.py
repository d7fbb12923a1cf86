"""Texts shared out to workers, each of which loads its model once: processes, or a Ray cluster."""

import logging
import multiprocessing
import os
import platform
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, redirect_stdout
from functools import lru_cache
from types import ModuleType
from typing import Any, TypeVar

from pydantic import TypeAdapter

from kpyramid.embeddings.opening import open_embedder
from kpyramid.embeddings.port import Matrix
from kpyramid.errors import EndpointError, InputError, PyramidError
from kpyramid.extraction.syntax.parser import Parser
from kpyramid.extraction.syntax.tree import pack_tree
from kpyramid.extraction.types import Extraction, Titled
from kpyramid.settings import EmbedSettings
from kpyramid.storage.identity import identify_embedding

R = TypeVar("R", str, Titled)

_FEW = 24
"""Texts below which starting worker processes costs more than it saves."""

_BATCH_CHARACTERS = 20_000
"""Characters that a worker process extracts at a time: a few seconds of work."""

_AHEAD = 8
"""Batches that a cluster has at a time for each of its processors: enough that none waits while the
first of them is done again elsewhere."""

_PATIENCE = 5.0
"""Seconds to wait for a cluster's head to accept a connection."""

_EXTRACTION = TypeAdapter(Extraction)

Compute = Callable[[Sequence[R]], Iterator[bytes]]
"""What computes results: those of some texts, in their order."""
Load = Callable[..., Compute[R]]
"""Loads the model that computes; called with `chosen`."""


def share_out(
    texts: Sequence[R], workers: int, load: Load[R], chosen: tuple[object, ...]
) -> Iterator[bytes]:
    """The results in order, of this process or of several, each of which loads its model once.

    Worker processes end when this process ends, however it ends, and when the caller stops
    reading the results.

    Raises:
        PyramidError: a worker process died.
    """
    if not texts:
        return
    if workers == 1 or len(texts) < _FEW:
        yield from load(*chosen)(texts)
        return
    context = multiprocessing.get_context("spawn")
    others = {*multiprocessing.active_children()}
    pool = ProcessPoolExecutor(workers, context, _start_worker)
    try:
        # Not `pool.map`: interrupted, it cancels what it waits for, and Python 3.11's pool, whose
        # processes then end, complains of work that is cancelled already.
        with _hide_program():
            batches = _make_batches(texts)
            waiting = deque(pool.submit(_work, batch, load, chosen) for batch in batches)
        while waiting:
            yield from waiting.popleft().result()
    except BrokenProcessPool as e:
        raise PyramidError(
            "a worker process died while extracting, killed or out of memory. What was "
            "finished is kept: run the command again, with fewer --workers if memory is short"
        ) from e
    except BaseException:  # also when it is interrupted: nobody waits for the work under way
        for process in {*multiprocessing.active_children()} - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _hide_program() -> Iterator[None]:
    """While it lasts, processes can be started, and do not import the program that runs.

    They need nothing of it, and Airflow's own cannot be imported below a task. Celery describes
    this process by a library of its own, which forbids children, and which they could not read.
    """
    place, stand_in = vars(multiprocessing.process), multiprocessing.Process()
    stand_in.daemon, stand_in.authkey = False, os.urandom(32)
    program, process = sys.modules["__main__"], place["_current_process"]
    sys.modules["__main__"], place["_current_process"] = ModuleType("__main__"), stand_in
    try:
        yield
    finally:
        sys.modules["__main__"], place["_current_process"] = program, process


def _start_worker() -> None:
    # Ctrl-C reaches every process of a terminal; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Ends this worker process when its parent has ended, also by SIGKILL.

    The parent holds one end of a pipe for as long as it lives, on every system.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


_loaded: list[tuple[object, object, Compute[Any]]] = []
"""What this worker process loaded for what, and computes with."""


def _work(batch: Sequence[R], load: Load[R], chosen: tuple[object, ...]) -> list[bytes]:
    """The results of a batch, in a worker process."""
    if not _is_ready(load, chosen):
        _loaded[:] = [(load, chosen, load(*chosen))]
    return list(_loaded[0][2](batch))


def _is_ready(load: object, chosen: tuple[object, ...]) -> bool:
    return [each[:2] for each in _loaded] == [(load, chosen)]


def load_extractor(parser: str, language: str) -> Compute[Titled]:
    """The extraction of each text as JSON."""
    from kpyramid.extraction.openie import DependencyExtractor

    extractor = DependencyExtractor(parser, language)
    return lambda texts: map(_EXTRACTION.dump_json, extractor.extract_all(texts))


@lru_cache(maxsize=1)
def load_parser(package: str) -> Compute[str]:
    """The parse of each text, packed."""
    parser = Parser(package)
    return lambda texts: (pack_tree(tree).encode() for tree in parser.parse_all(texts))


def load_embedder(embed: EmbedSettings) -> Compute[str]:
    """The vector of each text, packed."""
    found = identify_embedding(embed)
    model = open_embedder(found.name, found.files, embed.provider, embed.instruction)
    return lambda texts: map(pack_vector, model.embed(texts))


def pack_vector(vector: Matrix) -> bytes:
    """A vector as little-endian 32-bit floats."""
    return vector.astype("<f4").tobytes()


def share_over_ray(
    texts: Sequence[R],
    address: str,
    load: Load[R],
    chosen: tuple[object, ...],
    identify: Callable[[], str],
) -> Iterator[bytes]:
    """The results in order, of a Ray cluster's processors, whose processes load their model once.

    What a lost node had under way is done again by the others. `identify` gives the hash of all
    that shapes a result; a node where it differs from this machine's is refused.

    Raises:
        EndpointError: there is no cluster at the address, or it has no processors.
        InputError: Ray is not installed.
        PyramidError: a task failed, or its node has other versions; says which.
    """
    if len(texts) < _FEW:
        yield from share_out(texts, 1, load, chosen)
        return
    with join_cluster(address) as (ray, processors):
        send = ray.remote(num_cpus=1)(_work_on_node).remote
        most = _AHEAD * processors
        expected, waiting = identify(), deque[Any]()
        try:
            for batch in _make_batches(texts):
                waiting.append(send(batch, load, chosen, identify, expected))
                if len(waiting) == most:
                    yield from ray.get(waiting.popleft())
            while waiting:
                yield from ray.get(waiting.popleft())
        except ray.exceptions.RayError as e:
            cause = getattr(e, "cause", None) or e
            raise PyramidError(
                f"Ray cluster {address}: {str(cause).strip().splitlines()[-1]}. What was "
                "finished is kept: run the command again"
            ) from e


def _work_on_node(
    batch: Sequence[R],
    load: Load[R],
    chosen: tuple[object, ...],
    identify: Callable[[], str],
    expected: str,
) -> list[bytes]:
    """The results of a batch, in a process of a cluster's node."""
    if not _is_ready(load, chosen) and identify() != expected:
        raise PyramidError(
            f"node {platform.node()} has another version of kpyramid, a library or a model "
            "than the machine that builds; install the same on both"
        )
    return _work(batch, load, chosen)


@contextmanager
def join_cluster(address: str) -> Iterator[tuple[Any, int]]:
    """Ray, joined to the cluster for a while, and its processors; what it prints goes to stderr.

    Raises:
        EndpointError: there is no cluster at the address, or it has no processors.
        InputError: Ray is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as e:
        raise InputError("engine ray needs its extra: pip install 'kpyramid[build,ray]'") from e
    with redirect_stdout(sys.stderr):
        try:
            host, _, port = address.removeprefix("ray://").rpartition(":")
            if host:  # Ray itself waits minutes for one that nobody listens at
                socket.create_connection((host, int(port)), _PATIENCE).close()
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, ValueError) as e:
            raise EndpointError(
                f"no Ray cluster at {address} ({str(e).splitlines()[0]}): start one with "
                "`ray start --head`, or give --address HOST:PORT of its head"
            ) from e
        try:
            resources = ray.cluster_resources()
            processors = int(resources.get("CPU", 0))
            if not processors:  # tasks would wait for ever
                raise EndpointError(
                    f"Ray cluster {address} has no processors: start a node that has some, "
                    "`ray start --address HEAD`"
                )
            yield ray, processors
        finally:
            ray.shutdown()


def _make_batches(texts: Sequence[R]) -> Iterator[list[R]]:
    """Lists of texts of about equal length, so that no worker waits long for another."""
    batch: list[R] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text if isinstance(text, str) else text.text)
        if size >= _BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
