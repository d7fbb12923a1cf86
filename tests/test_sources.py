"""Files become documents or rejects: every format, every encoding, every way to be broken."""

import json
import os
import re
from collections.abc import Mapping
from encodings.aliases import aliases
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kpyramid.documents import formats
from kpyramid.documents.corpus import list_corpus
from kpyramid.documents.formats import Record, Refusal, RefusedError, decode_bytes, read_records
from kpyramid.documents.labels import names_labels
from kpyramid.errors import InputError
from kpyramid.pipeline.stages import ingest
from kpyramid.settings import IngestSettings
from kpyramid.storage.erasure import Erased
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.verification import check_tables
from tests.corpora import (
    build_corpus,
    count_recomputed,
    encode_lines,
    read_snapshot,
)
from tests.rows import each_row, read_bodies, read_rows

Row = Mapping[str, object]


def ingest_files(
    folder: Path, files: Mapping[str, bytes], **settings: object
) -> tuple[dict[str, Row], dict[str, Row]]:
    """Documents by source and rejects by row key, of a folder with these files."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return ingest_folder(folder, **settings)


def ingest_folder(folder: Path, **settings: object) -> tuple[dict[str, Row], dict[str, Row]]:
    made = ingest.run(
        corpus=list_corpus(folder).read_files(),
        converter=None,
        erased=Erased(),
        settings=IngestSettings(**settings),  # type: ignore[arg-type]
    )
    documents = {row["source"]: row for row in made["documents"].to_pylist()}
    return documents, {row["row_key"]: row for row in made["rejects"].to_pylist()}


def write_parquet(rows: list[dict[str, object]]) -> bytes:
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), buffer)
    return buffer.getvalue().to_pybytes()


def test_each_format_gives_text_and_its_fields(tmp_path: Path) -> None:
    year = write_parquet([{"id": "p", "text": "T", "year": 1900}])
    parquet = {"text": "T", "metadata": [["year", "1900"]]}
    texts = (
        (name, text.encode(), *rest) for name, text, *rest in read_bodies("sources.each_format")
    )
    for number, (name, data, source, expected) in enumerate(
        [*texts, ("a.parquet", year, "a.parquet#p", parquet)]
    ):
        documents, rejects = ingest_files(tmp_path / str(number), {name: data})
        assert rejects == {}
        document = documents[source] | {"metadata": [*map(list, documents[source]["metadata"])]}
        assert {key: document[key] for key in expected} == expected, name


@each_row("name, text, encoding, expected")
def test_each_encoding_is_decoded(
    tmp_path: Path, name: str, text: str, encoding: str, expected: str
) -> None:
    documents, rejects = ingest_files(tmp_path / name, {name: text.encode(encoding)})
    assert rejects == {}
    assert [row["text"] for row in documents.values()] == [expected]


BROKEN: dict[str, tuple[bytes, dict[str, str]]] = {
    name: (text.replace("DEEP", "[" * 100_000).encode("latin-1"), expected)
    for name, text, expected in read_rows("sources.broken")
}


REPEATED = {
    "twice.csv": "'text' twice",
    "keys.jsonl#line1": "'text' comes twice",
    "keys.jsonl#line3": "'k' comes twice",
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_read_is_a_reject_that_names_its_place(tmp_path: Path, name: str) -> None:
    data, expected = BROKEN[name]

    documents, rejects = ingest_files(tmp_path, {name: data})

    assert {key: row["reason"] for key, row in rejects.items()} == expected
    assert all(row["detail"] for row in rejects.values())
    assert all(row["text"] == "good" for row in documents.values())
    for key, said in REPEATED.items():
        assert key not in rejects or said in str(rejects[key]["detail"])


def test_a_parquet_file_that_cannot_be_read_as_texts_is_a_reject(tmp_path: Path) -> None:
    bytes_of = [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]
    no_utf8 = pa.Array.from_buffers(pa.string(), 1, bytes_of)
    twice = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], ["text", "text"])
    many = pa.table({"text": ["a"] * 100_000})
    for table, detail in (
        (pa.table({"text": no_utf8}), ""),
        (twice, "the column 'text' twice"),
        (many, "it states 100,000 rows in "),  # which says nothing of the room for them
    ):
        pq.write_table(table, tmp_path / "a.parquet")
        documents, rejects = ingest_folder(tmp_path)
        assert not documents
        assert rejects["a.parquet"]["reason"] == "bad_parquet"
        assert detail in str(rejects["a.parquet"]["detail"])


def test_a_parquet_row_with_a_value_python_cannot_hold_is_a_reject(tmp_path: Path) -> None:
    for kind, value in [
        (pa.timestamp("ns"), 1_000_001),
        (pa.timestamp("ms"), 10**17),
        (pa.date32(), 10**9),
        (pa.duration("s"), 10**18),
        (pa.duration("ns"), 1_000_001),
        (pa.time64("ns"), 1_000_001),
        (pa.list_(pa.timestamp("ms")), [10**17]),
    ]:
        ids = pa.array(["a", "b"])
        columns = {"id": ids, "text": ids, "when": pa.array([value, None], kind)}
        pq.write_table(pa.table(columns), tmp_path / "a.parquet")

        documents, rejects = ingest_folder(tmp_path)

        assert [row["text"] for row in documents.values()] == ["b"], "its neighbour is read"
        ((key, row),) = rejects.items()
        assert (key, row["reason"]) == ("a.parquet#line1", "bad_record"), kind
        assert re.match(r"row 1: the .+ in column 'when': ", str(row["detail"]))


def test_what_is_too_large_is_refused_before_it_is_parsed_and_its_neighbours_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = encode_lines([{"id": 1, "text": "é" * 20}, {"id": 2, "text": "e" * 20}]).encode()
    documents, rejects = ingest_files(tmp_path, {"a.jsonl": rows}, max_document_bytes=30)
    assert list(documents) == ["a.jsonl#2"]
    assert rejects["a.jsonl#1"]["reason"] == "too_large"
    assert "40 bytes" in str(rejects["a.jsonl#1"]["detail"])
    (tmp_path / "a.jsonl").unlink()

    monkeypatch.setattr(formats, "decode_bytes", lambda *_, **__: pytest.fail("it was parsed"))
    huge = dict.fromkeys(("a.txt", "a.md", "a.html"), b"<b></b>" * 10 + b"word")
    documents, rejects = ingest_files(tmp_path, huge, max_document_bytes=30)
    assert not documents and rejects.keys() == huge.keys()
    for row in rejects.values():
        assert (row["reason"], "74 bytes" in str(row["detail"])) == ("too_large", True)


def test_links_that_lead_nowhere_or_round_and_odd_names_are_rejects(tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "e" / "a.txt").write_text("good")
    for link, target in {
        "broken.txt": "nothing", "loop.txt": "loop.txt", "all": "", "d/e/up": "d"
    }.items():  # fmt: skip
        (tmp_path / link).symlink_to(tmp_path / target)
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("text")

    documents, rejects = ingest_folder(tmp_path)

    assert list(documents) == ["d/e/a.txt"]
    assert {key: row["reason"] for key, row in rejects.items()} == dict.fromkeys(
        ["broken.txt", "loop.txt", "pipe.txt", r"caf\udce9.txt", "all", "d/e/up"], "unreadable"
    )
    assert all("a loop" in str(rejects[key]["detail"]) for key in ("all", "d/e/up"))
    assert "it is d," in str(rejects["d/e/up"]["detail"])


def test_a_file_that_changes_while_it_is_read_stops_the_build(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    corpus = list_corpus(tmp_path)
    (tmp_path / "a.txt").write_text("two")

    with pytest.raises(InputError, match=r"a\.txt changed"):
        list(corpus.read_files())


def test_a_line_inserted_above_renames_nothing_below(tmp_path: Path) -> None:
    lines = [b'{"text": "first"}', b'{"text": "second", "year": 1}']
    before, _ = ingest_files(tmp_path, {"a.jsonl": b"\n".join(lines)})

    after, _ = ingest_files(tmp_path, {"a.jsonl": b"\n".join([b'{"text": "new"}', *lines])})

    ids = {row["document_id"] for row in after.values()}
    assert {row["document_id"] for row in before.values()} < ids
    assert len(ids) == 3


@pytest.mark.slow
@pytest.mark.usefixtures("quick_models")
def test_a_duplicate_at_two_sources_is_two_documents_and_one_extraction(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("Anna Holm founded Aster Pictures.")
    warehouse = Warehouse(tmp_path / ".warehouse")

    outcome = build_corpus(tmp_path, warehouse)

    tables = read_snapshot(warehouse, outcome.snapshot)
    (triple,) = tables["triples"].to_pylist()
    chunk_of = {r["raw_triple_id"]: r["chunk_id"] for r in tables["raw_triples"].to_pylist()}
    assert {*tables["documents"]["source"].to_pylist()} == {"a.txt", "b.txt"}
    assert {chunk_of[raw] for raw in triple["raw_triple_ids"]} == {
        *tables["chunks"]["chunk_id"].to_pylist()
    }
    assert tables["chunks"].num_rows == 2
    assert count_recomputed(outcome)["extract"] == 1
    assert count_recomputed(outcome)["chunk"] == 1


@pytest.mark.slow
@pytest.mark.usefixtures("quick_models")
def test_spans_match_in_every_script(tmp_path: Path) -> None:
    texts = {
        "cjk.txt": "漢字は文字である。東京は日本の首都だ。" * 5,
        "rtl.txt": "שלום עולם. ירושלים היא עיר. مرحبا بالعالم.",
        "mixed.txt": "😀 Anna Holm 😀 founded 漢字. \u202eLeon Batt\u202c saw Oslo.\x0b\x85End.",
    }
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text.encode("utf-16"))
    warehouse = Warehouse(tmp_path / ".warehouse")

    snapshot = build_corpus(tmp_path, warehouse).snapshot

    assert check_tables(warehouse.snapshots / snapshot) == []
    documents = read_snapshot(warehouse, snapshot)["documents"].to_pylist()
    assert {row["source"]: row["text"] for row in documents} == texts


def read_all(name: str, data: bytes | str) -> list[Record | Refusal]:
    return list(read_records(name, data.encode() if isinstance(data, str) else data, USUAL))


USUAL = IngestSettings()


def test_json_of_any_depth_is_a_document_or_a_reject() -> None:
    depths = range(100, 1100)
    records = read_all(
        "a.jsonl", "\n".join(f'{{"text": "a", "more": {"[" * d}{"]" * d}}}' for d in depths)
    )
    read = [isinstance(record, Record) for record in records]
    assert read == sorted(read, reverse=True)
    assert read[0]
    assert {record.reason for record in records if isinstance(record, Refusal)} == {"bad_json"}


def test_front_matter_and_heads_of_pages_never_lose_a_label() -> None:
    for text in read_rows("sources.front_matter"):
        for name in ("a.md", "a.txt", "a.html"):
            (record,) = read_all(name, text)
            assert isinstance(record, Refusal), text
            assert (record.source, record.reason) == (name, "bad_access")
    for head, is_refused in read_rows("sources.a_page_that_says_access_is_a_reject"):
        for name in ("a.html", "a.md"):
            (record,) = read_all(name, f"{head}<p>Text.</p>")
            assert isinstance(record, Refusal) == is_refused, head
    for text in read_rows("sources.texts_that_only_look_like_front_matter_are_read"):
        (record,) = read_all("a.md", text)
        assert isinstance(record, Record) and record.access == (), text


def test_aliases_in_front_matter_are_not_followed() -> None:
    lines = [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]" for at in range(1, 30)]
    (record,) = read_all("a.md", "\n".join(["---", "a0: &a0 [x]", *lines, "---", "Text."]))
    assert isinstance(record, Record)
    assert (record.metadata, record.text.endswith("Text.")) == ({}, True)


def test_labels_of_parquet_are_lists_or_texts_of_texts_and_maps_are_looked_into() -> None:
    rows: list[dict[str, object]] = [
        {"id": "1", "text": "T", "access": ["b", "a"]},
        {"id": "2", "text": "U", "access": None},
        {"id": "3", "text": "V", "access": [None]},
    ]
    records = read_all("a.parquet", write_parquet(rows))
    found = [r.access if isinstance(r, Record) else r.reason for r in records]
    assert found == [("a", "b"), (), "bad_access"]

    about = pa.array([[("access", "a")]], pa.map_(pa.string(), pa.string()))
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": ["T"], "about": about}), buffer)
    (record,) = read_all("a.parquet", buffer.getvalue().to_pybytes())
    assert isinstance(record, Refusal) and "'about.access'" in record.detail


def test_invalid_utf8_is_refused_with_its_offset_or_read_by_the_fallback(tmp_path: Path) -> None:
    files = {"a.txt": b"caf\xe9 au lait"}
    documents, rejects = ingest_files(tmp_path, files)
    assert not documents and rejects["a.txt"]["reason"] == "undecodable"
    assert re.search(r"at byte 3\b.*fallback_encoding", str(rejects["a.txt"]["detail"]))
    documents, rejects = ingest_files(tmp_path, files, fallback_encoding="latin-1")
    assert documents["a.txt"]["text"] == "café au lait" and not rejects


def test_a_record_named_like_another_file_is_a_document_of_its_own(tmp_path: Path) -> None:
    files = {"a.jsonl": b'{"id": "b.txt", "text": "same"}', "a.jsonl#b.txt": b"same"}

    documents, _ = ingest_files(tmp_path, files)

    assert set(documents) == {"a.jsonl#b.txt", "a.jsonl#b.txt~2"}


def test_links_are_read_that_stay_in_the_corpus_and_no_others(tmp_path: Path) -> None:
    ingest_files(tmp_path, {"corpus/d/b.txt": b"in", "corpus2/c.txt": b"out", "out/e.txt": b"out"})
    for link, target in {
        "root": "corpus",
        "corpus/a.txt": "d/b.txt",
        "corpus/chain.txt": "a.txt",
        "corpus/around.txt": "../root/d/b.txt",
        "corpus/in": "d",
        "corpus/out": "../out",
        "corpus/out.txt": "out/e.txt",
        "corpus/like.txt": f"{tmp_path}/corpus2/c.txt",
        "corpus/away.txt": "../back.txt",
        "back.txt": "out/e.txt",
        "corpus/nothing.txt": "../nothing.txt",
    }.items():
        (tmp_path / link).symlink_to(target)

    for root in ("corpus", "root"):
        documents, rejects = ingest_folder(tmp_path / root)

        assert sorted(documents) == ["a.txt", "around.txt", "chain.txt", "d/b.txt"]
        assert "a second way" in str(rejects.pop("in")["detail"])
        assert {*rejects} == {"out", "out.txt", "like.txt", "away.txt", "nothing.txt"}
        assert all("leads out of the corpus" in str(row["detail"]) for row in rejects.values())

    assert len(list_corpus(tmp_path / "corpus" / "out.txt").files) == 1, "it is what is named"


def test_unreadable_folder_is_reject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.txt", "closed/b.txt", "z.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("text")
    scan = os.scandir

    def refuse_closed(path: Path) -> object:
        # a mode of 000 does not stop root, who runs the tests in containers
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse_closed)
    documents, rejects = ingest_folder(tmp_path)

    assert set(documents) == {"a.txt", "z.txt"}
    assert list(rejects) == ["closed"]
    assert rejects["closed"]["reason"] == "unreadable"
    assert rejects["closed"]["detail"] == "folder not readable: Permission denied"
    with pytest.raises(InputError, match=r"closed.*Permission denied"):
        list_corpus(tmp_path / "closed")


def test_neither_hidden_files_nor_the_warehouse_are_part_of_a_corpus(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere.*does not exist"):
        list_corpus(tmp_path / "nowhere")
    with pytest.raises(InputError, match="no file in it"):
        list_corpus(tmp_path)
    names = ("a.txt", ".b.txt", ".git/c.txt", "d/e.txt", "warehouse/data/b.txt", "warehouse/c.txt")
    documents, rejects = ingest_files(tmp_path, dict.fromkeys(names, b"text"))
    assert sorted(documents) == ["a.txt", "d/e.txt", "warehouse/c.txt", "warehouse/data/b.txt"]
    assert not rejects
    warehouse = tmp_path / "warehouse" / "data"
    (tmp_path / "link").symlink_to(warehouse)
    (tmp_path / "link.txt").symlink_to(warehouse / "b.txt")
    corpus = list_corpus(tmp_path, leave_out=[tmp_path / "warehouse" / ".." / "link"])
    assert [path for path, _ in corpus.files] == ["a.txt", "d/e.txt", "warehouse/c.txt"]

    around = Warehouse(tmp_path / "d")
    for folder in around.folders:
        folder.mkdir()
        (folder / "own.txt").write_text("ours")
    corpus = list_corpus(tmp_path / "d", leave_out=around.folders)
    assert [path for path, _ in corpus.files] == ["e.txt"]
    beside = list_corpus(tmp_path / "warehouse", leave_out=around.folders)
    assert [path for path, _ in beside.files] == ["c.txt", "data/b.txt"]


@pytest.mark.parametrize("corpus", ["data", "data/x", "data/x/a.txt", "link"])
def test_a_corpus_in_the_warehouse_is_refused(tmp_path: Path, corpus: str) -> None:
    ingest_files(tmp_path, {"data/x/a.txt": b"text"})
    (tmp_path / "link").symlink_to(tmp_path / "data" / "x")

    with pytest.raises(InputError, match="is inside the warehouse"):
        list_corpus(tmp_path / corpus, leave_out=[tmp_path / "data"])


def test_odd_pages_lose_no_text(tmp_path: Path) -> None:
    head = b"<head><title>T</title>"
    texts = {
        b"<html>%s<body>seen" % head: "seen",
        b"<html>%s<p>seen" % head: "seen",
        b"%sseen" % head: "seen",
        b"%s</head><![odd]>seen" % head: "seen",
        b"%s</head><script>x</script>seen<!-- unseen --><style>" % head: "seen",
        b"<p>a <b> b</b>\n\n<i>c</i></p>d<pre>x  y\n  z</pre><template><p>no</p></template>e": (
            "a b c\n\nd\n\nx  y\n  z\n\ne"
        ),
        b"<div><b>x" * 9_000 + b"deep": "x\n\n" * 8_999 + "xdeep",
    }
    documents, _ = ingest_files(tmp_path, {f"{n}.html": page for n, page in enumerate(texts)})
    assert [row["text"] for _, row in sorted(documents.items())] == [*texts.values()]
    assert [documents[f"{n}.html"]["title"] for n in range(5)] == ["T"] * 5


@pytest.mark.parametrize("mark", ["> ", "- "])
def test_markdown_is_read_whole_or_refused_at_any_depth(tmp_path: Path, mark: str) -> None:
    depths = [1, 30, 49, 50, 51, 98, 99, 100, 101, 150, 5000]
    files = {f"{depth}.md": (mark * depth + "deep\n\nnext").encode() for depth in depths}

    documents, rejects = ingest_files(tmp_path, files)

    assert len(documents) + len(rejects) == len(depths)
    assert {"1.md", "30.md", "49.md"} <= set(documents)
    assert {"101.md", "150.md", "5000.md"} <= set(rejects)
    assert all("deep" in str(row["text"]) for row in documents.values())
    assert {row["reason"] for row in rejects.values()} == {"too_deep"}


@given(
    st.binary() | st.text().map(lambda text: text.encode("utf-16")), st.none() | st.just("cp1252")
)
@example(b"a\r\n\rb", None)
def test_decoded_text_is_clean_or_refused(data: bytes, fallback: str | None) -> None:
    try:
        text = decode_bytes(data, fallback)
    except RefusedError as e:
        assert e.reason in {"binary", "undecodable"}
        return
    assert "\r" not in text
    assert "\x00" not in text
    assert decode_bytes(b"\xef\xbb\xbf" + text.encode("utf-8"), None) == text


@pytest.mark.filterwarnings("error")
@given(st.sampled_from(sorted({*aliases, *aliases.values(), "undefined", "nothing"})), st.binary())
def test_no_declared_charset_can_crash_the_reader(charset: str, body: bytes) -> None:
    try:
        decode_bytes(f'<meta charset="{charset}">'.encode() + body, None, html=True)
    except RefusedError as e:
        assert e.reason in {"binary", "undecodable"}


@each_row("case, line, labels", "sources.labels")
def test_a_row_has_the_labels_it_states_or_is_a_reject_that_names_it(
    case: str, line: str, labels: tuple[str, ...] | None
) -> None:
    (record,) = read_all("a.jsonl", line)
    if labels is None:
        assert isinstance(record, Refusal)
        assert (record.source, record.reason) == ("a.jsonl#line1", "bad_access")
        assert "line 1" in record.detail
    else:
        assert isinstance(record, Record)
        assert record.access == labels, case
        assert not record.metadata


@each_row("text, read, refused")
def test_a_table_of_cells_never_loses_a_label(
    text: str, read: dict[str, tuple[str, ...]], refused: list[str]
) -> None:
    records = read_all("a.csv", text)
    kept = {r.source.removeprefix("a.csv#"): r.access for r in records if isinstance(r, Record)}
    lost = {r.source.removeprefix("a.csv#"): r.reason for r in records if isinstance(r, Refusal)}
    assert kept == read
    assert lost == dict.fromkeys(refused, "bad_access")


NEARLY_ACCESS = read_rows("sources.nearly_access")
OTHER_NAMES = read_rows("sources.other_names")


def test_what_is_nearly_named_access_is_told_from_other_names() -> None:
    assert [name for name in NEARLY_ACCESS if not names_labels(name)] == []
    assert [name for name in OTHER_NAMES if names_labels(name)] == []


@each_row("fields, named")
def test_a_field_that_is_nearly_access_is_a_reject_that_names_it(fields: Row, named: str) -> None:
    line = json.dumps({"id": "x", "text": '{"access": "a text may say so"}', **fields})

    (record,) = read_all("a.jsonl", line)
    assert isinstance(record, Refusal)
    assert (record.source, record.reason) == ("a.jsonl#line1", "bad_access")
    assert repr(named) in record.detail
