"""An endpoint with OpenAI's API: its requests and errors, its limits, and its outages."""

import ipaddress
import json
import logging
import math
import os
import re
import ssl
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, TypeVar, get_args
from urllib.parse import urlsplit

from pydantic import TypeAdapter

from kpyramid.errors import EndpointError, RefusedError, SettingsError
from kpyramid.keys import JsonValue, hash_bytes
from kpyramid.llm.ledger import Call, Ledger
from kpyramid.llm.task import (
    FailureKind,
    Message,
    ReplyError,
    Request,
    TransientError,
    Transport,
    has_usage,
    load_json,
    quote_text,
    read_response,
    unfence,
)
from kpyramid.settings import EmbedSettings, LLMSettings, judge_url
from kpyramid.storage.writing import write_durably

if TYPE_CHECKING:
    import openai

Raw: TypeAlias = Mapping[str, JsonValue]

log = logging.getLogger(__name__)

# Consequence of a failed call: try again, give up this item, or give up all.
#
# The client sorts failures by status and retries by itself. Ours stand where that is wrong, in
# brackets the test (tests/test_llm_*.py) that shows it:
# - its retries are not in the books: each try is reserved and settled, so `max_retries` is 0
#   (faults: work that was done before the connection broke counts at its highest);
# - it waits for one call, not for all threads at an endpoint that is busy, and does not retry when
#   Retry-After is above two minutes (faults: busy endpoint is waited for);
# - a 429 is retried when the account is out of credit or the request too large for any minute
#   (faults: fatal answer ends the run; transport: what only this request does not survive);
# - an error in a body with status 200 and a web page are taken for replies, or raise a TypeError
#   (responses: error that came with 200; transport: answers of odd servers);
# - a wrong key or an unknown model may come with status 400 (transport: what no request survives);
# - its errors hold the request and so the key (transport: planted key is in no error).

_QUOTA = frozenset(
    "insufficient_quota billing_hard_limit_reached billing_not_active insufficient_credits "
    "account_deactivated".split()
)
_KEY = frozenset(
    "invalid_api_key incorrect_api_key authentication_error invalid_authentication unauthorized "
    "permission_denied".split()
)
_MODEL = frozenset("model_not_found invalid_model model_not_available".split())
_FILTER = frozenset(
    "content_filter content_policy_violation responsibleaipolicyviolation moderation "
    "moderation_blocked content_moderation".split()
)
_BUSY = frozenset("rate_limit_exceeded rate_limit_error requests tokens overloaded_error".split())


class PageError(TransientError):
    """A web page came instead of JSON: a proxy's error, or the wrong address."""


class UnconnectedError(TransientError):
    """There was no connection, so nothing was sent."""


@dataclass(frozen=True, slots=True)
class Place:
    """The target of a call, for messages; never the key itself. `section`: of the settings.

    `decided_by`: the setting or the variable with the address.
    """

    base_url: str
    model: str
    key_variable: str
    section: str = "llm"
    decided_by: str = "llm.base_url"

    def __str__(self) -> str:
        return f"{self.base_url}, by {self.decided_by}"


@dataclass(frozen=True, slots=True)
class Complaint:
    """A server's error on a call."""

    status: int
    codes: frozenset[str]
    message: str


def read_complaint(status: int, body: JsonValue, text: str) -> Complaint:
    """The error in a body, in any server's form; `text` where it has none."""
    if isinstance(body, list) and body:
        body = body[0]
    error = body.get("error", body) if isinstance(body, Mapping) else body
    if not isinstance(error, Mapping):
        words = error if isinstance(error, str) else text
        return Complaint(status, frozenset(), quote_text(words) or "nothing")
    named = [error.get("code"), error.get("type"), error.get("status")]
    inner = error.get("innererror")
    if isinstance(inner, Mapping):
        named.append(inner.get("code"))
    for code in named:
        number = code if isinstance(code, int) else None
        if status == 200 and number is not None and 400 <= number < 600:
            status = number
    codes = frozenset(code.lower() for code in named if isinstance(code, str))
    message = error.get("message") or error.get("detail") or error.get("msg")
    words = message if isinstance(message, str) else json.dumps(error)
    return Complaint(status, codes, quote_text(words).rstrip("."))


