"""A second look at a parse: mistakes that the text's own words give away, mended before the rules.

Dates that the entity recogniser split are joined, subjects that the parser sought inside a bracket
are put back before it, quoted titles become one name, and a name's type follows what the text
says it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kpyramid.extraction.kinds import LABEL_BY_NOUN, find_kind_label
from kpyramid.extraction.tree import Node, Tree

_MONTHS = frozenset(
    (
        "january february march april may june july august september october november december "
        "jan feb mar apr jun jul aug sep sept oct nov dec"
    ).split()
)
_DASHES = frozenset({"-", "--", "\u2013", "\u2014"})
_OPENING = {"(": ")", "[": "]"}
_QUOTES = {'"': '"', "\u201c": "\u201d", "``": "''", "\u00ab": "\u00bb", "\u201e": "\u201c"}
_MAX_BRACKET = 60
"""Tokens between a bracket and its partner; a longer stretch is no aside."""
_MAX_TITLE = 10
_SUBJECTS = frozenset({"nsubj", "nsubjpass", "csubj", "csubjpass"})
_PLACES = frozenset({"GPE", "LOC", "FAC"})
_NO_ARGUMENTS = frozenset("relcl advcl conj parataxis compound amod nmod det".split())
_SMALL = frozenset({"ADP", "DET", "CCONJ", "PART", "SCONJ"})
_MEDIA = frozenset("radio television tv cable fm am news".split())
_GROUPS = frozenset("one part member type kind form example name group set series pair".split())


def repair_tree(tree: Tree) -> None:
    """Mend the tree in place; linear in its tokens."""
    for node in tree.nodes:
        if node.word in _MONTHS and node.text[:1].isupper():
            _join_date(node)
        elif node.text in _QUOTES:
            _join_title(node)
        elif node.text in _OPENING:
            _lift_subject(node)
        elif node.word in {"is", "was"} and node.lemma == "be" and node.i:
            _join_leading_title(node)
        elif node.text == "-":
            _join_hyphens(node)
        elif node.word == "the" and node.i:
            _join_byname(node)
        elif node.dep == "relcl":
            _lift_relative(node)
    _retype_names(tree)


def _join_date(month: Node) -> None:
    """Make "31 May 1955" and "May 31, 1955" one DATE, whatever the recogniser made of its parts."""
    nodes, first, last = month.tree.nodes, month.i, month.i
    has_day = has_year = False
    if first > 0 and _is_day(nodes[first - 1]):
        first, has_day = first - 1, True
    if last + 1 < len(nodes) and nodes[last + 1].text == "." and len(month.text) <= 4:
        last += 1
    if not has_day and last + 1 < len(nodes) and _is_day(nodes[last + 1]):
        last, has_day = last + 1, True
    at = last + 2 if has_day and last + 1 < len(nodes) and nodes[last + 1].text == "," else last + 1
    if at < len(nodes) and _is_year(nodes[at]):
        last, has_year = at, True
    if not (has_day or has_year) or nodes[first].sentence != nodes[last].sentence:
        return
    for node in nodes[first : last + 1]:
        node.entity, node.iob = "DATE", "I"
    nodes[first].iob = "B"
    _close_entity(nodes, last)
    before = nodes[first - 1] if first else None
    # What the recogniser had joined before the date, such as a place, is no part of it.
    if before is not None and before.entity == "DATE" and before.text in _DASHES:
        before.entity, before.iob = "", "O"


def _is_day(node: Node) -> bool:
    digits = node.text.rstrip("stndrh")
    return digits.isdigit() and len(digits) <= 2 and 1 <= int(digits) <= 31


def _is_year(node: Node) -> bool:
    return node.text.isdigit() and len(node.text) in {3, 4}


def _close_entity(nodes: list[Node], last: int) -> None:
    """Let what follows `last` within the same entity begin one of its own, or none."""
    at = last + 1
    if at < len(nodes) and nodes[at].iob == "I":
        if nodes[at].text[:1].isalnum():
            nodes[at].iob = "B"
        else:
            nodes[at].entity, nodes[at].iob = "", "O"
            _close_entity(nodes, at)


def _join_title(quote: Node) -> None:
    """Make a short quotation that begins with a capital and is used as a noun one name."""
    nodes, closing = quote.tree.nodes, _QUOTES[quote.text]
    limit = min(quote.i + _MAX_TITLE + 2, len(nodes))
    end = next((i for i in range(quote.i + 1, limit) if nodes[i].text == closing), None)
    if end is None or end - quote.i < 2:
        return
    inner = nodes[quote.i + 1 : end]
    capitals = sum(n.text[:1].isupper() for n in inner if n.text[:1].isalpha())
    words = sum(n.text[:1].isalpha() for n in inner)
    if not inner[0].text[:1].isupper() or 2 * capitals < words or inner[-1].text in {",", ";"}:
        return
    root = _find_root(inner)
    if root is None or root.dep in _NO_ARGUMENTS:
        return
    if root.dep == "ccomp" and root.head.i < quote.i and nodes[quote.i - 1].text == ",":
        return  # reported speech
    _join_name(inner, root)


def _join_leading_title(copula: Node) -> None:
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
    if any(n.text in _QUOTES or n.text in _OPENING or n.text == ";" for n in inner):
        return
    small = [n for n in inner if n.text[:1].islower()]
    if not inner[0].text[:1].isupper() or any(n.pos not in _SMALL for n in small):
        return
    if inner[0].word in {"the", "a", "an"} and len(inner) > 2:
        inner = inner[1:]
    root = _find_root(inner)
    if root is not None and root.head is copula and root.dep in _SUBJECTS:
        _join_name(inner, root)


def _join_hyphens(hyphen: Node) -> None:
    """Keep "Michaels-Beerbaum" and "Stoke-on-Trent" one name, which the tokenizer cut."""
    nodes = hyphen.tree.nodes
    first = last = hyphen.i
    while first > 0 and not nodes[first - 1].space and _is_part(nodes[first - 1]):
        first -= 1
    while last + 1 < len(nodes) and not nodes[last].space and _is_part(nodes[last + 1]):
        last += 1
    inner = nodes[first : last + 1]
    if first == hyphen.i or not inner[0].text[:1].isupper() or inner[-1].text == "-":
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
            _move(node, root)
        node.pos, node.tag = "PROPN", "NNP"
        if label and node.entity != label:
            node.entity, node.iob = label, "I"
    if root.left_edge.i > first:
        root.left_edge = nodes[first]


def _is_part(node: Node) -> bool:
    return node.text == "-" or node.text.isalpha()


def _join_byname(article: Node) -> None:
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


def _lift_relative(verb: Node) -> None:
    """Hang a clause with "that" on the common noun: "a hotel in Salem, Ohio that was built"."""
    name = verb.head
    if name.pos != "PROPN" or name.entity not in _PLACES:
        return
    if not any(c.word == "that" and c.dep in _SUBJECTS for c in verb.children):
        return
    at = name
    for _ in range(8):
        if at.head is at or at.pos in {"AUX"}:
            return
        at = at.head
        if at.pos == "NOUN" and at.i < name.i:
            _move(verb, at)
            return


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
            _move(node, root)
        if node.text[:1].isalpha() and node.pos != "PROPN":
            node.pos, node.tag = "PROPN", "NNP"
        node.entity, node.iob = "WORK_OF_ART", "I"
    inner[0].iob = "B"
    root.left_edge, root.right_edge = inner[0], max(inner[-1], root.right_edge, key=lambda n: n.i)
    _close_entity(root.tree.nodes, inner[-1].i)


def _move(node: Node, head: Node) -> None:
    """Hang a node under another."""
    if node.head is head:
        return
    if node.head is not node and node in node.head.children:
        node.head.children.remove(node)
    node.head = head
    head.children.append(node)
    head.children.sort(key=lambda c: c.i)


def _lift_subject(bracket: Node) -> None:
    """Give a clause whose subject was sought inside "Name (...)" the name before the bracket."""
    tree, nodes = bracket.tree, bracket.tree.nodes
    if bracket.i == 0 or nodes[bracket.i - 1].pos not in {"PROPN", "NOUN"}:
        return
    closing = _OPENING[bracket.text]
    limit = min(bracket.i + _MAX_BRACKET, tree.sentences[bracket.sentence][1])
    end = next((i for i in range(bracket.i + 1, limit) if nodes[i].text == closing), None)
    if end is None:
        return
    inside = [n for n in nodes[bracket.i + 1 : end] if n.dep in _SUBJECTS and n.head.i > end]
    if len(inside) != 1:
        return
    wrong, verb = inside[0], inside[0].head
    name = nodes[bracket.i - 1]
    while name.head.i < bracket.i and name.head is not name and name.dep in {"compound", "nmod"}:
        name = name.head
    if name.i >= bracket.i or _is_above(name, verb):
        return
    _move(name, verb)
    name.dep = "nsubjpass" if wrong.dep.endswith("pass") else "nsubj"
    wrong.dep = "appos"
    _move(wrong, name)
    name.right_edge = nodes[end]
    if name.left_edge.i < verb.left_edge.i:
        verb.left_edge = name.left_edge


def _is_above(node: Node, other: Node) -> bool:
    """Whether `node` is an ancestor of `other`."""
    at = other
    for _ in range(50):
        if at is node:
            return True
        if at.head is at:
            return False
        at = at.head
    return True


def _retype_names(tree: Tree) -> None:
    """Give each name the type of what the text says it is: "Tor Falls is a waterfall"."""
    votes: dict[str, Counter[str]] = {}
    for name, noun in _list_kinds(tree):
        label = _find_label(noun)
        if label is not None and name.text[:1].isupper():
            first, last = find_name(name)
            text = " ".join(n.text for n in tree.nodes[first : last + 1])
            votes.setdefault(text, Counter())[label] += 1
    if not votes:
        return
    ends = {text.rsplit(" ", 1)[-1] for text in votes}
    for node in tree.nodes:
        if node.text not in ends or node.pos != "PROPN":
            continue
        first, last = find_name(node)
        text = " ".join(n.text for n in tree.nodes[first : last + 1])
        if text in votes and last == node.i:
            label = _choose_label(node.entity, votes[text])
            for at in tree.nodes[first : last + 1]:
                at.entity, at.iob = label, "I"
            tree.nodes[first].iob = "B"


def _find_label(noun: Node) -> str | None:
    """Return the type of what a kind noun names; a radio station is no building."""
    label = find_kind_label(noun.lemma if noun.tag == "NNS" else noun.word)
    if label == "FAC" and any(c.word in _MEDIA for c in noun.children if c.dep == "compound"):
        return "ORG"
    return label


def _choose_label(label: str, votes: Counter[str]) -> str:
    """Return the type most often said, the recogniser's own where it was said as well."""
    if label in votes or (label in _PLACES and not votes.keys().isdisjoint(_PLACES)):
        return label
    best = max(votes.values())
    return min(name for name, count in votes.items() if count == best)


