"""Population by a model: properties asked of each text, replies verified against the text."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from kpyramid.documents.sentences import Dropped, Span, split_sentences
from kpyramid.documents.words import WORD
from kpyramid.extraction.cascade.evidence import fold, is_pronoun, locate_quotation, says_something
from kpyramid.extraction.cascade.grounding import CONFIDENCE, RESOLVED_CONFIDENCE, count_allowed
from kpyramid.extraction.cascade.reading import Progress
from kpyramid.extraction.cascade.tasks import show_chunk
from kpyramid.extraction.cascade.windows import Vocabulary
from kpyramid.extraction.types import Chunk
from kpyramid.keys import JsonValue
from kpyramid.llm.caller import Asker
from kpyramid.llm.prompts import read_prompts
from kpyramid.llm.task import (
    GUARD,
    Expected,
    Failure,
    Request,
    Strict,
    Task,
    parse_json,
    strict_schema,
    write_json,
)
from kpyramid.ontology.names import THING
from kpyramid.ontology.population.examples import Example, Value, Words
from kpyramid.ontology.proposals import FORMS, name_class, name_range
from kpyramid.ontology.schema import OntologyProperty, Schema, Term
from kpyramid.storage.items import do_at_once

# f_ins: which values of some classes' properties a text states; groups, prompt, reply, parser.

log = logging.getLogger(__name__)

# Groups: the properties of one call.

MOST_PROPERTIES = 64
"""Properties per call: some 1,700 tokens of prompt, equal for all texts, so that servers cache it.
A call for every class would repeat instructions and text."""


Group = tuple[OntologyProperty, ...]
"""The properties of one call, those of one domain side by side."""


def group_properties(schema: Schema, most: int = MOST_PROPERTIES) -> tuple[Group, ...]:
    """An ontology's properties in as few calls as `most` properties allow.

    Classes that are near in the hierarchy share a call; a class with more properties is split.
    Inherited properties are asked once, with the class that declares them. Of two inverse
    properties the one with the smaller IRI is asked, as it is the stored one.
    """
    asked = [
        prop for prop in schema.properties if prop.inverse_of is None or prop.iri <= prop.inverse_of
    ]
    by_class: dict[tuple[str, ...], list[OntologyProperty]] = {}
    for prop in asked:
        by_class.setdefault(_list_line(prop.domain, schema), []).append(prop)
    packs = _pack([by_class[line] for line in sorted(by_class)], most)
    return tuple(map(tuple, packs))


_MOST_WORDS = 40_000
"""Characters of an ontology in words, with comments; a longer one is cut."""


def write_vocabulary(schema: Schema) -> Vocabulary:
    """The ontology in words for windows: classes, and properties in the order of asking.

    Comments are left out if it is too long with them; if it still is, it is cut, with a warning in
    the log.
    """
    asked = [prop for group in group_properties(schema) for prop in group]
    properties = [
        (name_class(p.domain, schema), p.label, name_range(p.range, schema)) for p in asked
    ]
    classes = [(c.label, _end(c.comment), _find_type(c.iri, schema)) for c in schema.classes]
    if sum(len("".join(row)) for row in (*classes, *properties)) > _MOST_WORDS:
        classes = [(label, "", kind) for label, _, kind in classes]
    rows = [*classes, *properties]
    sizes = accumulate(len("".join(row)) for row in rows)
    shown = 1 + next((i for i, size in enumerate(sizes) if size > _MOST_WORDS), len(rows))
    if shown <= len(rows):
        text = "the ontology is too long for a prompt: %d of its classes and properties are shown"
        log.warning(f"{text} of %d", shown, len(rows))
    return Vocabulary(tuple(rows[:shown][: len(classes)]), tuple(rows[:shown][len(classes) :]))


def _find_type(iri: str, schema: Schema) -> str:
    """The entity type of a class or of the nearest one above it; empty without any."""
    classes = (schema.class_by_iri.get(above) for above in reversed(_list_line(iri, schema)))
    return next((each.entity_types[0] for each in classes if each and each.entity_types), "")


def list_pairs(schema: Schema) -> tuple[Group, ...]:
    """Every class–property pair by itself, as f_ins(c, a; p) of PolyRAG's Eq. 1 asks."""
    return tuple((prop,) for prop in schema.properties)


def _list_line(iri: str, schema: Schema) -> tuple[str, ...]:
    """A class under its ancestors, the most general first; one line of several."""
    line = [iri]
    while (c := schema.class_by_iri.get(line[-1])) is not None and c.parents:
        if c.parents[0] in line or c.parents[0] == THING:
            break
        line.append(c.parents[0])
    return tuple(reversed(line))


