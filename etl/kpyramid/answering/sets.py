"""Questions about sets, which no passage answers: lists, counts, superlatives and comparisons.

What is asked is read from the words. A set is what is of a kind ("which waterfalls are there, in
Devon"), said by classes and by facts that something "is a" waterfall; or what stands in a relation
to what is named, gathered by `related`. What is compared by a value is asked for by itself: "Which
was founded first, A or B?" is "When was A founded?" and the same of B.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.answering.lexicon import ADJECTIVES, LIGHT, LOWER, UPPER
from kpyramid.answering.related import (
    SIZES,
    Condition,
    Member,
    Relation,
    Stated,
    find_classes,
    find_related,
    find_value,
    has_noun,
    is_counted,
    list_individuals,
    name_key,
    state_sound,
)
from kpyramid.documents.sentences import split_sentences
from kpyramid.documents.words import FUNCTION, PREPOSITIONS, lemmatise, list_plain_words
from kpyramid.query.analysis import QuestionAnalysis, fits, link_text
from kpyramid.query.facts import NearFact, state_item
from kpyramid.query.ontology_layer import MOST_VALUES, state_instance
from kpyramid.query.types import Answer, Item, Outcome, Question, Reading, Step
from kpyramid.snapshot.evidence import Evidence
from kpyramid.snapshot.individuals import find_instances
from kpyramid.snapshot.search import join_words
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.view import LITERAL

Act = Literal["list", "count", "ask", "most", "extreme"]

SURE = 0.3
"""Chance from which something is listed as a member."""
_SHIFT, _SHIFT_OF_LIST = 0.8, 1.5
"""Log-odds by which all chances of one question are too high, or too low, or neither; those of a
list more, in which the sides of a relation may be taken for each other."""
CERTAIN = 0.5
"""Probability from which a number is given as the least."""
_UNREAD = 0.5, 3.0
"""Mean and variance of the members of a rival of which nothing was read: none is not known."""
_LEAD = 0.5
"""Members by which what has most leads at least: a smaller lead says nothing. Twice of it where all
of a kind are compared: one of many has a member that was not read."""
HEADS = frozenset(
    "citizen customer employee follower inhabitant member passenger people person player pupil "
    "resident soldier speaker staff student subscriber viewer voter worker".split()
)
"""What an organisation or a place has in numbers that nobody names one by one."""
_NAMED_HEADS = frozenset("member passenger people person player soldier speaker staff".split())
"""Of these some things have few, who are named: the members of a band."""
_SEVERAL = 1.5
"""Members, about, that what has the most of all has at least: one is no number to go by."""
UNLIKELY = 0.12
"""Chance below which something counts for nothing where numbers are compared."""
MOST_SAYING = 1_000
"""Facts that say the noun of a kind which are looked through, and individuals of a class."""
MOST_RIVALS = 300
"""Things whose values are compared to find the first of all."""
_COMPLETE = 0.85
"""Chance that all of a kind are known as of it. Without it superlatives of a kind, 18 of
`structure.py`, were right by .69 and said .82."""
_MISSED = 0.3
"""Share of the things without a value that have one in words that were not read."""
MOST_OWNERS = 60
"""Things whose members are counted to find which has the most; those with the most facts."""

_PLURALS = frozenset("people means men women children media data".split())
_MASS = frozenset("software music food equipment staff literature".split())
_SINGULAR = ("ss", "us", "is")
_VERBS = "have|has|had|do|does|did|are|is|were|was|can|could|will"
_PARTS = re.compile(r"\s*(?:,\s*)?\b(?:and also|but also|as well as|and|also)\b\s*")
_MASK = re.compile(r"⟦(\d+)⟧")
_TAILED = re.compile(r"\b(?:have|has|had)(?: [a-z]+)*? ⟦(\d+)⟧((?: (?!as\b)[a-z]+){1,2})(?= as |$)")
_CUT = re.compile(r"(?<=⟧) (?=(?:that |which |who )?[a-z]+ [^⟦]*⟦)")
"""Where one condition ends and another begins: "designed by X | are in Y"."""
_ONE = re.compile(rf"([a-z]+(?: (?!(?:{_VERBS})\b)[a-z]+)?) (?=(?:{_VERBS}|[a-z]+ed)\b)")
_COUNT = re.compile(
    r"^(?:how many|(?:what is )?the number of|count(?: all)?(?: the)?) (?P<rest>.+)", re.I
)
_LIST = re.compile(
    r"^(?:(?:please )?(?:list|name|give me|show me|tell me|enumerate)(?: all| every)?"
    r"(?: the| of the)?"
    r"|(?:what|who|which) (?:are|were)(?: all)?(?: the)?|which of the|(?:which|what)(?: other)?"
    r"|all(?: the)?) (?P<rest>.+)",
    re.I,
)  # fmt: skip
_DOES = re.compile(r"^(?:what|whom?) (?P<rest>(?:does|do|did) .+)", re.I)
_WHO = re.compile(r"^who (?P<else>else )?(?P<rest>.+)", re.I)
_OWNS = re.compile(r"(?:owns?|owned|operate[sd]?|manage[sd]?|runs?|ran|works? with)\b", re.I)
"""What more than one may do, or what is no person."""
_BESIDES = re.compile(
    r",? ?\b(?:besides|beside|apart from|aside from|other than|except(?: for)?|in addition to)"
    r" (?P<names>(?:the )?⟦\d+⟧(?:(?:,| and| or)+ (?:the )?⟦\d+⟧)*),?",
    re.I,
)
_ALONG = re.compile(r" (?:together |along )?with (?P<names>(?:the )?⟦\d+⟧)$", re.I)
_SUPERLATIVE = re.compile(
    rf"^(?:what|which) (?:{_VERBS}) the (?P<degree>\w+)(?P<kind>(?: [a-z-]+)+?)"
    r"(?: (?P<prep>in|of|on) (?:the )?⟦(?P<place>\d+)⟧)?$",
    re.I,
)
_MEASURED = re.compile(
    r"^(?:how (?P<how>\w+) (?:is|was|are|were)|what (?:is|was) the (?P<what>[a-z ]+) of) (?:the )?"
    r"⟦(?P<name>\d+)⟧$",
    re.I,
)
_MANY = re.compile(r"\b(?P<sign>(?:the )?most|more|(?:the )?fewest|fewer) (?P<rest>.+)", re.I)
_RIVALS = re.compile(r"^(?P<lead>.+?)[,:]\s*(?P<both>.+ or .+)$", re.I)
_THAN = re.compile(
    r"^(?:is|are|was|were|does|do|did|has|have) (?:the )?(?P<one>⟦\d+⟧) (?P<said>.+?) "
    r"(?:than|before|after) (?:that of )?(?:the )?(?P<other>⟦\d+⟧)(?: (?:does|did|is|was|has))?$",
    re.I,
)
_OF_BOTH = re.compile(
    r"^(?P<lead>which|who)(?: one)? of (?P<both>⟦\d+⟧ and ⟦\d+⟧)(?P<rest> .+)$", re.I
)
_BY_WHICH = re.compile(r"^(?:(?:by|in|at|on|for|to|from|with) )?(?:which|what|whom?)\b", re.I)
_AT = {"first": -1, "earliest": -1, "earlier": -1, "before": -1, "last": 1, "latest": 1,
       "later": 1, "after": 1, "recently": 1, "older": -1, "oldest": -1, "newest": 1,
       "newer": 1, "younger": 1, "youngest": 1}  # fmt: skip
"""Words that order events in time, and the end that they stand for."""
_AGED = frozenset("old new young".split())
_BEGUN = "founded born built established opened released"
"""The verbs of which one says how old something is."""


@dataclass(frozen=True, slots=True)
class SetQuestion:
    """What is asked of sets.

    `list` and `count` want the members of all `conditions`. `most` wants what has most members
    of the `kind` that stand to it in the relation `words` (`sign` -1: fewest), `extreme` what has
    the highest (1) or lowest (-1) value of `words`; both among `rivals` where some are named.
    `holds`: whether that is the first of them is asked, yes or no. `owner`: lemmas of the noun
    of what is asked for. Without conditions `list` and `count` want what is of the `kind`, `ask`
    whether `thing` is; `place` is what it is to be in, or (`prep`) of. What is `beside` is no
    member. `least`: members that facts or values must state, else there is no list. `any_of`: each
    of `words` is a measure by itself.
    """

    act: Act
    kind: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    words: tuple[str, ...] = ()
    sign: int = 1
    rivals: tuple[str, ...] = ()
    holds: bool = False
    owner: tuple[str, ...] = ()
    verb: str = ""
    prep: str = ""
    place: str = ""
    thing: str = ""
    beside: tuple[str, ...] = ()
    least: int = 0
    any_of: bool = False


# Reading the question.


def read_set(asked: QuestionAnalysis) -> SetQuestion | None:
    """What a question asks of sets; None where it asks for one thing, yes or no, or a reason."""
    text, names = _mask(asked)
    if match := _BESIDES.search(text):
        text = " ".join((text[: match.start()] + " " + text[match.end() :]).split())
        text = re.sub("^who (?!else )", "who else ", text, flags=re.I)
        rest = _read_set(text, names, asked.snapshot)
        return _leave_out(rest, match["names"], names)
    if (match := _ALONG.search(text)) and re.match("who else ", text, re.I):
        rest = _read_set(text[: match.start()], names, asked.snapshot)
        if rest:
            return _leave_out(rest, match["names"], names)
    return _read_set(text, names, asked.snapshot)


def _leave_out(rest: SetQuestion | None, said: str, names: Sequence[str]) -> SetQuestion | None:
    beside = tuple(names[int(at)] for at in _MASK.findall(said))
    return replace(rest, beside=beside) if rest and rest.act in ("list", "count") else None


def _read_set(text: str, names: tuple[str, ...], snapshot: Snapshot) -> SetQuestion | None:
    compared = _read_comparison(text, names, snapshot)
    if compared or _MANY.search(text):
        return compared or _read_most(text, names, ())
    if extreme := _read_extreme(text, names, ()):
        return extreme
    if match := _COUNT.match(text):
        return _read_members("count", match["rest"], names, snapshot)
    if match := _WHO.match(text):
        return _read_who(match["rest"], names, snapshot, several=not match["else"])
    if match := _DOES.match(text):
        conditions = _read_conditions(match["rest"], names, (), snapshot)
        return SetQuestion("list", (), conditions) if any(c.verb for c in conditions) else None
    if match := _LIST.match(text):
        return _read_members("list", match["rest"], names, snapshot)
    return None


def _read_who(
    rest: str, names: Sequence[str], snapshot: Snapshot, *, several: bool
) -> SetQuestion | None:
    """Who else does something; if `several`, who does it where facts name two, or who owns it."""
    owns = _OWNS.match(rest)
    conditions = _read_conditions(rest, names, (), snapshot)
    several = several and len(conditions) < 2
    if several and not owns and re.match(rf"(?:{_VERBS})\b", rest):
        return None
    if not conditions or (several and not all(c.verb for c in conditions)):
        return None
    kind = () if owns else ("person",)
    return SetQuestion("list", kind, conditions, least=(1 if owns else 2) if several else 0)


def _mask(asked: QuestionAnalysis) -> tuple[str, tuple[str, ...]]:
    """A question with its names as ⟦0⟧, ⟦1⟧, and the names."""
    text = " ".join(re.sub("[⟦⟧]", " ", asked.text).split()).rstrip("?!. ")
    text = re.sub(r"\bc[ao]mes? out\b", "were released", text)
    index = asked.snapshot.entities_by_name()
    names: list[str] = []
    masked, at = "", 0
    runs = [re.sub(r"['’]s?$", "", name.text) for name in asked.names]
    for run in runs:
        start = text.find(run, at)
        if start < 0:
            continue
        parts = [run]
        if " and " in run and not index.get(join_words(run)):
            both = run.split(" and ")
            parts = both if all(index.get(join_words(part)) for part in both) else parts
        masked += text[at:start] + " and ".join(f"⟦{len(names) + i}⟧" for i in range(len(parts)))
        names += parts
        at = start + len(run)
    return masked + text[at:], tuple(names)


def _unmask(text: str, names: Sequence[str]) -> str:
    return _MASK.sub(lambda match: names[int(match[1])], text)


def _read_members(
    act: Act, rest: str, names: Sequence[str], snapshot: Snapshot
) -> SetQuestion | None:
    """A list or a count: a noun in the plural, then what is said of its things."""
    rest = re.sub(r"\b(?:are|is|were|was) there\b|\bthere\b|\bin (?:total|all)\b", " ", rest)
    kind, rest = _cut_kind(rest)
    owned = re.match(r"⟦(\d+)⟧(?:['’]s?)? (.+)", rest) if not kind else None
    if owned:  # "What are X's clubs?"
        kind, after = _cut_kind(owned[2])
        rest = f"⟦{owned[1]}⟧ {after}"
    one = None if kind else _ONE.match(rest)
    if one:  # "Which bridge was designed by X and opened in 1964?"
        kind, rest = tuple(map(lemmatise, one[1].split())), rest[one.end() :]
    if not kind:
        return None
    conditions = _read_conditions(rest, names, kind, snapshot)
    return SetQuestion(act, kind, conditions) if len(conditions) > bool(one) else None


def _cut_kind(text: str) -> tuple[tuple[str, ...], str]:
    """The lemmas of the plural noun that a text begins with, and what follows; none without."""
    words = text.split()
    for at, word in enumerate(words[:5]):
        plain = word.casefold().strip(",")
        if not plain or plain in FUNCTION or "⟦" in plain:
            return (), text
        after = words[at + 1].casefold() if at + 1 < len(words) else ""
        if at and " ".join(words[at + 1 :]).removeprefix("the ").startswith("⟦"):
            return (), text  # "Which company owns X?"
        if _is_plural(plain) and (after in FUNCTION or after in _MASS or not _is_plural(after)):
            kind = (*(w.casefold() for w in words[:at]), lemmatise(plain))
            beyond = words[at + 2] if at + 2 < len(words) else ""
            of = after == "of" and beyond.islower() and beyond not in FUNCTION
            return kind, " ".join(words[at + (3 if of else 1) :])  # "means of transport"
    return (), text


def _is_plural(word: str) -> bool:
    if word in _PLURALS | _MASS:
        return True
    return word.endswith("s") and not word.endswith(_SINGULAR) and lemmatise(word) != word


def _read_conditions(
    rest: str, names: Sequence[str], kind: tuple[str, ...], snapshot: Snapshot
) -> tuple[Condition, ...]:
    """What is said of the members, name by name; none where a part says something else."""
    parts: list[str] = []
    for part in (cut for one in _PARTS.split(rest) for cut in _CUT.split(one)):
        if (parts and not (_MASK.search(part) or _find_name(part, kind, snapshot))) or (
            parts and not (_MASK.search(parts[-1]) or _find_name(parts[-1], kind, snapshot))
        ):
            parts[-1] += f" {part}"
        elif part:
            parts.append(part)
    found: list[Condition] = []
    for part in parts:
        if match := _TAILED.search(part):  # "the ideology ⟦Christian⟧ democracy"
            names = [*names, names[int(match[1])] + match[2]]
            part = f"{part[: match.start(1) - 1]}⟦{len(names) - 1}⟧{part[match.end() :]}"
        masked = [names[int(at)] for at in _MASK.findall(part)]
        if not masked and (name := _find_name(part, kind, snapshot)):
            part, masked = re.sub(rf"\b{re.escape(name)}\b", " ", part), [name]
        if len(masked) != 1:
            return ()
        words = read_content(_MASK.sub(" ", part))
        inside = re.search(r"\b(?:in|at|near|within) (?:the )?$", _MASK.split(part)[0])
        if not words and not inside:
            words = found[-1].words if found else (kind[-1:] if kind else ())
        owned = bool(re.search(r"⟦\d+⟧['’]s? [a-z]", part))
        found.append(Condition(masked[0], words, *_read_verb(part), owned=owned))
    if not any(condition.words for condition in found):
        return ()  # a place alone narrows a kind: see `read_kind`
    return tuple(found)


def _read_verb(part: str) -> tuple[str, bool]:
    """The words that join the members to a masked name, and whether they join it to them."""
    if match := re.match(r"^(?:does|do|did) ⟦\d+⟧ (?!have\b)(?P<verb>[a-z].*)$", part):
        return match["verb"], True
    match = re.match(
        r"^(?:(?:that|which|who) )?(?P<verb>(?!ha(?:ve|s|d)\b)[a-z].*?) (?:the )?⟦\d+⟧$", part
    )
    says = match and read_content(match["verb"])
    return (match["verb"] if match and says else "", False)


def _find_name(text: str, kind: tuple[str, ...], snapshot: Snapshot) -> str:
    """The longest name of an entity in small letters at the end of a text."""
    index = snapshot.entities_by_name()
    words = text.split()
    for size in range(min(5, len(words)), 0, -1):
        for at in range(len(words) - size, -1, -1):
            run = words[at : at + size]
            if run[0].casefold() in FUNCTION or run[-1].casefold() in FUNCTION or at == 0:
                continue
            if index.get(join_words(" ".join(run))) and lemmatise(run[-1]) not in kind:
                return " ".join(run)
    return ""


def read_content(text: str) -> tuple[str, ...]:
    """The lemmas of what a text says beside function words and verbs of asking and having."""
    words = [w for w in list_plain_words(text) if w not in FUNCTION and w != "s"]
    lemmas = [lemmatise(word) for word in words]
    empty = LIGHT | {"else", "other", "together", "total", "both", "same", "as"}
    kept = [lemma for lemma in lemmas if lemma not in empty]
    return tuple(dict.fromkeys(kept))


def _read_noun(text: str) -> tuple[str, ...]:
    """The lemmas of a noun that says what kind of thing is asked for."""
    return tuple(lemmatise(word) for word in list_plain_words(text) if word not in FUNCTION)


def _read_comparison(text: str, names: Sequence[str], snapshot: Snapshot) -> SetQuestion | None:
    """A question that compares two named things."""
    if match := _THAN.match(text):
        rivals = tuple(_unmask(match[end], names) for end in ("one", "other"))
        order = "before" if " before " in text else "after" if " after " in text else ""
        said = f"{match['said']} {order}".strip()
        many = _MANY.search(said)
        read = _read_most(said, names, rivals) if many else _read_extreme(said, names, rivals)
        return replace(read, holds=True) if read else None
    match = _RIVALS.match(text) or _OF_BOTH.match(text)
    if match is None:
        return None
    lead = match["lead"] + (match.groupdict().get("rest") or "")
    joint = "and" if match.re is _OF_BOTH else "or"
    both = re.split(rf"\s+{joint}\s+", _unmask(match["both"], names))
    if len(both) != 2:
        joint = f" {joint} "
        cuts = [(joint.join(both[:at]), joint.join(both[at:])) for at in range(1, len(both))]
        index = snapshot.entities_by_name()
        known = [cut for cut in cuts if all(index.get(join_words(end)) for end in cut)]
        both = list((known or cuts)[0])
    rivals = tuple(re.sub(r"^the ", "", end, flags=re.I) for end in both)
    if _MANY.search(lead):
        return _read_most(lead, names, rivals)
    return _read_extreme(lead, names, rivals)


def _read_most(text: str, names: Sequence[str], rivals: tuple[str, ...]) -> SetQuestion | None:
    """What has the most of a kind: before it what it is, around it what joins them."""
    match = _MANY.search(text)
    if match is None or (_MASK.search(text) and not rivals):
        return None
    kind, after = _cut_kind(match["rest"])
    if not kind:
        return None
    before = _BY_WHICH.sub(" ", text[: match.start()])
    first, *rest = re.split(rf"\b(?:{_VERBS})\b", before, maxsplit=1)
    words = read_content(" ".join([*rest, after]))
    if not words and not re.search(r"\b(?:has|have|had)\s*$", before):  # "Which X has more Ys"
        words = read_content(first)
    owner = _read_noun(first) if rest else ()
    sign = -1 if match["sign"].casefold().endswith(("fewest", "fewer")) else 1
    words = words or kind[-1:]
    return SetQuestion("most", kind, (), words, sign, rivals, owner=owner)


def _read_extreme(text: str, names: Sequence[str], rivals: tuple[str, ...]) -> SetQuestion | None:
    """What is first, longest, or has the highest value of something."""
    plain = list_plain_words(text)
    lemmas = [lemmatise(word) for word in plain]
    yes_no = plain[:1] and re.match(r"(?:which|what|who|⟦)", plain[0]) is None
    if yes_no and not rivals:
        return None
    if (match := _SUPERLATIVE.match(text)) and not rivals:
        place = names[int(match["place"])] if match["place"] else ""
        read = _read_extreme(f"which{match['kind']} is {match['degree']}", (), ())
        return replace(read, place=place) if read and read.owner else None  # not "second largest"
    if _MASK.search(text):
        return None
    for at, (word, lemma) in enumerate(zip(plain, lemmas, strict=True)):
        degree = word.endswith(("est", "er")) or word in _AT
        if not degree:
            continue
        noun = read_content(" ".join(plain[at + 1 :]))
        owner = _read_noun(re.split(rf"\b(?:{_VERBS})\b", " ".join(plain[1:at]))[0])
        if lemma in UPPER | LOWER and noun:
            sign = 1 if lemma in UPPER else -1
            return SetQuestion("extreme", (), (), noun, sign, rivals, owner=owner)
        if word in _AT:
            verbs = [i for i in range(at) if _is_participle(plain[i])]
            if verbs:  # "Which author died first" has no auxiliary before its verb
                owner = _read_noun(
                    re.split(rf"\b(?:{_VERBS})\b", " ".join(plain[1 : verbs[-1]]))[0]
                )
            verb = plain[verbs[-1]] if verbs else _BEGUN if lemma in _AGED else ""
            after = noun if not verb else ()
            if verb or after:
                sign = _AT[word]
                return SetQuestion("extreme", (), (), after, sign, rivals, owner=owner, verb=verb)
        if lemma in ADJECTIVES and not noun:
            nouns, sign = ADJECTIVES[lemma]
            return SetQuestion("extreme", (), (), nouns, sign, rivals, owner=owner, any_of=True)
    return None


def _is_participle(word: str) -> bool:
    return word not in FUNCTION and word.endswith(("ed", "n", "t")) and lemmatise(word) != word


_KIND = r"(?P<kind>[a-z][\w-]*(?: [a-z][\w-]*){0,2}?)"
_WHERE = r"(?: (?:that (?:is|are) |located |situated )?(?P<prep>in|of) (?P<place>.+?))?"
_EVERY = "(?:List|Name|Give me|Show me|Tell me)(?: all| every)?(?: the)?"
_FORMS: Sequence[tuple[Act, str]] = (
    ("count", rf"How many {_KIND} (?:are|is|were|exist)(?: there)?{_WHERE}"),
    ("count", rf"How many {_KIND} (?:does|do|did) (?P<place>.+?) have"),
    ("list", rf"(?:Which|What) {_KIND} (?:are|is|exist)(?: there)?{_WHERE}"),
    ("list", rf"What are (?:all )?the {_KIND}{_WHERE}"),
    ("list", rf"{_EVERY} {_KIND}{_WHERE}"),
    ("ask", rf"(?:Is|Was|Are) (?P<thing>.+?) an? {_KIND}{_WHERE}"),
)
_KINDS = [(act, re.compile(rf"^\W*{form}\W*$", re.IGNORECASE)) for act, form in _FORMS]


def read_kind(asked: QuestionAnalysis) -> SetQuestion | None:
    """What a question asks of a kind; None where it asks for anything else, or for more."""
    for act, form in _KINDS:
        match = form.match(" ".join(asked.text.split()))
        if match is None:
            continue
        said = {name: text or "" for name, text in match.groupdict().items()}
        words, place, thing = (
            said["kind"].casefold().split(),
            said.get("place", ""),
            said.get("thing", ""),
        )
        if set(words) & FUNCTION:
            continue
        if all(_link(text, asked.snapshot) for text in (place, thing) if text):
            prep = said.get("prep") or ("of" if place else "")
            kind = (*words[:-1], lemmatise(words[-1]))
            return SetQuestion(act, kind, prep=prep, place=place, thing=thing)
    return None


def _link(text: str, snapshot: Snapshot) -> frozenset[str]:
    """The entities that a text names as a whole."""
    plain = re.sub(r"^(?:the|an?) ", "", text.strip(), flags=re.IGNORECASE)
    linked = link_text(plain, snapshot)
    whole = len(linked.names) == 1 and len(linked.names[0]) == len(plain)
    return frozenset(linked.entities) if whole else frozenset()


# Answering it.


def ask_sets(asked: QuestionAnalysis, *, text: bool = True) -> Answer | None:
    """The answer to a question about sets; None where it is none, or nothing is known of it.

    What is of a kind needs no `text`: the ontology and the graph say it.
    """
    question = None if asked.candidates or not text else read_set(asked)
    answer = _ANSWERS[question.act](question, asked.snapshot) if question else None
    if answer or asked.candidates or not (kind := read_kind(asked)):
        return answer
    return _answer_kind(kind, asked.snapshot)


# What is of a kind.


def _answer_kind(question: SetQuestion, snapshot: Snapshot) -> Answer | None:
    """The members of a kind, or their number, at least: the text may hold more.

    As sure as the least sure member.
    """
    found = {one: item for one, item in find_members(question, snapshot).items() if item.evidence}
    if question.thing:
        things = _link(question.thing, snapshot)
        found = {one: item for one, item in found.items() if one in things}
    aliases = _list_aliases(found, snapshot)
    found = {one: item for one, item in found.items() if one not in aliases}
    names = tuple(dict.fromkeys(snapshot.names[one] for one in found))
    is_list = question.act == "list"
    if not names or (is_list and len(names) > MOST_VALUES):
        return None
    text = "; ".join(names) if is_list else "yes" if question.thing else f"at least {len(names)}"
    kind = " ".join(question.kind)
    reason = f"{len(names)} are said to be of the kind “{kind}”; the text may name more"
    sure = min(item.confidence or 0.0 for item in found.values())
    return _give(text, names if is_list else (), tuple(found.values()), reason, sure, snapshot)


def _list_aliases(found: Mapping[str, Item], snapshot: Snapshot) -> set[str]:
    """The members that a sentence gives as another name: "Orn School or Orn College is ..."."""
    aliases: set[str] = set()
    for text in {place.text for item in found.values() for place in item.evidence}:
        if " or " in text:
            here = [one for one in found if snapshot.names[one] in text]
            names = [(one, snapshot.names[one]) for one in here]
            aliases.update(
                one
                for one, b in names
                for _, a in names
                if re.search(rf"{re.escape(a)},? or (?:the )?{re.escape(b)}\b", text)
            )
    return aliases


def find_members(question: SetQuestion, snapshot: Snapshot) -> dict[str, Item]:
    """Entities of a kind by their ids, each with the statement that says so, by name."""
    found = {} if question.prep == "of" else dict(_find_instances(question.kind, snapshot))
    where = _link(question.place, snapshot) if question.place else frozenset()
    noun = question.kind[-1]
    keys = [key for key, _ in snapshot.words(f"{noun} {noun}s", MOST_SAYING, "condensed")]
    for fact in state_sound(keys, snapshot):
        member = _read_member(fact, question, where)
        if not member or snapshot.types[member] == LITERAL:
            continue
        if member not in found or fact.tail_id in where:
            found[member] = state_item(fact, snapshot, fact.confidence)
    if question.prep == "in":
        inside = _find_inside(question.place, snapshot)
        known = {one: inside.get(name_key(snapshot.names[one])) for one in found}
        found = {one: _join(found[one], member.item) for one, member in known.items() if member}
    return dict(sorted(found.items(), key=lambda pair: (snapshot.names[pair[0]], pair[0])))


def _read_member(fact: NearFact, question: SetQuestion, where: frozenset[str]) -> str | None:
    """The end of a fact that it says is of the kind; None where it says so of none."""
    words = fact.relation.casefold().split()
    if question.prep == "of":
        if words[:1] == ["has"] and _is_kind(words[1:], question.kind) and fact.head_id in where:
            return fact.tail_id if fact.tail[:1].isupper() else None  # not "twenty-one arches"
        is_of = words[-1:] == ["of"] and _is_kind(words[1:-1], question.kind)
        return fact.head_id if is_of and fact.tail_id in where else None
    if fact.relation == "is a":
        return fact.head_id if _is_kind(list_plain_words(fact.tail), question.kind) else None
    is_noun = words[:1] in (["is"], ["was"]) and words[-1] in PREPOSITIONS
    return fact.head_id if is_noun and _is_kind(words[1:-1], question.kind) else None


def _is_kind(words: Sequence[str], kind: tuple[str, ...]) -> bool:
    """Whether a noun is that of a kind or of a narrower one: a railway company is a company."""
    said = tuple(word.casefold() for word in words)
    said = (*said[:-1], lemmatise(said[-1])) if said else ()
    return said[-len(kind) :] == kind


def _find_instances(kind: tuple[str, ...], snapshot: Snapshot) -> Iterator[tuple[str, Item]]:
    """The individuals of the classes that have a kind's name.

    Other labels of a class may be narrower: "town" of *populated place*.
    """
    for iri in find_classes(kind, snapshot):
        for member in list_individuals([iri], snapshot)[:MOST_SAYING]:
            for stated in find_instances([(member, None, None)], snapshot):
                if snapshot.schema.is_subclass(stated["class_iri"], iri):
                    yield member, state_instance(stated, snapshot)


def _join(one: Item, other: Item) -> Item:
    """Two statements as one piece of context."""
    if one.key == other.key:
        return one
    places = tuple(dict.fromkeys((*one.evidence, *other.evidence)))
    sure = min(one.confidence or 0.0, other.confidence or 0.0)
    return replace(one, text=f"{one.text}; {other.text}", evidence=places, confidence=sure)


# What stands in a relation to what is named.


def _find_asked(question: SetQuestion, snapshot: Snapshot) -> list[Member]:
    """The members of all conditions but those that the question names beside."""
    beside = {one for name in question.beside for one in _link(name, snapshot)}
    names = [*question.beside, *(snapshot.names[one] for one in beside)]
    keys = {" ".join(list_plain_words(name)) for name in names}
    found = find_all(question.conditions, question.kind, snapshot)
    return [member for member in found if member.key not in keys]


def _list_members(question: SetQuestion, snapshot: Snapshot) -> Answer | None:
    found = _find_asked(question, snapshot)
    if sum(bool(m.measures.get("states")) for m in found) < question.least:
        return None
    chances = [member.chance for member in found]
    likely = sum(member.listed and member.chance >= SURE for member in found)
    stated = any(m.measures.get("states") for m in found)  # then others are as sure as they can be
    sizes = range(likely if stated and likely else 1, 1 + likely)
    if not sizes:
        return None
    _, size = max((rate_list(chances, size), size) for size in sizes)
    sure = rate_list(chances, size, short=True)
    names = tuple(member.name for member in found[:size])
    reason = f"the {size} likeliest of {len(found)} candidates; the text may name more"
    return _give("; ".join(names), names, _cite(found[:size]), reason, sure, snapshot)


def _count_members(question: SetQuestion, snapshot: Snapshot) -> Answer | None:
    """The number of members that there are at least; None where a stated number is the answer."""
    condition = question.conditions[0]
    listed = Relation(condition.words, snapshot).properties  # the ontology names them one by one
    if _is_headcount(condition, question.kind, snapshot) and not (
        listed and question.kind[-1] in _NAMED_HEADS
    ):
        return None
    if is_counted(condition, question.kind, snapshot):
        return None
    found = _list_distinct(_find_asked(question, snapshot))
    likely = [member for member in found if member.listed and member.chance >= SURE]
    least, _ = count_least([member.chance for member in likely])
    if not least:
        return None
    spreads = [_spread(shifted) for shifted in _shift([member.chance for member in found])]
    sure = sum(sum(spread[least:]) for spread in spreads) / len(spreads)
    reason = f"{len(likely)} of {len(found)} candidates are likely; the text may name more"
    return _give(f"at least {least}", (), _cite(likely[:least]), reason, sure, snapshot)


def _is_headcount(condition: Condition, kind: Sequence[str], snapshot: Snapshot) -> bool:
    """Whether people of an organisation or a place are counted, of which few have a name here."""
    if not kind or kind[-1] not in HEADS:
        return False
    known = snapshot.entities_by_name().get(join_words(condition.anchor), ())
    types = {snapshot.types[entity] for entity in known}
    return kind[-1] not in _NAMED_HEADS or bool(types & {"ORG", "GPE", "LOC", "NORP", "FAC"})


def find_all(
    conditions: Sequence[Condition], kind: tuple[str, ...], snapshot: Snapshot
) -> list[Member]:
    """The members that meet all conditions, surest first."""
    sets = [
        find_related(condition, kind, snapshot)
        if condition.words
        else _find_inside(condition.anchor, snapshot)
        for condition in conditions
    ]
    first, *others = sets
    found = []
    for key, member in first.items():
        alike = [one for other in others if (one := other.get(key))]
        if len(alike) < len(others):
            continue
        every, item = [member, *alike], member.item
        for one in alike:
            item = _join(item, one.item)
        chance = math.prod(one.chance for one in every)
        if set.intersection(*({*one.item.evidence} for one in every)):
            chance **= 1 / len(every)  # one sentence names all of them
        listed = all(one.listed for one in every)
        found.append(replace(member, chance=chance, item=item, listed=listed))
    return sorted(found, key=lambda m: (not m.listed, -m.chance, m.key))


def _find_inside(place: str, snapshot: Snapshot) -> dict[str, Member]:
    """What facts say to be in a place, as members by their keys."""
    where, found = _link(place, snapshot), dict[str, Member]()
    for fact in state_sound(snapshot.facts_about(where, most=MOST_SAYING), snapshot):
        if fact.tail_id in where and fact.relation.endswith(" in"):
            item, key = state_item(fact, snapshot, fact.confidence), name_key(fact.head)
            measures = {"states": fact.confidence}
            found[key] = Member(key, fact.head, fact.confidence, item, measures)
    return found


def _list_distinct(members: Sequence[Member]) -> list[Member]:
    """Members none of which may be another by a longer or a shorter name.

    A number of them is a lower bound, and two spellings of one thing must not raise it.
    """
    kept: list[Member] = []
    for member in members:
        words = set(member.key.split())
        others = (set(other.key.split()) for other in kept)
        if not any(words <= other or words >= other for other in others):
            kept.append(member)
    return kept


def count_least(chances: Sequence[float]) -> tuple[int, float]:
    """The highest number of things that there surely are at least, and how sure that is."""
    spreads = [_spread(shifted) for shifted in _shift(chances)]
    sure = [
        sum(sum(spread[n:]) for spread in spreads) / len(spreads) for n in range(len(spreads[0]))
    ]
    least = max(n for n, chance in enumerate(sure) if chance >= CERTAIN or not n)
    return least, sure[least]


def rate_list(chances: Sequence[float], size: int, *, short: bool = False) -> float:
    """The probability that half of the first things at least are right, and half of all in them.

    With `short` also that all of the first are right, however many are missing.
    """
    rates = []
    for shifted in _shift(chances, _SHIFT_OF_LIST):
        right, beside = _spread(shifted[:size]), _spread(shifted[size:])
        half = (size + 1) // 2
        rates.append(sum(right[at] * sum(beside[: at + 1]) for at in range(half, size + 1)))
        rates[-1] += right[size] * sum(beside[size + 1 :]) if short else 0.0
    return sum(rates) / len(rates)


def _shift(chances: Sequence[float], by: float = _SHIFT) -> list[list[float]]:
    """Chances that are all too high, as they are, and all too low: one question's err together."""
    odds = [
        math.log(chance / (1 - chance)) for chance in (min(max(c, 1e-6), 1 - 1e-6) for c in chances)
    ]
    return [[1 / (1 + math.exp(-(one + shift))) for one in odds] for shift in (-by, 0.0, by)]


