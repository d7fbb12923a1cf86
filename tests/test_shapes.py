"""SHACL that follows from a schema, and an ontology's own, judged in a limited process."""

import http.server
import json
import threading

import pytest
import rdflib

from kpyramid.ontology.schema import parse_schema
from kpyramid.ontology.validation import shapes
from kpyramid.ontology.validation.shapes import derive_shapes, judge_shapes
from tests.rows import each_row, read_rows, read_turtle

E = "https://example.org/o#"
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
XSD = "http://www.w3.org/2001/XMLSchema#"
SCHEMA = read_turtle("shapes")
DERIVED = {"derived": derive_shapes(parse_schema(SCHEMA, source="a test"))}
SH = "@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix : <https://example.org/o#> .\n"


def fact(subject: str, name: str, value: str) -> str:
    written = value if value.startswith('"') else f"<{E}{value}>"
    predicate = RDF_TYPE if name == "a" else f"<{E}{name}>"
    return f"<{E}{subject}> {predicate} {written} .\n"


GOOD = read_rows("shapes.good")
BAD = [
    *(fact("ada", "job", f'"{job}"') for job in (")", "A", "Ph", "Taiwan)", "x(y", "]a[", "")),
    fact("ben", "bornIn", "oslo"),
    fact("ada", "bornIn", "cy"),
    fact("ada", "bornOn", f'"1990-02-30"^^<{XSD}date>'),
    fact("ada", "seen", '"1990"'),
]


HERE = pytest.mark.usefixtures("shapes_here")


def judge(*facts: str, shapes: dict[str, str] = DERIVED, seconds: float = 60) -> str:
    return judge_shapes(SCHEMA, "".join(facts), shapes, seconds=seconds).verdict


@HERE
def test_what_fits_the_schema_passes() -> None:
    assert judge(*GOOD) == "pass"


@HERE
def test_every_value_that_does_not_fit_is_counted_and_the_first_are_named() -> None:
    verdict = judge(*GOOD, *BAD)

    # ")" is too short and unmatched; a second birth place and a second date are one too many.
    assert verdict.startswith(f"fail: {len(BAD) + 3} violations: ")
    assert "“https://example.org/o#ada”: a value of “born in” must be of class “place”" in verdict


@HERE
@each_row("planted, said")
def test_a_bad_value_is_shown_with_its_subject(planted: str, said: str) -> None:
    verdict = judge(*GOOD, fact("ada", "job", f'"{planted}"'))
    assert f"{E}ada”: a value of “job” " in verdict
    assert said in verdict


@HERE
def test_an_ontology_s_own_shapes_are_judged_and_warnings_do_not_fail() -> None:
    own = SH + ":S a sh:NodeShape ; sh:targetClass :Singer ; sh:property [\n"
    own += "  sh:path :stageName ; sh:minCount 1 ; sh:message 'no stage name' ] ."
    assert "“https://example.org/o#ada”: no stage name" in judge(*GOOD, shapes={"own": own})
    mild = own.replace("sh:minCount 1", "sh:minCount 1 ; sh:severity sh:Warning")
    assert judge(*GOOD, shapes={"own": mild}) == "pass"


PART = "sh:property [ sh:path :job ; sh:maxCount 1 ; sh:pattern '^[a-z]*$' ; sh:message 'one job' ]"


