"""How a function becomes a command: options shared by all, running it, and its errors."""

import copy
import inspect
import logging
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from kpyramid.cli.render import Result, print_result, to_json
from kpyramid.errors import InputError, PyramidError, SettingsError, name_extra

if TYPE_CHECKING:
    from kpyramid.settings import Settings
    from kpyramid.snapshot.snapshot import Snapshot as Opened
    from kpyramid.snapshot.view import Scope
    from kpyramid.storage.layout import Warehouse

DEFAULT_WAREHOUSE = "warehouse/data"

Corpus = Annotated[
    str,
    typer.Argument(
        help="A folder, local or at s3://bucket/prefix, or one file: .txt .md .html .jsonl .csv "
        ".parquet, with the extra `files` also .pdf .docx .pptx .epub .rst. Skips hidden files."
    ),
]
Ref = Annotated[str, typer.Option(help="The name that points to the newest snapshot.")]
SNAPSHOT_HELP = (
    "An id, a ref, a tag, or an earlier entry of a ref: main@1 is the previous snapshot of main, "
    "main@2026-11-16 its snapshot on that day."
)
Snapshot = Annotated[str, typer.Argument(metavar="SNAPSHOT", help=SNAPSHOT_HELP)]
Natural = Annotated[int, typer.Option(min=0)]
Count = Annotated[int, typer.Option(min=1)]
Backend = Literal["rules", "llm"]
"""Who takes a decision; here, so that --help need not load the modules that name it."""

_SHARED: Mapping[str, tuple[Any, object, Any]] = {
    "warehouse": (
        str,
        DEFAULT_WAREHOUSE,
        typer.Option(
            envvar="KPYRAMID_WAREHOUSE",
            help="Folder or s3://bucket/prefix for snapshots, refs, runs and caches.",
        ),
    ),
    "snapshot": (
        str,
        "main",
        typer.Option(
            "--ref", "--snapshot", help="The ref, the id or the folder (./copy) of a snapshot."
        ),
    ),
    "settings": (
        Path | None,
        None,
        typer.Option(
            help="TOML file with the settings of docs/settings.md; environment variables "
            "KPYRAMID_<SECTION>__<NAME> override it."
        ),
    ),
    "workers": (
        int,
        os.cpu_count() or 1,
        typer.Option(
            min=1,
            max=256,
            help="Number of processes; the result has the same bytes.",
            show_default="number of processors",
        ),
    ),
    "access": (
        list[str] | None,
        None,
        typer.Option(
            help="An access label of the reader; repeatable. Documents with labels, none of which "
            "the reader has, are hidden."
        ),
    ),
    "everything": (
        bool,
        False,
        typer.Option("--everything", help="Show all documents, whatever their labels."),
    ),
    "quiet": (bool, False, typer.Option("-q", "--quiet", help="Show no progress bars.")),
    "as_json": (
        bool,
        False,
        typer.Option("--json", help="Print exactly one JSON object on stdout."),
    ),
    "verbose": (bool, False, typer.Option("-v", "--verbose", help="Log a line per stage.")),
}
"""Options that mean the same in every command that has a parameter of that name."""


def read_scope(
    access: Sequence[str] | None,
    everything: bool,
    documents: Sequence[str] | None = None,
    where: Sequence[str] | None = None,
) -> "Scope":
    """The scope of a command's options: documents without labels unless they allow more.

    Raises:
        InputError: `where` is not `field=value`, or all labels and some are given.
    """
    from kpyramid.snapshot.view import Scope

    if everything and access:
        raise InputError("--everything includes all labels; leave --access out")
    pairs = [pair.partition("=") for pair in where or ()]
    if wrong := [field for field, is_there, _ in pairs if not field or not is_there]:
        raise InputError(f"--where {wrong[0]!r}: say field=value, such as --where year=1931")
    return Scope(
        access=None if everything else frozenset(access or ()),
        documents=frozenset(documents or ()),
        metadata=frozenset((field, value) for field, _, value in pairs),
    )


