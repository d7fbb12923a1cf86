"""The command line: all commands, by group. Results go to stdout, progress and logs to stderr."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import typer

from kpyramid.cli import batch, ontology
from kpyramid.cli.ask import add, ask, conflicts, find, learn, sql
from kpyramid.cli.builds import build, openie, plan, stage
from kpyramid.cli.cache import cache
from kpyramid.cli.doctor import doctor
from kpyramid.cli.evaluate import evaluate
from kpyramid.cli.export import export, import_
from kpyramid.cli.options import Commands, command, say
from kpyramid.cli.proposals import proposals
from kpyramid.cli.refs import (
    diff,
    erase,
    gc,
    log,
    promote,
    report,
    rollback,
    runs,
    snapshots,
    tag,
    verify,
)
from kpyramid.cli.rejects import rejects
from kpyramid.cli.render import Result
from kpyramid.cli.serve import mcp, serve

app = typer.Typer(
    cls=Commands,
    name="kpyramid",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Turns a folder of text into a versioned, checked knowledge pyramid: "
    "ontology, knowledge graph, text.",
    epilog="Exit codes: 0 done, 1 unexpected, 2 usage or settings, 3 input, 4 a gate refused, "
    "5 budget reached, 6 integrity, 7 lost a race, 8 model or storage unreachable.",
)

GROUPS: Mapping[str, Sequence[Callable[..., Result | None]]] = {
    "Build a pyramid": (build, plan, stage, openie, doctor),
    "Ask it, and learn from answers": (ask, find, sql, evaluate, learn),
    "Look at what was built": (
        snapshots,
        log,
        runs,
        report,
        diff,
        verify,
        rejects,
        proposals,
        conflicts,
    ),
    "Move names, clear up": (promote, rollback, tag, gc, erase, cache),
    "Hand it on": (serve, mcp, export, import_),
}
"""The commands in the order of --help; those of a group stand below its name."""

for title, functions in GROUPS.items():
    for each in functions:
        command(app, group=title)(each)

ontologies = typer.Typer(
    name="ontology",
    no_args_is_help=True,
    help="Import an ontology, make one from a word, check one, show its individuals.",
)
command(ontologies)(ontology.import_)
command(ontologies)(ontology.bootstrap)
command(ontologies)(ontology.check)
command(ontologies)(ontology.show)
batches = typer.Typer(
    name="batch",
    no_args_is_help=True,
    help="Ask a model through the Batch API: half the price, replies within a day.\n\n"
    "Call submit and collect in turn, as often as you like, until submit says that all is "
    "answered; then build. Machines that share a cache (setting llm.cache) submit one at a time. "
    "Each request is in one batch at most, and paid replies are stored.",
)
command(batches)(batch.submit)
command(batches)(batch.collect)
checked = typer.Typer(
    name="check", no_args_is_help=True, help="Manage the checks that every build has to pass."
)
command(checked)(add)
for each in (checked, ontologies, batches):
    short = str(each.info.help).partition("\n\n")[0]
    app.add_typer(each, short_help=short, rich_help_panel="Groups of commands")


def _print_version(is_asked: bool) -> None:
    from kpyramid.storage.identity import library_version

    if is_asked:
        say(f"kpyramid {library_version('kpyramid')}")
        raise typer.Exit


@app.callback()
def _accept(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Options that stand before any command."""
