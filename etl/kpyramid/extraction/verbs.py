"""Verb groups of a dependency parse: their wording, polarity, modality, voice and subjects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kpyramid.extraction.tree import Node

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
    """A predicate's wording without negation, modals and adverbs, and the tokens it came from."""

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


def find_subjects(verb: Node) -> tuple[list[Node], str]:
    """Return the subject tokens of a predicate and how they were reached.

    The way is "own", "shared" (coordination, control), "antecedent" (relative and participial
    clauses) or "none". At most eight steps up the tree, so malformed parses end.
    """
    way, at = "own", verb
    for _ in range(8):
        own = [c for c in at.children if c.dep in SUBJECTS]
        if own:
            if at.dep == "relcl" and own[0].tag in {"WDT", "WP"}:
                return [at.head], "antecedent"
            return own, way
        if at.dep == "acl" and at.tag in {"VBN", "VBG"} and at.head.pos not in {"VERB", "AUX"}:
            return [at.head], "antecedent"
        if at.dep == "relcl":
            return [at.head], "antecedent"
        if at.dep in {"conj", "xcomp"} or (
            at.dep == "advcl" and at.tag in {"VBN", "VBG"} and not _has_marker(at)
        ):
            if at.dep == "xcomp":
                controlled = [c for c in at.head.children if c.dep == "dobj"]
                if controlled:
                    return controlled, "object_control"
            if at.head.pos not in {"VERB", "AUX"}:
                break
            at, way = at.head, "shared"
            continue
        break
    return [], "none"


def _has_marker(verb: Node) -> bool:
    return any(c.dep == "mark" for c in verb.children)
