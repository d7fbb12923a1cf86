"""Predicates: verbs, the frames of their clauses, and the wording of verb groups."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from kpyramid.documents.words import BE, DO, HAVE, MODALS, read_words
from kpyramid.extraction.syntax.polarity import WORDS, is_negated
from kpyramid.extraction.syntax.tree import Node, list_ancestors

# Verbs: which head a clause, which report, and how a group of them is worded.

VERBS = read_words(__file__, "verbs.toml")
"""Classes of verbs by the relation to their arguments, in the base form."""
SUBJECTS = frozenset({"nsubj", "nsubjpass"})
_FULL_MODALS = {"'ll": "will", "wo": "will", "ca": "can", "'d": "would", "sha": "shall"}
_IRREGULAR_THIRD = {"have": "has", "be": "is", "do": "does", "go": "goes"}
REPORTING = VERBS["reporting"]

AFFECTING = VERBS["affecting"]
"""Verbs whose object is made, changed, moved or handed over."""
_PARTICIPLES = dict(pair.split(":") for pair in sorted(VERBS["participles"]))
_PASTS = dict(pair.split(":") for pair in sorted(VERBS["pasts"]))
_LASTING = VERBS["lasting"]
"""Verbs whose present participle is a state that outlasts its clause."""


@dataclass(frozen=True, slots=True)
class VerbGroup:
    """A predicate's wording without negation and adverbs, and the tokens it came from."""

    text: str
    tokens: tuple[int, ...]
    modality: str | None
    passive: bool
    negated: bool = False


def inflect_third(lemma: str) -> str:
    """Return the third person singular present of a regular verb ("carry" gives "carries")."""
    if lemma in _IRREGULAR_THIRD:
        return _IRREGULAR_THIRD[lemma]
    if lemma.endswith("y") and lemma[-2:-1] not in "aeiou":
        return lemma[:-1] + "ies"
    return lemma + ("es" if lemma.endswith(("s", "x", "z", "ch", "sh", "o")) else "s")


_SHORT = re.compile(r"[^aeiou]*[aeiou][^aeiouwxy]")
"""A verb that doubles its last letter before "ed"."""


def find_participle(verb: Node) -> str:
    """The past participle of a verb in a clause."""
    if verb.tag == "VBN" or (verb.tag == "VBD" and verb.word.endswith("ed")):
        return verb.word
    lemma = verb.lemma.lower()
    if lemma in _PARTICIPLES:
        return _PARTICIPLES[lemma]
    if lemma.endswith("y") and lemma[-2:-1] not in "aeiou":
        return f"{lemma[:-1]}ied"
    if _SHORT.fullmatch(lemma):
        return f"{lemma}{lemma[-1]}ed"
    return f"{lemma}d" if lemma.endswith("e") else f"{lemma}ed"


def is_predicate(token: Node) -> bool:
    """Return whether `token` heads a clause: a verb that is neither auxiliary nor modifier."""
    if token.pos not in {"VERB", "AUX"}:
        return False
    return token.dep not in {"aux", "auxpass", "amod", "compound", "prep", "case", "det", "nmod"}


def is_stative(participle: Node) -> bool:
    """Whether a past participle is a state ("located"), not an event ("written")."""
    return participle.lemma.lower() in VERBS["stative"]


def is_copula(token: Node) -> bool:
    return token.lemma == "be" and token.dep not in {"aux", "auxpass"}


def read_modal(kids: Mapping[str, list[Node]]) -> str | None:
    """The modal verb among the auxiliaries, in its full form."""
    for node in kids.get("aux", ()):
        if node.tag == "MD":
            return _FULL_MODALS.get(node.word, node.word)
    return None


ABLE = frozenset({"can", "could", "may", "might"})


