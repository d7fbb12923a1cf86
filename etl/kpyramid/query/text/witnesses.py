"""Passages that say an option together with what the question names: what speaks for the option.

A question says what its answer is only by its names, and so do a hundred passages; with an option
beside them there are few. Each option is looked up by itself, as if it were the answer (Clark et
al., AAAI 2016, ask a search engine so).
"""

from collections.abc import Collection

from kpyramid.query.pyramid.snapshot import Snapshot
from kpyramid.query.reader.asked import Asked, read_question
from kpyramid.query.reader.finding import Candidate, read_candidates
from kpyramid.query.reader.matching import find_name, split_words
from kpyramid.query.reader.values import find_values
from kpyramid.query.types import Item, Question

LOOKED = 10
"""Passages looked at for an option."""
SAID = 0.5
"""How surely a passage must say an option, and how much of what the question names."""


def find_witnesses(
    question: Question, snapshot: Snapshot, k: int, *, without: Collection[str] = ()
) -> list[Item]:
    """At most k passages that say an option and what the question names, best first.

    The best one of each option comes before the second of any. `without` are keys of passages
    that are known already.
    """
    asked = read_question(question.text, snapshot.link(question.text))
    named = " ".join(name.text for name in asked.names) or asked.rest
    candidates = read_candidates(question.candidates, snapshot)
    ranked: list[tuple[int, float, str]] = []
    for text, candidate in zip(question.candidates, candidates, strict=True):
        keys = [key for key, _ in snapshot.words(f"{named} {text}", LOOKED, "chunks")]
        said = measure_said(asked, candidate, keys, snapshot)
        if not said:
            continue
        cosines = snapshot.vectors_of(list(said), "chunks") @ snapshot.embed(question.text)
        scores = {key: said[key] + c for key, c in zip(said, cosines.tolist(), strict=True)}
        order = sorted(scores, key=lambda key: (-scores[key], key))
        ranked += [(place, -scores[key], key) for place, key in enumerate(order)]
    known = set(without)
    found: dict[str, float] = {}
    for _, score, key in sorted(ranked):
        if key not in known:
            found.setdefault(key, -score)
    return [
        Item(key, place.text, "text", score, (place,))
        for key, score in list(found.items())[:k]
        for place in snapshot.evidence(key)
    ]


def measure_said(
    asked: Asked, candidate: Candidate, keys: list[str], snapshot: Snapshot
) -> dict[str, float]:
    """How far each of those passages says both that say both, 0 to 1."""
    wanted = asked.named or frozenset(word.stem for word in asked.content)
    said = {}
    for key, text in zip(keys, snapshot.texts_of(keys, "chunks"), strict=True):
        words = split_words(text)
        share = len(wanted & {word.stem for word in words}) / max(len(wanted), 1)
        if share < SAID:
            continue
        values = find_values(text) if candidate.name.value is not None else []
        places = find_name(candidate.name, words, values)
        if places and places[0].strength >= SAID:
            said[key] = share * places[0].strength
    return said
