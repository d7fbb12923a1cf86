"""Servers that tests start: free ports, PostgreSQL, and whatever else listens."""

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NoReturn

import pytest

MOST_START_SECONDS = 60
MOST_STOP_SECONDS = 20


def find_ports(count: int) -> list[int]:
    """Free ports: all are open at once, so they differ."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


@contextlib.contextmanager
def serve_handler(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address of a server of this process that answers by a handler, until the end."""
    quiet = type("Quiet", (handler,), {"log_message": lambda *_: None})
    with ThreadingHTTPServer(("127.0.0.1", 0), quiet) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_address[1]}"
        finally:
            http.shutdown()
            thread.join()


def miss(what: str) -> NoReturn:
    """Skips for want of something; in CI that is a failure."""
    missing = f"{what} is not installed; as root `make install-ci` installs it"
    if os.environ.get("CI"):
        pytest.fail(missing)
    pytest.skip(missing)


def check_installed(*names: str) -> None:
    """Skips where a library is not installed; in CI that is a failure."""
    for name in names:
        if importlib.util.find_spec(name) is None:
            miss(name)


def find_server(name: str) -> str:
    """A program of the system's packages."""
    places = [*sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin"))), os.environ["PATH"]]
    found = shutil.which(name, path=os.pathsep.join(places))
    return found or miss(name)


@contextlib.contextmanager
def run_server(
    command: list[str], port: int, log: Path, **options: Any
) -> Iterator["subprocess.Popen[bytes]"]:
    """A server that listens, until the end.

    It is asked to stop by SIGINT first: a killed PostgreSQL leaves its shared memory behind.
    """
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, **options)
    try:
        end = time.monotonic() + MOST_START_SECONDS
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            text = log.read_text("utf-8", "replace")
            assert process.poll() is None and time.monotonic() < end, text[-3000:]
            time.sleep(0.1)
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(MOST_STOP_SECONDS)
        process.kill()
        process.wait()


@contextlib.contextmanager
def serve_postgres(port: int) -> Iterator[str]:
    """An empty database; PostgreSQL refuses to run as root, who gives it a user of its own."""
    initdb, postgres = find_server("initdb"), find_server("postgres")
    user: dict[str, Any] = {}
    if os.getuid() == 0:
        user = {"user": "postgres", "group": "postgres", "extra_groups": []}
    folder = Path(tempfile.mkdtemp(prefix="kpyramid-postgres-", dir="/tmp"))
    try:
        if user:
            shutil.chown(folder, "postgres", "postgres")
        data = str(folder / "data")
        make = [initdb, "-D", data, "-U", "airflow", "-A", "trust", "--no-sync", "-E", "UTF8"]
        subprocess.run(make, check=True, capture_output=True, cwd=folder, **user)
        options = {"port": port, "listen_addresses": "127.0.0.1", "fsync": "off"}
        options |= {"unix_socket_directories": "", "max_connections": 200}
        command = [postgres, "-D", data]
        command += [word for key, value in options.items() for word in ("-c", f"{key}={value}")]
        with run_server(command, port, folder / "log", cwd=folder, **user):
            yield f"airflow@127.0.0.1:{port}/postgres"
    finally:
        shutil.rmtree(folder)
