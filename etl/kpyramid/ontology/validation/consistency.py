"""The gate `consistent`: schema and instances contradict neither each other nor themselves."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

import pyoxigraph as ox

from kpyramid.errors import InputError
from kpyramid.keys import hash_value
from kpyramid.ontology import names as n
from kpyramid.ontology.validation.reasoner import (
    Item,
    NotJudgedError,
    Reasoner,
    explain_class,
    explain_contradiction,
    state_item,
)
from kpyramid.ontology.validation.theory import Theory, part_facts, read_theory

_MOST_NAMED = 5
_MOST_FACTS = 100_000
"""Judged at a time: HermiT takes 1.6 GiB for a million."""


class Passed(Protocol):
    """Keeps the keys of what HermiT let pass, see `RowCache`."""

    def load(self, keys: Collection[str]) -> Mapping[str, bytes]:
        """Those of the keys that are there."""

    def store(self, rows: Mapping[str, bytes]) -> None:
        """Keeps more."""


def judge_consistency(
    schema_turtle: str,
    instances_nt: str,
    *,
    seconds: float,
    provenance_nt: str = "",
    passed: Passed | None = None,
) -> str:
    """`pass`, `fail: why`, or `not run: why`, by HermiT in `seconds`.

    It fails for a class or property that nothing declares, for a class that can have no instance,
    and for a contradiction. The reason names a smallest set of statements that contradict each
    other, in words, each fact with the place in the text that states it. What HermiT
    `passed` before is not asked again; of the rest it is given each kind of part once.
    """
    given = schema_turtle, instances_nt, seconds, provenance_nt
    verdict, empty = _judge(*given, explained=1, passed=passed)
    if not empty:
        return verdict
    labels = read_theory(schema_turtle).labels
    named = ", ".join(labels.get(iri, iri) for iri in [*empty][:_MOST_NAMED])
    return (
        f"fail: {len(empty)} classes can have no instance ({named}): {next(iter(empty.values()))}"
    )


def judge_schema(schema_turtle: str, *, seconds: float) -> tuple[str, dict[str, str]]:
    """The verdict on a schema without its classes that can have no instance.

    These are given by IRI, the first of them each with the statements that say so.
    """
    return _judge(schema_turtle, "", seconds, "", explained=_MOST_NAMED)


def _judge(
    schema_turtle: str,
    instances_nt: str,
    seconds: float,
    provenance_nt: str,
    *,
    explained: int,
    passed: Passed | None = None,
) -> tuple[str, dict[str, str]]:
    try:
        theory = read_theory(schema_turtle, instances_nt)
    except InputError as e:
        return f"fail: {e}", {}
    if theory.unknown:
        named = ", ".join(f"<{iri}>" for iri in sorted(theory.unknown)[:_MOST_NAMED])
        return f"fail: instances use what the schema does not declare: {named}", {}
    schema, parts = hash_value(schema_turtle), part_facts(theory)
    parts = {hash_value([schema, said]): facts for said, facts in parts.items()}
    known = passed.load(parts) if passed is not None else {}
    parts = {key: facts for key, facts in parts.items() if key not in known}
    if not parts:
        return "pass", {}
    try:
        with Reasoner(theory, seconds=seconds) as reasoner:
            first, *others = ((theory.axioms, facts) for facts in _group_parts(parts.values()))
            empty = reasoner.find_unsatisfiable(first)
            if others and reasoner.find_inconsistent(others) is not None:
                empty = None
            if empty is None:
                find = partial(explain_contradiction, theory, reasoner)
                return f"fail: inconsistent: {_explain(theory, find, provenance_nt)}", {}
            reasons = dict.fromkeys(empty, "")
            for iri in empty[:explained]:
                reasons[iri] = _explain(theory, partial(explain_class, theory, iri, reasoner))
            if passed is not None and not empty:
                passed.store(dict.fromkeys(parts, b""))
            return "pass", reasons
    except NotJudgedError as e:
        return f"not run: {e}", {}


def _group_parts(parts: Iterable[Sequence[ox.Triple]]) -> Iterator[list[ox.Triple]]:
    """Facts of whole parts, about so many at a time as HermiT needs little memory for."""
    group: list[ox.Triple] = []
    for part in parts:
        if group and len(group) + len(part) > _MOST_FACTS:
            yield group
            group = []
        group += part
    yield group


def _explain(theory: Theory, find: Callable[[], list[Item]], provenance_nt: str = "") -> str:
    """Statements in words, each fact with the place in a text that states it."""
    try:
        return "; ".join(
            state_item(item, theory.labels, lambda fact: _find_place(fact, provenance_nt))
            for item in find()
        )
    except NotJudgedError as e:
        return f"which statements do so was not found: {e}"


def _find_place(fact: ox.Triple, provenance_nt: str) -> str | None:
    """Where a text states a fact, by its reified statement; None where nothing says so."""
    parts = (("subject", fact.subject), ("predicate", fact.predicate), ("object", fact.object))
    wanted = {f"<{n.RDF}{name}> {term} ." for name, term in parts}
    found = Counter[str]()
    places: dict[str, str] = {}
    for line in provenance_nt.split("\n"):  # literals may hold other ends of lines
        statement, _, said = line.partition(" ")
        found[statement] += said in wanted
        if said.startswith(f"<{n.DERIVED_FROM}> "):
            places.setdefault(statement, said.split(" ")[1].strip("<>").rpartition("/")[2])
    return min(((s, places[s]) for s in places if found[s] == len(parts)), default=(None, None))[1]
