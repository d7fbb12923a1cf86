"""The prompts of HyKGE: reconstructions, since the paper prints its own in a figure only.

From its words (4.1.1, 4.4): a step-by-step exploration of possible answers, and reading chains
that are linked with directed arrows, with descriptions of the entities at their ends.
"""

from kpyramid.llm.task import GUARD, Task
from kpyramid.llm.types import Asker
from kpyramid.query.model.prompting import (
    MAX_TOKENS,
    Asked,
    Tentative,
    ask_model,
    decides,
    find_domain,
    name_expert,
    parse_tentative,
    show_question,
)
from kpyramid.query.model.reading import RULES, Prompt, Read
from kpyramid.query.types import Question


def suppose(question: Question, domain: str, asker: Asker) -> Asked[str]:
    """The hypothesis output (Eq. 1).

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    material = "\n".join(show_question(question))
    request = HYPOTHESIS.request(
        write_hypothesis(domain), material, max_tokens=MAX_TOKENS, subject=question.text
    )
    return ask_model(asker, request, parse_tentative)


def write_hypothesis(domain: str) -> str:
    """The system message of the hypothesis for a domain."""
    return f"""\
You are {name_expert(domain)}: you explore what may answer a question, as a direction in which
to look.
{GUARD}
- Think step by step: what the question is about, what that depends on, which answers are
  possible and what speaks for each.
- Name each thing by its full name; what is said is checked against a knowledge graph afterwards.
- Suppose what is most probable, and never refuse.
Reply with JSON only: {{"answer": "the exploration, in at most ten sentences"}}
"""


def write_answer(domain: str) -> str:
    """The system message of the reader for a domain."""
    return f"""\
You are {name_expert(domain)}, and you answer the question with the help of a knowledge graph.
The pieces of context are chains of its facts, linked with directed arrows that say which way a
relation holds, and after them descriptions of the entities at the ends of chains.
{RULES}"""


def prompt_answer(domain: str) -> Prompt:
    """What the answer is asked for with."""
    return ANSWER, write_answer(domain)


HYPOTHESIS = Task(
    name="hykge_hypothesis",
    version=1,
    stage="query",
    reply=Tentative,
    system=lambda settings: write_hypothesis(find_domain(settings)),
    is_asked=decides("hykge", "walk"),
)
ANSWER = Task(
    name="hykge_answer",
    version=2,
    stage="query",
    reply=Read,
    system=lambda settings: write_answer(find_domain(settings)),
    is_asked=decides("hykge", "reader"),
)
TASKS = (HYPOTHESIS, ANSWER)
