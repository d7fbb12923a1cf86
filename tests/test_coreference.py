"""Coreference takes time that grows with the text alone; who is meant: `test_sentences.py`."""

from kpyramid.extraction.facts.coreference import Antecedents
from kpyramid.extraction.syntax.parser import Parser
from kpyramid.settings import ExtractSettings


def test_long_text_costs_no_more_per_word() -> None:
    sentences = [f"Town{i} Hall is a hall in Kent. It was built by Ann Lee{i}." for i in range(300)]
    (tree,) = Parser(ExtractSettings().parser).parse_all([" ".join(sentences)])
    assert len(Antecedents(tree)._active) <= 60
