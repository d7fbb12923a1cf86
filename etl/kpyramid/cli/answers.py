"""A question answered from a snapshot for `kpyramid ask`, and the answer explained."""

import inspect
import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from kpyramid.cli.console import LONGEST, excerpt, find_best_sentence, name_origin, shorten
from kpyramid.cli.render import Result, count_things
from kpyramid.errors import InputError, SettingsError
from kpyramid.llm.caller import Caller
from kpyramid.llm.endpoint import read_key
from kpyramid.llm.ledger import read_totals
from kpyramid.pipeline.models import Opener
from kpyramid.query import (
    STRATEGIES,
    Answer,
    Backends,
    Snapshot,
    answer,
    open_snapshot,
)
from kpyramid.query.decisions import FLOOR
from kpyramid.query.facts import state_facts
from kpyramid.query.parameters import parse_options
from kpyramid.query.paths import STEP
from kpyramid.query.types import DECISIONS, Item, Outcome, Step
from kpyramid.settings import QuerySettings, Settings
from kpyramid.snapshot.evidence import Evidence
from kpyramid.snapshot.view import PUBLIC, Scope
from kpyramid.storage.layout import Warehouse, open_warehouse

# `ask --explain`: which layers were asked and why the answer follows, for a first-time reader.

_MOST_FOUND, _MOST_PLACES, _MOST_SHOWN = 5, 6, 3

LAYERS = {
    "ontology": "statements of a fixed vocabulary",
    "graph": "facts read from the text, each a subject, a relation and an object",
    "text": "the passages of the documents themselves",
    "model": "a language model without any of your documents",
}
"""What each layer is, in a few words."""

OUTCOMES = {
    Outcome.ANSWERED: "It answers",
    Outcome.INSUFFICIENT: "Not enough to answer from",
    Outcome.EMPTY: "It knows nothing of this",
    Outcome.FAILED: "No query of it could be made",
    Outcome.TOO_BROAD: "Too much to be an answer",
    Outcome.SKIPPED: "Not asked",
}


