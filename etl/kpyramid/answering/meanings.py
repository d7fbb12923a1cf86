"""What relation words mean by the lexicon of relation wordings: "wife" is a case of `spouse`."""

from collections.abc import Iterable
from functools import lru_cache

from kpyramid.graph.synonyms.lexicon import load_lexicon
from kpyramid.graph.synonyms.meaning import read_frame

Meaning = tuple[str, bool]
"""Name of a meaning, and whether it is read from its tail to its head."""
_AFTER = {"where": "in", "when": "in", "how": "of", "why": "of", "what": "of"}
"""The preposition that a question word stands for: "where did she die", `died in`."""


@lru_cache(maxsize=10_000)
def read_wording(wording: str, ahead: bool = True) -> frozenset[Meaning]:
    """The meanings of a relation of the graph, from its head to its tail, or back."""
    return _read([(wording, not ahead)])


@lru_cache(maxsize=10_000)
def read_words(words: tuple[str, ...]) -> frozenset[Meaning]:
    """The meanings of words that ask for something of something, from the latter to the former.

    "wife" as in "has wife" and, turned, in "is wife of"; with a question word as a verb.
    """
    asking = next((word for word in words if word in _AFTER), "")
    said = " ".join(word for word in words if word != asking)
    if not said:
        return frozenset()
    if asking:
        after = _AFTER[asking]
        forms = [(f"{verb}{said} {after}", False) for verb in ("", "was ")]
        return _read(forms)
    return _read([(f"has {said}", False), (f"is {said} of", True)])


@lru_cache(maxsize=10_000)
def name_step(wording: str, ahead: bool) -> tuple[str, ...]:
    """What the lexicon calls that to which a relation leads: `spouse` of "was married to"."""
    found = []
    for name, turned in sorted(read_wording(wording)):
        role = name.removesuffix("_of")
        # A role is of the head, as in "is parent of"; an attribute is of the tail.
        if turned is not ahead if role == name else turned is ahead:
            found.append(role.replace("_", " "))
    return tuple(found)


def _read(forms: Iterable[tuple[str, bool]]) -> frozenset[Meaning]:
    found = set()
    lexicon = load_lexicon()
    for wording, back in forms:
        for sense, turned in lexicon.find_senses(read_frame(wording)):
            if not (sense.negated or sense.weak):
                symmetric = sense.meaning.symmetric
                found.add((sense.meaning.name, not symmetric and turned != back))
    return frozenset(found)


@lru_cache(maxsize=100_000)
def compare_meanings(one: frozenset[Meaning], other: frozenset[Meaning]) -> bool | None:
    """Whether a meaning of one is that of the other, or a case of it; False: the other way round.

    None: nothing in common.
    """
    first, second = (_raise(meanings) for meanings in (one, other))
    shared = (one & second) | (other & first)
    if shared:
        return True
    back = {(name, not turned) for name, turned in second}
    return False if (one & back) or ({(n, not t) for n, t in other} & first) else None


@lru_cache(maxsize=100_000)
def says_role(role: frozenset[Meaning], wording: frozenset[Meaning]) -> bool:
    """Whether a wording says a role, whichever end has it: who married somebody is his wife.

    What is more general says it only where it is the same both ways, as `spouse` is.
    """
    own, said = {name for name, _ in role}, {name for name, _ in wording}
    above = {name for name, _ in _raise(role) if load_lexicon().meanings[name].symmetric}
    return bool(own & {name for name, _ in _raise(wording)} or said & above)


def _raise(meanings: Iterable[Meaning]) -> frozenset[Meaning]:
    """Meanings with all that are more general."""
    lexicon = load_lexicon()
    above = {
        (other, turned != turns)
        for name, turned in meanings
        for other, turns in lexicon.find_above(name).items()
    }
    symmetric = {(n, t and not lexicon.meanings[n].symmetric) for n, t in {*meanings, *above}}
    return frozenset(symmetric)
