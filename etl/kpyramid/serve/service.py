"""The HTTP service: every tool of `kpyramid.query` over one snapshot, in JSON."""

import json
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import anyio
import prometheus_client as prometheus
from prometheus_client.multiprocess import MultiProcessCollector
from pydantic import Field, TypeAdapter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kpyramid.errors import InputError, PyramidError
from kpyramid.query.answering import STRATEGIES, answer
from kpyramid.query.retrieval import Retrieval
from kpyramid.query.toolset import (
    MOST_ROWS,
    TOOLS,
    Tool,
    describe_arguments,
    read_call,
    write_plain,
)
from kpyramid.query.types import RULES, Answer, Backends
from kpyramid.serve.current import Current
from kpyramid.snapshot.diff import NAMES, Counts, Row, compare
from kpyramid.snapshot.evidence import Evidence
from kpyramid.snapshot.individuals import Entity, Overview
from kpyramid.snapshot.search import one_thread
from kpyramid.snapshot.site import PAGE, read_page
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.typed import Comparison, Member, Paths

log = logging.getLogger("kpyramid.serve")

PREFIX = "/v1/"
PROBLEM = "application/problem+json"
SNAPSHOT_HEADER = "X-Snapshot"
_POLICY = {
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_PAGES = {"": "index.html", **{name: name for name in PAGE if name != "index.html"}}
_KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css"}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a service takes on: bytes of a request, seconds, requests at work and in all.

    `hosts`: names that a request may be addressed to; a page of another site that resolves to this
    machine has another. `labels_header` is read from the addresses in `proxies` only; without it
    all readers see what has no labels.
    """

    body: int = 64_000
    seconds: float = 30.0
    threads: int = os.cpu_count() or 1
    requests: int = 200
    follow: float = 10.0
    hosts: tuple[str, ...] = ("*",)
    labels_header: str = ""
    proxies: frozenset[str] = frozenset()
    logs_questions: bool = False


class Diff(Tool):
    """What changed since an earlier snapshot: counts by table, and the rows of one of them."""

    before: str = Field("@1", description="@1 for the one before, @2 ..., or an id of its log")
    table: str | None = Field(None, description=f"rows of one of {', '.join(NAMES)}")
    limit: int = Field(100, ge=1, le=MOST_ROWS, description="rows at most")


_ASKING = ("direct", "tools")
"""Strategies that are nothing without a model."""


class Ask(Tool):
    """An answer in a few words with all it rests on; empty where the pyramid does not say."""

    question: str
    candidates: list[str] = Field([], description="options of a choice question")
    strategy: str = Field(
        "polyrag", description=f"one of {', '.join(n for n in STRATEGIES if n not in _ASKING)}"
    )

    def answer(self, snapshot: Snapshot, backends: Backends) -> Answer:
        """The answer; a model is asked what the backends say."""
        if self.strategy in _ASKING and not backends.asks_model:
            raise InputError(f"strategy {self.strategy} asks a model, and the service has none")
        given: dict[str, Any] = {"candidates": self.candidates, "backends": backends}
        return answer(self.question, snapshot, self.strategy, **given)


@dataclass(frozen=True, slots=True)
class Changes:
    """What `Diff` gives; `before` is None where the ref was nowhere before."""

    before: str | None
    after: str
    summary: str
    tables: Mapping[str, Counts]
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class LowerBound:
    at_least: int


@dataclass(frozen=True, slots=True)
class ListedMembers:
    """`Members` as `to_dict` writes them."""

    members: tuple[Member, ...]
    count: LowerBound


REPLIES: Mapping[str, Any] = {
    "overview": Overview,
    "retrieve": Retrieval,
    "find": ListedMembers,
    "compare": Comparison,
    "paths": Paths,
    "entity": list[Entity],
    "evidence": list[Evidence],
    "sparql": list[dict[str, str]],
    "ask": Answer,
    "diff": Changes,
}
"""What each tool gives."""
SERVED: Mapping[str, type[Tool]] = {**TOOLS, "ask": Ask, "diff": Diff}
"""All tools of the service by name."""


_REQUESTS = prometheus.Counter(
    "kpyramid_requests", "Requests by tool and status.", ["tool", "status"]
)
_SECONDS = prometheus.Histogram("kpyramid_request_seconds", "Seconds of a request.", ["tool"])


class Service:
    """Answers requests from the current snapshot, so many at a time; see `create_app`."""

    def __init__(self, current: Current, limits: Limits, backends: Backends) -> None:
        self.current = current
        self._backends = backends
        self.limits = limits
        self._guard = threading.Lock()
        self._pending = 0
        self._slots = threading.BoundedSemaphore(limits.threads)
        self._threads: anyio.CapacityLimiter | None = None

    def list_routes(self) -> list[Route]:
        """All addresses of the service."""
        return [
            *(Route(f"/{name}", self.show_page) for name in _PAGES),
            Route(PREFIX + "entity/{name:path}", self.call),
            Route(PREFIX + "evidence/{id}", self.call),
            Route(PREFIX + "{tool}", self.call, methods=["POST"]),
            Route("/healthz", self.tell_health),
            Route("/metrics", self.tell_metrics),
            Route("/openapi.json", self.describe),
        ]

    async def show_page(self, request: Request) -> Response:
        """The page, which reads all it shows from this service."""
        name = _PAGES[request.url.path.removeprefix("/")]
        kind = _KINDS[name.rpartition(".")[2]]
        return Response(read_page(name), media_type=kind, headers=_POLICY)

    async def tell_health(self, _: Request) -> Response:
        """200 while requests are answered; `problem`: why the ref's newest is not served.

        `looked`: seconds since the last look at the ref.
        """
        current = self.current
        state = {"status": "ok", "ref": current.ref, "snapshot": current.id}
        return JSONResponse({**state, "problem": current.problem or None, "looked": current.looked})

    async def tell_metrics(self, _: Request) -> Response:
        """Figures for Prometheus, of all workers if they share a folder for them."""
        registry = prometheus.REGISTRY
        if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
            registry = prometheus.CollectorRegistry()
            MultiProcessCollector(registry)
        text = prometheus.generate_latest(registry)
        return Response(text, media_type=prometheus.CONTENT_TYPE_LATEST)

    async def describe(self, _: Request) -> Response:
        """The OpenAPI description."""
        return JSONResponse(describe_service())

    async def call(self, request: Request) -> Response:
        """POST /v1/TOOL: the arguments are the body, a JSON object.

        GET /v1/entity/NAME and /v1/evidence/ID: other arguments are query parameters.
        """
        started = time.monotonic()
        name = request.path_params.get("tool") or request.url.path.split("/")[2]
        status, id_, labels, body = 500, "", frozenset[str](), b""
        try:
            if name not in SERVED:
                known = ", ".join(SERVED)
                raise HTTPException(404, f"there is no tool {name!r}; there are {known}")
            labels = self._read_labels(request)
            body = await self._read_arguments(request, name)
            text, id_ = await self._run(read_call(name, body or b"{}", SERVED), labels)
            status = 200
            return Response(text, media_type="application/json", headers={SNAPSHOT_HEADER: id_})
        except Exception as e:
            status, problem = _explain(e)
            if status == 500:
                log.exception("%s failed", name)
            again = {"Retry-After": "1"} if status == 503 else None
            raise HTTPException(status, problem, again) from e
        finally:
            took = time.monotonic() - started
            label = name if name in SERVED else "other"
            _REQUESTS.labels(label, str(status)).inc()
            _SECONDS.labels(label).observe(took)
            line = {
                "tool": label,
                "status": status,
                "ms": round(took * 1000, 1),
                "snapshot": id_ or self.current.id,
                "labels": len(labels),
                "client": request.client.host if request.client else None,
            }
            if self.limits.logs_questions:
                line["arguments"] = body.decode("utf-8", "replace")
            log.info("%s", json.dumps(line, ensure_ascii=False))

    async def _read_arguments(self, request: Request, name: str) -> bytes:
        """The body, or the parts of an address as a JSON object."""
        given = request.query_params
        if request.method == "POST":
            if given:
                raise InputError(f"{next(iter(given))}: arguments stand in the body, a JSON object")
            return await self._read_body(request)
        for key in given:
            if key in request.path_params or len(given.getlist(key)) > 1:
                raise InputError(f"{name}: the parameter {key} is given twice")
        return json.dumps({**request.path_params, **given}).encode()

    async def _read_body(self, request: Request) -> bytes:
        most, seconds = self.limits.body, self.limits.seconds
        parts, size = [], 0
        try:
            with anyio.fail_after(seconds):
                async for part in request.stream():
                    size += len(part)
                    if size > most:
                        raise HTTPException(413, f"the body has more than {most} bytes")
                    parts.append(part)
        except TimeoutError:
            raise HTTPException(408, f"no whole body within {seconds:g} s") from None
        return b"".join(parts)

    def _read_labels(self, request: Request) -> frozenset[str]:
        name = self.limits.labels_header
        stated = request.headers.getlist(name) if name else []
        if not stated:
            return frozenset()
        if not request.client or request.client.host not in self.limits.proxies:
            raise HTTPException(403, f"{name} is taken from the service's own proxies only")
        if len(stated) > 1:
            raise HTTPException(403, f"{name} comes twice: the proxy must replace a client's own")
        return frozenset(label.strip() for label in stated[0].split(",") if label.strip())

    async def _run(self, tool: Tool, labels: frozenset[str]) -> tuple[str, str]:
        """The reply and the id of its snapshot, computed by one of the threads."""
        seconds = self.limits.seconds
        late = HTTPException(504, f"no answer within {seconds:g} s: ask for less, or ask again")
        with self._guard:
            if self._pending >= self.limits.requests:
                raise HTTPException(503, f"{self._pending} requests are at work: try again")
            self._pending += 1

        def work() -> tuple[str, str]:
            # It goes on when nobody waits any more, so its place is free only at its end.
            try:
                if not self._slots.acquire(timeout=seconds):
                    raise late
                try:
                    with self.current.read(labels) as snapshot:
                        return write_plain(self._call(tool, snapshot)), snapshot.id
                finally:
                    self._slots.release()
            finally:
                with self._guard:
                    self._pending -= 1

        if self._threads is None:  # as many as may be pending, so that each begins at once
            self._threads = anyio.CapacityLimiter(self.limits.requests)
        try:
            with anyio.fail_after(seconds):
                run = anyio.to_thread.run_sync
                return await run(work, limiter=self._threads, abandon_on_cancel=True)
        except TimeoutError:
            raise late from None

    def _call(self, tool: Tool, snapshot: Snapshot) -> Any:
        if isinstance(tool, Ask):
            return tool.answer(snapshot, self._backends)
        if not isinstance(tool, Diff):
            return tool.run(snapshot)
        before = self.current.find_former(tool.before, snapshot.id)
        if before is None:
            return Changes(None, snapshot.id, "", {}, [])
        opened = self.current.open_former(before, snapshot.scopes[-1])
        with opened as former, compare(former, snapshot) as changes:
            rows = changes.read(tool.table, tool.limit) if tool.table else []
            tables = {name: changes.count(name) for name in NAMES}
            return Changes(former.id, snapshot.id, changes.summarise(), tables, rows)


def create_app(
    current: Current, limits: Limits | None = None, backends: Backends = RULES
) -> Starlette:
    """The service as an ASGI application; it follows the ref while it runs."""
    service = Service(current, limits or Limits(), backends)

    @asynccontextmanager
    async def live(_: Starlette) -> AsyncIterator[None]:
        stop = current.watch(service.limits.follow)
        try:
            with one_thread:  # for good: to change it with every question costs as much as one
                yield
        finally:
            stop()
            current.close()

    return Starlette(
        routes=service.list_routes(),
        lifespan=live,
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=[*service.limits.hosts])],
        exception_handlers={HTTPException: _show_problem, Exception: _show_problem},
    )


_BY_ADDRESS = {"entity": "name", "evidence": "id"}
"""Tools with an address of their own, and the argument that is its last part."""


def describe_service() -> dict[str, Any]:
    """The service in OpenAPI 3.1: `openapi.json`, and how each tool is called."""
    inputs: list[tuple[str, Literal["serialization"], TypeAdapter[Any]]] = [
        (name, "serialization", TypeAdapter(kind)) for name, kind in REPLIES.items()
    ]
    replies, schemas = TypeAdapter.json_schemas(inputs, ref_template="#/components/schemas/{model}")
    described: dict[str, Any] = json.loads(Path(__file__).with_name("openapi.json").read_bytes())
    described["components"]["schemas"] |= schemas["$defs"]
    paths = described["paths"]
    for (name, _), reply in replies.items():
        about, arguments = SERVED[name].__doc__ or "", describe_arguments(SERVED[name])
        good = {"description": "what was asked for", **_describe_json(reply)}
        responses = {"200": good, "default": {"$ref": "#/components/responses/problem"}}
        operation = {"summary": about.partition("\n")[0], "responses": responses}
        body = {"required": True, **_describe_json(arguments)}
        paths[PREFIX + name] = {"post": {"operationId": name, **operation, "requestBody": body}}
        if key := _BY_ADDRESS.get(name):
            given = [
                {
                    "name": n,
                    "in": "path" if n == key else "query",
                    "required": n == key,
                    "schema": s,
                }
                for n, s in arguments["properties"].items()
            ]
            get = {"operationId": f"{name}_by_{key}", **operation, "parameters": given}
            paths[f"{PREFIX}{name}/{{{key}}}"] = {"get": get}
    return described


def _describe_json(schema: Any) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


def _explain(error: Exception) -> tuple[int, str]:
    """The status of an error, and the text for the client."""
    if isinstance(error, HTTPException):
        return error.status_code, error.detail
    if isinstance(error, InputError):
        return 400, str(error)
    if isinstance(error, PyramidError):
        return 503, str(error)
    return 500, "an unexpected error; the service's log has it"


async def _show_problem(request: Request, error: Exception) -> Response:
    status, detail = _explain(error)
    headers = getattr(error, "headers", None)
    problem = {"type": "about:blank", "status": status, "detail": detail}
    return JSONResponse(problem, status, headers, media_type=PROBLEM)
