"""Raw triples as facts between mentions, and near duplicates put to a model."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

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


@dataclass(frozen=True, slots=True)
class End:
    """A head or tail as one raw triple names it; `mentions` are those that stand there.

    `noun`: the cluster of a common noun, which is none of the names.
    """

    name: str
    type: str
    mentions: tuple[str, ...]
    types: tuple[str, ...]
    noun: str | None = None

    @property
    def is_literal(self) -> bool:
        return self.type in _LITERAL_TYPES


@dataclass(frozen=True, slots=True)
class Fact:
    """A raw triple that is asserted, its ends looked up."""

    row: Row
    document: str
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
    """The asserted raw triples by id, and a reject for each other one."""
    by_place, by_name = _index_mentions(mentions)
    document = map_column(chunks, "chunk_id", "document_id")
    forms: dict[str, RelationForm] = {}
    facts: list[Fact] = []
    rejects: list[Row] = []
    for raw in sorted(raw_triples.to_pylist(), key=lambda raw: str(raw["raw_triple_id"])):
        reason = _find_fault(raw)
        if reason:
            rejects.append(reject_raw(raw, reason))
            continue
        if raw["relation"] not in forms:
            forms[raw["relation"]] = normalise_relation(raw["relation"])
        ends = []
        for side in ("head", "tail"):
            found = _find_mentions(raw, side, by_place, by_name)
            types = tuple(str(row["type"]) for row in found)
            ids = tuple(str(row["mention_id"]) for row in found)
            ends.append(End(str(raw[side]), vote_type(Counter(types)), ids, types))
        place = document[raw["chunk_id"]]
        fact = Fact(raw, place, forms[raw["relation"]], *ends)
        if fact.form.lemmas == _SAME and not _is_one_kind(fact):
            rejects.append(reject_raw(raw, "kinds_differ"))
        else:
            facts.append(fact)
    return facts, rejects


def reject_raw(raw: Row, reason: str, sentence: str = "") -> Row:
    parts = [str(raw[part]) for part in ("head", "relation", "tail")]
    detail = " | ".join([*parts, sentence] if sentence else parts)
    key = str(raw["raw_triple_id"])
    return make_reject("resolve", reason, key, detail, chunk_id=str(raw["chunk_id"]))


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
        wordings[key][str(fact.row["relation"])] += 1
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
    return f"{fact.row['head']} {fact.row['relation']} {fact.row['tail']}"[:_FACT_CHARACTERS]
