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

pytestmark = pytest.mark.usefixtures("passing_gates")

TEXTS = {
    "ada.txt": "Ada Lovelace was born in London on 10 December 1815.",
    "mill.txt": "The Harlow Brewing Company was founded by John Harlow in 1871.",
}
QUESTIONS = [
    {"id": "ada", "question": "Where was Ada Lovelace born?", "answer": "London"},
    {"id": "mill", "question": "Who founded the Harlow Brewing Company?", "answer": "John Harlow"},
]


def write_corpus(folder: Path, **texts: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.txt"):
        old.unlink()
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


def write_questions(path: Path, rows: list[dict[str, str]] = QUESTIONS) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def make_settings(questions: Path | None = None, **floor: float) -> Settings:
    values: dict[str, Any] = {}
    if questions is not None:
        values["evaluate"] = {"questions": str(questions), "floor": floor}
    return check_settings(values, {"file": "test"})


def run_build(folder: Path, corpus: Path, floor: float) -> tuple[int, dict[str, Any]]:
    """Exit code and report of `kpyramid build` with a floor for exact_match."""
    settings = folder / "settings.toml"
    settings.write_text(
        f'[evaluate]\nquestions = "{folder / "questions.jsonl"}"\n'
        f"floor = {{ exact_match = {floor} }}\n"
    )
    words = ["build", str(corpus), "--warehouse", str(folder / "w"), "--settings", str(settings)]
    done = run(*words, "--json")
    return done.exit_code, json.loads(done.stdout)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Warehouse, str]:
    """A warehouse whose HEAD answers both questions."""
    folder = tmp_path_factory.mktemp("gate")
    corpus = write_corpus(folder / "corpus", ada=TEXTS["ada.txt"], mill=TEXTS["mill.txt"])
    warehouse = Warehouse(folder / "w")
    outcome = build(corpus, warehouse, make_settings())
    assert "floor" not in outcome.marks[-1].gates
    return warehouse, outcome.snapshot


def test_a_snapshot_below_the_floor_is_kept_and_head_stays(built: tuple[Warehouse, str]) -> None:
    warehouse, first = built
    folder = warehouse.root.parent
    write_questions(folder / "questions.jsonl")
    corpus = write_corpus(folder / "new", ada=TEXTS["ada.txt"], mill="Somebody founded a brewery.")

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


def test_a_measure_of_which_less_is_better_has_a_ceiling(
    built: tuple[Warehouse, str], tmp_path: Path
) -> None:
    wrong = [{**QUESTIONS[0], "answer": "Marseille"}]
    questions = write_questions(tmp_path / "questions.jsonl", wrong)
    settings = make_settings(questions, wrong_confident=0.5)
    verdict = judge_floor(settings, *built)["floor"]
    assert verdict.startswith("fail: wrong_confident = 1 is above evaluate.floor 0.5, of 1")
    assert judge_floor(make_settings(), *built) == {}


@pytest.mark.parametrize(
    ("rows", "floor", "error", "message"),
    [
        (QUESTIONS, {"fame": 1.0}, SettingsError, "there is no metric 'fame'; there are precision"),
        (
            QUESTIONS,
            {"precision": 1.0},
            SettingsError,
            "precision applies to none of the questions",
        ),
        ([], {"exact_match": 1.0}, InputError, "questions.jsonl"),
        ([{"question": "Who?"}], {"exact_match": 1.0}, InputError, "questions.jsonl"),
    ],
)
def test_a_floor_that_cannot_be_judged_is_refused_before_any_work(
    tmp_path: Path,
    rows: list[dict[str, str]],
    floor: dict[str, float],
    error: type[Exception],
    message: str,
) -> None:
    corpus = write_corpus(tmp_path / "corpus", ada=TEXTS["ada.txt"])
    questions = write_questions(tmp_path / "questions.jsonl", rows)
    with pytest.raises(error, match=message):
        build(corpus, Warehouse(tmp_path / "w"), make_settings(questions, **floor))
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"floor": {"f1": 0.5}}, "floor needs questions"),
        ({"questions": "q.jsonl"}, "questions need a floor"),
        ({"questions": "q.jsonl", "floor": {"f1": float("nan")}}, "finite"),
    ],
)
def test_a_floor_without_questions_and_questions_without_a_floor_are_refused(
    values: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        check_settings({"evaluate": values}, {"file": "test"})
