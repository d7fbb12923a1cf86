"""Facts of clauses: pairs of a subject and another argument of the clause's frame."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, pairwise

from kpyramid.documents.measures import SIZES
from kpyramid.documents.validity import ENDING
from kpyramid.documents.values import YEAR
from kpyramid.documents.words import pick_table
from kpyramid.extraction.facts.candidates import (
    ADDRESSED,
    PLURAL,
    WORDS,
    Findings,
    is_deictic,
    is_respective,
    is_site,
    is_unplaced,
    spell_noun,
    word_noun,
)
from kpyramid.extraction.facts.copulas import (
    MAX_HELD,
    PLURAL_BE,
    add_attribute_value,
    lead_time,
    list_copula_facts,
)
from kpyramid.extraction.facts.coreference import COUNTING, find_counted, is_expletive
from kpyramid.extraction.facts.propositions import lift_kind, write_words
from kpyramid.extraction.syntax.clauses import MEANS, OCCASIONS, list_led, list_prepositional
from kpyramid.extraction.syntax.kinds import find_kind_label
from kpyramid.extraction.syntax.polarity import WORDS as POLARITY
from kpyramid.extraction.syntax.polarity import (
    is_denied,
    is_excluded,
    is_negated,
    is_partly_denied,
    is_scant,
)
from kpyramid.extraction.syntax.predicates import (
    ABLE,
    AFFECTING,
    MAX_HOPS,
    SUBJECTS,
    TIMES,
    VERBS,
    Frame,
    Part,
    VerbGroup,
    find_infinitive_mark,
    find_participle,
    follows_past,
    group_kids,
    is_copula,
    is_parted,
    is_stative,
    list_clocks,
    list_merged,
    read_means,
    read_modal,
    read_predicate,
    word_control,
    word_group,
)
from kpyramid.extraction.syntax.stance import (
    REPORTED,
    find_condition,
    find_modal_above,
    find_wish,
    has_inner_denial,
    is_general,
    read_stance,
)
from kpyramid.extraction.syntax.tree import (
    FULL_WORDS,
    LITERALS,
    LOCATIVE,
    PLACES,
    Node,
    Phrase,
    Tree,
    build_phrase,
    is_counted,
    is_nominal,
    is_restrictive,
    is_singled_out,
    list_ancestors,
    list_conjuncts,
    list_containers,
)

Tail = tuple[Phrase, str, list[int], bool]
"""Phrase, words after the verb, their tokens, negated."""

_WITHIN = LOCATIVE - {"in"}
_SOLE = frozenset({"first", "last", "only"})
_CHAINED = frozenset({"to", "from"})
"""Prepositions whose object also lies in what contains it, where it is named last: "to Rome,
Italy"."""
_LIGHT = frozenset({"take", "make", "give", "pay"})
_PREPOSITIONAL = frozenset({"preposition", "time"})
_MAX_FOLDED = 5
"""The most words of an object within a relation: "sold Beta Holdings to"."""
_COMPLEMENTS = frozenset("to as into onto upon".split())
"""Prepositions whose object a verb cannot do without, "turned to", "served as"; after a verb
without an object "of" is one too: "consists of"."""
_BOUND = pick_table(VERBS, "bound")
"""Prepositions that complete these verbs: "was associated with age"."""
_UNNAMED = frozenset({"DATE", "TIME", "ORDINAL"})
_YEAR = re.compile(rf"\b{YEAR}\b")
"""A year is a value, which queries ask for: "founded the mill in | 1904"."""
_STATES = frozenset({"at", "without", "under"})
"""Prepositions before a bare noun for a state: "at risk"."""
_DIRECTIONS = frozenset("together apart away aside back forward".split())
_UNDERGONE = frozenset("in on at to into onto from for near".split())
"""Prepositions after a verb whose objects apply to the verb's object too."""
_NARROWING = frozenset({"amod", "compound", "nmod", "advmod", "nummod", "punct"})
_UNDERGOING = frozenset({"undergo", "receive"})
"""Verbs whose subject is not the agent."""
_HELPING = frozenset({"help", "let", "make"})
"""Verbs as in "help them track": a coordinated base form depends on them."""
_RESULTING = VERBS["resulting"]


def find_clause_facts(findings: Findings) -> None:
    """Add the candidates of every clause of the document, in text order."""
    merged = list_merged(findings.frames)
    for frame in list(findings.frames.values()):
        if frame.verb.i not in merged and not _is_purpose(frame):
            findings.frames[frame.verb.i] = _govern(frame, findings)
            _project_frame(findings.frames[frame.verb.i], findings)


def _govern(frame: Frame, findings: Findings) -> Frame:
    """The frame of "helps farmers to plan" for that of "to plan", whose subject is an object.

    A name that is hired to coach gets the relation "was hired to coach".
    """
    verb = frame.verb
    while verb.dep == "conj" and verb.tag == "VB" and verb.head is not verb:
        verb = verb.head
    above = findings.frames.get(verb.head.i)
    bare = verb.dep == "ccomp" and verb.tag == "VB" and "aux" not in frame.kids
    held = bare if frame.way == "own" else frame.way == "object_control" and verb.dep == "xcomp"
    if not held or frame.chain or above is None or above.verb.i > frame.verb.i:
        return frame
    named = not bare and any(noun.pos == "PROPN" for noun in frame.subjects)
    if named and word_control(frame) is not None:
        return frame
    chain = [*above.chain, above.verb]
    way = "shared" if above.way == "own" else above.way
    noun = frame.subjects[0]
    return replace(frame, chain=chain, noun=noun, subjects=above.subjects, way=way)


def _is_purpose(frame: Frame) -> bool:
    """Whether the clause states a purpose, not an event: "to win time"."""
    verb = frame.verb
    if frame.chain:  # "to be able to follow them, patients should listen"
        verb = frame.chain[0]
        while verb.dep in {"xcomp", "acomp"}:
            verb = verb.head
        return verb.dep == "advcl" and find_infinitive_mark(verb) is not None
    if verb.tag != "VB":
        return False
    while verb.dep == "conj" and verb.head.tag == "VB":  # "to win time and save money"
        verb = verb.head
    if verb.dep == "relcl" and find_infinitive_mark(verb) is not None:
        # "the first country to sign" did sign; "a country to visit" may have no visitor.
        return not any(c.entity == "ORDINAL" or c.word in _SOLE for c in verb.head.children)
    return verb.dep == "advcl"


