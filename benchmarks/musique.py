"""Hop facts, empty relations and passage recall on MuSiQue's multi-hop questions.

Questions, passages and gold hops are MuSiQue's (Trivedi et al., TACL 2022). `hop_facts` is the
share of gold hop facts whose two names one triple of the same passage joins: words of letters and
digits, in small letters, without articles; an argument matches a name when one contains the other
as a run of words; arguments of more than eight words do not count; either direction.
`empty_relations` is the share of all triples whose relation says nothing (`sets/musique.py`).
`recall_at_k` and `all_gold_at_5` are of the documents that the query module finds in a pyramid of
the passages (`passages.py` says more of them, and of `shuffled`); `cosine` has the same of title
and text of every passage by the cosine of the project's embedding model. `--reproduce` scores the
recorded triples in `openie_*.json` in place of our own.

`answer_in_paths` is of the two-hop questions and of each strategy by rules: the share whose gold
answer, in any of its spellings, stands as a run of words in what the strategy hands to its reader.
`statements` are the facts and paths in words; `handed` is all that the reader sees, passages and
descriptions with them; `sentences` are the statements with the places under them, which
`--explain` shows and no reader sees. `items` and `words` say how much is handed over. Halves are
by the SHA-256 of a question's id: those of the even half may be looked at while rules are made.
"""

import json
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from embedding import open_embedder
from options import explain_faults, print_figures, read_options, read_rows, report
from passages import build_pyramid, measure_shuffled, rank_by, read_passages, score_ranks
from sets.musique import (
    HopFact,
    Triple,
    is_empty_relation,
    list_words,
    score_hop_facts,
    score_retrieval,
)

from kpyramid.evaluation.questions import EvalQuestion
from kpyramid.extraction.openie import DependencyExtractor
from kpyramid.extraction.syntax.parser import Parser
from kpyramid.extraction.types import Titled
from kpyramid.query import STRATEGIES, Snapshot
from kpyramid.query.analysis import QuestionAnalysis, analyse
from kpyramid.query.decisions import Decisions
from kpyramid.query.types import RULES, Item, Reading
from kpyramid.settings import Settings

FOLDER = "musique100"
RANKS = (2, 5, 10)
TWO_HOPS = "2 hops"
READ = ("statements", "handed", "sentences")


def read_json(folder: Path) -> dict[str, Any]:
    """Corpus, questions and, if there, recorded triples, told apart by their fields.

    Raises ValueError when corpus or questions are missing.
    """
    found: dict[str, Any] = {}
    for path in sorted(folder.glob("*.json")):
        data = json.loads(path.read_text("utf-8"))  # recorded rows may hold NaN
        if isinstance(data, dict) and "docs" in data:
            found["recorded"] = data["docs"]
        elif isinstance(data, list) and data and "paragraphs" in data[0]:
            found["questions"] = data
        elif isinstance(data, list) and data and "text" in data[0]:
            found["corpus"] = data
    missing = {"corpus", "questions"} - found.keys()
    if missing:
        raise ValueError(f"no *.json with {' and '.join(sorted(missing))}")
    return found


def read_hops(folder: Path) -> list[HopFact]:
    """The gold hop facts of every `*.jsonl`; raises ValueError when there is none."""
    rows = read_rows(folder, "*.jsonl")
    hops = [HopFact(r["sub"], r["obj"], r["passage"]) for r in rows if "passage" in r]
    if not hops:
        raise ValueError("no *.jsonl with gold hop facts")
    return hops


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


