"""Words, names and relation phrases of a text, and the forms in which two of them are the same."""

import re
import tomllib
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import Stemmer
from simplemma import lemmatize

from kpyramid.documents.values import Date, Value, agree, read_value

# The closed classes of English words, from which the word lists of other rooms are built.
ARTICLES = frozenset("a an the".split())
BE = frozenset("is are was were be been being".split())
HAVE = frozenset("have has had having".split())
DO = frozenset("do does did".split())
AUXILIARIES = BE | HAVE | DO
MODALS = frozenset("can could may might must ought shall should will would".split())
JOINING = frozenset("and or".split())
PREPOSITIONS = frozenset("of in on at to from by with for as".split())
"""The ten most frequent prepositions, which mean little by themselves."""
POINTING = frozenset("this that these those".split())
IS_A = "be a"  # The key of the relation between a thing and its kind.
PRONOUNS = frozenset(
    "i me my mine we us our ours you your yours he him his himself she her hers herself "
    "it its itself they them their theirs themselves".split()
)
QUESTION_WORDS = frozenset("who whom whose what which when where why how".split())
FUNCTION_WORDS = (
    ARTICLES | AUXILIARIES | MODALS | JOINING | PREPOSITIONS | POINTING | PRONOUNS | QUESTION_WORDS
)

FUNCTION = (
    FUNCTION_WORDS
    - frozenset(
        "hers herself him himself itself mine must ought theirs themselves why yours".split()
    )
) | frozenset(
    "about all also am among any currently done dr every exactly here if just miss mr mrs ms now "
    "out over please prof so some then there up within".split()
)
"""Function words of questions, polite phrases among them; they name nothing."""
STOP = (
    (FUNCTION_WORDS - PRONOUNS)
    | frozenset(
        "he his she her it its they their following into many much name not one s than "
        "then there".split()
    )
) - {"having", "ought"}
"""Words that name and state nothing by themselves, in texts and questions."""

WORD = re.compile(r"\w+")
"""The tokeniser: a word is a run of letters, digits and low lines."""
LETTERS = re.compile(r"[^\W\d_]+")
"""A word of letters alone."""

