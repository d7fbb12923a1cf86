"""`kpyramid find`: typed questions from the command line."""

import re
from typing import TYPE_CHECKING, Annotated

import typer

from kpyramid.cli.render import Result
from kpyramid.errors import InputError

if TYPE_CHECKING:
    from kpyramid.snapshot.snapshot import Snapshot
    from kpyramid.snapshot.typed import Condition

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
    at: str | None = None,
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
    `at`: a year, month or day; what is known to have held at other times alone is left out.
    """
    if [class_name, compare, paths].count(None) != 2:
        raise InputError("name a CLASS, or --compare A B PROPERTY, or --paths A B")
    if compare:
        return Result(values=opened.compare(*compare).to_dict())
    if paths:
        return Result(values=opened.paths(*paths, hops).to_dict())
    conditions = [*map(_read_condition, where or ())]
    members = opened.find(class_name or "", conditions, order_by, limit, at)
    return Result(values=members.to_dict())


def _read_condition(text: str) -> "tuple[str, Condition]":
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise InputError(f"--where {text!r}: write PROPERTY=VALUE, or with !=, >= or <=")
    name, sign, value = match.groups()
    if sign in (">=", "<="):
        return name, (value, None) if sign == ">=" else (None, value)
    return name, {"not": value or None} if sign == "!=" else value or None
