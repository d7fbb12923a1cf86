"""The one renderer: a result in both forms; and every option of every command is explained."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

from kpyramid.cli.app import app
from kpyramid.cli.options import print_json
from kpyramid.cli.render import Result, lay_out, name_values, print_result
from tests.commands import run


def make_sample(**also: Any) -> Result:
    """All that the renderer knows."""
    return name_values(
        name="a name",
        sure=True,
        share=0.12346,
        nothing=None,
        rows={"facts": 1200, "documents": 3},
        table=[{"id": "a b" * 60, "n": n, "empty": None} for n in range(25)],
        ids=["x"],
        json_only=("ids",),
        **also,
    )


def test_words_leave_out_what_is_empty_and_cut_long(capsys: pytest.CaptureFixture[str]) -> None:
    print_result(make_sample(notes=["Do this next."]))
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == [
        "Name   a name",
        "Sure   yes",
        "Share  0.1235",
        "Rows   facts 1,200, documents 3",
    ]
    assert lines[-2:] == ["  and 5 more; --json lists all", "Do this next."]
    assert max(map(len, lines)) < 120
    print_json(make_sample(fault=6))
    printed = json.loads(capsys.readouterr().out)
    assert printed["ids"] == ["x"] and not {"fault", "notes"} & printed.keys()


def test_a_table_of_no_rows_is_nothing() -> None:
    assert lay_out([]) == lay_out([{"a": None}]) == []


def list_commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from list_commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def test_help_explains_every_option_of_at_most_36_commands() -> None:
    commands = dict(list_commands(typer.main.get_command(app), "kpyramid"))
    assert 20 < len(commands) <= 36
    unexplained = [
        f"{path} {option.name}"
        for path, command in commands.items()
        for option in command.params
        if not getattr(option, "help", None)
    ]
    assert not unexplained
    assert all(command.help.split("\n")[0].endswith(".") for command in commands.values())
    told = run("--help").output
    assert "..." not in told.replace("[ARGS]...", ""), "a sentence is cut"
