"""Induce: the seed ontology's classes and properties find their instances (PolyRAG Eq. 1).

Values come from the graph's facts, from sentences like those of the ontology's examples, and
from a language model, if there is one. All go through the same funnel: linked to individuals,
fitted to domain and range, settled against axioms and shapes; what falls out is a reject.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from kpyramid.documents.sentences import Span
from kpyramid.documents.words import IS_A
from kpyramid.embeddings.port import Embedder
from kpyramid.ontology.constraints import Constraint, Rules
from kpyramid.ontology.population.checking import (
    COPULAS,
    UNTYPED,
    Candidate,
    Kinds,
    Linker,
    Place,
    check_name,
    find_head,
    takes_nouns,
)
from kpyramid.ontology.population.inducer import Inducer
from kpyramid.ontology.population.witnesses import (
    Evidence,
    Use,
    Witnesses,
    WordForms,
    find_confidence,
    find_deed,
)
from kpyramid.ontology.schema import OntologyProperty, Schema
from kpyramid.pipeline.stages.instances import (
    NamedTriple,
    Places,
    index_phrases,
    list_copulas,
    list_facts,
    make_instances,
    make_rejects,
    read_facts,
    state_values,
)
from kpyramid.pipeline.stages.tables import (
    Row,
    build_rejects,
    build_table,
    build_vectors,
    make_reject,
)
from kpyramid.pipeline.stages.texts import Checker, Reader, ask_model, part_unsure, read_passages

_BESIDE = 80
"""Characters before and after a mention that may say its kind."""
_NAMED = 0.9
"""Weight of a class that the head of a name says, as `Bank` in `First Bank of Ohio`."""


def run(
    documents: pa.Table,
    chunks: pa.Table,
    claims: pa.Table,
    mentions: pa.Table,
    raw_triples: pa.Table,
    entities: pa.Table,
    relations: pa.Table,
    triples: pa.Table,
    *,
    schema: Schema,
    shapes: Sequence[Constraint],
    embedder: Embedder,
    annotator: Callable[[Sequence[str]], Sequence[str]],
    reader: Reader | None,
    inducer: Inducer | None,
    min_confidence: float,
) -> dict[str, pa.Table]:
    """`instances` with their evidence, the vectors of those with a value, and `rejects`.

    `entities` are the individuals that a reader or a model found and the graph has no fact of.
    What the reader finds is a value when all that states it makes it as sure as `min_confidence`;
    the facts are that sure already.
    """
    rules = Rules(schema, tuple(shapes))
    kinds = Kinds(schema)
    places = Places(documents, chunks)
    mention_rows = mentions.to_pylist()
    entity_rows = entities.to_pylist()
    linker = Linker(entity_rows, mention_rows, places.document_of, kinds.find_by_name)
    facts = list_facts(places, claims, raw_triples, entities, relations, triples)
    index = index_phrases(schema.properties)
    evidence = _gather_evidence(entity_rows, mention_rows, facts, index, places)
    witnesses = Witnesses(schema, WordForms(places.sentences.texts.values()))
    counts = {key: witnesses.count(found) for key, found in evidence.items()}
    for key, named in linker.named.items():
        linker.named[key] = replace(
            named,
            type=UNTYPED if witnesses.refutes_tag(evidence[key]) else named.type,
            kinds=named.kinds | counts[key].keys(),
            is_common=witnesses.is_common(named.name),
        )
    copulas = list(list_copulas(facts, linker.named, kinds, schema))
    for candidate in copulas:
        named = linker.named[candidate.subject_id]
        linker.named[named.entity_id] = replace(named, kinds=named.kinds | {candidate.class_iri})
    individuals = [row for row in entity_rows if not evidence[str(row["entity_id"])].is_kind]
    members, rejects = _list_members(
        individuals, mention_rows, linker, counts, kinds, places, schema
    )
    kind_of = {candidate.place.source: candidate.class_iri for candidate in copulas}
    candidates, refused = read_facts(
        "induce",
        facts,
        linker.named,
        index,
        schema,
        kinds,
        linker.find,
        kind_of,
    )
    rejects += refused
    checker = Checker(linker, schema, kinds, places)
    if reader is not None:
        read, refused = read_passages(documents, chunks, annotator, reader, checker)
        rejects += refused
        read, refused = part_unsure(read, candidates, min_confidence)
        candidates += read
        rejects += refused
    if inducer is not None:
        read, refused = ask_model(documents, chunks, inducer, checker)
        candidates += read
        rejects += refused
    names = {key: named.name for key, named in {**linker.named, **linker.made}.items()}
    found = [*members, *copulas, *candidates]
    rows, losses = make_instances(found, rules)
    refused = make_rejects("induce", losses, names)
    stated = {str(row[key]) for row in rows for key in ("subject_id", "object_id") if row[key]}
    made = [row for row in linker.list_made() if row["entity_id"] in stated]
    return {
        "entities": build_table("entities", made),
        "instances": build_table("instances", rows),
        "vectors": build_vectors("instances", *state_values(rows, schema, names), embedder),
        "rejects": build_rejects(rejects + refused),
    }


def _gather_evidence(
    entities: Iterable[Row],
    mentions: Iterable[Row],
    facts: Iterable[NamedTriple],
    index: Mapping[str, Sequence[OntologyProperty]],
    places: Places,
) -> dict[str, Evidence]:
    """What mentions and facts say of each entity's kind."""
    by_id = {row["mention_id"]: row for row in mentions}
    found = {
        str(row["entity_id"]): Evidence(
            str(row["name"]),
            [_cut_use(by_id[key], places) for key in row["mentions"]],  # type: ignore[attr-defined]
        )
        for row in entities
    }
    said: set[str] = set()
    active: set[str] = set()
    for fact in facts:
        own = found[fact.head_id]
        active.add(fact.head_id)
        if fact.tail_id is not None:
            (said if fact.relation == IS_A else active).add(fact.tail_id)
        wanted = index.get(fact.relation, ())
        if fact.relation == IS_A:
            own.stated.add(find_head(fact.tail))
        elif not fact.relation.endswith(">"):
            own.deeds.add(find_deed(fact.relation))
        elif fact.relation.endswith("<by>") and fact.tail_id is not None:
            found[fact.tail_id].deeds.add(find_deed(fact.relation))
        if wanted and fact.relation not in COPULAS:
            own.ends.append(frozenset(prop.domain for prop in wanted))
            if fact.tail_id is not None:
                own = found[fact.tail_id]
                own.ends.append(frozenset(p.range for p in wanted if not p.is_datatype))
    for key in said - active:
        found[key].is_kind = True
    return found


