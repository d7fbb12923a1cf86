"""The task of a model that names proposals and judges whether the ontology has them."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from kpyramid.llm.prompts import read_prompts, write_system
from kpyramid.llm.task import (
    GUARD,
    Expected,
    FailureKind,
    ReplyError,
    Strict,
    Task,
    flatten,
    parse_json,
    strict_schema,
)

PROMPT = read_prompts(__file__)["naming"]
_PHRASES = 5
_CHARACTERS = 160
"""Most characters of a wording, a definition or a fact in a prompt."""
_flatten = partial(flatten, most=_CHARACTERS)
_LONGEST_NAME = 48
_MOST_WORDS = 6
_DEFINITION = (12, 300)
"""Least and most characters of a definition."""
_NAME = re.compile(r"[^\W\d_][\w'’/-]*(?: [\w'’/-]+)*")


@dataclass(frozen=True, slots=True)
class Known:
    """A class or property of the ontology, in words; `ends` are empty for a class."""

    iri: str
    label: str
    ends: str
    comment: str


@dataclass(frozen=True, slots=True)
class Nameless:
    """A proposal in words; `nearest`: IRIs of the terms for which it may be another name."""

    kind: Literal["class", "property"]
    label: str
    ends: str
    phrases: tuple[str, ...]
    facts: tuple[str, ...]
    nearest: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str, str]:
        """Its identity in every round, independent of the ontology."""
        return (self.kind, self.label, self.ends)


@dataclass(frozen=True, slots=True)
class Named:
    """A model's answer on a proposal; `existing` is an IRI, or None where the verdict is "new"."""

    name: str
    definition: str
    verdict: Literal["new", "same", "part"]
    existing: str | None


class _Named(Strict):
    proposal: int
    thought: str
    verdict: Literal["new", "same", "part"]
    existing: int | None
    name: str
    definition: str


class _Reply(Strict):
    proposals: list[_Named]


def show_proposals(batch: Sequence[Nameless], known: Mapping[str, Known]) -> str:
    """The proposals as a model is shown them; `known`: their nearest terms by IRI."""
    listed = _list_known(batch)
    lines = ["The ontology has"]
    for number, iri in enumerate(listed, 1):
        entry = known[iri]
        comment = f": {_flatten(entry.comment)}" if entry.comment else ""
        lines.append(f"{number}. {_flatten(entry.label)}{_show_ends(entry.ends)}{comment}")
    for number, proposal in enumerate(batch, 1):
        near = [listed.index(iri) + 1 for iri in proposal.nearest]
        lines += [
            "",
            f"Proposal {number}: a {proposal.kind}{_show_ends(proposal.ends)}",
            "Wordings: " + "; ".join(_flatten(text) for text in proposal.phrases[:_PHRASES]),
            *(f"- {_flatten(fact)}" for fact in proposal.facts),
            f"Compare with: {', '.join(map(str, near)) or 'nothing'}",
        ]
    return "\n".join(lines)


def parse_names(content: str, batch: Sequence[Nameless]) -> dict[int, Named]:
    """The answers of a reply by a proposal's index in the batch; some may be missing.

    Raises:
        ReplyError: it is no JSON of the schema, or refers to an entry that was not listed.
    """
    listed = _list_known(batch)
    names: dict[int, Named] = {}
    for entry in parse_json(content, _Reply).proposals:
        if not 0 < entry.proposal <= len(batch):
            raise ReplyError(FailureKind.INVALID, f"there is no proposal {entry.proposal}")
        existing = None
        if entry.verdict != "new":
            if entry.existing is None or not 0 < entry.existing <= len(listed):
                raise ReplyError(FailureKind.INVALID, f"there is no entry {entry.existing}")
            existing = listed[entry.existing - 1]
        name, definition = (" ".join(words.split()) for words in (entry.name, entry.definition))
        name = name.rstrip(".")
        name = name[:1].lower() + name[1:] if name[1:2].islower() else name
        names.setdefault(entry.proposal - 1, Named(name, definition, entry.verdict, existing))
    return names


def find_fault(named: Named, known: Collection[str]) -> str | None:
    """The reason why an answer cannot be used, or None; `known`: the IRIs that it may name."""
    if named.existing is not None and named.existing not in known:
        return "it was compared with what it does not fit"
    if named.verdict == "same":
        return None
    if not _NAME.fullmatch(named.name):
        return f"{named.name!r} is no name"
    if len(named.name) > _LONGEST_NAME or len(named.name.split()) > _MOST_WORDS:
        return f"{named.name!r} is too long for a name"
    least, most = _DEFINITION
    if not least <= len(named.definition) <= most:
        return f"the definition of {named.name!r} has {len(named.definition)} characters"
    return None


def _list_known(batch: Sequence[Nameless]) -> list[str]:
    """IRIs in the order of their numbers."""
    return sorted({iri for proposal in batch for iri in proposal.nearest})


def _show_ends(ends: str) -> str:
    return f" ({_flatten(ends)})" if ends else ""


TASK = Task(
    name="naming",
    version=1,
    stage="complete",
    reply=_Reply,
    system=lambda settings: write_system(
        PROMPT, settings.cascade.domain, settings.cascade.language
    ),
    is_asked=lambda settings: settings.complete.naming == "llm",
    shaping=(
        PROMPT["instructions"],
        GUARD,
        PROMPT["example"],
        _PHRASES,
        _CHARACTERS,
        strict_schema(_Reply),
    ),
    # .025 batches per chunk on the demo's 204 chunks.
    expected=Expected(reply=0.7, per_chunk=0.02, characters=4_500, spread=(0.0, 4.0)),
    without='complete.naming = "rules": names and definitions of proposals; the proposals stay',
)
