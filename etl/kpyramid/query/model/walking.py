"""What the prompts of walks over the graph share: replies, how a question is shown, who decides."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kpyramid.llm.responses import parse_json
from kpyramid.llm.task import Strict
from kpyramid.llm.types import Reply
from kpyramid.query.model.prompting import flatten
from kpyramid.query.types import Question

if TYPE_CHECKING:
    from kpyramid.settings import Settings


class Tentative(Strict):
    """The reply of a chain of thought: the answer that is supposed, step by step."""

    answer: str


class Entities(Strict):
    """The reply that lists the entities of a text."""

    entities: tuple[str, ...]


class Numbers(Strict):
    """The reply that chooses some of numbered facts."""

    facts: tuple[int, ...]


def parse_tentative(reply: Reply) -> str:
    """The supposed answer.

    Raises:
        ReplyError: it is no JSON of the schema.
    """
    return parse_json(reply.content, Tentative).answer.strip()


def parse_entities(reply: Reply) -> tuple[str, ...]:
    """The names, each once.

    Raises:
        ReplyError: it is no JSON of the schema.
    """
    names = parse_json(reply.content, Entities).entities
    return tuple(dict.fromkeys(flat for name in names if (flat := flatten(name))))


def parse_numbers(reply: Reply) -> tuple[int, ...]:
    """The numbers, whether or not there are facts of them.

    Raises:
        ReplyError: it is no JSON of the schema.
    """
    return parse_json(reply.content, Numbers).facts


def show_question(question: Question) -> list[str]:
    """The question and its options, a line each."""
    options = [f"- {flatten(text)}" for text in question.candidates]
    return [f"Question: {flatten(question.text)}", *(["Options:", *options] if options else [])]


def name_expert(domain: str) -> str:
    """Who is addressed: the domain is a variable of the prompt."""
    return f"an excellent expert in {flatten(domain)}" if domain.strip() else "an excellent expert"


def find_domain(settings: "Settings") -> str:
    """The domain that [query] gives; empty for none."""
    return str(settings.query.options.get("domain", ""))


def decides(strategy: str, decision: str) -> "Callable[[Settings], bool]":
    """Whether [query] has a model take a decision, `walk` or `reader`, of a strategy."""

    def is_asked(settings: "Settings") -> bool:
        query = settings.query
        return query.strategy == strategy and getattr(query, decision) == "llm"

    return is_asked
