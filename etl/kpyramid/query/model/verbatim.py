"""Whether texts hold the words of an answer, and how probable a model found these words."""

import re
import unicodedata
from collections.abc import Sequence

from kpyramid.documents.values import NUMBER_WORDS
from kpyramid.documents.words import ARTICLES, JOINING
from kpyramid.llm.types import Reply
from kpyramid.query.analysis import link_question

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
_LEFT_OUT = (
    ARTICLES | JOINING | frozenset("of in on at to about by around circa years year".split())
)
_DIGITS = {word: str(number) for number, word in enumerate(NUMBER_WORDS, start=1)}
_VERDICTS = frozenset({"yes", "no", "true", "false", "none", "unknown"})
LONGEST_NAME = 8
"""Words of a name or a date; what is longer says something in words of its own."""
_NEAR = 4
"""Words that may stand between those of a date or a number in a text."""


def join_words(text: str) -> str:
    """The words of a text in the form in which wordings agree: case, signs, small numbers."""
    return " ".join(_list_words(text))


def is_checkable(answer: str, question: str) -> bool:
    """Whether the answer is a name, date or number, so that what says it holds it in its words.

    `yes` and explanations are not.
    """
    words = answer.split()
    if not words or answer.strip(" .").casefold() in _VERDICTS or len(words) > LONGEST_NAME:
        return False
    if link_question(question, {}).asks_for != "what":
        return True
    return any(word[:1].isupper() or word[:1].isdigit() for word in words)


def holds_answer(texts: Sequence[str], answer: str) -> bool:
    """Whether one of the texts holds the answer's words in a row, articles aside.

    A date or a number may be in another order or have words between: 23 April 1564 is held by
    "on April 23rd, in 1564".
    """
    wanted = [word for word in _list_words(answer) if word not in _LEFT_OUT]
    if not wanted:
        return False
    loose = any(word[0].isdigit() for word in wanted)
    return any(_holds(_list_words(text), wanted, loose) for text in texts)


def find_value_logprobs(reply: Reply, field: str) -> tuple[float, ...]:
    """The log-probabilities of the tokens that a field's value in the JSON of a reply consists of.

    Empty without tokens, or when they are not the reply's.
    """
    whole = b"".join(token.text for token in reply.tokens)
    match = re.search(
        rb'"' + field.encode() + rb'"\s*:\s*(?:"((?:[^"\\]|\\.)*)"|\[([^\]]*)\])', whole, re.DOTALL
    )
    if match is None or whole.strip() != reply.content.encode("utf-8", "replace").strip():
        return ()
    start, end = match.span(1 if match[1] is not None else 2)
    found, at = [], 0
    for token in reply.tokens:
        if at < end and at + len(token.text) > start:
            found.append(token.logprob)
        at += len(token.text)
    return tuple(found)


def _holds(words: list[str], wanted: list[str], loose: bool) -> bool:
    kept = [word for word in words if word not in _LEFT_OUT]
    length = len(wanted)
    if any(kept[at : at + length] == wanted for at in range(len(kept) - length + 1)):
        return True
    width = length + _NEAR
    needed = set(wanted)
    return loose and any(needed <= set(kept[at : at + width]) for at in range(len(kept)))


def _list_words(text: str) -> list[str]:
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    # 1,000 and 1000 agree; 23rd gives 23 and rd.
    plain = [re.sub(r"(?<=\d),(?=\d{3}\b)", "", word) for word in words]
    return [_DIGITS.get(word, word) for word in plain]
