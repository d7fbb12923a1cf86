"""Hop facts, empty relations and passage recall on MuSiQue's multi-hop questions.

Questions, passages and gold hops are MuSiQue's (Trivedi et al., TACL 2022). `hop_facts` is the
share of gold hop facts whose two names one triple of the same passage joins: words of letters and
digits, in small letters, without articles; an argument matches a name when one contains the other
as a run of words; arguments of more than eight words do not count; either direction.
`empty_relations` is the share of all triples whose relation says nothing (`evaluation/hops.py`).
`recall_at_k` and `all_gold_at_5` rank title and text of every passage by the project's embedding
model. `--reproduce` scores the recorded triples in `openie_*.json` in place of our own.
"""

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kpyramid.embeddings.onnx import OnnxEmbedder
from kpyramid.evaluation.hops import (
    HopFact,
    Triple,
    is_empty_relation,
    score_hop_facts,
    score_retrieval,
)
from kpyramid.extraction.openie import DependencyExtractor
from kpyramid.extraction.syntax.parsing import Parser
from kpyramid.fingerprints import identify_resource
from kpyramid.settings import Settings

FOLDER = "musique100"
RANKS = (2, 5, 10)


def read_json(folder: Path) -> dict[str, Any]:
    """Corpus, questions and recorded triples, told apart by their fields."""
    found: dict[str, Any] = {}
    for path in sorted(folder.glob("*.json")):
        data = json.loads(path.read_text("utf-8"))  # recorded rows may hold NaN
        if isinstance(data, dict) and "docs" in data:
            found["recorded"] = data["docs"]
        elif data and "paragraphs" in data[0]:
            found["questions"] = data
        elif data and "text" in data[0]:
            found["corpus"] = data
    return found


def read_hops(folder: Path) -> list[HopFact]:
    """The gold hop facts of every `*.jsonl`."""
    rows = [
        json.loads(line)
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text("utf-8").splitlines()
    ]
    return [HopFact(r["sub"], r["obj"], r["passage"]) for r in rows if "passage" in r]


def read_recorded(documents: Sequence[Mapping[str, Any]]) -> tuple[dict[str, list[Triple]], int]:
    """The recorded triples by passage, and how many rows are no triples of texts."""
    triples: dict[str, list[Triple]] = {}
    broken = 0
    for document in documents:
        rows = triples.setdefault(document["text"], [])
        for row in document["extracted_triples"]:
            if len(row) == 3 and all(isinstance(part, str) for part in row):
                rows.append((row[0], row[1], row[2]))
            else:
                broken += 1
    return triples, broken


def extract_triples(texts: Sequence[str]) -> dict[str, list[Triple]]:
    """Our own triples by passage."""
    extractor = DependencyExtractor(Settings().extract.parser)
    return {
        text: [(f.head, f.relation, f.tail) for f in extraction.facts]
        for text, extraction in zip(texts, extractor.extract_all(texts), strict=True)
    }


def list_kinds(tails: Sequence[str]) -> frozenset[str]:
    """The tails whose head the tagger calls a common noun in "It is a <tail>."."""
    frames = [f"It is {'an' if tail[:1].lower() in 'aeiou' else 'a'} {tail}." for tail in tails]
    trees = Parser(Settings().extract.parser).parse_all(frames)
    return frozenset(
        tail
        for tail, tree in zip(tails, trees, strict=True)
        if any(
            node.dep in {"attr", "ROOT"} and node.tag in {"NN", "NNS"} and node.i > 1
            for node in tree.nodes
        )
    )


def measure_triples(hops: Sequence[HopFact], triples: Mapping[str, list[Triple]]) -> dict[str, Any]:
    """Hop facts and empty relations of a system's triples."""
    rows = [triple for found in triples.values() for triple in found]
    kinds = list_kinds(sorted({t for _, r, t in rows if r.lower().split()[1:] in (["a"], ["an"])}))
    found = score_hop_facts(hops, triples)
    empty = sum(is_empty_relation(r, t, kinds.__contains__) for _, r, t in rows)
    return {
        "hop_facts": round(sum(found) / len(found), 3) if found else None,
        "hops": len(found),
        "hops_found": sum(found),
        "empty_relations": round(empty / len(rows), 4) if rows else None,
        "triples": len(rows),
    }


def measure_retrieval(
    corpus: Sequence[Mapping[str, str]], questions: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Recall of the gold passages among all, by the cosine of embeddings."""
    identity = identify_resource("embedding", Settings())
    files = identity.files
    embedder = OnnxEmbedder(identity.name, files["model.onnx"], files["tokenizer.json"])
    row = {(p["title"], p["text"]): at for at, p in enumerate(corpus)}
    gold = [
        frozenset(
            row[p["title"], p["paragraph_text"]] for p in q["paragraphs"] if p["is_supporting"]
        )
        for q in questions
    ]
    asked = embedder.embed([q["question"] for q in questions])
    held = np.concatenate([embedder.embed([f"{p['title']}\n{p['text']}"]) for p in corpus])
    scores = score_retrieval(asked, held, gold, RANKS)
    figures = {f"recall_at_{k}": round(value, 3) for k, value in scores.recall.items()}
    return {**figures, "all_gold_at_5": round(scores.all_gold[5], 3), "passages": len(corpus)}


def measure(folder: Path, limit: int | None, reproduce: bool) -> dict[str, Any]:
    """All figures of a folder; with a limit, those of its first passages and questions."""
    data = read_json(folder)
    hops = read_hops(folder)
    corpus = data["corpus"]
    if reproduce:
        triples, broken = read_recorded(data["recorded"])
        return {**measure_triples(hops, triples), "rows_not_triples": broken}
    if limit is not None:
        questions = data["questions"][:limit]
        needed = {p["paragraph_text"] for q in questions for p in q["paragraphs"]}
        hops = [hop for hop in hops if hop.passage in needed]
        corpus = [p for p in corpus if p["text"] in needed]
    else:
        questions = data["questions"]
    texts = sorted({p["text"] for p in corpus})
    return {
        **measure_triples(hops, extract_triples(texts)),
        **measure_retrieval(corpus, questions),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    bench = os.environ.get("KPYRAMID_BENCH")
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(bench) / FOLDER if bench else None,
        required=not bench,
        help=f"a folder of the form of {FOLDER}; found below $KPYRAMID_BENCH by default",
    )
    parser.add_argument("--limit", type=int, help="the first N questions and their passages only")
    parser.add_argument("--reproduce", action="store_true", help="score the recorded triples")
    parser.add_argument("--seed", type=int, default=0, help="unused: nothing is drawn")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = parser.parse_args()
    figures = measure(options.data, options.limit, options.reproduce)
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:20} {value}")


if __name__ == "__main__":
    main()