def _spread(chances: Sequence[float]) -> list[float]:
    """The probability of each number of things, each with its own chance (Poisson-binomial)."""
    spread = [1.0]
    for chance in chances:
        grown = [0.0] * (len(spread) + 1)
        for number, share in enumerate(spread):
            grown[number] += share * (1 - chance)
            grown[number + 1] += share * chance
        spread = grown
    return spread


def _cite(members: Sequence[Member]) -> tuple[Item, ...]:
    return tuple(member.item for member in members)


def _give(
    text: str,
    choices: tuple[str, ...],
    items: tuple[Item, ...],
    reason: str,
    chance: float,
    snapshot: Snapshot,
) -> Answer:
    """An answer that rests on statements, shown by whole sentences."""
    wide = {place: widen(place, snapshot) for item in items for place in item.evidence}
    items = tuple(
        replace(item, evidence=tuple(dict.fromkeys(wide[place] for place in item.evidence)))
        for item in items
    )
    places = tuple(dict.fromkeys(place for item in items for place in item.evidence))
    layers = [item.layer for item in items]
    layer = next((one for one in ("ontology", "graph") if one in layers), "text")
    sure = round(chance, 4)
    step = Step(layer, Outcome.ANSWERED, reason, tuple(item.text for item in items), sure)
    return Answer(text, choices, items, layer, places, (step,), confidence=sure)


