"""Every command and snippet of the README and the manual runs, on one small pyramid."""

import contextlib
import importlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

from kpyramid.cli.app import app
from kpyramid.completion.corrections import load_corrections
from kpyramid.ontology.schema import parse_schema
from kpyramid.pipeline.checks import load_checks
from kpyramid.settings import check_settings
from tests.commands import run
from tests.pages import CHECKOUT, DEMO, PAGES, Block, list_calls, read_blocks
from tests.planted import general_schema
from tests.rows import read_bodies
from tests.tiny_pyramid import TEXTS, open_tiny

BLOCKS = {page.relative_to(CHECKOUT).as_posix(): read_blocks(page) for page in PAGES}
ALL = [block for blocks in BLOCKS.values() for block in blocks]
EXECUTED = ("sh", "console", "python", "toml", "sparql")
SHOWN = ("text", "turtle", "json", "sql")
"""Languages of blocks that show something and are not executed."""
REASONS = (*read_bodies("snippets.reasons"),)
"""Why a block is not executed: needs what a test has not, or changes the environment."""
PRINTED = re.compile(r"# -> (.*)$", re.M)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a reader has it: `my-folder` with texts, `warehouse/data` with their pyramid."""
    snapshot = open_tiny()
    folder = tmp_path_factory.mktemp("workspace")
    shutil.copytree(snapshot.folder.parent.parent, folder / "warehouse" / "data")
    (folder / "my-folder").mkdir()
    for name, text in TEXTS.items():
        (folder / "my-folder" / name).write_text(text)
    shutil.copytree(CHECKOUT / "tests" / "workspace", folder, dirs_exist_ok=True)
    shutil.copytree(CHECKOUT / "examples" / "handbook", folder / "examples" / "handbook")
    return folder


def name_block(block: Block) -> str:
    return f"{block.page}:{block.line}"


def resolves(dotted: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            fields = getattr(found, "__dataclass_fields__", {})
            if not hasattr(found, name) and name not in fields:
                return False
            found = getattr(found, name, None)
        return True
    return False


def is_run(block: Block) -> bool:
    """Whether a block is executed; one that needs a name of the code, as soon as it is there."""
    return not block.mark or bool(block.needs and resolves(block.needs))


def pages_with(*languages: str) -> list[str]:
    return [
        page
        for page, blocks in BLOCKS.items()
        if any(b.language in languages and is_run(b) for b in blocks)
    ]


def test_what_is_not_run_says_why_and_is_little() -> None:
    left = [(name_block(b), b.why_not_run) for b in ALL if b.why_not_run]
    assert {reason for _, reason in left} <= set(REASONS), left
    assert len(left) <= 14, left
    assert all(b.why_not_run or b.needs or b.mark in ("", DEMO) for b in ALL)


def test_every_block_says_its_language_and_no_command_is_outside_a_block() -> None:
    assert {b.language for b in ALL} <= {*EXECUTED, *SHOWN}
    loose = re.compile(r"^    +(kpyramid|make|pip|python|export|source|\$) .*$", re.M)
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
        assert not loose.findall(text), page


read_commands = cache(typer.main.get_command)


def understand(arguments: list[str]) -> None:
    """Has the command line read arguments without running the command."""
    command: Any = read_commands(app)
    context: Any = None
    while True:
        context = command.make_context("kpyramid", list(arguments), parent=context)
        if not hasattr(command, "resolve_command"):
            return
        rest = [*context._protected_args, *context.args]
        _, command, arguments = command.resolve_command(context, rest)


def test_commands_of_all_pages_are_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, seen = [], 0
    for block in ALL:
        if block.language not in ("sh", "console"):
            continue
        for command in block.list_commands():
            for call in list_calls(command, "kpyramid"):
                seen += 1
                try:
                    understand(call)
                except Exception as e:  # noqa: BLE001 - typer's click exports no class of its own
                    if "does not exist" not in str(e):
                        wrong.append((name_block(block), command, repr(e), str(e)))
    assert not wrong
    assert seen > 20


def test_a_wrong_option_would_be_noticed() -> None:
    with pytest.raises(Exception, match=r"."):
        understand(["ask", "Who?", "--no-such-option"])
    with pytest.raises(Exception, match=r"."):
        understand(["ontology", "shew", "Ada"])


def test_make_targets_of_all_pages_exist() -> None:
    makefile = (CHECKOUT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    pages = (*PAGES, CHECKOUT / "CONTRIBUTING.md")
    named = {t for page in pages for t in re.findall(r"\bmake ([a-z-]+)\b(?=[`\n ]*[`\n#])",
                                                     page.read_text("utf-8"))}  # fmt: skip
    assert {"demo", "test"} <= named <= targets


def test_settings_of_all_pages_are_valid(tmp_path: Path) -> None:
    blocks = [b for b in ALL if b.language == "toml"]
    assert blocks
    place, own = tmp_path / "shown.toml", CHECKOUT / "examples" / "handbook" / "company.ttl"
    schemas = {"docs/tutorial.md": parse_schema(own.read_text("utf-8"), source=str(own))}
    for block in blocks:
        schema = schemas.get(block.page, general_schema())
        place.write_text(block.text)
        shown = tomllib.loads(block.text)
        if "correction" in shown:
            assert load_corrections(str(place), schema).entries
        elif "expect" in shown:
            assert load_checks(str(place), schema)
        else:
            check_settings(shown, {"file": name_block(block)})


def test_python_of_all_pages_compiles() -> None:
    for block in ALL:
        if block.language == "python":
            compile(block.text, name_block(block), "exec")


@pytest.mark.parametrize("page", pages_with("python", "sparql"))
def test_python_of_a_page_prints_its_output(
    page: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    names: dict[str, Any] = {}
    for block in BLOCKS[page]:
        if is_run(block):
            run_in_process(block, names)


def run_in_process(block: Block, names: dict[str, Any]) -> None:
    """Runs a Python block with the names of those before it, a SPARQL block on the snapshot."""
    if block.language == "sparql":
        import kpyramid

        assert kpyramid.open_snapshot("main").sparql(block.text), name_block(block)
    elif block.language == "python":
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            exec(compile(block.text, name_block(block), "exec"), names)
        lines = [line.rstrip() for line in told.getvalue().splitlines()]
        for expected in PRINTED.findall(block.text):
            assert expected.strip() in lines, (name_block(block), expected, lines)


@pytest.mark.slow
@pytest.mark.parametrize("page", pages_with("sh", "console"))
def test_commands_of_a_page_run_in_order(
    page: str, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "workspace"
    shutil.copytree(workspace, place)
    monkeypatch.chdir(place)
    names: dict[str, Any] = {}
    for block in BLOCKS[page]:
        if not is_run(block):
            continue
        if block.language == "sh":
            for command in block.list_commands():
                run_command(command, tmp_path, name_block(block))
        elif block.language == "console":
            for command, shown in block.list_transcripts():
                said = run_command(command, tmp_path, name_block(block))
                lines = {line.rstrip() for line in said.splitlines()}
                assert {line.rstrip() for line in shown} <= lines, (name_block(block), said)
        else:
            run_in_process(block, names)


def run_command(command: str, folder: Path, where: str) -> str:
    """What a command line prints; what needs no shell runs in this process, with its models."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    program, *words = lexer
    special = (set(word) <= set("|&;<>") or set(word) & set("*$~") for word in words)
    if program != "kpyramid" or any(special):
        return run_shell(command, folder, where)
    done = run(*words, env={"COLUMNS": "200"})
    assert done.exit_code == 0, f"{where}:\n{command}\n{done.output[-3000:]}"
    return done.stdout