def raise_complaint(
    complaint: Complaint, place: Place, retry_after: float | None = None
) -> NoReturn:
    """Raises the exception for an error.

    Raises:
        TransientError: it may work later. After 429 `retry_after` is never None: 0 is "not said".
        ReplyError: this request cannot be answered.
        RefusedError: no request can be.
    """
    status, codes, message = complaint.status, complaint.codes, complaint.message
    if codes & _FILTER and status not in (401, 404):
        reason = f"a content filter stopped the request; the endpoint says: {message}"
        raise ReplyError(FailureKind.REFUSED, reason)
    if advice := _advise(complaint, place):
        raise RefusedError(
            f"{place.base_url} {advice}. The endpoint says ({status}): {message}. What was "
            "answered is kept: the same command asks only for the rest"
        )
    if status == 429 and "request too large" in message.lower():
        raise ReplyError(FailureKind.UNACCEPTED, message)
    if status == 429 or (status == 200 and codes & _BUSY):
        raise TransientError(
            f"busy ({status}): {message}", retry_after=retry_after or 0.0, sent=False
        )
    if status in (200, 408, 409, 425) or status >= 500:
        raise TransientError(
            f"failed ({status}): {message}", retry_after=retry_after, sent=status != 503
        )
    raise ReplyError(FailureKind.UNACCEPTED, f"not accepted ({status}): {message}")


def _advise(complaint: Complaint, place: Place) -> str | None:
    """The cause of an error of all requests, and advice; None for one of this request."""
    status, codes, section = complaint.status, complaint.codes, place.section
    if codes & _QUOTA or status == 402:
        return "is out of quota or credit for this account"
    if status in (401, 403) or codes & _KEY:
        return (
            f"does not accept the key in the variable {place.key_variable}: set the right key "
            f"there, or name another variable in {section}.api_key_env"
        )
    if codes & _MODEL:
        return (
            f"does not know the model {place.model!r}: `kpyramid doctor` lists those that it has. "
            f"Mend {section}.model or {place.decided_by}"
        )
    if 300 <= status < 400 or status in (404, 405, 407, 410):
        return (
            f"does not answer as a model's API does, or has no model {place.model!r}: `kpyramid "
            f"doctor` lists those that it has. Mend {section}.model or {place.decided_by}, which "
            "ends in /v1 for most servers, without /chat/completions"
        )
    return None


def read_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that a server asks to wait, from lower-case headers; None if absent or invalid.

    `now` in seconds since 1970, for a date.
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        return max(0.0, seconds) if math.isfinite(seconds) else None
    try:
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - now)
    except (KeyError, ValueError, OverflowError):
        return None


# One call to the server each; failures are classified.

OPENAI = "https://api.openai.com/v1"
_NO_KEY = "none"
"""Sent to servers that need no key, as the client requires one."""
_SHORTEST_SECRET = 8
"""Least length of a key that is removed from a server's texts; "none" is in many."""
_CONNECT_TIMEOUT = 10.0
_MOST_BYTES = 64_000_000


