"""One behaviour for all embedding models: each is opened as the settings name it and asked."""

import hashlib
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pytest

from kpyramid.embeddings.onnx import OnnxEmbedder, OnnxModel
from kpyramid.embeddings.opening import open_embedder
from kpyramid.embeddings.port import Embedder
from kpyramid.embeddings.served import open_served
from kpyramid.llm.endpoint import Endpoint
from kpyramid.llm.ledger import LEDGER, Ledger
from kpyramid.settings import EmbedSettings, LLMSettings
from kpyramid.snapshot.snapshot import open_recorded
from kpyramid.storage.identity import identify_embedding
from tests.loopback import serve
from tests.processes import run_python
from tests.tiny_instructor import INSTRUCTION, require_instructor, write_instructor

ROOT = Path(__file__).parent.parent
TEXTS = (
    "The Danube flows through Vienna.",
    "a river",
    "Ada Lovelace was born in London in 1815, and she wrote the first program; " * 6,
    "a bridge",
    "the river of the fact",
)
ODD = (
    *("", " ", "\n\t", "日本 я ß", "e\u0301 é", "👩‍👩‍👧 flag 🇦🇹"),
    *("\u200b", "a\x00b", "مرحبا", "</s><pad>[SEP]"),
)


@dataclass(frozen=True)
class Place:
    """Where the models are that the tests use."""

    folder: Path
    base_url: str


def use_instructor(place: Place) -> EmbedSettings:
    require_instructor()
    if not place.folder.exists():
        write_instructor(place.folder)
    return EmbedSettings("instructor", str(place.folder), INSTRUCTION)


PROVIDERS: dict[str, Callable[[Place], EmbedSettings]] = {
    "minilm": lambda place: EmbedSettings(),
    "prefixed minilm": lambda place: EmbedSettings(instruction="query: "),
    "instructor": use_instructor,
    "served": lambda place: EmbedSettings("openai", "small", base_url=place.base_url),
    "short served": lambda place: EmbedSettings(
        "openai", "small", instruction="query: ", base_url=place.base_url, dimensions=7
    ),
}
SLOW = {"instructor": pytest.mark.slow}


def open_any(settings: EmbedSettings, scratch: Path) -> Embedder:
    """The model that the settings name, opened as a build opens it."""
    if settings.provider != "openai":
        identity = identify_embedding(settings)
        return open_embedder(identity.name, identity.files, settings.provider, settings.instruction)
    llm = LLMSettings()
    return open_served(
        settings,
        llm,
        lambda open_transport, describe: Endpoint(
            open_transport, Ledger(scratch / LEDGER, llm), max_wait=5.0, describe=describe
        ),
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with serve() as server:
        yield Place(tmp_path_factory.mktemp("models") / "tiny", server.base_url)


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=SLOW.get(name, ())) for name in PROVIDERS]
)
def settings(request: pytest.FixtureRequest, place: Place) -> EmbedSettings:
    return PROVIDERS[request.param](place)


@pytest.fixture(scope="module")
def embedder(settings: EmbedSettings, tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    return open_any(settings, tmp_path_factory.mktemp("scratch"))


def test_each_text_gets_one_row_of_unit_length(embedder: Embedder) -> None:
    for texts in (TEXTS, ODD):
        made = embedder.embed(texts)
        assert made.dtype == np.float32
        assert made.shape[0] == len(texts) and made.shape[1] > 1
        assert np.linalg.norm(made.astype(np.float64), axis=1) == pytest.approx(1.0, abs=1e-6)
    assert len({row.tobytes() for row in embedder.embed(TEXTS)}) == len(TEXTS), "unlike texts"


def test_a_row_depends_on_its_own_text_alone(embedder: Embedder) -> None:
    together = embedder.embed(TEXTS)
    alone = [embedder.embed([text])[0] for text in TEXTS]
    backwards = embedder.embed(TEXTS[::-1])[::-1]

    assert together.tobytes() == np.stack(alone).tobytes() == backwards.tobytes()


def test_model_that_scales_its_batch_reads_each_text_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    files = identify_embedding(EmbedSettings()).files
    opened = OnnxEmbedder("scaling", files["model.onnx"], files["tokenizer.json"])
    expected = [opened.embed([text])[0].tobytes() for text in ("a river", "a bridge", "a fact")]
    run = OnnxModel.run
    monkeypatch.setattr(OnnxModel, "run", lambda *given: run(*given) + (len(given[1]) - 1) / 8)
    made = OnnxEmbedder("scaling", files["model.onnx"], files["tokenizer.json"])

    for _ in range(2):
        found = made.embed(["a river", "a bridge", "a fact"])
        assert [row.tobytes() for row in found] == expected


def test_a_text_that_is_too_long_counts_with_its_beginning(embedder: Embedder) -> None:
    long = "The river in the fact. " * 600
    made = embedder.embed([long, long + "Another end.", "Another beginning. " + long])

    assert made[0].tobytes() == made[1].tobytes() != made[2].tobytes()


def test_threads_get_the_same_bytes(embedder: Embedder) -> None:
    texts = [f"{'the river ' * (number % 7)}{number}" for number in range(60)]
    expected = embedder.embed(texts)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda text: embedder.embed([text])[0], texts))

    assert np.stack(made).tobytes() == expected.tobytes()


@pytest.mark.slow
def test_another_process_with_other_threads_gets_the_same_bytes(
    embedder: Embedder, settings: EmbedSettings, tmp_path: Path
) -> None:
    program = (
        "import hashlib, json, sys; from pathlib import Path; from tests.test_embedders import *\n"
        "made = open_any(EmbedSettings(**json.loads(sys.argv[1])), Path(sys.argv[2]))\n"
        "print(hashlib.sha256(made.embed(TEXTS).tobytes()).hexdigest())"
    )
    given = json.dumps(asdict(settings)), tmp_path
    other = {"PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "3"}

    assert (
        run_python(program, *given, env=other).strip()
        == hashlib.sha256(embedder.embed(TEXTS).tobytes()).hexdigest()
    )


def test_a_snapshot_is_asked_with_the_model_that_its_manifest_records(
    embedder: Embedder, settings: EmbedSettings
) -> None:
    made = json.loads(json.dumps(identify_embedding(settings).describe()))

    opened = open_recorded(made, settings, "snap-1")

    assert opened.name == embedder.name
    assert opened.embed(TEXTS[:2]).tobytes() == embedder.embed(TEXTS[:2]).tobytes()
