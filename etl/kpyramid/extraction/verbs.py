"""Verb groups of a dependency parse: their wording, polarity, modality, voice and subjects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kpyramid.extraction.tree import Node

SUBJECTS = frozenset({"nsubj", "nsubjpass"})
# Participles that describe a lasting state: "a town located in X" holds now, "a book written
# by X" happened once.
_STATIVE = frozenset(
    (
        "locate base situate know call name bound border own operate surround affiliate entitle "
        "title devote compose spell headquarter associate dedicate consider populate inhabit"
    ).split()
)
_FULL_MODALS = {"'ll": "will", "wo": "will", "ca": "can", "'d": "would", "sha": "shall"}
_SINGULAR = {"are": "is", "were": "was"}
_IRREGULAR_THIRD = {"have": "has", "be": "is", "do": "does", "go": "goes"}
REPORTING = frozenset(
    (
        "say state claim report argue believe suggest note announce think write estimate allege "
        "explain assert maintain declare add insist"
    ).split()
)


@dataclass(frozen=True, slots=True)
class VerbGroup:
    """A predicate's wording without negation, modals and adverbs, and the tokens it came from."""

    text: str
    tokens: tuple[int, ...]
    negated: bool
    modality: str | None
    passive: bool


def inflect_third(lemma: str) -> str:
    """Return the third person singular present of a regular verb ("carry" gives "carries")."""
    if lemma in _IRREGULAR_THIRD:
        return _IRREGULAR_THIRD[lemma]
    if lemma.endswith("y") and lemma[-2:-1] not in "aeiou":
        return lemma[:-1] + "ies"
    return lemma + ("es" if lemma.endswith(("s", "x", "z", "ch", "sh", "o")) else "s")


def is_predicate(token: Node) -> bool:
    """Return whether `token` heads a clause: a verb that is neither auxiliary nor modifier."""
    if token.pos not in {"VERB", "AUX"}:
        return False
    return token.dep not in {"aux", "auxpass", "amod", "compound", "prep", "case", "det", "nmod"}


def is_stative(participle: Node) -> bool:
    """Whether a past participle says what holds ("located"), not what happened ("written")."""
    return participle.lemma.lower() in _STATIVE


def is_copula(token: Node) -> bool:
    return token.lemma == "be" and token.dep not in {"aux", "auxpass"}


def read_modal(kids: Mapping[str, list[Node]]) -> str | None:
    """The modal verb among the auxiliaries, in full."""
    for node in kids.get("aux", ()):
        if node.tag == "MD":
            return _FULL_MODALS.get(node.word, node.word)
    return None


def read_group(verb: Node, plural: bool = False) -> VerbGroup:
    """Return the verb group of a predicate, taking auxiliaries over from a coordinated verb.

    A copula is put in the singular, as the kinds it joins are; another verb agrees with its
    subject, which may be `plural`.
    """
    kids = list(verb.children)
    aux = [c for c in kids if c.dep in {"aux", "auxpass"}]
    negated = any(c.dep == "neg" or c.word == "never" for c in kids)
    lender = _find_lender(verb) if not aux else None
    if lender is not None:
        aux = [c for c in lender.children if c.dep in {"aux", "auxpass"}]
    modal = next((a.word for a in aux if a.tag == "MD"), None)
    modality = _FULL_MODALS.get(modal or "", modal)
    own = [a for a in aux if a.tag not in {"MD", "TO"} and a.lemma != "do"]
    particles = [c for c in kids if c.dep == "prt"]
    passive = any(c.dep in {"auxpass", "nsubjpass"} for c in kids) or (
        lender is not None and verb.tag == "VBN" and any(a.dep == "auxpass" for a in aux)
    )
    did = any(a.word == "did" for a in aux)
    words = [a.word for a in own] + [verb.word]
    if not own:
        words = [_word_bare_verb(verb, modal is not None or bool(aux), did, plural)]
        passive = passive or (verb.tag == "VBN" and verb.dep in {"acl", "advcl", "relcl"})
    words = [{"'s": "is", "'re": "are", "'ve": "have", "'m": "am"}.get(w, w) for w in words]
    if words[0] in {"be", "been", "being", "am"}:
        words[0] = "are" if plural else "is"
    if words[0] in _SINGULAR and (len(words) == 1 or not plural):
        words[0] = _SINGULAR[words[0]]
    words += [p.word for p in particles]
    borrowed = lender is not None and bool(own)
    tokens = [t.i for t in [*([] if borrowed else own), verb, *particles]]
    return VerbGroup(" ".join(words), tuple(sorted(tokens)), negated, modality, passive)


def _word_bare_verb(verb: Node, has_aux: bool, did: bool, plural: bool) -> str:
    if did:
        return f"did {verb.lemma.lower()}"
    if verb.tag == "VBN" and verb.dep in {"acl", "advcl", "relcl", "conj", "ROOT"}:
        agent = any(c.dep == "agent" or c.word == "by" for c in verb.children)
        if verb.dep == "conj" and verb.head.tag != "VBN" and not agent:
            return str(verb.word)
        if is_stative(verb):
            return f"{'are' if plural else 'is'} {verb.word}"
        return f"{'were' if plural else 'was'} {verb.word}"
    if verb.tag in {"VBG", "VB", "VBP"} or has_aux:
        lemma = verb.lemma.lower()
        return lemma if plural and lemma != "be" else inflect_third(lemma)
    return str(verb.word)


def _find_lender(verb: Node) -> Node | None:
    """Return the verb whose auxiliaries a coordinated verb shares ("was built and opened")."""
    head, hops = verb, 0
    while head.dep == "conj" and hops < 8 and not any(c.dep in SUBJECTS for c in head.children):
        head, hops = head.head, hops + 1
        if any(c.dep in {"aux", "auxpass"} for c in head.children):
            same_form = head.tag == verb.tag
            return head if same_form else None
    return None


def find_subjects(verb: Node) -> tuple[list[Node], str]:
    """Return the subject tokens of a predicate and how they were reached.

    The way is "own", "shared" (coordination, control), "antecedent" (relative and participial
    clauses) or "none". At most eight steps up the tree, so malformed parses end.
    """
    way, at = "own", verb
    for _ in range(8):
        own = [c for c in at.children if c.dep in SUBJECTS]
        if own:
            if at.dep == "relcl" and own[0].tag in {"WDT", "WP"}:
                return [at.head], "antecedent"
            return own, way
        if at.dep == "acl" and at.tag in {"VBN", "VBG"} and at.head.pos not in {"VERB", "AUX"}:
            return [at.head], "antecedent"
        if at.dep == "relcl":
            return [at.head], "antecedent"
        if at.dep in {"conj", "xcomp"} or (
            at.dep == "advcl" and at.tag in {"VBN", "VBG"} and not _has_marker(at)
        ):
            if at.dep == "xcomp":
                controlled = [c for c in at.head.children if c.dep == "dobj"]
                if controlled:
                    return controlled, "object_control"
            if at.head.pos not in {"VERB", "AUX"}:
                break
            at, way = at.head, "shared"
            continue
        break
    return [], "none"


def _has_marker(verb: Node) -> bool:
    return any(c.dep == "mark" for c in verb.children)
