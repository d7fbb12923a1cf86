"""Candidate values checked against the schema: class, literal, evidence, individual."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, Protocol

from kpyramid.documents.blocks import Block
from kpyramid.documents.sentences import Span, cut_parts
from kpyramid.documents.values import MONTH, NUMBER_WORDS
from kpyramid.documents.words import (
    IS_A,
    POINTING,
    PRONOUNS,
    lemmatise,
    normalise_name,
    normalise_relation,
)
from kpyramid.keys import content_id
from kpyramid.numerics.chances import combine_chances
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.names import SYMMETRIC_PROPERTY, THING, XSD
from kpyramid.ontology.population.witnesses import (
    FIRMS,
    MEASURES,
    RELATIVES,
    ROLES,
    VAGUE,
    Evidence,
    find_label,
)
from kpyramid.ontology.proposals import name_class
from kpyramid.ontology.schema import OntologyClass, OntologyProperty, Schema

# The class that a name or a noun says: `University of Lark` a university, `small town` a town.

_COMPLEMENT = re.compile(
    r"\s(?:of|in|for|from|at|on|by|with|to|who|which|that|and|or|near|than|versus)\s|[(:;/]|,(?!\d)"
    r"|(?<=[^s]s)\s\w+(?:ing|ed)\s",
    re.IGNORECASE,
)
"""What follows the head of a noun phrase, as `treated with propranolol` follows a plural."""
_JOINED = re.compile(
    r"(?:(?!\s(?:of|in|for|from|at|on|by|with|to)\s).)*?\s(?:and|or)\s", re.IGNORECASE
)
"""Two nouns side by side: the first of `study and control groups` is no head."""
_ARTICLE = re.compile(r"^(?:the|a|an|this|these|his|her|its|their)\s+", re.IGNORECASE)
_COUNT = re.compile(
    r"(?:(?:about|almost|around|at least|more than|nearly|only|over|some|up to)\s+)*"
    rf"(?:\d[\d.,]*|{'|'.join(NUMBER_WORDS[1:])}|many|several|some|few)\s",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    rf"(?:\d+(?:st|nd|rd|th)?|{'|'.join(NUMBER_WORDS)}|\w+teen"
    r"|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred)(?:-\w+)?"
    r"|(?:one|two|three|a)-hundred|half|the|a|an|our|their|his|her|its|this|that|these|those)",
    re.IGNORECASE,
)
_PARTITIVE = re.compile(
    r"^(?:a\s+number|(?:(?:a|the)\s+)?(?:group|majority|minority|half|most|many|some|all|several|few|each"
    rf"|{_COUNTED.pattern}))\s+of\s+(?:the\s+|these\s+|those\s+|our\s+)?(?=\w)",
    re.IGNORECASE,
)
"""A count of parts before a noun, which does not change its kind: `eight of 160 patients`. `The
number of patients` is a number, `a number of patients` are patients."""
_WITHIN = re.compile(
    r"\s+in (?:(?:each|both|either|the|this|our|that) (?:\w+ )?"
    r"(?:group|study|trial|series|cohort|sample)s?|groups? \w+)\b",
    re.IGNORECASE,
)
"""A phrase that has meaning in its text only, as `in the study`."""


class Kinds:
    """The classes of a schema by label; labels of several classes are left out."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        by_label: dict[tuple[str, ...], set[str]] = {}
        for entry in schema.classes:
            for label in (entry.label, *entry.alt_labels):
                by_label.setdefault(_reduce(label), set()).add(entry.iri)
        self._by_label = {label: min(iris) for label, iris in by_label.items() if len(iris) == 1}
        self._labels = by_label.keys() - {()}
        self._longest = max(map(len, self._labels), default=0)

    def find(self, words: str) -> str | None:
        """The class of a noun phrase, by the longest label that ends its head."""
        core = _reduce(_COMPLEMENT.split(_PARTITIVE.sub("", words), maxsplit=1)[0])
        sizes = range(min(self._longest, len(core)), 0, -1)
        iris = (self._by_label.get(core[-size:]) for size in sizes)
        return next((iri for iri in iris if iri is not None), None)

    def find_by_name(self, name: str, entity_type: str) -> frozenset[str]:
        """The class by the head of a name, if any.

        A title of a work may contain any noun, and a firm is called by what it makes, as `Calder
        Systems`: their heads count only for kinds of works and firms. Words in small letters are a
        name only if the class takes common nouns.
        """
        iri = self.find(name)
        if iri is None or self.is_kind(name) or _JOINED.match(name):
            return frozenset()
        claims = self._schema.list_classes_for_type(entity_type)
        is_other = not any(self._schema.is_subclass(iri, claim) for claim in claims)
        head = _COMPLEMENT.split(name, maxsplit=1)[0].split()[-1].casefold()
        is_excluded = (
            (entity_type == "ORG" and name.split()[-1].casefold() in FIRMS)
            or not (is_written_as_name(name) or takes_nouns(iri, self._schema))
            or (is_other and entity_type == "WORK_OF_ART")
            or (is_other and entity_type == "ORG" and lemmatise(head) != head)
        )
        return frozenset() if is_excluded else frozenset({iri})

    def is_kind(self, words: str) -> bool:
        """Whether words are just a class's label: `the drug` names no individual.

        If only a class above takes common nouns as individuals, a label of a class below is one of
        them, as `headache` is a symptom.
        """
        label = _reduce(words)
        if label not in self._labels:
            return False
        iri = self._by_label.get(label)
        if iri is None or self._schema.class_by_iri[iri].common_nouns:
            return True
        return not takes_nouns(iri, self._schema)


