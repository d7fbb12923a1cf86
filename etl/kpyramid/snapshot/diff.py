"""What differs between two snapshots: rows that are new, gone or changed, counted and in words."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import duckdb
import pyarrow.parquet as pq

from kpyramid.errors import InputError, IntegrityError
from kpyramid.keys import JsonValue
from kpyramid.ontology.schema import Schema
from kpyramid.snapshot.graph import name_source, open_database
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.view import Scope
from kpyramid.storage.snapshots import MANIFEST, list_table

Change = Literal["added", "removed", "changed"]
_Told = tuple[str, Mapping[str, Any]]
"""A row in words, and its values that are compared, by name."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A table that is compared by its key, and how a row of it is put in words.

    `compared`: names and expressions whose difference makes a row changed. `tables`: what
    `words` reads, as `t`, the table itself, and what `joined` joins to it.
    """

    table: str
    key: str
    compared: Mapping[str, str]
    words: str
    tables: tuple[str, ...]
    joined: str = ""


def _same(*columns: str) -> dict[str, str]:
    return {name: name for name in columns}


_ENDS = "LEFT JOIN {side}.entities AS %s ON %s.entity_id = t.%s"

PARTS: Mapping[str, _Part] = {
    "documents": _Part(
        "documents",
        "source",
        {"text": "sha256", **_same("title", "language", "metadata", "access", "licence")},
        "t.source",
        ("documents",),
    ),
    "facts": _Part(
        "condensed",
        "condensed_id",
        _same(
            *("qualifiers", "standard_relation", "standard_turned", "more_detailed_id", "anchor"),
            "derived_from",
        ),
        "concat_ws(' | ', h.name, r.name, coalesce(o.name, t.literal))",
        ("condensed", "entities", "relations"),
        "LEFT JOIN {side}.relations AS r USING (relation_id) "
        + " ".join([_ENDS % ("h", "h", "head_id"), _ENDS % ("o", "o", "tail_id")]),
    ),
    "entities": _Part(
        "entities",
        "entity_id",
        _same("name", "type", "surface_forms"),
        "t.name || ' (' || t.type || ')'",
        ("entities",),
    ),
    "instances": _Part(
        "instances",
        "instance_id",
        {},
        "concat_ws(' | ', h.name, coalesce(regexp_extract(t.property_iri, '[^#/]+$'), 'is a'), "
        "CASE WHEN t.property_iri IS NULL THEN regexp_extract(t.class_iri, '[^#/]+$') "
        "ELSE coalesce(o.name, t.literal) END)",
        ("instances", "entities"),
        " ".join([_ENDS % ("h", "h", "subject_id"), _ENDS % ("o", "o", "object_id")]),
    ),
    "proposals": _Part(
        "proposals",
        "proposal_id",
        _same("state", "decided_by", "iri", "definition", "support"),
        "t.label || ' (' || t.kind || ', ' || t.state || ')'",
        ("proposals",),
    ),
}
NAMES = ("documents", "facts", "entities", "ontology", "instances", "proposals", "metrics")
"""What is compared, in the order of a report."""
_COUNTED = ("documents", "chunks", "triples", "condensed", "entities", "relations", "instances")


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows the later snapshot has and the earlier lacks, the other way, and changed."""

    added: int = 0
    removed: int = 0
    changed: int = 0

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


@dataclass(frozen=True, slots=True)
class Row:
    """One difference; `fields` has the values before and after of what changed in it."""

    change: Change
    key: str
    words: str
    fields: Mapping[str, tuple[Any, Any]]


@contextmanager
def compare(before: Snapshot, after: Snapshot) -> "Iterator[Diff]":
    """What differs between two snapshots, as far as both let it be seen.

    A document that the scopes hide by its labels in the later snapshot, or in that which was made
    last, is hidden in both, by its source and by its text.

    Tables are read where they lie and joined on disk if memory is short. Where a scope hides
    documents, its view of the tables is held in memory.

    Raises:
        IntegrityError: a table cannot be read.
    """
    before, after = _hide_guarded(before, after)
    with open_database() as database:
        database.execute("SET preserve_insertion_order = false")
        try:
            yield Diff(database, before, after)
        except duckdb.Error as e:
            raise IntegrityError(
                f"snapshots {before.id} and {after.id} cannot be compared: {e}. `kpyramid verify "
                "ID` says whether one is damaged"
            ) from e


def _hide_guarded(before: Snapshot, after: Snapshot) -> tuple[Snapshot, Snapshot]:
    """Both snapshots without what newer labels hide: a label that was added holds for the past."""
    newest = max(before, after, key=lambda side: (side.folder / MANIFEST).stat().st_mtime)
    guarded = _list_guarded(after) | _list_guarded(newest)
    return _hide(before, guarded), _hide(after, guarded)


