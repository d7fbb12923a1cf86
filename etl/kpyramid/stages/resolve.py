"""Resolve: raw triples become facts between entities, each fact once (`f_dis`)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from kpyramid.contracts import map_column
from kpyramid.embeddings.port import Embedder
from kpyramid.extraction.normal import RelationForm, normalise_name, normalise_relation
from kpyramid.keys import content_id
from kpyramid.resolution.entities import resolve_names
from kpyramid.resolution.entries import UNKNOWN, Use, vote_type
from kpyramid.resolution.names import parse_name
from kpyramid.resolution.relations import Statement, cluster_relations
from kpyramid.stages.tables import Row, build_rejects, build_table, make_reject

_LITERAL_TYPES = frozenset("DATE TIME CARDINAL ORDINAL QUANTITY MONEY PERCENT".split())


@dataclass(frozen=True, slots=True)
class _End:
    """A head or tail as one raw triple names it; `mentions` are those that stand there."""

    name: str
    type: str
    mentions: tuple[str, ...]
    types: tuple[str, ...]

    @property
    def is_literal(self) -> bool:
        return self.type in _LITERAL_TYPES


@dataclass(frozen=True, slots=True)
class _Fact:
    """A raw triple that is asserted, its ends looked up."""

    row: Row
    document: str
    form: RelationForm
    head: _End
    tail: _End


def run(
    mentions: pa.Table, raw_triples: pa.Table, chunks: pa.Table, *, embedder: Embedder
) -> dict[str, pa.Table]:
    """`entities`, `relations`, `triples`, and `rejects`.

    A raw triple is a reject when it is denied, a condition, somebody's words, or says a
    thing of itself.

    `kpyramid.resolution` says which names are one entity and which phrases one relation. A tail
    that is a date, a number or a quantity is a literal.
    """
    facts, rejects = _read_facts(mentions, raw_triples, chunks)
    cluster = resolve_names(_list_uses(facts), embedder)
    kept = []
    for fact in facts:
        if not fact.tail.is_literal and _find(cluster, fact, "head") == _find(
            cluster, fact, "tail"
        ):
            rejects.append(_reject(fact.row, "same_head_and_tail"))
        else:
            kept.append(fact)
    relation = cluster_relations(_list_statements(kept, cluster), embedder)
    return {
        "entities": build_table("entities", _build_entities(kept, cluster)),
        "relations": build_table("relations", _build_relations(kept, relation)),
        "triples": build_table("triples", _build_triples(kept, cluster, relation)),
        "rejects": build_rejects(rejects),
    }


def _read_facts(
    mentions: pa.Table, raw_triples: pa.Table, chunks: pa.Table
) -> tuple[list[_Fact], list[Row]]:
    """The asserted raw triples by id, and a reject for each other one."""
    by_place, by_name = _index_mentions(mentions)
    document = map_column(chunks, "chunk_id", "document_id")
    forms: dict[str, RelationForm] = {}
    facts: list[_Fact] = []
    rejects: list[Row] = []
    for raw in sorted(raw_triples.to_pylist(), key=lambda raw: str(raw["raw_triple_id"])):
        reason = _find_fault(raw)
        if reason:
            rejects.append(_reject(raw, reason))
            continue
        if raw["relation"] not in forms:
            forms[raw["relation"]] = normalise_relation(raw["relation"])
        ends = []
        for side in ("head", "tail"):
            found = _find_mentions(raw, side, by_place, by_name)
            types = tuple(str(row["type"]) for row in found)
            ids = tuple(str(row["mention_id"]) for row in found)
            ends.append(_End(str(raw[side]), vote_type(Counter(types)), ids, types))
        place = document[raw["chunk_id"]]
        facts.append(_Fact(raw, place, forms[raw["relation"]], *ends))
    return facts, rejects


def _reject(raw: Row, reason: str) -> Row:
    detail = f"{raw['head']} | {raw['relation']} | {raw['tail']}"
    key = str(raw["raw_triple_id"])
    return make_reject("resolve", reason, key, detail, chunk_id=str(raw["chunk_id"]))


def _list_uses(facts: Iterable[_Fact]) -> Iterable[Use]:
    """Each name as each fact uses it; literals are neighbours only."""
    for fact in facts:
        for side, end, other in (
            ("head", fact.head, fact.tail),
            ("tail", fact.tail, fact.head),
        ):
            if side == "head" or not end.is_literal:
                yield Use(end.name, fact.document, end.type, side, fact.form.key, other.name)


def _list_statements(
    facts: Iterable[_Fact], cluster: Mapping[tuple[str, str], str]
) -> Iterable[Statement]:
    for fact in facts:
        yield Statement(
            fact.form,
            str(fact.row["relation"]),
            _find(cluster, fact, "head"),
            _find(cluster, fact, "tail"),
            (fact.head.type, fact.tail.type),
        )


def _find(cluster: Mapping[tuple[str, str], str], fact: _Fact, side: str) -> str:
    """The cluster of an entity, the text of a literal."""
    end = fact.head if side == "head" else fact.tail
    if side == "tail" and end.is_literal:
        return _normalise_literal(end.name)
    return cluster[end.name, fact.document]


def _normalise_literal(text: str) -> str:
    """A literal with single spaces and without white space around it."""
    return " ".join(text.split())


def _find_fault(raw: Row) -> str | None:
    if raw["negated"]:
        return "negated"
    if raw["modality"] and not str(raw["relation"]).startswith(f"{raw['modality']} "):
        return "not_asserted"  # a condition; "may cause" says itself how sure it is
    if raw["attribution"]:
        return "attributed"
    if normalise_name(str(raw["head"])) == normalise_name(str(raw["tail"])):
        return "same_head_and_tail"
    return None


def _index_mentions(
    mentions: pa.Table,
) -> tuple[dict[tuple[str, int, int], Row], dict[str, dict[str, list[Row]]]]:
    by_place: dict[tuple[str, int, int], Row] = {}
    by_name: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in mentions.to_pylist():
        place = (row["chunk_id"], row["start"], row["end"])
        if place not in by_place or by_place[place]["type"] == UNKNOWN:
            by_place[place] = row
        by_name[row["chunk_id"]][normalise_name(row["text"])].append(row)
    return by_place, by_name


def _find_mentions(
    raw: Row,
    side: str,
    by_place: Mapping[tuple[str, int, int], Row],
    by_name: Mapping[str, Mapping[str, list[Row]]],
) -> list[Row]:
    """The mention that stands there, else those of the chunk with that name."""
    chunk, span = str(raw["chunk_id"]), raw[f"{side}_span"]
    if isinstance(span, dict):
        row = by_place.get((chunk, span["start"], span["end"]))
        if row is not None:
            return [row]
    return by_name.get(chunk, {}).get(normalise_name(str(raw[side])), [])


def _build_entities(
    facts: Iterable[_Fact], cluster: Mapping[tuple[str, str], str]
) -> Iterable[Row]:
    names: dict[str, Counter[str]] = defaultdict(Counter)
    types: dict[str, Counter[str]] = defaultdict(Counter)
    mentions: dict[str, set[str]] = defaultdict(set)
    for fact in facts:
        for side, end in (("head", fact.head), ("tail", fact.tail)):
            if side == "head" or not end.is_literal:
                key = _find(cluster, fact, side)
                names[key][end.name] += 1
                types[key].update(end.types)
                mentions[key].update(end.mentions)
    for key, wordings in names.items():
        yield {
            "entity_id": content_id("entity", key),
            "name": _pick_name(wordings),
            "type": vote_type(types[key]),
            "surface_forms": sorted(wordings),
            "mentions": sorted(mentions[key]),
        }


def _pick_name(wordings: Counter[str]) -> str:
    """The most frequent of the wordings that say most: titles and legal forms say nothing."""
    most = max(len(parse_name(text).bare) for text in wordings)
    full = {text: n for text, n in wordings.items() if len(parse_name(text).bare) == most}
    return _pick_most_common(Counter(full))


def _pick_most_common(counts: Counter[str]) -> str:
    """The most frequent key; ties go to the longer, then by alphabet."""
    return min(counts, key=lambda name: (-counts[name], -len(name), name))


def _build_relations(facts: Iterable[_Fact], relation: Mapping[str, str]) -> Iterable[Row]:
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
            "name": _pick_most_common(counts),
            "inverse_of": content_id("relation", min(active[key])) if active[key] else None,
            "surface_forms": sorted(counts),
            "support": counts.total(),
        }


def _build_triples(
    facts: Iterable[_Fact],
    cluster: Mapping[tuple[str, str], str],
    relation: Mapping[str, str],
) -> Iterable[Row]:
    groups: dict[tuple[str, str, str, bool], list[Row]] = defaultdict(list)
    for fact in facts:
        head, tail = _find(cluster, fact, "head"), _find(cluster, fact, "tail")
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
