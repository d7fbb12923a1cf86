"""`kpyramid erase`: a document leaves every snapshot, cache and report."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kpyramid.cli.options import (
    DEFAULT_WAREHOUSE,
    WORKERS,
    QuietOption,
    SettingsOption,
    WarehouseOption,
    WorkersOption,
    count_things,
    name_first,
    print_found,
)

if TYPE_CHECKING:
    from kpyramid.storage.archive import Exported

_MOST_NAMED = 10


def erase(
    document: Annotated[
        str, typer.Option(help="Its id: column document_id of the table `documents`.")
    ],
    warehouse: WarehouseOption = DEFAULT_WAREHOUSE,
    settings: SettingsOption = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do it; without, say what would go. There is no undo.")
    ] = False,
    workers: WorkersOption = WORKERS,
    quiet: QuietOption = False,
) -> None:
    """Erase a document from a warehouse: snapshots, caches, model replies, reports, rejects.

    What has its source or its text counts as the document. Later builds leave it out, whatever the
    corpus holds. Each ref that is at a snapshot with it is built again without it, as its last run
    was; tags of such snapshots, and the snapshots, go. Results and replies stay as far as a run
    without the document rests on them; replies are looked for where the records of runs say, and
    where --settings says. Run it while no build is at work; after an error, run it again.

    Example: kpyramid erase --document doc-0b1f0a3d2c4e5f60718a --yes
    """
    from kpyramid.cli import console
    from kpyramid.pipeline import erasure
    from kpyramid.settings import load_settings
    from kpyramid.storage.archive import list_exports
    from kpyramid.storage.layout import open_warehouse
    from kpyramid.storage.snapshots import has_snapshot

    place, loaded = open_warehouse(warehouse), load_settings(settings)
    if yes:
        with console.show_progress(quiet=quiet) as progress:
            done = erasure.erase(place, document, loaded, workers=workers, progress=progress)
        found = done.found
    else:
        found, done = erasure.find_document(place, document), None
    exports = [
        one
        for one in list_exports(place)
        if one.snapshot in found.snapshots or not has_snapshot(place, one.snapshot)
    ]
    missed = _list_missed(found.caches, exports, in_bucket=place.bucket is not None)
    said = {
        "document": document,
        "erased": yes,
        "documents": [{"document_id": row[0], "source": row[1]} for row in found.documents],
        "snapshots": list(found.snapshots),
        "refs": done.successors if done else list(found.refs),
        "tags": list(found.tags),
        "runs": list(found.runs),
        "bytes": found.bytes,
        "replies": done.replies if done else None,
        "replies_of_unknown_documents": done.unnamed if done else None,
        "caches": found.caches,
        "exports": [asdict(one) for one in exports],
        "not_reached": missed,
    }
    went, is_built = ("Gone", "was built again") if yes else ("Would go", "would be built again")
    sources = [f"{row[0]}  {row[1]}" for row in found.documents]
    lines = [
        f"{count_things(len(sources), 'document')} with its source or text:",
        *name_first(sources, _MOST_NAMED),
        f"{went}: {count_things(len(found.snapshots), 'snapshot')}, "
        f"{count_things(len(found.runs), 'run')}, {found.bytes:,} bytes with stored results.",
        *name_first(found.snapshots, _MOST_NAMED),
        *(f"Tag {name} {'is gone' if yes else 'would go'}." for name in found.tags),
    ]
    if done is None:
        lines += [f"Ref {ref} {is_built} without it." for ref in found.refs]
        if not found.refs:
            lines.append("No ref has it, so none is built: the row caches go, which costs time.")
        lines.append("Nothing was done; --yes does it, and there is no undo.")
    else:
        lines += [f"Ref {ref} {is_built}: {new}." for ref, new in done.successors.items()]
        shared = "".join(f", also in {cache}" for cache in found.caches)
        lines.append(f"Replies of models gone: {done.replies}{shared}.")
        if done.unnamed:
            lines.append(f"Replies of unknown documents, kept: {done.unnamed}.")
        lines.append("What is left was verified. Remove the document from the corpus as well.")
    lines += ["Not reached, look there yourself:", *(f"  {each}" for each in missed)]
    print_found(said, lines)


def _list_missed(
    caches: Sequence[str], exports: "Sequence[Exported]", *, in_bucket: bool
) -> list[str]:
    """Where the document may still be."""
    made = [
        f"{one.place}, an export of snapshot {one.snapshot}"
        + (f"; the next run of export_pyramid_{one.corpus} removes it" if one.corpus else "")
        for one in exports
    ]
    missed = [
        *made,
        "copies of snapshots and exports that were handed out, and backups",
        "files written by `ask --trace`, `evaluate --out`, `questions make`, `cache export`",
        "what a model's provider keeps of requests",
    ]
    if in_bucket:
        missed += [
            "copies on other machines: remove the warehouse's folder in ~/.cache/kpyramid there",
            "earlier versions of objects, where the bucket keeps them",
        ]
    missing = (place for place in caches if "://" not in place and not Path(place).is_dir())
    return missed + [f"replies that runs kept in {place}, which is not here" for place in missing]
