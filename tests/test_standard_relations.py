"""Standard relations: one name for all wordings of a relation, the ontology's where it has one."""

from collections.abc import Sequence
from itertools import combinations

import pytest

from kpyramid.graph.synonyms.comparison import Comparer
from kpyramid.graph.synonyms.lexicon import find_kind
from kpyramid.ontology.schema import parse_schema
from tests.planted import MemoEmbedder, Statement, condense_statements

ADA, BELA = ("Ada Byron", "PERSON"), ("Bela Kiss", "PERSON")
LIND_FILM = ("Storm", "WORK_OF_ART")
LIND, ORME = ("Lind Institute", "ORG"), ("Orme College", "ORG")
PUBLISHED = (
    "has published research in",
    "has published research articles on",
    "has published a paper in",
    "has work published in",
)


def say(head: tuple[str, str], wording: str, tail: tuple[str, str]) -> Statement:
    return (*head, wording, *tail)


def name_relations(statements: Sequence[Statement]) -> dict[tuple[str, str], tuple[str, bool]]:
    """The standard relation of each condensed fact by its head and wording."""
    made = condense_statements(statements)
    name = {r["relation_id"]: r["name"] for r in made.tables["relations"].to_pylist()}
    entity = {r["entity_id"]: r["name"] for r in made.tables["entities"].to_pylist()}
    return {
        (entity[row["head_id"]], name[row["relation_id"]]): (
            row["standard_relation"],
            row["standard_turned"],
        )
        for row in made.rows
    }


def test_the_papers_two_wordings_of_working_somewhere_are_one_fact() -> None:
    found = name_relations([say(ADA, "works in", LIND), say(ADA, "is with", LIND)])
    assert list(found.values()) == [("employer", False)]


def test_the_papers_two_wordings_are_one_relation_whatever_their_ends() -> None:
    found = name_relations([say(ADA, "works in", LIND), say(BELA, "is with", ORME)])
    assert set(found.values()) == {("employer", False)}
    assert len(found) == 2


@pytest.mark.parametrize(("one", "other"), list(combinations(PUBLISHED, 2)))
def test_the_papers_four_wordings_of_publishing_say_the_same(one: str, other: str) -> None:
    verdict = Comparer(MemoEmbedder()).compare(one, other, ("PERSON", "NOUN"))
    assert (verdict.likeness, verdict.turned) == ("equivalent", False)


def test_the_kind_of_the_tail_tells_an_employer_from_a_field() -> None:
    field = ("number theory", "NOUN")
    found = name_relations([say(ADA, "works in", LIND), say(BELA, "works in", field)])
    assert found["Ada Byron", "works in"] == ("employer", False)
    assert found["Bela Kiss", "works in"] == ("works in", False)


@pytest.mark.parametrize(
    ("tail", "same", "other"),
    [
        ("ORG", "works for", "works on"),
        ("FIELD", "works on", "works for"),
        ("NOUN", "works on", "works for"),
    ],
)
def test_works_in_an_organisation_is_works_for_and_works_in_a_field_works_on(
    tail: str, same: str, other: str
) -> None:
    comparer, ends = Comparer(MemoEmbedder()), ("PERSON", tail)
    for one, two in (("works in", same), (same, "works in")):
        assert comparer.compare(one, two, ends).likeness == "equivalent"
    for one, two in (("works in", other), (other, "works in")):
        assert comparer.compare(one, two, ends).likeness == "different"
    assert comparer.read(same, ends).meaning == comparer.read("works in", ends).meaning


def test_a_place_that_a_thing_has_does_not_lie_in_it() -> None:
    plant, town = ("Carrow Warehouse", "FAC"), ("Carrow", "GPE")
    found = name_relations([say(plant, "has town", town)])
    assert found["Carrow Warehouse", "has town"] == ("has town", False)


