"""The DAGs, read and run by Airflow itself in processes of its own.

Airflow warns a lot and keeps global state; neither may touch the other tests. One scheduler serves
all tests that need one, and they follow each other as nights do.
"""

import importlib.metadata
import json
import os
import re
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import pytest

from kpyramid.pipeline.stage import PIPELINE
from tests.asked_model import write_llm
from tests.corpora import write_corpus
from tests.loopback import serve
from tests.rows import read_bodies
from tests.servers import check_installed, find_ports, serve_postgres

CHECKOUT = Path(__file__).parent.parent
DAGS = CHECKOUT / "dags"
HEAVY = ("spacy", "sklearn", "owlready2", "pyarrow", "duckdb", "openai", "numpy")
STAGES = ["resolve", "induce", "complete", "condense"]
MOST_PARSE_SECONDS = 0.5
MOST_WAIT_SECONDS = 600
LINEAGE = "lineage.jsonl"

DAY = timedelta(days=1)
LAST = datetime.now(UTC) - timedelta(hours=12)
TODAY, HOUR = LAST.date(), f"T{LAST:%H}:00:00"
"""Day and hour of the last night: half a day from the next, so that none begins during a test."""
NIGHTLY = f'schedule = "0 {LAST.hour} * * *"\n'

TELLER = """
from pathlib import Path
from airflow.sdk import BaseNotifier

class Teller(BaseNotifier):
    def __init__(self, path, **kwargs):
        super().__init__(**kwargs)
        self.path = Path(path)

    async def async_notify(self, context):
        self.path.write_text(context["dag_run"]["dag_id"])

    def notify(self, context):
        raise NotImplementedError
"""

TEXTS = {
    **{f"letter{n}.txt": f"Ada Lovelace sent letter {n} to Charles Babbage." for n in range(56)},
    "curie.txt": "Marie Curie was born in Warsaw in 1867. She discovered polonium and radium.",
    "vasa.txt": "The Vasa sank in the harbour of Stockholm in 1628.",
    "bach.txt": "Johann Sebastian Bach was born in Eisenach in 1685. He worked in Leipzig.",
}
CHANGED = {
    **TEXTS,
    "curie.txt": "Marie Curie received the Nobel Prize in Physics in 1903.",
    "vasa.txt": "The Vasa was raised from the harbour of Stockholm in 1961.",
}

READ = """
import json, logging, sys
from types import SimpleNamespace
from airflow.dag_processing.dagbag import DagBag
import kpyramid.errors
KINDS = [k for k in vars(kpyramid.errors).values() if isinstance(k, type)]
KINDS = [k for k in KINDS if issubclass(k, kpyramid.errors.PyramidError)]
bag = DagBag(sys.argv[1])
print(json.dumps({"errors": {str(k): v for k, v in bag.import_errors.items()}, "dags": {
    dag.dag_id: {
        "tasks": [task.task_id for task in dag.tasks],
        "edges": sorted([a.task_id, b] for a in dag.tasks for b in a.downstream_task_ids),
        "timetable": type(dag.timetable).__name__,
        "retried": sorted({
            kind.__name__
            for task in dag.tasks
            for kind in KINDS
            if task.retry_policy.evaluate(kind("x"), 1, 2).action.value != "fail"
        }),
        "pools": sorted(task.task_id for task in dag.tasks if task.pool == "model"),
        "owner": dag.owner,
        "access": {role: str(given) for role, given in (dag.access_control or {}).items()},
        "assets": {
            task.task_id: [[one.name for one in task.inlets], [one.name for one in task.outlets]]
            for task in dag.tasks if task.inlets or task.outlets
        },
        "timeout": getattr(dag.tasks[0].execution_timeout, "seconds", None),
        "once": (dag.catchup, dag.max_active_runs),
        "doc": dag.doc_md,
    } for dag in bag.dags.values()
}}))

dag = bag.dags["build_pyramid_days"]
refused = []
for name, value in json.loads(sys.argv[2]):
    try:
        dag.params.get_param(name).resolve(value)
    except Exception as e:
        refused.append([name, value])
print(json.dumps(refused))

sys.modules["markdown_it"] = None  # as where it is not installed
logging.basicConfig(stream=sys.stdout, format="%(message)s", force=True)
plan = dag.get_task("plan")
try:
    plan.python_callable()
except ImportError as e:
    print(plan.retry_policy.evaluate(e, 1, 2).action.value)
    ti = SimpleNamespace(task_id="plan", run_id="night", state="failed")
    (tell,) = plan.on_failure_callback
    tell({"exception": e, "ti": ti})
"""

PARSE = """
import runpy, sys, time
from airflow.sdk import (DAG, Asset, AssetAlias, BaseOperatorLink, CronTriggerTimetable, Param,
    ExceptionRetryPolicy, TriggerRule, task)
from airflow.providers.standard.operators.python import PythonOperator
started = time.process_time()  # not of other programs
runpy.run_path(sys.argv[1])
print(time.process_time() - started, *(set(sys.argv[2:]) & sys.modules.keys()))
"""

