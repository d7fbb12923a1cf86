"""Questions with SPARQL in the form of the TEXT2SPARQL challenge, and when an answer is right.

An answer is right when it has the same values as the gold query's, as sets over all variables:
an F1 of 1 in the challenge's own measure (`text2sparql evaluate`, set_F of pytrec_eval).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kpyramid.errors import InputError


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question in English with the query that answers it."""

    id: str
    text: str
    sparql: str


def read_questions(path: Path) -> list[GoldQuestion]:
    """The questions of a YAML file: a list of `id`, `question.en` and `query.sparql`.

    Raises:
        InputError: it cannot be read, PyYAML is missing, or a question lacks one of the three.
    """
    try:
        import yaml
    except ImportError as e:
        raise InputError(f"{path}: YAML needs PyYAML; run `pip install 'kpyramid[dev]'`") from e
    try:
        data: object = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        raise InputError(f"{path}: {e}; give the questions as a YAML file") from e
    rows = data.get("questions") if isinstance(data, Mapping) else data
    if not isinstance(rows, list) or not rows:
        raise InputError(f"{path}: no questions; give a list of id, question.en and query.sparql")
    return [_read_question(row, f"{path}, question {n}") for n, row in enumerate(rows, 1)]


def _read_question(row: object, where: str) -> GoldQuestion:
    identifier = _pick(row, "id")
    if not isinstance(identifier, str | int):
        raise InputError(f"{where}: no id")
    texts = {name: _pick(row, *name.split(".")) for name in ("question.en", "query.sparql")}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise InputError(f"{where} (id {identifier}): no text as {name}; give one, in quotes")
    return GoldQuestion(str(identifier), str(texts["question.en"]), str(texts["query.sparql"]))


def _pick(value: object, *path: str) -> object:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def collect_values(rows: Iterable[Mapping[str, str]]) -> frozenset[str]:
    """All values of all variables of a result; of an ASK, its truth."""
    return frozenset(value for row in rows for value in row.values())
