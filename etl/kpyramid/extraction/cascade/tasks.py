"""The cascade's requests to a model about a chunk: each step's prompt, reply, parser and task.

`ask_…` makes the request of a step, `read_…` parses its reply. All bytes of a prompt are part of
its requests' keys, so a change of them, of a reply or a parser raises the task's version.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from jinja2 import Environment, StrictUndefined

from kpyramid.extraction.cascade.evidence import find_evidence
from kpyramid.extraction.types import Chunk
from kpyramid.keys import JsonValue
from kpyramid.llm.prompts import read_prompts
from kpyramid.llm.task import GUARD, Expected, Request, Strict, Task, parse_json, write_json
from kpyramid.settings import CascadeSettings, Example, Settings

_TEMPLATES = Environment(
    undefined=StrictUndefined,
    autoescape=False,  # noqa: S701 - a prompt is no HTML
    trim_blocks=True,
    lstrip_blocks=True,
)

BUILT_IN = Example(
    text="Hedda Lund was a Danish chemist. In 1928 she founded Lund Dyes.",
    claims=("Hedda Lund was a Danish chemist.", "Hedda Lund founded Lund Dyes in 1928."),
    entities=("Hedda Lund", "Danish chemist", "Lund Dyes", "1928"),
    triples=(
        ("Hedda Lund", "was a", "Danish chemist"),
        ("Hedda Lund", "founded", "Lund Dyes"),
        ("Lund Dyes", "was founded in", "1928"),
    ),
)
"""The example of a project that gives none; people and dates are made up."""

PROMPTS: dict[str, str] = read_prompts(__file__)
"""The system message of each step. An example has no state before its triples are cleaned up."""


@dataclass(frozen=True, slots=True)
class Form:
    """The common parameters of a run's requests: the settings and the tokens of one reply."""

    settings: CascadeSettings
    max_tokens: int


@lru_cache(maxsize=32)
def write_static(step: str, form: Form) -> str:
    """The message that is the same for every chunk, so that servers can cache it."""
    examples = form.settings.examples or (BUILT_IN,)
    return render_prompt(step, form.settings, [_show_example(step, each) for each in examples])


def render_prompt(
    step: str, settings: CascadeSettings, examples: Sequence[Mapping[str, str]], **more: object
) -> str:
    """The instructions of a step; an example has the input `given` and the `reply`."""
    named = {"domain": settings.domain, "language": settings.language, "guard": GUARD}
    return _TEMPLATES.from_string(PROMPTS[step]).render(examples=examples, **named, **more)


def _show_example(step: str, example: Example) -> dict[str, str]:
    """The input of a step in an example, and the expected reply."""
    evidence = [find_evidence(example.text, claim) for claim in example.claims]
    claims: list[JsonValue] = [
        {"evidence": words, "claim": claim}
        for words, claim in zip(evidence, example.claims, strict=True)
    ]
    entities: list[JsonValue] = [*split_commas(example.entities)]
    given: dict[str, str | Iterable[str]] = {"Text": example.text}
    reply: dict[str, JsonValue] = {"claims": claims}
    if step == "entities":
        given, reply = {"Claims": example.claims}, {"entities": entities}
    elif step == "relations":
        given = {"Claims": example.claims, "Entities": example.entities}
        reply = {"triples": [Triple(*triple)._asdict() for triple in example.triples]}
    return {"given": show_parts(given), "reply": write_json(reply)}


def show_parts(parts: Mapping[str, str | Iterable[str]]) -> str:
    """Named parts of the material: one line of text, or one line per item."""
    lines = []
    for name, part in parts.items():
        if isinstance(part, str):
            lines.append(f"{name}: {part}")
        else:
            lines += [f"{name}:", *(f"- {' '.join(item.split())}" for item in part)]
    return "\n".join(lines)


def show_chunk(chunk: Chunk) -> str:
    """A chunk's title and text."""
    title = " ".join((chunk.title or "").split())
    return show_parts({"Title": title, "Text": chunk.text} if title else {"Text": chunk.text})


# Replies.


class Statement(Strict):
    """A claim of a reply with the quotation that supports it; nothing is checked."""

    evidence: str
    claim: str


class _Claims(Strict):
    claims: list[Statement]


class _Entities(Strict):
    entities: list[str]


class _Triple(Strict):
    head: str
    relation: str
    tail: str


class _Triples(Strict):
    triples: list[_Triple]


class Triple(NamedTuple):
    """One row of a reply, single spaces; nothing is checked."""

    head: str
    relation: str
    tail: str


