"""Commands in this process: what they print, and how they end."""

import json
import re
from collections.abc import Sequence
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from kpyramid.cli.app import app


def run(*arguments: object, **options: Any) -> Result:
    """What a command line does; `options`, such as `input`, are those of `CliRunner.invoke`."""
    return CliRunner().invoke(app, [*map(str, arguments)], **options)


def show(*arguments: object) -> str:
    """What a command line prints that succeeds."""
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return str(done.stdout)


def run_json(*arguments: object, code: int = 0) -> dict[str, Any]:
    """The one object that a command line gives with --json, which ends with this code."""
    done = run(*arguments, "--json")
    assert done.exit_code == code, done.output
    assert done.stdout.count("\n") == 1
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def fails(code: int, said: str | Sequence[str], *arguments: object, **options: Any) -> str:
    """The error of a command line that ends with this code: one, which says this, and no more."""
    done = run(*arguments, **options)
    assert done.exit_code == code, done.output
    assert done.stdout == "" or (code == 4 and done.stdout.startswith("Not published: "))
    assert len(re.findall("^Error: |─ Error ─", done.stderr, re.MULTILINE)) == 1, done.stderr
    assert "Traceback" not in done.output
    for words in [said] if isinstance(said, str) else said:
        assert words in " ".join(done.stderr.split()), done.stderr
    return str(done.stderr)


def fails_json(code: int, *arguments: object) -> str:
    """The error in the object that a command line gives with --json, which ends with this code."""
    found = run_json(*arguments, code=code)
    assert found["exit_code"] == code
    return str(found["error"])
