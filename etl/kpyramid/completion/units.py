"""Facts of the graph by what they say of which types: `person was educated at organisation`."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kpyramid.completion.columns import Places, encode, group_rows, sum_by
from kpyramid.completion.types import Completion, GraphLayer, OntologyLayer, Pair
from kpyramid.extraction.normal import MODALS, normalise_relation
from kpyramid.numerics.moments import Array
from kpyramid.ontology.schema import Schema

_EMPTY = frozenset({"be", "be a", "have", "do", "include", "make", "become"})


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Distinct (type of head, wording, type of tail) of the graph, as columns of equal length u.

    `unit_of`: the unit of each fact, shape (n,). `facts`, `new`: how many facts say it, and how
    many of these state no value that the ontology has already. `missing`: mean priority rank of
    its facts, 0 for the lowest to 1 for the highest.
    """

    heads: list[str]
    wordings: list[str]
    tails: list[str]
    unit_of: Places
    facts: Places
    new: Places
    missing: Array
    region: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.wordings)


def list_units(graph: GraphLayer, ontology: OntologyLayer, compared: Completion) -> Units:
    """The units of the facts."""
    heads, wordings, tails = map(encode, (graph.head_types, graph.wordings, graph.tail_types))
    (head, wording, tail), unit_of, facts = group_rows(heads.codes, wordings.codes, tails.codes)
    count = len(facts)
    stated = find_stated(graph, ontology)
    rank = np.empty(len(compared.sign))
    signed = compared.sign * compared.log_magnitude
    order = np.lexsort((signed, compared.sign))
    rank[order] = (np.arange(len(order)) + 0.5) / max(len(order), 1)
    return Units(
        [heads.words[i] for i in head.tolist()],
        [wordings.words[i] for i in wording.tolist()],
        [tails.words[i] for i in tail.tolist()],
        unit_of,
        facts,
        np.bincount(unit_of[~stated], minlength=count),
        sum_by(unit_of, rank[compared.phrase_of], count) / np.maximum(facts, 1),
        np.bincount(unit_of[compared.region[compared.phrase_of]], minlength=count) > 0,
    )


def find_stated(graph: GraphLayer, ontology: OntologyLayer) -> npt.NDArray[np.bool_]:
    """Which facts join two ends that are subject and value already, in either direction."""
    known: set[Pair] = set(ontology.pairs)
    known |= {(b, a) for a, b in known}
    return np.fromiter((pair in known for pair in graph.pairs), dtype=bool, count=len(graph))


def says_something(wording: str) -> bool:
    """Whether a wording carries a meaning of its own, and states it as a fact."""
    form = normalise_relation(wording)
    return (
        form.key not in _EMPTY
        and form.lemmas[0] not in MODALS
        and any(word.isalpha() and len(word) > 2 for word in form.lemmas)
    )


def word_type(entity_type: str, schema: Schema) -> str:
    """The label of the class whose instances carry a type; empty where none does."""
    iri = schema.class_for_type(entity_type)
    found = schema.class_by_iri.get(iri) if iri else None
    return found.label if found else ""