def _project_frame(frame: Frame, findings: Findings) -> None:
    verb = frame.verb
    addressed = _is_advice(frame)
    position, named_in = _find_position(frame) if addressed else (None, None)
    if position is not None:
        heads = [replace(p, resolved=True) for p in findings.read_arguments(position, full=True)]
    elif addressed:
        if _has_complement(frame) or _list_objects(frame):
            findings.advice.append(verb)
        findings.drop("advice", verb.i, verb.i)
        return
    else:
        heads = list_heads(frame, findings)
    if not heads:
        return
    doubt = _find_doubt(frame, heads)
    if doubt is not None:
        findings.drop(doubt, verb.i, verb.i)
        return
    group = _word_group(frame, findings.frames, plural=False)
    findings.claim_heads[verb.i] = heads[0]
    before = len(findings.candidates)
    plurals = [_is_plural(head, heads, frame) for head in heads]
    many = _word_group(frame, findings.frames, plural=True) if any(plurals) else group
    stance = findings.stances[verb.i] = read_stance(frame, findings.frames)
    mood = stance.mood or find_condition(frame, named_in)
    mood = mood or find_wish(frame) or group.modality
    lead = frame.top.left_edge.i - 1
    aims = frame.way == "antecedent" and verb.tree[lead].text == ","  # "a loan, to be repaid"
    if (frame.chain or aims) and find_infinitive_mark(frame.top) is not None:
        mood = mood or "to"  # "may vote to appoint a clerk to keep the books"
    mood = mood or find_modal_above(frame, findings.frames)
    if _has_duty(frame) and not stance.negated and not any(map(is_denied, frame.subjects)):
        mood = mood or "must"  # "has to be filled"
    if mood == REPORTED:
        mood, group = None, replace(group, text=f"reportedly {group.text}")
        many = replace(many, text=f"reportedly {many.text}")
    group = replace(group, negated=stance.negated, modality=mood)
    if is_copula(verb) and frame.way != "existential":
        for group_of, are in ((group, False), (replace(group, text=many.text), True)):
            alike = [h for h, plural in zip(heads, plurals, strict=True) if plural is are]
            if alike:
                list_copula_facts(verb, group_of, alike, findings)
    if verb.lemma.lower() == "include" and frame.subjects:
        objects = [part.root for part in _list_objects(frame)]
        if any(
            add_attribute_value(frame.subjects[0], each, verb, group, False, findings)
            for each in objects
        ):
            return
    aside = False
    for phrase, suffix, tokens, negated in _list_tails(frame, findings):
        if group.negated and not POLARITY["sharing"].isdisjoint(suffix.split()):
            findings.drop("not_asserted", phrase.first, phrase.last)
            continue  # "do not report by radio, mostly in the east wing"
        if stance.source is None and _is_aside(phrase, suffix, frame):
            aside = True
            findings.drop("restrictive_clause" if frame.clause else "no_place", verb.i, verb.i)
            continue
        for head, plural in zip(heads, plurals, strict=True):
            words = many.text if plural else group.text
            if frame.way == "existential" and suffix in LOCATIVE:
                words = f"{PLURAL_BE.get(words, words) if plural else words} located"
            held, _, led = suffix.rpartition(" ")
            relation = " ".join(f"{words} {held} {led}".split())
            indices = sorted((*group.tokens, *tokens))
            indirect = frame.way != "own"
            findings.add(
                verb, group, head, relation, phrase, indices, negated=negated, indirect=indirect
            )
    _add_undergone(frame, group, findings)
    if len(findings.candidates) > before or aside or _has_complement(frame):
        return
    state = _read_state(frame, findings)
    if state is not None:
        words = group.text.removesuffix(f" {state.text}")  # not "are", which alone means "are a"
        for head in heads:
            if _can_stand(head, frame, group, findings):
                findings.add(verb, group, head, words, state, group.tokens)
    if len(findings.candidates) == before:
        findings.drop("no_object", verb.i, verb.i)


def _read_state(frame: Frame, findings: Findings) -> Phrase | None:
    """The state of the subject in a clause without an object: "are *encrypted*", "is *low*"."""
    verb = frame.verb
    qualities = frame.kids.get("acomp", ())
    quality = qualities[0] if is_copula(verb) and len(qualities) == 1 else verb
    bare = quality is verb and "auxpass" in frame.kids and not frame.chain
    plain = quality.tag == "JJ" and all(c.dep in {"advmod", "npadvmod"} for c in quality.children)
    denied = is_negated(verb)
    open_states = WORDS["open_states"] - (WORDS["ended_states"] if denied else set())
    if not (bare or plain) or quality.word in open_states:
        return None
    degrees = {c.word for each in (quality, verb) for c in each.children if c.dep == "advmod"}
    options = (c.word for each in (verb, verb.head) for c in each.children if c.dep == "cc")
    if not WORDS["almost_never"].isdisjoint(degrees) or (bare and "or" in options):
        return None  # "is seldom possible", "was killed or captured"
    if denied and {"any", "more"} <= {c.word for d in quality.children for c in (d, *d.children)}:
        degrees.discard("more")  # "is not sold any more"
    if not degrees.isdisjoint(WORDS["degrees"]) or (denied and degrees - _STILL):
        return None  # "not very deep" may be deep
    first = quality.i if bare else quality.left_edge.i
    last = max([quality.i, *(c.i for c in frame.kids.get("prt", ()) if bare)])  # "brought back"
    phrase = build_phrase(findings.tree, first, last, quality.i)
    return None if phrase is None else replace(phrase, label="STATE")


_PLACE_ADVERBS = frozenset("above behind below downstairs inside nearby outside upstairs".split())
_STILL = frozenset("not n't never yet longer".split())


def _can_stand(head: Phrase, frame: Frame, group: VerbGroup, findings: Findings) -> bool:
    """Whether a state says something outside its text: as a rule, or as a quality of a name.

    What was done to somebody or something ("were randomised") says too little.
    """
    noun = findings.tree[head.root]
    owners = [owner for c in noun.children if c.word == "of" for owner in c.children]
    of = noun.word not in _SHARES and any(
        owner.pos == "PROPN" or all(c.dep != "det" for c in owner.children) for owner in owners
    )
    every = any(c.word in _EVERY for c in noun.children)
    bare = all(c.dep in {"amod", "compound"} for c in noun.children if c.i < noun.i)
    general = every or (noun.tag in {"NN", "NNS"} and bare)
    if group.modality in _DUTY or (group.negated and group.modality in _FORBIDDING):
        return head.is_named or head.resolved or of or general
    helper = next(iter(frame.kids.get("auxpass", ())), None)
    if _is_bounded(noun):
        return False
    top = _is_main(frame.top) and "prt" not in frame.kids
    parts = (noun, *(o for c in noun.children if c.word in _OWNING for o in c.children))
    named = any(n.pos == "PROPN" and n.entity not in {"", *LITERALS} for n in parts)
    if helper is not None and helper.word not in {"is", "are"}:
        has = next((a.word for a in frame.kids.get("aux", ()) if a.word in {"has", "have"}), "")
        counted = is_counted(noun) and not _is_person(noun)  # "eleven trains were cancelled"
        done = (has != "" and (every or of)) or counted
        # "Fort Ellis was razed", "the import of records has been completed"
        return top and (named or done) and group.modality in {None, "will"}
    if helper is not None and group.modality is None:
        opening = noun.left_edge
        some = opening.word in {"a", "an"} and noun.word not in COUNTING | _SHARES
        general = general and (bare or opening.word in _EVERY)  # not "hardly any"
        beside = (c.word for c in frame.verb.children)
        alone = top and not any(word == "only" or is_deictic(word) for word in beside)
        things = any(c.word == "the" for c in noun.children) and not _is_person(noun)
        denied = group.negated and things  # "the backups are not encrypted"
        return alone and not head.resolved and (general or some or named or denied)
    rule = top and general and frame.verb.word in {"is", "are"} and group.modality is None
    return "acomp" in frame.kids and not head.resolved and (head.is_named or of or rule)


_OWNING = frozenset("at for from in of with".split())
_DUTY, _FORBIDDING = frozenset({"must", "shall"}), frozenset({"may", "can", "will"})
_EVERY = frozenset("all any each every no".split())
_SHARES = frozenset("few many most none rest some".split())


