"""Which end of a relation a question asks for, where its grammar says so."""

import re
from collections.abc import Sequence
from functools import lru_cache

from kpyramid.extraction.normal import lemmatise, normalise_relation

_WORD = re.compile(r"\w+")
_BE = frozenset("is was are were be been being".split())
_DO = frozenset("do does did".split())
_OF = frozenset("of for by to in".split())
_BARE = frozenset("be have do become".split())


def find_end(relation: str, question: str, names: Sequence[str]) -> bool | None:
    """True when the relation's subject is asked for, False when its object is, None when unclear.

    "Who bought X?" and "By whom was X bought?" ask for the subject of `bought`, "What did X buy?"
    and "What was bought by X?" for its object; "a tributary of X" for the subject of
    `is tributary of`, "X is a tributary of what" for its object.
    """
    words = tuple(word.casefold() for word in _WORD.findall(question))
    form = normalise_relation(relation)
    lemmas = form.lemmas
    if not words or not lemmas:
        return None
    at = _find_name(words, names)
    if at is None:
        return None
    if lemmas[0] == "be" and len(lemmas) > 2 and lemmas[-1] in _OF:
        noun = lemmas[-2]
        place = _find_lemma(words, noun)
        if place is None or words[-1] in _OF:
            return False if place is not None and words[-1] == lemmas[-1] else None
        follows = words[place + 1 : place + 2] == (lemmas[-1],) and at > place
        return True if follows else None
    verb = lemmas[0]
    if verb in _BARE or len(lemmas) > 1 or form.suffered:
        return None
    place = _find_lemma(words, verb)
    if place is None:
        return None
    agent = _find_role(words, place, at)
    if agent is None:
        return None
    # The named one is the agent: what is asked for is what it does it to.
    wants_subject = not agent
    return wants_subject is not form.passive_by


def _find_role(words: Sequence[str], verb: int, name: int) -> bool | None:
    """Whether the named one does what the verb says (True), or it is done to it (False)."""
    before, after = words[:verb], words[verb + 1 :]
    is_passive = bool(_BE & set(before[-4:])) and not _DO & set(before)
    if is_passive:
        if "by" in after[:1]:
            return name > verb
        return False if before and before[0] == "by" else None
    if _DO & set(before):
        return True if name < verb else None
    return False if name > verb else None


def _find_name(words: Sequence[str], names: Sequence[str]) -> int | None:
    """Where the only name of a question begins; None when it has none or several."""
    if len(names) != 1:
        return None
    parts = tuple(word.casefold() for word in _WORD.findall(names[0]))
    for at in range(len(words) - len(parts) + 1):
        if tuple(words[at : at + len(parts)]) == parts:
            return at
    return None


def _find_lemma(words: Sequence[str], lemma: str) -> int | None:
    return next((at for at, word in enumerate(words) if _lemmatise(word) == lemma), None)


@lru_cache(maxsize=10_000)
def _lemmatise(word: str) -> str:
    return lemmatise(word)
