"""N-ary facts as a sentence words them: predicate, subject, and every complement and adjunct."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice, product

from kpyramid.extraction.confidence import Features, estimate_confidence
from kpyramid.extraction.frames import Frame, Part, list_prepositional, read_frames
from kpyramid.extraction.nominal_propositions import list_nominal_propositions
from kpyramid.extraction.predicates import Predicate, read_predicate
from kpyramid.extraction.tree import Node, Tree
from kpyramid.extraction.types import Argument, Proposition, Span
from kpyramid.extraction.verbs import REPORTING, is_copula
from kpyramid.extraction.wording import (
    collect_clause,
    collect_phrase,
    find_span,
    list_coordinated,
    trim_edges,
    write_words,
)

_PLACES = frozenset({"GPE", "LOC", "FAC"})
_LOCATIVE = frozenset("in at on near within inside outside".split())
_VAGUE = frozenset({"it", "this", "that", "these", "those"})
_CLAUSES = frozenset({"clause", "purpose", "circumstance"})
_MAX_CIRCUMSTANCE = 10
"""Tokens of an adverbial clause kept as an argument; a longer one is a fact of its own."""
_MAX_SPLITS = 12
_MAX_HOPS = 12


@dataclass(frozen=True, slots=True)
class _Side:
    """The first argument after the subject, and what it takes into the predicate."""

    part: Part | None
    quality: Node | None
    rest: list[Part]


def list_propositions(tree: Tree) -> tuple[Proposition, ...]:
    """The propositions of every clause, by place, then those of noun phrases."""
    return tuple(each for each, _ in draft_propositions(tree))


def draft_propositions(tree: Tree) -> Iterator[tuple[Proposition, Features]]:
    """The propositions with what their confidence was read from; none is repeated."""
    frames = read_frames(tree)
    merged = {verb.i for frame in frames.values() for verb in frame.chain}
    # A heading without a verb states nothing.
    sentences = {frame.verb.sentence for frame in frames.values()}
    found = (
        pair
        for frame in frames.values()
        if frame.subjects and frame.verb.i not in merged
        for pair in _write_frame(tree, frame, frames)
    )
    known: set[tuple[str, ...]] = set()
    for pair in chain(found, list_nominal_propositions(tree, sentences)):
        key = (pair[0].predicate, *(argument.text for argument in pair[0].arguments))
        if key not in known:
            known.add(key)
            yield pair


def _write_frame(
    tree: Tree, frame: Frame, frames: dict[int, Frame]
) -> Iterator[tuple[Proposition, Features]]:
    predicate = read_predicate(frame, frames)
    side = _choose_side(frame)
    tokens = list(predicate.tokens)
    if side.quality is not None:
        tokens += [i for i in _list_quality(side.quality) if i not in tokens]
        tokens.sort()
    link = [node.i for node in side.part.link] if side.part is not None else []
    words = [write_words(tree, predicate.lent), predicate.be or ""]
    words += [write_words(tree, tokens), write_words(tree, link)]
    text = " ".join(word for word in words if word)
    extra = list(_write_extra(tree, frame, side.rest))
    extra += _write_fronted(tree, frame, frames)
    attribution = _find_attribution(tree, frame, frames)
    subjects = [(s, len(group) > 1) for group in _list_subjects(frame, frames) for s in group]
    objects: list[Node | None] = [None]
    if side.part is not None:
        objects = list[Node | None](
            [side.part.root] if side.part.role in _CLAUSES else list_coordinated(side.part.root)
        )
    span = Span(tree[tokens[0]].idx, tree[tokens[-1]].end)
    features = _describe(tree, frame, frames, predicate, side)
    for (subject, apart), target in islice(product(subjects, objects), _MAX_SPLITS):
        first = _write_subject(tree, subject, apart, frame)
        if first is None:
            continue
        arguments = [first]
        if target is not None and side.part is not None:
            second = _write_object(tree, target, len(objects) > 1, side.part, frame)
            if second is None:
                continue
            arguments.append(second)
        told = replace(
            features,
            predicate_words=len(text.split()),
            subject_words=len(first.text.split()),
            subject_named=subject.pos == "PROPN",
            subject_pronoun=subject.pos == "PRON",
            object_words=len(arguments[1].text.split()) if target is not None else 0,
            object_named=target is not None and target.pos == "PROPN",
            object_pronoun=target is not None and target.pos == "PRON",
            longest_words=max((len(each.text.split()) for each in extra), default=0),
            arguments=len(arguments) + len(extra),
            split=apart or len(objects) > 1,
            attributed=attribution is not None,
        )
        proposition = Proposition(
            text,
            (*arguments, *extra),
            span,
            predicate.negated or _is_nothing(subject) or _is_nothing(target),
            predicate.modality,
            attribution,
            estimate_confidence(told),
        )
        yield proposition, told


def _choose_side(frame: Frame) -> _Side:
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
        return _Side(led[0], quality.root, rest) if led else _Side(quality, None, rest)
    if chosen is None:
        chosen = next((p for p in parts if p.role == "clause"), None)
    if chosen is None:
        after = [p for p in parts if p.role == "preposition" and _follows(p, frame)]
        chosen = next(iter(after), None) or next((p for p in parts if p.role == "purpose"), None)
    return _Side(chosen, None, [p for p in parts if p is not chosen and p is not quality])


def _follows(part: Part, frame: Frame) -> bool:
    return part.gap is not None or part.place > frame.verb.i


def _list_quality(quality: Node) -> list[int]:
    """The adjective that joins the predicate: "is very fond of"."""
    before = (c for c in quality.children if c.i < quality.i and c.dep in {"advmod", "neg"})
    return [*(c.i for c in before), quality.i]


def _list_subjects(frame: Frame, frames: dict[int, Frame]) -> list[list[Node]]:
    subjects = frame.subjects
    if frame.way == "antecedent":
        subjects = [_lift_kind(noun, frames) for noun in subjects]
    return [list_coordinated(subject) for subject in subjects]


def _lift_kind(noun: Node, frames: dict[int, Frame]) -> Node:
    """What a noun that only names the kind says it of: X in "X is a town that ..."."""
    if noun.dep == "attr" and (frame := frames.get(noun.head.i)) is not None:
        subject = next(iter(frame.kids.get("nsubj", ())), None)
        if subject is not None and is_copula(frame.verb) and subject.word not in _VAGUE:
            return subject
    return noun.head if noun.dep == "appos" else noun


def _write_subject(tree: Tree, root: Node, apart: bool, frame: Frame) -> Argument | None:
    bare = frame.clause if frame.way == "antecedent" else None
    if frame.way == "existential":  # what hangs on "a house" says where it is
        bare = next((c for c in root.children if c.dep == "prep" and c.word != "of"), None)
    return _write_argument(tree, "subject", _collect(root, apart, bare), ())


def _write_object(tree: Tree, root: Node, apart: bool, part: Part, frame: Frame) -> Argument | None:
    if part.role in _CLAUSES or part.role == "quality":
        link = {node.i for node in part.link}
        tokens = trim_edges(tree, [i for i in collect_clause(root) if i not in link])
    else:
        tokens = _collect(root, apart, frame.clause if part.gap is not None else None)
    return _write_argument(tree, _name_role(part), tokens, ())


def _write_extra(tree: Tree, frame: Frame, parts: Iterable[Part]) -> Iterator[Argument]:
    """The other arguments with the words that lead to them; what stands in front comes last."""
    for part in sorted(parts, key=lambda part: part.place < frame.top.i):
        if part.role == "circumstance":
            width = part.root.right_edge.i - part.root.left_edge.i
            if width > _MAX_CIRCUMSTANCE:
                continue
        elif part.role == "adverb" and _is_connective(part.root):
            continue
        if part.role in _CLAUSES:
            tokens = collect_clause(part.root)
        else:
            bare = frame.clause if part.gap is not None else None
            tokens = _collect(part.root, False, bare)
        written = _write_argument(tree, _name_role(part), tokens, part.link)
        if written is not None:
            yield written


def _write_fronted(tree: Tree, frame: Frame, frames: dict[int, Frame]) -> Iterator[Argument]:
    """The time before the shared subject, which holds for every coordinated verb."""
    above = frames.get(frame.verb.head.i) if frame.verb.dep == "conj" else None
    if above is None or not above.subjects or above.subjects != frame.subjects:
        return
    start = above.subjects[0].left_edge.i
    for part in above.parts:
        if part.role == "time" and part.place < start:
            written = _write_argument(tree, "time", _collect(part.root, False, None), part.link)
            if written is not None:
                yield written


def _is_connective(adverb: Node) -> bool:
    """Whether a comma sets the adverb off: "however", "moreover"."""
    tree, after = adverb.tree, adverb.right_edge.i + 1
    return after < len(tree) and tree[after].text == ","


def _collect(root: Node, apart: bool, bare: Node | None) -> list[int]:
    if root.pos in {"VERB", "AUX"} and root.tag != "VBN":
        return collect_clause(root)
    return collect_phrase(root, apart, bare)


def _write_argument(
    tree: Tree, role: str, tokens: list[int], link: tuple[Node, ...]
) -> Argument | None:
    if not tokens:
        return None
    led = {node.i for node in link}
    joined = [*sorted(led), *(i for i in tokens if i not in led)]
    text = write_words(tree, joined)
    if not any(character.isalnum() for character in text):
        return None
    return Argument(role, text, find_span(tree, joined) if joined == sorted(joined) else None)


def _name_role(part: Part) -> str:
    if part.role != "preposition":
        return "object" if part.role in {"attribute", "quality"} else part.role
    words = " ".join(node.word for node in part.link)
    return "place" if part.root.entity in _PLACES and words in _LOCATIVE else words


def _is_nothing(noun: Node | None) -> bool:
    return noun is not None and any(
        child.dep in {"det", "neg"} and child.word == "no" for child in noun.children
    )


def _find_attribution(tree: Tree, frame: Frame, frames: dict[int, Frame]) -> str | None:
    """Who says it: "according to X ...", or the subject of the reporting verb above."""
    at = frame.verb
    for _ in range(_MAX_HOPS):
        here = frames.get(at.i)
        source = (
            next((p.root for p in here.parts if p.link and p.link[0].word == "according"), None)
            if here is not None
            else None
        )
        if source is None and at.dep == "ccomp" and at.head.lemma.lower() in REPORTING:
            above = frames.get(at.head.i)
            if above is not None and above.subjects:
                source = above.subjects[0]
        if source is not None:
            return write_words(tree, collect_phrase(source)) or None
        if at.head is at:
            return None
        at = at.head
    return None


def _describe(
    tree: Tree, frame: Frame, frames: dict[int, Frame], predicate: Predicate, side: _Side
) -> Features:
    first, end = tree.sentences[frame.verb.sentence]
    depth, at = 0, frame.verb
    for _ in range(_MAX_HOPS):
        if at.head is at:
            break
        at = at.head
        depth += at.i in frames
    return Features(
        frame.construction,
        depth=depth,
        sentence_words=end - first,
        object_clause=side.part is not None and side.part.role in _CLAUSES,
        indirect_subject=frame.way != "own",
        inferred_predicate=predicate.be is not None,
        passive="auxpass" in frame.kids,
        copula=is_copula(frame.verb),
        negated=predicate.negated,
        modal=predicate.modality is not None,
        preposition=side.part is not None and bool(side.part.link),
    )