def find_head(words: str) -> str:
    """The lemma of the head of a noun phrase; empty without one."""
    return next(reversed(_reduce(_COMPLEMENT.split(words, maxsplit=1)[0])), "")


def is_written_as_name(words: str) -> bool:
    """Whether the first word and the head are capitals: `Several buildings` is no name."""
    core = _COMPLEMENT.split(words, maxsplit=1)[0].split()
    return bool(core) and not core[-1][0].islower() and not words[0].islower()


def is_count(words: str) -> bool:
    """Whether words state a count: `about 9,000 students`.

    The head is a plural in small letters: `100 Mile House` and `6 mercaptopurine` are names.
    """
    if not _COUNT.match(words):
        return False
    head = _COMPLEMENT.split(words, maxsplit=1)[0].split()[-1]
    return head[0].islower() and (head == "people" or lemmatise(head) != head)


def takes_nouns(class_iri: str, schema: Schema) -> bool:
    """Whether a class, or one above it, declares that common nouns name its individuals."""
    return any(c.common_nouns for c in schema.list_above(class_iri))


@lru_cache(maxsize=1 << 16)
def _reduce(words: str) -> tuple[str, ...]:
    bare = _ARTICLE.sub("", " ".join(words.split()))
    return tuple(lemmatise(word.casefold()) for word in bare.split())


# Evidence: the places that state a value.


@dataclass(frozen=True, slots=True)
class Place:
    """A place that states a value; all offsets are into the document's text.

    `start`, `end`: the whole sentence or sentences, whose words are `text`. `subject`, `object`:
    the names of the two ends, None where they stand elsewhere. `source`: the key of the triple or
    value that was read there.
    """

    document_id: str
    chunk_id: str
    start: int
    end: int
    text: str
    subject: Span | None
    object: Span | None
    confidence: float
    producer: str
    source: str


_DOCUMENTS = 4096
"""Documents whose sentences and names are cached."""


class Sentences:
    """The sentences of documents and the rows of their tables; texts and blocks are by id."""

    def __init__(
        self, texts: Mapping[str, str], blocks: Callable[[str], Sequence[Block]] = lambda _: ()
    ) -> None:
        self.texts = texts
        self._cut = lru_cache(_DOCUMENTS)(lambda key: list(cut_parts(texts[key], blocks(key))))

    def cover(self, document_id: str, spans: Sequence[Span]) -> Span:
        """The span from the start of the first sentence touched to the end of the last.

        For a table only the last row: the rows above it are headers.
        """
        start, end = min(s.start for s in spans), max(s.end for s in spans)
        cut = self._cut(document_id)
        first, _ = cut[max(0, bisect_right(cut, start, key=lambda s: s[0].start) - 1)]
        last, is_row = cut[max(0, bisect_right(cut, end - 1, key=lambda s: s[0].start) - 1)]
        return last if is_row else Span(min(first.start, start), max(last.end, end))


