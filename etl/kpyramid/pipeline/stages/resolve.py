"""Resolve: raw triples become facts between entities, each fact once (`f_dis`)."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.completion.corrections import Compare, Corrections
from kpyramid.documents.qualifiers import (
    BRACKET,
    CORRECTED,
    DOCUMENT,
    OPENING,
    TABLE,
    Qualifiers,
    cite_document,
    unite_qualifiers,
)
from kpyramid.documents.sentences import Span, split_sentences
from kpyramid.documents.validity import date_fact
from kpyramid.documents.values import read_value, spell_amount
from kpyramid.documents.words import (
    MODALS,
    RelationForm,
    deny,
    normalise_name,
    normalise_relation,
    word_relation,
)
from kpyramid.embeddings.port import Embedder
from kpyramid.extraction.facts.coreference import find_named
from kpyramid.extraction.syntax.tree import LITERALS
from kpyramid.graph.duplicates import Candidate, Disambiguator, find_groups, unite_pairs
from kpyramid.graph.entities import UNKNOWN, Use, resolve_names, vote_type
from kpyramid.graph.names import Name, may_stand_alone, parse_name
from kpyramid.graph.nouns import (
    Phrase,
    is_of_document,
    is_present,
    names_kind,
    resolve_nouns,
    states_rule,
)
from kpyramid.graph.relations import Codes, Numbers, Statement, cluster_relations, spell_key
from kpyramid.graph.synonyms.comparison import Comparer
from kpyramid.graph.synonyms.meaning import read_modality
from kpyramid.keys import content_id
from kpyramid.numerics.arrays import Mask
from kpyramid.numerics.chances import combine_chances
from kpyramid.pipeline.stages.tables import Row, build_rejects, build_table, make_reject
from kpyramid.storage.contracts import combine_column, find_rows, load_contracts, map_column
from kpyramid.storage.former import Former

# Raw triples as facts: the asserted ones, with the mentions at their ends looked up.

_SAME = ("be", "same", "as")
"""Lemmas of the relation between two names of one thing."""
_CHUNKS = 200
"""Chunks whose raw triples and mentions are objects at a time."""
_BLOCK = 4096
"""Facts that are objects at a time."""


class End(NamedTuple):
    """A head or tail as one raw triple names it.

    `key`: its cluster, or the words of a literal; None until it is known.
    """

    name: str
    type: str
    key: str | None

    @property
    def is_literal(self) -> bool:
        return self.type in LITERALS


class Fact(NamedTuple):
    """An asserted raw triple with its ends looked up; `row` is its row, in the order of ids."""

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
    """The asserted raw triples, by id: columns of numbers, and objects while iterating.

    `columns`: row, chunk, confidence, relation, negated, names and types of both ends, mentions
    (offsets: start and end of the head's, end of the tail's), keys of both ends, -1 while unknown.
    `table`: the words that the numbers stand for.
    """

    def __init__(self, table: "_Words", columns: Mapping[str, Numbers]) -> None:
        self.table, self.columns = table, columns

    def __len__(self) -> int:
        return len(self.columns["row"])

    def __getitem__(self, rows: Numbers | Mask) -> "Facts":
        return Facts(self.table, {name: column[rows] for name, column in self.columns.items()})

    def __iter__(self) -> Iterator[Fact]:
        words, names = self.table, self.table.names
        types = [kind for kind, _ in words.types]
        keys = [*words.keys, None]  # -1 is the last
        order = ("row", "chunk", "confidence", "relation", "negated", "names", "types", "keys")
        for start in range(0, len(self), _BLOCK):
            columns = (self.columns[name][start : start + _BLOCK].tolist() for name in order)
            for row, chunk, confidence, relation, denied, *ends in zip(*columns, strict=True):
                (head, tail), (head_type, tail_type), (head_key, tail_key) = ends
                chunk_id, document = words.chunks[chunk]
                phrase, form = words.relations[relation]
                first = End(names[head], types[head_type], keys[head_key])
                last = End(names[tail], types[tail_type], keys[tail_key])
                rest = (confidence, words.qualifiers.get(row, ()), first, last, bool(denied))
                yield Fact(row, chunk, chunk_id, document, phrase, form, *rest)

    def count_statements(self) -> dict[Statement, int]:
        """The number of facts with each wording."""
        counts = np.bincount(self.columns["relation"], minlength=len(self.table.relations))
        numbers = zip(self.table.relations, counts.tolist(), strict=True)
        return {Statement(*pair): count for pair, count in numbers if count}

    @property
    def is_literal(self) -> Mask:
        """Whether each fact's tail is a literal."""
        literal = [kind in LITERALS for kind, _ in self.table.types]
        return np.array(literal, dtype=bool)[self.columns["types"][:, 1]]

    def set_keys(self, where: Mask, keys: Iterable[str | None]) -> None:
        """Sets the clusters of the ends in `where`, a mask of shape (facts, 2)."""
        known = Codes({key: code for code, key in enumerate(self.table.keys)})
        codes = (-1 if key is None else known[key] for key in keys)
        self.columns["keys"][where] = np.fromiter(codes, np.int32, int(where.sum()))
        self.table.keys = [*known]


