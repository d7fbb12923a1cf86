"""`kpyramid cache`: what is kept of a model's replies, moved between caches, and cleared."""

import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kpyramid.cli.options import (
    QuietOption,
    command,
    name_first,
    print_found,
)
from kpyramid.errors import InputError, IntegrityError

if TYPE_CHECKING:
    from kpyramid.llm.cache import ReplyCache, ReplyEntry
    from kpyramid.settings import Settings
    from kpyramid.storage.layout import Warehouse

app = typer.Typer(
    name="cache",
    no_args_is_help=True,
    help="Keep, share and clear the replies of language models.\n\n"
    "Every reply is kept as it came, under a key of all that was asked, so nothing is paid twice. "
    "The cache is a folder in the warehouse, or the folder or s3:// address that the setting "
    "llm.cache names.",
)

_SECONDS_PER_DAY = 86_400
_MOST_NAMED = 10

RecordingArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="Lines of JSON; compressed if it ends in .gz.")
]


@command(app)
def stats(
    place: "Warehouse",
    loaded: "Settings",
) -> None:
    """Count what is kept: replies, their size and age, failures by kind.

    How many requests of a build were answered from the cache stands in the build's report.
    """
    from kpyramid.llm.cache import describe_contents

    cache, home = open_cache(place, loaded, read_only=True)
    found = describe_contents(cache)
    values = asdict(found)
    lines = [f"{home}: {found.replies} replies, {found.bytes} bytes"]
    for name in ("oldest", "newest"):
        values[name] = _name_day(values[name]) if found.replies else None
    if found.replies:
        lines.append(f"the oldest of {values['oldest']}, the newest of {values['newest']}")
    for kind, count in found.failures.items():
        lines.append(f"{count} failed: {kind} (see `kpyramid rejects requests --kind {kind}`)")
    print_found({"cache": home, **values}, lines)


@command(app)
def gc(
    place: "Warehouse",
    loaded: "Settings",
    min_age_days: Annotated[
        float, typer.Option(min=0, help="Younger replies stay, used or not.")
    ] = 30.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be removed; remove nothing.")
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Remove replies that nothing rests on any more.

    A reply stays if a result that a run of this warehouse used was made of it, or if it is
    younger than --min-age-days. Failures and batches stay. A cache that several warehouses
    share must not be cleared from one of them: only its own runs are seen.
    """
    from kpyramid.cli.console import show_count
    from kpyramid.llm.cache import plan_sweep

    cache, home = open_cache(place, loaded)
    live = find_live_keys(place)
    now = time.time()
    sweep = plan_sweep(cache, live, before=now - min_age_days * _SECONDS_PER_DAY)
    if not dry_run:
        for key in show_count(sweep.removable, "removed", quiet=quiet):
            cache.drop_reply(key)
    found = {
        "cache": home,
        "dry_run": dry_run,
        "removed": len(sweep.removable),
        "bytes": sweep.bytes,
        "used": sweep.used,
        "young": sweep.young,
        "keys": list(sweep.removable),
    }
    verb = "would remove" if dry_run else "removed"
    lines = [
        f"{home}: {verb} {len(sweep.removable)} replies, {sweep.bytes} bytes",
        f"kept {sweep.used} in use, {sweep.young} others that are too young",
    ]
    print_found(found, [*lines, *(name_first(sweep.removable, _MOST_NAMED) if dry_run else ())])


@command(app)
def export(
    file: RecordingArgument,
    place: "Warehouse",
    loaded: "Settings",
    quiet: QuietOption = False,
) -> None:
    """Write all replies to a file, one JSON object per line, sorted by key.

    The same replies give the same bytes. `kpyramid cache import` reads the file into another
    cache. The prompts are not in it, but the replies may repeat what your documents say.
    """
    from kpyramid.cli.console import show_count
    from kpyramid.llm.cache import write_recording

    cache, home = open_cache(place, loaded, read_only=True)
    damaged: list[str] = []

    def read_entries() -> Iterator["ReplyEntry"]:
        for key, _ in cache.list_replies():
            entry = cache.read_reply_entry(key)
            if entry is None:
                damaged.append(key)
            else:
                yield entry

    entries = show_count(read_entries(), "exported", quiet=quiet)
    written = write_recording(file, entries)
    found = {"cache": home, "file": str(file), "written": written, "damaged": damaged}
    print_found(found, [f"{file}: {written} replies of {home}"])


@command(app, "import")
def import_(
    file: RecordingArgument,
    place: "Warehouse",
    loaded: "Settings",
    quiet: QuietOption = False,
) -> None:
    """Take the replies of an exported file into the cache.

    A reply that is there already stays as it is. A damaged line is named, the others are taken,
    and the exit code is 3.
    """
    from kpyramid.cli.console import show_count
    from kpyramid.llm.cache import import_replies

    cache, home = open_cache(place, loaded)
    found = import_replies(cache, file, partial(show_count, label="read", quiet=quiet))
    damaged = [(line.number, line.detail) for line in found.damaged]
    counts = {"new": found.new, "known": found.known}
    print_found(
        {"cache": home, "file": str(file), **counts, "damaged": damaged},
        [f"{home}: {found.new} new replies, {found.known} known"],
    )
    if damaged:
        named = [f"line {number}: {detail}" for number, detail in damaged]
        listed = "\n".join(name_first(named, _MOST_NAMED, ""))
        raise InputError(
            f"{file}: {len(damaged)} damaged line(s):\n{listed}\nAll other lines were "
            "taken; export the file again and import it again for the rest"
        )


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

    Raises:
        IntegrityError: a run's mark, or what it names, cannot be read.
    """
    from kpyramid.storage.results import REQUESTS
    from kpyramid.storage.retention import read_marks

    runs = {blob.name.split("/")[1] for blob in warehouse.store.list("runs")}
    live: set[str] = set()
    for mark in read_marks(warehouse, runs):
        name = f"cache/results/{mark}/{REQUESTS}"
        try:
            live.update(json.loads(warehouse.store.read(name) or b"[]"))
        except (OSError, ValueError, TypeError) as e:
            raise IntegrityError(
                f"{warehouse.locate(name)} cannot be read ({e}), so what rests on it is unknown "
                "and nothing was removed; restore it, or remove the folder that it lies in"
            ) from e
    return live


def _name_day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"