def _is_bounded(noun: Node) -> bool:
    """Whether words before a subject leave open how many there are: "not one", "all but one"."""
    nodes, first = noun.tree.nodes, max(noun.left_edge.i - 1, 0)
    joins = nodes[first].word == "but" and nodes[first - 1].word != "all"  # a clause, not "all but"
    return any(node.word in WORDS["bounding"] for node in nodes[first + joins : noun.i])


def _is_main(verb: Node) -> bool:
    """Whether a verb is the main one of its sentence, or coordinated with it, not with its object.

    In "Ann denied that it failed and Tom was hurt" he need not have been.
    """
    while verb.dep == "conj" and verb.head is not verb:
        if any(c.dep == "ccomp" and verb.head.i < c.i < verb.i for c in verb.head.children):
            return False
        verb = verb.head
    return verb.dep == "ROOT"


def _is_advice(frame: Frame) -> bool:
    """Whether the clause is advice to the reader: "you can deduct", "keep your receipts"."""
    called = frame.kids.get("aux", [frame.verb])[0]
    if called.text == "Do" and frame.verb.tag == "VB" and "neg" in frame.kids:
        return True  # "Do not ring the shop; Orm is"
    if frame.subjects:
        you = frame.subjects[0]
        return you.word in ADDRESSED and you.pos == "PRON" and is_general(frame.top)
    verb = frame.verb
    while verb.dep == "conj" and verb.tag == verb.head.tag:
        verb = verb.head
    return verb.tag == "VB" and verb.dep == "ROOT" and find_infinitive_mark(verb) is None


def _find_position(frame: Frame) -> tuple[Node | None, Node | None]:
    """The role of "you" in "if you are a sole trader" or "as a landlord", and the part with it."""
    verb = frame.top
    for _ in range(MAX_HOPS):
        for part in verb.children:
            if part.i > verb.i:
                break
            nouns = [c for c in part.children if c.dep in {"attr", "pobj"} and c.pos == "NOUN"]
            you = any(c.word in ADDRESSED and c.dep == "nsubj" for c in part.children)
            named = part.dep == "advcl" and you and is_copula(part) and not is_negated(part)
            indefinite = nouns and any(c.word in {"a", "an"} for c in nouns[0].children)
            if nouns and f"{part.word}_{nouns[0].word}" in WORDS["discourse"]:
                continue  # "as a result, you need"
            if indefinite and (named or (part.dep == "prep" and part.word == "as")):
                return nouns[0], part
        if verb.dep != "conj" or verb.head.pos not in {"VERB", "AUX"}:
            break
        verb = verb.head
    return None, None


def _find_doubt(frame: Frame, heads: list[Phrase]) -> str | None:
    """The reason why the parse leaves the clause's subject or verb in doubt, or None."""
    if _tells_which(frame, heads) or _is_timed(frame):
        return "restrictive_clause"
    if _is_option(frame) or _is_mended(frame):
        return "not_asserted"  # "was killed or captured"
    shouted = frame.verb.text.isupper() and len(frame.verb.text) > 2
    verb = frame.verb
    called = verb.tag == "VB" and verb.head is verb and find_infinitive_mark(verb) is not None
    nouns = [c for c in frame.top.children if c.dep in SUBJECTS and c.pos in {"NOUN", "PROPN"}]
    if any(first.pos == "NOUN" and _is_beside(first, second) for first, second in pairwise(nouns)):
        return "doubtful_subject"  # "of hepatic biliary | atresia includes"
    points = verb.tag == "VB" and verb.lemma == "see" and "aux" not in frame.kids
    if points and verb.head is verb:
        return "advice"  # "Levels of callout; see chapter 2"
    if verb.lemma == "do" and any(c.word == "so" for c in verb.children):
        return "doubtful_verb"  # "can lift a stop, and must do so in writing"
    if is_copula(verb) and any(s.word in _PLACE_ADVERBS and not s.children for s in frame.subjects):
        return "doubtful_subject"  # "Downstairs is the garage"
    if shouted or called or not _agrees(frame) or _skips_subject(frame):
        return "doubtful_verb"  # "an in-person CIED visit", "Use X to test it"
    if frame.way == "antecedent" and frame.clause is not None and _means_clause(frame.clause):
        return "doubtful_subject"
    compared = verb.tag == "VBN" and verb.i > 0 and verb.tree[verb.i - 1].word == "as"
    if compared or _is_doubtful_participle(frame, heads):  # "as opposed to a fund"
        return "doubtful_subject"
    apart = frame.noun is None or frame.verb.dep == "advcl"
    aims = apart and is_copula(frame.top) and "acomp" not in group_kids(frame.top)
    if frame.chain and (aims or frame.top.lemma == "become"):
        return "intended"  # "the aim is to find", "it became the last day to claim"
    return None


def _has_duty(frame: Frame) -> bool:
    """Whether the predicate is "has to", not "has yet to" or "has a chance to"."""
    has, nodes = frame.top, frame.verb.tree.nodes
    present = has.lemma == "have" and has.tag in {"VBZ", "VBP"} and len(frame.chain) == 1
    return present and frame.noun is None and any(n.tag == "TO" for n in nodes[has.i + 1 :][:1])


def _is_timed(frame: Frame) -> bool:
    """Whether a clause tells which time or way: "the last time trains ran on 25 December was"."""
    fronted = [c for c in frame.top.children if c.dep == "npadvmod" and c.i < frame.top.i]
    again = (c for c in frame.top.children if c.dep in {"advcl", "ccomp"} and c.i > frame.top.i)
    if not any(c.lemma == "be" and all(g.dep != "mark" for g in c.children) for c in again):
        fronted = []
    nouns = [frame.top.head] if frame.top.dep == "relcl" else fronted
    return frame.way == "own" and any(noun.lemma in OCCASIONS for noun in nouns)


def _is_option(frame: Frame) -> bool:
    """Whether "or" joins a verb to the next one or to the one before.

    What may be both or is neither is no alternative: "can open or close", "did not open or close".
    """
    verb = frame.verb
    follows = verb.dep == "conj" and verb.head.pos in {"VERB", "AUX"}
    for end in (verb, verb.head) if follows else (verb,):
        kids = group_kids(end)
        if read_modal(kids) in ABLE or "neg" in kids:
            return False
    later = [c for c in verb.children if c.dep == "conj" and c.pos in {"VERB", "AUX"}][:1]
    for joined in [*later, verb] if follows else later:
        first = joined.head
        links = [c for c in first.children if c.dep == "cc" and first.i < c.i < joined.i]
        if links and links[-1].word == "or":
            return True
    return False


def _is_mended(frame: Frame) -> bool:
    """Whether the clause tells an error that is gone: "Fixed: the export lost two lines"."""
    nodes, top = frame.verb.tree.nodes, frame.top
    first = frame.verb.tree.sentences[frame.verb.sentence][0]
    label = [node.word for node in nodes[first : first + 2]]
    past = top.tag == "VBD" or any(c.word in {"was", "were"} for c in top.children)
    return label == ["fixed", ":"] and past


def _means_clause(clause: Node) -> bool:
    """Whether "which" stands for a clause: "ask before buying, which helps"."""
    noun = clause.head
    gerund = noun.dep == "pobj" and noun.left_edge is noun and noun.word.endswith("ing")
    named = noun.entity == "PERSON" and noun.iob == "I"
    which = any(c.word == "which" for c in clause.children)
    return which and (named or (gerund and noun.head.word in _GERUND_LEADS))


