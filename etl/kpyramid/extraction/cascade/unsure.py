"""On which chunks the rules are unsure, so that a model is asked in hybrid mode."""

import re

from kpyramid.extraction.cascade.chunks import Chunk

LEAST_PER_WORD = 0.06
"""Right facts to expect per word, below which a chunk is sent.

Half of what GPT-3.5 states in 1,890 passages of Wikipedia: 17,234 triples, 0.118 per word. Below
it the rules probably miss at least half. Of what tells how many of those triples the rules found
in a passage this does best (rank correlation 0.53; 0.31 for expected facts per sentence, 0.28 for
the share of sentences with a likely fact, 0.10 for the mean confidence).
"""

_WORD = re.compile(r"\w+")


def is_unsure(chunk: Chunk) -> bool:
    """Whether the rules read too little in a chunk, or are too unsure of what they read.

    Their confidences are calibrated probabilities: the sum is the number of right facts to expect.
    """
    words = len(_WORD.findall(chunk.text))
    return sum(fact.confidence for fact in chunk.found.facts) < LEAST_PER_WORD * words
