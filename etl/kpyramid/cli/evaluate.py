"""`kpyramid evaluate`: strategies compared on questions with known answers."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kpyramid.cli.console import open_bars
from kpyramid.cli.render import Result, lay_out, name_first
from kpyramid.errors import SettingsError

if TYPE_CHECKING:
    from kpyramid.evaluation.report import Sheet
    from kpyramid.evaluation.results import Results
    from kpyramid.settings import Settings

_DEFAULT = ("naive", "kaping", "polyrag")
ReaderName = StrEnum("ReaderName", "rules llm")
"""An enumeration, since typer takes no list of a `Literal`."""
_REASONS = 3
"""Failures and missing documents in words; --json has them all."""


@dataclass(frozen=True, kw_only=True)
class Evaluated(Result):
    """The figures of each arm, the requested tables, and the written files."""

    results: "Results"
    sheets: Sequence["Sheet"]
    out: str | None

    def to_dict(self) -> dict[str, Any]:
        """A row per arm and metric."""
        tables = [{"title": sheet.title, "rows": _name_cells(sheet)} for sheet in self.sheets]
        return {**self.results.to_dict(), **({"tables": tables} if tables else {}), "out": self.out}

    def show(self) -> Iterator[str]:
        """The tables, else a line per metric and a column per arm; then the cost."""
        for sheet in self.sheets:
            yield sheet.title
            yield from lay_out(_name_cells(sheet))
            yield ""
        if not self.sheets:
            yield from lay_out(self._list_metrics())
        names = ("arm", "questions", "failures", "calls", "tokens", "cost", "p50", "p95")
        expenses = [asdict(e) for e in self.results.expenses]
        yield from lay_out(({n: e[n] for n in names} for e in expenses), cost="dollars")
        answers = self.results.answers
        if answers.missing:
            yield (
                f"{len(answers.missing)} gold documents are not in the corpus of this snapshot, "
                f"such as {', '.join(answers.missing[:_REASONS])}: answers that need them "
                "cannot be found."
            )
        if failed := answers.failures:
            yield f"{len(failed)} answers failed and count as empty:"
            lines = [f"{r.arm.name}, {r.question.id}: {r.failure}" for r in failed]
            yield from name_first(lines, _REASONS)
        if answers.stopped is not None:
            count = len(answers.questions) * len(answers.arms)
            yield f"Stopped after {len(answers.rows)} of {count} answers."
        if self.out:
            yield f"Page: {self.out.rstrip('/')}/evaluation.html; tables beside it"

    def _list_metrics(self) -> Iterator[dict[str, str]]:
        """Means with 95 % intervals; * differs from the baseline, after Holm's correction."""
        from kpyramid.evaluation.results import SHARE, SURE

        results = self.results
        differing = {(c.arm, c.metric) for c in results.comparisons if c.p_holm < SURE}
        for metric in results.metrics:
            figures = {arm: results.find(arm, metric) for arm in results.rows_by_arm}
            there = {arm: figure for arm, figure in figures.items() if figure}
            if metric.startswith(SHARE) and not any(figure.mean for figure in there.values()):
                continue
            yield {
                "metric": metric,
                "n": str(min(figure.questions for figure in there.values())),
                **{
                    arm: f"{f.mean:.3f}{'*' if (arm, metric) in differing else ' '} "
                    f"{f.low:.2f}–{f.high:.2f}"
                    for arm, f in there.items()
                },
            }


def _name_cells(sheet: "Sheet") -> list[dict[str, str]]:
    names = (*sheet.labels, *sheet.columns)
    return [dict(zip(names, row, strict=True)) for row in sheet.rows]


