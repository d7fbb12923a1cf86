"""The embedding model of a snapshot, opened again for questions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kpyramid.embeddings.opening import open_embedder
from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.errors import InputError, SettingsError
from kpyramid.keys import JsonValue
from kpyramid.storage.identity import PACKAGED, identify_model

if TYPE_CHECKING:
    from kpyramid.settings import EmbedSettings

_PATIENCE = 30.0
"""Seconds that a question waits for its vector."""
_MOST_KEPT = 5_000
"""Vectors that are kept: 8 MB of 384 dimensions."""


class KeptVectors:
    """The vectors of texts; those that were asked for last are kept. Threads may share it."""

    def __init__(self, embed: Callable[[Sequence[str]], Matrix]) -> None:
        self._embed = embed
        self._kept: dict[str, Matrix] = {}

    def look_up(self, texts: Sequence[str]) -> Matrix:
        """A row for each text; those not kept are embedded in one call."""
        known = {text: row for text in texts if (row := self._kept.get(text)) is not None}
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            rows = dict(zip(new, self._embed(new), strict=True))
            if len(self._kept) + len(rows) > _MOST_KEPT:
                self._kept.clear()
            self._kept.update(rows)
            known |= rows
        return np.stack([known[text] for text in texts])


def open_recorded(
    made: Mapping[str, JsonValue], given: "str | EmbedSettings | None", snapshot: str
) -> Embedder:
    """The model that a manifest records, with the instruction that its vectors were made with.

    `given` says where it is: its folder, or the section [embed] of the settings, of which only
    the folder, the endpoint and the key's variable are used.

    Raises:
        InputError: it is not here, or has other files: its vectors could not be compared.
        SettingsError: there is no key for the endpoint.
    """
    if made.get("provider") == "openai":
        return _open_served(made, given, snapshot)
    name, provider = str(made["name"]), str(made.get("provider", "onnx"))
    model, instruction = name, str(made.get("instruction", ""))
    if isinstance(given, str):
        model = given or name
    elif given and given.provider == provider and given.model not in PACKAGED:
        model = given.model
    try:
        here = identify_model(provider, model, instruction)
    except SettingsError as e:
        raise InputError(
            f"snapshot {snapshot} was embedded with {name!r}, which is not found here; name its "
            f"folder: embed.model with --settings, or open_snapshot(model=...). {e}"
        ) from e
    if here.sha256 != made["sha256"]:
        raise InputError(
            f"snapshot {snapshot} was embedded with {name} of sha256 "
            f"{str(made['sha256'])[:12]}…, here it is {here.sha256[:12]}…; install that "
            "version, or build again"
        )
    return open_embedder(here.name, here.files, provider, instruction)


def _open_served(
    made: Mapping[str, JsonValue], given: "str | EmbedSettings | None", snapshot: str
) -> Embedder:
    # Never by default at OpenAI's: whoever built with a server of one's own would send questions
    # to another company.
    if given is None or isinstance(given, str) or given.provider != "openai":
        raise InputError(
            f"snapshot {snapshot} was embedded by an endpoint with {made['name']!r}, and a "
            'question needs the same: give [embed] with provider = "openai", model, and base_url '
            "unless it is OpenAI's, with --settings, open_snapshot(model=load_settings(...).embed) "
            "or as variables KPYRAMID_EMBED__PROVIDER, __MODEL and __BASE_URL"
        )
    # A snapshot whose model runs here is read without settings and what calls endpoints.
    from kpyramid.embeddings.served import SingleCall, open_served
    from kpyramid.settings import LLMSettings

    size = made.get("dimensions")
    settings = replace(
        given,
        model=str(made["name"]),
        instruction=str(made.get("instruction", "")),
        dimensions=size if isinstance(size, int) else None,
    )
    return open_served(
        settings,
        LLMSettings(timeout=_PATIENCE),
        lambda open_transport, _: SingleCall(open_transport(lambda _, call: call())),
    )
