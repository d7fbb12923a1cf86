"""The files of an index as they are written: the same bytes for the same values, on any machine."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kpyramid.snapshot.search import list_stems

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
