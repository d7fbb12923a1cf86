"""The loopback server: its log and faults, its files and batches, its side of HTTP."""

import email.policy
import hashlib
import json
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.loopback_replies import (
    BATCH,
    HTML,
    AnswerFunction,
    Completer,
    Faults,
    RefuseError,
    Rule,
    embed,
    make_error,
    read_record,
    spoil,
)

Object = dict[str, Any]
Run = Callable[[Object], tuple[int, Object]]
"""Does one request of a batch: its body to status and reply."""

_WINDOW = 24 * 3600
_OPEN = ("validating", "in_progress", "finalizing")
_BIRTH = 1_700_000_000


class Batches:
    """Files and batches; a batch is validated when first looked at, done at the next look.

    `limit`: requests of a batch; `enqueued`: requests of all open batches; `share`: of an expired
    or cancelled batch that was done; `contents` may be overwritten at any time.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._guard = threading.RLock()
        self.limit, self.share = 50_000, 0.5
        self.enqueued = 1 << 30
        self.files: dict[str, Object] = {}
        self.contents: dict[str, bytes] = {}
        self.batches: dict[str, Object] = {}
        self._faults: dict[str, str] = {}

    # Files

    def add_file(self, name: str, purpose: str, content: bytes) -> Object:
        """Keeps an upload."""
        if purpose not in ("batch", "batch_output"):
            raise RefuseError(400, f"'{purpose}' is not one of the purposes.", param="purpose")
        with self._guard:
            number = len(self.contents) + 1
            file_id, said = f"file-{number:06d}", {"filename": name, "purpose": purpose}
            record = {"id": file_id, "bytes": len(content), "created_at": _BIRTH + number, **said}
            self.files[file_id] = read_record("file", record)
            self.contents[file_id] = content
            return self.files[file_id]

    def read_file(self, file_id: str) -> Object:
        """The record of a file."""
        with self._guard:
            if file_id not in self.files:
                raise RefuseError(404, f"No such File object: {file_id}", param="id")
            return self.files[file_id]

    # Batches

    def create(self, body: Object, rule: Rule | None) -> Object:
        """A new batch, in validation."""
        metadata = body.get("metadata") or {}
        if len(metadata) > 16 or any(
            not isinstance(v, str) or len(v) > 512 or len(k) > 64 for k, v in metadata.items()
        ):
            raise RefuseError(400, "Invalid 'metadata': 16 short texts at most", param="metadata")
        if body.get("completion_window") != "24h":
            raise RefuseError(400, "Invalid value for 'completion_window'.")
        if body.get("endpoint") not in ("/v1/chat/completions", "/v1/embeddings"):
            raise RefuseError(400, "Invalid value for 'endpoint'.", param="endpoint")
        with self._guard:
            source = self.read_file(str(body.get("input_file_id")))
            if source["purpose"] != "batch":
                raise RefuseError(400, "The input file's purpose is not 'batch'.")
            number = len(self.batches) + 1
            batch_id = f"batch_{number:06d}"
            at = _BIRTH + number
            given = {"endpoint": body["endpoint"], "metadata": body.get("metadata")}
            times = {"created_at": at, "expires_at": at + _WINDOW}
            said = {"id": batch_id, "input_file_id": source["id"], **given, **times}
            self.batches[batch_id] = batch = read_record("batch", said)
            if rule is not None:
                self._faults[batch_id] = rule.fault
            return dict(batch)

    def look(self, batch_id: str) -> Object:
        """A batch's present state; each look moves it on."""
        with self._guard:
            batch = self._find(batch_id)
            if batch["status"] == "validating":
                self._validate(batch)
            elif batch["status"] == "cancelling":
                self._end(batch, "cancelled")
            elif batch["status"] == "in_progress" and self._faults.get(batch_id) != "stuck":
                self._finish(batch)
            return dict(batch)

    def cancel(self, batch_id: str) -> Object:
        """Begins to cancel a batch."""
        with self._guard:
            batch = self._find(batch_id)
            if batch["status"] not in _OPEN:
                raise RefuseError(409, f"Cannot cancel a batch with status '{batch['status']}'.")
            if batch["status"] == "validating":
                self._validate(batch)
            if batch["status"] == "in_progress":
                batch.update(status="cancelling", cancelling_at=batch["created_at"] + 60)
            return dict(batch)

    def finish_all(self) -> None:
        """Every open batch is done, also those that were stuck."""
        with self._guard:
            for batch in self.batches.values():
                if self._faults.get(batch["id"]) == "stuck":
                    del self._faults[batch["id"]]
                if batch["status"] == "validating":
                    self._validate(batch)
                if batch["status"] == "in_progress":
                    self._finish(batch)

    def list_page(self, limit: int, after: str | None) -> Object:
        """A page of batches, the newest first."""
        with self._guard:
            held = self.batches.items()
            rows = [dict(v) for k, v in held if self._faults.get(k) != "vanished"][::-1]
        ids = [row["id"] for row in rows]
        if after is not None:
            if after not in ids:
                raise RefuseError(400, f"Invalid cursor: {after}", param="after")
            rows = rows[ids.index(after) + 1 :]
        page = rows[:limit]
        return {
            "object": "list",
            "data": page,
            "first_id": page[0]["id"] if page else None,
            "last_id": page[-1]["id"] if page else None,
            "has_more": len(rows) > limit,
        }

    def _find(self, batch_id: str) -> Object:
        if batch_id not in self.batches or self._faults.get(batch_id) == "vanished":
            raise RefuseError(404, f"No batch found with id '{batch_id}'.")
        return self.batches[batch_id]

    def _validate(self, batch: Object) -> None:
        errors = find_errors(self.contents[batch["input_file_id"]], batch["endpoint"], self.limit)
        waiting = sum(
            other["request_counts"]["total"]
            for other in self.batches.values()
            if other["status"] in _OPEN
        )
        total = len(self.contents[batch["input_file_id"]].splitlines())
        if self._faults.get(batch["id"]) == "token_limit" or waiting + total > self.enqueued:
            message = "Enqueued token limit reached. Please try again once some batches are done."
            errors = [{"code": "token_limit_exceeded", "message": message}]
        if errors:
            data = [{"line": None, "param": None, **error} for error in errors]
            batch.update(
                status="failed",
                errors={"object": "list", "data": data},
                failed_at=batch["created_at"] + 30,
            )
            return
        batch.update(status="in_progress", in_progress_at=batch["created_at"] + 30)
        batch["request_counts"] = {"total": total, "completed": 0, "failed": 0}

    def _finish(self, batch: Object) -> None:
        fault = self._faults.get(batch["id"])
        self._end(batch, fault if fault in ("expired", "cancelled") else "completed")

    def _end(self, batch: Object, status: str) -> None:
        """Does the work, all or the share that was done in time, and writes the result files."""
        lines = [json.loads(line) for line in self.contents[batch["input_file_id"]].splitlines()]
        in_time = len(lines) if status == "completed" else int(len(lines) * self.share)
        good: list[Object] = []
        bad: list[Object] = []
        for at, line in enumerate(lines):
            row: Object = {"id": f"{batch['id']}_req_{at:06d}", "custom_id": line["custom_id"]}
            if at >= in_time:
                message = "This request could not be executed before the batch ended."
                error = {"code": f"batch_{status}", "message": message}
                bad.append({**row, "response": None, "error": error})
                continue
            code, reply = self._run(line["body"])
            response = {"status_code": code, "request_id": f"req_{at}", "body": reply}
            (good if code == 200 else bad).append({**row, "response": response, "error": None})
        failed = len(bad)
        fault = self._faults.get(batch["id"])
        good = _disorder(_spoil_rows(good, fault))
        batch["output_file_id"] = self._keep_rows(batch, "output", good)
        batch["error_file_id"] = self._keep_rows(batch, "error", bad)
        if fault == "no_output_file":
            batch["output_file_id"] = None
        if fault == "empty_error_file_id":
            batch["error_file_id"] = ""
        batch["request_counts"] = {
            "total": len(lines),
            "completed": len(lines) - failed,
            "failed": failed,
        }
        batch.update(status=status, finalizing_at=batch["created_at"] + 90)
        batch[f"{status}_at"] = batch["created_at"] + 120

    def _keep_rows(self, batch: Object, kind: str, rows: list[Object]) -> str | None:
        if not rows:
            return None
        content = "".join(json.dumps(row) + "\n" for row in rows).encode()
        return str(self.add_file(f"{batch['id']}_{kind}.jsonl", "batch_output", content)["id"])


