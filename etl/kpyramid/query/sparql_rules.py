"""`Query_onto` by rules: the ontology's answer to a question, with the facts that give it."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from kpyramid.ontology.names import ENTITY
from kpyramid.query.questions.reading import Unwritten, read_question
from kpyramid.query.questions.writing import Plan, write_patterns
from kpyramid.query.snapshot import Snapshot

Fact = tuple[str, str, str]
"""Subject, property, object: IRIs, the object also a literal's text."""

MOST_VALUES = 50
"""Values of an answer; a list that nobody reads to its end answers nothing in particular."""
_MOST_FACTS = 500


class Outcome(StrEnum):
    """How the ontology layer took a question; only `ANSWERED` ends the waterfall."""

    ANSWERED = "answered"
    EMPTY = "empty"
    """The query is sound and finds nothing: the layer does not know."""
    FAILED = "failed"
    """There is no query, or it was refused, or stopped at a limit."""
    TOO_BROAD = "too broad"
    """It finds more than an answer holds, or asks about nothing in particular."""


@dataclass(frozen=True, slots=True)
class Found:
    """What came of a query: `values` as they are stored, the facts behind them, why in words."""

    outcome: Outcome
    reason: str
    values: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    calls: int = 0
    tokens: int = 0

    @property
    def step(self) -> str:
        """A line of the trace."""
        return f"ontology: {self.outcome}: {self.reason}"


def ask_by_rules(question: str, snapshot: Snapshot, *, most: int = MOST_VALUES) -> Found:
    """The answer of the ontology to a question that the rules are sure of."""
    read = read_question(question, snapshot.lexicon)
    if isinstance(read, Unwritten):
        guess = f"; the nearest query was {read.sparql}" if read.sparql else ""
        return Found(Outcome.FAILED, read.reason + guess)
    rows = snapshot.ontology.select_trusted(read.sparql, limit=most + 1)
    found = judge_rows(rows, read.sparql, most)
    if found.outcome is not Outcome.ANSWERED:
        return found
    return Found(found.outcome, found.reason, found.values, _bind_facts(read.plan, snapshot))


def judge_rows(rows: list[dict[str, str]], sparql: str, most: int) -> Found:
    """Whether rows are an answer; a count of none and an untrue ASK only say that none is known."""
    values = tuple(dict.fromkeys(value for row in rows for value in row.values()))
    if not values or values in {("0",), ("false",)}:
        return Found(Outcome.EMPTY, f"no value from {sparql}")
    if len(rows) > most:
        return Found(Outcome.TOO_BROAD, f"more than {most} values from {sparql}")
    return Found(Outcome.ANSWERED, f"{len(values)} value(s) from {sparql}", values)


def _bind_facts(plan: Plan, snapshot: Snapshot) -> tuple[Fact, ...]:
    """The statements that the answer was read from, in the order of the query."""
    tree = plan.tree
    body = " ".join(write_patterns(plan, snapshot.lexicon))
    rows = snapshot.ontology.select_trusted(f"SELECT * WHERE {{ {body} }}", limit=_MOST_FACTS)

    def list_facts() -> Iterator[Fact]:
        for row in rows:
            for link in tree.links:
                ends = [
                    tree.nodes[at].iris[0] if len(tree.nodes[at].iris) == 1 else row.get(f"x{at}")
                    for at in (link.source, link.target)
                ]
                if ends[0] and ends[1]:
                    yield ends[0], link.iri, ends[1]

    return tuple(dict.fromkeys(list_facts()))


def shorten(iri: str) -> str:
    """An entity's id, or the value itself."""
    return iri.removeprefix(ENTITY)