def widen(place: Evidence, snapshot: Snapshot) -> Evidence:
    """The sentence that a place stands in; the place itself where it is more than one."""
    for passage in snapshot.evidence(place.chunk_id):
        for span in split_sentences(passage.text):
            start, end = passage.start + span.start, passage.start + span.end
            if start <= place.start and place.end <= end:
                text = passage.text[span.start : span.end]
                return replace(place, start=start, end=end, text=text)
    return place


def _answer_most(question: SetQuestion, snapshot: Snapshot) -> Answer | None:
    """What has the most members: by the sum of their chances."""
    relation = Relation(question.words, snapshot, kind=(*question.kind, *question.owner))
    rivals = question.rivals or _list_owners(question, relation, snapshot)
    if any(_is_headcount(Condition(r, ()), question.kind, snapshot) for r in rivals):
        return None
    sized: list[tuple[float, str, list[Member]]] = []
    for rival in rivals:
        condition = Condition(rival, question.words)
        found = find_related(condition, question.kind, snapshot, relation)
        likely = [m for m in _list_distinct([*found.values()]) if m.chance >= UNLIKELY]
        sized.append((sum(m.chance for m in likely), rival, likely))
    sized.sort(key=lambda t: (-question.sign * t[0], t[1]))
    if len(sized) < 2 or not sized[0][2]:
        return None
    most, best, members = sized[0]
    if not question.rivals and most < _SEVERAL:
        return None
    chance, lead = (1.0, _LEAD) if question.rivals else (_COMPLETE, 2 * _LEAD)
    for other, _, theirs in sized[1:]:
        unread, doubt = (0.0, 0.0) if theirs or not question.rivals else _UNREAD
        doubt += _vary(members) + _vary(theirs)
        ahead = question.sign * (most - other - unread)
        chance *= _normal((ahead - lead) / math.sqrt(doubt + 1))
    second = sized[1][0]
    listed = [m for *_, found in sized[: len(question.rivals) or 1] for m in found]
    text = best
    if question.holds:
        text = "yes" if best == question.rivals[0] else "no"
    reason = f"about {most:.0f} against {second:.0f} of the next"
    return _give(text, (), _cite(listed), reason, chance, snapshot)


