"""From facts to a proposal."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from kpyramid.completion.columns import Places
from kpyramid.completion.types import GraphLayer, Proposal
from kpyramid.completion.units import LITERAL, Mask
from kpyramid.induction.checking import Named, fit_class
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.names import THING, XSD
from kpyramid.ontology.schema import Schema
from kpyramid.ontology.wording import name_class, name_range

LEAST = 0.5
"""Share of a proposal's facts that fit its domain and range: else those that fit are all it has."""
_SAMPLE = 1000
"""Facts of a proposal, evenly spread, that tell its domain and range."""
_NUMBERS = ("gYear", "date", "integer", "decimal")
"""Datatypes tried on the literals of a cluster, the narrowest first."""
_MOST = 0.8
"""Share of a cluster's literals that must parse as a datatype."""

End = tuple[str, str]
"""Name and type."""


class Facts:
    """Facts of a graph, each read in the direction of its proposal."""

    def __init__(self, graph: GraphLayer, turned: Mask) -> None:
        self._graph = graph
        self._turned = turned

    def read(self, at: int) -> tuple[End, End]:
        """Subject and value of a fact."""
        graph = self._graph
        head = graph.heads[at], graph.head_types[at]
        tail = graph.tails[at], graph.tail_types[at]
        return (tail, head) if self._turned[at] else (head, tail)

    def is_turned(self, at: int) -> bool:
        """Whether its words read the other way."""
        return bool(self._turned[at])

    def word(self, at: int) -> str:
        """Its wording."""
        return self._graph.wordings[at]


def draft_property(
    facts: Facts, places: Places, score: float, schema: Schema, least: int
) -> Proposal | None:
    """The property that facts state, named by their most frequent wording.

    A fact that reads the other way belongs to it only if it fits domain and range; where fewer than
    half of all do, so do the others. None where fewer than `least` are left. The score falls with
    what is left; the agreement is that of all, by the types of both ends: one that the recogniser
    could not place, and that might be anything, agrees with nothing.
    """
    sample = places[:: max(1, len(places) // _SAMPLE)].tolist()
    ends = [facts.read(at) for at in sample]
    domain = find_class((head[1] for head, _ in ends), schema)
    range_iri = _find_range([tail for _, tail in ends], schema)
    fits = [_fits(h, domain, schema) and _fits(t, range_iri, schema) for h, t in ends]
    sure = [_fits(h, domain, schema, False) and _fits(t, range_iri, schema, False) for h, t in ends]
    fitting = sum(fits) / len(fits)
    unfit = [
        at
        for at in places.tolist()
        if (facts.is_turned(at) or fitting < LEAST)
        and not _fit_both(facts.read(at), domain, range_iri, schema)
    ]
    stated = len(places)
    places = np.setdiff1d(places, unfit)
    straight = [at for at in places.tolist() if not facts.is_turned(at)]
    if len(places) < least or not straight:
        return None
    words = Counter(facts.word(at) for at in straight)
    label = min(words, key=lambda word: (-words[word], word))
    return Proposal(
        kind="property",
        label=label,
        # No facts: a definition becomes part of the schema, which readers see who may not see the
        # documents that state them.
        definition=f"“{label}” ({name_class(domain, schema)} → {name_range(range_iri, schema)}).",
        domain=domain,
        range=range_iri,
        phrases=tuple(sorted(words)),
        facts=tuple(places.tolist()),
        score=score * len(places) / stated,
        agreement=sum(sure) / len(sure),
    )


def find_class(types: Iterable[str], schema: Schema) -> str:
    """The class that most of the typed entities have; owl:Thing when none is typed."""
    found = Counter(iri for t in types if (iri := schema.class_for_type(t)) is not None)
    return min(found, key=lambda iri: (-found[iri], iri)) if found else THING


def _find_range(ends: Sequence[End], schema: Schema) -> str:
    literals = [name for name, entity_type in ends if entity_type == LITERAL]
    if len(literals) * 2 <= len(ends):
        return find_class((entity_type for _, entity_type in ends), schema)
    for name in _NUMBERS:
        parsed = sum(parse_literal(text, XSD + name) is not None for text in literals)
        if parsed >= _MOST * len(literals):
            return XSD + name
    return XSD + "string"


def _fit_both(ends: tuple[End, End], domain: str, range_iri: str, schema: Schema) -> bool:
    return _fits(ends[0], domain, schema) and _fits(ends[1], range_iri, schema)


def _fits(end: End, wanted: str, schema: Schema, guess: bool = True) -> bool:
    name, entity_type = end
    if wanted.startswith(XSD):
        return parse_literal(name, wanted) is not None
    if entity_type == LITERAL:
        return False
    return fit_class(Named("", name, entity_type), wanted, schema, guess=guess) is not None
