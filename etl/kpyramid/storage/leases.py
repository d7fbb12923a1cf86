"""Leases: while one lasts, `gc` leaves a snapshot in its place."""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from kpyramid.errors import ConflictError, IntegrityError
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.writing import is_dead, name_process, write_durably


@contextmanager
def hold(warehouse: Warehouse, snapshot: str) -> Iterator[None]:
    """Keeps a snapshot in its place until the block or the process ends.

    Raises:
        ConflictError: it is not there, or was removed just now.
    """
    path = warehouse.leases / f"{name_process()}.{uuid.uuid4().hex}.json"
    write_durably(path, json.dumps({"snapshot": snapshot}).encode())
    try:
        # In this order: gc looks for leases again after it moved a snapshot away.
        if not (warehouse.snapshots / snapshot).is_dir():
            raise ConflictError(
                f"snapshot {snapshot} is not in {warehouse.snapshots}: it was removed, by `gc` if "
                "no ref was at it; run the command again"
            )
        yield
    finally:
        path.unlink(missing_ok=True)


def list_held(warehouse: Warehouse) -> dict[str, str]:
    """The snapshots that are held, by the names of their leases; those of dead processes go.

    Raises:
        IntegrityError: a lease cannot be read.
    """
    held = {}
    for path in sorted(warehouse.leases.glob("*.json")):
        if is_dead(path.name):
            path.unlink(missing_ok=True)
            continue
        try:
            held[path.name] = str(json.loads(path.read_bytes())["snapshot"])
        except FileNotFoundError:
            continue  # ended since it was listed
        except (OSError, ValueError, KeyError, TypeError) as e:
            raise IntegrityError(
                f"lease {path} cannot be read: {e!r}. Remove it if nobody reads any more"
            ) from e
    return held
