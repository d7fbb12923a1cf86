"""The structure of a relation wording: its words in base form, direction, voice and qualities.

A `Frame`'s key spells what is said without what does not change it: `find` verb and its
prepositions (`live in`), `~` before a passive without an agent (`~bear in`), `be` before a noun, an
adjective or a preposition (`be author of`), `have` before what the head has (`have capital`).
"""

import re
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache

from kpyramid.extraction.normal import lemmatise
from kpyramid.paraphrase import words as w
from kpyramid.paraphrase.wordnet import find_verb, is_past, load_wordnet

_SPACE = re.compile(r"\s+")
_MARKS = re.compile(r"[^\w\s'’-]+")
_NOT_ADVERBS = frozenset(
    "family assembly ally monopoly anomaly italy july reply fly early only daily weekly monthly "
    "yearly quarterly costly friendly deadly lovely elderly holy hourly apply supply rely multiply "
    "comply imply rally tally bully butterfly duopoly oligopoly likely unlikely".split()
)
_TAKING_OF = frozenset("consist dispose think dream speak hear know die approve tell".split())
_CONDITIONAL = frozenset("first best most more long all both well together like".split())
"""Adverbs only where a verb follows: `was first described by`, but `is the first king of`."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A wording's structure.

    `turned`: a passive with an agent, its key is the active's. `qualities`: what limits it
    (`possible`, `former`, `joint`, an adverb). `alternates`: other keys that say the same, and
    whether they are turned, the likelier first. `words`: key without its mark, for comparing.
    """

    key: str
    turned: bool
    negated: bool
    qualities: frozenset[str]
    alternates: tuple[tuple[str, bool], ...] = ()


@dataclass(slots=True)
class _Draft:
    """What is known while a wording is read: its tokens and which had an article before them."""

    tokens: list[str] = field(default_factory=list)
    marked: list[bool] = field(default_factory=list)
    qualities: set[str] = field(default_factory=set)
    negated: bool = False
    indefinite: bool = False
    possessive: bool = False
    bare: bool = False
    """Whether the main verb follows one that asks for its base form: `did not found`."""


@lru_cache(maxsize=200_000)
def read_frame(wording: str) -> Frame:
    """The structure of a wording."""
    draft = _sift(_split(wording))
    passive, at = _follow_auxiliaries(draft)
    key, turned, others = _spell(draft, passive, at)
    alternates = tuple(dict.fromkeys(a for a in others if a != (key, turned)))
    return Frame(key, turned, draft.negated, frozenset(draft.qualities), alternates)


def _split(wording: str) -> list[str]:
    text = unicodedata.normalize("NFKC", wording).casefold().replace("’", "'").replace("_", " ")
    text = _MARKS.sub(" ", text).replace("n't", " n't").replace("'s", " 's")
    text = (
        text.replace("ca n't", "can n't").replace("wo n't", "will n't").replace("cannot", "can not")
    )
    found = []
    for word in _SPACE.split(text.strip()):
        if "-" not in word:
            found.append(word)
            continue
        first, _, rest = word.partition("-")
        if first in {"co", "ex"}:
            found += [first, *rest.split("-")]
        elif first in w.JOINED:
            found.append(word.replace("-", ""))
        else:
            found += word.split("-")
    return [word.strip("'") if word != "'s" else word for word in found if word.strip("'-")]


def _sift(tokens: list[str]) -> _Draft:
    """The tokens without what changes nothing, and the qualities of what does."""
    draft = _Draft()
    marked = False
    for at, word in enumerate(tokens):
        after = tokens[at + 1] if at + 1 < len(tokens) else ""
        if word in w.DETERMINERS:
            marked = True
            draft.indefinite |= word in {"a", "an"}
            continue
        if word == "'s" and not draft.tokens:
            draft.possessive = True
            continue
        if word == "whose" and not draft.tokens:
            draft.possessive = True
            continue
        if word == "no" and after == "longer":
            draft.qualities.add("former")
            continue
        if word == "longer" and at and tokens[at - 1] == "no":
            continue
        if word == "used" and after == "to" and not draft.tokens:
            draft.qualities.add("former")
            continue
        if word == "to" and at and tokens[at - 1] == "used" and not draft.tokens:
            continue
        if word == "would" and not w.LATER.isdisjoint(tokens):
            draft.bare = True
            continue
        if word in w.HELD and marked and after == "of":
            word = f"the {word}"
        if word in w.NEGATIONS:
            draft.negated = not draft.negated
            continue
        quality = _find_quality(word, after, marked, draft)
        if quality is not None:
            if quality:
                draft.qualities.add(quality)
            continue
        if word.startswith("co") and len(word) > 6 and not load_wordnet().is_verb(word):
            stem = word[2:]
            if (
                is_past(stem)
                or f"{stem[:-1]}" in load_wordnet().senses["n"]
                or stem in (load_wordnet().senses["n"])
            ):
                draft.qualities.add("joint")
                word = stem
        draft.tokens.append(w.ALIKE.get(word, word))
        draft.marked.append(marked)
        marked = False
    return draft


