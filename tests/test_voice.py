"""Voice and direction: who does what to whom, through facts, relations, a build and its answers."""

from collections.abc import Iterator

from kpyramid.documents.words import normalise_relation
from kpyramid.extraction.openie import DependencyExtractor
from tests.rows import each_row, read_rows

VERBS = read_rows("voice.verbs")
FIRST = "Anna Carl Maria Peter Julia Thomas Helen Robert Laura Martin".split()
LAST = "Holm Berg Lund Weber Costa Moreau Novak Silva Brandt Keller Walsh Parker".split()


def list_pairs() -> Iterator[tuple[str, str, str, str, int]]:
    """Past tense, participle, who does it, to whom it is done, and when; nobody twice."""
    people = [f"{first} {last}" for last in LAST for first in FIRST]
    for at, verb in enumerate(VERBS):
        past, participle = verb.split(":")
        yield past, participle, people[at % 60], people[60 + at % 60], 1900 + at


def test_who_does_it_and_to_whom_it_is_done_are_told_apart_for_sixty_verbs(
    extractor: DependencyExtractor,
) -> None:
    wrong = []
    pairs = list(list_pairs())
    assert len(pairs) > 60
    active = extractor.extract_all(f"{a} {past} {b} in {year}." for past, _, a, b, year in pairs)
    passive = extractor.extract_all(
        f"{b} was {participle} by {a} in {year}." for _, participle, a, b, year in pairs
    )
    for pair, acting, undergoing in zip(pairs, active, passive, strict=True):
        past, participle, one, other, year = pair
        facts = {(f.head, f.relation, f.tail) for f in acting.facts}
        if (one, past, other) not in facts:
            wrong.append(f"{one} {past} {other}: {sorted(facts)}")
        done = normalise_relation(f"{past} in").key
        wrong += [
            f"{head} {relation} {tail}"
            for head, relation, tail in facts
            if tail == str(year) and head == one and normalise_relation(relation).key == done
        ]
        facts = {(f.head, f.relation, f.tail) for f in undergoing.facts}
        if (other, f"was {participle} by", one) not in facts:
            wrong.append(f"{other} was {participle} by {one}: {sorted(facts)}")
    assert wrong == []


@each_row("active, passive")
def test_a_passive_is_another_relation_than_its_active(active: str, passive: str) -> None:
    assert normalise_relation(active).key != normalise_relation(passive).key
