"""Entities as rows of the index: what they are called, and which facts are about them."""

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.indexing.chains import Links, Numbers, combine, find_places, list_numbers
from kpyramid.indexing.facts import Tables
from kpyramid.indexing.wording import MOST_SHARED, hash_name, join_words

_SAID = ("head", "relation", "tail")


def list_entities(tables: Tables, names: list[list[str]]) -> dict[str, Any]:
    """Columns of the entities: names, rows of the facts about each, of the instances it is in."""
    entities, facts, instances = (tables[n] for n in ("entities", "condensed", "instances"))
    keys, count = entities["entity_id"], entities.num_rows
    ends = Links.from_column(facts["head_id"], keys).unite(
        Links.from_column(facts["tail_id"], keys)
    )
    subjects = Links(np.arange(instances.num_rows), find_places(instances["subject_id"], keys))
    return {
        "entity_id": combine(keys),
        "name": combine(entities["name"]),
        "type": combine(entities["type"]),
        "surface_forms": combine(entities["surface_forms"]),
        "names": pa.array(names, pa.list_(pa.string())),
        "facts": ends.turn().distinct().to_lists(count),
        "instances": subjects.turn().to_lists(count),
    }


def list_forms(tables: Tables) -> dict[str, dict[str, Any]]:
    """By file, each name of an entity and each wording of a relation, with who says it.

    Columns: row of the entity or relation, ascending; form, in the order of its bytes; rows of
    the documents that use it. What may be read of a document decides which names may be.
    """
    triples, raw = tables["triples"], tables["raw_triples"]
    stated = Links.from_column(triples["raw_triple_ids"], raw["raw_triple_id"])
    chunk = find_places(raw["chunk_id"], tables["chunks"]["chunk_id"])
    document = find_places(tables["chunks"]["document_id"], tables["documents"]["document_id"])
    said = {name: combine(raw[name]).take(pa.array(stated.targets)) for name in _SAID}
    place = document[chunk[stated.targets]]
    head, tail = (
        find_places(triples[name], tables["entities"]["entity_id"])[stated.owners]
        for name in ("head_id", "tail_id")
    )
    relation = find_places(triples["relation_id"], tables["relations"]["relation_id"])
    ends = pa.concat_arrays([said["head"], said["tail"]])
    return {
        "entity_forms": _list_forms(np.concatenate([head, tail]), ends, np.tile(place, 2)),
        "relation_forms": _list_forms(relation[stated.owners], said["relation"], place),
    }


def _list_forms(owners: Numbers, forms: pa.Array, documents: Numbers) -> dict[str, Any]:
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


def normalise_names(tables: Tables) -> list[list[str]]:
    """Each entity's names in the form in which questions name it, sorted."""
    return [
        sorted({join_words(form) for form in forms} - {""})
        for forms in tables["entities"]["surface_forms"].to_pylist()
    ]


def list_names(names: list[list[str]]) -> dict[str, Any]:
    """Columns of the distinct names in the order of their hashes: hash, name, entities' rows."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for row, own in enumerate(names):
        for name in own:
            found[name].append(row)
    hashed = sorted((hash_name(name), name) for name in found)
    rows = [found[name] for _, name in hashed]
    return {
        "hash": pa.array([number for number, _ in hashed], pa.uint64()),
        "name": pa.array([name for _, name in hashed], pa.string()),
        "entities": _list_rows(rows),
    }


def list_name_words(names: list[list[str]]) -> dict[str, Any]:
    """Columns of the words of names in their order: word, rows of the entities with it."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for row, own in enumerate(names):
        for word in {word for name in own for word in name.split()}:
            if len(found[word]) <= MOST_SHARED:
                found[word].append(row)
    words = sorted(found, key=lambda word: word.encode("utf-8", "surrogatepass"))
    return {
        "word": pa.array(words, pa.string()),
        "entities": _list_rows([found[w] if len(found[w]) <= MOST_SHARED else [] for w in words]),
    }


def _list_rows(rows: list[list[int]]) -> pa.Array:
    flat = np.fromiter((row for own in rows for row in own), np.int64)
    sizes = np.fromiter((len(own) for own in rows), np.int64, len(rows))
    return list_numbers(flat, sizes, pa.int32())
