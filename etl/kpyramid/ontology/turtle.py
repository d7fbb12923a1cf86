"""Turtle in, looked up by subject; statements out as Turtle that is the same every time."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeVar

import pyoxigraph as ox

from kpyramid.errors import InputError
from kpyramid.ontology.names import RDF_TYPE

_Term = TypeVar("_Term", ox.NamedNode, ox.BlankNode, ox.Literal)
Object = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple

# Only the Turtle parser ever sees the text, so an entity bomb is a mere syntax error;
# these signs are looked for to say so in words.
_XML_SIGNS = ("<?xml", "<!doctype", "<!--", "<rdf:rdf")


class Statements:
    """The statements of one Turtle text; nothing it points to is ever fetched."""

    def __init__(self, turtle: str, *, source: str) -> None:
        """Parses the text.

        Raises:
            InputError: it is not Turtle; names the source and the line.
        """
        if turtle.lstrip("\ufeff \t\r\n")[:10].lower().startswith(_XML_SIGNS):
            raise InputError(
                f"{source}, line 1: this is XML, and only Turtle is read; "
                "convert it first, for example with `rdfpipe -i xml -o turtle`"
            )
        self._objects: defaultdict[tuple[str, str], list[Object]] = defaultdict(list)
        self._subjects: defaultdict[str, set[str]] = defaultdict(set)
        try:
            for quad in ox.parse(turtle.removeprefix("\ufeff"), format=ox.RdfFormat.TURTLE):
                self._add(quad)
        except SyntaxError as e:
            raise InputError(
                f"{source}, line {e.lineno or 1}: not valid Turtle: {e.msg}; "
                "correct that line, or convert the file to Turtle"
            ) from e

    def _add(self, quad: ox.Quad) -> None:
        if isinstance(quad.subject, ox.NamedNode):
            subject, predicate = quad.subject.value, quad.predicate.value
            self._objects[subject, predicate].append(quad.object)
            if predicate == RDF_TYPE and isinstance(quad.object, ox.NamedNode):
                self._subjects[quad.object.value].add(subject)

    def _find(self, subject: str, predicate: str, kind: type[_Term]) -> list[_Term]:
        return [o for o in self._objects.get((subject, predicate), ()) if isinstance(o, kind)]

    def find_subjects(self, type_iri: str) -> list[str]:
        """The named subjects of a type, sorted."""
        return sorted(self._subjects.get(type_iri, ()))

    def find_iris(self, subject: str, predicate: str) -> list[str]:
        """The named objects, sorted, each once."""
        return sorted({o.value for o in self._find(subject, predicate, ox.NamedNode)})

    def find_texts(self, subject: str, predicate: str) -> list[str]:
        """The texts in English or in no stated language, sorted, each once; blank ones left out."""
        literals = self._find(subject, predicate, ox.Literal)
        english = {o.value for o in literals if (o.language or "en").lower().split("-")[0] == "en"}
        return sorted(text for text in english if text.strip())

    def has_unnamed(self, subject: str, predicate: str) -> bool:
        """Whether an object is a blank node, such as a union of classes."""
        return bool(self._find(subject, predicate, ox.BlankNode))


def make_iri(text: str) -> ox.NamedNode:
    """The IRI node of a text.

    Raises:
        InputError: the text is no absolute IRI.
    """
    try:
        return ox.NamedNode(text)
    except ValueError as e:
        raise InputError(
            f"{text!r} is not an absolute IRI ({e}); build IRIs from ids or percent-encoded labels"
        ) from e


def write_turtle(
    statements: Iterable[tuple[str, str, ox.NamedNode | ox.Literal]], prefixes: Mapping[str, str]
) -> str:
    """The statements as Turtle, in the order given.

    Raises:
        InputError: a subject or predicate is no absolute IRI.
    """
    triples = [ox.Triple(make_iri(s), make_iri(p), o) for s, p, o in statements]
    encoded = ox.serialize(triples, format=ox.RdfFormat.TURTLE, prefixes=dict(prefixes))
    assert encoded is not None  # None only where an output file is named
    lines = encoded.decode("utf-8").split("\n")
    # pyoxigraph writes the prefixes in another order in every process.
    start = next(i for i, line in enumerate(lines) if not line.startswith("@prefix"))
    return "\n".join(sorted(lines[:start]) + lines[start:])
