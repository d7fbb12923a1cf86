"""`kpyramid cache`: what is kept of a model's replies, moved between caches, and cleared."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kpyramid.cli.console import show_count
from kpyramid.cli.render import JSON_ONLY, Result
from kpyramid.errors import InputError, IntegrityError, SettingsError

if TYPE_CHECKING:
    from kpyramid.llm.cache import ReplyCache, ReplyEntry
    from kpyramid.settings import Settings
    from kpyramid.storage.layout import Warehouse


@dataclass(frozen=True, kw_only=True)
class Kept(Result):
    """What a cache holds, and what was written to or taken from a file."""

    cache: str
    replies: int
    bytes: int
    oldest: str | None
    newest: str | None
    failures: Any
    file: str | None = None
    written: int | None = None
    new: int | None = None
    known: int | None = None
    damaged: Sequence[Any] = ()


def cache(
    *,
    export: Path | None = None,
    import_: Path | None = None,
    place: "Warehouse",
    loaded: "Settings",
    quiet: bool,
) -> Kept:
    """Count the replies of language models that are kept, write them to a file, or take some in.

    Every reply is kept as it came, under a key of all that was asked, so nothing is paid twice.
    The cache is a folder in the warehouse, or the folder or s3:// address that the setting
    llm.cache names. How many requests of a build were answered from it stands in the report of the
    build; `kpyramid gc --replies` clears it.

    A file has one JSON object per line, sorted by key, and is compressed if it ends in .gz; the
    same replies give the same bytes. The prompts are not in it, but the replies may repeat what
    your documents say. Of a file that is taken in, a reply that is there already stays as it is; a
    damaged line is named, the others are taken, and the exit code is 3.

    `export`: write all replies to this file.
    `import_`: take the replies of this file into the cache.
    """
    from kpyramid.llm.cache import describe_contents, import_replies, write_recording

    if export and import_:
        raise SettingsError("give --export or --import, not both")
    replies, home = open_cache(place, loaded, read_only=import_ is None)
    moved: dict[str, Any] = {}
    if export:
        damaged: list[str] = []
        entries = show_count(_read_entries(replies, damaged), "exported", quiet=quiet)
        written = write_recording(export, entries)
        moved = {"file": str(export), "written": written, "damaged": damaged}
    elif import_:
        taken = import_replies(replies, import_, partial(show_count, label="read", quiet=quiet))
        lines = [(line.number, line.detail) for line in taken.damaged]
        moved = {"file": str(import_), "new": taken.new, "known": taken.known, "damaged": lines}
        if lines:
            listed = "".join(f"\n  line {number}: {detail}" for number, detail in lines[:10])
            moved["fault"] = InputError(
                f"{import_}: {len(lines)} damaged line(s):{listed}\nAll other lines were taken; "
                "export the file again and import it again for the rest"
            )
    contents = asdict(describe_contents(replies))
    for name in ("oldest", "newest"):
        day = datetime.fromtimestamp(contents[name], UTC) if contents["replies"] else None
        contents[name] = f"{day:%Y-%m-%d}" if day else None
    return Kept(cache=home, **contents, **moved)


def _read_entries(cache: "ReplyCache", damaged: list[str]) -> "Iterator[ReplyEntry]":
    for key, _ in cache.list_replies():
        entry = cache.read_reply_entry(key)
        if entry is None:
            damaged.append(key)
        else:
            yield entry


@dataclass(frozen=True)
class Swept:
    """Replies that were removed, or would be, and those that stay."""

    cache: str
    removed: int
    bytes: int
    used: int
    young: int
    keys: Sequence[str] = field(metadata=JSON_ONLY)


def sweep_replies(
    place: "Warehouse", loaded: "Settings", before: datetime, *, dry_run: bool, quiet: bool
) -> Swept:
    """Removes the replies of before that moment that nothing rests on; a dry run only counts them.

    A reply stays if a result that a run of this warehouse used was made of it. Failures and
    batches stay.

    Raises:
        IntegrityError: what rests on replies cannot be read, so none was removed.
    """
    from kpyramid.llm.cache import plan_sweep

    replies, home = open_cache(place, loaded)
    sweep = plan_sweep(replies, find_live_keys(place), before=before.timestamp())
    for key in show_count(() if dry_run else sweep.removable, "removed", quiet=quiet):
        replies.drop_reply(key)
    kept = (sweep.used, sweep.young)
    return Swept(home, len(sweep.removable), sweep.bytes, *kept, list(sweep.removable))


def open_cache(
    place: "Warehouse", loaded: "Settings", *, read_only: bool = False
) -> "tuple[ReplyCache, str]":
    """The cache that the settings name, and where it is.

    Raises:
        InputError: there is no such warehouse or cache.
    """
    from kpyramid.llm.cache import ReplyCache
    from kpyramid.pipeline.models import open_replies

    cache = ReplyCache(open_replies(place, loaded, read_only=read_only), read_only=read_only)
    return cache, loaded.llm.cache or place.locate("cache/llm")


def find_live_keys(warehouse: "Warehouse") -> set[str]:
    """The keys of all replies that results rest on which a run of the warehouse used.

    What lies in the trash may come back, and its replies stay until it is deleted.

    Raises:
        IntegrityError: a run's mark, or what it names, cannot be read.
    """
    from kpyramid.storage.results import REQUESTS
    from kpyramid.storage.retention import read_marks

    marks: set[str] = set()
    for place in ("runs", "trash/runs"):
        names = [blob.name.removeprefix(f"{place}/") for blob in warehouse.store.list(place)]
        marks |= read_marks(warehouse, {name.partition("/")[0] for name in names}, place)
    live: set[str] = set()
    for name in (f"{top}cache/results/{m}/{REQUESTS}" for m in marks for top in ("", "trash/")):
        try:
            live.update(json.loads(warehouse.store.read(name) or b"[]"))
        except (OSError, ValueError, TypeError) as e:
            raise IntegrityError(
                f"{warehouse.locate(name)} cannot be read ({e}), so what rests on it is unknown "
                "and nothing was removed; restore it, or remove the folder that it lies in"
            ) from e
    return live
