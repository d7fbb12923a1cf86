"""From candidate facts to an extraction: mentions, claims, each fact once."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, replace

from kpyramid.documents.sentences import Span
from kpyramid.extraction.facts.candidates import (
    Candidate,
    Findings,
    find_fault,
    is_location,
    score_candidate,
)
from kpyramid.extraction.propositions import ENCLOSING, state_clause
from kpyramid.extraction.syntax.predicates import (
    RELATIVES,
    SUBJECTS,
    Frame,
    find_infinitive_mark,
    is_predicate,
    word_group,
)
from kpyramid.extraction.syntax.tree import (
    PLACES,
    Node,
    Phrase,
    Tree,
    build_phrase,
    find_phrase,
    list_conjuncts,
)
from kpyramid.extraction.types import Argument, Claim, Extraction, Fact, Mention

# Mentions: named entities first, then noun chunks (`f_ent`).

_CHUNK_HEADS = frozenset("nsubj nsubjpass dobj pobj pcomp dative attr appos oprd ROOT".split())


def list_phrases(tree: Tree) -> list[Phrase]:
    """Return the entities of the text, split at commas unless a comma belongs to a date."""
    found: dict[Span, Phrase] = {}
    for start, last in tree.list_entities():
        first = start
        literal = tree[start].entity in {"DATE", "MONEY", "QUANTITY", "CARDINAL", "TIME"}
        for i in range(start, last + 2):
            if i == last + 1 or (tree[i].text == "," and not literal):
                phrase = build_phrase(tree, first, i - 1, i - 1) if i > first else None
                if phrase is not None:
                    found.setdefault(phrase.span, phrase)
                first = i + 1
    covered = {i for p in found.values() for i in range(p.first, p.last + 1)}
    for node in tree.nodes:
        if node.pos not in {"NOUN", "PROPN"} or node.i in covered or not _heads_chunk(node):
            continue
        phrase = find_phrase(node)
        if phrase is not None and phrase.literal and "," not in phrase.text:
            found.setdefault(phrase.span, phrase)
    return sorted(found.values(), key=lambda p: (p.span.start, p.span.end))


def _heads_chunk(node: Node) -> bool:
    at = node
    while at.dep == "conj" and at.head is not at:
        at = at.head
    return at.dep in _CHUNK_HEADS


def assign_mentions(
    phrases: list[Phrase], claims: tuple[Claim, ...], arguments: dict[Span, Phrase]
) -> tuple[Mention, ...]:
    """Return one mention per entity and claim whose spans contain it, arguments included."""
    pool = {p.span: p for p in phrases}
    for span, phrase in arguments.items():
        if "," not in phrase.text:
            pool.setdefault(span, phrase)
    ordered = sorted(pool.values(), key=lambda p: (p.span.start, p.span.end))
    starts = [phrase.span.start for phrase in ordered]
    mentions: list[Mention] = []
    for number, claim in enumerate(claims):
        inside: set[int] = set()
        for span in claim.spans:
            at = bisect_left(starts, span.start)
            while at < len(ordered) and starts[at] < span.end:
                if ordered[at].span.end <= span.end:
                    inside.add(at)
                at += 1
        mentions += (_write_mention(number, ordered[at]) for at in sorted(inside))
    return tuple(mentions)


def _write_mention(claim: int, phrase: Phrase) -> Mention:
    label = "NOUN" if phrase.label == "MISC" else phrase.label
    return Mention(claim, phrase.text, label, phrase.span)


# Claims: short statements without pronouns, one per clause that yields a fact (`f_par`).

_OTHER_CLAUSES = frozenset({"relcl", "advcl", "ccomp", "parataxis", "acl", "csubj"})
_WITHOUT_AUXILIARY = frozenset({"acl", "advcl", "conj", "pcomp", "relcl", "ROOT"})
_LINKS = frozenset({"cc", "mark", "punct"})
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
        if text in ENCLOSING and (i - 1 not in among or i + 1 not in among):
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


# The extraction: candidates filtered and scored, each fact once, with its claim.


@dataclass(frozen=True, slots=True)
class _Judged:
    """A candidate that stands, who says so when the text does not, and how sure it is."""

    candidate: Candidate
    source: str | None
    confidence: float


def assemble_extraction(findings: Findings) -> Extraction:
    """The facts that stand, in the order of the text, with their claims and mentions."""
    kept: dict[tuple[object, ...], _Judged] = {}
    depths = _count_brackets(findings.tree)
    for found in findings.candidates:
        candidate = _drop_own_name(found)
        reason = find_fault(candidate) or _find_bracket(candidate, depths)
        if reason is not None:
            first = min(candidate.tail.first, *candidate.tokens, candidate.tail.last)
            findings.drop(reason, first, candidate.tail.last)
            continue
        source = _name_source(candidate, findings)
        words = (candidate.head.text, candidate.relation, candidate.tail.text)
        key = (*words, candidate.negated, candidate.modality, source)
        score = score_candidate(candidate, findings, attributed=source is not None)
        if key not in kept or kept[key].confidence < score:
            kept[key] = _Judged(candidate, source, score)
    ordered = sorted(kept.values(), key=lambda fact: _place(fact.candidate))
    claims, numbers = _number_claims([fact.candidate for fact in ordered], findings)
    facts = tuple(
        _write_fact(fact, claim, findings) for fact, claim in zip(ordered, numbers, strict=True)
    )
    arguments = {
        p.span: p for f in ordered for p in (f.candidate.head, f.candidate.tail) if p.literal
    }
    mentions = assign_mentions(list_phrases(findings.tree), claims, arguments)
    dropped = sorted(set(findings.dropped), key=lambda d: (d.span.start, d.span.end, d.reason))
    return Extraction(claims, mentions, facts, tuple(dropped))


def _count_brackets(tree: Tree) -> list[int]:
    """How many brackets are open at each token; none is open at the start of a sentence."""
    depths, depth = [], 0
    starts = {first for first, _ in tree.sentences}
    for node in tree.nodes:
        depth = 0 if node.i in starts else depth
        depth -= node.text.endswith((")", "]")) and depth > 0
        depths.append(depth)
        depth += node.text.startswith(("(", "["))
    return depths


def _find_bracket(candidate: Candidate, depths: list[int]) -> str | None:
    """The fault of a clause one of whose arguments is only an aside to it: "(p = 0.002)"."""
    if candidate.clause is None:
        return None
    ends = (candidate.head, candidate.tail)
    inside = any(not end.resolved and depths[end.root] > depths[candidate.clause] for end in ends)
    return "in_brackets" if inside else None


def _drop_own_name(candidate: Candidate) -> Candidate:
    """The candidate with "degree" as its tail where that is the head's own: "her degree"."""
    head, tail = candidate.head.text, candidate.tail.text
    if candidate.tail.is_named and candidate.tail.literal:
        return candidate  # "Macy founded Macy's Department Store"
    for mark in ("'s ", "' "):
        if tail.startswith(head + mark):
            text = tail.removeprefix(head + mark).removeprefix("own ")
            return replace(candidate, tail=replace(candidate.tail, text=text, literal=False))
    return candidate