def _pack(
    classes: Iterable[Sequence[OntologyProperty]], most: int
) -> Iterator[list[OntologyProperty]]:
    pack: list[OntologyProperty] = []
    for properties in classes:
        if pack and len(pack) + len(properties) > most:
            yield pack
            pack = []
        pack = [*pack, *properties]
        while len(pack) > most:
            yield pack[:most]
            pack = pack[most:]
    if pack:
        yield pack


# The question, its prompt and its reply.

_EXAMPLES = 2
"""Examples in a prompt, if the ontology has any."""
_INSTRUCTIONS = read_prompts(__file__)["values"].format(guard=GUARD)


class Noted(Strict):
    """One value of the reply."""

    evidence: str
    subject: str
    property: str
    value: str


class Answer(Strict):
    """The reply."""

    values: list[Noted]


@dataclass(frozen=True)
class Question:
    """The request for a group of properties, the same for every text."""

    group: Group
    schema: Schema
    examples: tuple[Example, ...] = ()

    @cached_property
    def name(self) -> str:
        """What is asked for, in words: the property if there is one, else the classes."""
        domains = dict.fromkeys(prop.domain for prop in self.group)
        classes = ", ".join(name_class(iri, self.schema) for iri in domains)
        return f"{classes}: {self.group[0].label}" if len(self.group) == 1 else classes

    @cached_property
    def properties(self) -> dict[str, OntologyProperty]:
        """The properties by the distinct names that a reply may use."""
        named: dict[str, OntologyProperty] = {}
        for prop in self.group:
            name = " ".join(prop.label.split())
            if name in named:
                name = f"{name} of {name_class(prop.domain, self.schema)}"
            if name in named:
                name = prop.iri
            named[name] = prop
        return named

    @cached_property
    def static(self) -> str:
        """The system message, equal for all texts, so that servers can cache it."""
        lines = [_INSTRUCTIONS]
        last = ""
        for name, prop in self.properties.items():
            if prop.domain != last:
                lines += ["", _show_class(prop.domain, self.schema)]
                last = prop.domain
            lines.append(f"- {name}{_explain(prop)} → {name_range(prop.range, self.schema)}")
        for text, reply in self._list_shown():
            lines += ["", "Example", f"Text: {text}", f"Reply: {reply}"]
        return "\n".join(lines)

    @cached_property
    def form(self) -> dict[str, JsonValue]:
        """The strict schema of the reply, with the properties' names."""
        form: dict[str, Any] = deepcopy(strict_schema(Answer))  # that one is shared
        noted = form["properties"]["values"]["items"]["properties"]
        noted["property"]["enum"] = list(self.properties)
        return form

    def render(self, chunk: Chunk, task: Task, max_tokens: int) -> Request:
        """The request about a text."""
        return task.request(
            self.static,
            show_chunk(chunk),
            max_tokens=max_tokens,
            subject=chunk.text,
            document=chunk.document,
            schema=self.form,
        )

    def _list_shown(self) -> list[tuple[str, str]]:
        """The ontology's examples with values that this question asks for, word for word."""
        names: dict[str, str] = {}
        for name, prop in self.properties.items():
            names.setdefault(prop.label.casefold(), name)
            names[prop.iri] = name
        shown: list[tuple[str, str]] = []
        for text, triples in ((e.text, e.triples) for e in self.examples if e.is_complete):
            rows: list[JsonValue] = [
                {"evidence": text, "subject": subject, "property": known, "value": value}
                for subject, relation, value in triples
                if (known := names.get(relation) or names.get(relation.casefold()))
                and {subject in text, value in text} == {True}
            ]
            if rows:
                shown.append((text, write_json({"values": rows})))
        return shown[:_EXAMPLES]


def parse(content: str) -> tuple[Noted, ...]:
    """The values, in the order of the reply; nothing is checked against the text.

    Raises:
        ReplyError: it is no JSON of the schema.
    """
    return tuple(parse_json(content, Answer).values)


def _show_class(iri: str, schema: Schema) -> str:
    c = schema.class_by_iri.get(iri)
    if c is None:
        return f"Class {name_class(iri, schema)}"
    parents = [name_class(parent, schema) for parent in c.parents if parent != THING]
    kind = f" (a kind of {' and '.join(parents)})" if parents else ""
    return f"Class {c.label}{kind}{_explain(c)}"


