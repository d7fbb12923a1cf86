"""A real HTTP server that speaks OpenAI's API, fails on demand and counts what it was asked.

with serve(answer_by_schema) as server:
    server.base_url, server.log, server.calls(), server.faults.add("429", times=2)
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.loopback_replies import Answer, AnswerFunction, answer_by_schema
from tests.loopback_server import Loopback, Server

__all__ = ["Answer", "Loopback", "answer_by_schema", "serve"]


@contextmanager
def serve(
    answer: AnswerFunction = answer_by_schema,
    *,
    key: str | None = None,
    models: Sequence[str] | None = None,
    latency: float = 0.0,
    refuses: Sequence[str] = (),
    reasoning: int = 0,
    log: Path | None = None,
) -> Iterator[Loopback]:
    """A server in this process; at its end the first mistake of the answer function is raised.

    `refuses`: parameters that are answered with 400, such as "max_tokens"; `reasoning`: tokens
    of each reply; `log`: a file for the entries too.
    """
    state = Loopback(answer, key, models, refuses, reasoning, log)
    state.latency = latency
    server = Server(state)
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
