"""Coreference: the antecedents of pronouns and definite nouns."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from operator import itemgetter

from simplemma import is_known

from kpyramid.documents.blocks import PROSE, Block
from kpyramid.documents.measures import SIZES
from kpyramid.documents.qualifiers import BRACKET
from kpyramid.documents.sentences import Span
from kpyramid.documents.values import MONTH
from kpyramid.extraction.syntax.kinds import (
    ATTRIBUTES,
    BODIES,
    FIRM_ENDINGS,
    GENERIC_NOUNS,
    LABEL_BY_NOUN,
    LABEL_NOUNS,
    UNDERTAKINGS,
    find_gender,
    find_kind_label,
    find_name_gender,
    is_person_noun,
    list_alike,
)
from kpyramid.extraction.syntax.predicates import (
    REPORTING,
    SUBJECTS,
    TIMES,
    VERBS,
    find_infinitive_mark,
)
from kpyramid.extraction.syntax.tree import (
    FULL_WORDS,
    LITERALS,
    PLACES,
    WORDS,
    Node,
    Phrase,
    Tree,
    build_phrase,
    count_brackets,
    find_close_name,
    find_phrase,
    is_inside_word,
    is_listed,
    is_restrictive,
    list_conjuncts,
)

# Entities that can be referred to, their properties by the first mention, and referring words.

PERSON = frozenset("he she him her his hers himself herself".split())
PLURAL = frozenset({"they", "them", "their", "theirs", "themselves"})
THING = frozenset({"it", "its", "itself"})
PRONOUNS = PERSON | THING | PLURAL
"""Pronouns of the third person."""
FIRST_PERSON = frozenset("i me my mine myself".split())
WE = frozenset("we us our ours ourselves".split())
GENDER = dict.fromkeys(("he", "him", "his", "himself"), "m")
GENDER |= dict.fromkeys(("she", "her", "hers", "herself"), "f")
_NOT_PERSON = frozenset(
    {"GPE", "LOC", "FAC", "WORK_OF_ART", "EVENT", "PRODUCT", "LAW", "LANGUAGE", "NORP"}
)
_UNSURE = frozenset({"MISC", "NOUN", "ORG"})
"""Types of names for which the recogniser is unreliable."""
_GROUP_NOUNS = LABEL_NOUNS["ORG"] | frozenset(
    "family couple crew staff cast police public majority army population people".split()
)
COUNTING = frozenset("lot number majority variety couple series range handful plenty total".split())
"""Nouns that only count the noun after "of"."""
_NAMING = frozenset({"attr", "appos", "oprd", "conj", "ROOT"})
_PLACING = frozenset({"prep", "relcl", "acl", "compound", "poss"})
_NARROWING = frozenset({"prep", "relcl", "acl", "appos", "conj", "cc", "npadvmod"})


@dataclass(slots=True, eq=False)
class Antecedent:
    """A mentioned entity with its fullest name so far and its known properties.

    `person` and `gender` are None while unknown; `kinds` are the nouns that refer to it.
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
    repeated: bool = False
    """Whether several sentences, or the title, mention it."""


_NO_NAME = re.compile(
    r"(lists?|outline|index|timeline|comparison|table) of |(how|what|why|when|where|who|which) ",
    re.IGNORECASE,
)
"""Titles that describe a text and name nothing."""
_ARTICLES = frozenset({"The", "A", "An"})
_TELLING = frozenset("north south east west upper lower new old little great".split())
"""Words that distinguish places of the same name: "South Newbury" is not Newbury."""
_WITHIN = frozenset("in at on for".split())
_LINKING = frozenset("of in at for on from by to and with".split())


_ABOUT = re.compile(
    r"(?i:(?:\w[\w-]*(?: [\w-]+)?: )?\w+ing (?:the|an?) (?=\w))"
    r"|(?i:\w+ing(?: \w+)??|about(?: us [–|-])?|meet|inside|on|welcome|\w[\w-]*(?: [\w-]+)?:)"
    r"(?: to| with| of)? (?=[^\Wa-z])"
)
"""Words before the name in titles that are no names: "Introducing X", "About X", "Interview: X"."""


def find_named(title: str, text: str) -> str:
    """The part of a title that its text names: after "About", before " - for drivers".

    The text may name it by its head: "the officer" after "Role description: Duty officer".
    """
    opening, rest = text[: 2 * len(title)], text[2 * len(title) :]
    body = _spell_plainly(opening).removeprefix(_spell_plainly(title))  # a heading may be it
    body = f"{body} {rest.casefold()}"
    name, _, further = title.partition(" - ")
    title = name if further[:1].islower() else title
    lead = _ABOUT.match(title)
    if lead is None or _spell_plainly(title) in body:
        return title
    rest = title[lead.end() :]
    words = _spell_plainly(rest)
    return rest if words in body or f"the {words.rpartition(' ')[2]}" in body else title


def _spell_plainly(text: str) -> str:
    """The text in lower case, without brackets and line breaks."""
    return " ".join(BRACKET.sub("", text).casefold().split())


def read_title(title: str) -> Antecedent | None:
    """Return the entity of a document's title, "Jaws" of "Jaws (1975 film)"; None without a name.

    Its kinds are the noun in brackets and the head word of the name.
    """
    name = BRACKET.sub("", title).strip()
    words = name.split()
    if not 0 < len(words) <= FULL_WORDS or _NO_NAME.match(name) or name[-1] in ".?!:;":
        return None
    if not any(word[0].isupper() or word[0].isdigit() for word in words):
        return None
    bracket = BRACKET.search(title)
    kinds = {bracket.group(1).split()[-1].lower()} if bracket else set[str]()
    kinds &= LABEL_BY_NOUN.keys()
    if "," not in name:  # "Fall River, Massachusetts" is no river
        kinds |= {find_head_word(words)} if len(words) > 1 else set[str]()
    phrase = Phrase(name, Span(0, 0), 0, 0, 0, "MISC", literal=False)
    return Antecedent(phrase, None, None, None, kinds, 0.0, -_TOPIC_WINDOW, "", -1)


def _is_office(label: str) -> bool:
    """Whether a label ends in a noun for persons, "Managing Director", and not in a name."""
    word = label.split()[-1].lower()
    return is_person_noun(word) and is_known(word, lang="en")


def list_speakers(text: str, blocks: Iterable[Block]) -> list[tuple[Span, Phrase]]:
    """The turns in text order, each with the name of its speaker.

    A label is a name if it has several capitalised words before a comma or a bracket, or one before
    an office ("Ann (Chair)"), or if it is part of another such label: "Q", "Moderator" and "Ann"
    alone name nobody.
    """
    turns = [Span(block.start, block.end) for block in blocks if block.kind == "turn"]
    labels = [text[turn.start : turn.end].partition(":")[0] for turn in turns]
    names = [BRACKET.sub("", label).partition(",")[0].strip() for label in labels]
    proper = {
        name: is_person_noun(label.strip(" )").split()[-1].lower())
        for name, label in zip(names, labels, strict=True)
        if all(word[0].isupper() for word in name.split()) and not _is_office(name)
    }
    long = {name for name in proper if " " in name}
    known = {word for name in long for word in name.split()}
    full = long | {name for name, in_office in proper.items() if in_office and name not in known}
    speakers = []
    for turn, name in zip(turns, names, strict=True):
        same = [each for each in full if name == each or name in each.split()]
        if len(same) == 1:
            phrase = Phrase(same[0], turn, 0, 0, 0, "PERSON", resolved=True, literal=False)
            speakers.append((turn, phrase))
    return speakers


def list_sections(text: str, blocks: Iterable[Block]) -> Iterator[tuple[int, Antecedent | None]]:
    """The offset of each section, and the entity of its heading or of the next heading above.

    A heading names an entity by a kind noun and a name: "Project Harrow", "Kelp Tower".
    """
    path: list[tuple[int, Antecedent | None]] = []
    for block in blocks:
        if block.kind == "heading":
            words = text[block.start : block.end].split()
            ends = {word.lower() for word in (*words[:1], *words[-1:])}
            kind = not ends.isdisjoint(UNDERTAKINGS | LABEL_BY_NOUN.keys())
            proper = kind and len(words) > 1 and all(word[0].isupper() for word in words)
            named = read_title(" ".join(words)) if proper else None
            if named is not None:
                label = named.phrase.label if ends.isdisjoint(UNDERTAKINGS) else "ORG"
                place = Span(block.start, block.end)
                named.phrase = replace(named.phrase, span=place, label=label)
            while path and path[-1][0] >= block.level:
                path.pop()
            path.append((block.level, named))
            yield block.start, next((thing for _, thing in reversed(path) if thing), None)


