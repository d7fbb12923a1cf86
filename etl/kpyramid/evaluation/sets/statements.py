"""Sets of statements: CaRB's gold tuples as open questions, MINE's facts as queries.

CaRB (Bhardwaj et al., EMNLP 2019) writes a predicate in full, so that what follows "Who or what"
asks for its subject. MINE (Mo et al., KGGen, 2025) lists facts of each essay; a fact is true of no
other essay, so it is a query whose right document is its essay.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kpyramid.errors import InputError
from kpyramid.evaluation.facts import fold_words, holds_run
from kpyramid.evaluation.questions import EvalQuestion, QuestionSet
from kpyramid.evaluation.sets.files import find_by_fields, read_json_lines, read_licence

_PRONOUNS = frozenset(
    "i you he she it we they him her them this that these those who which what one there".split()
)
_NOT_FINITE = re.compile(r"(?:to|not|by|of|in|on|at|for|from|with|as|and|or)\b|\S+ing\b|\S+ly\b")
_FEWEST_WORDS, _MOST_WORDS = 3, 25
"""Words after "Who or what": fewer fit any sentence, more repeat it."""
_QUOTES = str.maketrans({"`": '"'})


def read(folder: Path) -> QuestionSet | None:
    """The set, or nothing when there are neither gold tuples nor essays with facts."""
    tuples = sorted(folder.glob("**/gold/*.tsv"))
    if tuples:
        return _read_tuples(folder, tuples[0])
    essays = find_by_fields(folder, "*.jsonl", "id", "text", "facts")
    return _read_essays(folder, essays[0]) if essays else None


def _read_tuples(folder: Path, path: Path) -> QuestionSet:
    corpus: dict[str, str] = {}
    answers: dict[str, dict[str, str]] = defaultdict(dict)
    left_out: Counter[str] = Counter()
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) < 3:
            raise InputError(f"{path}, line {number}: fewer than three fields")
        sentence, predicate, subject, *rest = fields
        key = corpus.setdefault(sentence, f"s{len(corpus):04}")
        said = " ".join((predicate, *rest))
        reason = _find_fault(predicate, subject, said)
        if reason:
            left_out[reason] += 1
        else:
            answers[f"Who or what {_join_tokens(said)}?"].setdefault(subject, key)
    questions: list[EvalQuestion] = []
    for text, found in answers.items():
        if len(found) > 1:
            left_out["several tuples differ in their subject only"] += 1
            continue
        ((subject, key),) = found.items()
        questions.append(
            EvalQuestion(
                id=f"{key}-{len(questions)}",
                text=text,
                kind="open",
                answers=((_join_tokens(subject),),),
                gold_documents=(key,),
            )
        )
    return QuestionSet(
        folder.name,
        tuple({"id": key, "text": sentence} for sentence, key in corpus.items()),
        tuple(questions),
        read_licence(folder),
        "open questions made from the gold tuples, each for the subject of its predicate",
        dict(left_out),
    )


def _find_fault(predicate: str, subject: str, said: str) -> str:
    """Why a tuple makes no question; empty when it does."""
    if not subject or subject.split()[0].lower() in _PRONOUNS:
        return "its subject is a pronoun"
    if _NOT_FINITE.match(predicate) or not predicate[:1].islower():
        return "its predicate has no finite verb in front"
    if predicate in ("is", "are", "was", "were", "be"):
        return "its predicate says nothing"
    if not _FEWEST_WORDS <= len(said.split()) <= _MOST_WORDS:
        return "it is too short to be found, or repeats the sentence"
    if holds_run(fold_words(said), fold_words(subject)):
        return "the question names the answer"
    return ""


def _join_tokens(text: str) -> str:
    """Words and signs that a tokenizer has parted, together again."""
    plain = text.translate(_QUOTES).replace('""', '"').replace("''", '"')
    plain = re.sub(r"\s+(?=[,.;:?!%)]|'\w|n't)", "", plain)
    return re.sub(r"(?<=[$(])\s+", "", plain)


def _read_essays(folder: Path, path: Path) -> QuestionSet:
    essays: dict[str, Mapping[str, Any]] = {str(row["id"]): row for row in read_json_lines(path)}
    said: Counter[str] = Counter()
    for row in essays.values():
        if not isinstance(row["facts"], list):
            raise InputError(f"{path}: essay {row['id']} has no list of facts")
        said.update(map(str, row["facts"]))
    shared = sum(count for count in said.values() if count > 1)
    return QuestionSet(
        folder.name,
        tuple(
            {"id": key, "title": str(row.get("topic", "")), "text": str(row["text"])}
            for key, row in essays.items()
        ),
        tuple(
            EvalQuestion(f"{key}-{n}", str(fact), "retrieval", gold_documents=(key,))
            for key, row in essays.items()
            for n, fact in enumerate(row["facts"])
            if said[str(fact)] == 1
        ),
        read_licence(folder),
        "each fact is a query for the essay that states it: MINE has no questions, and every fact "
        "is true, so there is no other answer to give",
        {"several essays have this fact": shared} if shared else {},
    )
