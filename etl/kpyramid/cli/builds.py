"""`kpyramid build`, `plan` and `stage`: the results of a build, or its expected rows and cost."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kpyramid.cli.console import shorten, show_progress
from kpyramid.cli.options import DEFAULT_WAREHOUSE, Corpus, Ref
from kpyramid.cli.render import Result, lay_out
from kpyramid.documents.corpus import Unread
from kpyramid.errors import GateError, SettingsError
from kpyramid.pipeline.report.words import word_plan, word_report
from kpyramid.pipeline.stage import PIPELINE

if TYPE_CHECKING:
    from kpyramid.llm.estimates import Range
    from kpyramid.settings import Settings
    from kpyramid.storage.layout import Warehouse

StageName = StrEnum("StageName", {stage.name: stage.name for stage in PIPELINE})  # type: ignore[misc]


def describe_build(
    report: Mapping[str, Any], *, page: str, place: str = "", verbose: bool = False
) -> Result:
    """The report of a build; `page`: its path, `place`: the warehouse for the next commands.

    The object leaves out completion and condensation, which `report.json` has.
    """
    values = {n: v for n, v in report.items() if n not in ("completion", "condensation")}
    return Result(values=values, words=word_report(report, page, place, verbose=verbose))


def choose(settings: "Settings", ontology: str | None, model: str | None) -> "Settings":
    """The settings with another ontology or language model, if one is named.

    Raises:
        SettingsError: the other settings do not allow it.
    """
    if ontology is not None:
        settings = replace(settings, induce=replace(settings.induce, ontology=ontology))
    if model is None:
        return settings
    cascade = replace(
        settings.cascade, paraphrase="llm", entities="llm", relations="llm", disambiguation="llm"
    )
    try:
        llm = replace(settings.llm, provider="openai", model=model)
        return replace(settings, llm=llm, cascade=cascade)
    except ValueError as e:  # pydantic's: no name, or a budget without a price
        raise SettingsError(f"--model {model!r}: {e}") from None


def build(
    corpus: Corpus,
    /,
    *,
    place: "Warehouse",
    ref: Ref = "main",
    loaded: "Settings",
    ontology: str | None = None,
    model: str | None = None,
    order: str | None = None,
    allow_shrink: bool = False,
    workers: int,
    quiet: bool,
    verbose: bool,
) -> Result:
    """Build a pyramid from a corpus and publish it; -v prints a line per stage.

    Only changes are computed. After a failure, run the same command again: it continues
    where it stopped.

    `ontology`: a seed such as company (ontology/README.md has all), a Turtle file, or `auto` to
    make one from the corpus, instead of induce.ontology; repeat it in later builds of the ref. The
    result is ontology/schema.ttl of the snapshot; `kpyramid proposals` lists its parts.
    `model`: let this model read the text (llm.model and all steps of cascade), at the endpoint of
    llm.base_url, of OPENAI_BASE_URL, or of OpenAI; repeat it in later builds of the ref.
    `order`: key by which a ref only moves forward, such as the ISO date a backfill is
    for: compared as text. By default the time of the build.
    `allow_shrink`: publish a corpus that is empty or far smaller than the last one.
    """
    from kpyramid.pipeline.build import build as run_build

    where = "" if place.locate() == str(Path(DEFAULT_WAREHOUSE).absolute()) else place.locate()
    try:
        with show_progress(quiet=quiet) as progress:
            report = run_build(
                corpus,
                place,
                choose(loaded, ontology, model),
                ref=ref,
                order=order,
                allow_shrink=allow_shrink,
                workers=workers,
                progress=progress,
            ).report
        fault = None
    except GateError as e:
        report, fault = e.report, e
    page = str(place.runs / str(report["run"]) / "report.html")
    result = describe_build(report, page=page, place=where, verbose=verbose)
    if fault is None:
        return result
    fields = {"error": str(fault), "exit_code": fault.exit_code}
    return replace(result, values={**report, **fields}, fault=fault)


def stage(
    name: StageName,
    /,
    *,
    run: str,
    warehouse: str,
    corpus: str | None = None,
    ref: Ref = "main",
    settings: Path | None,
    order: str | None = None,
    allow_shrink: bool = False,
    shard: str | None = None,
    workers: int,
    quiet: bool,
) -> Result:
    """Run one stage of a build, for schedulers that call the stages task by task.

    Give `--ref`, `--settings`, `--order` and `--allow-shrink` to stage ingest, which records
    them for the run.

    `name`: the stage to run.
    `run`: name of the run; stage ingest starts it.
    `corpus`: for stage ingest only.
    `order`: as in `kpyramid build`.
    `allow_shrink`: as in `kpyramid build`.
    `shard`: I/N: fill the caches of part I of N (0/4 to 3/4) for chunk, extract or embed; the
    stage itself then uses these results.
    """
    from kpyramid.pipeline.build import call_stage
    from kpyramid.pipeline.report.course import describe_mark

    with show_progress(quiet=quiet) as progress:
        mark = call_stage(
            name.value,
            run=run,
            warehouse=warehouse,
            corpus=corpus,
            settings_file=settings,
            ref=ref,
            order=order,
            allow_shrink=allow_shrink,
            workers=workers,
            shard=shard,
            progress=progress,
        )
    named = {"stage": mark.stage, "run": run, "shard": shard}
    return Result(values={**named, **describe_mark(mark), **mark.details})


def describe_plan(stages: Sequence[Mapping[str, Any]], budget: float | None) -> Result:
    """A row per stage with what a build would compute."""
    return Result(values={"stages": stages}, words=_word_plan(stages, budget))


def _word_plan(stages: Sequence[Mapping[str, Any]], budget: float | None) -> Iterator[str]:
    """A line per stage; below, if a model is asked, the total cost."""
    yield from _name_unread(stages[0]["unread"])
    yield from lay_out(map(_show_stage, stages))
    asking = [row["model"] for row in stages if row.get("model")]
    if not asking:
        return
    yield from lay_out(_show_step(step) for model in asking for step in model["steps"])
    ranges = {n: _add_ranges(model[n] for model in asking) for n in ("calls", "tokens")}
    yield from word_plan(
        **ranges,
        cost=_add_ranges(row["cost"] for row in stages),
        batch=_add_ranges(model["batch_cost"] for model in asking),
        endpoints=sorted({place for model in asking for place in model["endpoints"]}),
        unpriced=sorted({name for model in asking for name in model["unpriced"]}),
        learned=any(model["learned_from"] for model in asking),
        budget=budget,
    )


def _show_stage(row: Mapping[str, Any]) -> dict[str, Any]:
    model = row.get("model") or {}
    rows, cached = row["rows"], row["cached"]
    return {
        "stage": row["stage"],
        "rows": rows,
        "computed before": None if rows is None else cached,
        "to compute": "what changes above" if rows is None else rows - cached,
        "calls": row["calls"] or None,
        "tokens": row["tokens"] or None,
        "dollars": _show_dollars(row["cost"]) if row["calls"] else None,
        "replies there": model.get("hits") or None,
        "given up": model.get("failed") or None,
        "in open batches": model.get("waiting") or None,
    }


def _show_step(step: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "task": step["task"],
        "calls": step["calls"],
        "dollars": _show_dollars(step["cost"]),
        "without it, and what is lost": step["without"],
    }


def plan(
    corpus: Corpus,
    /,
    *,
    place: "Warehouse",
    ref: Ref = "main",
    loaded: "Settings",
    ontology: str | None = None,
    model: str | None = None,
) -> Result:
    """Show what a build would compute, stage by stage; nothing is written.

    `ontology`: as in `kpyramid build`.
    `model`: as in `kpyramid build`.
    """
    from kpyramid.pipeline.plan import plan_build

    planned = plan_build(corpus, place, choose(loaded, ontology, model), ref=ref)
    return describe_plan(planned, loaded.llm.budget)


def _name_unread(kinds: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The unread parts of the corpus, a line per kind."""
    if kinds:
        yield "Not read:"
    yield from (f"  {shorten(str(Unread(**kind)))}" for kind in kinds)