def command(
    app: typer.Typer, *, group: str | None = None
) -> Callable[[Callable[..., Result | None]], Callable[..., Result | None]]:
    """Makes a function a command, which prints the `Result` that the function returns.

    Parameters before `/` are arguments, the others options. Their help stands in the docstring, in
    lines such as "`limit`: most rows that are shown". One that has the name of a shared option and
    no default is that option; some are made of shared options that stand in their place: `place`,
    the warehouse; `loaded`, the settings; `scope`, what is seen; `opened`, what is seen of a
    snapshot. The name of the command is that of the function.
    `group`: the heading below which `kpyramid --help` lists the command.
    """

    def register(function: Callable[..., Result | None]) -> Callable[..., Result | None]:
        text, meanings = split_help(function)
        parameters = inspect.signature(function).parameters
        made = {name: _MADE[name] for name in parameters if name in _MADE}
        declared = {o.name: o for p in parameters.values() for o in _declare(p, meanings)}
        common = [name for name in ("as_json", "verbose") if name not in parameters]
        declared |= {name: _make_option(name, *_SHARED[name]) for name in common}
        arguments = [n for n, p in parameters.items() if p.kind is p.POSITIONAL_ONLY]

        @wraps(function)
        def run(**given: Any) -> None:
            def act() -> None:
                _refuse_addresses(given.values())
                values = {n: value for n, value in given.items() if n in parameters}
                for name, (make, parts) in made.items():
                    values[name] = make(*(given[part] for part in parts))
                positional = [values.pop(name) for name in arguments]
                _finish(function(*positional, **values))

            run_command(act, verbose=given["verbose"], as_json=given["as_json"])

        run.__signature__ = inspect.Signature([*declared.values()])  # type: ignore[attr-defined]
        run.__annotations__ = {}  # those of the options stand in the signature
        name = function.__name__.strip("_")
        short = " ".join(text.partition("\n\n")[0].split())
        app.command(name, help=text, short_help=short, rich_help_panel=group)(run)
        return function

    return register


_MEANING = re.compile(r"^`(\w+)`: ((?:.+\n?)+?)(?=^`\w+`: |^$|\Z)", re.M)


def split_help(function: Callable[..., object]) -> tuple[str, dict[str, str]]:
    """A docstring without the lines that explain parameters, and these by parameter."""
    text = inspect.getdoc(function) or ""
    meanings = {
        name: words[:1].upper() + " ".join(words.split())[1:]
        for name, words in _MEANING.findall(text)
    }
    return re.sub(r"\n{3,}", "\n\n", _MEANING.sub("", text)).strip(), meanings


def _declare(p: inspect.Parameter, meanings: Mapping[str, str]) -> list[inspect.Parameter]:
    """The command-line options for a function's parameter."""
    if p.name in _MADE:
        return [_make_option(name, *_SHARED[name]) for name in _MADE[p.name][1]]
    kind, default = p.annotation, p.default
    if p.name in _SHARED and p.kind is p.KEYWORD_ONLY and default is p.empty:
        return [_make_option(p.name, *_SHARED[p.name], meanings.get(p.name))]
    base, *extra = get_args(kind) if get_origin(kind) is Annotated else (kind,)
    if extra:
        info = extra[0]
    elif p.kind is p.POSITIONAL_ONLY:
        info = typer.Argument(metavar=p.name.upper())
    else:
        info = typer.Option(f"--{p.name.strip('_').replace('_', '-')}")
    return [_make_option(p.name, base, default, info, meanings.get(p.name))]


def _make_option(
    name: str, kind: Any, default: object, option: Any, meaning: str | None = None
) -> inspect.Parameter:
    """A parameter of a command; `meaning`: its help, where it differs from the option's own."""
    info = copy.copy(option)
    info.help = meaning or info.help
    kind = Annotated[kind, info]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _open_place(warehouse: str) -> "Warehouse":
    from kpyramid.storage.layout import open_warehouse

    return open_warehouse(warehouse)


def _load(path: Path | None) -> "Settings":
    from kpyramid.settings import load_settings

    return load_settings(path)


def open_seen(
    snapshot: str, warehouse: str, access: Sequence[str] | None, everything: bool
) -> "Opened":
    """A snapshot in the scope of its reader."""
    from kpyramid.snapshot.snapshot import open_snapshot

    return open_snapshot(snapshot, warehouse, scope=read_scope(access, everything))


_MADE: Mapping[str, tuple[Callable[..., object], tuple[str, ...]]] = {
    "place": (_open_place, ("warehouse",)),
    "loaded": (_load, ("settings",)),
    "scope": (read_scope, ("access", "everything")),
    "opened": (open_seen, ("snapshot", "warehouse", "access", "everything")),
}


def _refuse_addresses(given: Iterable[object]) -> None:
    """Passes when no path of a command is an address, which would name a local folder `s3:`."""
    for path in given:
        if isinstance(path, Path) and re.match("(s3|gs|az):/", str(path)):
            address = str(path).replace("/", "//", 1)
            raise SettingsError(
                f"{address}: this option takes a local path only; copy the file with a client of "
                "the bucket first"
            )


@dataclass(slots=True)
class _Output:
    """The form of stdout: one JSON object or text, and whether the object was printed."""

    as_json: bool = False
    is_done: bool = False


_output = _Output()
_RESUMABLE = "What was finished is kept; run the command again to go on."


