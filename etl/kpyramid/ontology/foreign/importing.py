"""An ontology from outside becomes one that a build can read; every change is named."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

import pyoxigraph as ox

from kpyramid.errors import InputError
from kpyramid.ontology import names as n
from kpyramid.ontology.foreign.ends import mend_ends, settle_kinds
from kpyramid.ontology.foreign.files import BASE, OutsideText
from kpyramid.ontology.foreign.graph import Graph
from kpyramid.ontology.foreign.words import derive_label
from kpyramid.ontology.schema import Schema, read_schema

_BUILT_IN = (n.OWL, n.RDF, n.RDFS, n.XSD)
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
class Change:
    """One thing that the import did: of what kind, to what, and how."""

    kind: str
    subject: str
    detail: str


@dataclass
class Changes:
    """What was done, and what nobody could settle."""

    made: list[Change] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def add(self, kind: str, subject: object, detail: str) -> None:
        """Notes a change."""
        self.made.append(Change(kind, str(subject), detail))


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
    for old, new in sorted(read.mended.items()):
        changes.add("IRI mended", f"<{new}>", f"it was <{old}>")
    for iri, detail in read.merged:
        changes.add("merged", f"<{iri}>", detail)
    if any(f"<{BASE}{quote(name, safe='')}" in str(t.subject) for t in read.triples):
        changes.add("base assumed", f"<{BASE}{quote(name, safe='')}>", "the file has relative IRIs")
    _remove_code(graph, changes)
    _mend_classes(graph, changes)
    settle_kinds(graph, changes)
    _declare_stubs(graph, changes)
    mend_ends(graph, changes)
    classes = graph.find_typed(n.CLASS)
    properties = graph.find_typed(n.OBJECT_PROPERTY, n.DATATYPE_PROPERTY)
    for iri in sorted({*classes} & {*properties}):
        changes.problems.append(f"<{iri}>: a class and a property; give one of them another IRI")
    if not classes:
        changes.problems.append(_explain_no_class(graph))
    _mend_header(graph, changes, [*classes, *properties], name)
    for iri in [*classes, *properties]:
        _mend_words(graph, changes, iri)
    if changes.problems:
        listed = "".join(f"\n  {problem}" for problem in changes.problems)
        raise InputError(f"{source}: {len(changes.problems)} to correct by hand:{listed}")
    schema = read_schema(graph, source=source)
    return Imported(schema, read.form, tuple(changes.made), _count_individuals(graph, classes))


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
        if iri.startswith(_BUILT_IN):
            graph.remove(ox.NamedNode(iri), n.RDF_TYPE, ox.NamedNode(n.CLASS))
            changes.add("declaration dropped", f"<{iri}>", "OWL has it built in")
    for iri in graph.find_typed(n.RDFS + "Class"):
        node = ox.NamedNode(iri)
        graph.remove(node, n.RDF_TYPE, ox.NamedNode(n.RDFS + "Class"))
        if not iri.startswith(_BUILT_IN) and iri not in graph.find_typed(n.CLASS):
            graph.add(node, n.RDF_TYPE, ox.NamedNode(n.CLASS))
            changes.add("class declared", f"<{iri}>", "an rdfs:Class is read as an owl:Class")


def _declare_stubs(graph: Graph, changes: Changes) -> None:
    """Classes that are pointed to and declared elsewhere, as in an import that is not followed."""
    known = {*graph.find_typed(n.CLASS), n.THING}
    objects = graph.find_typed(n.OBJECT_PROPERTY)
    ends = [(iri, predicate) for iri in objects for predicate in (n.DOMAIN, n.RANGE)]
    ends += [(iri, n.DOMAIN) for iri in graph.find_typed(n.DATATYPE_PROPERTY)]
    for iri in sorted(known - {n.THING}):
        node = ox.NamedNode(iri)
        for parent in graph.find_iris(node, n.SUBCLASS):
            if parent.startswith(_BUILT_IN) and parent != n.THING:
                graph.remove(node, n.SUBCLASS, ox.NamedNode(parent))
                changes.add("superclass dropped", f"<{iri}>", f"<{parent}> is built in")
            elif parent not in known:
                known.add(parent)
                _declare_stub(graph, changes, parent, f"superclass of <{iri}>")
    for iri, predicate in ends:
        for end in graph.find_iris(ox.NamedNode(iri), predicate):
            if end not in known and not end.startswith(_BUILT_IN):
                known.add(end)
                name = predicate.rpartition("#")[2]
                _declare_stub(graph, changes, end, f"{name} of <{iri}>")


def _declare_stub(graph: Graph, changes: Changes, iri: str, use: str) -> None:
    graph.add(ox.NamedNode(iri), n.RDF_TYPE, ox.NamedNode(n.CLASS))
    changes.add("class declared", f"<{iri}>", f"{use}, but not declared in this file")


def _mend_header(graph: Graph, changes: Changes, iris: Iterable[str], name: str) -> None:
    for subject in graph.list_subjects():
        if isinstance(subject, ox.BlankNode) and ox.NamedNode(n.ONTOLOGY) in graph.find(
            subject, n.RDF_TYPE
        ):
            graph.remove(subject, n.RDF_TYPE, ox.NamedNode(n.ONTOLOGY))
            changes.add("header dropped", subject, "it has no IRI")
    spaces = Counter(_find_namespace(iri) for iri in iris)
    commonest = max(sorted(spaces), key=lambda space: spaces[space], default="")
    headers = graph.find_typed(n.ONTOLOGY)
    if not headers:
        header = commonest.removesuffix("#") or f"{BASE}{quote(name, safe='')}"
        graph.add(ox.NamedNode(header), n.RDF_TYPE, ox.NamedNode(n.ONTOLOGY))
        changes.add("header added", f"<{header}>", "no owl:Ontology was stated")
        headers = [header]
    by_size = {h: len(graph.list_predicates(ox.NamedNode(h))) for h in headers}
    own = [h for h in headers if h.rstrip("#/") == commonest.rstrip("#/")]
    kept = own[0] if own else max(sorted(by_size), key=lambda h: by_size[h])
    for header in headers:
        node = ox.NamedNode(header)
        if header != kept:
            graph.remove(node, n.RDF_TYPE, ox.NamedNode(n.ONTOLOGY))
            changes.add("header dropped", f"<{header}>", f"<{kept}> is the ontology's own")
        for imported in graph.find(node, n.IMPORTS):
            graph.remove(node, n.IMPORTS, imported)
            graph.add(node, n.RDFS + "seeAlso", imported)
            detail = "nothing is fetched; it is kept as rdfs:seeAlso"
            changes.add("import not followed", imported, detail)


def _find_namespace(iri: str) -> str:
    at = max(iri.rfind("#"), iri.rfind("/"))
    return iri[: at + 1]


def _mend_words(graph: Graph, changes: Changes, iri: str) -> None:
    node = ox.NamedNode(iri)
    labels = graph.find_texts(node, n.LABEL)
    synonyms = [text for predicate in _SYNONYMS for text in graph.find_texts(node, predicate)]
    if not labels:
        stated = graph.find_texts(node, n.PREF_LABEL)
        label = stated[0] if stated else derive_label(iri)
        labels = [label]
        graph.add(node, n.LABEL, ox.Literal(label, language="en"))
        came = "its skos:prefLabel" if stated else "its name"
        changes.add("label added", f"<{iri}>", f'"{label}", from {came}')
    known = {*labels, *graph.find_texts(node, n.ALT_LABEL)}
    for text in sorted({*synonyms} - known):
        graph.add(node, n.ALT_LABEL, ox.Literal(text, language="en"))
        changes.add("synonym added", f"<{iri}>", f'"{text}"')
    if not graph.find_texts(node, n.COMMENT):
        for predicate in _COMMENTS:
            if stated := graph.find_texts(node, predicate):
                graph.add(node, n.COMMENT, ox.Literal(stated[0], language="en"))
                changes.add("comment added", f"<{iri}>", f"from <{predicate}>")
                break


def _count_individuals(graph: Graph, classes: Iterable[str]) -> int:
    return len(graph.find_typed(n.NAMED_INDIVIDUAL, *classes))


def _explain_no_class(graph: Graph) -> str:
    types: Counter[str] = Counter()
    for subject in graph.list_subjects():
        types.update(iri for iri in graph.find_iris(subject, n.RDF_TYPE))
    used = {iri: count for iri, count in types.items() if not iri.startswith(_BUILT_IN)}
    if not used:
        return "it declares no class: state at least one owl:Class"
    most = ", ".join(f"<{iri}>" for iri in sorted(used, key=lambda i: (-used[i], i))[:3])
    return (
        f"it declares no class, but has {sum(used.values())} individuals of {len(used)} classes "
        f"({most} …): this is data; import the ontology that declares these classes"
    )


def group_changes(changes: Iterable[Change]) -> Mapping[str, list[Change]]:
    """The changes by kind, kinds in the order they came up."""
    groups: dict[str, list[Change]] = {}
    for change in changes:
        groups.setdefault(change.kind, []).append(change)
    return groups
