"""Asking a model for one decision, and how prompts show what it is about."""

import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from string import Template
from typing import Any, TypeVar

from kpyramid.errors import EndpointError
from kpyramid.llm.task import GUARD, Asker, Failure, FailureKind, Request, Task, parse_json
from kpyramid.query.types import Question

T = TypeVar("T")

PROMPTS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("prompts.toml").read_text("utf-8"))
"""What models are told, by the names of tasks."""

_NOBODY = frozenset({FailureKind.UNREACHED, FailureKind.DEFERRED})
"""Failures that say nothing of the question: it goes well when the endpoint does."""

MAX_TOKENS = 1500
"""Tokens of a reply, doubled once when it is cut off. A decision takes 50 to 150; the rest is for
models that reason first, and room that is not used costs nothing."""
_SHORTEST = 400
"""Characters from which a part of a text is shown."""


def write_prompt(name: str, **values: object) -> str:
    """The system message of a task, with what its text leaves open."""
    shared = {**PROMPTS, "guard": GUARD}
    shared["rules"] = Template(PROMPTS["rules"]).substitute(shared)
    return Template(PROMPTS[name]).substitute(shared, **values)


def ask_model(asker: Asker, request: Request, parse: Callable[[str], T]) -> T | Failure:
    """What `parse` makes of the reply; it raises `ReplyError` for one that breaks its rules.

    Raises:
        BudgetError: the call might pass the budget.
        EndpointError: the endpoint answers nobody, or did not within the time that one waits.
    """
    value = asker.ask(request, parse)
    if isinstance(value, Failure) and value.kind in _NOBODY:
        raise EndpointError(
            f"the model did not answer: {value.detail}. Ask again when its endpoint is well (see "
            "llm.base_url), or ask without it: 'rules' for sparql, sufficiency and reader"
        )
    return value


def ask_once(
    asker: Asker,
    task: Task,
    system: str,
    lines: Sequence[str],
    question: Question,
    read: Callable[[Any], T],
) -> T | Failure:
    """What `read` makes of the task's reply to one call; one that is cut off is not asked again.

    So a question takes the calls that its paper counts, whether paid for or stored before.
    """
    request = make_request(task, system, lines, question.text).make_single()
    return ask_model(asker, request, lambda reply: read(parse_json(reply, task.reply)))


def make_request(task: Task, system: str, lines: Sequence[str], question: str) -> Request:
    """A decision's request: the lines are its material, the question is its subject."""
    return task.request(system, "\n".join(lines), max_tokens=MAX_TOKENS, subject=question)


def show_numbered(texts: Sequence[str], most: int) -> list[str]:
    """The texts from `[1]` on, a line each, as far as `most` characters reach.

    A line cannot be forged from within: what a text breaks into lines becomes one. The text at
    which the room ends is cut, or left out when only a few words of it would fit.
    """
    lines: list[str] = []
    left = most
    for number, text in enumerate(texts, start=1):
        line = f"[{number}] {flatten(text)}"
        if len(line) > left:
            if not lines or left >= _SHORTEST:
                lines.append(f"{line[: max(left - 2, 0)]} …")
            break
        lines.append(line)
        left -= len(line) + 1
    return lines


def show_question(question: Question) -> list[str]:
    """The question and its options, a line each."""
    options = [f"- {flatten(text)}" for text in question.candidates]
    return [f"Question: {flatten(question.text)}", *(["Options:", *options] if options else [])]


def show_options(question: Question) -> list[str]:
    """The options of a question with their numbers, a line each; none without options."""
    options = [f"({n}) {flatten(text)}" for n, text in enumerate(question.candidates, start=1)]
    return ["Options:", *options] if options else []


def flatten(text: str) -> str:
    """The text in one line with single spaces."""
    return " ".join(text.split())


def pick_numbers(numbers: Sequence[int], count: int) -> tuple[int, ...]:
    """The places from 0 that numbers from 1 to `count` name, each once; others are left out."""
    return tuple(dict.fromkeys(n - 1 for n in numbers if 1 <= n <= count))
