"""The port through which a question's decisions are taken: by rules or by a model.

`Decisions` is what strategies call. `kpyramid.answering` implements it by rules, `ByModel` by the
model of `Backends`; `choose_decisions` is the one place where it is decided which, and where the
rules are loaded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import Protocol

from kpyramid.ontology.names import ENTITY
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.facts import NearFact, rate_best
from kpyramid.query.pyramid.evidence import Evidence
from kpyramid.query.types import Answer, Backend, Backends, Item, Outcome, Reading, Step

Fact = tuple[str, str, str]
"""Subject, property, object: IRIs, the object also a literal's text."""

MOST_VALUES = 50
"""Values of an answer; a list that nobody reads to its end answers nothing in particular."""
SUFFICIENT = 0.65
"""Probability from which the graph answers: of what is answered from there on, about nine in ten
are right on questions that the weights were not fitted on; between .5 and .6 fewer than half are
(`benchmarks/RESULTS.md`). What is below goes down to the text, which sees these facts as well: a
question sent down needlessly costs milliseconds, one answered wrongly costs trust."""


@dataclass(frozen=True, slots=True)
class Found:
    """What came of a query: `values` as they are stored, the facts behind them, why in words."""

    outcome: Outcome
    reason: str
    values: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    calls: int = 0
    tokens: int = 0
    sparql: str = ""
    """The query that was run, or the nearest one that was not sure enough to run."""

    @property
    def step(self) -> Step:
        """The layer's part in the trace."""
        return Step("ontology", self.outcome, self.reason)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether facts are enough, how probably their answer is right, and which facts bear it.

    `values` are what they give, of a question with candidates the candidates, also when several of
    them are wanted, for which facts are never enough: there may be more below. `chances` says of
    each fact how probably it answers, where the rules judged.
    """

    enough: bool
    probability: float
    reason: str
    bearing: tuple[NearFact, ...]
    values: tuple[str, ...] = ()
    chances: Mapping[NearFact, float] = field(default_factory=dict)
    calls: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Verification:
    """The most that an answer's confidence can be, and why; no reason: its citations support it."""

    bound: float = 1.0
    reason: str = ""


SUPPORTED = Verification()
NO_ANSWER = 0.0
"""The bound of what is not of the form of an answer."""


class Decisions(Protocol):
    """What is decided on the way to an answer.

    Each raises `BudgetError` or `EndpointError` where a model may not or cannot be asked.
    """

    def query_ontology(self, asked: QuestionAnalysis) -> Found:
        """What SPARQL written for the question finds in the ontology layer."""

    def judge_facts(
        self, asked: QuestionAnalysis, facts: Sequence[NearFact], sufficient: float = SUFFICIENT
    ) -> Judgement:
        """Whether facts are enough to answer the question."""

    def read(
        self, asked: QuestionAnalysis, items: Sequence[Item], found: Reading | None = None
    ) -> Reading:
        """The answer that context gives, best items first; empty where it does not say.

        `found` are values that a layer gives for it: rules keep them, a model words them anew.
        """

    def recall(self, asked: QuestionAnalysis) -> Reading:
        """The answer without any context."""

    def verify(
        self,
        asked: QuestionAnalysis,
        values: Sequence[str],
        places: Sequence[Evidence],
        context: Sequence[Item],
    ) -> Verification:
        """How far the places that are cited for values support them as the answer."""


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
            tuple(facts[at] for at in verdict.bearing),
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


def bound_confidence(asked: QuestionAnalysis, answer: Answer, decisions: Decisions) -> Answer:
    """The answer with at most the confidence that its citations support; none without its form.

    The last step of its trace says why. The choice among candidates stays what it is.
    """
    if not answer.choices or not answer.evidence:
        return answer
    verified = decisions.verify(asked, answer.choices, answer.evidence, answer.context)
    if verified.bound >= answer.confidence:
        return answer
    last = answer.trace[-1]
    why = f"{last.reason}; but {verified.reason}, so at most {verified.bound:.2f}"
    step = replace(last, reason=why, confidence=verified.bound)
    if verified.bound == NO_ANSWER and not asked.candidates:
        step = replace(step, outcome=Outcome.INSUFFICIENT)
        answer = replace(answer, text="", choices=())
    return replace(answer, confidence=verified.bound, trace=(*answer.trace[:-1], step))


def judge_rows(rows: list[dict[str, str]], sparql: str, most: int) -> Found:
    """Whether rows are an answer; a count of none and an untrue ASK only say that none is known."""
    values = tuple(dict.fromkeys(value for row in rows for value in row.values()))
    if not values or values in {("0",), ("false",)}:
        return Found(Outcome.EMPTY, f"no value from {sparql}", sparql=sparql)
    if len(rows) > most:
        return Found(Outcome.TOO_BROAD, f"more than {most} values from {sparql}", sparql=sparql)
    return Found(Outcome.ANSWERED, f"{len(values)} value(s) from {sparql}", values, sparql=sparql)


def shorten(iri: str) -> str:
    """An entity's id, or the value itself."""
    return iri.removeprefix(ENTITY)
