"""The generated pages are what the code says now, and staleness is told with its remedy."""

import json
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from kpyramid.settings import FIXED, Settings

CHECKOUT = Path(__file__).parent.parent


def run_generator(*arguments: str, docs: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(docs / "generate.py"), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def copy_docs(folder: Path) -> Path:
    for name in (
        "generate.py",
        "draw_priority.py",
        "tables.md",
        "cli.md",
        "settings.md",
        "priority.svg",
    ):
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


@pytest.mark.parametrize("name", ["settings.md", "priority.svg"])
def test_missing_page_is_written(name: str, tmp_path: Path) -> None:
    docs = copy_docs(tmp_path)
    (docs / name).unlink()
    assert run_generator("--check", docs=docs).returncode == 1
    assert run_generator(docs=docs).returncode == 0
    assert (docs / name).read_bytes() == (CHECKOUT / "docs" / name).read_bytes()


def test_settings_page_has_every_setting_with_its_default() -> None:
    page = (CHECKOUT / "docs" / "settings.md").read_text("utf-8")
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", page, re.M | re.S))
    for section, defaults in asdict(Settings()).items():
        for name, default in defaults.items():
            if f"{section}.{name}" in FIXED:
                continue
            (row,) = re.findall(rf"^\|[^|]*`{name}`.*$", sections[section], re.M)
            names, _, values, meaning = re.findall(r"(?<=\| )(.*?)(?= \|)", row)
            if default not in (None, {}):
                plain = list(default) if isinstance(default, tuple) else default
                assert json.dumps(plain) in values, (section, name)
            assert f"`{name}`" in names and len(meaning) > 10


def test_setting_without_a_meaning_in_its_docstring_is_refused(tmp_path: Path) -> None:
    docs = copy_docs(tmp_path)
    code = (docs / "generate.py").read_text("utf-8")
    forgetful = code.replace('cleandoc(section.__doc__ or "")', 'cleandoc("A section.")')
    assert forgetful != code
    (docs / "generate.py").write_text(forgetful, "utf-8")
    done = run_generator("--check", docs=docs)
    assert done.returncode == 1
    assert "IngestSettings: no meaning of `max_document_bytes`" in done.stderr
