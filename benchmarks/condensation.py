"""What condensation merges, what it loses, and what it does to retrieval, on MuSiQue's passages.

The passages are built into a pyramid with the general ontology, by rules. Then paraphrases are
planted (the issue's measure, ours): a seeded 40 % of the triples, among those whose relation
`relation_paraphrases.tsv` has, are stated once more in other words, turned where the paraphrase
reads the other way. The file was written from the relations alone, by somebody who had not seen
the code that compares.

`planted_merged`: share of the planted triples that stand in one condensed fact with their original;
`planted_merged_unseen`: of those whose paraphrase nobody read who wrote the lexicon (`is_unseen`).
`false_merges`: share of their originals that lose something: united with a decoy, a wording of
another meaning that is planted in a second run, or stood for by words that are neither theirs nor
their paraphrase's and did not stand for them before.
`natural_reduction`: share of the triples, without anything planted, that go into another.
`hop_facts_kept`: hop facts (`musique.py`) that the condensed graph joins, of those that the
triples join.
`recall_at_10_before`, `_after`: of the gold passages among all, ranked by their best triple or
condensed fact; a condensed fact stands in all passages of its triples.
"""

import csv
import hashlib
import random
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from embedding import open_embedder
from musique import FOLDER, read_hops, read_json
from options import explain_faults, print_figures, read_options, report
from sets.musique import HopFact, Triple, score_hop_facts

from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.errors import GateError
from kpyramid.keys import JsonValue, canonical_json, content_id
from kpyramid.pipeline.build import build
from kpyramid.pipeline.stage import Progress
from kpyramid.pipeline.stages import condense
from kpyramid.pipeline.stages.tables import build_table
from kpyramid.pipeline.wiring import load_schema
from kpyramid.settings import Settings
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.storage.contracts import map_column
from kpyramid.storage.layout import Warehouse

