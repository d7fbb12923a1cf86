"""The funnel of induction: what is no value is refused with its reason, and nothing is lost."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kpyramid.documents.sentences import Span
from kpyramid.ontology.constraints import read_constraints
from kpyramid.ontology.population.checking import Kinds, Place, combine_confidence, is_count
from kpyramid.ontology.population.kinds import find_kinds
from kpyramid.ontology.schema import OntologyClass, Schema, parse_schema
from tests import planted
from tests.planted import Statement, WordEmbedder, general_schema, plant
from tests.rows import each_row, read_rows, read_turtle

BASE = "https://example.org/small#"
TURTLE = read_turtle("induce")
SHAPES = read_turtle("induce_shapes")


def small_schema() -> Schema:
    return parse_schema(TURTLE, source="a test")


def run_induce(
    statements: Sequence[Statement],
    schema: Schema | None = None,
    shapes: str = SHAPES,
) -> dict[str, pa.Table]:
    """The tables of a corpus that states exactly this, with what induction makes of them."""
    tables = plant(statements)
    rules = read_constraints(shapes, source="a test")
    ports = {"shapes": rules, "embedder": WordEmbedder(), "min_confidence": 0.75}
    made = planted.run_induce(tables, schema or small_schema(), annotator=lambda texts: [], **ports)
    return {**tables, "made": made["entities"], **{k: made[k] for k in ("instances", "rejects")}}


def list_values(tables: dict[str, pa.Table]) -> set[tuple[str, str, str]]:
    """Subject, local name of the property, value."""
    name = {r["entity_id"]: r["name"] for r in tables["entities"].to_pylist()}
    return {
        (
            name[r["subject_id"]],
            r["property_iri"].rpartition("#")[2],
            name[r["object_id"]] if r["object_id"] else r["literal"],
        )
        for r in tables["instances"].to_pylist()
        if r["property_iri"]
    }


def list_members(tables: dict[str, pa.Table]) -> set[tuple[str, str]]:
    """Individual and the local name of its class."""
    name = {r["entity_id"]: r["name"] for r in tables["entities"].to_pylist()}
    return {
        (name[r["subject_id"]], r["class_iri"].rpartition("#")[2])
        for r in tables["instances"].to_pylist()
        if not r["property_iri"]
    }


def count_reasons(tables: dict[str, pa.Table]) -> Counter[str]:
    return Counter(tables["rejects"]["reason"].to_pylist())


ADA: Statement = ("Ada Byron", "PERSON", "was born in", "Bergen", "GPE")

REFUSED = read_rows("induce.what_is_no_value_is_a_reject_that_says_why")


@each_row("reason, statements, said")
def test_what_is_no_value_is_a_reject_that_says_why(
    reason: str, statements: Sequence[Statement], said: str
) -> None:
    tables = run_induce(statements)

    assert count_reasons(tables) == {reason: 1}
    (reject,) = tables["rejects"].to_pylist()
    assert said in reject["detail"]
    assert reject["stage"] == "induce"
    assert reject["chunk_id"] in tables["chunks"]["chunk_id"].to_pylist()
    _assert_nothing_is_lost(tables)


def _assert_nothing_is_lost(tables: dict[str, pa.Table]) -> None:
    """Every fact whose phrase names a property supports a value, or a reject names it."""
    used = {t for r in tables["instances"].to_pylist() for t in r["triple_ids"]}
    keys = set(tables["rejects"]["row_key"].to_pylist())
    lost = set(tables["triples"]["triple_id"].to_pylist()) - used - keys
    # Rejects of values that lost to others name the value, not its facts.
    assert len(lost) <= sum(key.startswith("instance-") for key in keys)


@pytest.mark.parametrize("bad", [")", "A", "Ph", "Taiwan)", "?", "(x"])
def test_what_careless_splitting_leaves_never_becomes_a_value(bad: str) -> None:
    """The authors' released ontology has one person graduate from these."""
    tables = run_induce(
        [
            ("Ada Byron", "PERSON", "studied at", bad, "NOUN"),
            ("Ada Byron", "PERSON", "studied at", f"{bad} ", "ORG"),
            ("Bergen", "GPE", "has code", bad, "NOUN"),
        ]
    )

    assert list_values(tables) == set()
    assert bad not in {name for name, _ in list_members(tables)}
    assert count_reasons(tables).total() >= 2


@each_row("case, statements, expected")
def test_statements_make_values_and_members(
    case: str, statements: Sequence[Statement], expected: dict[str, Any]
) -> None:
    tables = run_induce(statements)
    made = {"values": list_values(tables), "members": list_members(tables)}
    assert all(made[name] == {*expected[name]} for name in made.keys() & expected.keys()), case
    assert count_reasons(tables) == expected.get("reasons", {})


def make_place(document: str, confidence: float, text: str) -> Place:
    span = Span(0, 3)
    return Place(document, "c", 0, len(text), text, span, span, confidence, "rules", document)


def test_sentences_that_agree_make_a_value_surer_and_copies_do_not() -> None:
    agreeing = [make_place(str(n), 0.6, f"In words {n}.") for n in range(3)]
    copied = [make_place(str(n), 0.6, "The same  words.") for n in range(3)]

    assert combine_confidence(agreeing) == pytest.approx(1 - 0.4**3)
    assert combine_confidence(copied) == pytest.approx(0.6)
    assert combine_confidence(agreeing) > 0.7 > combine_confidence(copied)


