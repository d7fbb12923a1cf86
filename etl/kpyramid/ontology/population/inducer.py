"""Population by a model: texts routed to classes, replies held against the text."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from kpyramid.documents.sentences import Dropped, Span, split_sentences
from kpyramid.documents.words import WORD, lemmatise
from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.extraction.cascade.evidence import (
    fold,
    is_pronoun,
    list_words,
    locate_quotation,
    says_something,
)
from kpyramid.extraction.cascade.grounding import CONFIDENCE, RESOLVED_CONFIDENCE, count_allowed
from kpyramid.extraction.cascade.reading import Progress
from kpyramid.extraction.types import Chunk
from kpyramid.llm.caller import Asker
from kpyramid.llm.task import Failure
from kpyramid.ontology.population.examples import Example, Value, Words
from kpyramid.ontology.population.task import TASKS, Group, Noted, Question, parse
from kpyramid.ontology.schema import OntologyProperty, Schema

# A model's reply, verified against the text.

_REFERRING = frozenset({"the", "this", "these", "whose", "who", "which", "where"})
"""Words besides pronouns by which a sentence speaks of what another one names."""


class Grounding:
    """The values that one text supports, reply by reply; `model` is the name that they bear."""

    def __init__(self, text: str, model: str) -> None:
        self.values: dict[tuple[object, ...], Value] = {}
        self.dropped: list[Dropped] = []
        self._text, self._model = text, model
        self._folded, self._sentences = fold(text), tuple(split_sentences(text))

    def add(self, rows: Iterable[Noted], properties: Mapping[str, OntologyProperty]) -> None:
        """Takes what a reply holds; `properties` are those that it was asked for, by name.

        The length of a text bounds what it, or who wrote it, can add.
        """
        room = count_allowed(self._text)
        for row in rows:
            made = self._ground(row, properties)
            if isinstance(made, Value):
                key = (made.property_iri, made.subject.text, made.object.text, made.evidence.start)
                if key not in self.values and len(self.values) < room:
                    self.values[key] = made
                    continue
                made = "repeated" if key in self.values else "too_many"
            shown = " | ".join(" ".join(w.split()) for w in (row.subject, row.property, row.value))
            self.dropped.append(Dropped(made, shown, Span(0, len(self._text))))

    def _ground(self, row: Noted, properties: Mapping[str, OntologyProperty]) -> Value | str:
        """The value, or the reason why the row is none, for counting.

        `not_a_value` (a field is empty), `unknown_property` (none of those asked for),
        `no_evidence` (the quotation does not occur, or says nothing), `pronoun`, `unsupported`
        (subject or value are not in it), `self_reference`.
        """
        text = self._text
        if not (row.subject.strip() and row.property.strip() and row.value.strip()):
            return "not_a_value"
        prop = properties.get(row.property)
        if prop is None:
            return "unknown_property"
        quoted = locate_quotation(text, self._folded, row.evidence)
        if not says_something(" ".join(text[s.start : s.end] for s in quoted)):
            return "no_evidence"
        if is_pronoun(row.subject.strip()) or is_pronoun(row.value.strip()):
            return "pronoun"
        sentences = [s for s in self._sentences if _overlaps(s, quoted)]
        value = _locate(text, row.value, sentences)
        subject = _locate(text, row.subject, sentences)
        confidence = CONFIDENCE
        if subject is None and _refers(text, sentences):
            before = [s for s in self._sentences if s.end <= sentences[0].start]
            subject = _locate(text, row.subject, before[::-1])
            confidence = RESOLVED_CONFIDENCE
        if subject is None or value is None:
            return "unsupported"
        words, ends = _take(text, subject), _take(text, value)
        if words.text.casefold() == ends.text.casefold():
            return "self_reference"
        cover = [s for s in self._sentences if _overlaps(s, [subject])] + sentences
        evidence = _take(text, Span(min(s.start for s in cover), max(s.end for s in cover)))
        return Value(prop.iri, words, ends, evidence, confidence, self._model)


def _locate(text: str, name: str, within: Sequence[Span]) -> Span | None:
    """Where a name stands first, whatever its case, white space, quotation marks and dashes."""
    for span in within:
        part = text[span.start : span.end]
        found = locate_quotation(part, fold(part), name)
        if len(found) == 1:
            return Span(span.start + found[0].start, span.start + found[0].end)
    return None


def _refers(text: str, sentences: Sequence[Span]) -> bool:
    """Whether sentences speak of something that they do not name."""
    return any(
        is_pronoun(word) or word.casefold() in _REFERRING
        for span in sentences
        for word in WORD.findall(text[span.start : span.end])
    )


def _overlaps(one: Span, others: Sequence[Span]) -> bool:
    return any(one.start < other.end and other.start < one.end for other in others)


def _take(text: str, span: Span) -> Words:
    return Words(text[span.start : span.end], span.start, span.end)


# Routing: the classes of which a text may state values.

CUT = 0.35
"""Standard deviations above unrelated prose from which a class is plausible.

