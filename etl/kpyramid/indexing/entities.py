"""Entities as rows of the index: what they are called, and which facts are about them."""

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa

from kpyramid.indexing.chains import Links, combine, find_places, list_numbers
from kpyramid.indexing.facts import Tables
from kpyramid.indexing.wording import MOST_SHARED, hash_name, join_words


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
