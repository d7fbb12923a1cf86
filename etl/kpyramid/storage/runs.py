"""The record of a run: its input, its finished stages, their results."""

import json
import logging
import re
import socket
import subprocess
import uuid
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kpyramid.errors import InputError, PyramidError
from kpyramid.keys import JsonValue
from kpyramid.settings import Settings, read_recorded
from kpyramid.storage.layout import Warehouse, explain_damage, is_dead, name_place, name_process
from kpyramid.storage.refs import RefEntry, check_ref_name, name_now, read_head, require_movable

_RECORD = re.compile(r"runs/[^/]+/run\.json")
_MARK = re.compile(r"runs/[^/]+/stages/[^/]+\.json")
LOG = "log.txt"
"""File of a run's warnings, in its folder."""
_MOST_LINES = 200
_LISTED = ("run", "started", "ref", "order", "corpus")
_NOTED = ("ended", "error", "exit_code", "refused_by", "host", "figures", "git_sha")
"""Further fields of this version's records; see `note_state`."""
_STATED = (*_LISTED, "settings", "allow_shrink")
"""Fields of every record."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Run:
    """A build in progress: all that a stage needs to know besides its tables.

    `former`: the ref's snapshot when the run began, whose names are reused.
    """

    warehouse: Warehouse
    name: str
    corpus: str
    settings: Settings
    ref: str
    order: str
    allow_shrink: bool = False
    former: RefEntry | None = None

    @property
    def folder(self) -> Path:
        return self.warehouse.runs / self.name


@dataclass(frozen=True, slots=True)
class StageMark:
    """A finished stage: its result's key, rows per table, and its cost in this run.

    `recomputed`: rows that no cache had. `details` and `gates`: of publish: the snapshot, whether
    the ref moved, and each gate's verdict. `model`: of a stage that asked a language model, the
    number of requests, those answered from the cache (hits), HTTP calls, and failures by kind.
    """

    stage: str
    key: str
    rows: Mapping[str, int]
    rejects: Mapping[str, int]
    recomputed: int
    seconds: float
    details: Mapping[str, str] = field(default_factory=dict)
    gates: Mapping[str, str] = field(default_factory=dict)
    model: Mapping[str, JsonValue] = field(default_factory=dict)


def start_run(
    warehouse: Warehouse,
    corpus: str | Path,
    settings: Settings,
    *,
    ref: str,
    name: str | None = None,
    order: str | None = None,
    allow_shrink: bool = False,
) -> Run:
    """A new run, or the one of that name with its finished stages.

    `order` is the logical key that a ref moves forward by; by default the time, but never
    before HEAD, so that a clock set back does not keep a manual build from publishing.
    `allow_shrink` lets a corpus publish that is far smaller than HEAD's, or empty.

    Raises:
        InputError: the ref is a tag, or a run of that name was started with something else.
    """
    now = datetime.now(UTC)
    require_movable(warehouse, ref)
    head = read_head(warehouse, ref)
    name = name or f"{now:%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:6]}"
    record_name = f"runs/{check_ref_name(name)}/run.json"
    place = warehouse, name, name_place(corpus)
    if warehouse.store.read(record_name) is not None:
        known = open_run(warehouse, name)
        shaping = settings.with_operations(known.settings)
        asked = known.order if order is None else order
        if Run(*place, shaping, ref, asked, allow_shrink, known.former) != known:
            raise InputError(
                f"run {name!r} was started with another corpus, ref, settings, order or "
                f"allow-shrink (see {warehouse.locate(record_name)}); give this one another name"
            )
        return replace(known, settings=settings)
    order = order or max(now.isoformat(timespec="microseconds"), head.order if head else "")
    run = Run(*place, settings, ref, order, allow_shrink, head)
    record = {
        "run": name,
        "corpus": run.corpus,
        "settings": asdict(settings),
        "ref": ref,
        "order": order,
        "allow_shrink": allow_shrink,
        "former": head and asdict(head),
        "started": now.isoformat(timespec="seconds"),
        "git_sha": read_git_sha(),
    }
    warehouse.store.replace(record_name, json.dumps(record, indent=1).encode())
    return run


def open_run(warehouse: Warehouse, name: str) -> Run:
    """A run that was started before, perhaps by another process.

    Raises:
        InputError: there is none of that name.
        IntegrityError: its record cannot be read.
    """
    path = warehouse.locate(f"runs/{check_ref_name(name)}/run.json")
    data = warehouse.store.read(f"runs/{name}/run.json")
    if data is None:
        raise InputError(
            f"run {name!r} does not exist in {warehouse.locate('runs')}; start it with `kpyramid "
            "stage ingest --run NAME --corpus FOLDER`. If another machine did, give this one the "
            "same warehouse and the same endpoint"
        )
    with explain_damage(f"run record {path}", ""):
        record = json.loads(data)
        settings = read_recorded(record["settings"], path)
        corpus = str(record["corpus"])
        order, shrink, former = record["order"], record["allow_shrink"], record.get("former")
        former = former and RefEntry(**former)
        return Run(warehouse, name, corpus, settings, record["ref"], order, shrink, former)


def note_state(run: Run, status: str, **noted: JsonValue) -> None:
    """Writes a run's status into its record; a failure to write is a warning.

    `status`: running, waiting (for its next stage), done, refused (by gates), failed or killed.
    `noted`: error, exit_code, refused_by (the gates), figures (results in numbers).
    """
    name, ended = f"runs/{run.name}/run.json", None if status == "running" else name_now()
    whose: dict[str, JsonValue] = {"host": socket.gethostname(), "process": name_process()}
    try:
        record = json.loads(run.warehouse.store.read(name) or b"")
        cleared = dict.fromkeys(("error", "exit_code", "refused_by"))
        record |= {**cleared, "status": status, "ended": ended, **whose, **noted}
        run.warehouse.store.replace(name, json.dumps(record, indent=1).encode())
    except (OSError, ValueError, TypeError, PyramidError) as e:
        log.warning("run %s cannot be noted as %s: %s", run.warehouse.locate(name), status, e)


def list_runs(warehouse: Warehouse) -> list[dict[str, JsonValue]]:
    """A row per run, newest first: its input, status and results.

    `status` as in `note_state`; a run whose process is gone was killed, and for an older version's
    record the marks decide. `stages`: number of finished ones. `snapshot` and `committed` (yes, no,
    unchanged) are null until stage publish is done. Unreadable records are left out with a warning.
    """
    rows: list[dict[str, JsonValue]] = []
    names = [blob.name for blob in warehouse.store.list("runs")]
    stages = Counter(n.split("/")[1] for n in names if _MARK.fullmatch(n))
    wanted = [n for n in names if _RECORD.fullmatch(n) or n.endswith("/stages/publish.json")]
    texts = dict(zip(wanted, warehouse.read_all(wanted), strict=True))
    for name in filter(_RECORD.fullmatch, wanted):
        folder = name.rpartition("/")[0]
        try:
            record = json.loads(texts[name] or b"")
            publish = texts.get(f"{folder}/stages/publish.json")
            details = json.loads(publish)["details"] if publish else {}
            row = {name: record[name] for name in _LISTED}
            row |= {name: record.get(name) for name in _NOTED}
            made = {name: details.get(name) for name in ("snapshot", "committed")}
            row["status"] = _read_status(record, str(made["committed"] or ""))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
            log.warning("run %s cannot be read and is left out: %r", warehouse.locate(folder), e)
            continue
        rows.append({**row, "stages": stages[folder.partition("/")[2]], **made})
    return sorted(rows, key=lambda row: (str(row["started"]), str(row["run"])), reverse=True)


def _read_status(record: Mapping[str, JsonValue], committed: str) -> str:
    status, process = str(record.get("status") or ""), str(record.get("process"))
    if status == "running" and is_dead(f"{process}.run"):
        return "killed"
    return status or {"": "unfinished", "no": "refused"}.get(committed, "done")


def read_files(
    warehouse: Warehouse, name: str
) -> tuple[dict[str, Any], list[dict[str, Any]], list[str]]:
    """The readable files of a run: its report, its marks, the lines of its log."""
    marks = [b.name for b in warehouse.store.list(f"runs/{name}") if _MARK.fullmatch(b.name)]
    wanted = [f"runs/{name}/report.json", *marks, f"runs/{name}/{LOG}"]
    *texts, lines = (text or b"" for text in warehouse.read_all(wanted))
    values: list[dict[str, Any]] = [{} for _ in texts]
    for value, text in zip(values, texts, strict=True):
        with suppress(ValueError, TypeError):  # damaged
            value.update(json.loads(text))
    return values[0], values[1:], lines.decode(errors="replace").splitlines()[-_MOST_LINES:]


def find_damaged(warehouse: Warehouse, runs: Collection[str] | None = None) -> dict[str, str]:
    """The unreadable files of these runs, by the run's name; by default of all."""
    named = [blob.name for blob in warehouse.store.list("runs")]
    names = [n for n in named if _RECORD.fullmatch(n) or _MARK.fullmatch(n)]
    names = [n for n in names if runs is None or n.split("/")[1] in runs]
    damaged: dict[str, str] = {}
    for name, data in zip(names, warehouse.read_all(names), strict=True):
        wanted = _STATED if _RECORD.fullmatch(name) else ("stage", "key", "details")
        try:
            if data is not None:  # else a build that goes on forgot it
                row = json.loads(data)
                _ = [row[field] for field in wanted]
        except (ValueError, KeyError, TypeError) as e:
            damaged[name.split("/")[1]] = (
                f"{warehouse.locate(name)} cannot be read ({e!r}): put it back from a copy, or "
                "remove the run's folder"
            )
    return damaged


