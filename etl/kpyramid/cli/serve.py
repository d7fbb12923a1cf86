"""`kpyramid serve` and `kpyramid mcp`: a snapshot behind HTTP, and as tools of an agent."""

import ipaddress
import json
import logging
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kpyramid.cli.options import SNAPSHOT_HELP, Count, say
from kpyramid.errors import InputError, SettingsError

if TYPE_CHECKING:
    from kpyramid.query import Backends
    from kpyramid.serve.current import Current

_GIVEN = "SERVED_BY_KPYRAMID"
"""Variable that tells worker processes what to serve."""

Served = Annotated[
    str, typer.Argument(metavar="SNAPSHOT", help=f"{SNAPSHOT_HELP} Or a folder: ./copied.")
]
Port = Annotated[int, typer.Option(min=0, max=65535)]


def serve(
    snapshot: Served = "main",
    /,
    *,
    warehouse: str,
    settings: Path | None,
    host: str = "127.0.0.1",
    port: Port = 8710,
    processes: Count = 1,
    timeout: Annotated[float, typer.Option(min=0.1)] = 30.0,
    follow: Annotated[float, typer.Option(min=0.1)] = 10.0,
    labels_header: str | None = None,
    proxy: list[str] | None = None,
    allowed_host: list[str] | None = None,
    log_questions: bool = False,
) -> None:
    """Serve a snapshot over HTTP, with a page to browse it.

    If a ref is named, the service follows it: it checks a new snapshot, opens it, and switches
    without a gap, but never to a damaged one. GET / is the page, POST /v1/overview, retrieve, ask,
    find, compare, paths, entity, evidence, sparql and diff are the tools, GET /openapi.json
    describes them, /healthz and /metrics are for monitoring. Errors are problem+json.

    The service listens on this machine only unless --host names another address. It shows only
    documents without labels unless your own proxy sends the reader's labels in a header.

    Examples: kpyramid serve main; kpyramid serve ./copied --port 9000;
    kpyramid serve main --host 0.0.0.0 --labels-header X-Labels --proxy 10.0.0.2

    `host`: the address to listen at.
    `port`: the port to listen at; 0 for a free one.
    `processes`: processes that share the port.
    `timeout`: seconds that a request may take.
    `follow`: seconds between two checks of the ref.
    `labels_header`: header with the labels of the reader, separated by commas.
    `proxy`: address of a proxy that sets this header; repeatable. From others it is refused.
    `allowed_host`: a name that requests may have as `Host`; repeatable. By default the names of
    this machine, or any name if --host is another address.
    `log_questions`: also log the arguments of requests.
    """
    if bool(labels_header) != bool(proxy):
        raise SettingsError("give --labels-header and --proxy together: a header, and who sets it")
    limits = {
        "seconds": timeout,
        "follow": follow,
        "labels_header": labels_header or "",
        "proxies": [_check_address(each) for each in proxy or ()],
        "logs_questions": log_questions,
        "hosts": _list_hosts(host, allowed_host),
    }
    given = (snapshot, warehouse, str(settings) if settings else None, limits)
    os.environ[_GIVEN] = json.dumps(given)
    if processes == 1:
        _listen(create_app(), host, port, processes)
        return
    with _open(*given[:3]):
        pass  # what is wrong with it is said before any process starts
    os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", tempfile.mkdtemp(prefix="kpyramid-"))
    _listen("kpyramid.cli.serve:create_app", host, port, processes)


def mcp(
    snapshot: Served = "main",
    /,
    *,
    warehouse: str,
    settings: Path | None,
    access: list[str] | None,
    http: bool = False,
    host: str = "127.0.0.1",
    port: Port = 8711,
) -> None:
    """Offer a snapshot to an agent as tools, by the Model Context Protocol.

    An agent's program starts this command and communicates over its standard input and output.
    With --http it listens at /mcp for many programs.

    Example, in the configuration of an agent: {"command": "kpyramid", "args": ["mcp", "main",
    "--warehouse", "/srv/pyramid"]}

    `http`: listen instead (streamable HTTP).
    `host`: the address to listen at.
    `port`: the port to listen at; 0 for a free one.
    """
    if http and access and host not in _LOCAL:
        raise SettingsError("--access with --http is for this machine only: every client has it")
    from kpyramid.serve.agent import create_http, create_server, serve_stdio

    with _open(snapshot, warehouse, settings) as (current, _), ExitStack() as held:
        held.callback(current.watch(10.0))
        server = create_server(current, frozenset(access or ()))
        if http:
            _listen(create_http(server, host), host, port, 1, "mcp")
        else:
            serve_stdio(server)


def create_app() -> Any:
    """The application of a process, by the command that started it."""
    from kpyramid.serve.service import Limits, create_app

    snapshot, warehouse, settings, limits = json.loads(os.environ[_GIVEN])
    logging.getLogger("kpyramid.serve").setLevel(logging.INFO)
    bounds = Limits(**{**limits, "proxies": frozenset(limits["proxies"])})
    held = ExitStack()
    current, backends = held.enter_context(_open(snapshot, warehouse, settings))
    app = create_app(current, bounds, backends)
    app.state.held = held  # it is open for as long as the process serves
    return app


@contextmanager
def _open(
    snapshot: str, warehouse: str, settings: "Path | str | None"
) -> "Iterator[tuple[Current, Backends]]":
    from kpyramid.cli.answers import open_decided
    from kpyramid.serve.current import Current
    from kpyramid.settings import load_settings

    loaded = load_settings(settings)
    with open_decided(loaded, warehouse) as backends:
        current = Current(snapshot, warehouse, model=loaded.embed)
        try:
            yield current, backends
        finally:
            current.close()


_LOCAL = ("localhost", "127.0.0.1", "::1")


def _list_hosts(host: str, allowed: list[str] | None) -> list[str]:
    """The names that requests may be addressed to."""
    return allowed or (["localhost", "127.0.0.1", "[::1]"] if host in _LOCAL else ["*"])


def _check_address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError as e:
        raise SettingsError(f"--proxy {text!r}: name an address, such as 10.0.0.2") from e


def _listen(app: Any, host: str, port: int, processes: int, path: str = "") -> None:
    """Serves until it is interrupted.

    Raises:
        InputError: nobody may listen there, or somebody does.
    """
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError as e:
            raise InputError(f"{host}:{port}: {e.strerror}; choose another --port") from e
        listening.set_inheritable(True)
        config = uvicorn.Config(
            app,
            factory=isinstance(app, str),
            workers=processes,
            log_config=None,
            access_log=False,
            proxy_headers=False,  # who a client is says the connection alone
            server_header=False,
            timeout_graceful_shutdown=10,
        )
        shown = f"[{host}]" if ":" in host else host
        say(f"http://{shown}:{listening.getsockname()[1]}/{path}", err=True)
        if processes > 1:
            Multiprocess(config, sockets=[listening]).run()
            return
        try:
            uvicorn.Server(config).run(sockets=[listening])
        except KeyboardInterrupt as e:  # which uvicorn raises again when all requests are answered
            raise type(e)("nothing is served any more") from None
