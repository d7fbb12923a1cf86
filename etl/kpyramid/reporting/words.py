"""A schema in words: labels of its IRIs, classes of types, wordings that state a property."""

import re
from functools import cached_property

from kpyramid.extraction.normal import normalise_relation
from kpyramid.ontology.names import THING, XSD
from kpyramid.ontology.schema import Schema

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Words:
    """Labels of a schema's classes and properties; what it lacks is read from the IRI."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._labels = {c.iri: c.label for c in schema.classes} | {
            p.iri: p.label for p in schema.properties
        }

    def name(self, iri: str) -> str:
        """The label, else the words that the IRI ends with: `birthPlace` is `birth place`.

        The class of all things is `anything`, a datatype `xsd:gYear`.
        """
        if iri == THING:
            return "anything"
        if iri.startswith(XSD):
            return f"xsd:{iri.removeprefix(XSD)}"
        local = re.split(r"[#/]", iri)[-1]
        return self._labels.get(iri) or _CAMEL.sub(" ", local)

    def name_type(self, entity_type: str) -> str:
        """The label of the class whose instances carry an entity type, else `thing`."""
        iri = self._schema.class_for_type(entity_type)
        return self.name(iri) if iri else "thing"

    def states_property(self, form: str) -> bool:
        """Whether a relation's normal form is that of a property's label or phrase."""
        return form in self._forms

    @cached_property
    def _forms(self) -> frozenset[str]:
        return frozenset(
            normalise_relation(phrase).key
            for prop in self._schema.properties
            for phrase in (prop.label, *prop.alt_labels)
        )
