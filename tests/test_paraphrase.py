"""What wordings mean of each other: pairs written by hand, and the readings they rest on."""

import csv
import time
from collections.abc import Iterator, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from itertools import product
from pathlib import Path
from types import ModuleType

import pytest

from kpyramid.embeddings.port import Matrix
from kpyramid.graph.synonyms.comparison import Comparer, Likeness, Verdict
from kpyramid.graph.synonyms.lexicon import TABLE, load_lexicon
from kpyramid.graph.synonyms.meaning import read_frame
from tests.planted import MemoEmbedder
from tests.rows import each_row

PAIRS = Path(__file__).parent / "relation_pairs_dev.tsv"
MIRROR: dict[Likeness, Likeness] = {"narrower": "broader", "broader": "narrower"}


@pytest.fixture(scope="module")
def comparer() -> Comparer:
    return Comparer(MemoEmbedder())


def read_pairs() -> Iterator[tuple[str, str, str, bool]]:
    with PAIRS.open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            yield row["one"], row["other"], row["verdict"], row["turned"] == "1"


def is_same(verdict: Verdict) -> bool:
    return verdict.likeness == "equivalent" and not verdict.turned


def test_every_development_pair_is_called_the_same_or_not_as_written(comparer: Comparer) -> None:
    wrong = [
        (one, other)
        for one, other, verdict, turned in read_pairs()
        if is_same(comparer.compare(one, other)) != (verdict == "equivalent" and not turned)
    ]
    assert wrong == []


def test_turned_pairs_are_the_same_from_the_other_end(comparer: Comparer) -> None:
    turned = [(one, other) for one, other, verdict, flip in read_pairs() if flip]
    assert len(turned) > 30
    assert [pair for pair in turned if not comparer.compare(*pair).turned] == []


def test_a_verdict_holds_from_both_sides(comparer: Comparer) -> None:
    for one, other, _, _ in read_pairs():
        verdict, back = comparer.compare(one, other), comparer.compare(other, one)
        assert back.turned == verdict.turned, (one, other)
        assert back.likeness == MIRROR.get(verdict.likeness, verdict.likeness), (one, other)


@each_row("one, other, likeness")
def test_what_one_wording_says_of_the_other(
    one: str, other: str, likeness: str, comparer: Comparer
) -> None:
    assert comparer.compare(one, other).likeness == likeness


def test_unknown_words_in_one_frame_are_the_same_relation(comparer: Comparer) -> None:
    assert is_same(comparer.compare("is the quaestor of", "was a quaestor of"))
    assert is_same(comparer.compare("is the quaestor of", "served as quaestor of"))
    assert comparer.compare("is the quaestor of", "has quaestor").turned
    assert not is_same(comparer.compare("is the quaestor of", "is the praetor of"))


def test_a_reading_tells_meaning_direction_and_qualities(comparer: Comparer) -> None:
    founded, by = comparer.read("founded"), comparer.read("was founded by")
    assert founded.meaning == by.meaning == "founded"
    assert (founded.turned, by.turned) == (False, True)
    assert comparer.read("did not found").negated
    assert comparer.read("may have caused").modal
    assert comparer.read("married").turned is comparer.read("was married to").turned is False
    assert comparer.read("frobnicates").meaning is None


@pytest.mark.parametrize("wording", ["", " ", "'s", "is", "not", "the", "-", "co-", "was by", "¿?"])
def test_wordings_of_hardly_any_words_are_read(wording: str, comparer: Comparer) -> None:
    read_frame(wording)
    assert comparer.compare(wording, "founded").likeness == "different"


@each_row("one, other")
def test_frames_leave_out_what_changes_nothing(one: str, other: str) -> None:
    first, second = read_frame(one), read_frame(other)
    keys = [{(f.key, f.turned), *f.alternates} for f in (first, second)]
    assert keys[0] & keys[1]
    assert first.negated == second.negated
    assert first.qualities - {"become"} == second.qualities - {"become"}


def test_co_is_cut_from_what_several_do_only(comparer: Comparer) -> None:
    for one, other in (
        ("cooperated with", "cooperates with"),
        ("co-operated with", "cooperated with"),
        ("coached", "coaches"),
    ):
        assert is_same(comparer.compare(one, other)), one
    assert comparer.compare("cooperated with", "operated with").likeness == "different"
    assert comparer.compare("coauthored", "authored").likeness == "narrower"
    assert is_same(comparer.compare("cofounded", "co-founded"))
    for wording in ("costing", "coloured", "coordinated", "coached", "cowards of"):
        assert "joint" not in read_frame(wording).qualities, wording


def test_what_a_place_has_is_in_it_from_the_other_end(comparer: Comparer) -> None:
    for wording in ("has as one of its quarries", "has among its quarries", "is home to a quarry"):
        verdict = comparer.compare(wording, "is a quarry in")
        assert (verdict.likeness, verdict.turned) == ("equivalent", True), wording
    assert is_same(comparer.compare("is among the quarries in", "is one of the quarries in"))
    assert not is_same(comparer.compare("has one of the oldest quarries", "has the oldest quarry"))
    assert not is_same(comparer.compare("is home to", "has"))


@pytest.fixture(scope="module")
def compiler() -> ModuleType:
    """The script that compiles the lexicon, which the package leaves out."""
    path = Path(__file__).parent.parent / "etl" / "compile_lexicon.py"
    spec = spec_from_file_location("compile_lexicon", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_what_the_declarations_compile_to(compiler: ModuleType) -> None:
    made = compiler.write_table(compiler.read_declarations(TABLE.parent))
    assert made == TABLE.read_text("utf-8"), "python etl/compile_lexicon.py"


@each_row("declaration")
def test_a_wrong_declaration_is_refused(
    compiler: ModuleType, declaration: str, tmp_path: Path
) -> None:
    (tmp_path / "0.toml").write_text(declaration)
    with pytest.raises(SystemExit, match=r"\[a\]"):
        compiler.read_declarations(tmp_path)


def test_the_lexicon_loads_in_a_fifth_of_a_second() -> None:
    took = []
    for _ in range(3):
        begun = time.process_time()
        load_lexicon.__wrapped__()
        took.append(time.process_time() - begun)
    assert min(took) < 0.2


def test_patterns_stand_for_their_wordings(compiler: ModuleType) -> None:
    assert list(compiler.expand("is [a] part|piece of")) == [
        "is a part of",
        "is a piece of",
        "is part of",
        "is piece of",
    ]


def test_equal_wordings_are_never_contrary(comparer: Comparer) -> None:
    words = ["founded", "was founded by", "is north of", "married", "owns", "is part of"]
    for one, other in product(words, words):
        verdict = comparer.compare(one, other)
        assert (verdict.likeness == "contrary") is False


def test_prepared_wordings_are_embedded_in_one_call_and_judged_alike() -> None:
    class Counting(MemoEmbedder):
        calls = 0

        def embed(self, texts: Sequence[str]) -> Matrix:
            type(self).calls += 1
            return super().embed(texts)

    pairs = [("emblazons", "blazons"), ("frobnicates", "wobbles"), ("founded", "set up")]
    comparer = Comparer(Counting())
    comparer.prepare([wording for pair in pairs for wording in pair])
    assert Counting.calls == 1
    verdicts = [comparer.compare(*pair) for pair in pairs]
    assert Counting.calls == 1
    assert verdicts == [Comparer(MemoEmbedder()).compare(*pair) for pair in pairs]
