"""Recorded extractions (entities and triples of a passage) as replies to the merged task."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kpyramid.errors import InputError
from kpyramid.extraction.cascade.evidence import list_words, names
from kpyramid.extraction.cascade.windows import MERGED, note_triples
from kpyramid.keys import JsonValue, canonical_json
from kpyramid.llm.cache import Answer, DamagedLine, read_recording
from kpyramid.llm.task import Request, key_request


@dataclass(frozen=True, slots=True)
class Recorded:
    """A model's recorded extraction of a passage; rows may be any JSON."""

    text: str
    entities: tuple[object, ...]
    triples: tuple[object, ...]


class Recording:
    """Recorded extractions, found by the text of a chunk: the passage that contains it."""

    def __init__(self, passages: Iterable[Recorded]) -> None:
        self._passages: dict[str, Recorded] = {}
        for passage in passages:
            self._passages.setdefault(passage.text.strip(), passage)

    def find(self, text: str) -> Recorded | None:
        """The passage that is the text, else the first that contains it."""
        wanted = text.strip()
        if not wanted:
            return None
        if wanted in self._passages:
            return self._passages[wanted]
        return next((p for whole, p in self._passages.items() if wanted in whole), None)

    def answer(self, request: Request) -> str | None:
        """The reply to a merged task; None for other tasks and for texts that are not recorded."""
        if request.task != MERGED.name:
            return None
        passage = self.find(request.subject)
        return None if passage is None else write_reply(passage, request.subject)


def open_recording(path: Path, model: Mapping[str, JsonValue]) -> Answer:
    """The replies of provider `replay`: from an exported cache, or from recorded extractions.

    `model`: of `describe_model`; an export has replies to requests of the same model only.

    Raises:
        InputError: the file cannot be read, or has neither format.
    """
    if _holds_extractions(path):
        return Recording(read_extractions(path)).answer
    replies = {}
    for entry in read_recording(path):
        if isinstance(entry, DamagedLine):
            raise InputError(
                f"{path}, line {entry.number}: {entry.detail}; llm.recording takes lines of an "
                'exported cache, or of {"text", "entities", "triples"}'
            )
        replies[entry.key] = entry.response
    return lambda request: replies.get(key_request(request, model))


def read_extractions(path: Path) -> Iterator[Recorded]:
    """The rows of a JSON lines file: `text`, `entities`, `triples`.

    Raises:
        InputError: a line is no such row; names the first.
    """
    for number, line in enumerate(_read_text(path).splitlines(), 1):
        if line.strip():
            yield _read_row(line, f"{path}, line {number}")


def write_reply(passage: Recorded, text: str) -> str:
    """A valid reply of the merged task about a window of the passage.

    A triple cites the smallest run of the window's sentences that names head and tail; one
    without such a run cites none, and a row that is no triple is unchanged, so that the check
    of replies rejects them with the right reason.
    """
    words = list_words(text)
    entities = [e for e in passage.entities if isinstance(e, str) and names(words, list_words(e))]
    rows = (read_triple(row) or (_show(row),) for row in passage.triples)
    return canonical_json(note_triples(text, entities, rows, uncited=0)).decode()


def read_triple(row: object) -> tuple[str, str, str] | None:
    """A recorded row's head, relation and tail; None if it is no triple of texts."""
    if not isinstance(row, Sequence) or isinstance(row, str) or len(row) != 3:
        return None
    head, relation, tail = row
    if not isinstance(head, str) or not isinstance(relation, str) or not isinstance(tail, str):
        return None
    return (head, relation, tail) if head.strip() and relation.strip() and tail.strip() else None


def _show(row: object) -> str:
    """A row that is no triple, as text."""
    return json.dumps(row, ensure_ascii=False) if row not in ("", None) else "an empty row"


def _holds_extractions(path: Path) -> bool:
    if path.suffix == ".gz":
        return False
    try:
        with path.open(encoding="utf-8") as lines:
            row = json.loads(next((line for line in lines if line.strip()), ""))
    except OSError as e:
        raise InputError(f"{path}: {e}; llm.recording names a recording's file") from e
    except ValueError:
        return False
    return isinstance(row, dict) and "triples" in row


def _read_row(line: str, place: str) -> Recorded:
    try:
        row: dict[str, Any] = json.loads(line)
        text, entities, triples = row["text"], row["entities"], row["triples"]
        if isinstance(text, str) and isinstance(entities, list) and isinstance(triples, list):
            return Recorded(text, tuple(entities), tuple(triples))
        fault = "text is no text, or entities or triples no list"
    except (ValueError, KeyError, TypeError) as e:
        fault = f"{type(e).__name__}: {e}"
    raise InputError(f'{place}: {fault}; a row is {{"text", "entities", "triples"}}')


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(f"{path}: {e}; llm.recording names a recording's file") from e
