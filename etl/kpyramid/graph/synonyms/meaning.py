"""The meaning of a relation wording: base form, direction, voice, modifiers."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from kpyramid.documents.words import lemmatise
from kpyramid.graph.synonyms import words as w
from kpyramid.graph.synonyms.words import WORDS, find_verb, is_past, load_wordnet


def keep_noun(modifiers: Sequence[str], noun: Sequence[str]) -> bool:
    """Whether a noun with these modifiers is a case of the noun alone.

    `noun` is the rest of the key, with its preposition: `city in`.
    """
    if not w.SUPERLATIVES.isdisjoint(noun[:-1]):
        return False
    known = w.MODIFIERS | WORDS["kinds"] if noun[-1] in WORDS["placed"] else w.MODIFIERS
    following = [*modifiers, noun[0]][1:]
    return w.PREPOSITIONS.isdisjoint(modifiers) and all(
        word.casefold() in known or (word in WORDS["ordinals"] and after in w.SUPERLATIVES)
        for word, after in zip(modifiers, following, strict=True)
    )


_MARKS = re.compile(r"[^\w\s'’-]+")


@dataclass(slots=True)
class Draft:
    """The state of reading a wording: its tokens, and which of them follow an article."""

    tokens: list[str] = field(default_factory=list)
    marked: list[bool] = field(default_factory=list)
    qualities: set[str] = field(default_factory=set)
    negated: bool = False
    indefinite: bool = False
    possessive: bool = False
    bare: bool = False
    """Whether the main verb follows a verb that requires its base form: `did not found`."""


def split_wording(wording: str) -> list[str]:
    text = unicodedata.normalize("NFKC", wording).casefold().replace("’", "'").replace("_", " ")
    text = _MARKS.sub(" ", text).replace("n't", " n't").replace("'s", " 's")
    text = (
        text.replace("ca n't", "can n't").replace("wo n't", "will n't").replace("cannot", "can not")
    )
    words = []
    for word in text.split():
        if "-" not in word:
            words.append(word)
            continue
        first, _, rest = word.partition("-")
        if first == "co" and find_verb(word.replace("-", "")):
            words.append(word.replace("-", ""))
        elif first in {"co", "ex"}:
            words += [first, *rest.split("-")]
        elif first in WORDS["joined"]:
            words.append(word.replace("-", ""))
        else:
            words += word.split("-")
    return [word.strip("'") if word != "'s" else word for word in words if word.strip("'-")]


def sift_tokens(tokens: list[str]) -> Draft:
    """The tokens without words that have no effect or that become qualities."""
    draft = Draft()
    marked = False
    for index, word in enumerate(tokens):
        after = tokens[index + 1] if index + 1 < len(tokens) else ""
        if word in WORDS["determiners"]:
            marked = True
            draft.indefinite |= word in {"a", "an"}
            continue
        if word == "'s" and not draft.tokens and tokens[-1] == "by":
            word = "is"  # `'s directed by` is no possessive
        if word in {"'s", "whose"} and not draft.tokens:
            draft.possessive = True
            continue
        if word == "no" and after == "longer":
            draft.qualities.add("former")
            continue
        if word == "longer" and index and tokens[index - 1] == "no":
            continue
        if word == "used" and after == "to" and not draft.tokens:
            draft.qualities.add("former")
            continue
        if word == "to" and index and tokens[index - 1] == "used" and not draft.tokens:
            continue
        if word == "would" and not WORDS["later"].isdisjoint(tokens):
            draft.bare = True
            continue
        if word in WORDS["held"] and marked and after == "of":
            word = f"the {word}"
        if word in WORDS["negations"]:
            draft.negated = not draft.negated
            continue
        quality = _find_quality(word, after, marked, draft)
        if quality is not None:
            if quality:
                draft.qualities.add(quality)
            continue
        if word.startswith("co") and _is_shared(word[2:]):
            draft.qualities.add("joint")
            word = word[2:]
        draft.tokens.append(w.ALIKE.get(word, word))
        draft.marked.append(marked)
        marked = False
    return draft


def _is_shared(word: str) -> bool:
    verb = find_verb(word)
    return lemmatise(word) in WORDS["shared_roles"] or (
        verb is not None and verb in WORDS["shared_deeds"]
    )


def _find_quality(word: str, after: str, marked: bool, draft: Draft) -> str | None:
    """The quality that a word states, `` for a word without effect, None for any other word."""
    last = not after
    if word in WORDS["conditional"]:
        goes = not last and not marked and (is_past(after) or _is_adverb(after))
        return "" if goes and word != "like" else None
    if word in WORDS["jointly"]:
        return "joint"
    if word in WORDS["former"] and not marked:
        return "former"
    if word in WORDS["nearly"]:
        return "nearly"
    if word in WORDS["partly"]:
        return "partly"
    if word in WORDS["possibly"] and not last and after != "to":
        return "possible"
    if word in WORDS["harmless"] and not (last and not draft.tokens):
        return ""
    named = bool(after) and after not in w.PREPOSITIONS
    if word in WORDS["former_adjectives"] and named:
        return "former"
    if word in WORDS["grading"] and named and (marked or draft.tokens):
        return "major" if find_verb(word) is None or marked else None
    if word in WORDS["evaluative"] and named and (marked or draft.tokens):
        return "" if find_verb(word) is None or marked else None
    if _is_adverb(word):
        return word
    return None


def _is_adverb(word: str) -> bool:
    return word in WORDS["harmless"] or (
        word.endswith("ly") and len(word) > 4 and word not in WORDS["not_adverbs"]
    )


@dataclass(frozen=True, slots=True)
class Frame:
    """A wording's structure.

    `key`: the base form without words of no effect: a verb and its prepositions (`live in`), `~`
    before a passive without an agent (`~bear in`), `be` before a noun, an adjective or a
    preposition (`be author of`), `have` before a noun of the tail (`have capital`).
    `turned`: a passive with an agent, whose key is the active's. `qualities`: modifiers that limit
    it (`possible`, `former`, `joint`, an adverb). `alternates`: other keys of the same meaning, and
    whether they are turned, the likelier first.
    """

    key: str
    turned: bool
    negated: bool
    qualities: frozenset[str]
    alternates: tuple[tuple[str, bool], ...] = ()


@lru_cache(maxsize=200_000)
def read_frame(wording: str) -> Frame:
    """The structure of a wording."""
    draft = sift_tokens(split_wording(wording))
    passive, start = _follow_auxiliaries(draft)
    key, turned, others = _spell(draft, passive, start)
    alternates = tuple(dict.fromkeys(a for a in others if a != (key, turned)))
    return Frame(key, turned, draft.negated, frozenset(draft.qualities), alternates)


_REPORTED = re.compile(
    r"\w+ (said|reported|reputed|rumoured|alleged) to |(\w+ )?(reported|alleged|reputed)ly "
)
"""The beginning of a wording that attributes the statement to others: "is said to own"."""


def read_modality(wording: str) -> str:
    """The modality of a wording, as a value of the column `modality`."""
    if _REPORTED.match(wording.casefold()):
        return "reported"
    qualities = read_frame(wording).qualities
    return next((modality for name, modality in w.MODALITIES.items() if name in qualities), "fact")


@lru_cache(maxsize=100_000)
def find_statement(wording: str) -> str:
    """A wording without the kind that it names, or ``: `is a film made by`, `was made by`."""
    draft = sift_tokens(split_wording(wording))
    passive, start = _follow_auxiliaries(draft)
    if passive or draft.negated or draft.qualities or len(draft.tokens) < start + 4:
        return ""
    rest = draft.tokens[start + 1 :]
    if draft.tokens[start] not in w.BE or not draft.marked[start + 1]:
        return ""
    if rest[-1] not in w.PREPOSITIONS or not is_past(rest[-2]):
        return ""
    *modifiers, noun = [_spell_inner(word) for word in rest[:-2]]
    if noun in w.PREPOSITIONS or not keep_noun(modifiers, [noun, "in"]):
        return ""
    return f"was {rest[-2]} {rest[-1]}"


def _follow_auxiliaries(draft: Draft) -> tuple[bool | None, int]:
    """Whether the main word is a passive (None: no form of be before it), and its index."""
    tokens, i, seen = draft.tokens, 0, False
    while i + 1 < len(tokens):
        word, after = tokens[i], tokens[i + 1]
        infinitive = i + 2 < len(tokens) and tokens[i + 1] == "to"
        verb = find_verb(word)
        if word in w.MODALS and not draft.marked[i]:
            draft.qualities.add(w.MODALS[word])
            draft.bare = True
        elif word in w.DO and draft.negated and load_wordnet().is_verb(after):
            draft.bare = True
        elif (
            word in w.HAVE
            and not draft.marked[i + 1]
            and (after in {"been", "had"} or (is_past(after) and not seen))
        ):
            pass
        elif word == "be" and i == 0 and _reads_lemmas(tokens):
            return True, 1
        elif word in w.BE and not draft.marked[i + 1]:
            if infinitive and find_verb(tokens[i + 2]):
                draft.qualities.add("future")
                i += 1
            elif after in {"been", "being"}:
                pass
            elif i + 3 < len(tokens) and tokens[i + 2] == "to" and _reads_verb(tokens[i + 3]):
                quality = _find_raising(after)
                if quality is None:
                    return _close_passive(tokens, i)
                _note(draft, quality)
                draft.bare = True
                i += 2
            elif after.endswith("ing") and find_verb(after) not in {None, after}:
                pass
            else:
                return _close_passive(tokens, i)
        elif verb in w.RAISING and infinitive and _reads_verb(tokens[i + 2]):
            _note(draft, w.RAISING[verb])
            draft.bare = True
            i += 1
        elif verb == "help" and find_verb(after) and not draft.marked[i + 1]:
            draft.qualities.add("helped")
            draft.bare = True
        else:
            break
        seen = True
        i += 1
    return None, i


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


def _note(draft: Draft, quality: str) -> None:
    if quality == "not":
        draft.negated = not draft.negated
    elif quality:
        draft.qualities.add(quality)


def _close_passive(tokens: list[str], index: int) -> tuple[bool | None, int]:
    """Whether a form of be is followed by a participle, and the index of the main word."""
    return (True, index + 1) if is_past(tokens[index + 1]) else (False, index)


_Spelt = tuple[str, bool, list[tuple[str, bool]]]


def _spell(draft: Draft, passive: bool | None, start: int) -> _Spelt:
    """The key, whether it is turned, and other keys."""
    tokens = draft.tokens[start:]
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
    if first.endswith("ing") and rest and w.names_person(rest[0]):
        return _spell_copula(draft, tokens, draft.indefinite)  # "was managing director of"
    verb = first if draft.bare and load_wordnet().is_verb(first) else find_verb(first)
    if draft.bare and verb is not None:
        return _spell_verb(draft, verb, verb, rest)
    if verb is None or first in w.PREPOSITIONS or draft.marked[start]:
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
    if form == verb and rest == ["of"] and form not in WORDS["taking_of"]:
        return True
    if form == verb:
        return form in nouns and (rest[-1:] == ["of"] or load_wordnet().is_mostly_noun(form))
    return form.endswith("s") and rest[:1] == ["of"] and load_wordnet().is_mostly_noun(verb)


def _spell_passive(draft: Draft, participle: str, rest: list[str]) -> _Spelt:
    verb = find_verb(participle) or participle
    if rest[-1:] == ["by"] and participle != "born":
        key, _, others = _spell_verb(draft, participle, verb, rest[:-1])
        return key, True, [(alternate, not turned) for alternate, turned in others]
    if verb == "swear" and rest[:2] == ["in", "as"] and len(rest) > 2:
        return _spell_copula(draft, rest[2:], False)
    if verb in WORDS["appoint"] and len(rest) > 1:
        named = rest[1:] if rest[0] == "as" else rest
        if named[0] not in w.PREPOSITIONS and named[-1] in w.PREPOSITIONS:
            draft.qualities.add("elected" if verb == "elect" else "appointed")
            return _spell_copula(draft, named, False)
    return "~" + _join(verb, rest), False, []


def _spell_verb(draft: Draft, form: str, verb: str, rest: list[str]) -> _Spelt:
    if is_past(form) and form != verb and rest[-1:] == ["by"]:
        return _join(verb, rest[:-1]), True, [(_join(verb, rest), False)]
    if verb in WORDS["role_verbs"] and rest[:1] == ["as"] and len(rest) > 1:
        return _spell_copula(draft, rest[1:], False)
    if verb == "count" and rest[:1] == ["among"] and len(rest) > 1:
        whole = rest[-1] in w.PREPOSITIONS
        return _spell_copula(draft, rest, False) if whole else _spell_having(rest)
    role = _find_role(verb, rest)
    if role:
        return _spell_copula(draft, role, False)
    others: list[tuple[str, bool]] = []
    if is_past(form) and form != verb and rest:
        others.append(("~" + _join(verb, rest), False))
    if verb in WORDS["light"]:
        others += _list_carried(rest)
    if verb in WORDS["light_passive"]:
        others += [
            (key, True) if rest[-1] in {"by", "from"} else (f"~{key}", False)
            for key, _ in _list_carried(rest)
        ]
    if verb in WORDS["showing"]:
        others += _list_shown(rest)
    return _join(verb, rest), False, others


def _find_role(verb: str, rest: list[str]) -> list[str]:
    """The role and its preposition in `held the post of chair of`, `took over as chair of`."""
    if verb == "take" and rest[:1] == ["up"]:
        verb, rest = "hold", rest[1:]
    if verb in {"hold", "occupy"} and len(rest) > 3 and rest[1] == "of":
        return rest[2:] if rest[0] in WORDS["offices"] and rest[2] not in w.PREPOSITIONS else []
    if verb == "take" and len(rest) > 3 and rest[0] in {"over", "office"} and rest[1] == "as":
        return rest[2:]
    if verb in {"rise", "go"} and "become" in rest:
        return rest[rest.index("become") + 1 :]
    return []


def _list_carried(rest: list[str]) -> list[tuple[str, bool]]:
    """Keys with the verb of a light verb's noun: `made a contribution to`, `contributed to`."""
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
        if verb not in WORDS["light"]
    ]