def read_means(verb: Node) -> str | None:
    """The modal of a clause whose means is a gerund: "can" in "can help by planting trees"."""
    while verb.dep == "conj" and verb.head.tag == "VBG":
        verb = verb.head
    by = verb.head
    if verb.tag != "VBG" or verb.dep != "pcomp" or by.word != "by" or by.i < by.head.i:
        return None
    main = by.head
    while main.tag in {"VBG", "VB"} and main.dep in {"pcomp", "xcomp", "prep"}:
        main = main.head.head if main.dep == "pcomp" else main.head
    modal = read_modal(group_kids(main))
    return modal if modal in ABLE else None


# Frames: the predicate, arguments and circumstances of a clause, as tokens.

OBJECTS = frozenset({"dobj", "oprd", "attr"})
RELATIVES = frozenset({"WDT", "WP", "WRB", "WP$"})
TIMES = frozenset({"DATE", "TIME"})
MAX_HOPS = 12
"""The most steps of a search up the tree, which bounds it in malformed parses."""

Kids = dict[str, list[Node]]


@dataclass(frozen=True, slots=True)
class Part:
    """An argument or circumstance of a clause.

    `role` is object, attribute, quality, receiver, clause, purpose, circumstance, time, manner,
    adverb or preposition. `root` heads it; `link` are the words that introduce it (prepositions,
    conjunctions). `gap` is its position in the clause when it is outside, as the antecedent of a
    relative clause.
    """

    role: str
    root: Node
    link: tuple[Node, ...] = ()
    gap: Node | None = None

    @property
    def place(self) -> int:
        """The token by which the parts of a clause are ordered."""
        if self.link:
            return self.link[0].i
        return self.gap.i if self.gap is not None else self.root.left_edge.i

    @property
    def limit(self) -> str:
        """The adverb that limits the part: "only" in "only on Sundays", "mainly"; else ""."""
        limits = (c for node in self.link[:1] for c in node.children if c.i < node.i)
        words = (c.word for c in limits if c.i == 0 or c.tree[c.i - 1].word != "not")
        return next((word for word in words if word in WORDS["limiting"] | WORDS["sharing"]), "")


@dataclass(slots=True, eq=False)
class Frame:
    """A clause: a proposition words it as a whole, the graph's facts are its parts.

    `way` is the position of the subjects: "own", "shared" (coordination, control, participles),
    "antecedent" (relative and participial clauses), "object_control", "existential" ("there is a
    house") or "none". `clause` is the relative or participial clause the verb belongs to.
    `chain` are the predicates above that merge with the verb, outermost first: "wants" in "wants
    to buy". `noun` stands between the two: "chance" in "has a chance to win". `lender` is the
    coordinated verb whose auxiliaries are shared.
    """

    verb: Node
    kids: Kids
    construction: str
    subjects: list[Node]
    way: str
    chain: list[Node] = field(default_factory=list)
    lender: Node | None = None
    clause: Node | None = None
    noun: Node | None = None
    parts: list[Part] = field(default_factory=list)

    @property
    def top(self) -> Node:
        """The outermost predicate."""
        return self.chain[0] if self.chain else self.verb


def group_kids(node: Node) -> Kids:
    """The children by dependency label, in text order."""
    kids: Kids = {}
    for child in node.children:
        kids.setdefault(child.dep, []).append(child)
    return kids


def list_clocks(frame: Frame) -> list[Node]:
    """The times of day in a clause: "17:00" and "15:00" in "at 17:00, on Sundays at 15:00"."""
    roots = (part.root for part in frame.parts)
    return [root for root in roots if root.entity == "TIME" and root.text[:1].isdigit()]


def is_parted(part: Part, last: int) -> bool:
    """Whether a part belongs to a later alternative, item or share than what ends at token `last`.

    "128, or 122 in three units", "the sheets and, from 2021, the tables", "ten were sold, five of
    them on Monday".
    """
    nodes = part.root.tree.nodes
    between = nodes[last + 1 : part.place]
    if any(n.text == ";" for n in between):
        return True  # "it is 0.9; with the brake 1.4"
    for n in between:
        share = n.word == "them" and nodes[n.i - 1].word == "of"
        if not (share or (n.dep == "cc" and n.word in {"and", "or"})):
            continue
        rest = [other.text for other in nodes[n.i + 1 : part.place]]
        follows = rest == [","]
        near = "," not in rest and ")" not in rest
        if share and near:
            return True
        if n.word == "or" and (follows or (near and nodes[n.i - 1].text == ",")):
            return True
        if n.word == "and" and nodes[n.i + 1].dep == "prep" and n.i + 1 < part.place:
            return True  # "to Ann within a week, and after that to Tom"
        if n.word == "and" and follows and n.head.i <= last:
            return part.role == "time"
    return False


