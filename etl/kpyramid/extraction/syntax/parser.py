"""The dependency parser: texts in, trees out. The only module that imports spaCy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from kpyramid.documents.cleaning import CODE, CleanText, clean_part, list_blocks
from kpyramid.documents.sentences import Span, split_sentences
from kpyramid.errors import without
from kpyramid.extraction.syntax.repairs import repair_tree
from kpyramid.extraction.syntax.tree import Node, Tree

if TYPE_CHECKING:
    from spacy.tokens import Doc

_ATTRIBUTES: list[int | str] = [
    *"ORTH LOWER LEMMA POS TAG DEP ENT_TYPE ENT_IOB IDX SPACY HEAD SENT_START".split()
]
_IOB = ("", "I", "O", "B")
_BATCH = 128
_TOKENS = 4096
"""Tokens of the docs that are parsed together: their features need 16 MB."""
_DOUBT = "doubt"
_TRANSFORMERS = ("spacy_transformers", "spacy_curated_transformers")
"""Packages whose pipelines need torch, which spaCy loads where installed: twice its own time."""
_UNIT_END = re.compile(
    r"\d ?(?:(?:[a-z]{1,4}/)?[a-z]{1,3}\.(?= [A-Z]|\s*$)"
    r"|[kMGm]?[AJKNVW]\.(?= (?:The|It|Its|This|A|An) |\s*$))"
    r"|\w[/*]\.(?= [A-Z]|\s*$)"
)
"""The end of a sentence whose stop the tokenizer does not separate: "a depth of 186 m. The lake",
"in docs/. The page".

