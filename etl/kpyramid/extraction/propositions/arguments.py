"""The arguments of a clause in words: which comes first, and what leads to the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kpyramid.extraction.propositions.wording import (
    Rename,
    collect_clause,
    collect_phrase,
    find_span,
    trim_edges,
    write_words,
)
from kpyramid.extraction.syntax.frames import Frame, Part
from kpyramid.extraction.syntax.parts import list_prepositional
from kpyramid.extraction.syntax.tree import Node, Tree
from kpyramid.extraction.syntax.verbs import is_copula
from kpyramid.extraction.types import Argument

CLAUSES = frozenset({"clause", "purpose", "circumstance"})
_PLACES = frozenset({"GPE", "LOC", "FAC"})
_LOCATIVE = frozenset("in at on near within inside outside".split())
_VAGUE = frozenset({"it", "this", "that", "these", "those"})
_MAX_CIRCUMSTANCE = 10
"""Tokens of an adverbial clause kept as an argument; a longer one is a fact of its own."""


@dataclass(frozen=True, slots=True)
class Side:
    """The first argument after the subject, and what it takes into the predicate."""

    part: Part | None
    quality: Node | None
    rest: list[Part]


def choose_side(frame: Frame) -> Side:
    """The object, else the quality, else what the sentence leads to by a preposition."""
    parts = frame.parts
    chosen = next((p for p in parts if p.role == "object"), None)
    chosen = chosen or next((p for p in parts if p.role == "attribute"), None)
    quality = next((p for p in parts if p.role == "quality"), None)
    if chosen is None and quality is not None:
        led = [
            part
            for child in quality.root.children
            if child.dep == "prep" and child.i > quality.root.i
            for part in list_prepositional(child)
        ]
        rest = [*led[1:], *(p for p in parts if p is not quality)]
        return Side(led[0], quality.root, rest) if led else Side(quality, None, rest)
    if chosen is None:
        chosen = next((p for p in parts if p.role == "clause"), None)
    if chosen is None:
        after = [p for p in parts if p.role == "preposition" and _follows(p, frame)]
        chosen = next(iter(after), None) or next((p for p in parts if p.role == "purpose"), None)
    return Side(chosen, None, [p for p in parts if p is not chosen and p is not quality])


def _follows(part: Part, frame: Frame) -> bool:
    return part.gap is not None or part.place > frame.verb.i


def list_quality(quality: Node) -> list[int]:
    """The adjective that joins the predicate: "is very fond of"."""
    before = (c for c in quality.children if c.i < quality.i and c.dep in {"advmod", "neg"})
    return [*(c.i for c in before), quality.i]


def list_subjects(frame: Frame, frames: dict[int, Frame]) -> list[Node]:
    """The heads of the subjects; for a noun that only names a kind, what it is said of."""
    if frame.way != "antecedent":
        return frame.subjects
    return [lift_kind(noun, frames) for noun in frame.subjects]


def lift_kind(noun: Node, frames: dict[int, Frame]) -> Node:
    """X in "X is a town that ..." and "X, a town that ..."; else the noun itself."""
    if noun.dep == "attr" and (frame := frames.get(noun.head.i)) is not None:
        subject = next(iter(frame.kids.get("nsubj", ())), None)
        if subject is not None and is_copula(frame.verb) and subject.word not in _VAGUE:
            return subject
    return noun.head if noun.dep == "appos" else noun


def write_subject(root: Node, apart: bool, frame: Frame, rename: Rename) -> Argument | None:
    """The subject; `apart` leaves out what is coordinated with it."""
    bare = frame.clause if frame.way == "antecedent" else None
    if frame.way == "existential":  # what hangs on "a house" says where it is
        bare = next((c for c in root.children if c.dep == "prep" and c.word != "of"), None)
    return _write_argument("subject", _collect(root, apart, bare), (), root.tree, rename)


def write_object(
    root: Node, apart: bool, part: Part, frame: Frame, rename: Rename
) -> Argument | None:
    """The first argument after the subject, without the words that join the predicate."""
    if part.role in CLAUSES or part.role == "quality":
        link = {node.i for node in part.link}
        tokens = trim_edges(root.tree, [i for i in collect_clause(root) if i not in link])
    else:
        tokens = _collect(root, apart, frame.clause if part.gap is not None else None)
    return _write_argument(_name_role(part), tokens, (), root.tree, rename)


def write_others(
    frame: Frame,
    parts: Iterable[Part],
    frames: dict[int, Frame],
    predicate: list[int],
    rename: Rename,
) -> Iterator[Argument]:
    """The other arguments with the words that lead to them; what stands in front comes last.

    `predicate` are the tokens that the predicate has taken.
    """
    for part in sorted(parts, key=lambda part: part.place < frame.top.i):
        if part.role == "circumstance":
            if part.root.right_edge.i - part.root.left_edge.i > _MAX_CIRCUMSTANCE:
                continue
        elif part.role == "adverb" and (part.root.i in predicate or _is_connective(part.root)):
            continue
        bare = frame.clause if part.gap is not None else None
        written = _write_other(part, bare, rename)
        if written is not None:
            yield written
    for part in _list_fronted(frame, frames):
        written = _write_other(part, None, rename)
        if written is not None:
            yield written


def _list_fronted(frame: Frame, frames: dict[int, Frame]) -> list[Part]:
    """The time before a shared subject, which holds for every coordinated verb."""
    above = frames.get(frame.verb.head.i) if frame.verb.dep == "conj" else None
    if above is None or not above.subjects or above.subjects != frame.subjects:
        return []
    start = above.subjects[0].left_edge.i
    return [part for part in above.parts if part.role == "time" and part.place < start]


def _write_other(part: Part, bare: Node | None, rename: Rename) -> Argument | None:
    whole = part.role in CLAUSES
    tokens = collect_clause(part.root) if whole else _collect(part.root, False, bare)
    return _write_argument(_name_role(part), tokens, part.link, part.root.tree, rename)


def _is_connective(adverb: Node) -> bool:
    """Whether a comma sets the adverb off: "however", "moreover"."""
    tree, after = adverb.tree, adverb.right_edge.i + 1
    return after < len(tree) and tree[after].text == ","


def _collect(root: Node, apart: bool, bare: Node | None) -> list[int]:
    if root.pos in {"VERB", "AUX"} and root.tag != "VBN":
        return collect_clause(root)
    return collect_phrase(root, apart, bare)


def _write_argument(
    role: str, tokens: list[int], link: tuple[Node, ...], tree: Tree, rename: Rename
) -> Argument | None:
    if not tokens:
        return None
    led = {node.i for node in link}
    joined = [*sorted(led), *(i for i in tokens if i not in led)] if led else tokens
    text, literal = write_words(tree, joined, rename)
    if not any(character.isalnum() for character in text):
        return None
    return Argument(role, text, find_span(tree, joined, text) if literal else None)


def _name_role(part: Part) -> str:
    if part.role != "preposition":
        return "object" if part.role in {"attribute", "quality"} else part.role
    words = " ".join(node.word for node in part.link)
    return "place" if part.root.entity in _PLACES and words in _LOCATIVE else words
