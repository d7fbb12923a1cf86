"""What a document shows of each pair of entities that a property may join."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kpyramid.extraction.normal import lemmatise, normalise_relation
from kpyramid.extraction.syntax.tree import Node, Tree
from kpyramid.induction.types import Words
from kpyramid.ontology.schema import OntologyProperty, Schema

_FAR = 30
"""Words between two mentions beyond which these words say nothing of the two."""
_END = 2
"""Sentences at the end of a document in which its conclusion stands."""
_GRAMMAR = frozenset("be have do a an the".split())
_DENYING = frozenset("no not n't without neither nor never none absence lack fail cannot".split())

Phrase = tuple[str, ...]
"""The lemmas of a phrase, without auxiliaries and articles."""


@dataclass(frozen=True, slots=True)
class Mention:
    """Where a text names entities: one, or several at once, as in "liver and kidney toxicity"."""

    entities: tuple[str, ...]
    words: Words


@dataclass(frozen=True, slots=True)
class MentionDocument:
    """A parsed document with the mentions that fit a property's domain, and those of its range.

    `title_end`: the character at which the title ends; 0 without a title.
    """

    tree: Tree
    title_end: int
    subjects: tuple[Mention, ...]
    objects: tuple[Mention, ...]


@dataclass(frozen=True, slots=True)
class Wording:
    """How text states a property, and how it states others that may join the same entities.

    `forward` is read from subject to object, `backward` from object to subject.
    """

    forward: frozenset[Phrase]
    backward: frozenset[Phrase]
    rival_forward: frozenset[Phrase] = frozenset()
    rival_backward: frozenset[Phrase] = frozenset()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pair that a document may state, with the signs for it and against it by name.

    `subject_words` and `object_words` are the mentions nearest to each other, `evidence` the
    sentence that holds them, or the stretch from one to the other where no sentence does.
    """

    subject: str
    object: str
    signs: Mapping[str, float]
    subject_words: Words
    object_words: Words
    evidence: Words


def read_wording(schema: Schema, prop: OntologyProperty) -> Wording:
    """The phrases of a property, of its inverse, and of its rivals.

    A rival may join the same two entities: its domain is the property's, or wider or narrower, and
    so is its range. A property that is its own inverse, such as `associated with`, says only that
    two things go together: it speaks neither for nor against.
    """
    by_iri = schema.property_by_iri
    rivals = [
        other
        for other in schema.properties
        if other.iri not in (prop.iri, prop.inverse_of, other.inverse_of)
        and not other.is_datatype
        and _overlap(other.domain, prop.domain, schema)
        and _overlap(other.range, prop.range, schema)
    ]
    forward = _list_phrases([prop])
    backward = _list_phrases([by_iri.get(prop.inverse_of or "")])
    return Wording(
        forward,
        backward,
        _list_phrases(rivals) - forward,
        _list_phrases(by_iri.get(rival.inverse_of or "") for rival in rivals) - backward,
    )


def _overlap(one: str, other: str, schema: Schema) -> bool:
    return schema.is_subclass(one, other) or schema.is_subclass(other, one)


def _list_phrases(properties: Iterable[OntologyProperty | None]) -> frozenset[Phrase]:
    texts = (text for prop in properties if prop for text in (prop.label, *prop.alt_labels))
    phrases = (
        tuple(lemma for lemma in normalise_relation(text).lemmas if lemma not in _GRAMMAR)
        for text in texts
    )
    return frozenset(phrase for phrase in phrases if phrase)


def describe_pairs(document: MentionDocument, wording: Wording) -> list[Candidate]:
    """Every pair of a subject and another entity as its object, sorted."""
    return list(_Reading(document, wording).describe())


class _Place(NamedTuple):
    """A mention on the tree: its first and last token, and the one that heads them."""

    first: int
    last: int
    head: Node
    words: Words


class _Gap(NamedTuple):
    """Two mentions and the number of tokens between them."""

    width: int
    subject: _Place
    object: _Place


