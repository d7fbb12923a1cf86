"""Schemas, instances and queries survive bad input; the general ontology is read as meant."""

from dataclasses import replace
from pathlib import Path

import pytest

from kpyramid.errors import InputError
from kpyramid.ontology import names as n
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.schema import (
    OntologyClass,
    OntologyProperty,
    Schema,
    parse_schema,
    write_schema,
)
from kpyramid.ontology.store import InstanceStatement, OntologyStore, entity_iri, write_instances
from tests.processes import run_python
from tests.rows import each_row, read_rows, read_turtle

FOLDER = Path(__file__).parent.parent / "ontology"
GENERAL = FOLDER.joinpath("general.ttl").read_text(encoding="utf-8")
SCHEMA = parse_schema(GENERAL, source="general.ttl")
KPG = "https://w3id.org/kpyramid/general#"
PREFIXES = read_turtle("ontology_head")


def state(subject: str, name: str, target: str, *, label: str = "Marie Curie") -> InstanceStatement:
    return InstanceStatement(
        subject_iri=entity_iri(subject),
        property_iri=KPG + name,
        class_iri=KPG + "Person",
        object_iri=entity_iri(target),
        literal=None,
        datatype=None,
        subject_label=label,
        object_label="Warsaw",
    )


ROWS = [
    state("e-1", "birthPlace", "e-2"),
    InstanceStatement(
        entity_iri("e-1"), KPG + "birthYear", KPG + "Person", None, "1867", n.XSD + "gYear", "M. C."
    ),
    InstanceStatement(
        entity_iri("e-3"), None, KPG + "Work", None, None, None, 'The "SERVICE"\nFROM \\ Łódź'
    ),
]


# --- the seed ontology -------------------------------------------------------------------


def test_core_vocabulary_declares_the_annotations_in_use() -> None:
    core = FOLDER.joinpath("core.ttl").read_text(encoding="utf-8")
    with OntologyStore(core, "") as store:
        rows = store.select_trusted(f"SELECT ?a {{ ?a a <{n.ANNOTATION_PROPERTY}> }}")
    assert {row["a"] for row in rows} == {
        n.COMMON_NOUNS,
        n.COMPETENCY_QUESTION,
        n.ENTITY_TYPE,
    }


def test_entity_types_lead_to_classes() -> None:
    found = {t: SCHEMA.class_for_type(t) for t in ("PERSON", "ORG", "GPE", "LOC", "CARDINAL")}
    assert found == {
        "PERSON": KPG + "Person",
        "ORG": KPG + "Organisation",
        "GPE": KPG + "PopulatedPlace",
        "LOC": KPG + "Place",
        "CARDINAL": None,
    }


def test_subclasses_are_transitive_and_reflexive() -> None:
    place, country = KPG + "Place", OntologyClass("urn:x#C", "c", parents=(KPG + "PopulatedPlace",))
    grown = SCHEMA.extend([country])
    assert grown.is_subclass("urn:x#C", place)
    assert grown.is_subclass(place, place)
    assert not grown.is_subclass(place, "urn:x#C")


def test_a_cycle_of_subclasses_ends() -> None:
    a, b = (OntologyClass(f"urn:{x}#", x, parents=(f"urn:{y}#",)) for x, y in ("ab", "ba"))
    assert Schema("urn:o#", (a, b), ()).is_subclass("urn:a#", "urn:b#")


# --- reading and writing schemas ---------------------------------------------------------


