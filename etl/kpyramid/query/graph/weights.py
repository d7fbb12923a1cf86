"""The weights by which facts are judged; `benchmarks/sufficiency.py --write` fits both tables."""

from collections.abc import Mapping

BEARING: Mapping[str, float] = {
    "bias": -2.99,
    "anchored": -0.13,
    "bare": 0.13,
    "chosen": 5.05,
    "cosine": 1.5,
    "echo": 0.0,
    "fits": 1.96,
    "left": -1.07,
    "named": -0.1,
    "proper": 0.55,
    "said": 1.15,
    "unfit": -1.19,
}
"""Of the measures of `kpyramid.query.graph.bearing`: the chance that a fact's open side answers."""

SUFFICIENCY: Mapping[str, float] = {
    "bias": -1.94,
    "again": 0.69,
    "best": 1.02,
    "confidence": 1.91,
    "hedged": 0.44,
    "lead": 0.36,
    "negated": 0.0,
    "said_often": -0.25,
    "several": -0.24,
}
"""Of the measures of `kpyramid.query.graph.sufficiency`: the chance that the best fact's does."""
