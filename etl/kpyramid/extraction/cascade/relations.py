"""f_rel: how the entities of the claims are related; one head, one verb phrase, one tail each."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from kpyramid.extraction.cascade.chunks import Chunk
from kpyramid.extraction.cascade.prompts import (
    Form,
    Shown,
    Strict,
    ask_about,
    asks_step,
    show_parts,
    write_json,
    write_system,
)
from kpyramid.keys import JsonValue
from kpyramid.llm.responses import parse_json
from kpyramid.llm.task import Expected, Task
from kpyramid.llm.types import Request

SYSTEM = """\
You complete the relations between entities that claims from {{ domain }} texts in \
{{ language }} state.
{{ guard }}
- A triple is one entity as head, one verb or verb phrase as relation, one entity as tail.
- Head and tail are entities of the list, spelled as there; the relation says how they are joined.
- Leave out what the claims do not state.
Reply with JSON only: {"triples": [{"head": "...", "relation": "...", "tail": "..."}]}
{% for example in examples %}
Example
{{ example.given }}
Reply: {{ example.reply }}
{% endfor %}"""


class Related(Strict):
    """One triple of the reply."""

    head: str
    relation: str
    tail: str


class Answer(Strict):
    """The reply."""

    triples: list[Related]


@dataclass(frozen=True, slots=True)
class Triple:
    """One row of a reply, single spaces; nothing is checked."""

    head: str
    relation: str
    tail: str


def render(claims: Sequence[str], entities: Sequence[str], chunk: Chunk, form: Form) -> Request:
    """The question how the entities of a chunk are related."""
    material = show_parts({"Claims": claims, "Entities": entities})
    return ask_about(TASK, write_static(form), material, chunk, form)


@lru_cache(maxsize=8)
def write_static(form: Form) -> str:
    """The part that all chunks share."""
    examples = [
        Shown(
            show_parts({"Claims": example.claims, "Entities": example.entities}),
            write_json({"triples": [show_triple(*triple) for triple in example.triples]}),
        )
        for example in form.examples
    ]
    return write_system(SYSTEM, form, examples)


def parse(content: str) -> tuple[Triple, ...]:
    """The triples, in the order of the reply.

    Raises:
        ReplyError: it is no JSON of the schema.
    """
    return tuple(read_triple(row) for row in parse_json(content, Answer).triples)


def read_triple(row: Related) -> Triple:
    """A replied triple with single spaces."""
    return Triple(*(" ".join(part.split()) for part in (row.head, row.relation, row.tail)))


def show_triple(head: str, relation: str, tail: str) -> dict[str, JsonValue]:
    """A triple as replies write it."""
    return {"head": head, "relation": relation, "tail": tail}


TASK = Task(
    name="relations",
    version=1,
    stage="extract",
    reply=Answer,
    parse=parse,
    system=lambda settings: write_static(Form(settings.cascade, max_tokens=0)),
    is_asked=asks_step("relations"),
    # GPT-3.5's triples on 1,890 MuSiQue passages have 1.61 of their characters.
    expected=Expected(reply=1.65, material=1.5),
)
