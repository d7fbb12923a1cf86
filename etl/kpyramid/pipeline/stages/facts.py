"""Raw triples as facts between mentions, and near duplicates put to a model."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.documents.values import read_value
from kpyramid.documents.words import (
    MODALS,
    RelationForm,
    normalise_name,
    normalise_relation,
    word_relation,
)
from kpyramid.embeddings.port import Embedder
from kpyramid.graph.duplicates import Candidate, Disambiguator, find_groups, unite_pairs
from kpyramid.graph.entities import UNKNOWN, vote_type
from kpyramid.graph.names import parse_name
from kpyramid.graph.nouns import is_of_document
from kpyramid.graph.relations import Codes, Numbers, Statement
from kpyramid.numerics.arrays import Mask
from kpyramid.pipeline.stages.tables import Row, make_reject

# Raw triples as facts: the asserted ones, with the mentions at their ends looked up.

_LITERAL_TYPES = frozenset("DATE TIME CARDINAL ORDINAL QUANTITY MONEY PERCENT".split())
_SAME = ("be", "same", "as")
"""Lemmas of the relation of two names of one thing."""
_CHUNKS = 200
"""Chunks whose raw triples and mentions are objects at a time."""
_BLOCK = 4096
"""Facts that are objects at a time."""
_Found = dict[str, Any]
"""A row of raw triples or mentions, with its number."""


class End(NamedTuple):
    """A head or tail as one raw triple names it.

    `key`: its cluster, or the words of a literal; none where it is not known yet.
    """

    name: str
    type: str
    key: str | None

    @property
    def is_literal(self) -> bool:
        return self.type in _LITERAL_TYPES


class Fact(NamedTuple):
    """A raw triple that is asserted, its ends looked up; `row` is its row, in the order of ids."""

    row: int
    chunk: int
    chunk_id: str
    document: str
    relation: str
    form: RelationForm
    confidence: float
    qualifiers: tuple[tuple[str, str], ...]
    head: End
    tail: End
    negated: bool = False

    @property
    def entities(self) -> tuple[tuple[str, End], ...]:
        """The ends that are entities, each with its side."""
        ends = (("head", self.head), ("tail", self.tail))
        return ends[:1] if self.tail.is_literal else ends


class Facts:
    """The asserted raw triples, by id: columns of numbers, and objects while they are walked.

    `columns`: row, chunk, confidence, relation, negated, names and types of both ends, mentions
    (where those of the head begin and end, and those of the tail end), keys of both ends, -1 where
    not known yet. `table`: the words that the numbers stand for.
    """

    def __init__(self, table: "_Words", columns: Mapping[str, Numbers]) -> None:
        self.table, self.columns = table, columns

    def __len__(self) -> int:
        return len(self.columns["row"])

    def __getitem__(self, rows: Numbers) -> "Facts":
        return Facts(self.table, {name: own[rows] for name, own in self.columns.items()})

    def __iter__(self) -> Iterator[Fact]:
        words, names = self.table, self.table.names
        types = [kind for kind, _ in words.types]
        keys = [*words.keys, None]  # -1 is the last
        order = ("row", "chunk", "confidence", "relation", "negated", "names", "types", "keys")
        for start in range(0, len(self), _BLOCK):
            columns = (self.columns[name][start : start + _BLOCK].tolist() for name in order)
            for row, chunk, confidence, said, denied, *ends in zip(*columns, strict=True):
                (name, other), (kind, also), (key, last) = ends
                chunk_id, document = words.chunks[chunk]
                phrase, form = words.relations[said]
                head = End(names[name], types[kind], keys[key])
                tail = End(names[other], types[also], keys[last])
                rest = (confidence, words.qualifiers.get(row, ()), head, tail, bool(denied))
                yield Fact(row, chunk, chunk_id, document, phrase, form, *rest)

    @property
    def is_literal(self) -> Mask:
        """Whether each fact's tail is a literal."""
        literal = [kind in _LITERAL_TYPES for kind, _ in self.table.types]
        return np.array(literal, dtype=bool)[self.columns["types"][:, 1]]

    def set_keys(self, where: Mask, keys: Iterable[str | None]) -> None:
        """Gives some ends their clusters: `where` says which, of heads and tails side by side."""
        known = Codes({key: code for code, key in enumerate(self.table.keys)})
        codes = (-1 if key is None else known[key] for key in keys)
        self.columns["keys"][where] = np.fromiter(codes, np.int32, int(where.sum()))
        self.table.keys = [*known]


@dataclass
class _Words:
    """What the numbers of facts stand for, by number."""

    chunks: Sequence[tuple[str, str]]
    relations: Sequence[tuple[str, RelationForm]]
    names: Sequence[str]
    types: Sequence[tuple[str, tuple[str, ...]]]
    mentions: "array[int]"
    qualifiers: Mapping[int, tuple[tuple[str, str], ...]]
    keys: list[str]