def _find_quality(word: str, after: str, marked: bool, draft: _Draft) -> str | None:
    """The quality of a word that is one, `` of a word without effect, None of any other word."""
    last = not after
    if word in _CONDITIONAL:
        goes = not last and not marked and (is_past(after) or _is_adverb(after))
        return "" if goes and word != "like" else None
    if word in w.JOINTLY:
        return "joint"
    if word in w.FORMER and not marked:
        return "former"
    if word in w.NEARLY:
        return "nearly"
    if word in w.PARTLY:
        return "partly"
    if word in w.POSSIBLY and not (last and draft.tokens) and after != "to":
        return "possible"
    if word in w.HARMLESS and not (last and not draft.tokens):
        return ""
    named = bool(after) and after not in w.PREPOSITIONS
    if word in w.FORMER_ADJECTIVES and named:
        return "former"
    if word in w.GRADING and named and (marked or draft.tokens):
        return "major" if find_verb(word) is None or marked else None
    if word in w.EVALUATIVE and named and (marked or draft.tokens):
        return "" if find_verb(word) is None or marked else None
    if _is_adverb(word):
        return word
    return None


def _is_adverb(word: str) -> bool:
    return word in w.HARMLESS or (
        word.endswith("ly") and len(word) > 4 and word not in _NOT_ADVERBS
    )


def _follow_auxiliaries(draft: _Draft) -> tuple[bool | None, int]:
    """Whether the main word is a passive (None: no verb form of be before it), and its place."""
    tokens, at, passive, seen = draft.tokens, 0, None, False
    while at + 1 < len(tokens):
        word, after = tokens[at], tokens[at + 1]
        infinitive = at + 2 < len(tokens) and tokens[at + 1] == "to"
        verb = find_verb(word)
        if word in w.MODALS and not draft.marked[at]:
            draft.qualities.add(w.MODALS[word])
            draft.bare = True
        elif word in w.DO and draft.negated and load_wordnet().is_verb(after):
            draft.bare = True
        elif (
            word in w.HAVE
            and not draft.marked[at + 1]
            and (after in {"been", "had"} or (is_past(after) and not seen))
        ):
            pass
        elif word == "be" and at == 0 and _reads_lemmas(tokens):
            return True, 1
        elif word in w.BE and not draft.marked[at + 1]:
            if infinitive and find_verb(tokens[at + 2]):
                draft.qualities.add("future")
                at += 1
            elif after in {"been", "being"}:
                pass
            elif at + 3 < len(tokens) and tokens[at + 2] == "to" and _reads_verb(tokens[at + 3]):
                quality = _find_raising(after)
                if quality is None:
                    return _close_passive(tokens, at)
                _note(draft, quality)
                draft.bare = True
                at += 2
            elif after.endswith("ing") and find_verb(after) not in {None, after}:
                pass
            else:
                return _close_passive(tokens, at)
        elif verb in w.RAISING and infinitive and _reads_verb(tokens[at + 2]):
            _note(draft, w.RAISING[verb])
            draft.bare = True
            at += 1
        elif verb == "help" and find_verb(after) and not draft.marked[at + 1]:
            draft.qualities.add("helped")
            draft.bare = True
        else:
            break
        seen = True
        at += 1
    return passive, at


def _reads_lemmas(tokens: list[str]) -> bool:
    """Whether a wording in base forms is a passive: `be bear in`, `be found by`."""
    net, verb = load_wordnet(), tokens[1]
    if not net.is_verb(verb) or verb in net.senses["a"] or len(tokens) < 3 or tokens[-1] == "of":
        return False
    return tokens[-1] == "by" or not net.is_mostly_noun(verb)


