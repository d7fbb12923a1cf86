"""`kpyramid find`: typed questions from the command line."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from kpyramid.cli.options import (
    DEFAULT_WAREHOUSE,
    SnapshotOption,
    WarehouseOption,
    count_things,
    print_found,
)
from kpyramid.errors import InputError

if TYPE_CHECKING:
    from kpyramid.snapshot.evidence import Evidence
    from kpyramid.snapshot.typed import Comparison, Condition, Member, Members, Paths
    from kpyramid.snapshot.view import Scope

_CONDITION = re.compile(r"\s*(.+?)\s*(>=|<=|!=|=)\s*(.*?)\s*", re.DOTALL)


def find(
    class_name: Annotated[
        str | None, typer.Argument(metavar="CLASS", help="A class; `thing` is everything.")
    ] = None,
    warehouse: WarehouseOption = DEFAULT_WAREHOUSE,
    ref: SnapshotOption = "main",
    where: Annotated[
        list[str] | None,
        typer.Option(
            help="A condition: director=NAME, director!=NAME, height>=2 km, height<=3 km; again "
            "for each. `director=` is met where none is stated, `director!=` where one is; "
            "`^director` reads from the other end."
        ),
    ] = None,
    order_by: Annotated[
        str | None,
        typer.Option(help="A property or count(property); - before it for descending."),
    ] = None,
    limit: Annotated[int, typer.Option(help="How many members are shown.")] = 20,
    compare: Annotated[
        tuple[str, str, str] | None,
        typer.Option(metavar="A B PROPERTY", help="Compare two things instead."),
    ] = None,
    paths: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="A B", help="List the shortest paths of facts between two instead."),
    ] = None,
    hops: Annotated[int, typer.Option(help="Facts on a path at most, 1 to 4.")] = 3,
    *,
    scope: "Scope",
) -> None:
    """Find what meets conditions: by class, property and value, with the sentences that say so.

    Classes and properties are those of the ontology, by label or IRI, and what the texts call so
    ("is a" facts, relations). A place stands for all within it, and a number may have a unit. A
    count is a lower bound: texts do not say everything.

    Example: kpyramid find person --where "birth place=London" --order-by "birth date"
    """
    from kpyramid.snapshot.snapshot import open_snapshot

    if [class_name, compare, paths].count(None) != 2:
        raise InputError("name a CLASS, or --compare A B PROPERTY, or --paths A B")
    snapshot = open_snapshot(ref, warehouse, scope=scope)
    if compare:
        compared = snapshot.compare(*compare)
        print_found(compared.to_dict(), _word_comparison(compared))
    elif paths:
        led = snapshot.paths(*paths, hops)
        print_found(led.to_dict(), _word_paths(led))
    else:
        conditions = [*map(_read_condition, where or ())]
        found = snapshot.find(class_name or "", conditions, order_by, limit)
        print_found(found.to_dict(), _word_members(found))


def _read_condition(text: str) -> "tuple[str, Condition]":
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise InputError(f"--where {text!r}: write PROPERTY=VALUE, or with !=, >= or <=")
    name, sign, value = match.groups()
    if sign in (">=", "<="):
        return name, (value, None) if sign == ">=" else (None, value)
    return name, {"not": value or None} if sign == "!=" else value or None


def _word_members(found: "Members") -> Iterator[str]:
    yield f"{found.count} {'member' if found.count == 1 else 'members'}"
    for member in found.members:
        yield from _word_member(member)


def _word_member(member: "Member") -> Iterator[str]:
    values = (f"{name}: {'; '.join(said) or 'not stated'}" for name, said in member.values.items())
    yield "  ".join((member.name, *values))
    yield from _word_places(member.evidence)


def _word_comparison(compared: "Comparison") -> Iterator[str]:
    yield f"{compared.first.name}, to {compared.second.name}: {compared.order}"
    for member in (compared.first, compared.second):
        yield from _word_member(member)


def _word_paths(led: "Paths") -> Iterator[str]:
    yield count_things(len(led.paths), "path")
    for path in led.paths:
        for hop in path:
            yield f"{hop.head} {hop.relation} {hop.tail}"
            yield from _word_places(hop.evidence)
        yield ""


def _word_places(places: "Iterable[Evidence]") -> Iterator[str]:
    from kpyramid.cli.console import shorten

    for place in [*places][:2]:
        yield f"    {shorten(place.text)} ({place.source}, {place.start} to {place.end})"