class Connection:
    """A pool of connections to one server; threads may share it. Errors never contain the key."""

    def __init__(self, settings: LLMSettings, key: str, section: str) -> None:
        self.place = find_place(settings, section)
        self.client = _open_client(self.place.base_url, key, settings)
        self._timeout = settings.timeout
        self._secret = key if len(key) >= _SHORTEST_SECRET else ""

    def post(self, resource: Literal["chat", "embeddings"], body: Mapping[str, Any]) -> Raw:
        """The reply as the server sent it; one call, no retry. Errors as of `Transport.send`."""
        import httpx2
        import openai

        deadline = time.monotonic() + self._timeout
        answered = None
        # The client's errors hold the request, and so the key: none of them is passed on, not
        # even as the cause of ours, which are raised when the client's is forgotten.
        try:
            with self._start(resource, body) as response:
                return self._read_reply(_read_all(response.iter_bytes(), deadline))
        except openai.APIStatusError as e:
            answered = e.response
        except (openai.APIConnectionError, httpx2.HTTPError) as e:
            failed = e.__cause__ or e
            problem = f"{type(failed).__name__} {self.blot(str(failed))}".strip()
            unsent = isinstance(
                failed, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
            )
            late = isinstance(failed, httpx2.TimeoutException)
        if answered is not None:
            self._refuse(answered.status_code, answered.content, answered.headers)
        if unsent:
            raise UnconnectedError(f"no connection to {self.place} ({problem})", sent=False)
        if late:
            raise TransientError(f"no answer within {self._timeout:g} s")
        raise TransientError(f"the connection broke ({problem})")

    def close(self) -> None:
        """Closes the connections."""
        self.client.close()

    def _read_reply(self, data: bytes) -> Raw:
        """The reply as an object, as it was sent; a key that a server echoes is blotted out."""
        if self._secret and self._secret.encode() in data:
            data = data.replace(self._secret.encode(), b"[key]")
        try:
            value = load_json(data)
        except (ValueError, RecursionError):
            text = self.blot(data[:2000].decode("utf-8", "replace"))
            if _is_page(data):
                raise PageError(f"the reply is a web page: {text[:120]}", sent=False) from None
            raise TransientError(f"the reply is no JSON: {text[:120] or 'nothing'}") from None
        if not isinstance(value, dict):
            raise TransientError(f"the reply is no JSON object: {self.blot(str(value))[:120]}")
        if value.get("error") and not value.get("choices"):
            self._refuse(200, data, {})
        return value

    def _refuse(self, status: int, data: bytes, headers: Mapping[str, str]) -> NoReturn:
        text = data[:20_000].decode("utf-8", "replace")
        if self._secret:
            text = text.replace(self._secret, "[key]")
        try:
            body: JsonValue = json.loads(text)
        except (ValueError, RecursionError):
            body = None
        if body is None and _is_page(data):
            text = re.sub(r"<[^>]*>", " ", re.sub(r"(?is)<(script|style).*?</\1>", " ", text))
        complaint = read_complaint(status, body, text)
        wait = read_retry_after({k.lower(): v for k, v in headers.items()}, time.time())
        raise_complaint(complaint, self.place, wait)

    def blot(self, text: str) -> str:
        """A server's words in one line, without the key."""
        return quote_text(text.replace(self._secret, "[key]") if self._secret else text)

    def _start(self, resource: str, body: Mapping[str, Any]) -> Any:
        # An extra_body takes the place of the arguments and is sent as it is; going through
        # every part of a schema costs the client a third of all that a call does.
        if resource == "embeddings":
            embeddings = self.client.embeddings.with_streaming_response
            return embeddings.create(model="", input=[], extra_body=body)
        completions = self.client.chat.completions.with_streaming_response
        return completions.create(model=body["model"], messages=(), extra_body=body)


def open_connection(settings: LLMSettings, section: str = "llm") -> Connection:
    """A connection to the endpoint of the settings; nothing is sent yet.

    `section`: the name of the settings in messages.

    Raises:
        SettingsError: there is no key, or none that can be sent.
    """
    connection = Connection(settings, read_key(settings, section), section)
    log.info("%s is asked at %s", settings.model, connection.place)
    return connection


