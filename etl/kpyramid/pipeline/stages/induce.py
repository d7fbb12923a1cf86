"""Induce: the seed ontology's classes and properties find their instances (PolyRAG Eq. 1).

Values come from the graph's facts, from sentences like those of the ontology's examples, and from a
language model, if there is one. All are linked to individuals, fitted to domain and range, and
settled against axioms and shapes; those that fail are rejects.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain
from typing import Any, Protocol, cast

import numpy as np
import pyarrow as pa

from kpyramid.completion.corrections import Corrections
from kpyramid.completion.decisions import Decisions
from kpyramid.completion.nouns import find_filing
from kpyramid.completion.top import draft_classes, keep_properties
from kpyramid.documents.sentences import Span, cut_passages
from kpyramid.documents.words import IS_A, lemmatise, normalise_relation
from kpyramid.embeddings.port import Embedder
from kpyramid.extraction.cascade.grounding import CONFIDENCE
from kpyramid.extraction.cascade.reading import Cascade
from kpyramid.extraction.cascade.windows import WINDOWED, WindowExtraction, list_windows
from kpyramid.extraction.syntax.tree import Tree, unpack_tree
from kpyramid.extraction.types import Mention as Mentioned
from kpyramid.keys import content_id
from kpyramid.ontology.constraints import Constraint, Rules
from kpyramid.ontology.population.checking import (
    COPULAS,
    UNTYPED,
    Candidate,
    Kinds,
    Linker,
    Mention,
    Misfit,
    Named,
    Place,
    check_name,
    check_value,
    combine_confidence,
    find_head,
    is_proper,
    note_ends,
    takes_nouns,
)
from kpyramid.ontology.population.examples import Value, Words
from kpyramid.ontology.population.inducer import Inducer
from kpyramid.ontology.population.witnesses import (
    Evidence,
    Use,
    Witnesses,
    WordForms,
    find_confidence,
    find_deed,
)
from kpyramid.ontology.proposals import adopt_proposals, identify_proposal
from kpyramid.ontology.schema import OntologyProperty, Schema, parse_schema
from kpyramid.pipeline.stages.instances import (
    Graph,
    MentionTable,
    Places,
    index_phrases,
    list_copulas,
    make_instances,
    make_member,
    make_rejects,
    part_rejects,
    read_facts,
    reject_place,
    state_values,
)
from kpyramid.pipeline.stages.tables import (
    Row,
    build_rejects,
    build_table,
    build_vectors,
    make_reject,
    read_chunks,
)
from kpyramid.storage.former import Former

# Values that readers and models find in the documents' text, as candidates.


class Reader(Protocol):
    """Finds values in a parsed text; offsets are characters of that text."""

    def read(self, tree: Tree) -> Sequence[Value]: ...


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a document, from character `start` on, that is read as one text."""

    document_id: str
    start: int
    text: str


class ChunkFinder:
    """Finds the first chunk that holds a character of a document."""

    def __init__(self, chunks: pa.Table) -> None:
        by_document: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
        for row in chunks.select(["chunk_id", "document_id", "start", "end"]).to_pylist():
            by_document[row["document_id"]].append((row["end"], row["start"], row["chunk_id"]))
        self._chunks = {document: sorted(rows) for document, rows in by_document.items()}

    def find(self, document_id: str, position: int) -> str:
        """The first chunk that ends after a character; the last for characters after all chunks."""
        rows = self._chunks[document_id]
        return rows[min(bisect_right(rows, position, key=lambda row: row[0]), len(rows) - 1)][2]


