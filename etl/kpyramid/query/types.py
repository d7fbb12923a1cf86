"""Questions, items of context, readings, steps and answers."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Literal, get_args

from kpyramid.errors import InputError
from kpyramid.llm.task import Asker
from kpyramid.snapshot.conflicts import Conflict
from kpyramid.snapshot.evidence import Evidence

Backend = Literal["rules", "llm"]
DECISIONS = ("sparql", "sufficiency", "reader", "walk")


@dataclass(frozen=True, slots=True)
class Question:
    """A question in plain words, with the options to choose from where it has any."""

    text: str
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Backends:
    """The backend of each decision: `rules`, or `llm`, the model that `asker` asks.

    `sparql` writes the query of the ontology layer (PolyRAG's `Query_onto`), `sufficiency` decides
    whether facts are enough (`Query_kg`), `walk` leads a walk over the graph, `reader` words the
    answer.
    """

    sparql: Backend = "rules"
    sufficiency: Backend = "rules"
    reader: Backend = "rules"
    walk: Backend = "rules"
    asker: Asker | None = None

    def __post_init__(self) -> None:
        for name in DECISIONS:
            if (backend := getattr(self, name)) not in get_args(Backend):
                raise InputError(f"{name} = {backend!r}: decisions are taken by 'rules' or 'llm'")
        if self.asks_model and self.asker is None:
            raise InputError("'llm' needs an `asker`, what asks the model of [llm]")

    @property
    def asks_model(self) -> bool:
        """Whether any decision is the model's."""
        return any(getattr(self, name) == "llm" for name in DECISIONS)

    def open_asker(self) -> Asker:
        """The asker of the model, for a decision with backend `llm`."""
        assert self.asker is not None  # `__post_init__` demands it
        return self.asker


RULES = Backends()
"""No decision is a model's."""


@dataclass(frozen=True, slots=True)
class Item:
    """An item of context: a value of the ontology, a fact in words, or a passage.

    `key`: id of its row; `score`: orders items of a layer, higher is better. For a fact,
    `confidence`: probability that it was read correctly; `qualifiers`: when, where and how it
    holds, as `time: 2019`, also at the end of its text; `standard`: its standard relation if not in
    its text, with its ends if they differ or are turned; `statement`: the statement that cites it.
    """

    key: str
    text: str
    layer: str
    score: float
    evidence: tuple[Evidence, ...]
    confidence: float | None = None
    qualifiers: tuple[str, ...] = ()
    standard: str = ""
    statement: str = ""
    conflicts: tuple[Conflict, ...] = ()
    """Those that it is a side of, unless an item before it has them."""

    @property
    def told(self) -> str:
        """Its words, standard relation, the statement that cites it, and all sides of conflicts."""
        text = " ".join(self.text.split())
        text = f"{text} [{self.standard}]" if self.standard else text
        text = f"{text} (in short: {self.statement})" if self.statement else text
        return "\n".join([text, *state_sides(self.conflicts)])


def list_places(items: Iterable[Item]) -> tuple[Evidence, ...]:
    """The places of some items, each once."""
    return tuple(dict.fromkeys(place for item in items for place in item.evidence))


STEP = re.compile(r" (– .+? →|← .+? –) ")
"""The arrow of a step in an item that is a path, see `StatedPath.statement`."""


def state_sides(conflicts: Iterable[Conflict]) -> Iterator[str]:
    """A line for each side of some conflicts, with its first sentence, the newest first."""
    for conflict in conflicts:
        yield from (f"  in conflict: {side}" for side in conflict.sides)


@dataclass(frozen=True, slots=True)
class Reading:
    """A reader's result: the answer, the probability that it is right, and its places.

    `text` and `choices` are empty if the context has no answer; for a question with candidates
    `choices` are those that hold. `reason`: why it is empty, or what the context does not support.
    """

    text: str = ""
    choices: tuple[str, ...] = ()
    confidence: float = 0.0
    evidence: tuple[Evidence, ...] = ()
    reason: str = ""

    @property
    def answers(self) -> bool:
        """Whether there is an answer."""
        return bool(self.text or self.choices)

    def judge(self, layer: str, seen: str, findings: tuple[str, ...] = ()) -> "Step":
        """The step of a layer whose items were read; `seen` describes them."""
        outcome = Outcome.ANSWERED if self.answers else Outcome.INSUFFICIENT
        why = self.reason or ("" if self.answers else "none of them answers it")
        return Step(layer, outcome, f"{seen}; {why}" if why else seen, findings, self.confidence)

    def give(
        self,
        context: tuple[Item, ...],
        layer: str | None,
        *trace: "Step",
        places: tuple[Evidence, ...] = (),
    ) -> "Answer":
        """The answer, which rests on `places` where the reading cites none."""
        return Answer(
            self.text,
            self.choices,
            context,
            layer,
            self.evidence or places,
            trace,
            confidence=self.confidence,
        )


class Outcome(StrEnum):
    """The outcome of a layer for a question; only `ANSWERED` ends the way down."""

    ANSWERED = "answered"
    INSUFFICIENT = "insufficient"
    """Its content is near the question but does not answer it."""
    EMPTY = "empty"
    """The query is valid and has no result: the layer lacks the answer."""
    FAILED = "failed"
    """There is no query, or it was refused, or stopped at a limit."""
    TOO_BROAD = "too broad"
    SKIPPED = "skipped"
    """It was switched off."""


@dataclass(frozen=True, slots=True)
class Step:
    """One layer's part in an answer: `ontology`, `graph`, `text` or `model`."""

    layer: str
    outcome: Outcome
    reason: str
    found: tuple[str, ...] = ()
    """Its findings in words, best first; they are carried down if they do not suffice."""
    confidence: float | None = None
    """The probability that the findings answer the question, where it was judged."""
    query: str = ""
    """The layer's query, such as SPARQL."""

    def __str__(self) -> str:
        return f"{self.layer}: {self.outcome}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a query: `values` as stored, the rows of `instances` behind them, a reason."""

    outcome: Outcome
    reason: str
    values: tuple[str, ...] = ()
    facts: tuple[Mapping[str, Any], ...] = ()
    sparql: str = ""
    """The query that was run."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its evidence.

    `text` is empty if there is none; `choices` are its single values, for a question with
    candidates those that hold. `context` is the reader's input, best first, each piece with its
    places; `evidence` are the places that the answer itself rests on. `layer` is `ontology`,
    `graph`, `text`, or `model` for an answer without context. `confidence` is the probability that
    the answer is right.
    `trace` lists the layers that were tried, and why each was or was not enough.
    `calls`, `tokens` and `cost` are the model's, without stored replies: `cost` in dollars, None
    for a model without a price or without counts.
    """

    text: str = ""
    choices: tuple[str, ...] = ()
    context: tuple[Item, ...] = ()
    layer: str | None = None
    evidence: tuple[Evidence, ...] = ()
    trace: tuple[Step, ...] = ()
    confidence: float = 0.0
    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    conflicts: tuple[Conflict, ...] = ()
    """The conflicts at its evidence of which a side contains the answer."""
    cost: float | None = None
    question: str = ""
    recognised: tuple[str, ...] = ()
    """Elements recognised in the question, each as "what: words"."""

    @property
    def answered(self) -> bool:
        """Whether there is an answer, right or wrong."""
        return any(value.strip() for value in (self.text, *self.choices))

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values."""
        return asdict(self)
