"""Graph and condensed graph as columns, and which fact of the one stands for which of the other."""

from itertools import compress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.condensation.graph import Column, Graph
from kpyramid.pipeline.stages.graph import find_rows


def read_graph(entities: pa.Table, relations: pa.Table, triples: pa.Table) -> Graph:
    """The tables as columns."""
    literals = triples["literal"].combine_chunks().dictionary_encode()
    codes = literals.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Graph(
        heads=find_rows(triples["head_id"], entities["entity_id"]),
        relations=find_rows(triples["relation_id"], relations["relation_id"]),
        tails=find_rows(triples["tail_id"], entities["entity_id"]),
        literals=codes.astype(np.int64),
        texts=literals.dictionary.to_pylist(),
        names=entities["name"].to_pylist(),
        types=entities["type"].to_pylist(),
        wordings=relations["name"].to_pylist(),
        support=relations["support"].to_pylist(),
    )


def read_derivations(triples: pa.Table, condensed: pa.Table) -> tuple[Column, list[str]]:
    """For each triple the row of its condensed fact, -1 unless there is exactly one, and why."""
    place = find_rows(pc.list_flatten(condensed["derived_from"]), triples["triple_id"])
    rows = pc.list_parent_indices(condensed["derived_from"]).to_numpy()
    reasons = pc.list_flatten(condensed["how"]).to_pylist()
    known = place >= 0  # another gate tells of triples that are nowhere
    place, rows = place[known], rows[known]
    stands = np.full(triples.num_rows, -1, dtype=np.int64)
    stands[place] = rows
    stands[np.bincount(place, minlength=triples.num_rows) != 1] = -1
    how = ["none"] * triples.num_rows
    for at, why in zip(place.tolist(), compress(reasons, known.tolist()), strict=True):
        how[at] = why
    return stands, how