def list_merged(frames: dict[int, Frame]) -> set[int]:
    """The verbs that are merged with the infinitive they govern."""
    return {
        verb.i
        for frame in frames.values()
        if frame.noun is None and frame.verb.dep in {"xcomp", "conj"}
        for verb in frame.chain
    }


def count_clauses_above(verb: Node, frames: dict[int, Frame]) -> int:
    """The number of clauses above the verb's, within `MAX_HOPS` steps."""
    return sum(node.i in frames for node in islice(list_ancestors(verb), MAX_HOPS))


def find_infinitive_mark(verb: Node) -> Node | None:
    """The "to" of an infinitive, which coordinated infinitives share."""
    node = verb
    for _ in range(MAX_HOPS):
        for child in node.children:
            if child.tag == "TO":
                return child
        if node.dep != "conj" or node.tag != "VB" or node.head.tag != "VB":
            return None
        node = node.head
    return None


def find_noun_clause(verb: Node) -> Node | None:
    """The relative or participial clause that the verb belongs to."""
    node = verb
    for _ in range(MAX_HOPS):
        if node.dep in {"relcl", "acl"}:
            return node
        if node.dep not in {"conj", "xcomp", "ccomp"}:
            return None
        node = node.head
    return None


# Predicates in words: with auxiliaries, negation and modals of the text.

_VERB_PARTS = ("aux", "auxpass", "neg", "prt")
AUXILIARIES = ("aux", "auxpass")
_BORROWED = ("aux", "auxpass", "neg")
_PARTICIPIAL = frozenset({"acl", "advcl", "relcl", "pcomp"})
_FULL = {"'s": "is", "'re": "are", "'ve": "have", "'m": "am", "'d": "had"}
_HAVE = frozenset({"have", "has", "having"})
_MAX_BETWEEN = 4
"""The most tokens of a phrase before a noun's infinitive: "the power of mass media to change"."""
_SINGULAR = {"are": "is", "were": "was"}


@dataclass(slots=True)
class Predicate:
    """Tokens of a predicate; `lent` are of a coordinated verb, `be` is inserted before them."""

    tokens: list[int]
    lent: list[int]
    be: str | None
    modality: str | None


def word_control(frame: Frame) -> str | None:
    """Return "hired" for the infinitive of "they hired X to coach Y": X was hired to coach."""
    head = frame.verb.head
    # Only regular participles have the form of the past tense.
    regular = head.tag == "VBN" or (head.tag == "VBD" and head.word.endswith("ed"))
    held = regular and frame.way == "object_control" and not frame.chain
    return head.word if held and find_infinitive_mark(frame.verb) is not None else None