_LEADING_ARTICLE = re.compile(r"^(?:the|a|an)\s+")
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")
_SPACE = re.compile(r"\s+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_FINAL_POSSESSIVE = re.compile(r"['’]s?$")

_FILLERS = frozenset("also then now later still currently the".split())
_AUXILIARIES = frozenset({"be", "have"})
_OVERRIDES = {
    "born": "bear", "broke": "break", "crosses": "cross", "felt": "feel", "opera": "opera",
    "operas": "opera", "shook": "shake", "swore": "swear", "won": "win",
}  # fmt: skip
"""Words whose form in the dictionary is missing or of another word: adjective, plural of opus."""
_PASTS = {"bore": "bear", "left": "leave", "shot": "shoot", "thought": "think"}
"""Past tenses that the dictionary reads as other words; in a relation they are verbs."""
_UNCHANGED = frozenset("bet bid cast cost cut hit let put quit set shed shut split".split())
"""Verbs whose past tense is their dictionary form."""
_HOLDING = {
    "possible": "possible possibly potential potentially likely maybe perhaps probably".split(),
    "former": "former formerly previously once erstwhile longer".split(),
}
"""Words by which a wording itself states that it is possible or former."""


def read_words(module: str, name: str) -> Mapping[str, frozenset[str]]:
    """The word lists in a TOML file beside a module, by name; `table.name` within a table."""
    lists: dict[str, frozenset[str]] = {}

    def take(name: str, value: object) -> None:
        if isinstance(value, str):
            lists[name] = frozenset(value.split())
        else:
            pairs = value.items() if isinstance(value, dict) else enumerate(value)  # type: ignore[arg-type]
            for key, inner in pairs:
                take(f"{name}.{key}" if name else str(key), inner)

    take("", tomllib.loads(Path(module).with_name(name).read_text("utf-8")))
    return lists


def pick_table(lists: Mapping[str, frozenset[str]], table: str) -> dict[str, frozenset[str]]:
    """The lists of one table of a file, by their names in the table."""
    start = f"{table}."
    return {n.removeprefix(start): words for n, words in lists.items() if n.startswith(start)}


@lru_cache(maxsize=100_000)
def normalise_name(name: str) -> str:
    """The form in which names of one entity agree: NFKC, case, articles, edges, possessive."""
    text = unicodedata.normalize("NFKC", name).casefold()
    text = _SPACE.sub(" ", text).strip()
    text = _FINAL_POSSESSIVE.sub("", text)
    text = _EDGES.sub("", _LEADING_ARTICLE.sub("", text))
    return text or _SPACE.sub(" ", name.casefold()).strip()


def split_label(label: str) -> str:
    """A label as words: "birthPlace" and "birth_place" become "birth place"."""
    parts = _CAMEL.sub(" ", label.replace("_", " ")).split()
    joined = " " not in label.strip()
    # "Member of" begins with a capital as a line does; "Olympic medal" may be a name.
    only_first = not any(w[:1].isupper() for w in parts[1:])
    return " ".join(
        w[:1].lower() + w[1:] if (joined or (only_first and not n)) and not w.isupper() else w
        for n, w in enumerate(parts)
    )


@dataclass(frozen=True, slots=True)
class RelationForm:
    """The lemmas and voice of a relation phrase."""

    lemmas: tuple[str, ...]
    passive_by: bool
    passive: bool = False
    """Whether it is passive without an agent (`passive_by`): `was killed in`, `was sold to`."""

    @property
    def key(self) -> str:
        """The same for phrases of one relation; `killed in` and `was killed in` differ."""
        voice = " <by>" if self.passive_by else " <passive>" if self.passive else ""
        return " ".join(self.lemmas) + voice

    @property
    def modal(self) -> str | None:
        """The modal verb of a possibility, habit or duty: `may` of `may cause`; None without."""
        return self.lemmas[0] if self.lemmas[0] in MODALS else None

    @property
    def inverse_key(self) -> str | None:
        """The active form's key for a passive with an agent: `was founded by` → `found`."""
        return " ".join(self.lemmas) if self.passive_by else None


@lru_cache(maxsize=100_000)
def normalise_relation(phrase: str) -> RelationForm:
    """The lemma form of a relation phrase.

    `was founded by` and `founded` share the lemma `found` and differ in voice. A form of `be`
    or `have` is dropped before a participle, where it only marks the tense, and retained where
    it is the main verb (`is capital of`, `has elevation`).
    """
    words = _SPACE.split(unicodedata.normalize("NFKC", phrase).casefold().strip())
    if len(words) > 1 and words[-1] in ARTICLES and words[-2] in BE:
        words[-1] = "a"  # "must be the" is of the kind of "must be a", not of "must be"
    if words in (["are"], ["were"]) or (words[0] in BE and words[1:] == ["a"]):
        return RelationForm(("be", "a"), passive_by=False)  # "whales | are | mammals"
    words = [word for word in words if word not in _FILLERS] or words
    first = 0
    while first + 1 < len(words) and lemmatise(words[first]) in _AUXILIARIES:
        first += 1
    if first and not _is_participle(words[first]):
        first -= 1
    lemmas = tuple(lemmatise(word) for word in words[first:])
    participle = _is_participle(words[first]) and not words[first].endswith("ing")
    if participle and len(lemmas) == 2 and lemmas[-1] == "by":
        return RelationForm(lemmas[:-1], passive_by=True)
    passive = participle and first > 0 and words[first - 1] in BE
    return RelationForm(lemmas, passive_by=False, passive=passive)


def is_filing(wording: str) -> bool:
    """Whether a wording is one of `is a`."""
    return normalise_relation(wording).key == IS_A


@lru_cache(maxsize=100_000)
def lemmatise(word: str) -> str:
    """The dictionary form of an English word in lower case."""
    return _OVERRIDES.get(word) or (lemmatize(word, lang="en") if word else "")


def deny(phrase: str) -> str:
    """The negation of a relation's wording: "does not cause" for "causes"."""
    adverbs, verb, rest = _part(phrase)
    word, after = verb.casefold(), rest[0].casefold() if rest else ""
    base = _PASTS.get(word) or lemmatise(word)
    perfect = word in HAVE and (after == "become" or _is_participle(after))
    if word == "can":
        return " ".join(["cannot", *adverbs, *rest])
    if word in BE | MODALS | DO or perfect:
        return " ".join([verb, "not", *adverbs, *rest])
    is_verb = base != word or (_is_verb(word) and after != "of")
    if not is_verb or after == "by" or word == "born":  # "employer", "part of", "founded by"
        return " ".join(["not", *phrase.split()])
    helper = "does" if word.endswith("s") and base != word else "do" if base == word else "did"
    return " ".join([helper, "not", *adverbs, base, *rest])


def hold(phrase: str, modality: str, *, names: bool = False) -> str:
    """The wording of a relation that is `possible`, `planned` or `former`: "formerly owned".

    `names`: whether the phrase is the name of a property, so that "award" is a noun.
    """
    adverbs, verb, rest = _part(phrase)
    first, after = verb.casefold(), rest[0].casefold() if rest else ""
    base = _PASTS.get(first) or lemmatise(first)
    held = any(word in _HOLDING.get(modality, ()) for word in phrase.casefold().split())
    if held or not verb or first in MODALS or (first == "used" and after == "to"):
        return phrase
    is_verb = base != first or first == "be"
    if not (is_verb or names or after == "of"):
        doubled = lemmatise(f"{first}{first[-1]}ing") == first  # "win", "winning"
        is_verb = doubled or first in _UNCHANGED or _is_verb(first)
    if modality != "planned":
        lead = "possib" if modality == "possible" else "former"
        return f"{lead}{'ly' if is_verb else 'le' if lead == 'possib' else ''} {phrase}"
    if "to" in map(str.casefold, rest[:3]):  # "plans to open", "is to open"
        return phrase
    if not is_verb:
        return f"will have {phrase}"
    be = ["be", verb] if after == "by" and first not in BE else [base]
    return " ".join(["will", *adverbs, *be, *rest])


def _part(phrase: str) -> tuple[list[str], str, list[str]]:
    """The adverbs before a wording's verb, the verb, and the words after it."""
    words = phrase.split()
    index = next((index for index, word in enumerate(words) if not _is_adverb(word)), 0)
    return words[:index], "".join(words[index : index + 1]), words[index + 1 :]


def word_relation(phrase: str, negated: bool) -> str:
    """A relation as it is printed: its wording, or the negation of it."""
    return deny(phrase) if negated else phrase


def name_owner(text: str) -> str:
    """The owner in a phrase: "Anna's", "the Alps'"."""
    return f"{text}'" if text.endswith("s") else f"{text}'s"


def word_fact(head: str, relation: str, tail: str) -> str:
    """A fact as it is printed; "is a" is "is an" before a vowel."""
    article = "n" if relation.endswith((" a", " A")) and tail[:1].lower() in set("aeiou") else ""
    return f"{head} {relation}{article} {tail}"


def is_past(phrase: str) -> bool:
    """Whether the wording of a relation is in the past tense: `led`, `was head of`."""
    first = phrase.casefold().split()[0]
    past = first in _PASTS or _is_participle(first)
    return first in {"was", "were", "had"} or (first not in BE | HAVE and past)


def _is_participle(word: str) -> bool:
    return lemmatise(word).casefold() != word and not word.endswith("s")  # "saturday"


def _is_verb(word: str) -> bool:
    """Whether a word in its dictionary form has a participle."""
    return lemmatise(word.removesuffix("e") + "ing") == word


def _is_adverb(word: str) -> bool:
    return bool(_ADVERB.fullmatch(word)) and not _is_verb(word.casefold())


# Words with their positions, and the names among them.

_ADVERB = re.compile(r"\w+ly|also|never|often|once|only|still", re.IGNORECASE)
_PLAIN_WORD = re.compile(r"[^\W_]+(?:[-.][^\W_]+)*")
_POSSESSIVE = re.compile(r"['’]s\b|(?<=s)['’](?=\s|$)")
_STEM = 5
"""The least number of letters that words of one stem share."""
_WORD_OR_INITIALS = re.compile(r"\b(?:[^\W\d_]\.){2,}(?:[^\W\d_]\b)?|\w+")
"""A word, or initials with their stops: `A.C.` is `AC`."""
_IN_BRACKETS = re.compile(r"\s*\([^)]*\)\s*$")
_STEMMER = Stemmer.Stemmer("english")
_PART = re.compile(r"\s*[,;/]\s*")


class Word(NamedTuple):
    """A word's plain form and stem, its offsets, and whether it is capitalised (`large`)."""

    plain: str
    stem: str
    start: int
    end: int
    large: bool


@dataclass(frozen=True, slots=True)
class Place:
    """Words `first` to `last`, exclusive, of a text; `strength`: how sure the name is, 0 to 1."""

    first: int
    last: int
    strength: float


@dataclass(frozen=True, slots=True)
class Name:
    """A name to match: its forms in plain words, each with its certainty, 0 to 1; or a value."""

    text: str
    forms: tuple[tuple[tuple[str, ...], float], ...]
    value: Date | Decimal | None = None


@lru_cache(maxsize=4096)
def split_words(text: str) -> tuple[Word, ...]:
    """The words of a text without case and accents, with their offsets."""
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
    """A name with its other forms: its aliases, and the name without article or aside."""
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
        if words[:1] and words[0] in ARTICLES and len(words) > 1:
            words = words[1:]
        if words and words not in forms:
            forms[words] = strength
    return Name(text, tuple(forms.items()), read_value(text))


def find_name(name: Name, words: Sequence[Word], values: Sequence[Value]) -> list[Place]:
    """The places of a name in a text, surest first; `values`: the text's dates and numbers."""
    if name.value is not None:
        return _find_places_of_value(name.value, words, values)
    strengths: dict[tuple[int, int], float] = {}
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
            strengths[span] = max(strengths.get(span, 0.0), sure)
    longest = [  # "Berrin" within "Tomas Berrin" is not a place by itself
        span
        for span in strengths
        if not any(a <= span[0] and span[1] <= b for a, b in strengths if (a, b) != span)
    ]
    places = [Place(*span, strengths[span]) for span in longest]
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
    """A weight up to 1, less for a name within a longer one: `London` in `London Bridge`."""
    if not run[0].large:
        return 1.0
    after = words[last] if last < len(words) else None
    before = words[first - 1] if first else None
    weight = 1.0
    if after and after.large and after.start == run[-1].end + 1:
        weight *= 0.6
    apart = before is None or before.plain in ARTICLES
    if before and not apart and first > 1 and before.large and run[0].start == before.end + 1:
        weight *= 0.8
    return weight


def _fold(word: str) -> str:
    parts = unicodedata.normalize("NFKD", word)
    return "".join(c for c in parts if not unicodedata.combining(c)).casefold()


@lru_cache(maxsize=100_000)
def _stem(word: str) -> str:
    return str(_STEMMER.stemWord(word))


def stem_words(words: Sequence[str]) -> list[str]:
    """Porter's stems of lower-case words, in order."""
    return list(_STEMMER.stemWords(words))


def list_plain_words(text: str) -> list[str]:
    """The words of a text in lower case."""
    return [word.casefold() for word in match_plain_words(text)]


def match_plain_words(text: str) -> list[str]:
    return _PLAIN_WORD.findall(_POSSESSIVE.sub(" ", text))


@lru_cache(maxsize=100_000)
def share_stem(first: str, second: str) -> bool:
    """Whether two words share a stem: `expert` and `expertise`, `phone` and `telephone`."""
    if min(len(first), len(second)) < _STEM:
        return False
    if first.endswith(second) or second.endswith(first):
        return True
    return _count_shared(first, second) >= max(_STEM, 0.5 * max(len(first), len(second)))


def _count_shared(first: str, second: str) -> int:
    """The number of letters that both words begin with."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