_NUMBERING = re.compile(
    rf"^[#\s]*(?:[A-Z][.)]|[A-Z]?\d+(?:\.\d+)*[.)]?)\s+(?!{MONTH}\b)(?=[^\W\d_a-z])"
)


_CAPITALS = re.compile(r"^(?:\d+[.)] )?[A-Z][A-Z0-9 &'/,-]*[A-Z]{2}:?$", re.MULTILINE)
"""A line that is a heading in plain text."""


def clean_heading(heading: str, title: str) -> str:
    """A heading without its number; "" for the title, and for one that is too long."""
    words = _NUMBERING.sub("", heading, count=1).strip(" #:.").split()
    plain = " ".join(words)
    return "" if len(words) > FULL_WORDS or plain.casefold() in title.casefold() else plain


def find_head_word(words: list[str]) -> str:
    """Return the head of a name in lower case: "battle" of "Battle of Hastings"."""
    end = next((i for i, word in enumerate(words) if i and word in _LINKING), len(words))
    return words[end - 1].lower()


def find_long_form(nodes: list[Node], end: int, short: str) -> int | None:
    """Return the first token before `end` of an acronym's long form, else None.

    The letters are the first letters of its words, of which one may be omitted, or else letters in
    order, the first at the start of a word (Schwartz and Hearst, "A simple algorithm for
    identifying abbreviation definitions", PSB 2003).
    """
    letters = [c.lower() for c in short.removesuffix("s") if c.isalnum()]
    if not 1 < len(letters) <= 8 or sum(c.isupper() for c in short) < 2:
        return None
    opening = nodes[end].tree.sentences[nodes[end].sentence][0]
    words = [n for n in nodes[max(end - 3 * len(letters), opening) : end] if n.word[0].isalnum()]
    return _match_initials(words, letters) or _match_letters(words, letters)


def _match_initials(words: list[Node], letters: list[str]) -> int | None:
    index, left_out = len(letters) - 1, 0
    for node in reversed(words):
        if node.word[0] == letters[index] and (index or node.word not in _LINKING):
            index -= 1
            if index < 0:
                return node.i
        elif node.word not in _LINKING:
            left_out += 1
            if left_out > 1:
                break
    return None


def _match_letters(words: list[Node], letters: list[str]) -> int | None:
    index = len(letters) - 1
    for node in reversed(words):
        where = len(node.word)
        while index > 0 and (where := node.word.rfind(letters[index], 0, where)) >= 0:
            index -= 1
        if index == 0 and where != 0 and node.word[0] == letters[0]:
            return node.i
    return None


def list_name_words(text: str) -> list[str]:
    """Return the words of a name for comparison with another name."""
    words = (word.strip(".,'\"\u2019`").lower() for word in text.split())
    return [word for word in words if word and word != "the"]


def describe(token: Node, phrase: Phrase) -> Antecedent:
    """Return the entity that a first mention introduces."""
    kinds = list_kinds(token)
    words = {w.lower().strip(".") for w in phrase.text.split()}
    genders = {g for w in sorted(kinds | words) if (g := find_gender(w)) is not None}
    given = find_name_gender(phrase.text.lower()) if phrase.is_named else None
    genders = genders or ({given} if given else set())  # of one name: "Evelyn Waugh" may be a man
    head = token.word
    first = phrase.text.split()[0].lower()
    # "Orm Tavern is a historic building" and no person, whatever the recogniser has
    thing = bool(kinds) and is_known(head, lang="en") and find_name_gender(first) is None
    full = phrase.label == "PERSON" and phrase.words > 1 and not thing
    full = full and not any(map(find_kind_label, kinds))
    person: bool | None
    named = LABEL_BY_NOUN.get(head) if phrase.is_named else None
    if named == "ORG":  # "Dovra Paper Company" is a manufacturer
        person = False
    elif any(is_person_noun(k) for k in kinds) or (
        (token.pos == "NOUN" or token.left_edge.word == "the")
        and is_person_noun(token.lemma.lower())
    ):
        person = True  # "the Data Protection Officer"
    elif token.pos == "NOUN" or phrase.label in _NOT_PERSON or (kinds and not full):
        person = False
    elif phrase.label != "PERSON" and any(c.word == "the" for c in token.children):
        person = False  # no person's name has an article: "the Ister Court"
    else:
        placed = token.dep == "pobj" and token.head.word == "in"  # "in Corrie Beck"
        person = True if phrase.label == "PERSON" and not placed else None
    # "Harlow Bridge" is a bridge; "Aster Pictures", a company, is no picture.
    labels = {LABEL_BY_NOUN[kind] for kind in kinds & LABEL_BY_NOUN.keys()}
    # "Town Hall" is no town
    alone = is_known(head, lang="en") and LABEL_BY_NOUN.get(first) != "LOC"
    for word in ({head} if alone else {head, first}) if phrase.is_named else ():
        label = LABEL_BY_NOUN.get(word)
        if labels and label not in labels:
            continue  # "Castle Dunnet is a town"
        work = phrase.label in {"WORK_OF_ART", "MISC"}
        open_kind = label is None and person is not True and phrase.words > 1
        open_kind = open_kind and phrase.label not in {"GPE", "NORP"} and word.isalpha()
        if (word == head and (work or open_kind)) or label not in {None, "WORK_OF_ART"}:
            kinds.add(word)
    if person is None and not kinds.isdisjoint(LABEL_BY_NOUN):
        person = False
    if not phrase.is_named:
        kinds.add(head)
    group = (phrase.is_named and phrase.label == "ORG") or not kinds.isdisjoint(_GROUP_NOUNS)
    one = list_stated_kinds(token) and not token.text.islower()  # "The Lanterns are a band"
    many = is_many(token) and not one
    firm = token.tag == "NNPS" and phrase.label in {"ORG", "MISC"}
    many = many and not (firm and all(c.word != "the" for c in token.children))  # "Velt Foods"
    many = many or (phrase.is_named and head == "family")
    plural = True if many else None if group else False
    gender = genders.pop() if len(genders) == 1 and person is not False else None
    return Antecedent(phrase, person, gender, plural, kinds, 0.0, token.sentence, token.dep, -1)


def is_many(noun: Node) -> bool:
    """Return whether the noun is plural, by its form or by its of-phrase: "a lot of stores"."""
    if noun.tag in {"NNS", "NNPS"}:
        return True
    counted = (g for c in noun.children if c.word == "of" for g in c.children)
    tags = {each for g in counted for each in (g.tag, g.entity)}
    return noun.word in COUNTING and not tags.isdisjoint({"NNS", "NNPS", "CARDINAL"})


def find_counted(noun: Node) -> Node:
    """The noun that a counting noun counts: "shares" of "number of shares"; another noun itself."""
    counted = (g for c in noun.children if c.word == "of" for g in c.children)
    return next(counted, noun) if noun.word in COUNTING else noun


def list_kinds(token: Node) -> set[str]:
    """Return the kind nouns of the mention in its clause or an apposition."""
    nouns: list[Node] = []
    if token.dep == "nsubj" and token.head.lemma == "be":
        nouns += [c for c in token.head.children if c.dep == "attr" and c.pos == "NOUN"]
    beside = [c for c in token.children if c.dep == "appos" and c.pos == "NOUN"]
    # "Ruth Ellacott (laboratory)" is no laboratory
    nouns += [c for c in beside if is_person_noun(c.word) or token.tree[c.i - 1].text != "("]
    if token.dep == "appos" and token.head.pos == "NOUN" and token.pos == "PROPN":
        nouns.append(token.head)
    if token.i > token.left_edge.i and token.pos == "PROPN":
        before = find_title_noun(token)
        nouns += [before] if before is not None else []
    kinds = {k.word for n in nouns for k in list_conjuncts(n) if k.pos == "NOUN"}
    return kinds - {"one", "part"}


