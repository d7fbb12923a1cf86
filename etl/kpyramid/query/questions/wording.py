"""The English of questions: forms of asking, degrees, negations; no vocabulary of a field."""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from kpyramid.extraction.normal import lemmatise

_WORD = re.compile(r"[^\W_]+(?:[-.@&+:/]?[^\W_]+)*")
_POSSESSIVE = re.compile(r"['’]s\b|(?<=s)['’](?=\s)")
_NUMBER = re.compile(r"[0-9][0-9,]{0,19}(?:\.[0-9]{1,9})?")
_MOST_ROWS = 10_000
_STEM = 5
"""Letters that words of one stem begin with at least."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\W]+")
_BRACKETS = re.compile(r"\(([^)]*)\)")

FUNCTION = frozenset(
    (
        "a an the of in on at to for from by with within as is are was were be been being am do "
        "does did done have has had having can could may might will would shall should i me my we "
        "us our ours you your he she it its they them their his her this that these those there "
        "here over about among which what who whom whose where when how any some all every please "
        "and or also so if then just exactly currently now out up ms mr mrs dr miss prof"
    ).split()
)
"""Words that hold a question together and name nothing."""

LIGHT = frozenset(
    (
        "get give show tell list find know want need see look exist belong locate come base "
        "situate take make use call available work include contain display return enumerate print"
    ).split()
)
"""Lemmas of verbs of asking, being and having: what they say is said by the path anyway."""

PRONOUNS = frozenset("we i you they one".split())
"""What we "offer", "sell" or "use" is what there is: the verb after one of these says no more."""

NEGATIONS = frozenset(
    "not no never without none neither nor except excluding lack lacking nobody nothing n't".split()
)
PERSON_WORDS = frozenset("person people human individual agent employee worker member".split())
PLACE_WORDS = frozenset("place location country city town region address locality site".split())
KIND_WORDS = frozenset("category kind type genre class classification sort".split())
"""What a property or a class is called by whose individuals are kinds of things."""
NAME_WORDS = frozenset("name title label".split())
CODE_WORDS = frozenset("id identifier code number sku isbn doi".split())

ADJECTIVES: dict[str, tuple[tuple[str, ...], int]] = {
    "expensive": (("price", "cost"), 1), "cheap": (("price", "cost"), -1),
    "costly": (("price", "cost"), 1), "heavy": (("weight", "mass"), 1),
    "light": (("weight", "mass"), -1), "tall": (("height",), 1),
    "high": (("height", "elevation"), 1),
    "low": (("height", "elevation"), -1), "wide": (("width",), 1), "broad": (("width",), 1),
    "narrow": (("width",), -1), "deep": (("depth",), 1), "shallow": (("depth",), -1),
    "long": (("length", "duration", "time"), 1),
    "short": (("length", "height", "duration", "time"), -1),
    "old": (("age",), 1), "young": (("age",), -1), "fast": (("speed",), 1),
    "slow": (("speed",), -1),
    "populous": (("population",), 1), "large": (("area", "size"), 1), "big": (("area", "size"), 1),
    "small": (("area", "size"), -1),
}  # fmt: skip
"""What an adjective of degree measures, and which end of the scale it stands for."""

UPPER = frozenset("most high great large big maximum max good top".split())
LOWER = frozenset("least low small minimum min few bad".split())
"""Lemmas of degrees that take the noun after them as the measure: "the highest price"."""

AGGREGATES = {
    "average": "AVG", "mean": "AVG", "total": "SUM", "sum": "SUM", "overall": "SUM",
    "maximum": "MAX", "minimum": "MIN",
}  # fmt: skip
UNITS = {
    "gram": "g", "gramme": "g", "kilogram": "kg", "kilo": "kg", "ton": "t", "tonne": "t",
    "millimeter": "mm", "millimetre": "mm", "centimeter": "cm", "centimetre": "cm",
    "meter": "m", "metre": "m", "kilometer": "km", "kilometre": "km", "litre": "l", "liter": "l",
}  # fmt: skip
"""Units in words; a number with one is compared only with a property whose label has its sign."""
NUMBERS = dict(
    zip("one two three four five six seven eight nine ten".split(), range(1, 11), strict=True)
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the question: as written, in small letters, its dictionary form."""

    text: str
    lower: str
    lemma: str

    @property
    def is_name(self) -> bool:
        """Whether it is written as names and codes are."""
        return self.text[0].isupper() or any(c.isdigit() for c in self.text)

    @property
    def is_function(self) -> bool:
        """Whether it only holds the question together; `US` is no pronoun."""
        shouted = len(self.text) > 1 and self.text.isupper()
        return not shouted and (self.lower in FUNCTION or self.lemma in FUNCTION)

    @property
    def is_code(self) -> bool:
        """Whether it is made of letters and digits."""
        return any(c.isdigit() for c in self.text) and any(c.isalpha() for c in self.text)


