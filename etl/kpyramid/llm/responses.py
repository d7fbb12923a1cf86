"""Reading chat completions: the text of a good one, what it used, and what is wrong with a bad."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeGuard, TypeVar

from pydantic import BaseModel, ValidationError

from kpyramid.keys import JsonValue
from kpyramid.llm.types import FailureKind, Reply, ReplyError, Request, Token, Usage

M = TypeVar("M", bound=BaseModel)

_MOST_TOKENS = 10_000_000
"""Of one call; the largest context windows hold a few million. A higher count is no count."""
_BYTES_PER_TOKEN = 3
"""Where the server counts nothing. English has about four, most other scripts two to three."""
_LONGEST_QUOTE = 300
_SHOWN_PROBLEMS = 3

_FENCE = re.compile(r"\A```[\w-]*[ \t]*\r?\n(.*?)\r?\n?[ \t]*```\Z", re.DOTALL)


def read_response(raw: Mapping[str, JsonValue]) -> Reply:
    """The text of a finished completion.

    Raises:
        ReplyError: refused, truncated, empty or invalid.
    """
    if not isinstance(raw, Mapping):
        raise ReplyError(FailureKind.INVALID, f"the reply is {_name_type(raw)}, not an object")
    choices = raw.get("choices")
    if not _is_list(choices) or not choices or not isinstance(choices[0], Mapping):
        error = raw.get("error")
        note = f"; it says: {quote_text(_read_message(error))}" if error else ""
        raise ReplyError(FailureKind.EMPTY, f"the reply has no choice{note}")
    choice = choices[0]
    message = choice.get("message")
    message = message if isinstance(message, Mapping) else {}
    finish = choice.get("finish_reason")
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal.strip():
        raise ReplyError(FailureKind.REFUSED, f"the model refused: {quote_text(refusal)}")
    if finish == "content_filter":
        raise ReplyError(FailureKind.REFUSED, "a content filter stopped the reply")
    usage = _read_counts(raw)
    if finish == "length":
        used = f" after {usage.completion} tokens" if usage.completion else ""
        thought = f", {usage.reasoning} of them reasoning" if usage.reasoning else ""
        raise ReplyError(FailureKind.TRUNCATED, f"the reply was cut off{used}{thought}")
    content = message.get("content")
    if isinstance(content, str) and content.strip():
        return Reply(content, usage, tuple(_read_tokens(choice)))
    if content is not None and not isinstance(content, str):
        raise ReplyError(FailureKind.INVALID, f"the content is {_name_type(content)}, not text")
    if message.get("tool_calls") or message.get("function_call"):
        raise ReplyError(FailureKind.INVALID, "the model called a tool, though it was given none")
    failed = choice.get("error")
    note = f"; it says: {quote_text(_read_message(failed))}" if failed else ""
    raise ReplyError(
        FailureKind.EMPTY, f"the reply has no content (finish_reason {finish!r}){note}"
    )


def read_usage(raw: Mapping[str, JsonValue], request: Request) -> Usage:
    """The tokens of a call; what the server does not count is estimated from the bytes.

    A reply that was replayed took none.
    """
    if isinstance(raw, Mapping) and raw.get("replayed") is True:
        return Usage()
    usage = _read_counts(raw)
    prompt = usage.prompt or _estimate_tokens(
        "".join(message.content for message in request.messages), json.dumps(request.schema)
    )
    completion = usage.completion or _estimate_tokens(*_find_texts(raw))
    return Usage(prompt, completion, usage.reasoning, usage.cached)


def has_usage(raw: Mapping[str, JsonValue]) -> bool:
    """Whether the server counts tokens."""
    usage = _read_counts(raw)
    return usage.prompt > 0 and usage.completion > 0


def unfence(text: str) -> str:
    """The text without blanks and a Markdown fence around all of it."""
    text = text.strip()
    match = _FENCE.match(text)
    return match[1].strip() if match else text


def parse_json(content: str, model: type[M]) -> M:
    """The reply as a value of the task's model, validated strictly.

    Raises:
        ReplyError: no JSON, not of the model, or with characters that no text holds.
    """
    text = unfence(content)
    try:
        value = load_json(text)
    except (ValueError, RecursionError) as e:
        raise ReplyError(FailureKind.INVALID, f"no JSON: {quote_text(str(e))}") from None
    if _holds_broken_text(value):
        raise ReplyError(FailureKind.INVALID, "the JSON holds a NUL or half of a surrogate pair")
    try:
        return model.model_validate_json(text, strict=True)
    except ValidationError as e:
        raise ReplyError(FailureKind.INVALID, _list_problems(e)) from None


def quote_text(text: str, longest: int = _LONGEST_QUOTE) -> str:
    """A server's words in one line that any file and terminal can hold."""
    sound = text.encode("utf-8", "replace").decode("utf-8")
    line = " ".join("".join(c if c.isprintable() else " " for c in sound).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _read_counts(raw: Mapping[str, JsonValue]) -> Usage:
    """The server's counts; zero where there is none that can be true."""
    usage = _read_part(raw, "usage")
    prompt = _read_count(usage, "prompt_tokens")
    completion = _read_count(usage, "completion_tokens")
    reasoning = _read_count(_read_part(usage, "completion_tokens_details"), "reasoning_tokens")
    cached = _read_count(_read_part(usage, "prompt_tokens_details"), "cached_tokens")
    if prompt and completion:
        # Some servers leave the reasoning out of the completion; the total has it, and the bill.
        completion = max(completion, _read_count(usage, "total_tokens") - prompt)
    return Usage(prompt, completion, min(reasoning, completion), min(cached, prompt))


def _read_tokens(choice: Mapping[str, JsonValue]) -> Iterator[Token]:
    """The tokens with log-probabilities, as far as they are some; the rest is left out."""
    listed = _read_part(choice, "logprobs").get("content")
    for row in listed if _is_list(listed) else ():
        if not isinstance(row, Mapping):
            continue
        text, value = row.get("token"), row.get("logprob")
        if not isinstance(text, str) or isinstance(value, bool):
            continue
        if isinstance(value, int | float) and -math.inf < value <= 0.0:
            # A token may be a part of a character, which only its bytes tell.
            spelt = _join_bytes(row.get("bytes")) or text.encode("utf-8", "replace")
            yield Token(spelt, float(value))


def _join_bytes(values: JsonValue) -> bytes:
    try:
        return bytes(values) if _is_list(values) else b""  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return b""


def _read_part(value: Mapping[str, JsonValue], name: str) -> Mapping[str, JsonValue]:
    part = value.get(name) if isinstance(value, Mapping) else None
    return part if isinstance(part, Mapping) else {}


def _read_count(usage: Mapping[str, JsonValue], name: str) -> int:
    count = usage.get(name)
    if isinstance(count, float) and count.is_integer():
        count = int(count)
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= _MOST_TOKENS:
        return 0
    return count


def _find_texts(raw: Mapping[str, JsonValue]) -> list[str]:
    """All that the model wrote, as far as the reply shows it."""
    choices = raw.get("choices") if isinstance(raw, Mapping) else None
    texts = []
    for choice in choices if _is_list(choices) else ():
        message = _read_part(choice, "message") if isinstance(choice, Mapping) else {}
        for name in ("content", "refusal", "reasoning_content", "reasoning"):
            text = message.get(name)
            if isinstance(text, str):
                texts.append(text)
    return texts


def _estimate_tokens(*texts: str) -> int:
    return -(-sum(len(text.encode("utf-8", "replace")) for text in texts) // _BYTES_PER_TOKEN)


def _holds_broken_text(value: JsonValue) -> bool:
    left = [value]
    while left:  # no recursion: a reply may be nested deeper than Python goes
        value = left.pop()
        if isinstance(value, str):
            if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
                return True
        elif isinstance(value, Mapping):
            left += [*value, *value.values()]
        elif _is_list(value):
            left += value
    return False


def _list_problems(error: ValidationError) -> str:
    """Where the reply breaks its schema; what it says there stays in the raw reply."""
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    shown = [
        f"{'.'.join(map(str, problem['loc'])) or 'reply'}: {problem['msg']}"
        for problem in problems[:_SHOWN_PROBLEMS]
    ]
    more = len(problems) - len(shown)
    return quote_text("; ".join(shown) + (f"; and {more} more" if more else ""))


def _read_message(error: JsonValue) -> str:
    message = error.get("message") if isinstance(error, Mapping) else None
    return message if isinstance(message, str) else str(error)


def _name_type(value: object) -> str:
    names = {str: "text", type(None): "null", bool: "a truth value", int: "a number"}
    return names.get(type(value), "a list" if _is_list(value) else "an object")


def _is_list(value: object) -> TypeGuard[Sequence[JsonValue]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def load_json(data: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is none, or holds NaN or an infinity, which Python alone takes for JSON.
        RecursionError: it is nested too deeply.
    """
    return json.loads(data, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
