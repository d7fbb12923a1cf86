"""What a failed call means: try again, give up this item, or give up all."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import NoReturn

from kpyramid.errors import EndpointError
from kpyramid.keys import JsonValue
from kpyramid.llm.responses import quote_text
from kpyramid.llm.types import FailureKind, ReplyError, TransientError

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
_RESET = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")


class PageError(TransientError):
    """A web page came instead of JSON: a proxy's error, or another address than the API's."""


class UnconnectedError(TransientError):
    """There was no connection, so nothing was sent."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call went, for the messages; never the key itself. `section` of the settings."""

    base_url: str
    model: str
    key_variable: str
    section: str = "llm"


@dataclass(frozen=True, slots=True)
class Complaint:
    """What a server says about a call that it did not answer."""

    status: int
    codes: frozenset[str]
    message: str


def read_complaint(status: int, body: JsonValue, text: str) -> Complaint:
    """The error in a body, in any of the shapes that servers give it; `text` where it has none."""
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
    complaint: Complaint, place: Place, retry_after: float | None, models: str
) -> NoReturn:
    """Raises what the complaint means; `models` says which ones there are.

    Raises:
        TransientError: it may work later. After 429 `retry_after` is never None: 0 is "not said".
        ReplyError: this request cannot be answered.
        EndpointError: no request can be.
    """
    status, codes, message = complaint.status, complaint.codes, complaint.message
    said = f"the endpoint says: {message}"
    if codes & _FILTER and status not in (401, 404):
        raise ReplyError(FailureKind.REFUSED, f"a content filter stopped the request; {said}")
    if codes & _QUOTA or status == 402:
        raise EndpointError(
            f"{place.base_url}: the account is out of quota or credit; {said}. What was answered "
            "is kept: once there is credit again run the same command, and it asks only for the "
            "rest"
        )
    if status in (401, 403) or codes & _KEY:
        raise EndpointError(
            f"{place.base_url} does not accept the key in the variable {place.key_variable} "
            f"({status}); {said}. Set the right key there, or name another variable in "
            f"{place.section}.api_key_env; what was answered is kept"
        )
    if status == 404 and not codes & _MODEL:
        raise EndpointError(
            f"{place.base_url} has nothing at this address (404); {said}. Mend "
            f"{place.section}.base_url: it ends in /v1 for most servers, without "
            f"/chat/completions. {models}"
        )
    if codes & _MODEL:
        raise EndpointError(
            f"{place.base_url} does not know the model {place.model!r} ({status}); {said}. "
            f"{models} Mend {place.section}.model or {place.section}.base_url; what was answered "
            "is kept"
        )
    if 300 <= status < 400 or status in (405, 407, 410):
        raise EndpointError(
            f"{place.base_url} does not answer as a model's API does ({status}); {said}. Mend "
            f"{place.section}.base_url (it ends in /v1 for most servers)"
        )
    if status == 429 and "request too large" in message.lower():
        raise ReplyError(FailureKind.UNACCEPTED, said)
    if status == 429 or (status == 200 and codes & _BUSY):
        raise TransientError(
            f"busy ({status}): {message}", retry_after=retry_after or 0.0, sent=False
        )
    if status in (200, 408, 409, 425) or status >= 500:
        raise TransientError(
            f"failed ({status}): {message}", retry_after=retry_after, sent=status != 503
        )
    raise ReplyError(FailureKind.UNACCEPTED, f"not accepted ({status}); {said}")


def read_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that a server asks to wait, by names in lower case; None for none or nonsense.

    `now` in seconds since 1970, for a date.
    """
    milliseconds = _read_number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = headers.get("retry-after")
    seconds = _read_number(asked)
    if seconds is not None:
        return seconds
    if asked is not None:
        try:
            return max(0.0, parsedate_to_datetime(asked).timestamp() - now)
        except (ValueError, OverflowError):
            return None
    waits = [
        _read_duration(headers.get(f"x-ratelimit-reset-{what}", ""))
        for what in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{what}") == "0"
    ]
    return max((wait for wait in waits if wait is not None), default=None)


def _read_number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _read_duration(text: str) -> float | None:
    """Seconds of OpenAI's form, such as 6m0s or 120ms."""
    match = _RESET.fullmatch(text)
    if not text or match is None:
        return None
    hours, minutes, seconds, milliseconds = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000
