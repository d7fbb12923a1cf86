"""What a person corrected in the graph: a TOML file that every build reads.

Each `[[correction]]` says one thing: `same` (names of one thing), `apart` (names of things of their
own), `entity` with its `name`, its `class` or both, or `holds` (a fact, `head | relation | tail`)
with what does `not` hold, a fact or another value; without `not` no other value of that head and
relation does. `since` says from when it holds, `note` why. The relation may be worded otherwise
than in the text, or be the label of a property.
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
"""The key of what stands at an end of a fact, None of a literal, and its words."""
Compare = Callable[[str, str], Any]
"""Gives the `Verdict` of `kpyramid.graph.synonyms` on two wordings."""


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
    def _says_one_thing(self) -> "Correction":
        said = [n for n in ("same", "apart", "entity", "holds") if getattr(self, n) is not None]
        if len(said) != 1:
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
        """The fact that does not hold, of which `not` may give the value alone."""
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
    """A fact of a file in the form in which facts are compared."""
    head, relation, tail = split_fact(fact)
    return fold(head), normalise_relation(relation).key, normalise_name(tail)


def fold(name: str) -> str:
    """A name in the form in which names are compared."""
    return parse_name(name).key


_NUMBER = re.compile(r"\d(?:[\d.,]*\d)?")
"""A number as it is written."""


def is_value(one: str, other: str) -> bool:
    """Whether two values are one: by name, or by number, of which one may lack its unit."""
    if fold(one) == fold(other) or normalise_name(one) == normalise_name(other):
        return True
    first, second = read_quantity(one), read_quantity(other)
    if first is None or second is None:
        return False
    if bool(first.kind) != bool(second.kind):  # "120 km" and "120"
        return _NUMBER.findall(one) == _NUMBER.findall(other)
    return first.kind == second.kind and first.agrees(second)


def is_rival(one: str, other: str) -> bool:
    """Whether two values are of one sort, so that where one holds the other does not.

    "Room 14" and "Room 12", "Beta" and "Gamma"; not "1998" and "Leeds", "12 km" and "12 people".
    """
    kinds = {found.kind for found in map(read_quantity, (one, other)) if found and found.kind}
    return len(kinds) < 2 and bool(_NUMBER.search(one)) == bool(_NUMBER.search(other))


class Corrections:
    """The entries of a file in order; `used` are those that matched something."""

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
        """What content keys hold of the file: its entries in order, without notes."""
        return [
            {k: v for k, v in asdict(e).items() if v and k != "note"}
            | {"labels": [self._word(fact) for fact in (e.holds, e.excluded) if fact]}
            for e in self.entries
        ]

    def _word(self, fact: str) -> list[str]:
        """The relation of a fact of the file, in all words of the property that alone has it."""
        _, relation, _ = split_fact(fact)
        said = fold_label(relation)
        iris = sorted(self._labelled.get(said) or self._worded.get(said) or ())
        return sorted({relation, *(self._names[iris[0]] if len(iris) == 1 else ())})

    def list_unmatched(self, *, classes: bool) -> list[tuple[str, str]]:
        """The number and words of the entries about classes, or of the others, without a match."""
        return [
            (str(at + 1), f"{Path(self.source).name}, entry {at + 1}: {_word(entry)}")
            for at, entry in enumerate(self.entries)
            if at not in self.used
            if (entry.class_ if classes else entry.name or not entry.class_)
        ]

    def unite(self, names: Sequence[str], keys: Sequence[str]) -> list[str]:
        """The key of each name's thing, from that of its cluster and what the file says."""
        if not self.entries:
            return [*keys]
        folded = [fold(name) for name in names]
        found = _index(zip(folded, keys, strict=True))
        own: dict[tuple[str, str], str] = {}
        for at, entry in enumerate(self.entries):
            known = [name for name in map(fold, entry.apart or ()) if name in found]
            for one, other in combinations(dict.fromkeys(known), 2):
                self.used.add(at)
                own |= {(other, key): f"{key}#{other}" for key in found[one] & found[other]}
        parted = [own.get((n, key), key) for n, key in zip(folded, keys, strict=True)]
        found = _index(zip(folded, parted, strict=True))
        pairs = set()
        for at, entry in enumerate(self.entries):
            sets = [found[name] for name in map(fold, entry.same or ()) if name in found]
            if len(sets) > 1:
                self.used.add(at)
                united = sorted(set().union(*sets))
                pairs |= {*pairwise(united)}
        roots = unite_pairs(pairs, {key: (0, key) for pair in pairs for key in pair})
        made = [roots.get(key, key) for key in parted]
        self._keys = _index(zip(folded, made, strict=True))
        for at, entry in enumerate(self.entries):
            if entry.name and entry.entity and (held := self._keys.get(fold(entry.entity))):
                self.used.add(at)
                self._named |= dict.fromkeys(held, entry.name)
        return made

    def name(self, key: str) -> str | None:
        """What the file calls the thing of a key; None where it does not."""
        return self._named.get(key)

    def judge(
        self, head: End, wordings: Collection[str], tail: End, compare: Compare
    ) -> list[tuple[str, str]]:
        """The qualifiers of a fact, in all its wordings, by what the file says holds."""
        found: list[tuple[str, str]] = []
        for at, entry in enumerate(self.entries):
            if entry.holds is None:
                continue
            fits = self._compare(entry.holds, head, wordings, tail, compare)
            other = entry.excluded
            if fits:
                self.used.add(at)
                found += [("since", entry.since)] if entry.since else []
            elif self._compare(other, head, wordings, tail, compare) if other else fits is False:
                self.used.add(at)
                found += [(CORRECTED, entry.holds)]
                found += [("until", entry.since)] if entry.since else []
        return found

    def _compare(
        self, fact: str, head: End, wordings: Collection[str], tail: End, compare: Compare
    ) -> bool | None:
        """Whether a fact of the file is this one, False of a rival of it, None of another."""
        first, _, last = split_fact(fact)
        about = [end for end in (head, tail) if end[0] in self._keys.get(fold(first), ())]
        for one, other in product(self._word(fact), sorted(wordings)) if about else ():
            found = compare(one, other)
            subject, value = (tail, head) if found.turned else (head, tail)
            if found.likeness == "equivalent" and subject in about:
                same = value[0] in self._keys.get(fold(last), ()) or is_value(last, value[1])
                return True if same else False if is_rival(last, value[1]) else None
        return None

    def classify(self, entities: Iterable[Mapping[str, object]], schema: Schema) -> dict[str, str]:
        """The class that the file gives to entities, by id."""
        given = {fold(e.entity): at for at, e in enumerate(self.entries) if e.class_ and e.entity}
        found: dict[str, str] = {}
        for row in entities if given else ():
            for form in (str(row["name"]), *_list_forms(row)):
                if (at := given.get(fold(form))) is not None:
                    self.used.add(at)
                    found[str(row["entity_id"])] = find_class(
                        str(self.entries[at].class_), schema, f"{self.source}, entry {at + 1}"
                    )
        return found


