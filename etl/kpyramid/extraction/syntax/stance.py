"""Stance: whether a text states, denies, supposes or reports a clause.

All rules that read a fact from a clause or noun phrase determine its stance here.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kpyramid.documents.blocks import Block
from kpyramid.documents.values import MONTH, WEEKDAY
from kpyramid.extraction.syntax.kinds import find_kind_label
from kpyramid.extraction.syntax.polarity import (
    WORDS,
    is_denied,
    is_negated,
    is_partly_denied,
    is_scant,
)
from kpyramid.extraction.syntax.predicates import (
    MAX_HOPS,
    REPORTING,
    SUBJECTS,
    Frame,
    find_infinitive_mark,
    group_kids,
    is_copula,
    read_modal,
    word_control,
)
from kpyramid.extraction.syntax.tree import Node, Tree

_VERBAL = frozenset({"VERB", "AUX"})
_OPENING = WORDS["conditional"] | WORDS["open"]
_WEAKENING = WORDS["hedging"] | WORDS["rare"]
_DOUBTED = WORDS["opinions"] | WORDS["hearsay"]
_SPEAKING = REPORTING | WORDS["speaking"] | WORDS["calling"]
_HEARSAY = WORDS["reputed"] - {"believe"}
"""Without "is believed to", by which texts state the best knowledge."""
_POINTING = frozenset("that this such these those which".split())
MAX_CIRCUMSTANCE = 14
"""The most tokens of a clause as a qualifier: "because it lost money"."""
REPORTED = "reported"
"""The mood of hearsay: "I heard that", "we were told that"."""
_UNPROVEN = "unproven"
"""The mood of a clause that something fails to show."""


@dataclass(frozen=True, slots=True)
class Stance:
    """`mood` is the word that makes it no statement ("if", "?", "allegedly"), None in a statement.

    `source` is the head noun of the speaker; None when the text itself states it.
    """

    negated: bool = False
    mood: str | None = None
    source: Node | None = None


_STATED = Stance()


def read_stance(frame: Frame, frames: Mapping[int, Frame]) -> Stance:
    """The stance of a clause, from its own words and the clauses above it."""
    top = frame.verb
    source = None
    verbs = (frame.verb, *frame.chain)
    ids = {verb.i for verb in verbs}
    # "the mills, but none of the barns, were sold": of the first subject
    subject = next(iter(frame.subjects), None)
    denied = is_denied(subject) and not is_partly_denied(subject)
    negated = denied or is_denied(frame.noun) or _borrows_denial(frame, frames)
    within = bool(frame.chain) or word_control(frame) is not None  # the wording keeps its "not"
    negated = negated or any(
        (is_negated(verb) and not (within and has_inner_denial(verb))) or _exceeds(verb, ids)
        for verb in verbs
    )
    mood = next(filter(None, (_read_mood(verb, True) for verb in verbs)), None)
    for verb in frame.chain:  # "is said to own", "pretended to own"
        passive = any(c.dep == "auxpass" for c in verb.children)
        source = verb if passive and verb.lemma.lower() in _HEARSAY else source
        mood = mood or (verb.word if verb.lemma.lower() in WORDS["feigning"] else None)
    for _ in range(MAX_HOPS):
        mood = mood or (None if top.i in ids else _read_mood(top, False))
        source = source or _find_named_source(top, frames)
        if top.i not in ids and top.lemma.lower() in WORDS["reputed"]:
            source = source or top  # "was purported to be a skull that changed everything"
        beside = top.dep in {"acl", "advcl"} or top.head.pos == "ADJ"  # "will be able to earn"
        if top is frame.verb and frame.chain and beside:
            top = frame.chain[-1]
            continue
        if top.dep in {"conj", "xcomp"} and top.head.pos in _VERBAL:
            top = top.head
            continue
        if top.dep == "pcomp":
            word = top.head.word
            denies = word in WORDS["excluding"]
            negated = negated or denies
            if not denies and word not in WORDS["asserting"]:
                mood = mood or word
            break
        content = top.dep in {"ccomp", "csubj"} or _is_content(top)
        if content and source is None and not _is_paratactic(top):
            above = _judge_content(top.head, frames, top)
            negated, source = negated or above.negated, above.source
            mood = mood or above.mood
        if top.dep in {"acl", "relcl"} and top.head.dep == "attr" and top.head.head.lemma == "be":
            top = top.head.head  # "they say that it is a place that existed"
        elif top.dep == "ccomp" and top.head is not top and source is None:
            top = top.head
            mood = mood or ("to" if _is_aimed(top) else None)
        else:
            break
    return Stance(negated, mood, source)


def has_inner_denial(verb: Node) -> bool:
    """Whether "not" denies an infinitive without its governing verb: "was asked not to sell".

    "Seems not to own" does deny it: it means that it does not seem so.
    """
    denied = any(c.dep == "neg" for c in verb.children) and find_infinitive_mark(verb) is not None
    return denied and verb.head is not verb and verb.head.lemma.lower() not in WORDS["raising"]


def _borrows_denial(frame: Frame, frames: Mapping[int, Frame]) -> bool:
    """Whether a coordinated verb shares the denial with its auxiliaries: "is not known or used"."""
    frame = frames.get(frame.top.i, frame)  # "cannot borrow money and use it to make loans"
    verb, lender = frame.verb, frame.lender
    turned = any(c.word == "but" for c in verb.head.children if c.i < verb.i)
    return lender is not None and is_negated(lender) and not turned


def read_aside(noun: Node) -> Stance:
    """The stance of a noun beside a name: "X, not the owner of Y", "X, allegedly its founder"."""
    hedge = next((c.word for c in noun.children if c.word in WORDS["hedging"]), None)
    return Stance(is_denied(noun) or is_negated(noun), hedge)


def is_past(noun: Node) -> bool:
    """Whether an adverb makes a kind former: "X, formerly director of Y"."""
    return any(c.word in WORDS["past"] and c.dep == "advmod" for c in noun.children)


def _exceeds(verb: Node, indices: set[int]) -> bool:
    """Whether a quality excludes the infinitive: "too weak to govern"."""
    return any(
        child.dep == "acomp"
        and any(c.word == "too" for c in child.children)
        and any(c.dep == "xcomp" and c.i in indices for c in child.children)
        for child in verb.children
    )


def _is_aimed(verb: Node) -> bool:
    """Whether an infinitive is an aim, so that its complement need not be true.

    It is in "rules to show that" and "it takes effort to verify that", not in "was able to show".
    """
    aims = verb.dep in {"acl", "advcl"} or verb.lemma.lower() in WORDS["verifying"]
    return aims and find_infinitive_mark(verb) is not None


def _read_mood(verb: Node, is_direct: bool) -> str | None:
    if _is_mandative(verb):
        return "must"
    embedded = verb.dep == "pcomp" or (verb.dep == "ccomp" and not is_copula(verb.head))
    for child in verb.children:
        if child.dep in {"mark", "advmod"} and child.word in _OPENING:
            return child.word
        if not is_direct:
            continue
        if child.dep == "advmod" and child.word in _WEAKENING:
            return child.word
        if embedded and child.word in WORDS["asking"]:
            return child.word
    first, end = verb.tree.sentences[verb.sentence]
    if is_direct and any(node.text == "?" for node in verb.tree.nodes[max(first, end - 3) : end]):
        return "?"
    perfect = read_modal(group_kids(verb)) == "would" and any(
        c.dep == "aux" and c.word == "have" for c in verb.children
    )
    return "if" if (is_direct and perfect) or _is_inverted(verb, first) else None


def _is_mandative(verb: Node) -> bool:
    """Whether a clause with "that" has a bare "be": "resolved that the fund be closed"."""
    finite = next((c for c in verb.children if c.dep == "auxpass"), verb)
    helped = any(c.dep == "aux" for c in verb.children)
    marked = any(c.dep == "mark" and c.word == "that" for c in verb.children)
    return finite.word == "be" and marked and not helped


def _is_inverted(verb: Node, first: int) -> bool:
    """Whether an auxiliary opens the clause before its subject: "had he won, ...".

    It also opens a question without its mark: "now it is sold, does this mean that he left".
    """
    subject = next((c.i for c in verb.children if c.dep in SUBJECTS), None)
    if subject is None:
        return False
    opening = [verb.i] if is_copula(verb) and verb.word == "were" else []
    helpers = [c for c in verb.children if c.dep in {"aux", "auxpass"}]
    opening += [c.i for c in helpers if c.word in WORDS["inverted"]]
    embedded = verb.dep in {"advcl", "ccomp"}
    asking = (c.i for c in helpers if c.lemma == "do" and c.i < subject)
    nodes = verb.tree.nodes
    asks = any(
        i == first or (nodes[i - 1].text in _PAUSES and nodes[i - 2].word not in {"too", "however"})
        for i in asking
    )
    return asks or any(i < subject and (embedded or i == first) for i in opening)


# The governor of a that-clause, and the stance that it gives the clause.


def _judge_content(head: Node, frames: Mapping[int, Frame], clause: Node) -> Stance:
    """The stance of a clause by the word that governs it.

    "It is a myth that" denies it, "cannot be denied that" asserts it, "no evidence that" and "did
    not show that" leave it open, "Anna said that" attributes it to Anna; "it is vital that all
    vote" is a wish, where the verb is or could be a subjunctive.
    """
    word = head
    if head.lemma == "be":
        named = [c for dep in ("acomp", "attr") for c in head.children if c.dep == dep]
        subjects = [c for c in head.children if c.dep in SUBJECTS and c.pos == "NOUN"]
        if not named and not (subjects and subjects[0].lemma.lower() in WORDS["opinions"]):
            named = [c for c in subjects if c.lemma.lower() in WORDS["false"]]
        word = (named or subjects or [head])[0]
    lemma = word.lemma.lower()
    if lemma in WORDS["demanding"] and word is not head and _read_finite(clause).tag in _BASE:
        return Stance(mood=word.word)
    if lemma in WORDS["false"]:
        return Stance(negated=not _is_void(head, frames))
    if lemma in WORDS["denying"] and _is_void(head, frames):
        return _STATED
    if lemma in WORDS["true"] and word is not head:
        return Stance(mood=_UNPROVEN if _is_void(head, frames) else None)
    passive = any(c.dep == "auxpass" for c in head.children)
    if lemma == "hear" or (lemma in WORDS["informing"] and passive):
        return Stance(mood=REPORTED if not _is_void(word, frames) else _UNPROVEN)
    holds = WORDS["factive_nouns"] if word.pos == "NOUN" else WORDS["factive"]
    if lemma in holds and lemma not in WORDS["presupposing"]:
        void = _lacks(word, frames) if word.pos == "NOUN" else _is_void(word, frames)
        modal = read_modal(group_kids(head))
        bound = modal in WORDS["weak"] or (modal is not None and lemma == "ensure")
        order = head.tag == "VB" and head.dep == "ROOT" and lemma in WORDS["verifying"]
        order = order and all(c.dep not in {*SUBJECTS, "aux"} for c in head.children)
        mood = _UNPROVEN if void or order else modal if bound else None
        believer = _find_believer(head, frames)
        return Stance(mood=mood, source=believer if believer is not head else None)
    if head.lemma == "be" and word.pos == "NOUN":
        return Stance(source=word if lemma in _DOUBTED else None)
    return Stance(source=_find_believer(word if word.pos in {"NOUN", "ADJ"} else head, frames))


def _is_void(verb: Node, frames: Mapping[int, Frame]) -> bool:
    """Whether a verb or noun is denied directly, by its subject, or by a verb merged with it."""
    verb = verb.head if verb.dep in {"acomp", "attr"} else verb
    frame = frames.get(verb.i)
    verbs = (verb, *frame.chain) if frame is not None else (verb,)
    subjects = frame.subjects if frame is not None else ()
    counts = [is_negated(v) or v.lemma.lower() in WORDS["failing"] for v in verbs]
    counts += [is_scant(subject) for subject in subjects]
    counts += [is_denied(child) for child in verb.children if child.dep == "attr"]
    return sum(counts) == 1


def _lacks(noun: Node, frames: Mapping[int, Frame]) -> bool:
    """Whether the thing of the noun is missing: "no evidence", "the lack of evidence"."""
    if is_scant(noun):
        return True
    above = noun.head
    if noun.dep == "pobj":
        return above.word in WORDS["excluding"] or above.head.lemma.lower() in WORDS["lacking"]
    return above.pos in _VERBAL and _is_void(above, frames)


def _is_content(verb: Node) -> bool:
    """Whether a clause is the content of a noun, "the claim that ...", not a relative clause.

    A "that" labelled as an object beside another object is also a conjunction.
    """
    if verb.dep not in {"acl", "relcl"} or verb.head.pos != "NOUN":
        return False
    that = [c for c in verb.children if c.word == "that"]
    objects = [c for c in verb.children if c.dep == "dobj"]
    return any(c.dep == "mark" or (c.dep == "dobj" and len(objects) > 1) for c in that)


def _is_paratactic(verb: Node) -> bool:
    """Whether a main clause is attached to the next by the parser: "Rome fell; Oslo stood"."""
    return verb.dep == "ccomp" and verb.i < verb.head.i and verb.head.lemma.lower() not in REPORTING


def _find_named_source(verb: Node, frames: Mapping[int, Frame]) -> Node | None:
    """The X of "according to X"."""
    frame = frames.get(verb.i)
    led = (part for part in (frame.parts if frame is not None else ()) if part.link)
    return next((part.root for part in led if part.link[0].word == "according"), None)


def _find_believer(head: Node, frames: Mapping[int, Frame]) -> Node | None:
    """The source of a clause that depends on `head`, else the word itself; None if factual."""
    lemma = head.lemma.lower()
    if head.pos == "NOUN":
        there = any(c.dep == "expl" for c in head.head.children)  # "there is a chance that"
        shown = head.dep == "attr" and lemma not in _DOUBTED and not there
        return None if shown or lemma in WORDS["factive_nouns"] else head
    if head.pos == "ADJ":
        return head if lemma in WORDS["unsure"] else None
    if head.lemma == "be" or head.pos not in _VERBAL:
        return None
    frame = frames.get(head.i)
    subjects = [s for s in (frame.subjects if frame is not None else ()) if s.dep != "expl"]
    if subjects and subjects[0].lemma.lower() in WORDS["hearsay"]:
        return subjects[0]
    if lemma in WORDS["factive"]:
        return None
    return subjects[0] if subjects and subjects[0].word != "it" else head


# Conditions of clauses.

_PRESENT = frozenset({"VBZ", "VBP", "MD"})
_BASE = frozenset({"VB", "VBP"})


def find_condition(frame: Frame, besides: Node | None = None) -> str | None:
    """The word of a clause's condition: "if", "unless", a general "when"; None without one.

    A condition before coordinated clauses applies to all. `besides`: a condition that the subject
    already includes.
    """
    top = frame.top
    while (
        top.dep == "conj" and top.head.dep in {"advcl", "conj"} and top.head.pos in {"VERB", "AUX"}
    ):
        top = top.head
    if top.dep == "advcl":  # the condition itself
        words = [c.word for c in top.children if c.dep == "mark"]
        if words == ["as"] and top.head.word == "long" and is_general(top):
            return "provided"  # "as long as nobody drills it"
        cue = "so" if words == ["so", "that"] else _read_condition(top, is_general(top))
        pending = next((c.word for c in top.children if c.word in WORDS["pending"]), None)
        later = pending != "where" and not _resumes(frame)
        if is_general(top) and (later or top.i < top.head.i):
            cue = cue or pending
        if cue is not None:
            return cue
    top = frame.top
    for _ in range(MAX_HOPS):
        for clause in top.children:
            opens = all(clause.i < c.i for c in top.children if c.dep in SUBJECTS)
            if clause.word == "otherwise" and clause.i < top.i and opens and is_general(top):
                return "otherwise"
            if clause is besides or (top is not frame.top and clause.i > top.i):
                continue
            word = read_preposed(clause, top) if clause.i < top.i else None
            word = word or _read_proviso(clause)
            if clause.word == "long" and any(c.dep == "advcl" for c in clause.children):
                word = word or ("provided" if is_general(top) else None)
            # An if-clause is no subject, although the parser may label it as one.
            adverbial = clause.dep == "advcl" or (clause.dep in SUBJECTS and clause.pos in _VERBAL)
            if adverbial and not any(c.word == "even" for c in clause.children):
                # "even if": the clause is true without the condition
                general = is_general(frame.top) and is_general(clause)
                word = word or _read_condition(clause, general)
            if word is not None:
                return word
        if top.dep != "conj" or top.head.pos not in {"VERB", "AUX"}:
            break
        top = top.head
    return None


def _resumes(frame: Frame) -> bool:
    """Whether a pronoun repeats the subject: "the river flows south until it joins the Orm"."""
    return any(subject.tag == "PRP" for subject in frame.subjects)


def read_preposed(part: Node, verb: Node) -> str | None:
    """The word that makes a part before a clause its condition.

    "Under certain conditions"; "without them" before "would"; before a modal "to stay on the track"
    and "by volunteering", where they are no qualifiers because they are long or have a pronoun.
    """
    inner = [c for c in part.children if c.dep in {"pobj", "pcomp"}]
    if part.word == "under" and any(c.lemma in WORDS["condition_nouns"] for c in inner):
        return "under"
    cases = (c for noun in inner if noun.lemma == "case" for c in noun.children)
    if part.word == "in" and any(c.word in _POINTING for c in cases):
        return "in"  # "in that case, the company should issue shares"
    helpers = {c.word for c in verb.children if c.dep == "aux"}
    if part.word == "without" and "would" in helpers:
        return "without"
    nodes = part.tree.nodes[part.left_edge.i : part.right_edge.i + 1]
    open_ended = len(nodes) > MAX_CIRCUMSTANCE or any(n.pos == "PRON" for n in nodes)
    if part.word == "by" and any(c.word.endswith("ing") for c in inner):
        return "by" if open_ended and helpers & WORDS["enabling"] else None
    ordered = part.word == "in" and any(c.word == "order" for c in inner)
    aimed = part.dep == "advcl" and find_infinitive_mark(part) is not None
    aim = ordered or (aimed and open_ended)
    return "to" if aim and (helpers & WORDS["needing"] or verb.lemma in WORDS["needing"]) else None


def _read_proviso(prep: Node) -> str | None:
    """The noun of "on condition that", "in the event that"."""
    nouns = (c for c in prep.children if c.dep == "pobj" and c.lemma in WORDS["condition_nouns"])
    return next((n.word for n in nouns if any(_is_content(c) for c in n.children)), None)


def _read_condition(clause: Node, is_general: bool) -> str | None:
    """The word that makes an adverbial clause a condition of its main clause."""
    for mark in clause.children:
        if mark.dep == "mark" and mark.word in WORDS["conditional"]:
            return mark.word
        if mark.word in WORDS["times"] and (is_general or clause.tag in {"VBN", "VBG"}):
            return mark.word
        if mark.dep in {"mark", "advmod"} and mark.i > 1 and mark.word == "as":
            words = [node.word for node in clause.tree.nodes[mark.i - 2 : mark.i]]
            if words[1] == "long":
                return "as"
    if clause.word in WORDS["supposing"]:
        return clause.word
    return "if" if _is_inverted(clause, -1) else None


def is_general(verb: Node) -> bool:
    """Whether the clause is in the present or modal, so that "when" names no single time."""
    return _read_finite(verb).tag in _PRESENT


def _read_finite(verb: Node) -> Node:
    """The word of the verb group that carries tense and mood."""
    return next((c for c in verb.children if c.dep in {"aux", "auxpass"}), verb)


def find_wish(frame: Frame) -> str | None:
    """The "to" of an infinitive that need not happen: "encourages people to take part".

    The relation "was hired to coach" includes the governing verb, so it has none.
    """
    verb = frame.verb
    held = bool(frame.chain) or frame.way == "object_control"
    if held or verb.tag != "VB" or find_infinitive_mark(verb) is None:
        return None
    return "to" if verb.dep == "conj" and verb.head.dep != "relcl" else None


def find_modal_above(frame: Frame, frames: dict[int, Frame]) -> str | None:
    """The modal of the clause that names the subject's kind: "X might be a cause underlying Y"."""
    if frame.way != "antecedent" or frame.clause is None or frame.clause.head.dep != "attr":
        return None
    above = frames.get(frame.clause.head.head.i)
    return read_modal(above.kids) if above is not None else None


