"""Nouns as names of classes: what `X is a …` files a thing under."""

import re

import numpy as np

from kpyramid.completion.types import GraphLayer, Mask, encode
from kpyramid.documents.words import IS_A, lemmatise, normalise_relation
from kpyramid.graph.synonyms.words import load_wordnet
from kpyramid.ontology.population.checking import Kinds
from kpyramid.ontology.population.witnesses import RELATIVES

_COMPLEMENT = re.compile(
    r"\s(?:of|in|for|from|at|on|by|with|to|who|which|that|and|or)\s|[,(]"
    r"|\s(?:\w+ed|built|found|held|known|led|made|run|set|written)\s(?:as|at|by|in|on|of|to|with)\s"
)
"""Where a noun phrase's core ends; a participle with its preposition (`school operated by`) too."""
_JOINED = re.compile(r"\s(?:and|or)\s")
_RELATIVE = RELATIVES | frozenset(
    "form group kind lot majority member name native number one part piece result series set sort "
    "type variety way".split()
)
"""Nouns that say nothing without what follows them: `part of`, `son of`."""


def find_filing(graph: GraphLayer) -> Mask:
    """Which facts say `is a`."""
    wordings = encode(graph.wordings)
    said = [is_filing(wording) for wording in wordings.words]
    return np.array(said, dtype=bool)[wordings.codes]


def is_filing(wording: str) -> bool:
    """Whether a wording says `is a`."""
    return normalise_relation(wording).key == IS_A


def find_noun(words: str, kinds: Kinds) -> tuple[str, str] | None:
    """The noun at the head of a noun phrase, and the noun before it, empty where there is none.

    `town` of `small town in Idaho`, `jumper` and `ski` of `former ski jumper`. None where a class
    has that name, or where the noun names no kind.
    """
    if kinds.find(words) is not None:
        return None
    first, *others = _JOINED.split(words, maxsplit=1)
    if others and is_quality(first.rpartition(" ")[2]):  # `administrative and municipal area`
        first = others[0]
    core = _COMPLEMENT.split(first, maxsplit=1)[0].split()
    noun = lemmatise(core[-1]) if core and core[-1].islower() else ""
    if not noun.isalpha() or len(noun) < 3 or noun in _RELATIVE:
        return None
    before = core[-2] if len(core) > 1 else ""
    is_noun = before.isalpha() and before.islower() and not is_quality(before)
    return noun, before if is_noun else ""


def is_quality(word: str) -> bool:
    """Whether a word before a noun or after `is` tells a quality: an adjective or participle."""
    return word in load_wordnet().senses["a"] or word.endswith(("ed", "ly"))


def name_alike(noun: str) -> str:
    """The name under which nouns for one kind of thing agree: `film` of `movie`."""
    return load_wordnet().alike.get(noun, noun)
