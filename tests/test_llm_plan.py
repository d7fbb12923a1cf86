"""The bill is known before it is paid: plans beside what a real server then counts."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from kpyramid.cli.builds import describe_build, describe_plan
from kpyramid.cli.render import print_result
from kpyramid.errors import BudgetError
from kpyramid.llm.estimates import Estimator
from kpyramid.pipeline.build import BuildOutcome, build
from kpyramid.pipeline.plan import plan_build
from kpyramid.pipeline.report.report import describe_run
from kpyramid.settings import Settings
from kpyramid.storage.layout import Warehouse
from tests import reader
from tests.commands import run_json
from tests.corpora import (
    copy_shared_build,
    hash_tree,
    make_settings,
    use_quick_models,
    write_corpus,
)
from tests.loopback import Loopback

STEPS = ("paraphrase", "entities", "relations", "disambiguation")
PRICES = {"m": {"input": 0.15, "output": 0.6, "cached_input": 0.075}}
NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    use_quick_models(monkeypatch)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def answer(body: dict[str, Any]) -> str:
    """Every task's reply by a reader of plain sentences."""
    name = body["response_format"]["json_schema"]["name"]
    lines = [line[2:] for line in body["messages"][-1]["content"].splitlines() if line[:2] == "- "]
    rows = list(reader.read(body["messages"][-1]["content"]))
    told = [row for line in lines for row in reader.read(f"Text: {line}")]
    if name == "paraphrase":
        return json.dumps({"claims": [{"evidence": row[3], "claim": row[3]} for row in rows]})
    if name == "entities":
        ends = dict.fromkeys(end.replace(",", "") for row in told for end in (row[0], row[2]))
        return json.dumps({"entities": list(ends)})
    if name in ("relations", "disambiguation"):
        triples = [{"head": head, "relation": how, "tail": tail} for head, how, tail, _ in told]
        return json.dumps({"triples": triples})
    return reader.answer(body)


ANSWER = answer


def open_settings(url: str = NOWHERE, mode: str = "merged", **llm: object) -> Settings:
    return make_settings(
        chunk={"max_tokens": 40, "overlap_tokens": 0},
        cascade={**dict.fromkeys(STEPS, "llm"), "mode": mode},
        complete={"min_support": 2},
        llm={"provider": "openai", "model": "m", "base_url": url, "prices": PRICES, **llm},
    )


def make_texts(seed: int, count: int) -> dict[str, str]:
    """Texts of two to seven sentences about people and firms, no two alike."""
    draw = random.Random(seed)
    texts = {}
    for number in range(count):
        name = (
            f"Ada {draw.choice('BCDFGHKLMNPRST')}olm{draw.choice(['berg', 'dorf', 'by', 'gate'])}"
        )
        lines = [
            f"{name} founded {draw.choice(['Aster', 'Cedar'])} Works in {1800 + number}.",
            f"{name} was born in {draw.choice(['Leeds', 'Oslo', 'Lima'])}.",
            f"{name} studied chemistry at the University of {draw.choice(['Bergen', 'Turin'])}.",
            f"{name} received a medal from the academy of {draw.choice(['Sweden', 'Spain'])}.",
            f"{name} lived in a house near the river for {draw.randint(3, 30)} years.",
            f"{name} wrote a book about the bridges of Kent and the mills of Devon.",
            f"{name} taught at the school of {draw.choice(['Arles', 'Nice'])}.",
        ]
        texts[f"{seed}-{number}.txt"] = " ".join(lines[: draw.randint(2, 7)])
    return texts


def run(corpus: Path, folder: Path, settings: Settings) -> BuildOutcome:
    return build(corpus, Warehouse(folder), settings)


def plan(corpus: Path, folder: Path, settings: Settings) -> dict[str, Any]:
    return {str(row["stage"]): row for row in plan_build(corpus, Warehouse(folder), settings)}


def add(planned: dict[str, Any], name: str) -> dict[str, float]:
    """One amount over the stages that ask."""
    rows = [row["model"][name] for row in planned.values() if "model" in row]
    return {bound: sum(row[bound] for row in rows) for bound in ("low", "expected", "high")}


def count(server: Loopback, start: int = 0) -> tuple[int, int]:
    """Calls and tokens that the server counted, without the probes."""
    log = [e for e in server.log[start:] if e["schema"] != "probe"]
    return len(log), sum(e["prompt_tokens"] + e["completion_tokens"] for e in log)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["merged", "paper"])
