"""A pyramid without completion, condensation or anchors, for comparisons (PolyRAG Table III)."""

import json
import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import TypeAdapter

from kpyramid.keys import JsonValue, content_id, hash_bytes
from kpyramid.ontology.schema import OntologyProperty, Schema, parse_schema
from kpyramid.ontology.store import state_row, write_instances
from kpyramid.settings import IndexSettings
from kpyramid.snapshot.columns import join_tables
from kpyramid.snapshot.indexing import READS, build_index, open_vectors
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.store import SEED, Store
from kpyramid.storage.contracts import NO, encode_table, load_contracts, map_column, read_table
from kpyramid.storage.snapshots import FORMAT, MANIFEST, read_manifest


@contextmanager
def take_away(snapshot: Snapshot, parts: Collection[str]) -> Iterator[Snapshot]:
    """The snapshot without `completion`, `condensation`, `anchors`, or some of them.

    Without completion its ontology is the seed's, with the instances that induction found, and no
    fact of the condensed graph has an anchor or a standard relation that completion added. Without
    condensation its table `condensed` holds every triple by itself. Without anchors no fact has
    one, nor the name of a property; what was merged stays merged. It is a snapshot in a
    folder of its own, so that whatever reads it sees nothing of what was taken away; the folder is
    removed at the end. It is made of all documents, and opened with the snapshot's scopes.
    """
    name = "-".join([snapshot.id, "without", *sorted(parts)])
    with TemporaryDirectory(prefix="kpyramid-ablation-") as place:
        folder = Path(place) / name
        store = Store(snapshot.folder)
        _link_files(store, folder)
        if "completion" in parts:
            _remove_completion(store, folder, snapshot.schema)
        if "anchors" in parts:
            _remove_names(store, folder, snapshot.schema.properties)
        if "condensation" in parts:
            _remove_condensation(store, folder)
        _write_vectors(store, folder, parts)
        add_index(folder, _read_index_settings(store))
        first, *others = snapshot.scopes
        opened = Snapshot(folder, snapshot.model, first)
        opened.id = name
        for scope in others:
            opened = opened.scoped(scope)
        yield opened


def add_index(folder: Path, settings: IndexSettings | None = None) -> None:
    """Gives a folder with tables and a manifest of a snapshot the index of its tables.

    For copies that are measured and not published: the manifest is written anew.

    Raises:
        InputError: the folder has no manifest.
        IntegrityError: a table is damaged.
    """
    manifest = read_manifest(folder)
    contracts = load_contracts()
    tables = {n: read_table(folder / f"tables/{n}.parquet", contracts[n]) for n in READS}
    shutil.rmtree(folder / "index", ignore_errors=True)
    made = build_index(
        folder,
        *join_tables(tables),
        open_vectors([folder / "tables" / "vectors.parquet"], folder),
        settings or IndexSettings(),
    )
    files = manifest.get("files")
    listed: dict[str, JsonValue] = {**files} if isinstance(files, dict) else {}
    for name, path in made.items():
        data = path.read_bytes()
        listed[name] = {"sha256": hash_bytes(data), "bytes": len(data)}
    changed = {**manifest, "format": FORMAT, "files": listed}
    path = folder / MANIFEST
    path.unlink()  # it may be a link to another snapshot's
    path.write_bytes(json.dumps(changed, sort_keys=True).encode())


def _link_files(store: Store, folder: Path) -> None:
    """Manifest, tables and ontology of the snapshot, by links."""
    for part in ("tables", "ontology"):
        (folder / part).mkdir(parents=True)
        for path in sorted((store.folder / part).iterdir()):
            (folder / part / path.name).symlink_to(path.resolve())
    (folder / MANIFEST).symlink_to((store.folder / MANIFEST).resolve())


def _read_index_settings(store: Store) -> IndexSettings:
    """How the snapshot itself is searched, so that both are searched alike."""
    made = cast("dict[str, JsonValue]", store.manifest["index"])
    known = {field.name for field in fields(IndexSettings)}
    values = {name: value for name, value in made.items() if name in known}
    return TypeAdapter(IndexSettings).validate_python(values)


def _remove_completion(store: Store, folder: Path, grown: Schema) -> None:
    """The seed's schema, the instances that completion did not add, facts without its anchors."""
    turtle = (store.folder / SEED).read_text("utf-8")
    _replace(folder / "ontology" / "schema.ttl", turtle.encode())
    seed = parse_schema(turtle, source=f"seed of {store.id}").property_by_iri
    _remove_names(store, folder, [p for p in grown.properties if p.iri not in seed])
    table = _filter_instances(store)
    _write_table(folder, "instances", table)
    names = map_column(store.table("entities"), "entity_id", "name")
    statements = [state_row(row, names) for row in table.to_pylist()]
    _replace(folder / "ontology" / "instances.nt", write_instances(statements).encode())


