"""Resolve: raw triples become facts between entities, each fact once (`f_dis`)."""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.documents.qualifiers import (
    BRACKET,
    DOCUMENT,
    OPENING,
    Qualifiers,
    cite_document,
    unite_qualifiers,
)
from kpyramid.documents.sentences import Span, split_sentences
from kpyramid.embeddings.port import Embedder
from kpyramid.graph.duplicates import Disambiguator
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
from kpyramid.graph.relations import Statement, cluster_relations
from kpyramid.keys import content_id
from kpyramid.numerics.chances import combine_chances
from kpyramid.pipeline.stages.facts import (
    End,
    Fact,
    confirm_same,
    find_cluster,
    list_entities,
    list_relations,
    pick_most_common,
    pick_name,
    read_facts,
    reject_fact,
)
from kpyramid.pipeline.stages.tables import Row, build_rejects, build_table
from kpyramid.storage.contracts import load_contracts

_MAX_TITLE = 6
"""Words of a title that may be a name; a longer one is a sentence."""
_Said = tuple[str, str, str, bool]
"""What makes a fact: keys of head, relation and tail, and whether the tail is a literal."""
Numbers = npt.NDArray[np.int64]
_NOWHERE = 1 << 60
"""Where what has no place is put: behind everything."""
_BEFORE = 40
"""Characters that hold the word before a noun."""


def run(
    documents: pa.Table,
    mentions: pa.Table,
    raw_triples: pa.Table,
    chunks: pa.Table,
    *,
    embedder: Embedder,
    disambiguator: Disambiguator | None,
    min_confidence: float,
) -> dict[str, pa.Table]:
    """`entities`, `relations`, `triples`, and `rejects`.

    A raw triple is a reject when it is denied, a condition, somebody's words, or says a
    thing of itself, and when the fact that it states is not as sure as `min_confidence`.

    `kpyramid.graph` says which names are one entity and which phrases one relation; a
    disambiguator is asked about those that are nearly so. A tail that is a date, a number or a
    quantity is a literal. What only its document can place says the document's title.
    """
    mentions, raw_triples = (  # rows of facts ascend as their ids do
        load_contracts()[name].finish(table)
        for name, table in (("mentions", mentions), ("raw_triples", raw_triples))
    )
    facts, rejects = read_facts(mentions, raw_triples, chunks)
    _find_nouns(facts, raw_triples, chunks, documents)
    titles = list(_list_titles(documents, facts, raw_triples))
    cluster = resolve_names([*_list_uses(facts), *titles], embedder)
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
            rejects.append(reject_fact(fact, raw_triples, "same_head_and_tail"))
        else:
            kept.append(fact)
    relation = cluster_relations(_list_statements(kept, cluster), embedder)
    if disambiguator is not None:
        same, unanswered = confirm_same(
            "relations", list_relations(kept, relation), embedder, disambiguator
        )
        relation = {form: same.get(key, key) for form, key in relation.items()}
        rejects += unanswered
    facts = kept
    subjects = {use.document: cluster[use.name, use.document] for use in titles}
    groups: dict[_Said, list[Fact]] = defaultdict(list)
    for fact in facts:
        groups[_identify(fact, cluster, relation)].append(fact)
    unsure = {said for said, stated in groups.items() if _weigh(stated) < min_confidence}
    doubtful = [fact for said in unsure for fact in groups.pop(said)]
    rejects += _reject_unsure(doubtful, raw_triples, chunks)
    kept = [fact for fact in facts if _identify(fact, cluster, relation) in groups]
    return {
        "entities": build_table("entities", _build_entities(kept, cluster, titles, mentions)),
        "relations": build_table("relations", _build_relations(kept, relation)),
        "triples": build_table("triples", _build_triples(groups, subjects, documents, raw_triples)),
        "rejects": build_rejects(rejects),
    }


def _list_uses(facts: Iterable[Fact]) -> Iterable[Use]:
    """Each name as each fact uses it; literals and common nouns are neighbours only."""
    for fact in facts:
        for side, end in fact.entities:
            other = fact.tail if side == "head" else fact.head
            if end.noun is None:
                yield Use(end.name, fact.document, end.type, side, fact.form.key, other.name)


