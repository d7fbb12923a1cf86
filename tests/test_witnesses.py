"""Two witnesses make a class: tag, form, words, deeds; values are possible."""

from dataclasses import replace

import pytest

from kpyramid.documents.sentences import Span
from kpyramid.keys import content_id
from kpyramid.ontology.population.checking import (
    Candidate,
    Kinds,
    Misfit,
    Named,
    Place,
    check_name,
    check_value,
    is_hedged,
    says_kind,
)
from kpyramid.ontology.population.witnesses import Evidence, Use, Witnesses, WordForms
from kpyramid.ontology.schema import parse_schema
from kpyramid.pipeline.stages.texts import part_unsure
from kpyramid.storage.declarations import locate_ontology
from tests.planted import Statement, general_schema
from tests.test_induce import list_members, run_induce

GENERAL = general_schema()
TEXT = """
Some birds eat flour and laughter helps. The giant theory of a compound is common, and the net
interest grows. A federal trustee keeps a form, a schedule and a deposit certificate. Nobody likes
healthcare, origami or euros; dinosaurs died. At last the intelligence of nobles was artificial.
"""
WITNESSES = Witnesses(GENERAL, WordForms([TEXT]))


def count(
    name: str, tag: str, before: str = "", after: str = "", **said: set[str]
) -> dict[str, int]:
    evidence = Evidence(name, [Use(tag, before, after)], **said)  # type: ignore[arg-type]
    return {iri.rpartition("#")[2]: n for iri, n in WITNESSES.count(evidence).items()}


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("Birds", "PERSON"),
        ("Flour", "PERSON"),
        ("Dinosaurs", "PERSON"),
        ("Laughter", "PERSON"),
        ("Euros", "PERSON"),
        ("Snapchat", "PERSON"),
        ("10-K", "PERSON"),
        ("ICQ", "PERSON"),
        ("Federal", "ORG"),
        ("Form 1040", "ORG"),
        ("3500 BC", "ORG"),
        ("Compound Interest", "ORG"),
        ("Artificial Intelligence", "ORG"),
        ("Certificate of Deposit", "ORG"),
        ("DST", "ORG"),
        ("Overwatch", "ORG"),
        ("Origami", "GPE"),
        ("Peru and Chile", "GPE"),
        ("Apollo 11", "LAW"),
    ],
)
def test_a_tag_alone_makes_no_class(name: str, tag: str) -> None:
    assert count(name, tag) == {}


@pytest.mark.parametrize(
    ("name", "tag", "wanted"),
    [
        ("Abel Gance", "PERSON", "Person"),
        ("Ludwig Mies van der Rohe", "PERSON", "Person"),
        ("Dr. Gordon", "PERSON", "Person"),
        ("Gülhane Military Academy", "ORG", "Organisation"),
        ("University of Oxford", "ORG", "Organisation"),
        ("Troutman Holdings Ltd.", "NOUN", "Organisation"),
        ("Windlesham", "GPE", "PopulatedPlace"),
        ("Soviet Union", "GPE", "PopulatedPlace"),
        ("City of Negaunee", "ORG", "PopulatedPlace"),
        ("Illinois River", "ORG", "Place"),
        ("Bourget Airport", "NOUN", "Facility"),
        ("1912 Summer Olympics", "EVENT", "Event"),
        ("English Education Act", "LAW", "Work"),
        ("Atlanteans", "NORP", "Group"),
    ],
)
def test_the_form_of_a_name_is_a_witness(name: str, tag: str, wanted: str) -> None:
    assert set(count(name, tag)) == {wanted}


@pytest.mark.parametrize(
    ("name", "tag", "before", "after", "wanted"),
    [
        ("Plato", "PERSON", "by the philosopher ", " in", "Person"),
        ("Mokoena", "PERSON", "", " (born 6 March 1985 in Heidelberg)", "Person"),
        ("Gordon", "PERSON", "as exemplified by Dr. ", "", "Person"),
        ("Troutman Sanders", "ORG", "a partner of the law firm ", "", "Organisation"),
        ("NASA", "ORG", "", " (National Space Administration)", "Organisation"),
        ("EFTA", "ORG", "the European Trade Association (", ")", "Organisation"),
        ("Fortnite", "ORG", "the success of games like ", "", "Work"),
        ("Timaeus", "WORK_OF_ART", 'his dialogue "', '" and', "Work"),
    ],
)
def test_words_beside_a_name_are_a_witness(
    name: str, tag: str, before: str, after: str, wanted: str
) -> None:
    assert set(count(name, tag, before, after)) == {wanted}


