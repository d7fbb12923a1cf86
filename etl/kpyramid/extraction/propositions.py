"""N-ary facts as a sentence words them: predicate, subject, and every complement and adjunct."""

from __future__ import annotations

from kpyramid.extraction.candidates import Findings
from kpyramid.extraction.clauses import find_clause_facts
from kpyramid.extraction.coreference import Antecedents
from kpyramid.extraction.tree import Tree
from kpyramid.extraction.types import Argument, Proposition, Span


def list_propositions(tree: Tree) -> tuple[Proposition, ...]:
    """The propositions of every clause and noun phrase, by place."""
    findings = Findings(tree, Antecedents(tree))
    find_clause_facts(findings)
    found = []
    for c in findings.candidates:
        arguments = (
            Argument("subject", c.head.text, c.head.span),
            Argument("object", c.tail.text, c.tail.span),
        )
        span = Span(
            min(c.head.span.start, c.tail.span.start), max(c.head.span.end, c.tail.span.end)
        )
        found.append(Proposition(c.relation, arguments, span, c.negated, c.modality))
    return tuple(found)
