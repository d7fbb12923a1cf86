"""A night on two Celery workers that share Redis, PostgreSQL and a bucket, and no folder.

Both are processes of this machine with folders of their own, so that what passes between tasks
passes through the bucket. One is killed in the middle of its shard, and the bucket goes away with
it for a while: the snapshot is the one that the command line makes of the same texts.
"""

import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from tests.s3 import BUCKET, S3Server, serve_s3
from tests.servers import check_installed, find_ports, find_server, run_server, serve_postgres
from tests.test_dag import CHECKOUT, DAGS, NIGHTLY, TEXTS, TODAY, Scheduler, add_entry

NEEDED = ("airflow", "celery", "psycopg2", "asyncpg")
WAREHOUSE = f"s3://{BUCKET}/warehouse"
DAG = "build_pyramid_letters"
HEARTBEAT_SECONDS = 15
"""After which a silent task counts as lost; 300 where nobody says otherwise."""


def log_in(airflow: Scheduler) -> bool:
    """Where everybody may do all."""
    airflow.token = airflow.call("GET", "/auth/token")["access_token"]
    return True


class Machine:
    """A Celery worker with a home, a working area and logs of its own."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self.folder = folder
        self.variables = variables
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def start(self) -> None:
        name = self.folder.name
        command = ["celery", "worker", "-H", name, "--concurrency", "1", "--skip-serve-logs"]
        self.process = start_airflow(self.folder, self.variables, *command)
        self.starts += 1

    def kill(self) -> None:
        """All of its processes at once, as when the power goes."""
        import psutil

        if self.process is not None and self.process.poll() is None:
            family = psutil.Process(self.process.pid).children(recursive=True)
            for process in [psutil.Process(self.process.pid), *family]:
                process.kill()
            self.process.wait()

    def is_ready(self) -> bool:
        said = (self.folder / "output.log").read_text("utf-8", "replace")
        return said.count(" ready.") == self.starts

    def list_shards(self, task: str) -> set[int]:
        """The shards of a task that it had, by its logs."""
        logs = (self.folder / "logs").glob(f"dag_id={DAG}/*/task_id={task}/map_index=*/*.log")
        return {int(path.parent.name.partition("=")[2]) for path in logs}


def start_airflow(
    folder: Path, variables: Mapping[str, str], *command: str
) -> "subprocess.Popen[bytes]":
    """A program of Airflow, with a home of its own."""
    folder.mkdir(exist_ok=True)
    own = {"HOME": folder, "AIRFLOW_HOME": folder, "XDG_CACHE_HOME": folder / "cache"}
    own["AIRFLOW__LOGGING__BASE_LOG_FOLDER"] = folder / "logs"
    with (folder / "output.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "airflow", *command],
            env={**variables, **{name: str(path) for name, path in own.items()}},
            stdout=log,
            stderr=log,
            cwd=folder,
        )


def list_variables(
    database: str, redis: str, server: S3Server, corpora: Path = Path()
) -> dict[str, str]:
    """What all machines have to say alike; `docker/compose.celery.yaml` has the same."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AIRFLOW", "KPYRAMID_", "AWS_"))
    }
    (port,) = find_ports(1)
    return {
        **kept,
        **server.environment,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), kept["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(CHECKOUT / "etl"), str(corpora.parent / "entries")]),
        "KPYRAMID_CORPORA": str(corpora),
        "KPYRAMID_WAREHOUSE": WAREHOUSE,
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "5",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
        "AIRFLOW__API__SECRET_KEY": secrets.token_hex(32),
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2://{database}",
        "AIRFLOW__CELERY__BROKER_URL": redis,
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.1",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": str(HEARTBEAT_SECONDS),
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "2",
    }


