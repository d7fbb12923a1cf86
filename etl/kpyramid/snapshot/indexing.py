"""Building the index of a snapshot from its tables and its ontology."""

import json
import logging
import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kpyramid.documents.qualifiers import write_qualifiers
from kpyramid.embeddings.port import Matrix
from kpyramid.errors import IntegrityError, PyramidError
from kpyramid.keys import JsonValue, canonical_json, hash_bytes, hash_file, hash_value
from kpyramid.numerics.arrays import Integers, Mask
from kpyramid.ontology import names as n
from kpyramid.settings import IndexSettings
from kpyramid.snapshot.clusters import write_clusters
from kpyramid.snapshot.links import Links, find_places, list_numbers
from kpyramid.snapshot.search import MOST_SHARED, hash_name, join_words, list_stems
from kpyramid.snapshot.store import GRAPH, META, STATEMENTS, VECTORS, name_part
from kpyramid.storage.contracts import (
    combine_column,
    encode_table,
    load_contracts,
    open_table,
    read_table,
)
from kpyramid.storage.identity import library_version
from kpyramid.storage.layout import Warehouse, stage_folder
from kpyramid.storage.leases import hold
from kpyramid.storage.memory import allocate_matrix
from kpyramid.storage.results import TableFile, read_result
from kpyramid.storage.snapshots import FORMAT, MANIFEST, list_folders, read_manifest

# The files of an index as they are written: the same bytes for the same values, on any machine.


def write_rows(path: Path, columns: Mapping[str, Any]) -> None:
    """Writes columns as one uncompressed batch, so that each is one run of bytes."""
    arrays = [settle(v if isinstance(v, pa.Array) else pa.array(v)) for v in columns.values()]
    batch = pa.RecordBatch.from_arrays(arrays, names=list(columns))
    path.parent.mkdir(parents=True, exist_ok=True)
    options = pa.ipc.IpcWriteOptions(compression=None, use_threads=False)
    with (
        pa.OSFile(str(path), "wb") as sink,
        pa.ipc.new_file(sink, batch.schema, options=options) as writer,
    ):
        writer.write_batch(batch)


def settle(values: pa.Array) -> pa.Array:
    """The same values in the one form of their bytes.

    Arrow leaves what stands in memory behind a null, and in a bitmap's last byte, to chance.
    """
    kind = values.type
    valid = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    bitmap = None if valid.all() else _pack(valid)
    if pa.types.is_struct(kind):
        held = (values.field(at) for at in range(kind.num_fields))
        if bitmap is not None:  # null where the struct is
            own = pa.array(np.ma.masked_array(np.arange(len(valid)), mask=~valid))
            held = (field.take(own) for field in held)
        fields = [settle(field) for field in held]
        return pa.Array.from_buffers(kind, len(values), [bitmap], children=fields)
    if pa.types.is_fixed_size_list(kind):
        held = values.values.slice(values.offset * kind.list_size, len(values) * kind.list_size)
        return pa.Array.from_buffers(kind, len(values), [bitmap], children=[settle(held)])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        starts, first, last = _settle_offsets(values, wide=pa.types.is_large_list(kind))
        children = [settle(values.values.slice(first, last - first))]
        return pa.Array.from_buffers(kind, len(values), [bitmap, starts], children=children)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        values = values if bitmap is None else values.fill_null("")
        starts, first, last = _settle_offsets(values, wide=pa.types.is_large_string(kind))
        data = values.buffers()[2]
        data = pa.py_buffer(b"") if data is None else data.slice(first, last - first)
        return pa.Array.from_buffers(kind, len(values), [bitmap, starts, data])
    if pa.types.is_boolean(kind):
        told = values.fill_null(False).to_numpy(zero_copy_only=False)
        return pa.Array.from_buffers(kind, len(values), [bitmap, _pack(told)])
    flat = values if bitmap is None else values.fill_null(0)
    return pa.Array.from_buffers(kind, len(values), [bitmap, _copy(flat.to_numpy())])


