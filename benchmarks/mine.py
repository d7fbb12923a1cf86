"""MINE: the share of an essay's facts that can be deduced from what its graph offers about them.

Essays, facts, graphs and GPT-4's verdicts are those of KGGen (Mo et al. 2025), with their
retrieval: the eight nodes nearest to the fact and two steps from each (`sets/mine.py`).
GPT-4 is replaced by an offline judge learnt from its verdicts on half the essays
(there too); `judge_agreement`, `judge_kappa` and `majority_rate` are of the other half.
No essay is scored by a judge that learnt from it: two judges learn from one half each and score
the other. `score` is ours on all essays, `score_common` ours on the essays that all published
systems cover, and `published` is every system on those under the same judges. `gpt4` are the
recorded scores, `context_overlap` is how far our retrieval on the published graphs gives the
recorded contexts. `unseen_system` shows what the judge is worth for a system that it never saw, as
ours is: judges that learnt from the two other systems score each published one, and ours beside
it. `--reproduce` leaves our own graphs out.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from embedding import open_embedder
from options import explain_faults, print_figures, read_options, read_rows, report
from sets.mine import (
    Floats,
    Graph,
    Judge,
    Recorded,
    Triple,
    decide,
    measure_agreement,
    measure_kappa,
    measure_majority,
    measure_overlap,
    measure_support,
    read_context,
)

from kpyramid.embeddings.port import Embedder
from kpyramid.pipeline.runner import run_stage
from kpyramid.pipeline.stage import PIPELINE, Progress
from kpyramid.settings import Settings
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.results import find_result
from kpyramid.storage.runs import start_run

FOLDER = "mine_public"
LEAST = 4
"""Essays: two in either half, so that each judge has verdicts of both kinds to learn from."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """GPT-4's answer for one fact and the context it was shown."""

    system: str
    essay: int
    fact: str
    context: str
    found: bool


@dataclass(slots=True)
class Data:
    """Essays by id, their facts, the published graphs by system and essay, and the verdicts."""

    texts: dict[int, str] = field(default_factory=dict)
    facts: dict[int, list[str]] = field(default_factory=dict)
    graphs: dict[tuple[str, int], list[Triple]] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)

    def list_systems(self) -> list[str]:
        """The published systems."""
        return sorted({verdict.system for verdict in self.verdicts})

    def list_common(self) -> list[int]:
        """The essays on which every published system has verdicts."""
        covered = [
            {v.essay for v in self.verdicts if v.system == system} for system in self.list_systems()
        ]
        return sorted(set.intersection(*covered))

    def find_half(self, essay: int) -> int:
        """0 or 1: every other essay, in the order of their ids."""
        return sorted(self.texts).index(essay) % 2


def read_data(folder: Path, limit: int | None) -> Data:
    """All rows below a folder, told apart by their fields; of the first `limit` essays."""
    rows = read_rows(folder, "*.jsonl")
    kept = set(sorted(row["id"] for row in rows if "facts" in row)[:limit])
    data = Data()
    for row in rows:
        if row.get("essay", row.get("id")) not in kept:
            continue
        if "facts" in row:
            data.texts[row["id"]] = row["text"]
            data.facts[row["id"]] = row["facts"]
        elif "relations" in row:
            triples = [Triple(*relation) for relation in row["relations"]]
            data.graphs[row["system"], row["essay"]] = triples
        elif "gpt4_verdict" in row:
            words = row["system"], row["essay"], row["fact"], row["retrieved_context"]
            data.verdicts.append(Verdict(*words, found=bool(row["gpt4_verdict"])))
    return data


def check_data(data: Data) -> None:
    """Raises ValueError unless the rows suffice to teach and to compare judges."""
    if len(data.texts) < LEAST:
        raise ValueError(f"{len(data.texts)} essays with facts in *.jsonl, {LEAST} are needed")
    if len(data.list_systems()) < 2 or not data.list_common():
        raise ValueError("no essay with verdicts on two or more published systems")
    lacking = {(v.system, v.essay) for v in data.verdicts} - data.graphs.keys()
    if lacking:
        raise ValueError(f"verdicts on graphs that are not there: {sorted(lacking)[:3]}")


