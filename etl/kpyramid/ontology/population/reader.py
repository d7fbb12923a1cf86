"""The reader: values of a schema's properties in a text, by linear models over features."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from kpyramid.extraction.syntax.tree import Tree
from kpyramid.numerics.moments import Array
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.names import XSD
from kpyramid.ontology.population.candidates import (
    DATES,
    LITERALS,
    CandidateSpan,
    find_candidates,
    fold_name,
)
from kpyramid.ontology.population.examples import Example, Value, Words
from kpyramid.ontology.population.features import (
    TextFeatures,
    Wording,
    WordMatcher,
    describe_text,
    fit_kind,
    list_subject_features,
)
from kpyramid.ontology.population.kinds import split_words
from kpyramid.ontology.schema import Schema

# Linear models over named features.

# The inverse of the L2 penalty; of 0.05, 0.2, 1 and 3 the best in cross-validation.
_STRENGTH = 1.0


@dataclass(frozen=True)
class General:
    """Log-odds for any ontology: of a value by `WordMatcher.measure`, of a subject by its features.

    Fitted by `benchmarks/reader_weights.py` on passages with recorded triples, on sentences of five
    public ontologies and on the project's own examples; rare features are left out, so that no
    field's words are among them. `source` in the file names the data.
    """

    role: Array
    role_bias: float
    subject: Mapping[str, float]
    subject_bias: float


@cache
def load_general() -> General:
    """The weights of `general.json`."""
    data = json.loads(Path(__file__).with_name("general.json").read_text("utf-8"))
    return General(np.array(data["role"]), data["role_bias"], data["subject"], data["subject_bias"])


def make_vectorizer(rows: int, least: int = 2) -> Any:
    """A vectorizer with a column for each feature that enough rows have.

    `rows`: their number.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer(
        analyzer=list, binary=True, min_df=least if rows > least else 1, dtype=np.float64
    )


def fit_weights(matrix: Any, labels: Array, importance: Array | None = None) -> Any:
    """The logistic regression of labels (0 and 1, both present) on rows."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=_STRENGTH, solver="liblinear", max_iter=100, tol=1e-3)
    return model.fit(matrix, labels, sample_weight=importance)


def squash(scores: Array) -> Array:
    """The probabilities of log-odds."""
    return np.asarray(1 / (1 + np.exp(-np.clip(scores, -30, 30))))


# Alignment: the candidates that an example's triples name.

_BRACKET = re.compile(r"\s*\([^()]*\)\s*$")
_NUMBER = re.compile(r"[-+−]?[$€£¥]?([0-9][0-9,]*(?:\.[0-9]+)?)")

Alignment = tuple[int, list[int], list[int]]
"""A property's index in the schema, its value's candidates, its subject's (perhaps none)."""


class Matcher:
    """Finds the triples of examples among candidates."""

    def __init__(self, schema: Schema) -> None:
        self._places: dict[str, int] = {}
        for place, p in enumerate(schema.properties):
            for name in (p.iri, p.iri.rpartition("#")[2], p.label, *p.alt_labels):
                self._places.setdefault(fold_label(name), place)

    def find_place(self, relation: str) -> int | None:
        """The index in the schema of the property with this name."""
        return self._places.get(fold_label(relation))

    def align(self, example: Example, candidates: Sequence[CandidateSpan]) -> list[Alignment]:
        """The triples whose value is among the candidates."""
        known: dict[str, list[int]] = {}
        for i, c in enumerate(candidates):
            for key in list_keys(c):
                known.setdefault(key, []).append(i)
        aligned = []
        for subject, relation, value in example.triples:
            place = self.find_place(relation)
            objects = _find(value, known)
            if place is not None and objects:
                aligned.append((place, objects, _find(subject, known)))
        return aligned


class KnownValues:
    """The examples' values of each property, each with its subjects.

    In many fields a property has few values that recur: genres, languages, parties.
    """

    def __init__(self) -> None:
        self._subjects: dict[str, dict[int, set[str]]] = {}

    def add(self, place: int, subject: str, value: str) -> None:
        """Adds a value of a property."""
        properties = self._subjects.setdefault(fold_name(value), {})
        properties.setdefault(place, set()).add(fold_name(subject))

    def __contains__(self, name: object) -> bool:
        """Whether a normalised name is a value of some property."""
        return name in self._subjects

    def list_features(self, c: CandidateSpan, but_of: Set[str] = frozenset()) -> Iterator[str]:
        """The properties of a candidate in examples, without those of the subjects `but_of`."""
        for place, subjects in self._subjects.get(fold_name(c.text), {}).items():
            if others := len(subjects - but_of):
                yield f"listed={place}"
                if others > 2:
                    yield f"often={place}"


def _find(text: str, known: dict[str, list[int]]) -> list[int]:
    return next((known[form] for form in list_forms(text) if form in known), [])