def read_facts(
    mentions: pa.Table, raw_triples: pa.Table, chunks: pa.Table
) -> tuple[Facts, list[Row]]:
    """The asserted raw triples by id, and a reject for each other one.

    Rows are objects for some chunks at a time.
    """
    places = list(zip(*(chunks[c].to_pylist() for c in ("chunk_id", "document_id")), strict=True))
    number = {chunk: at for at, (chunk, _) in enumerate(places)}
    names: Codes[str] = Codes()
    phrases: Codes[str] = Codes()
    types: Codes[tuple[str, ...]] = Codes()
    forms: list[RelationForm] = []
    qualifiers = {}
    order = ("row", "chunk", "confidence", "relation", "negated", "names", "types", "mentions")
    columns: dict[str, array[Any]] = {
        name: array("d" if name == "confidence" else "i") for name in order
    }
    standing = array("i")
    rejects: list[Row] = []
    for raws, near in _walk_chunks(chunks, raw_triples, mentions):
        by_place, by_name = _index_mentions(near)
        for raw in raws:
            reason = _find_fault(raw)
            if reason:
                rejects.append(reject_raw(raw, reason))
                continue
            ends = [_find_mentions(raw, side, by_place, by_name) for side in ("head", "tail")]
            kinds = [tuple(row["type"] for row in end) for end in ends]
            if not ends[1] and read_value(raw["tail"]) is not None:
                kinds[1] = ("QUANTITY",)  # a cell's number with the unit of its header
            said = raw["relation"]
            if phrases[said] == len(forms):
                forms.append(normalise_relation(said))
            if forms[phrases[said]].lemmas == _SAME and not _is_one_kind(raw, kinds):
                rejects.append(reject_raw(raw, "kinds_differ"))
                continue
            columns["row"].append(raw["row"])
            columns["chunk"].append(number[raw["chunk_id"]])
            columns["confidence"].append(raw["confidence"])
            columns["relation"].append(phrases[said])
            columns["negated"].append(raw["negated"])
            columns["names"].extend((names[raw["head"]], names[raw["tail"]]))
            columns["types"].extend(types[kind] for kind in kinds)
            columns["mentions"].append(len(standing))
            for end in ends:
                standing.extend(row["row"] for row in end)
                columns["mentions"].append(len(standing))
            if raw["qualifiers"]:
                qualifiers[raw["row"]] = tuple(raw["qualifiers"])
    voted = [(vote_type(Counter(kinds)), kinds) for kinds in types]
    relations = list(zip(phrases, forms, strict=True))
    words = _Words(places, relations, [*names], voted, standing, qualifiers, [])
    shaped = {name: np.array(own) for name, own in columns.items()}
    for name, width in (("names", 2), ("types", 2), ("mentions", 3)):
        shaped[name] = shaped[name].reshape(-1, width)
    shaped["keys"] = np.full_like(shaped["names"], -1)
    return Facts(words, shaped)[np.argsort(shaped["row"])], rejects


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
    modal = str(raw["relation"]).partition(" ")[0] if raw["modality"] in MODALS else None
    if raw["modality"] and modal != raw["modality"]:
        return "not_asserted"  # a condition; "may cause" says itself how sure it is
    if raw["attribution"]:
        return "attributed"
    if normalise_name(str(raw["head"])) == normalise_name(str(raw["tail"])):
        return "same_head_and_tail"
    return None


def _is_one_kind(raw: Row, kinds: Iterable[Iterable[str]]) -> bool:
    """Both ends are names, of one type or with a word in common."""
    head, tail = (parse_name(str(raw[side])) for side in ("head", "tail"))
    types = {vote_type(Counter(own)) for own in kinds}
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


def list_entities(facts: Iterable[Fact]) -> list[Candidate]:
    """The clusters that may have a duplicate: names, and nouns that mean a kind."""
    clusters: dict[str, _Cluster] = defaultdict(_Cluster)
    for fact in facts:
        for _, end in fact.entities:
            if not is_of_document(key := str(end.key)):
                clusters[key].add(end.name, {end.type} - {UNKNOWN}, fact)
    named = {key: pick_name(clusters[key].wordings) for key in sorted(clusters)}
    return [
        clusters[key].describe(key, name, parse_name(name).words) for key, name in named.items()
    ]


def list_relations(facts: Iterable[Fact], relation: Mapping[str, str]) -> list[Candidate]:
    """The clusters of relations, any of which may have a duplicate."""
    clusters: dict[str, _Cluster] = defaultdict(_Cluster)
    lemmas: dict[str, set[str]] = defaultdict(set)
    for fact in facts:
        key = relation[Statement(fact.relation, fact.form).key]
        lemmas[key] |= set(fact.form.lemmas)
        kinds = f"{fact.head.type} {fact.tail.type} {fact.form.passive_by}"
        clusters[key].add(fact.relation, {kinds}, fact)
    return [
        clusters[key].describe(key, pick_most_common(clusters[key].wordings), lemmas[key])
        for key in sorted(clusters)
    ]


@dataclass(slots=True)
class _Cluster:
    """What facts say of a cluster: its wordings, types, and the first of the facts."""

    wordings: Counter[str] = field(default_factory=Counter)
    types: set[str] = field(default_factory=set)
    stated: str = ""

    def add(self, wording: str, types: set[str], fact: Fact) -> None:
        self.wordings[wording] += 1
        self.types |= types
        self.stated = min(self.stated or _state(fact), _state(fact))

    def describe(self, key: str, name: str, words: Iterable[str]) -> Candidate:
        return Candidate(key, name, frozenset(words), frozenset(self.types), self.stated)


def _state(fact: Fact) -> str:
    relation = word_relation(fact.relation, fact.negated)
    return f"{fact.head.name} {relation} {fact.tail.name}"[:_FACT_CHARACTERS]
