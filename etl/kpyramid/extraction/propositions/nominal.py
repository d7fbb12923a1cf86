"""Facts that a noun phrase states by itself: appositions, owners, titles and places."""

from __future__ import annotations

from collections.abc import Iterator, Set

from kpyramid.extraction.confidence import Features, estimate_confidence
from kpyramid.extraction.propositions.wording import (
    collect_phrase,
    find_span,
    trim_edges,
    write_words,
)
from kpyramid.extraction.syntax.frames import find_noun_clause
from kpyramid.extraction.syntax.places import is_named_place
from kpyramid.extraction.syntax.tree import Node, Tree
from kpyramid.extraction.text.sentences import Span
from kpyramid.extraction.types import Argument, Proposition

_PLACES = frozenset({"GPE", "LOC", "FAC"})
_MEASURES = frozenset({"DATE", "TIME", "CARDINAL", "MONEY", "PERCENT", "QUANTITY", "ORDINAL"})
_PLURAL = frozenset({"NNS", "NNPS"})


def list_nominal_propositions(
    tree: Tree, sentences: Set[int]
) -> Iterator[tuple[Proposition, Features]]:
    """The propositions of the noun phrases of `sentences`, by place; always of two arguments."""
    for node in tree.nodes:
        if node.sentence not in sentences:
            continue
        dep = node.dep
        if dep == "appos":
            yield from _read_apposition(tree, node)
        elif dep == "poss":
            yield from _read_owner(tree, node)
        elif dep == "compound":
            yield from _read_title(tree, node)
        elif dep == "pobj" and node.entity in _PLACES:
            yield from _read_place(tree, node)


def _read_apposition(tree: Tree, second: Node) -> Iterator[tuple[Proposition, Features]]:
    """From "X, president of Y" that X is president of Y; from "Rome, Italy" that Rome is in it."""
    first = second.head
    if any(n.pos == "NUM" or n.entity in _MEASURES for n in (first, second)):
        return
    before = collect_phrase(first, split=True, bare=second)
    after = collect_phrase(second, split=True)
    inside = is_named_place(first) and second.pos == "PROPN"
    if inside or (second.entity == "GPE" and first.entity in {*_PLACES, "ORG"}):
        before = trim_edges(tree, [i for i in before if i < second.left_edge.i])
        yield from _write(tree, "noun", before, "is in", after, second)
        return
    if second.pos == "PROPN" and first.pos == "NOUN":  # "her brother, Paul": Paul is her brother
        before, after = after, before
    predicate = "are" if second.tag == "NNS" else "is"
    yield from _write(tree, "apposition", before, predicate, after, second)


def _read_owner(tree: Tree, owner: Node) -> Iterator[tuple[Proposition, Features]]:
    """From "X's Y" that X has Y."""
    if owner.tag == "PRP$":
        return
    owned = collect_phrase(owner.head, split=True, bare=owner)
    if owner.tag == "WP$":  # "Lund, whose brother": Lund has a brother
        clause = find_noun_clause(owner.head.head)
        if clause is None or clause.dep != "relcl":
            return
        holder = collect_phrase(clause.head, split=True, bare=clause)
        yield from _write(tree, "possessive", holder, "has", owned, owner)
        return
    holder = [i for i in collect_phrase(owner, split=True) if tree[i].tag != "POS"]
    predicate = "have" if owner.tag in _PLURAL else "has"
    yield from _write(tree, "possessive", holder, predicate, owned, owner)


def _read_title(tree: Tree, title: Node) -> Iterator[tuple[Proposition, Features]]:
    """From "author X" that X is author."""
    name = title.head
    if title.pos != "NOUN" or name.pos != "PROPN" or name.entity != "PERSON":
        return
    words = list(range(title.left_edge.i, title.i + 1))
    yield from _write(tree, "title", list(range(title.i + 1, name.i + 1)), "is", words, title)


def _read_place(tree: Tree, place: Node) -> Iterator[tuple[Proposition, Features]]:
    """From "the Y in X" that Y is in X."""
    prep = place.head
    noun = prep.head
    if prep.word not in {"in", "at"} or noun.pos not in {"NOUN", "PROPN"}:
        return
    before = trim_edges(tree, [i for i in collect_phrase(noun, split=True) if i < prep.i])
    predicate = f"{'are' if noun.tag in _PLURAL else 'is'} {prep.word}"
    yield from _write(tree, "noun", before, predicate, collect_phrase(place, split=True), place)


def _write(
    tree: Tree, construction: str, first: list[int], predicate: str, second: list[int], at: Node
) -> Iterator[tuple[Proposition, Features]]:
    if not first or not second:
        return
    start, end = tree.sentences[at.sentence]
    features = Features(
        construction,
        sentence_words=end - start,
        subject_words=len(first),
        object_words=len(second),
        subject_named=tree[first[-1]].pos == "PROPN",
        object_named=tree[second[-1]].pos == "PROPN",
        inferred_predicate=True,
    )
    arguments = []
    for role, tokens in (("subject", first), ("object", second)):
        text, _ = write_words(tree, tokens)
        arguments.append(Argument(role, text, find_span(tree, tokens, text)))
    span = Span(tree[min(first[0], second[0])].idx, tree[max(first[-1], second[-1])].end)
    confidence = estimate_confidence(features)
    yield Proposition(predicate, tuple(arguments), span, confidence=confidence), features
