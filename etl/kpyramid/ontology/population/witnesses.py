"""Witnesses of a kind: the evidence for an individual's class, and its amount.

The recogniser's tag alone makes nothing a person or an organisation. A class needs two independent
witnesses: the tag of most mentions, the form of the name, the words beside it, the verbs that it is
the subject of. An explicit statement, as `X is a river`, or the `River` of a name counts as two.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from kpyramid.documents.values import MONTH
from kpyramid.documents.words import (
    AUXILIARIES,
    JOINING,
    MODALS,
    POINTING,
    PREPOSITIONS,
    PRONOUNS,
    lemmatise,
    read_words,
)
from kpyramid.extraction.syntax.kinds import LABEL_BY_NOUN, PERSON_NOUNS, find_kind_label
from kpyramid.extraction.syntax.tree import PLACES
from kpyramid.ontology.names import THING
from kpyramid.ontology.schema import Schema

WORDS = read_words(__file__, "witnesses.toml")
"""Lists of words; `witnesses.toml` explains each."""

RELATIVES, ROLES, MEASURES = WORDS["relatives"], WORDS["roles"], WORDS["measures"]
VAGUE, FIRMS = WORDS["vague"], WORDS["firms"]
LEAST = 2
"""Witnesses that a class needs."""
_STRONG = 2
"""Weight of an explicitly stated kind."""
_MANY = 3
"""Least number of mentions that decide the class if all have one tag."""
CONFIDENCE = {2: 0.8, 3: 0.9}
"""Confidence of a class by the number of its witnesses."""
_MOST = 0.95
"""Confidence of a class with more witnesses."""

_WORKS = frozenset({"WORK_OF_ART", "LAW"})
_AGENTS = frozenset({"PERSON", "ORG", "GPE", "NORP"})

_HEADS = {"ORG": "bodies", "FAC": "sites", "LAW": "laws", "EVENT": "events", "LOC": "nature"}
"""Tag, and the list of words at the end of names with this tag."""

_TOKEN = re.compile(r"[^\W_]+(?:[-'’.&][^\W_]+)*\.?")
_LARGE = re.compile(r"(?<=[^.!?\"“”\s]\s)[A-Z][^\W\d_]+")
"""A word with a capital that does not open a sentence."""
_SMALL = re.compile(r"(?<![\w-])[a-z][^\W\d_]*")
_AFTER_HEAD = re.compile(
    r"\s(?:of|in|for|from|at|on|near|between|by|via|under|within|with|to|that|who|which)\s|[,(:;]"
)
_JOINED = re.compile(r"\s(?:and|or|&)\s|/")
_JOINED_PHRASES = re.compile(r"\s(?:and|or)\s(?:the|a|an)\s")
_INITIALS = re.compile(r"(?:[A-Z]\.)+[A-Z]?\.?")
_CAPITALS = re.compile(r"[A-Z][A-Z0-9&.-]{1,6}")
_PARTICLES = frozenset(
    "de del della der den di da do dos du das la le van von zu al el bin ibn ben y".split()
)
_YEAR = re.compile(r"\b1[0-9]{3}\b|\b20[0-9]{2}\b")
_LIFE = re.compile(
    rf"\s*\((?:[^()]{{0,40}}[;,]\s*)?(?:born|née|b\.|c\.\s|[0-9]|{MONTH})[^()]{{0,60}}[0-9]{{4}}",
    re.IGNORECASE,
)
"""The years of a life: `(born 6 March 1985`, `(1650–1722)`."""
_IN = re.compile(
    r"\b(?:in|from|near|of|at|to|outside|across)\s+(?:the\s+)?$|[A-Z][\w.]*[a-z.],\s+$"
)
_LONG_FORM = re.compile(
    r"((?:[A-Z][\w'’-]*|of|and|for|the|&)(?:\s(?:[A-Z][\w'’-]*|of|and|for|the|&))+)\s*\($"
)
_LONG_FORM_AFTER = re.compile(r"\s*\(([A-Z][^()]{5,80})\)")
_BESIDE = re.compile(
    r"\b([a-z][a-z-]+)\s+(?:(such as|like|called|named)\s+|of\s+)?[\"“]?(?:the\s+)?$"
)
_ANY = re.compile(r"\b(?:an?|another|any|each|every|no|most|many|some|several)\s+$", re.IGNORECASE)
"""Determiners of common nouns that no name has."""
_BEHIND = AUXILIARIES | MODALS | JOINING | PREPOSITIONS | PRONOUNS | POINTING | {"who", "which"}
_WHOLE = re.compile(rf"\s*(?:[^\w\s]|$)|\s+(?:{'|'.join(sorted(_BEHIND))})\b")
"""What follows a whole noun phrase: `an FHA loan` is not one of FHA."""
_QUOTED = re.compile(r"[\"“”]|''|``")


class WordForms:
    """Counts of a corpus's words in small letters, and with a capital within a sentence."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._small: Counter[str] = Counter()
        self._large: Counter[str] = Counter()
        for text in texts:
            self._small.update(_SMALL.findall(text))
            self._large.update(word.casefold() for word in _LARGE.findall(text))

    def is_common(self, word: str) -> bool:
        """Whether a word is in small letters at least as often as with a capital."""
        plain = word.casefold()
        small = self._small[plain]
        base = lemmatise(plain)
        if base != plain:
            small += self._small[base]
        return small >= max(1, self._large[plain])


