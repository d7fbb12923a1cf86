"""A fact's property as questions in English, for its value or for its subject.

A property is read from its label alone, by its shape: a noun ("place of birth", "hasAuthor"), a
verb ("follows", "directed"), a participle with a preposition ("educated at"), or a noun with one
("part of"). Several wordings each; none needs to know what field the property is of.
"""

import re
from dataclasses import dataclass
from typing import Literal

from kpyramid.evaluation.facts import split_label
from kpyramid.extraction.normal import lemmatise
from kpyramid.extraction.syntax.kinds import find_kind_label

Asked = Literal["who", "when", "where", "how many", "what"]
Shape = Literal["noun", "verb", "past", "participle", "link", "has", "is", "by", "done"]

_PREPOSITIONS = frozenset(
    "of in at on by for to from with within under into as near after before about".split()
)
_PEOPLE = frozenset("human person people agent individual man woman".split())
_PLACES = frozenset("place location city country town region state settlement gpe".split())
_TIMES = frozenset("date year time day month period century season".split())
_NUMBERS = frozenset("number integer decimal count quantity population total".split())
_VERBS = frozenset(
    (
        "follow own lead employ produce contain include cause treat border precede replace wear "
        "use require offer supply manufacture publish teach know play speak write direct found "
        "study support influence inhabit prevent affect manage hold operate share belong apply "
        "work live serve represent cover cross join host sponsor advise cite induce inhibit"
    ).split()
)
_PARTICIPLES = frozenset("born written made built held known shown sung led".split())
_ACTIVE = frozenset(
    (
        "performed served worked studied graduated lived participated died played competed resided "
        "taught collaborated published starred appeared fought belonged resulted"
    ).split()
)
"""Pasts that say with a preposition what the subject did, not what was done to it."""
_LASTING = frozenset("located based situated affiliated licensed known named written held".split())
"""Participles of what holds now: "is located in", but "was educated at"."""
_WITH_NOUN = re.compile(r"(.*\b(?:in|to|at|by|on|from|with|member of))\s+(?:the\s+)?(.+)")
_PASTS = {"wrote": "write", "led": "lead", "won": "win", "built": "build", "made": "make",
          "sang": "sing", "founded": "found", "bore": "bear"}  # fmt: skip
_UNCOUNTED = frozenset("software music food data equipment people staff information".split())
_EVENTS = {
    "birth": ("was", "born"), "death": ("did", "die"), "publication": ("was", "published"),
    "release": ("was", "released"), "founding": ("was", "founded"),
    "foundation": ("was", "founded"), "formation": ("was", "formed"),
    "inception": ("was", "founded"), "completion": ("was", "completed"),
    "burial": ("was", "buried"),
}  # fmt: skip
"""Nouns of events that everyday English asks about by their verbs: "When was X born?"."""
_AGENTS = {
    "author": "wrote", "writer": "wrote", "screenwriter": "wrote", "composer": "composed",
    "director": "directed", "producer": "produced", "performer": "performed",
    "founder": "founded", "publisher": "published", "editor": "edited", "designer": "designed",
    "architect": "designed", "creator": "created", "developer": "developed",
    "manufacturer": "manufactured", "builder": "built", "owner": "owns", "operator": "operates",
    "illustrator": "illustrated", "translator": "translated", "inventor": "invented",
    "discoverer": "discovered", "employer": "employs", "manager": "manages",
}  # fmt: skip
"""Nouns of those who do something, with what they do."""


@dataclass(frozen=True, slots=True)
class Phrasing:
    """A property's label, read: `core` is what its templates are filled with."""

    shape: Shape
    core: str
    words: tuple[str, ...]
    noun: str = ""
    """What the label itself calls the value: `jurisdiction` of "applies to jurisdiction"."""


def read_relation(label: str) -> Phrasing:
    """What kind of phrase a property's label is."""
    text = split_label(label)
    words = tuple(text.lower().split()) or (text,)
    first, last = words[0], words[-1]
    rest = text.split(maxsplit=1)[1] if len(words) > 1 else ""
    if first in ("has", "have") and rest:
        if len(words) > 2 and last in _PREPOSITIONS and _is_participle(words[1]):
            return Phrasing("has", rest, words)
        return Phrasing("noun", rest, words[1:])
    if first in ("is", "was", "are", "were") and rest:
        return Phrasing("is", rest, words[1:])
    if last not in _PREPOSITIONS and (
        first == "member" or _is_participle(first) or (_is_third(first) and len(words) > 2)
    ):
        match = _WITH_NOUN.fullmatch(text)
        if match and match[1].split()[0] != match[2]:
            inner = read_relation(match[1])
            return Phrasing(inner.shape, inner.core, inner.words, match[2])
    if len(words) > 1 and _is_participle(last) and not _is_participle(first):
        return Phrasing("done", text, words)
    if last in _PREPOSITIONS and len(words) > 1:
        if _is_third(first) and last != "by":
            return Phrasing("verb", text, words)
        if first in _ACTIVE:
            return Phrasing("past", text, words)
        if _is_participle(first):
            return Phrasing("participle", text, words)
        return Phrasing("by" if last == "by" else "link", text, words)
    if _is_third(first) and (len(words) == 1 or lemmatise(first) in _VERBS):
        if len(words) == 1 and lemmatise(first) not in _VERBS:
            return Phrasing("noun", text, words)
        return Phrasing("verb", text, words)
    if len(words) == 1 and (first in _PASTS or (first.endswith("ed") and len(first) > 4)):
        return Phrasing("past", text, words)
    return Phrasing("noun", text, words)


