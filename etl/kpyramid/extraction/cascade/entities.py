"""f_ent: the noun entities that the claims name, each once."""

from collections.abc import Sequence
from functools import lru_cache

from kpyramid.extraction.cascade.chunks import Chunk
from kpyramid.extraction.cascade.prompts import (
    Form,
    Shown,
    Strict,
    ask_about,
    asks_step,
    clean_items,
    show_parts,
    write_json,
    write_system,
)
from kpyramid.llm.responses import parse_json
from kpyramid.llm.task import Expected, Task
from kpyramid.llm.types import Request

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
    return ask_about(TASK, write_static(form), material, chunk, form)


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


TASK = Task(
    name="entities",
    version=1,
    stage="extract",
    reply=Answer,
    parse=parse,
    system=lambda settings: write_static(Form(settings.cascade, max_tokens=0)),
    is_asked=asks_step("entities"),
    # GPT-3.5's entities of 1,890 MuSiQue passages have 0.33 of their characters.
    expected=Expected(reply=0.35, material=1.1),
)