@dataclass(frozen=True)
class Checker:
    """Makes candidates from values: links their ends, then fits them to domain and range."""

    linker: Linker
    schema: Schema
    kinds: Kinds
    places: Places

    def check(self, value: Value, stretch: Stretch, chunk_id: str) -> Candidate | Row:
        """The candidate for a value of a stretch, or the reject."""
        subject_span = _shift(value.subject, stretch)
        object_span = _shift(value.object, stretch)
        ends = (subject_span, object_span)
        numbers = (number for span in ends for number in (span.start, span.end))
        key = content_id("value", stretch.document_id, value.property_iri, *numbers, value.producer)
        spans = [_shift(value.evidence, stretch), *ends]
        checked = self._check(value, stretch.document_id, chunk_id, spans, key)
        if isinstance(checked, Candidate):
            return checked
        label = self.schema.property_by_iri[value.property_iri].label
        detail = f"{value.subject.text} | {label} | {value.object.text}: {checked.detail}"
        place = {"document_id": stretch.document_id, "chunk_id": chunk_id}
        return make_reject("induce", checked.reason, key, detail, **place)

    def check_kind(
        self, mention: Mentioned, kind: str, stretch: Stretch, chunk_id: str, producer: str
    ) -> Candidate | Row:
        """The membership that a mention's class states, or the reject."""
        document_id, words = stretch.document_id, mention.text
        span = _shift(mention.span, stretch)
        key = content_id("kind", document_id, kind, span.start, span.end, producer)
        linked = self.linker.find(document_id, words, span)
        iri = self._class_of.get(kind.casefold())
        if isinstance(linked, str) or iri is None:
            fault: Misfit | None = Misfit("subject_not_linked", str(linked))
        elif not is_proper(linked) and not takes_nouns(iri, self.schema):
            fault = Misfit("bad_name", f"{linked.name!r} is no name of an individual")
        else:
            fault = check_name(linked, self.kinds)
            if fault is None:
                place = self.places.make(chunk_id, [span], (span, None), CONFIDENCE, producer, key)
                return make_member(iri, linked.entity_id, place)
        ids = {"document_id": document_id, "chunk_id": chunk_id}
        detail = f"{words} is a {kind}: {fault.detail if fault else ''}"
        return make_reject("induce", fault.reason if fault else "", key, detail, **ids)

    @cached_property
    def _class_of(self) -> dict[str, str]:
        return {each.label.casefold(): each.iri for each in reversed(self.schema.classes)}

    def _check(
        self, value: Value, document_id: str, chunk_id: str, spans: Sequence[Span], key: str
    ) -> Candidate | Misfit:
        prop = self.schema.property_by_iri[value.property_iri]
        _, subject_span, object_span = spans
        subject = self.linker.find(document_id, value.subject.text, subject_span)
        if not isinstance(subject, Named):
            return Misfit("subject_not_linked", subject)
        object_end: Named | str = value.object.text
        if not prop.is_datatype:
            linked = self.linker.find(document_id, value.object.text, object_span)
            if not isinstance(linked, Named):
                return Misfit("object_not_linked", linked)
            object_end = linked
        place = self.places.make(
            chunk_id, spans, (subject_span, object_span), value.confidence, value.producer, key
        )
        return check_value(prop, subject, object_end, place, self.schema, self.kinds, read=True)


def part_unsure(
    read: Sequence[Candidate], facts: Iterable[Candidate], least: float
) -> Iterator[Candidate | Row]:
    """The read values with enough confidence over their places, and rejects of the others.

    Values that a fact states pass.
    """
    known = {_identify(candidate) for candidate in facts}
    stated: dict[tuple[str, ...], list[Candidate]] = defaultdict(list)
    for candidate in read:
        stated[_identify(candidate)].append(candidate)
    for key, group in stated.items():
        sure = combine_confidence(candidate.place for candidate in group)
        if key in known or sure >= least:
            yield from group
            continue
        for candidate in group:
            place, label = candidate.place, candidate.prop.label if candidate.prop else ""
            detail = f"{label}: {sure:.2f} sure, {least:g} asked: {place.text}"
            yield reject_place(place, "induce", "low_confidence", place.source, detail)


def _identify(candidate: Candidate) -> tuple[str, ...]:
    """Property, subject and value."""
    iri = candidate.prop.iri if candidate.prop else ""
    return iri, candidate.subject_id, candidate.object_id or "", candidate.literal or ""


