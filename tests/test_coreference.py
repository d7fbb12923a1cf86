"""Coreference takes time that grows with the text alone; who is meant: `test_sentences.py`."""

from kpyramid.documents.blocks import Block
from kpyramid.extraction.facts.coreference import Antecedents
from kpyramid.extraction.openie import DependencyExtractor
from kpyramid.extraction.syntax.parser import Parser
from kpyramid.extraction.types import Titled
from kpyramid.settings import ExtractSettings


def test_long_text_costs_no_more_per_word() -> None:
    sentences = [f"Town{i} Hall is a hall in Kent. It was built by Ann Lee{i}." for i in range(300)]
    (tree,) = Parser(ExtractSettings().parser).parse_all([" ".join(sentences)])
    assert len(Antecedents(tree)._active) <= 60


def test_we_are_the_author_outside_of_turns_and_nobody_without_one() -> None:
    text = "We bought the mill in 2009. Our income was £142,600. The town gave us a grant."
    parser = ExtractSettings().parser
    named, plain = DependencyExtractor(parser, "en", "Orm Rescue"), DependencyExtractor(parser)
    facts = {(fact.head, fact.relation, fact.tail) for fact in named.extract(text).facts}
    assert {("Orm Rescue", "bought", "mill"), ("Orm Rescue", "has income", "£142,600")} <= facts
    assert ("town", "Orm Rescue") in {(head, tail) for head, _, tail in facts}
    assert {fact.head for fact in plain.extract(text).facts} <= {"income", "town"}
    turn = Block("turn", 0, len("Ann Lee: We sold the mill."), 0)
    said = named.extract_all([Titled("Ann Lee: We sold the mill.", "", (turn,))])
    assert all(fact.head != "Orm Rescue" for each in said for fact in each.facts)


def test_the_company_is_the_author_who_says_we() -> None:
    text = (
        "We sell fish. Insurance is provided through Blue Cross. The company pays 75% of the fee."
    )
    named = DependencyExtractor(ExtractSettings().parser, "en", "Orm Foods")
    (fact,) = (fact for fact in named.extract(text).facts if fact.relation == "pays")
    assert (fact.head, fact.tail) == ("Orm Foods", "75% of the fee")