def fold_label(name: str) -> str:
    """A label without case, marks and joints of words."""
    return " ".join(split_words(name)) or name


def list_keys(c: CandidateSpan) -> list[str]:
    """The keys under which an example's value may name a candidate."""
    dates = list_dates(c.text) if c.kind in DATES else []
    number = read_number(c.text)
    return [fold_name(c.text), *dates, *([number] if number else [])]


def list_forms(text: str) -> list[str]:
    """The keys under which a value is looked up in a text, the surest first."""
    plain = text.strip().strip('"').replace("_", " ")
    short = _BRACKET.sub("", plain)
    dates = list_dates(plain)
    if dates and dates[0].endswith("-01-01"):  # how many sources write a year
        dates.append("year:" + dates[0][5:9])
    place = fold_name(short.partition(",")[0])  # "King of Prussia, Pennsylvania"
    forms = (fold_name(plain), fold_name(short), *dates, read_number(short), place)
    return list(dict.fromkeys(form for form in forms if form))


def list_dates(text: str) -> list[str]:
    """The key of a text that is a day, else of its year; empty for other texts."""
    if date := parse_literal(text, XSD + "date"):
        return ["date:" + date]
    year = parse_literal(text, XSD + "gYear")
    return ["year:" + year] if year else []


def read_number(text: str) -> str:
    """The key of a number with or without a unit; empty if it is none."""
    match = _NUMBER.match(text)
    if match is None or sum(c.isdigit() for c in text) > sum(c.isdigit() for c in match[0]):
        return ""
    return f"number:{Decimal(match[1].replace(',', '')).normalize():f}"


# The two models: is a candidate a value of a property, and of which subject.

# Weight of an unlabelled candidate where a text may state more values than the example gives.
_INCOMPLETE = 0.3
# Log-odds taken from a property that no example shows, where others are shown: it is the rarer.
_UNSEEN = -0.7
# Parts of examples and of general weights in whose value it is. In cross-validation on train
# sentences of four ontologies of Text2KGBench .02 of F1 better than 0.5 and 0.7.
_LEARNT, _GENERAL = 1.0, 0.3
_CROSSED = frozenset("kind before after dep path gap opens owner n1 leads".split())


def _add_column(matrix: Any, column: Array) -> Any:
    """A sparse matrix with one more column."""
    from scipy.sparse import csr_matrix, hstack

    return hstack([matrix, csr_matrix(column[:, None])], format="csr")


class RoleModel:
    """The model of roles: the probability that a candidate is a value of a property."""

    def __init__(
        self,
        words: WordMatcher,
        texts: Sequence[tuple[TextFeatures, Sequence[Alignment], bool]],
        general: General,
    ) -> None:
        self._words = words
        self._general = general
        self._models: dict[int, Any] = {}
        rows = [role for reading, _, _ in texts for role in reading.roles]
        if not rows:
            return
        self._vectorizer = make_vectorizer(len(rows))
        matrix = self._vectorizer.fit_transform(rows)
        judged = np.concatenate([self._judge(reading) for reading, _, _ in texts])
        sizes = [len(reading.roles) for reading, _, _ in texts]
        weight = np.repeat([1.0 if whole else _INCOMPLETE for _, _, whole in texts], sizes)
        labels = np.zeros((len(rows), words.size))
        for first, (_, triples, _) in zip(np.cumsum([0, *sizes]), texts, strict=False):
            for p, objects, _ in triples:
                labels[first + np.array(objects), p] = 1
        for p in range(words.size):
            right = labels[:, p] > 0
            if right.any() and not right.all():
                importance = np.where(right, 1.0, weight)
                columns = _add_column(matrix, judged[:, p])
                self._models[p] = fit_weights(columns, labels[:, p], importance)

    def predict(self, reading: TextFeatures) -> Array:
        """Probabilities; shape (candidates, properties)."""
        score = self._judge(reading)
        if self._models:
            matrix = self._vectorizer.transform(reading.roles)
            learnt = score + _UNSEEN
            for p, model in self._models.items():
                learnt[:, p] = model.decision_function(_add_column(matrix, score[:, p]))
            score = learnt
        return squash(score)

    def _judge(self, reading: TextFeatures) -> Array:
        """The log-odds that the general weights give; shape (candidates, properties)."""
        general = self._general
        score = self._words.measure(reading) @ general.role + general.role_bias
        return np.asarray(np.clip(score, -8, 4))


