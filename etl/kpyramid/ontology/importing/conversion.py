"""A parsed ontology becomes one that a build can read; every change is named."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from urllib.parse import quote, unquote

import pyoxigraph as ox

from kpyramid.errors import InputError
from kpyramid.ontology import names as n
from kpyramid.ontology.axioms import Limits, find_limits
from kpyramid.ontology.importing.files import BASE_FILES, OutsideText
from kpyramid.ontology.literals import DATATYPES
from kpyramid.ontology.schema import (
    Schema,
    find_nearest_common,
    measure_ancestors,
    read_schema,
)
from kpyramid.ontology.turtle import Graph, Object

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+|[^\W\d_]+")


def derive_label(iri: str) -> str:
    """The words of an IRI's last part: `…#hasLegalPerson` gives "has legal person"."""
    local = unquote(re.split(r"[#/:]", iri.rstrip("#/"))[-1])
    parts = _PARTS.findall(local)
    words = [p if len(p) > 1 and p.isupper() else p.lower() for p in parts]
    return " ".join(words) or local or iri


# One kind, domain and range for each property.


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that the import did: of what kind, to what, and how."""

    kind: str
    subject: str
    detail: str


@dataclass
class Changes:
    """Changes that an import made, and problems that it could not settle."""

    made: list[Change] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def add(self, kind: str, subject: object, detail: str) -> None:
        """Notes a change."""
        self.made.append(Change(kind, str(subject), detail))


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


def _settle_kinds(graph: Graph, changes: Changes) -> None:
    """Each property becomes either an object or a datatype property."""
    object_only = graph.find_typed(*_ONLY_OBJECTS)
    for iri in sorted(
        {
            *graph.find_typed(_OBJECT, _DATA, n.RDF + "Property", n.FUNCTIONAL_PROPERTY),
            *object_only,
        }
    ):
        stated = {*graph.find_iris(iri, n.RDF_TYPE)}
        kinds = stated & {_OBJECT, _DATA}
        if iri.startswith((n.RDF, n.RDFS, n.OWL)) or (
            not kinds and n.ANNOTATION_PROPERTY in stated
        ):
            continue
        shown = _find_kinds(graph, iri)
        if len(shown) > 1:
            ranges = ", ".join(str(v) for v in graph.find(iri, n.RANGE))
            changes.problems.append(
                f"<{iri}>: its ranges {ranges} are a class and a datatype, which share no value; "
                "remove one of them"
            )
            graph.remove(iri, n.RANGE)  # the ontology is refused; one message is enough
            continue
        if not shown and len(kinds) > 1:
            changes.problems.append(
                f"<{iri}>: an object and a datatype property, and no range tells which; remove one"
            )
            continue
        wanted = next(iter(shown or kinds or ({_OBJECT} if iri in object_only else set())), _OBJECT)
        if kinds == {wanted}:
            continue
        for kind in kinds:
            graph.remove(iri, n.RDF_TYPE, ox.NamedNode(kind))
        graph.add(iri, n.RDF_TYPE, ox.NamedNode(wanted))
        name = wanted.rpartition("#")[2]
        if not kinds:
            changes.add("property declared", f"<{iri}>", f"as owl:{name}")
        else:
            was = " and ".join(sorted(k.rpartition("#")[2] for k in kinds))
            changes.add("kind settled", f"<{iri}>", f"it was {was}; its range says owl:{name}")


def _find_kinds(graph: Graph, iri: str) -> set[str]:
    """The kinds of property that its ranges imply: none, one or both."""
    kinds = set()
    for value in graph.find(iri, n.RANGE):
        if _is_datatype(graph, value):
            kinds.add(_DATA)
        elif not isinstance(value, ox.NamedNode) or graph.find_types(value) & _CLASSES:
            kinds.add(_OBJECT)
    return kinds


def _is_datatype(graph: Graph, value: Object) -> bool:
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


def _mend_ends(graph: Graph, changes: Changes) -> None:
    """One domain and one range for each property, and at most one inverse."""
    ends = _Ends(graph, changes)
    objects = {*graph.find_typed(_OBJECT)}
    for iri in sorted({*objects, *graph.find_typed(_DATA)}):
        _mend_inverse(graph, changes, iri, objects)
    # Looked up before anything is filled in: what was assumed must not be inherited.
    missing = {
        (iri, predicate): ends.find_inherited(iri, predicate)
        for iri in sorted({*objects, *graph.find_typed(_DATA)})
        for predicate in (n.DOMAIN, n.RANGE)
        if not graph.find(iri, predicate)
    }
    for iri in sorted({*objects, *graph.find_typed(_DATA)}):
        ends.mend(iri, n.DOMAIN, missing, is_data=False)
        ends.mend(iri, n.RANGE, missing, is_data=iri not in objects)


def _mend_inverse(graph: Graph, changes: Changes, iri: str, objects: set[str]) -> None:
    inverses = graph.find_iris(iri, n.INVERSE_OF)
    usable = [other for other in inverses if other in objects and iri in objects]
    for other in inverses:
        if other not in usable[:1]:
            why = "another one is kept" if other in usable else "it is no object property here"
            graph.remove(iri, n.INVERSE_OF, ox.NamedNode(other))
            changes.add("inverse dropped", f"<{iri}>", f"<{other}>: {why}")


class _Ends:
    def __init__(self, graph: Graph, changes: Changes) -> None:
        self._graph, self._changes = graph, changes
        self._classes = {*graph.find_typed(n.CLASS)}

    @cached_property
    def _limits(self) -> Limits:
        return find_limits(self._graph)

    def find_inherited(self, iri: str, predicate: str) -> tuple[str, str] | None:
        """The nearest end that a super-property or an inverse states, and which does."""
        seen, queue = {iri}, [(iri, predicate)]
        for current, wanted in queue:  # grows as it goes
            found = self._graph.find(current, wanted)
            if current != iri and len(found) == 1 and isinstance(found[0], ox.NamedNode):
                return found[0].value, current
            other = n.RANGE if wanted == n.DOMAIN else n.DOMAIN
            steps = [(i, other) for i in self._graph.find_iris(current, n.INVERSE_OF)]
            steps += [(s, wanted) for s in self._graph.find_iris(current, n.SUBPROPERTY)]
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
        stated = self._graph.find(iri, predicate)
        name = predicate.rpartition("#")[2]
        if not stated:
            found = missing.get((iri, predicate))
            if found and self._fits(found[0], is_data=is_data):
                end, why = found[0], f"from <{found[1]}>"
                end = self._check_datatype(ox.NamedNode(end)) if is_data else end
            else:
                end, why = (n.XSD + "string" if is_data else n.THING), "none was stated"
            self._changes.add(f"{name} added", f"<{iri}>", f"<{end}>, {why}")
        elif is_data:
            end = self._choose_datatype(iri, stated)
        else:
            end = self._choose_class(iri, predicate, stated)
        if stated != [ox.NamedNode(end)]:
            self._graph.remove(iri, predicate)
            self._graph.add(iri, predicate, ox.NamedNode(end))

    def _fits(self, end: str, *, is_data: bool) -> bool:
        datatype = _is_datatype(self._graph, ox.NamedNode(end))
        return datatype if is_data else end in self._classes or end == n.THING

    def _choose_datatype(self, iri: str, stated: Sequence[Object]) -> str:
        chosen = sorted({self._check_datatype(value) for value in stated})
        if len(chosen) > 1:
            self._changes.problems.append(
                f"<{iri}>: its ranges {', '.join(chosen)} are several datatypes; remove all but one"
            )
        if stated != [ox.NamedNode(chosen[0])]:
            detail = f"<{chosen[0]}> for {', '.join(sorted(self._show(v) for v in stated))}"
            self._changes.add("datatype replaced", f"<{iri}>", detail)
        return chosen[0]

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
            self._changes.problems.append(
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
            self._graph.add(iri, includes, ox.NamedNode(member))
        shown = ", ".join(sorted(self._show(value) for value in stated))
        kept = f"; kept as schema:{name}Includes: {', '.join(left)}" if left else ""
        self._changes.add(f"{name} settled", f"<{iri}>", f"<{end}> for {shown}{kept}")

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

    def _list_parents(self, iri: str) -> list[str]:
        parents = self._graph.find_iris(iri, n.SUBCLASS)
        return [parent for parent in parents if parent in self._classes]

    def _climb(self, iri: str) -> Set[str]:
        """A class and those above it."""
        return measure_ancestors(iri, self._list_parents).keys()

    def _find_common(self, classes: Sequence[str]) -> str:
        """The nearest class above all of these, owl:Thing if there is none."""
        return find_nearest_common(classes, self._list_parents) or n.THING

    def _find_clash(self, classes: Sequence[str]) -> tuple[str, str] | None:
        for first, second in combinations(classes, 2):
            if self._limits.are_disjoint(self._climb(first), self._climb(second)):
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


# The import.

_COMMENTS = (
    n.SKOS + "definition",
    "http://purl.obolibrary.org/obo/IAO_0000115",
    n.DCT + "description",
    "http://purl.org/dc/elements/1.1/description",
)
_SYNONYMS = (
    n.PREF_LABEL,
    "http://www.geneontology.org/formats/oboInOwl#hasExactSynonym",
    "https://www.omg.org/spec/Commons/AnnotationVocabulary/synonym",
)


@dataclass(frozen=True, slots=True)
class Imported:
    """A schema for a person to review, every change made to get it, and individuals kept in it."""

    schema: Schema
    form: str
    changes: tuple[Change, ...]
    individuals: int


def import_ontology(read: OutsideText, *, name: str, source: str) -> Imported:
    """The schema that the statements declare, completed where a build needs more.

    `name` is that of the file, for a base if the ontology states none.

    Raises:
        InputError: it declares no class, or contradicts itself; every problem is named.
    """
    graph, changes = Graph(read.triples), Changes()
    if any(f"<{BASE_FILES}{quote(name, safe='')}" in str(t.subject) for t in read.triples):
        changes.add(
            "base assumed", f"<{BASE_FILES}{quote(name, safe='')}>", "the file has relative IRIs"
        )
    _remove_code(graph, changes)
    _mend_classes(graph, changes)
    _settle_kinds(graph, changes)
    _declare_stubs(graph, changes)
    _mend_ends(graph, changes)
    classes = graph.find_typed(n.CLASS)
    properties = graph.find_typed(n.OBJECT_PROPERTY, n.DATATYPE_PROPERTY)
    for iri in sorted({*classes} & {*properties}):
        changes.problems.append(f"<{iri}>: a class and a property; give one of them another IRI")
    if not classes:
        changes.problems.append(
            "it declares no class: state at least one owl:Class; where it has individuals only, "
            "this is data: import the ontology that declares their classes"
        )
    _mend_header(graph, changes, [*classes, *properties], name)
    for iri in [*classes, *properties]:
        _mend_words(graph, changes, iri)
    if changes.problems:
        listed = "".join(f"\n  {problem}" for problem in changes.problems)
        raise InputError(f"{source}: {len(changes.problems)} to correct by hand:{listed}")
    schema = read_schema(graph, source=source)
    individuals = len(graph.find_typed(n.NAMED_INDIVIDUAL, *classes))
    return Imported(schema, read.form, tuple(changes.made), individuals)


def _remove_code(graph: Graph, changes: Changes) -> None:
    for subject in graph.list_subjects():
        for predicate in graph.list_predicates(subject):
            if predicate.startswith(n.OWLREADY):
                named = ", ".join(str(value) for value in graph.find(subject, predicate))
                graph.remove(subject, predicate)
                detail = f"owlready2 would run the Python that {named} names: <{predicate}>"
                changes.add("code removed", subject, detail)


def _mend_classes(graph: Graph, changes: Changes) -> None:
    for iri in graph.find_typed(n.CLASS):
        if iri.startswith(n.BUILT_IN):
            graph.remove(iri, n.RDF_TYPE, ox.NamedNode(n.CLASS))
            changes.add("declaration dropped", f"<{iri}>", "OWL has it built in")
    for iri in graph.find_typed(n.RDFS + "Class"):
        graph.remove(iri, n.RDF_TYPE, ox.NamedNode(n.RDFS + "Class"))
        if not iri.startswith(n.BUILT_IN) and iri not in graph.find_typed(n.CLASS):
            graph.add(iri, n.RDF_TYPE, ox.NamedNode(n.CLASS))
            changes.add("class declared", f"<{iri}>", "an rdfs:Class is read as an owl:Class")


def _declare_stubs(graph: Graph, changes: Changes) -> None:
    """Classes that are pointed to and declared elsewhere, as in an import that is not followed."""
    known = {*graph.find_typed(n.CLASS), n.THING}
    objects = graph.find_typed(n.OBJECT_PROPERTY)
    ends = [(iri, predicate) for iri in objects for predicate in (n.DOMAIN, n.RANGE)]
    ends += [(iri, n.DOMAIN) for iri in graph.find_typed(n.DATATYPE_PROPERTY)]
    for iri in sorted(known - {n.THING}):
        for parent in graph.find_iris(iri, n.SUBCLASS):
            if parent.startswith(n.BUILT_IN) and parent != n.THING:
                graph.remove(iri, n.SUBCLASS, ox.NamedNode(parent))
                changes.add("superclass dropped", f"<{iri}>", f"<{parent}> is built in")
            elif parent not in known:
                known.add(parent)
                _declare_stub(graph, changes, parent, f"superclass of <{iri}>")
    for iri, predicate in ends:
        for end in graph.find_iris(iri, predicate):
            if end not in known and not end.startswith(n.BUILT_IN):
                known.add(end)
                name = predicate.rpartition("#")[2]
                _declare_stub(graph, changes, end, f"{name} of <{iri}>")


def _declare_stub(graph: Graph, changes: Changes, iri: str, use: str) -> None:
    graph.add(iri, n.RDF_TYPE, ox.NamedNode(n.CLASS))
    changes.add("class declared", f"<{iri}>", f"{use}, but not declared in this file")


def _mend_header(graph: Graph, changes: Changes, iris: Iterable[str], name: str) -> None:
    kind = ox.NamedNode(n.ONTOLOGY)
    for subject in graph.list_subjects():
        if isinstance(subject, ox.BlankNode) and kind in graph.find(subject, n.RDF_TYPE):
            graph.remove(subject, n.RDF_TYPE, kind)
            changes.add("header dropped", subject, "it has no IRI")
    spaces = Counter(re.sub(r"[^#/]*$", "", iri) for iri in iris)
    commonest = max(sorted(spaces), key=lambda space: spaces[space], default="")
    headers = graph.find_typed(n.ONTOLOGY)
    if not headers:
        header = commonest.removesuffix("#") or f"{BASE_FILES}{quote(name, safe='')}"
        graph.add(header, n.RDF_TYPE, kind)
        changes.add("header added", f"<{header}>", "no owl:Ontology was stated")
        headers = [header]
    own = [h for h in headers if h.rstrip("#/") == commonest.rstrip("#/")]
    kept = (own or headers)[0]
    for header in headers:
        if header != kept:
            graph.remove(header, n.RDF_TYPE, kind)
            changes.add("header dropped", f"<{header}>", f"<{kept}> is the ontology's own")
        for imported in graph.find(header, n.IMPORTS):
            graph.remove(header, n.IMPORTS, imported)
            graph.add(header, n.RDFS + "seeAlso", imported)
            detail = "nothing is fetched; it is kept as rdfs:seeAlso"
            changes.add("import not followed", imported, detail)


def _mend_words(graph: Graph, changes: Changes, iri: str) -> None:
    labels = graph.find_texts(iri, n.LABEL)
    synonyms = [text for predicate in _SYNONYMS for text in graph.find_texts(iri, predicate)]
    if not labels:
        stated = graph.find_texts(iri, n.PREF_LABEL)
        label = stated[0] if stated else derive_label(iri)
        labels = [label]
        graph.add(iri, n.LABEL, ox.Literal(label, language="en"))
        came = "its skos:prefLabel" if stated else "its name"
        changes.add("label added", f"<{iri}>", f'"{label}", from {came}')
    known = {*labels, *graph.find_texts(iri, n.ALT_LABEL)}
    for text in sorted({*synonyms} - known):
        graph.add(iri, n.ALT_LABEL, ox.Literal(text, language="en"))
        changes.add("synonym added", f"<{iri}>", f'"{text}"')
    if not graph.find_texts(iri, n.COMMENT):
        for predicate in _COMMENTS:
            if stated := graph.find_texts(iri, predicate):
                graph.add(iri, n.COMMENT, ox.Literal(stated[0], language="en"))
                changes.add("comment added", f"<{iri}>", f"from <{predicate}>")
                break


def group_changes(changes: Iterable[Change]) -> Mapping[str, list[Change]]:
    """The changes by kind, kinds in the order they came up."""
    groups: dict[str, list[Change]] = {}
    for change in changes:
        groups.setdefault(change.kind, []).append(change)
    return groups
