"""Declarations of corpora, one TOML file each: what a night reads, when, and which ref it moves."""

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment
from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from kpyramid.errors import InputError, SettingsError
from kpyramid.keys import hash_bytes
from kpyramid.settings import STRICT
from kpyramid.snapshot import Form
from kpyramid.storage.layout import is_address
from kpyramid.storage.refs import name_ref_of_day

WAREHOUSE = os.environ.get("KPYRAMID_WAREHOUSE", "/warehouse")
"""One warehouse for all corpora, the same place for all workers and Airflow's server."""
MOST_SHARDS = 200
"""Airflow refuses to map more than 1,024 tasks, without saying so to a person."""
_MOST_CHARACTERS = 60
"""Longest name of a corpus: a ref may have 100 characters, and those of backfills add a date."""
_SOONEST = 0.2
"""Minutes. Airflow takes a task that restarts before its end was noticed for a killed one."""
_NAME = rf"^[A-Za-z0-9][A-Za-z0-9_-]{{0,{_MOST_CHARACTERS - 1}}}$"
_ADDRESS = r"^(s3|gs|az)://[^/@?#]+(/(?!\.\.?(/|$))[^/\x00-\x1f@?#]+)*/?$"
"""Address of a place in a bucket, without credentials and `..`."""
_TEXT = Annotated[str, Field(min_length=1)]


@checked(frozen=True, config=STRICT)
class Evaluation:
    """Questions asked of each new snapshot, the strategies, and the folder of the pages."""

    questions: _TEXT
    to: _TEXT
    strategies: tuple[str, ...] = ("naive", "polyrag")


@checked(frozen=True, config=STRICT)
class Export:
    """What a serving team reads: each new snapshot in one form, and the name of the newest.

    `to`: a folder, or an address in a bucket. `everything`: also what only documents with access
    labels say. `keep`: so many exports stay, those of what the ref was at last.
    """

    to: _TEXT
    form: Form = "folder"
    everything: bool = False
    keep: Annotated[int, Field(strict=True, ge=1)] = 3


@checked(frozen=True, config=STRICT)
class Deadline:
    """Who is told when a night is not done so many minutes after it was queued, as in `Failure`."""

    minutes: Annotated[float, Field(gt=0)]
    notify: _TEXT
    arguments: dict[str, str] = field(default_factory=dict)


@checked(frozen=True, config=STRICT)
class Failure:
    """Who is told when a night failed: a task of it failed, and no try is left.

    `notify`: one of Airflow's notifiers by its dotted name (SMTP mail, Slack, a webhook by Apprise
    or one of your own), which gets the `arguments`; Airflow fills in their templates.
    """

    notify: _TEXT
    arguments: dict[str, str | list[str]] = field(default_factory=dict)


@checked(frozen=True, config=STRICT)
class Learning:
    """A file of answered questions, and when they become documents of the corpus."""

    feedback: _TEXT
    schedule: _TEXT = "0 1 * * *"


