"""The words of an argument: which tokens it takes, and their text as it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from kpyramid.extraction.syntax.tree import Node, Tree
from kpyramid.extraction.text.sentences import Span

Rename = Callable[[Node], str | None] | None
"""What a pronoun is called instead, None where it stays."""
MAX_TOKENS = 80
"""An argument never takes more, so that nested clauses cost linear time."""
_MAX_CONJUNCTS = 8
_BRACKETS = frozenset({("(", ")"), ("[", "]")})
_ENCLOSING = frozenset({",", "(", ")", "--", "\u2013", "\u2014"})
_EDGES = frozenset(",;:.-") | {"--", "\u2013", "\u2014", "..."}
_BREAKS = frozenset(",;:(") | {"--", "\u2013", "\u2014", "-LRB-"}
_CLOSING = {"(": ")", "[": "]", "``": "''", "`": "'", "\u201c": "\u201d", "\u2018": "\u2019"}
_OPENING = {close: start for start, close in _CLOSING.items()} | {"''": "``"}
_ADDITIONS = frozenset({"relcl", "appos", "acl", "advcl", "parataxis", "dep"})
_COORDINATION = frozenset({"conj", "cc", "preconj"})
_NOMINAL = frozenset({"NOUN", "PROPN", "PRON", "NUM"})


def list_coordinated(root: Node) -> list[Node]:
    """The noun and those coordinated with it; any other head alone."""
    found = [root]
    if root.pos not in _NOMINAL:
        return found
    joined = False
    for at in found:
        for child in at.children:
            joined = joined or child.dep == "cc"
            if child.dep == "conj" and child.pos in _NOMINAL and len(found) < _MAX_CONJUNCTS:
                found.append(child)
    # "Leeds, Yorkshire" joins nothing, even where the parser says so.
    return found if joined else found[:1]


def collect_phrase(root: Node, split: bool = False, bare: Node | None = None) -> list[int]:
    """The tokens of a noun phrase, without what only adds to it.

    What a comma or dash parts from it is left out (relative clauses, appositions, participles);
    so is what is coordinated with it where the phrase is `split`, and the clause `bare`.
    """
    kept, stack, cut = [root.i], [root], False
    while stack and len(kept) < MAX_TOKENS:
        at = stack.pop()
        for child in at.children:
            dep = child.dep
            if split and at is root and dep in _COORDINATION:
                continue
            if child is bare:
                cut = True
                continue
            if dep in _ADDITIONS and child.i > at.i and _is_parted(child):
                cut = True
                continue
            kept.append(child.i)
            stack.append(child)
    kept.sort()
    kept = _drop_bracket(root.tree, kept)
    return trim_edges(root.tree, _drop_enclosing(root.tree, kept) if cut else kept)


def _drop_bracket(tree: Tree, kept: list[int]) -> list[int]:
    """The tokens without what a bracket right behind a name holds: dates, other spellings."""
    nodes, left, end = tree.nodes, [], -1
    for i in kept:
        if i <= end:
            continue
        left.append(i)
        if nodes[i].pos == "PROPN" and i + 1 < len(nodes) and nodes[i + 1].text == "(":
            limit = min(i + MAX_TOKENS, len(nodes))
            end = next((j for j in range(i + 2, limit) if nodes[j].text == ")"), end)
    return left


def _drop_enclosing(tree: Tree, kept: list[int]) -> list[int]:
    """The tokens without the commas and brackets around what was left out."""
    among = set(kept)
    return [
        i for i in kept if tree[i].text not in _ENCLOSING or (i - 1 in among and i + 1 in among)
    ]


def collect_clause(root: Node) -> list[int]:
    """The tokens of a clause with all that depends on it."""
    kept, stack = [root.i], [root]
    while stack and len(kept) < MAX_TOKENS:
        for child in stack.pop().children:
            kept.append(child.i)
            stack.append(child)
    return trim_edges(root.tree, sorted(kept))


def _is_parted(child: Node) -> bool:
    edge, nodes = child.left_edge.i, child.tree.nodes
    return nodes[edge].text in _BREAKS or (edge > 0 and nodes[edge - 1].text in _BREAKS)


def trim_edges(tree: Tree, tokens: list[int]) -> list[int]:
    """The tokens without punctuation at the edges and without half a pair of brackets."""
    first, last = 0, len(tokens)
    while first < last and _is_edge(tree, tokens, first, last, first, _CLOSING):
        first += 1
    while last > first and _is_edge(tree, tokens, first, last, last - 1, _OPENING):
        last -= 1
    if last - first > 2:
        pair = (tree[tokens[first]].text, tree[tokens[last - 1]].text)
        if pair in _BRACKETS:
            first, last = first + 1, last - 1
    return tokens[first:last]


def _is_edge(
    tree: Tree, tokens: list[int], first: int, last: int, at: int, pairs: dict[str, str]
) -> bool:
    node = tree.nodes[tokens[at]]
    if node.text in _EDGES or node.pos == "CCONJ":
        return True
    other = pairs.get(node.text)
    return other is not None and all(tree[i].text != other for i in tokens[first:last])


def write_words(tree: Tree, tokens: Iterable[int], rename: Rename = None) -> tuple[str, bool]:
    """The text of the tokens in the order given, and whether no word of it was renamed."""
    nodes = tree.nodes
    text, previous, literal = "", None, True
    for i in tokens:
        node = nodes[i]
        if previous is not None and (previous.i != i - 1 or previous.space):
            text += " "
        name = rename(node) if rename is not None and node.pos == "PRON" else None
        literal = literal and name is None
        text += node.text if name is None else name
        previous = node
    return " ".join(text.split()), literal


def find_span(tree: Tree, tokens: list[int], text: str) -> Span | None:
    """The stretch that the tokens are, None when they leave gaps or it does not read `text`.

    White space counts as one blank.
    """
    if any(after != before + 1 for before, after in pairwise(tokens)):
        return None
    span = Span(tree[tokens[0]].idx, tree[tokens[-1]].end)
    literal = tree.text[span.start : span.end]
    return span if literal == text or " ".join(literal.split()) == text else None


def is_denied(noun: Node | None) -> bool:
    """Whether the noun is "none", or stands under "no", "neither" or "nor"."""
    if noun is None:
        return False
    if noun.dep == "conj":
        noun = noun.head
    return noun.word in {"none", "nobody", "nothing", "neither"} or any(
        (c.word == "no" and c.dep in {"det", "neg"}) or c.word in {"nor", "neither"}
        for c in noun.children
    )
