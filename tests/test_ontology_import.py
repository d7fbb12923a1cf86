"""Ontologies from outside become ones a build can use, or are refused with the reason."""

import gzip
import json
import re
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyoxigraph as ox
import pytest
from click.testing import Result

from kpyramid.graph.synonyms.words import load_nouns
from kpyramid.ontology import names as n
from kpyramid.ontology.constraints import Rules, read_constraints
from kpyramid.ontology.importing.conversion import Change, derive_label, import_ontology
from kpyramid.ontology.importing.files import read_outside
from kpyramid.ontology.population.kinds import find_kinds, infer_entity_types
from kpyramid.ontology.schema import Schema, parse_schema, write_schema
from kpyramid.ontology.validation.shapes import judge_shapes
from kpyramid.storage.layout import Warehouse
from tests import commands
from tests.corpora import build_corpus, find_bench, make_settings, read_snapshot, require_java
from tests.rows import each_row, read_rows, read_text, read_turtle

O = "https://example.org/o#"  # noqa: E741
HEAD = read_turtle("ontology_import_head")
ONTOLOGY = HEAD + "<https://example.org/o> a owl:Ontology .\n"
CLASSES = read_turtle("ontology_import_classes")
RDF_XML = read_text("ontology_import.rdf")


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(content: str | bytes, name: str = "in.owl") -> Result:
    file = Path(name)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return commands.run("ontology", "import", name, "--output", "out.ttl", "--json")


def take(content: str | bytes, name: str = "in.owl") -> tuple[Schema, tuple[Change, ...]]:
    """The schema, as it is read back from what is written, and the changes; without reasoner."""
    file = Path(name)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    imported = import_ontology(read_outside(file), name=file.stem, source=name)
    schema = parse_schema(write_schema(imported.schema), source="written")
    assert schema == imported.schema
    return schema, imported.changes


def refuse(content: str | bytes, *said: str, name: str = "in.owl", seconds: float = 20) -> None:
    """Exit code 3 with one message, nothing written, this process alive."""
    started = time.process_time()
    done = run(content, name)
    assert time.process_time() - started < seconds
    assert done.exit_code == 3, done.output
    assert "Traceback" not in done.output
    assert not Path("out.ttl").exists()
    for words in said:
        assert words in done.stderr


def list_kinds(changes: Sequence[Change]) -> Counter[str]:
    return Counter(change.kind for change in changes)


# --- what others' files hold: each kind loads, and nothing is made false -------------------

PEOPLE = ":Person a owl:Class ; rdfs:label 'person'@en . :Place a owl:Class .\n"


@each_row("turtle, range_")
def test_a_data_property_has_the_range_that_the_file_allows(turtle: str, range_: str) -> None:
    schema, _ = take(ONTOLOGY + PEOPLE + turtle)
    assert schema.property_by_iri[O + "p"].range.rpartition("#")[2] == range_


def test_one_mapping_of_datatypes_holds_for_restrictions_and_values_too() -> None:
    turtle = ONTOLOGY + PEOPLE + (
        ":p a owl:DatatypeProperty ; rdfs:domain :Person ; rdfs:range xsd:dateTime .\n"
        ":Old a owl:Class ; owl:equivalentClass [ a owl:Restriction ; owl:onProperty :p ;\n"
        "   owl:someValuesFrom xsd:dateTime ] .\n"
        ":Then a owl:Class ; rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :p ;\n"
        "   owl:hasValue '2001-02-03T04:05:06'^^xsd:dateTime ] .\n"
        ":ann a :Person ; :p '1999-12-31T23:00:00Z'^^xsd:dateTime . :Ann owl:oneOf ( :ann ) .\n"
        ":note a owl:AnnotationProperty . :ann :note '1999-12-31T23:00:00Z'^^xsd:dateTime .\n"
    )  # fmt: skip
    schema, changes = take(turtle)
    left = [line for line in schema.axioms if "dateTime" in line]
    assert len(left) == 1
    assert "#note>" in left[0]
    assert any('"1999-12-31"^^' in line for line in schema.axioms)
    assert [c.detail for c in changes if c.kind == "datatype mapped"] == [
        f"<{n.XSD}date>, in 3 restrictions and values"
    ]


