"""From the graph to the condensed graph: which fact stands for which, and what contradicts what."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from kpyramid.condensation.anchors import Anchor, Phrase, find_anchors, find_ranges
from kpyramid.condensation.graph import Column, Graph, find_shared_ends, read_values
from kpyramid.condensation.merging import (
    LITERAL,
    Compare,
    Contrary,
    Fact,
    Merger,
    list_contraries,
    merge_facts,
)
from kpyramid.condensation.values import Value
from kpyramid.embeddings.port import Embedder
from kpyramid.ontology.names import SYMMETRIC_PROPERTY
from kpyramid.ontology.schema import Schema
from kpyramid.settings import CondenseSettings

Stated = Mapping[str, Set[str]]
"""The properties that a wording states in words of the ontology."""
_Form = tuple[str, bool, bool]


@dataclass(frozen=True, slots=True, eq=False)
class Linked:
    """What lies near which anchor: `near[phrase_of[row]]` are a fact's anchors, nearest first."""

    near: Sequence[tuple[Anchor, ...]]
    phrase_of: Column

    def of(self, row: int) -> tuple[Anchor, ...]:
        """The anchors of a fact."""
        return self.near[int(self.phrase_of[row])]


@dataclass(frozen=True, slots=True, eq=False)
class Condensation:
    """`stands[row]`: the row of the fact that stands for a fact, itself if nothing else does.

    `how`: why, for each row. `apart`: facts of one pair of ends that no rule merged, where
    there are several.
    """

    stands: Column
    how: npt.NDArray[np.object_]
    apart: list[list[Merger]]
    contraries: list[Contrary]


def link_facts(
    graph: Graph, schema: Schema, settings: CondenseSettings, embedder: Embedder
) -> Linked:
    """The anchors that each fact is near to.

    Raises:
        InputError: the embedding of a wording is not finite.
    """
    ranges = sorted({prop.range for prop in schema.properties if prop.is_datatype})
    kinds: dict[str, int] = {}
    types = chain(
        graph.types, (LITERAL + " ".join(find_ranges(text, ranges)) for text in graph.texts)
    )
    kind_of = np.array([kinds.setdefault(kind, len(kinds)) for kind in types], dtype=np.int64)
    tails = np.where(graph.tails < 0, len(graph.types) + graph.literals, graph.tails)
    said = np.stack([graph.relations, kind_of[graph.heads], kind_of[tails]])
    found, phrase_of = np.unique(
        np.ravel_multi_index(said, (len(graph.wordings), len(kinds), len(kinds))),
        return_inverse=True,
    )
    names = list(kinds)
    columns = np.unravel_index(found, (len(graph.wordings), len(kinds), len(kinds)))
    phrases = [
        Phrase(graph.wordings[relation], names[head], names[tail])
        for relation, head, tail in zip(*(c.tolist() for c in columns), strict=True)
    ]
    return Linked(find_anchors(phrases, schema, settings, embedder), phrase_of)


def list_compared(graph: Graph) -> set[str]:
    """The wordings of facts that have both ends in common with others."""
    groups = find_shared_ends(graph, read_values(graph))
    return {graph.wordings[at] for rows in groups for at in graph.relations[rows].tolist()}


def condense_graph(
    graph: Graph, linked: Linked, stated: Stated, schema: Schema, compare: Compare
) -> Condensation:
    """The facts, merged with those of the same ends that say the same, or more around an anchor."""
    values = read_values(graph)
    forms = {p.iri: _find_form(p.iri, schema) for p in schema.properties}
    made = Condensation(np.arange(len(graph)), np.full(len(graph), "kept", dtype=object), [], [])
    for rows in find_shared_ends(graph, values):
        facts = _list_facts(rows.tolist(), graph, linked, values, stated, forms)
        mergers = merge_facts(facts, compare)
        for merger in mergers:
            for fact, how in merger.merged[1:]:
                made.stands[fact.place], made.how[fact.place] = merger.fact.place, how
        made.contraries.extend(list_contraries(mergers, compare))
        if len(mergers) > 1:
            made.apart.append(mergers)
    return made


def _list_facts(
    rows: Sequence[int],
    graph: Graph,
    linked: Linked,
    values: Sequence[Value],
    stated: Stated,
    forms: Mapping[str, _Form],
) -> list[Fact]:
    """The facts of one pair of ends, those first that will stand for others.

    The more precise of two values, then what the ontology says in these words, then what is
    told most often.
    """
    ranked = []
    first = min(int(graph.heads[row]) for row in rows)
    for row in rows:
        head, tail, relation = (
            int(column[row]) for column in (graph.heads, graph.tails, graph.relations)
        )
        wording, flipped = graph.wordings[relation], head != first
        anchors = [anchor.property_iri for anchor in linked.of(row)]
        value = values[graph.literals[row]] if tail < 0 else None
        fact = Fact(
            row,
            wording,
            flipped,
            (graph.types[head], graph.types[tail] if tail >= 0 else LITERAL),
            value,
            frozenset(_turn(forms[iri], flipped) for iri in anchors),
        )
        states = bool(stated.get(wording, frozenset()) & set(anchors))
        precision = len(value.rest) if value else 0
        ranked.append((-precision, not states, -graph.support[relation], wording, row, fact))
    return [entry[-1] for entry in sorted(ranked, key=lambda entry: entry[:-1])]


def _find_form(iri: str, schema: Schema) -> _Form:
    """How a property and its inverse are written alike: a name, whether turned, or both ways."""
    inverse = schema.property_by_iri[iri].inverse_of
    both = inverse == iri or SYMMETRIC_PROPERTY in schema.find_characteristics(iri)
    name = min(iri, inverse or iri)
    return name, iri != name, both


def _turn(form: _Form, flipped: bool) -> tuple[str, bool]:
    name, turned, both = form
    return name, False if both else turned != flipped