def test_the_actual_lies_in_the_planned_range_and_experience_makes_it_near(
    server: Loopback, tmp_path: Path, mode: str
) -> None:
    settings = open_settings(server.base_url, mode)
    first = write_corpus(tmp_path / "first", make_texts(1, 12))
    planned = plan(first, tmp_path / "w", settings)
    run(first, tmp_path / "w", settings)
    calls, tokens = count(server)
    asked, taken = add(planned, "calls"), add(planned, "tokens")
    assert asked["low"] <= calls <= asked["high"]
    assert taken["low"] <= tokens <= taken["high"]

    start = len(server.log)
    second = write_corpus(tmp_path / "second", make_texts(2, 20))
    planned = plan(second, tmp_path / "w", settings)
    run(second, tmp_path / "w", settings)
    calls, tokens = count(server, start)
    asked, taken = add(planned, "calls"), add(planned, "tokens")
    assert asked["expected"] == pytest.approx(calls, rel=0.1)
    assert taken["expected"] == pytest.approx(tokens, rel=0.2)
    assert asked["low"] <= calls <= asked["high"]
    assert taken["low"] <= tokens <= taken["high"]


def test_what_is_expected_lies_in_its_range_where_a_task_is_asked_more_than_once_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Estimator, "compare_tasks", lambda *_: (2.5, 9))
    corpus = write_corpus(tmp_path / "corpus", make_texts(3, 3))
    for amount in plan(corpus, tmp_path / "w", open_settings(mode="paper"))["extract"][
        "model"
    ].values():
        if isinstance(amount, dict):
            assert amount["low"] <= amount["expected"] <= amount["high"]