@each_row("turtle, classes")
def test_terms_that_its_authors_gave_up_are_left_out(turtle: str, classes: tuple[str, ...]) -> None:
    schema, changes = take(ONTOLOGY + turtle)
    assert tuple(c.iri.removeprefix(O) for c in schema.classes) == classes
    assert list_kinds(changes)["term left out"] + list_kinds(changes)["deprecated terms stay"] == 1
    assert not [line for line in schema.axioms if "#Gone" in line and len(classes) > 1]


@each_row("labels, label")
def test_a_label_in_english_is_preferred(labels: str, label: str) -> None:
    turtle = ":B a owl:Class ; rdfs:label 'Baum'@de . :C a owl:Class ; rdfs:label 'Blatt'@de .\n"
    schema, _ = take(ONTOLOGY + turtle + f":A1 a owl:Class {labels} .")
    assert schema.class_by_iri[O + "A1"].label == label


@pytest.mark.slow
@each_row("turtle, stay")
def test_what_can_have_no_instance_is_left_out(turtle: str, stay: tuple[str, ...]) -> None:
    require_java()
    done = run(ONTOLOGY + CLASSES + ":Firm owl:disjointWith :Person, :Place .\n" + turtle)
    assert done.exit_code == 0, done.output
    made = json.loads(done.stdout)
    assert made["consistent"] == "pass"
    assert any(c["kind"] == "class left out" for c in made["changes"])
    schema = parse_schema(Path("out.ttl").read_text(), source="out.ttl")
    iris = [*schema.class_by_iri, *schema.property_by_iri]
    assert {iri.removeprefix(O) for iri in iris} == {"Agent", "Firm", "Person", "Place", *stay}


@each_row("turtle, types")
def test_the_kinds_of_names_of_a_class_are_inferred(turtle: str, types: str) -> None:
    schema, _ = take(ONTOLOGY + turtle)
    typed, reasons = infer_entity_types(schema, lambda noun: load_nouns().get(noun, ""))
    assert " ".join(typed.class_by_iri[O + "A"].entity_types) == types
    assert bool(types) == (O + "A" in reasons)


def test_what_will_find_nothing_is_named() -> None:
    turtle = ":p a owl:DatatypeProperty ; rdfs:label 'has rank'@en ; rdfs:domain :Topic .\n"
    done = run(ONTOLOGY + PEOPLE + ":Topic a owl:Class ; rdfs:label 'topic'@en .\n" + turtle)
    first, second = json.loads(done.stdout)["warnings"]
    assert first.endswith("kp:commonNouns: topic")
    assert second.endswith("next to no value: has rank")


@pytest.mark.slow
def test_an_ontology_of_ones_own_finds_what_a_handbook_says(tmp_path: Path) -> None:
    """Of 43 values 6 before kinds were inferred, 41 since wrong tags give way to facts."""
    samples = Path(__file__).parents[1] / "examples" / "handbook"
    done = run((samples / "company.ttl").read_text())
    assert done.exit_code == 0, done.output
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "handbook.md").write_text((samples / "texts" / "tarnholm.md").read_text())
    settings = make_settings(induce={"ontology": str(Path("out.ttl").absolute())})
    warehouse = Warehouse(tmp_path / "pyramid")
    tables = read_snapshot(warehouse, build_corpus(corpus, warehouse, settings).snapshot)
    schema = parse_schema(Path("out.ttl").read_text(), source="out.ttl")
    names = {row["entity_id"]: row["name"] for row in tables["entities"].to_pylist()}
    values = {
        (
            names[row["subject_id"]],
            schema.property_by_iri[row["property_iri"]].label,
            str(names.get(row["object_id"], row["literal"])).rstrip(".").removeprefix("the "),
        )
        for row in tables["instances"].to_pylist()
        if row["property_iri"]
    }
    stated = {*read_rows("ontology_import.values_of_the_handbook")}
    assert len(values & stated) >= 41
    assert len(values - stated) <= 1


