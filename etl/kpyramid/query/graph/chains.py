"""Answers one fact beyond what is known: "the X of the Y of Z", "when was the Y of Z born".

The question is parted where it can be: "the Y of Z" is asked for first, and what a fact gives for
it takes its place in the question that is left. The chance of a chain is the product of its two
facts' chances, as if they were independent.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kpyramid.extraction.normal import lemmatise
from kpyramid.query.graph.bearing import Bearing, list_lemmas, split_words, weigh_facts
from kpyramid.query.graph.facts import NearFact, find_about, state_facts
from kpyramid.query.pyramid.linking import LinkedQuestion
from kpyramid.query.pyramid.snapshot import Snapshot
from kpyramid.query.questions.wording import FUNCTION
from kpyramid.query.types import Question

CLEAR = 0.6
"""Chance of a single fact from which nothing beyond it is looked for."""
FIRST_ONLY = 0.25
"""What the chance of a fact is worth that says only what the first part asks; set by hand."""
LEAST = 0.15
"""Chance of a first fact below which it is not followed: a chain is no surer than each link."""
MOST_PARTS, MOST_BRIDGES, MOST_BEYOND = 3, 3, 30
"""Ways to part a question, first facts that are followed for each, and facts about what each
gives that are weighed: some 300 in all at worst, 10 ms."""
_ARTICLE = re.compile(r"\b(?:the|a|an|whose)\b", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['’]s?$")
_OWNED = re.compile(r"['’]s?\s+\w+")


@dataclass(frozen=True, slots=True)
class Parts:
    """The two questions of one: the first, and what stands before and after its answer."""

    first: str
    before: str
    after: str


def weigh_singles(
    question: Question, facts: Sequence[NearFact], snapshot: Snapshot
) -> list[Bearing]:
    """Facts with the chance that each answers the whole question by itself, best first.

    One whose relation says only what the first part of a question asks answers another question:
    who wrote the book is not the uncle of who wrote it.
    """
    weighed = weigh_facts(question, facts, snapshot)
    parted = list_parts(question.text, snapshot.link(question.text)) if weighed else []
    if not parted:
        return weighed
    firsts = [(_list_lemmas(p.first), _list_lemmas(f"{p.before} {p.after}")) for p in parted]
    for at, bearing in enumerate(weighed):
        said = list_lemmas(bearing.fact.relation)
        if any(said & first and not said & rest for first, rest in firsts):
            weighed[at] = replace(bearing, chance=round(FIRST_ONLY * bearing.chance, 6))
    return _sort(weighed)


def follow_facts(
    question: Question, weighed: Sequence[Bearing], snapshot: Snapshot
) -> list[Bearing]:
    """Weighed facts with those one step beyond the best of them, where the question asks so."""
    found = list(weighed)
    if not weighed or weighed[0].chance >= CLEAR:
        return found
    singles = [bearing.fact for bearing in weighed]
    for parts in list_parts(question.text, snapshot.link(question.text)):
        first = weigh_facts(Question(parts.first), singles, snapshot)
        for bridge in [b for b in first if b.chance >= LEAST and _name_end(b)][:MOST_BRIDGES]:
            known = {bridge.fact.condensed_id}
            end = [_name_end(bridge)]
            about = find_about(end, question.text, snapshot, MOST_BEYOND, known=known)
            beyond = [replace(f, through=bridge.fact) for f in state_facts(about, snapshot)]
            found += _weigh_beyond(question, parts, bridge, beyond, snapshot)
    return _sort(found)


def weigh_chains(
    question: Question, facts: Sequence[NearFact], snapshot: Snapshot
) -> list[Bearing]:
    """Facts beyond others with the chance that each chain answers the question, best first."""
    found = []
    for parts in list_parts(question.text, snapshot.link(question.text)) if facts else ():
        for fact in facts:
            if fact.through:
                (first,) = weigh_facts(Question(parts.first), [fact.through], snapshot)
                found += _weigh_beyond(question, parts, first, [fact], snapshot)
    return _sort(found)


def list_parts(text: str, linked: LinkedQuestion) -> list[Parts]:
    """The ways to part a question at what it says of a name; none for a simple one."""
    whole = text.rstrip(" ?.!")
    named = frozenset(word for name in linked.names for word in split_words(name))
    found = []
    for written in linked.names[:2]:
        name = _POSSESSIVE.sub("", written)
        at = whole.find(name)
        for start, end in _list_spans(whole, at, at + len(name)) if at >= 0 else ():
            inner, outer = whole[start:end], f"{whole[:start]} {whole[end:]}"
            if _has_content(inner, named) and _has_content(outer, named):
                found.append(Parts(f"What is {inner}?", whole[:start], f"{whole[end:]}?"))
    return list(dict.fromkeys(found))[:MOST_PARTS]


def _list_spans(text: str, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Where "the Y of Z", "the Y that Z made" and "Z's Y" stand, shortest first."""
    owned = _OWNED.match(text, end)
    if owned:
        yield at, owned.end()
    articles = [match.start() for match in _ARTICLE.finditer(text, 0, at)]
    for start in reversed(articles[-2:]):
        yield start, end
        if len(text) > end and not owned:
            yield start, len(text)


def _has_content(text: str, named: frozenset[str]) -> bool:
    return any(word not in named and word not in FUNCTION for word in split_words(text))


def _list_lemmas(text: str) -> frozenset[str]:
    return frozenset(lemmatise(word) for word in split_words(text))


def _weigh_beyond(
    question: Question,
    parts: Parts,
    bridge: Bearing,
    facts: Sequence[NearFact],
    snapshot: Snapshot,
) -> list[Bearing]:
    """Facts about what a first fact gives, weighed by the question that is left."""
    if not bridge.value:
        return []
    rest = Question(f"{parts.before}{bridge.value}{parts.after}", question.candidates)
    return [
        replace(b, chance=round(b.chance * bridge.chance, 6))
        for b in weigh_facts(rest, facts, snapshot)
        if b.value
    ]


def _name_end(bearing: Bearing) -> str:
    """The entity that a fact gives; empty for a literal or no value."""
    fact = bearing.fact
    if not bearing.value:
        return ""
    return fact.head_id if bearing.value == fact.head else fact.tail_id or ""


def _sort(found: Sequence[Bearing]) -> list[Bearing]:
    """Best first, each fact once."""
    ranked = sorted(found, key=lambda b: (-b.chance, -b.fact.cosine, b.fact.condensed_id))
    best: dict[str, Bearing] = {}
    for bearing in ranked:
        best.setdefault(bearing.fact.condensed_id, bearing)
    return list(best.values())