# Reported text: direct speech, and the contents of works of fiction.

_CLOSING = {"\u201c": "\u201d", "\u201e": "\u201c\u201d", "\u00ab": "\u00bb", "\u2018": "\u2019"}
_CLOSING |= {'"': '"', "``": "''"}
_STOPS = frozenset(".!?;") | _CLOSING.keys()
_PAUSES = frozenset({",", ".", "!", "?", "\u2026", "..."})
_SPEAKERS = frozenset("NN NNS NNP NNPS PRP".split())
_NEAR = 8
"""The most tokens between a quotation and its verb of saying."""
_NUMERAL = re.compile(r"[IVX]+|\d{1,2}")
_HEADING = re.compile(r"^[#=* \t]*([^\W\d_][^\n.!?;,]{0,60}?)[=*: \t]*$", re.MULTILINE)


def find_reported(
    tree: Tree, frames: Mapping[int, Frame], blocks: Sequence[Block] = ()
) -> dict[int, Stance]:
    """The stance of the tokens in quotations, plots, stories and supposed cases, by index.

    `blocks`: of the text; without headings among them, short lines count as headings.
    """
    reported: dict[int, Stance] = {}
    if _is_tale(tree):
        reported = dict.fromkeys(range(len(tree)), Stance(mood="told"))
    for first, end in _list_plots(tree, blocks):
        reported |= dict.fromkeys(range(first, end), Stance(mood="told"))
    for first, end in _list_supposed(tree):
        reported |= dict.fromkeys(range(first, end), Stance(mood="if"))
    for first, end, work in _list_narrated(tree, frames):
        reported |= dict.fromkeys(range(first, end), Stance(source=work))
    demand = case = opener = None  # the mood of items: under "Conditions", after "We reject it if:"
    for block in blocks:
        first, end = (
            bisect_left(tree.nodes, place, key=lambda node: node.idx)
            for place in (block.start, block.end)
        )
        if block.kind == "heading":
            title = tree.text[block.start : block.end].strip(" \n.:0123456789").casefold()
            demand = case = "must" if title in WORDS["demands"] else None
        elif block.kind != "item":
            case = "if" if _OPENS_CASES.search(tree.text, block.start, block.end) else demand
            opener = None
        else:
            opener = opener if opener is not None and block.level > opener else None
            if case or opener is not None:
                reported |= dict.fromkeys(range(first, end), Stance(mood=case or "if"))
            elif _OPENS_CASES.search(tree.text, block.start, block.end):
                opener = block.level  # of the items below it
        several = first < end and tree[first].sentence != tree[end - 1].sentence
        if block.kind == "quotation" and several:
            reported |= dict.fromkeys(range(first, end), Stance(mood="told"))
    speaker, before = None, 0
    for first, end in _list_quotations(tree):
        nearest = _find_speaker(first, end, tree)
        speaker = nearest or (None if _parts_paragraphs(tree, before, first) else speaker)
        several = tree[first].sentence != tree[end - 1].sentence
        if (speaker is not None or several) and _is_speech(first, end, tree):
            stance = Stance(source=speaker) if speaker is not None else Stance(mood="told")
            reported |= dict.fromkeys(range(first, end), stance)
        before = end
    return reported