@dataclass(frozen=True, kw_only=True)
class Asked(Result):
    """An answer, in words short or explained."""

    answer: Answer
    explain: bool

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values; `nearest`: what is near the question where it has none."""
        nearest = () if self.answer.text else _sort_nearest(self.answer)
        question = self.answer.question
        shown = [{"text": i.text, "sentences": _list_sentences(i, question)} for i in nearest]
        return {**self.answer.to_dict(), "nearest": shown}

    def show(self) -> Iterator[RenderableType]:
        """The answer, its layer and evidence; explained: each layer with what came of it."""
        answer = self.answer
        if self.explain:
            yield from (*_show_question(answer), *_show_steps(answer), *_show_answer(answer))
        else:
            yield from _show_briefly(answer)
        if answer.tokens or answer.calls:
            cost = "" if answer.cost is None else f", ${answer.cost:.6f}"
            yield f"Model: {count_things(answer.calls, 'call')}, {answer.tokens:,} tokens{cost}"


def _show_briefly(answer: Answer) -> Iterator[str]:
    """The answer, what was tried, and the evidence, or what is nearest, down to the characters."""
    nothing = "not known; nearest:" if answer.context else "not known, and nothing is near it"
    yield answer.text or nothing
    if not answer.text:
        near = sorted(answer.context, key=lambda item: item.layer == "text")
        yield from _list_places(
            [(_quote(item, answer.question), item.evidence[:1]) for item in near]
        )
    yield f"Layer: {answer.layer or 'none'}"
    if answer.text:
        yield f"Probability that it is right: {answer.confidence:.2f}"
    yield from (f"  tried {step}" for step in answer.trace)
    if answer.evidence:
        yield "Evidence:"
    yield from _list_places([(place.text, [place]) for place in answer.evidence])


def _list_sentences(item: Item, question: str) -> list[str]:
    if item.layer == "text":
        return [find_best_sentence(item.text, question)]
    return [place.text for place in item.evidence]


def _quote(item: Item, question: str) -> str:
    """A statement with the sentence that says it; a passage around its best sentence."""
    says = item.evidence[0].text if item.layer != "text" and item.evidence else ""
    told = excerpt(item, question)
    return f"{told}: {shorten(says)}" if says else told


def _list_places(quoted: Sequence[tuple[str, Sequence[Evidence]]]) -> Iterator[str]:
    for text, places in quoted[:_MOST_FOUND]:
        yield f"  {text}"
        for place in places:
            where = f"{place.source}, characters {place.start}-{place.end}{name_origin(place)}"
            yield f"    {where}"
    if len(quoted) > _MOST_FOUND:
        yield f"  and {len(quoted) - _MOST_FOUND} more (--json shows all)"


def _show_question(answer: Answer) -> list[Text | Padding]:
    lines: list[Text | Padding] = []
    if answer.question:
        lines.append(Text.assemble(("Question  ", "bold"), answer.question))
    for line in answer.recognised:
        what, _, words = line.partition(": ")
        lines.append(_indent(Text.assemble((f"{what}: ", "dim"), words)))
    return lines


def _show_steps(answer: Answer) -> list[Text | Padding | Group]:
    """Each layer in the order in which it was asked."""
    lines: list[Text | Padding | Group] = [Text("")]
    for number, step in enumerate(answer.trace, 1):
        about = LAYERS.get(step.layer, "")
        title = f"{number}. {step.layer.capitalize()}"
        lines.append(Text.assemble((title, "bold"), (f"  {about}" if about else "", "dim")))
        goes_on = any(later.outcome is not Outcome.SKIPPED for later in answer.trace[number:])
        lines.append(_indent(Group(*_show_step(step, goes_on=goes_on))))
    return lines


def _show_step(step: Step, *, goes_on: bool) -> list[Text]:
    answered = step.outcome is Outcome.ANSWERED
    guesses = answered and step.confidence is not None and step.confidence < FLOOR
    said = "It is the likeliest option, a guess" if guesses else OUTCOMES[step.outcome]
    style = "green" if answered and not guesses else "yellow"
    lines = [Text.assemble((f"{said}: ", style), step.reason + ".")]
    if step.query:
        lines.append(Text.assemble(("asked: ", "dim"), step.query))
    for found in step.found[:_MOST_FOUND]:
        lines.append(Text.assemble(("found: ", "dim"), shorten(found)))
    if len(step.found) > _MOST_FOUND:
        lines.append(Text(f"and {len(step.found) - _MOST_FOUND} more (--json shows all)", "dim"))
    if goes_on and step.found and step.outcome not in (Outcome.ANSWERED, Outcome.SKIPPED):
        lines.append(Text("What was found is kept for the next layer.", "dim"))
    return lines


def _show_answer(answer: Answer) -> list[Text | Padding]:
    lines: list[Text | Padding] = [Text("")]
    if not answer.text:
        nothing = "not known; nearest:" if answer.context else "not known, and nothing is near it"
        lines.append(Text.assemble(("Answer  ", "bold"), nothing))
        paths = [item for item in answer.context if _read_steps(item)]
        for item in paths[:_MOST_SHOWN]:
            lines += _show_path(item, ())
        for item in _sort_nearest(answer) if not paths else ():
            lines.append(_indent(Text(excerpt(item, answer.question))))
            for place in item.evidence[:1] if item.layer != "text" else ():
                lines.append(_indent(_mark(place, ()), 4))
    else:
        lines.append(Text.assemble(("Answer  ", "bold"), (answer.text, "bold green")))
        chance = f"probability that it is right: {answer.confidence:.2f}; from the {answer.layer}"
        lines.append(_indent(Text(chance, "dim")))
        lines += _show_places(answer)
        for told in [item.statement for item in answer.context if item.statement][:_MOST_SHOWN]:
            lines.append(_indent(Text.assemble(("in short: ", "dim"), told)))
    lines.append(Text(""))
    lines.append(Text(_close(answer), "dim"))
    return lines


def _sort_nearest(answer: Answer) -> list[Item]:
    """The best of what was found: statements, then passages."""
    return sorted(answer.context, key=lambda item: item.layer == "text")[:_MOST_FOUND]


def _show_places(answer: Answer) -> list[Text | Padding]:
    """The sentences that the answer rests on, the words that answer marked; paths come first."""
    lines: list[Text | Padding] = [Text("It rests on", "bold")]
    words = [item for item in (*answer.choices, answer.text) if item]
    cited = set(answer.evidence)
    shown: set[Evidence] = set()
    for item in answer.context:
        if _read_steps(item) and cited.issuperset(item.evidence) and not cited <= shown:
            lines += _show_path(item, words)
            shown.update(item.evidence)
    if shown and cited <= shown:
        return lines
    for place in [place for place in answer.evidence if place not in shown][:_MOST_PLACES]:
        lines.append(_indent(_mark(place, words)))
        where = f"{place.source}, characters {place.start} to {place.end}{name_origin(place)}"
        lines.append(_indent(Text(where, "dim"), 4))
    more = len(cited - shown) - _MOST_PLACES
    if more > 0:
        lines.append(_indent(Text(f"and {more} more places (--json shows all)", "dim")))
    return lines


def _read_steps(item: Item) -> list[str]:
    """The steps of an item that is a path, each with the names at its ends; none of another."""
    parts = STEP.split(item.text)
    count = len(parts) // 2
    if item.layer != "graph" or count != item.key.count("+") + 1 or len(item.evidence) < count:
        return []
    return [" ".join(parts[at : at + 3]) for at in range(0, 2 * count, 2)]


def _show_path(item: Item, words: Sequence[str]) -> list[Text | Padding]:
    """A path: its arrows, and under each step the sentence that says it and where that stands."""
    steps = _read_steps(item)
    lines: list[Text | Padding] = [_indent(Text(item.text, "bold"))] if len(steps) > 1 else []
    for number, (step, place) in enumerate(zip(steps, item.evidence, strict=False), 1):
        title = f"{number}. {step}" if len(steps) > 1 else step
        where = f"{place.source}, characters {place.start} to {place.end}{name_origin(place)}"
        lines += [_indent(Text(title), 4), _indent(_mark(place, words), 7)]
        lines.append(_indent(Text(where, "dim"), 7))
    return lines


def _mark(place: Evidence, words: Sequence[str]) -> Text:
    """A place's text with the words of the answer in it marked by brackets and colour."""
    found = [m for w in words for m in re.finditer(re.escape(w), place.text, re.IGNORECASE)]
    first = min((m.start() for m in found), default=0)
    start = max(0, first - LONGEST // 2) if len(place.text) > LONGEST else 0
    end = min(len(place.text), start + LONGEST)
    text = Text("…" if start else "")
    at = start
    for span in sorted({m.span() for m in found}, key=lambda s: (s[0], -s[1])):
        if span[0] < at or span[1] > end:
            continue
        text.append(place.text[at : span[0]])
        text.append(f"[{place.text[span[0] : span[1]]}]", "bold")
        at = span[1]
    text.append(place.text[at:end])
    text.append("…" if end < len(place.text) else "")
    return text


def _close(answer: Answer) -> str:
    """A last line that says what the layers are, whatever was asked of them."""
    tried = dict.fromkeys(step.layer for step in answer.trace)
    layers = "; ".join(f"{name}: {LAYERS[name]}" for name in tried if name in LAYERS)
    if len(tried) < 2:
        return f"{layers[:1].upper()}{layers[1:]}." if layers else ""
    return f"Layers are asked from the surest to the widest, until one is enough. {layers}."


def _indent(what: Text | Group, by: int = 2) -> Padding:
    return Padding(what, (0, 0, 0, by))


# What `kpyramid ask` does: opens a snapshot and, when a decision is a model's, the model.

PATIENCE = 30.0
"""Seconds that a question waits for an endpoint that is busy or failing; a build waits
`llm.max_wait`. One call that hangs takes `llm.timeout` on top."""
_MOST_BYTES = 100_000
"""Of a question on standard input; more is no question."""
_NO_REF = ""
"""No run is of this ref, so no build's spending counts against a question's budget."""


def override(settings: Settings, option: Sequence[str] = (), **given: str | None) -> Settings:
    """The settings with the options of the command in [query]; what was not given stays.

    Each `option` is one of the strategy's, as `name=value`.

    Raises:
        SettingsError: a decision is to be a model's and there is none.
        InputError: an option is no `name=value`.
    """
    chosen: dict[str, Any] = {n: str(value) for n, value in given.items() if value is not None}
    for name in DECISIONS:
        if chosen.get(name) == "llm":
            require_model(settings, f"--{name} llm asks")
    options = settings.query.options | parse_options(option)
    return replace(settings, query=replace(settings.query, options=options, **chosen))


def read_question(text: str) -> str:
    """The question; `-` is standard input.

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
    """The answer to a question, as [query] of the settings says.

    What was found is added to the file `trace`, see `kpyramid.cli.answers`. The budget of [llm]
    bounds this one question. `tokens` and `cost` are all that was spent on it, those of trying the
    endpoint out included.

    Raises:
        InputError: no such snapshot, no question, or no file for the trace.
        SettingsError: there is no key for the model.
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    asked = settings.query
    snapshot = open_snapshot(ref, warehouse, model=settings.embed, scope=scope)
    if trace:
        append_trace(trace)  # before anything is asked for it
    if not asked.asks_model:
        found = replace(_answer(question, snapshot, asked, candidates, Backends()), cost=0.0)
    else:
        opened = open_asker(open_warehouse(warehouse), settings, "[query] asks", patience=PATIENCE)
        with opened as (asker, books):
            decided = {name: getattr(asked, name) for name in DECISIONS}
            backends = Backends(**decided, asker=asker)
            found = _answer(question, snapshot, asked, candidates, backends)
            spent = read_totals(books).run
            found = replace(found, tokens=spent.tokens, cost=spent.cost)
    if trace:
        row = describe_trace(found, candidates, asked.strategy, snapshot)
        append_trace(trace, f"{json.dumps(row, ensure_ascii=False)}\n")
    return found


def require_model(settings: Settings, what: str) -> None:
    """That there is a model, and a key for it; `what` says who asks it.

    Raises:
        SettingsError: there is none.
    """
    if settings.llm.provider == "none":
        raise SettingsError(
            f"{what} a model, and llm.provider is 'none'; name one in [llm] of --settings, or "
            "leave the option out"
        )
    if settings.llm.is_served:
        read_key(settings.llm)


@contextmanager
def open_asker(
    place: Warehouse,
    settings: Settings,
    what: str,
    *,
    books: Path | None = None,
    patience: float | None = None,
) -> Iterator[tuple[Caller, Path]]:
    """What asks the model of [llm], and the folder of its books: `books`, else one of its own.

    Nothing is asked before it is needed.

    Raises:
        SettingsError: as `require_model`.
    """
    require_model(settings, what)
    with ExitStack() as held:
        folder = books or Path(held.enter_context(TemporaryDirectory(prefix="kpyramid-")))
        folder.mkdir(parents=True, exist_ok=True)
        opener = held.enter_context(Opener(place, settings, folder, _NO_REF, patience=patience))
        yield opener.open_model().caller, folder


def _answer(
    question: str,
    snapshot: Snapshot,
    asked: QuerySettings,
    candidates: Sequence[str],
    backends: Backends,
) -> Answer:
    known = inspect.signature(STRATEGIES[asked.strategy]).parameters
    named = (name for name in ("mode", "triples", "chunks") if name in known)
    options = {name: getattr(asked, name) for name in named} | asked.options
    return answer(
        question, snapshot, asked.strategy, candidates=candidates, backends=backends, **options
    )


# What `ask --trace FILE` adds to a file: a question with what was found for it, a line of JSON.
#
# The form of the feedback that `kpyramid learn` reads (WTS, 3.2.2): who knows better fills in
# `gold`, the right answer, or `rating`, good or bad. The same question of the same snapshot gives
# the same line: no time stands in it.


def describe_trace(
    found: Answer, options: Sequence[str], strategy: str, snapshot: Snapshot
) -> dict[str, Any]:
    """An answer as a line of feedback.

    `triples` are the facts of the graph in its context, each once. `depth` is how many times the
    graph was gone into and found anything: WTS's depths, one at most of other strategies.
    """
    # Paths are facts joined by "+"; what describes an entity is none.
    parts = [key for item in found.context if item.layer == "graph" for key in item.key.split("+")]
    keys = [key for key in parts if key.startswith("condensed-")]
    facts = state_facts(dict.fromkeys(keys, 0.0), snapshot)
    depth = sum(
        step.layer == "graph" and step.outcome not in (Outcome.EMPTY, Outcome.SKIPPED)
        for step in found.trace
    )
    return {
        "question": found.question,
        "options": list(options),
        "answer": found.text,
        "gold": None,
        "rating": None,
        "triples": [{"key": fact.condensed_id, "words": fact.statement} for fact in facts],
        "depth": depth,
        "confidence": found.confidence,
        "strategy": strategy,
        "snapshot": snapshot.id,
    }


def append_trace(path: Path, line: str = "") -> None:
    """Adds a line as one write, so that several processes may add to the same file.

    Raises:
        InputError: it is a folder, its folder is none, or it may not be written.
    """
    try:
        with path.open("ab", buffering=0) as file:
            file.write(line.encode("utf-8", "backslashreplace"))
    except OSError as e:
        raise InputError(f"--trace {path}: no line can be added: {e.strerror}") from e
