"""Population by a model: properties asked of each text, replies held against the text."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from kpyramid.documents.sentences import Dropped, Span, split_sentences
from kpyramid.documents.words import WORD
from kpyramid.extraction.cascade.evidence import (
    fold,
    is_pronoun,
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
                full = "too_many" if len(self.values) >= room else ""
                if not (why := "repeated" if key in self.values else full):
                    self.values[key] = made
            else:
                why = made
            if why:
                words = (" ".join(w.split()) for w in (row.subject, row.property, row.value))
                self.dropped.append(Dropped(why, " | ".join(words), Span(0, len(self._text))))

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

    `concurrency`: questions that are under way at a time.
    """

    def __init__(
        self,
        asker: Asker,
        schema: Schema,
        groups: Sequence[Group],
        *,
        mode: str,
        model: str,
        max_tokens: int,
        concurrency: int,
        progress: Progress,
        examples: tuple[Example, ...] = (),
    ) -> None:
        self.model = model
        self._asker = asker
        self._questions = [Question(group, schema, examples) for group in groups]
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
        pairs = [(chunk, one) for chunk in distinct.values() for one in self._questions]
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
            key: self._read(key[0], [(question, next(answers)) for question in self._questions])
            for key in distinct
        }
        return [readings[p.text, p.title] for p in chunks]

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
