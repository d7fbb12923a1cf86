"""The edge of the command line: signals, faults nobody expected, characters terminals obey."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kpyramid.cli import app as cli
from kpyramid.cli.console import SafeConsole, clean
from kpyramid.cli.options import print_json, run_command, say
from tests.commands import run
from tests.corpora import ROOT
from tests.processes import is_running
from tests.rows import read_bodies

HOSTILE = "red \x1b[31m \x9b2J \x07 over\rwritten \u202eedoc \udc80"
CLEAN = r"red \x1b[31m \x9b2J \x07 over\rwritten \u202eedoc \udc80"


SLEEPING = """
import os, time
from pathlib import Path

def load_sleeping():
    return note_and_sleep

def note_and_sleep(texts):
    (Path(texts[0].split()[0]) / str(os.getpid())).touch()
    time.sleep(120)
    yield from (b"" for _ in texts)
"""
SHARING = """
import signal, sys, typer
from kpyramid.cli.options import run_command
from kpyramid.pipeline.workers import share_out
from sleeping import load_sleeping

def act():
    texts = [f"{sys.argv[1]} {'x' * 20_000}"] * 24  # a batch each
    list(share_out(texts, 2, load_sleeping, ()))

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        run_command(act, verbose=False, as_json=True)
    except typer.Exit as e:
        sys.exit(e.exit_code)
"""
"""A command that shares texts out to two processes, which work for longer than a test waits."""


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        *(pytest.param(one, marks=pytest.mark.slow) for one in (signal.SIGINT, signal.SIGKILL)),
    ],
)
def test_worker_processes_end_with_the_command_however_it_ends(tmp_path: Path, number: int) -> None:
    script = tmp_path / "sharing.py"
    script.write_text(SHARING)
    (tmp_path / "sleeping.py").write_text(SLEEPING)
    (tmp_path / "workers").mkdir()
    process = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "workers")],
        env=os.environ | {"PYTHONPATH": str(ROOT / "etl")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while len(workers := [int(path.name) for path in (tmp_path / "workers").iterdir()]) < 2:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)

    out, err = process.communicate(timeout=120)  # ends when nobody holds stdout any more

    assert not [worker for worker in workers if is_running(worker)]
    if number == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
        return
    code_of = {signal.SIGTERM: 143, signal.SIGINT: 130}[signal.Signals(number)]
    assert process.returncode == code_of
    assert "run the command again" in err
    assert "Traceback" not in err
    assert json.loads(out)["exit_code"] == code_of


def test_sigterm_raises_in_a_command_and_means_after_it_what_it_did_before() -> None:
    handler = signal.getsignal(signal.SIGTERM)

    def act() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)

    with pytest.raises(cli.typer.Exit) as ended:
        run_command(act, verbose=False)

    assert ended.value.exit_code == 143
    assert signal.getsignal(signal.SIGTERM) is handler


def test_an_unexpected_error_is_one_json_object_with_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_into(error: Exception) -> Any:
        def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr("kpyramid.storage.verification.list_snapshots", fail)
        return run("snapshots", "--warehouse", tmp_path, "--json")

    done = run_into(KeyError("nobody thought of this \x1b[31m"))
    assert done.exit_code == json.loads(done.stdout)["exit_code"] == 1
    assert "unexpected KeyError" in json.loads(done.stdout)["error"]
    assert done.stderr.count("Error: unexpected") == 1
    assert "Traceback" in done.stderr, "who mends it needs to know where"
    assert "\x1b[31m" not in done.output
    for missing, extra in (("scipy.sparse", "build"), ("openai", "llm")):
        done = run_into(ModuleNotFoundError(f"No module named {missing!r}", name=missing))
        assert done.exit_code == 2
        assert f"'kpyramid[{extra}]'" in json.loads(done.stdout)["error"]
        assert "Traceback" not in done.stderr
    gone = ModuleNotFoundError("No module named 'kpyramid.gone'", name="kpyramid.gone")
    assert run_into(gone).exit_code == 1, "a fault of the package"


def test_wrong_usage_is_one_json_object_and_exit_code_2() -> None:
    for arguments in read_bodies("edge.wrong_usage_is_one_json_object_and_exit_code_2"):
        done = run(*arguments, "--json")
        assert done.exit_code == 2, arguments
        assert done.stdout.count("\n") == 1
        found = json.loads(done.stdout)
        assert found["exit_code"] == 2 and found["error"]
        assert "Usage:" in done.stderr
        assert run(*arguments).stdout == "", "only when it is asked for"


def test_no_way_of_printing_lets_corpus_text_drive_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from rich.table import Table
    from rich.text import Text

    assert clean(HOSTILE) == CLEAN
    harmless = "two\nlines\tand Zürich, 東京, שלום, 🙂"
    assert clean(harmless) == harmless

    say(HOSTILE)
    say(HOSTILE, err=True)
    console = SafeConsole(file=io.StringIO(), force_terminal=True, width=200, highlight=False)
    table = Table("column")
    table.add_row(HOSTILE)
    for part in (HOSTILE, Text(HOSTILE, "bold"), table, f"[dim]{HOSTILE}[/]"):
        console.print(part)
    print_json({"text": HOSTILE})

    told = capsys.readouterr()
    drawn = console.file.getvalue()  # type: ignore[attr-defined]
    for text in (told.out, told.err, drawn):
        assert not {"\x07", "\x9b", "\u202e"} & set(text)
        assert "\x1b[31m" not in text
    assert "\x1b[1m" in drawn, "our own styles are obeyed"
    assert told.err == CLEAN + "\n"
    assert json.loads(told.out.splitlines()[1]) == {"text": HOSTILE}


def test_commands_print_through_the_functions_that_clean() -> None:
    """`say`, `print_json` and `SafeConsole` are the only ways to a person's terminal."""
    offenders = [
        f"{path.name}:{number}"
        for path in sorted((ROOT / "etl" / "kpyramid").rglob("*.py"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if ("typer.echo(" in line or re.search(r"\bConsole\((?!stderr)", line))
        and path.name not in ("options.py", "console.py", "local.py")
    ]
    assert offenders == []
