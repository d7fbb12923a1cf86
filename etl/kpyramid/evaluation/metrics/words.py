"""When two answers are the same, and when a text names a value."""

import re
import unicodedata
from collections.abc import Iterable
from decimal import Decimal
from string import punctuation

from kpyramid.evaluation.metrics.types import Response
from kpyramid.evaluation.questions import EvalQuestion
from kpyramid.extraction.matching import agree, find_values, read_value

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_SAME = 0.85
"""How far a date has to say the gold one: a finer one does, a year does not say a day in it."""
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""Thai, Lao, Khmer, Japanese and Chinese: words without spaces between them."""


def fold(text: str) -> str:
    """The text in one form of Unicode, small letters, single spaces."""
    return " ".join(unicodedata.normalize("NFC", text).lower().split())


def fold_value(text: str) -> str:
    """As `fold`, and a plain number in its shortest form: 1.50 is 1.5."""
    folded = fold(text)
    if _NUMBER.fullmatch(folded):
        number = format(Decimal(folded), "f")
        number = number.rstrip("0").rstrip(".") if "." in number else number
        return "0" if number in {"-0", ""} else number
    return folded


def normalise_answer(text: str) -> str:
    """SQuAD's normal form: small letters, no punctuation, no articles, single spaces.

    The same as the official script's (Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine
    Comprehension of Text", EMNLP 2016) for ASCII; here the punctuation of all Unicode goes. What
    consists of nothing else ("A", "?") stays as `fold` leaves it: it would equal every other.
    """
    folded = fold(text)
    kept = "".join(c for c in folded if not _is_punctuation(c))
    return " ".join(_ARTICLES.sub(" ", kept).split()) or folded


def list_tokens(text: str) -> list[str]:
    """The words of the normal form."""
    return normalise_answer(text).split()


def names_value(text: str, value: str) -> bool:
    """Whether the value stands in the text as a run of whole words, both in normal form.

    A value in a script without spaces counts wherever it stands.
    """
    wanted, said = normalise_answer(value), normalise_answer(text)
    if UNSPACED.search(wanted):
        return wanted in said
    return bool(wanted) and f" {wanted} " in f" {said} "


def state_same(gold: str, said: str) -> bool:
    """Whether both are a date or a number, and the one that was said says the gold one.

    28 November 1953 is 1953-11-28, and 12,000 is 12000. Units that both state have to be the same
    word: 91 metres are not 91 feet. What has a unit is no year: 1953 metres are not in 1953.
    """
    wanted, stated = read_value(gold), read_value(said)
    if wanted is None or stated is None or agree(wanted, stated) < _SAME:
        return False
    one, other = _read_unit(gold), _read_unit(said)
    return one == other or (isinstance(wanted, Decimal) and not (one and other))


def names_any(text: str, names: Iterable[str]) -> bool:
    """Whether the text names one of them."""
    return any(names_value(text, name) for name in names)


def list_chosen(response: Response) -> tuple[str, ...]:
    """The single values of the answer; of an answer without any, its text."""
    return tuple(c for c in response.choices if c.strip()) or (
        (response.text,) if response.text.strip() else ()
    )


def word_answer(response: Response) -> str:
    """The answer in words; of an answer without text, its values."""
    return response.text if response.text.strip() else "; ".join(list_chosen(response))


def is_open(question: EvalQuestion) -> bool:
    """Whether the question is answered in words and there is an answer to compare with."""
    return question.kind == "open" and bool(question.answers)


def list_references(question: EvalQuestion) -> list[str]:
    """All right answers in all their spellings, each once."""
    return list(dict.fromkeys(name for value in question.answers for name in value))


def _read_unit(text: str) -> str:
    """What stands behind the value that a text consists of."""
    plain = text.strip().strip("\"'")
    return fold(plain[find_values(plain)[0].end :])


def _is_punctuation(character: str) -> bool:
    return character in punctuation or unicodedata.category(character).startswith("P")
