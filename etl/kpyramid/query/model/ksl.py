"""Choosing the next entity of a walk by a language model (Knowledge Solver, 4.1).

The prompt is a reconstruction: the paper prints its own in figures only. The call of its Algorithm
1 hands the model nothing but the tails; here the question and the options stand before them, since
without them there is nothing to choose by. A round is one call.
"""

from collections.abc import Sequence

from kpyramid.llm.responses import parse_json
from kpyramid.llm.task import GUARD, Strict, Task
from kpyramid.llm.types import Asker, FailureKind, Reply, ReplyError, Request
from kpyramid.query.model.prompting import (
    MAX_TOKENS,
    Asked,
    ask_model,
    ask_once,
    decides,
    flatten,
    show_numbered,
    show_question,
)
from kpyramid.query.paths import StatedPath
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
  entity, and numbered tails: a relation and the entity that it leads to. An asterisk (*) marks a
  relation that is read against its direction.
- Choose by the relations and by what you know; each choice is one step nearer to the answer.
- "tail": the number of one tail. 0 only where it is offered: the current entity is the answer.
Reply with JSON only: {{"tail": 1}}
"""


class Step(Strict):
    """The reply."""

    tail: int


def choose_by_model(
    question: Question, ways: Sequence[StatedPath], asker: Asker, *, may_stop: bool
) -> Asked[int | None]:
    """The place of the way that the model chooses; None: it stops at the head, where it may.

    The ways are one walk with another step each.

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    request, shown = render(question, ways, may_stop=may_stop)
    return ask_model(asker, request, lambda reply: parse(reply, shown, may_stop=may_stop))


def render(
    question: Question, ways: Sequence[StatedPath], *, may_stop: bool = False
) -> tuple[Request, int]:
    """The request of one round, and how many of the tails are in it."""
    material, shown = show_round(question, ways, may_stop=may_stop)
    request = TASK.request(_SYSTEM, material, max_tokens=MAX_TOKENS, subject=question.text)
    return ask_once(request), shown


def show_round(
    question: Question, ways: Sequence[StatedPath], *, may_stop: bool = False
) -> tuple[str, int]:
    """What one round shows, and how many of the tails are in it.

    Question, options, history, head, and the tails with their relations (Figures 2 and 3).
    """
    *history, _ = show_steps(ways[0])
    tails = show_numbered([show_steps(way)[-1] for way in ways], MOST_CHARACTERS)
    lines = [
        *show_question(question),
        *(["Steps so far:"] if history else []),
        *(f"- {step}" for step in history),
        f"Current entity: {flatten(ways[0].names[-2])}",
        "Linked entities:",
        *(["[0] stop here"] if may_stop else []),
        *tails,
    ]
    return "\n".join(lines), len(tails)


def show_steps(path: StatedPath) -> list[str]:
    """Each step in a line; `*` marks a relation that is read from tail to head, as in Figure 4."""
    steps = zip(path.names, path.relations, path.forward, path.names[1:], strict=False)
    return [
        flatten(f"{head} – {relation}{'' if ahead else '*'} → {tail}")
        for head, relation, ahead, tail in steps
    ]


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
    system=lambda _: _SYSTEM,
    is_asked=decides("ksl", "walk"),
)