def _settle_offsets(values: pa.Array, *, wide: bool) -> tuple[pa.Buffer, int, int]:
    """Offsets that begin at 0, and the part of the values that they are of."""
    size = np.dtype(np.int64 if wide else np.int32)
    raw = values.buffers()[1]
    if raw is None or not len(values):
        return _copy(np.zeros(len(values) + 1, size)), 0, 0
    offsets = np.frombuffer(raw, size, len(values) + 1, values.offset * size.itemsize)
    return _copy(offsets - offsets[0]), int(offsets[0]), int(offsets[-1])


def _pack(told: Mask) -> pa.Buffer:
    return pa.py_buffer(np.packbits(told, bitorder="little").tobytes())


def _copy(numbers: npt.NDArray[Any]) -> pa.Buffer:
    return pa.py_buffer(np.ascontiguousarray(numbers))


# The postings of BM25.

K1, B = 1.5, 0.75


def weigh_words(
    texts: Iterable[str],
) -> tuple[list[str], Integers, npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """The postings of texts: stems in order, where each one's rows begin, rows, parts of scores.

    BM25 as Lucene counts it (Kamphuis et al. 2020), k1 = 1.5, b = .75.
    """
    numbers: dict[str, int] = {}
    stems: list[Integers] = []
    lengths: list[int] = []
    for text in texts:
        found = list_stems(text)
        lengths.append(len(found))
        stems.append(
            np.fromiter((numbers.setdefault(s, len(numbers)) for s in found), np.int64, len(found))
        )
    names = sorted(numbers, key=lambda stem: stem.encode("utf-8", "surrogatepass"))
    rank = np.empty(len(names), np.int64)
    rank[np.array([numbers[name] for name in names], np.int64)] = np.arange(len(names))
    flat = rank[np.concatenate(stems)] if stems else np.zeros(0, np.int64)
    sizes = np.array(lengths, np.int64)
    codes = flat * max(len(lengths), 1) + np.repeat(np.arange(len(lengths)), sizes)
    codes, counts = np.unique(codes, return_counts=True)
    word, row = np.divmod(codes, max(len(lengths), 1))
    spread = np.bincount(word, minlength=len(names))
    rarity = np.log(1 + (len(lengths) - spread + 0.5) / (spread + 0.5))
    mean = sizes.mean() if len(lengths) and sizes.any() else 1.0
    often = counts / (counts + K1 * (1 - B + B * sizes[row] / mean))
    starts = np.concatenate([[0], np.cumsum(spread)]).astype(np.int64)
    return names, starts, row.astype(np.int32), (rarity[word] * often).astype(np.float32)


Tables = Mapping[str, pa.Table]


def find_documents(tables: Tables, chunk_ids: pa.ChunkedArray) -> Integers:
    """For each id of a chunk the row of its document."""
    chunks = tables["chunks"]
    documents = find_places(chunks["document_id"], tables["documents"]["document_id"])
    return documents[find_places(chunk_ids, chunks["chunk_id"])]


# Facts and chunks as rows of the index, with the places and documents that support them.


def list_documents(tables: Tables) -> dict[str, Any]:
    """Columns of the documents: key, source, title, text, access labels, `field=value` pairs."""
    documents = tables["documents"]
    described = [
        sorted(f"{field}={value}" for field, value in pairs)
        for pairs in documents["metadata"].to_pylist()
    ]
    return {
        "document_id": combine_column(documents["document_id"]),
        "source": combine_column(documents["source"]),
        "title": combine_column(documents["title"]),
        "text": combine_column(documents["text"].cast(pa.large_string())),
        "access": combine_column(documents["access"]),
        "metadata": pa.array(described, pa.list_(pa.string())),
    }


def list_chunks(tables: Tables) -> dict[str, Any]:
    """Columns of the chunks: key, row of the document, span."""
    chunks = tables["chunks"]
    at = find_places(chunks["document_id"], tables["documents"]["document_id"])
    return {
        "chunk_id": combine_column(chunks["chunk_id"]),
        "document": at.astype(np.int32),
        "start": combine_column(chunks["start"]),
        "end": combine_column(chunks["end"]),
    }


def list_mentions(tables: Tables) -> dict[str, Any]:
    """Columns of the mentions, in the order of their chunks, then of their keys."""
    mentions = tables["mentions"]
    at = find_places(mentions["chunk_id"], tables["chunks"]["chunk_id"])
    order = pa.array(np.argsort(at, kind="stable"))
    kept = mentions.select(["mention_id", "text", "type", "start", "end"]).take(order)
    columns = {name: combine_column(kept[name]) for name in kept.column_names}
    return {"chunk": np.sort(at).astype(np.int32), **columns}


def list_facts(tables: Tables) -> dict[str, Any]:
    """Columns of the condensed facts: ends and relation as rows, places, documents.

    A fact rests on the triples it stands for, these on their raw triples, these on the spans of
    the claims they were read from. Its documents are those that say as much, so that what may be
    read of a document decides what may be read of the fact: not those of triples that it absorbed
    because it says more.
    """
    facts, raw, triples = tables["condensed"], tables["raw_triples"], tables["triples"]
    entities, relations = tables["entities"]["entity_id"], tables["relations"]["relation_id"]
    count = facts.num_rows
    to_triples = Links.from_column(facts["derived_from"], triples["triple_id"])
    of_triples = Links.from_column(triples["raw_triple_ids"], raw["raw_triple_id"])
    to_raw = to_triples.follow(of_triples, triples.num_rows)
    claims = tables["claims"]
    to_claims = to_raw.take(find_places(raw["claim_id"], claims["claim_id"])).distinct()
    chunk_of_claim = find_places(claims["chunk_id"], tables["chunks"]["chunk_id"])
    certain = triples["confidence"].to_numpy()
    confidence = np.zeros(count)
    np.maximum.at(confidence, to_triples.owners, certain[to_triples.targets])
    return {
        "condensed_id": combine_column(facts["condensed_id"]),
        "head": find_places(facts["head_id"], entities).astype(np.int32),
        "relation": find_places(facts["relation_id"], relations).astype(np.int32),
        "tail": find_places(facts["tail_id"], entities).astype(np.int32),
        "literal": combine_column(facts["literal"]),
        "standard": combine_column(facts["standard_relation"]),
        "standard_head": find_places(facts["standard_head_id"], entities).astype(np.int32),
        "standard_tail": find_places(facts["standard_tail_id"], entities).astype(np.int32),
        "statement": _find_statements(tables).astype(np.int32),
        "detailed": find_places(facts["more_detailed_id"], facts["condensed_id"]).astype(np.int32),
        "qualifiers": pa.array(
            map(write_qualifiers, facts["qualifiers"].to_pylist()), pa.list_(pa.string())
        ),
        "confidence": confidence,
        "negated": _mark(count, to_raw, combine_column(raw["negated"])),
        "hedged": _mark(
            count,
            to_raw,
            pc.or_(
                pc.is_valid(combine_column(raw["modality"])),
                pc.is_valid(combine_column(raw["attribution"])),
            ),
        ),
        "documents": _link_statements(tables)
        .take(find_documents(tables, raw["chunk_id"]))
        .distinct()
        .to_lists(count),
        **_list_places(count, to_claims, claims, chunk_of_claim),
    }


def _cite(tables: Tables) -> Links:
    """From the statements to the condensed facts that they cite."""
    keys = tables["condensed"]["condensed_id"]
    return Links.from_column(tables["statements"]["condensed_ids"], keys)


def _find_statements(tables: Tables) -> Integers:
    """For each condensed fact the row of the statement that cites it; -1 where none does."""
    found = np.full(tables["condensed"].num_rows, -1)
    cited = _cite(tables)
    found[cited.targets] = cited.owners
    return found


def list_statements(tables: Tables) -> dict[str, Any]:
    """Columns of the statements: key, words, anchor, rows of the condensed facts they cite."""
    statements = tables["statements"]
    own = {name: combine_column(statements[name]) for name in ("statement_id", "text", "anchor")}
    return {**own, "facts": _cite(tables).to_lists(statements.num_rows)}


def _link_statements(tables: Tables) -> Links:
    """From the condensed facts to the raw triples that say as much."""
    facts, triples, raw = (tables[name] for name in ("condensed", "triples", "raw_triples"))
    links = Links.from_column(facts["derived_from"], triples["triple_id"])
    how = pc.list_flatten(combine_column(facts["how"]))
    as_much = pc.not_equal(how, "broader").to_numpy(zero_copy_only=False)
    stated = Links.from_column(triples["raw_triple_ids"], raw["raw_triple_id"])
    same = Links(links.owners[as_much], links.targets[as_much])
    return same.follow(stated, triples.num_rows)


def list_instances(tables: Tables) -> dict[str, Any]:
    """Columns of the instances as in their table, and the rows of the documents that hold each."""
    instances = tables["instances"]
    places = combine_column(instances["places"])
    owners = pc.list_parent_indices(places).to_numpy(zero_copy_only=False).astype(np.int64)
    stated = pc.struct_field(pc.list_flatten(places), "chunk_id")
    links = Links(owners, find_documents(tables, stated))
    columns = {name: combine_column(instances[name]) for name in instances.column_names}
    return {**columns, "documents": links.distinct().to_lists(instances.num_rows)}


def _list_places(
    count: int, to_claims: Links, claims: pa.Table, chunk_of_claim: Integers
) -> dict[str, Any]:
    """Chunk, start and end of each place, sorted, each once."""
    flat = combine_column(claims["spans"])
    owners = pc.list_parent_indices(flat).to_numpy(zero_copy_only=False).astype(np.int64)
    spans = pc.list_flatten(flat)
    starts, ends = (
        pc.struct_field(spans, name).to_numpy(zero_copy_only=False) for name in ("start", "end")
    )
    found = to_claims.follow(Links(owners, np.arange(len(owners))), claims.num_rows)
    at = found.targets
    rows = np.stack([found.owners, chunk_of_claim[owners[at]], starts[at], ends[at]], axis=1)
    rows = np.unique(rows, axis=0) if len(rows) else rows
    sizes = np.bincount(rows[:, 0], minlength=count)
    return {
        "place_chunks": list_numbers(rows[:, 1], sizes, pa.int32()),
        "place_starts": list_numbers(rows[:, 2], sizes, pa.int64()),
        "place_ends": list_numbers(rows[:, 3], sizes, pa.int64()),
    }


def _mark(count: int, links: Links, values: pa.Array) -> pa.Array:
    """For each row whether it is true of any target."""
    told = np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.bool_)
    marks = np.zeros(count, dtype=np.bool_)
    marks[links.owners[told[links.targets]]] = True
    return pa.array(marks)


