"""`kpyramid ontology show`: an individual with its values, each with the sentence it came from."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from kpyramid.commands.options import (
    DEFAULT_WAREHOUSE,
    AccessOption,
    EverythingOption,
    JsonOption,
    VerboseOption,
    WarehouseOption,
    print_json,
    read_scope,
    run_command,
)
from kpyramid.errors import InputError

if TYPE_CHECKING:
    from kpyramid.query.pyramid.individuals import (
        Individual,
        Individuals,
        Members,
        Sentence,
        Statement,
    )

_SENTENCES = 3
"""Sentences shown of a statement; --json has all."""
_FIRST = 20
_LONGEST = 400

NameArgument = Annotated[
    str,
    typer.Argument(
        help="An individual by name, id or IRI; or a class or property, for a list of what it has."
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the command to `kpyramid ontology`."""
    app.command("show")(show)


def show(
    name: NameArgument,
    warehouse: WarehouseOption = DEFAULT_WAREHOUSE,
    ref: Annotated[str, typer.Option(help="The ref or the id of a snapshot.")] = "main",
    access: AccessOption = None,
    everything: EverythingOption = False,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Show what the ontology says of an individual, and the sentences that say so.

    A name that several individuals bear is answered with all of them; ask again with an id. What
    only documents with labels say is shown with --access or --everything.
    """

    def act() -> None:
        from kpyramid.query import open_snapshot
        from kpyramid.query.pyramid.individuals import Individuals

        individuals = Individuals(
            open_snapshot(ref, warehouse, scope=read_scope(access, everything))
        )
        found, members = _find(name, individuals)
        if as_json:
            shown = [asdict(individual) for individual in found]
            listed = asdict(members) if members else None
            print_json({"individuals": shown, "members": listed})
            return
        if members is not None:
            typer.echo(_list(members))
        if len(found) == 1:
            typer.echo(_describe(found[0]))
        for individual in found if len(found) > 1 else ():
            kinds = ", ".join(statement.label for statement in individual.classes) or "no class"
            count = len(individual.values) + len(individual.value_of)
            typer.echo(f"{individual.entity_id}  {individual.name}: {kinds}; {count} value(s)")

    run_command(act, verbose=verbose, as_json=as_json)


def _find(name: str, individuals: "Individuals") -> tuple[list["Individual"], "Members | None"]:
    members = individuals.list_members(name, _FIRST)
    try:
        ids = individuals.find(name)
    except InputError:
        if members is None:
            raise
        ids = []
    return [individuals.describe(key) for key in ids], members


def _describe(individual: "Individual") -> str:
    lines = [f"{individual.name}  {individual.iri}"]
    others = [form for form in individual.surface_forms if form != individual.name]
    if others:
        lines.append(f"  also written {', '.join(others)}")
    for statement in (*individual.classes, *individual.values, *individual.value_of):
        lines += _tell(statement)
    return "\n".join(lines)


def _tell(statement: "Statement") -> list[str]:
    if statement.value is None:
        said = f"class: {statement.label}"
    elif statement.of is None:
        said = f"{statement.label}: {statement.value}"
    else:
        verb = "" if statement.label.startswith("has ") else "has "
        said = f"{statement.of} {verb}{statement.label}: {statement.value}"
    by = "" if statement.producer == "rules" else f", found by {statement.producer}"
    lines = [f"  {said}  ({statement.confidence:.2f}{by})"]
    for sentence in statement.sentences[:_SENTENCES]:
        lines.append(f"    {sentence.source}, characters {sentence.start}-{sentence.end}:")
        lines.append(f"      {_mark(sentence)}")
    left = len(statement.sentences) - _SENTENCES
    if left > 0:
        lines.append(f"    and {left} more")
    return lines


def _mark(sentence: "Sentence") -> str:
    """The sentence on one line, with brackets around the words that name the two ends."""
    text, shown, at = sentence.text, "", 0
    for start, end in sentence.marked:
        if start < at:  # one name within the other
            continue
        shown += f"{text[at:start]}[{text[start:end]}]"
        at = end
    line = " ".join((shown + text[at:]).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _list(members: "Members") -> str:
    kind = "individual" if members.kind == "class" else "value"
    lines = [f"{members.kind} {members.label}  {members.iri}: {members.count} {kind}(s)"]
    lines += [f"  {text}" for text in members.first]
    if members.count > len(members.first):
        lines.append(f"  and {members.count - len(members.first)} more")
    return "\n".join(lines)
