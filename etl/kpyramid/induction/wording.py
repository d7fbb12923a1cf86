"""What a property's own words and ends say about the texts that state it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kpyramid.extraction.syntax.kinds import find_kind_label
from kpyramid.induction.candidates import LITERALS
from kpyramid.induction.features import Reading
from kpyramid.ontology import names as n
from kpyramid.ontology.schema import OntologyProperty, Schema

Matrix = npt.NDArray[np.float64]
MEASURES = 36

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_EMPTY = frozenset(
    "a an the of by in on at to for with from or and is are was were has have be as its it".split()
)
_PLACES = frozenset(("GPE", "LOC", "FAC"))
_BY_DATATYPE = {
    **dict.fromkeys(("decimal", "double", "float"), frozenset(("NUMBER", "YEAR"))),
    **dict.fromkeys(
        ("integer", "nonNegativeInteger", "positiveInteger", "int", "long"),
        frozenset(("NUMBER", "YEAR")),
    ),
    **dict.fromkeys(("date", "gYear", "gYearMonth"), frozenset(("DATE", "YEAR"))),
}
# Class words that `find_kind_label` does not know; general English, as ontologies use them.
_KINDS = {
    "human": "PERSON",
    "people": "PERSON",
    "place": "GPE",
    "location": "GPE",
    "organisation": "ORG",
    "organization": "ORG",
    "language": "LANGUAGE",
    "year": "YEAR",
    "date": "DATE",
    "day": "DATE",
    "time": "DATE",
    "number": "NUMBER",
    "demonym": "NORP",
    "ethnicity": "NORP",
    "work": "WORK_OF_ART",
    "nationality": "NORP",
}


def split_words(label: str) -> list[str]:
    """The words of a label in small letters: "birthPlace", "birth_place" → birth, place."""
    return [word.lower() for word in _WORD.findall(label)]


@dataclass(frozen=True, slots=True)
class Wording:
    """A property's content words, in each of its phrasings, and the kinds that its ends may be.

    An empty set of kinds allows anything.
    """

    iri: str
    phrasings: tuple[frozenset[str], ...]
    subject_kinds: frozenset[str]
    object_kinds: frozenset[str]
    range_words: frozenset[str]


def describe_properties(schema: Schema) -> list[Wording]:
    """The wording of each property of the schema, in its order."""
    return [_describe(p, schema) for p in schema.properties]


def _describe(p: OntologyProperty, schema: Schema) -> Wording:
    phrasings = []
    for phrase in (p.label, *p.alt_labels):
        words = frozenset(split_words(phrase)) - _EMPTY
        phrasings.append(words or frozenset(split_words(phrase)))
    local = p.range.rpartition("#")[2]
    if p.is_datatype:
        objects = _BY_DATATYPE.get(local, frozenset())
        range_words: frozenset[str] = frozenset()
    else:
        objects = find_kinds(p.range, schema)
        range_words = _list_class_words(p.range, schema)
    if not objects and not p.is_datatype:
        label = split_words(p.label)
        kind = _find_kind(label[-1]) if label else None
        if kind in {"DATE", "YEAR", "PERSON"}:  # "birth date", "composer"
            objects = _widen(kind)
    kinds = find_kinds(p.domain, schema)
    return Wording(p.iri, tuple(dict.fromkeys(phrasings)), kinds, objects, range_words)


def find_kinds(iri: str, schema: Schema) -> frozenset[str]:
    """The kinds of names that may denote instances of a class; empty where nothing is known."""
    found = schema.class_by_iri.get(iri)
    if found is None or iri == n.THING:
        return frozenset()
    kinds: set[str] = set(found.entity_types)
    for label in (found.label, *found.alt_labels):
        words = split_words(label)
        kind = _find_kind(words[-1]) if words else None
        if kind:
            kinds |= _widen(kind)
    if not kinds:
        for parent in found.parents:
            if parent != iri and parent in schema.class_by_iri:
                kinds |= (
                    find_kinds(parent, schema) if not schema.is_subclass(parent, iri) else set()
                )
    return frozenset(kinds)


def _find_kind(word: str) -> str | None:
    return _KINDS.get(word) or find_kind_label(word)


def _widen(kind: str) -> frozenset[str]:
    if kind in _PLACES:
        return _PLACES
    if kind in {"DATE", "YEAR"}:
        return frozenset(("DATE", "YEAR"))
    return frozenset((kind,))


def _list_class_words(iri: str, schema: Schema) -> frozenset[str]:
    found = schema.class_by_iri.get(iri)
    if found is None:
        return frozenset()
    return (
        frozenset(w for label in (found.label, *found.alt_labels) for w in split_words(label))
        - _EMPTY
    )


def are_related(one: str, other: str) -> bool:
    """Whether two words share their stem: "director" and "directed", "birth" and "birthplace"."""
    if one == other:
        return True
    length = min(len(one), len(other))
    if length < 4:
        return False
    shared = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        shared += 1
    return shared >= max(4, length - 2)


def fit_kind(kind: str, kinds: frozenset[str]) -> float:
    """1 for a candidate's kind that is among the kinds, -1 for another one, 0 where it is open."""
    if not kinds or kind in {"NAME", "TITLE", "NOUN", "PART", "CODE"}:
        return 0.0
    return 1.0 if kind in kinds else -1.0