_GERUND_LEADS = frozenset({"after", "before", "by", "when", "while", "without"})


def _is_beside(noun: Node, second: Node) -> bool:
    """Whether at most a bracket or a preposition separates two subject nouns of a verb.

    A name may follow its kind: "director Milan Kos".
    """
    last = second.tree[second.left_edge.i - 1]
    joined = last.pos in {"CCONJ", "PUNCT"}
    led = last.pos in {"ADP", "SCONJ"} or last.text == ")"
    return (
        second.text.isalnum()
        and not second.text.istitle()
        and not (second.text[0].isupper() and find_kind_label(noun.word))
        and (led or (last is noun.right_edge and not joined))
    )


def _tells_which(frame: Frame, heads: list[Phrase]) -> bool:
    """Whether the clause is restrictive: "patients who received it".

    It is then part of the argument and no fact about all patients. After a name, or after
    "X is a town that", it is a fact about the name. A participle after a comma seldom belongs to
    the noun before it.
    """
    clause = frame.clause
    if frame.way != "antecedent" or clause is None or _is_existent(clause):
        return False
    parted = not is_restrictive(clause)
    if parted and (clause.dep != "acl" or clause.head.dep in SUBJECTS):
        return False
    return any(h.root == clause.head.i and not (h.resolved or h.is_named) for h in heads)


def _agrees(frame: Frame) -> bool:
    """Whether a verb in the present agrees with its subject; else another word is the verb.

    Names ("Arts is"), amounts and coordinated subjects agree with both numbers.
    """
    top = frame.top
    helpers = [*frame.kids.get("aux", ()), *frame.kids.get("auxpass", ())]
    if top.tag == "VBG" and top.dep == "ccomp" and not helpers and frame.way == "own":
        return False  # "people get their start investing"
    if frame.lender is not None or helpers or frame.chain or top.tag not in {"VBZ", "VBP", "VB"}:
        return True
    if top.dep == "conj" and top.tag == "VB":
        lead = top.head.head if top.head.dep == "conj" and top.head.tag == "VB" else top.head
        helped = lead.tag != "VB" and lead.lemma in _HELPING  # "helps them see, hear and do"
        helped = helped or any(_is_order(lead, subject) for subject in frame.subjects)
        return top.head.tag in {"VB", "VBP", "MD"} and frame.way != "own" and not helped
    if frame.way not in {"own", "antecedent"} or is_copula(top):
        return True
    noun = frame.subjects[0]
    if noun.pos != "NOUN" or any(c.dep in {"conj", "nummod"} for c in noun.children):
        return not _is_order(top, noun)
    if top.tag == "VBZ":
        return noun.tag != "NNS" or frame.way == "antecedent"
    shared = any(c.word == "of" for c in noun.children) or noun.lemma.lower() in WORDS["collective"]
    return noun.tag != "NN" or shared


def _is_order(verb: Node, name: Node) -> bool:
    """Whether a plain form after a name is no statement: "Press F12, wait for it", "Leak test".

    Firms and teams may be plural: "Velm Foods say", "Roma play", "Roma, who have".
    """
    if verb.lemma in {"have", "play"} or verb.dep == "relcl":
        return False
    single = name.tag == "NNP" and name.entity in {"", "PERSON"} and name.text[-1] != "s"
    single = single and all(c.dep not in {"conj", "nummod"} for c in name.children)
    plain = verb.tag in {"VB", "VBP"} and verb.word == verb.lemma.lower()
    return single and plain and all(c.dep != "aux" for c in verb.children)


def _skips_subject(frame: Frame) -> bool:
    """Whether a noun outside a coordinated clause is at the position of its subject.

    In "the scope was passed and puncture was done" the parser attaches "puncture" to "passed".
    """
    verb = frame.verb
    if verb.dep != "conj" or frame.way == "own":
        return False
    first = min([verb.i, *(c.i for c in verb.children if c.dep in {"aux", "auxpass", "neg"})])
    before = verb.tree.nodes[first - 1]
    while before.pos == "ADV" and before.i > verb.head.i:
        before = before.tree.nodes[before.i - 1]
    if before.pos not in {"NOUN", "PROPN", "PRON", "NUM", "ADJ"} or before.i <= verb.head.i:
        return False
    return verb not in islice(list_ancestors(before), MAX_HOPS - 1)


def _is_doubtful_participle(frame: Frame, heads: list[Phrase]) -> bool:
    """Whether the subject of a participle is uncertain.

    The agent of a passive clause is not its subject ("was measured using X"), a result has the
    whole clause as its subject ("..., leading to panic"), and a participle before the subject is a
    condition of the clause, unless it states the past of a name.
    """
    means = frame.top.lemma in MEANS  # "was measured by using X to find Y"
    verb = frame.top if means else frame.verb
    top = verb
    while top.dep == "conj" and top.tag == verb.tag and top.head is not top:
        top = top.head
    participial = verb.tag == "VBG" and "aux" not in frame.kids and top.tag != "VBG"
    first = top.head if top.dep == "conj" else top
    if participial and first.dep != "acl" and not all(head.is_named for head in heads):
        return True  # "a trade is initiated by buying and selling": part of the means
    if frame.way == "antecedent" and verb.tag in {"VBN", "VBG"} and top.dep == "acl":
        fragment = top.head.dep in {"ROOT", "ccomp", "advcl", "parataxis"}
        # "STAR voting for boards reduces ties"
        fragment |= verb.tag == "VBG" and top.head.dep in SUBJECTS and top.i == top.head.i + 1
        return fragment or (verb.tag == "VBG" and verb.lemma.lower() in _RESULTING)
    main = _find_verb_above(top)
    passive = not is_stative(main) and any(c.dep == "auxpass" for c in main.children)
    if means and verb.tag == "VBG" and frame.way != "own":
        passive = passive or main.tag == "VBN" or main.lemma in _UNDERGOING
        if passive:
            return True  # "improvement measured using X", "patients underwent surgery using X"
    if frame.way != "shared" or top.dep not in {"advcl", "pcomp"} or verb.tag not in {"VBN", "VBG"}:
        return False
    if verb.tag == "VBG" and verb.tree[top.left_edge.i - 1].text == "(":
        return True  # "to 47.8% (bleeding on exertion)"
    named = all(head.is_named for head in heads) or top.head.word == "by"
    if top.head.word in {"after", "before"} and not named and not _is_person(frame.subjects[0]):
        return True  # "the symptoms had an influence after adjusting for age"
    if frame.subjects[0].i > verb.i and not named:
        return True
    if verb.tag == "VBN":
        return False
    if top.dep == "pcomp" and top.head.word == "as":
        return True  # "caravans count as staying with friends"
    if top.dep == "pcomp" and top.head.word in {"of", "for", "from", "about", "against"}:
        return False  # "accused of": the event is uncertain
    finite = main  # a gerund has the mood of its main clause: "can help in driving change by"
    while finite.tag == "VBG" and finite.head is not finite and "aux" not in group_kids(finite):
        finite = _find_verb_above(finite)
    if read_means(verb) is not None:
        return passive or is_negated(main)
    if read_modal(group_kids(finite)) or find_infinitive_mark(main) is not None:
        return True  # "by choosing X, firms can save"
    return passive or is_negated(main) or (top.dep == "advcl" and verb.lemma.lower() in _RESULTING)