def find_place(settings: LLMSettings | EmbedSettings, section: str = "llm") -> Place:
    """The endpoint's address: from the settings, the clients' usual variable, or OpenAI's.

    Raises:
        SettingsError: the variable holds no address that can be used, or Azure's has none.
    """
    url, decided_by = settings.base_url, f"{section}.base_url"
    if not url and (url := os.environ.get("OPENAI_BASE_URL", "").strip()):
        decided_by = "the variable OPENAI_BASE_URL"
        if problem := judge_url(url):
            raise SettingsError(f"{decided_by}: {problem}")
    if not url and isinstance(settings, LLMSettings) and settings.api_version is not None:
        raise SettingsError(
            f"{section}.api_version is Azure's, and {decided_by} is not set: set it to your "
            f"resource, like https://NAME.openai.azure.com, or remove {section}.api_version"
        )
    decided_by += "" if url else " (not set)"
    return Place(url or OPENAI, settings.model, settings.api_key_env, section, decided_by)


def read_key(settings: LLMSettings, section: str = "llm") -> str:
    """The key in the variable of the settings.

    Raises:
        SettingsError: there is none for OpenAI, none that can be sent, or no address for it.
    """
    base_url = find_place(settings, section).base_url
    key = os.environ.get(settings.api_key_env, "").strip()
    if not key and base_url == OPENAI:
        raise SettingsError(
            f"the variable {settings.api_key_env} holds no key for {OPENAI}: set it, name "
            f"another variable in {section}.api_key_env, or set {section}.base_url to a server "
            "of your own"
        )
    if not (key.isascii() and key.isprintable()):
        raise SettingsError(
            f"the variable {settings.api_key_env} holds characters that no key has (a line break, "
            "a letter beyond ASCII): copy the key again"
        )
    return key or _NO_KEY


def _open_client(base_url: str, key: str, settings: LLMSettings) -> "openai.OpenAI":
    import httpx2
    import openai

    pool = settings.concurrency + 1
    local = _is_loopback(base_url)
    # Loading the world's certificates takes longer than a short run on a server of one's own.
    plain = local and base_url.startswith("http:")
    http = openai.DefaultHttpxClient(
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else True,
        limits=httpx2.Limits(max_connections=pool, max_keepalive_connections=pool),
        follow_redirects=False,
        # HTTP_PROXY and the like hold for the world outside; no proxy reaches this machine.
        trust_env=not local,
    )
    connect = min(_CONNECT_TIMEOUT, settings.timeout)
    options: dict[str, Any] = {
        "api_key": key,
        "max_retries": 0,
        "timeout": httpx2.Timeout(settings.timeout, connect=connect),
        "http_client": http,
    }
    if settings.api_version is None:
        client = openai.OpenAI(base_url=base_url, **options)
    else:  # Azure's header for the key, its paths by deployment
        client = openai.AzureOpenAI(
            azure_endpoint=base_url, api_version=settings.api_version, **options
        )
    weakref.finalize(client, http.close)
    return client