def order_places(places: Iterable[Place]) -> tuple[Place, ...]:
    """The distinct places, the surest first."""
    order = sorted(places, key=lambda p: (-p.confidence, p.document_id, p.start, p.end, p.source))
    return tuple({(p.document_id, p.start, p.end): p for p in reversed(order)}.values())[::-1]


def combine_confidence(places: Iterable[Place]) -> float:
    """The probability that at least one sentence is read right, assuming independence.

    Equal sentences count once, however often they are copied or read.
    """
    return combine_chances((" ".join(p.text.split()), p.confidence) for p in places)


# Names, classes and literals that fit the schema.

GUESSED = 0.7
"""Weight of a class that only the property's domain or range suggests."""
TYPED = 0.9
"""Weight of a class that the property and the recogniser's type suggest."""
UNTYPED = "NOUN"
"""The type of what the recogniser does not take for a name of a known kind."""
_LONGEST_NAME = 150
"""Most characters of an individual's name; longer ones are sentences."""
_QUANTITY = re.compile(
    r"(?:(?:about|almost|around|at least|more than|nearly|over|some|up to)\s+)?[$€£]?\d",
    re.IGNORECASE,
)
_MEASURE = re.compile(
    r"\W*\d[\d.,]*\s*(?:%|°|(?:[nmµck]?[gmlL]|m[lL]|mmol|[nµm]?M|[mµn]?s|min|h|ha|km2|lbs?|ft|mi)\b)"
)
_PRONOUNS = (
    (
        PRONOUNS - frozenset("hers mine my our ours theirs your yours".split())  # of what is owned
    )
    | POINTING
    | frozenset("who whom which what one some others another both here there".split())
)


@dataclass(frozen=True, slots=True)
class Named:
    """An individual: an entity of the graph, or one found only by a text's reader.

    `kinds`: its classes by enough witnesses; its type is one witness only. With `is_common` it has
    a capital and is no name all the same, as `Birds`.
    """

    entity_id: str
    name: str
    type: str
    kinds: frozenset[str] = frozenset()
    is_common: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value that fits domain and range, or with `prop` None a membership, at one place.

    `class_iri`, `object_class`: the classes of its ends by the property; None for a literal.
    """

    prop: OntologyProperty | None
    class_iri: str
    subject_id: str
    object_id: str | None
    object_class: str | None
    literal: str | None
    place: Place


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a statement is no value of a property: `reason` for counting, `detail` for reading."""

    reason: str
    detail: str


def is_name(text: str) -> bool:
    """Whether words can be a name: no half of a bracket, no single letter, no pronoun."""
    return (
        len(text) <= _LONGEST_NAME
        and text.casefold() not in _PRONOUNS
        and parse_literal(text, XSD + "string") is not None
    )


def is_typed(individual: Named) -> bool:
    """Whether an individual is a name with a type; the type of other words does not count."""
    is_small = individual.name.islower() or individual.is_common
    return individual.type != UNTYPED and not is_small


def is_proper(individual: Named) -> bool:
    """Whether an individual is written as a name, of words that are not common ones."""
    return is_written_as_name(individual.name) and not individual.is_common


def check_name(individual: Named, kinds: Kinds) -> Misfit | None:
    """Why an individual's name is none, or None."""
    name = individual.name
    if not is_name(name):
        return Misfit("bad_name", f"{name!r} is no name of an individual")
    if is_count(name):
        return Misfit("bad_name", f"{name!r} says how many, it is no individual")
    if not is_typed(individual) and _MEASURE.match(name):
        return Misfit("bad_name", f"{name!r} is a measure, no individual")
    if not is_typed(individual) and kinds.is_kind(_drop_vague(name)):
        return Misfit("names_a_kind", f"{name!r} is a class's label, no individual of it")
    return None