def test_concepts_of_a_thesaurus_are_classes_below_what_is_broader() -> None:
    """Only where the file declares no class; whichever end states the order."""
    skos = "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
    concepts = skos + (
        ":Animal a skos:Concept ; skos:prefLabel 'animal'@en ; skos:narrower :Dog .\n"
        ":Dog a skos:Concept ; skos:prefLabel 'dog'@en, 'Hund'@de ; skos:altLabel 'hound'@en .\n"
        ":Cat a skos:Concept ; skos:prefLabel 'cat'@en ; skos:broader :Animal .\n"
    )
    schema, changes = take(HEAD + concepts)
    found = [(c.label, c.alt_labels, c.parents) for c in schema.classes]
    below = (O + "Animal",)
    assert found == [("animal", (), ()), ("cat", (), below), ("dog", ("hound",), below)]
    assert list_kinds(changes)["class declared"] == 3
    beside, _ = take(ONTOLOGY + PEOPLE + concepts)
    assert [c.label for c in beside.classes] == ["person", "place"]


def test_circles_of_classes_and_properties_load_and_end() -> None:
    turtle = ONTOLOGY + (
        ":A a owl:Class ; rdfs:label 'firm' ; rdfs:subClassOf :B .\n"
        ":B a owl:Class ; rdfs:subClassOf :C . :C a owl:Class ; rdfs:subClassOf :A .\n"
        ":p a owl:ObjectProperty ; rdfs:subPropertyOf :q ; rdfs:domain :A ; rdfs:range :B .\n"
        ":q a owl:ObjectProperty ; rdfs:subPropertyOf :p .\n"
    )
    schema, _ = take(turtle)
    assert schema.property_by_iri[O + "q"].domain == O + "A"
    assert schema.is_subclass(O + "C", O + "B")
    assert schema.is_subclass(O + "B", O + "C")
    assert {iri for iri, _ in schema.find_entailed(O + "p")} >= {O + "q"}
    typed, _ = infer_entity_types(schema, lambda noun: load_nouns().get(noun, ""))
    assert find_kinds(O + "C", typed) == find_kinds(O + "A", typed) == {"ORG"}


@pytest.mark.slow
def test_thirty_thousand_classes_are_imported_and_typed_within_a_minute() -> None:
    turtle = ONTOLOGY + PEOPLE + "".join(
        f":C{i} a owl:Class ; rdfs:subClassOf :{f'C{(i - 1) // 3}' if i else 'Person'} .\n"
        for i in range(30_000)
    )  # fmt: skip
    started = time.process_time()
    schema, _ = take(turtle)
    typed, _ = infer_entity_types(schema, lambda noun: load_nouns().get(noun, ""))
    assert time.process_time() - started < 60
    assert len(schema.classes) == 30_002
    assert find_kinds(O + "C29999", typed) == {"PERSON"}


# --- what is completed -------------------------------------------------------------------


def test_missing_labels_come_from_names_and_definitions_become_comments() -> None:
    turtle = ONTOLOGY + (
        ":LegalPerson a owl:Class ; <http://www.w3.org/2004/02/skos/core#definition> 'a party'@en ;"
        " <http://www.geneontology.org/formats/oboInOwl#hasExactSynonym> 'juridical person' .\n"
        ":Other a owl:Class ; <http://www.w3.org/2004/02/skos/core#prefLabel> 'another one'@en .\n"
    )
    schema, changes = take(turtle)
    person = schema.class_by_iri[O + "LegalPerson"]
    assert (person.label, person.comment) == ("legal person", "a party")
    assert person.alt_labels == ("juridical person",)
    assert schema.class_by_iri[O + "Other"].label == "another one"
    assert list_kinds(changes) == {"label added": 2, "comment added": 1, "synonym added": 1}


@each_row("iri, label")
def test_a_label_is_the_words_of_a_name(iri: str, label: str) -> None:
    assert derive_label(iri) == label


