"""From what a text states to what an ontology may hold: names, classes and literals that fit."""

import re
from dataclasses import dataclass, replace

from kpyramid.induction.evidence import Place
from kpyramid.induction.kinds import Kinds, is_written_as_name, takes_nouns
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.names import THING, XSD
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
    if not is_typed(individual) and _MEASURE.match(name):
        return Misfit("bad_name", f"{name!r} is a measure, no individual")
    if not is_typed(individual) and kinds.is_kind(name):
        return Misfit("names_a_kind", f"{name!r} is a class's label, no individual of it")
    return None


def fit_class(
    individual: Named, wanted: str, schema: Schema, *, read: bool = False, guess: bool = True
) -> tuple[str, float] | None:
    """The class of an individual under a property's domain or range, and how sure that is.

    One whose class is wider, or that the recogniser could not place, takes the class that the
    property asks for, as rdfs:domain and rdfs:range entail. Without a type it has to be written
    as a name, unless the class says that its individuals are common nouns, or a reader (`read`)
    found it as a value of this very property. Without `guess` nothing is suggested.
    """
    if wanted == THING or any(schema.is_subclass(kind, wanted) for kind in individual.kinds):
        return wanted, 1.0
    known = schema.class_for_type(individual.type) if is_typed(individual) else None
    if known is not None and schema.is_subclass(known, wanted):
        return wanted, 1.0
    if not guess:
        return None
    guessed = 1.0 if read else GUESSED
    if _QUANTITY.match(individual.name) and not is_written_as_name(individual.name):
        return (wanted, guessed) if takes_nouns(wanted, schema) else None
    if not is_typed(individual):
        fits = read or is_written_as_name(individual.name) or takes_nouns(wanted, schema)
        return (wanted, guessed) if fits else None
    if known is None:  # a label that the ontology has no class for
        above = (schema.class_by_iri.get(iri) for iri in schema.find_ancestors(wanted))
        typed = any(found.entity_types for found in above if found)
        return None if typed else (wanted, guessed)
    return (wanted, guessed) if schema.is_subclass(wanted, known) else None


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
    whichever of them words it.
    """
    fault = check_name(subject, kinds)
    if fault is not None:
        return fault
    end = fit_class(subject, prop.domain, schema, read=read, guess=guess)
    if end is None:
        return _refuse("domain", subject, prop.domain, schema)
    class_iri = end[0]
    place = replace(place, confidence=place.confidence * end[1])
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
    other = fit_class(value, prop.range, schema, read=read)
    if other is None:
        return _refuse("range", value, prop.range, schema)
    if value.entity_id == subject.entity_id:
        return Misfit("same_subject_and_object", f"{subject.name} would be its own {prop.label}")
    place = replace(place, confidence=place.confidence * other[1])
    inverse = schema.property_by_iri.get(prop.inverse_of or "")
    if inverse is not None and inverse.iri < prop.iri:
        place = replace(place, subject=place.object, object=place.subject)
        ends = other[0], value.entity_id, subject.entity_id, class_iri
        return Candidate(inverse, *ends, None, place)
    return Candidate(prop, class_iri, subject.entity_id, value.entity_id, other[0], None, place)


def _refuse(reason: str, individual: Named, wanted: str, schema: Schema) -> Misfit:
    found = schema.class_by_iri.get(wanted)
    label = found.label if found else wanted
    return Misfit(reason, f"{individual.name} ({individual.type}) is no {label}")
