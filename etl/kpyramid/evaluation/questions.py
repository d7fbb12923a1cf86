"""Questions with their gold answers, from a file, or from a folder with their corpus.

`read_questions` reads a file of JSON lines or CSV whose fields have any of the usual names,
`read_set` a folder with such a file beside the corpus that it asks about. A file is read as a
whole: all that is wrong with it is said at once, each row by its line.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from kpyramid.errors import InputError

Kind = Literal["choice", "open", "yesno", "values", "retrieval"]
KINDS: tuple[str, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class EvalQuestion:
    """A question and what is right.

    `answers` holds each gold value with its other spellings, the first the usual one; of a choice
    question the usual ones are among `candidates`. `gold_documents` are ids of the corpus's rows
    (what stands after '#' in `documents.source`) or whole sources; `gold_titles` are titles, for
    files that name nothing else. `entities` are the key entities that a good answer names,
    `evidence` the sentences that state it. `group` is what figures may be broken down by: number
    of hops, property, pattern of relations.
    """

    id: str
    text: str
    kind: Kind
    answers: tuple[tuple[str, ...], ...] = ()
    candidates: tuple[str, ...] = ()
    gold_documents: tuple[str, ...] = ()
    gold_titles: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    group: str = ""

    def __post_init__(self) -> None:
        for problem in self._list_problems():
            raise InputError(f"question {self.id}: {problem}")

    def _list_problems(self) -> Iterable[str]:
        if not self.text.strip():
            yield "it has no text"
        if self.kind not in KINDS:
            yield f"kind {self.kind!r}: there are {', '.join(KINDS)}"
        if any(not value or not all(name.strip() for name in value) for value in self.answers):
            yield "an answer is empty"
        if self.kind == "retrieval":
            if not (self.gold_documents or self.gold_titles):
                yield "nothing says which documents are right"
        elif not self.answers:
            yield "nothing says what is right"
        if self.kind == "choice":
            if len(self.candidates) < 2:
                yield "a choice question needs two options at least"
            if same := find_same(self.candidates):
                yield f"its options {same[0]!r} and {same[1]!r} are the same"
            for value in self.answers:
                if value and value[0] not in self.candidates:
                    yield f"the right answer {value[0]!r} is not among the options"

    @property
    def values(self) -> tuple[str, ...]:
        """The usual spelling of each gold value."""
        return tuple(value[0] for value in self.answers)


def find_same(options: Iterable[str]) -> tuple[str, str] | None:
    """The first two options that are one but for case and spaces: whoever answers merges them."""
    seen: dict[str, str] = {}
    for option in options:
        plain = " ".join(option.split()).casefold()
        if plain in seen:
            return seen[plain], option
        seen[plain] = option
    return None


def read_questions(path: str | Path) -> list[EvalQuestion]:
    """The questions of a file: JSON lines (.jsonl), or a table (.csv, .tsv) with a header.

    Fields, by any of their names: `id` or `question_id`; `question`, `text` or `query`; `answer`,
    and `aliases` for its other spellings; `answers` for several values (each may be a list of
    spellings; with kind "open" they are spellings of one); `options`, `choices` or `candidates`
    with `gold` as texts, letters or numbers; `gold_doc_ids`, `gold_passages` or `gold_titles`;
    `entities`, `evidence`, `group`, `kind`; `hops` with the answer of each stands for `group` and
    `entities` of a composed question. In a table a list is a JSON list or parted by "|", and
    options may stand in columns of their own (A, B, C or option_a, option_b).

    Raises:
        InputError: it cannot be read, or has rows that are no question: all are named with their
            lines and reasons.
    """
    from kpyramid.evaluation.question_rows import parse_rows

    return parse_rows(Path(path))


def read_set(folder: str | Path) -> list[EvalQuestion]:
    """The questions of a folder's `questions.jsonl`, gold titles as ids of its `corpus.jsonl`.

    Raises:
        InputError: a file is missing or damaged, or a gold id or title is of no row of the corpus.
    """
    from kpyramid.evaluation.question_rows import parse_set

    return parse_set(Path(folder))


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
