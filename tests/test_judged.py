"""Judged facts are found again in a build, word by word, and the unseen half stays unread."""

import judged
import pytest

from tests.corpora import ROOT
from tests.rows import each_row

DATA = ROOT / "benchmarks" / "judged"
TEXT = "Napoleon Berg was born in Oslo. He was killed by Hans Lund in Bergen."
START = TEXT.index("He ")


def make_build(*shapes: judged.Shape) -> judged.Build:
    facts = [judged.Fact("t", "d1", START, len(TEXT), (shape,), 0.9) for shape in shapes]
    return judged.Build({"d1": TEXT}, {"d1": ""}, {"triples": facts})


def judge(verdict: str, right: str = "", half: str = "dev", sentence: str = "") -> judged.Row:
    place = {"document": "d1", "start": str(START), "end": str(len(TEXT)), "half": half}
    words = {"head": "Napoleon Berg", "relation": "was killed in", "tail": "Bergen"}
    rest = {"row": "essays-t1", "fault": "", "right": right, "sentence": sentence}
    return dict.fromkeys(judged.COLUMNS, "") | place | words | rest | {"verdict": verdict}


def compare(row: judged.Row, *shapes: judged.Shape) -> judged.Row:
    (found,) = judged.compare_rows([row], make_build(*shapes), "triples")
    return found


@each_row("shape, state")
def test_a_fact_is_the_same_or_fuller_only_with_all_its_words_and_its_voice(
    shape: judged.Shape, state: str
) -> None:
    assert compare(judge("right"), shape)["state"] == state


def test_a_fault_is_mended_when_the_build_has_the_words_of_the_right_triple() -> None:
    row = judge("vague", "Napoleon Berg | was killed in Bergen by | Hans Lund")
    better = ("Napoleon Berg", "was killed by", "Hans Lund in Bergen")
    assert compare(row, better)["mended"] == "yes"
    assert compare(row, ("Napoleon Berg", "was killed by", "Hans Lund"))["mended"] == ""


@pytest.mark.parametrize("kind", judged.KINDS)
@pytest.mark.parametrize("sort", judged.SORTS)
def test_every_judged_row_has_a_known_verdict_fault_and_half(kind: str, sort: str) -> None:
    rows = judged.read_rows(DATA, kind, sort)
    faults = {
        line.split("`")[1]
        for line in (DATA / "README.md").read_text("utf-8").splitlines()
        if line.startswith("| `")
    }
    assert len(rows) == (100 if sort == "triples" else 40)
    for row in rows:
        assert row["verdict"] in judged.VERDICTS
        assert row["fault"] in faults if row["verdict"] != "right" else not row["fault"]
        assert row["half"] == judged.choose_half(kind, row["document"])
        assert bool(row["sentence"]) == (kind not in judged.UNSHIPPED)