def test_a_written_schema_is_read_back_equal() -> None:
    odd = 'a "quoted"\n\\ label\twith \r ünïcode @prefix . \u2028'
    person = OntologyClass("urn:x#P", odd, (odd, "a"), odd, (n.THING,), ("B", "A", "A"))
    one_sided = OntologyProperty(
        "urn:x#r", odd, ("is r of", odd), "", "urn:x#P", "urn:x#P", inverse_of="urn:x#s"
    )
    other = replace(one_sided, iri="urn:x#s", inverse_of=None, competency_question=odd)
    number = replace(
        other, iri="urn:x#t", range=n.XSD + "decimal", is_datatype=True, is_functional=True
    )
    for schema in (SCHEMA, Schema("urn:x#", (person,), (number, one_sided, other))):
        assert parse_schema(write_schema(schema), source="written") == schema
    for base in ("https://example.org/o/", "https://example.org/o#"):
        assert parse_schema(write_schema(replace(SCHEMA, base=base)), source="w").base == base


def test_all_problems_of_a_schema_are_reported_at_once() -> None:
    turtle = PREFIXES + (
        ":A a owl:Class . :B a owl:Class ; rdfs:label 'Bürger'@de .\n"
        ":p a owl:ObjectProperty ; rdfs:label 'p' ; rdfs:range :A .\n"
        ":q a owl:DatatypeProperty ; rdfs:domain :A, :B ; rdfs:label 'q' .\n"
        ":r a owl:ObjectProperty ; rdfs:label 'r' ; rdfs:range :A ;\n"
        "   rdfs:domain [ owl:unionOf (:A :B) ] .\n"
        ":s a owl:FunctionalProperty ; rdfs:label 's' .\n"
    )
    with pytest.raises(InputError) as caught:
        parse_schema(turtle, source="bad.ttl")
    message = str(caught.value)
    assert message.startswith("bad.ttl: 7 to correct")
    for part in read_rows("ontology.all_problems_of_a_schema_are_reported_at_once"):
        assert part in message


def test_what_points_to_nothing_is_reported() -> None:
    turtle = PREFIXES + (
        ":A a owl:Class ; rdfs:label 'a' ; rdfs:subClassOf :Gone .\n"
        ":p a owl:ObjectProperty ; rdfs:label 'p' ; rdfs:domain :A ; rdfs:range xsd:date .\n"
        ":q a owl:DatatypeProperty ; rdfs:label 'q' ; rdfs:domain :X ; rdfs:range xsd:hexBinary .\n"
        ":r a owl:ObjectProperty ; rdfs:label 'r' ; rdfs:domain :A ; rdfs:range :A ;\n"
        "   owl:inverseOf :q .\n"
    )
    with pytest.raises(InputError, match="6 to correct"):
        parse_schema(turtle, source="bad.ttl")
    with pytest.raises(InputError, match="no class declared here"):
        SCHEMA.extend([replace(SCHEMA.properties[0], iri="urn:x", domain="urn:nowhere")])


def test_malformed_turtle_names_source_and_line() -> None:
    with pytest.raises(InputError, match=r"broken\.ttl, line 7: not valid Turtle"):
        parse_schema(PREFIXES + ":A a owl:Class ;\n rdfs:label 'unclosed .\n", source="broken.ttl")


def test_an_entity_bomb_in_rdf_xml_is_refused_at_once() -> None:
    lol = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 15))
    bomb = f'<!DOCTYPE rdf [<!ENTITY l0 "lol">{lol}]><rdf:RDF>&l14;</rdf:RDF>'
    for text in (bomb, "<?xml version='1.0'?>" + bomb, "\ufeff\n " + bomb, "\v" + bomb):
        with pytest.raises(InputError, match=r"line 1: (this is XML|not valid Turtle)"):
            parse_schema(text, source="bomb.owl")


def test_imports_are_not_followed() -> None:
    turtle = PREFIXES + (
        "<https://example.org/o> owl:imports <file:///etc/passwd>, <http://192.0.2.1/x> .\n"
        ":A a owl:Class ; rdfs:label 'a' .\n"
    )
    assert [c.label for c in parse_schema(turtle, source="o.ttl").classes] == ["a"]


