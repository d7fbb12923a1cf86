"""`kpyramid evaluate` with a model that reads and grades, behind a real server."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import Result

from kpyramid.storage.layout import Warehouse
from tests import commands
from tests.asked_model import script, write_llm
from tests.corpora import copy_shared_build, encode_lines
from tests.loopback import serve
from tests.rows import read_bodies

pytestmark = pytest.mark.usefixtures("quick_embedder")  # as the shared build

QUESTIONS = read_bodies("evaluate_model.questions")
SAID = {"says": True, "cites": [1], "answer": "Oslo", "choices": [], "confidence": 0.8}
PRICES = '[llm.prices."m"]\ninput = 1.0\noutput = 2.0\n'


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    return copy_shared_build(tmp_path_factory.mktemp("evaluated") / "w")[0]


def run(warehouse: Warehouse, folder: Path, url: str, *words: str, llm: str = PRICES) -> Result:
    questions = folder / "questions.jsonl"
    questions.write_text(encode_lines(QUESTIONS))
    settings = write_llm(folder, url, f"max_wait = 1.0\ncache = '{folder / 'cache'}'\n{llm}")
    given = ["evaluate", questions, "--strategy", "naive", "--settings", settings]
    return commands.run(*given, "--warehouse", warehouse.root, *words)


def test_model_reads_and_what_it_took_is_told_per_arm(warehouse: Warehouse, tmp_path: Path) -> None:
    readers = ("--reader", "rules", "--reader", "llm", "--json", "--out")
    with serve(script(query_read=SAID)) as server:
        done = run(warehouse, tmp_path, server.base_url, *readers, str(tmp_path / "one"))
        assert done.exit_code == 0, done.output
        log = [(e["schema"], e["prompt_tokens"], e["completion_tokens"]) for e in server.log]
        used, paid = [row[1:] for row in log if row[0] == "query_read"], [row[1:] for row in log]
        again = run(warehouse, tmp_path, server.base_url, *readers, str(tmp_path / "two"))
        assert len(server.log) == len(paid) == 3, "all replies are in the cache"
    rules, model = json.loads(done.stdout)["expenses"]
    assert (rules["arm"], model["arm"]) == ("naive", "naive by m")
    assert (rules["calls"], rules["tokens"], rules["cost"]) == (0, 0, 0.0)
    assert (model["calls"], model["tokens"]) == (2, sum(map(sum, used)))
    # What trying the endpoint out took is paid for too.
    assert model["cost"] == pytest.approx(sum(p * 1e-6 + c * 2e-6 for p, c in paid))

    # Run again, it says the same, also of calls and tokens; only nothing was paid.
    repeated = json.loads(again.stdout)["expenses"][1]
    assert (repeated["calls"], repeated["tokens"]) == (model["calls"], model["tokens"])
    assert repeated["cost"] == 0.0
    for name in ("answers", "metrics", "comparisons"):
        files = [(tmp_path / out / f"{name}.parquet").read_bytes() for out in ("one", "two")]
        assert files[0] == files[1]


def test_reached_budget_keeps_what_was_answered(warehouse: Warehouse, tmp_path: Path) -> None:
    out = tmp_path / "out"
    readers = ("--reader", "rules", "--reader", "llm", "--out", str(out))
    with serve(script(query_read=SAID)) as server:
        done = run(warehouse, tmp_path, server.base_url, *readers, llm="budget_tokens = 60\n")
    assert done.exit_code == 5
    assert "Stopped after 2 of 4 answers." in done.output
    arms = pq.read_table(out / "answers.parquet")["arm"].to_pylist()
    assert arms == ["naive", "naive"]
