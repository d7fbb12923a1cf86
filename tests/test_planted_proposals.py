"""All planted relations that the ontology lacks are proposed, and none that it has."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from kpyramid.completion.proposals import propose
from kpyramid.completion.types import GraphLayer, OntologyLayer
from kpyramid.embeddings.port import Matrix
from kpyramid.graph.synonyms.comparison import Comparer
from kpyramid.ontology.schema import OntologyClass, OntologyProperty, Schema
from kpyramid.settings import CompleteSettings
from tests.rows import each_row

BASE = "https://example.org/o#"
THINGS = BASE + "Thing"
SIZE = 48
WORDINGS = 8
LETTERS = str.maketrans("0123456789", "bcdfghjklm")
DIGITS = str.maketrans("bcdfghjklm", "0123456789")
KNOWN = 4


class PlantedEmbedder:
    """A wording lies near its relation's direction, a name in a small cloud of its own.

    Wordings are `verbN variantM`, names hold no verb; a text's vector is the sum of both. Numbers
    are letters, for a wording without words says nothing.
    """

    name = "planted"

    def embed(self, texts: Sequence[str]) -> Matrix:
        parts = [text.split() for text in texts]
        vectors = (
            np.stack([self._place(words) for words in parts]) if parts else np.zeros((0, SIZE))
        )
        scaled: Matrix = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return scaled.astype(np.float32)

    def _place(self, words: Sequence[str]) -> np.ndarray:
        vector = np.zeros(SIZE)
        for word in filter(lambda word: word[0].isupper(), words):
            number = int(word[1:].translate(DIGITS))
            if word[0] == "V":
                vector += draw(number)
            else:
                vector += 0.25 * draw(1000 + number % 997)
        return vector


def spell(kind: str, number: int) -> str:
    return kind + str(number).translate(LETTERS)


def draw(seed: int) -> np.ndarray:
    found = np.random.default_rng(seed).normal(size=SIZE)
    return found / np.linalg.norm(found)


def word(relation: int, variant: int) -> str:
    return f"{spell('V', relation)} {spell('W', relation * 31 + variant)}"


def plant(missing: int, phrases: int) -> tuple[GraphLayer, OntologyLayer, list[int]]:
    """A graph of relations of which the ontology has the first `KNOWN`, each fact its own head."""
    count = KNOWN + missing
    relation = [at % count for at in range(phrases)]
    heads = [spell("H", at) for at in range(phrases)]
    tails = [spell("T", at) for at in range(phrases)]
    wordings = [word(r, at // count % WORDINGS) for at, r in enumerate(relation)]
    pairs = list(zip(heads, tails, strict=True))
    types = ["NOUN"] * phrases
    schema = Schema(
        BASE,
        (OntologyClass(THINGS, "Tb", entity_types=("NOUN",)),),
        tuple(
            OntologyProperty(f"{BASE}p{r}", word(r, 0), (), "", THINGS, THINGS)
            for r in range(KNOWN)
        ),
    )
    # What the ontology has is stated by half of its facts; the other half has to be told by words.
    stated = [at for at in range(phrases) if relation[at] < KNOWN and at // count % 2 == 0]
    ontology = OntologyLayer(
        schema,
        [f"{BASE}p{relation[at]}" for at in stated],
        [pairs[at] for at in stated],
        {},
    )
    return GraphLayer(heads, types, wordings, tails, types, heads, tails), ontology, relation


@each_row("missing, phrases")
def test_every_planted_relation_is_proposed_once_and_none_that_exists(
    missing: int, phrases: int
) -> None:
    graph, ontology, relation = plant(missing, phrases)
    settings = CompleteSettings(min_support=5, region_share=1.0)
    found = propose(graph, ontology, settings=settings, comparer=Comparer(PlantedEmbedder()))
    new = [p for p in found.proposals if not (p.existing or p.doubt)]
    drawn = [Counter(relation[at] for at in proposal.facts) for proposal in new]
    assert all(len(counts) == 1 for counts in drawn)
    assert sorted(next(iter(counts)) for counts in drawn) == list(range(KNOWN, KNOWN + missing))
