"""A question answered from a snapshot for `kpyramid ask`, and the answer explained."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from kpyramid.cli.console import excerpt, find_best_sentence, mark, name_origin, shorten
from kpyramid.cli.render import Result, count_things, name_first
from kpyramid.errors import InputError
from kpyramid.pipeline.models import open_backends, require_model
from kpyramid.query import Answer, Backends, Snapshot, answer, open_snapshot
from kpyramid.query.answering import parse_options
from kpyramid.query.decisions import FLOOR
from kpyramid.query.facts import state_facts
from kpyramid.query.types import DECISIONS, RULES, STEP, Item, Outcome, Step, state_sides
from kpyramid.settings import Settings
from kpyramid.snapshot.conflicts import Conflict
from kpyramid.snapshot.evidence import Evidence
from kpyramid.snapshot.view import PUBLIC, Scope

# An answer in words; `--explain` adds the outcome of each layer, for a first-time reader.

_SHOWN = 5

LAYERS = {
    "ontology": "statements of a fixed vocabulary",
    "graph": "facts read from the text, each a subject, a relation and an object",
    "text": "the passages of the documents themselves",
    "model": "a language model without any of your documents",
}
"""Description of each layer in a few words."""

OUTCOMES = {
    Outcome.ANSWERED: "It answers",
    Outcome.INSUFFICIENT: "Not enough to answer from",
    Outcome.EMPTY: "It knows nothing of this",
    Outcome.FAILED: "No query of it could be made",
    Outcome.TOO_BROAD: "Too much to be an answer",
    Outcome.SKIPPED: "Not asked",
}


def describe_answer(answer: Answer, *, explain: bool) -> Result:
    """An answer, in words, short or explained; without one, `nearest` has the nearest results."""
    nearest = () if answer.text else _sort_nearest(answer)[:_SHOWN]
    shown = [{"text": i.text, "sentences": _list_sentences(i, answer.question)} for i in nearest]
    values = {**answer.to_dict(), "nearest": shown}
    return Result(values=values, words=_word_answer(answer, explain=explain))


def _word_answer(answer: Answer, *, explain: bool) -> Iterator[str]:
    """The answer or the nearest results, with layer and evidence down to the characters."""
    if explain:
        yield f"Question: {answer.question}"
        yield from (f"  {line}" for line in answer.recognised)
        for number, step in enumerate(answer.trace, 1):
            yield from _explain_step(number, step)
        yield ""
    nothing = "not known; nearest:" if answer.context else "not known, and nothing is near it"
    yield f"{'Answer: ' if explain else ''}{answer.text or nothing}"
    if not answer.text:
        near = [
            (_quote(item, answer.question), item.evidence[:1]) for item in _sort_nearest(answer)
        ]
        yield from _list_places(near)
    yield f"Layer: {answer.layer or 'none'}"
    if answer.text:
        yield f"Probability that it is right: {answer.confidence:.2f}"
    if explain:
        yield from _show_paths(answer)
        known = answer.context if answer.text else ()
        statements = [item.statement for item in known if item.statement]
        yield from (f"  in short: {each}" for each in statements[:_SHOWN])
    else:
        yield from (f"  tried {step}" for step in answer.trace)
    if answer.evidence:
        yield "Evidence:"
    words = [text for text in (*answer.choices, answer.text) if text]
    yield from _list_places([(mark(place.text, words), [place]) for place in answer.evidence])
    shown = answer.conflicts if answer.text else _list_conflicts(answer)
    yield from state_sides(shown)
    if answer.tokens or answer.calls:
        cost = "" if answer.cost is None else f", ${answer.cost:.6f}"
        yield f"Model: {count_things(answer.calls, 'call')}, {answer.tokens:,} tokens{cost}"


def _explain_step(number: int, step: Step) -> Iterator[str]:
    """The lines on a layer: its description, outcome, input and results."""
    about = LAYERS.get(step.layer)
    yield f"{number}. {step.layer.capitalize()}{f' ({about})' if about else ''}"
    answered = step.outcome is Outcome.ANSWERED
    guesses = answered and step.confidence is not None and step.confidence < FLOOR
    outcome = "It is the likeliest option, a guess" if guesses else OUTCOMES[step.outcome]
    yield f"  {outcome}: {step.reason}."
    if step.query:
        yield f"  asked: {step.query}"
    yield from name_first([f"found: {shorten(each)}" for each in step.found], _SHOWN)


def _list_conflicts(answer: Answer) -> list[Conflict]:
    """The distinct conflicts among the results shown without an answer."""
    shown = _sort_nearest(answer)[:_SHOWN]
    return [*dict.fromkeys(conflict for item in shown for conflict in item.conflicts)]


def _list_sentences(item: Item, question: str) -> list[str]:
    if item.layer == "text":
        return [find_best_sentence(item.text, question)]
    return [place.text for place in item.evidence]


def _quote(item: Item, question: str) -> str:
    """A statement with the sentence that states it; a passage around its best sentence."""
    says = item.evidence[0].text if item.layer != "text" and item.evidence else ""
    text = excerpt(item, question)
    return f"{text}: {shorten(says)}" if says else text


def _list_places(blocks: Sequence[tuple[str, Sequence[Evidence]]]) -> Iterator[str]:
    """The first of these texts, each with the places that state it, and how many more there are."""
    for text, places in blocks[:_SHOWN]:
        yield f"  {text}"
        yield from (f"    {_locate(place)}" for place in places)
    if len(blocks) > _SHOWN:
        yield f"  and {len(blocks) - _SHOWN} more; --json lists all"


def _locate(place: Evidence) -> str:
    return f"{place.source}, characters {place.start}-{place.end}{name_origin(place.learnt)}"


def _sort_nearest(answer: Answer) -> list[Item]:
    """The results: statements, then passages."""
    return sorted(answer.context, key=lambda item: item.layer == "text")


def _show_paths(answer: Answer) -> Iterator[str]:
    """The paths that the answer rests on, or the first ones; each step with its sentence."""
    cited = set(answer.evidence)
    paths = [(item, steps) for item in answer.context if (steps := _read_steps(item))]
    resting = [pair for pair in paths if cited and cited.issuperset(pair[0].evidence)]
    for item, steps in (resting if answer.text else paths)[:_SHOWN]:
        yield f"  {item.text}"
        for number, (step, place) in enumerate(zip(steps, item.evidence, strict=False), 1):
            yield f"    {number}. {step}"
            yield f"       {shorten(place.text)} ({_locate(place)})"


def _read_steps(item: Item) -> list[str]:
    """The steps of an item that is a path, each with the names at its ends; empty for others."""
    parts = STEP.split(item.text)
    count = len(parts) // 2
    if item.layer != "graph" or count != item.key.count("+") + 1 or len(item.evidence) < count:
        return []
    return [" ".join(parts[i : i + 3]) for i in range(0, 2 * count, 2)]


# Running `kpyramid ask`: opens a snapshot and, when a decision is a model's, the model.

_MOST_BYTES = 100_000
"""Most bytes of a question on standard input."""


def override(
    settings: Settings,
    option: Sequence[str] = (),
    mode: str | None = None,
    **given: str | None,
) -> Settings:
    """The settings with the command's options in [query]; missing options change nothing.

    Options in the settings belong to their strategy, and are dropped if another one is given. Each
    `option` is one of the strategy's, as `name=value`.

    Raises:
        SettingsError: a decision is to be a model's and there is none.
        InputError: an option is no `name=value`.
    """
    chosen: dict[str, Any] = {n: value for n, value in given.items() if value is not None}
    for name in DECISIONS:
        if chosen.get(name) == "llm":
            require_model(settings, f"--{name} llm asks")
    differs = chosen.get("strategy", settings.query.strategy) != settings.query.strategy
    options = ({} if differs else settings.query.options) | parse_options(option)
    if mode is not None:
        options["mode"] = mode
    return replace(settings, query=replace(settings.query, options=options, **chosen))


def read_question(text: str) -> str:
    """The question; `-` reads standard input.

    Raises:
        InputError: what stands there is no text in UTF-8.
    """
    if text != "-":
        return text
    try:
        return sys.stdin.buffer.read(_MOST_BYTES).decode("utf-8")
    except UnicodeDecodeError as e:
        raise InputError(f"the question on standard input is not UTF-8: {e}") from e


def ask_pyramid(
    question: str,
    warehouse: str | Path,
    ref: str,
    settings: Settings,
    *,
    candidates: Sequence[str] = (),
    scope: Scope = PUBLIC,
    trace: Path | None = None,
) -> Answer:
    """The answer to a question, by [query] of the settings.

    The question and its results are appended to the file `trace`, see `kpyramid.cli.answers`. The
    budget of [llm] limits this one question.

    Raises:
        InputError: no such snapshot, no question, or no file for the trace.
        SettingsError: there is no key for the model.
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    asked = settings.query
    snapshot = open_snapshot(ref, warehouse, model=settings.embed, scope=scope)
    if trace:
        append_trace(trace)  # before anything is asked for it
    with open_decided(settings, warehouse) as backends:
        options: dict[str, Any] = {**asked.options, "backends": backends}
        reply = answer(question, snapshot, asked.strategy, candidates=candidates, **options)
    if trace:
        row = describe_trace(reply, candidates, asked.strategy, snapshot)
        append_trace(trace, f"{json.dumps(row, ensure_ascii=False)}\n")
    return reply


