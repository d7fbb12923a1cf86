"""Relation phrases of replied triples: completed as the rules do, and what is wrong with them."""

import re

from kpyramid.extraction.cascade.relations import Triple
from kpyramid.extraction.cascade.support import Text, find_type, is_telling, list_strange

MAX_RELATION_WORDS = 8
"""As for the rules: a longer one is a clause."""

_EMPTY = frozenset(
    (
        "is was are were be been being has have had having do does did a an the of in on at to "
        "from by with for as"
    ).split()
)
"""A relation of these words alone says nothing about how its ends are joined."""
_KINDS = frozenset({"is a", "was a", "is an", "was an", "is one of", "was one of"})
_BARE = frozenset("is was are were".split())
_NEGATIONS = frozenset("not never n't cannot".split())
_OFFICE = re.compile(r"(?:the )?((?:[\w'’-]+ ){0,3}[\w'’-]+) of ((?:the )?[^\W\d_a-z].*)")
"""What stands before a name that it belongs to: "capital of", "King of"."""
_PLACES = frozenset({"GPE", "LOC", "FAC"})


def complete_relation(row: Triple, quoted: str, text: Text) -> tuple[str, str, bool]:
    """Relation and tail, the relation without its negation, and whether it had one.

    What says nothing by itself is completed as the rules do: "is" before a kind, which has an
    article in the evidence or a small letter, is "is a"; "is | king of Poland" is
    "is king of | Poland"; "is in" before a place is "is located in".
    """
    said = _strip_ends(row)
    kept = [word for word in said if word.casefold() not in _NEGATIONS]
    relation, tail = " ".join(kept), row.tail
    negated = len(kept) < len(said)
    words = relation.casefold().split()
    if words and words[-1] in ("in", "on", "at") and set(words[:-1]) <= _BARE:
        if find_type(tail, text.types) in _PLACES:
            relation = f"{words[0] if words[:-1] else 'is'} located {words[-1]}"
    elif relation.casefold() in _BARE:
        office = _OFFICE.fullmatch(tail)
        if office:
            relation, tail = f"{relation} {office[1]} of", office[2]
        elif tail[0].islower() or re.search(
            rf"\b(?:a|an)\s+{re.escape(tail)}", quoted, re.IGNORECASE
        ):
            relation = f"{'was' if relation.casefold() in ('was', 'were') else 'is'} a"
    return relation, tail, negated


def _strip_ends(row: Triple) -> list[str]:
    """The relation's words without those of head and tail, which small models repeat in it."""
    words = row.relation.split()
    folded = [word.casefold() for word in words]
    head, tail = row.head.casefold().split(), row.tail.casefold().split()
    first = len(head) if folded[: len(head)] == head else 0
    last = len(words) - len(tail) if folded[-len(tail) :] == tail else len(words)
    return words[first:last] or words


def find_relation_fault(relation: str, text: Text) -> str | None:
    """Why a relation cannot stand, None when it can."""
    words = relation.casefold().split()
    if all(word in _EMPTY for word in words) and relation.casefold() not in _KINDS:
        return "empty_relation"
    if len(words) > MAX_RELATION_WORDS:
        return "relation_too_long"
    # A verb phrase may be worded anew; a name or a number in it may not.
    strange = list_strange(relation[0].lower() + relation[1:], text.words | text.title)
    return "unsupported" if any(is_telling(word) for word in strange) else None
