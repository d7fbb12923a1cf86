"""The reader: values of a schema's properties in a text, by linear models over features."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kpyramid.extraction.syntax.tree import Tree
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
    describe_properties,
    describe_text,
    fit_kind,
    list_subject_features,
)
from kpyramid.ontology.population.kinds import split_words
from kpyramid.ontology.schema import Schema

# Linear models over named features.

Matrix = npt.NDArray[np.float64]

# The inverse of the L2 penalty; of 0.05, 0.2, 1 and 3 the best in cross-validation.
_STRENGTH = 1.0


@dataclass(frozen=True)
class General:
    """Log-odds for any ontology: of a value by `WordMatcher.measure`, of a subject by its features.

    Fitted by `benchmarks/reader_weights.py` on passages with recorded triples, on sentences of
    five public ontologies and on the examples of the project's own; features that few of them
    show are left out, so that no field's words are among them. `source` in the file says whose
    data they are.
    """

    role: Matrix
    role_bias: float
    subject: Mapping[str, float]
    subject_bias: float


@cache
def load_general() -> General:
    """The weights of `general.json`."""
    data = json.loads(Path(__file__).with_name("general.json").read_text("utf-8"))
    return General(np.array(data["role"]), data["role_bias"], data["subject"], data["subject_bias"])


def make_vectorizer(rows: int, least: int = 2) -> Any:
    """A column of ones for each feature that enough rows show; others are passed over.

    `rows`: how many there will be.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer(
        analyzer=list, binary=True, min_df=least if rows > least else 1, dtype=np.float64
    )


def fit_weights(matrix: Any, labels: Matrix, importance: Matrix | None = None) -> Any:
    """The logistic regression of labels (0 and 1, both present) on rows."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=_STRENGTH, solver="liblinear", max_iter=100, tol=1e-3)
    return model.fit(matrix, labels, sample_weight=importance)


def squash(scores: Matrix) -> Matrix:
    """Probabilities of log-odds."""
    return np.asarray(1 / (1 + np.exp(-np.clip(scores, -30, 30))))


# Alignment: the candidates that an example's triples name.

_BRACKET = re.compile(r"\s*\([^()]*\)\s*$")
_NUMBER = re.compile(r"[-+−]?[$€£¥]?([0-9][0-9,]*(?:\.[0-9]+)?)")

Alignment = tuple[int, list[int], list[int]]
"""A property's place in the schema, its value's candidates, its subject's (perhaps none)."""


class Matcher:
    """Finds examples' triples among candidates, and counts those it does not find."""

    def __init__(self, schema: Schema) -> None:
        self._places: dict[str, int] = {}
        for at, p in enumerate(schema.properties):
            for name in (p.iri, p.iri.rpartition("#")[2], p.label, *p.alt_labels):
                self._places.setdefault(fold_label(name), at)
        self.unaligned = 0
        self.unknown = 0

    def find_place(self, relation: str) -> int | None:
        """The place in the schema of the property that goes by this name."""
        return self._places.get(fold_label(relation))

    def align(self, example: Example, candidates: Sequence[CandidateSpan]) -> list[Alignment]:
        """The triples whose value is found."""
        known: dict[str, list[int]] = {}
        for at, c in enumerate(candidates):
            for key in list_keys(c):
                known.setdefault(key, []).append(at)
        found = []
        for subject, relation, value in example.triples:
            place = self.find_place(relation)
            objects = _find(value, known)
            if place is None:
                self.unknown += 1
            elif objects:
                found.append((place, objects, _find(subject, known)))
            else:
                self.unaligned += 1
        return found


