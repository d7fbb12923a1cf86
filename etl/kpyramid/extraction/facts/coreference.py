"""Coreference: what pronouns and definite nouns refer to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from kpyramid.documents.sentences import Span
from kpyramid.extraction.syntax.kinds import (
    GENERIC_NOUNS,
    LABEL_BY_NOUN,
    LABEL_NOUNS,
    find_gender,
    is_person_noun,
    list_alike,
)
from kpyramid.extraction.syntax.predicates import SUBJECTS
from kpyramid.extraction.syntax.tree import (
    FULL_WORDS,
    LITERALS,
    Node,
    Phrase,
    Tree,
    build_phrase,
    find_phrase,
    list_conjuncts,
)

# Entities that can be referred to, what a first mention tells of them, and referring words.

PERSON = frozenset("he she him her his hers himself herself".split())
PLURAL = frozenset({"they", "them", "their", "theirs", "themselves"})
THING = frozenset({"it", "its", "itself"})
PRONOUNS = PERSON | THING | PLURAL
"""Pronouns of the third person."""
GENDER = dict.fromkeys(("he", "him", "his", "himself"), "m")
GENDER |= dict.fromkeys(("she", "her", "hers", "herself"), "f")
_NOT_PERSON = frozenset(
    {"GPE", "LOC", "FAC", "WORK_OF_ART", "EVENT", "PRODUCT", "LAW", "LANGUAGE", "NORP"}
)
_GROUP_NOUNS = LABEL_NOUNS["ORG"] | frozenset(
    "family couple crew staff cast police public majority army population people".split()
)
_COUNTING = frozenset("lot number majority variety couple series range handful plenty".split())
_NAMING = frozenset({"attr", "appos", "oprd", "conj", "ROOT"})
_NARROWING = frozenset({"prep", "relcl", "acl", "appos", "conj", "cc", "npadvmod"})


@dataclass(slots=True, eq=False)
class Antecedent:
    """An entity spoken of: its fullest name so far, and what is known of it.

    `person` and `gender` are None while nothing tells; `kinds` are the nouns it was called.
    """

    phrase: Phrase
    person: bool | None
    gender: str | None
    plural: bool | None
    kinds: set[str]
    salience: float
    sentence: int
    role: str
    clause: int
    last: int = -1
    """The token that named it last."""


def describe(token: Node, phrase: Phrase) -> Antecedent:
    """Return the entity that a first mention introduces."""
    kinds = list_kinds(token)
    words = {w.lower().strip(".") for w in phrase.text.split()}
    genders = {g for w in sorted(kinds | words) if (g := find_gender(w)) is not None}
    own = token.word
    person: bool | None
    if any(is_person_noun(k) for k in kinds) or (token.pos == "NOUN" and is_person_noun(token.lemma)):
        person = True
    elif token.pos == "NOUN" or phrase.label in _NOT_PERSON or kinds:
        person = False
    else:
        person = True if phrase.label == "PERSON" else None
    # "Harlow Bridge" is a bridge; "Aster Pictures", a company, is no picture.
    for word in (own, phrase.text.split()[0].lower()) if phrase.is_named else ():
        label = LABEL_BY_NOUN.get(word, "WORK_OF_ART")
        if label != "WORK_OF_ART" or (word == own and phrase.label in {"WORK_OF_ART", "MISC"}):
            kinds.add(word)
    if not phrase.is_named:
        kinds.add(own)
    group = phrase.is_named and phrase.label == "ORG" or not kinds.isdisjoint(_GROUP_NOUNS)
    plural = True if is_many(token) else None if group else False
    gender = genders.pop() if len(genders) == 1 and person is not False else None
    return Antecedent(phrase, person, gender, plural, kinds, 0.0, token.sentence, token.dep, -1)


def is_many(noun: Node) -> bool:
    """Return whether the noun is plural, by its form or by what it counts: "a lot of stores"."""
    if noun.tag in {"NNS", "NNPS"}:
        return True
    counted = (g for c in noun.children if c.word == "of" for g in c.children)
    return noun.word in _COUNTING and any(g.tag in {"NNS", "NNPS"} for g in counted)


def list_kinds(token: Node) -> set[str]:
    """Return the nouns that the clause or an apposition calls the mention."""
    nouns: list[Node] = []
    if token.dep == "nsubj" and token.head.lemma == "be":
        nouns += [c for c in token.head.children if c.dep == "attr" and c.pos == "NOUN"]
    nouns += [c for c in token.children if c.dep == "appos" and c.pos == "NOUN"]
    if token.dep == "appos" and token.head.pos == "NOUN" and token.pos == "PROPN":
        nouns.append(token.head)
    if token.i > token.left_edge.i and token.pos == "PROPN":
        before = find_title_noun(token)
        nouns += [before] if before is not None else []
    kinds = {k.word for n in nouns for k in list_conjuncts(n) if k.pos == "NOUN"}
    for noun in nouns:
        if noun.word == "one":
            kinds |= {g.lemma for c in noun.children if c.word == "of" for g in c.children}
    return kinds - {"one", "part"}


def find_title_noun(name: Node) -> Node | None:
    """Return the common noun right before a name's words: "river" in "the river Tor"."""
    start = name
    for child in name.children:
        if child.dep in {"compound", "nmod"} and child.i < start.i:
            start = child
    at = start.tree[start.i - 1] if start.i > 0 else start
    if start.pos == "NOUN" and start is not name and start.text.islower():
        return start
    near = at.head is name or name.head is at
    return at if at.pos == "NOUN" and at.text.islower() and near else None


