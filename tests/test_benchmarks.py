"""Every script of benchmarks/ runs on a tiny part of its data and prints the fields it promises."""

import gc
import importlib
import io
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import analyses
import judged
import pytest
import soak
from choice_pyramids import Corpus, read_text2kgbench
from guards import is_fallen, write_table
from scale import run_stage as run_scaled

from kpyramid.evaluation.questions import EvalQuestion
from kpyramid.query import Answer as QueryAnswer
from tests import commands
from tests.asked_model import ask_scripted, list_prompts
from tests.corpora import ROOT, find_bench, pass_gates
from tests.rows import each_row, read_rows

FOLDER = ROOT / "benchmarks"
SHARED = {
    "choice_pyramids", "completion_pyramids", "embedding", "flips", "guards", "make_questions",
    "options", "synthetic",
}  # fmt: skip
"""What scripts import, or what measures nothing; `make bench` leaves them out."""
TINY = "TINY"
"""In place of the folder that `tiny` writes."""
RUNS: list[tuple[str, str, str, str]] = read_rows("benchmarks.a_script_prints_its_figures")
"""Scripts: the data, arguments that keep it short, and fields that it prints at least."""


def build_here(corpus: Path, warehouse: Path, _workers: int) -> tuple[dict[str, Any], float]:
    """As `incremental.build`, in this process."""
    place = ["--warehouse", str(warehouse)]
    done = commands.run("build", corpus, "--json", "-q", *place)
    return json.loads(done.stdout), 1.0


def clear_up_here(warehouse: Path, keep: int) -> None:
    """As `retention.clear_up`, in this process."""
    place = ("--warehouse", warehouse)
    assert commands.run("gc", "--keep", keep, "--older-than", "0h", *place).exit_code == 0


def teach_little(*given: Any) -> Iterator[Corpus]:
    """As `read_text2kgbench`; readers learn from hundreds of sentences there."""
    for corpus in read_text2kgbench(*given):
        yield replace(corpus, examples=corpus.examples[:40])


def run_script_here(command: list[str], **_: object) -> "subprocess.CompletedProcess[str]":
    """As `subprocess.run` of a script that starts itself, in this process."""
    told, given = io.StringIO(), command[1:]
    with redirect_stdout(told), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", given)
        runpy.run_path(given[0], run_name="__main__")
    return subprocess.CompletedProcess(command, 0, told.getvalue())


def run_chunk_here(stage: str, run: str, corpus: Path, warehouse: Path) -> dict[str, float]:
    """As `scale.run_stage`, with stages after the first in this process."""
    if stage == "ingest":
        return run_scaled(stage, run, corpus, warehouse)
    words = "stage", stage, "--run", run, "--warehouse", warehouse, "-q"
    assert commands.run(*words).exit_code == 0
    return {"wall_seconds": 1.0, "seconds": 1.0, "own_mb": 1.0}


class NightsHere(soak.Nights):
    """Nights whose undisturbed commands run in this process."""

    def run(self, *words: str) -> tuple[int, str]:
        done = commands.run(*words, "--warehouse", self.place)
        return done.exit_code, done.output


