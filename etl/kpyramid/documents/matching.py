"""Words, names, dates and numbers of a text, with their places; two spellings of one are equal."""

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

import Stemmer

_MONTHS = (
    "january february march april may june july august september october november december".split()
)
_MONTH = (
    r"(?P<month>january|february|march|april|may|june|july|august|september|october|november"
    r"|december|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec)\b\.?"
)
_YEAR = r"(?P<year>[12][0-9]{3})"
_DAY = r"(?P<day>[0-3]?[0-9])(?:st|nd|rd|th)?"
_DATES = tuple(
    re.compile(rf"(?<![\w-]){pattern}(?![\w-])", re.IGNORECASE)
    for pattern in (
        r"(?P<year>[0-9]{4})-(?P<month>[01]?[0-9])-(?P<day>[0-3]?[0-9])",
        r"(?P<day>[0-3]?[0-9])(?P<mark>[-/.])(?P<month>[0-3]?[0-9])(?P=mark)(?P<year>[0-9]{4})",
        rf"{_DAY}(?: of)?[ -]{_MONTH},?[ -]{_YEAR}",
        rf"{_MONTH} {_DAY},? {_YEAR}",
        rf"{_MONTH}(?: of)?,? {_YEAR}",
    )
)
_YEARS = re.compile(rf"(?<![\w.,-]){_YEAR}(?![\w-]|[.,][0-9])(?!\s*%)")
_NUMBERS = re.compile(
    r"(?<![\w.,-])[-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?"
    r"(?:\s(?P<scale>thousand|million|billion|trillion)\b)?(?![0-9]|[.,][0-9])",
    re.IGNORECASE,
)
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_DIGIT = re.compile(r"[0-9]")
_UNIT = re.compile(r"\s?(?:%|[^\W\d]+[²³]?)?")


@dataclass(frozen=True, slots=True)
class Date:
    """A day, or a month or year when nothing finer is said."""

    year: int
    month: int = 0
    day: int = 0

    def agree(self, stated: "Date") -> float:
        """How far a stated date says this one: 1 when it does, 0 when it says another.

        A finer date says a coarser one. The first of January often stands for a year of which no
        day is known.
        """
        if self == stated:
            return 1.0
        if self.year != stated.year:
            return 0.0
        if (self.month, self.day) == (1, 1) and not stated.month:
            return 0.85
        if self.month not in (0, stated.month) or self.day not in (0, stated.day):
            return 0.0
        return 0.9


@dataclass(frozen=True, slots=True)
class Value:
    """A date or number and the characters that state it."""

    start: int
    end: int
    value: Date | Decimal


@lru_cache(maxsize=8192)
def find_values(text: str) -> tuple[Value, ...]:
    """The dates and numbers of a text in its order; a number within a date is not one."""
    if not _DIGIT.search(text):
        return ()
    found: list[Value] = []
    for pattern in _DATES:
        for match in pattern.finditer(text):
            date = _read_date(match)
            if date and not _overlaps(match, found):
                found.append(Value(match.start(), match.end(), date))
    for match in _YEARS.finditer(text):
        if not _overlaps(match, found):
            found.append(Value(match.start(), match.end(), Date(int(match["year"]))))
    for match in _NUMBERS.finditer(text):
        if not _overlaps(match, found):
            found.append(Value(match.start(), match.end(), _read_number(match)))
    return tuple(sorted(found, key=lambda value: value.start))


def read_value(text: str) -> Date | Decimal | None:
    """The one date or number that a text consists of, with a unit at most."""
    stripped = text.strip().strip("\"'")
    found = find_values(stripped)
    if len(found) != 1 or found[0].start != 0:
        return None
    rest = stripped[found[0].end :]
    return found[0].value if _UNIT.fullmatch(rest) else None


def agree(wanted: Date | Decimal, stated: Date | Decimal) -> float:
    """How far a stated value says the wanted one, 0 to 1."""
    if isinstance(wanted, Date) and isinstance(stated, Date):
        return wanted.agree(stated)
    if isinstance(wanted, Decimal) and isinstance(stated, Decimal):
        return 1.0 if wanted == stated else 0.0
    year, other = (wanted, stated) if isinstance(wanted, Date) else (stated, wanted)
    # "1,815" members and the year 1815 are written alike, and rarely mean each other.
    return 0.3 if isinstance(year, Date) and not year.month and year.year == other else 0.0


