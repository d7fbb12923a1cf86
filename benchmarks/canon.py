"""How well names that denote one thing are brought together: macro, micro and pairwise F1.

The metric of Galárraga et al. (CIKM 2014) as Vashishth et al. (CESI, WWW 2018) report it, on the
subjects of open triples: one element per triple, gold is the linked entity. Only the triples'
own words are used; a file has no documents, so it is read as one. `--reproduce` adds the rows
of two simple rules: equal strings, and equal last words.
"""

import argparse
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import spacy

from kpyramid.embeddings.onnx import OnnxEmbedder
from kpyramid.evaluation.canonicalisation import ClusterScores, Score, score_clusters
from kpyramid.extraction.normal import normalise_relation
from kpyramid.identity import identify_embedding
from kpyramid.resolution.entities import resolve_names
from kpyramid.resolution.entries import UNKNOWN, Use
from kpyramid.settings import Settings


@dataclass(frozen=True)
class Triple:
    """One open triple; `normal_head` is the data's own normal form of its subject."""

    head: str
    relation: str
    tail: str
    normal_head: str
    gold: str


def read_triples(folder: Path, limit: int | None) -> list[Triple]:
    """The triples of the folder's files, in the order of their names."""
    rows = [
        json.loads(line)
        for file in sorted(folder.glob("*_test.jsonl"))
        for line in file.read_text("utf-8").splitlines()
    ]
    if not rows:
        raise SystemExit(f"{folder}: no triples in *_test.jsonl")
    triples = []
    for row in rows[:limit]:
        head, relation, tail = map(str, row["triple"])
        normal, gold = str(row["triple_norm"][0]), str(row["true_link"]["subject"])
        triples.append(Triple(head, relation, tail, normal, gold))
    return triples


def list_uses(triples: list[Triple], settings: Settings) -> Iterator[Use]:
    """Each name as its triples use it, with the type that the recogniser gives it there."""
    recogniser = spacy.load(settings.extract.parser, enable=["tok2vec", "ner"])
    texts = [f"{t.head} {t.relation} {t.tail}." for t in triples]
    for triple, parsed in zip(triples, recogniser.pipe(texts), strict=True):
        types = {entity.text.casefold(): entity.label_ for entity in parsed.ents}
        relation = normalise_relation(triple.relation).key
        ends = (("head", triple.head, triple.tail), ("tail", triple.tail, triple.head))
        for side, name, other in ends:
            plain = name.casefold().removeprefix("the ")
            kind = types.get(name.casefold(), types.get(plain, UNKNOWN))
            yield Use(name, "", kind, side, relation, other)


def cluster_heads(triples: list[Triple]) -> list[str]:
    """The cluster of each triple's subject."""
    settings = Settings()
    model = identify_embedding(settings.embed.model)
    files = model.files
    embedder = OnnxEmbedder(model.name, files["model.onnx"], files["tokenizer.json"])
    clusters = resolve_names(list_uses(triples, settings), embedder)
    return [clusters[triple.head, ""] for triple in triples]


def flatten_scores(scores: ClusterScores) -> dict[str, float]:
    """F1, precision and recall of each measure, rounded for reading."""
    figures = {}
    for name in asdict(scores):
        score: Score = getattr(scores, name)
        figures[f"{name}_f1"] = round(score.f1, 4)
        figures[f"{name}_precision"] = round(score.precision, 4)
        figures[f"{name}_recall"] = round(score.recall, 4)
    return figures


def measure(data: Path, limit: int | None, reproduce: bool) -> dict[str, Any]:
    """All figures."""
    triples = read_triples(data, limit)
    gold = [triple.gold for triple in triples]
    figures: dict[str, Any] = {"triples": len(triples), "gold_clusters": len(set(gold))}
    figures |= flatten_scores(score_clusters(cluster_heads(triples), gold))
    if reproduce:
        exact = [triple.normal_head for triple in triples]
        last = [triple.head.split()[-1].casefold() for triple in triples]
        figures["exact_string"] = flatten_scores(score_clusters(exact, gold))
        figures["last_token"] = flatten_scores(score_clusters(last, gold))
    return figures


def main() -> None:
    default = Path(os.environ.get("KPYRAMID_BENCH", "bench")) / "canon_base"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=default, help="folder with *_test.jsonl")
    parser.add_argument("--limit", type=int, help="the first N triples only")
    parser.add_argument("--seed", type=int, default=0, help="unused: nothing is drawn")
    parser.add_argument("--reproduce", action="store_true", help="add the simple rules' rows")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = parser.parse_args()
    figures = measure(options.data, options.limit, options.reproduce)
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:26} {value}")


if __name__ == "__main__":
    main()
