"""From a cluster of facts to a proposal for the ontology."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from kpyramid.embeddings.port import Embedder
from kpyramid.extraction.normal import lemmatise
from kpyramid.keys import content_id
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.names import THING, XSD
from kpyramid.ontology.schema import Schema
from kpyramid.settings import CompleteSettings
from kpyramid.stages.instances import Fact, majority
from kpyramid.stages.tables import Row

_EMPTY = frozenset({"be", "be a", "have", "do", "include", "make", "become"})
_IS_A = "be a"
_COMPLEMENT = re.compile(r"\s(?:of|in|for|from|at|on|by|with|to|who|which|that|and|or)\s|[,(]")
_NUMBERS = ("gYear", "date", "integer", "decimal")
"""Datatypes tried on the literals of a cluster, the narrowest first."""
_MOST = 0.8
"""Share of a cluster's literals that must parse as a datatype; the rest become rejects."""


def says_something(relation: str) -> bool:
    """Whether a relation's normal form carries a meaning of its own."""
    return relation not in _EMPTY and any(
        word.isalpha() and len(word) > 2 for word in relation.split()
    )


def abstract_phrase(fact: Fact, schema: Schema) -> str:
    """`class relation`: the phrase with its subject abstracted to its type."""
    class_iri = schema.class_for_type(fact.head_type)
    label = schema.class_by_iri[class_iri].label if class_iri else "thing"
    return f"{label} {fact.phrase}"


def find_class_noun(fact: Fact) -> str | None:
    """The noun that a fact `X is a …` files X under: `town` for `small town in Idaho`."""
    if fact.relation != _IS_A or not fact.head[:1].isupper():
        return None
    core = _COMPLEMENT.split(fact.tail, maxsplit=1)[0].split()
    noun = lemmatise(core[-1]) if core and core[-1].islower() else ""
    return noun if noun.isalpha() and len(noun) > 2 else None


def propose_property(
    support: Sequence[Fact],
    medoid: Sequence[Fact],
    weight: Mapping[str, float],
    settings: CompleteSettings,
    schema: Schema,
    embedder: Embedder,
) -> Row:
    """The row of `proposals` for one cluster; `medoid` are the facts of its medoid phrase.

    Accepted when enough of the support agrees on domain and range together, and these say
    something: from anything to anything is for a person to decide.
    """
    domain, _ = majority(Counter(_class_of(fact.head_type, schema) for fact in support))
    range_iri = _find_range(support, schema)
    agreeing = sum(
        _class_of(fact.head_type, schema) == domain and _fits_range(fact, range_iri, schema)
        for fact in support
    )
    label = medoid[0].phrase
    existing = _find_alias(label, domain, settings.alias_similarity, schema, embedder)
    says_nothing = domain == range_iri == THING
    agrees = agreeing >= settings.accept_score * len(support)
    state = "accepted" if agrees and not says_nothing else "open"
    return _make_row(
        "property",
        existing or _make_iri(label, schema),
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
    support: Sequence[Fact],
    weight: Mapping[str, float],
    settings: CompleteSettings,
    schema: Schema,
) -> Row:
    """The row of `proposals` for a noun that things are said to be; its domain is the parent."""
    parent, share = majority(Counter(_class_of(fact.head_type, schema) for fact in support))
    existing = next((c.iri for c in schema.classes if noun in {c.label, *c.alt_labels}), None)
    state = "accepted" if share >= settings.accept_score else "open"
    return _make_row(
        "class",
        existing or _make_iri(noun, schema),
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
    support: Sequence[Fact],
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


def _class_of(entity_type: str, schema: Schema) -> str:
    return schema.class_for_type(entity_type) or THING


def _find_range(support: Sequence[Fact], schema: Schema) -> str:
    literals = [fact.tail for fact in support if fact.tail_id is None]
    if len(literals) * 2 > len(support):
        for name in _NUMBERS:
            parsed = sum(parse_literal(text, XSD + name) is not None for text in literals)
            if parsed >= _MOST * len(literals):
                return XSD + name
        return XSD + "string"
    tails = Counter(_class_of(fact.tail_type, schema) for fact in support if fact.tail_id)
    return majority(tails)[0]


def _fits_range(fact: Fact, range_iri: str, schema: Schema) -> bool:
    if range_iri.startswith(XSD):
        return parse_literal(fact.tail, range_iri) is not None
    return fact.tail_id is not None and schema.is_subclass(
        _class_of(fact.tail_type, schema), range_iri
    )


def _find_alias(
    label: str, domain: str, similarity: float, schema: Schema, embedder: Embedder
) -> str | None:
    """The existing property that a label is only another name for, by cosine of the phrases."""
    near = [p for p in schema.properties if schema.is_subclass(domain, p.domain)]
    pairs = [(p.iri, phrase) for p in near for phrase in (p.label, *p.alt_labels)]
    if not pairs:
        return None
    vectors = embedder.embed([label, *(phrase for _, phrase in pairs)])
    cosines = vectors[1:] @ vectors[0]
    best = int(cosines.argmax())
    return pairs[best][0] if float(cosines[best]) >= similarity else None


def _make_iri(label: str, schema: Schema) -> str:
    """An IRI in the schema's namespace, made of the percent-encoded words of the label."""
    return schema.base + quote("_".join(label.casefold().split()), safe="")
