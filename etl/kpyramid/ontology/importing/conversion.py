"""A parsed ontology becomes one that a build can read; every change is named."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from urllib.parse import quote, unquote

import pyoxigraph as ox

from kpyramid.errors import InputError
from kpyramid.ontology import names as n
from kpyramid.ontology.axioms import Limits, find_limits
from kpyramid.ontology.importing.datatypes import (
    ANY,
    SCHEMA_ORG,
    Datatypes,
    choose_narrowest,
    is_built_in,
    is_datatype,
)
from kpyramid.ontology.importing.files import BASE_FILES, OutsideText
from kpyramid.ontology.schema import (
    Schema,
    find_nearest_common,
    read_schema,
    write_schema,
)
from kpyramid.ontology.turtle import Graph, Object, parse_turtle, walk

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
_BUILT_IN_KINDS = (
    n.CLASS,
    n.RDFS + "Class",
    n.RDF + "Property",
    n.OBJECT_PROPERTY,
    n.DATATYPE_PROPERTY,
    n.ANNOTATION_PROPERTY,
    n.RDFS + "Datatype",
)
_INCLUDES = {n.DOMAIN: "domainIncludes", n.RANGE: "rangeIncludes"}


def _settle_kinds(graph: Graph, changes: Changes) -> None:
    """Each property becomes either an object or a datatype property."""
    object_only = graph.find_typed(*_ONLY_OBJECTS)
    with_literals = {t.predicate.value for t in graph if isinstance(t.object, ox.Literal)}
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
        is_data = iri in with_literals and iri not in object_only
        wanted = next(iter(shown or kinds), _DATA if is_data else _OBJECT)
        for characteristic in sorted(stated & {*_ONLY_OBJECTS}) if wanted == _DATA else ():
            graph.remove(iri, n.RDF_TYPE, ox.NamedNode(characteristic))
            detail = f"<{characteristic}>: OWL allows it of object properties only"
            changes.add("characteristic dropped", f"<{iri}>", detail)
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
    stated = graph.find(iri, n.RANGE)
    included = [] if stated else _list_included(graph, iri, n.RANGE)
    for value in stated or included:
        if is_datatype(graph, value):
            kinds.add(_DATA)
        elif not isinstance(value, ox.NamedNode) or graph.find_types(value) & _CLASSES:
            kinds.add(_OBJECT)
    return {_OBJECT} if included and _OBJECT in kinds else kinds


def _list_included(graph: Graph, iri: str, predicate: str) -> list[ox.NamedNode]:
    """The ends that schema.org's way of stating them names: any of them will do."""
    name = _INCLUDES[predicate]
    found = [v for base in SCHEMA_ORG for v in graph.find_iris(iri, base + name)]
    return [ox.NamedNode(iri) for iri in sorted({*found})]


