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
    ERGATIVE,
    HOLDING,
    PLACED_DEEDS,
    PREPOSITIONS,
    VAGUE,
    WEAKENING,
    load_nouns,
    load_wordnet,
)

Likeness: TypeAlias = Literal["equivalent", "narrower", "broader", "contrary", "different"]
"""The first wording compared with the second: the same; a special case (`is CEO of`, `works for`);
more general; incompatible for the same ends (`was born in`, `was not born in`); unrelated."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How two wordings relate.

    `turned`: the second reads from tail to head (`founded`, `was founded by`).
    `reason`: the deciding evidence, for a person to read.
    `symmetric`: the common meaning holds in either direction (`is married to`).
    """

    likeness: Likeness
    turned: bool
    reason: str
    symmetric: bool = False


# Wordings outside the lexicon: comparison by structure and WordNet.

_NEAR = 1
"""Largest sum of two words' ranks of a shared sense at which they count as synonyms."""
_FAR = 4
"""The same where the cosine is at least `_ALIKE`."""
_FLOOR = 0.6
"""Least cosine of near synonyms; `bought` and `sold` have 0.77, unrelated words 0.2."""
_ALIKE = 0.75
_MARKS = frozenset({"be", "have"})
"""Verbs that have no meaning without the noun after them."""


def compare_frames(left: Frame, right: Frame) -> tuple[Verdict, float] | None:
    """The verdict on two frames, and the least cosine that must confirm it (0: none needed)."""
    firsts = ((left.key, left.turned), *left.alternates)
    seconds = ((right.key, right.turned), *right.alternates)
    for key, turned in firsts:
        for second_key, second_turned in seconds:
            if key == second_key and key:
                reason = f"the same words: {key}"
                return Verdict("equivalent", turned != second_turned, reason), 0.0
    for key, turned in firsts[:3]:
        for second_key, second_turned in seconds[:3]:
            if verdict := _compare_keys(key, second_key):
                likeness, reason, least = verdict
                return Verdict(likeness, turned != second_turned, reason), least
    return None


def _compare_keys(left: str, right: str) -> tuple[Likeness, str, float] | None:
    first, second = left.split(), right.split()
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
    if left.startswith("~") != right.startswith("~"):
        return None
    part = "v" if first[0] != second[0] else "na"
    return _compare_words(a.removeprefix("~"), b.removeprefix("~"), part)


def _compare_words(left: str, right: str, parts: str) -> tuple[Likeness, str, float] | None:
    net = load_wordnet()
    if right in net.opposites.get(left, ()):
        return ("contrary", f"{left} is the opposite of {right}", 0.0) if "a" in parts else None
    for part in parts:
        rank = net.find_rank(left, right, part)
        if rank is not None and rank <= _FAR:
            least = _FLOOR if rank <= _NEAR else _ALIKE
            return "equivalent", f"{left} and {right} are synonyms", least
    if parts == "v":
        if net.is_kind_of(left, right):
            return "narrower", f"{left} is a way to {right}", _FLOOR
        if net.is_kind_of(right, left):
            return "broader", f"{right} is a way to {left}", _FLOOR
    return None


# Wordings of the lexicon, and the order of the sources.

MODAL = frozenset({"possible", "hypothetical", "duty", "future", "intended", "wished"})
"""Qualities of what is not stated as a fact."""
_LIMITING = frozenset({"joint", "appointed", "elected", "helped"})
"""Qualities that make a wording more specific."""
_PASSING = frozenset({"become", "remain"})
"""Qualities without effect on the verdict: `became chair of` entails `is the chair of`."""
_OPPOSITE: dict[Likeness, Likeness] = {"narrower": "broader", "broader": "narrower"}
Ends: TypeAlias = tuple[str, str]
_OPEN: Ends = ("", "")
_HELD = 1 << 16
"""Most wordings, and verdicts on pairs, in memory."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The meaning of a wording.

    Wordings with equal `meaning`, `negated` and `qualities` are names of the same relation, read
    from the other end where `turned` differs.
    `meaning`: the name of the lexicon's meaning, or None. `turned`: it reads from the meaning's
    tail to its head (never for symmetric meanings). `key`: its words in base form.
    """

    meaning: str | None
    turned: bool
    negated: bool
    qualities: frozenset[str]
    key: str

    @property
    def modal(self) -> bool:
        """Whether it states a possibility, a duty, a plan or the future rather than a fact."""
        return not MODAL.isdisjoint(self.qualities)


