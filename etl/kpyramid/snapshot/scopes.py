"""Which documents a scope lets be seen, and which view of a snapshot that makes."""

from collections.abc import Collection, Sequence
from difflib import get_close_matches

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.errors import InputError
from kpyramid.numerics.arrays import Mask
from kpyramid.snapshot.divided import DividedView
from kpyramid.snapshot.mapped import MappedRows, to_mask
from kpyramid.snapshot.store import Store
from kpyramid.snapshot.view import Scope, View


def open_view(store: Store, scopes: Sequence[Scope]) -> View:
    """What all of some scopes let be seen of a store.

    Raises:
        InputError: a scope names what is not there, or what others hide.
    """
    documents = find_documents(store, scopes)
    return View(store) if documents.all() else DividedView(store, documents)


# Documents: by labels, by their ids or sources, by their metadata.


def find_documents(store: Store, scopes: Sequence[Scope]) -> Mask:
    """The documents that all scopes let be seen.

    Raises:
        InputError: none of those that the labels let be seen has an id, source or metadata
            that a scope names; the message is the same where a hidden one has.
    """
    documents = store.rows("documents")
    reach = np.ones(len(documents), dtype=np.bool_)
    for scope in scopes:
        if scope.access is not None:
            reach &= _open_by_label(documents.column("access"), scope.access)
        if scope.hidden:
            wanted = pa.array(sorted(scope.hidden), pa.string())
            reach &= ~to_mask(pc.is_in(documents.column("document_id"), wanted))
    seen = reach.copy()
    for scope in scopes:
        if scope.documents:
            seen &= _find_named(documents, scope.documents, reach)
        seen &= _find_described(documents, scope.metadata, reach)
    return seen


def _open_by_label(labels: pa.Array, access: frozenset[str]) -> Mask:
    """The documents whose labels let them be seen."""
    seen = pc.list_value_length(labels).to_numpy(zero_copy_only=False) == 0
    owners = pc.list_parent_indices(labels).to_numpy(zero_copy_only=False)
    mine = pc.is_in(pc.list_flatten(labels), pa.array(sorted(access), pa.string()))
    seen[owners[to_mask(mine)]] = True
    return np.asarray(seen, dtype=np.bool_)


def _find_named(documents: MappedRows, names: Collection[str], reach: Mask) -> Mask:
    sources = documents.column("source")
    files = pc.list_element(pc.split_pattern(sources, "#", max_splits=1), 0)
    seen = np.zeros(len(documents), dtype=np.bool_)
    for wanted in sorted(names):
        columns = (documents.column("document_id"), sources, files)
        found = np.any([to_mask(pc.equal(c, wanted)) for c in columns], axis=0) & reach
        if not found.any():
            known = files.filter(pa.array(reach)).unique().to_pylist()
            near = get_close_matches(wanted, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InputError(f"no document has the id or source {wanted!r}{hint}")
        seen |= found
    return seen


def _find_described(documents: MappedRows, pairs: Collection[tuple[str, str]], reach: Mask) -> Mask:
    described = documents.column("metadata")
    owners = pc.list_parent_indices(described).to_numpy(zero_copy_only=False)
    seen = np.ones(len(documents), dtype=np.bool_)
    for field, value in sorted(pairs):
        having = np.zeros(len(documents), dtype=np.bool_)
        having[owners[to_mask(pc.equal(pc.list_flatten(described), f"{field}={value}"))]] = True
        if not (having & reach).any():
            raise InputError(f"no document has {field} = {value!r} in its metadata")
        seen &= having
    return seen