def _explain(term: Term) -> str:
    """The comment on a class or property, else some of its other labels, behind a colon."""
    comment = _end(term.comment) or ", ".join(term.alt_labels[:3])
    return f": {comment}" if comment else ""


def _end(comment: str) -> str:
    """A comment on one line, without the final stop."""
    return " ".join(comment.split()).rstrip(".")


def _make_task(mode: str, name: str, reply_characters: float) -> Task:
    return Task(
        name=name,
        version=1,
        stage="induce",
        reply=Answer,
        system=lambda _: _INSTRUCTIONS,
        is_asked=lambda settings: (
            settings.induce.mode == mode and not (mode == "llm" and settings.cascade.reads_windows)
        ),
        shaping=(_INSTRUCTIONS, FORMS, _EXAMPLES),
        without='induce.mode = "rules": the values of properties that no rule reads',
        expected=Expected(reply=reply_characters),
    )


TASKS = {
    "llm": _make_task("llm", "values", 1.0),
    "exhaustive": _make_task("exhaustive", "value", 0.1),
}
"""The tasks by mode; two, because their prompts and replies differ in length."""


# A model's reply, verified against the text.

_REFERRING = frozenset({"the", "this", "these", "whose", "who", "which", "where"})
"""Words, besides pronouns, that refer to something named in another sentence."""


class Grounding:
    """The values that one text supports, reply by reply; `model` is their producer."""

    def __init__(self, text: str, model: str) -> None:
        self.values: dict[tuple[object, ...], Value] = {}
        self.dropped: list[Dropped] = []
        self._text, self._model = text, model
        self._folded, self._sentences = fold(text), tuple(split_sentences(text))

    def add(self, rows: Iterable[Noted], properties: Mapping[str, OntologyProperty]) -> None:
        """Adds the rows of a reply; `properties` are those that it was asked for, by name.

        The text's length limits the number of rows, whoever wrote the text.
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
    """The first span of a name, whatever its case, white space, quotation marks and dashes."""
    for span in within:
        part = text[span.start : span.end]
        spans = locate_quotation(part, fold(part), name)
        if len(spans) == 1:
            return Span(span.start + spans[0].start, span.start + spans[0].end)
    return None


def _refers(text: str, sentences: Sequence[Span]) -> bool:
    """Whether sentences refer to something that they do not name."""
    return any(
        is_pronoun(word) or word.casefold() in _REFERRING
        for span in sentences
        for word in WORD.findall(text[span.start : span.end])
    )


def _overlaps(span: Span, others: Sequence[Span]) -> bool:
    return any(span.start < s.end and s.start < span.end for s in others)


def _take(text: str, span: Span) -> Words:
    return Words(text[span.start : span.end], span.start, span.end)


# The inducer.


@dataclass(frozen=True, slots=True)
class Failed:
    """A question about a text without a usable reply; `asked`: what it asked for, in words."""

    asked: str
    failure: Failure


@dataclass(frozen=True, slots=True)
class Reading:
    """A model's values for one text; spans are characters of it."""

    values: tuple[Value, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    failures: tuple[Failed, ...] = ()


@dataclass(frozen=True)
class Inducer:
    """Asks for the values of groups of properties, text by text; `model` is the values' producer.

    `concurrency`: requests in flight at a time.
    """

    asker: Asker
    questions: Sequence[Question]
    task: Task
    model: str
    max_tokens: int
    concurrency: int
    progress: Progress

    def induce(self, chunks: Sequence[Chunk]) -> list[Reading]:
        """The values of each text, in order; equal texts of one title are asked about once.

        Raises:
            BudgetError, EndpointError: no further call can be made; the answers so far are kept.
        """
        distinct: dict[tuple[str, str | None], Chunk] = {}
        for chunk in chunks:
            distinct.setdefault((chunk.text, chunk.title), chunk)
        pairs = [(chunk, question) for chunk in distinct.values() for question in self.questions]
        self.progress.expect(len(pairs))
        answers = iter(do_at_once(lambda pair: self._ask(*pair), pairs, self.concurrency))
        readings = {
            key: self._read(key[0], [(question, next(answers)) for question in self.questions])
            for key in distinct
        }
        return [readings[p.text, p.title] for p in chunks]

    def _ask(self, chunk: Chunk, question: Question) -> tuple[Noted, ...] | Failure:
        answer = self.asker.ask(question.render(chunk, self.task, self.max_tokens), parse)
        self.progress.advance(1)
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
