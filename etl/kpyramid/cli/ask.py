"""`kpyramid ask`: the command; `answers.py` asks and shows."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kpyramid.cli.options import Backend, read_scope
from kpyramid.errors import InputError, SettingsError
from kpyramid.strategies import STRATEGIES

if TYPE_CHECKING:
    from kpyramid.cli.answers import Asked
    from kpyramid.settings import Settings


def check_strategy(name: str | None) -> str | None:
    """The strategy, which has to be one that there is."""
    if name is not None and name not in STRATEGIES:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(STRATEGIES)}")
    return name


def ask(
    question: str | None = None,
    /,
    *,
    warehouse: str,
    snapshot: str,
    strategy: Annotated[
        str | None,
        typer.Option(callback=check_strategy, metavar=f"[{'|'.join(STRATEGIES)}]"),
    ] = None,
    choice: list[str] | None = None,
    explain: bool = False,
    mode: Literal["best", "authors", "paper"] | None = None,
    sparql: Backend | None = None,
    sufficiency: Backend | None = None,
    reader: Backend | None = None,
    walk: Backend | None = None,
    option: list[str] | None = None,
    access: list[str] | None,
    everything: bool,
    document: list[str] | None = None,
    where: list[str] | None = None,
    trace: Path | None = None,
    loaded: "Settings",
) -> "Asked":
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

    `question`: a question in plain words; - reads standard input. On a terminal it may be left out:
    then it is asked for.
    `strategy`: where the answer is looked for, see above; by default polyrag.
    `choice`: an option of a choice question; again for each. Several may be right.
    `explain`: say which layers were tried, why each was or was not enough, and what the answer
    rests on. --json says it anyhow.
    `mode`: how polyrag works: paper is its Algorithm 1 to the letter, authors hands facts to the
    reader of passages, as their code does; by default best.
    `sparql`: who writes polyrag's query of the ontology; by default rules.
    `sufficiency`: who says whether facts are enough; by default rules.
    `reader`: who words the answer from what was found; by default rules.
    `walk`: who leads the walk of wts, rok, hykge and ksl; by default rules.
    `option`: an option of the strategy, such as hops=2; again for each.
    `document`: only these documents, by source, file or id; again for each.
    `where`: only documents with this metadata: field=value; again for each.
    `trace`: a file to which the question is added as a line of JSON: the facts that were found,
    how deep, and the answer.
    """
    from kpyramid.cli.answers import Asked, ask_pyramid, override, read_question

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
    if question is None:
        if not sys.stdin.isatty():
            raise SettingsError("no question: write one behind `ask`, or - and pipe it in")
        question = typer.prompt("Question", err=True)
    asked = read_question(question)
    if empty := [c for c in choice or () if not c.strip()]:
        raise InputError(f"--choice {empty[0]!r} is empty: write the text of an option")
    scope = read_scope(access, everything, document, where)
    answer = ask_pyramid(
        asked, warehouse, snapshot, loaded, candidates=choice or (), scope=scope, trace=trace
    )
    return Asked(answer=answer, explain=explain)