SMALLER: Mapping[str, Mapping[str, object]] = {
    "carb": {"REPEATS": 1},
    "choice": {"read_text2kgbench": teach_little},
    "ideas": {"IDEAS": ("completion",)},
    "anchors": {"WORLDS": ("university",)},
    "completion": {"SEEDS": (0,)},
    "incremental": {"build": build_here},
    "query": {"FRESH": 1, "subprocess": SimpleNamespace(run=run_script_here, PIPE=None)},
    "publish": {"FRESH": 1},
    "reader_weights": {"LEAST_TRIPLES": 5, "LEAST_PAIRS": 40, "SEEDS": ("academic",)},
    "retention": {"NIGHTS": 2, "SNAPSHOTS": 8, "clear_up": clear_up_here},
    "scale": {"STAGES": ("ingest", "chunk"), "ROWWISE": {"chunk"}, "run_stage": run_chunk_here},
    "serve": {"CLIENTS": (1, 100)},
    "soak": {"Nights": NightsHere},
    "truth": {"RARE": 5},
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
    assert {path.stem for path in FOLDER.glob("*.py")} == {name for name, *_ in RUNS} | SHARED


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what a script leaves open ends with its process
@pytest.mark.parametrize("run", RUNS, ids=lambda run: run[0])
def test_a_script_prints_its_figures(
    run: tuple[str, str, str, str], tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    name, data, arguments, fields = run
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
def test_soak_counts_entries_before_the_old_and_hidden_words_that_a_reader_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passing = soak.Nights(tmp_path, 0, 2)
    for entries in (["a"], ["a", "b"], ["x", "a", "b"]):
        monkeypatch.setattr(soak, "list_entries", lambda *_, now=entries: now)
        passing.check_log()
    assert passing.violations == {"log": 1}
    first, second = passing.documents
    first.label = second.label = soak.SEALED
    passing.hidden, second.label = passing.list_hidden(), None
    passing.hidden &= passing.list_hidden()
    monkeypatch.setattr(soak, "read_titles", lambda *_: {first.word, second.word})
    reader = soak.Reader(passing)
    rounds = iter([False, True])
    monkeypatch.setattr(reader.over, "wait", lambda _: next(rounds))
    reader.run()
    assert reader.failed == [f"it saw ['{first.word}']"]


def test_a_model_ranks_answers_in_an_order_that_no_strategy_knows(tmp_path: Path) -> None:
    """The order shown depends on the question; a reply that is no order of the answers is none."""
    given = [QueryAnswer(text=text) for text in ("Oslo", "Leeds", "Kent", "")]
    towns = ("Where was Ada born?", "Where was Ben born?", "Where was Eva born?")
    questions = [EvalQuestion(str(at), text, "open", (("Kent",),)) for at, text in enumerate(towns)]
    with ask_scripted(tmp_path, rank_answers=rank_kent_first) as (server, asker):
        ranks = [analyses.rank(question, given, asker) for question in questions]
        shown = [prompt.split("\n") for _, prompt in list_prompts(server, "rank_answers")]
    assert all(row is not None and row[2] == 1 and sorted(row) == [1, 2, 3, 4] for row in ranks)
    assert len({tuple(lines[2:6]) for lines in shown}) > 1
    with ask_scripted(tmp_path / "bad", rank_answers={"best_first": [1, 1, 2, 3]}) as (_, asker):
        assert analyses.rank(questions[0], given, asker) is None


def rank_kent_first(body: dict[str, Any]) -> Mapping[str, Any]:
    numbers = re.findall(r"^(\d)\. (.*)$", body["messages"][1]["content"], re.M)
    ordered = sorted(numbers, key=lambda pair: pair[1] != "Kent")
    return {"best_first": [int(number) for number, _ in ordered]}


@pytest.mark.slow
def test_a_drawn_sheet_once_judged_is_found_whole_in_its_build(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pass_gates(monkeypatch)
    build_here(tiny / "corpus.jsonl", tmp_path / "warehouse", 1)

    def run(*arguments: str | Path) -> str:
        place = ["--warehouse", str(tmp_path / "warehouse"), "--kind", "essays"]
        monkeypatch.setattr(sys, "argv", ["judged.py", *place, *map(str, arguments)])
        judged.main()
        return capsys.readouterr().out

    run("--draw", "5", "--out", tmp_path / "sheet")
    for path in (tmp_path / "sheet").iterdir():
        header, *lines = (line.split("\t") for line in path.read_text("utf-8").splitlines())
        assert "confidence" not in header
        for line in lines:
            line[header.index("verdict")] = "right"
        path.write_text("".join("\t".join(line) + "\n" for line in (header, *lines)), "utf-8")
    run("--record", tmp_path / "sheet", "--out", tmp_path / "judged")
    said = run("--data", tmp_path / "judged", "--half", "all", "--json")
    figures = json.loads(said)["triples"]["all"]
    assert figures["right_same"] == figures["rows"] == 5
