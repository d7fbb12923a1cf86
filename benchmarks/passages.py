"""How many of the passages that answer a question are found, and how high.

Recall, nDCG (Järvelin and Kekäläinen, TOIS 2002, binary gains) and MRR of documents; a document
counts once, at its best passage (`evaluation/metrics.py`). A pyramid is built from the
corpus, and `retrieve` asked: the figures are those of `walk`, the way that it goes, `ways` has
those of the others beside it, `without` those of `walk` with one of its parts off, and `halves`
those of `walk` on two halves of the questions, by a hash of their ids. In files like these the
passages of a question stand beside each other and are numbered so: `shuffled` has the figures of a
second pyramid, of the same passages in another order under other ids, and `shuffled_difference` the
largest difference, which is to be 0; what a text is read as is computed once for both.

`baselines` are rankings of whole documents without a pyramid: BM25 (k1 1.5, b .75, words of two
letters or more, nothing stemmed), the cosine of the project's embedding model on title and text,
both by reciprocal rank fusion (Cormack et al., SIGIR 2009), and a title graph: where the text of
one of the five nearest documents names the title of another, this one has at least the mean of both
cosines. `--reproduce` scores these alone.
"""

import json
import random
import re
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import bm25s
import numpy as np
from embedding import open_embedder
from making.bridges import link_titles, make_bridges
from options import explain_faults, print_figures, read_options, report
from sets import musique, passages
from sets.files import QuestionSet

from kpyramid.errors import GateError
from kpyramid.evaluation.metrics import RETRIEVAL_METRICS
from kpyramid.evaluation.questions import EvalQuestion
from kpyramid.pipeline.build import build
from kpyramid.query import Snapshot, open_snapshot, retrieval, retrieve
from kpyramid.query import passages as walk
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.passages import find_passages
from kpyramid.query.types import Answer, Item, Question
from kpyramid.settings import check_settings
from kpyramid.snapshot.evidence import Evidence
from kpyramid.storage.layout import Warehouse, open_warehouse

FOLDER = "fiqa_dev"
DEEP = 30
"""Passages asked for, so that ten documents are among them when each has several."""
FUSION = 60
"""The constant of reciprocal rank fusion, as published."""
SEEDS = 5
"""Documents from which the title graph goes on."""
WAYS = ("bm25", "vectors", "both", "walk")
PARTS: Mapping[str, tuple[Any, str, Any]] = {
    "titles of the question": (Snapshot, "find_titled", lambda *_: []),
    "titles in passages": (Snapshot, "link_titles", lambda *_: []),
    "other names in passages": (walk, "NAMES", 0),
    "a second step": (walk, "REACHED", 0),
    "facts": (retrieval, "CARRIED", 0),
    "words": (walk, "WORDS_PART", 0.0),
    "crowding": (walk, "CROWD_PART", 0.0),
    "the first passages": (walk, "FIRST_PART", 0.0),
    "less for what follows": (walk, "FOLLOWING", 0.0),
}
"""What is switched off for each part: of what, its name, and what stands in its place."""
NAMES = (
    *("recall_at_2", "recall_at_5", "recall_at_8", "recall_at_10"),
    *("all_gold_at_5", "all_gold_at_8", "ndcg_at_10", "mrr"),
)
Figures = dict[str, float]


def read_passages(folder: Path, limit: int | None, bridges: int = 0) -> QuestionSet:
    """The set of a folder with its first questions.

    Raises:
        ValueError: it has no passages with questions, or no question has gold passages.
    """
    found = passages.read(folder) or musique.read(folder)
    if found is None:
        raise ValueError("no corpus.jsonl with questions.jsonl")
    asked = tuple(q for q in found.questions if q.gold_documents)[:limit]
    if not asked:
        raise ValueError("no question says which passages are right")
    if bridges:
        asked = tuple(make_bridges(found.corpus, bridges, 0))
    return QuestionSet(found.name, found.corpus, asked, found.licence)