_HEDGE = re.compile(
    r"\b(?:whether|hypothes[ie]\w*|the (?:aims?|objectives?|purpose|goal)|we (?:aim|sought|asked)"
    r"|to (?:assess|determine|evaluate|investigate|examine|explore|test|find out|see if))\b",
    re.IGNORECASE,
)


def is_hedged(place: Place) -> bool:
    """Whether a sentence asks, or states a question to answer, before its subject."""
    ends = [span.start for span in (place.subject, place.object) if span]
    before = place.text[: max(0, min(ends) - place.start)] if ends else place.text
    return place.text.rstrip("\"”' ").endswith("?") or _HEDGE.search(before) is not None


_YEARS = frozenset({XSD + "gYear", XSD + "gYearMonth", XSD + "date"})
_LAST_YEAR = 2100
_NUMBERED = re.compile(r"(?<=[^.!?\s]\s)[A-Z]\w+\.?[^\S\t\n]$|[#$€£]$")
"""A noun that makes an identifier of the number that follows: `Form` of `Form 1040`. What stands in
another cell of a table is none."""
_SEASON = rf"{MONTH}\.?|spring|summer|autumn|fall|winter|year|ad|ce|early|mid|late|circa"
_PERCENT = re.compile(r"\s?(?:%|per ?cent\b|percentage points?\b)")
_SUPERLATIVE = re.compile(r"\b(?:old|young|larg|great|high|tall|long|rich|strong|fast|earli)est\b")
_UNIQUE = frozenset("first second third last only next previous same most least".split())


def says_kind(value: str, of: OntologyClass | None) -> bool:
    """Whether the complement of a copula is a kind of the individual's class, such as a calling.

    Not `youngest son` or `first outsider`, which identify it, nor nouns of other things. For a
    class without entity types any noun may be one.
    """
    if of is None or not of.entity_types:
        return True
    core = _reduce(_COMPLEMENT.split(value, maxsplit=1)[0])
    noun = core[-1] if core else ""
    label = find_label(noun)
    is_listed = label in of.entity_types or (label is None and noun in ROLES)
    is_unique = _UNIQUE & set(core) or _SUPERLATIVE.search(value) or re.search(r"\d", value)
    return is_listed and noun not in RELATIVES and not is_unique


COPULAS = frozenset({IS_A, "become", "be", "remain"})
_SHARES = re.compile(
    r"percent|share|rate|ratio|margin|yield|growth|proportion|interest", re.IGNORECASE
)


@lru_cache(maxsize=10_000)
def states_kinds(prop: OntologyProperty) -> bool:
    """Whether a property's values are complements of copulas, such as callings and posts."""
    keys = {normalise_relation(phrase).key for phrase in (prop.label, *prop.alt_labels)}
    return prop.range == XSD + "string" and not COPULAS.isdisjoint(keys)


def _is_number_of(text: str, place: Place) -> bool:
    """Whether digits are no year: `Form 1040`, `$1815`, or one that is far off."""
    if any(int(digits) > _LAST_YEAR for digits in re.findall(r"\d{4}", text)):
        return True
    before = place.text[: place.object.start - place.start] if place.object else ""
    noun = _NUMBERED.search(before)
    return noun is not None and not re.fullmatch(_SEASON, noun[0].strip(), re.IGNORECASE)


def _is_share(text: str, place: Place) -> bool:
    """Whether a number is a percentage, by its own words or by the words after it."""
    if not any(c.isdigit() for c in text):
        return False
    after = place.text[place.object.end - place.start :] if place.object else ""
    return _PERCENT.search(text) is not None or _PERCENT.match(after) is not None


def _drop_vague(name: str) -> str:
    """A noun phrase without words that identify its noun in its own text only."""
    words = _PARTITIVE.sub("", _WITHIN.sub("", name)).split() or [name]
    while len(words) > 1 and (words[0].casefold() in VAGUE or _COUNTED.fullmatch(words[0])):
        words = words[1:]
    return " ".join(words)


