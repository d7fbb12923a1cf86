"""Builds over a small corpus whose language model is a server of this process."""

from collections.abc import Mapping
from pathlib import Path

from kpyramid.pipeline.build import BuildOutcome, build
from kpyramid.settings import Settings
from kpyramid.storage.layout import Warehouse
from tests.corpora import list_marks, make_settings
from tests.loopback import Loopback

STEPS = ("paraphrase", "entities", "relations", "disambiguation")
PRICE = {"m": {"input": 1.0, "output": 4.0}}


def open_settings(server: Loopback, **llm: object) -> Settings:
    return make_settings(
        chunk={"max_tokens": 24, "overlap_tokens": 0},
        cascade=dict.fromkeys(STEPS, "llm"),
        complete={"min_support": 2},
        llm={"provider": "openai", "model": "m", "base_url": server.base_url, **llm},
    )


def run(corpus: Path, folder: Path, settings: Settings, **options: object) -> BuildOutcome:
    return build(corpus, Warehouse(folder), settings, **options)  # type: ignore[arg-type]


def read_rejects(outcome: BuildOutcome) -> Mapping[str, int]:
    return list_marks(outcome)["extract"].rejects