@dataclass
class _Words:
    """The words that the numbers of facts stand for, by number."""

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

    Rows are read as objects for some chunks at a time.
    """
    places = list(zip(*(chunks[c].to_pylist() for c in ("chunk_id", "document_id")), strict=True))
    number = {chunk: index for index, (chunk, _) in enumerate(places)}
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
        located = _Mentions(near)
        for raw in raws:
            reason = _find_fault(raw)
            if reason:
                rejects.append(reject_raw(raw, reason))
                continue
            ends = [located.find(raw, side) for side in ("head", "tail")]
            kinds = [tuple(row["type"] for row in end) for end in ends]
            if not ends[1] and read_value(spell_amount(raw["tail"])) is not None:
                kinds[1] = ("QUANTITY",)  # a cell's number with the unit of its header
            relation = raw["relation"]
            if phrases[relation] == len(forms):
                forms.append(normalise_relation(relation))
            if forms[phrases[relation]].lemmas == _SAME and not _may_be_same(raw, kinds):
                rejects.append(reject_raw(raw, "kinds_differ"))
                continue
            columns["row"].append(raw["row"])
            columns["chunk"].append(number[raw["chunk_id"]])
            columns["confidence"].append(raw["confidence"])
            columns["relation"].append(phrases[relation])
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
    shaped = {name: np.array(values) for name, values in columns.items()}
    for name, width in (("names", 2), ("types", 2), ("mentions", 3)):
        shaped[name] = shaped[name].reshape(-1, width)
    shaped["keys"] = np.full_like(shaped["names"], -1)
    return Facts(words, shaped)[np.argsort(shaped["row"])], rejects


def _walk_chunks(chunks: pa.Table, *tables: pa.Table) -> Iterator[list[list[dict[str, Any]]]]:
    """Numbered rows of tables, for some chunks at a time."""
    known = chunks["chunk_id"].combine_chunks()
    places = [pc.index_in(table["chunk_id"], value_set=known).to_numpy() for table in tables]
    orders = [np.argsort(place, kind="stable") for place in places]
    cuts = range(0, len(known) + _CHUNKS, _CHUNKS)
    ends = [
        np.searchsorted(place[order], cuts) for place, order in zip(places, orders, strict=True)
    ]
    for block in range(len(cuts) - 1):
        rows = [np.sort(o[e[block] : e[block + 1]]) for o, e in zip(orders, ends, strict=True)]
        yield [
            table.take(numbers).append_column("row", [numbers]).to_pylist()
            for table, numbers in zip(tables, rows, strict=True)
        ]


def reject_raw(raw: Row, reason: str, sentence: str = "") -> Row:
    parts = [raw["head"], word_relation(raw["relation"], raw["negated"]), raw["tail"]]
    detail = " | ".join([*parts, sentence] if sentence else parts)
    return make_reject("resolve", reason, raw["raw_triple_id"], detail, chunk_id=raw["chunk_id"])


def reject_fact(fact: Fact, raw_triples: pa.Table, reason: str, sentence: str = "") -> Row:
    raw = {
        "raw_triple_id": raw_triples["raw_triple_id"][fact.row].as_py(),
        "chunk_id": fact.chunk_id,
        "head": fact.head.name,
        "relation": fact.relation,
        "negated": fact.negated,
        "tail": fact.tail.name,
    }
    return reject_raw(raw, reason, sentence)


def _find_fault(raw: Row) -> str | None:
    modal = raw["relation"].partition(" ")[0] if raw["modality"] in MODALS else None
    if raw["modality"] and modal != raw["modality"]:
        return "not_asserted"  # a condition; "may cause" says itself how sure it is
    if raw["attribution"]:
        return "attributed"
    if normalise_name(raw["head"]) == normalise_name(raw["tail"]):
        return "same_head_and_tail"
    return None


def _may_be_same(raw: Row, kinds: Iterable[Iterable[str]]) -> bool:
    """Whether both ends are names, of one type or with a word in common."""
    head, tail = (parse_name(raw[side]) for side in ("head", "tail"))
    types = {vote_type(Counter(kind)) for kind in kinds}
    alike = len(types) == 1 and UNKNOWN not in types
    return head.proper and tail.proper and (alike or bool({*head.words} & {*tail.words}))


class _Mentions:
    """Mentions by their place and by their name in a chunk."""

    def __init__(self, mentions: Iterable[Row]) -> None:
        self._by_place: dict[tuple[str, int, int], Row] = {}
        self._by_name: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in mentions:
            place = (row["chunk_id"], row["start"], row["end"])
            if place not in self._by_place or self._by_place[place]["type"] == UNKNOWN:
                self._by_place[place] = row
            self._by_name[row["chunk_id"], normalise_name(row["text"])].append(row)

    def find(self, raw: Row, side: str) -> list[Row]:
        """The mention at the span of an end, else the chunk's mentions with its name."""
        chunk, span = raw["chunk_id"], raw[f"{side}_span"]
        if span is not None:
            row = self._by_place.get((chunk, span["start"], span["end"]))
            if row is not None:
                return [row]
        return self._by_name.get((chunk, normalise_name(raw[side])), [])


