"""Generate `tables.md` from the contracts, `cli.md` from the command line, and `priority.svg`.

`python docs/generate.py` writes them, `python docs/generate.py --check` only compares.
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from draw_priority import draw_priority

from kpyramid.contracts import Column, Contract, load_contracts

DOCS = Path(__file__).parent
COMMAND = "make docs"
COMMON = ("help",)
"""Options that every command line has."""


def describe_tables() -> str:
    """The page of all table contracts."""
    lines = [
        "# Tables",
        "",
        f"Generated from `schemas/*.toml` by `{COMMAND}`; do not edit.",
        "",
        "A snapshot holds every table as `tables/NAME.parquet`, sorted by its key. Spans are",
        "character offsets into the document's text, end exclusive. A reference of a list column",
        "holds for every element.",
    ]
    contracts = load_contracts()
    lines += ["", ", ".join(f"[{name}](#{name})" for name in contracts)]
    for contract in contracts.values():
        lines += ["", *_describe_table(contract)]
    return "\n".join(lines) + "\n"


def _describe_table(contract: Contract) -> Iterator[str]:
    yield f"## {contract.table}"
    yield ""
    yield f"{contract.about} Version {contract.version}, key {_quote(contract.key)}."
    for group in contract.exactly_one:
        yield f"Exactly one of {_quote(group)} is set."
    yield ""
    yield "| column | type | null | references | meaning |"
    yield "|---|---|---|---|---|"
    for column in contract.columns:
        yield _describe_column(column)


def _describe_column(column: Column) -> str:
    cells = [
        f"`{column.name}`",
        f"`{column.type}`",
        "yes" if column.nullable else "",
        f"`{column.references}`" if column.references else "",
        column.about,
    ]
    return _join_cells(cells)


def describe_commands() -> str:
    """The page of all commands, arguments and options, read from the typer app."""
    # Typer's own rendering depends on the terminal; the parameters themselves do not.
    import typer.main

    from kpyramid.cli import app

    root = typer.main.get_command(app)
    lines = [
        "# Command line",
        "",
        f"Generated from `kpyramid.cli` by `{COMMAND}`; do not edit.",
        "",
        *_describe_command("kpyramid", root),
    ]
    for path, command in _list_commands("kpyramid", root):
        lines += ["", f"## {path}", "", *_describe_command(path, command)]
    return "\n".join(lines) + "\n"


def _list_commands(path: str, group: Any) -> Iterator[tuple[str, Any]]:
    """Every command below a group, a group's own commands after it."""
    commands: Mapping[str, Any] = getattr(group, "commands", {})
    for name, command in commands.items():
        if not command.hidden:
            yield f"{path} {name}", command
            yield from _list_commands(f"{path} {name}", command)


def _describe_command(path: str, command: Any) -> Iterator[str]:
    # Typer carries its own copy of click, whose classes it does not export: hence Any.
    context = command.context_class(command, info_name=path)
    if command.help:
        yield inspect.cleandoc(command.help.split("\f")[0]).strip()
        yield ""
    yield f"`{' '.join([path, *command.collect_usage_pieces(context)])}`"
    shown = [p for p in command.params if p.name not in COMMON]
    records = [record for p in shown if (record := p.get_help_record(context))]
    if records:
        yield ""
        yield "| argument or option | meaning |"
        yield "|---|---|"
    for name, meaning in records:
        text = re.sub(r"<(?=[A-Za-z])", "&lt;", " ".join(meaning.split()))
        yield _join_cells([f"`{name}`", text])
    if command.epilog:
        yield ""
        yield command.epilog


def _quote(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _join_cells(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


PAGES: Mapping[str, Callable[[], str]] = {
    "tables.md": describe_tables,
    "cli.md": describe_commands,
    "priority.svg": draw_priority,
}


def find_stale() -> list[str]:
    """The pages that differ from what would be generated now."""
    return [
        name
        for name, describe in PAGES.items()
        if not (DOCS / name).is_file() or (DOCS / name).read_text("utf-8") != describe()
    ]


def main(arguments: list[str]) -> int:
    """Writes the pages, or with `--check` says which are stale; returns the exit code."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python docs/generate.py [--check]\n")
        return 2
    stale = find_stale()
    if arguments:
        if stale:
            sys.stderr.write(f"stale in docs/: {', '.join(stale)}; run `{COMMAND}`\n")
        return int(bool(stale))
    for name in stale:
        (DOCS / name).write_text(PAGES[name](), "utf-8")
        sys.stderr.write(f"wrote docs/{name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
