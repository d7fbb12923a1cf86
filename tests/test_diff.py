"""What changed between two snapshots: every difference is counted, in words, and nobody else's."""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kpyramid.errors import InputError, IntegrityError
from kpyramid.serve.current import Current
from kpyramid.snapshot.diff import NAMES, PARTS, Counts, Diff, compare
from kpyramid.snapshot.snapshot import Snapshot, open_snapshot
from kpyramid.snapshot.view import EVERYTHING, Scope
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.publication import promote
from kpyramid.storage.refs import resolve_ref
from tests.commands import fails, run, run_json, show
from tests.corpora import (
    TEXTS,
    build_corpus,
    encode_lines,
    make_settings,
    share,
    use_quick_models,
    write_corpus,
)

BOARD = "Clara Zorblax"
"""Only a text with the label `board` names her."""


def write_records(corpus: Path, texts: dict[str, str], guarded: str = BOARD) -> Path:
    """One file of records; a text that names somebody is the board's."""
    lines = [
        {"id": name, "text": text} | ({"access": ["board"]} if guarded in text else {})
        for name, text in texts.items()
    ]
    return write_corpus(corpus, {"texts.jsonl": encode_lines(lines)})


def edit(texts: dict[str, str]) -> dict[str, str]:
    """One text edited, one gone, one new, and the board's edited."""
    changed = {name: text for name, text in texts.items() if name != "batt.txt"}
    changed["aster.txt"] = changed["aster.txt"].replace("1921", "1922")
    changed["zorblax.txt"] += f" {BOARD} founded Delta Works."
    return changed | {"moss.txt": "Ida Moss was born in Oslo. Ida Moss founded Nord Mill."}