def _is_person(noun: Node) -> bool:
    return noun.pos in {"PRON", "PROPN"} or find_kind_label(noun.lemma.lower()) == "PERSON"


def _find_verb_above(clause: Node) -> Node:
    """The verb that a participle or the object of a preposition depends on."""
    node = clause.head
    for _ in range(MAX_HOPS):
        if node.pos in {"VERB", "AUX"} or node.head is node:
            break
        node = node.head
    return node


def _is_plural(head: Phrase, heads: list[Phrase], frame: Frame) -> bool:
    """Whether the verb is plural: by the noun's number, except for "Arts is a journal"."""
    if not frame.subjects or frame.subjects[0].tree[head.root].tag not in PLURAL:
        return False
    return not (_is_singular(frame) and frame.way == "own" and len(heads) == 1)


def _is_singular(frame: Frame) -> bool:
    """Whether the finite verb of the clause is in the singular."""
    finite = [*frame.kids.get("aux", ()), *frame.kids.get("auxpass", ()), frame.top]
    return bool(finite[0].tag == "VBZ" or finite[0].word == "was")


def list_heads(frame: Frame, findings: Findings) -> list[Phrase]:
    """The resolved subjects of a clause.

    A noun that only states the kind of another is replaced by it: in "X is a book written by Y"
    X was written.
    """
    heads: list[Phrase] = []
    for subject in frame.subjects:
        if subject.pos in {"VERB", "AUX"}:
            heads += _read_gerund(subject, findings)
            continue
        if subject.dep == "expl" or is_expletive(subject):
            findings.drop("expletive_subject", subject.i, subject.i)
            continue
        if frame.verb.dep == "advcl" and frame.way == "shared" and not frame.chain:
            # "Established in 1845, its first bishop was ..." means the owner, not the bishop.
            owner = next((c for c in subject.children if c.tag == "PRP$"), None)
            subject = owner if owner is not None else subject
        if frame.way == "antecedent":
            subject = lift_kind(find_counted(subject), findings.frames)
        if frame.way == "existential":
            heads += _read_existent(subject, findings)
            continue
        if frame.way == "antecedent" and _is_existent(frame.clause):
            heads += [_word_some(p, subject) for p in findings.read_arguments(subject)]
            continue
        # "belief in ghosts" is not belief: a common noun retains its complements.
        phrases = findings.read_arguments(subject, full=subject.pos == "NOUN")
        if frame.way == "antecedent" and frame.clause is not None:
            first = frame.clause.left_edge.i  # "Ann Lee, who left, and Tom Berg"
            phrases = [p for p in phrases if p.resolved or p.root < first or p.root == subject.i]
        # "The study of shapes, angles, and dimensions plays": the subject is singular.
        chosen = any(c.word == "or" for noun in list_conjuncts(subject) for c in noun.children)
        top = findings.frames.get(frame.top.i, frame)
        has_subject = frame.way == "own" or bool(frame.chain)
        alone = subject.pos == "NOUN" and has_subject and _is_singular(top) and not chosen
        phrases = phrases[:1] if alone else phrases
        if is_partly_denied(subject):  # "not all mills"
            share = [c.word for c in subject.children if c.dep in {"neg", "det", "predet"}]
            phrases = [replace(p, text=" ".join([*share, p.text]), literal=False) for p in phrases]
        heads += phrases
    return heads


def _is_existent(clause: Node | None) -> bool:
    """Whether a clause restricts an existential noun: "there are mosses that live on bark"."""
    if clause is None or clause.tree[clause.left_edge.i - 1].text in {",", "("}:
        return False
    verb = clause.head.head
    if clause.dep != "relcl" and clause.tag != "VBN":
        return False  # "there are drawbacks to saving money"
    return verb.word in {"are", "were"} and any(c.dep == "expl" for c in verb.children)


def _word_some(phrase: Phrase, noun: Node) -> Phrase:
    """Return "some mosses" for an existential noun without a quantity: others may differ."""
    inside = [c for c in noun.children if c.i >= phrase.first or c.word == "no"]
    told = (c.dep in {"nummod", "det"} or c.tag == "JJR" for c in inside)
    few = any(told) or any(c.word in WORDS["quantities"] for c in inside)
    known = few or phrase.root != noun.i or phrase.text.split()[1:2] == ["of"]
    return phrase if known else replace(phrase, text=f"some {phrase.text}", literal=False)


def _read_existent(noun: Node, findings: Findings) -> list[Phrase]:
    """Return "a chapel" for "there is a chapel in the wood", whose place is its fact."""
    preps = [c.i for c in noun.children if c.dep == "prep" and c.word != "of"]
    if not preps:
        return findings.read_arguments(noun)
    phrase = build_phrase(findings.tree, noun.left_edge.i, preps[0] - 1, noun.i)
    return [phrase] if phrase is not None else []


def _read_gerund(verb: Node, findings: Findings) -> list[Phrase]:
    """Return "Listening to music" as a subject, while it is short."""
    first, last = verb.left_edge.i, verb.right_edge.i
    points = any(c.tag in {"DT", "PRP"} for c in verb.children)  # "Doing this"
    if verb.tag != "VBG" or first != verb.i or last - first >= FULL_WORDS or points:
        return []
    phrase = build_phrase(findings.tree, first, last, verb.i)
    return [phrase] if phrase is not None else []


def _word_group(frame: Frame, frames: dict[int, Frame], plural: bool) -> VerbGroup:
    """The verb group with its governing verbs: "began to play", "was hired to coach".

    The governed verbs are worded as in the proposition, without adverbs and articles.
    """
    group = word_group(frame, frames, plural)
    if not frame.chain:
        form = word_control(frame)
        if form is None:
            return group
        be = "were" if plural else "was"
        to = "not to" if has_inner_denial(frame.verb) else "to"
        return replace(group, text=f"{be} {form} {to} {frame.verb.lemma.lower()}")
    top = frames[frame.top.i]
    outer = word_group(top, frames, plural)
    auxiliaries = {node.i for dep in ("aux", "auxpass", "prt") for node in top.kids.get(dep, ())}
    nodes = [frame.verb.tree[i] for i in read_predicate(frame, frames).tokens]
    left_out = {"ADV", "DET"}
    inner = [
        n
        for n in nodes
        if n.pos not in left_out or n.tag in {"RBR", "RBS"} or n.word == "enough" or n.dep == "neg"
    ]
    inner = [n for n in inner if n.tag != "PRP$" and (n.dep != "neg" or has_inner_denial(n.head))]
    inner = [n for n in inner if n is not frame.top and n.i not in auxiliaries]
    words = write_words(frame.verb.tree, [n.i for n in inner])[0]
    tokens = tuple(sorted({*outer.tokens, *(n.i for n in inner)}))
    return replace(group, text=f"{outer.text} {words}", tokens=tokens, modality=outer.modality)


