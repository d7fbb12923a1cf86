"""Polarity: the negation of verbs and nouns."""

from __future__ import annotations

from kpyramid.documents.words import read_words
from kpyramid.extraction.syntax.tree import Node

WORDS = read_words(__file__, "stance.toml")
"""Words of negation, supposition, hedging and report, by their function."""
_DENYING = WORDS["negating"] | {"no"}
_DEPENDENT = frozenset({"neg", "advmod", "cc", "preconj", "dep"})
NOBODY = frozenset({"none", "nobody", "nothing", "neither"})


def is_negated(verb: Node) -> bool:
    """Whether "not", "no longer", "hardly ever", "nor", "in no way" or the like denies the verb."""
    helpers = (c for c in verb.children if c.dep in {"aux", "auxpass"})
    for child in (*verb.children, *(c for helper in helpers for c in helper.children)):
        if child.dep in _DEPENDENT and _negates(child, child.dep == "neg"):
            return True
        joined = child.children if child.dep == "advmod" and child.word in WORDS["extended"] else ()
        if any(_negates(c, c.dep == "neg") for c in joined):
            return True
        if child.dep == "prep" and any(_is_emptied(c) for c in child.children):
            return True
        if child.dep == "agent" and any(
            c.word in NOBODY and _negates(c, True) for c in child.children
        ):
            return True  # "is replaced by nobody for the time being"
        if child.dep in {"attr", "acomp"} and any(c.word == "neither" for c in child.children):
            return True
    between = range(verb.head.i + 1, verb.i)
    return verb.dep == "conj" and any(
        c.word == "nor" and c.i in between for c in verb.head.children
    )


def is_denied(noun: Node | None) -> bool:
    """Whether the noun is "none", or stands under "no", "not every", "hardly any" or "nor".

    "Little" is no denial: "has little effect on" states the amount.
    """
    if noun is None:
        return False
    own = any(c.word == "no" and _negates(c, c.dep in {"det", "neg"}) for c in noun.children)
    if noun.dep == "conj" and not own and all(c.word not in WORDS["scant"] for c in noun.children):
        noun = noun.head  # "no cost and little effort" is some effort
    if noun.word in NOBODY and _negates(noun, True):
        return True
    return any(
        (c.word in {"nor", "neither"})
        or (c.word == "no" and c.dep in {"det", "neg"} and _negates(c, True))
        or (c.dep == "det" and any(_negates(g, g.dep == "neg") for g in c.children))
        for c in noun.children
    ) or is_partly_denied(noun)


def is_excluded(noun: Node) -> bool:
    """Whether "not" stands within a noun's phrase, before it: "but not before 1 July"."""
    return any(node.word == "not" for node in noun.tree.nodes[noun.left_edge.i : noun.i])


def is_partly_denied(noun: Node | None) -> bool:
    """Whether "not all" or "not every" stands before the noun: the clause holds for others."""
    kids = () if noun is None else noun.children
    return any(c.dep == "neg" and _follow(c) in WORDS["quantified"] for c in kids)


def is_instead(noun: Node) -> bool:
    """Whether a noun is the affirmed alternative to a denied one: "not a farmer but a lawyer"."""
    between = noun.tree.nodes[noun.head.i + 1 : noun.i]
    denied = any(c.word in {"no", "not"} for c in (*between, *noun.children))
    if noun.dep != "conj" or denied:
        return False
    return any(c.word == "but" and c.head is noun.head for c in between) or is_instead(noun.head)


def is_scant(noun: Node) -> bool:
    """Whether there is no or almost no such thing: "no evidence", "little proof"."""
    before = [c for c in noun.children if c.i < noun.i]
    bare = all(c.word not in {"a", "the"} for c in before)
    return is_denied(noun) or (bare and any(c.word in WORDS["scant"] for c in before))


def _negates(word: Node, is_mark: bool) -> bool:
    """Whether a negative word denies: it is no name, bound or half of "not only ... but".

    `is_mark`: whether the parser labels it a negation.
    """
    if not (is_mark or word.word in _DENYING):
        return False
    first, _ = word.tree.sentences[word.sentence]
    if word.text == "No" and word.i != first:
        return False  # "the No Name Bar", "Dr. No"
    after = _follow(word)
    if word.word in {"no", "none"}:
        bounds = after in WORDS["bounding"] or after == "other"
        than = word.i + 2 < len(word.tree) and word.tree[word.i + 2].word == "than"
        return not (bounds and than) and after != "doubt"
    # "Nobody should just go without a map" means that nobody should go without one.
    lacking = after == "just" and any(c.word == "without" for c in word.head.children)
    return lacking or after not in WORDS["adding"]


def _follow(word: Node) -> str:
    """The next word of the text; "" at its end."""
    return word.tree[word.i + 1].word if word.i + 1 < len(word.tree) else ""


def _is_emptied(noun: Node) -> bool:
    never = noun.word == "time" and noun.head.word == "at"
    return (never or noun.word in WORDS["fronted"]) and is_denied(noun)
