"""The confidence of a fact: a probability, of nothing but its features, that says what it means."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from kpyramid.extraction.facts.scoring import Features, estimate_confidence, list_values
from tests.rows import read_rows

KINDS = (
    "main conjunct relative participle adverbial complement infinitive apposition possessive "
    "title noun place"
).split()


def draw_features() -> st.SearchStrategy[Features]:
    fields = {
        field.name: st.booleans() if field.type == "bool" else st.integers(0, 500)
        for field in dataclasses.fields(Features)
        if field.name != "construction"
    }
    return st.builds(Features, st.sampled_from(KINDS), **fields)


@given(draw_features())
def test_confidence_is_a_probability_and_values_are_shares(features: Features) -> None:
    assert 0 <= estimate_confidence(features) <= 1
    assert all(0 < value <= 1 for value in list_values(features).values())


def test_doubtful_facts_are_less_sure() -> None:
    plain = Features("main", sentence_words=12, predicate_words=1, object_words=3)
    assert estimate_confidence(plain) > 0.5
    for change in read_rows("confidence.doubtful_facts_are_less_sure"):
        doubtful = dataclasses.replace(plain, **change)
        assert estimate_confidence(doubtful) < estimate_confidence(plain), change
