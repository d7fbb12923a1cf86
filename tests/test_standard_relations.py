"""Standard relations: one name for all wordings of a relation, the ontology's where it has one."""

from collections.abc import Sequence

import pytest

from kpyramid.graph.synonyms.comparison import Comparer, is_past_state
from kpyramid.graph.synonyms.lexicon import find_kind
from kpyramid.ontology.schema import Schema
from tests.planted import MemoEmbedder, Statement, condense_statements, general_schema
from tests.rows import each_row, read_ontology

ADA, BELA = ("Ada Byron", "PERSON"), ("Bela Kiss", "PERSON")
LIND, ORME = ("Lind Institute", "ORG"), ("Orme College", "ORG")


def say(head: tuple[str, str], wording: str, tail: tuple[str, str]) -> Statement:
    return (*head, wording, *tail)


def name_relations(
    statements: Sequence[Statement], schema: Schema | None = None
) -> set[tuple[str, str, str, bool]]:
    """Head, wording and standard relation of each condensed fact, and whether it is turned."""
    made = condense_statements(statements, schema=schema)
    name = {r["relation_id"]: r["name"] for r in made.tables["relations"].to_pylist()}
    entity = {r["entity_id"]: r["name"] for r in made.tables["entities"].to_pylist()}
    return {
        (
            *(entity[row["head_id"]], name[row["relation_id"]]),
            *(row["standard_relation"], row["standard_turned"]),
        )
        for row in made.rows
    }


@each_row("case, said, facts")
def test_wordings_of_one_relation_have_one_name(
    case: str, said: tuple[Statement, ...], facts: tuple[tuple[str, str, str, bool], ...]
) -> None:
    assert name_relations(said) == {*facts}, case


@each_row("one, other, ends, likeness")
def test_two_wordings_between_such_ends_are_as_alike_as_this(
    one: str, other: str, ends: tuple[str, str], likeness: str
) -> None:
    """Works in an organisation is works for, in a field works on; the first 6 are the paper's."""
    verdict = Comparer(MemoEmbedder()).compare(one, other, ends)
    assert (verdict.likeness, verdict.turned) == (likeness, False)


@each_row("tail, same")
def test_wordings_of_one_standard_meaning_are_read_as_it(tail: str, same: str) -> None:
    comparer, ends = Comparer(MemoEmbedder()), ("PERSON", tail)
    assert comparer.read(same, ends).meaning == comparer.read("works in", ends).meaning


def test_the_kind_of_a_noun_tells_a_genre_from_an_instrument() -> None:
    said = [say(ADA, "plays", (noun, "NOUN")) for noun in ("reggae", "violin")]
    assert find_kind("Blues music", "ORG") == "GENRE"
    comparer = Comparer(MemoEmbedder())
    ends = [("PERSON", find_kind(tail, kind)) for *_, tail, kind in said]
    assert ends == [("PERSON", "GENRE"), ("PERSON", "INSTRUMENT")]
    assert len({comparer.read("plays", end).meaning for end in ends}) == 2


def test_what_is_named_by_a_noun_is_one_fact_with_its_relation() -> None:
    noun = ("manager of Lind Institute", "NOUN")
    made = condense_statements(
        [say(ADA, "is the", noun), say(ADA, "is manager of", LIND), say(BELA, "is the", noun)]
    )
    entity = {r["entity_id"]: r["name"] for r in made.tables["entities"].to_pylist()}
    found = {
        (entity[r["head_id"]], entity[r["tail_id"]]): (
            *(entity[r[f"standard_{end}_id"]] for end in ("head", "tail")),
            len(r["derived_from"]),
        )
        for r in made.rows
    }
    assert found == {
        ("Ada Byron", "Lind Institute"): ("Ada Byron", "Lind Institute", 2),
        ("Bela Kiss", "manager of Lind Institute"): ("Bela Kiss", "Lind Institute", 1),
    }


