"""The words of a clause's predicate: auxiliaries, negation and modals as they stand."""

from __future__ import annotations

from dataclasses import dataclass

from kpyramid.extraction.syntax.frames import Frame, find_infinitive_mark
from kpyramid.extraction.syntax.stance import is_negated
from kpyramid.extraction.syntax.tree import Node
from kpyramid.extraction.syntax.verbs import VerbGroup, inflect_third, is_stative, read_modal

_OWN = ("aux", "auxpass", "neg", "prt")
_AUXILIARIES = ("aux", "auxpass")
_BORROWED = ("aux", "auxpass", "neg")
_PARTICIPIAL = frozenset({"acl", "advcl", "relcl", "pcomp"})
_LOCATING = frozenset("locate situate base headquarter".split())
_MAX_HOPS = 12
_FULL = {"'s": "is", "'re": "are", "'ve": "have", "'m": "am", "'d": "had"}
_HAVE = frozenset({"have", "has", "having"})
_SINGULAR = {"are": "is", "were": "was"}


@dataclass(slots=True)
class Predicate:
    """Tokens of a predicate; `lent` come from a coordinated verb, `be` is put before them."""

    tokens: list[int]
    lent: list[int]
    be: str | None
    negated: bool
    modality: str | None


def read_predicate(frame: Frame, frames: dict[int, Frame]) -> Predicate:
    """The predicate of a clause, merged with those above it ("wants to buy")."""
    tokens: list[int] = []
    negated = False
    for verb in frame.chain:
        kids = frames[verb.i].kids
        tokens += _list_words(verb, frames[verb.i])
        tokens += [node.i for node in kids.get("acomp", ())]
        negated = negated or is_negated(verb)
    tokens += _list_words(frame.verb, frame)
    if frame.noun is not None:
        tokens += range(frame.noun.left_edge.i, frame.noun.i + 1)
    if frame.chain and frame.verb.dep == "conj":
        mark = find_infinitive_mark(frame.verb)
        tokens += [mark.i] if mark is not None and mark.i not in tokens else []
    negated = negated or is_negated(frame.verb)
    tokens.sort()
    top = frames[frame.top.i]
    lent: list[int] = []
    modality = read_modal(top.kids)
    if modality is None and any(node.tag == "TO" for node in top.kids.get("aux", ())):
        modality = "to"  # an infinitive does not say that it is so
    if frame.lender is not None:
        kids = frames[frame.lender.i].kids
        lent = sorted(node.i for dep in _BORROWED for node in kids.get(dep, ()))
        negated = negated or "neg" in kids
        modality = modality or read_modal(kids)
    be = None
    if not lent and _lacks_auxiliary(top):
        verb = top.verb
        past = _is_past(verb, frames) if verb.tag == "VBG" else not is_stative(verb)
        be = _inflect_be(frame.subjects[0], past)
    return Predicate(tokens, lent, be, negated, modality)


def _list_words(verb: Node, frame: Frame) -> list[int]:
    """The verb with its auxiliaries, particles and the adverbs among them."""
    found = [verb.i, *(node.i for dep in _OWN for node in frame.kids.get(dep, ()))]
    adverbs = frame.kids.get("advmod")
    if adverbs:
        start = max((node.i for node in _list_before(frame)), default=verb.left_edge.i - 1)
        found += [
            node.i
            for node in adverbs
            if start < node.i < verb.i and not node.children and node.tag != "WRB"
        ]
    return found


def _list_before(frame: Frame) -> list[Node]:
    deps = ("nsubj", "nsubjpass", "expl", "csubj", "punct")
    found = (node for dep in deps for node in frame.kids.get(dep, ()))
    return [node for node in found if node.i < frame.verb.i]


def _lacks_auxiliary(frame: Frame) -> bool:
    """Whether a participle stands where a clause would have a form of "be"."""
    if any(dep in frame.kids for dep in _AUXILIARIES):
        return False
    verb = frame.verb
    return verb.dep in _PARTICIPIAL if verb.tag == "VBG" else _is_bare_participle(frame)