def _read_date(match: re.Match[str]) -> Date | None:
    parts = match.groupdict()
    month = parts["month"]
    number = int(month) if month.isdigit() else _find_month(month)
    day = int(parts.get("day") or 0)
    if number > 12 >= day > 0:  # the month first: 11/30/1977
        number, day = day, number
    return Date(int(parts["year"]), number, day) if 1 <= number <= 12 and day <= 31 else None


def _find_month(name: str) -> int:
    start = name[:3].casefold()
    return next(i for i, month in enumerate(_MONTHS, 1) if month.startswith(start))


def _read_number(match: re.Match[str]) -> Decimal:
    digits, scale = match.group(), match["scale"]
    if scale:
        digits = digits[: -len(scale)].strip()
    return Decimal(digits.replace(",", "")) * _SCALES.get((scale or "").casefold(), 1)


def _overlaps(match: re.Match[str], found: list[Value]) -> bool:
    return any(value.start < match.end() and match.start() < value.end for value in found)


# Words and names.

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
_PLAIN_WORD = re.compile(r"[^\W_]+(?:[-.][^\W_]+)*")
_POSSESSIVE = re.compile(r"['’]s\b|(?<=s)['’](?=\s|$)")
_STEM = 5
"""Letters that words of one stem begin with at least."""
_AKIN = 4
"""Letters that words of one root share at least: direct-or and direct-ed."""
_WORD_OR_INITIALS = re.compile(r"\b(?:[^\W\d_]\.){2,}(?:[^\W\d_]\b)?|\w+")
"""A word, or initials with their stops: `A.C.` is `AC`."""
_IN_BRACKETS = re.compile(r"\s*\([^)]*\)\s*$")
_ARTICLES = frozenset({"the", "a", "an"})
_STEMMER = Stemmer.Stemmer("english")
_GENERIC = 0.5
"""Share of the candidates from which a word that they have in common tells none apart."""
_PART = re.compile(r"\s*[,;/]\s*")
_SHORTEST = 3
"""Letters of a word that stands for a name by itself."""


class Word(NamedTuple):
    """A word's stem and plain form, its place, and whether it is written large."""

    plain: str
    stem: str
    start: int
    end: int
    large: bool


@dataclass(frozen=True, slots=True)
class Place:
    """Words `first` to `last`, exclusive, of a text, and how surely they are the name: 0 to 1."""

    first: int
    last: int
    strength: float


@dataclass(frozen=True, slots=True)
class Name:
    """What is looked for: forms in plain words, each with how surely it means it; or a value."""

    text: str
    forms: tuple[tuple[tuple[str, ...], float], ...]
    value: Date | Decimal | None = None


@lru_cache(maxsize=4096)
def split_words(text: str) -> tuple[Word, ...]:
    """The words of a text without case and accents, with their places."""
    return tuple(
        Word(*_read_word(match.group()), match.start(), match.end(), match.group()[0].isupper())
        for match in _WORD_OR_INITIALS.finditer(text)
    )


@lru_cache(maxsize=100_000)
def _read_word(written: str) -> tuple[str, str]:
    """Plain form and stem of a word."""
    plain = _fold(written.replace(".", ""))
    return plain, _stem(plain)


def read_name(text: str, aliases: Collection[str] = ()) -> Name:
    """A name with its other forms: those given, and itself without article or aside."""
    return _read_name(text, tuple(aliases))


@lru_cache(maxsize=4096)
def _read_name(text: str, aliases: tuple[str, ...]) -> Name:
    forms: dict[tuple[str, ...], float] = {}
    for form, strength in (
        (text, 1.0),
        (_IN_BRACKETS.sub("", text), 0.95),
        (_PART.split(text)[0], 0.6),
        *((a, 0.95) for a in aliases),
    ):
        words = tuple(word.plain for word in split_words(form))
        if words[:1] and words[0] in _ARTICLES and len(words) > 1:
            words = words[1:]
        if words and words not in forms:
            forms[words] = strength
    return Name(text, tuple(forms.items()), read_value(text))


def read_names(texts: Sequence[str], aliases: Sequence[Collection[str]]) -> list[Name]:
    """The names of candidates, each also by the words that only it has.

    What most candidates share ("language" of "German language") tells none of them apart.
    """
    names = [read_name(text, forms) for text, forms in zip(texts, aliases, strict=True)]
    counts: dict[str, int] = {}
    for name in names:
        for word in {word for form, _ in name.forms[:1] for word in form}:
            counts[word] = counts.get(word, 0) + 1
    generic = {word for word, count in counts.items() if count > _GENERIC * len(names) > 1}
    return [_add_distinctive(name, generic, counts) for name in names]