_OPENS_CASES = re.compile(r"\b(?:if|unless|when|whenever|where)\s*[:,–-]?\s*$")
"""The end of the text before a list of cases."""


def _list_supposed(tree: Tree) -> Iterator[tuple[int, int]]:
    """First token and token after the last of each supposed case: "Suppose a firm borrows 10".

    A case continues to the end of the paragraph, for at most `_MOST_SUPPOSED` sentences.
    """
    for node in tree.nodes:
        if node.lemma.lower() in WORDS["imagining"] and _is_call(node):
            last = node.sentence + 1
            while last < len(tree.sentences) and last - node.sentence < _MOST_SUPPOSED:
                start = tree.sentences[last][0]
                if _parts_paragraphs(tree, start - 1, start):
                    break
                last += 1
            yield tree.sentences[node.sentence][0], tree.sentences[last - 1][1]


def _is_call(verb: Node) -> bool:
    """Whether a verb is an appeal to the reader: "imagine a firm", "let's say it fell"."""
    top = verb.head
    if top.lemma.lower() == "let" and top.head is top:
        shared = any(c.word in {"us", "'s", "\u2019s"} for n in (top, verb) for c in n.children)
        return shared and top.tag in _BASE and not any(c.dep in SUBJECTS for c in top.children)
    free = verb.tag in _BASE and not any(c.dep in SUBJECTS for c in verb.children)
    first = all(n.pos in {"PUNCT", "ADV", "CCONJ", "INTJ"} for n in _list_before(verb))
    held = {"ccomp"} if verb.word == "say" else {"ccomp", "dobj"}
    holds = any(c.dep in held and c.i > verb.i for c in verb.children)
    return free and top is verb and first and holds


