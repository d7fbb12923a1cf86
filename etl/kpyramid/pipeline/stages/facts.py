"""Raw triples as facts between mentions, and near duplicates put to a model."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.documents.words import RelationForm, normalise_name, normalise_relation
from kpyramid.embeddings.port import Embedder
from kpyramid.graph.duplicates import Candidate, Disambiguator, find_groups, unite_pairs
from kpyramid.graph.entities import UNKNOWN, vote_type
from kpyramid.graph.names import parse_name
from kpyramid.graph.nouns import is_of_document
from kpyramid.pipeline.stages.tables import Row, make_reject
from kpyramid.storage.contracts import map_column

# Raw triples as facts: the asserted ones, with the mentions at their ends looked up.

_LITERAL_TYPES = frozenset("DATE TIME CARDINAL ORDINAL QUANTITY MONEY PERCENT".split())
_SAME = ("be", "same", "as")
"""Lemmas of the relation of two names of one thing."""
_CHUNKS = 2000
"""Chunks whose raw triples and mentions are objects at a time."""
_Found = dict[str, Any]
"""A row of raw triples or mentions, with its number."""


@dataclass(slots=True)
class End:
    """A head or tail as one raw triple names it; `mentions` are the rows of those that stand there.

    `noun`: the cluster of a common noun, which is none of the names.
    """

    name: str
    type: str
    mentions: tuple[int, ...]
    types: tuple[str, ...]
    noun: str | None = None

    @property
    def is_literal(self) -> bool:
        return self.type in _LITERAL_TYPES


@dataclass(frozen=True, slots=True)
class Fact:
    """A raw triple that is asserted, its ends looked up; `row` is its row, in the order of ids."""

    row: int
    chunk_id: str
    document: str
    relation: str
    confidence: float
    qualifiers: tuple[tuple[str, str], ...]
    form: RelationForm
    head: End
    tail: End

    @property
    def entities(self) -> tuple[tuple[str, End], ...]:
        """The ends that are entities, each with its side."""
        ends = (("head", self.head), ("tail", self.tail))
        return ends[:1] if self.tail.is_literal else ends


def read_facts(
    mentions: pa.Table, raw_triples: pa.Table, chunks: pa.Table
) -> tuple[list[Fact], list[Row]]:
    """The asserted raw triples by id, and a reject for each other one.

    Rows are objects for some chunks at a time, and equal words of facts are one object.
    """
    document = map_column(chunks, "chunk_id", "document_id")
    forms: dict[str, RelationForm] = {}
    shared: dict[object, Any] = {}
    facts: list[Fact] = []
    rejects: list[Row] = []
    for raws, near in _walk_chunks(chunks, raw_triples, mentions):
        by_place, by_name = _index_mentions(near)
        for raw in raws:
            reason = _find_fault(raw)
            if reason:
                rejects.append(reject_raw(raw, reason))
                continue
            if raw["relation"] not in forms:
                forms[raw["relation"]] = normalise_relation(raw["relation"])
            ends = []
            for side in ("head", "tail"):
                found = _find_mentions(raw, side, by_place, by_name)
                types = tuple(row["type"] for row in found)
                types = shared.setdefault(types, types)
                name = shared.setdefault(raw[side], raw[side])
                rows = tuple(row["row"] for row in found)
                ends.append(End(name, vote_type(Counter(types)), rows, types))
            fact = Fact(
                raw["row"],
                shared.setdefault(raw["chunk_id"], raw["chunk_id"]),
                document[raw["chunk_id"]],
                shared.setdefault(raw["relation"], raw["relation"]),
                raw["confidence"],
                tuple(raw["qualifiers"]),
                forms[raw["relation"]],
                *ends,
            )
            if fact.form.lemmas == _SAME and not _is_one_kind(fact):
                rejects.append(reject_raw(raw, "kinds_differ"))
            else:
                facts.append(fact)
    return sorted(facts, key=lambda fact: fact.row), rejects


def _walk_chunks(chunks: pa.Table, *tables: pa.Table) -> Iterator[list[list[dict[str, Any]]]]:
    """The rows of tables that belong to the same chunks, with their numbers, for some chunks."""
    known = chunks["chunk_id"].combine_chunks()
    places = [pc.index_in(table["chunk_id"], value_set=known).to_numpy() for table in tables]
    orders = [np.argsort(place, kind="stable") for place in places]
    cuts = range(0, len(known) + _CHUNKS, _CHUNKS)
    ends = [
        np.searchsorted(place[order], cuts) for place, order in zip(places, orders, strict=True)
    ]
    for at in range(len(cuts) - 1):
        rows = [np.sort(o[e[at] : e[at + 1]]) for o, e in zip(orders, ends, strict=True)]
        yield [
            table.take(own).append_column("row", [own]).to_pylist()
            for table, own in zip(tables, rows, strict=True)
        ]


def reject_raw(raw: Row, reason: str, sentence: str = "") -> Row:
    parts = [str(raw[part]) for part in ("head", "relation", "tail")]
    detail = " | ".join([*parts, sentence] if sentence else parts)
    key = str(raw["raw_triple_id"])
    return make_reject("resolve", reason, key, detail, chunk_id=str(raw["chunk_id"]))


def reject_fact(fact: Fact, raw_triples: pa.Table, reason: str, sentence: str = "") -> Row:
    raw = {
        "raw_triple_id": raw_triples["raw_triple_id"][fact.row].as_py(),
        "chunk_id": fact.chunk_id,
        "head": fact.head.name,
        "relation": fact.relation,
        "tail": fact.tail.name,
    }
    return reject_raw(raw, reason, sentence)


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


def _is_one_kind(fact: Fact) -> bool:
    """Both ends are names, of one type or with a word in common."""
    head, tail = parse_name(fact.head.name), parse_name(fact.tail.name)
    types = {fact.head.type, fact.tail.type}
    alike = len(types) == 1 and UNKNOWN not in types
    return head.proper and tail.proper and (alike or bool({*head.words} & {*tail.words}))


def _index_mentions(
    mentions: Iterable[_Found],
) -> tuple[dict[tuple[str, int, int], _Found], dict[tuple[str, str], list[_Found]]]:
    by_place: dict[tuple[str, int, int], _Found] = {}
    by_name: dict[tuple[str, str], list[_Found]] = defaultdict(list)
    for row in mentions:
        place = (row["chunk_id"], row["start"], row["end"])
        if place not in by_place or by_place[place]["type"] == UNKNOWN:
            by_place[place] = row
        by_name[row["chunk_id"], normalise_name(row["text"])].append(row)
    return by_place, by_name


def _find_mentions(
    raw: _Found,
    side: str,
    by_place: Mapping[tuple[str, int, int], _Found],
    by_name: Mapping[tuple[str, str], list[_Found]],
) -> list[_Found]:
    """The mention that stands there, else those of the chunk with that name."""
    chunk, span = raw["chunk_id"], raw[f"{side}_span"]
    if span is not None:
        row = by_place.get((chunk, span["start"], span["end"]))
        if row is not None:
            return [row]
    return by_name.get((chunk, normalise_name(raw[side])), [])


def find_cluster(cluster: Mapping[tuple[str, str], str], fact: Fact, side: str) -> str:
    """The cluster of an entity, the text of a literal."""
    end = fact.head if side == "head" else fact.tail
    if side == "tail" and end.is_literal:
        return " ".join(end.name.split())
    return end.noun or cluster[end.name, fact.document]


def pick_name(wordings: Counter[str]) -> str:
    """The most frequent of the wordings that say most: titles and legal forms say nothing."""
    most = max(len(parse_name(text).bare) for text in wordings)
    full = {text: n for text, n in wordings.items() if len(parse_name(text).bare) == most}
    return pick_most_common(Counter(full))


def pick_most_common(counts: Counter[str]) -> str:
    """The most frequent key; ties go to the longer, then by alphabet."""
    return min(counts, key=lambda name: (-counts[name], -len(name), name))


# Asking which clusters mean the same although the rules left them apart (`f_dis`).

_FACT_CHARACTERS = 160
"""Of a fact that shows a model how a wording is used."""


def confirm_same(
    kind: str, candidates: list[Candidate], embedder: Embedder, disambiguator: Disambiguator
) -> tuple[dict[str, str], list[Row]]:
    """What each cluster becomes that a model holds for the same as another, and its failures."""
    confirmed = disambiguator.confirm(kind, find_groups(candidates, embedder))
    rank = {c.key: (-len(c.words), c.key) for c in candidates}
    rejects = [
        make_reject(
            "resolve",
            f"llm_{failure.kind}",
            failure.key,
            f"{failure.detail}; left apart: "
            + "; ".join(" / ".join(wording.text for wording in group) for group in batch),
        )
        for failure, batch in confirmed.failures
    ]
    return unite_pairs(confirmed.pairs, rank), rejects


def list_entities(facts: Iterable[Fact], cluster: Mapping[tuple[str, str], str]) -> list[Candidate]:
    """The clusters that may have a duplicate: names, and nouns that mean a kind."""
    names: dict[str, Counter[str]] = defaultdict(Counter)
    types: dict[str, set[str]] = defaultdict(set)
    stated: dict[str, str] = {}
    for fact in facts:
        for side, end in fact.entities:
            key = find_cluster(cluster, fact, side)
            if is_of_document(key):
                continue
            names[key][end.name] += 1
            types[key] |= {end.type} - {UNKNOWN}
            stated[key] = min(stated.get(key, _state(fact)), _state(fact))
    return [
        Candidate(
            key,
            name := pick_name(names[key]),
            frozenset(parse_name(name).words),
            frozenset(types[key]),
            stated[key],
        )
        for key in sorted(names)
    ]


def list_relations(facts: Iterable[Fact], relation: Mapping[str, str]) -> list[Candidate]:
    wordings: dict[str, Counter[str]] = defaultdict(Counter)
    lemmas: dict[str, set[str]] = defaultdict(set)
    types: dict[str, set[str]] = defaultdict(set)
    stated: dict[str, str] = {}
    for fact in facts:
        key = relation[fact.form.key]
        wordings[key][fact.relation] += 1
        lemmas[key] |= set(fact.form.lemmas)
        types[key].add(f"{fact.head.type} {fact.tail.type} {fact.form.passive_by}")
        stated[key] = min(stated.get(key, _state(fact)), _state(fact))
    return [
        Candidate(
            key,
            pick_most_common(wordings[key]),
            frozenset(lemmas[key]),
            frozenset(types[key]),
            stated[key],
        )
        for key in sorted(wordings)
    ]


def _state(fact: Fact) -> str:
    return f"{fact.head.name} {fact.relation} {fact.tail.name}"[:_FACT_CHARACTERS]
