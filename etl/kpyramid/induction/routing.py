"""Which classes' values a text may hold: a cheap test before a model is asked.

A text is compared, sentence by sentence, with the words of each class's properties. A class is
asked for where a sentence comes nearer to one of them than unrelated prose does, or says one of
them word for word. Nothing is learned: any ontology with labels can be routed.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.extraction.cascade.evidence import list_words
from kpyramid.extraction.cascade.support import says_something
from kpyramid.extraction.normal import lemmatise
from kpyramid.extraction.text.sentences import split_sentences
from kpyramid.induction.groups import Group
from kpyramid.ontology.schema import OntologyProperty, Schema

CUT = 0.35
"""Standard deviations above unrelated prose from which a class is plausible.

99 % of the values in the train sentences of Text2KGBench's 15 ontologies are asked for then; of
sentences written for the other 14 ontologies, 21 % come near to none.
"""
_JOINT = re.compile(r"_|(?<=[^\W\d_A-Z])(?=[A-Z])")
_BLOCK = 1024
"""Sentences that are compared at a time."""

_PROSE = """\
The committee met on Tuesday to discuss the budget for the coming year.
Heat the oven, mix the flour with the butter and let the dough rest for an hour.
The patients were followed for six months and the symptoms improved slowly.
She opened the window and listened to the rain falling on the roof.
The company reported a loss in the third quarter, and its shares fell.
The river rises in the hills and flows south through several small towns.
Press the red button twice to restart the machine after an error.
The novel tells the story of two sisters who grow up by the sea.
The team won the final after extra time in front of a large crowd.
The law was changed after a long debate in parliament.
Light travels faster than sound, so we see the flash before we hear the thunder.
The museum shows paintings from the nineteenth century on the first floor.
Children learn to speak long before they learn to read.
The train leaves at nine and arrives in the capital in the evening.
Soldiers guarded the bridge until the end of the war.
The program reads a file, counts its words and prints the result.
Prices of food and rent have risen faster than wages.
The band recorded its second album in a small studio in the north.
He studied medicine and later worked as a doctor in a village.
The species lives in dry forests and feeds on seeds and insects.
The engine has four cylinders and produces ninety horsepower.
The bishop ordered a new church to be built on the island.
Students must hand in their essays before the end of term.
The satellite was launched in spring and orbits the earth every two hours.""".splitlines()
"""Sentences about this and that: how near prose comes to a class that it says nothing of. What is
near and what is far differs from one embedding model to the next, and from class to class: more
properties, more chances."""


class Router:
    """Routes texts to the classes whose properties the groups ask for.

    `classes`: their IRIs, sorted; the columns of scores.
    """

    def __init__(self, schema: Schema, groups: Iterable[Group], embedder: Embedder) -> None:
        phrases: dict[str, set[str]] = defaultdict(set)
        stated: dict[tuple[str, ...], set[str]] = defaultdict(set)
        for group in groups:
            for prop in group.properties:
                for label, end in _word_property(prop, schema):
                    phrases[prop.domain].add(f"{label} {end}".strip())
                    if says_something(label):  # "is in" is said of all and everything
                        stated[_reduce(label)].add(prop.domain)
        self.classes = tuple(sorted(phrases))
        for iri in self.classes:
            found = schema.class_by_iri.get(iri)
            labels = (found.label, *found.alt_labels) if found else ()
            phrases[iri].update(map(_spell_out, labels))
        self._embedder = embedder
        self._stated = {words: sorted(iris) for words, iris in stated.items()}
        self._longest = max(map(len, self._stated), default=0)
        self._starts = np.cumsum([0] + [len(phrases[iri]) for iri in self.classes[:-1]])
        self._phrases = [phrase for iri in self.classes for phrase in sorted(phrases[iri])]
        self._vectors: Matrix | None = None
        self._usual: Matrix = np.zeros(0, dtype=np.float32)
        self._spread = self._usual

    def route(self, texts: Sequence[str]) -> list[frozenset[str]]:
        """The classes that each text may hold values of."""
        parts = [[text[s.start : s.end] for s in split_sentences(text)] for text in texts]
        near: dict[str, frozenset[str]] = {}
        distinct = sorted({sentence for sentences in parts for sentence in sentences})
        for start in range(0, len(distinct), _BLOCK):
            block = distinct[start : start + _BLOCK]
            plausible = self.score(block) >= CUT
            for sentence, row in zip(block, plausible, strict=True):
                classes = {self.classes[at] for at in np.flatnonzero(row)}
                near[sentence] = frozenset(classes.union(self._find_stated(sentence)))
        return [frozenset().union(*(near[s] for s in sentences)) for sentences in parts]

    def score(self, sentences: Sequence[str]) -> Matrix:
        """How much nearer each sentence comes to each class than unrelated prose, in deviations."""
        if not self.classes or not sentences:
            return np.zeros((len(sentences), len(self.classes)), dtype=np.float32)
        if self._vectors is None:
            self._vectors = self._embedder.embed(self._phrases)
            usual = self._compare(_PROSE)
            self._usual = usual.mean(axis=0)
            self._spread = np.maximum(usual.std(axis=0), 1e-6)
        scores: Matrix = (self._compare(sentences) - self._usual) / self._spread
        return scores

    def _compare(self, sentences: Sequence[str]) -> Matrix:
        """The cosine of each sentence and the nearest phrase of each class."""
        assert self._vectors is not None
        cosines = self._embedder.embed(sentences) @ self._vectors.T
        nearest: Matrix = np.maximum.reduceat(cosines, self._starts, axis=1)
        return nearest

    def _find_stated(self, sentence: str) -> Iterator[str]:
        """The classes of whose properties the sentence says one word for word."""
        lemmas = _reduce(sentence)
        for size in range(1, self._longest + 1):
            for start in range(len(lemmas) - size + 1):
                yield from self._stated.get(lemmas[start : start + size], ())


def _word_property(prop: OntologyProperty, schema: Schema) -> Iterator[tuple[str, str]]:
    """The wordings of a property and of its inverse, each with what it leads to."""
    for found in (prop, schema.property_by_iri.get(prop.inverse_of or "")):
        if found is not None:
            end = None if found.is_datatype else schema.class_by_iri.get(found.range)
            for label in (found.label, *found.alt_labels):
                yield _spell_out(label), _spell_out(end.label) if end else ""


def _spell_out(label: str) -> str:
    """A label as words: "birthPlace" and "birth_place" are birth place."""
    return " ".join(_JOINT.sub(" ", label).split())


def _reduce(text: str) -> tuple[str, ...]:
    return tuple(lemmatise(word) for word in list_words(text))