def _list_before(node: Node) -> Sequence[Node]:
    """The tokens of a sentence before one of them."""
    return node.tree.nodes[node.tree.sentences[node.sentence][0] : node.i]


_MOST_SUPPOSED = 6
"""The most sentences of a supposed case."""


def _is_tale(tree: Tree) -> bool:
    """Whether a text is fiction: in the past tense, with dialogue and without dates.

    Reports and histories date their quotations, name the speakers in full, and mention firms.
    Of 18 invented news texts with lively quotations none is classified so, of 12 short tales 7.
    """
    quotations = [*_list_quotations(tree)]
    spoken = lively = called = 0
    outside = [True] * len(tree)
    for first, end in quotations:
        outside[first:end] = [False] * (end - first)
        speaker = _find_speaker(first, end, tree)
        if speaker is not None and speaker.head.tag == "VBD":
            spoken += speaker.tag == "PRP" or all(c.dep != "compound" for c in speaker.children)
            calls = speaker.head.lemma.lower() in WORDS["calling"]
            lively += calls or any(n.word in WORDS["addressed"] for n in tree.nodes[first:end])
            called += calls
    verbs = [n.tag for n in tree.nodes if outside[n.i] and n.tag in {"VBD", "VBZ", "VBP"}]
    factual = sum(
        (n.dep in SUBJECTS and "ORG" in {n.pos == "PROPN" and n.entity, find_kind_label(n.word)})
        or n.entity in {"PERCENT", "MONEY"}
        or (n.entity == "DATE" and _CALENDAR.fullmatch(n.text) is not None)
        for n in tree.nodes
    )
    past = verbs.count("VBD") >= _PAST_SHARE * len(verbs)
    talks = len(quotations) + called >= _FEWEST_SPEECHES and spoken > 1 and past
    tells = 2 * lively >= spoken and lively > 2 * factual
    return talks and (tells or spoken > max(_MANY_SPEECHES, 4 * factual))