def _vary(members: Sequence[Member]) -> float:
    """The variance of a number of members, whose chances err by themselves and all together."""
    own = sum(m.chance * (1 - m.chance) for m in members)
    return own + own**2 * _SHIFT**2 * 2 / 3


def _normal(x: float) -> float:
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


def _list_owners(question: SetQuestion, relation: Relation, snapshot: Snapshot) -> list[str]:
    """Things of the kind that may have most: ends of the relation, then those with most facts."""
    has_values = question.words[-1:] == question.kind[-1:]
    counts: Counter[str] = Counter()

    def count(head: str, tail: str | None, turned: bool) -> None:
        owner = head if has_values is not turned else tail
        if owner:
            counts[owner] += 1

    facts, values = snapshot.table("condensed"), snapshot.table("instances")
    known = facts["standard_relation"].unique().to_pylist()
    said = [wording for wording in known if relation.is_said_by(wording)]
    for row in _pick(facts, "standard_relation", said):
        count(row["head_id"], row["tail_id"], row["standard_turned"])
    for row in _pick(values, "property_iri", list(relation.properties)):
        count(row["subject_id"], row["object_id"], False)
    about = Counter(facts["head_id"].to_pylist()) + Counter(
        facts["tail_id"].drop_null().to_pylist()
    )
    found = _keep_kind({*counts}, question.owner, snapshot, {*counts})
    if len(found) < 2:
        found = _keep_kind({*about}, question.owner, snapshot, {*counts})
    ordered = sorted(found, key=lambda e: (-counts[e], -about[e], snapshot.names[e]))
    return list(dict.fromkeys(snapshot.names[entity] for entity in ordered[:MOST_OWNERS]))


