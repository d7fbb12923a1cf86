"""`kpyramid ask`: the command; `answers.py` asks and shows."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from kpyramid.cli.options import Backend, Natural, read_scope, say
from kpyramid.cli.render import Result, count_things, lay_out, name_first, name_values
from kpyramid.errors import InputError, SettingsError
from kpyramid.pipeline.learning import HOPS
from kpyramid.strategies import STRATEGIES

if TYPE_CHECKING:
    from kpyramid.pipeline.learning.learn import Learnt
    from kpyramid.settings import Settings
    from kpyramid.snapshot.conflicts import Conflict
    from kpyramid.snapshot.snapshot import Snapshot
    from kpyramid.snapshot.typed import Condition

StrategyName = StrEnum("StrategyName", {name: name for name in STRATEGIES})  # type: ignore[misc]


def ask(
    question: str | None = None,
    /,
    *,
    warehouse: str,
    snapshot: str,
    strategy: StrategyName | None = None,
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
) -> Result:
    """Ask a published pyramid; the answer names its layer and its evidence.

    polyrag goes down the pyramid: ontology, then graph, then text, until a layer suffices.
    kaping takes the nearest facts of the graph, exact the facts about the entities of the question,
    naive the nearest chunks of text; direct uses no layer, for comparison.

    Four strategies walk over the graph: wts goes from entity to entity and keeps relevant facts at
    each depth; rok connects the key entities of a tentative answer by paths; hykge scores chains of
    facts against a hypothesis; ksl goes from head to tail until it reaches an answer. With
    --explain each shows its path, with a sentence for every step.

    Rules or a model can take each decision. Rules need no model and no settings; llm asks the
    model of [llm] in --settings, waits at most half a minute if it is busy or failing, and uses
    stored replies to earlier requests. Its output is checked: queries run in a separate process
    with limits, and an answer that cites nothing from its context is refused.
    Section [query] of the settings sets the same choices for every question.

    A document with access labels, and its facts, are visible to readers with one of the labels.
    Without --access a question uses only the documents without labels.

    Example: kpyramid ask "Where was Ada Lovelace born?" --choice London --choice Leeds --explain

    `question`: a question in plain words; - reads standard input. Without it a terminal prompts
    for one.
    `strategy`: how context is retrieved, see above; by default polyrag.
    `choice`: an option of a choice question; repeatable. Several may be right.
    `explain`: show which layers were tried, why each did or did not suffice, and the evidence of
    the answer. --json always has this.
    `mode`: how polyrag works: paper is its Algorithm 1 to the letter, authors also gives facts to
    the reader of passages, as the authors' code does; by default best.
    `sparql`: who writes polyrag's query of the ontology; by default rules.
    `sufficiency`: who judges whether facts suffice; by default rules.
    `reader`: who words the answer from the context; by default rules.
    `walk`: who leads the walk of wts, rok, hykge and ksl; by default rules.
    `option`: an option of the strategy, such as hops=2; repeatable.
    `document`: use only this document, by source, file or id; repeatable.
    `where`: use only documents with this metadata: field=value; repeatable.
    `trace`: file to which the question is appended as a line of JSON, with the retrieved facts,
    the depth and the answer.
    """
    from kpyramid.cli.answers import ask_pyramid, describe_answer, override, read_question

    loaded = override(
        loaded,
        option or (),
        strategy=strategy and strategy.value,
        mode=mode,
        sparql=sparql,
        sufficiency=sufficiency,
        reader=reader,
        walk=walk,
    )
    if question is None:
        if not sys.stdin.isatty():
            raise SettingsError("no question: write one after `ask`, or - and pipe it in")
        question = typer.prompt("Question", err=True)
    asked = read_question(question)
    if empty := [c for c in choice or () if not c.strip()]:
        raise InputError(f"--choice {empty[0]!r} is empty: write the text of an option")
    scope = read_scope(access, everything, document, where)
    answer = ask_pyramid(
        asked, warehouse, snapshot, loaded, candidates=choice or (), scope=scope, trace=trace
    )
    return describe_answer(answer, explain=explain)


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
    """Find things that meet conditions on class, property and value, each with its sentences.

    Classes and properties are those of the ontology, by label or IRI, and those of the texts
    ("is a" facts, relations). A place stands for everything within it, and a number may have a
    unit. A count is a lower bound: texts do not say everything.

    Example: kpyramid find person --where "birth place=London" --order-by "birth date"

    `class_name`: a class; `thing` is everything.
    `where`: a condition: director=NAME, director!=NAME, height>=2 km, height<=3 km; repeatable.
    `director=` is met if none is stated, `director!=` if one is; `^director` reads from the
    other end.
    `order_by`: a property or count(property); - before it for descending.
    `limit`: most members that are shown.
    `compare`: compare two things instead.
    `paths`: list the shortest paths of facts between two things instead.
    `hops`: most facts on a path, 1 to 4.
    `at`: a year, month or day; facts known to have held only at other times are left out.
    """
    if [class_name, compare, paths].count(None) != 2:
        raise InputError("name a CLASS, or --compare A B PROPERTY, or --paths A B")
    if compare:
        return Result(values=opened.compare(*compare).to_dict())
    if paths:
        listed = opened.paths(*paths, hops)
        most = count_things(hops, "fact")
        none = f"there is no path of at most {most} between {paths[0]!r} and {paths[1]!r}"
        return Result(values=listed.to_dict(), notes=() if listed.paths else [none])
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
    """List facts that contradict each other, each with its sentence, the newest first.

    Every build finds them: several values of a property or relation that has one, a
    statement and its denial, contrary relations. No fact is dropped for it. To say which
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
    """Query a snapshot's tables and views in SQL: one SELECT, run by DuckDB, which reads no file.

    `show all tables` names them; docs/tables.md describes them. --json
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

    Builds read `checks.toml` beside the settings, else in the working folder. It can also check
    classes, facts, shares of rejects and the age of documents: see docs/operate.md.

    Example: kpyramid check add "Who leads Acme?" --settings kpyramid.toml --file checks.toml

    `question`: a question in plain words.
    `answer`: the text that the answer has to contain; by default the whole answer.
    `severity`: fail keeps a build from being published, warn is a line of its report.
    `file`: the checks file; by default publish.checks of the settings, else checks.toml.
    `yes`: confirm the answer without asking.
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
        raise InputError("there is no answer to confirm; give the expected one with --answer")
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
        str, typer.Option(help="The ref or id of the snapshot to compare with.")
    ] = "main",
    loaded: "Settings",
    generate: Backend = "rules",
    evolve_when: Literal["beyond_h", "nothing_retrieved", "always"] = "always",
    h: Natural = HOPS,
    dry_run: bool = False,
) -> Result:
    """Learn from questions with gold answers or ratings: the next build reads their statements.

    A question and its gold answer, or an answer that was rated good, become statements in
    experience.jsonl of the corpus, unless the published pyramid has them already. A bad rating
    states nothing. Rows that contradict the pyramid or one another, and too many rows from one
    source, are set aside: the report (--json: all of it) lists the lines with their reasons.

    Removing a row of experience.jsonl removes its facts in the next build.

    Example: kpyramid learn feedback.jsonl --corpus examples/demo/corpus --dry-run

    `feedback`: JSON lines; docs/learn.md has the fields.
    `corpus`: the folder that the next build reads, with experience.jsonl.
    `generate`: who makes statements from a question and its answer.
    `evolve_when`: learn if confidence came beyond depth --h or never; also if nothing was
    retrieved; or always.
    `h`: depth H of WTS's Algorithm 1.
    `dry_run`: show what would be learnt; write nothing.
    """
    from kpyramid.extraction.openie import DependencyExtractor
    from kpyramid.pipeline.learning.learn import learn as run_learn
    from kpyramid.pipeline.learning.statements import Generator, Stater
    from kpyramid.pipeline.models import open_backends, require_model
    from kpyramid.query import EVERYTHING, open_snapshot

    snapshot = open_snapshot(ref, warehouse, model=loaded.embed, scope=EVERYTHING)
    extractor = DependencyExtractor(loaded.extract.parser, loaded.extract.language)
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
                Stater(scoped, extractor) if asker is None else Generator(asker, extractor, domain)
            ),
            evolve_when,
            h,
            dry_run=dry_run,
        )
    notes = ["Nothing was written, because of --dry-run."] if dry_run else []
    return Result(values=learnt.to_dict(), words=_word_outcomes(learnt), notes=notes)