def _list_tails(frame: Frame, findings: Findings) -> list[Tail]:
    """The tails of a clause, part by part; those of the verb's own prepositions come last.

    The relations of a clause's other parts include its object: "sold Beta to". Where the object is
    too long for that, these parts are only qualifiers of the main triple.
    """
    tails: list[Tail] = []
    copula = is_copula(frame.verb)
    base: list[str] = []
    base_tokens: list[int] = []
    later: list[Part] = []
    for part in frame.parts:
        role = part.role
        if role == "quality":
            word = part.root
            degrees = {"as", "too"}  # "is too short for"
            grade = [c for c in word.children if c.tag in {"RBR", "RBS"} or c.word in degrees]
            grade = [c for c in grade if c.i < word.i]  # not the second "as" of "as good as"
            grade = [c for c in grade if all(g.dep != "conj" for g in c.children)]  # "more or less"
            base = [node.word for node in (*grade, word)]
            base_tokens = [node.i for node in (*grade, word)]
            tails += [
                (phrase, " ".join([*base, words]), [*base_tokens, *tokens], negated)
                for each in list_led(word)
                for phrase, words, tokens, negated in _read_prepositional(each, findings)
            ]
        elif role == "object" or (role == "attribute" and not copula):
            tails += _list_object(part, frame, findings)
        elif role == "receiver":
            given, ids = _fold_object(frame, findings) or ("", [])
            receivers = findings.read_arguments(part.root) if given else []
            tails += [(p, f"{given} to", ids, False) for p in receivers]
        elif role in _PREPOSITIONAL and not (
            _belongs_above(part, frame) or is_parted(part, frame.verb.i)
        ):
            later.append(part)
    if copula and any(part.role == "attribute" for part in frame.parts):
        return tails
    folded = _fold_object(frame, findings)
    if folded is None or any(part.role == "clause" for part in frame.parts):
        return tails
    denied = any(is_denied(part.root) for part in _list_objects(frame))
    if folded[0]:
        base, base_tokens = [folded[0]], folded[1]
    later = [part for part in later if part.root.i not in base_tokens]  # the object holds others
    if not (folded[0] or base) and any(_is_aimed(part, frame, findings) for part in later):
        findings.drop("unresolved_pronoun", frame.verb.i, later[0].root.i)
        return tails  # "looks at them on Friday" is no "looks on Friday"
    needed = None if folded[0] or base else _find_complement(later, frame)
    objects = {part.root.i for part in _list_objects(frame)}
    apart = [t for t, *_ in tails if objects and not t.first <= frame.verb.i <= t.last]
    reflexive = folded[0].endswith(("self", "selves"))
    whole = not reflexive and any(t.resolved or t.root in objects for t in apart)
    ends = {part.place: end for part in later for end in later if _is_period(part, end)}
    closing = {end.place for end in ends.values()}
    if copula and not base and needed is None and any(part.role != "time" for part in later):
        later = [part for part in later if part.role != "time"]  # "was at Lund since May"
    leads = {part.link[0].word for part in later if part.link and part.role != "time"}
    if leads >= _CHAINED or len(list_clocks(frame)) > 1:  # "went from 3 in May to 4 in June"
        later = [part for part in later if part.role != "time" or part.root.entity == "TIME"]
    for part in (p for p in later if p.place not in closing):
        before, ids, object_stated = base, base_tokens, whole
        coming = frame.verb.lemma in {"come", "go"} and len(later) > 1
        if coming and part is needed and _is_state(part.root):
            continue  # "came into force on" says "came into force" and more
        if needed is not None and part is not needed:
            same = bool(part.link) and part.link[-1].word == needed.link[-1].word
            denied_too = same and any(node.dep == "neg" for node in part.link)
            if same and not denied_too:
                continue  # "ten were classified as A, five as B"
            # "belongs to the county, not to the railway"
            words = "" if denied_too else _fold_complement(needed, findings)
            if words is None:
                continue
            before, ids = [words], [i for i in range(needed.place, needed.root.right_edge.i + 1)]
            object_stated = not (coming or copula) or not _is_state(needed.root)
        for phrase, prep, tokens, negated in _read_circumstance(part, findings):
            stated = object_stated and not is_respective(frame.verb)
            if stated and _is_circumstance(phrase, prep, findings.tree):
                continue  # it qualifies the fact with the object
            held = " ".join(before).split()
            if held and held[-1:] == prep.split()[:1]:
                held.pop()  # "brought the party back to": the adverb is in both
            relation = " ".join([*held, prep])
            if (end := ends.get(part.place)) is not None:
                last = end.root.right_edge.i
                phrase = build_phrase(findings.tree, phrase.first, last, phrase.root) or phrase
            tails.append((phrase, relation, [*ids, *tokens], negated or denied))
    return tails


def _is_aimed(part: Part, frame: Frame, findings: Findings) -> bool:
    """Whether a verb is completed by an unresolved pronoun: "looked at it"."""
    led = bool(part.link) and part.link[0].word in _AIMS and part.place == frame.verb.i + 1
    led = led and "auxpass" not in frame.kids
    return led and part.root.tag == "PRP" and findings.antecedents.resolve(part.root) is None


_AIMS = frozenset("about after at for into of over through".split())


def _is_period(part: Part, end: Part) -> bool:
    """Whether two times are the ends of a period: "from 1995 to 1998"."""
    dated = all(
        p.link and (p.root.entity in TIMES or _YEAR.fullmatch(p.root.text)) for p in (part, end)
    )
    if not dated or part.link[-1].word not in {"during", "from"} or end.link[0].word not in ENDING:
        return False
    within = part.root.tree.nodes[part.root.i + 1 : end.link[0].i]
    return part.place < end.place and all(n.head is part.root for n in within)


def _find_complement(parts: list[Part], frame: Frame) -> Part | None:
    """The part right after the verb that completes it: "turned to Rome in 1990"."""
    edge = max([frame.verb.i, *(c.i for c in frame.kids.get("prt", ()))])
    active = not {"auxpass", "dobj"} & frame.kids.keys()
    settles = is_copula(frame.verb) or frame.verb.lemma in VERBS["putting"]
    for part in parts:
        if not part.link or part.place != edge + 1:
            continue
        if (
            (settles and _is_state(part.root))
            or part.link[0].word in _COMPLEMENTS
            or frame.verb.lemma.lower() in _BOUND.get(part.link[0].word, ())
            or (active and part.link[0].word == "of")
        ):
            return part
    return None


def _is_state(noun: Node) -> bool:
    """Whether a bare noun with its preposition is a state: "in force"."""
    return noun.tag == "NN" and not noun.children


def _is_circumstance(tail: Phrase, words: str, tree: Tree) -> bool:
    """Whether a tail is a time, a quantity or a state, not a thing: "much potential"."""
    *counts, _ = tail.text.split()
    if words.rpartition(" ")[2] in {"in", "on"} and _YEAR.search(tail.text):
        return False
    if tail.label != "NOUN" or tail.resolved:
        return tail.label in _UNNAMED or (tail.label, tree[tail.root].tag) == ("CARDINAL", "CD")
    bare = tree[tail.root].tag == "NN" and WORDS["quantities"].issuperset(counts)
    return bare and (bool(counts) or words.split()[-1] in _STATES)


def _fold_complement(part: Part, findings: Findings) -> str | None:
    """The words of a complement; None where they are too many for a relation."""
    tails = _read_prepositional(part, findings)
    if len(tails) != 1 or tails[0][0].words > _MAX_FOLDED:
        return None
    return f"{tails[0][1]} {tails[0][0].text}"


