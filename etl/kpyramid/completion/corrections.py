"""Corrections of the graph by a person: a TOML file that every build reads.

Each `[[correction]]` has one of: `same` (names of one thing), `apart` (names of different things),
`entity` with its `name`, its `class` or both, or `holds` (a fact, `head | relation | tail`) with
`not`, a fact or another value that does not hold; without `not` no other value of that head and
relation holds. `since` is the date from which it holds, `note` the reason. The relation may be
worded otherwise than in the text, or be the label of a property.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from kpyramid.completion.decisions import Text, read_entries, read_text
from kpyramid.documents.measures import read_quantity
from kpyramid.documents.qualifiers import CORRECTED
from kpyramid.documents.words import normalise_name, normalise_relation
from kpyramid.errors import InputError, SettingsError
from kpyramid.graph.duplicates import unite_pairs
from kpyramid.graph.names import parse_name
from kpyramid.keys import JsonValue
from kpyramid.ontology.population.reader import fold_label
from kpyramid.ontology.schema import Schema
from kpyramid.settings import STRICT

Names = Annotated[tuple[Text, ...], Field(min_length=2)]
End = tuple[str | None, str]
"""An end of a fact: its key (None for a literal) and its words."""
Compare = Callable[[str, str], Any]
"""Returns the `Verdict` of `kpyramid.graph.synonyms` on two wordings."""


@dataclass(frozen=True, slots=True, config=STRICT)
class Correction:
    """One entry of the file."""

    same: Names | None = None
    apart: Names | None = None
    entity: Text | None = None
    name: Text | None = None
    class_: Annotated[Text | None, Field(alias="class")] = None
    holds: Text | None = None
    not_: Annotated[Text | None, Field(alias="not")] = None
    since: Text | None = None
    note: str = ""

    @model_validator(mode="after")
    def _check_kind(self) -> "Correction":
        kinds = [n for n in ("same", "apart", "entity", "holds") if getattr(self, n) is not None]
        if len(kinds) != 1:
            raise ValueError("give one of same, apart, entity and holds")
        if (self.entity is None) != (self.name is None and self.class_ is None):
            raise ValueError("entity goes with name, class or both")
        if self.holds is None and (self.not_ or self.since):
            raise ValueError("not and since go with holds")
        for fact in filter(None, (self.holds, self.excluded)):
            split_fact(fact)
        return self

    @property
    def excluded(self) -> str | None:
        """The fact that does not hold; `not` may give its value alone."""
        if self.not_ is None or "|" in self.not_:
            return self.not_
        return " | ".join([*str(self.holds).split("|")[:2], self.not_])


def split_fact(fact: str) -> tuple[str, str, str]:
    """Head, relation and tail of `head | relation | tail`; ValueError for other words."""
    parts = [part.strip() for part in fact.split("|")]
    if len(parts) != 3 or not all(parts):
        raise ValueError(f"{fact!r} is no fact: write head | relation | tail")
    return parts[0], parts[1], parts[2]


def fold_fact(fact: str) -> tuple[str, str, str]:
    """A fact of the file in the form in which facts are compared."""
    head, relation, tail = split_fact(fact)
    return fold(head), normalise_relation(relation).key, normalise_name(tail)


def fold(name: str) -> str:
    """A name in the form in which names are compared."""
    return parse_name(name).key


_NUMBER = re.compile(r"\d(?:[\d.,]*\d)?")
"""A number as it is written."""


def is_value(left: str, right: str) -> bool:
    """Whether two values are equal, by name or by number; one of them may lack its unit."""
    if fold(left) == fold(right) or normalise_name(left) == normalise_name(right):
        return True
    first, second = read_quantity(left), read_quantity(right)
    if first is None or second is None:
        return False
    if bool(first.kind) != bool(second.kind):  # "120 km" and "120"
        return _NUMBER.findall(left) == _NUMBER.findall(right)
    return first.kind == second.kind and first.agrees(second)


def is_rival(left: str, right: str) -> bool:
    """Whether two values are of the same sort, so that they exclude each other.

    "Room 14" and "Room 12", "Beta" and "Gamma"; not "1998" and "Leeds", "12 km" and "12 people".
    """
    kinds = {q.kind for q in map(read_quantity, (left, right)) if q and q.kind}
    return len(kinds) < 2 and bool(_NUMBER.search(left)) == bool(_NUMBER.search(right))


class Corrections:
    """The entries of a file in order; `used`: indices of the entries that matched something."""

    def __init__(
        self,
        entries: Sequence[Correction] = (),
        source: str = "no file",
        schema: Schema | None = None,
    ) -> None:
        self.entries = tuple(entries)
        self.source = source
        known = schema.properties if schema else ()
        self._names = {each.iri: (each.label, *each.alt_labels) for each in known}
        self._labelled = _index((fold_label(each.label), each.iri) for each in known)
        self._worded = _index(
            (fold_label(name), iri) for iri, names in self._names.items() for name in names
        )
        self.used: set[int] = set()
        self._keys: Mapping[str, Collection[str]] = {}
        self._named: dict[str, str] = {}

    def describe(self) -> list[JsonValue]:
        """The part of the file that enters content keys: its entries in order, without notes."""
        return [
            {k: v for k, v in asdict(e).items() if v and k != "note"}
            | {"labels": [self._word(fact) for fact in (e.holds, e.excluded) if fact]}
            for e in self.entries
        ]

    def _word(self, fact: str) -> list[str]:
        """The relation of a fact of the file, with all labels of the one property that has it."""
        _, relation, _ = split_fact(fact)
        label = fold_label(relation)
        iris = sorted(self._labelled.get(label) or self._worded.get(label) or ())
        return sorted({relation, *(self._names[iris[0]] if len(iris) == 1 else ())})

    def list_unmatched(self, *, classes: bool) -> list[tuple[str, str]]:
        """Number and description of each unmatched entry about classes, or about anything else."""
        return [
            (str(index + 1), f"{Path(self.source).name}, entry {index + 1}: {_word(entry)}")
            for index, entry in enumerate(self.entries)
            if index not in self.used
            if (entry.class_ if classes else entry.name or not entry.class_)
        ]

    def unite(self, names: Sequence[str], keys: Sequence[str]) -> list[str]:
        """The entity key of each name: its cluster's key after the corrections."""
        if not self.entries:
            return [*keys]
        folded = [fold(name) for name in names]
        keys_of = _index(zip(folded, keys, strict=True))
        split: dict[tuple[str, str], str] = {}
        for index, entry in enumerate(self.entries):
            known = [name for name in map(fold, entry.apart or ()) if name in keys_of]
            for left, right in combinations(dict.fromkeys(known), 2):
                self.used.add(index)
                split |= {(right, key): f"{key}#{right}" for key in keys_of[left] & keys_of[right]}
        parted = [split.get((n, key), key) for n, key in zip(folded, keys, strict=True)]
        keys_of = _index(zip(folded, parted, strict=True))
        pairs = set()
        for index, entry in enumerate(self.entries):
            sets = [keys_of[name] for name in map(fold, entry.same or ()) if name in keys_of]
            if len(sets) > 1:
                self.used.add(index)
                united = sorted(set().union(*sets))
                pairs |= {*pairwise(united)}
        roots = unite_pairs(pairs, {key: (0, key) for pair in pairs for key in pair})
        made = [roots.get(key, key) for key in parted]
        self._keys = _index(zip(folded, made, strict=True))
        for index, entry in enumerate(self.entries):
            if entry.name and entry.entity and (held := self._keys.get(fold(entry.entity))):
                self.used.add(index)
                self._named |= dict.fromkeys(held, entry.name)
        return made

    def name(self, key: str) -> str | None:
        """The corrected name of an entity key; None without a correction."""
        return self._named.get(key)

    def judge(
        self, head: End, wordings: Collection[str], tail: End, compare: Compare
    ) -> list[tuple[str, str]]:
        """The qualifiers that the corrections add to a fact, which has one or more wordings."""
        qualifiers: list[tuple[str, str]] = []
        for index, entry in enumerate(self.entries):
            if entry.holds is None:
                continue
            fits = self._compare(entry.holds, head, wordings, tail, compare)
            wrong = entry.excluded
            if fits:
                self.used.add(index)
                qualifiers += [("since", entry.since)] if entry.since else []
            elif self._compare(wrong, head, wordings, tail, compare) if wrong else fits is False:
                self.used.add(index)
                qualifiers += [(CORRECTED, entry.holds)]
                qualifiers += [("until", entry.since)] if entry.since else []
        return qualifiers

    def _compare(
        self, fact: str, head: End, wordings: Collection[str], tail: End, compare: Compare
    ) -> bool | None:
        """True where a fact of the file states this fact, False where a rival, else None."""
        first, _, last = split_fact(fact)
        about = [end for end in (head, tail) if end[0] in self._keys.get(fold(first), ())]
        for stated, wording in product(self._word(fact), sorted(wordings)) if about else ():
            verdict = compare(stated, wording)
            subject, value = (tail, head) if verdict.turned else (head, tail)
            if verdict.likeness == "equivalent" and subject in about:
                same = value[0] in self._keys.get(fold(last), ()) or is_value(last, value[1])
                return True if same else False if is_rival(last, value[1]) else None
        return None

    def classify(self, entities: Iterable[Mapping[str, object]], schema: Schema) -> dict[str, str]:
        """The classes that the file gives to entities, by entity id."""
        given = {fold(e.entity): i for i, e in enumerate(self.entries) if e.class_ and e.entity}
        classes: dict[str, str] = {}
        for row in entities if given else ():
            for form in (str(row["name"]), *_list_forms(row)):
                if (i := given.get(fold(form))) is not None:
                    self.used.add(i)
                    classes[str(row["entity_id"])] = find_class(
                        str(self.entries[i].class_), schema, f"{self.source}, entry {i + 1}"
                    )
        return classes