def find_bearer(noun: Node) -> Node | None:
    """The name that a clause gives a definite noun: "the aide, Ann Lee,", "the chair is Ann"."""
    if noun.pos != "NOUN" or noun.tag == "NNS" or find_kind_label(noun.word) == "WORK_OF_ART":
        return None
    names = [c for c in noun.head.children if c.dep == "attr" and c.pos == "PROPN"]
    same = noun.dep == "nsubj" and noun.head.lemma == "be" and is_person_noun(noun.word)
    return names[0] if same and names and noun.left_edge.word != "a" else find_close_name(noun)


def is_predicate_noun(token: Node) -> bool:
    """Return whether the noun is a predicate of the subject: "Aster is a company"."""
    return token.dep == "attr" and any(c.dep in SUBJECTS for c in token.head.children)


def list_stated_kinds(token: Node) -> set[str]:
    """Return the kinds of the subject that its clause states: "a metal" for "gold"."""
    if token.dep != "nsubj" or token.head.lemma != "be":
        return set()
    nouns = (c for c in token.head.children if c.dep == "attr" and c.tag == "NN")
    return {n.word for n in nouns if any(c.word in {"a", "an"} for c in n.children)}


def find_title_noun(name: Node) -> Node | None:
    """Return the common noun right before a name's words: "river" in "the river Tor"."""
    start = name
    for child in name.children:
        if child.dep in {"compound", "nmod"} and child.i < start.i:
            start = child
    before = start.tree[start.i - 1] if start.i > 0 else start
    if start.pos == "NOUN" and start is not name and start.text.islower():
        return start
    near = before.head is name or name.head is before
    return before if before.pos == "NOUN" and before.text.islower() and near else None


def is_bare_definite(token: Node) -> bool:
    """Return whether the noun has "the" or "this" and no restrictive modifier."""
    if token.tag not in {"NN", "NNP", "NNS"} or token.dep in _NAMING:
        return False
    generic = token.word in GENERIC_NOUNS
    determined = False
    for child in token.children:
        if child.dep == "det":
            determined = child.word in {"the", "this"}
        elif child.dep in {"relcl", "acl"} and not is_restrictive(child):
            continue  # "This song, which became a hit"
        elif child.dep in _NARROWING or (
            child.i < token.i and not (generic and child.dep == "amod")
        ):
            return False
    return determined


def is_episodic(token: Node) -> bool:
    """Return whether a plural noun is the subject of an event: "patients underwent it"."""
    if token.pos == "PROPN" or token.dep not in SUBJECTS or not is_many(token):
        return False
    auxiliaries = {c.word for c in token.head.children if c.dep in {"aux", "auxpass"}}
    return auxiliaries <= {"were"} and (token.head.tag == "VBD" or "were" in auxiliaries)


def find_clause(token: Node) -> int:
    """Return the verb of the token's clause, the first of coordinated verbs."""
    node = token
    for _ in range(12):
        if node.head is node or (node.pos in {"VERB", "AUX"} and node.dep not in {"conj", "xcomp"}):
            break
        node = node.head
    return node.i


def is_inside(pronoun: Node, noun: int) -> bool:
    """Return whether a pronoun is in the noun's own phrase: "its" in "the bulk of its debts"."""
    node = pronoun.head
    while node.dep in {"pobj", "prep"} and node.head is not node:
        node = node.head
        if node.i == noun:
            return True
    return False


def list_governors(token: Node) -> set[int]:
    """Return the ancestors of an object up to the verb with the subject: "X wants to set it"."""
    node, verbs = token.head, set[int]()
    for _ in range(12):
        verbs.add(node.i)
        has_subject = any(c.dep in SUBJECTS for c in node.children)
        if has_subject or node.head is node or node.dep not in _CONTROLLED:
            break
        node = node.head
    return verbs


def _is_amount(subject: Node) -> bool:
    """Whether a clause states its subject's amount: "it remains 4.5 pence", "it fell to 3 %"."""
    verb = subject.head if subject.dep in SUBJECTS else subject
    parts = [*verb.children, *(g for c in verb.children if c.dep == "prep" for g in c.children)]
    return verb.lemma in VERBS["amounting"] and any(c.entity in {"MONEY", "PERCENT"} for c in parts)


def is_expletive(token: Node) -> bool:
    """Return whether "it" is an expletive subject: "it is said that", "it takes a day to"."""
    if token.word != "it" or token.dep not in SUBJECTS:
        return False
    verb = token.head
    # "The airport is in Vermont; it is busy": a clause before "it" is no content of its verb
    deps = {c.dep for c in verb.children if c.i > token.i or c.dep != "ccomp"}
    if verb.lemma == "be" and verb.text[:1] in {"'", "\u2019"} and "attr" in deps:
        return True  # "it's a shame": often the situation, not a thing
    if verb.lemma in _WEATHER or (verb.lemma == "take" and deps & {"xcomp", "advcl"}):
        return True
    if verb.lemma in _IMPERSONAL and "dobj" in deps:
        if any(c.word == "sense" for c in verb.children):
            return True
        inner = [c for noun in verb.children if noun.dep == "dobj" for c in noun.children]
        return any(find_infinitive_mark(c) is not None for c in (*verb.children, *inner))
    if "ccomp" in deps and (token.dep == "nsubjpass" or verb.lemma in {"seem", "appear"}):
        return True
    inner = [c for word in verb.children if word.dep in {"acomp", "attr"} for c in word.children]
    that = [c for c in (*verb.children, *inner) if c.dep in {"ccomp", "acl", "relcl"}]
    supposed = any(c.tag == "MD" for c in verb.children)  # "it can be no accident that they fall"
    if verb.lemma == "be" and any(
        m.word == "that" and (m.dep == "mark" or supposed) for c in that for m in c.children
    ):
        return True  # "it is no coincidence that they fall"
    if any(g.word == "who" for c in that for g in c.children):
        return True  # "it was the boats who asked for it"
    if verb.lemma == "be" and "attr" in deps:  # "it is a bad idea to wait"
        graded = any(c.dep == "amod" for c in inner) and any(c.word in {"a", "an"} for c in inner)
        aims = (find_infinitive_mark(c) for c in (*verb.children, *inner) if c.i > token.i)
        return graded and verb.tag == "VBZ" and any(mark is not None for mark in aims)
    clauses = {c.dep for c in (*verb.children, *inner)} & {"ccomp", "xcomp", "advcl"}
    return verb.lemma == "be" and "acomp" in deps and bool(clauses)


def _means_clause(token: Node) -> bool:
    """Whether "it" stands for what was said: "Ann doubts it", "as the council asked for it"."""
    verb = token.head
    if verb.word in {"for", "on", "to"} and token.dep == "pobj":
        verb = verb.head
    return token.word == "it" and token.dep in {"dobj", "pobj"} and verb.lemma in VERBS["stating"]


_CONTROLLED = frozenset("acomp xcomp advcl relcl conj acl pcomp prep dobj pobj agent".split())
"""Relations through which the subject of the verb above is understood."""
_WEATHER = frozenset("rain snow".split())
_IMPERSONAL = frozenset({"take", "make", "cost"})


def _list_main_subjects(tree: Tree) -> list[Node | None]:
    """The subject of each sentence's main clause; None where it has none."""
    subjects: list[Node | None] = [None] * len(tree.sentences)
    for node in reversed(tree.nodes):
        if node.dep in SUBJECTS and node.head.head is node.head:
            told_of = _find_reported(node.head) if _is_somebody(node) else None
            subjects[node.sentence] = told_of or node
    return subjects


def _is_somebody(noun: Node) -> bool:
    """Whether a noun is of a person, by type, by kind or as a given name."""
    kind = noun.entity == "PERSON" or is_person_noun(noun.lemma.lower())
    return kind or find_name_gender(noun.word) is not None


def _find_reported(verb: Node) -> Node | None:
    """The subject of what a clause reports: in "Ann said that the van is old" the van."""
    content = (c for c in verb.children if c.dep == "ccomp" and verb.lemma in REPORTING)
    return next((c for each in content for c in each.children if c.dep in SUBJECTS), None)


