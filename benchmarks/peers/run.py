"""Drives one tool through one step; run by `peers.py` with the Python of the tool's environment.

python run.py TOOL JOB.json: the job names the documents, what changed since the last step and words
to look for. The last line printed is JSON: `held`, those words that the tool's graph or texts have.
"""

import asyncio
import gzip
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Job = dict[str, Any]


def read_documents(job: Job) -> dict[str, str]:
    """The text of each document by its file's name."""
    return {path.name: path.read_text("utf-8") for path in sorted(Path(job["documents"]).iterdir())}


def find_words(job: Job, *texts: str) -> list[str]:
    return [word for word in job["words"] if any(word.casefold() in t.casefold() for t in texts)]


class Pieces:
    """In place of a vocabulary that would be loaded from outside: words by six letters, marks."""

    name, n_vocab, max_token_value = "pieces", 1 << 20, 1 << 20

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._pieces: list[str] = []

    def encode(self, text: str, *_: Any, **__: Any) -> list[int]:
        numbers = []
        for piece in re.findall(r" ?\w{1,6}|\s|[^\w\s]", text):
            if piece not in self._numbers:
                self._numbers[piece] = len(self._pieces)
                self._pieces.append(piece)
            numbers.append(self._numbers[piece])
        return numbers

    encode_ordinary = encode

    def encode_batch(self, texts: Iterable[str], *_: Any, **__: Any) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def decode(self, numbers: Iterable[int], *_: Any, **__: Any) -> str:
        return "".join(self._pieces[number] for number in numbers)

    def decode_batch(self, rows: Iterable[Iterable[int]], *_: Any, **__: Any) -> list[str]:
        return [self.decode(row) for row in rows]


def replace_tiktoken() -> None:
    """Its vocabularies are downloads; which one counts matters little for where texts are cut."""
    import tiktoken

    pieces = Pieces()
    tiktoken.get_encoding = tiktoken.encoding_for_model = lambda *_, **__: pieces


def read_files(folder: Path, *leave: str) -> list[str]:
    """What all files say, unpacked, but those with one of these in their names."""
    texts = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(part in path.name for part in leave):
            data = path.read_bytes()
            data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
            texts.append(data.decode("utf-8", "replace"))
    return texts


def run_lightrag(job: Job) -> list[str]:
    """Deletes what changed or is gone by its id, and inserts all."""
    replace_tiktoken()
    from lightrag import LightRAG
    from lightrag.llm.openai import openai_complete_if_cache, openai_embed
    from lightrag.utils import EmbeddingFunc

    async def complete(prompt: str, **more: Any) -> Any:
        more.pop("hashing_kv", None)
        return await openai_complete_if_cache("loopback", prompt, api_key="none", **more)

    async def embed(texts: list[str], **_: Any) -> Any:
        return await openai_embed.func(texts, model="loopback", api_key="none")

    async def work() -> None:
        rag = LightRAG(
            working_dir=f"{job['folder']}/store",
            llm_model_func=complete,
            embedding_func=EmbeddingFunc(embedding_dim=32, max_token_size=8192, func=embed),
            llm_model_max_async=job["concurrency"],
        )
        await rag.initialize_storages()
        for name in filter(None, (job["changed"], job["gone"])):
            await rag.adelete_by_doc_id(name)
        texts = read_documents(job)
        await rag.ainsert([*texts.values()], ids=[*texts], file_paths=[*texts])
        await rag.finalize_storages()

    Path(job["folder"], "store").mkdir(exist_ok=True)
    asyncio.run(work())
    return find_words(job, *read_files(Path(job["folder"], "store"), "llm_response_cache"))


def run_nano(job: Job) -> list[str]:
    """Inserts all; the tool leaves what it knows by the hash of its text."""
    replace_tiktoken()
    from nano_graphrag import GraphRAG
    from nano_graphrag._llm import openai_embedding

    openai_embedding.embedding_dim = 32
    most = job["concurrency"]
    rag = GraphRAG(
        working_dir=f"{job['folder']}/store",
        best_model_max_async=most,
        cheap_model_max_async=most,
        embedding_func_max_async=most,
    )
    rag.insert([*read_documents(job).values()])
    return find_words(job, *read_files(Path(job["folder"], "store"), "llm_response_cache"))


