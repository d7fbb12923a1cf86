"""What all commands share: their options, running them, printing JSON."""

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kpyramid.errors import InputError, PyramidError

if TYPE_CHECKING:
    from kpyramid.query.pyramid.scopes import Scope

CorpusArgument = Annotated[
    Path,
    typer.Argument(
        help="A folder, or one file: .txt .md .html .jsonl .csv .parquet. Hidden files are left."
    ),
]
WarehouseOption = Annotated[
    str,
    typer.Option(envvar="KPYRAMID_WAREHOUSE", help="Folder for snapshots, refs, runs and caches."),
]
RefOption = Annotated[str, typer.Option(help="Name that points to the newest snapshot.")]
SettingsOption = Annotated[
    Path | None,
    typer.Option(
        help="TOML file with sections [ingest] [chunk] [extract] [cascade] [llm] [embed] [induce] "
        "[complete] [condense] [index] [publish] [query] [evaluate]; variables "
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
    from kpyramid.query.pyramid.scopes import Scope

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


_said: list[bool] = []
"""Whether this command has printed its JSON object."""


def run_command(act: Callable[[], None], *, verbose: bool, as_json: bool = False) -> None:
    """Runs a command; an expected error becomes one message and its exit code.

    With `as_json` an error is also an object on stdout, unless the command's own stands there.
    """
    _said.clear()
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=level, stream=sys.stderr, format="%(levelname)s %(message)s")
    for chatty in ("openai", "httpx2", "httpcore2"):  # a line per call
        logging.getLogger(chatty).setLevel(logging.WARNING)
    try:
        act()
    except PyramidError as e:
        _tell(str(e), e.exit_code, as_json, getattr(e, "report", {}))
        raise typer.Exit(e.exit_code) from e
    except BrokenPipeError:
        # The reader, such as `head`, has what it wanted. Python would complain once more when it
        # flushes at exit, so what is left goes nowhere. 141 is what a shell reports of SIGPIPE.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(141) from None
    except OSError as e:
        message = f"{e}. What was finished is kept; mend it and run the command again."
        _tell(message, 8, as_json, {})
        raise typer.Exit(8) from e
    except KeyboardInterrupt:
        typer.echo("Stopped. What was finished is kept; run the command again to go on.", err=True)
        raise typer.Exit(130) from None


def _tell(error: str, exit_code: int, as_json: bool, report: Mapping[str, object]) -> None:
    """The message, and with `as_json` the object, unless the command's own stands there."""
    typer.secho("Error: ", fg="red", bold=True, nl=False, err=True)
    typer.echo(error, err=True)
    if as_json and not _said:
        print_json({**report, "error": error, "exit_code": exit_code})


def print_json(value: object) -> None:
    """The one object of a command."""
    _said.append(True)
    typer.echo(json.dumps(value, ensure_ascii=False))
