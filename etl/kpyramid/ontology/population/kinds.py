"""The kinds of names, in the recogniser's labels, that instances of a class have."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace

from kpyramid.documents.words import ARTICLES, AUXILIARIES, lemmatise, pick_table
from kpyramid.extraction.syntax.kinds import LABEL_BY_NOUN, PERSON_NOUNS, find_kind_label
from kpyramid.extraction.syntax.tree import PLACES
from kpyramid.ontology import names as n
from kpyramid.ontology.population.checking import find_head
from kpyramid.ontology.population.witnesses import ROLES, WORDS
from kpyramid.ontology.schema import OntologyClass, Schema
from kpyramid.ontology.turtle import walk

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_KINDS = {word: kind for kind, words in pick_table(WORDS, "kinds").items() for word in words}
_ANYBODY = frozenset("somebody someone anybody anyone".split())
_SOFTWARE = frozenset("software program application app".split())
_PARTITIVES = frozenset("part kind type sort piece form group set class category".split())
"""Nouns whose complement with "of" says what something is: a part of a company."""
_BEHIND_LABEL = re.compile(r"[(:;/]|\s[-–]\s")
_CLAUSES = AUXILIARIES | frozenset("what whatever how".split())
"""Words of definitions that begin with a clause: what one attends."""
_END_OF_GENUS = re.compile(
    r"[,.;:()]|\s(?:that|which|who|whose|whom|where|when|in|for|from|at|on|by|with|to|and|or"
    r"|\w+ed|\w+ing)\b",
    re.IGNORECASE,
)
"""End of the noun phrase at the beginning of a definition."""


def split_words(label: str) -> list[str]:
    """The words of a label in small letters: "birthPlace", "birth_place" → birth, place."""
    return [word.lower() for word in _WORD.findall(label)]


def find_kinds(iri: str, schema: Schema) -> frozenset[str]:
    """The kinds of names that may denote instances of a class; empty if unknown."""
    kinds: set[str] = set()

    def climb(iri: str) -> Iterable[str]:
        c = schema.class_by_iri.get(iri)
        if c is None or iri == n.THING:
            return ()
        named = filter(None, map(find_kind, (c.label, *c.alt_labels)))
        stated = {*c.entity_types}.union(*map(widen_kind, named))
        kinds.update(stated)
        return () if stated else c.parents

    walk([iri], climb)
    return frozenset(kinds)


def find_kind(label: str) -> str | None:
    """The kind of names by the last word of a label."""
    words = split_words(label)
    return (_KINDS.get(words[-1]) or find_kind_label(words[-1])) if words else None


def widen_kind(kind: str) -> frozenset[str]:
    """The kinds that a recogniser confuses with one: places, and dates."""
    if kind in PLACES:
        return PLACES
    if kind in {"DATE", "YEAR"}:
        return frozenset(("DATE", "YEAR"))
    return frozenset((kind,))


def infer_entity_types(
    schema: Schema, find_senses: Callable[[str], str]
) -> tuple[Schema, dict[str, str]]:
    """The schema with entity types for classes that state none, and the reasons by IRI.

    Classes with types above or below are enough. Else the heads of labels and of definitions
    decide: first nouns listed by their kinds, then nouns that WordNet has for persons only, as it
    knows too many senses of others. `find_senses` gives a letter for each of the first senses of a
    noun, `p` for a person.
    """
    below = _index_below(schema)
    typed = _find_typed(schema, below)
    stated = [c.iri for c in schema.classes if c.entity_types]
    typed.update(*map(schema.find_ancestors, stated))
    inferred: list[OntologyClass] = []
    reasons: dict[str, str] = {}
    tops = (c.iri for c in schema.classes if not {*c.parents} & schema.class_by_iri.keys())
    for iri in dict.fromkeys((*walk(tops, below.__getitem__), *schema.class_by_iri)):
        entry = schema.class_by_iri[iri]
        types, reason = ((), "") if iri in typed else _infer(entry, find_senses)
        if types:
            typed.update(walk([iri], below.__getitem__))
            inferred.append(replace(entry, entity_types=types))
            reasons[iri] = f"{', '.join(types)}, by {reason}"
    return schema.extend(inferred), reasons


def _index_below(schema: Schema) -> defaultdict[str, list[str]]:
    """The direct subclasses of each class."""
    below: defaultdict[str, list[str]] = defaultdict(list)
    for entry in schema.classes:
        for parent in entry.parents:
            below[parent].append(entry.iri)
    return below


def _find_typed(schema: Schema, below: defaultdict[str, list[str]]) -> set[str]:
    """The classes with entity types, and those below them."""
    stated = (c.iri for c in schema.classes if c.entity_types or c.common_nouns)
    return {*walk(stated, below.__getitem__)}


def _infer(entry: OntologyClass, find_senses: Callable[[str], str]) -> tuple[tuple[str, ...], str]:
    labels = [(_find_label_head(label), label) for label in (entry.label, *entry.alt_labels)]
    for noun, label in labels:
        types = ("ORG", "PERSON") if noun in ROLES else _find_listed(noun)
        if types:
            return types, f"“{noun}” in “{label}”"
    if (genus := find_genus(entry.comment)) and (types := _find_listed(genus)):
        return types, f"“{genus}” in its definition"
    for noun, label in labels:
        if {*find_senses(noun)} == {"p"}:
            return ("PERSON",), f"“{noun}” in “{label}”, a person in WordNet"
    return (), ""


def _find_label_head(label: str) -> str:
    """The head noun of a label, before its complement: the power of an attorney."""
    words = split_words(_BEHIND_LABEL.split(label, maxsplit=1)[0])
    return find_head(" ".join(words)) if words else ""


def find_genus(definition: str) -> str | None:
    """The head noun of a definition: `a company that delivers goods`."""
    phrases = _END_OF_GENUS.split(definition.strip(), maxsplit=1)[0].split(" of ")
    for phrase in phrases:
        words = [word for word in split_words(phrase) if word not in ARTICLES]
        if not _CLAUSES.isdisjoint(words):
            return None
        if words and lemmatise(words[-1]) not in _PARTITIVES:
            return lemmatise(words[-1])
    return None


def _find_listed(noun: str) -> tuple[str, ...]:
    if noun in _ANYBODY or noun in PERSON_NOUNS:
        return ("PERSON",)
    if noun in _SOFTWARE:
        return ("PRODUCT",)
    kind = LABEL_BY_NOUN.get(noun) or _KINDS.get(noun)
    return tuple(sorted(widen_kind(kind))) if kind and kind not in _NO_NAMES else ()


_NO_NAMES = frozenset(("DATE", "YEAR", "NUMBER"))
"""Kinds of values, which have no instances."""


def list_blind(schema: Schema) -> tuple[list[str], list[str]]:
    """Labels of the classes and properties that hardly any text will fill.

    A class without entity types gets instances only from names that end in its label, and from
    sentences that state it; a property between such classes gets no value.
    """
    seen = _find_typed(schema, _index_below(schema)) | {n.THING}
    classes = [c.label for c in schema.classes if c.iri not in seen]
    properties = [
        p.label
        for p in schema.properties
        if p.domain not in seen and (p.is_datatype or p.range not in seen)
    ]
    return classes, properties
