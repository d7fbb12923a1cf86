"""Titles that texts say: which passages are joined by them, and who may see so."""

from pathlib import Path

import pyarrow as pa
import pytest

from kpyramid.query import EVERYTHING, PUBLIC, Snapshot, open_snapshot
from kpyramid.snapshot.columns import _find_titles, _link_titles
from kpyramid.snapshot.search import rank_holding, rank_words
from tests.corpora import encode_lines, open_told
from tests.rows import read_bodies, read_rows


def join(titles: list[str], text: str) -> list[int]:
    """The documents with one of some titles that a text is joined to."""
    tables = {"documents": pa.table({"title": titles}), "chunks": pa.table({"text": [text]})}
    titled = _find_titles(tables)
    rows = [*titled.values()]
    return sorted(row for at in _link_titles(tables, titled)[0].as_py() for row in rows[at])


def test_a_text_is_joined_to_what_has_a_title_that_it_says() -> None:
    rows = read_rows("titles.a_text_is_joined_to_what_has_a_title_that_it_says")
    for title, text, joined in rows:
        assert join([title], text) == [0] * joined, (title, text)


ROWS = read_bodies("titles.rows")


@pytest.fixture(scope="module")
def folder() -> Path:
    """The warehouse of a published snapshot of documents, some of them with a label."""
    return open_told("titles", {"rows.jsonl": encode_lines(ROWS)}).folder.parent.parent


def list_ids(snapshot: Snapshot, listed: list[list[str]]) -> set[str]:
    keys = [key for chunks in listed for key in chunks]
    return {p.source.split("#")[-1] for key in keys for p in snapshot.evidence(key)}


def find_chunk(snapshot: Snapshot, name: str) -> str:
    for key in snapshot.table("chunks")["chunk_id"].to_pylist():
        if list_ids(snapshot, [[key]]) == {name}:
            return str(key)
    raise KeyError(name)


def test_a_title_of_a_hidden_document_joins_nothing(folder: Path) -> None:
    """The longer title covers the shorter one only for who may know of that document.

    Who sees that many share a title sees none named.
    """
    few = {f"z{at}" for at in range(5)}
    for scope, named, joined, many in [
        (EVERYTHING, {"who"}, {"who", "dahl"}, set()),
        (PUBLIC, {"dahl"}, {"dahl"}, few),
    ]:
        snapshot = open_snapshot("main", folder, scope=scope)
        assert list_ids(snapshot, snapshot.find_titled("Where was Ines Dahl born?")) == named
        assert list_ids(snapshot, snapshot.link_titles(find_chunk(snapshot, "play"))) == joined
        assert list_ids(snapshot, snapshot.find_titled("What is the Zeta Plan?")) == many
        assert list_ids(snapshot, snapshot.link_titles(find_chunk(snapshot, "log"))) == many


def test_what_holds_a_name_is_ranked_as_among_all(folder: Path) -> None:
    snapshot = open_snapshot("main", folder, scope=EVERYTHING)
    part = snapshot._view.part("chunks")
    whole = dict(rank_words("Ines Dahl born harbour", part, len(part), 9))
    held = rank_holding("Ines Dahl", "born harbour", part, 9)
    assert {snapshot._view.text_of("chunks", row).split("\n")[0] for row, _ in held} == {
        "Sea Lark (play)",
        "Ines Dahl",
    }
    assert all(whole[row] == pytest.approx(score) for row, score in held)
    assert rank_holding("U.S.", "born", part, 9) == rank_holding("Nobody", "", part, 9) == []


def test_warming_reads_the_whole_index(folder: Path) -> None:
    snapshot = open_snapshot("main", folder)
    files = [path for path in (snapshot.folder / "index").rglob("*") if path.is_file()]
    assert snapshot.warm() == sum(path.stat().st_size for path in files)