def test_what_something_has_is_told_of_it_but_not_its_kind() -> None:
    manager = ("Lind Institute's manager", "NOUN")
    said = [say(manager, "is", ADA), say(LIND, "has manager", ADA)]
    assert len(condense_statements(said).rows) == 1
    kind = [say(manager, "is a", ("person", "NOUN")), say(LIND, "has", ("manager", "NOUN"))]
    assert len(condense_statements(kind).rows) == 2
    march = ("frontier march of Lind Institute", "NOUN")
    kind = [say(ORME, "is a", march), say(ORME, "was frontier march of", LIND)]
    assert len(condense_statements(kind).rows) == 2


@each_row("head, head_kind, wording, tail, tail_kind, name")
def test_a_property_with_a_string_as_range_names_what_states_it_of_its_domain(
    head: str, head_kind: str, wording: str, tail: str, tail_kind: str, name: str
) -> None:
    """Another domain, a denial, what is over or possible, a bare verb: none of them."""
    said = [(head, head_kind, wording, tail, tail_kind)]
    ((*_, standard, turned),) = name_relations(said, read_ontology("staff"))
    assert (standard, turned) == (name, False)


@each_row("wording, noun, name")
def test_objects_vouch_for_a_property_that_a_wording_is_near(
    wording: str, noun: str, name: str
) -> None:
    """But not where it is denied, possible, or of other objects."""
    towns = "Lund Ghent Orme Brask".split()
    said = [say((f"Ada {town}", "PERSON"), wording, (noun.format(town), "ORG")) for town in towns]
    assert {named for _, _, named, _ in name_relations(said, read_ontology("posts"))} == {name}


def test_a_kind_is_an_occupation_only_where_it_can_be_a_persons() -> None:
    kinds = [("Cleo", "soprano"), ("Emil", "clerk"), ("Attic Greek", "blend of dialects")]
    kinds.append(("tattoos", "clerk"))  # a tagger's person that is written as a common noun
    said = [say((name, "PERSON"), "is a", (kind, "NOUN")) for name, kind in kinds]

    named = {(head, name) for head, _, name, _ in name_relations(said, general_schema())}

    others = {("Attic Greek", "is a"), ("tattoos", "is a")}
    assert named == {("Cleo", "occupation"), ("Emil", "occupation")} | others


def test_what_a_table_calls_a_type_is_the_kind_and_not_its_example() -> None:
    said = [
        say(("Pump 1", "NOUN"), "has type", ("gear pump", "NOUN")),
        say(("Pump 2", "NOUN"), "has type", ("screw pump", "NOUN")),
        say(("Cleo", "PERSON"), "is a", ("clerk", "NOUN")),
    ]
    assert not any(turned for *_, turned in name_relations(said))


def test_to_hold_a_degree_is_not_to_store_it() -> None:
    comparer = Comparer(MemoEmbedder())
    stored = comparer.read("is stored in", ("NOUN", "GPE")).meaning
    assert stored and comparer.read("holds", ("PERSON", "NOUN")).meaning != stored


@pytest.mark.parametrize("wording", ["was recorded for", "is cover by"])
def test_a_wording_near_a_property_needs_its_preposition_and_a_word_of_it(wording: str) -> None:
    said = [say((f"Song {n}", "WORK_OF_ART"), wording, (f"Ada {n}", "PERSON")) for n in "ABCDE"]
    assert {named for *_, named, _ in name_relations(said, general_schema())} == {wording}


def test_an_office_named_by_a_participle_is_a_state_and_no_deed() -> None:
    assert is_past_state("was managing director of")
    assert not is_past_state("was managing money of")


def test_a_passive_wording_takes_no_name_that_reads_from_the_other_end() -> None:
    said = [say((f"Pier {n}", "PERSON"), "is owned by", (f"Orme {n}", "ORG")) for n in "ABCDE"]
    assert ("owns", False) not in {row[2:] for row in name_relations(said, general_schema())}
