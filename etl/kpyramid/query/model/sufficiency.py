"""`Query_kg` by a language model: are these facts enough to answer the question (PolyRAG, IV-B)?

Prompt, reply and parser stand here. A reply that cannot be used is a no with its reason: the next
layer is asked, and nothing is claimed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kpyramid.llm.responses import parse_json, quote_text
from kpyramid.llm.task import GUARD, Strict, Task
from kpyramid.llm.types import Asker, Failure, Reply, Request
from kpyramid.query.model.prompting import (
    MAX_TOKENS,
    ask_model,
    pick_numbers,
    show_numbered,
    show_question,
)
from kpyramid.query.types import Question

MOST_CHARACTERS = 12_000
"""Of facts; ten of them have about 800."""

_SYSTEM = f"""\
You decide whether facts are enough to answer a question.
{GUARD}
- The material is the question, its options where it has some, and numbered facts.
- Go by the facts alone, and by nothing that you know besides.
- "yes" only when the whole answer stands in one fact, or follows from several together.
- "no" when a fact is about the right thing and says something else of it, when it would have to
  be guessed, or when only a part of the answer is there.
- "facts": the numbers of the facts that the answer follows from; empty for "no".
Reply with JSON only: {{"reason": "one short sentence", "facts": [1], "enough": "yes" or "no"}}
"""


class Decision(Strict):
    """The reply."""

    reason: str
    facts: tuple[int, ...]
    enough: Literal["yes", "no"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether facts are enough, why, and what it took to say so.

    `supporting`: the positions, from 0, of the facts that a yes rests on; empty for a no.
    """

    enough: bool
    reason: str
    calls: int = 0
    tokens: int = 0
    supporting: tuple[int, ...] = ()


def judge_by_model(question: Question, statements: Sequence[str], asker: Asker) -> Verdict:
    """Whether the statements are enough to answer the question, by the model.

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    if not statements:
        return Verdict(False, "there is no fact")
    request, shown = render(question, statements)
    asked = ask_model(asker, request, parse)
    decision = asked.value
    if isinstance(decision, Failure):
        reason = f"the model gave no verdict: {decision.kind}: {decision.detail}"
        return Verdict(False, reason, asked.calls, asked.tokens)
    said = quote_text(decision.reason) or "it gives no reason"
    supporting = pick_numbers(decision.facts, shown)
    if decision.enough == "no":
        return Verdict(False, f"the model: {said}", asked.calls, asked.tokens)
    if not supporting:
        reason = f"the model says yes and names none of the facts: {said}"
        return Verdict(False, reason, asked.calls, asked.tokens)
    return Verdict(True, f"the model: {said}", asked.calls, asked.tokens, supporting)


def render(question: Question, statements: Sequence[str]) -> tuple[Request, int]:
    """The question with the numbered facts, and how many of them it shows."""
    facts = show_numbered(statements, MOST_CHARACTERS)
    material = "\n".join([*show_question(question), "Facts:", *facts])
    request = TASK.request(_SYSTEM, material, max_tokens=MAX_TOKENS, subject=question.text)
    return request, len(facts)


def parse(reply: Reply) -> Decision:
    """The decision.

    Raises:
        ReplyError: it is no JSON of the schema.
    """
    return parse_json(reply.content, Decision)


TASK = Task(
    name="query_kg",
    version=1,
    stage="query",
    reply=Decision,
    system=lambda _: _SYSTEM,
    is_asked=lambda settings: settings.query.sufficiency == "llm",
)
