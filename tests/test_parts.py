"""What passed in parts that no fact joins is not judged again, and the verdict is that on all."""

import random
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from kpyramid.ontology import names as n
from kpyramid.ontology.schema import parse_schema
from kpyramid.ontology.store import InstanceStatement, Quotation, write_instances
from kpyramid.ontology.validation import owl
from kpyramid.ontology.validation.consistency import add_modules
from kpyramid.ontology.validation.owl import judge_reading
from kpyramid.ontology.validation.parts import Unjudged, list_parts
from kpyramid.ontology.validation.shapes import Shaped, derive_shapes, judge_shapes
from kpyramid.pipeline import gates
from kpyramid.pipeline.gates import Judgement, judge_ontology, judge_readable
from kpyramid.pipeline.stages.publish import complete_texts
from kpyramid.storage.declarations import OntologyFiles
from tests.rows import read_turtle

E = "https://example.org/o#"
SCHEMA = read_turtle("shapes")
PARSED = parse_schema(SCHEMA, source="a test")
DERIVED = derive_shapes(PARSED)
SH = "@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix : <https://example.org/o#> .\n"


class Kept(dict[str, bytes]):
    """What passed, as the row cache of a warehouse keeps it."""

    def load(self, keys: Collection[str]) -> dict[str, bytes]:
        return {key: self[key] for key in keys if key in self}

    store = dict.update


def state(
    subject: str, prop: str | None = None, value: str | None = None, kind: str = "Person"
) -> InstanceStatement:
    is_text = prop == "job"
    return InstanceStatement(
        subject_iri=E + subject,
        property_iri=E + prop if prop else None,
        class_iri=E + kind,
        object_iri=E + value if value and not is_text else None,
        literal=value if is_text else None,
        datatype=n.XSD + "string" if is_text else None,
        subject_label=subject,
        object_label=None if is_text else value,
        places=(Quotation("d", 0, 9, f"{subject} {prop} {value}.", "a.txt"),),
    )


ROWS = [
    state("ada", "bornIn", "oslo"),
    state("oslo", kind="Place"),
    state("ada", "job", "singer"),
    state("ben", "job", "painter"),
    state("cy", "bornIn", "oslo"),
    state("dan"),
]


def name_parts(schema: str = SCHEMA, own: str = "", rows: list[InstanceStatement] = ROWS) -> object:
    """The individuals of each part."""
    parts = list_parts(schema, write_instances(rows), [DERIVED, SH + own])
    return [{line.split(">")[0].rpartition("#")[2] for line in part} for part in parts]


def test_individuals_that_facts_join_are_one_part_without_their_sources() -> None:
    assert name_parts() == [set(), {"ada", "cy", "oslo"}, {"ben"}, {"dan"}]
    parts = list_parts(SCHEMA, write_instances(ROWS), [DERIVED])
    assert not any(n.PROV in line or n.DCT in line for part in parts for line in part)


@pytest.mark.parametrize(
    ("schema", "own"),
    [
        ("", ":S sh:targetObjectsOf :job ; sh:property [ sh:path [ sh:inversePath :job ] ] ."),
        ("", ":S sh:targetNode :ada ; sh:property [ sh:path :job ; sh:minCount 1 ] ."),
        ("", ":S sh:targetClass :Person ; sh:sparql [ sh:select 'SELECT $this { ?s ?p ?o }' ] ."),
        ("", ":S sh:targetClass :Person ; sh:closed true ."),
        ("", ":S sh:targetClass :Person ; sh:property [ sh:path ( a :job ) ; sh:minCount 1 ] ."),
        ("", f":S sh:targetSubjectsOf <{n.DERIVED_FROM}> ; sh:nodeKind sh:IRI ."),
        (":Person owl:hasKey ( :job ) .", ""),
        (":Place owl:equivalentClass [ a owl:Class ; owl:oneOf ( :rome ) ] .", ""),
        (":ada :bornIn :bergen .", ""),
        ("", "no Turtle"),
    ],
)
def test_all_is_one_part_where_a_judge_may_read_across_parts(schema: str, own: str) -> None:
    own = own.replace("( a ", f"( <{n.RDF_TYPE}> ")
    (part,) = list_parts(SCHEMA + schema, write_instances(ROWS), [DERIVED, SH + own])
    assert "\n".join(part) + "\n" == write_instances(ROWS)


