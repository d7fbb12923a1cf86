"""What the tests of calls over HTTP share: a transport, its probe, and servers of odd bytes."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kpyramid.llm.endpoint import Dialect, HttpTransport, open_connection, open_transport
from kpyramid.llm.task import Message, Request
from kpyramid.settings import LLMSettings
from tests.servers import serve_handler

REQUEST = Request(
    "f_ent/2",
    1,
    (Message("system", "Name the river."), Message("user", "Wien liegt an der Donau. 😀")),
    {
        "type": "object",
        "properties": {"river": {"type": "string"}},
        "required": ["river"],
        "additionalProperties": False,
    },
    200,
)


def make_settings(base_url: str | None, **changes: Any) -> LLMSettings:
    values = {"provider": "openai", "model": "m", "timeout": 5.0, **changes}
    return LLMSettings(base_url=base_url, **values)


@contextmanager
def connect(base_url: str, **changes: Any) -> Iterator[HttpTransport]:
    """A transport that was not probed."""
    settings = make_settings(base_url, **changes)
    transport = HttpTransport(settings, open_connection(settings), Dialect("max_tokens"))
    try:
        yield transport
    finally:
        transport.close()


def probe(base_url: str | None, **changes: Any) -> dict[str, Any]:
    """The record of the probe."""
    with TemporaryDirectory() as folder:
        record = Path(folder) / "probe.json"
        open_transport(make_settings(base_url, **changes), record).close()
        return dict(json.loads(record.read_bytes()))


@contextmanager
def serve_bytes(*replies: bytes, pause: float = 0.0) -> Iterator[str]:
    """The address of a server that answers each call with the next bytes, whatever was asked."""
    left = list(replies)
    done = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            reply = left.pop(0) if len(left) > 1 else left[0]
            step = 1 if pause else len(reply)
            try:
                for at in range(0, len(reply), step):
                    self.wfile.write(reply[at : at + step])
                    done.wait(pause)
            except OSError:
                pass  # the client has hung up
            self.close_connection = True

    with serve_handler(Handler) as address:
        try:
            yield f"{address}/v1"
        finally:
            done.set()


def make_answer(body: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


def find_unused_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