def read_words(question: str) -> list[Word]:
    """The words of a question without punctuation and possessive endings."""
    plain = _POSSESSIVE.sub(" ", question.replace("n't", " not").replace("n’t", " not"))
    return [Word(m, m.casefold(), find_lemma(m.casefold())) for m in _WORD.findall(plain)]


@lru_cache(maxsize=50_000)
def find_lemma(word: str) -> str:
    """The dictionary form; a plural of an abbreviation or a name loses its s."""
    if "-" in word and word.replace("-", "").isalpha():
        word = word.replace("-", "")  # e-mail and email
    lemma = lemmatise(word)
    if (
        lemma == word
        and len(word) > 3
        and word.endswith("s")
        and not word.endswith(("ss", "us", "is"))
    ):
        return word[:-1]
    return lemma


def split_lemmas(phrase: str) -> tuple[str, ...]:
    """The lemmas of a phrase in small letters."""
    return tuple(find_lemma(m.casefold()) for m in _WORD.findall(phrase))


def split_local_name(iri: str) -> str:
    """The words of an IRI's last part: `.../hasBomPart` gives `has Bom Part`."""
    local = re.split(r"[#/]", iri.rstrip("#/"))[-1]
    return " ".join(part for part in _CAMEL.split(local) if part)


def vary_name(name: str) -> list[str]:
    """A label and what it says in brackets, each by itself: `weight (g)` gives `weight` and `g`."""
    plain = " ".join(_BRACKETS.sub(" ", name).split())
    inner = [part.strip() for part in _BRACKETS.findall(name)]
    return [part for part in (plain, *inner) if part]


def read_gloss(comment: str) -> str:
    """A synonym that a comment ends with in brackets: `city` of `The locality (city).`."""
    match = re.search(r"\(([\w -]+)\)\s*\.?\s*$", comment)
    return match.group(1) if match else ""


def share_stem(one: str, other: str) -> bool:
    """Whether two words are of one stem: `expert` and `expertise`, `phone` and `telephone`."""
    if min(len(one), len(other)) < _STEM:
        return False
    if one.endswith(other) or other.endswith(one):
        return True
    if one[:_STEM] != other[:_STEM]:
        return False
    shortest = min(len(one), len(other))
    common = next((at for at in range(_STEM, shortest) if one[at] != other[at]), shortest)
    return common >= 0.5 * max(len(one), len(other))


def is_typo(one: str, other: str) -> bool:
    """Whether two long words differ by a slip of the fingers: `resposible`, `pontiometer`."""
    if min(len(one), len(other)) < 8 or one[0] != other[0]:
        return False
    return SequenceMatcher(None, one, other, autojunk=False).ratio() >= 0.9


def read_number(word: str) -> float | None:
    """The number that a word states."""
    if word in NUMBERS:
        return float(NUMBERS[word])
    return float(word.replace(",", "")) if _NUMBER.fullmatch(word) else None


def read_top(word: str) -> int | None:
    """The number of rows that a word asks for: whole, one or more, and no more than anybody reads.

    A larger one is no number of rows but part of a name.
    """
    number = read_number(word)
    return int(number) if number and number in range(1, _MOST_ROWS + 1) else None
