"""The form that every benchmark set is brought into, and reading a set's files."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kpyramid.errors import InputError
from kpyramid.evaluation.questions import EvalQuestion


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """A benchmark set: questions, and the corpus that a pyramid is built from to answer them.

    A row of `corpus` has `id`, `text` and perhaps `title`, as `kpyramid build` reads them; where
    it is empty, `note` says what stands in for it. `left_out` counts by reason what no question
    was made of. `licence` is what the set states of itself.
    """

    name: str
    corpus: tuple[Mapping[str, str], ...]
    questions: tuple[EvalQuestion, ...]
    licence: str
    note: str = ""
    left_out: Mapping[str, int] | None = None


def read_json(path: Path, default: Any = None) -> Any:
    """The value of a JSON file, or `default`, where one is given, if it is none.

    Raises:
        InputError: it cannot be read or is no JSON, and there is no default.
    """
    try:
        return json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as e:
        if default is not None:
            return default
        raise InputError(f"{path}: no JSON: {e}; fetch the file again") from e


def read_json_lines(path: Path) -> Iterator[Mapping[str, Any]]:
    """The objects of a file of JSON lines.

    Raises:
        InputError: it cannot be read, or a line is no JSON object; names the line.
    """
    try:
        lines = path.read_text("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(f"{path}: cannot be read: {e}") from e
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as e:
                raise InputError(f"{path}, line {number}: no JSON: {e}") from e
            if not isinstance(row, dict):
                raise InputError(f"{path}, line {number}: no JSON object")
            yield row


def peek_fields(path: Path) -> frozenset[str]:
    """The fields of the first row of a file of JSON lines; none if it is no such file."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            row = json.loads(file.readline())
    except (OSError, ValueError, RecursionError):
        return frozenset()
    return frozenset(row) if isinstance(row, dict) else frozenset()


def find_by_fields(folder: Path, pattern: str, *fields: str) -> list[Path]:
    """The files of JSON lines whose first row has all of some fields, by name."""
    return [p for p in sorted(folder.glob(pattern)) if peek_fields(p) >= frozenset(fields)]


def read_licence(folder: Path) -> str:
    """What a set says of its licence: its ATTRIBUTION.md without the heading; empty without one."""
    try:
        text = (folder / "ATTRIBUTION.md").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
    return " ".join(line for line in text.splitlines() if not line.startswith("#")).strip()


def write_questions(questions: Iterable[EvalQuestion]) -> str:
    """The questions as JSON lines that `read_questions` reads as the same questions."""
    return "".join(
        json.dumps(_list_fields(question), ensure_ascii=False) + "\n" for question in questions
    )


def _list_fields(question: EvalQuestion) -> dict[str, object]:
    fields: dict[str, object] = {
        "id": question.id,
        "question": question.text,
        "kind": question.kind,
        "options": question.candidates,
        "answers": question.answers,
        "gold_doc_ids": question.gold_documents,
        "gold_titles": question.gold_titles,
        "entities": question.entities,
        "evidence": question.evidence,
        "group": question.group,
    }
    return {name: value for name, value in fields.items() if value}