@dataclass(frozen=True, slots=True)
class _Claim:
    """A wording in a particular sense."""

    sense: Sense
    turned: bool
    negated: bool
    qualities: frozenset[str]

    def fits(self, ends: Ends, partner: "_Claim | None" = None) -> bool:
        """Whether it can hold between a head and a tail of these types.

        A plain sense of a partner wording supports a weak sense of this one.
        """
        vouched = partner is not None and any(ends) and not partner.sense.weak
        wanted = (ends[1], ends[0]) if self.turned else ends
        return self.sense.fits(wanted, surely=self.sense.weak and not vouched)

    def asks_for(self, ends: Ends) -> bool:
        """Whether its meaning names the types of both ends."""
        wanted = self.sense.meaning.ends[::-1] if self.turned else self.sense.meaning.ends
        return all(kinds and end in kinds for end, kinds in zip(ends, wanted, strict=True))


_Claims: TypeAlias = tuple[_Claim, ...]


class Comparer:
    """Compares wordings; pure, with recent verdicts and all computed vectors in memory.

    Three sources, in this order: the lexicon of meanings (`lexicon/`), the wordings' structure (the
    same words in the same frame), and WordNet for wordings that differ in one word, if their
    vectors are near too. Wordings without evidence of the same meaning are different.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._vectors: dict[str, Matrix] = {}
        self._verdicts: dict[tuple[str, str, Ends], Verdict] = {}

    def read(self, wording: str, ends: Ends = _OPEN) -> Reading:
        """The meaning of a wording between a head and a tail of these types."""
        return _read(wording, ends)

    def compare(self, left: str, right: str, ends: Ends = _OPEN) -> Verdict:
        """The verdict on the left wording and the right; `ends`: types of the left one's ends."""
        key = (left, right, ends)
        if key not in self._verdicts:
            if len(self._verdicts) >= _HELD:
                self._verdicts.clear()
            self._verdicts[key] = self._judge(left, right, ends)
        return self._verdicts[key]

    def prepare(self, wordings: Collection[str]) -> None:
        """Embeds the wordings that the lexicon lacks, in one call.

        Only their comparisons need vectors; without this call each is embedded when needed.
        """
        self._embed(sorted({w for w in wordings if not _list_claims(w)}))

    def _judge(self, left: str, right: str, ends: Ends) -> Verdict:
        likely, claims = _choose(_list_claims(left), ends)
        likely_others, others = _choose(_list_claims(right), ends, ends[::-1])
        first, second = read_frame(left), read_frame(right)
        verdict = (
            _compare_claims(likely, likely_others, ends)
            or _compare_claims(claims, others, ends)
            or _compare_claims(claims, others, _OPEN)
            or self._compare_statements(left, right, ends)
        )
        if verdict is not None:
            return verdict
        plain = [[c for c in all_ if not c.sense.weak] for all_ in (claims, others)]
        if all(plain) and (first.key, first.turned) != (second.key, second.turned):
            names = [senses[0].sense.meaning.name for senses in plain]
            return Verdict("different", False, f"{names[0]} is not {names[1]}")
        if shared := _find_shared_start(first, second):
            verdict = Verdict("equivalent", False, f"both begin with {shared}, and end alike")
            return _limit(verdict, first, second)
        verdict = self._judge_words(left, right, first, second)
        if verdict.likeness == "different" and says_more(left, right):
            return Verdict("narrower", False, "the same words and more")
        if verdict.likeness == "different" and says_more(right, left):
            return Verdict("broader", False, "the same words, the other with more")
        return verdict

    def _compare_statements(self, left: str, right: str, ends: Ends) -> Verdict | None:
        """The verdict where one wording adds a kind, `is a film made by` to `was made by`."""
        statement, second = find_statement(left), find_statement(right)
        if bool(statement) == bool(second):
            return None
        verdict = self.compare(statement or left, second or right, ends)
        likeness: Likeness = "narrower" if statement else "broader"
        if verdict.likeness not in {"equivalent", likeness}:
            return None
        return Verdict(likeness, verdict.turned, f"{verdict.reason}, one names the kind")

    def _judge_words(self, left: str, right: str, first: Frame, second: Frame) -> Verdict:
        shared = compare_frames(first, second)
        if shared is None:
            return Verdict("different", False, "no word or meaning in common")
        verdict, least = shared
        if least:
            self._embed([left, right])
            if float(self._vectors[left] @ self._vectors[right]) < least:
                return Verdict("different", False, f"{verdict.reason}, but the vectors are unlike")
        return _limit(verdict, first, second) if verdict.likeness == "equivalent" else verdict

    def embed(self, wordings: Sequence[str]) -> Matrix:
        """The vectors of wordings, shape (n, d)."""
        self._embed(wordings)
        return np.array([self._vectors[wording] for wording in wordings])

    def _embed(self, wordings: Sequence[str]) -> None:
        new = [wording for wording in wordings if wording not in self._vectors]
        if new:
            self._vectors.update(zip(new, self.embedder.embed(new), strict=True))


