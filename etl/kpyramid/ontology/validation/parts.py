"""Parts of the instances that no fact joins: one that passed, unchanged, is not judged again."""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

import pyoxigraph as ox

from kpyramid.keys import JsonValue, hash_value
from kpyramid.ontology import names as n

T = TypeVar("T")
Lines = Sequence[str]
"""Lines of N-Triples."""
Keyed = tuple[str, Lines]
"""A part of the instances, with a hash of what the schema says that bears on it."""
JOINING = {
    n.OWL + name for name in "hasKey hasValue oneOf topDataProperty topObjectProperty".split()
}
"""Terms of axioms by which facts that nothing joins may contradict one another."""
_SHACL = "http://www.w3.org/ns/shacl#"
_ACROSS = {_SHACL + name for name in "closed select ask inversePath targetNode".split()}
"""Terms of shapes that may read sources, or facts that nothing joins to their target."""


class Passed(Protocol):
    """Stores the keys of what passed, see `RowCache`."""

    def load(self, keys: Collection[str]) -> Mapping[str, bytes]:
        """The stored keys among these."""

    def store(self, rows: Mapping[str, bytes]) -> None:
        """Adds keys."""


def group_joined(
    items: Sequence[T], list_ends: Callable[[T], tuple[Hashable, Hashable]]
) -> list[list[T]]:
    """The items in groups that share no end, in order; an item joins its two ends."""
    first: dict[Hashable, Hashable] = {}

    def find(node: Hashable) -> Hashable:
        while (above := first.setdefault(node, node)) != node:
            first[node] = node = first[above]
        return node

    ends = [*map(list_ends, items)]
    for start, end in ends:
        first[find(start)] = find(end)
    groups: defaultdict[Hashable, list[T]] = defaultdict(list)
    for (start, _), item in zip(ends, items, strict=True):
        groups[find(start)].append(item)
    return [*groups.values()]


def list_parts(schema_turtle: str, instances_nt: str, shapes: Iterable[str]) -> list[Lines]:
    """The lines of our own instances in parts, without those of their sources.

    The first part is empty: it stands for the schema alone. All lines are one part where the schema
    or a shape reads sources or facts that nothing joins, or the schema is about an individual.
    """
    lines = [line for line in instances_nt.split("\n") if line]
    try:
        schema, shaped = _read([schema_turtle]), _read(shapes)
    except SyntaxError:  # the judge says where
        return [lines]
    named = {term.value for t in (*schema, *shaped) for term in t if isinstance(term, ox.NamedNode)}
    reads_kinds = any(t.object == _KIND for t in shaped)  # a path by way of a class, say
    if reads_kinds or named & (JOINING | _ACROSS) or any(t.startswith(_SOURCED) for t in named):
        return [lines]
    facts = [line for line in lines if not line.partition("> <")[2].startswith(_SOURCED)]
    if any(line.partition(" ")[0][1:-1] in named for line in facts):
        return [lines]
    return [[], *group_joined(facts, _list_ends)]


_KIND = ox.NamedNode(n.RDF_TYPE)
_SOURCED = n.PROV, n.DCT


def _read(texts: Iterable[str]) -> list[ox.Triple]:
    """The statements of some Turtle, but those about the ontology itself, such as its licence."""
    stated = [q.triple for text in texts for q in ox.parse(text, format=ox.RdfFormat.TURTLE)]
    headers = {t.subject for t in stated if t.object == ox.NamedNode(n.ONTOLOGY)}
    return [t for t in stated if t.subject not in headers]


def _list_ends(line: str) -> tuple[str, str]:
    """The subject of a line, and its object where that is an individual."""
    subject, _, rest = line.partition(" ")
    predicate, _, value = rest.partition(" ")
    joins = value.startswith("<") and predicate != f"<{n.RDF_TYPE}>"
    return subject, value.removesuffix(" .") if joins else subject


class Unjudged:
    """The parts of instances that a judge did not pass before.

    `left`: these parts, by key. `text`: their lines. `known`: what was stored with each other part.
    `subjects`: what those are about. `given`: what else the verdict depends on.
    """

    def __init__(self, given: JsonValue, parts: Iterable[Keyed], passed: Passed | None) -> None:
        base = hash_value(given)
        keyed = {hash_value([base, bears, *part]): part for bears, part in parts}
        self._passed = passed
        self.known = passed.load(keyed) if passed is not None else {}
        self.left = {key: part for key, part in keyed.items() if key not in self.known}
        self.text = "".join(sorted(f"{x}\n" for part in self.left.values() for x in part))
        self.subjects = {x.partition(" ")[0] for key in self.known for x in keyed[key]}

    def keep(self, stored: Mapping[str, bytes]) -> None:
        """Stores that parts passed, each with what is given for its key."""
        if self._passed is not None:
            self._passed.store(stored)
