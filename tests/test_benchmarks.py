"""Every script of benchmarks/ runs on a tiny part of its data and prints the fields it promises."""

import gc
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from guards import is_fallen, write_table

from tests import commands
from tests.corpora import ROOT, find_bench, pass_gates
from tests.rows import each_row

FOLDER = ROOT / "benchmarks"
SHARED = {
    "choice_pyramids", "completion_pyramids", "embedding", "flips", "guards", "make_questions",
    "options", "synthetic",
}  # fmt: skip
"""What scripts import, or what measures nothing; `make bench` leaves them out."""
TINY = "TINY"
"""In place of the folder that `tiny` writes."""
RUNS: dict[str, tuple[str, str, str]] = {
    # Script: its data, arguments that keep it short, fields that it prints at least.
    "anchors": ("", "--every 40", "university"),
    "bc5cdr": ("bc5cdr_train", "--limit 10", "f1 precision recall cooccurrence_f1 "
               "f1_over_cooccurrence"),
    "calibration": ("carb_dev", "--limit 40", "ece brier ranking carb_auc drift"),
    "canon": ("canon_base", "--limit 40", "macro_f1 micro_f1 pairwise_f1"),
    "carb": ("carb_dev", "--limit 5", "precision recall f1 auc time_over_pipeline "
             "scaling_over_bare"),
    "choice": ("text2kgbench_public", "--limit 5 --only tekgen-music --quick --questions 2",
               "f1_naive f1_kaping f1_polyrag gap_closed layers"),
    "completion": ("text2kgbench_public", "--limit 3", "recovered_at_n missing_at_20 "
                   "answered_before answered_after ontologies hidden left_out seeds"),
    "condensation": ("musique100", "--limit 1", "planted_merged false_merges natural_reduction "
                     "hop_facts_kept recall_at_10_before recall_at_10_after"),
    "conflicts": ("", "--limit 1", "found planted false corpora"),
    "convert_set": (TINY, "", "questions passages licence note left_out"),
    "evolve": ("pathquestion_pq", "--limit 4", "paraphrases_refused new_facts_refused "
               "gain_wts gain_low_wts gain_high_wts curve"),
    "growth": ("", "--sizes 200,400 --stages resolve complete",
               "worst_exponent worst_peak_mb stages"),
    "incremental": (TINY, "", "unchanged_seconds changed_share_of_full same_bytes"),
    "judged": ("", "--limit 20", "right vague wrong auc instances_right triples instances "
               "faults_dev"),
    "llm_calls": ("musique100", "--limit 10", "calls_per_chunk prompt_tokens_per_chunk "
                  "overhead_ms wall_over_floor planned_over_actual"),
    "lookup": ("musique100", "--limit 2", "demo_tuned musique_unseen"),
    "model": ("", "--limit 4", "calls prompt_tokens reply_tokens reply_share facts refused_share "
              "kinds plan_calls plan_tokens plan_dollars"),
    "merge": ("", "--limit 20", "pairwise_f1 false_merges"),
    "mine": ("mine_public", "--limit 4", "score score_common published judge_agreement "
             "judge_kappa majority_rate"),
    "musique": ("musique100", "--limit 1", "hop_facts empty_relations recall_at_2 recall_at_5 "
                "recall_at_10 all_gold_at_5 questions_two_hop best_answer_in_paths"),
    "ontology_store": (TINY, "--triples 1000", "load_over_rdflib lookup_over_rdflib bad_values"),
    "passages": (TINY, "", "recall_at_2 recall_at_5 recall_at_8 recall_at_10 all_gold_at_5 "
                 "all_gold_at_8 ndcg_at_10 mrr"),
    "pathquestion": ("pathquestion_pq", "--limit 4 --only wts", "held best_two_hop "
                     "best_three_hop hits_at_1_two_hop calls_per_question_two_hop missing"),
    "publish": ("", "--triples 1000 --limit 50", "publish_over_copy verify_over_sha256 "
                "open_seconds diff_seconds peak_mb"),
    "query": ("", "--triples 1000 --limit 8", "p50_ms p99_ms recall_at_10 cold_seconds"),
    "reader_weights": ("musique100", "--limit 200", "passages"),
    "redundancy": ("text2kgbench_public", "--limit 1", "none rules standard"),
    "retention": (TINY, "", "ten_nights_over_one after_gc_over_one gc_seconds bytes"),
    "scale": ("musique100", "--limit 100", "processor_seconds at_100000_hours at_100000_own_mb"),
    "serve": (TINY, "--limit 8", "vectors processes_1_clients_1 processes_2_clients_100"),
    "soak": ("", "--limit 2", "nights violations by_kind faults seconds growth opened"),
    "structure": ("text2kgbench_public", "--limit 40 --only webnlg-athlete", "right "
                  "wrong answered best questions forms"),
    "tables": ("real_files", "--limit 3", "right found cells facts files"),
    "text2kgbench": ("text2kgbench_public", "--limit 1 --zero-shot", "f1_tekgen f1_webnlg "
                     "margin_tekgen margin_webnlg conformance subject_hallucination "
                     "relation_hallucination object_hallucination precision_unfiltered"),
    "walk": ("", "--triples 1000", "p95_ms peak_mb"),
    "truth": ("", "--limit 40", "auc auc_published auc_true right vague wrong ece kinds "
               "other_kinds cuts bins rows judged drift"),
}  # fmt: skip


