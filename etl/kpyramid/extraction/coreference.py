"""Antecedents of pronouns and of short definite phrases ("it", "his", "the town")."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kpyramid.extraction.phrases import (
    LITERALS,
    Phrase,
    find_phrase,
    list_conjuncts,
)
from kpyramid.extraction.tree import Node, Tree

_PERSON = frozenset({"he", "she", "him", "her", "his", "hers"})
_THING = frozenset({"it", "its"})
_PLURAL = frozenset({"they", "them", "their", "theirs"})
_NOT_PERSON = frozenset(
    {"GPE", "LOC", "FAC", "WORK_OF_ART", "EVENT", "PRODUCT", "LAW", "LANGUAGE", "NORP"}
)
_PERSON_NOUNS = frozenset(
    (
        "man woman boy girl politician musician king queen prince princess emperor president "
        "saint poet artist professor athlete bishop pope general captain coach guard son daughter "
        "brother sister father mother wife husband uncle aunt cousin member graduate native "
        "person chief mathematician physician physicist academic journalist businessman "
        "businesswoman"
    ).split()
)
_PERSON_ENDINGS = ("er", "or", "ist", "ian", "man", "woman", "eer")
_THING_NOUNS = frozenset(
    (
        "river number order chapter letter paper tower center border water power theater theatre "
        "member-state newspaper computer sector factor motor"
    ).split()
)
# Words by which an encyclopaedic text calls its subject back, by the kind it was said to be.
_SYNONYMS = (
    frozenset("town village city community municipality settlement locality suburb".split()),
    frozenset(["film", "movie", "drama", "comedy", "thriller"]),
    frozenset(["album", "record", "ep", "release", "compilation"]),
    frozenset(["song", "single", "track"]),
    frozenset(["company", "firm", "corporation", "business"]),
    frozenset(["band", "group", "ensemble"]),
    frozenset(["novel", "book"]),
    frozenset(["school", "university", "college"]),
)


@dataclass(frozen=True, slots=True)
class Antecedent:
    """A noun phrase that later words may refer to."""

    phrase: Phrase
    person: bool | None
    plural: bool
    kinds: frozenset[str]


class Antecedents:
    """The candidate antecedents of one text, in text order; the first is its topic."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.subjects = [
            a
            for t in tree.nodes
            if _is_clause_subject(t) and (a := _read_antecedent(t)) is not None
        ]
        named = [a for a in self.subjects if a.phrase.is_named]
        self.topic = named[0] if named else None

    def resolve_pronoun(self, token: Node) -> Phrase | None:
        """Return the phrase a third-person pronoun stands for, None when none is clear.

        The topic goes first; a possessive looks at the subject of its own clause before it.
        """
        word = token.word
        if word not in _PERSON | _THING | _PLURAL:
            return None
        earlier = [a for a in self.subjects if a.phrase.last < token.i]
        fitting = [a for a in earlier if _fits(a, word)]
        if token.tag == "PRP$":
            same = [
                a
                for a in fitting
                if a.phrase.first >= self.tree.sentences[token.sentence][0] and a.phrase.is_named
            ]
            if same:
                return replace(same[-1].phrase, resolved=True)
        if self.topic is not None and self.topic in fitting:
            return replace(self.topic.phrase, resolved=True)
        named = [a for a in fitting if a.phrase.is_named or a.person]
        if named:
            return replace(named[-1].phrase, resolved=True)
        return None

    def resolve_definite(self, token: Node) -> Phrase | None:
        """Return what a bare "the town" stands for: the topic, when it is of that kind."""
        kids = list(token.children)
        topic = self.topic
        if topic is None or topic.phrase.last >= token.i or token.pos != "NOUN":
            return None
        if [c.word for c in kids if c.dep == "det"] not in (["the"], ["this"]):
            return None
        if any(c.dep not in {"det", "punct", "relcl"} and c.tag != "PRP" for c in kids):
            return None
        word = token.word
        alike = {word}.union(*(s for s in _SYNONYMS if word in s))
        return replace(topic.phrase, resolved=True) if topic.kinds & alike else None


def _is_clause_subject(token: Node) -> bool:
    return token.dep in {"nsubj", "nsubjpass"} and token.pos in {"NOUN", "PROPN", "NUM"}


def _read_antecedent(token: Node) -> Antecedent | None:
    phrase = find_phrase(token)
    if phrase is None or phrase.label in LITERALS:
        return None
    nouns = [
        c
        for c in token.head.children
        if c.dep == "attr" and token.head.lemma == "be" and c.pos in {"NOUN", "PROPN"}
    ]
    nouns += [c for c in token.children if c.dep == "appos" and c.pos == "NOUN"]
    kinds = {k.word for n in nouns for k in list_conjuncts(n)}
    kinds.add(phrase.text.split()[-1].lower())
    plural = token.tag in {"NNS", "NNPS"} or any(c.dep == "conj" for c in token.children)
    return Antecedent(phrase, _judge_person(phrase.label, kinds), plural, frozenset(kinds))


def _judge_person(label: str, kinds: set[str]) -> bool | None:
    """Return whether the phrase names a person; None when nothing tells."""
    if any(is_person_noun(k) for k in kinds):
        return True
    if label == "PERSON":
        # The model often tags a work or a place as a person; its own kind noun outweighs it.
        return True if len(kinds) < 2 else None
    return False if label in _NOT_PERSON or len(kinds) > 1 else None


def is_person_noun(word: str) -> bool:
    """Return whether a common noun denotes a person, by list and by agent suffix."""
    if word in _PERSON_NOUNS:
        return True
    return len(word) > 5 and word.endswith(_PERSON_ENDINGS) and word not in _THING_NOUNS


def _fits(antecedent: Antecedent, word: str) -> bool:
    if word in _PERSON:
        return antecedent.person is not False and not antecedent.plural
    if word in _THING:
        return antecedent.person is not True and not antecedent.plural
    return antecedent.plural or antecedent.phrase.label in {"ORG", "NORP"}
