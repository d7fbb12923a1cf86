"""The evaluation floor: a snapshot that answers worse is kept and does not become HEAD."""

import json
from pathlib import Path
from typing import Any

import pytest

from kpyramid.errors import InputError, SettingsError
from kpyramid.pipeline.build import build
from kpyramid.pipeline.gates import judge_floor
from kpyramid.settings import Settings, check_settings
from kpyramid.storage.layout import Warehouse
from tests.commands import run
from tests.corpora import encode_lines, write_corpus
from tests.rows import read_bodies

pytestmark = pytest.mark.usefixtures("passing_gates")

QUESTIONS = read_bodies("evaluation_gate.questions")


ADA = "Ada Lovelace was born in London on 10 December 1815."
MILL = "The Harlow Brewing Company was founded by John Harlow in 1871."


def write_texts(folder: Path, ada: str = ADA, mill: str = MILL) -> Path:
    return write_corpus(folder, {"ada.txt": ada, "mill.txt": mill})


def write_questions(path: Path, rows: list[dict[str, str]] = QUESTIONS) -> Path:
    path.write_text(encode_lines(rows))
    return path


def make_settings(questions: Path | None = None, **floor: float) -> Settings:
    values: dict[str, Any] = {}
    if questions is not None:
        values["evaluate"] = {"questions": str(questions), "floor": floor}
    return check_settings(values, {"file": "test"})


def run_build(folder: Path, corpus: Path, floor: float) -> tuple[int, dict[str, Any]]:
    """Exit code and report of `kpyramid build` with a floor for exact_match."""
    settings, questions = folder / "settings.toml", folder / "questions.jsonl"
    floors = f"floor = {{ exact_match = {floor} }}\n"
    settings.write_text(f'[evaluate]\nquestions = "{questions}"\n{floors}')
    words = ["build", corpus, "--warehouse", folder / "w", "--settings", settings, "--json"]
    done = run(*words)
    return done.exit_code, json.loads(done.stdout)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Warehouse, str]:
    """A warehouse whose HEAD answers both questions."""
    folder = tmp_path_factory.mktemp("gate")
    corpus = write_texts(folder / "corpus")
    warehouse = Warehouse(folder / "w")
    outcome = build(corpus, warehouse, make_settings())
    assert "floor" not in outcome.marks[-1].gates
    return warehouse, outcome.snapshot


@pytest.mark.slow
def test_a_snapshot_below_the_floor_is_kept_and_head_stays(built: tuple[Warehouse, str]) -> None:
    warehouse, first = built
    folder = warehouse.root.parent
    write_questions(folder / "questions.jsonl")
    corpus = write_texts(folder / "new", mill="Somebody founded a brewery.")

    code, report = run_build(folder, corpus, 0.9)
    assert (code, report["committed"], report["head"]) == (4, "no", first)
    assert report["gates"]["floor"] == (
        "fail: exact_match = 0.5 is below evaluate.floor 0.9, of 2 questions of "
        f"{folder / 'questions.jsonl'}; it fails on mill (Who founded the Harlow Brewing "
        "Company?)"
    )
    second = report["snapshot"]
    assert (warehouse.snapshots / second).is_dir()

    # The floor is no part of the snapshot's id; a lower one lets the same snapshot pass.
    code, report = run_build(folder, corpus, 0.5)
    assert (code, report["head"], report["snapshot"]) == (0, second, second)
    assert report["gates"]["floor"] == "pass: exact_match = 0.5, of 2 questions"

    # Raised, it judges once more what is HEAD already.
    code, report = run_build(folder, corpus, 0.6)
    assert (code, report["committed"], report["head"]) == (4, "unchanged", second)
    assert "exact_match = 0.5 is below evaluate.floor 0.6" in report["gates"]["floor"]


def test_measure_that_counts_harm_has_ceiling(built: tuple[Warehouse, str], tmp_path: Path) -> None:
    wrong = [{**QUESTIONS[0], "answer": "Marseille"}]
    questions = write_questions(tmp_path / "questions.jsonl", wrong)
    settings = make_settings(questions, wrong_confident=0.5)
    verdict = judge_floor(settings, *built)["floor"]
    assert verdict.startswith("fail: wrong_confident = 1 is above evaluate.floor 0.5, of 1")
    assert judge_floor(make_settings(), *built) == {}


def test_a_floor_that_cannot_be_judged_is_refused_before_any_work(tmp_path: Path) -> None:
    corpus = write_texts(tmp_path / "corpus")
    none = "precision applies to none of the questions"
    for rows, floor, error, message in [
        (QUESTIONS, {"fame": 1.0}, SettingsError, "no metric 'fame'; there are precision"),
        (QUESTIONS, {"precision": 1.0}, SettingsError, none),
        ([], {"exact_match": 1.0}, InputError, "questions.jsonl"),
        ([{"question": "Who?"}], {"exact_match": 1.0}, InputError, "questions.jsonl"),
    ]:
        questions = write_questions(tmp_path / "questions.jsonl", rows)
        with pytest.raises(error, match=message):
            build(corpus, Warehouse(tmp_path / "w"), make_settings(questions, **floor))
        assert not (tmp_path / "w").exists()
    for values, message in [
        ({"floor": {"f1": 0.5}}, "floor needs questions"),
        ({"questions": "q.jsonl"}, "questions need a floor"),
        ({"questions": "q.jsonl", "floor": {"f1": float("nan")}}, "finite"),
    ]:
        with pytest.raises(SettingsError, match=message):
            check_settings({"evaluate": values}, {"file": "test"})
