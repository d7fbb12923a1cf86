"""Passages and questions about them: `corpus.jsonl` (or `*_corpus.json`) beside the questions.

Two forms: `questions.jsonl` with gold ids or titles, as any user may write it, and MuSiQue's own
(Trivedi et al., TACL 2022) with the paragraphs of each question inside.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kpyramid.errors import InputError
from kpyramid.evaluation.questions import EvalQuestion, QuestionSet, read_questions
from kpyramid.evaluation.sets.files import read_json, read_json_lines, read_licence

MUSIQUE = "MuSiQue CC BY 4.0, Wikipedia text CC BY-SA"


def read(folder: Path) -> QuestionSet | None:
    """The set, or nothing when there are no passages with questions."""
    corpus, questions = folder / "corpus.jsonl", folder / "questions.jsonl"
    if corpus.is_file() and questions.is_file():
        return _read_lines(folder, corpus, questions)
    passages = sorted(folder.glob("*_corpus.json"))
    asked = [p for p in sorted(folder.glob("*.json")) if p not in passages and _is_musique(p)]
    return _read_musique(folder, passages[0], asked) if passages and asked else None


def _read_lines(folder: Path, corpus: Path, questions: Path) -> QuestionSet:
    rows = tuple(
        {name: str(row[name]) for name in ("id", "title", "text") if row.get(name) is not None}
        for row in read_json_lines(corpus)
    )
    for number, row in enumerate(rows, 1):
        if "id" not in row or "text" not in row:
            raise InputError(f"{corpus}, row {number}: no `id` or no `text`")
    found = [
        replace(_find_documents(question, rows), **_describe_hops(row.get("hops")))
        for question, row in zip(read_questions(questions), read_json_lines(questions), strict=True)
    ]
    return QuestionSet(folder.name, rows, tuple(found), read_licence(folder))


def _find_documents(question: EvalQuestion, rows: Sequence[Mapping[str, str]]) -> EvalQuestion:
    """The question with ids for titles.

    Raises:
        InputError: no row has such an id or title.
    """
    ids = {row["id"] for row in rows}
    by_title: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        by_title[row.get("title", "")].append(row["id"])
    missing = [i for i in question.gold_documents if i not in ids]
    missing += [t for t in question.gold_titles if t not in by_title]
    if missing:
        raise InputError(f"question {question.id}: the corpus has no row {', '.join(missing)}")
    titled = (i for title in question.gold_titles for i in by_title[title])
    return replace(question, gold_documents=(*question.gold_documents, *titled), gold_titles=())


def _describe_hops(hops: object) -> dict[str, Any]:
    """The group and the key entities of a question that was composed of several."""
    if not isinstance(hops, list) or not hops:
        return {}
    answers = [str(hop["answer"]) for hop in hops if isinstance(hop, dict) and "answer" in hop]
    return {"group": f"{len(hops)} hops", "entities": tuple(dict.fromkeys(answers))}


def _is_musique(path: Path) -> bool:
    rows = read_json(path, default=[])
    return bool(rows) and isinstance(rows, list) and "question_decomposition" in rows[0]


def _read_musique(folder: Path, corpus: Path, asked: Sequence[Path]) -> QuestionSet:
    passages = read_json(corpus)
    rows = tuple(
        {"id": f"p{n:04}", "title": str(p["title"]), "text": str(p["text"])}
        for n, p in enumerate(passages)
    )
    by_text = {(row["title"], row["text"]): row["id"] for row in rows}
    questions = []
    for path in asked:
        for row in read_json(path):
            gold = [
                by_text[p["title"], p["paragraph_text"]]
                for p in row["paragraphs"]
                if p["is_supporting"] and (p["title"], p["paragraph_text"]) in by_text
            ]
            spellings = (str(row["answer"]), *map(str, row.get("answer_aliases", ())))
            questions.append(
                EvalQuestion(
                    id=str(row["id"]),
                    text=str(row["question"]),
                    kind="open",
                    answers=(tuple(dict.fromkeys(spellings)),),
                    gold_documents=tuple(dict.fromkeys(gold)),
                    **_describe_hops(row["question_decomposition"]),
                )
            )
    return QuestionSet(folder.name, rows, tuple(questions), read_licence(folder) or MUSIQUE)
