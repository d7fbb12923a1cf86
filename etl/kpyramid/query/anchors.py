"""Anchors: the entities of the graph from which a walk starts, found in a text or by a model.

WTS (3.1), RoK (4.1), HyKGE (3.2) and Knowledge Solver start from entities; all link names so: by
the name itself, then by its vector.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from kpyramid.llm.task import Failure
from kpyramid.query.analysis import NUMERIC, QuestionAnalysis, link_text
from kpyramid.query.passages import find_passages
from kpyramid.query.types import Answer, Outcome, Step
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
        found |= {e: n for e, n in _name_entities(text, snapshot).items() if e not in found}
    named = [_name_entities(text, snapshot) for text in supposed]
    counts = Counter(e for each in named for e in each if snapshot.types[e] not in _NO_THING)
    for entity, _ in counts.most_common():  # of equally many the first
        found.setdefault(entity, next(each[entity] for each in named if entity in each))
    chosen = list(found)[:most]
    return Anchors(tuple(chosen), tuple(dict.fromkeys(found[entity] for entity in chosen)))


def _name_entities(text: str, snapshot: Snapshot) -> dict[str, str]:
    """The entities that a text names, each with its first name in the text."""
    index = snapshot.entities_by_name()
    found: dict[str, str] = {}
    for name in link_text(text, snapshot).names:
        for entity in index.get(join_words(name), ()):
            found.setdefault(entity, name.rstrip("."))
    return found


# Hypotheses: a tentative answer (RoK, 4.1) or an exploration (HyKGE, 4.1.1).


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """Texts that may answer a question, by a model or not, and what an answer tells of them."""

    texts: tuple[str, ...] = ()
    by_model: bool = False
    recognised: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()

    def precede(self, answer: Answer, *recognised: str) -> Answer:
        """The answer that was found by it, which tells of it first."""
        said = (*self.recognised, *recognised, *answer.recognised)
        return replace(answer, recognised=said, trace=(*self.steps, *answer.trace))


def suppose(
    asked: QuestionAnalysis, what: str, ask: Callable[[], str | Failure] | None
) -> Hypothesis:
    """A model's hypothesis; where it gives none, or none is asked, the best passages.

    Pseudo-relevance feedback (Rocchio 1971): what they name is near to what the answer names.
    """
    steps: tuple[Step, ...] = ()
    if ask is not None:
        told = ask()
        if told and not isinstance(told, Failure):
            return Hypothesis((told,), True, (f"{what}: {' '.join(told.split())[:300]}",))
        steps = (explain_failure(what, told),)
    passages = find_passages(asked, PASSAGES)
    return Hypothesis(tuple(item.text for item in passages), steps=steps)


def explain_failure(what: str, told: object) -> Step:
    """The step of a model that did not give something, or gave nothing."""
    why = f"{told.kind}: {told.detail}" if isinstance(told, Failure) else "it is empty"
    return Step("model", Outcome.FAILED, f"the model gave no {what}: {why}")
