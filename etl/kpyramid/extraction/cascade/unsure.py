"""On which chunks the rules are unsure, so that a model is asked in hybrid mode."""

from kpyramid.extraction.cascade.chunks import Chunk, find_clause
from kpyramid.extraction.text.sentences import split_sentences

LEAST_PER_SENTENCE = 1.0
"""Facts expected to be right per sentence, below which a chunk is sent."""
LEAST_COVERED = 0.5
"""Share of sentences with a fact more likely right than not, below which a chunk is sent."""


def is_unsure(chunk: Chunk) -> bool:
    """Whether the rules read too little in a chunk, or are too unsure of it.

    Confidences are calibrated probabilities, so their sum is the number of right facts to expect.
    """
    sentences = list(split_sentences(chunk.text))
    if not sentences:
        return False
    claims, facts = chunk.found.claims, chunk.found.facts
    expected = sum(fact.confidence for fact in facts)
    starts = [find_clause(claims[f.claim]).start for f in facts if f.confidence > 0.5]
    covered = sum(any(s.start <= start < s.end for start in starts) for s in sentences)
    few = expected < LEAST_PER_SENTENCE * len(sentences)
    return few or covered < LEAST_COVERED * len(sentences)