@dataclass(frozen=True, slots=True)
class Use:
    """A mention: its type, and the text before and after it."""

    type: str
    before: str
    after: str


@dataclass
class Evidence:
    """The evidence of a corpus on one individual.

    `stated`: nouns that sentences say it is. `is_kind`: other things are said to be it, so it is no
    name. `deeds`: lemmas of the verbs that it is the subject of. `ends`: the classes by the
    properties of its facts whose other end fits.
    """

    name: str
    uses: list[Use] = field(default_factory=list)
    stated: set[str] = field(default_factory=set)
    is_kind: bool = False
    deeds: set[str] = field(default_factory=set)
    ends: dict[tuple[str, ...], frozenset[str]] = field(default_factory=dict)

    @cached_property
    def tag(self) -> str | None:
        """The tag of at least half of the mentions, untyped ones among them; None without any."""
        counts = Counter(use.type for use in self.uses)
        tag = min(counts, key=lambda t: (t == "NOUN", -counts[t], t), default="NOUN")
        return tag if tag != "NOUN" and 2 * counts[tag] >= counts.total() else None


def find_confidence(witnesses: int) -> float:
    """Confidence of a class by its number of witnesses: the measured share of right ones.

    The values of properties follow: if both ends have their classes by witnesses, half the doubt
    about the sentence remains (`checking.confirm`); a type alone takes a tenth, a class that only
    the property suggests three tenths.
    """
    return CONFIDENCE.get(witnesses, _MOST)


