"""Accepted proposals become part of the schema; classes and properties in words."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import cast
from urllib.parse import quote

import pyoxigraph as ox

from kpyramid.ontology import names as n
from kpyramid.ontology.axioms import write_axioms
from kpyramid.ontology.names import RDFS, THING, XSD
from kpyramid.ontology.schema import OntologyClass, OntologyProperty, Schema, Term
from kpyramid.ontology.turtle import make_iri

# Classes and properties in words, as a model is shown them.

FORMS = {
    XSD + "date": "a date with day, month and year",
    XSD + "gYearMonth": "a month and its year",
    XSD + "gYear": "a year",
    XSD + "boolean": "yes or no",
    XSD + "decimal": "a number",
    XSD + "double": "a number",
    XSD + "float": "a number",
    XSD + "anyURI": "a web address",
    XSD + "string": "words of the text",
    RDFS + "Literal": "words of the text",
}
"""The form of a datatype's values in words; other datatypes are whole numbers."""


def name_class(iri: str, schema: Schema) -> str:
    """A class's label; `anything` for the most general one."""
    if iri == THING:
        return "anything"
    c = schema.class_by_iri.get(iri)
    return c.label if c else iri


def name_range(iri: str, schema: Schema) -> str:
    """The range in words: a class's label, or the form of a datatype."""
    if iri.startswith(XSD) or iri in FORMS:
        return FORMS.get(iri, "a whole number")
    return name_class(iri, schema)


def show_ends(prop: OntologyProperty, schema: Schema) -> str:
    """Domain and range of a property in words."""
    return f"{name_class(prop.domain, schema)} → {name_range(prop.range, schema)}"


# Accepted proposals.

Row = Mapping[str, object]
"""A row of the table `proposals`, with at least the columns that the schema takes."""


def adopt_proposals(schema: Schema, proposals: Iterable[Row]) -> Schema:
    """The schema with the accepted rows of the table `proposals`, and the words of its aliases.

    A property that splits another is its sub-property. An inverse that was not accepted itself is
    left out.

    Raises:
        InputError: a domain or range is not in the schema.
    """
    rows = list(proposals)
    accepted = [row for row in rows if row["state"] == "accepted"]
    known = {*schema.property_by_iri}
    known |= {str(row["iri"]) for row in accepted if row["kind"] == "property"}
    narrower = [
        ox.Triple(make_iri(str(row["iri"])), make_iri(n.SUBPROPERTY), make_iri(str(row["splits"])))
        for row in accepted
        if row["splits"] in known
    ]
    grown = schema.extend(_make_term(row, known) for row in accepted)
    axioms = tuple(sorted({*grown.axioms, *write_axioms(narrower)}))
    return _add_words(replace(grown, axioms=axioms), rows)


def name_by_wording(row: Row) -> Row:
    """The row with its first wording as label, unless its label is one of its wordings.

    A name chosen by a person or a model need not occur in any fact.
    """
    phrases = cast("Sequence[str]", row["phrases"])
    return row if row["label"] in phrases else {**row, "label": phrases[0]}


def coin_iri(kind: str, label: str, base: str, taken: Collection[str]) -> str:
    """An IRI under a base, from the percent-encoded label: `Village`, `is_king_of`.

    An IRI that is taken gets a suffix.
    """
    words = label.casefold().split()
    name = "".join(w.capitalize() for w in words) if kind == "class" else "_".join(words)
    iri = base + quote(name, safe="").replace(".", "%2E")  # no prefixed name ends in a stop
    numbered = (f"{iri}_{number}" for number in count(2))
    return next(each for each in chain([iri], numbered) if each not in taken)


def _make_term(row: Row, known: Collection[str]) -> Term:
    words = tuple(word for word in _list_words(row) if word != row["label"])
    first = str(row["iri"]), str(row["label"]), words, str(row["definition"])
    if row["kind"] == "class":
        return OntologyClass(*first, parents=(str(row["domain"]),))
    range_iri, inverse = str(row["range"]), row["inverse_of"]
    is_datatype = range_iri.startswith(n.XSD)
    return OntologyProperty(
        *first,
        domain=str(row["domain"]),
        range=range_iri,
        is_datatype=is_datatype,
        inverse_of=str(inverse) if inverse in known and not is_datatype else None,
    )


def _list_words(row: Row) -> list[str]:
    return [str(row["label"]), *cast("list[str]", row["phrases"])]


def _add_words(schema: Schema, rows: Iterable[Row]) -> Schema:
    """The terms with the phrases of their aliases as alternative labels."""
    known = schema.term_by_iri.copy()
    for row in rows:
        if row["state"] == "alias" and (term := known.get(str(row["iri"]))):
            words = {*term.alt_labels, *_list_words(row)} - {term.label}
            known[term.iri] = replace(term, alt_labels=tuple(words))
    return schema.extend(known.values())


def identify_proposal(row: Row) -> tuple[str, ...]:
    """The key of a proposal: kind, domain, label and range."""
    return tuple(cast("str", row[name]) for name in ("kind", "domain", "label", "range"))
