"""Facts and chunks as rows of the index, with the places and documents that support them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.indexing.chains import Links, Numbers, combine, find_places, list_numbers

Tables = Mapping[str, pa.Table]


def list_documents(tables: Tables) -> dict[str, Any]:
    """Columns of the documents: key, source, title, text, access labels, `field=value` pairs."""
    documents = tables["documents"]
    described = [
        sorted(f"{field}={value}" for field, value in pairs)
        for pairs in documents["metadata"].to_pylist()
    ]
    return {
        "document_id": combine(documents["document_id"]),
        "source": combine(documents["source"]),
        "title": combine(documents["title"]),
        "text": combine(documents["text"].cast(pa.large_string())),
        "access": combine(documents["access"]),
        "metadata": pa.array(described, pa.list_(pa.string())),
    }


def list_chunks(tables: Tables) -> dict[str, Any]:
    """Columns of the chunks: key, row of the document, span."""
    chunks = tables["chunks"]
    at = find_places(chunks["document_id"], tables["documents"]["document_id"])
    return {
        "chunk_id": combine(chunks["chunk_id"]),
        "document": at.astype(np.int32),
        "start": combine(chunks["start"]),
        "end": combine(chunks["end"]),
    }


def list_mentions(tables: Tables) -> dict[str, Any]:
    """Columns of the mentions, in the order of their chunks, then of their keys."""
    mentions = tables["mentions"]
    at = find_places(mentions["chunk_id"], tables["chunks"]["chunk_id"])
    order = pa.array(np.argsort(at, kind="stable"))
    kept = mentions.select(["mention_id", "text", "type", "start", "end"]).take(order)
    columns = {name: combine(kept[name]) for name in kept.column_names}
    return {"chunk": np.sort(at).astype(np.int32), **columns}


def list_facts(tables: Tables) -> dict[str, Any]:
    """Columns of the condensed facts: ends and relation as rows, support, places, documents.

    A fact rests on the triples it stands for, these on their raw triples, these on the spans of
    the claims they were read from. Its documents are those that say as much, so that what may be
    read of a document decides what may be read of the fact: not those of triples that it absorbed
    because it says more.
    """
    facts, raw = tables["condensed"], tables["raw_triples"]
    entities, relations = tables["entities"]["entity_id"], tables["relations"]["relation_id"]
    count = facts.num_rows
    triples = tables["triples"]
    to_triples = Links.from_column(facts["derived_from"], triples["triple_id"])
    of_triples = Links.from_column(triples["raw_triple_ids"], raw["raw_triple_id"])
    to_raw = to_triples.follow(of_triples, triples.num_rows)
    how = pc.list_flatten(combine(facts["how"]))
    as_much = pc.not_equal(how, "broader").to_numpy(zero_copy_only=False)
    same = Links(to_triples.owners[as_much], to_triples.targets[as_much])
    claims = tables["claims"]
    to_claims = to_raw.take(find_places(raw["claim_id"], claims["claim_id"])).distinct()
    chunk_of_claim = find_places(claims["chunk_id"], tables["chunks"]["chunk_id"])
    chunk_of_raw = find_places(raw["chunk_id"], tables["chunks"]["chunk_id"])
    document_of = find_places(tables["chunks"]["document_id"], tables["documents"]["document_id"])
    certain = triples["confidence"].to_numpy()
    confidence = np.zeros(count)
    np.maximum.at(confidence, to_triples.owners, certain[to_triples.targets])
    return {
        "condensed_id": combine(facts["condensed_id"]),
        "head": find_places(facts["head_id"], entities).astype(np.int32),
        "relation": find_places(facts["relation_id"], relations).astype(np.int32),
        "tail": find_places(facts["tail_id"], entities).astype(np.int32),
        "literal": combine(facts["literal"]),
        "confidence": confidence,
        "support": to_claims.count(count).astype(np.int32),
        "negated": _mark(count, to_raw, combine(raw["negated"])),
        "hedged": _mark(
            count,
            to_raw,
            pc.or_(pc.is_valid(combine(raw["modality"])), pc.is_valid(combine(raw["attribution"]))),
        ),
        "documents": same.follow(of_triples, triples.num_rows)
        .take(chunk_of_raw)
        .take(document_of)
        .distinct()
        .to_lists(count),
        **_list_places(count, to_claims, claims, chunk_of_claim),
    }


def list_instances(tables: Tables) -> dict[str, Any]:
    """Columns of the instances as in their table, and the rows of the documents that hold each."""
    instances, chunks = tables["instances"], tables["chunks"]
    places = combine(instances["places"])
    owners = pc.list_parent_indices(places).to_numpy(zero_copy_only=False).astype(np.int64)
    stated = pc.struct_field(pc.list_flatten(places), "chunk_id")
    document_of = find_places(chunks["document_id"], tables["documents"]["document_id"])
    links = Links(owners, document_of[find_places(stated, chunks["chunk_id"])])
    columns = {name: combine(instances[name]) for name in instances.column_names}
    return {**columns, "documents": links.distinct().to_lists(instances.num_rows)}


def _list_places(
    count: int, to_claims: Links, claims: pa.Table, chunk_of_claim: Numbers
) -> dict[str, Any]:
    """Chunk, start and end of each place, sorted, each once."""
    flat = combine(claims["spans"])
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
