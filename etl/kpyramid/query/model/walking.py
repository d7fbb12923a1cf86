"""What the prompts of walks over the graph share: a bounded number of calls, and their replies.

RoK promises at most four calls a question and HyKGE two. A reply that is cut off and asked for
again with more room is a call as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from kpyramid.llm.responses import parse_json
from kpyramid.llm.task import Strict
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
from kpyramid.query.model.prompting import flatten
from kpyramid.query.model.reading import Prompt, read_by_model
from kpyramid.query.types import Backends, Item, Question, Reading

T = TypeVar("T")


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


# The calls that a question may take.


@dataclass(slots=True)
class Calls:
    """How many calls a question may take, and took; what was stored before counts as well."""

    most: int
    taken: int = 0


class LimitedAsker:
    """An asker that makes at most as many calls as are left, `kept` of them for who comes later.

    The last call is not made again when its reply is cut off. Beyond them nobody is asked.
    """

    def __init__(self, asker: Asker, calls: Calls, kept: int = 0) -> None:
        self._asker, self._calls, self._kept = asker, calls, kept
        self.spent = asker.spent if isinstance(asker, CountingAsker) else ThreadCounts()

    def ask(self, request: Request, parse: Parse[T]) -> T | Failure:
        """See `Asker.ask`."""
        return self.ask_reply(request, lambda reply: parse(reply.content))

    def ask_reply(self, request: Request, read: Read[T]) -> T | Failure:
        """See `CountingAsker.ask_reply`."""
        calls = self._calls
        left = calls.most - calls.taken - self._kept
        if left < 1:
            detail = f"a question takes at most {calls.most} calls, and none is left for this"
            return Failure("", FailureKind.PENDING, detail)
        asked = replace(request, once=left < 2)
        calls.taken += 1
        before = self.spent.calls
        if not isinstance(self._asker, CountingAsker):
            self.spent.calls += 1
            return self._asker.ask(asked, lambda content: read(Reply(content, Usage())))
        try:
            return self._asker.ask_reply(asked, read)
        finally:  # a cut-off reply was asked for twice
            calls.taken += max(self.spent.calls - before - 1, 0)
            assert calls.taken <= calls.most


class WalkDecisions(Chosen):
    """Decisions of a walk: all calls of a question counted, the answer asked for in its words."""

    def __init__(self, backends: Backends, most: int, prompt: Prompt) -> None:
        asker = backends.open_asker()
        calls = Calls(most)
        super().__init__(replace(backends, asker=LimitedAsker(asker, calls)))
        self._prompt = prompt
        if self.walker:
            self.walker = LimitedAsker(asker, calls, kept=int(backends.reader == "llm"))

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
