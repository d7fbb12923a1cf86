"""Repair: the statements to withdraw when a check or a shape fails."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import pyoxigraph as ox

from kpyramid.ontology.store import InstanceStatement, list_facts
from kpyramid.ontology.validation.consistency import state_item

_MOST_SENTENCES = 3
_MOST_OTHERS = 3


@dataclass(frozen=True, slots=True)
class Fault:
    """Facts that may not all stand, of which at most `keep` may stay.

    `reason` is a short name for counting, `rule` describes the violated rule.
    """

    reason: str
    rule: str
    facts: tuple[ox.Triple, ...]
    keep: int


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A withdrawn statement; `detail`: the rule, its evidence and its sentences."""

    statement: InstanceStatement
    reason: str
    detail: str


class Repair:
    """Statements, and those withdrawn because others have more evidence.

    Evidence of a fact is the confidence of all statements that make it true, to two digits, then
    their documents, then their number. Of a fault's facts those with more evidence than the best
    loser stay; where none has more, all leave.
    """

    def __init__(self, statements: Iterable[InstanceStatement], labels: Mapping[str, str]) -> None:
        """`labels`: of classes and properties, by IRI."""
        self.withdrawn: dict[str, Withdrawal] = {}
        self._stating: defaultdict[str, list[InstanceStatement]] = defaultdict(list)
        self._labels = dict(labels)
        for statement in statements:
            self._labels[statement.subject_iri] = statement.subject_label
            if statement.object_iri is not None and statement.object_label is not None:
                self._labels[statement.object_iri] = statement.object_label
            for fact in list_facts(statement):
                self._stating[" ".join(fact)].append(statement)

    def settle(self, faults: Iterable[Fault]) -> set[str]:
        """Withdraws the losers of each fault, beginning with the weakest fact.

        Returns the facts that no statement supports any more.
        """
        order = [
            (min(map(self._weigh, fault.facts), default=(0.0, 0, 0)), str(fault), fault)
            for fault in faults
        ]
        ordered = sorted(order, key=lambda item: item[:2])
        return {fact for _, _, fault in ordered for fact in self.take(fault)}

    def take(self, fault: Fault) -> set[str]:
        """Withdraws the losers of one fault; returns the facts that no statement supports any more.

        A fault that an earlier withdrawal resolved withdraws nothing more.
        """
        firm = sum(str(fact) not in self._stating for fact in fault.facts)
        keep = max(0, fault.keep - firm)
        weights = {fact: self._weigh(fact) for fact in fault.facts if self._list_standing(fact)}
        if len(weights) <= keep:
            return set()
        limit = sorted(weights.values(), reverse=True)[keep]
        losers = [fact for fact, weight in weights.items() if weight <= limit]
        leaving = [(fact, s) for fact in losers for s in self._list_standing(fact)]
        touched = {" ".join(fact) for _, statement in leaving for fact in list_facts(statement)}
        for fact, statement in leaving:
            others = [f for f in weights if f != fact]
            detail = self._describe(fact, fault.rule, weights, losers, others, statement)
            key = str(statement.instance_id)
            self.withdrawn.setdefault(key, Withdrawal(statement, fault.reason, detail))
        return {fact for fact in touched if not self._list_standing(fact)}

    def _list_standing(self, fact: ox.Triple | str) -> list[InstanceStatement]:
        stating = self._stating.get(str(fact), ())
        return [s for s in stating if str(s.instance_id) not in self.withdrawn]

    def _weigh(self, fact: ox.Triple) -> tuple[float, int, int]:
        standing = self._list_standing(fact)
        wrong = prod(1.0 - s for s in sorted(statement.confidence for statement in standing))
        documents = {place.document_id for statement in standing for place in statement.places}
        return round(1.0 - wrong, 2), len(documents), len(standing)

    def _describe(
        self,
        fact: ox.Triple,
        rule: str,
        weights: Mapping[ox.Triple, tuple[float, int, int]],
        losers: Sequence[ox.Triple],
        others: Sequence[ox.Triple],
        statement: InstanceStatement,
    ) -> str:
        def say(fact: ox.Triple) -> str:
            confidence, documents, _ = weights[fact]
            text = state_item(fact, self._labels, lambda _: None)
            return f"{text} ({confidence:.2f}, {documents} document{'s' * (documents != 1)})"

        parts = [f"{say(fact)}: {rule}"]
        retained = [say(f) for f in others if f not in losers]
        equal = [say(f) for f in others if f in losers]
        parts += [f"kept: {_list(retained, _MOST_OTHERS)}"] if retained else []
        parts += [f"withdrawn too: {_list(equal, _MOST_OTHERS)}"] if equal else []
        quoted = [f"“{' '.join(place.text.split())}”" for place in statement.places]
        return "; ".join([*parts, f"stated in {_list(quoted, _MOST_SENTENCES)}"])


def _list(named: Sequence[str], most: int) -> str:
    more = len(named) - most
    return ", ".join(named[:most]) + (f" and {more} more" if more > 0 else "")
