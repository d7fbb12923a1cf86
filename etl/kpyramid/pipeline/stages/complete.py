"""Complete: frequent relations of the graph that the ontology lacks become classes, properties.

PolyRAG §III-B: both layers' phrases in one space, a Gaussian per layer, a priority per phrase,
k-medoids over the priority region, a proposal per cluster, instances of what is accepted. Each
round compares the graph with what the ontology has grown to.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.completion.clusters import name_relation, says_something
from kpyramid.completion.decisions import Decisions, Index, Suggestion
from kpyramid.completion.naming import Namer
from kpyramid.completion.nouns import find_filing
from kpyramid.completion.proposals import (
    LEAST,
    find_kind,
    is_naming,
    is_vague,
    name_property,
    propose,
    says_being,
)
from kpyramid.completion.types import Completion, Layers, OntologyLayer, Pair, Phrases, Proposal
from kpyramid.documents.words import normalise_relation
from kpyramid.embeddings.port import Embedder
from kpyramid.graph.synonyms.comparison import Comparer
from kpyramid.keys import content_id
from kpyramid.numerics.moments import round_digits
from kpyramid.ontology.constraints import Constraint, Rules
from kpyramid.ontology.literals import DATATYPES
from kpyramid.ontology.names import THING, XSD
from kpyramid.ontology.population.checking import Candidate, Kinds, Named
from kpyramid.ontology.population.conflicts import Finding, Loss
from kpyramid.ontology.proposals import (
    adopt_proposals,
    coin_iri,
    identify_proposal,
    name_by_wording,
)
from kpyramid.ontology.schema import OntologyProperty, Schema
from kpyramid.pipeline.stages.instances import (
    Graph,
    NamedTriple,
    index_phrases,
    list_copulas,
    list_known,
    make_instances,
    make_rejects,
    part_rejects,
    read_facts,
    read_findings,
    state_values,
)
from kpyramid.pipeline.stages.tables import (
    Row,
    build_rejects,
    build_table,
    build_vectors,
    make_reject,
)
from kpyramid.settings import CompleteSettings
from kpyramid.storage.columns import BLOCK, TextColumn
from kpyramid.storage.contracts import load_contracts

# The gain of adopting proposals: instances from all facts, and how far the facts agree.


@dataclass(frozen=True, slots=True)
class Gain:
    """Instances and rejects, and the ids of facts that fit what was adopted or contradict it.

    `fitting`, `clashing`: by the IRI of a class or property. `reasons`: of the contradictions.
    """

    made: list[Row]
    rejects: list[Row]
    fitting: Mapping[str, set[str]]
    clashing: Mapping[str, set[str]]
    reasons: Mapping[str, set[str]]


def _name_ends(
    facts: Iterable[NamedTriple], known: Mapping[str, set[str]], filed: Mapping[str, set[str]]
) -> dict[str, Named]:
    """The individuals at the ends of facts by id, with their known classes."""
    ends: dict[str, tuple[str, str]] = {}
    for fact in facts:
        ends[fact.head_id] = fact.head, fact.head_type
        if fact.tail_id is not None:
            ends[fact.tail_id] = fact.tail, fact.tail_type
    nothing: set[str] = set()
    return {
        key: Named(key, *end, frozenset(known.get(key, nothing) | filed.get(key, nothing)))
        for key, end in ends.items()
    }


def _turn(fact: NamedTriple, form: str, turned: bool) -> NamedTriple | None:
    """A fact in the direction of a relation's form; None if a value would be its subject."""
    if not turned:
        return replace(fact, relation=form)
    if fact.tail_id is None:
        return None
    return replace(
        fact,
        relation=form,
        head_id=fact.tail_id,
        head=fact.tail,
        head_type=fact.tail_type,
        tail_id=fact.head_id,
        tail=fact.head,
        tail_type=fact.head_type,
    )


def index_rows(rows: Iterable[Row], grown: Schema) -> dict[str, list[OntologyProperty]]:
    """The properties by normal form of the wordings in `rows`; labels alone are left out."""
    by_form: dict[str, dict[str, OntologyProperty]] = defaultdict(dict)
    for row in rows:  # two rows may name one property
        prop = grown.property_by_iri[row["iri"]]
        first, *others = row["phrases"]
        for form in index_phrases([replace(prop, label=first, alt_labels=tuple(others))]):
            by_form[form][prop.iri] = prop
    return {form: [props[iri] for iri in sorted(props)] for form, props in by_form.items()}


