"""Findings and facts as rows of `instances`, shared by induce and complete."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.completion.types import LITERAL, GraphLayer
from kpyramid.documents.blocks import Block, read_blocks
from kpyramid.documents.qualifiers import CONDITION
from kpyramid.documents.sentences import Span
from kpyramid.documents.words import IS_A, normalise_relation
from kpyramid.graph.synonyms.words import is_usual
from kpyramid.numerics.arrays import Integers, Mask
from kpyramid.ontology.constraints import Rules
from kpyramid.ontology.names import THING
from kpyramid.ontology.population.checking import (
    COPULAS,
    UNTYPED,
    Candidate,
    Kinds,
    Mention,
    Misfit,
    Named,
    Place,
    Sentences,
    check_name,
    check_value,
    confirm,
    find_head,
    is_hedged,
    is_proper,
    is_typed,
    order_places,
    takes_nouns,
)
from kpyramid.ontology.population.conflicts import Finding, Loss, merge, settle
from kpyramid.ontology.population.witnesses import MEASURES
from kpyramid.ontology.schema import OntologyProperty, Schema
from kpyramid.pipeline.stages.tables import Row, make_reject
from kpyramid.storage.columns import TextColumn
from kpyramid.storage.contracts import combine_column, find_rows, map_column

# From findings of induction to rows of `instances`; induce and complete share it.


class Places:
    """Makes places from spans: the document of a chunk, and the sentences around them."""

    def __init__(self, documents: pa.Table, chunks: pa.Table) -> None:
        self.document_of: dict[str, str] = map_column(chunks, "chunk_id", "document_id")
        texts = map_column(documents, "document_id", "text")
        self._blocks = documents["blocks"]
        self._rows = {key: row for row, key in enumerate(texts)}
        self.sentences = Sentences(texts, self._read_blocks)

    def _read_blocks(self, document_id: str) -> tuple[Block, ...]:
        return read_blocks(self._blocks[self._rows[document_id]].as_py())

    def make(
        self,
        chunk_id: str,
        spans: Sequence[Span],
        ends: tuple[Span | None, Span | None],
        confidence: float,
        producer: str,
        source: str,
    ) -> Place:
        """The sentence or sentences around spans of a chunk's document."""
        document_id = self.document_of[chunk_id]
        around = self.sentences.cover(document_id, spans)
        text = self.sentences.texts[document_id][around.start : around.end]
        start, end = around.start, around.end
        subject, value = (
            end if end and start <= end.start and end.end <= around.end else None for end in ends
        )
        return Place(
            document_id, chunk_id, start, end, text, subject, value, confidence, producer, source
        )


def make_instances(
    candidates: Iterable[Candidate],
    rules: Rules,
    known: Mapping[str, set[str]] = MappingProxyType({}),
    settled: Iterable[Finding] = (),
) -> tuple[list[Row], list[Loss]]:
    """Rows of `instances` of the compatible candidates, and the losses of the others.

    Both ends of every value are members of the classes that the property gives them: where no other
    row states it, one is made with the value's evidence. `known`: existing classes of individuals,
    `settled`: existing values.
    """
    stay, losses = settle(merge(candidates), rules, known, settled)
    stated: dict[str, set[str]] = defaultdict(set)
    for individual, classes in known.items():
        stated[individual] |= classes
    for finding in stay:
        if finding.prop is None:
            stated[finding.subject_id].add(finding.class_iri)
    entailed = [
        member
        for finding in stay
        for of_object, (individual, class_iri) in enumerate(finding.entailed)
        if finding.prop is not None
        and class_iri != THING
        and not _is_stated(class_iri, stated[individual], rules.schema)
        for member in _list_members(finding, individual, class_iri, of_object=bool(of_object))
    ]
    members = _drop_wider(merge(entailed), rules.schema)
    return [_make_row(finding) for finding in [*stay, *members]], losses


def make_member(class_iri: str, individual: str, place: Place) -> Candidate:
    """The membership of an individual in a class."""
    return Candidate(None, class_iri, individual, None, None, None, place)


def _is_stated(class_iri: str, stated: Iterable[str], schema: Schema) -> bool:
    return any(schema.is_subclass(iri, class_iri) for iri in stated)


