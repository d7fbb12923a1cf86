"""The proposals of completion in a snapshot, in words for a person who decides."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.errors import InputError
from kpyramid.ontology.names import THING, XSD
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.storage.contracts import map_column

_EXAMPLES = 3
_ORDER = ("open", "accepted", "alias", "rejected")
_SHORT = 8
"""Digits of an id that are shown; where two proposals begin alike, it takes more of them."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A row of `proposals` for a person.

    `short`: the beginning of its id. `ends`: labels of domain and range.
    `examples`: some of its facts, `head | relation | tail`; `facts`: the condensed facts that stand
    for these.
    """

    proposal_id: str
    short: str
    state: str
    kind: str
    label: str
    definition: str
    iri: str
    domain: str
    range: str | None
    inverse_of: str | None
    splits: str | None
    ends: tuple[str, ...]
    phrases: tuple[str, ...]
    support: int
    score: float
    agreement: float
    round: int
    decided_by: str
    note: str
    examples: tuple[str, ...]
    facts: tuple[str, ...]


def list_proposals(snapshot: Snapshot) -> list[Listed]:
    """All proposals of a snapshot, the undecided ones first, then the best first."""
    rows = snapshot.table("proposals").to_pylist()
    labels = {entry.iri: entry.label for entry in snapshot.schema.classes}
    labels |= {row["iri"]: row["label"] for row in rows if row["state"] != "alias"}
    keys = {key for row in rows for key in row["triple_ids"][:_EXAMPLES]}
    words, facts = _word_facts(snapshot, keys), _find_condensed(snapshot, keys)
    listed = []
    for row in rows:
        some = row.pop("triple_ids")[:_EXAMPLES]
        examples = tuple(words[key] for key in some)
        shown = tuple(dict.fromkeys(facts[key] for key in some if key in facts))
        ends = tuple(_name(iri, labels) for iri in (row["domain"], row["range"]) if iri)
        phrases, short = tuple(row.pop("phrases")), _digits(row["proposal_id"])[:_SHORT]
        made = Listed(
            **row, short=short, ends=ends, phrases=phrases, examples=examples, facts=shown
        )
        listed.append(made)
    return sorted(listed, key=lambda p: (_ORDER.index(p.state), -p.score, p.label, p.proposal_id))


def find_proposal(words: str, listed: Iterable[Listed]) -> Listed:
    """The proposal whose id begins with some digits, with or without `proposal-`.

    Raises:
        InputError: no id or several ids begin so; names them.
    """
    everything = list(listed)
    start = words.strip().lower().removeprefix("proposal-")
    matching = [p for p in everything if start and _digits(p.proposal_id).startswith(start)]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        raise InputError(
            f"no proposal of this snapshot has an id that begins with {words!r}; "
            "`kpyramid proposals` shows them"
        )
    several = ", ".join(f"{p.proposal_id} ({p.label})" for p in matching)
    raise InputError(f"{words!r} may be {several}; give more digits")


def _digits(proposal_id: str) -> str:
    return proposal_id.removeprefix("proposal-")


def _name(iri: str, labels: Mapping[str, str]) -> str:
    if iri == THING:
        return "anything"
    return labels.get(iri, iri.removeprefix(XSD))


def _find_condensed(snapshot: Snapshot, keys: Collection[str]) -> dict[str, str]:
    """The condensed facts that stand for some triples, by the triple."""
    rows = snapshot.table("condensed").select(["condensed_id", "derived_from"]).to_pylist()
    return {key: row["condensed_id"] for row in rows for key in row["derived_from"] if key in keys}


def _word_facts(snapshot: Snapshot, keys: Iterable[str]) -> dict[str, str]:
    """Triples in words, by id."""
    triples, name = snapshot.table("triples"), snapshot.names
    wanted = pa.array(sorted(set(keys)), pa.string())
    relation = map_column(snapshot.table("relations"), "relation_id", "name")
    rows = triples.filter(pc.is_in(triples["triple_id"], value_set=wanted)).to_pylist()
    return {
        row["triple_id"]: f"{name[row['head_id']]} | {relation[row['relation_id']]} | "
        f"{name[row['tail_id']] if row['tail_id'] else row['literal']}"
        for row in rows
    }