def _group_fitting(candidates: Iterable[Candidate]) -> dict[str, set[str]]:
    fitting: dict[str, set[str]] = defaultdict(set)
    for candidate in candidates:
        iri = candidate.prop.iri if candidate.prop else candidate.class_iri
        fitting[iri].add(candidate.place.source)
    return fitting


def _group_clashing(
    losses: Iterable[Loss],
) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    clashing: dict[str, set[str]] = defaultdict(set)
    reasons: dict[str, set[str]] = defaultdict(set)
    for loss in losses:
        if loss.reason == "low_confidence":  # it speaks against nothing else
            continue
        iri = loss.finding.prop.iri if loss.finding.prop else loss.finding.class_iri
        clashing[iri] |= {place.source for place in loss.finding.places}
        reasons[iri].add(loss.reason.replace("_", " "))
    return clashing, reasons


# The growing ontology: decisions on proposals, adopted ones, and their consequences.

_ADOPTED = ("accepted", "alias")
_DIGITS = 6
_LEAST_SUBJECTS = 3
"""Different subjects, and values, of what rules accept: two are no kind of fact."""
_LEAST_CHUNKS = 3
"""Chunks that state what rules accept: a list in one chunk is no kind of fact either."""
_DEFINED = 0.6, 0.5
"""Least share of a property's subjects with a class in the graph (`X is a …`), to be accepted by
rules and to be left open: types of names alone are too often wrong. The share is lower where few of
the graph's names have such a fact."""
_COLUMN = 4
"""Least cells of a column that make a property where few of its things or values differ."""
_LISTED = 3, 2, 2
"""Facts, different things and chunks of an open proposal: fewer are not worth a review."""


