"""The manual is a site, has every setting, and names tests that exist."""

import json
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from kpyramid.settings import FIXED, Settings

CHECKOUT = Path(__file__).parent.parent


@pytest.mark.slow
def test_the_manual_is_a_static_site_without_a_network(tmp_path: Path) -> None:
    """No page asks another host for what it shows, and a warning is a failure."""
    command = ["-q", "-W", "-b", "html", "-c", str(CHECKOUT / "docs"), str(CHECKOUT), str(tmp_path)]
    done = subprocess.run(
        ["unshare", "-rn", sys.executable, "-m", "sphinx", *command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pages = {path.relative_to(tmp_path).as_posix(): path for path in tmp_path.rglob("*.html")}
    assert {"README.html", "docs/tutorial.html", "docs/settings.html"} <= pages.keys()
    for path in pages.values():
        shown = re.findall(
            r"<(?:script|img|link)\b[^>]*?(?:src|href)=\"([^\"]+)", path.read_text("utf-8")
        )
        assert not [place for place in shown if "://" in place or place.startswith("//")], path


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


def test_each_row_of_fidelity_names_a_test_that_exists() -> None:
    """A row without one says that the thing is missing."""
    page = (CHECKOUT / "docs" / "fidelity.md").read_text("utf-8")
    rows = [
        re.split(r"(?<!\\)\|", line)[1:-1] for line in page.split("\n") if line.startswith("| ")
    ]
    rows = [[cell.strip() for cell in row] for row in rows if row[0].strip() != "paper"]
    assert len(rows) > 90
    for paper, _, verdict, shown in rows:
        named = re.fullmatch(r"`(test_\w+)::(\w+)`", shown)
        if named is None:
            assert (shown, verdict.startswith("missing")) == ("–", True), paper
            continue
        source = (CHECKOUT / "tests" / f"{named[1]}.py").read_text("utf-8")
        assert f"\ndef test_{named[2]}(" in source, f"{paper}: {shown}"