def _is_aside(tail: Phrase, words: str, frame: Frame) -> bool:
    """Whether the tail makes no fact about the subject: "the nectar that bees collect in spring".

    A relative clause with its own subject is a fact about a name before it, "for whom a ship was
    named"; an existential noun has a place only if the place has a name.
    """
    if frame.way == "existential":
        place = tail.is_named or tail.label in PLACES or is_site(frame.verb.tree[tail.root])
        return words not in LOCATIVE or not place
    if frame.top.dep != "relcl" or frame.way != "own":
        return False
    gaps = [part.root for part in frame.parts if part.gap is not None]
    return not (
        gaps and tail.is_named and all(tail.root != p.root.i for p in frame.parts if p.gap is None)
    )


def _belongs_above(part: Part, frame: Frame) -> bool:
    """Whether the part depends on a verb above that states it: "on X" in "relies on X to live"."""
    apart = frame.noun is not None or frame.verb.dep not in {"xcomp", "conj"}
    lead = part.link[0] if part.link else part.root
    return apart and lead.head in frame.chain


def _read_circumstance(part: Part, findings: Findings) -> list[Tail]:
    """A time without a preposition, or the object of one."""
    if part.link:
        return _read_prepositional(part, findings)
    denied = is_excluded(part.root)
    phrases = findings.read_arguments(part.root)
    return [(p, lead_time(p.text), [], denied and p.root == part.root.i) for p in phrases]


def _list_objects(frame: Frame) -> list[Part]:
    copula = is_copula(frame.verb)
    return [
        part
        for part in frame.parts
        if part.role == "object" or (part.role == "attribute" and not copula)
    ]


def _fold_object(frame: Frame, findings: Findings) -> tuple[str, list[int]] | None:
    """The words of the only object, "" without one; None where they are too many for a relation.

    A relation without the object has another meaning: "sold in 2003" is no fact about who sold
    Beta in 2003.
    """
    objects = _list_objects(frame)
    if not objects:
        return "", []
    root = objects[0].root
    if len(objects) > 1 or objects[0].gap is not None or len(list(list_conjuncts(root))) > 1:
        return None
    if _is_light(root, frame):
        return word_noun(root)
    phrases = findings.read_arguments(root, full=True)
    if len(phrases) != 1 or phrases[0].words > _MAX_FOLDED:
        return None
    (phrase,) = phrases
    if is_unplaced(phrase, findings.tree):
        return None  # "rejected this plan in favour of"
    if root.tag == "PRP" and root.word.endswith(("self", "selves")):
        return root.word, [root.i]
    if phrase.resolved and any(c.tag == "PRP$" for c in root.children):
        return None  # the owner in "represented her country" is no part of the relation
    tokens = [] if phrase.resolved else list(range(phrase.first, phrase.last + 1))
    ways = _list_directions(root, frame.verb)
    return " ".join([phrase.text, *(c.word for c in ways)]), [*tokens, *(c.i for c in ways)]


def _list_directions(noun: Node, verb: Node) -> list[Node]:
    """The adverb after an object that belongs to its verb: "bring people together".

    In "together with Ann" it belongs to the preposition.
    """
    after = [c for c in verb.children if c.i > noun.right_edge.i]
    adverbs = [*after, *(c for prep in after if prep.dep == "prep" for c in prep.children)]
    leading = {c.i - 1 for c in after if c.word == "with"}
    directions = [c for c in adverbs if c.word in _DIRECTIONS and c.i not in leading]
    return [c for c in directions if c.i == noun.right_edge.i + 1]


def _add_undergone(frame: Frame, group: VerbGroup, findings: Findings) -> None:
    """Add "Hans Lund was killed in 1990" for "Berg killed Hans Lund in 1990".

    Only for verbs that change, make or move their object: it shares their time and place.
    """
    verb = frame.verb
    if frame.chain or group.passive or group.modality:
        return
    objects = _list_objects(frame)
    if verb.lemma.lower() not in AFFECTING or len(objects) != 1:
        return
    noun = lift_kind(objects[0].root, findings.frames)
    particles = [c.word for c in verb.children if c.dep == "prt"]
    participle = " ".join([find_participle(verb), *particles])
    past = verb.tag in {"VBD", "VBN"} or group.text.startswith("did ")
    past = past or follows_past(verb, findings.frames)
    heads = [p for p in findings.read_arguments(noun) if p.is_named]
    for part in frame.parts:
        if part.role not in _PREPOSITIONAL:
            continue
        for tail, words, tokens, negated in _read_circumstance(part, findings):
            if words not in _UNDERGONE:
                continue
            for head in heads:
                be = "was" if past else "is"
                findings.add(
                    *(verb, group, head, f"{be} {participle} {words}", tail, (verb.i, *tokens)),
                    negated=negated,
                )


def _list_object(part: Part, frame: Frame, findings: Findings) -> list[Tail]:
    """Return the direct object; after "has" its noun becomes part of the relation."""
    noun = part.root if part.gap is None else lift_kind(part.root, findings.frames)
    if part.gap is not None:
        return [(p, "", [], is_denied(noun)) for p in findings.read_arguments(noun)]
    negated = is_denied(noun)
    verb = frame.verb
    passive = "auxpass" in frame.kids and noun.dep == "dobj" and not is_counted(noun)
    if passive and verb.lemma.lower() not in VERBS["ditransitive"]:
        findings.drop("doubtful_object", noun.i, noun.i)
        return []
    single = is_singled_out(noun) or any(c.word in _SOLE for c in noun.children)
    narrowed = any(c.dep in {"acl", "relcl"} for c in noun.children) or "xcomp" in frame.kids
    if part.role == "attribute" and single and narrowed:
        findings.drop("incomplete_object", noun.i, noun.i)
        return []  # "became the first European to reach it"
    controlled = any(c.dep == "xcomp" and c.tag == "VB" and c.i > noun.i for c in verb.children)
    done = MEANS if noun.pos == "NOUN" else MEANS | AFFECTING  # "hired Ann Lee to teach" hired her
    if controlled and verb.lemma.lower() not in done:
        findings.drop("incomplete_object", noun.i, noun.i)
        return []  # "forces species to migrate" forces them to something
    active = "auxpass" not in frame.kids
    if (
        active
        and verb.lemma.lower() in VERBS["addressing"]
        and ("ccomp" in frame.kids or {"dobj", "oprd"} <= frame.kids.keys())
    ):
        findings.drop("incomplete_object", noun.i, noun.i)
        return []  # "told the board that", "called them the Maybes"
    if verb.lemma in {"ask", "tell"} and _is_person(noun) and not list(_list_contents(frame)):
        findings.drop("incomplete_object", noun.i, noun.i)
        return []  # "will ask Ann Lee"
    ways = _list_directions(noun, verb)
    direction, way_tokens = " ".join(c.word for c in ways), [c.i for c in ways]
    having = frame.verb.lemma.lower() == "have"
    tails: list[Tail] = []
    # The object of "has" retains its restrictive clause: "has a tool that parts lines".
    whole = not having or _is_distinguished(noun)
    phrases = findings.read_arguments(noun, full=True) if whole else []
    for phrase in phrases or findings.read_arguments(noun):
        root = findings.tree[phrase.root]
        if root.dep == "conj" and not phrase.resolved:
            negated = is_denied(root)  # "23 lots and no plants"
        if having and (amount := _read_amount(root, phrase)) is not None:
            tails.append((*amount, negated))
            continue
        words, tokens = word_noun(root)
        preps: list[Tail] = []
        if root.pos == "NOUN" and not phrase.resolved:
            preps = [  # "an investment with much potential" has it in its words
                t
                for t in _list_completions(root, having, negated, findings)
                if having or t[0].last > phrase.last or not _is_circumstance(*t[:2], root.tree)
            ]
        if having and root.pos == "NOUN" and (negated or not is_scant(root)):
            # "has degrees in law" holds all of "has degrees: degrees in law".
            text = phrase.text.lower()
            repeated = preps and text.startswith(f"{words} {preps[0][1].split()[-1]} ")
            bare = text == root.word or (negated and text == words)  # "has no plans"
            if text == words:  # "has a motion perception deficit"
                words, tokens = root.word, [root.i]
            if negated or not (bare or repeated):
                tails.append((phrase, "" if bare else words, [] if bare else tokens, negated))
        elif not _is_light(root, frame):
            tails.append((phrase, direction, way_tokens, negated))
        tails += preps
    return tails


