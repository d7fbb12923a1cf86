"""What the loopback server answers, whole or spoilt: completions, embeddings, faults by rule.

A fault is of a chat reply's body (`BODY`), of the answer as HTTP (`HTTP`), of embeddings
(`VECTORS`) or of a whole batch (`BATCH`); `after` has those of HTTP strike when the work was done
and counted.
"""

import email.utils
import hashlib
import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from importlib.resources import files
from math import sqrt
from typing import Any

from tokenizers import Tokenizer

from tests.rows import read_bodies, read_rows

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
    fault: answer for fault, *answer in read_rows("loopback.errors")
}
HTML = b"<!DOCTYPE html><html><body><h1>It works!</h1></body></html>"


@dataclass
class Rule:
    """When a fault strikes: the first `times` matching requests, or a share of them.

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
        if self.matched <= self.skip:
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

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self.rules: list[Rule] = []

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


def read_record(kind: str, said: Payload) -> Payload:
    """A record of the API, with what is always the same in it."""
    return {**json.loads(json.dumps(read_bodies(f"loopback.{kind}"))), **said}


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
    "other_model": _set(model="m-mini"),
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


PER_MESSAGE, PER_REQUEST = 4, 3
"""Tokens that a chat template adds to each message, and once for the reply's start."""
CACHE_FROM, CACHE_STEP = 1024, 128
"""OpenAI caches prompts from that many equal leading tokens on, in such steps."""
VECTOR_SIZE = 32
_MARKS = re.compile(r"[^\w\s]+")
_FORBIDDEN = "allOf oneOf not if then else default uniqueItems patternProperties".split()


@dataclass(frozen=True, slots=True)
class Answer:
    """What an answer function may return in place of a bare text."""

    content: str | None
    reasoning: int = 0
    refusal: str | None = None


class RefuseError(Exception):
    """An answer function's, or the server's own, refusal with a status other than 200."""

    def __init__(self, status: int, message: str, code: str | None = None, param: str = "") -> None:
        super().__init__(message)
        self.status = status
        kind = "server_error" if status >= 500 else "invalid_request_error"
        self.payload = {
            "error": {"message": message, "type": kind, "param": param or None, "code": code}
        }


Body = Mapping[str, Any]
AnswerFunction = Callable[[dict[str, Any]], str | Answer]


