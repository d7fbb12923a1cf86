"""f_dis, chunk by chunk: one wording per meaning, nothing twice, nothing lost."""

from collections.abc import Sequence
from functools import lru_cache

from kpyramid.extraction.cascade.chunks import Chunk
from kpyramid.extraction.cascade.prompts import Form, ask_about, asks_step, show_parts, write_system
from kpyramid.extraction.cascade.relations import Answer, Triple, parse
from kpyramid.llm.task import Expected, Task
from kpyramid.llm.types import Request

SYSTEM = """\
You clean up triples that were read from {{ domain }} texts in {{ language }}.
{{ guard }}
- Relations of the same meaning get the same words.
- A triple that repeats the meaning of an earlier one goes; all others stay.
- Correct a triple that its claims contradict; add nothing that they do not state.
- Head and tail keep the spelling of the entities.
Reply with JSON only: {"triples": [{"head": "...", "relation": "...", "tail": "..."}]}
"""


def render(
    claims: Sequence[str],
    triples: Sequence[Triple],
    entities: Sequence[str],
    chunk: Chunk,
    form: Form,
) -> Request:
    """The request to refine the triples of a chunk; the reply has the form of the relations'."""
    rows = [f"{triple.head} | {triple.relation} | {triple.tail}" for triple in triples]
    material = show_parts({"Claims": claims, "Entities": entities, "Triples": rows})
    return ask_about(TASK, write_static(form), material, chunk, form)


@lru_cache(maxsize=8)
def write_static(form: Form) -> str:
    """The part that all chunks share; an example of the settings has no state before cleaning."""
    return write_system(SYSTEM, form, ())


TASK = Task(
    name="disambiguation",
    version=1,
    stage="extract",
    reply=Answer,
    parse=parse,
    system=lambda settings: write_static(Form(settings.cascade, max_tokens=0)),
    is_asked=asks_step("disambiguation"),
    expected=Expected(reply=1.55, material=2.5),
)
