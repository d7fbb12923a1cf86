"""`kpyramid backfill`: a corpus's days again, each from the corpus of that day."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo

import typer

from kpyramid.cli.render import Result, count_things
from kpyramid.errors import ConflictError, InputError, PyramidError, SettingsError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kpyramid.pipeline.airflow.corpora import Corpus

_ABSENT = "Airflow is not installed here: pip install 'kpyramid[airflow]', or type this where it is"
_UNDER_WAY = ("queued", "running")
_PLANNED = re.compile(r"\| (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d) ")


@dataclass(frozen=True, kw_only=True)
class Backfilled(Result):
    """The days that Airflow was asked to build, or would be, in their order."""

    started: bool
    days: Sequence[Mapping[str, object]]
    left_out: Sequence[str]
    command: str
    plan: str | None

    def show(self) -> "Iterator[RenderableType]":
        """The days; what one would cost is of use before they are started."""
        told = replace(self, plan=None) if self.started else self
        yield from Result.show(told)


def backfill(
    *,
    corpus: str,
    since: Annotated[str, typer.Option("--from", help="The first day, such as 2026-11-01.")],
    until: Annotated[str, typer.Option("--to", help="The last day; it is built as well.")],
    corpora: Annotated[
        Path,
        typer.Option(envvar="KPYRAMID_CORPORA", help="Folder with a declaration per corpus."),
    ] = Path("dags/corpora"),
    dry_run: bool = False,
) -> Backfilled:
    """Have Airflow build days of a corpus again, each from the corpus as it was that day.

    Each day moves a ref of its own, such as main-2026-11-01; the corpus's own ref stays where it
    is. Days are built one after the other, so that each finds what those before it computed: after
    a change of settings only what it touches is computed anew. A day that has a run already is
    done again by the same run; one whose run is under way is left out. `Plan` is the command
    that says what a day would compute and cost. To take a day over: kpyramid promote main
    main-2026-11-01

    Example: kpyramid backfill --corpus demo --from 2026-11-01 --to 2026-11-03 --dry-run

    `corpus`: name of a declared corpus.
    `dry_run`: say what would be built; start nothing.
    """
    from kpyramid.pipeline.airflow.corpora import WAREHOUSE, find_corpus

    declared = find_corpus(corpora, corpus)
    first, last = _read_day("--from", since), _read_day("--to", until)
    if last < first:
        raise SettingsError(f"--to {until} is before --from {since}")
    zone = ZoneInfo(declared.declared.timezone)
    # Airflow takes a date alone as its first moment: the last day would be left out.
    start = datetime.combine(first, datetime.min.time(), zone).isoformat()
    end = datetime.combine(last, datetime.max.time().replace(microsecond=0), zone).isoformat()
    dag = f"build_pyramid_{corpus}"
    create = ["backfill", "create", "--dag-id", dag, "--from-date", start, "--to-date", end]
    create += ["--max-active-runs", "1", "--reprocess-behavior", "completed"]
    command = shlex.join(["airflow", *create])
    airflow = Path(sys.executable).with_name("airflow")
    place = str(airflow) if airflow.is_file() else shutil.which("airflow")
    if place is None:
        raise SettingsError(f"{_ABSENT}:\n{command}")
    # Airflow's dry run leaves out days whose run has not ended, without a word. They are asked for
    # first, so that one that ends meanwhile is due.
    states = _list_states(place, dag, start, end)
    moments = [*map(datetime.fromisoformat, _PLANNED.findall(_ask(place, *create, "--dry-run")))]
    days = [moment.astimezone(zone).date() for moment in moments]
    under_way = {moment for moment, state in states.items() if state in _UNDER_WAY}
    left_out = [str(m.astimezone(zone).date()) for m in sorted(under_way - {*moments})]
    if not days and left_out:
        raise ConflictError(
            f"{dag} has a run under way of {', '.join(left_out)}, and no other is due from {first} "
            f"to {last}: wait for it to end, or end it in Airflow"
        )
    if not days:
        raise InputError(
            f"schedule {declared.declared.schedule!r} of {corpus} has no run from {first} to {last}"
        )
    rows = [
        {**_describe(declared, day), "again": moment in states}
        for day, moment in zip(days, moments, strict=True)
    ]
    if not dry_run:
        _ask(place, *create)
    there = [row for row in rows if row["there"]]
    plan = None
    if there:
        settings = ["--settings", declared.settings] if declared.settings else []
        words = [str(there[-1]["source"]), *settings, "--warehouse", WAREHOUSE]
        plan = shlex.join(["kpyramid", "plan", *words])
    notes = [
        f"Ref {declared.ref} stays. To take a day over: kpyramid promote {declared.ref} "
        f"{rows[-1]['ref']} --warehouse {shlex.quote(WAREHOUSE)}",
        f"If {dag} is switched off in Airflow, they wait until it is on.",
    ]
    if again := sum(bool(row["again"]) for row in rows):
        notes.append(f"Again: {count_things(again, 'day')} with a run that Airflow has already.")
    if missing := len(rows) - len(there):
        notes.append(f"Without its source a run fails: {count_things(missing, 'day')} here.")
    latest = max([*days, *map(date.fromisoformat, left_out)])
    if last > latest:
        notes.append(f"No run is due after {latest}: later days are left out.")
    return Backfilled(
        started=not dry_run,
        days=rows,
        left_out=left_out,
        command=command,
        plan=plan,
        notes=notes,
    )


def _list_states(airflow: str, dag: str, start: str, end: str) -> dict[datetime, str]:
    """The state of the run of each moment that has one; runs by hand are of no moment.

    Raises:
        PyramidError: Airflow refused, or said something else.
    """
    place = ["--start-date", start, "--end-date", end, "--output", "json"]
    said = _ask(airflow, "dags", "list-runs", dag, *place)
    try:
        runs = json.loads(said.strip().splitlines()[-1])
    except (IndexError, ValueError) as e:
        raise PyramidError(f"airflow dags list-runs gave no JSON, but {said[:200]!r}") from e
    return {
        datetime.fromisoformat(run["logical_date"]): run["state"]
        for run in runs
        if run["logical_date"] and not run["run_id"].startswith("manual__")
    }


def _describe(corpus: "Corpus", day: date) -> dict[str, object]:
    from kpyramid.pipeline.airflow.corpora import fill_source, name_ref_of_day, require_source

    source = corpus.place(fill_source(corpus.declared.source, day))
    ref = name_ref_of_day(corpus.ref, day)
    try:
        require_source(corpus, source, day)
    except InputError:
        return {"day": str(day), "source": source, "there": False, "ref": ref}
    return {"day": str(day), "source": source, "there": True, "ref": ref}


def _read_day(option: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as e:
        raise SettingsError(f"{option} {text!r}: say a day, such as 2026-11-01") from e


def _ask(airflow: str, *arguments: str) -> str:
    """What Airflow's own command prints.

    Raises:
        PyramidError: it refused; its last words are the message.
    """
    plain = {**os.environ, "FORCE_COLOR": "", "TTY_COMPATIBLE": "0"}
    done = subprocess.run(  # noqa: S603 - Airflow itself, and checked words
        [airflow, *arguments], capture_output=True, text=True, check=False, env=plain
    )
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        said = [line for line in lines if not line.startswith(("(Background on", "[SQL:"))]
        raise PyramidError(
            f"airflow {arguments[0]}: {said[-1] if said else 'failed without a word'}"
        )
    return done.stdout
