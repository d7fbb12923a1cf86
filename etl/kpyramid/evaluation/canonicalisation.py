"""How well clusters agree with gold clusters: macro, micro and pairwise scores.

The three measures of Galárraga et al., "Canonicalizing Open Knowledge Bases" (CIKM 2014), as
Vashishth et al., "CESI" (WWW 2018), report them. Recall is precision with the sides exchanged.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Score:
    """Precision and recall, 0 to 1."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """The harmonic mean; 0 when both are."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


@dataclass(frozen=True, slots=True)
class ClusterScores:
    """Share of clusters that are pure, of elements in their cluster's majority, of pairs."""

    macro: Score
    micro: Score
    pairwise: Score


def score_clusters(ours: Sequence[Hashable], gold: Sequence[Hashable]) -> ClusterScores:
    """The agreement of two labellings of the same elements, in the same order.

    Linear in the elements: all counts come from the table of label pairs.

    Raises:
        ValueError: there are no elements, or the labellings differ in length.
    """
    if not ours:
        raise ValueError("no elements to score: give at least one")
    both = Counter(zip(ours, gold, strict=True))
    swapped = Counter({(right, left): count for (left, right), count in both.items()})
    forth, back = _score_one_way(both), _score_one_way(swapped)
    macro, micro, pairwise = (Score(*sides) for sides in zip(forth, back, strict=True))
    return ClusterScores(macro, micro, pairwise)


def _score_one_way(
    both: Counter[tuple[Hashable, Hashable]],
) -> tuple[float, float, float]:
    """Macro, micro and pairwise precision of the left labels against the right ones."""
    sizes: Counter[Hashable] = Counter()
    parts: Counter[Hashable] = Counter()
    largest: Counter[Hashable] = Counter()
    for (left, _), count in both.items():
        sizes[left] += count
        parts[left] += 1
        largest[left] = max(largest[left], count)
    macro = sum(part == 1 for part in parts.values()) / len(parts)
    micro = sum(largest.values()) / sum(sizes.values())
    pairs = sum(map(_count_pairs, sizes.values()))
    hits = sum(map(_count_pairs, both.values()))
    return macro, micro, hits / pairs if pairs else 1.0


def _count_pairs(size: int) -> int:
    return size * (size - 1) // 2
