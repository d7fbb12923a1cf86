"""Short statements without pronouns, one per clause that yields a fact (`f_par`)."""

from __future__ import annotations

import re

from kpyramid.extraction.candidates import Candidate, Findings
from kpyramid.extraction.phrases import Phrase
from kpyramid.extraction.tree import Node, Tree
from kpyramid.extraction.types import Claim, Span
from kpyramid.extraction.verbs import SUBJECTS, is_predicate, read_group

_OTHER_CLAUSES = frozenset({"relcl", "advcl", "ccomp", "parataxis", "acl", "csubj"})
_WITHOUT_AUXILIARY = frozenset({"acl", "advcl", "conj", "relcl", "ROOT"})
_LINKS = frozenset({"cc", "mark", "punct"})
_MAX_WORDS = 60
_EMPTY_BRACKETS = re.compile(r"\s*\([\s,;:]*\)|(?<=,)\s*,")
_TRAILING = re.compile(r"[\s,;]+(and|or|but)$")


def write_clause_claim(verb: Node, head: Phrase, findings: Findings) -> Claim:
    """Return the clause of `verb` with its subject and its pronouns spelled out."""
    tree = findings.tree
    kept = _collect_clause(verb)
    subject = next((c for c in verb.children if c.dep in SUBJECTS | {"expl"}), None)
    span = _cover(tree, kept)
    spans = {span}
    words: list[str] = []
    previous = None
    replaced: set[int] = set()
    if subject is None or subject.tag in {"WDT", "WP"} or head.resolved:
        words.append(head.text)
        spans.add(head.span)
        if subject is not None:
            replaced = {i for i in kept if subject.left_edge.i <= i <= subject.right_edge.i}
    has_auxiliary = any(c.dep in {"aux", "auxpass"} for c in verb.children)
    for i in kept:
        token = tree[i]
        if i in replaced or (token.tag == "CC" and not words):
            continue
        text = token.text
        if i == verb.i and verb.tag in {"VBN", "VBG"} and verb.dep in _WITHOUT_AUXILIARY:
            text = read_group(verb).text if not has_auxiliary else text
        if token.tag in {"PRP", "PRP$"}:
            antecedent = findings.antecedents.resolve_pronoun(token)
            if antecedent is not None:
                text = antecedent.text + ("'s" if token.tag == "PRP$" else "")
                spans.add(antecedent.span)
        glued = previous == i - 1 and i > 0 and not tree[i - 1].space
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


def _collect_clause(verb: Node) -> list[int]:
    """Return the tokens of the verb's own clause, without coordinated and dependent clauses."""
    kept, stack = [verb.i], [verb]
    while stack:
        for child in stack.pop().children:
            if child.dep in _OTHER_CLAUSES or (child.dep == "conj" and is_predicate(child)):
                continue
            if child.head is verb and child.dep in _LINKS:
                continue
            kept.append(child.i)
            stack.append(child)
    return sorted(kept)


def _cover(tree: Tree, tokens: list[int]) -> Span:
    last = tree[tokens[-1]]
    return Span(tree[tokens[0]].idx, last.idx + len(last.text))