def rank(weighed: tuple[float, int, Antecedent]) -> tuple[float, int]:
    return weighed[:2]


def ends_name(number: Node) -> bool:
    """Return whether a number belongs to a name, as in "Shanghai 13"."""
    return any(c.dep == "compound" and c.pos == "PROPN" for c in number.children)


def is_bare_definite(token: Node) -> bool:
    """Return whether the noun stands with "the" or "this" and nothing that narrows it down."""
    if token.tag not in {"NN", "NNP", "NNS"} or token.dep in _NAMING:
        return False
    generic = token.word in GENERIC_NOUNS
    determined = False
    for child in token.children:
        if child.dep == "det":
            determined = child.word in {"the", "this"} and (child.word == "this" or not generic)
        elif (
            child.i < token.i and not (generic and child.dep == "amod")
        ) or child.dep in _NARROWING:
            return False
    return determined


def find_clause(token: Node) -> int:
    """Return the verb of the token's clause, the first one where several are coordinated."""
    at = token
    for _ in range(12):
        if at.head is at or (at.pos in {"VERB", "AUX"} and at.dep not in {"conj", "xcomp"}):
            break
        at = at.head
    return at.i


def list_governors(token: Node) -> set[int]:
    """Return the verbs whose subject does what the token suffers: "X wants to set it"."""
    at, verbs = token.head, set[int]()
    for _ in range(12):
        verbs.add(at.i)
        own = any(c.dep in SUBJECTS for c in at.children)
        if own or at.head is at or at.dep not in _CONTROLLED:
            break
        at = at.head
    return verbs


def is_expletive(token: Node) -> bool:
    """Return whether "it" stands for a clause: "it is said that", "it is easy to"."""
    if token.word != "it" or token.dep not in SUBJECTS:
        return False
    deps = {c.dep for c in token.head.children}
    if token.head.lemma in _WEATHER or (token.head.lemma == "take" and deps & {"xcomp", "advcl"}):
        return True
    if "ccomp" in deps and (token.dep == "nsubjpass" or token.head.lemma in {"seem", "appear"}):
        return True
    return token.head.lemma == "be" and "acomp" in deps and bool(deps & {"ccomp", "xcomp"})


_CONTROLLED = frozenset("xcomp advcl conj acl pcomp prep dobj pobj agent".split())
"""Relations through which the subject of the verb above is understood."""
_WEATHER = frozenset("rain snow".split())


def agrees(one: Antecedent, word: str) -> bool:
    if word in PERSON:
        gender = GENDER[word]
        return one.person is not False and one.plural is not True and one.gender in {gender, None}
    if word in THING:
        return one.person is not True and one.plural is not True
    return one.plural is not False


# Antecedents of pronouns, of definite phrases ("the town"), and of short names.

