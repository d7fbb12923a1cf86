"""The errors a user can meet; each names what went wrong, where, and what to do next.

And imports of what may not be installed.
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
    """The next call might pass the budget; what was paid for is kept."""

    exit_code = 5


class IntegrityError(PyramidError):
    """Stored bytes are not what their hash or their contract says."""

    exit_code = 6


class ConflictError(PyramidError):
    """Another writer was first; who tries again goes on after it."""

    exit_code = 7


class OvertakenError(ConflictError):
    """What a run built is out of date: HEAD is at a later order, or a document was erased."""


class EndpointError(PyramidError):
    """A model or a store cannot be used; it may come back by itself."""

    exit_code = 8


class RefusedError(EndpointError):
    """An endpoint refuses until somebody mends the key, the quota, the model or the address."""

    report: ClassVar[Mapping[str, object]] = {"refused": True}
    """Goes into what --json says, as exit code 8 is that of every endpoint."""


def name_extra(missing: ModuleNotFoundError) -> str:
    """What to install for a module that is not there: the base install only reads snapshots."""
    extra = {"lancedb": "export", "duckdb": "duckdb"}.get(str(missing.name), "build")
    return f"this needs {missing.name}, which is not installed: pip install 'kpyramid[{extra}]'"


@contextmanager
def without(library: str) -> Iterator[None]:
    """Imports go as if a library were not installed that others load wherever it is.

    It can be imported afterwards. Where it is loaded already nothing is gained or lost.
    """
    held = sys.modules.setdefault(library, None)  # type: ignore[arg-type]  # its import fails
    try:
        yield
    finally:
        if held is None:
            sys.modules.pop(library, None)