99 % of the values in the train sentences of Text2KGBench's 15 ontologies are asked for then; of
sentences written for the other 14 ontologies, 21 % come near to none.
"""
_JOINT = re.compile(r"_|(?<=[^\W\d_A-Z])(?=[A-Z])")
_BLOCK = 1024
"""Sentences that are compared at a time."""


@cache
def load_prose() -> Sequence[str]:
    """Sentences of no field in particular (`prose.json`).

    What counts as near differs from one embedding model to the next, and from class to class: the
    more properties, the more chances. It is measured on these.
    """
    data = json.loads(Path(__file__).with_name("prose.json").read_text("utf-8"))
    return list(data["sentences"])


class Router:
    """Routes texts to the classes whose properties the groups ask for.

    A class is asked for where a sentence comes nearer to the words of one of its properties than
    unrelated prose does, or says one of them word for word. Nothing is learned: any ontology with
    labels can be routed.

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
        """Similarity of sentences to classes, in standard deviations above unrelated prose."""
        if not self.classes or not sentences:
            return np.zeros((len(sentences), len(self.classes)), dtype=np.float32)
        if self._vectors is None:
            self._vectors = self._embedder.embed(self._phrases)
            usual = self._compare(load_prose())
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


# The inducer.


@dataclass(frozen=True, slots=True)
class Failed:
    """A question about a text that got no usable reply; `asked` says for what, in words."""

    asked: str
    failure: Failure


@dataclass(frozen=True, slots=True)
class Reading:
    """A model's values for one text; spans are characters of it."""

    values: tuple[Value, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    failures: tuple[Failed, ...] = ()


class Inducer:
    """Asks for the values of groups of properties, text by text; `model` names it in the values.

    Without a router every group is asked for in every text. `left_out`: the questions that
    routing spared; `concurrency`: those that are under way at a time.
    """

    def __init__(
        self,
        asker: Asker,
        schema: Schema,
        groups: Sequence[Group],
        *,
        router: Router | None,
        mode: str,
        model: str,
        max_tokens: int,
        concurrency: int,
        progress: Progress,
        examples: tuple[Example, ...] = (),
    ) -> None:
        self.model = model
        self.left_out = 0
        self._asker = asker
        self._questions = [Question(group, schema, examples) for group in groups]
        self._router = router
        self._task = TASKS[mode]
        self._max_tokens = max_tokens
        self._concurrency = concurrency
        self._progress = progress

    def induce(self, chunks: Sequence[Chunk]) -> list[Reading]:
        """The values of each text, in order; equal texts of one title are asked about once.

        Raises:
            BudgetError, EndpointError: no further call can be made; the answers so far are kept.
        """
        distinct: dict[tuple[str, str | None], Chunk] = {}
        for chunk in chunks:
            distinct.setdefault((chunk.text, chunk.title), chunk)
        texts = [text for text, _ in distinct]
        routed = self._choose(texts)
        pairs = [
            (chunk, question)
            for chunk, questions in zip(distinct.values(), routed, strict=True)
            for question in questions
        ]
        self.left_out += len(texts) * len(self._questions) - len(pairs)
        self._progress.expect(len(pairs))
        pool = ThreadPoolExecutor(self._concurrency, thread_name_prefix="induction")
        try:
            asked = [pool.submit(self._ask, *pair) for pair in pairs]
            for done in as_completed(asked):
                done.result()
        finally:
            # After a fatal error: what is under way ends and is kept, nothing more begins.
            pool.shutdown(cancel_futures=True)
        answers = (done.result() for done in asked)
        readings = {
            key: self._read(key[0], [(question, next(answers)) for question in questions])
            for key, questions in zip(distinct, routed, strict=True)
        }
        return [readings[p.text, p.title] for p in chunks]

    def _choose(self, texts: Sequence[str]) -> list[list[Question]]:
        if self._router is None:
            return [self._questions for _ in texts]
        return [
            [question for question in self._questions if classes & {*question.group.domains}]
            for classes in self._router.route(texts)
        ]

    def _ask(self, chunk: Chunk, question: Question) -> tuple[Noted, ...] | Failure:
        answer = self._asker.ask(question.render(chunk, self._task, self._max_tokens), parse)
        self._progress.advance(1)
        return answer

    def _read(
        self, text: str, answers: Sequence[tuple[Question, tuple[Noted, ...] | Failure]]
    ) -> Reading:
        grounding = Grounding(text, self.model)
        failures = []
        for question, answer in answers:
            if isinstance(answer, Failure):
                failures.append(Failed(question.name, answer))
            else:
                grounding.add(answer, question.properties)
        return Reading(tuple(grounding.values.values()), tuple(grounding.dropped), tuple(failures))
