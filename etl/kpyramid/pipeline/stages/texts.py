"""What readers and models find in the documents' text, as candidates for the ontology."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import pyarrow as pa

from kpyramid.documents.sentences import Span, cut_passages
from kpyramid.extraction.cascade.grounding import CONFIDENCE
from kpyramid.extraction.cascade.reading import Cascade
from kpyramid.extraction.cascade.windows import WINDOWED, WindowExtraction, list_windows
from kpyramid.extraction.syntax.tree import Tree, unpack_tree
from kpyramid.extraction.types import Chunk
from kpyramid.extraction.types import Mention as Mentioned
from kpyramid.keys import content_id
from kpyramid.ontology.population.checking import (
    Candidate,
    Kinds,
    Linker,
    Misfit,
    Named,
    check_name,
    check_value,
    combine_confidence,
    is_proper,
    takes_nouns,
)
from kpyramid.ontology.population.examples import Value, Words
from kpyramid.ontology.population.inducer import Inducer
from kpyramid.ontology.schema import Schema
from kpyramid.pipeline.stages.instances import Places, reject_at
from kpyramid.pipeline.stages.tables import Row, make_reject
from kpyramid.storage.contracts import map_column


class Reader(Protocol):
    """Finds values in a parsed text; offsets are characters of that text."""

    def read(self, tree: Tree) -> Sequence[Value]: ...


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a document that is read as one text, from character `start` on."""

    document_id: str
    start: int
    text: str


class ChunkFinder:
    """Which chunk of a document a character belongs to: the first that holds it."""

    def __init__(self, chunks: pa.Table) -> None:
        found: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
        for row in chunks.select(["chunk_id", "document_id", "start", "end"]).to_pylist():
            found[row["document_id"]].append((row["end"], row["start"], row["chunk_id"]))
        self._chunks = {document: sorted(rows) for document, rows in found.items()}

    def find(self, document_id: str, at: int) -> str:
        """The first chunk that ends after a character; the last for what follows all chunks."""
        rows = self._chunks[document_id]
        return rows[min(bisect_right(rows, at, key=lambda row: row[0]), len(rows) - 1)][2]


@dataclass(frozen=True)
class Checker:
    """Makes candidates of values: links their ends, then fits them to domain and range."""

    linker: Linker
    schema: Schema
    kinds: Kinds
    places: Places

    def check(self, value: Value, stretch: Stretch, chunk_id: str) -> Candidate | Row:
        """The candidate that a value of a stretch is, or the reject."""
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
        """The membership that a class of a mention of a stretch is, or the reject."""
        document_id, words = stretch.document_id, mention.text
        span = Span(mention.span.start + stretch.start, mention.span.end + stretch.start)
        key = content_id("kind", document_id, kind, span.start, span.end, producer)
        found = self.linker.find(document_id, words, span)
        iri = self._class_of.get(kind.casefold())
        if isinstance(found, str) or iri is None:
            fault: Misfit | None = Misfit("subject_not_linked", str(found))
        elif not is_proper(found) and not takes_nouns(iri, self.schema):
            fault = Misfit("bad_name", f"{found.name!r} is no name of an individual")
        else:
            fault = check_name(found, self.kinds)
            if fault is None:
                place = self.places.make(chunk_id, [span], (span, None), CONFIDENCE, producer, key)
                return Candidate(None, iri, found.entity_id, None, None, None, place)
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
        other: Named | str = value.object.text
        if not prop.is_datatype:
            found = self.linker.find(document_id, value.object.text, object_span)
            if not isinstance(found, Named):
                return Misfit("object_not_linked", found)
            other = found
        place = self.places.make(
            chunk_id, spans, (subject_span, object_span), value.confidence, value.producer, key
        )
        return check_value(prop, subject, other, place, self.schema, self.kinds, read=True)


def part_unsure(
    read: Sequence[Candidate], facts: Iterable[Candidate], least: float
) -> Iterator[Candidate | Row]:
    """The read values that their places make sure enough, and rejects of the others.

    A value that a fact states needs no more.
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
            yield reject_at(place, "induce", "low_confidence", place.source, detail)


def _identify(candidate: Candidate) -> tuple[str, ...]:
    """Property, subject and value."""
    iri = candidate.prop.iri if candidate.prop else ""
    return iri, candidate.subject_id, candidate.object_id or "", candidate.literal or ""


def read_kinds(
    documents: pa.Table, chunks: pa.Table, cascade: Cascade, checker: Checker
) -> Iterator[Candidate | Row]:
    """The classes that a model gave the entities of windows, or the reject of what has none.

    The values are facts of the graph already; a window without a reply is a reject of extraction.
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
    """The values that a model finds in the chunks, or the reject of one that does not fit.

    What it said without support, and what it gave no usable reply on, are rejects too.
    """
    title = map_column(documents, "document_id", "title")
    rows = chunks.select(["chunk_id", "document_id", "start", "text"]).to_pylist()
    passages = [Chunk(row["text"], title[row["document_id"]], row["document_id"]) for row in rows]
    for row, reading in zip(rows, inducer.induce(passages), strict=True):
        stretch = Stretch(row["document_id"], row["start"], row["text"])
        chunk_id = row["chunk_id"]
        for value in reading.values:
            yield checker.check(value, stretch, chunk_id)
        for dropped in reading.dropped:
            at = f"{dropped.span.start + stretch.start}-{dropped.span.end + stretch.start}"
            detail = f"characters {at}: {dropped.text}"
            yield _refuse(dropped.reason, f"{chunk_id} {at}", detail, row)
        for failed in reading.failures:
            reason, key = f"llm_{failed.failure.kind}", f"{chunk_id} {failed.asked}"
            detail = f"{failed.asked}: {failed.failure.detail}"
            yield _refuse(reason, key, detail, row)


def _refuse(reason: str, key: str, detail: str, chunk: Row) -> Row:
    ids = {name: str(chunk[name]) for name in ("document_id", "chunk_id")}
    return make_reject("induce", reason, key, detail, **ids)


def _shift(words: Words, stretch: Stretch) -> Span:
    return Span(words.start + stretch.start, words.end + stretch.start)


def read_passages(
    documents: pa.Table,
    chunks: pa.Table,
    annotator: Callable[[Sequence[str]], Sequence[str]],
    reader: Reader,
    checker: Checker,
) -> Iterator[Candidate | Row]:
    """The values of the documents' passages, or the reject of one that does not fit."""
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
            at = stretch.start + value.evidence.start
            yield checker.check(value, stretch, finder.find(stretch.document_id, at))