def build_here(corpus: Path, warehouse: Path, _workers: int) -> tuple[dict[str, Any], float]:
    """As `incremental.build`, in this process."""
    place = ["--warehouse", str(warehouse)]
    done = commands.run("build", corpus, "--json", "-q", *place)
    return json.loads(done.stdout), 1.0


SMALLER: Mapping[str, Mapping[str, object]] = {
    "anchors": {"WORLDS": ("university",)},
    "completion": {"SEEDS": (0,)},
    "incremental": {"build": build_here},
    "query": {"FRESH": 1},
    "publish": {"FRESH": 1},
    "retention": {"NIGHTS": 3, "SNAPSHOTS": 20},
    "scale": {"STAGES": ("ingest", "chunk", "extract"), "ROWWISE": {"chunk", "extract"}},
    "serve": {"CLIENTS": (1, 100)},
}
"""What is smaller here than in the script."""


def test_the_page_of_results_is_what_the_guards_say() -> None:
    guards = json.loads((FOLDER / "guards.json").read_bytes())
    page = (FOLDER / "RESULTS.md").read_text("utf-8")
    assert page == write_table(guards), "run python benchmarks/guards.py --table"
    assert len(page.encode()) <= 8_000
    for figure in guards["figures"]:
        assert {"tolerance", "factor"} & figure.keys() or figure["value"] is not None
    for run in guards["runs"].values():
        assert all((FOLDER / command.split()[0]).is_file() for command in run["commands"])


@each_row("guard, measured, fallen")
def test_a_guard_falls_when_it_is_worse_than_it_permits(
    guard: dict[str, float | None], measured: float | None, fallen: bool
) -> None:
    assert is_fallen(guard, measured) is fallen


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three passages with two questions."""
    folder = tmp_path_factory.mktemp("tiny")
    passages = {
        "Harlow Bridge": "The Harlow Bridge was built by John Rennie in 1824. It is in Kent.",
        "John Rennie": "John Rennie was born in Phantassie. He was an engineer.",
        "Vell": "Vell is a lake in Norway. Ada Holm was born in Oslo in 1900.",
    }
    rows = [{"id": t.lower(), "title": t, "text": text} for t, text in passages.items()]
    asked = [
        {"question": "Who built the Harlow Bridge?", "gold_titles": ["Harlow Bridge"]},
        {"question": "Where was the engineer of the Harlow Bridge born?",
         "gold_doc_ids": ["harlow bridge", "john rennie"]},
    ]  # fmt: skip
    for name, lines in (("corpus.jsonl", rows), ("questions.jsonl", asked)):
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return folder


def test_every_script_is_run_here() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == RUNS.keys() | SHARED


def run(*command: str) -> str:
    """What a process of Python prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what a script leaves open ends with its process
@pytest.mark.parametrize("name", RUNS)
def test_a_script_prints_its_figures(
    name: str, tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data, arguments, fields = RUNS[name]
    # The corpus alone where all that lies in a folder is built.
    whole = tiny if name in {"passages", "convert_set"} else tiny / "corpus.jsonl"
    folder = whole if data == TINY else data and find_bench(data)
    command = [str(FOLDER / f"{name}.py"), "--json", *arguments.split()]
    command += ["--data", str(folder)] if folder else []
    pass_gates(monkeypatch)
    monkeypatch.setattr(sys, "argv", command)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    script = importlib.import_module(name)
    for constant, value in SMALLER.get(name, {}).items():
        monkeypatch.setattr(script, constant, value)
    script.main()
    gc.collect()  # what is left open is this script's
    printed = capsys.readouterr().out
    assert set(fields.split()) <= json.loads(printed).keys()


@pytest.mark.slow
def test_a_drawn_sheet_once_judged_is_found_whole_in_its_build(tiny: Path, tmp_path: Path) -> None:
    script, warehouse = str(FOLDER / "judged.py"), str(tmp_path / "warehouse")
    build = ["-m", "kpyramid", "build", str(tiny / "corpus.jsonl"), "--warehouse", warehouse, "-q"]
    of = ["--warehouse", warehouse, "--kind", "essays"]

    run(*build)
    run(script, *of, "--draw", "5", "--out", str(tmp_path / "sheet"))
    for path in (tmp_path / "sheet").iterdir():
        header, *lines = (line.split("\t") for line in path.read_text("utf-8").splitlines())
        assert "confidence" not in header
        for line in lines:
            line[header.index("verdict")] = "right"
        path.write_text("".join("\t".join(line) + "\n" for line in (header, *lines)), "utf-8")
    run(script, *of, "--record", str(tmp_path / "sheet"), "--out", str(tmp_path / "judged"))
    again = [script, *of, "--data", str(tmp_path / "judged"), "--half", "all", "--json"]
    figures = json.loads(run(*again))["triples"]["all"]
    assert figures["right_same"] == figures["rows"] == 5