def test_a_schema_grows_by_new_rows_and_replaces_known_ones() -> None:
    label = replace(SCHEMA.class_by_iri[KPG + "Person"], label="human being")
    studio = replace(SCHEMA.property_by_iri[KPG + "producer"], iri=KPG + "studio", inverse_of=None)
    grown = SCHEMA.extend([label, studio])
    assert grown.class_by_iri[KPG + "Person"].label == "human being"
    assert len(grown.classes) == len(SCHEMA.classes)
    assert len(grown.properties) == len(SCHEMA.properties) + 1


# --- literals ----------------------------------------------------------------------------


@each_row("text, datatype, expected")
def test_a_literal_is_canonical_or_nothing(text: str, datatype: str, expected: str | None) -> None:
    assert parse_literal(text, n.XSD + datatype) == expected


@pytest.mark.parametrize("datatype", ["integer", "decimal", "date", "gYear", "string"])
def test_a_long_text_is_judged_quickly(datatype: str) -> None:
    for text in ("1" * 100_000, "1," * 50_000, "on " * 40_000 + "1950", "(" * 100_000):
        parse_literal(text, n.XSD + datatype)


# --- instances ---------------------------------------------------------------------------


def test_instances_are_the_same_in_any_order_and_parse_back() -> None:
    written = write_instances(ROWS)
    assert written == write_instances([*reversed(ROWS), ROWS[0]])
    lines = written.splitlines()
    assert lines == sorted(set(lines))
    with OntologyStore(GENERAL, written) as store:
        query = f"SELECT ?o {{ <{entity_iri('e-3')}> <{n.LABEL}> ?o }}"
        assert store.select_trusted(query) == [{"o": 'The "SERVICE"\nFROM \\ Łódź'}]
        years = store.select_trusted(f"SELECT ?y {{ ?s <{KPG}birthYear> ?y }}")
        assert years == [{"y": "1867"}]
    assert write_instances([]) == ""


def test_an_entity_iri_survives_any_id() -> None:
    assert entity_iri("entity-0a") == "https://w3id.org/kpyramid/id/entity-0a"
    assert entity_iri("a b>/é") == "https://w3id.org/kpyramid/id/a%20b%3E%2F%C3%A9"


@each_row("changes")
def test_an_instance_that_says_nothing_clear_is_refused(changes: dict[str, str | None]) -> None:
    with pytest.raises(InputError):
        write_instances([replace(ROWS[0], **changes)])  # type: ignore[arg-type]


# --- queries -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def store():  # type: ignore[no-untyped-def]
    crowd = [state(f"p-{i}", "birthPlace", f"c-{i % 7}", label=f"P {i}") for i in range(400)]
    with OntologyStore(GENERAL, write_instances(ROWS + crowd), seconds=2.0) as opened:
        yield opened


DEEP = [
    "SELECT * { ?s ?p " + "(" * 3000 + "1" + ")" * 3000 + " }",
    "SELECT * { ?s ?p ?o FILTER(" + "!" * 30_000 + "?o) }",
]


@pytest.mark.parametrize("query", [*read_rows("ontology.queries_that_are_refused"), *DEEP])
def test_a_query_that_is_not_plain_reading_is_refused(store: OntologyStore, query: str) -> None:
    with pytest.raises(InputError, match="SPARQL query"):
        store.select(query)
    assert store.select("ASK { ?s ?p ?o }") == [{"ask": "true"}]


def test_a_service_hidden_from_one_parser_is_seen(store: OntologyStore) -> None:
    """Rdflib ends a comment at a line feed only, pyoxigraph at a carriage return too."""
    with pytest.raises(InputError, match="SERVICE reaches out to another server"):
        store.select("SELECT * { ?s ?p ?o . # x\r SERVICE <http://127.0.0.1:9/> { ?a ?b ?c } \n }")
    with pytest.raises(InputError, match="escapes are refused"):
        store.select("SELECT * { FILTER('\\u0027 # ' != '') SERVICE <http://x> { ?a ?b ?c } #'\n}")


