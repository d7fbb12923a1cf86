"""Facts of a snapshot of which at most one holds, each side with its sentence, the newest first."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kpyramid.documents.validity import find_date
from kpyramid.documents.words import word_fact
from kpyramid.snapshot.evidence import Evidence, list_stretches
from kpyramid.snapshot.view import View


@dataclass(frozen=True, slots=True)
class Side:
    """A fact of a conflict: in words, its date or else its document's, and its places.

    Places that name its value come first, the newest first; `document_date`: date of the first.
    Both dates are a year, month or day in ISO 8601, empty if unknown.
    """

    condensed_id: str
    statement: str
    date: str
    document_date: str
    evidence: tuple[Evidence, ...]

    def __str__(self) -> str:
        place = self.evidence[0]
        where = ", ".join(filter(None, (place.source, self.document_date)))
        return f"{self.statement}: “{' '.join(place.text.split())}” ({where})"


@dataclass(frozen=True, slots=True)
class Conflict:
    """A row of `contradictions`; `sides` are newest first, those without a date last."""

    contradiction_id: str
    kind: str
    detail: str
    sides: tuple[Side, ...]


class Conflicts:
    """The conflicts of a view: those of which all sides are visible."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._stated: dict[int, Conflict] = {}

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        held = self._view.holds("contradictions")
        rows: Any = self._view.table("contradictions").to_pylist() if held else []
        return list(rows)

    @cached_property
    def _by_fact(self) -> dict[int, list[int]]:
        """The indices of the conflicts of each condensed fact, by its row."""
        indices = defaultdict(list)
        for index, row in enumerate(self._rows):
            for key in row["condensed_ids"]:
                indices[self._view.locate("condensed", key)].append(index)
        return indices

    @cached_property
    def _by_chunk(self) -> dict[str, list[tuple[int, int, int]]]:
        """Start and end in the document of each stated side, and its conflict, by chunk."""
        facts, chunks = self._view.rows("condensed"), self._view.rows("chunks").keys
        stretches: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for row, conflicts in self._by_fact.items():
            for chunk, start, end in list_stretches(facts, row):
                stretches[chunks[chunk]] += [(start, end, index) for index in conflicts]
        return stretches

    def list_all(self) -> Iterator[Conflict]:
        """All conflicts, in key order."""
        return map(self._tell, range(len(self._rows)))

    def about(self, key: str) -> tuple[Conflict, ...]:
        """The conflicts of a condensed fact, or of the facts on which an instance rests."""
        if not self._rows:
            return ()
        try:
            facts = self._view.list_facts(key)
        except KeyError:
            return ()
        indices = {index for fact in facts for index in self._by_fact.get(fact, ())}
        return tuple(map(self._tell, sorted(indices)))

    def at(self, places: Iterable[Evidence]) -> tuple[Conflict, ...]:
        """The conflicts of which a side is stated in one of some places."""
        indices = {
            index
            for place in places
            for start, end, index in self._by_chunk.get(place.chunk_id, ())
            if start < place.end and place.start < end
        }
        return tuple(map(self._tell, sorted(indices)))

    def _tell(self, index: int) -> Conflict:
        if index not in self._stated:
            row = self._rows[index]
            sides = sorted(map(self._tell_side, row["condensed_ids"]), key=lambda s: s.condensed_id)
            sides.sort(key=lambda side: side.date, reverse=True)
            named = (row["contradiction_id"], row["kind"], row["detail"])
            self._stated[index] = Conflict(*named, tuple(sides))
        return self._stated[index]

    def _tell_side(self, key: str) -> Side:
        view, row = self._view, self._view.locate("condensed", key)
        _, head, _, relation, _, tail, _ = view.state_fact(row)
        first, last = view.date_fact(row)
        places = view.evidence(key)
        places.sort(key=lambda place: self._date(place.document_id), reverse=True)
        places.sort(key=lambda place: tail.casefold() not in place.text.casefold())
        dated = self._date(places[0].document_id) if places else ""
        words = (key, word_fact(head, relation, tail), last or first or dated, dated)
        return Side(*words, tuple(places))

    def _date(self, document_id: str) -> str:
        """The day of a document, by its metadata or title; empty without one."""
        documents, row = self._view.rows("documents"), self._view.locate("documents", document_id)
        metadata = dict(pair.split("=", 1) for pair in documents.value("metadata", row))
        day = find_date(metadata, documents.value("title", row))
        return day.isoformat() if day else ""
