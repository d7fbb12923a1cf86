"""The columns of the index, from the tables of a snapshot."""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.documents.qualifiers import write_qualifiers
from kpyramid.documents.words import FUNCTION, WORD
from kpyramid.numerics.arrays import Integers
from kpyramid.snapshot.links import Links, find_places, list_numbers, unfold
from kpyramid.snapshot.search import (
    MOST_SHARED,
    MOST_TITLE,
    fold_title,
    hash_name,
    join_words,
)
from kpyramid.storage.contracts import combine_column, load_contracts

Tables = Mapping[str, pa.Table]


_STORED: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("index.toml").read_text("utf-8")
)
"""Columns of the index, in their order, and the columns of tables that they are."""


def _store_columns(tables: Tables, table: str) -> dict[str, Any]:
    """The columns of a table that the index has as they are, or as rows of other tables."""
    contract, whole = load_contracts()[table], tables[table]
    stored: dict[str, Any] = {}
    every = {column.name: column.name for column in contract.columns}
    for name, source in _STORED.get(table, every).items():
        if not source:
            stored[name] = _find_statements(tables).astype(np.int32)
            continue
        column = contract.column(source)
        if column.references and name != source:
            keys = tables[str(column.target)][column.references.partition(".")[2]]
            stored[name] = find_places(whole[source], keys).astype(np.int32)
        elif column.type == "map<string,string>":
            write = write_qualifiers if source == "qualifiers" else _write_fields
            pairs = map(write, whole[source].to_pylist())
            stored[name] = pa.array(pairs, pa.list_(pa.string()))
        else:
            stored[name] = combine_column(whole[source])
    return stored


def _write_fields(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return sorted(f"{field}={value}" for field, value in pairs)


def link_column(tables: Tables, table: str, name: str) -> Links:
    """From the rows of a table to those that a column of it refers to."""
    target = str(load_contracts()[table].column(name).target)
    return Links.from_column(tables[table][name], tables[target].column(0))


def find_documents(tables: Tables, table: str) -> Integers:
    """For each row of a table the row of the document of its chunk."""
    documents = link_column(tables, "chunks", "document_id").targets
    if table == "chunks":
        return documents
    return documents[link_column(tables, table, "chunk_id").targets]


# Facts and chunks as rows of the index, with the places and documents that support them.


def list_columns(tables: Tables) -> dict[str, dict[str, Any]]:
    """The columns of all files of the index but those of vectors and words, by file."""
    names, titled = _normalise_names(tables), _find_titles(tables)
    documents, facts, instances, statements = (
        _store_columns(tables, name)
        for name in ("documents", "condensed", "instances", "statements")
    )
    places = link_column(tables, "instances", "places").take(find_documents(tables, "chunks"))
    count = tables["instances"].num_rows
    standing = link_column(tables, "condensed", "derived_from").turn()
    rests = link_column(tables, "instances", "triple_ids").follow(standing, len(tables["triples"]))
    cited = link_column(tables, "statements", "condensed_ids")
    return {
        "documents": documents
        | {
            "text": documents["text"].cast(pa.large_string()),
            **_list_parts(tables["documents"]["blocks"]),
        },
        "chunks": _store_columns(tables, "chunks") | {"titles": _link_titles(tables, titled)},
        "titles": _list_titles(titled),
        "mentions": _list_mentions(tables),
        "condensed": facts | _support_facts(tables),
        "relations": _store_columns(tables, "relations"),
        "entities": _store_columns(tables, "entities") | _list_about(tables, names),
        "instances": instances
        | {
            "documents": places.distinct().to_lists(count),
            "facts": rests.distinct().to_lists(count),
        },
        "statements": statements | {"facts": cited.to_lists(tables["statements"].num_rows)},
        "qualifiers": _list_qualifiers(tables),
        "names": _list_names(names),
        "name_words": _list_name_words(names),
        **_list_all_forms(tables),
    }


def _list_parts(blocks: pa.ChunkedArray) -> dict[str, pa.Array]:
    """Of each document the headings with their places and levels, and where which page begins."""
    listed = combine_column(blocks)
    flat = pc.list_flatten(listed)
    parents = pc.list_parent_indices(listed).to_numpy(zero_copy_only=False)
    pages = pc.struct_field(flat, "page").to_numpy(zero_copy_only=False)
    begins = (np.diff(pages, prepend=0) != 0) | (np.diff(parents, prepend=-1) != 0)
    kinds = pc.equal(pc.struct_field(flat, "kind"), "heading")

    def choose(chosen: pa.BooleanArray, names: list[str]) -> pa.Array:
        kept = flat.filter(chosen)
        own = parents[chosen.to_numpy(zero_copy_only=False)]
        sizes = np.bincount(own, minlength=len(listed))
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
        fields = [pc.struct_field(kept, name) for name in names]
        return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(fields, names))

    return {
        "headings": choose(kinds, ["start", "end", "level"]),
        "pages": choose(pa.array(begins & (pages > 0)), ["start", "page"]),
    }