def find_errors(content: bytes, endpoint: str, limit: int) -> list[Object]:
    """What is wrong with a batch's input file, as the API says it."""
    lines = content.splitlines()
    if not lines:
        return [{"code": "empty_file", "message": "The input file is empty."}]
    if len(lines) > limit:
        return [{"code": "too_many_tasks", "message": f"The batch has more than {limit} requests."}]
    rows = [json.loads(line) for line in lines]
    ids, models = [row["custom_id"] for row in rows], {row["body"]["model"] for row in rows}
    if any((row["url"], row["method"]) != (endpoint, "POST") for row in rows):
        return [{"code": "invalid_url", "message": "Not the endpoint."}]
    if len({*ids}) < len(ids):
        return [{"code": "duplicate_custom_id", "message": "A custom_id is used twice."}]
    return [{"code": "mismatched_model", "message": "One model."}] if len(models) > 1 else []


def _spoil_rows(rows: list[Object], fault: str | None) -> list[Object]:
    if fault == "duplicate_id" and rows:
        return [*rows, rows[0]]
    if fault == "missing_id":
        return rows[1:]
    if fault == "foreign_id" and rows:
        return [*rows, {**rows[0], "id": f"{rows[0]['id']}x", "custom_id": "nobody-asked-this"}]
    return rows