class KnownValues:
    """The values that examples give for each property, each with the subjects that have it.

    In many fields a property has few values and they recur: genres, languages, parties.
    """

    def __init__(self) -> None:
        self._subjects: dict[str, dict[int, set[str]]] = {}

    def add(self, place: int, subject: str, value: str) -> None:
        """Notes a value of a property."""
        properties = self._subjects.setdefault(fold_name(value), {})
        properties.setdefault(place, set()).add(fold_name(subject))

    def __contains__(self, name: object) -> bool:
        """Whether a normalised name is a value of some property."""
        return name in self._subjects

    def list_features(self, c: CandidateSpan, but_of: Set[str] = frozenset()) -> Iterator[str]:
        """Whose value a candidate is elsewhere; `but_of`: normalised subjects that do not count."""
        for place, subjects in self._subjects.get(fold_name(c.text), {}).items():
            if others := len(subjects - but_of):
                yield f"listed={place}"
                if others > 2:
                    yield f"often={place}"


def _find(text: str, known: dict[str, list[int]]) -> list[int]:
    return next((known[form] for form in list_forms(text) if form in known), [])


def fold_label(name: str) -> str:
    """What labels agree in that differ in case, marks and the joints of words only."""
    return " ".join(split_words(name)) or name


def list_keys(c: CandidateSpan) -> list[str]:
    """The keys under which an example's value may name a candidate."""
    keys = [fold_name(c.text)]
    if c.kind in DATES:
        if date := parse_literal(c.text, XSD + "date"):
            keys.append("date:" + date)
        elif year := parse_literal(c.text, XSD + "gYear"):
            keys.append("year:" + year)
    if number := read_number(c.text):
        keys.append("number:" + number)
    return keys


def list_forms(text: str) -> list[str]:
    """The keys under which a value is looked for in a text, the surest first."""
    plain = text.strip().strip('"').replace("_", " ")
    short = _BRACKET.sub("", plain)
    forms = [fold_name(plain), fold_name(short)]
    if date := parse_literal(plain, XSD + "date"):
        forms.append("date:" + date)
        if date.endswith("-01-01"):  # how many sources write a year
            forms.append("year:" + date[:4])
    elif year := parse_literal(plain, XSD + "gYear"):
        forms.append("year:" + year)
    if number := read_number(short):
        forms.append("number:" + number)
    forms.append(fold_name(short.partition(",")[0]))  # "King of Prussia, Pennsylvania"
    return list(dict.fromkeys(form for form in forms if form))


def read_number(text: str) -> str:
    """The number that a text is, but for a unit, in plain form; empty when it is none."""
    match = _NUMBER.match(text)
    if match is None or sum(c.isdigit() for c in text) > sum(c.isdigit() for c in match[0]):
        return ""
    try:
        return f"{Decimal(match[1].replace(',', '')).normalize():f}"
    except InvalidOperation:
        return ""


# The two models: is a candidate a value of a property, and of which subject.

# What an unlabelled candidate weighs against a property where a text may state more than is given.
_INCOMPLETE = 0.3
# Log-odds taken from a property that no example shows, where others are shown: it is the rarer.
_UNSEEN = -0.7
# Parts of examples and of general weights in whose value it is. In cross-validation on train
# sentences of four ontologies of Text2KGBench .02 of F1 better than 0.5 and 0.7.
_OWN, _GENERAL = 1.0, 0.3
_CROSSED = frozenset("kind before after dep path gap opens owner n1 leads".split())


def _add_column(matrix: Any, column: Matrix) -> Any:
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
                columns = _add_column(matrix, judged[:, p])
                self._models[p] = fit_weights(columns, labels[:, p], importance)

    def predict(self, reading: TextFeatures) -> Matrix:
        """Probabilities; shape (candidates, properties)."""
        score = self._judge(reading)
        if self._models:
            matrix = self._vectorizer.transform(reading.roles)
            own = score + _UNSEEN
            for p, model in self._models.items():
                own[:, p] = model.decision_function(_add_column(matrix, score[:, p]))
            score = own
        return squash(score)

    def _judge(self, reading: TextFeatures) -> Matrix:
        """The log-odds that the general weights give; shape (candidates, properties)."""
        general = self._general
        score = self._words.measure(reading) @ general.role + general.role_bias
        return np.asarray(np.clip(score, -8, 4))