def _keep_kind(
    entities: Collection[str], owner: tuple[str, ...], snapshot: Snapshot, joined: Collection[str]
) -> list[str]:
    """The entities that are of a kind, where two are; else those `joined` by the relation.

    A kind is said by a class, by facts, and by the name itself: Tarn Bridge is a bridge. What is
    joined needs no more than its type. Where too few are, they are those whose type is asked for.
    """
    wanted = f"Which {' '.join(owner)} is it?" if owner else "Who?"
    asked = QuestionAnalysis(Question(wanted), snapshot)
    members = {*list_individuals(find_classes(owner, snapshot), snapshot)}
    if owner:
        members |= find_members(SetQuestion("list", owner), snapshot).keys()
    members |= {one for one in entities if _is_called(snapshot.names[one], owner)}
    rated = {one: fits(snapshot.types[one], asked) for one in entities}
    tiers = (
        [one for one in entities if one in members],
        [one for one in joined if rated[one] > 0],
        [one for one in joined if rated[one] == 0],
    )
    typed = [one for one in entities if rated[one] > 0]
    found = next((found for found in tiers if len(found) > 1), typed)
    return found if found is tiers[0] else _leave_others(found, owner, snapshot)


_APART = frozenset("band club magazine newspaper party school team university".split())
"""What an organisation is called that is nothing else."""
_WIDE = frozenset("group institution organisation organization".split())