PARAPHRASES = Path(__file__).parent / "relation_paraphrases.tsv"
SHARE = 0.4
RANK = 10
READS = ("entities", "relations", "triples", "proposals", "chunks", "raw_triples")
Tables = Mapping[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Wording:
    """Another wording of a relation, `turned` if it reads from tail to head, and a decoy."""

    paraphrase: str
    turned: bool
    decoy: str


@dataclass(frozen=True, slots=True)
class Plant:
    """A triple that is stated again: the ids of the original and of what was planted."""

    original: str
    planted: str
    wording: str


def read_matrix(vectors: pa.Table) -> Matrix:
    """The vectors of a table, shape (rows, size)."""
    column = vectors["vector"].combine_chunks()
    return column.flatten().to_numpy().reshape(len(vectors), column.type.list_size)


def build_pyramid(corpus: Sequence[Mapping[str, str]], folder: Path) -> Snapshot:
    """The snapshot of the passages, whether or not its gates let it be published."""
    lines = [
        canonical_json({"id": str(at), "title": p["title"], "text": p["text"]}).decode()
        for at, p in enumerate(corpus)
    ]
    (folder / "corpus.jsonl").write_text("\n".join(lines), "utf-8")
    warehouse = Warehouse(folder / "warehouse")
    try:
        done = build(folder / "corpus.jsonl", warehouse, Settings(), workers=2, progress=Progress())
        name = done.snapshot
    except GateError as refused:  # what a real corpus may break is not what is measured here
        name = str(refused.report["snapshot"])
    return Snapshot(warehouse.snapshots / name)


def read_wordings(path: Path) -> dict[str, list[Wording]]:
    """The wordings by the relation's name in small letters."""
    found: dict[str, list[Wording]] = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            wording = Wording(row["paraphrase"], row["turned"] == "1", row["decoy"])
            found[row["relation"].lower()].append(wording)
    return found


def is_unseen(relation: str) -> bool:
    """Whether a relation's wordings are of the half that was not read for the lexicon."""
    return hashlib.sha256(relation.lower().encode()).digest()[0] % 2 == 1


def plant(
    tables: Tables, wordings: Mapping[str, Sequence[Wording]], seed: int
) -> tuple[list[tuple[dict[str, Any], Wording]], int]:
    """The triples to be stated again, each with its wording, and how many could have been."""
    name = map_column(tables["relations"], "relation_id", "name")
    draw = random.Random(seed)  # noqa: S311 - a sample to measure on
    able = []
    for row in tables["triples"].to_pylist():
        fitting = [
            wording
            for wording in wordings.get(name[row["relation_id"]].lower(), ())
            if row["tail_id"] or not wording.turned
        ]
        if fitting:
            able.append((row, draw.choice(fitting)))
    wanted = min(len(able), round(SHARE * tables["triples"].num_rows))
    return draw.sample(able, wanted), len(able)


def state_again(
    tables: Tables, chosen: Iterable[tuple[dict[str, Any], Wording]], *, decoys: bool
) -> tuple[Tables, list[Plant]]:
    """The tables with the chosen triples in other words, or in words of another meaning.

    What the graph states in these words already is not planted.
    """
    relations, triples = (tables[name].to_pylist() for name in ("relations", "triples"))
    by_name = {row["name"]: row["relation_id"] for row in relations}
    known = {(r["head_id"], r["relation_id"], r["tail_id"], r["literal"]) for r in triples}
    support: Counter[str] = Counter()
    plants = []
    for row, wording in chosen:
        text = wording.decoy if decoys else wording.paraphrase
        relation_id = by_name.get(text) or content_id("relation", "planted", text)
        turned = wording.turned and not decoys
        head, tail = row["head_id"], row["tail_id"]
        ends = (
            (tail, relation_id, head, None) if turned else (head, relation_id, tail, row["literal"])
        )
        if ends in known:
            continue
        known.add(ends)
        support[text] += 1
        planted = content_id("triple", "planted", *ends)
        names = ("head_id", "relation_id", "tail_id", "literal")
        triples.append({**row, "triple_id": planted, **dict(zip(names, ends, strict=True))})
        plants.append(Plant(row["triple_id"], planted, text))
    for text, count in support.items():
        if text not in by_name:
            relation_id = content_id("relation", "planted", text)
            relations.append(
                {
                    "relation_id": relation_id,
                    "name": text,
                    "inverse_of": None,
                    "surface_forms": [text],
                    "support": count,
                }
            )
    made = {"relations": build_table("relations", relations)}
    return {**tables, **made, "triples": build_table("triples", triples)}, plants


def run_condense(tables: Tables, embedder: Embedder) -> Tables:
    """The tables that condensation makes."""
    settings = Settings()
    return condense.run(
        *(tables[name] for name in READS),
        settings=settings.condense,
        schema=load_schema(settings),
        embedder=embedder,
        former=None,
        condenser=None,
        summariser=None,
    )


def find_standing(made: Tables) -> dict[str, tuple[str, str]]:
    """For each triple the condensed fact that it stands in, and the relation of that."""
    return {
        triple: (row["condensed_id"], row["relation_id"])
        for row in made["condensed"].to_pylist()
        for triple in row["derived_from"]
    }


def measure_planted(
    tables: Tables, natural: Tables, seed: int, embedder: Embedder
) -> dict[str, JsonValue]:
    """What becomes of planted paraphrases and decoys."""
    chosen, able = plant(tables, read_wordings(PARAPHRASES), seed)
    before = find_standing(natural)
    report(f"Condensing with {len(chosen)} paraphrases")
    again, plants = state_again(tables, chosen, decoys=False)
    after = find_standing(run_condense(again, embedder))
    name = map_column(again["relations"], "relation_id", "name")
    merged = [after[p.original][0] == after[p.planted][0] for p in plants]
    own = map_column(tables["triples"], "triple_id", "relation_id")
    unseen = [
        done for p, done in zip(plants, merged, strict=True) if is_unseen(name[own[p.original]])
    ]
    told: dict[str, set[str]] = defaultdict(set)
    for p in plants:
        told[p.original] |= {name[own[p.original]], p.wording, name[before[p.original][1]]}
    renamed = {key for key, words in told.items() if name[after[key][1]] not in words}
    report("Condensing with as many decoys")
    again, decoys = state_again(tables, chosen, decoys=True)
    after = find_standing(run_condense(again, embedder))
    united = {p.original for p in decoys if after[p.original][0] == after[p.planted][0]}
    return {
        "planted_merged": round(sum(merged) / len(merged), 4),
        "planted_merged_unseen": round(sum(unseen) / len(unseen), 4) if unseen else None,
        "false_merges": round(len(renamed | united) / len(chosen), 4),
        "planted": len(plants),
        "decoys": len(decoys),
        "planted_share": round(len(plants) / tables["triples"].num_rows, 3),
        "covered_share": round(able / tables["triples"].num_rows, 3),
    }


def find_passages(snapshot: Snapshot) -> dict[str, set[str]]:
    """The documents that state each triple."""
    document = map_column(snapshot.table("chunks"), "chunk_id", "document_id")
    chunk = map_column(snapshot.table("raw_triples"), "raw_triple_id", "chunk_id")
    return {
        row["triple_id"]: {document[chunk[raw]] for raw in row["raw_triple_ids"]}
        for row in snapshot.table("triples").to_pylist()
    }


def unite_passages(made: Tables, passages: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The documents of each condensed fact: those of all its triples."""
    return {
        row["condensed_id"]: set[str]().union(*(passages[key] for key in row["derived_from"]))
        for row in made["condensed"].to_pylist()
    }


def measure_hops(
    hops: Sequence[HopFact], snapshot: Snapshot, made: Tables, passages: Mapping[str, set[str]]
) -> dict[str, JsonValue]:
    """The hop facts that triples join, and those that the condensed facts join of them."""
    names = map_column(snapshot.table("entities"), "entity_id", "name")
    text = map_column(snapshot.table("documents"), "document_id", "text")

    def join(rows: pa.Table, key: str, found: Mapping[str, set[str]]) -> tuple[bool, ...]:
        by_passage: dict[str, list[Triple]] = defaultdict(list)
        for row in rows.to_pylist():
            triple = (names[row["head_id"]], "", names.get(row["tail_id"]) or row["literal"])
            for document in found[row[key]]:
                by_passage[text[document]].append(triple)
        return score_hop_facts(hops, by_passage)

    before = join(snapshot.table("triples"), "triple_id", passages)
    after = join(made["condensed"], "condensed_id", unite_passages(made, passages))
    kept = sum(one and other for one, other in zip(before, after, strict=True))
    return {
        "hop_facts": sum(before),
        "hop_facts_kept": round(kept / sum(before), 4) if sum(before) else None,
    }


def measure_recall(
    snapshot: Snapshot,
    made: Tables,
    passages: Mapping[str, set[str]],
    questions: Sequence[Mapping[str, Any]],
    embedder: Embedder,
) -> dict[str, JsonValue]:
    """Recall of the gold passages by the graph before and after."""
    documents = snapshot.table("documents").select(["document_id", "title", "text"]).to_pylist()
    by_text = {(row["title"], row["text"]): row["document_id"] for row in documents}
    order = {row["document_id"]: at for at, row in enumerate(documents)}
    gold = [
        {
            order[by_text[p["title"], p["paragraph_text"]]]
            for p in question["paragraphs"]
            if p["is_supporting"]
        }
        for question in questions
    ]
    asked = embedder.embed([question["question"] for question in questions])

    def score(vectors: pa.Table, found: Mapping[str, set[str]]) -> float:
        best = np.full((len(questions), len(documents)), -1.0)
        cosines = asked @ read_matrix(vectors).T
        for column, key in enumerate(vectors["owner_id"].to_pylist()):
            for document in found[key]:
                at = order[document]
                best[:, at] = np.maximum(best[:, at], cosines[:, column])
        ranked = np.argsort(-best, axis=1, kind="stable")[:, :RANK].tolist()
        shares = [len(rows & set(top)) / len(rows) for rows, top in zip(gold, ranked, strict=True)]
        return round(sum(shares) / len(shares), 4)

    vectors = snapshot.table("vectors")
    before = vectors.filter(pc.equal(vectors["owner_table"], "triples"))
    return {
        f"recall_at_{RANK}_before": score(before, passages),
        f"recall_at_{RANK}_after": score(made["vectors"], unite_passages(made, passages)),
    }


def measure(folder: Path, limit: int | None, seed: int) -> dict[str, JsonValue]:
    """All figures of a folder; with a limit, those of its first questions and their passages."""
    with explain_faults(folder, FOLDER):
        data, hops = read_json(folder), read_hops(folder)
        corpus, questions = data["corpus"], data["questions"][:limit]
        if limit is not None:
            needed = {p["paragraph_text"] for q in questions for p in q["paragraphs"]}
            corpus = [p for p in corpus if p["text"] in needed]
            hops = [hop for hop in hops if hop.passage in needed]
    with tempfile.TemporaryDirectory() as name:
        report(f"Building a pyramid of {len(corpus)} passages")
        snapshot = build_pyramid(corpus, Path(name))
        return measure_snapshot(snapshot, hops, questions, seed)


def measure_snapshot(
    snapshot: Snapshot,
    hops: Sequence[HopFact],
    questions: Sequence[Mapping[str, Any]],
    seed: int,
) -> dict[str, JsonValue]:
    """All figures of a pyramid."""
    tables = {name: snapshot.table(name) for name in READS}
    made = snapshot.table("vectors")
    embedder = open_embedder(dict(zip(made["text"].to_pylist(), read_matrix(made), strict=True)))
    passages = find_passages(snapshot)
    natural = run_condense(tables, embedder)
    rows, triples = natural["condensed"], tables["triples"].num_rows
    return {
        **measure_planted(tables, natural, seed, embedder),
        "natural_reduction": round(1 - rows.num_rows / triples, 4),
        **measure_hops(hops, snapshot, natural, passages),
        **measure_recall(snapshot, natural, passages, questions, embedder),
        "triples": triples,
        "linked_share": round(1 - rows["anchor"].null_count / rows.num_rows, 3),
        "contradictions": natural["contradictions"].num_rows,
    }


def main() -> None:
    options = read_options(
        __doc__,
        folder=FOLDER,
        limit="the first N questions and their passages only",
        seed="draws the triples that are stated again",
    )
    print_figures(measure(options.data, options.limit, options.seed), options.json)


if __name__ == "__main__":
    main()
