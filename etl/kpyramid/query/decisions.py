"""The port through which a question's decisions are taken: by rules or by a model.

`Decisions` is what strategies call. `kpyramid.answering` implements it by rules;
`kpyramid.query.backends` takes each decision by them or by a model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from kpyramid.llm.task import Asker
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.facts import NearFact
from kpyramid.query.types import Answer, Item, Outcome, Reading, Step
from kpyramid.snapshot.evidence import Evidence

Fact = tuple[str, str, str]
"""Subject, property, object: IRIs, the object also a literal's text."""

SUFFICIENT = 0.65
"""Probability from which the graph answers: of what is answered from there on, about nine in ten
are right on questions that the weights were not fitted on; between .5 and .6 fewer than half are
(`benchmarks/RESULTS.md`). What is below goes down to the text, which sees these facts as well: a
question sent down needlessly costs milliseconds, one answered wrongly costs trust."""
FLOOR = 0.5
"""Probability below which nothing is given as the answer of an open question, by any strategy: what
is more often wrong than right helps nobody."""


@dataclass(frozen=True, slots=True)
class Found:
    """What came of a query: `values` as they are stored, the facts behind them, why in words."""

    outcome: Outcome
    reason: str
    values: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    sparql: str = ""
    """The query that was run, or the nearest one that was not sure enough to run."""

    @property
    def step(self) -> Step:
        """The layer's part in the trace."""
        return Step("ontology", self.outcome, self.reason)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether facts are enough, how probably their answer is right, and which facts support it.

    `values` are what they give, of a question with candidates the candidates, also when several of
    them are wanted, for which facts are never enough: there may be more below. `chances` says of
    each fact how probably it answers, where the rules judged.
    """

    enough: bool
    probability: float
    reason: str
    supporting: tuple[NearFact, ...]
    values: tuple[str, ...] = ()
    chances: Mapping[NearFact, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verification:
    """The most that an answer's confidence can be, and why; no reason: its citations support it.

    `least` is what it is at least, where one sentence says all that the question says.
    """

    bound: float = 1.0
    reason: str = ""
    least: float = 0.0


SUPPORTED = Verification()
NO_ANSWER = 0.0
"""The bound of what is not of the form of an answer."""


class Decisions(Protocol):
    """What is decided on the way to an answer; `walker` asks the model that leads walks, if any.

    Each raises `BudgetError` or `EndpointError` where a model may not or cannot be asked.
    """

    walker: Asker | None

    def ask_sets(self, asked: QuestionAnalysis, *, text: bool = True) -> Answer | None:
        """The answer to a question about sets, by rules; None where it is no such question.

        Without `text`: from the layers above it.
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

    def add_disagreeing(self, asked: QuestionAnalysis, answer: Answer) -> Answer:
        """A date or number with the others that other documents state, where one can hold.

        A model that reads is shown them and words its answer itself.
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


def bound_confidence(
    asked: QuestionAnalysis,
    answer: Answer,
    decisions: Decisions,
    floor: float | None = None,
    *,
    literal: bool = False,
) -> Answer:
    """The answer with at most the confidence that its citations support; none below the floor.

    What follows a `literal` algorithm, which verifies and withholds nothing, is not verified, and
    only below a floor that is given it is none.

    The last step of its trace says why. Of no answer only the context is left. The choice among
    candidates stays what it is, and so does what a model recalls from no context.
    """
    if not answer.text and not answer.choices:
        return replace(answer, evidence=(), confidence=0.0)
    last, chance, why = answer.trace[-1], answer.confidence, answer.trace[-1].reason
    if answer.choices and answer.evidence and not literal:
        all_of = answer.choices
        kept, verified = choose_supported(asked, all_of, answer.evidence, answer.context, decisions)
        is_list = 1 < len(all_of) < 2 * len(kept) and answer.text == "; ".join(all_of)
        if verified.bound < FLOOR and is_list:
            answer, verified = replace(answer, text="; ".join(kept), choices=kept), SUPPORTED
        chance = max(chance, verified.least)
        if verified.bound < chance:
            chance = verified.bound
            why = f"{why}; but {verified.reason}, so at most {chance:.2f}"
    least = floor if floor is not None else 0.0 if literal else FLOOR
    unsure = chance < least or (not chance and not literal)
    if not asked.candidates and answer.layer != "model" and unsure:
        why = f"{why}; “{answer.text}” has a probability of {chance:.2f}, and below {least:.2f} no "
        why += "answer is given"
        if last.layer == "graph" and not asked.linked.entities:
            why += "; the question names nothing that the graph knows"
        last = replace(last, outcome=Outcome.INSUFFICIENT)
        answer = replace(answer, text="", choices=(), evidence=())
    step = replace(last, reason=why, confidence=chance)
    given = chance if answer.text or answer.choices else 0.0
    return replace(answer, confidence=given, trace=(*answer.trace[:-1], step))


def choose_supported(
    asked: QuestionAnalysis,
    values: tuple[str, ...],
    places: Sequence[Evidence],
    items: Sequence[Item],
    decisions: Decisions,
) -> tuple[tuple[str, ...], Verification]:
    """The values that their places support as an answer, and how far they support all together.

    Where they do so together, that is all; else each is verified by itself.
    """
    whole = decisions.verify(asked, values, places, items)
    if whole.bound >= FLOOR or asked.candidates:
        return values, whole
    bounds = {one: decisions.verify(asked, (one,), places, items).bound for one in values}
    return tuple(one for one in values if bounds[one] >= FLOOR), whole
