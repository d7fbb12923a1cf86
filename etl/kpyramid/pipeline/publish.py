"""Publishing: a run's tables become a snapshot, gates judge it, the ref moves to it."""

import gc
import json
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kpyramid.errors import ConflictError, InputError, IntegrityError, SettingsError
from kpyramid.keys import JsonValue, hash_value
from kpyramid.ontology.sparql import read_prefixes
from kpyramid.ontology.validation.checks import complete_query, read_questions
from kpyramid.ontology.validation.consistency import find_java
from kpyramid.pipeline.checks import judge_measured
from kpyramid.pipeline.fingerprints import (
    describe_model_part,
    describe_settings,
    fingerprint_function,
    fingerprint_stage,
    hash_judges,
    identify_resource,
    locate_files,
)
from kpyramid.pipeline.gates import (
    MOST_ROUNDS,
    judge_answers,
    judge_expected,
    judge_floor,
    judge_kept,
    judge_ontology,
    judge_readable,
    judge_size,
    judge_standing,
    judge_traces,
    judge_withdrawn,
    repair_ontology,
)
from kpyramid.pipeline.stage import PIPELINE, find_function, find_stage
from kpyramid.pipeline.stages import publish as stage
from kpyramid.pipeline.wiring import load_schema
from kpyramid.snapshot.export import describe_folder
from kpyramid.snapshot.indexing import prepare_index
from kpyramid.snapshot.store import VECTORS
from kpyramid.storage.contracts import combine_column, load_contracts
from kpyramid.storage.copies import locate_snapshot
from kpyramid.storage.declarations import OntologyFiles
from kpyramid.storage.erasure import load_erased
from kpyramid.storage.identity import library_version
from kpyramid.storage.leases import hold
from kpyramid.storage.publication import commit, write_snapshot
from kpyramid.storage.refs import name_now, read_head
from kpyramid.storage.results import RowCache, TableFile, find_result, read_result, store_result
from kpyramid.storage.runs import Run, StageMark, open_run, read_mark
from kpyramid.storage.snapshots import FORMAT, read_manifest

log = logging.getLogger(__name__)

_WITHDRAWING = 3
"""Version; raised when other statements are withdrawn from the same tables."""
_NAMING = ("instances", "additions", "rejects")
"""Tables that name instances, and `rejects`, which takes the withdrawn ones."""


def publish(
    run: Run, corpus: str, tables: Mapping[str, TableFile], vectors: Sequence[TableFile]
) -> StageMark:
    """Writes the snapshot of these tables and moves the run's ref to it, if the gates allow.

    `vectors`: the parts of that table, which still have withdrawn statements.

    Statements that contradict others with more evidence are withdrawn first, and rejected. If a
    gate fails, the snapshot stays and the ref does not move; the mark tells why.

    Raises:
        ConflictError: the ref is at a later order, gc took the snapshot away just now, or a
            document was erased meanwhile.
        IntegrityError: a table or an existing snapshot is damaged.
    """
    documents = read_result(tables["documents"], load_contracts()["documents"])
    columns = (documents[name].to_pylist() for name in ("source", "sha256"))
    load_erased(run.warehouse).require_none(*columns)
    given, judges = tables["instances"], hash_judges(run.settings)
    settled = _settle(run, tables, judges)
    tables = settled.tables
    rejects = dict(sorted(Counter(settled.withdrawn["reason"].to_pylist()).items()))
    head = read_head(run.warehouse, run.ref)
    if head is not None:
        # Gone or damaged: `verify` says so.
        with suppress(ConflictError, InputError, IntegrityError):
            folder = locate_snapshot(run.warehouse, head.snapshot)  # its index may be this one's
            _warn_of_ontology(run, read_manifest(folder))
    snapshot, rows = _write(run, corpus, settled, vectors)
    with hold(run.warehouse, snapshot):
        is_new = head is None or head.snapshot != snapshot
        gates: dict[str, str] = {}
        if is_new:
            gates["traceable"] = judge_traces(run.warehouse, snapshot)
            gates["size"] = judge_size(run, rows, head.snapshot if head else None)
            gates["standing"] = judge_standing(run, snapshot)
        before = _read_judged(run, head.run, judges) if head else None
        if is_new or before is None:
            verdicts = _judge_settled(run, settled, given, before)
            gates |= {"kept": judge_kept(run, tables), **verdicts}
            gates |= judge_floor(run.settings, run.warehouse, snapshot)
        if is_new and (run.settings.cascade.reads_chunks or run.settings.induce.mode != "rules"):
            refused = read_result(tables["rejects"], load_contracts()["rejects"])
            gates["answered"] = judge_answers(run, refused, rows["chunks"])
        expected = judge_expected(run, snapshot)
        if expected:
            gates["expected"] = judge_measured(expected)
        committed = "no" if is_new else "unchanged"
        if is_new and not any(verdict.startswith("fail") for verdict in gates.values()):
            made = {"snapshot": snapshot, "order": run.order, "run": run.name}
            entry = commit(run.warehouse, run.ref, **made, at=name_now())
            committed = "yes" if entry else "unchanged"
        details = {"snapshot": snapshot, "committed": committed, "judges": judges}
        details |= {"settled": settled.key} if "consistent" in gates else {}
        details |= {"checks": json.dumps([*map(asdict, expected)])} if expected else {}
    return StageMark("publish", snapshot, rows, rejects, int(is_new), 0.0, details, gates)


