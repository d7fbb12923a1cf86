"""Decisions of a person on proposals: a TOML file to review, edit and put under version control.

Each `[[proposal]]` has `decision` ("accept" or "reject"), `kind` and `label`; an accepted one also
has `domain` (for a class, its parent) and, for a property, `range`. Optional are `phrases`,
`definition`, `note`, `iri`, `inverse_of` and `splits`.
"""

import json
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Generic, Literal, TypeAlias, TypeVar, cast

from pydantic import Field, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from kpyramid.documents.words import lemmatise, normalise_relation
from kpyramid.errors import InputError, SettingsError
from kpyramid.keys import JsonValue
from kpyramid.ontology.literals import DATATYPES
from kpyramid.ontology.names import THING
from kpyramid.ontology.proposals import coin_iri
from kpyramid.ontology.schema import Schema
from kpyramid.ontology.turtle import make_iri
from kpyramid.settings import STRICT, CompleteSettings

Text = Annotated[str, Field(strict=True, min_length=1, pattern=r"\S")]

Suggestion: TypeAlias = tuple[str, str, Sequence[str]]
"""Kind, label and phrases of a proposal."""
T = TypeVar("T")

HEADER = """\
# Decisions on what completion proposed. Each entry is read by every build: what is accepted
# becomes part of the ontology, what is rejected is not proposed again. Labels, definitions and
# phrases may be edited; an entry that is removed is undecided again.
"""
_MARK = "\ufeff"
"""Byte order mark that some editors put before UTF-8; it stays in the file, but is no TOML."""
_COLUMNS = "kind label definition domain range inverse_of splits note".split()
"""Columns of a row of `proposals` that come from an entry unchanged."""
_SHARED = 0.5
"""Least share of common phrases, of the shorter list, from which two proposals are the same: a
cluster that grows or shrinks by some wordings with the next corpus is still the same suggestion."""


@dataclass(frozen=True, slots=True, config=STRICT)
class Decision:
    """One entry of the file."""

    decision: Literal["accept", "reject"]
    kind: Literal["class", "property"]
    label: Text
    iri: Text | None = None
    domain: Text | None = None
    range: Text | None = None
    phrases: tuple[Text, ...] = ()
    definition: str = ""
    inverse_of: Text | None = None
    splits: Text | None = None
    note: str = ""

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> "Decision":
        needed = ("domain", "range") if self.kind == "property" else ("domain",)
        missing = [name for name in needed if getattr(self, name) is None]
        if self.decision == "accept" and missing:
            raise ValueError(f"an accepted {self.kind} needs {' and '.join(missing)}")
        unfit = [n for n in ("range", "inverse_of", "splits") if getattr(self, n) is not None]
        if self.kind == "class" and unfit:
            raise ValueError(f"a class has no {' and no '.join(unfit)}")
        return self

    def is_called(self, label: str) -> bool:
        """Whether it has a label, apart from case and inflection."""
        return _reduce(self.kind, self.label) == _reduce(self.kind, label)

    def is_renamed(self, row: Mapping[str, object]) -> bool:
        """Whether it decides on a row of `proposals`, whatever the row's label."""
        wordings, theirs = (
            {_reduce(self.kind, phrase) for phrase in phrases}
            for phrases in (self.phrases, cast("Sequence[str]", row["phrases"]))
        )
        same_ends = (self.domain, self.range) == (row["domain"], row["range"])
        return self.iri == row["iri"] or (wordings == theirs and same_ends)


