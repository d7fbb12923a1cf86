"""The generated pages are what the code says now, and staleness is told with its remedy."""

import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent


def run_generator(*arguments: str, docs: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(docs / "generate.py"), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def copy_docs(folder: Path) -> Path:
    for name in ("generate.py", "draw_priority.py", "tables.md", "cli.md", "priority.svg"):
        (folder / name).write_bytes((CHECKOUT / "docs" / name).read_bytes())
    return folder


def test_generated_pages_are_fresh() -> None:
    done = run_generator("--check", docs=CHECKOUT / "docs")
    assert done.returncode == 0, done.stderr


def test_stale_page_is_named_with_the_command_that_mends_it(tmp_path: Path) -> None:
    docs = copy_docs(tmp_path)
    (docs / "tables.md").write_text("old", "utf-8")
    done = run_generator("--check", docs=docs)
    assert done.returncode == 1
    assert "tables.md" in done.stderr
    assert "make docs" in done.stderr
    assert (docs / "tables.md").read_text("utf-8") == "old"
    assert run_generator(docs=docs).returncode == 0
    assert run_generator("--check", docs=docs).returncode == 0


@pytest.mark.parametrize("name", ["cli.md", "priority.svg"])
def test_missing_page_is_written(name: str, tmp_path: Path) -> None:
    docs = copy_docs(tmp_path)
    (docs / name).unlink()
    assert run_generator("--check", docs=docs).returncode == 1
    assert run_generator(docs=docs).returncode == 0
    assert (docs / name).read_bytes() == (CHECKOUT / "docs" / name).read_bytes()