def _warn_of_ontology(run: Run, former: Mapping[str, Any]) -> None:
    """Warns if the ref's last snapshot had another ontology: an option may be missing."""
    before = former["resources"]["ontology"]["name"]
    now = identify_resource("ontology", run.settings).describe()["name"]
    if before != now:
        log.warning(
            "%s had the ontology %s until now, and this build has %s: to go back, `kpyramid "
            "rollback %s`, then build with --ontology or induce.ontology as before",
            *(run.ref, before, now, run.ref),
        )


@dataclass(frozen=True, slots=True)
class _Settled:
    """What is published: tables and ontology files, with the rejects of withdrawn statements.

    `key`: the hash of its input. `gates`: the verdicts on the ontology; None if an earlier build
    settled it.
    """

    key: str
    tables: Mapping[str, TableFile]
    texts: Mapping[str, str]
    withdrawn: pa.Table
    gates: Mapping[str, str] | None


def _settle(run: Run, tables: Mapping[str, TableFile], judges: str) -> _Settled:
    """The tables without the statements that contradict others with more evidence."""
    contracts = load_contracts()
    reads = find_stage("publish").reads
    inputs = {
        name: read_result(tables[name], contracts[name], run.warehouse.staging) for name in reads
    }
    key = hash_value(
        [
            _WITHDRAWING,
            [tables[name].content for name in sorted({*reads, *_NAMING})],
            fingerprint_stage(find_stage("publish"), run.settings),
            [judges, run.settings.publish.reasoner_seconds, find_java() is not None],
            [library_version(name) for name in ("owlready2", "pyshacl", "rdflib")],
        ]
    )
    known = find_result(run.warehouse, "publish", key)
    gates: Mapping[str, str] | None = None
    texts: Mapping[str, str] = {}
    if known is None:
        withdrawn, gates, texts = _withdraw(run, inputs)
        made: dict[str, pa.Table | Iterable[pa.Table]] = {"rejects": withdrawn}
        if withdrawn.num_rows:
            read = {name: read_result(tables[name], contracts[name]) for name in _NAMING}
            made = {"withdrawn": withdrawn, **stage.leave_out(read, withdrawn)}
        known = store_result(run.warehouse, "publish", key, made)
    file = known.tables.get("withdrawn", known.tables["rejects"])
    withdrawn = read_result(file, contracts["rejects"])
    if withdrawn.num_rows:
        tables = {**tables, **{name: known.tables[name] for name in _NAMING}}
        inputs["instances"] = read_result(tables["instances"], contracts["instances"])
    texts = texts or stage.run(*inputs.values(), schema=load_schema(run.settings))
    return _Settled(key, tables, texts, withdrawn, gates)


def _withdraw(
    run: Run, inputs: Mapping[str, pa.Table]
) -> tuple[pa.Table, Mapping[str, str], Mapping[str, str]]:
    """The rejects of withdrawn statements; the verdicts on the rest of the ontology, and its files.

    Raises:
        IntegrityError: a row was lost without a reject.
    """
    files, seconds = locate_files(run.settings), run.settings.publish.reasoner_seconds
    passed = _open_passed(run)
    judge = partial(judge_ontology, files, seconds=seconds, passed=passed)
    proposals, schema = inputs["proposals"], load_schema(run.settings)
    statements = stage.list_statements(*(inputs[name] for name in _STATED))
    texts = stage.write_judged(statements, proposals, schema)
    rejects, judged = load_contracts()["rejects"].build([]), judge(texts)
    for _ in range(MOST_ROUNDS):
        gc.collect()  # what judges leave in cycles is a third of the memory; .2 s
        if not judged.failed:
            break
        withdrawals = repair_ontology(files, texts, statements, judged, seconds=seconds)
        if not withdrawals:
            break
        more = stage.reject_withdrawn(inputs["instances"], withdrawals)
        rejects = load_contracts()["rejects"].unite([rejects, more])
        gone = {*more["row_key"].to_pylist()}
        statements = [each for each in statements if each.instance_id not in gone]
        texts = stage.write_judged(statements, proposals, schema)
        judged = judge(texts, before=judged)
    if inputs["instances"].num_rows != len(statements) + rejects.num_rows:
        raise IntegrityError(
            "stage publish lost a statement without a reject; this is a defect, please report it"
        )
    texts = stage.complete_texts(texts, statements, schema)
    readable = judge_readable(texts, judged, seconds=seconds, passed=passed)
    return rejects, {**judged.gates, "readable": readable}, texts


