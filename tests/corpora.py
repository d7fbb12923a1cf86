"""Small corpora with planted facts, and quick stand-ins for the models that read them."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from filelock import FileLock

from kpyramid.embeddings.port import Matrix
from kpyramid.ontology.sparql import check_query, run_query
from kpyramid.ontology.store import OntologyStore
from kpyramid.ontology.validation import checks
from kpyramid.ontology.validation.consistency import find_java, judge_consistency
from kpyramid.ontology.validation.shapes import Shaped
from kpyramid.pipeline import cache as cached
from kpyramid.pipeline import gates, wiring
from kpyramid.pipeline.build import BuildOutcome, build
from kpyramid.query import PUBLIC, Scope, Snapshot, open_snapshot
from kpyramid.settings import Settings, check_settings
from kpyramid.snapshot.store import Store
from kpyramid.storage.contracts import load_contracts
from kpyramid.storage.layout import Warehouse, open_warehouse
from kpyramid.storage.runs import StageMark
from tests.rows import read_bodies

ROOT = Path(__file__).parent.parent
SHARED = "PYTEST_KPYRAMID_SHARED"
"""Variable with the folder that all processes of a test run share; `conftest.py` makes it."""
DEMO = ROOT / "examples" / "demo" / "corpus" / "passages.jsonl"

TEXTS: Mapping[str, str] = read_bodies("corpora.shared_texts")
"""`zorblax.txt` is the only place that names Zorblax and Quuxville."""


class HashEmbedder:
    """Vectors made of the hashes of a text's words: texts that share words are near.

    `history` holds every text it was ever asked for, in every test of this process.
    """

    history: list[str] = []  # noqa: RUF012 - one log for all objects is what the tests need

    def __init__(self, name: str, model: Path, tokenizer: Path) -> None:
        self.name = name

    def embed(self, texts: Sequence[str]) -> Matrix:
        self.history.extend(texts)
        return np.stack([self._embed_one(text) for text in texts])

    def _embed_one(self, text: str) -> Matrix:
        vector = np.sum([_embed_word(word) for word in text.lower().split() or [""]], axis=0)
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


@cache
def _embed_word(word: str) -> Matrix:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(48).astype(np.float32)


_judge_schema = cache(judge_consistency)
_check_query = cache(check_query)


class StoreHere(OntologyStore):
    """Runs queries in this process, without limits: starting one takes as long as a small build."""

    def select(self, query: str, *, limit: int = 1000) -> list[dict[str, str]]:
        return run_query(self._store, _check_query(query), limit)


def use_quick_models(monkeypatch: pytest.MonkeyPatch, *, judged: bool = False) -> None:
    """`HashEmbedder` for the embedding model, and unless `judged` the gates of `pass_gates`."""
    monkeypatch.setattr(
        cached, "open_embedder", lambda name, *_: HashEmbedder(name, Path(), Path())
    )
    monkeypatch.setattr(wiring, "judge_consistency", _judge_schema)
    if not judged:
        pass_gates(monkeypatch)


def pass_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets every snapshot pass HermiT, SHACL and owlready2, which start a process for seconds.

    They pass what is built of small corpora; that they stop what they must is for the tests of
    the gates, which ask them. Checks and questions are run, in this process.
    """
    monkeypatch.setattr(gates, "OntologyStore", StoreHere)
    monkeypatch.setattr(checks, "check_query", _check_query)
    monkeypatch.setattr(gates, "judge_consistency", lambda *_, **__: "pass")
    monkeypatch.setattr(gates, "judge_shapes", lambda *_, **__: Shaped("pass"))
    monkeypatch.setattr(gates, "judge_reading", lambda *_, **__: "pass")


def share(name: str, make: Callable[[Path], object]) -> Path:
    """A folder that `make` fills once in a test run, for all its processes; for reading only."""
    folder = Path(os.environ[SHARED]) / name
    with FileLock(folder.with_suffix(".lock")):
        if not folder.exists():
            part = folder.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            make(part)
            part.rename(folder)
    return folder