def shuffle_passages(found: QuestionSet, seed: int) -> QuestionSet:
    """The set with its passages in another order and under ids that say nothing else."""
    corpus = random.Random(seed).sample(found.corpus, len(found.corpus))  # noqa: S311
    names = {row["id"]: f"s{at:06}" for at, row in enumerate(corpus)}
    return replace(
        found,
        corpus=tuple({**row, "id": names[row["id"]]} for row in corpus),
        questions=tuple(
            replace(q, gold_documents=tuple(names.get(gold, gold) for gold in q.gold_documents))
            for q in found.questions
        ),
    )


def build_pyramid(
    corpus: Sequence[Mapping[str, str]], place: Path, name: str = "corpus"
) -> Snapshot:
    """The pyramid of passages; what its warehouse has computed already is not computed again.

    `name` is that of the corpus among those of the warehouse. A gate that keeps it from being
    published does not matter here.
    """
    source = place / name
    source.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(dict(row), ensure_ascii=False) + "\n" for row in corpus)
    (source / "corpus.jsonl").write_text("".join(lines), "utf-8")
    return build_folder(source, place / "warehouse")


def build_folder(
    source: Path, place: Path, further: Mapping[str, Mapping[str, object]] | None = None
) -> Snapshot:
    """The pyramid of a folder of texts in a warehouse; `further`: settings beside its own."""
    publish = {"min_document_share": 0.0, "min_triple_share": 0.0}
    settings = check_settings({"publish": publish, **(further or {})}, {"file": "this measurement"})
    warehouse: Warehouse = open_warehouse(place)
    try:
        name = build(source, warehouse, settings).snapshot
    except GateError as refused:
        name = str(refused.report["snapshot"])
        report(f"A gate refused the snapshot, which is measured all the same: {refused}")
    return open_snapshot(name, warehouse.root)


def score_ranks(questions: Sequence[EvalQuestion], ranked: Sequence[Sequence[str]]) -> Figures:
    """The mean of each measure over questions, given the documents found for each, best first."""
    metrics = {m.name: m for m in RETRIEVAL_METRICS}
    responses = [Answer(context=(_cite(documents),)) for documents in ranked]
    pairs = list(zip(questions, responses, strict=True))
    return {
        name: round(float(np.mean([metrics[name].measure(q, r) or 0.0 for q, r in pairs])), 3)
        for name in NAMES
    }


def _cite(documents: Sequence[str]) -> Item:
    places = (Evidence("", "", 0, 0, "", source) for source in documents)
    return Item("", "", "text", 0.0, tuple(places))


def rank_by(way: Any, snapshot: Snapshot) -> Callable[[str], list[str]]:
    """A ranking of documents by their passages."""

    def rank(question: str) -> list[str]:
        if way == "walk":
            items = list(retrieve(question, snapshot, passages=DEEP).passages)
        else:
            items = find_passages(QuestionAnalysis(Question(question), snapshot), DEEP, by=way)
        return [place.source for item in items for place in item.evidence]

    return rank


def measure_shuffled(found: QuestionSet, figures: Mapping[str, Any], place: Path, seed: int) -> Any:
    """The figures of `walk` on shuffled passages, and how far they are from the given ones."""
    shuffled = shuffle_passages(found, seed)
    report(f"Building a pyramid of the same {len(shuffled.corpus)} passages in another order")
    rank = rank_by("walk", build_pyramid(shuffled.corpus, place, "shuffled"))
    again = score_ranks(shuffled.questions, [rank(q.text) for q in shuffled.questions])
    again = {name: value for name, value in again.items() if name in figures}
    far = max(abs(value - figures[name]) for name, value in again.items())
    return {"shuffled": again, "shuffled_difference": round(far, 3)}


def measure_ways(questions: Sequence[EvalQuestion], snapshot: Snapshot) -> dict[str, Any]:
    """The figures of `walk`, of its halves, and of the other ways."""
    ways: dict[str, Any] = {}
    for way in WAYS:
        rank, ranked, seconds = rank_by(way, snapshot), [], []
        rank(questions[0].text)  # what is read once is read before the first is timed
        for question in questions:
            started = time.perf_counter()
            ranked.append(rank(question.text))
            seconds.append(time.perf_counter() - started)
        ways[way] = {**score_ranks(questions, ranked), "p50_ms": round(1000 * median(seconds), 1)}
    halves: dict[str, Figures] = {}
    for half in (0, 1):
        part = [
            (q, found)
            for q, found in zip(questions, ranked, strict=True)
            if sha256(q.id.encode()).digest()[0] % 2 == half
        ]
        if part:
            halves[str(half)] = score_ranks([q for q, _ in part], [found for _, found in part])
    return {**ways["walk"], "ways": ways, "halves": halves}