def confirm(confidence: float) -> float:
    """Confidence of a statement whose ends have their classes by witnesses: half the doubt.

    A misread sentence seldom has the right kinds of things at both ends.
    """
    return 1.0 - (1.0 - confidence) / 2


def fit_class(
    individual: Named, wanted: str, schema: Schema, *, read: bool = False, guess: bool = True
) -> float | None:
    """Confidence that an individual is of a property's class; None if it is not.

    Classes by witnesses are certain. The type is one witness and the property another. An
    individual without a type takes the class of the property, as rdfs:domain and rdfs:range entail,
    if it is written as a name or the class takes common nouns. A reader (`read`) that learned this
    very property from examples is surer. Without `guess` only witnesses and type count.
    """
    if wanted == THING:
        is_measure = not is_typed(individual) and find_head(individual.name) in MEASURES
        return None if is_measure else 1.0
    if any(schema.is_subclass(kind, wanted) for kind in individual.kinds):
        return 1.0
    if not _may_become(individual.kinds, wanted, schema):
        return None
    claims = schema.list_classes_for_type(individual.type) if is_typed(individual) else ()
    if any(schema.is_subclass(known, wanted) for known in claims):
        return TYPED
    if not guess:
        return None
    if _QUANTITY.match(individual.name) and not is_written_as_name(individual.name):
        fits = takes_nouns(wanted, schema)
    elif not is_typed(individual):
        is_measure = find_head(individual.name) in MEASURES
        fits = not is_measure and (is_proper(individual) or takes_nouns(wanted, schema))
    elif claims:
        fits = any(schema.is_subclass(wanted, known) for known in claims)
    else:  # a label that the ontology has no class for
        fits = not any(c.entity_types for c in schema.list_above(wanted))
    return (TYPED if read else GUESSED) if fits else None


def note_ends(
    evidence: Evidence, ends: Sequence[tuple[str, str, str]], other: Named | str, schema: Schema
) -> None:
    """Notes the classes that a fact's properties give one end, if the other end fits.

    `ends`: each property with its class for this end, and its class or datatype for the other.
    """
    if any(_fits_end(other, wanted, schema) for _, _, wanted in ends):
        key = tuple(iri for iri, _, _ in ends)
        evidence.ends[key] = evidence.ends.get(key, frozenset()).union(here for _, here, _ in ends)


def _fits_end(end: Named | str, wanted: str, schema: Schema) -> bool:
    if wanted == THING or wanted in schema.class_by_iri:
        return isinstance(end, Named) and fit_class(end, wanted, schema) is not None
    return parse_literal(end if isinstance(end, str) else end.name, wanted) is not None


def _may_become(kinds: Iterable[str], wanted: str, schema: Schema) -> bool:
    """Whether an individual of some classes may be of a narrower one, or of one beside them.

    A name has one kind; a common noun, such as a drug, may be a treatment too.
    """
    is_noun = takes_nouns(wanted, schema)
    return all(
        schema.is_subclass(wanted, kind) or (is_noun and not schema.are_disjoint(wanted, kind))
        for kind in kinds
    )


