"""Choice questions from facts, eight options each (AcadChall's form, PolyRAG V)."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import islice
from random import Random
from typing import Literal

from kpyramid.documents.words import PREPOSITIONS, lemmatise, split_label
from kpyramid.errors import InputError
from kpyramid.evaluation.questions import EvalQuestion, Kind
from kpyramid.extraction.syntax.kinds import find_kind_label
from making.facts import (
    Fact,
    Knowledge,
    Thing,
    Words,
    find_precision,
    fold_words,
    holds_run,
    is_grounded,
    may_be_same,
    measure,
    names_within,
    vary_value,
)

# Wrong options: of the answer's class, plausible, and never right.

_MOST_TRIED = 2000
"""Things of a class that are tried for one question; drawn at random, so more would add nothing."""
_MOST_REAL, _MOST_VARIED = 4, 200
"""Values of other things among the wrong ones, and tries to find others near the right one."""


class Pool:
    """Everything that can be a wrong option, by property and side, and by class."""

    def __init__(self, knowledge: Knowledge, others: Iterable[Thing] = ()) -> None:
        self._knowledge = knowledge
        self._others = tuple(others)

    def draw(
        self,
        relation: str,
        side: str,
        drawn: Sequence[Thing],
        right: Sequence[Thing],
        asked: Thing,
        text: str,
        evidence: Sequence[str],
        count: int,
        rng: Random,
    ) -> list[Thing]:
        """So many wrong options, fewer when there are no more.

        `drawn` are the right options, `right` is all that is right; `asked` is what the question
        is about, `text` the question, `evidence` what states its answers. Left out is what may be
        another name of any of them, what a fact links with the question or a right option, and
        what the question or the evidence name: facts are never complete, and a sentence that
        names a thing may say more than they do.
        """
        seen = tuple(fold_words(part) for part in (text, *evidence))
        if drawn[0].form in ("number", "date"):
            values = self._draw_values(relation, drawn[0], right, rng)
            unseen = (t for t in values if not any(names_within(t, part) for part in seen))
            return list(islice(unseen, count))
        barred = {
            words for thing in (asked, *drawn) for words in self._knowledge.list_linked(thing)
        }
        by_word: dict[str, list[Thing]] = defaultdict(list)
        for thing in right:
            for word in {word for name in _spell(thing) for word in name}:
                by_word[word].append(thing)
        chosen: list[Thing] = []
        taken: set[Words] = set()
        for thing in self._list_candidates(relation, side, drawn[0], rng):
            names = set(_spell(thing))
            if names & (taken | barred) or any(names_within(thing, part) for part in seen):
                continue
            # There may be thousands of right things; those that share no word are other things.
            alike = {t.key: t for name in names for word in name for t in by_word.get(word, ())}
            others = (asked, *drawn, *chosen, *alike.values())
            if any(may_be_same(thing, other) for other in others):
                continue
            taken |= names
            chosen.append(thing)
            if len(chosen) == count:
                break
        return chosen

    def _list_candidates(
        self, relation: str, side: str, model: Thing, rng: Random
    ) -> Iterator[Thing]:
        """Ends of the same property that are of the class, then all of the class, then wider."""
        same = self._by_relation.get((relation, side), ())
        if not model.kinds:
            yield from _shuffle((t for t in same if not t.kinds and t.form == model.form), rng)
            return
        yield from _shuffle((t for t in same if model.kinds[0] in t.kinds), rng)
        for kind in model.kinds:
            yield from _shuffle(self._by_kind.get(kind, ()), rng)

    @cached_property
    def _by_relation(self) -> Mapping[tuple[str, str], tuple[Thing, ...]]:
        found: dict[tuple[str, str], dict[Thing, None]] = defaultdict(dict)
        for fact in self._knowledge.facts:
            found[fact.relation, "subject"][fact.subject] = None
            found[fact.relation, "object"][fact.object] = None
        return {key: tuple(sorted(things, key=_order)) for key, things in found.items()}

    @cached_property
    def _by_kind(self) -> Mapping[str, tuple[Thing, ...]]:
        found: dict[str, dict[Thing, None]] = defaultdict(dict)
        facts: Sequence[Fact] = self._knowledge.facts
        things = [thing for fact in facts for thing in (fact.subject, fact.object)]
        for thing in (*things, *self._others):
            for kind in thing.kinds if not thing.form else ():
                found[kind][thing] = None
        return {kind: tuple(sorted(things, key=_order)) for kind, things in found.items()}

    def _draw_values(
        self, relation: str, model: Thing, right: Sequence[Thing], rng: Random
    ) -> Iterator[Thing]:
        """Numbers or dates near the right one: half of them values of other things, the nearest."""
        form, written = model.form, find_precision(model.name, model.form)
        taken = {measure(thing.name, form) for thing in right} | {None}
        centre = measure(model.name, form) or 0.0
        real = {
            thing.name: thing
            for thing in self._by_relation.get((relation, "object"), ())
            if thing.form == form and find_precision(thing.name, form) == written
        }
        near = [(abs(v - centre), n) for n in real if (v := measure(n, form)) not in (None, centre)]
        varied = (vary_value(model.name, form, rng) for _ in range(_MOST_VARIED))
        for name in (*(name for _, name in sorted(near)[:_MOST_REAL]), *varied):
            value = measure(name, form)
            if value not in taken:
                taken.add(value)
                yield Thing(name, name, model.kinds, form=form)


def _spell(thing: Thing) -> list[Words]:
    return [fold_words(name) for name in (thing.name, *thing.names)]


def _order(thing: Thing) -> tuple[str, str]:
    return thing.key, thing.name


def _shuffle(things: Iterable[Thing], rng: Random) -> list[Thing]:
    listed = list(things)
    return rng.sample(listed, min(len(listed), _MOST_TRIED))


# A fact's property as questions in English, for its value or for its subject.
#
# A property is read from its label alone, by its shape: a noun ("place of birth", "hasAuthor"), a
# verb ("follows", "directed"), a participle with a preposition ("educated at"), or a noun with
# one
# ("part of"). Several wordings each; none needs to know what field the property is of.

Asked = Literal["who", "when", "where", "how many", "what"]
Shape = Literal["noun", "verb", "past", "participle", "link", "has", "is", "by", "done"]

_PREPOSITIONS = PREPOSITIONS | frozenset("within under into near after before about".split())
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
          "sang": "sing", "founded": "found", "bore": "bear", "developed": "develop"}  # fmt: skip
_UNCOUNTED = frozenset("software music food data equipment people staff information".split())
EVENTS = {
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
    which = name_which(kind, asked, several=several)
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
    event = next((word for word in words if word in EVENTS), None)
    found = []
    if event and (asked in ("when", "where") or {"date", "year", "place"} & set(words)):
        helper, verb = EVENTS[event]
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
    which = name_which(kind, find_asked(kind), several=several)
    core, words = phrasing.core, phrasing.words
    be, have, was = ("are", "have", "were") if several else ("is", "has", "was")
    if phrasing.shape == "noun":
        found = [f"{which} {have} {value} as {core}?", f"{which} {have} the {core} {value}?"]
        event = next((word for word in words if word in EVENTS), None)
        if event and find_asked(value_kind) == "where":
            verb = EVENTS[event][1]
            found.append(
                f"{which} died in {value}?"
                if verb == "die"
                else f"{which} {was} {verb} in {value}?"
            )
        if words[-1] in _AGENTS and find_asked(value_kind) in ("who", "what"):
            verb = _AGENTS[words[-1]]
            plain = verb[:-1] if verb.endswith("s") else _PASTS.get(verb, lemmatise(verb))
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


def name_which(kind: str, asked: Asked, *, several: bool) -> str:
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


# Choice questions from facts, in the form of AcadChall (PolyRAG, section V): eight options each.
#
# A question asks for the values of a property of something (`forward`) or for what has a property
# with some value (`inverse`); one or several of its options are right. Everything is drawn with a
# generator of the question's own, seeded by the question: more facts elsewhere change no
# question.

OPTIONS = 8
MOST_RIGHT = 3
"""Right options of one question; of more right values so many are drawn."""
MOST_WORDS = 12
"""An option of more words is a sentence, not a name."""


@dataclass(frozen=True, slots=True)
class Made:
    """Questions, and by reason how many more the facts would have given."""

    questions: tuple[EvalQuestion, ...]
    left_out: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Group:
    """The facts that answer one question: all of a subject and property, or property and value."""

    side: str
    facts: tuple[Fact, ...]

    @property
    def asked(self) -> Thing:
        return self.facts[0].subject if self.side == "object" else self.facts[0].object

    @property
    def right(self) -> tuple[Thing, ...]:
        ends = (fact.object if self.side == "object" else fact.subject for fact in self.facts)
        return tuple({thing.key: thing for thing in ends}.values())

    @property
    def relation(self) -> str:
        return self.facts[0].relation

    @property
    def key(self) -> str:
        return f"{self.side} {self.relation} {self.asked.key}"

    def find_kind(self, side: str) -> str:
        """The class in words of an end: what the property declares, else what most things are."""
        declared = self.facts[0].kinds[side == "object"]
        ends = [fact.object if side == "object" else fact.subject for fact in self.facts]
        own = Counter(thing.kinds[0] for thing in ends if thing.kinds)
        return declared or (max(sorted(own), key=own.__getitem__) if own else "")

    def word(self, *, several: bool, form: str = "") -> list[str]:
        """Questions for what is right; `form` is that of a value."""
        name, kind = self.asked.name, self.find_kind(self.side)
        if self.side == "object":
            return word_for_value(self.relation, name, kind, form, several=several)
        other = self.find_kind("object")
        return word_for_subject(self.relation, name, kind, other, several=several)


def make_questions(
    facts: Iterable[Fact],
    *,
    count: int | None = None,
    seed: int = 0,
    options: int = OPTIONS,
    known: Iterable[tuple[str, str]] = (),
    others: Iterable[Thing] = (),
    sides: Sequence[str] = ("object", "subject"),
    grounded: bool = False,
    least: float = 0.0,
    kind: Literal["choice", "open"] = "choice",
) -> Made:
    """Questions that the facts answer, at most `count`, evenly over properties.

    `known` are subject and object of facts that nothing is asked about but that are true; `others`
    are things that may be wrong options beside the facts' own. `sides` is what is asked for: of a
    fact its `object`, its `subject`. With `grounded` facts whose evidence does not name both ends
    are left out: a corpus that does not say it cannot be asked; nor are those of a confidence
    below `least`, which are no wrong options either. Of kind `open` questions have no options, and
    all values are right.

    Raises:
        InputError: fewer than three options, or a count below one.
    """
    if options < 3 or (count is not None and count < 1):
        raise InputError("a choice question has three options or more, and one is made at least")
    left_out: Counter[str] = Counter()
    ordered = sorted(join_facts(facts), key=_order_making)
    knowledge = Knowledge(tuple(ordered), tuple(known))
    pool = Pool(knowledge, others)
    asked = []
    for fact in ordered:
        if fact.confidence < least:
            left_out["the fact is not certain enough"] += 1
        elif grounded and not is_grounded(fact):
            left_out["the evidence does not name both ends"] += 1
        else:
            asked.append(fact)
    complete = group_facts(ordered, sides)
    made: list[EvalQuestion] = []
    groups = group_facts(asked, sides).values()
    for group in _deal(groups, seed):
        if count is not None and len(made) == count:
            break
        found = _make_one(
            group, complete[group.key], knowledge, pool, options if kind == "choice" else 0, seed
        )
        if isinstance(found, str):
            left_out[found] += 1
        else:
            made.append(found)
    return Made(tuple(made), dict(sorted(left_out.items())))


def join_facts(facts: Iterable[Fact]) -> list[Fact]:
    """Each fact once, with all its documents and evidence."""
    found: dict[tuple[str, str, str], Fact] = {}
    for fact in facts:
        key = (fact.subject.key, fact.relation, fact.object.key)
        old = found.get(key)
        found[key] = fact if old is None else _join_two(old, fact)
    return list(found.values())


def _join_two(one: Fact, other: Fact) -> Fact:
    documents = tuple(sorted({*one.documents, *other.documents}))
    evidence = tuple(sorted({*one.evidence, *other.evidence}))
    surer = max(one.confidence, other.confidence)
    return replace(one, documents=documents, evidence=evidence, confidence=surer)


def _order_making(fact: Fact) -> tuple[str, str, str]:
    return fact.relation, fact.subject.key, fact.object.key


def group_facts(facts: Iterable[Fact], sides: Sequence[str]) -> dict[str, Group]:
    found: dict[tuple[str, str, str], list[Fact]] = defaultdict(list)
    for fact in facts:
        if "object" in sides:
            found["object", fact.relation, fact.subject.key].append(fact)
        if "subject" in sides and not fact.object.form:
            found["subject", fact.relation, fact.object.key].append(fact)
    groups = [Group(side, tuple(listed)) for (side, _, _), listed in found.items()]
    return {group.key: group for group in groups}


def _deal(groups: Iterable[Group], seed: int) -> list[Group]:
    """The groups in an order of chance, a property's turn after the other's."""
    by_property: dict[tuple[str, str], list[Group]] = defaultdict(list)
    for group in sorted(groups, key=lambda g: hash_draw(g.key, seed)):
        by_property[group.side, group.relation].append(group)
    turns = [
        (turn, hash_draw(f"{side} {relation}", seed), group)
        for (side, relation), listed in sorted(by_property.items())
        for turn, group in enumerate(listed)
    ]
    return [group for _, _, group in sorted(turns, key=lambda t: t[:2])]


def hash_draw(text: str, seed: int) -> str:
    return sha256(f"{seed} {text}".encode()).hexdigest()


def _make_one(
    group: Group, complete: Group, knowledge: Knowledge, pool: Pool, options: int, seed: int
) -> EvalQuestion | str:
    """The question, or why there is none. `complete` is the group with what cannot be asked."""
    rng = Random(f"{seed} {group.key}")  # noqa: S311
    asked, all_right = group.asked, complete.right
    if knowledge.is_ambiguous(asked):
        return "several things have the name of what is asked about"
    if any(len(fold_words(thing.name)) > MOST_WORDS for thing in (asked, *group.right)):
        return "a name is as long as a sentence"
    if not all(any(c.isalnum() for c in thing.name) for thing in (asked, *group.right)):
        return "a name has no letter"
    by_name = {fold_words(thing.name): thing for thing in group.right}
    right = sorted(by_name.values(), key=lambda t: t.key)
    if len({thing.form for thing in right}) > 1 or len({t.kinds[:1] for t in right}) > 1:
        right = right[:1]
    most = min(MOST_RIGHT, options // 2) if options else len(right)
    drawn = _drop_alike(rng.sample(right, min(len(right), most)))
    text = rng.choice(group.word(several=len(drawn) > 1, form=drawn[0].form))
    words = fold_words(text)
    if any(
        names_within(t, words) or holds_run(fold_words(t.name), fold_words(asked.name))
        for t in drawn
    ):
        return "the question names the answer"
    if not options:
        return _state_question(group, drawn, (), text, seed)
    wrong = pool.draw(
        group.relation,
        group.side,
        drawn,
        all_right,
        asked,
        text,
        _list_evidence(group, drawn)[1],
        options - len(drawn),
        rng,
    )
    if len(wrong) < options - len(drawn):
        return f"fewer than {options} options of the answer's class"
    candidates = [thing.name for thing in (*drawn, *wrong)]
    rng.shuffle(candidates)
    return _state_question(group, drawn, tuple(candidates), text, seed)


def _state_question(
    group: Group, drawn: Sequence[Thing], candidates: tuple[str, ...], text: str, seed: int
) -> EvalQuestion:
    documents, evidence = _list_evidence(group, drawn)
    kind: Kind = "choice" if candidates else "open" if len(drawn) == 1 else "values"
    return EvalQuestion(
        id=f"{kind}-{hash_draw(group.key, seed)[:12]}",
        text=text,
        kind=kind,
        answers=tuple((t.name, *(n for n in t.names if n != t.name)) for t in drawn),
        candidates=candidates,
        gold_documents=documents,
        entities=(group.asked.name, *(thing.name for thing in drawn if not thing.form)),
        evidence=evidence,
        group=f"{group.relation}{'' if group.side == 'object' else ' (inverse)'}",
    )


def _drop_alike(things: Sequence[Thing]) -> list[Thing]:
    """Right options that cannot be taken for each other."""
    kept: dict[frozenset[str], Thing] = {}
    for thing in things:
        words = frozenset(fold_words(thing.name))
        if not any(words <= other or other <= words for other in kept):
            kept[words] = thing
    return list(kept.values())


def _list_evidence(group: Group, drawn: Sequence[Thing]) -> tuple[tuple[str, ...], ...]:
    """The documents and the sentences that state what was drawn."""
    keys = {thing.key for thing in drawn}
    facts = [
        f for f in group.facts if (f.object if group.side == "object" else f.subject).key in keys
    ]
    documents = {document for fact in facts for document in fact.documents}
    return tuple(sorted(documents)), tuple(sorted({e for fact in facts for e in fact.evidence}))
