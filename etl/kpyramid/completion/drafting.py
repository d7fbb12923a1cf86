"""From a cluster of facts to a proposal."""

from collections import Counter
from collections.abc import Iterable, Sequence

from kpyramid.completion.columns import Places
from kpyramid.completion.types import GraphLayer, Proposal
from kpyramid.induction.checking import Named, fit_class
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.names import THING, XSD
from kpyramid.ontology.schema import Schema

LITERAL = "LITERAL"
_SAMPLE = 1000
"""Facts of a proposal, evenly spread, that tell its domain, range and agreement."""
_NUMBERS = ("gYear", "date", "integer", "decimal")
"""Datatypes tried on the literals of a cluster, the narrowest first."""
_MOST = 0.8
"""Share of a cluster's literals that must parse as a datatype."""


def draft_property(
    graph: GraphLayer, facts: Places, wordings: Sequence[str], score: float, schema: Schema
) -> Proposal:
    """The property that facts state, named by the first of its wordings."""
    sample = facts[:: max(1, len(facts) // _SAMPLE)].tolist()
    domain = find_class((graph.head_types[at] for at in sample), schema)
    range_iri = _find_range(graph, sample, schema)
    agreeing = sum(
        _fits(graph.heads[at], graph.head_types[at], domain, schema)
        and _fits(graph.tails[at], graph.tail_types[at], range_iri, schema)
        for at in sample
    )
    return Proposal(
        kind="property",
        label=wordings[0],
        definition=define(graph, facts),
        domain=domain,
        range=range_iri,
        phrases=tuple(sorted(set(wordings))),
        facts=tuple(facts.tolist()),
        score=score,
        agreement=agreeing / len(sample),
    )


def find_class(types: Iterable[str], schema: Schema) -> str:
    """The class that most of the typed entities have; owl:Thing when none is typed."""
    found = Counter(iri for t in types if (iri := schema.class_for_type(t)) is not None)
    return min(found, key=lambda iri: (-found[iri], iri)) if found else THING


def _find_range(graph: GraphLayer, sample: Sequence[int], schema: Schema) -> str:
    literals = [graph.tails[at] for at in sample if graph.tail_types[at] == LITERAL]
    if len(literals) * 2 <= len(sample):
        return find_class((graph.tail_types[at] for at in sample), schema)
    for name in _NUMBERS:
        parsed = sum(parse_literal(text, XSD + name) is not None for text in literals)
        if parsed >= _MOST * len(literals):
            return XSD + name
    return XSD + "string"


def _fits(name: str, entity_type: str, wanted: str, schema: Schema) -> bool:
    if wanted.startswith(XSD):
        return parse_literal(name, wanted) is not None
    if entity_type == LITERAL:
        return False
    return fit_class(Named("", name, entity_type), wanted, schema) is not None


def define(graph: GraphLayer, facts: Places) -> str:
    """A sentence with up to three of the facts."""
    said = dict.fromkeys(
        f"“{graph.heads[at]} {graph.wordings[at]} {graph.tails[at]}”" for at in facts[:20].tolist()
    )
    return f"As in {', '.join(list(said)[:3])}."
