"""Conflict resolution: of findings that axioms and shapes do not allow together, the best stay."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from kpyramid.keys import content_id
from kpyramid.ontology.constraints import Rules
from kpyramid.ontology.names import (
    ASYMMETRIC_PROPERTY,
    INVERSE_FUNCTIONAL_PROPERTY,
    IRREFLEXIVE_PROPERTY,
)
from kpyramid.ontology.population.checking import Candidate, Place, combine_confidence, order_places
from kpyramid.ontology.schema import OntologyProperty
from kpyramid.ontology.turtle import walk


@dataclass(frozen=True, slots=True)
class Finding:
    """A value or, with `prop` None, a membership, with all places that state it."""

    key: str
    prop: OntologyProperty | None
    class_iri: str
    subject_id: str
    object_id: str | None
    object_class: str | None
    literal: str | None
    confidence: float
    places: tuple[Place, ...]

    @property
    def rank(self) -> tuple[float, int, int, str]:
        """Sort key, the best first: confidence, documents, position in its sentence, key.

        Confidence combines all places: three sentences at 0.6 each are surer than one at 0.7. It is
        rounded to two digits; of "born in Lima, Peru" the first place is the narrower one.
        """
        best = self.places[0]
        offset = best.object.start - best.start if best.object else 0
        documents = len({place.document_id for place in self.places})
        return -round(self.confidence, 2), -documents, offset, self.key

    @property
    def entailed(self) -> Iterable[tuple[str, str]]:
        """The memberships that it entails: individual and class."""
        yield self.subject_id, self.class_iri
        if self.object_id is not None and self.object_class is not None:
            yield self.object_id, self.object_class


@dataclass(frozen=True, slots=True)
class Loss:
    """A finding that does not stay, and why."""

    finding: Finding
    reason: str
    detail: str


def merge(candidates: Iterable[Candidate]) -> list[Finding]:
    """The distinct values and memberships, each with the places of all equal candidates."""
    groups: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        groups[_key(candidate)].append(candidate)
    findings = []
    for key, group in sorted(groups.items()):
        c, places = group[0], [candidate.place for candidate in group]
        ends = c.prop, c.class_iri, c.subject_id, c.object_id, c.object_class, c.literal
        findings.append(Finding(key, *ends, combine_confidence(places), order_places(places)))
    return findings


def _key(c: Candidate) -> str:
    iri = c.prop.iri if c.prop else None
    datatype = c.prop.range if c.prop and c.prop.is_datatype else None
    return content_id(
        "instance", c.class_iri, iri, c.subject_id, c.object_id or c.literal, datatype
    )


_STRICT_ORDER = frozenset({ASYMMETRIC_PROPERTY, IRREFLEXIVE_PROPERTY})
"""A property with both orders its individuals: whole and part, parent and child. OWL DL allows no
transitive property with either, so that longer cycles are found here."""


def list_wider(findings: Iterable[Finding]) -> dict[str, set[str]]:
    """The larger places of each place, by "born in Velm, Orland" or "Velm is located in"."""
    wider: dict[str, set[str]] = defaultdict(set)
    beside: dict[tuple[str, str, str, int], tuple[str, str, int]] = {}
    ends = []
    for finding in findings:
        value, prop = finding.object_id, finding.prop
        if value is None or prop is None:
            continue
        if _LOCATED in (prop.label, *prop.alt_labels):
            wider[finding.subject_id].add(value)
        for place in finding.places:
            if place.object is not None:
                where = finding.subject_id, prop.iri, place.document_id
                beside[*where, place.object.start] = value, place.text, place.start
                ends.append((where, place.object.end, value))
    for where, end, value in ends:
        for gap in (2, 1):  # ", " and ","
            second, text, start = beside.get((*where, end + gap), ("", "", 0))
            if second and text[end - start : end - start + gap].strip() == ",":
                wider[value].add(second)
    return {place: larger - {place} for place, larger in wider.items()}


_LOCATED = "is located in"


@dataclass
class _Retained:
    """Findings that stay so far: classes by individual; values and owners by property and end.

    `values` and `owners` include entailed ones, each with the first finding that entails it.
    """

    classes: Mapping[str, set[str]]
    values: dict[tuple[str, str], dict[str, Finding]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    owners: dict[tuple[str, str], str] = field(default_factory=dict)
    wider: Mapping[str, set[str]] = field(default_factory=dict)

    def add(self, finding: Finding, rules: Rules) -> None:
        for iri, subject, value in _list_entailed(finding, rules):
            self.values[iri, subject].setdefault(value, finding)
            self.owners.setdefault((iri, value), subject)


def _list_entailed(finding: Finding, rules: Rules) -> Iterator[tuple[str, str, str]]:
    """Property, subject and value that a finding states, then those that it entails."""
    if finding.prop is not None:
        ends = finding.subject_id, str(finding.object_id or finding.literal)
        for iri, swapped in rules.schema.find_entailed(finding.prop.iri):
            yield iri, *(ends[::-1] if swapped else ends)


def settle(
    findings: Iterable[Finding],
    rules: Rules,
    known: Mapping[str, Iterable[str]] = MappingProxyType({}),
    settled: Iterable[Finding] = (),
) -> tuple[list[Finding], list[Loss]]:
    """The findings that may stand together, the best first, and the losses.

    Each in turn, by rank, stays if it agrees with all before it; a place precedes the larger places
    that contain it, which say less. A finding that a shape refuses gives way to those that had lost
    to it. `known`: classes of individuals, and `settled`: values, that stay in any case and are not
    returned.
    """
    firm = list(settled)
    findings = list(findings)
    wider = list_wider((*findings, *firm))
    left = _order(findings, wider)
    refused: list[Loss] = []
    while True:
        retained = _Retained(_choose_classes(left, rules, known), wider=wider)
        for finding in firm:
            retained.add(finding, rules)
        stay: list[Finding] = []
        losses: list[Loss] = []
        for finding in left:
            if fault := _find_fault(finding, retained, rules):
                losses.append(Loss(finding, *fault))
            else:
                retained.add(finding, rules)
                stay.append(finding)
        broken = _find_broken(stay, rules, known)
        if not broken:
            return stay, refused + losses
        refused += broken
        gone = {loss.finding.key for loss in broken}
        left = [finding for finding in left if finding.key not in gone]


def _order(findings: Iterable[Finding], wider: Mapping[str, set[str]]) -> list[Finding]:
    """The findings by rank; a place takes the rank of the best larger one, and precedes it."""
    ranks = {(f.subject_id, f.prop.iri, f.object_id): f.rank for f in findings if f.prop}

    def find_rank(f: Finding) -> tuple[Any, ...]:
        iri = f.prop.iri if f.prop else ""
        keys = [(f.subject_id, iri, larger) for larger in wider.get(f.object_id or "", ())]
        above = [ranks[key] for key in keys if key in ranks]
        return min(f.rank, *above) if above else f.rank, -len(above), f.key

    return sorted(findings, key=find_rank)


def _choose_classes(
    findings: Sequence[Finding], rules: Rules, known: Mapping[str, Iterable[str]]
) -> dict[str, set[str]]:
    """The compatible classes of each individual, by the findings that state or entail them.

    Of two disjoint ones that with more confidence stays, then more documents, then the smaller IRI.
    """
    support: dict[str, dict[str, list[Place]]] = defaultdict(lambda: defaultdict(list))
    for finding in findings:
        for individual, class_iri in finding.entailed:
            support[individual][class_iri] += finding.places
    chosen = {individual: set(classes) for individual, classes in known.items()}
    for individual, classes in support.items():
        agreed = chosen.setdefault(individual, set())
        ranks = {
            class_iri: (
                -round(combine_confidence(places), 2),
                -len({place.document_id for place in places}),
                class_iri,
            )
            for class_iri, places in (classes.items() if len(classes) > 1 else ())
        }
        for class_iri in sorted(classes, key=ranks.__getitem__) if ranks else classes:
            if not any(rules.schema.are_disjoint(class_iri, iri) for iri in agreed):
                agreed.add(class_iri)
    return chosen


def _find_broken(
    findings: Sequence[Finding], rules: Rules, known: Mapping[str, Iterable[str]]
) -> list[Loss]:
    """The losses to shapes, once the classes of all individuals are known."""
    if not rules.constraints:
        return []
    classes = list_classes(findings)
    for individual, settled in known.items():
        classes[individual].update(settled)
    losses = []
    for finding in findings:
        if finding.prop is None:
            continue
        subject_classes = classes[finding.subject_id]
        if finding.literal is not None:
            value = finding.literal
            broken = rules.find_broken(subject_classes, finding.prop.iri, value, finding.prop.range)
        else:
            value = str(finding.object_id)
            broken = rules.find_missing(subject_classes, finding.prop.iri, classes[value])
        if broken is not None:
            losses.append(Loss(finding, "shape", f"{finding.prop.label} {value}: {broken}"))
    return losses


def _find_fault(finding: Finding, retained: _Retained, rules: Rules) -> tuple[str, str] | None:
    for individual, class_iri in finding.entailed:
        classes = retained.classes[individual]
        if class_iri not in classes:
            rival = min(iri for iri in classes if rules.schema.are_disjoint(class_iri, iri))
            return "disjoint_classes", f"it would be <{class_iri}> and is <{rival}>"
    faults = (_find_limit(e, finding, retained, rules) for e in _list_entailed(finding, rules))
    return next(filter(None, faults), None)


def _find_limit(
    entailed: tuple[str, str, str], finding: Finding, retained: _Retained, rules: Rules
) -> tuple[str, str] | None:
    """The axiom or maximum that an entailed statement violates: reason and detail."""
    iri, subject, value = entailed
    values = retained.values.get((iri, subject), {})
    inferred = finding.prop is None or iri not in (finding.prop.iri, finding.prop.inverse_of)
    most = rules.max_values(retained.classes.get(subject, ()), iri, inferred=inferred)
    if most is not None and value not in values and len(values) >= most:
        prop = rules.schema.property_by_iri.get(iri)
        reason = "functional_conflict" if prop and prop.is_functional else "too_many_values"
        if not values:
            return reason, f"<{iri}> may have no value here, not even {value}"
        winner, best = next(iter(values.items()))
        if value in retained.wider.get(winner, ()):
            return "wider_place", f"<{iri}> has {winner}, which lies in {value}"
        return reason, (
            f"<{iri}> has at most {most} value{'s' if most > 1 else ''}; kept {winner} "
            f"({best.confidence:.2f}), not {value} ({finding.confidence:.2f})"
        )
    stated = rules.schema.find_characteristics(iri)
    owner = retained.owners.get((iri, value), subject)
    if owner != subject and INVERSE_FUNCTIONAL_PROPERTY in stated:
        return "functional_conflict", f"<{iri}> is inverse functional; {value} is {owner}'s"
    if subject == value and IRREFLEXIVE_PROPERTY in stated:
        return "irreflexive", f"<{iri}> relates nothing to itself"
    if subject in retained.values.get((iri, value), {}) and ASYMMETRIC_PROPERTY in stated:
        return "asymmetric", f"<{iri}> holds in one direction; the other one is surer"
    if stated >= _STRICT_ORDER and subject in walk(
        [value], lambda node: retained.values.get((iri, node), ())
    ):
        return "circular", f"<{iri}> leads from {value} back to {subject}; the others are surer"
    return None


def list_classes(findings: Sequence[Finding]) -> dict[str, set[str]]:
    """The classes of each individual that findings state or entail."""
    classes: dict[str, set[str]] = defaultdict(set)
    for finding in findings:
        for individual, class_iri in finding.entailed:
            classes[individual].add(class_iri)
    return classes
