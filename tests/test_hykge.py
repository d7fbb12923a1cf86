"""HyKGE step by step, each test named after the section that it holds the code against."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kpyramid.embeddings.port import Matrix
from kpyramid.embeddings.reranking import CrossEncoder
from kpyramid.errors import SettingsError
from kpyramid.llm.task import FailureKind
from kpyramid.query import Backends, Snapshot, answer
from kpyramid.query.facts import StatedPath
from kpyramid.query.hykge import find_chains, score_chains
from kpyramid.query.types import Answer
from kpyramid.snapshot.adjacency import Adjacency
from kpyramid.snapshot.view import NearFact
from tests.cascade_script import CountingScript, reply_by_task
from tests.tiny_reranker import write_reranker

pytestmark = pytest.mark.usefixtures("passing_gates")

UNCLE = "Who was the uncle of the author of Grey Water?"
TOLD = {"answer": "Grey Water is by Mary Stone, a niece of John Harlow and of Quentin Zog."}
READ = {"says": True, "cites": [1], "answer": "John Harlow", "choices": [], "confidence": 0.9}


def ask_model(snapshot: Snapshot, told: Any = TOLD, **options: Any) -> tuple[Answer, Any]:
    asker = CountingScript(reply_by_task(hykge_hypothesis=told, hykge_answer=READ))
    backends = Backends(reader="llm", walk="llm", asker=asker)
    return answer(UNCLE, snapshot, "hykge", backends=backends, **options), asker


def make_path(*names: str) -> StatedPath:
    facts = tuple(
        NearFact(f"c{a}{b}", a, a, "ORG", "joins", b, b, "ORG", 0.0) for a, b in pairwise(names)
    )
    return StatedPath(names, facts, (True,) * len(facts))


class _Table:
    """Scores by hand: a row per text."""

    name = "table"

    def __init__(self, *rows: Sequence[float]) -> None:
        self.rows = np.array(rows, np.float32)

    def score(self, queries: Sequence[str], texts: Sequence[str]) -> Matrix:
        assert self.rows.shape == (len(texts), len(queries))
        return self.rows


def test_4_1_the_hypothesis_and_the_reading_are_exactly_two_calls(snapshot: Snapshot) -> None:
    found, asker = ask_model(snapshot)
    assert asker.tasks == ["hykge_hypothesis", "hykge_answer"]
    assert found.calls == 2 and found.text == "John Harlow"
    context = [
        line for line in asker.asked[-1].messages[1].content.splitlines() if line.startswith("[")
    ]
    assert "→" in context[0] or "←" in context[0], "4.4: chains first, with their arrows"
    assert "→" not in context[-1] and "←" not in context[-1], "descriptions after them"


def test_4_1_a_hypothesis_that_is_none_or_nonsense_leaves_the_question(snapshot: Snapshot) -> None:
    nonsense = ({"answer": ""}, {"answer": "Zq vv; 42!"})
    for told in (FailureKind.REFUSED, FailureKind.INVALID, *nonsense):
        found, asker = ask_model(snapshot, told)
        assert len(asker.asked) == found.calls == 2
        assert found.context and any("Grey Water" in line for line in found.recognised)


def test_4_1_2_entities_are_taken_from_hypothesis_and_relations_are_not(snapshot: Snapshot) -> None:
    found, _ = ask_model(snapshot, {"answer": "Mary Stone founded John Harlow in Devon."})

    (anchors,) = [line for line in found.recognised if line.startswith("anchors: ")]
    assert {"Grey Water", "Mary Stone", "John Harlow"} <= set(anchors[9:].split(", "))
    assert not any("founded → John Harlow" in item.text for item in found.context)


def test_4_2_2_chains_are_of_three_kinds_and_paths_follow_their_arrows(snapshot: Snapshot) -> None:
    graph, index = Adjacency(snapshot), snapshot.entities_by_name()
    named = ("grey water", "mary stone", "john harlow", "harlow brewing company", "peter ash")
    rows = graph.locate(index[name][0] for name in named if index.get(name))
    chains = find_chains(graph, [*rows.values()], 3)

    assert {chain.chain for chain in chains} <= {"path", "common tail", "common head"}
    assert all(all(c.forward) for c in chains if c.chain == "path")
    assert any(len(chain.facts) == 2 for chain in chains)


def test_4_3_a_chain_is_worth_the_mean_of_its_three_best_fragments() -> None:
    chains = [make_path("A", "B"), make_path("C", "D")]
    stray = _Table((0.9, 0.0, 0.0, 0.0), (0.5, 0.5, 0.5, 0.0))
    scores = score_chains(chains, ["a", "b", "c", "d"], stray.score)

    assert scores.tolist() == pytest.approx([0.3, 0.5])
    assert score_chains(chains, [], stray.score).tolist() == [0.0, 0.0]


def test_rules_answer_by_a_chain_whose_steps_each_have_a_sentence(snapshot: Snapshot) -> None:
    found = answer(UNCLE, snapshot, "hykge")

    assert (found.text, found.calls) == ("John Harlow", 0)
    assert found.context[0].text.startswith("Grey Water ←")
    assert found.context[0].evidence[1].text == "John Harlow was the uncle of Mary Stone."


def test_table_2_each_ablation_runs_and_says_what_is_left(snapshot: Snapshot) -> None:
    for switch in ("hypothesis", "fragments", "reranker", "chains", "descriptions"):
        found = answer(UNCLE, snapshot, "hykge", **{switch: False})
        texts = [item.text for item in found.context]
        arrows = [text for text in texts if "→" in text or "←" in text]
        assert bool(arrows) == (switch not in {"chains", "hypothesis"})
        assert (len(texts) > len(arrows)) == (switch != "descriptions")
        assert found.trace[-1].reason


def test_a_cross_encoder_by_path_scores_pairs(tmp_path: Path) -> None:
    encoder = CrossEncoder(write_reranker(tmp_path / "tiny"))
    scores = encoder.score(["harlow uncle", "novel"], ["uncle john harlow", "novel", "zog"])

    assert scores.shape == (3, 2) and ((scores > 0) & (scores < 1)).all()
    assert scores[0, 0] > scores[1, 0] == scores[2, 0]
    assert scores[1, 1] > scores[0, 1]
    alone = encoder.score(["novel"], ["novel"])
    assert alone[0, 0] == scores[1, 1]  # a score depends on its pair alone
    assert encoder.score([], ["x"]).shape == (1, 0) and encoder.score(["x"], []).shape == (0, 1)


def test_a_cross_encoder_that_is_none_is_named(snapshot: Snapshot, tmp_path: Path) -> None:
    folder = tmp_path / "none"
    with pytest.raises(SettingsError, match=r"none: model\.onnx is not there; name a folder with"):
        answer(UNCLE, snapshot, "hykge", rerank=str(folder))
    write_reranker(folder)
    (folder / "tokenizer.json").write_text("no tokenizer")
    with pytest.raises(SettingsError, match=r"tokenizer\.json cannot be read as .*; name a folder"):
        answer(UNCLE, snapshot, "hykge", rerank=str(folder))