def find_class(label: str, schema: Schema, place: str) -> str:
    """The IRI of the class that has a label or IRI.

    Raises:
        InputError: no class has it; names `place` and the nearest labels.
    """
    known = {fold_label(n): c.iri for c in schema.classes for n in (c.label, *c.alt_labels)}
    iri = label if label in schema.class_by_iri else known.get(fold_label(label))
    if iri is None:
        labels = sorted(c.label for c in schema.classes)
        near = ", ".join(get_close_matches(label, labels, n=3, cutoff=0.0))
        raise InputError(f"{place}: the ontology has no class {label!r}; nearest: {near}")
    return iri


def load_corrections(path: str | None, schema: Schema | None = None) -> Corrections:
    """The corrections file that the settings name; without one there are no entries.

    Raises:
        SettingsError: the file is missing.
        InputError: it cannot be read, an entry is wrong, two entries contradict each other, or the
            schema lacks a class; names the entries.
    """
    if path is None:
        return Corrections()
    if not Path(path).is_file():
        raise SettingsError(f"publish.corrections: there is no file {Path(path).absolute()}")
    entries = read_entries(read_text(Path(path)), path, "correction", Correction)
    _refuse_contradictions(entries, path)
    for number, entry in enumerate(entries, 1):
        if entry.class_ and schema:
            find_class(entry.class_, schema, f"{path}, entry {number}")
    return Corrections(entries, path, schema)


