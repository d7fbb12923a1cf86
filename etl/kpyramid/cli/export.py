"""`kpyramid export`: a snapshot's graph in other forms."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kpyramid.cli.options import (
    DEFAULT_WAREHOUSE,
    AccessOption,
    EverythingOption,
    QuietOption,
    SnapshotOption,
    WarehouseOption,
    command,
    count_things,
    print_found,
    read_scope,
)

app = typer.Typer(
    name="export",
    no_args_is_help=True,
    help="Write what a snapshot knows in forms that other programs read.",
)


class PromptName(StrEnum):
    """The form of the rows."""

    paper = "paper"
    ask = "ask"


@command(app)
def instructions(
    questions: Annotated[
        Path, typer.Argument(help="Questions with their answers: .jsonl, .csv or .tsv.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for train.jsonl and test.jsonl.")],
    warehouse: WarehouseOption = DEFAULT_WAREHOUSE,
    ref: SnapshotOption = "main",
    seed: Annotated[
        int, typer.Option(min=0, help="Draws answers and the test rows; same seed, same files.")
    ] = 0,
    test_share: Annotated[
        float, typer.Option(min=0, max=0.9, help="Share of the rows in test.jsonl, at most.")
    ] = 0.1,
    prompt: Annotated[
        PromptName,
        typer.Option(
            help="paper: one short instruction, the next entity as output. ask: what `ask "
            "--strategy ksl` sends a model, and its reply in JSON."
        ),
    ] = PromptName.paper,
    access: AccessOption = None,
    everything: EverythingOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write rows to fine-tune a model on, which teach it to walk over the graph.

    Each step of the shortest path from an entity of a question to a right answer is a row
    (instruction, input, output: Alpaca) after Knowledge Solver's Algorithm 2. No question and no
    step into an answer is in both files. Questions without a path are counted with the reason.
    Facts of documents with labels are in the rows with --access or --everything only.

    Example: kpyramid export instructions questions.jsonl --out rows --seed 1
    """
    from kpyramid.cli.console import show_count
    from kpyramid.errors import InputError
    from kpyramid.evaluation.instructions import encode_rows, make_instructions
    from kpyramid.evaluation.questions import read_questions
    from kpyramid.snapshot.snapshot import open_snapshot
    from kpyramid.storage.writing import write_durably

    asked = read_questions(questions)
    snapshot = open_snapshot(ref, warehouse, scope=read_scope(access, everything))
    made = make_instructions(
        show_count(asked, "questions", quiet=quiet),
        snapshot,
        seed=seed,
        test_share=test_share,
        prompt=prompt.value,
    )
    reasons = sorted(made.left_out.items(), key=lambda pair: (-pair[1], pair[0]))
    if not made.train and not made.test:
        listed = "; ".join(f"{number}: {why}" for why, number in reasons)
        raise InputError(
            f"{questions}: none of {len(asked)} questions gives a row ({listed}). Ask about "
            "entities that the graph of this snapshot joins"
        )
    sides = {"train": made.train, "test": made.test}
    for name, walks in sides.items():
        write_durably(out / f"{name}.jsonl", encode_rows(walks))
    rows = {name: sum(len(walk.rows) for walk in walks) for name, walks in sides.items()}
    found = {
        "out": str(out),
        "snapshot": snapshot.id,
        "questions": len(asked),
        "walks": {name: len(walks) for name, walks in sides.items()},
        "rows": rows,
        "unreached": made.unreached,
        "left_out": dict(reasons),
    }
    lines = [
        f"{count_things(rows['train'], 'row')} in {out / 'train.jsonl'}, {rows['test']} in "
        f"{out / 'test.jsonl'}: {count_things(len(made.train) + len(made.test), 'walk')} of "
        f"{count_things(len(asked), 'question')}.",
        *(f"{count_things(number, 'question')} left out: {why}." for why, number in reasons),
    ]
    if made.unreached:
        lines.append(f"{made.unreached} entities of questions have no path of their own.")
    if not made.test:
        lines.append("No test rows: no group of walks that share an answer is small enough.")
    print_found(found, lines)