@each_row("case, turtle, kinds, ends, said")
def test_what_others_leave_open_is_settled(
    case: str, turtle: str, kinds: dict[str, int], ends: dict[str, object], said: list[str]
) -> None:
    schema, changes = take(ONTOLOGY + turtle)
    local = {p.iri.removeprefix(O): (p.domain, p.range) for p in schema.properties}
    found = {name: tuple(re.split("[#/]", end)[-1] for end in local[name]) for name in local}
    assert found == ends, case
    assert kinds.items() <= list_kinds(changes).items()
    stated = "\n".join((write_schema(schema), *schema.axioms, *(c.detail for c in changes)))
    assert all(words in stated for words in said)


def test_classes_known_only_from_an_import_are_stubs_and_nothing_is_fetched() -> None:
    turtle = ONTOLOGY + (
        "<https://example.org/o> owl:imports <http://192.0.2.1/x>, <file:///etc/passwd> .\n"
        ":A a owl:Class ; rdfs:subClassOf <http://192.0.2.1/x#LegalEntity> .\n"
        ":p a owl:ObjectProperty ; rdfs:domain :A ; rdfs:range <http://192.0.2.1/x#Place> .\n"
    )
    schema, changes = take(turtle)
    assert schema.class_by_iri["http://192.0.2.1/x#LegalEntity"].label == "legal entity"
    assert schema.property_by_iri[O + "p"].range == "http://192.0.2.1/x#Place"
    left = [c.subject for c in changes if c.kind == "import not followed"]
    assert left == ["<http://192.0.2.1/x>", "<file:///etc/passwd>"]
    assert not [line for line in schema.axioms if n.IMPORTS in line]


def test_a_missing_header_is_made_of_the_commonest_namespace() -> None:
    schema, changes = take(HEAD + CLASSES)
    assert schema.base == O
    assert list_kinds(changes)["header added"] == 1


def test_python_that_an_annotation_names_is_taken_out_and_named() -> None:
    code = f"<https://example.org/o> <{n.OWLREADY}python_module> 'shutil' .\n"
    schema, changes = take(ONTOLOGY + CLASSES + code)
    assert not [line for line in schema.axioms if n.OWLREADY in line]
    assert '"shutil"' in next(c.detail for c in changes if c.kind == "code removed")


@pytest.mark.usefixtures("shapes_here")
def test_unions_enumerations_and_limits_are_kept_as_shapes() -> None:
    """What one domain and one range cannot say is refused when it is read, and by the gate."""
    assert run(read_turtle("unions")).exit_code == 0
    base, shapes = "http://ex.org/u#", Path("out.shapes.ttl").read_text()
    rules = Rules(parse_schema(Path("out.ttl").read_text(), source="out"),
                  read_constraints(shapes, source="shapes"))  # fmt: skip
    integer, string = n.XSD + "integer", n.XSD + "string"
    kinds = {"ann": "Person", "orm": "Firm", "mog": "Cat", "leeds": "Place"}
    stated = [f"<{base}{s}> <{n.RDF_TYPE}> <{base}{kind}> .\n" for s, kind in kinds.items()]
    for literal, datatype, prop, fits in (
        ("130", integer, "age", True),
        ("131", integer, "age", False),
        ("good", string, "grade", True),
        ("fair", string, "grade", False),
    ):
        assert (
            rules.find_broken({base + "Person"}, base + prop, literal, datatype) is None
        ) is fits
        value = ox.Literal(literal, datatype=ox.NamedNode(datatype))
        stated.append(f"<{base}ann> <{base}{prop}> {value} .\n")
    for one, other, fits in (("orm", "mog", True), ("ann", "orm", False), ("mog", "leeds", False)):
        ends = {base + kinds[one]}, base + "owns", {base + kinds[other]}
        assert (rules.find_missing(*ends) is None) is fits
        stated.append(f"<{base}{one}> <{base}owns> <{base}{other}> .\n")
    schema, data = Path("out.ttl").read_text(), "".join(stated)
    verdict = judge_shapes(schema, data, {"its shapes": shapes}, seconds=60).verdict
    assert verdict.startswith("fail: 4 violations")
    assert run(read_turtle("unions")).exit_code == 3, "shapes may have been reviewed"


def test_a_file_that_is_there_is_not_overwritten() -> None:
    Path("out.ttl").write_text("reviewed")
    done = run(ONTOLOGY + CLASSES)
    assert done.exit_code == 3
    assert "may have been reviewed" in done.stderr
    assert Path("out.ttl").read_text() == "reviewed"


