"""Opening an embedding model that runs here, from its files."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from kpyramid.embeddings.port import Embedder


def open_embedder(
    name: str, files: Mapping[str, Path], provider: str = "onnx", instruction: str = ""
) -> Embedder:
    """A local model; an ONNX model with the same instruction is loaded once per process.

    Raises:
        SettingsError: the model cannot be loaded.
    """
    if provider == "instructor":
        from kpyramid.embeddings.instructor import InstructorEmbedder

        return InstructorEmbedder(name, files["modules.json"].parent, instruction)
    return _open_onnx(name, files["model.onnx"], files["tokenizer.json"], instruction)


@lru_cache(maxsize=2)
def _open_onnx(name: str, model: Path, tokenizer: Path, prefix: str) -> Embedder:
    from kpyramid.embeddings.onnx import OnnxEmbedder

    return OnnxEmbedder(name, model, tokenizer, prefix)
