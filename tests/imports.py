"""What the files of the package import, each read once in a process."""

import ast
from functools import cache
from pathlib import Path

ETL = Path(__file__).parent.parent / "etl"


@cache
def parse(path: Path) -> ast.Module:
    """The file's syntax; for reading only."""
    return ast.parse(path.read_text("utf-8"))


@cache
def list_imports(path: Path) -> tuple[str, ...]:
    """The dotted names that a file imports, wherever in the file."""
    names: list[str] = []
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return tuple(names)


@cache
def locate_module(dotted: str) -> Path | None:
    """The file of a module or package of ours."""
    path = ETL.joinpath(*dotted.split("."))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


@cache
def find_file(dotted: str) -> Path | None:
    """The file of the package that an imported name leads to."""
    while dotted:
        if path := locate_module(dotted):
            return path
        dotted = dotted.rpartition(".")[0]
    return None