TELL = """
import asyncio, sys
from kpyramid.pipeline.airflow.factory import tell_late
run = {"dag_id": "build_pyramid_days", "run_type": sys.argv[2]}
asyncio.run(tell_late("told_late.Teller", {"path": sys.argv[1]}, {"dag_run": run}))
"""

SHOW = """
import json, sys
from airflow.api_fastapi.core_api import security
from fastapi.testclient import TestClient
from kpyramid.pipeline.airflow.plugin import app

class Manager:  # of an organisation where roles see some DAGs
    def is_authorized_dag(self, *, method, access_entity, details, user):
        return (method, details.id) == ("GET", "build_pyramid_days")

security.get_auth_manager = Manager
app.dependency_overrides[security.get_user] = lambda: "somebody"
client = TestClient(app)
print(json.dumps([client.get(f"/{dag}/a/report.html").status_code for dag in sys.argv[1:]]))
"""

BAD = read_bodies("dag.parameters_that_reach_outside_are_refused")
GOOD = read_bodies("dag.parameters_that_are_taken")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with declarations, dated folders of texts, and an Airflow to come."""
    check_installed("airflow")
    home = tmp_path_factory.mktemp("airflow")
    declarations = {
        "days": f'{NIGHTLY}source = "../days/{{{{ date }}}}"\nshards = 2\nowner = "night desk"\n'
        'access = ["Viewer"]\nexecution_timeout = 90\n'
        'exports = [{to = "../served"}, {to = "../tars", form = "tar"}]\n'
        '[evaluate]\nquestions = "q.jsonl"\nto = "../pages"\n[failure]\n'
        'notify = "airflow.providers.smtp.notifications.smtp.SmtpNotifier"\narguments = '
        '{ to = "desk@example.org", from_email = "air@example.org", subject = '
        '"{{ dag.dag_id }} failed", html_content = "{{ dag_run.run_id }}" }\n',
        "asked": 'source = "../asked"\nsettings = "../asked.toml"\nschedule = "0 0 1 1 *"\n'
        'batch = 0.2\npool = "model"\napprove = true\n[deadline]\nminutes = 0.02\n'
        f'notify = "told_late.Teller"\narguments = {{ path = "{home / "late"}" }}\n',
        "notes": f'{NIGHTLY}source = "../notes"\ncatchup = {TODAY}\n[learn]\n'
        'feedback = "../feedback.jsonl"\n',
        "wrong": 'source = "../notes"\nschedule = "at night"\n',
    }
    question = {"id": "q", "question": "Where was Marie Curie born?", "answer": "Warsaw"}
    learnt = {"question": "Where was Peter Ash born?", "gold": "Leeds"}
    files = {f"{name}.toml": text for name, text in declarations.items()}
    write_corpus(home / "corpora", files | {"q.jsonl": json.dumps(question)})
    write_corpus(home / "notes", {"note.txt": "Charles Babbage kept every letter."})
    write_corpus(home / "asked", {"a.txt": "Dora knew Emil. Bob liked Cleo."})
    (home / "feedback.jsonl").write_text(json.dumps(learnt), "utf-8")
    for back, texts in enumerate((TEXTS, TEXTS, CHANGED)):
        write_texts(home, back, texts)
    return home


def write_texts(home: Path, back: int, texts: Mapping[str, str]) -> None:
    write_corpus(home / "days" / str(TODAY - back * DAY), texts)


@pytest.fixture(scope="module")
def environment(home: Path) -> Mapping[str, str]:
    """An Airflow's environment, apart from any other's on this machine; its database is SQLite."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW", "KPYRAMID_"))}
    (home / "told_late.py").write_text(TELLER, "utf-8")
    port, logs, triggers, metrics, mail = find_ports(5)
    code = os.pathsep.join(
        [str(CHECKOUT / "etl"), str(add_entry(home)), str(home), kept.get("PYTHONPATH", "")]
    )
    return {
        **kept,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), kept["PATH"]]),
        "PYTHONPATH": code.strip(os.pathsep),
        "KPYRAMID_CORPORA": str(home / "corpora"),
        "KPYRAMID_WAREHOUSE": str(home / "warehouse"),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "1",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW_CONN_SMTP_DEFAULT": json.dumps(
            {
                **{"conn_type": "smtp", "host": "127.0.0.1", "port": mail},
                "extra": {"disable_ssl": True, "disable_tls": True},
            }
        ),
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.3",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(
            {"type": "file", "log_file_path": str(home / LINEAGE), "append": True}
        ),
        "AIRFLOW__METRICS__STATSD_ON": "True",
        "AIRFLOW__METRICS__STATSD_PORT": str(metrics),
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(logs),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(triggers),
    }


