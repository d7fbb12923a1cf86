"""Replies checked against their chunk: ends located, wordings completed, the rest rejected."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from kpyramid.documents.sentences import Dropped, Span
from kpyramid.documents.words import ARTICLES, AUXILIARIES, BE, HAVE, PREPOSITIONS, name_owner
from kpyramid.extraction.cascade.evidence import (
    UNKNOWN,
    Text,
    find_type,
    guess_literal,
    is_pronoun,
    is_supported,
    is_telling,
    list_strange,
    list_words,
    locate_name,
    locate_quotation,
    quote,
    says_something,
    supports,
)
from kpyramid.extraction.cascade.tasks import Statement, Triple
from kpyramid.extraction.syntax.kinds import find_kind_label
from kpyramid.extraction.syntax.tree import PLACES
from kpyramid.extraction.types import (
    MAX_RELATION_WORDS,
    Chunk,
    Claim,
    Extraction,
    Fact,
    Mention,
    find_clause,
)

# Relations of replied triples: completed as the rules do, or rejected.

_EMPTY = AUXILIARIES | ARTICLES | PREPOSITIONS
"""A relation of these words alone does not state how its ends are related."""
_JOINING = PREPOSITIONS - {"of", "as"}
"""Prepositions after "is" that state a relation: "is with", "is in", not "is of" or "is as"."""
_KINDS = frozenset({"is a", "was a", "is an", "was an", "is one of", "was one of"})
_BARE = frozenset("is was are were".split())
_CLAUSAL = frozenset("he she they".split())
"""Pronouns that are the subject of a clause in a relation: "announced that he will"."""
_NAME = re.compile(
    r" (?:in|of|at|to|from|for|on|by|with|as) (?:[A-Z][\w'’-]+ )*[A-Z][a-z][\w'’-]*$"
)
"""A preposition with a name: "studied music in Boston" ends in its tail.

Of 18,184 rows of GPT-3.5 and a larger model 13 end so, of 20 of a model of 1.5 billion weights 4.
"""
_NEGATIONS = frozenset("not never n't cannot".split())
_OFFICE = re.compile(r"(?:the )?((?:[\w'’-]+ ){0,3}[\w'’-]+) of ((?:the )?[^\W\d_a-z].*)")
"""A role before the name that it belongs to: "capital of", "King of"."""


def complete_relation(row: Triple, quoted: str, text: Text) -> tuple[str, str, bool]:
    """Relation and tail, the relation without its negation, and whether it had one.

    An incomplete relation is completed as the rules do: "is" before a kind, which has an article
    in the evidence or is a kind noun, becomes "is a"; "is | king of Poland" becomes
    "is king of | Poland"; "is in" before a place becomes "is located in".
    """
    stripped = _strip_ends(row)
    affirmative = [word for word in stripped if word.casefold() not in _NEGATIONS]
    relation, tail = " ".join(affirmative), row.tail
    negated = len(affirmative) < len(stripped)
    words = relation.casefold().split()
    if words and words[-1] in ("in", "on", "at") and set(words[:-1]) <= _BARE:
        if find_type(tail, text.types) in PLACES:
            relation = f"{words[0] if words[:-1] else 'is'} located {words[-1]}"
    elif relation.casefold() in _BARE:
        office = _OFFICE.fullmatch(tail)
        if office:
            relation, tail = f"{relation} {office[1]} of", office[2]
        elif relation.casefold() in ("is", "was") and _lacks_article(tail, quoted):
            relation = f"{relation.casefold()} a"
    return relation, tail, negated


def _lacks_article(tail: str, quoted: str) -> bool:
    """Whether a tail without article is a kind: a kind noun, or with an article in the text.

    "rare", "normal" and "to replace your income" are not kinds.
    """
    if tail.split()[0].casefold() in ARTICLES:
        return False
    article = re.search(rf"\b(?:a|an)\s+{re.escape(tail)}", quoted, re.IGNORECASE)
    return article is not None or find_kind_label(tail.split()[-1]) is not None


def _strip_ends(row: Triple) -> list[str]:
    """The relation's words without those of head and tail, which small models repeat in it."""
    words = row.relation.split()
    folded = [word.casefold() for word in words]
    head, tail = row.head.casefold().split(), row.tail.casefold().split()
    first = len(head) if folded[: len(head)] == head else 0
    last = len(words) - len(tail) if folded[-len(tail) :] == tail else len(words)
    return words[first:last] or words


def find_relation_fault(relation: str, quoted: str, text: Text) -> str | None:
    """The reason to reject a relation, or None; an empty relation may quote the text."""
    words = relation.casefold().split()
    is_quoted = words[0] not in ARTICLES and f" {' '.join(words)} " in f" {quoted.casefold()} "
    if all(word in _EMPTY for word in words) and not _joins(words) and not is_quoted:
        return "empty_relation"
    if len(words) > MAX_RELATION_WORDS:
        return "relation_too_long"
    if not _CLAUSAL.isdisjoint(words):
        return "pronoun"
    if len(words) > 1 and words[0] == relation.split()[0] and _NAME.search(relation):
        return "name_in_relation"  # a relation in title case has no name in it
    # A verb phrase may be reworded; a name or a number in it may not.
    strange = list_strange(relation[0].lower() + relation[1:], text.words | text.title)
    return "unsupported" if any(is_telling(word) for word in strange) else None


