"""The confidence of a triple: a probability that ranks facts by what readers said of their like."""

import re

import pytest

from kpyramid.extraction.facts import scoring
from kpyramid.extraction.facts.assembly import draft_facts
from kpyramid.extraction.facts.scoring import score_candidate
from kpyramid.extraction.openie import DependencyExtractor, read_findings
from kpyramid.extraction.syntax.parser import Parser
from kpyramid.extraction.syntax.tree import pack_tree, unpack_tree
from kpyramid.settings import ExtractSettings

ROLES = (
    "subject object receiver time place manner adverb clause purpose circumstance preposition "
    "attribute quality particle"
)
TRAIT = re.compile(
    r"bias|construction=\w+|parts|(depth|\w+_words|arguments|\w+_named|\w+_pronoun|\w+_clause"
    r"|indirect_subject|inferred_predicate|split|passive|copula|negated|modal|attributed"
    r"|preposition|no_object|subject_only)"
    r"|(head|tail) (length|capitals|(digit |replaced )?(name|noun|literal)"
    r"|(name|noun|literal) of [1-6]|(after|before) (edge|\S+)"
    r"|(determiner|bare|holds|one noun with) \S+)"
    r"|doubt (text|sentence|(head|tail)( edges)?)"
    rf"|(tail as|relation holds|left) ({ROLES.replace(' ', '|')})"
    r"|sentence (asks|has (brackets|colon|dash|quotation|no end)|speaks|addresses|supposes|turns"
    r"|starts small|words|verbs|numbers|first|second|number)"
)


def test_every_weight_is_of_a_trait() -> None:
    assert [name for name in scoring.WEIGHTS["triples"] if not TRAIT.fullmatch(name)] == []


def test_traits_are_shares() -> None:
    text = "If prices rise, Acme (founded by Ada Berg in 1990) may buy 30% of the oldest shops."
    (tree,) = Parser(ExtractSettings().parser).parse_all([text])
    drafted = list(draft_facts(read_findings(tree)))

    assert drafted
    assert all(0 < value <= 1 for _, traits in drafted for value in traits.values())
    assert all("sentence supposes" in traits for _, traits in drafted)
    assert all("sentence first" in traits for _, traits in drafted)


def test_doubt_of_the_parser_makes_a_triple_less_sure() -> None:
    (tree,) = Parser(ExtractSettings().parser).parse_all(["Ada Berg founded Acme in 1990."])
    for node in tree.nodes:
        node.doubt = 0
    sure = [score_candidate(c, f) for f in [read_findings(tree)] for c in f.candidates]
    for node in (other := unpack_tree(tree.text, pack_tree(tree))).nodes:
        node.doubt = 5
    unsure = [score_candidate(c, f) for f in [read_findings(other)] for c in f.candidates]

    assert sure
    assert all(more > less for more, less in zip(sure, unsure, strict=True))


@pytest.mark.parametrize(
    ("surer", "less_sure"),
    [
        ("Ada Berg founded Acme in 1990.", "The study included patients."),
        ("Oslo is the capital of Norway.", "It was similar in both groups, I think."),
    ],
)
def test_a_whole_fact_about_names_is_surer_than_a_vague_one(surer: str, less_sure: str) -> None:
    extractor = DependencyExtractor(ExtractSettings().parser)
    most = max(fact.confidence for fact in extractor.extract(surer).facts)
    others = [fact.confidence for fact in extractor.extract(less_sure).facts]

    assert most > max(others, default=0.0)
    assert most > 0.75
