"""Places inside places: what a name is in, and which nouns for places are named already."""

from __future__ import annotations

from kpyramid.extraction.syntax.kinds import LABEL_BY_NOUN
from kpyramid.extraction.syntax.phrases import (
    LITERALS,
    PLACES,
    Phrase,
    build_phrase,
    find_entity,
)
from kpyramid.extraction.syntax.tree import Node, Tree

_MAX_LINKS = 3
"""Of a chain such as "Salem, Kent County, Ohio, United States"; more is a list."""
_NAMING = frozenset("city town village state province county district region".split())
"""Nouns that a name follows with "of": "the city of Leeds"."""


def is_named_place(noun: Node) -> bool:
    """Whether a noun for a place has its name with it: "the city of Leeds", "Kent county"."""
    if noun.pos != "NOUN" or LABEL_BY_NOUN.get(noun.word) not in PLACES:
        return False
    determiners = [c.word for c in noun.children if c.dep == "det"]
    named = any(c.dep == "compound" and c.pos == "PROPN" for c in noun.children)
    if named and not determiners:
        return True
    of = [c for c in noun.children if c.word == "of"]
    named = any(c.pos == "PROPN" for prep in of for c in prep.children)
    return named and determiners == ["the"] and noun.word in _NAMING


def _find_link_end(tree: Tree, first: int) -> int:
    """Return the last token of the name that starts at `first`, before a comma at the latest."""
    bounds = find_entity(tree, first)
    last = first
    while last + 1 < len(tree) and tree[last + 1].text != ",":
        inside = bounds is not None and last < bounds[1]
        if not inside and (tree[last + 1].pos != "PROPN" or bounds is not None):
            break
        last += 1
    return last


def list_containers(phrase: Phrase, tree: Tree) -> list[Phrase]:
    """Return the places named after `phrase`, innermost first ("Rome, Italy" gives Italy).

    A chain that ends in "and" or "or" is an enumeration, not containment.
    """
    # "the state of Johor, Malaysia": the place is named last.
    named = tree[phrase.root].pos == "PROPN" or tree[phrase.last].entity in PLACES
    if not named or phrase.label in {"PERSON", *LITERALS}:
        return []
    found: list[Phrase] = []
    known = 0  # the recogniser may miss a link, but not the last
    at = phrase.last + 1
    while at + 1 < len(tree) and tree[at].text == "," and tree[at + 1].pos == "PROPN":
        last = _find_link_end(tree, at + 1)
        place = build_phrase(tree, at + 1, last, last)
        if place is None or place.label in {"PERSON", *LITERALS}:
            break
        found.append(place)
        known = len(found) if place.label in PLACES else known
        at = last + 1
    if at < len(tree) and tree[at].pos == "NUM":
        return []  # "Varna 1962, Tel Aviv 1964"
    links, back = len(found), phrase.first
    while back > 1 and tree[back - 1].text == "," and tree[back - 2].entity in PLACES:
        back = (find_entity(tree, back - 2) or (back - 2, 0))[0]
        links += 1
    if links > _MAX_LINKS:
        return []
    del found[known:]
    if at < len(tree) and tree[at].text == ",":
        at += 1
    if at + 1 < len(tree) and tree[at].pos == "CCONJ" and tree[at + 1].pos in {"PROPN", "DET"}:
        return []
    if at + 1 < len(tree) and tree[at].word == "the" and tree[at + 1].entity in PLACES:
        return []  # "Malta, the Netherlands"
    return found
