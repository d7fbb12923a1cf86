"""Names that the parser took apart: titles, quoted or read as a clause, hyphens and bynames."""

from __future__ import annotations

from kpyramid.extraction.syntax.kinds import LABEL_BY_NOUN
from kpyramid.extraction.syntax.tree import Node

OPENING = {"(": ")", "[": "]"}
QUOTES = {
    '"': '"',
    "`": "''",
    "\u201c": "\u201d",
    "``": "''",
    "\u00ab": "\u00bb",
    "\u201e": "\u201c",
}
_MAX_TITLE = 10
SUBJECTS = frozenset({"nsubj", "nsubjpass", "csubj", "csubjpass"})
_NO_ARGUMENTS = frozenset("relcl advcl conj parataxis compound amod nmod det".split())
_SMALL = frozenset({"ADP", "DET", "CCONJ", "PART", "SCONJ"})


def join_title(quote: Node) -> None:
    """Make a short quotation that begins with a capital and is used as a noun one name."""
    nodes, closing = quote.tree.nodes, QUOTES[quote.text]
    start = quote.i + 1
    if quote.text == "`":
        if start >= len(nodes) or nodes[start].text != "`":
            return
        start += 1
    limit = min(start + _MAX_TITLE + 1, len(nodes))
    end = next((i for i in range(start, limit) if nodes[i].text == closing), None)
    if end is None or end == start:
        return
    inner = nodes[start:end]
    capitals = sum(n.text[:1].isupper() for n in inner if n.text[:1].isalpha())
    words = sum(n.text[:1].isalpha() for n in inner)
    if not inner[0].text[:1].isupper() or 2 * capitals < words or inner[-1].text in {",", ";"}:
        return
    root = _find_root(inner)
    if root is None or root.dep in {"ccomp", "ROOT", "advcl"}:
        _seat_title(inner, end + 1)
        return
    if root.dep in _NO_ARGUMENTS:
        return
    _join_name(inner, root)


def _seat_title(inner: list[Node], after: int) -> None:
    """Make a title the subject of the finite verb right behind it: ""Never Say Never" is a song".

    The parser read the title as a clause and hung the sentence on it.
    """
    tree = inner[0].tree
    if after >= len(tree) or tree[after].sentence != inner[0].sentence:
        return
    verb = tree[after]
    if verb.dep in {"aux", "auxpass"} and verb.head.i > after:
        verb = verb.head
    within = set(map(id, inner))
    if verb.pos not in {"VERB", "AUX"} or tree[after].tag not in {"VBZ", "VBD", "MD"}:
        return
    if any(c.dep in SUBJECTS and id(c) not in within for c in verb.children):
        return
    above = verb.head
    root = inner[-1]
    orphans = [c for n in inner for c in n.children if id(c) not in within and c is not verb]
    tops = [n for n in inner if n.head is n or id(n.head) not in within]
    if id(above) in within:
        # The first of the tops that is not under the verb carries the whole sentence.
        top = next((n for n in tops if not is_above(verb, n)), None)
        if top is None:
            return
        if verb in above.children:
            above.children.remove(verb)
        if top.head is top:
            verb.head, verb.dep = verb, "ROOT"
        else:
            if top in top.head.children:
                top.head.children.remove(top)
            verb.head, verb.dep = top.head, top.dep
            top.head.children.append(verb)
            top.head.children.sort(key=lambda c: c.i)
            top.head = top
    for child in orphans:
        move(child, verb)
    move(root, verb)
    passive = any(c.dep == "auxpass" for c in verb.children)
    root.dep = "nsubjpass" if passive else "nsubj"
    _join_name(inner, root)
    verb.left_edge = tree[min(verb.left_edge.i, inner[0].i)]
    verb.right_edge = tree[max([verb.right_edge.i, *(c.right_edge.i for c in orphans)])]


def join_leading_title(copula: Node) -> None:
    """Make the capitals before "is a film" one name: "Meet Me Again is a film"."""
    tree = copula.tree
    attribute = next((c for c in copula.children if c.dep == "attr" and c.pos == "NOUN"), None)
    if attribute is None or LABEL_BY_NOUN.get(attribute.word) != "WORK_OF_ART":
        return
    first = tree.sentences[copula.sentence][0]
    inner = tree.nodes[first : copula.i]
    if inner and inner[-1].text == ")":
        opening = next((n.i for n in inner if n.text == "("), first)
        inner = tree.nodes[first:opening]
    if not 2 <= len(inner) <= _MAX_TITLE or not inner[-1].text[:1].isupper():
        return
    if any(n.text in QUOTES or n.text in OPENING or n.text == ";" for n in inner):
        return
    small = [n for n in inner if n.text[:1].islower()]
    if not inner[0].text[:1].isupper() or any(n.pos not in _SMALL for n in small):
        return
    if inner[0].word in {"the", "a", "an"} and len(inner) > 2:
        inner = inner[1:]
    root = _find_root(inner)
    if root is not None and root.head is copula and root.dep in SUBJECTS:
        _join_name(inner, root)
    elif root is None or root.pos == "VERB":
        _seat_title(inner, copula.i)