def _leave_others(entities: Sequence[str], kind: tuple[str, ...], snapshot: Snapshot) -> list[str]:
    """Those of some entities that are not called something else: a university is no company."""
    others = frozenset() if _WIDE.issuperset(kind[-1:]) else _APART.difference(kind)
    told = state_sound(snapshot.facts_about(entities), snapshot)
    called = [(f.head_id, f.tail) for f in told if f.relation == "is a"]
    called += [(one, snapshot.names[one]) for one in entities]
    out = {one for one, said in called if not others.isdisjoint(list_plain_words(said))}
    return [one for one in entities if one not in out]


def _is_called(name: str, kind: tuple[str, ...]) -> bool:
    """Whether a name says a kind beside what is its own: Amsterdam Airport Schiphol."""
    return len(list_plain_words(name)) > 1 and name[0].isupper() and has_noun(name, kind)


def _pick(table: pa.Table, column: str, values: Sequence[str]) -> list[dict[str, Any]]:
    """The rows with one of some values in a column."""
    chosen = pc.is_in(table[column], value_set=pa.array(values, pa.string()))
    found: list[dict[str, Any]] = table.filter(chosen).to_pylist()
    return found


def _answer_extreme(question: SetQuestion, snapshot: Snapshot) -> Answer | None:
    """What has the highest value, of two that are named or of all of a kind."""
    dated = bool(question.verb) or not {"date", "year"}.isdisjoint(question.words)
    verbs = question.verb.split()
    relations = [Relation((lemmatise(verb),), snapshot, verb) for verb in verbs]
    if question.any_of:
        relations = _measure_by(question.words, snapshot)
    relations = relations or [Relation(question.words, snapshot)]
    rivals = question.rivals or _list_kind(question, relations, snapshot)
    if question.place:
        of = SetQuestion("list", question.owner, prep="in", place=question.place)
        rivals = [snapshot.names[one] for one in find_members(of, snapshot)]
    if len(rivals) > MOST_RIVALS:
        return None  # the first of some of them is not the first of all
    found = [
        (max(values, key=lambda one: one.chance), rival)
        for rival in rivals
        if (values := [v for r in relations if (v := find_value(rival, r, dated, snapshot))])
    ]
    units = Counter(one.unit for one, _ in found if one.unit)
    unit = min(units, key=lambda u: (-units[u], u), default="")
    kinds = {"", unit and SIZES[unit][0]}
    found = [pair for pair in found if pair[0].unit == "" or SIZES[pair[0].unit][0] in kinds]
    if len(found) < 2 or (question.rivals and len(found) < len(rivals)):
        return None
    if not question.rivals:
        return _choose_first(found, len(rivals), question.sign, unit, snapshot)
    found.sort(key=lambda pair: (-question.sign * pair[0].measure(unit), pair[1]))
    (one, first), (other, second) = found
    if one.measure(unit) == other.measure(unit):
        return None
    text = first
    if question.holds:
        text = "yes" if first == question.rivals[0] else "no"
    known = one.chance * other.chance  # where a value is wrong the answer is a coin's
    reason = f"{first}: {one}; {second}: {other}"
    chance = known + (1 - known) / 2
    return _give(text, (), (*one.items, *other.items), reason, chance, snapshot)


