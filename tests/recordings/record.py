r"""Records what a local model replies on 20 passages of the demo, in paper and in merged mode.

    python tests/local_model.py MODELS
    kpyramid serve-model MODELS/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf -- \
        python tests/recordings/record.py --warehouse FOLDER

Replies that are recorded already or lie in the warehouse's cache are not asked for again, so a
change of the prompts or of the rules costs only what it touches; about half an hour from nothing.
With `--golden` nobody is asked: what the recordings give now is noted in `qwen05.json`.
"""

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pyarrow as pa

from kpyramid.cached import Silence
from kpyramid.extraction.cascade.reading import Cascade
from kpyramid.extraction.openie import DependencyExtractor
from kpyramid.extraction.text.splitter import split_text
from kpyramid.extraction.types import Extraction
from kpyramid.llm.cache import ReplyCache, ReplyEntry
from kpyramid.llm.recordings import read_recording, write_recording
from kpyramid.model_settings import CascadeSettings, LLMSettings
from kpyramid.models import Model, Opener, open_replies
from kpyramid.ports import open_cascade
from kpyramid.settings import Settings, load_settings
from kpyramid.sources.corpus import SourceFile
from kpyramid.stages import chunk, extract, ingest
from kpyramid.warehouse.layout import open_warehouse

HERE = Path(__file__).parent
DEMO = HERE.parent.parent / "examples" / "demo" / "corpus" / "passages.jsonl"
MODEL = "qwen2.5-coder-0.5b-instruct-q4_k_m@1d9614638d18"
GOLDEN = HERE / "qwen05.json"
MODES = ("paper", "merged")
EVERY = 10
"""Every tenth passage of the demo, from the first on: nobody chose them."""


def find_recording(mode: str) -> Path:
    """The file with the replies of a mode."""
    return HERE / f"qwen05_{mode}.jsonl.gz"


def list_passages() -> list[dict[str, str]]:
    """The passages: id, title and text."""
    rows = [json.loads(line) for line in DEMO.read_text("utf-8").splitlines()]
    return rows[::EVERY]


def choose_settings(mode: str, llm: LLMSettings) -> Settings:
    """The settings with all steps of the extraction the model's, in the closed form."""
    cascade = CascadeSettings(
        mode="paper" if mode == "paper" else "merged",
        paraphrase="llm",
        entities="llm",
        relations="llm",
        closed=True,
    )
    return Settings(cascade=cascade, llm=llm)


def make_tables() -> dict[str, pa.Table]:
    """The documents and chunks of the passages, as a build makes them."""
    data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in list_passages())
    corpus = [SourceFile("passages.jsonl", data.encode(), None)]
    settings = Settings()
    documents = ingest.run(corpus=corpus, settings=settings.ingest)["documents"]
    cut = chunk.run(
        documents, splitter=lambda texts: [tuple(split_text(t, settings.chunk)) for t in texts]
    )
    return {"documents": documents, "chunks": cut["chunks"]}


def read_tables(tables: Mapping[str, pa.Table], cascade: Cascade | None) -> dict[str, pa.Table]:
    """What the stage extract makes of the passages, with a model or, without one, by the rules."""
    return extract.run(
        tables["documents"],
        tables["chunks"],
        extractor=lambda texts: read_by_rules(tuple(texts)),
        cascade=cascade,
    )


@cache
def read_by_rules(texts: tuple[str, ...]) -> list[Extraction]:
    """What the rules find; the modes read the same texts."""
    chosen = Settings().extract
    return list(DependencyExtractor(chosen.parser, chosen.language).extract_all(texts))


def ask_model(settings: Settings, warehouse: Path) -> tuple[dict[str, pa.Table], Model]:
    """What the stage extract makes of the passages with the model of the settings, and that."""
    place = open_warehouse(warehouse)
    run = place.runs / "passages"
    run.mkdir(parents=True, exist_ok=True)
    model = Opener(place, settings, run, "main").open_model()
    return read_tables(make_tables(), open_cascade(settings, model.caller, Silence())), model


def replay(mode: str, warehouse: Path) -> tuple[dict[str, pa.Table], Model]:
    """The same from the recording of a mode, without a model."""
    llm = LLMSettings(provider="replay", model=MODEL, recording=str(find_recording(mode)))
    return ask_model(choose_settings(mode, llm), warehouse)


def record(warehouse: Path, mode: str) -> None:
    """Asks for what is missing and writes the recording of a mode anew."""
    llm = load_settings(None).llm
    if llm.model != MODEL:
        raise SystemExit(f"serve {MODEL} with kpyramid serve-model, see the top of this file")
    settings = choose_settings(mode, llm)
    cache = ReplyCache(open_replies(open_warehouse(warehouse), settings))
    if find_recording(mode).exists():
        for recorded in read_recording(find_recording(mode)):
            assert isinstance(recorded, ReplyEntry)
            cache.keep_entry(recorded)
    made, model = ask_model(settings, warehouse)
    keys = sorted(model.caller.keys)
    entries = [entry for key in keys if (entry := cache.read_reply_entry(key)) is not None]
    write_recording(find_recording(mode), entries)
    print(f"{mode}: {len(entries)} replies, {made['raw_triples'].num_rows} triples,", end=" ")
    print(f"{model.describe()}")


def list_triples(made: Mapping[str, pa.Table]) -> list[list[str]]:
    """The triples of an extraction, sorted: document's title, head, relation, tail."""
    tables = make_tables()
    documents = {row["document_id"]: row["title"] for row in tables["documents"].to_pylist()}
    titles = {
        row["chunk_id"]: documents[row["document_id"]] for row in tables["chunks"].to_pylist()
    }
    return sorted(
        [titles[row["chunk_id"]], row["head"], row["relation"], row["tail"]]
        for row in made["raw_triples"].to_pylist()
    )


def count_reasons(made: Mapping[str, pa.Table]) -> dict[str, int]:
    """The rejects of an extraction by reason."""
    return dict(sorted(Counter(made["rejects"].column("reason").to_pylist()).items()))


def describe_replay(mode: str, warehouse: Path) -> dict[str, object]:
    """What the golden file says of a mode."""
    made, model = replay(mode, warehouse)
    asked = {"replies": len(model.caller.keys), "failures": len(model.caller.failed)}
    return {**asked, "rejects": count_reasons(made), "triples": list_triples(made)}


def write_golden() -> None:
    """Notes what the recordings give now; read the diff."""
    with tempfile.TemporaryDirectory() as folder:
        found = {mode: describe_replay(mode, Path(folder) / mode) for mode in MODES}
    GOLDEN.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--warehouse", type=Path)
    parser.add_argument("--golden", action="store_true")
    chosen = parser.parse_args()
    if not chosen.golden:
        if chosen.warehouse is None:
            parser.error("name a folder for replies: --warehouse FOLDER")
        for each in MODES:
            record(chosen.warehouse, each)
    write_golden()
