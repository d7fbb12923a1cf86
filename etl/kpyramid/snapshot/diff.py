"""Differences of two snapshots: new, removed and changed rows, counted and in words."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.errors import InputError, IntegrityError
from kpyramid.keys import JsonValue
from kpyramid.ontology.schema import Schema
from kpyramid.snapshot.relabelled import hide, list_guarded
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.storage.contracts import combine_column, find_rows, load_contracts, open_table
from kpyramid.storage.snapshots import MANIFEST

Change = Literal["added", "removed", "changed"]
_Stated = tuple[str, tuple[tuple[str, Any], ...]]
"""A row in words, and its compared values, each with its name."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A table whose rows are matched by `key` and compared in columns of its contract."""

    table: str
    key: str

    @property
    def compared(self) -> dict[str, str]:
        """The columns that make a row changed, by the names in a report."""
        columns = (c.name for c in load_contracts()[self.table].columns if c.compared)
        return {"text" if name == "sha256" else name: name for name in columns}


PARTS: Mapping[str, _Part] = {
    "documents": _Part("documents", "source"),
    "facts": _Part("condensed", "condensed_id"),
    "entities": _Part("entities", "entity_id"),
    "instances": _Part("instances", "instance_id"),
    "proposals": _Part("proposals", "proposal_id"),
}
NAMES = ("documents", "facts", "entities", "ontology", "instances", "proposals")
"""The compared parts, in the order of a report."""
_MADE_WITH = ("settings", "stages", "resources", "model")
_IDS = ("derived_from", "more_detailed_id")
_ORDER: tuple[Change, ...] = ("removed", "changed", "added")


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of rows added to, removed from and changed in the later snapshot."""

    added: int = 0
    removed: int = 0
    changed: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """A difference; `fields`: changed values, before and after, by name."""

    change: Change
    key: str
    words: str
    fields: Mapping[str, tuple[Any, Any]]


@contextmanager
def compare(before: Snapshot, after: Snapshot) -> "Iterator[Diff]":
    """The differences of two snapshots, as far as they are visible in both.

    A document that the scopes hide by its labels in the later snapshot, or in the one that was made
    last, is hidden in both, by its source and by its text.

    Raises:
        IntegrityError: a table cannot be read.
    """
    before, after = _hide_guarded(before, after)
    try:
        yield Diff(before, after)
    except (pa.ArrowException, OSError) as e:
        raise IntegrityError(
            f"snapshots {before.id} and {after.id} cannot be compared: {e}. `kpyramid verify "
            "ID` says whether one is damaged"
        ) from e


def _hide_guarded(before: Snapshot, after: Snapshot) -> tuple[Snapshot, Snapshot]:
    """Both snapshots without documents that newer labels hide: added labels hold for the past."""
    newest = max(before, after, key=lambda side: (side.folder / MANIFEST).stat().st_mtime)
    guarded = {name for side in (after, newest) for name in list_guarded(side.folder, side.scopes)}
    scopes = [hide(side.folder, guarded) for side in (before, after)]
    sides = zip((before, after), scopes, strict=True)
    first, second = (side.scoped(scope) if scope else side for side, scope in sides)
    return first, second


class Diff:
    """The differences of two snapshots, computed part by part when needed."""

    def __init__(self, before: Snapshot, after: Snapshot) -> None:
        self._sides = (before, after)
        self._rows: dict[str, list[Row]] = {}

    def count(self, name: str) -> Counts:
        """The numbers of differing rows of a part.

        Raises:
            InputError: there is no such part.
        """
        changes = [row.change for row in self._compare(name)]
        return Counts(*(changes.count(c) for c in ("added", "removed", "changed")))

    def read(self, name: str, limit: int | None, change: Change | None = None) -> list[Row]:
        """The first differing rows of a part, in order of change and key; or of one `change`."""
        rows = [row for row in self._compare(name) if change in (None, row.change)][:limit]
        if name not in PARTS:
            return rows
        words: dict[str, str] = {}
        for side in self._sides:  # in the words of the later one that has it
            words |= _word_rows(side, PARTS[name].table, [row.key for row in rows])
        return [replace(row, words=words[row.key]) for row in rows]

    def list_causes(self) -> dict[str, tuple[JsonValue, JsonValue]]:
        """Differences in settings, stages and models, by dotted name."""
        was, now = (
            {key: v for n in _MADE_WITH for key, v in _flatten(side.manifest.get(n), n)}
            for side in self._sides
        )
        return {
            name: (was.get(name), now.get(name))
            for name in sorted({*was, *now})
            if was.get(name) != now.get(name) and not name.endswith(".fingerprint")
        }

    def summarise(self) -> str:
        """One line: "1 document edited, 1 gone; 9 facts more, 38 fewer; ontology unchanged"."""
        parts = [
            _say(self.count("documents"), "document", "new", "gone", "edited")
            or "documents unchanged",
            _say(self.count("facts"), "fact") or "facts unchanged",
            _say(self.count("ontology"), "ontology term") or "ontology unchanged",
            _say(self.count("instances"), "instance"),
        ]
        return "; ".join(filter(None, parts))

    def _is_same(self, table: str) -> bool:
        """Whether both have the same bytes of a table, all of it visible."""
        files: list[Any] = [side.manifest["files"] for side in self._sides]
        before, after = (held.get(f"tables/{table}.parquet") for held in files)
        if before is None or after is None or before["sha256"] != after["sha256"]:
            return False
        return not any(side.describe_scope() for side in self._sides)

    def _compare(self, name: str) -> list[Row]:
        """The rows of a part that differ: of tables not in words yet."""
        if name not in NAMES:
            raise InputError(f"--table {name!r}: it is one of {', '.join(NAMES)}")
        if name not in self._rows:
            part = PARTS.get(name)
            if part and self._is_same(part.table):
                return []
            if part:  # a snapshot of the format before may lack a column: then it is not compared
                held = set.intersection(*(_list_columns(side, part.table) for side in self._sides))
                names = {name: c for name, c in part.compared.items() if c in held}
                read = [_read_rows(side, part, names.values()) for side in self._sides]
                keys = _list_differing(*read)
                before, after = (
                    {k: ("", (*zip(names, rows[k], strict=True),)) for k in keys if k in rows}
                    for rows in read
                )
            else:
                before, after = (_list_terms(side.schema) for side in self._sides)
                keys = _list_differing(before, after)
            rows = [_pair(key, before.get(key), after.get(key)) for key in keys]
            if part and name == "facts":
                rows = _pair_renamed(rows, self._sides, before, after)
            self._rows[name] = sorted(rows, key=lambda row: (_ORDER.index(row.change), row.key))
        return self._rows[name]


def _list_differing(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    return [key for key in {*before, *after} if before.get(key) != after.get(key)]


def _read_rows(side: Snapshot, part: _Part, names: Iterable[str]) -> dict[str, tuple[Any, ...]]:
    """The values of the rows of a table in some columns, by key."""
    keys, *columns = (_read_column(side, part.table, n).to_pylist() for n in (part.key, *names))
    rows = zip(*columns, strict=True) if columns else [()] * len(keys)
    return dict(zip(keys, rows, strict=True))


def _list_columns(side: Snapshot, table: str) -> set[str]:
    """The columns that a table has in a snapshot."""
    held = side.locate_table(table)
    return {*(open_table(held).schema_arrow if isinstance(held, Path) else held.schema).names}


def _read_column(side: Snapshot, table: str, name: str) -> pa.Array:
    """A column of a table, or of its visible rows."""
    held = side.locate_table(table)
    if isinstance(held, Path):
        held = open_table(held).read(columns=[name], use_threads=False)
    return combine_column(held[name])


def _word_rows(side: Snapshot, table: str, keys: Sequence[str]) -> dict[str, str]:
    """The rows among some keys that a side has, in words."""
    if table == "documents":  # whose keys are sources
        return {key: key for key in keys}
    if table == "proposals":
        rows = side.table(table).to_pylist()
        return {r["proposal_id"]: f"{r['label']} ({r['kind']}, {r['state']})" for r in rows}
    rows = side._view.find_all(table, keys)
    return {key: _word(side, table, row) for key, row in rows.items()}


def _word(side: Snapshot, table: str, row: int) -> str:
    view = side._view
    if table == "entities":
        _, name, kind = view.state_entity(row)
        return f"{name} ({kind})"
    stated = view.state_fact(row) if table == "condensed" else view.state_instance(row)
    return f"{stated[1]} | {stated[3]} | {stated[5]}"


def _pair_renamed(
    rows: Sequence[Row],
    sides: tuple[Snapshot, Snapshot],
    before: Mapping[str, _Stated],
    after: Mapping[str, _Stated],
) -> list[Row]:
    """The rows, with a removed and an added fact of the same statements paired as one changed fact.

    Pairs of which only ids differ are left out.
    """
    gone, new = ([row.key for row in rows if row.change == c] for c in ("removed", "added"))
    stated, states = map(_find_statements, sides, (gone, new))
    shared = Counter((stated[raw], states[raw]) for raw in stated.keys() & states.keys())
    pairs: dict[str, str] = {}
    taken: set[str] = set()
    for old, key in sorted(shared, key=lambda pair: (-shared[pair], pair)):
        if taken.isdisjoint((old, key)):
            pairs[old] = key
            taken.update((old, key))
    was = _word_rows(sides[0], "condensed", [*pairs])
    now = _word_rows(sides[1], "condensed", [*pairs.values()])
    left = [row for row in rows if row.key not in taken]
    for old, key in pairs.items():
        fields = dict(_pair(key, before[old], after[key]).fields) | {"words": (was[old], now[key])}
        fields = {n: v for n, v in fields.items() if n not in _IDS and v[0] != v[1]}
        left += [Row("changed", key, "", fields)] if fields else []
    return left


def _find_statements(side: Snapshot, keys: Sequence[str]) -> dict[str, str]:
    """The statements of some facts, each with its fact."""
    ids, derived = (_read_column(side, "condensed", n) for n in ("condensed_id", "derived_from"))
    triples, raws = (_read_column(side, "triples", n) for n in ("triple_id", "raw_triple_ids"))
    derived_of = derived.take(pa.array(find_rows(pa.array(keys, pa.string()), ids)))
    facts = pa.array(keys, pa.string()).take(pc.list_parent_indices(derived_of))
    raw = raws.take(pa.array(find_rows(pc.list_flatten(derived_of), triples)))
    facts = facts.take(pc.list_parent_indices(raw))
    return dict(zip(pc.list_flatten(raw).to_pylist(), facts.to_pylist(), strict=True))


def _plain(value: Any) -> Any:
    """Pairs of a map as a dictionary."""
    pairs = isinstance(value, list) and value and isinstance(value[0], tuple)
    return dict(value) if pairs else value


def _pair(key: str, before: _Stated | None, after: _Stated | None) -> Row:
    """The difference of two sides in the row of a key."""
    words, now = after or before or ("", ())
    if before is None or after is None:
        return Row("added" if before is None else "removed", key, words, {})
    was = dict(before[1])
    fields = {n: (_plain(was[n]), _plain(value)) for n, value in now if was[n] != value}
    return Row("changed", key, words, fields)


def _list_terms(schema: Schema) -> dict[str, _Stated]:
    """Every term by its IRI, and every axiom: words, fields."""
    stated: dict[str, _Stated] = {
        term.iri: (f"{term.label} ({kind})", (*asdict(term).items(),))
        for kind, terms in (("class", schema.classes), ("property", schema.properties))
        for term in terms
    }
    return stated | {line: (line, ()) for line in schema.axioms}


def _flatten(value: JsonValue, name: str) -> Iterator[tuple[str, JsonValue]]:
    if isinstance(value, dict):
        for key in sorted(value):
            yield from _flatten(value[key], f"{name}.{key}")
    else:
        yield name, value


def _say(
    counts: Counts, noun: str, added: str = "more", removed: str = "fewer", changed: str = "changed"
) -> str:
    """Such as "1 document edited, 1 gone"; empty where nothing differs."""
    pairs = ((counts.added, added), (counts.changed, changed), (counts.removed, removed))
    first, *others = [pair for pair in pairs if pair[0]] or [(0, "")]
    if not first[0]:
        return ""
    things = f"{first[0]:,} {noun}{'' if first[0] == 1 else 's'} {first[1]}"
    return ", ".join([things, *(f"{number:,} {word}" for number, word in others)])
