"""Asking a model for one decision: what came of it, what it took, and when nobody answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from kpyramid.errors import EndpointError
from kpyramid.llm.responses import parse_json
from kpyramid.llm.task import Strict
from kpyramid.llm.types import (
    Asker,
    CountingAsker,
    Failure,
    FailureKind,
    Reply,
    Request,
    Usage,
)
from kpyramid.query.types import Question

if TYPE_CHECKING:
    from kpyramid.settings import Settings

T = TypeVar("T")

_NOBODY = frozenset({FailureKind.UNREACHED, FailureKind.DEFERRED})
"""Failures that say nothing of the question: it goes well when the endpoint does."""

MAX_TOKENS = 1500
"""Tokens of a reply, doubled once when it is cut off. A decision takes 50 to 150; the rest is for
models that reason first, and room that is not used costs nothing."""
_SHORTEST = 400
"""Characters from which a part of a text is shown."""


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """What a request gave, and the calls and tokens that were not stored before."""

    value: T | Failure
    calls: int
    tokens: int


def ask_model(asker: Asker, request: Request, read: Callable[[Reply], T]) -> Asked[T]:
    """What `read` makes of the reply; it raises `ReplyError` for one that breaks its rules.

    Calls and tokens are 0 for an asker that keeps no counts.

    Raises:
        BudgetError: the call might pass the budget.
        EndpointError: the endpoint answers nobody, or did not within the time that one waits.
    """
    if not isinstance(asker, CountingAsker):
        value = asker.ask(request, lambda content: read(Reply(content, Usage())))
        return Asked(_require(value), 0, 0)
    before = asker.spent.calls, asker.spent.tokens
    value = asker.ask_reply(request, read)
    spent = asker.spent
    return Asked(_require(value), spent.calls - before[0], spent.tokens - before[1])


def ask_once(request: Request) -> Request:
    """A request that counts as one call: once, with the room that a cut-off reply is given."""
    return replace(request, once=True, max_tokens=2 * request.max_tokens)


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


def flatten(text: str) -> str:
    """The text in one line with single spaces."""
    return " ".join(text.split())


def pick_numbers(numbers: Sequence[int], count: int) -> tuple[int, ...]:
    """The places from 0 that numbers from 1 to `count` name, each once; others are left out."""
    return tuple(dict.fromkeys(n - 1 for n in numbers if 1 <= n <= count))


def _require(value: T | Failure) -> T | Failure:
    if isinstance(value, Failure) and value.kind in _NOBODY:
        raise EndpointError(
            f"the model did not answer: {value.detail}. Ask again when its endpoint is well (see "
            "llm.base_url), or ask without it: 'rules' for sparql, sufficiency and reader"
        )
    return value


# What the prompts of walks over the graph share: replies, how a question is shown, who decides.


class Tentative(Strict):
    """The reply of a chain of thought: the answer that is supposed, step by step."""

    answer: str


class Entities(Strict):
    """The reply that lists the entities of a text."""

    entities: tuple[str, ...]


class Numbers(Strict):
    """The reply that chooses some of numbered facts."""

    facts: tuple[int, ...]


def parse_tentative(reply: Reply) -> str:
    """The supposed answer.

    Raises:
        ReplyError: it is no JSON of the schema.
    """
    return parse_json(reply.content, Tentative).answer.strip()


def parse_entities(reply: Reply) -> tuple[str, ...]:
    """The names, each once.

    Raises:
        ReplyError: it is no JSON of the schema.
    """
    names = parse_json(reply.content, Entities).entities
    return tuple(dict.fromkeys(flat for name in names if (flat := flatten(name))))


def parse_numbers(reply: Reply) -> tuple[int, ...]:
    """The numbers, whether or not there are facts of them.

    Raises:
        ReplyError: it is no JSON of the schema.
    """
    return parse_json(reply.content, Numbers).facts


def show_question(question: Question) -> list[str]:
    """The question and its options, a line each."""
    options = [f"- {flatten(text)}" for text in question.candidates]
    return [f"Question: {flatten(question.text)}", *(["Options:", *options] if options else [])]


def name_expert(domain: str) -> str:
    """Who is addressed: the domain is a variable of the prompt."""
    return f"an excellent expert in {flatten(domain)}" if domain.strip() else "an excellent expert"


def find_domain(settings: "Settings") -> str:
    """The domain that [query] gives; empty for none."""
    return str(settings.query.options.get("domain", ""))


def decides(strategy: str, decision: str) -> "Callable[[Settings], bool]":
    """Whether [query] has a model take a decision, `walk` or `reader`, of a strategy."""

    def is_asked(settings: "Settings") -> bool:
        query = settings.query
        return query.strategy == strategy and getattr(query, decision) == "llm"

    return is_asked