def test_of_two_places_in_one_sentence_the_first_is_the_narrower() -> None:
    narrow: Statement = ("Ada Byron", "PERSON", "was born in", "Lima", "GPE")
    wide: Statement = ("Ada Byron", "PERSON", "was born in the state of", "Peru", "GPE")
    schema = parse_schema(
        TURTLE.replace('"was born in"@en ; rdfs:domain :Person ; rdfs:range :Place',
                       '"was born in"@en, "was born in the state of"@en ;'
                       ' rdfs:domain :Person ; rdfs:range :Place'),
        source="a test",
    )  # fmt: skip
    for order in ([narrow, wide], [wide, narrow]):
        assert list_values(run_induce(order, schema)) == {("Ada Byron", "birthPlace", "Lima")}


def test_a_name_and_a_sentence_say_the_class_of_an_individual() -> None:
    tables = run_induce(
        [
            ("University of Lark", "PERSON", "opposes", "Solberg", "GPE"),
            ("Solberg", "PERSON", "is a", "small city in Norway", "NOUN"),
            ("Several cities", "NOUN", "oppose", "Hedda Moss", "PERSON"),
        ]
    )

    members = list_members(tables)
    assert ("University of Lark", "University") in members
    assert ("University of Lark", "Person") not in members
    assert ("Solberg", "City") in members
    assert not [name for name, _ in members if name == "Several cities"]


def test_that_something_is_a_thing_does_not_make_it_a_person() -> None:
    tables = run_induce(
        [("Families and Health", "NOUN", "is a", "quarterly journal", "NOUN")], general_schema(), ""
    )
    assert list_members(tables) == {("Families and Health", "Work")}
    assert not list_values(tables) and not count_reasons(tables)


def test_every_instance_shows_the_sentence_that_names_its_ends() -> None:
    tables = run_induce([ADA, ("Bela Kiss", "PERSON", "was born in", "1902", "DATE")])
    text = {r["chunk_id"]: r["text"] for r in tables["chunks"].to_pylist()}
    name = {r["entity_id"]: r["name"] for r in tables["entities"].to_pylist()}

    rows = tables["instances"].to_pylist()
    assert len(rows) == 5
    for row in rows:
        words = text[row["chunk_id"]]
        assert words[row["start"] : row["end"]] == words
        span = row["subject_span"]
        assert words[span["start"] : span["end"]] == name[row["subject_id"]]
        assert row["places"][0] == {k: row[k] for k in ("chunk_id", "start", "end")}


def test_a_warning_of_a_shape_refuses_nothing() -> None:
    shapes = SHAPES.replace('sh:message "years', 'sh:severity sh:Warning ; sh:message "years')
    tables = run_induce([("Ada Byron", "PERSON", "was born in", "1215", "DATE")], shapes=shapes)
    assert list_values(tables) == {("Ada Byron", "birthYear", "1215")}


def test_equal_statements_are_one_instance_with_all_their_places() -> None:
    tables = run_induce([ADA, ADA, ADA])
    (row,) = [r for r in tables["instances"].to_pylist() if r["property_iri"]]
    assert len({place["chunk_id"] for place in row["places"]}) == 3
    assert row["confidence"] == pytest.approx(0.95)  # one sentence, copied


def test_the_order_of_statements_changes_nothing() -> None:
    statements = [statement for _, group, _ in REFUSED for statement in group]
    forward, backward = run_induce(statements), run_induce(statements[::-1])
    mine, theirs = (
        [Counter((row["reason"], row["detail"]) for row in tables["rejects"].to_pylist())
         for tables in (forward, backward)]
    )  # fmt: skip
    assert mine and mine == theirs
    mine, theirs = (
        [Counter((row["instance_id"], row["confidence"]) for row in tables["instances"].to_pylist())
         for tables in (forward, backward)]
    )  # fmt: skip
    assert mine == theirs
    assert list_values(forward) == list_values(backward)


@pytest.mark.parametrize("count", ["About 9,000 people", "23,400 people", "Several students"])
def test_how_many_there_are_is_no_individual_whatever_its_type(count: str) -> None:
    tables = run_induce([(count, "PERSON", "was born in", "Oslo", "GPE")])
    assert count not in {name for name, _ in list_members(tables)}
    assert set(count_reasons(tables)) == {"bad_name"}


@pytest.mark.parametrize(
    "name", ["100 Mile House", "6 mercaptopurine", "Ten Years After", "3 Doors"]
)
def test_a_name_may_begin_with_a_number(name: str) -> None:
    assert not is_count(name)


@each_row("name, kind")
def test_the_head_of_a_noun_phrase_names_its_class(name: str, kind: str | None) -> None:
    found = Kinds(small_schema()).find(name)
    assert (found and found.removeprefix(BASE)) == kind


def test_a_shape_whose_pattern_is_none_is_refused_by_name() -> None:
    from kpyramid.errors import InputError

    with pytest.raises(InputError, match=r"small\.shapes\.ttl: sh:pattern '\('.*correct"):
        read_constraints(
            SHAPES.replace('"^(1[5-9]|20)"', '"("'), source=str(Path("small.shapes.ttl"))
        )


def test_kinds_are_found_above_a_lattice_in_which_paths_double() -> None:
    rows = [(f"{BASE}a{n}", f"{BASE}b{n}") for n in range(41)]
    classes = [
        OntologyClass(iri, "zq", parents=above) for row, above in pairwise(rows) for iri in row
    ]
    classes += [
        OntologyClass(iri, "zq", entity_types=(t,)) for iri, t in zip(rows[-1], "XY", strict=True)
    ]
    schema = Schema(BASE, tuple(classes), ())
    assert find_kinds(rows[0][0], schema) == {"X", "Y"}
