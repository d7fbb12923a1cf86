"""Sentence embeddings by an endpoint with OpenAI's API: batches, and checks of replies."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from kpyramid.embeddings.port import Matrix
from kpyramid.errors import EndpointError
from kpyramid.keys import JsonValue, hash_value
from kpyramid.llm.caller import Source
from kpyramid.llm.endpoint import Connection, Pay, open_connection
from kpyramid.llm.ledger import Call, describe_call
from kpyramid.llm.task import (
    FailureKind,
    Message,
    ReplyError,
    Request,
    TransientError,
    Transport,
)
from kpyramid.settings import EmbedSettings, LLMSettings
from kpyramid.storage.items import split_by_size

MOST_TEXTS = 256
_MOST_BYTES = 200_000
"""Most bytes of a request's texts: OpenAI accepts 300,000 tokens, each of a byte or more."""
_LONGEST_TEXT = 8_000
"""Most bytes of a text: OpenAI's models accept 8,191 tokens. The rest is left out."""


class EmbeddingTransport:
    """A `Transport` for requests whose messages are the texts to embed."""

    def __init__(self, model: str, dimensions: int | None, connection: Connection) -> None:
        self._shared: dict[str, Any] = {"model": model, "encoding_format": "float"}
        if dimensions is not None:
            self._shared["dimensions"] = dimensions
        self._connection = connection

    def send(self, request: Request) -> Mapping[str, JsonValue]:
        """See `Transport.send`; the reply is a list of embeddings."""
        texts = [message.content for message in request.messages]
        return self._connection.post("embeddings", {**self._shared, "input": texts})


Connect = Callable[[Callable[[Pay], Transport], Callable[[Request, str], Call]], Source]
"""Adds retries, limits and ledger to a transport; its second argument describes a call."""


