"""A name's parts: words in small ASCII letters, titles, legal endings, numbers, small words."""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from anyascii import anyascii

_WORD = re.compile(r"[^\W_]+(?:['’.][^\W_]+)*")
_POSSESSIVE = re.compile(r"\s?['’][sS]?$")
_INNER_POSSESSIVE = re.compile(r"\s?['’][sS](?=\s)|(?<=[sS])['’](?=\s)")
_NOT_LETTERS = re.compile(r"[^a-z0-9]+")
_ROMAN = re.compile(r"(?=[ivx])x{0,3}(?:ix|iv|v?i{0,3})$")
_ARTICLES = frozenset({"the", "a", "an"})
_OWNED = "s"
"""Stands for the possessive ending within a name; a link as `of` is."""

TITLES = frozenset(
    """
    mr mrs ms miss mx master madam madame monsieur mme mlle herr frau signor signora senor senora
    don dona sir dame lord lady baron baroness count countess earl duke duchess marquess viscount
    prince princess king queen emperor empress tsar czar sultan shah emir sheikh caliph pharaoh
    pope cardinal archbishop bishop abbot father mother brother sister rabbi imam reverend rev
    pastor dr doctor prof professor president chancellor premier minister senator sen
    congressman congresswoman representative rep governor gov mayor ambassador secretary
    judge justice general gen colonel col major maj captain capt lieutenant lt sergeant
    sgt corporal cpl admiral commander marshal officer detective inspector coach
    chairman chairwoman director
    """.split()
)
"""Words that go before a person's name and are no part of it."""

WIVES = frozenset("mrs miss madame mme mlle frau signora senora".split())
"""Titles that, with a surname alone, may name a relative of the man of that name."""

ENDINGS = frozenset(
    """
    inc incorporated corp corporation co company ltd limited llc llp lp plc gmbh ag kg sa sas sarl
    spa srl nv bv ab oy oyj asa as kk pty pvt bhd tbk jr junior esq phd md
    """.split()
)
"""Legal forms of firms, the younger generation, degrees: short forms leave them out."""

ELDER = frozenset({"sr", "senior", "elder"})
"""The older generation: said only where the younger one bears the same name."""

PARTICLES = frozenset(
    "de del della der den di da do dos du das la le van von zu al el bin ibn ben".split()
)
"""Small words within names of persons."""

LINKS = frozenset(
    """
    of and or in on at for to from with by under over against vs versus the between as about near
    into upon without s
    """.split()
)
"""Small words that join two names, or a name to a noun."""

PLACE_MODIFIERS = frozenset(
    """
    north south east west northern southern eastern western northeast northwest southeast southwest
    new old upper lower central middle inner outer great greater little lesser big saint st san
    santa fort port mount lake cape los las
    """.split()
)
"""First words that make another place of the place they stand before."""

KIND_NOUNS = frozenset(
    """
    company corporation group motor motors industries enterprises holdings automotive airlines
    airways air lines university college academy institute bank insurance pharmaceuticals
    laboratories technologies systems software electronics oil petroleum energy steel railway
    railroad newspaper magazine football soccer basketball baseball hockey rugby cricket athletic club team fc afc cf sc
    museum hospital clinic theatre theater stadium arena hotel airport airfield airbase base
    station federal national international regional municipal
    river ocean sea desert mountains islands
    """.split()
)
"""Words that say which kind of thing the name before them names, and that short forms leave."""


@dataclass(frozen=True, slots=True)
class Name:
    """One wording of a name.

    `key`: what wordings agree in that differ in case, marks, spaces and articles only.
    `words`: its words in small ASCII letters, without articles in front.
    `bare`: its words without titles in front and `ENDINGS` at the end.
    `proper`: each word that is no small word begins with a capital or a digit.
    `shouted`: all its letters are capitals.
    `foreign`: its first letter is not Latin, so that `words` are a transliteration.
    `after_comma`: the number of words after its last comma, 0 without a comma.
    """

    key: str
    words: tuple[str, ...]
    bare: tuple[str, ...]
    proper: bool
    shouted: bool
    foreign: bool
    after_comma: int


@lru_cache(maxsize=200_000)
def parse_name(surface: str) -> Name:
    """The parts of a name; a text without a letter or digit is its own key."""
    text = unicodedata.normalize("NFKC", surface)
    text = "".join(c for c in text if unicodedata.category(c) != "Cf")
    text = _POSSESSIVE.sub("", text.replace("&", " and ").strip())
    text = _INNER_POSSESSIVE.sub(f" {_OWNED}", text)
    raw = _WORD.findall(text)
    while len(raw) > 1 and raw[0].casefold() in _ARTICLES:
        raw = raw[1:]
    words = tuple(word for word in map(fold_word, raw) if word)
    letters = [c for word in raw for c in word if c.isalpha()]
    foreign = bool(letters) and not unicodedata.name(letters[0], "").startswith("LATIN")
    native = "".join(raw).casefold() if foreign else "".join(words)
    return Name(
        key=native or " ".join(text.casefold().split()) or surface,
        words=words,
        bare=strip_words(words),
        proper=bool(words) and all(_is_capital(word) for word in raw),
        shouted=len(letters) > 1 and all(c.isupper() for c in letters),
        foreign=foreign,
        after_comma=len(_WORD.findall(text.rpartition(",")[2])) if "," in text else 0,
    )


def fold_word(word: str) -> str:
    """A word in small ASCII letters and digits: case, marks and script are gone."""
    return _NOT_LETTERS.sub("", anyascii(word).casefold())


def strip_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words without titles in front and `ENDINGS` at the end; never empty."""
    first, last = 0, len(words)
    while first + 1 < last and words[first] in TITLES and words[first + 1] not in LINKS:
        first += 1
    while first + 1 < last and (words[last - 1] in ENDINGS or words[last - 1] == _OWNED):
        last -= 1
    return words[first:last]


def is_distinctive(word: str) -> bool:
    """A number, a Roman numeral or an elder: what tells bearers of one name apart."""
    roman = len(word) > 1 and bool(_ROMAN.match(word))
    return roman or word in ELDER or any(c.isdigit() for c in word)


def _is_capital(word: str) -> bool:
    small = word.casefold()
    return not word[0].islower() or small in PARTICLES or small in LINKS
