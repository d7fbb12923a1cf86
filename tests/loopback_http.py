"""The loopback server's side of HTTP: routes, faults of the connection, uploads."""

import email.policy
import json
import socket
import struct
import sys
import time
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.loopback_faults import BATCH, HTML, Rule, make_error, spoil
from tests.loopback_replies import RefuseError
from tests.loopback_state import CHAT, Entry, Loopback, control


class Server(ThreadingHTTPServer):
    """One thread per connection; knows the connections that clients keep open."""

    daemon_threads = False  # so that closing the server waits for what is in flight
    request_queue_size = 128

    def __init__(self, state: Loopback, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.state = state
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exc_info()[1]
        if isinstance(error, Exception) and not isinstance(error, (ConnectionError, TimeoutError)):
            self.state.errors.append(error)

    def hang_up(self) -> None:
        """Ends the connections that clients keep open."""
        for connection in list(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # closed meanwhile


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def do_DELETE(self) -> None:
        self._handle()

    def _handle(self) -> None:
        state = self.server.state
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        address = urlsplit(self.path)
        if address.path == "/_control":
            order = json.loads(raw or b"{}")
            self._reply(200, control(state, order))
            if order.get("stop"):
                state.stopping.set()
            return
        path = address.path.removeprefix("/v1")
        query = {name: values[-1] for name, values in parse_qs(address.query).items()}
        given = self.headers.get("Authorization")
        authorized = state.key is None or given == f"Bearer {state.key}"
        upload = (self.headers.get("Content-Type") or "").startswith("multipart/")
        try:
            body = raw if upload else json.loads(raw or b"null")
        except ValueError:
            body = raw
        entry = state.start_entry(self.command, path, body, authorized)
        facts = body if isinstance(body, dict) else {}
        rule = state.faults.find(self.command, path, facts, entry["sha256"])
        batch_rule = rule if rule is not None and rule.fault in BATCH else None
        if batch_rule is None and rule is not None and not rule.after and self._strike(rule, entry):
            return
        try:
            if not authorized:
                raise RefuseError(401, "Incorrect API key provided.", "invalid_api_key")
            reply = self._route(path, query, body, entry, batch_rule)
        except RefuseError as e:
            state.close_entry(entry, "refused", e.status)
            self._reply(e.status, e.payload)
            return
        entry["done"] = True
        if path in (CHAT, "/embeddings"):
            state.stopping.wait(max(0.0, entry["started"] + state.latency - time.monotonic()))
        if rule is None or batch_rule is not None:
            state.close_entry(entry, batch_rule.fault if batch_rule else "answered", 200, reply)
            self._reply(200, reply)
        elif not self._strike(rule, entry, reply):
            state.close_entry(entry, rule.fault, 200, reply)
            self._reply(200, spoil(reply, rule.fault))

    def _strike(self, rule: Rule, entry: Entry, reply: Any = None) -> bool:
        """Answers with a fault of HTTP; False when the fault is one of the body."""
        state = self.server.state
        error = make_error(rule)
        if error is not None:
            state.close_entry(entry, rule.fault, error[0], reply)
            self._reply(error[0], error[2], error[1])
        elif rule.fault == "html":
            state.close_entry(entry, rule.fault, rule.status, reply)
            self._reply(rule.status, HTML, {"Content-Type": "text/html; charset=utf-8"})
        elif rule.fault == "error_200":
            state.close_entry(entry, rule.fault, 200, reply)
            self._reply(200, {"error": {"message": "upstream failed", "code": 502}})
        elif rule.fault == "not_json":
            state.close_entry(entry, rule.fault, 200, reply)
            self._reply(200, b'{"id": "chatcmpl-1", "choices": [{"ind')
        elif rule.fault == "short":
            state.close_entry(entry, rule.fault, 200, reply)
            text = json.dumps(reply or {"id": "chatcmpl-1", "choices": []}).encode()
            self._reply(200, text[: len(text) // 2], {"Content-Length": str(len(text))})
            self.close_connection = True
        elif rule.fault == "drop":
            state.close_entry(entry, rule.fault, 0, reply)
            self._drop()
        elif rule.fault == "timeout":
            state.close_entry(entry, rule.fault, 0, reply)
            state.stopping.wait(rule.wait)
            self._drop()
        else:
            return False
        return True

    def _drop(self) -> None:
        """Resets the connection without a word."""
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close_connection = True
        self.connection.close()

    def _route(
        self, path: str, query: dict[str, str], body: Any, entry: Entry, rule: Rule | None
    ) -> Any:
        state = self.server.state
        batches = state.batches
        limit, after = int(query.get("limit", 20)), query.get("after")
        order = query.get("order", "desc")
        match self.command, *path.strip("/").split("/"):
            case ["POST", "chat", "completions"] | ["POST", "embeddings"]:
                return state.work(path, body, entry["number"])
            case ["GET", "models"]:
                names = state.models or ["loopback"]
                rows = [{"id": n, "object": "model", "owned_by": "loopback"} for n in names]
                return {"object": "list", "data": rows}
            case ["POST", "files"]:
                return batches.add_file(*read_upload(self.headers["Content-Type"], body))
            case ["GET", "files" | "batches"]:
                return batches.list_page(path.strip("/"), limit, after, order)
            case ["GET", "files", file_id]:
                return batches.read_file(file_id)
            case ["DELETE", "files", file_id]:
                return batches.drop_file(file_id)
            case ["GET", "files", file_id, "content"]:
                batches.read_file(file_id)
                return batches.contents[file_id]
            case ["POST", "batches"]:
                return batches.create(body, rule)
            case ["GET", "batches", batch_id]:
                return batches.look(batch_id)
            case ["POST", "batches", batch_id, "cancel"]:
                return batches.cancel(batch_id)
        raise RefuseError(404, f"Invalid URL ({self.command} {self.path})")

    def _reply(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode("ascii")
        kind = "application/json" if body is not data or data[:1] == b"{" else "text/plain"
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(data)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def read_upload(kind: str, body: bytes) -> tuple[str, str, bytes]:
    """Name, purpose and content of a file in a multipart form."""
    head = f"Content-Type: {kind}\r\n\r\n".encode()
    form = BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
    name, purpose, content = "", "", b""
    for part in form.walk():
        payload = part.get_payload(decode=True)
        if not isinstance(payload, bytes):
            continue  # the form itself
        if part.get_param("name", header="content-disposition") == "purpose":
            purpose = payload.decode()
        elif part.get_param("name", header="content-disposition") == "file":
            name, content = part.get_filename() or "", payload
    return name, purpose, content
