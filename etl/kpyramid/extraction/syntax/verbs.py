"""Verbs: which head a clause, which report, and how a group of them is worded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kpyramid.extraction.syntax.tree import Node

SUBJECTS = frozenset({"nsubj", "nsubjpass"})
# Participles that describe a lasting state: "a town located in X" holds now, "a book written
# by X" happened once.
_STATIVE = frozenset(
    (
        "locate base situate know call name bound border own operate surround affiliate entitle "
        "title devote compose spell headquarter associate dedicate consider populate inhabit"
    ).split()
)
_FULL_MODALS = {"'ll": "will", "wo": "will", "ca": "can", "'d": "would", "sha": "shall"}
_IRREGULAR_THIRD = {"have": "has", "be": "is", "do": "does", "go": "goes"}
REPORTING = frozenset(
    (
        "say state claim report argue believe suggest note announce think write estimate allege "
        "explain assert maintain declare add insist"
    ).split()
)


@dataclass(frozen=True, slots=True)
class VerbGroup:
    """A predicate's wording without negation and adverbs, and the tokens it came from."""

    text: str
    tokens: tuple[int, ...]
    negated: bool
    modality: str | None
    passive: bool


def inflect_third(lemma: str) -> str:
    """Return the third person singular present of a regular verb ("carry" gives "carries")."""
    if lemma in _IRREGULAR_THIRD:
        return _IRREGULAR_THIRD[lemma]
    if lemma.endswith("y") and lemma[-2:-1] not in "aeiou":
        return lemma[:-1] + "ies"
    return lemma + ("es" if lemma.endswith(("s", "x", "z", "ch", "sh", "o")) else "s")


def is_predicate(token: Node) -> bool:
    """Return whether `token` heads a clause: a verb that is neither auxiliary nor modifier."""
    if token.pos not in {"VERB", "AUX"}:
        return False
    return token.dep not in {"aux", "auxpass", "amod", "compound", "prep", "case", "det", "nmod"}


def is_stative(participle: Node) -> bool:
    """Whether a past participle says what holds ("located"), not what happened ("written")."""
    return participle.lemma.lower() in _STATIVE


def is_copula(token: Node) -> bool:
    return token.lemma == "be" and token.dep not in {"aux", "auxpass"}


def read_modal(kids: Mapping[str, list[Node]]) -> str | None:
    """The modal verb among the auxiliaries, in full."""
    for node in kids.get("aux", ()):
        if node.tag == "MD":
            return _FULL_MODALS.get(node.word, node.word)
    return None
