"""IRIs of a schema in words."""

import re

from kpyramid.ontology.schema import Schema

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Words:
    """Labels of a schema's classes and properties; what it lacks is read from the IRI."""

    def __init__(self, schema: Schema) -> None:
        self._labels = {c.iri: c.label for c in schema.classes} | {
            p.iri: p.label for p in schema.properties
        }

    def name(self, iri: str) -> str:
        """The label, else the words that the IRI ends with: `birthPlace` is `birth place`."""
        local = re.split(r"[#/]", iri)[-1]
        return self._labels.get(iri) or _CAMEL.sub(" ", local)