class SubjectModel:
    """The model of subjects: the likeliest of the candidates near a value."""

    def __init__(
        self,
        wordings: Sequence[Wording],
        values: Iterable[
            tuple[
                TextFeatures, int, CandidateSpan, Sequence[CandidateSpan], frozenset[CandidateSpan]
            ]
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
            for s in subjects:
                plain, crossed = self.describe(reading, p, s, value)
                rows.append([*plain, *(f"{p}|{name}" for name in crossed)])
                labels.append(float(s in right))
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
        key = (s.first, s.last, value.first, value.last)
        if key not in reading.pairs:
            plain = list(dict.fromkeys(list_subject_features(reading, s, value)))
            names = [f for f in plain if f.partition("=")[0].partition(":")[0] in _CROSSED]
            reading.pairs[key] = (plain, names)
        plain, crossed = reading.pairs[key]
        fit = f"fit={fit_kind(s.kind, self._wordings[p].subject_kinds)}"
        return [*plain, fit], crossed

    def choose(
        self, reading: TextFeatures, p: int, value: CandidateSpan, subjects: Sequence[CandidateSpan]
    ) -> tuple[CandidateSpan, float] | None:
        """The subject of a value, with its probability."""
        general = self._general
        best: tuple[CandidateSpan, float] | None = None
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


# The reader.

PRODUCER = "rules"
LIKELY = 0.5
"""The least confidence of what is taken for a fact: more likely right than wrong."""
# Below this chance of being a value, a candidate's subject is not looked for.
_FLOOR = 0.02
# Of one property, a value that is less than half as likely as the text's likeliest is not stated:
# in cross-validation on train sentences of Text2KGBench .03 of F1 better than stating them all.
_RIVAL = 0.5
_LOOK_BACK = 3
_LOOK_AHEAD = 1


@dataclass(frozen=True, slots=True)
class Statement:
    """A value with its subject, and how likely each is; `place`: of the property in the schema."""

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
    """Reads the values of a schema's properties out of parsed texts.

    Without examples it knows a property by the words of its labels and by the kinds of things its
    domain and range name; examples teach it how sentences of the field state it. Two models decide:
    which candidates are values of a property, then whose. Both are regularised logistic regressions
    beside general weights that come with the package.

    `unaligned` counts the triples of examples whose value stands nowhere in their text as a name,
    noun, number or date; `unknown` those whose relation is no property of the schema.
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

        `general`: other general weights than the package's.
        """
        general = general or load_general()
        self._schema = schema
        self._wordings = describe_properties(schema)
        self._words = WordMatcher(self._wordings, schema)
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
        self.unaligned, self.unknown = matcher.unaligned, matcher.unknown
        self._roles = RoleModel(self._words, aligned, general)
        pairs = (
            (reading, p, o, tuple(self.list_subjects(reading, o)), frozenset(golden))
            for reading, triples, _ in aligned
            for (p, o), golden in _group_subjects(triples, reading).items()
        )
        self._subjects = SubjectModel(self._wordings, pairs, general)

    def read(self, tree: Tree, least: float = LIKELY) -> tuple[Value, ...]:
        """The values that a text states with at least this confidence, in text order."""
        values = []
        statements = self.find_statements(tree)
        best: dict[int, float] = {}
        for found in statements:
            best[found.place] = max(best.get(found.place, 0.0), found.confidence)
        for found in statements:
            if found.confidence < max(least, _RIVAL * best[found.place]):
                continue
            s, o = found.subject, found.value
            start, end = _find_evidence(tree, s, o)
            values.append(
                Value(
                    self._schema.properties[found.place].iri,
                    Words(s.text, s.start, s.end),
                    Words(o.text, o.start, o.end),
                    Words(tree.text[start:end], start, end),
                    round(min(found.confidence, 1.0), 4),
                    PRODUCER,
                )
            )
        return tuple(
            sorted(values, key=lambda v: (v.subject.start, v.object.start, v.property_iri))
        )

    def find_statements(self, tree: Tree) -> list[Statement]:
        """The statements a text may make, unlikely ones too; a date or number is one value only."""
        reading = self.describe(tree)
        candidates = reading.candidates
        if not candidates:
            return []
        chances = self._roles.predict(reading)
        found = []
        for p in range(chances.shape[1]):
            taken: list[CandidateSpan] = []
            for o in np.argsort(-chances[:, p], kind="stable"):
                if chances[o, p] < _FLOOR:
                    break
                value = candidates[o]
                if any(_overlap(value, other) for other in taken):
                    continue
                taken.append(value)
                best = self._subjects.choose(reading, p, value, self.list_subjects(reading, value))
                if best is not None:
                    found.append(Statement(p, best[0], value, float(chances[o, p]), best[1]))
        return _weigh_contradicted(found)

    def describe(self, tree: Tree, but_of: Set[str] = frozenset()) -> TextFeatures:
        """A text's candidates with their features; see `KnownValues` for `but_of`."""
        reading = describe_text(tree, find_candidates(tree, self._known))
        roles = [
            [*role, *self._known.list_features(c, but_of)]
            for c, role in zip(reading.candidates, reading.roles, strict=True)
        ]
        return replace(reading, roles=roles)

    def list_subjects(self, reading: TextFeatures, value: CandidateSpan) -> list[CandidateSpan]:
        """The candidates near enough to be a value's subject; the text's first sentence is near."""
        tree = reading.tree
        at = tree[value.head].sentence
        return [
            c
            for c in reading.candidates
            if _can_be_subject(c)
            and not _overlap(c, value)
            and (
                tree[c.head].sentence == 0
                or at - _LOOK_BACK <= tree[c.head].sentence <= at + _LOOK_AHEAD
            )
        ]


def _group_subjects(
    triples: Sequence[tuple[int, Sequence[int], Sequence[int]]], reading: TextFeatures
) -> dict[tuple[int, CandidateSpan], set[CandidateSpan]]:
    """The right subjects of each value that an example gives for a property."""
    found: dict[tuple[int, CandidateSpan], set[CandidateSpan]] = {}
    for p, objects, subjects in triples:
        for o in objects:
            if subjects:
                key = (p, reading.candidates[o])
                found.setdefault(key, set()).update(reading.candidates[s] for s in subjects)
    return found


def _weigh_contradicted(found: Sequence[Statement]) -> list[Statement]:
    """Statements believed as far as what is likelier and speaks against them is not.

    A date or number says one thing of a subject; of one property between two stretches, one
    direction holds; and nothing is its own value. What is left of the less likely of two is
    never half.
    """
    uses: dict[object, list[float]] = {}
    for statement in found:
        for use in _list_uses(statement):
            uses.setdefault(use, []).append(statement.confidence)
    best = {use: max(confidences) for use, confidences in uses.items()}
    weighed = []
    for statement in found:
        if statement.subject.text.casefold() == statement.value.text.casefold():
            continue
        rival = max(best[use] for use in _list_uses(statement))
        if rival > statement.confidence:
            statement = replace(statement, value_chance=statement.value_chance * (1 - rival))
        weighed.append(statement)
    return weighed


def _list_uses(statement: Statement) -> Iterator[object]:
    """The uses of words that only one statement can have."""
    ends = (_place(statement.subject), _place(statement.value))
    yield statement.place, frozenset(ends)
    if statement.value.kind in LITERALS:
        yield ends


def _place(c: CandidateSpan) -> tuple[int, int]:
    return c.first, c.last


def _can_be_subject(c: CandidateSpan) -> bool:
    return c.kind not in {"DATE", "YEAR", "NUMBER"} and (c.is_name or c.kind in {"NOUN", "TITLE"})


def _overlap(one: CandidateSpan, other: CandidateSpan) -> bool:
    return one.first <= other.last and other.first <= one.last


def _find_evidence(tree: Tree, s: CandidateSpan, o: CandidateSpan) -> tuple[int, int]:
    """Start and end of the sentences that hold both ends."""
    low, high = sorted((tree[s.head].sentence, tree[o.head].sentence))
    start = tree[tree.sentences[low][0]].idx
    end = tree[tree.sentences[high][1] - 1].end
    return min(start, s.start, o.start), max(end, s.end, o.end)