def test_a_plan_needs_neither_key_nor_network_and_writes_nothing(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", make_texts(3, 3))
    planned = plan(corpus, tmp_path / "w", open_settings())
    assert not (tmp_path / "w").exists()
    assert planned["extract"]["calls"] >= 3
    assert 0 < planned["extract"]["cost"]["low"] < planned["extract"]["cost"]["expected"]
    half = planned["extract"]["model"]["batch_cost"]["expected"]
    assert half == pytest.approx(planned["extract"]["cost"]["expected"] / 2)
    assert planned["chunk"]["calls"] == 0


@pytest.mark.slow
def test_after_a_stop_the_plan_gives_the_rest_and_after_the_build_nothing(
    server: Loopback, tmp_path: Path
) -> None:
    corpus = write_corpus(tmp_path / "corpus", make_texts(4, 8))
    whole = plan(corpus, tmp_path / "w", open_settings(server.base_url))
    tight = open_settings(server.base_url, budget_tokens=9_000, max_tokens=500, concurrency=1)
    free = open_settings(server.base_url, max_tokens=500)
    with pytest.raises(BudgetError):
        run(corpus, tmp_path / "w", tight)
    done, _ = count(server)
    stored = hash_tree(tmp_path / "w")

    rest = plan(corpus, tmp_path / "w", free)

    assert hash_tree(tmp_path / "w") == stored
    assert 0 < done < whole["extract"]["calls"]
    assert rest["extract"]["calls"] == whole["extract"]["calls"] - done
    assert rest["extract"]["model"]["hits"] == done
    run(corpus, tmp_path / "w", free)
    after = plan(corpus, tmp_path / "w", free)
    assert {(row["calls"], row["tokens"], row["cost"]["high"]) for row in after.values()} == {
        (0, 0, 0.0)
    }


def test_what_a_build_plans_first_with_its_rules_is_not_computed_twice(tmp_path: Path) -> None:
    settings = make_settings(
        cascade={"mode": "paper", "entities": "llm", "relations": "llm"},
        llm={"provider": "openai", "model": "m", "base_url": NOWHERE},
    )
    corpus = write_corpus(tmp_path / "corpus", make_texts(5, 3))
    warehouse = Warehouse(tmp_path / "w")
    rows = {row["stage"]: row for row in plan_build(corpus, warehouse, settings, keep=True)}
    assert rows["extract"]["cached"] == 0
    rows = {row["stage"]: row for row in plan_build(corpus, warehouse, settings)}
    assert rows["extract"]["cached"] == rows["extract"]["rows"] == 3


def test_a_model_without_a_price_has_tokens_and_no_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = write_corpus(tmp_path / "corpus", make_texts(6, 2))
    planned = plan_build(corpus, Warehouse(tmp_path / "w"), open_settings(prices={}))
    row = next(row for row in planned if row["stage"] == "extract")
    assert row["cost"] == {"low": None, "expected": None, "high": None}
    assert int(str(row["tokens"])) > 0
    print_result(describe_plan(planned, None))
    assert '[llm.prices."m"]' in capsys.readouterr().out


def test_people_see_calls_tokens_and_dollars_as_ranges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = write_corpus(tmp_path / "corpus", make_texts(7, 2))
    monkeypatch.setenv("OPENAI_BASE_URL", NOWHERE)
    planned = plan_build(corpus, Warehouse(tmp_path / "w"), open_settings(""))
    print_result(describe_plan(planned, None))
    shown = capsys.readouterr().out
    assert f"go to {NOWHERE}, by the variable OPENAI_BASE_URL." in shown
    for words in ("In all", "calls", "as batches", "This model was not called yet"):
        assert words in shown
    for line in (r"merged +2 +0\.\d+ .*\[cascade\]", r"duplicates +\d .*cascade\.disambig"):
        assert re.search(f"^{line}", shown, re.MULTILINE)


@pytest.mark.slow
def test_one_option_has_a_model_read_the_text(
    server: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = write_corpus(tmp_path / "corpus", make_texts(7, 2))
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    words = [corpus, "--warehouse", tmp_path / "w", "--model", "m"]
    planned = {row["stage"]: row for row in run_json("plan", *words)["stages"]}
    assert planned["extract"]["calls"] == 2
    built = run_json("build", *words)
    asked = [entry["schema"] for entry in server.log if entry["schema"] != "probe"]
    assert asked.count("merged") == 2
    assert built["rows"]["triples"] > 0
    again = run_json("build", *words)
    assert {stage for stage, seconds in again["seconds"].items() if seconds} == {"publish"}
    assert (again["changes"], again["snapshot"]) == ("nothing changed", built["snapshot"])
    assert (again["calls"], len(server.log)) == (0, len(asked) + 1), "only the probe came before"


@pytest.mark.slow
def test_the_report_shows_actual_beside_planned_and_the_dearest_documents(
    server: Loopback, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = open_settings(server.base_url)
    corpus = write_corpus(tmp_path / "corpus", make_texts(8, 3))
    outcome = run(corpus, tmp_path / "w", settings)
    report: dict[str, Any] = describe_run(outcome.run, outcome.marks)
    log = server.log
    assert report["calls"] == len(log)
    assert report["tokens"] == sum(e["prompt_tokens"] + e["completion_tokens"] for e in log)
    assert 0 < report["cost"] < 0.1
    (extract,) = (s for s in report["model"]["stages"] if s["stage"] == "extract")
    assert extract["calls"] == extract["asked"] == extract["planned"]["calls"]["expected"]
    assert (extract["hits"], extract["hit_rate"], extract["failures"]) == (0, 0.0, {})
    assert len(report["model"]["documents"]) == 3
    page = (outcome.run.folder / "report.html").read_text("utf-8")
    assert "planned" in page
    assert "Most expensive documents" in page
    print_result(describe_build(report, page="report.html", verbose=True))
    assert "from cache" in capsys.readouterr().out

    (corpus / "8-0.txt").write_text("Ada Newby founded Newby Works in 1900.", "utf-8")
    again = run(corpus, tmp_path / "w", settings)
    report = describe_run(again.run, again.marks)
    (extract,) = (s for s in report["model"]["stages"] if s["stage"] == "extract")
    assert extract["hits"] == extract["asked"] - 1
    assert extract["hit_rate"] == pytest.approx(extract["hits"] / extract["asked"], abs=1e-3)


def test_a_build_by_rules_says_that_no_model_was_asked(tmp_path: Path) -> None:
    warehouse, _ = copy_shared_build(tmp_path / "w")
    (folder,) = warehouse.runs.iterdir()
    report = json.loads((folder / "report.json").read_bytes())
    assert (report["calls"], report["tokens"], report["cost"], report["model"]) == (0, 0, 0.0, None)
    assert "rules did everything" in (folder / "report.html").read_text("utf-8")


@pytest.mark.slow
def test_vectors_of_a_served_model_are_planned_too(server: Loopback, tmp_path: Path) -> None:
    settings = make_settings(
        chunk={"max_tokens": 40, "overlap_tokens": 0},
        complete={"min_support": 2},
        embed={"provider": "openai", "model": "vectors", "base_url": server.base_url},
        llm={"prices": {"vectors": {"input": 0.02, "output": 0}}},
    )
    corpus = write_corpus(tmp_path / "corpus", make_texts(10, 12))
    planned = plan(corpus, tmp_path / "w", settings)
    outcome = run(corpus, tmp_path / "w", settings)
    report: dict[str, Any] = describe_run(outcome.run, outcome.marks)
    taken = add(planned, "tokens")
    assert taken["low"] <= report["tokens"] <= taken["high"]
    assert report["cost"] > 0
    assert add(plan(corpus, tmp_path / "w", settings), "tokens")["high"] == 0
