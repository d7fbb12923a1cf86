"""Sending requests over HTTP, in the words that the endpoint understands."""

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kpyramid.errors import EndpointError
from kpyramid.keys import JsonValue
from kpyramid.llm.connection import OPENAI, Connection, Raw, open_connection
from kpyramid.llm.probe import Dialect, Limit, probe_endpoint, read_dialect
from kpyramid.llm.types import ReplyError, Request
from kpyramid.model_settings import LLMSettings

if TYPE_CHECKING:
    import openai

Pay = Callable[[Request, Callable[[], Raw]], Raw]
"""Makes a call, with its cost reserved before and settled after; see `Endpoint`."""

log = logging.getLogger(__name__)

_OPENAI_HOSTS = ("api.openai.com", ".openai.azure.com")


class HttpTransport:
    """A `Transport` over one connection; threads may share it."""

    def __init__(self, settings: LLMSettings, connection: Connection, dialect: Dialect) -> None:
        self.connection = connection
        self.dialect = dialect
        self._settings = settings
        self._no_logprobs = False

    def send(self, request: Request) -> Raw:
        """See `Transport.send`; log-probabilities that the endpoint refuses are done without."""
        if request.logprobs and not self._no_logprobs:
            try:
                return self.connection.post("chat", self.shape_request(request))
            except (ReplyError, EndpointError) as e:
                # Unknown to some servers (400), forbidden for some models (403).
                if "logprobs" not in str(e):
                    raise
                self._no_logprobs = True
                log.info("%s gives no log-probabilities: %s", self.connection.place.base_url, e)
        return self.connection.post("chat", self.shape_request(replace(request, logprobs=False)))

    def shape_request(self, request: Request) -> dict[str, Any]:
        """The body of a call."""
        return shape_request(request, self.dialect, self._settings)

    def close(self) -> None:
        """Closes the connections."""
        self.connection.close()


def open_transport(
    settings: LLMSettings,
    note: Callable[[Mapping[str, JsonValue]], None],
    pay: Pay | None = None,
    known: Mapping[str, JsonValue] | None = None,
) -> HttpTransport:
    """A transport to the endpoint of the settings, which was probed and can be used.

    `note` is given the record of the probe. `pay` makes the probe's calls; without it they are
    just made. `known` is the record of an earlier probe: one of this endpoint is not repeated.

    Raises:
        SettingsError: there is no key, or none that can be sent.
        EndpointError: the endpoint is no use as it is set.
        TransientError: it may work later.
    """
    connection = open_connection(settings)
    host = urlsplit(settings.base_url or OPENAI).hostname or ""
    # OpenAI's reasoning models take no max_tokens; other servers may not know the newer name,
    # and would then silently know no limit.
    limit: Limit = "max_completion_tokens" if host.endswith(_OPENAI_HOSTS) else "max_tokens"

    def send(request: Request, dialect: Dialect) -> Raw:
        transport = HttpTransport(settings, connection, dialect)
        if pay is None:
            return transport.send(request)
        return pay(request, lambda: transport.send(request))

    dialect = read_dialect(known, connection.place) if known else None
    if dialect is not None:
        return HttpTransport(settings, connection, dialect)
    try:
        dialect, record = probe_endpoint(send, Dialect(limit), connection.place)
        note(record)
    except BaseException:
        connection.close()
        raise
    return HttpTransport(settings, connection, dialect)


def open_client(settings: LLMSettings) -> "openai.OpenAI":
    """The client of the endpoint, for what is no completion; nothing is sent yet.

    Raises:
        SettingsError: there is no key, or none that can be sent.
    """
    return open_connection(settings).client


def shape_request(request: Request, dialect: Dialect, settings: LLMSettings) -> dict[str, Any]:
    """What is sent: nothing but what all servers that speak the API are to know."""
    body: dict[str, Any] = {
        "model": settings.model,
        "messages": [{"role": m.role, "content": m.content} for m in request.messages],
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": re.sub(r"[^a-zA-Z0-9_-]", "_", request.task)[:64] or "reply",
                "strict": True,
                "schema": request.schema,
            },
        },
        dialect.limit: request.max_tokens,
    }
    if settings.temperature != "default":
        body["temperature"] = settings.temperature
    if dialect.seed:
        body["seed"] = settings.seed
    if request.logprobs:
        body["logprobs"] = True
    return body
