"""Axioms: the statements of an ontology that no field of a class or property holds.

Disjointness, restrictions, property chains, mappings to other vocabularies, the header's licence:
all of it is kept as canonical N-Triples, so that nothing is lost between reading and writing.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

import pyoxigraph as ox

from kpyramid.errors import InputError
from kpyramid.keys import ID_DIGITS, hash_bytes
from kpyramid.ontology import names as n
from kpyramid.ontology.turtle import Graph

Subject = ox.NamedNode | ox.BlankNode | ox.Triple
_MOST_NAMED = 3
CHARACTERISTICS = {
    n.FUNCTIONAL_PROPERTY,
    n.INVERSE_FUNCTIONAL_PROPERTY,
    n.SYMMETRIC_PROPERTY,
    n.ASYMMETRIC_PROPERTY,
    n.TRANSITIVE_PROPERTY,
    n.REFLEXIVE_PROPERTY,
    n.IRREFLEXIVE_PROPERTY,
}


def write_axioms(triples: Iterable[ox.Triple]) -> tuple[str, ...]:
    """Sorted distinct N-Triples lines; blank nodes are named by their statements and referrers.

    Raises:
        InputError: blank nodes that refer to each other in a circle, or a statement as a term.
    """
    return tuple(sorted({str(triple) for triple in name_blank_nodes(list(triples))}))


def read_axioms(lines: Iterable[str]) -> list[ox.Triple]:
    """The statements of N-Triples lines, in their order."""
    text = "".join(f"{line} .\n" for line in lines)
    return [quad.triple for quad in ox.parse(text, format=ox.RdfFormat.N_TRIPLES)]


def name_blank_nodes(triples: Sequence[ox.Triple]) -> list[ox.Triple]:
    """The statements with each blank node named by a hash: equal graphs get equal names.

    Hashes go first from the leaves up, over a node's statements; then from the roots down, over its
    referrers, so that restrictions of equal content stay apart when different classes state them.
    Equal nodes with equal referrers become one, with the same meaning.

    Raises:
        InputError: blank nodes that refer to each other in a circle, or a statement as a term.
    """
    stated: defaultdict[str, list[tuple[str, ox.Triple]]] = defaultdict(list)
    users: defaultdict[str, list[tuple[Subject, str]]] = defaultdict(list)
    for triple in triples:
        for term in (triple.subject, triple.object):
            if isinstance(term, ox.Triple):
                raise InputError(f"a statement about the statement {term}: only plain RDF is kept")
            if isinstance(term, ox.BlankNode):
                stated[term.value]  # a node that is only referred to says nothing, but is there
        if isinstance(triple.subject, ox.BlankNode):
            stated[triple.subject.value].append((triple.predicate.value, triple))
        if isinstance(triple.object, ox.BlankNode):
            users[triple.object.value].append((triple.subject, triple.predicate.value))
    if not stated:
        return list(triples)
    order = _sort_leaves_first(stated)
    content: dict[str, str] = {}
    for node in order:
        lines = {f"{p} {_show(t.object, content)}" for p, t in stated[node]}
        content[node] = _hash_lines(lines)
    name: dict[str, str] = {}
    for node in reversed(order):
        lines = {f"{p} {_show(s, name)}" for s, p in users[node]}
        name[node] = "b" + _hash_lines({content[node], *lines})
    nodes = {node: ox.BlankNode(text) for node, text in name.items()}
    return [
        ox.Triple(
            nodes[t.subject.value] if isinstance(t.subject, ox.BlankNode) else t.subject,
            t.predicate,
            nodes[t.object.value] if isinstance(t.object, ox.BlankNode) else t.object,
        )
        for t in triples
    ]


def _hash_lines(lines: Iterable[str]) -> str:
    return hash_bytes("\n".join(sorted(lines)).encode("utf-8"))[:ID_DIGITS]  # no term has a \n


def _show(term: object, names: Mapping[str, str]) -> str:
    return f"_:{names[term.value]}" if isinstance(term, ox.BlankNode) else str(term)


def _sort_leaves_first(stated: Mapping[str, Sequence[tuple[str, ox.Triple]]]) -> list[str]:
    """The blank nodes, each after all nodes it refers to."""
    ends = {
        node: [t.object.value for _, t in statements if isinstance(t.object, ox.BlankNode)]
        for node, statements in stated.items()
    }
    try:
        return [*TopologicalSorter(ends).static_order()]
    except CycleError as e:
        circle = {*e.args[1]}
        left = sorted({p for node in circle for p, _ in stated[node]})
        raise InputError(
            f"{len(circle)} blank nodes refer to each other in a circle (by "
            f"{', '.join(left[:_MOST_NAMED])}): they cannot be told apart; give one of them an IRI"
        ) from e


@dataclass(frozen=True)
class Limits:
    """Limits from axioms: disjoint groups of classes, and greatest numbers of values.

    `most` is by class and property; `characteristics` are a property's further types; `wider` are
    the properties that a property implies.
    """

    disjoint: tuple[frozenset[str], ...]
    most: Mapping[tuple[str, str], int]
    characteristics: Mapping[str, frozenset[str]]
    wider: Mapping[str, frozenset[str]]

    @cached_property
    def _groups(self) -> dict[str, set[frozenset[str]]]:
        by_iri: dict[str, set[frozenset[str]]] = {}
        for group in self.disjoint:
            for iri in group:
                by_iri.setdefault(iri, set()).add(group)
        return by_iri

    def are_disjoint(self, first: AbstractSet[str], second: AbstractSet[str]) -> bool:
        """Whether two classes, each given with all classes above it, share no instance."""
        if not self.disjoint:
            return False
        groups = {group for iri in first for group in self._groups.get(iri, ())}
        return any(second & group and len((first | second) & group) > 1 for group in groups)


def find_limits(triples: Iterable[ox.Triple]) -> Limits:
    """Disjointness of named classes, upper cardinalities, and characteristics of properties."""
    graph = Graph(triples)
    disjoint: set[frozenset[str]] = set()
    most: dict[tuple[str, str], int] = {}
    characteristics: dict[str, frozenset[str]] = {}
    wider: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
    for subject in graph.list_subjects():
        for value in graph.find(subject, n.DISJOINT_WITH):
            disjoint.add(_keep_named((subject, value)))
        lists = graph.find(subject, n.DISJOINT_UNION_OF)
        if n.ALL_DISJOINT_CLASSES in graph.find_types(subject):
            lists = graph.find(subject, n.MEMBERS)
        disjoint.update(_keep_named(graph.list_members(head)) for head in lists)
        if isinstance(subject, ox.BlankNode):
            continue
        iri = subject.value
        equal = frozenset(graph.find_iris(iri, n.OWL + "equivalentProperty"))
        wider[iri] |= equal.union(graph.find_iris(iri, n.SUBPROPERTY))
        for same in equal:
            wider[same] |= {iri}
        if kinds := graph.find_types(iri) & CHARACTERISTICS:
            characteristics[iri] = frozenset(kinds)
        for bound in (*graph.find(iri, n.SUBCLASS), *graph.find(iri, n.EQUIVALENT_CLASS)):
            if isinstance(bound, ox.BlankNode):
                for prop, count in _read_bound(bound, graph):
                    most[iri, prop] = min(count, most.get((iri, prop), count))
    groups = sorted((group for group in disjoint if len(group) > 1), key=sorted)
    return Limits(tuple(groups), most, characteristics, dict(wider))


def _keep_named(terms: Iterable[object]) -> frozenset[str]:
    return frozenset(term.value for term in terms if isinstance(term, ox.NamedNode))


def _read_bound(restriction: ox.BlankNode, graph: Graph) -> Iterator[tuple[str, int]]:
    """The property and the upper bound of a restriction; none for qualified ones."""
    for predicate in (n.OWL + "maxCardinality", n.OWL + "cardinality"):
        for count in graph.find(restriction, predicate):
            if isinstance(count, ox.Literal) and count.value.isdecimal():
                for prop in graph.find_iris(restriction, n.OWL + "onProperty"):
                    yield prop, int(count.value)
