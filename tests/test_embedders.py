"""One behaviour for all embedding models: each is opened as the settings name it and asked."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kpyramid import fingerprints
from kpyramid.embeddings.opening import open_embedder, open_served
from kpyramid.embeddings.port import Embedder
from kpyramid.errors import InputError, SettingsError
from kpyramid.identity import identify_embedding
from kpyramid.llm.endpoint import Endpoint
from kpyramid.llm.ledger import Ledger
from kpyramid.llm.limiter import Limiter
from kpyramid.model_settings import LLMSettings
from kpyramid.query.embedding import open_recorded
from kpyramid.settings import MINILM, EmbedSettings, Settings, load_settings
from tests.loopback import serve
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
    "",
    " ",
    "\n\t",
    "日本 я ß",
    "e\u0301 é",
    "👩‍👩‍👧 flag 🇦🇹",
    "\u200b",
    "a\x00b",
    "مرحبا",
    "</s><pad>[SEP]",
)


@dataclass(frozen=True)
class Place:
    """Where the models are that the tests use."""

    folder: Path
    base_url: str


def use_minilm(place: Place) -> EmbedSettings:
    return EmbedSettings()


def use_prefixed_minilm(place: Place) -> EmbedSettings:
    return EmbedSettings(instruction="query: ")


def use_instructor(place: Place) -> EmbedSettings:
    require_instructor()
    if not place.folder.exists():
        write_instructor(place.folder)
    return EmbedSettings("instructor", str(place.folder), INSTRUCTION)


def use_served(place: Place) -> EmbedSettings:
    return EmbedSettings("openai", "small", base_url=place.base_url)


def use_short_served(place: Place) -> EmbedSettings:
    return EmbedSettings(
        "openai", "small", instruction="query: ", base_url=place.base_url, dimensions=7
    )


PROVIDERS = [
    use_minilm,
    use_prefixed_minilm,
    pytest.param(use_instructor, marks=pytest.mark.slow),
    use_served,
    use_short_served,
]


def open_any(settings: EmbedSettings, scratch: Path) -> Embedder:
    """The model that the settings name, opened as a build opens it."""
    if settings.provider != "openai":
        identity = identify_embedding(settings)
        return open_embedder(settings, identity.name, identity.files)
    llm = LLMSettings()
    limiter = Limiter(scratch / "limits.json", 0, 0)
    return open_served(
        settings,
        llm,
        lambda open_transport, describe: Endpoint(
            open_transport, Ledger(None, llm), limiter, max_wait=5.0, describe=describe
        ),
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with serve() as server:
        yield Place(tmp_path_factory.mktemp("models") / "tiny", server.base_url)


@pytest.fixture(scope="module", params=PROVIDERS, ids=lambda use: use.__name__)
def settings(request: pytest.FixtureRequest, place: Place) -> EmbedSettings:
    made: EmbedSettings = request.param(place)
    return made


@pytest.fixture(scope="module")
def embedder(settings: EmbedSettings, tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    return open_any(settings, tmp_path_factory.mktemp("scratch"))


def test_each_text_gets_one_row_of_unit_length(embedder: Embedder) -> None:
    made = embedder.embed(TEXTS)

    assert made.dtype == np.float32
    assert made.shape[0] == len(TEXTS) and made.shape[1] > 1
    assert np.linalg.norm(made.astype(np.float64), axis=1) == pytest.approx(1.0, abs=1e-6)
    assert len({row.tobytes() for row in made}) == len(TEXTS), "unlike texts, like vectors"


def test_no_text_makes_no_row(embedder: Embedder) -> None:
    assert embedder.embed([]).shape[0] == 0


def test_a_row_depends_on_its_own_text_alone(embedder: Embedder) -> None:
    together = embedder.embed(TEXTS)
    alone = [embedder.embed([text])[0] for text in TEXTS]
    backwards = embedder.embed(TEXTS[::-1])[::-1]

    assert together.tobytes() == np.stack(alone).tobytes() == backwards.tobytes()


def test_equal_texts_have_equal_rows_wherever_they_stand(embedder: Embedder) -> None:
    made = embedder.embed([TEXTS[0], TEXTS[2], TEXTS[0], TEXTS[0]])

    assert made[0].tobytes() == made[2].tobytes() == made[3].tobytes() != made[1].tobytes()


def test_a_text_that_is_too_long_counts_with_its_beginning(embedder: Embedder) -> None:
    long = "The river in the fact. " * 3000
    made = embedder.embed([long, long + "Another end.", "Another beginning. " + long])

    assert made[0].tobytes() == made[1].tobytes() != made[2].tobytes()


def test_any_text_has_a_vector(embedder: Embedder) -> None:
    made = embedder.embed(ODD)

    assert np.linalg.norm(made.astype(np.float64), axis=1) == pytest.approx(1.0, abs=1e-6)


def test_threads_get_the_same_bytes(embedder: Embedder) -> None:
    texts = [f"{'the river ' * (number % 7)}{number}" for number in range(60)]
    expected = embedder.embed(texts)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda text: embedder.embed([text])[0], texts))

    assert np.stack(made).tobytes() == expected.tobytes()


def test_another_process_with_other_threads_gets_the_same_bytes(
    embedder: Embedder, settings: EmbedSettings, tmp_path: Path
) -> None:
    program = (
        "import hashlib, json, sys; from pathlib import Path; from tests.test_embedders import *\n"
        "made = open_any(EmbedSettings(**json.loads(sys.argv[1])), Path(sys.argv[2]))\n"
        "print(hashlib.sha256(made.embed(TEXTS).tobytes()).hexdigest())"
    )
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT / 'etl'}:{ROOT}",
        "PYTHONHASHSEED": "7",
        "OMP_NUM_THREADS": "3",
    }
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(asdict(settings)), str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == hashlib.sha256(embedder.embed(TEXTS).tobytes()).hexdigest()


def test_a_snapshot_is_asked_with_the_model_that_its_manifest_records(
    embedder: Embedder, settings: EmbedSettings
) -> None:
    made = json.loads(json.dumps(identify_embedding(settings).describe()))

    opened = open_recorded(made, settings, "snap-1")

    assert opened.name == embedder.name
    assert opened.embed(TEXTS[:2]).tobytes() == embedder.embed(TEXTS[:2]).tobytes()


def test_a_prefix_shapes_the_vector() -> None:
    plain, prefixed = (
        open_embedder(chosen, MINILM, identify_embedding(chosen).files)
        for chosen in (EmbedSettings(), EmbedSettings(instruction="query: "))
    )

    assert prefixed.embed(["a river"]).tobytes() == plain.embed(["query: a river"]).tobytes()
    assert prefixed.embed([]).shape[0] == 0


def fingerprint(embed: EmbedSettings) -> str:
    """The part of a vector's key that is not its text."""
    identify_embedding.cache_clear()
    (function,) = (f for f in fingerprints.FUNCTIONS if f.name == "embedder")
    return fingerprints.fingerprint_function(function, Settings(embed=embed))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files that pass for a model: they are hashed and not loaded."""
    made = tmp_path / "model"
    (made / "1_Pooling").mkdir(parents=True)
    for name in ("model.onnx", "tokenizer.json", "modules.json", "1_Pooling/config.json"):
        (made / name).write_text(name)
    return made


def append(path: Path) -> None:
    with path.open("a") as file:
        file.write(" ")


def test_what_shapes_a_vector_is_in_its_key(folder: Path) -> None:
    require_instructor()
    local, served = str(folder), {"model": "small", "base_url": "http://localhost:1/v1"}
    keys = [
        fingerprint(EmbedSettings()),
        fingerprint(EmbedSettings(instruction="query: ")),
        fingerprint(EmbedSettings(instruction="query:")),
        fingerprint(EmbedSettings(model=local)),
        fingerprint(EmbedSettings("instructor", local, "Represent: ")),
        fingerprint(EmbedSettings("instructor", local, "Represent this: ")),
        fingerprint(EmbedSettings("openai", **served)),
        fingerprint(EmbedSettings("openai", **{**served, "model": "large"})),
        fingerprint(EmbedSettings("openai", **served, instruction="query: ")),
        fingerprint(EmbedSettings("openai", **served, dimensions=256)),
        fingerprint(EmbedSettings("openai", **served, dimensions=512)),
        fingerprint(EmbedSettings("openai", local)),
    ]
    append(folder / "model.onnx")
    keys.append(fingerprint(EmbedSettings(model=local)))
    append(folder / "1_Pooling" / "config.json")
    keys.append(fingerprint(EmbedSettings("instructor", local, "Represent: ")))

    assert len({*keys}) == len(keys)


def test_where_a_model_is_is_not_in_its_key(folder: Path, tmp_path: Path) -> None:
    require_instructor()
    before = [
        fingerprint(EmbedSettings("instructor", str(folder), "Represent: ")),
        fingerprint(EmbedSettings("openai", "small", base_url="http://localhost:1/v1")),
    ]
    moved = tmp_path / "elsewhere" / "model"
    shutil.copytree(folder, moved)
    (moved / ".cache").mkdir()
    (moved / ".cache" / "download.lock").write_text("of a download")
    (moved / "README.md").write_text("of the model")

    assert before == [
        fingerprint(EmbedSettings("instructor", f"{moved}/", "Represent: ")),
        fingerprint(EmbedSettings("openai", "small", base_url="https://x.org/v1", api_key_env="K")),
    ]


@pytest.mark.parametrize(
    ("provider", "libraries"),
    [
        ("onnx", {"onnxruntime", "tokenizers"}),
        ("instructor", {"sentence-transformers", "torch", "transformers"}),
        ("openai", set()),
    ],
)
def test_a_key_has_the_libraries_of_its_own_provider_only(
    provider: Any, libraries: set[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So an upgrade of the one does not buy the vectors of another again."""
    if provider == "instructor":
        require_instructor()
    embed = EmbedSettings(provider, str(folder), "Represent: ")
    before, real = fingerprint(embed), fingerprints.library_version
    shaping = set()
    for name in ("onnxruntime", "tokenizers", "sentence-transformers", "torch", "transformers"):
        monkeypatch.setattr(
            fingerprints, "library_version", lambda d, n=name: "99" if d == n else real(d)
        )
        if fingerprint(embed) != before:
            shaping.add(name)

    assert shaping == libraries


