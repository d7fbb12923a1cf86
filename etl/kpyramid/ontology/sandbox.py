"""Child processes within limits: a command run to its end, and one that answers line by line."""

import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress

# Commands run to their end.

_INHERITED = (
    *("PATH", "HOME", "LANG", "LC_ALL", "JAVA_HOME", "LD_LIBRARY_PATH"),
    *("PYTHONHOME", "VIRTUAL_ENV"),
)
"""Environment variables that Java and Python need to start."""
_MARGIN = 10
"""Seconds after which the system ends a child whose parent is gone."""
_running: set[subprocess.Popen[bytes]] = set()


def list_environment() -> dict[str, str]:
    """The environment of a child process, without keys and settings.

    A Python child gets `sys.path` with its code.
    """
    return {name: os.environ[name] for name in _INHERITED if name in os.environ}


def run_limited(command: Sequence[str], *, seconds: float, given: bytes = b"") -> tuple[int, bytes]:
    """Runs a command; exit code, and standard output followed by standard error.

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
        _kill_group(process)
        end_process(process)
    return process.returncode, output


def ask_function(name: str, given: object, *, seconds: float) -> tuple[object, str]:
    """Calls a function of ours, `module:function`, in a child process; its answer.

    It reads `given` as JSON on standard input and writes JSON as its last line. If it ends without,
    the answer is None, and the second value tells how it ended.

    Raises:
        TimeoutError: as `run_limited`.
    """
    command = list_python(name)
    code, output = run_limited(command, seconds=seconds, given=json.dumps(given).encode())
    lines = output.decode("utf-8", "replace").splitlines()
    try:
        return json.loads(lines[-1]), ""
    except (IndexError, ValueError):
        return None, f"with code {code}: {' '.join(' '.join(lines).split())[-300:]}"


def list_python(name: str, *arguments: object) -> list[str]:
    """The command that calls a function of ours, `module:function`, in a new Python."""
    module, _, function = name.partition(":")
    call = f"{function}({', '.join(map(repr, arguments))})"
    code = f"import sys; sys.path[:] = {sys.path!r}; from {module} import {function}; {call}"
    return [sys.executable, "-c", code]


def end_running() -> None:
    """Ends the commands that other threads run by `run_limited`, which see a failed command."""
    for process in _running.copy():
        if process.poll() is None:
            _kill_group(process)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # no group left, or not ours any more
        process.kill()


# Children that answer one message at a time.


class Child:
    """A function of ours, `module:function`, in a child process that answers message by message.

    The first message starts it; so does the next one after an answer that did not come.
    """

    def __init__(self, name: str, *arguments: object) -> None:
        self.is_over = False
        self._command = list_python(name, *arguments)
        self._process: subprocess.Popen[bytes] | None = None
        self._stop: weakref.finalize[[subprocess.Popen[bytes]], Child] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the process for the next message is running."""
        return self._process is not None and self._process.poll() is None

    def ask(self, message: bytes, seconds: float) -> bytes:
        """The line that answers a message.

        Raises:
            TimeoutError: it did not come in time; the child was ended.
            EOFError: the child ended instead; says how.
        """
        if not self.is_running:
            self._start()
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        deadline = time.monotonic() + seconds
        try:
            process.stdin.write(message)
            process.stdin.flush()
            return _read_line(process.stdout.fileno(), deadline)
        except (EOFError, BrokenPipeError) as e:
            end = name_end(process.wait())
            self.close()
            raise EOFError(end) from e
        except BaseException:
            # Late, or interrupted between question and answer: the next answer would be this one.
            self.close()
            raise

    def close(self) -> None:
        """Ends the child, if there is one."""
        if self._stop is not None:
            self._stop()
        self._process = self._stop = None

    def stop(self) -> None:
        """Ends the child for good, also while another thread waits for its answer."""
        self.is_over = True
        if self._process is not None:
            self._process.kill()

    def _start(self) -> None:
        self.close()
        # Not multiprocessing: its spawn runs the caller's main module again, and it refuses to
        # start below a daemon process, which is where Airflow may put us.
        self._process = subprocess.Popen(  # noqa: S603  our own interpreter and our own code
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=list_environment(),
        )
        self._stop = weakref.finalize(self, end_process, self._process)
        if self.is_over:
            self._process.kill()


def _read_line(descriptor: int, deadline: float) -> bytes:
    """One line; EOFError when the writer is gone, TimeoutError past the deadline."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    read = bytearray()
    while not read.endswith(b"\n"):
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise TimeoutError
        part = os.read(descriptor, 1 << 20)
        if not part:
            raise EOFError
        read += part
    return bytes(read)


def name_end(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def end_process(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):  # what was still buffered has no reader any more
                pipe.close()
