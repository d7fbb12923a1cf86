"""What the loopback server knows: its faults, its counting log, its files and batches."""

import hashlib
import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.loopback_batches import Batches
from tests.loopback_faults import Faults, make_error, spoil
from tests.loopback_replies import AnswerFunction, Completer, RefuseError, embed

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
        self._guard = threading.Lock()
        self._number = 0
        self._log_file = log
        self.batches = Batches(self._run_item, None, 1, 50_000)

    def calls(self, path: str = CHAT, *, method: str = "POST", schema: str | None = None) -> int:
        """How many requests came to a path, of a schema's name."""
        return count_calls(self.log, path, method, schema)

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


def count_calls(log: Sequence[Entry], path: str, method: str, schema: str | None) -> int:
    """How many entries have the path, the method and the schema's name."""
    return sum(
        e["path"] == path and e["method"] == method and schema in (None, e["schema"]) for e in log
    )


def control(state: Loopback, order: dict[str, Any]) -> dict[str, Any]:
    """Does what POST /_control asks; answers with the counts by path."""
    if order.get("clear"):
        state.faults.clear()
    for rule in [order["add"]] if "add" in order else []:
        state.faults.add(**rule)
    state.latency = order.get("latency", state.latency)
    state.batches.polls = order.get("polls", state.batches.polls)
    if order.get("finish"):
        state.batches.finish_all()
    paths = {entry["path"] for entry in state.log}
    errors = [repr(error) for error in state.errors]
    return {"calls": {path: state.calls(path) for path in sorted(paths)}, "errors": errors}
