"""Opening the embedding model that the settings name."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.keys import JsonValue
from kpyramid.llm.types import FailureKind, ReplyError, Request, TransientError, Transport

if TYPE_CHECKING:
    from kpyramid.embeddings.served import Connect, ServedEmbedder
    from kpyramid.llm.transport import Pay
    from kpyramid.settings import EmbedSettings, LLMSettings


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


def open_served(
    settings: "EmbedSettings", llm: "LLMSettings", connect: "Connect", stage: str = "embed"
) -> "ServedEmbedder":
    """A model behind an endpoint; nothing is opened before the first text.

    `llm` says how long to wait; `connect` puts retries, limits and books around the calls.
    """
    # A snapshot whose model runs here is read without what calls endpoints.
    from kpyramid.embeddings.served import EmbeddingTransport, ServedEmbedder, describe_call
    from kpyramid.llm.connection import open_connection
    from kpyramid.settings import LLMSettings

    place = LLMSettings(
        provider="openai",
        model=settings.model,
        base_url=settings.base_url,
        api_key_env=settings.api_key_env,
        timeout=llm.timeout,
        concurrency=llm.concurrency,
    )

    def open_transport(_pay: "Pay") -> Transport:
        connection = open_connection(place, "embed")
        return EmbeddingTransport(
            settings.model, settings.dimensions, lambda body: connection.post("embeddings", body)
        )

    source = connect(open_transport, describe_call(settings.model))
    return ServedEmbedder(
        settings.model, settings.dimensions, source, prefix=settings.instruction, stage=stage
    )


class SingleCall:
    """A `Source` that makes one call and no more: for a question, which its asker can repeat."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def obtain(self, key: str, request: Request) -> Mapping[str, JsonValue]:
        """See `Source.obtain`."""
        try:
            return self._transport.send(request)
        except TransientError as e:
            raise ReplyError(FailureKind.UNREACHED, str(e)) from e
