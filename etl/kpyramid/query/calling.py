"""A strategy in which a model calls typed questions and SPARQL, and reads their results."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from kpyramid.errors import InputError
from kpyramid.llm.task import Asker, Failure, Strict, parse_json
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.decisions import Decisions
from kpyramid.query.model.polyrag import add_prefixes, describe_schema
from kpyramid.query.model.reading import (
    ask_model,
    make_request,
    make_task,
    show_numbered,
    show_question,
    write_prompt,
)
from kpyramid.query.toolset import call_tool, tools
from kpyramid.query.types import Answer, Item, Outcome, Step
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.typed import Comparison, Member, Members

MOST_CALLS = 6
"""Most calls of tools for a question; the answer takes a further call."""
_MOST_SHOWN = 20
"""Most members of a set, and most rows of a query, in a prompt."""
_MOST_CHARACTERS = 12_000


class Turn(Strict):
    """The reply: the next call, with its arguments as JSON or its query; `answer` ends them."""

    call: Literal["find", "compare", "paths", "sparql", "answer"]
    arguments: str


def _write_system(base: str) -> str:
    listed = json.dumps([tool["function"] for tool in tools()])
    return write_prompt("query_tools", base=base, tools=listed)


QUERY_TOOLS = make_task(
    "query_tools", 1, Turn, "walk", lambda _: _write_system(""), strategy="tools"
)


def ask_tools(asked: QuestionAnalysis, decisions: Decisions, *, calls: int = MOST_CALLS) -> Answer:
    """The answer from the results of at most `calls` typed questions of a model.

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    if decisions.walker is None:
        why = "a model calls the tools: walk = llm, with settings that name one"
        return Answer(trace=(Step("ontology", Outcome.SKIPPED, why),))
    steps: list[Step] = []
    items: dict[str, Item] = {}
    for _ in range(calls):
        turn = _ask(asked, steps, list(items.values()), decisions.walker)
        if isinstance(turn, Failure):
            steps.append(Step("ontology", Outcome.FAILED, f"no call: {turn}"))
            break
        if turn.call == "answer":
            break
        query = f"{turn.call} {turn.arguments}"
        try:
            pieces = [*_run(turn, asked.snapshot)]
        except InputError as e:
            steps.append(Step("ontology", Outcome.FAILED, str(e), query=query))
            continue
        items |= {item.key: item for item in pieces}
        outcome = Outcome.INSUFFICIENT if pieces else Outcome.EMPTY
        texts = tuple(item.text for item in pieces)
        steps.append(Step("ontology", outcome, f"{len(pieces)} found", texts, query=query))
    context = tuple(items.values())
    reading = decisions.read(asked, context)
    outcome = Outcome.ANSWERED if reading.answers else Outcome.INSUFFICIENT
    last = Step("ontology", outcome, reading.reason, confidence=reading.confidence)
    return replace(reading.give(context, "ontology", last), trace=(*steps, last))


def _ask(
    asked: QuestionAnalysis, steps: Sequence[Step], items: Sequence[Item], asker: Asker
) -> Turn | Failure:
    lines = [*show_question(asked.question), *describe_schema(asked.snapshot.schema, asked.text)]
    lines += [f"Call: {step.query} -> {step.reason}" for step in steps]
    lines += ["Found:", *show_numbered([item.text for item in items], _MOST_CHARACTERS)]
    system = _write_system(asked.snapshot.schema.base)
    request = make_request(QUERY_TOOLS, system, lines, asked.text)
    return ask_model(asker, request, lambda reply: parse_json(reply, Turn))


def _run(turn: Turn, snapshot: Snapshot) -> Iterator[Item]:
    """The results of a call as items of context."""
    if turn.call == "sparql":
        query = add_prefixes(turn.arguments, snapshot.schema)
        for row in snapshot.sparql(query, limit=_MOST_SHOWN):
            text = "; ".join(f"{name}: {value}" for name, value in row.items())
            yield Item(text, text, "ontology", 1.0, ())
        return
    result = call_tool(turn.call, turn.arguments, snapshot)
    if isinstance(result, Members):
        text = f"{turn.arguments}: {result.count}"
        yield Item(text, text, "ontology", 1.0, ())
        yield from map(_state_member, result.members[:_MOST_SHOWN])
    elif isinstance(result, Comparison):
        ends = (result.first, result.second)
        yield from map(_state_member, ends)
        text = f"{result.first.name} to {result.second.name} by {result.property}: {result.order}"
        yield Item(text, text, "ontology", 1.0, tuple(p for end in ends for p in end.evidence))
    else:
        for path in result.paths:
            text = "; ".join(f"{hop.head} {hop.relation} {hop.tail}" for hop in path)
            yield Item(text, text, "graph", 1.0, tuple(p for hop in path for p in hop.evidence))


def _state_member(member: Member) -> Item:
    values = (f"{name}: {', '.join(texts)}" for name, texts in member.values.items())
    text = "; ".join((member.name, *values))
    return Item(f"{member.id} {text}", text, "ontology", 1.0, member.evidence)
