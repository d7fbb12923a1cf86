"""What the extractor makes of single sentences: rows of `golden/sentences.jsonl`, one rule each.

A row has a text, perhaps its document's `title`, and what is expected: `facts` that are published
and `no_facts` that are not (null stands for any words), `claims`, `n_ary` facts (predicate, then
arguments), reasons of what is `dropped`, and what a word `means` (word, which occurrence, name).
A rule may go if what it buys is less than its lines cost, so a share of the rows may fail.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kpyramid.extraction.facts.coreference import Antecedents
from kpyramid.extraction.openie import DependencyExtractor
from kpyramid.extraction.syntax.parser import Parser
from kpyramid.extraction.types import Extraction, Titled
from kpyramid.settings import ExtractSettings
from tests.rows import read_bodies

Row = dict[str, Any]
ROWS: list[Row] = [
    json.loads(line)
    for line in (Path(__file__).parent / "golden" / "sentences.jsonl")
    .read_text("utf-8")
    .split("\n")
    if line
]
FLOORS = read_bodies("sentences.floors")
"""Least share of the expectations of each kind that hold."""


@pytest.fixture(scope="module")
def outcomes() -> dict[str, list[tuple[bool, str]]]:
    """Of each kind of expectation, whether it holds, and the text with what was expected."""
    parser = ExtractSettings().parser
    extractor = DependencyExtractor(parser)
    texts = [row["text"] for row in ROWS]
    found = extractor.extract_all(Titled(row["text"], row.get("title", "")) for row in ROWS)
    worded = extractor.read_sentences(texts)
    trees = Parser(parser).parse_all(texts)
    outcomes = defaultdict(list)
    for row, extraction, facts, tree in zip(ROWS, found, worded, trees, strict=True):
        stated = {(f.predicate, *(a.text for a in f.arguments)) for f in facts}
        antecedents = Antecedents(tree, row.get("title", ""))
        checks = [*check_extraction(row, extraction)]
        checks += [("n_ary", tuple(each) in stated, each) for each in row.get("n_ary", ())]
        for word, nth, expected in row.get("means", ()):
            token = [node for node in tree.nodes if node.text == word][nth]
            phrase = antecedents.resolve(token)
            holds = (phrase.text if phrase is not None else None) == expected
            checks.append(("means", holds, [word, expected]))
        for kind, holds, expected in checks:
            outcomes[kind].append((holds, f"{row['text']!r}: {expected}"))
    return outcomes


def check_extraction(row: Row, found: Extraction) -> Iterator[tuple[str, bool, object]]:
    published = {
        (f.head, f.relation, f.tail)
        for f in found.facts
        if not f.negated
        and f.attribution is None
        and (f.modality is None or f.relation.startswith(f.modality))
    }
    for fact in row.get("facts", ()):
        yield "facts", any(fits(fact, other) for other in published), fact
    for fact in row.get("no_facts", ()):
        yield "no_facts", not any(fits(fact, other) for other in published), fact
    for text in row.get("claims", ()):
        yield "claims", text in {claim.text for claim in found.claims}, text
    for reason in row.get("dropped", ()):
        yield "dropped", reason in {dropped.reason for dropped in found.dropped}, reason


def fits(pattern: list[str | None], fact: tuple[str, str, str]) -> bool:
    return all(wanted in {None, part} for wanted, part in zip(pattern, fact, strict=True))


@pytest.mark.parametrize("kind", FLOORS)
def test_most_sentences_are_read_as_expected(
    kind: str, outcomes: dict[str, list[tuple[bool, str]]]
) -> None:
    failed = [text for holds, text in outcomes[kind] if not holds]
    assert len(failed) <= (1 - FLOORS[kind]) * len(outcomes[kind]), "\n".join(failed)


def test_every_row_expects_something_and_no_text_comes_twice() -> None:
    assert all(row.keys() & FLOORS.keys() for row in ROWS)
    keys = [(row["text"], row.get("title")) for row in ROWS]
    assert len(set(keys)) == len(keys)