def test_a_date_and_a_place_of_birth_are_two_relations_in_one_wording() -> None:
    place, year = ("Ghent", "GPE"), ("1815", "LITERAL")
    found = name_relations([say(ADA, "was born in", place), say(BELA, "was born in", year)])
    assert {name for name, _ in found.values()} == {"birth place", "birth year"}


def test_what_reads_from_the_other_end_has_the_same_name_and_says_so() -> None:
    found = name_relations([say(ADA, "founded", LIND), say(ORME, "was founded by", BELA)])
    (active, passive) = found["Ada Byron", "founded"], found["Orme College", "was founded by"]
    assert active[0] == passive[0]
    assert active[1] != passive[1]


def test_without_a_property_the_commonest_wording_stands_for_all() -> None:
    rivals = [(f"Rival {n}", "PERSON") for n in range(3)]
    said = [say(ADA, "defeated", rival) for rival in rivals[:2]]
    found = name_relations([*said, say(rivals[2], "was beaten by", BELA)])
    assert found["Ada Byron", "defeated"] == ("defeated", False)
    assert found["Rival 2", "was beaten by"] == ("defeated", True)


def test_a_possibility_is_not_called_as_the_fact() -> None:
    place = ("Ghent", "GPE")
    found = name_relations(
        [say(ADA, "was born in", place), say(BELA, "may have been born in", place)]
    )
    assert len(set(found.values())) == 2


def test_having_something_is_not_receiving_it() -> None:
    comparer = Comparer(MemoEmbedder())
    for ends in (("", ""), ("PERSON", "NOUN"), ("PERSON", "ORG")):
        assert comparer.compare("has", "received", ends).likeness == "different"


@pytest.mark.parametrize(
    ("head", "wording", "tail", "name", "turned"),
    [
        (ADA, "was daughter of", BELA, "parent", False),
        (ADA, "has wife", BELA, "spouse", False),
        (LIND, "is owned by", ORME, "owner", False),
        (("Blue Harbour", "WORK_OF_ART"), "’s directed by", ADA, "director", False),
        (("Ghent", "GPE"), "has inhabitants", ("260,000", "LITERAL"), "population", False),
        (ADA, "was born on", ("10 December 1815", "LITERAL"), "birth date", False),
    ],
)
def test_what_says_a_property_in_other_words_or_more_of_it_has_its_name(
    head: tuple[str, str], wording: str, tail: tuple[str, str], name: str, turned: bool
) -> None:
    assert list(name_relations([say(head, wording, tail)]).values()) == [(name, turned)]


@pytest.mark.parametrize("wording", ["crosses", "lies on", "flows into"])
def test_a_way_to_be_near_water_is_called_as_it_is(wording: str) -> None:
    found = name_relations([say(("Old Bridge", "FAC"), wording, ("Leie", "LOC"))])
    assert list(found.values()) == [(wording, False)]


def test_a_composer_is_no_member_and_a_number_of_members_neither() -> None:
    work, many = ("Blue Harbour", "WORK_OF_ART"), ("5000 members", "NOUN")
    found = name_relations([say(work, "was composed by", ADA), say(LIND, "has members", many)])
    assert {name for name, _ in found.values()} == {"was composed by", "has members"}


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


def test_bare_light_verb_has_no_standard_name_without_a_known_kind() -> None:
    found = name_relations([say(ADA, "made", ("debut", "NOUN")), say(LIND, "produced", LIND_FILM)])
    assert found["Ada Byron", "made"][0] == "made"


