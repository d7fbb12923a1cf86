r"""Records what a local model replies on 20 passages of the demo, in paper and in merged mode.

    python tests/local_model.py MODELS
    kpyramid serve-model MODELS/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf -- \
        python tests/recordings/record.py FOLDER [MODE]

Replies that are recorded already or lie in FOLDER, the cache, are not asked for again, so a change
of the prompts or of the rules costs only what it touches. About half an hour from nothing.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from kpyramid.cached import Silence
from kpyramid.extraction.cascade.reading import Cascade
from kpyramid.extraction.openie import DependencyExtractor
from kpyramid.extraction.text.splitter import split_text
from kpyramid.extraction.types import Extraction
from kpyramid.llm.cache import ReplyCache, ReplyEntry
from kpyramid.llm.caller import Asker, Caller
from kpyramid.llm.endpoint import Endpoint
from kpyramid.llm.ledger import Ledger
from kpyramid.llm.limiter import Limiter
from kpyramid.llm.locks import KeyLocks
from kpyramid.llm.recordings import read_recording, write_recording
from kpyramid.llm.stores import open_blobs
from kpyramid.llm.transport import open_transport
from kpyramid.llm.types import describe_model
from kpyramid.model_settings import CascadeSettings
from kpyramid.ports import open_cascade
from kpyramid.settings import Settings, load_settings
from kpyramid.sources.corpus import SourceFile
from kpyramid.stages import chunk, extract, ingest

HERE = Path(__file__).parent
DEMO = HERE.parent.parent / "examples" / "demo" / "corpus" / "passages.jsonl"
MODEL = "qwen2.5-coder-0.5b-instruct-q4_k_m@1d9614638d18"
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


def choose_settings(mode: str, settings: Settings) -> Settings:
    """The settings with all steps of the extraction the model's, in the closed form."""
    cascade = CascadeSettings(
        mode="paper" if mode == "paper" else "merged",
        paraphrase="llm",
        entities="llm",
        relations="llm",
        closed=True,
    )
    return replace(settings, cascade=cascade, llm=replace(settings.llm, model=MODEL))


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
    chosen = Settings().extract
    rules = DependencyExtractor(chosen.parser, chosen.language)

    def extractor(texts: Sequence[str]) -> list[Extraction]:
        return list(rules.extract_all(texts))

    return extract.run(tables["documents"], tables["chunks"], extractor=extractor, cascade=cascade)


def open_reader(settings: Settings, asker: Asker) -> Cascade:
    """The cascade over whoever answers."""
    return open_cascade(settings, asker, Silence())


def record(folder: Path, mode: str) -> None:
    """Asks for what is missing and writes the recording of a mode anew."""
    settings = choose_settings(mode, load_settings(None))
    if load_settings(None).llm.model != MODEL:
        raise SystemExit(f"serve {MODEL} with kpyramid serve-model, see the top of this file")
    cache = ReplyCache(open_blobs(str(folder)))
    if find_recording(mode).exists():
        for entry in read_recording(find_recording(mode)):
            assert isinstance(entry, ReplyEntry)
            cache.keep_entry(entry)
    source = Endpoint(
        lambda pay: open_transport(settings.llm, lambda _: None, pay),
        Ledger(None, settings.llm),
        Limiter(folder / "limits.json", 0, 0),
        max_wait=settings.llm.max_wait,
    )
    caller = Caller(describe_model(settings.llm), source, cache, KeyLocks(None))
    made = read_tables(make_tables(), open_reader(settings, caller))
    entries = [e for key in sorted(caller.keys) if (e := cache.read_reply_entry(key)) is not None]
    write_recording(find_recording(mode), entries)
    print(
        f"{mode}: {len(entries)} replies, {source.calls} calls, {made['raw_triples'].num_rows} "
        f"triples, {len(caller.failed)} failures"
    )


if __name__ == "__main__":
    for chosen in sys.argv[2:] or MODES:
        record(Path(sys.argv[1]), chosen)
