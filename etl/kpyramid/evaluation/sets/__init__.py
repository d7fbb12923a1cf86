"""Benchmark sets as questions and corpora, one module per family.

A folder is recognised by its files and their fields, never by its name.
"""

import importlib
from pathlib import Path

from kpyramid.errors import InputError
from kpyramid.evaluation.questions import QuestionSet

_FAMILIES = (
    *("passages", "corporate", "pubmedqa", "paths", "text2kgbench", "abstracts"),
    *("statements", "names", "graphs"),
)


def read_set(folder: str | Path) -> QuestionSet:
    """The questions and the corpus of a benchmark set.

    Raises:
        InputError: the folder is of no form that is known, a file is not what its form demands, or
            nothing sensible can be asked of it.
    """
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"{place}: no such folder; name the folder of a benchmark set")
    for family in _FAMILIES:
        found: QuestionSet | None = importlib.import_module(f"{__name__}.{family}").read(place)
        if found is not None:
            if not found.questions:
                raise InputError(f"{place}: no question can be made of it: {found.left_out}")
            return found
    raise InputError(
        f"{place}: no set that is known; give questions.jsonl beside corpus.jsonl, or a file of "
        "questions"
    )


__all__ = ["read_set"]
