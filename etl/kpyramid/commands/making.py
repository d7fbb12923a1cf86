"""`kpyramid questions`: choice questions made from a snapshot's ontology, and files checked."""

from collections import Counter
from pathlib import Path
from typing import Annotated

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

app = typer.Typer(
    name="questions",
    no_args_is_help=True,
    help="Make questions to evaluate a pyramid with, or check a file of your own.",
    epilog="`kpyramid evaluate` reads what `make` writes. Questions made from a snapshot's own "
    "facts measure how well it answers from what it knows; they inherit its mistakes. For what it "
    "misses, write questions yourself, or make them from facts that you trust (see "
    "kpyramid.evaluation.making). Read a sample before you quote a figure.",
)

_CONFIDENCE = 0.8
_SHOWN = 3


@app.command()
def make(
    out: Annotated[Path, typer.Option(help="The file to write, JSON lines.")],
    warehouse: WarehouseOption = DEFAULT_WAREHOUSE,
    ref: Annotated[str, typer.Option(help="The ref or the id of a snapshot.")] = "main",
    count: Annotated[
        int, typer.Option(min=1, help="At most so many; a property's turn after the other's.")
    ] = 500,
    seed: Annotated[
        int, typer.Option(min=0, help="Draws facts, wordings and options; same seed, same file.")
    ] = 0,
    options: Annotated[
        int, typer.Option(min=3, max=26, help="Options of each question, right ones among them.")
    ] = 8,
    confidence: Annotated[
        float, typer.Option(min=0, max=1, help="Facts of less are not asked about.")
    ] = _CONFIDENCE,
    access: AccessOption = None,
    everything: EverythingOption = False,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Make choice questions from the facts of a snapshot's ontology.

    Each has eight options, one to three of them right, in words made from the property's label:
    for its value ("Where was Ada Lovelace born?") or for what has it ("Which people were born in
    London?"). Wrong options are of the right one's class; a number or a date is varied. What any
    fact links with the question, what may be another name of an answer, and what the question or
    its evidence names, is never a wrong option. What no question can be made of is counted with
    the reason. Facts of documents with labels are asked about, and are options, with --access or
    --everything only.

    Example: kpyramid questions make --ref main --out questions.jsonl --count 200 --seed 1
    """

    def act() -> None:
        from kpyramid.errors import InputError
        from kpyramid.evaluation.making import make_questions
        from kpyramid.evaluation.questions import write_questions
        from kpyramid.evaluation.snapshot_facts import list_instance_facts
        from kpyramid.query.pyramid.snapshot import open_snapshot

        snapshot = open_snapshot(ref, warehouse, scope=read_scope(access, everything))
        made = make_questions(
            list_instance_facts(snapshot),
            count=count,
            seed=seed,
            options=options,
            least=confidence,
        )
        if not made.questions:
            reasons = "; ".join(f"{number} {why}" for why, number in made.left_out.items())
            raise InputError(
                f"snapshot {snapshot.id}: its ontology gives no question"
                f"{f' ({reasons})' if reasons else ': it has no facts'}; lower --confidence or "
                "--options, or build with an ontology whose properties the corpus states"
            )
        text = write_questions(made.questions)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, "utf-8")
        if as_json:
            print_json(
                {
                    "file": str(out),
                    "snapshot": snapshot.id,
                    "questions": len(made.questions),
                    "by_property": dict(Counter(q.group for q in made.questions).most_common()),
                    "left_out": dict(made.left_out),
                }
            )
            return
        for question in made.questions[:_SHOWN]:
            typer.echo(f"{question.text}\n    right: {'; '.join(question.values)}")
        several = sum(len(q.answers) > 1 for q in made.questions)
        typer.echo(
            f"{len(made.questions)} questions in {out}, {several} with several right options."
        )
        for why, number in sorted(made.left_out.items(), key=lambda pair: -pair[1]):
            typer.echo(f"{number} left out: {why}.")
        where = "" if warehouse == DEFAULT_WAREHOUSE else f" --warehouse {warehouse}"
        typer.echo(f"Then run `kpyramid evaluate {out} --ref {ref}{where}`.")

    run_command(act, verbose=verbose, as_json=as_json)


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="Questions as .jsonl, .csv or .tsv.")],
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Say what a file of questions holds, or everything that is wrong with it, line by line.

    Fields go by any of their usual names: question; answer with aliases, or answers; options with
    gold as texts, letters or numbers; gold_doc_ids, gold_passages or gold_titles.
    """

    def act() -> None:
        from kpyramid.evaluation.questions import read_questions

        questions = read_questions(file)
        kinds = Counter(question.kind for question in questions)
        placed = sum(bool(q.gold_documents or q.gold_titles) for q in questions)
        if as_json:
            print_json(
                {"questions": len(questions), "kinds": dict(kinds), "with_gold_documents": placed}
            )
            return
        listed = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
        typer.echo(f"{len(questions)} questions: {listed}; {placed} name gold documents.")

    run_command(act, verbose=verbose, as_json=as_json)
