"""Naive RAG: the chunks nearest to the question."""

import numpy as np

from kpyramid.extraction.sentences import split_sentences
from kpyramid.query.snapshot import Snapshot
from kpyramid.query.types import Answer, Evidence


def ask_naive(question: str, snapshot: Snapshot, *, chunks: int = 5) -> Answer:
    """The `chunks` nearest chunks as context, their sentence nearest to the question as answer."""
    found = snapshot.neighbours(question, chunks, "chunks")
    evidence = [place for key, _, _ in found for place in snapshot.evidence(key)]
    best = _pick_sentence(question, evidence, snapshot)
    step = f"text: {len(found)} chunks" + (f", best cosine {found[0][2]:.2f}" if found else "")
    ordered = [best, *(item for item in evidence if item != best)] if best else evidence
    return Answer(
        text=best.text if best else "",
        choices=(best.text,) if best else (),
        context=tuple(item.text for item in evidence),
        layer="text" if best else None,
        evidence=tuple(ordered),
        trace=(step,),
    )


def _pick_sentence(question: str, evidence: list[Evidence], snapshot: Snapshot) -> Evidence | None:
    sentences = [
        Evidence(
            item.document_id,
            item.chunk_id,
            item.start + span.start,
            item.start + span.end,
            item.text[span.start : span.end],
            item.source,
        )
        for item in evidence
        for span in split_sentences(item.text)
    ]
    if not sentences:
        return None
    vectors = snapshot.embedder.embed([question, *(sentence.text for sentence in sentences)])
    return sentences[int(np.argmax(vectors[1:] @ vectors[0]))]
