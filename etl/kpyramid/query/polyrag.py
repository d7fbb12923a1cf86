"""PolyRAG: down the pyramid until a layer suffices (Algorithm 1), with improvements.

`mode="paper"` is Algorithm 1 literally: SPARQL; else the 10 triples nearest by embedding, if they
suffice; else the 5 chunks nearest by embedding. The first layer with a result answers.
`mode="authors"` also gives the triples to the reader of the chunks, as the authors' code does.
`mode="best"` retrieves facts about the question's entities, judges them by a calibrated
probability, and carries findings that do not suffice down to the next layer.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

from kpyramid.documents.words import split_label
from kpyramid.ontology.names import shorten
from kpyramid.query.analysis import KIND_TYPES, QuestionAnalysis
from kpyramid.query.decisions import FLOOR, SUFFICIENT, Decisions, read_values
from kpyramid.query.facts import (
    Judgement,
    find_nearest,
    gather_facts,
    match_candidates,
    spell_out,
    state_items,
)
from kpyramid.query.lookup import judge, rank_facts, state_instances
from kpyramid.query.passages import find_passages
from kpyramid.query.retrieval import CARRIED, LEAST, retrieve_passages
from kpyramid.query.types import Answer, Item, Outcome, Reading, Result, Step, list_places
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.view import NearFact

Mode = Literal["best", "authors", "paper"]
OPTION_FLOOR = 0.2
"""Least probability of a chosen option; a guess among eight has .125."""
RIGHT = 0.95
"""Share of a model's queries with values that match the question; set by hand."""
MOST_HINTS = 3
"""Most statements that are carried down without an answer."""


