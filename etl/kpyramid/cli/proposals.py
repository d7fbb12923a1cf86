"""`kpyramid proposals`: what completion suggests for the ontology, and a person's word on it."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kpyramid.cli.options import (
    DEFAULT_WAREHOUSE,
    SettingsOption,
    SnapshotOption,
    WarehouseOption,
    command,
    print_found,
)

if TYPE_CHECKING:
    from kpyramid.completion.decisions import Decisions
    from kpyramid.settings import Settings
    from kpyramid.snapshot.proposals import Listed
    from kpyramid.snapshot.snapshot import Snapshot
    from kpyramid.snapshot.view import Scope

app = typer.Typer(
    name="proposals",
    no_args_is_help=True,
    help="See what completion proposes for the ontology; accept or reject it.",
    epilog="A build proposes classes and properties that the graph states often and the ontology "
    "lacks. Clear ones it accepts by itself, the others are open: list them, decide, build again. "
    "Decisions are kept in a TOML file, for review and version control; the settings name it: "
    "[complete] decisions = 'proposals.toml'. What is accepted there is part of every build's "
    "ontology, what is rejected is not proposed again; edit or remove entries to change your mind.",
)

_SENTENCES = 3
_LISTED = 25
"""Proposals of a state that are listed unless all are asked for, as in the report."""

IdsArgument = Annotated[
    list[str],
    typer.Argument(help="Ids of proposals as `list` shows them; so many digits as are unique."),
]
FileOption = Annotated[
    Path | None,
    typer.Option(help="The decisions file; by default complete.decisions of the settings."),
]
NoteOption = Annotated[str, typer.Option(help="Why; it is kept in the file.")]
StateOption = Annotated[
    str | None, typer.Option(help="Only these: open, accepted, alias or rejected.")
]


@command(app, "list")
def list_(
    warehouse: WarehouseOption = DEFAULT_WAREHOUSE,
    ref: SnapshotOption = "main",
    state: StateOption = None,
    *,
    loaded: "Settings",
    decisions: FileOption = None,
    every_one: Annotated[
        bool, typer.Option("--all", help=f"Show more than the first {_LISTED} of each state.")
    ] = False,
    scope: "Scope",
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Show definitions, wordings and sentences too.")
    ] = False,
) -> None:
    """List the proposals of a snapshot: id, state, what it is, its support, examples.

    A class is shown below its parent, a property between the classes of its ends. What the
    decisions file says and no build has read yet is shown beside the state. With --json all are
    listed. What only documents with labels say is shown with --access or --everything.

    Example: kpyramid proposals list --state open -v
    """
    from kpyramid.completion.review import find_file, read_file
    from kpyramid.errors import SettingsError
    from kpyramid.query import open_snapshot
    from kpyramid.snapshot.proposals import list_proposals

    states = ("open", "accepted", "alias", "rejected")
    if state is not None and state not in states:
        raise SettingsError(f"--state {state!r}: it is one of {', '.join(states)}")
    snapshot = open_snapshot(ref, warehouse, scope=scope)
    path = find_file(decisions, loaded.complete)
    _, decided = read_file(path)
    shown = [p for p in list_proposals(snapshot) if state in (None, p.state)]
    listed = [{**asdict(p), "decision": _read_word(p, decided)} for p in shown]

    def describe() -> Iterator[str]:
        if not shown:
            kind = f"{state} " if state else ""
            yield f"Snapshot {snapshot.id} has no {kind}proposals."
        for name in states:
            own = [p for p in shown if p.state == name]
            first = own if every_one else own[:_LISTED]
            for p in first:
                yield _describe(p, decided)
                if verbose:
                    yield _explain(p, snapshot)
            if len(own) > len(first):
                yield f"and {len(own) - len(first):,} more {name}; --all shows them"

    print_found({"snapshot": snapshot.id, "proposals": listed}, describe())


@command(app)
def accept(
    ids: IdsArgument,
    warehouse: WarehouseOption = DEFAULT_WAREHOUSE,
    ref: SnapshotOption = "main",
    label: Annotated[
        str | None,
        typer.Option(help="Another name for it; its instances come from its wordings as before."),
    ] = None,
    note: NoteOption = "",
    settings: SettingsOption = None,
    decisions: FileOption = None,
    *,
    scope: "Scope",
) -> None:
    """Accept proposals: the next build adds them to the ontology, with their instances.

    Writes an entry for each into the decisions file, and for what they stand on, such as a
    proposed class that is a property's domain. The rest of the file stays as it is.

    Example: kpyramid proposals accept 3f9c --label 'reigned in' --decisions proposals.toml
    """
    _decide("accept", ids, (ref, warehouse, scope), settings, decisions, label=label, note=note)


@command(app)
def reject(
    ids: IdsArgument,
    warehouse: WarehouseOption = DEFAULT_WAREHOUSE,
    ref: SnapshotOption = "main",
    note: NoteOption = "",
    settings: SettingsOption = None,
    decisions: FileOption = None,
    *,
    scope: "Scope",
) -> None:
    """Reject proposals, those accepted by rules too: from the next build on they are out.

    Writes an entry for each into the decisions file. What has the same label, or half of its
    wordings, is not proposed again.

    Example: kpyramid proposals reject 3f9c 77ab --note 'says nothing'
    """
    _decide("reject", ids, (ref, warehouse, scope), settings, decisions, note=note)


def _decide(
    decision: Literal["accept", "reject"],
    ids: list[str],
    shown: "tuple[str, str, Scope]",
    settings: Path | None,
    file: Path | None,
    *,
    label: str | None = None,
    note: str = "",
) -> None:
    from kpyramid.completion.review import decide, find_file, hold_file, read_file
    from kpyramid.errors import SettingsError
    from kpyramid.query import open_snapshot
    from kpyramid.settings import load_settings
    from kpyramid.snapshot.proposals import find_proposal, list_proposals
    from kpyramid.storage.writing import write_durably

    ref, warehouse, scope = shown
    snapshot = open_snapshot(ref, warehouse, scope=scope)
    loaded = load_settings(settings).complete
    path = find_file(file, loaded)
    if path is None:
        raise SettingsError(
            "no decisions file: put\n\n[complete]\ndecisions = 'proposals.toml'\n\ninto the "
            "settings and give them with --settings, or name the file with --decisions"
        )
    if label is not None and not label.strip():
        raise SettingsError("--label is empty; give a name, or leave the option out")
    if label is not None and len(ids) > 1:
        raise SettingsError("--label names one proposal; accept the others by themselves")
    listed = list_proposals(snapshot)
    chosen = [find_proposal(words, listed) for words in ids]
    rows: list[Mapping[str, object]] = [asdict(p) for p in listed]
    wanted = [asdict(p) for p in dict.fromkeys(chosen)]
    with hold_file(path):
        is_new = not path.exists()
        text, known = read_file(path)
        decided = decide(
            decision, wanted, rows, snapshot.schema, text, known, label=label, note=note
        )
        if decided.text != text:
            write_durably(path.resolve(), decided.text.encode())
    found = {"file": str(path), "decided": decided.done, "unchanged": decided.unchanged}
    lines = [
        f"{entry['label']} ({entry['kind']}): {entry['how']}"
        for entry in (*decided.done, *decided.unchanged)
    ]
    if decided.done:
        place = f"{path.absolute()}, a new file" if is_new else path
        lines.append(f"{len(decided.done)} entry(s) to {decision} in {place}.")
    else:
        lines.append(f"{path} stays as it is.")
    if decided.text != text:
        given = f" --settings {settings}" if settings else ""
        if loaded.decisions is None or Path(loaded.decisions).resolve() != path.resolve():
            lines.append(f'Name the file in the settings: [complete] decisions = "{path}"')
            given = f" --settings {settings or 'SETTINGS'}"
        where = "" if warehouse == DEFAULT_WAREHOUSE else f" --warehouse {warehouse}"
        lines.append(
            f"Then run `kpyramid build CORPUS{where}{given}`; only what follows is computed."
        )
    print_found(found, lines)


def _read_word(p: "Listed", decisions: "Decisions") -> str | None:
    """What the next build does with a proposal because of the file: accept, reject or neither.

    What is only like something that the file accepts becomes another name for it if it fits.
    """
    own = decisions.find_own(asdict(p))
    entry = own or decisions.find(p.kind, p.label, p.phrases)
    return entry.decision if entry and (own or entry.decision == "reject") else None


def _describe(p: "Listed", decisions: "Decisions") -> str:
    ends = f"below {p.ends[0]}" if p.kind == "class" else " -> ".join(p.ends)
    waits = {("accept", "open"), ("accept", "rejected"), ("reject", "open"), ("reject", "accepted")}
    state, said = p.state, _read_word(p, decisions)
    like = decisions.find(p.kind, p.label, p.phrases)
    if said is not None and (said, p.state) in waits | {("reject", "alias")}:
        state += f", to {said} by the next build"
    elif p.decided_by != "rules":
        state += f" by {p.decided_by}"
    elif said is None and like is not None and p.state == "open":
        state += f", beside {like.label!r}, which the file accepts"
    lines = [
        f"{p.short}  {p.label}  ({p.kind}, {ends})",
        f"    {state}; {p.support} facts, {p.agreement:.0%} fit, score {p.score:.4g}",
    ]
    if p.state == "alias":
        lines.append(f"    another name for {p.iri}")
    if p.note:
        lines.append(f"    {p.note}")
    lines += [f"      {example}" for example in p.examples]
    return "\n".join(lines)


def _explain(p: "Listed", snapshot: "Snapshot") -> str:
    lines = [f"    {p.definition}"] if p.definition else []
    if p.splits:
        lines.append(f"    a part of {p.splits}")
    if p.inverse_of:
        lines.append(f"    the inverse of {p.inverse_of}")
    lines.append(f"    wordings: {', '.join(p.phrases)}")
    for evidence in snapshot.evidence(p.proposal_id)[:_SENTENCES]:
        lines.append(f"    {evidence.source}, characters {evidence.start}-{evidence.end}:")
        lines.append(f"      {' '.join(evidence.text.split())}")
    return "\n".join(lines)
