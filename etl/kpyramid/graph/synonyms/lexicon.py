"""Our lexicon of relation meanings: which wordings have which meaning, and how meanings relate.

The declarations lie in `lexicon/*.toml`, a table per meaning; `lexicon/README.md` has the form.
`lexicon/lexicon.tsv` is what `etl/compile_lexicon.py` makes of them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from kpyramid.graph.synonyms.meaning import Frame
from kpyramid.graph.synonyms.words import load_wordnet

TABLE = Path(__file__).parent / "lexicon" / "lexicon.tsv"
KINDS = {
    "person": frozenset({"PERSON"}),
    "org": frozenset({"ORG"}),
    "agent": frozenset({"PERSON", "ORG", "NORP", "GPE"}),
    "place": frozenset({"GPE", "LOC", "FAC"}),
    "time": frozenset({"DATE", "TIME", "YEAR"}),
    "number": frozenset({"CARDINAL", "QUANTITY", "MONEY", "PERCENT", "ORDINAL", "NUMBER"}),
    "money": frozenset({"MONEY", "CARDINAL"}),
    "work": frozenset({"WORK_OF_ART", "PRODUCT", "LAW", "TITLE"}),
    "event": frozenset({"EVENT"}),
    "group": frozenset({"NORP", "LANGUAGE"}),
    "genre": frozenset({"GENRE"}),
    "instrument": frozenset({"INSTRUMENT"}),
    "field": frozenset({"FIELD"}),
    "thing": frozenset({"PRODUCT", "WORK_OF_ART", "FAC", "ORG", "EVENT", "LAW", "LOC", "GPE"}),
}
"""The kinds of ends that declarations name, as recognisers or `find_kind` call them."""
OPEN = frozenset({"", "NOUN", "LITERAL", "NAME", "TITLE", "PART", "CODE"})
"""Types that say nothing of what an end is."""
_AMOUNT = re.compile(r"[-+~$€£¥]?\d[\d.,]*(?: [a-z]+){0,2}")
_YEAR = re.compile(r"[12]\d{3} [a-z].*")


def find_kind(name: str, kind: str) -> str:
    """The type of an end: where recognisers know none a number, or what WordNet calls its noun."""
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
    whether they read the other way. `contraries`: meanings that cannot hold with it of the same
    ends in the same order.
    """

    name: str
    ends: tuple[frozenset[str] | None, frozenset[str] | None]
    above: tuple[tuple[str, bool], ...]
    contraries: frozenset[str]
    symmetric: bool


@dataclass(frozen=True, slots=True)
class Sense:
    """One meaning of a wording.

    `turned`: the wording reads from the meaning's tail to its head. `weak`: it has the meaning only
    where the types of its ends say so, or another wording that stands for the meaning does.
    """

    meaning: Meaning
    turned: bool
    qualities: frozenset[str]
    negated: bool
    weak: bool

    def fits(self, ends: tuple[str, str], *, surely: bool = False) -> bool:
        """Whether the meaning can hold of ends of these types; `surely` asks for types that say so.

        `ends` are those of the meaning's head and tail.
        """
        for found, wanted in zip(ends, self.meaning.ends, strict=True):
            if wanted is None or found in OPEN:
                continue
            if found not in wanted:
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
        found: dict[tuple[Sense, bool], None] = {}
        for key, turned in ((frame.key, frame.turned), *frame.alternates):
            known = self.senses.get(key, ())
            fitting = [s for s in known if s.qualities <= frame.qualities]
            agreeing = [s for s in fitting if s.negated == frame.negated]
            fitting = sorted(agreeing or fitting, key=lambda s: s.weak)
            most = max((len(s.qualities) for s in fitting), default=0)
            found |= {(s, s.turned != turned): None for s in fitting if len(s.qualities) == most}
        return list(found)

    def find_contraries(self, name: str) -> frozenset[str]:
        """The meanings that cannot hold with a meaning of the same ends in the same order."""
        if name not in self.against:
            back = {n for n, meaning in self.meanings.items() if name in meaning.contraries}
            self.against[name] = self.meanings[name].contraries | back
        return self.against[name]

    def find_above(self, name: str) -> dict[str, bool]:
        """All more general meanings, and whether they read the other way."""
        if name not in self.above:
            found: dict[str, bool] = {}
            open_ = [(name, False)]
            while open_:
                meaning, turned = open_.pop()
                for other, other_turned in self.meanings[meaning].above:
                    if other not in found:
                        found[other] = turned != other_turned
                        open_.append((other, found[other]))
            self.above[name] = found
        return self.above[name]


@cache
def load_lexicon() -> Lexicon:
    """The lexicon that the package carries."""
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
    above = tuple((other.lstrip("~"), other.startswith("~")) for other in up.split())
    head, tail = map(_read_kinds, ends.split())
    return Meaning(name, (head, tail), above, frozenset(contraries.split()), bool(symmetric))


def _read_sense(written: str, meanings: Mapping[str, Meaning]) -> Sense:
    name, flags, qualities = written.split(":")
    found = frozenset(qualities.split(",")) if qualities else frozenset()
    return Sense(meanings[name], "t" in flags, found, "n" in flags, "w" in flags)


@cache
def _read_kinds(kinds: str) -> frozenset[str] | None:
    if kinds == "-":
        return None
    return frozenset().union(*(KINDS[kind] for kind in kinds.split("|")))