@dataclass(slots=True)
class _Way:
    """A question's way down the layers: the steps taken, and the items carried down."""

    asked: QuestionAnalysis
    decisions: Decisions
    mode: Mode
    trace: list[Step] = field(default_factory=list)
    carried: list[Item] = field(default_factory=list)

    @property
    def best(self) -> bool:
        """Whether it is not a paper's or its authors' literal algorithm."""
        return self.mode == "best"

    def skip(self, layer: str) -> None:
        """Skips a layer."""
        self.trace.append(Step(layer, Outcome.SKIPPED, "it was switched off"))

    # -- the ontology: its statements looked up, or a model's SPARQL ------------------------------

    def ask_ontology(self, sufficient: float) -> Answer | None:
        """The ontology's answer; without one None, with related values carried down.

        Values answer if documents show them and, for a question with candidates, if they match
        some. In the literal algorithm the values of the query are always the answer.
        """
        if self.decisions.backends.sparql == "rules":
            return self._look_up(sufficient)
        result = self.decisions.query_ontology(self.asked)
        step = Step("ontology", result.outcome, result.reason, query=result.sparql)
        if result.outcome is not Outcome.ANSWERED:
            return self._give(step)
        return self._take_values(result, step)

    def _look_up(self, sufficient: float) -> Answer | None:
        """The values of the statements about a question's entities, by the look-up."""
        asked, snapshot = self.asked, self.asked.snapshot
        facts = state_instances(asked)
        if not facts:
            return self._give(Step("ontology", Outcome.EMPTY, "it states nothing of what is named"))
        judged = judge(asked, facts, sufficient)
        order = sorted(facts, key=lambda f: (-judged.chances.get(f, 0.0), f.condensed_id))
        near = [f for f in order if judged.chances.get(f, 0.0) >= LEAST][:MOST_HINTS]
        shown = {f: judged.chances.get(f, 0.0) for f in (*judged.supporting, *near)}
        items = tuple(state_value(f, chance, f.confidence, snapshot) for f, chance in shown.items())
        texts = tuple(item.text for item in items)
        step = Step("ontology", Outcome.INSUFFICIENT, judged.reason, texts, judged.probability)
        known = read_values(judged, items)
        if not judged.enough or not known.evidence:
            return self._give(step, items)
        return self._give(
            replace(step, outcome=Outcome.ANSWERED, found=judged.values), items, known
        )

    def _take_values(self, query: Result, step: Step) -> Answer | None:
        """The answer by the values of a query, as far as documents show them."""
        snapshot, candidates = self.asked.snapshot, self.asked.candidates
        shown = tuple(dict.fromkeys(_show(value, snapshot) for value in query.values))
        facts = ((snapshot.read_fact(row["instance_id"]), row["confidence"]) for row in query.facts)
        items = tuple(state_value(fact, sure, sure, snapshot) for fact, sure in facts)
        places, choices, fault = list_places(items), shown, ""
        if candidates:
            spelt = (
                spelling
                for value in query.values
                for spelling in spell_out(shorten(value), _show(value, snapshot), snapshot)
            )
            matched = (c for spelling in spelt for c in match_candidates(spelling, candidates))
            choices = tuple(dict.fromkeys(matched))
            fault = "" if choices else "none of them is a candidate"
        fault = fault if places else "no place in the documents says so, and it is not given"
        chance = round(RIGHT * min((item.score for item in items), default=1.0), 4)
        if fault and self.best:
            reason = f"{query.reason}; {fault}"
            step = replace(step, found=shown, outcome=Outcome.INSUFFICIENT, reason=reason)
            return self._give(step, items)
        known = Reading("; ".join(choices), choices, chance, places)
        return self._give(replace(step, found=shown, confidence=chance), items, known)

    def _give(
        self, step: Step, items: tuple[Item, ...] = (), known: Reading | None = None
    ) -> Answer | None:
        """The answer by known values; without them None, with the items carried down."""
        self.trace.append(step)
        if known is None:
            self.carried += items if self.best else ()
            return None
        reading = self.decisions.read(self.asked, items, known)
        return (reading if reading.answers else known).give(
            items, "ontology", places=known.evidence
        )

    # -- the graph --------------------------------------------------------------------------------

    def ask_graph(self, triples: int, sufficient: float) -> Answer | None:
        """The graph's answer, None when its facts do not suffice; they are carried down."""
        asked, decisions, best = self.asked, self.decisions, self.best
        if not best:
            facts = find_nearest(asked, triples)
        elif decisions.backends.sufficiency == "rules":
            facts = gather_facts(asked)
        else:
            facts = [fact for fact, _ in rank_facts(asked)[:triples]]
        judged = decisions.judge_facts(asked, facts, sufficient)
        # A model that judges rates no single facts: these are ordered by cosine.
        scores = judged.chances or {fact: fact.cosine for fact in facts}
        shown = sorted(facts, key=lambda fact: -scores.get(fact, 0.0))[:triples] if best else facts
        shown = list(dict.fromkeys((*judged.supporting, *shown)))
        items = state_items(((fact, scores.get(fact, 0.0)) for fact in shown), asked.snapshot)
        answer = self._take_facts(judged, items) if judged.enough else None
        outcome = Outcome.INSUFFICIENT if facts else Outcome.EMPTY
        reason = judged.reason
        if answer:
            outcome = Outcome.ANSWERED
        elif judged.enough:
            reason += "; no place in the documents, or no value, can be given from it"
        texts, chance = tuple(item.text for item in items), judged.probability if facts else None
        self.trace.append(Step("graph", outcome, reason, texts, chance))
        if not answer and best:  # the facts that may answer, by the look-up
            rated = (item for item in items if item.score >= LEAST or not judged.chances)
            self.carried += [*rated][:CARRIED]
        elif not answer:
            self.carried += items
        return answer

    def _take_facts(self, judged: Judgement, items: tuple[Item, ...]) -> Answer | None:
        """The answer from sufficient facts; None if it has no words or no places.

        In the literal algorithm it is given in any case.
        """
        values = read_values(judged, items)
        reading = self.decisions.read(self.asked, items, values if judged.values else None)
        if self.best and not (reading.answers and (reading.evidence or values.evidence)):
            return None
        return reading.give(items, "graph", places=values.evidence)

    # -- the text ---------------------------------------------------------------------------------

    def read_rest(self, chunks: int, *, text: bool) -> Answer:
        """The reader's answer from passages and, except in mode `paper`, from carried items.

        With `text` switched off it has only the carried items, in any mode.
        """
        asked, best, passages = self.asked, self.best, tuple[Item, ...]()
        if not text:
            self.skip("text")
        elif best:
            passages, _ = retrieve_passages(asked, chunks, self.carried)
        else:
            passages = tuple(find_passages(asked, chunks, by="vectors"))
        items = passages if text and self.mode == "paper" else (*passages, *self.carried)
        if not text and not items:
            return Answer()
        reading = self.decisions.read(asked, items)
        named = _name_layer(reading, items)
        seen = f"{len(passages)} passages" if text else f"{len(items)} findings"
        floor = OPTION_FLOOR if best and asked.candidates else 0.0
        tried = "text" if text else named or "graph"
        step = _judge_reading(reading, seen, bool(passages) or not text, tried, floor)
        self.trace.append(step)
        by_facts = not text or (best and self.decisions.backends.reader == "rules")
        layer = named if by_facts else "text"
        if step.outcome is not Outcome.ANSWERED:
            return Answer(context=items, layer=layer if items else None)
        return reading.give(items, layer)