# Entities as rows of the index: what they are called, and which facts are about them.

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
        "entity_id": combine_column(keys),
        "name": combine_column(entities["name"]),
        "type": combine_column(entities["type"]),
        "surface_forms": combine_column(entities["surface_forms"]),
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
    said = {name: combine_column(raw[name]).take(pa.array(stated.targets)) for name in _SAID}
    place = find_documents(tables, raw["chunk_id"])[stated.targets]
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


def list_qualifiers(tables: Tables) -> dict[str, Any]:
    """Columns of what qualifies the condensed facts, as `list_forms` has names, in words."""
    raw = tables["raw_triples"]
    said = [write_qualifiers(pairs) for pairs in raw["qualifiers"].to_pylist()]
    sizes = np.array([len(forms) for forms in said], np.int64)
    own = Links(np.repeat(np.arange(len(said)), sizes), np.arange(sizes.sum()))
    place = find_documents(tables, raw["chunk_id"])[own.owners]
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


# Matrix lie in parts by documents, so that a night changes few of them, and shares the others'
# files with the night before.

MOST_PARTS = 64
"""Of 200 documents two changed ones touch three parts of 64, with one vector in twenty."""
_LEAST_ROWS = 32
"""Rows that a part has on average at least."""


def group_rows(tables: Tables) -> dict[str, Integers]:
    """For each row of a table that is embedded the least hash of the documents it rests on."""
    of_document = np.array(
        [crc32(key.encode()) for key in tables["documents"]["document_id"].to_pylist()], np.int64
    )
    raw, triples = tables["raw_triples"], tables["triples"]
    facts, instances = tables["condensed"], tables["instances"]
    of_raw = of_document[find_documents(tables, raw["chunk_id"])]
    of_triple = _find_least(
        Links.from_column(triples["raw_triple_ids"], raw["raw_triple_id"]), of_raw, len(triples)
    )
    of_fact = _find_least(
        Links.from_column(facts["derived_from"], triples["triple_id"]), of_triple, len(facts)
    )
    entities = tables["entities"]["entity_id"]
    heads, tails = (
        Links.from_column(facts[end], entities).turn() for end in ("head_id", "tail_id")
    )
    return {
        "chunks": of_document[find_documents(tables, tables["chunks"]["chunk_id"])],
        "condensed": of_fact,
        "entities": _find_least(heads.unite(tails), of_fact, len(entities)),
        "triples": of_triple,
        "instances": of_document[find_documents(tables, instances["chunk_id"])],
    }


