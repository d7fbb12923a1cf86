"""The errors a user can meet: what went wrong, where, and what to do next.

Also imports of libraries that may be missing.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar


class PyramidError(Exception):
    """Base of all expected errors; `exit_code` is what the command line ends with."""

    exit_code = 1


class SettingsError(PyramidError):
    """The settings are wrong; the message lists every problem found, not only the first."""

    exit_code = 2


class InputError(PyramidError):
    """The corpus, or something else the user named, cannot be used."""

    exit_code = 3


class GateError(PyramidError):
    """A quality gate refused to move the ref; the snapshot is kept, `report` is the run's."""

    exit_code = 4

    def __init__(self, message: str, report: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.report = dict(report or {})


class BudgetError(PyramidError):
    """The next call might exceed the budget; paid replies are kept."""

    exit_code = 5


class IntegrityError(PyramidError):
    """Stored bytes do not match their hash or their contract."""

    exit_code = 6


class ConflictError(PyramidError):
    """Another writer was first; a retry goes on after it."""

    exit_code = 7


class OvertakenError(ConflictError):
    """A run's result is out of date: HEAD is at a later order, or a document was erased."""


class EndpointError(PyramidError):
    """A model or a store cannot be used; the cause may pass."""

    exit_code = 8


class RefusedError(EndpointError):
    """An endpoint refuses until the key, the quota, the model or the address is corrected."""

    report: ClassVar[Mapping[str, object]] = {"refused": True}
    """Goes into what --json says, as exit code 8 is that of every endpoint."""


FINAL = (
    *(SettingsError, InputError, GateError, BudgetError),
    *(IntegrityError, OvertakenError, RefusedError, ModuleNotFoundError),
)
"""Errors that the same again would repeat; what to do is in the message."""


def name_extra(missing: ModuleNotFoundError) -> str:
    """The extra to install for a missing module: the base install only reads snapshots."""
    extra = {"lancedb": "export", "duckdb": "duckdb"}.get(str(missing.name), "build")
    return f"this needs {missing.name}, which is not installed: pip install 'kpyramid[{extra}]'"


@contextmanager
def without(library: str) -> Iterator[None]:
    """Context in which a library that others load if they can counts as missing.

    It can be imported afterwards. If it is loaded already, nothing changes.
    """
    held = sys.modules.setdefault(library, None)  # type: ignore[arg-type]  # its import fails
    try:
        yield
    finally:
        if held is None:
            sys.modules.pop(library, None)