def _is_loopback(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    with suppress(ValueError):
        address = ipaddress.ip_address(host)
        return address.is_loopback or address.is_unspecified
    return host == "localhost" or host.endswith(".localhost")


def _read_all(chunks: Iterable[bytes], deadline: float) -> bytes:
    """The body; reading stops at the deadline."""
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size > _MOST_BYTES:
            raise TransientError(f"the reply is longer than {_MOST_BYTES} bytes")
        if time.monotonic() > deadline:
            raise TransientError("the reply came too slowly, llm.timeout is over")
    return b"".join(parts)


def _is_page(data: bytes) -> bool:
    return data.lstrip()[:1] == b"<"


# Probing an endpoint once: accepted parameters, and whether it enforces a schema.

Limit: TypeAlias = Literal["max_tokens", "max_completion_tokens"]
Format: TypeAlias = Literal["json_schema", "json_object", "tools", "plain"]
"""Means of enforcing a reply's form, the strictest first."""

_ONLY_ANSWER = "k7-heron"
"""A word that no model writes by itself: only a constraint yields it."""

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
    """Parameters in which servers differ: their names, and whether they are accepted."""

    limit: Limit
    seed: bool = True
    temperature: bool = True
    effort: bool = True
    form: Format = "json_schema"

    def give_way(self, refusal: str) -> "Dialect | None":
        """The dialect to try after a refusal of a parameter; None if it names none of ours."""
        if self.limit in refusal or "max_completion_tokens" in refusal:
            names = get_args(Limit)
            return replace(self, limit=names[1 - names.index(self.limit)])
        if self.temperature and "temperature" in refusal:
            return replace(self, temperature=False)
        if self.effort and "reasoning_effort" in refusal:
            return replace(self, effort=False)
        if self.seed and "seed" in refusal:
            return replace(self, seed=False)
        later = get_args(Format)[get_args(Format).index(self.form) + 1 :]
        return replace(self, form=later[0]) if later and _FORM.search(refusal) else None


_FORM = re.compile(
    r"response_format|json_schema|json_object|json mode|tools?\b|schema", re.IGNORECASE
)


def probe_endpoint(
    send: Callable[[Request, Dialect], Raw], dialect: Dialect, place: Place
) -> tuple[Dialect, dict[str, JsonValue]]:
    """The dialect that the endpoint accepts, and a record of the probe for the run.

    `dialect` is tried first. One call, and one more for each refused parameter.

    Raises:
        EndpointError: the endpoint is no use as it is set; the message says what to mend.
        TransientError: it may work later.
    """
    tried = {dialect}
    while True:
        try:
            raw = send(PROBE, dialect)
            break
        except PageError as e:
            raise RefusedError(
                f"{place.base_url} answers with a web page and not as a model's API: is base_url "
                f"missing /v1? {e}"
            ) from None
        except UnconnectedError as e:
            raise EndpointError(
                f"cannot connect to {place.base_url}: is the server running, and is "
                f"{place.decided_by} right? {e}"
            ) from None
        except ReplyError as e:
            fallback = dialect.give_way(e.detail) if e.kind is FailureKind.UNACCEPTED else None
            if fallback is None or fallback in tried:
                raise RefusedError(
                    f"{place.base_url} does not take requests for {place.model!r}: {e.detail}; "
                    f"mend {place.section}.model or {place.decided_by}"
                ) from None
            dialect = fallback
            tried.add(dialect)
    if dialect.form != "json_schema":
        log.info("%s takes no JSON schema; replies come as %s", place.base_url, dialect.form)
    schema, counts, model = _judge_schema(raw), has_usage(raw), raw.get("model")
    if schema == "ignored" and dialect.form == "json_schema":
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
        **asdict(dialect),
    }


def _read_dialect(record: Path, place: Place) -> Dialect | None:
    """The dialect in the record of an earlier stage's probe, perhaps in another process.

    None without a record, or for another endpoint.
    """
    try:
        noted = json.loads(record.read_bytes())
        if (noted["base_url"], noted["model"]) != (place.base_url, place.model):
            return None
        known = {field.name: noted[field.name] for field in fields(Dialect) if field.name in noted}
        return TypeAdapter(Dialect).validate_python(known)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _judge_schema(raw: Raw) -> Literal["kept", "ignored", "unclear"]:
    try:
        content = read_response(raw)
    except ReplyError:
        return "unclear"
    try:
        value = json.loads(unfence(content))
    except (ValueError, RecursionError):
        return "ignored"
    return "kept" if value == {"answer": _ONLY_ANSWER} else "ignored"


# Requests as the endpoint understands them.

Pay = Callable[[Request, Callable[[], Raw]], Raw]
"""Makes a call, with its cost reserved before and settled after; see `Endpoint`."""


_OPENAI_HOSTS = ("api.openai.com", ".openai.azure.com")


class HttpTransport:
    """A `Transport` over one connection; threads may share it."""

    def __init__(self, settings: LLMSettings, connection: Connection, dialect: Dialect) -> None:
        self.connection = connection
        self.dialect = dialect
        self._settings = settings

    def send(self, request: Request) -> Raw:
        """See `Transport.send`."""
        return self.connection.post("chat", self.shape_request(request))

    def shape_request(self, request: Request) -> dict[str, Any]:
        """The body of a call."""
        return shape_request(request, self.dialect, self._settings)

    def close(self) -> None:
        """Closes the connections."""
        self.connection.close()