def read_predicate(frame: Frame, frames: dict[int, Frame]) -> Predicate:
    """The predicate of a clause, merged with those above it ("wants to buy")."""
    tokens: list[int] = []
    for verb in frame.chain:
        kids = frames[verb.i].kids
        tokens += _list_words(verb, frames[verb.i])
        for quality in kids.get("acomp", ()):  # "least likely to": the grade changes what it says
            tokens += [c.i for c in quality.children if c.tag in {"RBR", "RBS"}]
            tokens.append(quality.i)
    tokens += _list_words(frame.verb, frame)
    if frame.noun is not None:
        tokens += _list_between(frame.noun, frame.verb)
    if frame.chain and frame.verb.dep == "conj":
        mark = find_infinitive_mark(frame.verb)
        tokens += [mark.i] if mark is not None and mark.i not in tokens else []
        shared = (c for c in frame.verb.head.children if c.dep == "auxpass" or c.tag == "TO")
        tokens += [c.i for c in shared if frame.verb.tag == "VBN" and c.i not in tokens]
    tokens.sort()
    top = frames[frame.top.i]
    lent: list[int] = []
    modality = read_modal(top.kids)
    if modality is None and any(node.tag == "TO" for node in top.kids.get("aux", ())):
        modality = "to"  # an infinitive does not say that it is so
    if frame.lender is not None:
        kids = frames[frame.lender.i].kids
        lent = sorted(node.i for dep in _BORROWED for node in kids.get(dep, ()))
        modality = modality or read_modal(kids)
    be = None
    if not lent and _lacks_auxiliary(top):
        verb = top.verb
        past = is_past_clause(verb, frames) if verb.tag == "VBG" else _is_event(verb, frames)
        be = _inflect_be(frame.subjects[0], past)
    return Predicate(tokens, lent, be, modality)


def _list_between(noun: Node, verb: Node) -> Iterator[int]:
    """The tokens of the noun before an infinitive, and of a short phrase between them."""
    yield from range(noun.left_edge.i, noun.i + 1)
    for prep in noun.children:
        short = prep.right_edge.i - prep.i < _MAX_BETWEEN
        if prep.dep == "prep" and prep.right_edge.i < verb.i and short:
            yield from range(prep.i, prep.right_edge.i + 1)


def _list_words(verb: Node, frame: Frame) -> list[int]:
    """The verb with its auxiliaries, particles and the adverbs among them."""
    tokens = [verb.i, *(node.i for dep in _VERB_PARTS for node in frame.kids.get(dep, ()))]
    adverbs = frame.kids.get("advmod")
    if adverbs:
        start = max((node.i for node in _list_before(frame)), default=verb.left_edge.i - 1)
        tokens += [
            node.i
            for node in adverbs
            if start < node.i < verb.i and not node.children and node.tag != "WRB"
        ]
    return tokens


def _list_before(frame: Frame) -> list[Node]:
    deps = ("nsubj", "nsubjpass", "expl", "csubj", "punct")
    nodes = (node for dep in deps for node in frame.kids.get(dep, ()))
    return [node for node in nodes if node.i < frame.verb.i]


def _lacks_auxiliary(frame: Frame) -> bool:
    """Whether a participle lacks the form of "be" that a clause would have."""
    if any(dep in frame.kids for dep in AUXILIARIES):
        return False
    verb = frame.verb
    return verb.dep in _PARTICIPIAL if verb.tag == "VBG" else _is_bare_participle(frame)


def _is_bare_participle(frame: Frame) -> bool:
    """Whether the verb is a passive participle by itself: "boats built in Oslo".

    With an active subject, or coordinated with an active verb, it is a mistagged past tense; a past
    tense with an agent and without an object is a mistagged participle.
    """
    verb, kids = frame.verb, frame.kids
    if "nsubj" in kids:
        # "... and the mill located in Kent": without an object these certainly lack their "is".
        bare = verb.tag in {"VBN", "VBD"} and not kids.keys() & {"aux", "dobj", "ccomp"}
        lemma = verb.lemma.lower()
        acts = verb.tag == "VBN" and lemma in VERBS["acting"]
        return bare and (acts or lemma in VERBS["taking_objects"])
    by = "agent" in kids and "dobj" not in kids
    if verb.tag != "VBN" and not (by and verb.tag == "VBD"):
        return False
    if verb.dep == "conj":
        # "is a school and classified as" shares the "is" of the copula.
        shared = verb.head.lemma == "be" and "dobj" not in kids
        return verb.head.tag == "VBN" or by or shared
    return verb.dep in _PARTICIPIAL


def _inflect_be(subject: Node, past: bool) -> str:
    plural = subject.tag in {"NNS", "NNPS"} or any(c.dep == "conj" for c in subject.children)
    return _word_be(past, plural)


def _word_be(past: bool, plural: bool) -> str:
    if plural:
        return "were" if past else "are"
    return "was" if past else "is"


