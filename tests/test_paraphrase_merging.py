"""The measurement of merging: the forms it reads, its figures, and what must be reached."""

import subprocess
import sys
from pathlib import Path

import pytest
from merge import read_pairs

from tests.rows import read_rows

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "benchmarks" / "merge.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("name", "text"),
    read_rows("paraphrase_merging.files_are_recognised_by_their_fields"),
)
def test_files_are_recognised_by_their_fields(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    for data in (tmp_path, tmp_path / name):
        pairs = read_pairs(data)
        assert [(p.one, p.other, p.same) for p in pairs] == [
            ("founded", "set up", True),
            ("founded", "sold", False),
        ]
