"""What adopting proposals brings: instances from all facts, and how far the facts agree."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from kpyramid.induction.checking import Candidate, Named
from kpyramid.induction.conflicts import Finding, Loss
from kpyramid.induction.kinds import Kinds
from kpyramid.ontology.constraints import Rules
from kpyramid.ontology.schema import OntologyProperty, Schema
from kpyramid.stages.graph import Graph
from kpyramid.stages.instances import make_instances, make_rejects
from kpyramid.stages.stated import NamedTriple, index_phrases, list_copulas, read_facts
from kpyramid.stages.tables import Row


@dataclass(frozen=True, slots=True)
class Gain:
    """Instances, rejects, and the ids of the facts that fit what was adopted or clash with it.

    `fitting`, `clashing`: by the IRI of a class or property. `reasons`: of the clashes.
    """

    made: list[Row]
    rejects: list[Row]
    fitting: Mapping[str, set[str]]
    clashing: Mapping[str, set[str]]
    reasons: Mapping[str, set[str]]


def find_gain(
    rows: Sequence[Row],
    graph: Graph,
    rules: Rules,
    kinds: Kinds,
    known: Mapping[str, set[str]],
    read_settled: Callable[[Collection[str]], Sequence[Finding]],
) -> Gain:
    """The instances that adopted rows of `proposals` have in the graph.

    `rules` are those of the ontology with the rows in it, `kinds` its classes by their wordings.
    `known`: classes of individuals that stand already; `read_settled` gives the values that stand
    of some of them.
    """
    grown = rules.schema
    classes = {str(row["iri"]) for row in rows if row["kind"] == "class"}
    index = index_rows([row for row in rows if row["kind"] == "property"], grown)
    candidates: list[Candidate] = []
    rejects: list[Row] = []
    filed: dict[str, set[str]] = defaultdict(set)
    for facts in graph.walk_facts(graph.find_filed(kinds, classes)):
        for member in list_copulas(facts, _name_ends(facts, known, filed), kinds, grown):
            if member.class_iri in classes:
                candidates.append(member)
                filed[member.subject_id].add(member.class_iri)
    for facts in graph.walk_facts(graph.find_stated(index.keys())):
        named = _name_ends(facts, known, filed)
        values, refused = read_facts("complete", facts, named, index, grown, kinds)
        candidates += values
        rejects += refused
    touched = {end for c in candidates for end in (c.subject_id, c.object_id) if end}
    classed = {key: known[key] for key in touched if key in known}
    made, losses = make_instances(candidates, rules, classed, read_settled(touched))
    return Gain(
        made,
        [*rejects, *make_rejects("complete", losses, graph.names)],
        _group_fitting(candidates),
        *_group_clashing(losses),
    )


def _name_ends(
    facts: Iterable[NamedTriple], known: Mapping[str, set[str]], filed: Mapping[str, set[str]]
) -> dict[str, Named]:
    """The individuals at the ends of facts by id, with the classes that are known of them."""
    ends: dict[str, tuple[str, str]] = {}
    for fact in facts:
        ends[fact.head_id] = fact.head, fact.head_type
        if fact.tail_id is not None:
            ends[fact.tail_id] = fact.tail, fact.tail_type
    nothing: set[str] = set()
    return {
        key: Named(key, *end, frozenset(known.get(key, nothing) | filed.get(key, nothing)))
        for key, end in ends.items()
    }


def index_rows(rows: Iterable[Row], grown: Schema) -> dict[str, list[OntologyProperty]]:
    """The properties that the rows' own wordings state, by normal form; a name alone is none."""
    found: dict[str, dict[str, OntologyProperty]] = defaultdict(dict)
    for row in rows:  # two rows may name one property
        prop = grown.property_by_iri[str(row["iri"])]
        first, *others = cast("list[str]", row["phrases"])
        for form in index_phrases([replace(prop, label=first, alt_labels=tuple(others))]):
            found[form][prop.iri] = prop
    return {form: [props[iri] for iri in sorted(props)] for form, props in found.items()}


def _group_fitting(candidates: Iterable[Candidate]) -> dict[str, set[str]]:
    fitting: dict[str, set[str]] = defaultdict(set)
    for candidate in candidates:
        iri = candidate.prop.iri if candidate.prop else candidate.class_iri
        fitting[iri].add(candidate.place.source)
    return fitting


def _group_clashing(
    losses: Iterable[Loss],
) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    clashing: dict[str, set[str]] = defaultdict(set)
    reasons: dict[str, set[str]] = defaultdict(set)
    for loss in losses:
        iri = loss.finding.prop.iri if loss.finding.prop else loss.finding.class_iri
        clashing[iri] |= {place.source for place in loss.finding.places}
        reasons[iri].add(loss.reason.replace("_", " "))
    return clashing, reasons
