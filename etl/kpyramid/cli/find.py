"""`kpyramid find`: typed questions from the command line."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from kpyramid.cli.console import shorten
from kpyramid.cli.render import Result, count_things
from kpyramid.errors import InputError

if TYPE_CHECKING:
    from kpyramid.snapshot.evidence import Evidence
    from kpyramid.snapshot.snapshot import Snapshot
    from kpyramid.snapshot.typed import Comparison, Condition, Member, Members, Paths

_CONDITION = re.compile(r"\s*(.+?)\s*(>=|<=|!=|=)\s*(.*?)\s*", re.DOTALL)


def find(
    class_name: str | None = None,
    /,
    *,
    opened: "Snapshot",
    where: list[str] | None = None,
    order_by: str | None = None,
    limit: int = 20,
    compare: Annotated[tuple[str, str, str] | None, typer.Option(metavar="A B PROPERTY")] = None,
    paths: Annotated[tuple[str, str] | None, typer.Option(metavar="A B")] = None,
    hops: int = 3,
) -> Result:
    """Find what meets conditions: by class, property and value, with the sentences that say so.

    Classes and properties are those of the ontology, by label or IRI, and what the texts call so
    ("is a" facts, relations). A place stands for all within it, and a number may have a unit. A
    count is a lower bound: texts do not say everything.

    Example: kpyramid find person --where "birth place=London" --order-by "birth date"

    `class_name`: a class; `thing` is everything.
    `where`: a condition: director=NAME, director!=NAME, height>=2 km, height<=3 km; again for each.
    `director=` is met where none is stated, `director!=` where one is; `^director` reads from the
    other end.
    `order_by`: a property or count(property); - before it for descending.
    `limit`: how many members are shown.
    `compare`: compare two things instead.
    `paths`: list the shortest paths of facts between two instead.
    `hops`: facts on a path at most, 1 to 4.
    """
    if [class_name, compare, paths].count(None) != 2:
        raise InputError("name a CLASS, or --compare A B PROPERTY, or --paths A B")
    if compare:
        compared = opened.compare(*compare)
        return Result(values=compared.to_dict(), words=_word_comparison(compared))
    if paths:
        led = opened.paths(*paths, hops)
        return Result(values=led.to_dict(), words=_word_paths(led))
    members = opened.find(class_name or "", [*map(_read_condition, where or ())], order_by, limit)
    return Result(values=members.to_dict(), words=_word_members(members))


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
    for place in [*places][:2]:
        yield f"    {shorten(place.text)} ({place.source}, {place.start} to {place.end})"