@dataclass(eq=False, repr=False)
class ServedEmbedder:
    """A model behind an endpoint; threads may share it.

    `prefix`: put before every text. `stage`: for the ledger. `size`: length of the stored vectors;
    without it and `dimensions`, the first reply determines the length.
    """

    name: str
    dimensions: int | None
    source: Source
    _: KW_ONLY
    prefix: str = ""
    stage: str = "embed"
    size: int | None = None

    def __post_init__(self) -> None:
        self.size = self.size or self.dimensions
        self._guard = Lock()

    def embed(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder.embed`; of a long text only the beginning is embedded.

        Raises:
            EndpointError: the endpoint or its vectors cannot be used.
            BudgetError: the next call might exceed the budget.
        """
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        vectors: dict[str, Matrix] = {}
        for batch in cut_batches(texts):
            self.embed_batch(batch, vectors.update)
        return np.stack([vectors[text] for text in texts])

    def embed_batch(
        self, texts: Sequence[str], keep: Callable[[Mapping[str, Matrix]], None]
    ) -> None:
        """Passes the vectors of texts that fit into one call to `keep`.

        Raises:
            EndpointError, BudgetError: see `embed`; the valid vectors of a reply with invalid ones
                are passed first.
        """
        sent = tuple(Message("user", _shorten(self.prefix + text)) for text in texts)
        request = Request("embed", 1, sent, {}, max_tokens=0, stage=self.stage)
        key = hash_value([self.name, self.dimensions, [message.content for message in sent]])
        try:
            raw = self.source.obtain(key, request)
        except ReplyError as e:
            raise EndpointError(
                f"the endpoint did not embed {len(texts)} texts with {self.name!r}: {e.detail}. "
                "The vectors that came are kept: when it is well again, run the same command. If "
                "a text is too long for the model, lower chunk.max_tokens"
            ) from e
        vectors = {
            text: vector
            for text, vector in zip(texts, self._read_vectors(raw, len(texts)), strict=True)
            if vector is not None
        }
        with self._guard:
            size = self._find_size(vectors.values())
        good = {text: vector for text, vector in vectors.items() if len(vector) == size}
        keep(good)
        if bad := len({*texts} - good.keys()):
            raise self._refuse(
                f"{bad} of {len(texts)} vectors are zero, of another length than most, or no "
                "numbers",
                len(good),
            )

    def _read_vectors(self, raw: Mapping[str, JsonValue], count: int) -> list[Matrix | None]:
        """The vectors in the order of the texts; None for one that is not valid."""
        data = raw.get("data")
        items = data if isinstance(data, list) else []
        vectors: dict[int, Matrix | None] = {}
        for item in items:
            index = item.get("index") if isinstance(item, Mapping) else None
            if isinstance(index, bool) or not isinstance(index, int) or index in vectors:
                # The other indices are unreliable too: a vector might be stored for another text.
                raise self._refuse(f"item {len(vectors)} of the reply has no index of its own")
            vectors[index] = _read_vector(item.get("embedding"))
        if vectors.keys() != set(range(count)):
            raise self._refuse(f"{len(vectors)} vectors came for {count} texts")
        return [vectors[index] for index in range(count)]

    def _find_size(self, vectors: Collection[Matrix]) -> int | None:
        """The length that vectors must have: that of earlier vectors, else of most of these."""
        ((size, count),) = Counter(map(len, vectors)).most_common(1) or [(0, 0)]
        if 2 * count > len(vectors):
            if self.size not in (None, size):
                raise EndpointError(
                    f"{self.name!r} made vectors of {size} numbers where {self.size} were "
                    "expected: the endpoint leaves embed.dimensions aside (take the setting "
                    "out), or serves another model under that name than the one whose vectors "
                    "are stored (below cache/rows/embedder of the warehouse): when that is "
                    "mended, run the same command"
                )
            self.size = size
        return self.size

    def _refuse(self, problem: str, stored: int = 0) -> EndpointError:
        return EndpointError(
            f"the endpoint's embeddings with {self.name!r} cannot be used: {problem}. "
            f"{stored or 'None'} of that reply are kept; embed.model must be an embedding model of "
            "the endpoint at embed.base_url"
        )


def cut_batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in order, in batches that fit into a call."""

    def weigh(text: str) -> int:
        return min(_LONGEST_TEXT, len(text.encode("utf-8", "replace")))

    return split_by_size(texts, weigh, count=MOST_TEXTS, weight=_MOST_BYTES)


def describe_embedding(model: str, request: Request, key: str) -> Call:
    """The ledger's entry of a request of `ServedEmbedder`."""
    call = describe_call(request, key, model)
    return replace(call, kind="embeddings", subject_characters=request.prompt_characters)


def _shorten(text: str) -> str:
    """The text to send: cut to `_LONGEST_TEXT`, and never empty, which endpoints refuse."""
    data = text.encode("utf-8", "replace")
    return data[:_LONGEST_TEXT].decode("utf-8", "ignore") or " "


def _read_vector(values: JsonValue) -> Matrix | None:
    """The vector scaled to unit length; None if it is not valid."""
    # Exact types are checked: a bool is an int too, and NumPy reads numbers in text.
    if not isinstance(values, list) or not values or not {*map(type, values)} <= {int, float}:
        return None
    try:
        vector = np.array(values, dtype=np.float64)
    except OverflowError:  # a whole number that no float holds
        return None
    with np.errstate(over="ignore"):
        length = np.linalg.norm(vector, axis=0)
    if not (np.isfinite(length) and length > 0):
        return None
    return np.asarray(vector / length, dtype=np.float32)


def open_served(
    settings: EmbedSettings,
    llm: LLMSettings,
    connect: Connect,
    stage: str = "embed",
    size: int | None = None,
) -> ServedEmbedder:
    """A model behind an endpoint; nothing is opened before the first text.

    `llm`: settings with the time-out; `connect`: adds retries, limits and the ledger to the calls;
    `stage`, `size`: as for `ServedEmbedder`.
    """
    place = LLMSettings(
        provider="openai",
        model=settings.model,
        base_url=settings.base_url,
        api_key_env=settings.api_key_env,
        timeout=llm.timeout,
        concurrency=llm.concurrency,
    )

    def open_transport(_pay: Pay) -> Transport:
        connection = open_connection(place, "embed")
        return EmbeddingTransport(settings.model, settings.dimensions, connection)

    source = connect(open_transport, partial(describe_embedding, settings.model))
    return ServedEmbedder(
        settings.model,
        settings.dimensions,
        source,
        prefix=settings.instruction,
        stage=stage,
        size=size,
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
