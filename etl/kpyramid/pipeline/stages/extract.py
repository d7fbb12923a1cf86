"""Extract: documents become claims, mentions and raw triples, all with their spans.

The rules read passages, not chunks, so that a pronoun finds its antecedent in the document; each
claim then belongs to the first chunk that holds it. Equal passages of documents of one title share
one extraction and keep all their places.

A language model reads windows of whole blocks, whose claims are bound as those of passages; in
paper mode it reads chunks, and its output belongs to the chunk. Cells and key–value pairs are left
to the rules: a model is not asked about a part that has little else, and repeated facts are
dropped. The rules read prose all the same: they give the types of names, the antecedents of
pronouns, and the cascade's steps by rules.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

import pyarrow as pa

from kpyramid.documents.blocks import Block, cut_blocks, read_blocks
from kpyramid.documents.sentences import Dropped, Span, cut_parts, cut_passages
from kpyramid.documents.validity import find_date, is_pointed, place_times
from kpyramid.extraction.cascade.reading import Cascade
from kpyramid.extraction.cascade.windows import WINDOWED, WindowExtraction, list_windows
from kpyramid.extraction.types import (
    Chunk,
    Claim,
    ExtractFunction,
    Extraction,
    Fact,
    Titled,
    cut_extraction,
    find_clause,
    part_extraction,
)
from kpyramid.keys import content_id
from kpyramid.llm.task import Failure
from kpyramid.pipeline.stages.tables import Row, build_rejects, build_table, make_reject
from kpyramid.storage.contracts import load_contracts

_RULES = "rules"
_ROWS = 50_000
"""Rows that are held as objects, a kilobyte each."""


def run(
    documents: pa.Table,
    chunks: pa.Table,
    *,
    extractor: ExtractFunction,
    cascade: Cascade | None,
) -> dict[str, pa.Table]:
    """`claims`, `mentions`, `raw_triples`; rejects for dropped facts, and for chunks without any.

    A chunk is a reject, too, if a model gave no usable reply to it, be it to a second look or a
    check: reason `llm_` and the kind of failure.
    """
    chunks_of = _group_chunks(chunks)
    passages: dict[Titled, list[_Passage]] = defaultdict(list)
    for document_id, start, part in list_passages(documents):
        passages[part].append(_Passage(chunks_of[document_id], start, part.text, part.blocks))
    rows = documents.select(["document_id", "metadata", "title"]).to_pylist()
    made = _Made({r["document_id"]: find_date(dict(r["metadata"]), r["title"]) for r in rows})
    if cascade is None:
        for titled, extraction in extractor(passages.keys()):
            for passage in passages[titled]:
                made.add(passage, extraction, _RULES, _RULES)
            made.pack()
    else:
        known = dict(extractor(passages.keys()))
        by_rules: list[tuple[_Passage, Extraction]] = []
        read: dict[str, list[Span]] = defaultdict(list)
        for part, each in passages.items():
            tables, prose = part_extraction(known[part], _list_cells(part.blocks))
            spans = [span for claim in tables.claims for span in claim.spans]
            if spans:
                headers = (b for b in part.blocks if b.kind == "cell" and b.level)
                spans += (Span(block.start, block.end) for block in headers)
            for passage in each:
                made.add(passage, tables, _RULES, _RULES)
                by_rules.append((passage, prose))
                read[passage.chunks[0].document_id] += [
                    Span(span.start + passage.start, span.end + passage.start) for span in spans
                ]
        _read_by_model(documents, read, chunks_of, by_rules, cascade, made)
    made.reject_silent(chunk for document in chunks_of.values() for chunk in document)
    return made.build_tables()


def list_passages(documents: pa.Table) -> Iterator[tuple[str, int, Titled]]:
    """Each passage of the documents: the document's id, its start, and its text with blocks."""
    for row in documents.select(["document_id", "title", "text", "blocks"]).to_pylist():
        text, blocks = row["text"], read_blocks(row["blocks"])
        for span in cut_passages(text):
            inside = tuple(cut_blocks(blocks, span.start, span.end))
            passage = Titled(text[span.start : span.end], row["title"] or "", inside)
            yield row["document_id"], span.start, passage


