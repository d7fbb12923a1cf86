"""Choosing the next entity of a walk by a language model (Knowledge Solver, 4.1).

The prompt is a reconstruction: the paper prints its own in figures only. Its Algorithm 1 hands the
model nothing but the tails; here the question and the options stand before them, since without them
there is nothing to choose by.
"""

from collections.abc import Sequence

from kpyramid.llm.responses import parse_json
from kpyramid.llm.task import GUARD, Strict, Task
from kpyramid.llm.types import Asker, FailureKind, Reply, ReplyError, Request
from kpyramid.query.model.prompting import MAX_TOKENS, Asked, ask_model, flatten, show_numbered
from kpyramid.query.types import Question

MOST_CHARACTERS = 12_000
"""Of tails; a hundred have about 5,000."""

INSTRUCTION = (
    "You walk over a knowledge graph from entity to entity to answer a question. Given the steps "
    "so far, the current entity and the entities linked to it, choose the one that leads to the "
    "answer."
)
"""What every step is asked, also in the rows for fine-tuning (4.2)."""
_SYSTEM = f"""\
{INSTRUCTION}
{GUARD}
- The material is the question, its options where it has some, the steps so far, the current
  entity, and numbered tails: a relation and the entity that it leads to. "is ... of" marks a
  relation that is read against its direction.
- Choose by the relations and by what you know; each choice is one step nearer to the answer.
- "tail": the number of one tail. 0 only where it is offered: the current entity is the answer.
Reply with JSON only: {{"tail": 1}}
"""


class Step(Strict):
    """The reply."""

    tail: int


def choose_by_model(
    question: Question,
    history: Sequence[str],
    head: str,
    tails: Sequence[str],
    asker: Asker,
    *,
    may_stop: bool,
) -> Asked[int | None]:
    """The place of the tail that the model chooses; None: it stops at the head, where it may.

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    request, shown = render(question, history, head, tails, may_stop=may_stop)
    return ask_model(asker, request, lambda reply: parse(reply, shown, may_stop=may_stop))


def render(
    question: Question, history: Sequence[str], head: str, tails: Sequence[str], *, may_stop: bool
) -> tuple[Request, int]:
    """One round as the paper shows it (Figure 2), and how many of the tails are in it."""
    lines = [f"Question: {flatten(question.text)}"]
    if question.candidates:
        lines += ["Options:", *(f"- {flatten(text)}" for text in question.candidates)]
    listed = show_numbered(tails, MOST_CHARACTERS)
    lines += show_round(history, head, [*(["[0] stop here"] if may_stop else []), *listed])
    material = "\n".join(lines)
    request = TASK.request(_SYSTEM, material, max_tokens=MAX_TOKENS, subject=question.text)
    return request, len(listed)


def show_round(history: Sequence[str], head: str, tails: Sequence[str]) -> list[str]:
    """History, head and tails of one round, a line each; of the rows for fine-tuning as well."""
    said = ["Steps so far:", *(f"- {flatten(step)}" for step in history)] if history else []
    return [*said, f"Current entity: {flatten(head)}", "Linked entities:", *tails]


def parse(reply: Reply, tails: int, *, may_stop: bool) -> int | None:
    """The place of the chosen tail, from 0; None for a stop.

    Raises:
        ReplyError: it is no JSON of the schema, or names a tail that was not offered.
    """
    number = parse_json(reply.content, Step).tail
    if number == 0 and may_stop:
        return None
    if not 1 <= number <= tails:
        raise ReplyError(FailureKind.INVALID, f"tail {number} of {tails} was not offered")
    return number - 1


TASK = Task(
    name="ksl_step",
    version=1,
    stage="query",
    reply=Step,
    parse=parse,
    system=lambda _: _SYSTEM,
    is_asked=lambda settings: settings.query.walk == "llm" and settings.query.strategy == "ksl",
)
