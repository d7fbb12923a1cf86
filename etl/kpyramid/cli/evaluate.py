"""`kpyramid evaluate` and `kpyramid questions`: strategies compared, questions made."""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from enum import StrEnum
from functools import partial
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
    say,
)
from kpyramid.errors import SettingsError

if TYPE_CHECKING:
    from kpyramid.evaluation.report import Sheet
    from kpyramid.evaluation.results import Results
    from kpyramid.settings import Settings

_DEFAULT = ("naive", "kaping", "polyrag")
ReaderName = StrEnum("ReaderName", "rules llm")
"""An enumeration, since typer takes no list of a `Literal`."""


def evaluate(
    questions: Annotated[
        Path,
        typer.Argument(help="Questions with their answers: .jsonl, .csv or .tsv.", metavar="FILE"),
    ],
    warehouse: WarehouseOption = DEFAULT_WAREHOUSE,
    ref: SnapshotOption = "main",
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            help="What to compare, with its options, such as polyrag or "
            "polyrag:mode=paper,triples=5,graph=false; again for each. By default "
            f"{', '.join(_DEFAULT)}."
        ),
    ] = None,
    strategies: Annotated[
        Literal["all"] | None, typer.Option(help="All strategies side by side.")
    ] = None,
    reader: Annotated[
        list[ReaderName] | None,
        typer.Option(help="Who decides and words answers; again for both.  [default: rules]"),
    ] = None,
    tables: Annotated[
        bool,
        typer.Option(
            "--tables",
            help="Compare what Tables II and III and Figure 6 of PolyRAG do, in each of its modes, "
            "and say what completion, condensation and each layer add.",
        ),
    ] = False,
    baseline: Annotated[
        str | None,
        typer.Option(help="The arm that the others are compared with; by default the first."),
    ] = None,
    judge: Annotated[
        bool, typer.Option("--judge", help="Have the model of [llm] grade the answers as well.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option(
            help="Folder for answers, figures and comparisons as Parquet, and a page; here or at "
            "s3://bucket/prefix."
        ),
    ] = None,
    *,
    loaded: "Settings",
    quiet: QuietOption = False,
) -> None:
    """Ask a pyramid questions whose answers are known, and compare strategies on them.

    Which metrics are used follows from the kind of question. Every figure has a 95 % interval,
    and every arm is compared with a baseline question by question. With rules the same questions
    and the same snapshot give the same files, except what says how long it took (expenses.parquet
    and the page). A strategy that fails on a question is counted and the run goes on; when a model
    cannot be asked any more, the run ends, and what was paid for is kept in the cache.

    Example: kpyramid evaluate questions.jsonl --strategy naive --strategy polyrag --out compared
    """
    from kpyramid.cli.console import open_bars
    from kpyramid.evaluation.harness import (
        answer_all,
        open_measures,
        parse_arm,
    )
    from kpyramid.evaluation.questions import read_questions
    from kpyramid.evaluation.report import Reader, lay_out, plan_grid
    from kpyramid.evaluation.results import Results, choose_baseline
    from kpyramid.query import STRATEGIES, Backends, open_snapshot
    from kpyramid.storage.layout import is_address, open_warehouse

    if out is not None and is_address(out):
        from kpyramid.storage.copies import is_there

        is_there(out)  # a bucket that is none is found before the model is paid
    asked = read_questions(questions)
    if sum(map(bool, (tables, strategy, strategies))) > 1:
        raise SettingsError("give one of --strategy, --strategies and --tables")
    names = list(reader or [ReaderName.rules])
    every = [name for name in STRATEGIES if name != "tools" or "llm" in names]
    chosen = every if strategies else strategy or _DEFAULT
    books = Path(out) if out and not is_address(out) else None
    with ExitStack() as held:
        asker, read_cost = None, None
        if judge or "llm" in names:
            from kpyramid.cli.answers import open_asker

            place, who = open_warehouse(warehouse), "--reader llm or --judge asks"
            asker, folder = held.enter_context(open_asker(place, loaded, who, books=books))
            read_cost = _Spending(folder).read_cost
        model = loaded.llm.model or loaded.llm.provider
        readers = [
            Reader()
            if name == "rules"
            else Reader(model, Backends("llm", "llm", "llm", "llm", asker, logprobs=True))
            for name in dict.fromkeys(names)
        ]
        arms = tuple(
            plan_grid(readers)
            if tables
            else (parse_arm(text, r.name, r.backends) for r in readers for text in chosen)
        )
        choose_baseline(arms, baseline)
        snapshot = open_snapshot(ref, warehouse, model=loaded.embed)
        with open_bars(quiet=quiet) as bars:
            task = bars.add_task("answers", total=len(asked) * len(arms))
            answers = answer_all(
                asked,
                snapshot,
                arms,
                metrics=open_measures(),
                judge=asker if judge else None,
                read_cost=read_cost or (lambda: 0.0),
                advance=partial(bars.advance, task),
            )
    results = Results(answers, snapshot.id, baseline=baseline)
    sheets = lay_out(results, readers) if tables else ()
    if out is not None:
        _write(results, sheets, out)
    tabled = {"tables": [_describe_sheet(sheet) for sheet in sheets]} if sheets else {}

    def print_compared() -> None:
        from kpyramid.cli.figures import print_figures

        print_figures(results, sheets)
        if out is not None:
            say(f"Page: {out.rstrip('/')}/evaluation.html; tables beside it")

    print_found({**results.to_dict(), **tabled, "out": out}, print_compared)
    if results.answers.stopped is not None:
        raise results.answers.stopped


