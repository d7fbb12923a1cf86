"""A small pyramid of invented facts, built once, for those who read and answer from it."""

from collections.abc import Mapping
from functools import cache

from kpyramid.query import Snapshot
from tests import corpora

TOLD: Mapping[str, str] = {
    "bridge.txt": "The Orm Bridge spans the river Vess. Its main span is 1,250 metres long. "
    "It cost 2.4 million crowns.",
    "film.txt": "The Glass Orchard is a film directed by Tomas Berrin. Edda Moll and Jan Roth "
    "starred in The Glass Orchard. The Glass Orchard was released in 1974.",
    "rhea.txt": "Rhea Valcourt was born on 3 March 1871 in Port Amsel. Rhea Valcourt was not born "
    "in Oslo, and she never lived in Bergen. In 1902 she founded the Valcourt Observatory.",
    "tarn.txt": "Milo Tarn was born in Tirana. Milo Tarn married Ada Romanov in Oslo.",
    "trial.txt": "We studied whether green light helps tomato seedlings grow. Green light did not "
    "help tomato seedlings to grow. Red light made tomato seedlings grow faster.",
}


@cache
def open_told() -> Snapshot:
    """The pyramid of `TOLD`, for reading only."""
    return corpora.open_told("told", TOLD)
