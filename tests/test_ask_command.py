"""`kpyramid ask`: every strategy, by rules without anything and by a model within bounds."""

import asyncio
import json
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

import kpyramid
from kpyramid.cli.answers import describe_answer
from kpyramid.cli.render import print_result
from kpyramid.errors import SettingsError
from kpyramid.pipeline.fingerprints import fingerprint_stage
from kpyramid.pipeline.publish import _describe
from kpyramid.pipeline.stage import PIPELINE
from kpyramid.query import STRATEGIES
from kpyramid.query.types import Answer, Item
from kpyramid.snapshot.evidence import Evidence
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.runs import Run
from tests import commands
from tests.asked_model import script, write_llm
from tests.corpora import copy_shared_build, make_settings
from tests.loopback import serve

pytestmark = pytest.mark.usefixtures("quick_embedder")  # as the shared build

QUESTION = "Where was Leon Batt born?"
SAID = {"says": True, "cites": [1], "answer": "Oslo", "choices": [], "confidence": 0.8}
RECALLED = {"says": True, "answer": "Oslo", "choices": [], "confidence": 0.4}
ENDPOINT: dict[str, object] = {"provider": "openai", "model": "m", "base_url": "http://x/v1"}


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    return copy_shared_build(tmp_path_factory.mktemp("asked") / "w")[0]


def write_settings(folder: Path, url: str, more: str = "") -> list[str]:
    return ["--settings", str(write_llm(folder, url, more))]


def run(warehouse: Warehouse, *arguments: str, stdin: bytes | None = None) -> Result:
    place = ["--warehouse", str(warehouse.root)]
    return commands.run("ask", *arguments, *place, input=stdin)


def ask(warehouse: Warehouse, *arguments: str) -> dict[str, Any]:
    return commands.run_json("ask", *arguments, "--warehouse", warehouse.root)


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_every_strategy_answers_by_rules_alone(warehouse: Warehouse, strategy: str) -> None:
    found = ask(warehouse, QUESTION, "--strategy", strategy)

    assert (found["calls"], found["tokens"], found["cost"]) == (0, 0, 0.0)
    assert found["trace"] and found["layer"] in {"ontology", "graph", "text", None}


def test_options_are_chosen_from_and_what_was_tried_is_explained(warehouse: Warehouse) -> None:
    options = [part for town in ("Rome", "Oslo") for part in ("--choice", town)]
    assert ask(warehouse, QUESTION, "--strategy", "naive", *options)["choices"] == ["Oslo"]
    assert run(warehouse, QUESTION, "--strategy", "magic").exit_code == 2
    done = run(warehouse, QUESTION, "--explain")
    assert done.exit_code == 0, done.output
    assert "ontology" in done.stdout and "Oslo" in done.stdout
    assert done.stdout != run(warehouse, QUESTION).stdout
    assert "Model:" not in done.stdout


def test_without_answer_nearest_that_was_found_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    place = Evidence("d", "c", 3, 9, "passage", "a.txt")
    items = tuple(Item(f"c{n}", f"passage {n} \x1b[31m", "text", 1.0, (place,)) for n in range(7))

    print_result(describe_answer(Answer("", (), items, None, (), ()), explain=False))

    said = capsys.readouterr().out
    assert "not known; nearest:" in said
    assert [f"passage {n} \\x1b[31m" in said for n in range(7)] == [True] * 5 + [False] * 2
    assert "a.txt, characters 3-9" in said
    assert "and 2 more" in said
    print_result(describe_answer(Answer("", (), (), None, (), ()), explain=False))
    assert "not known, and nothing is near it" in capsys.readouterr().out


def test_standard_input_that_is_no_question_is_refused(warehouse: Warehouse) -> None:
    for data in (b"", b" \n", b"\xff\xfe\x00", b"why " * 30_000):
        done = run(warehouse, "-", "--json", stdin=data)
        assert done.exit_code == json.loads(done.stdout)["exit_code"] == 3