def _disorder(rows: list[Object]) -> list[Object]:
    """The rows in an order of their own, as the API gives them."""
    return sorted(rows, key=lambda row: hashlib.sha256(row["id"].encode()).digest())


Entry = dict[str, Any]
CHAT, ITEM = "/chat/completions", "item"


class Loopback:
    """The server's state; `log` has one entry per request, written before its reply is sent.

    An entry: number, method, path (below /v1; "item" for a request inside a batch), sha256 (of
    the body as canonical JSON, so that equal requests are equal in chat and in batches), model,
    schema (its name), max_tokens, authorized, outcome ("answered" or the fault), status, done
    (whether the work was done, so billed), prompt_tokens, completion_tokens, started, finished
    (seconds of one clock), and, in this process only, body.
    """

    def __init__(
        self,
        answer: AnswerFunction,
        key: str | None,
        models: Sequence[str] | None,
        refuses: Sequence[str],
        reasoning: int,
        log: Path | None,
    ) -> None:
        self.key, self.models, self.refuses = key, models, refuses
        self.faults = Faults()
        self.latency = 0.0
        self.log: list[Entry] = []
        self.errors: list[Exception] = []
        """What the answer function, or the server itself, raised by mistake."""
        self.base_url = ""
        self.completer = Completer(answer, reasoning)
        self.stopping = threading.Event()
        self._log_file = log
        self._guard = threading.Lock()
        self._number = 0
        self.batches = Batches(self._run_item)

    def calls(self, path: str = CHAT, *, method: str = "POST", schema: str | None = None) -> int:
        """How many requests came to a path, of a schema's name."""
        return sum(
            e["path"] == path and e["method"] == method and schema in (None, e["schema"])
            for e in self.log
        )

    def wait_idle(self, seconds: float = 5.0) -> None:
        """Waits until nothing is under way, also of what a dead client sent last."""
        end, quiet = time.monotonic() + seconds, 0
        while quiet < 3:
            with self._guard:
                quiet = quiet + 1 if self._number == len(self.log) else 0
            assert time.monotonic() < end, "requests are under way for ever"
            time.sleep(0.02)

    def start_entry(self, method: str, path: str, body: Any, authorized: bool) -> Entry:
        """An entry for a request that has just come; not yet in the log."""
        facts = body if isinstance(body, dict) else {}
        asked = facts.get("response_format") or {}
        with self._guard:
            self._number += 1
            number = self._number
        return {
            "number": number,
            "method": method,
            "path": path,
            "sha256": hash_body(body),
            "model": facts.get("model"),
            "schema": (asked.get("json_schema") or {}).get("name"),
            "max_tokens": facts.get("max_completion_tokens") or facts.get("max_tokens"),
            "authorized": authorized,
            "started": time.monotonic(),
            "done": False,
            "body": body,
        }

    def close_entry(self, entry: Entry, outcome: str, status: int, reply: Any = None) -> None:
        """Notes how a request ended, in memory and on disk."""
        usage = (reply.get("usage") if isinstance(reply, dict) else None) or {}
        entry.update(
            outcome=outcome,
            status=status,
            prompt_tokens=usage.get("prompt_tokens"),
            completion_tokens=usage.get("completion_tokens"),
            finished=time.monotonic(),
        )
        with self._guard:
            self.log.append(entry)
            if self._log_file is not None:
                line = json.dumps({k: v for k, v in entry.items() if k != "body"})
                with self._log_file.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")

    def work(self, path: str, body: Any, number: int) -> dict[str, Any]:
        """The honest reply to a request of a model."""
        if not isinstance(body, dict):
            raise RefuseError(400, "We could not parse the JSON body of your request.")
        for name in self.refuses:
            if name in body:
                message = f"Unsupported parameter: '{name}' is not supported with this model."
                raise RefuseError(400, message, "unsupported_parameter", name)
        if self.models is not None and body.get("model") not in self.models:
            message = f"The model `{body.get('model')}` does not exist or you have no access to it."
            raise RefuseError(404, message, "model_not_found")
        if not body.get("model"):
            raise RefuseError(400, "you must provide a model parameter")
        if path == "/embeddings":
            return embed(body)
        try:
            return self.completer.complete(body, number)
        except RefuseError:
            raise
        except Exception as e:
            self.errors.append(e)
            raise RefuseError(500, f"the answer function failed: {e!r}") from e

    def _run_item(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """One request of a batch; faults with path "item" strike it."""
        entry = self.start_entry("POST", ITEM, body, True)
        rule = self.faults.find("POST", ITEM, body, entry["sha256"])
        error = make_error(rule) if rule else None
        outcome = rule.fault if rule else "answered"
        if error is not None:
            self.close_entry(entry, outcome, error[0])
            return error[0], error[2]
        try:
            path = "/embeddings" if "input" in body else CHAT
            reply = self.work(path, body, entry["number"])
        except RefuseError as e:
            self.close_entry(entry, "refused", e.status)
            return e.status, e.payload
        entry["done"] = True
        self.close_entry(entry, outcome, 200, reply)
        return 200, spoil(reply, rule.fault) if rule else reply


def hash_body(body: Any) -> str:
    """The sha256 of a body: of its canonical JSON, or of its bytes when it is none."""
    data = body if isinstance(body, bytes) else json.dumps(body, sort_keys=True).encode()
    return hashlib.sha256(data).hexdigest()


class Server(ThreadingHTTPServer):
    """One thread per connection; knows the connections that clients keep open."""

    daemon_threads = False  # so that closing the server waits for what is in flight
    request_queue_size = 128

    def __init__(self, state: Loopback) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
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

    def _handle(self) -> None:
        state = self.server.state
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        address = urlsplit(self.path)
        if address.path == "/_control":
            state.latency = json.loads(raw)["latency"]
            self._reply(200, {})
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
        text = json.dumps(reply or {"id": "chatcmpl-1", "choices": []}).encode()
        answers: dict[str, tuple[int, dict[str, str], Any]] = {
            "html": (rule.status, {"Content-Type": "text/html; charset=utf-8"}, HTML),
            "error_200": (200, {}, {"error": {"message": "upstream failed", "code": 502}}),
            "not_json": (200, {}, b'{"id": "chatcmpl-1", "choices": [{"ind'),
            "short": (200, {"Content-Length": str(len(text))}, text[: len(text) // 2]),
        }
        if found := make_error(rule) or answers.get(rule.fault):
            status, headers, body = found
            state.close_entry(entry, rule.fault, status, reply)
            self._reply(status, body, headers)
            self.close_connection = self.close_connection or rule.fault == "short"
        elif rule.fault in ("drop", "timeout"):
            state.close_entry(entry, rule.fault, 0, reply)
            if rule.fault == "timeout":
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
        match self.command, *path.strip("/").split("/"):
            case ["POST", "chat", "completions"] | ["POST", "embeddings"]:
                return state.work(path, body, entry["number"])
            case ["GET", "models"]:
                names = state.models or ["loopback"]
                rows = [{"id": n, "object": "model", "owned_by": "loopback"} for n in names]
                return {"object": "list", "data": rows}
            case ["POST", "files"]:
                return batches.add_file(*read_upload(self.headers["Content-Type"], body))
            case ["GET", "batches"]:
                return batches.list_page(limit, after)
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
