"""The one renderer: every result in both forms; and every option of every command is explained."""

import json
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

import pytest
import typer.main

from kpyramid.cli.app import app
from kpyramid.cli.options import print_json
from kpyramid.cli.render import HIDDEN, JSON_ONLY, Result, lay_out, print_result

OF_OBJECTS = {"Values", "Built", "Planned", "Asked", "Learned", "Evaluated", "Compared", "Located"}
"""Results of objects that a test elsewhere makes."""
RESULTS = [each for each in Result.__subclasses__() if each.__name__ not in OF_OBJECTS]
PLAIN = (("str", "some words"), ("int", 3), ("bool", True), ("float", 0.5), ("Mapping", {}))


def fill(kind: type[Result]) -> Result:
    """A result of that kind with a value in each field, None where it may be."""
    values: dict[str, Any] = {}
    for one in fields(kind):
        if one.default is MISSING and one.default_factory is MISSING:
            name = one.type if isinstance(one.type, str) else getattr(one.type, "__name__", "")
            said = str(one.type)
            given = next((value for word, value in PLAIN if name == word), None)
            values[one.name] = given if given is not None or "None" in said else []
            if "Mapping" in said.partition("[")[0]:
                values[one.name] = {}
    return kind(**values)


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_every_result_is_one_object_and_words(
    kind: type[Result], capsys: pytest.CaptureFixture[str]
) -> None:
    result = fill(kind)
    print_json(result)
    printed = json.loads(capsys.readouterr().out)
    hidden = {one.name for one in fields(kind) if not one.metadata.get("json", True)}
    assert printed.keys() >= {one.name for one in fields(kind)} - hidden - {"notes"}
    print_result(result)
    assert "Traceback" not in capsys.readouterr().out


@dataclass(frozen=True, kw_only=True)
class Sample(Result):
    """All that the renderer knows."""

    name: str = "a name"
    sure: bool = True
    share: float = 0.12346
    nothing: str | None = None
    rows: dict[str, int] = field(default_factory=lambda: {"facts": 1200, "documents": 3})
    table: list[dict[str, Any]] = field(
        default_factory=lambda: [{"id": "a b" * 60, "n": n, "empty": None} for n in range(25)]
    )
    ids: list[str] = field(default_factory=list, metadata=JSON_ONLY)
    inner: int = field(default=7, metadata=HIDDEN)


def test_words_leave_out_what_is_empty_and_cut_what_is_long(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_result(Sample(ids=["x"], notes=["Do this next."]))
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == [
        "Name   a name",
        "Sure   yes",
        "Share  0.1235",
        "Rows   facts 1,200, documents 3",
    ]
    assert lines[-2:] == ["  and 5 more; --json lists all", "Do this next."]
    assert max(map(len, lines)) < 120
    assert Sample(ids=["x"]).to_dict()["ids"] == ["x"]
    assert not {"inner", "fault", "notes"} & Sample().to_dict().keys()


def test_a_table_of_no_rows_is_nothing() -> None:
    assert lay_out([]) == lay_out([{"a": None}]) == []


def list_commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from list_commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def test_help_explains_every_option_of_at_most_30_commands() -> None:
    commands = dict(list_commands(typer.main.get_command(app), "kpyramid"))
    assert 20 < len(commands) <= 30
    unexplained = [
        f"{path} {option.name}"
        for path, command in commands.items()
        for option in command.params
        if not getattr(option, "help", None)
    ]
    assert not unexplained
    assert all(command.help.split("\n")[0].endswith(".") for command in commands.values())