class _Reading:
    """A document with what all its pairs share."""

    def __init__(self, document: MentionDocument, wording: Wording) -> None:
        self.wording, self.tree = wording, document.tree
        self.subjects = _locate(document.subjects, self.tree)
        self.objects = _locate(document.objects, self.tree)
        self.names = {
            "subject": _list_names(document.subjects),
            "object": _list_names(document.objects),
        }
        # Which words a mention is made of is no sign of what is said about it.
        self.masked = {
            i: kind
            for kind, ends in (("subject", self.subjects), ("object", self.objects))
            for places in ends.values()
            for place in places
            for i in range(place.first, place.last + 1)
        }
        starts = [self.tree[first].idx for first, _ in self.tree.sentences]
        self.title = sum(start < document.title_end for start in starts)
        self.conclusion = max(len(starts) - _END, self.title)

    def describe(self) -> Iterator[Candidate]:
        of_object = {obj: self._describe_end("object", obj, self.objects) for obj in self.objects}
        for subject, at in self.subjects.items():
            of_subject = self._describe_end("subject", subject, self.subjects)
            for obj, places in self.objects.items():
                if subject == obj:
                    continue
                signs = of_subject | of_object[obj]
                signs["pairs"] = math.log(len(self.subjects) * len(self.objects))
                nearest = self._describe_meetings(at, places, signs)
                yield Candidate(
                    subject,
                    obj,
                    signs,
                    nearest.subject.words,
                    nearest.object.words,
                    self._cut_evidence(nearest),
                )

    def _describe_end(
        self, kind: str, entity: str, ends: Mapping[str, list[_Place]]
    ) -> dict[str, float]:
        """How the document treats one entity, whatever the other is."""
        counts = {key: len(found) for key, found in ends.items()}
        sentences = [place.head.sentence for place in ends[entity]]
        names = self.names[kind]
        others = [name for key in names if key != entity for name in names[key]]
        signs = {
            "share": counts[entity] / sum(counts.values()),
            "count": math.log1p(counts[entity]),
            "most": counts[entity] == max(counts.values()),
            "only": len(counts) == 1,
            "in title": min(sentences) < self.title,
            "in conclusion": max(sentences) >= self.conclusion,
            "first": min(sentences) / len(self.tree.sentences),
            # "renal failure" beside "acute renal failure", and the other way round
            "general": any(name < other for name in names[entity] for other in others),
            "special": any(other < name for name in names[entity] for other in others),
        }
        words = {f"named {word}" for name in names[entity] for word in name}
        words |= {f"under {self._read_word(place.head.head)}" for place in ends[entity]}
        return {f"{kind} {sign}": float(value) for sign, value in signs.items()} | {
            f"{kind} {word}": 1.0 for word in words
        }

    def _read_word(self, node: Node) -> str:
        return self.masked.get(node.i) or ("#" if node.pos == "NUM" else node.lemma.lower())

    def _describe_meetings(
        self, subjects: list[_Place], objects: list[_Place], signs: dict[str, float]
    ) -> _Gap:
        """Adds what the sentences say that name both; the nearest pair of mentions comes out."""
        meetings: dict[int, _Gap] = {}
        gaps = [
            _Gap(max(s.first - o.last - 1, o.first - s.last - 1, 0), s, o)
            for s in subjects
            for o in objects
        ]
        gaps.sort(key=lambda gap: (gap.width, gap.subject.first, gap.object.first))
        for gap in gaps:
            if gap.subject.head.sentence == gap.object.head.sentence:
                meetings.setdefault(gap.subject.head.sentence, gap)
        signs["sentences"] = math.log1p(len(meetings))
        signs["both in title"] = float(any(at < self.title for at in meetings))
        signs["both in conclusion"] = float(any(at >= self.conclusion for at in meetings))
        signs["sentences apart"] = math.log1p(
            min(abs(gap.subject.head.sentence - gap.object.head.sentence) for gap in gaps)
        )
        if not meetings:
            return gaps[0]
        nearest = min(meetings.values(), key=lambda gap: gap.width)
        signs["together"] = 1.0
        signs["near"] = 1 / (2 + nearest.width)
        signs["gap"] = math.log1p(nearest.width)
        for gap in meetings.values():
            self._describe_meeting(gap, signs)
        return nearest

    def _describe_meeting(self, gap: _Gap, signs: dict[str, float]) -> None:
        """Adds what one sentence says between two mentions, and on the way through its tree."""
        forward = gap.subject.first <= gap.object.first
        order = "forward" if forward else "backward"
        low, high = (gap.subject, gap.object) if forward else (gap.object, gap.subject)
        between = [self.tree[i] for i in range(low.last + 1, high.first)]
        path = list(_walk(gap.subject.head, gap.object.head))
        on_path = [self._read_word(node) for node in path]
        words = [word for node in between if (word := self._read_word(node)) not in _GRAMMAR]
        wording = self.wording
        said = wording.forward if forward else wording.backward
        rival = wording.rival_forward if forward else wording.rival_backward
        signs["path"] = max(signs.get("path", 0.0), 1 / (1 + len(path)))
        for word in on_path:
            signs[f"path {order} {word}"] = 1.0
        if any((lemmatise(node.word),) in said for node in path):
            signs["said on path"] = 1.0
        dependants = (self._read_word(child) for node in path for child in node.children)
        if not _DENYING.isdisjoint([*on_path, *dependants, *words]):
            signs["denied"] = 1.0
        if len(between) > _FAR:
            return
        for word in words:
            signs[f"between {order} {word}"] = 1.0
        # Phrases of the ontology have a dictionary's lemmas, which are not always the parser's.
        spoken = [lemmatise(node.word) for node in between]
        spoken = [word for word in spoken if word not in _GRAMMAR]
        if any(_occurs(phrase, spoken) for phrase in said):
            signs["said"] = 1.0
        if any(_occurs(phrase, spoken) for phrase in rival):
            signs["rival"] = 1.0

    def _cut_evidence(self, nearest: _Gap) -> Words:
        """The sentences from the one end's to the other's."""
        at = sorted({nearest.subject.head.sentence, nearest.object.head.sentence})
        first, last = self.tree.sentences[at[0]][0], self.tree.sentences[at[-1]][1] - 1
        start, end = self.tree[first].idx, self.tree[last].end
        return Words(self.tree.text[start:end], start, end)