def test_the_default_model_is_described_as_it_was_before_there_were_others() -> None:
    assert identify_embedding(EmbedSettings()).describe().keys() == {"name", "sha256"}


SERVED = 'provider = "openai"\nmodel = "m"\n'


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('provider = "cohere"', "embed.provider.*'onnx', 'instructor' or 'openai'"),
        ('model = ""', "model is empty"),
        ('provider = "instructor"', "needs a model: the folder.*needs an instruction"),
        ('provider = "instructor"\nmodel = "x"\ninstruction = " "', "needs an instruction"),
        ('provider = "openai"', "'openai' needs a model"),
        ('base_url = "http://localhost/v1"\ndimensions = 3', "base_url and dimensions need"),
        (SERVED + 'base_url = "localhost:80"', "base_url is like"),
        (SERVED + 'base_url = "https://me:secret@host/v1"', "base_url holds a credential"),
        (SERVED + 'base_url = "https://host/v1?key=secret"', "base_url holds a credential"),
        (SERVED + "dimensions = 0", "dimensions"),
        (SERVED + "dimension = 3", "embed.dimension"),
    ],
)
def test_settings_that_do_not_fit_are_named(lines: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text(f"[embed]\n{lines}\n")
    with pytest.raises(SettingsError, match=message) as caught:
        load_settings(tmp_path / "settings.toml", {})
    assert "secret" not in str(caught.value)


def test_an_instructor_without_its_extra_or_folder_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_instructor()
    chosen = EmbedSettings("instructor", str(tmp_path), "Represent: ")
    identify_embedding.cache_clear()
    with pytest.raises(SettingsError, match=r"no .*modules\.json.*hf download"):
        identify_embedding(chosen)
    monkeypatch.setattr("kpyramid.identity.INSTRUCTOR_LIBRARIES", ("torch", "no-such-library"))
    with pytest.raises(SettingsError, match=r"no-such-library is not.*kpyramid\[instructor\]"):
        identify_embedding(chosen)


RECORDED_SERVED = {"name": "small", "provider": "openai"}


@pytest.mark.parametrize("given", [None, "small", EmbedSettings()])
def test_a_question_goes_to_no_endpoint_that_was_not_named(
    given: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    with pytest.raises(InputError, match=r"'small'.*--settings.*KPYRAMID_EMBED__PROVIDER"):
        open_recorded(RECORDED_SERVED, given, "snap-1")


def test_a_question_without_a_key_says_which_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(SettingsError, match=r"OPENAI_API_KEY.*embed\.base_url"):
        open_recorded(RECORDED_SERVED, EmbedSettings("openai", "small"), "snap-1").embed(["a"])


@pytest.mark.parametrize(
    "change",
    [
        lambda made: made | {"sha256": "f" * 64},
        lambda made: made | {"name": "other", "provider": "instructor", "instruction": "R: "},
    ],
    ids=["other files", "other provider"],
)
def test_a_model_that_is_not_the_recorded_one_is_refused(
    change: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    made = change(identify_embedding(EmbedSettings()).describe())
    with pytest.raises(InputError, match=r"snap-1 was embedded with"):
        open_recorded(made, EmbedSettings(), "snap-1")
