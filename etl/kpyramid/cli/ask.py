"""`kpyramid ask`: the command; `answers.py` asks and shows."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kpyramid.cli.options import (
    DEFAULT_WAREHOUSE,
    AccessOption,
    Backend,
    EverythingOption,
    SnapshotOption,
    WarehouseOption,
    print_found,
    read_scope,
    say,
)
from kpyramid.errors import InputError
from kpyramid.strategies import STRATEGIES

if TYPE_CHECKING:
    from kpyramid.settings import Settings


def check_strategy(name: str | None) -> str | None:
    """The strategy, which has to be one that there is."""
    if name is not None and name not in STRATEGIES:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(STRATEGIES)}")
    return name


def ask(
    question: Annotated[
        str, typer.Argument(help="A question in plain words; - reads standard input.")
    ],
    warehouse: WarehouseOption = DEFAULT_WAREHOUSE,
    ref: SnapshotOption = "main",
    strategy: Annotated[
        str | None,
        typer.Option(
            callback=check_strategy,
            metavar=f"[{'|'.join(STRATEGIES)}]",
            help="Where the answer is looked for, see above.  [default: polyrag]",
        ),
    ] = None,
    choice: Annotated[
        list[str] | None,
        typer.Option(help="An option of a choice question; again for each. Several may be right."),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Say which layers were tried, why each was or was not enough, and what the answer "
            "rests on. --json says it anyhow.",
        ),
    ] = False,
    mode: Annotated[
        Literal["best", "authors", "paper"] | None,
        typer.Option(
            help="How polyrag works: paper is its Algorithm 1 to the letter, authors hands facts "
            "to the reader of passages, as their code does.  [default: best]"
        ),
    ] = None,
    sparql: Annotated[
        Backend | None,
        typer.Option(help="Who writes polyrag's query of the ontology.  [default: rules]"),
    ] = None,
    sufficiency: Annotated[
        Backend | None,
        typer.Option(help="Who says whether facts are enough.  [default: rules]"),
    ] = None,
    reader: Annotated[
        Backend | None,
        typer.Option(help="Who words the answer from what was found.  [default: rules]"),
    ] = None,
    walk: Annotated[
        Backend | None,
        typer.Option(help="Who leads the walk of wts, rok, hykge and ksl.  [default: rules]"),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="An option of the strategy, such as hops=2; again for each."),
    ] = None,
    access: AccessOption = None,
    everything: EverythingOption = False,
    document: Annotated[
        list[str] | None,
        typer.Option(help="Only these documents, by source, file or id; again for each."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(help="Only documents with this metadata: field=value; again for each."),
    ] = None,
    class_name: Annotated[
        list[str] | None,
        typer.Option("--class", help="Only what is said of individuals of this class."),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="A file to which the question is added as a line of JSON: the facts that were "
            "found, how deep, and the answer."
        ),
    ] = None,
    *,
    loaded: "Settings",
) -> None:
    """Ask a published pyramid; the answer names its layer and its evidence.

    polyrag goes down the pyramid: ontology, then graph, then text, until a layer suffices.
    kaping takes the nearest facts of the graph, exact those about the entities that the question
    names, naive the nearest chunks of text; direct looks nowhere, for comparison.

    Four walk over the graph: wts goes from entity to entity and keeps what is relevant at each
    depth; rok joins the key entities of a tentative answer by paths; hykge scores chains of facts
    against a hypothesis; ksl goes from head to tail until it meets an answer. With --explain each
    shows its path, with a sentence for every step.

    Every decision can be a rule's or a model's. Rules need no model and no settings; llm asks the
    model of [llm] in --settings, waits half a minute at most while it is busy or failing, and is
    answered from the cache when the same was asked before. What it writes is checked: its queries
    are run apart with limits, and an answer that rests on nothing it was shown is refused.
    Section [query] of the settings gives the same choices for every question.

    A document that carries access labels is seen by who has one of them, and its facts with it.
    Without --access a question sees the documents without labels.

    Example: kpyramid ask "Where was Ada Lovelace born?" --choice London --choice Leeds --explain
    """
    from kpyramid.cli.answers import (
        ask_pyramid,
        describe_answer,
        describe_spending,
        override,
        print_explanation,
        read_question,
    )
    from kpyramid.cli.console import print_answer

    loaded = override(
        loaded,
        option or (),
        strategy=strategy,
        mode=mode,
        sparql=sparql,
        sufficiency=sufficiency,
        reader=reader,
        walk=walk,
    )
    asked = read_question(question)
    if empty := [c for c in choice or () if not c.strip()]:
        raise InputError(f"--choice {empty[0]!r} is empty: write the text of an option")
    scope = read_scope(access, everything, document, where, class_name)
    found = ask_pyramid(
        asked, warehouse, ref, loaded, candidates=choice or (), scope=scope, trace=trace
    )

    def print_words() -> None:
        (print_explanation if explain else print_answer)(found)
        if spending := describe_spending(found):
            say(spending)

    print_found(describe_answer(found), print_words)
