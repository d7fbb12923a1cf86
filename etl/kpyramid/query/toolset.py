"""What may be asked of a snapshot, as tools: for a model, an agent, or a service to call."""

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_json

from kpyramid.errors import InputError
from kpyramid.llm.task import list_problems
from kpyramid.query.retrieval import retrieve
from kpyramid.snapshot.adjacency import MOST_HOPS
from kpyramid.snapshot.individuals import describe_entity, find_entities, summarise_snapshot
from kpyramid.snapshot.snapshot import Snapshot

MOST_FACTS, MOST_PASSAGES, MOST_ROWS = 100, 100, 1000
_MOST_CONDITIONS = 20
_MOST_NAMED = 20
"""Individuals of one name that are described."""


class Tool(BaseModel):
    """One question with its arguments; the docstring is what a model is told of it."""

    model_config = ConfigDict(extra="forbid")

    def run(self, snapshot: Snapshot) -> Any:
        """What the snapshot says, as its methods return it; `to_plain` makes JSON of it."""
        raise NotImplementedError


class Retrieve(Tool):
    """The facts and passages that are relevant to a question in words, and how they connect."""

    question: str
    facts: int = Field(10, ge=0, le=MOST_FACTS, description="facts at most")
    passages: int = Field(8, ge=0, le=MOST_PASSAGES, description="passages at most")
    candidates: list[str] = Field([], description="options of a choice question")

    def run(self, snapshot: Snapshot) -> Any:
        """A `Retrieval`."""
        return retrieve(snapshot=snapshot, **dict(self))


class Find(Tool):
    """The members of a class that meet all conditions, and how many there are at least."""

    class_name: str = Field(description='a label or an IRI; "thing" is everything')
    where: list[list[Any]] | dict[str, Any] = Field(
        [],
        description="pairs [property, condition]; ^property reads from the other end. A condition "
        "is a name (a place stands for all within it), a number, a date, a range [from, to] with "
        'null for an open end, {"not": value}, or null for what nothing is stated of',
    )
    order_by: str | None = Field(
        None, description="a property or count(property), - before it for descending"
    )
    limit: int = Field(100, ge=0, le=MOST_ROWS, description="how many members are shown")
    at: str | None = Field(
        None, description="a year, month or day: without what is known to have held at others alone"
    )

    def run(self, snapshot: Snapshot) -> Any:
        """`Members`."""
        if len(self.where) > _MOST_CONDITIONS:
            raise InputError(f"where: {len(self.where)} conditions, at most {_MOST_CONDITIONS}")
        return snapshot.find(**dict(self))


class Compare(Tool):
    """Two things by a property or count(property): less, greater, equal or different."""

    first: str = Field(description="a name")
    second: str = Field(description="a name")
    name: str = Field(description="the property, a label or an IRI")

    def run(self, snapshot: Snapshot) -> Any:
        """A `Comparison`."""
        return snapshot.compare(**dict(self))


class Paths(Tool):
    """The shortest paths of facts between two things."""

    first: str = Field(description="a name")
    second: str = Field(description="a name")
    hops: int = Field(3, ge=1, le=MOST_HOPS, description="facts on a path at most")

    def run(self, snapshot: Snapshot) -> Any:
        """`Paths` of the snapshot."""
        return snapshot.paths(**dict(self))


class Entity(Tool):
    """What is said of a thing: its classes and values in the ontology, and its facts."""

    name: str = Field(description="a name, an id or an IRI")
    facts: int = Field(50, ge=0, le=MOST_ROWS, description="facts of each at most")

    def run(self, snapshot: Snapshot) -> Any:
        """A list of `Individual`, each with its facts and their sentences."""
        entities = find_entities(self.name, snapshot)[:_MOST_NAMED]
        return [describe_entity(key, snapshot, self.facts) for key in entities]


class Overview(Tool):
    """What there is: classes and properties of the ontology with counts, and the main things."""

    things: int = Field(20, ge=0, le=MOST_ROWS, description="things with most facts")

    def run(self, snapshot: Snapshot) -> Any:
        """An `Overview` of the snapshot."""
        return summarise_snapshot(snapshot, self.things)


class Evidence(Tool):
    """The sentences that support a fact, a value or a passage, with their places."""

    id: str = Field(description="the id of a fact, a value (instance) or a passage (chunk)")

    def run(self, snapshot: Snapshot) -> Any:
        """A list of `Evidence`."""
        places = snapshot.evidence(self.id)
        if not places:
            raise InputError(f"nothing has the id {self.id!r}")
        return places


class Sparql(Tool):
    """The rows of a SELECT or ASK query over the ontology, and in GRAPH kp:graph over all facts."""

    query: str
    limit: int = Field(100, ge=1, le=MOST_ROWS, description="rows at most")

    def run(self, snapshot: Snapshot) -> Any:
        """A list of rows by variable."""
        return snapshot.sparql(**dict(self))


TOOLS: Mapping[str, type[Tool]] = {
    tool.__name__.lower(): tool
    for tool in (Overview, Retrieve, Find, Compare, Paths, Entity, Evidence, Sparql)
}
"""All tools by name."""
TYPED = ("find", "compare", "paths")
"""Those that only structure can answer."""


def tools(names: Collection[str] = TYPED) -> list[dict[str, Any]]:
    """Tools as functions that a model may call, in the format of OpenAI's API."""
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": TOOLS[name].__doc__,
                "parameters": describe_arguments(TOOLS[name]),
            },
        }
        for name in names
    ]


def describe_arguments(tool: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments."""
    schema = tool.model_json_schema()
    schema = {name: schema[name] for name in ("type", "properties", "required") if name in schema}
    for parameter in schema["properties"].values():
        parameter.pop("title", None)
    return {"required": [], **schema, "additionalProperties": False}


def read_call(
    name: str,
    arguments: str | bytes | Mapping[str, Any],
    known: Mapping[str, type[Tool]] = TOOLS,
) -> Tool:
    """The tool that a call names, with its arguments: an object, or the JSON text of one.

    Raises:
        InputError: there is no such tool, or it does not take these arguments.
    """
    if name not in known:
        raise InputError(f"there is no tool {name!r}; there are {', '.join(known)}")
    tool = known[name]
    try:
        if isinstance(arguments, str | bytes):
            return tool.model_validate_json(arguments)
        return tool.model_validate(arguments)
    except ValidationError as e:
        problems = "; ".join(list_problems(e, "arguments")[:5])
        taken = ", ".join(tool.model_fields)
        raise InputError(f"{name} takes an object with {taken}: {problems}") from None


def call_tool(name: str, arguments: str | Mapping[str, Any], snapshot: Snapshot) -> Any:
    """The result of a call; its arguments are an object or the JSON text of one.

    A model gets `to_plain` of the result.

    Raises:
        InputError: there is no such tool, it does not take these arguments, or they are refused.
    """
    return read_call(name, arguments).run(snapshot)


def write_plain(result: Any) -> str:
    """A tool's result as the JSON of `keys.to_plain`, without a copy of plain values."""
    from kpyramid.snapshot.typed import Members  # its count is no plain number

    return to_json(result.to_dict() if isinstance(result, Members) else result).decode()
