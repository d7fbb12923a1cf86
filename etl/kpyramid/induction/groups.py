"""What is asked in one call: the properties of one class, or of several small ones."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kpyramid.ontology.names import THING
from kpyramid.ontology.schema import OntologyProperty, Schema

MOST_PROPERTIES = 64
"""Properties of one call: some 1,700 tokens of prompt, the same for every text, so that servers
keep it. A call of its own for every class would repeat instructions and text each time."""


@dataclass(frozen=True, slots=True)
class Group:
    """The properties that one call asks for, those of one domain side by side."""

    properties: tuple[OntologyProperty, ...]

    @property
    def domains(self) -> tuple[str, ...]:
        """The IRIs of the classes whose individuals are asked for, each once."""
        return tuple(dict.fromkeys(prop.domain for prop in self.properties))


def group_properties(schema: Schema, most: int = MOST_PROPERTIES) -> tuple[Group, ...]:
    """All that an ontology can be asked for in as few calls as `most` properties allow.

    Classes that are near in the hierarchy stand together; one with more properties is cut. What a
    class inherits is asked once, with the class that declares it. Of two inverse properties the
    one with the smaller IRI is asked, as an instance is kept under that one.
    """
    asked = [
        prop for prop in schema.properties if prop.inverse_of is None or prop.iri <= prop.inverse_of
    ]
    by_class: dict[tuple[str, ...], list[OntologyProperty]] = {}
    for prop in asked:
        by_class.setdefault(_list_line(prop.domain, schema), []).append(prop)
    packs = _pack([by_class[line] for line in sorted(by_class)], most)
    return tuple(Group(tuple(pack)) for pack in packs)


def list_pairs(schema: Schema) -> tuple[Group, ...]:
    """Every class–property pair by itself, as f_ins(c, a; p) of PolyRAG's Eq. 1 asks."""
    return tuple(Group((prop,)) for prop in schema.properties)


def _list_line(iri: str, schema: Schema) -> tuple[str, ...]:
    """A class under its ancestors, the most general first; one line where there are several."""
    line = [iri]
    while (found := schema.class_by_iri.get(line[-1])) is not None and found.parents:
        if found.parents[0] in line or found.parents[0] == THING:
            break
        line.append(found.parents[0])
    return tuple(reversed(line))


def _pack(
    classes: Iterable[Sequence[OntologyProperty]], most: int
) -> Iterator[list[OntologyProperty]]:
    pack: list[OntologyProperty] = []
    for properties in classes:
        rest = list(properties)
        if pack and len(pack) + len(rest) > most:
            yield pack
            pack = []
        while len(rest) > most:
            yield rest[:most]
            rest = rest[most:]
        pack += rest
    if pack:
        yield pack