def _add_ranges(ranges: Iterable[Mapping[str, Any]]) -> "Range | None":
    """The sum; None if a price is unknown."""
    from kpyramid.llm.estimates import Range

    parts = [Range(**each) for each in ranges]
    return None if any(part.high is None for part in parts) else sum(parts, Range())


def _show_dollars(cost: Mapping[str, Any]) -> str:
    amount = _add_ranges([cost])
    if amount is None:
        return "unknown"
    low, expected, high = (f"{n:.4f}" for n in (amount.low, amount.expected, amount.high))
    return expected if low == high else f"{expected} ({low}–{high})"


def openie(file: str, /, *, loaded: "Settings", as_json: bool, quiet: bool) -> None:
    """Print the facts that each sentence states, one a line, so that any scorer can read them.

    A line has sentence, confidence, predicate, arg1, arg2 and so on, separated by tabs. arg1 is the
    subject; objects, times and places follow in the order of the sentence. Tabs and line ends
    within a field become a space. Lines that are not UTF-8, not in the language of the settings,
    or not prose (tables, code, references) are left out and counted on stderr, by reason.
    The input is streamed, so it may have any length.

    Example: echo 'Ada Lovelace wrote notes in 1843.' | kpyramid openie -

    `file`: text in UTF-8, one sentence a line; - reads standard input.
    """
    from kpyramid.cli.openie import print_extractions

    out = typer.get_binary_stream("stdout")
    print_extractions(file, out, loaded.extract, as_json=as_json, quiet=quiet)