def ask_polyrag(
    asked: QuestionAnalysis,
    decisions: Decisions,
    *,
    mode: Mode = "best",
    triples: int = 10,
    chunks: int = 5,
    sufficient: float = SUFFICIENT,
    ontology: bool = True,
    graph: bool = True,
    text: bool = True,
) -> Answer:
    """Ontology by SPARQL, else the graph if its facts suffice, else the text.

    `ontology`, `graph` and `text` switch layers off, for ablations. The trace states whether each
    answered, and if not why. `sufficient`: the probability from which facts are enough.

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    way = _Way(asked, decisions, mode)
    answer = None
    if ontology:
        answer = way.ask_ontology(sufficient)
    else:
        way.skip("ontology")
    if answer is None and graph:
        last = way.best and not text and not asked.candidates  # no passage says it better
        answer = way.ask_graph(triples, min(sufficient, FLOOR) if last else sufficient)
    elif answer is None:
        way.skip("graph")
    answer = answer or way.read_rest(chunks, text=text)
    return replace(answer, trace=tuple(way.trace), recognised=tell_recognised(asked))


def tell_recognised(asked: QuestionAnalysis) -> tuple[str, ...]:
    """The elements recognised in a question: known names, kind of answer, other words, options."""
    linked = asked.linked
    kinds = {"who": "a person or an organisation", "where": "a place", "when": "a time",
             "number": "a number"}  # fmt: skip
    asks = next((k for k in kinds if asked.types and asked.types <= KIND_TYPES[k]), "")
    recognised = {
        "names that the pyramid knows": ", ".join(dict.fromkeys(linked.names)) or "none",
        "asks for": kinds.get(asks, "a thing or a value of any kind"),
        "says besides": " ".join(asked.beside) or "nothing",
        "options to choose from": ", ".join(asked.candidates),
    }
    return tuple(f"{what}: {words}" for what, words in recognised.items() if words)


def _judge_reading(reading: Reading, seen: str, any_seen: bool, layer: str, floor: float) -> Step:
    """The step of a reading: whether it is given as the answer, and the reason."""
    if not any_seen:
        return Step(layer, Outcome.EMPTY, "it has no passage for the question")
    chance, outcome = reading.confidence, Outcome.INSUFFICIENT
    if not reading.answers:
        why = reading.reason or "no sentence is near the question and answers it"
    elif not reading.evidence:
        why = "what was read in them has no place that can be shown, and is not given"
    elif chance < floor:
        why = f"the best option by them is right with a probability of {chance:.2f} only, and "
        why += f"below {floor:.2f} none is chosen"
    else:
        outcome, why = Outcome.ANSWERED, "the answer in them is right with a probability of "
        why += f"{chance:.2f}" + (f": {reading.reason}" if reading.reason else "")
    return Step(layer, outcome, f"{seen}; {why}", confidence=chance)


def _name_layer(reading: Reading, items: tuple[Item, ...]) -> str | None:
    """The layer of the item that the answer rests on; that of the first item without one."""
    cited = set(reading.evidence)
    for item in items:
        if cited & set(item.evidence):
            return item.layer
    return items[0].layer if items else None


def state_value(fact: NearFact, score: float, confidence: float, snapshot: Snapshot) -> Item:
    """A statement of the ontology in words: a property's value, or a class."""
    value = split_label(fact.tail) if fact.relation == "is a" else fact.tail
    key, text = fact.condensed_id, f"{fact.head} {split_label(fact.relation)} {value}"
    places, conflicts = tuple(snapshot.evidence(key)), snapshot.conflicts.about(key)
    return Item(key, text, "ontology", score, places, confidence, conflicts=conflicts)


def _show(value: str, snapshot: Snapshot) -> str:
    """A value in words: an entity's or a class's name, `yes` for an ASK that is true."""
    if value == "true":
        return "yes"
    named = snapshot.schema.term_by_iri.get(value)
    return named.label if named else snapshot.names.get(shorten(value), value)