def measure_thing(asked: QuestionAnalysis) -> Reading | None:
    """How high, long, ... what a question names is, or "what the height of" it is."""
    text, names = _mask(asked)
    match = _MEASURED.match(text)
    if match is None:
        return None
    nouns, _ = ADJECTIVES.get(lemmatise((match["how"] or "").casefold()), ((), 0))
    words = read_content(match["what"] or "")
    if words and words[-1] not in {noun for listed, _ in ADJECTIVES.values() for noun in listed}:
        return None
    snapshot, anchor = asked.snapshot, names[int(match["name"])]
    relations = [Relation(words, snapshot)] if words else _measure_by(nouns, snapshot)
    found = [v for r in relations if (v := find_value(anchor, r, False, snapshot)) and v.unit]
    if not found:
        return None
    best = max(found, key=lambda one: one.chance)
    places = dict.fromkeys(place for item in best.items for place in item.evidence)
    return Reading(str(best), (str(best),), best.chance, tuple(places))


def _measure_by(nouns: tuple[str, ...], snapshot: Snapshot) -> list[Relation]:
    """The relations that say a measure: a height is said in metres high, too."""
    alike = (a for a, (measured, _) in ADJECTIVES.items() if measured[:1] == nouns[:1])
    return [Relation((word,), snapshot) for word in (*nouns, *alike)]


