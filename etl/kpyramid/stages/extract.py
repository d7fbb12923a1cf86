"""Extract: chunks become claims, mentions and raw triples, every one with its spans.

An extraction counts characters within its chunk; here it is bound to the chunk's place in the
document, so that equal texts share one extraction and keep all their places.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa

from kpyramid.extraction.types import Extraction, Fact, Span
from kpyramid.keys import content_id
from kpyramid.stages.tables import Row, build_rejects, build_table, make_reject

ExtractFunction = Callable[[Sequence[str]], Sequence[Extraction]]

_PRODUCER = "rules"


def run(chunks: pa.Table, *, extractor: ExtractFunction) -> dict[str, pa.Table]:
    """`claims`, `mentions`, `raw_triples`; a dropped fact, and a chunk without any, is a reject."""
    rows = chunks.to_pylist()
    claims: list[Row] = []
    mentions: dict[str, Row] = {}
    triples: dict[str, Row] = {}
    rejects: list[Row] = []
    for chunk, extraction in zip(rows, extractor([row["text"] for row in rows]), strict=True):
        place = {"document_id": chunk["document_id"], "chunk_id": chunk["chunk_id"]}
        bound = [_bind_claim(chunk, claim.text, claim.spans) for claim in extraction.claims]
        claims += {str(row["claim_id"]): row for row in bound}.values()
        claim_ids = [str(row["claim_id"]) for row in bound]
        for mention in extraction.mentions:
            start, end = (chunk["start"] + mention.span.start, chunk["start"] + mention.span.end)
            claim_id = claim_ids[mention.claim]
            mention_id = content_id("mention", claim_id, mention.text, mention.type, start, end)
            mentions[mention_id] = {
                "mention_id": mention_id,
                "claim_id": claim_id,
                "chunk_id": chunk["chunk_id"],
                "text": mention.text,
                "type": mention.type,
                "start": start,
                "end": end,
            }
        for fact in extraction.facts:
            row = _bind_fact(chunk, claim_ids[fact.claim], fact)
            triples[str(row["raw_triple_id"])] = row
        for dropped in extraction.dropped:
            span = f"{chunk['start'] + dropped.span.start}-{chunk['start'] + dropped.span.end}"
            key = content_id("candidate", chunk["chunk_id"], span, dropped.text)
            detail = f"characters {span}: {dropped.text}"
            rejects.append(make_reject("extract", dropped.reason, key, detail, **place))
        if not extraction.facts:
            detail = "no fact was found in the chunk; it stays in the text layer"
            rejects.append(make_reject("extract", "no_fact", chunk["chunk_id"], detail, **place))
    return {
        "claims": build_table("claims", claims),
        "mentions": build_table("mentions", mentions.values()),
        "raw_triples": build_table("raw_triples", triples.values()),
        "rejects": build_rejects(rejects),
    }


def _bind_claim(chunk: Mapping[str, int], text: str, spans: Iterable[Span]) -> Row:
    places = [_shift(span, chunk["start"]) for span in spans]
    return {
        "claim_id": content_id("claim", chunk["chunk_id"], text, places),
        "chunk_id": chunk["chunk_id"],
        "text": text,
        "spans": places,
        "producer": _PRODUCER,
    }


def _bind_fact(chunk: Mapping[str, int], claim_id: str, fact: Fact) -> Row:
    spans = {
        part: _shift(span, chunk["start"]) if span else None
        for part, span in (
            ("head_span", fact.head_span),
            ("relation_span", fact.relation_span),
            ("tail_span", fact.tail_span),
        )
    }
    words = [fact.head, fact.relation, fact.tail]
    stance = (fact.negated, fact.modality, fact.attribution, dict(fact.qualifiers))
    return {
        "raw_triple_id": content_id("raw", claim_id, words, spans, *stance),
        "claim_id": claim_id,
        "chunk_id": chunk["chunk_id"],
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
