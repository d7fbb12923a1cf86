"""The words of an argument: which tokens it takes, and their text as it stands."""

from __future__ import annotations

from collections.abc import Iterable

from kpyramid.extraction.tree import Node, Tree
from kpyramid.extraction.types import Span

MAX_TOKENS = 80
"""An argument never takes more, so that nested clauses cost linear time."""
_MAX_CONJUNCTS = 8
_EDGES = frozenset(",;:.-") | {"--", "\u2013", "\u2014", "..."}
_BREAKS = frozenset(",;:(") | {"--", "\u2013", "\u2014", "-LRB-"}
_CLOSING = {"(": ")", "[": "]", "``": "''", "`": "'", "\u201c": "\u201d", "\u2018": "\u2019"}
_OPENING = {close: start for start, close in _CLOSING.items()} | {"''": "``"}
_ADDITIONS = frozenset({"relcl", "appos", "acl", "advcl", "parataxis"})
_COORDINATION = frozenset({"conj", "cc", "preconj"})
_NOMINAL = frozenset({"NOUN", "PROPN", "PRON", "NUM"})


def list_coordinated(root: Node) -> list[Node]:
    """The noun and those coordinated with it; any other head alone."""
    found = [root]
    if root.pos not in _NOMINAL:
        return found
    for at in found:
        for child in at.children:
            if child.dep == "conj" and child.pos in _NOMINAL and len(found) < _MAX_CONJUNCTS:
                found.append(child)
    return found


def collect_phrase(root: Node, split: bool = False, bare: Node | None = None) -> list[int]:
    """The tokens of a noun phrase, without what only adds to it.

    What a comma or dash parts from it is left out (relative clauses, appositions, participles);
    so is what is coordinated with it where the phrase is `split`, and the clause `bare`.
    """
    kept, stack = [root.i], [root]
    while stack and len(kept) < MAX_TOKENS:
        at = stack.pop()
        for child in at.children:
            dep = child.dep
            if child is bare or (split and at is root and dep in _COORDINATION):
                continue
            if dep in _ADDITIONS and child.i > at.i and _is_parted(child):
                continue
            kept.append(child.i)
            stack.append(child)
    return trim_edges(root.tree, sorted(kept))


def collect_clause(root: Node) -> list[int]:
    """The tokens of a clause with all that depends on it."""
    kept, stack = [root.i], [root]
    while stack and len(kept) < MAX_TOKENS:
        for child in stack.pop().children:
            kept.append(child.i)
            stack.append(child)
    return trim_edges(root.tree, sorted(kept))


def _is_parted(child: Node) -> bool:
    edge = child.left_edge.i
    return edge > 0 and child.tree[edge - 1].text in _BREAKS


def trim_edges(tree: Tree, tokens: list[int]) -> list[int]:
    """The tokens without punctuation at the edges and without half a pair of brackets."""
    first, last = 0, len(tokens)
    while first < last:
        node = tree[tokens[first]]
        if not _is_edge(tree, node, tokens[first:last], _CLOSING):
            break
        first += 1
    while last > first:
        node = tree[tokens[last - 1]]
        if not _is_edge(tree, node, tokens[first:last], _OPENING):
            break
        last -= 1
    return tokens[first:last]


def _is_edge(tree: Tree, node: Node, tokens: list[int], pairs: dict[str, str]) -> bool:
    if node.text in _EDGES or node.pos == "CCONJ":
        return True
    other = pairs.get(node.text)
    return other is not None and all(tree[i].text != other for i in tokens)


def write_words(tree: Tree, tokens: Iterable[int]) -> str:
    """The text of the tokens in order; runs keep their spacing."""
    text, previous = "", None
    for i in tokens:
        node = tree[i]
        if previous is not None and (previous.i != i - 1 or previous.space):
            text += " "
        text += node.text
        previous = node
    return " ".join(text.split())


def find_span(tree: Tree, tokens: list[int]) -> Span | None:
    """The stretch of the text that the tokens cover, None when they leave gaps."""
    if tokens[-1] - tokens[0] + 1 != len(tokens):
        return None
    return Span(tree[tokens[0]].idx, tree[tokens[-1]].end)
