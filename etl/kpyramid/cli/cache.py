"""`kpyramid cache`: what is kept of a model's replies, counted, and moved between caches."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kpyramid.cli.console import show_count
from kpyramid.cli.render import Result, name_values
from kpyramid.errors import InputError, SettingsError

if TYPE_CHECKING:
    from kpyramid.llm.cache import ReplyCache, ReplyEntry
    from kpyramid.settings import Settings
    from kpyramid.storage.layout import Warehouse


def cache(
    *,
    export: Path | None = None,
    import_: Path | None = None,
    place: "Warehouse",
    loaded: "Settings",
    quiet: bool,
) -> Result:
    """Count the stored replies of language models, export them to a file, or import some.

    Every reply is stored unchanged, under a key of its whole request, so nothing is paid twice.
    The cache is a folder in the warehouse, or the folder or s3:// address that the setting
    llm.cache names. The report of a build has the number of requests that were answered from it.

    A file has one JSON object per line, sorted by key, and is compressed if it ends in .gz; the
    same replies give the same bytes. It has no prompts, but the replies may repeat text of
    your documents. An import does not change replies that are in the cache already. It names
    damaged lines, imports the others, and ends with exit code 3.

    `export`: write all replies to this file.
    `import_`: add the replies of this file to the cache.
    """
    from kpyramid.llm.cache import DamagedLine, read_recording, write_recording

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
        lines: list[tuple[int, str]] = []
        counts = {"new": 0, "known": 0}
        for entry in show_count(read_recording(import_), "read", quiet=quiet):
            if isinstance(entry, DamagedLine):
                lines.append((entry.number, entry.detail))
            elif replies.read_reply_entry(entry.key) is not None:
                counts["known"] += 1
            else:
                replies.keep_entry(entry)
                counts["new"] += 1
        moved = {"file": str(import_), **counts, "damaged": lines}
        if lines:
            listed = "".join(f"\n  line {number}: {detail}" for number, detail in lines[:10])
            moved["fault"] = InputError(
                f"{import_}: damaged lines: {len(lines)}{listed}\nAll other lines were imported; "
                "export the file again and import it again for the rest"
            )
    blobs = [blob for _, blob in replies.list_replies()]
    days = [f"{datetime.fromtimestamp(blob.modified, UTC):%Y-%m-%d}" for blob in blobs]
    kinds = Counter(str(entry.failure.kind) for entry in replies.list_failures())
    return name_values(
        cache=home,
        replies=len(blobs),
        bytes=sum(blob.size for blob in blobs),
        oldest=min(days, default=None),
        newest=max(days, default=None),
        failures=dict(sorted(kinds.items())),
        **moved,
    )


def _read_entries(cache: "ReplyCache", damaged: list[str]) -> "Iterator[ReplyEntry]":
    for key, _ in cache.list_replies():
        entry = cache.read_reply_entry(key)
        if entry is None:
            damaged.append(key)
        else:
            yield entry


def open_cache(
    place: "Warehouse", loaded: "Settings", *, read_only: bool = False
) -> "tuple[ReplyCache, str]":
    """The cache of the settings, and its place.

    Raises:
        InputError: there is no such warehouse or cache.
    """
    from kpyramid.llm.cache import ReplyCache
    from kpyramid.pipeline.models import open_replies

    cache = ReplyCache(open_replies(place, loaded, read_only=read_only), read_only=read_only)
    return cache, loaded.llm.cache or place.locate("cache/llm")
