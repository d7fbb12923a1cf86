"""Adopted proposals: what of them stands in the schema, and survives Turtle."""

import pytest

from kpyramid.ontology.names import THING, XSD
from kpyramid.ontology.proposals import adopt_proposals, coin_iri
from kpyramid.ontology.schema import parse_schema, write_schema
from kpyramid.ontology.validation.consistency import judge_consistency
from tests.corpora import require_java
from tests.planted import GENERAL, PERSON, PLACE, general_schema

BASE = general_schema()


def make_row(**changes: object) -> dict[str, object]:
    row: dict[str, object] = {
        "kind": "property",
        "iri": GENERAL + "is_king_of",
        "label": "is king of",
        "definition": "A person reigns over a place.",
        "domain": PERSON,
        "range": PLACE,
        "inverse_of": None,
        "splits": None,
        "phrases": ["is king of", "reigned over"],
        "state": "accepted",
    }
    return row | changes


def test_an_accepted_property_has_its_words_its_definition_and_its_ends() -> None:
    grown = adopt_proposals(BASE, [make_row()])
    prop = grown.property_by_iri[GENERAL + "is_king_of"]
    assert (prop.label, prop.alt_labels) == ("is king of", ("reigned over",))
    assert prop.comment == "A person reigns over a place."
    assert (prop.domain, prop.range, prop.is_datatype) == (PERSON, PLACE, False)
    assert len(grown.properties) == len(BASE.properties) + 1


def test_an_inverse_holds_in_both_directions() -> None:
    row = make_row(
        iri=GENERAL + "is_employer_of", label="is employer of", domain=GENERAL + "Organisation",
        range=PERSON, inverse_of=GENERAL + "employer",
    )  # fmt: skip
    grown = adopt_proposals(BASE, [row])
    assert (GENERAL + "employer", True) in grown.find_entailed(GENERAL + "is_employer_of")


@pytest.mark.parametrize("name", ["inverse_of", "splits"])
def test_what_was_not_accepted_itself_is_not_pointed_to(name: str) -> None:
    grown = adopt_proposals(BASE, [make_row(**{name: GENERAL + "not_there"})])
    assert "not_there" not in write_schema(grown)


def grow_fully() -> list[dict[str, object]]:
    return [
        make_row(splits=GENERAL + "employer", range=GENERAL + "Organisation"),
        make_row(
            kind="class", iri=GENERAL + "Village", label="village", domain=PLACE, range=None,
            phrases=["village"], definition='A "small" place.',
        ),
        make_row(
            iri=GENERAL + "employs_now", label="employs now", domain=GENERAL + "Organisation",
            range=PERSON, inverse_of=GENERAL + "employer",
        ),
        make_row(iri=GENERAL + "reigned_until", label="reigned until", range=XSD + "gYear"),
        make_row(iri=GENERAL + "birthPlace", label="saw the light in", state="alias"),
        make_row(iri=GENERAL + "of_all", label="of all", domain=THING, range=GENERAL + "Village"),
    ]  # fmt: skip


def test_the_grown_schema_comes_back_from_its_turtle() -> None:
    grown = adopt_proposals(BASE, grow_fully())
    assert parse_schema(write_schema(grown), source="t") == grown
    assert set(BASE.axioms) < set(grown.axioms)


def test_the_grown_schema_passes_the_reasoner() -> None:
    require_java()
    grown = adopt_proposals(BASE, grow_fully())
    assert judge_consistency(write_schema(grown), "", seconds=60).startswith("pass")


def test_iris_are_coined_of_labels_and_never_twice() -> None:
    assert coin_iri("class", "small village", "http://x#", ()) == "http://x#SmallVillage"
    assert coin_iri("property", "is king of", "http://x#", ()) == "http://x#is_king_of"
    assert coin_iri("property", "has part no.", "http://x#", ()) == "http://x#has_part_no%2E"
    assert coin_iri("property", "ist König <von>", "http://x#", ()) == (
        "http://x#ist_k%C3%B6nig_%3Cvon%3E"
    )
    taken = {"http://x#is_king_of", "http://x#is_king_of_2"}
    assert coin_iri("property", "is king of", "http://x#", taken) == "http://x#is_king_of_3"