_FEWEST_SPEECHES, _MANY_SPEECHES, _PAST_SHARE = 3, 12, 0.75
"""The least speeches of a story, a whispered or shouted one counting twice; so many are a novel."""
_CALENDAR = re.compile(rf"[12]\d{{3}}|{MONTH}|{WEEKDAY}s?")


def _parts_paragraphs(tree: Tree, before: int, after: int) -> bool:
    """Whether a blank line stands between two tokens."""
    return tree.text.count("\n", tree[before].end, tree[after].idx) > 1


def _list_quotations(tree: Tree) -> Iterator[tuple[int, int]]:
    """First token of each quotation and the mark that ends it; a quotation ends with its paragraph.

    A long quotation whose opening mark the next paragraph repeats continues there.
    """
    opened: Node | None = None
    for node in tree.nodes:
        if opened is None and node.text not in _CLOSING:
            continue
        before = tree[node.i - 1] if node.i else None
        if opened is not None and before is not None and _parts_paragraphs(tree, before.i, node.i):
            if node.text == opened.text:
                yield opened.i + 1, node.i
            opened = None
        if before is not None and not before.space and node.text == before.text:
            continue  # a doubled mark is one
        if opened is None:
            glued = before is not None and not before.space and before.text[-1:].isalnum()
            opened = None if node.space or glued or node.text not in _CLOSING else node
        elif node.text in _CLOSING[opened.text] and node.tag != "POS":
            yield opened.i + 1, node.i
            opened = None