def pick_name(wordings: Counter[str]) -> str:
    """The most frequent of the wordings with most content words, without titles and legal forms."""
    most = max(len(parse_name(text).bare) for text in wordings)
    full = {text: n for text, n in wordings.items() if len(parse_name(text).bare) == most}
    return pick_most_common(Counter(full))


def pick_most_common(counts: Counter[str]) -> str:
    """The most frequent key; ties go to the longer, then by alphabet."""
    return min(counts, key=lambda name: (-counts[name], -len(name), name))


# Asking which clusters mean the same although the rules left them apart (`f_dis`).

_FACT_CHARACTERS = 160
"""Most characters of a fact that shows a model how a wording is used."""


def confirm_same(
    kind: str, candidates: list[Candidate], embedder: Embedder, disambiguator: Disambiguator
) -> tuple[dict[str, str], list[Row]]:
    """The new key of each cluster that a model merges with another, and rejects of failures."""
    pairs, losses = disambiguator.confirm(kind, find_groups(candidates, embedder))
    rank = {c.key: (-len(c.words), c.key) for c in candidates}
    rejects = [make_reject("resolve", x.reason, x.key, x.detail) for x in losses]
    return unite_pairs(pairs, rank), rejects


def list_entities(facts: Iterable[Fact]) -> list[Candidate]:
    """The clusters of names, and of nouns that mean a kind, as candidates for merging."""
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
    """The clusters of relations as candidates for merging."""
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
    """Wordings and types of a cluster, and the first of its facts."""

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


# Resolve: raw triples become facts between entities, each fact once (`f_dis`).

_MAX_TITLE = 6
"""Most words of a title that may be a name; a longer one is a sentence."""
_NOWHERE = 1 << 60
"""Start of what has no place: sorts last."""
_BEFORE = 40
"""Characters before a noun that contain the preceding word."""


