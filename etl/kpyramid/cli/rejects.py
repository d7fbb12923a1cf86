"""`kpyramid rejects`: rows that a build refused, and requests to a model that failed."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kpyramid.cli.cache import open_cache
from kpyramid.cli.console import shorten
from kpyramid.cli.options import Natural, open_seen
from kpyramid.cli.render import Result, count_things, describe, lay_out, name_first
from kpyramid.errors import InputError, SettingsError

if TYPE_CHECKING:
    from kpyramid.snapshot.snapshot import Snapshot

_EXAMPLES = 20
_DETAIL_CHARACTERS, _AROUND = 200, 1000
_SPAN = re.compile(r"(?<=^characters )\d+")
_PREFIX = re.compile(r"[0-9a-f]{8,64}")


def _word_rejects(listed: Mapping[str, Any]) -> Iterator[str]:
    """The counts, then each row with its problem."""
    yield from lay_out(listed["counts"])
    for row in listed["rejects"]:
        yield f"{row['stage']}, {row['reason']}: {row['source'] or row['row_key']}"
        yield f"    {shorten(row['detail'], _DETAIL_CHARACTERS)}"
        if row["sentence"]:
            yield f"    in: {shorten(row['sentence'], _DETAIL_CHARACTERS)}"
    if (left := listed["total"] - len(listed["rejects"])) > 0:
        yield f"and {left:,} more; --limit 0 shows all"
    if not listed["total"]:
        seen = " that you may see" if listed["hidden"] else ""
        yield f"Snapshot {listed['snapshot']}: no such rejects{seen}."
    if listed["hidden"]:
        yield f"{listed['hidden']:,} more are hidden, because some documents are: see --access."


def _word_failures(listed: Mapping[str, Any]) -> Iterator[str]:
    """The numbers, then the first failures."""
    yield f"{listed['cache']}: {count_things(len(listed['failures']), 'failed request')}"
    yield from describe({name: listed[name] for name in ("kinds", "forgotten")})
    yield from name_first(lay_out(map(_shorten, listed["failures"])), _EXAMPLES + 1)


def _shorten(row: Mapping[str, Any]) -> dict[str, Any]:
    columns = ("kind", "due", "task", "document", "attempts", "subject", "detail")
    return {"key": row["key"][:12], **{name: row[name] for name in columns}}


def rejects(
    *,
    snapshot: str,
    warehouse: str,
    access: list[str] | None,
    everything: bool,
    stage: str | None = None,
    reason: str | None = None,
    document: str | None = None,
    limit: Natural = 20,
    requests: bool = False,
    retry: list[str] | None = None,
    settings: Path | None,
) -> Result:
    """List rows that the build of a snapshot could not use, or failed requests to a model.

    It prints the numbers by stage and reason, then the rows with the exact fault and its sentence,
    ordered by stage, reason and document. Rows of documents with labels are shown with --access or
    --everything; if a document is hidden, rows that belong to no document are hidden too.

    With --requests it lists the requests to a language model that got no usable reply: their
    number by kind, whether the next build asks again, and examples; --json gives all of them in
    full, with prompt and raw reply, of any document. --retry forgets failures, so that the next
    build sends these requests again, at the usual cost.

    Examples: kpyramid rejects --stage ingest; kpyramid rejects --requests --retry all

    `stage`: show only this stage, such as ingest.
    `reason`: show only this reason, such as needs_extra; of requests only this kind, such as
    refused, truncated or invalid.
    `document`: show only this document, by its id or its source.
    `limit`: most rows that are shown; 0 for all.
    `requests`: show failed requests to a model instead.
    `retry`: have a failed request sent again, by at least 8 digits of its key; repeatable; `all`
    means all of them, or those of --reason.
    """
    if requests or retry:
        return _list_requests(warehouse, settings, reason, retry or [])
    import pyarrow as pa
    import pyarrow.compute as pc

    from kpyramid.pipeline.stage import PIPELINE
    from kpyramid.storage.contracts import map_column

    opened = open_seen(snapshot, warehouse, access, everything)
    rows, hidden = _read_rejects(opened)
    documents = opened.table("documents")
    sources = map_column(documents, "document_id", "source")
    stages = [each.name for each in PIPELINE]
    if stage not in (None, *stages):
        raise InputError(f"--stage {stage!r}: no such stage; there are {', '.join(stages)}")
    chosen = [
        {**row, "source": sources.get(row["document_id"])}
        for row in rows
        if stage in (None, row["stage"]) and reason in (None, row["reason"])
    ]
    if document is not None:
        places = ("document_id", "row_key", "source")
        chosen = [row for row in chosen if document in [row[name] for name in places]]
    order = {name: index for index, name in enumerate(stages)}
    chosen.sort(key=lambda row: (order.get(row["stage"], len(order)), *_place(row)))
    shown = chosen[: limit or None]
    ids = pa.array({row["document_id"] for row in shown}, pa.string())
    theirs = documents.filter(pc.is_in(documents["document_id"], ids))
    texts = map_column(theirs, "document_id", "text")
    counts = Counter((row["stage"], row["reason"]) for row in chosen)
    listed = {
        "snapshot": opened.id,
        "total": len(chosen),
        "hidden": hidden,
        "counts": [
            {"stage": key[0], "reason": key[1], "rows": number}
            for key, number in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        ],
        "rejects": [
            {**row, "sentence": _find_sentence(row, texts.get(row["document_id"]))} for row in shown
        ],
    }
    return Result(values=listed, words=_word_rejects(listed))


def _find_sentence(row: Mapping[str, Any], text: str | None) -> str | None:
    """The sentence of a document around the characters of a reject, where it says more."""
    from kpyramid.pipeline.report.words import cut_sentence

    place = _SPAN.search(row["detail"])
    if place is None or text is None:
        return None
    start = max(0, int(place[0]) - _AROUND)
    nearby = text[start : int(place[0]) + _AROUND]
    sentence = cut_sentence(nearby, int(place[0]) - start)
    return None if sentence in row["detail"] else sentence


def _place(row: Mapping[str, Any]) -> tuple[str, str, list[int], str]:
    """Sort key of a stage's rejects: reason, document, position."""
    numbers = [int(part) for part in _SPAN.findall(row["detail"])]
    return row["reason"], row["source"] or "", numbers, row["row_key"]


