"""The prompts of the strategies that walk over the graph: WTS, RoK, HyKGE, Knowledge Solver.

WTS (appendix D.1) and RoK (A.2) print their prompts: ours follow them in meaning and order, with a
variable domain instead of medicine. HyKGE and Knowledge Solver show theirs only in figures: ours
are reconstructions. We add replies in JSON, numbers that refer to triples, so that no reply can add
one, and the rule that an answer follows from its citations.

All calls here raise `BudgetError` or `EndpointError` where the model may not or cannot be asked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kpyramid.llm.task import (
    Asker,
    Failure,
    FailureKind,
    ReplyError,
    Request,
    Strict,
    Task,
    flatten,
    quote_text,
)
from kpyramid.query.facts import StatedPath
from kpyramid.query.model import reading
from kpyramid.query.model.reading import (
    PROMPTS,
    Prompt,
    Read,
    Recalled,
    ask_once,
    make_request,
    make_task,
    pick_numbers,
    show_numbered,
    show_options,
    show_question,
    weigh,
    write_prompt,
)
from kpyramid.query.types import Item, Question, Reading

if TYPE_CHECKING:
    from kpyramid.settings import Settings

MOST_CHARACTERS = 12_000
"""Most characters of triples or tails in a call: about 150 triples; a hundred tails have 5,000."""


class Tentative(Strict):
    """The reply of a chain of thought: the answer that is supposed, step by step."""

    answer: str


class Entities(Strict):
    """The reply that lists the entities of a text."""

    entities: tuple[str, ...]


def _list_names(reply: Entities) -> tuple[str, ...]:
    return tuple(dict.fromkeys(flat for name in reply.entities if (flat := flatten(name))))


def _write(name: str, domain: str = "", *, entities: int = 5, knowledge: bool = False) -> str:
    """The system message of a task with a strategy's options."""
    about = flatten(str(domain))
    return write_prompt(
        name,
        expert=f"an excellent expert in {about}" if about else "an excellent expert",
        kinds=f"related to {about}: its" if about else "",
        kind=f"{about} " if about else "",
        most=entities,
        **PROMPTS["wts"][str(knowledge).lower()],
    )


def _make_task(name: str, version: int, reply: type[Strict], decision: str = "walk") -> Task:
    """A task of the strategy with which its name begins; `decision`: `walk` or `reader`."""

    def write(settings: "Settings") -> str:
        options: dict[str, Any] = {**settings.query.options}
        taken = ("domain", "entities", "knowledge")
        return _write(name, **{option: options[option] for option in taken if option in options})

    return make_task(name, version, reply, decision, write, name.partition("_")[0])


# RoK: extend, extract, filter, answer. A.2.4 asks for the three parts of a diagnosis; here the
# question determines the answer.


class Numbers(Strict):
    """The reply that chooses some of numbered facts."""

    facts: tuple[int, ...]


def suppose(strategy: str, question: Question, domain: str, asker: Asker) -> str | Failure:
    """A tentative answer without knowledge of the graph (RoK, A.2.1; HyKGE, Eq. 1)."""
    task = SUPPOSED[strategy]
    lines, system = show_question(question), _write(task.name, domain)
    return ask_once(asker, task, system, lines, question, lambda reply: str(reply.answer.strip()))


def list_key_entities(
    text: str, domain: str, question: Question, asker: Asker
) -> tuple[str, ...] | Failure:
    """The key entities of the tentative answer (RoK, A.2.2)."""
    lines = [f"Text: {flatten(text)}"]
    system = _write(KEY_ENTITIES.name, domain)
    return ask_once(asker, KEY_ENTITIES, system, lines, question, _list_names)


def filter_triples(
    question: Question, paths: Sequence[str], triples: Sequence[str], asker: Asker
) -> tuple[int, ...] | Failure:
    """The indices of the triples that are related to the question (RoK, A.2.3).

    The main paths are its background knowledge. All triples are in a single call.
    """
    background = [f"- {flatten(path)}" for path in paths] or ["none"]
    shown = show_numbered(triples, MOST_CHARACTERS)
    lines = [*show_question(question), "Background knowledge:", *background, "Triples:", *shown]

    def read(reply: Numbers) -> tuple[int, ...]:
        return pick_numbers(reply.facts, len(shown))

    return ask_once(asker, FILTER, _write(FILTER.name), lines, question, read)


SUPPOSED = {
    "rok": _make_task("rok_extend", 1, Tentative),
    "hykge": _make_task("hykge_hypothesis", 1, Tentative),  # step by step (4.1.1)
}
KEY_ENTITIES = _make_task("rok_extract", 1, Entities)
FILTER = _make_task("rok_filter", 1, Numbers)


# The answers of RoK (A.2.4) and HyKGE (4.4), from paths and statements about their ends.


def prompt_answer(strategy: str, domain: str) -> Prompt:
    """The task and system message with which `rok` or `hykge` reads context."""
    task = ANSWERS[strategy]
    return task, _write(task.name, domain)


ANSWERS = {name: _make_task(f"{name}_answer", 2, Read, "reader") for name in ("rok", "hykge")}


# Knowledge Solver: choosing the next entity (4.1). The call of its Algorithm 1 hands the model
# nothing but the tails; here the question and the options stand before them, since without them
# there is nothing to choose by. A round is one call.

INSTRUCTION: str = PROMPTS["ksl_instruction"]
"""The instruction of every step, also in the rows for fine-tuning (4.2)."""


class Step(Strict):
    """The reply."""

    tail: int


