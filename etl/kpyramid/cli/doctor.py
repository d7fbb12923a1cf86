"""`kpyramid doctor`: what a night needs, looked at before it begins."""

import json
import os
import platform
import shutil
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kpyramid.cli.render import Result, count_things, lay_out
from kpyramid.errors import PyramidError

if TYPE_CHECKING:
    from kpyramid.settings import EmbedSettings, LLMSettings, Settings
    from kpyramid.storage.layout import Warehouse

_LEAST_BYTES = 2**30
"""Free space below which even a small first build may fail."""
_SECONDS = 10.0
_SKEW = timedelta(minutes=5)
_MOST_BYTES, _MOST_NAMED = 2**22, 200
"""Of an endpoint's list of models so many bytes are read, and characters shown."""

State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found; `advice` says what to do where it is not well."""

    check: str
    state: State
    detail: str
    advice: str = ""


@dataclass(frozen=True, kw_only=True)
class Examined(Result):
    """What the checks found; `ok`: none failed."""

    warehouse: str
    ok: bool
    checks: Sequence[Finding]

    def show(self) -> Iterator[str]:
        """A line per finding."""
        yield from lay_out(
            {
                "check": check.check,
                "state": check.state,
                "found": f"{check.detail}. {check.advice}" if check.advice else check.detail,
            }
            for check in self.checks
        )


def doctor(*, place: "Warehouse", loaded: "Settings") -> Examined:
    """Look whether a build can run here: disk, permissions, Java, models, engine, endpoint, clock.

    Each check says ok, warn or fail, and what to do. Nothing is built, and no model is paid: an
    endpoint is asked for its list of models. Exit code 8 when a check fails.

    Example: kpyramid doctor --warehouse /srv/pyramid --settings production.toml
    """
    checks = [finding for check in _CHECKS for finding in _run(check, place, loaded)]
    ok = not any(check.state == "fail" for check in checks)
    return Examined(warehouse=place.locate(), ok=ok, checks=checks, fault=None if ok else 8)


_Check = Callable[["Warehouse", "Settings"], Iterator[Finding]]


def _run(check: _Check, place: "Warehouse", settings: "Settings") -> list[Finding]:
    """What a check finds; an error of it is a finding too."""
    try:
        return list(check(place, settings))
    except (PyramidError, OSError, ImportError) as e:
        return [Finding(check.__name__.removeprefix("_check_"), "fail", str(e))]


def _check_disk(place: "Warehouse", _: "Settings") -> Iterator[Finding]:
    home = next(folder for folder in (place.root, *place.root.parents) if folder.is_dir())
    free = shutil.disk_usage(home).free
    sizes: Counter[str] = Counter()
    for blob in place.store.list("snapshots"):
        sizes[blob.name.split("/")[1]] += blob.size
    needed = max(_LEAST_BYTES, 3 * max(sizes.values(), default=0))
    detail = f"{free / 2**30:.1f} GiB free in {home}, a build may need {needed / 2**30:.1f}"
    advice = "" if free > needed else "free some, or run `kpyramid gc` twice"
    yield Finding("disk", "ok" if free > needed else "fail", detail, advice)
    status = os.statvfs(home)
    if status.f_files and status.f_favail < 10_000:
        yield Finding("disk", "warn", f"{status.f_favail} files may still be made there")


def _check_store(place: "Warehouse", _: "Settings") -> Iterator[Finding]:
    """The folder of the warehouse does what publishing rests on."""
    from kpyramid.storage.writing import write_durably

    made = not place.root.is_dir()
    place.root.mkdir(parents=True, exist_ok=True)
    probe = place.root / f".probe.{uuid.uuid4().hex}"
    other = probe.with_suffix(".link")
    try:
        write_durably(probe, b"probe")
        os.link(probe, other)
        try:
            os.link(probe, other)
        except FileExistsError:
            what = "copies" if place.bucket else "store"
            yield Finding(what, "ok", f"{place.root} is written, flushed and linked once only")
        else:
            advice = "put the warehouse on another file system: two builds could both win a ref"
            yield Finding("store", "fail", "a name can be made twice", advice)
    except OSError as e:
        advice = "builds need a folder that they may write, on a file system with hard links"
        yield Finding("store", "fail", f"{place.root}: {e.strerror}", advice)
    finally:
        for path in (probe, other):
            path.unlink(missing_ok=True)
        if made and not any(place.root.iterdir()):
            place.root.rmdir()
    if place.bucket:
        place.bucket.probe()
        yield Finding("store", "ok", f"{place.locate()} is written and creates a name once only")
    there = [folder for folder in place.folders if folder.is_dir()]
    closed = [str(folder) for folder in there if not os.access(folder, os.W_OK | os.X_OK)]
    if closed:
        advice = f"give {os.environ.get('USER', 'this user')} the right to write there"
        yield Finding("permissions", "fail", f"not writable: {', '.join(closed)}", advice)
    temporary = Path(tempfile.gettempdir())
    if not os.access(temporary, os.W_OK):
        yield Finding("permissions", "fail", f"{temporary} is not writable", "set TMPDIR")


def _check_leftovers(place: "Warehouse", _: "Settings") -> Iterator[Finding]:
    from kpyramid.storage.layout import is_dead
    from kpyramid.storage.leases import list_held
    from kpyramid.storage.retention import Folders, Objects

    left = [path for path in place.staging.glob("*") if is_dead(path.name)]
    detail = f"{len(left)} folders in {place.staging} of processes that died"
    advice = "the next build removes them" if left else ""
    yield Finding("staging", "warn" if left else "ok", detail, advice)
    items = Objects(place.bucket, set, 0) if place.bucket else Folders(place)
    if trash := items.list_items(in_trash=True):
        advice = "the next `kpyramid gc` deletes it"
        yield Finding("trash", "ok", f"{len(trash)} things lie in {place.locate('trash')}", advice)
    for name, snapshot in list_held(place).items():
        yield Finding("leases", "ok", f"{name} holds snapshot {snapshot}")


def _check_refs(place: "Warehouse", _: "Settings") -> Iterator[Finding]:
    from kpyramid.storage.refs import list_refs
    from kpyramid.storage.verification import check_refs

    problems = check_refs(place)
    for problem in problems:
        yield Finding("refs", "fail", problem)
    if not problems:
        yield Finding("refs", "ok", f"{len(list_refs(place))} refs, logs whole")


def _check_exports(place: "Warehouse", _: "Settings") -> Iterator[Finding]:
    """Those that are given up, of snapshots that their ref is at."""
    from kpyramid.storage.archive import list_exports
    from kpyramid.storage.refs import read_head

    advice = "mend that, then start the DAG of the corpus's exports"
    noted, found = list_exports(place), False
    for one in noted:
        head = read_head(place, one.ref) if one.fault else None
        if head is not None and head.snapshot == one.snapshot:
            found = True
            yield Finding("exports", "fail", f"{one.place} was given up: {one.fault}", advice)
    if noted and not found:
        detail = f"{count_things(len(noted), 'export')} noted, none that a ref is at given up"
        yield Finding("exports", "ok", detail)


def _check_clock(place: "Warehouse", _: "Settings") -> Iterator[Finding]:
    from kpyramid.storage.refs import list_refs, read_head

    now = datetime.now(UTC)
    heads = [head for ref in list_refs(place) if (head := read_head(place, ref))]
    times = [datetime.fromisoformat(head.at) for head in heads if head.at[:1].isdigit()]
    newest = max((one if one.tzinfo else one.replace(tzinfo=UTC) for one in times), default=now)
    if newest > now + _SKEW:
        advice = "set the clock: ages that `gc` goes by are wrong, order of builds is not"
        yield Finding("clock", "warn", f"{now:%Y-%m-%dT%H:%M:%SZ}, before the newest entry", advice)
    else:
        yield Finding("clock", "ok", f"{now:%Y-%m-%dT%H:%M:%SZ}")


def _check_java(_: "Warehouse", __: "Settings") -> Iterator[Finding]:
    from kpyramid.ontology.sandbox import run_limited
    from kpyramid.ontology.validation.reasoner import find_java

    java = find_java()
    if java is None:
        advice = "install one, such as Debian's default-jre-headless: gate `consistent` is not run"
        yield Finding("java", "warn", "none on PATH", advice)
        return
    try:
        code, output = run_limited([java, "-version"], seconds=_SECONDS)
    except TimeoutError:
        code, output = 1, b"it did not answer"
    version = output.decode("utf-8", "replace").splitlines()[:1]
    yield Finding("java", "fail" if code else "ok", f"{java}: {' '.join(version)}")


def _check_models(_: "Warehouse", settings: "Settings") -> Iterator[Finding]:
    """The embedding model and the parser are there, and the first embeds a text."""
    from kpyramid.embeddings.opening import open_embedder
    from kpyramid.storage.identity import identify_embedding, identify_parser

    embed = settings.embed
    identity = identify_embedding(embed)
    if embed.is_served:
        yield Finding("embedding", "ok", f"{identity.name}, served; see endpoint")
    else:
        started = time.monotonic()
        model = open_embedder(identity.name, identity.files, embed.provider, embed.instruction)
        (vector,) = model.embed(["Ada Lovelace was born in London."])
        seconds = time.monotonic() - started
        detail = f"{identity.name}: {len(vector)} numbers, opened in {seconds:.1f} s"
        yield Finding("embedding", "ok", detail)
    yield Finding("parser", "ok", identify_parser(settings.extract.parser).name)


def _check_converter(_: "Warehouse", __: "Settings") -> Iterator[Finding]:
    from kpyramid.documents.conversion import CONVERTED, CONVERTER, EXTRA
    from kpyramid.storage.identity import is_installed, library_version

    if is_installed(CONVERTER):
        yield Finding("converter", "ok", f"{CONVERTER} {library_version(CONVERTER)}")
    else:
        endings = " ".join(CONVERTED)
        yield Finding("converter", "warn", f"{endings} files are not read", EXTRA)


def _check_engine(_: "Warehouse", settings: "Settings") -> Iterator[Finding]:
    """Processes, or a Ray cluster that this machine can join now."""
    if settings.engine.name == "processes":
        yield Finding("engine", "ok", "processes of this machine")
        return
    from kpyramid.pipeline.workers import join_cluster

    with join_cluster(settings.engine.address) as (_, processors):
        detail = f"Ray cluster {settings.engine.address}, {processors} processors"
    yield Finding("engine", "ok", detail)


def _check_endpoint(_: "Warehouse", settings: "Settings") -> Iterator[Finding]:
    asked: list[tuple[str, LLMSettings | EmbedSettings]] = []
    if settings.asks_model and settings.llm.is_served:
        asked.append(("llm", settings.llm))
    if settings.embed.is_served:
        asked.append(("embed", settings.embed))
    for section, chosen in asked:
        yield _ask_models(section, chosen, settings)
    if not asked:
        yield Finding("endpoint", "ok", "none is asked by these settings")


def _ask_models(
    section: str, chosen: "LLMSettings | EmbedSettings", settings: "Settings"
) -> Finding:
    """Whether an endpoint lists the model to the key of the settings; nothing is paid."""
    from kpyramid.llm.endpoint import OPENAI, read_key

    llm = replace(settings.llm, base_url=chosen.base_url, api_key_env=chosen.api_key_env)
    key = read_key(llm, section)
    url = f"{(chosen.base_url or OPENAI).rstrip('/')}/models"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as reply:  # noqa: S310
            detail = f"{url} answers with {reply.status}"
            served = _read_models(reply.read(_MOST_BYTES))
            if chosen.model in served or not served:  # some servers list none
                return Finding(f"endpoint {section}", "ok", detail)
            named = ", ".join(sorted(served))[:_MOST_NAMED]
            advice = f"mend {section}.model, or have the server load it; it lists {named}"
            detail += f", and does not list {chosen.model!r}"
            return Finding(f"endpoint {section}", "warn", detail, advice)
    except urllib.error.HTTPError as e:
        if e.code in (401, 403):
            advice = f"put a key that it takes into {chosen.api_key_env}"
            return Finding(f"endpoint {section}", "fail", f"{url}: {e.code} {e.reason}", advice)
        return Finding(f"endpoint {section}", "warn", f"{url}: {e.code}; it is there")
    except OSError as e:
        advice = f"start the server, or mend {section}.base_url"
        return Finding(f"endpoint {section}", "fail", f"{url}: {e}", advice)


def _read_models(data: bytes) -> set[str]:
    """The names in a list of models; none where it is no such list."""
    try:
        return {str(row["id"]) for row in json.loads(data)["data"]}
    except (ValueError, KeyError, TypeError):
        return set()


def _check_python(_: "Warehouse", __: "Settings") -> Iterator[Finding]:
    from kpyramid.storage.identity import library_version

    detail = f"kpyramid {library_version('kpyramid')}, Python {platform.python_version()}"
    yield Finding("software", "ok", f"{detail}, {os.cpu_count()} processors")


_CHECKS: tuple[_Check, ...] = (
    *(_check_python, _check_disk, _check_store, _check_leftovers, _check_refs, _check_exports),
    *(_check_clock, _check_java, _check_models, _check_converter, _check_engine, _check_endpoint),
)