def _is_bare_participle(frame: Frame) -> bool:
    """Whether the verb is a passive participle by itself: "boats built in Oslo".

    With an active subject, or joined to an active verb, it is a past tense the tagger missed;
    with an agent and no object the tagger has missed the participle.
    """
    verb, kids = frame.verb, frame.kids
    if "nsubj" in kids:
        # "... and the mill located in Kent": without an object these are sure to lack their "is".
        return verb.tag == "VBN" and verb.lemma in _LOCATING and "dobj" not in kids
    by = "agent" in kids and "dobj" not in kids
    if verb.tag != "VBN" and not (by and verb.tag == "VBD"):
        return False
    if verb.dep == "conj":
        # "is a school and classified as" shares the "is" of the copula.
        shared = verb.head.lemma == "be" and "dobj" not in kids
        return verb.head.tag == "VBN" or by or shared or "nsubjpass" in kids
    return verb.dep in _PARTICIPIAL or verb.dep == "ROOT"


def _inflect_be(subject: Node, past: bool) -> str:
    plural = subject.tag in {"NNS", "NNPS"} or any(c.dep == "conj" for c in subject.children)
    if past:
        return "were" if plural else "was"
    return "are" if plural else "is"


def _is_past(verb: Node, frames: dict[int, Frame]) -> bool:
    """Whether the nearest finite verb, here or above, is in the past tense."""
    at = verb
    for _ in range(_MAX_HOPS):
        frame = frames.get(at.i)
        if frame is not None:
            for dep in _AUXILIARIES:
                for node in frame.kids.get(dep, ()):
                    if node.tag in {"VBD", "VBZ", "VBP", "MD"}:
                        return node.tag == "VBD"
            if at.tag in {"VBD", "VBZ", "VBP"}:
                return at.tag == "VBD"
        if at.head is at:
            break
        at = at.head
    return False


def word_group(frame: Frame, frames: dict[int, Frame], plural: bool = False) -> VerbGroup:
    """The verb group in a fact's wording: no negation, no adverbs, finite where it can be.

    A copula is put in the singular, as the kinds it joins are; another verb agrees with its
    subject, which may be `plural`.
    """
    verb, kids = frame.verb, frame.kids
    own = [node for dep in _AUXILIARIES for node in kids.get(dep, ())]
    lender = frames[frame.lender.i] if frame.lender is not None and not frame.chain else None
    if lender is not None:
        own = [node for dep in _AUXILIARIES for node in lender.kids.get(dep, ())]
    own.sort(key=lambda node: node.i)
    modality = read_modal(kids) or (read_modal(lender.kids) if lender is not None else None)
    did = any(node.word == "did" for node in own)
    helped = bool(own)
    own = [node for node in own if node.tag not in {"MD", "TO"} and node.lemma != "do"]
    particles = kids.get("prt", [])
    passive = "auxpass" in kids or "nsubjpass" in kids
    if verb.tag == "VBN":
        passive = passive or (lender is not None and "auxpass" in lender.kids)
        passive = passive or (not own and verb.dep in {"acl", "advcl", "relcl"})
    if modality is not None:
        words = [modality, *(node.word for node in own), verb.word]
    elif own:
        words = [_FULL.get(node.word, node.word) for node in own] + [verb.word]
    else:
        words = [_word_bare_verb(frame, helped, did, plural)]
    if words[0] in {"be", "been", "being", "am"}:
        words[0] = "are" if plural else "is"
    if words[0] in _SINGULAR and (len(words) == 1 or not plural):
        words[0] = _SINGULAR[words[0]]
    elif own and words[0] in _HAVE and not (verb.lemma == "be" and own[0].tag == "VBP"):
        words[0] = "have" if plural else "has"
    text = " ".join([*words, *(node.word for node in particles)])
    tokens = {verb.i, *(node.i for node in particles)}
    if lender is None or not own:
        tokens.update(node.i for node in own)
    return VerbGroup(text, tuple(sorted(tokens)), is_negated(verb), modality, passive)


def _word_bare_verb(frame: Frame, has_aux: bool, did: bool, plural: bool) -> str:
    verb = frame.verb
    lemma = verb.lemma.lower()
    if did:
        return f"did {lemma}"
    if _is_bare_participle(frame):
        past = not is_stative(verb)
        be = ("were" if plural else "was") if past else ("are" if plural else "is")
        return f"{be} {verb.word}"
    if verb.tag in {"VBG", "VB", "VBP"} or has_aux or (plural and verb.tag == "VBZ"):
        return lemma if plural and lemma != "be" else inflect_third(lemma)
    return verb.word
