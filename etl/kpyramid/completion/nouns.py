"""Nouns as names of classes: the kinds under which `X is a …` files things."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from kpyramid.completion.types import GraphLayer
from kpyramid.documents.words import FUNCTION_WORDS, is_filing, lemmatise
from kpyramid.embeddings.port import Embedder, embed_finite
from kpyramid.graph.synonyms.words import MODIFIERS, is_past, load_nouns, load_wordnet
from kpyramid.numerics.arrays import Mask
from kpyramid.ontology.literals import DATATYPES
from kpyramid.ontology.population.checking import Kinds
from kpyramid.ontology.population.witnesses import RELATIVES
from kpyramid.ontology.schema import Schema
from kpyramid.storage.columns import encode

_COMPLEMENT = re.compile(
    r"\s(?:of|in|for|from|at|on|by|with|to|within|near|between|among|under|since|as|who|which|that"
    r"|and|or)\s|[,(]"
    r"|\s(?:\w+ed|built|found|held|known|led|made|run|set|written)\s(?:as|at|by|in|on|of|to|with)\s"
)
"""The end of a noun phrase's core; also a participle with preposition (`school operated by`)."""
_JOINED = re.compile(r"\s(?:and|or)\s")
_RELATIVE = RELATIVES | frozenset(
    "body case collection element entity example feature figure form group home instance item kind "
    "lot majority matter member name native number object one only part piece result series set "
    "sort source system thing title type unit variety way".split()
).union(FUNCTION_WORDS)
"""Nouns that need a modifier or complement to name a kind: `part of`, `governing body`."""
_RELATED = re.compile(r"\s(?:of|to)\s(?:\S+\s){0,2}\S*[^\W\d_a-z]")
"""The complement of a noun that relates one thing to another: `sequel to Kill Bill`."""
_ROLE = re.compile(r"(?:is|was) the (?:\w+ )*(\w+) of")
_COMMON = 0.75
"""Share of a kind's things from which a word before the noun is part of the kind's name."""
_ALIKE = 0.6
"""Least cosine of two synonyms of WordNet for them to be synonyms in their usual senses here."""


class Kind(NamedTuple):
    """The kind under which `X is a …` files a thing: a noun and the lower-case words before it.

    `related`: whether a name complements the noun: `tributary of the Nile`. `completed`: whether
    `of` follows. `plural`: whether the noun's form differs from its lemma.
    """

    noun: str
    before: tuple[str, ...]
    related: bool
    completed: bool = False
    plural: bool = False


def find_filing(graph: GraphLayer) -> Mask:
    """Which facts have the relation `is a`, shape (n,)."""
    wordings = encode(graph.wordings)
    is_filed = [is_filing(wording) for wording in wordings.words]
    return np.array(is_filed, dtype=bool)[wordings.codes]


def find_noun(words: str, kinds: Kinds) -> Kind | None:
    """The noun at the head of a noun phrase, with the words before it.

    `town` of `small town in Idaho`, `jumper` and `ski` of `former ski jumper`. None where a class
    has that name, or where the noun names no kind.
    """
    if kinds.find(words) is not None:
        return None
    first, *others = _JOINED.split(words, maxsplit=1)
    if others and is_quality(first.rpartition(" ")[2]):  # `administrative and municipal area`
        first = others[0]
    head = _COMPLEMENT.split(first, maxsplit=1)[0]
    core = head.split() or [""]
    is_singular = core[-1] in load_nouns() and not core[-1].endswith("s")  # `opera`, not `opus`
    noun = core[-1] if is_singular or not core[-1].islower() else lemmatise(core[-1])
    if not (noun.isalpha() and noun.islower()) or len(noun) < 3 or noun in _RELATIVE:
        return None
    before = takewhile(lambda word: word.isalpha() and word.islower(), core[-2::-1])
    rest = first[len(head) :]
    form = bool(_RELATED.match(rest)), rest.startswith(" of "), noun != core[-1]
    return Kind(noun, tuple(before)[::-1], *form)


def name_kind(kind: Kind) -> str:
    """The noun with the noun before it, if any."""
    before = kind.before[-1:]
    return " ".join((*(() if not before or is_quality(before[0]) else before), kind.noun))


def find_common_name(kinds: Sequence[Kind]) -> tuple[str, ...]:
    """The words before the noun that most of the kinds share: `unincorporated` of a community.

    Words that single out one thing of a kind (`largest`, `Swiss`, `historic`) are excluded.
    """
    shared: tuple[str, ...] = ()
    while True:
        size = len(shared) + 1
        longer = Counter(k.before[-size:] for k in kinds if len(k.before) >= size)
        fitting = [(n, words) for words, n in longer.items() if words[1:] == shared or not shared]
        number, words = max(fitting, default=(0, ()))
        if number < _COMMON * len(kinds) or words[0] in MODIFIERS:
            return shared
        shared = words


def list_roles(schema: Schema) -> set[str]:
    """The nouns by which properties are named: `founder`, `capital` (`is the capital of`)."""
    roles = set()
    for prop in schema.properties:
        roles |= {label for label in (prop.label, *prop.alt_labels) if label.isalpha()}
        matches = map(_ROLE.fullmatch, prop.alt_labels)
        roles |= {role[1] for role in matches if role}
    return roles


def holds_kinds(parent: str, schema: Schema) -> bool:
    """Whether a literal property states the kinds of a class's things: `occupation`."""
    return any(
        prop.range in DATATYPES
        and any(map(is_filing, prop.alt_labels))
        and schema.is_subclass(parent, prop.domain)
        for prop in schema.properties
    )


def names_its_kind(noun: str, names: Sequence[str]) -> bool:
    """Whether at least half of the names contain the noun: `Diocese of Rochester`."""
    count = sum(noun in map(lemmatise, name.casefold().split()) for name in names)
    return 2 * count >= len(names)


def is_quality(word: str) -> bool:
    """Whether a word before a noun or after `is` is an adjective, adverb or participle."""
    return word in load_wordnet().senses["a"] or word.endswith(("ed", "ly")) or is_past(word)


def group_alike(nouns: Iterable[str], embedder: Embedder) -> dict[str, str]:
    """The common name of nouns for the same kind of thing: `film` of `movie`.

    WordNet lists both as synonyms, and their vectors are near: it lists `state` and `province` too.
    """
    alike = load_wordnet().alike
    ordered = sorted(nouns)
    first = [alike.get(noun, noun) for noun in ordered]
    cosines = np.einsum("ij,ij->i", embed_finite(embedder, ordered), embed_finite(embedder, first))
    pairs = zip(ordered, first, np.round(cosines, 6).tolist(), strict=True)
    return {noun: common if near >= _ALIKE else noun for noun, common, near in pairs}
