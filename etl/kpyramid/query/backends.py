"""Who takes a question's decisions: rules, or a model; both are loaded when first asked."""

from collections.abc import Sequence
from functools import cached_property
from importlib import import_module

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


class Chosen:
    """Each decision by rules or by the model, as `backends` says: here the two are told apart."""

    def __init__(self, backends: Backends) -> None:
        self._backends = backends
        self.walker = backends.asker if backends.walk == "llm" else None

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
        if self._backends.sparql == "rules":
            return self._rules.query_ontology(asked)
        from kpyramid.query.model.sparql import ask_by_model

        return ask_by_model(asked.text, asked.snapshot, self._backends.open_asker())

    def judge_facts(
        self, asked: QuestionAnalysis, facts: Sequence[NearFact], sufficient: float = SUFFICIENT
    ) -> Judgement:
        """See `Decisions`. The model says yes or no; it rates no fact and gives no values."""
        if self._backends.sufficiency == "rules":
            return self._rules.judge_facts(asked, facts, sufficient)
        from kpyramid.query.model.sufficiency import judge_by_model

        if not facts:
            return Judgement(False, 0.0, "there is no fact to judge", ())
        statements = tell_facts(facts, asked.snapshot)
        verdict = judge_by_model(asked.question, statements, self._backends.open_asker())
        return Judgement(
            verdict.enough,
            rate_best(asked, facts),
            f"the model says {'yes' if verdict.enough else 'no'}: {verdict.reason}",
            tuple(facts[at] for at in verdict.supporting),
            calls=verdict.calls,
            tokens=verdict.tokens,
        )

    def read(
        self, asked: QuestionAnalysis, items: Sequence[Item], found: Reading | None = None
    ) -> Reading:
        """See `Decisions`."""
        if self._backends.reader == "rules":
            return self._rules.read(asked, items, found)
        return self._read(asked, items) if items else Reading("", (), 0.0, ())

    def recall(self, asked: QuestionAnalysis) -> Reading:
        """See `Decisions`."""
        return self._rules.recall(asked) if self._backends.reader == "rules" else self._read(asked)

    def _read(self, asked: QuestionAnalysis, items: Sequence[Item] = ()) -> Reading:
        from kpyramid.query.model.reading import read_by_model

        asker = self._backends.open_asker()
        return read_by_model(asked.question, items, asker, logprobs=self._backends.logprobs)

    def verify(
        self,
        asked: QuestionAnalysis,
        values: Sequence[str],
        places: Sequence[Evidence],
        context: Sequence[Item],
    ) -> Verification:
        """See `Decisions`; the model's reader checks its answer against its citations itself."""
        if self._backends.reader == "rules":
            return self._rules.verify(asked, values, places, context)
        return SUPPORTED