def evaluate(
    questions: Path,
    /,
    *,
    warehouse: str,
    snapshot: str,
    strategy: list[str] | None = None,
    reader: list[ReaderName] | None = None,
    tables: bool = False,
    baseline: str | None = None,
    out: str | None = None,
    loaded: "Settings",
    quiet: bool,
) -> Evaluated:
    """Ask a pyramid questions whose answers are known, and compare strategies on them.

    The metrics follow from the kind of question. Every figure has a 95 % interval, and every arm
    is compared with a baseline question by question. With rules the same questions and the same
    snapshot give the same files, except for times (expenses.parquet and the page). A strategy that
    fails on a question is counted and the run continues; if a model can no longer be asked, the
    run ends, and paid replies stay in the cache.

    Example: kpyramid evaluate questions.jsonl --strategy naive --strategy polyrag --out compared

    `questions`: questions with their answers: .jsonl, .csv or .tsv.
    `strategy`: what to compare, with its options, such as polyrag or
    polyrag:mode=paper,triples=5,graph=false; repeatable; `all` for every strategy. By default
    naive, kaping, polyrag.
    `reader`: who decides and words answers, by default rules; give it twice for both.
    `tables`: print PolyRAG's Tables II and III and Figure 6, in each of its modes, and the gain
    from each layer.
    `baseline`: the arm that the others are compared with; by default the first.
    `out`: folder for answers, figures and comparisons as Parquet, and a page; local or at
    s3://bucket/prefix.
    """
    from kpyramid.evaluation.harness import answer_all, open_measures, parse_arm
    from kpyramid.evaluation.questions import read_questions
    from kpyramid.evaluation.report import Reader, lay_out, plan_grid
    from kpyramid.evaluation.results import Results, choose_baseline
    from kpyramid.query import STRATEGIES, Backends, open_snapshot
    from kpyramid.storage.layout import is_address

    if out is not None and is_address(out):
        from kpyramid.storage.copies import is_there

        is_there(out)  # a bucket that is none is found before the model is paid
    asked = read_questions(questions)
    if tables and strategy:
        raise SettingsError("give one of --strategy and --tables")
    names = list(reader or [ReaderName.rules])
    every = [name for name in STRATEGIES if name != "tools" or "llm" in names]
    given = strategy or _DEFAULT
    chosen = [each for name in given for each in (every if name == "all" else [name])]
    books = Path(out) if out and not is_address(out) else None
    with ExitStack() as held:
        asker = None
        if "llm" in names:
            from kpyramid.pipeline.models import open_backends, require_model

            require_model(loaded, "--reader llm asks")
            opened = open_backends(loaded, warehouse=warehouse, books=books, patience=float("inf"))
            asker = held.enter_context(opened).asker
        readers = [
            Reader()
            if name == "rules"
            else Reader(loaded.llm.name, Backends("llm", "llm", "llm", "llm", asker))
            for name in dict.fromkeys(names)
        ]
        arms = tuple(
            plan_grid(readers)
            if tables
            else (parse_arm(text, r.name, r.backends) for r in readers for text in chosen)
        )
        choose_baseline(arms, baseline)
        pyramid = open_snapshot(snapshot, warehouse, model=loaded.embed)
        with open_bars(quiet=quiet) as bars:
            task = bars.add_task("answers", total=len(asked) * len(arms))
            answers = answer_all(
                asked,
                pyramid,
                arms,
                metrics=open_measures(),
                advance=partial(bars.advance, task),
            )
    results = Results(answers, pyramid.id, baseline=baseline)
    sheets = lay_out(results, readers) if tables else ()
    if out is not None:
        _write(results, sheets, out)
    return Evaluated(results=results, sheets=sheets, out=out, fault=results.answers.stopped)


def _write(results: "Results", sheets: "Sequence[Sheet]", out: str) -> None:
    from kpyramid.evaluation.report import render_page
    from kpyramid.storage.contracts import encode_table
    from kpyramid.storage.copies import write_at
    from kpyramid.storage.writing import write_durably

    with write_at(out) as folder:
        for name, table in results.build_tables().items():
            write_durably(folder / f"{name}.parquet", encode_table(table))
        write_durably(folder / "evaluation.html", render_page(results, sheets).encode())
