"""Who takes a question's decisions: rules, or the model of `Backends`; both are loaded when asked.

`choose_decisions` is the one place where it is decided which.
"""

from collections.abc import Sequence
from dataclasses import dataclass
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
from kpyramid.query.facts import NearFact, rate_best
from kpyramid.query.types import Backend, Backends, Item, Reading
from kpyramid.snapshot.evidence import Evidence


@dataclass(frozen=True, slots=True)
class ByModel:
    """The decisions as a model takes them; its prompts are loaded when first asked."""

    backends: Backends

    def query_ontology(self, asked: QuestionAnalysis) -> Found:
        """See `Decisions`."""
        from kpyramid.query.model.sparql import ask_by_model

        return ask_by_model(asked.text, asked.snapshot, self.backends.open_asker())

    def judge_facts(
        self, asked: QuestionAnalysis, facts: Sequence[NearFact], sufficient: float = SUFFICIENT
    ) -> Judgement:
        """The model's yes or no. It rates no single fact and gives no values: these are read."""
        from kpyramid.query.model.sufficiency import judge_by_model

        if not facts:
            return Judgement(False, 0.0, "there is no fact to judge", ())
        statements = [fact.statement for fact in facts]
        verdict = judge_by_model(asked.question, statements, self.backends.open_asker())
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
        if not items:
            return Reading("", (), 0.0, ())
        return self._read(asked, items)

    def recall(self, asked: QuestionAnalysis) -> Reading:
        """What the model has learnt."""
        return self._read(asked, ())

    def _read(self, asked: QuestionAnalysis, items: Sequence[Item]) -> Reading:
        from kpyramid.query.model.reading import read_by_model

        return read_by_model(
            asked.question, items, self.backends.open_asker(), logprobs=self.backends.logprobs
        )

    def verify(
        self,
        asked: QuestionAnalysis,
        values: Sequence[str],
        places: Sequence[Evidence],
        context: Sequence[Item],
    ) -> Verification:
        """Nothing: the model's reader checks its answer against what it cites itself."""
        return SUPPORTED


class Chosen:
    """Each decision by the backend that `backends` names for it; rules are loaded when needed."""

    def __init__(self, backends: Backends) -> None:
        self._backends = backends

    @cached_property
    def _rules(self) -> Decisions:
        # `kpyramid.answering` imports this module: by name, so that no import runs both ways.
        rules: Decisions = import_module("kpyramid.answering.rules").Rules()
        return rules

    def _take(self, backend: Backend) -> Decisions:
        return self._rules if backend == "rules" else ByModel(self._backends)

    def query_ontology(self, asked: QuestionAnalysis) -> Found:
        """See `Decisions`."""
        return self._take(self._backends.sparql).query_ontology(asked)

    def judge_facts(
        self, asked: QuestionAnalysis, facts: Sequence[NearFact], sufficient: float = SUFFICIENT
    ) -> Judgement:
        """See `Decisions`."""
        return self._take(self._backends.sufficiency).judge_facts(asked, facts, sufficient)

    def read(
        self, asked: QuestionAnalysis, items: Sequence[Item], found: Reading | None = None
    ) -> Reading:
        """See `Decisions`."""
        return self._take(self._backends.reader).read(asked, items, found)

    def recall(self, asked: QuestionAnalysis) -> Reading:
        """See `Decisions`."""
        return self._take(self._backends.reader).recall(asked)

    def verify(
        self,
        asked: QuestionAnalysis,
        values: Sequence[str],
        places: Sequence[Evidence],
        context: Sequence[Item],
    ) -> Verification:
        """See `Decisions`."""
        return self._take(self._backends.reader).verify(asked, values, places, context)


def choose_decisions(backends: Backends) -> Decisions:
    """Who takes each decision: the one place where rules and model are told apart."""
    return Chosen(backends)
