"""`kpyramid learn`: answered questions become documents of an experience source."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kpyramid.cli.options import (
    DEFAULT_WAREHOUSE,
    Backend,
    WarehouseOption,
    count_things,
    name_first,
    print_found,
)
from kpyramid.pipeline.learning import HOPS, SOURCE_ROWS, SOURCE_SHARE

if TYPE_CHECKING:
    from kpyramid.settings import Settings


_EXAMPLES = 5


def learn(
    feedback: Annotated[Path, typer.Argument(help="JSON lines; docs/learn.md has the fields.")],
    corpus: Annotated[
        Path, typer.Option(help="The folder that the next build reads; experience.jsonl is in it.")
    ],
    warehouse: WarehouseOption = DEFAULT_WAREHOUSE,
    ref: Annotated[
        str, typer.Option(help="The ref or the id of the snapshot that knows already.")
    ] = "main",
    *,
    loaded: "Settings",
    generate: Annotated[
        Backend, typer.Option(help="Who makes statements of a question and its answer.")
    ] = "rules",
    evolve_when: Annotated[
        Literal["beyond_h", "nothing_retrieved", "always"],
        typer.Option(
            help="Learn when confidence came beyond --h or never; also when nothing was "
            "retrieved; or always."
        ),
    ] = "always",
    h: Annotated[int, typer.Option("--h", min=0, help="Depth H of WTS's Algorithm 1.")] = HOPS,
    source_share: Annotated[
        float, typer.Option(help="Most that one source gives of what is learnt in a run.")
    ] = SOURCE_SHARE,
    source_rows: Annotated[
        int, typer.Option(min=0, help="Rows that every source may give in any case.")
    ] = SOURCE_ROWS,
    domain: Annotated[str, typer.Option(help="What the model is called an expert in.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be learnt; write nothing.")
    ] = False,
) -> None:
    """Learn from questions with gold answers or ratings: the next build reads what they say.

    A question and its gold answer, or an answer that was rated good, become statements in
    experience.jsonl of the corpus, unless the published pyramid knows them already. A bad rating
    states nothing. Rows that contradict the pyramid or one another, or come too many from one
    source, go to .experience.rejected.jsonl beside it, with their reasons.

    Removing a row of experience.jsonl removes its facts in the next build.

    Example: kpyramid learn feedback.jsonl --corpus examples/demo/corpus --dry-run
    """
    from kpyramid.cli.answers import PATIENCE, open_asker
    from kpyramid.extraction.openie import DependencyExtractor
    from kpyramid.pipeline.learning.learn import Rules
    from kpyramid.pipeline.learning.learn import learn as run_learn
    from kpyramid.pipeline.learning.statements import Generator, Reader, Stater
    from kpyramid.query import EVERYTHING, open_snapshot
    from kpyramid.storage.layout import open_warehouse

    snapshot = open_snapshot(ref, warehouse, model=loaded.embed, scope=EVERYTHING)
    reader = Reader(DependencyExtractor(loaded.extract.parser, loaded.extract.language))
    rules = Rules(evolve_when, h, source_share, source_rows)
    with ExitStack() as held:
        asker = None
        if generate == "llm":
            place, who = open_warehouse(warehouse), "--generate llm asks"
            asker, _ = held.enter_context(open_asker(place, loaded, who, patience=PATIENCE))
        found = run_learn(
            feedback,
            corpus,
            snapshot,
            lambda scoped: (
                Stater(scoped, reader) if asker is None else Generator(asker, reader, domain)
            ),
            rules,
            dry_run=dry_run,
        )
    told = [text for outcome in found.outcomes for text in outcome.statements]
    counts = found.count().items()
    lines = [f"{count_things(number, 'row')} {what.replace('_', ' ')}" for what, number in counts]
    told_as = "Would be learnt" if dry_run else "Learnt"
    lines.append(f"{told_as}: {count_things(len(told), 'statement')}")
    lines += name_first(told, _EXAMPLES)
    lines += name_first(
        [
            f"line {outcome.line}: {outcome.reason}: {outcome.detail}"
            for outcome in found.outcomes
            if outcome.result in ("quarantined", "refused")
        ],
        _EXAMPLES,
    )
    would, aside = ("would have", "would go to") if dry_run else ("has", "is in")
    rows = count_things(found.rows, "row")
    lines.append(f"{found.file} {would} {rows}; what is put aside {aside} {found.aside}")
    print_found(found.to_dict(), lines)
