"""Comparison of two relation wordings by lexicon, structure and WordNet."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np

from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.graph.synonyms.lexicon import Sense, load_lexicon
from kpyramid.graph.synonyms.meaning import Frame, find_statement, keep_noun, read_frame
from kpyramid.graph.synonyms.words import (
    HOLDING,
    PLACED_DEEDS,
    PREPOSITIONS,
    VAGUE,
    WEAKENING,
    load_nouns,
    load_wordnet,
)

Likeness: TypeAlias = Literal["equivalent", "narrower", "broader", "contrary", "different"]
"""What the first wording says of the second: the same; a special case of it (`is CEO of`, `works
for`); a more general one; what cannot hold with it of the same ends (`was born in`, `was not born
in`); something else."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How two wordings relate.

    `turned`: the second reads from tail to head (`founded`, `was founded by`).
    `reason`: what decided, for a person to read.
    `symmetric`: what both say holds in either direction (`is married to`).
    """

    likeness: Likeness
    turned: bool
    reason: str
    symmetric: bool = False


# Wordings outside the lexicon: comparison by structure and WordNet.

_NEAR = 1
"""The sum of two words' places of a shared sense up to which they are taken for synonyms."""
_FAR = 4
"""The same where the cosine is at least `_ALIKE`."""
_FLOOR = 0.6
"""Cosine that even near synonyms must have; `bought` and `sold` have 0.77, unlike words 0.2."""
_ALIKE = 0.75
_MARKS = frozenset({"be", "have"})
"""Verbs that say nothing without the noun after them."""


def compare_frames(one: Frame, other: Frame) -> tuple[Verdict, float] | None:
    """What two frames have in common, and the least cosine that must confirm it, 0 for none."""
    firsts = ((one.key, one.turned), *one.alternates)
    seconds = ((other.key, other.turned), *other.alternates)
    for key, turned in firsts:
        for other_key, other_turned in seconds:
            if key == other_key and key:
                reason = f"the same words: {key}"
                return Verdict("equivalent", turned != other_turned, reason), 0.0
    for key, turned in firsts[:3]:
        for other_key, other_turned in seconds[:3]:
            found = _compare_keys(key, other_key)
            if found is not None:
                likeness, reason, least = found
                return Verdict(likeness, turned != other_turned, reason), least
    return None


def _compare_keys(one: str, other: str) -> tuple[Likeness, str, float] | None:
    first, second = one.split(), other.split()
    if not first or len(first) != len(second):
        return None
    unlike = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
    if len(unlike) != 1:
        return None
    a, b = unlike[0]
    if a in PREPOSITIONS or b in PREPOSITIONS:
        placed = first[0].removeprefix("~") in PLACED_DEEDS and {a, b} == {"in", "at"}
        return ("equivalent", "in and at", 0.0) if placed else None
    if (first[0] in _MARKS) != (second[0] in _MARKS):
        return None
    if one.startswith("~") != other.startswith("~"):
        return None
    part = "v" if first[0] != second[0] else "na"
    return _compare_words(a.removeprefix("~"), b.removeprefix("~"), part)


def _compare_words(one: str, other: str, parts: str) -> tuple[Likeness, str, float] | None:
    net = load_wordnet()
    if other in net.opposites.get(one, ()):
        return ("contrary", f"{one} is the opposite of {other}", 0.0) if "a" in parts else None
    for part in parts:
        rank = net.find_rank(one, other, part)
        if rank is not None and rank <= _FAR:
            least = _FLOOR if rank <= _NEAR else _ALIKE
            return "equivalent", f"{one} and {other} are synonyms", least
    if parts == "v":
        if net.is_kind_of(one, other):
            return "narrower", f"{one} is a way to {other}", _FLOOR
        if net.is_kind_of(other, one):
            return "broader", f"{other} is a way to {one}", _FLOOR
    return None


# Wordings of the lexicon, and the order in which the sources are asked.

_MODALS = frozenset({"possible", "duty", "future", "intended", "wished"})
_LIMITING = frozenset({"joint", "appointed", "elected", "helped"})
"""Qualities with which a wording says more than without."""
_PASSING = frozenset({"become", "remain"})
"""`became chair of` says `is the chair of`; a wording that the lexicon tells apart has no rest."""
_OPPOSITE: dict[Likeness, Likeness] = {"narrower": "broader", "broader": "narrower"}
Ends: TypeAlias = tuple[str, str]
_OPEN: Ends = ("", "")
_HELD = 1 << 16
"""Wordings, and verdicts on two of them, that are kept."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The meaning of one wording.

    Wordings with equal `meaning`, `negated` and `qualities` are names of one relation, read from
    the other end where `turned` differs.
    `meaning`: the name of the lexicon's meaning, None where it has none. `turned`: it reads from
    the meaning's tail to its head (never of symmetric meanings). `key`: its words in base form.
    """

    meaning: str | None
    turned: bool
    negated: bool
    qualities: frozenset[str]
    key: str

    @property
    def modal(self) -> bool:
        """Whether it states a possibility, a duty, a plan or the future, no fact."""
        return not _MODALS.isdisjoint(self.qualities)