def open_decided(settings: Settings, warehouse: str | Path) -> AbstractContextManager[Backends]:
    """The rules, or the model if [query] of the settings names it; see `open_backends`."""
    if not settings.query.asks_model:
        return nullcontext(RULES)
    return open_backends(settings, warehouse=warehouse)


# What `ask --trace FILE` adds to a file: a question with what was found for it, a line of JSON.
#
# The form of the feedback that `kpyramid learn` reads (WTS, 3.2.2): who knows better fills in
# `gold`, the right answer, or `rating`, good or bad. The same question of the same snapshot gives
# the same line: no time stands in it.


def describe_trace(
    reply: Answer, options: Sequence[str], strategy: str, snapshot: Snapshot
) -> dict[str, Any]:
    """An answer as a line of feedback.

    `triples`: the distinct facts of the graph in its context. `depth`: number of searches of the
    graph with results: WTS's depths, one at most for other strategies.
    """
    # Paths are facts joined by "+"; what describes an entity is none.
    parts = [key for item in reply.context if item.layer == "graph" for key in item.key.split("+")]
    keys = [key for key in parts if key.startswith("condensed-")]
    facts = state_facts(dict.fromkeys(keys, 0.0), snapshot)
    depth = sum(
        step.layer == "graph" and step.outcome not in (Outcome.EMPTY, Outcome.SKIPPED)
        for step in reply.trace
    )
    return {
        "question": reply.question,
        "options": list(options),
        "answer": reply.text,
        "gold": None,
        "rating": None,
        "triples": [{"key": fact.condensed_id, "words": fact.statement} for fact in facts],
        "depth": depth,
        "confidence": reply.confidence,
        "strategy": strategy,
        "snapshot": snapshot.id,
    }


def append_trace(path: Path, line: str = "") -> None:
    """Appends a line by one write, so that several processes may append to the same file.

    Raises:
        InputError: it is a folder, its folder is none, or it may not be written.
    """
    try:
        with path.open("ab", buffering=0) as file:
            file.write(line.encode("utf-8", "backslashreplace"))
    except OSError as e:
        raise InputError(f"--trace {path}: no line can be added: {e.strerror}") from e
