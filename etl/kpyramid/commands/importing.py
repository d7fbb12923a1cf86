"""`kpyramid ontology import`: an ontology from outside, made ready for a build and for review."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kpyramid.commands.options import JsonOption, VerboseOption, print_json, run_command, say
from kpyramid.errors import InputError

if TYPE_CHECKING:
    from kpyramid.ontology.foreign.importing import Change

_EXAMPLES = 3
_SUBJECT_CHARACTERS = 300


def register(app: typer.Typer) -> None:
    """Adds the command to `kpyramid ontology`."""
    app.command("import")(import_)


def import_(
    file: Annotated[
        Path,
        typer.Argument(
            help="Turtle, N-Triples, OWL in RDF/XML, or Text2KGBench's JSON; packed by gzip or not."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(help="Turtle file to write, not there yet.", show_default="NAME.ttl, here"),
    ] = None,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Make an ontology from elsewhere one that a build can use, and say what was changed for it.

    A build wants a label for each class and property, one domain and one range for each property,
    and datatypes whose values can be checked. What is missing is added, what is unclear is
    settled, and every change is listed (all of them with --json): read the list, look at the
    Turtle, and name it under induce.ontology in your settings. What contradicts itself is
    refused, with the statements that do.

    Nothing is fetched: owl:imports are listed, and classes known only from there are declared as
    stubs. The file is parsed in a process of its own, within limits of time and memory.

    Lay beside the Turtle what helps a build, under the same name: NAME.examples.jsonl (sentences
    with their values), NAME.shapes.ttl (SHACL), NAME.questions.toml (competency questions).
    """

    def act() -> None:
        from kpyramid.ontology.foreign.files import read_outside
        from kpyramid.ontology.foreign.importing import import_ontology
        from kpyramid.ontology.judging.consistency import judge_consistency
        from kpyramid.ontology.schema import write_schema
        from kpyramid.settings import PublishSettings

        name = file.name.removesuffix(".gz").rpartition(".")[0] or file.name
        target = choose_target(output, name)
        read = read_outside(file)
        imported = import_ontology(read, name=name, source=str(file))
        turtle = write_schema(imported.schema)
        verdict = judge_consistency(turtle, "", seconds=PublishSettings().reasoner_seconds)
        if verdict.startswith("fail"):
            raise InputError(
                f"{file}: {verdict.removeprefix('fail: ')}. Nothing was written, as no build "
                "could publish it; remove one of these statements"
            )
        write_new(target, turtle)
        schema = imported.schema
        bare = sum(not prop.alt_labels for prop in schema.properties)
        if as_json:
            print_json(
                {
                    "output": str(target),
                    "form": imported.form,
                    "classes": len(schema.classes),
                    "properties": len(schema.properties),
                    "properties_without_phrase": bare,
                    "axioms": len(schema.axioms),
                    "individuals": imported.individuals,
                    "consistent": verdict,
                    "changes": [asdict(change) for change in imported.changes],
                }
            )
            return
        say(
            f"{target}: {len(schema.classes)} classes, {len(schema.properties)} properties, "
            f"{len(schema.axioms)} further statements, from {imported.form}"
        )
        if imported.individuals:
            say(
                f"{imported.individuals} of its individuals stay among these statements; "
                "a build finds its own in the text"
            )
        say(f"consistent: {verdict}")
        _show_changes(imported.changes)
        if bare:
            say(
                f"{bare} of {len(schema.properties)} properties have no phrase (skos:altLabel): by "
                "rules they are found by their label only; add phrases, or sentences with their "
                f"values in {target.stem}.examples.jsonl"
            )
        say(f"Review {target}, then set induce.ontology to its path.")

    run_command(act, verbose=verbose, as_json=as_json)


def _show_changes(changes: Sequence["Change"]) -> None:
    from kpyramid.ontology.foreign.importing import group_changes

    for kind, group in group_changes(changes).items():
        say(f"{kind}: {len(group)}")
        for change in group[:_EXAMPLES]:
            say(f"  {_clean(change.subject)} {_clean(change.detail)}")
        if len(group) > _EXAMPLES:
            say(f"  and {len(group) - _EXAMPLES} more; --json lists all")


def _clean(text: str) -> str:
    """In one line; what is not printable could steer the terminal."""
    line = "".join(c if c.isprintable() else " " for c in text)
    return line if len(line) <= _SUBJECT_CHARACTERS else f"{line[:_SUBJECT_CHARACTERS]}…"


def choose_target(output: Path | None, name: str) -> Path:
    """The Turtle file to write: a file that is there may have been reviewed, and is kept.

    Raises:
        InputError: it is there already, or its name cannot be an ontology's.
    """
    # `NAME.shapes.ttl` is no ontology but a companion, so a name has no dot.
    target = output or Path(name.replace(".", "-") + ".ttl")
    if target.suffix != ".ttl" or "." in target.stem:
        raise InputError(f"{target}: name the output NAME.ttl, without another dot")
    if target.exists():
        raise InputError(
            f"{target} is there already, and may have been reviewed; remove it, or choose another "
            "--output"
        )
    return target


def write_new(target: Path, text: str) -> None:
    """Writes a file that is not there yet, with its folder.

    Raises:
        InputError: it cannot be written; then it is not there.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8", newline="\n") as file:
            try:
                file.write(text)
                file.flush()
            except OSError:
                target.unlink()
                raise
    except OSError as e:
        raise InputError(f"{target} cannot be written: {e}; choose another --output") from e
