"""The n-ary facts of sentences as tab-separated lines or JSON, for any scorer to read."""

import json
import logging
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import BinaryIO

from kpyramid.cli.console import show_count
from kpyramid.documents.screening import screen_text
from kpyramid.documents.sentences import Span
from kpyramid.errors import InputError
from kpyramid.extraction.openie import DependencyExtractor
from kpyramid.extraction.types import Proposition
from kpyramid.settings import ExtractSettings
from kpyramid.storage.identity import identify_parser

MAX_BYTES = 100_000
"""Of a line: no sentence is longer, and a line is held in memory."""

# What a reader of lines or of tab-separated fields might take for the end of one.
_BREAKS = re.compile("[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_log = logging.getLogger(__name__)

Line = tuple[str, Sequence[Span]]
"""A line and the parts of it that are prose."""
Reader = Callable[[Iterable[Line]], Iterator[tuple[Proposition, ...]]]


@dataclass(slots=True)
class Counts:
    """What was read and found; `left_out` has the number of lines per reason, `first` the first."""

    sentences: int = 0
    extractions: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)

    def leave_out(self, reason: str, line: int) -> None:
        self.left_out[reason] = self.left_out.get(reason, 0) + 1
        self.first.setdefault(reason, line)

    def describe_left_out(self) -> Iterator[str]:
        """A line of text per reason."""
        for reason, count in self.left_out.items():
            yield f"{count} line(s) left out: {reason}, first line {self.first[reason]}"


def print_extractions(
    name: str, out: BinaryIO, settings: ExtractSettings, *, as_json: bool, quiet: bool
) -> None:
    """Write what the sentences of a file, or of "-", state; what was left out is logged.

    Lines are screened as texts are before extraction: what is no prose in the language of the
    settings is not read.

    Raises:
        SettingsError: the parser is not installed.
        InputError: there is no such file, or it cannot be read.
    """
    identify_parser(settings.parser)  # says what is wrong before anything is read
    counts = Counts()
    quiet = quiet or sys.stdout.isatty()  # the facts themselves show how far it is
    with open_lines(name) as stream:
        screened = screen_lines(read_lines(stream, counts), settings.language, counts)
        lines = show_count(screened, "sentences", quiet=quiet)
        read = DependencyExtractor(settings.parser, settings.language).read_parts
        pairs = pair_extractions(lines, read, counts)
        for part in format_object(pairs, counts) if as_json else format_lines(pairs):
            out.write(part.encode())
        out.flush()
    for line in counts.describe_left_out():
        _log.warning("%s: %s", name, line)
    _log.info("%d sentences, %d extractions", counts.sentences, counts.extractions)


@contextmanager
def open_lines(name: str) -> Iterator[BinaryIO]:
    """The bytes of a file, or of standard input for "-".

    Raises:
        InputError: there is no such file, or it cannot be read.
    """
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = Path(name).open("rb")  # noqa: SIM115 - a failure later is no InputError
    except OSError as e:
        raise InputError(
            f"{name}: {e.strerror or e}; give a text file with one sentence a line, or -"
        ) from e
    with stream:
        yield stream


def read_lines(stream: BinaryIO, counts: Counts) -> Iterator[tuple[int, str]]:
    """The numbered lines of a stream; empty lines are passed over, unusable ones counted."""
    number = 0
    while line := stream.readline(MAX_BYTES + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if len(line) > MAX_BYTES and not line.endswith(b"\n"):
            counts.leave_out(f"longer than {MAX_BYTES:,} bytes", number)
            while line and not line.endswith(b"\n"):
                line = stream.readline(MAX_BYTES)
            continue
        try:
            text = line.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            counts.leave_out("not UTF-8", number)
            continue
        if text.strip():
            yield number, text


def screen_lines(lines: Iterable[tuple[int, str]], language: str, counts: Counts) -> Iterator[Line]:
    """The lines with prose in them; why others, or parts of lines, are left out is counted."""
    for number, text in lines:
        kept, dropped = screen_text(text, language)
        for reason in sorted({each.reason for each in dropped}):
            counts.leave_out(f"{reason} (part of the line)" if kept else reason, number)
        if kept:
            counts.sentences += 1
            yield text, kept


def pair_extractions(
    lines: Iterable[Line], read: Reader, counts: Counts
) -> Iterator[tuple[str, Proposition]]:
    """Each sentence with each of its facts; only what the reader reads ahead is held."""
    waiting: deque[str] = deque()

    def note() -> Iterator[Line]:
        for sentence, parts in lines:
            waiting.append(sentence)
            yield sentence, parts

    for propositions in read(note()):
        sentence = waiting.popleft()
        for proposition in propositions:
            counts.extractions += 1
            yield sentence, proposition


def format_lines(pairs: Iterable[tuple[str, Proposition]]) -> Iterator[str]:
    """Sentence, confidence, predicate, arg1, arg2 … parted by tabs."""
    for sentence, fact in pairs:
        fields = [sentence, f"{fact.confidence:.4f}", fact.predicate]
        fields += [argument.text for argument in fact.arguments]
        yield "\t".join(_BREAKS.sub(" ", each) for each in fields) + "\n"


def format_object(pairs: Iterable[tuple[str, Proposition]], counts: Counts) -> Iterator[str]:
    """The parts of one JSON object on one line, the extractions first, the counts last."""
    lead = '{"extractions": ['
    for sentence, fact in pairs:
        row = {"sentence": sentence} | asdict(fact)
        yield lead + json.dumps(row, ensure_ascii=False)
        lead = ", "
    tail = {
        "sentences": counts.sentences,
        "count": counts.extractions,
        "left_out": counts.left_out,
    }
    yield ("" if lead == ", " else lead) + "], " + json.dumps(tail)[1:] + "\n"
