"""The wheel alone, in an environment of its own and away from the checkout, does the whole job."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.pages import DEMO as DEMO_BLOCK
from tests.pages import list_calls, read_blocks
from tests.tiny_pyramid import open_tiny

CHECKOUT = Path(__file__).parent.parent
DEMO = CHECKOUT / "examples" / "demo"

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A finished command that knew nothing of the checkout or the developer's shell."""
    hidden = ("KPYRAMID_", "PYTHON", "VIRTUAL_ENV", "COV_")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


def require(*command: str | Path, cwd: Path) -> None:
    done = run(*command, cwd=cwd)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "-qq")
    # The build backend is among the development tools: building needs no download.
    require(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, CHECKOUT, cwd=folder)
    (path,) = folder.glob("*.whl")
    return path


def install(wheel: str | Path, folder: Path, interpreter: str = sys.executable) -> Path:
    """The `kpyramid` command of a clean environment with the wheel."""
    require(interpreter, "-m", "venv", "--without-pip", folder / "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    require(CHECKOUT / ".ci" / "install", Path(sys.executable).parent, wheel, python, cwd=folder)
    return python.parent / "kpyramid"


@pytest.fixture(scope="module")
def command(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of an environment that builds."""
    return install(f"{wheel}[build]", tmp_path_factory.mktemp("clean"))


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of an environment with the wheel and no extra."""
    return install(wheel, tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def home(command: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a pyramid of the demo corpus at the default place, `warehouse/data`.

    What `make demo` computed in the checkout, as in CI, is found by its keys and not made again.
    """
    folder = tmp_path_factory.mktemp("home")
    place = Path("warehouse", "data", "cache")
    if (CHECKOUT / place).is_dir():
        shutil.copytree(CHECKOUT / place, folder / place)
    built = read_json(run(command, "build", DEMO / "corpus", "--json", cwd=folder), 0)
    assert built["rows"]["documents"] > 0
    assert built["rows"]["condensed"] > 0
    assert not [said for said in built["gates"].values() if said.startswith("fail")]
    return folder


def read_json(done: subprocess.CompletedProcess[str], code: int) -> dict[str, Any]:
    """The one JSON object on stdout of a command that ended with this code."""
    assert done.returncode == code, done.stderr[-4000:]
    assert "Traceback" not in done.stderr
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def test_wheel_carries_declarations_model_files_and_the_licence(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for kind, place, ending in (
        ("schemas", "schemas", "toml"),
        ("ontology", "ontology", "ttl"),
        ("views", "warehouse/views", "sql"),
    ):
        declared = {path.name for path in (CHECKOUT / place).glob(f"*.{ending}")}
        assert declared
        assert {f"kpyramid/_declared/{kind}/{name}" for name in declared} <= names
    package = {
        path.relative_to(CHECKOUT / "etl").as_posix()
        for path in (CHECKOUT / "etl" / "kpyramid").rglob("*")
        if path.is_file()
        and path.suffix != ".pyc"
        # of the lexicon the wheel has the table that is compiled from its declarations
        and (path.parent.name, path.suffix) != ("lexicon", ".toml")
    }
    assert {"kpyramid/py.typed", "kpyramid/embeddings/minilm/tokenizer.json"} <= package
    assert "kpyramid/graph/synonyms/lexicon/lexicon.tsv" in package
    assert package <= names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_wheel_carries_nothing_else_and_stays_small(wheel: Path) -> None:
    roots = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {root for root in roots if not root.endswith(".dist-info")} == {"kpyramid"}
    assert wheel.stat().st_size < 5_000_000


def test_a_corpus_is_built_and_costs_nothing_once_it_is_unchanged(
    command: Path, tmp_path: Path
) -> None:
    (tmp_path / "ada.txt").write_text("Ada Lovelace was born in London. She wrote programs.")
    first, again = (
        read_json(run(command, "build", "ada.txt", "--json", cwd=tmp_path), 0) for _ in range(2)
    )
    assert first["rows"]["condensed"] == 2 and first["recomputed"]["extract"] > 0
    assert sum(again["recomputed"].values()) == 0


def test_question_is_answered_with_evidence(command: Path, home: Path) -> None:
    question = "What is the elevation of Greencreek?"
    answer = read_json(run(command, "ask", question, "--json", cwd=home), 0)
    assert answer["text"] == "3189 feet"
    assert answer["evidence"]
    assert {"document_id", "chunk_id", "start", "end", "text"} <= answer["evidence"][0].keys()


def test_readme_shows_what_the_demo_answers(command: Path, home: Path) -> None:
    blocks = [block for block in read_blocks(CHECKOUT / "README.md") if block.mark == DEMO_BLOCK]
    transcripts = [one for block in blocks for one in block.list_transcripts()]
    assert len(transcripts) == 2
    for typed, shown in transcripts:
        (arguments,) = list_calls(typed, "kpyramid")
        done = run(command, *arguments, cwd=home)
        assert done.returncode == 0, done.stderr
        assert set(shown) <= set(done.stdout.splitlines()), done.stdout


def test_missing_corpus_and_unknown_ref_are_input_errors(command: Path, home: Path) -> None:
    for arguments in (("build", "nowhere"), ("ask", "Who?", "--ref", "nobody")):
        done = run(command, *arguments, cwd=home)
        assert done.returncode == 3, done.stderr
        assert "Traceback" not in done.stderr
        assert arguments[-1] in done.stderr


def test_readme_of_the_warehouse_opens_the_snapshot_in_duckdb(command: Path, home: Path) -> None:
    readme = (CHECKOUT / "warehouse" / "README.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    done = run(command.parent / "python", "-c", code, cwd=home)
    assert done.returncode == 0, done.stderr
    assert "confidence" in done.stdout


ONLY_BUILDING = """airflow anyascii duckdb faiss kmedoids openai owlready2 py3langid pyshacl
    rouge_score sacrebleu scipy sklearn spacy torch""".split()
MOST_BYTES = 450_000_000
READS = """
import sys
from kpyramid import answer, open_snapshot, retrieve
snapshot = open_snapshot(sys.argv[1])
question = "Where was Ada Lovelace born?"
assert "London" in retrieve(question, snapshot).to_prompt()
assert answer(question, snapshot).text == "London"
assert answer(question, snapshot, "naive").context
assert snapshot.sparql("SELECT ?s WHERE { ?s a ?class }")
"""


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A small snapshot's folder, copied to where no warehouse is, under another name."""
    place = tmp_path / "received"
    shutil.copytree(open_tiny().folder, place)
    return place


def test_base_install_reads_a_copied_snapshot(base: Path, copied: Path, tmp_path: Path) -> None:
    require(base.parent / "python", "-c", READS, copied, cwd=tmp_path)
    question = ("ask", "Where was Ada Lovelace born?", "--ref", copied, "--json")
    assert read_json(run(base, *question, cwd=tmp_path), 0)["text"] == "London"


def test_newest_python_reads_copied_snapshot(wheel: Path, copied: Path, tmp_path: Path) -> None:
    found = find_python("3.13")
    if found is None:
        pytest.skip("no Python 3.13 on PATH or among pyenv's")
    command = install(wheel, tmp_path, found)
    require(command.parent / "python", "-W", "error", "-c", READS, copied, cwd=tmp_path)


def find_python(version: str) -> str | None:
    """An interpreter of a version that starts: a shim of pyenv may not."""
    kept = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    for path in (shutil.which(f"python{version}"), *map(str, kept)):
        if path and run(path, "-c", "import venv", cwd=Path.cwd()).returncode == 0:
            return path
    return None


def test_base_install_names_missing_extra(base: Path, copied: Path, tmp_path: Path) -> None:
    (tmp_path / "ada.txt").write_text("Ada Lovelace was born in London.")
    (tmp_path / "model.toml").write_text('[llm]\nprovider = "openai"\nmodel = "m"\n')
    asks = ("ask", "Who?", "--ref", copied, "--reader", "llm", "--settings", "model.toml")
    for command, extra in ((("build", "ada.txt"), "build"), (asks, "llm")):
        with_key = ("env", "OPENAI_API_KEY=none", base, *command)
        done = run(*with_key, cwd=tmp_path)
        assert done.returncode == 2, done.stderr
        assert f"'kpyramid[{extra}]'" in done.stderr
        assert "Traceback" not in done.stderr


def test_base_install_is_small_and_has_nothing_that_only_building_needs(base: Path) -> None:
    (packages,) = (base.parent.parent / "lib").glob("python3*/site-packages")
    names = {path.name for path in packages.iterdir()}
    assert not names & set(ONLY_BUILDING)
    brought = ("pip", "setuptools", "pkg_resources", "_distutils_hack")  # with any environment
    sizes = [
        path.stat().st_size
        for path in packages.rglob("*")
        if path.is_file()
        and path.suffix != ".pyc"  # uv compiles what is imported, pip all
        and not path.relative_to(packages).parts[0].startswith(brought)
    ]
    assert sum(sizes) <= MOST_BYTES
