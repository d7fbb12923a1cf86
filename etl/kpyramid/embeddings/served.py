"""Sentence embeddings by an endpoint that speaks OpenAI's API: batches, and checks of replies."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np

from kpyramid.embeddings.port import Matrix
from kpyramid.errors import EndpointError
from kpyramid.keys import JsonValue, hash_value
from kpyramid.llm.books import Call, describe_embedding
from kpyramid.llm.caller import Source
from kpyramid.llm.transport import Pay
from kpyramid.llm.types import Message, ReplyError, Request, Transport

MOST_TEXTS = 256
_MOST_BYTES = 200_000
"""Of all texts of a request: OpenAI takes 300,000 tokens, and no token is shorter than a byte."""
_LONGEST_TEXT = 8_000
"""Bytes of one text: OpenAI's models take 8,191 tokens and refuse more. The rest is left out."""


class Post(Protocol):
    """Sends one body and classifies what fails; see `Connection.post`."""

    def __call__(self, body: dict[str, Any]) -> Mapping[str, JsonValue]: ...


class EmbeddingTransport:
    """A `Transport` for requests whose messages are the texts to embed."""

    def __init__(self, model: str, dimensions: int | None, post: Post) -> None:
        self._shared: dict[str, Any] = {"model": model, "encoding_format": "float"}
        if dimensions is not None:
            self._shared["dimensions"] = dimensions
        self._post = post

    def send(self, request: Request) -> Mapping[str, JsonValue]:
        """See `Transport.send`; the reply is a list of embeddings."""
        return self._post({**self._shared, "input": [m.content for m in request.messages]})


Connect = Callable[[Callable[[Pay], Transport], Callable[[Request, str], Call]], Source]
"""Puts retries, limits and books around a transport; the second describes a call for the books."""


class ServedEmbedder:
    """A model behind an endpoint; threads may share it. Only what it answers is taken for a vector.

    `prefix`: put before every text. `stage` is for the books.
    """

    def __init__(
        self,
        model: str,
        dimensions: int | None,
        source: Source,
        *,
        prefix: str = "",
        stage: str = "embed",
    ) -> None:
        self.name = model
        self._dimensions = dimensions
        self._source = source
        self._prefix = prefix
        self._stage = stage
        self._size = dimensions

    def embed(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder.embed`; a long text counts with its beginning.

        Raises:
            EndpointError: the endpoint cannot be used, or its vectors cannot.
            BudgetError: the next call might pass the budget.
        """
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        return np.concatenate([self.embed_batch(batch) for batch in cut_batches(texts)])

    def embed_batch(self, texts: Sequence[str]) -> Matrix:
        """The vectors of texts that fit into one call."""
        sent = tuple(Message("user", _shorten(self._prefix + text)) for text in texts)
        request = Request("embed", 1, sent, {}, max_tokens=0, stage=self._stage)
        key = hash_value([self.name, self._dimensions, [message.content for message in sent]])
        try:
            raw = self._source.obtain(key, request)
        except ReplyError as e:
            raise EndpointError(
                f"the endpoint did not embed {len(texts)} texts with {self.name!r}: {e.detail}. "
                "The vectors that came are kept: when it is well again, run the same command. If "
                "a text is too long for the model, lower chunk.max_tokens"
            ) from e
        vectors = self._read_vectors(raw, len(texts))
        if self._size not in (None, vectors.shape[1]):
            raise EndpointError(
                f"{self.name!r} made vectors of {vectors.shape[1]} numbers where {self._size} "
                "were expected: the endpoint leaves embed.dimensions aside (take the setting "
                "out), or serves another model under that name"
            )
        self._size = vectors.shape[1]
        return vectors

    def _read_vectors(self, raw: Mapping[str, JsonValue], count: int) -> Matrix:
        """The rows in the order of the texts, whatever the order of the reply."""
        data = raw.get("data")
        items = data if isinstance(data, list) else []
        found: dict[int, list[float]] = {}
        for item in items:
            index, vector = _read_item(item)
            if index is None or vector is None or index in found:
                raise self._refuse(f"item {len(found)} of the reply is no vector with an index")
            found[index] = vector
        if found.keys() != set(range(count)):
            raise self._refuse(f"{len(found)} vectors came for {count} texts")
        if len({len(vector) for vector in found.values()}) != 1:
            raise self._refuse("the vectors of one reply differ in length")
        try:
            matrix = np.array([found[index] for index in range(count)], dtype=np.float64)
        except OverflowError as e:
            raise self._refuse("a vector has numbers that no computer holds") from e
        with np.errstate(over="ignore"):
            lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        if not (np.isfinite(lengths) & (lengths > 0)).all():
            raise self._refuse("a vector is zero or has numbers that are none")
        return np.asarray(matrix / lengths, dtype=np.float32)

    def _refuse(self, problem: str) -> EndpointError:
        return EndpointError(
            f"the endpoint's embeddings with {self.name!r} cannot be used: {problem}. Nothing of "
            "that reply is kept; embed.model must be an embedding model of the endpoint at "
            "embed.base_url"
        )


def cut_batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in order, as many at a time as one call takes."""
    batch: list[str] = []
    size = 0
    for text in texts:
        length = min(_LONGEST_TEXT, len(text.encode("utf-8", "replace")))
        if batch and (len(batch) == MOST_TEXTS or size + length > _MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += length
    if batch:
        yield batch


def describe_call(model: str) -> Callable[[Request, str], Call]:
    """What describes a request of `ServedEmbedder` for the books."""

    def describe(request: Request, key: str) -> Call:
        texts = [message.content for message in request.messages]
        return describe_embedding(texts, key, model, request.stage)

    return describe


def _shorten(text: str) -> str:
    """What is sent for a text: never empty, which endpoints refuse."""
    data = text.encode("utf-8", "replace")
    return data[:_LONGEST_TEXT].decode("utf-8", "ignore") or " "


def _read_item(item: JsonValue) -> tuple[int | None, list[float] | None]:
    if not isinstance(item, Mapping):
        return None, None
    index, vector = item.get("index"), item.get("embedding")
    if isinstance(index, bool) or not isinstance(index, int):
        return None, None
    # By their exact types: a truth value is an int too, and NumPy reads numbers in text.
    if not isinstance(vector, list) or not vector or not {*map(type, vector)} <= {int, float}:
        return index, None
    return index, cast("list[float]", vector)