def _can_be_it(subject: Node) -> bool:
    """Whether "it" may refer to a subject: one thing, and nobody."""
    if subject.pos == "PRON":
        return subject.word in {"it", "this", "that"}
    person = subject.entity == "PERSON" and all(c.tag != "CD" for c in subject.children)
    person = person or is_person_noun(subject.lemma.lower())
    return subject.pos in {"NOUN", "PROPN"} and not person and not is_many(subject)


def _can_be_they(subject: Node) -> bool:
    """Whether "they" may refer to a subject: several things, or one and another."""
    return is_many(subject) or any(c.dep == "conj" for c in subject.children)


def list_called(entity: Antecedent) -> set[str]:
    """The entity types of the kind nouns of an entity: "a census-designated place"."""
    labels: set[str] = set()
    for kind in entity.kinds:
        label = find_kind_label(kind)
        labels |= GENERIC_NOUNS.get(kind, frozenset()) if label is None else {label}
    return labels


def list_labels(entity: Antecedent) -> set[str]:
    """The possible types of an entity: those of its kind nouns, else the recogniser's."""
    return list_called(entity) or {"PERSON" if entity.person else entity.phrase.label}


def _is_rival(best: Antecedent, rival: Antecedent, token: Node) -> bool:
    """Whether an earlier clause has two entities of a type: "Velt Foods sued Marn Foods. It ...".

    Not if the first was mentioned before: it is then the more salient.
    """
    labels = list_labels(best), list_labels(rival)
    alike = best.phrase.is_named and (labels[0] & labels[1] or "MISC" in labels[0] | labels[1])
    joined = best.clause == rival.clause and rival.role in {*SUBJECTS, "dobj"}
    return bool(alike and joined) and best.sentence < token.sentence and not best.repeated


def _leads(entity: Antecedent) -> bool:
    """Whether an entity may be a person by its full name, and was last named as a subject."""
    words = entity.phrase.text.split()
    full = len(words) in {2, 3} and all(word[0].isupper() for word in words)
    named = entity.phrase.label in {"PERSON", *_UNSURE} and words[-1].lower() not in FIRM_ENDINGS
    return full and named and entity.person is not False and entity.role in SUBJECTS


def agrees(ent: Antecedent, word: str) -> bool:
    if word in PERSON:
        gender = GENDER[word]
        return ent.person is not False and ent.plural is not True and ent.gender in {gender, None}
    if word in THING:
        return ent.person is not True and ent.plural is not True
    return ent.plural is not False


# Antecedents of pronouns, of definite phrases ("the town"), and of short names.

_PARTS = frozenset({"compound", "conj", "appos"})
"""Roles of words within a name: "Holt & Pavey"."""
_SCENES = frozenset({"GPE", "LOC", "FAC", "ORG"})
_PARAGRAPHS = PROSE | {"heading"}
"""Kinds of blocks in which a pronoun opens no sentence."""
# The salience of a mention by its role; objects of prepositions have the least.
_WEIGHTS = {"nsubj": 80.0, "nsubjpass": 80.0, "dobj": 50.0, "poss": 40.0, "dative": 40.0}
_DEFAULT_WEIGHT = 30.0
_SETTING_WEIGHT = 5.0
"""For a place or group after a preposition: "in Leeds, England" only sets the scene."""
_TOPIC = 45.0
"""Added for the paragraph's first named subject: it outweighs a subject of the sentence before."""
_FADING = 0.85
"""The factor of that per sentence without a mention."""
_SAME_SENTENCE = 30.0
_SAME_ROLE = 20.0
_NAMED = 20.0
_SURE_PERSON = 40.0
_CONTINUED = 10.0
"""For "it" that opens a sentence, and the subject of an earlier sentence."""
_AGENT = 20.0
"""For "they" that do something, and people."""
_CLAUSE_SUBJECT = 50.0
"""For "its" and the subject of its clause: "Monet sold his paintings"."""
_MARGIN = 15.0
"""The least difference between the weights of an antecedent and the next candidate."""
_FLOOR = 65.0
"""The least weight of an antecedent; a common noun as subject of the sentence before has 60."""
_ALONE = 40.0
"""The least weight of a name, or of an antecedent of "it", where nothing else agrees."""
_WINDOW = 4
"""The most sentences between a pronoun and its antecedent, unless that is the topic."""
_NEAR = 2
"""The most sentences for "it" and "they"."""
_TOPIC_WINDOW = 12
_MOST_BETWEEN = 20
"""The most sentences between "the company" and its antecedent, unless that is the topic."""
_MAX_ALIKE = 6
"""The most entities of a kind that are remembered."""
_MAX_ACTIVE = 24
"""The most active entities, so that a long text costs no more per word than a short one."""
_OF_ONE_KIND = frozenset("airline bank charity foundation manufacturer".split())
_OF_ANY_BODY = (
    list_alike("company") | list_alike("organisation") | {"agency", "group"}
) - _OF_ONE_KIND
"""Nouns that may mean any organisation; "the team" means one whose name or kind says so."""
_SALUTED = 400
"""Characters in which a letter has its salutation; "we" is then its sender."""
_EACH = frozenset({"each", "every", "no", "any"})
_POINTING = frozenset({"the", "this", "these", "that", "those"})
_INDEFINITE = frozenset({"a", "an", "", "some", "several", "many", "two", "three"})
_TRACKED = frozenset({"nsubj", "nsubjpass", "dobj", "pobj"})
"""Roles in which a common noun is remembered."""
_MAIN_ROLES = SUBJECTS | {"dobj", "attr"}
_VAGUE = WORDS["vague"]
_PHRASE_ROLES = frozenset("nsubj nsubjpass dobj pobj poss dative attr conj appos oprd ROOT".split())


def _joins_person(name: Node) -> bool:
    """Whether a person's name is coordinated with that of another: "Ann Lee and Eva Moe"."""
    members = (c for c in name.children if c.dep == "conj" and c.pos == "PROPN")
    full = (c for c in members if c.entity == "PERSON" or c.left_edge.dep == "compound")
    return name.entity == "PERSON" and any(c.entity in {"PERSON", "ORG"} for c in full)


def _is_part(owner: Node) -> bool:
    """Whether a possessor is part of a name, not an entity of its own: "Lena's Vodka"."""
    named = owner.dep == "poss" and owner.pos == owner.head.pos == "PROPN"
    return named and owner.entity != "PERSON"