class SubjectModel:
    """The model of subjects: the likeliest candidate near a value."""

    def __init__(
        self,
        wordings: Sequence[Wording],
        values: Iterable[
            tuple[TextFeatures, int, CandidateSpan, Sequence[CandidateSpan], Set[CandidateSpan]]
        ],
        general: General | None = None,
    ) -> None:
        self._wordings = wordings
        self._general = general or load_general()
        self._weights: dict[str, float] = {}
        self._bias = 0.0
        rows: list[list[str]] = []
        labels: list[float] = []
        for reading, p, value, subjects, right in values:
            described = (self.describe(reading, p, s, value) for s in subjects)
            rows += [[*plain, *crossed] for plain, crossed in described]
            labels += [float(s in right) for s in subjects]
        if len(set(labels)) == 2:
            vectorizer = make_vectorizer(len(rows))
            model = fit_weights(vectorizer.fit_transform(rows), np.array(labels))
            names = vectorizer.get_feature_names_out()
            self._weights = dict(zip(names, map(float, model.coef_[0]), strict=True))
            self._bias = float(model.intercept_[0])

    def describe(
        self, reading: TextFeatures, p: int, s: CandidateSpan, value: CandidateSpan
    ) -> tuple[list[str], list[str]]:
        """The features of a pair, and those of them that are crossed with the property."""
        key = (*_place(s), *_place(value))
        if key not in reading.pairs:
            plain = list(dict.fromkeys(list_subject_features(reading, s, value)))
            names = [f for f in plain if f.partition("=")[0].partition(":")[0] in _CROSSED]
            reading.pairs[key] = (plain, names)
        plain, crossed = reading.pairs[key]
        fit = f"fit={fit_kind(s.kind, self._wordings[p].subject_kinds)}"
        return [*plain, fit], [f"{p}|{name}" for name in crossed]

    def choose(
        self, reading: TextFeatures, p: int, value: CandidateSpan, subjects: Sequence[CandidateSpan]
    ) -> tuple[CandidateSpan, float] | None:
        """The subject of a value, with its probability; None without candidates."""
        general = self._general
        scored = []
        for s in subjects:
            plain, crossed = self.describe(reading, p, s, value)
            score = general.subject_bias + sum(general.subject.get(name, 0.0) for name in plain)
            if self._weights:
                learnt = sum(self._weights.get(name, 0.0) for name in (*plain, *crossed))
                score = _LEARNT * (self._bias + learnt) + _GENERAL * score
            scored.append((s, score))
        best = max(scored, key=itemgetter(1), default=None)  # the first of equal ones
        return best and (best[0], float(squash(np.array(best[1]))))


# The reader.

PRODUCER = "rules"
LIKELY = 0.5
"""Least confidence of a fact: more likely right than wrong."""
# Below this chance of being a value, a candidate's subject is not looked for.
_FLOOR = 0.02
# Of one property, a value that is less than half as likely as the text's likeliest is not stated:
# in cross-validation on train sentences of Text2KGBench .03 of F1 better than stating them all.
_RIVAL = 0.5
_LOOK_BACK = 3
_LOOK_AHEAD = 1


@dataclass(frozen=True, slots=True)
class Statement:
    """A value with its subject, and their probabilities; `place`: index of the property."""

    place: int
    subject: CandidateSpan
    value: CandidateSpan
    value_chance: float
    subject_chance: float

    @property
    def confidence(self) -> float:
        """The probability that the text states this."""
        return float(self.value_chance * self.subject_chance**0.5)