def test_a_licence_of_the_ontology_is_no_source_of_an_individual() -> None:
    header = f"<urn:o> a <{n.ONTOLOGY}> ; <{n.DCT}license> <urn:free> .\n"
    assert name_parts(SCHEMA + header, header) == name_parts()


@pytest.mark.usefixtures("shapes_here")
@pytest.mark.parametrize("seed", range(4))
def test_parts_have_the_violations_of_the_whole(seed: int) -> None:
    chance = random.Random(seed)
    names = [f"i{number}" for number in range(14)]
    rows = [
        state(name, kind=chance.choice(["Person", "Place", "Singer"]))
        if chance.random() < 0.4
        else state(name, "job", chance.choice(["x", "painter", "y)", "smith"]))
        if chance.random() < 0.5
        else state(name, "bornIn", chance.choice(names))
        for name in names * 2
    ]
    own = SH + ":S sh:targetClass :Singer ; sh:property [ sh:path :job ; sh:minCount 1 ] ;"
    own += " sh:property [ sh:path ( :bornIn :job ) ; sh:maxCount 1 ; sh:message 'two jobs' ] ."
    shapes, text = {"derived": DERIVED, "own": own}, write_instances(rows)

    def judge(text: str) -> Shaped:
        return judge_shapes(SCHEMA, text, shapes, seconds=60)

    parts = [judge("".join(f"{x}\n" for x in p)) for p in list_parts(SCHEMA, text, shapes.values())]
    assert len(parts) > 2
    broken = [each for part in parts for each in part.broken]
    assert sorted(map(str, broken)) == sorted(map(str, judge(text).broken)) != []


NEW = 'a owl:ObjectProperty ; rdfs:label "new" ; rdfs:domain :Place ; rdfs:range :Person'
SAYINGS: dict[str, set[str]] = {
    "": set(),
    f":plays {NEW} .": set(),
    ":Singer rdfs:subClassOf :Place .": set(),
    ":job a owl:FunctionalProperty .": {"ada", "ben"},
    f":hometown {NEW} ; owl:inverseOf :bornIn .": {"ada"},
    ':Place rdfs:subClassOf :Thing . :Thing a owl:Class ; rdfs:label "thing" .': {"ada"},
    ":Person owl:disjointWith :Place .": {"ada", "ben", "dan"},
    "[] a owl:AllDisjointClasses ; owl:members ( :Singer :Place ) .": {"ada", "ben", "dan"},
}
"""Axioms, and an individual of each part that they bear on."""


@pytest.mark.parametrize(("axioms", "changed"), SAYINGS.items())
def test_what_the_schema_says_of_a_part_makes_it_judged_again(
    axioms: str, changed: set[str]
) -> None:
    def key(schema: str) -> dict[str, str]:
        parts = add_modules(schema, list_parts(schema, write_instances(ROWS), [DERIVED]))
        names = ((key, "".join(part)) for key, part in parts)
        return {next((n for n in ("ada", "ben", "dan") if E + n in t), ""): k for k, t in names}

    before, after = key(SCHEMA), key(SCHEMA + axioms)
    differ = {name for name in before if before[name] != after[name]}
    assert differ == ({*changed, ""} if axioms else set())  # the schema itself is judged again