def _list_titles(
    documents: pa.Table, facts: Iterable[Fact], raw_triples: pa.Table
) -> Iterator[Use]:
    """The titles that are names, each with the type of the first name that ends as it does.

    The title of a person may say more than the text does, as may one that ends with the lone
    name of its lead subject; any other has to be a name in it. What stands in brackets or after
    a comma tells it from its namesakes.
    """
    heads: dict[str, list[End]] = defaultdict(list)
    ends: dict[str, dict[str, End]] = defaultdict(dict)
    starts, _ = _read_ends(raw_triples, "head")
    starts = np.where(starts < 0, _NOWHERE, starts)
    for fact in sorted(facts, key=lambda fact: (starts[fact.row], fact.row)):
        heads[fact.document].append(fact.head)
        for _, end in fact.entities:
            ends[fact.document].setdefault(parse_name(end.name).key, end)
    for document, title, whole in _read_titles(documents):
        name, named = parse_name(title), ends[document]
        short = title.split(",")[0]
        if name.key not in named and parse_name(short).key in named:
            title, name = short, parse_name(short)
        lead = named.get(name.key) or _find_lead(name, heads[document])
        if lead is not None and lead.noun is None and not name.words[0].endswith("ing"):
            yield Use(title, document, lead.type, "head", "", whole, is_title=True)


def _read_titles(documents: pa.Table) -> Iterator[tuple[str, str, str]]:
    """Document, title without what tells it from namesakes, and whole title, of names."""
    for row in documents.select(["document_id", "title"]).to_pylist():
        title = BRACKET.sub("", row["title"] or "").strip()
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
    """First character of a part of each raw triple, and the one behind it; -1 where unknown."""
    span = raw_triples[f"{part}_span"].combine_chunks()
    first, last = (
        pc.fill_null(pc.struct_field(span, name), -1).to_numpy(zero_copy_only=False)
        for name in ("start", "end")
    )
    return first, last


def _find_nouns(
    facts: Sequence[Fact], raw_triples: pa.Table, chunks: pa.Table, documents: pa.Table
) -> None:
    """Gives the ends of facts the clusters of common nouns."""
    starts = {side: _read_ends(raw_triples, side)[0] for side in ("head", "tail")}
    _, said = _read_ends(raw_triples, "relation")
    texts = {
        row["chunk_id"]: (row["start"], row["text"])
        for row in chunks.select(["chunk_id", "start", "text"]).to_pylist()
    }
    phrases = [
        Phrase(
            *(end.name, fact.document),
            _read_before(
                end.name,
                int(starts[side][fact.row]),
                int(said[fact.row]) if side == "tail" else -1,
                *texts[fact.chunk_id],
            ),
            is_typed=end.type != UNKNOWN,
            is_head=side == "head",
            is_kind=side == "tail" and names_kind(fact.form),
            is_general=is_present(fact.form, fact.relation) and not fact.tail.is_literal,
            is_rule=side == "head" and states_rule(fact.form),
        )
        for fact in facts
        for side, end in fact.entities
    ]
    titles = {
        (word, document)
        for document, title, _ in _read_titles(documents)
        for word in {parse_name(title).key, *parse_name(title).words}
    }
    nouns = iter(resolve_nouns(phrases, titles))
    for fact in facts:
        for _, end in fact.entities:
            end.noun = next(nouns)


def _read_before(name: str, at: int, after: int, start: int, text: str) -> str | None:
    """The last word before an end; none when its place is not known.

    `at`: where the end begins, `after`: where what stands before it ends; -1 where unknown.
    """
    at = at - start if at >= 0 else text.find(name, max(0, after - start))
    if at < 0:
        return None
    words = text[max(0, at - _BEFORE) : at].split()
    return sys.intern(words[-1]) if words else ""


def _list_statements(
    facts: Iterable[Fact], cluster: Mapping[tuple[str, str], str]
) -> Iterable[Statement]:
    for fact in facts:
        yield Statement(
            fact.form,
            fact.relation,
            find_cluster(cluster, fact, "head"),
            find_cluster(cluster, fact, "tail"),
            (fact.head.type, fact.tail.type),
        )


def _build_entities(
    facts: Iterable[Fact],
    cluster: Mapping[tuple[str, str], str],
    titles: Iterable[Use],
    found: pa.Table,
) -> Iterable[Row]:
    names: dict[str, Counter[str]] = defaultdict(Counter)
    types: dict[str, Counter[str]] = defaultdict(Counter)
    mentions: dict[str, set[int]] = defaultdict(set)
    for fact in facts:
        for side, end in fact.entities:
            key = find_cluster(cluster, fact, side)
            names[key][end.name] += 1
            types[key].update(end.types)
            mentions[key].update(end.mentions)
    for title in titles:
        key = cluster[title.name, title.document]
        if key in names:
            names[key][title.name] += 1
    for key, wordings in names.items():
        yield {
            "entity_id": content_id("entity", key),
            "name": pick_name(wordings),
            "type": vote_type(types[key]),
            "surface_forms": sorted(wordings),
            "mentions": _take_ids(found["mention_id"], mentions[key]),
        }