def measure_without(questions: Sequence[EvalQuestion], snapshot: Snapshot) -> dict[str, Figures]:
    """The figures of `walk` with each of its parts off."""
    without = {}
    for part, (target, name, off) in PARTS.items():
        with mock.patch.object(target, name, off):
            rank = rank_by("walk", snapshot)
            without[part] = score_ranks(questions, [rank(q.text) for q in questions])
    return without


def measure_baselines(
    corpus: Sequence[Mapping[str, str]], questions: Sequence[EvalQuestion]
) -> dict[str, Figures]:
    """Rankings of whole documents; ties go to the earlier document."""
    texts = [f"{row.get('title', '')}\n{row['text']}".strip() for row in corpus]
    ranker = bm25s.BM25(method="robertson", k1=1.5, b=0.75)
    ranker.index([split_words(text) for text in texts], show_progress=False)
    by_words = np.stack([ranker.get_scores(split_words(q.text)) for q in questions])
    report(f"Embedding {len(texts)} documents and {len(questions)} questions")
    embedder = open_embedder()
    held = np.concatenate([embedder.embed([text]) for text in texts])
    by_vectors = embedder.embed([q.text for q in questions]) @ held.T
    scored = {
        "bm25": by_words,
        "vectors": by_vectors,
        "both": sum(1 / (FUSION + rank_rows(scores)) for scores in (by_words, by_vectors)),
        "title_graph": spread_titles(by_vectors, link_titles(corpus)),
    }
    return {
        name: score_ranks(questions, [[corpus[i]["id"] for i in row] for row in order_rows(scores)])
        for name, scores in scored.items()
    }


def spread_titles(scores: Any, linked: Sequence[Collection[int]]) -> Any:
    """Scores after one step from the nearest documents of each question."""
    spread = scores.copy()
    for row, best in enumerate(np.argsort(-scores, axis=1, kind="stable")[:, :SEEDS]):
        for seed in best:
            for other in linked[seed]:
                mean = (scores[row, seed] + scores[row, other]) / 2
                spread[row, other] = max(spread[row, other], mean)
    return spread


def rank_rows(scores: Any) -> Any:
    """The rank of each document for each question, the best 1."""
    return np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1, kind="stable") + 1


def split_words(text: str) -> list[str]:
    return re.findall(r"\b\w\w+\b", text.lower())


def order_rows(scores: Any) -> Any:
    """For each question the first documents by score."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :DEEP].tolist()


def measure(options: Any) -> dict[str, Any]:
    """All figures."""
    with explain_faults(options.data, FOLDER):
        found = read_passages(options.data, options.limit, int(options.bridges or 0))
    counts = {"questions": len(found.questions), "passages": len(found.corpus)}
    if options.reproduce:
        return {"baselines": measure_baselines(found.corpus, found.questions), **counts}
    kept = options.keep and nullcontext(options.keep)
    with kept or tempfile.TemporaryDirectory() as place:
        report(f"Building a pyramid of {len(found.corpus)} passages")
        snapshot = build_pyramid(found.corpus, Path(place))
        figures = measure_ways(found.questions, snapshot)
        figures["without"] = measure_without(found.questions, snapshot)
        figures["baselines"] = measure_baselines(found.corpus, found.questions)
        figures |= measure_shuffled(found, figures, Path(place), options.seed)
        return {**figures, **counts}


def main() -> None:
    options = read_options(
        __doc__,
        folder=FOLDER,
        limit="the first N questions only; the corpus stays whole",
        seed="of the other order of the passages",
        flags={"--reproduce": "score the baselines alone, without a pyramid"},
        values={
            "--bridges": "so many questions made of titles that texts name, in place of the set's",
            "--keep": "a folder for the pyramid, which is then not built twice",
        },
    )
    print_figures(measure(options), options.json)


if __name__ == "__main__":
    main()
