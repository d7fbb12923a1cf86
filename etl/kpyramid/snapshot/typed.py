"""Typed questions: members of a class under conditions, two things compared, paths between two.

Questions that only structure can answer name classes, properties and values instead of words. Both
layers are searched: statements of the ontology, and facts of the graph that are neither denied nor
hedged. Texts are never complete, so that a count is a lower bound.
"""

import heapq
import json
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date
from difflib import get_close_matches
from functools import cache, cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn, cast
from weakref import proxy

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.documents import words
from kpyramid.documents.measures import Measure, list_measures, read_measure
from kpyramid.documents.validity import covers, read_time, write_date
from kpyramid.documents.values import Date, read_value
from kpyramid.errors import InputError
from kpyramid.numerics.arrays import Integers, Mask
from kpyramid.snapshot.adjacency import MOST_HOPS, Adjacency, Edges, Step, spread, walk
from kpyramid.snapshot.evidence import Evidence
from kpyramid.snapshot.mapped import MappedRows, to_mask
from kpyramid.snapshot.search import join_words
from kpyramid.snapshot.view import EntitiesByName, View

if TYPE_CHECKING:
    from kpyramid.ontology.schema import OntologyClass, OntologyProperty, Schema

THING = "thing"
"""The class of everything."""
MOST_PATHS = 20
_LONGEST = 200
"""Characters of a value in a message."""
_MOST_EDGES = 1_000
"""Most facts of a thing with which a path continues, the most certain first."""
_NEAREST, _SHORTLIST = 5, 200
_WITHIN = ("located in", "is located in", "is in", "lies in", "part of", "is part of", "country")
"""Properties and relations that place a thing within another."""

Value = str | int | float
Condition = Value | Sequence[Value | None] | Mapping[str, Any] | None
"""A name or text, a number or date, a range (from, to), or None for "nothing is stated".

{"not": value}: a value is stated, and none is this value; {"not": None}: a value is stated.
A thing without a stated value does not meet it, since the value may hold of it.
"""
Where = Mapping[str, Condition] | Sequence[tuple[str, Condition]]


class AtLeast(int):
    """A lower bound."""

    def __str__(self) -> str:
        return f"at least {int(self)}"


@dataclass(frozen=True, slots=True)
class Member:
    """A thing that meets the conditions: its values by property, and the places that state them."""

    id: str
    name: str
    values: Mapping[str, tuple[str, ...]]
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Members:
    """The first members, and how many there are at least."""

    members: tuple[Member, ...]
    count: AtLeast

    def to_dict(self) -> dict[str, Any]:
        """The members as plain values; `count` is {"at_least": number}."""
        return {**asdict(self), "count": {"at_least": int(self.count)}}