class Airflow(Scheduler):
    """Airflow's server and scheduler, and two machines that work for them."""

    def __init__(self, home: Path, variables: Mapping[str, str]) -> None:
        super().__init__(home, variables)
        self.machines = [Machine(home / name, variables) for name in ("one", "two")]
        control = home / "control"
        self.log = control / "output.log"
        (home / "standalone.log").symlink_to(self.log)
        assert start_airflow(control, variables, "db", "migrate").wait(120) == 0, self.read_log()
        self.programs = [
            start_airflow(control, variables, *command)
            for command in (["api-server"], ["scheduler"], ["dags", "reserialize"])
        ]
        for machine in self.machines:
            machine.start()

    def read_log(self) -> str:
        """What its programs said last, without the requests."""
        lines = self.log.read_text("utf-8", "replace").splitlines()
        return "\n".join([line for line in lines if "request finished" not in line][-60:])

    def close(self) -> None:
        for process in self.programs:
            process.kill()
            process.wait()
        for machine in self.machines:
            machine.kill()


OF_ONE_MACHINE = re.compile(
    "PATH|PYTHONPATH|AIRFLOW__(CORE__(DAGS_FOLDER|LOAD_EXAMPLES|DEFAULT_TASK_RETRY_DELAY|SIMPLE_AUTH"
    "_MANAGER_ALL_ADMINS)|API__(HOST|PORT|WORKERS)|SCHEDULER__.*)"
)
"""What several workers on one machine need, what makes a test short, or what the image has."""


def test_images_are_given_the_variables_that_this_test_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name != "PATH"]:
        monkeypatch.delenv(name)
    given = list_variables("airflow@database/airflow", "redis://:p@q:1/0", S3Server("http://s3"))
    ours = {name for name in given if not OF_ONE_MACHINE.fullmatch(name)}
    docker = CHECKOUT / "docker"
    base, celery = (
        yaml.safe_load((docker / name).read_text("utf-8"))
        for name in ("compose.yaml", "compose.celery.yaml")
    )
    compose = {**base["x-airflow"]["environment"], **celery["x-celery"]}
    assert ours <= compose.keys()
    for name in ("EXECUTOR", "BROKER_URL", "SQL_ALCHEMY_CONN", "WAREHOUSE"):
        (key,) = [key for key in ours if key.endswith(f"_{name}")]
        assert compose[key].split("://")[0] == given[key].split("://")[0], name
    values = yaml.safe_load((docker / "values.yaml").read_text("utf-8"))
    chart = {one["name"] for one in values["env"]} | {one["envName"] for one in values["secret"]}
    assert {name for name in ours if not name.startswith("AIRFLOW")} <= chart


# A process of Celery's pool, which is no process of `multiprocessing`.
BELOW = """
import os, sys, billiard
from collections.abc import Iterator, Sequence
from kpyramid.pipeline.workers import share_out
from tests.test_celery import load_naming

def run():
    found = {*share_out(["text"] * 48, 2, load_naming, ())}
    sys.exit(not found or str(os.getpid()).encode() in found)

process = billiard.Process(target=run)
process.daemon = True
process.start()
process.join()
sys.exit(process.exitcode)
"""


def load_naming() -> Callable[[Sequence[str]], Iterator[bytes]]:
    """Names the process that works."""
    return lambda texts: (str(os.getpid()).encode() for _ in texts)