def run(
    documents: pa.Table,
    mentions: pa.Table,
    raw_triples: pa.Table,
    chunks: pa.Table,
    *,
    former: Former | None,
    embedder: Embedder,
    disambiguator: Disambiguator | None,
    min_confidence: float,
    corrections: Corrections,
) -> dict[str, pa.Table]:
    """`entities`, `relations`, `triples`, and `rejects`.

    A raw triple is a reject if it is a condition, attributed to somebody, or relates a thing to
    itself, and if its fact has less confidence than `min_confidence`.

    `kpyramid.graph` clusters names into entities and phrases into relations; a disambiguator is
    asked about near duplicates. A tail that is a date, a number or a quantity is a literal. A
    common noun of one document is qualified by the document's title. An entity keeps the id of most
    of its statements in the `former` snapshot, a relation the id and the name of most of its
    wordings.
    """
    # Rows of facts ascend as their ids do.
    mentions = load_contracts()["mentions"].finish(mentions)
    raw_triples = load_contracts()["raw_triples"].finish(raw_triples)
    facts, rejects = read_facts(mentions, raw_triples, chunks)
    facts.set_keys(
        np.ones((len(facts), 2), dtype=bool), _find_nouns(facts, raw_triples, chunks, documents)
    )
    named = facts.columns["keys"] < 0
    titles = list(_list_titles(documents, facts, raw_triples))
    clusters = resolve_names(chain(_list_uses(facts), titles), embedder)
    facts.set_keys(named, clusters[: named.sum()])
    if disambiguator is not None:
        same, unanswered = confirm_same("entities", list_entities(facts), embedder, disambiguator)
        clusters = [same.get(key, key) for key in clusters]
        facts.set_keys(named, clusters[: named.sum()])
        rejects += unanswered
    subjects = dict(zip(titles, clusters[named.sum() :], strict=True))
    del clusters, named
    subjects = _correct_ends(facts, subjects, corrections)
    heads, tails = facts.columns["keys"].T
    selfish = (heads == tails) & ~facts.is_literal
    rejects += [reject_fact(f, raw_triples, "same_head_and_tail") for f in facts[selfish]]
    facts = facts[~selfish]
    relation = cluster_relations(facts.count_statements())
    if disambiguator is not None:
        same, unanswered = confirm_same(
            "relations", list_relations(facts, relation), embedder, disambiguator
        )
        relation = {form: same.get(key, key) for form, key in relation.items()}
        rejects += unanswered
    facts, sizes = _group_facts(facts, relation)
    weights = np.array([*_weigh(facts, sizes)], dtype=np.float64)
    sure: Mask = weights >= min_confidence
    retained = np.repeat(sure, sizes)
    rejects += _reject_unsure(facts[~retained], raw_triples, chunks)
    facts, stated = facts[retained], _walk(facts[retained], sizes[sure])
    cited = {use.document: key for use, key in subjects.items()}
    ids = _name_clusters(facts, relation, raw_triples, former)
    known = former.read("relations", ["relation_id", "name"]) if former else None
    names = map_column(known, "relation_id", "name") if known else {}
    corrected = corrections, Comparer(embedder).compare
    weighed = zip(stated, weights[sure].tolist(), strict=True)
    rows = _build_triples(weighed, relation, ids, cited, documents, raw_triples, *corrected)
    triples = build_table("triples", rows)
    rejects += [
        make_reject("resolve", "unmatched_correction", *unmatched)
        for unmatched in corrections.list_unmatched(classes=False)
    ]
    return {
        "entities": build_table(
            "entities", _build_entities(facts, subjects, mentions, ids, corrections)
        ),
        "relations": build_table("relations", _build_relations(facts, relation, ids, names)),
        "triples": triples,
        "rejects": build_rejects(rejects),
    }


def _correct_ends(
    facts: Facts, subjects: Mapping[Use, str], corrections: Corrections
) -> dict[Use, str]:
    """Applies the corrections to the clusters of ends; returns the corrected ones of titles."""
    where = np.stack([np.ones(len(facts), dtype=bool), ~facts.is_literal], axis=1)
    words, columns = facts.table, facts.columns
    names = [*(words.names[n] for n in columns["names"][where]), *(use.name for use in subjects)]
    keys = [*(words.keys[n] for n in columns["keys"][where]), *subjects.values()]
    made = corrections.unite(names, keys)
    facts.set_keys(where, made[: where.sum()])
    return dict(zip(subjects, made[where.sum() :], strict=True))


