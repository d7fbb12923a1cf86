"""Prompts of questions for a model, and its answers from context.

The model cites the pieces of context that support its answer, and states its confidence. An answer
without citations is refused; the confidence of one whose words they lack is bounded.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from string import Template
from typing import TYPE_CHECKING, Any, TypeVar

from kpyramid.documents.values import NUMBER_WORDS
from kpyramid.documents.words import ARTICLES, JOINING
from kpyramid.errors import EndpointError
from kpyramid.llm.prompts import read_prompts
from kpyramid.llm.task import (
    GUARD,
    Asker,
    Failure,
    FailureKind,
    ReplyError,
    Request,
    Strict,
    Task,
    flatten,
    parse_json,
    quote_text,
)
from kpyramid.query.analysis import find_types
from kpyramid.query.types import Item, Question, Reading, list_places

if TYPE_CHECKING:
    from kpyramid.settings import Settings

T = TypeVar("T")

PROMPTS = read_prompts(__file__)
"""System messages by the names of tasks."""

_NOBODY = frozenset({FailureKind.UNREACHED, FailureKind.DEFERRED})
"""Failures of the endpoint rather than of the question."""

MAX_TOKENS = 1500
"""Most tokens of a reply, doubled once if it is cut off. A decision takes 50 to 150; the rest is
for models that reason first, and unused tokens cost nothing."""
_SHORTEST = 400
"""Least characters of a cut text in a prompt."""


def write_prompt(name: str, **values: object) -> str:
    """The system message of a task, with `values` for its variables."""
    shared = {**PROMPTS, "guard": GUARD}
    shared["rules"] = Template(PROMPTS["rules"]).substitute(shared)
    return Template(PROMPTS[name]).substitute(shared, **values)


def make_task(
    name: str,
    version: int,
    reply: type[Strict],
    decision: str,
    write: Callable[["Settings"], str] | None = None,
    strategy: str = "",
) -> Task:
    """A task of questions, asked where `decision` is the model's, if given by `strategy` alone.

    `write`: the system message by the settings; by default the prompt of that name.
    """

    def is_asked(settings: "Settings") -> bool:
        query = settings.query
        return getattr(query, decision) == "llm" and strategy in ("", query.strategy)

    return Task(
        name=name,
        version=version,
        stage="query",
        reply=reply,
        system=write or (lambda _: write_prompt(name)),
        is_asked=is_asked,
    )


def ask_model(asker: Asker, request: Request, parse: Callable[[str], T]) -> T | Failure:
    """The parsed reply; `parse` raises `ReplyError` for a reply that breaks its rules.

    Raises:
        BudgetError: the call might exceed the budget.
        EndpointError: the endpoint is down, or did not answer in time.
    """
    value = asker.ask(request, parse)
    if isinstance(value, Failure) and value.kind in _NOBODY:
        raise EndpointError(
            f"the model did not answer: {value.detail}. Ask again when its endpoint is well (see "
            "llm.base_url), or ask without it: 'rules' for sparql, sufficiency and reader"
        )
    return value


def ask_once(
    asker: Asker,
    task: Task,
    system: str,
    lines: Sequence[str],
    question: Question,
    read: Callable[[Any], T],
) -> T | Failure:
    """The task's reply to a single call, read by `read`; a reply that is cut off is not repeated.

    A question thus takes as many calls as its paper counts, whether paid or stored.
    """
    request = make_request(task, system, lines, question.text).make_single()
    return ask_model(asker, request, lambda reply: read(parse_json(reply, task.reply)))


def make_request(task: Task, system: str, lines: Sequence[str], question: str) -> Request:
    """The request of a decision: `lines` are its user message, `question` its subject."""
    return task.request(system, "\n".join(lines), max_tokens=MAX_TOKENS, subject=question)


def show_numbered(texts: Sequence[str], most: int) -> list[str]:
    """The texts numbered from `[1]`, a line each, up to `most` characters.

    A text cannot forge a line: its line breaks become spaces. The text at the limit is cut, or left
    out if only a few words of it would fit.
    """
    lines: list[str] = []
    left = most
    for number, text in enumerate(texts, start=1):
        line = f"[{number}] {flatten(text)}"
        if len(line) > left:
            if not lines or left >= _SHORTEST:
                lines.append(f"{line[: max(left - 2, 0)]} …")
            break
        lines.append(line)
        left -= len(line) + 1
    return lines


def show_question(question: Question) -> list[str]:
    """The question and its options, a line each."""
    options = [f"- {flatten(text)}" for text in question.candidates]
    return [f"Question: {flatten(question.text)}", *(["Options:", *options] if options else [])]


def show_options(question: Question) -> list[str]:
    """The options of a question with their numbers, a line each; none without options."""
    options = [f"({n}) {flatten(text)}" for n, text in enumerate(question.candidates, start=1)]
    return ["Options:", *options] if options else []


def pick_numbers(numbers: Sequence[int], count: int) -> tuple[int, ...]:
    """The distinct indices, from 0, of numbers from 1 to `count`; other numbers are left out."""
    return tuple(dict.fromkeys(n - 1 for n in numbers if 1 <= n <= count))


# Answers from context: whether texts contain the words of an answer, and its confidence.

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
_LEFT_OUT = (
    ARTICLES | JOINING | frozenset("of in on at to about by around circa years year".split())
)
_DIGITS = {word: str(number) for number, word in enumerate(NUMBER_WORDS, start=1)}
_VERDICTS = frozenset({"yes", "no", "true", "false", "none", "unknown"})
LONGEST_NAME = 8
"""Most words of a name or a date; a longer answer is an explanation."""
_NEAR = 4
"""Most other words between those of a date or a number in a text."""


def join_words(text: str) -> str:
    """The words of a text, normalised in case, signs and small numbers."""
    return " ".join(_list_words(text))


def is_checkable(answer: str, question: str) -> bool:
    """Whether the answer is a name, date or number, which a supporting text contains literally.

    `yes` and explanations are not.
    """
    words = answer.split()
    if not words or answer.strip(" .").casefold() in _VERDICTS or len(words) > LONGEST_NAME:
        return False
    if find_types(question):
        return True
    return any(word[:1].isupper() or word[:1].isdigit() for word in words)


def holds_answer(texts: Sequence[str], answer: str) -> bool:
    """Whether one of the texts contains the answer's words in sequence, articles aside.

    The words of a date or a number may be in another order, with words between: "on April 23rd, in
    1564" contains 23 April 1564.
    """
    wanted = [word for word in _list_words(answer) if word not in _LEFT_OUT]
    if not wanted:
        return False
    loose = any(word[0].isdigit() for word in wanted)
    return any(_holds(_list_words(text), wanted, loose) for text in texts)


def _holds(words: list[str], wanted: list[str], loose: bool) -> bool:
    content = [word for word in words if word not in _LEFT_OUT]
    length = len(wanted)
    if any(content[i : i + length] == wanted for i in range(len(content) - length + 1)):
        return True
    width = length + _NEAR
    needed = set(wanted)
    return loose and any(needed <= set(content[i : i + width]) for i in range(len(content)))


def _list_words(text: str) -> list[str]:
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    # 1,000 and 1000 agree; 23rd gives 23 and rd.
    plain = [re.sub(r"(?<=\d),(?=\d{3}\b)", "", word) for word in words]
    return [_DIGITS.get(word, word) for word in plain]


MOST_CHARACTERS = 24_000
"""Most characters of context: about 6,000 tokens, which fit a window of 8,192 with the rest."""
_FEWER_CHARACTERS = 8_000
"""Most characters of context for an endpoint that accepts fewer: a window of 4,096 tokens."""
UNWORDED = 0.3
"""Largest confidence of a name, date or number that the cited texts do not contain."""
UNWORDED_OPTION = 0.5
"""The same for options, whose wording often differs from the context."""
UNREAD = 0.5
"""Largest confidence of a model's answer without context, for lack of evidence."""
_UNSAID = 0.5
"""Confidence of an answer whose stated one is no probability, such as 95."""


