"""What all commands share: options, running them, printing what they found."""

import inspect
import json
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
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from kpyramid.errors import InputError, PyramidError, SettingsError, name_extra

if TYPE_CHECKING:
    from kpyramid.settings import Settings
    from kpyramid.snapshot.view import Scope
    from kpyramid.storage.layout import Warehouse


CorpusArgument = Annotated[
    str,
    typer.Argument(
        help="A folder, here or at s3://bucket/prefix, or one file: .txt .md .html .jsonl .csv "
        ".parquet, and with the extra `files` .pdf .docx .pptx .epub .rst. Hidden files are left."
    ),
]
WarehouseOption = Annotated[
    str,
    typer.Option(
        envvar="KPYRAMID_WAREHOUSE",
        help="Folder or s3://bucket/prefix for snapshots, refs, runs and caches.",
    ),
]
RefOption = Annotated[str, typer.Option(help="Name that points to the newest snapshot.")]
SnapshotOption = Annotated[
    str,
    typer.Option(
        "--ref", "--snapshot", help="The ref, the id or the folder (./copy) of a snapshot."
    ),
]
SettingsOption = Annotated[
    Path | None,
    typer.Option(
        help="TOML file with sections [ingest] [chunk] [extract] [cascade] [llm] [embed] [induce] "
        "[complete] [condense] [index] [publish] [query] [evaluate] [engine]; variables "
        "KPYRAMID_<SECTION>__<NAME> override it."
    ),
]
WorkersOption = Annotated[
    int,
    typer.Option(
        min=1,
        max=256,
        help="Processes; any number gives the same bytes.",
        show_default="number of processors",
    ),
]
EngineOption = Annotated[
    Literal["processes", "ray"] | None,
    typer.Option(
        help="Where texts are extracted and embedded: on processes of this machine, or on a Ray "
        "cluster, whose processors count instead of --workers. The bytes are the same.",
        show_default="that of the settings, else processes",
    ),
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        help="HOST:PORT or ray://HOST:PORT of the Ray cluster's head; implies --engine ray.",
        show_default="that of the settings, else the cluster of this machine",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Exactly one JSON object on stdout.")]
VerboseOption = Annotated[bool, typer.Option("-v", "--verbose", help="A log line per stage.")]
QuietOption = Annotated[bool, typer.Option("-q", "--quiet", help="No progress bars.")]
OrderOption = Annotated[
    str | None,
    typer.Option(
        help="Logical key that a ref only moves forward by, such as the ISO date a backfill is "
        "for: compared as text. By default the time of the build."
    ),
]
ShrinkOption = Annotated[
    bool,
    typer.Option(
        "--allow-shrink", help="Publish a corpus that is empty or far smaller than the last one."
    ),
]
AccessOption = Annotated[
    list[str] | None,
    typer.Option(
        help="A label that the reader has; again for each. Documents with labels that the "
        "reader lacks are in no part of what is shown."
    ),
]
EverythingOption = Annotated[
    bool, typer.Option("--everything", help="See documents whatever their labels.")
]

DEFAULT_WAREHOUSE = "warehouse/data"
WORKERS = os.cpu_count() or 1


Backend = Literal["rules", "llm"]
"""Who takes a decision; here, so that --help need not load the modules that name it."""


def read_scope(
    access: Sequence[str] | None,
    everything: bool,
    documents: Sequence[str] | None = None,
    where: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
) -> "Scope":
    """What the options of a command let be seen: the documents without labels unless they say more.

    Raises:
        InputError: `where` is not `field=value`, or all labels and some are given.
    """
    from kpyramid.snapshot.view import Scope

    if everything and access:
        raise InputError("--everything sees all labels; leave --access out")
    pairs = [pair.partition("=") for pair in where or ()]
    if wrong := [field for field, is_there, _ in pairs if not field or not is_there]:
        raise InputError(f"--where {wrong[0]!r}: say field=value, such as --where year=1931")
    return Scope(
        access=None if everything else frozenset(access or ()),
        documents=frozenset(documents or ()),
        metadata=frozenset((field, value) for field, _, value in pairs),
        classes=frozenset(classes or ()),
    )


def command(
    app: typer.Typer, name: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a function a command that `run_command` runs, with --json and --verbose.

    A function that has one of these parameters itself handles that option itself. Some parameters
    are made of options, which stand in their place: `place`, the warehouse; `loaded`, the settings;
    `scope`, what is seen.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(function).parameters
        made = {name: _MADE[name] for name in own if name in _MADE}
        added = {n: kind for n, kind in _EVERYWHERE.items() if n not in own}
        options = [option for one in own.values() for option in _list_options(one)]
        options += [_make_option(n, kind, False) for n, kind in added.items()]

        @wraps(function)
        def run(**given: Any) -> None:
            as_json = given["as_json"]
            verbose = {n: given.pop(n) for n in added}.get("verbose", False)

            def act() -> None:
                _refuse_addresses(given.values())
                for name, (make, parts) in made.items():
                    given[name] = make(*(given.pop(part) for part in parts))
                function(**given)

            run_command(act, verbose=verbose, as_json=as_json)

        run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
        run.__annotations__ = {}  # those of the options stand in the signature
        app.command(name)(run)
        return function

    return register


def _open_place(warehouse: str) -> "Warehouse":
    from kpyramid.storage.layout import open_warehouse

    return open_warehouse(warehouse)


def _load(path: Path | None) -> "Settings":
    from kpyramid.settings import load_settings

    return load_settings(path)


def _make_option(name: str, kind: Any, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _list_options(parameter: inspect.Parameter) -> list[inspect.Parameter]:
    """The options that a parameter is made of; of another the parameter itself."""
    if parameter.name not in _MADE:
        return [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)]
    parts = _MADE[parameter.name][1]
    return [_make_option(name, kind, default) for name, (kind, default) in parts.items()]


_EVERYWHERE = {"as_json": JsonOption, "verbose": VerboseOption}
_MADE: Mapping[str, tuple[Callable[..., object], Mapping[str, tuple[Any, object]]]] = {
    "place": (_open_place, {"warehouse": (WarehouseOption, DEFAULT_WAREHOUSE)}),
    "loaded": (_load, {"settings": (SettingsOption, None)}),
    "scope": (
        read_scope,
        {"access": (AccessOption, None), "everything": (EverythingOption, False)},
    ),
}


def _refuse_addresses(given: Iterable[object]) -> None:
    """Passes when no path of a command is an address, which would name a folder `s3:` here."""
    for path in given:
        if isinstance(path, Path) and re.match("(s3|gs|az):/", str(path)):
            address = str(path).replace("/", "//", 1)
            raise SettingsError(
                f"{address}: here this command takes a path of this machine only, no address; copy "
                "it with a client of the bucket"
            )


@dataclass(slots=True)
class _Output:
    """What stdout is to get: one JSON object or text, and whether the object was printed."""

    as_json: bool = False
    is_done: bool = False


_output = _Output()
_KEPT = "What was finished is kept; run the command again to go on."


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
    """SIGTERM came: the work ends as it does at Ctrl-C."""


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
        ended, code = (
            ("Ended by SIGTERM", 143) if isinstance(e, _TerminatedError) else ("Stopped", 130)
        )
        say(f"{ended}. {_KEPT}", err=True)
        _print_error(f"{ended}. {_KEPT}", code)
        raise typer.Exit(code) from None
    except Exception as e:
        if isinstance(e, ModuleNotFoundError) and not (e.name or "kpyramid").startswith("kpyramid"):
            _report_error(name_extra(e) + _LESS.get(e.name or "", ""), 2)
            raise typer.Exit(2) from e
        say(traceback.format_exc(), err=True)
        message = (
            f"unexpected {type(e).__name__}: {e}. This is a fault of kpyramid: report it with the "
            f"lines above. {_KEPT}"
        )
        _report_error(message, 1)
        raise typer.Exit(1) from e


_LESS = {
    "duckdb": "; 'kpyramid[export]' is enough to export snapshots",
    **dict.fromkeys(
        ("openai", "httpx2"), "; 'kpyramid[llm]' is enough to ask a model about questions"
    ),
}
"""What is enough where not all of the extra `build` is needed."""


def _start_logging(*, verbose: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_CleanFormatter("%(levelname)s %(message)s"))
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=level, handlers=[handler])
    for chatty in ("openai", "httpx2", "httpcore2"):  # a line per call
        logging.getLogger(chatty).setLevel(logging.WARNING)


@contextmanager
def _interrupt_on_terminate() -> Iterator[None]:
    """While it lasts SIGTERM raises where the main thread stands, so that all is closed."""

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
    """The error as the JSON object, if one is asked for and the command has not printed its own."""
    if _output.as_json and not _output.is_done:
        print_json({**(report or {}), "error": error, "exit_code": exit_code})


def print_found(found: object, in_words: Callable[[], object] | Iterable[str]) -> None:
    """Prints what a command found: with --json as its one object, else in words.

    `in_words`: the lines, or a function that prints them.
    """
    if _output.as_json:
        print_json(found)
    elif callable(in_words):
        in_words()
    else:
        for line in in_words:
            say(line)


def name_first(lines: Sequence[str], most: int, hint: str = "; --json lists all") -> Iterator[str]:
    """The first of these lines, indented, and how many more there are."""
    yield from (f"  {line}" for line in lines[:most])
    if len(lines) > most:
        yield f"  and {len(lines) - most} more{hint}"


def count_things(number: int, noun: str) -> str:
    """A number with its noun: "1 row", "2 rows"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def say(text: str, *, err: bool = False) -> None:
    """Prints a text for a person; what a terminal would obey in it is written out."""
    from kpyramid.cli.console import clean

    typer.echo(clean(text), err=err)


def print_json(value: object) -> None:
    """The one object of a command.

    What a terminal would obey is escaped, and so is half a surrogate pair, which a raw reply of a
    model may hold and no UTF-8 can.
    """
    from kpyramid.cli.console import CONTROL

    _output.is_done = True
    text = json.dumps(value, ensure_ascii=False)
    typer.echo(CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text))
