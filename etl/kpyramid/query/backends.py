"""Who takes a question's decisions, rules or a model, and how many calls of it a walk may take.

Both are loaded when first asked. RoK promises at most four calls a question, HyKGE two, WTS two a
depth. Each is asked once: a reply that is cut off is not asked for again, so that a run whose
replies are stored gives the same answer as the one that paid for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

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
from kpyramid.query.decisions import (
    SUFFICIENT,
    SUPPORTED,
    Decisions,
    Found,
    Judgement,
    Verification,
)
from kpyramid.query.facts import NearFact, rate_best, tell_facts
from kpyramid.query.types import RULES, Answer, Backends, Item, Reading
from kpyramid.snapshot.evidence import Evidence

if TYPE_CHECKING:
    from kpyramid.query.model.reading import Prompt

T = TypeVar("T")


class Chosen:
    """Each decision by rules or by the model, as `backends` says: here the two are told apart.

    `prompt`: what a strategy has context read by, in words of its own.
    """

    def __init__(self, backends: Backends, prompt: "Prompt | None" = None) -> None:
        self.backends = backends
        self.walker = backends.asker if backends.walk == "llm" else None
        self._prompt = prompt

    @cached_property
    def _rules(self) -> Decisions:
        # `kpyramid.answering` imports this module: by name, so that no import runs both ways.
        rules: Decisions = import_module("kpyramid.answering.rules").Rules()
        return rules

    def ask_sets(self, asked: QuestionAnalysis, *, text: bool = True) -> Answer | None:
        """See `Decisions`."""
        return self._rules.ask_sets(asked, text=text)

    def query_ontology(self, asked: QuestionAnalysis) -> Found:
        """See `Decisions`."""
        if self.backends.sparql == "rules":
            return self._rules.query_ontology(asked)
        from kpyramid.query.model.polyrag import ask_by_model

        return ask_by_model(asked.text, asked.snapshot, self.backends.open_asker())

    def judge_facts(
        self, asked: QuestionAnalysis, facts: Sequence[NearFact], sufficient: float = SUFFICIENT
    ) -> Judgement:
        """See `Decisions`. The model says yes or no; it rates no fact and gives no values."""
        if self.backends.sufficiency == "rules":
            return self._rules.judge_facts(asked, facts, sufficient)
        from kpyramid.query.model.polyrag import judge_by_model

        if not facts:
            return Judgement(False, 0.0, "there is no fact to judge", ())
        statements = tell_facts(facts, asked.snapshot)
        places, why = judge_by_model(asked.question, statements, self.backends.open_asker())
        reason = f"the model says {'yes' if places else 'no'}: {why}"
        supporting = tuple(facts[at] for at in places)
        return Judgement(bool(places), rate_best(asked, facts), reason, supporting)

    def read(
        self, asked: QuestionAnalysis, items: Sequence[Item], found: Reading | None = None
    ) -> Reading:
        """See `Decisions`."""
        if self.backends.reader == "rules":
            return self._rules.read(asked, items, found)
        return self._read(asked, items) if items else Reading("", (), 0.0, ())

    def recall(self, asked: QuestionAnalysis) -> Reading:
        """See `Decisions`."""
        return self._rules.recall(asked) if self.backends.reader == "rules" else self._read(asked)

    def _read(self, asked: QuestionAnalysis, items: Sequence[Item] = ()) -> Reading:
        from kpyramid.query.model.reading import read_by_model

        asker, prompt = self.backends.open_asker(), self._prompt if items else None
        return read_by_model(asked.question, items, asker, self.backends.logprobs, prompt)

    def verify(
        self,
        asked: QuestionAnalysis,
        values: Sequence[str],
        places: Sequence[Evidence],
        context: Sequence[Item],
    ) -> Verification:
        """See `Decisions`; the model's reader checks its answer against its citations itself."""
        if self.backends.reader == "rules":
            return self._rules.verify(asked, values, places, context)
        return SUPPORTED


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
        backends = decisions.backends if isinstance(decisions, Chosen) else RULES
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
    if not isinstance(decisions, Chosen) or not decisions.backends.asks_model:
        return decisions
    from kpyramid.query.model.walks import prompt_answer

    asker = LimitedAsker(decisions.backends.open_asker(), Calls(most))
    return Chosen(replace(decisions.backends, asker=asker), prompt_answer(strategy, domain))