@checked(frozen=True, config=STRICT)
class Declaration:
    """A corpus, as its file declares it; paths are beside that file unless they are absolute.

    `source`: a folder, here or at `s3://bucket/prefix`, or one file of records; `{{ date }}` in it
    is the day that a run is for, `{{ yesterday }}` the day before, both with `strftime`. `ref`:
    what a night moves; by default the corpus's name. `schedule`: cron, in `timezone`. `settings`:
    of the build. `owner`: shown by Airflow. `access`: roles of Airflow that may see the DAGs and
    run them. `shards`: most parts that reading and embedding are cut into. `workers`: processes of
    a task. `pool`: of Airflow, for tasks that may ask a model. `batch`: the model is asked through
    its Batch API, and looked after every so many minutes. `approve`: a person is asked before the
    ref moves, who has 20 hours or as many as it says. `execution_timeout`: minutes after which a
    task is stopped. `catchup`: the day from which nights that were missed are made up for; none is
    without it.
    """

    source: _TEXT
    ref: Annotated[str, Field(pattern=_NAME)] | None = None
    schedule: str = "0 2 * * *"
    timezone: str = "UTC"
    settings: str | None = None
    owner: _TEXT = "kpyramid"
    access: tuple[str, ...] = ()
    shards: Annotated[int, Field(strict=True, ge=1, le=MOST_SHARDS)] = 1
    workers: Annotated[int, Field(strict=True, ge=1, le=256)] = 2
    pool: _TEXT | None = None
    batch: Annotated[float, Field(ge=_SOONEST)] | None = None
    approve: bool | Annotated[float, Field(ge=0.1, le=168)] = False
    execution_timeout: Annotated[float, Field(gt=0)] | None = None
    catchup: date | None = None
    deadline: Deadline | None = None
    failure: Failure | None = None
    evaluate: Evaluation | None = None
    exports: tuple[Export, ...] = ()
    learn: Learning | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus by the name of its file; `problem` says what is wrong with its declaration."""

    name: str
    file: Path
    declared: Declaration
    problem: str = ""

    @property
    def ref(self) -> str:
        """The ref that a night moves."""
        return self.declared.ref or self.name

    @property
    def candidate(self) -> str:
        """The ref that a night moves: the corpus's own, or the one that waits for approval."""
        return f"{self.ref}-candidate" if self.declared.approve else self.ref

    @property
    def settings(self) -> str | None:
        """The path of the settings file, if the corpus has one."""
        return self.place(self.declared.settings) if self.declared.settings else None

    def place(self, path: str) -> str:
        """A declared path as an absolute one; an address stays as it is."""
        return path if is_address(path) else os.path.normpath((self.file.parent / path).absolute())


class DagRun(Protocol):
    """The fields of Airflow's DAG run that a night reads."""

    dag_id: str
    run_id: str
    run_type: str
    logical_date: datetime | None
    run_after: datetime


@dataclass(frozen=True, slots=True)
class Night:
    """What one run builds: the day it is for, its order, the corpus of that day, the ref it moves.

    A backfill moves the day's own ref, so that the declared one stays where it is.
    """

    run: str
    day: date
    order: str
    source: str
    ref: str
    settings: str | None
    allow_shrink: bool = False


def list_corpora(folder: Path) -> list[Corpus]:
    """The corpora that a folder declares, by name; one that cannot be used says why.

    Raises:
        SettingsError: there is no such folder.
    """
    if not folder.is_dir():
        raise SettingsError(
            f"folder of corpora {folder} does not exist; make it, or name another in "
            "KPYRAMID_CORPORA"
        )
    corpora: dict[str, Corpus] = {}
    for path in sorted(folder.glob("*.toml")):
        corpus = _read_corpus(path)
        refs = {corpus.ref, corpus.candidate}
        taken = [(ref, o.name) for o in corpora.values() for ref in refs & {o.ref, o.candidate}]
        if taken and not corpus.problem:
            corpus = refuse_corpus(path, [f"ref: {taken[0][0]!r} is what {taken[0][1]} moves"])
        corpora[corpus.name] = corpus
    return [*corpora.values()]


def plan_night(
    corpus: Corpus, dag_run: DagRun, params: Mapping[str, object], *, settings: str = ""
) -> Night:
    """What a run builds, the same for every try of it; `settings` is the settings file's text.

    The run's name has a hash of all that it builds from, so that a cleared run goes on where it
    stopped, and starts anew when the source or the settings were changed in between. The order is
    the run's logical date, or for one that a person or an asset started without it, the time from
    which it was to run.
    """
    declared = corpus.declared
    moment = (dag_run.logical_date or dag_run.run_after).astimezone(UTC)
    day = moment.astimezone(ZoneInfo(declared.timezone)).date()
    ref = str(params.get("ref") or corpus.ref)
    source = str(params.get("source") or declared.source)
    if str(getattr(dag_run.run_type, "value", dag_run.run_type)) == "backfill":
        ref = name_ref_of_day(ref, day)
    elif ref == corpus.ref:
        ref = corpus.candidate
    night = Night(
        run="",
        day=day,
        order=moment.isoformat(timespec="microseconds"),
        source=corpus.place(fill_source(source, day)),
        ref=ref,
        settings=corpus.settings,
        allow_shrink=bool(params.get("allow_shrink")),
    )
    shaping = (dag_run.dag_id, dag_run.run_id, repr(night), settings)
    digest = hash_bytes("\n".join(shaping).encode())[:12]
    return replace(night, run=f"airflow-{moment:%Y%m%dT%H%M%SZ}-{digest}")


