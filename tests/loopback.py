"""A real HTTP server that speaks OpenAI's API, fails on demand and counts what it was asked.

with serve(answer_by_schema) as server:            # in this process
    server.base_url, server.log, server.calls(), server.faults.add("429", times=2)
with spawn(tmp_path) as remote:                    # in its own, for tests that kill the client
    remote.base_url, remote.read_log(), remote.calls(), remote.control(add={"fault": "500"})
python -m tests.loopback --port-file PORT --log LOG --latency 0.2   # by hand
"""

import argparse
import importlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from tests.loopback_replies import Answer, AnswerFunction, RefuseError, Rule, answer_by_schema
from tests.loopback_server import CHAT, Batches, Entry, Loopback, Server, count_calls

__all__ = ["Answer", "Loopback", "RefuseError", "Rule", "answer_by_schema", "serve", "spawn"]

_ROOT = Path(__file__).resolve().parent.parent


@contextmanager
def serve(
    answer: AnswerFunction = answer_by_schema,
    *,
    key: str | None = None,
    models: Sequence[str] | None = None,
    latency: float = 0.0,
    faults: Sequence[Rule] = (),
    refuses: Sequence[str] = (),
    reasoning: int = 0,
    folder: Path | None = None,
    polls: int = 1,
    batch_limit: int = 50_000,
    log: Path | None = None,
    port: int = 0,
) -> Iterator[Loopback]:
    """A server in this process; at its end the first mistake of the answer function is raised.

    `refuses`: parameters that are answered with 400, such as "max_tokens"; `reasoning`: tokens
    of each reply; `folder`: where files and batches outlive the server; `polls`: how often a
    batch is seen in progress; `batch_limit`: requests of one batch.
    """
    state = Loopback(answer, key, models, refuses, reasoning, log)
    state.latency = latency
    state.faults.rules.extend(faults)
    state.batches = Batches(state._run_item, folder, polls, batch_limit)
    server = Server(state, port)
    state.base_url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield state
    finally:
        state.stopping.set()
        server.shutdown()
        thread.join()
        server.hang_up()
        server.server_close()
    if state.errors:
        raise state.errors[0]


class Remote:
    """A loopback server in a process of its own."""

    def __init__(self, base_url: str, log: Path, process: subprocess.Popen[bytes]) -> None:
        self.base_url = base_url
        self.process = process
        self._log = log

    def read_log(self) -> list[Entry]:
        """The entries so far, without bodies."""
        lines = self._log.read_text("utf-8").splitlines(keepends=True) if self._log.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def calls(self, path: str = CHAT, *, method: str = "POST", schema: str | None = None) -> int:
        """See `Loopback.calls`."""
        return count_calls(self.read_log(), path, method, schema)

    def control(self, **order: Any) -> dict[str, Any]:
        """See `control`."""
        address = self.base_url.removesuffix("/v1") + "/_control"
        with urlopen(Request(address, json.dumps(order).encode())) as reply:
            found: dict[str, Any] = json.loads(reply.read())
        return found


@contextmanager
def spawn(
    folder: Path,
    *,
    answer: str = "tests.loopback:answer_by_schema",
    latency: float = 0.0,
    key: str | None = None,
    port: int = 0,
) -> Iterator[Remote]:
    """A server in its own process; its log, files and batches below `folder` outlive it.

    `answer` is MODULE:FUNCTION.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port_file, log = folder / "port", folder / "log.jsonl"
    port_file.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.loopback", "--port-file", str(port_file)]
    command += ["--log", str(log), "--latency", str(latency), "--answer", answer]
    command += ["--folder", str(folder / "state"), "--port", str(port)]
    command += ["--key", key] if key else []
    with subprocess.Popen(command, cwd=_ROOT) as process:
        try:
            for _ in range(1000):
                if port_file.exists() or process.poll() is not None:
                    break
                time.sleep(0.02)
            number = int(port_file.read_text())
            yield Remote(f"http://127.0.0.1:{number}/v1", log, process)
        finally:
            process.kill()


def load_answer(name: str) -> AnswerFunction:
    """The function of MODULE:FUNCTION."""
    module, _, function = name.partition(":")
    found: AnswerFunction = getattr(importlib.import_module(module), function)
    return found


def main() -> None:
    """Serves until stopped; writes its port when it is ready."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--answer", default="tests.loopback:answer_by_schema")
    parser.add_argument("--key")
    parser.add_argument("--model", action="append")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--fault", action="append", default=[], help="JSON of a rule")
    options = parser.parse_args()
    with serve(
        load_answer(options.answer),
        key=options.key,
        models=options.model,
        latency=options.latency,
        faults=[Rule(**json.loads(rule)) for rule in options.fault],
        folder=options.folder,
        log=options.log,
        port=options.port,
    ) as server:
        temporary = options.port_file.with_suffix(".new")
        temporary.write_text(str(urlsplit(server.base_url).port))
        temporary.replace(options.port_file)
        server.stopping.wait()


if __name__ == "__main__":
    main()
