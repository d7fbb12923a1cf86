"""Commands in this process: what they print, and the object that they give with --json."""

import json
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from kpyramid.cli.app import app


def run(*arguments: object, **options: Any) -> Result:
    """What a command line does; `options`, such as `input`, are those of `CliRunner.invoke`."""
    return CliRunner().invoke(app, [*map(str, arguments)], **options)


def run_json(*arguments: object) -> dict[str, Any]:
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    assert done.stdout.count("\n") == 1
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found
