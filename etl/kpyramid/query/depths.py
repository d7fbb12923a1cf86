"""What WTS finds depth by depth: facts matched, compared, pruned, and the chains that they make.

Retrieval and pruning modules of 3.2.1. Exact match takes the facts that have an entity as subject
or object; similarity is a cosine distance of 1 - q.t / (|q| |t|): the printed formula squares the
norms, a misprint, since with vectors of unit length both say the same.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kpyramid.embeddings.port import Matrix
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.chains import go_on
from kpyramid.query.facts import MOST_LOOKED, NearFact, state_facts
from kpyramid.query.paths import MOST_NEIGHBOURS, StatedPath
from kpyramid.query.wording import rate_prefix
from kpyramid.snapshot.adjacency import Adjacency

MATCHES = ("question", "entity", "exact")
WIDTH = 30
"""The paper's K (W in Algorithm 1), which it does not give. A person has some five facts of one
relation, so that two such steps make 25 that are equally likely."""
DISTANCE = 0.65
"""The paper's L is .55, on the scale of all-mpnet-base-v2, which does not fit MiniLM.

Of the facts of MuSiQue's first hops that a built graph has (34) .55 keeps .82 and .65 .97, beside
.70 and .90 of the other facts about the same entities: the distance bounds what is scored, and
parts little. Alone, a fact of a second or third hop is as far from a question that does not name
its entity as any other (PathQuestion, .55: .52 to .66 of 407 kept, of the others about the same
entities .52 to .65); together with the facts that lead to it .99 are kept.
"""
MOST_FOLLOWED = 200
"""Chains of each depth that are rated as answers."""
MOST_SCORED = 150
"""Facts of a depth that are scored, the nearest first: what one call shows."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Facts from an entity of the question, each beyond the one before, and where they end.

    `so_far`: the chance that its steps are the first of what is asked, `whole` that they are all.
    """

    start: str
    path: StatedPath
    end: str | None
    steps: tuple[tuple[str, bool], ...] = ()
    so_far: float = 1.0
    whole: float = 0.0


@dataclass(slots=True)
class Search:
    """What a question has found: the facts kept at each depth, and the chains that they make.

    `ahead` are the entities from which the next depth starts; `note` says what the last one found.
    """

    asked: QuestionAnalysis
    width: int
    distance: float
    match: str
    chained: bool
    kept: dict[str, NearFact] = field(default_factory=dict)
    ahead: list[str] = field(default_factory=list)
    note: str = ""
    _topics: tuple[str, ...] = ()
    _gone: set[str] = field(default_factory=set)
    _last: list[Chain] = field(default_factory=list)
    _longer: list[Chain] = field(default_factory=list)
    _chains: list[Chain] = field(default_factory=list)

    def begin(self, entities: Sequence[str]) -> None:
        """Starts at the entities of the question."""
        names = self.asked.snapshot.names
        self._topics, self.ahead, self._gone = tuple(entities), list(entities), set(entities)
        self._last = [Chain(e, StatedPath((names[e],), (), ()), e) for e in entities]

    def match_facts(self) -> list[NearFact]:
        """The facts about the entities ahead that are near enough, nearest first (3.2.1)."""
        cosines: dict[str, float] = {}
        leads, targets = self._sum_leads(), self._find_targets()
        for entity in self._list_passed():
            keys = self.asked.snapshot.facts_about([entity], MOST_LOOKED)
            if keys := [key for key in keys if key not in self.kept]:
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
            keys = sorted(cosines)
            sure = dict(zip(keys, self.asked.snapshot.weigh_condensed(keys), strict=True))
            order = sorted(keys, key=lambda key: (-sure[key][0], key))
        near = {key: cosines[key] for key in order[:MOST_SCORED]}
        facts = state_facts(near, self.asked.snapshot)
        self._longer = self._go_on(facts)
        return facts

    def _list_passed(self) -> list[str]:
        """The entities ahead; beyond the first depth without hubs, by which all is joined."""
        if self.ahead == list(self._topics):
            return self.ahead
        graph = Adjacency(self.asked.snapshot)
        rows = {e: row for e in self.ahead if (row := graph.find(e)) is not None}
        counts = graph.count_facts(np.array(list(rows.values()), np.int64)) if rows else ()
        return [e for e, many in zip(rows, counts, strict=True) if many <= MOST_NEIGHBOURS]

    def _find_targets(self) -> Matrix:
        """What facts are compared with: the question, or each of its entities."""
        if self.match != "entity":
            return np.asarray(self.asked.vector[None, :])
        names = self.asked.snapshot.names
        return self.asked.snapshot.embed_all([names[one] for one in self._topics])

    def _sum_leads(self) -> Mapping[str, Matrix]:
        """The vectors of the likeliest chain to each entity, added up."""
        leads: dict[str, Matrix] = {}
        for chain in self._last if self.chained else ():
            if chain.end and chain.path.facts and chain.end not in leads:
                keys = [fact.condensed_id for fact in chain.path.facts]
                leads[chain.end] = self.asked.snapshot.vectors_of(keys, "condensed").sum(axis=0)
        return leads

    def _go_on(self, facts: Sequence[NearFact]) -> list[Chain]:
        """The chains one step longer, by the facts kept and these; a chain may come back."""
        about: dict[str, list[NearFact]] = defaultdict(list)
        for fact in (*self.kept.values(), *facts):
            if fact.head_id != fact.tail_id:
                about[fact.head_id].append(fact)
                about[fact.tail_id or ""].append(fact)
        longer = []
        for chain in self._last:
            for fact in about[chain.end] if chain.end else ():
                path = go_on(chain.path, chain.end or "", fact)
                ahead = path.forward[-1]
                steps = (*chain.steps, (fact.relation, ahead))
                chances = rate_prefix(self.asked, chain.start, steps)
                end = fact.tail_id if ahead else fact.head_id
                longer.append(Chain(chain.start, path, end, steps, *chances))
        return sorted(longer, key=lambda one: (-one.so_far, -one.whole, one.path.statement))

    def score(self) -> dict[str, float]:
        """By rules, the relevance of facts: the chance of the likeliest chain to each."""
        scores: dict[str, float] = {}
        for chain in self._longer:
            scores.setdefault(chain.path.facts[-1].condensed_id, chain.so_far)
        return scores

    def keep(self, near: Sequence[NearFact], scores: Mapping[str, float]) -> list[NearFact]:
        """The facts with the highest scores (width pruning); what they name anew is ahead."""
        scored = [fact for fact in near if fact.condensed_id in scores]
        scored.sort(key=lambda f: (-scores[f.condensed_id], -f.cosine, f.condensed_id))
        kept = scored[: self.width]
        self.kept |= {fact.condensed_id: fact for fact in kept}
        ends = dict.fromkeys(e for fact in kept for e in (fact.head_id, fact.tail_id) if e)
        self.ahead = [e for e in ends if e not in self._gone]
        self._gone.update(self.ahead)
        self._longer = [c for c in self._longer if c.path.facts[-1].condensed_id in self.kept]
        self._chains += sorted(self._longer, key=lambda one: -one.whole)[:MOST_FOLLOWED]
        self._last = self._longer[: self.width]
        return kept

    def list_likely(self) -> list[StatedPath]:
        """The likeliest chains of what is kept."""
        self._chains.sort(key=lambda one: -one.whole)
        return [one.path for one in self._chains[: self.width]]
