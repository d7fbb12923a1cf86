"""A build that would make what its ref has already: its marks and its report, at little cost."""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kpyramid.documents.corpus import list_corpus
from kpyramid.errors import PyramidError
from kpyramid.pipeline.fingerprints import INPUTS, hash_judges, key_publishing, walk_stored
from kpyramid.pipeline.report.course import FIGURE, add_trend, describe_course, write_pages
from kpyramid.pipeline.stage import PIPELINE
from kpyramid.settings import Settings
from kpyramid.storage.copies import locate_snapshot
from kpyramid.storage.erasure import load_erased
from kpyramid.storage.former import find_former
from kpyramid.storage.identity import library_version
from kpyramid.storage.layout import Warehouse, is_address
from kpyramid.storage.refs import read_head
from kpyramid.storage.runs import (
    Run,
    StageMark,
    list_runs,
    open_run,
    read_git_sha,
    read_mark,
    write_mark,
)
from kpyramid.storage.verification import require_whole


@dataclass(frozen=True, slots=True)
class Repeat:
    """What a run that changes nothing repeats: the marks and the report of the one before it."""

    marks: tuple[StageMark, ...]
    report: Mapping[str, Any]
    figure: str


def find_repeat(
    corpus: str | Path, warehouse: Warehouse, settings: Settings, ref: str
) -> Repeat | None:
    """What a build would repeat; None where it may change something, or has to look closer.

    It repeats the ref's last run, which made the snapshot that the ref has, when corpus, settings,
    libraries and code are as they were then, and snapshot and stored results are whole.
    """
    started = time.monotonic()
    here = warehouse.bucket is None and not is_address(str(corpus))
    is_told = settings.asks_model or settings.publish.checks  # by a model, by the run's own time
    head = read_head(warehouse, ref) if here and not is_told else None
    runs = list_runs(warehouse) if head else []
    latest = next((row for row in runs if row["ref"] == ref), {})
    if head is None or (latest.get("status"), latest.get("snapshot")) != ("done", head.snapshot):
        return None
    with suppress(PyramidError, OSError, ValueError, KeyError, TypeError):  # the build says it
        run = open_run(warehouse, str(latest["run"]))
        marks = [mark for stage in PIPELINE if (mark := read_mark(run, stage.name))]
        report = json.loads((run.folder / "report.json").read_bytes())
        if [report["software"], report["git_sha"]] != [library_version("kpyramid"), read_git_sha()]:
            return None
        keys, publish = [mark.key for mark in marks[:-1]], marks[-1]
        judges = hash_judges(settings)
        if publish.details.get(INPUTS) != key_publishing(settings, judges, keys):
            return None
        listed = list_corpus(Path(corpus), leave_out=warehouse.folders)
        fingerprint = load_erased(warehouse).mark(listed.fingerprint)
        former = find_former(warehouse, head)
        stored = walk_stored(warehouse, settings, fingerprint, former)
        if former is None or [result.key for _, result in stored] != keys:
            return None
        require_whole(locate_snapshot(warehouse, head.snapshot), "")
        details = {**publish.details, "committed": "unchanged"}
        marks[-1] = replace(publish, details=details, gates={})
        figure = (run.folder / FIGURE).read_text("utf-8")
        took = {PIPELINE[-1].name: round(time.monotonic() - started, 3)}
        done = (replace(m, recomputed=0, seconds=took.get(m.stage, 0.0)) for m in marks)
        return Repeat(tuple(done), report, figure)
    return None


def repeat_run(run: Run, repeat: Repeat) -> dict[str, Any]:
    """Writes the marks and the report of a run that changes nothing; the report."""
    for mark in repeat.marks:
        write_mark(run, mark)
    rows = repeat.marks[-1].rows
    report = {
        **repeat.report,
        **describe_course(run, repeat.marks),
        **{"changes": "nothing changed", "changed": {}, "before": dict(rows)},
    }
    add_trend(run, report)
    write_pages(run, report, repeat.figure)
    return report
