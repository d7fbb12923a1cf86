"""A few thousand statements that can be looked up by subject and changed."""

from collections import Counter
from collections.abc import Iterable, Iterator

import pyoxigraph as ox

from kpyramid.ontology.names import RDF_FIRST, RDF_REST, RDF_TYPE
from kpyramid.ontology.turtle import Object

Node = ox.NamedNode | ox.BlankNode


class Graph:
    """Statements by subject and predicate; the order in which they came is kept."""

    def __init__(self, triples: Iterable[ox.Triple]) -> None:
        self._said: dict[Node, dict[str, dict[Object, None]]] = {}
        self._users: Counter[Object] = Counter()
        for triple in triples:
            if not isinstance(triple.subject, ox.Triple):
                self.add(triple.subject, triple.predicate.value, triple.object)

    def __iter__(self) -> Iterator[ox.Triple]:
        for subject, said in self._said.items():
            for predicate, values in said.items():
                for value in values:
                    yield ox.Triple(subject, ox.NamedNode(predicate), value)

    def add(self, subject: Node, predicate: str, value: Object) -> None:
        """States it."""
        values = self._said.setdefault(subject, {}).setdefault(predicate, {})
        if value not in values:
            values[value] = None
            self._users[value] += 1

    def remove(self, subject: Node, predicate: str, value: Object | None = None) -> None:
        """Withdraws one value, or all; what only a withdrawn blank node said goes too."""
        values = self._said.get(subject, {}).get(predicate, {})
        gone = [v for v in values if value is None or v == value]
        for each in gone:
            del values[each]
        while gone:
            node = gone.pop()
            self._users[node] -= 1
            if isinstance(node, ox.BlankNode) and not self._users[node]:
                gone += [v for said in self._said.pop(node, {}).values() for v in said]

    def find(self, subject: Node, predicate: str) -> list[Object]:
        """The values, in the order they came."""
        return list(self._said.get(subject, {}).get(predicate, ()))

    def find_iris(self, subject: Node, predicate: str) -> list[str]:
        """The named values, sorted."""
        return sorted(v.value for v in self.find(subject, predicate) if isinstance(v, ox.NamedNode))

    def find_types(self, subject: Node) -> set[str]:
        """The named types."""
        return {*self.find_iris(subject, RDF_TYPE)}

    def find_texts(self, subject: Node, predicate: str) -> list[str]:
        """The texts in English or in no stated language, sorted; blank ones left out."""
        literals = (v for v in self.find(subject, predicate) if isinstance(v, ox.Literal))
        english = {v.value for v in literals if (v.language or "en").lower().split("-")[0] == "en"}
        return sorted(text for text in english if text.strip())

    def list_subjects(self) -> list[Node]:
        """All subjects, in the order they came."""
        return list(self._said)

    def list_predicates(self, subject: Node) -> list[str]:
        """What is said of a subject."""
        return [p for p, values in self._said.get(subject, {}).items() if values]

    def find_typed(self, *types: str) -> list[str]:
        """The named subjects of one of these types, sorted."""
        wanted = {ox.NamedNode(t) for t in types}
        return sorted(
            s.value
            for s, said in self._said.items()
            if isinstance(s, ox.NamedNode) and wanted & said.get(RDF_TYPE, {}).keys()
        )

    def list_members(self, head: Object) -> list[Object]:
        """The members of an RDF list."""
        members: list[Object] = []
        seen: set[Object] = set()
        while isinstance(head, Node) and head not in seen:
            seen.add(head)
            first = self.find(head, RDF_FIRST)
            if not first:
                break
            members.append(first[0])
            rest = self.find(head, RDF_REST)
            if not rest:
                break
            head = rest[0]
        return members
