"""f_ent: the noun entities that the claims name, each once."""

from collections.abc import Sequence
from functools import lru_cache

from kpyramid.extraction.cascade.chunks import Chunk
from kpyramid.extraction.cascade.prompts import (
    Form,
    Shown,
    Strict,
    clean_items,
    make_request,
    show_parts,
    strict_schema,
    write_json,
    write_system,
)
from kpyramid.keys import JsonValue
from kpyramid.llm.responses import parse_json
from kpyramid.llm.types import Request

NAME = "entities"
VERSION = 1
SYSTEM = """\
You list the noun entities that claims from {{ domain }} texts in {{ language }} name.
{{ guard }}
- Names, things, dates and quantities, worded as in the claims; no pronouns.
- List each entity once. No entity holds a comma: list its parts instead.
Reply with JSON only: {"entities": ["..."]}
{% for example in examples %}
Example
{{ example.given }}
Reply: {{ example.reply }}
{% endfor %}"""


class Answer(Strict):
    """The reply."""

    entities: list[str]


def render(claims: Sequence[str], chunk: Chunk, form: Form) -> Request:
    """The question which entities the claims of a chunk name."""
    material = show_parts({"Claims": claims})
    return make_request(NAME, VERSION, write_static(form), material, schema(), chunk, form)


@lru_cache(maxsize=8)
def write_static(form: Form) -> str:
    """The part that all chunks share."""
    examples = [
        Shown(
            show_parts({"Claims": example.claims}),
            write_json({"entities": split_commas(example.entities)}),
        )
        for example in form.examples
    ]
    return write_system(SYSTEM, form, examples)


def schema() -> dict[str, JsonValue]:
    """The strict schema of the reply."""
    return strict_schema(Answer)


def parse(content: str) -> tuple[str, ...]:
    """The entities, each once.

    Raises:
        ReplyError: it is no JSON of the schema.
    """
    return split_commas(parse_json(content, Answer).entities)


def split_commas(entities: Sequence[str]) -> tuple[str, ...]:
    """The entities, each once, cut at commas; a comma between digits belongs to the number."""
    parts: list[str] = []
    for entity in entities:
        start = 0
        for at, character in enumerate(entity):
            inside = entity[max(at - 1, 0)].isdigit() and entity[at + 1 : at + 2].isdigit()
            if character == "," and not inside:
                parts.append(entity[start:at])
                start = at + 1
        parts.append(entity[start:])
    return clean_items(parts)