def extract_triples(passages: Sequence[Titled]) -> dict[str, list[Triple]]:
    """Our own triples by the text of their passage."""
    extractor = DependencyExtractor(Settings().extract.parser)
    return {
        passage.text: [(f.head, f.relation, f.tail) for f in extraction.facts]
        for passage, extraction in zip(passages, extractor.extract_all(passages), strict=True)
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


def measure_cosines(
    corpus: Sequence[Mapping[str, str]], questions: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Recall of the gold passages among all, by the cosine of embeddings."""
    embedder = open_embedder()
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
    return {**figures, "all_gold_at_5": round(scores.all_gold[5], 3)}


def measure_pyramid(
    folder: Path, limit: int | None, texts: Collection[str], kept: Path, seed: int
) -> dict[str, Any]:
    """What the query module finds in a pyramid of the passages with these texts."""
    found = read_passages(folder, limit)
    found = replace(found, corpus=tuple(row for row in found.corpus if row["text"] in texts))
    snapshot = build_pyramid(found.corpus, kept)
    rank = rank_by("walk", snapshot)
    scored = score_ranks(found.questions, [rank(q.text) for q in found.questions])
    wanted = [*(f"recall_at_{k}" for k in RANKS), "all_gold_at_5"]
    figures: dict[str, Any] = {name: scored[name] for name in wanted}
    figures |= measure_shuffled(found, figures, kept, seed)
    asked = [q for q in found.questions if q.group == TWO_HOPS]
    return figures | measure_paths(asked, snapshot)


class Listening(Decisions):
    """No model, and what a reader was handed last."""

    handed: tuple[Item, ...] | None = None

    def read(
        self, asked: QuestionAnalysis, items: Sequence[Item], found: Reading | None = None
    ) -> Reading:
        """See `Decisions`."""
        self.handed = tuple(items)
        return super().read(asked, items, found)


def measure_paths(questions: Sequence[EvalQuestion], snapshot: Snapshot) -> dict[str, Any]:
    """Where the answers stand in what each strategy hands to its reader, with the halves."""
    table: dict[str, dict[str, float]] = {}
    for name in STRATEGIES if questions else ():
        report(f"{name} is asked {len(questions)} questions of two hops")
        rows = []
        for question in questions:
            rules = Listening(RULES)
            found = STRATEGIES[name](analyse(question.text, snapshot), rules)
            rows.append(
                find_answer(question, found.context if rules.handed is None else rules.handed)
            )
        table[name] = {key: round(mean(row[key] for row in rows), 3) for key in rows[0]}
        for at, half in enumerate(("even", "odd")):
            part = [r for q, r in zip(questions, rows, strict=True) if is_half(q, at)]
            for key in READ if part else ():
                table[name][f"{key}_{half}"] = round(mean(row[key] for row in part), 3)
    best = max((row["statements"] for row in table.values()), default=None)
    return {
        "questions_two_hop": len(questions),
        "best_answer_in_paths": best,
        "answer_in_paths": table,
    }


def is_half(question: EvalQuestion, half: int) -> bool:
    """Whether a question belongs to one of the two halves, 0 or 1."""
    return sha256(question.id.encode()).digest()[0] % 2 == half


def find_answer(question: EvalQuestion, items: Sequence[Item]) -> dict[str, float]:
    """Where the answer stands in the pieces of a reader's context, and how much they are."""
    # What passages and descriptions say was not read as a fact: it has no confidence.
    facts = [item for item in items if item.confidence is not None]
    under = [place.text for item in facts for place in item.evidence]
    return {
        "statements": names_one([item.text for item in facts], question.answers[0]),
        "handed": names_one([item.text for item in items], question.answers[0]),
        "sentences": names_one([*(item.text for item in facts), *under], question.answers[0]),
        "items": len(items),
        "words": sum(len(item.text.split()) for item in items),
    }


def names_one(texts: Iterable[str], spellings: Iterable[str]) -> bool:
    """Whether a text has one of the spellings as a run of words."""
    rows = [f" {' '.join(list_words(text))} " for text in texts]
    return any(f" {' '.join(list_words(name))} " in row for name in spellings for row in rows)


def measure(
    folder: Path, limit: int | None, reproduce: bool, kept: Path | None = None, seed: int = 0
) -> dict[str, Any]:
    """All figures of a folder; with a limit, those of its first questions and their passages."""
    with explain_faults(folder, FOLDER):
        data, hops = read_json(folder), read_hops(folder)
        if reproduce and "recorded" not in data:
            raise ValueError("no *.json with recorded triples to reproduce")
        corpus, questions = data["corpus"], data["questions"][:limit]
        documents = data.get("recorded", ())
        if limit is not None:
            needed = {p["paragraph_text"] for q in questions for p in q["paragraphs"]}
            hops = [hop for hop in hops if hop.passage in needed]
            corpus = [p for p in corpus if p["text"] in needed]
            documents = [d for d in documents if d["text"] in needed]
        recorded, broken = read_recorded(documents)
    if reproduce:
        report(f"Scoring the recorded triples of {len(recorded)} passages")
        return {**measure_triples(hops, recorded), "rows_not_triples": broken}
    titles = {p["text"]: p.get("title") or "" for p in corpus}
    texts = sorted(titles)
    report(f"Extracting facts from {len(texts)} passages")
    passages = [Titled(text, titles[text]) for text in texts]
    figures = measure_triples(hops, extract_triples(passages))
    report(f"Building a pyramid of {len(corpus)} passages")
    with nullcontext(kept) if kept else tempfile.TemporaryDirectory() as place:
        figures |= measure_pyramid(folder, limit, frozenset(texts), Path(place), seed)
    report(f"Embedding {len(corpus)} passages and {len(questions)} questions")
    cosine = measure_cosines(corpus, questions)
    return {**figures, "cosine": cosine, "passages": len(corpus)}


def main() -> None:
    options = read_options(
        __doc__,
        folder=FOLDER,
        limit="the first N questions and their passages only",
        seed="of the other order of the passages",
        flags={"--reproduce": "score the recorded triples"},
        values={"--kept": "a folder for the pyramid, which a next run finds built"},
    )
    kept = options.kept and Path(options.kept)
    figures = measure(options.data, options.limit, options.reproduce, kept, options.seed)
    print_figures(figures, options.json)


if __name__ == "__main__":
    main()