def _build_two(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_quick_models(monkeypatch)
        warehouse, texts = Warehouse(folder / "w"), dict(TEXTS)
        build_corpus(write_records(folder / "c", texts), warehouse, order="2026-01-01")
        corpus = write_records(folder / "c", edit(texts))
        outcome = build_corpus(corpus, warehouse, order="2026-01-02", allow_shrink=True)
        (folder / "line").write_text(outcome.report["changes"])


@pytest.fixture(scope="module")
def built() -> Path:
    return share("diff", _build_two)


def open_two(built: Path, scope: Scope = EVERYTHING) -> tuple[Snapshot, Snapshot]:
    before, after = (open_snapshot(name, built / "w", scope=scope) for name in ("main@1", "main"))
    return before, after


@pytest.fixture
def whole(built: Path) -> Iterator[Diff]:
    with compare(*open_two(built)) as found:
        yield found


def read_expected(snapshot: Snapshot, name: str) -> dict[str, Any]:
    """The rows of a part by key, as plain values."""
    part = PARTS[name]
    rows = snapshot.table(part.table).to_pylist()
    return {row[part.key]: [row[column] for column in part.compared.values()] for row in rows}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("scope", [EVERYTHING, Scope()], ids=["everything", "public"])
def test_counts_and_rows_are_those_counted_by_hand(built: Path, name: str, scope: Scope) -> None:
    sides = open_two(built, scope)
    before, after = (read_expected(snapshot, name) for snapshot in sides)
    expected = {
        "added": after.keys() - before.keys(),
        "removed": before.keys() - after.keys(),
        "changed": {k for k in before.keys() & after.keys() if before[k] != after[k]},
    }
    with compare(*sides) as found:
        counts, rows = found.count(name), found.read(name, None)
    assert name == "proposals" or counts != Counts(), "the edit shows in every other table"
    for change, keys in expected.items():
        assert getattr(counts, change) == len(keys)
        assert {row.key for row in rows if row.change == change} == keys
    assert all(row.words for row in rows)
    assert all(bool(row.fields) == (row.change == "changed") for row in rows)


def test_columns_that_the_format_before_lacked_are_not_compared(
    built: Path, whole: Diff, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = open_two(built)
    lacking = {"documents": "blocks", "condensed": "negated"}

    def locate(side: Snapshot, name: str) -> pa.Table:
        table = side.table(name)
        gone = lacking.get(name) if side.id == before.id else None
        return table.drop_columns(gone) if gone else table

    monkeypatch.setattr(Snapshot, "locate_table", locate)
    with compare(before, after) as found:
        for name in ("documents", "facts"):
            assert found.count(name) == whole.count(name)
            shown = [(row.change, row.words) for row in found.read(name, 100)]
            assert shown == [(row.change, row.words) for row in whole.read(name, 100)]


def test_a_build_says_what_it_changed(built: Path, whole: Diff) -> None:
    line = (built / "line").read_text()

    assert line == whole.summarise()
    assert line.startswith("1 document new, 2 edited, 1 gone; ")
    assert "ontology unchanged" in line
    counts = whole.count("facts")
    assert f"{counts.added} facts more, {counts.changed} changed, {counts.removed} fewer" in line


def test_rows_are_in_words_with_what_changed_in_them(whole: Diff) -> None:
    documents = [(row.change, row.words) for row in whole.read("documents", None)]
    assert documents == [
        ("removed", "texts.jsonl#batt.txt"),
        ("changed", "texts.jsonl#aster.txt"),
        ("changed", "texts.jsonl#zorblax.txt"),
        ("added", "texts.jsonl#moss.txt"),
    ]
    changed = {row.words: row.fields for row in whole.read("facts", None) if row.fields}
    founding = changed["Anna Holm | founded | Aster Pictures"]
    assert founding["qualifiers"] == ({"time": "1921"}, {"time": "1922"})
    words = {row.words for row in whole.read("instances", None)}
    assert "Ida Moss | is a | person" in words
    assert len(whole.read("facts", 2)) == 2
    assert whole.read("facts", 0) == []


@pytest.mark.slow
def test_a_reader_without_the_label_is_shown_nothing_it_guards(built: Path) -> None:
    place = ["--warehouse", str(built / "w"), "--limit", "0"]
    for name in NAMES:
        for form in ([], ["--json"]):
            done = run("diff", "--table", name, *place, *form)
            for secret in ("Zorblax", "zorblax", "Quuxville", "Delta Works"):
                assert secret not in done.output
            assert "documents of B; --access or --everything shows more" in done.stdout
    assert "of B;" not in show("diff", *place, "--everything")
    for seeing in (["--access", "board"], ["--everything"]):
        told = show("diff", "--table", "facts", *place, *seeing)
        assert f"+ {BOARD} | founded | Delta Works" in told


@pytest.fixture(scope="module")
def relabelled(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A third snapshot, in which an open text of the second is the board's."""
    warehouse = tmp_path_factory.mktemp("relabelled") / "w"
    shutil.copytree(built / "w", warehouse)
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_quick_models(monkeypatch)
        texts = {name: text for name, text in edit(dict(TEXTS)).items() if BOARD not in text}
        corpus = write_records(warehouse.parent / "c", texts, "Ida Moss")
        build_corpus(corpus, Warehouse(warehouse), order="2026-01-03", allow_shrink=True)
    return warehouse


@pytest.mark.slow
def test_a_text_that_was_labelled_since_is_in_neither_side(relabelled: Path) -> None:
    place = ("--warehouse", relabelled, "--limit", "0")
    for sides in (("main@1", "main"), ("main", "main@1")):
        for name in NAMES:
            done = run("diff", *sides, "--table", name, *place)
            assert done.exit_code == 0, done.output
            assert not re.search("moss|nord mill", done.output, re.IGNORECASE), done.output
        with compare(*(open_snapshot(side, relabelled) for side in sides)) as found:
            assert found.count("documents").added == found.count("documents").removed == 0
        assert "moss.txt" in show("diff", *sides, "--table", "documents", *place, "--everything")


def test_labels_of_today_hold_for_the_snapshots_of_yesterday(relabelled: Path) -> None:
    warehouse = Warehouse(relabelled)
    earlier = resolve_ref(warehouse, "main@1")
    promote(warehouse, "served", earlier, at="2026-02-01T00:00:00+00:00")
    for name in ("main@1", earlier, "served"):
        opened = open_snapshot(name, relabelled)
        for seen in (opened, opened.scoped(Scope(frozenset({"staff"})))):
            texts = seen.table("chunks")["text"].to_pylist()
            assert texts and not [text for text in texts if "Moss" in text]
        for scope in (EVERYTHING, Scope(frozenset({"board"}))):
            texts = open_snapshot(name, relabelled, scope=scope).table("chunks")["text"]
            assert any("Moss" in text for text in texts.to_pylist())


def list_texts(snapshot: Snapshot) -> str:
    return " ".join(snapshot.table("chunks")["text"].to_pylist())


@pytest.fixture
def served_place(relabelled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the warehouse, that a service may follow."""
    use_quick_models(monkeypatch)
    monkeypatch.setattr("kpyramid.serve.current.retrieve", lambda *_: None)  # to warm it
    return Path(shutil.copytree(relabelled, tmp_path / "w"))


def test_labels_hold_when_their_document_left_and_when_the_ref_went_back(
    relabelled: Path, served_place: Path, tmp_path: Path
) -> None:
    place, warehouse = served_place, Warehouse(served_place)
    labelled, earlier = resolve_ref(warehouse, "main"), resolve_ref(warehouse, "main@1")
    lines = (relabelled.parent / "c" / "texts.jsonl").read_text().splitlines()
    left = "\n".join(each for each in lines if "Moss" not in each)
    corpus = write_corpus(tmp_path / "c", {"texts.jsonl": left})
    build_corpus(corpus, warehouse, order="2026-01-04", allow_shrink=True)
    followed = Current("main", place)
    promote(warehouse, "main", earlier, at="2026-02-01T00:00:00+00:00")
    assert followed.follow()
    for name in ("main", earlier):
        assert "Moss" not in list_texts(open_snapshot(name, place))
        with Current(name, place).read() as served:
            assert served.id == earlier and "Moss" not in list_texts(served)
    with followed.read() as served, followed.read(frozenset({"board"})) as board:
        assert "Moss" not in list_texts(served)
        assert "Moss" in list_texts(board)
    assert "Moss" not in list_texts(open_snapshot(labelled, place))


def test_labels_that_come_while_serving_an_earlier_one_hold(
    served_place: Path, tmp_path: Path
) -> None:
    place, warehouse = served_place, Warehouse(served_place)
    earlier, entries = resolve_ref(warehouse, "main@1"), place / "refs" / "main"
    newest = max(entries.iterdir())
    newest.rename(tmp_path / newest.name)
    current = Current(earlier, place)
    with current.read() as served:
        assert "Moss" in list_texts(served)
    (tmp_path / newest.name).rename(newest)
    current.follow()
    with current.read() as served:
        assert served.id == earlier and "Moss" not in list_texts(served)


def test_comparison_needs_nothing_of_builds(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    for scope in (EVERYTHING, Scope()):
        with compare(*open_two(built, scope)) as found:
            assert found.read("facts", None)


@pytest.mark.slow
@pytest.mark.usefixtures("quick_models")
def test_terms_and_settings_that_differ_are_named(tmp_path: Path) -> None:
    warehouse, corpus = Warehouse(tmp_path / "w"), write_records(tmp_path / "c", dict(TEXTS))
    first = make_settings(chunk={"max_tokens": 24, "overlap_tokens": 6})
    other = make_settings(chunk={"max_tokens": 32, "overlap_tokens": 6}, complete={"most_open": 3})
    build_corpus(corpus, warehouse, first, order="1")
    build_corpus(corpus, warehouse, other, order="2")
    before, after = (open_snapshot(n, warehouse.root, scope=EVERYTHING) for n in ("main@1", "main"))
    turtle = after.folder / "ontology" / "schema.ttl"
    text = turtle.read_text()
    turtle.write_text(text.replace('rdfs:label "employer"', 'rdfs:label "works for"'))

    with compare(before, after) as found:
        causes = found.list_causes()
        (term,) = found.read("ontology", None)

    assert causes["settings.chunk.max_tokens"] == (24, 32)
    assert causes["settings.complete.most_open"][1] == 3
    assert (term.change, term.words) == ("changed", "works for (property)")
    assert term.fields["label"] == ("employer", "works for")


def test_who_has_only_folders_asks_what_changed(built: Path, tmp_path: Path, whole: Diff) -> None:
    places = []
    for name, snapshot in zip(("last week", "now"), open_two(built), strict=True):
        places.append(shutil.copytree(snapshot.folder, tmp_path / name))
    words = ["diff", *places, "--everything", "--table", "facts"]
    said = run_json(*words, "--warehouse", tmp_path / "none")
    assert said["summary"] == whole.summarise()
    assert [row["words"] for row in said["rows"]] == [r.words for r in whole.read("facts", 20)]
    help_text = " ".join(run("diff", "--help").stdout.split())
    assert "kpyramid diff ./last-week ./now" in help_text


def test_what_cannot_be_compared_is_told(built: Path, tmp_path: Path) -> None:
    before, after = open_two(built)
    with compare(before, after) as found, pytest.raises(InputError, match="documents, facts"):
        found.count("claims")
    fails(3, "kpyramid log main", "diff", "main@9", "--warehouse", built / "w")
    copied = shutil.copytree(after.folder, tmp_path / after.id)
    (copied / "tables" / "condensed.parquet").write_bytes(b"PAR1 nothing PAR1")
    with (
        pytest.raises(IntegrityError, match="kpyramid verify"),
        compare(before, Snapshot(copied, scope=EVERYTHING)) as found,
    ):
        found.read("facts", None)


def test_changes_of_site_are_those_of_ref_that_was_named(built: Path, tmp_path: Path) -> None:
    shutil.copytree(built / "w", tmp_path / "w")
    place = Warehouse(tmp_path / "w")
    old, new = resolve_ref(place, "main@1"), resolve_ref(place, "main")
    for at, identifier in enumerate((new, old)):
        promote(place, "aside", identifier, at=f"2026-02-0{at + 1}T00:00:00+00:00")
    before = {"main": old, "main@1": None, "aside": new, new: None, old: None}
    for name, former in before.items():
        words = ["export", name, str(tmp_path / name), "--to", "site", "--everything"]
        show(*words, "--warehouse", place.root)
        told = (tmp_path / name / "data" / "diff.js").read_text("utf-8")
        assert json.loads(told[told.index("{") : told.rindex("}") + 1])["before"] == former
