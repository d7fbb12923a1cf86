"""The command line. Results go to stdout, progress and logs to stderr."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kpyramid.cli import batch, cache, evaluate, export, ontology, proposals, refs, rejects
from kpyramid.cli.ask import ask
from kpyramid.cli.backfill import backfill
from kpyramid.cli.doctor import doctor
from kpyramid.cli.find import find
from kpyramid.cli.learn import learn
from kpyramid.cli.options import (
    DEFAULT_WAREHOUSE,
    WORKERS,
    AddressOption,
    Commands,
    CorpusArgument,
    EngineOption,
    JsonOption,
    OrderOption,
    QuietOption,
    RefOption,
    SettingsOption,
    ShrinkOption,
    WarehouseOption,
    WorkersOption,
    command,
    print_found,
    say,
)
from kpyramid.cli.refs import diff, erase
from kpyramid.errors import InputError
from kpyramid.pipeline.stage import PIPELINE

if TYPE_CHECKING:
    from kpyramid.pipeline.runner import Shard
    from kpyramid.settings import Settings
    from kpyramid.storage.layout import Warehouse

app = typer.Typer(
    cls=Commands,
    name="kpyramid",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Turns a folder of text into a versioned, checked knowledge pyramid: "
    "ontology, knowledge graph, text.",
    epilog="Exit codes: 0 done, 1 unexpected, 2 usage or settings, 3 input, 4 a gate refused, "
    "5 budget reached, 6 integrity, 7 lost a race, 8 model or storage unreachable.",
)

app.add_typer(batch.app)
app.add_typer(cache.app)
app.add_typer(ontology.app)
app.add_typer(proposals.app)
app.add_typer(evaluate.app)
app.add_typer(rejects.app)


StageName = StrEnum("StageName", {stage.name: stage.name for stage in PIPELINE})  # type: ignore[misc]


def _print_version(is_asked: bool) -> None:
    from kpyramid.storage.identity import library_version

    if is_asked:
        say(f"kpyramid {library_version('kpyramid')}")
        raise typer.Exit


@app.callback()
def _accept(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Options that stand before any command."""


@command(app)
def build(
    corpus: CorpusArgument,
    place: "Warehouse",
    ref: RefOption = "main",
    *,
    loaded: "Settings",
    order: OrderOption = None,
    allow_shrink: ShrinkOption = False,
    workers: WorkersOption = WORKERS,
    engine: EngineOption = None,
    address: AddressOption = None,
    quiet: QuietOption = False,
) -> None:
    """Build a pyramid from a corpus and publish it.

    Only what changed is computed. After a failure, run the same command again: it goes on
    where it stopped.
    """
    from kpyramid.cli import console
    from kpyramid.pipeline.build import build as run_build
    from kpyramid.pipeline.report.report import describe_run

    with console.show_progress(quiet=quiet) as progress:
        outcome = run_build(
            corpus,
            place,
            loaded.with_engine(engine, address),
            ref=ref,
            order=order,
            allow_shrink=allow_shrink,
            workers=workers,
            progress=progress,
        )
    report = describe_run(outcome.run, outcome.marks)
    where = place.locate("snapshots")
    print_found(report, lambda: console.print_build(report, outcome.run.folder, where))


app.add_typer(refs.app)
app.add_typer(export.app)
command(app)(backfill)
command(app)(diff)
command(app)(ask)
command(app)(find)
command(app)(learn)
command(app)(erase)
command(app)(doctor)


@command(app)
def snapshots(
    place: "Warehouse",
) -> None:
    """List the snapshots of a warehouse and the refs that point to them."""
    from kpyramid.cli import console
    from kpyramid.storage.verification import list_snapshots

    rows = list_snapshots(place)
    print_found({"snapshots": rows}, lambda: console.print_snapshots(rows))


@command(app)
def verify(
    snapshot: Annotated[
        str | None,
        typer.Argument(help=f"{refs.SNAPSHOT_HELP} Or a folder: ./copy. By default the ref's."),
    ] = None,
    *,
    place: "Warehouse",
    ref: RefOption = "main",
    deep: Annotated[
        bool,
        typer.Option(
            "--deep", help="Look into damaged files too, and parse the RDF; of all snapshots."
        ),
    ] = False,
) -> None:
    """Check a snapshot: every byte, every contract, every reference, every span; all refs and runs.

    Of a folder, which may lie anywhere, the snapshot alone. --deep goes on after the first damage
    and says which table, page, row or line is wrong; without a SNAPSHOT it checks all that the
    warehouse has.
    """
    from kpyramid.snapshot.snapshot import is_path
    from kpyramid.storage.copies import open_stored
    from kpyramid.storage.refs import resolve_ref
    from kpyramid.storage.runs import find_damaged
    from kpyramid.storage.snapshots import date_snapshots, identify_folder
    from kpyramid.storage.verification import check_refs

    everyone = deep and snapshot is None
    if is_path(snapshot or ref):
        folder = Path(snapshot or ref).absolute()
        found = {identify_folder(folder): (str(folder), _check(folder, deep=deep))}
        of_refs, of_runs = [], []
    else:
        wanted = [*date_snapshots(place)] if everyone else [resolve_ref(place, snapshot or ref)]
        found = {}
        for identifier in wanted:
            with open_stored(place, identifier) as folder:
                at = place.locate(f"snapshots/{identifier}")
                found[identifier] = at, _check(folder, deep=deep)
        of_refs, of_runs = check_refs(place), [*find_damaged(place).values()]
    lines = []
    for identifier, (at, problems) in found.items():
        if problems:
            listed = "\n".join(f"  {problem}" for problem in problems)
            lines.append(
                f"Snapshot {identifier} is damaged:\n{listed}\n"
                f"Do not serve it. Move {at} away and build again: caches make that cheap."
            )
        else:
            rdf = ", RDF" if deep else ""
            whole = f"bytes, contracts, references and spans{rdf}"
            lines.append(f"Snapshot {identifier} is whole: {whole}.")
    if of_refs:
        lines += ["Refs are damaged:", *(f"  {problem}" for problem in of_refs)]
    if of_runs:
        lines += ["Runs are damaged:", *(f"  {problem}" for problem in of_runs)]
    damaged = {identifier: problems for identifier, (_, problems) in found.items()}
    of_snapshots = [problem for each in damaged.values() for problem in each]
    all_problems = [*of_snapshots, *of_refs, *of_runs]
    named = {"snapshots": damaged} if everyone else {"snapshot": next(iter(damaged))}
    print_found({**named, "ok": not all_problems, "problems": all_problems}, lines)
    if all_problems:
        raise typer.Exit(6)


