"""A dependency parse as plain Python objects: read once from spaCy, then walked at full speed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kpyramid.extraction.syntax.phrases import Phrase


@dataclass(slots=True, eq=False)
class Node:
    """One token. `i` counts tokens and `idx` characters from the start of the tree's text.

    `word` is the text in small letters, `entity` the entity type ("" outside entities), `iob` is
    I, O or B. `children` and the edges of the subtree are in text order.
    """

    tree: Tree = field(repr=False)
    i: int
    idx: int
    text: str
    word: str
    lemma: str
    pos: str
    tag: str
    dep: str
    entity: str
    iob: str
    space: bool
    sentence: int
    head: Node = field(init=False, repr=False)
    left_edge: Node = field(init=False, repr=False)
    right_edge: Node = field(init=False, repr=False)
    children: list[Node] = field(default_factory=list, repr=False)

    @property
    def end(self) -> int:
        """The character after the token."""
        return self.idx + len(self.text)


@dataclass(slots=True, eq=False)
class Tree:
    """The tokens of one text, a forest with one root per sentence."""

    text: str
    nodes: list[Node]
    sentences: list[tuple[int, int]]
    """First token and token after the last, sentence by sentence; `Node.sentence` counts them."""
    phrases: dict[int, Phrase | None] = field(default_factory=dict, repr=False)
    """Arguments cut so far, so that each is cut once (`phrases.find_phrase`)."""

    def __getitem__(self, i: int) -> Node:
        return self.nodes[i]

    def __len__(self) -> int:
        return len(self.nodes)

    def list_entities(self) -> list[tuple[int, int]]:
        """First and last token of each named entity, in text order."""
        found: list[tuple[int, int]] = []
        for node in self.nodes:
            if node.iob == "B" or (node.iob == "I" and not (found and found[-1][1] == node.i - 1)):
                found.append((node.i, node.i))
            elif node.iob == "I":
                found[-1] = (found[-1][0], node.i)
        return found
