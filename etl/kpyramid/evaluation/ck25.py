"""Questions with SPARQL in the form of the TEXT2SPARQL challenge, and when an answer is right.

An answer is right when it has the same values as the gold query's, as sets over all variables:
an F1 of 1 in the challenge's own measure (`text2sparql evaluate`, set_F of pytrec_eval).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kpyramid.errors import InputError

_FIELD = re.compile(r"^(?P<indent> *)(?P<dash>- )?(?P<key>[\w-]+):(?: +(?P<value>.*?))? *$")


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question in English with the query that answers it."""

    id: str
    text: str
    sparql: str


def read_questions(path: Path) -> list[GoldQuestion]:
    """The questions of a file: a list of `id`, `question.en` and `query.sparql`.

    Only the YAML that such files use is read: one mapping per dash, one field per line, block
    texts by `|`.

    Raises:
        InputError: it cannot be read, or a question lacks one of the three.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(f"{path}: {e}; give the questions as a YAML file") from e
    rows: list[dict[str, str]] = []
    at = 0
    while at < len(lines):
        match = _FIELD.match(lines[at])
        at += 1
        if not match or match["key"] not in {"id", "en", "sparql"}:
            continue
        if match["key"] == "id" and not match["dash"]:
            continue  # the data set's own
        value = (match["value"] or "").strip()
        if value in {"|", "|-", ">", ">-"}:
            block, at = _read_block(lines, at, len(match["indent"]))
            value = block
        elif len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1].replace("''", "'")
        if match["key"] == "id":
            rows.append({})
        if rows:
            rows[-1][match["key"]] = value
    for number, row in enumerate(rows, 1):
        missing = {"id", "en", "sparql"} - row.keys()
        if missing:
            raise InputError(
                f"{path}, question {row.get('id', number)}: no {', '.join(sorted(missing))}"
            )
    if not rows:
        raise InputError(f"{path}: no questions; give a list of id, question.en and query.sparql")
    return [GoldQuestion(row["id"], row["en"], row["sparql"]) for row in rows]


def _read_block(lines: list[str], at: int, indent: int) -> tuple[str, int]:
    block = []
    while at < len(lines) and (
        not lines[at].strip() or len(lines[at]) - len(lines[at].lstrip(" ")) > indent
    ):
        block.append(lines[at])
        at += 1
    return "\n".join(block) + "\n", at


def collect_values(rows: Iterable[Mapping[str, str]]) -> frozenset[str]:
    """All values of all variables of a result; of an ASK, its truth."""
    return frozenset(value for row in rows for value in row.values())