After a capital letter only where no name can follow: "in 1990 W. Smith" is no end.
"""
_CAPITAL = re.compile(r"\s[A-Z]\.")
"""The end of a sentence in a capital, which the tokenizer reads as an initial: "in Lot C."."""
_WHOLE = re.compile(
    r"(?<=\d)\s?(°\s?[CF]|[A-Za-zµ]{1,4}/[A-Za-z]{1,3})(?!\w)"
    r"|(?<![\w-])([a-z]+-in-law|(?:co|re)-[a-z]{4,}|[exX]-[a-z]{3,})\b"
    r"|\b((?:US|AU|CA|NZ|HK)\s\$)(?=\d)"
)
"""Words that the tokenizer splits: "20 °C", "120 km/h", "brother-in-law", "re-opened", "x-axis"."""


class Parser:
    """An installed spaCy package with tagger, parser and NER, loaded on first use."""

    def __init__(self, package: str) -> None:
        self.package = package
        self._pipeline: Any = None

    def parse_all(self, texts: Iterable[str]) -> Iterator[Tree]:
        """One tree per text, in order, each of the whole text."""
        return self.parse_parts((text, list(list_blocks(text))) for text in texts)

    def parse_parts(
        self,
        texts: Iterable[tuple[str, Sequence[Span], *tuple[Sequence[Span], ...]]],
    ) -> Iterator[Tree]:
        """One tree per text, in order, of the given parts of it.

        After the parts may stand the spans of inline code, each of which is one token. No sentence
        crosses two parts. A part is at most a block long. Batches change the speed but no tensor,
        so no result.
        """
        if self._pipeline is None:
            needs_torch = any(map(find_spec, _TRANSFORMERS))
            with nullcontext() if needs_torch else without("torch"):
                import spacy

            self._pipeline = spacy.load(self.package)
        waiting: list[tuple[str, list[CleanText]]] = []
        size = 0
        for text, spans, *codes in texts:
            parts = [clean_part(text, span.start, span.end, *codes) for span in spans]
            waiting.append((text, [part for part in parts if part.words.strip()]))
            size += max(len(spans), 1)
            if size >= _BATCH:
                yield from self._parse_batch(waiting)
                waiting, size = [], 0
        yield from self._parse_batch(waiting)

    def _parse_batch(self, texts: list[tuple[str, list[CleanText]]]) -> Iterator[Tree]:
        parts = [part for _, cleaned in texts for part in cleaned]
        batches = (parts[start : start + _BATCH] for start in range(0, len(parts), _BATCH))
        parsed = (doc for batch in batches for doc in self._annotate(batch))
        for text, cleaned in texts:
            yield build_tree(text, [(next(parsed), part) for part in cleaned])

    def _annotate(self, parts: list[CleanText]) -> list[Doc]:
        from spacy.training.batchers import minibatch_by_words

        docs = [self._pipeline.make_doc(part.words) for part in parts]
        for doc, part in zip(docs, parts, strict=True):
            ends = {unit.end() for unit in _UNIT_END.finditer(part.words)}
            if capitals := {letter.end() for letter in _CAPITAL.finditer(part.words)}:
                ends |= capitals.intersection(span.end for span in split_sentences(part.words))
            with doc.retokenize() as retokenizer:
                for end in ends:
                    (last,) = doc.char_span(end - 1, end, alignment_mode="expand")
                    if len(last) > 1:
                        parts_of = [last.text[:-1], "."]
                        retokenizer.split(last, parts_of, heads=[(last, 0), (last, 0)])
            for end in ends:
                if begun := doc.char_span(end + 1, end + 2, alignment_mode="expand"):
                    begun[0].is_sent_start = True
            with doc.retokenize() as retokenizer:
                for match in _WHOLE.finditer(part.words):
                    if (whole := doc.char_span(*match.span(match.lastindex or 0))) is not None:
                        retokenizer.merge(whole)
        for _, pipe in self._pipeline.pipeline:
            if hasattr(pipe, "moves"):
                for batch in minibatch_by_words(sorted(docs, key=len), _TOKENS):
                    _decide(pipe, batch)
            else:
                docs = list(pipe.pipe(docs, batch_size=_BATCH))
        return docs


def _decide(pipe: Any, docs: list[Doc]) -> None:
    """Annotates the docs as `greedy_parse` of the transition parser or recogniser does, but faster.

    The parser's docs store for each token the largest doubt of a decision, in tenths.
    """
    states = pipe.moves.init_batch(docs)
    step = pipe.model.predict(docs)
    places, chances = [], []
    live = [state for state in states if not state.is_final()]
    while live:
        places.append(step.get_token_ids(live))
        chances.append(step.predict(live))
        live = pipe.transition_states(live, chances[-1])
    step.clear_memory()
    pipe.set_annotations(docs, states)
    if pipe.name != "parser":
        return
    buffer, _, stack = np.concatenate(places).T[:3]
    chosen = (buffer >= 0) & (stack >= 0)  # else hardly another move is possible
    scores = np.concatenate(chances)[chosen]
    doubt = 1 - 1 / np.exp(scores - scores.max(axis=1, keepdims=True)).sum(axis=1)
    most = np.zeros(sum(map(len, docs)))
    for tokens in (buffer, stack):
        np.maximum.at(most, tokens[chosen], doubt)
    tenths = iter((most * 10).round().astype(int).tolist())
    for doc in docs:
        doc.user_data[_DOUBT] = list(islice(tenths, len(doc)))


def build_tree(text: str, docs: Iterable[tuple[Doc, CleanText]]) -> Tree:
    """The tree of `text` from the parses of its parts, with clear errors repaired."""
    tree = Tree(text, [], [])
    for doc, part in docs:
        _append_doc(tree, doc, part)
    repair_tree(tree)
    return tree


def _append_doc(tree: Tree, doc: Doc, part: CleanText) -> None:
    first = len(tree.nodes)
    strings = doc.vocab.strings
    heads: list[int] = []
    doubts = doc.user_data.get(_DOUBT) or [0] * len(doc)
    for row, doubt in zip(doc.to_array(_ATTRIBUTES).tolist(), doubts, strict=True):
        orth, lower, lemma, pos, tag, dep, entity, iob, idx, space, head, start = row
        i = first + len(heads)
        if not heads or _signed(start) == 1:
            tree.sentences.append((i, i))
        heads.append(i + _signed(head))
        words = strings[orth]
        place, end = part.locate(idx, len(words))
        if part.starts is not None:
            words = tree.text[place:end]
        node = Node(
            *(tree, i, place, words, strings[lower], strings[lemma], strings[pos], strings[tag]),
            *(strings[dep], strings[entity], _IOB[iob], bool(space), len(tree.sentences) - 1),
            doubt,
        )
        if strings[orth] == CODE:
            node.word, node.lemma = words.lower(), words
        tree.nodes.append(node)
        tree.sentences[-1] = (tree.sentences[-1][0], i + 1)
    _link(tree.nodes, first, heads)


def _link(nodes: list[Node], first: int, heads: list[int]) -> None:
    for i, head in enumerate(heads, first):
        node = nodes[i]
        node.head = nodes[head]
        node.left_edge = node.right_edge = node
        if head != i:
            nodes[head].children.append(node)
    # A leaf outside its ancestors' spans widens them.
    for i, node in enumerate(nodes[first:], first):
        ancestor = node
        while ancestor.head is not ancestor:
            ancestor = ancestor.head
            if ancestor.left_edge.i > i:
                ancestor.left_edge = node
            elif ancestor.right_edge.i < i:
                ancestor.right_edge = node
            else:
                break


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value
