"""Having a model say which facts that the rules left apart say the same (f_con)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

from kpyramid.condensation.prompt import (
    Question,
    ask_what_is_same,
    parse_what_is_same,
)
from kpyramid.condensation.types import Neighbourhood, Statement
from kpyramid.llm.caller import Asker
from kpyramid.llm.questions import Loss, ask_all, cut_batches
from kpyramid.llm.types import Failure

_FACTS = 40
"""Numbered facts in a request, about: some 900 tokens."""
_EXAMPLES = 2
"""Ends that a question shows of all that are told in the same wordings."""

_Anchor = tuple[str, str | None]
_Said = tuple[str, bool]
"""A wording, and whether it reads from the neighbourhood's tail to its head."""
_Pair = frozenset[_Said]
Bars = Callable[[Statement, Statement], bool]
"""Whether two facts of the same ends cannot say the same, whatever a model holds of them."""


@dataclass(frozen=True, slots=True)
class Condensed:
    """Which facts are said by others: (key of the one that goes, key of the one that stays)."""

    merged: tuple[tuple[str, str], ...]
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class _Told:
    """A neighbourhood by its wordings, turned so that the first of them reads forwards."""

    anchor: _Anchor
    ends: tuple[str, str]
    facts: Mapping[_Said, Statement]

    @property
    def pairs(self) -> Iterable[_Pair]:
        return map(frozenset, combinations(self.facts, 2))


@dataclass(frozen=True, slots=True)
class _Set:
    """What is asked once for all ends: wordings of an anchor, and the ends that show them."""

    anchor: _Anchor
    said: tuple[_Said, ...]
    pairs: frozenset[_Pair]
    ends: tuple[tuple[str, str], ...]

    @property
    def question(self) -> Question:
        label, domain = self.anchor
        about = f"{label} ({domain})" if domain else label
        head, tail = self.ends[0]
        facts = tuple((tail, w, head) if turned else (head, w, tail) for w, turned in self.said)
        return Question(about, facts, self.ends[1:])


@dataclass(frozen=True, slots=True)
class Condenser:
    """f_con for a graph; `concurrency` calls at a time."""

    asker: Asker
    domain: str
    language: str
    max_tokens: int
    concurrency: int

    def condense(self, neighbourhoods: Sequence[Neighbourhood], bars: Bars) -> Condensed:
        """Merges within neighbourhoods; the same wordings near one anchor are asked about once.

        A pair that `bars` is never merged, and a loss where the model would have it so.

        Raises:
            BudgetError, EndpointError: no further call can be made; the answers so far are kept.
        """
        told = [found for n in neighbourhoods if len((found := _tell(n)).facts) > 1]
        same, best, losses = self._ask(_list_sets(told))
        merged: list[tuple[str, str]] = []
        barred: dict[tuple[_Anchor, _Pair], Loss] = {}
        for one in told:
            agreed = {pair for pair in one.pairs if (one.anchor, pair) in same}
            for pair in sorted(agreed, key=sorted):
                first, second = (one.facts[said] for said in sorted(pair))
                if bars(first, second):
                    agreed.discard(pair)
                    barred[one.anchor, pair] = _refuse(one.anchor, first, second)
            for group in _group(one.facts, agreed):
                stays = min(group, key=lambda said: (-best[one.anchor, said], said))
                keys = (one.facts[said].key for said in group if said != stays)
                merged += [(key, one.facts[stays].key) for key in keys]
        return Condensed(tuple(sorted(merged)), (*losses, *barred.values()))

    def _ask(
        self, sets: Sequence[_Set]
    ) -> tuple[set[tuple[_Anchor, _Pair]], Counter[tuple[_Anchor, _Said]], list[Loss]]:
        """The pairs that say the same, how often each wording was the best, what got no answer."""
        batches = list(cut_batches(sets, name=_name, weigh=lambda s: len(s.said), size=_FACTS))
        questions = []
        for batch in batches:
            asked = [one.question for one in batch]
            request = ask_what_is_same(
                asked, domain=self.domain, language=self.language, max_tokens=self.max_tokens
            )
            questions.append((request, partial(parse_what_is_same, batch=asked)))
        same: set[tuple[_Anchor, _Pair]] = set()
        best: Counter[tuple[_Anchor, _Said]] = Counter()
        losses = []
        answers = ask_all(self.asker, questions, self.concurrency)
        for batch, answer in zip(batches, answers, strict=True):
            if isinstance(answer, Failure):
                left = "; ".join(map(_show, batch))
                detail = f"{answer.detail}; left apart: {left}"
                losses.append(Loss(f"llm_{answer.kind}", answer.key, detail))
                continue
            for at, one in enumerate(batch):
                if at not in answer:
                    detail = f"the reply leaves it out; left apart: {_show(one)}"
                    losses.append(Loss("llm_invalid", _show(one), detail))
                for group in answer.get(at, ()):
                    said = [one.said[place] for place in group]
                    pairs = set(map(frozenset, combinations(said, 2))) & one.pairs
                    same |= {(one.anchor, pair) for pair in pairs}
                    best[one.anchor, said[0]] += 1
        return same, best, losses


def _tell(neighbourhood: Neighbourhood) -> _Told:
    statements = sorted(neighbourhood.statements, key=lambda s: (s.relation, s.head, s.key))
    ends = (statements[0].head, statements[0].tail) if statements else ("", "")
    facts: dict[_Said, Statement] = {}
    for statement in statements:
        facts.setdefault((statement.relation, (statement.head, statement.tail) != ends), statement)
    return _Told((neighbourhood.anchor, neighbourhood.anchor_class), ends, facts)


def _list_sets(told: Sequence[_Told]) -> list[_Set]:
    """What is to be asked so that every pair of wordings near an anchor is asked about once."""
    ends: dict[tuple[_Anchor, tuple[_Said, ...]], set[tuple[str, str]]] = defaultdict(set)
    for one in told:
        ends[one.anchor, tuple(sorted(one.facts))].add(one.ends)
    covered: set[tuple[_Anchor, _Pair]] = set()
    sets = []
    # The largest first: they have most of the smaller ones' pairs.
    for anchor, said in sorted(ends, key=lambda place: (-len(place[1]), str(place))):
        pairs = frozenset(
            pair for pair in map(frozenset, combinations(said, 2)) if (anchor, pair) not in covered
        )
        if pairs:
            covered |= {(anchor, pair) for pair in pairs}
            asked = tuple(sorted(frozenset[_Said]().union(*pairs)))
            shown = sorted(ends[anchor, said])[:_EXAMPLES]
            sets.append(_Set(anchor, asked, pairs, tuple(shown)))
    return sets


def _group(facts: Iterable[_Said], agreed: set[_Pair]) -> list[list[_Said]]:
    """Groups of two and more in which all say the same as all others."""
    groups: list[list[_Said]] = []
    for said in sorted(facts):
        for group in groups:
            if all(frozenset((said, other)) in agreed for other in group):
                group.append(said)
                break
        else:
            groups.append([said])
    return [group for group in groups if len(group) > 1]


def _refuse(anchor: _Anchor, one: Statement, other: Statement) -> Loss:
    pair = f"{one.relation} / {other.relation}"
    facts = "; ".join(f"{s.head} | {s.relation} | {s.tail}" for s in (one, other))
    return Loss("llm_contrary", f"{anchor[0]}: {pair}", f"cannot say the same: {facts}")


def _name(one: _Set) -> str:
    return str((one.anchor, one.said))


def _show(one: _Set) -> str:
    return f"{one.anchor[0]}: {' / '.join(wording for wording, _ in one.said)}"
