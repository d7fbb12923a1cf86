"""What all tests share: repeatable cases, models loaded once, no run without a test."""

import gc
import hashlib
import importlib.util
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from kpyramid.documents.sentences import Span
from kpyramid.embeddings.onnx import OnnxEmbedder
from kpyramid.embeddings.opening import open_embedder
from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.extraction.syntax.parser import Parser
from kpyramid.extraction.syntax.tree import Tree

if TYPE_CHECKING:
    from kpyramid.extraction.openie import DependencyExtractor
    from kpyramid.query import Snapshot
    from tests.loopback import Loopback
    from tests.s3 import S3Server

SHARED = "PYTEST_KPYRAMID_SHARED"
"""As in `corpora.py`, which not every test needs."""

EXTRAS = {
    "airflow": "airflow",
    "files": "kreuzberg",
    "integrations": "llama_index",
    "instructor": "sentence_transformers",
    "s3": "obstore",
    "serve": "mcp",
    "tune": "peft",
}
"""A library of each extra that a mark `needs` may name."""
PASSED = "kpyramid/passed"
LONG = ("test_dag.py", "test_celery.py", "test_wheel.py")
"""Run for minutes: first, so that no worker ends with one alone, or starts its servers again."""

with pytest.MonkeyPatch.context() as hiding:
    # thinc imports torch where that is installed, which takes two seconds and serves no test.
    hiding.setitem(sys.modules, "torch", None)
    import thinc.compat  # noqa: F401

hypothesis.settings.register_profile(
    "repeatable", derandomize=True, deadline=None, database=None, print_blob=True
)
hypothesis.settings.load_profile("repeatable")


@cache
def _load_pipeline(package: str) -> object:
    import spacy

    return spacy.load(package)


@cache
def _load_session(name: str, model: Path, tokenizer: Path, _written: float) -> OnnxEmbedder:
    loaded = object.__new__(OnnxEmbedder)
    _init_embedder(loaded, name, model, tokenizer)
    vars(loaded)["known"] = {}
    vars(loaded)["place"] = Path(os.environ[SHARED]) / "vectors" / _hash(name, model, _written)
    vars(loaded)["place"].mkdir(parents=True, exist_ok=True)
    return loaded


def _hash(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


class _Remembering:
    """An embedding model that computes each text once in a test run, in whatever process."""

    def __init__(self, model: OnnxEmbedder) -> None:
        self.name = model.name
        self._model = model

    def embed(self, texts: Sequence[str]) -> Matrix:
        known: dict[tuple[str, str], Matrix] = vars(self._model)["known"]
        place, prefix = vars(self._model)["place"], self._model._prefix
        paths = {text: place / _hash(prefix, text) for text in texts if (prefix, text) not in known}
        new = [text for text, path in paths.items() if not path.exists()]
        # In one batch, which takes a third of the time of one by one.
        for text, vector in zip(new, self._model.embed(new) if new else (), strict=True):
            part = paths[text].with_suffix(f".{os.getpid()}.{threading.get_ident()}")
            vector.tofile(part)
            part.rename(paths[text])
        known |= {(prefix, t): np.fromfile(path, dtype=np.float32) for t, path in paths.items()}
        found = [known[prefix, text] for text in texts]
        return np.stack(found) if texts else self._model.embed(texts)


def open_remembering(
    name: str, files: Mapping[str, Path], provider: str = "onnx", instruction: str = ""
) -> Embedder:
    """As `open_embedder`; the vectors of this package's own models are remembered."""
    model = open_embedder(name, files, provider, instruction)
    return _Remembering(model) if isinstance(model, OnnxEmbedder) else model


_init_embedder = OnnxEmbedder.__init__
_parse_parts = Parser.parse_parts


@pytest.fixture(autouse=True, scope="session")
def _load_models_once() -> Iterator[None]:
    """The parser takes a second to load and the embedding model a third: once per process.

    A build of a new warehouse and the first question to a snapshot embed the ontology's 500 terms,
    which takes a second as well.
    """

    def parse_parts(parser: Parser, texts: Iterable[tuple[str, Sequence[Span]]]) -> Iterator[Tree]:
        parser._pipeline = parser._pipeline or _load_pipeline(parser.package)
        return _parse_parts(parser, texts)

    def init(
        embedder: OnnxEmbedder, name: str, model: Path, tokenizer: Path, prefix: str = ""
    ) -> None:
        written = model.stat().st_mtime if model.is_file() else 0.0
        vars(embedder).update(vars(_load_session(name, model, tokenizer, written)))
        embedder._prefix = prefix

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Parser, "parse_parts", parse_parts)
        patch.setattr(OnnxEmbedder, "__init__", init)
        for module in ("pipeline.cache", "snapshot.snapshot"):
            patch.setattr(f"kpyramid.{module}.open_embedder", open_remembering)
        yield


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    """Of BLAS, as stages have it, and of DuckDB: workers are as many as processors."""
    import duckdb
    import scipy.linalg  # noqa: F401  which has a BLAS of its own

    connect = duckdb.connect

    def connect_small(*path: str, config: Mapping[str, Any] | None = None, **options: Any) -> Any:
        return connect(*path, config={**(config or {}), "threads": 1}, **options)

    with threadpool_limits(1), pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "connect", connect_small)
        yield


