"""Who does it and to whom it is done, as far as word order says so."""

from collections.abc import Sequence

from kpyramid.query.reader.matching import Word

_BE = frozenset("is are was were be been being".split())
_DO = frozenset("do does did".split())
_DETERMINERS = frozenset("the a an its his her their".split())
_NOUN_FOLLOWS = frozenset("has have had of as by".split())
_WHO = frozenset("who what which".split())
_REACH = 4
"""Words between a verb and its auxiliary, or between "of" and the end of the name after it."""

Span = tuple[int, int]


def wants_doer(words: Sequence[Word], verb: int) -> bool | None:
    """Whether a question asks who does what its word `verb` says, or to whom it is done.

    "Who bought X" and "by whom was X bought" ask for the doer, "what did X buy" and "what was
    bought by X" for the other; None when it is not that kind of question, or no verb.
    """
    before = [word.plain for word in words[:verb]]
    after = [word.plain for word in words[verb + 1 :]]
    if set(before[-1:]) & (_DETERMINERS | _NOUN_FOLLOWS):
        return None
    if _BE & set(before[-_REACH:]) and not _DO & set(before):
        if before[0] == "by" or after[-1:] == ["by"]:
            return True
        return False if after[:1] == ["by"] else None
    if _DO & set(before):
        return False if set(before) & {"who", "whom", "what", "which"} else None
    return True if before and before[0] in _WHO and len(before) <= _REACH else None


def is_doer(words: Sequence[Word], verb: int, value: Span) -> bool | None:
    """Whether a value does what a sentence's word `verb` says, or it is done to it."""
    plain = [word.plain for word in words]
    by = plain[verb + 1 : verb + 2] == ["by"]
    passive = by or bool(_BE & set(plain[max(verb - 2, 0) : verb]))
    if passive:
        if by and verb + 2 <= value[0] <= verb + 2 + _REACH:
            return True
        return False if value[1] <= verb else None
    between = plain[value[1] : verb] if value[1] <= verb else plain[verb + 1 : value[0]]
    if len(between) > 1 or not set(between) <= _DETERMINERS:
        return None
    return value[1] <= verb


def wants_whole(words: Sequence[Word], noun: int) -> bool | None:
    """Whether a question asks of what something is the noun, or what is the noun of something.

    "What is X a tributary of" asks for the whole, "the tributaries of X" for its part.
    """
    plain = [word.plain for word in words]
    if plain[-1] == "of" or plain[0] == "of":
        return True
    return False if plain[noun + 1 : noun + 2] == ["of"] else None


def is_whole(words: Sequence[Word], noun: int, value: Span) -> bool:
    """Whether a sentence says that something is the noun of a value."""
    of = [w.plain for w in words[noun + 1 : noun + 2]] == ["of"]
    start = noun + 2
    while start < len(words) and words[start].plain in _DETERMINERS:
        start += 1
    return of and value[0] <= start < value[1]
