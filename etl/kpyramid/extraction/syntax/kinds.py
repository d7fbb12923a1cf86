"""Kind nouns: the type of X in "X is a <noun>", and nouns that refer back to the same thing."""

from __future__ import annotations

from kpyramid.documents.words import pick_table, read_words

_WORDS = read_words(__file__, "kinds.toml")
_NAMES = read_words(__file__, "given_names.toml")

PERSON_NOUNS = _WORDS["person"]
_PERSON_ENDINGS = ("er", "or", "ist", "ian", "man", "woman", "eer")

TAKING_BACK = _WORDS["taking_back"]
"""Adjectives by which a thing is not, not yet, not surely or not fully of the kind."""

MANNERS = _WORDS["manners"]
MANNER_PHRASES = _WORDS["manner_phrases"]
"""Bare nouns after "by" that state how something is done, not by whom."""

LABEL_NOUNS = pick_table(_WORDS, "label")
"""Nouns by the entity type of what they name, in spaCy's labels."""


def _map_nouns(table: str) -> dict[str, frozenset[str]]:
    """The entity types of each noun of a table, which lists nouns by entity type."""
    lists = pick_table(_WORDS, table)
    return {
        noun: frozenset(label for label, nouns in lists.items() if noun in nouns)
        for noun in sorted(frozenset().union(*lists.values()))
    }


ATTRIBUTES = _map_nouns("attribute")
"""The entity types of what can have an attribute, by its noun: a mountain has no budget."""

LABEL_BY_NOUN = {noun: label for label, nouns in LABEL_NOUNS.items() for noun in sorted(nouns)}

GENERIC_NOUNS = _map_nouns("generic")
"""Nouns that can refer back to anything of some types: "this area"."""

_SYNONYMS = [words for name, words in _WORDS.items() if name.startswith("synonyms.")]
_ALIKE: dict[str, frozenset[str]] = {
    word: frozenset().union(*(s for s in _SYNONYMS if word in s))
    for word in sorted(frozenset().union(*_SYNONYMS))
}

FIRM_ENDINGS, PLACE_OPENINGS = _WORDS["firm_endings"], _WORDS["place_openings"]
UNDERTAKINGS, AUTHORS = _WORDS["undertakings"], _WORDS["authors"]
BODIES = _WORDS["bodies"]
"""Nouns for bodies of a firm or a state: "the committee" is never the firm itself."""

_FEMALE, _MALE = _WORDS["female"], _WORDS["male"]


def is_person_noun(word: str) -> bool:
    """Whether a common noun denotes a person, by list and by agent suffix."""
    if word in PERSON_NOUNS:
        return True
    return (
        len(word) > 4
        and word.endswith(_PERSON_ENDINGS)
        and word not in _WORDS["not_person"]
        and word not in LABEL_BY_NOUN
    )


def find_kind_label(word: str) -> str | None:
    """The entity type of what a kind noun names, in spaCy's labels; None when it is open."""
    label = LABEL_BY_NOUN.get(word)
    return label if label is not None else "PERSON" if is_person_noun(word) else None


def is_office(word: str) -> bool:
    """Whether a noun names what somebody is by post: "director", "head"."""
    return word == "head" or find_kind_label(word) == "PERSON"


def list_alike(word: str) -> frozenset[str]:
    """The kind nouns of the things that `word` may refer back to, itself included."""
    return _ALIKE.get(word, frozenset()) | {word}


def find_name_gender(name: str) -> str | None:
    """The gender, "f" or "m", of a given name, in lower case; None where both have it."""
    return "f" if name in _NAMES["women"] else "m" if name in _NAMES["men"] else None


def find_gender(word: str) -> str | None:
    """The gender, "f" or "m", of a noun or title; None where it has none."""
    return "f" if word in _FEMALE else "m" if word in _MALE else None