@dataclass
class Growth:
    """An ontology with its instances, and the proposals of all rounds with their states."""

    graph: Graph
    instances: pa.Table
    schema: Schema
    shapes: Sequence[Constraint]
    decisions: Decisions
    settings: CompleteSettings
    comparer: Comparer
    is_open: bool = False
    """Whether the corpus makes the ontology, so that any noun may be an end."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    made: list[Row] = field(default_factory=list)
    additions: list[Row] = field(default_factory=list)
    rejects: list[Row] = field(default_factory=list)
    dropped: dict[tuple[str, ...], str] = field(default_factory=dict)
    """Reason by proposal that is not listed."""

    def __post_init__(self) -> None:
        self._seed = self.schema
        self._known = list_known(self.instances)
        self._there = set(self.instances["instance_id"].to_pylist())

    @property
    def layer(self) -> OntologyLayer:
        """The schema with the values that all instances so far state."""
        table = self.instances.filter(pc.is_valid(self.instances["property_iri"]))
        columns = ("subject_id", "property_iri", "object_id", "literal")
        rows = list(zip(*(table[name].to_pylist() for name in columns), strict=True))
        rows += [
            tuple(row[name] for name in columns)
            for row in self.made
            if row["property_iri"] is not None
        ]
        pairs: list[Pair] = [(subject, item or literal) for subject, _, item, literal in rows]
        return OntologyLayer(
            self.schema,
            [iri for _, iri, _, _ in rows],
            pairs,
            {key: self._pick_class(classes) for key, classes in self._known.items()},
            self.is_open,
        )

    def _pick_class(self, classes: Collection[str]) -> str:
        """The narrowest of an individual's classes, the first of several."""
        above = self.schema.find_ancestors
        return min(classes, key=lambda iri: (-len(above(iri)), iri))

    def adopt_decided(self) -> None:
        """Adopts what the decisions file accepts, whether or not the graph still states it.

        Raises:
            InputError: an entry does not fit the ontology; names it.
        """
        rows = self.decisions.list_accepted(self.schema)
        grown = adopt_proposals(self.schema, rows)
        kinds = self._read_kinds(rows)
        for row in rows:
            row |= {"round": 0, "score": 0.0, "decided_by": "file"}
            row["triple_ids"] = ids = self._find_support(row, grown, kinds)
            row["support"] = len(ids)
        gain = self._find_gain(rows, grown)
        for row in rows:
            row["agreement"] = _share(_about(row, gain.fitting, grown), row)
        self._keep(rows, grown, gain, 0)

    def list_rows(self) -> list[dict[str, Any]]:
        """The proposals of all rounds, with at most `most_open` open ones.

        Open ones are ranked by their number of fitting facts.
        """

        def rank(row: Row) -> tuple[float, str]:
            return -round(row["support"] * row["agreement"], _DIGITS), row["proposal_id"]

        left = sorted((row for row in self.rows if row["state"] == "open"), key=rank)
        out = {row["proposal_id"] for row in left[self.settings.most_open :]}
        return [row for row in self.rows if row["proposal_id"] not in out]

    def list_dropped(self) -> list[Row]:
        """A reject for each proposal that is not listed, with the last round's reason."""
        listed = {identify_proposal(row): row["proposal_id"] for row in self.rows}
        there = {row["proposal_id"] for row in self.list_rows()}
        reasons = {key: why for key, why in self.dropped.items() if key not in listed}
        reasons |= {key: "beyond_most_open" for key, id_ in listed.items() if id_ not in there}
        return [
            make_reject(
                "complete", why, content_id("proposal", *key), " | ".join(filter(None, key))
            )
            for key, why in sorted(reasons.items())
        ]

    def adopt(self, proposals: Sequence[Proposal], number: int, judges: Mapping[int, str]) -> bool:
        """Adopts the proposals of a round; returns whether the ontology grew.

        `judges`: by index, the model that judged a proposal, where the rules did not.
        """
        proposals = [p for p in proposals if p.kind == "class" or not self._is_copular(p.label)]
        kinds = {p.label for p in proposals if p.kind == "class" and not p.fault}
        kinds |= {label for c in self.schema.classes for label in (c.label, *c.alt_labels)}
        rows: list[dict[str, Any]] = []
        passed: dict[tuple[str, ...], str] = {}
        taken = {THING, *self.schema.term_by_iri}
        taken |= {row["iri"] for row in self.rows}
        labels = {p.label for p in proposals if p.kind == "property"}
        known: set[tuple[str, ...]] = set()
        for place, proposal in enumerate(proposals):
            row = self._judge(proposal, number, judges.get(place, "rules"), taken)
            if row["label"] in labels - {proposal.label} or identify_proposal(row) in known:
                # `died in` and `died on` are both `year died`: the later keeps its wording, and
                # `was tied to` keeps it beside `tied to`.
                row["label"] = proposal.label
                row["iri"] = coin_iri(proposal.kind, proposal.label, self.schema.base, taken)
            taken.add(row["iri"])
            known.add(identify_proposal(row))
            rows.append(row)
            why = self._explain_unlisted(proposal)
            if row["label"] != proposal.label and row["label"] in kinds:
                why = why or "says_a_kind"  # `has album`
            if why:
                passed[identify_proposal(row)] = why
        rows = self._leave_out_old(rows)
        while True:
            grown = adopt_proposals(self.schema, rows)
            gain = self._find_gain(rows, grown)
            if not self._demote_doubtful(rows, gain, grown, taken):
                break
        left = {identify_proposal(row): row for row in rows if row["state"] == "open"}
        passed |= {key: "says_a_kind" for key, row in left.items() if _name_kind(row, grown)}
        rows = [
            row for row in rows if row["state"] != "open" or identify_proposal(row) not in passed
        ]
        self.dropped |= {key: why for key, why in passed.items() if key in left}
        self._keep(rows, grown, gain, number)
        return any(row["state"] in _ADOPTED for row in rows)

    def _is_copular(self, wording: str) -> bool:
        """Whether a wording states a name or, in an ontology from the corpus, a kind."""
        is_being = self.is_open and says_being(self.comparer.read(wording))
        return is_being or is_naming(wording)

    def _judge(
        self, proposal: Proposal, number: int, judge: str, taken: Collection[str]
    ) -> dict[str, Any]:
        """A row with the state by the proposal itself and the decisions file."""
        p = proposal
        label = self._name(p)
        iri = p.existing or coin_iri(p.kind, label, self.schema.base, taken)
        notes, state, by = list(p.notes), "open", judge
        entry = self.decisions.find(p.kind, p.label, p.phrases)
        if entry is not None and entry.decision == "reject":
            state, by, notes = "rejected", "file", [*notes, *filter(None, [entry.note])]
        elif entry is not None:
            accepted = (r for r in self.rows if (r["kind"], r["label"]) == (p.kind, entry.label))
            iri, state, by = str(next(accepted)["iri"]), "alias", "file"
        elif p.existing is not None and (p.kind == "class" or not self._is_unclear(p)):
            state = "alias"
        elif self._is_unclear(p) or (THING in (p.domain, p.range) and not self.is_open):
            notes.append("what is at an end of it is not clear")
        elif p.fault or p.doubt or self._is_narrowed(p):
            notes.append(p.fault or p.doubt)
        elif not self._has_support(p, *self._enough) or self._is_loose(p):
            notes.append("few facts, or of few things")
        elif p.kind == "property" and is_vague(p.label) and not self._names_ends(p):
            notes.append("the verb alone says too little")
        elif p.agreement < self.settings.accept_score:
            notes.append(f"{p.agreement:.0%} of the facts fit its domain and range")
        elif not self._is_defined(p, _DEFINED[0]):
            notes.append("of few of its subjects it is said what they are")
        else:
            state = "accepted"
        ids = self.graph.ids.take(pa.array(sorted(set(p.facts)), pa.int64())).to_pylist()
        return {
            "round": number,
            "kind": p.kind,
            "iri": iri,
            "label": label,
            "definition": p.definition,
            "domain": p.domain,
            "range": p.range,
            "inverse_of": p.inverse,
            "splits": p.splits,
            "phrases": list(p.phrases),
            "support": len(ids),
            "score": round(p.score, _DIGITS),
            "agreement": round(p.agreement, _DIGITS),
            "triple_ids": sorted(ids),
            "state": state,
            "decided_by": by,
            "note": "; ".join(notes),
        }

    def _name(self, proposal: Proposal) -> str:
        """The label; for a property that no model named, the name of its wording if unused."""
        if proposal.kind == "class" or proposal.label not in proposal.phrases or proposal.existing:
            return proposal.label
        name = name_property(proposal.label, proposal.range)
        taken = {label for p in self.schema.properties for label in (p.label, *p.alt_labels)}
        return proposal.label if name in taken else name

    def _explain_unlisted(self, proposal: Proposal) -> str | None:
        """Why a proposal needs no review, or None: a fault, unclear ends, few or disagreeing facts.

        The thresholds are below those of acceptance.
        """
        if proposal.fault or self._is_narrowed(proposal):
            return proposal.fault or "a_narrower_class_says_it"
        if self._is_unclear(proposal):
            return "unclear_ends"
        if proposal.agreement < LEAST:
            return "facts_differ"
        if not self._is_defined(proposal, _DEFINED[1]):
            return "unclear_ends"
        facts, things, chunks = _LISTED
        if proposal.kind == "property" and is_vague(proposal.label):
            facts, things, chunks = self._enough
            facts *= 2
        return None if self._has_support(proposal, facts, things, chunks) else "few_facts"

    @property
    def _enough(self) -> tuple[int, int, int]:
        """Facts, different things and chunks that rules accept."""
        return self.settings.accept_support, _LEAST_SUBJECTS, _LEAST_CHUNKS

    def _is_loose(self, proposal: Proposal) -> bool:
        """Whether too few facts of prose state a relation of anything to anything: `needs`.

        In an ontology from the corpus three facts are enough for others.
        """
        few = len(proposal.facts) < CompleteSettings().accept_support
        ends = {proposal.domain, proposal.range} <= {THING, XSD + "string"}
        return ends and self.is_open and few and not self.graph.count_places(proposal.facts)[1]

    def _is_unclear(self, proposal: Proposal) -> bool:
        """Whether an end of a property, or the parent of a class, may be anything.

        Where NER labels imply classes, an end without one is a noun ("conducts research"), of which
        there are no instances; strings carry no information either. An ontology from the corpus has
        both.
        """
        if self.is_open or not self.schema.knows_types:
            return False
        return not {THING, XSD + "string"}.isdisjoint((proposal.domain, proposal.range))

    def _names_ends(self, proposal: Proposal) -> bool:
        """Whether an end has a specific class, in an ontology from the corpus."""
        ends = {proposal.domain, proposal.range or THING} & self.schema.class_by_iri.keys()
        return self.is_open and any(len(self.schema.find_ancestors(iri)) > 1 for iri in ends)

    @cached_property
    def _defined(self) -> set[str]:
        """The ids of the heads with a fact that states their class."""
        heads = self.graph.layer.head_keys
        return {heads[row] for row in np.flatnonzero(find_filing(self.graph.layer)).tolist()}

    @cached_property
    def _usually_defined(self) -> float:
        """The share of defined heads among those whose type implies a class."""
        layer = self.graph.layer
        heads = zip(layer.head_keys, layer.head_types, strict=True)
        named = {key for key, kind in heads if self._seed.class_for_type(kind)}
        return len(named & self._defined) / max(1, len(named))

    def _is_defined(self, proposal: Proposal, share: float) -> bool:
        """Whether enough of a property's subjects have a class by the text."""
        subjects = set(self._list_ends(proposal)[0])
        least = min(share, self._usually_defined) * len(subjects)
        known = self.is_open or len(subjects & self._defined) >= least
        return proposal.kind == "class" or known

    def _is_narrowed(self, proposal: Proposal) -> bool:
        """Whether an earlier class, as `high school`, has most things of its noun."""
        return proposal.kind == "class" and any(
            row["kind"] == "class"
            and row["label"].endswith(f" {proposal.label}")
            and row["support"] > len(proposal.facts)
            for row in self.rows
        )

    def _has_support(self, proposal: Proposal, facts: int, things: int, chunks: int) -> bool:
        """Whether a proposal has so many facts, different things at each end, and chunks.

        In an ontology from the corpus a column may have two different values, or be of two things.
        """
        ends = [ends for ends in self._list_ends(proposal) if ends]
        prose, cells = self.graph.count_places(proposal.facts)
        if self.is_open and cells >= _COLUMN:
            things = min(things, 2)
        return (
            len(proposal.facts) >= facts
            and all(len(set(ids)) >= things for ids in ends)
            and prose + cells >= chunks
        )

    def _list_ends(self, proposal: Proposal) -> tuple[list[str], list[str]]:
        """The ids of the subjects and, for a property, of the values of its facts.

        A fact with another wording is in the other voice, and reads from tail to head.
        """
        layer, places = self.graph.layer, proposal.facts
        if proposal.kind == "class":
            return [layer.head_keys[i] for i in places], []
        straight = [layer.wordings[i] in proposal.phrases for i in places]
        pairs = [layer.pair(i)[:: 1 if s else -1] for i, s in zip(places, straight, strict=True)]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]

    def _leave_out_old(self, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rows that are new, or adopted now and open in an earlier round."""
        earlier = Index((_say(old), old) for old in self.rows)
        retained: list[dict[str, Any]] = []
        passed: set[str] = set()
        for row in rows:
            same = earlier.find(_say(row))
            gives_way = {"open", "accepted"} if row["state"] == "alias" else {"open"}
            if not same or (
                row["state"] in _ADOPTED and all(old["state"] in gives_way for old in same)
            ):
                passed |= {old["proposal_id"] for old in same if old["state"] == "open"}
                retained.append(row)
        self.rows = [old for old in self.rows if old["proposal_id"] not in passed]
        return retained

    def _demote_doubtful(
        self,
        rows: Iterable[dict[str, Any]],
        gain: Gain,
        grown: Schema,
        taken: Collection[str],
    ) -> bool:
        """Sets rows that must not be adopted to open, with the reason; returns if any.

        An entry of the decisions file for a row's own label stands.
        """
        doubtful = False
        for row in rows:
            entry = self.decisions.find_written_for(row) if row["decided_by"] == "file" else None
            why = None if entry else self._explain_doubt(row, gain, grown)
            if why is None:
                continue
            doubtful = True
            if row["state"] == "alias":
                used = [*taken, *(old["iri"] for old in self.rows)]
                row["iri"] = coin_iri(row["kind"], row["label"], self.schema.base, used)
            if row["decided_by"] == "file":
                row["decided_by"] = "rules"
            row["state"] = "open"
            row["note"] = "; ".join(filter(None, [row["note"], why]))
        return doubtful

    def _explain_doubt(self, row: Row, gain: Gain, grown: Schema) -> str | None:
        """Why a row must not be adopted, or None.

        Of an alias' facts a share of `accept_score` has to fit what it names, and of any adopted
        row's facts at most the rest may contradict the ontology.
        """
        if row["state"] not in _ADOPTED:
            return None
        least = self.settings.accept_score
        fitting = _share(_about(row, gain.fitting, grown), row)
        clashing = _share(_about(row, gain.clashing, grown), row)
        why = _explain_misfit(row, grown)
        if why is None and row["state"] == "alias" and fitting < least:
            name = _name(row["iri"], grown)
            why = f"like {name!r}, but {fitting:.0%} of the facts fit its domain and range"
        if why is None and clashing > 1.0 - least:
            reasons = ", ".join(sorted(_about(row, gain.reasons, grown)))
            why = f"{clashing:.0%} of the facts contradict the ontology: {reasons}"
        return why

    def _read_kinds(self, rows: Iterable[Row]) -> Kinds:
        """The classes by their wordings, with the classes of these rows."""
        return Kinds(adopt_proposals(self._seed, map(name_by_wording, [*self.rows, *rows])))

    def _find_support(self, row: Row, grown: Schema, kinds: Kinds) -> list[str]:
        """The ids of the facts that state a row's class or property."""
        iri = row["iri"]
        if row["kind"] == "class":
            places = self.graph.find_filed(kinds, {iri})
        else:
            places = self.graph.find_worded(self._list_wordings(index_rows([row], grown)))
        return sorted(self.graph.ids.take(pa.array(places)).to_pylist())

    def _list_wordings(
        self, index: Mapping[str, Sequence[OntologyProperty]]
    ) -> dict[str, tuple[str, bool]]:
        """The graph's wordings of some properties, each with the property's normal form.

        A wording has that form itself; or its meaning, unless it is a phrase of a property that was
        there: then the flag says whether it reads from value to subject.
        """
        known = index_phrases(self.schema.properties)
        meant: dict[str, tuple[str, bool]] = {}
        for form, props in index.items():
            for phrase in (phrase for prop in props for phrase in (prop.label, *prop.alt_labels)):
                if normalise_relation(phrase).key == form:
                    name, turned = name_relation(phrase, self.comparer)
                    meant.setdefault(name, (form, turned))
        stated: dict[str, tuple[str, bool]] = {}
        for wording, key, name, turned in self._read:
            if key in index:
                stated[wording] = key, False
            elif name in meant and key not in known and says_something(normalise_relation(wording)):
                stated[wording] = meant[name][0], turned != meant[name][1]
        return stated

    @cached_property
    def _read(self) -> list[tuple[str, str, str, bool]]:
        """The graph's wordings with their normal forms and their names as relations."""
        return [
            (wording, form, *name_relation(wording, self.comparer))
            for wording, form in zip(self.graph.wordings, self.graph.forms, strict=True)
        ]

    def _find_gain(self, rows: Iterable[Row], grown: Schema) -> Gain:
        """The instances that adopted rows have in the graph; `grown` includes these rows."""
        adopted = [row for row in rows if row["state"] in _ADOPTED]
        graph, known, kinds = self.graph, self._known, self._read_kinds(adopted)
        classes = {row["iri"] for row in adopted if row["kind"] == "class"}
        index = index_rows([row for row in adopted if row["kind"] == "property"], grown)
        candidates: list[Candidate] = []
        rejects: list[Row] = []
        filed: dict[str, set[str]] = defaultdict(set)
        for facts in graph.walk_facts(graph.find_filed(kinds, classes)):
            for member in list_copulas(facts, _name_ends(facts, known, filed), kinds, grown):
                if member.class_iri in classes:
                    candidates.append(member)
                    filed[member.subject_id].add(member.class_iri)
        wordings = self._list_wordings(index)
        for stated in graph.walk_facts(graph.find_worded(wordings)):
            facts = [turned for fact in stated if (turned := _turn(fact, *wordings[fact.phrase]))]
            named = _name_ends(facts, known, filed)
            values = read_facts("complete", facts, named, index, grown, kinds)
            candidates += part_rejects(values, rejects)
        touched = {end for c in candidates for end in (c.subject_id, c.object_id) if end}
        classed = {key: known[key] for key in touched if key in known}
        settled = self._read_settled(touched, grown)
        rules = Rules(grown, tuple(self.shapes))
        made, losses = make_instances(candidates, rules, classed, settled)
        lost = {end for x in losses for end in (x.finding.subject_id, x.finding.object_id) if end}
        rejects += make_rejects("complete", losses, graph.find_names(lost))
        return Gain(made, rejects, _group_fitting(candidates), *_group_clashing(losses))

    def _read_settled(self, touched: Collection[str], schema: Schema) -> list[Finding]:
        """The existing values of the individuals at the ends of candidates."""
        wanted = pa.array(sorted(touched), pa.string())
        table = self.instances
        near = pc.or_(
            pc.is_in(table["subject_id"], value_set=wanted),
            pc.is_in(table["object_id"], value_set=wanted),
        )
        made = [r for r in self.made if r["subject_id"] in touched or r["object_id"] in touched]
        return read_findings([*table.filter(near).to_pylist(), *made], schema)

    def _keep(self, rows: Iterable[dict[str, Any]], grown: Schema, gain: Gain, number: int) -> None:
        self.schema = grown
        self.rejects += gain.rejects
        for row in rows:
            alias = ["alias"] if row["state"] == "alias" else []
            row["proposal_id"] = content_id("proposal", *identify_proposal(row), *alias)
            self.rows.append(row)
        for made in gain.made:
            self._known[made["subject_id"]].add(made["class_iri"])
            if made["instance_id"] not in self._there:
                self._there.add(made["instance_id"])
                self.made.append(made)
                self.additions.append({"instance_id": made["instance_id"], "round": number})


def _about(row: Row, by_iri: Mapping[str, set[str]], grown: Schema) -> set[str]:
    """The facts of a row's class or property and of its inverse, which may be stored for it."""
    iri = row["iri"]
    prop = grown.property_by_iri.get(iri)
    inverse = prop.inverse_of if prop else None
    return by_iri.get(iri, set()) | (by_iri.get(inverse, set()) if inverse else set())


def _share(ids: Collection[str], row: Row) -> float:
    """The share of a row's support that is among these facts."""
    support = row["triple_ids"]
    return round(sum(key in ids for key in support) / len(support), _DIGITS) if support else 0.0


def _name(iri: str, schema: Schema) -> str:
    term = schema.term_by_iri.get(iri)
    return term.label if term else iri


def _say(row: Row) -> Suggestion:
    return row["kind"], row["label"], row["phrases"]


def _name_kind(row: Row, grown: Schema) -> str | None:
    """The kind that a property's wording contains: `school` of `is school in`."""
    phrases = row["phrases"] if row["kind"] == "property" else []
    match = next(filter(None, map(find_kind, phrases)), None)
    if match is None:
        return None
    kind, placed = match
    named = Kinds(grown).find(kind)
    return _name(named, grown) if named else kind if placed else None


def _explain_misfit(row: Row, grown: Schema) -> str | None:
    """Why an accepted property is a kind, or no part or inverse of another, or None.

    `is school in` states a class and a place. The values of a part or an inverse are values of the
    other property too, so its ends have to lie within the other's: else each value would make its
    individuals members of classes that no fact states, or contradict them.
    """
    if row["state"] != "accepted" or row["kind"] != "property":
        return None
    if named := _name_kind(row, grown):
        return f"it says the kind {named!r}"
    prop = grown.property_by_iri[row["iri"]]
    wider = grown.property_by_iri.get(row["splits"])
    inverse = grown.property_by_iri.get(row["inverse_of"])
    if wider is not None and not _lies_within(prop, wider.domain, wider.range, grown):
        return f"its ends are not among those of {wider.label!r}, of which it would be a part"
    if inverse is not None and not _lies_within(prop, inverse.range, inverse.domain, grown):
        return f"its ends are not among those of {inverse.label!r}, turned round"
    return None


def _lies_within(prop: OntologyProperty, domain: str, range_iri: str, schema: Schema) -> bool:
    if DATATYPES & {prop.range, domain, range_iri}:
        return prop.range == range_iri and schema.is_subclass(prop.domain, domain)
    return schema.is_subclass(prop.domain, domain) and schema.is_subclass(prop.range, range_iri)


# Complete: frequent relations of the graph that the ontology lacks become classes, properties.

_DRAFTED = 3
"""Default number of facts of a property that rules accept where the corpus makes the ontology."""


def run(
    documents: pa.Table,
    chunks: pa.Table,
    claims: pa.Table,
    raw_triples: pa.Table,
    entities: pa.Table,
    relations: pa.Table,
    triples: pa.Table,
    instances: pa.Table,
    proposals: pa.Table,
    *,
    settings: CompleteSettings,
    schema: Schema,
    shapes: Sequence[Constraint],
    decisions: Decisions,
    drafting: Decisions | None = None,
    embedder: Embedder,
    namer: Namer | None,
) -> dict[str, pa.Table]:
    """`proposals`, the `instances` of the accepted ones, and the measures of the first round.

    `additions` lists these instances, apart from those that existed.

    The measures are `phrases`, `priorities` of all triples and `layers`, against the ontology of
    the seed and the decisions file. Rounds end when one adds nothing, or after `settings.rounds`.
    With `drafting` the corpus makes the ontology: `proposals` has its first classes, and all facts
    make proposals, as nothing is covered yet.

    Raises:
        InputError: an entry of the decisions file does not fit the ontology, or a vector is none.
    """
    graph = Graph(documents, chunks, claims, raw_triples, entities, relations, triples)
    if drafting is not None:
        drafted = proposals.to_pylist()
        schema = adopt_proposals(schema, drafted)
        decisions = decisions.leave_out(drafted)
        least = settings.accept_support
        least = _DRAFTED if least == CompleteSettings().accept_support else least
        settings = replace(settings, region_share=1.0, accept_support=least)
    comparer = Comparer(embedder)
    growth = Growth(
        graph,
        instances,
        schema,
        shapes,
        decisions,
        settings,
        comparer,
        is_open=drafting is not None,
    )
    growth.adopt_decided()
    measured: Completion | None = None
    rejects: list[Row] = []
    for number in range(1, settings.rounds + 1):
        completion = propose(graph.layer, growth.layer, settings=settings, comparer=comparer)
        drawn, judges = completion.proposals, {}
        measured = measured or replace(completion, proposals=())
        if namer is not None:
            naming = namer.name(drawn, graph.layer, growth.schema, embedder)
            drawn, judges = naming.proposals, dict.fromkeys(naming.judged, namer.model)
            rejects += [make_reject("complete", x.reason, x.key, x.detail) for x in naming.losses]
        if not growth.adopt(drawn, number, judges):
            break
        del completion, drawn  # the next round makes as much
    ends = {x[end] for x in growth.made for end in ("subject_id", "object_id") if x[end]}
    stated = state_values(growth.made, growth.schema, graph.find_names(ends))
    return {
        **(_build_measured(measured, graph) if measured else {}),
        "proposals": build_table("proposals", growth.list_rows()),
        "instances": build_table("instances", growth.made),
        "additions": build_table("additions", growth.additions),
        "vectors": build_vectors("instances", *stated, embedder),
        "rejects": build_rejects([*growth.rejects, *growth.list_dropped(), *rejects]),
    }


def _build_measured(completion: Completion, graph: Graph) -> dict[str, pa.Table]:
    """`phrases`, `priorities` and `layers`, column by column: there may be a million rows."""
    contracts = load_contracts()
    measured = completion.measure()
    both = measured.graph, measured.ontology
    layers = dict(zip(("graph", "ontology"), both, strict=True))
    ids = {layer: _identify(layer, phrases.texts) for layer, phrases in layers.items()}
    outside = np.zeros(len(measured.ontology.texts), dtype=bool)
    phrases = {
        "phrase_id": pa.chunked_array([*ids["graph"].chunks, *ids["ontology"].chunks], pa.string()),
        "layer": pa.chunked_array([pa.repeat(layer, len(keys)) for layer, keys in ids.items()]),
        "text": pa.chunked_array([part.texts.read().cast(pa.string()) for part in both]),
        "facts": np.concatenate([part.facts for part in both]),
        "x": round_digits(np.concatenate([part.points[:, 0] for part in both])),
        "y": round_digits(np.concatenate([part.points[:, 1] for part in both])),
        "log_graph": round_digits(np.concatenate([part.log_graph for part in both])),
        "log_ontology": round_digits(np.concatenate([part.log_ontology for part in both])),
        "region": np.concatenate([completion.region, outside]),
    }
    place = completion.phrase_of
    phrase_ids = ids["graph"].take(pa.array(place))
    priorities = {
        "triple_id": graph.ids,
        "phrase_id": phrase_ids,
        "sign": completion.sign[place].astype(np.int64),
        "log_magnitude": round_digits(completion.log_magnitude[place]),
        "region": completion.region[place],
    }
    return {
        "phrases": contracts["phrases"].fill(phrases),
        "priorities": contracts["priorities"].fill(priorities),
        "layers": build_table(
            "layers", [_describe(name, part, measured) for name, part in layers.items()]
        ),
    }


def _identify(layer: str, texts: TextColumn) -> pa.ChunkedArray:
    """The ids of phrases, block by block."""
    blocks = (texts[start : start + BLOCK] for start in range(0, len(texts), BLOCK))
    ids = ([content_id("phrase", layer, text) for text in block] for block in blocks)
    return pa.chunked_array(map(pa.array, ids), pa.string())


def _describe(layer: str, phrases: Phrases, measured: Layers) -> Row:
    moments = phrases.moments
    lower = np.tril_indices(len(moments.total))
    return {
        "layer": layer,
        "phrases": moments.count,
        "total": moments.total.tolist(),
        "outer": moments.outer[lower].tolist(),
        "explained": round_digits(measured.explained).tolist(),
    }
