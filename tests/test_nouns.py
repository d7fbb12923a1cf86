"""A common noun is one thing of its document, or a kind that all documents share."""

import pytest

from kpyramid.documents.words import normalise_relation
from kpyramid.graph.nouns import (
    Phrase,
    is_of_document,
    is_present,
    names_kind,
    resolve_nouns,
    states_rule,
)

_ELSEWHERE = ("two", "Doctors treat [malaria]", "treat", "tail")


def resolve(*said: tuple[str, str, str, str]) -> list[str | None]:
    """The clusters of the phrases in brackets: (document, sentence, relation, side)."""
    phrases = []
    for document, text, relation, side in said:
        before, _, rest = text.partition("[")
        form = normalise_relation(relation)
        phrases.append(
            Phrase(
                *(rest.partition("]")[0], document, before),
                is_typed=False,
                is_head=side == "head",
                is_kind=side == "tail" and names_kind(form),
                is_general=is_present(form, relation),
                is_rule=side == "head" and states_rule(form),
            )
        )
    return [*resolve_nouns(lambda: phrases, {("casino", "one"), ("rugby", "one")})]


@pytest.mark.parametrize(
    ("text", "relation", "side"),
    [
        ("The [film] grossed", "grossed", "head"),
        ("This is said of the [company]", "is said of", "tail"),
        ("[two trials] failed", "failed", "head"),
        ("Two [trials] failed", "failed", "head"),
        ("[12 trials] fail", "fail", "head"),
        ("They met [three patients]", "met", "tail"),
        ("It lost its [members]", "lost", "tail"),
        ("Acme's [members] vote", "vote", "head"),
        ("[Patients] recovered", "recovered", "head"),
        ("They enrolled [patients]", "enrolled", "tail"),
        ("The [participants] agree", "agree", "head"),
        ("[Most people] agree", "agree", "head"),
        ("They made a [film]", "made", "tail"),
        ("A [comedian] was hit", "was hit", "head"),
        ("The [mortality] amounted to", "amounted to", "head"),
        ("[mortality] fell", "fell", "head"),
    ],
)
def test_what_a_text_speaks_of_is_its_own(text: str, relation: str, side: str) -> None:
    one, other = resolve(("one", text, relation, side), ("two", text, relation, side))

    assert one is not None and other is not None and one != other
    assert is_of_document(one)


@pytest.mark.parametrize(
    ("text", "relation", "side"),
    [
        ("Doctors treat [malaria]", "treat", "tail"),
        ("He died of [malaria]", "died of", "tail"),
        ("[Butterflies] are insects", "are", "head"),
        ("[Butterflies] can migrate", "can migrate to", "head"),
        ("A [sole trader] can deduct", "can deduct", "head"),
        ("Acme is a [company]", "is a", "tail"),
        ("She works as a [teacher]", "works as", "tail"),
        ("Obama has the title [President]", "has title", "tail"),
    ],
)
def test_a_kind_is_one_thing_in_all_texts(text: str, relation: str, side: str) -> None:
    one, other = resolve(("one", text, relation, side), ("two", text, relation, side))

    assert one is not None and one == other
    assert not is_of_document(one)


def test_the_kind_and_the_thing_of_one_document_are_two() -> None:
    kind, thing = resolve(
        ("one", "Vertigo is a [film]", "is a", "tail"), ("one", "The [film] won", "won", "head")
    )

    assert kind != thing


def test_so_many_of_one_document_are_not_as_many_others() -> None:
    groups = resolve(
        ("one", "[two patients] died", "died", "head"),
        ("one", "Five [patients] recovered", "recovered", "head"),
        ("one", "Other [patients] left", "left", "head"),
        ("one", "The [patients] agreed", "agreed", "head"),
    )

    assert len(set(groups)) == 4


def test_case_and_number_fold_alike() -> None:
    kinds = resolve(
        ("one", "[Whales] are mammals", "are", "head"),
        ("two", "Sailors know that [whales] eat", "eat", "head"),
        ("three", "Moby is a [whale]", "is a", "tail"),
    )

    assert len(set(kinds)) == 1


def test_a_mass_noun_used_both_ways_is_one_thing() -> None:
    kinds = resolve(
        _ELSEWHERE,
        ("one", "Quinine cures [malaria]", "cures", "tail"),
        ("one", "It stopped the [malaria]", "stopped", "tail"),
    )

    assert len(set(kinds)) == 1


@pytest.mark.parametrize(
    "text",
    ["[Anna Holm] left", "We met [Red]", "[IBM] left", "[李伟] left", "[Casino] won"],
)
def test_names_are_no_nouns(text: str) -> None:
    small = ("two", "The [casino] won", "won", "head")

    assert resolve(("one", text, "left", "head"), small)[0] is None


def test_a_word_that_only_opens_sentences_is_a_noun_if_another_text_writes_it_small() -> None:
    snow, _ = resolve(
        ("one", "[Snow] fell", "fell", "head"), ("two", "so [snow] fell", "fell", "head")
    )
    name, _ = resolve(
        ("one", "[Snow] fell", "fell", "head"), ("two", "so [Snow] fell", "fell", "head")
    )

    assert snow is not None
    assert name is None


@pytest.mark.parametrize(
    ("text", "relation", "side"),
    [
        ("[Supporters of this movement] include Filipinos", "include", "head"),
        ("[Members of both councils] are old", "are", "head"),
        ("It is a [member of this family]", "is a", "tail"),
    ],
)
def test_a_phrase_that_points_into_its_text_is_no_kind(text: str, relation: str, side: str) -> None:
    one, other = resolve(("one", text, relation, side), ("two", text, relation, side))

    assert one is not None and is_of_document(one) and one != other


def test_a_verb_that_ends_as_an_adverb_does_has_a_tense() -> None:
    assert is_present(normalise_relation("rely"), "rely")
    assert is_present(normalise_relation("often rely on"), "often rely on")