@pytest.mark.slow
def test_a_task_of_celery_can_start_processes() -> None:
    check_installed(*NEEDED)
    command = [sys.executable, "-c", BELOW]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with the declaration of a corpus in a bucket, and its texts."""
    check_installed(*NEEDED)
    add_entry(tmp_path)
    (tmp_path / "corpora").mkdir()
    declared = f'{NIGHTLY}source = "s3://{BUCKET}/letters/{{{{ date }}}}"\nshards = 2\n'
    (tmp_path / "corpora" / "letters.toml").write_text(declared, "utf-8")
    (tmp_path / "texts").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "texts" / name).write_text(text, "utf-8")
    return tmp_path


@pytest.fixture
def server(home: Path) -> Iterator[S3Server]:
    with serve_s3(home / "s3") as server:
        yield server


@pytest.fixture
def built(home: Path) -> Iterator["subprocess.Popen[str]"]:
    """A build of the same texts by the command line, without any of the servers."""
    command = [sys.executable, "-m", "kpyramid", "build", str(home / "texts"), "--json"]
    process = subprocess.Popen(
        [*command, "--warehouse", str(home / "warehouse")],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT / "etl")},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def airflow(home: Path, server: S3Server) -> Iterator[Airflow]:
    port, queue = find_ports(2)
    password = secrets.token_hex(8)
    command = [find_server("redis-server"), "--port", str(queue), "--bind", "127.0.0.1"]
    command += ["--requirepass", password, "--save", "", "--dir", str(home)]
    with serve_postgres(port) as database, run_server(command, queue, home / "redis.log"):
        redis = f"redis://:{password}@127.0.0.1:{queue}/0"
        airflow = Airflow(home, list_variables(database, redis, server, home / "corpora"))
        try:
            airflow.wait("a login", lambda: log_in(airflow))
            airflow.wait("the DAG", lambda: airflow.call("GET", f"/api/v2/dags/{DAG}"))
            for machine in airflow.machines:
                airflow.wait("a worker", machine.is_ready)
            yield airflow
        finally:
            airflow.close()


@pytest.mark.slow
def test_a_night_survives_a_lost_machine_and_a_bucket_that_is_away(
    built: "subprocess.Popen[str]", airflow: Airflow, server: S3Server, home: Path
) -> None:
    put_corpus(server, home / "texts", f"letters/{TODAY}")
    airflow.call("PATCH", f"/api/v2/dags/{DAG}", {"is_paused": False})
    run = airflow.wait("the night", lambda: airflow.list_runs(DAG))[0]["dag_run_id"]

    # Both machines have a shard, of which none ends before the other begins; one of them is lost
    # with it, and another comes in its place.
    lost, other = airflow.machines
    airflow.wait("a shard", lambda: list_running(airflow, run, "read"))
    server.hold()
    airflow.wait("two shards", lambda: len(list_running(airflow, run, "read")) == 2)
    airflow.wait("a shard each", lambda: lost.list_shards("read") and other.list_shards("read"))
    (shard,) = lost.list_shards("read")
    assert other.list_shards("read") == {1 - shard}
    lost.kill()

    # The bucket is away too, until the other's shard has failed.
    server.stop()
    lost.start()
    airflow.wait("its failure", lambda: has_failed(airflow, run, f"read[{1 - shard}]"))
    server.start()
    airflow.wait("a machine in its place", lost.is_ready)

    done = airflow.finish(DAG, run)
    tasks = airflow.list_tasks(DAG, run)
    assert done["state"] == "success", {name: task["state"] for name, task in tasks.items()}
    tries = {name: task["try_number"] for name, task in tasks.items()}
    assert tries[f"read[{shard}]"] > 1, "the lost shard, once more"
    assert tries[f"read[{1 - shard}]"] > 1, "while the bucket was away"
    counts = airflow.read_result(DAG, run, "resolve")["extract"]
    assert counts["recomputed"] == 0, "the shards had read all of it, and kept it"
    assert lost.list_shards("embed") | other.list_shards("embed") == {0, 1}
    said = json.loads(built.communicate(timeout=120)[0])
    found = airflow.read_result(DAG, run, "publish")
    assert found["snapshot"] == said["snapshot"], "the same as by the command line"
    place = f"/api/v2/dags/{DAG}/dagRuns/{run}/taskInstances/publish/links"
    report = airflow.read_page(airflow.call("GET", place)["extra_links"]["Report"])
    assert said["snapshot"] in str(report), "the server reads it from the bucket"


def put_corpus(server: S3Server, folder: Path, prefix: str) -> None:
    from obstore.store import S3Store

    keys = {name.lower(): value for name, value in server.environment.items()}
    store = S3Store(BUCKET, prefix=prefix, config=keys, client_options={"allow_http": True})
    for path in folder.iterdir():
        store.put(path.name, path.read_bytes())


def has_failed(airflow: Airflow, run: str, task: str) -> bool:
    """Whether a first try has ended, and the next is waited for or at work."""
    found = airflow.list_tasks(DAG, run)[task]
    return found["state"] == "up_for_retry" or found["try_number"] > 1


def list_running(airflow: Airflow, run: str, task: str) -> list[str]:
    return [
        name
        for name, found in airflow.list_tasks(DAG, run).items()
        if name.partition("[")[0] == task and found["state"] == "running"
    ]