@dataclass(frozen=True, slots=True)
class _Plain:
    def to_dict(self) -> dict[str, Any]:
        """The result as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Comparison(_Plain):
    """Two things compared by a property, the first with the second.

    `order`: `less` (earlier, fewer), `greater`, `equal`, or `different` for values without an
    order; `unknown` where a value is missing or they have no common scale.
    """

    first: Member
    second: Member
    property: str
    order: str


@dataclass(frozen=True, slots=True)
class Hop:
    """A fact on a path, in words and with its places; `forward`: walked from head to tail."""

    id: str
    head: str
    relation: str
    tail: str
    forward: bool
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Paths(_Plain):
    """The shortest paths between two things, each as its facts."""

    paths: tuple[tuple[Hop, ...], ...]


_LINKING = "is was are were has have had".split()
"""Verbs before the words of a wording: "was born in", "has owner"."""
_NOT = "not "
"""Prefix of a property for the facts with it that the text denies."""
_FIELDS = [("subject", "i8"), ("object", "i8"), ("row", "i8"), ("in_ontology", "?")]
Statements = npt.NDArray[np.void]
"""Ends of statements as rows of entities, -1 for a literal, and their rows in `instances` or
`condensed`, shape (n,); sorted by the subject."""
_Rank = tuple[tuple[str, float, str], Measure | None]
"""The sort key of a thing, and its number or date."""


class Finder:
    """Answers typed questions from a view; statements and members once read stay in memory.

    `at`: a date; statements that are known not to have held then are left out.
    """

    def __init__(self, view: View, names: EntitiesByName, at: str | None = None) -> None:
        self._view = view
        self._at = None if at is None else _read_date(at)
        self._names = names
        me = proxy(self)  # a cycle would leave the files mapped until the next collection
        self._state = cache(partial(Finder._read_property, me))
        self._list_members = cache(partial(Finder._find_members, me))
        self._group = cache(partial(Finder._group_statements, me))

    # -- the three questions ------------------------------------------------------------------

    def find(
        self, class_name: str, where: Where, order_by: str | None, limit: int | None
    ) -> Members:
        """See `Snapshot.find`."""
        if limit is not None:
            _check_number("limit", limit)
        conditions = [*_read_where(where)]
        known = self._list_members(_read_name("class", class_name))
        reasons: dict[int, list[str]] = {}
        things = self._view.select("entities") if known is None else sorted(known)
        met: Integers = np.array(things, np.int64)
        for name, condition in conditions:
            met = self._meet(self._state(name), condition, met, reasons)
        shown, ordered = [name for name, _ in conditions], met.tolist()
        if order_by is not None:
            name = _read_name("order_by", order_by).removeprefix("-")
            shown.append(name)
            ordered = self._order(ordered, name, descending=order_by.startswith("-"))
        members = []
        for entity in ordered[:limit]:
            keys = reasons.get(entity, [])
            keys += self._list_keys(self._pick(shown[-1], entity)) if order_by else []
            keys += [known[entity]] if known else []  # evidence of the conditions comes first
            members.append(self._describe(entity, shown, keys))
        return Members(tuple(members), AtLeast(len(met)))

    def compare(self, first: str, second: str, name: str) -> Comparison:
        """See `Snapshot.compare`."""
        self._pick(name := _read_name("property", name), 0)  # refuses an unknown property
        ends = [
            max(self._require(thing), key=lambda row: (len(self._pick(name, row)), -row))
            for thing in (first, second)
        ]
        left, right = (
            self._describe(end, [name], self._list_keys(self._pick(name, end))) for end in ends
        )
        return Comparison(left, right, name, self._compare(name, *ends))

    def paths(self, first: str, second: str, hops: int) -> Paths:
        """See `Snapshot.paths`."""
        _check_number("hops", hops, MOST_HOPS)
        starts, ends = self._require(first), self._require(second)
        distances = spread(ends, hops - 1, self._leave)

        def leave(row: int) -> list[Step]:
            return self._leave(np.array([row], np.int64)).list_steps()

        walks = (
            tuple(self._state_hop(fact, forward) for fact, _, forward in steps)
            for length in range(1, hops + 1)
            for start in starts
            for steps in walk(leave, start, length, distances)
        )
        return Paths(tuple(islice(walks, MOST_PATHS)))

    # -- classes ------------------------------------------------------------------------------

    def _find_members(self, name: str) -> dict[int, str] | None:
        """The members of a class, each with the key of its evidence; None for the class of all.

        Members by the ontology, subclasses included, and by "is a" facts of the graph. An
        alternative label denotes its class only where no such fact has that word.
        """
        key, schema = _fold(name), self._view.schema
        if key == (THING,):
            return None
        members = self._list_kinds(key)
        named = [c.iri for c in schema.classes if name == c.iri or key == _fold(c.label)]
        if not named and not members:
            named = [c.iri for c in schema.classes if key in _list_labels(c)]
        below = [c for c in schema.classes if any(schema.is_subclass(c.iri, iri) for iri in named)]
        for c in below:
            members = self._list_kinds(_fold(c.label)) | members
        stated = self._read_instances("class_iri", [c.iri for c in below])
        # The evidence is the most certain membership, else the most certain value of a property.
        rows, places = self._view.rows("instances"), stated["row"]
        valued = to_mask(rows.column("property_iri").take(pa.array(places)).is_valid())
        stated = stated[np.lexsort((-rows.numbers("confidence")[places], valued))[::-1]]
        members |= zip(stated["subject"].tolist(), self._list_keys(stated), strict=True)
        if not named and not members:
            _refuse("class", name, {*(c.label for c in schema.classes), *self._name_kinds()})
        return members

    def _list_kinds(self, label: tuple[str, ...]) -> dict[int, str]:
        """The things of a kind by "X is a Y" and "X is Y in Z", each with the key of the fact."""
        postings = self._view.part("condensed").find(words.stem_words(label[-1:])[0])
        if postings is None:
            return {}
        members: dict[int, str] = {}
        facts, rows = self._view.rows("condensed"), np.sort(postings[0]).astype(np.int64)
        relations = facts.numbers("relation")
        kinds = {way: self._say_kind(way) for way in np.unique(relations[rows]).tolist()}
        telling = [way for way, kind in kinds.items() if kind is not None]
        for row in self._select_asserted(rows[np.isin(relations[rows], telling)]).tolist():
            kind = kinds[int(relations[row])] or _cut_kind(self._view.state_fact(row)[5])
            if kind[-len(label) :] == label:
                members.setdefault(int(facts.numbers("head")[row]), facts.keys[row])
        return members

    def _say_kind(self, relation: int) -> tuple[str, ...] | None:
        """The kind in a relation, as lemmas: "garden" of "is garden in"; empty for "is a".

        "has type", as of a table's column, is "is a".
        """
        plain = words.list_plain_words(self._view.wording_of(relation))
        rest = [word for word in plain[1:] if word not in words.ARTICLES]
        if plain[:1] == ["has"] and rest in (["type"], ["kind"]):
            return ()
        if not plain or plain[0] not in words.BE or len(plain) == 1:
            return None
        if not rest:
            return ()
        return _cut_kind(" ".join(rest)) if rest[-1] in words.PREPOSITIONS else None

    def _name_kinds(self) -> Iterator[str]:
        """The kinds in visible "is a" facts; read for a refusal only."""
        relations = self._view.rows("condensed").numbers("relation")
        kinds = [way for way in np.unique(relations).tolist() if self._say_kind(way) == ()]
        for row in self._select_asserted(np.flatnonzero(np.isin(relations, kinds))):
            yield self._view.state_fact(row)[5]

    # -- properties ---------------------------------------------------------------------------

    def _read_property(self, name: str) -> Statements:
        """The statements of a property, or of `^property` from the other end.

        For `not property` the facts that the text denies. A relation that is the only one with
        the name in it may go by that: "purchased" for "was purchased in".

        Raises:
            InputError: no property has that name.
        """
        if name.startswith("^"):
            return _turn(self._state(name.removeprefix("^").strip()))
        plain = name.removeprefix(_NOT)
        known = self._look_up(plain, plain != name)
        if known is None:
            named = self._name_properties()
            headed = [label for label in named if _cut_relation(label) == _fold(plain)]
            if len(headed) != 1:
                _refuse("property", plain, named, self._hint_metadata(plain))
            known = self._state(name.removesuffix(plain) + headed[0])
        return known

    def _hint_metadata(self, name: str) -> str:
        """Advice if a visible document has metadata of that name."""
        rows = pa.array(self._view.select("documents"), pa.int64())
        described = self._view.rows("documents").column("metadata").take(rows)
        if not pc.any(pc.starts_with(pc.list_flatten(described), f"{name}=")).as_py():
            return ""
        return (
            f"; documents have it as metadata: `kpyramid ask --where {name}=VALUE` asks only those"
        )

    def _look_up(self, name: str, denied: bool = False) -> Statements | None:
        """The statements of both layers by a property and those that entail it; None if unknown.

        Relations of the graph with that wording count as well, with a form of "be" or "have" or
        without, and the years of things whose day is asked for and unknown.
        """
        key, schema = _fold(name), self._view.schema
        named = {p.iri for p in schema.properties if name == p.iri or key == _fold(p.label)}
        named = named or {p.iri for p in schema.properties if key in _list_labels(p)}
        wording = name.casefold()
        forms = [wording, *(f"{verb} {wording}" for verb in _LINKING)]
        relations = self._view.rows("relations").column("name")
        held = pc.is_in(pc.utf8_lower(relations), value_set=pa.array(forms))
        worded = {row: self._view.wording_of(row) for row in np.flatnonzero(to_mask(held)).tolist()}
        worded = {row: text for row, text in worded.items() if text.casefold() in forms}
        parts = [self._read_facts([*worded.values()], [*worded], denied=denied)]
        for p in schema.properties if named else ():
            for turned in {turned for iri, turned in schema.find_entailed(p.iri) if iri in named}:
                stated = [self._read_facts([p.label], denied=denied)]
                if not denied:  # the ontology denies nothing
                    stated.append(self._read_instances("property_iri", [p.iri]))
                parts += map(_turn, stated) if turned else stated
        statements = np.unique(np.concatenate(parts))
        for iri in () if denied else _list_years(schema, named):  # "1978" where no day is known
            years = self._state(iri)
            years = years[~np.isin(years["subject"], statements["subject"])]
            statements = np.unique(np.concatenate([statements, years]))
        return statements if named or worded else None

    def _name_properties(self) -> set[str]:
        """The properties, and the wordings of visible facts; read for a refusal only."""
        relations = self._view.rows("condensed").numbers("relation")
        mask = self._view.mask("condensed")
        seen = np.unique(relations if mask is None else relations[mask]).tolist()
        return {*(p.label for p in self._view.schema.properties), *map(self._view.wording_of, seen)}

    def _read_instances(self, column: str, iris: Sequence[str]) -> Statements:
        rows = self._view.rows("instances")
        held = pc.is_in(rows.column(column), value_set=pa.array(iris, pa.string()))
        seen = self._view.select("instances", np.flatnonzero(to_mask(held)))
        if self._at and not rows.has("facts"):
            raise InputError("at: values of the ontology have no dates here; build it again")
        if self._at:
            seen = [row for row in seen if self._covers(*self._view.list_facts(rows.keys[row]))]
        stated = np.zeros(len(seen), _FIELDS)
        stated["in_ontology"], stated["row"] = True, seen
        for end in ("subject", "object"):
            keys = rows.column(f"{end}_id").take(pa.array(seen, pa.int64())).to_pylist()
            located = (-1 if k is None else self._view.locate("entities", k) for k in keys)
            stated[end] = [*located]
        return stated

    def _read_facts(
        self, standards: Sequence[str], worded: Sequence[int] = (), *, denied: bool = False
    ) -> Statements:
        """Facts with one of these standard relations, by its ends, or one of these wordings."""
        facts = self._view.rows("condensed")
        held = pc.is_in(facts.column("standard"), value_set=pa.array(standards, pa.string()))
        is_standard = to_mask(held)
        rows = np.flatnonzero(is_standard | np.isin(facts.numbers("relation"), worded))
        rows = self._select_asserted(rows, denied)
        if self._view.describe():  # some standard relations may be hidden
            is_standard[[row for row in rows.tolist() if not self._view.name_standard(row)]] = False
            rows = rows[is_standard[rows] | np.isin(facts.numbers("relation")[rows], worded)]
        stated = np.zeros(len(rows), _FIELDS)
        stated["row"] = rows
        for end, name in (("subject", "head"), ("object", "tail")):
            standard, literal = facts.numbers(f"standard_{name}")[rows], facts.numbers(name)[rows]
            stated[end] = np.where(is_standard[rows], standard, literal)
        return stated

    def _select_asserted(self, rows: Integers, denied: bool = False) -> Integers:
        """The visible facts among some rows that the text neither hedges nor denies.

        `denied`: those that it denies instead. With a date, facts that ended on a known day count.
        """
        seen = np.array(self._view.select("condensed", rows), np.int64)
        negated = self._view.rows("condensed").column("negated").take(pa.array(seen))
        mask = to_mask(negated) if denied else self._view.plain[seen]
        if self._at and not denied:
            dated = [self._ended(row) for row in seen.tolist()]
            mask = mask | (np.array(dated, np.bool_) & ~to_mask(negated))
        asserted = seen[mask]
        return asserted[[self._covers(row) for row in asserted.tolist()]]

    def _ended(self, row: int) -> bool:
        return self._view.hold_fact(row) == "former" and self._view.date_fact(row)[1] is not None

    def _covers(self, *facts: int) -> bool:
        """Whether any of some condensed facts may have held at the date; true without facts."""
        day, view = self._at, self._view
        return not (day and facts) or any(covers(view.date_fact(row), day) for row in facts)

    # -- things -------------------------------------------------------------------------------

    def _find_things(self, name: str) -> list[int]:
        """The things that a name, an id or an IRI denotes."""
        keys = (name.rpartition("/")[2], *self._names.get(join_words(name), ()))
        return sorted({*self._view.find_all("entities", keys).values()})

    def _require(self, name: str) -> list[int]:
        name = _read_name("thing", name)
        if things := self._find_things(name):
            return things
        keys = (k for word in words.list_plain_words(name) for k in self._names.with_word(word))
        rows = {*self._view.find_all("entities", keys).values()}
        _refuse("thing", name, map(self._view.name_of, rows))

    @cached_property
    def _places(self) -> Statements:
        """The statements that place a thing within another."""
        parts = [part for name in _WITHIN if (part := self._look_up(name)) is not None]
        stated = np.concatenate([np.zeros(0, _FIELDS), *parts])
        placed: Statements = stated[stated["object"] >= 0]
        return placed

    def _list_within(self, rows: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """Things with all things within them, at any depth, and the keys of the evidence."""
        reached: dict[int, tuple[str, ...]] = {row: () for row in rows}
        edge, places = [*rows], self._places
        while edge:
            inner = places[np.isin(places["object"], edge)]
            edge = []
            ends = zip(inner["subject"].tolist(), inner["object"].tolist(), strict=True)
            for (place, around), key in zip(ends, self._list_keys(inner), strict=True):
                if place not in reached:
                    reached[place] = (key, *reached[around])
                    edge.append(place)
        return reached

    # -- conditions ---------------------------------------------------------------------------

    def _meet(
        self,
        stated: Statements,
        condition: Condition,
        among: Integers,
        reasons: dict[int, list[str]],
    ) -> Integers:
        """The things `among` some that meet a condition; adds the keys of evidence to `reasons`."""
        if condition is None:
            return among[~np.isin(among, stated["subject"])]
        value = condition["not"] if isinstance(condition, Mapping) else condition
        matching, through = self._match(stated, value)
        if isinstance(condition, Mapping):
            matching = ~np.isin(stated["subject"], stated["subject"][matching])
        proof = stated[matching & np.isin(stated["subject"], among)]
        for row, key in zip(proof, self._list_keys(proof), strict=True):
            keys = (key, *through.get(int(row["object"]), ()))
            reasons.setdefault(int(row["subject"]), []).extend(keys)
        return among[np.isin(among, proof["subject"])]

    def _match(
        self, stated: Statements, value: Condition
    ) -> tuple[Mask, Mapping[int, tuple[str, ...]]]:
        """Which statements have a value or one in a range; and the keys that nest its places.

        A place matches where a place within it is stated.

        Raises:
            InputError: the value neither names a thing nor is among the statements' values.
        """
        if value is None:
            return np.zeros(len(stated), np.bool_), {}
        if isinstance(value, str | int | float):
            things = self._list_within(self._find_things(str(value)))
            low = high = read_measure(str(value))
        else:
            things, (low, high) = {}, map(_read_bound, cast("Sequence[object]", value))
        matching, text = np.isin(stated["object"], [*things]), join_words(str(value))
        for row in np.flatnonzero(stated["object"] < 0).tolist():
            if join_words(self._say_value(stated[row])) == text:
                matching[row] = True
            elif (low or high) and (measure := self._measure(stated[row])) is not None:
                matching[row] = _lies_within(measure, low, high)
        if isinstance(value, str) and not (things or low or matching.any()):
            _refuse("value", value, {self._say_value(row) for row in stated})
        return matching, things

    # -- values -------------------------------------------------------------------------------

    def _locate(self, row: np.void) -> tuple[MappedRows, int]:
        return self._view.rows("instances" if row["in_ontology"] else "condensed"), int(row["row"])

    def _list_keys(self, stated: Statements) -> list[str]:
        return [rows.keys[row] for rows, row in map(self._locate, stated)]

    def _say_value(self, stated: np.void) -> str:
        """The value of a statement in words."""
        rows, row = self._locate(stated)
        thing = int(stated["object"])
        return self._view.name_of(thing) if thing >= 0 else str(rows.value("literal", row))

    def _measure(self, stated: np.void) -> Measure | None:
        """The number or date of a statement; a bare number gets the unit in its sentence."""
        measure = read_measure(self._say_value(stated))
        if measure is None or measure.unit or measure.number is None or not stated["in_ontology"]:
            return measure
        rows, row = self._locate(stated)
        texts = [place.text for place in self._view.evidence(rows.keys[row])]
        written = (m for text in texts for m in list_measures(text) if m.unit)
        return next((m for m in written if m.number == measure.number), measure)

    def _pick(self, name: str, entity: int) -> Statements:
        """The statements about a thing by a property or `count(property)`."""
        return self._group(_COUNT.sub(r"\1", name)).get(entity, np.zeros(0, _FIELDS))

    def _group_statements(self, name: str) -> Mapping[int, Statements]:
        stated = self._state(name)
        subjects, starts = np.unique(stated["subject"], return_index=True)
        return dict(zip(subjects.tolist(), np.split(stated, starts[1:]), strict=False))

    def _list_values(self, stated: Statements) -> tuple[str, ...]:
        """The distinct values of statements in words, in their order; dates in ISO 8601."""
        read = {value: read_value(value) for value in map(self._say_value, stated)}
        texts = sorted(write_date(v) if isinstance(v, Date) else value for value, v in read.items())
        return tuple({join_words(value): value for value in texts}.values())

    def _rank(self, name: str, entity: int) -> _Rank | None:
        """The value of a thing that most places state, or the number of its values."""
        stated = self._pick(name, entity)
        if _COUNT.fullmatch(name):
            count = Measure(float(len(self._list_values(stated))))
            return (*count.key, ""), count
        votes: Counter[tuple[str, float, str]] = Counter()
        measures: dict[tuple[str, float, str], Measure | None] = {}
        for row, key in zip(stated, self._list_keys(stated), strict=True):
            measure = self._measure(row)
            place = (*measure.key, "") if measure else ("", 0.0, join_words(self._say_value(row)))
            measures[place] = measure
            votes[place] += len(self._view.evidence(key))
        best = min(votes, key=lambda place: (-votes[place], place), default=None)
        return None if best is None else (best, measures[best])

    def _order(self, entities: Sequence[int], name: str, *, descending: bool) -> list[int]:
        """Things sorted by a property; those without a value come last."""
        ranks = {entity: self._rank(name, entity) for entity in entities}
        ranked = {entity: rank[0] for entity, rank in ranks.items() if rank is not None}
        measures = {entity: rank[1] for entity, rank in ranks.items() if rank and rank[1]}
        numbers = [m for m in measures.values() if m and m.days is None]
        if numbers:  # then a bare 1950 is no year, and has the most frequent unit
            units = Counter(m.unit for m in numbers if m.unit)
            unit = min(units, key=lambda unit: (-units[unit], unit), default="")
            bare = {a: m.number for a, m in measures.items() if m and m.number and not m.unit}
            ranked |= {entity: (*Measure(number, unit).key, "") for entity, number in bare.items()}
        ordered = sorted(ranked, key=ranked.__getitem__, reverse=descending)
        return [*ordered, *(entity for entity in entities if entity not in ranked)]

    def _compare(self, name: str, first: int, second: int) -> str:
        left, right = self._rank(name, first), self._rank(name, second)
        if left is None or right is None:
            return "unknown"
        if left[1] is None or right[1] is None:
            values = (self._list_values(self._pick(name, end)) for end in (first, second))
            shared = set.intersection(*({*map(join_words, texts)} for texts in values))
            return "equal" if shared else "different"
        places = left[1].compare(right[1])
        if places is None:
            return "unknown"
        (start, end), (from_, to) = places
        if (start, end) == (from_, to):
            return "equal"
        return "less" if end < from_ else "greater" if start > to else "unknown"

    def _describe(self, entity: int, names: Iterable[str], keys: Iterable[str]) -> Member:
        values = {name: self._list_values(self._pick(name, entity)) for name in names}
        places = (place for key in dict.fromkeys(keys) for place in self._view.evidence(key))
        key, name, _ = self._view.state_entity(entity)
        return Member(key, name, values, tuple(dict.fromkeys(places)))

    # -- paths --------------------------------------------------------------------------------

    @cached_property
    def _graph(self) -> Adjacency:
        return Adjacency(self)

    def _leave(self, things: Integers) -> Edges:
        """The facts that continue a path from some things; "is a" facts do not."""
        edges = self._graph.leave(things, _MOST_EDGES)
        facts = self._select_asserted(edges.fact.astype(np.int64))
        relations = self._view.rows("condensed").numbers("relation")[facts]
        kinds = [way for way in np.unique(relations).tolist() if self._say_kind(way) == ()]
        return edges.take(np.isin(edges.fact, facts[~np.isin(relations, kinds)]))

    def _state_hop(self, row: int, forward: bool) -> Hop:
        _, head, _, relation, _, tail, _ = self._view.state_fact(row)
        key = self._view.rows("condensed").keys[row]
        return Hop(key, head, relation, tail, forward, tuple(self._view.evidence(key)))


def _turn(stated: Statements) -> Statements:
    """Statements from their other end; literals have none."""
    turned = stated[stated["object"] >= 0]
    turned["subject"], turned["object"] = turned["object"], turned["subject"].copy()
    return np.unique(turned)


# Names, conditions and values as they are written.

_COUNT = re.compile(r"count\((.+)\)")


def _fold(name: str) -> tuple[str, ...]:
    """The lemmas of a name; a name without words stays as it is."""
    lemmas = tuple(map(words.lemmatise, words.list_plain_words(words.split_label(name))))
    return lemmas or (name,)


def _list_labels(term: "OntologyClass | OntologyProperty") -> set[tuple[str, ...]]:
    return {_fold(label) for label in (term.label, *term.alt_labels)}


def _list_years(schema: "Schema", named: Container[str]) -> list[str]:
    """The properties that state the year of what some properties state the day of, as IRIs.

    "birth year" beside "birth date": of the same domain, and of the same label but for "year".
    """
    days = {
        (p.domain, _fold(p.label)[:-1])
        for p in schema.properties
        if p.iri in named and p.range.endswith("#date")
    }
    years = (p for p in schema.properties if p.range.endswith("#gYear"))
    return [
        p.iri
        for p in years
        if _fold(p.label)[-1:] == ("year",) and (p.domain, _fold(p.label)[:-1]) in days
    ]


def _cut_relation(wording: str) -> tuple[str, ...]:
    """The lemmas of a relation without its helping verb and last preposition, else nothing.

    "location" of "has location", "purchase" of "was purchased in"; "is head of" and "was acquired
    by" are about the other end, and give nothing.
    """
    first, *rest = words.list_plain_words(wording) or [""]
    is_passive = words.normalise_relation(wording).passive and rest[-1:] != ["by"]
    if not (first in words.HAVE or is_passive):
        return ()
    ends = not words.PREPOSITIONS.isdisjoint(rest[-1:])
    return tuple(map(words.lemmatise, rest[: len(rest) - ends]))


def _cut_kind(noun: str) -> tuple[str, ...]:
    """The lemmas of a noun without its complement: "city" of "city in Ohio"."""
    plain = words.list_plain_words(noun)
    ends = (i for i, word in enumerate(plain) if i and word in words.PREPOSITIONS)
    return tuple(map(words.lemmatise, plain[: next(ends, None)]))


def _show(value: object) -> str:
    """A value as JSON writes it, for a message; a long one is cut."""
    words = json.dumps(value, ensure_ascii=False, default=str)
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."


def _read_name(what: str, name: object) -> str:
    if not isinstance(name, str) or not name.strip(" -^"):
        raise InputError(f"{what} {_show(name)}: pass a label, a name or an IRI")
    return " ".join(name.split())


def _check_number(name: str, number: object, most: float = float("inf")) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
        upto = f"from 1 to {most}" if most < float("inf") else "1 or more"
        raise InputError(f"{name} {_show(number)}: pass a whole number, {upto}")


def _read_where(where: Where) -> Iterator[tuple[str, Condition]]:
    pairs = where.items() if isinstance(where, Mapping) else where
    if not isinstance(pairs, Iterable) or isinstance(pairs, str):
        raise InputError(f"where {_show(where)}: pass pairs of a property and a condition")
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputError(f"where has {_show(pair)}: pass a pair of a property and a condition")
        name, condition = _read_name("property", pair[0]), pair[1]
        if isinstance(condition, Mapping) and set(condition) == {"not"}:
            _check_value(name, condition["not"])
        else:
            _check_value(name, condition)
        yield name, condition


def _check_value(name: str, value: object) -> None:
    if isinstance(value, tuple | list) and len(value) == 2 and (value[0], value[1]) != (None, None):
        low, high = map(_read_bound, value)
        places = low.compare(high) if low and high else None
        if low and high and (places is None or places[0][0] > places[1][1]):
            ends = " and ".join(map(_show, value))
            raise InputError(f"{name}: nothing lies between {ends}")
    elif isinstance(value, bool) or value == "" or not isinstance(value, str | int | float | None):
        raise InputError(
            f"{name}: {_show(value)} is no condition; pass a name, a number, a date, a range of "
            "two of which one end may be left open, a denied value, or nothing at all for what "
            "nothing is stated of"
        )


def _read_date(at: str) -> str:
    """A date of the calendar in ISO 8601."""
    words = str(at).strip()
    is_written = re.fullmatch(r"[0-9]{4}(-[0-9]{2}){0,2}", words)
    if is_written:
        with suppress(ValueError):
            date.fromisoformat(f"{words}-01-01"[:10])
            return words
    time = read_time(words)
    if not is_written and time is not None and time[0] is not None and time[0] == time[1]:
        return time[0]
    raise InputError(
        f"at {_show(at)} is no date: pass a year, a month or a day, as 1995 or 1995-07"
    )


def _read_bound(end: object) -> Measure | None:
    measure = None if isinstance(end, bool) else read_measure(str(end))
    if measure is None and end is not None:
        raise InputError(
            f"{_show(end)} bounds no range: pass a number, or one with a unit, or a date"
        )
    return measure


def _lies_within(measure: Measure, low: Measure | None, high: Measure | None) -> bool:
    """Whether a value lies entirely between two bounds; false without a common scale."""
    after = measure.compare(low) if low else ((0.0, 0.0), (0.0, 0.0))
    before = measure.compare(high) if high else ((0.0, 0.0), (0.0, 0.0))
    if after is None or before is None:
        return False
    return after[0][0] >= after[1][0] and before[0][1] <= before[1][1]


def _refuse(what: str, name: str, known: Iterable[str], hint: str = "") -> NoReturn:
    """Refuses a name, with the nearest known ones and a hint.

    Raises:
        InputError: always.
    """
    wanted = {*words.list_plain_words(name)}

    def rank(label: str) -> tuple[int, int, str]:
        return -len(wanted & {*words.list_plain_words(label)}), abs(len(label) - len(name)), label

    near = heapq.nsmallest(_SHORTLIST, {*known} - {""}, key=rank)
    near = get_close_matches(name, near, n=_NEAREST, cutoff=0.0)
    raise InputError(f"there is no {what} {name!r}; nearest: {', '.join(near) or 'none'}{hint}")
