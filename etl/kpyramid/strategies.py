"""The strategies that answer questions: one table, which settings, commands and `query` import."""

from collections.abc import Mapping

STRATEGIES: Mapping[str, tuple[str, str]] = {
    "direct": ("kpyramid.query.baselines", "ask_direct"),
    "naive": ("kpyramid.query.baselines", "ask_naive"),
    "kaping": ("kpyramid.query.baselines", "ask_kaping"),
    "exact": ("kpyramid.query.baselines", "ask_exact"),
    "polyrag": ("kpyramid.query.polyrag", "ask_polyrag"),
    "wts": ("kpyramid.query.wts", "ask_wts"),
    "rok": ("kpyramid.query.rok", "ask_rok"),
    "hykge": ("kpyramid.query.hykge", "ask_hykge"),
    "ksl": ("kpyramid.query.ksl", "ask_ksl"),
    "tools": ("kpyramid.query.calling", "ask_tools"),
}
"""Module and function of each strategy; loaded when it is asked for."""
