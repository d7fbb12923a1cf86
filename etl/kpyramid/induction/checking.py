"""From what a text states to what an ontology may hold: names, classes and literals that fit."""

import re
from dataclasses import dataclass, replace

from kpyramid.induction.evidence import Place
from kpyramid.induction.kinds import Kinds, is_count, is_written_as_name, takes_nouns
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.names import SYMMETRIC_PROPERTY, THING, XSD
from kpyramid.ontology.schema import OntologyProperty, Schema

GUESSED = 0.7
"""Weight of a class that only the property's domain or range suggests."""
UNTYPED = "NOUN"
"""The type of what the recogniser took for no name of a kind that it knows."""
_LONGEST_NAME = 150
"""Characters; a longer name of an individual is a sentence."""
_QUANTITY = re.compile(
    r"(?:(?:about|almost|around|at least|more than|nearly|over|some|up to)\s+)?[$€£]?\d",
    re.IGNORECASE,
)
_MEASURE = re.compile(
    r"\W*\d[\d.,]*\s*(?:%|°|(?:[nmµck]?[gmlL]|m[lL]|mmol|[nµm]?M|[mµn]?s|min|h|ha|km2|lbs?|ft|mi)\b)"
)
_PRONOUNS = frozenset(
    "he she it they him her them his its their this that these those who whom which what i we us "
    "you me one some others another both here there himself herself itself themselves".split()
)


@dataclass(frozen=True, slots=True)
class Named:
    """An individual: an entity of the graph, or one that only a text's reader found.

    `kinds`: classes that its name or a sentence such as `X is a city` says, besides its type's.
    """

    entity_id: str
    name: str
    type: str
    kinds: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value that fits domain and range, or with `prop` None a membership, at one place.

    `class_iri`, `object_class`: what the property makes of its ends; None for a literal.
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
    """Whether an individual can be called that: no bracket's half, no single letter, no pronoun."""
    return (
        len(text) <= _LONGEST_NAME
        and text.casefold() not in _PRONOUNS
        and parse_literal(text, XSD + "string") is not None
    )


def is_typed(individual: Named) -> bool:
    """Whether its type counts: what is all small letters is no name, whatever its type says."""
    return individual.type != UNTYPED and not individual.name.islower()


def check_name(individual: Named, kinds: Kinds) -> Misfit | None:
    """Why something is no individual by its name, or None if it may be one."""
    name = individual.name
    if not is_name(name):
        return Misfit("bad_name", f"{name!r} is no name of an individual")
    if is_count(name):
        return Misfit("bad_name", f"{name!r} says how many, it is no individual")
    if not is_typed(individual) and _MEASURE.match(name):
        return Misfit("bad_name", f"{name!r} is a measure, no individual")
    if not is_typed(individual) and kinds.is_kind(name):
        return Misfit("names_a_kind", f"{name!r} is a class's label, no individual of it")
    return None


def fit_class(
    individual: Named, wanted: str, schema: Schema, *, read: bool = False, guess: bool = True
) -> float | None:
    """How sure it is that an individual is of the class that a property wants; None: it is not.

    One whose class is wider, or that the recogniser could not place, takes the class that the
    property asks for, as rdfs:domain and rdfs:range entail. Without a type it has to be written
    as a name, unless the class says that its individuals are common nouns, or a reader (`read`)
    found it as a value of this very property. Without `guess` nothing is suggested.
    """
    if wanted == THING or any(schema.is_subclass(kind, wanted) for kind in individual.kinds):
        return 1.0
    known = schema.class_for_type(individual.type) if is_typed(individual) else None
    if known is not None and schema.is_subclass(known, wanted):
        return 1.0
    if not guess:
        return None
    guessed = 1.0 if read else GUESSED
    if _QUANTITY.match(individual.name) and not is_written_as_name(individual.name):
        return guessed if takes_nouns(wanted, schema) else None
    if not is_typed(individual):
        fits = read or is_written_as_name(individual.name) or takes_nouns(wanted, schema)
        return guessed if fits else None
    if known is None:  # a label that the ontology has no class for
        above = (schema.class_by_iri.get(iri) for iri in schema.find_ancestors(wanted))
        typed = any(found.entity_types for found in above if found)
        return None if typed else guessed
    return guessed if schema.is_subclass(wanted, known) else None


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
) -> Candidate | Misfit:
    """A statement as a value of a property, in the direction in which it is kept, or why not.

    `value` is text where no entity stands. Without `guess` the subject's class is known. Of
    two inverse properties the one with the smaller IRI is kept, so that a fact is one instance
    whichever of them words it; its ends fit both, as each of the two entails the other.
    """
    fault = check_name(subject, kinds)
    if fault is not None:
        return fault
    inverse = _find_inverse(prop, schema)
    kept, other = (inverse, prop) if inverse and inverse.iri < prop.iri else (prop, inverse)
    ends = [
        (kept.domain, other.range if other else None),
        (kept.range, other.domain if other else None),
    ]
    if kept is not prop:
        ends.reverse()
    end = _fit_end(subject, *ends[0], schema, read=read, guess=guess)
    if isinstance(end, str):
        return _refuse("domain", subject, end, schema)
    class_iri, sure = end
    place = replace(place, confidence=place.confidence * sure)
    if prop.is_datatype:
        text = value if isinstance(value, str) else value.name
        literal = parse_literal(text, prop.range)
        if literal is None:
            return Misfit("range", f"{text!r} is no {prop.range.rpartition('#')[2]}")
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
    object_class, sure = end
    place = replace(place, confidence=place.confidence * sure)
    if kept is not prop:
        place = replace(place, subject=place.object, object=place.subject)
        turned = object_class, value.entity_id, subject.entity_id, class_iri
        return Candidate(kept, *turned, None, place)
    return Candidate(prop, class_iri, subject.entity_id, value.entity_id, object_class, None, place)


def _find_inverse(prop: OntologyProperty, schema: Schema) -> OntologyProperty | None:
    """The property that holds the other way round whenever this one does."""
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
    """The class of an end and how sure it is, or the class that it is not of.

    `wanted` is what the kept property asks for, `also` what its inverse does: the narrower one is
    taken, the first if they are side by side.
    """
    sure = fit_class(individual, wanted, schema, read=read, guess=guess)
    if sure is None or also is None or also == wanted:
        return wanted if sure is None else (wanted, sure)
    second = fit_class(individual, also, schema, read=read, guess=guess)
    if second is None or schema.are_disjoint(wanted, also):
        return also
    return (also if schema.is_subclass(also, wanted) else wanted), min(sure, second)


def _refuse(reason: str, individual: Named, wanted: str, schema: Schema) -> Misfit:
    found = schema.class_by_iri.get(wanted)
    label = found.label if found else wanted
    return Misfit(reason, f"{individual.name} ({individual.type}) is no {label}")