def join_hyphens(hyphen: Node) -> None:
    """Keep "Michaels-Beerbaum" and "Stoke-on-Trent" one name, which the tokenizer cut."""
    nodes = hyphen.tree.nodes
    first = last = hyphen.i
    while first > 0 and not nodes[first - 1].space and _is_part(nodes[first - 1]):
        first -= 1
    while last + 1 < len(nodes) and not nodes[last].space and _is_part(nodes[last + 1]):
        last += 1
    inner = nodes[first : last + 1]
    if first == hyphen.i or last == hyphen.i:
        return
    if inner[0].text.islower():
        root = _find_root(inner)
        for node in inner if root is not None and root.pos == "NOUN" else ():
            if node is not root and node.head in inner:
                node.dep = "compound"
        return
    if not inner[0].text[:1].isupper() or inner[-1].text == "-":
        return
    if not inner[-1].text[:1].isupper() or inner[0].pos != "PROPN":
        return
    root = _find_root(inner)
    if root is None or root.dep in {"relcl", "advcl", "parataxis", "ROOT"}:
        return
    label = next((n.entity for n in inner if n.entity), "")
    for node in inner:
        if node is not root:
            node.dep = "compound"
            move(node, root)
        node.pos, node.tag = "PROPN", "NNP"
        if label and node.entity != label:
            node.entity, node.iob = label, "I"
    if root.left_edge.i > first:
        root.left_edge = nodes[first]


def _is_part(node: Node) -> bool:
    return node.text == "-" or node.text.isalpha()


def join_byname(article: Node) -> None:
    """Keep "Tessin the Younger" one name."""
    nodes = article.tree.nodes
    if article.i + 1 >= len(nodes):
        return
    name, byname = nodes[article.i - 1], nodes[article.i + 1]
    if (
        byname.head is name
        and byname.dep == "appos"
        and name.pos == "PROPN"
        and byname.text[:1].isupper()
        and name.entity in {"PERSON", ""}
        and len(byname.children) == 1
    ):
        byname.dep = article.dep = "flat"


def _find_root(inner: list[Node]) -> Node | None:
    """Return the one node of a stretch that hangs outside it, None when several or none do."""
    first, last = inner[0].i, inner[-1].i
    outside = [n for n in inner if n.head is n or not first <= n.head.i <= last]
    return outside[0] if len(outside) == 1 and outside[0].head is not outside[0] else None


def _join_name(inner: list[Node], root: Node) -> None:
    """Make a stretch one name headed by `root`."""
    root.pos, root.tag = "PROPN", "NNP"
    root.dep = {"csubj": "nsubj", "csubjpass": "nsubjpass", "ccomp": "dobj"}.get(root.dep, root.dep)
    for node in inner:
        if node is not root:
            node.dep = "compound"
            move(node, root)
        if node.text[:1].isalpha() and node.pos != "PROPN":
            node.pos, node.tag = "PROPN", "NNP"
        node.entity, node.iob = "WORK_OF_ART", "I"
    inner[0].iob = "B"
    root.left_edge, root.right_edge = inner[0], max(inner[-1], root.right_edge, key=lambda n: n.i)
    close_entity(root.tree.nodes, inner[-1].i)


def move(node: Node, head: Node) -> None:
    """Hang a node under another."""
    if node.head is head:
        return
    if node.head is not node and node in node.head.children:
        node.head.children.remove(node)
    node.head = head
    head.children.append(node)
    head.children.sort(key=lambda c: c.i)


def close_entity(nodes: list[Node], last: int) -> None:
    """Let what follows `last` within the same entity begin one of its own, or none."""
    at = last + 1
    if at < len(nodes) and nodes[at].iob == "I":
        if nodes[at].text[:1].isalnum():
            nodes[at].iob = "B"
        else:
            nodes[at].entity, nodes[at].iob = "", "O"
            close_entity(nodes, at)


def is_above(node: Node, other: Node) -> bool:
    """Whether `node` is an ancestor of `other`."""
    at = other
    for _ in range(50):
        if at is node:
            return True
        if at.head is at:
            return False
        at = at.head
    return True
