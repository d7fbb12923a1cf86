"""Resolve: raw triples become facts between entities, each fact once (`f_dis`)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.completion.corrections import Compare, Corrections
from kpyramid.documents.qualifiers import (
    BRACKET,
    CORRECTED,
    DOCUMENT,
    OPENING,
    Qualifiers,
    cite_document,
    unite_qualifiers,
)
from kpyramid.documents.sentences import Span, split_sentences
from kpyramid.documents.validity import date_fact
from kpyramid.documents.words import deny
from kpyramid.embeddings.port import Embedder
from kpyramid.extraction.facts.coreference import find_named
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
from kpyramid.graph.relations import Codes, Numbers, Statement, cluster_relations, spell_key
from kpyramid.graph.synonyms.comparison import Comparer
from kpyramid.graph.synonyms.meaning import read_modality
from kpyramid.keys import content_id
from kpyramid.numerics.chances import combine_chances
from kpyramid.pipeline.stages.facts import (
    End,
    Fact,
    Facts,
    confirm_same,
    list_entities,
    list_relations,
    pick_most_common,
    pick_name,
    read_facts,
    reject_fact,
)
from kpyramid.pipeline.stages.tables import Row, build_rejects, build_table, make_reject
from kpyramid.storage.contracts import combine_column, find_rows, load_contracts, map_column
from kpyramid.storage.former import Former

_MAX_TITLE = 6
"""Words of a title that may be a name; a longer one is a sentence."""
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
    former: Former | None,
    embedder: Embedder,
    disambiguator: Disambiguator | None,
    min_confidence: float,
    corrections: Corrections,
) -> dict[str, pa.Table]:
    """`entities`, `relations`, `triples`, and `rejects`.

    A raw triple is a reject when it is a condition, somebody's words, or says a
    thing of itself, and when the fact that it states is not as sure as `min_confidence`.

    `kpyramid.graph` says which names are one entity and which phrases one relation; a
    disambiguator is asked about those that are nearly so. A tail that is a date, a number or a
    quantity is a literal. What only its document can place says the document's title. An entity
    keeps the id that most of its statements had in the `former` snapshot, a relation the id and
    the name that most of its wordings had.
    """
    mentions, raw_triples = (  # rows of facts ascend as their ids do
        load_contracts()[name].finish(table)
        for name, table in (("mentions", mentions), ("raw_triples", raw_triples))
    )
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
    relation = cluster_relations(Statement(fact.relation, fact.form) for fact in facts)
    if disambiguator is not None:
        same, unanswered = confirm_same(
            "relations", list_relations(facts, relation), embedder, disambiguator
        )
        relation = {form: same.get(key, key) for form, key in relation.items()}
        rejects += unanswered
    facts, sizes = _group_facts(facts, relation)
    sure = np.array([_weigh(own) >= min_confidence for own in _walk(facts, sizes)], dtype=bool)
    kept = np.repeat(sure, sizes)
    rejects += _reject_unsure(facts[~kept], raw_triples, chunks)
    facts, stated = facts[kept], _walk(facts[kept], sizes[sure])
    cited = {use.document: key for use, key in subjects.items()}
    ids = _name_clusters(facts, relation, raw_triples, former)
    known = former.read("relations", ["relation_id", "name"]) if former else None
    names = map_column(known, "relation_id", "name") if known else {}
    corrected = corrections, Comparer(embedder).compare
    rows = _build_triples(stated, relation, ids, cited, documents, raw_triples, *corrected)
    triples = build_table("triples", rows)
    rejects += [
        make_reject("resolve", "unmatched_correction", *said)
        for said in corrections.list_unmatched(classes=False)
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
    """The titles with their clusters; these, and those of ends, as the corrections have them."""
    where = np.stack([np.ones(len(facts), dtype=bool), ~facts.is_literal], axis=1)
    words, columns = facts.table, facts.columns
    names = [*(words.names[at] for at in columns["names"][where]), *(use.name for use in subjects)]
    keys = [*(words.keys[at] for at in columns["keys"][where]), *subjects.values()]
    made = corrections.unite(names, keys)
    facts.set_keys(where, made[: where.sum()])
    return dict(zip(subjects, made[where.sum() :], strict=True))


_Ids = Mapping[tuple[str, str], str]
"""The id of each cluster, by `entity` or `relation` and its key."""


def _name_clusters(
    facts: Facts, relation: Mapping[str, str], raw_triples: pa.Table, former: Former | None
) -> _Ids:
    """Former ids go on where most of the statements are that had them; else one follows from a key.

    A statement of an unchanged document has the id that it had.
    """
    words, (heads, tails) = pa.array(facts.table.keys, pa.string()), facts.columns["keys"].T
    keys = [relation.get(Statement(*pair).key) for pair in facts.table.relations]
    said = pa.array(keys, pa.string())
    own = {
        "head_id": ("entity", words.take(pa.array(heads))),
        "tail_id": ("entity", words.take(pa.array(tails, mask=facts.is_literal))),
        "relation_id": ("relation", said.take(pa.array(facts.columns["relation"]))),
    }
    votes: Counter[tuple[str, tuple[str, str]]] = Counter()
    if former is not None:
        known = former.read("triples", [*own, "raw_triple_ids"])
        raws = raw_triples["raw_triple_id"].take(pa.array(facts.columns["row"]))
        places = find_rows(raws, pc.list_flatten(known["raw_triple_ids"]))
        rows = pc.list_parent_indices(known["raw_triple_ids"]).take(
            pa.array(places, mask=places < 0)
        )
        for name, (kind, keys) in own.items():
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
    found = {(kind, key) for kind, keys in own.values() for key in keys.unique().to_pylist() if key}
    for kind, key in sorted(found - ids.keys()):
        parts = [key]
        while (made := content_id(kind, *parts)) in taken:  # it went on in another cluster
            parts.append("again")
        ids[kind, key] = made
    return ids


def _group_facts(facts: Facts, relation: Mapping[str, str]) -> tuple[Facts, Numbers]:
    """The statements of one fact after those of another, and how many each fact has."""
    known: Codes[str] = Codes()
    said = [known[relation.get(Statement(*pair).key, "")] for pair in facts.table.relations]
    relations = np.array(said, dtype=np.int64)[facts.columns["relation"]]
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
    """Each name as each fact uses it; literals and common nouns are neighbours only."""
    for fact in facts:
        for side, end in fact.entities:
            other = fact.tail if side == "head" else fact.head
            if end.key is None:
                yield Use(end.name, fact.document, end.type, side, fact.form.key, other.name)


def _list_titles(documents: pa.Table, facts: Facts, raw_triples: pa.Table) -> Iterator[Use]:
    """The titles that are names, each with the type of the first name that ends as it does.

    The title of a person may say more than the text does, as may one that ends with the lone
    name of its lead subject; any other has to be a name in it. What stands in brackets or after
    a comma tells it from its namesakes.
    """
    starts, _ = _read_ends(raw_triples, "head")
    starts = np.where(starts < 0, _NOWHERE, starts)[facts.columns["row"]]
    names: Codes[str] = Codes()
    own = np.array([names[document] for _, document in facts.table.chunks], dtype=np.int64)
    own = own[facts.columns["chunk"]]
    order = np.lexsort((starts, own))
    bounds = np.searchsorted(own[order], np.arange(len(names) + 1))
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
    """Document, title without what tells it from namesakes, and whole title, of names."""
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
    """First character of a part of each raw triple, and the one behind it; -1 where unknown."""
    span = raw_triples[f"{part}_span"].combine_chunks()
    first, last = (
        pc.fill_null(pc.struct_field(span, name), -1).to_numpy(zero_copy_only=False)
        for name in ("start", "end")
    )
    return first, last


def _find_nouns(
    facts: Facts, raw_triples: pa.Table, chunks: pa.Table, documents: pa.Table
) -> Iterator[str | None]:
    """The clusters of heads and tails that are common nouns, the words of literals.

    A noun is known by the source of its document, not by its text: an edit elsewhere changes no id.
    """
    titles = {
        (word, document)
        for document, title, _ in _read_titles(documents)
        for word in {parse_name(title).key, *parse_name(title).words}
    }
    walk = partial(_list_phrases, facts, raw_triples, chunks)
    nouns, sources = resolve_nouns(walk, titles), map_column(documents, "document_id", "source")
    for fact in facts:
        own = fact.document, sources[fact.document]
        yield from [(noun := next(nouns)) and noun.replace(*own) for _ in fact.entities]
        yield from [" ".join(fact.tail.name.split())] * fact.tail.is_literal


def _list_phrases(facts: Facts, raw_triples: pa.Table, chunks: pa.Table) -> Iterator[Phrase]:
    """The ends that are entities as their text has them."""
    starts = {side: _read_ends(raw_triples, side)[0] for side in ("head", "tail")}
    _, said = _read_ends(raw_triples, "relation")
    texts, firsts = combine_column(chunks["text"]), chunks["start"].to_numpy()
    for fact in facts:
        text, first = texts[fact.chunk].as_py(), int(firsts[fact.chunk])
        for side, end in fact.entities:
            yield Phrase(
                *(end.name, fact.document),
                _read_before(
                    end.name,
                    int(starts[side][fact.row]),
                    int(said[fact.row]) if side == "tail" else -1,
                    *(first, text),
                ),
                is_typed=end.type != UNKNOWN,
                is_head=side == "head",
                is_kind=side == "tail" and names_kind(fact.form),
                is_general=is_present(fact.form, fact.relation) and not fact.tail.is_literal,
                is_rule=side == "head" and states_rule(fact.form),
            )


def _read_before(name: str, at: int, after: int, start: int, text: str) -> str | None:
    """The last word before an end; none when its place is not known.

    `at`: where the end begins, `after`: where what stands before it ends; -1 where unknown.
    """
    at = at - start if at >= 0 else text.find(name, max(0, after - start))
    if at < 0:
        return None
    return (text[max(0, at - _BEFORE) : at].split() or [""])[-1]


def _build_entities(
    facts: Facts,
    titles: Mapping[Use, str],
    found: pa.Table,
    ids: _Ids,
    corrections: Corrections,
) -> Iterator[Row]:
    """Entity by entity, from the ends that are of one."""
    words, columns = facts.table, facts.columns
    titled: dict[str, list[str]] = defaultdict(list)
    for use, key in titles.items():
        titled[key].append(use.name)
    is_entity = np.stack([np.ones(len(facts), dtype=bool), ~facts.is_literal], axis=1).ravel()
    keys = columns["keys"].ravel()
    order = np.flatnonzero(is_entity)
    order = order[np.argsort(keys[order], kind="stable")]
    keys = keys[order]
    for own in np.split(order, np.flatnonzero(np.diff(keys)) + 1) if len(order) else ():
        key = words.keys[columns["keys"].ravel()[own[0]]]
        names = Counter(words.names[name] for name in columns["names"].ravel()[own].tolist())
        names.update(titled.get(key, ()))
        types: Counter[str] = Counter()
        mentions: set[int] = set()
        for end in own.tolist():
            types.update(words.types[columns["types"].item(end)][1])
            first, last = columns["mentions"][end // 2, end % 2 : end % 2 + 2].tolist()
            mentions.update(words.mentions[first:last])
        name = corrections.name(key) or pick_name(names)
        yield {
            "entity_id": ids["entity", key],
            "name": name,
            "type": vote_type(types),
            "surface_forms": sorted({*names, name}),
            "mentions": _take_ids(found["mention_id"], mentions),
        }


def _build_relations(
    facts: Iterable[Fact], relation: Mapping[str, str], ids: _Ids, names: Mapping[str, str]
) -> Iterable[Row]:
    wordings: dict[str, Counter[str]] = defaultdict(Counter)
    active: dict[str, set[str]] = defaultdict(set)
    for fact in facts:
        key = relation[Statement(fact.relation, fact.form).key]
        wordings[key][fact.relation] += 1
        inverse = spell_key(fact.form.inverse_key or "", fact.relation)
        if inverse in relation:
            active[key].add(relation[inverse])
    for key, counts in wordings.items():
        told = active[key] & wordings.keys()
        # "was a" says less than "was the", whichever is the more frequent.
        present = Counter({w: n + counts.total() * w.endswith(" a") for w, n in counts.items()})
        yield {
            "relation_id": ids["relation", key],
            "name": names.get(ids["relation", key]) or pick_most_common(present),
            "inverse_of": ids["relation", min(told)] if told else None,
            "surface_forms": sorted(counts),
            "support": counts.total(),
        }


def _weigh(statements: Iterable[Fact]) -> float:
    """The chance that at least one statement is right: what one chunk says twice is said once."""
    return combine_chances((fact.chunk_id, fact.confidence) for fact in statements)


def _reject_unsure(facts: Facts, raw_triples: pa.Table, chunks: pa.Table) -> Iterator[Row]:
    """A reject for each statement of facts that are not sure enough, with its sentence."""
    texts = {row["chunk_id"]: row for row in chunks.to_pylist()} if len(facts) else {}
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
    stated: Iterable[Sequence[Fact]],
    relation: Mapping[str, str],
    ids: _Ids,
    subjects: Mapping[str, str],
    documents: pa.Table,
    raw_triples: pa.Table,
    corrections: Corrections,
    compare: Compare,
) -> Iterable[Row]:
    titles = {
        row["document_id"]: cited
        for row in documents.select(["document_id", "title"])
        .append_column("opening", pc.utf8_slice_codeunits(documents["text"], 0, OPENING))
        .to_pylist()
        if (cited := cite_document(row["title"], row["opening"]))
    }
    for facts in stated:
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
        said = [deny(f.relation) if f.negated else f.relation for f in facts]
        ends = (
            (str(facts[0].head.key), facts[0].head.name),
            (None if is_literal else tail, facts[0].tail.name),
        )
        verdict = (
            corrections.judge(ends[0], {*said}, ends[1], compare) if corrections.entries else []
        )
        lost = dict(verdict).keys() & {CORRECTED}
        held = ("former" if len(verdict) > 1 else "reported") if lost else None
        qualifiers = unite_qualifiers((*qualifiers, *verdict)) if verdict else qualifiers
        first, last = date_fact(qualifiers)
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
            "confidence": _weigh(facts),
            "raw_triple_ids": _take_ids(raw_triples["raw_triple_id"], {fact.row for fact in facts}),
        }


def _take_ids(ids: pa.ChunkedArray, rows: Iterable[int]) -> list[str]:
    """The ids of some rows; they ascend as the rows do."""
    return [ids[row].as_py() for row in sorted(rows)]


def _place_nouns(fact: Fact, titles: Mapping[str, str], subjects: Mapping[str, str]) -> Qualifiers:
    """What the document is called, where an end is a common noun that means its own thing.

    None where the other end is what the title names, or the noun has the words of the title.
    """
    title = titles.get(fact.document)
    ends = {str(end.key): end.name for _, end in fact.entities}
    if title is None or subjects.get(fact.document) in ends:
        return
    words = frozenset(parse_name(title).words)
    nouns = [parse_name(name).words for key, name in ends.items() if is_of_document(key)]
    if any(not words.issubset(noun) for noun in nouns):
        yield DOCUMENT, title
