"""Nothing that an ontology states is lost between reading and writing it."""

import hashlib

import pytest

from kpyramid.errors import InputError
from kpyramid.ontology import names as n
from kpyramid.ontology.axioms import write_axioms
from kpyramid.ontology.proposals import adopt_proposals
from kpyramid.ontology.schema import parse_schema, write_schema
from kpyramid.ontology.turtle import parse_turtle
from tests.processes import run_python
from tests.rows import read_turtle

O = "https://example.org/o#"  # noqa: E741
HEAD = read_turtle("ontology_axioms_head")
RICH = HEAD + read_turtle("ontology_axioms_rich")
SCHEMA = parse_schema(RICH, source="rich.ttl")


def test_every_statement_is_still_there_after_writing() -> None:
    written = parse_turtle(write_schema(SCHEMA), source="written")
    # As English text, and with the two annotations that every schema declares.
    stated = {line.replace('"@en', '"') for line in write_axioms(written)}
    missing = {line.replace('"@en', '"') for line in write_axioms(parse_turtle(RICH, source="r"))}
    assert missing - stated == set()
    assert all(n.KP in line for line in stated - missing)


def test_a_schema_with_axioms_is_read_back_equal() -> None:
    written = write_schema(SCHEMA)
    again = parse_schema(written, source="written")
    assert again == SCHEMA
    assert write_schema(again) == written
    assert len(SCHEMA.axioms) > 50


def test_axioms_are_alike_in_every_process_whatever_the_order_and_names() -> None:
    code = (
        "import sys, hashlib; from kpyramid.ontology.schema import *; "
        "w = write_schema(parse_schema(sys.stdin.read(), source='s')); "
        "print(hashlib.sha256(w.encode()).hexdigest())"
    )
    printed = run_python(code, input=RICH, env={"PYTHONHASHSEED": "7"})
    assert printed.strip() == hashlib.sha256(write_schema(SCHEMA).encode()).hexdigest()
    triples = parse_turtle(RICH, source="r")
    assert write_axioms(triples) == write_axioms(reversed(triples))
    one = "_:x :p [ :q 1 ] . _:x :p [ :q 2 ] ."
    other = "_:y :p _:c, _:a . _:a :q 1 . _:c :q 2 ."
    assert _name(one) == _name(other)


def _name(turtle: str) -> tuple[str, ...]:
    return write_axioms(parse_turtle(HEAD + turtle, source="t"))


def test_a_list_of_thousands_is_named_and_written_without_recursion() -> None:
    members = " ".join(f":m{i}" for i in range(4_000))
    turtle = HEAD + ":A a owl:Class ; rdfs:label 'a' ; owl:oneOf ( " + members + " ) .\n"
    schema = parse_schema(turtle, source="t")
    assert len(schema.axioms) == 8_005
    assert parse_schema(write_schema(schema), source="w") == schema


def test_deep_nests_come_back_whole() -> None:
    turtle = HEAD + ":A a owl:Class ; rdfs:label 'a' ; rdfs:seeAlso "
    turtle += "[ :p " * 3000 + ":A" + " ]" * 3000 + " ."
    schema = parse_schema(turtle, source="t")
    assert parse_schema(write_schema(schema), source="w") == schema


def test_blank_nodes_in_a_circle_are_refused_with_the_reason() -> None:
    turtle = HEAD + ":A a owl:Class ; rdfs:label 'a' . _:x :p _:y . _:y :q _:x ."
    with pytest.raises(InputError, match=r"t\.ttl: 2 blank nodes refer to each other in a circle"):
        parse_schema(turtle, source="t.ttl")


def test_a_statement_about_a_statement_is_refused() -> None:
    turtle = HEAD + ":A a owl:Class ; rdfs:label 'a' . << :a :b :c >> :d :e ."
    with pytest.raises(InputError, match="only plain RDF is kept"):
        parse_schema(turtle, source="t.ttl")


def test_axioms_survive_growth() -> None:
    proposal = {
        "state": "accepted", "iri": O + "N", "label": "n", "domain": O + "A", "range": "",
        "phrases": [], "kind": "class", "definition": "",
        "inverse_of": None, "splits": None,
    }  # fmt: skip
    grown = adopt_proposals(SCHEMA, [proposal])
    assert grown.axioms == SCHEMA.axioms
    assert parse_schema(write_schema(grown), source="w") == grown


def test_cardinalities_bound_the_number_of_values() -> None:
    assert SCHEMA.max_values(O + "A", O + "p") == 2
    assert SCHEMA.max_values(O + "C", O + "p") == 2  # inherited from A
    assert SCHEMA.max_values(O + "D", O + "p") is None
    assert SCHEMA.max_values(O + "D", O + "q") == 1  # functional


def test_a_header_that_ends_in_a_hash_is_one_with_its_base() -> None:
    turtle = RICH.replace("<https://example.org/o>", "<https://example.org/o#>")
    assert parse_schema(turtle, source="t") == SCHEMA


def test_python_that_an_annotation_names_is_refused() -> None:
    code = f"<https://example.org/o> <{n.OWLREADY}python_module> 'os' .\n"
    with pytest.raises(InputError, match=r"python_module.*run the Python module"):
        parse_schema(RICH + code, source="t.ttl")


def test_common_nouns_are_read_and_written() -> None:
    turtle = RICH + f":A <{n.COMMON_NOUNS}> true .\n:B <{n.COMMON_NOUNS}> false .\n"
    schema = parse_schema(turtle, source="t")
    assert [c.label for c in schema.classes if c.common_nouns] == ["Zed"]
    assert parse_schema(write_schema(schema), source="w") == schema