class Recalled(Strict):
    """The reply without context."""

    says: bool
    answer: str
    choices: tuple[int, ...]
    confidence: float


class Read(Strict):
    """The reply; what it cites comes before the answer that follows from it."""

    says: bool
    cites: tuple[int, ...]
    answer: str
    choices: tuple[int, ...]
    confidence: float


Prompt = tuple[Task, str]
"""A task of reading context, and its system message."""


def read_by_model(
    question: Question,
    items: Sequence[Item],
    asker: Asker,
    prompt: Prompt | None = None,
) -> Reading:
    """A model's answer from items, best first; without items, from its own knowledge.

    `prompt`: of a strategy with a different wording. The prompt has up to `MOST_CHARACTERS` of
    context. Empty if the model states that the context has no answer, cites nothing for its answer,
    refuses, or breaks the format; `reason` states which.

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    texts = [item.told for item in items]
    shown = show_numbered(texts, MOST_CHARACTERS)
    value = _ask(question, shown, asker, prompt)
    fewer = show_numbered(texts, _FEWER_CHARACTERS)
    # Endpoints word their refusal of a long request differently, so any refusal counts.
    if isinstance(value, Failure) and value.kind is FailureKind.UNACCEPTED and fewer != shown:
        shown = fewer
        value = _ask(question, shown, asker, prompt)
    if isinstance(value, Failure):
        return Reading(reason=f"the model gave no answer: {value}")
    return weigh(value, question, items[: len(shown)])


def render(question: Question, shown: Sequence[str], prompt: Prompt | None = None) -> Request:
    """The question with its numbered options and the lines of context, if there are any."""
    lines = [f"Question: {flatten(question.text)}", *show_options(question)]
    lines += ["Context:", *shown] if shown else []
    task = READ if shown else RECALL
    task, system = prompt or (task, write_prompt(task.name))
    return make_request(task, system, lines, question.text)


def parse(reply: str, options: int, *, reads: bool) -> Read | Recalled:
    """The answer in a reply.

    Raises:
        ReplyError: it is no JSON of the schema, or names an option that does not exist.
    """
    answer: Read | Recalled = parse_json(reply, Read) if reads else parse_json(reply, Recalled)
    check_choices(answer.choices, options)
    return answer


def check_choices(choices: Sequence[int], options: int) -> None:
    """Checks that a reply names existing options only.

    Raises:
        ReplyError: it names another option.
    """
    unknown = [number for number in choices if not 1 <= number <= options]
    if unknown and options:
        raise ReplyError(FailureKind.INVALID, f"option {unknown[0]} of {options}")


def _ask(
    question: Question, shown: Sequence[str], asker: Asker, prompt: Prompt | None
) -> Read | Recalled | Failure:
    request = render(question, shown, prompt)
    request = request.make_single() if prompt else request  # a paper's number of calls holds
    options = len(question.candidates)
    return ask_model(asker, request, lambda reply: parse(reply, options, reads=bool(shown)))


def weigh(answer: Read | Recalled, question: Question, items: Sequence[Item]) -> Reading:
    """A model's answer as a reading, with its confidence bounded by its citations."""
    if not answer.says:
        where = "the context does not say" if items else "the model does not know"
        return Reading(reason=f"by the model, {where}")
    values = _pick_values(answer, question)
    if not values:
        return Reading(reason="the model says that there is an answer and gives none")
    text = "; ".join(values)
    confidence = answer.confidence if 0.0 <= answer.confidence <= 1.0 else _UNSAID
    if not isinstance(answer, Read):
        reason = "from what the model knows; nothing was read"
        return Reading(text, values, min(confidence, UNREAD), (), reason=reason)
    cited = [items[index] for index in pick_numbers(answer.cites, len(items))]
    if not cited:
        return Reading(
            reason=f"unsupported: the model answers {quote_text(text, 80)!r} and cites nothing"
        )
    places = list_places(cited)
    reason = f"by the model, from {len(cited)} of {len(items)} pieces of context"
    if not _is_borne(values, question, cited):
        most = UNWORDED_OPTION if question.candidates else UNWORDED
        confidence = min(confidence, most)
        reason += ", whose words do not hold it"
    return Reading(text, values, confidence, places, reason=reason)


def _pick_values(answer: Read | Recalled, question: Question) -> tuple[str, ...]:
    """The single values of an answer; for a choice question, the options."""
    if not question.candidates:
        text = answer.answer.strip()
        parts = tuple(part.strip() for part in text.split(";"))
        # A semicolon within an explanation does not separate values.
        several = all(0 < len(part.split()) <= LONGEST_NAME for part in parts)
        return tuple(dict.fromkeys(parts)) if several else (text,) if text else ()
    chosen = pick_numbers(answer.choices, len(question.candidates))
    if not chosen:  # some write the option out
        wanted = join_words(answer.answer)
        chosen = tuple(n for n, c in enumerate(question.candidates) if join_words(c) == wanted)
    return tuple(question.candidates[index] for index in sorted(chosen))


def _is_borne(values: Sequence[str], question: Question, cited: Sequence[Item]) -> bool:
    """Whether the cited items contain all values that a text would contain literally."""
    texts = [item.text for item in cited]
    checked = [v for v in values if question.candidates or is_checkable(v, question.text)]
    return all(holds_answer(texts, value) for value in checked)


READ = make_task("query_read", 2, Read, "reader")
RECALL = make_task("query_direct", 1, Recalled, "reader")