def _list_shown(rest: list[str]) -> list[tuple[str, bool]]:
    """Keys with the adjective of a noun of quality: `shows resistance to`, `is resistant to`."""
    for noun, adjective in w.NOUN_ENDINGS.items():
        if rest and rest[0].endswith(noun):
            return [(_join("be", [rest[0].removesuffix(noun) + adjective, *rest[1:]]), False)]
    return []


def _spell_copula(draft: Draft, rest: list[str], indefinite: bool) -> _Spelt:
    if not rest:
        return ("be a" if indefinite else "be"), False, []
    listed = rest[:2] == ["one", "of"] or (rest[0] == "among" and rest[-1] in {"of", "in"})
    if rest[:2] == ["one", "of"]:
        rest = rest[2:]
        if rest and lemmatise(rest[0]) in WORDS["shared_roles"]:
            draft.qualities.add("joint")
        elif any(map(_is_singling, rest)):
            draft.qualities.add("among")
    elif listed:
        rest = rest[1:]
        if any(map(_is_singling, rest)):
            draft.qualities.add("among")
    if not rest:
        return "be one of", False, []
    key = _join("be", rest)
    others: list[tuple[str, bool]] = []
    if len(rest) > 2 and rest[-2] in WORDS["lying"] and rest[-1] in w.PREPOSITIONS:
        others.append((_join("be", [*rest[:-2], rest[-1]]), False))
    if rest[:2] == ["home", "to"] and len(rest) > 2:
        others += _list_contained(rest[2:-1] if rest[-1] == "of" else rest[2:])
    if len(rest) > 1 and rest[-1] == "of" and w.PREPOSITIONS.isdisjoint(rest[:-1]):
        others.append((_join("have", rest[:-1]), True))
        if listed:  # one of the churches of a town is a church in it
            others.append((_join("be", [*rest[:-1], "in"]), False))
    if len(rest) == 2 and rest[1] in w.PREPOSITIONS:
        noun = lemmatise(rest[0])
        for verb in _find_acting(noun):
            with_preposition = [] if rest[1] == "of" else [(_join(verb, rest[1:]), False)]
            plain = [(verb, False)] if rest[1] in {"of", "for", "to"} else []
            others += with_preposition + plain
    return key, False, others


