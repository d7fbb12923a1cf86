"""Airflow on this machine, with the corpora of `dags/corpora`. Run by `make airflow`."""

import argparse
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from kpyramid.pipeline.airflow.corpora import Corpus, list_corpora

CHECKOUT = Path(__file__).resolve().parent.parent.parent
PATIENCE = 180
PASSWORDS = "simple_auth_manager_passwords.json.generated"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, default=CHECKOUT / "warehouse/data/airflow")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--database", metavar="URL", help="of Airflow; a SQLite file if not given")
    asked = parser.parse_args()
    home, url = asked.home.absolute(), f"http://localhost:{asked.port}"
    said = {
        "AIRFLOW_HOME": str(home),
        "KPYRAMID_CORPORA": os.environ.get("KPYRAMID_CORPORA", str(CHECKOUT / "dags/corpora")),
        "KPYRAMID_WAREHOUSE": os.environ.get("KPYRAMID_WAREHOUSE", str(home.parent)),
    }
    # `airflow standalone` starts its parts as the command `airflow`.
    set_up = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "AIRFLOW__CORE__DAGS_FOLDER": str(CHECKOUT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        # Commands wait for the scheduler's writes; by default 5 seconds, then they fail. No longer
        # than this: with SQLite two requests may wait for each other, until one gives up.
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": asked.database
        or f"sqlite:///{home}/airflow.db?timeout=20",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(asked.port),
        "AIRFLOW__API__WORKERS": "1",
    }
    require_free(asked.port)
    home.mkdir(parents=True, exist_ok=True)
    log = home / "standalone.log"
    print(f"Starting Airflow, half a minute; its log is {log}", flush=True)
    with log.open("wb") as file:
        airflow = subprocess.Popen(
            [sys.executable, "-m", "airflow", "standalone"],
            env={**os.environ, **said, **set_up},
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        wait_for(airflow, url, log)
        name, password = next(iter(json.loads((home / PASSWORDS).read_text()).items()))
        corpora = [c for c in list_corpora(Path(said["KPYRAMID_CORPORA"])) if not c.problem]
        pools = make_pools(url, name, password, corpora)
        variables = " ".join(f"{key}={shlex.quote(value)}" for key, value in said.items())
        airflow_command = Path(sys.executable).with_name("airflow")
        names = [corpus.name for corpus in corpora]
        one = "demo" if "demo" in names else next(iter(names), "NAME")
        print(
            f"""
Airflow is at {url}
login         {name}, password {password}
DAGs          that are new are off; switch build_pyramid_{one} on: it builds that corpus at once
three days    {variables} {airflow_command} backfill create --dag-id build_pyramid_{one} \\
              --from-date 2026-11-01 --to-date 2026-11-03T23:59
pools         {", ".join(pools) or "none is named"}
a corpus      is one more file in {said["KPYRAMID_CORPORA"]}; dags/README.md has its fields
Ctrl-C        ends it; what was built stays in {said["KPYRAMID_WAREHOUSE"]}""",
            flush=True,
        )
        airflow.wait()
        sys.exit(f"Airflow ended by itself; see {log}")
    except KeyboardInterrupt:
        print("\nStopping.")
    finally:
        stop(airflow)


def require_free(port: int) -> None:
    """Ends here where a server has the port: its answers would be taken for the new one's."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            sys.exit(
                f"Port {port} is taken. Is Airflow running already? Ctrl-C ends it there; or take "
                "another port with --port"
            )


def wait_for(airflow: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Returns when the server answers."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and airflow.poll() is None:
        try:
            place = f"{url}/api/v2/monitor/health"
            with urllib.request.urlopen(place, timeout=5) as answer:  # noqa: S310 - ours
                if json.loads(answer.read())["scheduler"]["status"] == "healthy":
                    return
        except OSError:
            pass
        time.sleep(0.5)
    sys.exit(f"Airflow did not start; {log} says why. Is port {url.rpartition(':')[2]} taken?")


def make_pools(url: str, name: str, password: str, corpora: list[Corpus]) -> list[str]:
    """The pools that corpora name, made with one slot where they are not there."""
    pools = sorted({c.declared.pool for c in corpora if c.declared.pool})
    login = {"username": name, "password": password}
    token = post(f"{url}/auth/token", login)["access_token"] if pools else ""
    for pool in pools:
        try:
            post(f"{url}/api/v2/pools", {"name": pool, "slots": 1}, token)
        except urllib.error.HTTPError as e:
            if e.code != 409:  # it is there
                raise
    return pools


def post(place: str, body: dict[str, object], token: str = "") -> dict[str, str]:
    """What the server answers."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    request = urllib.request.Request(place, json.dumps(body).encode(), headers)  # noqa: S310
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - ours
        found: dict[str, str] = json.loads(answer.read())
    return found


def stop(airflow: subprocess.Popen[bytes]) -> None:
    """Ends Airflow's processes, all of one session."""
    for number, patience in ((signal.SIGTERM, 20), (signal.SIGKILL, 5)):
        end = time.monotonic() + patience
        try:
            os.killpg(airflow.pid, number)
            while time.monotonic() < end:
                airflow.poll()
                os.killpg(airflow.pid, 0)  # those that it started end after it
                time.sleep(0.1)
        except ProcessLookupError:
            return


if __name__ == "__main__":
    main()
