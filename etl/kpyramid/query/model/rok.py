"""The prompts of RoK, after its appendix A.2: extend, extract, filter, answer.

The paper's wording in meaning and order, with the domain a variable where it says medicine, and
with the replies as JSON. A.2.4 asks for three things that a diagnosis consists of; here the
question says what is asked for.
"""

from collections.abc import Sequence

from kpyramid.llm.task import GUARD, Task
from kpyramid.llm.types import Asker, Request
from kpyramid.query.model.prompting import (
    MAX_TOKENS,
    Asked,
    Entities,
    Numbers,
    Tentative,
    ask_model,
    decides,
    find_domain,
    flatten,
    name_expert,
    parse_entities,
    parse_numbers,
    parse_tentative,
    pick_numbers,
    show_numbered,
    show_question,
)
from kpyramid.query.model.reading import RULES, Prompt, Read
from kpyramid.query.types import Question

MOST_CHARACTERS = 12_000
"""Of triples in the one call that filters them: some 150."""


def extend(question: Question, domain: str, asker: Asker) -> Asked[str]:
    """A tentative answer by a chain of thought, from no knowledge of the graph (A.2.1).

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    material = "\n".join(show_question(question))
    return ask_model(asker, _ask(EXTEND, write_extend(domain), material, question), parse_tentative)


def extract(text: str, domain: str, question: Question, asker: Asker) -> Asked[tuple[str, ...]]:
    """The key entities of the tentative answer (A.2.2).

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    request = _ask(EXTRACT, write_extract(domain), f"Text: {flatten(text)}", question)
    return ask_model(asker, request, parse_entities)


def choose(
    question: Question, paths: Sequence[str], triples: Sequence[str], asker: Asker
) -> Asked[tuple[int, ...]]:
    """The places of the triples that are related to the question (A.2.3).

    The main paths are its background knowledge. All triples that are shown stand in one call.

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    background = [f"- {flatten(path)}" for path in paths] or ["none"]
    shown = show_numbered(triples, MOST_CHARACTERS)
    lines = [*show_question(question), "Background knowledge:", *background, "Triples:", *shown]
    request = _ask(FILTER, _FILTER, "\n".join(lines), question)
    return ask_model(asker, request, lambda r: pick_numbers(parse_numbers(r), len(shown)))


def write_extend(domain: str) -> str:
    """The system message of A.2.1 for a domain."""
    return f"""\
You are {name_expert(domain)}: you suggest an answer to a question, and give step by step the
analysis that leads to it.
{GUARD}
- Name the people, places, works and other things that each step is about, by their full names.
- No documents are at hand: suppose what is most probable, and never refuse.
Reply with JSON only: {{"answer": "the steps and the answer, in at most ten sentences"}}
"""


def write_extract(domain: str) -> str:
    """The system message of A.2.2 for a domain."""
    kinds = f"related to {flatten(domain)}: its" if domain.strip() else ""
    return f"""\
You extract the key entities of a text.
{GUARD}
- The types of key entities to extract are {kinds} people, organisations, places, works, events,
  and other things that have a name of their own or a term.
- Each entity as the text writes it, once, the most important first.
Reply with JSON only: {{"entities": ["...", "..."]}}
"""


_FILTER = f"""\
You select the triples that are related to a question and to what its answer has to say.
{GUARD}
- The material is the question, its options where it has some, background knowledge to refer to,
  and numbered triples.
- Judge each triple as a whole: its head, its relation and its tail.
- "facts": the numbers of the triples that are related; empty when none is.
For example, to "When was the author of Grey Water born?" the triple
"[1] Mary Stone was born in 1820" is related and "[2] Mary Stone has cousin Ann Reed" is not:
{{"facts": [1]}}
Reply with JSON only: {{"facts": [1, 4]}}
"""


def write_answer(domain: str) -> str:
    """The system message of A.2.4 for a domain."""
    return f"""\
You are {name_expert(domain)}, and you answer the question from knowledge of a graph.
The pieces of context are what you have: paths from one key entity to another, whose arrows say
which way a relation holds, and after them facts about the key entities.
When it is not possible to determine the answer from them, it is left open. Think step by step.
{RULES}"""


def prompt_answer(domain: str) -> Prompt:
    """What the answer is asked for with."""
    return ANSWER, write_answer(domain)


def _ask(task: Task, system: str, material: str, question: Question) -> Request:
    return task.request(system, material, max_tokens=MAX_TOKENS, subject=question.text)


EXTEND = Task(
    name="rok_extend",
    version=1,
    stage="query",
    reply=Tentative,
    system=lambda settings: write_extend(find_domain(settings)),
    is_asked=decides("rok", "walk"),
)
EXTRACT = Task(
    name="rok_extract",
    version=1,
    stage="query",
    reply=Entities,
    system=lambda settings: write_extract(find_domain(settings)),
    is_asked=decides("rok", "walk"),
)
FILTER = Task(
    name="rok_filter",
    version=1,
    stage="query",
    reply=Numbers,
    system=lambda _: _FILTER,
    is_asked=decides("rok", "walk"),
)
ANSWER = Task(
    name="rok_answer",
    version=2,
    stage="query",
    reply=Read,
    system=lambda settings: write_answer(find_domain(settings)),
    is_asked=decides("rok", "reader"),
)
TASKS = (EXTEND, EXTRACT, FILTER, ANSWER)
