"""What `ask --trace FILE` adds to a file: a question with what was found for it, a line of JSON.

The form of the feedback that `kpyramid learn` reads (WTS, 3.2.2): who knows better fills in `gold`,
the right answer, or `rating`, good or bad. The same question of the same snapshot gives the same
line: no time stands in it.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kpyramid.errors import InputError
from kpyramid.query import Answer, Snapshot
from kpyramid.query.facts import state_facts
from kpyramid.query.types import Outcome


def describe_trace(
    found: Answer, options: Sequence[str], strategy: str, snapshot: Snapshot
) -> dict[str, Any]:
    """An answer as a line of feedback.

    `triples` are the facts of the graph in its context, each once. `depth` is how many times the
    graph was gone into and found anything: WTS's depths, one at most of other strategies.
    """
    # Paths are facts joined by "+"; what describes an entity is none.
    parts = [key for item in found.context if item.layer == "graph" for key in item.key.split("+")]
    keys = [key for key in parts if key.startswith("condensed-")]
    facts = state_facts(dict.fromkeys(keys, 0.0), snapshot)
    depth = sum(
        step.layer == "graph" and step.outcome not in (Outcome.EMPTY, Outcome.SKIPPED)
        for step in found.trace
    )
    return {
        "question": found.question,
        "options": list(options),
        "answer": found.text,
        "gold": None,
        "rating": None,
        "triples": [{"key": fact.condensed_id, "words": fact.statement} for fact in facts],
        "depth": depth,
        "confidence": found.confidence,
        "strategy": strategy,
        "snapshot": snapshot.id,
    }


def check_place(path: Path) -> None:
    """That lines can be added to a file, before anything is asked for them.

    Raises:
        InputError: it is a folder, its folder is none, or it may not be written.
    """
    try:
        with path.open("ab"):
            pass
    except OSError as e:
        raise InputError(f"--trace {path}: no line can be added: {e.strerror}") from e


def append_trace(path: Path, row: dict[str, Any]) -> None:
    """Adds a line as one write, so that several processes may add to the same file.

    Raises:
        InputError: the file cannot be written.
    """
    line = json.dumps(row, ensure_ascii=False, sort_keys=False) + "\n"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, line.encode("utf-8", "backslashreplace"))
        finally:
            os.close(descriptor)
    except OSError as e:
        raise InputError(f"--trace {path}: no line can be added: {e.strerror}") from e
