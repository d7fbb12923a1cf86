"""Common nouns: those that denote a thing of their document, and those that denote a kind.

"The film", "two trials", "its members" and "Patients recovered" denote things of a particular text.
"Malaria" and "Butterflies are insects" denote a kind, which is the same thing in every text.
"""

import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

import numpy as np

from kpyramid.documents.values import NUMBER_WORDS
from kpyramid.documents.words import ARTICLES, BE, HAVE, IS_A, POINTING, RelationForm, lemmatise
from kpyramid.graph.names import LINKS, TITLES, parse_name
from kpyramid.graph.relations import Codes, Numbers
from kpyramid.graph.synonyms.words import load_nouns
from kpyramid.numerics.arrays import Mask

_POINTING = POINTING | frozenset("his her its their our my your whose such same".split())
_COUNTING = frozenset(NUMBER_WORDS) | frozenset(
    "each every both either neither all any no some most much many little few several enough more "
    "fewer less other another half".split()
)
"""Closed classes of words before a noun: demonstratives and possessives, and quantities."""
_DETERMINERS = ARTICLES | _POINTING | _COUNTING
_POINTS = re.compile(r"\s(?:this|these|both|its|his|her|their|our|my|your)\s")
"""Words that bind a phrase of any form to its document: "members of this family"."""
_OWNING = ("'s", "’s", "s'", "s’")
_ONLY_PLURAL = frozenset({"people", "police"})
"""Plurals that the dictionary lists as lemmas."""
_SIGNS = 2
"""Least signs of a noun that only opens sentences: small elsewhere, plural, untyped, listed."""
_LOCAL = "the "
"""Prefix of the cluster of a noun that is specific to its document; no key contains a space."""
_CLAUSES = LINKS | frozenset({"who", "that", "which", "whose", "where", "when"})
"""Words that end the noun itself: a modifier follows."""
_PRESENT = frozenset({"is", "are", "be", "has", "have"})
_PAST = frozenset(
    "left rose felt fell shot hit put set won met bore read spread beat cost cut let shut hurt "
    "quit split cast burst lay saw found wound ground".split()
)
"""Irregular past forms that are also base forms of the same or another verb."""
_ADVERB = re.compile(r"\w+ly|also|first|never|then|later|still|often|always|only")
_AS_KIND = frozenset({"a", "as", "title"})
"""Last words of relations to a kind or an office: "is a", "works as", "has title"."""

Shape = Literal["definite", "many", "indefinite", "plural", "bare"]
"""The determiner of a noun: "the", another word or a number, "a", or none."""
_SHAPES: tuple[Shape, ...] = get_args(Shape)
Place = tuple[str, str]
"""A key and a document."""


class Phrase(NamedTuple):
    """An end of a fact as written in its text.

    `before`: the text before it, None if its position is unknown. `is_typed`: the recogniser tags
    it as a name. `is_kind`: it is the kind of the fact's head. `is_general`: the fact may hold in
    general, in the present tense. `is_rule`: the fact states what its kind is or can do.
    """

    name: str
    document: str
    before: str | None
    is_typed: bool
    is_head: bool
    is_kind: bool
    is_general: bool
    is_rule: bool


def names_kind(form: RelationForm) -> bool:
    """Whether the tail is the kind or the office of the head rather than another thing."""
    return form.key == IS_A or form.lemmas[-1] in _AS_KIND or form.lemmas == ("become",)


@lru_cache(maxsize=100_000)
def is_present(form: RelationForm, relation: str) -> bool:
    """Whether the relation is in the present tense or a possibility, and may hold of a kind."""
    words = relation.casefold().split()
    first = next((word for word in words if not _ADVERB.fullmatch(word)), words[0])
    if first in _PAST:
        return False
    if first in BE | HAVE:
        return first in _PRESENT and not (first in HAVE and form.lemmas[0] != "have")
    return lemmatise(first) == first or first.endswith("s")


def states_rule(form: RelationForm) -> bool:
    """Whether the relation states what the kind of its head is, can or must do."""
    return form.key == IS_A or form.modal is not None


