"""Words of relation wordings: function words by what they change, and WordNet's verbs and nouns."""

import gzip
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from kpyramid.documents import words
from kpyramid.documents.words import read_words

# --------------------
# The small words of English that change what a relation wording says, or do not.

BE = words.BE | {"am", "'s", "'re"}
HAVE, DO = words.HAVE, words.DO
MODALS = {
    **dict.fromkeys("can could may might".split(), "possible"),
    **dict.fromkeys("must ought should shall".split(), "duty"),
    **dict.fromkeys("will would".split(), "future"),
}
NEGATIONS = frozenset("not never n't neither nor no cannot none hardly scarcely".split())
DETERMINERS = (
    words.ARTICLES
    | words.POINTING
    | frozenset("its his her their our my your some any every each".split())
)
PRONOUNS = frozenset("it he she they him them himself herself itself themselves".split())
PREPOSITIONS = words.PREPOSITIONS | frozenset(
    "into onto under over about against among between through "
    "during after before since until near off out up down across along around behind beside "
    "beyond upon within without toward towards like than per via inside outside above below "
    "throughout alongside amongst amid opposite and".split()
)
ALIKE = {
    "upon": "on",
    "within": "in",
    "inside": "in",
    "amongst": "among",
    "towards": "toward",
    "onto": "on",
    "whilst": "while",
    "alongside": "with",
    "mum": "mother",
    "mom": "mother",
    "dad": "father",
    "kid": "child",
    "kids": "child",
    "wives": "wife",
    "centre": "center",
    "headquarter": "headquarters",
    "programme": "program",
    "labour": "labor",
    "colour": "color",
    "honour": "honor",
    "neighbour": "neighbor",
    "neighbouring": "neighboring",
    "theatre": "theater",
    "defence": "defense",
    "offence": "offense",
    "licence": "license",
    "tumour": "tumor",
    "behaviour": "behavior",
    "catalogue": "catalog",
    "organisation": "organization",
    "organiser": "organizer",
    "organisers": "organizer",
    "favour": "favor",
}
"""Words of which one spelling or use stands for both."""

IRREGULAR = {"born": "bear", "lay": "lie", "founded": "found", "cofounded": "found", "dying": "die"}
"""Forms that a dictionary reads otherwise than relation wordings mean them."""
INVARIANT = frozenset(
    "set put cut hit run read spread split shut cast cost hurt let beat bet quit broadcast become "
    "overcome come burst rid shed forecast reset thrust upset".split()
)
"""Verbs whose past participle is the base form."""

HARMLESS = read_words(__file__, "words.toml")["harmless"]
"""Adverbs that leave the relation what it is."""
FORMER = frozenset("formerly previously once erstwhile".split())
FORMER_ADJECTIVES = frozenset("former ex erstwhile onetime one-time previous past late".split())
NEARLY = frozenset("almost nearly virtually practically roughly approximately".split())
PARTLY = frozenset("partly partially half barely rarely seldom sometimes occasionally".split())
POSSIBLY = frozenset(
    "possibly probably allegedly reportedly supposedly apparently perhaps maybe presumably "
    "purportedly ostensibly potentially likely seemingly arguably conceivably hypothetically "
    "alleged possible potential suspected reputed purported presumed probable supposed "
    "putative would-be aspiring".split()
)
JOINTLY = frozenset("jointly co".split())
GRADING = frozenset(
    "important significant prominent notable influential crucial eminent distinguished leading key "
    "major main primary principal chief central vital pivotal essential critical considerable "
    "substantial big large serious severe".split()
)
"""Adjectives that make a role greater: `a major cause of` says more than `a cause of`."""
EVALUATIVE = frozenset(
    "famous renowned celebrated noted current present incumbent well-known proud sitting dedicated "
    "acclaimed own very".split()
)
"""Adjectives before a noun that leave the relation what it is."""
SHARED_ROLES = frozenset(
    "founder creator author writer inventor developer designer owner organizer discoverer producer "
    "director composer builder architect editor".split()
)
"""Roles that several have together: `one of the founders of` says `a co-founder of`."""
SHARED_DEEDS = frozenset(
    "anchor author chair compose create design develop direct discover edit establish fund found "
    "headline host invent lead manage organize own produce publish sign sponsor star "
    "write".split()
)
"""What several do together: `coauthored`, but `coached` and `cooperated` are words of their own."""
PLACED_DEEDS = frozenset(
    "appear arrive base bear be bury crown die educate enrol enroll exhibit find graduate hold "
    "house keep land lecture live locate marry meet perform play practice rehearse reside sell "
    "serve settle show sign situate sleep spend stay stop store study teach train tutor work "
    "worship".split()
)
"""Deeds done in a place or at it: `studied in`, `studied at`, but not `laughed at`."""
HELD = frozenset("possession control charge care".split())
"""Nouns whose article turns the relation: `in possession of`, `in the possession of`."""
LATER = frozenset("later eventually subsequently ultimately".split())

