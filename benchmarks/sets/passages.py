"""Passages with questions about them: `corpus.jsonl` beside `questions.jsonl`, anybody's form."""

from pathlib import Path

from kpyramid.evaluation.questions import read_set
from sets.files import QuestionSet, read_json_lines, read_licence


def read(folder: Path) -> QuestionSet | None:
    """The set, or nothing when there are no passages with questions."""
    if not all((folder / name).is_file() for name in ("corpus.jsonl", "questions.jsonl")):
        return None
    questions = read_set(folder)
    rows = (
        {name: str(row[name]) for name in ("id", "title", "text") if row.get(name) is not None}
        for row in read_json_lines(folder / "corpus.jsonl")
    )
    return QuestionSet(folder.name, tuple(rows), tuple(questions), read_licence(folder))
