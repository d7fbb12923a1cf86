"""Short statements without pronouns, one per clause that yields a fact (`f_par`)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kpyramid.extraction.candidates import Candidate, Findings
from kpyramid.extraction.phrases import Phrase
from kpyramid.extraction.types import Claim, Span
from kpyramid.extraction.verbs import SUBJECTS, is_predicate, read_group

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_OTHER_CLAUSES = frozenset({"relcl", "advcl", "ccomp", "parataxis", "acl", "csubj"})
_WITHOUT_AUXILIARY = frozenset({"acl", "advcl", "conj", "relcl", "ROOT"})
_LINKS = frozenset({"cc", "mark", "punct"})
_MAX_WORDS = 60
_EMPTY_BRACKETS = re.compile(r"\s*\([\s,;:]*\)|(?<=,)\s*,")
_TRAILING = re.compile(r"[\s,;]+(and|or|but)$")


def write_clause_claim(verb: Token, head: Phrase, findings: Findings) -> Claim:
    """Return the clause of `verb` with its subject and its pronouns spelled out."""
    doc = findings.doc
    kept = _collect_clause(verb)
    subject = next((c for c in verb.children if c.dep_ in SUBJECTS | {"expl"}), None)
    span = _cover(doc, kept)
    spans = {span}
    words: list[str] = []
    previous = None
    replaced: set[int] = set()
    if subject is None or subject.tag_ in {"WDT", "WP"} or head.resolved:
        words.append(head.text)
        spans.add(head.span)
        if subject is not None:
            replaced = {i for i in kept if subject.left_edge.i <= i <= subject.right_edge.i}
    has_auxiliary = any(c.dep_ in {"aux", "auxpass"} for c in verb.children)
    for i in kept:
        token = doc[i]
        if i in replaced or (token.tag_ == "CC" and not words):
            continue
        text = token.text
        if i == verb.i and verb.tag_ in {"VBN", "VBG"} and verb.dep_ in _WITHOUT_AUXILIARY:
            text = read_group(verb).text if not has_auxiliary else text
        if token.tag_ in {"PRP", "PRP$"}:
            antecedent = findings.antecedents.resolve_pronoun(token)
            if antecedent is not None:
                text = antecedent.text + ("'s" if token.tag_ == "PRP$" else "")
                spans.add(antecedent.span)
        glued = previous == i - 1 and i > 0 and not doc[i - 1].whitespace_
        if glued and words:
            words[-1] += text
        else:
            words.append(text)
        previous = i
    text = " ".join(" ".join(words[:_MAX_WORDS]).split())
    if text.count("(") != text.count(")"):
        text = text.replace("(", "").replace(")", "")
    text = _TRAILING.sub("", _EMPTY_BRACKETS.sub("", text)).strip(" ,;:.-\u2013")
    return Claim(f"{text}.", tuple(sorted(spans, key=lambda s: (s.start, s.end))))


def write_phrase_claim(candidate: Candidate) -> Claim:
    """Return the claim of a fact stated inside a noun phrase."""
    head, tail = candidate.head, candidate.tail
    text = f"{head.text} {candidate.relation} {tail.text}."
    spans = {head.span, tail.span}
    if not head.resolved and not tail.resolved:
        spans = {Span(min(head.span.start, tail.span.start), max(head.span.end, tail.span.end))}
    return Claim(text, tuple(sorted(spans, key=lambda s: (s.start, s.end))))


def _collect_clause(verb: Token) -> list[int]:
    """Return the tokens of the verb's own clause, without coordinated and dependent clauses."""
    kept, stack = [verb.i], [verb]
    while stack:
        for child in stack.pop().children:
            if child.dep_ in _OTHER_CLAUSES or (child.dep_ == "conj" and is_predicate(child)):
                continue
            if child.head is verb and child.dep_ in _LINKS:
                continue
            kept.append(child.i)
            stack.append(child)
    return sorted(kept)


def _cover(doc: Doc, tokens: list[int]) -> Span:
    last = doc[tokens[-1]]
    return Span(doc[tokens[0]].idx, last.idx + len(last.text))