def _is_third(word: str) -> bool:
    return word.endswith("s") and not word.endswith(("ss", "us")) and lemmatise(word) != word


def _is_participle(word: str) -> bool:
    return word in _PARTICIPLES or (word.endswith("ed") and len(word) > 3)


def find_asked(kind: str, form: str = "") -> Asked:
    """The question word for things of a kind."""
    words = frozenset(split_label(kind).lower().split())
    last = split_label(kind).lower().split()[-1:] or [""]
    if form == "date" or last[0] in _TIMES:
        return "when"
    if form == "number" or last[0] in _NUMBERS:
        return "how many"
    if words & _PEOPLE or find_kind_label(last[0]) == "PERSON":
        return "who"
    if last[0] in _PLACES or find_kind_label(last[0]) in ("GPE", "LOC", "FAC"):
        return "where"
    return "what"


def word_for_value(
    label: str, subject: str, kind: str, form: str = "", *, several: bool = False
) -> list[str]:
    """Questions for the value of a property of something; `kind` is the value's in words."""
    phrasing = read_relation(label)
    core, words = phrasing.core, phrasing.words
    kind = phrasing.noun or kind
    asked = find_asked(kind or (words[-1] if phrasing.shape == "noun" else ""), form)
    which = _name_which(kind, asked, several=several)
    if phrasing.shape == "noun":
        return _ask_noun(phrasing, subject, asked, which, several=several)
    if phrasing.shape == "verb":
        bare = " ".join((lemmatise(words[0]), *core.split()[1:]))
        found = [f"{which} does {subject} {bare}?"]
        if words[-1] in ("in", "at") and asked == "where":
            found.append(f"Where does {subject} {bare.rsplit(' ', 1)[0]}?")
        return found
    if phrasing.shape == "past":
        bare = " ".join((_PASTS.get(words[0], lemmatise(words[0])), *core.split()[1:]))
        return [f"{which} did {subject} {bare}?"]
    if phrasing.shape == "participle":
        be = "is" if words[0] in _LASTING else "was"
        found = [f"{which} {be} {subject} {core}?"]
        if words[-1] in ("in", "at") and asked == "where" and len(words) == 2:
            found.append(f"Where {be} {subject} {core.rsplit(' ', 1)[0]}?")
        return found
    if phrasing.shape == "done":
        noun, verb = core.rsplit(" ", 1)
        if several:
            return [f"Which {make_plural(noun)} were {verb} by {subject}?"]
        return [f"Which {noun} was {verb} by {subject}?"]
    if phrasing.shape == "by":
        noun = core.rsplit(" ", 1)[0]
        verb = "are" if noun.endswith("s") else "is"
        found = [f"{which} did the {noun} of {subject}?"]
        return [f"By whom {verb} the {noun} of {subject}?", *found]
    if phrasing.shape == "has":
        return [f"{which} has {subject} {core}?"]
    article = "" if phrasing.shape == "is" else _find_article(core)
    return [f"{which} is {subject} {article}{core}?", f"{subject} is {article}{core} what?"][
        : 1 if asked != "what" else 2
    ]