def _name_source(candidate: Candidate, findings: Findings) -> str | None:
    """Who says it, by name where a pronoun tells; None when the text says it itself."""
    if candidate.clause is None:
        return None
    stance = findings.stances.get(candidate.clause)
    source = stance.source if stance is not None else None
    if source is None:
        return None
    phrase = findings.antecedents.resolve_pronoun(source) or find_phrase(source)
    return phrase.text if phrase is not None else source.text


def _place(candidate: Candidate) -> tuple[int, int, int, str]:
    anchor = candidate.clause if candidate.clause is not None else candidate.tail.first
    return anchor, candidate.tail.span.start, candidate.head.span.start, candidate.relation


def _number_claims(
    candidates: list[Candidate], findings: Findings
) -> tuple[tuple[Claim, ...], list[int]]:
    claims: list[Claim] = []
    known: dict[int | Claim, int] = {}
    numbers: list[int] = []
    for candidate in candidates:
        key: int | Claim
        if candidate.clause is None:
            claim = write_phrase_claim(candidate)
            key = claim
        else:
            key = candidate.clause
            if key not in known:
                verb = findings.tree[candidate.clause]
                head = findings.claim_heads.get(verb.i, candidate.head)
                claim = write_clause_claim(verb, head, findings)
        if key not in known:
            known[key] = len(claims)
            claims.append(claim)
        numbers.append(known[key])
    return tuple(claims), numbers


def _write_fact(fact: _Judged, claim: int, findings: Findings) -> Fact:
    tree, candidate = findings.tree, fact.candidate
    frame = findings.frames[candidate.clause] if candidate.clause is not None else None
    return Fact(
        claim=claim,
        head=candidate.head.text,
        relation=_fit_relation(candidate),
        tail=candidate.tail.text,
        head_span=candidate.head.span if candidate.head.literal else None,
        relation_span=_find_relation_span(candidate, tree),
        tail_span=candidate.tail.span if candidate.tail.literal else None,
        negated=candidate.negated,
        modality=candidate.modality,
        attribution=fact.source,
        qualifiers=_list_qualifiers(frame, candidate.tail) if frame is not None else {},
        confidence=fact.confidence,
    )


def _fit_relation(candidate: Candidate) -> str:
    """Return the relation, with "is in" spelled as the location it states."""
    words = candidate.relation.split()
    return f"{words[0]} located {words[1]}" if is_location(words) else candidate.relation


def _find_relation_span(candidate: Candidate, tree: Tree) -> Span | None:
    tokens = sorted(set(candidate.tokens))
    if not tokens or tokens[-1] - tokens[0] + 1 != len(tokens):
        return None
    last = tree[tokens[-1]]
    return Span(tree[tokens[0]].idx, last.idx + len(last.text))


def _list_qualifiers(frame: Frame, tail: Phrase) -> dict[str, str]:
    """The other parts of the clause but the tail, by role: time, place or their preposition.

    Of several in one role the first.
    """
    found: dict[str, str] = {}
    for part in frame.parts:
        phrase = find_phrase(part.root)
        if phrase is None or part.gap is not None:
            continue
        if any(tail.first <= each.i <= tail.last for each in list_conjuncts(part.root)):
            continue
        words = " ".join(node.word for node in part.link)
        if part.role == "time":
            found.setdefault("time", phrase.text)
        elif part.role == "preposition" and part.link[0].word != "according":
            is_place = part.root.entity in PLACES and words in {"in", "at"}
            found.setdefault("place" if is_place else words, phrase.text)
    return dict(sorted(found.items()))
