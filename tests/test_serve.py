"""A snapshot behind HTTP and as tools of an agent: what is asked, refused, hidden and followed."""

import gc
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from kpyramid.cli.options import run_command
from kpyramid.cli.serve import _listen
from kpyramid.errors import IntegrityError
from kpyramid.query import TOOLS, Backends, tools
from kpyramid.query.types import RULES
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.leases import list_held
from tests.asked_model import ask_scripted, list_prompts
from tests.corpora import build_told, encode_lines, share
from tests.processes import wait_until
from tests.rows import read_bodies

if TYPE_CHECKING:
    from kpyramid.serve.service import Limits

pytestmark = pytest.mark.needs("serve")

ROWS = read_bodies("serve.rows")
LATER = [*ROWS, {"id": "d", "text": "Eva Lund was born in Bergen."}]
HEADER, SECRET = "X-Labels", "Quill"


class Reply(NamedTuple):
    status: int
    value: Any
    kind: str
    snapshot: str


class Client(NamedTuple):
    port: int

    def ask(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> Reply:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        data = body if isinstance(body, bytes | str) or body is None else json.dumps(body)
        connection.request(method, path, data, headers or {})
        reply = connection.getresponse()
        text, kind = reply.read(), reply.headers.get("Content-Type", "")
        connection.close()
        value = json.loads(text) if "json" in kind else text.decode()
        return Reply(reply.status, value, kind, reply.headers.get("X-Snapshot", ""))

    def call(self, tool: str, headers: dict[str, str] | None = None, **given: object) -> Reply:
        return self.ask("POST", f"/v1/{tool}", given, headers)


def _build_both(folder: Path) -> None:
    for rows in (ROWS, LATER):
        build_told(folder, {"rows.jsonl": encode_lines(rows)})
        if rows is ROWS:
            shutil.copytree(folder / "warehouse", folder / "first")


@pytest.fixture(scope="module")
def built() -> Path:
    """A folder with `first`, a warehouse of one snapshot, and `warehouse`, of two."""
    return share("served", _build_both)


@contextmanager
def serve(
    warehouse: Path, limits: "Limits", ref: str = "main", backends: Backends = RULES
) -> Iterator[Client]:
    """The service on a free port of this process."""
    import uvicorn

    from kpyramid.serve.current import Current
    from kpyramid.serve.service import create_app

    gc.collect()  # what builds left to the collector may not be dropped by another thread
    current = Current(ref, None if "/" in ref else warehouse)
    config = uvicorn.Config(
        create_app(current, limits, backends), log_config=None, proxy_headers=False
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield Client(listening.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join(120)


def make_limits(**given: Any) -> "Limits":
    from kpyramid.serve.service import Limits

    return replace(Limits(labels_header=HEADER, proxies=frozenset({"127.0.0.1"})), **given)


@pytest.fixture(scope="module")
def client(built: Path) -> Iterator[Client]:
    with serve(built / "warehouse", make_limits()) as served:
        yield served


ASKED: dict[str, tuple[dict[str, object], str]] = read_bodies("serve.asked")


@pytest.mark.parametrize("tool", [*ASKED])
def test_tools_answer_by_their_schema_and_hide_what_has_labels(client: Client, tool: str) -> None:
    import jsonschema

    given, said = ASKED[tool]
    reply = client.call(tool, **given)
    assert reply.status == 200, reply.value
    text = json.dumps(reply.value, ensure_ascii=False)
    assert said in text and SECRET not in text
    assert reply.snapshot == client.ask("GET", "/healthz").value["snapshot"]
    described = client.ask("GET", "/openapi.json").value
    responses = described["paths"][f"/v1/{tool}"]["post"]["responses"]
    schema = responses["200"]["content"]["application/json"]["schema"]
    jsonschema.validate(reply.value, {**schema, "components": described["components"]})


def test_every_tool_is_asked_here() -> None:
    assert {*ASKED, "evidence"} == {*TOOLS, "ask", "diff"}
    assert [tool["function"]["name"] for tool in tools(TOOLS)] == [*TOOLS]


def test_a_fact_leads_to_its_sentence_by_address(client: Client) -> None:
    (thing,) = client.ask("GET", "/v1/entity/John%20Harlow").value
    key = next(fact["fact_id"] for fact in thing["facts"] if fact["tail"] == "Leeds")
    places = client.ask("GET", f"/v1/evidence/{key}").value
    assert "John Harlow was born in Leeds" in " ".join(place["text"] for place in places)


def test_a_service_with_backends_has_the_model_word_answers(built: Path, tmp_path: Path) -> None:
    said = {"says": True, "cites": [1], "answer": "Leeds", "choices": [], "confidence": 0.8}
    with ask_scripted(tmp_path, query_read=said, query_direct=said) as (server, asker):
        backends = Backends(reader="llm", asker=asker)
        with serve(built / "warehouse", make_limits(), backends=backends) as client:
            question = {"question": "Where was John Harlow born?"}
            found = [client.call("ask", **question, strategy=s).value for s in ("naive", "direct")]
        asked = len(list_prompts(server, "query_read"))

    assert [(each["text"], each["calls"]) for each in found] == [("Leeds", 1)] * 2
    assert asked == 1 and found[0]["evidence"]


REFUSED: list[tuple[str, str, object, int, str]] = [
    *read_bodies("serve.refused"),
    ("POST", "/v1/retrieve", {"question": "a" * 70_000}, 413, "64000 bytes"),
    ("POST", "/v1/retrieve", {"question": "a" * 10_000_000}, 413, "64000 bytes"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "said"), REFUSED)
def test_what_is_refused_says_why(
    client: Client, method: str, path: str, body: object, status: int, said: str
) -> None:
    reply = client.ask(method, path, body)
    assert (reply.status, reply.kind) == (status, "application/problem+json")
    assert reply.value["status"] == status
    assert said in reply.value["detail"]


def test_an_address_takes_the_other_arguments_as_parameters(client: Client) -> None:
    (thing,) = client.ask("GET", "/v1/entity/John%20Harlow?facts=1").value
    assert (len(thing["facts"]), thing["count"] > 1) == (1, True)


def test_labels_come_from_the_proxy_only(built: Path, client: Client) -> None:
    shown = client.call("entity", {HEADER: "board"}, name="Mara Quill")
    assert shown.status == 200
    assert client.call("entity", name="Mara Quill").status == 400
    unknown = client.call("entity", {HEADER: "nobody"}, name="Mara Quill")
    assert unknown.status == 400
    assert SECRET not in unknown.value["detail"].replace("Mara Quill", "")
    with serve(built / "warehouse", make_limits(proxies=frozenset({"10.0.0.2"}))) as distrusting:
        forged = distrusting.call("entity", {HEADER: "board"}, name="Mara Quill")
        assert (forged.status, SECRET in str(forged.value)) == (403, False)


def test_two_headers_with_labels_are_refused(client: Client) -> None:
    connection = HTTPConnection("127.0.0.1", client.port, timeout=60)
    connection.putrequest("GET", "/v1/entity/Mara%20Quill")
    for labels in ("board", "staff"):
        connection.putheader(HEADER, labels)
    connection.endheaders()
    reply = connection.getresponse()
    assert (reply.status, SECRET in reply.read().decode()) == (403, False)
    connection.close()


def test_a_page_of_another_site_reaches_nothing(built: Path) -> None:
    with serve(built / "warehouse", make_limits(hosts=("127.0.0.1",))) as client:
        assert client.ask("GET", "/healthz").status == 200
        assert client.ask("GET", "/healthz", headers={"Host": "evil.example"}).status == 400


def test_fault_in_following_ends_nothing(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(built / "warehouse", make_limits(follow=0.1)) as client:
        from kpyramid.serve import current

        def fail(*_: object) -> Path:
            raise ValueError("no JSON")

        with monkeypatch.context() as patch:
            patch.setattr(current, "locate_snapshot", fail)
            wait_until(lambda: client.ask("GET", "/healthz").value["problem"] == "no JSON")
        wait_until(lambda: client.ask("GET", "/healthz").value["problem"] is None)


def test_figures_and_description(client: Client) -> None:
    client.call("retrieve", question="Who founded Aster?")
    figures = client.ask("GET", "/metrics").value
    assert 'kpyramid_requests_total{status="200",tool="retrieve"}' in figures
    assert client.call("seek").status == 404
    assert 'status="404",tool="other"' in client.ask("GET", "/metrics").value
    described = client.ask("GET", "/openapi.json").value
    assert {f"/v1/{tool}" for tool in (*TOOLS, "ask", "diff")} <= described["paths"].keys()
    page = client.ask("GET", "/")
    assert "<main" in page.value
    assert "http" not in page.value.replace("http-equiv", "")


def move_on(built: Path, warehouse: Path) -> str:
    """Brings the second snapshot into a warehouse of the first, as a night does; its id.

    What the first holds stays as it is: the service has its files open.
    """
    from kpyramid.storage.refs import resolve_ref

    second = resolve_ref(Warehouse(built / "warehouse"), "main")
    for part in (f"snapshots/{second}", "refs"):
        shutil.copytree(built / "warehouse" / part, warehouse / part, dirs_exist_ok=True)
    return second


def test_a_ref_is_followed_without_a_gap_under_a_lease(built: Path, tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    shutil.copytree(built / "first", warehouse)
    with serve(warehouse, make_limits(follow=0.2)) as client:
        first = client.ask("GET", "/healthz").value["snapshot"]
        seen: list[tuple[int, str]] = []
        ended = threading.Event()

        def ask_on() -> None:
            while not ended.is_set():
                reply = client.call("retrieve", question="Where was Eva Lund born?")
                seen.append((reply.status, reply.snapshot or reply.value["detail"]))

        asking = threading.Thread(target=ask_on)
        asking.start()
        second = move_on(built, warehouse)
        wait_until(lambda: (200, second) in seen)
        ended.set()
        asking.join()
        assert {*seen} == {(200, first), (200, second)}
        assert {*list_held(Warehouse(warehouse)).values()} == {second}  # which gc leaves
    assert not list_held(Warehouse(warehouse))


def test_a_damaged_snapshot_never_takes_over(built: Path, tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    shutil.copytree(built / "first", warehouse)
    with serve(warehouse, make_limits(follow=0.2)) as client:
        first = client.ask("GET", "/healthz").value["snapshot"]
        second = move_on(built, tmp_path / "aside")
        damaged = tmp_path / "aside" / "snapshots" / second / "tables" / "condensed.parquet"
        damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
        for part in (f"snapshots/{second}", "refs"):
            shutil.copytree(tmp_path / "aside" / part, warehouse / part, dirs_exist_ok=True)
        wait_until(lambda: bool(client.ask("GET", "/healthz").value["problem"]))
        health = client.ask("GET", "/healthz").value
        assert "condensed.parquet" in health["problem"]
        assert health["snapshot"] == first
        assert client.call("entity", name="John Harlow").status == 200
    with pytest.raises(IntegrityError, match="condensed"), serve(warehouse, make_limits()):
        pass


def test_numerical_libraries_stay_on_one_thread_between_requests(built: Path) -> None:
    with threadpool_limits(2), serve(built / "warehouse", make_limits()) as client:
        assert client.call("retrieve", question="Where was Eva Lund born?").status == 200
        pools = [pool for pool in threadpool_info() if "numpy" in pool["filepath"]]
        assert [pool["num_threads"] for pool in pools] == [1]


def test_time_and_number_of_requests_are_bounded(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kpyramid.query.toolset import Overview

    free = threading.Event()
    monkeypatch.setattr(Overview, "run", lambda *_: free.wait(60))
    with serve(built / "warehouse", make_limits(seconds=1.0, requests=2)) as client:
        assert client.call("overview").status == 504
        assert client.call("overview").status == 504
        full = client.call("entity", name="John Harlow")
        assert (full.status, "at work" in full.value["detail"]) == (503, True)
        free.set()
        wait_until(lambda: client.call("entity", name="John Harlow").status == 200)


def test_a_body_that_never_ends_is_let_go(built: Path) -> None:
    with serve(built / "warehouse", make_limits(seconds=0.5)) as client:
        with socket.create_connection(("127.0.0.1", client.port), timeout=30) as slow:
            slow.sendall(b"POST /v1/retrieve HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n{")
            assert b" 408 " in slow.recv(1000)
        assert client.ask("GET", "/healthz").status == 200


def test_clients_that_hang_up_or_do_not_read_hold_nothing(built: Path) -> None:
    """As many as may be: each is sent away, or waits without a thread; others are answered."""
    most = min(1_000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 3)
    head = "POST /v1/overview HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n"
    with serve(built / "warehouse", make_limits(seconds=20.0)) as client, ExitStack() as stack:
        for at in range(most):
            place = ("127.0.0.1", client.port)
            opened = stack.enter_context(socket.create_connection(place, timeout=30))
            if at % 10 == 0:
                opened.sendall(f"{head}{{}}".encode())  # and nobody reads the reply
            elif at % 10 == 1:
                opened.sendall(head.encode())
                opened.close()
        wait_until(lambda: client.call("entity", name="John Harlow").status == 200)
    with serve(built / "warehouse", make_limits()) as client:
        assert client.call("entity", name="John Harlow").status == 200


@pytest.mark.parametrize("harm", ["removed", "damaged"])
def test_the_next_takes_over_from_what_was_harmed(built: Path, tmp_path: Path, harm: str) -> None:
    """Of a removed folder the open files are read on; a file that was cut is named."""
    warehouse = tmp_path / "warehouse"
    shutil.copytree(built / "first", warehouse)
    with serve(warehouse, make_limits(follow=0.2)) as client:
        first = client.ask("GET", "/healthz").value["snapshot"]
        folder = warehouse / "snapshots" / first
        if harm == "removed":
            folder.rename(tmp_path / "aside")
        else:
            for file in folder.glob("index/*.arrow"):
                file.write_bytes(b"?")
        asked = {"question": "Who bought Aster in that year?"}
        reply = client.call("retrieve", **asked)
        assert reply.status == (200 if harm == "removed" else 503)
        if harm == "damaged":
            assert reply.kind == "application/problem+json"
            assert "index/" in reply.value["detail"]
        assert client.ask("GET", "/healthz").status == 200
        second = move_on(built, warehouse)
        wait_until(lambda: client.call("retrieve", **asked).snapshot == second)


def test_a_copied_folder_is_served(built: Path, tmp_path: Path) -> None:
    (snapshot,) = (built / "first" / "snapshots").iterdir()
    copied = shutil.copytree(snapshot, tmp_path / "copied")
    with serve(tmp_path, make_limits(), f"{copied}/") as client:
        assert client.call("entity", name="John Harlow").status == 200
        assert client.call("diff").status == 400


def test_a_service_that_is_ended_says_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    import typer
    import uvicorn

    def end(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(uvicorn.Server, "run", end)
    with pytest.raises(typer.Exit) as e:
        run_command(lambda: _listen(None, "127.0.0.1", 0, 1), verbose=False)
    address, *said = capfd.readouterr().err.splitlines()
    assert (e.value.exit_code, address.startswith("http://127.0.0.1:")) == (143, True)
    assert said == ["Ended by SIGTERM: nothing is served any more"]


@pytest.mark.slow
def test_the_command_serves_by_several_processes(built: Path) -> None:
    kpyramid = Path(sys.executable).with_name("kpyramid")
    command = [kpyramid, "serve", "main", "--warehouse", built / "warehouse", "--port"]
    served = subprocess.Popen(
        [*command, "0", "--processes", "2"], stderr=subprocess.PIPE, text=True
    )
    try:
        assert served.stderr is not None
        port = int(served.stderr.readline().rstrip().rstrip("/").rpartition(":")[2])
        client = Client(port)

        def answers() -> bool:
            with suppress(OSError):
                return client.call("entity", name="John Harlow").status == 200
            return False

        wait_until(answers, 120)
        again = subprocess.run([*command, str(port)], capture_output=True, text=True)
        assert (again.returncode, f":{port}: Address already in use" in again.stderr) == (3, True)
        assert "kpyramid_requests_total" in client.ask("GET", "/metrics").value
    finally:
        served.terminate()
        served.communicate(timeout=60)
        assert served.returncode in (0, 143)


@pytest.mark.slow
def test_an_agent_calls_the_tools(built: Path) -> None:
    """The SDK's own client starts the command and speaks with it."""
    import anyio
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    args = ["-m", "kpyramid", "mcp", "main", "--warehouse", str(built / "warehouse")]

    async def speak() -> tuple[list[str], str, str]:
        server = StdioServerParameters(command=sys.executable, args=args)
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            names = [tool.name for tool in (await session.list_tools()).tools]
            given = {"question": "Where was John Harlow born?"}
            found = await session.call_tool("retrieve", given)
            wrong = await session.call_tool("find", {"class_name": "persn"})
            assert (bool(found.is_error), wrong.is_error) == (False, True)
            return names, found.content[0].text, wrong.content[0].text  # type: ignore[union-attr]

    names, found, wrong = anyio.run(speak)
    assert names == [*TOOLS]
    assert "Leeds" in found
    assert SECRET not in found
    assert "person" in wrong