class Antecedents:
    """The antecedents of one text; `topic` is its first named subject, or the title's entity.

    One pass in text order records the mentioned entities, each with a salience: it is highest for
    entities named last, as a subject, and first in their paragraph (Lappin and Leass, "An algorithm
    for pronominal anaphora resolution", Computational Linguistics 1994). Number, gender and stated
    kinds decide which entities are possible antecedents. Where two are about as likely, none is
    chosen.
    """

    def __init__(
        self, tree: Tree, title: str = "", blocks: Iterable[Block] = (), author: str = ""
    ) -> None:
        letter = tree.text[:_SALUTED].startswith("Dear ") or "\nDear " in tree.text[:_SALUTED]
        theirs = letter and author.casefold() not in tree.text.casefold()
        self.tree, self._author = tree, "" if theirs else author
        blocks = [*blocks]
        self._words = {node.text for node in tree.nodes if node.text.islower()}
        self._says_we = any(node.word in WE for node in tree.nodes)
        self._speakers = list_speakers(tree.text, blocks)
        self._told = [Span(b.start, b.end) for b in blocks if b.kind in {"quotation", "turn"}]
        self._sections = [*list_sections(tree.text, blocks)]
        lines = [(b.start, tree.text[b.start : b.end]) for b in blocks if b.kind == "heading"]
        capitals = ((line.start(), line.group()) for line in _CAPITALS.finditer(tree.text))
        lines = lines or [(start, line) for start, line in capitals if start]  # not the title
        self._headings = [(start, clean_heading(line, title)) for start, line in lines]
        self.topic: Antecedent | None = None
        self._title = read_title(find_named(title, tree.text))
        self._title_words = list_name_words(self._title.phrase.text) if self._title else []
        self._met = False
        """Whether the text has mentioned the title's entity."""
        self._first = self._find_first(title)
        self._of_kind: dict[str, list[Antecedent]] = {}
        """The entities by kind noun, in text order, each once."""
        self._shortened: dict[str, Antecedent | None] = {}
        """The entities by the end of a longer name: "National Park"; None where two share it."""
        self._resolved: dict[int, Phrase] = {}
        self._owners: dict[int, Antecedent | None] = {}
        """The owner of each attribute without an owner beside it."""
        self._lent: set[int] = set()
        """Names beside the noun whose role they have: "the engineer, Ann Lee,"."""
        self._subjects = _list_main_subjects(tree)
        self._mains: dict[int, Antecedent] = {}
        """By sentence the entity that is, or owns, the subject of its main clause."""
        self._unclear: dict[str, int] = {}
        """By gender the last sentence with an ambiguous pronoun."""
        self._active: list[Antecedent] = []
        self._names: dict[str, Antecedent] = {}
        self._parts: dict[str, Antecedent | None] = {}
        self._local: Antecedent | None = None
        self._opening = self._opened = -1
        """The sentence that opens the paragraph; the last such sentence with a topic."""
        self._acronyms: dict[str, Phrase] = {}
        """The long forms of "Drop Zone (DZ)" by their acronyms."""
        self._specific: dict[str, list[tuple[Antecedent, bool]]] = {}
        """By noun: the phrases with modifiers, and whether each was indefinite."""
        self.members: dict[Span, list[Phrase]] = {}
        """The phrases of the members of coordinated antecedents of "they", by span."""
        self._depths = count_brackets(tree)
        """The open brackets at each token: mentions in brackets are asides."""
        if self._title is not None:
            self._learn_kinds(self._title, self._title.kinds)
            self._learn_name(self._title)
        starts = {first for first, _ in tree.sentences}
        items = sorted(block.start for block in blocks if block.kind in _PARAGRAPHS)
        for node in tree.nodes:
            if node.i in starts:
                before = tree[node.i - 1].end if node.i else 0
                begins = bisect_right(items, node.idx) > bisect_right(items, before)
                if node.i == 0 or begins or "\n\n" in tree.text[before : node.idx]:
                    self._opening = node.sentence
            if node.text == "(":
                self._learn_acronym(node)
            elif node.word in PRONOUNS and node.tag in {"PRP", "PRP$"}:
                self._read_pronoun(node)
            elif node.word in FIRST_PERSON | WE and node.tag in {"PRP", "PRP$"}:
                self._read_speaker(node)
            elif node.dep in _PHRASE_ROLES and node.pos in {"PROPN", "NOUN"} and not _is_part(node):
                if node.dep in SUBJECTS and node.word in ATTRIBUTES:
                    self._owners[node.i] = self._choose_owner(node)
                self._read_noun(node)

    def _find_first(self, title: str) -> int:
        """The index of the text's first sentence, after a heading that is its title."""
        if not title or len(self.tree.sentences) < 2:
            return 0
        first, last = self.tree.sentences[0]
        heading = self.tree.text[self.tree[first].idx : self.tree[last - 1].end]
        return int(heading.strip().casefold() == title.strip().casefold())

    def resolve(self, token: Node) -> Phrase | None:
        """The antecedent of a third-person pronoun, "the town" or a short name; None if unclear."""
        return self._resolved.get(token.i)

    def find_heading(self, node: Node) -> str:
        """The words of the next heading above a token; "" where it is the title, or long."""
        index = bisect_right(self._headings, node.idx, key=lambda heading: heading[0]) - 1
        return self._headings[index][1] if index >= 0 else ""

    def find_owner(self, noun: Node) -> Phrase | None:
        """The owner of a bare attribute, "the height"; the topic for an attribute of any type."""
        owner = self._owners.get(noun.i)
        if noun.word not in ATTRIBUTES and self.topic is not None:
            owner = None if self.topic.person else self.topic
        return replace(owner.phrase, resolved=True) if owner is not None else None

    def _choose_owner(self, noun: Node) -> Antecedent | None:
        """The last named subject, or the topic, of a type that can have the attribute.

        Else the entity of the section's heading; of earlier entities only the title's competes.
        The topic may have an uncertain type.
        """
        index = bisect_right(self._sections, noun.idx, key=lambda section: section[0]) - 1
        start, heading = self._sections[index] if index >= 0 else (0, None)
        fitting = [
            a
            for a in self._active
            if a.phrase.is_named
            and noun.sentence - a.sentence <= _TOPIC_WINDOW
            and (self.tree[max(a.last, 0)].idx >= start or (a is self._title and not heading))
            and (a.role in SUBJECTS or a is self.topic)
            and self._can_have(a, noun)
        ]
        if heading is not None and not fitting and self._can_have(heading, noun):
            return heading
        return max(fitting, key=lambda a: (a.sentence, a.last), default=None)

    def _can_have(self, entity: Antecedent, noun: Node) -> bool:
        unsure = entity.phrase.label in _UNSURE and not list_called(entity)
        labels = ATTRIBUTES[noun.word]
        return not labels.isdisjoint(list_labels(entity)) or (entity is self.topic and unsure)

    def _read_pronoun(self, token: Node) -> None:
        if _means_clause(token) or is_expletive(token):
            return
        fitting = [a for a in self._active if self._can_mean(token, a)]
        if not fitting:
            if self._title is not None and self._opens_text(token, self._title):
                self._meet_unnamed(token, self._title)
            return
        weights = ((self._weigh(a, token), a.phrase.first, a) for a in fitting)
        weighed = sorted(weights, key=itemgetter(0, 1))
        best = weighed[-1][2]
        second = weighed[-2][0] if len(weighed) > 1 else 0.0
        sure = best.phrase.is_named or token.word in THING
        floor = _ALONE if sure and len(weighed) == 1 else _FLOOR
        if weighed[-1][0] < floor or weighed[-1][0] - second < _MARGIN:
            self._unclear[GENDER.get(token.word, "")] = token.sentence
            return  # a wrong antecedent is worse than none
        within = token.word in THING and best.sentence == token.sentence
        if within and is_listed(self.tree[best.last]):
            return  # "a town or city would set its own time"
        if token.word in THING and any(_is_rival(best, a, token) for _, _, a in weighed[:-1]):
            return
        if token.word in THING | PLURAL and not self._goes_on(best, token):
            return
        if token.word in PERSON and best.sentence < token.sentence:
            # "It took Ann an hour, as she was alone": hardly somebody before Ann
            beside = (a for a in fitting if a.sentence == token.sentence and a is not best)
            if any(a.phrase.is_named and a.role in {*SUBJECTS, "dobj"} for a in beside):
                return
        if token.word in PERSON and best.sentence < token.sentence - 1:
            gender = GENDER[token.word]
            near = (a for a in self._active if a.sentence == token.sentence - 1)
            near = (a for a in near if a.gender in {None, gender})
            if self._unclear.get(gender) == token.sentence - 1 or any(map(_leads, near)):
                # the antecedent may be the subject of the sentence before, or the topic
                self._unclear[gender] = token.sentence
                return
        best.gender = best.gender or GENDER.get(token.word)
        if token.word in PERSON:
            best.person = True
        self._refer(token, best)

    def _read_speaker(self, token: Node) -> None:
        """Resolves "I" in a turn to its named speaker, "we" elsewhere to the author.

        Not "we at Velt Foods", nor "we humans", nor what a block quotes.
        """
        index = bisect_right(self._speakers, token.idx, key=lambda each: each[0].start) - 1
        in_turn = index >= 0 and token.idx < self._speakers[index][0].end
        told = any(span.start <= token.idx < span.end for span in self._told)
        after = self.tree.nodes[token.i + 1 : token.i + 2]
        others = told or any(n.word == "at" or n.dep == "appos" for n in (*after, *token.children))
        name = self._speakers[index][1].text if in_turn else "" if others else self._author
        if name and in_turn is (token.word in FIRST_PERSON):
            self._resolve_to(token, name, "PERSON" if in_turn else "ORG")

    def _is_ours(self, token: Node) -> bool:
        """Resolve "the company" to the author, in a text by the author alone."""
        told = any(span.start <= token.idx < span.end for span in self._told)
        ours = not told and self._says_we
        if ours:
            self._resolve_to(token, self._author, "ORG")
        return ours

    def _resolve_to(self, token: Node, name: str, label: str) -> None:
        place = Span(token.idx, token.end)
        self._resolved[token.i] = Phrase(
            name, place, token.i, token.i, token.i, label, resolved=True, literal=False
        )

    def _opens(self, token: Node) -> bool:
        """Return whether the token is a subject of the text's first sentence."""
        return token.dep in SUBJECTS and token.sentence <= self._first

    def _opens_text(self, token: Node, title: Antecedent) -> bool:
        """Return whether a pronoun is the first mention of the title's entity."""
        if not self._opens(token) or self._met or token.word in PLURAL:
            return False
        if token.word in THING:
            return not title.kinds.isdisjoint(LABEL_BY_NOUN)
        words = title.phrase.text.split()
        return 1 < len(words) < 5 and all(w[0].isupper() for w in words)

    def _meet_unnamed(self, token: Node, title: Antecedent) -> None:
        self._met = True
        self.topic = title
        self._keep(title, token.sentence)
        title.person, title.gender = token.word in PERSON, GENDER.get(token.word)
        self._learn_name(title)
        self._refer(token, title)

    def _refer(self, token: Node, entity: Antecedent) -> None:
        """Resolve the token to the entity; a name that only the title has gets the token's span."""
        phrase = replace(entity.phrase, resolved=True)
        if not phrase.literal:
            place = Span(token.idx, token.end)
            phrase = replace(phrase, span=place, root=token.i, first=token.i, last=token.i)
        self._resolved[token.i] = phrase
        self._touch(entity, token)

    def _can_mean(self, token: Node, entity: Antecedent) -> bool:
        reach = _WINDOW if token.word in PERSON else _NEAR
        topic = entity is self._local or entity is self.topic
        if token.word in PLURAL and entity.plural is None and not topic:
            return False  # "they" for one company is rare
        reach = _TOPIC_WINDOW if topic and entity.plural is not None else reach
        if token.sentence - entity.sentence > reach:
            return False
        if not agrees(entity, token.word):
            return False
        verb = token.head
        takes = verb.lemma in {"last", "take"} and token.dep in SUBJECTS
        takes = takes and any(c.entity in TIMES for c in verb.children)
        if takes and entity.phrase.label in {*PLACES, "ORG", "PERSON"}:
            return False  # "Take the line from Orm to Velm. It should take an hour"
        each = self.tree[entity.phrase.first - (entity.phrase.first > 0)]
        shared = each.word in _EACH and entity.phrase.literal
        if shared and entity.sentence < token.sentence:
            return False  # "Each clinic has a viewer. It"
        if token.word in PERSON and entity.person is None:
            # The recogniser may have missed the person of the topic, but hardly another.
            near = (a for a in self._active if token.sentence - a.sentence <= 1)
            near = (a for a in near if a.person and a.phrase.is_named)
            return topic and not any(near)
        if entity.phrase.is_named and token.word in THING and _is_amount(token):
            return False  # no firm or place "rose to 3 %"
        if entity.sentence != token.sentence or token.word.endswith(("self", "selves")):
            return True
        if is_inside(token, entity.last):
            return False
        # "X saw him": the object is somebody else; "its mouth" in X's own phrase is not X's.
        if token.tag == "PRP" and token.dep not in SUBJECTS:
            above = list_governors(token)
            node = self.tree[max(entity.last, 0)]
            while node.dep in {"pobj", "prep"} and node.head is not node:
                node = node.head
            if node.dep in SUBJECTS and node.head.i in above:
                return False  # "sites with the older gateway still lack it"
            if entity.last in above or entity.clause == token.head.i:
                return False
            if entity.role in SUBJECTS and entity.clause in above:
                return False
        root = self.tree[entity.phrase.root]
        return not (token.tag == "PRP$" and token.head is root)

    def _goes_on(self, entity: Antecedent, token: Node) -> bool:
        """Whether "it" or "they" goes on about the entity: the subject of the clause before it.

        Where that subject is no thing, an object of its clause or the topic may be meant. Nothing
        outside the paragraph or list item is, except the title's entity.
        """
        before = token.sentence - 1
        if entity.sentence == token.sentence:
            return True
        asked = self.tree[self.tree.sentences[before][1] - 1].text == "?"
        if before < self._opening and not asked:
            return entity is self._title
        if self._mains.get(before) is entity:
            return True
        subject = self._subjects[before]
        rival = _can_be_they if token.word in PLURAL else _can_be_it
        if subject is not None and entity.phrase.root == subject.i:
            last = max([subject.i, *(c.i for c in subject.children if c.dep == "conj")])
            return entity.phrase.last >= last  # "Ann and Per met. They"
        if subject is not None and rival(subject):
            owners = (c for c in subject.children if c.dep == "poss")
            if subject.word in ATTRIBUTES and self._owners.get(subject.i) is entity:
                return True  # "The population is 400. It lies"
            return any(self._means(c, entity, subject) for c in owners)
        is_topic = entity is self._local or entity is self.topic
        return is_topic or (entity.sentence == before and entity.role in _MAIN_ROLES)

    def _means(self, owner: Node, entity: Antecedent, noun: Node) -> bool:
        """Whether a possessor is the entity: by name, or by a pronoun before an attribute of it."""
        known = self._resolved.get(owner.i)
        if known is not None:
            return noun.word in ATTRIBUTES and known.text == entity.phrase.text
        return owner.word == self.tree[entity.phrase.root].word

    def _has_moved_on(self, topic: Antecedent, token: Node) -> bool:
        """Whether the sentence before is about another of its type: "Y is in Z. Its head"."""
        near = (a for a in self._active if a.sentence == token.sentence - 1 > topic.sentence)
        near = (a for a in near if a.role in SUBJECTS and a.phrase.is_named)
        opens = token.i == self.tree.sentences[token.sentence][0]
        return opens and any(list_labels(a) & list_labels(topic) for a in near)

    def _weigh(self, entity: Antecedent, token: Node) -> float:
        weight = entity.salience * 0.5 ** (token.sentence - entity.sentence)
        if entity is self._title and self._met:
            weight += _TOPIC
        elif entity is self._local and not self._has_moved_on(entity, token):
            weight += _TOPIC * _FADING ** (token.sentence - entity.sentence)
        if entity.sentence == token.sentence and entity.role in SUBJECTS:
            weight += _SAME_SENTENCE
        if token.word in PERSON and entity.person:
            weight += _SURE_PERSON
        if (entity.role in SUBJECTS) == (token.dep in SUBJECTS or token.tag == "PRP$"):
            weight += _SAME_ROLE
        if entity.phrase.is_named:
            weight += _NAMED
        opens = token.i == self.tree.sentences[token.sentence][0]
        if token.word == "it" and opens and entity.role in SUBJECTS:
            weight += _CONTINUED
        if token.word in PLURAL and entity.person and token.dep == "nsubj":
            weight += _AGENT
        if token.tag == "PRP$" and entity.role in SUBJECTS and entity.clause == find_clause(token):
            weight += _CLAUSE_SUBJECT
        return weight

    def _read_noun(self, token: Node) -> None:
        inside = token.pos == "NOUN" and is_inside_word(self.tree.nodes, token.i - 1)
        if token.i in self._lent or inside:
            return  # the "call" of "on-call" is no mention
        named = token.pos in {"PROPN", "NUM"} or token.entity not in {"", *LITERALS}
        named = named and not (token.text.islower() and token.entity == "")
        bearer = None if named else find_bearer(token)
        if bearer is not None:
            self._lent.add(bearer.i)
        elif not named and (
            (is_bare_definite(token) and self._read_definite(token)) or self._read_repeated(token)
        ):
            return
        role, token, named = token, bearer or token, named or bearer is not None
        introduced = token.dep == "attr" and any(c.dep == "expl" for c in token.head.children)
        opening = self._opens(token) and self._title is not None
        if not (named or introduced or opening or token.dep in _TRACKED):
            return
        phrase = find_phrase(token)
        if phrase is None or phrase.label in LITERALS:
            return
        if phrase.text in self._acronyms and phrase.first == phrase.last:
            self._resolved[token.i] = replace(self._acronyms[phrase.text], resolved=True)
            return
        if named and self._read_short(token, phrase):
            return
        known = self._find_title(token, phrase, named)
        if known is None:
            known = self._find_known(token, phrase) if named else self._find_same(phrase)
        if known is None:
            known = describe(token, phrase)
            self._keep(known, token.sentence)
            if named:
                self._learn_name(known)
            self._add_pair(token)
        else:
            known.kinds |= list_kinds(token)
            full = list_name_words(phrase.text) == self._title_words
            if not full and phrase.text != known.phrase.text and phrase.words < known.phrase.words:
                self._refer(token, known)
        self._learn_kinds(known, known.kinds if known.phrase.is_named else list_stated_kinds(token))
        self._touch(known, role)
        if known.phrase.is_named and role.dep in SUBJECTS and not self._depths[token.i]:
            self._set_topic(known, role)

    def _keep(self, entity: Antecedent, sentence: int) -> None:
        self._active.append(entity)
        if len(self._active) > _MAX_ACTIVE:
            self._forget(sentence)

    def _find_title(self, token: Node, phrase: Phrase, named: bool) -> Antecedent | None:
        """Return the title's entity if the words are its name, or open the text with a part of it.

        A longer name in the text counts too: "Christopher Edward Nolan".
        """
        entity = self._title
        if entity is None:
            return None
        words, title = list_name_words(phrase.text), self._title_words
        opening = self._opens(token) and not self._depths[token.i]
        capital = phrase.text[0].isupper() or not phrase.text[0].isalpha()
        full = words == title
        if not words or not (opening or (full and capital and named)):
            return None
        if not full:
            if self._met:
                return None
            head = find_head_word(entity.phrase.text.partition(",")[0].split())
            shorter = set(words) < set(title) and head in words
            if phrase.label in {"GPE", "PERSON"} and not _WITHIN.isdisjoint(title):
                shorter = False  # "Spain in the Song Contest" is not Spain
            longer = set(title) < set(words) and capital and named
            alike = named and not entity.kinds.isdisjoint(list_kinds(token))
            alike = alike and not set(words).isdisjoint(set(title) - entity.kinds)
            namesake = phrase.label == "PERSON" and words[-1] == title[-1] == head
            if not (longer or shorter or alike or namesake):
                return None
        if opening and not self._met:
            self._meet(entity, token, phrase)
        elif not opening and entity not in self._active:
            self._keep(entity, token.sentence)
        return entity

    def _meet(self, ent: Antecedent, token: Node, phrase: Phrase) -> None:
        """Merge the title's entity with its first mention in the text."""
        self._met = True
        new = describe(token, phrase)
        nouns = list_kinds(token)
        if nouns:  # its stated kinds count, not the last word of its name
            labels = {LABEL_BY_NOUN.get(kind) for kind in nouns}
            ent.kinds = {kind for kind in ent.kinds if LABEL_BY_NOUN.get(kind) in labels} | nouns
        ent.kinds |= new.kinds if phrase.is_named else nouns
        ent.person, ent.gender = new.person, new.gender
        ent.plural = None if new.plural else new.plural
        full = set(self._title_words) - ent.kinds <= set(list_name_words(phrase.text))
        if full or "," in ent.phrase.text:  # "Elk Horn" of "Elk Horn, Iowa" has a type of its own
            ent.phrase = replace(phrase, label=phrase.label if phrase.is_named else "MISC")
        self._names.setdefault(phrase.text, ent)
        if ent not in self._active:  # a heading may have named it
            self._active.append(ent)
        self._learn_name(ent)
        self.topic = ent

    def _learn_kinds(self, entity: Antecedent, kinds: set[str]) -> None:
        for kind in kinds:
            among = self._of_kind.setdefault(kind, [])
            if entity not in among:
                among.append(entity)
                del among[:-_MAX_ALIKE]

    def _read_repeated(self, token: Node) -> bool:
        """Resolve "these stories" to the "ghost stories" that were mentioned before.

        Return whether it was resolved; else remember the phrase if its noun has modifiers.
        """
        if token.lemma.lower() in SIZES:
            return False  # "longer than 12 hours ... takes the hours"
        determiner = next((c.word for c in token.children if c.dep == "det"), "")
        rest = [c for c in token.children if c.dep not in {"det", "case", "punct"}]
        rest = [c for c in rest if c.dep != "relcl" or is_restrictive(c)]  # "these, which it has"
        telling = any(c.word not in _VAGUE and (c.tag != "CD" or is_many(token)) for c in rest)
        among = self._specific.setdefault(token.word, [])
        if not rest and (determiner in _POINTING or (not determiner and is_episodic(token))):
            near = [known for known in among if token.sentence - known[0].sentence <= _WINDOW]
            if len(near) > 1:
                near = [known for known in near if token.sentence - known[0].sentence <= 1]
            if self._is_only(among, token) and determiner in {"", "the"}:
                near = among  # "patients" are the "30 patients with a fracture"
            elif not determiner or (determiner == "the" and not all(new for _, new in near)):
                return False
            if len(near) == 1:
                self._refer(token, near[0][0])
            return len(near) == 1
        if determiner == "no":
            return False  # "There is no program for the Mac. The program"
        if telling and determiner not in _POINTING - {"the"} and not is_predicate_noun(token):
            phrase = find_phrase(token, full=True)
            bounded = any(
                g.dep in {"neg", "quantmod"}
                for c in token.children
                if c.tag == "CD"
                for g in c.children
            )  # "at most 14 wagons"
            if phrase is not None and phrase.words > 1 and phrase.root == token.i and not bounded:
                same = phrase.text.lower()
                known = [entity for entity, _ in among if entity.phrase.text.lower() == same]
                entity = known[0] if known else describe(token, phrase)
                entity.sentence = token.sentence
                if not known:
                    among.append((entity, determiner in _INDEFINITE))
                    del among[:-_MAX_ALIKE]
        return False

    def _is_only(self, among: list[tuple[Antecedent, bool]], token: Node) -> bool:
        """Whether the noun has a single recent phrase, whose modifiers identify its things."""
        bare = all(c.dep != "det" for c in token.children)
        reach = _WINDOW if bare else _TOPIC_WINDOW
        phrases = [a.phrase for a, _ in among if token.sentence - a.sentence <= reach]
        if bare:  # "30 patients with a fracture", and no kind of which something holds
            nodes = self.tree.nodes
            counted = (nodes[p.first].pos == "NUM" for p in phrases)
            met = (is_episodic(nodes[p.root]) for p in phrases)
            if not (any(counted) or any(met)):
                return False
        beside = {c.dep for phrase in phrases for c in self.tree[phrase.root].children}
        return len(among) == 1 and "conj" not in beside and not beside.isdisjoint(_PLACING)

    def _add_pair(self, token: Node) -> None:
        """Remember "Ann and Per" as an antecedent of "they"."""
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

    def _set_topic(self, entity: Antecedent, token: Node) -> None:
        if _joins_person(token):
            return
        if self.topic is None:
            self.topic = entity
        if token.sentence == self._opening and self._opened != self._opening:
            self._local, self._opened = entity, self._opening

    def _touch(self, ent: Antecedent, token: Node) -> None:
        faded = ent.salience * 0.5 ** (token.sentence - ent.sentence)
        scene = ent.phrase.label in _SCENES and token.dep in {"pobj", "appos", "conj"}
        scene = scene or self._depths[token.i] > 0
        # Of "Ann Lee and Eva Moe" neither is rather meant by "she".
        beside = token.dep != "conj" and ent.plural is not True and _joins_person(token)
        role = "conj" if beside else token.dep
        weight = _SETTING_WEIGHT if scene else _WEIGHTS.get(role, _DEFAULT_WEIGHT)
        ent.salience = faded / 2 + weight
        ent.repeated |= ent is self._title or (ent.last >= 0 and ent.sentence < token.sentence)
        noun = token.head if token.dep in _PARTS else token
        subject = self._subjects[token.sentence]
        if token is subject:
            self._mains[token.sentence] = ent
        elif not self._depths[token.i] and (
            noun is subject or (noun.dep == "poss" and noun.head is subject)
        ):
            self._mains.setdefault(token.sentence, ent)
        ent.sentence, ent.role, ent.last = token.sentence, token.dep, token.i
        ent.clause = token.head.i

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
        """Return the entity of that name, or the only person whose first or last name it is."""
        known = self._names.get(phrase.text)
        if known is None and " " not in phrase.text:
            known = self._parts.get(phrase.text)
            thing = any(c.word == "the" for c in token.children if c.dep == "det")
            if thing or any(find_kind_label(kind) != "PERSON" for kind in list_stated_kinds(token)):
                return None  # "the Severn", "Mercury is a planet"
            labels = {"PERSON", "", "ORG"} if known is not None and known.person else {"PERSON"}
            acts = token.dep in SUBJECTS and token.head.lemma not in {"be", "have"}
            acts = acts and known is not None and known.phrase.label == "PERSON"
            if known is not None and token.entity not in labels and not acts:
                return None
        if known is not None and known not in self._active:
            self._keep(known, token.sentence)
        return known

    def _find_same(self, phrase: Phrase) -> Antecedent | None:
        """Return the active unnamed entity with the same words."""
        same = phrase.text.lower()
        unnamed = (a for a in reversed(self._active) if not a.phrase.is_named)
        return next((a for a in unnamed if a.phrase.text.lower() == same), None)

    def _learn_acronym(self, bracket: Node) -> None:
        """Remember the long form before "(DZ)"."""
        nodes = self.tree.nodes
        if bracket.i + 2 >= len(nodes) or nodes[bracket.i + 2].text != ")":
            return
        short = nodes[bracket.i + 1].text
        first = find_long_form(nodes, bracket.i, short)
        if first is None:
            return
        last = bracket.i - 1
        roots = [n for n in nodes[first : bracket.i] if not first <= n.head.i <= last]
        phrase = build_phrase(self.tree, first, last, (roots or nodes[last : last + 1])[0].i)
        if phrase is not None and phrase.words <= FULL_WORDS:
            self._acronyms.setdefault(short, phrase)

    def _read_short(self, token: Node, phrase: Phrase) -> bool:
        """Resolve "the National Park" to the only name with that end; return whether it did."""
        entity = self._shortened.get(phrase.text)
        if entity is None or phrase.text in self._names or phrase.label == "WORK_OF_ART":
            return False
        if phrase.label == "PERSON" and entity.person is not False:
            return False
        if list_name_words(entity.phrase.text) == list_name_words(phrase.text):
            return False
        if not any(c.word == "the" for c in token.children if c.dep == "det"):
            return False
        self._refer(token, entity)
        return True

    def _learn_short(self, entity: Antecedent, words: list[str]) -> None:
        """Remember the short forms by which a name may be repeated."""
        words = words[1:] if words[0] in _ARTICLES else words
        if "and" in words or any(word[0].isdigit() for word in words):
            return
        head = next((i for i, word in enumerate(words) if i and word in _LINKING), len(words))
        shorts = [words[i:head] for i in range(1, head) if words[i - 1].lower() not in _TELLING]
        if head == 2 and LABEL_BY_NOUN.get(words[1].lower()) == "LOC":
            shorts.append(words[:1])  # "the Velm" of "Velm River"
        for short in [*shorts, words[:head]]:
            text = " ".join(short)
            bearer = self._shortened.get(text, entity)
            self._shortened[text] = entity if bearer is entity else None

    def _learn_name(self, ent: Antecedent) -> None:
        self._names.setdefault(ent.phrase.text, ent)
        words = ent.phrase.text.split()
        if ent.person is not True and 2 <= len(words) <= FULL_WORDS and "," not in ent.phrase.text:
            self._learn_short(ent, words)
        if ent is not self._title and self.tree[ent.phrase.root].left_edge.word == "the":
            return  # an office has no short name
        maybe = ent is self._title and ent.person is None and ent.kinds.isdisjoint(LABEL_BY_NOUN)
        maybe = maybe and all(word[0].isupper() for word in words)
        if not (ent.person or maybe) or not 2 <= len(words) <= 5:
            return
        for part in {words[0], words[-1]}:
            common = part.lower() in self._words and not find_name_gender(part.lower())
            if len(part) < 3 or not part[0].isupper() or part.isupper() or common:
                continue  # "integration" beside "Integration Deploy Jenkins"
            # A name with two bearers refers to the topic, or to neither.
            bearer = self._parts.get(part, ent)
            about = bearer if bearer is self.topic else None
            keeps = about is not None and (about is self._title or bool(about.kinds))
            self._parts[part] = bearer if bearer is ent or keeps else None

    def _read_definite(self, token: Node) -> bool:
        """Resolve "the town" to the entity of that kind; return whether it did."""
        plural = token.tag == "NNS"
        # "the falls" are a waterfall; "the bridges" are no bridge
        single = not plural or token.word in LABEL_BY_NOUN
        alike = list_alike(token.word) if single else {token.word}
        called = ((word, a) for word in sorted(alike) for a in self._of_kind.get(word, ()))
        about = {id(self._title), id(self.topic), id(self._local)}
        reach = {token.word: _MOST_BETWEEN}  # a house is hardly "the building" much later
        fitting = [
            *{
                id(a): a
                for word, a in called
                if word in a.kinds and (not a.plural or plural)
                if token.sentence - a.sentence <= reach.get(word, _NEAR) or id(a) in about
            }.values()
        ]
        fitting = [a for a in fitting if a.phrase.is_named] or fitting
        if not fitting and token.word in GENERIC_NOUNS and self._local is not None:
            # "This area", "this geographical feature": the topic.
            meant = self._local.phrase.label in GENERIC_NOUNS[token.word]
            meant = meant and any(c.word == "this" for c in token.children)
            fitting = [self._local] if meant and token.dep in SUBJECTS else []
        elif not fitting and self._author and token.word in _OF_ANY_BODY and self._is_ours(token):
            return True  # "the company" is who writes
        elif not fitting and not plural:
            # No kind is stated, but the type may fit: "Greece joined ... the country".
            fitting = [
                a
                for a in self._active
                if a.kinds.isdisjoint(LABEL_BY_NOUN)
                and (a.sentence >= token.sentence - _TOPIC_WINDOW or id(a) in about)
                and token.word not in BODIES
                and UNDERTAKINGS.isdisjoint(list_name_words(a.phrase.text))
                and (not a.person or a.phrase.label == "PERSON")
                and a.phrase.label != "PRODUCT"
                and token.word in LABEL_NOUNS.get(a.phrase.label, ())
                and (a.phrase.label != "ORG" or token.word in _OF_ANY_BODY)
                and (
                    a.sentence < token.sentence or token.dep in SUBJECTS or a.phrase.label != "ORG"
                )
            ]
            fitting = fitting if len(fitting) == 1 or self._local not in fitting else [self._local]
            # "the company" may be none of the many names of organisations
            about = {id(self._local), id(self.topic)}
            known = {id(a): a for a in self._names.values() if "ORG" in list_labels(a)}
            about |= known.keys() if len(known) == 1 else set()
            if len(fitting) != 1 or (
                fitting[0].phrase.label == "ORG" and id(fitting[0]) not in about
            ):
                return False
        best = self._choose(fitting, token)
        if best is None:
            return False
        others = (a for a, _ in self._specific.get(token.word, ()))
        several = any(token.sentence - a.sentence <= _TOPIC_WINDOW for a in others)
        if best.phrase.is_named and several and is_person_noun(token.word):
            return True  # "the tractor driver, Ann Lee, and the train driver ... the driver"
        self._refer(token, best)
        return True

    def _choose(self, fitting: list[Antecedent], token: Node) -> Antecedent | None:
        """Return the antecedent of a definite noun; None where two are possible.

        It is the topic, unless another was mentioned recently; or the subject of the last
        sentence with a candidate.
        """
        if len(fitting) < 2:
            return fitting[0] if fitting else None
        topic = next((a for a in fitting if a is self.topic or a is self._title), None)
        near = [
            a
            for a in fitting
            if a is not topic
            and token.sentence - a.sentence <= _NEAR
            and (topic is None or a.role in _MAIN_ROLES)
        ]
        if not near:
            return topic
        if len(near) == 1 and topic is None:
            return near[0]
        last = max(a.sentence for a in (*near, *([topic] if topic is not None else [])))
        latest = [a for a in fitting if a.sentence == last]
        subjects = [a for a in latest if a.role in SUBJECTS]
        return subjects[0] if len(latest) == len(subjects) == 1 else None
