"""Proposals named by a model, which also judges whether the ontology has them already."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

import numpy as np

from kpyramid.completion.task import (
    PROMPT,
    TASK,
    Known,
    Named,
    Nameless,
    find_fault,
    parse_names,
    show_proposals,
)
from kpyramid.completion.types import GraphLayer, Proposal
from kpyramid.embeddings.port import Embedder
from kpyramid.graph.synonyms.comparison import Comparer
from kpyramid.llm.caller import BatchAsker, Loss, cut_batches
from kpyramid.llm.prompts import write_system
from kpyramid.llm.task import Failure, FailureKind
from kpyramid.ontology.names import THING
from kpyramid.ontology.proposals import name_class, name_range, show_ends
from kpyramid.ontology.schema import OntologyClass, OntologyProperty, Schema, Term

MOST = 60
"""Most proposals named in a round, the best first; a person reviews no more at a time."""
BATCH = 10
"""Proposals in a request; their descriptions have about 1,200 tokens."""
_NEAREST = 5
"""Classes or properties with which a proposal is compared."""
_FACTS = 3
_WAITING = frozenset({FailureKind.PENDING, FailureKind.DEFERRED})

_Place = tuple[str, str]
"""A kind, and a name in small letters."""


@dataclass(frozen=True, slots=True)
class Naming:
    """Proposals in the order given, with the names of a model.

    `judged`: indices of those that the model, not the rules, classified as an alias or a part.
    """

    proposals: tuple[Proposal, ...]
    judged: frozenset[int]
    losses: tuple[Loss, ...]


@dataclass(slots=True, eq=False)
class Namer(BatchAsker):
    """Names the proposals of one run; a proposal named in one round is not asked about again.

    `model`: its name, for notes. `foresees`: in a plan, later rounds continue with the rules' names
    while the model's are pending.
    """

    model: str
    foresees: bool = False
    _answers: dict[tuple[str, str, str], Named | None] = field(default_factory=dict, init=False)
    _given: dict[_Place, object] = field(default_factory=dict, init=False)
    _waits: bool = field(default=False, init=False)

    def name(
        self, proposals: Sequence[Proposal], graph: GraphLayer, schema: Schema, embedder: Embedder
    ) -> Naming:
        """Names, definitions and verdicts for the proposals that the rules did not find to exist.

        A proposal that the model judges "same" becomes another name only where the rules have no
        doubt and each wording means the same as the label or the property; else a person decides.
        A missing or wrong name leaves the rules' name, and is a loss. While answers of one round
        are pending, later rounds ask nothing, since they depend on them.

        Raises:
            BudgetError, EndpointError: no further call can be made; earlier answers remain.
        """
        chosen = [index for index, p in enumerate(proposals) if p.existing is None][:MOST]
        described = _describe([proposals[index] for index in chosen], graph, schema, embedder)
        fresh = [item for item in described if item.key not in self._answers]
        losses = [] if self._waits else self._ask(fresh, schema)
        made, judged, comparer = list(proposals), set(), Comparer(embedder)
        owners: dict[_Place, object] = {**_list_names(schema), **self._given}
        for item in described:
            owners.setdefault((item.kind, item.label.casefold()), item.key)
        for proposal in proposals:
            owners.setdefault((proposal.kind, proposal.label.casefold()), proposal)
        for index, item in zip(chosen, described, strict=True):
            named = self._answers.get(item.key)
            if named is None:
                continue
            renamed = named.verdict != "same"
            place = (item.kind, named.name.casefold())
            known = {iri: _show_known(iri, schema).label for iri in item.nearest}
            fault = find_fault(named, known)
            if not fault and renamed and owners.get(place, item.key) != item.key:
                fault = f"{named.name!r} is the name of something else"
            if fault is None:
                doubt = _find_doubt(proposals[index], named, schema, comparer)
                made[index] = proposal = _apply(named, proposals[index], known, self.model, doubt)
                if renamed:
                    self._given[place] = owners[place] = item.key
                if proposal.existing or proposal.splits:
                    judged.add(index)
            else:
                losses.append(Loss("llm_invalid", item.label, f"{fault}; the rules' name stays"))
                self._answers[item.key] = None
        return Naming(tuple(made), frozenset(judged), tuple(losses))

    def _ask(self, fresh: Sequence[Nameless], schema: Schema) -> list[Loss]:
        """Asks for the names of proposals without an answer; those that get none are losses."""
        known = {iri: _show_known(iri, schema) for item in fresh for iri in item.nearest}
        batches = cut_batches(fresh, name=lambda i: "\n".join(i.key), weigh=lambda _: 1, size=BATCH)
        system = write_system(PROMPT, self.domain, self.language)
        show = partial(show_proposals, known=known)
        losses = []
        for batch, answer in self.ask_batches(batches, TASK, system, show, parse_names):
            names = {} if isinstance(answer, Failure) else answer
            self._answers.update((item.key, names.get(index)) for index, item in enumerate(batch))
            if isinstance(answer, Failure):
                self._waits |= answer.kind in _WAITING and not self.foresees
                left = "; ".join(item.label for item in batch)
                losses.append(Loss.of(answer, f"named by the rules: {left}"))
            losses += [
                Loss("llm_invalid", item.label, "the reply leaves it out; the rules' name stays")
                for index, item in enumerate(batch)
                if names and index not in names
            ]
        return losses


def _describe(
    proposals: Sequence[Proposal], graph: GraphLayer, schema: Schema, embedder: Embedder
) -> list[Nameless]:
    nearest = _find_nearest(proposals, schema, embedder)
    described = []
    for proposal, near in zip(proposals, nearest, strict=True):
        ends = name_class(proposal.domain, schema)
        if proposal.range is not None:
            ends += f" → {name_range(proposal.range, schema)}"
        others = [text for text in proposal.phrases if text != proposal.label]
        phrases = (proposal.label, *others)
        facts = tuple(_pick_facts(proposal.facts, graph))
        described.append(Nameless(proposal.kind, proposal.label, ends, phrases, facts, near))
    return described


def _pick_facts(places: Sequence[int], graph: GraphLayer) -> Iterable[str]:
    """The first fact of each wording, then further facts, at most `_FACTS` in all."""
    first = {graph.wordings[place]: place for place in reversed(places)}
    order = sorted(places, key=lambda place: place != first[graph.wordings[place]])
    for place in order[:_FACTS]:
        yield f"{graph.heads[place]} | {graph.wordings[place]} | {graph.tails[place]}"


def _find_nearest(
    proposals: Sequence[Proposal], schema: Schema, embedder: Embedder
) -> list[tuple[str, ...]]:
    """IRIs of the nearest terms of the same kind and with fitting ends, for each proposal."""
    terms: dict[str, Sequence[Term]] = {"class": schema.classes, "property": schema.properties}
    labels = {
        kind: [(t.iri, text) for t in terms[kind] for text in (t.label, *t.alt_labels)]
        for kind in sorted({p.kind for p in proposals})
    }
    known = {kind: embedder.embed([text for _, text in pairs]) for kind, pairs in labels.items()}
    nearest = []
    for proposal, vector in zip(
        proposals, embedder.embed([p.label for p in proposals]), strict=True
    ):
        pairs = labels[proposal.kind]
        cosines = np.round(known[proposal.kind] @ vector, 6).tolist() if pairs else []
        near = sorted(zip(cosines, pairs, strict=True), key=lambda pair: (-pair[0], pair[1][0]))
        props = schema.property_by_iri
        order = dict.fromkeys(iri for _, (iri, _) in near)
        fitting = (i for i in order if i not in props or _fits(proposal, props[i], schema))
        nearest.append(tuple(islice(fitting, _NEAREST)))
    return nearest


def _fits(proposal: Proposal, prop: OntologyProperty, schema: Schema) -> bool:
    """Whether a value could belong to both."""
    if not schema.may_share(proposal.domain, prop.domain):
        return False
    known = proposal.range in schema.class_by_iri or proposal.range == THING
    if prop.is_datatype or not known:
        return prop.is_datatype and not known
    return schema.may_share(str(proposal.range), prop.range)


def _show_known(iri: str, schema: Schema) -> Known:
    cls = schema.class_by_iri.get(iri)
    if cls is not None:
        return Known(iri, cls.label, "", cls.comment)
    prop = schema.property_by_iri[iri]
    return Known(iri, prop.label, show_ends(prop, schema), prop.comment)


def _list_names(schema: Schema) -> dict[_Place, object]:
    """The IRI of each label and alternative label of the ontology."""
    return {
        ("class" if isinstance(term, OntologyClass) else "property", text.casefold()): term.iri
        for term in schema.term_by_iri.values()
        for text in (term.label, *term.alt_labels)
    }


def _find_doubt(proposal: Proposal, named: Named, schema: Schema, comparer: Comparer) -> str:
    """The reason why a person has to confirm that a property is the one named by the model."""
    prop = schema.property_by_iri.get(named.existing or "")
    if named.verdict != "same" or prop is None or proposal.doubt:
        return proposal.doubt
    if proposal.splits or proposal.inverse:
        return "by the rules it says another thing"
    names = (prop.label, *prop.alt_labels)
    for wording in proposal.phrases:
        verdicts = [comparer.compare(wording, name) for name in (proposal.label, *names)]
        if any(verdict.likeness == "contrary" or verdict.turned for verdict in verdicts):
            return f"“{wording}” says the contrary, or reads from the other end"
        if not any(verdict.likeness == "equivalent" for verdict in verdicts):
            return f"“{wording}” may say something else"
    return ""


def _apply(
    named: Named, proposal: Proposal, known: Mapping[str, str], model: str, doubt: str
) -> Proposal:
    """The proposal with the model's name and verdict; `known`: labels by IRI."""
    existing = named.existing or ""
    if named.verdict == "same":
        note = f"{model}: another name for {known[existing]!r}"
        notes, same = (*proposal.notes, note), None if doubt else existing
        return replace(proposal, existing=same, doubt=doubt, notes=notes)
    splits, notes = proposal.splits, proposal.notes
    if named.name != proposal.label:
        notes = (*notes, f"{model} named it; by the rules {proposal.label!r}")
    if named.verdict == "part" and proposal.kind == "property":
        splits, notes = existing, (*notes, f"{model}: a part of {known[existing]!r}")
    return replace(
        proposal, label=named.name, definition=named.definition, splits=splits, notes=notes
    )
