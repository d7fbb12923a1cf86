"""INSTRUCTOR's vectors: against a computation by hand, and against its authors' own package."""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from kpyramid.embeddings.instructor import InstructorEmbedder
from kpyramid.errors import SettingsError
from kpyramid.pipeline.cache import CachedEmbedder, Context
from kpyramid.settings import EmbedSettings, Settings
from kpyramid.storage.layout import Warehouse
from tests.rows import read_bodies
from tests.tiny_instructor import (
    INSTRUCTION,
    compute_vector,
    draw_weights,
    require_instructor,
    write_instructor,
)

TEXTS = (
    "the river",
    "born in the river of facts, 1815!",
    "",
    "日本 Я é",
    "a river in the fact " * 300,
)
AUTHORS = (*read_bodies("instructor.authors"),)
"""The authors' package works with these alone; with later ones its vectors are silently wrong."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_instructor()
    return write_instructor(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def embedder(folder: Path) -> InstructorEmbedder:
    return InstructorEmbedder("tiny", folder, INSTRUCTION)


def test_vectors_are_those_computed_by_hand(embedder: InstructorEmbedder, folder: Path) -> None:
    by_hand = [compute_vector(folder, draw_weights(0), INSTRUCTION, text) for text in TEXTS]

    assert np.abs(embedder.embed(TEXTS) - np.stack(by_hand)).max() < 1e-6


def test_instruction_is_left_out_of_mean(embedder: InstructorEmbedder, folder: Path) -> None:
    """The trap: a mean over the instruction too gives plausible vectors, and others."""
    weights, text = draw_weights(0), TEXTS[0]
    made = embedder.embed([text])[0]
    with_instruction = compute_vector(folder, weights, INSTRUCTION, text, pool_instruction=True)
    unread = compute_vector(folder, weights, "", text)

    assert with_instruction @ made < 0.99
    assert unread @ made < 0.99


def test_a_build_keeps_vectors_by_text_and_instruction(
    embedder: InstructorEmbedder, folder: Path, tmp_path: Path
) -> None:
    def embed(instruction: str) -> tuple[int, bytes]:
        """How many vectors were computed, and all of them."""
        settings = Settings(embed=EmbedSettings("instructor", str(folder), instruction))
        cached = CachedEmbedder(Context(Warehouse(tmp_path), settings, 2), _connect_nowhere)
        vectors = cached.embed([*TEXTS, TEXTS[0]])
        return cached.function.computed, vectors.tobytes()

    expected = embedder.embed([*TEXTS, TEXTS[0]]).tobytes()
    assert embed(INSTRUCTION) == (len(TEXTS), expected)
    assert embed(INSTRUCTION) == (0, expected)
    assert embed("Represent: ")[0] == len(TEXTS)


def test_many_vectors_lie_in_a_file_that_goes_with_them(
    embedder: InstructorEmbedder, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kpyramid.storage.memory._LARGE", 1)
    monkeypatch.setattr("kpyramid.pipeline.cache._BLOCK", 2)
    settings = Settings(embed=EmbedSettings("instructor", str(folder), INSTRUCTION))
    cached = CachedEmbedder(Context(Warehouse(tmp_path), settings, 2), _connect_nowhere)

    vectors = cached.embed([*TEXTS, TEXTS[0]])

    assert vectors.tobytes() == embedder.embed([*TEXTS, TEXTS[0]]).tobytes()
    assert isinstance(vectors.base, np.memmap)
    assert list((tmp_path / "staging").iterdir()) == []


def _connect_nowhere(*_: object) -> NoReturn:
    raise AssertionError("a local model needs no endpoint")


def test_vectors_are_authors(embedder: InstructorEmbedder, folder: Path, tmp_path: Path) -> None:
    """Their package in an environment of its own, laid over this one for torch and numpy."""
    environment = tmp_path / "authors"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = environment / "bin" / "python"
    packages = environment / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    (packages / "under.pth").write_text(sysconfig.get_path("purelib"))
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    # What is imported is compiled then, which is a tenth of what is installed.
    subprocess.run([*pip, "install", "-qq", "--no-compile", "--no-deps", *AUTHORS], check=True)
    program = (
        "import json, sys; from InstructorEmbedding import INSTRUCTOR\n"
        "folder, instruction, texts, target = sys.argv[1:]\n"
        "pairs = [[instruction, text] for text in json.loads(texts)]\n"
        "made = INSTRUCTOR(folder, device='cpu').encode(pairs)\n"
        "import numpy; numpy.save(target, made)"
    )
    target = tmp_path / "vectors.npy"
    subprocess.run(
        [str(python), "-c", program, str(folder), INSTRUCTION, json.dumps(TEXTS), str(target)],
        check=True,
        capture_output=True,
    )

    assert np.abs(np.load(target) - embedder.embed(TEXTS)).max() < 1e-6


def test_a_folder_that_is_no_model_is_refused_by_name(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text("[]")
    with pytest.raises(SettingsError, match=str(tmp_path)):
        InstructorEmbedder("empty", tmp_path, INSTRUCTION)


def test_weights_that_make_no_number_are_told(tmp_path: Path) -> None:
    require_instructor()
    import torch

    folder = write_instructor(tmp_path / "broken")
    dense = {"linear.weight": torch.full((12, 16), float("nan"))}
    torch.save(dense, folder / "2_Dense" / "pytorch_model.bin")
    with pytest.raises(SettingsError, match="weights are damaged"):
        InstructorEmbedder("broken", folder, INSTRUCTION)