class Decisions:
    """The entries of a file in order; `source` names the file in messages."""

    def __init__(self, entries: Sequence[Decision], source: str) -> None:
        self.entries = tuple(entries)
        self.source = source
        self._index = Index(((e.kind, e.label, e.phrases), e) for e in entries)

    def name_place(self, entry: Decision) -> str:
        """The file and number of an entry, for messages."""
        number = self.entries.index(entry) + 1
        return f"{self.source}, entry {number} ({entry.kind} {entry.label!r})"

    def find(self, kind: str, label: str, phrases: Iterable[str]) -> Decision | None:
        """The entry that decides on a proposal; one with the proposal's label comes first."""
        fitting = self._index.find((kind, label, tuple(phrases)))
        by_label = (e for e in fitting if e.is_called(label))
        return next(by_label, fitting[0] if fitting else None)

    def find_written_for(self, row: Mapping[str, object]) -> Decision | None:
        """The entry that was written for a row of `proposals`, not for a similar one.

        It has the row's label; or, unless the row is an alias, its IRI or all its wordings and
        ends.
        """
        suggestion = str(row["kind"]), str(row["label"]), cast("Sequence[str]", row["phrases"])
        fitting = self._index.find(suggestion)
        entries = [entry for entry in fitting if entry.is_called(suggestion[1])]
        entries += [e for e in fitting if row["state"] != "alias" and e.is_renamed(row)]
        return entries[0] if entries else None

    def leave_out(self, rows: Iterable[Mapping[str, object]]) -> "Decisions":
        """The decisions without the entries that accepted any of these rows of `proposals`."""
        known = {(row["kind"], row["label"]) for row in rows}
        accepted = (e.decision == "accept" and (e.kind, e.label) in known for e in self.entries)
        left = (entry for entry, taken in zip(self.entries, accepted, strict=True) if not taken)
        return Decisions([*left], self.source)

    def list_accepted(self, schema: Schema) -> list[dict[str, object]]:
        """The accepted entries as rows for `adopt_proposals`, each with an IRI.

        Raises:
            InputError: an entry does not fit the ontology; names it.
        """
        accepted = [entry for entry in self.entries if entry.decision == "accept"]
        taken = {THING, *schema.term_by_iri}
        known: dict[tuple[str, str, str | None, str | None], str] = {}
        known |= {("class", _reduce("class", c.label), None, None): c.iri for c in schema.classes}
        for p in schema.properties:
            known["property", _reduce("property", p.label), p.domain, p.range] = p.iri
        rows: list[dict[str, object]] = []
        for entry in accepted:
            ends = (entry.domain, entry.range) if entry.kind == "property" else (None, None)
            there = known.get((entry.kind, _reduce(entry.kind, entry.label), *ends))
            iri = entry.iri or coin_iri(entry.kind, entry.label, schema.base, taken)
            if there or iri in taken:
                raise InputError(
                    f"{self.name_place(entry)}: the ontology has <{there or iri}> already; remove "
                    "the entry, or give it another label"
                )
            taken.add(iri)
            row = {name: getattr(entry, name) for name in _COLUMNS}
            phrases = list(entry.phrases or (entry.label,))
            rows.append({**row, "iri": iri, "phrases": phrases, "state": "accepted"})
        self._check(accepted, rows, schema)
        return rows

    def _check(
        self, accepted: Sequence[Decision], rows: Sequence[Mapping[str, object]], schema: Schema
    ) -> None:
        """Raises an InputError for the first entry that refers to an unknown IRI."""
        iris: dict[str, set[str]] = {
            "class": {THING, *schema.class_by_iri},
            "property": {*schema.property_by_iri},
        }
        for row in rows:
            iris[str(row["kind"])].add(str(row["iri"]))
        known = {
            "domain": iris["class"],
            "range": iris["class"] | DATATYPES,
            "inverse_of": iris["property"],
            "splits": iris["property"],
        }
        for entry, row in zip(accepted, rows, strict=True):
            if entry.iri is not None:
                try:
                    make_iri(entry.iri)
                except InputError as e:
                    raise InputError(f"{self.name_place(entry)}: iri: {e}") from e
            for name, choice in known.items():
                value = row[name]
                if value is not None and value not in choice:
                    kind = "class" if name in ("domain", "range") else "property"
                    raise InputError(
                        f"{self.name_place(entry)}: {name} <{value}> is no {kind} of the ontology, "
                        "nor accepted in this file; correct the IRI"
                    )
            if entry.inverse_of is not None and entry.range in DATATYPES:
                raise InputError(
                    f"{self.name_place(entry)}: its values are literals, which have no inverse_of; "
                    "remove that line"
                )

    def describe(self) -> list[dict[str, JsonValue]]:
        """The part of the file that enters content keys: its entries in order, without comments."""
        return [*map(_list_values, self.entries)]


def load_decisions(settings: CompleteSettings) -> Decisions:
    """The decisions file that the settings name; without one there are no entries.

    Raises:
        SettingsError: the file is missing.
        InputError: it cannot be read, or contradicts itself; names the entry.
    """
    if settings.decisions is None:
        return Decisions((), "no decisions file")
    path = Path(settings.decisions)
    if not path.is_file():
        raise SettingsError(
            f"complete.decisions: there is no file {path.absolute()}; correct the setting, or "
            "create it empty: `kpyramid proposals --accept` and `--reject` write into it"
        )
    return parse_decisions(read_text(path), str(path))


