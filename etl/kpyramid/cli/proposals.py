"""`kpyramid proposals`: what completion suggests for the ontology, and a person's word on it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kpyramid.cli.render import Result, list_blocks, name_values
from kpyramid.errors import SettingsError

if TYPE_CHECKING:
    from kpyramid.completion.decisions import Decisions
    from kpyramid.settings import Settings
    from kpyramid.snapshot.proposals import Listed
    from kpyramid.snapshot.snapshot import Snapshot

State = Literal["open", "accepted", "alias", "rejected"]


def _word_proposals(snapshot: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The lines by which a person decides; with definitions and wordings if sentences are shown."""
    if not rows:
        yield f"Snapshot {snapshot} has no such proposals."
    names = {"short": "id", "label": "label", "kind": "kind", "stands": "state", "support": "facts"}
    names |= dict.fromkeys(("agreement", "score", "note"), "")
    explained = ("definition", "splits", "inverse_of", "phrases", "sentences")
    shown = [
        {
            **{named or name: row[name] for name, named in names.items()},
            "below" if row["kind"] == "class" else "ends": " -> ".join(row["ends"]),
            "examples": [*row["examples"]],
            **{name: row[name] for name in explained if "sentences" in row},
        }
        for row in rows
    ]
    yield from list_blocks(shown)


def proposals(
    *,
    accept: list[str] | None = None,
    reject: list[str] | None = None,
    label: str | None = None,
    note: str = "",
    state: State | None = None,
    decisions: Path | None = None,
    opened: "Snapshot",
    loaded: "Settings",
    verbose: bool,
) -> Result:
    """List the classes and properties that completion proposes; accept or reject them.

    A build proposes classes and properties that are frequent in the graph and missing from the
    ontology. It accepts clear ones itself; the others are open: list them, decide, build again. A
    class is shown with its parent, a property with the classes of its ends, both with id, state,
    support and examples. Decisions that no build has read yet are shown beside the state.
    With --json all are listed. Proposals that only documents with labels support are shown with
    --access or --everything.

    --accept makes the next build add a proposal to the ontology, with its instances and its
    prerequisites, such as a proposed class that is a property's domain. --reject keeps it out from
    the next build on, even one accepted by rules, and every proposal with the same label or half of
    its wordings.
    Decisions are stored in a TOML file, for review and version control; the settings name it:
    [complete] decisions = 'proposals.toml'. To change a decision, edit or remove its entry.

    Examples: kpyramid proposals --state open -v; kpyramid proposals --accept 3f9c --label 'reigned
    in' --decisions proposals.toml; kpyramid proposals --reject 77ab --note 'says nothing'

    `accept`: id of a proposal, or a unique beginning of it; repeatable.
    `reject`: likewise.
    `label`: another name for the accepted proposal; its instances still come from its wordings.
    `note`: the reason, which is stored in the file.
    `state`: list only proposals with this state.
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
    rows = []
    for p in listed:
        if state in (None, p.state):
            row = {**asdict(p), "decision": _read_word(p, decided)}
            row["stands"] = _word_state(p, row["decision"], decided)
            if verbose:
                places = dict.fromkeys(place for key in p.facts for place in opened.evidence(key))
                row["sentences"] = [asdict(place) for place in places]
            rows.append(row)
    words = _word_proposals(opened.id, rows)
    return name_values(snapshot=opened.id, proposals=rows, words=words)


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
) -> Result:
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
        notes.append("Then run `kpyramid build CORPUS` again; only the later stages are computed.")
    return name_values(
        file=str(path), decided=decided.done, unchanged=decided.unchanged, notes=notes
    )


def _read_word(p: "Listed", decisions: "Decisions") -> str | None:
    """The decision of the file on a proposal in the next build: accept, reject or None.

    A proposal similar to an accepted entry becomes another name for it if it fits.
    """
    exact = decisions.find_written_for(asdict(p))
    entry = exact or decisions.find(p.kind, p.label, p.phrases)
    return entry.decision if entry and (exact or entry.decision == "reject") else None


def _word_state(p: "Listed", word: str | None, decisions: "Decisions") -> str:
    """The state of a proposal, and the effect of the decisions file on it."""
    waits = {("accept", "open"), ("accept", "rejected"), ("reject", "open")}
    waits |= {("reject", "accepted"), ("reject", "alias")}
    if word is not None and (word, p.state) in waits:
        return f"{p.state}, to {word} by the next build"
    if p.decided_by != "rules":
        return f"{p.state} by {p.decided_by}"
    like = decisions.find(p.kind, p.label, p.phrases)
    if word is None and like is not None and p.state == "open":
        return f"{p.state}, beside {like.label!r}, which the file accepts"
    return p.state