def check_value(
    prop: OntologyProperty,
    subject: Named,
    value: Named | str,
    place: Place,
    schema: Schema,
    kinds: Kinds,
    *,
    read: bool = False,
    guess: bool = True,
    outright: bool = False,
) -> Candidate | Misfit:
    """A statement as a value of a property, in its stored direction, or why it is none.

    `value` is text if it is no entity. Without `guess` the subject's class is known. Classes of
    both ends by the property alone do not suffice, unless stated `outright`. Of two inverse
    properties the one with the smaller IRI is stored, so that a fact is one instance whichever
    states it; the ends fit both, as the two entail each other.
    """
    fault = check_name(subject, kinds)
    if fault is not None:
        return fault
    inverse = _find_inverse(prop, schema)
    stored, reverse = (inverse, prop) if inverse and inverse.iri < prop.iri else (prop, inverse)
    ends = [
        (stored.domain, reverse.range if reverse else None),
        (stored.range, reverse.domain if reverse else None),
    ]
    if stored is not prop:
        ends.reverse()
    end = _fit_end(subject, *ends[0], schema, read=read, guess=guess)
    if isinstance(end, str):
        return _refuse("domain", subject, end, schema)
    class_iri, sure = end
    place = replace(place, confidence=place.confidence * sure)
    if prop.is_datatype:
        if sure <= GUESSED:
            return Misfit("domain", f"only the property says what {subject.name} is")
        text = value if isinstance(value, str) else value.name
        if _is_share(text, place) and not _SHARES.search(f"{prop.label} {prop.comment}"):
            return Misfit("range", f"{text!r} is a share, no {prop.label}")
        if prop.range in _YEARS and _is_number_of(text, place):
            return Misfit("range", f"{text!r} numbers something else, it is no {prop.label}")
        is_role = sure < 1.0 and find_head(text) in ROLES
        of = schema.class_by_iri.get(prop.domain)
        if states_kinds(prop) and (is_role or not says_kind(text, of)):
            return Misfit("range", f"{text!r} says no kind that {prop.label} is about")
        literal = parse_literal(text, prop.range)
        if literal is None:
            return Misfit("range", f"{text!r} is no {prop.range.rpartition('#')[2]}")
        if sure == 1.0:
            place = replace(place, confidence=confirm(place.confidence))
        return Candidate(prop, class_iri, subject.entity_id, None, None, literal, place)
    if isinstance(value, str):
        return Misfit("range", f"{value!r} is a date, a number or a quantity, no individual")
    fault = check_name(value, kinds)
    if fault is not None:
        return fault
    end = _fit_end(value, *ends[1], schema, read=read)
    if isinstance(end, str):
        return _refuse("range", value, end, schema)
    if value.entity_id == subject.entity_id:
        return Misfit("same_subject_and_object", f"{subject.name} would be its own {prop.label}")
    object_class, value_sure = end
    if max(sure, value_sure) <= GUESSED and not outright:
        return Misfit("domain", f"only the property says what {subject.name} and {value.name} are")
    both = place.confidence * value_sure
    place = replace(place, confidence=confirm(both) if sure == value_sure == 1.0 else both)
    if stored is not prop:
        place = replace(place, subject=place.object, object=place.subject)
        turned = object_class, value.entity_id, subject.entity_id, class_iri
        return Candidate(stored, *turned, None, place)
    return Candidate(prop, class_iri, subject.entity_id, value.entity_id, object_class, None, place)


def _find_inverse(prop: OntologyProperty, schema: Schema) -> OntologyProperty | None:
    """The property that holds in the other direction whenever this one does."""
    if prop.inverse_of:
        return schema.property_by_iri.get(prop.inverse_of)
    return prop if SYMMETRIC_PROPERTY in schema.find_characteristics(prop.iri) else None


def _fit_end(
    individual: Named,
    wanted: str,
    also: str | None,
    schema: Schema,
    *,
    read: bool = False,
    guess: bool = True,
) -> tuple[str, float] | str:
    """The class of an end and its confidence, or the class that it does not fit.

    `wanted`: the class of the stored property, `also`: that of its inverse. The narrower one is
    taken, the first if neither is.
    """
    sure = fit_class(individual, wanted, schema, read=read, guess=guess)
    if sure is None or also is None or also == wanted:
        return wanted if sure is None else (wanted, sure)
    second = fit_class(individual, also, schema, read=read, guess=guess)
    if second is None or schema.are_disjoint(wanted, also):
        return also
    return (also if schema.is_subclass(also, wanted) else wanted), min(sure, second)


def _refuse(reason: str, individual: Named, wanted: str, schema: Schema) -> Misfit:
    detail = f"{individual.name} ({individual.type}) is no {name_class(wanted, schema)}"
    return Misfit(reason, detail)