def _find_least(links: Links, values: Integers, rows: int) -> Integers:
    """For each row the least value of those it leads to; 0 where there is none."""
    found = np.full(rows, 2**32)
    np.minimum.at(found, links.owners, values[links.targets])
    return found % 2**32


def count_parts(rows: int) -> int:
    """Into how many parts so many rows go: a power of two, so that growth moves few of them."""
    return int(min(MOST_PARTS, 2 ** (max(rows // _LEAST_ROWS, 1).bit_length() - 1)))


def split_vectors(tables: Tables, vectors: Path, folder: Path) -> dict[str, Path]:
    """Writes the table of vectors in parts below a folder; gives them by their names there.

    Raises:
        IntegrityError: a row belongs to none of the tables.
    """
    whole, matrix = open_vectors(vectors, folder)
    count, owners = count_parts(len(whole)), whole["owner_table"]
    at = np.empty(len(whole), np.int64)
    for table, groups in group_rows(tables).items():
        mine = np.asarray(pc.equal(owners, table).to_numpy(), np.bool_)
        keys = whole["owner_id"].filter(pa.array(mine))
        at[mine] = groups[find_places(keys, tables[table].column(0))] % count
    schema = pq.read_schema(vectors)
    files = {}
    for part in range(count):
        rows = np.flatnonzero(at == part)
        held = whole.take(pa.array(rows)).append_column("vector", _list_vectors(matrix[rows]))
        path = folder / "tables" / VECTORS / f"{part:02}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode_table(held.select(schema.names).cast(schema)))
        files[path.relative_to(folder).as_posix()] = path
    return files


def _write_matrices(
    folder: Path, matrices: Mapping[str, Matrix], orders: Mapping[str, Integers], sizes: Integers
) -> None:
    """Writes the vectors of searched tables in parts; `sizes` are rows by table and part."""
    ends = np.cumsum(sizes, axis=1)
    for part in range(sizes.shape[1]):
        held = [
            matrix[orders[table][end - size : end]]
            for (table, matrix), end, size in zip(
                matrices.items(), ends[:, part], sizes[:, part], strict=True
            )
        ]
        write_rows(folder / name_part(part), {"vector": _list_vectors(np.concatenate(held))})


# The vectors and texts of searched tables, in the order of their rows.


def open_vectors(path: Path, scratch: Path) -> tuple[pa.Table, Matrix]:
    """The table of vectors without its vectors, and these, in a file of a folder if they are many.

    Raises:
        OSError: the disk is full.
    """
    file = open_table(path)
    size = file.schema_arrow.field("vector").type.list_size
    others = [name for name in file.schema_arrow.names if name != "vector"]
    matrix = allocate_matrix(file.metadata.num_rows, size, scratch)
    at = 0
    for batch in file.iter_batches(_BATCH, columns=["vector"], use_threads=False):
        matrix[at : at + len(batch)] = batch["vector"].flatten().to_numpy().reshape(-1, size)
        at += len(batch)
    return file.read(columns=others, use_threads=False), matrix


_BATCH = 8192
"""Vectors that are read at a time."""


def read_vectors(
    path: Path, keys: Mapping[str, pa.Array], scratch: Path
) -> dict[str, tuple[pa.Array, Matrix]]:
    """Texts and vectors of some tables, whose `keys` are given; what else there is is passed over.

    Raises:
        IntegrityError: rows and vectors are not one to one.
        OSError: the disk is full.
    """
    whole, matrix = open_vectors(path, scratch)
    found = {}
    for table, wanted in keys.items():
        rows = np.flatnonzero(pc.equal(whole["owner_table"], table).to_numpy())
        owners, texts = (
            combine_column(whole[name].take(pa.array(rows))) for name in ("owner_id", "text")
        )
        texts = texts.cast(pa.large_string())
        if table == "entities":
            found[table] = _spread_vectors(wanted, owners, texts, matrix, rows, scratch)
            continue
        if not owners.equals(wanted) or (np.diff(rows) != 1).any():
            raise IntegrityError(
                f"{path}: table {table} has {len(wanted)} rows and {len(owners)} vectors, or "
                "others, or in another order; build again"
            )
        start = int(rows[0]) if len(rows) else 0
        found[table] = (texts, matrix[start : start + len(rows)])
    return found


def _spread_vectors(
    wanted: pa.Array,
    owners: pa.Array,
    texts: pa.Array,
    matrix: Matrix,
    rows: Integers,
    scratch: Path,
) -> tuple[pa.Array, Matrix]:
    """Texts and vectors of all entities: one that no fact is about has neither, and zeros."""
    places = pc.index_in(wanted, value_set=owners)
    known = np.flatnonzero(pc.is_valid(places).to_numpy(zero_copy_only=False))
    of_known = rows[pc.drop_null(places).to_numpy()]
    spread = allocate_matrix(len(wanted), matrix.shape[1], scratch)
    spread[:] = 0
    for start in range(0, len(known), _BATCH):
        block = slice(start, start + _BATCH)
        spread[known[block]] = matrix[of_known[block]]
    return pc.fill_null(texts.take(places), ""), spread


def _list_vectors(matrix: Matrix) -> pa.FixedSizeListArray:
    flat = pa.array(np.ascontiguousarray(matrix).ravel(), pa.float32())
    kind = pa.list_(pa.field("element", pa.float32()), matrix.shape[1])
    return pa.FixedSizeListArray.from_arrays(flat, type=kind)


# Building the index of a snapshot from its tables and its ontology.

log = logging.getLogger(__name__)

VERSION = 10
"""Raised when the same tables give other files."""
READS = (
    *("documents", "chunks", "claims", "mentions", "raw_triples"),
    *("entities", "relations", "triples", "instances", "condensed"),
    "statements",
)
"""Tables that are read whole; of `vectors` the rows of what is searched."""
_SAYS_WHERE = frozenset(
    f"<{iri}>" for iri in (n.DERIVED_FROM, n.QUOTED_FROM, n.PROV_VALUE, n.SOURCE, n.DCT + "title")
)
_LIBRARIES = ("duckdb", "faiss-cpu", "numpy", "pyarrow", "PyStemmer", "simplemma")


def key_index(sums: Mapping[str, str], instances_nt: str, settings: IndexSettings) -> str:
    """The key of an index: everything that shapes it. `sums` are the sha256 of its tables."""
    libraries: dict[str, JsonValue] = {name: library_version(name) for name in _LIBRARIES}
    shaping: dict[str, JsonValue] = asdict(settings)
    tables: dict[str, JsonValue] = {name: sums[name] for name in (*READS, "vectors")}
    ontology = hash_bytes(instances_nt.encode())
    return hash_value([VERSION, tables, ontology, shaping, libraries])


def build_index(
    folder: Path,
    tables: Mapping[str, pa.Table],
    vectors: Path,
    instances_nt: str,
    settings: IndexSettings,
) -> dict[str, Path]:
    """Writes the files of an index below a folder; gives them by their names in the snapshot.

    `vectors` is the file of that table, `instances_nt` the snapshot's `ontology/instances.nt`.

    Raises:
        IntegrityError: tables and vectors do not fit together.
    """
    names = normalise_names(tables)
    relations = tables["relations"]
    files: dict[str, Mapping[str, Any]] = {
        "documents": list_documents(tables),
        "mentions": list_mentions(tables),
        "names": list_names(names),
        "name_words": list_name_words(names),
        "relations": {n: combine_column(relations[n]) for n in ("relation_id", "name")},
        "instances": list_instances(tables),
        "statements": list_statements(tables),
        "qualifiers": list_qualifiers(tables),
        **list_forms(tables),
    }
    for name, columns in files.items():
        write_rows(folder / f"index/{name}.arrow", columns)
    with (folder / STATEMENTS).open("w", encoding="utf-8") as file:
        file.writelines(strip_provenance(instances_nt))
    parts = {
        "chunks": list_chunks(tables),
        "condensed": list_facts(tables),
        "entities": list_entities(tables, names),
    }
    keys = {table: next(iter(columns.values())) for table, columns in parts.items()}
    embedded = read_vectors(vectors, keys, folder)
    count = count_parts(sum(len(matrix) for _, matrix in embedded.values()))
    groups = {table: found % count for table, found in group_rows(tables).items()}
    orders = {table: np.argsort(groups[table], kind="stable") for table in parts}
    sizes = np.stack([np.bincount(groups[table], minlength=count) for table in parts])
    meta: dict[str, JsonValue] = {}
    for table, columns in parts.items():
        placed = {**columns, "place": np.argsort(orders[table]).astype(np.int32)}
        meta[table] = _write_part(folder, table, placed, *embedded[table], settings)
    matrices = {table: matrix for table, (_, matrix) in embedded.items()}
    _write_matrices(folder, matrices, orders, sizes)
    found: dict[str, JsonValue] = dict(zip(parts, sizes.tolist(), strict=True))
    (folder / META).write_bytes(canonical_json({"parts": found, "tables": meta}))
    made = sorted(path for path in (folder / "index").rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path for path in made}


def strip_provenance(instances_nt: str) -> Iterator[str]:
    """The lines that say what is, without those that say where it was read: two in three.

    Questions are answered from these, so that a store of them is there in a third of the time.
    """
    lines = (found[0] for found in re.finditer(r".*\n", instances_nt))
    return (line for line in lines if line.split(" ", 2)[1] not in _SAYS_WHERE)


def _write_part(
    folder: Path,
    table: str,
    columns: Mapping[str, Any],
    texts: pa.Array,
    matrix: Matrix,
    settings: IndexSettings,
) -> dict[str, JsonValue]:
    """Writes what a searched table is searched by; gives what the reader must know of it."""
    write_rows(folder / f"index/{table}.arrow", {**columns, "text": texts})
    stems, starts, rows, parts = weigh_words(text.as_py() for text in texts)
    sizes = starts[1:] - starts[:-1]
    write_rows(
        folder / f"index/{table}.words.arrow",
        {
            "stem": pa.array(stems, pa.string()),
            "rows": list_numbers(rows, sizes, pa.int32()),
            "parts": list_numbers(parts, sizes, pa.float32()),
        },
    )
    count, width = matrix.shape
    if count <= settings.exact_up_to:
        return {"rows": count, "dimensions": width, "search": "exact", "recall_at_10": 1.0}
    log.info("index of %s: finding lists for %d vectors", table, count)
    plan = write_clusters(
        folder / f"index/{table}.faiss", matrix, settings.min_recall, settings.seed
    )
    log.info("index of %s: %s", table, plan)
    return {"rows": count, "dimensions": width, "search": "approximate", **asdict(plan)}


def add_index(folder: Path, settings: IndexSettings | None = None) -> None:
    """Gives a folder with tables and a manifest of a snapshot the index of its tables.

    For copies that are measured and not published: the manifest is written anew.

    Raises:
        InputError: the folder has no manifest.
        IntegrityError: a table is damaged.
    """
    manifest = read_manifest(folder)
    contracts = load_contracts()
    tables = {n: read_table(folder / f"tables/{n}.parquet", contracts[n]) for n in READS}
    shutil.rmtree(folder / "index", ignore_errors=True)
    made = build_index(
        folder,
        tables,
        folder / "tables" / "vectors.parquet",
        (folder / "ontology" / "instances.nt").read_text("utf-8"),
        settings or IndexSettings(),
    )
    files = manifest.get("files")
    listed: dict[str, JsonValue] = {**files} if isinstance(files, dict) else {}
    for name, path in made.items():
        data = path.read_bytes()
        listed[name] = {"sha256": hash_bytes(data), "bytes": len(data)}
    changed = {**manifest, "format": FORMAT, "files": listed}
    path = folder / MANIFEST
    path.unlink()  # it may be a link to another snapshot's
    path.write_bytes(json.dumps(changed, sort_keys=True).encode())


# The index of a run's tables: a published snapshot's, when it is of the same, else made anew.


@dataclass(frozen=True, slots=True)
class PreparedIndex:
    """The files of an index, the vectors in parts and the graph in RDF, by their names.

    `key`: of all that shapes them.
    """

    key: str
    files: Mapping[str, Path]
    is_new: bool


@contextmanager
def prepare_index(
    warehouse: Warehouse,
    tables: Mapping[str, TableFile],
    instances_nt: str,
    settings: IndexSettings,
) -> Iterator[PreparedIndex]:
    """The index of some tables, and their graph; the files are there as long as the `with` lasts.

    Snapshots are their own cache: the index of one whose tables were the same gets other names, so
    that nothing is stored twice; it is made when there is none.

    Raises:
        IntegrityError: a table is damaged, or tables and vectors do not fit together.
    """
    key = key_index({name: file.sha256 for name, file in tables.items()}, instances_nt, settings)
    made = _find_made(warehouse, key)
    if made is not None:
        name, held = made
        with hold(Warehouse(warehouse.root), name):  # this machine's copy, of a bucket
            yield PreparedIndex(key, held, is_new=False)
        return
    from kpyramid.snapshot.graph import write_graph  # DuckDB: who only reads has none

    contracts = load_contracts()
    with stage_folder(warehouse) as folder:
        read = {name: read_result(tables[name], contracts[name], folder) for name in READS}
        files = build_index(folder, read, tables["vectors"].path, instances_nt, settings)
        files |= split_vectors(read, tables["vectors"].path, folder)
        del read
        write_graph({name: file.path for name, file in tables.items()}, folder / GRAPH)
        yield PreparedIndex(key, {**files, GRAPH: folder / GRAPH}, is_new=True)


_SHAPED = ("index/", f"tables/{VECTORS}/", GRAPH)
"""How the names begin of what is made beside the tables."""


def _find_made(warehouse: Warehouse, key: str) -> tuple[str, dict[str, Path]] | None:
    """A snapshot whose index has this key and is whole, and the files of that index."""
    for folder in list_folders(warehouse):
        try:
            manifest = read_manifest(folder)
        except PyramidError:  # damaged: `verify` says so
            continue
        index, files = manifest.get("index"), manifest.get("files")
        if not isinstance(index, dict) or index.get("key") != key or not isinstance(files, dict):
            continue
        listed: dict[str, Any] = {n: e for n, e in files.items() if n.startswith(_SHAPED)}
        damaged = [name for name in listed if not _is_whole(folder / name, listed[name])]
        if not damaged:
            return folder.name, {name: folder / name for name in listed}
        log.warning("%s is damaged: %s; the index is made anew", folder, ", ".join(damaged))
    return None


def _is_whole(path: Path, entry: Mapping[str, JsonValue]) -> bool:
    try:
        return hash_file(path) == entry["sha256"]
    except OSError:
        return False
