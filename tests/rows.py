"""Rows of data files, each of which is a case of one parametrised test."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

from kpyramid.ontology.schema import Schema, parse_schema

ROWS = Path(__file__).parent / "rows"
Test = TypeVar("Test", bound=Callable[..., Any])


@cache
def _read(module: str) -> dict[str, list[Any]]:
    loaded: dict[str, list[Any]] = json.loads((ROWS / f"{module}.json").read_bytes())
    return loaded


def read_rows(name: str) -> list[Any]:
    """The rows `TEST` of `tests/rows/MODULE.json`, for a name MODULE.TEST.

    A row is one value, or a list with a value per parameter; lists are tuples.
    """
    module, _, test = name.partition(".")
    return [_freeze(row) for row in _read(module)[test]]


def read_bodies(name: str) -> list[Any]:
    """The same rows as JSON has them, for a test of what reads JSON: lists stay lists."""
    module, _, test = name.partition(".")
    return _read(module)[test]


def read_text(name: str) -> str:
    """A file of `tests/texts`."""
    return (ROWS.parent / "texts" / name).read_text("utf-8")


def read_turtle(name: str) -> str:
    """An ontology of `tests/ontologies`."""
    return (ROWS.parent / "ontologies" / f"{name}.ttl").read_text("utf-8")


def read_ontology(name: str) -> Schema:
    """The same, parsed."""
    return parse_schema(read_turtle(name), source=f"{name}.ttl")


def each_row(names: str, rows: str = "") -> Callable[[Test], Test]:
    """Parametrises a test with rows; without a name those of its own module and name."""

    def parametrize(test: Test) -> Test:
        own = f"{test.__module__.rpartition('.')[2]}.{test.__name__}".replace("test_", "", 1)
        made = read_rows(rows or own.replace(".test_", "."))
        marked: Test = pytest.mark.parametrize(names, made)(test)
        return marked

    return parametrize


def _freeze(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _freeze(part) for name, part in value.items()}
    return tuple(map(_freeze, value)) if isinstance(value, list) else value