def _reads_verb(word: str) -> bool:
    return word in w.BE or word in w.HAVE or load_wordnet().is_verb(word)


def _find_raising(word: str) -> str | None:
    verb = find_verb(word)
    if word in w.RAISING_ADJECTIVES:
        return w.RAISING_ADJECTIVES[word]
    return w.RAISING_PASSIVE.get(verb) if verb else None


def _note(draft: _Draft, quality: str) -> None:
    if quality == "not":
        draft.negated = not draft.negated
    elif quality:
        draft.qualities.add(quality)


def _close_passive(tokens: list[str], at: int) -> tuple[bool | None, int]:
    """After a form of be: a participle makes a passive, anything else is said of the head."""
    return (True, at + 1) if is_past(tokens[at + 1]) else (False, at)


_Spelt = tuple[str, bool, list[tuple[str, bool]]]


def _spell(draft: _Draft, passive: bool | None, at: int) -> _Spelt:
    """The key, whether it is turned, and other keys."""
    tokens = draft.tokens[at:]
    if not tokens:
        return ("be a" if draft.indefinite else "be" if draft.possessive else ""), False, []
    first, rest = tokens[0], tokens[1:]
    if passive:
        return _spell_passive(draft, first, rest)
    if find_verb(first) in w.COPULAS:
        draft.qualities.add(find_verb(first) or "")
    if first in w.BE or find_verb(first) in w.COPULAS:
        return _spell_copula(draft, rest, draft.indefinite)
    if first in w.HAVE:
        if rest[:1] == ["as"]:
            rest = rest[1:]
        return _spell_having(rest)
    if draft.possessive or (rest and rest[-1] in w.BE):
        return _spell_having([word for word in tokens if word not in w.BE])
    verb = first if draft.bare and load_wordnet().is_verb(first) else find_verb(first)
    if draft.bare and verb is not None:
        return _spell_verb(draft, verb, verb, rest)
    if verb is None or first in w.PREPOSITIONS or draft.marked[at]:
        return _spell_noun(draft, tokens)
    if _leans_to_noun(first, verb, rest):
        key, turned, others = _spell_noun(draft, tokens)
        return key, turned, [*others, (_join(verb, rest), False)]
    key, turned, others = _spell_verb(draft, first, verb, rest)
    if first == verb or first.endswith("ing"):
        noun, back, _ = _spell_noun(draft, tokens)
        others = [*others, (noun, back)]
    return key, turned, others


def _leans_to_noun(form: str, verb: str, rest: list[str]) -> bool:
    nouns = load_wordnet().senses["n"]
    if form == verb and rest == ["of"] and form not in _TAKING_OF:
        return True
    if form == verb:
        return form in nouns and (rest[-1:] == ["of"] or load_wordnet().is_mostly_noun(form))
    return form.endswith("s") and rest[:1] == ["of"] and load_wordnet().is_mostly_noun(verb)


def _spell_passive(draft: _Draft, participle: str, rest: list[str]) -> _Spelt:
    verb = find_verb(participle) or participle
    if rest[-1:] == ["by"] and participle != "born":
        key, _, others = _spell_verb(draft, participle, verb, rest[:-1])
        return key, True, [(other, not turned) for other, turned in others]
    if verb in w.APPOINT and len(rest) > 1:
        named = rest[1:] if rest[0] == "as" else rest
        if named[0] not in w.PREPOSITIONS and named[-1] in w.PREPOSITIONS:
            draft.qualities.add("elected" if verb == "elect" else "appointed")
            return _spell_copula(draft, named, False)
    return "~" + _join(verb, rest), False, []


def _spell_verb(draft: _Draft, form: str, verb: str, rest: list[str]) -> _Spelt:
    if is_past(form) and form != verb and rest[-1:] == ["by"]:
        return _join(verb, rest[:-1]), True, [(_join(verb, rest), False)]
    if verb in w.ROLE_VERBS and rest[:1] == ["as"] and len(rest) > 1:
        return _spell_copula(draft, rest[1:], False)
    others: list[tuple[str, bool]] = []
    if is_past(form) and form != verb and rest:
        others.append(("~" + _join(verb, rest), False))
    if verb in w.LIGHT:
        others += _list_carried(rest)
    if verb in w.LIGHT_PASSIVE:
        others += [
            (key, True) if rest[-1] in {"by", "from"} else (f"~{key}", False)
            for key, _ in _list_carried(rest)
        ]
    if verb in w.SHOWING:
        others += _list_shown(rest)
    return _join(verb, rest), False, others


