"""The loopback server's files and batches, in memory and, if wished, mirrored to a folder."""

import hashlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.loopback_faults import Rule
from tests.loopback_replies import RefuseError

Object = dict[str, Any]
Run = Callable[[Object], tuple[int, Object]]
"""Does one request of a batch: its body to status and reply."""

_WINDOW = 24 * 3600
_OPEN = ("validating", "in_progress", "finalizing")
_BIRTH = 1_700_000_000


class Batches:
    """Files and batches; a batch is validated when first looked at, done after `polls` looks.

    `limit`: requests of a batch; `enqueued`: requests of all open batches; `share`: of an expired
    or cancelled batch that was done; `edit` changes the rows of output and error files (kind and
    rows to rows); `contents` may be overwritten at any time.
    """

    def __init__(self, run: Run, folder: Path | None, polls: int, limit: int) -> None:
        self._run = run
        self._folder = folder
        self._guard = threading.RLock()
        self.polls, self.limit, self.share = polls, limit, 0.5
        self.enqueued = 1 << 30
        self.edit: Callable[[str, list[Object]], list[Object]] = lambda _, rows: rows
        self.files: dict[str, Object] = {}
        self.contents: dict[str, bytes] = {}
        self.batches: dict[str, Object] = {}
        self._looks: dict[str, int] = {}
        self._faults: dict[str, str] = {}
        self._read_folder()

    # Files

    def add_file(self, name: str, purpose: str, content: bytes) -> Object:
        """Keeps an upload."""
        if purpose not in ("batch", "batch_output"):
            raise RefuseError(400, f"'{purpose}' is not one of the purposes.", param="purpose")
        with self._guard:
            number = len(self.contents) + 1
            record = {
                "id": f"file-{number:06d}",
                "object": "file",
                "bytes": len(content),
                "created_at": _BIRTH + number,
                "filename": name,
                "purpose": purpose,
                "status": "processed",
            }
            self.files[str(record["id"])] = record
            self.contents[str(record["id"])] = content
            self._write_folder()
            return record

    def read_file(self, file_id: str) -> Object:
        """The record of a file."""
        with self._guard:
            if file_id not in self.files:
                raise RefuseError(404, f"No such File object: {file_id}", param="id")
            return self.files[file_id]

    def drop_file(self, file_id: str) -> Object:
        """Deletes a file."""
        with self._guard:
            self.read_file(file_id)
            del self.files[file_id]
            self.contents[file_id] = b""  # its number is not given again
            self._write_folder()
            return {"id": file_id, "object": "file", "deleted": True}

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
            batch: Object = {
                "id": batch_id,
                "object": "batch",
                "endpoint": body["endpoint"],
                "errors": None,
                "input_file_id": source["id"],
                "completion_window": "24h",
                "status": "validating",
                "output_file_id": None,
                "error_file_id": None,
                "created_at": at,
                "expires_at": at + _WINDOW,
                "request_counts": {"total": 0, "completed": 0, "failed": 0},
                "metadata": body.get("metadata"),
            }
            for status in (*_OPEN[1:], "completed", "failed", "expired", "cancelling", "cancelled"):
                batch[f"{status}_at"] = None
            self.batches[batch_id] = batch
            if rule is not None:
                self._faults[batch_id] = rule.fault
            self._write_folder()
            return dict(batch)

    def look(self, batch_id: str) -> Object:
        """A batch's present state; each look moves it on."""
        with self._guard:
            batch = self._find(batch_id)
            if batch["status"] == "validating":
                self._validate(batch)
            elif batch["status"] == "cancelling":
                self._end(batch, "cancelled")
            elif batch["status"] == "in_progress":
                self._looks[batch_id] = self._looks.get(batch_id, 0) + 1
                stuck = self._faults.get(batch_id) == "stuck"
                if self._looks[batch_id] >= self.polls and not stuck:
                    self._finish(batch)
            self._write_folder()
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
            self._write_folder()
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
            self._write_folder()

    def list_page(self, what: str, limit: int, after: str | None, order: str) -> Object:
        """A page of `files` or `batches`, the newest first."""
        with self._guard:
            held = {"files": self.files, "batches": self.batches}[what]
            rows = [dict(v) for k, v in held.items() if self._faults.get(k) != "vanished"]
        if order == "desc":
            rows.reverse()
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
        good = self.edit("output", _disorder(_spoil_rows(good, fault)))
        bad = self.edit("error", bad)
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

    # The mirror

    def _write_folder(self) -> None:
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        for file_id, content in self.contents.items():
            path = self._folder / file_id
            if not path.exists() or path.stat().st_size != len(content):
                path.write_bytes(content)
        state = [self.files, self.batches, self._looks, self._faults]
        temporary = self._folder / "state.new"
        temporary.write_text(json.dumps(state), "utf-8")
        temporary.replace(self._folder / "state.json")

    def _read_folder(self) -> None:
        if self._folder is None or not (self._folder / "state.json").exists():
            return
        state = json.loads((self._folder / "state.json").read_text("utf-8"))
        self.files, self.batches, self._looks, self._faults = state
        self.contents = {p.name: p.read_bytes() for p in sorted(self._folder.glob("file-*"))}


def find_errors(content: bytes, endpoint: str, limit: int) -> list[Object]:
    """What is wrong with a batch's input file, as the API says it."""
    lines = content.splitlines()
    if not lines:
        return [{"code": "empty_file", "message": "The input file is empty."}]
    if len(lines) > limit:
        return [{"code": "too_many_tasks", "message": f"The batch has more than {limit} requests."}]
    errors: list[Object] = []
    seen: set[str] = set()
    models: set[str] = set()
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            custom_id, body = row["custom_id"], row["body"]
            models.add(body["model"])
            right = row["url"] == endpoint and row["method"] == "POST"
        except (ValueError, KeyError, TypeError):
            errors.append({"code": "invalid_json_line", "message": "Bad line.", "line": number})
            continue
        if not right:
            errors.append({"code": "invalid_url", "message": "Not the endpoint.", "line": number})
        if custom_id in seen:
            message = f"The custom_id '{custom_id}' is used twice."
            errors.append({"code": "duplicate_custom_id", "message": message, "line": number})
        seen.add(custom_id)
    if len(models) > 1:
        errors.append({"code": "mismatched_model", "message": "A batch has one model."})
    return errors


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
