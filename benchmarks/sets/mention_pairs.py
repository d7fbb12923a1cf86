"""Which pairs of entities a document states to stand in a property, from mentions that are given.

A document says a thing once in passing and means it throughout: the sentence that names both, the
title, the conclusion, and what the document is about decide together. Without examples the signs
have fixed weights; documents with known pairs teach a logistic model over all signs and the words
around them. Only BC5CDR is read so: a build has no given mentions.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kpyramid.documents.words import lemmatise, normalise_relation
from kpyramid.extraction.syntax.tree import Node, Tree
from kpyramid.ontology.population.examples import Value, Words
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


PRODUCER = "document"

_WEIGHTS = {
    "together": 1.0,
    "said": 1.0,
    "near": 1.0,
    "rival": -0.5,
    "denied": -0.5,
    "subject share": 2.0,
    "subject in title": 0.5,
    "object general": -0.5,
}
"""Without examples: named in one sentence and joined by the property's own words count one each;
nearness as much at most; the document's subject is what it names most, in its title first; words
of another property, a denial, and a narrower object beside it count half against. Chosen on 250
of the 500 abstracts of BC5CDR's training part; the other 250 confirm them (`benchmarks/bc5cdr.py`).
"""
_ENOUGH = 2.0
"""Two whole signs: together and said, say. The F1 is flat from 2.0 to 2.4."""

_LEAST_SEEN = 3
"""A sign that fewer examples show is no sign."""
_STRENGTH = 0.1
"""Inverse of the L2 penalty; from .03 to .3 the F1 changes by less than .003."""
_FOLDS = 5


@dataclass(frozen=True, slots=True)
class StatedPair:
    """A pair that a document states, by the entities' ids, with its value as it stands there."""

    subject: str
    object: str
    value: Value


class PairReader:
    """Reads the pairs of one property from documents, as its wording and examples teach."""

    def __init__(
        self,
        schema: Schema,
        prop: OntologyProperty,
        examples: Sequence[tuple[MentionDocument, Collection[tuple[str, str]]]] = (),
    ) -> None:
        """Learns from documents with all (subject, object) pairs that they state.

        Examples that hold no stated pair, or no other, teach nothing: the fixed weights stay.
        """
        self._prop = prop
        self._wording = read_wording(schema, prop)
        described = [describe_pairs(document, self._wording) for document, _ in examples]
        stated = [
            np.array([(c.subject, c.object) in pairs for c in found], dtype=bool)
            for found, (_, pairs) in zip(described, examples, strict=True)
        ]
        known = np.concatenate(stated) if stated else np.empty(0, dtype=bool)
        self._model = None
        if known.any() and not known.all():
            self._model = _PairModel(described, stated)

    def read(self, document: MentionDocument) -> list[StatedPair]:
        """The pairs that the document states, sorted by subject and object."""
        return [
            StatedPair(candidate.subject, candidate.object, self._make_value(candidate, confidence))
            for candidate, confidence, stated in self._judge(document)
            if stated
        ]

    def _judge(self, document: MentionDocument) -> Iterable[tuple[Candidate, float, bool]]:
        candidates = describe_pairs(document, self._wording)
        if self._model is None:
            for candidate in candidates:
                total = sum(_WEIGHTS[s] * v for s, v in candidate.signs.items() if s in _WEIGHTS)
                yield candidate, 1 / (1 + math.exp(_ENOUGH - total)), total >= _ENOUGH
        elif candidates:
            chances = self._model.estimate(candidates)
            for candidate, chance in zip(candidates, chances.tolist(), strict=True):
                yield candidate, chance, chance >= self._model.threshold

    def _make_value(self, candidate: Candidate, confidence: float) -> Value:
        return Value(
            self._prop.iri,
            candidate.subject_words,
            candidate.object_words,
            candidate.evidence,
            confidence,
            PRODUCER,
        )


class _PairModel:
    """A logistic model over signs, and the chance from which on a pair counts as stated."""

    def __init__(
        self, described: Sequence[Sequence[Candidate]], stated: Sequence[NDArray[np.bool_]]
    ) -> None:
        from sklearn.feature_extraction import DictVectorizer

        seen = Counter(sign for found in described for sign in {s for c in found for s in c.signs})
        self._signs = {sign for sign, count in seen.items() if count >= _LEAST_SEEN}
        self._vectoriser = DictVectorizer()
        rows = self._vectoriser.fit_transform([self._keep(c) for found in described for c in found])
        truth = np.concatenate(stated)
        fold = np.concatenate([np.full(len(s), i % _FOLDS) for i, s in enumerate(stated)])
        self._model = _fit(rows, truth)
        self.threshold = self._choose_threshold(rows, truth, fold)

    def _keep(self, candidate: Candidate) -> Mapping[str, float]:
        return {sign: v for sign, v in candidate.signs.items() if sign in self._signs}

    def estimate(self, candidates: Iterable[Candidate]) -> NDArray[np.float64]:
        """The chance of each candidate to be stated."""
        rows = self._vectoriser.transform([self._keep(c) for c in candidates])
        return np.asarray(self._model.predict_proba(rows)[:, 1], dtype=np.float64)

    def _choose_threshold(
        self, rows: Any, truth: NDArray[np.bool_], fold: NDArray[np.int64]
    ) -> float:
        """The chance that gives the best F1 on examples that the model judged unseen."""
        chances = np.zeros(len(truth))
        for part in range(_FOLDS):
            held = fold == part
            if held.any() and 0 < truth[~held].sum() < (~held).sum():
                chances[held] = _fit(rows[~held], truth[~held]).predict_proba(rows[held])[:, 1]
        order = np.argsort(-chances, kind="stable")
        right = np.cumsum(truth[order])
        f1 = 2 * right / (np.arange(1, len(order) + 1) + truth.sum())
        return float(chances[order][int(f1.argmax())])


def _fit(rows: Any, truth: NDArray[np.bool_]) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=_STRENGTH, max_iter=2000).fit(rows, truth)