def _build_relations(facts: Iterable[Fact], relation: Mapping[str, str]) -> Iterable[Row]:
    wordings: dict[str, Counter[str]] = defaultdict(Counter)
    active: dict[str, set[str]] = defaultdict(set)
    for fact in facts:
        key = relation[fact.form.key]
        wordings[key][fact.relation] += 1
        inverse = fact.form.inverse_key
        if inverse is not None and inverse in relation:
            active[key].add(relation[inverse])
    for key, counts in wordings.items():
        told = active[key] & wordings.keys()
        yield {
            "relation_id": content_id("relation", key),
            "name": pick_most_common(counts),
            "inverse_of": content_id("relation", min(told)) if told else None,
            "surface_forms": sorted(counts),
            "support": counts.total(),
        }


def _identify(
    fact: Fact, cluster: Mapping[tuple[str, str], str], relation: Mapping[str, str]
) -> _Said:
    head, tail = find_cluster(cluster, fact, "head"), find_cluster(cluster, fact, "tail")
    return head, relation[fact.form.key], tail, fact.tail.is_literal


def _weigh(statements: Iterable[Fact]) -> float:
    """The chance that at least one statement is right: what one chunk says twice is said once."""
    return combine_chances((fact.chunk_id, fact.confidence) for fact in statements)


def _reject_unsure(facts: Sequence[Fact], raw_triples: pa.Table, chunks: pa.Table) -> Iterator[Row]:
    """A reject for each statement of facts that are not sure enough, with its sentence."""
    texts = {row["chunk_id"]: row for row in chunks.to_pylist()} if facts else {}
    parts = [_read_ends(raw_triples, part)[1] for part in ("head", "relation", "tail")]
    sentences: dict[str, list[Span]] = {}
    for fact in facts:
        chunk = texts[fact.chunk_id]
        last = max(int(part[fact.row]) for part in parts)
        if chunk["chunk_id"] not in sentences:
            sentences[chunk["chunk_id"]] = list(split_sentences(chunk["text"]))
        found = sentences[chunk["chunk_id"]] if last >= 0 else ()
        own = next((span for span in found if span.end >= last - chunk["start"]), None)
        words = chunk["text"][own.start : own.end].split() if own else []
        yield reject_fact(fact, raw_triples, "low_confidence", " ".join(words))


def _build_triples(
    groups: Mapping[_Said, Sequence[Fact]],
    subjects: Mapping[str, str],
    documents: pa.Table,
    raw_triples: pa.Table,
) -> Iterable[Row]:
    titles = {
        row["document_id"]: cited
        for row in documents.select(["document_id", "title"])
        .append_column("opening", pc.utf8_slice_codeunits(documents["text"], 0, OPENING))
        .to_pylist()
        if (cited := cite_document(row["title"], row["opening"]))
    }
    for said, facts in groups.items():
        head, key, tail, is_literal = said
        head_id = content_id("entity", head)
        tail_id = None if is_literal else content_id("entity", tail)
        yield {
            "triple_id": content_id("triple", head_id, key, tail_id or tail, is_literal),
            "head_id": head_id,
            "relation_id": content_id("relation", key),
            "tail_id": tail_id,
            "literal": tail if is_literal else None,
            "qualifiers": unite_qualifiers(
                pair
                for fact in facts
                for pair in (
                    *fact.qualifiers,
                    *_place_nouns(fact, said, titles, subjects),
                )
            ),
            "confidence": _weigh(facts),
            "raw_triple_ids": _take_ids(raw_triples["raw_triple_id"], {fact.row for fact in facts}),
        }


def _take_ids(ids: pa.ChunkedArray, rows: Iterable[int]) -> list[str]:
    """The ids of some rows; they ascend as the rows do."""
    return [ids[row].as_py() for row in sorted(rows)]


def _place_nouns(
    fact: Fact, said: _Said, titles: Mapping[str, str], subjects: Mapping[str, str]
) -> Qualifiers:
    """What the document is called, where an end is a common noun that means its own thing.

    None where the other end is what the title names, or the noun has the words of the title.
    """
    title = titles.get(fact.document)
    head, _, tail, is_literal = said
    ends = {head: fact.head.name} | ({} if is_literal else {tail: fact.tail.name})
    if title is None or subjects.get(fact.document) in ends:
        return
    words = frozenset(parse_name(title).words)
    nouns = [parse_name(name).words for key, name in ends.items() if is_of_document(key)]
    if any(not words.issubset(noun) for noun in nouns):
        yield DOCUMENT, title