def _ask_noun(
    phrasing: Phrasing, subject: str, asked: Asked, which: str, *, several: bool
) -> list[str]:
    core, words = phrasing.core, phrasing.words
    owner = f"{subject}'" if subject.endswith("s") else f"{subject}'s"
    if several:
        many = make_plural(core)
        lead = "Who" if asked == "who" else "What"
        return [f"{lead} are the {many} of {subject}?", f"{which} are {owner} {many}?"]
    event = next((word for word in words if word in _EVENTS), None)
    found = []
    if event and (asked in ("when", "where") or {"date", "year", "place"} & set(words)):
        helper, verb = _EVENTS[event]
        time = asked == "when" or "date" in words or "year" in words
        found.append(f"{'When' if time else 'Where'} {helper} {subject} {verb}?")
        if "year" in words:
            found.append(f"In which year {helper} {subject} {verb}?")
        elif not time and which.startswith("Which"):
            found.append(f"In w{which[1:]} {helper} {subject} {verb}?")
    if words[-1] in _AGENTS:
        lead = "Who" if asked in ("who", "what") else which
        found.append(f"{lead} {_AGENTS[words[-1]]} {subject}?")
    lead = "Who" if asked == "who" else "What"
    be = "are" if core.endswith("s") and make_plural(core) == core else "is"
    found.append(f"{lead} {be} the {core} of {subject}?")
    found.append(f"{lead} {be} {owner} {core}?")
    kind = which.removeprefix("Which ")
    if kind != which and kind not in core.lower() and be == "is":
        found.append(f"{which} is the {core} of {subject}?")
    return found


def word_for_subject(
    label: str, value: str, kind: str, value_kind: str = "", *, several: bool = False
) -> list[str]:
    """Questions for what has a property with some value; `kind` is the subject's in words."""
    phrasing = read_relation(label)
    which = _name_which(kind, find_asked(kind), several=several)
    core, words = phrasing.core, phrasing.words
    be, have, was = ("are", "have", "were") if several else ("is", "has", "was")
    if phrasing.shape == "noun":
        found = [f"{which} {have} {value} as {core}?", f"{which} {have} the {core} {value}?"]
        event = next((word for word in words if word in _EVENTS), None)
        if event and find_asked(value_kind) == "where":
            verb = _EVENTS[event][1]
            found.append(
                f"{which} died in {value}?"
                if verb == "die"
                else f"{which} {was} {verb} in {value}?"
            )
        if words[-1] in _AGENTS and find_asked(value_kind) in ("who", "what"):
            verb = _AGENTS[words[-1]]
            plain = verb[:-1] if verb.endswith("s") else lemmatise(verb)
            found.append(f"{which} did {value} {plain}?")
        return found
    if phrasing.shape == "verb":
        first = lemmatise(words[0]) if several else words[0]
        return [f"{which} {' '.join((first, *core.split()[1:]))} {value}?"]
    if phrasing.shape == "past":
        return [f"{which} {core} {value}?"]
    if phrasing.shape == "participle":
        return [f"{which} {be if words[0] in _LASTING else was} {core} {value}?"]
    if phrasing.shape == "done":
        return [
            f"By {which[0].lower()}{which[1:]} {was} {value} {words[-1]}?".replace("who ", "whom ")
        ]
    if phrasing.shape in ("by", "has"):
        return [f"{which} {have} {core} {value}?"]
    if several and words[0] != "part" and (phrasing.shape == "link" or words[0] in ("a", "an")):
        core = make_plural(core.removeprefix("a ").removeprefix("an "))
    article = "" if phrasing.shape == "is" or several else _find_article(core)
    return [f"{which} {be} {article}{core} {value}?"]


def _name_which(kind: str, asked: Asked, *, several: bool) -> str:
    """The beginning of a question for things of a kind: `Who`, `Which film`, `What`."""
    words = split_label(kind).lower()
    if asked == "who" and words in _PEOPLE:
        return "Who" if not several else "Which people"
    if not words or words in ("thing", "entity"):
        return "What"
    if words in _NUMBERS or words in ("string", "text", "value"):
        return "What"
    if re.search(r"[^\w\s-]", words):
        return "What"
    return f"Which {make_plural(words) if several else words}"


def make_plural(noun: str) -> str:
    """The plural of a noun phrase: its head stands before a preposition, else at its end."""
    words = noun.split()
    head = next((n for n, word in enumerate(words) if word in _PREPOSITIONS), len(words)) - 1
    word = words[max(head, 0)]
    if word == "person":
        plural = "people"
    elif word.endswith("s") and not word.endswith(("ss", "us")):
        plural = word
    elif word.endswith(("s", "x", "z", "ch", "sh")):
        plural = word + "es"
    elif word.endswith("y") and word[-2:-1] not in ("a", "e", "i", "o", "u", ""):
        plural = word[:-1] + "ies"
    else:
        plural = word + "s"
    words[max(head, 0)] = word if word in _UNCOUNTED else plural
    return " ".join(words)


def _find_article(core: str) -> str:
    """What stands before a noun with a preposition: "a member of", but "part of"."""
    first = core.split()[0].lower()
    if first in ("part", "capital", "head", "mouth", "successor", "predecessor", "author"):
        return "" if first == "part" else "the "
    if first in _PREPOSITIONS or first.endswith("s") or first in ("same", "different", "next"):
        return ""
    return "an " if first[0] in "aeiou" else "a "