def test_the_words_may_occur_in_strings_iris_comments_and_names(store: OntologyStore) -> None:
    text = '"The \\"SERVICE\\"\\nFROM \\\\ Łódź"'
    query = (
        "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> # SERVICE <x> FROM\n"
        f"SELECT ?service {{ ?service rdfs:label {text} . "
        "FILTER(?service != <urn:LOAD#FROM>) FILTER('INSERT' != 'SERVICE <http://x> {}') }"
    )
    assert store.select(query) == [{"service": entity_iri("e-3")}]


def test_a_limit_is_always_in_force(store: OntologyStore) -> None:
    everything = "SELECT * { ?a ?b ?c . ?d ?e ?f } LIMIT 100000"
    assert len(store.select(everything)) == 1000
    assert len(store.select(everything, limit=3)) == 3
    assert len(store.select_trusted(everything, limit=3)) == 3
    with pytest.raises(InputError, match="at least 1"):
        store.select(everything, limit=0)


def test_what_was_dropped_is_in_no_later_answer() -> None:
    query = f"SELECT ?s {{ ?s a <{KPG}Work> }}"
    with OntologyStore(GENERAL, write_instances(ROWS)) as opened:
        ((subject,),) = [row.values() for row in opened.select(query)]
        assert opened.select_trusted(query)
        opened.drop({f"<{subject}> <{n.RDF_TYPE}> <{KPG}Work> ."})
        assert opened.select(query) == opened.select_trusted(query) == []
        opened.close()  # the next process has what is left
        assert opened.select(query) == []
        assert opened.select("ASK { ?s ?p ?o }") == [{"ask": "true"}]


def test_trusted_queries_answer_as_outside_ones(store: OntologyStore) -> None:
    query = f"SELECT ?s ?x {{ ?s a <{KPG}Work> OPTIONAL {{ ?s <{KPG}author> ?x }} }} ORDER BY ?s"
    assert store.select(query) == store.select_trusted(query) == [{"s": entity_iri("e-3")}]
    with pytest.raises(InputError, match="only SELECT and ASK"):
        store.select_trusted("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }")


def test_a_cross_product_is_stopped_in_its_limit_and_the_parent_lives(store: OntologyStore) -> None:
    store.select("ASK { ?s ?p ?o }")
    with pytest.raises(InputError, match="stopped after 2 seconds"):
        store.select("SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }")
    assert store.select("ASK { ?s ?p ?o }") == [{"ask": "true"}]


def test_a_query_that_eats_memory_is_stopped_and_the_parent_lives() -> None:
    rows = write_instances([state(f"p-{i}", "birthPlace", "c", label=f"P {i}") for i in range(300)])
    with OntologyStore(GENERAL, rows, seconds=20, memory_bytes=100 * 2**20) as small:
        with pytest.raises(InputError, match="memory"):
            small.select("SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i } ORDER BY ?i ?f ?c")
        assert small.select("ASK { ?s ?p ?o }") == [{"ask": "true"}]


def test_the_child_can_open_no_socket_even_if_a_query_slips_through() -> None:
    code = (
        "import resource, sys; from kpyramid.ontology import sparql; "
        "sparql.check_query = lambda query: query; sparql.serve()"
    )
    begin = '{"schema": "", "instances": "", "facts": "", "memory_bytes": 1000000000}\n'
    ask = '{"query": "SELECT * { SERVICE <http://127.0.0.1:8080/> {?s ?p ?o} }", "limit": 1, '
    printed = run_python(code, input=f'{begin}{ask}"gone": "", "seconds": 5}}\n')
    assert "Too many open files" in printed.splitlines()[1]


def test_broken_instances_name_the_line() -> None:
    with OntologyStore(GENERAL, "<urn:a> <urn:b> <urn:c> .\nnonsense\n") as broken:
        for select in (broken.select, broken.select_trusted):
            with pytest.raises(InputError, match="ontology instances, line 2"):
                select("ASK { ?s ?p ?o }")