@dataclass(frozen=True, slots=True)
class _Claim:
    """A wording in one of its senses."""

    sense: Sense
    turned: bool
    negated: bool
    qualities: frozenset[str]

    def fits(self, ends: Ends) -> bool:
        """Whether it can be said of a head and a tail of these types."""
        return self._fit(ends, surely=self.sense.weak)

    def may_fit(self, ends: Ends, other: "_Claim") -> bool:
        """The same beside another wording, which vouches for a weak one if it is plain itself."""
        vouched = any(ends) and not other.sense.weak
        return self._fit(ends, surely=self.sense.weak and not vouched)

    def _fit(self, ends: Ends, *, surely: bool) -> bool:
        return self.sense.fits((ends[1], ends[0]) if self.turned else ends, surely=surely)

    def asks_for(self, ends: Ends) -> bool:
        """Whether its meaning names the types of both ends."""
        wanted = self.sense.meaning.ends[::-1] if self.turned else self.sense.meaning.ends
        return all(kinds and end in kinds for end, kinds in zip(ends, wanted, strict=True))


class Comparer:
    """Compares wordings; pure, keeps the last verdicts, and vectors that it asked for.

    Three sources, in this order: the lexicon of meanings (`lexicon/`), the wordings' structure (the
    same words in the same frame), and WordNet for wordings that differ in one word, if their
    vectors are near too. Without evidence that they say the same they are different.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors: dict[str, Matrix] = {}
        self._verdicts: dict[tuple[str, str, Ends], Verdict] = {}

    def read(self, wording: str, ends: Ends = _OPEN) -> Reading:
        """The meaning of a wording between a head and a tail of these types."""
        frame = read_frame(wording)
        listed = _list_claims(wording)
        # `works in` a college is no field of work.
        claims = tuple(c for c in listed if c.asks_for(ends)) or listed
        fitting = [c for c in claims if c.fits(ends)] or [c for c in claims if c.fits(_OPEN)]
        if not fitting:
            return Reading(None, frame.turned, frame.negated, frame.qualities, frame.key)
        claim = fitting[0]
        name = claim.sense.meaning.name
        return Reading(name, claim.turned, claim.negated, claim.qualities, frame.key)

    def compare(self, one: str, other: str, ends: Ends = _OPEN) -> Verdict:
        """How the first wording relates to the second; `ends` are the types of the first's ends."""
        key = (one, other, ends)
        if key not in self._verdicts:
            if len(self._verdicts) >= _HELD:
                self._verdicts.clear()
            self._verdicts[key] = self._judge(one, other, ends)
        return self._verdicts[key]

    def prepare(self, wordings: Collection[str]) -> None:
        """Embeds in one call those of the wordings that the lexicon does not know.

        Only their comparisons may ask for vectors; without this each is embedded when it is.
        """
        self._embed(sorted({w for w in wordings if not _list_claims(w)}))

    def _judge(self, one: str, other: str, ends: Ends) -> Verdict:
        claims, others = _list_claims(one), _list_claims(other)
        if any(ends):
            claims, others = _choose(claims, ends), _choose(others, ends, ends[::-1])
        first, second = read_frame(one), read_frame(other)
        found = _compare_claims(claims, others, ends) or _compare_claims(claims, others, _OPEN)
        if found is not None:
            return found
        found = self._compare_statements(one, other, ends)
        if found is not None:
            return found
        plain = [[c for c in all_ if not c.sense.weak] for all_ in (claims, others)]
        if all(plain) and (first.key, first.turned) != (second.key, second.turned):
            names = [found[0].sense.meaning.name for found in plain]
            return Verdict("different", False, f"{names[0]} is not {names[1]}")
        shared = _find_shared_start(first, second)
        if shared is not None:
            found = Verdict("equivalent", False, f"both begin with {shared}, and end alike")
            return _limit(found, first, second)
        found = self._judge_words(one, other, first, second)
        if found.likeness == "different" and says_more(one, other):
            return Verdict("narrower", False, "the same words and more")
        if found.likeness == "different" and says_more(other, one):
            return Verdict("broader", False, "the same words, the other with more")
        return found

    def _compare_statements(self, one: str, other: str, ends: Ends) -> Verdict | None:
        """Whether one says the other of a thing of a kind: `is a film made by`, `was made by`."""
        statement, other_statement = find_statement(one), find_statement(other)
        if bool(statement) == bool(other_statement):
            return None
        found = self.compare(statement or one, other_statement or other, ends)
        likeness: Likeness = "narrower" if statement else "broader"
        if found.likeness not in {"equivalent", likeness}:
            return None
        return Verdict(likeness, found.turned, f"{found.reason}, one names the kind")

    def _judge_words(self, one: str, other: str, first: Frame, second: Frame) -> Verdict:
        found = compare_frames(first, second)
        if found is None:
            return Verdict("different", False, "no word or meaning in common")
        verdict, least = found
        if least:
            self._embed([one, other])
            if float(self._vectors[one] @ self._vectors[other]) < least:
                return Verdict("different", False, f"{verdict.reason}, but the vectors are unlike")
        return _limit(verdict, first, second) if verdict.likeness == "equivalent" else verdict

    def embed(self, wordings: Sequence[str]) -> Matrix:
        """Their vectors, a row each."""
        self._embed(wordings)
        return np.array([self._vectors[wording] for wording in wordings])

    def _embed(self, wordings: Sequence[str]) -> None:
        new = [wording for wording in wordings if wording not in self._vectors]
        if new:
            self._vectors.update(zip(new, self._embedder.embed(new), strict=True))


