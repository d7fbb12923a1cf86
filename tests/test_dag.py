"""The nightly DAG, run by Airflow itself in processes of their own.

Airflow warns a lot and keeps global state; neither may touch the other tests.
"""

import importlib.util
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kpyramid.pipeline.stage import PIPELINE

DAGS = Path(__file__).parent.parent / "dags"
HEAVY = ("spacy", "sklearn", "owlready2", "pyarrow", "duckdb", "openai")
NAMES = [stage.name for stage in PIPELINE]

CORPUS = {
    "curie.txt": (
        "Marie Curie was born in Warsaw in 1867. She discovered polonium and radium. "
        "Marie Curie received the Nobel Prize in Physics in 1903."
    ),
    "danube.txt": (
        "The Danube rises in the Black Forest of Germany. It flows through Vienna, Budapest and "
        "Belgrade. The Danube empties into the Black Sea."
    ),
    "bach.txt": (
        "Johann Sebastian Bach composed the Brandenburg Concertos. Bach was born in Eisenach in "
        "1685. He worked in Leipzig from 1723."
    ),
    "vasa.txt": (
        "The Vasa sank in the harbour of Stockholm in 1628. Gustavus Adolphus ordered the ship. "
        "The Vasa Museum displays the wreck."
    ),
    "turing.txt": (
        "Alan Turing studied mathematics at Cambridge. Turing designed the Bombe at Bletchley "
        "Park. The Association for Computing Machinery awards the Turing Prize."
    ),
}

DESCRIBE = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(sys.argv[1])
(dag,) = bag.dags.values()
print(json.dumps({
    "errors": {str(path): text for path, text in bag.import_errors.items()},
    "id": dag.dag_id,
    "tasks": [task.task_id for task in dag.tasks],
    "edges": sorted([a.task_id, b] for a in dag.tasks for b in a.downstream_task_ids),
    "timetable": type(dag.timetable).__name__,
    "catchup": dag.catchup,
    "active": dag.max_active_runs,
    "policies": [task.retry_policy is not None for task in dag.tasks],
    "doc": dag.doc_md,
}))
"""

PARSE = """
import runpy, sys
runpy.run_path(sys.argv[1])
print(*(set(sys.argv[2:]) & sys.modules.keys()))
"""

RUN = """
import json, sys
import pendulum
from airflow.dag_processing.dagbag import DagBag
(dag,) = DagBag(sys.argv[1]).dags.values()
run = dag.test(
    logical_date=pendulum.datetime(2026, 2, int(sys.argv[3]), 2, tz="UTC"),
    run_conf=json.loads(sys.argv[2]),
)
done = {
    task.task_id: [str(task.state), task.xcom_pull(task_ids=task.task_id)]
    for task in run.get_task_instances()
}
print("RESULT " + json.dumps({"state": str(run.state), "tasks": done}))
"""

REFUSE = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
(dag,) = DagBag(sys.argv[1]).dags.values()
refused = []
for name, value in json.loads(sys.argv[2]):
    try:
        dag.params.get_param(name).resolve(value)
    except Exception as e:
        refused.append([name, value])
print(json.dumps(refused))
"""

KEYS = """
import json, runpy, sys
from datetime import datetime, timezone
from types import SimpleNamespace
key_run = runpy.run_path(sys.argv[1])["key_run"]
at = datetime(2026, 2, 3, 2, tzinfo=timezone.utc)
later = datetime(2026, 2, 4, 2, tzinfo=timezone.utc)
runs = [("a", at, later), ("a", at, at), ("b", at, at), ("../x y", None, later)]
print(json.dumps([
    key_run(SimpleNamespace(dag_id="d", run_id=i, logical_date=date, run_after=after))
    for i, date, after in runs
]))
"""


def check_airflow() -> None:
    """Skips where Airflow is not installed; in CI that is a failure."""
    if importlib.util.find_spec("airflow") is None:
        if os.environ.get("CI"):
            pytest.fail("Airflow is not installed, but CI needs it: make install-ci")
        pytest.skip("Airflow is not installed: make install-ci")


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The environment of an Airflow with an empty, migrated database."""
    check_airflow()
    home = tmp_path_factory.mktemp("airflow")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW", "KPYRAMID_"))}
    environment = {
        **kept,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
    }
    run_python(environment, "-m", "airflow", "db", "migrate")
    return environment


def run_python(environment: Mapping[str, str], *arguments: str) -> str:
    """What a Python process with these arguments prints."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def read_result(output: str) -> dict[str, Any]:
    (line,) = (line for line in output.splitlines() if line.startswith("RESULT "))
    result: dict[str, Any] = json.loads(line.removeprefix("RESULT "))
    return result


