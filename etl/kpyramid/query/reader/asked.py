"""What a question asks, read for the sake of its answer: names, kind of value, other words."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from kpyramid.extraction.normal import lemmatise
from kpyramid.query.pyramid.linking import LinkedQuestion
from kpyramid.query.pyramid.snapshot import LITERAL
from kpyramid.query.reader.matching import Name, Word, read_name, split_words

STOP = frozenset(
    (
        "a an the of in on at to for from by with and or as is are was were be been being do does "
        "did have has had it its this that these those there who whom whose what which when where "
        "why how many much name s he she they his her their following one into than then can could "
        "would will may might must should shall not"
    ).split()
)
"""Words that name nothing and say nothing by themselves."""
_JOINING = frozenset("of the and de da di du la le van von der den for in on at to".split())
_AGENT = re.compile(r"\w{3,}(?:er|or|ist|ian|ress)$")
_NO_AGENT = frozenset("number order letter river border colour color character water power".split())

_KINDS: Mapping[str, frozenset[str]] = {
    "who": frozenset({"PERSON", "ORG", "NORP"}),
    "where": frozenset({"GPE", "LOC", "FAC"}),
    "when": frozenset({"DATE", "TIME"}),
    "number": frozenset({"CARDINAL", "QUANTITY", "MONEY", "PERCENT", "ORDINAL"}),
}
NUMERIC = _KINDS["when"] | _KINDS["number"]
"""Types of what is told by a number."""
_LESS: Mapping[str, float] = {"ORG": 0.5, "NORP": -0.5}
"""How far what is no person fits who: "Russian" stands beside a composer, seldom for one."""
_NOUNS: Mapping[str, frozenset[str]] = {
    word: frozenset(types.split())
    for types, words in (
        ("GPE", "city country state town capital nation county village municipality province"),
        ("GPE LOC FAC", "place location region area island river mountain lake continent"),
        (
            "ORG",
            "company team club band university party league label organisation organization "
            "publisher school manufacturer institution agency group channel network airline",
        ),
        (
            "PERSON",
            "person actor author man woman leader king queen president father mother wife "
            "husband son daughter brother sister spouse child people",
        ),
        ("DATE", "year date day month time century inception birthday"),
        (
            "CARDINAL QUANTITY MONEY PERCENT",
            "number population length height elevation runtime "
            "area size amount income revenue weight",
        ),
        ("LANGUAGE NORP", "language nationality"),
        ("WORK_OF_ART PRODUCT", "book novel film movie song album series work"),
    )
    for word in words.split()
}
"""The types of what a noun stands for: "which city", "the population of"."""
_HEAD = re.compile(
    r"\b(?:what|which)\s+(?:is|are|was|were)\s+(?:the\s+|an?\s+)?(?P<of>[\w\s]+?)\s+(?:of|for|in)\b"
    r"|\b(?:what|which)\s+(?P<plain>(?!is\b|are\b|was\b|were\b|do|of\b)\w+)",
    re.IGNORECASE,
)
_KIND = re.compile(
    r"\b(?:what|which)\s+((?:\w+\s+){1,4}?)(?:is|are|was|were|do|does|did|has|have|had|will|can)\b"
    r"|\b(?:what|which)\s+(?!is\b|are\b|was\b|were\b|do|of\b)(\w+)",
    re.IGNORECASE,
)
"""The noun that says what kind of thing is asked for."""
LIGHT = frozenset(
    "be have do take get go come call locate situate base lie stand happen become know kind type "
    "sort part thing time title other two three four five i we you us our my your me "
    "person people man woman city country state town village place location region river company "
    "team club band university organisation organization year date day month century book novel "
    "film movie song album".split()
)
"""Lemmas that say nothing of what is asked, or what the form of the answer says."""
_PRONOUN = re.compile(r"\b(?:he|she|it|they|him|her|them|his|its|their)\b", re.IGNORECASE)
_AUXILIARY = re.compile(
    r"(?P<one>is|was|has|does)|(?P<several>are|were|have|do)|did|can|could|will"
)
_ASKING = re.compile(r"\b(?:who|what|which|where|when|how)\b", re.IGNORECASE)
_PLURALS = frozenset("people children men women media data".split())
_SINGULAR = ("ss", "us", "is", "series", "species")
_YES_NO = re.compile(
    r"^\W*(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|might)\b",
    re.IGNORECASE,
)


Number = Literal["one", "several", "any"]


@dataclass(frozen=True)
class Asked:
    """A question as a reader sees it."""

    text: str
    names: tuple[Name, ...]
    entities: frozenset[str]
    """Ids of the entities that it names."""
    content: tuple[Word, ...]
    """Its words without names and function words: what is said of what it names."""
    types: frozenset[str]
    """The entity types that can answer it; none when anything can."""
    number: Number = "any"
    """Whether its wording asks for one thing or for several; `any` when it leaves that open."""

    @cached_property
    def wanted(self) -> tuple[Word, ...]:
        """The content words that say what is asked of its names: its relation.

        Left out are words that the form of the answer says (`which city`, `how many people`) and
        verbs that say nothing, and the noun after which or what where anything else is left.
        """
        said = [
            w for w in self.content if w.plain not in _NOUNS and lemmatise(w.plain) not in LIGHT
        ]
        match = _KIND.search(self.text)
        kind = match.span(match.lastindex or 1) if match else (0, 0)
        left = tuple(word for word in said if not kind[0] <= word.start < kind[1])
        return left or tuple(said)

    @cached_property
    def named(self) -> frozenset[str]:
        """The stems of all words of its names."""
        return frozenset(word.stem for name in self.names for word in split_words(name.text)) - STOP

    @cached_property
    def said(self) -> frozenset[str]:
        """The stems of all its words that name or say something."""
        return self.named | {word.stem for word in self.content}

    @cached_property
    def rest(self) -> str:
        """What it says without its names."""
        return " ".join(word.plain for word in self.content)

    @property
    def is_about_nothing(self) -> bool:
        """Whether it names nothing and says only "she" or "it", or nothing at all."""
        return not self.names and (not self.wanted or bool(_PRONOUN.search(self.text)))

    @property
    def is_yes_no(self) -> bool:
        """Whether it begins like a question for yes or no."""
        return bool(_YES_NO.match(self.text))


def read_question(text: str, linked: LinkedQuestion) -> Asked:
    """A question's names, content words and the kind of its answer."""
    words = split_words(text)
    taken = _cover_names(text, words, linked)
    names = [" ".join(text[words[a].start : words[b - 1].end].split()) for a, b in taken]
    covered = {index for a, b in taken for index in range(a, b)}
    content = tuple(
        word for i, word in enumerate(words) if i not in covered and word.plain not in STOP
    )
    return Asked(
        text,
        tuple(read_name(name) for name in names),
        frozenset(linked.entities),
        content,
        _find_types(text, linked.asks_for),
        read_number(text),
    )


