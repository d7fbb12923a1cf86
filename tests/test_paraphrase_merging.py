"""The measurement of merging: the forms it reads, its figures, and what must be reached."""

import json
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


@pytest.mark.slow
def test_pairs_by_other_hands_reach_what_merging_must() -> None:
    done = run("--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["pairs"] >= 200
    assert figures["pairwise_f1"] >= 0.9
    assert figures["false_merges"] <= 0.02
    for baseline in figures["baselines"].values():
        assert baseline["pairwise_f1"] < figures["pairwise_f1"]


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


def test_a_turned_pair_is_not_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(
        "one\tother\tverdict\tdirection\thead_type\ttail_type\n"
        "founded\twas founded by\tequivalent\tturned\tPERSON\tORG\n"
        "founded\tset up\tequivalent\tsame\tAda Lovelace\tOrg\n"
    )
    turned, same = read_pairs(path)
    assert (turned.same, turned.ends) == (False, ("PERSON", "ORG"))
    assert (same.same, same.ends) == (True, ("", "ORG"))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "no pair"),
        ("one\tother\tverdict\nfounded\tset up\tperhaps\n", "perhaps"),
        ("founded\tset up\n", "no verdict"),
        ("one\tother\tverdict\nfounded\t\tsame\n", "no other"),
    ],
)
def test_data_of_another_form_are_refused(text: str, named: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(text)
    done = run("--data", str(path))
    assert done.returncode == 2
    assert named in done.stderr
    assert "Traceback" not in done.stderr
