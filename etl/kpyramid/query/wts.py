"""WTS: Way to Specialist, its DKG-augmented answering (Zhang et al. 2025, 3.2.1 and Algorithm 1).

The entities of a question are matched with facts; those near enough to the question are scored, and
the best of each depth are retained (width pruning). The reader answers from all retained facts; if
the answer is sure, the search ends (depth pruning), else the new entities start the next depth.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from kpyramid.embeddings.port import Matrix
from kpyramid.llm.task import Asker, Failure
from kpyramid.query import paths as kit
from kpyramid.query.analysis import Links, QuestionAnalysis
from kpyramid.query.decisions import Decisions
from kpyramid.query.facts import MOST_LOOKED, StatedPath, state_facts, state_items, tell_facts
from kpyramid.query.types import Answer, Item, Outcome, Step
from kpyramid.snapshot.adjacency import Adjacency
from kpyramid.snapshot.view import NearFact

Match = Literal["question", "entity", "exact"]
WIDTH = 30
"""The paper's K (W in Algorithm 1), which it does not state. A person has about five facts of a
relation, so that two such steps make 25 of equal likelihood."""
DISTANCE = 0.65
"""The paper's L is .55, on the scale of all-mpnet-base-v2, which does not fit MiniLM.

Of the facts of MuSiQue's first hops in a built graph (34), .55 retains .82 and .65 .97, and of the
other facts about the same entities .70 and .90: the distance bounds the work, and discriminates
little. Alone, a fact of a second or third hop is as far as any other from a question that does not
name its entity (PathQuestion, .55: .52 to .66 of 407 retained, of the others about the same
entities .52 to .65); together with the facts that lead to it .99 are retained.
"""
MOST_FOLLOWED = 200
"""Most chains of each depth that are rated as answers."""
MOST_SCORED = 150
"""Most facts of a depth that are scored, the nearest first, in one call."""
ENTITIES = 5
"""The paper's N: names of a question from which a search starts (Prompt 1)."""
DEPTH = 3
"""The paper's D is 2 to 4 by data set (Table 5), 3 for most of them."""
SUFFICIENT = 0.5
"""Chance of a chain from which rules go no deeper."""


def ask_wts(
    asked: QuestionAnalysis,
    decisions: Decisions,
    *,
    entities: int = ENTITIES,
    depth: int = DEPTH,
    width: int = WIDTH,
    distance: float = DISTANCE,
    match: Match = "question",
    chained: bool = True,
    sufficient: float = SUFFICIENT,
    knowledge: bool = False,
    domain: str = "",
) -> Answer:
    """The answer from the facts retained at each depth, which is increased until it is sure.

    `match`: facts are near to the question, to its entities, or matched by entities alone (EM-QSR,
    EM-ESR and EM of Table 2). `chained`: beyond the first depth a fact is compared together with
    those that lead to it. `sufficient`: chance from which rules go no deeper. `knowledge`: the
    reading model may add its own knowledge; `domain`: field of expertise in its prompt.

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    walker, is_read = decisions.walker, decisions.backends.reader == "llm"
    anchors, steps = _extract_entities(asked, walker, entities, domain)
    search = Search(asked, anchors.entities, width, distance, match, chained)
    answer, names = Answer(), asked.snapshot.names
    for level in range(1, depth + 1):
        if not search.ahead:
            break
        query = f"depth {level}, from {kit.list_some([names[e] for e in search.ahead])}"
        near = search.match_facts()
        scores, note = _score_facts(search, near, walker, domain)
        chosen = search.keep(near, scores)
        note = f"{search.note}, {note}, {len(chosen)} kept"
        if is_read:
            read, sure = _reason(search, decisions, note, domain, knowledge=knowledge)
        else:
            read, sure = _read_chains(search, decisions, note, sufficient)
        last = level == depth or not search.ahead
        step = replace(read.trace[-1], found=tuple(f.statement for f in chosen), query=query)
        if not sure:
            outcome = Outcome.INSUFFICIENT if search.retained else Outcome.EMPTY
            end = "nothing further to go on from" if level < depth else "the last depth"
            step = replace(
                step,
                outcome=step.outcome if last and read.text else outcome,
                reason=f"{step.reason}; not sure, {end if last else 'deeper'}",
            )
        steps.append(step)
        answer = read
        if sure:
            break
    if not any(step.layer == "graph" for step in steps):
        steps.append(Step("graph", Outcome.EMPTY, "no entity of it is known to the graph"))
    shown = kit.tell_links(anchors, "entities", asked.snapshot)
    return replace(answer, recognised=(*shown, *answer.recognised), trace=tuple(steps))


# Entity extraction module.


def _extract_entities(
    asked: QuestionAnalysis, asker: Asker | None, most: int, domain: str
) -> tuple[Links, list[Step]]:
    """At most `most` entities of the question; by rules the names that the graph knows."""
    names, steps = asked.linked.names[:most], list[Step]()
    if asker:
        from kpyramid.query.model.walks import list_entities

        reply = list_entities(asked.question, most, domain, asker)
        if isinstance(reply, Failure):
            steps.append(kit.explain_failure("list of entities", reply))
        else:
            names = reply
    return kit.link_names(names, asked.snapshot), steps


# Retrieval and pruning modules: exact match takes the facts with an entity as subject or object;
# similarity is a cosine distance of 1 - q.t / (|q| |t|). The printed formula squares the norms, a
# misprint; with vectors of unit length both are equal.


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain of facts from an entity of the question, and the entity at its end.

    `so_far`: the chance that the question begins with its steps; `whole`: that they are all.
    """

    path: StatedPath
    end: str | None
    so_far: float = 1.0
    whole: float = 0.0


