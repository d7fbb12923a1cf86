"""The query module: what a serving team imports. It reads snapshots and changes nothing.

`retrieve` gives facts, passages and how they connect; `answer` runs a strategy on top of it. It
imports the snapshot, embeddings, and a model's client when a model decides; never what builds.
"""

import inspect
import time
from collections import UserDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module

from kpyramid.errors import InputError
from kpyramid.query.analysis import analyse, cut_value
from kpyramid.query.backends import Chosen
from kpyramid.query.decisions import bound_confidence
from kpyramid.query.retrieval import Connection, Retrieval, retrieve
from kpyramid.query.types import RULES, Answer, Backends, Item
from kpyramid.snapshot.evidence import Evidence
from kpyramid.snapshot.search import one_thread
from kpyramid.snapshot.snapshot import Snapshot, open_snapshot
from kpyramid.snapshot.view import EVERYTHING, PUBLIC, Scope

Strategy = Callable[..., Answer]


class _Strategies(UserDict[str, Strategy | None]):
    """Strategies by name; the module of one, `query/NAME.py`, is loaded when it is looked up."""

    def __getitem__(self, name: str) -> Strategy:
        if (strategy := self.data[name]) is None:
            strategy = getattr(import_module(f"kpyramid.query.{name}"), f"ask_{name}")
            self.data[name] = strategy
        assert strategy is not None
        return strategy


STRATEGIES = _Strategies(
    dict.fromkeys("direct naive kaping exact polyrag wts rok hykge ksl".split())
)
"""The strategies by name; each takes a `QuestionAnalysis`, `Decisions`, and its own options."""


def parse_options(texts: Iterable[str]) -> dict[str, bool | int | float | str]:
    """Options of a strategy from `name=value`; true, false and numbers are read as such.

    Raises:
        InputError: one is no `name=value`.
    """
    options: dict[str, bool | int | float | str] = {}
    for text in texts:
        name, found, value = (part.strip() for part in text.partition("="))
        if not (name and found and value):
            raise InputError(f"option {cut_value(text)}: write NAME=VALUE")
        options[name] = _read_value(value)
    return options


def _read_value(text: str) -> bool | int | float | str:
    if text.casefold() in {"true", "false"}:
        return text.casefold() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_chance(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


_KINDS: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    **dict.fromkeys(
        "chunks triples entities depth width hops paths length overlap rounds votes".split(),
        ("a whole number, 1 or more", _is_count),
    ),
    **dict.fromkeys(
        "sufficient floor distance similar damping".split(), ("a number from 0 to 1", _is_chance)
    ),
    **dict.fromkeys(
        "mode by start match domain rerank".split(),
        ("a string", lambda value: isinstance(value, str)),
    ),
    "a switch": ("True or False", lambda value: isinstance(value, bool)),
}
"""What a value of an option has to be, and how that is told."""


@one_thread
def answer(
    question: str,
    snapshot: Snapshot,
    strategy: str = "polyrag",
    *,
    candidates: Sequence[str] = (),
    backends: Backends = RULES,
    **options: object,
) -> Answer:
    """The answer of one strategy; `options` are that strategy's keyword parameters.

    `candidates` are the options of a choice question, `backends` who takes the decisions.

    Raises:
        InputError: the question or a candidate is empty, too long or no text, or the strategy, the
            snapshot, the backends or an option is none that there is.
    """
    asked = analyse(question, snapshot, candidates)
    if strategy not in STRATEGIES:
        known = ", ".join(STRATEGIES)
        raise InputError(f"unknown strategy {cut_value(strategy)}; there are {known}")
    if not isinstance(backends, Backends):
        raise InputError(
            f"backends = {cut_value(backends)}: pass a Backends, or leave it out to ask no model"
        )
    check_options(strategy, options)
    started = time.monotonic()
    decisions = Chosen(backends)
    found = STRATEGIES[strategy](asked, decisions, **options)
    found = bound_confidence(asked, found, decisions)
    hidden = f"searched: {seen}" if (seen := snapshot.describe_scope()) else ""
    return replace(
        found,
        question=asked.text,
        recognised=(*found.recognised, hidden) if hidden else found.recognised,
        seconds=round(time.monotonic() - started, 4),
    )


def check_options(strategy: str, options: Mapping[str, object]) -> None:
    """That a strategy has these parameters, and that each value is of its kind.

    What a parameter means beyond that is the strategy's to check.
    """
    known = [name for name, taken in inspect.signature(STRATEGIES[strategy]).parameters.items()
             if taken.kind is taken.KEYWORD_ONLY]  # fmt: skip
    for name, value in options.items():
        if name not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise InputError(f"strategy {strategy} has no option {cut_value(name)}; {takes}")
        wants, is_so = _KINDS.get(name, _KINDS["a switch"])
        if not is_so(value):
            raise InputError(f"{name} = {cut_value(value)}: pass {wants}")


__all__ = [
    "EVERYTHING",
    "PUBLIC",
    "STRATEGIES",
    "Answer",
    "Backends",
    "Connection",
    "Evidence",
    "Item",
    "Retrieval",
    "Scope",
    "Snapshot",
    "answer",
    "open_snapshot",
    "retrieve",
]
