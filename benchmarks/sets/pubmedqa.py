"""PubMedQA (Jin et al., EMNLP 2019): yes, no or maybe, from the parts of an abstract."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kpyramid.errors import InputError
from kpyramid.evaluation.questions import EvalQuestion
from sets.files import QuestionSet, read_json, read_licence

_FIELDS = frozenset(("QUESTION", "CONTEXTS", "final_decision"))
_DECISIONS = ("yes", "no", "maybe")


def read(folder: Path) -> QuestionSet | None:
    """The set, or nothing when no file holds abstracts with a decision."""
    found = [(p, read_json(p, default={})) for p in sorted(folder.glob("*.json"))]
    rows = [(path, data) for path, data in found if _is_set(data)]
    if not rows:
        return None
    abstracts = {str(key): row for _, data in rows for key, row in data.items()}
    for key, row in abstracts.items():
        if not isinstance(row, Mapping) or row.get("final_decision") not in _DECISIONS:
            raise InputError(f"{rows[0][0]}: {key} has no final_decision of yes, no or maybe")
    return QuestionSet(
        folder.name,
        tuple({"id": k, "text": "\n\n".join(row["CONTEXTS"])} for k, row in abstracts.items()),
        tuple(_read_one(key, row) for key, row in abstracts.items()),
        read_licence(folder),
    )


def _is_set(data: Any) -> bool:
    first = next(iter(data.values()), None) if isinstance(data, dict) else None
    return isinstance(first, Mapping) and frozenset(first) >= _FIELDS


def _read_one(key: str, row: Mapping[str, Any]) -> EvalQuestion:
    # Their conclusion is not in the corpus: it states the decision.
    return EvalQuestion(
        id=key,
        text=str(row["QUESTION"]),
        kind="yesno",
        answers=((str(row["final_decision"]),),),
        candidates=_DECISIONS,
        gold_documents=(key,),
        evidence=(str(row["LONG_ANSWER"]),) if row.get("LONG_ANSWER") else (),
    )
