"""Who takes a question's decisions: rules, or a model; both are loaded when first asked."""

from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING

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
from kpyramid.query.types import Answer, Backends, Item, Reading
from kpyramid.snapshot.evidence import Evidence

if TYPE_CHECKING:
    from kpyramid.query.model.reading import Prompt


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

    def add_disagreeing(self, asked: QuestionAnalysis, answer: Answer) -> Answer:
        """See `Decisions`."""
        is_rules = self.backends.reader == "rules"
        return self._rules.add_disagreeing(asked, answer) if is_rules else answer

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
