"""Accepted proposals become part of the schema."""

from collections.abc import Iterable, Mapping
from typing import cast

from kpyramid.ontology.names import XSD
from kpyramid.ontology.schema import OntologyClass, OntologyProperty, Schema


def adopt_proposals(schema: Schema, proposals: Iterable[Mapping[str, object]]) -> Schema:
    """The schema with the accepted rows of the table `proposals` added.

    Raises:
        InputError: a proposal's domain or range is not in the schema.
    """
    classes: list[OntologyClass] = []
    properties: list[OntologyProperty] = []
    for row in proposals:
        if row["state"] != "accepted":
            continue
        iri, label, domain = str(row["iri"]), str(row["label"]), str(row["domain"])
        phrases = tuple(cast("list[str]", row["phrases"]))
        support = len(cast("list[str]", row["triple_ids"]))
        comment = f"Proposed by completion from {support} facts of the graph."
        if row["kind"] == "class":
            classes.append(OntologyClass(iri, label, phrases, comment, (domain,)))
        else:
            range_iri = str(row["range"])
            properties.append(
                OntologyProperty(
                    iri=iri,
                    label=label,
                    alt_labels=phrases,
                    comment=comment,
                    domain=domain,
                    range=range_iri,
                    is_datatype=range_iri.startswith(XSD),
                )
            )
    return schema.extend(classes, properties)
