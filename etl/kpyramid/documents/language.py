"""Language identification: whether a text is in the configured language.

A language is one entry of `LANGUAGES`: another one is an addition here, plus its grammar rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from kpyramid.documents.words import LETTERS, read_words

_WORDS = read_words(__file__, "language.toml")
_LETTER = re.compile(r"[^\W\d_]")
_SAMPLE = 2_000
"""Characters looked at; more make no difference to the answer."""
_FEW_WORDS = 5
"""Below so many words nothing is said: names and titles of any language stand in any other."""
_PROSE = 0.2
"""Share of function words from which a text is in the language, whatever its names look like."""
_NATIVE = 0.1
"""Share of function words from which another language must be beyond doubt."""


@dataclass(frozen=True)
class Language:
    """What extraction needs to know of a language besides its grammar rules.

    `own_words`: frequent function words that its neighbours do not have, or have seldom;
    `shared_words`: the others, which say that a text is prose but not in which language.
    `alike`: codes of languages that the classifier cannot tell from it (its creoles).
    """

    foreign_letter: re.Pattern[str]
    own_words: frozenset[str]
    shared_words: frozenset[str]
    alike: frozenset[str]

    @cached_property
    def function_words(self) -> frozenset[str]:
        """All of them: prose in the language has one in about five words at least."""
        return self.own_words | self.shared_words


LANGUAGES: Mapping[str, Language] = {
    "en": Language(
        # Outside of Latin, its extensions, and the letters of formulas and ordinals.
        foreign_letter=re.compile(r"[^\W\d_A-Za-zªº\u00c0-\u02ff\u1e00-\u1eff\u2100-\u214f]"),
        own_words=_WORDS["own.en"],
        shared_words=_WORDS["shared.en"],
        alike=frozenset({"pcm"}),
    )
}

_NEIGHBOURS: Mapping[str, frozenset[str]] = {
    name.removeprefix("neighbour."): words
    for name, words in _WORDS.items()
    if name.startswith("neighbour.")
}
"""Function words of languages that are written with the same letters and share words with English.

Those that are other words in English ("die", "war", "son") or parts of "i.e." are left out.
"""
_ANY_NEIGHBOUR = frozenset().union(*_NEIGHBOURS.values())
_BORROWED = re.compile(r"\b(?:de\s(?:facto|jure|novo)|[àa]\sla\s\w+|en\s(?:route|masse|bloc))\b")


def detect_language(text: str, expected: str) -> str:
    """The ISO 639 code of the text's language: `expected` unless the evidence is strong.

    A text in another script is in another language however short it is; "und" where the
    classifier has no name for it.
    """
    language = LANGUAGES[expected]
    sample = text[:_SAMPLE]
    letters = len(_LETTER.findall(sample)) if not sample.isascii() else 0
    if letters and 2 * len(language.foreign_letter.findall(sample)) > letters:
        code, _ = classify_text(sample, language.alike)
        return code if code not in {expected, "zxx"} else "und"
    if has_foreign_grammar(sample, expected):
        code, _ = classify_text(sample, language.alike)
        if code not in {expected, "zxx"}:
            return code
    words = [word.lower() for word in LETTERS.findall(sample)]
    if len(words) < _FEW_WORDS:
        return expected
    native = sum(word in language.own_words for word in words) / len(words)
    if native >= _PROSE:
        return expected
    code, confidence = classify_text(sample, language.alike)
    if code in {expected, "zxx"} or confidence < (0.6 if native < _NATIVE else 0.95):
        return expected
    return code


def has_foreign_grammar(text: str, expected: str) -> bool:
    """Whether one other language has every function word in the text, and two or more of its own.

    Particles before a capital ("Juan de la Cruz") belong to a name: they alone are no sign.
    """
    own = LANGUAGES[expected].function_words
    present = {word.lower() for word in LETTERS.findall(text)}
    native = present & own
    if not native <= _ANY_NEIGHBOUR or len((present & _ANY_NEIGHBOUR) - own) < 2:
        return False  # most texts, fast
    words = LETTERS.findall(_BORROWED.sub(" ", text))
    words[:1] = [word.lower() for word in words[:1]]
    small = {word for word in words if word.islower()}
    for code, neighbour in _NEIGHBOURS.items():
        foreign = (small & neighbour) - own
        if code == expected or len(foreign) < 2 or not native <= neighbour:
            continue
        found = 0
        outside = False
        named = False
        for word in reversed(words):
            if word in foreign:
                found += 1
                outside |= not named
            elif word not in _ANY_NEIGHBOUR:
                named = not word.islower()
        if outside and found >= _PROSE * len(words):
            return True
    return False


def is_surely(text: str, expected: str) -> bool:
    """Whether a sentence among others in another language is in the expected one all the same."""
    language = LANGUAGES[expected]
    if language.own_words.isdisjoint(word.lower() for word in LETTERS.findall(text)):
        return False
    code, confidence = classify_text(text[:_SAMPLE], language.alike)
    return code == expected and confidence > 0.5


def classify_text(text: str, left_out: frozenset[str] = frozenset()) -> tuple[str, float]:
    """The most likely language and its probability; "zxx" for what is no language."""
    code, confidence = _load_classifier(left_out).classify(text)
    return str(code), float(confidence)


@cache
def _load_classifier(left_out: frozenset[str]) -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    classifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    classifier.set_languages(sorted(set(classifier.labels) - left_out))
    return classifier