@dataclass(slots=True)
class Search:
    """The state of a search: the facts retained at each depth, and the chains that they form.

    `ahead`: entities from which the next depth starts; `note`: description of the last depth.
    """

    asked: QuestionAnalysis
    topics: tuple[str, ...]
    width: int
    distance: float
    match: Match
    chained: bool
    retained: dict[str, NearFact] = field(default_factory=dict)
    ahead: list[str] = field(default_factory=list)
    note: str = ""
    _gone: set[str] = field(default_factory=set)
    _last: list[Chain] = field(default_factory=list)
    _longer: list[Chain] = field(default_factory=list)
    _chains: list[Chain] = field(default_factory=list)

    def __post_init__(self) -> None:
        names = self.asked.snapshot.names
        self.ahead, self._gone = list(self.topics), set(self.topics)
        self._last = [Chain(StatedPath((names[e],), (), ()), e) for e in self.topics]

    def match_facts(self) -> list[NearFact]:
        """The facts about the entities ahead that are near enough, nearest first (3.2.1)."""
        cosines: dict[str, float] = {}
        leads, targets = self._sum_leads(), self._find_targets()
        for entity in self._list_passed():
            keys = self.asked.snapshot.facts_about([entity], MOST_LOOKED)
            if keys := [key for key in keys if key not in self.retained]:
                vectors = self.asked.snapshot.vectors_of(keys, "condensed")
                if (lead := leads.get(entity)) is not None:
                    vectors = vectors + lead
                    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
                for key, cosine in zip(keys, (vectors @ targets.T).max(axis=1), strict=True):
                    cosines[key] = max(float(cosine), cosines.get(key, -1.0))
        matched, self.note = len(cosines), f"{len(cosines)} facts matched"
        if self.match != "exact":
            cosines = {k: c for k, c in cosines.items() if 1.0 - c <= self.distance}
            what = "the question" if self.match == "question" else "its entities"
            self.note = f"{len(cosines)} of {matched} facts within {self.distance:g} of {what}"
            order = sorted(cosines, key=lambda key: (-round(cosines[key], 6), key))
        else:
            sure = {key: self.asked.snapshot.read_fact(key).confidence for key in cosines}
            order = sorted(cosines, key=lambda key: (-sure[key], key))
        near = {key: cosines[key] for key in order[:MOST_SCORED]}
        facts = state_facts(near, self.asked.snapshot)
        self._longer = self._go_on(facts)
        return facts

    def _list_passed(self) -> list[str]:
        """The entities ahead; beyond the first depth without hubs, which join unrelated things."""
        if self.ahead == list(self.topics):
            return self.ahead
        graph = Adjacency(self.asked.snapshot)
        rows = graph.locate(self.ahead)
        counts = graph.count_facts(np.array(list(rows.values()), np.int64)) if rows else ()
        return [e for e, many in zip(rows, counts, strict=True) if many <= kit.MOST_NEIGHBOURS]

    def _find_targets(self) -> Matrix:
        """The vectors to compare facts with: of the question, or of each of its entities."""
        if self.match != "entity":
            return np.asarray(self.asked.vector[None, :])
        names = self.asked.snapshot.names
        return self.asked.snapshot.embed_all([names[topic] for topic in self.topics])

    def _sum_leads(self) -> Mapping[str, Matrix]:
        """The sum of the vectors of the likeliest chain to each entity."""
        leads: dict[str, Matrix] = {}
        for chain in self._last if self.chained else ():
            if chain.end and chain.path.facts and chain.end not in leads:
                keys = [fact.condensed_id for fact in chain.path.facts]
                leads[chain.end] = self.asked.snapshot.vectors_of(keys, "condensed").sum(axis=0)
        return leads

    def _go_on(self, facts: Sequence[NearFact]) -> list[Chain]:
        """The chains one step longer, by retained facts and these; a chain may return."""
        about: dict[str, list[NearFact]] = defaultdict(list)
        for fact in (*self.retained.values(), *facts):
            if fact.head_id != fact.tail_id:
                about[fact.head_id].append(fact)
                about[fact.tail_id or ""].append(fact)
        longer = []
        for chain in self._last:
            for fact in about[chain.end] if chain.end else ():
                path = kit.go_on(chain.path, chain.end or "", fact)
                end = fact.tail_id if path.forward[-1] else fact.head_id
                longer.append(Chain(path, end, *kit.rate_steps(self.asked, path.start, path.steps)))
        return sorted(longer, key=lambda c: (-c.so_far, -c.whole, c.path.statement))

    def score(self) -> dict[str, float]:
        """The relevance of facts by rules: the chance of the likeliest chain to each."""
        scores: dict[str, float] = {}
        for chain in self._longer:
            scores.setdefault(chain.path.facts[-1].condensed_id, chain.so_far)
        return scores

    def keep(self, near: Sequence[NearFact], scores: Mapping[str, float]) -> list[NearFact]:
        """Retains the facts with the highest scores (width pruning); their new ends are ahead."""
        scored = [fact for fact in near if fact.condensed_id in scores]
        scored.sort(key=lambda f: (-scores[f.condensed_id], -f.cosine, f.condensed_id))
        chosen = scored[: self.width]
        self.retained |= {fact.condensed_id: fact for fact in chosen}
        ends = dict.fromkeys(e for fact in chosen for e in (fact.head_id, fact.tail_id) if e)
        self.ahead = [e for e in ends if e not in self._gone]
        self._gone.update(self.ahead)
        self._longer = [c for c in self._longer if c.path.facts[-1].condensed_id in self.retained]
        self._chains += sorted(self._longer, key=lambda chain: -chain.whole)[:MOST_FOLLOWED]
        self._last = self._longer[: self.width]
        return chosen

    def list_likely(self) -> list[StatedPath]:
        """The likeliest chains of retained facts."""
        self._chains.sort(key=lambda chain: -chain.whole)
        return [chain.path for chain in self._chains[: self.width]]