_SCENES = frozenset({"GPE", "LOC", "FAC", "ORG"})
# How much a mention in each role says that the text is about it; objects of prepositions least.
_WEIGHTS = {"nsubj": 80.0, "nsubjpass": 80.0, "dobj": 50.0, "poss": 40.0, "dative": 40.0}
_OTHER_WEIGHT = 30.0
_SETTING_WEIGHT = 5.0
"""Of a place or group behind a preposition: "in Leeds, England" only sets the scene."""
_TOPIC = 45.0
"""Added for the paragraph's first named subject: it outweighs a subject of the sentence before."""
_SAME_SENTENCE = 30.0
_SAME_ROLE = 20.0
_NAMED = 20.0
_SURE_PERSON = 40.0
_CONTINUED = 10.0
"""For "it" that opens a sentence, and the subject of one before."""
_AGENT = 20.0
"""For "they" that do something, and people."""
_OWN_SUBJECT = 50.0
"""For "its" and the subject of its clause: "Monet sold his paintings"."""
_MARGIN = 15.0
"""By which an owner, or what "it" and "they" stand for, must outweigh the next one."""
_FLOOR = 65.0
"""What an antecedent must weigh; the common noun that was subject one sentence before has 60."""
_WINDOW = 4
"""Sentences that a pronoun looks back; the topic stays in mind for longer."""
_NEAR = 2
"""The same for "it" and "they"."""
_TOPIC_WINDOW = 12
_MAX_ACTIVE = 24
"""Entities kept in mind, so that a long text costs no more per word than a short one."""
_POINTING = frozenset({"the", "this", "these", "that", "those"})
_INDEFINITE = frozenset({"a", "an", "", "some", "several", "many", "two", "three"})
_TRACKED = frozenset({"nsubj", "nsubjpass", "dobj", "pobj"})
"""Roles in which a common noun is kept in mind."""
_PHRASE_ROLES = frozenset("nsubj nsubjpass dobj pobj poss dative attr conj appos oprd ROOT".split())