def _choose_first(
    found: Sequence[tuple[Stated, str]], rivals: int, sign: int, unit: str, snapshot: Snapshot
) -> Answer:
    """What is most likely the first of all, which `found` are some of.

    What has no value, or a wrong one, is as likely to be beyond a place as a further one of them.
    """
    distinct: list[tuple[Stated, str]] = []
    for stated, name in found:
        words = set(list_plain_words(name))
        same = (set(list_plain_words(n)) for s, n in distinct if s.value == stated.value)
        if not any(words <= other or other <= words for other in same):
            distinct.append((stated, name))
    unknown = _MISSED * (rivals - len(found))
    orders = [sign * stated.measure(unit) for stated, _ in distinct]
    rated = []
    for stated, name in distinct:
        own = sign * stated.measure(unit)
        beyond = (sum(o > own for o in orders) + 0.5) / (len(orders) + 1)
        chance = stated.chance * (1 - beyond) ** unknown
        for (other, its), order in zip(distinct, orders, strict=True):
            if its != name:
                behind = 0.5 if order == own else float(order < own)
                chance *= other.chance * behind + (1 - other.chance) * (1 - beyond)
        rated.append((-chance, name, stated))
    chance, name, stated = min(rated, key=lambda one: one[:2])
    others = [f"{n}: {s}" for s, n in distinct if n != name][:2]
    reason = f"{name}: {stated}; {'; '.join(others)}; known of {len(found)} of {rivals}"
    return _give(name, (), stated.items, reason, -chance * _COMPLETE, snapshot)


def _list_kind(
    question: SetQuestion, relations: Sequence[Relation], snapshot: Snapshot
) -> list[str]:
    """The names of the things of a kind that either layer knows, by name."""
    facts = snapshot.table("condensed")
    known = facts["standard_relation"].unique().to_pylist()
    said = [wording for wording in known if any(r.is_said_by(wording) for r in relations)]
    joined = {row["standard_head_id"] for row in _pick(facts, "standard_relation", said)}
    joined |= {one for relation in relations for one in relation.ends[0]}
    every = {
        *facts["head_id"].to_pylist(),
        *list_individuals(find_classes(question.owner, snapshot), snapshot),
    }
    found = _keep_kind(every | joined, question.owner, snapshot, joined)
    return sorted({snapshot.names[entity] for entity in found})


_ANSWERS: Mapping[str, Callable[[SetQuestion, Snapshot], Answer | None]] = {
    "list": _list_members,
    "count": _count_members,
    "most": _answer_most,
    "extreme": _answer_extreme,
}