def resolve_nouns(phrases: Iterable[Phrase], titles: Collection[Place]) -> Iterator[str | None]:
    """The cluster of each phrase that is a common noun; None for each name.

    A noun is recognised by its lower case, in its document or, where it only opens sentences, in
    another. `titles`: words of titles with their documents, which are parts of names.
    """
    keys: Codes[str] = Codes()
    documents: Codes[str] = Codes()
    counts: Codes[str] = Codes()
    rows = array("i")
    for phrase in phrases:
        key, count, shape, large = _read_phrase(phrase.name, phrase.before)
        office = phrase.is_kind and TITLES.issuperset(parse_name(phrase.name).words)
        points = _POINTS.search(phrase.name) is not None
        rows.extend((keys[key], documents[phrase.document], counts[count], _SHAPES.index(shape)))
        rows.extend((2 if large is None else large, phrase.is_typed, phrase.before is not None))
        rows.extend((office, points, *phrase[4:]))
    read = np.array(rows).reshape(-1, 13).T
    width = max(1, len(documents))
    known, place = np.unique(read[0] * np.int64(width) + read[1], return_inverse=True)
    key_of_place = known // width
    wanted = [(keys[k], documents[d]) for k, d in titles if k in keys and d in documents]
    titled = np.isin(known, [key * width + document for key, document in wanted])
    nouns = load_nouns()
    listed = np.array([key in nouns for key in keys], dtype=bool)[key_of_place]
    common = _find_common(read, key_of_place, place, titled, listed)
    # A shape counts once per document.
    shaped = np.zeros((len(known), len(_SHAPES)), dtype=bool)
    seen = common[place] & (read[6] > 0)
    shaped[place[seen], read[3][seen]] = True
    bare = shaped[:, _SHAPES.index("bare")]
    shapes = np.zeros((len(keys), 2), dtype=np.int64)
    np.add.at(shapes, key_of_place, np.stack([bare, shaped.sum(axis=1)]).T)
    mass = 2 * shapes[:, 0] > shapes[:, 1]
    key_of, document_of, count_of = [*keys], [*documents], [*counts]
    noun = common[place] | (read[7] > 0)
    kind = (read[8] == 0) & ((read[10] > 0) | _are_kinds(read, mass[read[0]], bare[place]))
    for code, document, count, is_noun, is_kind in zip(*read[:3], noun, kind, strict=True):
        if not is_noun:
            yield None
        elif is_kind:
            yield f"a {key_of[code]}"
        else:
            yield f"{_LOCAL}{count_of[count]} {key_of[code]} in {document_of[document]}"


def is_of_document(cluster: str) -> bool:
    """Whether the cluster is a noun that is specific to its document."""
    return cluster.startswith(_LOCAL)


def _are_kinds(read: Numbers, mass: Mask, bare: Mask) -> Mask:
    """Whether phrases mean the same in every text: "malaria", "whales" in a general statement.

    A mass noun with and without an article ("malaria", "the malaria") is one thing in a text. The
    head of a particular statement is specific to its text: "mortality" in "mortality was 6 %".
    `read`: see `_find_common`, with `is_head`, `is_general` and `is_rule` as rows 9, 11 and 12.
    """
    shape, head, general, rule = read[3], *(read[[9, 11, 12]] > 0)
    is_a = {name: shape == number for number, name in enumerate(_SHAPES)}
    one = mass & (general | ~head) & (is_a["bare"] | (is_a["definite"] & bare))
    return np.asarray(one | (general & is_a["plural"]) | (rule & is_a["indefinite"]))


@lru_cache(maxsize=1 << 16)
def _read_phrase(name: str, text_before: str | None) -> tuple[str, str, Shape, bool | None]:
    """A phrase's key, quantity, shape, and whether it is capitalised.

    None where any word would be capitalised, as at the start of a sentence.
    """
    words = name.split()
    before = (text_before or "").split()[-1:]
    opens = text_before is not None and (not before or before[0][-1] in ".:;?!")
    while len(words) > 1 and words[0].casefold() in _DETERMINERS:
        before, words = words[:1], words[1:]
        opens = opens and before[0][0].isupper()
    last = before[0].casefold().strip("\"'“‘([") if before else ""
    opens = opens or (last in _DETERMINERS and before[0][0].isupper())
    text = " ".join(words)
    shape: Shape = "plural" if _is_plural(words) else "bare"
    if last in {"a", "an"}:
        shape = "indefinite"
    elif last == "the":
        shape = "definite"
    elif last.endswith(_OWNING) or not _DETERMINERS.isdisjoint((last, text.casefold())):
        shape = shape if shape == "plural" and last == "that" else "many"  # "know that whales eat"
    elif last.isdecimal() or text[:1].isdigit():
        shape = "many"
    large: bool | None = any(map(str.isupper, text)) or not any(map(str.islower, text))
    if opens and large and not any(map(str.isupper, text[1:])):
        large = None
    count = last if last in _COUNTING or last.isdecimal() else ""
    return parse_name(text.lower()).key, count, shape, large


def _find_common(read: Numbers, keys: Numbers, place: Numbers, titled: Mask, listed: Mask) -> Mask:
    """Whether the phrases of each place are common nouns, shape (places,).

    `read`: columns of key, document, count, shape, large, typed, positioned and others, in rows.
    `keys`, `titled` and `listed` (in the dictionary): of the places; `place`: of each phrase.
    """
    small, large = (np.bincount(place[read[4] == case], minlength=len(keys)) for case in range(2))
    typed, plural = np.zeros((2, len(keys)), dtype=bool)
    typed[place[read[5] > 0]] = True
    plural[place[read[3] == _SHAPES.index("plural")]] = True
    elsewhere = np.isin(keys, keys[small > large])
    listed = listed & ~np.isin(keys, keys[large > small])
    signs = elsewhere.astype(int) + plural + ~typed + listed
    return np.where((small + large == 0) & ~titled, signs >= _SIGNS, small >= np.maximum(1, large))


def _is_plural(words: Sequence[str]) -> bool:
    noun = ""
    for word in words:
        if word.casefold() in _CLAUSES:
            break
        noun = word.casefold()
    if not noun or noun in _ONLY_PLURAL:
        return bool(noun)
    return lemmatise(noun).casefold() != noun and not noun.endswith(("ed", "ing"))