def _map_datatypes(graph: Graph, changes: Changes) -> None:
    """No datatype is left whose values cannot be checked, wherever the file names one."""
    places: Counter[tuple[str, str]] = Counter()
    for subject, predicate, old, new in [*Datatypes(graph).map_all()]:
        graph.remove(subject, predicate, old)
        graph.add(subject, predicate, new)
        was, now = (str(v.datatype if isinstance(v, ox.Literal) else v) for v in (old, new))
        if predicate == n.RANGE and isinstance(subject, ox.NamedNode):
            changes.add("datatype replaced", subject, f"{now} for {was}")
        else:
            places[was, now] += 1
    for (was, now), count in sorted(places.items()):
        changes.add("datatype mapped", was, f"{now}, in {count} restrictions and values")


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
        self._datatypes = Datatypes(graph)

    @cached_property
    def _limits(self) -> Limits:
        return find_limits(self._graph)

    @cached_property
    def _equal(self) -> Mapping[str, Set[str]]:
        equal: defaultdict[str, set[str]] = defaultdict(set)
        for node in self._graph.list_subjects():
            for other in self._graph.find_iris(node, n.OWL + "equivalentProperty"):
                if isinstance(node, ox.NamedNode):
                    equal[node.value].add(other)
                    equal[other].add(node.value)
        return equal

    def find_inherited(self, iri: str, end: str) -> tuple[str, str] | None:
        """The nearest end that a super-property, an equal or an inverse states, and which does."""
        seen, queue = {iri}, [(iri, end)]
        for current, wanted in queue:  # grows as it goes
            found = self._graph.find(current, wanted)
            if current != iri and len(found) == 1 and isinstance(found[0], ox.NamedNode):
                return found[0].value, current
            other = n.RANGE if wanted == n.DOMAIN else n.DOMAIN
            steps = [(i, other) for i in self._graph.find_iris(current, n.INVERSE_OF)]
            steps += [(s, wanted) for s in self._graph.find_iris(current, n.SUBPROPERTY)]
            steps += [(s, wanted) for s in sorted(self._equal.get(current, ()))]
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
        """States exactly one end, of those that are stated, inherited, included, or the widest."""
        stated = self._graph.find(iri, predicate)
        name = predicate.rpartition("#")[2]
        if not stated:
            found = missing.get((iri, predicate))
            if found and self._fits(found[0], is_data=is_data):
                end, why = found[0], f"from <{found[1]}>"
                end = self._datatypes.find(ox.NamedNode(end)) if is_data else end
            elif included := self._choose_included(iri, predicate, is_data=is_data):
                end, why = included, f"by schema:{_INCLUDES[predicate]}"
            else:
                end = self._datatypes.assume(iri) if is_data else n.THING
                why = "none was stated"
            self._changes.add(f"{name} added", f"<{iri}>", f"<{end}>, {why}")
        elif is_data:
            end = self._choose_datatype(iri, stated)
        else:
            end = self._choose_class(iri, predicate, stated)
        if stated != [ox.NamedNode(end)]:
            self._graph.remove(iri, predicate)
            self._graph.add(iri, predicate, ox.NamedNode(end))

    def _choose_included(self, iri: str, predicate: str, *, is_data: bool) -> str | None:
        ends = _list_included(self._graph, iri, predicate)
        if is_data:
            datatypes = {self._datatypes.find(v) for v in ends if is_datatype(self._graph, v)}
            return datatypes.pop() if len(datatypes) == 1 else ANY if datatypes else None
        classes = [v.value for v in ends if v.value in self._classes]
        return self._find_common(classes) if classes else None

    def _fits(self, end: str, *, is_data: bool) -> bool:
        datatype = is_datatype(self._graph, ox.NamedNode(end))
        return datatype if is_data else end in self._classes or end == n.THING

    def _choose_datatype(self, iri: str, stated: Sequence[Object]) -> str:
        chosen = sorted({self._datatypes.find(value) for value in stated})
        narrowest = choose_narrowest(chosen)
        if narrowest is None:
            self._changes.problems.append(
                f"<{iri}>: its ranges {', '.join(chosen)} are several datatypes; remove all but one"
            )
        end = narrowest or chosen[0]
        if stated != [ox.NamedNode(end)]:
            detail = f"<{end}> for {', '.join(sorted(self._show(v) for v in stated))}"
            self._changes.add("datatype replaced", f"<{iri}>", detail)
        return end

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
        return walk([iri], self._list_parents).keys()

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

_OBSOLETE = "http://www.geneontology.org/formats/oboInOwl#ObsoleteClass"
_COMMENTS = (
    n.SKOS + "definition",
    "http://purl.obolibrary.org/obo/IAO_0000115",
    n.DCT + "description",
    "http://purl.org/dc/elements/1.1/description",
)
_LABELS = (n.LABEL, n.PREF_LABEL)
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
    _drop_built_in(graph, changes)
    _leave_out_deprecated(graph, changes)
    _mend_classes(graph, changes)
    _settle_kinds(graph, changes)
    _map_datatypes(graph, changes)
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
    languages = _order_languages(graph)
    for iri in [*classes, *properties]:
        _mend_words(graph, changes, iri, languages)
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


def _drop_built_in(graph: Graph, changes: Changes) -> None:
    """No term of OWL or of the datatypes is one of the ontology's."""
    for iri in graph.find_typed(*_BUILT_IN_KINDS):
        if iri.startswith(n.BUILT_IN) or is_built_in(ox.NamedNode(iri)):
            stays = iri.startswith(n.BUILT_IN)
            for predicate in [n.RDF_TYPE] if stays else graph.list_predicates(iri):
                graph.remove(iri, predicate)
            changes.add("declaration dropped", f"<{iri}>", "the standards have it built in")


def _mend_classes(graph: Graph, changes: Changes) -> None:
    for iri in graph.find_typed(n.RDFS + "Class"):
        graph.remove(iri, n.RDF_TYPE, ox.NamedNode(n.RDFS + "Class"))
        if n.CLASS not in graph.find_types(iri):
            graph.add(iri, n.RDF_TYPE, ox.NamedNode(n.CLASS))
            changes.add("class declared", f"<{iri}>", "an rdfs:Class is read as an owl:Class")


def _leave_out_deprecated(graph: Graph, changes: Changes) -> None:
    """No class, property or individual that its authors gave up."""
    kinds = (n.OWL + "DeprecatedClass", n.OWL + "DeprecatedProperty")
    gone = {*graph.find_typed(*kinds)}
    classes = {*graph.find_typed(*_CLASSES)}
    for subject in graph.list_subjects():
        if isinstance(subject, ox.NamedNode) and n.ONTOLOGY not in graph.find_types(subject):
            is_obsolete = _OBSOLETE in graph.find_iris(subject, n.SUBCLASS) or any(
                graph.find(subject, base + "supersededBy") for base in SCHEMA_ORG
            )
            if is_obsolete or graph.is_true(subject, n.OWL + "deprecated"):
                gone.add(subject.value)
    gone |= classes & {_OBSOLETE}
    if classes and classes <= gone:  # the file as a whole gave way to another
        changes.add("deprecated terms stay", f"{len(gone)} terms", "they have all its classes")
        return
    leave_out(graph, gone)
    for iri in sorted(gone):
        changes.add("term left out", f"<{iri}>", "it is deprecated")


