"""`kpyramid ask`: the command; `answers.py` asks and shows."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from kpyramid.cli.options import Backend, Natural, read_scope, say
from kpyramid.cli.render import Result, count_things, lay_out, name_first, name_values
from kpyramid.errors import InputError, SettingsError
from kpyramid.pipeline.learning import HOPS
from kpyramid.strategies import STRATEGIES

if TYPE_CHECKING:
    from kpyramid.cli.answers import Asked
    from kpyramid.pipeline.learning.learn import Learnt
    from kpyramid.settings import Settings
    from kpyramid.snapshot.conflicts import Conflict
    from kpyramid.snapshot.snapshot import Snapshot
    from kpyramid.snapshot.typed import Condition


def check_strategy(name: str | None) -> str | None:
    """The strategy, if there is one of that name."""
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


# `kpyramid find`: typed questions from the command line.

_CONDITION = re.compile(r"\s*(.+?)\s*(>=|<=|!=|=)\s*(.*?)\s*", re.DOTALL)


def find(
    class_name: str | None = None,
    /,
    *,
    opened: "Snapshot",
    where: list[str] | None = None,
    order_by: str | None = None,
    limit: int = 20,
    compare: Annotated[tuple[str, str, str] | None, typer.Option(metavar="A B PROPERTY")] = None,
    paths: Annotated[tuple[str, str] | None, typer.Option(metavar="A B")] = None,
    hops: int = 3,
    at: str | None = None,
) -> Result:
    """Find what meets conditions: by class, property and value, with the sentences that say so.

    Classes and properties are those of the ontology, by label or IRI, and what the texts call so
    ("is a" facts, relations). A place stands for all within it, and a number may have a unit. A
    count is a lower bound: texts do not say everything.

    Example: kpyramid find person --where "birth place=London" --order-by "birth date"

    `class_name`: a class; `thing` is everything.
    `where`: a condition: director=NAME, director!=NAME, height>=2 km, height<=3 km; again for each.
    `director=` is met where none is stated, `director!=` where one is; `^director` reads from the
    other end.
    `order_by`: a property or count(property); - before it for descending.
    `limit`: how many members are shown.
    `compare`: compare two things instead.
    `paths`: list the shortest paths of facts between two instead.
    `hops`: facts on a path at most, 1 to 4.
    `at`: a year, month or day; what is known to have held at other times alone is left out.
    """
    if [class_name, compare, paths].count(None) != 2:
        raise InputError("name a CLASS, or --compare A B PROPERTY, or --paths A B")
    if compare:
        return Result(values=opened.compare(*compare).to_dict())
    if paths:
        return Result(values=opened.paths(*paths, hops).to_dict())
    conditions = [*map(_read_condition, where or ())]
    members = opened.find(class_name or "", conditions, order_by, limit, at)
    return Result(values=members.to_dict())


def _read_condition(text: str) -> "tuple[str, Condition]":
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise InputError(f"--where {text!r}: write PROPERTY=VALUE, or with !=, >= or <=")
    name, sign, value = match.groups()
    if sign in (">=", "<="):
        return name, (value, None) if sign == ">=" else (None, value)
    return name, {"not": value or None} if sign == "!=" else value or None


# `kpyramid conflicts` and `kpyramid sql`: what a snapshot's tables say.


def conflicts(*, opened: "Snapshot") -> Result:
    """List facts of which at most one holds, each side with its sentence, the newest first.

    They are found by every build: several values of a property or relation that has one, a
    statement and its denial, relations that are contrary. Nothing is dropped for it. To say which
    value holds, write it into the corrections file (`publish.corrections`, see docs/build.md).

    Example: kpyramid conflicts --json
    """
    rows = [*opened.conflicts.list_all()]
    return name_values(snapshot=opened.id, conflicts=rows, words=_word_conflicts(opened.id, rows))


def _word_conflicts(snapshot: str, listed: "Sequence[Conflict]") -> Iterator[str]:
    for conflict in listed:
        yield conflict.detail
        yield from (f"  {side}" for side in conflict.sides)
    yield f"Snapshot {snapshot}: {count_things(len(listed), 'conflict')}."


def sql(query: str, /, *, opened: "Snapshot", limit: Natural = 20) -> Result:
    """Ask a snapshot's tables and views in SQL: one SELECT, run by DuckDB, which reads no file.

    `show all tables` names them; docs/tables.md says what they mean. --json
    has all rows.

    Example: kpyramid sql "select head, relation, tail from facts where confidence > 0.9 limit 5"

    `query`: the SELECT.
    `limit`: most rows that are printed as a table; 0 for all.
    """
    from kpyramid.snapshot.export import run_sql

    rows = run_sql(opened, query)
    shown = rows[: limit or None]
    notes = [f"{len(rows) - len(shown):,} more; --limit 0 shows all"] if shown != rows else []
    words = lay_out(map(_write_maps, shown), **{n: n for n in rows[0]}) if rows else ["No rows."]
    return name_values(snapshot=opened.id, rows=rows, words=words, notes=notes)


def _write_maps(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its maps as dicts."""
    return {
        name: dict(value)
        if isinstance(value, list) and value and type(value[0]) is tuple
        else value
        for name, value in row.items()
    }


# `kpyramid check add`: an answer that a person confirms becomes a check of every build.


def add(
    question: str,
    /,
    *,
    answer: str | None = None,
    severity: Literal["fail", "warn"] = "fail",
    file: Path | None = None,
    yes: bool = False,
    opened: "Snapshot",
    loaded: "Settings",
) -> Result:
    """Ask a question, confirm the answer, and have every build check it from now on.

    Builds look for `checks.toml` beside the settings, else in the working folder; classes, facts,
    shares of rejects and how new the documents are can be checked as well: see docs/operate.md.

    Example: kpyramid check add "Who leads Acme?" --settings kpyramid.toml --file checks.toml

    `question`: a question in plain words.
    `answer`: what the answer has to hold, where that is not the whole answer.
    `severity`: fail keeps a build from being published, warn is a line of its report.
    `file`: the checks file; by default publish.checks of the settings, else checks.toml.
    `yes`: do not ask whether the answer is right.
    """
    from kpyramid.pipeline.checks import add_check
    from kpyramid.query import answer as ask
    from kpyramid.storage.writing import write_durably

    reply = ask(question, opened)
    say(f"Answer: {reply.text or 'none'}", err=True)
    for place in reply.evidence[:3]:
        say(f"  {place.text} ({place.source})", err=True)
    wanted = answer or reply.text
    if not wanted:
        raise InputError("there is no answer to confirm; say with --answer what it has to be")
    if not yes and not typer.confirm(f"Check that the answer holds {wanted!r}?", err=True):
        raise InputError("nothing was written, as the answer was not confirmed")
    path = file or Path(loaded.publish.checks or "checks.toml")
    entry = {"question": question, "answer": wanted}
    entry |= {"severity": severity} if severity != "fail" else {}
    text = path.read_text("utf-8") if path.exists() else ""
    write_durably(path.resolve(), add_check(text, entry).encode())
    return name_values(file=str(path), added=entry)


# `kpyramid learn`: answered questions become documents of an experience source.

_EXAMPLES = 5


def _word_outcomes(learnt: "Learnt") -> Iterator[str]:
    """Numbers of rows by outcome, statements, and rows set aside."""
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