_Ids = Mapping[tuple[str, str], str]
"""The id of each cluster, by `entity` or `relation` and its key."""


def _name_clusters(
    facts: Facts, relation: Mapping[str, str], raw_triples: pa.Table, former: Former | None
) -> _Ids:
    """The ids of clusters: former ids by majority of their statements, else made from the key.

    So the statements of an unchanged document keep their ids.
    """
    words, (heads, tails) = pa.array(facts.table.keys, pa.string()), facts.columns["keys"].T
    keys = [relation.get(Statement(*pair).key) for pair in facts.table.relations]
    relation_keys = pa.array(keys, pa.string())
    columns = {
        "head_id": ("entity", words.take(pa.array(heads))),
        "tail_id": ("entity", words.take(pa.array(tails, mask=facts.is_literal))),
        "relation_id": ("relation", relation_keys.take(pa.array(facts.columns["relation"]))),
    }
    votes: Counter[tuple[str, tuple[str, str]]] = Counter()
    if former is not None:
        known = former.read("triples", [*columns, "raw_triple_ids"])
        raws = raw_triples["raw_triple_id"].take(pa.array(facts.columns["row"]))
        places = find_rows(raws, pc.list_flatten(known["raw_triple_ids"]))
        rows = pc.list_parent_indices(known["raw_triple_ids"]).take(
            pa.array(places, mask=places < 0)
        )
        for name, (kind, keys) in columns.items():
            both = pa.table({"id": known[name].take(rows), "key": keys}).drop_null()
            counted = both.group_by(["id", "key"]).aggregate([([], "count_all")]).to_pydict()
            for id_, key, count in zip(*counted.values(), strict=True):
                votes[id_, (kind, key)] += count
    ids: dict[tuple[str, str], str] = {}
    taken: set[str] = set()
    for id_, cluster in sorted(votes, key=lambda vote: (-votes[vote], vote)):
        if cluster not in ids and id_ not in taken:
            ids[cluster] = id_
            taken.add(id_)
    named = {(k, key) for k, keys in columns.values() for key in keys.unique().to_pylist() if key}
    for kind, key in sorted(named - ids.keys()):
        parts = [key]
        while (made := content_id(kind, *parts)) in taken:  # it went on in another cluster
            parts.append("again")
        ids[kind, key] = made
    return ids


def _group_facts(facts: Facts, relation: Mapping[str, str]) -> tuple[Facts, Numbers]:
    """The statements sorted by fact, and the number of statements of each fact."""
    known: Codes[str] = Codes()
    codes = [known[relation.get(Statement(*pair).key, "")] for pair in facts.table.relations]
    relations = np.array(codes, dtype=np.int64)[facts.columns["relation"]]
    columns = (facts.columns["negated"], facts.is_literal, *facts.columns["keys"].T, relations)
    order = np.lexsort(columns)
    new = np.any([np.diff(column[order], prepend=~column[order[:1]]) for column in columns], axis=0)
    return facts[order], np.diff(np.flatnonzero(new), append=len(order))


def _walk(facts: Facts, sizes: Numbers) -> Iterator[list[Fact]]:
    """The statements of each fact."""
    rest = iter(facts)
    for size in sizes.tolist():
        yield list(islice(rest, size))


def _list_uses(facts: Iterable[Fact]) -> Iterable[Use]:
    """The uses of names in facts; literals and common nouns are neighbours only."""
    for fact in facts:
        for side, end in fact.entities:
            neighbour = fact.tail if side == "head" else fact.head
            if end.key is None:
                yield Use(end.name, fact.document, end.type, side, fact.form.key, neighbour.name)


