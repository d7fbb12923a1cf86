"""`kpyramid openie` prints what sentences state, whatever stands in the lines it is given."""

import io
import json
import os
import sys
from pathlib import Path
from subprocess import PIPE
from subprocess import run as start
from typing import Any

import pytest
from typer.testing import Result

from kpyramid.cli import openie
from tests import commands
from tests.corpora import ROOT

ADA = "Ada Lovelace wrote notes in 1843."
ROME = "Rome is the capital of Italy."


def run(*arguments: object, text: bytes | str | None = None) -> Result:
    return commands.run("openie", *arguments, input=text)


def run_json(text: bytes | str) -> dict[str, Any]:
    done = run("-", "--json", text=text)
    assert (done.exit_code, done.stdout.count("\n")) == (0, 1), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def list_rows(done: Result) -> list[list[str]]:
    assert done.exit_code == 0, done.stderr
    return [line.split("\t") for line in done.stdout_bytes.decode().split("\n")[:-1]]


def test_a_line_is_sentence_confidence_predicate_and_arguments(tmp_path: Path) -> None:
    file = tmp_path / "sentences.txt"
    file.write_text(f"{ADA}\n{ROME}\n", "utf-8")

    rows = list_rows(run(file))

    assert [row[0] for row in rows] == sorted((row[0] for row in rows), key=[ADA, ROME].index)
    assert {row[0] for row in rows} == {ADA, ROME}
    for row in rows:
        assert len(row) >= 4
        assert 0 <= float(row[1]) <= 1
        assert len(row[1].partition(".")[2]) == 4
    assert any(row[2].startswith("wrote") and row[3] == "Ada Lovelace" for row in rows)
    assert list_rows(run("-", text=f"{ADA}\n{ROME}")) == rows


def test_bad_lines_are_left_out_and_named_and_others_read(caplog: pytest.LogCaptureFixture) -> None:
    lines = [b"\xef\xbb\xbf" + ADA.encode(), b"", b" \t ", b"caf\xe9 bad", b"\xff", ROME.encode()]
    lines.append(b"word " * 30_000)
    text = b"\r\n".join(lines) + b"\n" + ADA.encode()

    report = run_json(text)

    assert report["sentences"] == 3
    assert {fact["sentence"] for fact in report["extractions"]} == {ADA, ROME}
    assert report["left_out"] == {"not UTF-8": 2, "longer than 100,000 bytes": 1}
    assert "2 of its lines left out: not UTF-8, first line 4" in caplog.text
    assert "longer than 100,000 bytes, first line 7" in caplog.text


def test_lines_of_no_english_prose_are_left_out_and_named(caplog: pytest.LogCaptureFixture) -> None:
    lines = [
        ADA,
        "Der Verein wurde 1904 in Hamburg gegründet.",
        "Amsterdam is de hoofdstad van Nederland.",
        "Smith, J. (2001). The history of bridges. Engineering 12(3): 45–67.",
        f"{ROME} Der Verein wurde 1904 gegründet. Er gewann mehrere Preise im Laufe der Jahre.",
        ROME,
    ]

    report = run_json("\n".join(lines))

    assert report["sentences"] == 3
    assert {fact["sentence"] for fact in report["extractions"]} == {ADA, lines[4], ROME}
    part = [f for f in report["extractions"] if f["sentence"] == lines[4]]
    whole = [f for f in report["extractions"] if f["sentence"] == ROME]
    assert [f["predicate"] for f in part] == [f["predicate"] for f in whole]
    assert report["left_out"] == {
        "language_not_supported": 2,
        "citation": 1,
        "language_not_supported (part of the line)": 1,
    }
    assert "2 of its lines left out: language_not_supported, first line 2" in caplog.text
    assert caplog.text.count("left out: citation, first line 4") == 1


def test_no_field_holds_a_tab_or_a_line_end() -> None:
    for mark in "\t\v\f\x1c\x85\u2028\u2029":
        rows = list_rows(run("-", text=ADA.replace(" ", f"{mark} ", 1)))
        assert rows and all(len(row) >= 4 for row in rows)


def test_odd_text_neither_fails_nor_makes_odd_lines() -> None:
    lines = [
        "| a | b |", "- item", "SHOUTED HEADING", "x = f(y); return 3", "😀 😀", "שלום עולם", "\0",
        "[1] Smith, J. (1999).", ". . .", "Die Stadt liegt am Fluss.", "and " * 300, ADA,
    ]  # fmt: skip
    rows = list_rows(run("-", text="\n".join(lines)))
    assert all(len(row) >= 4 and all(field.strip() for field in row) for row in rows)
    assert any(row[0] == ADA for row in rows)


def test_a_missing_file_ends_with_3_and_a_parser_with_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (tmp_path / "none.txt", tmp_path):
        commands.fails(3, (f"Error: {place}: ", "one sentence a line"), "openie", place)
    monkeypatch.setenv("KPYRAMID_EXTRACT__PARSER", "klingon")
    commands.fails(2, "klingon", "openie", "-", input=ADA)
    assert run().exit_code == 2


def test_a_line_without_end_is_never_held_whole() -> None:
    class Endless(io.RawIOBase):
        largest = 0
        left = 3_000_000

        def readline(self, size: int | None = -1, /) -> bytes:
            assert size is not None and size > 0
            self.largest = max(self.largest, size)
            size = min(size, self.left)
            self.left -= size
            return b"x" * size

    stream = Endless()
    left_out = openie.LeftOut()
    assert [*openie.read_lines(stream, left_out)] == []  # type: ignore[arg-type]
    assert left_out.counts == {"longer than 100,000 bytes": 1}
    assert stream.largest <= openie.MAX_BYTES + 1


@pytest.mark.parametrize("arguments", ["--version", "doctor", "snapshots --json"])
def test_every_command_ends_quietly_when_nobody_reads(tmp_path: Path, arguments: str) -> None:
    (tmp_path / "warehouse" / "data").mkdir(parents=True)
    reads, writes = os.pipe()
    os.close(reads)
    command = [sys.executable, "-m", "kpyramid", *arguments.split()]
    path = os.environ | {"PYTHONPATH": str(ROOT / "etl")}
    done = start(command, stdout=writes, stderr=PIPE, cwd=tmp_path, env=path)
    os.close(writes)
    assert (done.returncode, done.stderr) == (141, b"")