def _remove_names(store: Store, folder: Path, gone: Sequence[OntologyProperty]) -> None:
    """Facts without the anchors and the standard relations that some properties give them."""
    facts = store.table("condensed")
    wording = map_column(store.table("relations"), "relation_id", "name")
    own = pa.array([wording[key] for key in facts["relation_id"].to_pylist()], pa.string())
    called = _is_in(facts["standard_relation"], [p.label for p in gone])
    anchored = _is_in(facts["anchor"], [p.iri for p in gone])
    stand_ins = {NO: pa.scalar(False), "relation_id.name": own}
    changed = {}
    for c in load_contracts()["condensed"].columns:
        if c.instead:
            other = stand_ins[c.instead] if c.instead in stand_ins else facts[c.instead]
            changed[c.name] = pc.if_else(called, other, facts[c.name])
        elif c.term:
            changed[c.name] = pc.if_else(anchored, None, facts[c.name])
    for name, column in changed.items():
        at = facts.column_names.index(name)
        facts = facts.set_column(at, facts.schema.field(name), column)
    _write_table(folder, "condensed", facts)
    said = store.table("statements")
    near = _is_in(said["anchor"], [p.iri for p in gone])
    _write_table(folder, "statements", said.filter(pc.invert(near)))


def _is_in(column: pa.ChunkedArray, values: list[str]) -> pa.ChunkedArray:
    return pc.is_in(column, value_set=pa.array(values, pa.string()))


def _filter_instances(store: Store) -> pa.Table:
    added = store.table("additions")["instance_id"].combine_chunks()
    table = store.table("instances")
    return table.filter(pc.invert(pc.is_in(table["instance_id"], value_set=added)))


def _remove_condensation(store: Store, folder: Path) -> None:
    """Every triple as a condensed fact that stands for itself alone."""
    triples = store.table("triples")
    wording = map_column(store.table("relations"), "relation_id", "name")
    said = ("head_id", "relation_id", "tail_id", "literal", "qualifiers")
    columns = {name: triples[name].combine_chunks() for name in said}
    table = load_contracts()["condensed"].fill(
        {
            "condensed_id": _name_facts(triples),
            **columns,
            "standard_relation": [wording[key] for key in triples["relation_id"].to_pylist()],
            "derived_from": [[key] for key in triples["triple_id"].to_pylist()],
            "how": [["kept"]] * triples.num_rows,
        }
    )
    _write_table(folder, "condensed", table)
    _write_table(folder, "statements", load_contracts()["statements"].build([]))


def _name_facts(triples: pa.Table) -> list[str]:
    """The ids that the triples have as condensed facts, in the order of their rows."""
    said = (triples[name].to_pylist() for name in ("head_id", "relation_id", "tail_id", "literal"))
    return [content_id("condensed", *(x or "" for x in row)) for row in zip(*said, strict=True)]


def _write_vectors(store: Store, folder: Path, parts: Collection[str]) -> None:
    """The vectors of what is left; a triple as a condensed fact has the triple's."""
    vectors = store.table("vectors")
    if "completion" in parts:
        kept = _filter_instances(store)["instance_id"].combine_chunks()
        of_others = pc.not_equal(vectors["owner_table"], "instances")
        vectors = vectors.filter(pc.or_(of_others, pc.is_in(vectors["owner_id"], value_set=kept)))
    if "condensation" in parts:
        vectors = vectors.filter(pc.not_equal(vectors["owner_table"], "condensed"))
        own = vectors.filter(pc.equal(vectors["owner_table"], "triples"))
        triples = store.table("triples")
        ids = dict(zip(triples["triple_id"].to_pylist(), _name_facts(triples), strict=True))
        renamed = {
            "owner_table": pa.array(["condensed"] * own.num_rows, pa.string()),
            "owner_id": pa.array([ids[key] for key in own["owner_id"].to_pylist()], pa.string()),
        }
        for at, name in enumerate(vectors.column_names):
            if name in renamed:
                own = own.set_column(at, vectors.schema.field(name), renamed[name])
        vectors = pa.concat_tables([vectors, own])
    _write_table(folder, "vectors", load_contracts()["vectors"].finish(vectors))


def _write_table(folder: Path, name: str, table: pa.Table) -> None:
    _replace(folder / "tables" / f"{name}.parquet", encode_table(table))


def _replace(link: Path, data: bytes) -> None:
    """A file in the place of a link to the snapshot's own."""
    link.unlink(missing_ok=True)  # of a table in parts there is none
    link.write_bytes(data)