def leave_out(graph: Graph, iris: Iterable[str]) -> None:
    """Withdraws terms and all axioms that name one; a list of what is disjoint only gets shorter.

    What is left is true wherever the whole is.
    """
    gone: set[Object] = {ox.NamedNode(iri) for iri in iris}
    for subject in graph.list_subjects() if gone else ():
        for head in graph.find(subject, n.MEMBERS):
            members = graph.list_members(head)
            stay = [member for member in members if member not in gone]
            if len(stay) < len(members):
                graph.remove(subject, n.MEMBERS)
                graph.add(subject, n.MEMBERS, graph.add_list(stay))
    users: defaultdict[Object, list[Object]] = defaultdict(list)
    for t in graph:
        if isinstance(t.subject, ox.BlankNode):
            users[t.object].append(t.subject)
            users[t.predicate].append(t.subject)
    gone.update(walk(gone, lambda term: users.get(term, ())))
    for t in [*graph] if gone else ():
        if t.subject in gone or t.object in gone or t.predicate in gone:
            graph.remove(t.subject, t.predicate.value, t.object)


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


def _order_languages(graph: Graph) -> list[str]:
    """The languages of labels, that of most of them first."""
    counts: Counter[str] = Counter()
    for t in graph:
        if t.predicate.value in _LABELS and isinstance(t.object, ox.Literal):
            counts[t.object.language or ""] += 1
    return sorted(counts, key=lambda language: (-counts[language], language))


def _find_label(graph: Graph, iri: str, languages: Sequence[str]) -> tuple[str, str] | None:
    """What a term without an rdfs:label in English is called, and where that stands."""
    if stated := graph.find_texts(iri, n.PREF_LABEL):
        return stated[0], "its skos:prefLabel"
    found = [v for p in _LABELS for v in graph.find(iri, p) if isinstance(v, ox.Literal)]
    known = [(languages.index(v.language or ""), v) for v in found if v.value.strip()]
    if not known:
        return None
    best = min(known, key=lambda pair: (pair[0], pair[1].value))[1]
    return best.value, f"its label in the language {best.language}"


def _mend_words(graph: Graph, changes: Changes, iri: str, languages: Sequence[str]) -> None:
    labels = graph.find_texts(iri, n.LABEL)
    synonyms = {text for predicate in _SYNONYMS for text in graph.find_texts(iri, predicate)}
    if not labels:
        label, came = _find_label(graph, iri, languages) or (derive_label(iri), "its name")
        if label not in graph.find_texts(iri, n.PREF_LABEL) and not re.search(r"\d", iri):
            synonyms.add(derive_label(iri))  # names of IRIs are English more often than not
        labels = [label]
        graph.add(iri, n.LABEL, ox.Literal(label, language="en"))
        changes.add("label added", f"<{iri}>", f'"{label}", from {came}')
    known = {*labels, *graph.find_texts(iri, n.ALT_LABEL)}
    for text in sorted(synonyms - known):
        graph.add(iri, n.ALT_LABEL, ox.Literal(text, language="en"))
        changes.add("synonym added", f"<{iri}>", f'"{text}"')
    if not graph.find_texts(iri, n.COMMENT):
        for predicate in _COMMENTS:
            if stated := graph.find_texts(iri, predicate):
                graph.add(iri, n.COMMENT, ox.Literal(stated[0], language="en"))
                changes.add("comment added", f"<{iri}>", f"from <{predicate}>")
                break


# Classes that can have no instance.


def leave_out_empty(imported: Imported, empty: Mapping[str, str], *, source: str) -> Imported:
    """The import without the classes that can have no instance, and what depends on them.

    `empty`: why each cannot, by IRI. What depends on one are the properties of which it is domain
    or range, and the axioms that name it or them.

    Raises:
        InputError: no class is left.
    """
    made = [
        Change("class left out", f"<{iri}>", f"it can have no instance: {why}".rstrip(": "))
        for iri, why in sorted(empty.items())
    ]
    gone = {*empty}
    for prop in imported.schema.properties:
        if ends := {prop.domain, prop.range} & empty.keys():
            gone.add(prop.iri)
            why = f"<{min(ends)}>, its domain or range, can have no instance"
            made.append(Change("property left out", f"<{prop.iri}>", why))
    graph = Graph(parse_turtle(write_schema(imported.schema), source=source))
    leave_out(graph, gone)
    schema = read_schema(graph, source=source)
    return replace(imported, schema=schema, changes=(*imported.changes, *made))