def _is_speech(first: int, end: int, tree: Tree) -> bool:
    """Whether a quotation is set off as speech, not part of a sentence like a quoted term."""
    after = tree[end + 1].text if end + 1 < len(tree) else "."
    return (
        tree[end - 1].text in _PAUSES or after == "," or (first > 1 and tree[first - 2].text == ":")
    )


def _find_speaker(first: int, end: int, tree: Tree) -> Node | None:
    """The subject of the verb of saying beside a quotation: "...," said X; X wrote: "..."."""
    after = tree.nodes[end + 1 : end + 1 + _NEAR] if _is_speech(first, end, tree) else []
    for side in (after, tree.nodes[max(first - 1 - _NEAR, 0) : max(first - 1, 0)][::-1]):
        for node in side:
            if node.text in _STOPS:
                break
            if node.lemma.lower() in _SPEAKING:
                named = (c for c in node.children if c.dep in SUBJECTS and not first <= c.i < end)
                return next((c for c in named if c.tag in _SPEAKERS), None)
    return None


def _list_plots(tree: Tree, blocks: Iterable[Block]) -> Iterator[tuple[int, int]]:
    """First token and token after the last of each part under a heading such as "Plot"."""
    if all(node.lemma not in WORDS["fiction"] for node in tree.nodes):
        return
    titled = [(b.start, b.end, b.level) for b in blocks if b.kind == "heading"]
    titled = titled or [(*m.span(), 0) for m in _HEADING.finditer(tree.text)]
    level = start = None
    for begin, end, depth in [*titled, (len(tree.text), len(tree.text), 0)]:
        words = re.findall(r"\w+", tree.text[begin:end].lower()) or [""]
        inner = level is not None and (depth > level or words[0] in WORDS["divisions"])
        if start is not None and not (inner and end > begin):
            inside = [n.i for n in tree.nodes if start <= n.idx < begin]
            if inside:
                yield inside[0], inside[-1] + 1
            start = None
        if start is None and not WORDS["plots"].isdisjoint(words[:2]) and len(words) < 4:
            level, start = depth, end