_NONE: frozenset[int] = frozenset()
_BRACKETS = re.compile(r"\([^()]*\)")


def _find_titles(tables: Tables) -> dict[str, list[int]]:
    """The rows of the documents of each title that texts can name, without what is in brackets.

    In the order of the titles' hashes.
    """
    titled: defaultdict[str, list[int]] = defaultdict(list)
    for row, title in enumerate(tables["documents"]["title"].to_pylist()):
        words = WORD.findall(_BRACKETS.sub(" ", title or ""))
        if 1 < len(words) <= MOST_TITLE or (len(words) == 1 and _is_name(words[0])):
            titled[fold_title(words)].append(row)
    return {title: titled[title] for title in sorted(titled, key=lambda t: (hash_name(t), t))}


def _is_name(word: str) -> bool:
    """Whether a word alone may be a title that texts name: written large, and not everywhere."""
    return word[0].isupper() and word.casefold() not in FUNCTION


def _list_titles(titled: Mapping[str, list[int]]) -> dict[str, Any]:
    """Columns of the titles in the order of their hashes: hash, title, rows of the documents."""
    return {
        "hash": pa.array([hash_name(title) for title in titled], pa.uint64()),
        "title": pa.array([*titled], pa.string()),
        "documents": pa.array([*titled.values()], _ROWS),
    }


def _link_titles(tables: Tables, titled: Mapping[str, list[int]]) -> pa.Array:
    """For each chunk the rows of the titles that its text says, however many share one.

    What documents a title names depends on those that a reader may see.
    """
    sizes: defaultdict[str, set[int]] = defaultdict(set)
    for title in titled:
        first, *others = title.split()
        sizes[first].add(1 + len(others))
    linked, places = [], {title: at for at, title in enumerate(titled)}
    for text in tables["chunks"]["text"].to_pylist():
        words = WORD.findall(text)
        runs = (
            fold_title(words[at : at + size])
            for at, word in enumerate(words)
            for size in sizes.get(word, _NONE) | sizes.get(word.casefold(), _NONE)
        )
        linked.append(sorted({places[run] for run in runs if run in places}))
    return pa.array(linked, _ROWS)


def _list_mentions(tables: Tables) -> dict[str, Any]:
    """Columns of the mentions, in the order of their chunks, then of their keys."""
    chunk = link_column(tables, "mentions", "chunk_id").targets
    order = pa.array(np.argsort(chunk, kind="stable"))
    kept = tables["mentions"].select(["mention_id", "text", "type", "start", "end"]).take(order)
    columns = {name: combine_column(kept[name]) for name in kept.column_names}
    return {"chunk": np.sort(chunk).astype(np.int32), **columns}


