"""Noun entities named in the claims: named entities first, then noun chunks (`f_ent`)."""

from __future__ import annotations

from bisect import bisect_left

from kpyramid.extraction.syntax.phrases import Phrase, build_phrase, find_phrase
from kpyramid.extraction.syntax.tree import Node, Tree
from kpyramid.extraction.text.sentences import Span
from kpyramid.extraction.types import Claim, Mention

_CHUNK_HEADS = frozenset("nsubj nsubjpass dobj pobj pcomp dative attr appos oprd ROOT".split())


def list_phrases(tree: Tree) -> list[Phrase]:
    """Return the entities of the text, split at commas unless a comma belongs to a date."""
    found: dict[Span, Phrase] = {}
    for start, last in tree.list_entities():
        first = start
        literal = tree[start].entity in {"DATE", "MONEY", "QUANTITY", "CARDINAL", "TIME"}
        for i in range(start, last + 2):
            if i == last + 1 or (tree[i].text == "," and not literal):
                phrase = build_phrase(tree, first, i - 1, i - 1) if i > first else None
                if phrase is not None:
                    found.setdefault(phrase.span, phrase)
                first = i + 1
    covered = {i for p in found.values() for i in range(p.first, p.last + 1)}
    for node in tree.nodes:
        if node.pos not in {"NOUN", "PROPN"} or node.i in covered or not _heads_chunk(node):
            continue
        phrase = find_phrase(node)
        if phrase is not None and "," not in phrase.text:
            found.setdefault(phrase.span, phrase)
    return sorted(found.values(), key=lambda p: (p.span.start, p.span.end))


def _heads_chunk(node: Node) -> bool:
    at = node
    while at.dep == "conj" and at.head is not at:
        at = at.head
    return at.dep in _CHUNK_HEADS


def assign_mentions(
    phrases: list[Phrase], claims: tuple[Claim, ...], arguments: dict[Span, Phrase]
) -> tuple[Mention, ...]:
    """Return one mention per entity and claim whose spans contain it, arguments included."""
    pool = {p.span: p for p in phrases}
    for span, phrase in arguments.items():
        if "," not in phrase.text:
            pool.setdefault(span, phrase)
    ordered = sorted(pool.values(), key=lambda p: (p.span.start, p.span.end))
    starts = [phrase.span.start for phrase in ordered]
    mentions: list[Mention] = []
    for number, claim in enumerate(claims):
        inside: set[int] = set()
        for span in claim.spans:
            at = bisect_left(starts, span.start)
            while at < len(ordered) and starts[at] < span.end:
                if ordered[at].span.end <= span.end:
                    inside.add(at)
                at += 1
        mentions += (_write_mention(number, ordered[at]) for at in sorted(inside))
    return tuple(mentions)


def _write_mention(claim: int, phrase: Phrase) -> Mention:
    label = "NOUN" if phrase.label == "MISC" else phrase.label
    return Mention(claim, phrase.text, label, phrase.span)