def find_bench(name: str) -> Path:
    """A folder of the benchmark data; without it the test is a named skip, in CI a failure."""
    folder = Path(os.environ.get("KPYRAMID_BENCH") or "absent") / name
    if not folder.is_dir():
        assert "CI" not in os.environ, "KPYRAMID_BENCH must name the benchmark data"
        pytest.skip(f"KPYRAMID_BENCH names no folder with {name}")
    return folder


def require_java() -> None:
    """Without Java for HermiT the test is a named skip, in CI a failure."""
    if find_java() is None:
        assert "CI" not in os.environ, "HermiT needs Java"
        pytest.skip("no Java for HermiT")


def write_corpus(folder: Path, texts: Mapping[str, str] = TEXTS) -> Path:
    """A folder with these texts, a file each."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    return folder


def encode_lines(rows: Iterable[object]) -> str:
    """JSON lines."""
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def build_told(
    folder: Path, texts: Mapping[str, str], decisions: str = "", **sections: Any
) -> BuildOutcome:
    """Builds `warehouse` from the texts of `corpus`, both in a folder; gates are passed by."""
    if decisions:
        (folder / "proposals.toml").write_text(decisions, "utf-8")
        sections["complete"] = {"decisions": str(folder / "proposals.toml")}
    with pytest.MonkeyPatch.context() as patch:
        pass_gates(patch)
        corpus = write_corpus(folder / "corpus", texts)
        return build(corpus, open_warehouse(folder / "warehouse"), make_settings(**sections))


def open_told(
    name: str, texts: Mapping[str, str], scope: Scope = PUBLIC, **options: Any
) -> Snapshot:
    """The pyramid of some texts, built once in a test run under a name; for reading only."""
    folder = share(name, lambda folder: build_told(folder, texts, **options))
    return open_snapshot("main", folder / "warehouse", scope=scope)


def make_settings(**sections: Mapping[str, object]) -> Settings:
    """The defaults with some values changed, by section."""
    return check_settings(sections, {"file": "a test"})


SETTINGS = make_settings(chunk={"max_tokens": 24, "overlap_tokens": 6}, complete={"min_support": 2})
"""Short chunks, so that a small text has several; proposals from two facts on."""


def build_corpus(
    corpus: Path, warehouse: Warehouse, settings: Settings = SETTINGS, **options: object
) -> BuildOutcome:
    """A build with short chunks."""
    return build(corpus, warehouse, settings, **options)  # type: ignore[arg-type]


def list_marks(outcome: BuildOutcome) -> dict[str, StageMark]:
    """The marks of a build by stage."""
    return {mark.stage: mark for mark in outcome.marks}


def count_recomputed(outcome: BuildOutcome) -> dict[str, int]:
    """How many rows each stage computed."""
    return {mark.stage: mark.recomputed for mark in outcome.marks}


def read_snapshot(warehouse: Warehouse, snapshot: str) -> dict[str, pa.Table]:
    """All tables of a snapshot."""
    store = Store(warehouse.snapshots / snapshot)
    return {name: store.table(name) for name in load_contracts()}


def hash_tree(folder: Path) -> dict[str, str]:
    """The sha256 of every file below a folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@cache
def _build_shared() -> tuple[Path, str]:
    folder = share("corpora", _build_texts)
    return folder, (folder / "snapshot").read_text("utf-8")


def _build_texts(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_quick_models(monkeypatch, judged=True)
        corpus = write_corpus(folder / "corpus")
        outcome = build_corpus(corpus, Warehouse(folder / "warehouse"), order="2026-01-01")
    (folder / "snapshot").write_text(outcome.snapshot, "utf-8")


def shared_corpus() -> Path:
    """The folder with `TEXTS`, for reading only."""
    return _build_shared()[0] / "corpus"


def copy_shared_build(folder: Path) -> tuple[Warehouse, str]:
    """A copy of a warehouse in which `TEXTS` were built at order 2026-01-01, and the snapshot."""
    source, snapshot = _build_shared()
    shutil.copytree(source / "warehouse", folder)
    return Warehouse(folder), snapshot