@pytest.fixture(autouse=True, scope="session")
def _wait_for_no_disk() -> Iterator[None]:
    """A build syncs 160 files and folders, which only a loss of power could tell from none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(autouse=True)
def _ignore_settings_of_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in os.environ:
        if variable.startswith("KPYRAMID_") and variable != "KPYRAMID_BENCH":
            monkeypatch.delenv(variable)


@pytest.fixture(scope="module")
def passing_gates() -> Iterator[None]:
    """Builds start neither Java nor pyshacl: for modules that test no gate."""
    from tests.corpora import pass_gates

    with pytest.MonkeyPatch.context() as patch:
        pass_gates(patch)
        yield


@pytest.fixture
def quick_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds embed by hashing, and start neither Java nor pyshacl."""
    from tests.corpora import use_quick_models

    use_quick_models(monkeypatch)


@pytest.fixture
def quick_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions embed by hashing, as builds with `quick_models` do."""
    from tests.corpora import HashEmbedder

    def open_quick(name: str, *_: object) -> HashEmbedder:
        return HashEmbedder(name, Path(), Path())

    monkeypatch.setattr("kpyramid.snapshot.snapshot.open_embedder", open_quick)


@pytest.fixture
def shapes_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs pyshacl in this process, without limits: starting one takes most of a second."""
    from kpyramid.errors import InputError
    from kpyramid.ontology.validation import shapes

    def ask(_name: str, given: shapes.Given, *, seconds: float) -> tuple[object, str]:
        try:
            return shapes._validate(given), ""
        except InputError as e:
            return {"error": str(e)}, ""

    monkeypatch.setattr(shapes, "ask_function", ask)


@pytest.fixture(scope="session")
def extractor() -> "DependencyExtractor":
    """The extractor of the rules, which keeps nothing of what it read."""
    from kpyramid.extraction.openie import DependencyExtractor
    from kpyramid.settings import ExtractSettings

    return DependencyExtractor(ExtractSettings().parser)


@pytest.fixture(scope="session")
def snapshot() -> "Snapshot":
    """The pyramid of a few sentences, built once in a test run, for reading only."""
    from tests.tiny_pyramid import open_tiny

    return open_tiny()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--not-passed`, with which `.ci/run` runs no test twice."""
    text = "leave out the tests that passed in the last run without this option"
    parser.addoption("--not-passed", action="store_true", help=text)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than processors for the slow tests, of which those of Airflow wait for minutes."""
    return len(os.sched_getaffinity(0)) + (config.option.markexpr != "not slow")


def pytest_configure(config: pytest.Config) -> None:
    """Makes the folder that the workers of this run share."""
    if not hasattr(config, "workerinput"):
        os.environ[SHARED] = tempfile.mkdtemp(prefix="kpyramid-tests-")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Removes it."""
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ[SHARED], ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Puts the longest first; deselects what passed before, if so asked."""
    items.sort(key=lambda item: item.path.name not in LONG)
    if config.option.not_passed and config.cache:
        passed = frozenset(config.cache.get(PASSED, []))
        dropped = [item for item in items if item.nodeid in passed]
        items[:] = [item for item in items if item.nodeid not in passed]
        config.hook.pytest_deselected(items=dropped)


def pytest_collection_finish() -> None:
    """Looks for garbage less often, which takes a fifteenth of the time."""
    gc.set_threshold(20_000, 20, 50)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips a test whose mark `needs` names an extra that is missing; in CI that is a failure."""
    for mark in item.iter_markers("needs"):
        for extra in mark.args:
            if importlib.util.find_spec(EXTRAS[extra]) is None:
                stop = pytest.fail if os.environ.get("CI") else pytest.skip
                stop(f"the extra {extra} is not installed; `make install-ci` installs it")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Keeps what passed for `--not-passed`.

    Ends as pytest does for an empty selection when every selected test was skipped.
    """
    config = session.config
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if not reporter or config.option.collectonly:
        return
    if getattr(config, "cache", None) and not config.option.not_passed:
        config.cache.set(PASSED, [report.nodeid for report in reporter.stats.get("passed", ())])
    if exitstatus == pytest.ExitCode.OK:
        ran = any(reporter.stats.get(outcome) for outcome in ("passed", "failed", "xfailed"))
        if not ran:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[S3Server]":
    """A real S3 server, one for the whole test run."""
    from tests.s3 import serve_s3

    with serve_s3(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> "Iterator[Loopback]":
    """A model's endpoint that answers as `ANSWER` of the module says, if it has one.

    What the client tries again by itself, it tries at once.
    """
    from tests.loopback import answer_by_schema, serve

    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.0)
    with serve(getattr(request.module, "ANSWER", answer_by_schema)) as running:
        yield running


@pytest.fixture
def no_key_of_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a key for a model nor an address of one."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_LOG"):
        monkeypatch.delenv(name, raising=False)