class Reader:
    """Reads the values of a schema's properties from parsed texts.

    Without examples it knows a property by the words of its labels and the kinds of its domain and
    range; examples teach it how sentences of the field state it. Two models decide: which
    candidates are values of a property, then whose. Both are regularised logistic regressions
    beside general weights that come with the package.
    """

    def __init__(
        self,
        schema: Schema,
        examples: Sequence[Example] = (),
        trees: Sequence[Tree] = (),
        *,
        general: General | None = None,
    ) -> None:
        """Learns from examples; `trees` are the parses of their texts, in the same order.

        `general`: weights that replace the package's.
        """
        general = general or load_general()
        self._schema = schema
        words = WordMatcher(schema)
        matcher = Matcher(schema)
        self._known = KnownValues()
        for example in examples:
            for subject, relation, value in example.triples:
                if (place := matcher.find_place(relation)) is not None:
                    self._known.add(place, subject, value)
        aligned = []
        for example, tree in zip(examples, trees, strict=True):
            subjects = frozenset(fold_name(subject) for subject, _, _ in example.triples)
            reading = self.describe(tree, subjects)
            triples = matcher.align(example, reading.candidates)
            aligned.append((reading, triples, example.is_complete))
        self._roles = RoleModel(words, aligned, general)
        pairs = (
            (reading, p, o, self.list_subjects(reading, o), golden)
            for reading, triples, _ in aligned
            for (p, o), golden in _group_subjects(triples, reading).items()
        )
        self._subjects = SubjectModel(words.wordings, pairs, general)

    def read(self, tree: Tree, least: float = LIKELY) -> tuple[Value, ...]:
        """The values that a text states with at least this confidence, in text order."""
        statements = self.find_statements(tree)
        best: dict[int, float] = {}
        for statement in statements:
            best[statement.place] = max(best.get(statement.place, 0.0), statement.confidence)
        values = [
            Value(
                self._schema.properties[statement.place].iri,
                Words(statement.subject.text, statement.subject.start, statement.subject.end),
                Words(statement.value.text, statement.value.start, statement.value.end),
                _find_evidence(tree, statement.subject, statement.value),
                round(min(statement.confidence, 1.0), 4),
                PRODUCER,
            )
            for statement in statements
            if statement.confidence >= max(least, _RIVAL * best[statement.place])
        ]
        order = sorted(values, key=lambda v: (v.subject.start, v.object.start, v.property_iri))
        return tuple(order)

    def find_statements(self, tree: Tree) -> list[Statement]:
        """All candidate statements of a text; a date or number is a value of one subject only."""
        reading = self.describe(tree)
        if not reading.candidates:
            return []
        statements = []
        for p, chances in enumerate(self._roles.predict(reading).T):
            taken: list[CandidateSpan] = []
            for o in np.argsort(-chances, kind="stable")[: np.sum(chances >= _FLOOR)]:
                value = reading.candidates[o]
                if any(_overlap(value, earlier) for earlier in taken):
                    continue
                taken.append(value)
                best = self._subjects.choose(reading, p, value, self.list_subjects(reading, value))
                if best is not None:
                    statements.append(Statement(p, best[0], value, float(chances[o]), best[1]))
        return _weigh_contradicted(statements)

    def describe(self, tree: Tree, but_of: Set[str] = frozenset()) -> TextFeatures:
        """A text's candidates with their features; see `KnownValues` for `but_of`."""
        reading = describe_text(tree, find_candidates(tree, self._known))
        roles = [
            [*role, *self._known.list_features(c, but_of)]
            for c, role in zip(reading.candidates, reading.roles, strict=True)
        ]
        return replace(reading, roles=roles)

    def list_subjects(self, reading: TextFeatures, value: CandidateSpan) -> list[CandidateSpan]:
        """The candidates near a value, or in the first sentence, that may be its subject."""
        tree = reading.tree
        sentence = tree[value.head].sentence
        near = {0, *range(sentence - _LOOK_BACK, sentence + _LOOK_AHEAD + 1)}
        return [
            c
            for c in reading.candidates
            if c.kind not in {"DATE", "YEAR", "NUMBER"}
            and (c.is_name or c.kind in {"NOUN", "TITLE"})
            and not _overlap(c, value)
            and tree[c.head].sentence in near
        ]


def _group_subjects(
    triples: Sequence[Alignment], reading: TextFeatures
) -> dict[tuple[int, CandidateSpan], set[CandidateSpan]]:
    """The right subjects of each value that an example gives for a property."""
    golden: dict[tuple[int, CandidateSpan], set[CandidateSpan]] = {}
    for p, objects, subjects in triples:
        for o in objects if subjects else ():
            right = golden.setdefault((p, reading.candidates[o]), set())
            right.update(reading.candidates[s] for s in subjects)
    return golden


def _weigh_contradicted(statements: Sequence[Statement]) -> list[Statement]:
    """The statements, each weighed down by the likeliest one that contradicts it.

    A date or number has one role for a subject; of one property between two stretches, one
    direction holds; and nothing is its own value. The less likely of two ends below one half.
    """
    uses: dict[object, list[float]] = {}
    for statement in statements:
        for use in _list_uses(statement):
            uses.setdefault(use, []).append(statement.confidence)
    best = {use: max(confidences) for use, confidences in uses.items()}
    weighed = []
    for statement in statements:
        if statement.subject.text.casefold() == statement.value.text.casefold():
            continue
        rival = max(best[use] for use in _list_uses(statement))
        if rival > statement.confidence:
            statement = replace(statement, value_chance=statement.value_chance * (1 - rival))
        weighed.append(statement)
    return weighed


def _list_uses(statement: Statement) -> Iterator[object]:
    """The keys that only one statement can have."""
    ends = (_place(statement.subject), _place(statement.value))
    yield statement.place, frozenset(ends)
    if statement.value.kind in LITERALS:
        yield ends


def _place(c: CandidateSpan) -> tuple[int, int]:
    return c.first, c.last


def _overlap(first: CandidateSpan, second: CandidateSpan) -> bool:
    return first.first <= second.last and second.first <= first.last


def _find_evidence(tree: Tree, s: CandidateSpan, o: CandidateSpan) -> Words:
    """The stretch of sentences with both ends."""
    low, high = sorted((tree[s.head].sentence, tree[o.head].sentence))
    start = min(tree[tree.sentences[low][0]].idx, s.start, o.start)
    end = max(tree[tree.sentences[high][1] - 1].end, s.end, o.end)
    return Words(tree.text[start:end], start, end)
