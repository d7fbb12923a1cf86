"""The snapshot of a service: it follows a ref and is exchanged without a gap."""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kpyramid.errors import InputError, IntegrityError
from kpyramid.query.retrieval import retrieve
from kpyramid.snapshot.relabelled import list_later
from kpyramid.snapshot.snapshot import (
    Snapshot,
    is_path,
    locate_snapshot,
    name_warehouse,
    open_snapshot,
)
from kpyramid.snapshot.view import EVERYTHING, Scope
from kpyramid.storage.layout import open_warehouse
from kpyramid.storage.leases import hold
from kpyramid.storage.refs import list_entries
from kpyramid.storage.verification import require_whole

if TYPE_CHECKING:
    from kpyramid.settings import EmbedSettings

log = logging.getLogger(__name__)

_MOST_VIEWS = 32
"""Sets of labels whose views are cached; each has its hidden rows in memory."""
_WARMING = "What is this about?"


@dataclass(slots=True)
class _Held:
    """An open snapshot, its views by labels, and the number of requests that read it.

    `later`: snapshots whose labels apply in this one, too.
    """

    snapshot: Snapshot
    lease: ExitStack
    later: list[tuple[str, ...]]
    views: "OrderedDict[frozenset[str], Snapshot]" = field(default_factory=OrderedDict)
    readers: int = 0
    is_retired: bool = False


class Current:
    """The snapshot of a ref, an id or a folder; threads may share it.

    A new snapshot of the ref is checked and warmed before it replaces the former one, whose lease
    ends with its last request. A damaged one never does: `problem` tells why.

    Raises:
        InputError: there is no such snapshot.
        IntegrityError: its files are not what its manifest says.
    """

    def __init__(
        self,
        ref: str | Path,
        warehouse: str | Path | None = None,
        *,
        model: "str | EmbedSettings | None" = None,
    ) -> None:
        self.ref = str(ref)
        self.problem = ""
        self._place = (ref, warehouse)
        self._model = model
        self._guard = threading.Lock()
        self._damaged, self._looked = "", time.monotonic()
        self._held = self._open()

    @property
    def id(self) -> str:
        """The id of the snapshot for new requests."""
        return self._held.snapshot.id

    @contextmanager
    def read(self, labels: frozenset[str] = frozenset()) -> Iterator[Snapshot]:
        """The view of a reader with these labels, valid until the block ends."""
        with self._guard:
            held = self._held
            held.readers += 1
        try:
            yield self._view(held, labels)
        finally:
            with self._guard:
                held.readers -= 1
                self._release(held)

    @property
    def looked(self) -> float:
        """Seconds since the last look at the ref."""
        return round(time.monotonic() - self._looked, 1)

    def follow(self) -> bool:
        """Reads the ref and opens its new snapshot; returns whether it moved."""
        newest = ""
        try:
            newest = locate_snapshot(*self._place).name
            is_same = newest == self.id and self._list_later(newest) == self._held.later
            if is_same:
                self.problem = ""
            if is_same or newest == self._damaged:
                return False
            fresh = self._open()
        except Exception as e:  # whatever it is, the former is served and the next look is made
            if str(e) != self.problem:
                log.exception("%s stays at %s", self.ref, self.id)
            self.problem = str(e) or type(e).__name__
            self._damaged = newest if isinstance(e, IntegrityError) else ""
            return False
        finally:
            self._looked = time.monotonic()
        with self._guard:
            former, self._held, self.problem = self._held, fresh, ""
            former.is_retired = True
            self._release(former)
        if former.snapshot.id == fresh.snapshot.id:
            log.warning("%s is read by the labels of later snapshots", self.id)
            return False
        log.warning("%s moved from %s to %s", self.ref, former.snapshot.id, fresh.snapshot.id)
        return True

    def find_former(self, name: str, served: str) -> str | None:
        """The id that `@1`, `@2` ... denotes, counted back from a served one; or an id of the log.

        None if the ref had no snapshot before.

        Raises:
            InputError: it is neither, or a folder is served, which has no log.
        """
        if is_path(self._place[0]):
            raise InputError("a copied folder is served, which has no earlier snapshot")
        place = open_warehouse(name_warehouse(self._place[1]))
        log_of_ref = list_entries(place, self.ref.partition("@")[0])
        ids = [entry.snapshot for entry in log_of_ref]
        back = name.removeprefix("@")
        if name in ids:
            return name
        if not name.startswith("@") or not back.isdecimal():
            raise InputError(f"{name!r}: name @1, @2 ..., or an id of the ref's log")
        before = ids[: len(ids) - 1 - ids[::-1].index(served)] if served in ids else []
        return before[-int(back)] if 0 < int(back) <= len(before) else None

    @contextmanager
    def open_former(self, snapshot: str, scope: Scope) -> Iterator[Snapshot]:
        """An earlier snapshot, with a lease until the block ends."""
        place = name_warehouse(self._place[1])
        with hold(open_warehouse(place), snapshot):
            yield open_snapshot(snapshot, place, scope=scope)

    def watch(self, seconds: float) -> Callable[[], None]:
        """Follows the ref periodically in a thread; returns a function that ends it."""
        ended = threading.Event()

        def look() -> None:
            while not ended.wait(seconds):
                self.follow()

        if not is_path(self._place[0]):
            threading.Thread(target=look, name="follow", daemon=True).start()
        return ended.set

    def close(self) -> None:
        """Ends the lease."""
        self._held.lease.close()

    def _list_later(self, snapshot: str) -> list[tuple[str, ...]]:
        """Snapshots whose labels apply to this one too; a copied folder knows its own only."""
        if is_path(self._place[0]):
            return []
        return list_later(open_warehouse(name_warehouse(self._place[1])), snapshot)

    def _open(self) -> _Held:
        folder = locate_snapshot(*self._place)
        later = self._list_later(folder.name)
        lease = ExitStack()
        try:
            if not is_path(self._place[0]):
                lease.enter_context(hold(open_warehouse(folder.parent.parent), folder.name))
        except OSError as e:
            log.warning("no lease on %s, so gc may remove it: %s", folder.name, e)
        try:
            require_whole(folder, ". Serve another snapshot, or build again")
            name = folder if is_path(self._place[0]) else folder.name
            snapshot = open_snapshot(name, self._place[1], model=self._model, scope=EVERYTHING)
            view = snapshot.scoped(Scope())
            retrieve(_WARMING, view)
        except BaseException:
            lease.close()
            raise
        return _Held(snapshot, lease, later, OrderedDict({frozenset[str](): view}))

    def _view(self, held: _Held, labels: frozenset[str]) -> Snapshot:
        with self._guard:
            view = held.views.get(labels) or held.snapshot.scoped(Scope(access=labels))
            held.views[labels] = view
            held.views.move_to_end(labels)
            while len(held.views) > _MOST_VIEWS:
                held.views.popitem(last=False)
            return view

    def _release(self, held: _Held) -> None:
        if held.is_retired and not held.readers:
            held.lease.close()
