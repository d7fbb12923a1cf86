"""`kpyramid backfill`: a corpus's days again, each from the corpus of that day."""

import re
import shlex
import shutil
import subprocess
import sys
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo

import typer

from kpyramid.cli.options import count_things, print_found
from kpyramid.errors import InputError, PyramidError, SettingsError

if TYPE_CHECKING:
    from kpyramid.pipeline.airflow.corpora import Corpus

_ABSENT = "Airflow is not installed here: pip install 'kpyramid[airflow]', or type this where it is"
_PLANNED = re.compile(r"\| (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d) ")


def backfill(
    corpus: Annotated[str, typer.Option(help="Name of a declared corpus.")],
    since: Annotated[str, typer.Option("--from", help="The first day, such as 2026-11-01.")],
    until: Annotated[str, typer.Option("--to", help="The last day; it is built as well.")],
    corpora: Annotated[
        Path,
        typer.Option(envvar="KPYRAMID_CORPORA", help="Folder with a declaration per corpus."),
    ] = Path("dags/corpora"),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be built; start nothing.")
    ] = False,
) -> None:
    """Have Airflow build days of a corpus again, each from the corpus as it was that day.

    Each day moves a ref of its own, such as main-2026-11-01; the corpus's own ref stays where it
    is. Days are built one after the other, so that each finds what those before it computed: after
    a change of settings only what it touches is computed anew. A day that has a run already is
    done again by the same run. To take a day over: kpyramid promote main main-2026-11-01

    Example: kpyramid backfill --corpus demo --from 2026-11-01 --to 2026-11-03 --dry-run
    """
    from kpyramid.pipeline.airflow.corpora import find_corpus

    found = find_corpus(corpora, corpus)
    first, last = _read_day("--from", since), _read_day("--to", until)
    if last < first:
        raise SettingsError(f"--to {until} is before --from {since}")
    zone = ZoneInfo(found.declared.timezone)
    # Airflow takes a date alone as its first moment: the last day would be left out.
    start = datetime.combine(first, datetime.min.time(), zone).isoformat()
    end = datetime.combine(last, datetime.max.time().replace(microsecond=0), zone).isoformat()
    arguments = ["backfill", "create", "--dag-id", f"build_pyramid_{corpus}"]
    arguments += ["--from-date", start, "--to-date", end]
    arguments += ["--max-active-runs", "1", "--reprocess-behavior", "completed"]
    command = shlex.join(["airflow", *arguments])
    airflow = Path(sys.executable).with_name("airflow")
    place = str(airflow) if airflow.is_file() else shutil.which("airflow")
    if place is None:
        raise SettingsError(f"{_ABSENT}:\n{command}")
    moments = [datetime.fromisoformat(m) for m in _PLANNED.findall(_ask(place, arguments, True))]
    days = [m.astimezone(zone).date() for m in moments]
    if not days:
        raise InputError(
            f"schedule {found.declared.schedule!r} of {corpus} has no run from {first} to {last}"
        )
    rows = [_describe(found, day) for day in days]
    if not dry_run:
        _ask(place, arguments, False)
    own = found.ref
    lines = [
        f"{'Would build' if dry_run else 'Started'}, one after another, by build_pyramid_{corpus}:",
        *(
            f"  {r['day']}  {r['source']}{'' if r['there'] else '  (missing)'} -> {r['ref']}"
            for r in rows
        ),
        f"Ref {own} stays. To take a day over: kpyramid promote {own} {rows[-1]['ref']}",
        f"They wait while build_pyramid_{corpus} is switched off in Airflow.",
        f"$ {command}",
    ]
    missing = sum(not row["there"] for row in rows)
    if missing:
        lines.append(f"Without its source a run fails: {count_things(missing, 'day')} here.")
    if last > days[-1]:
        lines.append(f"No run is due after {days[-1]}: later days are left out.")
    print_found({"started": not dry_run, "days": rows, "command": command}, lines)


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


def _ask(airflow: str, arguments: list[str], is_dry: bool) -> str:
    """What Airflow's own command prints.

    Raises:
        PyramidError: it refused; its last words are the message.
    """
    done = subprocess.run(  # noqa: S603 - Airflow itself, and checked words
        [airflow, *arguments, *(["--dry-run"] if is_dry else [])],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        said = [line for line in lines if not line.startswith(("(Background on", "[SQL:"))]
        raise PyramidError(f"airflow backfill: {said[-1] if said else 'failed without a word'}")
    return done.stdout