def find_name(name: Name, words: Sequence[Word], values: Sequence[Value]) -> list[Place]:
    """Where a text says a name, surest first; `values` are the text's dates and numbers."""
    if name.value is not None:
        return _find_places_of_value(name.value, words, values)
    found: dict[tuple[int, int], float] = {}
    for form, strength in name.forms:
        stems = tuple(_stem(word) for word in form)
        for first in range(len(words) - len(form) + 1):
            run = words[first : first + len(form)]
            if run[0].stem != stems[0]:
                continue
            if tuple(word.plain for word in run) == form:
                sure = strength
            elif tuple(word.stem for word in run) == stems:
                sure = 0.9 * strength
            else:
                continue
            span = (first, first + len(form))
            sure *= _weigh_neighbours(run, words, *span)
            found[span] = max(found.get(span, 0.0), sure)
    longest = [  # "Berrin" within "Tomas Berrin" is no place of its own
        span
        for span in found
        if not any(a <= span[0] and span[1] <= b for a, b in found if (a, b) != span)
    ]
    places = [Place(*span, found[span]) for span in longest]
    return sorted(places, key=lambda place: (-place.strength, place.first, place.last))


def _find_places_of_value(
    wanted: Date | Decimal, words: Sequence[Word], values: Sequence[Value]
) -> list[Place]:
    places = []
    for value in values:
        sure = agree(wanted, value.value)
        covered = [i for i, w in enumerate(words) if value.start <= w.start < value.end]
        if sure and covered:
            places.append(Place(covered[0], covered[-1] + 1, sure))
    return sorted(places, key=lambda place: (-place.strength, place.first))


def _weigh_neighbours(run: Sequence[Word], words: Sequence[Word], first: int, last: int) -> float:
    """Less for a name that is part of a longer one: `London` in `London Bridge Company`."""
    if not run[0].large:
        return 1.0
    after = words[last] if last < len(words) else None
    before = words[first - 1] if first else None
    weight = 1.0
    if after and after.large and after.start == run[-1].end + 1:
        weight *= 0.6
    apart = before is None or before.plain in _ARTICLES
    if before and not apart and first > 1 and before.large and run[0].start == before.end + 1:
        weight *= 0.8
    return weight


def _add_distinctive(name: Name, generic: set[str], counts: dict[str, int]) -> Name:
    full = name.forms[0][0] if name.forms else ()
    forms = dict(name.forms)
    kept = tuple(word for word in full if word not in generic)
    if kept and kept != full:
        forms.setdefault(kept, 0.8)
    last = full[-1:]
    if len(full) > 1 and len(last[0]) >= _SHORTEST and counts[last[0]] == 1 and last[0].isalpha():
        forms.setdefault(last, 0.5)
    return Name(name.text, tuple(forms.items()), name.value)


@lru_cache(maxsize=100_000)
def _fold(word: str) -> str:
    parts = unicodedata.normalize("NFKD", word)
    return "".join(c for c in parts if not unicodedata.combining(c)).casefold()


@lru_cache(maxsize=100_000)
def _stem(word: str) -> str:
    return str(_STEMMER.stemWord(word))


STOP = frozenset(
    (
        "a an the of in on at to for from by with and or as is are was were be been being do does "
        "did have has had it its this that these those there who whom whose what which when where "
        "why how many much name s he she they his her their following one into than then can could "
        "would will may might must should shall not"
    ).split()
)
"""Words that name nothing and say nothing by themselves."""


def list_plain_words(text: str) -> list[str]:
    """The words of a text in small letters."""
    return [word.casefold() for word in match_plain_words(text)]


def match_plain_words(text: str) -> list[str]:
    return _PLAIN_WORD.findall(_POSSESSIVE.sub(" ", text))


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


def is_akin(word: Word, other: Word) -> bool:
    """Whether two words are of one root: the same stem, or its first letters alike."""
    if word.stem == other.stem:
        return True
    if word.plain[:_AKIN] != other.plain[:_AKIN]:
        return False
    shared = 0
    for a, b in zip(word.plain, other.plain, strict=False):
        if a != b:
            break
        shared += 1
    return shared >= max(_AKIN, 0.6 * max(len(word.stem), len(other.stem)))
