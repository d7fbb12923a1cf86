"""The figures of an evaluation as a person reads them on a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kpyramid.evaluation.grid import Sheet
from kpyramid.evaluation.results import Figure, Results

_REASONS = 3
"""Failures and missing documents that are named; the files have them all."""


def print_figures(results: Results, sheets: Sequence[Sheet]) -> None:
    """The tables of the paper if there are any, else a line per metric; then what it took."""
    out = Console(soft_wrap=True, highlight=False)
    for sheet in sheets:
        out.print(f"[bold]{escape(sheet.title)}[/]")
        out.print(_draw_sheet(sheet))
        out.print()
    if not sheets:
        out.print(_draw_metrics(results))
        if len(results.rows_by_arm) > 1:
            out.print(
                f"In brackets the 95 % interval; * differs from {escape(results.baseline)}: the "
                "interval of the difference, question by question, does not hold 0."
            )
    out.print(_draw_expenses(results))
    for line in _list_remarks(results):
        out.print(escape(line))


def _draw_sheet(sheet: Sheet) -> Table:
    table = Table(*sheet.labels, box=None, pad_edge=False)
    for column in sheet.columns:
        table.add_column(escape(column), justify="right", no_wrap=True)
    for row in sheet.rows:
        table.add_row(*(escape(cell) for cell in row))
    return table


def _draw_metrics(results: Results) -> Table:
    """A line per metric, a column per arm."""
    differing = {
        (c.arm, c.metric) for c in results.comparisons if c.low > 0 or c.high < 0
    }  # fmt: skip
    table = Table("metric", box=None, pad_edge=False)
    for arm in results.rows_by_arm:
        table.add_column(escape(arm), justify="right")
    for metric in results.metrics:
        cells = [
            _show(results.find(arm, metric), differs=(arm, metric) in differing)
            for arm in results.rows_by_arm
        ]
        table.add_row(metric, *cells)
    return table


def _show(figure: Figure | None, *, differs: bool) -> str:
    if figure is None:
        return ""
    mark = "*" if differs else " "
    return escape(f"{figure.mean:.3f}{mark}[{figure.low:.3f}, {figure.high:.3f}]")


def _draw_expenses(results: Results) -> Table:
    table = Table("arm", box=None, pad_edge=False)
    for column in ("questions", "failed", "calls", "tokens", "dollars", "seconds", "95 of 100"):
        table.add_column(column, justify="right")
    for e in results.expenses:
        cost = "unknown" if e.cost is None else f"{e.cost:.4f}"
        counts = (e.questions, e.failures, e.calls, e.tokens)
        times = (f"{e.p50:.3f}", f"< {e.p95:.3f}")
        table.add_row(escape(e.arm), *map(str, counts), cost, *times)
    return table


def _list_remarks(results: Results) -> list[str]:
    answers, lines = results.answers, []
    if answers.missing:
        named = ", ".join(answers.missing[:_REASONS])
        lines.append(
            f"{len(answers.missing)} gold documents are not in the corpus of this snapshot, such "
            f"as {named}: what rests on them cannot be found."
        )
    if failed := answers.failures:
        lines.append(f"{len(failed)} answers failed and count as empty:")
        lines += [f"  {r.arm.name}, {r.question.id}: {r.failure}" for r in failed[:_REASONS]]
    if answers.stopped is not None:
        count = len(answers.questions) * len(answers.arms)
        lines.append(f"Stopped after {len(answers.rows)} of {count} answers.")
    return lines
