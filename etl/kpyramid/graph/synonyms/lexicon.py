"""Our lexicon of relation meanings: the wordings of each meaning, and relations between meanings.

The declarations are in `lexicon/*.toml`, a table per meaning; `lexicon/README.md` has the format.
`etl/compile_lexicon.py` compiles them into `lexicon/lexicon.tsv`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from kpyramid.graph.synonyms.meaning import Frame
from kpyramid.graph.synonyms.words import KINDS_OF_ENDS, load_wordnet

TABLE = Path(__file__).parent / "lexicon" / "lexicon.tsv"
OPEN = frozenset({"", "NOUN", "LITERAL", "NAME", "TITLE", "PART", "CODE"})
"""Types that do not tell the kind of an end."""
_AMOUNT = re.compile(r"[-+~$€£¥]?\d[\d.,]*(?: [a-z]+){0,2}")
_YEAR = re.compile(r"[12]\d{3} [a-z].*")


def find_kind(name: str, kind: str) -> str:
    """The type of an end; for one without a type, a number's or that of its noun in WordNet."""
    if name.endswith(" music"):
        return "GENRE"
    noun = name.casefold()
    if kind not in OPEN and noun != name:
        return kind
    if kind in OPEN and _AMOUNT.fullmatch(name) and not _YEAR.fullmatch(name):
        return "CARDINAL"
    return load_wordnet().ends.get(noun, kind)


@dataclass(frozen=True, slots=True)
class Meaning:
    """A relation between two ends.

    `ends`: types that head and tail may have, None for any. `above`: more general meanings, and
    whether they read in the opposite direction. `contraries`: meanings that cannot hold with it for
    the same ends in the same order.
    """

    name: str
    ends: tuple[frozenset[str] | None, frozenset[str] | None]
    above: tuple[tuple[str, bool], ...]
    contraries: frozenset[str]
    symmetric: bool


@dataclass(frozen=True, slots=True)
class Sense:
    """A meaning of a wording.

    `turned`: the wording reads from the meaning's tail to its head. `weak`: it has the meaning only
    with the support of the types of its ends, or of another wording of the meaning.
    """

    meaning: Meaning
    turned: bool
    qualities: frozenset[str]
    negated: bool
    weak: bool

    def fits(self, ends: tuple[str, str], *, surely: bool = False) -> bool:
        """Whether the meaning can hold for ends of these types; `surely`: a known type must agree.

        `ends`: types of the meaning's head and tail.
        """
        for end, wanted in zip(ends, self.meaning.ends, strict=True):
            if wanted is None or end in OPEN:
                continue
            if end not in wanted:
                return False
            surely = False
        return not surely


@dataclass(frozen=True, slots=True)
class Lexicon:
    """All meanings by name, and the senses of each key, in the order of the declarations."""

    meanings: Mapping[str, Meaning]
    senses: Mapping[str, tuple[Sense, ...]]
    above: dict[str, dict[str, bool]] = field(default_factory=dict)
    against: dict[str, frozenset[str]] = field(default_factory=dict)

    def find_senses(self, frame: Frame) -> list[tuple[Sense, bool]]:
        """The senses of a wording, the likelier first, and whether it reads from tail to head."""
        senses: dict[tuple[Sense, bool], None] = {}
        for key, turned in ((frame.key, frame.turned), *frame.alternates):
            known = self.senses.get(key, ())
            fitting = [s for s in known if s.qualities <= frame.qualities]
            agreeing = [s for s in fitting if s.negated == frame.negated]
            fitting = sorted(agreeing or fitting, key=lambda s: s.weak)
            most = max((len(s.qualities) for s in fitting), default=0)
            senses |= {(s, s.turned != turned): None for s in fitting if len(s.qualities) == most}
        return list(senses)

    def find_contraries(self, name: str) -> frozenset[str]:
        """The meanings that cannot hold with a meaning for the same ends in the same order."""
        if name not in self.against:
            back = {n for n, meaning in self.meanings.items() if name in meaning.contraries}
            self.against[name] = self.meanings[name].contraries | back
        return self.against[name]

    def find_above(self, name: str) -> dict[str, bool]:
        """All more general meanings, and whether they read in the opposite direction."""
        if name not in self.above:
            above: dict[str, bool] = {}
            open_ = [(name, False)]
            while open_:
                meaning, turned = open_.pop()
                for general, general_turned in self.meanings[meaning].above:
                    if general not in above:
                        above[general] = turned != general_turned
                        open_.append((general, above[general]))
            self.above[name] = above
        return self.above[name]


@cache
def load_lexicon() -> Lexicon:
    """The lexicon in the package."""
    meanings: dict[str, Meaning] = {}
    senses: dict[str, tuple[Sense, ...]] = {}
    sense_of: dict[str, Sense] = {}
    for line in TABLE.read_text("utf-8").splitlines():
        mark, name, *rest = line.split("\t")
        if mark == "m":
            meanings[name] = _read_meaning(name, *rest)
            continue
        for written in rest:
            if written not in sense_of:
                sense_of[written] = _read_sense(written, meanings)
        senses[name] = tuple(map(sense_of.__getitem__, rest))
    return Lexicon(meanings, senses)


def _read_meaning(name: str, ends: str, up: str, contraries: str, symmetric: str) -> Meaning:
    above = tuple((general.lstrip("~"), general.startswith("~")) for general in up.split())
    head, tail = map(_read_kinds, ends.split())
    return Meaning(name, (head, tail), above, frozenset(contraries.split()), bool(symmetric))


def _read_sense(written: str, meanings: Mapping[str, Meaning]) -> Sense:
    name, flags, qualities = written.split(":")
    needed = frozenset(qualities.split(",")) if qualities else frozenset()
    return Sense(meanings[name], "t" in flags, needed, "n" in flags, "w" in flags)


@cache
def _read_kinds(kinds: str) -> frozenset[str] | None:
    if kinds == "-":
        return None
    return frozenset().union(*(KINDS_OF_ENDS[kind] for kind in kinds.split("|")))
