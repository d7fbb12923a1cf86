"""How well names that denote one thing are brought together: macro, micro and pairwise F1.

The metric of Galárraga et al. (CIKM 2014) as Vashishth et al. (CESI, WWW 2018) report it, on the
subjects of open triples: one element per triple, gold is the linked entity. Only the triples'
own words are used; a file has no documents, so it is read as one. `--reproduce` adds the rows
of two simple rules: equal strings, and equal last words.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import spacy
from embedding import open_embedder
from options import explain_faults, print_figures, read_options, read_rows
from sets.canon import ClusterScores, Score, score_clusters

from kpyramid.documents.words import normalise_relation
from kpyramid.graph.entities import UNKNOWN, Use, resolve_names
from kpyramid.settings import Settings

FOLDER = "canon_base"


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
    triples = []
    with explain_faults(folder, FOLDER):
        for row in read_rows(folder, "*_test.jsonl")[:limit]:
            head, relation, tail = map(str, row["triple"])
            normal, gold = str(row["triple_norm"][0]), str(row["true_link"]["subject"])
            triples.append(Triple(head, relation, tail, normal, gold))
        if not triples:
            raise ValueError("no triples in *_test.jsonl")
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
    # A triple has two uses, and the head's is the first.
    return resolve_names(list_uses(triples, settings), open_embedder())[::2]


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
    options = read_options(
        __doc__,
        folder=FOLDER,
        limit="the first N triples only",
        flags={"--reproduce": "add the simple rules' rows"},
    )
    print_figures(measure(options.data, options.limit, options.reproduce), options.json)


if __name__ == "__main__":
    main()
