"""Every table under a scope has the rows that an independent reading of the rules leaves."""

import shutil
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from making.ablation import add_index

from kpyramid.documents.qualifiers import DOCUMENT, cite_document, unite_qualifiers
from kpyramid.documents.validity import date_fact
from kpyramid.documents.words import word_relation
from kpyramid.ontology.schema import parse_schema
from kpyramid.query import Snapshot
from kpyramid.snapshot.view import EVERYTHING, Scope
from kpyramid.storage.contracts import encode_table, load_contracts
from tests.corpora import encode_lines, open_told
from tests.rows import read_bodies
from tests.test_scopes import DECISIONS, LABELLED, PUBLIC_ONES

pytestmark = pytest.mark.usefixtures("passing_gates")

MORE = read_bodies("scope_closure.more")
Row = dict[str, Any]
ROWS: list[Row] = [*PUBLIC_ONES, *LABELLED, *MORE]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    texts = {"all.jsonl": encode_lines(ROWS)}
    built = open_told("closure", texts, EVERYTHING, decisions=DECISIONS)
    return plant_statements(built, tmp_path_factory.mktemp("planted") / built.id)


def plant_statements(built: Snapshot, folder: Path) -> Snapshot:
    """A copy with the statements that only a model writes: of each entity the first two facts."""
    shutil.copytree(built.folder, folder)
    anchors = sorted(term.iri for term in built.schema.properties)
    added = next(p.iri for p in built.schema.properties if p.label == "betrayed")
    cited: dict[str, list[str]] = defaultdict(list)
    for fact in built.table("condensed").to_pylist():
        cited[fact["head_id"]].append(fact["condensed_id"])
    rows = [
        {
            "statement_id": f"statement-{head}",
            "head_id": head,
            "anchor": added if number % 5 == 0 else anchors[number % len(anchors)],
            "text": "What two facts say.",
            "condensed_ids": keys[:2],
        }
        for number, (head, keys) in enumerate(sorted(cited.items()))
    ]
    contracts = load_contracts()
    for name, table in {
        "statements": contracts["statements"].build(rows),
        "vectors": built.table("vectors"),
    }.items():
        (folder / f"tables/{name}.parquet").write_bytes(encode_table(table))
    shutil.rmtree(folder / "tables/vectors")
    add_index(folder)
    return Snapshot(folder, scope=EVERYTHING)


