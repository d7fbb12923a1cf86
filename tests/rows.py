"""Rows of data files, each of which is a case of one parametrised test."""

import json
from functools import cache
from pathlib import Path
from typing import Any

ROWS = Path(__file__).parent / "rows"


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


def _freeze(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _freeze(part) for name, part in value.items()}
    return tuple(map(_freeze, value)) if isinstance(value, list) else value