@lru_cache(_HELD)
def _read(wording: str, ends: Ends) -> Reading:
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
    """The verdict of the first related senses of both wordings that fit such ends, or None."""
    flipped = (ends[1], ends[0])
    for left in claims:
        for right in others:
            if left.sense.meaning is right.sense.meaning:
                turned = left.turned != right.turned
                right_ends = flipped if turned else ends
                if left.fits(ends, right) and right.fits(right_ends, left):
                    meaning = left.sense.meaning
                    reason = f"both mean {meaning.name}"
                    same = Verdict("equivalent", turned, reason, meaning.symmetric)
                    return _limit(same, left, right)
    for left in (claim for claim in claims if claim.fits(ends)):
        for right in others:
            verdict = _compare_levels(left, right)
            if verdict is not None and right.fits(flipped if verdict.turned else ends):
                return verdict
    return None


def _choose(claims: _Claims, *both: Ends) -> tuple[_Claims, _Claims]:
    """The likely senses for such ends, and the possible ones.

    Both types choose a weak sense (`works in` a firm). A plain one leaves the other plain ones
    beside it: `taught at` names an employer, and is the same as `was on the teaching staff of`.
    Where a plain one fits, a weak sense is possible unless it names other types.
    """
    asked = tuple(c for c in claims if any(map(c.asks_for, both)))
    if any(c.sense.weak for c in asked):
        return asked, asked
    plain = tuple(c for c in claims if not c.sense.weak)
    if not any(c.fits(ends) for c in plain for ends in both):
        return claims, claims
    return plain, tuple(c for c in claims if not (c.sense.weak and any(c.sense.meaning.ends)))


def is_past_state(wording: str) -> bool:
    """Whether it states a past state, which may have ended: `was editor of`, not `was born in`."""
    return wording.startswith(("was ", "were ")) and read_frame(wording).key.startswith("be ")


def is_present(name: str) -> bool:
    """Whether a relation's name is in the present tense: `is editor of`, not `editor`."""
    return name.startswith(("is ", "are ", "has ", "have "))


@lru_cache(_HELD)
def list_content(wording: str) -> frozenset[str]:
    """The content words and base forms of a wording; one is shared with any broader wording."""
    frame = read_frame(wording)
    keys = [frame.key, *(key for key, _ in frame.alternates)]
    return frozenset([*keys, *(word for key in keys for word in key.split())]) - _SHARED


_SHARED = PREPOSITIONS | {"be", "have"}


