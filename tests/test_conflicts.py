"""Of two places of which one lies in the other the narrower one is the functional value."""

import pytest

from kpyramid.documents.sentences import Span
from kpyramid.ontology.constraints import Rules
from kpyramid.ontology.population.checking import Candidate, Place
from kpyramid.ontology.population.conflicts import merge, settle
from kpyramid.ontology.schema import parse_schema
from tests.rows import read_turtle

SCHEMA = parse_schema(
    read_turtle("conflicts"),
    source="a test",
)
BORN, LOCATED = (
    SCHEMA.property_by_iri[f"https://example.org/o#{n}"] for n in ("born", "locatedIn")
)


def state(text: str, subject: str, value: str, sure: float, prop: object = BORN) -> Candidate:
    assert prop in (BORN, LOCATED)
    own = BORN if prop is BORN else LOCATED
    at = text.index(value)
    ends = Span(0, len(subject)), Span(at, at + len(value))
    place = Place(text, "chunk", 0, len(text), text, *ends, sure, "rules", f"{text} {value}")
    return Candidate(own, own.domain, subject, value, own.range, None, place)


@pytest.mark.parametrize(
    ("stated", "value", "reason"),
    [
        pytest.param(
            [
                state("Ann was born in Velm, Orland.", "Ann", "Velm", 0.6),
                state("Ann was born in Velm, Orland.", "Ann", "Orland", 0.6),
                state("Ann was born in Orland.", "Ann", "Orland", 0.9),
            ],
            "Velm",
            "wider_place",
            id="a comma says so",
        ),
        pytest.param(
            [
                state("Ann was born in Velm.", "Ann", "Velm", 0.6),
                state("Ann was born in Orland.", "Ann", "Orland", 0.9),
                state("Velm is in Orland.", "Velm", "Orland", 0.8, LOCATED),
            ],
            "Velm",
            "wider_place",
            id="a fact says so",
        ),
        pytest.param(
            [
                state("Ann was born in Velm.", "Ann", "Velm", 0.6),
                state("Ann was born in Orland.", "Ann", "Orland", 0.9),
            ],
            "Orland",
            "functional_conflict",
            id="nothing says so",
        ),
    ],
)
def test_narrower_place_is_the_value(stated: list[Candidate], value: str, reason: str) -> None:
    stay, losses = settle(merge(stated), Rules(SCHEMA))
    assert [f.object_id for f in stay if f.prop is BORN] == [value]
    assert [loss.reason for loss in losses] == [reason]