def _read_by_model(
    documents: pa.Table,
    read: Mapping[str, Sequence[Span]],
    chunks_of: Mapping[str, Sequence["_Chunk"]],
    by_rules: Sequence[tuple["_Passage", Extraction]],
    cascade: Cascade,
    made: "_Made",
) -> None:
    """Adds what the model reads in each window or chunk, given the rules' extraction.

    `read`: the spans in each document whose facts the rules have.
    """
    by_document: dict[str, list[tuple[int, Extraction]]] = {}
    for passage, extraction in sorted(by_rules, key=lambda pair: pair[0].start):
        document = passage.chunks[0].document_id
        by_document.setdefault(document, []).append((passage.start, extraction))
    places: list[_Passage] = []
    proses: list[str] = []
    inputs: list[Chunk] = []
    for chunks, start, chunk in _list_parts(documents, chunks_of, cascade):
        document, end = str(chunk.document), start + len(chunk.text)
        prose = _blank(chunk.text, start, read.get(document, ()))
        if _is_beside(chunk.text, prose, 0, len(prose)):
            inside = by_document.get(document, ())
            places.append(_Passage(chunks, start, chunk.text))
            proses.append(prose)
            inputs.append(replace(chunk, extraction=cut_extraction(inside, start, end)))
    results = cascade.read(inputs)
    for passage, prose, result in zip(places, proses, results, strict=True):
        if isinstance(result, Failure):
            made.reject_unanswered(passage, result)
        else:
            for failure in result.unanswered if isinstance(result, WindowExtraction) else ():
                made.reject_unanswered(passage, failure, is_read=True)
            rest, twice = [], list(result.dropped)
            for fact in result.facts:
                spans = result.claims[fact.claim].spans
                if any(_is_beside(passage.text, prose, s.start, s.end) for s in spans):
                    rest.append(fact)
                else:
                    text = f"{fact.head} | {fact.relation} | {fact.tail}"
                    twice.append(Dropped("repeated", text, spans[-1]))
            result = replace(result, facts=tuple(rest), dropped=tuple(twice))
            made.add(passage, made.leave_out_overlap(passage, result), *cascade.producers)


def _list_parts(
    documents: pa.Table, chunks_of: Mapping[str, Sequence["_Chunk"]], cascade: Cascade
) -> Iterator[tuple[Sequence["_Chunk"], int, Chunk]]:
    """The parts that the model is asked about: their chunks, start, and text."""
    if cascade.settings.reads_windows:
        rows = documents.select([*WINDOWED]).to_pylist()
        for document, start, window in list_windows(rows, cascade.settings.window):
            if document in chunks_of:
                yield chunks_of[document], start, window
        return
    for row in documents.select(["document_id", "title", "text"]).to_pylist():
        document, text, title = row["document_id"], row["text"], row["title"]
        for place in chunks_of.get(document, ()):
            chunk = Chunk(text[place.start : place.end], title, document)
            yield [place], place.start, chunk


_AHEAD = frozenset("can may must shall should will".split())
"""Modals by which a bare month is the next one."""
_TABULAR = frozenset({"cell", "pair"})
_LEAST_BESIDE = 0.1
"""Least share of a stretch's letters outside cells and pairs with facts for a model to read it: the
rest of tables is dashes, totals, and headers without content."""


def _list_cells(blocks: Iterable[Block]) -> Callable[[Span], bool]:
    """Whether a span begins in a cell or a pair."""
    cells = [Span(block.start, block.end) for block in blocks if block.kind in _TABULAR]

    def is_within(span: Span) -> bool:
        index = bisect_right(cells, span.start, key=lambda cell: cell.start) - 1
        return index >= 0 and span.start < cells[index].end

    return is_within


def _blank(text: str, start: int, spans: Iterable[Span]) -> str:
    """A part of a document from `start` on, with spaces in place of the spans."""
    parts: list[str] = []
    position = 0
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        first, end = max(span.start - start, position), min(span.end - start, len(text))
        if end > first:
            parts += [text[position:first], " " * (end - first)]
            position = end
    return "".join([*parts, text[position:]])


def _is_beside(text: str, prose: str, start: int, end: int) -> bool:
    """Whether a stretch has enough letters besides cells and pairs with facts."""
    letters = sum(map(str.isalpha, prose[start:end]))
    return 0 < letters >= _LEAST_BESIDE * sum(map(str.isalpha, text[start:end]))