def test_deeds_and_properties_are_witnesses() -> None:
    assert count("AOL", "ORG") == {}
    assert set(count("AOL", "ORG", deeds={"acquire"})) == {"Organisation"}
    born = frozenset({GENERAL.property_by_iri[f"{GENERAL.base}birthPlace"].domain})
    assert set(count("Mika", "PERSON", ends=[born])) == {"Person"}


def test_what_a_sentence_says_outright_counts_for_two_and_beats_one_tag() -> None:
    assert count("SpaceX", "PERSON", stated={"company"}) == {"Organisation": 2}
    assert count("Corbusier", "ORG", stated={"architect"}) == {"Person": 2}


def test_what_a_country_and_a_person_can_be_called_tells_neither() -> None:
    assert set(count("Greece", "GPE", stated={"member"})) == {"PopulatedPlace"}


def test_a_name_after_an_article_is_no_person() -> None:
    assert count("Aztecs", "PERSON", "built by the ", deeds={"build"}) == {}


def test_what_stands_after_an_indefinite_article_is_a_common_noun() -> None:
    assert count("NASA", "ORG", "", " (National Space Administration)")
    assert count("NASA", "ORG", "for a ", " (National Space Administration)") == {}
    assert count("NASA", "ORG", "a ", " loan", deeds={"sell"}), "a loan of NASA's"


def test_an_abbreviation_in_a_list_is_no_place() -> None:
    assert count("PV", "GPE", "a rate, NPER, ", ", FV") == {}
    assert set(count("UK", "GPE", "from London, ", ".")) == {"PopulatedPlace"}


def test_more_witnesses_are_surer() -> None:
    few, more = count("Abel Gance", "PERSON"), count("Abel Gance", "PERSON", stated={"architect"})
    assert few == {"Person": 2} and more == {"Person": 4}


# Values.


def state(text: str, subject: str = "", value: str = "") -> Place:
    def find(words: str) -> Span | None:
        at = text.index(words)
        return Span(at, at + len(words)) if words else None

    return Place("d", "c", 0, len(text), text, find(subject), find(value), 0.8, "rules", "triple-1")


@pytest.mark.parametrize(
    ("text", "value", "fits"),
    [
        ("Acme was founded in 1990.", "1990", True),
        ("Acme was founded in May 1990.", "1990", True),
        ("In 1990 Acme was founded.", "1990", True),
        ("Acme was founded on Form 1040.", "1040", False),
        ("Acme was founded with $1990.", "1990", False),
        ("Acme was founded in 3055.", "3055", False),
    ],
)
def test_a_year_is_no_number_of_another_thing(text: str, value: str, fits: bool) -> None:
    prop = GENERAL.property_by_iri[f"{GENERAL.base}foundingYear"]
    acme = Named(content_id("entity", "acme"), "Acme", "ORG")
    checked = check_value(prop, acme, value, state(text, "Acme", value), GENERAL, Kinds(GENERAL))
    assert isinstance(checked, Candidate) is fits


def test_a_share_is_no_count() -> None:
    prop = GENERAL.property_by_iri[f"{GENERAL.base}population"]
    lima = Named(content_id("entity", "lima"), "Lima", "GPE")
    for text, fits in (("Lima has a population of 20%.", False), ("Lima has 20 people.", True)):
        checked = check_value(prop, lima, "20", state(text, "Lima", "20"), GENERAL, Kinds(GENERAL))
        assert isinstance(checked, Candidate) is fits


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ("German politician", True),
        ("former tax attorney", True),
        ("youngest son of the town's first postmaster", False),
        ("1952 graduate of the college", False),
        ("first astronaut", False),
        ("previous goal-scorer", False),
        ("good strategy", False),
        ("institutions", False),
    ],
)
def test_a_calling_is_a_kind_of_person(value: str, fits: bool) -> None:
    person = GENERAL.class_for_type("PERSON")
    assert person is not None
    assert says_kind(value, GENERAL.class_by_iri[person]) is fits