def add_entry(home: Path) -> Path:
    """A folder that says to Airflow what the installed package says, if that is of this release."""
    folder = home / "entries"
    names = importlib.metadata.entry_points(group="airflow.plugins").names
    if "kpyramid" not in names:
        place = folder / "entries-0.dist-info"
        place.mkdir(parents=True)
        (place / "METADATA").write_text("Metadata-Version: 2.1\nName: entries\nVersion: 0\n")
        declared = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))
        ((name, value),) = declared["project"]["entry-points"]["airflow.plugins"].items()
        (place / "entry_points.txt").write_text(f"[airflow.plugins]\n{name} = {value}\n")
    return folder


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


@pytest.fixture(scope="module")
def read(environment: Mapping[str, str]) -> list[str]:
    """What Airflow makes of the DAGs, of parameters, and of a worker that lacks an extra."""
    output = run_python(environment, "-c", READ, str(DAGS), json.dumps([*BAD, *GOOD]))
    return output[output.index('{"errors": ') :].splitlines()


@pytest.mark.slow
def test_every_dag_of_every_corpus_is_listed_here(home: Path, read: list[str]) -> None:
    bag = json.loads(read[0])
    assert bag["errors"] == {}
    dags = bag["dags"]
    build = ["plan", "read", "resolve", "embed", "induce", "complete", "condense", "publish"]
    asking = ["plan", "read", "batches", *build[2:], "approve", "promote"]
    assert {name: dag["tasks"] for name, dag in dags.items()} == {
        "build_pyramid_days": build,
        "export_pyramid_days": ["export"],
        "evaluate_pyramid_days": ["evaluate"],
        "build_pyramid_notes": build,
        "learn_pyramid_notes": ["learn"],
        "build_pyramid_wrong": build,
        "maintain_warehouse": ["verify", "gc"],
        "build_pyramid_asked": asking,
    }
    pools = sorted(["read", "resolve", "embed", "induce", "complete", "condense"])
    assert dags["build_pyramid_asked"]["pools"] == pools
    assert {("plan", "batches"), ("batches", "read"), ("publish", "approve")} <= {
        (first, second) for first, second in dags["build_pyramid_asked"]["edges"]
    }
    days = dags["build_pyramid_days"]
    line = [["read", "resolve"], ["resolve", "embed"], ["embed", "induce"]]
    line += [["induce", "complete"], ["complete", "condense"], ["condense", "publish"]]
    assert days["edges"] == sorted([*line, *(["plan", task] for task in build[1:])])
    assert days["timetable"] == "CronTriggerTimetable", "backfills need a timetable"
    exported = dags["export_pyramid_days"]["timetable"]
    assert exported == "AssetOrTimeSchedule", "a person's move of a ref is no event"
    assert (days["owner"], list(days["access"])) == ("night desk", ["Viewer"])
    assert days["timeout"] == 90 * 60 and dags["maintain_warehouse"]["owner"] == "kpyramid"
    assert "source: `../days/{{ date }}`" in days["doc"]
    assert days["assets"] == {
        "plan": [[home.joinpath("days").as_uri()], []],
        "publish": [[], ["kpyramid/days/built"]],
    }
    assert dags["build_pyramid_asked"]["assets"]["promote"] == [[], ["kpyramid/asked/built"]]
    assert dags["export_pyramid_days"]["assets"] == {
        "export": [["kpyramid/days"], ["kpyramid/days/exported"]]
    }
    assert dags["evaluate_pyramid_days"]["assets"] == {
        "evaluate": [["kpyramid/days"], ["kpyramid/days/evaluated"]]
    }
    assert dags["learn_pyramid_notes"]["assets"] == {
        "learn": [[home.joinpath("feedback.jsonl").as_uri()], ["kpyramid/notes/learnt"]]
    }
    assert all(dag["doc"] and dag["once"][1] == 1 for dag in dags.values())
    making_up = [name for name, dag in dags.items() if dag["once"][0]]
    assert making_up == ["build_pyramid_notes"], "for the nights that were missed"
    kinds = ["ConflictError", "EndpointError", "PyramidError"]
    assert all(dag["retried"] == kinds for dag in dags.values()), "what may pass by itself"
    wrong = dags["build_pyramid_wrong"]["doc"]
    assert wrong.startswith("**corpus wrong: "), "it keeps its DAG, which says what to mend"
    assert "wrong.toml" in wrong


@pytest.mark.slow
def test_a_worker_without_the_extra_build_says_what_to_install(read: list[str]) -> None:
    """In the last line of the log; Airflow does not try again in vain."""
    assert read[2] == "fail"
    assert read[-1] == (
        "plan of night: ModuleNotFoundError: this needs markdown_it, which is not installed: "
        "pip install 'kpyramid[build]'; mend it, then clear this task"
    )


@pytest.mark.slow
def test_parsing_is_quick_and_imports_nothing_heavy(environment: Mapping[str, str]) -> None:
    output = run_python(environment, "-c", PARSE, str(DAGS / "pyramids.py"), *HEAVY)
    seconds, *heavy = output.splitlines()[-1].split()
    assert float(seconds) < MOST_PARSE_SECONDS
    assert heavy == []