def _support_facts(tables: Tables) -> dict[str, Any]:
    """Columns of what supports each condensed fact: confidence, documents, places.

    A fact rests on the triples it stands for, these on their raw triples, these on the spans of
    the claims they were read from. Its documents are those that say as much, so that what may be
    read of a document decides what may be read of the fact: not those of triples that it absorbed
    because it says more.
    """
    triples, count = tables["triples"], tables["condensed"].num_rows
    to_triples = link_column(tables, "condensed", "derived_from")
    to_raw = to_triples.follow(link_column(tables, "triples", "raw_triple_ids"), len(triples))
    certain = triples["confidence"].to_numpy()
    confidence = np.zeros(count)
    np.maximum.at(confidence, to_triples.owners, certain[to_triples.targets])
    stating = _link_statements(tables).take(find_documents(tables, "raw_triples"))
    return {
        "confidence": confidence,
        "documents": stating.distinct().to_lists(count),
        **_list_places(tables, to_raw),
    }


def _find_statements(tables: Tables) -> Integers:
    """For each condensed fact the row of the statement that cites it; -1 where none does."""
    found = np.full(tables["condensed"].num_rows, -1)
    cited = link_column(tables, "statements", "condensed_ids")
    found[cited.targets] = cited.owners
    return found


def _link_statements(tables: Tables) -> Links:
    """From the condensed facts to the raw triples that say as much."""
    links = link_column(tables, "condensed", "derived_from")
    how = pc.list_flatten(combine_column(tables["condensed"]["how"]))
    weaker = load_contracts()["condensed"].column("how").weaker
    as_much = pc.not_equal(how, weaker).to_numpy(zero_copy_only=False)
    same = Links(links.owners[as_much], links.targets[as_much])
    return same.follow(link_column(tables, "triples", "raw_triple_ids"), len(tables["triples"]))


def _list_places(tables: Tables, to_raw: Links) -> dict[str, Any]:
    """Chunk, start and end of each place of the condensed facts, each once.

    The places that state a fact, the last of each claim's, stand before those of antecedents.
    """
    to_claims = to_raw.take(link_column(tables, "raw_triples", "claim_id").targets).distinct()
    chunk_of_claim = link_column(tables, "claims", "chunk_id").targets
    spans, owners = unfold(tables["claims"]["spans"])
    starts, ends = (
        pc.struct_field(spans, name).to_numpy(zero_copy_only=False) for name in ("start", "end")
    )
    found = to_claims.follow(Links(owners, np.arange(len(owners))), len(tables["claims"]))
    at = found.targets
    aside = np.diff(owners, append=-1)[at] == 0
    rows = np.stack([found.owners, aside, chunk_of_claim[owners[at]], starts[at], ends[at]], axis=1)
    if len(rows):
        rows = np.unique(rows, axis=0)[:, [0, 2, 3, 4]]
        rows = rows[np.sort(np.unique(rows, axis=0, return_index=True)[1])]
    sizes = np.bincount(rows[:, 0], minlength=tables["condensed"].num_rows)
    return {
        "place_chunks": list_numbers(rows[:, 1], sizes, pa.int32()),
        "place_starts": list_numbers(rows[:, 2], sizes, pa.int64()),
        "place_ends": list_numbers(rows[:, 3], sizes, pa.int64()),
    }


# Entities as rows of the index: what they are called, and which facts are about them.

_STATED = ("head", "relation", "tail")
_ROWS = pa.list_(pa.int32())


def _list_about(tables: Tables, names: list[list[str]]) -> dict[str, Any]:
    """Columns of the entities: names, rows of the plain facts, denials, instances it is in."""
    count = tables["entities"].num_rows
    heads, tails = (link_column(tables, "condensed", end) for end in ("head_id", "tail_id"))
    subjects, objects = (link_column(tables, "instances", e) for e in ("subject_id", "object_id"))
    about = heads.unite(tails)
    denied = tables["condensed"]["negated"].to_numpy()[about.owners]
    plain, denials = (Links(about.owners[m], about.targets[m]) for m in (~denied, denied))
    return {
        "names": pa.array(names, pa.list_(pa.string())),
        "facts": plain.turn().distinct().to_lists(count),
        "denials": denials.turn().distinct().to_lists(count),
        "instances": subjects.unite(objects).turn().distinct().to_lists(count),
    }


