"""The weights by which facts are judged; `benchmarks/sufficiency.py --write` fits both tables."""

from collections.abc import Mapping

BEARING: Mapping[str, float] = {
    "bias": -4.0,
    "anchored": 2.0,
    "named": 1.0,
    "floating": -4.0,
    "names_left": -2.0,
    "cosine": 2.0,
    "said": 1.5,
    "bare": -0.5,
    "echo": -2.0,
    "proper": 0.5,
    "fits": 1.0,
    "unfit": -2.0,
    "chosen": 2.0,
}
"""Of the measures of `kpyramid.query.bearing`: the chance that a fact's open side answers."""

SUFFICIENCY: Mapping[str, float] = {
    "bias": 0.0,
    "best": 1.0,
    "lead": 0.3,
}
"""Of the measures of `kpyramid.query.sufficiency`: the chance that the best fact's does."""
