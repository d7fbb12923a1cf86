"""A snapshot that another team receives: its folder, its other forms, and the way back."""

import csv
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyoxigraph as ox
import pytest

from kpyramid.errors import EndpointError, InputError, IntegrityError
from kpyramid.ontology import names as n
from kpyramid.ontology.store import InstanceStatement, write_instances, write_ontology
from kpyramid.ontology.validation.owl import judge_reading
from kpyramid.ontology.validation.parts import Unjudged
from kpyramid.query import Snapshot, open_snapshot
from kpyramid.snapshot.export import _NEO4J, FORMS, _name_label, export
from kpyramid.snapshot.mapped import write_rows
from kpyramid.snapshot.view import EVERYTHING
from kpyramid.storage.archive import import_snapshot, list_exports
from kpyramid.storage.bucket import BucketStore
from kpyramid.storage.contracts import load_contracts, map_column
from kpyramid.storage.layout import Warehouse, open_warehouse
from kpyramid.storage.publication import commit, write_snapshot
from kpyramid.storage.retention import Policy, collect
from kpyramid.storage.snapshots import FORMAT, MANIFEST, list_table, read_manifest
from tests import commands
from tests.corpora import encode_lines, hash_tree, open_told, require_java
from tests.processes import run_python
from tests.rows import read_bodies, read_turtle
from tests.s3 import BUCKET, S3Server, use_server

STRANGE = 'The "Vell" <Lake> & \\ co;\n 🚢'
RECORDS = read_bodies("export.records")
WHOLE = ("folder", "tar")
FormOf = Callable[[str], Path]


@pytest.fixture(scope="module")
def told() -> Snapshot:
    return open_told("travel", {"a.jsonl": encode_lines(RECORDS)}, EVERYTHING)


@pytest.fixture
def folder(told: Snapshot, tmp_path: Path) -> Path:
    """A copy of the snapshot under another name, as it arrives elsewhere."""
    return shutil.copytree(told.folder, tmp_path / "a copy")


@pytest.fixture(scope="module")
def form_of(told: Snapshot, tmp_path_factory: pytest.TempPathFactory) -> FormOf:
    """Where an export of each form lies, made once for who only reads it."""
    folder = tmp_path_factory.mktemp("forms")

    def make(form: str) -> Path:
        if not (folder / form).exists():
            export(told, form, folder / form)
        return folder / form

    return make


def count_facts(snapshot: Snapshot) -> int:
    return snapshot.count("condensed")


# The folder by itself.


def test_copied_folder_is_opened_by_its_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    sums = ["sha256sum", "--strict", "--quiet", "-c", "SHA256SUMS"]
    assert subprocess.run(sums, check=False).returncode == 0
    for place in ("./", ".", str(folder)):
        assert [*commands.run_json("verify", place)["snapshots"]] == [open_snapshot(place).id]
    asked = commands.run_json("ask", "Where was Leon Batt born?", "--snapshot", "./")
    assert asked["text"] == "Oslo"
    (folder / "graph.ttl").write_bytes(b"")
    assert "graph.ttl" in str(commands.run_json("verify", "./", code=6))