def _list_guarded(snapshot: Snapshot) -> set[str]:
    """Sources, and hashes of texts, that the labels of documents hide from the scopes."""
    scopes = [scope.access for scope in snapshot.scopes if scope.access is not None]
    guarded, seen = set[str](), set[str]()
    for row in _list_documents(snapshot) if scopes else ():
        is_guarded = row["access"] and any(access.isdisjoint(row["access"]) for access in scopes)
        (guarded if is_guarded else seen).update((row["source"], row["sha256"]))
    return guarded - seen


def _hide(snapshot: Snapshot, guarded: set[str]) -> Snapshot:
    rows = _list_documents(snapshot) if guarded else []
    hidden = [row["document_id"] for row in rows if guarded & {row["source"], row["sha256"]}]
    return snapshot.scoped(Scope(None, hidden=frozenset(hidden))) if hidden else snapshot


def _list_documents(snapshot: Snapshot) -> list[dict[str, Any]]:
    columns = ["document_id", "source", "sha256", "access"]
    files = list_table(snapshot.folder, "documents")
    return [row for file in files for row in pq.read_table(file, columns=columns).to_pylist()]


class Diff:
    """The differences of two snapshots, found part by part when they are asked for."""

    def __init__(
        self, database: duckdb.DuckDBPyConnection, before: Snapshot, after: Snapshot
    ) -> None:
        self._database = database
        self._sides = {"a": before, "b": after}
        self._opened: set[str] = set()
        for side in self._sides:
            database.execute(f"CREATE SCHEMA {side}")

    def count(self, name: str) -> Counts:
        """How many rows of a part differ.

        Raises:
            InputError: there is no such part.
        """
        if name == "ontology":
            changes = [row.change for row in self._terms]
            return Counts(*(changes.count(c) for c in ("added", "removed", "changed")))
        if name == "metrics":
            return Counts(changed=len(self.metrics))
        part = self._find(name)
        if self._is_same(part.table):
            return Counts()
        found = self._database.execute(
            f"SELECT count(*) FILTER (WHERE a.key IS NULL), count(*) FILTER (WHERE b.key IS NULL), "
            f"count(*) FILTER (WHERE a.said <> b.said) FROM {self._join(part)}"
        ).fetchall()
        return Counts(*found[0])

    def read(self, name: str, limit: int | None) -> list[Row]:
        """The first rows of a part that differ: removed, changed, added, each by key."""
        if name == "ontology":
            return self._terms[:limit]
        if name == "metrics":
            return [Row("changed", n, n, {"value": values}) for n, values in self.metrics.items()][
                :limit
            ]
        part = self._find(name)
        if self._is_same(part.table):
            return []
        chosen = (
            f"SELECT coalesce(a.key, b.key) AS key, CASE WHEN b.key IS NULL THEN 'removed' "
            f"WHEN a.key IS NULL THEN 'added' ELSE 'changed' END AS change FROM {self._join(part)} "
            "WHERE a.key IS NULL OR b.key IS NULL OR a.said <> b.said "
            "ORDER BY change = 'added', change = 'changed', key"
        )
        self._database.execute(
            f"CREATE OR REPLACE TEMP TABLE chosen AS {chosen}"
            + ("" if limit is None else f" LIMIT {int(limit)}")
        )
        told = {side: self._tell(part, side) for side in self._sides}
        rows = self._database.execute(
            "SELECT key FROM chosen ORDER BY change = 'added', change = 'changed', key"
        ).fetchall()
        return [_pair(key, told["a"].get(key), told["b"].get(key)) for (key,) in rows]

    @cached_property
    def metrics(self) -> dict[str, tuple[float | None, float | None]]:
        """Numbers of the earlier and the later snapshot, by name; those that are the same are not.

        Rows per table, the mean confidence of facts, and, for who sees all documents, rejects.
        """
        sides = {side: self._measure(side) for side in self._sides}
        names = sorted({*sides["a"], *sides["b"]})
        pairs = {name: (sides["a"].get(name), sides["b"].get(name)) for name in names}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def list_causes(self) -> dict[str, tuple[JsonValue, JsonValue]]:
        """What the two were made with that differs: settings, stages, models, by dotted name."""
        made = [
            dict(
                _flatten(
                    {
                        n: snapshot.manifest.get(n)
                        for n in ("settings", "stages", "resources", "model")
                    }
                )
            )
            for snapshot in self._sides.values()
        ]
        return {
            name: (made[0].get(name), made[1].get(name))
            for name in sorted({*made[0], *made[1]})
            if made[0].get(name) != made[1].get(name) and not name.endswith(".fingerprint")
        }

    def summarise(self) -> str:
        """One line: "1 document edited, 1 gone; 9 facts more, 38 fewer; ontology unchanged"."""
        words = {
            "documents": ("document", "new", "gone", "edited"),
            "facts": ("fact", "more", "fewer", "changed"),
            "instances": ("instance", "more", "fewer", "changed"),
        }
        said = {name: _say(self.count(name), *words[name]) for name in words}
        terms = _say(self.count("ontology"), "ontology term", "more", "fewer", "changed")
        told = [
            said["documents"] or "documents unchanged",
            said["facts"] or "facts unchanged",
            terms or "ontology unchanged",
        ]
        return "; ".join([*told, said["instances"]] if said["instances"] else told)

    def _find(self, name: str) -> _Part:
        if name not in PARTS:
            raise InputError(f"--table {name!r}: it is one of {', '.join(NAMES)}")
        return PARTS[name]

    def _is_same(self, table: str) -> bool:
        """Whether both have the same bytes of a table, and all of it is seen."""
        file = f"tables/{table}.parquet"
        hashes = []
        for snapshot in self._sides.values():
            files: Any = snapshot.manifest["files"]
            is_whole = file in files and not snapshot.describe_scope()
            hashes.append(files[file]["sha256"] if is_whole else None)
        return hashes[0] is not None and hashes[0] == hashes[1]

    def _join(self, part: _Part) -> str:
        """Both sides of a part by key, each with a hash of what is compared."""
        sides = []
        for side in self._sides:
            self._open(side, part.table)
            said = f"hash({', '.join(part.compared.values())})" if part.compared else "0"
            sides.append(f"(SELECT {part.key} AS key, {said} AS said FROM {side}.{part.table})")
        return f"{sides[0]} AS a FULL JOIN {sides[1]} AS b ON a.key = b.key"

    def _tell(self, part: _Part, side: str) -> dict[str, _Told]:
        """The chosen rows that one side has: words, and the values that are compared."""
        for table in part.tables:
            self._open(side, table)
        values = "".join(f", t.{column}" for column in part.compared.values())
        rows = self._database.execute(
            f"SELECT t.{part.key}, {part.words}{values} FROM {side}.{part.table} AS t "
            f"{part.joined.format(side=side)} WHERE t.{part.key} IN (SELECT key FROM chosen)"
        ).fetchall()
        return {
            key: (said, dict(zip(part.compared, held, strict=True))) for key, said, *held in rows
        }

    def _open(self, side: str, table: str) -> None:
        """Makes a table readable as `side.table`: the file, or what is seen of it."""
        if (name := f"{side}.{table}") in self._opened:
            return
        held = self._sides[side].locate_table(table)
        source = name_source(self._database, name.replace(".", "_"), held)
        self._database.execute(f"CREATE VIEW {name} AS FROM {source}")
        self._opened.add(name)

    def _measure(self, side: str) -> dict[str, float]:
        found: dict[str, float] = {}
        for table in _COUNTED:
            self._open(side, table)
            ((rows,),) = self._database.execute(f"SELECT count(*) FROM {side}.{table}").fetchall()
            found[f"rows of {table}"] = rows
        ((mean,),) = self._database.execute(
            f"SELECT round(avg(confidence), 4) FROM {side}.triples"
        ).fetchall()
        if mean is not None:
            found["mean confidence of triples"] = mean
        if not self._sides[side].describe_scope():
            self._open(side, "rejects")
            counted = self._database.execute(
                f"SELECT 'rejects of ' || stage || ', ' || reason, count(*) FROM {side}.rejects "
                "GROUP BY ALL"
            ).fetchall()
            found |= dict(counted)
        return found

    @cached_property
    def _terms(self) -> list[Row]:
        """The classes, properties and axioms of the schemas that differ."""
        before, after = (_list_terms(snapshot.schema) for snapshot in self._sides.values())
        rows = [
            _pair(key, before.get(key), after.get(key))
            for key in sorted({*before, *after})
            if before.get(key) != after.get(key)
        ]
        order = ("removed", "changed", "added")
        return sorted(rows, key=lambda row: order.index(row.change))


