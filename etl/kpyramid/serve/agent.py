"""The tools of `kpyramid.query` for agents: a server of the Model Context Protocol (MCP)."""

from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from starlette.applications import Starlette

from kpyramid.errors import PyramidError
from kpyramid.query.toolset import TOOLS, call_tool, describe_arguments, write_plain
from kpyramid.serve.current import Current
from kpyramid.storage.identity import library_version

_SECONDS = 60.0
_ABOUT = (
    "A knowledge pyramid: an ontology, a graph of facts and the texts they were read from. Start "
    "with retrieve; find, compare and paths answer what only structure can; evidence shows the "
    "sentences of an id. What is not stated is unknown, not false."
)


def create_server(current: Current, labels: frozenset[str] = frozenset()) -> Server[Any]:
    """The server; `labels`: those of its reader, see `Scope.access`."""

    async def list_tools(*_: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=tool.__doc__,
                    input_schema=describe_arguments(tool),
                    annotations=types.ToolAnnotations(read_only_hint=True),
                )
                for name, tool in TOOLS.items()
            ]
        )

    async def call(_: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        def work() -> str:
            with current.read(labels) as snapshot:
                return write_plain(call_tool(asked.name, asked.arguments or {}, snapshot))

        try:
            with anyio.fail_after(_SECONDS):
                text = await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
            failed = False
        except PyramidError as e:
            text, failed = str(e), True
        except TimeoutError:
            text, failed = f"no answer within {_SECONDS:g} s: ask for less", True
        content: list[Any] = [types.TextContent(type="text", text=text)]
        return types.CallToolResult(content=content, is_error=failed)

    return Server(
        "kpyramid",
        version=library_version("kpyramid"),
        instructions=_ABOUT,
        on_list_tools=list_tools,
        on_call_tool=call,
    )


def serve_stdio(server: Server[Any]) -> None:
    """Serves one agent over standard input and output until it ends."""

    async def run() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(run)


def create_http(server: Server[Any], host: str) -> Starlette:
    """The server for many agents over streamable HTTP, at /mcp."""
    return server.streamable_http_app(host=host, stateless_http=True, json_response=True)