# Entity linking: from the words of a text to the individual they name.

Row = Mapping[str, object]


class Mention(NamedTuple):
    """A mention, its place, and its entity, if any."""

    mention_id: str
    chunk_id: str
    text: str
    type: str
    start: int
    end: int
    entity_id: str | None


class Mentions(Protocol):
    """The mentions of documents, in the order of their ids."""

    def find(self, document_id: str, span: Span) -> Sequence[Mention]:
        """The mentions at exactly this place."""
        ...

    def list_document(self, document_id: str) -> Sequence[Mention]:
        """The mentions of a document."""
        ...


class Linker:
    """Links words to the graph's entities, and makes entities for other names.

    `entities`: rows of that table. `kinds`: gives the classes by a name and its type.
    """

    def __init__(
        self,
        entities: Iterable[Row],
        mentions: Mentions,
        kinds: Callable[[str, str], frozenset[str]],
    ) -> None:
        self._kinds = kinds
        self._mentions = mentions
        self.named: dict[str, Named] = {}
        self._anywhere: dict[str, tuple[str, ...]] = {}
        self._made: dict[str, tuple[Named, set[str], set[str]]] = {}
        self._list_local = lru_cache(_DOCUMENTS)(self._name_local)
        for row in entities:
            entity = str(row["entity_id"])
            name, kind = str(row["name"]), str(row["type"])
            self.named[entity] = Named(entity, name, kind, kinds(name, kind))
            for form in {normalise_name(form) for form in _list(row["surface_forms"])}:
                self._anywhere[form] = (*self._anywhere.get(form, ()), entity)

    def _name_local(self, document_id: str) -> dict[str, set[str]]:
        """The entities of a document by their names in it."""
        by_name: dict[str, set[str]] = defaultdict(set)
        for mention in self._mentions.list_document(document_id):
            if mention.entity_id is not None:
                by_name[normalise_name(mention.text)].add(mention.entity_id)
        return by_name

    def find(self, document_id: str, words: str, span: Span | None) -> Named | str:
        """The individual that words name, at a place if it is known, or why there is none.

        In this order: the entity mentioned at this place; the only one of that name in the
        document; the only one of that name anywhere; a new one, if the words are a name.
        """
        there = self._mentions.find(document_id, span) if span else ()
        known = max((m.entity_id for m in there if m.entity_id is not None), default=None)
        if known is not None:
            return self.named[known]
        key = normalise_name(words)
        for entities in (self._list_local(document_id).get(key), self._anywhere.get(key)):
            if entities and len(entities) > 1:
                return f"{len(entities)} entities are called {words!r}, none at that place"
            if entities:
                return self.named[next(iter(entities))]
        if not is_name(words):
            return f"{words!r} is no name of an individual"
        return self._make(key, " ".join(words.split()), there)

    def _make(self, key: str, name: str, there: Sequence[Mention]) -> Named:
        entity = content_id("entity", key)
        entity = content_id("entity", key, "induced") if entity in self.named else entity
        kind = next((m.type for m in there if m.type != UNTYPED), UNTYPED)
        ids = {m.mention_id for m in there}
        made, forms, mentions = self._made.get(entity, (Named(entity, name, kind), set(), set()))
        best = min(made.name, name, key=lambda n: (-len(n), n))
        kind = kind if made.type == UNTYPED else made.type
        made = Named(entity, best, kind, self._kinds(best, kind))
        self._made[entity] = made, forms | {name}, mentions | ids
        return made

    @property
    def made(self) -> dict[str, Named]:
        """The new individuals by id."""
        return {key: named for key, (named, _, _) in self._made.items()}

    def list_made(self) -> list[Row]:
        """The rows of `entities` of the new individuals."""
        return [
            {
                "entity_id": named.entity_id,
                "name": named.name,
                "type": named.type,
                "surface_forms": sorted(forms),
                "mentions": sorted(mentions),
            }
            for _, (named, forms, mentions) in sorted(self._made.items())
        ]


def _list(value: object) -> list[str]:
    assert isinstance(value, list)
    return value