@HERE
@pytest.mark.parametrize(
    "own",
    [
        f":S a sh:NodeShape ; sh:targetClass :Singer, :Place ; {PART} .",
        f":S sh:targetClass :Person ; {PART}, [ sh:path :bornIn ; sh:minCount 1 ; sh:property "
        "[ sh:path :bornIn ; sh:minCount 1 ; sh:message 'one more' ] ; sh:message 'born' ] .",
        f":S sh:targetClass :Person ; sh:deactivated true ; {PART} .",
        f":S sh:targetClass :Person ; sh:closed true ; {PART} .",
        f":S sh:targetClass :Person ; {PART} . :T sh:targetSubjectsOf :bornIn ; sh:node :S .",
        ":Singer a sh:NodeShape, <http://www.w3.org/2000/01/rdf-schema#Class> ;"
        f" sh:targetClass :Place ; {PART} .",
        f":S sh:targetClass :Place ; sh:targetSubjectsOf :bornIn ; {PART} .",
        ":S sh:targetClass :Person ; sh:property :P . :T sh:targetClass :Singer ; sh:property :P ."
        " :P sh:path :job ; sh:maxCount 1 ; sh:message 'one job' .",
        ":S sh:targetClass :Person ; sh:path :bornIn ;"
        " sh:property [ sh:path :job ; sh:minCount 1 ; sh:message 'a job' ] .",
        ":S sh:targetClass :Person ; sh:property [ sh:path :bornIn ; sh:qualifiedMinCount 1 ;"
        " sh:qualifiedValueShapesDisjoint true ; sh:qualifiedValueShape [ sh:nodeKind sh:IRI ] ],"
        " [ sh:path :job ; sh:qualifiedMaxCount 9 ;"
        " sh:qualifiedValueShape [ sh:nodeKind sh:IRIOrLiteral ] ] .",
    ],
)
def test_parts_that_stand_alone_are_judged_as_within_their_shape(
    own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = "".join([*GOOD, *BAD, fact("cy", "a", "Singer"), fact("ada", "job", '"Singer"')])
    apart = judge_shapes(SCHEMA, facts, {"own": SH + own}, seconds=60)
    monkeypatch.setattr(shapes, "_lift_parts", lambda _: None)
    assert judge_shapes(SCHEMA, facts, {"own": SH + own}, seconds=60) == apart
    assert (apart.verdict == "pass") == ("deactivated" in own)


def test_parts_of_a_class_are_judged_alone() -> None:
    own = rdflib.Graph().parse(data=f"{SH} :S sh:targetClass :Singer ; {PART} .", format="turtle")
    shapes._lift_parts(own)
    (part,) = own.subjects(rdflib.SH.path)
    assert [*own.objects(part, rdflib.SH.targetClass)] == [rdflib.URIRef(f"{E}Singer")]
    assert not [*own.subject_objects(rdflib.SH.property)]


SOURCED = "<http://www.w3.org/ns/prov#wasDerivedFrom>"


@HERE
@pytest.mark.parametrize(
    "own",
    [
        f"sh:property [ sh:path {SOURCED} ; sh:maxCount 0 ; sh:message 'strange' ]",
        "sh:closed true ; sh:ignoredProperties ( :job :bornIn ) ; sh:message 'strange'",
        "sh:sparql [ sh:message 'strange' ; sh:select"
        " 'SELECT $this { $this ?p ?o FILTER (CONTAINS(STR(?p), \"Derived\")) }' ]",
        f"sh:property [ sh:path :job ; sh:equals {SOURCED} ; sh:message 'strange' ]",
    ],
)
def test_sentences_are_judged_where_a_shape_may_read_them(own: str) -> None:
    told = f"<{E}bea> {SOURCED} <urn:kpyramid:quotation:1> .\n"
    given = {"own": f"{SH}:S a sh:NodeShape ; sh:targetNode :bea ; {own} ."}
    assert "strange" not in judge(*GOOD, shapes=given)
    assert "strange" in judge(*GOOD, told, shapes=given)


def test_shapes_that_are_no_turtle_or_no_shapes_fail_by_name() -> None:
    assert judge(shapes={"x.shapes.ttl": "nonsense"}).startswith("fail: x.shapes.ttl is no Turtle")
    broken = SH + ":S a sh:NodeShape ; sh:targetClass :Singer ; sh:sparql [ sh:select 'SELEC' ] ."
    assert judge(*GOOD, shapes={"own": broken}).startswith("fail: the shapes cannot be used")


def test_shapes_fetch_nothing_and_run_no_script() -> None:
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            return

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        there = f"http://127.0.0.1:{server.server_port}"
        own = SH + (
            f"@prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
            f"<{there}/s> a owl:Ontology ; owl:imports <{there}/imported> .\n"
            f":S a sh:NodeShape ; sh:targetClass :Singer ; sh:shapesGraph <{there}/graph> ;\n"
            f"  sh:js [ sh:jsFunctionName 'f' ; sh:jsLibrary [ sh:jsLibraryURL '{there}/js' ] ] .\n"
        )
        verdict = judge(*GOOD, shapes={"own": own})
        federated = SH + (
            ":S a sh:NodeShape ; sh:targetClass :Singer ; sh:sparql [\n  sh:select "
            f"'SELECT $this {{ {{ SELECT ?x {{ SERVICE <{there}/q> {{ ?x ?p ?o }} }} }} }}' ] ."
        )
        second = judge(*GOOD, shapes={"own": federated})
        server.shutdown()
    assert asked == []
    assert verdict == "pass"
    assert second.startswith("fail: the shapes cannot be used")


def test_shapes_that_take_too_long_are_stopped_and_the_gate_is_not_run() -> None:
    verdict = judge(*GOOD, seconds=0.001)
    assert verdict.startswith("not run: pyshacl was stopped after 0.001 seconds")


def test_derived_shapes_are_the_same_every_time_and_cover_every_property() -> None:
    schema = parse_schema(SCHEMA, source="a test")
    assert derive_shapes(schema) == DERIVED["derived"]
    for prop in schema.properties:
        assert f"sh:targetSubjectsOf <{prop.iri}>" in DERIVED["derived"]
    assert json.dumps(DERIVED)  # plain text
