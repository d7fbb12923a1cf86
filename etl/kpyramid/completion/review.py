"""Decisions on proposals, written into the decisions file."""

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from kpyramid.completion.decisions import (
    Decision,
    Decisions,
    Index,
    add_decision,
    parse_decisions,
    read_text,
)
from kpyramid.errors import InputError
from kpyramid.ontology.proposals import Row, coin_iri
from kpyramid.ontology.schema import Schema
from kpyramid.settings import CompleteSettings


@dataclass
class Decided:
    """The file's new text, and the result for each proposal: kind, label, IRI and action."""

    text: str
    done: list[dict[str, str]] = field(default_factory=list)
    unchanged: list[dict[str, str]] = field(default_factory=list)


def find_file(given: Path | None, settings: CompleteSettings) -> Path | None:
    """The decisions file: the one given, else that of the settings, else None."""
    if given is not None:
        return given
    return None if settings.decisions is None else Path(settings.decisions)


def read_file(path: Path | None) -> tuple[str, Decisions]:
    """A file's text and entries; both empty where the file does not exist yet.

    Raises:
        InputError: the file cannot be read, or contradicts itself.
    """
    text = read_text(path) if path is not None and path.exists() else ""
    return text, parse_decisions(text, str(path or "no decisions file"))


@contextmanager
def hold_file(path: Path) -> Iterator[None]:
    """Locks the folder of a decisions file, waiting until no other process holds the lock.

    The folder is locked, since the file is replaced as a whole; it is created if missing.
    """
    folder = path.resolve().parent
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def decide(
    decision: Literal["accept", "reject"],
    chosen: Sequence[Row],
    rows: Iterable[Row],
    schema: Schema,
    text: str,
    decisions: Decisions,
    *,
    label: str | None = None,
    note: str = "",
) -> Decided:
    """The file's text with a decision on each of the chosen rows added.

    Accepting a proposal also accepts those it depends on: classes that are its ends, a property
    that it splits or inverts. `rows`: all proposals of the snapshot; `schema`: its ontology;
    `label`: a new name.

    Raises:
        InputError: an entry of the file has to be changed by hand, or something else has the new
            label.
    """
    by_iri = {str(row["iri"]): row for row in rows if row["state"] != "alias"}
    writer = _Writer(Decided(text), decisions, by_iri, schema)
    for row in chosen:
        writer.decide(decision, row, label, note)
    return writer.decided


@dataclass
class _Writer:
    decided: Decided
    decisions: Decisions
    by_iri: Mapping[str, Row]
    schema: Schema
    _open: set[str] = field(default_factory=set)

    def decide(
        self, decision: Literal["accept", "reject"], row: Row, label: str | None, note: str
    ) -> None:
        entry = self.decisions.find_written_for(row)
        if entry is not None:
            self._confirm(entry, decision, row, label)
        elif decision == "accept" and row["state"] == "alias":
            self._keep(row, f"another name for <{row['iri']}>, which has its wordings already")
        elif decision == "accept":
            self._accept(row, label, note)
        else:
            self._add(_make_entry("reject", row, {}, note=note), row, "rejected")

    def _confirm(self, entry: Decision, decision: str, row: Row, label: str | None) -> None:
        place = self.decisions.name_place(entry)
        if label is not None and label != entry.label:
            raise InputError(f"{place} decides on it already; write label = {label!r} there")
        if entry.decision != decision:
            raise InputError(
                f'{place} has decision = "{entry.decision}"; write "{decision}" there by hand'
            )
        self._keep(row, f"decided so already: {place}")

    def _accept(self, row: Row, label: str | None, note: str) -> None:
        values: dict[str, str] = {"iri": str(row["iri"])}
        if label is not None and label != row["label"]:
            self._require_free(row, label)
            taken = {*self.by_iri, *self.schema.term_by_iri}
            iri = coin_iri(str(row["kind"]), label, self.schema.base, taken)
            values |= {"label": label, "iri": iri}
        values |= self._accept_needed(row)
        self._add(_make_entry("accept", row, values, note=note), row, "accepted")

    def _require_free(self, row: Row, label: str) -> None:
        """Raises an InputError where a class, property or entry of the kind has the label."""
        kind = str(row["kind"])
        terms = self.schema.classes if kind == "class" else self.schema.properties
        others = [term for term in terms if term.iri != row["iri"]]
        same = Index(((kind, term.label, ()), term) for term in others).find((kind, label, ()))
        entry = self.decisions.find(kind, label, ())
        if same:
            whose = f"the {kind} {same[0].label!r} of the ontology, <{same[0].iri}>"
        elif entry is not None and entry.is_called(label):
            whose = self.decisions.name_place(entry)
        else:
            return
        raise InputError(f"--label {label!r} is the label of {whose}, already; give another one")

    def _accept_needed(self, row: Row) -> dict[str, str]:
        """Accepts the proposals on which a row depends; returns their new IRIs by column."""
        self._open.add(str(row["iri"]))
        values: dict[str, str] = {}
        for name in ("domain", "range", "splits", "inverse_of"):
            needed = self.by_iri.get(str(row[name]))
            if needed is None:
                continue
            entry = self.decisions.find_written_for(needed)
            if entry is not None and entry.decision == "accept":
                values[name] = entry.iri or str(needed["iri"])
            elif name == "inverse_of" and (
                needed["state"] != "accepted" or entry or needed["iri"] in self._open
            ):
                values[name] = ""  # the inverse is stated once, in the entry accepted last
            elif entry is not None:
                raise InputError(
                    f"{row['label']} depends on {needed['label']}, which "
                    f"{self.decisions.name_place(entry)} rejects; remove that entry first"
                )
            else:
                self._accept(needed, None, "")
        return values

    def _add(self, entry: Decision, row: Row, how: str) -> None:
        renamed = f", called {entry.label!r}" if entry.label != row["label"] else ""
        self.decided.text = add_decision(self.decided.text, entry)
        self.decisions = parse_decisions(self.decided.text, self.decisions.source)
        self.decided.done.append(_say(row, entry.iri, how + renamed))

    def _keep(self, row: Row, how: str) -> None:
        self.decided.unchanged.append(_say(row, None, how))


def _make_entry(
    decision: Literal["accept", "reject"], row: Row, values: Mapping[str, str], *, note: str
) -> Decision:
    names = ("label", "domain", "range", "definition", "inverse_of", "splits")
    values_by_name = {**{name: cast("str", row[name]) for name in names}, **values}
    given = {name: value for name, value in values_by_name.items() if value}
    return Decision(
        decision=decision,
        kind=cast("Literal['class', 'property']", row["kind"]),
        phrases=tuple(cast("Sequence[str]", row["phrases"])),
        note=note,
        **given,
    )


def _say(row: Row, iri: str | None, how: str) -> dict[str, str]:
    shown = {name: str(row[name]) for name in ("proposal_id", "kind", "label", "iri")}
    return {**shown, "iri": iri or shown["iri"], "how": how}
