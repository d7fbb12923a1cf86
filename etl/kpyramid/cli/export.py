"""`kpyramid export` and `import`: a snapshot in other forms, and back; rows to train on."""

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kpyramid.cli.options import (
    DEFAULT_WAREHOUSE,
    QuietOption,
    SnapshotOption,
    WarehouseOption,
    command,
    count_things,
    print_found,
)
from kpyramid.cli.refs import SNAPSHOT_HELP
from kpyramid.snapshot import Form

if TYPE_CHECKING:
    from kpyramid.snapshot.view import Scope
    from kpyramid.storage.layout import Warehouse

app = typer.Typer()


@command(app)
def export(
    snapshot: Annotated[
        str, typer.Argument(metavar="SNAPSHOT", help=f"{SNAPSHOT_HELP} Or a folder: ./copy.")
    ],
    path: Annotated[
        str,
        typer.Argument(
            help="File or folder to write, here or at s3://bucket/prefix; it must not be there."
        ),
    ],
    to: Annotated[
        Form,
        typer.Option(
            "--to",
            help="folder, tar (.tar.zst): all of the snapshot, which `kpyramid import` takes. "
            "turtle, nquads: graph and ontology in RDF. graphml. neo4j: CSV files of neo4j-admin. "
            "jsonl. duckdb: one file of all tables. lance: the vectors.",
        ),
    ],
    warehouse: WarehouseOption = DEFAULT_WAREHOUSE,
    *,
    scope: "Scope",
    quiet: QuietOption = False,
) -> None:
    """Write a snapshot in a form that another program reads; it appears whole or not at all.

    At an address it is made here first, then sent; of a folder the manifest goes last.

    Title, source, licence, attribution and labels of each document go along, and facts lead to
    their places. What only documents with labels say is left out without --access or
    --everything; folder and tar are the whole snapshot, and need --everything if any has labels.

    Examples: kpyramid export main pyramid.tar.zst --to tar; kpyramid export main
    s3://served/news.ttl --to turtle
    """
    from kpyramid.cli.console import show_steps
    from kpyramid.snapshot import export as forms
    from kpyramid.snapshot.snapshot import hold_snapshot, is_path, open_snapshot
    from kpyramid.storage.layout import open_warehouse
    from kpyramid.storage.leases import explain_loss

    place = None if is_path(snapshot) else open_warehouse(warehouse)
    is_held = place is not None and os.access(place.root, os.W_OK)
    with ExitStack() as stack:
        if is_held:
            opened = stack.enter_context(hold_snapshot(snapshot, warehouse, scope=scope))
        else:
            opened = open_snapshot(snapshot, warehouse, scope=scope)
            if place is not None:  # one that may only be read takes no lease
                stack.enter_context(explain_loss(place, opened.id))
        tell = stack.enter_context(show_steps(quiet=quiet))
        made = forms.export(opened, to, path, tell, warehouse=place)
    found = {
        "snapshot": opened.id,
        "to": to,
        "path": path,
        "bytes": made.bytes,
        "files": made.files,
        "left_out": made.left_out,
    }
    said = [f"Snapshot {opened.id}: {made.bytes:,} bytes in {path} ({to})."]
    if seen := opened.describe_scope():
        said.append(f"{seen}: the others are for readers with labels; --everything exports all.")
    if made.left_out:
        said.append(f"Left out, as they are about all documents: {', '.join(made.left_out)}.")
    print_found(found, said)


@command(app, name="import")
def import_(
    path: Annotated[
        str,
        typer.Argument(
            help="A snapshot's folder, or its tarball (--to tar), here or at s3://bucket/prefix."
        ),
    ],
    place: "Warehouse",
    quiet: QuietOption = False,
) -> None:
    """Take a snapshot from elsewhere into the warehouse, after every check of `kpyramid verify`.

    It keeps its id. What is altered, incomplete, or more than a snapshot is refused, and nothing
    is written. No ref moves: `kpyramid promote` does that. `gc` removes what no ref is at.

    Example: kpyramid import pyramid.tar.zst && kpyramid promote main 1f3a0c9b7d2e4a56
    """
    from kpyramid.cli.console import show_steps
    from kpyramid.storage.archive import import_snapshot

    with show_steps(quiet=quiet) as tell:
        identifier, is_new = import_snapshot(place, path, tell)
    print_found(
        {"snapshot": identifier, "imported": is_new},
        [
            f"Snapshot {identifier} is {'' if is_new else 'already '}in {place.locate()}, whole.",
            f"It was made as its id says; compare the id with the sender's. To serve it: kpyramid "
            f"promote main {identifier}",
        ],
    )


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
        Literal["paper", "ask"],
        typer.Option(
            help="paper: one short instruction, the next entity as output. ask: what `ask "
            "--strategy ksl` sends a model, and its reply in JSON."
        ),
    ] = "paper",
    *,
    scope: "Scope",
    quiet: QuietOption = False,
) -> None:
    """Write rows to fine-tune a model on, which teach it to walk over the graph.

    Each step of the shortest path from an entity of a question to a right answer is a row
    (instruction, input, output: Alpaca) after Knowledge Solver's Algorithm 2. No question and no
    step into an answer is in both files. Questions without a path are counted with the reason.
    Facts of documents with labels are in the rows with --access or --everything only.

    Example: kpyramid instructions questions.jsonl --out rows --seed 1
    """
    from kpyramid.cli.console import show_count
    from kpyramid.errors import InputError
    from kpyramid.evaluation.instructions import encode_rows, make_instructions
    from kpyramid.evaluation.questions import read_questions
    from kpyramid.snapshot.snapshot import open_snapshot
    from kpyramid.storage.writing import write_durably

    asked = read_questions(questions)
    snapshot = open_snapshot(ref, warehouse, scope=scope)
    made = make_instructions(
        show_count(asked, "questions", quiet=quiet),
        snapshot,
        seed=seed,
        test_share=test_share,
        prompt=prompt,
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