STAFF = """
@prefix : <http://x.example/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix kp: <https://w3id.org/kpyramid/core#> .
<http://x.example> a owl:Ontology .
:Person a owl:Class ; rdfs:label "person"@en ; kp:entityType "PERSON" .
:Department a owl:Class ; rdfs:label "department"@en ; kp:entityType "ORG" .
:member a owl:DatatypeProperty ; rdfs:label "is member of"@en ; rdfs:domain :Person ;
    rdfs:range xsd:string .
:part a owl:DatatypeProperty ; rdfs:label "is part of"@en ; rdfs:domain :Department ;
    rdfs:range xsd:string .
:staff a owl:DatatypeProperty ; rdfs:label "has staff member"@en ; rdfs:domain :Department ;
    rdfs:range xsd:string .
:published a owl:DatatypeProperty ; rdfs:label "has published in"@en ; rdfs:domain :Person ;
    rdfs:range xsd:string .
:award a owl:DatatypeProperty ; rdfs:label "has award"@en ; rdfs:domain :Person ;
    rdfs:range xsd:string .
"""
OPTICS, JOURNAL = ("Department of Optics", "NOUN"), ("Lark Journal of Optics", "ORG")


@pytest.mark.parametrize(
    ("head", "wording", "tail", "name"),
    [
        (ADA, "is a member of", OPTICS, "is member of"),
        (ADA, "is a staff member in", OPTICS, "is member of"),
        (ADA, "is a board member of", LIND, "is member of"),
        (ADA, "has published research articles in", JOURNAL, "has published in"),
        (ADA, "published extensively in", JOURNAL, "has published in"),
        (OPTICS, "is part of", LIND, "is part of"),
        (OPTICS, "employs", ADA, "has staff member"),
        # Another domain, a denial, what is over or possible, a bare verb: none of them.
        (ADA, "works for", OPTICS, "works for"),
        (ADA, "was a member of", OPTICS, "was a member of"),
        (ADA, "is no longer a member of", OPTICS, "is no longer a member of"),
        (ADA, "is not a member of", OPTICS, "is not a member of"),
        (ADA, "may be a member of", OPTICS, "may be a member of"),
        (ADA, "is an expelled member of", OPTICS, "is an expelled member of"),
        (ADA, "received", ("PhD in Optics", "NOUN"), "received"),
        (OPTICS, "has published papers in", JOURNAL, "has published papers in"),
    ],
)
def test_a_property_with_a_string_as_range_names_what_states_it_of_its_domain(
    head: tuple[str, str], wording: str, tail: tuple[str, str], name: str
) -> None:
    made = condense_statements(
        [say(head, wording, tail)], schema=parse_schema(STAFF, source="a test")
    )
    (row,) = made.rows
    assert (row["standard_relation"], row["standard_turned"]) == (name, False)


POSTS = """
@prefix : <http://example.org/posts#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix kp: <https://w3id.org/kpyramid/core#> .
<http://example.org/posts> a owl:Ontology .
:Person a owl:Class ; rdfs:label "person"@en ; kp:entityType "PERSON" .
:now a owl:DatatypeProperty ; rdfs:label "current department"@en ;
    rdfs:domain :Person ; rdfs:range xsd:string .
:before a owl:DatatypeProperty ; rdfs:label "past affiliation"@en ;
    rdfs:domain :Person ; rdfs:range xsd:string .
"""


@pytest.mark.parametrize(
    ("wording", "noun", "name"),
    [
        ("is attached to", "Department of {}", "current department"),
        ("is based in", "Department of {}", "current department"),
        ("was a lecturer in", "Department of {}", "past affiliation"),
        ("previously worked at", "University of {}", "past affiliation"),
        # Denied, possible, or of other objects.
        ("is not attached to", "Department of {}", "is not attached to"),
        ("may be attached to", "Department of {}", "may be attached to"),
        ("is attached to", "{} Bridge", "is attached to"),
    ],
)
def test_objects_vouch_for_a_property_that_a_wording_is_near(
    wording: str, noun: str, name: str
) -> None:
    towns = "Lund Ghent Orme Brask".split()
    said = [say((f"Ada {town}", "PERSON"), wording, (noun.format(town), "ORG")) for town in towns]
    made = condense_statements(said, schema=parse_schema(POSTS, source="a test"))
    assert {row["standard_relation"] for row in made.rows} == {name}
