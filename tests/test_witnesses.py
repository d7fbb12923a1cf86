"""Two witnesses make a class: tag, form, words, deeds; values are possible."""

from dataclasses import replace

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
from kpyramid.pipeline.stages.induce import part_unsure
from kpyramid.pipeline.stages.instances import part_rejects
from kpyramid.pipeline.stages.tables import Row
from kpyramid.storage.declarations import locate_ontology
from tests.planted import general_schema
from tests.rows import each_row, read_text

GENERAL = general_schema()
TEXT = read_text("witnesses.txt")
WITNESSES = Witnesses(GENERAL, WordForms([TEXT]))


def count(name: str, tag: str, before: str = "", after: str = "", **said: object) -> dict[str, int]:
    evidence = Evidence(name, [Use(tag, before, after)], **said)  # type: ignore[arg-type]
    return {iri.rpartition("#")[2]: n for iri, n in WITNESSES.count(evidence).items()}


@each_row("name, tag")
def test_a_tag_alone_makes_no_class(name: str, tag: str) -> None:
    assert count(name, tag) == {}


@each_row("name, tag, wanted")
def test_the_form_of_a_name_is_a_witness(name: str, tag: str, wanted: str) -> None:
    assert set(count(name, tag)) == {wanted}


@each_row("name, tag, before, after, wanted")
def test_words_beside_a_name_are_a_witness(
    name: str, tag: str, before: str, after: str, wanted: str
) -> None:
    assert set(count(name, tag, before, after)) == {wanted}


def test_deeds_and_properties_are_witnesses() -> None:
    assert count("AOL", "ORG") == {}
    assert set(count("AOL", "ORG", deeds={"acquire"})) == {"Organisation"}
    born = frozenset({GENERAL.property_by_iri[f"{GENERAL.base}birthPlace"].domain})
    assert set(count("Mika", "PERSON", ends={("birthPlace",): born})) == {"Person"}


def test_facts_of_two_properties_overrule_a_tag_that_excludes_their_class() -> None:
    person, place = (GENERAL.class_for_type(tag) for tag in ("PERSON", "GPE"))
    assert person and place
    born, died, named = (
        {(iri,): frozenset({end})} for iri, end in zip("abc", [person, person, place], strict=True)
    )
    for ends, tag, wanted in (
        (born | died, "PRODUCT", person),
        (born, "PRODUCT", None),
        (born | died, "PERSON", None),
        (born | died | named, "PRODUCT", None),
    ):
        evidence = Evidence("Yusuf Arden", [Use(tag, "", "")], ends=ends)
        assert WITNESSES.overrule_tag(evidence, ()) == wanted
    evidence = Evidence("Yusuf Arden", [Use("PRODUCT", "", "")], ends=born | died)
    assert WITNESSES.overrule_tag(evidence, {place}) is None, "another witness speaks against it"


def test_what_a_sentence_says_outright_counts_for_two_and_beats_one_tag() -> None:
    assert count("SpaceX", "PERSON", stated={"company"}) == {"Organisation": 2}
    assert count("Corbusier", "ORG", stated={"architect"}) == {"Person": 2}


def test_a_name_after_an_article_is_no_person() -> None:
    assert count("Aztecs", "PERSON", "built by the ", deeds={"build"}) == {}


def test_what_stands_after_an_indefinite_article_is_a_common_noun() -> None:
    assert count("NASA", "ORG", "", " (National Space Administration)")
    assert count("NASA", "ORG", "for a ", " (National Space Administration)") == {}
    assert count("NASA", "ORG", "a ", " loan", deeds={"sell"}), "a loan of NASA's"


# Values.


def state(text: str, subject: str = "", value: str = "") -> Place:
    def find(words: str) -> Span | None:
        at = text.index(words)
        return Span(at, at + len(words)) if words else None

    return Place("d", "c", 0, len(text), text, find(subject), find(value), 0.8, "rules", "triple-1")


@each_row("text, value, fits")
def test_a_year_is_no_number_of_another_thing(text: str, value: str, fits: bool) -> None:
    prop = GENERAL.property_by_iri[f"{GENERAL.base}foundingYear"]
    acme = Named(content_id("entity", "acme"), "Acme", "ORG")
    checked = check_value(prop, acme, value, state(text, "Acme", value), GENERAL, Kinds(GENERAL))
    assert isinstance(checked, Candidate) is fits


@each_row("value, fits")
def test_a_calling_is_a_kind_of_person(value: str, fits: bool) -> None:
    person = GENERAL.class_for_type("PERSON")
    assert person is not None
    assert says_kind(value, GENERAL.class_by_iri[person]) is fits


@each_row("text, hedged")
def test_questions_and_aims_state_nothing(text: str, hedged: bool) -> None:
    assert is_hedged(state(text, "Aspirin", "stroke")) is hedged


@each_row("name")
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
    rejects: list[Row] = []
    kept = part_rejects(part_unsure([sure, unsure, *twice], [], 0.75), rejects)
    assert kept == [sure, *twice]
    (reject,) = rejects
    assert reject["reason"] == "low_confidence" and "0.60 sure" in str(reject["detail"])
    assert [*part_unsure([unsure], [unsure], 0.75)] == [unsure]
