"""Opening an embedding model that runs here, from its files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kpyramid.embeddings.port import Embedder, Matrix


class PrefixedEmbedder:
    """An embedder that puts the same words before every text, such as "query: "."""

    def __init__(self, embedder: Embedder, prefix: str) -> None:
        self.name = embedder.name
        self._embedder = embedder
        self._prefix = prefix

    def embed(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder.embed`."""
        return self._embedder.embed([self._prefix + text for text in texts])


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

    model = OnnxEmbedder(name, files["model.onnx"], files["tokenizer.json"])
    return PrefixedEmbedder(model, instruction) if instruction else model