def find_class(label: str, schema: Schema, place: str) -> str:
    """The IRI of the class of a label, or of an IRI.

    Raises:
        InputError: there is none; names `place` and the nearest labels.
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
        SettingsError: it is not there.
        InputError: it cannot be read, an entry is wrong, two contradict each other, or, with a
            schema, a class is none; names the entries.
    """
    if path is None:
        return Corrections()
    if not Path(path).is_file():
        raise SettingsError(f"publish.corrections: there is no file {Path(path).absolute()}")
    entries = read_entries(read_text(Path(path)), path, "correction", Correction)
    _refuse_contradictions(entries, path)
    for at, entry in enumerate(entries, 1):
        if entry.class_ and schema:
            find_class(entry.class_, schema, f"{path}, entry {at}")
    return Corrections(entries, path, schema)


def _refuse_contradictions(entries: Sequence[Correction], source: str) -> None:
    """Raises an InputError for the first two entries of which both cannot be followed."""
    same = [{*map(fold, entry.same or ())} for entry in entries]
    groups = [*map(set[str], same)]
    for group in groups:  # what is the same as the same is the same
        while more := [one for one in same if one & group and not one <= group]:
            group.update(*more)

    def unite(name: str) -> str:
        return min({fold(name)}.union(*(group for group in groups if fold(name) in group)))

    said: dict[tuple[str, ...], tuple[int, object]] = {}

    def note(at: int, what: tuple[str, ...], value: object) -> None:
        other, known = said.setdefault(what, (at, value))
        if known != value:
            raise InputError(
                f"{source}: entries {other + 1} ({_word(entries[other])}) and {at + 1} "
                f"({_word(entries[at])}) contradict each other; remove one of them"
            )

    for at, entry in enumerate(entries):
        for one, other in combinations(sorted({*map(fold, entry.same or ())}), 2):
            note(at, ("one", one, other), value=True)
        for one, other in combinations(sorted({*map(fold, entry.apart or ())}), 2):
            note(at, ("one", one, other), value=False)
            for where, group in enumerate(groups):
                if {one, other} <= group:
                    note(where, ("apart", str(at), one, other), value=True)
                    note(at, ("apart", str(at), one, other), value=False)
        if entry.entity:
            for what in ("name", "class_"):
                if value := getattr(entry, what):
                    note(at, (what, unite(entry.entity)), value)
        if entry.holds:
            head, relation, tail = fold_fact(entry.holds)
            note(at, ("fact", unite(head), relation, tail), value=True)
            if entry.excluded:
                head, relation, tail = fold_fact(entry.excluded)
                note(at, ("fact", unite(head), relation, tail), value=False)
            else:
                note(at, ("value", unite(head), relation), tail)


def _index(pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for name, key in pairs:
        found[name].add(key)
    return dict(found)


def _list_forms(row: Mapping[str, object]) -> Sequence[str]:
    forms = row.get("surface_forms")
    return forms if isinstance(forms, list) else ()


def _word(entry: Correction) -> str:
    """What an entry says, for messages."""
    if entry.same or entry.apart:
        names = entry.same or entry.apart or ()
        return f"{' and '.join(map(repr, names))} are {'one' if entry.same else 'not one'}"
    if entry.holds:
        return f"holds {entry.holds!r}" + (f", not {entry.not_!r}" if entry.not_ else "")
    said = [f"called {entry.name!r}"] * bool(entry.name)
    said += [f"of class {entry.class_!r}"] * bool(entry.class_)
    return f"{entry.entity!r} is {' and '.join(said)}"
