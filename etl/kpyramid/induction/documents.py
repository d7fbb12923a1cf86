"""Which pairs of entities a document states to stand in a property, from mentions that are given.

A document says a thing once in passing and means it throughout: the sentence that names both, the
title, the conclusion, and what the document is about decide together. Without examples the signs
have fixed weights; documents with known pairs teach a logistic model over all signs and the words
around them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpyramid.induction.pairs import Candidate, MentionDocument, describe_pairs, read_wording
from kpyramid.induction.types import Value
from kpyramid.ontology.schema import OntologyProperty, Schema

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