class Oracle:
    """What readers of some documents see, by walking every row; slow, and knows no index."""

    def __init__(self, snapshot: Snapshot, documents: Collection[str]) -> None:
        self.all: dict[str, list[Row]] = {
            name: snapshot.table(name).to_pylist()
            for name, contract in load_contracts().items()
            if contract.visible_by
        }
        self.folder = snapshot.folder
        self.schema = snapshot.schema
        self.seen: dict[str, set[str]] = {"documents": set(documents)}
        self._see("chunks", lambda row: row["document_id"] in self.seen["documents"])
        for name in ("claims", "mentions", "raw_triples"):
            self._see(name, lambda row: row["chunk_id"] in self.seen["chunks"])
        raw = self.seen["raw_triples"]
        self._see("triples", lambda row: bool(raw & {*row["raw_triple_ids"]}))
        self._name()
        self._see("entities", lambda row: row["entity_id"] in self.forms)
        self._see("relations", lambda row: row["relation_id"] in self.forms)
        self.hidden = self._hide_terms()
        self._see("condensed", self._shows_fact)
        self._see("instances", self._shows_instance)
        self._see("additions", lambda row: row["instance_id"] in self.seen["instances"])
        self._see("statements", self._shows_statement)
        self._see(
            "proposals",
            lambda row: (
                row["label"] in self._list_words(row)
                and not self.hidden & {row["iri"], row["domain"], row["range"]}
            ),
        )

    def _see(self, name: str, shows: Any) -> None:
        key = load_contracts()[name].key[0]
        self.seen[name] = {row[key] for row in self.all[name] if shows(row)}

    def _name(self) -> None:
        """The forms under which seen raw triples name entities and relations."""
        by_key = {row["raw_triple_id"]: row for row in self.all["raw_triples"]}
        self.forms: dict[str, set[str]] = defaultdict(set)
        self.said: dict[str, list[tuple[str, str]]] = {}
        for triple in self.all["triples"]:
            stated = [by_key[k] for k in triple["raw_triple_ids"] if k in self.seen["raw_triples"]]
            self.said[triple["triple_id"]] = [p for raw in stated for p in raw["qualifiers"]]
            for raw in stated:
                self.forms[triple["head_id"]].add(raw["head"])
                self.forms[triple["relation_id"]].add(raw["relation"])
                if triple["tail_id"]:
                    self.forms[triple["tail_id"]].add(raw["tail"])

    def name(self, key: str, canonical: str) -> str:
        forms = self.forms[key]
        return canonical if canonical in forms else max(forms, key=lambda f: (len(f), f))

    def word(self, key: str) -> str:
        """The seen wording of a relation."""
        names = {row["relation_id"]: row["name"] for row in self.all["relations"]}
        return self.name(key, names[key])

    def _stating(self, fact: Row) -> list[str]:
        """The seen triples that say as much as a fact."""
        pairs = zip(fact["derived_from"], fact["how"], strict=True)
        return [k for k, how in pairs if how != "broader" and k in self.seen["triples"]]

    def _shows_fact(self, row: Row) -> bool:
        ends = {row["head_id"], row["relation_id"], row["tail_id"] or row["head_id"]}
        return bool(self._stating(row)) and ends <= self.forms.keys()

    def _shows_instance(self, row: Row) -> bool:
        placed = any(place["chunk_id"] in self.seen["chunks"] for place in row["places"])
        ends = {row["subject_id"], row["object_id"] or row["subject_id"]}
        return (
            placed
            and ends <= self.forms.keys()
            and not self.hidden & {row["class_iri"], row["property_iri"]}
        )

    def qualify(self, fact: Row) -> list[tuple[str, str]]:
        pairs = [pair for key in self._stating(fact) for pair in self.said[key]]
        return self.unite(pairs, fact)

    def unite(self, pairs: list[tuple[str, str]], row: Row) -> list[tuple[str, str]]:
        """What is seen of a row's qualifiers; documents that are hidden have no name here."""
        documents = [r for r in self.all["documents"] if r["document_id"] in self.seen["documents"]]
        cited = {cite_document(r["title"], r["text"]) for r in documents}
        named = [
            (role, text)
            for role, texts in row["qualifiers"]
            for text in texts.split(" / ")
            if role != DOCUMENT or text in cited
        ]
        return unite_qualifiers(pairs, named)

    def _shows_statement(self, row: Row) -> bool:
        facts = [r for r in self.all["condensed"] if r["condensed_id"] in row["condensed_ids"]]
        names = {r["entity_id"]: r["name"] for r in self.all["entities"]}
        names |= {r["relation_id"]: r["name"] for r in self.all["relations"]}
        return row["anchor"] not in self.hidden and all(
            fact["condensed_id"] in self.seen["condensed"]
            and self.qualify(fact) == sorted(fact["qualifiers"])
            and all(
                self.name(fact[end], names[fact[end]]) == names[fact[end]]
                for end in ("head_id", "relation_id", "tail_id")
                if fact[end]
            )
            for fact in facts
        )

    def _is_whole(self, keys: list[str]) -> bool:
        triples = [row for row in self.all["triples"] if row["triple_id"] in keys]
        return all({*t["raw_triple_ids"]} <= self.seen["raw_triples"] for t in triples)

    def _list_words(self, row: Row) -> set[str]:
        words = {row["label"], *row["phrases"]}
        if self._is_whole(row["triple_ids"]):
            return words
        keys = {*row["triple_ids"]} & self.seen["triples"]
        triples = [triple for triple in self.all["triples"] if triple["triple_id"] in keys]
        if row["kind"] == "property":
            return words & {f for t in triples for f in self.forms[t["relation_id"]]}
        ends = [t["literal"] for t in triples if t["tail_id"] is None]
        ends += [form for t in triples if t["tail_id"] for form in self.forms[t["tail_id"]]]
        return {w for w in words if any(w.casefold() in end.casefold() for end in ends)}

    def _hide_terms(self) -> set[str]:
        seed = parse_schema((self.folder / "ontology/seed.ttl").read_text(), source="seed")
        given = {*seed.class_by_iri, *seed.property_by_iri}
        rests: dict[str, set[str | None]] = {c.iri: {*c.parents} for c in self.schema.classes}
        rests |= {p.iri: {p.domain, p.range} for p in self.schema.properties}
        rests = {iri: below for iri, below in rests.items() if iri not in given}
        rows = [row for row in self.all["proposals"] if row["state"] != "alias"]
        rests |= {row["iri"]: {row["domain"], row["range"]} for row in rows}
        hidden = {*rests} - {r["iri"] for r in rows if r["label"] in self._list_words(r)}
        for _ in rests:
            hidden |= {iri for iri, below in rests.items() if hidden & below}
        return hidden


def keep(keys: list[str], seen: set[str]) -> list[str]:
    return [key for key in keys if key in seen]


