"""Passages with questions about them: `corpus.jsonl` beside `questions.jsonl`, anybody's form."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kpyramid.errors import InputError
from kpyramid.evaluation.questions import EvalQuestion, read_questions
from sets.files import QuestionSet, read_json_lines, read_licence


def read(folder: Path) -> QuestionSet | None:
    """The set, gold titles as ids; nothing when there are no passages with questions.

    Raises:
        InputError: a file is damaged, or a gold id or title is of no row of the corpus.
    """
    corpus, asked = folder / "corpus.jsonl", folder / "questions.jsonl"
    if not (corpus.is_file() and asked.is_file()):
        return None
    rows = [
        {name: str(row[name]) for name in ("id", "title", "text") if row.get(name) is not None}
        for row in read_json_lines(corpus)
    ]
    titled: dict[str, list[str]] = defaultdict(list)
    for line, row in enumerate(rows, 1):
        if not {"id", "text"} <= row.keys():
            raise InputError(f"{corpus}, row {line}: no `id` or no `text`")
        titled[row.get("title", "")].append(row["id"])
    ids = {row["id"] for row in rows}
    hops = [
        tuple(str(hop.get("answer", "")) for hop in row.get("hops") or ())
        for row in read_json_lines(asked)
    ]
    questions = [
        _find_documents(_add_hops(question, answers), ids, titled)
        for question, answers in zip(read_questions(asked), hops, strict=True)
    ]
    return QuestionSet(folder.name, tuple(rows), tuple(questions), read_licence(folder))


def _add_hops(question: EvalQuestion, answers: tuple[str, ...]) -> EvalQuestion:
    """A question with the answers of those that it was composed of as its key entities."""
    if not answers:
        return question
    entities = question.entities or tuple(dict.fromkeys(filter(None, answers)))
    return replace(question, entities=entities, group=question.group or f"{len(answers)} hops")


def _find_documents(
    question: EvalQuestion, ids: Collection[str], titled: Mapping[str, Sequence[str]]
) -> EvalQuestion:
    missing = [i for i in question.gold_documents if i not in ids]
    missing += [t for t in question.gold_titles if t not in titled]
    if missing:
        raise InputError(f"question {question.id}: the corpus has no row {', '.join(missing)}")
    found = (i for title in question.gold_titles for i in titled[title])
    return replace(question, gold_documents=(*question.gold_documents, *found), gold_titles=())
