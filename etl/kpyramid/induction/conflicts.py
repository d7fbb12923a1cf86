"""Which of several findings stay: what an ontology's axioms and shapes do not allow together."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from kpyramid.induction.checking import Candidate
from kpyramid.induction.evidence import Place, combine_confidence, order_places
from kpyramid.keys import content_id
from kpyramid.ontology.constraints import Rules
from kpyramid.ontology.names import (
    ASYMMETRIC_PROPERTY,
    INVERSE_FUNCTIONAL_PROPERTY,
    IRREFLEXIVE_PROPERTY,
)
from kpyramid.ontology.schema import OntologyProperty


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
        """Smaller is better: more confidence, more documents, earlier in its sentence, smaller key.

        Confidence is that of all places together, so support is in it: what three sentences
        state at 0.6 each is surer than what one states at 0.7. It is compared to two digits; of
        "born in Lima, Peru" the first place is the narrower one.
        """
        best = self.places[0]
        at = best.object.start - best.start if best.object else 0
        documents = len({place.document_id for place in self.places})
        return -round(self.confidence, 2), -documents, at, self.key

    @property
    def entailed(self) -> Iterable[tuple[str, str]]:
        """The memberships that it makes true: individual and class."""
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
    """Equal values and memberships as one finding each, with the places of all of them."""
    groups: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        groups[_key(candidate)].append(candidate)
    findings = []
    for key, group in sorted(groups.items()):
        first = group[0]
        places = order_places(candidate.place for candidate in group)
        findings.append(
            Finding(
                key,
                first.prop,
                first.class_iri,
                first.subject_id,
                first.object_id,
                first.object_class,
                first.literal,
                combine_confidence(candidate.place for candidate in group),
                places,
            )
        )
    return findings


def _key(c: Candidate) -> str:
    if c.prop is None:
        return content_id("instance", c.class_iri, None, c.subject_id, None, None)
    datatype = c.prop.range if c.prop.is_datatype else None
    value = c.object_id or c.literal
    return content_id("instance", c.class_iri, c.prop.iri, c.subject_id, value, datatype)


@dataclass
class _Kept:
    """What stays so far: the chosen classes of individuals, values by property and end."""

    classes: Mapping[str, set[str]]
    values: Counter[tuple[str, str]] = field(default_factory=Counter)
    first: dict[tuple[str, str], Finding] = field(default_factory=dict)
    owners: dict[tuple[str, str], Finding] = field(default_factory=dict)
    pairs: set[tuple[str, str, str]] = field(default_factory=set)

    def add(self, finding: Finding) -> None:
        if finding.prop is None:
            return
        iri, value = finding.prop.iri, str(finding.object_id or finding.literal)
        self.values[iri, finding.subject_id] += 1
        self.first.setdefault((iri, finding.subject_id), finding)
        self.owners.setdefault((iri, value), finding)
        self.pairs.add((iri, finding.subject_id, value))


def settle(
    findings: Iterable[Finding],
    rules: Rules,
    known: Mapping[str, Iterable[str]] = MappingProxyType({}),
) -> tuple[list[Finding], list[Loss]]:
    """The findings that may stand together, best first, and the others with what speaks against.

    Each in turn, by rank, stays if it agrees with all that stayed before it. What a shape refuses
    then makes room for what had lost to it. `known`: classes of individuals settled already.
    """
    left = sorted(findings, key=lambda f: f.rank)
    refused: list[Loss] = []
    while True:
        stay, losses = _settle_once(left, rules, known)
        broken = _find_broken(stay, rules, known)
        if not broken:
            return stay, refused + losses
        refused += broken
        gone = {loss.finding.key for loss in broken}
        left = [finding for finding in left if finding.key not in gone]


def _settle_once(
    findings: Sequence[Finding], rules: Rules, known: Mapping[str, Iterable[str]]
) -> tuple[list[Finding], list[Loss]]:
    kept = _Kept(_choose_classes(findings, rules, known))
    stay: list[Finding] = []
    losses: list[Loss] = []
    for finding in findings:
        fault = _find_fault(finding, kept, rules)
        if fault is None:
            kept.add(finding)
            stay.append(finding)
        else:
            losses.append(Loss(finding, *fault))
    return stay, losses


def _choose_classes(
    findings: Sequence[Finding], rules: Rules, known: Mapping[str, Iterable[str]]
) -> dict[str, set[str]]:
    """The classes of each individual that may stand together, by all that states or entails them.

    Of two disjoint ones the one with more confidence stays, then more documents, then the
    smaller IRI.
    """
    support: dict[str, dict[str, list[Place]]] = defaultdict(lambda: defaultdict(list))
    for finding in findings:
        for individual, class_iri in finding.entailed:
            support[individual][class_iri] += finding.places
    chosen = {individual: set(classes) for individual, classes in known.items()}
    for individual, classes in support.items():
        own = chosen.setdefault(individual, set())
        if len(classes) == 1 and not own:
            own.update(classes)
            continue
        ranks = {
            class_iri: (
                -round(combine_confidence(places), 2),
                -len({place.document_id for place in places}),
                class_iri,
            )
            for class_iri, places in classes.items()
        }
        for class_iri in sorted(classes, key=ranks.__getitem__):
            if not any(rules.schema.are_disjoint(class_iri, other) for other in own):
                own.add(class_iri)
    return chosen


def _find_broken(
    findings: Sequence[Finding], rules: Rules, known: Mapping[str, Iterable[str]]
) -> list[Loss]:
    """The values that a shape refuses, now that the classes of all individuals are known."""
    if not rules.constraints:
        return []
    classes = list_classes(findings)
    for individual, settled in known.items():
        classes[individual].update(settled)
    losses = []
    for finding in findings:
        if finding.prop is None:
            continue
        own = classes[finding.subject_id]
        if finding.literal is not None:
            value = finding.literal
            broken = rules.find_broken(own, finding.prop.iri, value, finding.prop.range)
        else:
            value = str(finding.object_id)
            broken = rules.find_missing(own, finding.prop.iri, classes[value])
        if broken is not None:
            losses.append(Loss(finding, "shape", f"{finding.prop.label} {value}: {broken}"))
    return losses


def _find_fault(finding: Finding, kept: _Kept, rules: Rules) -> tuple[str, str] | None:
    for individual, class_iri in finding.entailed:
        own = kept.classes[individual]
        if class_iri not in own:
            other = min(iri for iri in own if rules.schema.are_disjoint(class_iri, iri))
            return "disjoint_classes", f"it would be <{class_iri}> and is <{other}>"
    prop = finding.prop
    if prop is None:
        return None
    subject, value = finding.subject_id, str(finding.object_id or finding.literal)
    most = rules.max_values(kept.classes[subject], prop.iri)
    if most is not None and kept.values[prop.iri, subject] >= most:
        best = kept.first[prop.iri, subject]
        reason = "functional_conflict" if prop.is_functional else "too_many_values"
        winner = best.object_id or best.literal
        return reason, (
            f"<{prop.iri}> has at most {most} value{'s' if most > 1 else ''}; kept {winner} "
            f"({best.confidence:.2f}), not {value} ({finding.confidence:.2f})"
        )
    if (prop.iri, value) in kept.owners and rules.has(prop.iri, INVERSE_FUNCTIONAL_PROPERTY):
        owner = kept.owners[prop.iri, value].subject_id
        return "functional_conflict", f"<{prop.iri}> is inverse functional; {value} is {owner}'s"
    if subject == value and rules.has(prop.iri, IRREFLEXIVE_PROPERTY):
        return "irreflexive", f"<{prop.iri}> relates nothing to itself"
    if (prop.iri, value, subject) in kept.pairs and rules.has(prop.iri, ASYMMETRIC_PROPERTY):
        return "asymmetric", f"<{prop.iri}> holds in one direction; the other one is surer"
    return None


def list_classes(findings: Sequence[Finding]) -> dict[str, set[str]]:
    """The classes of each individual that findings state or entail."""
    classes: dict[str, set[str]] = defaultdict(set)
    for finding in findings:
        for individual, class_iri in finding.entailed:
            classes[individual].add(class_iri)
    return classes
