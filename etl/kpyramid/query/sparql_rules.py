"""`Query_onto` by rules: the ontology's answer to a question, with the facts that give it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kpyramid.ontology.names import ENTITY
from kpyramid.query.pyramid.snapshot import Snapshot
from kpyramid.query.questions.lexicon import Lexicon
from kpyramid.query.questions.reading import Unwritten, Written, read_question
from kpyramid.query.questions.writing import (
    Plan,
    spell_out,
    write_patterns,
    write_query,
    write_string,
)
from kpyramid.query.types import Outcome, Step

Fact = tuple[str, str, str]
"""Subject, property, object: IRIs, the object also a literal's text."""

MOST_VALUES = 50
"""Values of an answer; a list that nobody reads to its end answers nothing in particular."""
_MOST_FACTS = 500


@dataclass(frozen=True, slots=True)
class Found:
    """What came of a query: `values` as they are stored, the facts behind them, why in words."""

    outcome: Outcome
    reason: str
    values: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    calls: int = 0
    tokens: int = 0
    sparql: str = ""
    """The query that was run, or the nearest one that was not sure enough to run."""

    @property
    def step(self) -> Step:
        """The layer's part in the trace."""
        return Step("ontology", self.outcome, self.reason)


def ask_by_rules(question: str, snapshot: Snapshot, *, most: int = MOST_VALUES) -> Found:
    """The answer of the ontology to a question that the rules are sure of."""
    read = read_question(question, snapshot.lexicon)
    if isinstance(read, Unwritten):
        guess = f"; the nearest query was {read.sparql}" if read.sparql else ""
        return Found(Outcome.FAILED, read.reason + guess, sparql=read.sparql)
    rows = snapshot.ontology.select_trusted(read.sparql, limit=most + 1)
    found = judge_reading(read, rows, most)
    if found.outcome is not Outcome.ANSWERED:
        return found
    facts = bind_facts(read.plan, rows, snapshot.lexicon)
    return replace(found, facts=facts)


def judge_reading(read: Written, rows: list[dict[str, str]], most: int) -> Found:
    """Whether rows answer what was read; all members of a class, unless counted, are too broad."""
    tree = read.plan.tree
    measured = any(x.measure for x in (read.plan.rank, *read.plan.bounds) if x)
    if read.plan.act != "count" and not (
        tree.links or tree.values or measured or any(node.iris for node in tree.nodes)
    ):
        reason = f"it is about nothing in particular: {read.sparql}"
        return Found(Outcome.TOO_BROAD, reason, sparql=read.sparql)
    return judge_rows(rows, read.sparql, most)


def judge_rows(rows: list[dict[str, str]], sparql: str, most: int) -> Found:
    """Whether rows are an answer; a count of none and an untrue ASK only say that none is known."""
    values = tuple(dict.fromkeys(value for row in rows for value in row.values()))
    if not values or values in {("0",), ("false",)}:
        return Found(Outcome.EMPTY, f"no value from {sparql}", sparql=sparql)
    if len(rows) > most:
        return Found(Outcome.TOO_BROAD, f"more than {most} values from {sparql}", sparql=sparql)
    return Found(Outcome.ANSWERED, f"{len(values)} value(s) from {sparql}", values, sparql=sparql)


def bind_facts(plan: Plan, rows: list[dict[str, str]], lexicon: Lexicon) -> tuple[Fact, ...]:
    """The statements that the answers in `rows` were read from, in the order of the query.

    Of an answer that is the first by a measure they are those of the best measure only.
    """
    if plan.act == "count" and any(not bound.measure for bound in plan.bounds):
        plan = replace(plan, act="select")  # what is counted are the rows of this query
        rows = lexicon.run(write_query(plan, lexicon))
    plan = spell_out(plan)
    body = write_patterns(plan, lexicon)
    if plan.act == "select" and not plan.aggregate and plan.tree.focus is not None:
        listed = ", ".join(write_string(row["result"]) for row in rows if "result" in row)
        body.append(f"FILTER(STR(?x{plan.tree.focus}) IN ({listed}))")
    rank = plan.rank if plan.rank and plan.rank.measure and not plan.rank.aggregate else None
    order = f" ORDER BY {'DESC' if rank.descending else 'ASC'}(?rank)" if rank else ""
    query = f"SELECT * WHERE {{ {' '.join(body)} }}{order} LIMIT {_MOST_FACTS}"
    return tuple(dict.fromkeys(_list_facts(plan, lexicon.run(query), is_ranked=rank is not None)))


def _list_facts(plan: Plan, rows: list[dict[str, str]], *, is_ranked: bool) -> Iterator[Fact]:
    tree, best = plan.tree, dict[str, str]()

    def bind(row: dict[str, str], at: int) -> str | None:
        iris = tree.nodes[at].iris
        return iris[0] if len(iris) == 1 else row.get(f"x{at}")

    for row in rows:
        answer = bind(row, tree.focus or 0)
        if is_ranked and answer and best.setdefault(answer, row["rank"]) != row["rank"]:
            continue
        facts = [(bind(row, x.source), x.iri, bind(row, x.target)) for x in tree.links]
        facts += [
            (bind(row, at), iri, row.get(f"v{number}"))
            for number, (at, iri, _) in enumerate(tree.values)
        ]
        yield from ((s, p, o) for s, p, o in facts if s and o)


def shorten(iri: str) -> str:
    """An entity's id, or the value itself."""
    return iri.removeprefix(ENTITY)