def _check(folder: Path, *, deep: bool) -> list[str]:
    """What is wrong with a snapshot; `deep`: as far as each file can still be read."""
    from kpyramid.errors import PyramidError
    from kpyramid.ontology.store import check_rdf
    from kpyramid.storage.verification import check_bytes, check_tables

    problems = check_bytes(folder)
    if not deep:
        return problems or check_tables(folder)
    for check in (check_tables, check_rdf):
        try:
            problems += check(folder)
        except PyramidError as e:
            problems.append(str(e))
    return problems


@command(app)
def stage(
    name: Annotated[StageName, typer.Argument(help="The stage to run.")],
    run: Annotated[str, typer.Option(help="Name of the run; stage ingest starts it.")],
    warehouse: WarehouseOption = DEFAULT_WAREHOUSE,
    corpus: Annotated[str | None, typer.Option(help="For stage ingest only.")] = None,
    ref: RefOption = "main",
    settings: SettingsOption = None,
    order: OrderOption = None,
    allow_shrink: ShrinkOption = False,
    shard: Annotated[
        str | None,
        typer.Option(
            help="I/N: fill the caches of part I of N (0/4 to 3/4) for chunk, extract or embed; "
            "the stage itself then finds everything computed."
        ),
    ] = None,
    workers: WorkersOption = WORKERS,
    quiet: QuietOption = False,
) -> None:
    """Run one stage of a build: what a scheduler calls, task by task.

    `ref`, `settings`, `order` and `allow-shrink` are given to stage ingest, which notes them.
    """
    from kpyramid.cli import console
    from kpyramid.pipeline.build import call_stage

    with console.show_progress(quiet=quiet) as progress:
        mark = call_stage(
            name.value,
            run=run,
            warehouse=warehouse,
            corpus=corpus,
            settings_file=str(settings) if settings else None,
            ref=ref,
            order=order,
            allow_shrink=allow_shrink,
            workers=workers,
            shard=_parse_shard(shard),
            progress=progress,
        )
    facts = {
        "stage": mark.stage,
        "run": run,
        "shard": shard,
        "rows": dict(mark.rows),
        "rejects": dict(mark.rejects),
        "recomputed": mark.recomputed,
        "seconds": mark.seconds,
        **mark.details,
    }
    print_found(facts, lambda: console.print_stage(mark))


@command(app)
def plan(
    corpus: CorpusArgument,
    place: "Warehouse",
    loaded: "Settings",
) -> None:
    """Say what a build would compute, stage by stage, before it does; nothing is written."""
    from kpyramid.cli import console
    from kpyramid.pipeline.plan import plan_build

    rows = plan_build(corpus, place, loaded)
    print_found({"stages": rows}, lambda: console.print_plan(rows, loaded.llm.budget))


@command(app)
def openie(
    file: Annotated[
        str, typer.Argument(help="Text in UTF-8, one sentence a line; - reads standard input.")
    ],
    loaded: "Settings",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Print the facts that each sentence states, one a line, so that any scorer can read them.

    A line is: sentence, confidence, predicate, arg1, arg2 and so on, parted by tabs. arg1 is the
    subject; objects, times and places follow in the order of the sentence. Tabs and line ends
    within a field become a space. Lines that are not UTF-8, in another language than the settings
    say, or no prose (tables, code, references) are left out and counted on stderr, by reason.
    The input is streamed, so it may be of any length.

    Example: echo 'Ada Lovelace wrote notes in 1843.' | kpyramid openie -
    """
    from kpyramid.cli.openie import print_extractions

    chosen = loaded.extract
    out = typer.get_binary_stream("stdout")
    print_extractions(file, out, chosen, as_json=as_json, quiet=quiet)


def _parse_shard(text: str | None) -> "Shard | None":
    from kpyramid.pipeline.runner import Shard

    if text is None:
        return None
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal()):
        raise InputError(f"shard {text!r}: write I/N, such as 0/4")
    return Shard(int(index), int(count))


command(app)(evaluate.evaluate)
