"""`kpyramid rejects`: requests to a language model that got no usable reply, and asking again."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from kpyramid.cli.cache import open_cache
from kpyramid.cli.options import (
    DEFAULT_WAREHOUSE,
    SettingsOption,
    WarehouseOption,
    command,
    name_first,
    print_found,
)
from kpyramid.errors import InputError, SettingsError

if TYPE_CHECKING:
    from kpyramid.llm.cache import FailureEntry, ReplyCache

app = typer.Typer(
    name="rejects",
    no_args_is_help=True,
    help="See which requests to a language model got no usable reply, and have them asked again.",
)

_EXAMPLES = 5
_SUBJECT_CHARACTERS = 60
_DETAIL_CHARACTERS = 200
_SHORT_KEY = 12
_PREFIX = re.compile(r"[0-9a-f]{8,64}")

KindOption = Annotated[
    str | None, typer.Option(help="Only this kind, such as refused, truncated, invalid.")
]


@command(app, "list")
def list_(
    warehouse: WarehouseOption = DEFAULT_WAREHOUSE,
    settings: SettingsOption = None,
    kind: KindOption = None,
) -> None:
    """Show failed requests by kind: how many, whether they are asked again, and examples.

    --json gives all of them whole, with the prompt and the raw reply.
    """
    from kpyramid.llm.caller import is_due

    cache, place, _ = open_cache(warehouse, settings, read_only=True)
    entries = _choose(cache, kind)
    kinds: dict[str, list[FailureEntry]] = {}
    for entry in entries:
        kinds.setdefault(str(entry.failure.kind), []).append(entry)
    counts = {name: len(found) for name, found in sorted(kinds.items())}
    rows = [
        {**asdict(entry.failure), "due": is_due(entry.failure)}
        | {name: value for name, value in asdict(entry).items() if name != "failure"}
        for entry in entries
    ]
    lines = [] if entries else [f"{place}: no failed requests"]
    for name, found in sorted(kinds.items()):
        due = sum(is_due(entry.failure) for entry in found)
        lines.append(f"{len(found)} {name}, the next build asks for {due} of them again:")
        lines += name_first([_describe(entry) for entry in found], _EXAMPLES)
    if any(not is_due(entry.failure) for entry in entries):
        lines.append("`kpyramid rejects retry` has the others asked again as well.")
    print_found({"cache": place, "kinds": counts, "failures": rows}, lines)


@command(app)
def retry(
    keys: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY]...", help="Keys from `rejects list`, at least 8 digits."),
    ] = None,
    kind: KindOption = None,
    warehouse: WarehouseOption = DEFAULT_WAREHOUSE,
    settings: SettingsOption = None,
) -> None:
    """Forget failures, so that the next build asks for them again, which costs as any call does.

    All of them, or those of a kind, or those named.
    """
    if keys and kind:
        raise SettingsError("give keys or --kind, not both")
    cache, place, _ = open_cache(warehouse, settings)
    chosen = [entry.failure.key for entry in _choose(cache, kind)]
    if keys:
        chosen = _find_keys(keys, chosen)
    for key in chosen:
        cache.drop_failure(key)
    print_found(
        {"cache": place, "forgotten": len(chosen), "keys": chosen},
        [f"{place}: {len(chosen)} failures forgotten; the next build asks again"],
    )


def _choose(cache: "ReplyCache", kind: str | None) -> "list[FailureEntry]":
    from kpyramid.llm.types import FailureKind

    kinds = sorted(FailureKind)
    if kind is not None and kind not in kinds:
        raise SettingsError(f"unknown kind {kind!r}; there are {', '.join(kinds)}")
    return [entry for entry in cache.list_failures() if kind is None or entry.failure.kind == kind]


def _find_keys(given: Sequence[str], known: Sequence[str]) -> list[str]:
    found = []
    problems = []
    for prefix in given:
        matching = [key for key in known if key.startswith(prefix)]
        if not _PREFIX.fullmatch(prefix):
            problems.append(f"  {prefix!r}: no 8 to 64 hex digits")
        elif len(matching) != 1:
            problems.append(f"  {prefix}: {len(matching)} failures have such a key")
        found += matching
    if problems:
        named = "\n".join(problems)
        raise InputError(
            f"nothing was forgotten:\n{named}\n`kpyramid rejects list --json` has the whole keys"
        )
    return sorted(set(found))


def _describe(entry: "FailureEntry") -> str:
    from kpyramid.cli.console import shorten

    failure = entry.failure
    made = f"{entry.task} v{entry.version}, document {entry.document or 'none'}"
    return (
        f"{failure.key[:_SHORT_KEY]}  {made}, runs that tried: {failure.attempts}\n"
        f"      {shorten(entry.subject, _SUBJECT_CHARACTERS)!r}: "
        f"{shorten(failure.detail, _DETAIL_CHARACTERS)}"
    )
