"""Complete: what the graph says often and the ontology lacks becomes a class or a property.

PolyRAG §III-B: phrases of both layers in one space, a Gaussian per layer, a priority per fact,
k-medoids over the priority region, a proposal per cluster, instances of what is accepted.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from kpyramid.contracts import map_column
from kpyramid.embeddings.port import Embedder
from kpyramid.induction.checking import Candidate, Named, check_name
from kpyramid.induction.kinds import Kinds
from kpyramid.numerics.gaussian import fit_gaussian
from kpyramid.numerics.medoids import find_clusters
from kpyramid.numerics.moments import Array, Moments
from kpyramid.numerics.priority import score_priority
from kpyramid.numerics.space import fit_space
from kpyramid.ontology.constraints import Rules
from kpyramid.ontology.proposals import adopt_proposals
from kpyramid.ontology.schema import Schema
from kpyramid.settings import CompleteSettings
from kpyramid.stages.instances import Places, list_known, make_instances, state_values
from kpyramid.stages.proposing import (
    find_class_noun,
    index_wordings,
    propose_class,
    propose_property,
    says_something,
)
from kpyramid.stages.stated import NamedTriple, index_phrases, list_facts, read_facts
from kpyramid.stages.tables import Row, build_rejects, build_table, build_vectors


def run(
    documents: pa.Table,
    chunks: pa.Table,
    claims: pa.Table,
    raw_triples: pa.Table,
    entities: pa.Table,
    relations: pa.Table,
    triples: pa.Table,
    instances: pa.Table,
    *,
    settings: CompleteSettings,
    schema: Schema,
    embedder: Embedder,
) -> dict[str, pa.Table]:
    """`priorities` of all triples, `proposals`, and the `instances` of the accepted ones."""
    places = Places(documents, chunks)
    facts = list_facts(places, claims, raw_triples, entities, relations, triples)
    names = map_column(entities, "entity_id", "name")
    priority = _score_facts(facts, _list_phrases(instances, names, schema), settings, embedder)
    region = _choose_region(priority, settings.region_share)
    chosen = [fact for fact, inside in zip(facts, region, strict=True) if inside]
    weight = {fact.triple_id: float(p) for fact, p in zip(facts, priority, strict=True)}
    proposals = _propose_properties(chosen, weight, settings, schema, embedder)
    proposals += _propose_classes(chosen, weight, settings, schema)
    grown = adopt_proposals(schema, proposals)
    made, rejects = _induce_accepted(
        facts, proposals, schema, grown, _name_entities(entities), list_known(instances)
    )
    known = set(instances["instance_id"].to_pylist())
    made = [row for row in made if row["instance_id"] not in known]
    return {
        "priorities": build_table(
            "priorities",
            (
                {"triple_id": fact.triple_id, "priority": float(p), "region": bool(inside)}
                for fact, p, inside in zip(facts, priority, region, strict=True)
            ),
        ),
        "proposals": build_table("proposals", proposals),
        "instances": build_table("instances", made),
        "vectors": build_vectors("instances", *state_values(made, grown, names), embedder),
        "rejects": build_rejects(rejects),
    }


def _list_phrases(instances: pa.Table, names: Mapping[str, str], schema: Schema) -> list[str]:
    """The phrases of the ontology layer: `subject property` of every stated value.

    A property without any instance stands with its class's name, so that no part of the schema
    counts as missing.
    """
    phrases = []
    stated = set()
    for row in instances.to_pylist():
        if row["property_iri"] is not None:
            stated.add(row["property_iri"])
            label = schema.property_by_iri[row["property_iri"]].label
            phrases.append(f"{names[row['subject_id']]} {label}")
    for prop in schema.properties:
        if prop.iri not in stated:
            domain = schema.class_by_iri.get(prop.domain)
            phrases.append(f"{domain.label if domain else 'thing'} {prop.label}")
    return phrases


def _score_facts(
    facts: Sequence[NamedTriple],
    ontology: Sequence[str],
    settings: CompleteSettings,
    embedder: Embedder,
) -> Array:
    """The priority of each fact (Eq. 4-7 in the form of `score_priority`), shape (len(facts),)."""
    if not facts or not ontology:
        return np.zeros(len(facts))
    graph_points = embedder.embed([f"{fact.head} {fact.phrase}" for fact in facts])
    ontology_points = embedder.embed(ontology)
    layers = Moments.of(graph_points), Moments.of(ontology_points)
    space = fit_space(layers[0] + layers[1], settings.dimensions)
    coordinates = space.transform(graph_points)
    log_graph, log_ontology = (
        fit_gaussian(space.project(layer), space.floor).log_density(coordinates) for layer in layers
    )
    scores = score_priority("pointwise_kl", log_graph, log_ontology)
    magnitude = scores.log_magnitude - scores.log_magnitude.max()
    return np.asarray(scores.sign * np.exp(magnitude))


def _choose_region(priority: Array, share: float) -> list[bool]:
    """The facts of highest priority: at most `share` of all, only where the graph is denser."""
    order = np.argsort(-priority, kind="stable")[: int(np.ceil(share * len(priority)))]
    inside = set(order.tolist())
    return [index in inside and value > 0.0 for index, value in enumerate(priority.tolist())]


def _propose_properties(
    facts: Sequence[NamedTriple],
    weight: Mapping[str, float],
    settings: CompleteSettings,
    schema: Schema,
    embedder: Embedder,
) -> list[Row]:
    known = index_phrases(schema.properties)
    groups: dict[str, list[NamedTriple]] = defaultdict(list)
    for fact in facts:
        if fact.relation not in known and says_something(fact.relation):
            groups[fact.phrase].append(fact)
    phrases = sorted(groups)
    vectors = embedder.embed(phrases)
    clusters = find_clusters(
        vectors,
        np.array([len(groups[phrase]) for phrase in phrases], dtype=np.float64),
        most=min(len(phrases), settings.max_points) // settings.phrases_per_medoid,
        sample=settings.max_points,
        seed=settings.seed,
    )
    wordings = index_wordings(schema, embedder)
    proposals: list[Row] = []
    taken: set[object] = set()
    for number, medoid in enumerate(clusters.medoids):
        near = [
            index
            for index in np.flatnonzero(clusters.labels == number)
            if float(vectors[index] @ vectors[medoid]) >= settings.member_similarity
        ]
        support = [fact for index in near for fact in groups[phrases[index]]]
        if len(support) < settings.min_support:
            continue
        label, vector = phrases[medoid], vectors[medoid]
        row = propose_property(support, label, vector, weight, settings, schema, wordings)
        if row["iri"] in taken:  # a label that differs in case only
            row = {**row, "state": "alias"}
        taken.add(row["iri"])
        proposals.append(row)
    return proposals


def _propose_classes(
    facts: Sequence[NamedTriple],
    weight: Mapping[str, float],
    settings: CompleteSettings,
    schema: Schema,
) -> list[Row]:
    groups: dict[str, list[NamedTriple]] = defaultdict(list)
    for fact in facts:
        noun = find_class_noun(fact)
        if noun:
            groups[noun].append(fact)
    return [
        propose_class(noun, groups[noun], weight, settings, schema)
        for noun in sorted(groups)
        if len({fact.head_id for fact in groups[noun]}) >= settings.min_support
    ]


def _name_entities(entities: pa.Table) -> dict[str, Named]:
    rows = entities.select(["entity_id", "name", "type"]).to_pylist()
    return {row["entity_id"]: Named(**row) for row in rows}


def _induce_accepted(
    facts: Sequence[NamedTriple],
    proposals: Sequence[Row],
    schema: Schema,
    grown: Schema,
    named: Mapping[str, Named],
    known: Mapping[str, set[str]],
) -> tuple[list[Row], list[Row]]:
    """Instances of what `grown` has more than `schema`, from all facts, not only the region's."""
    old = schema.property_by_iri
    added = [prop for prop in grown.properties if prop.iri not in old]
    kinds = Kinds(schema)
    candidates, rejects = read_facts("complete", facts, named, added, grown, kinds)
    class_of = {
        str(row["label"]): str(row["iri"])
        for row in proposals
        if row["kind"] == "class" and row["state"] == "accepted"
    }
    for fact in facts:
        noun = find_class_noun(fact)
        if noun in class_of and check_name(named[fact.head_id], kinds) is None:
            ends = class_of[noun], fact.head_id, None, None, None
            candidates += [Candidate(None, *ends, place) for place in fact.places]
    names = {key: entity.name for key, entity in named.items()}
    rows, lost = make_instances("complete", candidates, Rules(grown), names, known)
    return rows, rejects + lost