class Antecedents:
    """The antecedents of one text; `topic` is its first named subject.

    One pass in text order keeps the entities spoken of, each with a salience: what was named last,
    as a subject, and first in its paragraph comes to mind first (Lappin and Leass, "An algorithm
    for pronominal anaphora resolution", Computational Linguistics 1994). Number, gender and the
    kind an entity was said to be decide which of them can be meant at all.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.topic: Antecedent | None = None
        self._resolved: dict[int, Phrase] = {}
        self._active: list[Antecedent] = []
        self._names: dict[str, Antecedent] = {}
        self._parts: dict[str, Antecedent | None] = {}
        self._local: Antecedent | None = None
        self._opening = self._opened = -1
        """The sentence that opens the paragraph; the last one that named a topic."""
        self._specific: dict[str, tuple[Phrase, int, bool]] = {}
        """By noun: the last phrase that said more than it, its sentence, whether it was new."""
        self.members: dict[Span, list[Phrase]] = {}
        """Of what "they" may stand for together, the phrase of each."""
        self._depth = 0
        """Brackets open: what stands in them is said in passing."""
        starts = {first for first, _ in tree.sentences}
        for node in tree.nodes:
            if node.i in starts and (node.i == 0 or "\n\n" in tree.text[tree[node.i - 1].end : node.idx]):
                self._opening = node.sentence
            if node.text in {"(", ")"}:
                self._depth = max(0, self._depth + (1 if node.text == "(" else -1))
            elif node.word in PRONOUNS and node.tag in {"PRP", "PRP$"}:
                self._read_pronoun(node)
            elif node.dep in _PHRASE_ROLES and (
                node.pos in {"PROPN", "NOUN"} or (node.pos == "NUM" and ends_name(node))
            ):
                self._read_noun(node)

    def resolve_pronoun(self, token: Node) -> Phrase | None:
        """The phrase a third-person pronoun stands for, None when none is clear."""
        return self._resolved.get(token.i)

    def resolve_definite(self, token: Node) -> Phrase | None:
        """The full name of what a bare "the town" or a short name stands for."""
        return self._resolved.get(token.i)

    def _read_pronoun(self, token: Node) -> None:
        fitting = [a for a in self._active if self._can_mean(token, a)]
        if not fitting or is_expletive(token):
            return
        weighed = sorted(((self._weigh(a, token), a.phrase.first, a) for a in fitting), key=rank)
        best = weighed[-1][2]
        second = weighed[-2][0] if len(weighed) > 1 else 0.0
        if weighed[-1][0] < _FLOOR or weighed[-1][0] - second < _MARGIN:
            return  # a wrong antecedent is worse than none
        if token.word in THING and best.sentence == token.sentence and self._is_one_of_many(best):
            return
        best.gender = best.gender or GENDER.get(token.word)
        if token.word in PERSON:
            best.person = True
        self._resolved[token.i] = replace(best.phrase, resolved=True)
        self._touch(best, token)

    def _can_mean(self, token: Node, one: Antecedent) -> bool:
        reach = _WINDOW if token.word in PERSON else _NEAR
        topic = one is self._local or one is self.topic
        if token.word in PLURAL and one.plural is None and not topic:
            return False  # "they" for one company is rare
        reach = _TOPIC_WINDOW if topic and one.plural is not None else reach
        if token.sentence - one.sentence > reach:
            return False
        if not agrees(one, token.word):
            return False
        if token.word in PERSON and one.person is None:
            # The recogniser may have missed the person the text is about, hardly another.
            return one is self._local or one is self.topic
        if one.sentence != token.sentence or token.word.endswith(("self", "selves")):
            return True
        # "X saw him": the object is somebody else; "its mouth" in X's own phrase is not X's.
        if token.tag == "PRP" and token.dep not in SUBJECTS and one.clause in list_governors(token):
            return False
        root = self.tree[one.phrase.root]
        return not (token.tag == "PRP$" and token.head is root)

    def _is_one_of_many(self, one: Antecedent) -> bool:
        """Return whether it was named last in a list: "a town or city would set its own time"."""
        node = self.tree[one.last]
        return node.dep == "conj" or any(c.dep == "conj" for c in node.children)

    def _weigh(self, one: Antecedent, token: Node) -> float:
        weight = one.salience * 0.5 ** (token.sentence - one.sentence)
        if one is self._local:
            weight += _TOPIC
        if one.sentence == token.sentence and one.role in SUBJECTS:
            weight += _SAME_SENTENCE
        if token.word in PERSON and one.person:
            weight += _SURE_PERSON
        if (one.role in SUBJECTS) == (token.dep in SUBJECTS or token.tag == "PRP$"):
            weight += _SAME_ROLE
        if one.phrase.is_named:
            weight += _NAMED
        opens = token.i == self.tree.sentences[token.sentence][0]
        if token.word == "it" and opens and one.role in SUBJECTS:
            weight += _CONTINUED
        if token.word in PLURAL and one.person and token.dep == "nsubj":
            weight += _AGENT
        if token.tag == "PRP$" and one.role in SUBJECTS and one.clause == find_clause(token):
            weight += _OWN_SUBJECT
        return weight

    def _read_noun(self, token: Node) -> None:
        named = token.pos in {"PROPN", "NUM"} or token.entity not in {"", *LITERALS}
        named = named and not (token.text.islower() and token.entity == "")
        if not named and is_bare_definite(token) and self._read_definite(token):
            return
        if not named and self._read_repeated(token):
            return
        introduced = token.dep == "attr" and any(c.dep == "expl" for c in token.head.children)
        if not named and not introduced and token.dep not in _TRACKED:
            return
        phrase = find_phrase(token)
        if phrase is None or phrase.label in LITERALS:
            return
        known = self._find_known(token, phrase) if named else self._find_same(phrase)
        if known is None:
            known = describe(token, phrase)
            self._active.append(known)
            if len(self._active) > _MAX_ACTIVE:
                self._forget(token.sentence)
            if named:
                self._learn_name(known)
            self._add_pair(token)
        else:
            known.kinds |= list_kinds(token)
            if known.phrase.text != phrase.text and len(phrase.text) < len(known.phrase.text):
                self._resolved[token.i] = replace(known.phrase, resolved=True)
        self._touch(known, token)
        if phrase.is_named and token.dep in SUBJECTS and not self._depth:
            self._set_topic(known, token)

    def _read_repeated(self, token: Node) -> bool:
        """Resolve "these stories" to the "ghost stories" that were spoken of before.

        Return whether it was done; else keep the phrase in mind when it says more than its noun.
        """
        determiner = next((c.word for c in token.children if c.dep == "det"), "")
        said = [c for c in token.children if c.dep not in {"det", "case", "punct", "relcl"}]
        if not said and determiner in _POINTING:
            known = self._specific.get(token.word)
            if known is None or token.sentence - known[1] > _WINDOW:
                return False
            if determiner != "the" or known[2]:
                self._resolved[token.i] = replace(known[0], resolved=True)
                return True
            return False
        if said and determiner not in _POINTING:
            phrase = find_phrase(token)
            if phrase is not None and phrase.words > 1:
                self._specific[token.word] = (phrase, token.sentence, determiner in _INDEFINITE)
        return False

    def _add_pair(self, token: Node) -> None:
        """Keep "Ann and Per" in mind for a later "they"."""
        members = list(list_conjuncts(token))
        if len(members) < 2 or token.dep == "conj":
            return
        last = max(m.i for m in members)
        phrase = build_phrase(self.tree, token.left_edge.i, last, token.i)
        if phrase is None or phrase.words > FULL_WORDS:
            return
        person = is_person_noun(token.word) or phrase.label == "PERSON"
        pair = Antecedent(phrase, person, None, True, set(), 0.0, token.sentence, "", -1)
        parts = [find_phrase(member) for member in members]
        self.members[phrase.span] = [part for part in parts if part is not None]
        self._active.append(pair)
        self._touch(pair, token)

    def _set_topic(self, one: Antecedent, token: Node) -> None:
        if self.topic is None:
            self.topic = one
        if token.sentence == self._opening and self._opened != self._opening:
            self._local, self._opened = one, self._opening

    def _touch(self, one: Antecedent, token: Node) -> None:
        faded = one.salience * 0.5 ** (token.sentence - one.sentence)
        scene = one.phrase.label in _SCENES and token.dep in {"pobj", "appos", "conj"}
        scene = scene or self._depth > 0
        weight = _SETTING_WEIGHT if scene else _WEIGHTS.get(token.dep, _OTHER_WEIGHT)
        one.salience = faded / 2 + weight
        one.sentence, one.role, one.last = token.sentence, token.dep, token.i
        one.clause = token.head.i

    def _forget(self, sentence: int) -> None:
        keep = {id(self.topic), id(self._local)}
        self._active = [
            a for a in self._active if id(a) in keep or sentence - a.sentence <= _WINDOW
        ]
        if len(self._active) > 2 * _MAX_ACTIVE:
            ordered = sorted(self._active, key=lambda a: (a.sentence, a.salience, a.phrase.first))
            self._active = [a for a in self._active if id(a) in keep] + [
                a for a in ordered[-_MAX_ACTIVE:] if id(a) not in keep
            ]

    def _find_known(self, token: Node, phrase: Phrase) -> Antecedent | None:
        """Return the entity of that name, or the one person whose name ends or begins so."""
        known = self._names.get(phrase.text)
        if known is None and " " not in phrase.text:
            known = self._parts.get(phrase.text)
            if known is not None and token.entity not in {"PERSON", "", "ORG"}:
                return None
        if known is not None and known not in self._active:
            self._active.append(known)
        return known

    def _find_same(self, phrase: Phrase) -> Antecedent | None:
        """Return the thing in mind that was called by the same words."""
        same = phrase.text.lower()
        for one in reversed(self._active):
            if not one.phrase.is_named and one.phrase.text.lower() == same:
                return one
        return None

    def _learn_name(self, one: Antecedent) -> None:
        self._names.setdefault(one.phrase.text, one)
        words = one.phrase.text.split()
        if one.person is not True or not 2 <= len(words) <= 5:
            return
        for part in {words[0], words[-1]}:
            if len(part) < 3 or not part[0].isupper():
                continue
            # Two bearers of a name: it is certain no longer.
            other = self._parts.get(part, one)
            self._parts[part] = one if other is one else None

    def _read_definite(self, token: Node) -> bool:
        """Resolve "the town" to the one that was called a town; return whether it was."""
        plural = token.tag == "NNS"
        # "the falls" are a waterfall; "the bridges" are no bridge
        alike = list_alike(token.word) if not plural or token.word in LABEL_BY_NOUN else frozenset()
        fitting = [
            a
            for a in self._active
            if a.phrase.is_named and a.kinds & alike and (not a.plural or plural)
        ]
        if not fitting and token.word in GENERIC_NOUNS and self._local is not None:
            # "This area", "this geographical feature": what the text is about.
            meant = self._local.phrase.label in GENERIC_NOUNS[token.word]
            fitting = [self._local] if meant and token.dep in SUBJECTS else []
        elif not fitting and not plural:
            # Nothing says what it is, but its type may: "Greece joined ... the country".
            fitting = [
                a
                for a in self._active
                if not a.kinds and token.word in LABEL_NOUNS.get(a.phrase.label, ())
            ]
            fitting = fitting if len(fitting) == 1 or self._local not in fitting else [self._local]
            if len(fitting) != 1:
                return False
        if not fitting:
            return False
        # The one named last; what the text is about only where two are equally near.
        best = max(fitting, key=lambda a: (a.sentence, self._weigh(a, token), a.phrase.first))
        self._resolved[token.i] = replace(best.phrase, resolved=True)
        self._touch(best, token)
        return True
