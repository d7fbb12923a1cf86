"""Where the ontology's instances were read, in PROV-O: plain triples that any RDF reader shows.

A place is a node named by its document and characters (RFC 5147: `#char=120,250`), whose
`prov:value` is the sentence that stands there. Individuals are derived from places, and places are
quoted from documents. A statement has a node of its own, an `rdf:Statement` with the id of its row:
five triples. Named graphs would take one, but a graph name is lost in N-Triples; triple terms of
RDF 1.2 would take three, but rdflib cannot read them; `owl:Axiom` takes five as well, but wants an
unnamed node, which could not be joined with the table.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

import pyoxigraph as ox

from kpyramid.ontology import names as n
from kpyramid.ontology.turtle import make_iri


def entity_iri(entity_id: str) -> str:
    """The IRI of whatever has an id, made of it alone: labels change, with any character."""
    return n.ENTITY + quote(entity_id, safe="")


@dataclass(frozen=True, slots=True)
class Place:
    """Characters `start` to `end` of a document's text, and what stands there.

    `source` is what the table `documents` says of where the document came from.
    """

    document_id: str
    start: int
    end: int
    text: str
    source: str
    title: str | None = None

    @property
    def iri(self) -> str:
        """The IRI of these characters of the document."""
        return f"{entity_iri(self.document_id)}#char={self.start},{self.end}"


def describe_place(place: Place) -> Iterator[ox.Triple]:
    """What stands there, the document that it is quoted from, and that document's source."""
    node, document = make_iri(place.iri), make_iri(entity_iri(place.document_id))
    yield ox.Triple(node, make_iri(n.PROV_VALUE), ox.Literal(place.text))
    yield ox.Triple(node, make_iri(n.QUOTED_FROM), document)
    yield ox.Triple(document, make_iri(n.SOURCE), _name_source(place.source))
    if place.title:
        yield ox.Triple(document, make_iri(n.DCT + "title"), ox.Literal(place.title))


def _name_source(source: str) -> ox.NamedNode | ox.Literal:
    if source.startswith(("http://", "https://")):
        try:
            return ox.NamedNode(source)
        except ValueError:  # it only begins like an address
            return ox.Literal(source)
    return ox.Literal(source)


def describe_statement(
    statement_id: str, stated: ox.Triple, places: Iterable[Place]
) -> Iterator[ox.Triple]:
    """The statement as a node that is derived from its places."""
    node = make_iri(entity_iri(statement_id))
    yield ox.Triple(node, make_iri(n.RDF_TYPE), make_iri(n.RDF + "Statement"))
    yield ox.Triple(node, make_iri(n.RDF + "subject"), stated.subject)
    yield ox.Triple(node, make_iri(n.RDF + "predicate"), stated.predicate)
    yield ox.Triple(node, make_iri(n.RDF + "object"), stated.object)
    for place in places:
        yield ox.Triple(node, make_iri(n.DERIVED_FROM), make_iri(place.iri))


def write_sorted(triples: Iterable[ox.Triple]) -> str:
    """The triples as N-Triples, sorted, each once."""
    return "".join(sorted({f"{triple} .\n" for triple in triples}))