def test_the_changes_for_people_names_each_kind_of_change_with_examples() -> None:
    Path("in.ttl").write_text(ONTOLOGY + CLASSES)
    shown = commands.show("ontology", "import", "in.ttl", "--output", "o.ttl")
    rows = [line.split() for line in shown.splitlines()]
    assert ["Classes", "4"] in rows
    assert sum(row[:2] == ["label", "added"] for row in rows) == 4
    assert any(row[2:3] == ["<https://example.org/o#Agent>"] for row in rows)


# --- forms of files ----------------------------------------------------------------------


def test_packed_turtle_and_xml_in_other_encodings_are_read() -> None:
    for content in (
        gzip.compress((ONTOLOGY + CLASSES).encode()),
        b"\xef\xbb\xbf" + (ONTOLOGY + CLASSES).encode(),
        ('<?xml version="1.0" encoding="ISO-8859-1"?>' + RDF_XML.format("Café")).encode("latin-1"),
        ('<?xml version="1.0" encoding="UTF-16"?>' + RDF_XML.format("Café")).encode("utf-16"),
    ):
        schema, _ = take(content)
        assert len(schema.classes) in (1, 4)
    assert schema.classes[0].label == "Café"


def test_entities_that_are_namespaces_are_expanded() -> None:
    text = RDF_XML.format("&cap;&amp;<![CDATA[&cap;]]>").replace("https://example.org/o#", "&o;")
    head = '<?xml version="1.0"?><!-- <!DOCTYPE x> --><!DOCTYPE rdf:RDF ['
    head += '<!ENTITY base "https://example.org/"> <!ENTITY o "&base;o#"> <!ENTITY cap \'"C"\'>]>'
    schema, _ = take(head + text)
    assert [(c.iri, c.label) for c in schema.classes] == [(O + "A", '"C"&&cap;')]


@each_row("content, said")
def test_what_cannot_be_read_is_refused_with_the_reason(content: str, said: str) -> None:
    for name, text in (("HEAD", HEAD), ("ONTOLOGY", ONTOLOGY), ("CLASSES", CLASSES)):
        content = content.replace(f"@{name}@", text)
    refuse(content.encode("latin-1"), said)


def test_a_folder_and_a_missing_file_are_refused() -> None:
    for name in (".", "absent.ttl"):
        commands.fails(3, "name one", "ontology", "import", name, "--output", "out.ttl")


# --- contradictions ----------------------------------------------------------------------


@each_row("ranges, said")
def test_contradictory_ranges_are_refused(ranges: str, said: str) -> None:
    kind = "owl:DatatypeProperty" if "xsd" in ranges else "owl:ObjectProperty"
    turtle = ONTOLOGY + CLASSES + ":Agent owl:disjointWith :Place .\n"
    refuse(turtle + f":p a {kind} ; rdfs:range {ranges} .", "1 to correct by hand", said)


def test_ranges_are_disjoint_however_the_ontology_says_so() -> None:
    group = "[] a owl:AllDisjointClasses ; owl:members ( :Agent :Place ) .\n"
    turtle = ONTOLOGY + CLASSES + group + ":p a owl:ObjectProperty ; rdfs:range :Person, :Place ."
    refuse(turtle, "1 to correct by hand", "are stated disjoint")


def test_two_kinds_at_once_without_a_range_are_refused() -> None:
    turtle = ONTOLOGY + CLASSES + ":p a owl:ObjectProperty, owl:DatatypeProperty ."
    refuse(turtle, "no range tells which")


@pytest.mark.slow
def test_an_inconsistent_ontology_is_refused_and_the_axioms_are_named() -> None:
    require_java()
    turtle = ONTOLOGY + CLASSES + (
        ":Agent owl:disjointWith :Place . :Harbour a owl:Class ; rdfs:subClassOf :Firm, :Place .\n"
        ":rotterdam a :Harbour . :Large a owl:Class ; owl:oneOf ( :rotterdam ) ."
    )  # fmt: skip
    refuse(turtle, "inconsistent", "every firm is an agent; no agent is a place", seconds=60)


