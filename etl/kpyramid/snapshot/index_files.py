"""The files of an index as they are written: the same bytes for the same values, on any machine."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from threadpoolctl import threadpool_limits

from kpyramid.embeddings.port import Matrix
from kpyramid.numerics.neighbours import load_faiss
from kpyramid.snapshot.search import list_stems, rank_exactly, rank_nearly

# Arrow files whose bytes are a function of their values, to be mapped.


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
        fields = [_settle_field(values.field(at), valid) for at in range(kind.num_fields)]
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


def _settle_field(values: pa.Array, valid: npt.NDArray[np.bool_]) -> pa.Array:
    """A struct's field, null where the struct is."""
    return settle(values if valid.all() else values.take(pa.array(_choose(valid))))


def _choose(valid: npt.NDArray[np.bool_]) -> Any:
    """Places to take: each its own, none behind a null."""
    return np.ma.masked_array(np.arange(len(valid)), mask=~valid)


def _settle_offsets(values: pa.Array, *, wide: bool) -> tuple[pa.Buffer, int, int]:
    """Offsets that begin at 0, and the part of the values that they are of."""
    size = np.dtype(np.int64 if wide else np.int32)
    raw = values.buffers()[1]
    if raw is None or not len(values):
        return _copy(np.zeros(len(values) + 1, size)), 0, 0
    offsets = np.frombuffer(raw, size, len(values) + 1, values.offset * size.itemsize)
    return _copy(offsets - offsets[0]), int(offsets[0]), int(offsets[-1])


def _pack(told: npt.NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(told, bitorder="little").tobytes())


def _copy(numbers: npt.NDArray[Any]) -> pa.Buffer:
    return pa.py_buffer(np.ascontiguousarray(numbers))


# The postings of BM25.

K1, B = 1.5, 0.75


def weigh_words(
    texts: Iterable[str],
) -> tuple[list[str], npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """The postings of texts: stems in order, where each one's rows begin, rows, parts of scores.

    BM25 as Lucene counts it (Kamphuis et al. 2020), k1 = 1.5, b = .75.
    """
    numbers: dict[str, int] = {}
    stems: list[npt.NDArray[np.int64]] = []
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


# An index that finds nearly the nearest vectors: lists of vectors around centres (IVF).
#
# Each vector is rounded to a byte per dimension, so that a million of 384 take 0.4 GB; the reader
# compares what the index finds by exact vectors. Centres are found here and not by faiss, whose
# own arithmetic is several times slower on one thread.

_PER_LIST = 64
"""Vectors per list from which centres are learnt; faiss warns below 39."""
_ROUNDS = 10
_BLOCK = 16_384
_ASKED = 200
_NEAREST = 10
_BETWEEN = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """How a table is searched: so many lists, of which `probes` are looked through.

    `recall_at_10` is the share of the ten exactly nearest rows that are found, over `asked`
    vectors: each the middle of three rows. A question lies between facts; of a million facts real
    questions found .976 where middles of three found .966, of two .996 and rows .998.
    """

    lists: int
    probes: int
    recall_at_10: float
    asked: int


def write_clusters(path: Path, matrix: Matrix, least_recall: float, seed: int) -> Plan:
    """Writes the faiss index of some vectors, and says how to search it.

    `probes` are the fewest, growing by half, that reach the recall. Everything runs on one thread
    and draws from `seed`, so that the bytes do not depend on the machine's cores.
    """
    faiss = load_faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        with threadpool_limits(1):
            index = _build(matrix, seed)
            plan = _measure(index, matrix, least_recall, seed)
            faiss.write_index(index, str(path))
    finally:
        faiss.omp_set_num_threads(before)
    return plan


def _build(matrix: Matrix, seed: int) -> Any:
    rows, width = matrix.shape
    lists = max(1, min(2 ** round(math.log2(2 * math.sqrt(rows))), rows // _PER_LIST))
    chance = np.random.default_rng(seed)
    sample = np.sort(chance.choice(rows, min(rows, lists * _PER_LIST), replace=False))
    centres = _find_centres(np.ascontiguousarray(matrix[sample]), lists, chance)
    faiss = load_faiss()
    quantiser = faiss.IndexFlatIP(width)
    quantiser.add(centres)
    index = faiss.IndexIVFScalarQuantizer(
        quantiser, width, lists, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT, False
    )
    index.train(np.ascontiguousarray(matrix[sample]))
    for start in range(0, rows, _BLOCK):
        block = np.ascontiguousarray(matrix[start : start + _BLOCK])
        nearest = _assign(block, centres).astype(np.int64)
        ids = np.arange(start, start + len(block), dtype=np.int64)
        swig = load_faiss().swig_ptr
        index.add_core(len(block), swig(block), swig(ids), swig(nearest))
    return index


def _find_centres(sample: Matrix, lists: int, chance: np.random.Generator) -> Matrix:
    """Spherical k-means (Dhillon and Modha 2001); an empty list takes a vector drawn anew."""
    centres = sample[np.sort(chance.choice(len(sample), lists, replace=False))].copy()
    for _ in range(_ROUNDS):
        nearest = np.concatenate(
            [_assign(sample[at : at + _BLOCK], centres) for at in range(0, len(sample), _BLOCK)]
        )
        order = np.argsort(nearest, kind="stable")
        counts = np.bincount(nearest, minlength=lists)
        filled = np.flatnonzero(counts)
        starts = (np.cumsum(counts) - counts)[filled]
        sums = np.add.reduceat(sample[order], starts, axis=0)
        centres[filled] = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
        empty = np.flatnonzero(counts == 0)
        centres[empty] = sample[chance.choice(len(sample), len(empty), replace=False)]
    return centres


def _assign(block: Matrix, centres: Matrix) -> npt.NDArray[np.intp]:
    return np.asarray(np.argmax(block @ centres.T, axis=1))


def _measure(index: Any, matrix: Matrix, least_recall: float, seed: int) -> Plan:
    """The fewest probes that reach the recall, and the recall they reach."""
    chance = np.random.default_rng(seed + 1)
    asked = min(_ASKED, len(matrix))
    drawn = [matrix[chance.choice(len(matrix), asked, replace=False)] for _ in range(_BETWEEN)]
    questions = sum(drawn[1:], drawn[0])
    questions /= np.maximum(np.linalg.norm(questions, axis=1, keepdims=True), 1e-12)
    exact = [{row for row, _ in rank_exactly(matrix, q, _NEAREST)} for q in questions]
    probes = min(4, index.nlist)
    while True:
        found = [rank_nearly(index, probes, matrix, q, _NEAREST) for q in questions]
        shared = sum(
            len(known & {row for row, _ in near}) for known, near in zip(exact, found, strict=True)
        )
        recall = shared / max(1, sum(map(len, exact)))
        if recall >= least_recall or probes == index.nlist:
            return Plan(index.nlist, probes, round(recall, 4), len(questions))
        probes = min(probes + probes // 2, index.nlist)