def _open_passed(run: Run) -> RowCache:
    """The cache of what HermiT accepted in earlier builds."""
    function = fingerprint_function(find_function("reasoner"), run.settings)
    return RowCache(run.warehouse, "reasoner", function)


_OF_ONTOLOGY = {"readable", "consistent", "shapes", "checks", "questions"}
_STATED = ("documents", "chunks", "entities", "instances")


def _write(
    run: Run, corpus: str, settled: _Settled, vectors: Sequence[TableFile]
) -> tuple[str, dict[str, int]]:
    """Writes the snapshot of tables, ontology files and index; its id, and its rows by table."""
    tables, gone = settled.tables, combine_column(settled.withdrawn["row_key"])
    paths = {f"tables/{name}.parquet": file.path for name, file in tables.items()}
    files: dict[str, bytes | str | Path] = {**paths, **settled.texts}
    given = run.warehouse, tables, vectors, run.settings.index
    with prepare_index(*given, gone) as (index_key, made):
        parts = (path for name, path in made.items() if name.startswith(f"tables/{VECTORS}"))
        count = sum(pq.read_metadata(path).num_rows for path in parts)
        rows = {**{name: file.rows for name, file in tables.items()}, VECTORS: count}
        rows = dict(sorted(rows.items()))
        shaped = {"key": index_key, **run.settings.section("index")}
        manifest = {**_describe(run, corpus, rows), "index": shaped}
        files |= describe_folder(manifest, tables["documents"].path)
        return write_snapshot(run.warehouse, {**files, **made}, manifest), rows


def _describe(run: Run, corpus: str, rows: Mapping[str, int]) -> dict[str, JsonValue]:
    """The manifest without the files: a function of corpus and settings only."""
    settings = run.settings
    contracts, erased = load_contracts(), load_erased(run.warehouse).digest
    return {
        **({"erased": erased} if erased else {}),
        "format": FORMAT,
        "software": library_version("kpyramid"),
        "corpus": corpus,
        "tables": {n: {"rows": rows[n], "contract": contracts[n].version} for n in sorted(rows)},
        "stages": {
            s.name: {"version": s.version, "fingerprint": fingerprint_stage(s, settings)}
            for s in PIPELINE
        },
        "resources": {
            name: identify_resource(name, settings).describe()
            for name in ("parser", "embedding", "ontology")
        },
        "model": {s.name: describe_model_part(s.name, settings) for s in PIPELINE},
        "settings": {s.name: describe_settings(s.name, settings) for s in PIPELINE[:-1]},
        "questions": _list_questions(locate_files(settings)),
    }


def _list_questions(files: OntologyFiles) -> list[JsonValue]:
    """The ontology's competency questions, each with its complete query.

    They show a reader, and a model that writes queries, how this ontology is asked.
    """
    if files.questions is None:
        return []
    prefixes = read_prefixes(files.turtle.read_text("utf-8-sig"))
    return [
        {"text": question.text, "sparql": complete_query(question.sparql.strip(), prefixes)}
        for question in read_questions(files.questions)
    ]


def _judge_settled(
    run: Run, settled: _Settled, given: TableFile, before: StageMark | None
) -> dict[str, str]:
    """The verdicts on the remaining ontology, and on how much was withdrawn.

    `given`: the instances before the withdrawal. Competency questions only have to run. If the run
    `before` settled the same input, its verdicts hold, unless a gate was not run then.
    """
    gates = settled.gates
    if gates is None and before and before.details.get("settled") == settled.key:
        gates = {name: verdict for name, verdict in before.gates.items() if name in _OF_ONTOLOGY}
        gates = None if any(verdict.startswith("not run") for verdict in gates.values()) else gates
    if gates is None:
        files, seconds = locate_files(run.settings), run.settings.publish.reasoner_seconds
        passed = _open_passed(run)
        judged = judge_ontology(files, settled.texts, seconds=seconds, passed=passed)
        readable = judge_readable(settled.texts, judged, seconds=seconds, passed=passed)
        gates = {**judged.gates, "readable": readable}
    return {**gates, "contradictions": judge_withdrawn(run, settled.withdrawn, given)}


def _read_judged(run: Run, earlier: str, judges: str) -> StageMark | None:
    """The mark of the run that committed the snapshot, if it had the same judges."""
    try:
        mark = read_mark(open_run(run.warehouse, earlier), "publish")
    except (InputError, SettingsError):  # the run was removed, or is of an older version
        return None
    return mark if mark and mark.details.get("judges") == judges else None
