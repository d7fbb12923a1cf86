"""From candidate facts to an extraction: filtered, scored, each fact once, with its claim."""

from __future__ import annotations

from dataclasses import dataclass

from kpyramid.extraction.facts.candidates import Candidate, Findings
from kpyramid.extraction.facts.claims import write_clause_claim, write_phrase_claim
from kpyramid.extraction.facts.faults import find_fault, is_location
from kpyramid.extraction.facts.mentions import assign_mentions, list_phrases
from kpyramid.extraction.facts.scoring import score_candidate
from kpyramid.extraction.syntax.phrases import PLACES, Phrase, find_phrase
from kpyramid.extraction.syntax.tree import Node, Tree
from kpyramid.extraction.text.sentences import Span
from kpyramid.extraction.types import Claim, Extraction, Fact


@dataclass(frozen=True, slots=True)
class _Judged:
    """A candidate that stands, who says so when the text does not, and how sure it is."""

    candidate: Candidate
    source: str | None
    confidence: float


def assemble_extraction(findings: Findings) -> Extraction:
    """The facts that stand, in the order of the text, with their claims and mentions."""
    kept: dict[tuple[object, ...], _Judged] = {}
    for candidate in findings.candidates:
        reason = find_fault(candidate)
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
    verb = tree[candidate.clause] if candidate.clause is not None else None
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
        qualifiers=_list_qualifiers(verb, candidate.tail) if verb is not None else {},
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


def _list_qualifiers(verb: Node, tail: Phrase) -> dict[str, str]:
    """Return the time and the place the clause is set in, except where that is the tail itself."""
    found: dict[str, str] = {}
    adjuncts = [g for c in verb.children if c.dep == "prep" for g in c.children]
    adjuncts += [c for c in verb.children if c.dep == "npadvmod"]
    for token in adjuncts:
        name = "time" if token.entity in {"DATE", "TIME"} else "place"
        if name == "place" and (token.entity not in PLACES or token.head.word not in {"in", "at"}):
            continue
        phrase = find_phrase(token)
        if phrase is not None and phrase.span != tail.span:
            found.setdefault(name, phrase.text)
    return dict(sorted(found.items()))
