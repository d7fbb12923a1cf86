"""`kpyramid rejects`: rows that a build refused, requests to a model that failed, asking again."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kpyramid.cli.cache import open_cache
from kpyramid.cli.options import (
    DEFAULT_WAREHOUSE,
    SnapshotOption,
    WarehouseOption,
    command,
    name_first,
    print_found,
    say,
)
from kpyramid.errors import InputError, SettingsError

if TYPE_CHECKING:
    from kpyramid.llm.cache import FailureEntry, ReplyCache
    from kpyramid.settings import Settings
    from kpyramid.snapshot.snapshot import Snapshot
    from kpyramid.snapshot.view import Scope
    from kpyramid.storage.layout import Warehouse

app = typer.Typer(
    name="rejects",
    no_args_is_help=True,
    help="See what a build could not use, and which requests to a language model got no usable "
    "reply; have those asked again.",
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
    ref: SnapshotOption = "main",
    warehouse: WarehouseOption = DEFAULT_WAREHOUSE,
    stage: Annotated[str | None, typer.Option(help="Only of this stage, such as ingest.")] = None,
    reason: Annotated[
        str | None, typer.Option(help="Only for this reason, such as needs_extra.")
    ] = None,
    document: Annotated[
        str | None, typer.Option(help="Only of this document, by its id or its source.")
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Most rows that are shown; 0 for all.")] = 20,
    *,
    scope: "Scope",
) -> None:
    """List what the build of a snapshot could not use: files, records, sentences, facts.

    First the numbers by stage and reason, then the rows with what exactly was wrong. Rows of
    documents with labels are shown with --access or --everything; where a document is hidden, so
    is what belongs to no document.

    Examples: kpyramid rejects list --stage ingest; kpyramid rejects list --reason low_confidence
    """
    from kpyramid.cli.console import print_rows, shorten
    from kpyramid.pipeline.stage import PIPELINE
    from kpyramid.snapshot.snapshot import open_snapshot
    from kpyramid.storage.contracts import map_column

    snapshot = open_snapshot(ref, warehouse, scope=scope)
    rows, hidden = _read_rejects(snapshot)
    sources = map_column(snapshot.table("documents"), "document_id", "source")
    if stage not in (None, *(each.name for each in PIPELINE)):
        there = ", ".join(each.name for each in PIPELINE)
        raise InputError(f"--stage {stage!r}: no such stage; there are {there}")
    found = [
        {**row, "source": sources.get(row["document_id"])}
        for row in rows
        if stage in (None, row["stage"]) and reason in (None, row["reason"])
    ]
    if document is not None:
        places = ("document_id", "row_key", "source")
        found = [row for row in found if document in [row[name] for name in places]]
    counts = Counter((row["stage"], row["reason"]) for row in found)
    counted = [
        {"stage": one[0], "reason": one[1], "rows": number}
        for one, number in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    ]
    shown = found[: limit or None]

    def tell() -> None:
        if counted:
            print_rows(counted)
        for row in shown:
            where = row["source"] or row["row_key"]
            say(f"{row['stage']}, {row['reason']}: {where}")
            say(f"    {shorten(row['detail'], _DETAIL_CHARACTERS)}")
        if len(found) > len(shown):
            say(f"and {len(found) - len(shown):,} more; --limit 0 shows all")
        if not found:
            say(f"Snapshot {snapshot.id}: no such rejects{' that you may see' if hidden else ''}.")
        if hidden:
            say(f"{hidden:,} of all its rejects are hidden, as some documents are: see --access.")

    said = {"snapshot": snapshot.id, "total": len(found), "hidden": hidden, "counts": counted}
    print_found({**said, "rejects": shown}, tell)


def _read_rejects(snapshot: "Snapshot") -> tuple[list[dict[str, Any]], int]:
    """The rejects of the documents that are seen, and how many others there are."""
    from kpyramid.storage.contracts import load_contracts, map_column, read_table

    path = snapshot.folder / "tables" / "rejects.parquet"
    rows = read_table(path, load_contracts()["rejects"]).to_pylist()
    if not snapshot.describe_scope():
        return rows, 0
    seen = {*snapshot.table("documents")["document_id"].to_pylist()}
    document_of = map_column(snapshot.table("chunks"), "chunk_id", "document_id")
    mine = [row for row in rows if (row["document_id"] or document_of.get(row["chunk_id"])) in seen]
    return mine, len(rows) - len(mine)


@command(app)
def requests(
    place: "Warehouse",
    loaded: "Settings",
    kind: KindOption = None,
) -> None:
    """Show failed requests to a language model by kind: how many, if asked again, examples.

    --json gives all of them whole, with the prompt and the raw reply, of any document.
    """
    from kpyramid.llm.caller import is_due

    cache, home = open_cache(place, loaded, read_only=True)
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
    lines = [] if entries else [f"{home}: no failed requests"]
    for name, found in sorted(kinds.items()):
        due = sum(is_due(entry.failure) for entry in found)
        lines.append(f"{len(found)} {name}, the next build asks for {due} of them again:")
        lines += name_first([_describe(entry) for entry in found], _EXAMPLES)
    if any(not is_due(entry.failure) for entry in entries):
        lines.append("`kpyramid rejects retry` has the others asked again as well.")
    print_found({"cache": home, "kinds": counts, "failures": rows}, lines)


@command(app)
def retry(
    keys: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY]...", help="Keys from `rejects requests`, at least 8 digits."),
    ] = None,
    kind: KindOption = None,
    *,
    place: "Warehouse",
    loaded: "Settings",
) -> None:
    """Forget failures, so that the next build asks for them again, which costs as any call does.

    All of them, or those of a kind, or those named.
    """
    if keys and kind:
        raise SettingsError("give keys or --kind, not both")
    cache, home = open_cache(place, loaded)
    chosen = [entry.failure.key for entry in _choose(cache, kind)]
    if keys:
        chosen = _find_keys(keys, chosen)
    for key in chosen:
        cache.drop_failure(key)
    print_found(
        {"cache": home, "forgotten": len(chosen), "keys": chosen},
        [f"{home}: {len(chosen)} failures forgotten; the next build asks again"],
    )


def _choose(cache: "ReplyCache", kind: str | None) -> "list[FailureEntry]":
    from kpyramid.llm.task import FailureKind

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
            f"nothing was forgotten:\n{named}\n`kpyramid rejects requests --json` has whole keys"
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
