"""Generate the reference pages: `tables.md`, `cli.md`, `settings.md`, and `priority.svg`.

The sources are the contracts, the command line, and the dataclasses of the settings.

`python docs/generate.py` writes them, `python docs/generate.py --check` only compares.
"""

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from itertools import groupby
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Le, Lt
from draw_priority import draw_priority

from kpyramid.settings import FIXED, Settings
from kpyramid.storage.contracts import Column, Contract, load_contracts

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
        "This page describes the tables of a snapshot, `tables/NAME.parquet`, sorted by their key.",
        "Spans are character offsets into the document's text, end exclusive. A reference of a",
        "list column applies to every element.",
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
        column.about + (f" Unit: {column.unit}." if column.unit else ""),
    ]
    return _join_cells(cells)


def describe_commands() -> str:
    """The page of all commands, arguments and options, read from the typer app."""
    # Typer's own rendering depends on the terminal; the parameters themselves do not.
    import typer.main

    from kpyramid.cli.app import app

    root = typer.main.get_command(app)
    lines = [
        "# Command line",
        "",
        f"Generated from `kpyramid.cli.app` by `{COMMAND}`; do not edit.",
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


_MEANING = re.compile(r"(?:(?<=^)|(?<=[.;:)] ))((?:`\w+`(?:, | and )?)+): ")
"""Where a docstring begins to say what some of its fields mean: "`one`, `other`: meaning"."""


def describe_settings() -> str:
    """The page of all settings, their kinds and defaults, read from the dataclasses."""
    lines = [
        "# Settings",
        "",
        f"Generated from `kpyramid.settings.Settings` by `{COMMAND}`; do not edit.",
        "",
        "This page lists all settings. The TOML file that `--settings` names has a table per",
        "section. An environment variable `KPYRAMID_<SECTION>__<NAME>` overrides a value, as in",
        "`KPYRAMID_CHUNK__MAX_TOKENS=150`. Unknown names and wrong values are reported together",
        "before any work starts.",
    ]
    sections = {
        name: section
        for name, section in get_type_hints(Settings, include_extras=True).items()
        if _list_settings(name, section)
    }
    lines += ["", ", ".join(f"[{name}](#{name})" for name in sections)]
    for name, section in sections.items():
        lines += ["", f"## {name}", "", *_describe_section(name, section)]
    return "\n".join(lines) + "\n"


def _list_settings(name: str, section: Any) -> list[Field[Any]]:
    """The fields of a section that can be set."""
    return [field for field in fields(section) if f"{name}.{field.name}" not in FIXED]


def _describe_section(name: str, section: Any) -> Iterator[str]:
    lead, meanings = _read_meanings(section)
    hints = get_type_hints(section, include_extras=True)
    yield lead
    yield ""
    yield "| setting | value | default | meaning |"
    yield "|---|---|---|---|"
    for meaning, together in groupby(
        _list_settings(name, section), lambda field: meanings.get(field.name, "")
    ):
        group = list(together)
        if not meaning:
            raise ValueError(
                f"{section.__name__}: no meaning of `{group[0].name}` in its docstring"
            )
        kinds = dict.fromkeys(_name_kind(hints[field.name]) for field in group)
        values = dict.fromkeys(_show_value(_read_default(field)) for field in group)
        names = _quote(tuple(field.name for field in group))
        yield _join_cells([names, "; ".join(kinds), ", ".join(values), meaning])


def _read_default(field: Field[Any]) -> object:
    made = field.default_factory
    return field.default if made is MISSING else made()


def _read_meanings(section: Any) -> tuple[str, dict[str, str]]:
    """What a section is for, and what each of its settings means, from the docstring."""
    text = " ".join(inspect.cleandoc(section.__doc__ or "").split())
    known = {field.name for field in fields(section)}
    lead, *parts = _split_meanings(text, known)
    meanings: dict[str, str] = {}
    for names, meaning in zip(parts[::2], parts[1::2], strict=True):
        meaning = meaning.strip().rstrip(";")
        is_word = not meaning.startswith("f_")
        sentence = meaning[:1].upper() + meaning[1:] if is_word else meaning
        sentence += "" if sentence.endswith(".") else "."
        meanings |= dict.fromkeys(re.findall(r"`(\w+)`", names), sentence)
    return lead.strip(), meanings


def _split_meanings(text: str, known: set[str]) -> list[str]:
    """The lead, then in turn the names that are explained and their explanation."""
    parts, start = [], 0
    for found in _MEANING.finditer(text):
        if known.issuperset(re.findall(r"`(\w+)`", found[1])):
            parts += [text[start : found.start()], found[1]]
            start = found.end()
    return [*parts, text[start:]]


def _name_kind(hint: Any) -> str:
    """A type in words: "integer, 1 or more", "`rules` or `llm`"."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        bounds = [bound for extra in arguments[1:] for bound in getattr(extra, "metadata", [])]
        return ", ".join([_name_kind(arguments[0]), *_name_bounds(bounds)])
    if origin is Literal:
        return " or ".join(f"`{_show_plain(value)}`" for value in arguments)
    if origin in (Union, UnionType):
        return " or ".join(_name_kind(part) for part in arguments if part is not NoneType)
    if origin is tuple:
        inner = arguments[0]
        return "list of tables" if is_dataclass(inner) else f"list of {_name_kind(inner)}s"
    if is_dataclass(hint):
        return "table"
    if origin is dict:
        if is_dataclass(arguments[1]):
            return "table of tables"
        several = get_origin(arguments[1]) in (Union, UnionType)
        return "table of values" if several else "table of numbers"
    return {bool: "true or false", int: "integer", float: "number", str: "string"}[hint]


def _name_bounds(bounds: list[Any]) -> Iterator[str]:
    low = next((b.ge for b in bounds if isinstance(b, Ge)), None)
    above = next((b.gt for b in bounds if isinstance(b, Gt)), None)
    high = next((b.le for b in bounds if isinstance(b, Le)), None)
    below = next((b.lt for b in bounds if isinstance(b, Lt)), None)
    if below is not None:
        high = below - 1
    if above is not None:
        yield f"above {above}" + (f" to {high:,}" if high is not None else "")
    elif low is not None:
        yield f"{low} to {high:,}" if high is not None else f"{low} or more"


def _show_plain(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _show_value(value: object) -> str:
    """A default as TOML has it; empty for a setting that is absent by default."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return "`{}`" if not value else f"`{_show_plain(value)}`"
    return f"`{_show_plain(list(value) if isinstance(value, tuple) else value)}`"


def _quote(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _join_cells(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


PAGES: Mapping[str, Callable[[], str]] = {
    "tables.md": describe_tables,
    "cli.md": describe_commands,
    "settings.md": describe_settings,
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
