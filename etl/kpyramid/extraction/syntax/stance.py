"""How a clause is meant: as a fact, denied, a condition, a question, or as somebody's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kpyramid.extraction.syntax.frames import MAX_HOPS, Frame
from kpyramid.extraction.syntax.tree import Node
from kpyramid.extraction.syntax.verbs import REPORTING, SUBJECTS

_NEGATING = frozenset({"neg", "advmod", "cc", "preconj", "dep"})
_NEVER = frozenset("never hardly scarcely barely no neither nor".split())
_HEDGES = frozenset(
    (
        "allegedly reportedly supposedly purportedly apparently presumably perhaps maybe possibly "
        "probably almost nearly"
    ).split()
)
_CONDITIONS = frozenset("if unless whether lest".split())
_INVERTED = frozenset("had were should".split())
# Verbs whose that-clause holds when they do; what is said, thought, wished or denied may not.
_FACTIVE = frozenset(
    (
        "know find show discover realize realise prove demonstrate reveal notice observe learn "
        "remember forget recognize recognise establish confirm explain mean ensure see hear feel "
        "watch make let help have cause get force lead result regret admit acknowledge determine "
        "detect verify indicate illustrate understand"
    ).split()
)
_FACTIVE_NOUNS = frozenset(
    "fact discovery realization realisation evidence knowledge proof result truth way".split()
)
_UNSURE = frozenset(
    (
        "false untrue wrong unlikely likely possible impossible doubtful uncertain unclear sure "
        "certain confident afraid hopeful conceivable plausible probable"
    ).split()
)
# What follows other prepositions need not have happened: "accused of", "banned from".
_ASSERTING = frozenset(
    (
        "by after before since while when in on upon through despite besides with via at until "
        "although though like including as"
    ).split()
)
_DENYING = frozenset({"without", "instead", "than"})


@dataclass(frozen=True, slots=True)
class Stance:
    """`mood` is the word that makes it no statement ("if", "?", "allegedly"), None in a statement.

    `source` heads who says so; None when the text itself does.
    """

    negated: bool = False
    mood: str | None = None
    source: Node | None = None


def read_stance(frame: Frame, frames: Mapping[int, Frame]) -> Stance:
    """How the clause is meant, from its own words and the clauses it is part of."""
    at = frame.verb
    negated, mood, source = False, None, None
    own = {verb.i for verb in (frame.verb, *frame.chain)}
    for _ in range(MAX_HOPS):
        negated = negated or (at.i in own and is_negated(at))
        mood = mood or _read_mood(at, at.i in own)
        source = source or _find_named_source(at, frames)
        if at.dep in {"conj", "xcomp"} and at.head.pos in {"VERB", "AUX"}:
            at = at.head
            continue
        if at.dep == "pcomp":
            word = at.head.word
            denies = word in _DENYING or at.head.head.word in _DENYING
            negated = negated or denies
            if not denies and word not in _ASSERTING:
                mood = mood or word
        elif at.dep in {"ccomp", "csubj"} or (at.dep in {"acl", "relcl"} and _has_that(at)):
            if source is None and not _is_paratactic(at):
                source = _find_believer(at.head, frames)
            if at.dep == "ccomp" and at.head is not at and source is None:
                at = at.head
                continue
        break
    return Stance(negated, mood, source)


def is_negated(verb: Node) -> bool:
    """Whether "not", "never", "hardly", "nor" or the like denies the verb."""
    if any(c.dep == "neg" or c.word in _NEVER for c in verb.children if c.dep in _NEGATING):
        return True
    between = range(verb.head.i + 1, verb.i)
    return verb.dep == "conj" and any(
        c.word == "nor" and c.i in between for c in verb.head.children
    )


def _read_mood(verb: Node, is_own: bool) -> str | None:
    for child in verb.children:
        if child.dep in {"mark", "advmod"} and child.word in _CONDITIONS:
            return child.word
        if is_own and child.dep == "advmod" and child.word in _HEDGES:
            return child.word
    first, end = verb.tree.sentences[verb.sentence]
    if verb.head is verb and verb.tree[end - 1].text == "?":
        return "?"
    return "if" if _is_inverted(verb, first) else None


def _is_inverted(verb: Node, first: int) -> bool:
    """Whether an auxiliary opens the clause before its subject: "had he won, ..."."""
    subject = next((c.i for c in verb.children if c.dep in SUBJECTS), None)
    if subject is None:
        return False
    opening = [c.i for c in verb.children if c.word in _INVERTED and c.dep in {"aux", "auxpass"}]
    embedded = verb.dep in {"advcl", "ccomp"}
    return any(i < subject and (embedded or i == first) for i in opening)


def _has_that(verb: Node) -> bool:
    """Whether it is the content of a noun, "the claim that ...", and no relative clause.

    A "that" which the parser calls an object beside another object is a conjunction too.
    """
    if verb.head.pos != "NOUN":
        return False
    that = [c for c in verb.children if c.word == "that"]
    objects = [c for c in verb.children if c.dep == "dobj"]
    return any(c.dep == "mark" or (c.dep == "dobj" and len(objects) > 1) for c in that)


def _is_paratactic(verb: Node) -> bool:
    """Whether it is a main clause that the parser put below the next: "Rome fell; Oslo stood"."""
    return verb.dep == "ccomp" and verb.i < verb.head.i and verb.head.lemma.lower() not in REPORTING


def _find_named_source(verb: Node, frames: Mapping[int, Frame]) -> Node | None:
    """The X of "according to X"."""
    frame = frames.get(verb.i)
    for part in frame.parts if frame is not None else ():
        if part.link and part.link[0].word == "according":
            return part.root
    return None


def _find_believer(head: Node, frames: Mapping[int, Frame]) -> Node | None:
    """Who holds what depends on `head`, else the word itself; None where it holds of itself."""
    if head.pos == "NOUN":
        return None if head.lemma.lower() in _FACTIVE_NOUNS else head
    if head.pos == "ADJ":
        return head if head.lemma.lower() in _UNSURE else None
    if head.lemma == "be":
        quality = next((c for c in head.children if c.dep in {"acomp", "attr"}), None)
        return quality if quality is not None and quality.lemma.lower() in _UNSURE else None
    if head.pos not in {"VERB", "AUX"} or head.lemma.lower() in _FACTIVE:
        return None
    frame = frames.get(head.i)
    subjects = [s for s in (frame.subjects if frame is not None else ()) if s.dep != "expl"]
    return subjects[0] if subjects and subjects[0].word != "it" else head
