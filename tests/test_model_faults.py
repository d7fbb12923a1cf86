"""Builds whose model fails, costs too much or finds nothing: what stops, and how it goes on."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kpyramid.errors import BudgetError, EndpointError, GateError, SettingsError
from kpyramid.pipeline.build import call_stage
from kpyramid.pipeline.stage import PIPELINE
from kpyramid.storage.layout import Warehouse
from tests import reader
from tests.corpora import make_settings, read_snapshot, use_quick_models, write_corpus
from tests.loopback import Loopback, serve
from tests.model_runs import PRICE, STEPS, open_settings, run
from tests.rows import read_rows


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    use_quick_models(monkeypatch)


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serve(reader.answer) as running:
        yield running


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "corpus")


def test_every_chunk_without_an_answer_is_a_reject_with_its_place(
    server: Loopback, corpus: Path, tmp_path: Path
) -> None:
    server.faults.add("refusal", contains="Zorblax")
    settings = open_settings(server)
    open_gate = replace(settings, publish=replace(settings.publish, max_unanswered_share=1.0))

    outcome = run(corpus, tmp_path / "w", open_gate)

    rejects = read_snapshot(Warehouse(tmp_path / "w"), outcome.snapshot)["rejects"].to_pylist()
    refused = [row for row in rejects if row["reason"] == "llm_refused"]
    assert refused
    assert all(row["chunk_id"] and row["document_id"] for row in refused)
    before = server.calls()
    again = run(corpus, tmp_path / "w", open_gate)
    assert server.calls() == before, "a refusal is not asked again"
    assert again.snapshot == outcome.snapshot


def test_a_budget_stops_before_its_limit_and_the_build_goes_on_where_it_stopped(
    server: Loopback, corpus: Path, tmp_path: Path
) -> None:
    free = open_settings(server, max_tokens=400, concurrency=2)
    tight = open_settings(server, max_tokens=400, concurrency=2, budget=0.009, prices=PRICE)
    with pytest.raises(BudgetError) as stopped:
        run(corpus, tmp_path / "w", tight)
    assert "llm.budget" in str(stopped.value)
    paid = [e for e in server.log if e["done"]]
    spent = sum(e["prompt_tokens"] * 1.0 + e["completion_tokens"] * 4.0 for e in paid) / 1e6
    assert 0 < spent <= 0.009
    with pytest.raises(BudgetError):
        run(corpus, tmp_path / "w", tight)
    paid = [e for e in server.log if e["done"]]
    spent = sum(e["prompt_tokens"] * 1.0 + e["completion_tokens"] * 4.0 for e in paid) / 1e6
    assert spent <= 0.009, "the budget holds over both tries"

    run(corpus, tmp_path / "w", free)

    asked = [e["sha256"] for e in server.log if "data-" in json.dumps(e["body"])]
    assert len(asked) == len(set(asked)), "no request was paid twice"


def test_a_stopped_run_of_a_scheduler_goes_on_with_a_raised_budget(
    server: Loopback, corpus: Path, tmp_path: Path
) -> None:
    file = tmp_path / "llm.toml"

    def write(budget: int) -> None:
        file.write_text(
            "[chunk]\nmax_tokens = 24\noverlap_tokens = 0\n[cascade]\n"
            + "".join(f'{step} = "llm"\n' for step in STEPS)
            + f'[llm]\nprovider = "openai"\nmodel = "m"\nbase_url = "{server.base_url}"\n'
            + f"budget_tokens = {budget}\nmax_tokens = 400\n"
        )

    def call(stage: str) -> None:
        call_stage(
            stage,
            run="nightly",
            warehouse=str(tmp_path / "w"),
            corpus=str(corpus),
            settings_file=str(file),
        )

    write(5_000)
    call("ingest")
    call("chunk")
    with pytest.raises(BudgetError):
        call("extract")
    write(1_000_000)
    for stage in PIPELINE[2:]:
        call(stage.name)

    asked = [e["sha256"] for e in server.log if "data-" in json.dumps(e["body"])]
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize(
    ("fault", "words"),
    read_rows("model_faults.what_no_retry_can_mend_stops_at_once_with_what_to_do"),
)
def test_what_no_retry_can_mend_stops_at_once_with_what_to_do(
    server: Loopback, corpus: Path, tmp_path: Path, fault: str, words: str
) -> None:
    server.faults.add(fault)

    with pytest.raises(EndpointError) as e:
        run(corpus, tmp_path / "w", open_settings(server, max_wait=1.0))

    assert words in str(e.value)
    assert server.calls() <= 8
    server.faults.clear()
    run(corpus, tmp_path / "w", open_settings(server))


def test_a_model_that_finds_nothing_does_not_empty_what_is_published(
    server: Loopback, corpus: Path, tmp_path: Path
) -> None:
    head = run(corpus, tmp_path / "w", open_settings(server)).snapshot

    def find_nothing(body: dict[str, object]) -> str:
        reply = json.loads(reader.answer(body))
        return json.dumps({key: [] for key in reply} if "facts" in reply else reply)

    with serve(find_nothing) as other, pytest.raises(GateError) as refused:
        run(
            corpus,
            tmp_path / "w",
            replace(open_settings(other), llm=replace(open_settings(other).llm, model="junk")),
        )

    assert "fewer than 50% of them" in str(refused.value)
    assert refused.value.report["head"] == head
    assert refused.value.report["snapshot"] != head


def test_a_missing_key_is_told_before_any_work(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    settings = make_settings(
        cascade=dict.fromkeys(STEPS, "llm"), llm={"provider": "openai", "model": "m"}
    )

    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        run(corpus, tmp_path / "w", settings)

    assert not (tmp_path / "w").exists()