class _Spending:
    """Reads a ledger on from where it was read before, so that looking often stays cheap."""

    def __init__(self, books: Path) -> None:
        """`books` is the folder of the ledger, which need not be there yet."""
        from kpyramid.llm.ledger import LEDGER

        self._path = books / LEDGER
        self._read = self._path.stat().st_size if self._path.exists() else 0

    def read_cost(self) -> float | None:
        """The dollars of the calls since the last look; None when one has no known price."""
        from kpyramid.llm.ledger import add_up, parse_lines

        if not self._path.exists():
            return 0.0
        with self._path.open("rb") as file:
            file.seek(self._read)
            data = file.read()
        self._read += len(data)
        return add_up(*parse_lines(data)).run.cost


def _describe_sheet(sheet: "Sheet") -> dict[str, object]:
    names = (*sheet.labels, *sheet.columns)
    rows = [dict(zip(names, row, strict=True)) for row in sheet.rows]
    return {"title": sheet.title, "rows": rows}


def _write(results: "Results", sheets: "Sequence[Sheet]", out: str) -> None:
    from kpyramid.evaluation.report import render_page
    from kpyramid.storage.contracts import encode_table
    from kpyramid.storage.copies import write_at
    from kpyramid.storage.writing import write_durably

    with write_at(out) as folder:
        for name, table in results.build_tables().items():
            write_durably(folder / f"{name}.parquet", encode_table(table))
        write_durably(folder / "evaluation.html", render_page(results, sheets).encode())


# `kpyramid questions`: files of questions checked.

app = typer.Typer(
    name="questions",
    no_args_is_help=True,
    help="Check a file of questions to evaluate a pyramid with.",
)


@command(app)
def check(
    file: Annotated[Path, typer.Argument(help="Questions as .jsonl, .csv or .tsv.")],
) -> None:
    """Say what a file of questions holds, or everything that is wrong with it, line by line.

    Fields go by any of their usual names: question; answer with aliases, or answers; options with
    gold as texts, letters or numbers; gold_doc_ids, gold_passages or gold_titles.
    """
    from kpyramid.evaluation.questions import read_questions

    questions = read_questions(file)
    kinds = Counter(question.kind for question in questions)
    placed = sum(bool(q.gold_documents or q.gold_titles) for q in questions)
    listed = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
    print_found(
        {"questions": len(questions), "kinds": dict(kinds), "with_gold_documents": placed},
        [f"{count_things(len(questions), 'question')}: {listed}; {placed} name gold documents."],
    )
