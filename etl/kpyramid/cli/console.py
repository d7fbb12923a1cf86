"""What a person sees: progress on stderr, results as short text on stdout."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.segment import Segment
from rich.table import Table

from kpyramid.pipeline.stage import PIPELINE

if TYPE_CHECKING:
    from kpyramid.pipeline.cache import Progress
    from kpyramid.query.types import Answer, Item
    from kpyramid.snapshot.evidence import Evidence
    from kpyramid.storage.runs import StageMark

T = TypeVar("T")

CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # all but tab and line end
    "\u202a-\u202e\u2066-\u2069"  # change the direction, and so the order in which text is read
    "\ud800-\udfff]"  # of file names that are not UTF-8; no terminal can be sent them
)
"""What a terminal obeys, and does not show."""


def clean(text: str) -> str:
    r"""The text with control characters written out, such as `\x1b`: a terminal would obey them."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class SafeConsole(Console):
    """A console that obeys its own styles only, never what stands in a printed text."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """See `Console.render`; each text cleaned."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(clean(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Raises for whoever runs the command; the library would end the process with 1."""
        raise BrokenPipeError


out = SafeConsole(soft_wrap=True, highlight=False, markup=False, emoji=False)
_MOST_EVIDENCE = 5
LONGEST = 400
"""Characters of a passage that are shown."""
_MOST_REASONS = 6
_WIDE = 100


def shorten(text: str, most: int = LONGEST) -> str:
    """The text on one line, its end cut off when it is longer than `most` characters."""
    plain = " ".join(text.split())
    return plain if len(plain) <= most else f"{plain[:most]}…"


def find_best_sentence(text: str, question: str) -> str:
    """The sentence of a text that shares most words with a question, the first of equals."""
    from kpyramid.documents.sentences import split_sentences
    from kpyramid.documents.words import STOP, split_words

    wanted = {word.stem for word in split_words(question)} - STOP
    sentences = [text[span.start : span.end] for span in split_sentences(text)]
    shared = [len(wanted & {word.stem for word in split_words(each)}) for each in sentences]
    return sentences[shared.index(max(shared))] if sentences else text


def excerpt(item: "Item", question: str) -> str:
    """A statement, or a passage from the sentence on that is nearest to a question."""
    if item.layer != "text":
        return shorten(item.told)
    start = max(item.text.find(find_best_sentence(item.text, question)), 0)
    return f"{'… ' if start else ''}{shorten(item.text[start:])}"


def name_origin(place: "Evidence") -> str:
    """Says of a place that it was learnt from an answered question; nothing of what a source says.

    See `kpyramid learn`.
    """
    from_what = {"gold": "a gold answer", "rating": "an answer that was rated good"}
    return f", learnt from {from_what[place.learnt]}" if place.learnt else ""


