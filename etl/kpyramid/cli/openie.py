"""The n-ary facts of sentences as tab-separated lines or JSON, for any scorer to read."""

import json
import logging
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from itertools import tee
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
"""Most bytes of a line: no sentence is longer, and a line is held in memory."""

# What a reader of lines or of tab-separated fields might take for the end of one.
_BREAKS = re.compile("[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_log = logging.getLogger(__name__)


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
    left_out = LeftOut()
    sentences = count = 0
    try:
        opened = nullcontext(sys.stdin.buffer) if name == "-" else Path(name).open("rb")  # noqa: SIM115
    except OSError as e:
        raise InputError(
            f"{name}: {e.strerror or e}; give a text file with one sentence a line, or -"
        ) from e
    with opened as stream:
        prose = screen_lines(read_lines(stream, left_out), settings.language, left_out)
        # The facts themselves show how far it is.
        shown = show_count(prose, "sentences", quiet=quiet or sys.stdout.isatty())
        lines, read = tee(shown)
        extractor = DependencyExtractor(settings.parser, settings.language)
        for (sentence, _), stated in zip(lines, extractor.read_parts(read), strict=True):
            sentences += 1
            for proposition in stated:
                out.write(_format(sentence, proposition, first=not count, as_json=as_json).encode())
                count += 1
        if as_json:
            tail = {"sentences": sentences, "count": count, "left_out": left_out.counts}
            lead = "" if count else '{"extractions": ['
            out.write(f"{lead}], {json.dumps(tail)[1:]}\n".encode())
        out.flush()
    for reason, number in left_out.counts.items():
        first = left_out.first[reason]
        _log.warning("%s: %d of its lines left out: %s, first line %d", name, number, reason, first)
    _log.info("%d sentences, %d extractions", sentences, count)


@dataclass(slots=True)
class LeftOut:
    """Skipped lines by reason: their number, and the first."""

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, int] = field(default_factory=dict)

    def add(self, reason: str, line: int) -> None:
        """Counts a line."""
        self.counts[reason] += 1
        self.first.setdefault(reason, line)


def read_lines(stream: BinaryIO, left_out: LeftOut) -> Iterator[tuple[int, str]]:
    """The numbered lines of a stream; empty ones are skipped, unusable ones counted."""
    number = 0
    while line := stream.readline(MAX_BYTES + 1):
        number += 1
        line = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
        if len(line) > MAX_BYTES and not line.endswith(b"\n"):
            left_out.add(f"longer than {MAX_BYTES:,} bytes", number)
            while line and not line.endswith(b"\n"):
                line = stream.readline(MAX_BYTES)
            continue
        try:
            text = line.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            left_out.add("not UTF-8", number)
            continue
        if text.strip():
            yield number, text


def screen_lines(
    lines: Iterable[tuple[int, str]], language: str, left_out: LeftOut
) -> Iterator[tuple[str, Sequence[Span]]]:
    """The lines with prose, and its parts; other lines are counted by reason."""
    for number, text in lines:
        prose, dropped = screen_text(text, language)
        for reason in sorted({each.reason for each in dropped}):
            left_out.add(f"{reason} (part of the line)" if prose else reason, number)
        if prose:
            yield text, prose


def _format(sentence: str, fact: Proposition, *, first: bool, as_json: bool) -> str:
    """Sentence, confidence, predicate, arg1, arg2 … parted by tabs, or a part of the object."""
    if as_json:
        row = json.dumps({"sentence": sentence} | asdict(fact), ensure_ascii=False)
        return ('{"extractions": [' if first else ", ") + row
    fields = [sentence, f"{fact.confidence:.4f}", fact.predicate]
    fields += [argument.text for argument in fact.arguments]
    return "\t".join(_BREAKS.sub(" ", each) for each in fields) + "\n"
