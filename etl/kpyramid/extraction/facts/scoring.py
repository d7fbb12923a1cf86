"""How sure a binary fact is, from the clause or noun phrase that it was read in."""

from __future__ import annotations

from kpyramid.extraction.confidence import Features, estimate_confidence
from kpyramid.extraction.facts.candidates import Candidate, Findings
from kpyramid.extraction.syntax.frames import count_clauses_above
from kpyramid.extraction.syntax.verbs import is_copula


def score_candidate(candidate: Candidate, findings: Findings, attributed: bool = False) -> float:
    """How sure the fact is, by `estimate_confidence`."""
    tree, head, tail = findings.tree, candidate.head, candidate.tail
    frame = findings.frames.get(candidate.clause) if candidate.clause is not None else None
    first, end = tree.sentences[tree[tail.root].sentence]
    last = tree[max(candidate.tokens)] if candidate.tokens else None
    return estimate_confidence(
        Features(
            frame.construction if frame is not None else "noun",
            count_clauses_above(frame.verb, findings.frames) if frame is not None else 0,
            end - first,
            candidate.relation.count(" ") + 1,
            head.words,
            tail.words,
            subject_named=head.is_named,
            object_named=tail.is_named,
            indirect_subject=candidate.indirect,
            inferred_predicate=frame is None,
            resolved=head.resolved or tail.resolved,
            split=tree[tail.root].dep == "conj" or tree[head.root].dep == "conj",
            passive=frame is not None and "auxpass" in frame.kids,
            copula=frame is not None and is_copula(frame.verb),
            negated=candidate.negated,
            modal=candidate.modality is not None,
            attributed=attributed,
            preposition=last is not None and last.pos == "ADP",
        )
    )