# --- attacks -----------------------------------------------------------------------------


def test_entity_bombs_are_refused_in_no_time() -> None:
    lol = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 15))
    refuse(f'<!DOCTYPE r [<!ENTITY l0 "lol">{lol}]><r>&l14;</r>', "limit on input amplification")
    flat = f'<!DOCTYPE r [<!ENTITY l "{"x" * 9000}">]><r>{"&l;" * 10_000}</r>'
    refuse(flat, "limit on input amplification")
    refuse('<!DOCTYPE r [<!ENTITY a "&b;"><!ENTITY b "&a;">]><r>&a;</r>', "recursive entity")


@each_row("doctype")
def test_nothing_that_a_document_type_names_is_read(doctype: str) -> None:
    Path("passwd.txt").write_text("secret")
    Path("x.dtd").write_text('<!ENTITY x "secret">')
    label = RDF_XML.format("&x;")
    refuse(f'<?xml version="1.0"?><!DOCTYPE r {doctype}>{label}', "undefined entity")


def test_a_late_document_type_is_refused() -> None:
    refuse('<?xml version="1.0"?><r><!DOCTYPE r [<!ENTITY a "b">]></r>', "not valid XML")


def test_what_never_closes_takes_no_time() -> None:
    refuse("<?xml version='1.0'?>" + "<!--" * 500_000, "not valid XML")
    refuse("<?xml version='1.0'?><r>" + "<![CDATA[" * 200_000, "not valid XML")


def test_a_gzip_bomb_is_refused() -> None:
    refuse(gzip.compress(b" " * 100_000_000), "over 64 MiB, unpacked")


@pytest.mark.slow
def test_a_prefix_that_is_written_out_without_end_is_stopped() -> None:
    head = f"@prefix a: <https://example.org/{'y' * 100_000}/> .\n"
    refuse(head + "a:s a:p a:o .\n" * 10_000, "more than 512 MiB", seconds=120)


@pytest.mark.slow
def test_fifty_megabytes_are_read_within_bounds() -> None:
    from kpyramid.ontology.importing.files import read_outside

    text = "x" * 200
    Path("big.ttl").write_text(
        HEAD + "".join(f':i{i} rdfs:comment "{i} {text}" .\n' for i in range(225_000))
    )
    assert Path("big.ttl").stat().st_size > 50_000_000
    assert len(read_outside(Path("big.ttl")).triples) == 225_000


# --- the real ones -----------------------------------------------------------------------


@pytest.mark.slow
def test_all_modules_of_fibo_import() -> None:
    files = sorted(find_bench("onto_fibo").rglob("*.rdf"))
    schemas = [take(file.read_bytes())[0] for file in files]
    assert len(schemas) == 14
    assert sum(len(schema.classes) for schema in schemas) > 500
    debt = next(s for s in schemas if s.base.endswith("/Debt/"))
    assert debt.class_by_iri[debt.base + "Borrower"].comment


@pytest.mark.slow
def test_all_ontologies_of_text2kgbench_import() -> None:
    folder = find_bench("text2kgbench_public")
    files = sorted(folder.rglob("ontologies/owl/*.ttl"))
    assert len(files) == 15
    assert all(take(file.read_bytes())[0].classes for file in files)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pizza.owl", "gist.ttl", "d3fend.ttl", "prov.ttl", "malont.owl"])
def test_well_known_ontologies_load_and_are_consistent(name: str) -> None:
    require_java()
    done = run((find_bench("wild_ontologies") / name).read_bytes())
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["consistent"] == "pass"


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted((Path(__file__).parent / "vocabularies").glob("*.ttl")))
def test_what_vocabularies_of_the_web_use_loads_and_is_consistent(file: Path) -> None:
    require_java()
    done = run(file.read_text())
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["consistent"] == "pass"


@pytest.mark.slow
def test_the_data_of_vivo_is_refused_as_data() -> None:
    content = (find_bench("vivo_sample") / "sample-data.n3").read_bytes()
    refuse(content, "it declares no class", "this is data", name="sample-data.n3")
