"""Proposals beside what exists: other names, parts, and inverses."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kpyramid.completion.types import Proposal
from kpyramid.embeddings.checked import embed_finite
from kpyramid.embeddings.port import Embedder
from kpyramid.ontology.names import THING
from kpyramid.ontology.schema import OntologyProperty, Schema
from kpyramid.paraphrase.comparing import Comparer, Reading

_NEAREST = 5
"""Phrases of the ontology with which a proposal is compared, by cosine."""
_COMPARED = 60
"""Proposals, the best first, among which inverses are looked for."""


_TURNING = frozenset({"from", "against", "until", "before", "after"})
"""Last words that make another relation of the words before them: `transferred from`."""


def name_meaning(reading: Reading) -> str | None:
    """What tells a wording from others however near: its meaning with what alters it, or None.

    `mayor of` and `former mayor of` have two names; so has what ends in `from` or the like.
    """
    altered = [*sorted(reading.qualities), *(["not"] if reading.negated else [])]
    if reading.meaning:
        return " ".join([reading.meaning, *altered])
    turning = reading.key.rpartition(" ")[2] in _TURNING
    return " ".join([reading.key, *altered]) if turning or altered else None


def place_beside(
    proposals: Sequence[Proposal], schema: Schema, *, similarity: float, embedder: Embedder
) -> list[Proposal]:
    """The properties with `existing`, `splits` or `inverse` where the ontology has the like.

    Another name: a wording that means the same of ends that fit, or one as near as `similarity`
    where the meaning of one is not known. A part: one that says more, of the same kind of subject.
    """
    pairs = [(p, phrase) for p in schema.properties for phrase in (p.label, *p.alt_labels)]
    comparer = Comparer(embedder)
    if not pairs or not proposals:
        return list(proposals)
    known = embed_finite(embedder, [phrase for _, phrase in pairs])
    own = embed_finite(embedder, [proposal.label for proposal in proposals])
    placed = []
    for proposal, vector in zip(proposals, own, strict=True):
        cosines = np.round(known @ vector, 6)
        nearest = np.argsort(-cosines, kind="stable")[:_NEAREST].tolist()
        near = [(*pairs[at], float(cosines[at])) for at in nearest]
        placed.append(_place(proposal, near, schema, similarity, comparer))
    return placed


def _place(
    proposal: Proposal,
    near: Sequence[tuple[OntologyProperty, str, float]],
    schema: Schema,
    similarity: float,
    comparer: Comparer,
) -> Proposal:
    if proposal.kind == "class":
        return proposal
    own = comparer.read(proposal.label)
    for prop, phrase, cosine in near:
        verdict = comparer.compare(proposal.label, phrase)
        same = verdict.likeness == "equivalent"
        other = comparer.read(phrase)
        unknown = None in (name_meaning(own), name_meaning(other))
        alike = verdict.likeness == "different" and cosine >= similarity and unknown
        if same and verdict.turned:
            if turned := _turn(proposal, prop, phrase, schema):
                return turned
            continue
        if same or alike:
            why = f"says “{phrase}”" if same else f"cosine {cosine:.2f} to “{phrase}”"
            if _fits_ends(proposal, prop, schema):
                return replace(proposal, existing=prop.iri, notes=(why,))
        narrower = verdict.likeness == "narrower" and not verdict.turned
        part = narrower or _is_past_of(own, other)
        if part and schema.is_subclass(proposal.domain, prop.domain):
            why = f"is a case of “{phrase}” ({prop.label})"
            return replace(proposal, splits=prop.iri, notes=(why,))
    return proposal


def _turn(
    proposal: Proposal, prop: OntologyProperty, phrase: str, schema: Schema
) -> Proposal | None:
    """The proposal as what a property reads from its other end; None where the ends forbid it.

    Where that has a property, it is another name for it. A new inverse needs the same ends: a
    narrower one would say of all that the property holds of that it is of the narrower class.
    """
    why = f"reads “{phrase}” from the other end"
    opposite = schema.property_by_iri.get(prop.inverse_of or "")
    if opposite is not None and _fits_ends(proposal, opposite, schema):
        return replace(proposal, existing=opposite.iri, notes=(why,))
    if opposite is None and (proposal.domain, proposal.range or THING) == (prop.range, prop.domain):
        return replace(proposal, inverse=prop.iri, notes=(why,))
    return None


def _is_past_of(own: Reading, other: Reading) -> bool:
    """Whether one says of the past what the other says of any time: `is a former member of`."""
    same = own.key == other.key or (own.meaning is not None and own.meaning == other.meaning)
    alike = (own.turned, own.negated) == (other.turned, other.negated)
    return same and alike and own.qualities - other.qualities == {"former"}


def _fits_ends(proposal: Proposal, prop: OntologyProperty, schema: Schema) -> bool:
    """Whether each end is of the property's class, above or below it."""
    ends = (proposal.domain, prop.domain), (proposal.range or THING, prop.range)
    return all(
        one == THING or schema.is_subclass(one, other) or schema.is_subclass(other, one)
        for one, other in ends
    )


def pair_inverses(proposals: Sequence[Proposal], embedder: Embedder) -> list[Proposal]:
    """The proposals, the later of two that read the other way with the label of the earlier."""
    comparer = Comparer(embedder)
    found = list(proposals)
    for at, later in enumerate(found[:_COMPARED]):
        if later.kind == "class" or later.existing or later.inverse:
            continue
        for earlier in found[:at]:
            if earlier.kind == "class" or earlier.existing:
                continue
            if (earlier.range, earlier.domain) == (later.domain, later.range):
                verdict = comparer.compare(later.label, earlier.label)
                if verdict.likeness == "equivalent" and verdict.turned:
                    why = f"reads “{earlier.label}” from the other end"
                    found[at] = replace(later, inverse=earlier.label, notes=(why,))
                    break
    return found
