"""Short statements without pronouns, one per clause that yields a fact (`f_par`)."""

from __future__ import annotations

import re

from kpyramid.extraction.facts.candidates import Candidate, Findings
from kpyramid.extraction.propositions.clausal import state_clause
from kpyramid.extraction.syntax.frames import RELATIVES, Frame, find_infinitive_mark
from kpyramid.extraction.syntax.phrases import Phrase, find_phrase
from kpyramid.extraction.syntax.predicates import word_group
from kpyramid.extraction.syntax.tree import Node, Tree
from kpyramid.extraction.syntax.verbs import SUBJECTS, is_predicate
from kpyramid.extraction.text.sentences import Span
from kpyramid.extraction.types import Argument, Claim

_OTHER_CLAUSES = frozenset({"relcl", "advcl", "ccomp", "parataxis", "acl", "csubj"})
_WITHOUT_AUXILIARY = frozenset({"acl", "advcl", "conj", "pcomp", "relcl", "ROOT"})
_LINKS = frozenset({"cc", "mark", "punct"})
_ENCLOSING = frozenset({",", "(", ")", "--", "\u2013", "\u2014"})
_JOINING = frozenset({"and", "but", "or", "nor", "yet", "so"})
_PRONOUNS = frozenset({"PRON", "DET"})
_MAX_WORDS = 60
_EMPTY_BRACKETS = re.compile(r"\s*\([\s,;:]*\)|(?<=,)\s*,")
_TRAILING = re.compile(r"[\s,;]+(and|or|but)$")


def write_clause_claim(verb: Node, head: Phrase, findings: Findings) -> Claim:
    """Return the clause of `verb` with its subject and its pronouns spelled out."""
    tree, frame = findings.tree, findings.frames[verb.i]
    top = frame.top
    kept = _collect_clause(frame)
    clause = (*frame.chain, verb)
    subject = next((c for at in clause for c in at.children if c.dep in SUBJECTS | {"expl"}), None)
    spans = {_cover(tree, kept)}

    def rename(token: Node) -> str | None:
        if token.tag == "WP$" and frame.clause is not None:
            named = find_phrase(frame.clause.head)
            return f"{named.text}'s" if named is not None else None
        if token.tag not in {"PRP", "PRP$"}:
            return None
        antecedent = findings.antecedents.resolve_pronoun(token)
        if antecedent is None:
            return None
        spans.add(antecedent.span)
        return antecedent.text + ("'s" if token.tag == "PRP$" else "")

    words: list[str] = []
    previous = None
    among, replaced = set(kept), set[int]()
    named = None
    alone = subject is not None and not any(c.dep == "conj" for c in subject.children)
    if subject is None or subject.tag in RELATIVES or (head.resolved and alone):
        words.append(head.text)
        spans.add(head.span)
        named = Argument("subject", head.text, head.span if head.literal else None)
        if subject is not None:
            replaced = {i for i in kept if subject.left_edge.i <= i <= subject.right_edge.i}
    bare = not any(c.dep in {"aux", "auxpass"} for c in top.children)
    nodes = tree.nodes
    for i in kept:
        token = nodes[i]
        if i in replaced or (not words and token.word in _JOINING):
            continue
        text = token.text
        if text in _ENCLOSING and (i - 1 not in among or i + 1 not in among):
            continue  # what it enclosed is left out
        if token.pos in _PRONOUNS:
            text = rename(token) or text
        if bare and i == top.i and token.tag in {"VBN", "VBG"}:
            plural = tree[head.root].tag in {"NNS", "NNPS"}
            text = (
                word_group(findings.frames[i], findings.frames, plural).text
                if token.dep in _WITHOUT_AUXILIARY
                else text
            )
        glued = previous == i - 1 and i > 0 and not nodes[i - 1].space
        if glued and words:
            words[-1] += text
        else:
            words.append(text)
        previous = i
    predicate, arguments = state_clause(frame, findings.frames, named, rename)
    if arguments and any(part.gap is not None for part in frame.parts):
        # What a relative word stands for is elsewhere: the words go in plain order.
        words = [arguments[0].text, predicate, *(_lower_article(a.text) for a in arguments[1:])]
    ordered = tuple(sorted(spans, key=lambda s: (s.start, s.end)))
    return Claim(_tidy_statement(words), ordered, predicate, arguments)


def _lower_article(text: str) -> str:
    first = text.partition(" ")[0]
    return text[0].lower() + text[1:] if first in {"The", "A", "An"} else text


def _tidy_statement(words: list[str]) -> str:
    text = " ".join(" ".join(words[:_MAX_WORDS]).split())
    if text.count("(") != text.count(")"):
        text = text.replace("(", "").replace(")", "")
    text = _TRAILING.sub("", _EMPTY_BRACKETS.sub("", text)).strip(" ,;:.-\u2013")
    return f"{text}."


def write_phrase_claim(candidate: Candidate) -> Claim:
    """Return the claim of a fact stated inside a noun phrase."""
    head, tail = candidate.head, candidate.tail
    text = f"{head.text} {candidate.relation} {tail.text}."
    spans = {head.span, tail.span}
    if not head.resolved and not tail.resolved:
        spans = {Span(min(head.span.start, tail.span.start), max(head.span.end, tail.span.end))}
    arguments = tuple(
        Argument(role, phrase.text, phrase.span if phrase.literal else None)
        for role, phrase in (("subject", head), ("object", tail))
    )
    ordered = tuple(sorted(spans, key=lambda s: (s.start, s.end)))
    return Claim(text, ordered, candidate.relation, arguments)


def _collect_clause(frame: Frame) -> list[int]:
    """Return the tokens of a clause and of what governs it, without other clauses."""
    clause = [*frame.chain, frame.verb]
    kept, stack = {at.i for at in clause}, list(clause)
    if frame.chain and (mark := find_infinitive_mark(frame.verb)) is not None:
        kept.add(mark.i)
    while stack:
        at = stack.pop()
        for child in at.children:
            if child.i in kept or child.dep in _OTHER_CLAUSES:
                continue
            if child.dep == "conj" and is_predicate(child):
                continue
            if (child.dep == "xcomp" and at in frame.chain) or (
                at in clause and child.dep in _LINKS
            ):
                continue
            kept.add(child.i)
            stack.append(child)
    return sorted(kept)


def _cover(tree: Tree, tokens: list[int]) -> Span:
    last = tree[tokens[-1]]
    return Span(tree[tokens[0]].idx, last.idx + len(last.text))
