"""Condensation merges what says the same and nothing else, and loses nothing."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from kpyramid.embeddings.port import Matrix
from kpyramid.errors import InputError
from tests.planted import (
    KNOWN,
    MISSING,
    VILLAGES,
    MemoEmbedder,
    Statement,
    WordEmbedder,
    YesSayer,
    condense_statements,
)
from tests.rows import each_row

ADA, LIND = ("Ada Byron", "PERSON"), ("Lind Institute", "ORG")
GHENT, BELGIUM = ("Ghent", "GPE"), ("Belgium", "GPE")
End = tuple[str, str]


def say(head: End, wording: str, tail: End) -> Statement:
    return (*head, wording, *tail)


def test_two_wordings_of_one_property_are_one_fact_in_the_words_of_the_ontology() -> None:
    made = condense_statements([say(ADA, "works for", LIND), say(ADA, "is employed by", LIND)])
    ((fact, merged),) = made.merged.items()
    assert {fact, *merged} == {
        ("Ada Byron", "works for", "Lind Institute"),
        ("Ada Byron", "is employed by", "Lind Institute"),
    }
    assert list(merged.values()) == ["equivalent"]
    assert made.anchors[fact] == "employer"


@each_row("one, other")
def test_wordings_that_differ_in_meaning_stay_apart(one: str, other: str) -> None:
    made = condense_statements([say(ADA, one, GHENT), say(ADA, other, GHENT)])
    assert len(made.rows) == 2


@each_row("case, said, years, expected")
def test_facts_merge_or_contradict_each_other_or_neither(
    case: str, said: Sequence[Statement], years: Sequence[str], expected: dict[str, object]
) -> None:
    dated = zip(said, years, strict=True) if years else ()
    times = {(head, wording, tail): year for (head, _, wording, tail, _), year in dated}
    made = condense_statements(said, times=times)
    found = {
        "facts": len(made.rows),
        "verdicts": tuple(how for merged in made.merged.values() for how in merged.values()),
        "contradictions": tuple(kind for kind, _ in made.contradictions),
    }
    assert {name: found[name] for name in expected} == expected, case


def test_a_fact_that_says_more_absorbs_the_broader_around_an_anchor() -> None:
    made = condense_statements(
        [say(GHENT, "is located in", BELGIUM), say(GHENT, "is city in", BELGIUM)]
    )
    assert made.merged == {
        ("Ghent", "is city in", "Belgium"): {("Ghent", "is located in", "Belgium"): "broader"}
    }


def test_a_fact_absorbs_no_broader_one_of_another_time_and_takes_no_qualifier_of_any() -> None:
    wordings = "is located in", "is city in"
    told = [say(GHENT, wording, BELGIUM) for wording in wordings]

    def condense(*years: str) -> list[list[tuple[str, str]]]:
        times = {(GHENT[0], w, BELGIUM[0]): y for w, y in zip(wordings, years, strict=True)}
        return [row["qualifiers"] for row in condense_statements(told, times=times).rows]

    assert sorted(condense("1831", "1950")) == [[("time", "1831")], [("time", "1950")]]
    assert condense("May 1831", "1831") == [[("time", "1831")]]
    assert condense("1831", "") == [[]]


def test_a_broader_fact_far_from_every_anchor_stays() -> None:
    made = condense_statements(
        [say(GHENT, "is located in", BELGIUM), say(GHENT, "is city in", BELGIUM)],
        anchor_similarity=1.0,
    )
    assert len(made.rows) == 2


def test_facts_are_merged_with_what_stands_for_them_and_never_along_a_chain() -> None:
    """`is city in` and `is mountain in` both say `is located in`, and nothing of each other."""
    wordings = ("is located in", "is city in", "is mountain in")
    made = condense_statements([say(GHENT, wording, BELGIUM) for wording in wordings])
    kept = {fact[1] for fact in made.merged}
    assert kept == {"is city in", "is mountain in"}


@each_row("first, second, stays")
def test_dates_are_compared_by_value(first: str, second: str, stays: dict[str, str]) -> None:
    dates = [say(ADA, "was born on", (text, "LITERAL")) for text in (first, second)]
    made = condense_statements(dates)
    if not stays:
        assert len(made.rows) == 2
        return
    ((fact, merged),) = made.merged.items()
    assert stays[fact[2]] == next(iter(merged.values()))


def test_every_fact_is_in_exactly_one_condensed_fact() -> None:
    made = condense_statements([*KNOWN, *MISSING, *VILLAGES, say(ADA, "is from", GHENT)])
    derived = Counter(key for row in made.rows for key in row["derived_from"])
    assert derived == Counter(made.tables["triples"]["triple_id"].to_pylist())
    assert all(len(row["how"]) == len(row["derived_from"]) for row in made.rows)
    assert all(row["how"].count("kept") == 1 for row in made.rows)


def test_an_anchor_is_only_near_what_its_property_can_join() -> None:
    born = ("was born in", ("1950", "LITERAL"))
    made = condense_statements([say(ADA, "was born in", GHENT), say(ADA, *born), say(LIND, *born)])
    assert made.anchors == {
        ("Ada Byron", "was born in", "Ghent"): "birthPlace",
        ("Ada Byron", "was born in", "1950"): "birthYear",
        ("Lind Institute", "was born in", "1950"): None,
    }
    classes = {row["anchor_class"] for row in made.rows if row["anchor"]}
    assert {iri.rpartition("#")[2] for iri in classes} == {"Person"}


@each_row("first, second, expected")
def test_two_amounts_of_one_thing_in_one_unit_contradict(
    first: str, second: str, expected: tuple[str, ...]
) -> None:
    length = ("length of the Ourthe", "NOUN")
    told = [say(length, "amounted to", (text, "LITERAL")) for text in (first, second)]
    assert [kind for kind, _ in condense_statements(told).contradictions] == [*expected]


def test_what_qualifies_merged_facts_is_united() -> None:
    told = [say(ADA, "works for", LIND), say(ADA, "is employed by", LIND)]
    times = {(ADA[0], told[0][2], LIND[0]): "1990", (ADA[0], told[1][2], LIND[0]): "1995"}
    (row,) = condense_statements(told, times=times).rows
    assert row["qualifiers"] == [("time", "1990 / 1995")]


def test_a_model_is_asked_about_what_the_rules_left_apart_around_one_anchor() -> None:
    model = YesSayer()
    told = [*KNOWN, say(ADA, "works for", LIND), say(ADA, "painted", LIND)]
    made = condense_statements(told, condenser=model, anchor_similarity=0.3)
    ((first, second),) = [found.statements for found in model.asked]
    assert {first.relation, second.relation} == {"works for", "painted"}
    assert Counter(how for merged in made.merged.values() for how in merged.values()) == {"llm": 1}


def test_no_model_merges_what_is_contrary_or_only_may_be() -> None:
    told = [say(ADA, "works for", LIND), say(ADA, "may work for", LIND)]
    made = condense_statements(told, condenser=YesSayer())
    assert len(made.rows) == 2


class NoNumbers(MemoEmbedder):
    def embed(self, texts: Sequence[str]) -> Matrix:
        vectors = super().embed(texts).copy()
        vectors[[text == "was born in" for text in texts]] = np.nan
        return vectors


def test_a_vector_of_no_numbers_is_refused_with_its_text() -> None:
    with pytest.raises(InputError, match="'was born in'"):
        condense_statements(KNOWN, embedder=NoNumbers())


def test_an_empty_graph_condenses_to_nothing() -> None:
    made = condense_statements([]).made
    assert [made[name].num_rows for name in ("condensed", "contradictions", "vectors")] == [0] * 3


@pytest.mark.slow
def test_a_thousand_relations_of_one_pair_are_compared_in_bounded_time() -> None:
    many = [say(ADA, f"quoted line {n} of", LIND) for n in range(1000)]
    made = condense_statements(many, embedder=WordEmbedder())
    assert sum(len(row["derived_from"]) for row in made.rows) == 1000


def test_the_order_of_the_rows_does_not_matter() -> None:
    told = [*KNOWN, say(ADA, "works for", LIND), say(ADA, "is employed by", LIND)]
    one, other = condense_statements(told), condense_statements(told[::-1])
    assert one.made == other.made
