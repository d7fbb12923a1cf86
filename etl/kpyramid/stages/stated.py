"""Facts of the graph as candidates for the ontology: which property a phrase states, of whom."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa

from kpyramid.contracts import map_column
from kpyramid.extraction.normal import normalise_relation
from kpyramid.extraction.text.sentences import Span
from kpyramid.induction.checking import Candidate, Misfit, Named, check_name, check_value
from kpyramid.induction.evidence import Place, order_places
from kpyramid.induction.kinds import Kinds, is_written_as_name, takes_nouns
from kpyramid.ontology.schema import OntologyProperty, Schema
from kpyramid.stages.instances import Places
from kpyramid.stages.tables import Row, make_reject

_ARTICLES = re.compile(r"\b(?:a|an)\s+")
_FIRST_OF = re.compile(r"^(?P<noun>[^,(]{2,60}?\s(?:of|in|on|at))\s+(?P<rest>\S.*)$", re.DOTALL)
"""`revenue of 4.2 billion euros`: what a light verb such as `reported` leaves to its object."""

IS_A = "be a"
"""The normal form of what files a thing under a kind."""
_COPULAS = frozenset({IS_A, "become", "be", "remain"})

Find = Callable[[str, str, Span | None], Named | str]
"""The individual that words of a document name, at a place if it is known, or why there is none."""


@dataclass(frozen=True, slots=True)
class NamedTriple:
    """A triple with its names looked up; `relation` is the normal form of its phrase.

    `places`: where it is stated, the surest first.
    """

    triple_id: str
    head_id: str
    head: str
    head_type: str
    phrase: str
    relation: str
    tail_id: str | None
    tail: str
    tail_type: str
    confidence: float
    places: tuple[Place, ...]


def list_facts(
    places: Places,
    claims: pa.Table,
    raw_triples: pa.Table,
    entities: pa.Table,
    relations: pa.Table,
    triples: pa.Table,
) -> list[NamedTriple]:
    """The triples in words, each with its evidence, in the order of the table."""
    wanted = ["entity_id", "name", "type"]
    entity = {row["entity_id"]: row for row in entities.select(wanted).to_pylist()}
    phrase = map_column(relations, "relation_id", "name")
    spans = map_column(claims, "claim_id", "spans")
    raw = {row["raw_triple_id"]: row for row in raw_triples.to_pylist()}
    form = {name: normalise_relation(name).key for name in set(phrase.values())}
    facts = []
    for row in triples.to_pylist():
        head, tail = entity[row["head_id"]], entity.get(row["tail_id"])
        stated = (raw[key] for key in row["raw_triple_ids"])
        facts.append(
            NamedTriple(
                triple_id=row["triple_id"],
                head_id=row["head_id"],
                head=head["name"],
                head_type=head["type"],
                phrase=phrase[row["relation_id"]],
                relation=form[phrase[row["relation_id"]]],
                tail_id=row["tail_id"],
                tail=tail["name"] if tail else row["literal"],
                tail_type=tail["type"] if tail else "LITERAL",
                confidence=row["confidence"],
                places=order_places(
                    _place(r, spans[r["claim_id"]], row["triple_id"], places) for r in stated
                ),
            )
        )
    return facts


def _place(
    raw: Mapping[str, object], claim: list[dict[str, int]], triple_id: str, places: Places
) -> Place:
    """The sentences of a raw triple's words; of its claim where its words stand nowhere."""
    parts = {part: _read_span(raw[f"{part}_span"]) for part in ("head", "relation", "tail")}
    found = [span for span in parts.values() if span] or [
        Span(span["start"], span["end"]) for span in claim[:1]
    ]
    return places.make(
        str(raw["chunk_id"]),
        found,
        (parts["head"], parts["tail"]),
        float(str(raw["confidence"])),
        str(raw["producer"]),
        triple_id,
    )


def _read_span(span: object) -> Span | None:
    return Span(span["start"], span["end"]) if isinstance(span, dict) else None


def index_phrases(properties: Iterable[OntologyProperty]) -> dict[str, list[OntologyProperty]]:
    """The properties that a relation's normal form may state; its articles may be left out."""
    index: dict[str, dict[str, OntologyProperty]] = defaultdict(dict)
    for prop in properties:
        for phrase in (prop.label, *prop.alt_labels):
            for wording in {phrase, _drop_articles(phrase)}:
                index[normalise_relation(wording).key][prop.iri] = prop
    return {key: [found[iri] for iri in sorted(found)] for key, found in index.items()}