def _score_facts(
    search: Search, near: Sequence[NearFact], asker: Asker | None, domain: str
) -> tuple[dict[str, float], str]:
    """The relevance of facts by their keys, and a note on the method.

    A model's scores above 0; or by rules the chance of the chain to a fact.
    """
    by_rules = search.score()
    if not asker or not near:
        return by_rules, "scored by rules"
    from kpyramid.query.model.walks import score_triples

    shown = tell_facts(near, search.asked.snapshot)
    reply = score_triples(search.asked.question, shown, domain, asker)
    if isinstance(reply, Failure):
        return by_rules, f"scored by rules, since the model gave no scores ({reply.kind})"
    scores, odd = reply
    note = "scored by the model"
    if odd:
        note += f" ({odd} scores of no triple shown or out of range left out)"
    return {near[index].condensed_id: value for index, value in scores.items() if value > 0}, note


# Reasoning module.


def _read_chains(
    search: Search, decisions: Decisions, note: str, sufficient: float
) -> tuple[Answer, bool]:
    """By rules: the value of the likeliest chain of retained facts, and whether it is sure."""
    rated = kit.choose_fitting(search.asked, kit.rate_paths(search.asked, search.list_likely()))
    best = next((p for p in rated if p.choices or not search.asked.candidates), None)
    sure = best is not None and best.chance >= sufficient
    answer = kit.read_paths(search.asked, rated, note, decisions, context=_list_items(search))
    if best is None:
        return answer, False
    step = replace(answer.trace[-1], reason=f"{note}; support: {best.path.statement}")
    return replace(answer, trace=(step,)), sure


def _reason(
    search: Search, decisions: Decisions, note: str, domain: str, *, knowledge: bool
) -> tuple[Answer, bool]:
    """By a model: the answer from all retained facts, and whether it is confident."""
    from kpyramid.query.model.walks import reason

    items = _list_items(search)
    if not (items or knowledge):
        return Answer(trace=(Step("graph", Outcome.EMPTY, note),)), False
    asker = decisions.backends.open_asker()
    reply = reason(search.asked.question, items, asker, domain=domain, knowledge=knowledge)
    reading = reply.reading
    why = [note, reading.reason, f"support: {reply.support}" if reply.support else ""]
    outcome = Outcome.ANSWERED if reading.text else Outcome.INSUFFICIENT
    step = Step("graph", outcome, "; ".join(filter(None, why)), (), reading.confidence)
    layer = "graph" if reading.evidence or not reading.text else "model"
    return reading.give(items, layer, step), reply.sure


def _list_items(search: Search) -> tuple[Item, ...]:
    """The facts retained at all depths, in order, as items."""
    scored = ((fact, fact.cosine) for fact in search.retained.values())
    return state_items(scored, search.asked.snapshot)
