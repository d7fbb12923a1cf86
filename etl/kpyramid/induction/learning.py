"""The two models of the reader: is a candidate a value of a property, and whose value is it.

Both add log-odds: general weights that come with the package, and what the ontology's own examples
teach by logistic regression. Without examples the former decide alone.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from kpyramid.induction.candidates import Candidate
from kpyramid.induction.features import Reading, list_subject_features
from kpyramid.induction.matching import Alignment
from kpyramid.induction.weights import (
    Matrix,
    Vocabulary,
    add_column,
    fit_weights,
    load_general,
    squash,
)
from kpyramid.induction.wording import Wording, WordMatcher, fit_kind

# What an unlabelled candidate weighs against a property where a text may state more than is given.
_INCOMPLETE = 0.3
# Log-odds taken from a property that no example shows, where others are shown: it is the rarer.
_UNSEEN = -0.7
# Parts of examples and of general weights in whose value it is. In cross-validation on train
# sentences of four ontologies of Text2KGBench .02 of F1 better than 0.5 and 0.7.
_OWN, _GENERAL = 1.0, 0.3
_CROSSED = frozenset("kind before after dep path gap opens owner n1 leads".split())


class RoleModel:
    """How likely each candidate of a text is a value of each property."""

    def __init__(
        self,
        words: WordMatcher,
        texts: Sequence[tuple[Reading, Sequence[Alignment], bool]],
    ) -> None:
        self._words = words
        rows = [role for reading, _, _ in texts for role in reading.roles]
        self._vocabulary = Vocabulary(rows, least=2)
        self._weights = np.zeros((len(self._vocabulary.columns), words.size))
        self._bias = np.zeros(words.size)
        self._trust = np.zeros(words.size)
        self._is_seen = np.zeros(words.size, dtype=bool)
        if not rows:
            return
        matrix = self._vocabulary.encode(rows)
        general = np.concatenate([self._judge(reading) for reading, _, _ in texts])
        weight = [
            1.0 if whole else _INCOMPLETE for reading, _, whole in texts for _ in reading.roles
        ]
        labels = np.zeros((len(rows), words.size))
        first = 0
        for reading, triples, _ in texts:
            for p, objects, _ in triples:
                labels[[first + o for o in objects], p] = 1
            first += len(reading.roles)
        for p in range(words.size):
            right = labels[:, p] > 0
            if right.any() and not right.all():
                importance = np.where(right, 1.0, weight)
                columns = add_column(matrix, general[:, p])
                weights, self._bias[p] = fit_weights(columns, labels[:, p], importance)
                self._weights[:, p], self._trust[p] = weights[:-1], weights[-1]
                self._is_seen[p] = True

    def predict(self, reading: Reading) -> Matrix:
        """Probabilities; shape (candidates, properties)."""
        score = self._judge(reading)
        own = self._vocabulary.encode(reading.roles) @ self._weights + self._bias
        own = own + self._trust * score
        if self._is_seen.any():
            score = score + _UNSEEN
        return squash(np.where(self._is_seen, own, score))

    def _judge(self, reading: Reading) -> Matrix:
        """The log-odds that the general weights give; shape (candidates, properties)."""
        general = load_general()
        score = self._words.measure(reading) @ general.role + general.role_bias
        return np.asarray(np.clip(score, -8, 4))


class SubjectModel:
    """Whose value a value is: the likeliest of the candidates near it."""

    def __init__(
        self,
        wordings: Sequence[Wording],
        values: Iterable[tuple[Reading, int, Candidate, Sequence[Candidate], frozenset[Candidate]]],
    ) -> None:
        self._wordings = wordings
        self._weights: dict[str, float] = {}
        self._bias = 0.0
        rows: list[list[str]] = []
        labels: list[float] = []
        for reading, p, value, subjects, right in values:
            for s in subjects:
                plain, crossed = self.describe(reading, p, s, value)
                rows.append([*plain, *(f"{p}|{name}" for name in crossed)])
                labels.append(float(s in right))
        if len(set(labels)) == 2:
            vocabulary = Vocabulary(rows, least=2)
            matrix = vocabulary.encode(rows)
            weights, self._bias = fit_weights(matrix, np.array(labels), np.ones(len(labels)))
            self._weights = dict(zip(vocabulary.columns, map(float, weights), strict=True))

    def describe(
        self, reading: Reading, p: int, s: Candidate, value: Candidate
    ) -> tuple[list[str], list[str]]:
        """The features of a pair, and those of them that are crossed with the property."""
        key = (s.first, s.last, value.first, value.last)
        if key not in reading.pairs:
            plain = list(dict.fromkeys(list_subject_features(reading, s, value)))
            names = [f for f in plain if f.partition("=")[0].partition(":")[0] in _CROSSED]
            reading.pairs[key] = (plain, names)
        plain, crossed = reading.pairs[key]
        fit = f"fit={fit_kind(s.kind, self._wordings[p].subject_kinds)}"
        return [*plain, fit], crossed

    def choose(
        self, reading: Reading, p: int, value: Candidate, subjects: Sequence[Candidate]
    ) -> tuple[Candidate, float] | None:
        """The subject of a value, with its probability."""
        general = load_general()
        best: tuple[Candidate, float] | None = None
        for s in subjects:
            plain, crossed = self.describe(reading, p, s, value)
            score = general.subject_bias + sum(general.subject.get(name, 0.0) for name in plain)
            if self._weights:
                own = self._bias + sum(self._weights.get(name, 0.0) for name in plain)
                own += sum(self._weights.get(f"{p}|{name}", 0.0) for name in crossed)
                score = _OWN * own + _GENERAL * score
            if best is None or score > best[1]:
                best = (s, score)
        return best and (best[0], float(squash(np.array(best[1]))))