def _drop_articles(phrase: str) -> str:
    return _ARTICLES.sub("", phrase)


def read_facts(
    stage: str,
    facts: Iterable[NamedTriple],
    named: Mapping[str, Named],
    index: Mapping[str, Sequence[OntologyProperty]],
    schema: Schema,
    kinds: Kinds,
    find: Find | None = None,
    kind_of: Mapping[str, str] = MappingProxyType({}),
) -> tuple[list[Candidate], list[Row]]:
    """The values that facts state, place by place, and a reject for each fact that fits nowhere.

    `index`: the properties that a relation's normal form may state, as of `index_phrases`. A fact
    whose phrase names none is no reject: the graph is its place; nor is one that says a class:
    `kind_of` has these, by triple. With `find` the first noun of a tail may be a part of the
    phrase, as in `reported | revenue of 4 million`. That something is a thing does not say that it
    is a person, though the property tells it of persons only: a copula suggests no class.
    """
    candidates: list[Candidate] = []
    rejects: list[Row] = []
    for fact in facts:
        wanted, value, places = _read_phrase(fact, index, named, find)
        kind = kind_of.get(fact.triple_id)
        if kind is not None:  # "is a town" is no occupation, "is a professor" may be one
            wanted = [prop for prop in wanted if schema.is_subclass(kind, prop.domain)]
        if not wanted:
            continue
        subject = named[fact.head_id]
        checked = [
            check_value(
                prop, subject, value, place, schema, kinds, guess=fact.relation not in _COPULAS
            )
            for prop in wanted
            for place in places
        ]
        fitting = [c for c in checked if isinstance(c, Candidate)]
        candidates += fitting
        if not fitting and kind is None:
            misfits = [c for c in checked if isinstance(c, Misfit)]
            rejects.append(_reject(stage, fact, wanted, misfits))
    return candidates, rejects


def _read_phrase(
    fact: NamedTriple,
    index: Mapping[str, Sequence[OntologyProperty]],
    named: Mapping[str, Named],
    find: Find | None,
) -> tuple[Sequence[OntologyProperty], Named | str, tuple[Place, ...]]:
    match = _FIRST_OF.match(fact.tail) if find else None
    if match and find:
        phrase = _drop_articles(f"{fact.phrase} {match['noun']}")
        wanted = index.get(normalise_relation(phrase).key, [])
        if wanted:
            place = fact.places[0]
            rest = match["rest"]
            needs_individual = any(not prop.is_datatype for prop in wanted)
            found = (
                find(place.document_id, rest, _find_rest(place, rest)) if needs_individual else rest
            )
            return wanted, (found if isinstance(found, Named) else rest), fact.places
    value = named[fact.tail_id] if fact.tail_id else fact.tail
    return index.get(fact.relation, []), value, fact.places


def _find_rest(place: Place, rest: str) -> Span | None:
    """Where words stand in a sentence, however their spaces and lines are broken."""
    found = re.search(r"\s+".join(map(re.escape, rest.split())), place.text)
    return Span(place.start + found.start(), place.start + found.end()) if found else None


def _reject(
    stage: str, fact: NamedTriple, wanted: Iterable[OntologyProperty], misfits: list[Misfit]
) -> Row:
    reasons = sorted({misfit.reason for misfit in misfits})
    names = ", ".join(prop.label for prop in wanted)
    why = "; ".join(sorted({misfit.detail for misfit in misfits}))
    detail = (
        f"{fact.head} ({fact.head_type}) | {fact.phrase} | {fact.tail} ({fact.tail_type}) stays in "
        f"the graph only: it fits none of: {names}: {why}"
    )
    reason = reasons[0] if len(reasons) == 1 else "domain_or_range"
    place = fact.places[0]
    return make_reject(
        stage,
        reason,
        fact.triple_id,
        detail,
        document_id=place.document_id,
        chunk_id=place.chunk_id,
    )


def list_copulas(
    facts: Iterable[NamedTriple], named: Mapping[str, Named], kinds: Kinds, schema: Schema
) -> Iterator[Candidate]:
    """Memberships that sentences such as `X is a city` state, by the classes' labels."""
    for fact in facts:
        class_iri = kinds.find(fact.tail) if fact.relation == IS_A else None
        if class_iri is None or check_name(named[fact.head_id], kinds) is not None:
            continue
        if is_written_as_name(fact.head) or takes_nouns(class_iri, schema):
            for place in fact.places:
                yield Candidate(None, class_iri, fact.head_id, None, None, None, place)