def read_text(path: Path) -> str:
    """The text of a file of entries.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(f"{path} cannot be read: {e}; it is TOML in UTF-8") from e


def parse_decisions(text: str, source: str) -> Decisions:
    """The entries of a file's text.

    Raises:
        InputError: it is not TOML, has an unknown name or a wrong value, or has two entries for the
            same kind and label; names the entry.
    """
    entries = read_entries(text, source, "proposal", Decision)
    seen: dict[tuple[str, str], int] = {}
    for number, entry in enumerate(entries, 1):
        key = entry.kind, _reduce(entry.kind, entry.label)
        if key in seen:
            raise InputError(
                f"{source}, entry {number}: {entry.kind} {entry.label!r} is decided on by entry "
                f"{seen[key]} already; remove one of them"
            )
        seen[key] = number
    return Decisions(entries, source)


def read_entries(text: str, source: str, table: str, kind: type[T]) -> list[T]:
    """The entries of a file's text, an array of tables `table`, as objects of `kind`.

    Raises:
        InputError: it is not TOML, or has an unknown name or a wrong value; names the entry.
    """
    try:
        values = tomllib.loads(text.removeprefix(_MARK))
    except tomllib.TOMLDecodeError as e:
        raise InputError(f"{source}: not valid TOML: {e}; correct that line") from e
    given = values.pop(table, [])
    if values or not isinstance(given, list):
        strange = min(values, default=table)
        raise InputError(f"{source}: {strange!r} is not read; each entry is a [[{table}]]")
    entries: list[T] = []
    for number, value in enumerate(given, 1):
        try:
            entries.append(TypeAdapter(kind).validate_python(value))
        except ValidationError as e:
            first = e.errors()[0]
            name = ".".join(str(part) for part in first["loc"])
            message = first["msg"].removeprefix("Value error, ")
            if first["type"] == "unexpected_keyword_argument":
                fields = [str(f).strip("_") for f in kind.__dataclass_fields__]  # type: ignore[attr-defined]
                near = get_close_matches(name, fields, 3, 0.0)
                message = f"is not read; nearest: {', '.join(near)}"
            raise InputError(
                f"{source}, entry {number}: {name + ': ' if name else ''}{message}; correct it"
            ) from e
    return entries


def add_decision(text: str, entry: Decision) -> str:
    """The file's text with one more entry at its end and no other change.

    Raises:
        InputError: its entries are written as an inline array, to which none can be added.
    """
    end = "\r\n" if "\r\n" in text else "\n"
    before = text if text.removeprefix(_MARK).strip() else text + HEADER
    gap = "" if before.endswith("\n") else end
    made = before + gap + end + end.join(_write_entry(entry)) + end
    try:
        tomllib.loads(made.removeprefix(_MARK))
    except tomllib.TOMLDecodeError as e:
        raise InputError(
            "the decisions file has its entries in a list, proposal = [...], to which none can be "
            "added; write each as a [[proposal]] of its own, and run the command again"
        ) from e
    return made


class Index(Generic[T]):
    """Things by their suggestion; only those that share a word are compared."""

    def __init__(self, things: Iterable[tuple[Suggestion, T]]) -> None:
        self._things: list[tuple[T, str, frozenset[str]]] = []
        self._by_word: dict[tuple[str, str], list[int]] = defaultdict(list)
        for suggestion, thing in things:
            label, words = _reduce_all(suggestion)
            for word in words:
                self._by_word[suggestion[0], word].append(len(self._things))
            self._things.append((thing, label, words))

    def find(self, suggestion: Suggestion) -> list[T]:
        """The things with the same suggestion, in the order given.

        The kinds are equal; the labels are too, or half of the shorter list of phrases is shared.
        """
        label, words = _reduce_all(suggestion)
        near = {number for word in words for number in self._by_word.get((suggestion[0], word), ())}
        things = []
        for number in sorted(near):
            thing, name, known = self._things[number]
            if label == name or len(words & known) >= _SHARED * min(len(words), len(known)):
                things.append(thing)
        return things


def _reduce_all(suggestion: Suggestion) -> tuple[str, frozenset[str]]:
    """The label, and the set of label and phrases, without case and inflection."""
    kind, label, phrases = suggestion
    first = _reduce(kind, label)
    return first, frozenset({first, *(_reduce(kind, phrase) for phrase in phrases)})


@lru_cache(maxsize=2**16)
def _reduce(kind: str, words: str) -> str:
    """A wording without case and inflection."""
    if kind == "property":
        return normalise_relation(words).key
    return " ".join(lemmatise(word) for word in words.casefold().split())


def _list_values(entry: Decision) -> dict[str, JsonValue]:
    """The values that are set, in the order of the fields."""
    values = {name: getattr(entry, name) for name in Decision.__dataclass_fields__}
    return {name: value for name, value in values.items() if value not in (None, "", ())}


def _write_entry(entry: Decision) -> list[str]:
    lines = ["[[proposal]]"]
    for name, value in _list_values(entry).items():
        if isinstance(value, str):
            lines.append(f"{name} = {quote(value)}")
        elif isinstance(value, tuple):
            lines += [f"{name} = [", *(f"    {quote(str(v))}," for v in value), "]"]
    return lines


def quote(text: str) -> str:
    """A TOML string on one line."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