class _StageBars:
    """A bar per stage; a stage without long work shows only that it ran."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._task = TaskID(0)
        self._total = 0

    def begin(self, stage: str) -> None:
        names = [s.name for s in PIPELINE]
        label = f"{names.index(stage) + 1}/{len(names)} {stage}"
        self._task = self._bars.add_task(label, total=None)
        self._total = 0

    def expect(self, total: int) -> None:
        self._total += total
        self._bars.update(self._task, total=self._total or None)

    def advance(self, count: int) -> None:
        self._bars.advance(self._task, count)

    def end(self, stage: str) -> None:
        total = self._total or 1
        self._bars.update(self._task, total=total, completed=total)


@contextmanager
def open_bars(*, quiet: bool) -> Iterator[Bars]:
    """Progress on stderr while work goes on; nothing when it is no terminal or quiet is asked."""
    console = SafeConsole(stderr=True)
    columns = (
        TextColumn("{task.description:14}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=console, disable=quiet or not console.is_terminal) as bars:
        yield bars


@contextmanager
def show_progress(*, quiet: bool) -> Iterator["Progress"]:
    """A bar for each stage of a build."""
    with open_bars(quiet=quiet) as bars:
        yield _StageBars(bars)


@contextmanager
def show_steps(*, quiet: bool) -> Iterator[Callable[[str, int, int | None], None]]:
    """One bar for steps that follow each other; each call says which, and how far."""
    with open_bars(quiet=quiet) as bars:
        task = bars.add_task("", total=None)

        def tell(what: str, done: int, total: int | None) -> None:
            bars.update(task, description=what, completed=done, total=total)

        yield tell


def show_count(items: Iterable[T], label: str, *, quiet: bool) -> Iterator[T]:
    """Passes items on and counts them."""
    with open_bars(quiet=quiet) as bars:
        yield from bars.track(items, description=label)


def _lay_out(*headers: str) -> Table:
    return Table(*headers, box=None, pad_edge=False)


def print_build(report: Mapping[str, Any], run: Path, place: str) -> None:
    """What each stage made and refused, and where things lie."""
    print_unread(report["unread"])
    table = _lay_out("stage", "made", "rejected", "recomputed", "seconds")
    for stage in report["stages"]:
        made = ", ".join(f"{rows} {name}" for name, rows in stage["rows"].items())
        table.add_row(
            stage["stage"],
            "the snapshot" if stage["stage"] == "publish" else made,
            str(stage["rejects"]),
            str(stage["recomputed"]),
            f"{stage['seconds']:.2f}",
        )
    out.print(table)
    if report["model"]:
        _print_model(report)
    _print_rejects(report)
    if decided := report["decisions"]:
        out.print(
            f"Decisions: {decided['file']}, {decided['accept']} accept and "
            f"{decided['reject']} reject; {decided['accepted']} proposals are accepted by them, "
            f"{decided['rejected']} rejected."
        )
    for name, verdict in report["gates"].items():
        out.print(f"Gate {name}: {verdict}.")
    moved = {"yes": "moved to it", "unchanged": "is at it already: nothing changed"}
    state = moved.get(report["committed"], "was not moved")
    out.print(f"Snapshot {report['snapshot']}; ref {report['ref']} {state}.")
    if report["changes"]:
        out.print(f"Against what the ref had: {report['changes']}.")
    out.print(f"It lies in {place}/{report['snapshot']}")
    out.print(f"Report: {run / 'report.html'}")


def print_unread(kinds: Sequence[Mapping[str, Any]]) -> None:
    """What of the corpus was not read, a line per kind, before all else."""
    from kpyramid.documents.formats import Unread

    if kinds:
        out.print("Not read:", style="bold yellow")
    for kind in kinds:
        out.print(f"  {shorten(str(Unread(**kind)))}", style="yellow")


def _print_rejects(report: Mapping[str, Any]) -> None:
    """The most frequent reasons, each with an example; the report has them all."""
    counts = [
        (count, stage, reason)
        for stage, reasons in report["rejects"].items()
        for reason, count in reasons.items()
        if stage != "ingest"  # said first
    ]
    if not counts:
        return
    out.print("Rejected, with an example each:")
    for count, stage, reason in sorted(counts, reverse=True)[:_MOST_REASONS]:
        example = shorten(report["examples"][f"{stage}: {reason}"][0], _WIDE)
        out.print(f"  {count:5} {stage}: {reason.replace('_', ' ')} — {example}")
    if (rest := len(counts) - _MOST_REASONS) > 0:
        out.print(f"  and {rest} rarer reasons; `kpyramid rejects list` has every row")


def print_judgement(judged: Mapping[str, Any]) -> None:
    """The verdicts on an ontology, and what its questions found."""
    if judged["snapshot"] and judged["questions"]:
        table = _lay_out("rows", "question", "first answer")
        for question in judged["questions"]:
            first = ", ".join(question["first"][0].values()) if question["first"] else ""
            table.add_row(str(question["rows"]), question["text"], shorten(first, _WIDE))
        out.print(table)
    for name, verdict in judged["gates"].items():
        out.print(f"Gate {name}: {verdict}.")


def print_stage(mark: "StageMark") -> None:
    """One line about a stage."""
    made = ", ".join(f"{rows} {name}" for name, rows in mark.rows.items()) or "nothing"
    out.print(
        f"{mark.stage}: {made}; {sum(mark.rejects.values())} rejected, "
        f"{mark.recomputed} recomputed, {mark.seconds:.2f} s"
    )


def print_answer(answer: "Answer") -> None:
    """The answer, its layer, what was tried, and the evidence down to the characters.

    Without an answer the nearest of what was found stands in the place of the evidence.
    """
    nothing = "not known; nearest:" if answer.context else "not known, and nothing is near it"
    if answer.context and not answer.text:
        out.print(nothing, style="bold")
        near = sorted(answer.context, key=lambda item: item.layer == "text")
        _print_places([(_quote(item, answer.question), item.evidence[:1]) for item in near])
    else:
        out.print(answer.text or nothing, style="bold")
    out.print(f"Layer: {answer.layer or 'none'}")
    if answer.text:
        out.print(f"Probability that it is right: {answer.confidence:.2f}")
    for step in answer.trace:
        out.print(f"  tried {step}")
    if answer.evidence:
        out.print("Evidence:")
        _print_places([(place.text, [place]) for place in answer.evidence])


def _quote(item: "Item", question: str) -> str:
    """A statement with the sentence that says it; a passage around its best sentence."""
    says = item.evidence[0].text if item.layer != "text" and item.evidence else ""
    told = excerpt(item, question)
    return f"{told}: {shorten(says)}" if says else told


def _print_places(found: "Sequence[tuple[str, Sequence[Evidence]]]") -> None:
    for text, places in found[:_MOST_EVIDENCE]:
        out.print(f"  {text}")
        for place in places:
            where = f"{place.source}, characters {place.start}-{place.end}{name_origin(place)}"
            out.print(f"    {where}", style="dim")
    if len(found) > _MOST_EVIDENCE:
        out.print(f"  and {len(found) - _MOST_EVIDENCE} more (--json shows all)")


def print_rows(rows: Sequence[Mapping[str, object]], **headers: str) -> None:
    """A line per row, a column per field, headed by its name or what `headers` says instead.

    Nothing is cut off: ids are there to be copied.
    """
    names = list(rows[0]) if rows else []
    lines = [[headers.get(name, name) for name in names]]
    lines += [[str(row[name]) for name in names] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines if rows else [["None yet."]]:
        out.print("  ".join(map(str.ljust, line, widths or [0])).rstrip())


def print_snapshots(rows: Sequence[Mapping[str, Any]]) -> None:
    """A line per snapshot."""
    if not rows:
        out.print("No snapshot yet; `kpyramid build CORPUS` makes one.")
        return
    print_rows(
        [
            {
                "id": row["id"],
                "refs": ", ".join(row["refs"]),
                "committed": row["created"] or "never",
                "documents": row["rows"].get("documents", ""),
                "condensed facts": row["rows"].get("condensed", ""),
            }
            for row in rows
        ]
    )


def print_plan(rows: Sequence[Mapping[str, Any]], budget: float | None = None) -> None:
    """A line per stage; below it, when a model is asked, what all of it costs."""
    print_unread(rows[0]["unread"])
    table = _lay_out("stage", "rows", "computed before", "to compute", "calls", "tokens", "dollars")
    for row in rows:
        unknown = row["rows"] is None
        cost = row["cost"]["expected"]
        table.add_row(
            row["stage"],
            "" if unknown else str(row["rows"]),
            "" if unknown else str(row["cached"]),
            "what changes above" if unknown else str(row["rows"] - row["cached"]),
            f"{row['calls']:,}" if row["calls"] else "",
            f"{row['tokens']:,}" if row["tokens"] else "",
            _show_dollars({"expected": cost, "low": cost, "high": cost}) if row["calls"] else "",
        )
    out.print(table)
    asking = [row for row in rows if row.get("model")]
    if asking:
        _print_bill(rows, asking, budget)


def _print_bill(
    rows: Sequence[Mapping[str, Any]], asking: Sequence[Mapping[str, Any]], budget: float | None
) -> None:
    calls, tokens, prompt, completion = (
        _show_range(_add_ranges([row["model"][name] for row in asking]))
        for name in ("calls", "tokens", "prompt", "completion")
    )
    out.print(f"In all {calls} calls, {tokens} tokens: {prompt} sent, {completion} replied.")
    cost = _add_ranges([row["cost"] for row in rows])
    batch = _add_ranges([row["model"]["batch_cost"] for row in asking])
    if cost["expected"] is None:
        for name in sorted({name for row in asking for name in row["model"]["unpriced"]}):
            out.print(
                f"The price of {name} is not known: add [llm.prices.{json.dumps(name)}] "
                "with input and output in dollars per million tokens to the settings."
            )
    else:
        out.print(
            f"That costs {_show_dollars(cost)} dollars; {_show_dollars(batch)} as batches "
            "(`kpyramid batch submit`)."
        )
    if budget is not None and cost["high"] is not None and cost["high"] > budget:
        sure = "will" if (cost["low"] or 0.0) > budget else "may"
        out.print(f"The budget of {budget} dollars {sure} stop the build before it is done.")
    hits, failed, waiting = (
        sum(row["model"][name] for row in asking) for name in ("hits", "failed", "waiting")
    )
    if hits or failed:
        out.print(f"{hits} replies are there already; {failed} requests are given up.")
    if waiting:
        out.print(f"{waiting} requests are in an open batch: `kpyramid batch collect`.")
    learned = max(row["model"]["learned_from"] for row in asking)
    out.print(
        f"Estimated from {learned} calls of earlier runs."
        if learned
        else "Nothing was asked of this model yet: the range narrows after its first calls."
    )


def _add_ranges(ranges: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """The sum; unknown when a part is."""
    total: dict[str, float | None] = {}
    for bound in ("low", "expected", "high"):
        values = [amount[bound] for amount in ranges]
        known = [value for value in values if value is not None]
        total[bound] = sum(known) if len(known) == len(values) else None
    return total


def _show_range(amount: Mapping[str, float | None]) -> str:
    low, expected, high = (round(amount[b] or 0) for b in ("low", "expected", "high"))
    return str(expected) if low == high else f"{expected} ({low}–{high})"


def _show_dollars(cost: Mapping[str, float | None]) -> str:
    """With so many digits that a small amount is not shown as none."""
    low, expected, high = cost["low"], cost["expected"], cost["high"]
    if low is None or expected is None or high is None:
        return "unknown"
    digits = 2 if expected >= 1 or not high else 4
    shown = [f"{amount:.{digits}f}" for amount in (expected, low, high)]
    return shown[0] if low == high else f"{shown[0]} ({shown[1]}–{shown[2]})"


def _print_model(report: Mapping[str, Any]) -> None:
    """What models took, beside what was planned."""
    table = _lay_out(
        "model asked by", "asked", "from cache", "calls", "tokens", "dollars", "planned", "failed"
    )
    for stage in report["model"]["stages"]:
        planned = stage["planned"]
        share = "" if stage["hit_rate"] is None else f" ({100 * stage['hit_rate']:.0f} %)"
        table.add_row(
            stage["stage"] or "other",
            str(stage["asked"]),
            f"{stage['hits']}{share}",
            str(stage["calls"]),
            str(stage["tokens"]),
            "unknown" if stage["cost"] is None else f"{stage['cost']:.4f}",
            f"{planned['calls']['expected']:.0f} calls, {planned['tokens']['expected']:.0f} tokens"
            if planned and isinstance(planned["calls"], Mapping)
            else "",
            ", ".join(f"{count} {kind}" for kind, count in stage["failures"].items()),
        )
    out.print(table)
