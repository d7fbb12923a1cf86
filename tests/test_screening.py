"""What is no prose is left out with its reason, and prose never is."""

import itertools
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpyramid.documents.screening import screen_text
from kpyramid.documents.sentences import Dropped
from kpyramid.extraction.openie import DependencyExtractor
from tests.rows import each_row, read_bodies

REASONS = {*read_bodies("screening.reasons")}

PROSE = (*read_bodies("screening.prose"),)


def reasons(text: str) -> set[str]:
    return {dropped.reason for dropped in screen_text(text, "en")[1]}


def kept(text: str) -> list[str]:
    return [text[span.start : span.end] for span in screen_text(text, "en")[0]]


@pytest.mark.parametrize("text", PROSE)
def test_prose_is_kept_whole(text: str) -> None:
    assert kept(text) == [text]
    assert not reasons(text)


@each_row("text, reason")
def test_what_is_no_prose_is_left_out_whole_with_its_reason(text: str, reason: str) -> None:
    assert kept(text) == []
    assert reasons(text) == {reason}


def test_a_block_in_another_language_is_left_out_once_and_its_neighbours_stay() -> None:
    german = "Der Verein wurde 1904 gegründet. Er gewann mehrere Preise. Er besteht noch heute."
    text = f"The club is old.\n\n{german}\n\nIt won the cup in 1910."
    spans, dropped = screen_text(text, "en")
    assert [text[s.start : s.end] for s in spans] == ["The club is old.", "It won the cup in 1910."]
    (only,) = dropped
    assert only.text == f"[de] {german}"
    assert text[only.span.start : only.span.end] == german


@each_row("text, prose, why")
def test_prose_is_kept_and_what_stands_beside_it_is_left_out(
    text: str, prose: tuple[str, ...], why: tuple[str, ...]
) -> None:
    assert (kept(text), reasons(text)) == ([*prose], {*why})


def test_a_sentence_of_three_hundred_words_is_kept() -> None:
    text = ", and ".join(f"the bridge of year {n} was built by a man from Leeds" for n in range(25))
    assert len(text.split()) > 290
    assert kept(f"{text}.") == [f"{text}."]


def is_literal(text: str, dropped: Dropped) -> bool:
    words = re.sub(r"^\[[a-z]{2,3}\] ", "", dropped.text)
    there = text[dropped.span.start : dropped.span.end]
    return there == words or (words.endswith("…") and there.startswith(words[:-1]))


_PIECES = st.sampled_from(
    [*PROSE, "|", "\t", "\n", "\n\n", "```", "{};", "12 ", "Smith, J. (2001).", "- ", "🎉", "и "]
)


@given(st.one_of(st.text(max_size=300), st.lists(_PIECES, max_size=12).map("".join)))
def test_any_text_is_cut_into_literal_spans_in_order_that_do_not_overlap(text: str) -> None:
    spans, dropped = screen_text(text, "en")
    assert (spans, dropped) == screen_text(text, "en")
    everything = sorted([*spans, *(d.span for d in dropped)], key=lambda s: (s.start, s.end))
    assert all(0 <= s.start < s.end <= len(text) for s in everything)
    assert all(a.end <= b.start for a, b in itertools.pairwise(everything))
    assert all(text[s.start : s.end].strip() == text[s.start : s.end] for s in spans)
    assert {d.reason for d in dropped} <= REASONS
    assert all(is_literal(text, d) for d in dropped)


@pytest.mark.parametrize(
    "unit",
    'a, |(|)|"|-|- |— |x|1|1 |. |.|=|{|\t|```\n|```\n\n|\n|\n\n|a\n\n|[1] |A. |www.|@|,|a,a|_(|'
    "и |🎉|J. A. Smith, |12(3): |a.b(|\\".split("|"),
)
def test_adversarial_text_costs_linear_time(unit: str) -> None:
    screen_text("Der Verein wurde gegründet und ist alt", "en")  # loads the classifier
    text = unit * (200_000 // max(len(unit), 1))
    began = time.process_time()
    spans, _ = screen_text(text, "en")
    assert time.process_time() - began < 5
    assert all(s.end - s.start <= 10_000 for s in spans)


@given(st.one_of(st.text(max_size=200), st.lists(_PIECES, max_size=8).map("".join)))
@settings(max_examples=60)
def test_any_text_is_read_without_an_error_and_always_alike(
    extractor: DependencyExtractor, text: str
) -> None:
    found = extractor.extract(text)
    assert found == extractor.extract(text)
    for span in (*(d.span for d in found.dropped), *(s for c in found.claims for s in c.spans)):
        assert 0 <= span.start < span.end <= len(text)
    for fact in found.facts:
        for words, place in ((fact.head, fact.head_span), (fact.tail, fact.tail_span)):
            assert place is None or text[place.start : place.end].split() == words.split()
    for mention in found.mentions:
        assert text[mention.span.start : mention.span.end].split() == mention.text.split()


def test_what_was_left_out_is_told_with_the_text_it_belongs_to(
    extractor: DependencyExtractor,
) -> None:
    texts = [
        "Anna Holm founded a club.",
        "🎉🎉",
        "",
        "Der Verein wurde 1904 in Ulm gegründet.",
        "x",
    ]
    found = list(extractor.extract_all(texts))
    assert [[d.reason for d in one.dropped] for one in found] == [
        [],
        ["no_words"],
        [],
        ["language_not_supported"],
        ["no_words"],
    ]
    assert found == [extractor.extract(text) for text in texts]


def test_a_single_sentence_is_read_as_it_is_given(extractor: DependencyExtractor) -> None:
    odd = ["", "🎉", "Der Verein wurde gegründet.", "| a | b |", "x = {1}", "МОСКВА", "\x00", "((("]
    assert len(list(extractor.read_sentences(odd))) == len(odd)


_HOSTILE = (*read_bodies("screening._hostile"),)


def time_extraction(extractor: DependencyExtractor, unit: str, characters: int) -> float:
    began = time.process_time()
    extractor.extract(unit * (characters // len(unit)))
    return time.process_time() - began


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "characters"),
    [(unit, 40_000 if at < 2 else 10_000) for at, unit in enumerate(_HOSTILE)],
)
def test_a_hostile_text_costs_four_times_what_a_quarter_costs(
    extractor: DependencyExtractor, unit: str, characters: int
) -> None:
    quarter = time_extraction(extractor, unit, characters // 4)
    assert time_extraction(extractor, unit, characters) < 6 * quarter + 2
