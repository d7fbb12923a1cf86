"""Wrong options: of the answer's class, plausible, and never right."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from random import Random

from kpyramid.evaluation.facts import (
    Fact,
    Knowledge,
    Thing,
    Words,
    fold_words,
    may_be_same,
    names_within,
)
from kpyramid.evaluation.values import find_precision, measure, vary_value

_MOST_TRIED = 2000
"""Things of a class that are tried for one question; drawn at random, so more would add nothing."""
_MOST_REAL, _MOST_VARIED = 4, 200
"""Values of other things among the wrong ones, and tries to find others near the right one."""


class Pool:
    """Everything that can be a wrong option, by property and side, and by class."""

    def __init__(self, knowledge: Knowledge, others: Iterable[Thing] = ()) -> None:
        self._knowledge = knowledge
        self._others = tuple(others)

    def draw(
        self,
        relation: str,
        side: str,
        drawn: Sequence[Thing],
        right: Sequence[Thing],
        asked: Thing,
        text: str,
        evidence: Sequence[str],
        count: int,
        rng: Random,
    ) -> list[Thing]:
        """So many wrong options, fewer when there are no more.

        `drawn` are the right options, `right` is all that is right; `asked` is what the question
        is about, `text` the question, `evidence` what states its answers. Left out is what may be
        another name of any of them, what a fact links with the question or a right option, and
        what the question or the evidence name: facts are never complete, and a sentence that
        names a thing may say more than they do.
        """
        seen = tuple(fold_words(part) for part in (text, *evidence))
        if drawn[0].form in ("number", "date"):
            values = self._draw_values(relation, drawn[0], right, rng)
            unseen = (t for t in values if not any(names_within(t, part) for part in seen))
            return list(islice(unseen, count))
        barred = {
            words for thing in (asked, *drawn) for words in self._knowledge.list_linked(thing)
        }
        by_word: dict[str, list[Thing]] = defaultdict(list)
        for thing in right:
            for word in {word for name in _spell(thing) for word in name}:
                by_word[word].append(thing)
        chosen: list[Thing] = []
        taken: set[Words] = set()
        for thing in self._list_candidates(relation, side, drawn[0], rng):
            names = set(_spell(thing))
            if names & (taken | barred) or any(names_within(thing, part) for part in seen):
                continue
            # There may be thousands of right things; those that share no word are other things.
            alike = {t.key: t for name in names for word in name for t in by_word.get(word, ())}
            others = (asked, *drawn, *chosen, *alike.values())
            if any(may_be_same(thing, other) for other in others):
                continue
            taken |= names
            chosen.append(thing)
            if len(chosen) == count:
                break
        return chosen

    def _list_candidates(
        self, relation: str, side: str, model: Thing, rng: Random
    ) -> Iterator[Thing]:
        """Ends of the same property that are of the class, then all of the class, then wider."""
        same = self._by_relation.get((relation, side), ())
        if not model.kinds:
            yield from _shuffle((t for t in same if not t.kinds and t.form == model.form), rng)
            return
        yield from _shuffle((t for t in same if model.kinds[0] in t.kinds), rng)
        for kind in model.kinds:
            yield from _shuffle(self._by_kind.get(kind, ()), rng)

    @cached_property
    def _by_relation(self) -> Mapping[tuple[str, str], tuple[Thing, ...]]:
        found: dict[tuple[str, str], dict[Thing, None]] = defaultdict(dict)
        for fact in self._knowledge.facts:
            found[fact.relation, "subject"][fact.subject] = None
            found[fact.relation, "object"][fact.object] = None
        return {key: tuple(sorted(things, key=_order)) for key, things in found.items()}

    @cached_property
    def _by_kind(self) -> Mapping[str, tuple[Thing, ...]]:
        found: dict[str, dict[Thing, None]] = defaultdict(dict)
        facts: Sequence[Fact] = self._knowledge.facts
        things = [thing for fact in facts for thing in (fact.subject, fact.object)]
        for thing in (*things, *self._others):
            for kind in thing.kinds if not thing.form else ():
                found[kind][thing] = None
        return {kind: tuple(sorted(things, key=_order)) for kind, things in found.items()}

    def _draw_values(
        self, relation: str, model: Thing, right: Sequence[Thing], rng: Random
    ) -> Iterator[Thing]:
        """Numbers or dates near the right one: half of them values of other things, the nearest."""
        form, written = model.form, find_precision(model.name, model.form)
        taken = {measure(thing.name, form) for thing in right} | {None}
        centre = measure(model.name, form) or 0.0
        real = {
            thing.name: thing
            for thing in self._by_relation.get((relation, "object"), ())
            if thing.form == form and find_precision(thing.name, form) == written
        }
        near = [(abs(v - centre), n) for n in real if (v := measure(n, form)) not in (None, centre)]
        varied = (vary_value(model.name, form, rng) for _ in range(_MOST_VARIED))
        for name in (*(name for _, name in sorted(near)[:_MOST_REAL]), *varied):
            value = measure(name, form)
            if value not in taken:
                taken.add(value)
                yield Thing(name, name, model.kinds, form=form)


def _spell(thing: Thing) -> list[Words]:
    return [fold_words(name) for name in (thing.name, *thing.names)]


def _order(thing: Thing) -> tuple[str, str]:
    return thing.key, thing.name


def _shuffle(things: Iterable[Thing], rng: Random) -> list[Thing]:
    listed = list(things)
    return rng.sample(listed, min(len(listed), _MOST_TRIED))