class Commands(TyperGroup):
    """The root of the command line: with `--json` a usage error is an object on stdout as well."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        _output.as_json, _output.is_done = "--json" in args, False
        return self._run(
            lambda: super(Commands, self).make_context(info_name, args, parent, **extra)
        )

    def invoke(self, ctx: Any) -> Any:
        return self._run(lambda: super(Commands, self).invoke(ctx))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the commands below the headings of their groups."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            entry: Any = self.get_command(ctx, name)
            short = entry.get_short_help_str(formatter.width)
            groups.setdefault(entry.rich_help_panel or "Commands", []).append((name, short))
        for group, rows in groups.items():
            with formatter.section(group):
                formatter.write_dl(rows)

    def _run(self, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except TyperException as e:  # typer itself prints it on stderr
            _print_error(e.format_message(), e.exit_code)
            raise
        except BrokenPipeError:
            # The reader, such as `head`, has what it wanted. Python would complain once more when
            # it flushes at exit, so what is left goes nowhere. 141 is what a shell reports of
            # SIGPIPE.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(141) from None


class _TerminatedError(KeyboardInterrupt):
    """SIGTERM came: the command ends as at Ctrl-C."""


class _CleanFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        from kpyramid.cli.console import clean

        return clean(super().format(record))


def run_command(act: Callable[[], None], *, verbose: bool, as_json: bool = False) -> None:
    """Runs a command; an error becomes one message and its exit code.

    With `as_json` an error is also an object on stdout, unless the command's own stands there.
    An error that no command expects ends with 1 and its traceback. SIGTERM ends the work and its
    processes, with 143, as Ctrl-C does with 130.
    """
    _output.as_json, _output.is_done = as_json, False
    _start_logging(verbose=verbose)
    try:
        with _interrupt_on_terminate():
            act()
    except (typer.Exit, typer.Abort, TyperException, BrokenPipeError):
        raise
    except PyramidError as e:
        _report_error(str(e), e.exit_code, getattr(e, "report", {}))
        raise typer.Exit(e.exit_code) from e
    except OSError as e:
        _report_error(f"{e}. What was finished is kept; mend it and run the command again.", 8)
        raise typer.Exit(8) from e
    except KeyboardInterrupt as e:
        is_terminated = isinstance(e, _TerminatedError)
        ended, code = ("Ended by SIGTERM", 143) if is_terminated else ("Stopped", 130)
        text = f"{ended}: {e}" if str(e) else f"{ended}. {_RESUMABLE}"
        say(text, err=True)
        _print_error(text, code)
        raise typer.Exit(code) from None
    except Exception as e:
        if isinstance(e, ModuleNotFoundError) and not (e.name or "kpyramid").startswith("kpyramid"):
            _report_error(name_extra(e) + _LESS.get(e.name or "", ""), 2)
            raise typer.Exit(2) from e
        say(traceback.format_exc(), err=True)
        message = (
            f"unexpected {type(e).__name__}: {e}. This is a fault of kpyramid: report it with the "
            f"lines above. {_RESUMABLE}"
        )
        _report_error(message, 1)
        raise typer.Exit(1) from e


_LESS = {
    "duckdb": "; 'kpyramid[export]' is enough to export snapshots",
    **dict.fromkeys(
        ("openai", "httpx2"), "; 'kpyramid[llm]' is enough to ask a model about questions"
    ),
}
"""Smaller extras that suffice where not all of `build` is needed."""


def _start_logging(*, verbose: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_CleanFormatter("%(levelname)s %(message)s"))
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=level, handlers=[handler])
    for chatty in ("openai", "httpx2", "httpcore2"):  # a line per call
        logging.getLogger(chatty).setLevel(logging.WARNING)


@contextmanager
def _interrupt_on_terminate() -> Iterator[None]:
    """Context in which SIGTERM raises in the main thread, so that everything is closed."""

    def interrupt(number: int, frame: object) -> None:
        raise _TerminatedError

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what a signal does
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _report_error(error: str, exit_code: int, report: Mapping[str, object] | None = None) -> None:
    typer.secho("Error: ", fg="red", bold=True, nl=False, err=True)
    say(error, err=True)
    _print_error(error, exit_code, report)


def _print_error(error: str, exit_code: int, report: Mapping[str, object] | None = None) -> None:
    """Prints the error as JSON object, if asked for and the command has not printed its own."""
    if _output.as_json and not _output.is_done:
        print_json({**(report or {}), "error": error, "exit_code": exit_code})


def _finish(result: Result | None) -> None:
    """Prints a command's result, then ends with its fault or exit code."""
    if result is None:
        return
    if _output.as_json:
        print_json(result)
    else:
        print_result(result)
    if isinstance(result.fault, Exception):
        raise result.fault
    if result.fault:
        raise typer.Exit(result.fault)


def say(text: str, *, err: bool = False) -> None:
    """Prints a text for a person, with control characters escaped."""
    from kpyramid.cli.console import clean

    typer.echo(clean(text), err=err)


def print_json(value: object) -> None:
    """Prints the JSON object of a command."""
    _output.is_done = True
    typer.echo(to_json(value))