def read_kinds(
    documents: pa.Table, chunks: pa.Table, cascade: Cascade, checker: Checker
) -> Iterator[Candidate | Row]:
    """Memberships by the model's classes of entities in windows, or their rejects.

    The values are facts of the graph already; windows without a reply are rejects of extract.
    """
    finder = ChunkFinder(chunks)
    rows = documents.select([*WINDOWED]).to_pylist()
    windows = list(list_windows(rows, cascade.settings.window))
    results = cascade.read([window for *_, window in windows])
    for (document, start, window), result in zip(windows, results, strict=True):
        for mention, kind in result.kinds if isinstance(result, WindowExtraction) else ():
            chunk_id = finder.find(document, mention.span.start + start)
            stretch = Stretch(document, start, window.text)
            yield checker.check_kind(mention, kind, stretch, chunk_id, cascade.model)


def ask_model(
    documents: pa.Table, chunks: pa.Table, inducer: Inducer, checker: Checker
) -> Iterator[Candidate | Row]:
    """The values that a model finds in the chunks, or rejects of those that do not fit.

    Unsupported values and requests without a usable reply are rejects too.
    """
    rows = chunks.select(["chunk_id", "document_id", "start", "text"]).to_pylist()
    readings = inducer.induce(read_chunks(documents, chunks))
    for row, reading in zip(rows, readings, strict=True):
        stretch = Stretch(row["document_id"], row["start"], row["text"])
        chunk_id = row["chunk_id"]
        ids = {"document_id": row["document_id"], "chunk_id": chunk_id}
        for value in reading.values:
            yield checker.check(value, stretch, chunk_id)
        for dropped in reading.dropped:
            location = f"{dropped.span.start + stretch.start}-{dropped.span.end + stretch.start}"
            detail = f"characters {location}: {dropped.text}"
            key = f"{chunk_id} {location}"
            yield make_reject("induce", dropped.reason, key, detail, **ids)
        for failed in reading.failures:
            reason, key = f"llm_{failed.failure.kind}", f"{chunk_id} {failed.asked}"
            detail = f"{failed.asked}: {failed.failure.detail}"
            yield make_reject("induce", reason, key, detail, **ids)


def _shift(words: Words | Span, stretch: Stretch) -> Span:
    return Span(words.start + stretch.start, words.end + stretch.start)


def read_passages(
    documents: pa.Table,
    chunks: pa.Table,
    annotator: Callable[[Sequence[str]], Sequence[str]],
    reader: Reader,
    checker: Checker,
) -> Iterator[Candidate | Row]:
    """The values of the documents' passages, or rejects of those that do not fit."""
    stretches = [
        Stretch(row["document_id"], span.start, row["text"][span.start : span.end])
        for row in documents.select(["document_id", "text"]).to_pylist()
        for span in cut_passages(row["text"])
    ]
    packed = annotator([stretch.text for stretch in stretches])
    finder = ChunkFinder(chunks)
    known: dict[str, Sequence[Value]] = {}
    for stretch, parse in zip(stretches, packed, strict=True):
        if stretch.text not in known:
            known[stretch.text] = reader.read(unpack_tree(stretch.text, parse))
        for value in known[stretch.text]:
            position = stretch.start + value.evidence.start
            yield checker.check(value, stretch, finder.find(stretch.document_id, position))


# Induce: the seed ontology's classes and properties find their instances (PolyRAG Eq. 1).

_BESIDE = 80
"""Characters before and after a mention that may state its kind."""
_BLOCK = 4096
"""Rows that are objects at a time."""
_NAMED = 0.9
"""Weight of a class that the head of a name states, as `Bank` in `First Bank of Ohio`."""


