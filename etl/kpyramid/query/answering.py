"""The strategies by name, and the answer that one of them gives."""

import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import get_args

from kpyramid.errors import InputError
from kpyramid.llm.task import CountingAsker, ThreadCounts
from kpyramid.query.analysis import analyse, cut_value
from kpyramid.query.types import RULES, Answer, Backends
from kpyramid.snapshot.search import join_words, one_thread
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.strategies import STRATEGIES as REGISTRY

Strategy = Callable[..., Answer]


class _Strategies(Mapping[str, Strategy]):
    """Strategies by name; the module of one is loaded when it is looked up."""

    def __getitem__(self, name: str) -> Strategy:
        module, function = REGISTRY[name]
        strategy: Strategy = getattr(import_module(module), function)
        return strategy

    def __iter__(self) -> Iterator[str]:
        return iter(REGISTRY)

    def __len__(self) -> int:
        return len(REGISTRY)


STRATEGIES: Mapping[str, Strategy] = _Strategies()
"""The strategies by name; each takes a `QuestionAnalysis`, `Decisions`, and its own options."""


@one_thread
def answer(
    question: str,
    snapshot: Snapshot,
    strategy: str = "polyrag",
    *,
    candidates: Sequence[str] = (),
    backends: Backends = RULES,
    floor: float | None = None,
    **options: object,
) -> Answer:
    """The answer of one strategy; `options` are that strategy's keyword parameters.

    `candidates`: options of a choice question; `backends`: who takes the decisions. Below the
    probability `floor` no answer is given: `kpyramid.query.decisions.FLOOR` for polyrag in mode
    `best`, 0 for the algorithm of a paper.

    Raises:
        InputError: the question or a candidate is empty, too long or no text, or the strategy, the
            snapshot, the backends or an option is none that there is.
    """
    asked = analyse(question, snapshot, candidates)
    from kpyramid.query.decisions import FLOOR, Decisions, withhold  # `retrieve` needs none

    if strategy not in STRATEGIES:
        known = ", ".join(STRATEGIES)
        raise InputError(f"unknown strategy {cut_value(strategy)}; there are {known}")
    if not isinstance(backends, Backends):
        raise InputError(
            f"backends = {cut_value(backends)}: pass a Backends, or leave it out to ask no model"
        )
    if options or floor is not None:
        check_options(strategy, STRATEGIES[strategy], {**options, "floor": floor or 0.0})
    started = time.monotonic()
    asker = backends.asker  # the costs of an asker without counts are unknown
    spent = asker.spent if isinstance(asker, CountingAsker) else ThreadCounts()
    before = spent.read()
    result = STRATEGIES[strategy](asked, Decisions(backends), **options)
    if floor is None:
        # A paper's algorithm, as published, withholds nothing; only mode `best` of polyrag is ours.
        is_ours = strategy == "polyrag" and options.get("mode", "best") == "best"
        floor = FLOOR if is_ours else 0.0
    result = withhold(asked, result, floor)
    calls, tokens, dollars, unpriced = (
        now - then for now, then in zip(spent.read(), before, strict=True)
    )
    is_known = asker is None or isinstance(asker, CountingAsker)
    hidden = f"searched: {seen}" if (seen := snapshot.describe_scope()) else ""
    words = [f" {join_words(each)} " for each in (result.text, *result.choices) if each]
    return replace(
        result,
        conflicts=tuple(
            conflict
            for conflict in (snapshot.conflicts.at(result.evidence) if words else ())
            if any(w in f" {join_words(s.statement)} " for w in words for s in conflict.sides)
        ),
        question=asked.text,
        recognised=(*result.recognised, hidden) if hidden else result.recognised,
        calls=int(calls),
        tokens=int(tokens),
        cost=round(dollars, 9) if is_known and not unpriced else None,
        seconds=round(time.monotonic() - started, 4),
    )


# The options of a strategy, which are its keyword parameters: read from words, and checked.

Option = bool | int | float | str


def parse_options(texts: Iterable[str]) -> dict[str, Option]:
    """Options from `name=value`; true, false and numbers are parsed as such.

    Raises:
        InputError: a text is no `name=value`.
    """
    options: dict[str, Option] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise InputError(f"option {cut_value(text)}: write NAME=VALUE")
        options[name] = _read_value(value)
    return options


def _read_value(text: str) -> Option:
    if text.casefold() in {"true", "false"}:
        return text.casefold() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


_KINDS: Mapping[object, tuple[str, Callable[[object], bool]]] = {
    int: ("a whole number, 1 or more", lambda v: type(v) is int and v >= 1),
    float: ("a number from 0 to 1", lambda v: type(v) in (int, float) and 0 <= v <= 1),  # type: ignore[operator]
    bool: ("True or False", lambda v: type(v) is bool),
    str: ("a string", lambda v: type(v) is str),
}
"""The valid values of a parameter by its type: in words, and as a check."""


def check_options(
    strategy: str, function: Callable[..., object], options: Mapping[str, object]
) -> None:
    """Checks that a strategy has these parameters, and that each value is valid.

    Every strategy has a `floor`, see `kpyramid.query.decisions.FLOOR`.

    Raises:
        InputError: the strategy lacks an option, or a value is not valid.
    """
    known = {
        name: taken.annotation
        for name, taken in inspect.signature(function, eval_str=True).parameters.items()
        if taken.kind is taken.KEYWORD_ONLY
    } | {"floor": float}
    for name, value in options.items():
        if name not in known:
            takes = f"it takes {', '.join(known)}"
            raise InputError(f"strategy {strategy} has no option {cut_value(name)}; {takes}")
        choices = get_args(known[name])  # of a Literal
        wants, is_so = f"one of {', '.join(choices)}", choices.__contains__
        if not choices:
            wants, is_so = _KINDS[known[name]]
        if not is_so(value):
            raise InputError(f"{name} = {cut_value(value)}: pass {wants}")
