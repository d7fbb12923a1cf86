"""A command run to its end within limits; it leaves nothing running behind."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence

_KEPT = (
    *("PATH", "HOME", "LANG", "LC_ALL", "JAVA_HOME", "LD_LIBRARY_PATH"),
    *("PYTHONHOME", "VIRTUAL_ENV"),
)
"""What Java and Python need to start."""
_MARGIN = 10
"""Seconds after which the system ends a child whose parent is gone."""
_running: set[subprocess.Popen[bytes]] = set()


def list_environment() -> dict[str, str]:
    """What a child process may know of the environment: no keys, no settings.

    A Python child is given `sys.path` with its code.
    """
    return {name: os.environ[name] for name in _KEPT if name in os.environ}


def run_limited(command: Sequence[str], *, seconds: float, given: bytes = b"") -> tuple[int, bytes]:
    """Exit code and standard output, with what was said on standard error after it.

    Raises:
        TimeoutError: it was stopped after `seconds`, with every process it had started.
    """
    process = subprocess.Popen(  # noqa: S603  our own interpreter or Java, and our own arguments
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env=list_environment(),
    )
    _running.add(process)
    try:
        if sys.platform == "linux":
            processors = os.cpu_count() or 1
            most = int(seconds * processors) + _MARGIN
            try:
                resource.prlimit(process.pid, resource.RLIMIT_CPU, (most, most))
            except ProcessLookupError:  # it has ended already
                most = 0
        output, _ = process.communicate(given, timeout=max(seconds, 0.0))
    except subprocess.TimeoutExpired as e:
        raise TimeoutError from e
    finally:
        _running.discard(process)
        _end_group(process)
    return process.returncode, output


def run_function(name: str, *, seconds: float, given: bytes) -> tuple[int, bytes]:
    """The same for a function of ours, as `module:function`, in a Python process of its own."""
    module, _, function = name.partition(":")
    code = f"import sys; sys.path[:] = {sys.path!r}; from {module} import {function}; {function}()"
    return run_limited([sys.executable, "-c", code], seconds=seconds, given=given)


def end_running() -> None:
    """Ends what other threads run by `run_limited`; there it is as if the command had failed."""
    for process in _running.copy():
        if process.poll() is None:
            _kill_group(process)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    _kill_group(process)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # no group left, or not ours any more
        process.kill()
