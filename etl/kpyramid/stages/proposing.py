"""From a cluster of facts to a proposal for the ontology."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

import numpy as np

from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.extraction.normal import MODALS, lemmatise
from kpyramid.induction.checking import Named, fit_class
from kpyramid.keys import content_id
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.names import THING, XSD
from kpyramid.ontology.schema import OntologyProperty, Schema
from kpyramid.settings import CompleteSettings
from kpyramid.stages.instances import majority
from kpyramid.stages.stated import NamedTriple
from kpyramid.stages.tables import Row

_EMPTY = frozenset({"be", "be a", "have", "do", "include", "make", "become"})
_IS_A = "be a"
_COMPLEMENT = re.compile(r"\s(?:of|in|for|from|at|on|by|with|to|who|which|that|and|or)\s|[,(]")
_NUMBERS = ("gYear", "date", "integer", "decimal")
"""Datatypes tried on the literals of a cluster, the narrowest first."""
_MOST = 0.8
"""Share of a cluster's literals that must parse as a datatype; the rest become rejects."""


@dataclass(frozen=True, slots=True)
class Wordings:
    """Labels and phrases of properties: the property of each, and its unit vector (n, size)."""

    properties: tuple[OntologyProperty, ...]
    vectors: Matrix


def says_something(relation: str) -> bool:
    """Whether a relation's normal form carries a meaning of its own, and states it as a fact."""
    words = relation.split()
    return (
        relation not in _EMPTY
        and words[0] not in MODALS
        and any(word.isalpha() and len(word) > 2 for word in words)
    )


def find_class_noun(fact: NamedTriple) -> str | None:
    """The noun that a fact `X is a …` files X under: `town` for `small town in Idaho`."""
    if fact.relation != _IS_A or not fact.head[:1].isupper():
        return None
    core = _COMPLEMENT.split(fact.tail, maxsplit=1)[0].split()
    noun = lemmatise(core[-1]) if core and core[-1].islower() else ""
    return noun if noun.isalpha() and len(noun) > 2 else None


def propose_property(
    support: Sequence[NamedTriple],
    label: str,
    vector: Matrix,
    weight: Mapping[str, float],
    settings: CompleteSettings,
    schema: Schema,
    wordings: Wordings,
) -> Row:
    """The row of `proposals` for one cluster, named by its medoid and its vector.

    Accepted when enough of the support agrees on domain and range together, and these say
    something: from anything to anything is for a person to decide.
    """
    domain = _find_class(Counter(fact.head_type for fact in support), schema)
    range_iri = _find_range(support, schema)
    agreeing = sum(
        fit_class(_head(fact), domain, schema) is not None and _fits_range(fact, range_iri, schema)
        for fact in support
    )
    existing = _find_alias(vector, domain, settings.alias_similarity, schema, wordings)
    says_nothing = domain == range_iri == THING
    agrees = agreeing >= settings.accept_score * len(support)
    state = "accepted" if agrees and not says_nothing else "open"
    return _make_row(
        "property",
        existing or _make_iri("property", label, schema),
        label,
        domain,
        range_iri,
        sorted({fact.phrase for fact in support}),
        support,
        weight,
        "alias" if existing else state,
    )


def propose_class(
    noun: str,
    support: Sequence[NamedTriple],
    weight: Mapping[str, float],
    settings: CompleteSettings,
    schema: Schema,
) -> Row:
    """The row of `proposals` for a noun that things are said to be; its domain is the parent."""
    parent = _find_class(Counter(fact.head_type for fact in support), schema)
    fitting = sum(fit_class(_head(fact), parent, schema) is not None for fact in support)
    existing = next((c.iri for c in schema.classes if noun in {c.label, *c.alt_labels}), None)
    state = "accepted" if fitting >= settings.accept_score * len(support) else "open"
    return _make_row(
        "class",
        existing or _make_iri("class", noun, schema),
        noun,
        parent,
        None,
        [noun],
        support,
        weight,
        "alias" if existing else state,
    )


def _make_row(
    kind: str,
    iri: str,
    label: str,
    domain: str,
    range_iri: str | None,
    phrases: list[str],
    support: Sequence[NamedTriple],
    weight: Mapping[str, float],
    state: str,
) -> Row:
    ids = sorted({fact.triple_id for fact in support})
    return {
        "proposal_id": content_id("proposal", kind, domain, label, range_iri),
        "kind": kind,
        "iri": iri,
        "label": label,
        "domain": domain,
        "range": range_iri,
        "phrases": phrases,
        "score": sum(weight[key] for key in ids) / len(ids),
        "triple_ids": ids,
        "state": state,
    }


def _find_class(types: Counter[str], schema: Schema) -> str:
    """The class that most of the typed entities have; owl:Thing when none is typed.

    Entities without a type say nothing: whether they fit is judged by `fit_class` as for seeds.
    """
    classes = Counter({t: n for t, n in types.items() if schema.class_for_type(t) is not None})
    return schema.class_for_type(majority(classes)[0]) or THING if classes else THING


def _find_range(support: Sequence[NamedTriple], schema: Schema) -> str:
    literals = [fact.tail for fact in support if fact.tail_id is None]
    if len(literals) * 2 > len(support):
        for name in _NUMBERS:
            parsed = sum(parse_literal(text, XSD + name) is not None for text in literals)
            if parsed >= _MOST * len(literals):
                return XSD + name
        return XSD + "string"
    return _find_class(Counter(fact.tail_type for fact in support if fact.tail_id), schema)


def _fits_range(fact: NamedTriple, range_iri: str, schema: Schema) -> bool:
    if range_iri.startswith(XSD):
        return parse_literal(fact.tail, range_iri) is not None
    if fact.tail_id is None:
        return False
    tail = Named(fact.tail_id, fact.tail, fact.tail_type)
    return fit_class(tail, range_iri, schema) is not None


def _head(fact: NamedTriple) -> Named:
    return Named(fact.head_id, fact.head, fact.head_type)


def index_wordings(schema: Schema, embedder: Embedder) -> Wordings:
    """The wordings of all properties of a schema, embedded."""
    pairs = [(p, phrase) for p in schema.properties for phrase in (p.label, *p.alt_labels)]
    return Wordings(
        tuple(prop for prop, _ in pairs), embedder.embed([phrase for _, phrase in pairs])
    )


def _find_alias(
    label: Matrix, domain: str, similarity: float, schema: Schema, wordings: Wordings
) -> str | None:
    """The existing property of that domain which a label is only another name for."""
    if not wordings.properties:
        return None
    fits = [schema.is_subclass(domain, prop.domain) for prop in wordings.properties]
    cosines = np.where(fits, wordings.vectors @ label, -1.0)
    best = int(cosines.argmax())
    return wordings.properties[best].iri if float(cosines[best]) >= similarity else None


def _make_iri(kind: str, label: str, schema: Schema) -> str:
    """An IRI in the schema's namespace, of the percent-encoded label: `Village`, `is_king_of`.

    One that the schema has already, for something else, gets a suffix.
    """
    words = label.casefold().split()
    name = "".join(w.capitalize() for w in words) if kind == "class" else "_".join(words)
    iri = schema.base + quote(name, safe="")
    taken = iri in schema.class_by_iri or iri in schema.property_by_iri
    return f"{iri}_proposed" if taken else iri
