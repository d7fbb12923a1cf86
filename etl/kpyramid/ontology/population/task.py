"""f_ins: which values of some classes' properties a text states; groups, prompt, reply, parser."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from kpyramid.extraction.cascade.tasks import show_chunk
from kpyramid.extraction.cascade.windows import Vocabulary
from kpyramid.extraction.types import Chunk
from kpyramid.keys import JsonValue
from kpyramid.llm.task import (
    GUARD,
    Expected,
    Request,
    Strict,
    Task,
    parse_json,
    strict_schema,
    write_json,
)
from kpyramid.ontology.names import THING
from kpyramid.ontology.population.examples import Example
from kpyramid.ontology.proposals import FORMS, name_class, name_range
from kpyramid.ontology.schema import OntologyProperty, Schema

log = logging.getLogger(__name__)

# Groups: the properties of one call.

MOST_PROPERTIES = 64
"""Properties of one call: some 1,700 tokens of prompt, the same for every text, so that servers
keep it. A call of its own for every class would repeat instructions and text each time."""


@dataclass(frozen=True, slots=True)
class Group:
    """The properties that one call asks for, those of one domain side by side."""

    properties: tuple[OntologyProperty, ...]

    @property
    def domains(self) -> tuple[str, ...]:
        """The IRIs of the classes whose individuals are asked for, each once."""
        return tuple(dict.fromkeys(prop.domain for prop in self.properties))


def group_properties(schema: Schema, most: int = MOST_PROPERTIES) -> tuple[Group, ...]:
    """All that an ontology can be asked for in as few calls as `most` properties allow.

    Classes that are near in the hierarchy stand together; one with more properties is cut. What a
    class inherits is asked once, with the class that declares it. Of two inverse properties the
    one with the smaller IRI is asked, as an instance is kept under that one.
    """
    asked = [
        prop for prop in schema.properties if prop.inverse_of is None or prop.iri <= prop.inverse_of
    ]
    by_class: dict[tuple[str, ...], list[OntologyProperty]] = {}
    for prop in asked:
        by_class.setdefault(_list_line(prop.domain, schema), []).append(prop)
    packs = _pack([by_class[line] for line in sorted(by_class)], most)
    return tuple(Group(tuple(pack)) for pack in packs)


_MOST_WORDS = 40_000
"""Characters of an ontology in words, its comments included; a longer one is cut."""


def write_vocabulary(schema: Schema) -> Vocabulary:
    """The ontology in words for the windows of documents: classes, and properties as asked.

    Comments are left out of one that would be too long with them; what is too long all the same
    ends in its middle, and says so in the log.
    """
    asked = [prop for group in group_properties(schema) for prop in group.properties]
    properties = [
        (name_class(p.domain, schema), p.label, name_range(p.range, schema)) for p in asked
    ]
    classes = [(c.label, _end(c.comment), _find_type(c.iri, schema)) for c in schema.classes]
    if sum(len("".join(row)) for row in (*classes, *properties)) > _MOST_WORDS:
        classes = [(label, "", kind) for label, _, kind in classes]
    rows = [*classes, *properties]
    sizes = accumulate(len("".join(row)) for row in rows)
    shown = 1 + next((at for at, size in enumerate(sizes) if size > _MOST_WORDS), len(rows))
    if shown <= len(rows):
        said = "the ontology is too long for a prompt: %d of its classes and properties are shown"
        log.warning(f"{said} of %d", shown, len(rows))
    return Vocabulary(tuple(rows[:shown][: len(classes)]), tuple(rows[:shown][len(classes) :]))


def _find_type(iri: str, schema: Schema) -> str:
    """The entity type of a class or the nearest one above it; empty without any."""
    found = (schema.class_by_iri.get(above) for above in reversed(_list_line(iri, schema)))
    return next((each.entity_types[0] for each in found if each and each.entity_types), "")


def list_pairs(schema: Schema) -> tuple[Group, ...]:
    """Every class–property pair by itself, as f_ins(c, a; p) of PolyRAG's Eq. 1 asks."""
    return tuple(Group((prop,)) for prop in schema.properties)


