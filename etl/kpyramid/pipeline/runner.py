"""The runner: all side effects of stages. It reads, checks, calls, checks, writes, marks."""

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.documents.conversion import CONVERTER
from kpyramid.documents.formats import require_readable
from kpyramid.documents.qualifiers import CORRECTED
from kpyramid.errors import InputError, IntegrityError, PyramidError
from kpyramid.keys import JsonValue, hash_bytes, hash_value
from kpyramid.llm.caller import is_due
from kpyramid.llm.ledger import read_totals
from kpyramid.llm.task import Request
from kpyramid.pipeline.cache import Context
from kpyramid.pipeline.fingerprints import INPUTS, find_stored, key_inputs, key_publishing
from kpyramid.pipeline.models import Opener, put_run
from kpyramid.pipeline.publish import publish
from kpyramid.pipeline.stage import PIPELINE, Progress, Stage, find_stage
from kpyramid.pipeline.tasks import list_tasks
from kpyramid.pipeline.wiring import Ports, open_corpus
from kpyramid.snapshot.store import VECTORS
from kpyramid.storage.contracts import flatten, hash_contract, load_contracts
from kpyramid.storage.former import Former, find_former
from kpyramid.storage.identity import is_installed
from kpyramid.storage.layout import clean_staging
from kpyramid.storage.memory import map_table, return_freed_memory
from kpyramid.storage.results import Result, TableFile, find_result, read_result, store_result
from kpyramid.storage.runs import Run, StageMark, drop_marks, read_mark, write_mark

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `index` of `count`, cut by hash; 0 <= index < count."""

    index: int
    count: int

    def holds(self, value: str) -> bool:
        """Whether the part has rows with this key or document."""
        return int(hash_bytes(value.encode())[:8], 16) % self.count == self.index


def read_shard(text: str) -> Shard:
    """The part that a text such as 0/4 names.

    Raises:
        InputError: it names none.
    """
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal()):
        raise InputError(f"shard {text!r}: write I/N, such as 0/4")
    return Shard(int(index), int(count))


def run_stage(
    run: Run, name: str, *, workers: int, progress: Progress, shard: Shard | None = None
) -> StageMark:
    """Runs one stage of a run on the tables of the stages before it; returns its mark.

    With a shard only the caches of its functions are filled, and no mark is written.

    Raises:
        InputError: a stage before it is not done, or the shard does not fit the stage.
        PyramidError: whatever the stage found wrong; says what to do.
    """
    stage = find_stage(name)
    context = _open_context(run, workers, progress)
    started = time.monotonic()
    progress.begin(name)
    return_freed_memory()
    for folder in clean_staging(run.warehouse):
        log.info("removed staging/%s, left by an interrupted process", folder)
    try:
        if shard is not None:
            mark = _warm_shard(run, stage, shard, context)
        elif name == "publish":
            marks = [_require_mark(run, earlier) for earlier in PIPELINE[: PIPELINE.index(stage)]]
            corpus = marks[0].details["corpus"]
            merged = load_contracts().keys() - {VECTORS}
            tables = {table: _merge_parts(run, table) for table in sorted(merged)}
            mark = publish(run, corpus, tables, _list_parts(run, None, VECTORS))
            keys = [earlier.key for earlier in marks]
            made = key_publishing(run.settings, mark.details["judges"], keys)
            mark = replace(mark, details={**mark.details, INPUTS: made})
        else:
            mark = _compute_or_reuse(run, stage, context)
    finally:
        put_run(run)
    mark = replace(mark, seconds=round(time.monotonic() - started, 3))
    if shard is None:
        before = read_mark(run, name)
        if before is not None and before.key != mark.key:
            drop_marks(run, [later.name for later in PIPELINE[PIPELINE.index(stage) + 1 :]])
        write_mark(run, mark)
    progress.end(name)
    log.info(
        "%s: rows %s, rejects %s, recomputed %d, %.1f s, %s",
        name,
        dict(mark.rows),
        dict(mark.rejects),
        mark.recomputed,
        mark.seconds,
        _tell_cost(run, name),
    )
    return mark


def _open_context(run: Run, workers: int, progress: Progress) -> Context:
    former = find_former(run.warehouse, run.former)
    return Context(run.warehouse, run.settings, workers, progress, former=former)


def _tell_cost(run: Run, stage: str) -> str:
    """The cost of a stage in this run so far."""
    spent = read_totals(run.folder).stages.get(stage)
    if spent is None:
        return "no cost"
    return "cost unknown" if spent.cost is None else f"${spent.cost:.4f} in {spent.calls} calls"


def _compute_or_reuse(run: Run, stage: Stage, context: Context) -> StageMark:
    inputs = _list_inputs(run, stage)
    details: dict[str, str] = {}
    with ExitStack() as held, _open_ports(run, stage, context) as ports:
        if "corpus" in stage.ports:
            corpus = held.enter_context(open_corpus(run.corpus, run.warehouse))
            if not run.allow_shrink:
                require_readable(corpus, converts=is_installed(CONVERTER))
            inputs["corpus"] = details["corpus"] = ports.erased.mark(corpus.fingerprint)
            ports.corpus = corpus.read_files()
        details[INPUTS] = key_inputs(stage, run.settings, inputs)
        place = run.warehouse, run.settings
        key, result = find_stored(*place, stage, details[INPUTS], context.former)
        recomputed = 0
        if result is None:
            tables = {table: read_parts(run, stage, table) for table in stage.reads}
            left, retained = _take_over(run, stage, context.former, tables)
            made = ports.run(left)
            for name, taken in retained.items():
                both = [made[name], taken.cast(made[name].schema)]  # names inside types, too
                made[name] = load_contracts()[name].unite(both)
            _check_output(stage, tables, made)
            asked = sorted(ports.model.caller.keys) if ports.model else []
            result = store_result(run.warehouse, stage.name, _key_made(key, ports), made, asked)
            rows = sum(table.num_rows for name, table in made.items() if name != "rejects")
            recomputed = ports.count_computed() if stage.shards else rows
    rows = {name: file.rows for name, file in sorted(result.tables.items()) if name != "rejects"}
    model = ports.describe_model()
    rejects = _count_rejects(result)
    return StageMark(stage.name, result.key, rows, rejects, recomputed, 0.0, details, model=model)


def _take_over(
    run: Run, stage: Stage, former: Former | None, tables: Mapping[str, pa.Table]
) -> tuple[Mapping[str, pa.Table], Mapping[str, pa.Table]]:
    """The tables of changed documents, and the rows that the former run made of all others.

    For a stage that makes the rows of a document of nothing else. With a model all are made: its
    missing replies are asked for again.
    """
    if former is None or former.run is None or stage.shards != ("documents",):
        return tables, {}
    with suppress(PyramidError):  # gc took a table, or the run's record is damaged
        inputs = key_inputs(stage, run.settings, _list_inputs(former.run, stage))
        mark = _require_mark(former.run, stage)
        made = find_result(run.warehouse, stage.name, mark.key)
        by_model = bool(list_tasks(stage.name, run.settings))
        if made is None or mark.details.get(INPUTS) != inputs or by_model:
            return tables, {}
        old = {table: read_parts(former.run, stage, table) for table in stage.reads}
        ids = tables["documents"]["document_id"].combine_chunks()
        same = {"document_id": ids.filter(pc.is_in(ids, old["documents"]["document_id"]))}
        both = [{n: _select(t, same) for n, t in each.items()} for each in (tables, old)]
        if both[0] == both[1]:
            if "chunks" in both[0]:
                same["chunk_id"] = both[0]["chunks"]["chunk_id"].combine_chunks()
            contracts = load_contracts()
            rows = {n: read_result(file, contracts[n]) for n, file in made.tables.items()}
            left = {name: _select(table, same, others=True) for name, table in tables.items()}
            return left, {name: _select(table, same) for name, table in rows.items()}
    return tables, {}


def _select(table: pa.Table, ids: Mapping[str, pa.Array], *, others: bool = False) -> pa.Table:
    """The rows of some documents, or those of all others."""
    by = "document_id" if "document_id" in table.column_names else "chunk_id"
    mine = pc.is_in(table[by], value_set=ids[by])
    return table.filter(pc.invert(mine) if others else mine)


def _list_inputs(run: Run, stage: Stage) -> dict[str, JsonValue]:
    """The content hashes of the tables that a stage reads."""
    return {
        table: [file.content for file in _list_parts(run, stage, table)] for table in stage.reads
    }


def _key_made(key: str, ports: Ports) -> str:
    """The key of a stage's tables: that of its inputs, unless answers are missing.

    Tables without all answers have another key, so that the next run asks again.
    """
    failed = ports.model.caller.failed if ports.model else {}
    if not failed:
        return key
    return hash_value([key, sorted([k, str(f.kind), f.detail] for k, f in failed.items())])


def _count_rejects(result: Result) -> dict[str, int]:
    if "rejects" not in result.tables:
        return {}
    rejects = read_result(result.tables["rejects"], load_contracts()["rejects"])
    return dict(sorted(Counter(rejects["reason"].to_pylist()).items()))


def _warm_shard(run: Run, stage: Stage, shard: Shard, context: Context) -> StageMark:
    if not stage.shards or not 0 <= shard.index < shard.count:
        possible = ", ".join(s.name for s in PIPELINE if s.shards)
        raise InputError(
            f"stage {stage.name}, shard {shard.index}/{shard.count}: shards go from 0/N to N-1/N "
            f"and exist for {possible}"
        )
    tables = {}
    for name in stage.reads:
        table = read_parts(run, stage, name)
        if name in stage.shards:
            by = "document_id" if "document_id" in table.column_names else table.column_names[0]
            mine = pa.array([shard.holds(value) for value in table[by].to_pylist()], pa.bool_())
            table = table.filter(mine)
        tables[name] = table
    with _open_ports(run, stage, context) as ports:
        made = ports.run(tables)
    rows = {name: table.num_rows for name, table in sorted(made.items()) if name != "rejects"}
    model = ports.describe_model()
    return StageMark(stage.name, "", rows, {}, ports.count_computed(), 0.0, model=model)


def collect_pending(run: Run, *, workers: int, progress: Progress) -> dict[str, Request]:
    """The requests that a build would send next, by key; empty if all have answers.

    Stages before the first that lacks answers are run, as their output is needed.

    Raises:
        PyramidError: whatever a stage found wrong.
    """
    context = _open_context(run, workers, progress)
    asking = [s for s in PIPELINE if list_tasks(s.name, run.settings)]
    for stage in PIPELINE[: PIPELINE.index(asking[-1]) + 1] if asking else ():
        if stage in asking:
            pending = _list_pending(run, stage, context)
            if pending:
                return pending
        run_stage(run, stage.name, workers=workers, progress=progress)
    return {}


def _list_pending(run: Run, stage: Stage, context: Context) -> dict[str, Request]:
    """The requests of a stage; those whose stored replies are unusable are among them."""
    tables = {table: read_parts(run, stage, table) for table in stage.reads}
    for _ in range(2):
        with _open_ports(run, stage, context, collecting=True) as ports:
            ports.run(tables)
        if ports.model is None or ports.model.pending:
            break
        if not any(is_due(failure) for failure in ports.model.caller.failed.values()):
            break
    return dict(ports.model.pending) if ports.model else {}


@contextmanager
def _open_ports(
    run: Run, stage: Stage, context: Context, *, collecting: bool = False
) -> Iterator[Ports]:
    place = (run.warehouse, run.settings, run.folder, run.ref)
    with Opener(*place, collecting=collecting) as opener:
        yield Ports(context, stage, opener)


def _list_parts(run: Run, stage: Stage | None, table: str) -> list[TableFile]:
    """The files of a table from the stages before this one; from all stages for None."""
    files = []
    for earlier in PIPELINE:
        if earlier is stage:
            break
        if table in earlier.writes:
            files.append(_find_made(run, earlier).tables[table])
    return files


def _find_made(run: Run, stage: Stage) -> Result:
    result = find_result(run.warehouse, stage.name, _require_mark(run, stage).key)
    if result is None:
        raise IntegrityError(
            f"run {run.name}: the result of stage {stage.name} is damaged or gone; "
            f"run `kpyramid stage {stage.name} --run {run.name}` again, then the stages after it"
        )
    return result


def _require_mark(run: Run, stage: Stage) -> StageMark:
    mark = read_mark(run, stage.name)
    if mark is None:
        raise InputError(
            f"run {run.name}: stage {stage.name} is not done; "
            f"run `kpyramid stage {stage.name} --run {run.name}` first"
        )
    return mark


def read_parts(run: Run, stage: Stage, table: str) -> pa.Table:
    """A table from the stages before this one, without labels.

    Denied facts are left out unless the stage declares `denials`.
    """
    contract = load_contracts()[table]
    parts = [read_result(file, contract) for file in _list_parts(run, stage, table)]
    whole = contract.unite(parts) if len(parts) > 1 else parts[0].combine_chunks()
    whole = whole.drop_columns(contract.labels)
    if table == "triples" and not stage.denials:
        corrected = pc.map_lookup(whole["qualifiers"], CORRECTED, "first")
        whole = whole.filter(pc.and_(pc.invert(whole["negated"]), pc.is_null(corrected)))
    return map_table(whole, run.warehouse.staging)


def _merge_parts(run: Run, table: str) -> TableFile:
    """One file with all rows of a table; merged parts are stored like a result."""
    parts = _list_parts(run, None, table)
    if len(parts) == 1:
        return parts[0]
    key = hash_value([table, hash_contract(table), [part.sha256 for part in parts]])
    merged = find_result(run.warehouse, "merge", key)
    if merged is None:
        united = load_contracts()[table].merge([part.path for part in parts])
        merged = store_result(run.warehouse, "merge", key, {table: united})
    return merged.tables[table]


def _check_output(
    stage: Stage, inputs: Mapping[str, pa.Table], made: Mapping[str, pa.Table]
) -> None:
    """Passes when the stage made what it declares, references hold, and no row was lost."""
    if set(made) != set(stage.writes):
        raise IntegrityError(f"stage {stage.name} made {sorted(made)}, declared {stage.writes}")
    for name, table in made.items():
        load_contracts()[name].check(table)
        known = {**inputs, **made}
        for shared in set(inputs) & set(made):  # a table written in parts: rows of both count
            known[shared] = pa.concat_tables([inputs[shared], made[shared]])
        load_contracts()[name].check_references(table, known)
    if stage.accounts is None:
        return
    source, target = (_column({**inputs, **made}, column) for column in stage.accounts)
    lost = source.filter(pc.invert(pc.is_in(source, value_set=target)))
    if "rejects" in made:
        lost = lost.filter(pc.invert(pc.is_in(lost, value_set=made["rejects"]["row_key"])))
    if len(lost):
        raise IntegrityError(
            f"stage {stage.name} lost rows of {stage.accounts[0]} without a reject: {len(lost)}, "
            f"{lost[0].as_py()!r} first; this is a defect of the stage, please report it"
        )


def _column(tables: Mapping[str, pa.Table], column: str) -> pa.ChunkedArray:
    table, name = column.split(".")
    return flatten(tables[table][name])
