"""Words of relation wordings: function words by their effect, and WordNet's verbs and nouns."""

import gzip
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from kpyramid.documents.words import pick_table, read_words

WORDS = read_words(__file__, "words.toml")
"""`words.toml` describes the effect of each list's words on a wording."""


def _list_groups(table: str) -> dict[str, str]:
    """The group of each word of a table; empty for the words under `nothing`."""
    groups = pick_table(WORDS, table).items()
    return {word: name.removesuffix("nothing") for name, words in groups for word in words}


BE, HAVE, DO = WORDS["be"], WORDS["have"], WORDS["do"]
MODALS = _list_groups("modals")
PREPOSITIONS = WORDS["prepositions"]
WEAKENING = WORDS["weakening"]
VAGUE = WORDS["vague"]
PLACED_DEEDS = WORDS["placed_deeds"]
ERGATIVE = WORDS["ergative"]
COPULAS = WORDS["copulas"]
HOLDING = WORDS["holding"]
SUPERLATIVES = WORDS["superlatives"]
MODIFIERS = SUPERLATIVES | WORDS["nations"] | WORDS["qualities"]
"""Modifiers that do not change the kind of a noun."""
ALIKE = _list_groups("alike")
IRREGULAR = _list_groups("irregular")
RAISING = _list_groups("raising")
RAISING_PASSIVE = _list_groups("raising_passive")
RAISING_ADJECTIVES = _list_groups("raising_adjectives")
NOUN_ENDINGS = _list_groups("noun_endings")
MODALITIES = _list_groups("modalities")
KINDS_OF_ENDS = pick_table(WORDS, "kinds_of_ends")

# WordNet 3.0: verbs, the nouns derived from them, and adjectives.