def read_claims(content: str) -> Sequence[Statement]:
    """The claims, in the order of the reply.

    Raises:
        ReplyError: the reply is no JSON of the schema; the other readers raise it too.
    """
    return parse_json(content, _Claims).claims


def read_entities(content: str) -> tuple[str, ...]:
    """The entities, each once."""
    return split_commas(parse_json(content, _Entities).entities)


def read_triples(content: str) -> tuple[Triple, ...]:
    """The triples, in the order of the reply."""
    replied = parse_json(content, _Triples).triples
    parts = ((row.head, row.relation, row.tail) for row in replied)
    return tuple(Triple(*(" ".join(part.split()) for part in row)) for row in parts)


def split_commas(entities: Sequence[str]) -> tuple[str, ...]:
    """The entities, each once, cut at commas; a comma between digits belongs to the number."""
    parts: list[str] = []
    for entity in entities:
        start = 0
        for index, character in enumerate(entity):
            inside = entity[max(index - 1, 0)].isdigit() and entity[index + 1 : index + 2].isdigit()
            if character == "," and not inside:
                parts.append(entity[start:index])
                start = index + 1
        parts.append(entity[start:])
    return clean_items(parts)


def clean_items(items: Iterable[str]) -> tuple[str, ...]:
    """The items with single spaces, each once whatever its case, without empty ones."""
    unique: dict[str, str] = {}
    for item in items:
        words = " ".join(item.split())
        if words:
            unique.setdefault(words.casefold(), words)
    return tuple(unique.values())


# Tasks, and requests for them.


def _asks_step(step: str) -> Callable[[Settings], bool]:
    """Whether settings have a model take a step of the cascade, chunk by chunk."""

    def is_asked(settings: Settings) -> bool:
        cascade = settings.cascade
        if not cascade.reads_chunks or cascade.mode == "merged":
            return cascade.reads_chunks and step == cascade.mode
        return getattr(cascade, step, None) == "llm"

    return is_asked


def make_task(
    step: str,
    reply: type[Strict],
    expected: Expected,
    system: Callable[[Settings], str] | None = None,
    without: str = "",
) -> Task:
    """The task of a step, by its name in `prompts.toml`."""
    return Task(
        name=step,
        version=1,
        stage="extract",
        reply=reply,
        system=system or (lambda settings: write_static(step, Form(settings.cascade, 0))),
        is_asked=_asks_step(step),
        expected=expected,
        without=without,
    )


PARAPHRASE = make_task("paraphrase", _Claims, Expected(reply=2.6))
"""f_par: the claims of a text, short and without pronouns, with the words that support them."""
# GPT-3.5's entities of 1,890 MuSiQue passages have 0.33 of their characters, its triples 1.61.
ENTITIES = make_task("entities", _Entities, Expected(reply=0.35, material=1.1))
"""f_ent: the noun entities that the claims name, each once."""
RELATIONS = make_task("relations", _Triples, Expected(reply=1.65, material=1.5))
"""f_rel: how the entities of the claims are related; one head, one verb phrase, one tail each."""
DISAMBIGUATION = make_task("disambiguation", _Triples, Expected(reply=1.55, material=2.5))
"""f_dis, chunk by chunk: one wording per meaning, nothing twice, nothing lost."""
STEPS = (PARAPHRASE, ENTITIES, RELATIONS, DISAMBIGUATION)


def ask_claims(chunk: Chunk, form: Form) -> Request:
    """The request for the claims of a chunk."""
    return _ask(PARAPHRASE, show_chunk(chunk), chunk, form)


def ask_entities(claims: Sequence[str], chunk: Chunk, form: Form) -> Request:
    """The request for the entities that the claims of a chunk name."""
    return _ask(ENTITIES, show_parts({"Claims": claims}), chunk, form)


def ask_relations(
    claims: Sequence[str], entities: Sequence[str], chunk: Chunk, form: Form
) -> Request:
    """The request for the relations between the entities of a chunk."""
    return _ask(RELATIONS, show_parts({"Claims": claims, "Entities": entities}), chunk, form)


def ask_disambiguation(
    claims: Sequence[str],
    triples: Sequence[Triple],
    entities: Sequence[str],
    chunk: Chunk,
    form: Form,
) -> Request:
    """The request to refine the triples of a chunk; the reply has the form of the relations'."""
    rows = map(" | ".join, triples)
    material = show_parts({"Claims": claims, "Entities": entities, "Triples": rows})
    return _ask(DISAMBIGUATION, material, chunk, form)


def _ask(task: Task, material: str, chunk: Chunk, form: Form) -> Request:
    return task.request(
        write_static(task.name, form),
        material,
        max_tokens=form.max_tokens,
        subject=chunk.text,
        document=chunk.document,
    )
