"""Confidence of a fact: a logistic model over counts in its sentence.

Right means that at least half of its words agree, slot by slot, with a fact of CaRB's annotators.
The weights are data: `benchmarks/calibration.py --write` fits them, and says how well they hold
for sentences that they were not fitted on.
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
    "apposition", "possessive", "title", "place", "noun". `depth` counts the clauses above it.
    `indirect_subject`: the subject stands in another clause (coordination, control, the noun that
    is modified). `inferred_predicate`: a word of the predicate does not stand in the sentence.
    `split`: an argument was cut out of a coordination. `object_*` speak of the first argument
    after the subject; `object_words` is 0 without one. `longest_words`: of the arguments after it.
    `resolved`: a pronoun or "the town" was replaced by what it stands for.
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


_NUMBERS: Mapping[str, tuple[int, int]] = {
    "depth": (0, 4),
    "sentence_words": (0, 60),
    "predicate_words": (0, 8),
    "subject_words": (6, 16),
    "object_words": (0, 24),
    "longest_words": (6, 24),
    "arguments": (2, 6),
}
"""Below the first number and above the second, more or less makes no difference."""
_FLAGS = (
    "subject_named object_named subject_pronoun object_pronoun object_clause "
    "indirect_subject inferred_predicate resolved split passive copula negated modal attributed "
    "preposition"
).split()

WEIGHTS: Mapping[str, float] = {
    "bias": 1.69,
    "arguments": -0.93,
    "attributed": -0.13,
    "construction=adverbial": 0.35,
    "construction=apposition": 0.09,
    "construction=complement": 0.21,
    "construction=conjunct": 0.67,
    "construction=infinitive": 1.09,
    "construction=main": 0.78,
    "construction=noun": -0.31,
    "construction=participle": 0.4,
    "construction=place": -0.72,
    "construction=possessive": -1.77,
    "construction=relative": 0.25,
    "construction=title": -0.49,
    "copula": -0.53,
    "depth": -1.15,
    "indirect_subject": -0.02,
    "inferred_predicate": -0.82,
    "longest_words": -2.29,
    "modal": -0.45,
    "negated": 0.06,
    "no_object": -0.69,
    "object_clause": 0.3,
    "object_named": -0.05,
    "object_pronoun": -0.62,
    "object_words": -1.12,
    "passive": 0.38,
    "predicate_words": 0.94,
    "preposition": 0.14,
    "sentence_words": -1.02,
    "split": -0.26,
    "subject_named": 0.33,
    "subject_only": -2.74,
    "subject_pronoun": -0.15,
    "subject_words": -1.2,
}
"""One weight per value of `list_values`; a value without one counts nothing."""

RESOLVED = -0.7
"""The weight of `resolved`, set by hand: sentences by themselves do not show what it costs."""


def estimate_confidence(features: Features) -> float:
    """The probability of the fact, 4 decimals; depends on nothing but `features`."""
    return round(apply_weights(list_values(features), WEIGHTS), 4)


def apply_weights(values: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The logistic model's probability."""
    total = values.get("resolved", 0.0) * RESOLVED
    total += sum(weights.get(name, 0.0) * value for name, value in values.items())
    return 1.0 / (1.0 + math.exp(-total))


def list_values(features: Features) -> dict[str, float]:
    """The features as numbers from 0 to 1, by name, in a fixed order; what is 0 is left out."""
    values = {"bias": 1.0, f"construction={features.construction}": 1.0}
    for name, (least, most) in _NUMBERS.items():
        values[name] = (min(max(getattr(features, name), least), most) - least) / (most - least)
    for name in _FLAGS:
        values[name] = float(getattr(features, name))
    values["subject_only"] = float(features.arguments < 2)
    values["no_object"] = float(not features.object_words)
    return {name: value for name, value in values.items() if value}