def run(
    documents: pa.Table,
    chunks: pa.Table,
    claims: pa.Table,
    mentions: pa.Table,
    raw_triples: pa.Table,
    entities: pa.Table,
    relations: pa.Table,
    triples: pa.Table,
    *,
    former: Former | None,
    schema: Schema,
    drafting: Decisions | None,
    shapes: Sequence[Constraint],
    embedder: Embedder,
    annotator: Callable[[Sequence[str]], Sequence[str]],
    reader: Reader | None,
    cascade: Cascade | None,
    inducer: Inducer | None,
    min_confidence: float,
    corrections: Corrections,
) -> dict[str, pa.Table]:
    """`instances` with their evidence, the vectors of those with a value, and `rejects`.

    With `drafting` also `proposals`: the classes that the corpus adds to the ontology before it is
    filled, and the properties of the last ontology; both take over their names in `former`.

    `entities`: individuals found by a reader or a model of which the graph has no fact. The
    reader's values need the confidence `min_confidence` over all their places, as facts have it
    already.
    """
    graph = Graph(documents, chunks, claims, raw_triples, entities, relations, triples)
    drafts: Sequence[Row] = ()
    if drafting is not None:
        drafts = _draft(mentions, graph, schema, former, drafting, embedder)
        schema = adopt_proposals(schema, drafts)
    rules = Rules(schema, tuple(shapes))
    kinds = Kinds(schema)
    places, index = graph.places, index_phrases(schema.properties)
    mentioned = MentionTable(mentions, chunks, entities)
    linker = Linker(_walk_rows(entities), mentioned, kinds.find_by_name)
    witnesses = Witnesses(schema, WordForms(places.sentences.texts.values()))
    counts: dict[int, Mapping[str, int]] = {}
    shared: dict[frozenset[str], frozenset[str]] = {}
    only_kinds = set()
    ids = [*linker.named]
    evidence = _walk_evidence([*linker.named.values()], graph, index, schema)
    for row, (key, cues) in enumerate(zip(ids, evidence, strict=True)):
        cues.uses = [_cut_use(mention, places) for mention in mentioned.list_entity(row)]
        named, counted = linker.named[key], witnesses.count(cues)
        if counted:
            counts[row] = counted
        if cues.is_kind:
            only_kinds.add(row)
        known = named.kinds.union(counted)
        wanted = witnesses.overrule_tag(cues, known)
        known |= {wanted} if wanted else set()
        linker.named[key] = replace(
            named,
            type=UNTYPED if wanted or witnesses.refutes_tag(cues) else named.type,
            kinds=shared.setdefault(known, known),
            is_common=witnesses.is_common(named.name),
        )
    classes = corrections.classify(entities.to_pylist() if corrections.entries else (), schema)
    for key, iri in classes.items():
        linker.named[key] = replace(linker.named[key], type=UNTYPED, kinds=frozenset({iri}))
    copulas = [
        candidate
        for facts in graph.walk_facts(graph.find_stated({IS_A}))
        for candidate in list_copulas(facts, linker.named, kinds, schema)
        if candidate.subject_id not in classes
    ]
    for candidate in copulas:
        named = linker.named[candidate.subject_id]
        linker.named[named.entity_id] = replace(named, kinds=named.kinds | {candidate.class_iri})
    individuals = (
        (linker.named[key], counts.get(row, {}), mentioned.list_entity(row))
        for row, key in enumerate(ids)
        if row not in only_kinds
    )
    members, rejects = _list_members(individuals, kinds, places, schema, classes)
    rejects += [
        make_reject("induce", "unmatched_correction", *unmatched)
        for unmatched in corrections.list_unmatched(classes=True)
    ]
    del individuals, ids, counts
    kind_of = {candidate.place.source: candidate.class_iri for candidate in copulas}
    candidates: list[Candidate] = []
    for facts in graph.walk_facts(graph.find_stating(index)):
        read = read_facts(
            *("induce", facts, linker.named, index, schema, kinds, linker.find, kind_of)
        )
        candidates += part_rejects(read, rejects)
    checker = Checker(linker, schema, kinds, places)
    if reader is not None:
        passages = read_passages(documents, chunks, annotator, reader, checker)
        values = part_rejects(passages, rejects)
        candidates += part_rejects(part_unsure(values, candidates, min_confidence), rejects)
    if cascade is not None:
        candidates += part_rejects(read_kinds(documents, chunks, cascade, checker), rejects)
    if inducer is not None:
        candidates += part_rejects(ask_model(documents, chunks, inducer, checker), rejects)
    names = {key: named.name for key, named in {**linker.named, **linker.made}.items()}
    rows, losses = make_instances([*members, *copulas, *candidates], rules)
    refused = make_rejects("induce", losses, names)
    stated = {row[key] for row in rows for key in ("subject_id", "object_id") if row[key]}
    made = [row for row in linker.list_made() if row["entity_id"] in stated]
    return {
        "entities": build_table("entities", made),
        "instances": build_table("instances", rows),
        "proposals": build_table("proposals", drafts),
        "vectors": build_vectors("instances", *state_values(rows, schema, names), embedder),
        "rejects": build_rejects(rejects + refused),
    }


