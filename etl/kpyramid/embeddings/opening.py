"""Opening the embedding model that the settings name."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kpyramid.embeddings.port import Embedder
from kpyramid.keys import JsonValue
from kpyramid.llm.types import FailureKind, ReplyError, Request, TransientError, Transport
from kpyramid.settings import EmbedSettings, LLMSettings

if TYPE_CHECKING:
    from kpyramid.embeddings.served import Connect, ServedEmbedder
    from kpyramid.llm.transport import Pay


def open_embedder(settings: EmbedSettings, name: str, files: Mapping[str, Path]) -> Embedder:
    """A model that runs here, from its files.

    Raises:
        SettingsError: it cannot be loaded.
    """
    if settings.provider == "instructor":
        from kpyramid.embeddings.instructor import InstructorEmbedder

        return InstructorEmbedder(name, files["modules.json"].parent, settings.instruction)
    from kpyramid.embeddings.onnx import OnnxEmbedder

    model, tokenizer = files["model.onnx"], files["tokenizer.json"]
    return OnnxEmbedder(name, model, tokenizer, settings.instruction)


def open_served(
    settings: EmbedSettings, llm: LLMSettings, connect: "Connect", stage: str = "embed"
) -> "ServedEmbedder":
    """A model behind an endpoint; nothing is opened before the first text.

    `llm` says how long to wait; `connect` puts retries, limits and books around the calls.
    """
    # A snapshot whose model runs here is read without what calls endpoints.
    from kpyramid.embeddings.served import EmbeddingTransport, ServedEmbedder, describe_embedding
    from kpyramid.llm.transport import open_connection

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
        return EmbeddingTransport(settings.model, settings.dimensions, connection)

    source = connect(open_transport, partial(describe_embedding, settings.model))
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