@lru_cache(_HELD)
def _list_claims(wording: str) -> tuple[_Claim, ...]:
    """All senses of a wording."""
    frame = read_frame(wording)
    return tuple(
        _Claim(
            sense,
            turned and not sense.meaning.symmetric,
            frame.negated != sense.negated,
            frame.qualities - sense.qualities,
        )
        for sense, turned in load_lexicon().find_senses(frame)
    )


def _compare_claims(
    claims: tuple[_Claim, ...], others: tuple[_Claim, ...], ends: Ends
) -> Verdict | None:
    """The verdict of the first senses of both that have one and may stand between such ends."""
    flipped = (ends[1], ends[0])
    for one in claims:
        for other in others:
            if one.sense.meaning is other.sense.meaning:
                turned = one.turned != other.turned
                other_ends = flipped if turned else ends
                if one.may_fit(ends, other) and other.may_fit(other_ends, one):
                    meaning = one.sense.meaning
                    reason = f"both mean {meaning.name}"
                    same = Verdict("equivalent", turned, reason, meaning.symmetric)
                    return _limit(same, one, other)
    for one in (claim for claim in claims if claim.fits(ends)):
        for other in others:
            found = _compare_levels(one, other)
            if found is not None and other.fits(flipped if found.turned else ends):
                return found
    return None


def _choose(claims: tuple[_Claim, ...], *both: Ends) -> tuple[_Claim, ...]:
    """The senses between such ends: those they ask for, else no weak one where a plain one fits."""
    asked = tuple(c for c in claims if any(c.asks_for(ends) for ends in both))
    plain = any(not c.sense.weak and c.fits(ends) for c in claims for ends in both)
    return asked or tuple(c for c in claims if not (plain and c.sense.weak))


def is_past_state(wording: str) -> bool:
    """Whether it tells what may have ended: `was editor of` a state, `was born in` a deed."""
    return wording.startswith(("was ", "were ")) and read_frame(wording).key.startswith("be ")


def is_present(name: str) -> bool:
    """Whether a relation's name says that it holds now: `is editor of`, not `editor`."""
    return name.startswith(("is ", "are ", "has ", "have "))


@lru_cache(_HELD)
def _list_content(wording: str) -> frozenset[str]:
    """The words and whole forms of a wording of which it shares one with what it says more than."""
    frame = read_frame(wording)
    keys = [frame.key, *(key for key, _ in frame.alternates)]
    return frozenset([*keys, *(word for key in keys for word in key.split())]) - _SHARED


_SHARED = PREPOSITIONS | {"be", "have"}


@lru_cache(_HELD)
def says_more(wording: str, name: str, turned: bool = False) -> bool:
    """Whether a wording is a name of a relation with words more: `is a staff member in`, `member`.

    Words before the noun that both are or have leave the noun what it is (`senior member`), or name
    a body that its members are of (`staff member`); an object may be beside a verb with its
    preposition (`published papers in`, `published in`); and what one holds or got one has (`holds
    the post of`, `post`). `turned`: the name reads from tail to head.
    """
    if _list_content(wording).isdisjoint(_list_content(name)):
        return False
    one, other = read_frame(wording), read_frame(name)
    extra = one.qualities - other.qualities
    if one.negated != other.negated or not other.qualities <= one.qualities:
        return False
    if not all(map(_limits, extra)) or (is_past_state(wording) and is_present(name)):
        return False
    return any(
        (own_turned != other_turned) == turned
        and (bool(extra and key == other_key) or _adds_words(key.split(), other_key.split()))
        for key, own_turned in ((one.key, one.turned), *one.alternates)
        for other_key, other_turned in ((other.key, other.turned), *other.alternates)
    )


