"""Which embedding model it is: settings, keys, and the model that a snapshot records."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from kpyramid.errors import InputError, SettingsError
from kpyramid.pipeline import fingerprints
from kpyramid.settings import EmbedSettings, Settings, load_settings
from kpyramid.snapshot.snapshot import open_recorded
from kpyramid.storage.identity import identify_embedding, identify_model
from tests.rows import each_row
from tests.tiny_instructor import require_instructor


def fingerprint(embed: EmbedSettings) -> str:
    """The part of a vector's key that is not its text."""
    identify_model.cache_clear()
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
    chosen = [
        *(EmbedSettings(), EmbedSettings(instruction="query: ")),
        *(EmbedSettings(instruction="query:"), EmbedSettings(model=local)),
        *(EmbedSettings("instructor", local, f"{word}: ") for word in ("Represent", "State")),
        *(EmbedSettings("openai", **served), EmbedSettings("openai", **served | {"model": "b"})),
        EmbedSettings("openai", **served, instruction="query: "),
        *(EmbedSettings("openai", **served, dimensions=size) for size in (256, 512)),
        EmbedSettings("openai", local),
    ]
    keys = [fingerprint(each) for each in chosen]
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


@each_row("lines, message")
def test_settings_that_do_not_fit_are_named(lines: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text(f"[embed]\n{lines}\n")
    with pytest.raises(SettingsError, match=message) as caught:
        load_settings(tmp_path / "settings.toml", {})
    assert "secret" not in str(caught.value)


def test_an_instructor_without_extra_or_folder_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_instructor()
    chosen = EmbedSettings("instructor", str(tmp_path), "Represent: ")
    identify_model.cache_clear()
    with pytest.raises(SettingsError, match=r"no .*modules\.json.*hf download"):
        identify_embedding(chosen)
    monkeypatch.setattr(
        "kpyramid.storage.identity.INSTRUCTOR_LIBRARIES", ("torch", "no-such-library")
    )
    with pytest.raises(SettingsError, match=r"no-such-library is not.*kpyramid\[instructor\]"):
        identify_embedding(chosen)


RECORDED_SERVED = {"name": "small", "provider": "openai"}


def test_a_question_goes_to_no_endpoint_that_was_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    for given in (None, "small", EmbedSettings()):
        with pytest.raises(InputError, match=r"'small'.*--settings.*KPYRAMID_EMBED__PROVIDER"):
            open_recorded(RECORDED_SERVED, given, "snap-1")  # type: ignore[arg-type]
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(SettingsError, match=r"OPENAI_API_KEY.*embed\.base_url"):
        open_recorded(RECORDED_SERVED, EmbedSettings("openai", "small"), "snap-1").embed(["a"])


def test_a_model_that_is_not_the_recorded_one_is_refused() -> None:
    other = {"name": "other", "provider": "instructor", "instruction": "R: "}
    for change in ({"sha256": "f" * 64}, other):
        made = identify_embedding(EmbedSettings()).describe() | change
        with pytest.raises(InputError, match=r"snap-1 was embedded with"):
            open_recorded(made, EmbedSettings(), "snap-1")