def is_past_clause(verb: Node, frames: dict[int, Frame]) -> bool:
    """Whether the nearest finite verb, here or above, is in the past tense."""
    for ancestor in islice(chain((verb,), list_ancestors(verb)), MAX_HOPS):
        frame = frames.get(ancestor.i)
        if frame is not None:
            for dep in AUXILIARIES:
                for node in frame.kids.get(dep, ()):
                    if node.tag in {"VBD", "VBZ", "VBP", "MD"}:
                        return node.tag == "VBD"
            if ancestor.tag in {"VBD", "VBZ", "VBP"}:
                return ancestor.tag == "VBD"
    return False


def word_group(frame: Frame, frames: dict[int, Frame], plural: bool = False) -> VerbGroup:
    """The verb group in a fact's wording: without negation, finite where possible.

    It retains only adverbs that make it former or exclusive: "formerly owned", "may only".

    A copula is singular, like the kinds after it; another verb agrees with its subject, which may
    be `plural`.
    """
    verb, kids = frame.verb, frame.kids
    aux = [node for dep in AUXILIARIES for node in kids.get(dep, ())]
    lender = frames[frame.lender.i] if frame.lender is not None and not frame.chain else None
    if lender is not None:
        aux = [node for dep in AUXILIARIES for node in lender.kids.get(dep, ())]
    aux.sort(key=lambda node: node.i)
    modality = read_modal(kids) or (read_modal(lender.kids) if lender is not None else None)
    means = None if modality or aux else read_means(verb)
    did = any(node.word == "did" for node in aux)
    helped = bool(aux)
    aux = [node for node in aux if node.tag not in {"MD", "TO"} and node.lemma != "do"]
    particles = kids.get("prt", [])
    passive = "auxpass" in kids or "nsubjpass" in kids
    if verb.tag == "VBN":
        passive = passive or (lender is not None and "auxpass" in lender.kids)
        passive = passive or (not aux and verb.dep in {"acl", "advcl", "relcl"})
    if means is not None:
        modality, words = means, [means, verb.lemma.lower()]
    elif modality is not None:
        words = [modality, *map(_spell, aux), verb.word]
    elif aux:
        words = [*map(_spell, aux), verb.word]
    else:
        words = [_word_bare_verb(frame, frames, helped, did, plural)]
    if words[0] in {"be", "been", "being", "am"}:
        past = words[0] in {"be", "being"} and follows_past(verb, frames)
        words[0] = _word_be(past, plural)
    if words[0] in _SINGULAR and (len(words) == 1 or not plural):
        words[0] = _SINGULAR[words[0]]
    elif aux and words[0] in _HAVE and not (verb.lemma == "be" and aux[0].tag == "VBP"):
        words[0] = "have" if plural else "has"
    words = " ".join(words).split()
    if adverb := _find_past(frame, aux) or _find_limit(frame):
        copula = is_copula(verb)
        words.insert(len(words) + copula > 1 and words[0] in BE | HAVE | DO | MODALS, adverb)
    scoped = _find_scoped(frame)
    if scoped is not None:
        words.insert(len(words) - (scoped.i < verb.i), scoped.word)
    text = " ".join([*words, *(node.word for node in particles)])
    tokens = {verb.i, *(node.i for node in particles)} | ({scoped.i} if scoped else set())
    if lender is None or not aux:
        tokens.update(node.i for node in aux)
    return VerbGroup(text, tuple(sorted(tokens)), modality, passive)


def _find_past(frame: Frame, auxiliaries: Sequence[Node]) -> str | None:
    """The adverb before a verb that makes it former: "formerly owned".

    A copula expresses it by its tense, and in the perfect such an adverb only orders events.
    """
    if is_copula(frame.verb) or any(node.lemma == "have" for node in auxiliaries):
        return None
    words = (frame.verb.tree[index].word for index in _list_words(frame.verb, frame))
    return next((word for word in words if word in WORDS["past"]), None)


