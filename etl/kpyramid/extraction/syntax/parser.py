"""The dependency parser: texts in, trees out. The only module that imports spaCy."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kpyramid.documents.cleaning import CleanText, clean_part, list_blocks
from kpyramid.documents.sentences import Span
from kpyramid.extraction.syntax.repairs import repair_tree
from kpyramid.extraction.syntax.tree import Node, Tree

if TYPE_CHECKING:
    from spacy.tokens import Doc

_ATTRIBUTES: list[int | str] = [
    *"ORTH LOWER LEMMA POS TAG DEP ENT_TYPE ENT_IOB IDX SPACY HEAD SENT_START".split()
]
_IOB = ("", "I", "O", "B")
_BATCH = 128


class Parser:
    """An installed spaCy package with tagger, parser and NER, loaded on first use."""

    def __init__(self, package: str) -> None:
        self.package = package
        self._pipeline: Any = None

    def parse_all(self, texts: Iterable[str]) -> Iterator[Tree]:
        """One tree per text, in order, each of the whole text."""
        return self.parse_parts((text, list(list_blocks(text))) for text in texts)

    def parse_parts(self, texts: Iterable[tuple[str, Sequence[Span]]]) -> Iterator[Tree]:
        """One tree per text, in order, of the parts of it that are given with it.

        No sentence goes from one part into the next. A part is at most a block long. Batches
        change the speed and no tensor, so no result.
        """
        if self._pipeline is None:
            import spacy

            self._pipeline = spacy.load(self.package)
        waiting: deque[tuple[str, int]] = deque()  # texts on the way, with their number of parts

        def cut() -> Iterator[tuple[str, CleanText]]:
            for text, spans in texts:
                parts = [clean_part(text, span.start, span.end) for span in spans]
                parts = [part for part in parts if part.words.strip()]
                waiting.append((text, len(parts)))
                for part in parts:
                    yield part.words, part

        parsed = self._pipeline.pipe(cut(), as_tuples=True, batch_size=_BATCH)
        docs: list[tuple[Doc, CleanText]] = []
        for doc, part in parsed:
            yield from _release_empty(waiting)
            docs.append((doc, part))
            if len(docs) == waiting[0][1]:
                yield build_tree(waiting.popleft()[0], docs)
                docs = []
        yield from _release_empty(waiting)


def _release_empty(waiting: deque[tuple[str, int]]) -> Iterator[Tree]:
    while waiting and waiting[0][1] == 0:
        yield build_tree(waiting.popleft()[0], ())


def build_tree(text: str, docs: Iterable[tuple[Doc, CleanText]]) -> Tree:
    """The tree of `text` from the parses of parts of it, plain errors mended."""
    tree = Tree(text, [], [])
    for doc, part in docs:
        _append_doc(tree, doc, part)
    repair_tree(tree)
    return tree


def _append_doc(tree: Tree, doc: Doc, part: CleanText) -> None:
    first = len(tree.nodes)
    strings = _strings(doc.vocab.strings)
    heads: list[int] = []
    for row in doc.to_array(_ATTRIBUTES).tolist():
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
            tree,
            i,
            place,
            words,
            strings[lower],
            strings[lemma],
            strings[pos],
            strings[tag],
            strings[dep],
            strings[entity],
            _IOB[iob],
            bool(space),
            len(tree.sentences) - 1,
        )
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
    for i in range(
        first, first + len(heads)
    ):  # a leaf widens its ancestors as far as it sticks out
        node = at = nodes[i]
        while at.head is not at:
            at = at.head
            if at.left_edge.i > i:
                at.left_edge = node
            elif at.right_edge.i < i:
                at.right_edge = node
            else:
                break


class _Strings(dict[int, str]):
    """The strings of a vocabulary, looked up once each."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __missing__(self, key: int) -> str:
        value = str(self._store[key]) if key else ""
        self[key] = value
        return value


_known: dict[int, _Strings] = {}


def _strings(store: Any) -> _Strings:
    key = id(store)
    if key not in _known or _known[key]._store is not store:
        _known.clear()
        _known[key] = _Strings(store)
    return _known[key]


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value
