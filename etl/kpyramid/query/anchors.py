"""Anchors: the entities of the graph from which a walk starts, found in a text or by a model.

WTS (3.1), RoK (4.1), HyKGE (3.2) and Knowledge Solver start from entities; all link names so: by
the name itself, then by its vector.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kpyramid.query.analysis import NUMERIC, QuestionAnalysis, link_text
from kpyramid.query.passages import find_passages
from kpyramid.query.types import Item
from kpyramid.snapshot.search import join_words
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.view import LITERAL

SIMILAR = 0.7
"""Cosine from which the nearest entity is what a name means that no entity has (HyKGE's delta).

The paper's .7 is GTE's scale; fitted anew to MiniLM it stays. Of 90 further names of entities in
four built graphs .87 lie so near to their entity's main name and .43 to another's, some of
these being other spellings of the same; no cut from .5 to .85 parts the two better (.7: .434,
.75: .422, .65: .378, .8: .356), and of what is linked .68 are right at any.
"""
PASSAGES = 5
"""Passages that stand for a hypothesis where no model writes one."""

_NO_THING = NUMERIC | {"NOUN", LITERAL}


@dataclass(frozen=True, slots=True)
class Anchors:
    """Entities by their ids, each once, in the order of the names that mean them.

    `unknown`: the names that mean none.
    """

    entities: tuple[str, ...]
    names: tuple[str, ...]
    unknown: tuple[str, ...] = ()


def link_names(
    names: Iterable[str], snapshot: Snapshot, similar: float | None = SIMILAR
) -> Anchors:
    """The entities that some names mean: by the name, else the nearest by vector.

    A name that several entities have means all of them. Without `similar` no vector is asked.
    """
    index = snapshot.entities_by_name()
    found: dict[str, None] = {}
    known: list[str] = []
    unknown: list[str] = []
    for name in dict.fromkeys(names):
        ids: Sequence[str] = index.get(join_words(name), ())
        if not ids and similar is not None:
            near = snapshot.neighbours(name, 1, "entities")
            ids = [key for key, _, cosine in near if cosine >= similar]
        found.update(dict.fromkeys(ids))
        (known if ids else unknown).append(name)
    return Anchors(tuple(found), tuple(known), tuple(unknown))


def find_anchors(texts: Iterable[str], snapshot: Snapshot) -> Anchors:
    """The entities that some texts name, by rules: names that the snapshot knows, in order."""
    linked = [link_text(text, snapshot) for text in texts]
    entities = dict.fromkeys(entity for each in linked for entity in each.entities)
    return Anchors(tuple(entities), tuple(dict.fromkeys(n for each in linked for n in each.names)))


def choose_anchors(
    own: Iterable[str], supposed: Iterable[str], snapshot: Snapshot, most: int
) -> Anchors:
    """The entities that texts name by names that the snapshot knows, at most `most` of them.

    First those of the question's `own` texts in their order; then those that most of the
    `supposed` texts name, of equally many those of an earlier, nearer one. Of the latter no dates,
    numbers and common nouns: anything is joined by them.
    """
    found: dict[str, str] = {}
    for text in own:
        _note(found, text, snapshot)
    counts: dict[str, int] = {}
    names: dict[str, str] = {}
    for text in supposed:
        here: dict[str, str] = {}
        _note(here, text, snapshot)
        for entity, name in here.items():
            if snapshot.types[entity] not in _NO_THING:
                counts[entity] = counts.get(entity, 0) + 1
                names.setdefault(entity, name)
    order = {entity: at for at, entity in enumerate(names)}
    for entity in sorted(names, key=lambda one: (-counts[one], order[one])):
        found.setdefault(entity, names[entity])
    chosen = list(found)[:most]
    return Anchors(tuple(chosen), tuple(dict.fromkeys(found[entity] for entity in chosen)))


def _note(found: dict[str, str], text: str, snapshot: Snapshot) -> None:
    """The entities that a text names, each with its name in the text."""
    index = snapshot.entities_by_name()
    for name in link_text(text, snapshot).names:
        for entity in index.get(join_words(name), ()):
            found.setdefault(entity, name.rstrip("."))


def suppose(asked: QuestionAnalysis, passages: int = PASSAGES) -> tuple[Item, ...]:
    """What stands for a hypothesis where no model writes one: the best passages.

    Pseudo-relevance feedback (Rocchio 1971): what they name is near to what the answer names.
    """
    return tuple(find_passages(asked, passages))