def test_a_decision_of_a_model_that_is_not_there_names_what_is_missing(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for decision in ("sparql", "sufficiency", "reader"):
        done = run(warehouse, QUESTION, f"--{decision}", "llm")
        assert done.exit_code == 2
        assert f"--{decision} llm" in done.output and "llm.provider" in done.output
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    file = tmp_path / "settings.toml"
    file.write_text('[llm]\nprovider = "openai"\nmodel = "m"\n')
    done = run(warehouse, QUESTION, "--reader", "llm", "--settings", str(file))
    assert done.exit_code == 2 and "OPENAI_API_KEY" in done.output


def test_model_reads_and_all_it_took_is_counted(warehouse: Warehouse, tmp_path: Path) -> None:
    prices = '[llm.prices."m"]\ninput = 1.0\noutput = 2.0\n'
    with serve(script(query_read=SAID)) as server:
        options = [*write_settings(tmp_path, server.base_url, prices), "--strategy", "naive"]
        found = ask(warehouse, QUESTION, "--reader", "llm", *options)
        used = [(entry["prompt_tokens"], entry["completion_tokens"]) for entry in server.log]
        shown = run(warehouse, f"{QUESTION} Say it.", "--reader", "llm", *options).stdout

    assert (found["text"], found["confidence"], found["calls"]) == ("Oslo", 0.8, 1)
    assert found["evidence"] and found["layer"] == "text"
    assert found["tokens"] == sum(map(sum, used)) > 0
    dollars = sum(prompt * 1e-6 + completion * 2e-6 for prompt, completion in used)
    assert found["cost"] == pytest.approx(dollars)
    assert "Model: 1 call, " in shown and "tokens, $0.0" in shown


@pytest.mark.parametrize(("enough", "layer"), [("yes", "graph"), ("no", "text")])
def test_every_decision_on_the_way_down_can_be_the_models(
    warehouse: Warehouse, tmp_path: Path, enough: str, layer: str
) -> None:
    replies = script(
        query_onto={"sparql": ""},
        query_kg={"reason": "It is said.", "facts": [1], "enough": enough},
        query_read=SAID,
    )
    with serve(replies) as server:
        options = [*write_settings(tmp_path, server.base_url), "--mode", "paper"]
        backends = [f"--{name}" for name in ("sparql", "sufficiency", "reader")]
        given = [part for name in backends for part in (name, "llm")]
        found = ask(warehouse, f"{QUESTION} {enough}", *given, *options)
        asked = [entry["schema"] for entry in server.log]

    assert asked == ["probe", "query_onto", "query_kg", "query_read"]
    assert (found["calls"], found["text"], found["layer"]) == (3, "Oslo", layer)
    assert found["evidence"] and any("It is said." in step["reason"] for step in found["trace"])


@pytest.mark.parametrize("way", ["model", "file"])
def test_a_service_opens_backends_for_all_its_questions(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    snapshot = kpyramid.open_snapshot("main", warehouse.root)
    price = {"m": {"input": 1.0, "output": 2.0}}

    def ask_one(number: int, backends: kpyramid.Backends) -> Answer:
        question = f"{QUESTION} {number}."
        return kpyramid.answer(question, snapshot, "naive", backends=backends)

    async def ask_both(backends: kpyramid.Backends) -> list[Answer]:
        return await asyncio.gather(*(asyncio.to_thread(ask_one, n, backends) for n in (1, 2)))

    with serve(script(query_read=SAID)) as server:
        file = write_settings(tmp_path, server.base_url, '[query]\nreader = "llm"\n')[1]
        given: Any = {"settings": file} if way == "file" else {"model": "m"}
        address = {} if way == "file" else {"base_url": server.base_url}
        with kpyramid.open_backends(**given, **address, prices=price) as backends:
            assert not server.log, "nothing is asked before it is needed"
            first, second = asyncio.run(ask_both(backends))
            again = ask_one(1, backends)
        log = [(e["schema"], e["prompt_tokens"], e["completion_tokens"]) for e in server.log]

    assert [backends.sparql, backends.reader] == ["rules" if way == "file" else "llm", "llm"]
    assert {(a.text, a.calls) for a in (first, second)} == {("Oslo", 1)}
    assert (again.text, again.calls, again.tokens, again.cost) == ("Oslo", 0, 0, 0.0)
    assert [schema for schema, *_ in log].count("query_read") == 2
    # Each answer has its share, also when both are under way at once; trying out is one of theirs.
    assert first.tokens + second.tokens == sum(p + c for _, p, c in log)
    dollars = sum(p * 1e-6 + c * 2e-6 for _, p, c in log)
    assert first.cost is not None and second.cost is not None
    assert first.cost + second.cost == pytest.approx(dollars)
    assert not list(tmp_path.glob("kpyramid-*")), "nothing is left behind"


def test_backends_without_a_model_or_with_a_wrong_setting_name_it() -> None:
    with pytest.raises(SettingsError, match="'none'"), kpyramid.open_backends():
        pass
    with pytest.raises(SettingsError, match="modle"), kpyramid.open_backends(modle="m"):
        pass


def test_direct_answers_from_what_the_model_knows(warehouse: Warehouse, tmp_path: Path) -> None:
    with serve(script(query_direct=RECALLED)) as server:
        options = write_settings(tmp_path, server.base_url)
        found = ask(warehouse, QUESTION, "--reader", "llm", "--strategy", "direct", *options)

    assert (found["text"], found["layer"], found["evidence"]) == ("Oslo", "model", [])
    assert found["cost"] is None, "a model without a price"


def test_settings_choose_and_options_override_them(warehouse: Warehouse, tmp_path: Path) -> None:
    query = '[query]\nstrategy = "naive"\noptions = { chunks = 1 }\nreader = "llm"\n'
    with serve(script(query_read=SAID)) as server:
        options = write_settings(tmp_path, server.base_url, query)
        by_model = ask(warehouse, QUESTION, *options)
        by_rules = ask(warehouse, QUESTION, "--reader", "rules", *options)
        calls = len(server.log)
        other = ask(warehouse, QUESTION, "--reader", "rules", "--strategy", "kaping", *options)

    assert by_model["calls"] == 1 and by_rules["calls"] == 0 and calls == 2
    assert len(by_model["context"]) == len(by_rules["context"]) == 1
    assert other["layer"] == "graph"


def test_dead_hanging_or_dear_endpoint_ends_soon(warehouse: Warehouse, tmp_path: Path) -> None:
    naive = ["--reader", "llm", "--strategy", "naive"]
    started = time.monotonic()
    dead = write_settings(tmp_path, "http://127.0.0.1:9/v1")
    done = run(warehouse, f"{QUESTION} Now.", *naive, "--json", *dead)
    assert (done.exit_code, json.loads(done.stdout)["exit_code"]) == (8, 8)
    assert "is the server running" in done.stderr
    assert time.monotonic() - started < 120, "not the ten minutes of a build"

    with serve(script(query_read=SAID)) as server:
        poor = write_settings(tmp_path, server.base_url, "budget_tokens = 60\n")
        done = run(warehouse, f"{QUESTION} Dear.", *naive, *poor)
        assert done.exit_code == 5 and server.log == []
        server.faults.add("timeout", contains="query_read", wait=60.0)
        hasty = write_settings(tmp_path, server.base_url, "timeout = 0.4\nmax_wait = 0.5\n")
        done = run(warehouse, f"{QUESTION} Slowly.", *naive, *hasty)
        calls = server.calls(schema="query_read")
    assert done.exit_code == 8 and "no answer within 0.4 s" in done.output
    assert calls <= 2


def test_how_questions_are_answered_is_no_part_of_a_snapshot(tmp_path: Path) -> None:
    query = {"strategy": "naive", "options": {"mode": "paper", "triples": 5}, "reader": "llm"}
    plain, asking = make_settings(llm=ENDPOINT), make_settings(query=query, llm=ENDPOINT)

    assert plain != asking
    for stage in PIPELINE:
        assert fingerprint_stage(stage, plain) == fingerprint_stage(stage, asking), stage.name
    runs = [
        Run(Warehouse(tmp_path), "r", str(tmp_path), settings, "main", "1")
        for settings in (plain, asking)
    ]
    one, two = (_describe(run, "c", defaultdict(int)) for run in runs)
    assert one == two and "query" not in json.dumps(one["settings"])
