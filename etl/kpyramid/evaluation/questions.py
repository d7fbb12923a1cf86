"""Questions with their gold answers, read from files under any field names."""

import csv
import io
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from kpyramid.errors import InputError

Kind = Literal["choice", "open", "yesno", "values", "retrieval"]
KINDS: tuple[str, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class EvalQuestion:
    """A question with its gold answer.

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
        """The first spelling of each gold value."""
        return tuple(value[0] for value in self.answers)


def find_same(options: Iterable[str]) -> tuple[str, str] | None:
    """The first two options that are equal but for case and spaces: answers would merge them."""
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
    `entities`, `evidence`, `group`, `kind`. In a table a list is a JSON list or parted by "|".

    Raises:
        InputError: it cannot be read, or has rows that are no question: all are named with their
            lines and reasons.
    """
    path = Path(path)
    text = _read_text(path)
    suffix = path.suffix.lower()
    if suffix not in (".jsonl", ".csv", ".tsv"):
        raise InputError(f"{path}: give questions as .jsonl, .csv or .tsv")
    questions: list[EvalQuestion] = []
    problems: list[tuple[int, str]] = []
    places: dict[str, int] = {}
    marks = {".csv": ",", ".tsv": "\t"}
    read = _read_table(text, marks[suffix]) if suffix in marks else _read_lines(text)
    for line, row in read:
        try:
            if isinstance(row, str):
                raise InputError(row)
            question = _parse_row({str(k).strip().lower(): v for k, v in row.items() if k}, line)
        except InputError as e:
            # A question without an id has its line's number, which is said already.
            problems.append((line, str(e).removeprefix(f"question {line}: ")))
            continue
        if question.id in places:
            problem = f"id {question.id!r} was given in line {places[question.id]}"
            problems.append((line, problem))
        places.setdefault(question.id, line)
        questions.append(question)
    if problems:
        shown = [f"  line {line}: {why}" for line, why in sorted(problems)[:_MOST_PROBLEMS]]
        if more := len(problems) - len(shown):
            shown.append(f"  and {more} more")
        listed = "\n".join(shown)
        raise InputError(
            f"{path}: rows that are no question: {len(problems)}\n{listed}\nMend them and run again"
        )
    if not questions:
        raise InputError(f"{path}: no questions; give one a line")
    return questions


# Rows of a user's file as questions, under any of the known field names.

Row = Mapping[str, object]

_NAMES: Mapping[str, str] = tomllib.loads(
    Path(__file__).with_name("fields.toml").read_text("utf-8")
)
"""The names of each field in users' files."""
_LETTERS = 26
VERDICTS = {"yes": "yes", "no": "no", "maybe": "maybe", "true": "yes", "false": "no"}
"""What an answer of one word says to a question for yes or no."""
_ANSWERED = set(KINDS) - {"retrieval"}
_MOST_PROBLEMS = 20


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as e:
        raise InputError(f"{path}: cannot be read: {e.strerror or e}") from e
    except UnicodeDecodeError as e:
        raise InputError(f"{path}: not UTF-8 at byte {e.start}; save it as UTF-8") from e


def _read_lines(text: str) -> Iterator[tuple[int, Row | str]]:
    for line, content in enumerate(text.split("\n"), 1):
        if not content.strip():
            continue
        try:
            row = json.loads(content)
        except (ValueError, RecursionError) as e:
            yield line, f"no JSON: {e}"
            continue
        yield line, row if isinstance(row, dict) else "no JSON object; give one with `question`"


def _read_table(text: str, delimiter: str) -> Iterator[tuple[int, Row | str]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        before = reader.line_num if reader.fieldnames else 0
        for row in reader:
            line, before = before + 1, reader.line_num
            if None in row:
                yield line, "more fields than the header names; quote fields that hold commas"
            elif any(row.values()):
                yield line, {name: _split_cell(value) for name, value in row.items()}
    except csv.Error as e:
        yield reader.line_num, f"no table: {e}"


def _split_cell(value: str | None) -> object:
    """A cell as a list, if it is a JSON list."""
    if value and value.lstrip().startswith("["):
        with suppress(ValueError):
            return json.loads(value)
    return value


def _parse_row(row: Row, line: int) -> EvalQuestion:
    options = _read_options(row)
    texts = list(options.values())
    name = _text_of(_pick(row, "id"))
    kind = _text_of(_pick(row, "kind")).lower()
    documents = _list_texts(_pick(row, "documents"))
    titles = _list_texts(_pick(row, "titles"))
    text = _text_of(_pick(row, "text"))
    if not text:
        raise InputError(f"no question; name the field {' or '.join(_NAMES['text'].split()[:3])}")
    answers: list[tuple[str, ...]]
    if texts and kind != "retrieval":
        answers = _match_gold(row, options)
    else:
        answers = _read_answers(row, kind)
    if not answers and (kind in _ANSWERED or not (documents or titles)):
        raise InputError(
            "no answer; name the field `answer` or `answers`, give `options` with `gold`, or "
            "`gold_doc_ids` for the documents that are right"
        )
    return EvalQuestion(
        id=name or str(line),
        text=text,
        kind=kind if kind in KINDS else _guess_kind(texts, answers),  # type: ignore[arg-type]
        answers=tuple(answers),
        candidates=tuple(texts),
        gold_documents=documents,
        gold_titles=titles,
        entities=_list_texts(_pick(row, "entities")),
        evidence=_list_texts(_pick(row, "evidence")),
        group=_text_of(_pick(row, "group")),
    )


def _guess_kind(options: list[str], answers: list[tuple[str, ...]]) -> str:
    if options:
        return "choice"
    if not answers:
        return "retrieval"
    if len(answers) == 1:
        return "yesno" if answers[0][0].lower() in VERDICTS else "open"
    return "values"


def _pick(row: Row, field: str) -> object:
    for name in _NAMES[field].split():
        value = row.get(name)
        if value is not None and value not in ("", [], {}):
            return value
    return None


def _text_of(value: object) -> str:
    """A text, or a number or a truth value as text; empty for anything else."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value).strip() if isinstance(value, str | int | float) else ""


def _list_texts(value: object) -> tuple[str, ...]:
    """The texts of a list; a text is split at "|"."""
    if isinstance(value, str):
        value = value.split("|")
    elif not isinstance(value, list):
        value = [value]
    return tuple(dict.fromkeys(text for item in value if (text := _text_of(item))))


def _read_options(row: Row) -> dict[str, str]:
    """The options by label: their own labels, or letters in order."""
    value = _pick(row, "options")
    if isinstance(value, Mapping):
        options = [(str(label).strip(), _text_of(text)) for label, text in value.items()]
    else:
        listed = value.split("|") if isinstance(value, str) else value
        texts = [_text_of(item) for item in listed] if isinstance(listed, list) else []
        letters = (chr(ord("A") + n) if n < _LETTERS else str(n) for n in range(len(texts)))
        options = list(zip(letters, texts, strict=True))
    if any(not text for _, text in options):
        raise InputError("an option is empty")
    if same := find_same(text for _, text in options):
        raise InputError(f"options {same[0]!r} and {same[1]!r} are the same")
    return dict(options)


def _match_gold(row: Row, options: Mapping[str, str]) -> list[tuple[str, ...]]:
    """The right options, which the row gives as texts or labels.

    In a list of spellings the first is the option.
    """
    gold = _pick(row, "gold")
    gold = _pick(row, "answers") if gold is None else gold
    if gold is None:
        raise InputError("nothing says which option is right; give `gold`")
    by_text: dict[str, tuple[str, ...]] = {}
    for item in gold if isinstance(gold, list) else [gold]:
        first, *others = item if isinstance(item, list) and item else [item]
        text = _match_option(_text_of(first), options)
        spellings = (spelling for alias in others if (spelling := _text_of(alias)))
        by_text[text] = tuple(dict.fromkeys((text, *spellings)))
    return list(by_text.values())


def _match_option(gold: str, options: Mapping[str, str]) -> str:
    """The option with a text or a label, whatever its case; texts take precedence."""
    texts = options.values()
    folded = [text for text in texts if text.casefold() == gold.casefold()]
    labelled = [text for label, text in options.items() if label.casefold() == gold.casefold()]
    if gold in texts:
        return gold
    if len(matches := folded or labelled) == 1:
        return matches[0]
    raise InputError(
        f"gold {gold!r} is none of the options {', '.join(texts)}; give its text or its letter, "
        "of several a list"
    )


def _read_answers(row: Row, kind: str) -> list[tuple[str, ...]]:
    """The spellings of each gold value."""
    value = _pick(row, "answers")
    aliases = _list_texts(_pick(row, "aliases"))
    if value is None:
        value = _pick(row, "gold")
    if value is None:
        return []
    items = value if isinstance(value, list) else [value]
    if all(isinstance(item, list) for item in items):
        answers = [_list_texts(item) for item in items]
    else:
        texts = list(dict.fromkeys(_text_of(item) for item in items))
        answers = [tuple(texts)] if kind == "open" else [(text,) for text in texts]
    if len(answers) == 1:
        return [tuple(dict.fromkeys((*answers[0], *aliases)))]
    if aliases:
        raise InputError("several answers and `aliases`; give `answers` as lists of spellings")
    return answers
