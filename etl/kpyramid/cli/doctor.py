"""`kpyramid doctor`: checks of all that a night needs."""

import os
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from kpyramid.cli.render import Result, name_values
from kpyramid.errors import PyramidError

if TYPE_CHECKING:
    from kpyramid.settings import EmbedSettings, LLMSettings, Settings
    from kpyramid.storage.layout import Warehouse

_LEAST_BYTES = 2**30
"""Free space below which even a small first build may fail."""
_SECONDS = 10.0
_MOST_NAMED = 200
"""Most characters of an endpoint's list of models."""

State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check; `advice`: what to do about a problem."""

    check: str
    state: State
    detail: str
    advice: str = ""


def doctor(*, place: "Warehouse", loaded: "Settings") -> Result:
    """Check whether a build can run here: disk, permissions, Java, models, endpoint.

    Each check reports ok, warn or fail, and what to do. Nothing is built, and no model is paid: an
    endpoint is only asked for its list of models. Exit code 8 if a check fails.

    Example: kpyramid doctor --warehouse /srv/pyramid --settings production.toml
    """
    checks = [finding for check in _CHECKS for finding in _run(check, place, loaded)]
    ok = not any(check.state == "fail" for check in checks)
    return name_values(warehouse=place.locate(), ok=ok, checks=checks, fault=None if ok else 8)


_Check = Callable[["Warehouse", "Settings"], Iterator[Finding]]


def _run(check: _Check, place: "Warehouse", settings: "Settings") -> list[Finding]:
    """The findings of a check; its error is a finding too."""
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


def _check_store(place: "Warehouse", _: "Settings") -> Iterator[Finding]:
    """The warehouse's file system supports the operations of publishing."""
    from kpyramid.storage.store import FolderStore

    made, folder, probe = not place.root.is_dir(), FolderStore(place.root), f".{uuid.uuid4().hex}"
    try:
        if not folder.create(probe, b"probe") or folder.create(probe, b"probe"):
            advice = "put the warehouse on another file system: two builds could both win a ref"
            yield Finding("store", "fail", "a name can be made twice", advice)
            return
    except OSError as e:
        advice = "builds need a folder that they may write, on a file system with hard links"
        yield Finding("store", "fail", f"{place.root}: {e.strerror}", advice)
        return
    finally:
        with suppress(OSError):
            folder.delete(probe)
            if made:
                place.root.rmdir()
    if place.bucket:
        place.bucket.probe()
    closed = [str(f) for f in place.folders if f.is_dir() and not os.access(f, os.W_OK | os.X_OK)]
    if closed:
        advice = "give this user the right to write there"
        yield Finding("permissions", "fail", f"not writable: {', '.join(closed)}", advice)
    yield Finding("store", "ok", f"{place.locate()} is writable and creates a name only once")


def _check_refs(place: "Warehouse", _: "Settings") -> Iterator[Finding]:
    from kpyramid.storage.refs import check_refs, list_heads

    problems = check_refs(place)
    for problem in problems:
        yield Finding("refs", "fail", problem)
    if not problems:
        yield Finding("refs", "ok", f"{len(list_heads(place))} refs, logs whole")


def _check_exports(place: "Warehouse", _: "Settings") -> Iterator[Finding]:
    """Exports that were given up although their ref is at their snapshot."""
    from kpyramid.storage.archive import list_exports
    from kpyramid.storage.refs import read_head

    advice = "fix that, then start the DAG of the corpus's exports"
    for e in list_exports(place):
        head = read_head(place, e.ref) if e.fault else None
        if head is not None and head.snapshot == e.snapshot:
            yield Finding("exports", "fail", f"{e.place} was given up: {e.fault}", advice)


def _check_java(_: "Warehouse", __: "Settings") -> Iterator[Finding]:
    from kpyramid.ontology.validation.consistency import find_java

    java = find_java()
    if java:
        yield Finding("java", "ok", java)
    else:
        advice = "install one, such as Debian's default-jre-headless: gate `consistent` is not run"
        yield Finding("java", "warn", "none on PATH", advice)


def _check_models(_: "Warehouse", settings: "Settings") -> Iterator[Finding]:
    """Embedding model and parser are installed, and the model embeds a text."""
    from kpyramid.embeddings.opening import open_embedder
    from kpyramid.storage.identity import identify_embedding, identify_parser

    embed = settings.embed
    identity = identify_embedding(embed)
    if embed.is_served:
        yield Finding("embedding", "ok", f"{identity.name}, served; see endpoint")
    else:
        model = open_embedder(identity.name, identity.files, embed.provider, embed.instruction)
        (vector,) = model.embed(["Ada Lovelace was born in London."])
        yield Finding("embedding", "ok", f"{identity.name}: {len(vector)} numbers")
    yield Finding("parser", "ok", identify_parser(settings.extract.parser).name)


def _check_converter(_: "Warehouse", __: "Settings") -> Iterator[Finding]:
    from kpyramid.documents.conversion import CONVERTED, CONVERTER, EXTRA
    from kpyramid.storage.identity import is_installed, library_version

    if is_installed(CONVERTER):
        yield Finding("converter", "ok", f"{CONVERTER} {library_version(CONVERTER)}")
    else:
        endings = " ".join(CONVERTED)
        yield Finding("converter", "warn", f"{endings} files are not read", EXTRA)


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
    """Whether an endpoint lists the settings' model; nothing is paid."""
    import openai

    from kpyramid.llm.endpoint import open_connection

    llm = replace(
        settings.llm,
        base_url=chosen.base_url,
        api_key_env=chosen.api_key_env,
        api_version=getattr(chosen, "api_version", None),
        timeout=_SECONDS,
    )
    connection = open_connection(llm, section)
    check, url = f"endpoint {section}", connection.place.base_url
    try:
        served = sorted(model.id for model in connection.client.models.list())
    except openai.APIStatusError as e:
        refused = e.status_code in (401, 403)
        advice = f"put a valid key into {chosen.api_key_env}" if refused else ""
        detail = f"{url} answers with {e.status_code}"
        return Finding(check, "fail" if refused else "warn", detail, advice)
    except openai.OpenAIError as e:
        detail = f"{url}: {connection.blot(str(e.__cause__ or e))}"
        advice = f"start the server, or correct {connection.place.decided_by}"
        return Finding(check, "fail", detail, advice)
    except (ValueError, TypeError, AttributeError):  # a page, or no list: some servers have none
        served = []
    if chosen.model in served or not served:
        return Finding(check, "ok", f"{url} answers")
    advice = f"correct {section}.model, or let the server load it; it lists "
    advice += ", ".join(served)[:_MOST_NAMED]
    return Finding(check, "warn", f"{url} does not list {chosen.model!r}", advice)


_CHECKS: tuple[_Check, ...] = (
    *(_check_disk, _check_store, _check_refs, _check_exports, _check_java, _check_models),
    *(_check_converter, _check_endpoint),
)