def choose_step(
    question: Question, ways: Sequence[StatedPath], asker: Asker, *, may_stop: bool
) -> int | Failure | None:
    """The index of the way that the model chooses; None if it stops at the head.

    The ways extend the same walk by different steps.
    """
    lines, shown = show_round(question, ways, may_stop=may_stop)

    def read(reply: Step) -> int | None:
        if reply.tail == 0 and may_stop:
            return None
        if not 1 <= reply.tail <= shown:
            raise ReplyError(FailureKind.INVALID, f"tail {reply.tail} of {shown} was not offered")
        return reply.tail - 1

    return ask_once(asker, STEP, _write(STEP.name), lines, question, read)


def render_step(
    question: Question, ways: Sequence[StatedPath], *, may_stop: bool = False
) -> tuple[Request, int]:
    """The request of a round, and the number of tails in it."""
    lines, shown = show_round(question, ways, may_stop=may_stop)
    return make_request(STEP, _write(STEP.name), lines, question.text).make_single(), shown


def show_round(
    question: Question, ways: Sequence[StatedPath], *, may_stop: bool = False
) -> tuple[list[str], int]:
    """The lines of a round, and the number of tails in them.

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
    return lines, len(tails)


def show_steps(path: StatedPath) -> list[str]:
    """Each step in a line; `*` marks a relation that is read from tail to head, as in Figure 4."""
    steps = zip(path.names, path.steps, path.names[1:], strict=False)
    return [
        flatten(f"{head} – {relation}{'' if ahead else '*'} → {tail}")
        for head, (relation, ahead), tail in steps
    ]


STEP = _make_task("ksl_step", 1, Step)


# WTS: entities, scores of triples, reasoning with triples. The paper lets the model add its own
# knowledge, see `knowledge`.

SURE, UNSURE = 0.8, 0.3
"""Largest confidence of an answer for a yes and for a no. A model that answers yes or no states no
number; ours are set by hand, on either side of a half."""


class Score(Strict):
    """The relevance of a numbered triple."""

    triple: int
    score: float


class Scores(Strict):
    """The reply that scores triples, from high to low."""

    triples: tuple[Score, ...]


class Reasoned(Strict):
    """The reply of the reasoning module; `cites` and `choices` are numbers."""

    support_info: str
    cites: tuple[int, ...]
    answer: str
    choices: tuple[int, ...]
    confidence: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The answer from a depth's triples, whether the model is confident, and its support."""

    reading: Reading
    sure: bool
    support: str = ""


def list_entities(
    question: Question, most: int, domain: str, asker: Asker
) -> tuple[str, ...] | Failure:
    """At most `most` entities of a question (WTS, Prompt 1)."""
    lines = [f"Question: {flatten(question.text)}"]
    system = _write(NAMES.name, domain, entities=most)
    return ask_once(asker, NAMES, system, lines, question, lambda reply: _list_names(reply)[:most])


def score_triples(
    question: Question, triples: Sequence[str], domain: str, asker: Asker
) -> tuple[dict[int, float], int] | Failure:
    """The relevance of triples to a question (WTS, Prompt 2).

    Returns the scores, 0 to 1, by index in `triples`, and the number of scores left out because
    they are out of range or of no triple shown; of two scores of a triple the first counts.
    """
    shown = show_numbered(triples, MOST_CHARACTERS)
    lines = [*show_question(question), "Triples:", *shown]

    def read(reply: Scores) -> tuple[dict[int, float], int]:
        scores = {
            row.triple - 1: row.score
            for row in reversed(reply.triples)
            if 1 <= row.triple <= len(shown) and 0.0 <= row.score <= 1.0
        }
        return scores, len(reply.triples) - len(scores)

    return ask_once(asker, SCORE, _write(SCORE.name, domain), lines, question, read)


def reason(
    question: Question,
    items: Sequence[Item],
    asker: Asker,
    *,
    domain: str = "",
    knowledge: bool = False,
) -> Reasoning:
    """The answer that follows from triples, and whether the model is confident (WTS, Prompt 3).

    With `knowledge` it may rest on the model's knowledge, as in the paper; without, on triples that
    it cites.
    """
    shown = show_numbered([item.told for item in items], reading.MOST_CHARACTERS)
    lines = ["Knowledge triples:", *(shown or ["none"]), f"Question: {flatten(question.text)}"]
    lines += show_options(question)
    system = _write(REASON.name, domain, knowledge=knowledge)

    def check(reply: Reasoned) -> Reasoned:
        if reply.confidence.strip().casefold() not in {"yes", "no"}:
            detail = f"confidence {quote_text(reply.confidence, 20)!r} is neither yes nor no"
            raise ReplyError(FailureKind.INVALID, detail)
        reading.check_choices(reply.choices, len(question.candidates))
        return reply

    reply = ask_once(asker, REASON, system, lines, question, check)
    if isinstance(reply, Failure):
        return Reasoning(Reading(reason=f"the model gave no answer: {reply}"), sure=False)
    sure = reply.confidence.strip().casefold() == "yes"
    recalled = Recalled(
        says=sure or bool(reply.answer.strip() or reply.choices),
        answer=reply.answer,
        choices=reply.choices,
        confidence=SURE if sure else UNSURE,
    )
    read = Read(cites=reply.cites, **recalled.model_dump())
    is_recalled = knowledge and not reply.cites
    answer = weigh(recalled if is_recalled else read, question, items[: len(shown)])
    support = quote_text(reply.support_info, 200) if reply.support_info.strip() else ""
    return Reasoning(answer, sure and bool(answer.text), support)


NAMES = _make_task("wts_extract", 1, Entities)
SCORE = _make_task("wts_score", 1, Scores)
REASON = _make_task("wts_reason", 1, Reasoned, "reader")
TASKS = (
    *(*SUPPOSED.values(), KEY_ENTITIES, FILTER, *ANSWERS.values()),
    *(STEP, NAMES, SCORE, REASON),
)