def _list_contents(frame: Frame) -> Iterator[Part]:
    """What is told or asked of somebody: a clause, or the object of a preposition."""
    return (part for part in frame.parts if part.role in {"clause", "purpose", "preposition"})


def _is_distinguished(noun: Node) -> bool:
    """Whether a clause or an adjective after a noun restricts it, without reference to the context.

    In "had the tower built" the participle is the predicate.
    """
    behind = noun.tree.nodes[noun.i + 1 : noun.right_edge.i + 1]
    points = any(n.tag == "PRP" or (n.tag == "DT" and n.dep != "det") for n in behind)
    known = any(c.word == "the" or c.dep == "poss" for c in noun.children)
    return not (points or known) and any(c.dep in _TELLING for c in noun.children if c.i > noun.i)


_TELLING = frozenset({"relcl", "acl", "amod"})
_SCOPES = frozenset({"comparison", "terms"})
"""Nouns of prepositions that limit what is said: "in terms of"."""


def _read_amount(unit: Node, phrase: Phrase) -> tuple[Phrase, str, list[int]] | None:
    """The amount and the measured thing: "27 days" and "leave" of "27 days of leave"."""
    what = phrase.text.partition(f"{unit.text} of ")[2]
    measured = is_counted(unit) and unit.lemma.lower() in SIZES
    amount = build_phrase(unit.tree, phrase.first, unit.i, unit.i)
    if amount is None or not what or not measured or what.count(" ") >= _MAX_FOLDED:
        return None
    return amount, what, list(range(unit.i + 2, phrase.last + 1))


def _list_completions(noun: Node, having: bool, negated: bool, findings: Findings) -> list[Tail]:
    """The tails of an object's prepositions, with the object in the relation: "improved access to".

    Phrases between them become part of it: "caused an increase in activity in" rats.
    """
    words, indices = _word_whole(noun)
    held: list[str] | None = []
    completions: list[Tail] = []
    parts = [p for c in noun.children if c.dep == "prep" for p in list_prepositional(c)]
    leads = {part.link[0].word for part in parts}
    ranged = _CHAINED if leads >= _CHAINED else frozenset()  # "from business to education"
    for part in (p for p in parts if p.link[0].word not in ranged):
        tails = _read_prepositional(part, findings)
        if held is None or not tails or not _SCOPES.isdisjoint(n.word for n in part.link):
            continue
        for phrase, prep, tokens, denied in tails:
            if prep != "per" and (prep not in {"of", "than"} or having):
                led = " ".join([words, *held, prep])
                completions.append((phrase, led, [*indices, *tokens], negated or denied))
        first, prep, tokens, _ = tails[0]
        indices = [*indices, *tokens, *range(first.first, first.last + 1)]
        whole = len(tails) == 1 and first.words <= MAX_HELD and not first.resolved
        held = [*held, prep, first.text] if whole else None
    return completions


def _word_whole(noun: Node) -> tuple[str, list[int]]:
    """The noun with its adjectives as part of a relation: "had adverse effects on"."""
    starts = [c.left_edge.i for c in noun.children if c.i < noun.i and c.dep in _NARROWING]
    phrase = build_phrase(noun.tree, min([noun.i, *starts]), noun.i, noun.i)
    if phrase is None or phrase.words >= _MAX_FOLDED or ")" in phrase.text:
        return word_noun(noun)
    return spell_noun(noun, noun.tree.nodes[phrase.first : phrase.last + 1])


def _is_light(noun: Node, frame: Frame) -> bool:
    """Whether the bare noun belongs to the verb: "took part in", "took place at"."""
    lemma = frame.verb.lemma.lower()
    if noun.tag != "NN" or noun.children or lemma not in _LIGHT:
        return False
    later = (p.place > noun.i for p in frame.parts if p.link or p.role == "time")
    return lemma == "take" or any(later)


def _read_prepositional(part: Part, findings: Findings) -> list[Tail]:
    """The object of a preposition, and the places that contain it, with the preposition's words."""
    link = [node for node in part.link if node.dep != "neg"]
    parted = any(c.word in {"neither", "nor"} for node in link for c in node.children)
    negated = len(link) < len(part.link) or parted or is_denied(part.root)
    words = " ".join(node.word for node in link)
    lacking = words == "with" and is_denied(part.root)  # "was done with no harm"
    negated = negated and not lacking
    root = part.root if part.gap is None else lift_kind(part.root, findings.frames)
    if words == "as" and part.place and findings.tree[part.place - 1].word == "such":
        words = "such as"
    if words.startswith("according") or not is_nominal(root) or _is_instead(part):
        return []
    if words.replace(" ", "_") in WORDS["asides"] or (root.word == "order" and words == "in"):
        return []
    items = list(list_conjuncts(root))
    if words == "with" and len(items) > 1 and any(c.dep == "acl" for c in items[-1].children):
        return []  # "with X and Y leading": a clause of its own
    tails: list[Tail] = []
    tokens = [node.i for node in link]
    for argument in findings.read_arguments(root, full=part.gap is None):
        phrase = _cut_lead(argument, part, findings)
        lacks = lacking and is_denied(findings.tree[argument.root])
        led = "without" if lacks else f"{part.limit} {words}".lstrip()
        tails.append((phrase, led, tokens, negated))
        onward = words in _CHAINED and phrase.last == phrase.root and phrase.label != "ORG"
        if words in LOCATIVE or onward:
            within = "in" if words in _WITHIN else words
            ids = [] if within != words else tokens
            tails += [
                (place, within, ids, negated) for place in list_containers(phrase, findings.tree)
            ]
    return tails


def _is_instead(part: Part) -> bool:
    """Whether the part is the denied alternative: "rather than"."""
    compared = any(node.head.tag in {"JJR", "RBR"} for node in part.link)
    return part.link[0].word == "than" and not compared


def _cut_lead(phrase: Phrase, part: Part, findings: Findings) -> Phrase:
    """The argument without its preposition: the years in "between 1829 and 1830"."""
    index = part.link[-1].i
    if phrase.resolved or part.gap is not None or not phrase.first <= index < phrase.last:
        return phrase
    return build_phrase(findings.tree, index + 1, phrase.last, phrase.root) or phrase


def _has_complement(frame: Frame) -> bool:
    return any(dep in frame.kids for dep in ("xcomp", "ccomp", "prep"))
