"""What is asked of a language model, and what comes back."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar, runtime_checkable

from kpyramid.keys import JsonValue, hash_value

if TYPE_CHECKING:
    from kpyramid.settings import LLMSettings


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation; what all requests of a task share stands in the first."""

    role: Literal["system", "user"]
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """One structured completion.

    `task`, `version`: the prompt and its parser. `schema`: a strict JSON schema of the reply.
    `logprobs` asks for the log-probabilities of the reply's tokens; an endpoint may have none.
    The rest is no part of the key: `stage`; `document`, the id of the one it is for, if it is for
    one; `subject`, the text it is about, which a recording is looked up by and estimates are scaled
    by; `once`: a reply that is cut off is not asked for again with twice the room.
    """

    task: str
    version: int
    messages: tuple[Message, ...]
    schema: Mapping[str, JsonValue] = field(hash=False)
    max_tokens: int
    stage: str = ""
    document: str | None = None
    subject: str = ""
    logprobs: bool = False
    once: bool = False

    @property
    def prompt_characters(self) -> int:
        """The length of all that is sent as text; the schema is not counted."""
        return sum(len(message.content) for message in self.messages)

    def make_single(self) -> "Request":
        """The same as one call: asked once, with the room that a cut-off reply is given."""
        return replace(self, once=True, max_tokens=2 * self.max_tokens)


def key_request(request: Request, model: Mapping[str, JsonValue]) -> str:
    """The sha256 of everything that shapes the reply: what is sent, and the task's version."""
    # What most requests do not ask for is in no key, so that older replies are found.
    wanted: dict[str, JsonValue] = {"logprobs": True} if request.logprobs else {}
    return hash_value(
        {
            "endpoint": "chat",
            "model": model,
            "task": request.task,
            "version": request.version,
            "messages": [[message.role, message.content] for message in request.messages],
            "schema": request.schema,
            "max_tokens": request.max_tokens,
            **wanted,
        }
    )


def describe_model(settings: "LLMSettings") -> dict[str, JsonValue]:
    """The model and its parameters; not where it is served, so that moving it costs nothing."""
    return {
        "name": settings.model,
        "temperature": settings.temperature,
        "seed": settings.seed,
    }


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call; `completion` includes `reasoning`, `prompt` includes `cached`."""

    prompt: int = 0
    completion: int = 0
    reasoning: int = 0
    cached: int = 0

    @property
    def total(self) -> int:
        """Prompt and completion together."""
        return self.prompt + self.completion


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a reply in UTF-8, which it may hold a part of, and its log-probability."""

    text: bytes
    logprob: float


@dataclass(frozen=True, slots=True)
class Reply:
    """The text of a finished completion; its tokens where the endpoint gave log-probabilities."""

    content: str
    usage: Usage
    tokens: tuple[Token, ...] = ()


class FailureKind(StrEnum):
    """Why there is no usable reply; the values are the reasons in rejects, after `llm_`."""

    REFUSED = "refused"
    """The model or a content filter refused: asked again only by `kpyramid rejects --retry`."""
    TRUNCATED = "truncated"
    """Cut off at the token limit, also at the doubled one."""
    INVALID = "invalid"
    """No JSON, or not of the schema, or not what the task allows."""
    EMPTY = "empty"
    """No choice or no content."""
    UNACCEPTED = "unaccepted"
    """The endpoint refused this request alone, such as one that is too long."""
    UNREACHED = "unreached"
    """The endpoint failed at every try: the next run asks again."""
    DEFERRED = "deferred"
    """The endpoint asked to wait longer than llm.max_wait: the next run asks again."""
    PENDING = "pending"
    """Not asked: it was only noted what would be."""
    UNRECORDED = "unrecorded"
    """Not in the recording that is replayed."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A request without a usable reply; `attempts` counts the runs that got a bad reply."""

    key: str
    kind: FailureKind
    detail: str
    attempts: int = 1


class ReplyError(Exception):
    """A reply that cannot be used: raised by what reads replies and by the parsers of tasks."""

    def __init__(self, kind: FailureKind, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail


class TransientError(Exception):
    """One call failed in a way that may pass; `retry_after` is what the server asked for.

    `sent`: the server may have done, and billed, the work.
    """

    def __init__(self, detail: str, *, retry_after: float | None = None, sent: bool = True) -> None:
        super().__init__(detail)
        self.retry_after = retry_after
        self.sent = sent


class Transport(Protocol):
    """One way to get a raw reply: over HTTP, from a recording."""

    def send(self, request: Request) -> Mapping[str, JsonValue]:
        """The chat completion as the server sent it; one call, no retry.

        Raises:
            TransientError: it may work later.
            ReplyError: this request cannot be answered, others can.
            EndpointError: no request can be answered.
        """
        ...


T = TypeVar("T")
Parse = Callable[[str], T]
Read = Callable[[Reply], T]


class Asker(Protocol):
    """What the tasks of stages are given."""

    def ask(self, request: Request, parse: Parse[T]) -> T | Failure:
        """What `parse` makes of the reply's text, or why there is nothing; never None.

        `parse` raises `ReplyError` for a reply that breaks its rules.

        Raises:
            BudgetError: the call might pass the budget.
            EndpointError: the endpoint answers nobody.
        """
        ...


class ThreadCounts(threading.local):
    """Requests of one thread that got a reply or were to get one, and the tokens of replies."""

    calls: int = 0
    tokens: int = 0


@runtime_checkable
class CountingAsker(Protocol):
    """An asker that reads whole replies and keeps count of what each thread took."""

    @property
    def spent(self) -> ThreadCounts:
        """What this thread took that was not stored before."""
        ...

    def ask_reply(self, request: Request, read: Read[T]) -> T | Failure:
        """As `Asker.ask`, for what looks at more of a reply than its text."""
        ...
