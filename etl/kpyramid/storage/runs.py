"""The record of a run: what was asked, which stages are done, what they made."""

import json
import logging
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from kpyramid.errors import InputError, IntegrityError
from kpyramid.keys import JsonValue
from kpyramid.settings import Settings, check_settings
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.refs import check_ref_name, read_head, require_movable
from kpyramid.storage.writing import write_durably

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Run:
    """One build in progress; everything a stage needs to know besides its tables."""

    warehouse: Warehouse
    name: str
    corpus: Path
    settings: Settings
    ref: str
    order: str
    allow_shrink: bool = False

    @property
    def folder(self) -> Path:
        return self.warehouse.runs / self.name


@dataclass(frozen=True, slots=True)
class StageMark:
    """A finished stage: its result's key, rows per table, and what it cost this run.

    `recomputed`: rows that were computed, not found in a cache. `details` and `gates`: what
    publish says: snapshot, whether the ref moved, and each gate's verdict. `model`: for a stage
    that asked a language model, requests asked, answered from the cache (hits), HTTP calls, and
    failures by kind.
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
    corpus: Path,
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
    given = order is not None
    order = order or max(now.isoformat(timespec="microseconds"), head.order if head else "")
    name = name or f"{now:%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:6]}"
    path = warehouse.runs / check_ref_name(name) / "run.json"
    if path.exists():
        known = open_run(warehouse, name)
        shaping = settings.with_operations(known.settings)
        asked = Run(warehouse, name, corpus.absolute(), shaping, ref, order, allow_shrink)
        if replace(asked, order=known.order) != known or (given and order != known.order):
            raise InputError(
                f"run {name!r} was started with another corpus, ref, settings, order or "
                f"allow-shrink (see {path}); give this one another name"
            )
        return replace(known, settings=settings)
    run = Run(warehouse, name, corpus.absolute(), settings, ref, order, allow_shrink)
    record = {
        "run": name,
        "corpus": str(run.corpus),
        "settings": asdict(settings),
        "ref": ref,
        "order": order,
        "allow_shrink": allow_shrink,
        "started": now.isoformat(timespec="seconds"),
        "git_sha": _read_git_sha(),
    }
    write_durably(path, json.dumps(record, indent=1).encode())
    return run


def open_run(warehouse: Warehouse, name: str) -> Run:
    """A run that was started before, perhaps by another process.

    Raises:
        InputError: there is none of that name.
        IntegrityError: its record cannot be read.
    """
    path = warehouse.runs / check_ref_name(name) / "run.json"
    if not path.exists():
        raise InputError(
            f"run {name!r} does not exist in {warehouse.runs}; "
            "start it with `kpyramid stage ingest --run NAME --corpus FOLDER`"
        )
    try:
        record = json.loads(path.read_bytes())
        settings = check_settings(record["settings"], {"file": str(path)})
        corpus = Path(record["corpus"])
        order, shrink = record["order"], record["allow_shrink"]
        return Run(warehouse, name, corpus, settings, record["ref"], order, shrink)
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise IntegrityError(f"run record {path} cannot be read: {e!r}") from e


def list_runs(warehouse: Warehouse) -> list[dict[str, JsonValue]]:
    """A row per run, newest first: run, started, ref, order, corpus, done stages, what it made.

    `snapshot` and `committed` (yes, no, unchanged) are null until stage publish is done. What
    cannot be read is left out with a warning.
    """
    rows: list[dict[str, JsonValue]] = []
    for path in sorted(warehouse.runs.glob("*/run.json")):
        stages = path.parent / "stages"
        publish = stages / "publish.json"
        try:
            record = json.loads(path.read_bytes())
            said = json.loads(publish.read_bytes())["details"] if publish.is_file() else {}
            row = {name: record[name] for name in ("run", "started", "ref", "order", "corpus")}
        except (OSError, ValueError, KeyError, TypeError) as e:
            log.warning("run %s cannot be read and is left out: %r", path.parent, e)
            continue
        made = {name: said.get(name) for name in ("snapshot", "committed")}
        rows.append({**row, "stages": len([*stages.glob("*.json")]), **made})
    return sorted(rows, key=lambda row: (str(row["started"]), str(row["run"])), reverse=True)


def write_mark(run: Run, mark: StageMark) -> None:
    """Notes that a stage is done."""
    path = run.folder / "stages" / f"{mark.stage}.json"
    write_durably(path, json.dumps(asdict(mark), indent=1).encode())


def read_mark(run: Run, stage: str) -> StageMark | None:
    """What a stage of this run made, or None while it is not done."""
    path = run.folder / "stages" / f"{stage}.json"
    try:
        return StageMark(**json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as e:
        raise IntegrityError(f"mark {path} cannot be read: {e}; remove it to run again") from e


def drop_marks(run: Run, stages: Sequence[str]) -> None:
    """Forgets that these stages are done: what they read has changed."""
    for stage in stages:
        (run.folder / "stages" / f"{stage}.json").unlink(missing_ok=True)


def _read_git_sha() -> str | None:
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
