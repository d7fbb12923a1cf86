"""Builds over odd replies and endpoints: bounded, counted, resumed, nothing false published."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kpyramid.errors import BudgetError, GateError
from kpyramid.pipeline.build import BuildOutcome
from kpyramid.settings import Settings
from kpyramid.storage.runs import StageMark
from tests import reader
from tests.corpora import list_marks, make_settings, use_quick_models, write_corpus
from tests.loopback import Loopback, serve
from tests.model_runs import PRICE, list_facts, run, run_stages
from tests.rows import read_bodies

TEXTS = read_bodies("model_odd.texts")
TRUE = {
    *(("Ada", "knew", "Bob"), ("Gus", "owns", "Troy"), ("Dora", "met", "Emil")),
    *(("Finn", "saw", "Gerd"), ("Hugo", "left", "Iris"), ("Jane", "hired", "Karl")),
}
KEY = "sk-planted-odd"
Change = Callable[[dict[str, Any]], dict[str, Any]]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    use_quick_models(monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def answer_changed(change: Change) -> Callable[[dict[str, Any]], str]:
    """The reader's replies about windows, changed."""

    def answer(body: dict[str, Any]) -> str:
        reply = reader.answer(body)
        if body["response_format"]["json_schema"]["name"] != "merged":
            return reply
        return json.dumps(change(json.loads(reply)))

    return answer


def disturb(reply: dict[str, Any]) -> dict[str, Any]:
    """Rows that no sentence says, and right ones in another form; of one window nothing."""
    facts, names = reply["facts"], {row[1] for row in reply["entities"]}
    if "Ada" in names:
        facts += [[1, f"rules {n} of", "Rome", 1] for n in range(5000)]
    elif "Dora" in names:
        facts += [[1, f"rules {cited} of", "Rome", cited] for cited in (99, 0, -1)]
        facts += [["Zorg", "besitzt", "ganz Rom", 1], ["Зорг", "владеет", "Римом", 1]]
    elif "Finn" in names:
        return {name: [[*map(str, row)] for row in reply[name]] for name in reply}
    elif "Hugo" in names:
        return {"entities": [], "facts": []}
    else:
        facts += [[True, None, {"a": 1}, []], [], "facts", [1, "rules"]]
    return reply


@contextmanager
def open_build(
    folder: Path, change: Change = lambda reply: reply, **options: Any
) -> Iterator[tuple[Loopback, Callable[..., StageMark], Callable[..., BuildOutcome]]]:
    """A server, what extracts by it and what builds; at the end no key lies in any file."""
    corpus = write_corpus(folder / "corpus", TEXTS)
    with serve(answer_changed(change), key=KEY, **options) as server:

        def settle(**llm: object) -> Settings:
            cascade = dict.fromkeys(("paraphrase", "entities", "relations"), "llm")
            given = {"provider": "openai", "model": "m", "base_url": server.base_url, **llm}
            return make_settings(cascade=cascade, llm=given)

        def extract(**llm: object) -> StageMark:
            return run_stages(corpus, folder / "w", settle(**llm))["extract"]

        yield server, extract, lambda **llm: run(corpus, folder / "w", settle(**llm))
    files = (path for path in (folder / "w").rglob("*") if path.is_file())
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_a_reply_publishes_what_its_sentences_say_and_counts_the_rest(tmp_path: Path) -> None:
    """Among the texts are one that numbers its sentences and one that instructs its reader."""
    with open_build(tmp_path, disturb) as (server, extract, _):
        mark = extract(max_tokens=200_000)
        asked = server.calls()
        again = extract(max_tokens=200_000)
    assert list_facts(tmp_path / "w", mark) == TRUE - {("Hugo", "left", "Iris")}
    rejects = mark.rejects
    assert rejects["unsupported"] >= 5000
    assert rejects["no_evidence"] == 3
    assert rejects["not_a_triple"] == 4
    assert rejects["no_fact"] == 1
    assert (server.calls(), again.key) == (asked, mark.key), "nothing is paid twice"
    assert asked == 1 + len(TEXTS)


def test_half_a_surrogate_fails_its_window_alone_and_is_asked_again(tmp_path: Path) -> None:
    with open_build(tmp_path) as (server, extract, build):
        server.faults.add("surrogate", times=1, contains="Emil")
        with pytest.raises(GateError, match="answer"):
            build()
        mark = extract()
    assert list_facts(tmp_path / "w", mark) == TRUE
    assert server.calls() == 1 + len(TEXTS) + 1 + 1, "each build has its probe"


@pytest.mark.parametrize(("fault", "runs"), [("400", 4), ("error_200", 4), ("fenced", 1)])
def test_an_endpoint_that_works_at_the_probe_only_costs_a_bounded_number_of_calls(
    tmp_path: Path, fault: str, runs: int
) -> None:
    with open_build(tmp_path) as (server, extract, _):
        server.faults.add(fault, contains="data-")
        marks = [extract(max_wait=0.01) for _ in range(runs)]
        assert server.calls() <= runs * (1 + 5 * len(TEXTS))
    # Fenced, a reply is in another form than at the probe, and yet readable.
    assert list_facts(tmp_path / "w", marks[-1]) == (TRUE if fault == "fenced" else set())


def test_a_model_that_is_switched_under_way_is_named_in_the_report(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_build(tmp_path) as (server, extract, _):
        server.faults.add("other_model", skip=3)
        mark = extract(concurrency=1)
    assert list_facts(tmp_path / "w", mark) == TRUE
    named = mark.model["answered_by"]
    assert isinstance(named, dict)
    assert set(named) == {"m", "m-mini"}
    assert "m-mini is another than before" in caplog.text


def test_an_endpoint_that_drops_every_third_connection_loses_nothing(tmp_path: Path) -> None:
    numbers = count(1)
    with open_build(tmp_path) as (server, extract, _):
        server.faults.add("drop", when=lambda _: next(numbers) % 3 == 0)
        mark = extract()
    assert list_facts(tmp_path / "w", mark) == TRUE
    assert server.calls() <= 2 * (1 + len(TEXTS))


@pytest.mark.slow
def test_reasoning_is_billed_within_the_budget_and_what_it_fills_is_no_reply(
    tmp_path: Path,
) -> None:
    with open_build(tmp_path, reasoning=300) as (server, _, build):
        with pytest.raises(BudgetError):
            build(prices=PRICE, budget=0.02, concurrency=1)
        paid = sum(entry["completion_tokens"] for entry in server.log)
        assert 300 <= paid <= 0.02 / 4 * 1e6
        outcome = build(prices=PRICE, budget=1.0)
    assert list_facts(tmp_path / "w", list_marks(outcome)["extract"]) == TRUE
    total = outcome.report["model"]
    assert total["reasoning"] == 300 * total["calls"] > 0
    with open_build(tmp_path / "full", reasoning=5000) as (server, _, build):
        with pytest.raises(GateError, match="truncated"):
            build()
        assert server.calls() <= 1 + 2 * len(TEXTS)