@dataclass(slots=True)
class _Made:
    """The rows made so far, by id; finished passages as tables, which take less memory.

    `days`: the documents' dates, from which times such as "last year" are resolved.
    """

    days: Mapping[str, date | None]
    claims: dict[str, Row] = field(default_factory=dict)
    mentions: dict[str, Row] = field(default_factory=dict)
    triples: dict[str, Row] = field(default_factory=dict)
    rejects: list[Row] = field(default_factory=list)
    _packed: dict[str, list[pa.Table]] = field(default_factory=lambda: defaultdict(list))
    _spoken: set[str] = field(default_factory=set)
    _stated: dict[tuple[object, ...], int] = field(default_factory=dict)
    _unanswered: set[str] = field(default_factory=set)

    def pack(self, least: int = _ROWS) -> None:
        """Packs the rows into tables if there are `least`; no later row has their ids."""
        if len(self.mentions) + len(self.rejects) < least:
            return
        self._spoken.update(row["chunk_id"] for row in self.triples.values())
        made = {"claims": self.claims, "mentions": self.mentions, "raw_triples": self.triples}
        for name, rows in made.items():
            self._packed[name].append(build_table(name, rows.values()))
            rows.clear()
        self._packed["rejects"].append(build_rejects(self.rejects))
        self.rejects.clear()

    def build_tables(self) -> dict[str, pa.Table]:
        """The tables with all rows."""
        self.pack(0)
        return {name: load_contracts()[name].unite(parts) for name, parts in self._packed.items()}

    def add(
        self,
        passage: "_Passage",
        extraction: Extraction,
        claims_by: str,
        facts_by: str,
    ) -> None:
        """Adds the rows of an extraction, bound to its passage."""
        parts = passage.list_parts() if extraction.claims else []
        bound = [_bind_claim(passage, claim, claims_by, parts) for claim in extraction.claims]
        self.claims.update((row["claim_id"], row) for row in bound)
        for mention in extraction.mentions:
            claim = bound[mention.claim]
            span = _shift(mention.span, passage.start)
            mention_id = content_id(
                "mention", claim["claim_id"], mention.text, mention.type, *span.values()
            )
            self.mentions[mention_id] = {
                "mention_id": mention_id,
                "claim_id": claim["claim_id"],
                "chunk_id": claim["chunk_id"],
                "text": mention.text,
                "type": mention.type,
                **span,
            }
        for fact in extraction.facts:
            day = self.days[passage.chunks[0].document_id]
            is_planned = fact.modality == "planned" or (
                fact.modality in _AHEAD and " have " not in f" {fact.relation} "
            )  # by a model, by rules: "may begin in May", not "may have begun"
            times = place_times(fact.qualifiers, day, is_planned=is_planned)
            placed = replace(fact, qualifiers=times)
            if fact.relation.endswith((" in", " on")) and is_pointed(fact.tail):  # "retired in May"
                resolved = place_times({"time": fact.tail}, day, is_planned=is_planned).get("time")
                placed = replace(placed, tail=resolved or fact.tail, tail_span=None)
            row = _bind_fact(passage, bound[fact.claim], placed, facts_by)
            self.triples[row["raw_triple_id"]] = row
        for dropped in extraction.dropped:
            chunk = passage.find_chunk(dropped.span)
            place = _shift(dropped.span, passage.start)
            characters = f"{place['start']}-{place['end']}"
            key = content_id("candidate", chunk.chunk_id, characters, dropped.text)
            detail = f"characters {characters}: {dropped.text}"
            self.rejects.append(make_reject("extract", dropped.reason, key, detail, **chunk.place))

    def leave_out_overlap(self, passage: "_Passage", extraction: Extraction) -> Extraction:
        """The extraction without the facts that an earlier chunk states in the same place.

        Chunks overlap, so the same sentence is read twice; its fact counts once.
        """
        document = passage.chunks[0].document_id
        fresh: list[Fact] = []
        repeated: list[Dropped] = []
        for fact in extraction.facts:
            spans = extraction.claims[fact.claim].spans
            places = tuple((s.start + passage.start, s.end + passage.start) for s in spans)
            words = (fact.head.casefold(), fact.relation.casefold(), fact.tail.casefold())
            key = (document, places, words, fact.negated)
            if self._stated.setdefault(key, passage.start) == passage.start:
                fresh.append(fact)
            else:
                text = f"{fact.head} | {fact.relation} | {fact.tail}"
                repeated.append(Dropped("repeated", text, spans[-1]))
        return replace(extraction, facts=tuple(fresh), dropped=(*extraction.dropped, *repeated))

    def reject_unanswered(
        self, passage: "_Passage", failure: Failure, *, is_read: bool = False
    ) -> None:
        """Rejects the chunks of a part to which the model gave no usable reply.

        If the part `is_read`, a follow-up request failed, whose key is the row's.
        """
        end = passage.start + len(passage.text)
        for chunk in passage.chunks:
            if chunk.start < end and chunk.end > passage.start:
                key = failure.key if is_read else chunk.chunk_id
                self._unanswered.update([] if is_read else [key])
                fields = ("extract", f"llm_{failure.kind}", key, failure.detail)
                self.rejects.append(make_reject(*fields, **chunk.place))

    def reject_silent(self, chunks: Iterable["_Chunk"]) -> None:
        """Rejects the chunks without a fact, unless they have a reject already."""
        self.pack(0)
        spoken = self._spoken | self._unanswered
        detail = "no fact was found that an earlier chunk does not hold; it stays in the text"
        self.rejects += [
            make_reject("extract", "no_fact", chunk.chunk_id, detail, **chunk.place)
            for chunk in chunks
            if chunk.chunk_id not in spoken
        ]