def open_transport(settings: LLMSettings, record: Path, pay: Pay | None = None) -> HttpTransport:
    """A transport to the probed endpoint of the settings.

    `record`: the run's file of the probe; that of this endpoint is not repeated. `pay` books the
    probe's calls, if given.

    Raises:
        SettingsError: there is no key, or none that can be sent.
        EndpointError: the endpoint is no use as it is set.
        TransientError: it may work later.
    """
    connection = open_connection(settings)
    host = urlsplit(connection.place.base_url).hostname or ""
    # OpenAI's reasoning models take no max_tokens; other servers may not know the newer name,
    # and would then silently know no limit.
    limit: Limit = "max_completion_tokens" if host.endswith(_OPENAI_HOSTS) else "max_tokens"

    def send(request: Request, dialect: Dialect) -> Raw:
        transport = HttpTransport(settings, connection, dialect)
        return pay(request, partial(transport.send, request)) if pay else transport.send(request)

    dialect = _read_dialect(record, connection.place)
    if dialect is None:
        try:
            dialect, probed = probe_endpoint(send, Dialect(limit), connection.place)
        except BaseException:
            connection.close()
            raise
        write_durably(record, json.dumps(probed, indent=1).encode())
    return HttpTransport(settings, connection, dialect)


def shape_request(request: Request, dialect: Dialect, settings: LLMSettings) -> dict[str, Any]:
    """The body of a request, with parameters that all servers of the API know."""
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", request.task)[:64] or "reply"
    body: dict[str, Any] = {
        "model": settings.model,
        "messages": [{"role": m.role, "content": m.content} for m in request.messages],
        dialect.limit: request.max_tokens,
    }
    match dialect.form:
        case "json_schema":
            form = {"name": name, "strict": True, "schema": request.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        case "json_object":
            body["response_format"] = {"type": "json_object"}
        case "tools":
            function = {"name": name, "parameters": request.schema}
            body["tools"] = [{"type": "function", "function": function}]
            body["tool_choice"] = {"type": "function", "function": {"name": name}}
    if dialect.temperature and settings.temperature != "default":
        body["temperature"] = settings.temperature
    if dialect.effort and settings.reasoning_effort:
        body["reasoning_effort"] = settings.reasoning_effort
    if dialect.seed:
        body["seed"] = settings.seed
    return body


# Getting replies from an endpoint: budget, limits, retries, and detection of outages.

T = TypeVar("T")

_TRIES = 5
"""HTTP calls for one item in one run when the endpoint fails; a busy one is called again until
llm.max_wait is over."""
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0
"""Seconds before the second try, doubled from try to try up to the longest."""
_GIVE_UP_AFTER = 8
"""Failed items in a row after which the endpoint counts as down."""
_DOWN = frozenset({FailureKind.UNREACHED, FailureKind.DEFERRED})


@dataclass(eq=False)
class Endpoint:
    """A `Source` over a transport; threads may share it. `calls` counts HTTP calls.

    `open_transport` is called before the first call, so that a run without calls opens nothing; its
    argument pays for its own calls. `describe` gives the ledger's entry for a request, by default
    that of a chat completion.
    """

    open_transport: Callable[[Pay], Transport]
    ledger: Ledger
    max_wait: float
    describe: Callable[[Request, str], Call] | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        self._describe = self.describe or self.ledger.describe
        self._opening = threading.Lock()
        self._guard = threading.Lock()
        self._transport: Transport | None = None
        self._busy_until = 0.0
        self._down_in_a_row = 0
        self._broken: EndpointError | None = None
        self.calls = 0
        self.answered_by: Counter[str] = Counter()
        """Replies by the model that they name."""

    def obtain(self, key: str, request: Request) -> Raw:
        """See `Source.obtain`: one reply, over as many calls as needed, each booked."""
        self._check()
        try:
            transport = self._open(key, request)
            raw = self._persist(
                key, lambda: self._pay(key, request, lambda: transport.send(request))
            )
        except EndpointError as e:
            self._broken = e
            raise
        except ReplyError as e:
            if e.kind in _DOWN:
                self._note_down(e.detail)
            raise
        named = quote_text(str(raw.get("model", "")))
        with self._guard:
            self._down_in_a_row = 0
            differs = bool(self.answered_by) and named not in self.answered_by
            self.answered_by[named] += 1
        if differs:
            log.warning("replies are of several models: %s is another than before", named)
        return raw

    def _check(self) -> None:
        """Fails at once if one item has proved that none can be answered.

        Raises:
            EndpointError: no request can be answered.
        """
        if self._broken:
            raise type(self._broken)(str(self._broken))

    def _open(self, key: str, request: Request) -> Transport:
        """The transport; the first thread opens it while the others wait.

        Raises:
            BudgetError: it would be opened for a request that may not be sent.
            EndpointError: it cannot be opened.
        """
        with self._opening:
            self._check()
            if self._transport is None:
                self.ledger.check(self._describe(request, key))

                def pay(probe: Request, call: Callable[[], Raw]) -> Raw:
                    return self._pay(probe.task, probe, call)

                try:
                    self._transport = self._persist("open", lambda: self.open_transport(pay))
                except ReplyError as e:
                    self._broken = EndpointError(
                        f"{e.detail}. Nothing was asked: run the same command later"
                    )
                    raise self._broken from e
                except EndpointError as e:
                    self._broken = e
                    raise
            return self._transport

    def _persist(self, key: str, call: Callable[[], T]) -> T:
        """The result of a call, repeated while that may help.

        Raises:
            ReplyError: it was made often enough, or would have to wait too long.
        """
        started, number, failed = self.clock(), 0, 0
        while True:
            try:
                return call()
            except TransientError as e:
                busy = e.retry_after is not None
                wait = max(e.retry_after or 0.0, _choose_wait(key, number))
                number, failed = number + 1, failed + (not busy)
                if failed == _TRIES:
                    detail = f"{number} calls failed, the last: {e}"
                    raise ReplyError(FailureKind.UNREACHED, detail) from e
                passed = self.clock() - started + wait
                if passed > self.max_wait:
                    detail = f"{e}; waiting {passed:.0f} s is more than llm.max_wait"
                    raise ReplyError(FailureKind.DEFERRED, detail) from e
                if busy:  # a limit is the endpoint's, so it holds for all threads
                    self._busy_until = max(self._busy_until, self.clock() + wait)
                else:
                    self.sleep(wait)

    def _pay(self, key: str, request: Request, call: Callable[[], Raw]) -> Raw:
        """Makes and books one call within the budget, when no wait is imposed."""
        begun = self.clock()
        while (left := self._busy_until - self.clock()) > 0:
            if self._busy_until - begun > self.max_wait:
                detail = f"the endpoint is busy for {left:.0f} s more, over llm.max_wait in all"
                raise ReplyError(FailureKind.DEFERRED, detail)
            self.sleep(left)

        def count_call() -> Raw:
            with self._guard:
                self.calls += 1
            return call()

        return self.ledger.pay(self._describe(request, key), request, count_call)

    def _note_down(self, detail: str) -> None:
        with self._guard:
            self._down_in_a_row += 1
            down = self._down_in_a_row
        if down >= _GIVE_UP_AFTER:
            self._broken = EndpointError(
                f"the model's endpoint failed for {down} items in a row, the last: {detail}. What "
                "was answered is kept. When it is well again, run the same command: it asks only "
                "for the rest"
            )
            self._check()


def _choose_wait(key: str, number: int) -> float:
    """Doubling; a share that depends on the key parts callers."""
    share = int(hash_bytes(f"{key} {number}".encode())[:4], 16) / 0xFFFF
    return float(min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(number, 16)) * (0.5 + share / 2))
