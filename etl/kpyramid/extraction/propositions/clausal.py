"""N-ary facts as a sentence words them: predicate, subject, and every complement and adjunct."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice, product

from kpyramid.extraction.confidence import Features, estimate_confidence
from kpyramid.extraction.propositions.arguments import (
    CLAUSES,
    Side,
    choose_side,
    list_quality,
    list_subjects,
    write_object,
    write_others,
    write_subject,
)
from kpyramid.extraction.propositions.nominal import list_nominal_propositions
from kpyramid.extraction.propositions.wording import (
    Rename,
    collect_phrase,
    is_denied,
    list_coordinated,
    write_words,
)
from kpyramid.extraction.syntax.frames import Frame, count_clauses_above, list_merged
from kpyramid.extraction.syntax.predicates import Predicate, read_predicate
from kpyramid.extraction.syntax.reading import read_frames
from kpyramid.extraction.syntax.stance import read_stance
from kpyramid.extraction.syntax.tree import Node, Tree
from kpyramid.extraction.syntax.verbs import is_copula
from kpyramid.extraction.text.sentences import Span
from kpyramid.extraction.types import Argument, Proposition

_MAX_SPLITS = 12
"""Propositions of one clause at most, however many subjects and objects are coordinated."""


@dataclass(frozen=True, slots=True)
class Wording:
    """A clause in words, but for its subject and first object.

    `tokens` are those of the predicate that stand in the clause; `others` the later arguments.
    """

    text: str
    tokens: list[int]
    predicate: Predicate
    side: Side
    others: tuple[Argument, ...]


def list_propositions(tree: Tree) -> tuple[Proposition, ...]:
    """The propositions of every clause, by place, then those of noun phrases."""
    return tuple(each for each, _ in draft_propositions(tree))


def draft_propositions(tree: Tree) -> Iterator[tuple[Proposition, Features]]:
    """The propositions with what their confidence was read from; none is repeated."""
    frames = read_frames(tree)
    merged = list_merged(frames)
    # A heading without a verb states nothing.
    sentences = {frame.verb.sentence for frame in frames.values()}
    found = (
        pair
        for frame in frames.values()
        if frame.subjects and frame.verb.i not in merged
        for pair in _write_frame(frame, frames)
    )
    known: set[tuple[str, ...]] = set()
    for pair in chain(found, list_nominal_propositions(tree, sentences)):
        key = (pair[0].predicate, *(argument.text for argument in pair[0].arguments))
        if key not in known:
            known.add(key)
            yield pair


def word_clause(frame: Frame, frames: dict[int, Frame], rename: Rename = None) -> Wording:
    """The predicate and later arguments of a clause, pronouns renamed."""
    tree = frame.verb.tree
    predicate = read_predicate(frame, frames)
    side = choose_side(frame)
    tokens = predicate.tokens
    if side.quality is not None:
        tokens = sorted({*tokens, *list_quality(side.quality)})
    link = [node.i for node in side.part.link] if side.part is not None else []
    words = [write_words(tree, part)[0] for part in (predicate.lent, tokens, link)]
    words.insert(1, predicate.be or "")
    others = tuple(write_others(frame, side.rest, frames, tokens, rename))
    text = " ".join(filter(None, words))
    opening = tree[tokens[0]]
    if opening.i == tree.sentences[opening.sentence][0] and opening.pos != "PROPN":
        text = text.replace(opening.text, opening.word, 1)
    return Wording(text, tokens, predicate, side, others)


def state_clause(
    frame: Frame, frames: dict[int, Frame], subject: Argument | None, rename: Rename
) -> tuple[str, tuple[Argument, ...]]:
    """Predicate and arguments of a clause as one fact, what is coordinated kept together."""
    wording = word_clause(frame, frames, rename)
    part = wording.side.part
    if subject is None:
        subject = write_subject(list_subjects(frame, frames)[0], False, frame, rename)
    first = write_object(part.root, False, part, frame, rename) if part is not None else None
    stated = tuple(each for each in (subject, first) if each is not None)
    return wording.text, (*stated, *wording.others)


def _write_frame(frame: Frame, frames: dict[int, Frame]) -> Iterator[tuple[Proposition, Features]]:
    tree = frame.verb.tree
    wording = word_clause(frame, frames)
    part, predicate = wording.side.part, wording.predicate
    stance = read_stance(frame, frames)
    source, modality = stance.source, stance.mood or predicate.modality
    negated = predicate.negated or stance.negated
    attribution = write_words(tree, collect_phrase(source))[0] if source is not None else None
    groups = [list_coordinated(subject) for subject in list_subjects(frame, frames)]
    subjects = [
        (subject, write_subject(subject, len(group) > 1, frame, None))
        for group in groups
        for subject in group[:_MAX_SPLITS]
    ]
    objects: list[tuple[Node | None, Argument | None]] = [(None, None)]
    if part is not None:
        found = [part.root] if part.role in CLAUSES else list_coordinated(part.root)
        objects = [(o, write_object(o, len(found) > 1, part, frame, None)) for o in found]
    split = len(subjects) > 1 or len(objects) > 1
    last = wording.tokens[-1]
    span = Span(tree[wording.tokens[0]].idx, tree[last].end)
    first, end = tree.sentences[frame.verb.sentence]
    depth = count_clauses_above(frame.verb, frames)
    longest = max((each.text.count(" ") + 1 for each in wording.others), default=0)
    for (subject, agent), (target, goal) in islice(product(subjects, objects), _MAX_SPLITS):
        if agent is None or (target is not None and goal is None):
            continue
        arguments = (agent, *wording.others) if goal is None else (agent, goal, *wording.others)
        features = Features(
            frame.construction,
            depth,
            end - first,
            wording.text.count(" ") + 1,
            agent.text.count(" ") + 1,
            goal.text.count(" ") + 1 if goal is not None else 0,
            longest,
            len(arguments),
            subject_named=subject.pos == "PROPN",
            object_named=target is not None and target.pos == "PROPN",
            subject_pronoun=subject.pos == "PRON",
            object_pronoun=target is not None and target.pos == "PRON",
            object_clause=part is not None and part.role in CLAUSES,
            indirect_subject=frame.way != "own",
            inferred_predicate=predicate.be is not None,
            split=split,
            passive="auxpass" in frame.kids,
            copula=is_copula(frame.verb),
            negated=negated,
            modal=modality is not None,
            attributed=attribution is not None,
            preposition=part is not None and bool(part.link),
        )
        proposition = Proposition(
            wording.text,
            arguments,
            span,
            negated or is_denied(subject) or is_denied(target),
            modality,
            attribution,
            estimate_confidence(features),
        )
        yield proposition, features
