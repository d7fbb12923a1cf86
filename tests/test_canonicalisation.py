"""Scores of clusters: against brute force, planted cases, and published figures where at hand."""

import itertools
import json
import random
from collections.abc import Hashable, Sequence
from pathlib import Path

import canon
import pytest
from sets.canon import score_clusters

from tests.corpora import find_bench


def count_by_hand(left: Sequence[Hashable], right: Sequence[Hashable]) -> tuple[float, ...]:
    """Macro, micro and pairwise precision straight from their definitions."""
    clusters = [[i for i, label in enumerate(left) if label == name] for name in set(left)]
    pure = sum(len({right[i] for i in cluster}) == 1 for cluster in clusters)
    major = sum(
        max(sum(right[i] == name for i in cluster) for name in set(right)) for cluster in clusters
    )
    pairs = [(i, j) for i, j in itertools.combinations(range(len(left)), 2) if left[i] == left[j]]
    hits = sum(right[i] == right[j] for i, j in pairs)
    return pure / len(clusters), major / len(left), hits / len(pairs) if pairs else 1.0


@pytest.mark.parametrize("seed", range(40))
def test_scores_agree_with_their_definitions_counted_by_hand(seed: int) -> None:
    dice = random.Random(seed)
    size = dice.randint(1, 14)
    ours = [dice.randrange(5) for _ in range(size)]
    gold = [dice.randrange(5) for _ in range(size)]

    scores = score_clusters(ours, gold)

    measures = (scores.macro, scores.micro, scores.pairwise)
    assert tuple(m.precision for m in measures) == pytest.approx(count_by_hand(ours, gold))
    assert tuple(m.recall for m in measures) == pytest.approx(count_by_hand(gold, ours))


@pytest.mark.slow
def test_simple_rules_reproduce_the_known_figures() -> None:
    triples = canon.read_triples(find_bench("canon_base"), None)
    gold = [triple.gold for triple in triples]

    exact = score_clusters([t.normal_head for t in triples], gold)
    last = score_clusters([t.head.split()[-1].casefold() for t in triples], gold)

    assert (round(exact.macro.f1, 3), round(exact.micro.f1, 3)) == (0.583, 0.883)
    assert (round(last.macro.f1, 3), round(last.micro.f1, 3)) == (0.773, 0.967)


def test_the_benchmark_reads_any_folder_of_the_same_form(tmp_path: Path) -> None:
    names = ["Anna Holm", "Anna Holm", "the Anna Holm", "Leon Batt"]
    rows = [
        {"triple": [name, "meet", f"Friend{n}"], "triple_norm": [name.lower(), "meet", "x"]}
        | {"true_link": {"subject": name.removeprefix("the ")}}
        for n, name in enumerate(names)
    ]
    text = "\n".join(json.dumps(row) for row in rows)
    (tmp_path / "other_test.jsonl").write_text(text, "utf-8")

    figures = canon.measure(tmp_path, None, True)

    assert (figures["triples"], figures["gold_clusters"]) == (4, 2)
    assert figures["macro_f1"] == figures["micro_f1"] == figures["pairwise_f1"] == 1.0
    assert figures["exact_string"]["macro_recall"] == 0.5