class Witnesses:
    """Counts the witnesses for the classes of individuals."""

    def __init__(self, schema: Schema, forms: WordForms) -> None:
        self._schema = schema
        self._forms = forms

    def is_common(self, name: str) -> bool:
        """Whether a name is none: all its words with a capital are common ones."""
        words = _TOKEN.findall(name)
        return not any(word[:1].isupper() and not self._is_common(word) for word in words)

    def count(self, evidence: Evidence) -> dict[str, int]:
        """The number of witnesses of the best class and of those above it, if there are enough.

        Of two with equal numbers the tag decides; a unanimous tag of many mentions decides alone.
        """
        scores: Counter[str] = Counter()
        for label in self._list_labels(evidence):
            if class_iri := self._schema.class_for_type(label):
                number = self._count_label(label, class_iri, evidence)
                scores[class_iri] = max(scores[class_iri], number)
        tag = self._schema.class_for_type(evidence.tag or "")
        order = sorted(scores, key=lambda iri: (-scores[iri], iri != tag, iri))
        is_sure = len(evidence.uses) >= _MANY and len({use.type for use in evidence.uses}) == 1
        best = tag if is_sure and scores[tag or ""] >= LEAST else next(iter(order), None)
        return {
            iri: scores[iri]
            for iri in order
            if scores[iri] >= LEAST and best is not None and self._schema.is_subclass(best, iri)
        }

    def refutes_tag(self, evidence: Evidence) -> bool:
        """Whether the form of the name contradicts the recogniser's tag."""
        tag = evidence.tag
        is_small = evidence.name[:1].islower()  # "paper Knots in Water" holds a name
        return tag is not None and not is_small and self._judge_form(evidence.name, tag) < 0

    def overrule_tag(self, evidence: Evidence, known: Iterable[str]) -> str | None:
        """The narrowest class that facts of two properties give a name, if the tag excludes it.

        `known`: the classes by other evidence; all must be related to it.
        """
        schema, stated = self._schema, evidence.ends.values()
        claims = schema.list_classes_for_type(evidence.tag or "")
        classes = {iri for ends in stated for iri in ends} - {THING}
        others = classes.union(known)
        fitting = [
            iri
            for iri in classes
            if sum(all(schema.is_subclass(end, iri) for end in ends) for ends in stated) >= LEAST
            and all(schema.may_share(iri, other) for other in others)
            and not any(schema.may_share(iri, claim) for claim in claims)
        ]
        if not evidence.name[:1].isupper() or self.is_common(evidence.name):
            return None
        return max(fitting, key=lambda c: (len(schema.find_ancestors(c)), c), default=None)

    def _list_labels(self, evidence: Evidence) -> list[str]:
        beside = (before for use in evidence.uses if (before := _BESIDE.search(use.before)))
        nouns = {*evidence.stated, *(lemmatise(before[1]) for before in beside)}
        labels = {use.type for use in evidence.uses} | {*map(find_label, nouns)}
        return sorted(filter(None, labels | {find_head_label(evidence.name)}))

    def _count_label(self, label: str, class_iri: str, evidence: Evidence) -> int:
        form = self._judge_form(evidence.name, label)
        tag = evidence.tag
        has_article = any(use.before.endswith(("the ", "The ")) for use in evidence.uses)
        if _is_counted(evidence) or form < 0 or (label == "PERSON" and has_article):
            return 0  # `the Aztecs` are no person
        number = form + (tag == label)
        number += tag != "PERSON" and find_head_label(evidence.name) == label
        nouns = [noun for noun in evidence.stated if find_label(noun) == label]
        if nouns:
            is_sure = label != "EVENT" and any(map(_is_listed, nouns))
            number += _STRONG if is_sure else 1
        elif label == "ORG":  # a museum and a station are bodies, too
            number += any(find_label(noun) == "FAC" for noun in evidence.stated)
        number += max((self._weigh_beside(use, label) for use in evidence.uses), default=0)
        number += label in _AGENTS and bool(evidence.deeds & WORDS["deeds"])
        number += any(
            ends and all(self._schema.is_subclass(end, class_iri) for end in ends)
            for ends in evidence.ends.values()
        )
        return number

    def _is_common(self, word: str) -> bool:
        if _CAPITALS.fullmatch(word) or _INITIALS.fullmatch(word):
            return False
        return self._forms.is_common(word.removesuffix("'s").removesuffix("’s"))

    def _judge_form(self, name: str, label: str) -> int:
        """The form of a name for a kind: 1 if it fits, -1 if it is another kind's, else 0."""
        words = _split(name)
        if label == "EVENT" and words and _YEAR.fullmatch(words[0]):
            words = words[1:]
        if not words or not words[0][0].isupper() or words[-1][0].islower():
            return -1
        if _JOINED_PHRASES.search(name) or (label == "EVENT" and _JOINED.search(name)):
            return -1
        if len(words) == 1 and _is_listed(lemmatise(name.casefold())):
            return -1
        if not any(sum(map(str.isalpha, word)) > 1 for word in words):
            return -1
        head = find_head_label(name)
        if label not in _WORKS and head is None and self.is_common(name):
            return -1
        if head == label or (label == "GPE" and words[-1].casefold() in WORDS["areas"]):
            return 0 if label == "GPE" and _JOINED.search(name) else 1
        if label in ("PERSON", "GPE", "LOC") and (
            _JOINED.search(name) or any(c.isdigit() for c in name)
        ):
            return -1
        if label == "PERSON":
            return self._judge_person(name, words, head)
        if head is not None and not (
            {head, label} <= PLACES or (head, label) == ("FAC", "ORG") or label in _WORKS
        ):
            return -1
        if label in ("GPE", "LOC"):
            if head is not None or (_CAPITALS.fullmatch(words[-1]) and len(words) == 1):
                return 0
            return -1 if self._is_common(words[-1]) else 1
        if label in ("NORP", "LANGUAGE"):
            return -1 if _CAPITALS.fullmatch(name) else 1
        if label in ("ORG", "FAC"):
            is_excluded = any(word.isdigit() for word in words) or self._is_common(words[-1])
            return -1 if is_excluded and head is None else 0
        return int(label == "EVENT" and bool(_YEAR.search(name)))

    def _judge_person(self, name: str, words: Sequence[str], head: str | None) -> int:
        if words[0].rstrip(".").casefold() in WORDS["titles"]:
            return int(len(words) > 1)
        if any(not word[0].isupper() and word not in _PARTICLES for word in words):
            return -1
        if len(words) == 1:
            return -1 if _CAPITALS.fullmatch(words[0]) else 0
        if head is not None:
            return 0 if head in PLACES and len(words) == 2 else -1
        is_odd = " of " in name or len(words[-1]) == 1
        return int(not (is_odd or any(map(self._is_common, (words[-1], words[0])))))

    def _weigh_beside(self, use: Use, label: str) -> int:
        """The weight of the words beside a mention: 0, 1, or 2 for `games like X`."""
        before = _BESIDE.search(use.before)
        if before is not None and find_label(lemmatise(before[1])) == label != "EVENT":
            return _STRONG if before[2] else 1
        if label == "ORG":
            full = _LONG_FORM_AFTER.match(use.after) or _LONG_FORM.search(use.before)
            return int(full is not None and find_head_label(full[1]) == "ORG")
        if label in ("GPE", "LOC"):
            return int(_IN.search(use.before) is not None)
        if label in _WORKS:
            return int(bool(_QUOTED.match(use.after) and _QUOTED.search(use.before[-2:])))
        if label != "PERSON":
            return 0
        title = use.before.split()[-1:]
        is_titled = bool(title) and title[0].rstrip(".").casefold() in WORDS["titles"]
        return int(is_titled or _LIFE.match(use.after) is not None)