@dataclass(frozen=True, slots=True)
class _Chunk:
    chunk_id: str
    document_id: str
    start: int
    end: int

    @property
    def place(self) -> dict[str, str]:
        return {"document_id": self.document_id, "chunk_id": self.chunk_id}


@dataclass(frozen=True, slots=True)
class _Passage:
    """A stretch of a document from `start` on; the document's chunks are sorted by place."""

    chunks: Sequence[_Chunk]
    start: int
    text: str
    blocks: tuple[Block, ...] = ()

    def list_parts(self) -> list[Span]:
        """The spans of its sentences, cells and pairs by start; no sentence begins in a cell."""
        cells = [Span(b.start, b.end) for b in self.blocks if b.kind in _TABULAR]
        prose = (part for part, is_row in cut_parts(self.text, self.blocks) if not is_row)
        return sorted((*prose, *cells), key=lambda part: part.start)

    def find_chunk(self, span: Span) -> _Chunk:
        """The first chunk that holds all of these characters, else the last that begins before."""
        start, end = span.start + self.start, span.end + self.start
        before = max(bisect_right(self.chunks, start, key=lambda chunk: chunk.start), 1)
        first = before - 1
        while first > 0 and self.chunks[first - 1].end >= end:
            first -= 1
        return self.chunks[first]


def _group_chunks(chunks: pa.Table) -> dict[str, list[_Chunk]]:
    grouped: dict[str, list[_Chunk]] = {}
    columns = chunks.select(["chunk_id", "document_id", "start", "end"])
    for row in columns.sort_by([("start", "ascending"), ("end", "ascending")]).to_pylist():
        grouped.setdefault(row["document_id"], []).append(_Chunk(**row))
    return grouped


def _bind_claim(passage: _Passage, claim: Claim, producer: str, parts: list[Span]) -> Row:
    whole = dict.fromkeys(_widen(span, parts) for span in claim.spans)
    places = [_shift(span, passage.start) for span in whole]
    chunk = passage.find_chunk(find_clause(claim))
    return {
        "claim_id": content_id("claim", chunk.chunk_id, claim.text, places),
        "chunk_id": chunk.chunk_id,
        "text": claim.text,
        "spans": places,
        "predicate": claim.predicate,
        "arguments": [
            {
                "role": argument.role,
                "text": argument.text,
                "span": _shift(argument.span, passage.start) if argument.span else None,
            }
            for argument in claim.arguments
        ],
        "producer": producer,
    }


def _bind_fact(passage: _Passage, claim: Row, fact: Fact, producer: str) -> Row:
    stated = {name: getattr(fact, name) for name in ("head_span", "relation_span", "tail_span")}
    spans = {name: span and _shift(span, passage.start) for name, span in stated.items()}
    words = [fact.head, fact.relation, fact.tail]
    stance = (fact.negated, fact.modality, fact.attribution, dict(fact.qualifiers))
    return {
        "raw_triple_id": content_id("raw", claim["claim_id"], words, spans, *stance),
        "claim_id": claim["claim_id"],
        "chunk_id": claim["chunk_id"],
        "head": fact.head,
        "relation": fact.relation,
        "tail": fact.tail,
        **spans,
        "negated": fact.negated,
        "modality": fact.modality,
        "attribution": fact.attribution,
        "qualifiers": sorted(fact.qualifiers.items()),
        "confidence": fact.confidence,
        "verdict": fact.verdict,
        "producer": producer,
    }


def _widen(span: Span, parts: list[Span]) -> Span:
    """The cell or sentences around a span: part of one may contradict the whole."""
    first = bisect_right(parts, span.start, key=lambda part: part.start) - 1
    last = bisect_right(parts, span.end - 1, key=lambda part: part.start) - 1
    start, end = parts[max(first, 0)].start, parts[max(last, 0)].end
    return Span(min(start, span.start), max(end, span.end))


def _shift(span: Span, offset: int) -> dict[str, int]:
    return {"start": span.start + offset, "end": span.end + offset}