@pytest.mark.slow
def test_tasks_and_edges_are_the_pipeline(airflow: Mapping[str, str]) -> None:
    dag = json.loads(run_python(airflow, "-c", DESCRIBE, str(DAGS)).splitlines()[-1])
    assert dag["errors"] == {}
    assert dag["id"] == "build_pyramid"
    assert dag["tasks"] == NAMES
    assert dag["edges"] == sorted([a, b] for a, b in itertools.pairwise(NAMES))
    assert (dag["catchup"], dag["active"]) == (False, 1)
    assert dag["timetable"] == "CronTriggerTimetable", "backfills need a timetable"
    assert all(dag["policies"])
    assert dag["doc"].startswith("Build the knowledge pyramid every night")


@pytest.mark.slow
def test_parsing_imports_nothing_heavy(airflow: Mapping[str, str]) -> None:
    output = run_python(airflow, "-c", PARSE, str(DAGS / "build_pyramid.py"), *HEAVY)
    assert output.split() == []


@pytest.mark.slow
def test_parameters_that_reach_outside_are_refused(airflow: Mapping[str, str]) -> None:
    bad = [
        ["ref", "../etc"],
        ["ref", ""],
        ["ref", "a/b"],
        ["ref", "a" * 101],
        ["corpus", "relative/path"],
        ["corpus", "/data/../etc"],
        ["corpus", "/.."],
        ["corpus", "/a\nb"],
        ["warehouse", ""],
        ["settings", "/settings/../../x.toml"],
        ["workers", 0],
        ["workers", "2"],
    ]
    good = [
        ["ref", "main"],
        ["ref", "trial-2026.02"],
        ["corpus", "/data/my corpus/..hidden"],
        ["warehouse", "/w"],
        ["settings", None],
        ["settings", "/settings/kpyramid.toml"],
        ["workers", 4],
    ]
    output = run_python(airflow, "-c", REFUSE, str(DAGS), json.dumps([*bad, *good]))
    assert json.loads(output.splitlines()[-1]) == bad


@pytest.mark.slow
def test_run_key_names_a_run_once_and_orders_by_logical_date(airflow: Mapping[str, str]) -> None:
    output = run_python(airflow, "-c", KEYS, str(DAGS / "build_pyramid.py"))
    first, again, other, undated = json.loads(output.splitlines()[-1])
    assert first == again, "the time a run was started does not matter"
    assert first[0] != other[0]
    assert first[1] == other[1] == "2026-02-03T02:00:00.000000+00:00"
    assert undated[1] == "2026-02-04T02:00:00.000000+00:00"
    assert undated[0].startswith("airflow-20260204T020000Z-")


@pytest.mark.slow
def test_dag_builds_and_publishes_and_never_moves_the_ref_back(
    airflow: Mapping[str, str], tmp_path: Path
) -> None:
    corpus, warehouse = tmp_path / "corpus", tmp_path / "warehouse"
    corpus.mkdir()
    for name, text in CORPUS.items():
        (corpus / name).write_text(text, "utf-8")
    conf = json.dumps({"corpus": str(corpus), "warehouse": str(warehouse), "workers": 1})

    built = read_result(run_python(airflow, "-c", RUN, str(DAGS), conf, "3"))
    assert built["state"] == "success"
    assert [built["tasks"][name][0] for name in NAMES] == ["success"] * len(NAMES)
    results = {name: result for name, (_, result) in built["tasks"].items()}
    assert results["ingest"]["rows"] == {"documents": len(CORPUS)}
    assert results["extract"]["rows"]["raw_triples"] > 0
    assert results["publish"]["committed"] == "yes"
    assert len(json.dumps(results)) < 8_000, "XCom carries names and counts only"
    (snapshot,) = (path.name for path in (warehouse / "snapshots").iterdir())
    assert snapshot == results["publish"]["snapshot"]

    (corpus / "vasa.txt").write_text("The Vasa was raised in 1961.", "utf-8")
    backfill = read_result(run_python(airflow, "-c", RUN, str(DAGS), conf, "2"))
    assert backfill["state"] == "failed"
    assert backfill["tasks"]["publish"][0] == "failed", "not up_for_retry: a lost race is final"
    heads = [json.loads(p.read_bytes())["snapshot"] for p in (warehouse / "refs/main").iterdir()]
    assert heads == [snapshot]
    assert len(list((warehouse / "snapshots").iterdir())) == 2, "the backfill's snapshot is kept"