def _locate(mentions: Iterable[Mention], tree: Tree) -> dict[str, list[_Place]]:
    """The places of each entity in text order; a mention outside the parsed text has none."""
    found: dict[str, list[_Place]] = defaultdict(list)
    starts = [node.idx for node in tree.nodes]
    ends = [node.end for node in tree.nodes]
    for mention in sorted(mentions, key=lambda m: (m.words.start, m.words.end, m.entities)):
        span = mention.words
        inside = tree.nodes[bisect_right(ends, span.start) : bisect_left(starts, span.end)]
        if not inside:
            continue
        own = {node.i for node in inside}
        head = [node for node in inside if node.head is node or node.head.i not in own][-1]
        for entity in dict.fromkeys(mention.entities):
            found[entity].append(_Place(inside[0].i, inside[-1].i, head, span))
    return {entity: found[entity] for entity in sorted(found)}


def _list_names(mentions: Iterable[Mention]) -> dict[str, set[frozenset[str]]]:
    """The names of each entity as sets of words."""
    found: dict[str, set[frozenset[str]]] = defaultdict(set)
    for mention in mentions:
        words = frozenset(mention.words.text.lower().replace("-", " ").split())
        for entity in mention.entities:
            found[entity].add(words)
    return found


def _walk(one: Node, other: Node) -> Iterator[Node]:
    """The tokens on the way from one to the other through the tree, both left out."""
    up, down = _climb(one), _climb(other)
    above = {node.i for node in down}
    met = -1  # nowhere, where a mended sentence has two roots
    for node in up:
        if node.i not in above:
            if node is not one:
                yield node
            continue
        if node is not one and node is not other:
            yield node
        met = node.i
        break
    for node in down[1:]:
        if node.i == met:
            break
        yield node


def _climb(node: Node) -> list[Node]:
    found = [node]
    while node.head is not node:
        node = node.head
        found.append(node)
    return found


def _occurs(phrase: Phrase, words: Sequence[str]) -> bool:
    """Whether the phrase's words occur among these in their order."""
    at = iter(words)
    return all(any(word == wanted for word in at) for wanted in phrase)
