"""Requests over HTTP in the words that the endpoint understands, found by one probe."""

import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import urlsplit

from kpyramid.errors import EndpointError
from kpyramid.keys import JsonValue
from kpyramid.llm.connection import (
    OPENAI,
    Connection,
    PageError,
    Place,
    Raw,
    UnconnectedError,
    open_connection,
)
from kpyramid.llm.responses import has_usage, quote_text, read_response, unfence
from kpyramid.llm.types import FailureKind, Message, ReplyError, Request
from kpyramid.settings import LLMSettings
from kpyramid.storage.writing import write_durably

# Trying an endpoint out once: what it takes, and whether it keeps to a schema.

log = logging.getLogger(__name__)

Limit: TypeAlias = Literal["max_tokens", "max_completion_tokens"]

_ONLY_ANSWER = "k7-heron"
"""What no model says of its own accord: only a constraint brings it."""

PROBE = Request(
    task="probe",
    version=1,
    messages=(
        Message("system", "Answer in JSON."),
        Message("user", "What is the capital of France? Answer with one word."),
    ),
    schema={
        "type": "object",
        "properties": {"answer": {"type": "string", "enum": [_ONLY_ANSWER]}},
        "required": ["answer"],
        "additionalProperties": False,
    },
    max_tokens=512,
)
"""The room is for models that reason first."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What servers disagree about: the name of the token limit, and whether a seed is taken."""

    limit: Limit
    seed: bool = True


def probe_endpoint(
    send: Callable[[Request, Dialect], Raw], dialect: Dialect, place: Place
) -> tuple[Dialect, dict[str, JsonValue]]:
    """The dialect that the endpoint takes, and a record of the probe for the run.

    `dialect` is tried first. One call, and one more for each parameter that is refused.

    Raises:
        EndpointError: the endpoint is no use as it is set; the message says what to mend.
        TransientError: it may work later.
    """
    refused = {""}
    while True:
        try:
            raw = send(PROBE, dialect)
            break
        except PageError as e:
            raise EndpointError(
                f"{place.base_url} answers with a web page and not as a model's API: is base_url "
                f"missing /v1? {e}"
            ) from None
        except UnconnectedError as e:
            raise EndpointError(
                f"cannot connect to {place.base_url}: is the server running, and is "
                f"{place.section}.base_url right? {e}"
            ) from None
        except ReplyError as e:
            if e.kind is not FailureKind.UNACCEPTED:
                raise EndpointError(f"{place.base_url} refuses the probe: {e.detail}") from None
            name = _find_parameter(e.detail, dialect)
            if name in refused:
                raise EndpointError(_say_what_to_mend(e.detail, place)) from None
            refused.add(name)
            dialect = _leave_out(name, dialect)
    schema = _judge_schema(raw)
    counts = has_usage(raw)
    model = raw.get("model")
    if schema == "ignored":
        log.warning(
            "%s ignores the JSON schema it is given: every reply is checked, but expect more "
            "rejects and more calls",
            place.base_url,
        )
    if not counts:
        log.warning(
            "%s does not count tokens: they are estimated from the text's length", place.base_url
        )
    return dialect, {
        "base_url": place.base_url,
        "model": place.model,
        "answered_by": quote_text(model) if isinstance(model, str) else None,
        "schema": schema,
        "usage": counts,
        "limit": dialect.limit,
        "seed": dialect.seed,
    }


def keep_probe(path: Path, record: Mapping[str, JsonValue]) -> None:
    """Writes a run's record of its endpoint."""
    write_durably(path, json.dumps(record, indent=1).encode())


def load_probe(path: Path) -> dict[str, JsonValue] | None:
    """What an earlier stage of the run, perhaps in another process, found the endpoint to be."""
    try:
        record = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None


def read_dialect(record: Mapping[str, JsonValue], place: Place) -> Dialect | None:
    """The dialect that an earlier probe found, or None when it was of another endpoint."""
    limit, seed = record.get("limit"), record.get("seed")
    same = (record.get("base_url"), record.get("model")) == (place.base_url, place.model)
    if not same or not isinstance(seed, bool):
        return None
    if limit == "max_tokens":
        return Dialect("max_tokens", seed)
    return Dialect("max_completion_tokens", seed) if limit == "max_completion_tokens" else None


def _judge_schema(raw: Raw) -> Literal["kept", "ignored", "unclear"]:
    try:
        content = read_response(raw).content
    except ReplyError:
        return "unclear"
    try:
        value = json.loads(unfence(content))
    except (ValueError, RecursionError):
        return "ignored"
    return "kept" if value == {"answer": _ONLY_ANSWER} else "ignored"


def _find_parameter(detail: str, dialect: Dialect) -> str:
    """The parameter that a refusal is about and that there is another way for, else nothing."""
    if dialect.limit in detail or "max_completion_tokens" in detail:
        return "limit"
    return "seed" if dialect.seed and "seed" in detail else ""


def _leave_out(name: str, dialect: Dialect) -> Dialect:
    if name == "seed":
        return replace(dialect, seed=False)
    swapped = dialect.limit == "max_tokens"
    return replace(dialect, limit="max_completion_tokens" if swapped else "max_tokens")


def _say_what_to_mend(detail: str, place: Place) -> str:
    if "temperature" in detail:
        mend = 'set llm.temperature = "default"'
    elif "response_format" in detail or "json_schema" in detail:
        mend = "it cannot be held to a JSON schema: choose a model or a server that can"
    else:
        mend = "mend llm.model or llm.base_url"
    return f"{place.base_url} does not take requests for {place.model!r}: {detail}; {mend}"


# Sending requests over HTTP, in the words that the endpoint understands.

if TYPE_CHECKING:
    import openai

Pay = Callable[[Request, Callable[[], Raw]], Raw]
"""Makes a call, with its cost reserved before and settled after; see `Endpoint`."""


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