def _list_narrated(tree: Tree, frames: Mapping[int, Frame]) -> Iterator[tuple[int, int, Node]]:
    """The tokens that narrate the plot of a work, with the noun for the work.

    "In the novel, Ada kills Otto"; "the film follows Ada, who kills Otto", and the sentences after
    it in the present tense, the tense of plots, in the same paragraph.
    """
    work: Node | None = None
    for first, end in tree.sentences:
        if first and _parts_paragraphs(tree, first - 1, first):
            work = None
        verbs = [n for n in tree.nodes[first:end] if n.i in frames]
        verb = next((n for n in verbs if n.head is n), next(iter(verbs), None))
        if verb is None:
            continue
        subject = next(iter(frames[verb.i].subjects), None)
        about = subject is None or _is_work(subject) or subject.word in {"it", "this"}
        serial = subject is not None and subject.lemma.lower() in WORDS["serials"]
        if verb.lemma in WORDS["telling"] and subject is not None and (serial or _is_work(subject)):
            work = subject
            yield verb.i + 1, end, work
            continue
        opening = _find_opening(first, tree)
        setting = opening or _find_setting(verb)
        present = is_general(verb)
        if about or verb.lemma in WORDS["performing"] or not (present or opening):
            continue
        passive = any(c.dep == "auxpass" for c in verb.children)
        work = setting or work
        if work is not None and (present or (opening is not None and not passive)):
            yield first, end, work