def check_cells(oracle: Oracle, name: str, was: Row, row: Row) -> None:
    """What is left of a row refers to seen rows and is said in seen words."""
    if name in ("triples", "condensed"):
        wording = word_relation(oracle.word(row["relation_id"]), row["negated"])
        assert (row["valid_from"], row["valid_to"]) == date_fact(row["qualifiers"], wording)
    if name == "triples":
        assert row["raw_triple_ids"] == keep(was["raw_triple_ids"], oracle.seen["raw_triples"])
        said = oracle.said[row["triple_id"]]
        assert row["qualifiers"] == oracle.unite(said, was)
    elif name in ("entities", "relations"):
        key = row["entity_id" if name == "entities" else "relation_id"]
        assert row["surface_forms"] == sorted(oracle.forms[key])
        assert row["name"] == oracle.name(key, was["name"])
    elif name == "condensed":
        pairs = [*zip(was["derived_from"], was["how"], strict=True)]
        left = [pair for pair in pairs if pair[0] in oracle.seen["triples"]]
        assert [*zip(row["derived_from"], row["how"], strict=True)] == left
        assert row["qualifiers"] == oracle.qualify(was)
        assert not {row["anchor"], row["anchor_class"]} & oracle.hidden
    elif name == "instances":
        assert row["places"] == [
            place for place in was["places"] if place["chunk_id"] in oracle.seen["chunks"]
        ]
        assert row["triple_ids"] == keep(was["triple_ids"], oracle.seen["triples"])
        assert row["chunk_id"] == row["places"][0]["chunk_id"]
    elif name == "proposals":
        assert {*row["phrases"]} == {*was["phrases"]} & oracle._list_words(was)
        assert row["triple_ids"] == keep(was["triple_ids"], oracle.seen["triples"])
        assert not {row["inverse_of"], row["splits"]} & oracle.hidden


@pytest.mark.slow
@settings(max_examples=40)
@given(data=st.data())
def test_a_scope_shows_what_the_rules_leave(whole: Snapshot, data: st.DataObject) -> None:
    ids = whole.table("documents")["document_id"].to_pylist()
    chosen = data.draw(st.sets(st.sampled_from(ids), min_size=1, max_size=len(ids) - 1))
    view = whole.scoped(Scope(None, documents=frozenset(chosen)))
    oracle = Oracle(whole, chosen)
    tables = {name: view.table(name) for name in oracle.seen}
    for name, table in tables.items():
        contract = load_contracts()[name]
        key = contract.key[0]
        assert {*table[key].to_pylist()} == oracle.seen[name], name
        contract.check_references(table, tables)
        was = {row[key]: row for row in oracle.all[name]}
        for row in table.to_pylist():
            check_cells(oracle, name, was[row[key]], row)
            changed = {column for column in row if row[column] != was[row[key]][column]}
            assert changed <= CUT.get(name, set()), name


CUT = {
    "triples": {"raw_triple_ids", "qualifiers", "valid_from", "valid_to"},
    "entities": {"name", "surface_forms", "mentions"},
    "relations": {"name", "surface_forms", "inverse_of"},
    "condensed": {
        *("derived_from", "how", "qualifiers", "more_detailed_id", "anchor", "anchor_class"),
        *("standard_relation", "standard_turned", "standard_head_id", "standard_tail_id"),
        *("valid_from", "valid_to"),
    },
    "instances": {
        *("places", "triple_ids", "chunk_id", "start", "end", "subject_span", "object_span")
    },
    "proposals": {
        *("phrases", "triple_ids", "support", "definition", "note", "inverse_of", "splits")
    },
}
"""Columns of which a part may be hidden; of every other one a seen row has all."""


@settings(max_examples=30)
@given(labels=st.sets(st.sampled_from(["board", "staff", "x"])))
def test_labels_open_their_documents(whole: Snapshot, labels: set[str]) -> None:
    seen = whole.scoped(Scope(access=frozenset(labels))).table("documents")["source"].to_pylist()
    assert {source.partition("#")[2] for source in seen} == {
        row["id"] for row in ROWS if not row.get("access") or labels & {*row["access"]}
    }


def test_a_contract_names_only_its_own_columns(tmp_path: Path) -> None:
    from kpyramid.errors import PyramidError
    from kpyramid.storage.contracts import parse_contract

    path = tmp_path / "things.toml"
    path.write_text('table = "things"\nversion = 1\nabout = "."\nkey = []\nvisible_by = ["x_id"]\n'
                    "columns = []\n")  # fmt: skip
    with pytest.raises(PyramidError, match="x_id"):
        parse_contract(path)
