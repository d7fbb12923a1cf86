"""`kpyramid serve-model`: a local model for as long as a command needs it."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from kpyramid.commands.options import (
    JsonOption,
    QuietOption,
    VerboseOption,
    print_json,
    run_command,
)
from kpyramid.errors import EndpointError, InputError

if TYPE_CHECKING:
    from kpyramid.keys import JsonValue
    from kpyramid.llm.local import LocalServer, ServerOptions

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_COMMAND_ENDS_WITHIN = 10.0
"""Seconds that a command has to keep what it paid for after it was told to end."""


class _EndError(BaseException):
    """A signal asked this process to end; not an error, but everything is cleaned up."""

    def __init__(self, number: int) -> None:
        self.number = number


def serve_model(
    model: Annotated[Path, typer.Argument(help="A GGUF file; of several parts the first.")],
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="What to run with the server, after --; by default it serves until Ctrl-C.",
            show_default=False,
        ),
    ] = None,
    context: Annotated[
        int, typer.Option(min=512, max=10_000_000, help="Tokens of one request with its reply.")
    ] = 8192,
    parallel: Annotated[
        int, typer.Option(min=1, max=256, help="Requests at a time; memory grows with it.")
    ] = 1,
    threads: Annotated[
        int,
        typer.Option(
            min=0, max=1024, help="Processor threads.", show_default="the server's choice"
        ),
    ] = 0,
    port: Annotated[
        int,
        typer.Option(min=0, max=65_535, help="On this machine only.", show_default="a free one"),
    ] = 0,
    server: Annotated[
        Path | None,
        typer.Option(
            help="The llama-server to start.",
            show_default="the one on PATH, else of extra local-llm",
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only start it, try it out, and stop it.")
    ] = False,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Start a llama-server on a GGUF file, try it out, and stop it when it is no longer needed.

    Without a command it prints the settings to use and serves until Ctrl-C. With one it runs that
    with KPYRAMID_LLM__PROVIDER, __BASE_URL, __MODEL, __CONCURRENCY, __TIMEOUT and
    KPYRAMID_CASCADE__CLOSED set, and ends with its exit code. Which steps the model does is said
    in [cascade], such as KPYRAMID_CASCADE__MODE=paper. The server's own options go through its
    LLAMA_ARG_ variables.

    Example: kpyramid serve-model model.gguf -- kpyramid build docs --settings llm.toml
    """

    def act() -> None:
        from kpyramid.llm.local import ServerOptions, find_server, read_model, run_server

        if check and command:
            raise InputError("--check runs no command; leave out one of the two")
        tell = _choose_teller(quiet)
        options = ServerOptions(context, parallel, threads, port)
        program = find_server(server)
        tell(f"reading {model.name}")
        found = read_model(model)
        with _end_on_signals(), run_server(found, program, options, tell) as running:
            probe = _probe(running, options)
            if command:
                code = _run_beside(running, options, command, tell)
                raise typer.Exit(code)
            _show(running, options, probe, as_json=as_json, check=check)
            if not check:
                _serve_until_told(running, tell)

    try:
        run_command(act, verbose=verbose, as_json=as_json)
    except _EndError as e:
        raise typer.Exit(128 + e.number) from None


def _choose_teller(quiet: bool) -> Callable[[str], None]:
    def tell(text: str) -> None:
        if not quiet:
            typer.echo(text, err=True)

    return tell


@contextmanager
def _end_on_signals() -> Iterator[None]:
    """Turns the signals that end a process into an exception, so that what was opened is closed."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise _EndError(number)

    before = {number: signal.signal(number, end) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _probe(server: "LocalServer", options: "ServerOptions") -> dict[str, "JsonValue"]:
    from kpyramid.llm.local import list_settings
    from kpyramid.llm.transport import open_transport
    from kpyramid.llm.types import TransientError
    from kpyramid.model_settings import LLMSettings

    probe: dict[str, JsonValue] = {}
    values = list_settings(server, options)["llm"]
    settings = LLMSettings(**values)  # type: ignore[arg-type]
    try:
        open_transport(settings, probe.update).close()
    except TransientError as e:
        raise EndpointError(
            f"the server loaded {server.model} but does not answer: {e}; its last words:\n"
            f"{server.read_log()}"
        ) from e
    return probe


def _show(
    server: "LocalServer",
    options: "ServerOptions",
    probe: Mapping[str, "JsonValue"],
    *,
    as_json: bool,
    check: bool,
) -> None:
    from kpyramid.llm.local import list_settings

    settings = list_settings(server, options)
    if as_json:
        print_json({"model": server.model, "probe": dict(probe), "settings": settings})
        return
    kept = {
        "kept": "keeps to a JSON schema",
        "ignored": "IGNORES the JSON schema it is given: expect rejects",
        "unclear": "gave no usable reply to the probe: it may be too small, or no chat model",
    }[str(probe["schema"])]
    counts = "counts tokens" if probe["usage"] else "does not count tokens: they are estimated"
    typer.echo(f"# {server.model} {kept}; it {counts}.")
    if not check:
        lines = [
            line
            for section, values in settings.items()
            for line in (
                f"\n[{section}]",
                *(f"{name} = {json.dumps(value)}" for name, value in values.items()),
            )
        ]
        typer.echo("\n".join(lines))


def _serve_until_told(server: "LocalServer", tell: Callable[[str], None]) -> None:
    try:
        tell("serving; Ctrl-C stops it")
        server.process.wait()
    except (KeyboardInterrupt, _EndError):
        return  # what the user was told to do: no failure
    raise EndpointError(f"the server ended by itself; its last words:\n{server.read_log()}")


def _run_beside(
    server: "LocalServer",
    options: "ServerOptions",
    command: list[str],
    tell: Callable[[str], None],
) -> int:
    """Runs the command with the server in its settings; returns its exit code."""
    from kpyramid.llm.local import build_environment

    environment = build_environment(server, options, os.environ)
    try:
        process = subprocess.Popen(command, env=environment)  # noqa: S603 - the user's own
    except OSError as e:
        raise InputError(f"{command[0]} cannot be run: {e}; name a program after --") from e
    try:
        code = process.wait()
    except BaseException as e:
        # Ctrl-C reached the command too, which is ending; a signal to us alone is passed on.
        _end_command(process, at_once=not isinstance(e, KeyboardInterrupt))
        raise
    if server.process.poll() is not None:
        tell(f"the server ended before the command; its last words:\n{server.read_log()}")
    return code if code >= 0 else 128 - code


def _end_command(process: subprocess.Popen[bytes], *, at_once: bool) -> None:
    if not at_once:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_COMMAND_ENDS_WITHIN)
    process.terminate()
    try:
        process.wait(_COMMAND_ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