def _joins(words: Sequence[str]) -> bool:
    """Whether function words together state a relation, as "is one of" and "has" do."""
    if " ".join(words) in _KINDS:
        return True
    match words:
        case [owning]:
            return owning in HAVE - {"having"}
        case [being, joining]:
            return being in BE and joining in _JOINING
    return False


# Statements and triples of a reply.

CONFIDENCE, RESOLVED_CONFIDENCE = 0.89, 0.8
"""Confidence of a fact with both ends in its evidence, and of one whose end is named elsewhere.

The share that is not false: of 44 triples of two small local models, chosen from given entities,
39 were clean or awkward (19 and 20 of 22). An end that the evidence does not name was resolved,
and costs what it costs the rules' n-ary facts: 0.7 in log odds.
"""
_FREE_FACTS, _WORDS_PER_FACT = 4, 3
"""A chunk may support this many facts, and one more per so many words; see `count_allowed`."""

_SUBJECTS = frozenset("he she it they this these his her its their".split())
_OWNING = frozenset("his her its their".split())
_LEADING_NAME = re.compile(
    r"[^\W\d_a-z][\w'’.-]*(?: (?:(?:of|de|van|von|the|and) )?[^\W_a-z][\w'’.-]*)*"
)
"""Capitalised words at the beginning of a claim."""


def count_allowed(text: str) -> int:
    """The most facts that a text may support, by its number of words.

    GPT-3.5 found more in 2 of 1,890 passages, 5 triples of 17,234; the median is a third of it.
    """
    return _FREE_FACTS + len(list_words(text)) // _WORDS_PER_FACT


def ground_statements(
    text: Text, statements: Sequence[Statement]
) -> tuple[list[Claim], list[Dropped]]:
    """The claims whose evidence occurs in the text, with pronouns at their beginning resolved.

    A claim with a name or a number that neither text nor title contains is replaced by its
    evidence: additions of a model are not part of the corpus.
    """
    chunk = text.chunk
    claims: list[Claim] = []
    dropped: list[Dropped] = []
    for statement in statements:
        spans = locate_quotation(chunk.text, text.folded, statement.evidence)
        claim = " ".join(statement.claim.split())
        quoted = " ".join(quote(text, spans).split())
        if not says_something(quoted):
            dropped.append(Dropped("no_evidence", claim or "an empty claim", text.whole))
            continue
        if not claim or not is_supported(claim, text.words | text.title):
            claim = quoted
        claims.append(Claim(_repair_subject(claim, spans, chunk), spans))
    return claims, dropped


def ground_triples(
    text: Text,
    claims: Sequence[Claim],
    entities: Sequence[str],
    triples: Sequence[Sequence[Triple]],
    *,
    facts: Sequence[Fact] = (),
) -> Extraction:
    """The extraction: a row of triples per claim, and mentions where the entities occur.

    `facts`: facts of the rules; a triple with the words of one is that fact, except for its
    relation, which a model may have reworded. Rejected triples are counted with their reason:
    `not_a_triple`, `empty_relation`, `relation_too_long`, `name_in_relation` (it ends in the name
    that is its tail), `pronoun`, `head_is_literal`, `self_reference`, `unsupported` (words that the
    text does not hold, or not there), `repeated`, `too_many`; `ground_statements` adds
    `no_evidence` (the quotation does not occur, or states nothing).
    """
    ruled = {(f.claim, f.head, f.tail): f for f in reversed(facts)}
    ruled_words = {(f.claim, f.head, f.relation, f.tail): f for f in reversed(facts)}

    def ground() -> Iterator[Grounded]:
        for number, (claim, rows) in enumerate(zip(claims, triples, strict=True)):
            for row in rows:
                made: Fact | str | None = ruled_words.get(
                    (number, row.head, row.relation, row.tail)
                )
                if made is None and (fact := ruled.get((number, row.head, row.tail))):
                    made = replace(fact, relation=row.relation, relation_span=None)
                made = made or _ground_triple(text, number, claim, row)
                yield made, show_row(row), cover(claim.spans)

    grounded, dropped = take_facts(ground(), count_allowed(text.chunk.text))
    mentions = find_mentions(text, claims, entities, grounded)
    return Extraction(tuple(claims), mentions, grounded, dropped)


Grounded = tuple[Fact | str, str, Span]
"""The result of a row of a reply: a fact or the reason of its rejection, its words, its span."""


