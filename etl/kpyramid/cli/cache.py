"""`kpyramid cache`: what is kept of a model's replies, counted, and moved between caches."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
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
    """Count the replies of language models that are kept, write them to a file, or take some in.

    Every reply is kept as it came, under a key of all that was asked, so nothing is paid twice.
    The cache is a folder in the warehouse, or the folder or s3:// address that the setting
    llm.cache names. How many requests of a build were answered from it stands in the report of the
    build.

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
                f"{import_}: damaged lines: {len(lines)}{listed}\nAll other lines were taken; "
                "export the file again and import it again for the rest"
            )
    contents = asdict(describe_contents(replies))
    for name in ("oldest", "newest"):
        day = datetime.fromtimestamp(contents[name], UTC) if contents["replies"] else None
        contents[name] = f"{day:%Y-%m-%d}" if day else None
    return name_values(cache=home, **contents, **moved)


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
    """The cache that the settings name, and where it is.

    Raises:
        InputError: there is no such warehouse or cache.
    """
    from kpyramid.llm.cache import ReplyCache
    from kpyramid.pipeline.models import open_replies

    cache = ReplyCache(open_replies(place, loaded, read_only=read_only), read_only=read_only)
    return cache, loaded.llm.cache or place.locate("cache/llm")