def build_graphs(texts: Mapping[int, str]) -> dict[int, list[Triple]]:
    """Our own triples per essay: each is a corpus of its own, built as far as resolve."""
    with tempfile.TemporaryDirectory() as name:
        warehouse = Warehouse(Path(name) / "warehouse")
        return {
            essay: build_graph(text, warehouse, Path(name) / str(essay))
            for essay, text in texts.items()
        }


def build_graph(text: str, warehouse: Warehouse, corpus: Path) -> list[Triple]:
    """The triples of one text, which is written into the corpus."""
    corpus.mkdir()
    (corpus / "essay.txt").write_text(text, "utf-8")
    run = start_run(warehouse, corpus, Settings(), ref="main")
    for stage in PIPELINE:
        mark = run_stage(run, stage.name, workers=1, progress=Progress())
        if stage.name == "resolve":
            break
    result = find_result(warehouse, "resolve", mark.key)
    if result is None:
        raise AssertionError("what was made is not stored")
    return _name_triples({t: pq.read_table(file.path) for t, file in result.tables.items()})


def _name_triples(made: Mapping[str, pa.Table]) -> list[Triple]:
    """The triples in words, the surest last: a pair of nodes keeps the last one given."""
    entities = {row["entity_id"]: row["name"] for row in made["entities"].to_pylist()}
    relations = {row["relation_id"]: row["name"] for row in made["relations"].to_pylist()}
    rows = sorted(made["triples"].to_pylist(), key=lambda r: (r["confidence"], r["triple_id"]))
    return [
        Triple(
            entities[row["head_id"]],
            relations[row["relation_id"]],
            row["literal"] if row["tail_id"] is None else entities[row["tail_id"]],
        )
        for row in rows
    ]


def read_recorded(data: Data, embedder: Embedder) -> Recorded:
    """The signs of every context that GPT-4 was shown, beside its verdicts."""
    contexts = [read_context(v.context, data.graphs[v.system, v.essay]) for v in data.verdicts]
    return Recorded(
        np.stack(
            [
                measure_support(v.fact, context, embedder)
                for v, context in zip(data.verdicts, contexts, strict=True)
            ]
        ),
        np.array([data.find_half(v.essay) for v in data.verdicts]),
        np.array([v.found for v in data.verdicts]),
        np.array([v.system for v in data.verdicts]),
    )


def read_graphs(
    data: Data, graphs: Mapping[int, Sequence[Triple]], embedder: Embedder
) -> dict[int, Floats]:
    """The signs of each essay's facts in what our graph offers about them."""
    found = {}
    for essay, triples in sorted(graphs.items()):
        graph = Graph(triples, embedder)
        found[essay] = np.stack(
            [
                measure_support(fact, graph.retrieve(embedder.embed([fact])[0]), embedder)
                for fact in data.facts[essay]
            ]
        )
    return found


def score_graphs(
    data: Data, signs: Mapping[int, Floats], judges: tuple[Judge, Judge], essays: Sequence[int]
) -> float:
    """The share of the essays' facts that are found."""
    verdicts = [decide(judges, signs[essay], data.find_half(essay)) for essay in essays]
    return float(np.concatenate(verdicts).mean())


def compare_unseen(
    data: Data, recorded: Recorded, signs: Mapping[int, Floats] | None
) -> dict[str, dict[str, float]]:
    """Each system, and ours, under judges that learnt from the other published systems only."""
    common = data.list_common()
    shared = np.array([v.essay in set(common) for v in data.verdicts])
    figures = {}
    for system in data.list_systems():
        judges = recorded.learn_judges(without=system)
        rows = shared & (recorded.system == system)
        verdicts = decide(judges, recorded.signs[rows], recorded.half[rows])
        figures[system] = {
            "gpt4_common": float(recorded.found[rows].mean()),
            "judge_common": float(verdicts.mean()),
        }
        if signs is not None:
            figures[system]["ours_common"] = score_graphs(data, signs, judges, common)
    return figures


