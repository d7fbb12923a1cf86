"""`kpyramid batch`: what a scheduler sees of it, call after call."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kpyramid.llm.caller import hold_file
from kpyramid.llm.task import Request
from kpyramid.pipeline import runner
from kpyramid.pipeline.models import ASKING, locate_locks
from kpyramid.settings import load_settings
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.runs import Run
from tests import commands
from tests.batch_desk import Bench
from tests.loopback import Loopback, answer_by_schema
from tests.rows import each_row

Say = Callable[..., Any]

_SENTENCE = re.compile(r"([A-Z]\w*) ([a-z]+) ([A-Z]\w*)")
_STEPS = 'paraphrase = "llm"\nentities = "llm"\nrelations = "llm"\n'


def answer(body: dict[str, Any]) -> str:
    """What sentences such as `Ada knew Bob.` say, for every step of the paper's cascade."""
    asked = set(body["response_format"]["json_schema"]["schema"]["properties"])
    rows = _SENTENCE.findall(body["messages"][-1]["content"])
    said = [" ".join(row) for row in rows]
    if asked == {"claims"}:
        return json.dumps({"claims": [{"evidence": f"{s}.", "claim": s} for s in said]})
    if asked == {"entities"}:
        return json.dumps({"entities": sorted({name for row in rows for name in row[::2]})})
    if asked == {"triples"}:
        triples = [{"head": h, "relation": r, "tail": t} for h, r, t in rows]
        return json.dumps({"triples": triples})
    return answer_by_schema(body)


ANSWER = answer


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.txt").write_text("Ada knew Bob. Bob liked Cleo.", "utf-8")
    (folder / "b.txt").write_text("Dora met Emil.", "utf-8")
    return folder


def write_settings(tmp_path: Path, base_url: str, llm: str = "", cascade: str = _STEPS) -> Path:
    path = tmp_path / "settings.toml"
    path.write_text(
        f'[cascade]\nmode = "paper"\n{cascade}\n'
        f'[llm]\nprovider = "openai"\nmodel = "small"\nbase_url = "{base_url}"\n{llm}\n',
        "utf-8",
    )
    return path


@pytest.fixture
def say(server: Loopback, tmp_path: Path) -> Say:
    """Runs a command with --json; gives the object, or of an error the text."""
    path = write_settings(tmp_path, server.base_url)

    def run(*words: str | Path, code: int = 0, warehouse: str = "w") -> Any:
        options = ["--warehouse", tmp_path / warehouse, "--settings", path, "--json"]
        found = commands.run(*words, *options)
        assert found.exit_code == code, found.output
        assert len(found.stdout.splitlines()) == 1
        said = json.loads(found.stdout)
        if "error" in said:
            assert said["exit_code"] == code
            return found.stderr
        return {**said, "stderr": found.stderr}

    return run


