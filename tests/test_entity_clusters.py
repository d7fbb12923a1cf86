"""Names come together by form and evidence, and different things stay apart."""

import random
import time
from collections.abc import Mapping, Sequence

import pytest

from kpyramid.graph.entities import Use, resolve_names
from tests.planted import WordEmbedder
from tests.rows import each_row


def resolve(uses: Sequence[Use]) -> dict[tuple[str, str], str]:
    """The cluster of each name in each document."""
    places = [(use.name, use.document) for use in uses]
    return dict(zip(places, resolve_names(uses, WordEmbedder()), strict=True))


def list_clusters(
    *names: str, kinds: Mapping[str, str] | None = None, said: Sequence[tuple[str, ...]] = ()
) -> set[frozenset[str]]:
    """Names that came together. `place: name` puts a name into a document; by default `one`.

    `kinds`: types by name. `said`: (place, head, relation, tail) besides one plain fact a name.
    """
    facts = list(said)
    for number, name in enumerate(names):
        place, _, text = name.rpartition(": ")
        facts.append((place or "one", text, f"does{number}", f"thing{number}"))
    uses = []
    for place, head, relation, tail in facts:
        for side, name, other in (("head", head, tail), ("tail", tail, head)):
            uses.append(Use(name, place, (kinds or {}).get(name, "NOUN"), side, relation, other))
    wanted = {name.rpartition(": ")[2] for name in names}
    clusters: dict[str, set[str]] = {}
    for (name, place), cluster in resolve(uses).items():
        if name in wanted:
            several = len({fact[0] for fact in facts}) > 1
            clusters.setdefault(cluster, set()).add(f"{place}: {name}" if several else name)
    return set(map(frozenset, clusters.values()))


def type_all(kind: str, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, kind)


@each_row("kind, names")
def test_wordings_of_one_thing_in_one_document_come_together(
    kind: str, names: tuple[str, ...]
) -> None:
    assert list_clusters(*names, kinds=type_all(kind, *names)) == {frozenset(names)}


@each_row("kinds, names")
def test_different_things_stay_apart(kinds: str, names: tuple[str, ...]) -> None:
    clusters = list_clusters(*names, kinds=type_all(kinds, *names))

    keys = {name.strip(".").casefold() for name in names}
    assert len(clusters) == len(keys)


def test_types_in_conflict_keep_a_name_from_its_namesake() -> None:
    names = ("Boston", "Boston University", "Washington", "George Washington")
    kinds = dict(zip(names, ("GPE", "ORG", "GPE", "PERSON"), strict=True))
    elsewhere = [("two", "Washington", "borders", "Maryland")]

    clusters = list_clusters(*names, kinds=kinds, said=elsewhere)

    assert not [cluster for cluster in clusters if len({n.split(": ")[1] for n in cluster}) > 1]


def test_a_region_after_a_place_may_mislead_the_recogniser() -> None:
    kinds = {"Salem": "GPE", "Salem Oregon": "ORG"}

    assert len(list_clusters("Salem", "Salem Oregon", kinds=kinds)) == 1


def test_a_site_of_several_words_is_one_wherever_its_region_is_left_out() -> None:
    names = ("a: Elm Street Bridge in Ghent", "a: Elm Street Bridge", "b: Elm Street Bridge")
    kinds = type_all("FAC", "Elm Street Bridge in Ghent", "Elm Street Bridge")

    assert list_clusters(*names, kinds=kinds) == {frozenset(names)}


def test_a_short_form_means_another_in_another_document() -> None:
    names = ("a: John Kennedy", "a: Kennedy", "b: Robert Kennedy", "b: Kennedy", "c: Kennedy")
    kinds = type_all("PERSON", "John Kennedy", "Robert Kennedy", "Kennedy")

    clusters = list_clusters(*names, kinds=kinds)

    assert clusters == {
        frozenset({"a: John Kennedy", "a: Kennedy"}),
        frozenset({"b: Robert Kennedy", "b: Kennedy"}),
        frozenset({"c: Kennedy"}),
    }


def test_a_rare_common_neighbour_brings_a_short_form_to_its_name_across_documents() -> None:
    kinds = type_all("PERSON", "John Kennedy", "Robert Kennedy", "Kennedy")
    said = [("a", "John Kennedy", "commanded", "PT-109"), ("c", "Kennedy", "sank with", "PT-109")]

    clusters = list_clusters(
        "a: John Kennedy", "b: Robert Kennedy", "c: Kennedy", kinds=kinds, said=said
    )

    assert frozenset({"a: John Kennedy", "c: Kennedy"}) in clusters


def test_lone_surnames_that_several_bear_are_joined_by_evidence_only() -> None:
    kinds = type_all("PERSON", "Jane Smith", "Adam Smith", "Smith")
    said = [("c", "Smith", "painted", "the Blue Door"), ("d", "Smith", "sold", "the Blue Door")]
    names = ("a: Jane Smith", "b: Adam Smith", "c: Smith", "d: Smith", "e: Smith")

    clusters = list_clusters(*names, kinds=kinds, said=said)

    assert frozenset({"c: Smith", "d: Smith"}) in clusters
    assert frozenset({"e: Smith"}) in clusters