def _is_singling(word: str) -> bool:
    """Whether a word singles out a thing among several: `one of the oldest clubs in`."""
    return word in {"first", "last", "most"} or (word.endswith("est") and lemmatise(word) != word)


def _find_acting(noun: str) -> list[str]:
    """The verbs from which a noun for a person is derived: `found` for `founder`."""
    net = load_wordnet()
    if noun.endswith(("ee", "ess")):
        return []
    derived = [d for d in net.derived.get(noun, []) if d.kind == "person" and d.noun_rank < 3]
    return list(dict.fromkeys(d.verb for d in derived if d.verb_rank < 4))


def _spell_having(rest: list[str]) -> _Spelt:
    if not rest:
        return "have", False, []
    listed = rest[2:] if rest[:2] == ["one", "of"] else rest[1:] if rest[0] == "among" else []
    if listed and not any(map(_is_singling, listed)):
        key, turned, others = _spell_having(listed)
        contained = _list_contained(listed)
        return contained[-1][0], True, [(key, turned), *contained, *others]
    if rest[-1] == "of" and w.PREPOSITIONS.isdisjoint(rest[:-1]) and len(rest) > 1:
        return _join("have", rest), False, [(_join("have", rest[:-1]), False)]
    if not w.PREPOSITIONS.isdisjoint(rest):
        return _join("have", rest), False, _list_shown(rest) + _list_carried(rest)
    others = [(_join("be", [*rest, "of"]), True)]
    if len(rest) == 1:
        others += [(verb, True) for verb in _find_acting(lemmatise(rest[0]))]
    return _join("have", rest), False, others


def _list_contained(rest: list[str]) -> list[tuple[str, bool]]:
    """Further keys for a place that has a kind of thing: `is home to the mill`, `is a mill in`."""
    if not w.PREPOSITIONS.isdisjoint(rest):
        return []
    return [
        (_join("have", rest), False),
        (_join("be", [*rest, "in"]), True),
        (_join("be", [*rest, "of"]), True),
    ]


def _spell_noun(draft: Draft, tokens: list[str]) -> _Spelt:
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
    base = lemmatise(lemmatise(word))  # a plural in American spelling, then its British form
    if word.endswith("est") and base != word:
        return word
    return w.ALIKE.get(base, base)
