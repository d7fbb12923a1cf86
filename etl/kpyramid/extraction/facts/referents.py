"""What can be referred to: entities, what a first mention tells of them, and words that refer."""

from __future__ import annotations

from dataclasses import dataclass

from kpyramid.extraction.syntax.kinds import (
    GENERIC_NOUNS,
    LABEL_BY_NOUN,
    LABEL_NOUNS,
    find_gender,
    is_person_noun,
)
from kpyramid.extraction.syntax.phrases import Phrase, list_conjuncts
from kpyramid.extraction.syntax.tree import Node

PERSON = frozenset("he she him her his hers himself herself".split())
PLURAL = frozenset({"they", "them", "their", "theirs", "themselves"})
THING = frozenset({"it", "its", "itself"})
PRONOUNS = PERSON | THING | PLURAL
GENDER = dict.fromkeys(("he", "him", "his", "himself"), "m")
GENDER |= dict.fromkeys(("she", "her", "hers", "herself"), "f")
_NOT_PERSON = frozenset(
    {"GPE", "LOC", "FAC", "WORK_OF_ART", "EVENT", "PRODUCT", "LAW", "LANGUAGE", "NORP"}
)
_GROUP_NOUNS = LABEL_NOUNS["ORG"] | frozenset(
    "family couple crew staff cast police public majority army population people".split()
)
SUBJECTS = frozenset({"nsubj", "nsubjpass"})
_NAMING = frozenset({"attr", "appos", "oprd", "conj", "ROOT"})
_NARROWING = frozenset({"prep", "relcl", "acl", "appos", "conj", "cc", "npadvmod"})


@dataclass(slots=True, eq=False)
class Antecedent:
    """An entity spoken of: its fullest name so far, and what is known of it.

    `person` and `gender` are None while nothing tells; `kinds` are the nouns it was called.
    """

    phrase: Phrase
    person: bool | None
    gender: str | None
    plural: bool | None
    kinds: set[str]
    salience: float
    sentence: int
    role: str
    clause: int


def describe(token: Node, phrase: Phrase) -> Antecedent:
    """Return the entity that a first mention introduces."""
    kinds = list_kinds(token)
    words = {w.lower().strip(".") for w in phrase.text.split()}
    genders = {g for w in sorted(kinds | words) if (g := find_gender(w)) is not None}
    own = token.word
    person: bool | None
    if any(is_person_noun(k) for k in kinds) or (token.pos == "NOUN" and is_person_noun(own)):
        person = True
    elif token.pos == "NOUN" or phrase.label in _NOT_PERSON or kinds:
        person = False
    else:
        person = True if phrase.label == "PERSON" else None
    # "Harlow Bridge" is a bridge; "Aster Pictures", a company, is no picture.
    for word in (own, phrase.text.split()[0].lower()) if phrase.is_named else ():
        label = LABEL_BY_NOUN.get(word, "WORK_OF_ART")
        if label != "WORK_OF_ART" or (word == own and phrase.label in {"WORK_OF_ART", "MISC"}):
            kinds.add(word)
    if not phrase.is_named:
        kinds.add(own)
    group = phrase.label in {"ORG", "NORP"} or not kinds.isdisjoint(_GROUP_NOUNS)
    plural = True if token.tag in {"NNS", "NNPS"} else None if group else False
    gender = genders.pop() if len(genders) == 1 and person is not False else None
    return Antecedent(phrase, person, gender, plural, kinds, 0.0, token.sentence, token.dep, -1)


def list_kinds(token: Node) -> set[str]:
    """Return the nouns that the clause or an apposition calls the mention."""
    nouns: list[Node] = []
    if token.dep == "nsubj" and token.head.lemma == "be":
        nouns += [c for c in token.head.children if c.dep == "attr" and c.pos == "NOUN"]
    nouns += [c for c in token.children if c.dep == "appos" and c.pos == "NOUN"]
    if token.dep == "appos" and token.head.pos == "NOUN" and token.pos == "PROPN":
        nouns.append(token.head)
    if token.i > token.left_edge.i and token.pos == "PROPN":
        before = find_title_noun(token)
        nouns += [before] if before is not None else []
    kinds = {k.word for n in nouns for k in list_conjuncts(n) if k.pos == "NOUN"}
    for noun in nouns:
        if noun.word == "one":
            kinds |= {g.lemma for c in noun.children if c.word == "of" for g in c.children}
    return kinds - {"one", "part"}


def find_title_noun(name: Node) -> Node | None:
    """Return the common noun right before a name's words: "river" in "the river Tor"."""
    start = name
    for child in name.children:
        if child.dep in {"compound", "nmod"} and child.i < start.i:
            start = child
    at = start.tree[start.i - 1] if start.i > 0 else start
    if start.pos == "NOUN" and start is not name and start.text.islower():
        return start
    near = at.head is name or name.head is at
    return at if at.pos == "NOUN" and at.text.islower() and near else None


def rank(weighed: tuple[float, int, Antecedent]) -> tuple[float, int]:
    return weighed[:2]


def ends_name(number: Node) -> bool:
    """Return whether a number belongs to a name, as in "Shanghai 13"."""
    return any(c.dep == "compound" and c.pos == "PROPN" for c in number.children)


def is_bare_definite(token: Node) -> bool:
    """Return whether the noun stands with "the" or "this" and nothing that narrows it down."""
    if token.tag not in {"NN", "NNP", "NNS"} or token.dep in {
        "attr",
        "appos",
        "oprd",
        "conj",
        "ROOT",
    }:
        return False
    generic = token.word in GENERIC_NOUNS
    determined = False
    for child in token.children:
        if child.dep == "det":
            determined = child.word in {"the", "this"} and (child.word == "this" or not generic)
        elif (
            child.i < token.i and not (generic and child.dep == "amod")
        ) or child.dep in _NARROWING:
            return False
    return determined


def find_clause(token: Node) -> int:
    """Return the verb of the token's clause, the first one where several are coordinated."""
    at = token
    for _ in range(12):
        if at.head is at or (at.pos in {"VERB", "AUX"} and at.dep not in {"conj", "xcomp"}):
            break
        at = at.head
    return at.i


def is_expletive(token: Node) -> bool:
    """Return whether "it" stands for a clause: "it is said that", "it is easy to"."""
    if token.word != "it" or token.dep not in SUBJECTS:
        return False
    deps = {c.dep for c in token.head.children}
    if "ccomp" in deps and (token.dep == "nsubjpass" or token.head.lemma in {"seem", "appear"}):
        return True
    return token.head.lemma == "be" and "acomp" in deps and bool(deps & {"ccomp", "xcomp"})


def agrees(one: Antecedent, word: str) -> bool:
    if word in PERSON:
        gender = GENDER[word]
        return one.person is not False and one.plural is not True and one.gender in {gender, None}
    if word in THING:
        return one.person is not True and one.plural is not True
    return one.plural is not False
