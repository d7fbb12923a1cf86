"""Who says what a clause states, when the text does not say it itself."""

from __future__ import annotations

from collections.abc import Mapping

from kpyramid.extraction.syntax.frames import Frame
from kpyramid.extraction.syntax.tree import Node
from kpyramid.extraction.syntax.verbs import REPORTING

_MAX_HOPS = 8
"""Clauses that a statement may be embedded in; malformed parses end."""


def find_source(verb: Node, frames: Mapping[int, Frame]) -> Node | None:
    """The X of "according to X", or the subject of the reporting verb above."""
    at = verb
    for _ in range(_MAX_HOPS):
        here = frames.get(at.i)
        for part in here.parts if here is not None else ():
            if part.link and part.link[0].word == "according":
                return part.root
        if at.dep == "ccomp" and at.head.lemma.lower() in REPORTING:
            above = frames.get(at.head.i)
            if above is not None and above.subjects:
                return above.subjects[0]
        if at.head is at:
            return None
        at = at.head
    return None