def test_namesakes_in_documents_without_common_ground_are_two() -> None:
    said = [
        ("a", "John Smith", "bowled", "an over"),
        ("a", "John Smith", "captained", "county eleven"),
        ("a", "John Smith", "batted", "against Kent"),
        ("b", "John Smith", "isolated", "enzyme"),
        ("b", "John Smith", "published", "protein structure"),
        ("b", "John Smith", "lectured about", "chemistry"),
    ]
    kinds = type_all("PERSON", "John Smith", "Anna Holm")
    apart = list_clusters("a: John Smith", "b: John Smith", kinds=kinds, said=said)
    common = [("a", "John Smith", "married", "Anna Holm"), ("b", "Anna Holm", "left", "John Smith")]
    joined = list_clusters("a: John Smith", "b: John Smith", kinds=kinds, said=[*said, *common])

    assert apart == {frozenset({"a: John Smith"}), frozenset({"b: John Smith"})}
    assert joined == {frozenset({"a: John Smith", "b: John Smith"})}


def test_a_first_name_is_its_document_s_until_something_there_says_whose() -> None:
    kinds = type_all("PERSON", "Anna", "Anna Holm")

    clusters = list_clusters("a: Anna Holm", "a: Anna", "b: Anna", "c: Anna", kinds=kinds)

    assert clusters == {
        frozenset({"a: Anna Holm", "a: Anna"}),
        frozenset({"b: Anna"}),
        frozenset({"c: Anna"}),
    }


def test_a_body_without_its_country_is_one_per_document() -> None:
    kinds = type_all("ORG", "Congress")

    assert len(list_clusters("a: Congress", "b: Congress", kinds=kinds)) == 2


def test_different_titles_tell_namesakes_apart() -> None:
    titles = {"a": "Midway, Iowa", "b": "Midway, Ohio", "c": "Midway, Ohio"}
    uses = [Use("Midway", place, "GPE", "head", "has", "School") for place in "abcd"]
    uses += [
        Use("Midway", place, "GPE", "head", "", title, is_title=True)
        for place, title in titles.items()
    ]

    clusters = resolve(uses)

    assert clusters["Midway", "b"] == clusters["Midway", "c"] != clusters["Midway", "a"]
    assert clusters["Midway", "d"] not in {clusters["Midway", place] for place in "a"}


def test_places_in_different_states_are_two() -> None:
    said = [
        (place, "Clark County", "locate in", state)
        for place, state in {"a": "Kansas", "b": "Nevada", "c": "Nevada"}.items()
    ]
    said.append(("d", "Clark County", "locate in", "United States"))
    kinds = type_all("GPE", "Clark County", "Kansas", "Nevada", "United States")

    clusters = list_clusters(
        *(f"{place}: Clark County" for place in "abcd"), kinds=kinds, said=said
    )

    assert clusters == {
        frozenset({"a: Clark County"}),
        frozenset({f"{place}: Clark County" for place in "bcd"}),
    }


def test_a_fact_that_gives_another_name_joins_the_names() -> None:
    kinds = type_all("FAC", "Elm National Stadium", "National Stadium")
    said = [("one", "Elm National Stadium", "know as", "National Stadium")]

    clusters = list_clusters("Elm National Stadium", "National Stadium", kinds=kinds, said=said)

    assert len(clusters) == 1


def test_a_lone_surname_is_no_firm_and_waits_for_its_document() -> None:
    kinds = type_all("PERSON", "Mr. Smith Jr.", "Smith Jr.", "Smith")
    firm = type_all("ORG", "Acme Inc.", "Acme")

    persons = list_clusters("a: Mr. Smith Jr.", "b: Smith", kinds=kinds)
    younger = list_clusters("a: Smith Jr.", "b: Smith", kinds=kinds)
    firms = list_clusters("a: Acme Inc.", "b: Acme", kinds=firm)

    assert (len(persons), len(younger), len(firms)) == (2, 2, 1)


def test_two_names_in_one_fact_are_two_things() -> None:
    kinds = type_all("ORG", "Acme", "Acme University")

    clusters = list_clusters(
        "Acme", "Acme University", kinds=kinds, said=[("one", "Acme", "owns", "Acme University")]
    )

    assert len(clusters) == 2


def test_clusters_depend_on_no_order() -> None:
    dice = random.Random(5)
    last = ["Holm", "Batt", "Lund", "Kennedy"]
    first = ["Anna", "Leon", "John", "J.", "A."]
    names = [*last, *(f"{one} {two}" for one in first for two in last)]
    uses = [
        Use(
            dice.choice(names),
            f"d{dice.randrange(9)}",
            dice.choice(["PERSON", "NOUN", "ORG"]),
            dice.choice(["head", "tail"]),
            f"r{dice.randrange(9)}",
            dice.choice(names),
        )
        for _ in range(300)
    ]
    expected = resolve(uses)

    for seed in range(5):
        random.Random(seed).shuffle(uses)
        assert resolve(uses) == expected


@pytest.mark.slow
def test_time_grows_with_the_names_and_not_with_their_pairs() -> None:
    """40,000 names, a quarter of which end in one surname: pairs would be a hundred million."""

    def measure(size: int) -> float:
        uses = []
        for n in range(size):
            family = "Smith" if n % 4 == 0 else f"Fam{n % (size // 7)}"
            name = family if n % 5 == 0 else f"First{n % 997} {family}"
            uses.append(Use(name, f"d{n // 20}", "PERSON", "head", f"r{n % 99}", f"Thing {n}"))
        started = time.process_time()
        resolve_names(uses, WordEmbedder())
        return time.process_time() - started

    # Above 16,000 names the entries are read from the uses again; pairs would take four times.
    assert measure(40_000) < 3 * measure(20_000)