def fill_source(source: str, day: date) -> str:
    """The path of the source for one day.

    Raises:
        SettingsError: the template cannot be filled in.
    """
    try:
        template = SandboxedEnvironment(undefined=StrictUndefined).from_string(source)
        return template.render(date=day, yesterday=day - timedelta(days=1))
    except (TemplateError, TypeError, ValueError) as e:
        raise SettingsError(
            f"source {source!r}: {e}; {{{{ date }}}} and {{{{ yesterday }}}} are days, such as in "
            "docs/{{ date.strftime('%Y/%m/%d') }}"
        ) from e


def require_source(corpus: Corpus, source: str, day: date) -> None:
    """Passes when there is something to read for a day.

    Raises:
        InputError: there is nothing, or nothing that can be read.
    """
    if is_address(source):
        from kpyramid.storage.copies import find_corpus

        find_corpus(source)
    elif not Path(source).exists():
        of_day = f" of {day}" if "{{" in corpus.declared.source else ""
        raise InputError(
            f"corpus {corpus.name}: {source}{of_day} does not exist; put it there, or "
            f"correct `source` in {corpus.file}"
        )


def _read_corpus(path: Path) -> Corpus:
    """The corpus with all problems of its declaration; an unreadable one has the defaults.

    So it keeps its DAG, which says what to mend, and the others keep theirs.
    """
    values: object = {}
    try:
        values = tomllib.loads(path.read_text("utf-8"))
        declared = TypeAdapter(Declaration).validate_python(values)
        problems = _judge(path, declared)
    except ValidationError as e:
        problems = [f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in e.errors()]
    except (OSError, ValueError) as e:
        problems = [str(e)]
    if not problems:
        return Corpus(path.stem, path, declared)
    return refuse_corpus(path, problems)


def refuse_corpus(path: Path, problems: Sequence[str]) -> Corpus:
    """A corpus that cannot be used, with the defaults and its problems."""
    why = f"corpus {path.stem}: {'; '.join(problems)}. Mend {path}; dags/README.md has the fields"
    return Corpus(re.sub(r"[^A-Za-z0-9_-]", "_", path.stem), path, Declaration(source="."), why)


def _judge(path: Path, declared: Declaration) -> list[str]:
    """The problems of a declaration that types do not catch."""
    problems = []
    if not re.fullmatch(_NAME, path.stem):
        problems.append("its file is to be named with letters, digits, '-' and '_'")
    try:
        ZoneInfo(declared.timezone)
    except (ZoneInfoNotFoundError, ValueError):
        problems.append(f"timezone: {declared.timezone!r} is none, say Europe/Berlin or UTC")
    places = {f"exports.{number}.to": export.to for number, export in enumerate(declared.exports)}
    places |= {"evaluate.to": declared.evaluate.to} if declared.evaluate else {}
    try:
        places["source"] = fill_source(declared.source, date(2026, 1, 1))
    except SettingsError as e:
        problems.append(str(e))
    if declared.learn and ("{{" in declared.source or is_address(declared.source)):
        problems.append("learn: writes into the source, so that is to be one folder for all days")
    if declared.batch and not declared.settings:
        problems.append("batch: needs settings that name a model")
    problems += [
        f"{name}: {place!r} is no folder, and no address such as s3://bucket/prefix; credentials "
        "and endpoint come from the workers' variables"
        for name, place in places.items()
        if is_address(place) and not re.match(_ADDRESS, place)
    ]
    read_here = {
        "settings": declared.settings,
        "evaluate.questions": declared.evaluate and declared.evaluate.questions,
        "learn.feedback": declared.learn and declared.learn.feedback,
    }
    problems += [
        f"{name}: {path!r} is an address; this is read from a disk that all workers have"
        for name, path in read_here.items()
        if path and is_address(path)
    ]
    folders = [os.path.normpath(export.to) for export in declared.exports]
    if len({*folders}) < len(folders):
        problems.append("exports: two write into one folder, which has one newest.json")
    return problems
