"""A common noun is one thing of its document, or a kind that all documents share."""

from kpyramid.documents.words import normalise_relation
from kpyramid.graph.nouns import (
    Phrase,
    is_of_document,
    is_present,
    names_kind,
    resolve_nouns,
    states_rule,
)
from tests.rows import each_row

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
    return [*resolve_nouns(phrases, {("casino", "one"), ("rugby", "one")})]


@each_row("text, relation, side")
def test_what_a_text_speaks_of_is_its_own(text: str, relation: str, side: str) -> None:
    one, other = resolve(("one", text, relation, side), ("two", text, relation, side))

    assert one is not None and other is not None and one != other
    assert is_of_document(one)


@each_row("text, relation, side")
def test_a_kind_is_one_thing_in_all_texts(text: str, relation: str, side: str) -> None:
    one, other = resolve(("one", text, relation, side), ("two", text, relation, side))

    assert one is not None and one == other
    assert not is_of_document(one)


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


@each_row("text")
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


@each_row("text, relation, side")
def test_a_phrase_that_points_into_its_text_is_no_kind(text: str, relation: str, side: str) -> None:
    one, other = resolve(("one", text, relation, side), ("two", text, relation, side))

    assert one is not None and is_of_document(one) and one != other
