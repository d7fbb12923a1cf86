"""A bounded number of calls: RoK promises at most four a question, HyKGE two, WTS two a depth.

Each is asked once: a reply that is cut off is not asked for again, so that a run whose replies are
stored counts the same calls, and gives the same answer, as the one that paid for them.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

from kpyramid.llm.task import (
    Asker,
    CountingAsker,
    Failure,
    FailureKind,
    Parse,
    Read,
    Reply,
    Request,
    ThreadCounts,
    Usage,
)
from kpyramid.query.decisions import Decisions

T = TypeVar("T")


@dataclass(slots=True)
class Calls:
    """How many calls a question may take, and took; what was stored before counts as well."""

    most: int
    taken: int = 0


class LimitedAsker:
    """An asker that makes at most as many calls as are left, each once; then nobody is asked.

    Only a reading whose context was too long for the model is asked for twice.
    """

    def __init__(self, asker: Asker, calls: Calls) -> None:
        self._asker, self._calls = asker, calls
        self.spent = asker.spent if isinstance(asker, CountingAsker) else ThreadCounts()

    def ask(self, request: Request, parse: Parse[T]) -> T | Failure:
        """See `Asker.ask`."""
        return self.ask_reply(request, lambda reply: parse(reply.content))

    def ask_reply(self, request: Request, read: Read[T]) -> T | Failure:
        """See `CountingAsker.ask_reply`."""
        calls = self._calls
        if calls.taken == calls.most:
            detail = f"a question takes at most {calls.most} calls, and none is left for this"
            return Failure("", FailureKind.PENDING, detail)
        calls.taken += 1
        if isinstance(self._asker, CountingAsker):
            return self._asker.ask_reply(request.make_single(), read)
        return self._asker.ask(request.make_single(), lambda content: read(Reply(content, Usage())))


class DepthAskers:
    """WTS (Algorithm 1): one call for the entities, then two a depth: scores, and an answer.

    Who is None where rules decide.
    """

    def __init__(self, decisions: Decisions) -> None:
        backends = decisions.backends
        self.calls = Calls(1)
        self.logprobs = backends.logprobs
        asker = LimitedAsker(backends.open_asker(), self.calls) if backends.asks_model else None
        self.walker = asker if backends.walk == "llm" else None
        self.reader = asker if backends.reader == "llm" else None

    def deepen(self) -> None:
        """Goes one depth further."""
        self.calls.most += 2


def limit_calls(decisions: Decisions, most: int, strategy: str, domain: str) -> Decisions:
    """The same decisions with at most `most` calls, reading by the strategy's own prompt."""
    if not decisions.backends.asks_model:
        return decisions
    from kpyramid.query.model.walks import prompt_answer

    asker = LimitedAsker(decisions.backends.open_asker(), Calls(most))
    return Decisions(replace(decisions.backends, asker=asker), prompt_answer(strategy, domain))
