"""Each fault that a build survives, and each control of the page on security, names its test."""

import ast
import re
import tomllib
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FAULTS: dict[str, list[str]] = tomllib.loads((TESTS / "catalogue.toml").read_text())["faults"]
CONTROLS = re.findall(r"`(test_\w+::\w+)`", (TESTS.parent / "docs" / "security.md").read_text())


@cache
def list_names(module: str) -> frozenset[str]:
    tree = ast.parse((TESTS / f"{module}.py").read_text("utf-8"))
    return frozenset(n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef))


def test_the_catalogue_has_a_row_for_every_fault() -> None:
    assert len(FAULTS) == 36
    assert len(CONTROLS) >= 15


@pytest.mark.parametrize("test", sorted({*CONTROLS, *chain(*FAULTS.values())}))
def test_there_is_such_a_test(test: str) -> None:
    module, _, name = test.partition("::")
    assert name in list_names(module)