@pytest.fixture
def five_pending(server: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five requests are pending, whatever the corpus says: for tests without the stages."""

    def collect_pending(run: Run, **_: object) -> dict[str, Request]:
        return Bench(server, tmp_path, run.settings.llm).pend(5)

    monkeypatch.setattr(runner, "collect_pending", collect_pending)


@pytest.mark.slow
def test_steps_of_the_paper_are_sent_one_after_the_other_and_the_build_asks_nothing(
    server: Loopback, say: Say, corpus: Path, tmp_path: Path
) -> None:
    for round_number in range(3):
        sent = say("batch", "submit", corpus, "--quiet")
        assert (sent["submitted"], sent["answered"]) == (2, 2 * round_number)
        assert sent["next"] == "collect"
        again = say("batch", "submit", corpus, "--quiet")
        assert (again["submitted"], again["open"], again["next"]) == (0, 2, "collect")
        assert say("batch", "collect")["call_again_in"] == 3600
        assert say("batch", "collect")["replies"] == 2
    last = say("batch", "submit", corpus, "--quiet")
    assert (last["submitted"], last["open"], last["answered"], last["next"]) == (0, 0, 6, "build")
    assert (server.calls("/batches"), server.calls("item")) == (3, 6)
    built = say("build", corpus, "--quiet")
    assert built["rows"]["triples"] == 3
    assert server.calls() == 1


@pytest.mark.usefixtures("five_pending")
def test_calls_in_any_order_and_number_send_each_request_once(
    server: Loopback, say: Say, corpus: Path
) -> None:
    assert say("batch", "collect")["open"] == 0
    sent = say("batch", "submit", corpus)
    assert [batch["requests"] for batch in sent["batches"]] == [5]
    assert (sent["open"], sent["pending"], sent["next"]) == (5, 0, "collect")
    assert say("batch", "submit", corpus)["submitted"] == 0
    assert say("batch", "collect", "--status")["open"] == 5
    assert say("batch", "collect")["open"] == 5
    done = say("batch", "collect")
    assert (done["replies"], done["booked"], done["open"]) == (5, 5, 0)
    assert done["batches"][0]["counts"]["success"] == 5
    assert say("batch", "collect")["batches"] == []
    assert say("batch", "submit", corpus)["submitted"] == 0
    listed = say("batch", "collect", "--status")["batches"]
    assert [(batch["id"], batch["state"]) for batch in listed] == [("batch_000001", "collected")]
    assert server.calls("item") == 5


@pytest.mark.usefixtures("five_pending")
def test_probe_is_made_only_when_something_is_sent_and_stands_in_the_run(
    server: Loopback, say: Say, corpus: Path, tmp_path: Path
) -> None:
    run = say("batch", "submit", corpus)["run"]
    say("batch", "submit", corpus)
    assert server.calls() == 1
    assert (tmp_path / "w" / "runs" / run / "endpoint.json").exists()
    ledger = (tmp_path / "w" / "runs" / run / "ledger.jsonl").read_text("utf-8")
    assert ledger.count('"task":"probe"') == 2


@pytest.mark.usefixtures("five_pending")
def test_nothing_is_submitted_while_a_build_asks(
    server: Loopback, say: Say, corpus: Path, tmp_path: Path
) -> None:
    place, loaded = Warehouse(tmp_path / "w"), load_settings(tmp_path / "settings.toml")
    with hold_file(locate_locks(place, loaded) / ASKING, alone=False):
        assert "Call again" in say("batch", "submit", corpus, code=7)
        assert (server.log, say("batch", "collect", "--status")["batches"]) == ([], [])
    assert say("batch", "submit", corpus)["submitted"] == 5


@pytest.mark.usefixtures("five_pending")
def test_budget_lets_through_what_fits_and_ends_with_its_exit_code(
    server: Loopback, say: Say, corpus: Path, tmp_path: Path
) -> None:
    write_settings(tmp_path, server.base_url, "budget_tokens = 1700")
    sent = say("batch", "submit", corpus, code=5)
    assert 0 < sent["submitted"] < 5
    assert sent["submitted"] + sent["over_budget"] == 5
    assert "llm.budget_tokens" in sent["stderr"]
    write_settings(tmp_path, server.base_url)
    assert say("batch", "submit", corpus)["open"] == 5


@pytest.mark.usefixtures("five_pending")
def test_failed_batch_ends_collect_with_an_exit_code_after_the_report(
    server: Loopback, say: Say, corpus: Path
) -> None:
    server.batches.limit = 3
    say("batch", "submit", corpus)
    failed = say("batch", "collect", code=8)
    assert (failed["again"], failed["open"]) == (5, 0)
    assert "too_many_tasks" in failed["stderr"]
    server.batches.limit = 50
    assert say("batch", "submit", corpus)["submitted"] == 5


@each_row("cascade, provider, message")
def test_settings_without_anything_to_ask_are_refused(
    cascade: str, provider: str, message: str, say: Say, corpus: Path, tmp_path: Path
) -> None:
    path = write_settings(tmp_path, "http://127.0.0.1:9/v1", cascade=cascade)
    path.write_text(path.read_text("utf-8").replace('"openai"', f'"{provider}"'), "utf-8")
    assert re.search(message, say("batch", "submit", corpus, code=2))


@pytest.mark.usefixtures("five_pending")
def test_text_output_says_what_to_do_next(server: Loopback, corpus: Path, tmp_path: Path) -> None:
    path = write_settings(tmp_path, server.base_url)
    options = ["--warehouse", tmp_path / "w", "--settings", path]

    def tell(*words: object) -> str:
        return commands.show("batch", *words, *options)

    assert "next: `kpyramid batch collect`" in tell("submit", corpus)
    assert "call again in 60 minutes" in tell("collect")
    collected = tell("collect")
    assert "batch_000001" in collected
    rows = [line.split() for line in collected.splitlines()]
    assert ["Replies", "5"] in rows and ["Failures", "0"] in rows
    assert re.search(r"Open +0\n", tell("collect", "--status"))