def list_blocks(readme: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", readme, re.S)


@pytest.mark.slow
def test_every_python_block_of_the_readme_runs_in_the_folder(folder: Path) -> None:
    blocks = list_blocks((folder / "README.md").read_text("utf-8"))
    assert len(blocks) == 5
    assert "Aster Pictures" in run_python("\n".join(blocks), cwd=folder)


def test_the_readme_says_what_is_there_whose_it_is_and_who_may_see_it(folder: Path) -> None:
    readme = (folder / "README.md").read_text("utf-8")
    assert "3 documents as" in readme and f"format {FORMAT}" in readme
    assert "| https://creativecommons.org/licenses/by-sa/4.0/ | 1 |" in readme
    assert "| none stated | 1 |" in readme
    assert "`author`" in readme and "which 1 document of them state" in readme
    assert "(column `access`): 1 document." in readme
    for name in load_contracts():
        assert f"| `{name}` |" in readme


def test_parquet_and_duckdb_say_what_columns_mean(folder: Path) -> None:
    database = duckdb.connect()
    database.execute(f"SET file_search_path = '{folder}'")
    database.execute((folder / "views.sql").read_text("utf-8"))
    assert database.sql("FROM facts").fetchall()
    for name, contract in load_contracts().items():
        schema = pq.read_schema(list_table(folder, name)[0])
        said = json.loads(schema.metadata[b"columns"])
        noted = dict(
            database.sql(
                f"SELECT column_name, comment FROM duckdb_columns() WHERE table_name = '{name}'"
            ).fetchall()
        )
        for column in contract.columns:
            field = schema.field(column.name)
            assert field.metadata[b"description"].decode() == column.about
            assert field.metadata.get(b"unit", b"").decode() == (column.unit or "")
            assert said[column.name] == column.describe()
            assert noted[column.name].startswith(column.about)
    assert "characters" in str(load_contracts()["chunks"].columns)


def test_ontology_and_graph_are_read_by_rdflib_pyoxigraph_and_owlready2(told: Snapshot) -> None:
    import owlready2
    import rdflib

    place = told.folder / "ontology" / "ontology.nt"
    individuals = {
        quad.subject.value
        for quad in ox.parse(path=place, format=ox.RdfFormat.N_TRIPLES)
        if quad.object == ox.NamedNode(str(rdflib.OWL.NamedIndividual))
    }
    assert individuals
    read = rdflib.Graph().parse(place)
    assert {str(s) for s in read.subjects(rdflib.RDF.type, rdflib.OWL.NamedIndividual)} == (
        individuals
    )
    world = owlready2.World()
    loaded = world.get_ontology(place.as_uri()).load()
    assert {one.iri for one in loaded.individuals()} == individuals
    assert all(list(one.get_properties()) is not None for one in loaded.individuals())
    values = [one[0] for p in loaded.data_properties() for one in p.get_relations()]
    assert values or not [*loaded.data_properties()]
    anna = loaded.search_one(label="Anna Holm")
    assert str(anna.is_a[0].label.first()) == "agent"
    for name in ("graph.ttl", "ontology/schema.ttl", "ontology/instances.nt"):
        path = told.folder / name
        form = ox.RdfFormat.TURTLE if path.suffix == ".ttl" else ox.RdfFormat.N_TRIPLES
        one, other = rdflib.Graph().parse(path), list(ox.parse(path=path, format=form))
        assert len(one) == len({*other}) > 0
        assert name.endswith(".nt") or {"rdfs", "skos", "kp"} <= dict(one.namespaces()).keys()


def test_a_value_that_owlready2_reads_otherwise_than_written_fails_the_gate() -> None:
    """Of any datatype, and of properties with an inverse; no Python that a file names is run."""
    base = "https://example.org/o#"
    literals = {
        "date": "1850-01-02", "gYear": "1850", "gYearMonth": "1850-01", "integer": "9" * 24,
        "decimal": "7.5", "boolean": "true", "anyURI": "http://a.b/", "string": "a\u2028b é",
    }  # fmt: skip
    schema = read_turtle("reasoner") + (
        ":home owl:inverseOf :bornIn ; a owl:ObjectProperty . :knows a owl:SymmetricProperty .\n"
        ":iri a owl:DatatypeProperty .\n"
        f":Person <{n.OWLREADY}python_name> 'Evil' . <https://example.org/o> "
        f"<{n.OWLREADY}python_module> 'evil_module' .\n"
        + "".join(f":p{d} a owl:DatatypeProperty ; rdfs:range xsd:{d} .\n" for d in literals)
    )
    ann, person = 'Ann "A" Lee', base + "Person"
    stated = [(base + "knows", person, base + "bo", None, None, ann, "Bo Ek")]
    stated += [(base + "bornIn", n.THING, base + "oslo", None, None, ann, "Oslo")]
    stated += [(f"{base}p{d}", person, None, v, n.XSD + d, ann) for d, v in literals.items()]
    stated += [(base + "iri", person, None, '"@en', n.XSD + "string", ann)]
    written = write_instances([InstanceStatement(base + "ann", *row) for row in stated])
    read = write_ontology(schema, written)
    left = Unjudged("", [("", written.split("\n"))], None)
    assert judge_reading(read, left, seconds=60) == "pass: 15 values of 3 individuals"
    for change in (
        *('"7.5"|"7.25"', "1850-01-02T|1850-01-03T", "Bo Ek|Bo", "o#bo>|o#al>", '"true"|"false"'),
        *("o#Person> .|o#Work> .", "\n|\n<x"),
    ):
        old, new = change.split("|")
        assert old in read
        verdict = judge_reading(read.replace(old, new), left, seconds=60)
        assert verdict.startswith("fail: owlready2 reads "), old


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ontology.nt", "schema.ttl"])
def test_owl_api_of_protege_reads_ontology(told: Snapshot, tmp_path: Path, name: str) -> None:
    """By the OWL API that owlready2 carries for HermiT, and a class there that loads and saves."""
    require_java()
    import owlready2

    hermit = Path(owlready2.__file__).parent / "hermit"
    given, saved = told.folder / "ontology" / name, tmp_path / "saved.owx"
    path = os.pathsep.join(map(str, (hermit, hermit / "HermiT.jar")))
    command = ["java", "-cp", path, "Save", str(given), "xml", str(saved)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "saved" in done.stderr, done.stderr
    found = saved.read_text("utf-8")
    assert found.count('<Class IRI="') + found.count('<Class abbreviatedIRI="') > 0
    if name == "ontology.nt":
        lines = given.read_text("utf-8").splitlines()
        assert found.count("<ClassAssertion>") == sum(
            "/id/entity-" in line and "#type> <" in line and "NamedIndividual" not in line
            for line in lines
        )
        assert "<ObjectPropertyAssertion>" in found and "<DataPropertyAssertion>" in found


# Every form is read back by what reads it.


def test_graphml_is_read_by_networkx_and_igraph(told: Snapshot, form_of: FormOf) -> None:
    import igraph
    import networkx

    read = networkx.read_graphml(form_of("graphml"), force_multigraph=True)
    other = igraph.Graph.Read_GraphML(str(form_of("graphml")))
    assert read.number_of_edges() == other.ecount()
    kinds = Counter(kind for _, _, kind in read.edges(data="kind"))
    assert kinds["fact"] == count_facts(told)
    classes = {iri: node["label"] for iri, node in read.nodes(data=True) if node["type"] == "CLASS"}
    assert kinds["subclass of"] and kinds["instance of"] and "person" in classes.values()
    assert read.number_of_nodes() == other.vcount()
    assert sorted(label for _, label in read.nodes(data="label")) == sorted(other.vs["label"])
    (edge,) = (
        data
        for one, two, data in read.edges(data=True)
        if (read.nodes[one]["label"], read.nodes[two]["label"]) == ("Anna Holm", "Aster Pictures")
    )
    assert edge["sentence"] == RECORDS[0]["text"][edge["start"] : edge["end"]]
    assert "founded" in edge["sentence"]
    assert edge["relation"] == "founded" and 0 < edge["confidence"] <= 1
    assert edge["licences"] == RECORDS[0]["licence"] and edge["sources"] == "a.jsonl#holm"
    (anna,) = (data for _, data in read.nodes(data=True) if data["label"] == "Anna Holm")
    assert "agent" in anna["classes"].split("; ")
    assert edge["attributions"] == "Ida Bell; Per \ufffdLund", "XML cannot hold the other"


def test_neo4j_files_have_the_documented_form(told: Snapshot, tmp_path: Path) -> None:
    """Headers as `neo4j-admin database import` documents them; ids once; ends that are there."""
    made = export(told, "neo4j", tmp_path / "neo4j")
    script = (tmp_path / "neo4j" / "import.sh").read_text("utf-8")
    nodes = re.findall(r"--nodes=(\S+)", script)
    edges = re.findall(r"--relationships=(\S+)", script)
    assert sorted([*nodes, *edges, "import.sh"]) == sorted(made.files)
    assert "--multiline-fields=true" in script and "--array-delimiter=U+001F" in script
    header = re.compile(
        r"\w*:ID|:LABEL|:START_ID|:END_ID|:TYPE|\w+(:(boolean|double|long|string\[\]))?"
    )
    ids: list[str] = []
    rows: dict[str, list[dict[str, str]]] = {}
    for name in (*nodes, *edges):
        text = (tmp_path / "neo4j" / name).read_text("utf-8")
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        rows[name] = list(reader)
        assert all(header.fullmatch(field) for field in reader.fieldnames or ())
        assert all(None not in row and None not in row.values() for row in rows[name])
        if name in nodes:
            ids += [row["id:ID"] for row in rows[name]]
    assert len(ids) == len(set(ids))
    for name in edges:
        assert rows[name]
        for row in rows[name]:
            assert {row[":START_ID"], row[":END_ID"]} <= set(ids) and row[":TYPE"]
    assert len(rows["facts.csv"]) == count_facts(told)
    (anna,) = (row for row in rows["entities.csv"] if row["name"] == "Anna Holm")
    assert anna[":LABEL"].split("\x1f")[:2] == ["Entity", "Agent"]
    properties = {entry.label for entry in told.schema.properties}
    texts = {f"a.jsonl#{record['id']}": record["text"] for record in RECORDS}
    for row in rows["facts.csv"]:
        assert (row[":TYPE"] == "RELATED") == (row["relation"] not in properties)
        words = row["sentence"]
        assert (
            texts[row["sources:string[]"].split("\x1f")[0]][
                int(row["start:long"]) : int(row["end:long"])
            ]
            == words
        )
    assert {row[":TYPE"] for row in rows["facts.csv"]} > {"RELATED"}
    titles = {row["source"]: row["title"] for row in rows["documents.csv"]}
    assert titles["a.jsonl#holm"] == STRANGE


def test_no_property_and_no_class_has_a_name_of_the_export_itself() -> None:
    column = _NEO4J["facts"]["columns"][":TYPE"]
    for label, kind in {
        "part of": "PART_OF_", "mentioned in": "MENTIONED_IN_", "instance of": "INSTANCE_OF_",
        "Subclass-of": "SUBCLASS_OF_", "related": "RELATED_", "part": "PART", "?": "RELATED",
        "birth place": "BIRTH_PLACE", "other": "RELATED",
    }.items():  # fmt: skip
        with duckdb.connect() as database:
            known = "" if label == "other" else label
            database.execute(f"CREATE TABLE ontology_property AS SELECT '{known}' AS label")
            database.execute(f"CREATE TABLE fact AS SELECT '{label}' AS relation, false AS negated")
            assert database.sql(f"SELECT {column} FROM fact").fetchall() == [(kind,)]
    labels = [_name_label(label) for label in ("document", "chunk", "class", "entity", "value")]
    assert labels == ["Document_", "Chunk_", "Class_", "Entity_", "Value_"]
    assert _name_label("populated place") == "PopulatedPlace"


@pytest.mark.filterwarnings("ignore:.* is deprecated, use Dataset:DeprecationWarning")  # rdflib's
@pytest.mark.parametrize("form", ["turtle", "nquads", "jsonld"])
def test_rdf_types_things_and_explains_its_terms(form_of: FormOf, form: str) -> None:
    import rdflib
    from rdflib import OWL, RDF, RDFS, XSD

    read = rdflib.Dataset(default_union=True)
    kind = {"jsonld": "json-ld"}.get(form, form)
    read.parse(data=form_of(form).read_text("utf-8"), format=kind)
    (anna,) = {s for s in read.subjects(RDFS.label, rdflib.Literal("Anna Holm"))}
    agent = rdflib.URIRef("https://w3id.org/kpyramid/general#Agent")
    assert agent in {*read.objects(anna, RDF.type)}
    statements = read.subjects(RDF.type, RDF.Statement)
    objects = [o for s in statements for o in read.objects(s, RDF.object)]
    typed = {(str(o), o.datatype) for o in objects if isinstance(o, rdflib.Literal)}
    assert ("1951-05-05", XSD.date) in typed and ("1951", XSD.gYear) in typed
    used = {p for p in read.predicates() if str(p).startswith(n.KP)}
    assert {str(p).removeprefix(n.KP) for p in used} >= {"confidence", "time"}
    assert used <= {*read.subjects(RDF.type, OWL.AnnotationProperty)}


def test_json_lines_lead_each_fact_to_its_words(told: Snapshot, form_of: FormOf) -> None:
    read = {
        path.stem: [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for path in form_of("jsonl").iterdir()
    }
    texts = {row["id"]: row["text"] for row in read["documents"]}
    assert len(read["facts"]) == count_facts(told)
    for fact in read["facts"]:
        given = [(e["document"], e["start"], e["end"], e["text"]) for e in fact["evidence"]]
        places = [(e.document_id, e.start, e.end, e.text) for e in told.evidence(fact["id"])]
        assert given == places
        assert all(text == texts[document][a:b] for document, a, b, text in given)
    assert {row["title"] for row in read["documents"]} == {STRANGE, None}


def test_one_duckdb_file_has_all_tables_and_views(told: Snapshot, form_of: FormOf) -> None:
    with duckdb.connect(str(form_of("duckdb")), read_only=True) as database:
        for name in load_contracts():
            rows = database.sql(f"SELECT count(*) FROM {name}").fetchall()[0][0]
            assert rows == told.table(name).num_rows
        assert database.sql("FROM facts").fetchall()
        asked = "FROM evidence_of_facts WHERE relation = 'founded' AND tail = 'Aster Pictures'"
        assert "Anna Holm founded Aster" in str(database.sql(asked).fetchall())
        views = "SELECT comment FROM duckdb_views() WHERE NOT internal"
        assert all(comment for (comment,) in database.sql(views).fetchall())
        noted = "SELECT comment FROM duckdb_columns() WHERE column_name = 'confidence'"
        assert "Unit: probability" in str(database.sql(noted).fetchall())


@pytest.mark.slow
def test_vectors_are_searched_by_lancedb(told: Snapshot, form_of: FormOf) -> None:
    import lancedb

    held = lancedb.connect(form_of("lance"))
    for name in ("chunks", "condensed", "entities"):
        query = "Who founded Aster Pictures?"
        found = held.open_table(name).search(told.embed(query)).metric("cosine").limit(3).to_list()
        expected = told.neighbours(query, 3, name)
        assert [row["id"] for row in found] == [key for key, *_ in expected]
        assert [row["text"] for row in found] == [text for _, text, _ in expected]
    listed = map_column(told.table("condensed"), "condensed_id", "relation_id")
    for row in held.open_table("condensed").to_arrow().to_pylist():
        assert row["relation_id"] == listed[row["id"]]
    for name in ("chunks", "condensed"):
        for row in held.open_table(name).to_arrow().to_pylist():
            assert row["source"].startswith("a.jsonl#") and 0 <= row["start"] < row["end"]
    assert {row["licence"] for row in held.open_table("documents").to_arrow().to_pylist()} == {
        record.get("licence") for record in RECORDS
    }


def read_relations(form: str, path: Path) -> dict[str, tuple[str, str]]:
    """Of each fact of an export the relation, and a fact that says more; empty for none."""
    if form == "graphml":
        import networkx

        edges = networkx.read_graphml(path, force_multigraph=True).edges(keys=True, data=True)
        rows = [{"id": key, **data} for _, _, key, data in edges if data["kind"] == "fact"]
    elif form == "neo4j":
        with (path / "facts.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    elif form == "jsonl":
        rows = [json.loads(line) for line in (path / "facts.jsonl").read_text("utf-8").splitlines()]
    elif form == "lance":
        import lancedb

        rows = lancedb.connect(path).open_table("condensed").to_arrow().to_pylist()
    else:
        store = ox.Store()
        forms = {"turtle": "TURTLE", "nquads": "N_QUADS", "jsonld": "JSON_LD"}
        store.bulk_load(path=path, format=getattr(ox.RdfFormat, forms[form]))
        asked = f"""PREFIX rdf: <{n.RDF}> PREFIX rdfs: <{n.RDFS}> PREFIX kp: <{n.KP}>
            SELECT ?id ?relation ?more_detailed_id WHERE {{
            ?id a rdf:Statement ; rdf:predicate/rdfs:label ?relation
            OPTIONAL {{ ?id kp:moreDetailed ?more_detailed_id }} }}"""
        names = ("id", "relation", "more_detailed_id")
        found: Any = store.query(asked)
        rows = [
            {k: v.value.removeprefix(n.ENTITY) if (v := row[k]) else "" for k in names}
            for row in found
        ]
    return {row["id"]: (row["relation"], row.get("more_detailed_id") or "") for row in rows}


@pytest.mark.parametrize(
    "form", ["turtle", "nquads", "jsonld", "graphml", "neo4j", "jsonl", "lance"]
)
def test_a_fact_has_its_standard_relation_and_details(
    told: Snapshot, form_of: FormOf, form: str
) -> None:
    facts = told.table("condensed").to_pylist()
    assert read_relations(form, form_of(form)) == {
        row["condensed_id"]: (row["standard_relation"], row["more_detailed_id"] or "")
        for row in facts
    }
    said = {told.read_fact(row["condensed_id"]).relation: row["standard_relation"] for row in facts}
    assert said["was born in"] == "birth place"
    assert sum(row["more_detailed_id"] is not None for row in facts) == 1


@pytest.mark.parametrize("form", [f for f in FORMS if f not in ("duckdb", "lance")])
def test_the_same_snapshot_gives_the_same_bytes(
    told: Snapshot, form_of: FormOf, tmp_path: Path, form: str
) -> None:
    made = export(told, form, tmp_path / "out")
    one, two = tmp_path / "out", form_of(form)
    assert hash_tree(one) == hash_tree(two) and read_everything(one) == read_everything(two)
    assert made.bytes > 0 and made.files


def read_everything(path: Path) -> bytes:
    files = [p for p in path.rglob("*") if p.is_file()] if path.is_dir() else [path]
    return b"".join(file.read_bytes() for file in sorted(files))


@pytest.mark.parametrize("form", FORMS)
def test_what_has_labels_is_in_no_open_export(
    told: Snapshot, form_of: FormOf, tmp_path: Path, form: str
) -> None:
    public = Snapshot(told.folder)
    if form in WHOLE:
        with pytest.raises(InputError, match="2 of 3 documents may be seen: give --everything"):
            export(public, form, tmp_path / "out")
        assert list(tmp_path.iterdir()) == []
        return
    made = export(public, form, tmp_path / "out")
    said = read_everything(tmp_path / "out")
    for word in (b"Zorblax", b"zorblax", b"Quuxville", b"in house"):
        assert word not in said
    assert b"Leon Batt" in said
    assert bool(made.left_out) == (form == "duckdb")
    if form != "duckdb":
        assert b"Zorblax" in read_everything(form_of(form))


def test_an_export_appears_whole_or_never(
    told: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").write_text("mine")
    with pytest.raises(InputError, match="is there already; nothing was written"):
        export(told, "jsonl", tmp_path / "there")
    with pytest.raises(InputError, match="it is one of folder, tar"):
        export(told, "xlsx", tmp_path / "new")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kpyramid.snapshot.export.write_lines", fail)
    with pytest.raises(OSError, match="No space"):
        export(told, "jsonl", tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_damaged_snapshot_is_not_exported(folder: Path, tmp_path: Path) -> None:
    (folder / "tables" / "facts.parquet").write_bytes(b"more")
    with pytest.raises(IntegrityError, match="is not listed"):
        export(Snapshot(folder, scope=EVERYTHING), "tar", tmp_path / "a.tar.zst")
    (folder / "tables" / "facts.parquet").unlink()
    data = bytearray((folder / "tables" / "triples.parquet").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "tables" / "triples.parquet").write_bytes(data)
    for form in ("folder", "tar", "nquads", "duckdb"):
        with pytest.raises(IntegrityError, match=r"triples\.parquet.*(damaged|changed)"):
            export(Snapshot(folder, scope=EVERYTHING), form, tmp_path / form)


# Import: the same id, or nothing.


@pytest.mark.parametrize("form", WHOLE)
def test_export_and_import_keep_the_id(told: Snapshot, tmp_path: Path, form: str) -> None:
    export(told, form, tmp_path / "out")
    warehouse = Warehouse(tmp_path / "w")
    assert import_snapshot(warehouse, tmp_path / "out") == (told.id, True)
    assert hash_tree(warehouse.snapshots / told.id) == hash_tree(told.folder)
    assert import_snapshot(warehouse, tmp_path / "out") == (told.id, False)
    assert list(warehouse.staging.iterdir()) == []


def test_commands_export_import_and_promote(told: Snapshot, tmp_path: Path) -> None:
    run = commands.run_json
    home, other, file = told.folder.parent.parent, tmp_path / "w", tmp_path / "a.tar.zst"
    made = run("export", "main", file, "--to", "tar", "--everything", "--warehouse", home)
    assert made["snapshot"] == told.id and made["bytes"] == file.stat().st_size
    unpacked = ["tar", "--zstd", "-xf", str(file), "-C", str(tmp_path)]
    assert subprocess.run(unpacked, check=False).returncode == 0
    sums = ["sha256sum", "--quiet", "-c", "SHA256SUMS"]
    assert subprocess.run(sums, cwd=tmp_path / told.id, check=False).returncode == 0
    assert run("import", file, "--warehouse", other)["snapshot"] == told.id
    assert run("promote", "main", told.id, "--warehouse", other)["moved"]
    assert run("verify", "--warehouse", other)["ok"]


@pytest.mark.slow
def test_exports_at_an_address_are_whole_and_imported_from_there(
    told: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, s3_server: S3Server
) -> None:
    use_server(s3_server, monkeypatch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.chdir(tmp_path)
    to = f"s3://{BUCKET}/for-others-{os.getpid()}"
    notes = shutil.ignore_patterns("exports")  # of other tests
    home = shutil.copytree(told.folder.parent.parent, tmp_path / "home", ignore=notes)

    def run(*words: object) -> Any:
        done = commands.run(*words, "--json")
        return done.exit_code, json.loads(done.stdout)

    def send(form: str, name: str) -> Any:
        words = ["export", "main", f"{to}/{name}", "--to", form, "--everything"]
        return run(*words, "--warehouse", home)

    here = export(told, "jsonl", tmp_path / "rows")
    for form, name in (("folder", told.id), ("tar", "a.tar.zst"), ("jsonl", "rows/today")):
        assert send(form, name)[0] == 0
    there = {blob.name: blob.size for blob in BucketStore(to).list()}
    names = {f"rows/today/{name}" for name in here.files}
    assert names == {name for name in there if name.startswith("rows/")}
    assert sum(there[name] for name in names) == here.bytes
    code, said = send("folder", told.id)
    assert (code, "is there already; nothing was written" in said["error"]) == (3, True)
    for number, name in enumerate((told.id, "a.tar.zst")):
        other = tmp_path / f"other-{number}"
        assert run("import", f"{to}/{name}", "--warehouse", other)[1]["snapshot"] == told.id
        assert hash_tree(other / "snapshots" / told.id) == hash_tree(told.folder)
    assert run("import", to, "--warehouse", tmp_path / "w")[0] == 3, "no whole bucket is copied"
    code, said = run("import", f"{to}/none", "--warehouse", tmp_path / "w")
    assert (code, "does not exist" in said["error"]) == (3, True)
    BucketStore(to).replace(f"{told.id}/views.sql", b"-- altered")
    code, said = run("import", f"{to}/{told.id}", "--warehouse", tmp_path / "w")
    assert (code, said["error"].startswith(f"{to}/{told.id}: ")) == (6, True)
    assert "views.sql" in said["error"]

    # The bucket fails after some files; nothing is left of them, nor a note.
    before = [*BucketStore(to).list()], list_exports(open_warehouse(home))
    sending, left = BucketStore.send, iter([*range(30)])

    def fail(store: BucketStore, path: Path, name: str) -> None:
        if next(left, None) is None:
            raise EndpointError("gone")
        sending(store, path, name)

    monkeypatch.setattr(BucketStore, "send", fail)
    assert send("folder", "half")[0] == 8
    assert ([*BucketStore(to).list()], list_exports(open_warehouse(home))) == before
    assert {one.place for one in before[1]} == {
        f"{to}/{name}" for name in (told.id, "a.tar.zst", "rows/today")
    }
    assert not any(path.name.startswith("s3") for path in tmp_path.iterdir())


def test_a_bucket_alone_is_no_place_of_an_export(told: Snapshot, tmp_path: Path) -> None:
    words = ["export", told.folder, "s3://bucket", "--to", "tar", "--everything"]
    commands.fails(2, "s3://bucket is all of a bucket", *words)


@pytest.mark.parametrize("store", ["folder", pytest.param("bucket", marks=pytest.mark.slow)])
def test_what_is_exported_beside_publishes_and_gc_is_imported_under_the_same_id(
    told: Snapshot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    store: str,
) -> None:
    place = str(tmp_path / "home")
    if store == "bucket":
        use_server(request.getfixturevalue("s3_server"), monkeypatch)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "machine"))
        place = f"s3://{BUCKET}/export-{os.getpid()}"
    manifest = read_manifest(told.folder)
    names: Any = manifest["files"]
    facts = {name: value for name, value in manifest.items() if name != "files"}
    files: dict[str, bytes | Path] = {name: told.folder / name for name in names}
    made: list[str] = []
    ended = threading.Event()

    def publish_nights() -> None:
        home = open_warehouse(place)
        while not made or not ended.is_set():
            night = write_snapshot(home, files, {**facts, "night": len(made)})
            order = f"{len(made):06}"
            commit(home, "main", snapshot=night, order=order, run="r", at="2026-11-23")
            made.append(night)
            collect(home, Policy(1, timedelta(0), datetime.now(UTC), lambda runs: None))

    with ThreadPoolExecutor(1) as pool:
        publishing = pool.submit(publish_nights)
        try:
            while not made:
                assert not publishing.done() or publishing.result()
            for number, form in enumerate(("tar", "folder", "tar")):
                out = tmp_path / f"out-{number}"
                words = ["export", "main", str(out), "--to", form, "--everything"]
                exported = commands.run_json(*words, "--warehouse", place)["snapshot"]
                other = Warehouse(tmp_path / f"other-{number}")
                assert import_snapshot(other, out) == (exported, True)
                assert exported in made
        finally:
            ended.set()
        publishing.result()
    assert len(made) > 1


Change = Callable[[Path], object]


def rewrite(folder: Path, **changed: object) -> None:
    """The manifest with other values, and sums that fit it: whole, but of another id."""
    manifest = json.dumps({**read_manifest(folder), **changed}, sort_keys=True).encode()
    (folder / MANIFEST).write_bytes(manifest)
    sums = (folder / "SHA256SUMS").read_text("utf-8").splitlines()
    kept = [line for line in sums if not line.endswith(f"  {MANIFEST}")]
    line = f"{hashlib.sha256(manifest).hexdigest()}  {MANIFEST}"
    (folder / "SHA256SUMS").write_text("\n".join([*kept, line]) + "\n", "utf-8")


def list_outside(folder: Path) -> dict[str, Any]:
    files: Any = read_manifest(folder)["files"]
    return {**files, "../outside": {"sha256": "0" * 64, "bytes": 4}}


ALTERED: dict[str, Change] = {
    "graph.ttl: its bytes": lambda f: (f / "graph.ttl").write_bytes(b"x"),
    "README.md is missing": lambda f: (f / "README.md").unlink(),
    "x.txt is not listed": lambda f: (f / "x.txt").write_text("x"),
    "x is a link": lambda f: (f / "x").symlink_to("/etc/passwd"),
    "x is a link or no regular file": lambda f: os.mkfifo(f / "x"),
    "no readable manifest": lambda f: (f / MANIFEST).unlink(),
    "it lists no files": lambda f: rewrite(f, files=[]),
    r"lists '\.\./outside'": lambda f: rewrite(f, files=list_outside(f)),
    "lists no files": lambda f: (f / MANIFEST).write_text("[" * 100_000),
    r"made by a newer release \(7\.1\.0\).*pip install 'kpyramid>=7\.1\.0'": (
        lambda f: rewrite(f, format=FORMAT + 1, software="7.1.0")
    ),
    "kpyramid build CORPUS": lambda f: rewrite(f, format=6),
    "more than 1000 files": lambda f: [(f / f"x{n}").touch() for n in range(1_100)],
    "its name is 0123456789abcdef, and its id": lambda f: f.rename(f.parent / "0123456789abcdef"),
}


def refuse(path: Path, message: str, tmp_path: Path) -> None:
    """The import fails, and nothing is left or written anywhere below the test's folder."""
    before = hash_tree(tmp_path)
    warehouse = Warehouse(tmp_path / "w")
    with pytest.raises((IntegrityError, InputError), match=message):
        import_snapshot(warehouse, path)
    assert hash_tree(tmp_path) == before
    assert not warehouse.snapshots.exists() or not list(warehouse.snapshots.iterdir())
    assert not list(warehouse.staging.glob("*"))


@pytest.mark.parametrize("message", ALTERED)
def test_altered_folder_is_refused_unwritten(folder: Path, tmp_path: Path, message: str) -> None:
    ALTERED[message](folder)
    (altered,) = (path for path in tmp_path.iterdir() if path.is_dir())
    with pytest.MonkeyPatch.context() as patch:
        if "no regular file" in message:  # hashing the tree would wait for it
            patch.setattr("tests.test_export.hash_tree", lambda _: {})
        refuse(altered, message, tmp_path)


def pack(path: Path, members: Iterator[tuple[tarfile.TarInfo, bytes]]) -> Path:
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for member, data in members:
            member.size = len(data) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(data))
    return path


def make_member(name: str, kind: bytes = tarfile.REGTYPE, **fields: Any) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = kind
    for field, value in fields.items():
        setattr(member, field, value)
    return member


MEMBERS: dict[str, tuple[list[tuple[tarfile.TarInfo, bytes]], str]] = {
    "a link": ([(make_member("x/a", tarfile.SYMTYPE, linkname="/etc"), b"")], "is a link"),
    "a hard link": ([(make_member("x/a", tarfile.LNKTYPE, linkname="../b"), b"")], "is a link"),
    "a device": ([(make_member("x/null", tarfile.CHRTYPE), b"")], "a device"),
    "a pipe": ([(make_member("x/pipe", tarfile.FIFOTYPE), b"")], "is a link, a device"),
    "a name above": ([(make_member("x/../../outside"), b"here")], "is not in its manifest"),
    "an absolute name": ([(make_member("/tmp/kp-outside"), b"here")], "is not in its manifest"),
    "a file of its own": ([(make_member("x/more"), b"here")], "is not in its manifest"),
    "a second manifest": ([(make_member("x/manifest.json"), b"{}")], "comes twice"),
    "a file that is too long": ([(make_member("x/graph.ttl"), b"0" * 2**22)], "is too long"),
    "a long header": (
        [(make_member("x/graph.ttl", pax_headers={"comment": "0" * 2**26}), b"")],
        "unpacks to more",
    ),
    "many folders": (
        [(make_member(f"x/{n}", tarfile.DIRTYPE), b"") for n in range(1_100)],
        "more than 1000 members",
    ),
    "half of it": ([], "SHA256SUMS"),
}


@pytest.mark.parametrize("name", MEMBERS)
def test_a_made_up_tarball_is_refused_and_nothing_is_written(
    told: Snapshot, tmp_path: Path, name: str
) -> None:
    members, message = MEMBERS[name]
    manifest = (told.folder / MANIFEST).read_bytes()
    first = (make_member(f"x/{MANIFEST}"), manifest)
    path = pack(tmp_path / "a.tar", iter([first, *members]))
    refuse(path, message, tmp_path)
    assert not Path("/tmp/kp-outside").exists()


def compress(data: bytes) -> bytes:
    return pa.Codec("zstd").compress(data, asbytes=True)  # type: ignore[no-any-return]


BYTES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "nothing": (lambda _: b"", "is no tarball|is missing|no readable manifest"),
    "a text": (lambda _: b"hello" * 1_000, "is no tarball"),
    "half": (lambda data: data[: len(data) // 2], "cannot be unpacked|no tarball|missing"),
    "a flipped bit": (
        lambda data: data[:5_000] + bytes([data[5_000] ^ 1]) + data[5_001:],
        "cannot be unpacked|its bytes changed|no tarball|damaged|missing",
    ),
    "a bomb of zeros": (lambda _: compress(bytes(2**28)), "is missing|no readable manifest"),
    "a bomb of a manifest": (
        lambda _: compress(
            make_member("x/manifest.json", size=2**33).tobuf(tarfile.GNU_FORMAT) + bytes(2**26)
        ),
        "is too long",
    ),
    "a manifest that is not first": (
        lambda _: make_member("x/README.md").tobuf(tarfile.GNU_FORMAT) + bytes(10_240),
        "begins with 'x/README.md' and not with manifest.json",
    ),
}


@pytest.mark.parametrize("name", BYTES)
def test_other_bytes_are_refused_unwritten(told: Snapshot, tmp_path: Path, name: str) -> None:
    make, message = BYTES[name]
    export(told, "tar", tmp_path / "a.tar.zst")
    (tmp_path / "b.tar.zst").write_bytes(make((tmp_path / "a.tar.zst").read_bytes()))
    refuse(tmp_path / "b.tar.zst", message, tmp_path)


def test_what_is_no_folder_and_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "gone"):
        with pytest.raises(InputError, match=f"{name} is no file"):
            import_snapshot(Warehouse(tmp_path / "w"), tmp_path / name)


def test_an_import_of_more_than_there_is_room_for_is_refused_before_it_is_written(
    told: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(told, "tar", tmp_path / "a.tar.zst")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9, 8, 1000))  # type: ignore[attr-defined]
    refuse(tmp_path / "a.tar.zst", "has room for 1,000", tmp_path)


# Formats.


def test_a_snapshot_of_the_format_before_is_read_and_exported(folder: Path, tmp_path: Path) -> None:
    """Its index has neither the modality of facts nor the facts of values."""
    files: Any = read_manifest(folder)["files"]
    sums = folder / "SHA256SUMS"
    for table, added in (("condensed", "modality"), ("instances", "facts")):
        name = f"index/{table}.arrow"
        path = folder / name
        with pa.ipc.open_file(path) as reader:
            batch = reader.get_batch(0)
        columns: dict[str, Any] = {c: batch[c] for c in batch.schema.names}
        lost = columns.pop(added)
        if added == "modality":
            columns["hedged"] = pc.not_equal(lost, "fact")
        path.unlink()  # not written over: it may be mapped
        write_rows(path, columns)
        data = path.read_bytes()
        entry = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        former, files[name] = files[name], entry
        listed = sums.read_text("utf-8").replace(former["sha256"], str(entry["sha256"]))
        sums.write_text(listed, "utf-8")
    rewrite(folder, format=FORMAT - 1, files=files)
    old = Snapshot(folder, scope=EVERYTHING)
    assert [place.source for place in old.evidence(old.neighbours("Oslo", 1)[0][0])]
    for form in FORMS:
        export(old, form, tmp_path / f"old-{form}")
    assert import_snapshot(Warehouse(tmp_path / "w"), folder) == (old.id, True)
    commands.show("verify", folder)
