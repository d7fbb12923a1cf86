"""PathQuestion (Zhou, Huang, Zhu, COLING 2018): questions that a path of facts answers.

Its knowledge base is triples without texts; the corpus has a row for each subject, its triples as
sentences of ours. Paths and patterns of relations repeat: `group` is the pattern, to sample by.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from kpyramid.errors import InputError
from kpyramid.evaluation.questions import EvalQuestion
from sets.files import QuestionSet, read_licence

LICENCE = "facts CC BY 2.5 (Freebase), repository without a licence: for measurement only"
_SMALL = frozenset("of the and in de la von van der den du di da al el zu".split())
_NUMERAL = re.compile(r"[ivx]+", re.ASCII)
_END = "<end>"
_SAID = {
    "cause_of_death": "{0} died of {1}.",
    "location": "{0} lived in {1}.",
    "place_of_birth": "{0} was born in {1}.",
    "place_of_death": "{0} died in {1}.",
    "profession": "{0} worked as {1}.",
    "spouse": "{0} was married to {1}.",
}
"""Relations that a text says by a verb. ("The place of death of X is Y" is no English sentence that
anybody writes, and its reader finds a thing called "death of X" in it.)"""


def read(folder: Path) -> QuestionSet | None:
    """The set, or nothing when there are no questions with paths."""
    asked = [p for p in sorted(folder.glob("PQ*.txt"))]
    bases = [p for p in sorted(folder.glob("*-kb.txt"))]
    if not asked or not bases:
        return None
    said: dict[str, dict[str, None]] = defaultdict(dict)
    for path in bases:
        for subject, relation, value in _read_fields(path, 3):
            said[subject][say_triple(subject, relation, value)] = None
    rows = tuple(
        {"id": key, "title": say_name(key), "text": " ".join(sentences)}
        for key, sentences in sorted(said.items())
    )
    questions = tuple(
        _read_one(f"{path.stem}-{number}", fields, path)
        for path in asked
        for number, fields in enumerate(_read_fields(path, 3), 1)
    )
    return QuestionSet(
        folder.name,
        rows,
        questions,
        read_licence(folder) or LICENCE,
        "the corpus is the knowledge base, its triples worded as sentences",
    )


def read_paths(folder: Path) -> dict[str, tuple[str, ...]]:
    """The names along each question's gold path, by the question's id; one may stand twice."""
    return {
        f"{path.stem}-{number}": tuple(map(say_name, _cut_path(fields[2])[::2]))
        for path in sorted(folder.glob("PQ*.txt"))
        for number, fields in enumerate(_read_fields(path, 3), 1)
    }


def _cut_path(way: str) -> list[str]:
    steps = way.split("#")
    return steps[: steps.index(_END)] if _END in steps else steps


def read_triples(folder: Path) -> list[tuple[str, str, str]]:
    """The distinct triples of the knowledge bases as they are written, sorted."""
    fields = (_read_fields(path, 3) for path in sorted(folder.glob("*-kb.txt")))
    return sorted({(s, r, v) for rows in fields for s, r, v in rows})


def say_triple(subject: str, relation: str, value: str) -> str:
    """A triple as a sentence: by a verb where English has one for it, else as an attribute."""
    said = _SAID.get(relation, f"The {relation.replace('_', ' ')} of {{0}} is {{1}}.")
    return said.format(say_name(subject), say_name(value))


def say_name(name: str) -> str:
    """A name as a text writes it: "ludwig_ii_of_bavaria" becomes "Ludwig II of Bavaria"."""
    words = name.replace("_", " ").split()
    return " ".join(_say_word(word, first=not n) for n, word in enumerate(words)) or name


def _say_word(word: str, *, first: bool) -> str:
    if word in _SMALL and not first:
        return word
    if _NUMERAL.fullmatch(word) and not first:
        return word.upper()
    return "-".join(part[:1].upper() + part[1:] for part in word.split("-"))


def _read_fields(path: Path, count: int) -> Iterator[list[str]]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(f"{path}: cannot be read: {e}") from e
    for number, line in enumerate(lines, 1):
        if line.strip():
            fields = [field.strip() for field in line.split("\t") if field.strip()]
            if len(fields) != count:
                raise InputError(f"{path}, line {number}: {len(fields)} fields, not {count}")
            yield fields


def _read_one(key: str, fields: list[str], path: Path) -> EvalQuestion:
    text, answer, way = fields
    match = re.fullmatch(r"(.+?)\((.+)\)", answer)
    steps = _cut_path(way)
    if match is None or len(steps) < 3 or len(steps) % 2 == 0:
        raise InputError(f"{path}: {key} has no answer(answers/) or no path subject#relation#…")
    entities, relations = steps[::2], steps[1::2]
    values = [value for value in match[2].split("/") if value] or [match[1]]
    for name in sorted(set(entities), key=len, reverse=True):
        text = text.replace(name, say_name(name))
    return EvalQuestion(
        id=key,
        text=re.sub(r"\s+(?=['?.,])", "", text),
        kind="values",
        answers=tuple((say_name(value),) for value in dict.fromkeys(values)),
        gold_documents=tuple(dict.fromkeys(entities[:-1])),
        entities=tuple(say_name(name) for name in dict.fromkeys(entities)),
        group=" > ".join(relations),
    )
