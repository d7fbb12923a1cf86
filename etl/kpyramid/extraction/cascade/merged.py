"""f_par, f_ent and f_rel in one call: entities, and claims with evidence and triples."""

from dataclasses import dataclass
from functools import lru_cache

from kpyramid.extraction.cascade.chunks import Chunk
from kpyramid.extraction.cascade.entities import split_commas
from kpyramid.extraction.cascade.evidence import assign_triples, find_evidence
from kpyramid.extraction.cascade.paraphrase import Stated, Statement
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
from kpyramid.extraction.cascade.relations import Related, Triple, read_triple, show_triple
from kpyramid.keys import JsonValue
from kpyramid.llm.responses import parse_json
from kpyramid.llm.task import Expected, Task
from kpyramid.llm.types import Request
from kpyramid.settings import Example

SYSTEM = """\
You read {{ domain }} texts in {{ language }} and reply with the facts they state.
{{ guard }}
- "entities": the noun entities, with dates and quantities, each once, without commas.
- "claims": each fact as one short phrase of plain grammar; no two mean the same; every pronoun \
replaced by the name it stands for; only what the text asserts, and all of it.
- "evidence": the sentence, or the part of it, that says so, copied letter by letter.
- "triples": what the claim says: one entity as head, one verb or verb phrase as relation that \
says how they are joined, one entity as tail.
Reply with JSON only: {"entities": ["..."], "claims": [{"evidence": "...", "claim": "...", \
"triples": [{"head": "...", "relation": "...", "tail": "..."}]}]}
{% for example in examples %}
Example
{{ example.given }}
Reply: {{ example.reply }}
{% endfor %}"""


class Fact(Stated):
    """A claim with its evidence and the triples that it states."""

    triples: list[Related]


class Answer(Strict):
    """The reply."""

    entities: list[str]
    claims: list[Fact]


@dataclass(frozen=True, slots=True)
class Reading:
    """What was replied about a chunk; `triples` has a row of triples per statement."""

    entities: tuple[str, ...]
    statements: tuple[Statement, ...]
    triples: tuple[tuple[Triple, ...], ...]


def render(chunk: Chunk, form: Form) -> Request:
    """The question what a chunk states, and of what."""
    return ask_about(TASK, write_static(form), show_chunk(chunk), chunk, form)


@lru_cache(maxsize=8)
def write_static(form: Form) -> str:
    """The part that all chunks share."""
    examples = [
        Shown(show_parts({"Text": example.text}), write_json(_write_reply(example)))
        for example in form.examples
    ]
    return write_system(SYSTEM, form, examples)


def parse(content: str) -> Reading:
    """Entities, statements and triples, in the order of the reply.

    Raises:
        ReplyError: it is no JSON of the schema.
    """
    answer = parse_json(content, Answer)
    return Reading(
        split_commas(answer.entities),
        tuple(Statement(" ".join(fact.claim.split()), fact.evidence) for fact in answer.claims),
        tuple(tuple(read_triple(row) for row in fact.triples) for fact in answer.claims),
    )


def _write_reply(example: Example) -> JsonValue:
    """The reply that an example asks for; triples stand with the claim that names their ends."""
    per_claim = assign_triples(example.claims, example.triples)
    claims: list[JsonValue] = [
        {
            "evidence": find_evidence(example.text, claim),
            "claim": claim,
            "triples": [show_triple(*triple) for triple in triples],
        }
        for claim, triples in zip(example.claims, per_claim, strict=True)
    ]
    return {"entities": list(split_commas(example.entities)), "claims": claims}


TASK = Task(
    name="merged",
    version=1,
    stage="extract",
    reply=Answer,
    parse=parse,
    system=lambda settings: write_static(Form(settings.cascade, max_tokens=0)),
    is_asked=asks_step("merged"),
    expected=Expected(reply=4.6),
)
