"""A bounded number of calls: RoK promises at most four a question, HyKGE two, WTS two a depth.

Each is asked once: a reply that is cut off is not asked for again, so that a run whose replies are
stored counts the same calls, and gives the same answer, as the one that paid for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from kpyramid.llm.types import (
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
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.backends import Chosen
from kpyramid.query.decisions import Decisions
from kpyramid.query.model.prompting import ask_once
from kpyramid.query.model.reading import Prompt, read_by_model
from kpyramid.query.types import RULES, Backends, Item, Reading

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
        asked = ask_once(request)
        if isinstance(self._asker, CountingAsker):
            return self._asker.ask_reply(asked, read)
        self.spent.calls += 1
        return self._asker.ask(asked, lambda content: read(Reply(content, Usage())))


class DepthAskers:
    """WTS (Algorithm 1): one call for the entities, then two a depth: scores, and an answer.

    Who is None where rules decide.
    """

    def __init__(self, backends: Backends) -> None:
        self.calls = Calls(1)
        self.logprobs = backends.logprobs
        self.entities: LimitedAsker | None = None
        self.scores: LimitedAsker | None = None
        self.reader: LimitedAsker | None = None
        if backends.walk == "llm":
            self.entities = LimitedAsker(backends.open_asker(), self.calls)
            self.scores = LimitedAsker(backends.open_asker(), self.calls)
        if backends.reader == "llm":
            self.reader = LimitedAsker(backends.open_asker(), self.calls)

    def deepen(self) -> None:
        """Goes one depth further."""
        self.calls.most += 2


class WalkDecisions(Chosen):
    """Decisions of a walk: all calls of a question counted, the answer asked for in its words."""

    def __init__(self, backends: Backends, most: int, prompt: Prompt) -> None:
        asker = LimitedAsker(backends.open_asker(), Calls(most))
        super().__init__(replace(backends, asker=asker))
        self._prompt = prompt

    def _read(self, asked: QuestionAnalysis, items: Sequence[Item] = ()) -> Reading:
        return read_by_model(
            asked.question,
            items,
            self._backends.open_asker(),
            logprobs=self._backends.logprobs,
            prompt=self._prompt if items else None,
        )


def limit_calls(decisions: Decisions, most: int, prompt: Prompt) -> Decisions:
    """The same decisions with at most `most` calls, reading by a strategy's own prompt."""
    if not isinstance(decisions, Chosen) or not decisions._backends.asks_model:
        return decisions
    return WalkDecisions(decisions._backends, most, prompt)


def limit_depths(decisions: Decisions) -> DepthAskers:
    """Who is asked by WTS; nobody where the decisions are no backends'."""
    return DepthAskers(decisions._backends if isinstance(decisions, Chosen) else RULES)