def _adds_words(words: Sequence[str], base: Sequence[str]) -> bool:
    if len(base) < 2 or len(words) <= 1:
        return False
    verb, *rest = words
    if base[0] == "have" and verb.removeprefix("~") in HOLDING:
        rest = rest[:-1] if rest[-1:] == ["of"] and base[-1] != "of" else rest
        verb = "have"
    noun = list(base[1:])
    link = noun.pop() if noun[-1] in PREPOSITIONS else ""
    last = rest.pop() if link and rest else ""
    if last != link and not (base[0] == "be" and {last, link} <= {"of", "in", "at"}):
        return False
    if verb != base[0] or not PREPOSITIONS.isdisjoint(rest):
        return False
    if noun:
        extra = rest[: -len(noun)]
        inside = noun == ["member"] and all("g" in load_nouns().get(word, "") for word in extra)
        return rest[len(extra) :] == noun and (inside or keep_noun(extra, [*noun, link or "of"]))
    return verb not in _MARKS and verb not in VAGUE and bool(rest)


def _find_shared_start(one: Frame, other: Frame) -> str | None:
    """The meaning that both begin with before the same words: `controls|regulates growth of`."""
    if one.turned != other.turned:
        return None
    first, second = one.key.split(), other.key.split()
    senses = load_lexicon().senses
    for length in range(1, min(len(first), len(second))):
        if first[-length:] != second[-length:]:
            return None
        starts = (" ".join(first[:-length]), " ".join(second[:-length]))
        if not _MARKS.isdisjoint(starts):
            continue
        meanings = [
            {(s.meaning.name, s.turned) for s in senses.get(start, ()) if _is_plain(s)}
            for start in starts
        ]
        both = {name for name, turned in meanings[0] & meanings[1] if not turned}
        if both and starts[0] != starts[1]:
            return min(both)
    return None


def _is_plain(sense: Sense) -> bool:
    return not (sense.weak or sense.negated or sense.qualities)


def _compare_levels(one: _Claim, other: _Claim) -> Verdict | None:
    """Whether one meaning is a special case or the contrary of the other."""
    if one.negated != other.negated or one.qualities != other.qualities:
        return None
    lexicon = load_lexicon()
    first, second = one.sense.meaning, other.sense.meaning
    above, beyond = lexicon.find_above(first.name), lexicon.find_above(second.name)
    turned = one.turned != other.turned
    if second.name in above or first.name in beyond:
        likeness: Likeness = "narrower" if second.name in above else "broader"
        special, general = (first, second) if second.name in above else (second, first)
        crossed = (above if second.name in above else beyond)[general.name]
        if one.negated:
            likeness = _OPPOSITE[likeness]
        reason = f"{special.name} is a case of {general.name}"
        return Verdict(likeness, turned != crossed and not general.symmetric, reason)
    names, others = {first.name, *above}, {second.name, *beyond}
    for name in sorted(names):
        against = lexicon.find_contraries(name) & others
        if against and not one.negated:
            return Verdict("contrary", turned, f"{name} is against {min(against)}")
    return None


def _limit(found: Verdict, one: _Claim | Frame, other: _Claim | Frame) -> Verdict:
    """The verdict on wordings that say the same but for their negations and qualities."""
    negated = one.negated
    qualities, other_qualities = one.qualities - _PASSING, other.qualities - _PASSING
    if negated != other.negated:
        denied: Likeness = "contrary" if qualities == other_qualities else "different"
        return Verdict(denied, found.turned, f"{found.reason}, one denies it")
    if qualities == other_qualities:
        return found
    more, fewer = qualities - other_qualities, other_qualities - qualities
    reason = f"{found.reason}, one with: {', '.join(sorted(more | fewer))}"
    if more and fewer:
        return Verdict("different", found.turned, reason)
    extra = more or fewer
    likeness: Likeness = "different"
    if extra in ({"possible"}, {"among"}):
        likeness = "broader" if more else "narrower"
    elif all(_limits(quality) for quality in extra):
        likeness = "narrower" if more else "broader"
    if negated and likeness in _OPPOSITE:
        likeness = _OPPOSITE[likeness]
    return Verdict(likeness, found.turned, reason)


def _limits(quality: str) -> bool:
    """Whether a wording with the quality still says what it says without it, and more."""
    return quality in _LIMITING or (quality.endswith("ly") and quality not in WEAKENING)
