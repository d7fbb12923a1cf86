"""The decisions on a question, by the look-up or by a model; each is loaded on first use."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.facts import Judgement, restate_items, tell_facts
from kpyramid.query.lookup import judge
from kpyramid.query.types import Answer, Backends, Item, Outcome, Reading, Result, list_places
from kpyramid.snapshot.view import NearFact

if TYPE_CHECKING:
    from kpyramid.query.model.reading import Prompt

SUFFICIENT = 0.65
"""Probability from which the graph answers; below it a question goes to the text with its facts: a
needless step costs milliseconds, a wrong answer costs trust."""
FLOOR = 0.5
"""Probability below which an open question gets no answer: an answer that is more often wrong than
right does not help. The literal algorithms of papers withhold nothing."""


class Decisions:
    """The decisions, each by the look-up or by a model according to `backends`.

    `walker`: asker of the model that leads walks, if any. `prompt`: a strategy's prompt for reading
    context. Each method raises `BudgetError` or `EndpointError` where a model may not or cannot be
    asked.
    """

    def __init__(self, backends: Backends, prompt: "Prompt | None" = None) -> None:
        self.backends = backends
        self.walker = backends.asker if backends.walk == "llm" else None
        self._prompt = prompt

    def read_as(self, strategy: str, domain: str) -> "Decisions":
        """The same with the prompt of a strategy for reading context."""
        if self.backends.reader != "llm":
            return self
        from kpyramid.query.model.walks import prompt_answer

        return Decisions(self.backends, prompt_answer(strategy, domain))

    def query_ontology(self, asked: QuestionAnalysis) -> Result:
        """The result of a model's SPARQL for the question, from the ontology layer."""
        from kpyramid.query.model.polyrag import ask_by_model

        return ask_by_model(asked.text, asked.snapshot, self.backends.open_asker())

    def judge_facts(
        self, asked: QuestionAnalysis, facts: Sequence[NearFact], sufficient: float = SUFFICIENT
    ) -> Judgement:
        """Whether facts are enough to answer the question.

        A model answers yes or no; it neither rates facts nor gives values.
        """
        if not facts:
            return Judgement(False, 0.0, "there is no fact to judge", ())
        if self.backends.sufficiency == "rules":
            return judge(asked, facts, sufficient)
        from kpyramid.query.model.polyrag import judge_by_model

        statements = tell_facts(facts, asked.snapshot)
        places, why = judge_by_model(asked.question, statements, self.backends.open_asker())
        reason = f"the model says {'yes' if places else 'no'}: {why}"
        supporting = tuple(facts[index] for index in places)
        return Judgement(bool(places), float(bool(places)), reason, supporting)

    def read(
        self, asked: QuestionAnalysis, items: Sequence[Item], known: Reading | None = None
    ) -> Reading:
        """The answer that context gives, best items first; empty where it does not say.

        `known`: a layer's values, which a model rewords. Without a model options are chosen by
        facts and passages, and an open question is answered by facts alone.
        """
        if self.backends.reader == "llm":
            return self._read(asked, items) if items else Reading()
        if known:
            return known
        if asked.candidates:
            from kpyramid.query.choices import choose

            return choose(asked, items)
        facts = restate_items(asked, items)
        if not facts:
            return Reading(reason="only a model reads an answer out of passages")
        judged = judge(asked, facts, SUFFICIENT)
        if not judged.values:
            return Reading(confidence=judged.probability, reason=judged.reason)
        return read_values(judged, items)

    def recall(self, asked: QuestionAnalysis) -> Reading:
        """The answer without any context; without a model a guess among options."""
        if self.backends.reader == "llm":
            return self._read(asked)
        if not asked.candidates:
            return Reading(reason="nothing is known without context")
        from kpyramid.query.choices import guess

        return guess(asked)

    def _read(self, asked: QuestionAnalysis, items: Sequence[Item] = ()) -> Reading:
        from kpyramid.query.model.reading import read_by_model

        asker, prompt = self.backends.open_asker(), self._prompt if items else None
        return read_by_model(asked.question, items, asker, prompt)


def read_values(judged: Judgement, items: Sequence[Item]) -> Reading:
    """The values of the facts that support an answer, with their citations."""
    keys = {fact.condensed_id for fact in judged.supporting}
    places = list_places(item for item in items if item.key in keys)
    return Reading("; ".join(judged.values), judged.values, judged.probability, places)


def withhold(asked: QuestionAnalysis, answer: Answer, floor: float) -> Answer:
    """The answer, or only its context where its probability is below a floor.

    The last step of its trace states the reason. Choices among candidates, and answers that a model
    recalls without context, are not withheld.
    """
    if not answer.text and not answer.choices:
        return replace(answer, evidence=(), confidence=0.0)
    if asked.candidates or answer.layer == "model" or answer.confidence >= floor:
        return answer
    last = answer.trace[-1]
    why = f"{last.reason}; “{answer.text}” has a probability of {answer.confidence:.2f}, and below "
    why += f"{floor:.2f} no answer is given"
    if last.layer == "graph" and not asked.linked.entities:
        why += "; the question names nothing that the graph knows"
    step = replace(last, outcome=Outcome.INSUFFICIENT, reason=why, confidence=answer.confidence)
    trace = (*answer.trace[:-1], step)
    return replace(answer, text="", choices=(), evidence=(), confidence=0.0, trace=trace)