def _list_titles(documents: pa.Table, facts: Facts, raw_triples: pa.Table) -> Iterator[Use]:
    """The titles that are names, each with the type of the first name with the same key.

    A title that ends as a person's name, or the lone name of its lead subject, need not stand in
    the text in full; any other has to be a name in it. Words in brackets or after a comma tell it
    from its namesakes.
    """
    starts, _ = _read_ends(raw_triples, "head")
    starts = np.where(starts < 0, _NOWHERE, starts)[facts.columns["row"]]
    names: Codes[str] = Codes()
    document_of = np.array([names[document] for _, document in facts.table.chunks], dtype=np.int64)
    document_of = document_of[facts.columns["chunk"]]
    order = np.lexsort((starts, document_of))
    bounds = np.searchsorted(document_of[order], np.arange(len(names) + 1))
    for document, title, whole in _read_titles(documents):
        if document not in names:
            continue
        first, last = bounds[names[document]], bounds[names[document] + 1]
        there = list(facts[order[first:last]])
        named: dict[str, End] = {}
        for fact in there:
            for _, end in fact.entities:
                named.setdefault(parse_name(end.name).key, end)
        name, short = parse_name(title), title.split(",")[0]
        if name.key not in named and parse_name(short).key in named:
            title, name = short, parse_name(short)
        lead = named.get(name.key) or _find_lead(name, (fact.head for fact in there))
        if lead is not None and lead.key is None and not name.words[0].endswith("ing"):
            yield Use(title, document, lead.type, "head", "", whole, is_title=True)


def _read_titles(documents: pa.Table) -> Iterator[tuple[str, str, str]]:
    """Document, title without the words that tell namesakes apart, and whole title, of names."""
    for row in documents.select(["document_id", "title", "text"]).to_pylist():
        title = find_named(BRACKET.sub("", row["title"] or "").strip(), row["text"])
        name = parse_name(title)
        if name.proper and len(name.words) <= _MAX_TITLE:
            yield row["document_id"], title, row["title"]


def _find_lead(title: Name, heads: Iterable[End]) -> End | None:
    """The first subject that the title names in full, if it is a person or a lone name."""
    for end in heads:
        name = parse_name(end.name)
        if name.bare[-1:] == title.bare[-1:]:
            return end if end.type == "PERSON" or may_stand_alone(name, end.type, title) else None
    return None


def _read_ends(raw_triples: pa.Table, part: str) -> tuple[Numbers, Numbers]:
    """Start and end of a part of each raw triple; -1 where unknown."""
    span = raw_triples[f"{part}_span"].combine_chunks()
    first, last = (
        pc.fill_null(pc.struct_field(span, name), -1).to_numpy(zero_copy_only=False)
        for name in ("start", "end")
    )
    return first, last


def _find_nouns(
    facts: Facts, raw_triples: pa.Table, chunks: pa.Table, documents: pa.Table
) -> Iterator[str | None]:
    """The clusters of heads and tails that are common nouns, and the words of literals.

    A noun's key has the source of its document, not its text: edits elsewhere change no id.
    """
    titles = {
        (word, document)
        for document, title, _ in _read_titles(documents)
        for word in {parse_name(title).key, *parse_name(title).words}
    }
    nouns = resolve_nouns(_list_phrases(facts, raw_triples, chunks), titles)
    sources = map_column(documents, "document_id", "source")
    origins, columns = [(key, sources[key]) for _, key in facts.table.chunks], facts.columns
    ends = zip(columns["chunk"], columns["names"][:, 1], facts.is_literal.tolist(), strict=True)
    for chunk, tail, is_literal in ends:
        for noun in islice(nouns, 2 - is_literal):
            yield noun and noun.replace(*origins[chunk])
        yield from [" ".join(facts.table.names[tail].split())] * is_literal


def _list_phrases(facts: Facts, raw_triples: pa.Table, chunks: pa.Table) -> Iterator[Phrase]:
    """The ends that are entities, as the text words them."""
    starts = {side: _read_ends(raw_triples, side)[0] for side in ("head", "tail")}
    _, relation_starts = _read_ends(raw_triples, "relation")
    texts, firsts = combine_column(chunks["text"]), chunks["start"].to_numpy()
    for fact in facts:
        text, first = texts[fact.chunk].as_py(), int(firsts[fact.chunk])
        for side, end in fact.entities:
            yield Phrase(
                *(end.name, fact.document),
                _read_before(
                    end.name,
                    int(starts[side][fact.row]),
                    int(relation_starts[fact.row]) if side == "tail" else -1,
                    *(first, text),
                ),
                is_typed=end.type != UNKNOWN,
                is_head=side == "head",
                is_kind=side == "tail" and names_kind(fact.form),
                is_general=is_present(fact.form, fact.relation) and not fact.tail.is_literal,
                is_rule=side == "head" and states_rule(fact.form),
            )