def run_shell(script: str, folder: Path, where: str) -> str:
    """What a script prints, run by bash in the working folder, with `kpyramid` on the path."""
    shim = folder / "bin" / "kpyramid"
    if not shim.exists():
        shim.parent.mkdir()
        shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m kpyramid "$@"\n')
        shim.chmod(0o755)
    paths = [str(CHECKOUT / "etl"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env={
            **os.environ,
            "PATH": f"{shim.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
            "COLUMNS": "200",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, f"{where}:\n{script}\n{done.stdout[-1500:]}{done.stderr[-1500:]}"
    return done.stdout


LINK = re.compile(r"\]\(([^)#\s]+)?(?:#([\w-]+))?\)")
DOTTED = re.compile(r"`(kpyramid(?:\.\w+)+)`")


def list_prose() -> list[Path]:
    """All Markdown files that are in the project."""
    folders = ("docs", "warehouse", "schemas", "docker", "examples", "etl", "dags", "ontology",
               "benchmarks", "tests")  # fmt: skip
    nested = (path for folder in folders for path in sorted((CHECKOUT / folder).rglob("*.md")))
    return [*sorted(CHECKOUT.glob("*.md")), *nested]


def name_anchors(page: Path) -> set[str]:
    """The anchors that the headings of a page get."""
    heads = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


PATH = re.compile(
    r"`((?:etl|docs|tests|schemas|examples|benchmarks|dags|warehouse/views)/[a-z0-9_./-]+)`"
)


def list_wrong(pattern: re.Pattern[str], exists: Callable[[str], bool], least: int) -> list[str]:
    """What pages name and there is not, of more names than `least`."""
    texts = {page: page.read_text("utf-8") for page in list_prose()}
    seen = [(page, name) for page, text in texts.items() for name in pattern.findall(text)]
    assert len(seen) > least
    return [f"{page.name}: {name}" for page, name in sorted({*seen}) if not exists(name)]


def test_links_between_pages_and_paths_that_pages_give_lead_somewhere() -> None:
    assert not list_wrong(PATH, lambda path: (CHECKOUT / path).exists(), 10)
    broken = []
    for page in list_prose():
        for target, anchor in LINK.findall(page.read_text("utf-8")):
            if target.startswith(("http:", "https:", "mailto:")):
                continue
            path = (page.parent / target) if target else page
            if not path.exists() or (anchor and anchor not in name_anchors(path)):
                broken.append(f"{page.relative_to(CHECKOUT)}: {target}#{anchor}")
    assert not broken


@pytest.mark.needs("airflow")
def test_names_in_the_code_that_pages_give_exist() -> None:
    assert not list_wrong(DOTTED, cache(resolves), 30)


def test_a_name_that_is_not_there_does_not_resolve() -> None:
    assert resolves("kpyramid.settings.Settings")
    assert not resolves("kpyramid.settings.Setings")
    assert not resolves("kpyramid.no_such_module.name")


def test_readme_is_one_reading() -> None:
    assert len((CHECKOUT / "README.md").read_bytes()) <= 10_000


def test_decisions_are_short_and_all_in_the_index() -> None:
    index = (CHECKOUT / "DECISIONS.md").read_text("utf-8")
    files = sorted((CHECKOUT / "docs" / "decisions").glob("*.md"))
    assert 0 < len(files) <= 45
    for number, file in enumerate(files, 1):
        lines = file.read_text("utf-8").splitlines()
        assert file.name.startswith(f"{number:04}-"), file.name
        assert len(lines) <= 15 and max(map(len, lines)) <= 140, file.name
        assert re.fullmatch(r"Date: 20\d\d-\d\d-\d\d", lines[2]), file.name
        assert f"docs/decisions/{file.name}" in index, file.name
