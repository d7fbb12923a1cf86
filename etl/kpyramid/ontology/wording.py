"""Classes and properties in words, as a model is shown them."""

from kpyramid.ontology.names import RDFS, THING, XSD
from kpyramid.ontology.schema import OntologyProperty, Schema

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
"""How values of a datatype are to be written; the others are whole numbers."""


def name_class(iri: str, schema: Schema) -> str:
    """A class's label; `anything` of the most general."""
    if iri == THING:
        return "anything"
    found = schema.class_by_iri.get(iri)
    return found.label if found else iri


def name_range(iri: str, schema: Schema) -> str:
    """What a property's values are: a class's label, or the form of a datatype."""
    if iri.startswith(XSD) or iri in FORMS:
        return FORMS.get(iri, "a whole number")
    return name_class(iri, schema)


def show_ends(prop: OntologyProperty, schema: Schema) -> str:
    """From what to what a property leads."""
    return f"{name_class(prop.domain, schema)} → {name_range(prop.range, schema)}"