def write_mark(run: Run, mark: StageMark) -> None:
    """Writes the mark of a finished stage."""
    data = json.dumps(asdict(mark), indent=1).encode()
    run.warehouse.store.replace(_name_mark(run, mark.stage), data)


def read_mark(run: Run, stage: str) -> StageMark | None:
    """The mark of a stage of this run, or None if it is not done."""
    name = _name_mark(run, stage)
    with explain_damage(f"mark {run.warehouse.locate(name)}", "; remove it to run again"):
        data = run.warehouse.store.read(name)
        return None if data is None else StageMark(**json.loads(data))


def drop_marks(run: Run, stages: Sequence[str]) -> None:
    """Removes the marks of stages whose input has changed."""
    for stage in stages:
        run.warehouse.store.delete(_name_mark(run, stage))


def _name_mark(run: Run, stage: str) -> str:
    return f"runs/{run.name}/stages/{stage}.json"


def read_git_sha() -> str | None:
    """The commit of the checkout this code runs from; None for an installed package."""
    checkout = Path(__file__).parent.parent.parent.parent
    if not (checkout / ".git").exists():
        return None
    done = subprocess.run(  # noqa: S603 - fixed words and our own folder
        ["git", "-C", str(checkout), "rev-parse", "HEAD"],  # noqa: S607 - git is found on PATH
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or None
