"""The confidence of a triple: a probability that ranks facts by what readers said of their like."""

from kpyramid.extraction.facts.scoring import score_candidate
from kpyramid.extraction.openie import DependencyExtractor, read_findings
from kpyramid.extraction.syntax.parser import Parser
from kpyramid.extraction.syntax.tree import pack_tree, unpack_tree
from kpyramid.settings import ExtractSettings
from tests.rows import each_row


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


@each_row("surer, less_sure")
def test_a_whole_fact_about_names_is_surer_than_a_vague_one(surer: str, less_sure: str) -> None:
    extractor = DependencyExtractor(ExtractSettings().parser)
    most = max(fact.confidence for fact in extractor.extract(surer).facts)
    others = [fact.confidence for fact in extractor.extract(less_sure).facts]

    assert most > max(others, default=0.0)
    assert most > 0.75