class WordMatcher:
    """How far the words around candidates are those of each property, for many at once."""

    def __init__(self, wordings: Sequence[Wording], schema: Schema) -> None:
        self._wordings = wordings
        self._is_literal = np.array([float(p.is_datatype) for p in schema.properties])
        self._is_open = np.array([float(not w.object_kinds) for w in wordings])
        phrases = [(at, phrase) for at, w in enumerate(wordings) for phrase in w.phrasings]
        self._words = [word for _, phrase in phrases for word in sorted(phrase)]
        self._share = np.zeros((len(self._words), len(phrases)))
        self._firsts: list[int] = []
        row = 0
        for column, (at, phrase) in enumerate(phrases):
            if len(self._firsts) == at:
                self._firsts.append(column)
            self._share[row : row + len(phrase), column] = 1 / max(len(phrase), 1)
            row += len(phrase)
        self._known: dict[str, Matrix] = {}

    @property
    def size(self) -> int:
        """The number of properties."""
        return len(self._wordings)

    def _match(self, lemma: str) -> Matrix:
        if lemma not in self._known:
            hits = [float(are_related(lemma, word)) for word in self._words]
            self._known[lemma] = np.array(hits)
        return self._known[lemma]

    def _measure_words(self, lemmas: frozenset[str]) -> Matrix:
        """The share of each property's words that stand among the lemmas, in its best phrasing."""
        if not lemmas:
            return np.zeros(self.size)
        hits = np.maximum.reduce([self._match(lemma) for lemma in sorted(lemmas)])
        return np.asarray(np.maximum.reduceat(hits @ self._share, self._firsts))

    def measure(self, reading: Reading) -> Matrix:
        """What wording and kinds tell; shape (candidates, properties, `MEASURES`)."""
        size = (len(reading.candidates), self.size)
        if 0 in size:
            return np.zeros((*size, MEASURES))
        near = reading.near
        path = np.array([self._measure_words(n.path) for n in near])
        window = np.array([self._measure_words(n.window) for n in near])
        own = np.array([self._measure_words(n.own) for n in near])
        sentence = np.array([self._measure_words(n.sentence) for n in near])
        fits = np.array(
            [[fit_kind(c.kind, w.object_kinds) for w in self._wordings] for c in reading.candidates]
        )
        form = np.array([n.form for n in near])
        is_name, is_noun = form[:, 4:5], form[:, 5:6]
        is_literal = np.array([[float(c.kind in LITERALS)] for c in reading.candidates])
        right, wrong = (fits > 0).astype(float), (fits < 0).astype(float)
        columns = [
            *(path, window, own, sentence, right, wrong, self._is_open, self._is_literal),
            *(
                path * right,
                window * right,
                sentence * right,
                path == 1,
                window == 1,
                sentence == 1,
            ),
            *(part - part.max(axis=1, keepdims=True) for part in (path, window, sentence)),
            *(self._is_open * part for part in (is_literal, is_name, is_noun)),
            *(self._is_literal * is_name, self._is_literal * is_literal),
            *(own * is_name, own * is_noun, path * window, path * wrong, window * wrong),
            *(form[:, k : k + 1] for k in range(form.shape[1])),
        ]
        return np.stack([np.broadcast_to(c, size).astype(float) for c in columns], axis=2)
