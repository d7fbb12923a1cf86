"""Resolve: raw triples become facts between entities, each fact once (`f_dis`)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

import pyarrow as pa

from kpyramid.embeddings.port import Embedder
from kpyramid.graph.duplicates import Disambiguator
from kpyramid.graph.entities import Use, resolve_names, vote_type
from kpyramid.graph.relations import Statement, cluster_relations
from kpyramid.keys import content_id
from kpyramid.pipeline.stages.facts import (
    Fact,
    confirm_same,
    find_cluster,
    list_entities,
    list_relations,
    pick_most_common,
    pick_name,
    read_facts,
    reject_raw,
)
from kpyramid.pipeline.stages.tables import Row, build_rejects, build_table


def run(
    mentions: pa.Table,
    raw_triples: pa.Table,
    chunks: pa.Table,
    *,
    embedder: Embedder,
    disambiguator: Disambiguator | None,
) -> dict[str, pa.Table]:
    """`entities`, `relations`, `triples`, and `rejects`.

    A raw triple is a reject when it is denied, a condition, somebody's words, or says a
    thing of itself.

    `kpyramid.graph` says which names are one entity and which phrases one relation; a
    disambiguator is asked about those that are nearly so. A tail that is a date, a number or a
    quantity is a literal.
    """
    facts, rejects = read_facts(mentions, raw_triples, chunks)
    cluster = resolve_names(_list_uses(facts), embedder)
    if disambiguator is not None:
        same, unanswered = confirm_same(
            "entities", list_entities(facts, cluster), embedder, disambiguator
        )
        cluster = {use: same.get(key, key) for use, key in cluster.items()}
        rejects += unanswered
    kept = []
    for fact in facts:
        if not fact.tail.is_literal and find_cluster(cluster, fact, "head") == find_cluster(
            cluster, fact, "tail"
        ):
            rejects.append(reject_raw(fact.row, "same_head_and_tail"))
        else:
            kept.append(fact)
    relation = cluster_relations(_list_statements(kept, cluster), embedder)
    if disambiguator is not None:
        same, unanswered = confirm_same(
            "relations", list_relations(kept, relation), embedder, disambiguator
        )
        relation = {form: same.get(key, key) for form, key in relation.items()}
        rejects += unanswered
    return {
        "entities": build_table("entities", _build_entities(kept, cluster)),
        "relations": build_table("relations", _build_relations(kept, relation)),
        "triples": build_table("triples", _build_triples(kept, cluster, relation)),
        "rejects": build_rejects(rejects),
    }


def _list_uses(facts: Iterable[Fact]) -> Iterable[Use]:
    """Each name as each fact uses it; literals are neighbours only."""
    for fact in facts:
        for side, end in fact.entities:
            other = fact.tail if side == "head" else fact.head
            yield Use(end.name, fact.document, end.type, side, fact.form.key, other.name)


def _list_statements(
    facts: Iterable[Fact], cluster: Mapping[tuple[str, str], str]
) -> Iterable[Statement]:
    for fact in facts:
        yield Statement(
            fact.form,
            str(fact.row["relation"]),
            find_cluster(cluster, fact, "head"),
            find_cluster(cluster, fact, "tail"),
            (fact.head.type, fact.tail.type),
        )


def _build_entities(facts: Iterable[Fact], cluster: Mapping[tuple[str, str], str]) -> Iterable[Row]:
    names: dict[str, Counter[str]] = defaultdict(Counter)
    types: dict[str, Counter[str]] = defaultdict(Counter)
    mentions: dict[str, set[str]] = defaultdict(set)
    for fact in facts:
        for side, end in fact.entities:
            key = find_cluster(cluster, fact, side)
            names[key][end.name] += 1
            types[key].update(end.types)
            mentions[key].update(end.mentions)
    for key, wordings in names.items():
        yield {
            "entity_id": content_id("entity", key),
            "name": pick_name(wordings),
            "type": vote_type(types[key]),
            "surface_forms": sorted(wordings),
            "mentions": sorted(mentions[key]),
        }


def _build_relations(facts: Iterable[Fact], relation: Mapping[str, str]) -> Iterable[Row]:
    wordings: dict[str, Counter[str]] = defaultdict(Counter)
    active: dict[str, set[str]] = defaultdict(set)
    for fact in facts:
        key = relation[fact.form.key]
        wordings[key][str(fact.row["relation"])] += 1
        inverse = fact.form.inverse_key
        if inverse is not None and inverse in relation:
            active[key].add(relation[inverse])
    for key, counts in wordings.items():
        yield {
            "relation_id": content_id("relation", key),
            "name": pick_most_common(counts),
            "inverse_of": content_id("relation", min(active[key])) if active[key] else None,
            "surface_forms": sorted(counts),
            "support": counts.total(),
        }


def _build_triples(
    facts: Iterable[Fact],
    cluster: Mapping[tuple[str, str], str],
    relation: Mapping[str, str],
) -> Iterable[Row]:
    groups: dict[tuple[str, str, str, bool], list[Row]] = defaultdict(list)
    for fact in facts:
        head, tail = find_cluster(cluster, fact, "head"), find_cluster(cluster, fact, "tail")
        groups[head, relation[fact.form.key], tail, fact.tail.is_literal].append(fact.row)
    for (head, key, tail, is_literal), raws in groups.items():
        doubt = 1.0
        for confidence in sorted(_strongest_per_chunk(raws)):
            doubt *= 1.0 - confidence
        head_id = content_id("entity", head)
        tail_id = None if is_literal else content_id("entity", tail)
        yield {
            "triple_id": content_id("triple", head_id, key, tail_id or tail, is_literal),
            "head_id": head_id,
            "relation_id": content_id("relation", key),
            "tail_id": tail_id,
            "literal": tail if is_literal else None,
            "confidence": 1.0 - doubt,
            "raw_triple_ids": sorted(str(raw["raw_triple_id"]) for raw in raws),
        }


def _strongest_per_chunk(raws: Iterable[Row]) -> Iterable[float]:
    """One confidence per chunk: what one chunk says twice is not two witnesses."""
    best: dict[object, float] = {}
    for raw in raws:
        confidence = float(str(raw["confidence"]))
        best[raw["chunk_id"]] = max(best.get(raw["chunk_id"], 0.0), confidence)
    return best.values()
