"""The files of a batch: its requests as lines, and what became of each, read from its results."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NoReturn

from kpyramid.keys import JsonValue
from kpyramid.llm.batches import Asked, Limits
from kpyramid.llm.cache import dump_json

ENDPOINT: Final = "/v1/chat/completions"
_TAKEN = 200
_LONGEST_DETAIL = 300


class Outcome(StrEnum):
    """What became of one request of a batch; each has exactly one."""

    SUCCESS = "success"
    ERROR = "error"
    """The endpoint refused or failed this request, or the batch as a whole."""
    INVALID = "invalid"
    """A line that is no reply."""
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    MISSING = "missing"
    """A batch that ended, and no line."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a line says of a request; `status` is 0 without an answer over HTTP."""

    outcome: Outcome
    status: int = 0
    body: Mapping[str, JsonValue] | None = None
    detail: str = ""


@dataclass(slots=True)
class Results:
    """All that a batch gave: one result per request, and the lines that fit none."""

    by_key: dict[str, Result]
    strays: Counter[str] = field(default_factory=Counter)
    """Lines that are `duplicate`, `foreign` (of no request of ours) or `malformed`."""

    def count(self) -> dict[str, int]:
        """Requests per outcome, which add up, and the strays."""
        outcomes = Counter(result.outcome.value for result in self.by_key.values())
        counts = {outcome.value: outcomes[outcome.value] for outcome in Outcome}
        return {**counts, **{name: self.strays[name] for name in _STRAYS}}


_STRAYS = ("duplicate", "foreign", "malformed")


def write_line(one: Asked) -> bytes:
    """A request's line in the input file; the same request gives the same bytes."""
    line: dict[str, JsonValue] = {
        "custom_id": one.key,
        "method": "POST",
        "url": ENDPOINT,
        "body": one.body,
    }
    return dump_json(line) + b"\n"


def split_asked(asked: Iterable[Asked], limits: Limits) -> Iterator[list[Asked]]:
    """The requests in parts that are small enough for a batch each."""
    part: list[Asked] = []
    size = 0
    for one in asked:
        length = len(write_line(one))
        if part and (len(part) >= limits.requests or size + length > limits.bytes):
            yield part
            part, size = [], 0
        part.append(one)
        size += length
    if part:
        yield part


def halve_asked(asked: Sequence[Asked]) -> list[list[Asked]]:
    """The requests in two parts, or in one when there is only one."""
    middle = (len(asked) + 1) // 2
    return [list(part) for part in (asked[:middle], asked[middle:]) if part]


def read_results(keys: Iterable[str], files: Iterable[bytes], status: str) -> Results:
    """What became of each request, from the output and the error file of an ended batch.

    A reply counts more than an error on the same request, and the first reply more than later ones.
    """
    found: dict[str, Result] = {}
    wanted = set(keys)
    results = Results({})
    for line in (line for data in files for line in data.splitlines() if line.strip()):
        try:
            row = json.loads(line, parse_constant=_refuse_constant)
            key = row["custom_id"]
            if not isinstance(key, str):
                raise TypeError("custom_id is no text")
        except (ValueError, KeyError, TypeError, RecursionError):
            results.strays["malformed"] += 1
            continue
        if key not in wanted:
            results.strays["foreign"] += 1
            continue
        result = _read_row(row)
        if key in found:
            results.strays["duplicate"] += 1
            if found[key].outcome is Outcome.SUCCESS or result.outcome is not Outcome.SUCCESS:
                continue
        found[key] = result
    absent = _name_absence(status)
    results.by_key = {key: found.get(key, absent) for key in sorted(wanted)}
    return results


def _read_row(row: Mapping[str, JsonValue]) -> Result:
    """What one line says."""
    error, response = row.get("error"), row.get("response")
    if isinstance(response, Mapping):
        status, body = response.get("status_code"), response.get("body")
        held = body if isinstance(body, Mapping) else None
        if not isinstance(status, int):
            return Result(Outcome.INVALID, 0, held, "the line has no status")
        if status != _TAKEN:
            return Result(Outcome.ERROR, status, held, _say(held and held.get("error")))
        if held is None or not isinstance(held.get("choices"), list):
            return Result(Outcome.INVALID, status, held, "the line's body is no completion")
        return Result(Outcome.SUCCESS, status, held)
    if isinstance(error, Mapping):
        code = error.get("code")
        outcome = {"batch_expired": Outcome.EXPIRED, "batch_cancelled": Outcome.CANCELLED}
        return Result(outcome.get(str(code), Outcome.ERROR), 0, None, _say(error))
    return Result(Outcome.INVALID, 0, None, "the line has neither response nor error")


def _name_absence(status: str) -> Result:
    """What it means that a request has no line, by how the batch ended."""
    outcome = {
        "expired": Outcome.EXPIRED,
        "cancelled": Outcome.CANCELLED,
        "failed": Outcome.ERROR,
    }.get(status, Outcome.MISSING)
    return Result(outcome, detail=f"the batch is {status} and has no line for it")


def _say(error: object) -> str:
    said = error.get("message") if isinstance(error, Mapping) else error
    return " ".join(str(said or "no reason given").split())[:_LONGEST_DETAIL]


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
