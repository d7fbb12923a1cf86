"""The ontology as a reader sees it from whom documents are hidden."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.numerics.arrays import Mask
from kpyramid.ontology.schema import OntologyClass, OntologyProperty, Schema, parse_schema
from kpyramid.snapshot.mapped import MappedRows
from kpyramid.snapshot.store import SEED, Store
from kpyramid.snapshot.view import View

_TermT = TypeVar("_TermT", OntologyClass, OntologyProperty)
_Row = Mapping[str, Any]


class SeenWords(Protocol):
    """What a view tells of the words that name terms; see `DividedView`."""

    @property
    def rows(self) -> Callable[[str], MappedRows]: ...
    @property
    def whole_triples(self) -> frozenset[str]: ...
    def list_open(self, table: str) -> frozenset[str]: ...
    def forms_of(self, entity: int) -> tuple[str, ...]: ...
    def wordings_of(self, relation: int) -> tuple[str, ...]: ...


class SeenTerms:
    """Which terms of the ontology a view lets be seen, in which words.

    None of them says anything of a seed ontology: that is written by people for all to read. A
    term that completion added is there when a wording that is seen names it, with its alternative
    labels of that kind; with its definition when all that supports it is seen.
    """

    def __init__(self, store: Store, view: SeenWords) -> None:
        self._store = store
        self._view = view

    @cached_property
    def schema(self) -> Schema:
        """The ontology's schema, as far as it is seen."""
        whole, seed, hidden = self._whole, self._seed, self.hidden
        classes = [
            self._cut(c, seed.class_by_iri.get(c.iri)) for c in whole.classes if c.iri not in hidden
        ]
        properties = [
            replace(
                self._cut(p, seed.property_by_iri.get(p.iri)),
                inverse_of=None if p.inverse_of in hidden else p.inverse_of,
            )
            for p in whole.properties
            if p.iri not in hidden
        ]
        named = [f"<{iri}>" for iri in hidden]
        axioms = (line for line in whole.axioms if not any(name in line for name in named))
        return Schema(whole.base, tuple(classes), tuple(properties), tuple(axioms))

    def _cut(self, term: _TermT, seed: _TermT | None) -> _TermT:
        """A term with what is seen of its words: all that the seed ontology says of it."""
        rows = [row for row in self._proposals if row["iri"] == term.iri]
        words = set(seed.alt_labels) if seed else set()
        for row in rows:
            words |= self.words[row["proposal_id"]] if row["state"] in _ADDED else set()
        defined = seed is not None or any(map(self._is_whole, rows))
        return replace(
            term,
            alt_labels=tuple(word for word in term.alt_labels if word in words),
            comment=term.comment if defined else "",
        )

    @cached_property
    def hidden(self) -> frozenset[str]:
        """IRIs of classes and properties that were added or proposed, and are not seen."""
        whole, seed = self._whole, self._seed
        terms: dict[str, tuple[str | None, ...]] = {
            **{c.iri: c.parents for c in whole.classes if c.iri not in seed.class_by_iri},
            **{
                p.iri: (p.domain, p.range)
                for p in whole.properties
                if p.iri not in seed.property_by_iri
            },
        }
        rows = [row for row in self._proposals if row["state"] != "alias"]
        terms |= {row["iri"]: (row["domain"], row["range"]) for row in rows}
        seen = {row["iri"] for row in rows if row["label"] in self.words[row["proposal_id"]]}
        hidden = terms.keys() - seen
        while more := {iri for iri in terms.keys() - hidden if hidden & {*terms[iri]}}:
            hidden |= more
        return frozenset(hidden)

    def mark_named(self) -> Mask:
        """The rows of the proposals whose label is seen."""
        named = (row["label"] in self.words[row["proposal_id"]] for row in self._proposals)
        return np.fromiter(named, np.bool_, len(self._proposals))

    @cached_property
    def words(self) -> dict[str, frozenset[str]]:
        """By proposal those of its wordings, its label among them, that are seen.

        A label that is none of the wordings was chosen by who saw all facts, so it is seen where
        all of them are.
        """
        ids = {key for row in self._proposals for key in row["triple_ids"]}
        facts = self._store.table("triples")
        near = pc.is_in(facts["triple_id"], value_set=pa.array(sorted(ids), pa.string()))
        triples = {row["triple_id"]: row for row in facts.filter(near).to_pylist()}
        return {
            row["proposal_id"]: self._list_words(row, [triples[key] for key in row["triple_ids"]])
            for row in self._proposals
        }

    def _list_words(self, row: _Row, triples: Iterable[_Row]) -> frozenset[str]:
        words = {row["label"], *row["phrases"]}
        if self._is_whole(row):
            return frozenset(words)
        seen = [t for t in triples if t["triple_id"] in self._view.list_open("triples")]
        if row["kind"] == "property":
            stated = {form for triple in seen for form in self._list_wordings(triple)}
            return frozenset(words & stated)
        ends = {end.casefold() for triple in seen for end in self._list_tails(triple)}
        return frozenset(w for w in words if any(w.casefold() in end for end in ends))

    def _list_wordings(self, triple: _Row) -> tuple[str, ...]:
        row = self._view.rows("relations").find(triple["relation_id"])
        return () if row is None else self._view.wordings_of(row)

    def _list_tails(self, triple: _Row) -> tuple[str, ...]:
        if triple["tail_id"] is None:
            return (triple["literal"],)
        row = self._view.rows("entities").find(triple["tail_id"])
        return () if row is None else self._view.forms_of(row)

    def _is_whole(self, row: _Row) -> bool:
        """Whether all that supports a proposal is seen."""
        return self._view.whole_triples.issuperset(row["triple_ids"])

    @cached_property
    def _whole(self) -> Schema:
        return View(self._store).schema

    @cached_property
    def _seed(self) -> Schema:
        return parse_schema(self._store.read_text(SEED), source=f"seed of {self._store.id}")

    @cached_property
    def _proposals(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._store.table("proposals").to_pylist()
        return rows


_ADDED = ("accepted", "alias")
"""States of proposals whose words are in the schema."""