def find_name(node: Node) -> tuple[int, int]:
    """First and last token of the run of name words that `node` stands in."""
    nodes = node.tree.nodes
    first = last = node.i
    while first > 0 and _continues(nodes[first - 1], nodes[first]):
        first -= 1
    while last + 1 < len(nodes) and _continues(nodes[last], nodes[last + 1]):
        last += 1
    return first, last


def _continues(left: Node, right: Node) -> bool:
    """Whether two neighbours belong to one name."""
    if right.iob == "I" and right.entity == left.entity and right.entity:
        return right.text not in {",", "(", ";"} and left.text not in {",", "(", ";"}
    if left.pos != "PROPN" or right.pos != "PROPN":
        return False
    if left.entity and right.entity:
        return False
    return left.head is right or right.head is left or left.head is right.head


def _list_kinds(tree: Tree) -> Iterator[tuple[Node, Node]]:
    """Pairs of a name and a common noun that the text gives as its kind."""
    for node in tree.nodes:
        if node.dep == "attr" and node.head.lemma == "be":
            subject = next((c for c in node.head.children if c.dep == "nsubj"), None)
            if subject is not None and subject.pos == "PROPN":
                yield from ((subject, noun) for noun in _list_nouns(node))
        elif node.dep == "appos":
            if node.head.pos == "PROPN" and node.pos == "NOUN" and node.left_edge.tag == "DT":
                # "born in Salem, the son of ..." hangs the son on the place.
                if node.head.entity in _PLACES and find_kind_label(node.word) == "PERSON":
                    continue
                yield from ((node.head, noun) for noun in _list_nouns(node))
            elif node.head.pos == "NOUN" and node.pos == "PROPN" and node.i - node.head.i < 4:
                yield node, node.head
        elif (
            node.dep == "pobj"
            and node.pos == "PROPN"
            and node.head.word == "of"
            and LABEL_BY_NOUN.get(node.head.head.word) == "GPE"
            and node.head.head.pos == "NOUN"
            and any(c.word == "the" for c in node.head.head.children)
        ):
            yield node, node.head.head


def _list_nouns(noun: Node) -> Iterator[Node]:
    """The kind nouns coordinated under an attribute; "one of the towns" gives towns."""
    if noun.word in _GROUPS:
        deeper = [g for c in noun.children if c.word == "of" for g in c.children if g.dep == "pobj"]
        if noun.word == "one" and deeper and deeper[0].pos == "NOUN":
            yield deeper[0]
        return
    if noun.pos == "NOUN":
        yield noun
        yield from (c for c in noun.children if c.dep == "conj" and c.pos == "NOUN")
