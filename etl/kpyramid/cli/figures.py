"""The figures of an evaluation as a person reads them on a terminal."""

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from kpyramid.cli.console import SafeConsole
from kpyramid.evaluation.report import Sheet
from kpyramid.evaluation.results import SHARE, SURE, Figure, Results

_REASONS = 3
"""Failures and missing documents that are named; the files have them all."""
_WIDE = 128
_ROOM, _CELL = 3, 6
"""Arms whose intervals fit a line of 80 characters, and the width of a mean."""


def print_figures(results: Results, sheets: Sequence[Sheet]) -> None:
    """The tables of the paper if there are any, else a line per metric; then what it took."""
    out = SafeConsole(soft_wrap=True, highlight=False)
    out.width = max(out.width, _WIDE)  # a narrow terminal breaks lines, but cuts no figure off
    for sheet in sheets:
        out.print(f"[bold]{escape(sheet.title)}[/]")
        out.print(_draw_sheet(sheet))
        out.print()
    if not sheets:
        out.print(_draw_metrics(results))
        if len(results.rows_by_arm) > 1:
            out.print(
                f"With 95 % intervals; * differs from {escape(results.baseline)}, question by "
                f"question: p < {SURE} with Holm's correction for several arms. --json has all."
            )
    out.print(_draw_expenses(results))
    for line in _list_remarks(results):
        out.print(escape(line))


def _draw_sheet(sheet: Sheet) -> Table:
    table = Table(box=None, pad_edge=False)
    for label in sheet.labels:
        table.add_column(escape(label), no_wrap=True)
    for column in sheet.columns:
        table.add_column(escape(column), justify="right", no_wrap=True)
    for row in sheet.rows:
        table.add_row(*(escape(cell) for cell in row))
    return table


def _draw_metrics(results: Results) -> Table:
    """A line per metric, a column per arm; the intervals where the line has room for them.

    `n`: the questions that a metric is the mean of, the fewest of any arm.
    """
    differing = {(c.arm, c.metric) for c in results.comparisons if c.p_holm < SURE}
    table = Table("metric", box=None, pad_edge=False)
    table.add_column("n", justify="right", no_wrap=True)
    for arm in results.rows_by_arm:
        table.add_column(escape(arm), justify="right", min_width=_CELL, overflow="fold")
    narrow = len(results.rows_by_arm) > _ROOM
    for metric in results.metrics:
        found = [results.find(arm, metric) for arm in results.rows_by_arm]
        if metric.startswith(SHARE) and not any(figure and figure.mean for figure in found):
            continue
        marks = ["*" if (arm, metric) in differing else " " for arm in results.rows_by_arm]
        asked = min(figure.questions for figure in found if figure)
        shown = (_show(f, m, narrow=narrow) for f, m in zip(found, marks, strict=True))
        table.add_row(metric, str(asked), *shown)
    return table


def _show(figure: Figure | None, mark: str, *, narrow: bool) -> str:
    if figure is None:
        return ""
    interval = "" if narrow else f" {figure.low:.2f}–{figure.high:.2f}"
    return f"{figure.mean:.3f}{mark}{interval}"


def _draw_expenses(results: Results) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("arm", no_wrap=True)
    for column in ("questions", "failed", "calls", "tokens", "dollars", "seconds", "95th pct. s"):
        table.add_column(column, justify="right", no_wrap=True)
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