def _list_members(
    finding: Finding, individual: str, class_iri: str, *, of_object: bool
) -> Iterator[Candidate]:
    for place in finding.places:
        span = place.object if of_object else place.subject
        shown = replace(place, subject=span, object=None)
        yield make_member(class_iri, individual, shown)


def _drop_wider(members: Sequence[Finding], schema: Schema) -> list[Finding]:
    """The memberships without those that a narrower one of the same individual implies."""
    classes: dict[str, set[str]] = defaultdict(set)
    for member in members:
        classes[member.subject_id].add(member.class_iri)

    def is_wider(member: Finding) -> bool:
        stated = classes[member.subject_id]
        narrower = [iri for iri in stated if not schema.is_subclass(member.class_iri, iri)]
        return _is_stated(member.class_iri, narrower, schema)

    return [member for member in members if not is_wider(member)]


def make_rejects(stage: str, losses: Iterable[Loss], names: Mapping[str, str]) -> list[Row]:
    """A reject for each loss."""
    rejects = []
    for loss in losses:
        finding = loss.finding
        subject, verb = names[finding.subject_id], finding.prop.label if finding.prop else "is a"
        value = names.get(finding.object_id or "", finding.literal or finding.class_iri)
        detail = f"{subject} | {verb} | {value} | {loss.detail}"
        rejects.append(reject_place(finding.places[0], stage, loss.reason, finding.key, detail))
    return rejects


def reject_place(place: Place, stage: str, reason: str, key: str, detail: str) -> Row:
    """A reject of what a place states."""
    ids = {"document_id": place.document_id, "chunk_id": place.chunk_id}
    return make_reject(stage, reason, key, detail, **ids)


def _make_row(finding: Finding) -> Row:
    best = finding.places[0]
    prop = finding.prop
    return {
        "instance_id": finding.key,
        "class_iri": finding.class_iri,
        "property_iri": prop.iri if prop else None,
        "subject_id": finding.subject_id,
        "object_id": finding.object_id,
        "literal": finding.literal,
        "datatype": prop.range if prop and prop.is_datatype else None,
        "confidence": finding.confidence,
        "chunk_id": best.chunk_id,
        "start": best.start,
        "end": best.end,
        "subject_span": _span(best.subject),
        "object_span": _span(best.object),
        "places": [
            {"chunk_id": p.chunk_id, "start": p.start, "end": p.end} for p in finding.places
        ],
        "triple_ids": sorted({p.source for p in finding.places if p.source.startswith("triple-")}),
        "producer": best.producer,
    }


def _span(span: Span | None) -> dict[str, int] | None:
    return {"start": span.start, "end": span.end} if span else None


def list_known(instances: pa.Table) -> dict[str, set[str]]:
    """The classes of individuals that rows of `instances` state."""
    known: dict[str, set[str]] = defaultdict(set)
    columns = (instances[name].to_pylist() for name in ("subject_id", "class_iri"))
    for subject, class_iri in zip(*columns, strict=True):
        known[subject].add(class_iri)
    return known


def read_findings(instances: Iterable[Row], schema: Schema) -> list[Finding]:
    """The values that rows of `instances` state, without places."""
    return [
        Finding(
            row["instance_id"],
            schema.property_by_iri[row["property_iri"]],
            row["class_iri"],
            row["subject_id"],
            row["object_id"],
            None,
            row["literal"],
            row["confidence"],
            (),
        )
        for row in instances
        if row["property_iri"] is not None
    ]


