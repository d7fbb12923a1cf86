"""`kpyramid learn`: answered questions become documents of an experience source."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kpyramid.cli.options import Backend, Natural
from kpyramid.cli.render import Result, count_things, name_first
from kpyramid.pipeline.learning import HOPS

if TYPE_CHECKING:
    from kpyramid.pipeline.learning.learn import Learnt
    from kpyramid.settings import Settings

_EXAMPLES = 5


def _word_outcomes(learnt: "Learnt") -> Iterator[str]:
    """How many rows came to what, statements, and what was put aside."""
    statements = [text for outcome in learnt.outcomes for text in outcome.statements]
    for what, number in learnt.count().items():
        yield f"{count_things(number, 'row')} {what.replace('_', ' ')}"
    yield f"Learnt: {count_things(len(statements), 'statement')}"
    yield from name_first(statements, _EXAMPLES)
    aside = [
        f"line {outcome.line}: {outcome.reason}: {outcome.detail}"
        for outcome in learnt.outcomes
        if outcome.result in ("quarantined", "refused")
    ]
    yield from name_first(aside, _EXAMPLES)
    yield f"{learnt.file}: {count_things(learnt.rows, 'row')}"


def learn(
    feedback: Path,
    /,
    *,
    corpus: Path,
    warehouse: str,
    ref: Annotated[
        str, typer.Option(help="The ref or the id of the snapshot that knows already.")
    ] = "main",
    loaded: "Settings",
    generate: Backend = "rules",
    evolve_when: Literal["beyond_h", "nothing_retrieved", "always"] = "always",
    h: Natural = HOPS,
    dry_run: bool = False,
) -> Result:
    """Learn from questions with gold answers or ratings: the next build reads what they say.

    A question and its gold answer, or an answer that was rated good, become statements in
    experience.jsonl of the corpus, unless the published pyramid knows them already. A bad rating
    states nothing. Rows that contradict the pyramid or one another, or come too many from one
    source, are put aside: the report (--json: all of it) says which lines, and why.

    Removing a row of experience.jsonl removes its facts in the next build.

    Example: kpyramid learn feedback.jsonl --corpus examples/demo/corpus --dry-run

    `feedback`: JSON lines; docs/learn.md has the fields.
    `corpus`: the folder that the next build reads; experience.jsonl is in it.
    `generate`: who makes statements of a question and its answer.
    `evolve_when`: learn when confidence came beyond --h or never; also when nothing was retrieved;
    or always.
    `h`: depth H of WTS's Algorithm 1.
    `dry_run`: say what would be learnt; write nothing.
    """
    from kpyramid.extraction.openie import DependencyExtractor
    from kpyramid.pipeline.learning.learn import learn as run_learn
    from kpyramid.pipeline.learning.statements import Generator, Reader, Stater
    from kpyramid.pipeline.models import open_backends, require_model
    from kpyramid.query import EVERYTHING, open_snapshot

    snapshot = open_snapshot(ref, warehouse, model=loaded.embed, scope=EVERYTHING)
    reader = Reader(DependencyExtractor(loaded.extract.parser, loaded.extract.language))
    domain = "" if loaded.cascade.domain == "general" else loaded.cascade.domain
    with ExitStack() as held:
        asker = None
        if generate == "llm":
            require_model(loaded, "--generate llm asks")
            asker = held.enter_context(open_backends(loaded, warehouse=warehouse)).asker
        learnt = run_learn(
            feedback,
            corpus,
            snapshot,
            lambda scoped: (
                Stater(scoped, reader) if asker is None else Generator(asker, reader, domain)
            ),
            evolve_when,
            h,
            dry_run=dry_run,
        )
    notes = ["Nothing was written; without --dry-run it is."] if dry_run else []
    return Result(values=learnt.to_dict(), words=_word_outcomes(learnt), notes=notes)
