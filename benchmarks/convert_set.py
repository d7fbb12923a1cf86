"""A public benchmark set as questions and a corpus that `kpyramid evaluate` and `build` read.

Writes `questions.jsonl` and `corpus.jsonl` into the folder `--out`: gold questions as the set has
them, or made of its gold facts. The forms that are known are those of `sets/`, told apart by
their files and their fields. A set that is a graph has no corpus: `note` says what stands in for
it. `left_out` counts by reason what no question was made of.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from options import explain_faults, print_figures, read_options
from sets import (
    bc5cdr,
    canon,
    carb,
    ck25,
    mine,
    musique,
    passages,
    pathquestion,
    pubmedqa,
    rdf,
    text2kgbench,
)
from sets.files import QuestionSet, write_questions

from kpyramid.errors import InputError

FOLDER = "musique100"
FORMS = (
    *(passages, musique, ck25, pubmedqa, pathquestion),
    *(text2kgbench, bc5cdr, carb, mine, canon, rdf),
)
"""Any RDF file makes a folder one of the last form, so that form is tried last."""


def read_set(folder: Path) -> QuestionSet:
    """The questions and the corpus of a set.

    Raises:
        InputError: the folder is of no form that is known, a file is not what its form demands, or
            nothing sensible can be asked of it.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; name the folder of a benchmark set")
    for form in FORMS:
        found: QuestionSet | None = form.read(folder)
        if found is not None:
            if not found.questions:
                raise InputError(f"{folder}: no question can be made of it: {found.left_out}")
            return found
    raise InputError(f"{folder}: no set that is known; give one of benchmarks/sets/")


def write_set(found: QuestionSet, out: Path) -> None:
    """Writes the two files; a corpus only where there is one."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "questions.jsonl").write_text(write_questions(found.questions), "utf-8")
    if found.corpus:
        lines = (json.dumps(dict(row), ensure_ascii=False) + "\n" for row in found.corpus)
        (out / "corpus.jsonl").write_text("".join(lines), "utf-8")


def convert(data: Path, limit: int | None, out: Path | None) -> dict[str, Any]:
    """How much was written, if anywhere, and what the set says of itself."""
    with explain_faults(data, "a folder that benchmarks/sets/ reads"):
        found = read_set(data)
    found = replace(found, questions=found.questions[:limit])
    if out is not None:
        write_set(found, out)
    return {
        "questions": len(found.questions),
        "passages": len(found.corpus),
        "licence": found.licence,
        "note": found.note,
        "left_out": found.left_out or {},
    }


def main() -> None:
    options = read_options(
        __doc__,
        folder=FOLDER,
        limit="the first N questions only; the corpus stays whole",
        values={"--out": "a folder for the two files; without it they are only counted"},
    )
    out = Path(options.out) if options.out else None
    print_figures(convert(options.data, options.limit, out), options.json)


if __name__ == "__main__":
    main()
