"""CESI's sets (Vashishth et al., WWW 2018): which names of open facts mean the same thing.

Scores are the three of Galárraga et al., "Canonicalizing Open Knowledge Bases" (CIKM 2014), as CESI
reports them. Recall is precision with the sides exchanged.

The gold links each subject to an entity of Freebase; as a set of questions, choice questions ask
for another name of one that has several, with names of other entities as wrong options.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

from making.facts import Fact, Thing
from making.questions import make_questions

from sets.files import QuestionSet, find_by_fields, read_json_lines, read_licence


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


def score_b3(ours: Sequence[Hashable], gold: Sequence[Hashable]) -> Score:
    """B³ (Bagga and Baldwin, 1998): the mean over elements of what is right of their cluster."""
    both = Counter(zip(ours, gold, strict=True))
    sizes = [Counter(labels) for labels in (ours, gold)]
    sides = [
        sum(count**2 / size[pair[side]] for pair, count in sorted(both.items(), key=str))
        for side, size in enumerate(sizes)
    ]
    return Score(*(total / len(ours) for total in sides))


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


_RELATION = "other name"


def read(folder: Path) -> QuestionSet | None:
    """The set, or nothing when no file links subjects."""
    paths = find_by_fields(folder, "*.jsonl", "triple", "true_link", "src_sentences")
    if not paths:
        return None
    corpus: dict[str, str] = {}
    names: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for path in paths:
        for row in read_json_lines(path):
            for number, sentence in enumerate(row["src_sentences"]):
                text = str(sentence).strip()
                key = corpus.setdefault(text, f"{row['_id']}-{number}")
                names[str(row["true_link"]["subject"])][str(row["triple"][0])][key] = text
    facts = [
        Fact(
            Thing(f"{entity} {one}", one),
            _RELATION,
            Thing(f"{entity} {other}", other),
            documents=tuple(sorted({*of[one], *of[other]})),
            evidence=tuple(sorted({*of[one].values(), *of[other].values()})),
        )
        for entity, of in sorted(names.items())
        for one in sorted(of)
        for other in sorted(of)
        if one != other and entity.startswith("/m/")
    ]
    made = make_questions(facts, sides=("object",))
    return QuestionSet(
        folder.name,
        tuple({"id": key, "text": text} for text, key in corpus.items()),
        made.questions,
        read_licence(folder),
        "choice questions made from the gold links: another name of the same thing",
        made.left_out,
    )