def state_values(
    rows: Iterable[Row], schema: Schema, names: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """Ids and wordings, `subject property value`, of the instances that state a value."""
    valued = [row for row in rows if row["property_iri"] is not None]
    texts = [
        f"{names[row['subject_id']]} "
        f"{schema.property_by_iri[row['property_iri']].label} "
        f"{names[row['object_id']] if row['object_id'] else row['literal']}"
        for row in valued
    ]
    return [row["instance_id"] for row in valued], texts


# Facts of the graph as candidates for the ontology: which property a phrase states, of whom.

_OUTRIGHT = re.compile(r"be (?:\S+ )+of")
"""`is a metabolite of`: the noun says what the subject is."""
_HEDGED = Misfit("hedged", "the sentence asks, or says what is to be found out")
_ARTICLES = re.compile(r"\b(?:a|an)\s+")
_FIRST_OF = re.compile(r"^(?P<noun>[^,(]{2,60}?\s(?:of|in|on|at))\s+(?P<rest>\S.*)$", re.DOTALL)
"""`revenue of 4.2 billion euros`: the property is in the object of a verb such as `reported`."""
_MAY_BE_FIRST = r"\W(?:of|in|on|at)\W"
"""Arrow finds it, in ASCII, in all that `_FIRST_OF` matches, and in more."""

Find = Callable[[str, str, Span | None], Named | str]
"""Finds the individual of a document's words, at a place if it is known, or why there is none."""


@dataclass(frozen=True, slots=True)
class NamedTriple:
    """A triple with its names looked up; `relation` is the normal form of its phrase.

    `places`: the places that state it, the surest first.
    """

    triple_id: str
    head_id: str
    head: str
    head_type: str
    phrase: str
    relation: str
    tail_id: str | None
    tail: str
    tail_type: str
    confidence: float
    places: tuple[Place, ...]
    is_conditional: bool = False


def list_facts(
    places: Places,
    claims: pa.Table,
    raw_triples: pa.Table,
    entities: pa.Table,
    relations: pa.Table,
    triples: pa.Table,
) -> list[NamedTriple]:
    """The triples in words, each with its evidence, in the order of the table."""
    wanted = ["entity_id", "name", "type"]
    entity = {row["entity_id"]: row for row in entities.select(wanted).to_pylist()}
    phrase = map_column(relations, "relation_id", "name")
    spans = map_column(claims, "claim_id", "spans")
    raw = {row["raw_triple_id"]: row for row in raw_triples.to_pylist()}
    form = {name: normalise_relation(name).key for name in set(phrase.values())}
    facts = []
    for row in triples.to_pylist():
        head, tail = entity[row["head_id"]], entity.get(row["tail_id"])
        stated = (raw[key] for key in row["raw_triple_ids"])
        facts.append(
            NamedTriple(
                triple_id=row["triple_id"],
                head_id=row["head_id"],
                head=head["name"],
                head_type=head["type"],
                phrase=phrase[row["relation_id"]],
                relation=form[phrase[row["relation_id"]]],
                tail_id=row["tail_id"],
                tail=tail["name"] if tail else row["literal"],
                tail_type=tail["type"] if tail else "LITERAL",
                confidence=row["confidence"],
                places=order_places(
                    _place(r, spans[r["claim_id"]], row["triple_id"], places) for r in stated
                ),
                is_conditional=any(role == CONDITION for role, _ in row["qualifiers"]),
            )
        )
    return facts


def _place(raw: Row, claim: list[dict[str, int]], triple_id: str, places: Places) -> Place:
    """The sentences of a raw triple's words; of its claim if no span is known."""
    read = [_read_span(raw[name]) for name in ("head_span", "relation_span", "tail_span")]
    spans = [span for span in read if span]
    spans = spans or [Span(span["start"], span["end"]) for span in claim[:1]]
    return places.make(
        raw["chunk_id"], spans, (read[0], read[2]), raw["confidence"], raw["producer"], triple_id
    )


def _read_span(span: Mapping[str, int] | None) -> Span | None:
    return Span(span["start"], span["end"]) if span else None


def index_phrases(properties: Iterable[OntologyProperty]) -> dict[str, list[OntologyProperty]]:
    """The properties by normal form of a relation that states them, with and without articles.

    A label such as "located in" is often a bare participle, so "is located in" states it too, and
    "power" a noun, which tables and data state by "has power" where no phrase has its own "has".
    """
    index: dict[str, dict[str, OntologyProperty]] = defaultdict(dict)
    for prop in properties:
        more = [f"is {prop.label}"] if " " in prop.label else []
        if not any(phrase.startswith("has ") for phrase in prop.alt_labels):
            more.append(f"has {prop.label}")
        for phrase in (prop.label, *more, *prop.alt_labels):
            for wording in {phrase, _drop_articles(phrase)}:
                index[normalise_relation(wording).key][prop.iri] = prop
    return {key: [props[iri] for iri in sorted(props)] for key, props in index.items()}


def _drop_articles(phrase: str) -> str:
    return _ARTICLES.sub("", phrase)


def read_facts(
    stage: str,
    facts: Iterable[NamedTriple],
    named: Mapping[str, Named],
    index: Mapping[str, Sequence[OntologyProperty]],
    schema: Schema,
    kinds: Kinds,
    find: Find | None = None,
    kind_of: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Candidate | Row]:
    """The values that facts state, place by place, and rejects of facts that fit no property.

    `index`: see `index_phrases`. A fact whose phrase states no property, or that holds on a
    condition, is no reject: it stays in the graph; nor is one that states a class: `kind_of` has
    these, by triple. With `find` the first noun of a tail may be a part of the phrase, as in
    `reported | revenue of 4 million`. A copula does not suggest the class of the property's domain:
    that something is a thing does not make it a person.
    """
    for fact in facts:
        wanted, value, places = _read_phrase(fact, index, named, find)
        kind = kind_of.get(fact.triple_id)
        if kind is not None:  # "is a town" is no occupation, "is a professor" may be one
            wanted = [prop for prop in wanted if schema.is_subclass(kind, prop.domain)]
        if fact.relation == IS_A:  # nor is "is an amalgam of dialects"
            noun = find_head(fact.tail)
            wanted = [p for p in wanted if is_usual(noun, schema.list_types(p.domain)) is not False]
        if not wanted or fact.is_conditional:
            continue
        subject = named[fact.head_id]
        guess = fact.relation not in COPULAS
        if not _is_clear(wanted, schema):
            guess = guess and not is_typed(subject) and not is_proper(subject)
            subject = replace(subject, type=UNTYPED)
        checked = [
            _HEDGED
            if is_hedged(place)
            else check_value(
                *(prop, subject, value, place, schema, kinds),
                guess=guess,
                outright=_OUTRIGHT.fullmatch(fact.relation) is not None,
            )
            for prop in wanted
            for place in places
        ]
        fitting = [c for c in checked if isinstance(c, Candidate)]
        yield from fitting
        if not fitting and kind is None:
            misfits = [c for c in checked if isinstance(c, Misfit)]
            yield _reject_stated(stage, fact, wanted, misfits)


def part_rejects(checked: Iterable[Candidate | Row], rejects: list[Row]) -> list[Candidate]:
    """The candidates; the rejects are appended to `rejects`."""
    candidates = []
    for each in checked:
        if isinstance(each, Candidate):
            candidates.append(each)
        else:
            rejects.append(each)
    return candidates


def _is_clear(wanted: Sequence[OntologyProperty], schema: Schema) -> bool:
    """Whether all properties that a phrase may state have domains within one class.

    `is located in` holds for places and firms: it is evidence for neither.
    """
    domains = {prop.domain for prop in wanted}
    return any(all(schema.is_subclass(d, wider) for d in domains) for wider in domains)


def _read_phrase(
    fact: NamedTriple,
    index: Mapping[str, Sequence[OntologyProperty]],
    named: Mapping[str, Named],
    find: Find | None,
) -> tuple[Sequence[OntologyProperty], Named | str, tuple[Place, ...]]:
    match = _FIRST_OF.match(fact.tail) if find else None
    if match and find:
        phrase = _drop_articles(f"{fact.phrase} {match['noun']}")
        wanted = index.get(normalise_relation(phrase).key, [])
        if wanted:
            place = fact.places[0]
            rest = match["rest"]
            needs_individual = any(not prop.is_datatype for prop in wanted)
            linked = (
                find(place.document_id, rest, _find_rest(place, rest)) if needs_individual else rest
            )
            return wanted, (linked if isinstance(linked, Named) else rest), fact.places
    value = named[fact.tail_id] if fact.tail_id else fact.tail
    return index.get(fact.relation, []), value, fact.places


def _find_rest(place: Place, rest: str) -> Span | None:
    """The span of words in a sentence, whatever the white space between them."""
    match = re.search(r"\s+".join(map(re.escape, rest.split())), place.text)
    return Span(place.start + match.start(), place.start + match.end()) if match else None


def _reject_stated(
    stage: str, fact: NamedTriple, wanted: Iterable[OntologyProperty], misfits: list[Misfit]
) -> Row:
    reasons = sorted({misfit.reason for misfit in misfits})
    names = ", ".join(prop.label for prop in wanted)
    why = "; ".join(sorted({misfit.detail for misfit in misfits}))
    detail = (
        f"{fact.head} ({fact.head_type}) | {fact.phrase} | {fact.tail} ({fact.tail_type}) stays in "
        f"the graph only: it fits none of: {names}: {why}"
    )
    reason = reasons[0] if len(reasons) == 1 else "domain_or_range"
    return reject_place(fact.places[0], stage, reason, fact.triple_id, detail)


def list_copulas(
    facts: Iterable[NamedTriple], named: Mapping[str, Named], kinds: Kinds, schema: Schema
) -> Iterator[Candidate]:
    """Memberships that sentences such as `X is a city` state, by the classes' labels."""
    for fact in facts:
        class_iri = kinds.find(fact.tail) if fact.relation == IS_A else None
        if class_iri is None or check_name(named[fact.head_id], kinds) is not None:
            continue
        is_noun = takes_nouns(class_iri, schema) and find_head(fact.head) not in MEASURES
        if is_proper(named[fact.head_id]) or is_noun:
            known = named[fact.head_id].kinds
            is_known = any(schema.is_subclass(class_iri, kind) for kind in known)
            for place in fact.places:
                sure = confirm(place.confidence) if is_known else place.confidence
                shown = replace(place, confidence=sure)
                yield make_member(class_iri, fact.head_id, shown)


# The knowledge graph as columns, and in words with its evidence where a stage asks for it.

_WIDTH = 32
"""Bits of a character's number within its document."""
_BLOCK = 4096
"""Facts in words at a time: some 8 kB each, with their rows of other tables."""


@dataclass(eq=False)
class Graph:
    """The facts of the tables, in the order of `triples`.

    Millions of them fit in memory as columns of codes; as objects with all their places they would
    not.
    """

    documents: pa.Table
    chunks: pa.Table
    claims: pa.Table
    raw_triples: pa.Table
    entities: pa.Table
    relations: pa.Table
    triples: pa.Table

    def __post_init__(self) -> None:
        self._heads = find_rows(self.triples["head_id"], self.entities["entity_id"])
        self._tails = find_rows(self.triples["tail_id"], self.entities["entity_id"])
        self._relation_rows = find_rows(self.triples["relation_id"], self.relations["relation_id"])

    @property
    def ids(self) -> pa.ChunkedArray:
        """The triples' ids."""
        return self.triples["triple_id"]

    def find_names(self, keys: Collection[str]) -> dict[str, str]:
        """The names of entities by id, of those that the table has."""
        rows = find_rows(pa.array(sorted(keys), pa.string()), self.entities["entity_id"])
        named = self.entities.select(["entity_id", "name"]).take(pa.array(rows[rows >= 0]))
        return map_column(named, "entity_id", "name")

    @cached_property
    def layer(self) -> GraphLayer:
        """The facts as completion reads them: literals follow the entities."""
        literals, size = self.triples["literal"], len(self.entities)
        of_tail = np.where(self._tails >= 0, self._tails, size + np.arange(len(literals)))
        name, key = (_append(self.entities[column], literals) for column in ("name", "entity_id"))
        kind = _append(self.entities["type"], pa.chunked_array([[LITERAL]], pa.string()))
        return GraphLayer(
            heads=TextColumn(name, self._heads),
            head_types=TextColumn(kind, self._heads),
            wordings=TextColumn(self.relations["name"], self._relation_rows),
            tails=TextColumn(name, of_tail),
            tail_types=TextColumn(kind, np.minimum(of_tail, size)),
            head_keys=TextColumn(key, self._heads),
            tail_keys=TextColumn(key, of_tail),
        )

    @cached_property
    def forms(self) -> list[str]:
        """The normal form of each relation."""
        return [normalise_relation(wording).key for wording in self.wordings]

    def find_stated(self, forms: Collection[str]) -> Integers:
        """The places of the facts whose relation has one of these normal forms."""
        chosen = np.array([form in forms for form in self.forms], dtype=bool)
        return np.flatnonzero(chosen[self._relation_rows])

    def find_stating(self, forms: Collection[str]) -> Integers:
        """The places of the facts that may state one of these forms, see `read_facts`."""
        ends = self.entities["name"], self.triples["literal"]
        names, literals = (pc.match_substring_regex(end, _MAY_BE_FIRST).to_numpy() for end in ends)
        begins = np.where(self._tails >= 0, names[self._tails], literals == True)  # noqa: E712
        return np.union1d(self.find_stated(forms), np.flatnonzero(begins))

    @cached_property
    def wordings(self) -> list[str]:
        """The wording of each relation."""
        return list(self.relations["name"].to_pylist())

    def find_worded(self, wordings: Collection[str]) -> Integers:
        """The places of the facts that have one of these wordings."""
        chosen = np.array([wording in wordings for wording in self.wordings], dtype=bool)
        return np.flatnonzero(chosen[self._relation_rows])

    def find_filed(self, kinds: Kinds, classes: Collection[str]) -> Integers:
        """The places of the facts `X is a …` whose noun names one of these classes."""
        places = self.find_stated({IS_A}) if classes else np.zeros(0, dtype=np.int64)
        names = self.entities["name"].to_pylist()
        literals = self.triples["literal"].take(pa.array(places)).to_pylist()
        is_filed: dict[str, bool] = {}
        filed = []
        for place, tail, literal in zip(
            places.tolist(), self._tails[places].tolist(), literals, strict=True
        ):
            words = names[tail] if tail >= 0 else literal
            if words not in is_filed:
                is_filed[words] = kinds.find(words) in classes
            if is_filed[words]:
                filed.append(place)
        return np.array(filed, dtype=np.int64)

    def walk_facts(self, places: Integers) -> Iterator[list[NamedTriple]]:
        """The facts in words, with all their places, block by block."""
        for start in range(0, len(places), _BLOCK):
            block = places[start : start + _BLOCK]
            raw = _drop_missing(self._stated.take(pa.array(block)).flatten())
            yield list_facts(
                self.places,
                self.claims.take(_drop_missing(self._claimed[raw])),
                self.raw_triples.take(raw),
                self.entities.take(_drop_missing([self._heads[block], self._tails[block]])),
                self.relations.take(_drop_missing(self._relation_rows[block])),
                self.triples.take(pa.array(block)),
            )

    def walk_ends(self) -> Iterator[tuple[list[tuple[str, int, int]], ...]]:
        """The facts of each entity, in the order of their table.

        Those of which it is the head, then those of which it is the tail: each fact's normal form
        of the relation, its place, and the row of the entity at its other end, -1 for a literal.
        """
        heads, tails = self._heads, self._tails
        return zip(self._walk_side(heads, tails), self._walk_side(tails, heads), strict=True)

    def _walk_side(self, ends: Integers, others: Integers) -> Iterator[list[tuple[str, int, int]]]:
        order, forms = np.argsort(ends, kind="stable"), self.forms
        starts = np.searchsorted(ends, np.arange(len(self.entities) + 1), sorter=order)
        for start, end in pairwise(starts.tolist()):
            facts = order[start:end]
            relations = map(forms.__getitem__, self._relation_rows[facts].tolist())
            yield [*zip(relations, facts.tolist(), others[facts].tolist(), strict=True)]

    def read_tail(self, place: int) -> str:
        """The name or the literal at a fact's tail."""
        tail = int(self._tails[place])
        end = self.entities["name"][tail] if tail >= 0 else self.triples["literal"][place]
        return str(end.as_py())

    def count_places(self, places: Collection[int]) -> tuple[int, int]:
        """The number of chunks of prose and of cells of tables that state some of the facts."""
        stated = self._stated.take(pa.array(sorted(places), pa.int64())).flatten()
        raw = _drop_missing(stated)
        claimed = self._claimed[raw]
        in_table = self._in_table[claimed]
        chunks = self.claims["chunk_id"].take(_drop_missing(claimed[~in_table]))
        return int(pc.count_distinct(chunks).as_py()), len(np.unique(claimed[in_table]))

    @cached_property
    def _stated(self) -> pa.LargeListArray:
        """The rows of the raw triples of each fact."""
        raw_ids = self.triples["raw_triple_ids"]
        sizes = pc.fill_null(pc.list_value_length(raw_ids), 0).to_numpy()
        rows = find_rows(pc.list_flatten(raw_ids), self.raw_triples["raw_triple_id"])
        return pa.LargeListArray.from_arrays(
            pa.array(np.cumsum([0, *sizes]), pa.int64()), pa.array(rows)
        )

    @cached_property
    def _in_table(self) -> Mask:
        """Whether each claim rests on a cell of a table; one more row for no claim, -1."""
        documents = find_rows(self.chunks["document_id"], self.documents["document_id"])
        chunks = find_rows(self.claims["chunk_id"], self.chunks["chunk_id"])
        blocks = combine_column(self.documents["blocks"])
        spans = combine_column(self.claims["spans"])
        document, claim = (pc.list_parent_indices(each).to_numpy() for each in (blocks, spans))
        block, start = blocks.flatten(), spans.flatten().field("start").to_numpy()
        is_cell = pc.equal(block.field("kind"), "cell").to_numpy(zero_copy_only=False)
        cells = (document << _WIDTH) + block.field("start").to_numpy()
        inside = np.isin((documents[chunks[claim]] << _WIDTH) + start, cells[is_cell])
        found = np.zeros(len(self.claims) + 1, dtype=bool)
        found[claim[inside]] = True
        return found

    @cached_property
    def _claimed(self) -> Integers:
        """The row of each raw triple's claim."""
        return find_rows(self.raw_triples["claim_id"], self.claims["claim_id"])

    @cached_property
    def places(self) -> Places:
        """The places of the documents."""
        return Places(self.documents, self.chunks)


class MentionTable:
    """The mentions as columns, looked up by place and by entity; see `Mentions`."""

    def __init__(self, mentions: pa.Table, chunks: pa.Table, entities: pa.Table) -> None:
        self._columns = {
            name: combine_column(mentions[name]) for name in ("mention_id", "text", "type")
        }
        self._spans = {name: mentions[name].to_numpy() for name in ("start", "end")}
        self._chunks = find_rows(mentions["chunk_id"], chunks["chunk_id"])
        self._chunk_ids = chunks["chunk_id"].to_pylist()
        documents = combine_column(chunks["document_id"]).dictionary_encode()
        self._number = {key: number for number, key in enumerate(documents.dictionary.to_pylist())}
        of_mention = documents.indices.to_numpy()[self._chunks]
        self._order = np.argsort(of_mention, kind="stable")
        count = np.arange(len(self._number) + 1)
        self._firsts = np.searchsorted(of_mention[self._order], count)
        self._rows = find_rows(pc.list_flatten(entities["mentions"]), mentions["mention_id"])
        sizes = pc.list_value_length(entities["mentions"]).to_numpy()
        self._ends = np.cumsum([0, *sizes])
        self._entities = np.full(len(mentions), -1)
        self._entities[self._rows] = np.repeat(np.arange(len(sizes)), sizes)  # the last of several
        self._entity_ids = combine_column(entities["entity_id"])

    def find(self, document_id: str, span: Span) -> list[Mention]:
        """The mentions at exactly this place."""
        rows = self._rows_of(document_id)
        there = (self._spans["start"][rows] == span.start) & (self._spans["end"][rows] == span.end)
        return self._read(rows[there])

    def list_document(self, document_id: str) -> list[Mention]:
        """The mentions of a document."""
        return self._read(self._rows_of(document_id))

    def list_entity(self, row: int) -> list[Mention]:
        """The mentions of the entity in that row."""
        return self._read(self._rows[self._ends[row] : self._ends[row + 1]])

    def _rows_of(self, document_id: str) -> Integers:
        number = self._number.get(document_id)
        if number is None:
            return self._order[:0]
        return self._order[self._firsts[number] : self._firsts[number + 1]]

    def _read(self, rows: Integers) -> list[Mention]:
        mentions = []
        for row in rows.tolist():
            key, text, kind = (self._columns[name][row].as_py() for name in self._columns)
            start, end = int(self._spans["start"][row]), int(self._spans["end"][row])
            entity = int(self._entities[row])
            entity_id = self._entity_ids[entity].as_py() if entity >= 0 else None
            chunk = self._chunk_ids[self._chunks[row]]
            mentions.append(Mention(key, chunk, text, kind, start, end, entity_id))
        return mentions


def _append(first: pa.ChunkedArray, second: pa.ChunkedArray) -> pa.Array:
    """The rows of both in one array, which Arrow would otherwise build at every `take`."""
    return combine_column(pa.chunked_array([*first.chunks, *second.chunks], first.type))


def _drop_missing(rows: npt.ArrayLike) -> Integers:
    """The distinct rows in the order of their table, without -1."""
    distinct = np.unique(np.asarray(rows, dtype=np.int64))
    return distinct[distinct >= 0]
