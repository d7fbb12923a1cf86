"""The extract of WordNet that the package carries: made anew alike, and what is asked of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kpyramid.graph.synonyms.words import find_verb, load_wordnet
from tests.rows import each_row

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "etl" / "kpyramid" / "graph" / "synonyms" / "wordnet"
INSTALLED = Path("/usr/share/wordnet")


@pytest.mark.slow
def test_the_extract_is_what_its_script_cuts(tmp_path: Path) -> None:
    if not INSTALLED.is_dir():
        assert "CI" not in os.environ, "install wordnet-base"
        pytest.skip("WordNet (wordnet-base) is not installed")
    code = (
        "import sys, pathlib; sys.path.append('etl'); import cut_wordnet as c;"
        f"c.TARGET = pathlib.Path({str(tmp_path)!r}); sys.argv[1:] = []; c.main()"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    for name in ("extract.txt.gz", "nouns.txt.gz"):
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes()


def test_it_is_small_and_comes_with_its_licence() -> None:
    assert (FOLDER / "extract.txt.gz").stat().st_size < 1_500_000
    assert "Princeton University" in (FOLDER / "LICENSE").read_text("utf-8")


@each_row("form, verb")
def test_a_form_is_traced_to_its_verb(form: str, verb: str | None) -> None:
    assert find_verb(form) == verb


def test_words_are_related_as_wordnet_says() -> None:
    net = load_wordnet()
    assert net.find_rank("buy", "purchase", "v") == 0
    assert net.find_rank("buy", "sell", "v") is None
    assert "sell" in net.opposites["buy"]
    assert net.is_kind_of("murder", "kill")
    assert {d.verb for d in net.derived["founder"]} >= {"found"}