_FOLDER = Path(__file__).parent / "wordnet"
_SUFFIXES = (
    *(("ies", "y"), ("es", "e"), ("es", ""), ("s", "")),
    *(("ied", "y"), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")),
)


@dataclass(frozen=True, slots=True)
class Derivation:
    """A verb from which a noun is derived; the ranks of both senses, from 0."""

    verb: str
    kind: str
    noun_rank: int
    verb_rank: int


@dataclass(slots=True)
class WordNet:
    """The extract of `wordnet/README.md`, by lemma and by part of speech (`v`, `n`, `a`).

    Senses are in WordNet's order, the most frequent first. `alike`: the first of the nouns that
    name the same kind of thing in their most frequent sense (`film` of `movie`). `ends`: of nouns
    the kind of end that they name, as the lexicon's declarations do (`jazz` is a `GENRE`).
    """

    senses: dict[str, dict[str, tuple[str, ...]]] = field(
        default_factory=lambda: {"v": {}, "n": {}, "a": {}}
    )
    uses: dict[str, dict[str, int]] = field(default_factory=lambda: {"v": {}, "n": {}, "a": {}})
    alike: dict[str, str] = field(default_factory=dict)
    ends: dict[str, str] = field(default_factory=dict)
    irregular: dict[str, str] = field(default_factory=dict)
    above: dict[str, tuple[str, ...]] = field(default_factory=dict)
    opposites: dict[str, frozenset[str]] = field(default_factory=dict)
    derived: dict[str, list[Derivation]] = field(default_factory=lambda: defaultdict(list))

    def is_verb(self, lemma: str) -> bool:
        return lemma in self.senses["v"]

    def is_mostly_noun(self, word: str) -> bool:
        """Whether this form of the word is used more often as a noun than as a verb."""
        return self.uses["n"].get(word, -1) > self.uses["v"].get(word, 0)

    def find_rank(self, left: str, right: str, part: str) -> int | None:
        """The least sum of the ranks of a sense that both words share, or None."""
        senses = self.senses[part]
        others = senses.get(right, ())
        ranks = [i + others.index(s) for i, s in enumerate(senses.get(left, ())) if s in others]
        return min(ranks, default=None)

    def is_kind_of(self, left: str, right: str) -> bool:
        """Whether the left verb's first sense is a special case of the right one's first two."""
        first = self.senses["v"].get(left, ())[:1]
        above = {synset for sense in first for synset in self.above.get(sense, ())}
        return not above.isdisjoint(self.senses["v"].get(right, ())[:2])


@cache
def load_nouns() -> dict[str, str]:
    """Nouns of one word, with a letter for the category of each of their first three senses.

    `p` person, `g` group, `l` location, `o` object of nature, `a` artifact, `c` communication,
    `t` act, `e` event, `-` else.
    """
    return dict(line.split("\t") for line in _read_lines("nouns.txt.gz"))


_SENSES = pick_table(WORDS, "senses")


def names_person(noun: str) -> bool:
    """Whether the first sense of a noun is a person."""
    return load_nouns().get(noun, "").startswith("p")


def is_usual(noun: str, types: Iterable[str]) -> bool | None:
    """Whether a noun's first sense denotes things of the most frequent of these types.

    None where only a rarer sense does; True where nothing is known of the noun or the types.
    """
    known = Counter(name for name in types if name in _SENSES)
    senses = load_nouns().get(noun)
    if not known or senses is None:
        return True
    usual = _SENSES[min(known, key=lambda name: (-known[name], name))]
    return True if senses[0] in usual else False if set(senses).isdisjoint(usual) else None


def _read_lines(name: str) -> list[str]:
    return gzip.decompress((_FOLDER / name).read_bytes()).decode("utf-8").splitlines()


@cache
def load_wordnet() -> WordNet:
    """The extract in the package."""
    net = WordNet()
    for line in _read_lines("extract.txt.gz"):
        mark, word, *rest = line.split("\t")
        word = word.replace("_", " ")
        if mark in "vna":
            net.senses[mark][word] = tuple(rest[0].split())
            net.uses[mark][word] = int(rest[1])
        elif mark == "k":
            words = [word, *(synonym.replace("_", " ") for synonym in rest[0].split())]
            net.alike |= dict.fromkeys(words, word)
        elif mark == "t":
            net.ends.setdefault(word, rest[0])
        elif mark == "x":
            net.irregular.setdefault(word, rest[0])
        elif mark == "h":
            net.above[word] = tuple(rest[0].split())
        elif mark == "o":
            net.opposites[word] = frozenset(rest[0].split())
        else:
            ranks = rest[2].split()
            verb = rest[0].replace("_", " ")
            net.derived[word].append(Derivation(verb, rest[1], int(ranks[0]), int(ranks[1])))
    net.derived = dict(net.derived)
    return net


@cache
def find_verb(form: str) -> str | None:
    """The verb of which a word may be a form, or None."""
    net = load_wordnet()
    if form in IRREGULAR:
        return IRREGULAR[form]
    if form in net.irregular:
        return _spell(net.irregular[form])
    for suffix, ending in _SUFFIXES:
        if form.endswith(suffix) and len(form) > len(suffix) + 1:
            stem = form.removesuffix(suffix)
            doubled = not ending and suffix in {"ed", "ing"} and stem[-1] == stem[-2]
            if doubled and not net.is_verb(stem) and net.is_verb(stem[:-1]):
                return _spell(stem[:-1])
            if suffix == "s" and stem.endswith("s"):
                continue
            if net.is_verb(stem + ending):
                return _spell(stem + ending)
    return _spell(form) if net.is_verb(form) else None


def is_past(form: str) -> bool:
    """Whether a word may be a past participle."""
    verb = find_verb(form)
    if verb is None:
        return False
    return (
        form in WORDS["invariant"]
        or (form != verb and not form.endswith(("s", "ing")))
        or form == "led"
    )


def _spell(verb: str) -> str:
    """The spelling with `z` where WordNet has both."""
    if verb.endswith("ise") and load_wordnet().is_verb(verb[:-3] + "ize"):
        return verb[:-3] + "ize"
    return verb
