"""One domain and one range for each property, where an ontology from outside has none or many."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Protocol

import pyoxigraph as ox

from kpyramid.ontology import names as n
from kpyramid.ontology.foreign.graph import Graph
from kpyramid.ontology.literals import DATATYPES
from kpyramid.ontology.turtle import Object

_OBJECT, _DATA = n.OBJECT_PROPERTY, n.DATATYPE_PROPERTY
_CLASSES = {n.CLASS, n.RDFS + "Class"}
_ONLY_OBJECTS = (
    n.SYMMETRIC_PROPERTY,
    n.ASYMMETRIC_PROPERTY,
    n.TRANSITIVE_PROPERTY,
    n.REFLEXIVE_PROPERTY,
    n.IRREFLEXIVE_PROPERTY,
    n.INVERSE_FUNCTIONAL_PROPERTY,
)
_NEAREST = {
    "dateTime": "date",
    "dateTimeStamp": "date",
    "short": "int",
    "byte": "int",
    "unsignedLong": "nonNegativeInteger",
    "unsignedInt": "nonNegativeInteger",
    "unsignedShort": "nonNegativeInteger",
    "unsignedByte": "nonNegativeInteger",
    "negativeInteger": "integer",
    "nonPositiveInteger": "integer",
    "real": "decimal",
    "rational": "decimal",
}
"""The datatype whose values can be checked and come nearest; any other is taken as a string."""
_WIDER = {
    "positiveInteger": "nonNegativeInteger",
    "nonNegativeInteger": "integer",
    "int": "long",
    "long": "integer",
    "integer": "decimal",
}


class Notes(Protocol):
    """Where changes and contradictions are noted."""

    problems: list[str]

    def add(self, kind: str, subject: object, detail: str) -> None:
        """Notes a change."""


def settle_kinds(graph: Graph, notes: Notes) -> None:
    """Each property becomes either an object or a datatype property."""
    object_only = graph.find_typed(*_ONLY_OBJECTS)
    for iri in sorted(
        {
            *graph.find_typed(_OBJECT, _DATA, n.RDF + "Property", n.FUNCTIONAL_PROPERTY),
            *object_only,
        }
    ):
        node = ox.NamedNode(iri)
        stated = {*graph.find_iris(node, n.RDF_TYPE)}
        kinds = stated & {_OBJECT, _DATA}
        if iri.startswith((n.RDF, n.RDFS, n.OWL)) or (
            not kinds and n.ANNOTATION_PROPERTY in stated
        ):
            continue
        shown = _find_kinds(graph, node)
        if len(shown) > 1:
            ranges = ", ".join(str(v) for v in graph.find(node, n.RANGE))
            notes.problems.append(
                f"<{iri}>: its ranges {ranges} are a class and a datatype, which share no value; "
                "remove one of them"
            )
            graph.remove(node, n.RANGE)  # the ontology is refused; one message is enough
            continue
        if not shown and len(kinds) > 1:
            notes.problems.append(
                f"<{iri}>: an object and a datatype property, and no range tells which; remove one"
            )
            continue
        wanted = next(iter(shown or kinds or ({_OBJECT} if iri in object_only else set())), _OBJECT)
        if kinds == {wanted}:
            continue
        for kind in kinds:
            graph.remove(node, n.RDF_TYPE, ox.NamedNode(kind))
        graph.add(node, n.RDF_TYPE, ox.NamedNode(wanted))
        name = wanted.rpartition("#")[2]
        if not kinds:
            notes.add("property declared", f"<{iri}>", f"as owl:{name}")
        else:
            was = " and ".join(sorted(k.rpartition("#")[2] for k in kinds))
            notes.add("kind settled", f"<{iri}>", f"it was {was}; its range says owl:{name}")


def _find_kinds(graph: Graph, node: ox.NamedNode) -> set[str]:
    """What its ranges say it is: nothing, one kind, or both; undeclared ones say nothing."""
    kinds = set()
    for value in graph.find(node, n.RANGE):
        if is_datatype(graph, value):
            kinds.add(_DATA)
        elif not isinstance(value, ox.NamedNode) or graph.find_types(value) & _CLASSES:
            kinds.add(_OBJECT)
    return kinds


def is_datatype(graph: Graph, value: Object) -> bool:
    """Whether a range is a datatype, named or not."""
    if isinstance(value, ox.NamedNode):
        local = value.value.rpartition("#")[2]
        if value.value.startswith((n.XSD, n.RDF)) or value.value == n.RDFS + "Literal":
            return True
        if value.value.startswith(n.OWL):
            return local in ("real", "rational")
    if isinstance(value, ox.NamedNode | ox.BlankNode):
        types = graph.find_iris(value, n.RDF_TYPE)
        if n.RDFS + "Datatype" in types or n.OWL + "DataRange" in types:
            return True
        if graph.find(value, n.OWL + "onDatatype"):
            return True
        for head in (*graph.find(value, n.UNION_OF), *graph.find(value, n.OWL + "oneOf")):
            members = graph.list_members(head)
            return any(
                isinstance(m, ox.Literal)
                or (isinstance(m, ox.NamedNode) and m.value.startswith(n.XSD))
                for m in members
            )
    return False


def mend_ends(graph: Graph, notes: Notes) -> None:
    """One domain and one range for each property, and at most one inverse."""
    ends = _Ends(graph, notes)
    objects = {*graph.find_typed(_OBJECT)}
    for iri in sorted({*objects, *graph.find_typed(_DATA)}):
        _mend_inverse(graph, notes, iri, objects)
    # Looked up before anything is filled in: what was assumed must not be inherited.
    missing = {
        (iri, predicate): ends.find_inherited(iri, predicate)
        for iri in sorted({*objects, *graph.find_typed(_DATA)})
        for predicate in (n.DOMAIN, n.RANGE)
        if not graph.find(ox.NamedNode(iri), predicate)
    }
    for iri in sorted({*objects, *graph.find_typed(_DATA)}):
        ends.mend(iri, n.DOMAIN, missing, is_data=False)
        ends.mend(iri, n.RANGE, missing, is_data=iri not in objects)


def _mend_inverse(graph: Graph, notes: Notes, iri: str, objects: set[str]) -> None:
    node = ox.NamedNode(iri)
    inverses = graph.find_iris(node, n.INVERSE_OF)
    usable = [other for other in inverses if other in objects and iri in objects]
    for other in inverses:
        if other not in usable[:1]:
            why = "another one is kept" if other in usable else "it is no object property here"
            graph.remove(node, n.INVERSE_OF, ox.NamedNode(other))
            notes.add("inverse dropped", f"<{iri}>", f"<{other}>: {why}")


class _Ends:
    def __init__(self, graph: Graph, notes: Notes) -> None:
        self._graph, self._notes = graph, notes
        self._classes = {*graph.find_typed(n.CLASS)}

    @cached_property
    def _disjoint(self) -> set[frozenset[str]]:
        return {
            frozenset((iri, other))
            for iri in self._classes
            for other in self._graph.find_iris(ox.NamedNode(iri), n.DISJOINT_WITH)
        }

    def find_inherited(self, iri: str, predicate: str) -> tuple[str, str] | None:
        """The nearest end that a super-property or an inverse states, and which does."""
        seen, queue = {iri}, [(iri, predicate)]
        for current, wanted in queue:  # grows as it goes
            node = ox.NamedNode(current)
            found = self._graph.find(node, wanted)
            if current != iri and len(found) == 1 and isinstance(found[0], ox.NamedNode):
                return found[0].value, current
            other = n.RANGE if wanted == n.DOMAIN else n.DOMAIN
            steps = [(i, other) for i in self._graph.find_iris(node, n.INVERSE_OF)]
            steps += [(s, wanted) for s in self._graph.find_iris(node, n.SUBPROPERTY)]
            for step in steps:
                if step[0] not in seen:
                    seen.add(step[0])
                    queue.append(step)
        return None

    def mend(
        self,
        iri: str,
        predicate: str,
        missing: Mapping[tuple[str, str], tuple[str, str] | None],
        *,
        is_data: bool,
    ) -> None:
        """States exactly one end, of those that are stated, inherited, or the widest."""
        node = ox.NamedNode(iri)
        stated = self._graph.find(node, predicate)
        name = predicate.rpartition("#")[2]
        if not stated:
            found = missing.get((iri, predicate))
            if found and self._fits(found[0], is_data=is_data):
                end, why = found[0], f"from <{found[1]}>"
                end = self._check_datatype(ox.NamedNode(end)) if is_data else end
            else:
                end, why = (n.XSD + "string" if is_data else n.THING), "none was stated"
            self._notes.add(f"{name} added", f"<{iri}>", f"<{end}>, {why}")
        elif is_data:
            end = self._choose_datatype(iri, stated)
        else:
            end = self._choose_class(iri, predicate, stated)
        if stated != [ox.NamedNode(end)]:
            self._graph.remove(node, predicate)
            self._graph.add(node, predicate, ox.NamedNode(end))

    def _fits(self, end: str, *, is_data: bool) -> bool:
        datatype = is_datatype(self._graph, ox.NamedNode(end))
        return datatype if is_data else end in self._classes or end == n.THING

    def _choose_datatype(self, iri: str, stated: Sequence[Object]) -> str:
        chosen = sorted({self._check_datatype(value) for value in stated})
        narrowest = [
            c for c in chosen if all(o in (c, *_list_wider(c), n.RDFS + "Literal") for o in chosen)
        ]
        if not narrowest:
            self._notes.problems.append(
                f"<{iri}>: its ranges {', '.join(chosen)} share no value; remove all but one"
            )
        end = narrowest[0] if narrowest else chosen[0]
        if stated != [ox.NamedNode(end)]:
            detail = f"<{end}> for {', '.join(sorted(self._show(v) for v in stated))}"
            self._notes.add("datatype replaced", f"<{iri}>", detail)
        return end

    def _check_datatype(self, value: Object) -> str:
        """The datatype itself if its values can be checked, else what it is made of, or nearest."""
        seen: set[Object] = set()
        while isinstance(value, ox.NamedNode | ox.BlankNode) and value not in seen:
            seen.add(value)
            if isinstance(value, ox.NamedNode):
                if value.value in DATATYPES:
                    return value.value
                local = value.value.rpartition("#")[2]
                if value.value.startswith((n.XSD, n.OWL)) and local in _NEAREST:
                    return n.XSD + _NEAREST[local]
            inner = self._graph.find(value, n.OWL + "onDatatype")
            inner += self._graph.find(value, n.EQUIVALENT_CLASS)
            for head in self._graph.find(value, n.OWL + "oneOf"):
                literals = self._graph.list_members(head)
                inner += [m.datatype for m in literals[:1] if isinstance(m, ox.Literal)]
            value = inner[0] if inner else value
        return n.XSD + "string"

    def _choose_class(self, iri: str, predicate: str, stated: Sequence[Object]) -> str:
        if stated == [ox.NamedNode(n.THING)]:
            return n.THING
        candidates: list[str] = []
        members: set[str] = set()
        for value in stated:
            found, inside = self._read_class(value)
            candidates += [c for c in found if c not in candidates]
            members |= inside
        name = predicate.rpartition("#")[2]
        narrow = [c for c in candidates if c != n.THING] or [n.THING]
        clash = self._find_clash(narrow)
        if clash:
            self._notes.problems.append(
                f"<{iri}>: its {name}s <{clash[0]}> and <{clash[1]}> are stated disjoint, so "
                "nothing could ever be its value; remove one"
            )
        most_special = [c for c in narrow if all(o in self._climb(c) for o in narrow)]
        end = sorted(most_special)[0] if most_special else self._find_common(narrow)
        if len(stated) > 1 or not isinstance(stated[0], ox.NamedNode) or stated[0].value != end:
            self._note_widened(iri, predicate, stated, end, members or {*narrow})
        return end

    def _note_widened(
        self, iri: str, predicate: str, stated: Sequence[Object], end: str, members: Iterable[str]
    ) -> None:
        name = predicate.rpartition("#")[2]
        includes = n.DOMAIN_INCLUDES if predicate == n.DOMAIN else n.RANGE_INCLUDES
        left = sorted({*members} - {end, n.THING})
        for member in left:
            self._graph.add(ox.NamedNode(iri), includes, ox.NamedNode(member))
        shown = ", ".join(sorted(self._show(value) for value in stated))
        kept = f"; kept as schema:{name}Includes: {', '.join(left)}" if left else ""
        self._notes.add(f"{name} settled", f"<{iri}>", f"<{end}> for {shown}{kept}")

    def _read_class(self, value: Object) -> tuple[list[str], set[str]]:
        """Classes that all instances of a class expression belong to, and the ones it names."""
        if isinstance(value, ox.NamedNode):
            known = value.value in self._classes
            return ([value.value] if known else [n.THING]), set()
        if not isinstance(value, ox.BlankNode):
            return [n.THING], set()
        for head in self._graph.find(value, n.UNION_OF):
            members = self._graph.list_members(head)
            named = [m.value for m in members if isinstance(m, ox.NamedNode)]
            if len(named) < len(members) or not {*named} <= self._classes:
                return [n.THING], {*named} & self._classes
            return [self._find_common(named)], {*named}
        for head in self._graph.find(value, n.INTERSECTION_OF):
            members = self._graph.list_members(head)
            named = [m.value for m in members if isinstance(m, ox.NamedNode)]
            return [m for m in named if m in self._classes] or [n.THING], set()
        return [n.THING], set()

    def _climb(self, iri: str) -> dict[str, int]:
        """A class and those above it, with their distances."""
        above = {iri: 0}
        queue = [iri]
        for current in queue:  # grows as it goes
            for parent in self._graph.find_iris(ox.NamedNode(current), n.SUBCLASS):
                if parent not in above:
                    above[parent] = above[current] + 1
                    queue.append(parent)
        return above

    def _find_common(self, classes: Sequence[str]) -> str:
        """The nearest class above all of these, owl:Thing if there is none."""
        climbs = [self._climb(c) for c in classes]
        common = set.intersection(*({*climb} for climb in climbs)) if climbs else set()
        common = {c for c in common if c in self._classes}
        nearest = {c: sum(climb[c] for climb in climbs) for c in common}
        return min(sorted(nearest), key=lambda c: nearest[c], default=n.THING)

    def _find_clash(self, classes: Sequence[str]) -> tuple[str, str] | None:
        if not self._disjoint:
            return None
        for i, first in enumerate(classes):
            for second in classes[i + 1 :]:
                if any(
                    frozenset((a, b)) in self._disjoint
                    for a in self._climb(first)
                    for b in self._climb(second)
                ):
                    return first, second
        return None

    def _show(self, value: Object) -> str:
        if not isinstance(value, ox.BlankNode):
            return str(value)
        for predicate, word in ((n.UNION_OF, "union"), (n.INTERSECTION_OF, "intersection")):
            for head in self._graph.find(value, predicate):
                named = (str(m) for m in self._graph.list_members(head))
                return f"the {word} of " + ", ".join(named)
        return "an unnamed class"


def _list_wider(datatype: str) -> list[str]:
    wider: list[str] = []
    local = datatype.rpartition("#")[2]
    while local in _WIDER:
        local = _WIDER[local]
        wider.append(n.XSD + local)
    return wider
