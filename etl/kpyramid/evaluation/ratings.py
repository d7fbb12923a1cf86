"""What people think of answers: ratings from a CSV file."""

import csv
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from kpyramid.errors import InputError

Ratings = Mapping[tuple[str, str], list[float]]
"""The scores that people gave each answer, by question and arm, in the order of raters."""

FIELDS: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "question_id", "id"),
    "arm": ("arm", "strategy", "system"),
    "rater": ("rater", "annotator", "judge"),
    "score": ("score", "rating"),
}
"""Under which names a column may stand; all are needed, and others are passed over."""
LOW, HIGH = 1.0, 5.0
"""The scale."""
_SURPLUS = "\n"
"""Where the reader puts fields beyond the header: no column is called so."""
_SHOWN = 20
"""Problems that one message lists; of more it gives the number."""


def read_ratings(path: Path, questions: Collection[str], arms: Collection[str]) -> Ratings:
    """The ratings of a CSV file with a header, separated by comma, semicolon or tab.

    Raises:
        InputError: the file cannot be read, a column is missing, or rows are wrong: an unknown
            question or arm, a rater missing, a score that is no number or outside the scale, the
            same answer rated twice by one rater. All rows are checked before.
    """
    rows, columns = _read_rows(path)
    ratings: dict[tuple[str, str, str], float] = {}
    problems: list[str] = []
    seen: dict[tuple[str, str, str], int] = {}
    for line, row in rows:
        values = {name: (row.get(column) or "").strip() for name, column in columns.items()}
        found = list(_list_problems(values, frozenset(questions), frozenset(arms)))
        if row.get(_SURPLUS):
            found.append("more fields than the header; put quotes around text with the separator")
        key = values["question"], values["arm"], values["rater"]
        if not found and key in seen:
            found.append(f"the rater's second score of this answer, after line {seen[key]}")
        problems += [f"line {line}: {problem}" for problem in found]
        if not found:
            seen[key] = line
            ratings[key] = float(values["score"])
    if problems:
        more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
        raise InputError("\n".join([f"{path}: correct these rows", *problems[:_SHOWN], *more]))
    if not ratings:
        raise InputError(f"{path}: no ratings below the header; give one a line")
    by_answer: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (question, arm, _), score in sorted(ratings.items()):
        by_answer[question, arm].append(score)
    return dict(by_answer)


def _read_rows(path: Path) -> tuple[list[tuple[int, dict[str, str | None]]], dict[str, str]]:
    """The rows with their line numbers, and under which name each field stands."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = file.readline()
            file.seek(0)
            mark = max(",;\t", key=header.count)
            reader = csv.DictReader(file, delimiter=mark, restkey=_SURPLUS, strict=True)
            names = {name.strip().lower(): name for name in reader.fieldnames or () if name}
            columns = {
                field: names[known[0]]
                for field, spellings in FIELDS.items()
                if (known := [name for name in spellings if name in names])
            }
            missing = [field for field in FIELDS if field not in columns]
            if missing:
                raise InputError(
                    f"{path}: no column {', '.join(missing)}; the first line names the columns "
                    "question, arm, rater and score"
                )
            return [(reader.line_num, row) for row in reader], columns
    except (OSError, UnicodeDecodeError, csv.Error) as e:
        raise InputError(f"{path}: {e}; give the ratings as a CSV file in UTF-8") from e


def _list_problems(
    values: Mapping[str, str], questions: Collection[str], arms: Collection[str]
) -> Iterable[str]:
    if values["question"] not in questions:
        yield f"question {values['question']!r} is not among those asked"
    if values["arm"] not in arms:
        yield f"arm {values['arm']!r} is not among {', '.join(sorted(arms))}"
    if not values["rater"]:
        yield "no rater; a letter or a number will do"
    try:
        score = float(values["score"])
    except ValueError:
        yield f"score {values['score']!r} is not a number"
        return
    if not LOW <= score <= HIGH:
        yield f"score {values['score']} is outside the scale from {LOW:g} to {HIGH:g}"
