"""How likely a careful reader accepts a fact, by a logistic model over what can be counted.

The weights are data: `benchmarks/calibration.py` fits them and says how well they hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Features:
    """What speaks for or against a fact, n-ary or binary; lengths are in words.

    `construction` is where the fact was read: "main" clause, "conjunct" of another verb,
    "relative", "participle", "adverbial", "complement", "infinitive", or in a noun phrase
    "apposition", "possessive", "title", "noun". `depth` counts the clauses above it.
    `indirect_subject`: the subject stands in another clause (coordination, control, the noun that
    is modified). `inferred_predicate`: a word of the predicate does not stand in the sentence.
    `split`: an argument was cut out of a coordination. `object_*` speak of the first argument
    after the subject; `object_words` is 0 without one. `longest_words` is of any later argument.
    """

    construction: str
    depth: int = 0
    sentence_words: int = 0
    predicate_words: int = 1
    subject_words: int = 1
    object_words: int = 0
    longest_words: int = 0
    arguments: int = 2
    subject_named: bool = False
    object_named: bool = False
    subject_pronoun: bool = False
    object_pronoun: bool = False
    subject_relative: bool = False
    object_clause: bool = False
    indirect_subject: bool = False
    inferred_predicate: bool = False
    resolved: bool = False
    split: bool = False
    passive: bool = False
    copula: bool = False
    negated: bool = False
    modal: bool = False
    attributed: bool = False
    preposition: bool = False


_NUMBERS = {
    # name: words (or things) beyond which more makes no difference
    "depth": 4,
    "sentence_words": 60,
    "predicate_words": 8,
    "subject_words": 16,
    "object_words": 24,
    "longest_words": 24,
    "arguments": 6,
}
_FLAGS = (
    "subject_named object_named subject_pronoun object_pronoun subject_relative object_clause "
    "indirect_subject inferred_predicate resolved split passive copula negated modal attributed "
    "preposition"
).split()

WEIGHTS: Mapping[str, float] = {
    "bias": 0.9,
    "construction=conjunct": -0.1,
    "construction=relative": -0.1,
    "construction=participle": -0.2,
    "construction=adverbial": -0.3,
    "construction=complement": -0.2,
    "construction=infinitive": -0.4,
    "depth": -0.4,
    "sentence_words": -0.3,
    "subject_words": -0.5,
    "object_words": -0.4,
    "subject_pronoun": -0.2,
    "object_pronoun": -0.3,
    "indirect_subject": -0.2,
    "inferred_predicate": -0.3,
    "no_object": -1.0,
}
"""One weight per value of `list_values`; a value without one counts nothing."""


def estimate_confidence(features: Features) -> float:
    """The probability of the fact, 4 decimals; depends on nothing but `features`."""
    values = list_values(features)
    total = sum(WEIGHTS.get(name, 0.0) * value for name, value in values.items())
    return round(1.0 / (1.0 + math.exp(-total)), 4)


def list_values(features: Features) -> dict[str, float]:
    """The features as numbers from 0 to 1, by name, in a fixed order; what is 0 is left out."""
    values = {"bias": 1.0, f"construction={features.construction}": 1.0}
    for name, most in _NUMBERS.items():
        values[name] = min(getattr(features, name), most) / most
    for name in _FLAGS:
        values[name] = float(getattr(features, name))
    values["no_object"] = float(not features.object_words)
    return {name: value for name, value in values.items() if value}
