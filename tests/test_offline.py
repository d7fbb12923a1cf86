"""Nothing phones home: no address outside this machine, no file outside warehouse and /tmp."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpora import write_corpus
from tests.files import make_docx, make_pdf
from tests.processes import run_python
from tests.servers import find_server

OUTSIDE = re.compile(r"sa_family=AF_INET6?,.*")
CALLS = "trace=connect,sendto,sendmsg,sendmmsg"
LOOPBACK = re.compile(r'inet_addr\("127\.|"::1"|sin6?_port=htons\(0\)')
TEXT = ("Ida Berg was born in Lund in 1902. She moved to Oslo when she was",)


def list_network() -> list[str]:
    """The words before a command that take the network from it, where the system permits that."""
    words = ["unshare", "--net", "--map-root-user"]
    try:
        done = subprocess.run([*words, "true"], capture_output=True, check=False)
    except OSError:
        return []
    return words if done.returncode == 0 else []


def watch(folder: Path, *command: str | Path) -> tuple[list[str], list[str]]:
    """Addresses outside this machine that a command and its children connect to, and its files.

    The files are those that are left in the home folder, which is empty before.
    """
    strace, home, trace = find_server("strace"), folder / "home", folder / "trace"
    home.mkdir(exist_ok=True)
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("XDG_", "KPYRAMID_", "ORT_", "HF_", "RAY_", "DO_NOT_TRACK"))
    }
    done = subprocess.run(
        [
            *(*list_network(), strace, "-f", "--seccomp-bpf", "-qq", "-e", CALLS),
            *("-o", str(trace), *map(str, command)),
        ],
        env={**environment, "HOME": str(home)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = trace.read_text("utf-8", "replace").splitlines()
    calls = [match[0] for line in lines if (match := OUTSIDE.search(line))]
    files = [str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()]
    return [call for call in calls if not LOOPBACK.search(call)], files


@pytest.mark.slow
def test_what_looks_up_a_host_and_writes_at_home_is_seen(tmp_path: Path) -> None:
    code = (
        "import pathlib, socket; (pathlib.Path.home() / 'id').touch()\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setblocking(False)\n"
        "try: s.connect(('192.0.2.1', 53))\n"
        "except OSError: pass"
    )
    calls, files = watch(tmp_path, sys.executable, "-c", code)
    assert len(calls) == 1 and files == ["id"]


@pytest.mark.slow
@pytest.mark.needs("files")
def test_a_build_and_a_question_ask_no_host_and_write_nothing_at_home(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    (corpus / "a.pdf").write_bytes(make_pdf(TEXT, title="On Ida"))
    (corpus / "b.docx").write_bytes(make_docx("Ida Berg was born in Lund."))
    run = (sys.executable, "-m", "kpyramid")
    place = ("--warehouse", tmp_path / "warehouse")

    assert watch(tmp_path, *run, "build", corpus, "-q", *place) == ([], [])
    assert watch(tmp_path, *run, "ask", "Where was Ida Berg born?", *place) == ([], [])
    assert watch(tmp_path, *run, "export", "main", "out", "--to", "lance", *place) == ([], [])


def test_telemetry_is_off_before_any_module_of_the_package_loads_its_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = (
        "import os, sys, kpyramid\n"
        "assert 'onnxruntime' not in sys.modules\n"
        "print(os.environ['ORT_DISABLE_TELEMETRY'])"
    )
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    assert run_python(code).strip() == "1"