@lru_cache(_HELD)
def says_more(wording: str, name: str, turned: bool = False) -> bool:
    """Whether a wording is a relation's name with more words: `is a staff member in`, `member`.

    Words before the noun must not change its kind (`senior member`), or name the body of members
    (`staff member`). An object may stand between a verb and its preposition (`published papers in`,
    `published in`). To hold or get a thing is to have it (`holds the post of`, `post`). `turned`:
    the name reads from tail to head.
    """
    if list_content(wording).isdisjoint(list_content(name)):
        return False
    form, base = read_frame(wording), read_frame(name)
    extra = form.qualities - base.qualities
    if form.negated != base.negated or not base.qualities <= form.qualities:
        return False
    if not all(map(_limits, extra)) or (is_past_state(wording) and is_present(name)):
        return False
    return any(
        (form_turned != base_turned) == turned
        and (bool(extra and key == base_key) or _adds_words(key.split(), base_key.split()))
        for key, form_turned in ((form.key, form.turned), *form.alternates)
        for base_key, base_turned in ((base.key, base.turned), *base.alternates)
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
    if verb.removeprefix("~") in ERGATIVE and not noun:
        return not rest  # what "began a career in 1990" did not begin in 1990
    if noun:
        extra = rest[: -len(noun)]
        inside = noun == ["member"] and all("g" in load_nouns().get(word, "") for word in extra)
        return rest[len(extra) :] == noun and (inside or keep_noun(extra, [*noun, link or "of"]))
    # `found guilty in` has no object, and is not `found in`.
    last = rest[-1] if rest else ""
    is_noun = last in load_nouns() and not verb.startswith("~")
    has_object = last != "" and (is_noun or last not in load_wordnet().senses["a"])
    return verb not in _MARKS and verb not in VAGUE and has_object


def _find_shared_start(left: Frame, right: Frame) -> str | None:
    """The common meaning of two beginnings with equal ends: `controls|regulates growth of`."""
    if left.turned != right.turned:
        return None
    first, second = left.key.split(), right.key.split()
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


def _compare_levels(left: _Claim, right: _Claim) -> Verdict | None:
    """The verdict where a meaning is a special case or the contrary of the other, else None."""
    if left.negated != right.negated or left.qualities != right.qualities:
        return None
    lexicon = load_lexicon()
    first, second = left.sense.meaning, right.sense.meaning
    above, beyond = lexicon.find_above(first.name), lexicon.find_above(second.name)
    turned = left.turned != right.turned
    if second.name in above or first.name in beyond:
        likeness: Likeness = "narrower" if second.name in above else "broader"
        special, general = (first, second) if second.name in above else (second, first)
        crossed = (above if second.name in above else beyond)[general.name]
        if left.negated:
            likeness = _OPPOSITE[likeness]
        reason = f"{special.name} is a case of {general.name}"
        return Verdict(likeness, turned != crossed and not general.symmetric, reason)
    names, others = {first.name, *above}, {second.name, *beyond}
    for name in sorted(names):
        against = lexicon.find_contraries(name) & others
        if against and not left.negated:
            return Verdict("contrary", turned, f"{name} is against {min(against)}")
    return None


def _limit(verdict: Verdict, left: _Claim | Frame, right: _Claim | Frame) -> Verdict:
    """The verdict on wordings of equal meaning, adapted to their negations and qualities."""
    qualities, right_qualities = left.qualities - _PASSING, right.qualities - _PASSING
    if left.negated != right.negated:
        denied: Likeness = "contrary" if qualities == right_qualities else "different"
        return Verdict(denied, verdict.turned, f"{verdict.reason}, one denies it")
    if qualities == right_qualities:
        return verdict
    more, fewer = qualities - right_qualities, right_qualities - qualities
    reason = f"{verdict.reason}, one with: {', '.join(sorted(more | fewer))}"
    if more and fewer:
        return Verdict("different", verdict.turned, reason)
    extra = more or fewer
    likeness: Likeness = "different"
    if extra in ({"possible"}, {"among"}):
        likeness = "broader" if more else "narrower"
    elif all(_limits(quality) for quality in extra):
        likeness = "narrower" if more else "broader"
    if left.negated and likeness in _OPPOSITE:
        likeness = _OPPOSITE[likeness]
    return Verdict(likeness, verdict.turned, reason)


def _limits(quality: str) -> bool:
    """Whether a wording with the quality entails the wording without it."""
    return quality in _LIMITING or (quality.endswith("ly") and quality not in WEAKENING)
