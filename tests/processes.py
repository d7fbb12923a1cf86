"""Python in a process of its own."""

import os
import subprocess
import sys
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