def _draft(
    mentions: pa.Table,
    graph: Graph,
    schema: Schema,
    former: Former | None,
    decisions: Decisions,
    embedder: Embedder,
) -> Sequence[Row]:
    """The classes that a corpus needs, and the properties that it had, each with its facts."""
    columns = mentions.select(["text", "type", "chunk_id"])
    blocks = (block.to_pydict().values() for block in columns.to_batches(_BLOCK))
    phrases = (row for block in blocks for row in zip(*block, strict=True))
    old = parse_schema(former.read_schema(), source="the last snapshot") if former else None
    old = old if old and old.base == schema.base else None
    layer, support = graph.layer, defaultdict[str, set[int]](set)
    filed = np.flatnonzero(find_filing(layer)).tolist()
    ends = ((layer.tails[i], layer.tail_types[i], layer.head_keys[i]) for i in filed)
    said: list[tuple[str, str]] = [(wording, "value") for wording in layer.wordings]
    for i in filed:
        said[i] = layer.head_keys[i], "kind"
    subjects = ((wording, "subject") for wording in layer.wordings)
    sides = (
        (*end, *what) for end, what in zip(layer.walk_ends(), chain(subjects, said), strict=True)
    )
    rows = draft_classes(chain(phrases, ends), sides, schema, old, decisions, embedder)
    find = cache(Kinds(adopt_proposals(schema, rows)).find_by_name)
    names: defaultdict[str, set[str]] = defaultdict(set)
    for place, end in enumerate(layer.walk_ends()):
        for iri in find(*end):
            support[iri].add(place % len(layer))
            names[iri].add(end[0].casefold())
    drafts = [row for row in rows if _keep_words(row, names[str(row["iri"])])]
    for row in keep_properties(old, adopt_proposals(schema, drafts), decisions) if old else ():
        forms = {
            words: normalise_relation(words).key for words in cast("list[str]", row["phrases"])
        }
        stated = {words: graph.find_stated({form}).tolist() for words, form in forms.items()}
        if _keep_words(row, {words for words, places in stated.items() if places}):
            support[str(row["iri"])].update(*stated.values())
            drafts.append(row)
    for row in drafts:
        places = pa.array(sorted(support[str(row["iri"])]), pa.int64())
        ids = sorted(graph.ids.take(places).to_pylist())
        key = content_id("proposal", *identify_proposal(row))
        row |= {"proposal_id": key, "support": len(ids), "triple_ids": ids, "agreement": 1.0}
    return drafts


_OF_DATES = frozenset({"date", "year"})
"""Words of a property's name that its wordings may lack: `year built`."""


