"""Builds over a small corpus whose language model is a server of this process."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kpyramid.pipeline.build import BuildOutcome, build
from kpyramid.pipeline.runner import run_stage
from kpyramid.pipeline.stage import PIPELINE, Progress
from kpyramid.settings import Settings
from kpyramid.storage.contracts import load_contracts
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.results import find_result, read_result
from kpyramid.storage.runs import StageMark, start_run
from tests.corpora import make_settings
from tests.loopback import Loopback

STEPS = ("paraphrase", "entities", "relations", "disambiguation")
PRICE = {"m": {"input": 1.0, "output": 4.0}}
STAGES = [stage.name for stage in PIPELINE]
Rows = list[dict[str, Any]]


def open_settings(server: Loopback, **llm: object) -> Settings:
    return make_settings(
        chunk={"max_tokens": 24, "overlap_tokens": 0},
        cascade=dict.fromkeys(STEPS, "llm"),
        complete={"min_support": 2},
        llm={"provider": "openai", "model": "m", "base_url": server.base_url, **llm},
    )


def run(corpus: Path, folder: Path, settings: Settings, **options: object) -> BuildOutcome:
    return build(corpus, Warehouse(folder), settings, **options)  # type: ignore[arg-type]


def run_stages(
    corpus: Path, folder: Path, settings: Settings, last: str = "extract"
) -> Mapping[str, StageMark]:
    """The stages of a new run up to one of them: a build without what follows."""
    started = start_run(Warehouse(folder), corpus, settings, ref="main")
    names = STAGES[: STAGES.index(last) + 1]
    return {name: run_stage(started, name, workers=1, progress=Progress()) for name in names}


def read_rows(folder: Path, mark: StageMark, table: str) -> Rows:
    """What a stage wrote into a table."""
    result = find_result(Warehouse(folder), mark.stage, mark.key)
    assert result is not None
    rows: Rows = read_result(result.tables[table], load_contracts()[table]).to_pylist()
    return rows


def list_facts(folder: Path, mark: StageMark) -> set[tuple[str, str, str]]:
    """What stage extract read."""
    rows = read_rows(folder, mark, "raw_triples")
    return {(row["head"], row["relation"], row["tail"]) for row in rows}