def _list_all_forms(tables: Tables) -> dict[str, dict[str, Any]]:
    """By file, each name of an entity and each wording of a relation, with who says it.

    Columns: row of the entity or relation, ascending; form, in the order of its bytes; rows of
    the documents that use it. What may be read of a document decides which names may be.
    """
    triples, raw = tables["triples"], tables["raw_triples"]
    stated = link_column(tables, "triples", "raw_triple_ids")
    said = {name: combine_column(raw[name]).take(pa.array(stated.targets)) for name in _STATED}
    place = find_documents(tables, "raw_triples")[stated.targets]
    head, tail = (
        find_places(triples[name], tables["entities"]["entity_id"])[stated.owners]
        for name in ("head_id", "tail_id")
    )
    relation = link_column(tables, "triples", "relation_id").targets
    ends = pa.concat_arrays([said["head"], said["tail"]])
    return {
        "entity_forms": _list_forms(np.concatenate([head, tail]), ends, np.tile(place, 2)),
        "relation_forms": _list_forms(relation[stated.owners], said["relation"], place),
    }


def _list_qualifiers(tables: Tables) -> dict[str, Any]:
    """Columns of what qualifies the condensed facts, as `_list_all_forms` has names, in words."""
    raw = tables["raw_triples"]
    said = [write_qualifiers(pairs) for pairs in raw["qualifiers"].to_pylist()]
    sizes = np.array([len(forms) for forms in said], np.int64)
    own = Links(np.repeat(np.arange(len(said)), sizes), np.arange(sizes.sum()))
    place = find_documents(tables, "raw_triples")[own.owners]
    links = _link_statements(tables).follow(own, len(said))
    forms = pa.array([form for forms in said for form in forms], pa.string())
    return _list_forms(links.owners, forms.take(pa.array(links.targets)), place[links.targets])


def _list_forms(owners: Integers, forms: pa.Array, documents: Integers) -> dict[str, Any]:
    """Each pair of owner and form once; a negative owner is none, as a literal's is."""
    words = pc.unique(forms)
    words = words.take(pc.sort_indices(words))
    code = np.asarray(pc.index_in(forms, value_set=words).to_numpy(zero_copy_only=False), np.int64)
    kept, span = owners >= 0, max(len(words), 1)
    pairs, group = np.unique((owners * span + code)[kept], return_inverse=True)
    owner, word = np.divmod(pairs, span)
    links = Links(group.astype(np.int64), documents[kept]).distinct()
    return {
        "owner": owner.astype(np.int32),
        "form": words.take(pa.array(word)),
        "documents": links.to_lists(len(pairs)),
    }


def _normalise_names(tables: Tables) -> list[list[str]]:
    """Each entity's names in the form in which questions name it, sorted."""
    return [
        sorted({join_words(form) for form in forms} - {""})
        for forms in tables["entities"]["surface_forms"].to_pylist()
    ]


def _list_names(names: list[list[str]]) -> dict[str, Any]:
    """Columns of the distinct names in the order of their hashes: hash, name, entities' rows."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for row, own in enumerate(names):
        for name in own:
            found[name].append(row)
    hashed = sorted((hash_name(name), name) for name in found)
    return {
        "hash": pa.array([number for number, _ in hashed], pa.uint64()),
        "name": pa.array([name for _, name in hashed], pa.string()),
        "entities": pa.array([found[name] for _, name in hashed], _ROWS),
    }


def _list_name_words(names: list[list[str]]) -> dict[str, Any]:
    """Columns of the words of names in their order: word, rows of the entities with it."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for row, own in enumerate(names):
        for word in {word for name in own for word in name.split()}:
            if len(found[word]) <= MOST_SHARED:
                found[word].append(row)
    words = sorted(found, key=lambda word: word.encode("utf-8", "surrogatepass"))
    return {
        "word": pa.array(words, pa.string()),
        "entities": pa.array(
            [found[w] if len(found[w]) <= MOST_SHARED else [] for w in words], _ROWS
        ),
    }
