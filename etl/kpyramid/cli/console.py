"""Output for people: progress on stderr, results as short text on stdout."""

import re
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.segment import Segment

from kpyramid.pipeline.stage import PIPELINE, Progress

if TYPE_CHECKING:
    from kpyramid.query.types import Item

T = TypeVar("T")

CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # all but tab and line end
    "\u202a-\u202e\u2066-\u2069"  # change the direction, and so the order in which text is read
    "\ud800-\udfff]"  # of file names that are not UTF-8; no terminal can be sent them
)
"""Characters that a terminal obeys instead of showing them."""


def clean(text: str) -> str:
    r"""The text with control characters escaped, such as `\x1b`: a terminal would obey them."""
    return CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


class SafeConsole(Console):
    """A console that obeys its own styles only, not control characters in texts."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """See `Console.render`; control characters are escaped."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(clean(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Raises for the caller of the command; the library would end the process with 1."""
        raise BrokenPipeError


out = SafeConsole(soft_wrap=True, highlight=False, markup=False, emoji=False)
laid_out = SafeConsole(highlight=False)
LONGEST = 400
"""Most characters of a shown passage."""


def shorten(text: str, most: int = LONGEST) -> str:
    """The text on one line, cut to `most` characters."""
    plain = " ".join(text.split())
    return plain if len(plain) <= most else f"{plain[:most]}…"


def mark(text: str, words: Iterable[str]) -> str:
    """A text with brackets around these words; a long one is cut around the first of them."""
    longest_first = sorted(words, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)", re.IGNORECASE)
    first = pattern.search(text)
    start = max(0, first.start() - LONGEST // 2) if first and len(text) > LONGEST else 0
    return ("…" if start else "") + shorten(pattern.sub(r"[\g<0>]", text[start:]))


def find_best_sentence(text: str, question: str) -> str:
    """The sentence with the most words of a question, the first of equals."""
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


def name_origin(learnt: str) -> str:
    """A remark if a place was learnt from an answered question; empty for other sources.

    See `kpyramid learn`.
    """
    from_what = {"gold": "a gold answer", "rating": "an answer that was rated good"}
    return f", learnt from {from_what[learnt]}" if learnt else ""


class _StageBars(Progress):
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


_PAUSE = 10.0
"""Seconds between two lines."""


@contextmanager
def open_bars(*, quiet: bool, transient: bool = False) -> Iterator[Bars]:
    """Progress bars on stderr; none if it is no terminal or `quiet`."""
    console = SafeConsole(stderr=True)
    columns = (
        TextColumn("{task.description:14}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    disable = quiet or not console.is_terminal
    with Bars(*columns, console=console, disable=disable, transient=transient) as bars:
        yield bars


@contextmanager
def show_progress(*, quiet: bool) -> Iterator[Progress]:
    """A bar for each stage of a build, removed at its end; lines where stderr is no terminal."""
    with open_bars(quiet=quiet, transient=True) as bars:
        over = threading.Event()
        if bars.disable and not quiet:
            threading.Thread(target=_print_lines, args=(bars, over), daemon=True).start()
        try:
            yield _StageBars(bars)
        finally:
            over.set()


def _print_lines(bars: Bars, over: threading.Event) -> None:
    """Prints the progress, a line every ten seconds until the end."""
    while not over.wait(_PAUSE):
        for task in bars.tasks[-1:]:
            count = f" {task.completed:,.0f} of {task.total:,.0f}" if task.total else ""
            since = time.monotonic() - (bars.tasks[0].start_time or 0.0)
            sys.stderr.write(f"{since:5.0f} s  {task.description}{count}\n")
            sys.stderr.flush()


def show_count(items: Iterable[T], label: str, *, quiet: bool) -> Iterator[T]:
    """Yields the items and shows their count."""
    with open_bars(quiet=quiet) as bars:
        yield from bars.track(items, description=label)