def _cut_use(mention: Row, places: Places) -> Use:
    text = places.sentences.texts[places.document_of[str(mention["chunk_id"])]]
    start, end = int(str(mention["start"])), int(str(mention["end"]))
    return Use(
        str(mention["type"]), text[max(0, start - _BESIDE) : start], text[end : end + _BESIDE]
    )


def _list_members(
    entities: Iterable[Row],
    mentions: Iterable[Row],
    linker: Linker,
    counts: Mapping[str, Mapping[str, int]],
    kinds: Kinds,
    places: Places,
    schema: Schema,
) -> tuple[list[Candidate], list[Row]]:
    """Memberships by the entities' witnesses and names; their evidence is the first mention.

    Of the type that most of them have, if the entity has one.
    """
    by_id = {row["mention_id"]: row for row in mentions}
    candidates: list[Candidate] = []
    rejects: list[Row] = []
    for row in entities:
        individual = linker.named[str(row["entity_id"])]
        own = [by_id[key] for key in row["mentions"]]  # type: ignore[attr-defined]
        named = {
            iri: _NAMED
            for iri in kinds.find_by_name(individual.name, individual.type)
            if takes_nouns(iri, schema) or not individual.is_common
        }
        counted = counts[individual.entity_id].items()
        found = named | {iri: find_confidence(number) for iri, number in counted}
        if not found or not own:
            continue
        fault = check_name(individual, kinds)
        if fault is not None:
            rejects.append(make_reject("induce", fault.reason, individual.entity_id, fault.detail))
            continue
        wanted = individual.type if any(m["type"] == individual.type for m in own) else None
        for class_iri, weight in sorted(found.items()):
            place = _find_mention(own, wanted, weight, places)
            candidates.append(
                Candidate(None, class_iri, individual.entity_id, None, None, None, place)
            )
    return candidates, rejects


def _find_mention(
    mentions: Iterable[Row], wanted: str | None, weight: float, places: Places
) -> Place:
    """The first mention, by chunk and character, of a type if one is wanted."""
    ordered = sorted(
        (str(m["chunk_id"]), int(str(m["start"])), int(str(m["end"])), str(m["mention_id"]))
        for m in mentions
        if wanted is None or m["type"] == wanted
    )
    chunk_id, start, end, source = ordered[0]
    span = Span(start, end)
    return places.make(chunk_id, [span], (span, None), weight, "rules", source)
