"""Opening an embedding model that runs here, from its files."""

from collections.abc import Mapping
from pathlib import Path

from kpyramid.embeddings.port import Embedder


def open_embedder(
    name: str, files: Mapping[str, Path], provider: str = "onnx", instruction: str = ""
) -> Embedder:
    """A model that runs here, from its files.

    Raises:
        SettingsError: it cannot be loaded.
    """
    if provider == "instructor":
        from kpyramid.embeddings.instructor import InstructorEmbedder

        return InstructorEmbedder(name, files["modules.json"].parent, instruction)
    from kpyramid.embeddings.onnx import OnnxEmbedder

    return OnnxEmbedder(name, files["model.onnx"], files["tokenizer.json"], instruction)