@pytest.mark.parametrize(
    ("text", "hedged"),
    [
        ("The aim was to assess whether Aspirin prevents stroke.", True),
        ("These data support the hypothesis that Aspirin prevents stroke.", True),
        ("Does Aspirin prevent stroke?", True),
        ("Aspirin prevents stroke, and we went on to test it.", False),
    ],
)
def test_questions_and_aims_state_nothing(text: str, hedged: bool) -> None:
    assert is_hedged(state(text, "Aspirin", "stroke")) is hedged


@pytest.mark.parametrize(
    "name",
    [
        "one patient",
        "Sixty-four patients",
        "Most patients",
        "patients in the study",
        "severe condition",
        "group of patients",
        "eight of the patients",
    ],
)
def test_what_only_its_text_can_place_is_no_individual(name: str) -> None:
    files = locate_ontology("medical")
    assert files is not None
    schema = parse_schema(files.turtle.read_text("utf-8"), source="medical.ttl")
    found = check_name(Named("e", name, "NOUN", is_common=True), Kinds(schema))
    assert isinstance(found, Misfit)
    assert not Kinds(schema).find_by_name("number of patients with asthma", "NOUN")
    for whole in (
        "patients with asthma",
        "a number of patients with asthma",
        "eight of 160 patients with asthma",
    ):
        kinds = Kinds(schema)
        assert check_name(Named("e", whole, "NOUN"), kinds) is None
        (found_class,) = kinds.find_by_name(whole, "NOUN")
        assert found_class.endswith("#Population")


def test_a_noun_that_says_what_the_subject_is_needs_no_other_witness() -> None:
    prop = GENERAL.property_by_iri[f"{GENERAL.base}capitalOf"]
    place = state("Ombra is the capital of Titania.", "Ombra", "Titania")
    ends = Named("a", "Ombra", "NOUN"), Named("b", "Titania", "NOUN")
    for outright in (False, True):
        found = check_value(prop, *ends, place, GENERAL, Kinds(GENERAL), outright=outright)
        assert isinstance(found, Candidate) is outright


def test_two_guesses_make_no_fact() -> None:
    """Neither end is anything but what the property says of it."""
    prop = GENERAL.property_by_iri[f"{GENERAL.base}memberOf"]
    kinds = Kinds(GENERAL)
    place = state("Oberon joined Titania.", "Oberon", "Titania")
    ends = Named("a", "Oberon", "NOUN"), Named("b", "Titania", "NOUN")
    assert isinstance(check_value(prop, *ends, place, GENERAL, kinds), Misfit)
    typed = Named("a", "Oberon", "PERSON"), Named("b", "Titania", "NOUN")
    assert isinstance(check_value(prop, *typed, place, GENERAL, kinds), Candidate)


def test_a_read_value_is_as_sure_as_asked_or_stated_by_a_fact_or_twice() -> None:
    prop = GENERAL.property_by_iri[f"{GENERAL.base}memberOf"]

    def find(value: str, confidence: float, text: str) -> Candidate:
        place = replace(state(text, "Oberon", "Titania"), confidence=confidence)
        return Candidate(prop, prop.domain, "oberon", value, prop.range, None, place)

    sure, unsure = find("a", 0.8, "Oberon joined Titania."), find("b", 0.6, "Oberon met Titania.")
    twice = [find("c", 0.6, f"Oberon {verb} Titania.") for verb in ("met", "left")]
    kept, rejects = part_unsure([sure, unsure, *twice], [], 0.75)
    assert kept == [sure, *twice]
    (reject,) = rejects
    assert reject["reason"] == "low_confidence" and "0.60 sure" in str(reject["detail"])
    assert part_unsure([unsure], [unsure], 0.75) == ([unsure], [])


def test_a_firm_called_a_group_is_no_people() -> None:
    told: list[Statement] = [("Pattison Group", "ORG", "acquired", "Bergen Ltd", "ORG")]
    members = list_members(run_induce(told, GENERAL, ""))
    assert ("Pattison Group", "Organisation") in members
    assert ("Pattison Group", "Group") not in members
