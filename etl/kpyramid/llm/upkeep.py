"""Looking after a cache: what is in it, what may go, taking in a recording."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from kpyramid.llm.cache import ReplyCache, ReplyEntry
from kpyramid.llm.recordings import DamagedLine, read_recording

Count = Callable[[Iterable[ReplyEntry | DamagedLine]], Iterable[ReplyEntry | DamagedLine]]


@dataclass(frozen=True, slots=True)
class Contents:
    """What a cache holds; `oldest` and `newest` reply in seconds since 1970, 0 for none."""

    replies: int
    bytes: int
    oldest: float
    newest: float
    failures: dict[str, int]


@dataclass(frozen=True, slots=True)
class Sweep:
    """Keys of the replies that may go, their bytes, and how many stay: in use, or too young."""

    removable: tuple[str, ...]
    bytes: int
    used: int
    young: int


@dataclass(frozen=True, slots=True)
class Intake:
    """How many replies of a recording were new, how many known, and its damaged lines."""

    new: int
    known: int
    damaged: tuple[DamagedLine, ...]


def describe_contents(cache: ReplyCache) -> Contents:
    """Counts what is kept."""
    blobs = [blob for _, blob in cache.list_replies()]
    times = [blob.modified for blob in blobs]
    kinds = Counter(str(entry.failure.kind) for entry in cache.list_failures())
    return Contents(
        len(blobs),
        sum(blob.size for blob in blobs),
        min(times, default=0),
        max(times, default=0),
        dict(sorted(kinds.items())),
    )


def plan_sweep(cache: ReplyCache, live: Collection[str], *, before: float) -> Sweep:
    """The replies that nothing rests on and that were written before a time."""
    removable, size, used, young = [], 0, 0, 0
    for key, blob in cache.list_replies():
        if key in live:
            used += 1
        elif blob.modified >= before:
            young += 1
        else:
            removable.append(key)
            size += blob.size
    return Sweep(tuple(removable), size, used, young)


def import_replies(cache: ReplyCache, file: Path, count: Count) -> Intake:
    """Takes the replies of a recording; one that is there stays. `count` sees each line go by.

    Raises:
        InputError: the file cannot be read.
    """
    new = known = 0
    damaged = []
    for entry in count(read_recording(file)):
        if isinstance(entry, DamagedLine):
            damaged.append(entry)
        elif cache.read_reply_entry(entry.key) is not None:
            known += 1
        else:
            cache.keep_entry(entry)
            new += 1
    return Intake(new, known, tuple(damaged))