def _refuse_contradictions(entries: Sequence[Correction], source: str) -> None:
    """Raises an InputError for the first two entries that contradict each other."""
    same = [{*map(fold, entry.same or ())} for entry in entries]
    groups = [*map(set[str], same)]
    for group in groups:  # sameness is transitive
        while more := [left for left in same if left & group and not left <= group]:
            group.update(*more)

    def unite(name: str) -> str:
        return min({fold(name)}.union(*(group for group in groups if fold(name) in group)))

    noted: dict[tuple[str, ...], tuple[int, object]] = {}

    def note(index: int, what: tuple[str, ...], value: object) -> None:
        right, known = noted.setdefault(what, (index, value))
        if known != value:
            raise InputError(
                f"{source}: entries {right + 1} ({_word(entries[right])}) and {index + 1} "
                f"({_word(entries[index])}) contradict each other; remove one of them"
            )

    for index, entry in enumerate(entries):
        for left, right in combinations(sorted({*map(fold, entry.same or ())}), 2):
            note(index, ("one", left, right), value=True)
        for left, right in combinations(sorted({*map(fold, entry.apart or ())}), 2):
            note(index, ("one", left, right), value=False)
            for where, group in enumerate(groups):
                if {left, right} <= group:
                    note(where, ("apart", str(index), left, right), value=True)
                    note(index, ("apart", str(index), left, right), value=False)
        if entry.entity:
            for what in ("name", "class_"):
                if value := getattr(entry, what):
                    note(index, (what, unite(entry.entity)), value)
        if entry.holds:
            head, relation, tail = fold_fact(entry.holds)
            note(index, ("fact", unite(head), relation, tail), value=True)
            if entry.excluded:
                head, relation, tail = fold_fact(entry.excluded)
                note(index, ("fact", unite(head), relation, tail), value=False)
            else:
                note(index, ("value", unite(head), relation), tail)


def _index(pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    index: dict[str, set[str]] = defaultdict(set)
    for name, key in pairs:
        index[name].add(key)
    return dict(index)


def _list_forms(row: Mapping[str, object]) -> Sequence[str]:
    forms = row.get("surface_forms")
    return forms if isinstance(forms, list) else ()


def _word(entry: Correction) -> str:
    """An entry in words, for messages."""
    if entry.same or entry.apart:
        names = entry.same or entry.apart or ()
        return f"{' and '.join(map(repr, names))} are {'one' if entry.same else 'not one'}"
    if entry.holds:
        return f"holds {entry.holds!r}" + (f", not {entry.not_!r}" if entry.not_ else "")
    parts = [f"called {entry.name!r}"] * bool(entry.name)
    parts += [f"of class {entry.class_!r}"] * bool(entry.class_)
    return f"{entry.entity!r} is {' and '.join(parts)}"
