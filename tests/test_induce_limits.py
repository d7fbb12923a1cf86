"""What an ontology's axioms and shapes forbid is refused value by value, inverses included."""

import time
from collections.abc import Sequence
from functools import cache

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpyramid.ontology.constraints import Rules, read_constraints
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.names import XSD
from kpyramid.ontology.population.checking import Linker
from kpyramid.ontology.schema import parse_schema
from kpyramid.ontology.validation.shapes import derive_shapes
from kpyramid.pipeline.stages.instances import MentionTable
from kpyramid.storage.contracts import load_contracts
from tests.planted import Statement
from tests.processes import run_python
from tests.rows import each_row, read_rows, read_turtle
from tests.test_induce import count_reasons, list_members, list_values, run_induce

HEAD = read_turtle("induce_limits_head")
CLASSES = read_turtle("induce_limits_classes")
ADVISES = read_turtle("induce_limits_advises")


def induce(more: str, statements: Sequence[Statement], shapes: str = "") -> dict[str, pa.Table]:
    schema = parse_schema(HEAD + CLASSES + more, source="a test")
    return run_induce(statements, schema, HEAD + shapes)


def advise(head: str, phrase: str, tail: str) -> Statement:
    return (head, "PERSON", phrase, tail, "PERSON")


MAKERS = read_turtle("induce_limits_makers")


def test_what_an_inverse_cannot_hold_is_no_value() -> None:
    tables = induce(MAKERS, [("Dune", "WORK_OF_ART", "was made by", "Acme", "ORG")])

    assert list_values(tables) == set()
    assert tables["rejects"]["detail"].to_pylist()[0].endswith("Acme (ORG) is no person")


@pytest.mark.parametrize("backends", [MAKERS, MAKERS.replace("authorOf", "wrote")])
def test_a_fact_in_the_words_of_both_inverses_is_one_instance(backends: str) -> None:
    tables = induce(
        backends,
        [
            ("Dune", "WORK_OF_ART", "was made by", "Ada Byron", "PERSON"),
            ("Ada Byron", "PERSON", "wrote", "Dune", "WORK_OF_ART"),
        ],
    )

    (row,) = [r for r in tables["instances"].to_pylist() if r["property_iri"]]
    assert len(row["places"]) == 2
    assert list_members(tables) == {("Ada Byron", "Person"), ("Dune", "Work")}


NOTHING = read_rows("induce_limits.nothing")  # fmt: skip


@pytest.mark.parametrize(("axioms", "shapes"), NOTHING, ids=["axiom", "shape"])
def test_a_maximum_of_none_is_told(axioms: str, shapes: str) -> None:
    tables = induce(ADVISES + axioms, [advise("Ada Byron", "advised", "Bela Kiss")], shapes)

    assert count_reasons(tables) == {"too_many_values": 1}
    assert "may have no value" in tables["rejects"]["detail"].to_pylist()[0]


BEN, CARL = "Ben Moss", "Carl Orme"
LIMITS = read_rows("induce_limits.limits")


@pytest.mark.parametrize(
    ("axioms", "statements", "reason"), [case[1:] for case in LIMITS], ids=[c[0] for c in LIMITS]
)
def test_limits_are_kept_through_inverses_and_properties_above(
    axioms: str, statements: Sequence[Statement], reason: str
) -> None:
    tables = induce(ADVISES + axioms, statements)

    assert len(list_values(tables)) == 1
    assert count_reasons(tables) == {reason: 1}


def test_what_closes_a_circle_of_a_strict_order_is_no_value() -> None:
    order = ":advised a owl:AsymmetricProperty, owl:IrreflexiveProperty ."
    circle = [("Ada Byron", BEN), (BEN, CARL), (CARL, "Ada Byron"), ("Ada Byron", CARL)]

    tables = induce(ADVISES + order, [advise(a, "advised", b) for a, b in circle])
    assert len(list_values(tables)) == 3
    assert count_reasons(tables) == {"circular": 1}

    both_ways = induce(ADVISES, [advise(a, "advised", b) for a, b in circle])
    assert len(list_values(both_ways)) == 4


def test_one_fact_told_from_both_ends_breaks_no_limit() -> None:
    tables = induce(
        ADVISES + LIMITS[4][1],
        [advise("Ada Byron", "is twin of", BEN), advise(BEN, "is twin of", "Ada Byron")],
    )
    assert len(list_values(tables)) == 2
    assert not count_reasons(tables)


def test_a_shape_does_not_count_what_is_only_inferred() -> None:
    above = ':knew a owl:ObjectProperty ; rdfs:label "knew" ; rdfs:domain :Person ; ' \
        "rdfs:range :Person . :advised rdfs:subPropertyOf :knew ."  # fmt: skip
    shape = ":S a sh:NodeShape ; sh:targetClass :Person ; sh:property [ sh:path :knew ; " \
        "sh:maxCount 1 ] ."  # fmt: skip
    told = [advise("Ada Byron", "advised", BEN), advise("Ada Byron", "advised", CARL)]
    assert len(list_values(induce(ADVISES + above, told, shape))) == 2


# --- shapes --------------------------------------------------------------------------------

SHAPE = """:S a sh:NodeShape ; sh:targetClass :Person {} ;
    sh:property [ sh:path :code ; sh:pattern "^[0-9]+$" {} ] ."""