def compare_judges(data: Data, recorded: Recorded) -> dict[str, Any]:
    """Agreement with GPT-4 on the half that did not teach, and system by system on either."""
    common = set(data.list_common())
    decided = decide(recorded.learn_judges(), recorded.signs, recorded.half).tolist()
    rows = list(zip(data.verdicts, decided, strict=True))
    held_out = [(v.found, verdict) for v, verdict in rows if data.find_half(v.essay) == 1]
    figures: dict[str, Any] = {
        "judge_agreement": measure_agreement(*zip(*held_out, strict=True)),
        "judge_kappa": measure_kappa(*zip(*held_out, strict=True)),
        "majority_rate": measure_majority([found for found, _ in held_out]),
        "crossfit_agreement": measure_agreement([v.found for v, _ in rows], decided),
        "crossfit_kappa": measure_kappa([v.found for v, _ in rows], decided),
    }
    by_system: dict[str, Any] = {}
    for system in data.list_systems():
        mine = [(v, verdict) for v, verdict in rows if v.system == system]
        held = [(v.found, verdict) for v, verdict in mine if data.find_half(v.essay) == 1]
        shared = [(v.found, verdict) for v, verdict in mine if v.essay in common]
        by_system[system] = {
            "gpt4": np.mean([v.found for v, _ in mine]),
            "gpt4_common": np.mean([found for found, _ in shared]),
            "judge_common": np.mean([verdict for _, verdict in shared]),
            "gpt4_held_out": np.mean([found for found, _ in held]),
            "judge_held_out": np.mean([verdict for _, verdict in held]),
            "agreement": measure_agreement(*zip(*held, strict=True)),
            "kappa": measure_kappa(*zip(*held, strict=True)),
        }
    figures["published"] = {name: row["judge_common"] for name, row in by_system.items()}
    figures["gpt4"] = {name: row["gpt4"] for name, row in by_system.items()}
    figures["gpt4_common"] = {name: row["gpt4_common"] for name, row in by_system.items()}
    figures["judge_by_system"] = by_system
    return figures


def measure_contexts(data: Data, embedder: Embedder) -> dict[str, float]:
    """Per system, how far our retrieval and the recorded one agree (mean Jaccard)."""
    graphs = {key: Graph(triples, embedder) for key, triples in sorted(data.graphs.items())}
    overlaps: dict[str, list[float]] = {}
    for v in data.verdicts:
        recorded = read_context(v.context, data.graphs[v.system, v.essay])
        ours = graphs[v.system, v.essay].retrieve(embedder.embed([v.fact])[0])
        overlaps.setdefault(v.system, []).append(measure_overlap(recorded, ours))
    return {system: float(np.mean(values)) for system, values in sorted(overlaps.items())}


def measure(data: Data, embedder: Embedder, reproduce: bool) -> dict[str, Any]:
    """All figures."""
    report(f"Reading the contexts of {len(data.verdicts)} recorded verdicts")
    recorded = read_recorded(data, embedder)
    figures = compare_judges(data, recorded)
    if reproduce:
        report("Retrieving the contexts again from the published graphs")
        unseen = compare_unseen(data, recorded, None)
        overlap = measure_contexts(data, embedder)
        return figures | {"unseen_system": unseen, "context_overlap": overlap}
    report(f"Building our graphs of {len(data.texts)} essays")
    graphs = build_graphs(data.texts)
    report("Retrieving each fact's context from them")
    signs = read_graphs(data, graphs, embedder)
    judges = recorded.learn_judges()
    ours = {
        "score": score_graphs(data, signs, judges, sorted(graphs)),
        "score_common": score_graphs(data, signs, judges, data.list_common()),
        "triples_per_essay": np.mean([len(triples) for triples in graphs.values()]),
    }
    return ours | figures | {"unseen_system": compare_unseen(data, recorded, signs)}


def round_figures(figures: Any) -> Any:
    """The same with three decimals."""
    if isinstance(figures, dict):
        return {name: round_figures(value) for name, value in figures.items()}
    return round(float(figures), 3)


def main() -> None:
    options = read_options(
        __doc__,
        folder=FOLDER,
        limit=f"the first N essays, at least {LEAST}",
        least=LEAST,
        flags={"--reproduce": "the published graphs only"},
    )
    with explain_faults(options.data, FOLDER):
        data = read_data(options.data, options.limit)
        check_data(data)
    figures = measure(data, open_embedder(), options.reproduce)
    print_figures(round_figures(figures), options.json)


if __name__ == "__main__":
    main()