def _read_before(name: str, position: int, after: int, start: int, text: str) -> str | None:
    """The last word before an end; None if its place is unknown.

    `position`: start of the end, `after`: end of the part before it; -1 where unknown.
    """
    position = position - start if position >= 0 else text.find(name, max(0, after - start))
    if position < 0:
        return None
    return (text[max(0, position - _BEFORE) : position].split() or [""])[-1]


def _build_entities(
    facts: Facts,
    titles: Mapping[Use, str],
    mention_table: pa.Table,
    ids: _Ids,
    corrections: Corrections,
) -> Iterator[Row]:
    """The rows of entities, from their ends."""
    words, columns = facts.table, facts.columns
    titled: dict[str, list[str]] = defaultdict(list)
    for use, key in titles.items():
        titled[key].append(use.name)
    is_entity = np.stack([np.ones(len(facts), dtype=bool), ~facts.is_literal], axis=1).ravel()
    keys = columns["keys"].ravel()
    order = np.flatnonzero(is_entity)
    order = order[np.argsort(keys[order], kind="stable")]
    keys = keys[order]
    for ends in np.split(order, np.flatnonzero(np.diff(keys)) + 1) if len(order) else ():
        key = words.keys[columns["keys"].ravel()[ends[0]]]
        names = Counter(words.names[name] for name in columns["names"].ravel()[ends].tolist())
        names.update(titled.get(key, ()))
        types: Counter[str] = Counter()
        mentions: set[int] = set()
        for end in ends.tolist():
            types.update(words.types[columns["types"].item(end)][1])
            first, last = columns["mentions"][end // 2, end % 2 : end % 2 + 2].tolist()
            mentions.update(words.mentions[first:last])
        name = corrections.name(key) or pick_name(names)
        yield {
            "entity_id": ids["entity", key],
            "name": name,
            "type": vote_type(types),
            "surface_forms": sorted({*names, name}),
            "mentions": _take_ids(mention_table["mention_id"], mentions),
        }


def _build_relations(
    facts: Facts, relation: Mapping[str, str], ids: _Ids, names: Mapping[str, str]
) -> Iterable[Row]:
    wordings: dict[str, Counter[str]] = defaultdict(Counter)
    active: dict[str, set[str]] = defaultdict(set)
    for statement, count in facts.count_statements().items():
        key = relation[statement.key]
        wordings[key][statement.wording] += count
        inverse = spell_key(statement.form.inverse_key or "", statement.wording)
        if inverse in relation:
            active[key].add(relation[inverse])
    for key, counts in wordings.items():
        inverses = active[key] & wordings.keys()
        # "was a" says less than "was the", whichever is the more frequent.
        present = Counter({w: n + counts.total() * w.endswith(" a") for w, n in counts.items()})
        yield {
            "relation_id": ids["relation", key],
            "name": names.get(ids["relation", key]) or pick_most_common(present),
            "inverse_of": ids["relation", min(inverses)] if inverses else None,
            "surface_forms": sorted(counts),
            "support": counts.total(),
        }


def _weigh(facts: Facts, sizes: Numbers) -> Iterator[float]:
    """For each fact, the probability that at least one of its statements is right.

    Repeats within a chunk count once.
    """
    rest = zip(facts.columns["chunk"], facts.columns["confidence"].tolist(), strict=True)
    return (combine_chances(islice(rest, size)) for size in sizes.tolist())


def _reject_unsure(facts: Facts, raw_triples: pa.Table, chunks: pa.Table) -> Iterator[Row]:
    """A reject for each statement of facts with too little confidence, with its sentence."""
    texts = {row["chunk_id"]: row for row in chunks.to_pylist()} if len(facts) else {}
    parts = [_read_ends(raw_triples, part)[1] for part in ("head", "relation", "tail")]
    sentences: dict[str, list[Span]] = {}
    for fact in facts:
        chunk = texts[fact.chunk_id]
        last = max(int(part[fact.row]) for part in parts)
        if chunk["chunk_id"] not in sentences:
            sentences[chunk["chunk_id"]] = list(split_sentences(chunk["text"]))
        spans = sentences[chunk["chunk_id"]] if last >= 0 else ()
        sentence = next((span for span in spans if span.end >= last - chunk["start"]), None)
        words = chunk["text"][sentence.start : sentence.end].split() if sentence else []
        yield reject_fact(fact, raw_triples, "low_confidence", " ".join(words))


def _build_triples(
    weighed: Iterable[tuple[Sequence[Fact], float]],
    relation: Mapping[str, str],
    ids: _Ids,
    subjects: Mapping[str, str],
    documents: pa.Table,
    raw_triples: pa.Table,
    corrections: Corrections,
    compare: Compare,
) -> Iterable[Row]:
    titles = {
        row["document_id"]: (cited, cite_document(row["title"], "") is not None)
        for row in documents.select(["document_id", "title"])
        .append_column("opening", pc.utf8_slice_codeunits(documents["text"], 0, OPENING))
        .to_pylist()
        if (cited := cite_document(row["title"], row["opening"]))
    }
    for facts, weight in weighed:
        is_literal, tail = facts[0].tail.is_literal, str(facts[0].tail.key)
        head_id = ids["entity", str(facts[0].head.key)]
        relation_id = ids["relation", relation[Statement(facts[0].relation, facts[0].form).key]]
        tail_id = None if is_literal else ids["entity", tail]
        denied = ["negated"] if facts[0].negated else []
        qualifiers = unite_qualifiers(
            pair
            for fact in facts
            for pair in (*fact.qualifiers, *_place_nouns(fact, titles, subjects))
        )
        wordings = [deny(f.relation) if f.negated else f.relation for f in facts]
        ends = (
            (str(facts[0].head.key), facts[0].head.name),
            (None if is_literal else tail, facts[0].tail.name),
        )
        verdict = (
            corrections.judge(ends[0], {*wordings}, ends[1], compare) if corrections.entries else []
        )
        is_former = len(verdict) > 1
        held = ("former" if is_former else "reported") if CORRECTED in dict(verdict) else None
        qualifiers = unite_qualifiers((*qualifiers, *verdict)) if verdict else qualifiers
        first, last = date_fact(qualifiers, wordings[0])
        yield {
            "triple_id": content_id(
                "triple", head_id, relation_id, tail_id or tail, is_literal, *denied
            ),
            "head_id": head_id,
            "relation_id": relation_id,
            "tail_id": tail_id,
            "literal": tail if is_literal else None,
            "negated": facts[0].negated,
            "modality": held or read_modality(facts[0].relation),
            "valid_from": first,
            "valid_to": last,
            "qualifiers": qualifiers,
            "confidence": weight,
            "raw_triple_ids": _take_ids(raw_triples["raw_triple_id"], {fact.row for fact in facts}),
        }


def _take_ids(ids: pa.ChunkedArray, rows: Iterable[int]) -> list[str]:
    """The ids of some rows, ascending."""
    return [ids[row].as_py() for row in sorted(rows)]


def _place_nouns(
    fact: Fact, titles: Mapping[str, tuple[str, bool]], subjects: Mapping[str, str]
) -> Qualifiers:
    """The name of the fact's document as qualifier, if it identifies an end of the fact.

    It does for the row of a table, and for a common noun of this document, unless the title names
    the other end or has the words of the noun. A statement in the past of a text without a title
    is about the case of that text: "mortality was lower".
    """
    ends = {str(end.key): end.name for _, end in fact.entities}
    if fact.document not in titles or subjects.get(fact.document) in ends:
        return
    title, is_title = titles[fact.document]
    words = frozenset(parse_name(title).words)
    past = not (is_title or is_present(fact.form, fact.relation))
    names = [(key, parse_name(name)) for key, name in ends.items()]
    nouns = [n.words for key, n in names if is_of_document(key) or (past and not n.proper)]
    above = dict(fact.qualifiers).get(TABLE, title)
    if above != title or any(not words.issubset(noun) for noun in nouns):
        yield DOCUMENT, title