RAISING = {
    **dict.fromkeys("continue proceed manage serve happen tend".split(), ""),
    **dict.fromkeys("seem appear".split(), "possible"),
    **dict.fromkeys(
        "plan intend want hope aim seek try attempt wish promise agree offer threaten "
        "propose prepare need".split(),
        "intended",
    ),
    **dict.fromkeys("help".split(), "helped"),
    **dict.fromkeys("fail refuse decline neglect".split(), "not"),
    **dict.fromkeys("cease stop".split(), "former"),
}
"""What a verb before `to` and a verb adds: `seems to cause`."""
RAISING_PASSIVE = {
    **dict.fromkeys(
        "say believe think suppose allege report rumour rumor consider assume suspect presume "
        "claim estimate".split(),
        "possible",
    ),
    **dict.fromkeys("know find show see prove demonstrate".split(), ""),
    **dict.fromkeys("expect schedule plan set project predict anticipate".split(), "future"),
}
"""The same of a passive or an adjective: `is believed to cause`."""
RAISING_ADJECTIVES = {
    **dict.fromkeys("likely thought".split(), "possible"),
    **dict.fromkeys("able".split(), "possible"),
    **dict.fromkeys("due about going".split(), "future"),
    **dict.fromkeys("unable unlikely".split(), "not"),
    **dict.fromkeys("obliged required".split(), "duty"),
}
COPULAS = frozenset("become remain".split())
ROLE_VERBS = frozenset("serve act function work double officiate count".split())
"""`serves as chair of` says `is the chair of`."""
APPOINT = frozenset(
    "appoint name elect choose select make crown install designate hire ordain".split()
)
"""`was appointed chair of` says that one became it."""
OFFICES = frozenset("office post position title role rank job".split())
"""`held the post of chair of` says `was the chair of`."""
LYING = frozenset(
    "located situated based found lying standing held set celebrated working serving".split()
)
"""Participles between a noun and its place: `is a mill located in`, `is a mill in`."""
LIGHT = frozenset(
    "make do take give have pay conduct carry perform provide undertake hold offer reach launch "
    "exert mount wage deliver bring lend express show render".split()
)
"""Verbs whose noun carries the meaning: `made a visit to`."""
LIGHT_PASSIVE = frozenset("undergo receive get obtain".split())
"""Verbs whose noun says what is done to the head: `underwent restoration`, `was restored`."""
SHOWING = frozenset("show exhibit display have demonstrate possess bear".split())
"""Verbs whose noun names a quality: `shows resistance to`, `is resistant to`."""
QUALITIES = (("ance", "ant"), ("ence", "ent"), ("ancy", "ant"), ("ency", "ent"), ("bility", "ble"))
"""Endings of such nouns and of their adjectives."""
JOINED = ("re", "pre", "un", "non", "anti", "sub", "over", "under", "inter", "multi", "out")
"""Prefixes that are written with the word: `re-elected`."""


# --------------------
# Verbs, the nouns derived from them and adjectives, from an extract of WordNet 3.0.
#
# `wordnet/README.md` says what it holds; senses are in WordNet's order, the most frequent first.