def _list_carried(rest: list[str]) -> list[tuple[str, bool]]:
    """The verbs that a light verb's noun stands for: `made a contribution to`, `contributed to`."""
    rest = rest[1:] if rest[:1] in (["out"], ["up"]) else rest
    nouns = [word for word in rest if word not in w.PREPOSITIONS]
    if len(nouns) != 1 or rest[0] != nouns[0]:
        return []
    noun = lemmatise(nouns[0])
    net = load_wordnet()
    verbs = [d.verb for d in net.derived.get(noun, []) if d.kind != "person" and d.noun_rank < 4]
    if noun in net.senses["v"]:
        verbs.insert(0, noun)
    verbs = list(dict.fromkeys(verbs))
    return [
        key
        for verb in verbs
        for key in ((_join(verb, rest[1:]), False), (verb, False))
        if verb not in w.LIGHT
    ]


def _list_shown(rest: list[str]) -> list[tuple[str, bool]]:
    """What a noun of quality says of the head: `shows resistance to`, `is resistant to`."""
    for noun, adjective in w.QUALITIES:
        if rest and rest[0].endswith(noun):
            return [(_join("be", [rest[0].removesuffix(noun) + adjective, *rest[1:]]), False)]
    return []


def _spell_copula(draft: _Draft, rest: list[str], indefinite: bool) -> _Spelt:
    if not rest:
        return ("be a" if indefinite else "be"), False, []
    if rest[:2] == ["one", "of"]:
        rest = rest[2:]
        if rest and lemmatise(rest[0]) in w.SHARED_ROLES:
            draft.qualities.add("joint")
    elif rest[0] == "among" and rest[-1] == "of":
        rest = rest[1:]
    if not rest:
        return "be one of", False, []
    key = _join("be", rest)
    others: list[tuple[str, bool]] = []
    if len(rest) > 1 and rest[-1] == "of" and w.PREPOSITIONS.isdisjoint(rest[:-1]):
        others.append((_join("have", rest[:-1]), True))
    if len(rest) == 2 and rest[1] in w.PREPOSITIONS:
        noun = lemmatise(rest[0])
        for verb in _find_acting(noun):
            with_preposition = [] if rest[1] == "of" else [(_join(verb, rest[1:]), False)]
            plain = [(verb, False)] if rest[1] in {"of", "for", "to"} else []
            others += with_preposition + plain
    return key, False, others


def _find_acting(noun: str) -> list[str]:
    """The verbs of what somebody called by the noun does: `founder`, `found`."""
    net = load_wordnet()
    if noun.endswith(("ee", "ess")):
        return []
    found = [d for d in net.derived.get(noun, []) if d.kind == "person" and d.noun_rank < 3]
    return list(dict.fromkeys(d.verb for d in found if d.verb_rank < 4))


def _spell_having(rest: list[str]) -> _Spelt:
    if not rest:
        return "have", False, []
    if rest[-1] == "of" and w.PREPOSITIONS.isdisjoint(rest[:-1]) and len(rest) > 1:
        return _join("have", rest), False, [(_join("have", rest[:-1]), False)]
    if not w.PREPOSITIONS.isdisjoint(rest):
        return _join("have", rest), False, _list_shown(rest) + _list_carried(rest)
    others = [(_join("be", [*rest, "of"]), True)]
    if len(rest) == 1:
        others += [(verb, True) for verb in _find_acting(lemmatise(rest[0]))]
    return _join("have", rest), False, others


def _spell_noun(draft: _Draft, tokens: list[str]) -> _Spelt:
    if tokens[0] == "as" and len(tokens) > 1:
        tokens = tokens[1:]
    if tokens[-1] in w.PREPOSITIONS:
        return _spell_copula(draft, tokens, draft.indefinite)
    return _spell_having(tokens)


def _join(verb: str, rest: list[str]) -> str:
    return " ".join((verb, *(_spell_inner(word) for word in rest)))


@lru_cache(maxsize=100_000)
def _spell_inner(word: str) -> str:
    if word in w.PREPOSITIONS or word in w.BE:
        return word
    word = lemmatise(word)
    return w.ALIKE.get(word, word)
