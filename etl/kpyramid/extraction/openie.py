"""Rule-based open information extraction on a dependency parse: no model call, no network."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from kpyramid.extraction.candidates import Candidate, Findings
from kpyramid.extraction.claims import write_clause_claim, write_phrase_claim
from kpyramid.extraction.clauses import find_clause_facts
from kpyramid.extraction.coreference import Antecedents
from kpyramid.extraction.mentions import assign_mentions, list_phrases
from kpyramid.extraction.nominals import find_nominal_facts
from kpyramid.extraction.parsing import Parser
from kpyramid.extraction.phrases import LITERALS, PLACES, Phrase, find_phrase
from kpyramid.extraction.propositions import list_propositions
from kpyramid.extraction.screening import screen_text
from kpyramid.extraction.tree import Node, Tree
from kpyramid.extraction.types import Claim, Dropped, Extraction, Fact, Mention, Proposition, Span
from kpyramid.extraction.verbs import REPORTING, SUBJECTS

_MAX_RELATION_WORDS = 8
# A relation of these words alone says nothing about how its arguments are joined.
_EMPTY_WORDS = frozenset(
    (
        "is was are were be been being has have had having do does did a an the of in on at to "
        "from by with for as to not"
    ).split()
)
_SYMBOL = re.compile(r"[=<>|{}\\_~^*+@#]")
"""What no verb or preposition is written with; the parser takes formulas for clauses."""
_DIRECTIONS = frozenset(
    "north south east west northeast northwest southeast southwest left right".split()
)
_KIND_RELATIONS = frozenset({"is a", "was a", "is one of", "was one of"})


class DependencyExtractor:
    """Finds claims, mentions and facts by grammar; equal texts give equal extractions.

    `parser` names an installed spaCy package with tagger, parser and NER; it is loaded on first
    use, so building the object is cheap. `language` is a key of `LANGUAGES`.
    """

    def __init__(self, parser: str, language: str = "en") -> None:
        self._parser = Parser(parser)
        self._language = language

    def extract(self, text: str) -> Extraction:
        """What one text states; see `extract_all`, which is faster for many."""
        return next(self.extract_all((text,)))

    def extract_all(self, texts: Iterable[str]) -> Iterator[Extraction]:
        """What each text states, sorted by place; what is no prose in the language is dropped."""
        left_out: deque[list[Dropped]] = deque()

        def screen() -> Iterator[tuple[str, Sequence[Span]]]:
            for text in texts:
                kept, dropped = screen_text(text, self._language)
                left_out.append(dropped)
                yield text, kept

        for tree in self._parser.parse_parts(screen()):
            yield _extract_tree(tree, left_out.popleft())

    def read_sentences(self, sentences: Iterable[str]) -> Iterator[tuple[Proposition, ...]]:
        """The n-ary facts of each sentence as it words them, pronouns unresolved.

        Nothing is screened: whoever gives a sentence says that it is one, and its language.
        """
        return map(list_propositions, self._parser.parse_all(sentences))


def _extract_tree(tree: Tree, left_out: Sequence[Dropped] = ()) -> Extraction:
    findings = Findings(tree, Antecedents(tree))
    findings.dropped.extend(left_out)
    find_clause_facts(findings)
    find_nominal_facts(findings)
    return _assemble(findings)


def _assemble(findings: Findings) -> Extraction:
    kept: dict[tuple[str, str, str, bool], tuple[Candidate, float]] = {}
    for candidate in findings.candidates:
        reason = _judge(candidate)
        if reason is not None:
            first = min(candidate.tail.first, *candidate.tokens, candidate.tail.last)
            findings.drop(reason, first, candidate.tail.last)
            continue
        key = (candidate.head.text, candidate.relation, candidate.tail.text, candidate.negated)
        score = _score(candidate, findings.tree)
        if key not in kept or kept[key][1] < score:
            kept[key] = (candidate, score)
    ordered = sorted(kept.values(), key=lambda pair: _place(pair[0]))
    claims, numbers = _number_claims([c for c, _ in ordered], findings)
    facts = tuple(
        _write_fact(candidate, numbers[at], score, findings)
        for at, (candidate, score) in enumerate(ordered)
    )
    arguments = {p.span: p for c, _ in ordered for p in (c.head, c.tail) if p.literal}
    mentions: tuple[Mention, ...] = assign_mentions(list_phrases(findings.tree), claims, arguments)
    dropped = sorted(set(findings.dropped), key=lambda d: (d.span.start, d.span.end, d.reason))
    return Extraction(claims, mentions, facts, tuple[Dropped, ...](dropped))


def _place(candidate: Candidate) -> tuple[int, int, int, str]:
    anchor = candidate.clause if candidate.clause is not None else candidate.tail.first
    return anchor, candidate.tail.span.start, candidate.head.span.start, candidate.relation


def _judge(candidate: Candidate) -> str | None:
    """Return why a candidate is given up, None when it stands."""
    words = candidate.relation.split()
    if _SYMBOL.search(candidate.relation):
        return "no_words"
    empty = candidate.relation not in _KIND_RELATIONS and all(w in _EMPTY_WORDS for w in words)
    if empty and not (_is_location(words) and _names_place(candidate)):
        return "empty_relation"
    if len(words) > _MAX_RELATION_WORDS:
        return "relation_too_long"
    head, tail = candidate.head, candidate.tail
    # "40 percent of the workers" are workers; a number alone is nothing to state facts about.
    if head.label in LITERALS and head.label != "ORDINAL" and " of " not in head.text:
        return "head_is_literal"
    if "et al" in head.text or "et al" in tail.text:
        return "citation"
    if tail.text.lower() in _DIRECTIONS:
        return "bare_direction"
    if head.text.lower() == tail.text.lower():
        return "self_reference"
    if (
        not head.resolved
        and not tail.resolved
        and (
            head.first <= tail.first <= tail.last <= head.last
            or tail.first <= head.first <= head.last <= tail.last
        )
    ):
        return "nested_arguments"
    return None


def _is_location(words: Sequence[str]) -> bool:
    """Whether the relation is "is in": it says where, if what follows is a place."""
    return len(words) == 2 and words[0] in {"is", "was"} and words[1] in {"in", "at", "on"}


def _names_place(candidate: Candidate) -> bool:
    """Whether the tail is a place, or a name that can hardly be anything else: X is in Kent."""
    if candidate.tail.label in PLACES:
        return True
    named = candidate.tail.is_named and candidate.tail.label != "PERSON"
    return named and candidate.head.label != "PERSON"


def _score(candidate: Candidate, tree: Tree) -> float:
    """Return how far the rules trust a fact, in (0, 1]; a prior to be calibrated on judged facts.

    Starts at .95; a resolved pronoun costs .15, an inherited or nominal reading .1, two arguments
    without a name .15, each argument word beyond five .02, a sentence beyond 30 words .1.
    """
    score = 0.95
    score -= 0.15 * (candidate.head.resolved or candidate.tail.resolved)
    score -= 0.1 * candidate.indirect
    score -= 0.15 * (not candidate.head.is_named and not candidate.tail.is_named)
    score -= 0.02 * sum(max(0, p.words - 5) for p in (candidate.head, candidate.tail))
    first, end = tree.sentences[tree[candidate.tail.root].sentence]
    score -= 0.1 * (end - first > 30)
    return round(max(score, 0.05), 2)


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


def _write_fact(candidate: Candidate, claim: int, score: float, findings: Findings) -> Fact:
    tree = findings.tree
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
        attribution=_find_attribution(verb) if verb is not None else None,
        qualifiers=_list_qualifiers(verb, candidate.tail) if verb is not None else {},
        confidence=score,
    )


def _fit_relation(candidate: Candidate) -> str:
    """Return the relation, with "is in" spelled as the location it states."""
    words = candidate.relation.split()
    return f"{words[0]} located {words[1]}" if _is_location(words) else candidate.relation


def _find_relation_span(candidate: Candidate, tree: Tree) -> Span | None:
    tokens = sorted(set(candidate.tokens))
    if not tokens or tokens[-1] - tokens[0] + 1 != len(tokens):
        return None
    last = tree[tokens[-1]]
    return Span(tree[tokens[0]].idx, last.idx + len(last.text))


def _find_attribution(verb: Node) -> str | None:
    """Return who says it: "according to X ...", or the subject of a reporting verb above."""
    at = verb
    for _ in range(6):
        for child in at.children:
            if child.word == "according":
                for deep in (g for c in child.children for g in c.children if g.dep == "pobj"):
                    phrase = find_phrase(deep)
                    return phrase.text if phrase is not None else None
        if at.head is at:
            return None
        if at.dep == "ccomp" and at.head.lemma.lower() in REPORTING:
            subject = next((c for c in at.head.children if c.dep in SUBJECTS), None)
            said_by: Phrase | None = None
            if subject is not None and subject.pos != "PRON":
                said_by = find_phrase(subject)
            return said_by.text if said_by is not None else None
        at = at.head
    return None


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