def _keep_words(row: dict[str, Any], stated: Collection[str]) -> bool:
    """Reduces a proposal's phrases to words of its facts; whether its label has only such words.

    Whoever sees these facts sees the words. A person's proposal stays as it is.
    """
    if row["decided_by"] == "file":
        return True
    words = {word for text in stated for word in (*text.split(), *map(lemmatise, text.split()))}
    row["phrases"] = [p for p in row["phrases"] if words.issuperset(p.split())]
    return bool(stated) and (words | _OF_DATES).issuperset(row["label"].split())


def _walk_rows(entities: pa.Table) -> Iterator[Row]:
    for block in entities.drop_columns(["mentions"]).to_batches(max_chunksize=_BLOCK):
        yield from block.to_pylist()


def _walk_evidence(
    known: Sequence[Named],
    graph: Graph,
    index: Mapping[str, Sequence[OntologyProperty]],
    schema: Schema,
) -> Iterator[Evidence]:
    """The facts' evidence on each entity's kind, in the order of the entities."""
    stating = {form: props for form, props in index.items() if form not in COPULAS}
    for named, (active, passive) in zip(known, graph.walk_ends(), strict=True):
        evidence = Evidence(named.name)
        for relation, fact, row in active:
            if relation == IS_A:
                evidence.stated.add(find_head(graph.read_tail(fact)))
            elif not relation.endswith(">"):
                evidence.deeds.add(find_deed(relation))
            if props := stating.get(relation):
                other = known[row] if row >= 0 else graph.read_tail(fact)
                ends = [(prop.iri, prop.domain, prop.range) for prop in props]
                note_ends(evidence, ends, other, schema)
        for relation, _, row in passive:
            if relation.endswith("<by>"):
                evidence.deeds.add(find_deed(relation))
            props = stating.get(relation, ())
            ends = [(prop.iri, prop.range, prop.domain) for prop in props if not prop.is_datatype]
            note_ends(evidence, ends, known[row], schema)
        evidence.is_kind = not active and {relation for relation, *_ in passive} == {IS_A}
        yield evidence


def _cut_use(mention: Mention, places: Places) -> Use:
    text = places.sentences.texts[places.document_of[mention.chunk_id]]
    start, end = mention.start, mention.end
    return Use(mention.type, text[max(0, start - _BESIDE) : start], text[end : end + _BESIDE])


def _list_members(
    individuals: Iterable[tuple[Named, Mapping[str, int], Sequence[Mention]]],
    kinds: Kinds,
    places: Places,
    schema: Schema,
    classes: Mapping[str, str],
) -> tuple[list[Candidate], list[Row]]:
    """Memberships by the entities' witnesses and names; their evidence is the first mention.

    That is the first of the entity's type, if a mention has it.
    """
    candidates: list[Candidate] = []
    rejects: list[Row] = []
    for individual, counted, mentions in individuals:
        named = {
            iri: _NAMED
            for iri in kinds.find_by_name(individual.name, individual.type)
            if takes_nouns(iri, schema) or not individual.is_common
        }
        weights = named | {iri: find_confidence(number) for iri, number in counted.items()}
        if (given := classes.get(individual.entity_id)) is not None:
            weights = {given: 1.0}
        if not weights or not mentions:
            continue
        fault = check_name(individual, kinds)
        if fault is not None:
            rejects.append(make_reject("induce", fault.reason, individual.entity_id, fault.detail))
            continue
        wanted = individual.type if any(m.type == individual.type for m in mentions) else None
        for class_iri, weight in sorted(weights.items()):
            place = _find_mention(mentions, wanted, weight, places)
            candidates.append(make_member(class_iri, individual.entity_id, place))
    return candidates, rejects


def _find_mention(
    mentions: Iterable[Mention], wanted: str | None, weight: float, places: Places
) -> Place:
    """The place of the first mention, by chunk and character, of a type if `wanted`."""
    ordered = sorted(
        (m.chunk_id, m.start, m.end, m.mention_id)
        for m in mentions
        if wanted is None or m.type == wanted
    )
    chunk_id, start, end, source = ordered[0]
    span = Span(start, end)
    return places.make(chunk_id, [span], (span, None), weight, "rules", source)