def _is_work(noun: Node) -> bool:
    return noun.lemma.lower() in WORDS["fiction"] or noun.entity == "WORK_OF_ART"


def _find_opening(first: int, tree: Tree) -> Node | None:
    """The work or act that a sentence opens with: "In the novel The Reed, ..."."""
    if tree[first].word != "in":
        return None
    for node in tree.nodes[first + 1 : first + _NEAR]:
        after = tree[node.i + 1] if node.i + 1 < len(tree) else node
        if node.text == "," or node.pos == "VERB":
            break
        closed = after.pos in {"PROPN", "PUNCT", "DET"} or after.text[:1].isupper()
        if (closed and _is_work(node)) or _is_act(node):
            return node
    return None


def _find_setting(verb: Node) -> Node | None:
    """The work that a clause with an object is set in: "Otto kills Lena in the play"."""
    preps = [c for c in verb.children if c.word == "in"]
    acts = any(c.dep == "dobj" for c in verb.children)
    nouns = (noun for prep in preps if acts for noun in prep.children)
    return next((n for n in nouns if _is_work(n) and n.tag not in {"NNS", "NNPS"}), None)


def _is_act(noun: Node) -> bool:
    """Whether a noun is a numbered part of a play: "Act II", "the third act"."""
    after = noun.tree[noun.i + 1].text if noun.i + 1 < len(noun.tree) else ""
    ordinal = any(c.entity == "ORDINAL" for c in noun.children)
    return noun.word == "act" and (ordinal or bool(_NUMERAL.fullmatch(after)))