def fits(kind: str, asked: Asked) -> float:
    """How far something of an entity type can be the answer: 1 fully, -1 not, 0 when unclear."""
    if not asked.types or not kind:
        return 0.0
    counted = bool(asked.types & NUMERIC)
    if kind == "NOUN":  # the recogniser could not type it: it may be a name, no date or number
        return -1.0 if counted else 0.0
    if kind in asked.types:
        return _LESS.get(kind, 1.0) if asked.types == _KINDS["who"] else 1.0
    if kind == LITERAL:
        return 1.0 if counted else -1.0
    return -1.0


def _cover_names(
    text: str, words: tuple[Word, ...], linked: LinkedQuestion
) -> list[tuple[int, int]]:
    """Runs of words that are names: those the pyramid knows, and those written as names.

    A written name that holds a known one is taken whole.
    """
    runs: list[tuple[int, int]] = []
    first = 0
    while first < len(words):
        if not _begins_name(words, first):
            first += 1
            continue
        last = first + 1
        while last < len(words) and _joins(text, words, last):
            last += 1
        while words[last - 1].plain in _JOINING and not words[last - 1].large:
            last -= 1
        runs.append((first, last))
        first = last
    for name in linked.names:
        parts = [word.plain for word in split_words(name)]
        for at in range(len(words) - len(parts) + 1):
            span = (at, at + len(parts))
            if [w.plain for w in words[at : span[1]]] == parts and not any(
                a < span[1] and span[0] < b for a, b in runs
            ):
                runs.append(span)
                break
    return sorted(runs)


def _begins_name(words: tuple[Word, ...], first: int) -> bool:
    word = words[first]
    if word.large:
        return first > 0 or (word.plain not in STOP and len(words) > 1 and words[1].large)
    return word.plain[0].isdigit() and first > 0


def _joins(text: str, words: tuple[Word, ...], at: int) -> bool:
    """Whether a word goes on with the name before it."""
    between = text[words[at - 1].end : words[at].start]
    if not set(between) <= set(" .,-–'’&:/()!\"“”"):
        return False
    if words[at].large or words[at].plain[0].isdigit() or between in {"'", "’"}:
        return True
    ahead = words[at + 1 : at + 3]
    joining = words[at].plain in _JOINING and "," not in between
    return (
        joining
        and bool(ahead)
        and (ahead[0].large or (len(ahead) > 1 and ahead[0].plain in _JOINING and ahead[1].large))
    )


def _find_types(text: str, asks_for: str) -> frozenset[str]:
    match = _HEAD.search(text)
    if match:
        noun = (match["of"] or match["plain"]).casefold().split()[-1]
        for form in (noun, noun.removesuffix("s")):
            if form in _NOUNS:
                return _NOUNS[form]
        if _AGENT.match(noun) and noun not in _NO_AGENT:
            return _KINDS["who"]
    first = _ASKING.search(text)  # "who led it when it was built" asks for a person
    kind = first.group().casefold() if first else ""
    return _KINDS.get(kind if kind in _KINDS else asks_for, frozenset())


def read_number(text: str) -> Number:
    """By the verb that agrees with what is asked for, else by the noun: "which books did"."""
    asking = _ASKING.search(text)
    if not asking:
        return "any"
    if asking.group().casefold() in {"when", "how"}:
        return "one"
    words = re.findall(r"[\w'’]+", text[asking.end() :].casefold())
    if words[:1] == ["of"]:  # which of these has
        words = words[2:]
    verb = next((i for i, word in enumerate(words) if _AUXILIARY.fullmatch(word)), None)
    agreeing = _AUXILIARY.fullmatch(words[verb]) if verb is not None else None
    if verb == 0 and (words[0] not in {"is", "was", "are", "were"}):
        asks_of_these = text[asking.end() :].lstrip().startswith("of ")
        agreeing = agreeing if asks_of_these else None  # what does it make, whom has he met
        return _read_verb(agreeing) or "any"
    if asking.group().casefold() in {"who", "where"}:
        return (_read_verb(agreeing) if verb == 0 else None) or "any"
    number = _read_verb(agreeing)
    if number == "several" or not words:
        return number or "any"
    # "Which people was it founded by": the verb may agree with something else.
    noun = words[(verb or 1) - 1]
    if noun in _PLURALS:
        return "several"
    return "several" if noun.endswith("s") and not noun.endswith(_SINGULAR) else "one"


def _read_verb(verb: re.Match[str] | None) -> Number | None:
    if verb is None:
        return None
    return "one" if verb["one"] else "several" if verb["several"] else None
