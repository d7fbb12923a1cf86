"""Names come together by form and evidence, and different things stay apart."""

import random
import time
from collections.abc import Mapping, Sequence

import pytest

from kpyramid.graph.entities import Use, resolve_names
from tests.planted import WordEmbedder
from tests.rows import each_row, read_rows


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


@each_row("case, names, kinds, said, clusters")
def test_names_come_together_by_form_and_evidence(
    case: str,
    names: tuple[str, ...],
    kinds: Mapping[str, str],
    said: Sequence[tuple[str, ...]],
    clusters: Sequence[tuple[str, ...]],
) -> None:
    assert list_clusters(*names, kinds=kinds, said=said) == set(map(frozenset, clusters)), case


def test_namesakes_in_documents_without_common_ground_are_two() -> None:
    said = read_rows("entity_clusters.namesakes_in_documents_without_common_ground_are_two")
    kinds = type_all("PERSON", "John Smith", "Anna Holm")
    apart = list_clusters("a: John Smith", "b: John Smith", kinds=kinds, said=said)
    common = [("a", "John Smith", "married", "Anna Holm"), ("b", "Anna Holm", "left", "John Smith")]
    joined = list_clusters("a: John Smith", "b: John Smith", kinds=kinds, said=[*said, *common])

    assert apart == {frozenset({"a: John Smith"}), frozenset({"b: John Smith"})}
    assert joined == {frozenset({"a: John Smith", "b: John Smith"})}


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
    """34,000 names, a quarter of which end in one surname: pairs would be 72 million."""

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
    assert measure(34_000) < 3 * measure(17_000)