@pytest.mark.slow
def test_report_is_for_who_may_see_the_dag(environment: Mapping[str, str]) -> None:
    run_python(environment, "-m", "airflow", "db", "migrate")
    dags = ("build_pyramid_days", "build_pyramid_notes")
    output = run_python(environment, "-c", SHOW, *dags)
    assert json.loads(output.splitlines()[-1]) == [404, 403]


@pytest.mark.slow
def test_who_hears_of_late_nights_hears_of_no_backfill(
    home: Path, environment: Mapping[str, str]
) -> None:
    """All days of a backfill are queued at once, so that the last would always be late."""
    for kind in ("backfill", "scheduled"):
        told = home / f"told-{kind}"
        run_python(environment, "-c", TELL, str(told), kind)
        assert told.exists() is (kind == "scheduled")


@pytest.mark.slow
def test_parameters_that_reach_outside_are_refused(read: list[str]) -> None:
    assert json.loads(read[1]) == BAD


# A real scheduler.


@contextmanager
def taking_mail(environment: Mapping[str, str]) -> Iterator[list[str]]:
    """A mail server on the loopback, and subject and text of the letters that it took."""
    letters: list[str] = []

    class Session(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            for line in self.rfile:
                if line.upper().startswith(b"DATA"):
                    self.wfile.write(b"354 go on\r\n")
                    lines = iter(self.rfile.readline, b".\r\n")
                    letter = message_from_bytes(b"".join(lines), policy=policy.default)
                    text = "".join(part.get_content() for part in letter.iter_parts())
                    letters.append(f"{letter['subject']}: {text or letter.get_content()}".strip())
                ends = line.upper().startswith(b"QUIT")
                self.wfile.write(b"221 bye\r\n" if ends else b"250 ok\r\n")

    port = json.loads(environment["AIRFLOW_CONN_SMTP_DEFAULT"])["port"]
    with socketserver.ThreadingTCPServer(("127.0.0.1", port), Session) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield letters
        server.shutdown()


class Scheduler:
    """A running Airflow, asked over its own interface; and the warehouse that it fills."""

    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self.home = home
        self.environment = environment
        self.url = f"http://127.0.0.1:{environment['AIRFLOW__API__PORT']}"
        self.token = ""
        self.gauges: dict[str, float] = {}

    def call(self, method: str, path: str, body: object = None) -> Any:
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def wait(self, what: str, look: Callable[[], Any], every: float = 0.3) -> Any:
        """The first true thing that a look finds; a look takes the server's processor time."""
        end = time.monotonic() + MOST_WAIT_SECONDS
        while time.monotonic() < end:
            try:
                if found := look():
                    return found
            except OSError:
                pass
            time.sleep(every)
        log = (self.home / "standalone.log").read_text("utf-8", "replace")
        raise AssertionError(f"{what}: not within {MOST_WAIT_SECONDS} s\n{log[-6000:]}")

    def count(self, listener: socket.socket) -> None:
        """Keeps the gauges that Airflow sends as StatsD has them, until nobody listens."""
        while True:
            try:
                lines = listener.recv(65_536).decode().splitlines()
            except OSError:
                return
            found = [re.fullmatch(r"([^:]+):([\d.e-]+)\|g", line) for line in lines]
            self.gauges |= {one[1]: float(one[2]) for one in found if one}

    def log_in(self) -> bool:
        """Whether an address, a login and the pools of corpora are told, and the login is right."""
        said = (self.home / "said").read_text("utf-8")
        found = re.search(
            r"at (\S+)\nlogin +(\S+), password (\S+)[^$]* build_pyramid_asked [^$]*\npools +model",
            said,
        )
        if found is None:
            return False
        assert found[1].endswith(self.environment["AIRFLOW__API__PORT"])
        login = {"username": found[2], "password": found[3]}
        self.token = self.call("POST", "/auth/token", login)["access_token"]
        return True

    def list_runs(self, dag: str) -> list[dict[str, Any]]:
        runs = self.call("GET", f"/api/v2/dags/{dag}/dagRuns?order_by=run_after")["dag_runs"]
        return list(runs)

    def finish(self, dag: str, run: str) -> dict[str, Any]:
        """The run, when it has ended."""

        def look() -> dict[str, Any] | None:
            (found,) = [one for one in self.list_runs(dag) if one["dag_run_id"] == run]
            return found if found["state"] in ("success", "failed") else None

        found: dict[str, Any] = self.wait(f"{dag} {run}", look, every=1.0)
        return found

    def trigger(self, dag: str, **conf: object) -> str:
        """The id of a run that a person starts."""
        body = {"logical_date": None, "conf": conf}
        return str(self.call("POST", f"/api/v2/dags/{dag}/dagRuns", body)["dag_run_id"])

    def list_tasks(self, dag: str, run: str) -> dict[str, dict[str, Any]]:
        place = f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances"
        found = self.call("GET", place)["task_instances"]
        return {
            t["task_id"] + (f"[{t['map_index']}]" if t["map_index"] >= 0 else ""): t for t in found
        }

    def read_result(self, dag: str, run: str, task: str) -> Any:
        place = f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries/return_value"
        return self.call("GET", f"{place}?deserialize=true")["value"]

    def read_log(self, dag: str, run: str, task: str, number: int) -> list[str]:
        """The lines that a try of a task logged, but for marks of groups and OpenLineage's."""
        place = f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/logs/{number}"
        events = self.call("GET", place)["content"]
        lines = [event["event"] if isinstance(event, dict) else event for event in events]
        return [line for line in lines if not re.match("::|.*OpenLineage", line)]

    def read_page(self, place: str, token: str | None = None) -> str | int:
        """A page as a browser gets it, or the status of a refusal."""
        headers = {"Authorization": f"Bearer {self.token if token is None else token}"}
        request = urllib.request.Request(self.url + place, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as e:
            return e.code

    def read_declarations(self) -> None:
        """Has the file of the DAGs read now and not within half a minute, as a person may ask."""
        found = self.call("GET", "/api/v2/dags/maintain_warehouse/details")
        self.call("PUT", f"/api/v2/parseDagFile/{found['file_token']}")

    def list_events(self, asset: str) -> list[dict[str, Any]]:
        """Its events, the last first; Airflow fails to say so while a follower's run is queued."""
        place = "/api/v2/assets/events?order_by=-timestamp&limit=100"
        events = self.wait("the events", lambda: self.call("GET", place))["asset_events"]
        return [event for event in events if event["name"] == asset]

    def read_heads(self) -> dict[str, str]:
        """The snapshot that each ref is at."""
        folders = (self.home / "warehouse" / "refs").iterdir()
        return {
            folder.name: json.loads(max(folder.glob("*.json")).read_bytes())["snapshot"]
            for folder in folders
        }

    def read_lineage(self, dag: str, run: str) -> set[tuple[str, ...]]:
        """What OpenLineage was told of a run: events of its tasks, with the places they name."""
        found = set()
        for line in (self.home / LINEAGE).read_text("utf-8").splitlines():
            event = json.loads(line)
            facets, name = event["run"]["facets"], event["job"]["name"]
            (told,) = [facets[key] for key in ("airflow", "airflowDagRun") if key in facets]
            if (name.partition(".")[0], told["dagRun"]["run_id"]) == (dag, run):
                places = [f"{one['namespace']}://{one['name']}" for one in event["inputs"]]
                places += [f"> {one['namespace']}://{one['name']}" for one in event["outputs"]]
                found.add((name.removeprefix(f"{dag}."), event["eventType"], *places))
        return found

    def read_export(self) -> Any:
        return json.loads((self.home / "served" / "newest.json").read_bytes())["snapshot"]


@pytest.fixture(scope="module")
def scheduler(home: Path, environment: Mapping[str, str]) -> Iterator[Scheduler]:
    """What `make airflow` starts, with all DAGs off, on PostgreSQL.

    Airflow's server logs an action on its event loop. SQLite has one lock for all: the loop may
    wait for it while the request that holds it waits for the loop, until one gives up.
    """
    check_installed("psycopg2", "asyncpg")
    with serve_postgres(*find_ports(1)) as database:
        connection = f"postgresql+psycopg2://{database}"
        named = {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": connection}
        with run_airflow(home, {**environment, **named}) as airflow:
            yield airflow


@contextmanager
def run_airflow(home: Path, environment: Mapping[str, str]) -> Iterator[Scheduler]:
    """Airflow as `make airflow` starts it."""
    airflow = Scheduler(home, environment)
    command = [sys.executable, str(CHECKOUT / "examples/demo/demo_airflow.py")]
    command += ["--home", str(home), "--port", environment["AIRFLOW__API__PORT"]]
    command += ["--database", environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]]
    listener = socket.socket(type=socket.SOCK_DGRAM)
    listener.bind(("127.0.0.1", int(environment["AIRFLOW__METRICS__STATSD_PORT"])))
    threading.Thread(target=airflow.count, args=[listener], daemon=True).start()
    with (home / "said").open("wb") as said:
        process = subprocess.Popen(
            command, env=dict(environment), stdout=said, stderr=subprocess.STDOUT
        )
    try:
        airflow.wait("an address and a login", airflow.log_in)
        airflow.wait("the DAGs", lambda: len(airflow.call("GET", "/api/v2/dags")["dags"]) == 8)
        yield airflow
    finally:
        process.terminate()
        process.wait(30)
        listener.close()


@pytest.mark.slow
def test_nights_backfill_and_export_on_a_real_scheduler(scheduler: Scheduler) -> None:
    build, export = "build_pyramid_days", "export_pyramid_days"
    dags = scheduler.call("GET", "/api/v2/dags")["dags"]
    assert all(dag["is_paused"] for dag in dags), "nothing is switched on by itself"
    for dag in (export, build):
        scheduler.call("PATCH", f"/api/v2/dags/{dag}", {"is_paused": False})
    scheduler.wait("the first night", lambda: scheduler.list_runs(build))
    first = scheduler.list_runs(build)[0]["dag_run_id"]
    assert first.startswith(f"scheduled__{TODAY}{HOUR}")

    # A worker is killed in the middle of its shard.
    killed = scheduler.wait("a shard", lambda: find_running(scheduler, build, first, "read[0]"))
    os.kill(killed, signal.SIGKILL)
    assert scheduler.finish(build, first)["state"] == "success"
    tasks = scheduler.list_tasks(build, first)
    assert {name: task["state"] for name, task in tasks.items()} == dict.fromkeys(
        ["plan", "read[0]", "read[1]", "embed[0]", "embed[1]", *STAGES, "publish"], "success"
    )
    assert tasks["read[0]"]["try_number"] == 2
    one = scheduler.read_result(build, first, "publish")
    assert one["headline"] == f"days is now at {one['snapshot']}: the first snapshot of its ref"
    counts = scheduler.read_result(build, first, "resolve")["extract"]
    assert scheduler.gauges["airflow.kpyramid.rows.days.ingest.documents"] == len(TEXTS)
    assert scheduler.gauges["airflow.kpyramid.rows.days.extract.raw_triples"] > 0
    for stage in PIPELINE:
        assert scheduler.gauges[f"airflow.kpyramid.seconds.days.{stage.name}"] >= 0
    assert scheduler.gauges["airflow.kpyramid.rejects.days.publish"] >= 0
    assert counts["recomputed"] == 0, "the shards had read all of it"
    scheduler.wait("the export", lambda: scheduler.read_export() == one["snapshot"])
    place = f"/api/v2/dags/{build}/dagRuns/{first}/taskInstances/publish/links"
    links = scheduler.call("GET", place)["extra_links"]
    assert "/kpyramid/build_pyramid_days/scheduled__" in links["Report"]

    assert scheduler.read_page(links["Report"], token="") == 401, "only who is logged in"
    assert "2 documents" not in scheduler.read_page(links["Report"])
    assert one["snapshot"] in scheduler.read_page(links["Report"])
    with pytest.raises(urllib.error.HTTPError, match="400"):
        scheduler.trigger(build, ref="../etc")

    # The second night: two documents changed.
    write_texts(scheduler.home, 0, CHANGED)
    source = str(scheduler.home / "days" / str(TODAY))
    second = scheduler.trigger(build, source=source)
    assert scheduler.finish(build, second)["state"] == "success"
    two = scheduler.read_result(build, second, "publish")
    assert two["headline"].startswith(f"days is now at {two['snapshot']}: 2 documents edited; ")
    counts = scheduler.read_result(build, second, "resolve")["extract"]
    assert counts["recomputed"] == 2
    assert scheduler.list_tasks(build, second)["read"]["state"] == "skipped"
    said = r"resolve: rows \{'.*\}, rejects \{.*\}, recomputed \d+, [\d.]+ s, no cost"
    assert re.search(said, "\n".join(scheduler.read_log(build, second, "resolve", 1)))

    # The third night, started twice at once: nothing changed, and one waits for the other.
    events = len(scheduler.list_events("kpyramid/days"))
    nights = [scheduler.trigger(build, source=source) for _ in range(2)]
    done = [scheduler.finish(build, night) for night in nights]
    assert [night["state"] for night in done] == ["success", "success"]
    began, ended = zip(*((read_time(n, "start"), read_time(n, "end")) for n in done), strict=True)
    assert max(began) >= min(ended)
    states = {name: task["state"] for name, task in scheduler.list_tasks(build, nights[0]).items()}
    assert states == {
        **dict.fromkeys(["read", "embed", *STAGES], "skipped"),
        **{"plan": "success", "publish": "success"},
    }
    still = len(scheduler.list_events("kpyramid/days"))
    assert still == events, "who follows the ref is not woken for nothing"
    check_lineage(scheduler, build, moved=second, unchanged=nights[0])

    # Two days again; meanwhile an old event, and an old run that is cleared.
    days = [TODAY - back * DAY for back in (2, 1)]
    create = ["backfill", "create", "--dag-id", build, "--max-active-runs", "1"]
    create += ["--reprocess-behavior", "completed", "--from-date", str(days[0])]
    create += ["--to-date", f"{days[-1]}T23:59:59"]
    airflow = str(Path(sys.executable).with_name("airflow"))
    subprocess.run([airflow, *create], env=dict(scheduler.environment), check=True)
    (asset,) = [
        asset["id"]
        for asset in scheduler.call("GET", "/api/v2/assets")["assets"]
        if asset["name"] == "kpyramid/days"
    ]
    exports = len(scheduler.list_runs(export))
    others = start_others(scheduler, two["snapshot"])
    late = {"asset_id": asset, "extra": {"snapshot": one["snapshot"]}}
    scheduler.call("POST", "/api/v2/assets/events", late)
    clear = {"dry_run": False, "dag_run_id": first, "task_ids": ["publish"], "only_failed": False}
    scheduler.call("POST", f"/api/v2/dags/{build}/clearTaskInstances", clear)
    runs = [f"backfill__{day}{HOUR}+00:00" for day in days]
    assert [scheduler.finish(build, run)["state"] for run in runs] == ["success"] * 2
    assert scheduler.read_heads() == {
        "days": two["snapshot"],
        **{f"days-{days[0]}": two["snapshot"], f"days-{days[1]}": one["snapshot"]},
        "notes": two["snapshot"],
    }
    scheduler.wait("the late export", lambda: len(scheduler.list_runs(export)) > exports)
    scheduler.finish(export, scheduler.list_runs(export)[-1]["dag_run_id"])
    assert scheduler.read_export() == two["snapshot"], "the ref is asked, not the event"
    assert scheduler.finish(build, first)["state"] == "failed"
    cleared = scheduler.list_tasks(build, first)["publish"]
    assert (cleared["state"], cleared["try_number"]) == ("failed", 2), "overtaken is final"
    last_line = scheduler.read_log(build, first, "publish", 2)[-1]
    assert f"publish of {first}: OvertakenError: ref 'days' is at order" in last_line
    assert f"would fail again; by hand: kpyramid stage publish --run {one['run']}" in last_line

    last = {}
    for dag in others:
        last[dag] = scheduler.wait(dag, lambda dag=dag: scheduler.list_runs(dag))[0]["dag_run_id"]
        assert scheduler.finish(dag, last[dag])["state"] == "success"
    verified = scheduler.list_tasks("maintain_warehouse", last["maintain_warehouse"])
    assert {name: task["state"] for name, task in verified.items()} == {
        **dict.fromkeys(["verify[1]", "verify[2]", "gc"], "success"),
        "verify[0]": "skipped",  # has no snapshot yet
        "verify[3]": "skipped",  # of the corpus whose declaration is wrong
    }
    page = scheduler.home / "pages" / two["snapshot"] / "evaluation.html"
    assert "polyrag" in page.read_text("utf-8")
    assert "Peter Ash" in (scheduler.home / "notes" / "experience.jsonl").read_text("utf-8")
    served = scheduler.list_events(scheduler.home.joinpath("served").as_uri())
    assert [event["extra"]["snapshot"] for event in served] == [two["snapshot"], one["snapshot"]]
    told = scheduler.read_lineage(export, served[0]["source_run_id"])
    place = f"file://{scheduler.home}"
    assert ("export", "COMPLETE", f"{place}/warehouse/refs/days", f"> {place}/served") in told
    (asked,) = scheduler.list_events(scheduler.home.joinpath("pages").as_uri())
    assert asked["extra"]["page"] == str(page)
    (learnt,) = scheduler.list_events(scheduler.home.joinpath("notes").as_uri())
    assert learnt["source_dag_id"] == "learn_pyramid_notes"

    conf = {"logical_date": None, "conf": {"allow_shrnk": True}}
    misspelt = scheduler.call("POST", f"/api/v2/dags/{build}/dagRuns", conf)["dag_run_id"]
    with taking_mail(scheduler.environment) as letters:
        assert scheduler.finish(build, misspelt)["state"] == "failed"
        letter = f"build_pyramid_days failed: {misspelt}"
        # That of the run that was overtaken may come as late as this.
        scheduler.wait("the mail", lambda: letter in letters)
    assert letters.count(letter) == 1
    said = scheduler.read_log(build, misspelt, "plan", 1)[-1]
    assert "unknown params allow_shrnk: there are allow_shrink, ref, source" in said


@pytest.mark.slow
def test_a_declaration_that_is_dropped_in_has_its_dag_which_follows_its_source(
    scheduler: Scheduler,
) -> None:
    """The DAG alone: what a run of it does is that of any other."""
    dag, file = "build_pyramid_dropped", scheduler.home / "corpora" / "dropped.toml"

    def read_source() -> str:
        params = scheduler.call("GET", f"/api/v2/dags/{dag}/details")["params"]
        return str(params["source"]["value"])

    for source in ("days", "notes"):
        file.write_text(f'source = "../{source}"\nschedule = "0 0 1 1 *"\n', "utf-8")
        scheduler.read_declarations()
        scheduler.wait("the DAG", lambda source=source: read_source().endswith(f"/{source}"))


@pytest.mark.slow
def test_nights_ask_in_batches_over_kills_and_wait_for_a_person(scheduler: Scheduler) -> None:
    dag = "build_pyramid_asked"
    with serve(answer) as server:
        settings = write_llm(
            scheduler.home, server.base_url, '[cascade]\nmode = "paper"\nentities = "llm"\n'
        )
        settings.rename(scheduler.home / "asked.toml")
        scheduler.call("PATCH", f"/api/v2/dags/{dag}", {"is_paused": False})
        scheduler.wait("the night", lambda: scheduler.list_runs(dag))
        run = scheduler.list_runs(dag)[0]["dag_run_id"]
        late = scheduler.home / "late"
        scheduler.wait("the alert", lambda: late.exists() and late.read_text() == dag)

        # Who looks after the batch is killed, as is the triggerer.
        killed = scheduler.wait("a look", lambda: find_running(scheduler, dag, run, "batches"))
        os.kill(killed, signal.SIGKILL)
        for process in find_triggerers(scheduler):
            os.kill(process, signal.SIGKILL)
        scheduler.wait("the batch", lambda: server.batches.batches)
        server.batches.finish_all()
        scheduler.wait("the question", lambda: read_state(scheduler, dag, run) == "awaiting_input")
        assert scheduler.list_tasks(dag, run)["batches"]["try_number"] == 2
        assert (server.calls("/batches"), server.calls("item"), server.calls()) == (1, 1, 1)
    heads = scheduler.read_heads()
    assert "asked" not in heads, "the ref waits"
    place = f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/approve/-1/hitlDetails"
    asked = scheduler.call("GET", place)
    assert asked["subject"] == f"Move asked to {heads['asked-candidate']}?"
    # Airflow takes a task that goes on before it noticed its pause for a killed one.
    paused = re.compile(r"Received executor event with state success .*task_id='approve'")
    log = scheduler.home / "standalone.log"
    scheduler.wait("its pause", lambda: paused.search(log.read_text("utf-8", "replace")))
    scheduler.call("PATCH", place, {"chosen_options": ["Approve"], "params_input": {}})
    assert scheduler.finish(dag, run)["state"] == "success"
    assert scheduler.read_heads()["asked"] == heads["asked-candidate"]
    (event,) = scheduler.list_events("kpyramid/asked")
    assert event["source_task_id"] == "promote"


def check_lineage(airflow: Scheduler, dag: str, moved: str, unchanged: str) -> None:
    """Each task that ran said so, `plan` what it read, and `publish` the ref that it moved."""
    corpus = f"file://{airflow.home}/days"
    ref = f"> file://{airflow.home}/warehouse/refs/days"
    for run, stages, places in ((moved, STAGES, [ref]), (unchanged, [], [])):
        expected = {
            *((name, kind) for name in (dag, *stages) for kind in ("START", "COMPLETE")),
            *(("plan", kind, corpus) for kind in ("START", "COMPLETE")),
            *{("publish", "START"), ("publish", "COMPLETE", *places)},
        }
        airflow.wait("the end", lambda run=run: (dag, "COMPLETE") in airflow.read_lineage(dag, run))
        assert airflow.read_lineage(dag, run) == expected


def read_state(airflow: Scheduler, dag: str, run: str) -> str:
    """The state of the task that waits for a person; a run that failed before ends the wait."""
    tasks = airflow.list_tasks(dag, run)
    failed = [name for name, task in tasks.items() if task["state"] == "failed"]
    assert not failed, airflow.read_log(dag, run, failed[0], tasks[failed[0]]["try_number"])[-20:]
    return str(tasks["approve"]["state"])


def find_triggerers(airflow: Scheduler) -> list[int]:
    """The processes of this Airflow's triggerer."""
    ours = f"AIRFLOW_HOME={airflow.home}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command, variables = ((folder / name).read_bytes() for name in ("cmdline", "environ"))
        except OSError:
            continue
        if b"triggerer" in command and ours in variables.split(b"\0"):
            found.append(int(folder.name))
    assert found
    return found


def answer(body: dict[str, Any]) -> str:
    """The entities of the two sentences."""
    return json.dumps({"entities": ["Dora", "Emil", "Bob", "Cleo"]})


def start_others(airflow: Scheduler, snapshot: str) -> tuple[str, ...]:
    """DAGs that keep, ask and teach a pyramid; switched on, each has its last run to do."""
    promote = ("promote", "notes", snapshot, "--warehouse", str(airflow.home / "warehouse"))
    run_python(airflow.environment, "-m", "kpyramid", *promote)
    dags = ("maintain_warehouse", "learn_pyramid_notes", "evaluate_pyramid_days")
    for dag in dags:
        airflow.call("PATCH", f"/api/v2/dags/{dag}", {"is_paused": False})
    return dags


def find_running(airflow: Scheduler, dag: str, run: str, task: str) -> int | None:
    """The process of a task that runs."""
    found = airflow.list_tasks(dag, run).get(task, {})
    return int(found["pid"]) if found.get("state") == "running" and found["pid"] else None


def read_time(run: Mapping[str, Any], which: str) -> datetime:
    return datetime.fromisoformat(run[f"{which}_date"])
