"""The tokens of a relation wording without those that change nothing, and what the others add."""

import re
import unicodedata
from dataclasses import dataclass, field

from kpyramid.extraction.normal import lemmatise
from kpyramid.paraphrase import words as w
from kpyramid.paraphrase.wordnet import find_verb, is_past

_SPACE = re.compile(r"\s+")
_MARKS = re.compile(r"[^\w\s'’-]+")
_NOT_ADVERBS = frozenset(
    "family assembly ally monopoly anomaly italy july reply fly early only daily weekly monthly "
    "yearly quarterly costly friendly deadly lovely elderly holy hourly apply supply rely multiply "
    "comply imply rally tally bully butterfly duopoly oligopoly likely unlikely".split()
)
_CONDITIONAL = frozenset("first best most more long all both well together like".split())
"""Adverbs only where a verb follows: `was first described by`, but `is the first king of`."""


@dataclass(slots=True)
class Draft:
    """What is known while a wording is read: its tokens and which had an article before them."""

    tokens: list[str] = field(default_factory=list)
    marked: list[bool] = field(default_factory=list)
    qualities: set[str] = field(default_factory=set)
    negated: bool = False
    indefinite: bool = False
    possessive: bool = False
    bare: bool = False
    """Whether the main verb follows one that asks for its base form: `did not found`."""


def split_wording(wording: str) -> list[str]:
    text = unicodedata.normalize("NFKC", wording).casefold().replace("’", "'").replace("_", " ")
    text = _MARKS.sub(" ", text).replace("n't", " n't").replace("'s", " 's")
    text = (
        text.replace("ca n't", "can n't").replace("wo n't", "will n't").replace("cannot", "can not")
    )
    found = []
    for word in _SPACE.split(text.strip()):
        if "-" not in word:
            found.append(word)
            continue
        first, _, rest = word.partition("-")
        if first == "co" and find_verb(word.replace("-", "")):
            found.append(word.replace("-", ""))
        elif first in {"co", "ex"}:
            found += [first, *rest.split("-")]
        elif first in w.JOINED:
            found.append(word.replace("-", ""))
        else:
            found += word.split("-")
    return [word.strip("'") if word != "'s" else word for word in found if word.strip("'-")]


def sift_tokens(tokens: list[str]) -> Draft:
    """The tokens without what changes nothing, and the qualities of what does."""
    draft = Draft()
    marked = False
    for at, word in enumerate(tokens):
        after = tokens[at + 1] if at + 1 < len(tokens) else ""
        if word in w.DETERMINERS:
            marked = True
            draft.indefinite |= word in {"a", "an"}
            continue
        if word == "'s" and not draft.tokens:
            draft.possessive = True
            continue
        if word == "whose" and not draft.tokens:
            draft.possessive = True
            continue
        if word == "no" and after == "longer":
            draft.qualities.add("former")
            continue
        if word == "longer" and at and tokens[at - 1] == "no":
            continue
        if word == "used" and after == "to" and not draft.tokens:
            draft.qualities.add("former")
            continue
        if word == "to" and at and tokens[at - 1] == "used" and not draft.tokens:
            continue
        if word == "would" and not w.LATER.isdisjoint(tokens):
            draft.bare = True
            continue
        if word in w.HELD and marked and after == "of":
            word = f"the {word}"
        if word in w.NEGATIONS:
            draft.negated = not draft.negated
            continue
        quality = _find_quality(word, after, marked, draft)
        if quality is not None:
            if quality:
                draft.qualities.add(quality)
            continue
        if word.startswith("co") and _is_shared(word[2:]):
            draft.qualities.add("joint")
            word = word[2:]
        draft.tokens.append(w.ALIKE.get(word, word))
        draft.marked.append(marked)
        marked = False
    return draft


def _is_shared(word: str) -> bool:
    verb = find_verb(word)
    return lemmatise(word) in w.SHARED_ROLES or (verb is not None and verb in w.SHARED_DEEDS)


def _find_quality(word: str, after: str, marked: bool, draft: Draft) -> str | None:
    """The quality of a word that is one, `` of a word without effect, None of any other word."""
    last = not after
    if word in _CONDITIONAL:
        goes = not last and not marked and (is_past(after) or _is_adverb(after))
        return "" if goes and word != "like" else None
    if word in w.JOINTLY:
        return "joint"
    if word in w.FORMER and not marked:
        return "former"
    if word in w.NEARLY:
        return "nearly"
    if word in w.PARTLY:
        return "partly"
    if word in w.POSSIBLY and not last and after != "to":
        return "possible"
    if word in w.HARMLESS and not (last and not draft.tokens):
        return ""
    named = bool(after) and after not in w.PREPOSITIONS
    if word in w.FORMER_ADJECTIVES and named:
        return "former"
    if word in w.GRADING and named and (marked or draft.tokens):
        return "major" if find_verb(word) is None or marked else None
    if word in w.EVALUATIVE and named and (marked or draft.tokens):
        return "" if find_verb(word) is None or marked else None
    if _is_adverb(word):
        return word
    return None


def _is_adverb(word: str) -> bool:
    return word in w.HARMLESS or (
        word.endswith("ly") and len(word) > 4 and word not in _NOT_ADVERBS
    )