def _list_line(iri: str, schema: Schema) -> tuple[str, ...]:
    """A class under its ancestors, the most general first; one line where there are several."""
    line = [iri]
    while (found := schema.class_by_iri.get(line[-1])) is not None and found.parents:
        if found.parents[0] in line or found.parents[0] == THING:
            break
        line.append(found.parents[0])
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
"""Worked examples of a prompt, where the ontology has any."""

_INSTRUCTIONS = f"""\
You read a text and note what it states of the individuals of an ontology.
{GUARD}
- An individual is one thing that the text names and that is of a class below.
- Note every value that the text states of an individual: the evidence, which is the sentence that \
states it, copied exactly; the subject, which is the individual; the property; the value.
- Subject and value are spelled as in the text and are never pronouns.
- The property is one of those listed. Its subject is of the class that it stands under, its value \
is what stands behind the arrow.
- Leave out what the text denies, doubts or does not state.
Reply with JSON only: \
{{"values": [{{"evidence": "...", "subject": "...", "property": "...", "value": "..."}}]}}, \
{{"values": []}} where there is none."""


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
    """What is asked of every text that a group of properties is routed to."""

    group: Group
    schema: Schema
    examples: tuple[Example, ...] = ()

    @cached_property
    def name(self) -> str:
        """What it asks for, in words: the property if it is one, else the classes."""
        classes = ", ".join(name_class(iri, self.schema) for iri in self.group.domains)
        only = self.group.properties[0] if len(self.group.properties) == 1 else None
        return f"{classes}: {only.label}" if only else classes

    @cached_property
    def properties(self) -> dict[str, OntologyProperty]:
        """The properties by the names that a reply may use, no two alike."""
        named: dict[str, OntologyProperty] = {}
        for prop in self.group.properties:
            name = " ".join(prop.label.split())
            if name in named:
                name = f"{name} of {name_class(prop.domain, self.schema)}"
            if name in named:
                name = prop.iri
            named[name] = prop
        return named

    @cached_property
    def static(self) -> str:
        """The message that is the same for every text, so that servers can keep it."""
        lines = [_INSTRUCTIONS]
        last = ""
        for name, prop in self.properties.items():
            if prop.domain != last:
                lines += ["", _show_class(prop.domain, self.schema)]
                last = prop.domain
            said = _end(prop.comment) or ", ".join(prop.alt_labels[:3])
            words = f": {said}" if said else ""
            lines.append(f"- {name}{words} → {name_range(prop.range, self.schema)}")
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
        """The question about a text."""
        return task.request(
            self.static,
            show_chunk(chunk),
            max_tokens=max_tokens,
            subject=chunk.text,
            document=chunk.document,
            schema=self.form,
        )

    def _list_shown(self) -> list[tuple[str, str]]:
        """Examples of the ontology with values that this question asks for, word for word."""
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
    found = schema.class_by_iri.get(iri)
    if found is None:
        return f"Class {name_class(iri, schema)}"
    parents = [name_class(parent, schema) for parent in found.parents if parent != THING]
    kind = f" (a kind of {' and '.join(parents)})" if parents else ""
    said = _end(found.comment) or ", ".join(found.alt_labels[:3])
    return f"Class {found.label}{kind}" + (f": {said}" if said else "")


def _end(comment: str) -> str:
    """A comment in one line, without the stop at its end."""
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
        expected=Expected(reply=reply_characters),
        without='induce.mode = "rules": the values of properties that no rule reads',
    )


TASKS = {
    "llm": _make_task("llm", "values", 1.0),
    "exhaustive": _make_task("exhaustive", "value", 0.1),
}
"""The tasks by mode; apart, because their prompts and replies differ in length."""