_FILE = Path(__file__).parent / "wordnet" / "extract.txt.gz"
_SUFFIXES = (
    *(("ies", "y"), ("es", "e"), ("es", ""), ("s", "")),
    *(("ied", "y"), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")),
)


@dataclass(frozen=True, slots=True)
class Derivation:
    """A verb that a noun is derived from; the places of both senses, the first is 0."""

    verb: str
    kind: str
    noun_rank: int
    verb_rank: int


@dataclass(slots=True)
class WordNet:
    """What the extract says, by lemma and by part of speech (`v`, `n`, `a`)."""

    senses: dict[str, dict[str, tuple[str, ...]]] = field(
        default_factory=lambda: {"v": {}, "n": {}, "a": {}}
    )
    uses: dict[str, dict[str, int]] = field(default_factory=lambda: {"v": {}, "n": {}, "a": {}})
    irregular: dict[str, str] = field(default_factory=dict)
    above: dict[str, tuple[str, ...]] = field(default_factory=dict)
    opposites: dict[str, frozenset[str]] = field(default_factory=dict)
    derived: dict[str, list[Derivation]] = field(default_factory=lambda: defaultdict(list))

    def is_verb(self, lemma: str) -> bool:
        return lemma in self.senses["v"]

    def is_mostly_noun(self, word: str) -> bool:
        """Whether the word as it stands is used more often as a noun than as a verb."""
        return self.uses["n"].get(word, -1) > self.uses["v"].get(word, 0)

    def find_rank(self, one: str, other: str, part: str) -> int | None:
        """The sum of the senses' places in the most frequent meaning that both words share."""
        senses = self.senses[part]
        others = senses.get(other, ())
        ranks = [i + others.index(s) for i, s in enumerate(senses.get(one, ())) if s in others]
        return min(ranks, default=None)

    def is_kind_of(self, one: str, other: str) -> bool:
        """Whether the first verb's first meaning is a special case of the other's first two."""
        first = self.senses["v"].get(one, ())[:1]
        above = {synset for sense in first for synset in self.above.get(sense, ())}
        return not above.isdisjoint(self.senses["v"].get(other, ())[:2])


@cache
def load_wordnet() -> WordNet:
    """The extract that the package carries."""
    net = WordNet()
    for line in gzip.decompress(_FILE.read_bytes()).decode("utf-8").splitlines():
        mark, word, *rest = line.split("\t")
        word = word.replace("_", " ")
        if mark in "vna":
            net.senses[mark][word] = tuple(rest[0].split())
            net.uses[mark][word] = int(rest[1])
        elif mark == "x":
            net.irregular.setdefault(word, rest[0])
        elif mark == "h":
            net.above[word] = tuple(rest[0].split())
        elif mark == "o":
            net.opposites[word] = frozenset(rest[0].split())
        else:
            ranks = rest[2].split()
            verb = rest[0].replace("_", " ")
            net.derived[word].append(Derivation(verb, rest[1], int(ranks[0]), int(ranks[1])))
    net.derived = dict(net.derived)
    return net


@cache
def find_verb(form: str) -> str | None:
    """The verb that a word may be a form of, or None."""
    net = load_wordnet()
    if form in IRREGULAR:
        return IRREGULAR[form]
    if form in net.irregular:
        return _spell(net.irregular[form])
    for suffix, ending in _SUFFIXES:
        if form.endswith(suffix) and len(form) > len(suffix) + 1:
            stem = form.removesuffix(suffix)
            doubled = not ending and suffix in {"ed", "ing"} and stem[-1] == stem[-2]
            if doubled and not net.is_verb(stem) and net.is_verb(stem[:-1]):
                return _spell(stem[:-1])
            if suffix == "s" and stem.endswith("s"):
                continue
            if net.is_verb(stem + ending):
                return _spell(stem + ending)
    return _spell(form) if net.is_verb(form) else None


def is_past(form: str) -> bool:
    """Whether a word may be a past participle."""
    verb = find_verb(form)
    if verb is None:
        return False
    return form in INVARIANT or (form != verb and not form.endswith(("s", "ing"))) or form == "led"


def _spell(verb: str) -> str:
    """The spelling with `z` where there are two."""
    if verb.endswith("ise") and load_wordnet().is_verb(verb[:-3] + "ize"):
        return verb[:-3] + "ize"
    return verb
