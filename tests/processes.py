"""Processes that tests start and wait for."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def run_python(code: str, *arguments: object, **options: Any) -> str:
    """What Python code prints in a process of its own; `options` are those of `subprocess.run`.

    The process finds the modules that this one finds; an `env` is added to its environment.
    """
    path = os.pathsep.join(filter(None, sys.path))
    options["env"] = {**os.environ, "PYTHONPATH": path, **options.get("env", {})}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def wait_until(happened: Callable[[], object], seconds: float = 60) -> None:
    """Looks until something is true; after so many seconds it does not come."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


def is_running(process: int) -> bool:
    """Whether a process is there and not only its exit code."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
