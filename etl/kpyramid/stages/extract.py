"""Extract: documents become claims, mentions and raw triples, every one with its spans.

Passages are read, not chunks, so that a pronoun finds its antecedent in the document; each claim
then belongs to the first chunk that holds it. Equal passages share one extraction and keep all
their places.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from kpyramid.extraction.text.passages import cut_passages
from kpyramid.extraction.types import Claim, Extraction, Fact, Span
from kpyramid.keys import content_id
from kpyramid.stages.tables import Row, build_rejects, build_table, make_reject

ExtractFunction = Callable[[Sequence[str]], Sequence[Extraction]]

_PRODUCER = "rules"


def run(
    documents: pa.Table, chunks: pa.Table, *, extractor: ExtractFunction
) -> dict[str, pa.Table]:
    """`claims`, `mentions`, `raw_triples`; a dropped fact, and a chunk without any, is a reject."""
    chunks_of = _group_chunks(chunks)
    passages = [
        _Passage(chunks_of[row["document_id"]], span.start, row["text"][span.start : span.end])
        for row in documents.select(["document_id", "text"]).to_pylist()
        for span in cut_passages(row["text"])
    ]
    claims: dict[str, Row] = {}
    mentions: dict[str, Row] = {}
    triples: dict[str, Row] = {}
    rejects: list[Row] = []
    extractions = extractor([passage.text for passage in passages])
    for passage, extraction in zip(passages, extractions, strict=True):
        bound = [_bind_claim(passage, claim) for claim in extraction.claims]
        claims.update((str(row["claim_id"]), row) for row in bound)
        for mention in extraction.mentions:
            claim = bound[mention.claim]
            span = _shift(mention.span, passage.start)
            mention_id = content_id(
                "mention", str(claim["claim_id"]), mention.text, mention.type, *span.values()
            )
            mentions[mention_id] = {
                "mention_id": mention_id,
                "claim_id": claim["claim_id"],
                "chunk_id": claim["chunk_id"],
                "text": mention.text,
                "type": mention.type,
                **span,
            }
        for fact in extraction.facts:
            row = _bind_fact(passage, bound[fact.claim], fact)
            triples[str(row["raw_triple_id"])] = row
        for dropped in extraction.dropped:
            chunk = passage.find_chunk(dropped.span)
            place = _shift(dropped.span, passage.start)
            characters = f"{place['start']}-{place['end']}"
            key = content_id("candidate", chunk.chunk_id, characters, dropped.text)
            detail = f"characters {characters}: {dropped.text}"
            rejects.append(make_reject("extract", dropped.reason, key, detail, **chunk.place))
    spoken = {row["chunk_id"] for row in triples.values()}
    for chunk in (chunk for document in chunks_of.values() for chunk in document):
        if chunk.chunk_id not in spoken:
            detail = "no fact was found that an earlier chunk does not hold; it stays in the text"
            rejects.append(make_reject("extract", "no_fact", chunk.chunk_id, detail, **chunk.place))
    return {
        "claims": build_table("claims", claims.values()),
        "mentions": build_table("mentions", mentions.values()),
        "raw_triples": build_table("raw_triples", triples.values()),
        "rejects": build_rejects(rejects),
    }


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


def _bind_claim(passage: _Passage, claim: Claim) -> Row:
    places = [_shift(span, passage.start) for span in claim.spans]
    # Antecedents stand before the clause that refers to them.
    chunk = passage.find_chunk(max(claim.spans, key=lambda span: (span.start, span.end)))
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
        "producer": _PRODUCER,
    }


def _bind_fact(passage: _Passage, claim: Row, fact: Fact) -> Row:
    spans = {
        part: _shift(span, passage.start) if span else None
        for part, span in (
            ("head_span", fact.head_span),
            ("relation_span", fact.relation_span),
            ("tail_span", fact.tail_span),
        )
    }
    words = [fact.head, fact.relation, fact.tail]
    stance = (fact.negated, fact.modality, fact.attribution, dict(fact.qualifiers))
    return {
        "raw_triple_id": content_id("raw", str(claim["claim_id"]), words, spans, *stance),
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
        "producer": _PRODUCER,
    }


def _shift(span: Span, offset: int) -> dict[str, int]:
    return {"start": span.start + offset, "end": span.end + offset}
