"""The snapshot that a service answers from: it follows a ref and is exchanged without a gap."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kpyramid.errors import PyramidError
from kpyramid.query.retrieval import retrieve
from kpyramid.snapshot.snapshot import Snapshot, is_path, locate_snapshot, open_snapshot
from kpyramid.snapshot.view import EVERYTHING, Scope
from kpyramid.storage.layout import open_warehouse
from kpyramid.storage.leases import hold
from kpyramid.storage.verification import require_whole

if TYPE_CHECKING:
    from kpyramid.settings import EmbedSettings

log = logging.getLogger(__name__)

_MOST_VIEWS = 32
"""Sets of labels whose views are kept open; each has the rows that it hides in memory."""
_WARMING = "What is this about?"


@dataclass(slots=True)
class _Held:
    """An open snapshot, its views by labels, and how many requests read it."""

    snapshot: Snapshot
    lease: ExitStack
    views: "OrderedDict[frozenset[str], Snapshot]" = field(default_factory=OrderedDict)
    readers: int = 0
    is_retired: bool = False


class Current:
    """The snapshot of a ref, an id or a folder; threads may share it.

    A new snapshot of the ref is checked and warmed before it takes the place of the one before,
    whose lease ends with its last request. One that is damaged never does: `problem` says why.

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
        check: bool = True,
    ) -> None:
        self.ref = str(ref)
        self.problem = ""
        self.warehouse = warehouse
        self._place = (ref, warehouse)
        self._model = model
        self._check = check
        self._guard = threading.Lock()
        self._held = self._open()

    @property
    def id(self) -> str:
        """The id of the snapshot that new requests read."""
        return self._held.snapshot.id

    @contextmanager
    def read(self, labels: frozenset[str] = frozenset()) -> Iterator[Snapshot]:
        """What a reader with these labels may see; it stays whole until the block ends."""
        with self._guard:
            held = self._held
            held.readers += 1
        try:
            yield self._view(held, labels)
        finally:
            with self._guard:
                held.readers -= 1
                self._release(held)

    def follow(self) -> bool:
        """Looks where the ref is now, and goes there; whether it moved."""
        try:
            if locate_snapshot(*self._place).name == self.id:
                self.problem = ""
                return False
            fresh = self._open()
        except (PyramidError, OSError) as e:
            if str(e) != self.problem:
                log.error("%s stays at %s: %s", self.ref, self.id, e)
            self.problem = str(e)
            return False
        with self._guard:
            former, self._held, self.problem = self._held, fresh, ""
            former.is_retired = True
            self._release(former)
        log.warning("%s moved from %s to %s", self.ref, former.snapshot.id, fresh.snapshot.id)
        return True

    def watch(self, seconds: float) -> Callable[[], None]:
        """Follows the ref again and again in a thread; what is returned ends that."""
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

    def _open(self) -> _Held:
        folder = locate_snapshot(*self._place)
        lease = ExitStack()
        try:
            if not is_path(self._place[0]):
                lease.enter_context(hold(open_warehouse(folder.parent.parent), folder.name))
        except OSError as e:
            log.warning("no lease on %s, so gc may remove it: %s", folder.name, e)
        try:
            if self._check:
                require_whole(folder, ". Serve another snapshot, or build again")
            snapshot = open_snapshot(folder, model=self._model, scope=EVERYTHING)
            retrieve(_WARMING, snapshot.scoped(Scope()))
        except BaseException:
            lease.close()
            raise
        return _Held(snapshot, lease)

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
