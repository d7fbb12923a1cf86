"""What a model is asked of a text: groups of properties."""

from kpyramid.ontology.names import XSD
from kpyramid.ontology.population.inducer import (
    MOST_PROPERTIES,
    group_properties,
    list_pairs,
)
from kpyramid.ontology.schema import OntologyClass, OntologyProperty, Schema
from tests.planted import general_schema

BASE = "https://example.org/ships#"
PERSON, SHIP, HARBOUR = BASE + "Person", BASE + "Ship", BASE + "Harbour"


def make_property(
    name: str, domain: str, wanted: str, inverse: str | None = None, *phrases: str
) -> OntologyProperty:
    return OntologyProperty(
        iri=BASE + name,
        label=name,
        alt_labels=phrases,
        comment="",
        domain=domain,
        range=wanted,
        is_datatype=wanted.startswith(XSD),
        inverse_of=inverse and BASE + inverse,
    )


SHIPS = Schema(
    BASE,
    (
        OntologyClass(PERSON, "person"),
        OntologyClass(SHIP, "ship"),
        OntologyClass(HARBOUR, "harbour"),
    ),
    (
        make_property("shipBuilder", SHIP, PERSON, None, "was built by"),
        make_property("launchYear", SHIP, XSD + "gYear", None, "was launched in"),
        make_property("homePort", SHIP, HARBOUR, "portOf"),
        make_property("portOf", HARBOUR, SHIP, "homePort"),
        make_property("birthPlace", PERSON, HARBOUR, None, "was born in"),
    ),
)


def make_large(classes: int, each: int) -> Schema:
    """Classes below one root, with so many properties each."""
    root = OntologyClass(BASE + "Root", "root")
    below = [
        OntologyClass(f"{BASE}C{n:05}", f"kind {n}", parents=(root.iri,)) for n in range(classes)
    ]
    properties = [
        make_property(f"p{n:05}x{m}", each_class.iri, XSD + "string")
        for n, each_class in enumerate(below)
        for m in range(each)
    ]
    return Schema(BASE, (root, *below), tuple(properties))


def test_every_property_is_in_one_group_and_of_two_inverses_one() -> None:
    for schema in (SHIPS, general_schema(), make_large(300, 3)):
        asked = [prop.iri for group in group_properties(schema) for prop in group]
        assert len(asked) == len(set(asked))
        for prop in schema.properties:
            assert prop.iri in asked or prop.inverse_of in asked
            assert prop.iri == prop.inverse_of or not {prop.iri, prop.inverse_of} <= set(asked)


def test_small_classes_share_a_call_and_a_large_one_has_several() -> None:
    assert len(group_properties(SHIPS)) == 1
    apart = [{prop.domain for prop in group} for group in group_properties(SHIPS, most=2)]
    assert apart == [{PERSON}, {SHIP}, {SHIP}]
    many = group_properties(make_large(2, MOST_PROPERTIES + 1))
    assert [len(group) for group in many] == [MOST_PROPERTIES, 1, MOST_PROPERTIES, 1]


def test_exhaustive_asks_for_every_pair_by_itself() -> None:
    assert list_pairs(SHIPS) == tuple((prop,) for prop in SHIPS.properties)


def test_a_thousand_classes_are_asked_for_in_few_calls() -> None:
    groups = group_properties(make_large(1000, 4))
    assert len(groups) <= 1 + 4000 // (MOST_PROPERTIES - 4)
