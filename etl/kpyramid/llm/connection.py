"""A connection to a server that speaks OpenAI's API: one call each, what fails is classified."""

import ipaddress
import json
import os
import re
import ssl
import time
import weakref
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias
from urllib.parse import urlsplit

from kpyramid.errors import SettingsError
from kpyramid.keys import JsonValue
from kpyramid.llm.faults import (
    PageError,
    Place,
    UnconnectedError,
    raise_complaint,
    read_complaint,
    read_retry_after,
)
from kpyramid.llm.responses import quote_text
from kpyramid.llm.types import TransientError
from kpyramid.model_settings import LLMSettings

if TYPE_CHECKING:
    import openai

Raw: TypeAlias = Mapping[str, JsonValue]

OPENAI = "https://api.openai.com/v1"
_NO_KEY = "none"
"""Sent to a server of one's own that wants no key; the client insists on one."""
_SHORTEST_SECRET = 8
"""Characters from which a key is looked for in what a server says; "none" is in many texts."""
_CONNECT_TIMEOUT = 10.0
_MOST_BYTES = 64_000_000
_SHOWN_MODELS = 5


class Connection:
    """A pool of connections to one server; threads may share it. Nothing it says holds the key."""

    def __init__(self, settings: LLMSettings, key: str, section: str) -> None:
        base_url = settings.base_url or OPENAI
        self.place = Place(base_url, settings.model, settings.api_key_env, section)
        self.client = _open_client(base_url, key, settings)
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
            raise UnconnectedError(f"no connection ({problem})", sent=False)
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
            value = json.loads(data, parse_constant=_refuse_constant)
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
        models = self._list_models() if complaint.status == 404 else ""
        wait = read_retry_after({k.lower(): v for k, v in headers.items()}, time.time())
        raise_complaint(complaint, self.place, wait, models)

    def _list_models(self) -> str:
        """A sentence with the names of the endpoint's models, as far as it tells them."""
        import httpx2
        import openai

        try:
            names = sorted(model.id for model in self.client.models.list().data)
        except (openai.OpenAIError, httpx2.HTTPError, ValueError, AttributeError, TypeError):
            return "It lists no models either: is base_url missing /v1?"
        shown = ", ".join(quote_text(str(name), 60) for name in names[:_SHOWN_MODELS])
        more = f" and {len(names) - _SHOWN_MODELS} more" if len(names) > _SHOWN_MODELS else ""
        return f"It has: {shown or 'none'}{more}."

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
        return completions.create(model="", messages=(), extra_body=body)


def open_connection(settings: LLMSettings, section: str = "llm") -> Connection:
    """A connection to the endpoint of the settings; nothing is sent yet.

    `section` is what the messages call the settings.

    Raises:
        SettingsError: there is no key, or none that can be sent.
    """
    return Connection(settings, read_key(settings, section), section)


def read_key(settings: LLMSettings, section: str = "llm") -> str:
    """The key that the variable of the settings holds.

    Raises:
        SettingsError: there is none for OpenAI, or none that can be sent.
    """
    key = os.environ.get(settings.api_key_env, "").strip()
    if not key and settings.base_url is None:
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
    client = openai.OpenAI(
        api_key=key,
        base_url=base_url,  # given, so that OPENAI_BASE_URL does not send the corpus elsewhere
        max_retries=0,
        timeout=httpx2.Timeout(settings.timeout, connect=min(_CONNECT_TIMEOUT, settings.timeout)),
        http_client=http,
    )
    weakref.finalize(client, http.close)
    return client


def _is_loopback(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _read_all(chunks: Iterable[bytes], deadline: float) -> bytes:
    """The body; a server that sends drop by drop is cut off at the deadline."""
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


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