def run_fast(job: Job) -> list[str]:
    """Inserts all; the tool leaves what it knows by the hash of its text."""
    replace_tiktoken()
    from fast_graphrag import GraphRAG
    from fast_graphrag._llm import OpenAIEmbeddingService, OpenAILLMService

    at: dict[str, Any] = {"base_url": job["base_url"], "api_key": "none", "model": "loopback"}
    rag = GraphRAG(
        working_dir=f"{job['folder']}/store",
        domain="Encyclopedia",
        example_queries="Who founded it? Where is it?",
        entity_types=["person", "place", "organisation", "other"],
        config=GraphRAG.Config(
            llm_service=OpenAILLMService(**at),
            embedding_service=OpenAIEmbeddingService(**at, embedding_dim=32),
        ),
    )
    texts = read_documents(job)
    rag.insert([*texts.values()], metadata=[{"id": name} for name in texts])
    return find_words(job, *read_files(Path(job["folder"], "store")))


def run_graphrag(job: Job) -> list[str]:
    """Indexes the whole folder again: what was asked is in its cache."""
    replace_tiktoken()
    import pandas as pd
    from graphrag.cli.main import app

    store = Path(job["folder"], "store")
    if not store.exists():
        store.mkdir()
        models = ["--model", "loopback", "--embedding", "loopback"]
        app(["init", "--root", str(store), *models], standalone_mode=False)
        settings = (store / "settings.yaml").read_text("utf-8")
        at = f"api_base: {job['base_url']}\n    api_key: none"
        settings = settings.replace("api_key: ${GRAPHRAG_API_KEY}", at)
        settings = settings.replace("vector_store:\n", "vector_store:\n  vector_size: 32\n")
        settings = f"concurrent_requests: {job['concurrency']}\n{settings}"
        (store / "settings.yaml").write_text(settings, "utf-8")
    shutil.rmtree(store / "input", ignore_errors=True)
    shutil.copytree(job["documents"], store / "input")
    try:
        app(["index", "--root", str(store)], standalone_mode=False)
    except SystemExit as end:
        if end.code:
            raise
    tables = sorted((store / "output").glob("*.parquet"))
    return find_words(job, *(pd.read_parquet(path).to_json() for path in tables))


def run_cognee(job: Job) -> list[str]:
    """Updates what changed and forgets what is gone by its id, then adds and cognifies all."""
    replace_tiktoken()
    at = {"API_KEY": "none", "MODEL": "openai/loopback", "ENDPOINT": job["base_url"]}
    for part in ("LLM", "EMBEDDING"):
        os.environ.update({f"{part}_{name}": value for name, value in at.items()})
        os.environ[f"{part}_PROVIDER"] = "openai"
    os.environ.update(
        EMBEDDING_MODEL="openai/text-embedding-3-small",  # of others litellm asks for no dimensions
        EMBEDDING_DIMENSIONS="32",
        ENABLE_BACKEND_ACCESS_CONTROL="false",
        TELEMETRY_DISABLED="1",
        COGNEE_SKIP_CONNECTION_TEST="true",
        DATA_ROOT_DIRECTORY=f"{job['folder']}/store/data",
        SYSTEM_ROOT_DIRECTORY=f"{job['folder']}/store/system",
    )
    import cognee
    from cognee.infrastructure.databases.graph import get_graph_engine

    async def work() -> list[str]:
        if job["changed"] or job["gone"]:
            dataset = (await cognee.datasets.list_datasets())[0].id
            known = {item.name: item.id for item in await cognee.datasets.list_data(dataset)}
            if job["changed"]:
                path = Path(job["documents"], job["changed"])
                await cognee.update(known[path.stem], str(path), dataset_id=dataset)
            if job["gone"]:
                await cognee.forget(data_id=known[Path(job["gone"]).stem], dataset=dataset)
        paths = [str(path) for path in sorted(Path(job["documents"]).iterdir())]
        await cognee.add(paths, dataset_name="documents")
        await cognee.cognify(datasets=["documents"])
        engine = await get_graph_engine()
        return find_words(job, str(await engine.get_graph_data()))

    return asyncio.run(work())


def run_title_graph(job: Job) -> list[str]:
    """Vectors of the documents, and which names the title of which."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from embedding import open_embedder
    from making.bridges import link_titles

    texts = read_documents(job)
    embedder = open_embedder()
    for text in texts.values():
        embedder.embed([text])
    link_titles([{"title": text.partition("\n")[0], "text": text} for text in texts.values()])
    return []


RUNNERS: dict[str, Callable[[Job], list[str]]] = {
    "title-graph": run_title_graph,
    "graphrag": run_graphrag,
    "lightrag": run_lightrag,
    "nano-graphrag": run_nano,
    "fast-graphrag": run_fast,
    "cognee": run_cognee,
}


def main() -> None:
    tool, path = sys.argv[1:]
    held = RUNNERS[tool](json.loads(Path(path).read_text("utf-8")))
    print(json.dumps({"held": held}))


if __name__ == "__main__":
    main()
