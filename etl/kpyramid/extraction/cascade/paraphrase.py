"""f_par: what a text states, as short claims without pronouns, each with the words it rests on."""

from dataclasses import dataclass
from functools import lru_cache

from kpyramid.extraction.cascade.chunks import Chunk
from kpyramid.extraction.cascade.evidence import find_evidence
from kpyramid.extraction.cascade.prompts import (
    Form,
    Shown,
    Strict,
    ask_about,
    asks_step,
    show_chunk,
    show_parts,
    write_json,
    write_system,
)
from kpyramid.llm.responses import parse_json
from kpyramid.llm.task import Expected, Task
from kpyramid.llm.types import Request

SYSTEM = """\
You rewrite {{ domain }} texts in {{ language }} as short factual claims.
{{ guard }}
- One fact per claim, in a short phrase of plain grammar; no two claims mean the same.
- Replace every pronoun by the name it stands for.
- State only what the text asserts, and all of it.
- "evidence" is the sentence, or the part of it, that says so, copied letter by letter.
Reply with JSON only: {"claims": [{"evidence": "...", "claim": "..."}]}
{% for example in examples %}
Example
{{ example.given }}
Reply: {{ example.reply }}
{% endfor %}"""


class Stated(Strict):
    """A claim and the words of the text that it rests on."""

    evidence: str
    claim: str


class Answer(Strict):
    """The reply."""

    claims: list[Stated]


@dataclass(frozen=True, slots=True)
class Statement:
    """A claim as it was replied, with the quotation that supports it; nothing is checked."""

    claim: str
    evidence: str


def render(chunk: Chunk, form: Form) -> Request:
    """The question what a chunk states."""
    return ask_about(TASK, write_static(form), show_chunk(chunk), chunk, form)


@lru_cache(maxsize=8)
def write_static(form: Form) -> str:
    """The part that all chunks share."""
    examples = [
        Shown(
            show_parts({"Text": example.text}),
            write_json(
                {
                    "claims": [
                        {"evidence": find_evidence(example.text, claim), "claim": claim}
                        for claim in example.claims
                    ]
                }
            ),
        )
        for example in form.examples
    ]
    return write_system(SYSTEM, form, examples)


def parse(content: str) -> tuple[Statement, ...]:
    """The claims, in the order of the reply.

    Raises:
        ReplyError: it is no JSON of the schema.
    """
    answer = parse_json(content, Answer)
    return tuple(Statement(" ".join(s.claim.split()), s.evidence) for s in answer.claims)


TASK = Task(
    name="paraphrase",
    version=1,
    stage="extract",
    reply=Answer,
    parse=parse,
    system=lambda settings: write_static(Form(settings.cascade, max_tokens=0)),
    is_asked=asks_step("paraphrase"),
    expected=Expected(reply=2.6),
)