@cache
def _load_tokenizer() -> Tokenizer:
    path = files("kpyramid.embeddings").joinpath("minilm", "tokenizer.json")
    tokenizer = Tokenizer.from_str(path.read_text("utf-8"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


@lru_cache(maxsize=4096)
def count_tokens(text: str) -> int:
    """Word pieces, and a third of a token for each mark in a run of marks; needs no download.

    Vocabularies of models for JSON and code hold such runs whole. On prompts, passages and replies
    of the cascade it is within 7 % of Qwen2.5's tokenizer.
    """
    clean = text.encode("utf-8", "replace").decode("utf-8")
    marks = sum(-(-len(run) // 3) for run in _MARKS.findall(clean))
    return marks + len(_load_tokenizer().encode(_MARKS.sub(" ", clean), add_special_tokens=False))


def read_schema(body: Body) -> dict[str, Any] | None:
    """The strict schema that was sent, if one was."""
    asked = body.get("response_format") or {}
    if asked.get("type") != "json_schema":
        return None
    schema: dict[str, Any] | None = asked["json_schema"].get("schema")
    return schema


def check_strict(body: Body) -> None:
    """Refuses a schema that OpenAI's strict mode would refuse."""
    asked = body.get("response_format") or {}
    if asked.get("type") not in (None, "text", "json_object", "json_schema"):
        raise RefuseError(400, f"response_format: {asked!r}", param="response_format")
    if asked.get("type") != "json_schema":
        return
    name = asked["json_schema"].get("name", "")
    if not (0 < len(name) <= 64 and name.replace("-", "_").replace("_", "a").isalnum()):
        raise RefuseError(400, f"Invalid name {name!r}", param="response_format.json_schema.name")
    if not asked["json_schema"].get("strict"):
        return
    schema = read_schema(body) or {}
    faults = list(_find_faults(schema, "()"))
    if schema.get("type") != "object":
        faults.insert(0, "schema must be a JSON Schema of 'type: \"object\"'")
    if faults:
        raise RefuseError(
            400,
            f"Invalid schema for response_format '{name}': {faults[0]}",
            param="response_format",
        )


def _find_faults(schema: Any, where: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        yield f"In context={where}, {schema!r} is no schema."
        return
    for word in _FORBIDDEN:
        if word in schema:
            yield f"In context={where}, '{word}' is not permitted."
    if schema.get("type") == "object" or "properties" in schema:
        if schema.get("additionalProperties") is not False:
            yield f"In context={where}, 'additionalProperties' is required to be false."
        if sorted(schema.get("required", [])) != sorted(schema.get("properties", {})):
            yield f"In context={where}, 'required' must hold every key in properties."
    if schema.get("type") == "array" and "items" not in schema:
        yield f"In context={where}, array schema missing items."
    for name, part in schema.get("properties", {}).items():
        yield from _find_faults(part, f"{where}.{name}")
    for at, part in enumerate(schema.get("anyOf", [])):
        yield from _find_faults(part, f"{where}.anyOf[{at}]")
    if "items" in schema:
        yield from _find_faults(schema["items"], f"{where}.items")


def answer_by_schema(body: dict[str, Any]) -> str:
    """The smallest instance of the schema that was sent; "ok" without a schema."""
    schema = read_schema(body)
    return "ok" if schema is None else json.dumps(make_instance(schema))


def make_instance(schema: Body) -> Any:
    """First of each enum and alternative, arrays as short and numbers as small as allowed."""
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return make_instance(schema["anyOf"][0])
    kind = schema.get("type")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            return {n: make_instance(p) for n, p in schema.get("properties", {}).items()}
        case "array":
            return [make_instance(schema["items"])] * schema.get("minItems", 0)
        case "string":
            return "x" * schema.get("minLength", 1)
        case "integer" | "number":
            return schema.get("minimum", 0)
        case "boolean":
            return False
    return None


class Completer:
    """Makes chat completions and embeddings; remembers the first messages that it saw."""

    def __init__(self, answer: AnswerFunction, reasoning: int) -> None:
        self._answer = answer
        self._reasoning = reasoning
        self._seen: set[str] = set()

    def complete(self, body: dict[str, Any], number: int) -> dict[str, Any]:
        """A chat completion; cut off when the answer is longer than the request allows."""
        if not isinstance(body.get("messages"), list) or not body["messages"]:
            raise RefuseError(400, "Missing required parameter: 'messages'.", param="messages")
        if body.get("stream"):
            raise RefuseError(400, "this server does not stream", param="stream")
        check_strict(body)
        made = self._answer(body)
        answer = Answer(made) if isinstance(made, str) else made
        reasoning = answer.reasoning or self._reasoning
        room = body.get("max_completion_tokens") or body.get("max_tokens") or 1 << 30
        content, reason = answer.content, "stop"
        length = reasoning + count_tokens(content or answer.refusal or "")
        if length > room:
            kept = max(0, room - reasoning) / max(1, length - reasoning)
            content = (content or "")[: int(len(content or "") * kept)]
            reason, length, reasoning = "length", room, min(reasoning, room)
        message = {"role": "assistant", "content": content, "refusal": answer.refusal}
        said = {"id": f"chatcmpl-{number:08d}", "created": 1_700_000_000 + number}
        said |= {"choices": [{"index": 0, "message": message, "finish_reason": reason}]}
        said |= {"model": body["model"], "usage": self._make_usage(body, length, reasoning)}
        return read_record("completion", said)

    def _make_usage(self, body: Body, completion: int, reasoning: int) -> dict[str, Any]:
        first = str(body["messages"][0].get("content") or "")
        prompt = count_prompt(body)
        cached = 0
        if first in self._seen and count_tokens(first) >= CACHE_FROM:
            cached = count_tokens(first) // CACHE_STEP * CACHE_STEP
        self._seen.add(first)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0},
            "completion_tokens_details": read_record(
                "completion_tokens_details", {"reasoning_tokens": reasoning}
            ),
        }


def count_prompt(body: Body) -> int:
    """The tokens that are billed for what was sent: messages, their frames, the schema."""
    schema = read_schema(body)
    return (
        PER_REQUEST
        + sum(PER_MESSAGE + count_tokens(str(m.get("content") or "")) for m in body["messages"])
        + (count_tokens(json.dumps(schema, separators=(",", ":"))) if schema else 0)
    )


def embed(body: Body) -> dict[str, Any]:
    """One vector of unit length per input, a function of its text alone."""
    texts = [body["input"]] if isinstance(body.get("input"), str) else body.get("input")
    if not isinstance(texts, list) or not 0 < len(texts) <= 2048 or not all(texts):
        raise RefuseError(400, "'$.input' is invalid.", param="input")
    size = body.get("dimensions") or VECTOR_SIZE
    vectors = [make_vector(str(text), size) for text in texts]
    tokens = sum(count_tokens(str(text)) for text in texts)
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(vectors)
        ],
        "model": body["model"],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def make_vector(text: str, size: int = VECTOR_SIZE) -> list[float]:
    """A vector of unit length drawn with the text's hash."""
    seed = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    draw = random.Random(seed)
    raw = [draw.gauss(0.0, 1.0) for _ in range(size)]
    length = sqrt(sum(x * x for x in raw))
    return [x / length for x in raw]
