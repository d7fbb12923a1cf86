"""What can go wrong at the loopback server, by rule.

A fault of a chat reply's body (`BODY`), of the answer as HTTP (`HTTP`), of embeddings (`VECTORS`)
or of a whole batch (`BATCH`); `after` has those of HTTP strike when the work was done and counted.
"""

import email.utils
import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

Payload = dict[str, Any]

HTTP = frozenset(
    """429 500 502 503 408 409 timeout drop short html error_200 not_json quota 401 403 404 400
    too_long filter_400""".split()
)
BATCH = frozenset(
    """expired cancelled token_limit no_output_file empty_error_file_id duplicate_id missing_id
    foreign_id vanished stuck""".split()
)
_ERRORS: Mapping[str, tuple[int, str, str | None, str]] = {
    "429": (429, "requests", "rate_limit_exceeded", "Rate limit reached."),
    "500": (500, "server_error", None, "The server had an error while processing your request."),
    "502": (502, "server_error", None, "Bad gateway."),
    "503": (503, "server_error", None, "The engine is currently overloaded."),
    "408": (408, "server_error", None, "Request timed out."),
    "409": (409, "server_error", None, "The request conflicts with another one."),
    "quota": (
        429,
        "insufficient_quota",
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    "401": (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    "403": (403, "invalid_request_error", "unsupported_country", "Not allowed from here."),
    "404": (404, "invalid_request_error", "model_not_found", "The model does not exist."),
    "400": (400, "invalid_request_error", "invalid_value", "Invalid value."),
    "too_long": (
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "This model's maximum context length is 8192 tokens.",
    ),
    "filter_400": (
        400,
        "invalid_request_error",
        "content_filter",
        "The response was filtered due to the prompt triggering a content management policy.",
    ),
}
HTML = b"<!DOCTYPE html><html><body><h1>It works!</h1></body></html>"


@dataclass
class Rule:
    """When a fault strikes: the first `times` matching requests, every n-th, or a share of them.

    `path`: the route below /v1, with * for any, or "item" for the requests inside batches.
    `contains`: a piece of the body's JSON text; `when`: a predicate on the parsed body. `share` is
    drawn from `seed`, the body's hash and how often that body came before, so that threads' order
    does not matter.
    `skip`: so many matching requests first. `wait`: seconds of a timeout. `retry_after`: seconds,
    `as_date` sends them as a date. `status`: of an HTML page.
    """

    fault: str
    path: str = "/chat/completions"
    method: str = "POST"
    times: int | None = None
    every: int = 1
    share: float = 1.0
    seed: int = 0
    skip: int = 0
    contains: str = ""
    when: Callable[[Payload], bool] | None = None
    after: bool = False
    retry_after: float | None = None
    as_date: bool = False
    wait: float = 30.0
    status: int = 200
    matched: int = 0
    struck: int = 0
    _seen: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        if self.fault not in HTTP | BATCH | BODY.keys() | VECTORS.keys():
            raise ValueError(f"no fault {self.fault!r}")

    def strikes(self, method: str, path: str, body: Payload, sha256: str) -> bool:
        """Whether this request is one of the unlucky; counts it."""
        if method != self.method or not fnmatchcase(path, self.path):
            return False
        if self.times is not None and self.struck >= self.times:
            return False
        if self.contains and self.contains not in json.dumps(body, ensure_ascii=False):
            return False
        if self.when is not None and not self.when(body):
            return False
        self.matched += 1
        if self.matched <= self.skip or (self.matched - self.skip) % self.every:
            return False
        if self.share < 1.0:
            self._seen[sha256] += 1
            drawn = f"{self.seed} {sha256} {self._seen[sha256]}".encode()
            if int(hashlib.sha256(drawn).hexdigest()[:8], 16) >= self.share * 2**32:
                return False
        self.struck += 1
        return True


class Faults:
    """The rules in force; the first that strikes wins."""

    def __init__(self, rules: tuple[Rule, ...] = ()) -> None:
        self._guard = threading.Lock()
        self.rules = list(rules)

    def add(self, fault: str, **options: Any) -> Rule:
        """A new rule, see `Rule`."""
        rule = Rule(fault, **options)
        with self._guard:
            self.rules.append(rule)
        return rule

    def clear(self) -> None:
        """From now on all is well."""
        with self._guard:
            self.rules.clear()

    def find(self, method: str, path: str, body: Payload, sha256: str) -> Rule | None:
        """The rule that strikes this request."""
        with self._guard:
            struck = (r for r in self.rules if r.strikes(method, path, body, sha256))
            return next(struck, None)


def make_error(rule: Rule) -> tuple[int, dict[str, str], Payload] | None:
    """Status, headers and body of a fault that is an honest HTTP error."""
    if rule.fault not in _ERRORS:
        return None
    status, kind, code, message = _ERRORS[rule.fault]
    headers = {}
    if rule.retry_after is not None:
        moment = email.utils.formatdate(time.time() + rule.retry_after, usegmt=True)
        headers["Retry-After"] = moment if rule.as_date else f"{rule.retry_after:g}"
    error = {"message": message, "type": kind, "param": None, "code": code}
    return status, headers, {"error": error}


def spoil(reply: Payload, fault: str) -> Payload:
    """The chat completion, or list of embeddings, with the fault in it."""
    change = BODY[fault] if fault in BODY else VECTORS[fault]
    return change(json.loads(json.dumps(reply)))


def _set_content(change: Callable[[str], str | None]) -> Callable[[Payload], Payload]:
    def set_content(reply: Payload) -> Payload:
        message = reply["choices"][0]["message"]
        message["content"] = change(message["content"] or "")
        return reply

    return set_content


def _set(**fields: Any) -> Callable[[Payload], Payload]:
    return lambda reply: {**reply, **fields}


def _finish(reason: str, change: Callable[[str], str | None]) -> Callable[[Payload], Payload]:
    def finish(reply: Payload) -> Payload:
        reply["choices"][0]["finish_reason"] = reason
        return _set_content(change)(reply)

    return finish


def _refuse(reply: Payload) -> Payload:
    message = reply["choices"][0]["message"]
    message.update(content=None, refusal="I'm sorry, I can't help with that.")
    return reply


def _drop(field_name: str) -> Callable[[Payload], Payload]:
    return lambda reply: {name: value for name, value in reply.items() if name != field_name}


def _put_in(character: str, escaped: bool) -> Callable[[str], str]:
    """Puts the character behind the first text in the content, as an escape or as itself."""

    def put_in(content: str) -> str:
        done = False

        def walk(value: Any) -> Any:
            nonlocal done
            if isinstance(value, str) and not done:
                done = True
                return value + character
            if isinstance(value, list):
                return [walk(part) for part in value]
            if isinstance(value, dict):
                return {name: walk(part) for name, part in value.items()}
            return value

        try:
            text = json.dumps(walk(json.loads(content)), ensure_ascii=escaped)
        except ValueError:
            return content + character
        if not escaped:
            text = text.replace("\\u0000", "\0")
        return text if done else text + character

    return put_in


def _half(content: str) -> str:
    return content[: len(content) // 2]


BODY: Mapping[str, Callable[[Payload], Payload]] = {
    "choices_null": _set(choices=None),
    "choices_empty": _set(choices=[]),
    "choices_missing": _drop("choices"),
    "message_null": _set(choices=[{"index": 0, "message": None, "finish_reason": "stop"}]),
    "content_null": _set_content(lambda _: None),
    "content_empty": _set_content(lambda _: ""),
    "malformed": _set_content(_half),
    "fenced": _set_content(lambda content: f"```json\n{content}\n```"),
    "wrapped": _set_content(lambda content: f"Sure! Here is the JSON:\n{content}\nAnything else?"),
    "wrong_schema": _set_content(lambda _: '{"unexpected": true}'),
    "surrogate": _set_content(_put_in("\ud800", True)),
    "surrogate_raw": _set_content(_put_in("\ud800", False)),
    "nul": _set_content(_put_in("\0", True)),
    "nul_raw": _set_content(_put_in("\0", False)),
    "refusal": _refuse,
    "content_filter": _finish("content_filter", lambda _: None),
    "content_filter_partial": _finish("content_filter", _half),
    "truncated": _finish("length", _half),
    "truncated_empty": _finish("length", lambda _: ""),
    "ignores_format": _set_content(lambda _: "The Danube flows through Vienna."),
    "ignores_format_json": _set_content(lambda _: '{"answer": "whatever I like"}'),
    "no_usage": _drop("usage"),
    "usage_null": _set(usage=None),
}


def _change_vectors(change: Callable[[list[Any]], list[Any]]) -> Callable[[Payload], Payload]:
    return lambda reply: {**reply, "data": change(reply["data"])}


def _spoil_last(vector: Callable[[Any], Any]) -> Callable[[list[Any]], list[Any]]:
    return lambda data: [*data[:-1], {**data[-1], "embedding": vector(data[-1]["embedding"])}]


VECTORS: Mapping[str, Callable[[Payload], Payload]] = {
    "shuffled": _change_vectors(lambda data: data[1::2][::-1] + data[::2]),
    "one_missing": _change_vectors(lambda data: data[:-1]),
    "one_twice": _change_vectors(lambda data: [*data[:-1], {**data[-1], "index": 0}]),
    "short_vector": _change_vectors(_spoil_last(lambda vector: vector[: len(vector) // 2])),
    "vector_null": _change_vectors(_spoil_last(lambda _: None)),
    "data_null": _set(data=None),
}