@pytest.mark.usefixtures("shapes_here")
def test_parts_of_which_the_schema_says_the_same_have_the_same_violations() -> None:
    rows = [*ROWS, state("ben", "job", "y)"), state("dan", "bornIn", "ben")]
    text, seen = write_instances(rows), {}
    for axioms in SAYINGS:
        shapes = {"derived": derive_shapes(parse_schema(SCHEMA + axioms, source="a test"))}
        for key, part in add_modules(SCHEMA + axioms, list_parts(SCHEMA, text, [DERIVED])):
            lines = "".join(f"{line}\n" for line in part)
            broken = judge_shapes(SCHEMA + axioms, lines, shapes, seconds=60).broken
            facts = [each["facts"] for each in broken]
            assert seen.setdefault((key, lines), facts) == facts
    assert len(seen) > len(SAYINGS) + 4
    assert any(seen.values())


def make_texts(rows: list[InstanceStatement]) -> dict[str, str]:
    judged = {"ontology/schema.ttl": SCHEMA, "ontology/instances.nt": write_instances(rows)}
    return complete_texts(judged, rows, PARSED)


def test_a_night_judges_the_parts_that_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def judge(_schema: str, text: str, _shapes: Mapping[str, str], *, seconds: float) -> Shaped:
        asked.append(text)
        return Shaped("fail: a bad job" if "bad" in text else "pass")

    monkeypatch.setattr(gates, "judge_shapes", judge)
    monkeypatch.setattr(gates, "judge_consistency", lambda *_, **__: "pass")
    turtle = tmp_path / "own.ttl"
    turtle.write_text(SCHEMA, "utf-8")
    files, passed = OntologyFiles(turtle, None, None, None, ()), Kept()

    def night(*rows: InstanceStatement) -> str:
        judged = judge_ontology(files, make_texts([*rows]), seconds=60, passed=passed)
        return judged.gates["shapes"]

    assert night(*ROWS) == "pass"
    assert night(*reversed(ROWS)) == "pass"
    assert len(asked) == 1  # the second night had the same parts
    for _ in range(2):  # what fails is judged every night
        assert night(*ROWS, state("dan", "job", "bad")).startswith("fail")
        assert {line.split(">")[0].rpartition("#")[2] for line in asked.pop().split("\n")} == {
            "dan",
            "",
        }
    monkeypatch.setattr(gates, "find_java", lambda: None)
    assert night(*ROWS) == "pass"
    assert len(asked) == 2  # HermiT did not judge them then


def test_values_that_owlready2_read_before_are_counted_and_not_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def ask(_name: str, given: dict[str, Any], *, seconds: float) -> tuple[object, str]:
        asked.append(given["ontology"])
        return owl._judge(given["ontology"], given["parts"]), ""

    monkeypatch.setattr(owl, "ask_function", ask)
    passed = Kept()

    def night(rows: list[InstanceStatement], passed: Kept = passed) -> str:
        texts = make_texts(rows)
        parts = add_modules(SCHEMA, list_parts(SCHEMA, texts["ontology/instances.nt"], [DERIVED]))
        return judge_readable(texts, Judgement(parts=parts), seconds=60, passed=passed)

    verdict = night(ROWS)
    read, written = (make_texts(ROWS)[f"ontology/{name}.nt"] for name in ("ontology", "instances"))
    whole = Unjudged("", [("", written.split("\n"))], None)
    assert verdict == judge_reading(read, whole, seconds=60) != "pass: 0 values of 0 individuals"
    assert night(ROWS) == verdict
    changed = [*ROWS, state("dan", "job", "smith")]
    assert night(changed) == night(changed, Kept()) != verdict
    assert [E + "ada" in text for text in asked] == [True, True, False, True]


def test_a_part_is_known_under_the_same_judge_only() -> None:
    passed = Kept()
    first = Unjudged("one", [("", ["a"]), ("", ["b"])], passed)
    first.keep(dict.fromkeys(first.left, b""))
    assert not Unjudged("one", [("", ["b"])], passed).left
    assert (
        Unjudged("two", [("", ["b"])], passed).text
        == Unjudged("one", [("", ["b"])], None).text
        == "b\n"
    )
