"""`kpyramid proposals`: what completion suggests for the ontology, and a person's word on it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kpyramid.cli.render import HIDDEN, Result
from kpyramid.errors import SettingsError

if TYPE_CHECKING:
    from kpyramid.completion.decisions import Decisions
    from kpyramid.settings import Settings
    from kpyramid.snapshot.proposals import Listed
    from kpyramid.snapshot.snapshot import Snapshot

_SENTENCES = 3
_LISTED = 25
"""Proposals of a state that are listed unless all are asked for, as in the report."""
State = Literal["open", "accepted", "alias", "rejected"]


@dataclass(frozen=True, kw_only=True)
class Proposed(Result):
    """The proposals of a snapshot, with what the decisions file says of each."""

    snapshot: str
    proposals: Sequence[Mapping[str, Any]]
    lines: Mapping[str, Sequence[str]] = field(metadata=HIDDEN)
    most: int | None = field(metadata=HIDDEN)

    def show(self) -> Iterator[str]:
        """The first of each state."""
        if not self.proposals:
            yield f"Snapshot {self.snapshot} has no such proposals."
        for state, lines in self.lines.items():
            yield from lines[: self.most]
            if self.most is not None and len(lines) > self.most:
                yield f"and {len(lines) - self.most:,} more {state}; --all shows them"


@dataclass(frozen=True, kw_only=True)
class Decided(Result):
    """Entries that were written into the decisions file, and those that were there."""

    file: str
    decided: Sequence[Mapping[str, Any]]
    unchanged: Sequence[Mapping[str, Any]]

    def show(self) -> Iterator[str]:
        """A line per entry."""
        for entry in (*self.decided, *self.unchanged):
            yield f"{entry['label']} ({entry['kind']}): {entry['how']}"
        yield f"{len(self.decided)} new entry(s) in {self.file}."


def proposals(
    *,
    accept: list[str] | None = None,
    reject: list[str] | None = None,
    label: str | None = None,
    note: str = "",
    state: State | None = None,
    all_: bool = False,
    decisions: Path | None = None,
    opened: "Snapshot",
    loaded: "Settings",
    verbose: bool,
) -> Proposed | Decided:
    """List what completion proposes for the ontology; accept or reject it.

    A build proposes classes and properties that the graph states often and the ontology lacks.
    Clear ones it accepts by itself, the others are open: list them, decide, build again. A class
    is shown below its parent, a property between the classes of its ends, with id, state, support
    and examples. What the decisions file says and no build has read yet is shown beside the state.
    With --json all are listed. What only documents with labels say is shown with --access or
    --everything.

    --accept has the next build add a proposal to the ontology, with its instances, and what it
    stands on, such as a proposed class that is a property's domain. --reject keeps it out from the
    next build on, one accepted by rules too, and what has the same label or half of its wordings.
    Decisions are kept in a TOML file, for review and version control; the settings name it:
    [complete] decisions = 'proposals.toml'. Edit or remove entries to change your mind.

    Examples: kpyramid proposals --state open -v; kpyramid proposals --accept 3f9c --label 'reigned
    in' --decisions proposals.toml; kpyramid proposals --reject 77ab --note 'says nothing'

    `accept`: the id of a proposal, as many digits as are unique; again for each.
    `reject`: likewise.
    `label`: another name for what is accepted; its instances come from its wordings as before.
    `note`: why; it is kept in the file.
    `state`: list only these.
    `all_`: show more than the first of each state.
    `decisions`: the decisions file; by default complete.decisions of the settings.
    `verbose`: show definitions, wordings and sentences too.
    """
    from kpyramid.completion.review import find_file, read_file
    from kpyramid.snapshot.proposals import list_proposals

    if accept and reject:
        raise SettingsError("give --accept or --reject, and run it again for the other")
    listed = list_proposals(opened)
    path = find_file(decisions, loaded.complete)
    if accept or reject:
        if path is None:
            raise SettingsError(
                "no decisions file: put\n\n[complete]\ndecisions = 'proposals.toml'\n\ninto the "
                "settings and give them with --settings, or name the file with --decisions"
            )
        return _decide(accept, reject or [], path, opened, listed, loaded, label=label, note=note)
    _, decided = read_file(path)
    shown = [p for p in listed if state in (None, p.state)]
    lines: dict[str, list[str]] = {}
    for p in sorted(shown, key=lambda p: ("open", "accepted", "alias", "rejected").index(p.state)):
        words = [_describe(p, decided), *([_explain(p, opened)] if verbose else [])]
        lines.setdefault(p.state, []).append("\n".join(words))
    return Proposed(
        snapshot=opened.id,
        proposals=[{**asdict(p), "decision": _read_word(p, decided)} for p in shown],
        lines=lines,
        most=None if all_ else _LISTED,
    )


def _decide(
    accept: Sequence[str] | None,
    reject: Sequence[str],
    path: Path,
    snapshot: "Snapshot",
    listed: "Sequence[Listed]",
    loaded: "Settings",
    *,
    label: str | None,
    note: str,
) -> Decided:
    from kpyramid.completion.review import decide, hold_file, read_file
    from kpyramid.snapshot.proposals import find_proposal
    from kpyramid.storage.writing import write_durably

    if label is not None and not label.strip():
        raise SettingsError("--label is empty; give a name, or leave the option out")
    if label is not None and len(accept or ()) != 1:
        raise SettingsError("--label names one proposal that is accepted; accept others after it")
    chosen = dict.fromkeys(find_proposal(words, listed) for words in accept or reject)
    rows: list[Mapping[str, object]] = [asdict(p) for p in listed]
    notes = []
    with hold_file(path):
        if not path.exists():
            notes.append(f"{path.absolute()} is a new file.")
        text, known = read_file(path)
        decided = decide(
            "accept" if accept else "reject",
            [asdict(p) for p in chosen],
            rows,
            snapshot.schema,
            text,
            known,
            label=label,
            note=note,
        )
        if decided.text != text:
            write_durably(path.resolve(), decided.text.encode())
    if decided.text != text:
        named = loaded.complete.decisions
        if named is None or Path(named).resolve() != path.resolve():
            notes.append(f'Name the file in the settings: [complete] decisions = "{path}"')
        notes.append("Then run `kpyramid build CORPUS` again; only what follows is computed.")
    return Decided(file=str(path), decided=decided.done, unchanged=decided.unchanged, notes=notes)


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
    places = dict.fromkeys(place for key in p.facts for place in snapshot.evidence(key))
    for evidence in [*places][:_SENTENCES]:
        lines.append(f"    {evidence.source}, characters {evidence.start}-{evidence.end}:")
        lines.append(f"      {' '.join(evidence.text.split())}")
    return "\n".join(lines)