@each_row("of_node, of_property, count")
def test_a_shape_is_switched_off_where_it_says_so(
    of_node: str, of_property: str, count: int
) -> None:
    found = read_constraints(HEAD + SHAPE.format(of_node, of_property), source="t")
    assert len(found) == count


def test_demands_come_in_the_same_order_in_every_process() -> None:
    shapes = ", ".join(
        f'[ sh:path :code ; sh:pattern "^a" ; sh:flags "{flags}" ; sh:message "{message}" ]'
        for flags in ("i", "s", "m")
        for message in ("one", "two", "three")
    )
    turtle = HEAD + f":S a sh:NodeShape ; sh:targetClass :Person ; sh:property {shapes} ."
    script = (
        "import sys; from kpyramid.ontology.constraints import read_constraints; "
        "print([(c.flags, c.message) for c in read_constraints(sys.argv[1], source='t')])"
    )
    seeds = ({"PYTHONHASHSEED": seed} for seed in "123")
    assert len({run_python(script, turtle, env=seed) for seed in seeds}) == 1


def test_a_costly_pattern_is_judged_at_once() -> None:
    """Python's own engine tries each way to cut the value, 2^59 of them."""
    turtle = HEAD + SHAPE.replace("^[0-9]+$", "^(a+)+$").format("", "")
    script = (
        "import sys; from kpyramid.ontology.constraints import read_constraints; "
        "(c,) = read_constraints(sys.argv[1], source='t'); "
        "print(c.allows('a' * 60, ''), c.allows('a' * 60 + '!', ''))"
    )
    assert run_python(script, turtle, timeout=120).split() == ["True", "False"]


def test_a_pattern_that_looks_ahead_is_left_to_the_validator() -> None:
    turtle = HEAD + SHAPE.replace("^[0-9]+$", "^(?!x)").format("", "")
    assert read_constraints(turtle, source="t") == ()


# --- speed and readings ----------------------------------------------------------------------


def test_disjointness_of_thousands_is_asked_quickly() -> None:
    count = 3000
    lines = [f':C{n} a owl:Class ; rdfs:label "c{n}" .' for n in range(count + 1)]
    lines += [f":C{n} owl:disjointWith :C{n + 1} ." for n in range(count)]
    schema = parse_schema(HEAD + "\n".join(lines), source="t")
    base = "https://example.org/o#C"
    assert schema.are_disjoint(f"{base}0", f"{base}1")
    started = time.process_time()
    for number in range(2, 6000):
        assert not schema.are_disjoint(f"{base}0", f"{base}{number % 2000 + 2}")
    assert time.process_time() - started < 2.0


def test_words_are_found_however_their_lines_are_broken() -> None:
    from kpyramid.ontology.population.checking import Place
    from kpyramid.pipeline.stages.instances import _find_rest

    def find(text: str) -> str | None:
        span = _find_rest(
            Place("d", "c", 7, 7 + len(text), text, None, None, 1, "r", "s"), "Ada Moss"
        )
        return text[span.start - 7 : span.end - 7] if span else None

    assert find("A pupil of Ada Moss.") == "Ada Moss"
    assert find("A pupil of Ada\nMoss.") == "Ada\nMoss"
    assert find("A pupil of Ada  Moss.") == "Ada  Moss"
    assert find("A pupil of others.") is None


def test_words_without_a_place_are_linked_by_name() -> None:
    tables = (load_contracts()[name].build([]) for name in ("mentions", "chunks", "entities"))
    linker = Linker([], MentionTable(*tables), lambda name, kind: frozenset())
    named = linker.find("d", "Ada Moss", None)
    assert not isinstance(named, str)
    assert named.name == "Ada Moss"
    assert [row["mentions"] for row in linker.list_made()] == [[]]


TEXTS = """:word a owl:DatatypeProperty ; rdfs:label "word" ; rdfs:domain :Agent ;
    rdfs:range xsd:string ."""


@cache
def string_rules() -> Rules:
    schema = parse_schema(HEAD + CLASSES + TEXTS, source="t")
    return Rules(schema, read_constraints(derive_shapes(schema), source="derived"))


def nest(of: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    wrapped = st.builds(lambda pair, words: f"{pair[0]}{words}{pair[1]}", PAIRS, of)
    return wrapped | st.builds(str.__add__, of, of)


PAIRS = st.sampled_from(("()", "[]", "{}"))
NESTED = st.recursive(st.just("a"), nest, max_leaves=6)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(NESTED | st.text("()[]{}ab", max_size=14), PAIRS)
def test_a_literal_passes_the_shapes_that_follow_from_the_schema(text: str, kind: str) -> None:
    def passes(words: str) -> bool:
        return (
            string_rules().find_broken(
                ("https://example.org/o#Agent",),
                "https://example.org/o#word",
                words,
                XSD + "string",
            )
            is None
        )

    words = f"x{text}x"
    assert parse_literal(words, XSD + "string") is None or passes(words)
    one = "".join(c for c in words if c in kind or c.isalpha())
    assert (parse_literal(one, XSD + "string") is not None) == passes(one)


@pytest.mark.parametrize(("text", "fits"), [("a(b(c)d)e", True), ("a(b(c(d)e)f)g", False)])
def test_brackets_are_at_most_two_deep(text: str, fits: bool) -> None:
    assert (parse_literal(text, XSD + "string") is not None) == fits