def _is_counted(evidence: Evidence) -> bool:
    """Whether half of the uses of a name are those of a common noun: `an LLC`, `each ETF`."""
    counted = sum(
        _ANY.search(use.before) is not None and _WHOLE.match(use.after) is not None
        for use in evidence.uses
    )
    return counted > 0 and 2 * counted >= len(evidence.uses)


def _is_listed(noun: str) -> bool:
    """Whether a kind noun is listed, not recognised by its ending."""
    return noun in LABEL_BY_NOUN or noun in PERSON_NOUNS


def find_deed(relation: str) -> str:
    """The verb of a relation's normal form."""
    words = (word for word in relation.split() if word not in MODALS)
    return next((word for word in words if word not in ("have", "be")), "")


def find_label(noun: str) -> str | None:
    """The tag of a kind noun; None for nouns of several kinds."""
    return None if noun in ROLES else find_kind_label(noun)


def find_head_label(name: str) -> str | None:
    """The tag by the capitalised head of a name: `River` of `Red River`."""
    words = _split(name)
    if not words or not words[-1][0].isupper():
        return None
    head = words[-1].rstrip(".").casefold()
    if len(words) == 1 and (lemmatise(head) != head or not name.startswith(f"{words[0]} of ")):
        return None
    for label, list_name in _HEADS.items():
        if head in WORDS[list_name]:
            return label
    return LABEL_BY_NOUN.get(lemmatise(head))


def _split(name: str) -> list[str]:
    """The words of a name up to its first complement."""
    return _TOKEN.findall(_AFTER_HEAD.split(name, maxsplit=1)[0])