def _read_rejects(snapshot: "Snapshot") -> tuple[list[dict[str, Any]], int]:
    """The rejects of visible documents, each with its document if any, and the number of others."""
    from kpyramid.storage.contracts import load_contracts, map_column, read_table

    path = snapshot.folder / "tables" / "rejects.parquet"
    rows: list[dict[str, Any]] = read_table(path, load_contracts()["rejects"]).to_pylist()
    document_of = map_column(snapshot.table("chunks"), "chunk_id", "document_id")
    for row in rows:
        row["document_id"] = row["document_id"] or document_of.get(row["chunk_id"])
    if not snapshot.describe_scope():
        return rows, 0
    seen = {*snapshot.table("documents")["document_id"].to_pylist()}
    mine = [row for row in rows if row["document_id"] in seen]
    return mine, len(rows) - len(mine)


def _list_requests(
    warehouse: str, settings: Path | None, kind: str | None, retry: Sequence[str]
) -> Result:
    from kpyramid.llm.caller import is_due
    from kpyramid.llm.task import FailureKind
    from kpyramid.settings import load_settings
    from kpyramid.storage.layout import open_warehouse

    if kind not in (None, *FailureKind):
        raise SettingsError(f"unknown kind {kind!r}; there are {', '.join(sorted(FailureKind))}")
    place, loaded = open_warehouse(warehouse), load_settings(settings)
    cache, home = open_cache(place, loaded, read_only=not retry)
    entries = [e for e in cache.list_failures() if kind is None or e.failure.kind == kind]
    chosen = [entry.failure.key for entry in entries] if retry else []
    if retry and list(retry) != ["all"]:
        chosen = _find_keys(retry, chosen)
    for key in chosen:
        cache.drop_failure(key)
    given_up = any(not is_due(entry.failure) for entry in entries)
    advice = "`kpyramid rejects --retry all` also retries requests that are given up."
    listed = {
        "cache": home,
        "kinds": dict(sorted(Counter(str(entry.failure.kind) for entry in entries).items())),
        "failures": [
            {
                **asdict(entry.failure),
                "due": is_due(entry.failure),
                **{n: value for n, value in asdict(entry).items() if n != "failure"},
            }
            for entry in entries
        ],
        "forgotten": len(chosen),
        "keys": chosen,
    }
    notes = [advice] if given_up and not retry else []
    return Result(values=listed, words=_word_failures(listed), notes=notes)


def _find_keys(given: Sequence[str], known: Sequence[str]) -> list[str]:
    keys: set[str] = set()
    for prefix in given:
        matching = [key for key in known if key.startswith(prefix)]
        if not _PREFIX.fullmatch(prefix) or len(matching) != 1:
            raise InputError(
                f"--retry {prefix!r}: {len(matching)} failures have such a key, so nothing was "
                "forgotten; give 8 to 64 hex digits of one, or `all`: `kpyramid rejects --requests "
                "--json` has whole keys"
            )
        keys.update(matching)
    return sorted(keys)