def _find_limit(frame: Frame) -> str | None:
    """The "only" of a clause, or "alone" if it limits the subject: "only the board may sign"."""
    verb = frame.top
    if is_negated(verb) or (is_copula(verb) and "attr" in frame.kids):
        return None
    subject = frame.subjects[0] if frame.way == "own" else None
    single = len(frame.subjects) == 1 and all(c.dep != "conj" for c in frame.subjects[0].children)
    inner: Sequence[Node] = frame.kids.get("acomp", ())
    for node in (*frame.subjects, verb, *inner):
        for child in node.children:
            if child.dep == "advmod" and child.word in WORDS["limiting"]:
                leads = subject is not None and child.i == subject.left_edge.i - (node is verb)
                if leads:  # of two subjects neither does it alone
                    return "alone" if single else None
                return child.word
    return None


def _find_scoped(frame: Frame) -> Node | None:
    """The adverb that a negation applies to: "is not fully explained by", "did not differ much"."""
    verb, denial = frame.verb, frame.kids.get("neg")
    nodes = verb.tree.nodes[denial[0].i + 1 : verb.i + 3] if denial else ()
    barred = WORDS["adding"] | WORDS["past"] | WORDS["of_sentence"]
    word = next((n for n in nodes if n.tag == "RB" and n.dep == "advmod" and n.head is verb), None)
    if word is None or word.children or verb.tree[word.i - 1].text == ",":
        return None
    return None if word.word in barred else word


def follows_past(verb: Node, frames: dict[int, Frame]) -> bool:
    """Whether a non-finite verb takes its main clause's past tense: "..., retiring in 2002".

    A state is in the present beside any tense: "rebuilt in 1730, overlooking the river".
    """
    top = verb
    while top.dep == "conj" and top.head.tag in {top.tag, "IN"} and top.head is not top:
        top = top.head if top.head.tag == top.tag else top.head.head  # "as an engineer and writing"
    beside = top.dep in {"advcl", "pcomp"} or (top.dep == "conj" and top.head.tag == "VBD")
    tied = top.dep in {"acl", "relcl"} or (top.dep == "xcomp" and top.head.lemma == "become")
    aimed = tied and find_infinitive_mark(top) is not None  # "was the first to reach"
    return (beside or aimed) and verb.lemma.lower() not in _LASTING and is_past_clause(verb, frames)


def _is_event(participle: Node, frames: dict[int, Frame]) -> bool:
    """Whether a participle by itself is of the past: "written by", not "often used in"."""
    clause = participle.head.head
    if any(c.dep == "expl" for c in clause.children):  # "there is no form required for it"
        return is_past_clause(clause, frames)
    recurs = participle.dep == "conj" and is_copula(participle.head)  # "is optional, but advised"
    recurs = recurs and any(c.dep == "acomp" for c in participle.head.children)
    dated = any(g.entity == "DATE" for c in participle.children for g in c.children)
    if not dated and (recurs or any(c.word in WORDS["frequent"] for c in participle.children)):
        return is_past_clause(participle, frames)
    return not is_stative(participle)


def _word_bare_verb(
    frame: Frame, frames: dict[int, Frame], has_aux: bool, did: bool, plural: bool
) -> str:
    verb = frame.verb
    lemma = verb.lemma.lower()
    if did:
        return f"did {lemma}"
    if _is_bare_participle(frame):
        return f"{_word_be(_is_event(verb, frames), plural)} {verb.word}"
    if (verb.tag == "VB" or (verb.tag == "VBG" and not has_aux)) and follows_past(verb, frames):
        return _PASTS.get(lemma) or find_participle(verb)
    if verb.tag in {"VBG", "VB", "VBP"} or has_aux or (plural and verb.tag == "VBZ"):
        return lemma if plural and lemma != "be" else inflect_third(lemma)
    return _spell(verb)


def _spell(node: Node) -> str:
    """The word of a contracted auxiliary: "had" for "'d"."""
    word = node.word.replace("\u2019", "'")
    return _FULL.get(word, word)
