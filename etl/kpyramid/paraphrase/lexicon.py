"""Our lexicon of relation meanings: which wordings have which meaning, and how meanings relate.

The declarations lie in `lexicon/*.toml`, a table per meaning; `lexicon/README.md` has the form.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path

from kpyramid.errors import PyramidError
from kpyramid.paraphrase.reading import Frame, read_frame
from kpyramid.paraphrase.words import PREPOSITIONS

_FOLDER = Path(__file__).parent / "lexicon"
_FIELDS = frozenset("ends say back role attr up contrary symmetric".split())
_KINDS = {
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
    "thing": frozenset({"PRODUCT", "WORK_OF_ART", "FAC", "ORG", "EVENT", "LAW", "LOC", "GPE"}),
}
"""The kinds of ends that declarations name, as recognisers call them."""
_OPEN = frozenset({"", "NOUN", "LITERAL", "NAME", "TITLE", "PART", "CODE"})
"""Types that say nothing of what an end is."""


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
            if wanted is None or found in _OPEN:
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
        """The senses of a wording, and whether it reads from tail to head of each."""
        for key, turned in ((frame.key, frame.turned), *frame.alternates):
            known = self.senses.get(key)
            if known:
                fitting = [s for s in known if s.qualities <= frame.qualities]
                agreeing = [s for s in fitting if s.negated == frame.negated]
                fitting = sorted(agreeing or fitting, key=lambda s: s.weak)
                most = max((len(s.qualities) for s in fitting), default=0)
                return [(s, s.turned != turned) for s in fitting if len(s.qualities) == most]
        return []

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
    """The lexicon that the package carries.

    Raises:
        PyramidError: a declaration is wrong; the message names the meaning and the field.
    """
    declared: dict[str, dict[str, str | bool]] = {}
    for path in sorted(_FOLDER.glob("*.toml")):
        for name, table in tomllib.loads(path.read_text("utf-8")).items():
            if name in declared or not table.keys() <= _FIELDS:
                raise PyramidError(f"{path.name}: [{name}] is declared twice or has unknown fields")
            declared[name] = table
    meanings = {name: _read_meaning(name, table, declared) for name, table in declared.items()}
    senses: dict[str, dict[tuple[str, bool, frozenset[str]], Sense]] = defaultdict(dict)
    for name, table in declared.items():
        for wording, turned in _list_wordings(table):
            frame = read_frame(wording.rstrip("!"))
            if not frame.key:
                raise PyramidError(f"lexicon: [{name}] {wording!r} has no word with a meaning")
            sense = Sense(
                meanings[name],
                turned != frame.turned and not meanings[name].symmetric,
                frame.qualities,
                frame.negated,
                wording.endswith("!"),
            )
            known, place = senses[frame.key], (name, sense.negated, sense.qualities)
            if place not in known or known[place].weak:
                known[place] = sense
    return Lexicon(meanings, {key: tuple(found.values()) for key, found in senses.items()})


def _read_meaning(
    name: str, table: Mapping[str, str | bool], declared: Mapping[str, object]
) -> Meaning:
    ends = str(table.get("ends", "- -")).split()
    above = [(up.lstrip("~"), up.startswith("~")) for up in str(table.get("up", "")).split()]
    contraries = frozenset(str(table.get("contrary", "")).split())
    unknown = ({up for up, _ in above} | contraries) - declared.keys()
    if unknown or len(ends) != 2:
        raise PyramidError(f"lexicon: [{name}] names unknown meanings or ends: {sorted(unknown)}")
    head, tail = (_read_kinds(kinds) for kinds in ends)
    return Meaning(name, (head, tail), tuple(above), contraries, bool(table.get("symmetric")))


def _read_kinds(kinds: str) -> frozenset[str] | None:
    if kinds == "-":
        return None
    return frozenset().union(*(_KINDS[kind] for kind in kinds.split("|")))


def _list_wordings(table: Mapping[str, str | bool]) -> Iterator[tuple[str, bool]]:
    """Each wording of a declaration, and whether it reads from tail to head."""
    for name, turned in (("say", False), ("back", True)):
        for pattern in _split(table, name):
            mark = "!" if pattern.endswith("!") else ""
            yield from ((wording + mark, turned) for wording in expand(pattern.rstrip("!")))
    for name, turned in (("role", False), ("attr", True)):
        for pattern in _split(table, name):
            mark = "!" if pattern.endswith("!") else ""
            for noun in expand(pattern.rstrip("!")):
                with_preposition = noun.split()[-1] in PREPOSITIONS
                yield f"is the {noun}" + ("" if with_preposition else " of") + mark, turned
                if not with_preposition or noun.endswith(" of"):
                    yield f"has the {noun.removesuffix(' of')}{mark}", not turned


def _split(table: Mapping[str, str | bool], name: str) -> list[str]:
    return [p for p in (part.strip() for part in re.split(r"[;\n]", str(table.get(name, "")))) if p]


def expand(pattern: str) -> Iterator[str]:
    """The wordings of a pattern: `is [a] part|piece of` → `is a part of`, `is piece of` ..."""
    choices = []
    for token in re.findall(r"\[[^\]]*\]|\S+", pattern):
        optional = token.startswith("[")
        parts = token.strip("[]").split("|")
        choices.append([*parts, ""] if optional else parts)
    for chosen in product(*choices):
        yield " ".join(part for part in chosen if part)
