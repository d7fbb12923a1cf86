"""The lines of a ledger: one JSON object per event of a call.

No text that was sent or received stands in one, and no secret.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, cast

from kpyramid.keys import JsonValue, canonical_json
from kpyramid.llm.prices import Spent, bound_cost, cost_of, count_picodollars
from kpyramid.llm.types import Request, Usage
from kpyramid.model_settings import ModelPrice

LEDGER = "ledger.jsonl"
"""The file's name in a run's folder."""

_FRAME_TOKENS, _MESSAGE_TOKENS = 64, 16
"""What servers add around a prompt and each message; chat templates stay well below."""

Line = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Call:
    """What the books say of a call besides its usage; bounds are the most tokens it can take."""

    key: str
    task: str
    model: str
    prompt_bound: int
    completion_bound: int = 0
    stage: str = ""
    document: str | None = None
    prompt_characters: int = 0
    subject_characters: int = 0
    kind: Literal["chat", "embeddings"] = "chat"
    batch: bool = False


_FACTS = tuple(field.name for field in fields(Call))


@dataclass(frozen=True, slots=True)
class Ticket:
    """A reservation: settled once, or it counts at its highest for ever."""

    name: str
    call: Call


def bound_prompt(texts: Sequence[str], schema: JsonValue = None) -> int:
    """No text has more tokens than bytes in any byte-level vocabulary; the schema is sent too."""
    count = sum(len(text.encode("utf-8", "surrogatepass")) + _MESSAGE_TOKENS for text in texts)
    return count + _FRAME_TOKENS + (len(canonical_json(schema)) if schema is not None else 0)


def describe_call(request: Request, key: str, model: str, *, batch: bool = False) -> Call:
    """What the books say of a request."""
    return Call(
        key=key,
        task=request.task,
        model=model,
        prompt_bound=bound_prompt([m.content for m in request.messages], request.schema),
        completion_bound=request.max_tokens,
        stage=request.stage,
        document=request.document,
        prompt_characters=request.prompt_characters,
        subject_characters=len(request.subject),
        batch=batch,
    )


def describe_embedding(texts: Sequence[str], key: str, model: str, stage: str = "embed") -> Call:
    """What the books say of texts that are embedded in one call."""
    characters = sum(map(len, texts))
    return Call(
        key=key,
        task="embed",
        model=model,
        prompt_bound=bound_prompt(texts),
        stage=stage,
        prompt_characters=characters,
        subject_characters=characters,
        kind="embeddings",
    )


def batch_ticket(batch: str, call: Call) -> Ticket:
    """The one reservation of a call in a batch, the same for every process that collects it."""
    return Ticket(f"{batch}/{call.key}", call)


def write_reserved(ticket: Ticket, most: Spent) -> Line:
    """The line that sets the most a call can cost aside."""
    cost = most.dollars if most.picodollars else None
    return {"event": "reserved", **_describe(ticket), "tokens": most.tokens, "cost": cost}


def write_settled(
    ticket: Ticket, usage: Usage | None, outcome: str, billed: bool, price: ModelPrice | None
) -> Line:
    """The line of a finished call; a billed one without usage counts at its highest."""
    call = ticket.call
    assumed = billed and usage is None
    used = usage or Usage()
    if not billed:
        used = Usage()
    elif usage is None:
        used = Usage(call.prompt_bound, call.completion_bound)
    cost = None
    if price is not None and assumed:
        cost = bound_cost(used.prompt, used.completion, price, batch=call.batch)
    elif price is not None:
        cost = cost_of(used, price, batch=call.batch)
    return {
        "event": "settled",
        **_describe(ticket),
        "outcome": outcome,
        "billed": billed,
        "assumed": assumed,
        "prompt": used.prompt,
        "completion": used.completion,
        "reasoning": used.reasoning,
        "cached": used.cached,
        "tokens": used.prompt + used.completion,
        "cost": cost,
    }


def _describe(ticket: Ticket) -> dict[str, JsonValue]:
    return {"name": ticket.name, **{field: getattr(ticket.call, field) for field in _FACTS}}


def read_spent(line: Line) -> Spent:
    """What a line counts for."""
    cost = cast("float | None", line["cost"])
    return Spent(cast("int", line["tokens"]), count_picodollars(cost or 0.0))


def parse_lines(data: bytes) -> tuple[list[Line], int]:
    """The lines, and how many are none because a crash cut them."""
    lines: list[Line] = []
    torn = 0
    for text in data.splitlines():
        try:
            line = json.loads(text)
            read_spent(line)
            if line["event"] not in ("reserved", "settled") or not isinstance(line["name"], str):
                raise ValueError("no event of a call")
            lines.append(line)
        except (ValueError, KeyError, TypeError, OverflowError):
            torn += bool(text)
    return lines, torn


def read_lines(path: Path) -> tuple[list[Line], int]:
    """The lines of a ledger, empty when there is none, and how many a crash cut."""
    try:
        return parse_lines(path.read_bytes())
    except FileNotFoundError:
        return [], 0