def _pair(key: str, before: _Told | None, after: _Told | None) -> Row:
    """The difference between what two sides say under a key."""
    words, now = after or before or ("", {})
    if before is None or after is None:
        return Row("added" if before is None else "removed", key, words, {})
    was = before[1]
    fields = {name: (was[name], now[name]) for name in now if was[name] != now[name]}
    return Row("changed", key, words, fields)


def _list_terms(schema: Schema) -> dict[str, _Told]:
    """Every term by its IRI, and every axiom: words, fields."""
    found: dict[str, _Told] = {c.iri: (f"{c.label} (class)", asdict(c)) for c in schema.classes}
    found |= {p.iri: (f"{p.label} (property)", asdict(p)) for p in schema.properties}
    return found | {line: (line, {}) for line in schema.axioms}


def _flatten(value: JsonValue, name: str = "") -> Iterator[tuple[str, JsonValue]]:
    if isinstance(value, dict):
        for key in sorted(value):
            yield from _flatten(value[key], f"{name}.{key}" if name else key)
    else:
        yield name, value


def _say(counts: Counts, noun: str, added: str, removed: str, changed: str) -> str:
    """Such as "1 document edited, 1 gone"; empty where nothing differs."""
    pairs = ((counts.added, added), (counts.changed, changed), (counts.removed, removed))
    told = [f"{number:,} {word}" for number, word in pairs if number]
    if told:
        number, _, word = told[0].partition(" ")
        told[0] = f"{number} {noun}{'' if number == '1' else 's'} {word}"
    return ", ".join(told)