def take_facts(rows: Iterable[Grounded], room: int) -> tuple[tuple[Fact, ...], tuple[Dropped, ...]]:
    """The distinct facts, at most `room`, and the other rows with their reasons."""
    facts: dict[tuple[object, ...], Fact] = {}
    dropped: list[Dropped] = []
    for made, shown, span in rows:
        if isinstance(made, Fact):
            words = (made.head.casefold(), made.relation.casefold(), made.tail.casefold())
            stance = (made.negated, made.modality, made.attribution)
            key = (*words, *stance, *sorted(made.qualifiers.items()))
            if key not in facts and len(facts) < room:
                facts[key] = made
                continue
            made = "repeated" if key in facts else "too_many"
        dropped.append(Dropped(made, shown, span))
    return tuple(facts.values()), tuple(dropped)


def show_row(row: Triple) -> str:
    """A triple as rejects name it."""
    return " | ".join(row)


def cover(spans: Sequence[Span]) -> Span:
    """The span from the start of the first to the end of the last of some spans."""
    return Span(min(s.start for s in spans), max(s.end for s in spans))


def _ground_triple(text: Text, number: int, claim: Claim, row: Triple) -> Fact | str:
    """The fact of a row, or the reason of its rejection."""
    if not (row.head and row.relation and row.tail):
        return "not_a_triple"
    named = _resolve_head(row.head, claim)
    if named is None or is_pronoun(row.tail):
        return "pronoun"
    if guess_literal(named) is not None:
        return "head_is_literal"
    quoted = quote(text, claim.spans)
    relation, tail, negated = complete_relation(row, quoted, text)
    if named.casefold() == tail.casefold():
        return "self_reference"
    fault = find_relation_fault(relation, quoted, text)
    if fault is not None:
        return fault
    head, head_span = take_words(text, named, claim.spans)
    tail, tail_span = take_words(text, tail, claim.spans)
    if not supports(text, claim, head, tail):
        return "unsupported"
    return Fact(
        claim=number,
        head=head,
        relation=relation,
        tail=tail,
        head_span=head_span,
        relation_span=locate_name(text, relation, claim.spans, exact=True),
        tail_span=tail_span,
        negated=negated,
        confidence=CONFIDENCE if head_span and tail_span else RESOLVED_CONFIDENCE,
    )


def take_words(text: Text, name: str, within: Sequence[Span]) -> tuple[str, Span | None]:
    """A name as the text writes it, and its span; the name itself and None where it is missing."""
    span = locate_name(text, name, within)
    return (name, None) if span is None else (text.chunk.text[span.start : span.end], span)


def _resolve_head(head: str, claim: Claim) -> str | None:
    """The head; for a pronoun the name at the beginning of the claim, or None without one."""
    if not is_pronoun(head):
        return head
    name = _LEADING_NAME.match(claim.text)
    return None if name is None or is_pronoun(name.group()) else name.group()


def _repair_subject(claim: str, spans: Sequence[Span], chunk: Chunk) -> str:
    """The claim with a pronoun at its beginning replaced by the antecedent that the rules found.

    The antecedent is the head of a fact of the rules in the same span, but lies outside the span.
    Where there is none, or more than one, the claim is unchanged: only triples may not have a
    pronoun.
    """
    first, _, rest = claim.partition(" ")
    if first.casefold() not in _SUBJECTS or not rest:
        return claim
    heads = {
        fact.head
        for fact in chunk.extraction.facts
        for clause in (find_clause(chunk.extraction.claims[fact.claim]),)
        if any(s.start <= clause.start < s.end for s in spans)
        and (fact.head_span is None or not any(_holds(s, fact.head_span) for s in spans))
        and not is_pronoun(fact.head)
    }
    if len(heads) != 1:
        return claim
    (name,) = heads
    return f"{name_owner(name) if first.casefold() in _OWNING else name} {rest}"


def _holds(outer: Span, inner: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def find_mentions(
    text: Text,
    claims: Sequence[Claim],
    entities: Sequence[str],
    facts: Sequence[Fact],
    types: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Mention, ...]:
    """The first mentions of entities and ends of facts in each claim's evidence.

    A name within a longer one there is part of it. The type is that of `types`, by lower-case
    name, else the type that the rules give the span or the name in the chunk, else the type of
    its form, else NOUN.
    """
    places = {(m.span.start, m.span.end): m.type for m in text.chunk.extraction.mentions}
    mentions: list[Mention] = []
    for number, claim in enumerate(claims):
        names = {*entities, *(end for f in facts if f.claim == number for end in (f.head, f.tail))}
        spans = {span for name in names if (span := locate_name(text, name, claim.spans))}
        ends = {s for f in facts if f.claim == number for s in (f.head_span, f.tail_span) if s}
        for span in sorted(spans):
            inner = any(outer != span and _holds(outer, span) for outer in spans)
            if inner and span not in ends:
                continue
            words = text.chunk.text[span.start : span.end]
            kind = types.get(words.casefold()) or places.get((span.start, span.end), UNKNOWN)
            if kind == UNKNOWN:
                kind = find_type(words, text.types)
            mentions.append(Mention(number, words, kind, span))
    return tuple(mentions)
