"""Induce: the seed ontology's classes and properties find their instances (PolyRAG Eq. 1).

Values come from the graph's facts, from sentences like those of the ontology's examples, and
from a language model, if there is one. All go through the same funnel: linked to individuals,
fitted to domain and range, settled against axioms and shapes; what falls out is a reject.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from kpyramid.documents.sentences import Span
from kpyramid.embeddings.port import Embedder
from kpyramid.ontology.constraints import Constraint, Rules
from kpyramid.ontology.population.checking import (
    Candidate,
    Kinds,
    Linker,
    Named,
    Place,
    check_name,
    is_typed,
)
from kpyramid.ontology.population.inducer import Inducer
from kpyramid.ontology.schema import Schema
from kpyramid.pipeline.stages.instances import (
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
from kpyramid.pipeline.stages.texts import Checker, Reader, ask_model, read_passages

_RECOGNISED = 0.84
"""Weight of a class that the recogniser's type names: the F1 on OntoNotes that its package has."""
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
    """
    rules = Rules(schema, tuple(shapes))
    kinds = Kinds(schema)
    places = Places(documents, chunks)
    mention_rows = mentions.to_pylist()
    entity_rows = entities.to_pylist()
    linker = Linker(entity_rows, mention_rows, places.document_of, kinds.find_by_name)
    facts = list_facts(places, claims, raw_triples, entities, relations, triples)
    copulas = list(list_copulas(facts, linker.named, kinds, schema))
    for candidate in copulas:
        named = linker.named[candidate.subject_id]
        linker.named[named.entity_id] = replace(named, kinds=named.kinds | {candidate.class_iri})
    members, rejects = _list_members(entity_rows, mention_rows, linker, schema, kinds, places)
    kind_of = {candidate.place.source: candidate.class_iri for candidate in copulas}
    candidates, refused = read_facts(
        "induce",
        facts,
        linker.named,
        index_phrases(schema.properties),
        schema,
        kinds,
        linker.find,
        kind_of,
    )
    rejects += refused
    checker = Checker(linker, schema, kinds, places)
    if reader is not None:
        read, refused = read_passages(documents, chunks, annotator, reader, checker)
        candidates += read
        rejects += refused
    if inducer is not None:
        read, refused = ask_model(documents, chunks, inducer, checker)
        candidates += read
        rejects += refused
    names = {key: named.name for key, named in {**linker.named, **linker.made}.items()}
    found = [*members, *copulas, *candidates]
    rows, losses = make_instances(found, rules, min_confidence=min_confidence)
    refused = make_rejects("induce", losses, names)
    stated = {str(row[key]) for row in rows for key in ("subject_id", "object_id") if row[key]}
    made = [row for row in linker.list_made() if row["entity_id"] in stated]
    return {
        "entities": build_table("entities", made),
        "instances": build_table("instances", rows),
        "vectors": build_vectors("instances", *state_values(rows, schema, names), embedder),
        "rejects": build_rejects(rejects + refused),
    }


def _list_members(
    entities: Iterable[Row],
    mentions: Iterable[Row],
    linker: Linker,
    schema: Schema,
    kinds: Kinds,
    places: Places,
) -> tuple[list[Candidate], list[Row]]:
    """Memberships by the entities' types and names; their evidence is the first such mention."""
    by_id = {row["mention_id"]: row for row in mentions}
    candidates: list[Candidate] = []
    rejects: list[Row] = []
    for row in entities:
        individual = linker.named[str(row["entity_id"])]
        own = [by_id[key] for key in row["mentions"]]  # type: ignore[attr-defined]
        found = _weigh_classes(individual, Counter(str(m["type"]) for m in own), schema, kinds)
        if not found:
            continue
        fault = check_name(individual, kinds)
        if fault is not None:
            rejects.append(make_reject("induce", fault.reason, individual.entity_id, fault.detail))
            continue
        for class_iri, (weight, wanted) in sorted(found.items()):
            place = _find_mention(own, wanted, weight, places)
            candidates.append(
                Candidate(None, class_iri, individual.entity_id, None, None, None, place)
            )
    return candidates, rejects


def _weigh_classes(
    individual: Named, types: Counter[str], schema: Schema, kinds: Kinds
) -> dict[str, tuple[float, str | None]]:
    """The classes that type and name say, with their weight and the type of the mentions meant."""
    found: dict[str, tuple[float, str | None]] = {}
    known = schema.class_for_type(individual.type) if is_typed(individual) else None
    if known is not None and types[individual.type]:
        share = types[individual.type] / types.total()
        found[known] = _RECOGNISED * share, individual.type
    for class_iri in kinds.find_by_name(individual.name, individual.type):
        if types:
            found[class_iri] = _NAMED, None
    return found


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
